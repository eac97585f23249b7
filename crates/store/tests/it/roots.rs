//! A hierarchy on a disk of its own that is not there: nothing is taken for removed, nothing is written in its place.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_host::disk::DirEntry;
use newsreel_host::{Disk, Error, File, Lock, MemoryDisk, Op, OpenMode, Result};
use newsreel_store::conformance::{Log, Rig, config_of};
use newsreel_store::{Access, PlaceError, ScanRange, Scanned};
use newsreel_wire::{Token, UnixTime};
use parking_lot::Mutex;

/// All articles of the rig are in this group.
const ALL: &str = "/spool/articles/main/misc/test";
/// Every third is in this one, too.
const SOME: &str = "/spool/articles/main/misc/other";
/// What is mounted there.
const DISK: &str = "/disk";

/// A disk with another one mounted in it, or behind a link.
#[derive(Debug)]
struct Mounting {
    inner: MemoryDisk,
    root: &'static str,
    /// Another one that the same disk is mounted at.
    second: Mutex<Option<PathBuf>>,
    /// The file systems that were synced.
    synced: Mutex<Vec<u64>>,
    is_there: AtomicBool,
    /// What is mounted takes no file.
    is_failing: AtomicBool,
    is_full: AtomicBool,
    /// The table of mounts has it.
    is_told: bool,
}

impl Mounting {
    fn map(&self, path: &Path) -> PathBuf {
        if !self.is_there.load(Ordering::Relaxed) {
            return path.to_path_buf();
        }
        let second = self.second.lock().clone();
        let mut roots = std::iter::once(PathBuf::from(self.root)).chain(second);
        let below = roots.find_map(|root| path.strip_prefix(root).ok());
        below.map_or(path.to_path_buf(), |below| Path::new(DISK).join(below))
    }
}

impl Disk for Mounting {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let at = self.map(path);
        if at.starts_with(DISK) && self.is_failing.load(Ordering::Relaxed) {
            let error = std::io::Error::from_raw_os_error(5);
            return Err(Error::from_io(Op::Open, path, error));
        }
        self.inner.open(&at, mode)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(&self.map(from), &self.map(to))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(&self.map(path))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.link(&self.map(from), &self.map(to))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.inner.create_dir_all(&self.map(path))
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        self.inner.list(&self.map(dir))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(&self.map(path))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.inner.sync_dir(&self.map(dir))
    }

    fn sync_file_system(&self, dir: &Path) -> Result<()> {
        self.synced.lock().push(self.file_system(dir)?);
        self.inner.sync_file_system(&self.map(dir))
    }

    fn file_system(&self, dir: &Path) -> Result<u64> {
        Ok(u64::from(self.map(dir).starts_with(DISK)))
    }

    fn mounts_below(&self, _: &Path) -> Result<Vec<PathBuf>> {
        let is_there = self.is_told && self.is_there.load(Ordering::Relaxed);
        Ok(is_there.then(|| self.root.into()).into_iter().collect())
    }

    fn free_bytes(&self, path: &Path) -> Result<u64> {
        match self.map(path).starts_with(DISK) && self.is_full.load(Ordering::Relaxed) {
            true => Ok(1000),
            false => self.inner.free_bytes(path),
        }
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.inner.lock(path)
    }
}

fn start(disk: &Arc<Mounting>, log: Log) -> Rig {
    let disk = Arc::clone(disk) as Arc<dyn Disk>;
    Rig::recover(disk, &config_of("tradspool", 1 << 20), log, Access::Write).unwrap()
}

fn mounting(root: &'static str, is_told: bool) -> Arc<Mounting> {
    let inner = MemoryDisk::new();
    inner.create_dir_all(Path::new(DISK)).unwrap();
    // What it is mounted on.
    inner.create_dir_all(Path::new(root)).unwrap();
    Arc::new(Mounting {
        inner,
        root,
        second: Mutex::default(),
        synced: Mutex::default(),
        is_there: AtomicBool::new(true),
        is_failing: AtomicBool::new(false),
        is_full: AtomicBool::new(false),
        is_told,
    })
}

