//! One file's octets, and which of them the medium has.
//!
//! The pages hold what a reader sees.  For every 512-octet sector that differs from the medium, `pending` or `lost`
//! keeps what the medium has: `pending` sectors become durable at the next sync; `lost` ones were dirty when a sync
//! failed, so the page counts as clean and no later sync writes it, until it is written again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::dice::{Dice, Survival};

const PAGE_BYTES: usize = 4096;
const SECTOR_BYTES: usize = 512;
const SECTORS_PER_PAGE: u64 = (PAGE_BYTES / SECTOR_BYTES) as u64;

type Page = Arc<[u8; PAGE_BYTES]>;
/// What the medium has for a sector; `None` is zeros.
type Sector = Option<Box<[u8]>>;

/// The disk's size and how much of it files use.
#[derive(Debug)]
pub(super) struct Room {
    limit: u64,
    used: AtomicU64,
}

impl Room {
    pub(super) const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: AtomicU64::new(0),
        }
    }

    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    pub(super) fn free(&self) -> u64 {
        self.limit.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    fn take(&self, bytes: u64) -> bool {
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok()
    }

    fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The disk is full.
#[derive(Debug)]
pub(super) struct NoRoom;

#[derive(Debug)]
pub(super) struct Content {
    pages: BTreeMap<u64, Page>,
    len: u64,
    durable_len: u64,
    pending: BTreeMap<u64, Sector>,
    lost: BTreeMap<u64, Sector>,
    room: Arc<Room>,
}

impl Drop for Content {
    fn drop(&mut self) {
        self.room.give(self.len);
    }
}

/// Splits a range at multiples of `unit`: (unit's number, from, to) with `from..to` inside the unit.
fn spans(offset: u64, len: u64, unit: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = offset;
    let end = offset.saturating_add(len);
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let number = at / unit as u64;
        let from = (at % unit as u64) as usize;
        let to = unit.min(from + usize::try_from(end - at).unwrap_or(unit));
        at += (to - from) as u64;
        Some((number, from, to))
    })
}

/// A sector's place: its page and the range inside.
const fn place_of(sector: u64) -> (u64, usize) {
    let within = (sector % SECTORS_PER_PAGE) as usize;
    (sector / SECTORS_PER_PAGE, within * SECTOR_BYTES)
}

