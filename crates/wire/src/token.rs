//! Tokens: where an article's bytes are, in 24 octets, and the place inside a cyclic buffer.
//!
//! ```text
//! octet  0      method          which storage method understands the rest
//!        1      set             the buffer set the rules chose
//!        2..4   buffer          u16 little-endian, never reused in a spool
//!        4..8   length          u32 little-endian, octets of the article in wire form, terminator included
//!        8..16  position        u64 little-endian, cycle << 38 | offset / 64
//!        16..24 tail            by method
//! ```
//! A token never says whether the article is still there: that is computed from the buffer's marks.  The text
//! form, `SD1:24da800:1e`, names buffer, byte offset and cycle as in Fritchie's paper of 1997.

use std::fmt;

use crate::error::TokenTextError;
use crate::ids::{BufferId, SetId};

/// A token's length on disk and in memory.
pub const TOKEN_OCTETS: usize = 24;

/// Positions count in units of this many octets.
pub const POSITION_UNIT: u64 = 64;

/// The longest name of a buffer.
pub const BUFFER_NAME_OCTETS_MAX: usize = 15;

/// Bits of a position that hold the offset in units.
const OFFSET_BITS: u32 = 38;

/// The largest cycle a position can hold.
pub const CYCLE_MAX: u32 = (1 << (u64::BITS - OFFSET_BITS)) - 1;

/// The largest byte offset a position can hold: a little under 16 TiB.
pub const OFFSET_MAX: u64 = ((1 << OFFSET_BITS) - 1) * POSITION_UNIT;

/// A place inside a buffer, growing monotonically over the buffer's life: cycle first, then offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Position(pub u64);

impl Position {
    /// Before everything.
    pub const ZERO: Self = Self(0);

    /// The place `offset_bytes` into `cycle`.
    ///
    /// # Panics
    /// When the offset is not a multiple of [`POSITION_UNIT`] or either is over its limit: callers lay buffers out
    /// so that this cannot happen; use [`Position::checked`] for numbers from outside.
    #[must_use]
    pub const fn new(cycle: u32, offset_bytes: u64) -> Self {
        match Self::checked(cycle, offset_bytes) {
            Some(position) => position,
            None => panic!(
                "buffer position: cycle or offset over its limit, or offset not a multiple of 64"
            ),
        }
    }

    /// The place `offset_bytes` into `cycle`, if it can be expressed.
    #[must_use]
    pub const fn checked(cycle: u32, offset_bytes: u64) -> Option<Self> {
        if cycle > CYCLE_MAX
            || offset_bytes > OFFSET_MAX
            || !offset_bytes.is_multiple_of(POSITION_UNIT)
        {
            return None;
        }
        Some(Self(
            ((cycle as u64) << OFFSET_BITS) | (offset_bytes / POSITION_UNIT),
        ))
    }

    /// How often the buffer had wrapped.
    #[must_use]
    pub const fn cycle(self) -> u32 {
        (self.0 >> OFFSET_BITS) as u32
    }

    /// The byte offset in the buffer.
    #[must_use]
    pub const fn offset(self) -> u64 {
        (self.0 & ((1 << OFFSET_BITS) - 1)) * POSITION_UNIT
    }

    /// The same offset one cycle earlier, or the very start: with a reserved mark this gives the floor of liveness.
    #[must_use]
    pub const fn one_cycle_before(self) -> Self {
        Self(self.0.saturating_sub(1 << OFFSET_BITS))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{:x}", self.offset(), self.cycle())
    }
}

/// Where an article is stored.  Ordered by its octets, which means nothing but is total.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Token([u8; TOKEN_OCTETS]);

/// A token's fields, to build one or to see all at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TokenParts {
    /// Storage method.
    pub method: u8,
    /// Buffer set.
    pub set: SetId,
    /// Buffer inside the spool.
    pub buffer: BufferId,
    /// Octets of the article in wire form, terminator included.
    pub len: u32,
    /// Place inside the buffer.
    pub position: Position,
    /// Eight octets for the method's own use.
    pub tail: [u8; 8],
}

