//! How many articles of a group are alive, and the lowest of them: exact, and computed at most once per epoch.
//!
//! What is sealed or frozen changes only with the buffers' marks (their epoch), with freezes and with rebuilds, so its
//! share is kept for each group under these; the newest part is counted each time, which its own facts make cheap.

use std::collections::HashMap;

use newsreel_wire::{ArticleNumber, GroupId};
use parking_lot::Mutex;

use super::pack::{Block, Pack};
use super::read::blocks_of;
use super::tail::LiveRows;
use super::{Overview, Parts};
use crate::error::Result;
use crate::liveness::{Floors, Share};
use crate::sealed::reader::Wait;

const SHARDS: usize = 32;

/// What is alive of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveFacts {
    /// The lowest number alive; `None`: none is.
    pub low: Option<ArticleNumber>,
    /// How many are alive.
    pub count: u64,
}

/// The share of a group that only marks, freezes and rebuilds change.
#[derive(Debug, Clone, Copy)]
struct Settled {
    epoch: u64,
    /// The snapshot's count.
    settled: u64,
    rows: LiveRows,
}

/// Shares computed before, for a bounded number of groups.
#[derive(Debug)]
pub(crate) struct FactsCache {
    shards: Box<[Mutex<HashMap<GroupId, Settled>>]>,
    shard_max: usize,
}

impl FactsCache {
    pub(crate) fn new(groups_max: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            shard_max: groups_max / SHARDS + 1,
        }
    }

    fn get(&self, group: GroupId, epoch: u64, settled: u64) -> Option<LiveRows> {
        let shard = self.shards[group.0 as usize % SHARDS].lock();
        let kept = shard.get(&group)?;
        (kept.epoch == epoch && kept.settled == settled).then_some(kept.rows)
    }

    fn put(&self, group: GroupId, settled: Settled) {
        let mut shard = self.shards[group.0 as usize % SHARDS].lock();
        if shard.len() >= self.shard_max && !shard.contains_key(&group) {
            // Whoever asks about so many groups asks about all of them in turn: there is no better victim.
            shard.clear();
        }
        shard.insert(group, settled);
    }
}

impl Overview {
    /// What is alive of a group, exact at this moment.
    ///
    /// # Errors
    /// When the disk fails, something is damaged or missing that may count, or
    /// [`Error::WouldBlock`](crate::Error::WouldBlock).
    pub fn live_facts(&self, group: GroupId, wait: Wait) -> Result<LiveFacts> {
        let epoch = self.liveness.epoch();
        let parts = self.layers.load();
        let mut floors = self.floors();
        let settled = match self.facts.get(group, epoch, parts.settled) {
            Some(rows) => rows,
            None => {
                let rows = self.settled(&parts, group, &mut floors, wait)?;
                let settled = Settled {
                    epoch,
                    settled: parts.settled,
                    rows,
                };
                self.facts.put(group, settled);
                rows
            }
        };
        let newest = parts.active.live_rows(group, &mut floors);
        let mut count = settled.count + newest.count;
        let mut low = settled.low.or(newest.low);
        if let Some(withdrawn) = self.withdrawn.of(group) {
            count = count.saturating_sub(withdrawn.still_alive(&mut floors));
            low = match low {
                Some(low) => self.first_live(group, low, wait)?,
                None => None,
            };
        }
        Ok(LiveFacts {
            low: low.map(ArticleNumber),
            count,
        })
    }

    fn settled(
        &self,
        parts: &Parts,
        group: GroupId,
        floors: &mut Floors<'_>,
        wait: Wait,
    ) -> Result<LiveRows> {
        self.all_there(parts, group, (0, u64::MAX))?;
        let mut sum = LiveRows::default();
        for (pack, block) in blocks_of(parts, group) {
            match self.block_facts(pack, &block, sum.low.is_none(), floors, wait) {
                Ok(rows) => add(&mut sum, rows),
                Err(error) => return Err(self.layers.noted(pack.meta(), error)),
            }
        }
        if let Some(frozen) = &parts.frozen {
            add(&mut sum, frozen.live_rows(group, floors));
        }
        Ok(sum)
    }

    fn block_facts(
        &self,
        pack: &Pack,
        block: &Block,
        wants_low: bool,
        floors: &mut Floors<'_>,
        wait: Wait,
    ) -> Result<LiveRows> {
        let alive = pack.alive(block, floors);
        match alive.share {
            Share::None => return Ok(LiveRows::default()),
            Share::All => {
                return Ok(LiveRows {
                    count: alive.rows,
                    low: Some(block.first),
                });
            }
            Share::Some if alive.exact && !wants_low => {
                return Ok(LiveRows {
                    count: alive.rows,
                    low: None,
                });
            }
            Share::Some => {}
        }
        let columns = pack.columns(block, &self.cache, wait)?;
        let mut rows = LiveRows::default();
        for row in 0..columns.len() {
            if floors.is_live(&columns.token(row)) {
                rows.low.get_or_insert(columns.number(row));
                rows.count += 1;
            }
        }
        Ok(rows)
    }
}

fn add(sum: &mut LiveRows, rows: LiveRows) {
    sum.count += rows.count;
    sum.low = sum.low.or(rows.low);
}
