//! A history page: 1 KiB of entries sorted by hash, so small because a look-up copies and checks one.
//!
//! ```text
//! 0..8     frame: checksum, length 1016
//! 8..10    entries, 1..=22
//! 10..12   zero
//! 12..16   number of the page
//! 16..984  entries of 44 octets: hash 16, token 24 (zeros: none), arrival 4 (seconds, up to 2106)
//! 984..    an octet for each entry: 1 when it was withdrawn while its article was there
//! ```
//! Decoding only looks: entries are read where they lie.

use std::cmp::Ordering;

use newsreel_wire::{IdHash, Token, UnixTime};

use super::HistoryEntry;
use crate::cursor::{Bad, array_at};
use crate::narrow::u16_of;
use crate::sealed::frame::{self, FRAME_HEADER};

/// A page in the file.
pub(crate) const PAGE_OCTETS: usize = 1024;
const ENTRY_OCTETS: usize = 16 + 24 + 4;
const ENTRIES_AT: usize = FRAME_HEADER + 8;
/// Entries of a full page.
pub(crate) const PAGE_ENTRIES: usize = (PAGE_OCTETS - ENTRIES_AT) / (ENTRY_OCTETS + 1);
const FLAGS_AT: usize = ENTRIES_AT + PAGE_ENTRIES * ENTRY_OCTETS;

const NO_TOKEN: [u8; 24] = [0; 24];

/// An entry as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) hash: IdHash,
    pub(crate) token: [u8; 24],
    pub(crate) arrival: u32,
    /// The token is not offered any more, but it says how long this entry must hide an older one.
    pub(crate) is_withdrawn: bool,
}

impl Stored {
    pub(crate) fn new(hash: IdHash, entry: &HistoryEntry) -> Self {
        Self {
            hash,
            token: entry.token.map_or(NO_TOKEN, |token| *token.as_bytes()),
            arrival: u32::try_from(entry.arrival.0).unwrap_or(u32::MAX),
            is_withdrawn: false,
        }
    }

    /// The entry as the outside sees it, dead or alive.
    pub(crate) fn entry(&self) -> HistoryEntry {
        HistoryEntry {
            token: self.token().filter(|_| !self.is_withdrawn),
            arrival: UnixTime(u64::from(self.arrival)),
        }
    }

    pub(crate) fn token(&self) -> Option<Token> {
        (self.token != NO_TOKEN).then(|| Token::from_bytes(self.token))
    }

    /// What buckets are sorted by.
    pub(crate) fn key(&self) -> (u64, u64) {
        key(&self.hash)
    }
}

/// What buckets are sorted by.
pub(crate) fn key(hash: &IdHash) -> (u64, u64) {
    (hash.prefix(), hash.suffix())
}

/// A page being filled.
#[derive(Debug)]
pub(crate) struct PageBuilder {
    octets: Box<[u8; PAGE_OCTETS]>,
    entries: usize,
}

impl Default for PageBuilder {
    fn default() -> Self {
        Self {
            octets: Box::new([0; PAGE_OCTETS]),
            entries: 0,
        }
    }
}

impl PageBuilder {
    pub(crate) const fn is_full(&self) -> bool {
        self.entries == PAGE_ENTRIES
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Appends an entry; the page must not be full.
    pub(crate) fn push(&mut self, stored: &Stored) {
        let at = ENTRIES_AT + self.entries * ENTRY_OCTETS;
        let place = &mut self.octets[at..at + ENTRY_OCTETS];
        place[..16].copy_from_slice(stored.hash.as_bytes());
        place[16..40].copy_from_slice(&stored.token);
        place[40..].copy_from_slice(&stored.arrival.to_le_bytes());
        self.octets[FLAGS_AT + self.entries] = u8::from(stored.is_withdrawn);
        self.entries += 1;
    }

    /// The finished page for this place; it must be [cleared](Self::clear) before it is filled again.
    pub(crate) fn seal(&mut self, run: u64, offset: u64, number: u32) -> &[u8; PAGE_OCTETS] {
        let count = u16_of(self.entries);
        self.octets[8..10].copy_from_slice(&count.to_le_bytes());
        self.octets[12..16].copy_from_slice(&number.to_le_bytes());
        let header = frame::header(run, offset, &[&self.octets[FRAME_HEADER..]]);
        self.octets[..FRAME_HEADER].copy_from_slice(&header);
        &self.octets
    }

    pub(crate) fn clear(&mut self) {
        self.octets.fill(0);
        self.entries = 0;
    }
}

/// A page that was read and checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page<'a> {
    octets: &'a [u8],
    entries: usize,
}

