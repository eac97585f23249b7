//! What one pass over an article's octets tells: line ends, NULs, stuffed dots, size.
//!
//! The pass is a plain loop over 32-octet blocks with a counter per lane, which the compiler turns into vector code:
//! no branch depends on the data.  Counting line ends, line feeds and carriage returns separately is enough to know
//! whether any is bare (RFC 3977 section 3.1.1: CR and LF only as CRLF).

/// Lanes of the vector loop.
const LANES: usize = 32;
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
        // A pair needs its second octet, so the vector loop stops one short and the rest is counted one by one.
        let pairs = octets.len().saturating_sub(1);
        let whole = pairs - pairs % LANES;
        let mut done = 0;
        while done < whole {
            let stretch = (whole - done).min(LANES * BLOCKS_MAX);
            let Some(block) = octets.get(done..done + stretch + 1) else {
                break;
            };
            facts.add_blocks(block);
            done += stretch;
        }
        let mut rest = octets.get(done..).unwrap_or_default();
        while let [first, tail @ ..] = rest {
            facts.add_one(*first, tail.first().copied());
            rest = tail;
        }
        if octets.first() == Some(&b'.') {
            facts.dot_lines += 1;
        }
        facts
    }

    /// Counts `block.len() - 1` octets, a multiple of the lanes and at most `LANES * BLOCKS_MAX`; the last octet is
    /// only looked at as the second of a pair.
    fn add_blocks(&mut self, block: &[u8]) {
        let mut crlf = [0u8; LANES];
        let mut cr = [0u8; LANES];
        let mut lf = [0u8; LANES];
        let mut nul = [0u8; LANES];
        let mut dots = [0u8; LANES];
        let mut high = [0u8; LANES];
        let (here, _) = block.as_chunks::<LANES>();
        let (next, _) = block.get(1..).unwrap_or_default().as_chunks::<LANES>();
        for (a, b) in here.iter().zip(next) {
            for i in 0..LANES {
                #[expect(
                    clippy::indexing_slicing,
                    reason = "i < LANES, the arrays' length; zip defeats the vectoriser"
                )]
                {
                    let is_cr = u8::from(a[i] == b'\r');
                    let is_lf = u8::from(a[i] == b'\n');
                    cr[i] += is_cr;
                    lf[i] += is_lf;
                    nul[i] += u8::from(a[i] == 0);
                    crlf[i] += is_cr & u8::from(b[i] == b'\n');
                    dots[i] += is_lf & u8::from(b[i] == b'.');
                    high[i] |= a[i];
                }
            }
        }
        self.crlf += sum(&crlf);
        self.cr += sum(&cr);
        self.lf += sum(&lf);
        self.nul += sum(&nul);
        self.dot_lines += sum(&dots);
        self.non_ascii |= high.iter().fold(0, |all, octet| all | octet) >= 0x80;
    }

    fn add_one(&mut self, octet: u8, next: Option<u8>) {
        let is_cr = usize::from(octet == b'\r');
        let is_lf = usize::from(octet == b'\n');
        self.cr += is_cr;
        self.lf += is_lf;
        self.nul += usize::from(octet == 0);
        self.crlf += is_cr & usize::from(next == Some(b'\n'));
        self.dot_lines += is_lf & usize::from(next == Some(b'.'));
        self.non_ascii |= octet >= 0x80;
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
    }
}
