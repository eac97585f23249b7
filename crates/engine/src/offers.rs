//! Message-ids that are offered or on their way, but not yet in the history.
//!
//! An id is in here from the moment a peer was asked to send it (CHECK 238, IHAVE 335) or sent it
//! unasked (TAKETHIS), until its commit is applied to the history, it is refused, its connection
//! ends, or its time is up (which what is posted here has as much of as it takes).  While it is here every other offer of it is put off (431, 436).
//! The table is bounded.  A connection with too many ids of its own is told so, at the cost of a look, not of a walk
//! through all ids; when all together fill the table, an id is asked for without being kept here: two peers may then
//! send the same article, and the sequencer refuses one.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use newsreel_service::ConnectionId;
use newsreel_wire::IdHash;
use parking_lot::Mutex;

const SHARDS: usize = 64;
/// What is at its bound is looked through at most this often.
const TIDY_EVERY_MS: u64 = 100;

/// The time of what does not run out.
const FOR_EVER_MS: u64 = u64::MAX;

/// The ids are keyed hashes already: eight octets of one are as good as any hash of it.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, octets: &[u8]) {
        if let Some(first) = octets.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

type Stages = HashMap<IdHash, Stage, BuildHasherDefault<IdHasher>>;

/// Where an id stands on its way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// A connection was told to send it.
    Asked { by: ConnectionId, until_ms: u64 },
    /// `copies` of it lie in the queue of the sequencer.
    Queued { copies: u32 },
    /// The sequencer gave it a place; its commit is under way.
    Sequenced { copies: u32 },
}

/// What an offer of an id is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Nobody else has it: it is now asked for.
    Granted,
    /// It is on its way already: later.
    Taken,
    /// This connection has too many under way: later.
    TooMany,
}

/// What one connection was asked for, oldest first; ids that were sent since or ran out linger.
#[derive(Debug, Default)]
struct Asked {
    ids: VecDeque<IdHash>,
    tidied_ms: u64,
}

/// A part of the table.
#[derive(Debug, Default)]
struct Shard {
    stages: Stages,
    /// When it was looked through last.
    tidied_ms: u64,
}

impl Shard {
    /// Whether it takes one more id, up to `max`, without those that ran out.
    fn has_room(&mut self, max: usize, now_ms: u64) -> bool {
        if self.stages.len() < max {
            return true;
        }
        if now_ms.saturating_sub(self.tidied_ms) < TIDY_EVERY_MS {
            return false;
        }
        self.tidied_ms = now_ms;
        let ran_out =
            |stage: &Stage| matches!(stage, Stage::Asked { until_ms, .. } if *until_ms <= now_ms);
        self.stages.retain(|_, stage| !ran_out(stage));
        self.stages.len() < max
    }
}

/// The table of ids under way.
#[derive(Debug)]
pub(crate) struct Offers {
    shards: Vec<Mutex<Shard>>,
    shard_max: usize,
    connections: Mutex<HashMap<ConnectionId, Asked>>,
    per_connection_max: usize,
    wait_ms: u64,
}