impl Token {
    /// Packs the fields.
    #[must_use]
    pub const fn new(parts: TokenParts) -> Self {
        let [b0, b1] = parts.buffer.0.to_le_bytes();
        let [l0, l1, l2, l3] = parts.len.to_le_bytes();
        let [p0, p1, p2, p3, p4, p5, p6, p7] = parts.position.0.to_le_bytes();
        let [t0, t1, t2, t3, t4, t5, t6, t7] = parts.tail;
        Self([
            parts.method,
            parts.set.0,
            b0,
            b1,
            l0,
            l1,
            l2,
            l3,
            p0,
            p1,
            p2,
            p3,
            p4,
            p5,
            p6,
            p7,
            t0,
            t1,
            t2,
            t3,
            t4,
            t5,
            t6,
            t7,
        ])
    }

    /// Takes the stored form; any octets are a token, whether they make sense is the method's to say.
    #[must_use]
    pub const fn from_bytes(octets: [u8; TOKEN_OCTETS]) -> Self {
        Self(octets)
    }

    /// The stored form.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; TOKEN_OCTETS] {
        &self.0
    }

    /// Storage method.
    #[must_use]
    pub const fn method(&self) -> u8 {
        self.0[0]
    }

    /// Buffer set.
    #[must_use]
    pub const fn set(&self) -> SetId {
        SetId(self.0[1])
    }

    /// Buffer inside the spool.
    #[must_use]
    pub const fn buffer(&self) -> BufferId {
        BufferId(u16::from_le_bytes([self.0[2], self.0[3]]))
    }

    /// Octets of the article in wire form, terminator included.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "an article's length, not a collection's"
    )]
    pub const fn len(&self) -> u32 {
        u32::from_le_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }

    /// Whether both name one place.  The number of the set may differ: it changes with the configuration.
    #[must_use]
    pub fn same_place(&self, other: &Self) -> bool {
        (self.buffer(), self.position()) == (other.buffer(), other.position())
    }

    /// Place inside the buffer.
    #[must_use]
    pub const fn position(&self) -> Position {
        let t = &self.0;
        Position(u64::from_le_bytes([
            t[8], t[9], t[10], t[11], t[12], t[13], t[14], t[15],
        ]))
    }

    /// The method's own eight octets.
    #[must_use]
    pub const fn tail(&self) -> [u8; 8] {
        let t = &self.0;
        [t[16], t[17], t[18], t[19], t[20], t[21], t[22], t[23]]
    }

    /// All fields.
    #[must_use]
    pub const fn parts(&self) -> TokenParts {
        TokenParts {
            method: self.method(),
            set: self.set(),
            buffer: self.buffer(),
            len: self.len(),
            position: self.position(),
            tail: self.tail(),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Token(method {} set {} buffer {} len {} at {} tail {:x?})",
            self.method(),
            self.set(),
            self.buffer(),
            self.len(),
            self.position(),
            self.tail()
        )
    }
}

/// A token's text form, `NAME:OFFSET:CYCLE` in lower-case hexadecimal: only the config knows which id a name has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenText<'a> {
    /// The buffer's name.
    pub name: &'a str,
    /// The place: byte offset and cycle.
    pub position: Position,
}

impl<'a> TokenText<'a> {
    /// Reads `SD1:24da800:1e`.
    ///
    /// # Errors
    /// When it is not three parts, or one of them is not what it must be.
    pub fn parse(text: &'a str) -> Result<Self, TokenTextError> {
        let mut parts = text.split(':');
        let (Some(name), Some(offset), Some(cycle), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenTextError::Shape);
        };
        if !Self::name_is_valid(name) {
            return Err(TokenTextError::Name);
        }
        let offset = hexadecimal(offset).ok_or(TokenTextError::Offset)?;
        let cycle = hexadecimal(cycle).and_then(|cycle| u32::try_from(cycle).ok());
        let cycle = cycle
            .filter(|&cycle| cycle <= CYCLE_MAX)
            .ok_or(TokenTextError::Cycle)?;
        let position = Position::checked(cycle, offset).ok_or(TokenTextError::Offset)?;
        Ok(Self { name, position })
    }

    /// Byte offset in the buffer.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.position.offset()
    }

    /// How often the buffer had wrapped.
    #[must_use]
    pub const fn cycle(&self) -> u32 {
        self.position.cycle()
    }

    /// Whether a buffer may have this name: 1 to 15 printable ASCII characters, no space, no colon.
    #[must_use]
    pub fn name_is_valid(name: &str) -> bool {
        let octets = name.as_bytes();
        let plain = |octet: &u8| octet.is_ascii_graphic() && *octet != b':';
        !octets.is_empty() && octets.len() <= BUFFER_NAME_OCTETS_MAX && octets.iter().all(plain)
    }
}

