//! Who takes room in a table that has not room for everything, and who has most of it.
//!
//! Where there is no room, the oldest of who has most goes: so nobody's flood pushes out what came from others.  Tables that use
//! it give each of their entries a number; a smaller one is older.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use newsreel_wire::network_of;

/// Whose share something takes: the same at each start.  The upper half says who they are, a configured peer, or all who post
/// here; the lower which part of those, so that of many who are one to the server nobody pushes out what came from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Holder(pub(crate) u64);

/// Parts of those who are one to the server.
const PARTS: u64 = 255;

impl Holder {
    /// Octets in the log.
    pub(crate) const OCTETS: usize = 8;

    /// The configured peer of this name.
    pub(crate) fn of_peer(name: &str) -> Self {
        Self::of("peer", name)
    }

    /// Who feeds from there and is no configured peer.
    pub(crate) fn of_stranger(address: Option<IpAddr>) -> Self {
        Self::default().part(address)
    }

    /// Who posts here, from there.
    pub(crate) fn of_poster(address: Option<IpAddr>) -> Self {
        Self::of("posters", "").part(address)
    }

    /// Who issues notices with this key.
    pub(crate) fn of_issuer(fingerprint: &str) -> Self {
        Self::of("issuer", &fingerprint.to_ascii_uppercase())
    }

    /// Who signs messages about groups with this key.
    pub(crate) fn of_key(fingerprint: &str) -> Self {
        Self::of("key", &fingerprint.to_ascii_uppercase())
    }

    /// All whom a rule for these groups believes without a signature.
    pub(crate) fn of_rule(groups: &str) -> Self {
        Self::of("rule", groups)
    }

    /// Administrators, who approve.
    pub(crate) fn of_approval() -> Self {
        Self::of("approval", "")
    }

    fn of(what: &str, name: &str) -> Self {
        Self(Self::hash(what, name.as_bytes()) >> 32 << 32)
    }

    fn hash(what: &str, name: &[u8]) -> u64 {
        let mut hasher = blake3::Hasher::new_derive_key("newsreel 2026-11 pending cancel holder");
        hasher.update(what.as_bytes()).update(b":");
        let mut octets = [0; Self::OCTETS];
        hasher.update(name).finalize_xof().fill(&mut octets);
        u64::from_le_bytes(octets)
    }

    /// The part that the network of this address is in; who has no address is in none.
    fn part(self, address: Option<IpAddr>) -> Self {
        let part = |address| {
            let network = network_of(address).to_string();
            1 + Self::hash("network", network.as_bytes()) % PARTS
        };
        Self(self.0 | address.map_or(0, part))
    }

    /// Who they are to the server.
    pub(super) const fn who(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// What each holder has.
#[derive(Debug, Default, Clone)]
pub(super) struct Shares {
    of: BTreeMap<Holder, Share>,
    octets: usize,
}

/// What one holder has.
#[derive(Debug, Default, Clone)]
struct Share {
    numbers: BTreeSet<u64>,
    octets: usize,
}

impl Share {
    fn oldest(&self) -> u64 {
        self.numbers.first().copied().unwrap_or(u64::MAX)
    }
}

impl Shares {
    /// The entry of this number takes so much.
    pub(super) fn add(&mut self, holder: Holder, number: u64, octets: usize) {
        let share = self.of.entry(holder).or_default();
        share.numbers.insert(number);
        share.octets += octets;
        self.octets += octets;
    }

    /// One of the entries takes so much more.
    pub(super) fn grow(&mut self, holder: Holder, octets: usize) {
        if let Some(share) = self.of.get_mut(&holder) {
            share.octets += octets;
            self.octets += octets;
        }
    }

    /// The entry of this number, which took so much, is gone.
    pub(super) fn remove(&mut self, holder: Holder, number: u64, octets: usize) {
        let Some(share) = self.of.get_mut(&holder) else {
            return;
        };
        if share.numbers.remove(&number) {
            share.octets -= octets;
            self.octets -= octets;
        }
        if share.numbers.is_empty() {
            self.of.remove(&holder);
        }
    }

    /// What all of them take.
    pub(super) const fn octets(&self) -> usize {
        self.octets
    }

    /// The oldest of the part that has most, of who has most; of two who have as much, of whose is older.
    pub(super) fn first_to_go(&self) -> Option<(u64, Holder)> {
        let mut most: Option<(usize, Reverse<u64>, Holder)> = None;
        let mut shares = self.of.iter().peekable();
        while let Some((holder, share)) = shares.next() {
            let (mut octets, mut oldest) = (share.octets, share.oldest());
            let mut largest = (share.octets, Reverse(oldest), *holder);
            while let Some((other, share)) = shares.next_if(|(it, _)| it.who() == holder.who()) {
                octets += share.octets;
                oldest = oldest.min(share.oldest());
                largest = largest.max((share.octets, Reverse(share.oldest()), *other));
            }
            let (_, _, part) = largest;
            let is_more =
                |it: &(usize, Reverse<u64>, Holder)| (it.0, it.1) < (octets, Reverse(oldest));
            if most.as_ref().is_none_or(is_more) {
                most = Some((octets, Reverse(oldest), part));
            }
        }
        let (_, _, holder) = most?;
        let share = self.of.get(&holder)?;
        Some((share.numbers.first().copied()?, holder))
    }

    /// How many entries there are, and what they take: as it is counted, one by one.
    #[cfg(test)]
    pub(super) fn counted(&self) -> (usize, usize) {
        let entries = self.of.values().map(|share| share.numbers.len()).sum();
        (entries, self.of.values().map(|share| share.octets).sum())
    }
}