impl Offers {
    /// An empty table; an id asked for and not sent is free again after `wait_ms`.
    pub(crate) fn new(all_max: usize, per_connection_max: usize, wait_ms: u64) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            // Ids are spread evenly, so that each shard has its share.
            shard_max: all_max.div_ceil(SHARDS),
            connections: Mutex::new(HashMap::new()),
            per_connection_max,
            wait_ms,
        }
    }

    fn shard(&self, id: &IdHash) -> &Mutex<Shard> {
        // The hash is keyed and uniform, so any octet serves.
        &self.shards[usize::from(id.0[15]) % SHARDS]
    }

    /// Asks for an id on behalf of a connection.
    pub(crate) fn claim(&self, id: &IdHash, by: ConnectionId, now_ms: u64) -> Claim {
        self.claim_until(id, by, now_ms, now_ms + self.wait_ms)
    }

    /// The same for an article that is here, however long it is looked at.  It has its room already, as what is queued has.
    pub(crate) fn hold(&self, id: &IdHash, by: ConnectionId, now_ms: u64) -> Claim {
        self.claim_until(id, by, now_ms, FOR_EVER_MS)
    }

    fn claim_until(&self, id: &IdHash, by: ConnectionId, now_ms: u64, until_ms: u64) -> Claim {
        let mut shard = self.shard(id).lock();
        let is_new = match shard.stages.get_mut(id) {
            Some(Stage::Asked {
                by: owner,
                until_ms: until,
            }) if *until > now_ms => {
                if *owner != by {
                    return Claim::Taken;
                }
                *until = until_ms.max(*until);
                return Claim::Granted;
            }
            Some(Stage::Queued { .. } | Stage::Sequenced { .. }) => return Claim::Taken,
            Some(Stage::Asked { .. }) => false,
            None => true,
        };
        if is_new && until_ms < FOR_EVER_MS && !shard.has_room(self.shard_max, now_ms) {
            // Others have filled the table, perhaps on purpose: that shuts nobody out.
            return Claim::Granted;
        }
        shard.stages.insert(*id, Stage::Asked { by, until_ms });
        drop(shard);
        if self.note(id, by, now_ms) {
            Claim::Granted
        } else {
            self.forget_asked(id, by);
            Claim::TooMany
        }
    }

    /// Remembers the id under its connection, so that it can be freed with it.
    fn note(&self, id: &IdHash, by: ConnectionId, now_ms: u64) -> bool {
        let mut connections = self.connections.lock();
        let asked = connections.entry(by).or_default();
        if asked.ids.len() >= self.per_connection_max {
            self.tidy(asked, by, now_ms);
        }
        if asked.ids.len() >= self.per_connection_max {
            return false;
        }
        asked.ids.push_back(*id);
        true
    }

    /// What was sent or ran out in the meantime does not count.  Peers send in the order they were asked in, so that
    /// a look at the oldest is mostly enough.
    fn tidy(&self, asked: &mut Asked, by: ConnectionId, now_ms: u64) {
        while let Some(oldest) = asked.ids.front()
            && !self.is_awaited(oldest, by, now_ms)
        {
            asked.ids.pop_front();
        }
        let is_due = now_ms.saturating_sub(asked.tidied_ms) >= TIDY_EVERY_MS;
        if asked.ids.len() >= self.per_connection_max && is_due {
            asked.ids.retain(|id| self.is_awaited(id, by, now_ms));
            asked.tidied_ms = now_ms;
        }
    }

    /// True while the connection is expected to send it.  What ran out is gone with this look: whoever asks drops it from
    /// the connection's list, and nobody else would find it again.
    fn is_awaited(&self, id: &IdHash, by: ConnectionId, now_ms: u64) -> bool {
        let mut shard = self.shard(id).lock();
        let Entry::Occupied(entry) = shard.stages.entry(*id) else {
            return false;
        };
        match *entry.get() {
            Stage::Asked {
                by: owner,
                until_ms,
            } if owner == by => {
                let is_awaited = until_ms > now_ms;
                if !is_awaited {
                    entry.remove();
                }
                is_awaited
            }
            _ => false,
        }
    }

    fn forget_asked(&self, id: &IdHash, by: ConnectionId) {
        if let Entry::Occupied(entry) = self.shard(id).lock().stages.entry(*id)
            && matches!(entry.get(), Stage::Asked { by: owner, .. } if *owner == by)
        {
            entry.remove();
        }
    }

    /// What this connection was asked for and sent was refused: others may be asked.
    pub(crate) fn unclaim(&self, id: &IdHash, by: ConnectionId) {
        self.forget_asked(id, by);
    }

    /// True when an offer of this id must wait.
    #[cfg(test)]
    pub(crate) fn is_under_way(&self, id: &IdHash, by: ConnectionId, now_ms: u64) -> bool {
        match self.shard(id).lock().stages.get(id) {
            None => false,
            Some(Stage::Asked {
                by: owner,
                until_ms,
            }) => *owner != by && *until_ms > now_ms,
            Some(Stage::Queued { .. } | Stage::Sequenced { .. }) => true,
        }
    }

    /// Whether the sequencer gave it a place and its commit is not done with.
    pub(crate) fn is_sequenced(&self, id: &IdHash) -> bool {
        let shard = self.shard(id).lock();
        matches!(shard.stages.get(id), Some(Stage::Sequenced { .. }))
    }

    /// The article itself has come: it goes to the sequencer.
    pub(crate) fn queue(&self, id: &IdHash) {
        let mut shard = self.shard(id).lock();
        let stage = shard
            .stages
            .entry(*id)
            .or_insert(Stage::Queued { copies: 0 });
        match stage {
            Stage::Queued { copies } | Stage::Sequenced { copies } => *copies += 1,
            Stage::Asked { .. } => *stage = Stage::Queued { copies: 1 },
        }
    }

    /// The sequencer takes this copy up.  False: another copy of it is being committed.
    pub(crate) fn sequence(&self, id: &IdHash) -> bool {
        let mut shard = self.shard(id).lock();
        let stage = shard
            .stages
            .entry(*id)
            .or_insert(Stage::Queued { copies: 1 });
        match *stage {
            Stage::Sequenced { .. } => false,
            Stage::Queued { copies } => {
                *stage = Stage::Sequenced { copies };
                true
            }
            Stage::Asked { .. } => {
                *stage = Stage::Sequenced { copies: 1 };
                true
            }
        }
    }

    /// One copy is done with: committed, refused or failed.  `was_sequenced` says whether this is
    /// the copy that had its place.
    pub(crate) fn finish(&self, id: &IdHash, was_sequenced: bool) {
        let mut shard = self.shard(id).lock();
        let Entry::Occupied(mut entry) = shard.stages.entry(*id) else {
            return;
        };
        let (Stage::Queued { copies } | Stage::Sequenced { copies }) = *entry.get() else {
            return;
        };
        if copies <= 1 {
            entry.remove();
        } else if was_sequenced {
            entry.insert(Stage::Queued { copies: copies - 1 });
        } else {
            match entry.get_mut() {
                Stage::Queued { copies } | Stage::Sequenced { copies } => *copies -= 1,
                Stage::Asked { .. } => {}
            }
        }
    }

    /// A connection ended: what it was asked for may be asked of others.
    pub(crate) fn release(&self, connection: ConnectionId) {
        let Some(asked) = self.connections.lock().remove(&connection) else {
            return;
        };
        for id in asked.ids {
            self.forget_asked(&id, connection);
        }
    }

    /// Ids under way now.
    pub(crate) fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().stages.len())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ConnectionId = ConnectionId(1);
    const B: ConnectionId = ConnectionId(2);

    fn id(n: u8) -> IdHash {
        IdHash([n; 16])
    }

    #[test]
    fn a_second_peer_waits_until_the_first_ends() {
        let offers = Offers::new(1000, 10, 1000);
        assert_eq!(offers.claim(&id(1), A, 0), Claim::Granted);
        assert_eq!(
            offers.claim(&id(1), A, 0),
            Claim::Granted,
            "the same peer may ask again"
        );
        assert_eq!(offers.claim(&id(1), B, 999), Claim::Taken);
        offers.release(A);
        assert_eq!(offers.claim(&id(1), B, 999), Claim::Granted);
    }

    #[test]
    fn an_offer_runs_out() {
        let offers = Offers::new(1000, 10, 1000);
        assert_eq!(offers.claim(&id(1), A, 0), Claim::Granted);
        assert_eq!(offers.claim(&id(1), B, 1000), Claim::Granted);
        offers.release(A);
        assert!(offers.is_under_way(&id(1), A, 1001), "B's claim outlives A");
    }

    #[test]
    fn a_connection_is_bounded_and_what_it_sent_does_not_count() {
        let offers = Offers::new(1000, 2, 1000);
        assert_eq!(offers.claim(&id(1), A, 0), Claim::Granted);
        assert_eq!(offers.claim(&id(2), A, 0), Claim::Granted);
        assert_eq!(offers.claim(&id(3), A, 0), Claim::TooMany);
        assert!(
            !offers.is_under_way(&id(3), B, 0),
            "a refused claim leaves nothing"
        );
        offers.queue(&id(1));
        assert_eq!(offers.claim(&id(3), A, 0), Claim::Granted);
    }

    #[test]
    fn a_full_connection_is_looked_through_now_and_then_only() {
        let offers = Offers::new(1000, 3, 60_000);
        for n in 1..=3 {
            assert_eq!(offers.claim(&id(n), A, 1000), Claim::Granted);
        }
        assert_eq!(
            offers.claim(&id(2), A, 1000),
            Claim::Granted,
            "asked for already: no more than before"
        );
        assert_eq!(offers.claim(&id(4), A, 1000), Claim::TooMany);
        offers.queue(&id(2));
        assert_eq!(
            offers.claim(&id(4), A, 1001),
            Claim::TooMany,
            "looked through a moment ago, and the oldest is still awaited"
        );
        assert_eq!(
            offers.claim(&id(4), A, 1000 + TIDY_EVERY_MS),
            Claim::Granted
        );
        offers.queue(&id(1));
        assert_eq!(
            offers.claim(&id(5), A, 1001 + TIDY_EVERY_MS),
            Claim::Granted,
            "the oldest was sent"
        );
    }

    #[test]
    fn a_full_table_shuts_nobody_out() {
        // All these ids are in one shard, which takes two.
        let id = |n: u8| IdHash([n, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
        let offers = Offers::new(2 * SHARDS, 10, 1000);
        assert_eq!(offers.claim(&id(1), A, 5000), Claim::Granted);
        assert_eq!(offers.claim(&id(2), B, 5500), Claim::Granted);
        assert_eq!(offers.claim(&id(3), B, 5500), Claim::Granted);
        assert_eq!(offers.len(), 2, "it is not kept");
        assert_eq!(offers.claim(&id(2), B, 5500), Claim::Granted, "it is there");
        assert_eq!(offers.claim(&id(3), B, 6000), Claim::Granted, "one ran out");
        assert_eq!(offers.claim(&id(4), A, 6000), Claim::Granted);
        assert!(!offers.is_under_way(&id(4), B, 6000), "nor this");
        offers.queue(&id(4));
        assert!(
            offers.is_under_way(&id(4), A, 6000),
            "what was sent is always taken up"
        );
        offers.release(B);
        assert_eq!(offers.claim(&id(5), A, 6000), Claim::Granted);
    }

    /// A post was looked at by filters for longer than a peer has to send what it offered: another of its message-id went its own way.
    #[test]
    fn what_is_held_does_not_run_out() {
        // One shard, which takes one.
        let offers = Offers::new(SHARDS, 10, 1000);
        let id = |n: u8| IdHash([n, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
        assert_eq!(offers.claim(&id(9), A, 0), Claim::Granted);
        assert_eq!(offers.hold(&id(1), A, 0), Claim::Granted);
        assert_eq!(offers.claim(&id(1), A, 5), Claim::Granted, "its own again");
        assert_eq!(offers.hold(&id(1), B, u64::MAX / 2), Claim::Taken);
        offers.unclaim(&id(1), A);
        assert_eq!(offers.hold(&id(1), B, 6), Claim::Granted);
        offers.release(B);
        assert_eq!(offers.claim(&id(1), A, 7), Claim::Granted);
    }

    #[test]
    fn what_ran_out_does_not_pile_up() {
        let offers = Offers::new(1000, 3, 1000);
        for n in 0..=255 {
            let now_ms = u64::from(n) * 1000;
            assert_eq!(offers.claim(&id(n), A, now_ms), Claim::Granted, "{n}");
            assert!(offers.len() <= 4, "{} after {n}", offers.len());
        }
        offers.release(A);
        assert_eq!(offers.len(), 0, "nothing outlives its connection");
    }

    #[test]
    fn two_copies_one_is_sequenced() {
        let offers = Offers::new(1000, 2, 1000);
        offers.queue(&id(1));
        offers.queue(&id(1));
        assert!(offers.sequence(&id(1)));
        assert!(!offers.sequence(&id(1)));
        offers.finish(&id(1), true);
        assert!(
            offers.is_under_way(&id(1), B, 0),
            "the other copy is not answered yet"
        );
        assert!(
            offers.sequence(&id(1)),
            "the first copy failed, so the second may try"
        );
        offers.finish(&id(1), true);
        assert_eq!(offers.len(), 0);
    }
}
