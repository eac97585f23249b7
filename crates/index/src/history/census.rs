//! How many articles each buffer has, as the history knows it: exactly where it is small, estimated from a part of it where it is not.
//!
//! Keys are keyed hashes, evenly spread, and every bucket is sorted by them.  So the entries below some key are a fair sample of
//! all, and lie together at the front of each bucket: of a history of whatever size a bounded part is read.  Within that
//! part everything holds that holds for look-ups: the newest entry of a hash counts, if its article is there.

use std::collections::{BTreeMap, HashMap};

use newsreel_wire::{BufferId, IdHash};

use super::History;
use super::page::Stored;
use crate::error::Result;
use crate::liveness::Floors;
use crate::sealed::window::Window;

/// So many are looked at for a report: 6 MB at most, and where each of ten buffers has as much, right within two percent.
pub const CENSUS_ROWS_MAX: u64 = 1 << 17;

/// What lies in one buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Population {
    /// Articles that are there: neither overwritten nor withdrawn.
    pub articles: u64,
    /// Octets of them, as stored.
    pub octets: u64,
}

/// What lies in all buffers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Census {
    /// Those in which there is something.
    pub buffers: BTreeMap<BufferId, Population>,
    /// All entries were looked at; otherwise these are estimates.
    pub is_exact: bool,
}

impl History {
    /// How many articles each buffer has, by a look at no more entries than about so many.
    ///
    /// # Errors
    /// When a bucket cannot be read or is missing: nothing is told then.
    pub fn census(&self, rows_max: u64) -> Result<Census> {
        let layers = self.layers.load();
        self.layers.all_there(&layers)?;
        let sealed: u64 = layers.runs.slots.iter().map(|slot| slot.meta.rows).sum();
        let recent: u64 = layers.parts().map(|part| part.rows()).sum();
        // The hashes that begin with so many zeros are looked at.
        let parts = (sealed + recent).div_ceil(rows_max.max(1));
        let zeros = parts.next_power_of_two().trailing_zeros();
        let is_meant = |hash: &IdHash| hash.prefix().leading_zeros() >= zeros;
        let mut newest: HashMap<IdHash, Stored> = HashMap::new();
        for bucket in layers.runs.open() {
            let (mut window, mut entries) = (Window::default(), Vec::new());
            for page in 0..bucket.pages() {
                let read = bucket.read_page(page, &mut window, &mut entries);
                read.map_err(|error| self.layers.noted(bucket.meta(), error))?;
                let meant = entries.iter().take_while(|stored| is_meant(&stored.hash));
                newest.extend(meant.map(|stored| (stored.hash, *stored)));
                if entries.last().is_none_or(|last| !is_meant(&last.hash)) {
                    break;
                }
            }
        }
        for part in layers.parts() {
            part.visit_first(zeros, |stored| {
                newest.insert(stored.hash, *stored);
            });
        }
        let mut census = Census {
            is_exact: zeros == 0,
            ..Census::default()
        };
        let mut floors = Floors::new(self.liveness.as_ref());
        for stored in newest.values() {
            let Some(token) = stored.entry().token.filter(|token| floors.is_live(token)) else {
                continue;
            };
            let found = census.buffers.entry(token.buffer()).or_default();
            found.articles += 1 << zeros;
            found.octets += u64::from(token.len()) << zeros;
        }
        Ok(census)
    }
}
