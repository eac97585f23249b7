//! The header fields this project knows by name, and a set of them.
//!
//! The lookup is one probe of a table made at compile time: a field's name is compared with at most one known name,
//! case-insensitively (RFC 5322 section 1.2.2).  What a field means is not decided here.

use std::fmt;

macro_rules! known {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// A header field known by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Known {
            $($(#[$doc])* $variant,)*
        }

        impl Known {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The names, in the same order: a table, because a `match` becomes an indirect jump on the hot path.
            const NAMES: &'static [&'static str] = &[$($name,)*];
        }
    };
}

known! {
    /// When the article was written (RFC 5536 section 3.1.1); mandatory.
    Date "Date",
    /// Who wrote it (section 3.1.2); mandatory.
    From "From",
    /// Its unique name (section 3.1.3); mandatory.
    MessageId "Message-ID",
    /// Where it is posted (section 3.1.4); mandatory.
    Newsgroups "Newsgroups",
    /// Which servers it passed (section 3.1.5); mandatory.
    Path "Path",
    /// What it is about (section 3.1.6); mandatory.
    Subject "Subject",
    /// Who let it into a moderated group (section 3.2.1).
    Approved "Approved",
    /// Wishes about archiving (section 3.2.2).
    Archive "Archive",
    /// A control message's verb and arguments (section 3.2.3).
    Control "Control",
    /// How far it should spread (section 3.2.4).
    Distribution "Distribution",
    /// When it may go (section 3.2.5).
    Expires "Expires",
    /// Where answers go (section 3.2.6).
    FollowupTo "Followup-To",
    /// When it was injected (section 3.2.7).
    InjectionDate "Injection-Date",
    /// Who injected it (section 3.2.8).
    InjectionInfo "Injection-Info",
    /// The author's organization (section 3.2.9).
    Organization "Organization",
    /// The articles it answers (section 3.2.10).
    References "References",
    /// A short summary (section 3.2.11).
    Summary "Summary",
    /// The article it replaces (section 3.2.12).
    Supersedes "Supersedes",
    /// The program that wrote it (section 3.2.13).
    UserAgent "User-Agent",
    /// Groups and numbers on one server (section 3.2.14).
    Xref "Xref",
    /// Number of body lines (section 3.3.1, obsolete).
    Lines "Lines",
    /// Obsolete second form of Control (section 3.3).
    AlsoControl "Also-Control",
    /// Obsolete, B News (section 3.3).
    DateReceived "Date-Received",
    /// Obsolete, B News (section 3.3).
    PostingVersion "Posting-Version",
    /// Obsolete, B News (section 3.3).
    RelayVersion "Relay-Version",
    /// Before Injection-Info (section 3.3).
    NntpPostingHost "NNTP-Posting-Host",
    /// Before Injection-Date (section 3.3).
    NntpPostingDate "NNTP-Posting-Date",
    /// Before Injection-Info (section 3.3).
    XTrace "X-Trace",
    /// Before Injection-Info.
    XComplaintsTo "X-Complaints-To",
    /// Who may cancel it (RFC 8315).
    CancelLock "Cancel-Lock",
    /// Proof that this cancel is allowed (RFC 8315).
    CancelKey "Cancel-Key",
    /// Who sent it, if not the author (RFC 5322 section 3.6.2).
    Sender "Sender",
    /// Where mail to the author goes (RFC 5322 section 3.6.2).
    ReplyTo "Reply-To",
    /// Mail recipients (RFC 5322 section 3.6.3).
    To "To",
    /// More mail recipients (RFC 5322 section 3.6.3).
    Cc "Cc",
    /// The mail it answers (RFC 5322 section 3.6.4).
    InReplyTo "In-Reply-To",
    /// Comments (RFC 5322 section 3.6.5).
    Comments "Comments",
    /// Key words (RFC 5322 section 3.6.5).
    Keywords "Keywords",
    /// RFC 2045 section 4.
    MimeVersion "MIME-Version",
    /// RFC 2045 section 5.
    ContentType "Content-Type",
    /// RFC 2045 section 6.
    ContentTransferEncoding "Content-Transfer-Encoding",
}

/// Slots of the name table.
const SLOTS: usize = 128;
/// Marks an empty slot.
const EMPTY: u8 = u8::MAX;
const TABLE: [u8; SLOTS] = table();

