//! An overview block: some rows of one group, their columns plain and their texts apart.
//!
//! Columns answer ARTICLE, STAT, LISTGROUP, NEWNEWS and liveness without touching a text.  Layout:
//! `docs/formats/overview-pack.md`.  A block that was decoded is consistent: every accessor stays inside it.

use bytes::Bytes;
use newsreel_wire::{ArticleNumber, GroupId, Token, UnixTime};

use super::Column;
use crate::cursor::{Bad, Cursor, array_at};
use crate::liveness::{FactsList, count_in};
use crate::narrow::u32_of;

/// The fixed part of a block's columns.
const HEAD_OCTETS: usize = 32;
/// Octets of a row in the fixed columns: number 4, end of id 4, end of text 4, arrival 4, flags 2, token 24.
const ROW_OCTETS: usize = 4 + 4 + 4 + 4 + 2 + 24;
/// The largest text a block may claim, so that no damage makes us allocate without bound.
const TEXT_OCTETS_MAX: u32 = 64 << 20;

/// The stored codes of a [`Codec`]; 0 and 1 were lines without numbers, before there was a release.
const RAW: u8 = 2;
const ZSTD: u8 = 3;

/// How a block's text is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Raw,
    Zstd,
}

/// A row on its way into a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) number: u64,
    pub(crate) token: Token,
    pub(crate) arrival: u32,
    pub(crate) flags: u16,
    pub(crate) id: &'a [u8],
    /// Ready to be sent: number, TAB, fields, CRLF.
    pub(crate) line: &'a [u8],
}

/// A block being filled.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    pub(crate) group: u32,
    pub(crate) rows: u32,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) arrival_max: u32,
    pub(crate) buffers: FactsList,
    numbers: Vec<u8>,
    id_ends: Vec<u8>,
    text_ends: Vec<u8>,
    arrivals: Vec<u8>,
    flags: Vec<u8>,
    tokens: Vec<u8>,
    ids: Vec<u8>,
    text: Vec<u8>,
}

impl BlockBuilder {
    /// Empties it for rows of this group.
    pub(crate) fn start(&mut self, group: GroupId) {
        self.group = group.0;
        self.rows = 0;
        self.arrival_max = 0;
        self.buffers.clear();
        for column in [
            &mut self.numbers,
            &mut self.id_ends,
            &mut self.text_ends,
            &mut self.arrivals,
            &mut self.flags,
            &mut self.tokens,
            &mut self.ids,
            &mut self.text,
        ] {
            column.clear();
        }
    }

    /// Whether this row belongs into the next block.
    pub(crate) fn is_full_for(&self, row: &Row<'_>, rows_max: u32, text_max: u32) -> bool {
        self.rows > 0
            && (self.rows >= rows_max
                || self.text.len() + row.line.len() > text_max as usize
                || row.number - self.first > u64::from(u32::MAX))
    }

    /// Adds a row; numbers must rise.
    pub(crate) fn push(&mut self, row: &Row<'_>) {
        if self.rows == 0 {
            self.first = row.number;
        }
        let delta = u32_of(row.number - self.first);
        self.numbers.extend_from_slice(&delta.to_le_bytes());
        self.ids.extend_from_slice(row.id);
        self.id_ends
            .extend_from_slice(&u32_of(self.ids.len()).to_le_bytes());
        self.text.extend_from_slice(row.line);
        self.text_ends
            .extend_from_slice(&u32_of(self.text.len()).to_le_bytes());
        self.arrivals.extend_from_slice(&row.arrival.to_le_bytes());
        self.flags.extend_from_slice(&row.flags.to_le_bytes());
        self.tokens.extend_from_slice(row.token.as_bytes());
        count_in(&mut self.buffers, &row.token);
        self.arrival_max = self.arrival_max.max(row.arrival);
        self.last = row.number;
        self.rows += 1;
    }

    /// The texts, one behind the other.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The head of the columns when the text is stored like this.
    pub(crate) fn head(&self, codec: Codec) -> [u8; HEAD_OCTETS] {
        let mut head = [0; HEAD_OCTETS];
        head[..4].copy_from_slice(&self.group.to_le_bytes());
        head[4..8].copy_from_slice(&self.rows.to_le_bytes());
        head[8..16].copy_from_slice(&self.first.to_le_bytes());
        head[16..20].copy_from_slice(&u32_of(self.text.len()).to_le_bytes());
        head[20..24].copy_from_slice(&u32_of(self.ids.len()).to_le_bytes());
        head[24] = match codec {
            Codec::Raw => RAW,
            Codec::Zstd => ZSTD,
        };
        head
    }

    /// The columns behind the head, in their order.
    pub(crate) fn columns(&self) -> [&[u8]; 7] {
        [
            &self.numbers,
            &self.id_ends,
            &self.text_ends,
            &self.arrivals,
            &self.flags,
            &self.tokens,
            &self.ids,
        ]
    }
}

