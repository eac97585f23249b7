//! The local news database: its threads, and what the app may ask of it.
//!
//! Three threads: the sequencer decides the order, the commit thread writes and syncs, the
//! checkpoint thread seals views and compacts; beside them one that scrubs, and one that expires.  Everything else runs on the
//! caller's thread.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use newsreel_host::{Clock, Disk};
use newsreel_index::Error as IndexError;
use newsreel_journal::JournalWriter;
use newsreel_service::ArticleFilter;
use newsreel_service::posting::{MailDrop, PostLimits, PostingConfig};
use newsreel_store::{Access, Store};
use newsreel_wire::{BufferId, Position, Sequence, UnixTime};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Semaphore;

use crate::accept::Accept;
use crate::checkpoint;
use crate::commit::{self, Committer};
use crate::config::{EngineConfig, SequencerConfig};
use crate::control::due::Due;
use crate::control::heeded::Heeded;
use crate::control::lines::Lines;
use crate::control::pending::{Limits, Pending};
use crate::control::waiting::Waiting;
use crate::counters::Counters;
use crate::error::Error;
use crate::expire::background::{self, Expiry};
use crate::feeds::Feeds;
use crate::inbox::Inbox;
use crate::last_changes;
use crate::local::LocalService;
use crate::moving::mover::Moved;
use crate::offers::Offers;
use crate::post::Posts;
use crate::recover::{self, Opened};
use crate::requests::{GroupChange, GroupSpec, Request};
use crate::scrub;
use crate::scrub_state::ScrubState;
use crate::scrub_walk::newest_in;
use crate::sequencer::Event;
use crate::shared::{Policy, Shared};
use crate::spool::Spool;
use crate::start::{self, Parts, Writing};
use crate::timekeeper::{self, Timekeeper};
use crate::unreadable::Unreadable;

/// An open spool.
#[derive(Debug)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    service: Arc<LocalService>,
    threads: Mutex<Option<Threads>>,
    pub(crate) spool: Spool,
    pub(crate) opened_ms: u64,
    /// Only looked at, while nobody wrote.
    pub(crate) is_at_rest: bool,
    /// What spoke against the end of the log at the start.
    pub(crate) doubt: Option<String>,
}

#[derive(Debug)]
struct Threads {
    sequencer: JoinHandle<Store>,
    commit: JoinHandle<()>,
    checkpoint: JoinHandle<()>,
    /// Those that work in the background, with their names.
    background: Vec<(&'static str, Background)>,
}

/// A thread in the background; it ends when the channel is closed.
#[derive(Debug)]
struct Background {
    stop: SyncSender<()>,
    thread: JoinHandle<()>,
}

/// So often a spool is looked at whose files a server retires meanwhile.
const LOOKS_MAX: u32 = 10;

/// After so long without an answer it is looked whether anybody is there to give one.
const PATIENCE: Duration = Duration::from_secs(1);

/// The first checkpoint behind a loss is asked for so often, and waited for so long each time.
const FORGET_TRIES: u32 = 600;
const FORGET_REST: Duration = Duration::from_millis(50);

/// Told how many octets of a new buffer are written, of how many.
pub type Progress<'a> = &'a mut dyn FnMut(&str, u64, u64);

/// What is there now.  The server beside may retire a file between the moment it is named and the one it is opened:
/// then all of it is looked at again, unless it is the same file that is missing.
fn look(config: &EngineConfig, disk: &Arc<dyn Disk>) -> Result<Opened, Error> {
    let mut missed = None;
    for _ in 1..LOOKS_MAX {
        let opened = recover::open(config, disk, Access::ReadOnly, &mut |_, _, _| {});
        let missing = opened.as_ref().err().and_then(Error::missing);
        if missing.is_none() || missing == missed.as_deref() {
            return opened;
        }
        missed = missing.map(Path::to_path_buf);
    }
    recover::open(config, disk, Access::ReadOnly, &mut |_, _, _| {})
}

fn offers(config: &SequencerConfig) -> Offers {
    Offers::new(
        config.offers_max,
        config.offers_per_connection_max,
        config.offer_wait_ms,
    )
}

/// Room for articles that wait, in KiB.
fn queue(config: &SequencerConfig) -> Arc<Semaphore> {
    let octets = config.queue_octets_max as usize;
    Arc::new(Semaphore::new((octets / 1024).max(1)))
}

/// The name in Path and Xref: the configured one, or the machine's.
fn own_name(configured: &str) -> String {
    match configured {
        "" => newsreel_host::process::host_name().unwrap_or_else(|| "newsreel".to_owned()),
        name => name.to_owned(),
    }
}

impl Engine {
    /// Takes the spool's lock, makes the spool when the directory is empty, recovers, starts.
    pub fn open(
        config: EngineConfig,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        progress: Progress<'_>,
    ) -> Result<Self, Error> {
        let mut opened = recover::open(&config, &disk, Access::Write, progress)?;
        let writer = opened.writer.take();
        let (engine, sequencer_parts) = Self::assemble(config, disk, clock, opened)?;
        if let Some(jump_s) = engine.shared.time.jump_s() {
            tracing::error!("{}", timekeeper::describe_start(jump_s));
        }
        let Shared { disk, config, .. } = &*engine.shared;
        *engine.shared.changes.lock() =
            last_changes::take(disk.as_ref(), &config.spool, engine.shared.committed());
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
        let opened = look(&config, &disk)?;
        let (engine, _) = Self::assemble(config, disk, clock, opened)?;
        engine.shared.closing.store(true, Ordering::Release);
        Ok(engine)
    }

