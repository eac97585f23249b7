//! The crate's errors: one reason type per noun, and `Error`, which is any of them.
//!
//! Every reason is a small `Copy` value that says what is wrong and, where it helps, what would be right; none
//! carries input bytes, so a hostile line never ends up in a log through here.

use thiserror::Error as ThisError;

/// Any error of this crate, for callers that do not need to tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A message-id is malformed.
    #[error(transparent)]
    MessageId(#[from] MessageIdError),
    /// A newsgroup name is malformed.
    #[error(transparent)]
    GroupName(#[from] GroupNameError),
    /// The text form of a token is malformed.
    #[error(transparent)]
    TokenText(#[from] TokenTextError),
    /// A header block cannot be taken apart.
    #[error(transparent)]
    Header(#[from] HeaderFault),
}

/// Why some octets are not a message-id (RFC 3977 section 3.6, RFC 5536 section 3.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum MessageIdError {
    /// Fewer octets than the smallest message-id.
    #[error("message-id is too short: at least 3 octets, as in <1@host.example>")]
    TooShort,
    /// More octets than RFC 3977 allows.
    #[error("message-id is too long: at most 250 octets")]
    TooLong,
    /// Does not begin with `<` and end with `>`.
    #[error("message-id is not enclosed in < and >")]
    Brackets,
    /// An octet inside the brackets is a space, a control, `>` or not ASCII.
    #[error("message-id has an octet that is not printable ASCII, or > before the end")]
    Octet,
    /// No `@` with something on both sides (only asked of an article's own Message-ID field).
    #[error("message-id has no left and right part around an @ (RFC 5536 3.1.3)")]
    NoAt,
}

/// Why some octets are not a newsgroup name (RFC 5536 section 3.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum GroupNameError {
    /// Nothing at all.
    #[error("newsgroup name is empty")]
    Empty,
    /// Longer than any command line could carry.
    #[error("newsgroup name is too long: at most 460 octets")]
    TooLong,
    /// A component is empty: a dot at the start, at the end, or two in a row.
    #[error("newsgroup name has an empty component (a dot at the start, the end, or two together)")]
    EmptyComponent,
    /// An octet that no newsgroup name may have.
    #[error(
        "newsgroup name has a character that is not allowed (space, control, comma, or one of !*?[]\\<>:@/ and the like)"
    )]
    Octet,
    /// Octets above 127 that are not UTF-8.
    #[error("newsgroup name is not UTF-8")]
    NotUtf8,
}

/// Why a text is not the text form of a token (`SD1:24da800:1e`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum TokenTextError {
    /// Not three parts separated by colons.
    #[error("token must be NAME:OFFSET:CYCLE, as in SD1:24da800:1e")]
    Shape,
    /// The buffer name is empty, too long, or has a character it may not have.
    #[error(
        "buffer name in token must be 1 to 15 printable ASCII characters without colon or space"
    )]
    Name,
    /// The offset is not lower-case hexadecimal, not a multiple of 64, or too large.
    #[error("offset in token must be hexadecimal, a multiple of 64 and below 2^44")]
    Offset,
    /// The cycle is not lower-case hexadecimal or too large.
    #[error("cycle in token must be hexadecimal and below 2^26")]
    Cycle,
}

/// Why a header block cannot be taken apart (RFC 5536 section 2.2, RFC 5322 section 2.2).  `at` is an offset into the
/// article.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum HeaderFault {
    /// The block ends without a blank line before the body.
    #[error("no blank line between header fields and body")]
    NoBlankLine {
        /// Where the missing line would be.
        at: u32,
    },
    /// The article begins with the blank line.
    #[error("no header fields at all")]
    NoFields,
    /// A line begins with a blank but no field is open.
    #[error("article begins with a folded line")]
    Continuation {
        /// The line.
        at: u32,
    },
    /// A line has no colon.
    #[error("header line without colon at octet {at}")]
    NoColon {
        /// The line.
        at: u32,
    },
    /// The name is empty or has an octet that names may not have, such as a space before the colon.
    #[error(
        "bad header field name at octet {at}: printable ASCII directly followed by a colon is needed"
    )]
    Name {
        /// The line.
        at: u32,
    },
    /// The colon is not followed by a space.
    #[error("no space after the colon of the header field at octet {at}")]
    NoSpaceAfterColon {
        /// The line.
        at: u32,
    },
    /// A line of the block ends with LF alone.
    #[error("line feed without carriage return in header block at octet {at}")]
    BareLf {
        /// The line feed.
        at: u32,
    },
    /// More octets than [`HEADER_OCTETS_MAX`](crate::article::HEADER_OCTETS_MAX).
    #[error("header block is too large: at most 65536 octets")]
    TooLarge {
        /// Where the limit was met.
        at: u32,
    },
    /// More fields than [`HEADER_FIELDS_MAX`](crate::article::HEADER_FIELDS_MAX).
    #[error("too many header fields: at most 1000")]
    TooManyFields {
        /// The first one too many.
        at: u32,
    },
}
