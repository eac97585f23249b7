//! What one pass over an article's octets tells: line ends, NULs, stuffed dots, size.
//!
//! The pass is a plain loop over blocks with a counter per lane, which the compiler turns into vector code: no branch
//! depends on the data.  It counts on the assumption that CR and LF come only as CRLF (RFC 3977 section 3.1.1) and that
//! there is no NUL, and checks that on the way; only a stretch that breaks it is counted again, one by one.

/// Octets a lane looks at beyond its own.
const AHEAD: usize = 2;
/// Lanes of the vector loop.
const LANES: usize = 16;
/// Blocks after which the 8-bit lane counters must be emptied.
const BLOCKS_MAX: usize = 255;

/// Counts over some octets.  The first octet is taken to begin a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OctetFacts {
    /// Octets looked at.
    pub octets: usize,
    /// CR followed by LF: lines.
    pub crlf: usize,
    /// CR, paired or not.
    pub cr: usize,
    /// LF, paired or not.
    pub lf: usize,
    /// NUL.
    pub nul: usize,
    /// Lines that begin with a dot, a terminator's included: in wire form each such line has one octet too many.
    pub dot_lines: usize,
    /// Some octet is above 127.
    pub non_ascii: bool,
}

impl OctetFacts {
    /// Counts over a slice.
    #[must_use]
    pub fn of(octets: &[u8]) -> Self {
        let mut facts = Self {
            octets: octets.len(),
            ..Self::default()
        };
        // A lane looks at two octets behind its own, so the loop stops that much short of the end.
        let lanes = octets.len().saturating_sub(AHEAD) / LANES * LANES;
        let mut done = 0;
        while done < lanes {
            let stretch = (lanes - done).min(LANES * BLOCKS_MAX);
            let Some(block) = octets.get(done..done + stretch + AHEAD) else {
                break;
            };
            if !facts.add_clean(block) {
                facts.add_each(block, stretch);
            }
            done += stretch;
        }
        // What is left is shorter than one block and its followers.  Spaces change no count, so it is filled up.
        let rest = octets.get(done..).unwrap_or_default();
        let mut filled = [b' '; LANES * 2 + AHEAD];
        if let Some(front) = filled.get_mut(..rest.len()) {
            front.copy_from_slice(rest);
        }
        if !facts.add_clean(&filled) {
            facts.add_each(rest, rest.len());
        }
        // A line feed, and the dot behind it, are counted with the octet before, which the very first has not got.
        facts.lf += usize::from(octets.first() == Some(&b'\n'));
        facts.dot_lines += usize::from(octets.starts_with(b".") || octets.starts_with(b"\n."));
        facts
    }

    /// Counts all but the last two octets of `block` if none of them is NUL or a CR or LF on its own; otherwise counts
    /// nothing and says no.  The last two octets are only looked at as followers.
    fn add_clean(&mut self, block: &[u8]) -> bool {
        let mut lines = [0u8; LANES];
        let mut dots = [0u8; LANES];
        let mut bad = [0u8; LANES];
        let mut high = [0u8; LANES];
        let (first, _) = block.as_chunks::<LANES>();
        let (second, _) = block.get(1..).unwrap_or_default().as_chunks::<LANES>();
        let (third, _) = block.get(2..).unwrap_or_default().as_chunks::<LANES>();
        for ((a, b), c) in first.iter().zip(second).zip(third) {
            #[expect(
                clippy::indexing_slicing,
                reason = "below LANES, the arrays' length; iterators do not vectorise"
            )]
            for i in 0..LANES {
                let (cr, lf, dot) = (mask(a[i] == b'\r'), mask(b[i] == b'\n'), mask(c[i] == b'.'));
                lines[i] = lines[i].wrapping_sub(cr);
                dots[i] = dots[i].wrapping_sub(cr & dot);
                bad[i] |= (cr ^ lf) | mask(a[i] == 0);
                high[i] |= a[i];
            }
        }
        if bad.iter().any(|&bad| bad != 0) {
            return false;
        }
        let lines = sum(&lines);
        self.crlf += lines;
        self.cr += lines;
        self.lf += lines;
        self.dot_lines += sum(&dots);
        self.non_ascii |= high.iter().fold(0, |all, octet| all | octet) >= 0x80;
        true
    }

    /// Counts `count` octets of `block` one by one; what follows them is only looked at.
    fn add_each(&mut self, block: &[u8], count: usize) {
        let mut rest = block;
        for _ in 0..count {
            let [octet, after @ ..] = rest else { break };
            let (is_cr, before_lf) = (*octet == b'\r', after.starts_with(b"\n"));
            self.cr += usize::from(is_cr);
            self.lf += usize::from(before_lf);
            self.crlf += usize::from(is_cr && before_lf);
            self.dot_lines += usize::from(after.starts_with(b"\n."));
            self.nul += usize::from(*octet == 0);
            self.non_ascii |= *octet >= 0x80;
            rest = after;
        }
    }

    /// CR that no LF follows.
    #[must_use]
    pub const fn bare_cr(&self) -> usize {
        self.cr - self.crlf
    }

    /// LF that no CR precedes.
    #[must_use]
    pub const fn bare_lf(&self) -> usize {
        self.lf - self.crlf
    }

    /// No NUL and no CR or LF on its own: what RFC 5536 section 2.2 and RFC 3977 section 3.6 want of an article.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.nul == 0 && self.cr == self.crlf && self.lf == self.crlf
    }
}

