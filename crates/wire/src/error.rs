//! The crate's errors: one reason type per noun, and `Error`, which is any of them.
//!
//! Every reason is a small `Copy` value that says what is wrong and, where it helps, what would be right; none
//! carries input bytes, so a hostile line never ends up in a log through here.

use thiserror::Error as ThisError;

use crate::article::Known;

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
    /// A date is malformed.
    #[error(transparent)]
    Date(#[from] DateError),
    /// A number or range of numbers is malformed.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// A wildmat is malformed.
    #[error(transparent)]
    Wildmat(#[from] WildmatError),
    /// A path is malformed.
    #[error(transparent)]
    Path(#[from] PathError),
    /// An overview line is malformed.
    #[error(transparent)]
    Overview(#[from] OverviewError),
    /// A batch is damaged.
    #[error(transparent)]
    Batch(#[from] BatchDamage),
    /// An article may not be relayed.
    #[error(transparent)]
    Article(#[from] ArticleFault),
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
    #[error("token must be NAME:OFFSET:CYCLE, as in C0:24da800:1e")]
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
    /// More octets than its [`HeaderLimits`](crate::article::HeaderLimits).
    #[error("header block is too large: its limit was met at octet {at}")]
    TooLarge {
        /// Where the limit was met.
        at: u32,
    },
    /// More fields than its [`HeaderLimits`](crate::article::HeaderLimits).
    #[error("too many header fields: the first beyond the limit is at octet {at}")]
    TooManyFields {
        /// The first one too many.
        at: u32,
    },
}

/// Why a text is not a date (RFC 5322 section 3.3, RFC 3977 section 7.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum DateError {
    /// Nothing but blanks and comments.
    #[error("date is empty")]
    Empty,
    /// Not a day of the week followed by a comma.
    #[error("date begins with something that is not a day of the week and a comma")]
    Weekday,
    /// No day of the month, or an NNTP date that is not 6 or 8 digits.
    #[error("no day in date")]
    Day,
    /// No month name.
    #[error("no month in date")]
    Month,
    /// No year, or one before 1900.
    #[error("no year in date, or one before 1900")]
    Year,
    /// No time of day.
    #[error("no time of day in date")]
    Time,
    /// No zone, or not a sign and four digits.
    #[error("no zone in date, or a malformed one")]
    Zone,
    /// A comment is not closed.
    #[error("comment in date is not closed")]
    Comment,
    /// Something follows the date.
    #[error("something follows the date")]
    Trailing,
    /// The calendar has no such moment.
    #[error("the calendar has no such moment")]
    Range,
}

/// Why an argument is not a number or a range of numbers (RFC 3977 section 9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum RangeError {
    /// Not `n`, `n-` or `n-m`.
    #[error("not an article number or range: n, n- or n-m is needed")]
    Form,
    /// More than 16 digits.
    #[error("article number has more than 16 digits")]
    TooLarge,
}

/// Why a text is not a wildmat (RFC 3977 section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum WildmatError {
    /// A pattern is empty.
    #[error("wildmat has an empty pattern: take a comma away, or write * for everything")]
    Empty,
    /// A `[` without its `]`.
    #[error("character class in wildmat is not closed: add ]")]
    Class,
    /// A backslash with nothing behind it.
    #[error("backslash at the end of wildmat: add the character that it is to quote")]
    Backslash,
    /// Not UTF-8.
    #[error("wildmat is not UTF-8")]
    NotUtf8,
    /// More patterns than the limit.
    #[error("wildmat has too many patterns: at most 1000")]
    TooMany,
}

/// Why a text is not a path (RFC 5536 section 3.1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum PathError {
    /// Nothing but blanks.
    #[error("path is empty")]
    Empty,
    /// A space inside an entry.
    #[error("path has a space inside an entry")]
    Space,
    /// It begins or ends with `!`.
    #[error("path has nothing in front of its first or behind its last '!'")]
    Incomplete,
}

/// Why a text says nobody an article can be from (RFC 5536 section 3.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum FromError {
    /// An angle bracket without its partner.
    #[error("angle brackets do not come in pairs")]
    Bracket,
}

