//! One pass over an article's header block.
//!
//! The input is an article in wire form (CRLF lines, dot-stuffed, terminator at the end).  The pass finds every field's
//! span, keeps a direct slot for the first of each known field, and stops at the first line that is no header line.
//! It allocates only when there are more fields than real articles have.  NUL, bare CR and 8-bit octets inside
//! contents are not looked at here: [`OctetFacts`](super::OctetFacts) has already counted them.

use memchr::memchr;
use smallvec::SmallVec;

use super::known::{Known, KnownSet};
use crate::error::HeaderFault;

/// How large a header block may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderLimits {
    /// Octets, blank line included.
    pub octets: usize,
    /// Fields.
    pub fields: usize,
}

impl HeaderLimits {
    /// What [`Headers::scan`] takes: many times what real articles have.
    pub const USUAL: Self = Self {
        octets: 64 * 1024,
        fields: 1000,
    };

    /// The most that can be asked for: offsets have 32 bits, and fields are counted with 16.
    pub const MOST: Self = Self {
        octets: u32::MAX as usize,
        fields: NO_FIELD as usize,
    };
}

/// Fields kept without allocating; articles of 1993 to 2022 have at most 36 header lines.
const FIELDS_INLINE: usize = 32;

/// No field in this slot.
const NO_FIELD: u16 = u16::MAX;

/// Where one field is, as offsets into the article.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: u32,
    colon: u32,
    end: u32,
}

/// The header block of an article, taken apart.
#[derive(Debug, Clone)]
pub struct Headers<'a> {
    wire: &'a [u8],
    fields: SmallVec<[Span; FIELDS_INLINE]>,
    slots: [u16; Known::COUNT],
    present: KnownSet,
    doubled: KnownSet,
    body_start: u32,
    lines: u32,
}

/// One header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name as written, without colon and without the dot that dot-stuffing may have put before it.
    pub name: &'a [u8],
    /// What follows the colon, folds and all, without the blanks next to the colon and without the last CRLF.
    pub content: &'a [u8],
    /// Offset of the field's first octet in the article.
    pub start: usize,
    /// Offset of `content`'s first octet in the article.
    pub content_start: usize,
    /// Offset after the field's last CRLF.
    pub end: usize,
}

impl<'a> Field<'a> {
    /// The content without blanks and folds at either end.
    #[must_use]
    pub fn trimmed(&self) -> &'a [u8] {
        trim(self.content)
    }

    /// Whether the content has nothing but blanks.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.trimmed().is_empty()
    }

    /// Which known field this is.
    #[must_use]
    pub fn known(&self) -> Option<Known> {
        Known::from_name(self.name)
    }
}

/// Space, TAB, CR or LF: what folding white space is made of.
#[inline]
#[must_use]
pub(crate) const fn is_blank(octet: u8) -> bool {
    matches!(octet, b' ' | b'\t' | b'\r' | b'\n')
}

/// Takes blanks and folds off both ends.
#[inline]
#[must_use]
pub(crate) fn trim(mut content: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = content
        && is_blank(*first)
    {
        content = rest;
    }
    while let [rest @ .., last] = content
        && is_blank(*last)
    {
        content = rest;
    }
    content
}

impl<'a> Headers<'a> {
    /// Takes the header block apart, up to and including the blank line, within the usual limits.
    ///
    /// # Errors
    /// At the first line that is not a header line, and when there is no blank line.
    #[inline]
    pub fn scan(wire: &'a [u8]) -> Result<Self, HeaderFault> {
        Self::scan_within(wire, HeaderLimits::USUAL)
    }

    /// Takes the header block of an article that was taken before apart: whatever the limits are today.
    ///
    /// # Errors
    /// As [`Headers::scan`].
    pub fn scan_stored(wire: &'a [u8]) -> Result<Self, HeaderFault> {
        Self::scan_within(wire, HeaderLimits::MOST)
    }

    /// Takes the header block apart, as long as it keeps to these limits; none is higher than [`HeaderLimits::MOST`].
    ///
    /// # Errors
    /// As [`Headers::scan`].
    pub fn scan_within(wire: &'a [u8], limits: HeaderLimits) -> Result<Self, HeaderFault> {
        let octets_max = limits.octets.min(HeaderLimits::MOST.octets);
        let fields_max = limits.fields.min(HeaderLimits::MOST.fields);
        let mut headers = Self {
            wire,
            fields: SmallVec::new(),
            slots: [NO_FIELD; Known::COUNT],
            present: KnownSet::NONE,
            doubled: KnownSet::NONE,
            body_start: 0,
            lines: 0,
        };
        // Offsets fit in 32 bits because nothing beyond the limit is looked at.
        let block = wire.get(..octets_max).unwrap_or(wire);
        let mut at = 0;
        loop {
            let rest = block.get(at..).unwrap_or_default();
            let Some(lf) = memchr(b'\n', rest) else {
                return Err(if block.len() < wire.len() {
                    HeaderFault::TooLarge { at: at as u32 }
                } else {
                    HeaderFault::NoBlankLine { at: at as u32 }
                });
            };
            let Some([line @ .., b'\r', b'\n']) = rest.get(..=lf) else {
                return Err(HeaderFault::BareLf {
                    at: (at + lf) as u32,
                });
            };
            match line {
                [] => {
                    headers.body_start = (at + 2) as u32;
                    break;
                }
                [b' ' | b'\t', ..] => headers.continue_field(at, line)?,
                [b'.'] => return Err(HeaderFault::NoBlankLine { at: at as u32 }),
                _ if headers.fields.len() == fields_max => {
                    return Err(HeaderFault::TooManyFields { at: at as u32 });
                }
                _ => headers.add_field(at, line)?,
            }
            at += lf + 1;
            headers.lines += 1;
        }
        if headers.fields.is_empty() {
            return Err(HeaderFault::NoFields);
        }
        Ok(headers)
    }

