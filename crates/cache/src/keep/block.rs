//! The overview of 128 numbers that follow each other, as far as it is known.
//!
//! For each number it says whether the server was asked for it, and if so, whether there is a line; so what is not there is
//! known, too.  For each number it says besides whether that was so at a certain time, or may be older.  Lines are kept without
//! number and CRLF, as they came; of an article of which the line is made when it is wanted (R22) the message-id alone is there.  The
//! layout is in `docs/formats/cache.md`.

use newsreel_wire::{ArticleNumber, UnixTime};

/// Numbers of a block.
pub const BLOCK_NUMBERS: u64 = 128;

/// The longest line that is kept, octets: a server's longer ones are left out by the client already.
pub(super) const LINE_OCTETS_MAX: usize = 64 << 10;

/// What stands in front of the message-id in a line that has nothing else, and behind it.
const BARE: (&[u8], &[u8]) = (b"\t\t\t", b"\t");

/// Octets in front of the lines' ends.
const FRONT: usize = 56;

/// Where a number's line is: in which block, and its place in that.
#[must_use]
pub const fn place_of(number: ArticleNumber) -> (u64, u8) {
    let place = number.0 % BLOCK_NUMBERS;
    (number.0 / BLOCK_NUMBERS, place as u8)
}

/// The places of a block that lie in a range of numbers, as bits.
#[must_use]
pub fn places_in(block: u64, low: ArticleNumber, high: ArticleNumber) -> u128 {
    let first = block.saturating_mul(BLOCK_NUMBERS);
    let last = first.saturating_add(BLOCK_NUMBERS - 1);
    if high.0 < low.0 || low.0 > last || high.0 < first {
        return 0;
    }
    let (from, to) = (low.0.max(first) - first, high.0.min(last) - first);
    (u128::MAX >> (BLOCK_NUMBERS - 1 - (to - from))) << from
}

/// The places of these bits, in order.
pub fn each_of(mut bits: u128) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros();
        bits &= bits.checked_sub(1)?;
        u8::try_from(place).ok()
    })
}

/// A line with a message-id and nothing else: the rest is made from the article.
pub(crate) fn bare_line(id: &[u8]) -> Vec<u8> {
    [BARE.0, id, BARE.1].concat()
}

/// The message-id of a line that has nothing else.
pub(super) fn bare_id(line: &[u8]) -> Option<&[u8]> {
    let id = line.strip_prefix(BARE.0)?.strip_suffix(BARE.1)?;
    (!id.contains(&b'\t')).then_some(id)
}

/// What is known of a block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    asked: u128,
    there: u128,
    covered: u128,
    compared: UnixTime,
    /// Where each line ends, in the order of the numbers.
    ends: Vec<u32>,
    text: Vec<u8>,
}

impl Block {
    /// The places whose numbers the server was asked for.
    #[must_use]
    pub const fn asked(&self) -> u128 {
        self.asked
    }

    /// The places of the numbers that are there.
    #[must_use]
    pub const fn there(&self) -> u128 {
        self.there
    }

    /// The places of which all this was so at a time that is not as long ago as this; one that is still to come is of a clock that was
    /// ahead, and says nothing.
    #[must_use]
    pub const fn covered(&self, now: UnixTime, age_s: u64) -> u128 {
        match now.0.checked_sub(self.compared.0) {
            Some(age) if age < age_s => self.covered,
            _ => 0,
        }
    }

    /// The line of a place.
    #[must_use]
    pub fn line(&self, place: u8) -> Option<&[u8]> {
        let bit = 1_u128.checked_shl(place.into())?;
        if self.there & bit == 0 {
            return None;
        }
        let before = (self.there & (bit - 1)).count_ones() as usize;
        let from = before
            .checked_sub(1)
            .map_or(Some(0), |last| self.end(last))?;
        self.text.get(from..self.end(before)?)
    }

    fn end(&self, line: usize) -> Option<usize> {
        self.ends.get(line).map(|end| *end as usize)
    }

    /// The lines that are there with their places, in order.
    pub fn lines(&self) -> impl Iterator<Item = (u8, &[u8])> {
        self.lines_of(u128::MAX)
    }

    /// Those of these places.
    pub fn lines_of(&self, places: u128) -> impl Iterator<Item = (u8, &[u8])> {
        each_of(self.there & places).filter_map(|place| Some((place, self.line(place)?)))
    }

    /// The same block after the server was asked at a time for these places and told these lines, in order, of those that are
    /// there.
    #[must_use]
    pub fn told<'l>(
        &self,
        places: u128,
        lines: impl Iterator<Item = (u8, &'l [u8])>,
        now: UnixTime,
    ) -> Self {
        let mut out = self.with(places, lines);
        out.covered = self.covered | places;
        // Of what was covered before the time stays.
        out.compared = if self.covered & !places == 0 {
            now
        } else {
            self.compared
        };
        out
    }