/// Why a text is no list of mailboxes (RFC 5322 section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum MailboxError {
    /// Nothing where a mailbox should be.
    #[error("no mailbox where one should be, as in Ada <ada@host.example>")]
    Nobody,
    /// No `@` where an address should have it.
    #[error("no address of the form name@host.example")]
    NoAt,
    /// One half of an address is empty, or has two dots in a row, or something no address has.
    #[error("malformed address")]
    Address,
    /// `<` without its `>`.
    #[error("an address in < and > does not end with >")]
    Bracket,
    /// A quoted string, a comment or an address literal without its end.
    #[error("a quoted string or a comment is not closed")]
    Unclosed,
    /// Something between two mailboxes other than a comma.
    #[error("something stands behind an address that does not belong there")]
    Stray,
    /// A control character, or an octet above 127 inside an address.
    #[error("an octet that may not stand there")]
    Octet,
}

/// Why a text is not an overview line (RFC 3977 section 8.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum OverviewError {
    /// Less than seven fields.
    #[error("overview line has less than seven fields")]
    Fields,
    /// The octet or line count is not a number.
    #[error("octet or line count of overview line is not a number")]
    Number,
}

/// What is wrong with a part of a batch (RFC 5537 section 8.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum BatchDamage {
    /// No `#! rnews` line where one must be.
    #[error("no \"#! rnews\" line where one must be")]
    NoHeader,
    /// Another kind of batch, such as a compressed one.
    #[error("another kind of batch, perhaps a compressed one: unpack it first")]
    Kind,
    /// The count is not a number, zero, or does not lead to the next header.
    #[error("article length is no number, zero, or does not lead to the next article")]
    Count,
    /// The article is larger than the reader's limit.
    #[error("article is larger than the limit")]
    TooLarge,
    /// The batch ends inside an article.
    #[error("batch ends in the middle of an article")]
    Truncated,
}

/// Why an article's syntax keeps a relaying agent from taking it (RFC 5536 section 3.1, RFC 5537 section 3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ThisError)]
#[non_exhaustive]
pub enum ArticleFault {
    /// The header block cannot be taken apart.
    #[error(transparent)]
    Header(#[from] HeaderFault),
    /// The octets do not end with a terminator.
    #[error("article does not end with CRLF . CRLF")]
    NotTerminated,
    /// A NUL octet.
    #[error("NUL octet in article")]
    Nul,
    /// A carriage return that no line feed follows.
    #[error("carriage return without line feed in article")]
    BareCr,
    /// A line feed that no carriage return precedes.
    #[error("line feed without carriage return in article")]
    BareLf,
    /// A mandatory field is not there.
    #[error("missing {0} header field")]
    Missing(Known),
    /// A field that may be there once is there more often.
    #[error("more than one {0} header field")]
    Doubled(Known),
    /// A field that must say something is blank.
    #[error("empty {0} header field")]
    Blank(Known),
    /// The message-id is malformed.
    #[error("bad {field} header field: {why}")]
    MessageId {
        /// Message-ID or Supersedes.
        field: Known,
        /// What is wrong.
        why: MessageIdError,
    },
    /// No newsgroup name is well-formed; this is what is wrong with the first.
    #[error("bad Newsgroups header field: {0}")]
    Newsgroups(GroupNameError),
    /// A date cannot be read.
    #[error("bad {field} header field: {why}")]
    Date {
        /// Date or Injection-Date.
        field: Known,
        /// What is wrong.
        why: DateError,
    },
    /// The path is malformed.
    #[error("bad Path header field: {0}")]
    Path(PathError),
    /// From is malformed.
    #[error("bad From header field: {0}")]
    From(FromError),
    /// The first word of Control is no verb (RFC 5536 section 3.2.3).
    #[error("bad Control header field: it does not begin with a verb")]
    Control,
    /// Control and Supersedes in one article (RFC 5536 section 3.2.3).
    #[error("both Control and Supersedes header fields")]
    ControlAndSupersedes,
}