#[test]
fn a_root_that_is_not_mounted_costs_no_article() {
    for is_told in [true, false] {
        let disk = mounting(ALL, is_told);
        let mut rig = start(&disk, Log::default());
        for number in 1..8 {
            rig.place(number, 500).unwrap();
        }
        rig.commit().unwrap();
        let log = rig.log.clone();
        drop(rig);
        disk.is_there.store(false, Ordering::Relaxed);
        let mut rig = start(&disk, log);
        assert_eq!(rig.try_place(8, 500), Err(PlaceError::Suspended));
        let articles: Vec<_> = rig.log.articles().copied().collect();
        // Every third has a name in another group, too.
        let removed = articles
            .iter()
            .filter_map(|logged| rig.reader.removed(&logged.token));
        let certain: Vec<bool> = removed.map(|removed| removed.is_certain).collect();
        assert_eq!(certain, [false; 5]);
        assert!(disk.inner.list(Path::new(ALL)).unwrap().is_empty());
        // Once it is mounted all is as before, without a restart.
        disk.is_there.store(true, Ordering::Relaxed);
        rig.commit().unwrap();
        rig.place(8, 500).unwrap();
        rig.commit().unwrap();
        assert_eq!(rig.read_all().read, 8);
    }
}

/// Mounted, and known from the table of mounts alone: nothing was written there since.
#[test]
fn what_is_mounted_is_noted_at_a_start() {
    let disk = mounting(ALL, true);
    disk.is_there.store(false, Ordering::Relaxed);
    let mut rig = start(&disk, Log::default());
    rig.place(1, 500).unwrap();
    rig.commit().unwrap();
    let log = rig.log.clone();
    drop(rig);
    // Somebody moves it to another disk, and mounts that.
    let (from, to) = (Path::new(ALL).join("1"), Path::new(DISK).join("1"));
    disk.inner.rename(&from, &to).unwrap();
    disk.is_there.store(true, Ordering::Relaxed);
    let rig = start(&disk, log);
    assert_eq!(rig.read_all().read, 1);
    let log = rig.log.clone();
    drop(rig);
    disk.is_there.store(false, Ordering::Relaxed);
    let mut rig = start(&disk, log);
    assert_eq!(rig.try_place(2, 500), Err(PlaceError::Suspended));
}

/// Whatever becomes of a root beside a running server: what does not go there is taken all the same, and nothing is written
/// beneath.
#[test]
fn a_root_in_trouble_keeps_out_its_own_articles_only() {
    for trouble in ["gone", "failing"] {
        let disk = mounting(SOME, true);
        let mut rig = start(&disk, Log::default());
        // Also where nothing was ever written.
        let already = if trouble == "gone" { 7 } else { 0 };
        for number in 1..=already {
            rig.place(number, 500).unwrap();
        }
        assert_eq!(rig.commit_with_repair(), None);
        for number in [8, 9, 10] {
            rig.place(number, 500).unwrap();
        }
        match trouble {
            "gone" => disk.is_there.store(false, Ordering::Relaxed),
            _ => disk.is_failing.store(true, Ordering::Relaxed),
        }
        rig.now = Some(UnixTime(5000));
        // The ninth stays out.
        let placed = rig.commit_with_repair();
        match trouble {
            "gone" => assert_eq!(placed, Some(2)),
            _ => assert_eq!(placed, None, "a link opens nothing"),
        }
        for (number, result) in [(11, true), (12, trouble != "gone"), (13, true)] {
            assert_eq!(
                rig.try_place(number, 500).is_ok(),
                result,
                "{number} {trouble}"
            );
        }
        assert_eq!(rig.commit_with_repair(), None);
        assert!(disk.inner.list(Path::new(SOME)).unwrap().is_empty());
        disk.is_there.store(true, Ordering::Relaxed);
        assert_eq!(rig.commit_with_repair(), None);
        rig.place(15, 500).unwrap();
        assert_eq!(rig.commit_with_repair(), None);
    }
}

/// The disk of the first name fails: it is tried again a minute later.
#[test]
fn a_root_that_failed_is_tried_again() {
    let disk = mounting(ALL, true);
    let mut rig = start(&disk, Log::default());
    rig.now = Some(UnixTime(5000));
    for is_failing in [true, false] {
        disk.is_failing.store(is_failing, Ordering::Relaxed);
        rig.place(1, 500).unwrap();
        assert_eq!(rig.commit_with_repair(), is_failing.then_some(0));
        if is_failing {
            assert_eq!(rig.commit_with_repair(), None);
            assert_eq!(rig.try_place(2, 500), Err(PlaceError::Suspended));
            rig.now = Some(UnixTime(5060));
            assert_eq!(rig.commit_with_repair(), None);
        }
    }
    assert_eq!(rig.read_all().read, 1);
}

/// A full root is full for what goes there.
#[test]
fn a_full_root_has_no_room() {
    let disk = mounting(ALL, true);
    let mut rig = start(&disk, Log::default());
    rig.place(1, 500).unwrap();
    assert_eq!(rig.commit_with_repair(), None);
    disk.is_full.store(true, Ordering::Relaxed);
    assert_eq!(rig.commit_with_repair(), None);
    assert_eq!(rig.try_place(2, 500), Err(PlaceError::NeedsReservation));
    disk.is_full.store(false, Ordering::Relaxed);
    assert_eq!(rig.commit_with_repair(), None);
    rig.place(2, 500).unwrap();
    assert_eq!(rig.commit_with_repair(), None);
    assert_eq!(rig.read_all().read, 2);
}