/// Where a name is looked up.  The factors were found by search; `table` fails to compile on a collision.
const fn slot(len: usize, first: u8, last: u8) -> usize {
    let first = first.to_ascii_lowercase() as usize;
    let last = last.to_ascii_lowercase() as usize;
    (len.wrapping_mul(20) + first * 19 + last) % SLOTS
}

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time only")]
const fn table() -> [u8; SLOTS] {
    let mut table = [EMPTY; SLOTS];
    let mut i = 0;
    while i < Known::ALL.len() {
        let name = Known::NAMES[i].as_bytes();
        let at = slot(name.len(), name[0], name[name.len() - 1]);
        assert!(
            table[at] == EMPTY,
            "two known fields share a slot: search for other factors"
        );
        table[at] = i as u8;
        i += 1;
    }
    table
}

impl Known {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The fields every article must have exactly once (RFC 5536 section 3.1).
    pub const MANDATORY: KnownSet = KnownSet::of(&[
        Self::Date,
        Self::From,
        Self::MessageId,
        Self::Newsgroups,
        Self::Path,
        Self::Subject,
    ]);

    /// The usual spelling of the name, without colon.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.get(self as usize).copied().unwrap_or_default()
    }

    /// Finds a field by its name, without colon, in any case.
    #[inline]
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        let (&first, &last) = (name.first()?, name.last()?);
        let number = usize::from(*TABLE.get(slot(name.len(), first, last))?);
        let expected = Self::NAMES.get(number)?.as_bytes();
        // Nearly all articles spell names the usual way, and comparing octets is much cheaper than comparing letters.
        if expected == name || expected.eq_ignore_ascii_case(name) {
            return Self::ALL.get(number).copied();
        }
        None
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of known fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KnownSet(u64);

const _: () = assert!(Known::COUNT <= u64::BITS as usize);

impl KnownSet {
    /// None.
    pub const NONE: Self = Self(0);

    /// These.
    #[must_use]
    pub const fn of(fields: &[Known]) -> Self {
        let mut bits = 0;
        let mut rest = fields;
        while let [first, tail @ ..] = rest {
            bits |= 1 << *first as u8;
            rest = tail;
        }
        Self(bits)
    }

    /// Adds one.
    pub const fn insert(&mut self, field: Known) {
        self.0 |= 1 << field as u8;
    }

    /// Whether this one is in the set.
    #[must_use]
    pub const fn contains(self, field: Known) -> bool {
        self.0 & (1 << field as u8) != 0
    }

    /// What is in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is here and not there.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The one with the lowest number.
    #[must_use]
    pub fn first(self) -> Option<Known> {
        Known::ALL.get(self.0.trailing_zeros() as usize).copied()
    }

    /// All of them, by number.
    pub fn iter(self) -> impl Iterator<Item = Known> {
        Known::ALL
            .iter()
            .copied()
            .filter(move |&field| self.contains(field))
    }
}

impl fmt::Debug for KnownSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_any_case() {
        for &field in Known::ALL {
            let name = field.name();
            assert_eq!(Known::from_name(name.as_bytes()), Some(field));
            assert_eq!(
                Known::from_name(name.to_ascii_uppercase().as_bytes()),
                Some(field)
            );
            assert_eq!(
                Known::from_name(name.to_ascii_lowercase().as_bytes()),
                Some(field)
            );
        }
    }

    #[test]
    fn other_names_are_not() {
        for name in [
            "",
            "D",
            "Dat",
            "Dates",
            "Data",
            "X-Newsreader",
            "Message_ID",
            "Pith",
        ] {
            assert_eq!(Known::from_name(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn sets() {
        let mut set = KnownSet::of(&[Known::Path, Known::Date]);
        set.insert(Known::Xref);
        assert!(set.contains(Known::Path) && !set.contains(Known::From));
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [Known::Date, Known::Path, Known::Xref]
        );
        assert_eq!(set.without(Known::MANDATORY).first(), Some(Known::Xref));
        assert_eq!(set.and(Known::MANDATORY).first(), Some(Known::Date));
        assert_eq!(KnownSet::NONE.first(), None);
        assert_eq!(format!("{set:?}"), "{Date, Path, Xref}");
    }
}
