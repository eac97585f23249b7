//! Which numbers of a group a missing pack may hold: those between its neighbours' and no others.
//!
//! Rows rise by number from the oldest pack to the newest part, so what is known on both sides of a missing pack bounds
//! what can be in it.  A group whose numbers go on without a gap has nothing there and is answered as ever.

use newsreel_wire::{ArticleNumber, GroupId};

use super::pack::Pack;
use super::{Overview, Parts};
use crate::error::{Error, Result};
use crate::liveness::Share;
use crate::sealed::RunMeta;

/// Numbers of which nothing is known, and the missing pack that may have them.
#[derive(Debug, Clone, Copy)]
struct Gap {
    pack: RunMeta,
    first: u64,
    last: u64,
}

/// The first and the last number that a pack has of a group.
fn bounds(pack: &Pack, group: GroupId) -> Option<(u64, u64)> {
    let blocks = pack.find(group, 0, u64::MAX);
    let (first, last) = (blocks.start, blocks.end.checked_sub(1)?);
    let first = pack.block(first).filter(|_| first <= last)?;
    Some((first.first, pack.block(last)?.last))
}

impl Overview {
    /// Visits the gaps of a group, from the oldest.
    fn gaps(&self, parts: &Parts, group: GroupId, mut visit: impl FnMut(&Gap)) {
        let (mut missing, mut known): (Option<RunMeta>, u64) = (None, 0);
        let mut close = |missing: Option<RunMeta>, known: u64, next: u64| {
            let (first, last) = (known + 1, next.saturating_sub(1));
            if let Some(pack) = missing
                && first <= last
            {
                visit(&Gap { pack, first, last });
            }
        };
        for slot in parts.runs.slots.iter() {
            let Some(pack) = &slot.run else {
                missing.get_or_insert(slot.meta);
                continue;
            };
            if let Some((first, last)) = bounds(pack, group) {
                close(missing.take(), known, first);
                known = known.max(last);
            }
        }
        let in_memory = parts.parts().find_map(|part| part.bounds(group));
        // The mark rises before the row is there, so it is no less than what is.
        let next = in_memory.map_or_else(|| self.marks.get(group).0 + 1, |(first, _)| first);
        close(missing, known, next);
    }

    /// Whether a row with this number is one that a pack has, or had if it is missing: by number alone, because what was moved
    /// lies in the store behind articles of later packs.  Several packs may be missing between two that are there; then the
    /// oldest of them has it.
    pub(crate) fn belongs(&self, run: u64, group: GroupId, number: u64) -> bool {
        let parts = self.layers.load();
        let mut slots = parts.runs.slots.iter();
        let Some(slot) = slots.find(|slot| slot.meta.id == run) else {
            return false;
        };
        if let Some(pack) = &slot.run {
            // Its list of blocks is good.
            let bounds = bounds(pack, group);
            return bounds.is_some_and(|(first, last)| (first..=last).contains(&number));
        }
        let mut belongs = false;
        self.gaps(&parts, group, |gap| {
            belongs |= gap.pack.id == run && (gap.first..=gap.last).contains(&number);
        });
        belongs
    }

    /// Refuses to go on when a pack is missing that may have rows of a group with numbers of `from..=to`.
    pub(super) fn all_there(
        &self,
        parts: &Parts,
        group: GroupId,
        (from, to): (u64, u64),
    ) -> Result<()> {
        if parts.runs.missing().is_none() {
            return Ok(());
        }
        let mut missing = None;
        self.gaps(parts, group, |gap| {
            if gap.first <= to && from <= gap.last {
                missing.get_or_insert(gap.pack);
            }
        });
        match missing {
            None => Ok(()),
            Some(meta) => Err(Error::Incomplete {
                path: self.layers.path(&meta),
            }),
        }
    }

    /// No number below this one is alive, as far as the lists of blocks tell; `None`: no number at all is.
    pub(crate) fn low_estimate(&self, group: GroupId) -> Option<ArticleNumber> {
        let parts = self.layers.load();
        let mut floors = self.floors();
        let mut low: Option<u64> = None;
        self.gaps(&parts, group, |gap| {
            low = Some(low.map_or(gap.first, |low| low.min(gap.first)));
        });
        for (pack, block) in Self::blocks(&parts, group, 0, u64::MAX) {
            if low.is_some_and(|low| low <= block.first) {
                break;
            }
            if pack.alive(&block, &mut floors).share != Share::None {
                low = Some(block.first);
            }
        }
        let in_memory = || {
            let mut parts = parts.parts();
            parts.find_map(|part| part.live_rows(group, &mut floors).low)
        };
        low.or_else(in_memory).map(ArticleNumber)
    }
}