    fn assemble(
        config: EngineConfig,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        opened: Opened,
    ) -> Result<(Self, Parts), Error> {
        let (spool, views, journal) = (opened.spool, opened.views, opened.journal);
        let (applier, store) = (opened.applier, opened.store);
        let committed = opened.recovered.next.0.saturating_sub(1);
        let now = UnixTime(clock.now().secs);
        let scrubs = scrubs(&config, &disk, &store, now);
        let shared = Arc::new(Shared {
            offers: offers(&config.sequencer),
            policy: ArcSwap::from_pointee(Policy::new(&config)?),
            path_identity: own_name(&config.sequencer.path_identity),
            hash_key: opened.hash_key,
            store: store.reader(),
            retirement: store.retirement(),
            addition: store.addition(),
            adding: Mutex::default(),
            accept: Accept::default(),
            inbox: Inbox::new(),
            counters: Counters::default(),
            committed: AtomicU64::new(committed),
            log_damage: opened.recovered.damage_count,
            moving: Moved::default(),
            feeds: Feeds::new(Sequence(committed)),
            closing: AtomicBool::new(false),
            holds: Mutex::default(),
            expiry: Expiry::default(),
            removing: Mutex::new(()),
            unreadable: Unreadable::new(!scrubs.known.is_empty()),
            scrubs: Mutex::new(scrubs),
            time: Timekeeper::new(Arc::clone(&clock), views.time()),
            filter: RwLock::default(),
            posts: Posts::new(&config.moderation, clock.as_ref(), &opened.hash_key)?,
            pending: Pending::new(&opened.pending, clock.as_ref(), &Limits::of(&config)),
            watched: Arc::default(),
            waiting: Waiting::new(&opened.about_groups.1, &Limits::of(&config).of_messages()),
            due: Due::new(&opened.about_groups.2),
            lines: Lines::default(),
            heeded: Heeded::new(opened.about_groups.0, &config),
            changes: Mutex::default(),
            queue: queue(&config.sequencer),
            journal,
            views,
            config,
            disk,
            clock,
        });
        shared.journal.publish_before(Sequence(committed + 1));
        let parts = Parts {
            store,
            applier,
            recovered: opened.recovered,
            is_new: opened.is_new,
            writes: opened.writes,
            passed: opened.passed,
        };
        let engine = Self {
            opened_ms: shared.now_ms(),
            service: Arc::new(LocalService::new(Arc::clone(&shared))),
            shared,
            threads: Mutex::new(None),
            spool,
            is_at_rest: opened.is_at_rest,
            doubt: opened.doubt,
        };
        Ok((engine, parts))
    }

