//! What all threads of the engine share: the views, the readers of the store, the queue, counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use newsreel_host::{Clock, Disk};
use newsreel_index::{Liveness, Views};
use newsreel_store::StoreReader;
use newsreel_wire::{BufferId, IdHash, MessageId, Position, Sequence};

use crate::accept::CandidateBatch;
use crate::config::EngineConfig;
use crate::counters::Counters;
use crate::error::Error;
use crate::inbox::Inbox;
use crate::offers::Offers;
use crate::sequencer::Event;

/// The engine's shared half; everything in it may be used from any thread.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: EngineConfig,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) path_identity: String,
    pub(crate) hash_key: [u8; 32],
    pub(crate) views: Arc<Views>,
    pub(crate) store: Arc<StoreReader>,
    pub(crate) offers: Offers,
    pub(crate) inbox: Inbox<CandidateBatch, Event>,
    pub(crate) counters: Counters,
    /// The last committed and applied sequence.
    pub(crate) committed: AtomicU64,
    /// No more articles are taken: the server stops.
    pub(crate) closing: AtomicBool,
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

    /// True when the history has this id.  `generation` is the history's at the time of an
    /// earlier full look-up that found nothing: as long as it holds, only the newest part, in
    /// memory, can have it.
    pub(crate) fn is_known(&self, id: &IdHash, generation: u64) -> Result<bool, Error> {
        let history = self.views.history();
        if history.lookup_recent(id).is_some() {
            return Ok(true);
        }
        if history.generation() == generation {
            return Ok(false);
        }
        Ok(history.lookup(id)?.is_some())
    }

    /// The last committed sequence.
    pub(crate) fn committed(&self) -> Sequence {
        Sequence(self.committed.load(Ordering::Acquire))
    }
}

/// Liveness for the views, computed from the marks of the buffers.
#[derive(Debug)]
pub(crate) struct StoreLiveness(pub(crate) Arc<StoreReader>);

impl Liveness for StoreLiveness {
    fn floor(&self, buffer: BufferId) -> Position {
        self.0.floor(buffer)
    }

    fn epoch(&self) -> u64 {
        self.0.epoch()
    }
}
