//! Requests of administrators to the sequencer: groups made, changed, removed; checkpoints; stop.
//!
//! Each is checked and put into the log by the sequencer, in one order with the articles, and
//! answered after its commit.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use newsreel_store::{BatchWrite, NewBuffer, Resizing};
use newsreel_wire::{ArticleNumber, BufferId, IdHash, Token, UnixTime};
use smallvec::SmallVec;

use crate::control::heed::Heeding;
use crate::error::Error;
use crate::moving::sequencing::{Copies, Moving};
use crate::record::{LeftRecord, PendingRecord, WithdrawnRecord};

/// A group to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSpec {
    /// Its name.
    pub name: String,
    /// Status field: `y n m j x` or `=other.group`.
    pub status: String,
    /// The line of LIST NEWSGROUPS.
    pub description: String,
    /// Who made it.
    pub creator: String,
    /// The high mark to go on from (an imported one), or 0.
    pub high: ArticleNumber,
    /// When it was made elsewhere, if it was; otherwise it is made now.
    pub created: Option<UnixTime>,
}

impl GroupSpec {
    /// An ordinary group.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            status: "y".to_owned(),
            description: String::new(),
            creator: "newsreel".to_owned(),
            high: ArticleNumber(0),
            created: None,
        }
    }
}

/// What may be changed of a group; `None` leaves it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupChange {
    /// New status field.
    pub status: Option<String>,
    /// New description.
    pub description: Option<String>,
    /// A higher high mark; a lower one is ignored, numbers are never used again.
    pub high: Option<ArticleNumber>,
}

/// What is asked of the sequencer.
#[derive(Debug)]
pub(crate) enum Request {
    /// Make these groups, all or none.
    AddGroups(Vec<GroupSpec>),
    /// Change these groups, all or none; mostly it is one.
    SetGroups(SmallVec<[(String, GroupChange); 1]>),
    /// Remove a group.
    RemoveGroup { name: String },
    /// Do what a control message with this id asks for, which somebody approved.
    ChangeGroups(Arc<Heeding>, IdHash),
    /// What was due behind the message of this id is done.
    DueIsOver(IdHash),
    /// What was heeded of this hierarchy counts no more.
    ForgetHeeded(Arc<str>),
    /// Offer these articles no more.
    Withdraw {
        articles: Vec<WithdrawnRecord>,
        /// These go when they come; [`Pending`](crate::control::pending::Pending) knows them by now.
        awaited: Vec<PendingRecord>,
        /// [`Shared::moves`](crate::shared::Shared::moves) before they were looked up.
        moves: u64,
    },
    /// Offer these articles no more, or in these groups.
    Expire {
        withdrawn: Vec<WithdrawnRecord>,
        left: Vec<LeftRecord>,
        /// As with `Withdraw`.
        moves: u64,
    },
    /// Write this with the next commit: it says nothing that the log has to know.
    Write(Box<dyn BatchWrite>),
    /// Copy these articles into a set.
    Copy(Copies),
    /// These articles lie where their copies are.
    Move(Box<Moving>),
    /// Nothing leads to what lies here any more.
    Clear(Vec<Token>),
    /// The buffers of a set are others.
    Buffers(BufferChange),
    /// The calendar is right as it is.
    TrustClock,
    /// Make a checkpoint now.
    Checkpoint,
    /// Finish what is under way, make a last checkpoint and stop.
    Stop,
}

impl Request {
    /// Whether it changes groups.
    pub(crate) const fn is_of_groups(&self) -> bool {
        matches!(
            self,
            Self::AddGroups(_)
                | Self::SetGroups(_)
                | Self::RemoveGroup { .. }
                | Self::ChangeGroups(..)
        )
    }
}

/// What becomes of a buffer while it is in use.
#[derive(Debug)]
pub(crate) enum BufferChange {
    /// This one takes its share of its set.
    Add(Box<NewBuffer>),
    /// This one is not there any more.
    Remove(BufferId),
    /// This one uses the room that was made for it, or becomes smaller.
    Resize(Resizing),
}

/// Someone who waits for an answer.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) answer: SyncSender<Result<(), Error>>,
    pub(crate) result: Result<(), Error>,
    /// It waits for copies, which a buffer may fail to take.
    pub(crate) is_copy: bool,
}

impl Waiting {
    /// Tells the caller; one that has gone away does not matter.
    pub(crate) fn tell(self) {
        let _ = self.answer.send(self.result);
    }
}
