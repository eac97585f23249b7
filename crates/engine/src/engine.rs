//! The local news database: its threads, and what the app may ask of it.
//!
//! Three threads: the sequencer decides the order, the commit thread writes and syncs, the
//! checkpoint thread seals views and compacts.  Everything else runs on the caller's thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use newsreel_host::{Clock, Disk};
use newsreel_journal::JournalWriter;
use newsreel_store::{Access, Rules, Store};
use newsreel_wire::Sequence;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::accept::Accept;
use crate::checkpoint::{self, Checkpoints, Stage};
use crate::commit::{self, Commit};
use crate::config::{EngineConfig, Mode};
use crate::counters::Counters;
use crate::error::Error;
use crate::filing::{Filing, GroupSlot, GroupTable};
use crate::finish::SYNC_EVERY_RECORDS;
use crate::inbox::Inbox;
use crate::local::LocalService;
use crate::offers::Offers;
use crate::record::kind;
use crate::recover::{self, Opened};
use crate::requests::{GroupChange, GroupSpec, Request};
use crate::sequencer::{Event, Scratch, Sequencer, SyncState};
use crate::shared::{Policy, Shared};
use crate::spool::Spool;

/// An open spool.
#[derive(Debug)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    service: Arc<LocalService>,
    threads: Mutex<Option<Threads>>,
    pub(crate) spool: Spool,
    pub(crate) opened_ms: u64,
}

#[derive(Debug)]
struct Threads {
    sequencer: JoinHandle<Store>,
    commit: JoinHandle<JournalWriter>,
    checkpoint: JoinHandle<()>,
}

/// Told how many octets of a new buffer are written, of how many.
pub type Progress<'a> = &'a mut dyn FnMut(&str, u64, u64);

impl Engine {
    /// Takes the spool's lock, makes the spool when the directory is empty, recovers, starts.
    pub fn open(
        config: EngineConfig,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        progress: Progress<'_>,
    ) -> Result<Self, Error> {
        let mut opened = recover::open(&config, &disk, &clock, Access::Write, progress)?;
        let writer = opened.writer.take();
        let (engine, sequencer_parts) = Self::assemble(config, clock, opened)?;
        if let Some(writer) = writer {
            let threads = start(&engine.shared, writer, sequencer_parts)?;
            *engine.threads.lock() = Some(threads);
        }
        Ok(engine)
    }

    /// Looks at a spool without its lock: replays in memory, writes nothing, takes nothing.
    pub fn open_read_only(
        config: EngineConfig,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let opened = recover::open(&config, &disk, &clock, Access::ReadOnly, &mut |_, _, _| {})?;
        let (engine, _) = Self::assemble(config, clock, opened)?;
        engine.shared.closing.store(true, Ordering::Release);
        Ok(engine)
    }

    fn assemble(
        config: EngineConfig,
        clock: Arc<dyn Clock>,
        opened: Opened,
    ) -> Result<(Self, Parts), Error> {
        let Opened {
            spool,
            views,
            applier,
            store,
            journal,
            recovered,
            hash_key,
            ..
        } = opened;
        let policy = Policy::new(&config.articles)?;
        let sequencer = &config.sequencer;
        let path_identity = match sequencer.path_identity.as_str() {
            "" => newsreel_host::process::host_name().unwrap_or_else(|| "newsreel".to_owned()),
            name => name.to_owned(),
        };
        let committed = recovered.next.0.saturating_sub(1);
        let queue_kib = sequencer.queue_octets_max as usize / 1024;
        let shared = Arc::new(Shared {
            offers: Offers::new(sequencer.offers_per_connection_max, sequencer.offer_wait_ms),
            rules: Rules::new(&config.store)?,
            policy: ArcSwap::from_pointee(policy),
            path_identity,
            hash_key,
            store: store.reader(),
            accept: Accept::default(),
            inbox: Inbox::new(),
            counters: Counters::default(),
            committed: AtomicU64::new(committed),
            closing: AtomicBool::new(false),
            paused: Mutex::new(None),
            queue: Arc::new(Semaphore::new(queue_kib.max(1))),
            journal,
            views,
            config,
            clock,
        });
        shared.journal.publish_before(Sequence(committed + 1));
        let opened_ms = shared.now_ms();
        let service = Arc::new(LocalService::new(Arc::clone(&shared)));
        let parts = Parts {
            store,
            applier,
            next: recovered.next,
            epoch: recovered.epoch,
            is_new: opened.is_new,
            must_jump: opened.must_jump,
        };
        let engine = Self {
            shared,
            service,
            threads: Mutex::new(None),
            spool,
            opened_ms,
        };
        Ok((engine, parts))
    }

    /// The news service of this spool.
    pub fn service(&self) -> Arc<LocalService> {
        Arc::clone(&self.service)
    }

    /// Makes groups, all or none; durable when it returns.
    pub fn add_groups(&self, groups: Vec<GroupSpec>) -> Result<(), Error> {
        self.ask(Request::AddGroups(groups))
    }

    /// Changes a group; durable when it returns.
    pub fn set_group(&self, name: &str, change: GroupChange) -> Result<(), Error> {
        self.ask(Request::SetGroup {
            name: name.to_owned(),
            change,
        })
    }

    /// Removes a group; durable when it returns.
    pub fn remove_group(&self, name: &str) -> Result<(), Error> {
        self.ask(Request::RemoveGroup {
            name: name.to_owned(),
        })
    }