/// All bits or none, what vector comparisons give: taking it off a counter adds one.
#[inline]
const fn mask(condition: bool) -> u8 {
    0u8.wrapping_sub(condition as u8)
}

fn sum(lanes: &[u8; LANES]) -> usize {
    lanes.iter().fold(0u32, |sum, &lane| sum + u32::from(lane)) as usize
}

/// [`OctetFacts::of`] under the name the rest of the system uses for it.
#[must_use]
pub fn octets(wire: &[u8]) -> OctetFacts {
    OctetFacts::of(wire)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same counts, written to be obviously right.
    fn model(octets: &[u8]) -> OctetFacts {
        let count = |pattern: &[u8]| {
            octets
                .windows(pattern.len())
                .filter(|window| *window == pattern)
                .count()
        };
        OctetFacts {
            octets: octets.len(),
            crlf: count(b"\r\n"),
            cr: count(b"\r"),
            lf: count(b"\n"),
            nul: count(b"\0"),
            dot_lines: count(b"\n.") + usize::from(octets.starts_with(b".")),
            non_ascii: !octets.is_ascii(),
        }
    }

    #[test]
    fn counts_a_small_article() {
        let facts = OctetFacts::of(b"A: b\r\n\r\n..dot\r\nx\r\n.\r\n");
        assert_eq!((facts.crlf, facts.dot_lines, facts.octets), (5, 2, 21));
        assert!(facts.is_clean() && !facts.non_ascii);
    }

    #[test]
    fn bare_ends_and_nul_are_not_clean() {
        for (text, cr, lf, nul) in [
            (&b"a\rb\r\n"[..], 1, 0, 0),
            (b"a\nb\r\n", 0, 1, 0),
            (b"\0\r\n", 0, 0, 1),
            (b"\n\r", 1, 1, 0),
        ] {
            let facts = OctetFacts::of(text);
            assert_eq!((facts.bare_cr(), facts.bare_lf(), facts.nul), (cr, lf, nul));
            assert!(!facts.is_clean());
        }
    }

    #[test]
    fn lane_counters_do_not_overflow() {
        for len in [
            LANES * BLOCKS_MAX,
            LANES * BLOCKS_MAX + 1,
            LANES * BLOCKS_MAX * 2 + 77,
        ] {
            let nuls = vec![0u8; len];
            assert_eq!(OctetFacts::of(&nuls), model(&nuls));
            let dots = b"\n.".repeat(len / 2);
            assert_eq!(OctetFacts::of(&dots), model(&dots));
        }
    }

    proptest! {
        #[test]
        fn prop_counts_as_the_model(octets in proptest::collection::vec(prop_oneof![
            Just(b'\r'), Just(b'\n'), Just(b'.'), Just(0u8), any::<u8>()], 0..600)) {
            prop_assert_eq!(OctetFacts::of(&octets), model(&octets));
        }

        #[test]
        fn prop_clean_and_dirty_stretches_meet(lines in 100usize..3000, from in 0usize..20_000, dirt in "[\r\n.\0]{0,3}") {
            let mut octets = b"..abc\r\n.\r\nd\r\n".repeat(lines);
            let from = from.min(octets.len());
            octets.splice(from..from, dirt.into_bytes());
            prop_assert_eq!(OctetFacts::of(&octets), model(&octets));
        }
    }
}
