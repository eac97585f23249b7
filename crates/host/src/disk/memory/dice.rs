//! Repeatable choices for crashes: one seed, one outcome.
//!
//! Only for deciding what a simulated power cut leaves; no key or identity may come from here.

/// What of a set of un-synced changes reaches the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Survival {
    /// Nothing does.
    Nothing,
    /// Everything does.
    Everything,
    /// The first so many of a thousand do.
    Front(u64),
    /// All but the first so many of a thousand do.
    Back(u64),
    /// Each does or does not.
    Each,
}

/// A small generator (SplitMix64).
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) const fn coin(&mut self) -> bool {
        self.roll() >> 63 == 1
    }

    /// Chooses how one file, or the list of names, fares.  Pure chance for each sector would practically never leave
    /// a large write whole, so that the whole and the empty outcome have their own chances.
    pub(super) const fn survival(&mut self) -> Survival {
        let cut = self.roll() % 1000;
        match self.roll() % 6 {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            2 => Survival::Front(cut),
            3 => Survival::Back(cut),
            _ => Survival::Each,
        }
    }

    /// Whether change `at` of `of` survives.
    pub(super) const fn survives(&mut self, how: Survival, at: usize, of: usize) -> bool {
        let place = at as u64 * 1000 / if of == 0 { 1 } else { of as u64 };
        match how {
            Survival::Nothing => false,
            Survival::Everything => true,
            Survival::Front(cut) => place < cut,
            Survival::Back(cut) => place >= cut,
            Survival::Each => self.coin(),
        }
    }
}
