//! Changes in buckets that their directory does not show by itself: its times, and what an `fsync` of it must reach.
//!
//! The time is written to the directory at most once a second, when it is made durable, when the kernel forgets it and
//! at the end; until then it is added to what is told about the directory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use newsreel_host::node::{Outcome, Stamp};
use newsreel_layout::Bucket;
use parking_lot::Mutex;

/// So often the time of a directory is written.
const WRITTEN_EVERY: Duration = Duration::from_secs(1);

/// With more buckets changed it is cheaper to make the whole file system durable.
const BUCKETS_MAX: usize = 64;

/// Directories are made durable one after the other where they share a lock.
const LOCKS: usize = 64;

/// So many directories are remembered; what would be beyond is made durable with the whole file system.
const DIRECTORIES_MAX: usize = 4096;

/// What waits for one directory.
#[derive(Debug, Default)]
struct Waiting {
    /// The last change, until it stands in the directory itself.
    changed: Option<Stamp>,
    /// When a time was last written.
    written: Option<Duration>,
    dirty: Vec<Bucket>,
    is_beyond: bool,
}

impl Waiting {
    fn soil(&mut self, bucket: Bucket) {
        if !self.is_beyond && !self.dirty.contains(&bucket) {
            self.is_beyond = self.dirty.len() >= BUCKETS_MAX;
            self.dirty.push(bucket);
        }
    }
}

/// What an `fsync` must reach beside the directory itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Dirty {
    /// These buckets.
    Buckets(Vec<Bucket>),
    /// More than can be said one by one.
    Everything,
}

/// The table.
#[derive(Debug)]
pub(crate) struct ChangeTable {
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// Held while what was taken is made durable.
    syncing: [Mutex<()>; LOCKS],
    /// How often directories were dropped from the table before they were made durable.
    drops: AtomicU64,
    /// How many of those drops were made durable with the whole file system since.
    drops_synced: AtomicU64,
}

impl Default for ChangeTable {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            syncing: [const { Mutex::new(()) }; LOCKS],
            drops: AtomicU64::default(),
            drops_synced: AtomicU64::default(),
        }
    }
}

impl ChangeTable {
    /// Something changed in a bucket; says whether the time is to be written now.
    /// Directories whose time is written are forgotten when there are too many.
    pub(crate) fn note(&self, node: u64, bucket: Bucket, at: Stamp, now: Duration) -> bool {
        let mut table = self.waiting.lock();
        if table.len() >= DIRECTORIES_MAX {
            table.retain(|_, waiting| waiting.changed.is_some());
            self.drops.fetch_add(1, Ordering::SeqCst);
        }
        let waiting = table.entry(node).or_default();
        waiting.soil(bucket);
        waiting.changed = Some(at);
        let is_due = waiting
            .written
            .is_none_or(|written| now.saturating_sub(written) >= WRITTEN_EVERY);
        if is_due {
            waiting.written = Some(now);
        }
        is_due
    }

    /// The last change that may not stand in the directory yet.
    pub(crate) fn changed(&self, node: u64) -> Option<Stamp> {
        self.waiting.lock().get(&node)?.changed
    }

    /// The last change stands in the directory, or no longer matters.
    pub(crate) fn settle(&self, node: u64) -> Option<Stamp> {
        self.waiting.lock().get_mut(&node)?.changed.take()
    }

    /// Makes a directory durable: `sync` is given what that must reach.  Whoever asks meanwhile waits: what they changed
    /// may be among what was taken.  What could not be made durable has to be reached the next time, too.
    pub(crate) fn sync(&self, node: u64, sync: impl FnOnce(&Dirty) -> Outcome<()>) -> Outcome<()> {
        let lock = usize::try_from(node).unwrap_or_default() % LOCKS;
        let _syncing = self.syncing[lock].lock();
        let drops = self.drops.load(Ordering::SeqCst);
        let dirty = self.take_dirty(node);
        let synced = sync(&dirty);
        match (&synced, &dirty) {
            (Err(_), _) => self.put_back(node, dirty),
            (Ok(()), Dirty::Everything) => {
                self.drops_synced.fetch_max(drops, Ordering::SeqCst);
            }
            (Ok(()), Dirty::Buckets(_)) => {}
        }
        synced
    }

    fn put_back(&self, node: u64, dirty: Dirty) {
        let mut table = self.waiting.lock();
        let waiting = table.entry(node).or_default();
        match dirty {
            Dirty::Everything => waiting.is_beyond = true,
            Dirty::Buckets(buckets) => buckets.into_iter().for_each(|bucket| waiting.soil(bucket)),
        }
    }

    /// What has to be made durable; taken, so what comes later waits for the next time.
    fn take_dirty(&self, node: u64) -> Dirty {
        let mut table = self.waiting.lock();
        let drops = self.drops.load(Ordering::SeqCst);
        let is_dropped = drops > self.drops_synced.load(Ordering::SeqCst);
        let (dirty, is_beyond) = match table.get_mut(&node) {
            None => (Vec::new(), false),
            Some(waiting) => {
                let is_beyond = std::mem::take(&mut waiting.is_beyond);
                (std::mem::take(&mut waiting.dirty), is_beyond)
            }
        };
        if is_dropped || is_beyond {
            return Dirty::Everything;
        }
        Dirty::Buckets(dirty)
    }

