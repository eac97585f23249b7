//! One commit, and what makes it durable: buffers first, log second, reply third.
//!
//! The [`Committer`] has the log's writer and does nothing but write and sync: on a thread of its own, so that the next
//! commit grows meanwhile, or on the sequencer's, where nothing would grow.  It never decides
//! anything: whatever happens, the commit goes back to the sequencer with what happened.
//! A sync that failed is not tried again on the same pages; the sequencer places the articles
//! elsewhere, or, when the log itself fails, gives the commit up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use newsreel_host::Clock;
use newsreel_journal::{FrameBuilder, JournalWriter};
use newsreel_service::{Connection, Outcome};
use newsreel_store::{BatchWrite, Reservation};
use newsreel_wire::{BufferId, IdHash, Sequence, Token};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::control::heeded;
use crate::control::shares::Holder;
use crate::record::WaitingRecord;
use crate::requests::Waiting;

/// An answer that waits for its commit.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) ticket: u64,
    pub(crate) outcome: Outcome,
    /// Where it stands in the log, when it was given a place.
    pub(crate) sequence: Option<Sequence>,
    /// Its message-id, as the table of offers holds it.
    pub(crate) id: IdHash,
    /// How it stands in the table of offers.
    pub(crate) offer: Offered,
}

/// How an answer that waits stands in the table of offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offered {
    /// It was given its place: it is in the table until its commit has ended.
    Sequenced,
    /// It is a copy of one that was, and still counted.
    Copy,
    /// It was answered by the sequencer: it is out, so that a copy behind it is judged for itself.
    Finished,
}

/// The answers of one connection in one commit, in the order of its commands.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) sink: Arc<Connection>,
    pub(crate) entries: Vec<Entry>,
}

/// A batch on its way to the disk, with everyone who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Commit {
    pub(crate) frame: FrameBuilder,
    pub(crate) writes: Vec<Box<dyn BatchWrite>>,
    pub(crate) reservations: Vec<Reservation>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) waiting: Vec<Waiting>,
    /// Who waits until it has ended, and is told by the end of these.
    pub(crate) ended: Vec<oneshot::Sender<()>>,
    /// Targets that nobody of these waited for before: taken back if the log does not take it.
    pub(crate) expected: Vec<(IdHash, Holder)>,
    /// What was heeded before it, if it has something of that: so it is again if the log does not take it.
    pub(crate) heeded_before: Option<Box<heeded::Table>>,
    /// Messages that waited, and were approved: they wait again then.
    pub(crate) approved: Vec<WaitingRecord>,
    /// Where the articles lie that it withdraws.
    pub(crate) withdrawn: Vec<Token>,
    pub(crate) octets: usize,
    pub(crate) articles: u64,
    /// A control message in it changes groups.
    pub(crate) changes_groups: bool,
    /// It moves articles.
    pub(crate) moves: bool,
}

impl Commit {
    /// True when there is nothing to write and nobody to answer.
    pub(crate) fn is_idle(&self) -> bool {
        let is_silent = self.deliveries.is_empty() && self.waiting.is_empty();
        self.frame.is_empty() && self.writes.is_empty() && is_silent
    }

    /// Empties it for the next use; the memory stays.
    pub(crate) fn clear(&mut self) {
        self.frame.clear();
        self.writes.clear();
        self.reservations.clear();
        self.deliveries.clear();
        self.waiting.clear();
        self.ended.clear();
        self.expected.clear();
        self.heeded_before = None;
        self.approved.clear();
        self.withdrawn.clear();
        self.octets = 0;
        self.articles = 0;
        self.changes_groups = false;
        self.moves = false;
    }
}

/// Why a commit did not reach the disk.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Writing or syncing these buffers failed; the log was not touched.
    Buffers(Vec<(BufferId, String)>),
    /// The log failed; whether the frame is on disk is unknown.
    Log(String),
}

/// What the sequencer asks of the commit thread.
#[derive(Debug)]
pub(crate) enum Job {
    /// Make this durable.
    Commit { commit: Box<Commit>, sync: bool },
    /// Leave the segment whose sync failed; these sequences stay holes.
    Abort { first: Sequence, last: Sequence },
}

/// What the commit thread says back.
#[derive(Debug)]
pub(crate) enum Done {
    /// A commit came back.
    Commit {
        commit: Box<Commit>,
        synced: bool,
        failure: Option<Failure>,
        took_us: u64,
    },
    /// The log goes on in a new segment, or cannot.
    Abort {
        aborted: (Sequence, Sequence),
        result: Result<(), String>,
    },
}

/// Makes commits durable, one after the other.
#[derive(Debug)]
pub(crate) struct Committer {
    journal: JournalWriter,
    unsynced: Unsynced,
}

impl Committer {
    /// Nothing is under way.
    pub(crate) fn new(journal: JournalWriter) -> Self {
        Self {
            journal,
            unsynced: Unsynced::default(),
        }
    }

    /// Does what the sequencer asks.  Waits for the disk.
    pub(crate) fn carry_out(&mut self, job: Job, clock: &dyn Clock) -> Done {
        let Self { journal, unsynced } = self;
        match job {
            Job::Commit { mut commit, sync } => {
                let start = clock.monotonic();
                let failure = write(journal, &mut commit, sync, unsynced).err();
                let took_us = u64::try_from((clock.monotonic() - start).as_micros()).unwrap_or(0);
                Done::Commit {
                    commit,
                    synced: sync,
                    failure,
                    took_us,
                }
            }
            Job::Abort { first, last } => {
                let result = journal
                    .abort(first, last)
                    .map_err(|error| error.to_string());
                Done::Abort {
                    aborted: (first, last),
                    result,
                }
            }
        }
    }
}

