//! The sequencer's part of a move: copies get their places, then one frame says that they count.
//!
//! That frame is written when no commit is under way and the views have all of them, and no article is taken until it is on its
//! way.  So whatever was withdrawn or overwritten is known, and nothing comes between looking and saying.  Nothing is read from
//! the disk here.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use newsreel_index::Repacked;
use newsreel_store::{Place, PlaceError};
use newsreel_wire::{IdHash, SetId, Token, UnixTime};
use parking_lot::Mutex;

use crate::admin::RECORD_OCTETS;
use crate::error::Error;
use crate::places::Places;
use crate::record::{CopyRecord, LeftRecord, MovedRecord, RepackedRecord, kind};
use crate::requests::Waiting;
use crate::sequencer::Sequencer;

/// An article that is to be copied.
#[derive(Debug)]
pub(crate) struct Original {
    pub(crate) arrival: UnixTime,
    pub(crate) id_hash: IdHash,
    /// Its message-id, angle brackets included.
    pub(crate) id: Vec<u8>,
    /// The content of its Xref.
    pub(crate) xref: Vec<u8>,
    /// Its text in wire form, terminator included.
    pub(crate) text: Vec<u8>,
    /// Octets of its header block, empty line not included.
    pub(crate) head_len: u32,
}

/// Articles that are to be copied into a set, and where the first of them came to lie.
#[derive(Debug, Clone)]
pub(crate) struct Copies {
    pub(crate) set: SetId,
    pub(crate) originals: Arc<Vec<Original>>,
    /// Those before this one are done with.
    pub(crate) first: usize,
    /// Filled when they are placed; they are durable when the request is answered well.
    pub(crate) tokens: Arc<Mutex<Vec<Token>>>,
}

/// An article with a durable copy.
#[derive(Debug, Clone)]
pub(crate) struct Copied {
    pub(crate) old: Token,
    pub(crate) new: Token,
    pub(crate) id_hash: IdHash,
    /// As the history has it.
    pub(crate) arrival: UnixTime,
    /// The history led to the original when it was looked up last.
    pub(crate) is_there: bool,
    /// The groups and numbers of its Xref.
    pub(crate) places: Places,
}

/// Articles that are to lie where their copies are.
#[derive(Debug)]
pub(crate) struct Moving {
    pub(crate) articles: Vec<Copied>,
    /// The history's when it was last found to lead to the originals.
    pub(crate) generation: u64,
    /// The pack with their rows; none where they have none.
    pub(crate) repacked: Arc<Mutex<Option<Repacked>>>,
}

/// A move that waits for the commits before it.
pub(crate) type MoveWaiting = (Box<Moving>, SyncSender<Result<(), Error>>);

impl Sequencer {
    /// Gives as many of these a place as there is room for now; none: it is to be asked again.
    pub(crate) fn copy(&mut self, copies: &Copies) -> Result<(), Error> {
        if self.room.is_full {
            return Err(Error::Request(
                "there is no room for the copies of articles; see `newsreel status`".to_owned(),
            ));
        }
        let mut tokens = copies.tokens.lock();
        tokens.clear();
        let mut lack = Error::FrameFull;
        for original in copies.originals.iter().skip(copies.first) {
            // A copy in front of it takes no more than that.
            if !self.fits(CopyRecord::OCTETS + RECORD_OCTETS) {
                break;
            }
            let placed = self.store.place(&Place {
                sequence: self.next,
                arrival: original.arrival,
                id_hash: original.id_hash,
                id: &original.id,
                set: copies.set,
                format: None,
                xref: &original.xref,
                article: &[&original.text],
                head_len: original.head_len,
            });
            let token = match placed {
                Ok(token) => token,
                Err(PlaceError::NeedsReservation) => {
                    // The next commit reserves.
                    self.scratch.blocked = true;
                    lack = Error::Place(PlaceError::NeedsReservation);
                    break;
                }
                Err(error) if tokens.is_empty() => return Err(Error::Place(error)),
                // Those before it are told of; it comes first next time.
                Err(_) => break,
            };
            CopyRecord {
                token,
                id_hash: original.id_hash,
            }
            .encode(self.record(kind::COPY));
            self.open.octets += token.len() as usize;
            tokens.push(token);
        }
        match tokens.is_empty() {
            true => Err(lack),
            false => Ok(()),
        }
    }

    /// Puts a move aside until nothing is under way.
    pub(crate) fn put_move(&mut self, moving: Box<Moving>, answer: SyncSender<Result<(), Error>>) {
        match self.moving {
            // There is one at a time.
            Some(_) => drop(answer.send(Err(Error::FrameFull))),
            None => self.moving = Some((moving, answer)),
        }
    }

    /// Sends a move on its way, if one waits and everything before it is in the views.
    pub(crate) fn launch_move(&mut self) {
        if self.committing || !self.open.is_idle() {
            return;
        }
        let Some((moving, answer)) = self.moving.take() else {
            return;
        };
        let result = match &self.broken {
            Some(why) => Err(Error::LogFailed { why: why.clone() }),
            None => self.write_move(&moving),
        };
        let waiting = Waiting {
            answer,
            result,
            is_copy: false,
        };
        if waiting.result.is_err() {
            waiting.tell();
            return;
        }
        self.open.waiting.push(waiting);
        self.open.moves = true;
        let fresh = self.spare.take().unwrap_or_default();
        let commit = std::mem::replace(&mut self.open, fresh);
        self.open.frame.start(self.next, self.epoch);
        self.send(commit);
    }

    /// Writes the frame, or says why not.
    fn write_move(&mut self, moving: &Moving) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let (history, overview) = (shared.views.history(), shared.views.overview());
        let mut repacked = moving.repacked.lock();
        let is_current = repacked.as_ref().is_none_or(Repacked::is_current);
        if !is_current || history.generation() != moving.generation {
            return Err(Error::Moved);
        }
        for article in &moving.articles {
            let recent = history.lookup_recent(&article.id_hash);
            let is_overtaken = !shared.store.is_live(&article.old);
            let is_there = recent.map_or(article.is_there, |it| it.leads_to(&article.old));
            let is_withdrawn = is_overtaken || !is_there;
            MovedRecord {
                token: article.new,
                id_hash: article.id_hash,
                arrival: recent.map_or(article.arrival, |entry| entry.arrival),
                is_withdrawn,
            }
            .encode(self.record(kind::MOVED));
            if is_withdrawn {
                self.open.withdrawn.push(article.new);
            }
            let places = article.places.iter().copied();
            let left = places
                .filter(|(group, number)| is_withdrawn || overview.is_withdrawn(*group, *number));
            let left: Places = left.collect();
            if !left.is_empty() {
                LeftRecord {
                    token: article.new,
                    groups: left,
                }
                .encode(self.record(kind::LEFT));
            }
        }
        if let Some(repacked) = &mut *repacked {
            let (old, new) = repacked.tell();
            RepackedRecord { old, new }.encode(self.record(kind::REPACKED));
        }
        self.moves += 1;
        Ok(())
    }
}