impl fmt::Display for TokenText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:x}:{:x}", self.name, self.offset(), self.cycle())
    }
}

/// Hexadecimal without sign, blanks or upper case: one number has one text.
fn hexadecimal(text: &str) -> Option<u64> {
    let canonical = text
        .bytes()
        .all(|octet| matches!(octet, b'0'..=b'9' | b'a'..=b'f'));
    let padded = text.len() > 1 && text.starts_with('0');
    if !canonical || padded {
        return None;
    }
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_form_is_the_papers() {
        let text = TokenText::parse("SD1:24da800:1e").unwrap();
        assert_eq!(
            (text.name, text.offset(), text.cycle()),
            ("SD1", 0x24d_a800, 0x1e)
        );
        assert_eq!(text.to_string(), "SD1:24da800:1e");
    }

    #[test]
    fn text_form_refuses_by_reason() {
        for (text, reason) in [
            ("", TokenTextError::Shape),
            ("SD1:40", TokenTextError::Shape),
            ("SD1:40:1:2", TokenTextError::Shape),
            (":40:1", TokenTextError::Name),
            ("sixteen-letters.:40:1", TokenTextError::Name),
            ("S D:40:1", TokenTextError::Name),
            ("SD1::1", TokenTextError::Offset),
            ("SD1:41:1", TokenTextError::Offset),
            ("SD1:+40:1", TokenTextError::Offset),
            ("SD1:040:1", TokenTextError::Offset),
            ("SD1:100000000000:1", TokenTextError::Offset),
            ("SD1:40:1E", TokenTextError::Cycle),
            ("SD1:40:4000000", TokenTextError::Cycle),
        ] {
            assert_eq!(TokenText::parse(text), Err(reason), "{text}");
        }
    }

    #[test]
    fn token_layout_is_fixed() {
        let token = Token::new(TokenParts {
            method: 1,
            set: SetId(2),
            buffer: BufferId(0x0403),
            len: 0x0807_0605,
            position: Position(0x100f_0e0d_0c0b_0a09),
            tail: [17, 18, 19, 20, 21, 22, 23, 24],
        });
        let expected: Vec<u8> = (1..=24).collect();
        assert_eq!(token.as_bytes().as_slice(), expected.as_slice());
    }

    #[test]
    fn positions_grow_with_cycle_then_offset() {
        assert!(Position::new(0, OFFSET_MAX) < Position::new(1, 0));
        assert!(Position::new(1, 64) < Position::new(1, 128));
        assert_eq!(
            Position::new(3, 640).one_cycle_before(),
            Position::new(2, 640)
        );
        assert_eq!(Position::new(0, 640).one_cycle_before(), Position::ZERO);
        assert_eq!(
            Position::checked(CYCLE_MAX, OFFSET_MAX),
            Some(Position(u64::MAX))
        );
        assert_eq!(Position::checked(CYCLE_MAX + 1, 0), None);
        assert_eq!(Position::checked(0, 63), None);
        assert_eq!(Position::checked(0, OFFSET_MAX + 64), None);
    }

    proptest! {
        #[test]
        fn prop_token_parts_round_trip(octets: [u8; TOKEN_OCTETS]) {
            let token = Token::from_bytes(octets);
            prop_assert_eq!(Token::new(token.parts()), token);
        }

        #[test]
        fn prop_token_text_round_trips(name in "[!-9;-~]{1,15}", position: u64) {
            let text = TokenText { name: &name, position: Position(position) };
            let printed = text.to_string();
            prop_assert_eq!(TokenText::parse(&printed), Ok(text));
            prop_assert_eq!(Position::new(text.cycle(), text.offset()), Position(position));
        }

        #[test]
        fn prop_token_text_never_panics(text in ".{0,40}") {
            if let Ok(parsed) = TokenText::parse(&text) {
                prop_assert_eq!(parsed.to_string(), text);
            }
        }
    }
}
