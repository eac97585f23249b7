//! What all threads of the engine share: the views, the readers of the store, the queue, counters.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use newsreel_host::{Clock, Disk};
use newsreel_index::{Liveness, Views};
use newsreel_journal::Journal;
use newsreel_service::posting::PostingConfig;
use newsreel_service::{ArticleFilter, Completion, Defer, LastChanges, Outcome};
use newsreel_store::{Addition, Retirement, RuleConfig, Rules as StorageRules, StoreReader};
use newsreel_wire::{BufferId, IdHash, MessageId, Position, Sequence, Wildmat};

use parking_lot::{Mutex, RwLock};
use tokio::sync::Semaphore;

use crate::accept::{Accept, CandidateBatch};
use crate::config::{ArticlesConfig, EngineConfig};
use crate::control::config::ControlConfig;
use crate::control::due::Due;
use crate::control::heeded::Heeded;
use crate::control::lines::Lines;
use crate::control::nocem::Issuers;
use crate::control::pending::Pending;
use crate::control::rules::Rules as ControlRules;
use crate::control::waiting::Waiting;
use crate::control::watched::Watched;
use crate::counters::Counters;
use crate::error::Error;
use crate::expire::background::Expiry;
use crate::expire::rules::ExpireRules;
use crate::feeds::Feeds;
use crate::holds::Holds;
use crate::inbox::Inbox;
use crate::moving::mover::Moved;
use crate::offers::Offers;
use crate::post::Posts;
use crate::scrub_state::ScrubState;
use crate::sequencer::Event;
use crate::timekeeper::Timekeeper;
use crate::unreadable::Unreadable;

/// The engine's shared half; everything in it may be used from any thread.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: EngineConfig,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) time: Timekeeper,
    pub(crate) path_identity: String,
    pub(crate) hash_key: [u8; 32],
    pub(crate) views: Arc<Views>,
    pub(crate) store: Arc<StoreReader>,
    /// Which buffers take nothing new.
    pub(crate) retirement: Arc<Retirement>,
    /// What makes buffers while the spool is open.
    pub(crate) addition: Arc<Addition>,
    /// Held while one is made or changed, until the sequencer knows of it.
    pub(crate) adding: Mutex<()>,
    /// What an article must be; changed while the server runs.
    pub(crate) policy: ArcSwap<Policy>,
    pub(crate) accept: Accept,
    pub(crate) journal: Journal,
    /// Stretches of the log that were found lost when it was opened.
    pub(crate) log_damage: u64,
    pub(crate) offers: Offers,
    pub(crate) inbox: Inbox<CandidateBatch, Event>,
    pub(crate) counters: Counters,
    /// The last committed and applied sequence.
    pub(crate) committed: AtomicU64,
    /// What outgoing feeds wait for, and what the log keeps for them.
    pub(crate) feeds: Feeds,
    /// No more articles are taken: the server stops.
    pub(crate) closing: AtomicBool,
    /// Why nothing is taken at present, if so.
    pub(crate) holds: Mutex<Holds>,
    /// What is known of scrubs.
    pub(crate) scrubs: Mutex<ScrubState>,
    /// What reads found to be damaged.
    pub(crate) unreadable: Unreadable,
    /// What is known of expiry.
    pub(crate) expiry: Expiry,
    /// What is known of articles that move.
    pub(crate) moving: Moved,
    /// Held by who withdraws an article whose file somebody removed.
    pub(crate) removing: Mutex<()>,
    /// What judges articles before they are taken, if anything does.
    pub(crate) filter: RwLock<Option<Arc<dyn ArticleFilter>>>,
    /// What only posts need.
    pub(crate) posts: Posts,
    /// Cancels that came before their targets.
    pub(crate) pending: Pending,
    /// Targets of cancels that are on their way to the sequencer.
    pub(crate) watched: Arc<Watched>,
    /// Messages about groups that were heeded.
    pub(crate) heeded: Heeded,
    /// Such that wait for approval.
    pub(crate) waiting: Waiting,
    /// What is to be done behind control messages.
    pub(crate) due: Due,
    /// What the log says of control messages.
    pub(crate) lines: Lines,
    /// When groups changed last, as far as somebody asked.
    pub(crate) changes: Mutex<LastChanges>,
    /// Room in front of the sequencer, KiB.
    pub(crate) queue: Arc<Semaphore>,
}

