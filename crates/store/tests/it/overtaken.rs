//! A reader that is overtaken in the middle of its copy: alive when it looked first, dead when the copy is there.
//!
//! The disk calls back in the middle of one read, and what it calls fills a whole round of the buffers.  So the second
//! look at the mark is what decides, every time and without a race.

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use newsreel_host::disk::{DirEntry, Lock};
use newsreel_host::{Disk, File, MemoryDisk, OpenMode, Result};
use newsreel_store::conformance::{Rig, config_of};
use newsreel_store::{Access, Blocking, ReadError, Reservation, ScanRange, Scanned, Want};
use newsreel_wire::{Position, TokenText};
use parking_lot::Mutex;

/// When, measured by a read, something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Before,
    /// Half of the octets are those of before.
    Middle,
    After,
}

/// What happens in the next read.
struct Event {
    moment: Moment,
    happen: Box<dyn FnOnce() + Send>,
}

#[derive(Default)]
struct Hook {
    event: Mutex<Option<Event>>,
    ran: AtomicUsize,
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

impl Hook {
    fn arm(&self, moment: Moment, happen: impl FnOnce() + Send + 'static) {
        let happen = Box::new(happen);
        *self.event.lock() = Some(Event { moment, happen });
    }

    /// A read in two halves, with what is to happen in between, before or behind; it happens once.
    fn read<T>(
        &self,
        buf: &mut [u8],
        offset: u64,
        read: impl Fn(&mut [u8], u64) -> Result<T>,
    ) -> Result<T> {
        let Some(Event { moment, happen }) = self.event.lock().take() else {
            return read(buf, offset);
        };
        self.ran.fetch_add(1, Ordering::Relaxed);
        if moment == Moment::Before {
            happen();
            return read(buf, offset);
        }
        let result = read(buf, offset)?;
        happen();
        if moment == Moment::Middle {
            let half = buf.len() / 2;
            read(&mut buf[half..], offset + half as u64)?;
        }
        Ok(result)
    }
}

/// A disk whose reads call back.
#[derive(Debug)]
struct HookedDisk {
    inner: MemoryDisk,
    hook: Arc<Hook>,
}

#[derive(Debug)]
struct HookedFile {
    inner: Arc<dyn File>,
    hook: Arc<Hook>,
}

impl Disk for HookedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let (inner, hook) = (self.inner.open(path, mode)?, Arc::clone(&self.hook));
        Ok(Arc::new(HookedFile { inner, hook }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.link(from, to)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.inner.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        self.inner.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.inner.sync_dir(dir)
    }

    fn sync_file_system(&self, dir: &Path) -> Result<()> {
        self.inner.sync_file_system(dir)
    }

    fn free_bytes(&self, path: &Path) -> Result<u64> {
        self.inner.free_bytes(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.inner.lock(path)
    }
}

impl File for HookedFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let read = |buf: &mut [u8], offset| self.inner.read_at(buf, offset);
        self.hook.read(buf, offset, read)
    }

    fn read_cached_at(&self, buf: &mut [u8], offset: u64) -> Result<Option<usize>> {
        let read = |buf: &mut [u8], offset| self.inner.read_cached_at(buf, offset);
        self.hook.read(buf, offset, read)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.inner.write_at(buf, offset)
    }

    fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.inner.write_vectored_at(parts, offset)
    }

    fn sync_data(&self) -> Result<()> {
        self.inner.sync_data()
    }

    fn sync_all(&self) -> Result<()> {
        self.inner.sync_all()
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.inner.set_len(len)
    }

    fn zero_fill(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.zero_fill(offset, len)
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.reserve(offset, len)
    }

    fn give_back(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.give_back(offset, len)
    }

    fn drop_cache(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.drop_cache(offset, len)
    }
}

/// Fills both buffers once around with other articles, and commits them.
fn go_around(rig: &mut Rig, octets: u64) {
    for number in 0..2 * octets / 20_000 + 8 {
        rig.place(10_000 + number, 20_000).unwrap();
    }
    rig.commit().unwrap();
}

