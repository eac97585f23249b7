//! One open buffer: the marks that the sequencer, readers and tools share, and its home.
//!
//! The floor rises before anything in the region below it is touched and never falls.  A buffer that failed once
//! takes nothing more until it is opened again.  A buffer that is opened beside a server to look at it looks for the
//! server's floor in its files before it calls anything damaged.

mod away;
mod complaints;

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

use newsreel_wire::{BufferId, Position, SetId};
use parking_lot::Mutex;

use self::complaints::Complaints;
use super::format::FileKey;
use super::geometry::Geometry;
use super::home::Home;
use super::packing::Unpacker;
use super::recent::Recent;
use crate::error::{Error, Result};

/// A buffer as everyone may see it.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) id: BufferId,
    pub(crate) name: String,
    pub(crate) set: SetId,
    /// Its files.
    pub(crate) home: Arc<dyn Home>,
    /// Its layout when it was opened.
    geometry: Geometry,
    /// Where articles end by now: it may have been made larger.
    data_end: AtomicU64,
    /// Where cycles end that have not come further: before that, while it becomes smaller.
    closes_at: AtomicU64,
    /// It has been larger, and the log may tell of places behind its end.
    pub(crate) was_larger: bool,
    pub(crate) key: FileKey,
    /// What its home says of where it stood was made up.
    pub(crate) is_rescued: bool,
    /// Its blocks may be larger than its layout says: zeros behind an article may be what fills the last of them.
    pub(crate) has_fills: AtomicBool,
    /// What people should know of it.
    complaints: Complaints,
    /// It was told of a file that it is not there, which may be mended since.
    pub(super) misses_file: AtomicBool,
    pub(crate) read_only: bool,
    /// Stretches of which the log knows and that are not there.
    pub(crate) lacks: Mutex<Vec<Range<Position>>>,
    /// It takes nothing new, and what it has goes as the rest of its set is overwritten.
    retired: AtomicBool,
    /// Of what was placed before here nothing is alive; zero: that was not found.
    emptied: AtomicU64,
    /// Positions below are gone.
    floor: AtomicU64,
    /// Behind the last record that was placed.
    pub(crate) end: AtomicU64,
    /// When that arrived, seconds since 1970.
    pub(crate) arrival: AtomicU64,
    /// Behind the last batch that was written.
    pub(crate) written: AtomicU64,
    /// Behind the last batch that is surely on the medium.
    pub(crate) synced: AtomicU64,
    /// The first cycle in which something was written that is not synced.
    unsynced_from: AtomicU32,
    /// Whoever syncs holds it until it is known how that ended.
    syncing: Mutex<()>,
    /// Up to here it may be written.
    pub(crate) reserved: AtomicU64,
    suspended: AtomicBool,
    /// ... because the directory of its files is not there.
    is_away: AtomicBool,
    /// Counts the files that were given up because writing to them failed: batches for those are refused.
    given_up: AtomicU64,
    /// ... and one was, since it was asked.
    has_refused: AtomicBool,
    why_suspended: Mutex<String>,
    /// The newest batches, for readers.
    pub(crate) recent: Recent,
    /// What is needed for articles that are packed.
    pub(crate) unpacker: Unpacker,
    /// Batches are written through the page cache.
    pub(crate) is_cached: bool,
}

/// What a method knows of a buffer that it opens.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) id: BufferId,
    pub(crate) name: String,
    pub(crate) set: SetId,
    pub(crate) home: Arc<dyn Home>,
    pub(crate) geometry: Geometry,
    /// Where cycles end, if that is before the end.
    pub(crate) closes_at: Option<u64>,
    pub(crate) was_larger: bool,
    pub(crate) key: FileKey,
    pub(crate) is_rescued: bool,
    pub(crate) complaint: Option<String>,
    pub(crate) read_only: bool,
    pub(crate) recent: Recent,
    pub(crate) is_cached: bool,
}