impl Content {
    pub(super) const fn new(room: Arc<Room>) -> Self {
        Self {
            pages: BTreeMap::new(),
            len: 0,
            durable_len: 0,
            pending: BTreeMap::new(),
            lost: BTreeMap::new(),
            room,
        }
    }

    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Sectors that a power cut could take.
    pub(super) fn unsynced(&self) -> usize {
        self.pending.len() + self.lost.len()
    }

    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let left = self.len.saturating_sub(offset);
        let len = left.min(buf.len() as u64);
        let mut done = 0;
        for (page, from, to) in spans(offset, len, PAGE_BYTES) {
            let Some(target) = buf.get_mut(done..done + (to - from)) else {
                break;
            };
            match self.pages.get(&page).and_then(|page| page.get(from..to)) {
                Some(source) => target.copy_from_slice(source),
                None => target.fill(0),
            }
            done += to - from;
        }
        done
    }

    pub(super) fn write(&mut self, buf: &[u8], offset: u64) -> Result<(), NoRoom> {
        let len = buf.len() as u64;
        if len == 0 {
            return Ok(());
        }
        self.grow(offset.saturating_add(len))?;
        for (sector, _, _) in spans(offset, len, SECTOR_BYTES) {
            self.remember(sector);
        }
        self.patch(buf, offset);
        Ok(())
    }

    pub(super) fn zero(&mut self, offset: u64, len: u64) -> Result<(), NoRoom> {
        let end = offset.saturating_add(len);
        if len == 0 {
            return Ok(());
        }
        self.grow(end)?;
        // Where there is no page there are zeros already: nothing to remember, nothing to write.
        let first = offset / PAGE_BYTES as u64;
        let touched: Vec<u64> = self
            .pages
            .range(first..end.div_ceil(PAGE_BYTES as u64))
            .map(|(page, _)| *page)
            .collect();
        for page in touched {
            let start = page * PAGE_BYTES as u64;
            let from = offset.max(start);
            let to = end.min(start + PAGE_BYTES as u64);
            for (sector, _, _) in spans(from, to - from, SECTOR_BYTES) {
                self.remember(sector);
            }
            if to - from == PAGE_BYTES as u64 {
                self.pages.remove(&page);
            } else {
                self.patch(&vec![0; (to - from) as usize], from);
            }
        }
        Ok(())
    }

    pub(super) fn set_len(&mut self, len: u64) -> Result<(), NoRoom> {
        if len >= self.len {
            return self.grow(len);
        }
        self.zero(len, self.len - len)?;
        self.room.give(self.len - len);
        self.len = len;
        Ok(())
    }

    pub(super) fn grow(&mut self, len: u64) -> Result<(), NoRoom> {
        if len > self.len {
            if !self.room.take(len - self.len) {
                return Err(NoRoom);
            }
            self.len = len;
        }
        Ok(())
    }

    /// A good sync.
    pub(super) fn sync(&mut self) {
        self.pending.clear();
        self.durable_len = self.len;
    }

    /// A failed sync: what was dirty counts as clean from now on, though the medium does not have it.
    pub(super) fn lose_unsynced(&mut self) {
        self.lost.append(&mut self.pending);
    }

    /// Drops clean pages: where a sync failed, the medium's octets show again.
    pub(super) fn drop_cache(&mut self, offset: u64, len: u64) {
        let sectors: Vec<u64> = spans(offset, len.min(self.len), SECTOR_BYTES)
            .map(|(sector, ..)| sector)
            .collect();
        for sector in sectors {
            if let Some(medium) = self.lost.remove(&sector) {
                self.restore(sector, medium.as_deref());
            }
        }
    }

    /// Changes octets on the medium behind everyone's back.
    pub(super) fn corrupt(&mut self, change: impl Fn(&mut u8), offset: u64) {
        let sector = offset / SECTOR_BYTES as u64;
        let within = (offset % SECTOR_BYTES as u64) as usize;
        for saved in [self.pending.get_mut(&sector), self.lost.get_mut(&sector)] {
            let Some(saved) = saved else { continue };
            let octets = saved.get_or_insert_with(|| vec![0; SECTOR_BYTES].into_boxed_slice());
            octets.get_mut(within).map(&change);
        }
        let mut octet = [0];
        self.read(&mut octet, offset);
        let [ref mut only] = octet;
        change(only);
        self.patch(&octet, offset);
    }

    /// What a power cut leaves of this file.
    pub(super) fn crashed(&self, dice: &mut Dice, room: &Arc<Room>, worst: bool) -> Self {
        let how = if worst {
            Survival::Nothing
        } else {
            dice.survival()
        };
        let mut after = Self::new(Arc::clone(room));
        after.pages = self.pages.clone();
        after.len = self.len;
        for set in [&self.lost, &self.pending] {
            for (at, (sector, medium)) in set.iter().enumerate() {
                if !dice.survives(how, at, set.len()) {
                    after.restore(*sector, medium.as_deref());
                }
            }
        }
        let keeps_len = dice.survives(how, 0, 1);
        let len = if keeps_len {
            self.len
        } else {
            self.durable_len
        };
        // Room counts what is there; the old disk's room had it, so that it cannot be short here.
        after.cut_pages(len);
        after.len = len;
        room.used.fetch_add(len, Ordering::Relaxed);
        after.sync();
        after
    }

    /// Removes the octets at and after `len`.
    fn cut_pages(&mut self, len: u64) {
        let within = (len % PAGE_BYTES as u64) as usize;
        self.pages.split_off(&len.div_ceil(PAGE_BYTES as u64));
        if let Some(page) = self.pages.get_mut(&(len / PAGE_BYTES as u64))
            && let Some(rest) = Arc::make_mut(page).get_mut(within..)
        {
            rest.fill(0);
        }
    }

    /// Writes into the pages only.
    fn patch(&mut self, buf: &[u8], offset: u64) {
        let mut rest = buf;
        for (page, from, to) in spans(offset, buf.len() as u64, PAGE_BYTES) {
            let (part, after) = rest.split_at(to - from);
            let page = self
                .pages
                .entry(page)
                .or_insert_with(|| Arc::new([0; PAGE_BYTES]));
            if let Some(target) = Arc::make_mut(page).get_mut(from..to) {
                target.copy_from_slice(part);
            }
            rest = after;
        }
    }

    /// Keeps what the medium has for a sector that is about to change.
    fn remember(&mut self, sector: u64) {
        if self.pending.contains_key(&sector) {
            return;
        }
        let medium = self
            .lost
            .remove(&sector)
            .unwrap_or_else(|| self.sector(sector));
        self.pending.insert(sector, medium);
    }

    fn sector(&self, sector: u64) -> Sector {
        let (page, from) = place_of(sector);
        self.pages
            .get(&page)?
            .get(from..from + SECTOR_BYTES)
            .map(Box::from)
    }

    fn restore(&mut self, sector: u64, medium: Option<&[u8]>) {
        let (page, from) = place_of(sector);
        let Some(page) = self.pages.get_mut(&page) else {
            if let Some(medium) = medium {
                self.patch(medium, sector * SECTOR_BYTES as u64);
            }
            return;
        };
        if let Some(target) = Arc::make_mut(page).get_mut(from..from + SECTOR_BYTES) {
            match medium {
                Some(medium) => target.copy_from_slice(medium),
                None => target.fill(0),
            }
        }
    }
}