    /// Nothing of this engine writes: somebody else may.
    pub(crate) fn only_looks(&self) -> bool {
        self.threads.lock().is_none()
    }

    /// The news service of this spool.
    pub fn service(&self) -> Arc<LocalService> {
        Arc::clone(&self.service)
    }

    /// What this server calls itself in Path and Xref.
    pub fn path_identity(&self) -> &str {
        &self.shared.path_identity
    }

    /// Makes groups, all or none; durable when it returns.
    pub fn add_groups(&self, groups: Vec<GroupSpec>) -> Result<(), Error> {
        self.ask(Request::AddGroups(groups))
    }

    /// Changes a group; durable when it returns.
    pub fn set_group(&self, name: &str, change: GroupChange) -> Result<(), Error> {
        self.set_groups(&[(name.to_owned(), change)])
    }

    /// Changes groups, each named once, all or none; durable when it returns.
    pub fn set_groups(&self, changes: &[(String, GroupChange)]) -> Result<(), Error> {
        self.ask_until_it_fits(|| Request::SetGroups(changes.into()))
    }

    /// Removes a group; durable when it returns.
    pub fn remove_group(&self, name: &str) -> Result<(), Error> {
        self.ask(Request::RemoveGroup {
            name: name.to_owned(),
        })
    }

    /// Takes the memory that the newest articles will need from the system now, so that none of them waits for it.
    pub fn take_memory(&self) {
        for buffer in self.shared.store.buffers() {
            buffer.take_memory();
        }
    }

    /// Has a checkpoint begun.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.ask(Request::Checkpoint)
    }

    /// Has a cyclic buffer take nothing new, and drain as the rest of its set is overwritten; or take articles again.  Whether
    /// that is new; durable when it returns.
    ///
    /// # Errors
    /// When there is no such buffer, or no other one in its set takes articles.
    pub fn retire_buffer(&self, name: &str, retired: bool) -> Result<bool, Error> {
        if self.only_looks() {
            return Err(Error::Stopping);
        }
        Ok(self.shared.retirement.retire(name, retired)?)
    }

    /// Whether that would be new, without doing it.
    ///
    /// # Errors
    /// As [`Engine::retire_buffer`].
    pub fn try_retire_buffer(&self, name: &str, retired: bool) -> Result<bool, Error> {
        Ok(self.shared.retirement.try_retire(name, retired)?)
    }

    /// Says that the calendar is right although it jumped; durable when it returns.
    pub fn confirm_clock(&self) -> Result<(), Error> {
        self.ask(Request::TrustClock)
    }

    /// Makes do without the group rows that are lost, when a checkpoint has told of all that is left; how many files they
    /// were.
    ///
    /// # Errors
    /// When no checkpoint can be made, or the disk fails.
    pub fn forget_lost_groups(&self) -> Result<usize, Error> {
        if self.threads.lock().is_none() {
            // Who only looks has no lock, and the manifest is written at once.
            return Err(Error::Stopping);
        }
        for _ in 0..FORGET_TRIES {
            match self.shared.views.forget_lost_groups() {
                Err(IndexError::Busy) => self.checkpoint()?,
                result => return Ok(result?),
            }
            std::thread::sleep(FORGET_REST);
        }
        Err(Error::Request(
            "no checkpoint comes about, and without one numbers would be given twice; `newsreel status` and the \
             server's log say why"
                .to_owned(),
        ))
    }

    /// Whether all sets that the storage rules of a configuration name are in use: a new one waits for a start, and the rules with it.
    pub fn has_sets_of(&self, config: &EngineConfig) -> bool {
        let sets = &self.shared.config.store.sets;
        let mut rules = config.store.rules.iter();
        rules.all(|rule| sets.iter().any(|set| set.name == rule.set))
    }