/// Runs until its queue is closed.
pub(crate) fn run(
    committer: &Mutex<Committer>,
    clock: &dyn Clock,
    jobs: &Receiver<Job>,
    mut done: impl FnMut(Done),
) {
    while let Ok(job) = jobs.recv() {
        let ended = committer.lock().carry_out(job, clock);
        done(ended);
    }
}

/// Of every buffer that was written and not synced since the last batch with articles, and the last without: by them the buffer is
/// synced.
type Unsynced = BTreeMap<(BufferId, bool), Box<dyn BatchWrite>>;

fn key(batch: &dyn BatchWrite) -> (BufferId, bool) {
    (batch.buffer(), batch.has_articles())
}

/// Buffers first, log second.
fn write(
    journal: &mut JournalWriter,
    commit: &mut Commit,
    sync: bool,
    unsynced: &mut Unsynced,
) -> Result<(), Failure> {
    let failed = write_buffers(&mut commit.writes, sync, unsynced);
    if !failed.is_empty() {
        return Err(Failure::Buffers(failed));
    }
    if commit.frame.is_empty() {
        return Ok(());
    }
    let log = |error: newsreel_journal::Error| Failure::Log(error.to_string());
    journal.write(&commit.frame).map_err(log)?;
    if sync {
        return journal.sync().map_err(log);
    }
    keep(&mut commit.writes, unsynced);
    Ok(())
}

/// Writes batches, and syncs them and what was written before; which buffers failed, each once, and why.
fn write_buffers(
    writes: &mut [Box<dyn BatchWrite>],
    sync: bool,
    unsynced: &mut Unsynced,
) -> Vec<(BufferId, String)> {
    let mut failed: Vec<(BufferId, String)> = Vec::new();
    for batch in &mut *writes {
        // What fails behind another batch of its buffer fails with it: told twice, it would suspend the file behind that, too.
        if let Err(error) = batch.write()
            && failed.iter().all(|(buffer, _)| *buffer != batch.buffer())
        {
            failed.push((batch.buffer(), error.to_string()));
        }
    }
    if sync {
        // A sync that failed is not tried again, so each is asked once.
        let mut earlier = std::mem::take(unsynced);
        for batch in &*writes {
            earlier.remove(&key(batch.as_ref()));
        }
        for batch in writes.iter_mut().chain(earlier.values_mut()) {
            if failed.iter().all(|(buffer, _)| *buffer != batch.buffer())
                && let Err(error) = batch.sync()
            {
                failed.push((batch.buffer(), error.to_string()));
            }
        }
    }
    failed
}

/// Keeps what was written and not synced.
fn keep(writes: &mut Vec<Box<dyn BatchWrite>>, unsynced: &mut Unsynced) {
    for batch in writes.drain(..) {
        unsynced.insert(key(batch.as_ref()), batch);
    }
}

/// A commit queue of one: the next starts when the previous has ended.
pub(crate) fn queue() -> (SyncSender<Job>, Receiver<Job>) {
    std::sync::mpsc::sync_channel(2)
}

#[cfg(test)]
mod tests {
    use newsreel_store::Result;

    use super::*;

    /// A batch that says when it is synced, or cannot be written.
    #[derive(Debug)]
    struct Batch {
        name: &'static str,
        has_articles: bool,
        is_failing: bool,
        synced: Arc<Mutex<Vec<&'static str>>>,
    }

    impl BatchWrite for Batch {
        fn buffer(&self) -> BufferId {
            BufferId(1)
        }

        fn write(&mut self) -> Result<()> {
            match self.is_failing {
                true => Err(newsreel_store::Error::Suspended {
                    name: self.name.to_owned(),
                    why: "it failed".to_owned(),
                }),
                false => Ok(()),
            }
        }

        fn sync(&mut self) -> Result<()> {
            self.synced.lock().push(self.name);
            Ok(())
        }

        fn has_articles(&self) -> bool {
            self.has_articles
        }
    }

    /// A buffer that goes on in another file was suspended for the second batch of the commit that had failed, until a minute had passed.
    #[test]
    fn a_buffer_of_which_two_batches_fail_has_failed_once() {
        let synced = Arc::new(Mutex::new(Vec::new()));
        let batch = |name, is_failing| -> Box<dyn BatchWrite> {
            Box::new(Batch {
                name,
                has_articles: true,
                is_failing,
                synced: Arc::clone(&synced),
            })
        };
        let mut writes = vec![
            batch("first", true),
            batch("sound", false),
            batch("second", true),
        ];
        let failed = write_buffers(&mut writes, true, &mut Unsynced::new());
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert!(failed[0].1.contains("first"), "{failed:?}");
        assert!(synced.lock().is_empty());
    }

    /// What overwrites or removes what was withdrawn was taken for a later batch of articles of its buffer: with durability `none` the
    /// log said that they were durable, and they were not.
    #[test]
    fn a_withdrawal_does_not_keep_articles_before_it_from_being_synced() {
        let synced = Arc::new(Mutex::new(Vec::new()));
        let batch = |name, has_articles| -> Box<dyn BatchWrite> {
            Box::new(Batch {
                name,
                has_articles,
                is_failing: false,
                synced: Arc::clone(&synced),
            })
        };
        let mut unsynced = Unsynced::new();
        for name in ["first", "second"] {
            let mut writes = vec![batch(name, true)];
            assert!(write_buffers(&mut writes, false, &mut unsynced).is_empty());
            keep(&mut writes, &mut unsynced);
        }
        let mut writes = vec![batch("withdrawn", false)];
        assert!(write_buffers(&mut writes, true, &mut unsynced).is_empty());
        assert_eq!(*synced.lock(), ["withdrawn", "second"]);
        assert!(unsynced.is_empty());
    }
}