impl<'a> Page<'a> {
    /// A page that [`Page::decode`] found to have so many entries.
    pub(crate) const fn checked(octets: &'a [u8; PAGE_OCTETS], entries: usize) -> Self {
        Self { octets, entries }
    }

    /// Checks a page read from its place.
    pub(crate) fn decode(
        octets: &'a [u8],
        run: u64,
        offset: u64,
        number: u32,
    ) -> Result<Self, Bad> {
        let payload = frame::payload(run, offset, octets)?;
        let entries = usize::from(u16::from_le_bytes(array_at(payload, 0)));
        let is_whole = payload.len() == PAGE_OCTETS - FRAME_HEADER;
        let says = u32::from_le_bytes(array_at(payload, 4));
        if !is_whole || entries == 0 || entries > PAGE_ENTRIES || says != number {
            return Err(Bad("a page's head contradicts its place"));
        }
        Ok(Self { octets, entries })
    }

    pub(crate) const fn len(&self) -> usize {
        self.entries
    }

    /// The entry at `at < len()`.
    pub(crate) fn get(&self, at: usize) -> Stored {
        let flags = array_at::<1>(self.octets, FLAGS_AT + at);
        let at = ENTRIES_AT + at * ENTRY_OCTETS;
        Stored {
            is_withdrawn: flags == [1],
            hash: IdHash(array_at(self.octets, at)),
            token: array_at(self.octets, at + 16),
            arrival: u32::from_le_bytes(array_at(self.octets, at + 40)),
        }
    }

    fn key(&self, at: usize) -> (u64, u64) {
        let at = ENTRIES_AT + at * ENTRY_OCTETS;
        key(&IdHash(array_at(self.octets, at)))
    }

    /// The entry with this hash.
    pub(crate) fn find(&self, hash: &IdHash) -> Option<Stored> {
        let wanted = key(hash);
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.key(middle).cmp(&wanted) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(self.get(middle)),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(number: u64) -> Stored {
        let mut hash = [0; 16];
        hash[..8].copy_from_slice(&(number << 32).to_le_bytes());
        Stored {
            hash: IdHash(hash),
            token: [number as u8; 24],
            arrival: number as u32,
            is_withdrawn: number.is_multiple_of(3),
        }
    }

    #[test]
    fn what_is_in_a_page_is_found() {
        assert_eq!(PAGE_ENTRIES, 22);
        let mut builder = PageBuilder::default();
        (1..=22).for_each(|number| builder.push(&stored(number * 2)));
        assert!(builder.is_full());
        let octets = *builder.seal(3, 8192, 1);
        let page = Page::decode(&octets, 3, 8192, 1).unwrap();
        for number in 0..50 {
            let found = page.find(&stored(number).hash);
            let expect = number > 1 && number % 2 == 0 && number <= 44;
            assert_eq!(found, expect.then(|| stored(number)), "{number}");
        }
        assert!(Page::decode(&octets, 3, 8192, 2).is_err(), "another page");
        assert!(Page::decode(&octets[..1023], 3, 8192, 1).is_err());
    }

    #[test]
    fn an_entry_without_token_stays_one() {
        let entry = HistoryEntry {
            token: None,
            arrival: UnixTime(u64::MAX),
        };
        let stored = Stored::new(IdHash([1; 16]), &entry);
        assert_eq!(stored.entry().token, None);
        assert_eq!(stored.entry().arrival, UnixTime(u64::from(u32::MAX)));
    }
}
