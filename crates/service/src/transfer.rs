//! Articles on their way in: what a peer sent, and what became of it.

use std::fmt;

use bytes::Bytes;
use newsreel_wire::MessageId;
use newsreel_wire::article::Known;
use smallvec::SmallVec;

use crate::reject::Reject;

/// Message-ids up to this length are kept without an allocation.
pub const OFFERED_INLINE_OCTETS: usize = 72;

/// The command an article came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransferKind {
    /// IHAVE: 235, 436, 437.
    Ihave,
    /// TAKETHIS: 239, 439.
    Takethis,
    /// POST: 240, 441.
    Post,
}

/// The message-id a peer offered an article under: well formed, not yet compared with the article's own.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OfferedId(SmallVec<[u8; OFFERED_INLINE_OCTETS]>);

impl OfferedId {
    /// A message-id that was made here.
    pub(crate) fn made(octets: &[u8]) -> Self {
        Self(SmallVec::from_slice(octets))
    }

    /// The octets, brackets included.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<MessageId<'_>> for OfferedId {
    fn from(id: MessageId<'_>) -> Self {
        Self(SmallVec::from_slice(id.as_bytes()))
    }
}

impl fmt::Display for OfferedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for OfferedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OfferedId({self})")
    }
}

/// One article as it came from the net, framed but not looked into.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// The connection's own number for it; comes back in its [`crate::Completion`].
    pub ticket: u64,
    /// The command it came by.
    pub kind: TransferKind,
    /// The message-id in the command.
    pub offered: OfferedId,
    /// Wire form, dot-stuffed, the terminating `.CRLF` included.  It shares the chunk it was read in: whoever
    /// keeps it longer than the transfer lasts keeps up to a whole chunk.
    pub article: Bytes,
}

/// What became of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Stored and committed: 235, 239, 240; or on its way to a moderator, and that is on disk: 240.
    Accepted,
    /// Another copy of it is stored and committed: 437, 439, 441.
    Duplicate,
    /// Not wanted, now or ever, for a reason in the article or the configuration: 437, 439, 441.
    Rejected(Reject),
    /// The same, because of this header field.
    RejectedField(Reject, FieldName),
    /// The same, in the words of who does not want it, a filter or the server it was sent on to: 437, 439, 441.
    RejectedWith(Reject, &'static str),
    /// Not now, through no fault of the article: 436, 441; for TAKETHIS 400 and close.
    Deferred(Defer),
    /// This server could not keep it: 436, 441; for TAKETHIS 400 and close.  Never 437 or 439.
    Failed,
}

/// Octets of a field's name that a reply has room for; no name that is known has more.
const FIELD_NAME_OCTETS: usize = 30;

/// The name of a header field, for a reply: its beginning, where it is long.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldName {
    octets: [u8; FIELD_NAME_OCTETS],
    len: u8,
}

impl FieldName {
    /// A name that stands in an article; none: it cannot be shown.
    #[must_use]
    pub fn read(name: &[u8]) -> Option<Self> {
        let name = name.get(..FIELD_NAME_OCTETS).unwrap_or(name);
        if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
            return None;
        }
        let mut octets = [0; FIELD_NAME_OCTETS];
        octets
            .iter_mut()
            .zip(name)
            .for_each(|(to, from)| *to = *from);
        let len = u8::try_from(name.len()).ok()?;
        Some(Self { octets, len })
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let octets = self.octets.get(..usize::from(self.len)).unwrap_or_default();
        std::str::from_utf8(octets).unwrap_or_default()
    }
}

impl fmt::Debug for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FieldName").field(&self.as_str()).finish()
    }
}

impl From<Known> for FieldName {
    fn from(field: Known) -> Self {
        Self::read(field.name().as_bytes()).unwrap_or(Self {
            octets: [b'?'; FIELD_NAME_OCTETS],
            len: 1,
        })
    }
}

impl Outcome {
    /// What the log calls it: why, where there is a reason.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::Rejected(why) | Self::RejectedField(why, _) => why.text(),
            Self::RejectedWith(_, why) => why,
            Self::Deferred(why) => why.text(),
            Self::Failed => "failed here",
        }
    }
}

impl From<Reject> for Outcome {
    fn from(why: Reject) -> Self {
        Self::Rejected(why)
    }
}

/// The answer to an offer (CHECK, IHAVE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Offer {
    /// Send it: 238, 335.
    Want,
    /// Had it, or it is not wanted: 438, 435.
    Known,
    /// Offer it again later: 431, 436.
    Later(Defer),
}

/// Why something is put off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Defer {
    /// Another peer is sending it, or its commit is under way.
    UnderWay,
    /// This connection has too many offers open.
    TooManyOffers,
    /// No room: the disk, the log or the buffers are full.
    Full,
    /// It cannot be written: the disk is full or fails.
    Disk,
    /// Accepting is paused by the administrator or by a fault.
    Paused,
    /// The server is stopping.
    Stopping,
    /// A filter cannot judge it.
    Unjudged,
    /// As many posts of its poster wait to be mailed as may.
    MailShare,
    /// It would have to wait for a server elsewhere, and as many posts wait as may.
    QueueFull,
}

impl Defer {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::UnderWay,
        Self::TooManyOffers,
        Self::Full,
        Self::Disk,
        Self::Paused,
        Self::Stopping,
        Self::Unjudged,
        Self::MailShare,
        Self::QueueFull,
    ];

    /// What the peer is told.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::UnderWay => "on its way from elsewhere",
            Self::TooManyOffers => "too many offers open on this connection",
            Self::Full => "no room at present",
            Self::Disk => "the disk here is full or fails, so it may be lost, or sent later",
            Self::Paused => "not accepting articles at present",
            Self::Stopping => "server is stopping",
            Self::Unjudged => "what judges articles is down",
            Self::MailShare => "too many posts of yours wait to be sent to moderators",
            Self::QueueFull => {
                "posting is put off: its server cannot be asked, and the queue is full, see `newsreel cache queue list`"
            }
        }
    }

    /// The metric label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::UnderWay => "under_way",
            Self::TooManyOffers => "too_many_offers",
            Self::Full => "full",
            Self::Disk => "disk",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Unjudged => "unjudged",
            Self::MailShare => "mail_share",
            Self::QueueFull => "queue_full",
        }
    }
}