/// Columns that were read and checked.
#[derive(Debug)]
pub(crate) struct Columns {
    octets: Bytes,
    rows: usize,
    first: u64,
    text_octets: u32,
    codec: Codec,
}

impl Columns {
    /// Checks columns for internal consistency.
    pub(crate) fn decode(octets: Bytes) -> Result<Self, Bad> {
        let mut cursor = Cursor::new(&octets);
        cursor.u32()?;
        let rows = cursor.u32()? as usize;
        let first = cursor.u64()?;
        let text_octets = cursor.u32()?;
        let ids_len = cursor.u32()? as usize;
        let codec = match cursor.u8()? {
            RAW => Codec::Raw,
            ZSTD => Codec::Zstd,
            _ => return Err(Bad("a block's text is stored in an unknown way")),
        };
        let whole = rows
            .checked_mul(ROW_OCTETS)
            .and_then(|fixed| fixed.checked_add(HEAD_OCTETS + ids_len));
        if whole != Some(octets.len()) || rows == 0 || text_octets > TEXT_OCTETS_MAX {
            return Err(Bad(
                "a block's columns do not have the length its head says",
            ));
        }
        let columns = Self {
            rows,
            first,
            text_octets,
            codec,
            octets,
        };
        columns.check(ids_len)?;
        Ok(columns)
    }

    /// Numbers must rise, ends must not fall nor leave their column.
    fn check(&self, ids_len: usize) -> Result<(), Bad> {
        let ends = |column: usize| self.column(column).map(u32::from_le_bytes);
        let numbers_rise = self
            .column(0)
            .map(u32::from_le_bytes)
            .is_sorted_by(|a, b| a < b);
        let starts_at_first = self.delta(0) == 0;
        let end_is_sound = self.first.checked_add(u64::from(u32::MAX)).is_some();
        let ids = ends(1).is_sorted() && self.end(1, self.rows) == ids_len;
        let texts = ends(2).is_sorted() && self.end(2, self.rows) == self.text_octets as usize;
        if numbers_rise && starts_at_first && end_is_sound && ids && texts {
            return Ok(());
        }
        Err(Bad("a block's columns contradict each other"))
    }

    /// One of the first four columns, which are of four octets.
    fn column(&self, nth: usize) -> impl Iterator<Item = [u8; 4]> {
        let at = HEAD_OCTETS + nth * 4 * self.rows;
        let octets = self.octets.get(at..at + 4 * self.rows).unwrap_or_default();
        octets.as_chunks::<4>().0.iter().copied()
    }

    fn delta(&self, row: usize) -> u32 {
        u32::from_le_bytes(array_at(&self.octets, HEAD_OCTETS + 4 * row))
    }

    /// Where row `row` begins in the column whose ends are column `nth`: the end of the row before.
    fn end(&self, nth: usize, row: usize) -> usize {
        let Some(before) = row.checked_sub(1) else {
            return 0;
        };
        let at = HEAD_OCTETS + nth * 4 * self.rows + 4 * before;
        u32::from_le_bytes(array_at(&self.octets, at)) as usize
    }

    /// The group the block is of.
    pub(crate) fn group(&self) -> u32 {
        u32::from_le_bytes(array_at(&self.octets, 0))
    }

    pub(crate) const fn len(&self) -> usize {
        self.rows
    }

    pub(crate) const fn codec(&self) -> Codec {
        self.codec
    }

    /// Octets of the text when it is not compressed.
    pub(crate) const fn text_octets(&self) -> usize {
        self.text_octets as usize
    }

    /// Octets in memory.
    pub(crate) fn octets(&self) -> &[u8] {
        &self.octets
    }

    pub(crate) fn number(&self, row: usize) -> u64 {
        self.first + u64::from(self.delta(row))
    }

    /// Appends the numbers of rows `from..until`.
    pub(crate) fn extend_numbers(&self, from: usize, until: usize, out: &mut Vec<ArticleNumber>) {
        let at = HEAD_OCTETS + 4 * from;
        let octets = self
            .octets
            .get(at..HEAD_OCTETS + 4 * until)
            .unwrap_or_default();
        let deltas = octets.as_chunks::<4>().0.iter();
        out.extend(deltas.map(|d| ArticleNumber(self.first + u64::from(u32::from_le_bytes(*d)))));
    }