    /// Has a checkpoint begun.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.ask(Request::Checkpoint)
    }

    /// Takes over what may change while the server runs: `[articles]`.
    pub fn reload(&self, config: &EngineConfig) -> Result<(), Error> {
        self.shared
            .policy
            .store(Arc::new(Policy::new(&config.articles)?));
        Ok(())
    }

    fn ask(&self, request: Request) -> Result<(), Error> {
        if self.threads.lock().is_none() {
            return Err(Error::Stopping);
        }
        let (answer, answered) = sync_channel(1);
        self.shared
            .inbox
            .push_event(Event::Request(request, answer));
        answered.recv().unwrap_or(Err(Error::Stopping))
    }

    /// Finishes what is under way, makes a last checkpoint, stops the threads.
    pub fn shutdown(&self) -> Result<(), Error> {
        self.shared.closing.store(true, Ordering::Release);
        let result = self.ask(Request::Stop);
        let Some(threads) = self.threads.lock().take() else {
            return Ok(());
        };
        let sequencer = threads.sequencer.join();
        let commit = threads.commit.join();
        let checkpoint = threads.checkpoint.join();
        if sequencer.is_err() || commit.is_err() || checkpoint.is_err() {
            tracing::error!("a thread of the engine ended by a defect; the log has everything");
        }
        result
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Err(error) = self.shutdown()
            && !matches!(error, Error::Stopping)
        {
            tracing::error!(%error, "the engine did not stop cleanly");
        }
    }
}

/// What the sequencer's thread takes over.
#[derive(Debug)]
struct Parts {
    store: Store,
    applier: crate::applier::Applier,
    next: Sequence,
    epoch: u64,
    is_new: bool,
    must_jump: bool,
}

fn start(shared: &Arc<Shared>, writer: JournalWriter, parts: Parts) -> Result<Threads, Error> {
    let (jobs, job_queue) = commit::queue();
    let (tasks, task_queue) = sync_channel(1);
    let spawn_error = |name| move |source| Error::Thread { name, source };
    let commit = {
        let shared = Arc::clone(shared);
        std::thread::Builder::new()
            .name("commit".to_owned())
            .spawn(move || {
                let inbox = &shared.inbox;
                commit::run(writer, &shared.clock, &job_queue, |done| {
                    inbox.push_event(Event::Done(done));
                })
            })
            .map_err(spawn_error("commit"))?
    };
    let checkpoint = {
        let shared = Arc::clone(shared);
        std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || {
                checkpoint::run(&shared, &task_queue, |written| {
                    shared.inbox.push_event(Event::Checkpoint(written));
                });
            })
            .map_err(spawn_error("checkpoint"))?
    };
    let sequencer = sequencer(shared, parts, jobs, tasks);
    let sequencer = std::thread::Builder::new()
        .name("sequencer".to_owned())
        .spawn(move || sequencer.run())
        .map_err(spawn_error("sequencer"))?;
    Ok(Threads {
        sequencer,
        commit,
        checkpoint,
    })
}

/// The sequencer as it begins: its groups from the views, its first records in the open commit.
fn sequencer(
    shared: &Arc<Shared>,
    parts: Parts,
    jobs: SyncSender<commit::Job>,
    tasks: SyncSender<checkpoint::Task>,
) -> Sequencer {
    let Parts {
        store,
        applier,
        mut next,
        epoch,
        is_new,
        must_jump,
    } = parts;
    if must_jump {
        // What was acknowledged and lost may have been seen: nothing of it is used again.
        next = Sequence(next.0 + SYNC_EVERY_RECORDS);
    }
    let now_ms = shared.now_ms();
    let mut sequencer = Sequencer {
        shared: Arc::clone(shared),
        store,
        groups: group_table(shared, if must_jump { SYNC_EVERY_RECORDS } else { 0 }),
        epoch,
        next,
        jobs,
        checkpoints: Checkpoints {
            tasks,
            log_octets: 0,
            last_ms: now_ms,
            wanted: false,
            is_last: false,
            stage: Stage::Idle,
        },
        applier,
        open: Box::<Commit>::default(),
        spare: None,
        committing: false,
        broken: None,
        abort_again: None,
        sync: SyncState {
            durable_before: next,
            last_ms: now_ms,
        },
        scratch: Scratch::default(),
        stopping: Vec::new(),
    };
    sequencer.open.frame.start(next, epoch);
    if is_new {
        let key = shared.hash_key;
        sequencer.record(kind::SPOOL_MADE).extend_from_slice(&key);
    }
    if must_jump {
        let by = SYNC_EVERY_RECORDS.to_le_bytes();
        sequencer.record(kind::JUMPED).extend_from_slice(&by);
    }
    sequencer.write_state();
    sequencer
}

fn group_table(shared: &Shared, jump: u64) -> GroupTable {
    let mut table = GroupTable::default();
    if shared.config.sequencer.mode == Mode::Transit {
        return table;
    }
    let groups = shared.views.groups();
    let mut after: Option<String> = None;
    loop {
        let mut last = None;
        let more = groups.list(after.as_deref(), 1024, |group| {
            last = Some(group.name().to_owned());
            let filing = match group.status() {
                "j" | "x" => Filing::Nowhere,
                status => match status.strip_prefix('=') {
                    Some(target) => groups
                        .by_name(target)
                        .map_or(Filing::Nowhere, |g| Filing::Alias(g.id())),
                    None => Filing::Here,
                },
            };
            let next = groups.high(group.id()).0 + jump + 1;
            table.set(
                group.id(),
                GroupSlot {
                    next,
                    name: group.name().into(),
                    filing,
                },
            );
        });
        if !more || last.is_none() {
            break;
        }
        after = last;
    }
    table.skip_ids(groups.next_id());
    table
}
