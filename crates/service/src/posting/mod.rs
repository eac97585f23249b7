//! Posting: what an injecting agent does with an article before it goes the way of all others (RFC 5537 section 3.5).
//!
//! A proto-article is held to the whole grammar of RFC 5536 ([`check()`]), because its author is still there to mend it;
//! then it gets the fields that only a server may add ([`Proto::inject`]), or is written as a mail to a moderator
//! ([`Proto::mail`]).  The body is never touched, not by an octet.  Everything here is a pure function of the article,
//! the settings and the time it is given, so every service does the same; what groups there are is the service's.

mod check;
mod config;
mod groups;
mod ids;
mod inject;
mod limits;
mod moderators;
mod quoted;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use newsreel_wire::Wildmat;
use newsreel_wire::article::Known;

pub use check::{HEADER_LINE_OCTETS_MAX, Proto, check, own_id};
pub use config::{ModerationConfig, PostingClients, PostingConfig};
pub use groups::destination;
pub use ids::{IdMaker, mail_id};
pub use inject::{Account, Locks, Site, account};
pub use limits::{KEYS_MAX as LIMITED_KEYS_MAX, PostLimits};
pub use moderators::{Moderators, address_of};

use crate::cancel_lock::Owner;
use crate::reject::Reject;
use crate::transfer::{Defer, FieldName, OfferedId, Outcome};

/// A mail on its way to a moderator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The message-id of the article in it: the same article handed over again is one mail.
    pub id: OfferedId,
    /// The envelope's sender.
    pub sender: String,
    /// The envelope's recipient.
    pub to: String,
    /// Header block and body, CRLF line ends, not dot-stuffed.
    pub text: Vec<u8>,
}

/// Where mails are put: to moderators, or about control messages.
pub trait MailDrop: Send + Sync + std::fmt::Debug {
    /// What became of a mail with this article, as far as that is remembered.  Waits for nothing.
    fn find(&self, id: &OfferedId) -> Option<Mailed>;

    /// Whether one more mail of whoever posts it would be kept now.  Holds no place for it, and waits for nothing.
    ///
    /// # Errors
    /// What the poster is told.
    fn has_room(&self, poster: Option<Account>) -> Result<(), MailRefused>;

    /// Keeps a mail until it is sent, also over a power cut.  It takes a place of the share of who posts it; nobody's in
    /// particular is the server's own.  Waits for the disk.
    ///
    /// # Errors
    /// What the poster is told: nothing was kept.
    fn submit(&self, mail: &Mail, poster: Option<Account>) -> Result<(), MailRefused>;
}

/// What became of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mailed {
    /// It is just being kept, which may fail yet.
    Coming,
    /// It waits, or was sent.
    Kept,
    /// It was refused for good: nobody has it but the administrator.
    Refused,
}

impl From<Mailed> for Outcome {
    /// What is said of the same article when it is posted again.
    fn from(mailed: Mailed) -> Self {
        match mailed {
            Mailed::Coming => Self::Deferred(Defer::UnderWay),
            Mailed::Kept => Self::Rejected(Reject::MailedBefore),
            Mailed::Refused => Self::Rejected(Reject::MailRefused),
        }
    }
}

/// Why a mail was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailRefused {
    /// It was kept before: it waits, or was sent.
    Again,
    /// Too many are waiting, or the disk has no room.
    Full,
    /// Too many of this poster's are waiting.
    Share,
    /// The disk failed; it was logged.
    Failed,
}

impl From<MailRefused> for Outcome {
    fn from(refused: MailRefused) -> Self {
        match refused {
            MailRefused::Again => Mailed::Kept.into(),
            MailRefused::Full => Self::Deferred(Defer::Full),
            MailRefused::Share => Self::Deferred(Defer::MailShare),
            MailRefused::Failed => Self::Failed,
        }
    }
}

/// Who posts, and what they may: whoever has none of these may not post at all.
///
/// It is made where a connection's rights are decided (its address, later its user) and goes with every post.
#[derive(Debug, Clone, Default)]
pub struct Poster {
    /// The name of a user that proved who they are.
    pub user: Option<Box<str>>,
    /// Groups that may be posted to; none: all of them.
    pub groups: Option<Wildmat>,
    /// Whether articles with an Approved field are taken: the right of a moderator.
    pub may_approve: bool,
}

impl Poster {
    /// Whose the articles are that come from here: the user's, or, without one, this machine's; nobody's in particular
    /// from anywhere else, where the next one at the same address may be another person.
    #[must_use]
    pub fn owner(&self, address: Option<IpAddr>) -> Option<Owner<'_>> {
        match self.user.as_deref() {
            Some(name) => Some(Owner::User(name)),
            None if address.is_some_and(|address| address.is_loopback()) => Some(Owner::Machine),
            None => None,
        }
    }

    /// Whether this group may be posted to.
    #[must_use]
    pub fn may_post_to(&self, group: &str) -> bool {
        self.groups
            .as_ref()
            .is_none_or(|groups| groups.matches(group))
    }
}

/// An article on its way from a poster.
#[derive(Debug, Clone)]
pub struct Post {
    /// The connection's own number for it; comes back in its [`crate::Completion`].
    pub ticket: u64,
    /// Its own message-id if it has a good one, else the one that is made for it.
    pub id: OfferedId,
    /// Who posts it.
    pub poster: Arc<Poster>,
    /// Wire form, dot-stuffed, the terminating `.CRLF` included.
    pub article: Bytes,
}

/// Why a proto-article is refused, and which field is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The reason.
    pub why: Reject,
    /// The field, where the reason alone does not say it.
    pub field: Option<FieldName>,
}

impl Refused {
    fn of(why: Reject, field: Known) -> Self {
        Self {
            why,
            field: Some(field.into()),
        }
    }

    /// Because of a field that has any name.
    fn of_named(why: Reject, name: &[u8]) -> Self {
        Self {
            why,
            field: FieldName::read(name),
        }
    }
}

impl From<Reject> for Refused {
    fn from(why: Reject) -> Self {
        Self { why, field: None }
    }
}

impl From<Refused> for Outcome {
    fn from(refused: Refused) -> Self {
        match refused.field {
            Some(field) => Self::RejectedField(refused.why, field),
            None => Self::Rejected(refused.why),
        }
    }
}