/// Whether what a token leads to is told as removed, and surely so.
fn is_certain(rig: &Rig, token: &Token) -> Option<bool> {
    rig.reader.removed(token).map(|removed| removed.is_certain)
}

/// One article, on the disk, by a server that has ended.
fn with_an_article(disk: &Arc<Mounting>) -> (Log, Token) {
    let mut rig = start(disk, Log::default());
    rig.place(1, 500).unwrap();
    rig.commit().unwrap();
    let token = rig.log.articles().next().unwrap().token;
    (rig.log.clone(), token)
}

/// What was removed by hand is told from a disk that is missing: also the last file of a directory.
#[test]
fn the_last_file_that_goes_is_surely_removed() {
    let disk = mounting(SOME, true);
    let (log, token) = with_an_article(&disk);
    let rig = start(&disk, log);
    assert_eq!(is_certain(&rig, &token), None);
    disk.inner.remove(&Path::new(ALL).join("1")).unwrap();
    assert_eq!(is_certain(&rig, &token), Some(true));
}

/// A disk that goes while the server runs, and nothing is written: whoever asks for an article is the first to notice.
#[test]
fn a_disk_that_goes_beside_the_server_is_noticed_by_readers() {
    let disk = mounting(ALL, true);
    let (log, token) = with_an_article(&disk);
    let rig = start(&disk, log);
    disk.is_there.store(false, Ordering::Relaxed);
    assert_eq!(is_certain(&rig, &token), Some(false));
    disk.is_there.store(true, Ordering::Relaxed);
    assert_eq!(is_certain(&rig, &token), None);
}

/// A set of a version that had no list, or one whose list is damaged, never has a complete one of itself: the disk that is not
/// mounted while the list is made is not known.
#[test]
fn a_list_that_is_made_anew_is_not_complete() {
    let list = Path::new("/spool/articles/main/.catalogue/roots");
    for damage in [true, false] {
        let disk = mounting(ALL, true);
        let (log, token) = with_an_article(&disk);
        match damage {
            true => {
                let file = disk.inner.open(list, OpenMode::ReadWrite).unwrap();
                file.write_at(b"N", 0).unwrap();
            }
            false => disk.inner.remove(list).unwrap(),
        }
        // A disk is missing, and later another one is met, again and again.
        for is_there in [false, true, false, false] {
            disk.is_there.store(is_there, Ordering::Relaxed);
            let rig = start(&disk, log.clone());
            let expected = (!is_there).then_some(false);
            assert_eq!(is_certain(&rig, &token), expected, "{damage} {is_there}");
        }
        // Until somebody says that there is none.
        newsreel_host::replace_file(&disk.inner, list, b"none\n").unwrap();
        let rig = start(&disk, log);
        assert_eq!(is_certain(&rig, &token), Some(true));
    }
}

/// Somebody moves articles to a disk and mounts that beside a running server, which never writes there; when it is away at the
/// next start they were taken for removed.
#[test]
fn a_disk_that_is_only_seen_is_known() {
    for how in ["read", "checkpoint"] {
        let disk = mounting(ALL, how == "checkpoint");
        disk.is_there.store(false, Ordering::Relaxed);
        let mut rig = start(&disk, Log::default());
        rig.place(1, 500).unwrap();
        rig.commit().unwrap();
        let (from, to) = (Path::new(ALL).join("1"), Path::new(DISK).join("1"));
        disk.inner.rename(&from, &to).unwrap();
        disk.is_there.store(true, Ordering::Relaxed);
        match how {
            "read" => assert_eq!(rig.read_all().read, 1),
            _ => rig.checkpoint().unwrap(),
        }
        let (log, token) = (rig.log.clone(), rig.log.articles().next().unwrap().token);
        drop(rig);
        disk.is_there.store(false, Ordering::Relaxed);
        let rig = start(&disk, log);
        assert_eq!(is_certain(&rig, &token), Some(false), "{how}");
    }
}