    /// The configuration with what may change of its store while that is in use.  A set's number is its place in the
    /// configuration that the store was opened with, whatever order a new one has.
    fn with_sets_in_use(&self, config: &EngineConfig) -> EngineConfig {
        let mut store = self.shared.config.store.clone();
        match self.has_sets_of(config) {
            true => store.rules.clone_from(&config.store.rules),
            false => store
                .rules
                .clone_from(&self.shared.policy.load().storage_rules),
        }
        EngineConfig {
            store,
            ..config.clone()
        }
    }

    /// Takes over what may change while the server runs: what articles must be, where they are stored, when they go.
    ///
    /// # Errors
    /// When something in it cannot be used, or the log that runs cannot hold the records of such articles.
    pub fn reload(&self, config: &EngineConfig) -> Result<(), Error> {
        let articles = &config.articles;
        let policy = Policy::new(&self.with_sets_in_use(config))?;
        let (needed, there) = (
            articles.segment_octets_min(),
            self.shared.config.journal.segment_octets,
        );
        if needed > there {
            return Err(Error::Setting(format!(
                "articles.header_octets_max = {} and articles.groups_max = {} need log.segment_octets of {needed} or \
                 more, and the log that runs has {there}: give less, or restart with a larger log.segment_octets",
                articles.header_octets_max, articles.groups_max
            )));
        }
        let limits = |posting: &PostingConfig| {
            let pause = posting.backoff_s_max;
            (
                posting.articles_per_minute_max,
                posting.articles_per_day_max,
                pause,
            )
        };
        let old = self.shared.policy.swap(Arc::new(policy));
        if limits(&old.posting) != limits(&config.posting) {
            // Nobody waits any longer for what no longer holds.
            *self.shared.posts.limits.lock() = PostLimits::default();
        }
        Ok(())
    }

    /// Says where mails to moderators go, and those about control messages.  Until then posts to moderated groups are put off, and
    /// nobody is told of what waits; said again, nothing changes.
    pub fn set_mail_drops(&self, moderators: Arc<dyn MailDrop>, notices: Arc<dyn MailDrop>) {
        let _ = self.shared.posts.mail.set(moderators);
        let _ = self.shared.posts.notices.set(notices);
    }

    /// From now on this judges articles before they are taken; none: nothing does.  What the one before it is asked
    /// already goes on.
    pub fn set_filter(&self, filter: Option<Arc<dyn ArticleFilter>>) {
        *self.shared.filter.write() = filter;
    }

    pub(crate) fn ask(&self, request: Request) -> Result<(), Error> {
        if self.threads.lock().is_none() {
            return Err(Error::Stopping);
        }
        let (answer, answered) = sync_channel(1);
        self.shared
            .inbox
            .push_event(Event::Request(request, answer));
        loop {
            match answered.recv_timeout(PATIENCE) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Stopping),
                // A sequencer that ended by a defect answers nobody.
                Err(RecvTimeoutError::Timeout) if self.is_over() => return Err(Error::Stopping),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        let threads = self.threads.lock();
        threads
            .as_ref()
            .is_none_or(|threads| threads.sequencer.is_finished())
    }