impl Shared {
    /// Milliseconds of the monotone clock.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.monotonic().as_millis()).unwrap_or(u64::MAX)
    }

    /// The keyed hash under which an id is known.
    pub(crate) fn id_hash(&self, id: MessageId<'_>) -> IdHash {
        newsreel_index::id_hash(&self.hash_key, id)
    }

    /// What the log is told again of control messages with each checkpoint, octets.
    pub(crate) fn octets_about_groups(&self) -> usize {
        self.heeded.octets() + self.waiting.octets() + self.due.octets()
    }

    /// True when the history has this id.  `generation` is the history's before an earlier
    /// full look-up that found nothing: as long as it holds, only the newest part, in
    /// memory, can have it.
    pub(crate) fn is_known(&self, id: &IdHash, generation: Option<u64>) -> Result<bool, Error> {
        let history = self.views.history();
        if history.lookup_recent(id).is_some() {
            return Ok(true);
        }
        if generation == Some(history.generation()) {
            return Ok(false);
        }
        Ok(history.lookup(id)?.is_some())
    }

    /// Answers a batch that nobody takes up any more: its peer keeps the articles.
    pub(crate) fn give_back(&self, batch: CandidateBatch) {
        let left = batch.candidates.get(batch.next..).unwrap_or_default();
        for candidate in left {
            self.offers.finish(&candidate.hash, false);
        }
        let outcome = Outcome::Deferred(Defer::Stopping);
        batch.sink.complete(left.iter().map(|candidate| Completion {
            ticket: candidate.ticket,
            outcome,
        }));
    }

    /// The server stops.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// How many moves the views have.
    pub(crate) fn moves(&self) -> u64 {
        self.moving.known.load(Ordering::Acquire)
    }

    /// The last committed sequence.
    pub(crate) fn committed(&self) -> Sequence {
        Sequence(self.committed.load(Ordering::Acquire))
    }
}

/// What an article must be, prepared.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) articles: ArticlesConfig,
    /// Groups taken at all.
    pub(crate) wanted: Wildmat,
    pub(crate) posting: PostingConfig,
    pub(crate) control: ControlConfig,
    /// Whose messages about groups are heeded.
    pub(crate) rules: ControlRules,
    /// Whose notices are heeded.
    pub(crate) issuers: Issuers,
    /// The groups where notices are looked for.
    pub(crate) notice_groups: Wildmat,
    /// When articles go.
    pub(crate) expire: ExpireRules,
    /// Which set an article is stored in.
    pub(crate) storage: StorageRules,
    /// The same as they were written.
    pub(crate) storage_rules: Vec<RuleConfig>,
}

impl Policy {
    pub(crate) fn new(config: &EngineConfig) -> Result<Self, Error> {
        let articles = &config.articles;
        let wanted = Wildmat::parse(&articles.accept).map_err(|why| {
            Error::Setting(format!("articles.accept {:?}: {why}", articles.accept))
        })?;
        Ok(Self {
            articles: articles.clone(),
            wanted,
            posting: config.posting.clone(),
            control: config.control.clone(),
            rules: ControlRules::parse(&config.control.rules)
                .map_err(|why| Error::Setting(format!("control.rules: {why}")))?,
            issuers: Issuers::parse(&config.control.nocem)
                .map_err(|why| Error::Setting(format!("control.nocem: {why}")))?,
            notice_groups: Wildmat::parse(&config.control.nocem_groups)
                .map_err(|why| Error::Setting(format!("control.nocem_groups: {why}")))?,
            expire: ExpireRules::new(&config.expire, &config.store)?,
            storage: StorageRules::new(&config.store)?,
            storage_rules: config.store.rules.clone(),
        })
    }
}

/// Liveness for the views, computed from the marks of the buffers.  The views are opened before
/// the buffers; until then everything counts as alive, and nobody asks.
#[derive(Debug, Default)]
pub(crate) struct StoreLiveness(pub(crate) OnceLock<Arc<StoreReader>>);

impl Liveness for StoreLiveness {
    fn floor(&self, buffer: BufferId) -> Position {
        self.0
            .get()
            .map_or(Position::ZERO, |store| store.floor(buffer))
    }

    fn cycle_octets(&self, buffer: BufferId) -> u64 {
        self.0.get().map_or(0, |store| store.cycle_octets(buffer))
    }

    fn epoch(&self) -> u64 {
        self.0.get().map_or(0, |store| store.epoch())
    }
}