/// A disk that has none of the articles, mounted where they were: each of them was taken for removed.
#[test]
fn nothing_was_removed_from_a_disk_that_never_had_it() {
    let disk = mounting(ALL, true);
    let (log, token) = with_an_article(&disk);
    let (at, aside) = (Path::new(DISK).join("1"), Path::new("/disk-1"));
    disk.inner.rename(&at, aside).unwrap();
    let mut rig = start(&disk, log.clone());
    assert_eq!(is_certain(&rig, &token), Some(false));
    // What is written there, or read, tells that it is the right one.
    rig.place(2, 500).unwrap();
    rig.commit().unwrap();
    assert_eq!(is_certain(&rig, &token), Some(true));
    disk.inner.rename(aside, &at).unwrap();
    let rig = start(&disk, log);
    assert_eq!(rig.read_all().read, 1);
    disk.inner.remove(&at).unwrap();
    assert_eq!(is_certain(&rig, &token), Some(true));
}

/// Two hierarchies on one disk: both are known, and each is missed.
#[test]
fn each_hierarchy_of_a_disk_is_known() {
    let disk = mounting(ALL, false);
    *disk.second.lock() = Some(SOME.into());
    let mut rig = start(&disk, Log::default());
    for number in 1..=3 {
        rig.place(number, 500).unwrap();
    }
    rig.commit().unwrap();
    let log = rig.log.clone();
    drop(rig);
    disk.is_there.store(false, Ordering::Relaxed);
    let mut rig = start(&disk, log);
    assert_eq!(rig.try_place(4, 500), Err(PlaceError::Suspended));
    let text = newsreel_host::read_whole(
        &disk.inner,
        Path::new("/spool/articles/main/.catalogue/roots"),
        1000,
    );
    let text = String::from_utf8(text.unwrap()).unwrap();
    assert!(
        text.starts_with("newsreel roots 1\nmisc/other\nmisc/test\n"),
        "{text}"
    );
}

/// The commit that was under way behind it found that its file had been given up; that suspended the whole set, for up to an hour.
#[test]
fn what_a_root_that_failed_takes_along_suspends_nothing() {
    let disk = mounting(SOME, true);
    let mut rig = start(&disk, Log::default());
    rig.place(3, 500).unwrap();
    assert_eq!(rig.commit_with_repair(), None);
    rig.now = Some(UnixTime(5000));
    let mut under_way = Vec::new();
    for number in [6, 7] {
        rig.place(number, 500).unwrap();
        under_way.extend(rig.seal());
    }
    assert_eq!(under_way.len(), 2);
    disk.is_there.store(false, Ordering::Relaxed);
    for mut batch in under_way {
        let written = batch.write().and_then(|()| batch.sync());
        assert!(written.is_err());
        rig.store.suspend(batch.buffer());
        assert!(rig.try_place(8, 500).is_ok());
        assert_eq!(rig.try_place(9, 500), Err(PlaceError::Suspended));
    }
}

/// Whoever read a directory of articles as root left a file of root's in it, and the server whose it is did not start.
#[test]
fn who_only_looks_writes_nothing() {
    let list = Path::new("/spool/articles/main/.catalogue/roots");
    let disk = mounting(ALL, true);
    drop(with_an_article(&disk));
    disk.inner.remove(list).unwrap();
    let looking = Arc::clone(&disk) as Arc<dyn Disk>;
    let mut articles = 0;
    for reader in newsreel_store::open_alone(&looking, Path::new("/spool/articles/main")).unwrap() {
        let mut scan = reader.unwrap().scan(ScanRange::Live);
        while let Some(scanned) = scan.step().unwrap() {
            articles += usize::from(matches!(scanned, Scanned::Record { sound: true, .. }));
        }
    }
    assert_eq!(articles, 1);
    assert!(!disk.inner.exists(list).unwrap());
}

/// A directory of a set that has no hierarchies, on a disk of its own: what was written there was acknowledged before it was durable.
#[test]
fn a_directory_on_a_disk_of_its_own_is_synced_whatever_the_method() {
    let disk = mounting(ALL, true);
    let as_disk = Arc::clone(&disk) as Arc<dyn Disk>;
    let config = config_of("md5spool", 1 << 20);
    let mut rig = Rig::recover(as_disk, &config, Log::default(), Access::Write).unwrap();
    for number in 1..=40 {
        rig.place(number, 500).unwrap();
    }
    rig.commit().unwrap();
    // One of those that are there.
    let dir = Path::new("/spool/articles/main");
    let below = |dir: &Path| {
        let entries = disk.inner.list(dir).unwrap();
        let mut dirs = entries
            .iter()
            .filter(|entry| entry.is_dir && entry.name != ".catalogue");
        dir.join(&dirs.next().unwrap().name)
    };
    *disk.second.lock() = Some(below(dir));
    disk.synced.lock().clear();
    for number in 41..=400 {
        rig.place(number, 500).unwrap();
    }
    rig.commit().unwrap();
    assert_eq!(*disk.synced.lock(), [0, 1]);
}