    /// The first row with a number of at least this.
    pub(crate) fn position(&self, number: u64) -> usize {
        let wanted = number.saturating_sub(self.first);
        let guess = usize::try_from(wanted).unwrap_or(usize::MAX);
        if guess < self.rows && u64::from(self.delta(guess)) == wanted {
            return guess;
        }
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = usize::midpoint(low, high);
            if u64::from(self.delta(middle)) < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    pub(crate) fn arrival(&self, row: usize) -> u32 {
        u32::from_le_bytes(array_at(
            &self.octets,
            HEAD_OCTETS + 12 * self.rows + 4 * row,
        ))
    }

    pub(crate) fn flags(&self, row: usize) -> u16 {
        u16::from_le_bytes(array_at(
            &self.octets,
            HEAD_OCTETS + 16 * self.rows + 2 * row,
        ))
    }

    pub(crate) fn token(&self, row: usize) -> Token {
        Token::from_bytes(array_at(
            &self.octets,
            HEAD_OCTETS + 18 * self.rows + 24 * row,
        ))
    }

    pub(crate) fn id(&self, row: usize) -> &[u8] {
        let ids = HEAD_OCTETS + ROW_OCTETS * self.rows;
        let range = ids + self.end(1, row)..ids + self.end(1, row + 1);
        self.octets.get(range).unwrap_or_default()
    }

    /// The lines of rows `from..until` in the block's text.
    pub(crate) fn lines<'a>(&self, from: usize, until: usize, text: &'a [u8]) -> &'a [u8] {
        text.get(self.end(2, from)..self.end(2, until))
            .unwrap_or_default()
    }

    /// How many of the rows from `from` have lines of `octets` or more; one short of that is not enough.
    pub(crate) fn rows_with(&self, from: usize, octets: usize) -> usize {
        let wanted = self.end(2, from).saturating_add(octets);
        let (mut low, mut high) = (from, self.rows);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.end(2, middle + 1) < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low + 1).min(self.rows) - from
    }

    /// A row without its text.
    pub(crate) fn without_text(&self, row: usize) -> Column {
        Column {
            number: ArticleNumber(self.number(row)),
            token: self.token(row),
            arrival: UnixTime(u64::from(self.arrival(row))),
            flags: self.flags(row),
        }
    }

    /// A whole row.
    pub(crate) fn row<'a>(&'a self, row: usize, text: &'a [u8]) -> Row<'a> {
        Row {
            number: self.number(row),
            token: self.token(row),
            arrival: self.arrival(row),
            flags: self.flags(row),
            id: self.id(row),
            line: self.lines(row, row + 1, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::liveness::tests::token;

    fn built() -> (Vec<u8>, Vec<u8>) {
        let mut builder = BlockBuilder::default();
        builder.start(GroupId(7));
        for (number, text) in [(100, "one"), (101, ""), (250, "three")] {
            builder.push(&Row {
                number,
                token: token(1, number),
                arrival: number as u32 + 1,
                flags: 3,
                id: format!("<{number}@t.example>").as_bytes(),
                line: text.as_bytes(),
            });
        }
        let mut octets = builder.head(Codec::Raw).to_vec();
        octets.extend(builder.columns().concat());
        (octets, builder.text().to_vec())
    }

    #[test]
    fn rows_come_back_as_they_went_in() {
        let (octets, text) = built();
        let columns = Columns::decode(octets.into()).unwrap();
        let row = columns.row(2, &text);
        assert_eq!((row.number, row.arrival, row.flags), (250, 251, 3));
        assert_eq!((row.id, row.line), (&b"<250@t.example>"[..], &b"three"[..]));
        assert_eq!(row.token, token(1, 250));
        assert_eq!(columns.group(), 7);
        let positions: Vec<usize> = [0, 100, 101, 102, 250, 251]
            .map(|number| columns.position(number))
            .to_vec();
        assert_eq!(positions, [0, 0, 1, 2, 2, 3]);
        assert_eq!(columns.lines(0, 3, &text), b"onethree");
        let rows = [0, 1, 3, 4, 9, 10].map(|octets| columns.rows_with(0, octets));
        assert_eq!(rows, [1, 1, 1, 3, 3, 3], "as few as are enough");
        assert_eq!(columns.rows_with(2, 99), 1);
        let mut numbers = Vec::new();
        columns.extend_numbers(1, 3, &mut numbers);
        assert_eq!(numbers, [ArticleNumber(101), ArticleNumber(250)]);
    }

    proptest! {
        /// A block with wrong octets is refused or consistent; looking at all of it never panics.
        #[test]
        fn prop_damage_never_panics(at in 0_usize..170, octet: u8, cut in 0_usize..170) {
            let (mut octets, text) = built();
            let at = at % octets.len();
            octets[at] = octet;
            octets.truncate(octets.len().max(cut + 1) - cut);
            if let Ok(columns) = Columns::decode(octets.into()) {
                for row in 0..columns.len() {
                    let _ = columns.row(row, &text);
                    prop_assert_eq!(columns.position(columns.number(row)), row);
                }
            }
        }
    }
}
