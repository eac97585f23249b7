//! Mails on their way out: a queue in the spool that outlives power cuts, and what it is emptied by.
//!
//! A mail that was taken ([`MailQueue`] as a `MailDrop`) is sent until that has worked once, or it is refused for good and kept for the
//! administrator: never forgotten, perhaps sent twice where the machine stops between the two.  Sending is done by one thread of the caller's ([`MailQueue::run`]),
//! with longer and longer pauses while it fails.  Knows nothing of articles: what a mail says is its maker's.
#![deny(missing_docs)]

mod deliver;
mod format;
pub mod fuzz;
mod queue;
mod smtp;

pub use deliver::{Deliver, Program, Undelivered, deliver_by};
pub use format::FILE_OCTETS_MAX;
pub use queue::{MailQueue, Pace, REFUSED_FOLDER, SENT_KEPT_MAX, waiting_in};
pub use smtp::{ANSWERS_OCTETS_MAX, Smtp};

/// The directory of the queue of mails to moderators in a spool.
pub const FOLDER: &str = "mail";

/// That of those about control messages, which strangers cause: a queue of its own, so that no moderator's waits behind one.
pub const NOTICES_FOLDER: &str = "notices";