impl Buffer {
    /// A buffer that stands where its home says.
    pub(crate) fn new(parts: Parts) -> Self {
        let hints = parts.home.opened();
        Self {
            id: parts.id,
            name: parts.name,
            set: parts.set,
            home: parts.home,
            geometry: parts.geometry,
            data_end: AtomicU64::new(parts.geometry.data_end),
            closes_at: AtomicU64::new(parts.closes_at.unwrap_or(parts.geometry.data_end)),
            was_larger: parts.was_larger,
            key: parts.key,
            is_rescued: parts.is_rescued,
            has_fills: AtomicBool::new(false),
            complaints: Complaints::from(parts.complaint),
            misses_file: AtomicBool::new(false),
            read_only: parts.read_only,
            lacks: Mutex::default(),
            retired: AtomicBool::new(false),
            emptied: AtomicU64::new(0),
            floor: AtomicU64::new(hints.reserved.one_cycle_before().0),
            end: AtomicU64::new(hints.end.0),
            arrival: AtomicU64::new(hints.arrival.0),
            written: AtomicU64::new(hints.end.0),
            synced: AtomicU64::new(hints.end.0),
            unsynced_from: AtomicU32::new(u32::MAX),
            syncing: Mutex::default(),
            reserved: AtomicU64::new(hints.reserved.0),
            suspended: AtomicBool::new(false),
            is_away: AtomicBool::new(false),
            given_up: AtomicU64::new(0),
            has_refused: AtomicBool::new(false),
            why_suspended: Mutex::default(),
            recent: parts.recent,
            unpacker: Unpacker::default(),
            is_cached: parts.is_cached,
        }
    }

    /// Its layout as it is now.
    pub(crate) fn geometry(&self) -> Geometry {
        Geometry {
            data_end: self.data_end.load(Ordering::Acquire),
            ..self.geometry
        }
    }

    /// It has as much room from now on; by the sequencer's thread alone, and less only where nothing is alive behind that.
    pub(crate) fn resize(&self, data_end: u64) {
        self.data_end.store(data_end, Ordering::Release);
        self.close_at(data_end);
    }

    /// Cycles that have not come further end here from now on; by the sequencer's thread alone.
    pub(crate) fn close_at(&self, end: u64) {
        self.closes_at.store(end, Ordering::Release);
    }

    /// Where cycles end that have not come further.
    pub(crate) fn closes_at(&self) -> u64 {
        self.closes_at.load(Ordering::Acquire)
    }

    /// How much comes, where it stands here, until nothing is alive behind the end that it is to have: what lay there up to the end of this
    /// cycle goes with the end of the next.
    pub(crate) fn left_of_narrowing(&self, last_cycle: u32, stands: Position) -> u64 {
        let closes_at = self.closes_at();
        let end = match stands.offset() > closes_at {
            true => self.geometry().data_end,
            false => closes_at,
        };
        let rounds = last_cycle.saturating_add(2).saturating_sub(stands.cycle());
        match rounds {
            // Or nothing has ever lain there.
            _ if last_cycle == 0 => 0,
            0 => 0,
            rounds => end - stands.offset() + u64::from(rounds - 1) * self.room(),
        }
    }

    /// Room for what comes, octets.
    pub(crate) fn room(&self) -> u64 {
        self.closes_at() - self.geometry.data_start
    }

    /// The largest article it takes.
    pub(crate) fn article_octets_max(&self) -> u64 {
        self.home.article_octets_max(self.room())
    }

    /// Positions below this are gone.
    pub(crate) fn floor(&self) -> Position {
        Position(self.floor.load(Ordering::SeqCst))
    }

    /// Whether a record that does not look sound should: then it is damaged.  Who only looks beside a server keeps the
    /// floor of when it looked first, as views and log do; what the server overwrites since is told by its files, which
    /// it writes before.
    pub(crate) fn should_be_sound(&self, position: Position) -> bool {
        fence(Ordering::SeqCst);
        position >= self.floor() && !(self.read_only && position < self.home.floor_by_now())
    }

    /// Everything below `floor` is gone from now on; it never comes back.
    pub(crate) fn raise_floor(&self, floor: Position) {
        self.floor.fetch_max(floor.0, Ordering::SeqCst);
    }

    /// The floor as the log has it, which may lie below the hint of the header when the log is older.
    pub(crate) fn reset_floor(&self, floor: Position) {
        self.floor.store(floor.0, Ordering::SeqCst);
    }

    /// Whether it may be written.
    pub(crate) fn is_usable(&self) -> bool {
        !self.read_only && !self.suspended.load(Ordering::Relaxed)
    }

    /// Whether it takes articles.
    pub(crate) fn takes_articles(&self) -> bool {
        self.is_usable() && !self.is_retired()
    }

    /// Whether it takes articles, unless it fails.
    pub(crate) fn is_for_articles(&self) -> bool {
        !self.read_only && !self.is_retired()
    }