    fn with<'l>(&self, places: u128, lines: impl Iterator<Item = (u8, &'l [u8])>) -> Self {
        let mut told = lines
            .filter(|(_, line)| line.len() <= LINE_OCTETS_MAX)
            .peekable();
        let mut out = Self {
            asked: self.asked | places,
            ..Self::default()
        };
        for place in 0..BLOCK_NUMBERS as u8 {
            while told.next_if(|(other, _)| *other < place).is_some() {}
            let is_told = places >> place & 1 == 1;
            let new = told.next_if(|(other, _)| *other == place && is_told);
            let kept = if is_told { None } else { self.line(place) };
            if let Some(line) = new.map(|(_, line)| line).or(kept) {
                out.push(place, line);
            }
        }
        out
    }

    fn push(&mut self, place: u8, line: &[u8]) {
        self.text.extend_from_slice(line);
        // 128 lines of 64 KiB are 8 MiB.
        if let Ok(end) = u32::try_from(self.text.len()) {
            self.ends.push(end);
            self.there |= 1 << place;
        }
    }

    /// The same block after the server said at a time which of these places are there: what is not is known not to be, and
    /// what is, without a line here, has to be asked for.  Gives the lines that went, too.
    #[must_use]
    pub fn compared(&self, places: u128, listed: u128, now: UnixTime) -> (Self, Vec<Vec<u8>>) {
        let gone = self.there & places & !listed;
        let gone_lines = self.lines_of(gone).map(|(_, line)| line.to_vec()).collect();
        let mut out = self.with(gone, std::iter::empty());
        // Reinstated, or never seen.
        out.asked &= !(places & listed & !out.there);
        out.asked |= places & !listed;
        (out.covered, out.compared) = (places, now);
        (out, gone_lines)
    }

    /// The lines of these places that have a message-id and nothing else, with that.
    pub fn bare(&self, places: u128) -> impl Iterator<Item = (u8, &[u8])> {
        let lines = self.lines_of(places);
        lines.filter_map(|(place, line)| Some((place, bare_id(line)?)))
    }

    /// The same block with these lines, in order, of these places, which are there.
    #[must_use]
    pub fn filled<'l>(&self, places: u128, lines: impl Iterator<Item = (u8, &'l [u8])>) -> Self {
        Self {
            covered: self.covered,
            compared: self.compared,
            ..self.with(places, lines)
        }
    }

    /// The same block without the lines of these places: what is there has to be asked for again.
    #[must_use]
    pub fn forgotten(&self, places: u128) -> Self {
        let places = places & self.there;
        Self {
            asked: self.asked & !places,
            ..self.filled(places, std::iter::empty())
        }
    }

    /// Octets in memory, about.
    #[must_use]
    pub fn octets(&self) -> u64 {
        (size_of::<Self>() + self.text.len() + 4 * self.ends.len()) as u64
    }

    /// As it is kept.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FRONT + 4 * self.ends.len() + self.text.len());
        out.extend_from_slice(&self.asked.to_le_bytes());
        out.extend_from_slice(&self.there.to_le_bytes());
        out.extend_from_slice(&self.covered.to_le_bytes());
        out.extend_from_slice(&self.compared.0.to_le_bytes());
        for end in &self.ends {
            out.extend_from_slice(&end.to_le_bytes());
        }
        out.extend_from_slice(&self.text);
        out
    }

    /// From what was kept; none: it is no such thing.
    #[must_use]
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let (asked, rest) = octets.split_first_chunk()?;
        let (there, rest) = rest.split_first_chunk()?;
        let (covered, rest) = rest.split_first_chunk()?;
        let (compared, rest) = rest.split_first_chunk()?;
        let there = u128::from_le_bytes(*there);
        let (ends, text) = rest.split_at_checked(4 * there.count_ones() as usize)?;
        let ends = ends.as_chunks().0.iter();
        let block = Self {
            asked: u128::from_le_bytes(*asked),
            there,
            covered: u128::from_le_bytes(*covered),
            compared: UnixTime(u64::from_le_bytes(*compared)),
            ends: ends.map(|end| u32::from_le_bytes(*end)).collect(),
            text: text.to_vec(),
        };
        let last = block.ends.last().map_or(0, |end| *end as usize);
        let is_sound = there & !block.asked == 0 && block.ends.is_sorted() && last == text.len();
        is_sound.then_some(block)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use newsreel_wire::overview::message_id;
    use proptest::prelude::*;

    use super::*;

    fn bits(places: &[u8]) -> u128 {
        places.iter().fold(0, |bits, place| bits | 1 << place)
    }

    fn shown(block: &Block) -> Vec<(u8, String)> {
        let text = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
        block
            .lines()
            .map(|(place, line)| (place, text(line)))
            .collect()
    }

    #[test]
    fn lines_that_are_made_have_a_message_id_until_then() {
        let bare = bare_line(b"<2@t>");
        assert_eq!(message_id(&bare), Some(&b"<2@t>"[..]));
        for line in [
            &b"s\tf\td\t<2@t>\t\t9\t1"[..],
            b"\t\t\t<2@t>\t\t",
            b"",
            b"\t\t\t",
        ] {
            assert_eq!(bare_id(line), None, "{line:?}");
        }
        let lines: [(u8, &[u8]); 3] = [(1, b"one"), (2, &bare), (3, b"three")];
        let (all, then) = (bits(&[1, 2, 3, 4]), UnixTime(7));
        let block = Block::default().told(all, lines.into_iter(), then);
        assert_eq!(block.bare(all).collect::<Vec<_>>(), [(2, &b"<2@t>"[..])]);
        assert_eq!(block.bare(bits(&[1, 3])).count(), 0);
        let filled = block.filled(bits(&[2]), [(2, &b"two"[..])].into_iter());
        assert_eq!(filled.bare(all).count(), 0);
        assert_eq!(filled.line(2), Some(&b"two"[..]));
        assert_eq!((filled.asked(), filled.covered(then, 1)), (all, all));
        let forgotten = block.forgotten(bits(&[2, 4]));
        assert_eq!(forgotten.there(), bits(&[1, 3]));
        assert_eq!(
            forgotten.asked(),
            bits(&[1, 3, 4]),
            "what is not there stays known"
        );
        assert_eq!(forgotten.covered(then, 1), all);
    }

    #[test]
    fn places_of_a_range() {
        let of = |block, low, high| places_in(block, ArticleNumber(low), ArticleNumber(high));
        assert_eq!(of(0, 1, 3), 0b1110);
        assert_eq!(of(0, 0, u64::MAX), u128::MAX);
        assert_eq!(of(1, 1, 128), 1);
        assert_eq!(of(1, 255, 300), 1 << 127);
        assert_eq!(of(2, 1, 255), 0);
        assert_eq!(of(0, 128, 300), 0);
        assert_eq!(of(0, 3, 1), 0);
        assert_eq!(place_of(ArticleNumber(300)), (2, 44));
    }

    #[test]
    fn what_the_server_does_not_list_goes_and_what_it_lists_again_is_asked_for() {
        let lines = [(1, &b"one"[..]), (2, b"two"), (4, b"four")];
        let block = Block::default().told(bits(&[0, 1, 2, 3, 4]), lines.into_iter(), UnixTime(3));
        assert_eq!((block.asked(), block.there()), (0b11111, 0b10110));
        // 2 was cancelled, 3 came back; nothing is said of 4 and what follows.
        let (block, gone) = block.compared(0b1111, bits(&[1, 3]), UnixTime(7));
        assert_eq!(gone, [b"two".to_vec()]);
        assert_eq!((block.asked(), block.there()), (0b10111, 0b10010));
        assert_eq!(shown(&block), [(1, "one".into()), (4, "four".into())]);
        let covered = |block: &Block, now| block.covered(UnixTime(now), 5);
        assert_eq!((covered(&block, 11), covered(&block, 12)), (0b1111, 0));
        let block = block.told(bits(&[3]), [(3, &b"three"[..])].into_iter(), UnixTime(9));
        assert_eq!((covered(&block, 11), covered(&block, 12)), (0b1111, 0));
        let again = block.told(0b1111, std::iter::empty(), UnixTime(10));
        assert_eq!(covered(&again, 12), 0b1111);
        assert_eq!(block.line(3), Some(&b"three"[..]));
        assert_eq!(block.line(4), Some(&b"four"[..]));
        assert_eq!((block.line(2), block.line(200)), (None, None));
    }

    /// A block that was written by other means than ours; those of version 1 are read for ever.
    #[test]
    fn blocks_of_version_1_are_read() {
        let octets = include_bytes!("../../../../fuzz/corpus/cache_values/block");
        let block = Block::decode(octets).unwrap();
        assert_eq!((block.asked(), block.there()), (0b11111, 0b10010));
        assert_eq!(block.covered(UnixTime(1_767_225_600), 1), 0b111);
        let lines = [
            "one\tme\td\t<1@t.example>\t\t9\t1",
            "four\tme\td\t<4@t.example>\t\t9\t1",
        ];
        assert_eq!(shown(&block), [(1, lines[0].into()), (4, lines[1].into())]);
        assert_eq!(block.encode(), octets);
    }

    proptest! {
        /// Against a map from places to lines.
        #[test]
        fn prop_a_block_is_what_was_told(
            tellings in prop::collection::vec(
                (any::<u128>(), prop::collection::btree_map(0..128_u8, "[a-z]{0,9}", 0..20)), 0..6),
        ) {
            let (mut block, mut model, mut asked) = (Block::default(), BTreeMap::new(), 0);
            for (places, lines) in &tellings {
                block = block.told(*places, lines.iter().map(|(at, line)| (*at, line.as_bytes())), UnixTime(1));
                model.retain(|place: &u8, _| places >> place & 1 == 0);
                model.extend(lines.iter().filter(|(at, _)| places >> **at & 1 == 1)
                    .map(|(at, line)| (*at, line.clone())));
                asked |= places;
                let decoded = Block::decode(&block.encode());
                prop_assert_eq!(decoded.as_ref(), Some(&block));
            }
            prop_assert_eq!(shown(&block), model.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(block.asked(), asked);
        }

        #[test]
        fn prop_any_octets_decode_to_what_is_written_the_same_way(octets in prop::collection::vec(any::<u8>(), 0..90)) {
            if let Some(block) = Block::decode(&octets) {
                prop_assert_eq!(block.encode(), octets);
            }
        }
    }
}