/// One article is read while a whole round is written at this moment of its read: it is gone, and nothing else.
fn overtake(len: usize, want: Want, blocking: Blocking, moment: Moment) {
    const OCTETS: u64 = 1 << 20;
    let what = format!("{len} octets, {want:?}, {blocking:?}, {moment:?}");
    let hook = Arc::new(Hook::default());
    let disk = HookedDisk {
        inner: MemoryDisk::new(),
        hook: Arc::clone(&hook),
    };
    let mut rig = Rig::new(Arc::new(disk), &config_of("cnfs", OCTETS)).unwrap();
    let token = rig.place(1, len).unwrap();
    rig.commit().unwrap();
    let reader = Arc::clone(&rig.reader);
    let mut memory = Vec::new();
    // Without the event it is there.
    assert!(
        reader.read(&token, want, blocking, &mut memory).is_ok(),
        "{what}"
    );
    assert!(reader.is_live(&token), "{what}");
    let rig = Arc::new(Mutex::new(rig));
    let writer = Arc::clone(&rig);
    hook.arm(moment, move || go_around(&mut writer.lock(), OCTETS));
    let read = reader.read(&token, want, blocking, &mut memory);
    assert_eq!(hook.ran.load(Ordering::Relaxed), 1, "{what}: nothing ran");
    assert!(matches!(read, Err(ReadError::Gone)), "{what}: {read:?}");
    assert!(!reader.is_live(&token), "{what}");
    let tally = rig.lock().read_all();
    assert_eq!(tally.corrupt, 0, "{what}: {tally:?}");
    assert!(tally.read > 50 && tally.gone >= 1, "{what}: {tally:?}");
}

#[test]
fn who_is_overtaken_in_the_middle_of_a_copy_finds_the_article_gone() {
    for len in [900, 9000, 150_000] {
        for want in [Want::Whole, Want::Head] {
            for blocking in [Blocking::Yes, Blocking::No] {
                for moment in [Moment::Before, Moment::Middle, Moment::After] {
                    overtake(len, want, blocking, moment);
                }
            }
        }
    }
}

/// Who looks from beside learns only from the header that the server has overwritten what it reads.
#[test]
fn what_is_overwritten_from_elsewhere_is_gone_and_no_damage() {
    const OCTETS: u64 = 1 << 20;
    let (disk, config) = (Arc::new(MemoryDisk::new()), config_of("cnfs", OCTETS));
    let mut rig = Rig::new(Arc::clone(&disk) as Arc<dyn Disk>, &config).unwrap();
    let tokens: Vec<_> = (0..100).map(|n| rig.place(n, 9000).unwrap()).collect();
    rig.commit().unwrap();
    let looking = Rig::recover(disk, &config, rig.log.clone(), Access::ReadOnly).unwrap();
    let looking = &looking.reader;
    let mut scans = Vec::new();
    for buffer in looking.buffers() {
        let mut scan = Arc::clone(buffer).scan(ScanRange::Live);
        scan.step().unwrap();
        scans.push(scan);
    }
    let texts: Vec<_> = tokens
        .iter()
        .map(|token| looking.token_text(token))
        .collect();
    go_around(&mut rig, OCTETS);
    for (token, text) in tokens.iter().zip(&texts) {
        let mut memory = Vec::new();
        let read = looking.read(token, Want::Whole, Blocking::Yes, &mut memory);
        assert!(matches!(read, Err(ReadError::Gone)), "{read:?}");
        let text = TokenText::parse(text.as_ref().unwrap()).unwrap();
        let found = looking.token_at(&text);
        assert!(matches!(found, Err(ReadError::Gone)), "{found:?}");
    }
    for mut scan in scans {
        while let Some(found) = scan.step().unwrap() {
            assert!(
                matches!(found, Scanned::Record { sound: true, .. } | Scanned::Passed),
                "{found:?}"
            );
        }
    }
}

/// A walk complained of a segment that had been dropped, and turned for ever on an article whose file went while it was read.
#[test]
fn segments_that_are_dropped_under_a_walk_are_no_damage() {
    const OCTETS: u64 = 4 << 20;
    let mut config = config_of("segment", OCTETS);
    for set in &mut config.sets {
        set.segment_octets = OCTETS;
    }
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
    let tokens: Vec<_> = (0..40).map(|n| rig.place(n, 300_000).unwrap()).collect();
    rig.commit().unwrap();
    let last = tokens.last().unwrap().position().cycle();
    assert!(last > 2, "{last} segments");
    let buffer = Arc::clone(rig.reader.buffer(tokens[0].buffer()).unwrap());
    let mut scan = Arc::clone(&buffer).scan(ScanRange::Live);
    let found = scan.step().unwrap();
    assert!(matches!(found, Some(Scanned::Record { .. })), "{found:?}");
    // All but the last go.
    let start = tokens[0].position().offset();
    rig.store.reserved(Reservation {
        buffer: buffer.id(),
        up_to: Position::new(last + 1, start),
    });
    let (mut sound, mut steps) = (0, 0);
    while let Some(found) = scan.step().unwrap() {
        match found {
            Scanned::Record {
                token, sound: true, ..
            } => {
                assert_eq!(token.position().cycle(), last);
                sound += 1;
            }
            Scanned::Passed => {}
            other => panic!("{other:?}"),
        }
        steps += 1;
        assert!(steps < 1000);
    }
    let left = tokens
        .iter()
        .filter(|token| token.position().cycle() == last);
    assert_eq!(sound, left.count());
    assert!(scan.at() >= buffer.floor());
}