    /// Finishes what is under way, makes a last checkpoint, stops the threads.
    pub fn shutdown(&self) -> Result<(), Error> {
        self.shared.closing.store(true, Ordering::Release);
        let taken = |threads: &mut Threads| std::mem::take(&mut threads.background);
        let background = self.threads.lock().as_mut().map(taken);
        let ending = |(name, Background { stop, thread })| {
            drop(stop);
            (name, thread)
        };
        let ending: Vec<_> = background.into_iter().flatten().map(ending).collect();
        let result = self.ask(Request::Stop);
        for (name, thread) in ending {
            if thread.join().is_err() {
                tracing::error!("the thread {name:?} ended by a defect");
            }
        }
        let Some(threads) = self.threads.lock().take() else {
            return Ok(());
        };
        let sequencer = threads.sequencer.join();
        let commit = threads.commit.join();
        let checkpoint = threads.checkpoint.join();
        if sequencer.is_err() || commit.is_err() || checkpoint.is_err() {
            tracing::error!("a thread of the engine ended by a defect; the log has everything");
        } else if result.is_ok() {
            self.shared.keep_changes();
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

fn start(shared: &Arc<Shared>, writer: JournalWriter, parts: Parts) -> Result<Threads, Error> {
    let (jobs, job_queue) = commit::queue();
    let (tasks, task_queue) = sync_channel(1);
    let frame_octets_max = writer.frame_octets_max();
    let committer = Arc::new(Mutex::new(Committer::new(writer)));
    let writing = Writing {
        jobs,
        committer: Arc::clone(&committer),
        frame_octets_max,
    };
    let sequencer = start::sequencer(shared, parts, writing, tasks);
    let spawn_error = |name| move |source| Error::Thread { name, source };
    let commit = {
        let shared = Arc::clone(shared);
        std::thread::Builder::new()
            .name("commit".to_owned())
            .spawn(move || {
                let inbox = &shared.inbox;
                commit::run(&committer, shared.clock.as_ref(), &job_queue, |done| {
                    inbox.push_event(Event::Done(done));
                });
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
    let sequencer = std::thread::Builder::new()
        .name("sequencer".to_owned())
        .spawn(move || sequencer.run())
        .map_err(spawn_error("sequencer"))?;
    Ok(Threads {
        sequencer,
        commit,
        checkpoint,
        background: start_background(shared)?,
    })
}

/// What is known of scrubs; where the log was too old, what is in the buffers by now is noted first: of that only their bitmaps may know that
/// it was withdrawn.  So is what buffers were found to lack; they are told of what earlier starts found.  Where a bitmap may be damaged, all is
/// compared anew.
fn scrubs(config: &EngineConfig, disk: &Arc<dyn Disk>, store: &Store, now: UnixTime) -> ScrubState {
    let mut scrubs = ScrubState::load(disk.as_ref(), &config.spool);
    let reader = store.reader();
    let known = scrubs.lacking.len();
    // What begins there is there again where the right buffer was put back.
    let is_there = |buffer: &BufferId, from: &Position| {
        let buffer = reader.buffer(*buffer);
        buffer.is_some_and(|buffer| buffer.token_at(*from).is_ok())
    };
    scrubs
        .lacking
        .retain(|(buffer, from), end| *end > reader.floor(*buffer) && !is_there(buffer, from));
    let mut is_news = store.are_bits_newer() || scrubs.lacking.len() < known;
    for buffer in reader.buffers() {
        if store.are_bits_newer() {
            scrubs.distrust(buffer.id(), newest_in(buffer));
        }
        let found = buffer.lacking();
        let known = scrubs.lacking.iter();
        for ((_, from), end) in known.filter(|((of, _), _)| *of == buffer.id()) {
            buffer.lacked(*from..*end);
        }
        for stretch in found {
            is_news |= scrubs.lacks(buffer.id(), stretch);
        }
    }
    if reader.buffers().iter().any(|it| it.has_doubtful_bits()) {
        scrubs.begin_anew(now);
        is_news = true;
    }
    if is_news {
        scrubs.save(disk.as_ref(), &config.spool);
    }
    scrubs
}

fn start_background(shared: &Arc<Shared>) -> Result<Vec<(&'static str, Background)>, Error> {
    type Run = fn(&Shared, &Receiver<()>);
    let config = &shared.config;
    let threads: [(&str, bool, Run); 2] = [
        ("scrub", config.scrub.octets_per_s > 0, scrub::run),
        ("expire", config.expiry.rows_per_s > 0, background::run),
    ];
    let mut started = Vec::new();
    for (name, _, run) in threads.into_iter().filter(|(_, is_wanted, _)| *is_wanted) {
        let (stop, stopped) = sync_channel(0);
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&shared, &stopped))
            .map_err(|source| Error::Thread { name, source })?;
        started.push((name, Background { stop, thread }));
    }
    Ok(started)
}