    #[inline]
    fn continue_field(&mut self, at: usize, line: &[u8]) -> Result<(), HeaderFault> {
        let Some(last) = self.fields.last_mut() else {
            return Err(HeaderFault::Continuation { at: at as u32 });
        };
        last.end = (at + line.len() + 2) as u32;
        Ok(())
    }

    #[inline]
    fn add_field(&mut self, at: usize, line: &[u8]) -> Result<(), HeaderFault> {
        let stuffed = usize::from(line.first() == Some(&b'.'));
        let named = line.get(stuffed..).unwrap_or_default();
        let Some(name_len) = find_colon(named) else {
            return Err(HeaderFault::NoColon { at: at as u32 });
        };
        let (name, after) = named.split_at_checked(name_len).unwrap_or_default();
        let known = Known::from_name(name);
        if known.is_none() && !is_name(name) {
            return Err(HeaderFault::Name { at: at as u32 });
        }
        if !matches!(after, [b':', b' ' | b'\t', ..]) {
            return Err(HeaderFault::NoSpaceAfterColon { at: at as u32 });
        }
        let number = self.fields.len();
        self.fields.push(Span {
            start: at as u32,
            colon: (at + stuffed + name_len) as u32,
            end: (at + line.len() + 2) as u32,
        });
        if let Some(known) = known {
            if self.present.contains(known) {
                self.doubled.insert(known);
            } else if let Some(slot) = self.slots.get_mut(known as usize) {
                *slot = number as u16;
                self.present.insert(known);
            }
        }
        Ok(())
    }

    /// The article this was made from.
    #[must_use]
    pub const fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// The first field of this kind.
    #[inline]
    #[must_use]
    pub fn get(&self, known: Known) -> Option<Field<'a>> {
        let number = *self.slots.get(known as usize)?;
        Some(self.field(self.fields.get(usize::from(number))?))
    }

    /// The trimmed content of the first field of this kind.
    #[inline]
    #[must_use]
    pub fn content(&self, known: Known) -> Option<&'a [u8]> {
        self.get(known).map(|field| field.trimmed())
    }

    /// All fields, in the order of the article.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = Field<'a>> + '_ {
        self.fields.iter().map(|span| self.field(span))
    }

    /// The first field of this name, known or not, in any case.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<Field<'a>> {
        match Known::from_name(name) {
            Some(known) => self.get(known),
            None => self
                .fields()
                .find(|field| field.name.eq_ignore_ascii_case(name)),
        }
    }

    fn field(&self, span: &Span) -> Field<'a> {
        let (start, colon, end) = (span.start as usize, span.colon as usize, span.end as usize);
        let stuffed = usize::from(self.wire.get(start) == Some(&b'.'));
        let after = self.wire.get(colon + 1..end - 2).unwrap_or_default();
        let blanks = after
            .iter()
            .take_while(|octet| matches!(octet, b' ' | b'\t'))
            .count();
        Field {
            name: self.wire.get(start + stuffed..colon).unwrap_or_default(),
            content: after.get(blanks..).unwrap_or_default(),
            start,
            content_start: colon + 1 + blanks,
            end,
        }
    }

    /// Known fields that are there at least once.
    #[must_use]
    pub const fn present(&self) -> KnownSet {
        self.present
    }

    /// Known fields that are there more than once.
    #[must_use]
    pub const fn doubled(&self) -> KnownSet {
        self.doubled
    }

    /// Offset of the body's first octet: after the blank line.
    #[must_use]
    pub const fn body_start(&self) -> usize {
        self.body_start as usize
    }

    /// Lines of the header block, blank line not included.
    #[must_use]
    pub const fn lines(&self) -> usize {
        self.lines as usize
    }

    /// The header block, blank line not included.
    #[must_use]
    pub fn block(&self) -> &'a [u8] {
        self.wire
            .get(..self.body_start().saturating_sub(2))
            .unwrap_or_default()
    }

    /// The body in wire form, terminator included.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.wire.get(self.body_start()..).unwrap_or_default()
    }
}

/// A colon in each octet of a word.
const COLONS: u64 = u64::from_le_bytes([b':'; 8]);
/// The lowest bit of each octet of a word.
const LOW_BITS: u64 = u64::from_le_bytes([0x01; 8]);
/// The highest bit of each octet of a word.
const HIGH_BITS: u64 = u64::from_le_bytes([0x80; 8]);

/// Finds the first colon, eight octets at a time: names are too short for `memchr` and too long for a loop over octets.
#[inline]
fn find_colon(line: &[u8]) -> Option<usize> {
    let (words, rest) = line.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        // An octet of `zero_at_colon` that is zero has its high bit set in `found`; false finds come only behind a true one.
        let zero_at_colon = u64::from_le_bytes(*word) ^ COLONS;
        let found = zero_at_colon.wrapping_sub(LOW_BITS) & !zero_at_colon & HIGH_BITS;
        if found != 0 {
            return Some(at * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let colon = rest.iter().position(|&octet| octet == b':')?;
    Some(words.len() * 8 + colon)
}

/// Whether a field may be called this: printable ASCII but colon (RFC 5322 section 3.6.8).
fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|octet| octet.is_ascii_graphic() && *octet != b':')
}