    /// Whether it takes nothing new, and drains.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::SeqCst)
    }

    /// It takes nothing new from the next article on, or takes articles again.
    pub(crate) fn retire(&self, retired: bool) {
        self.retired.store(retired, Ordering::SeqCst);
    }

    /// Whether it is retired and nothing in it is alive any more.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_retired() && self.floor().0 >= self.end.load(Ordering::SeqCst)
    }

    /// Nothing that was placed before here is alive, though it was not overwritten.
    pub(crate) fn emptied_before(&self, end: Position) {
        self.emptied.store(end.0, Ordering::SeqCst);
    }

    /// Whether that is known of all that was placed before here.
    pub(crate) fn is_emptied(&self, end: Position) -> bool {
        self.emptied.load(Ordering::SeqCst) == end.0
    }

    /// Takes it out of use; what is in it can still be read.
    pub(crate) fn suspend(&self, why: &str) {
        let mut told = self.why_suspended.lock();
        if !self.suspended.swap(true, Ordering::Relaxed) {
            why.clone_into(&mut told);
        }
    }

    /// A write to it that failed suspends it.
    pub(crate) fn unless_failed(&self, result: newsreel_host::Result<()>) -> Result<()> {
        result.map_err(|error| {
            self.suspend(&error.to_string());
            error.into()
        })
    }

    /// Why it takes nothing, if so.
    pub(crate) fn suspension(&self) -> Option<String> {
        let is_suspended = self.suspended.load(Ordering::Relaxed);
        is_suspended.then(|| self.why_suspended.lock().clone())
    }

    /// In these cycles something is written now.
    pub(crate) fn writes(&self, from: u32) {
        self.unsynced_from.fetch_min(from, Ordering::SeqCst);
    }

    /// Syncs what was written up to this cycle, also by batches that nobody had synced by themselves.
    pub(crate) fn sync_to(&self, from: u32, end: u32, given_up: u64) -> Result<()> {
        let from = self.unsynced_from.load(Ordering::SeqCst).min(from);
        self.sync(from..=end, given_up)?;
        // What was made, or synced by its directory, may be in the place of that.
        self.look()?;
        self.unless_unfit(from..=end)?;
        self.unsynced_from.store(u32::MAX, Ordering::SeqCst);
        Ok(())
    }

    /// Makes durable what was written in these cycles when so many files had been given up.  One at a time: of an error that one sync
    /// was told the next on the same opening is not, though what is lost may be its own; it finds the buffer suspended instead.
    pub(crate) fn sync(&self, cycles: RangeInclusive<u32>, given_up: u64) -> Result<()> {
        let _one = self.syncing.lock();
        if let Some(error) = self.refuses(given_up) {
            return Err(error);
        }
        self.unless_failed(self.home.sync(cycles))
    }

    /// It goes on in another file; batches that were sealed before are refused.
    pub(crate) fn give_file_up(&self) {
        self.given_up.fetch_add(1, Ordering::SeqCst);
        // A sync that failed is not tried again.
        self.unsynced_from.store(u32::MAX, Ordering::SeqCst);
        self.suspended.store(false, Ordering::SeqCst);
    }

    /// How many files were given up.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::SeqCst)
    }

    /// Notes what people should know of it, beside what they should know already.
    pub(crate) fn complain(&self, why: String) {
        self.complaints.add(why);
    }

    /// What was told that begins with this is so no more.
    pub(crate) fn is_mended(&self, told: &str) {
        self.complaints.remove(told);
    }

    /// What people should know of it, if anything.
    pub(crate) fn complaint(&self) -> Option<String> {
        self.complaints.said()
    }

    /// An error that says it is suspended.
    pub(crate) fn suspended_error(&self) -> Option<Error> {
        let why = self.suspension()?;
        Some(self.refusal(why))
    }

    /// Why a batch is refused that was sealed when so many files had been given up.
    pub(crate) fn refuses(&self, given_up: u64) -> Option<Error> {
        if given_up != self.given_up() {
            self.has_refused.store(true, Ordering::SeqCst);
            return Some(self.refusal(self.why_suspended.lock().clone()));
        }
        self.suspended_error()
    }

    /// Whether all that failed since this was asked is a batch for a file that was given up: it goes on in another.
    pub(crate) fn has_only_refused(&self) -> bool {
        self.has_refused.swap(false, Ordering::SeqCst) && self.suspension().is_none()
    }

    /// An error that says why it takes nothing.
    pub(crate) fn refusal(&self, why: String) -> Error {
        Error::Suspended {
            name: self.name.clone(),
            why,
        }
    }
}