    /// The directory is no more.
    pub(crate) fn drop(&self, node: u64) {
        self.waiting.lock().remove(&node);
    }

    /// Directories whose time waits to be written; all of them, or as many as are too many.
    pub(crate) fn overdue(&self, all: bool) -> Vec<u64> {
        let table = self.waiting.lock();
        if !all && table.len() < DIRECTORIES_MAX {
            return Vec::new();
        }
        let waiting = table
            .iter()
            .filter(|(_, waiting)| waiting.changed.is_some());
        waiting.map(|(node, _)| *node).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use newsreel_host::node::Errno;
    use newsreel_layout::{Algorithm, Name};

    use super::*;

    fn bucket(number: u64) -> Bucket {
        let text = number.to_string();
        Algorithm::RANGE_1024.bucket(Name::parse(text.as_ref()).unwrap())
    }

    fn at(secs: i64) -> Stamp {
        Stamp { secs, nanos: 0 }
    }

    #[test]
    fn a_time_is_written_at_most_once_a_second() {
        let table = ChangeTable::default();
        let ms = Duration::from_millis;
        assert!(table.note(5, bucket(1), at(1), ms(100)));
        assert!(!table.note(5, bucket(1), at(2), ms(1000)));
        assert_eq!(table.changed(5), Some(at(2)));
        assert!(table.note(5, bucket(1), at(3), ms(1100)));
        assert_eq!(table.settle(5), Some(at(3)));
        assert_eq!(table.changed(5), None);
    }

    /// What one takes another may have changed, so the other is not done before the one is.
    #[test]
    fn a_directory_is_made_durable_by_one_at_a_time() {
        let table = ChangeTable::default();
        table.note(5, bucket(1), at(1), Duration::ZERO);
        let (done, other) = mpsc::sync_channel(1);
        std::thread::scope(|scope| {
            let first = table.sync(5, |dirty| {
                assert_eq!(*dirty, Dirty::Buckets(vec![bucket(1)]));
                scope.spawn(|| done.send(synced(&table)).unwrap());
                let early = other.recv_timeout(Duration::from_millis(200));
                assert!(early.is_err(), "{early:?}");
                Ok(())
            });
            assert_eq!(first, Ok(()));
        });
        assert_eq!(other.recv().unwrap(), "Buckets([])");
    }

    /// What had been taken for an `fsync` that failed was forgotten, and the next one succeeded without it.
    #[test]
    fn what_could_not_be_made_durable_is_reached_the_next_time() {
        let table = ChangeTable::default();
        let note = |number| table.note(5, bucket(number), at(1), Duration::ZERO);
        let fail = || table.sync(5, |_| Err(Errno::IO));
        note(1);
        assert_eq!(fail(), Err(Errno::IO));
        note(2000);
        assert_eq!(
            synced(&table),
            format!("{:?}", Dirty::Buckets(vec![bucket(1), bucket(2000)]))
        );
        assert_eq!(synced(&table), "Buckets([])");
        (0..65).for_each(|number| {
            note(number * 1024);
        });
        assert_eq!(fail(), Err(Errno::IO));
        assert_eq!(synced(&table), "Everything");
        assert_eq!(synced(&table), "Buckets([])");
    }

    fn synced(table: &ChangeTable) -> String {
        let mut said = String::new();
        let done = table.sync(5, |dirty| {
            said = format!("{dirty:?}");
            Ok(())
        });
        assert_eq!(done, Ok(()));
        said
    }

    #[test]
    fn dirty_buckets_are_named_until_there_are_too_many() {
        let table = ChangeTable::default();
        let note = |number| table.note(5, bucket(number), at(1), Duration::ZERO);
        note(1);
        note(2);
        note(2000);
        let expected = Dirty::Buckets(vec![bucket(1), bucket(2000)]);
        assert_eq!(table.take_dirty(5), expected);
        assert_eq!(table.take_dirty(5), Dirty::Buckets(Vec::new()));
        (0..65).for_each(|number| {
            note(number * 1024);
        });
        assert_eq!(table.take_dirty(5), Dirty::Everything);
        assert_eq!(table.take_dirty(5), Dirty::Buckets(Vec::new()));
    }

    #[test]
    fn the_table_has_an_end_and_nothing_is_lost_by_it() {
        let table = ChangeTable::default();
        for node in 0..DIRECTORIES_MAX as u64 {
            table.note(node, bucket(1), at(1), Duration::ZERO);
        }
        for node in table.overdue(false) {
            assert_eq!(table.settle(node), Some(at(1)));
        }
        // That it was full matters no longer, though nothing waits.
        table.note(9, bucket(1), at(1), Duration::ZERO);
        assert_eq!(table.waiting.lock().len(), 1);
        // Until the whole file system is durable, which has to be so once.
        let sync = |node, expected: &Dirty, done| {
            let synced = table.sync(node, |dirty| {
                assert_eq!(dirty, expected);
                done
            });
            assert_eq!(synced, done);
        };
        sync(7, &Dirty::Everything, Err(Errno::IO));
        sync(8, &Dirty::Everything, Ok(()));
        table.note(9, bucket(2), at(1), Duration::ZERO);
        sync(9, &Dirty::Buckets(vec![bucket(1)]), Ok(()));
        sync(10, &Dirty::Buckets(Vec::new()), Ok(()));
    }
}
