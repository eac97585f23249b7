//! Files that somebody removes, or puts others in their place, while they are in use.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk, OpenMode, RealDisk, read_whole, replace_file};
use newsreel_store::conformance::{Log, Rig, config_of};
use newsreel_store::{Access, Blocking, ReadError, Want};

use crate::common::{ARTICLE, FILE, erase, feed, recovered, sized};

const ROOM: u64 = 1 << 20;

/// What was acknowledged went into a file that nobody could open any more, and nothing was told.
#[test]
fn a_cyclic_buffer_takes_nothing_once_its_file_was_removed_or_replaced() {
    for is_replaced in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let config = sized(ROOM);
        let rig = Rig::recover_in(dir.path(), disk, &config, Log::default(), Access::Write);
        let mut rig = rig.unwrap();
        feed(&mut rig, ROOM / 8);
        let path = dir.path().join("buffers/C0");
        let aside = dir.path().join("aside");
        RealDisk.rename(&path, &aside).unwrap();
        if is_replaced {
            let octets = read_whole(&RealDisk, &aside, 2 * ROOM as usize).unwrap();
            replace_file(&RealDisk, &path, &octets).unwrap();
        }
        rig.place(9000, ARTICLE).unwrap();
        assert!(rig.commit().is_err(), "{is_replaced}");
        let facts = rig.reader.buffers()[0].facts();
        let why = facts.suspended.unwrap();
        assert!(why.contains("was removed or renamed, or"), "{why}");
        assert!(why.contains("it has a name"), "{why}");
        // What it had is read still.
        let token = rig.log.articles().next().unwrap().token;
        let mut memory = Vec::new();
        let read = rig
            .reader
            .read(&token, Want::Whole, Blocking::Yes, &mut memory);
        assert!(read.is_ok(), "{read:?}");
    }
}

/// Its articles were not there, and nothing said why.
#[test]
fn a_segment_that_was_removed_is_told_of_once_it_is_asked_for() {
    let memory = Arc::new(MemoryDisk::new());
    let config = config_of("segment", ROOM);
    let mut rig = Rig::new(Arc::clone(&memory) as Arc<dyn Disk>, &config).unwrap();
    feed(&mut rig, 4 * ROOM);
    let rig = recovered(&rig, &config).unwrap();
    let buffer = &rig.reader.buffers()[0];
    assert_eq!(buffer.facts().complaint, None);
    let tokens: Vec<_> = rig.log.articles().map(|logged| logged.token).collect();
    let dir = Path::new("/spool/segments").join(&config.sets[0].name);
    let paths = ["00000002.seg", "00000003.seg"].map(|name| dir.join(name));
    let disk: Arc<dyn Disk> = Arc::clone(&memory) as _;
    let octets = read_whole(disk.as_ref(), &paths[0], 2 * ROOM as usize).unwrap();
    for path in &paths {
        memory.remove(path).unwrap();
    }
    let mut memory = Vec::new();
    let mut read = |cycle: u32| {
        let token = tokens.iter().find(|it| it.position().cycle() == cycle);
        let token = token.unwrap();
        rig.reader
            .read(token, Want::Whole, Blocking::Yes, &mut memory)
            .map(|_| ())
    };
    assert!(matches!(read(1), Ok(())));
    assert_eq!(buffer.facts().complaint, None);
    // One does not hide the other.
    assert!(matches!(read(2), Err(ReadError::Gone)));
    assert!(matches!(read(3), Err(ReadError::Gone)));
    let told = buffer.facts().complaint.unwrap();
    for path in &paths {
        let is_told = told.contains(&format!("{} is not there", path.display()));
        assert!(is_told, "{told}");
    }
    // One that is put back is not told of any more once it is read.
    replace_file(disk.as_ref(), &paths[0], &octets).unwrap();
    assert!(matches!(read(2), Ok(())));
    let told = buffer.facts().complaint.unwrap();
    assert!(!told.contains("00000002.seg"), "{told}");
    assert!(told.contains("00000003.seg is not there"), "{told}");
}

/// All that came before the next segment was acknowledged, and gone at the next start.  Of one with another name it was said that it is
/// marked as deleted.
#[test]
fn nothing_is_acknowledged_that_went_into_a_segment_that_was_removed() {
    for (is_replaced, is_linked) in [(false, false), (true, false), (false, true)] {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let config = config_of("segment", ROOM);
        let rig = Rig::recover_in(
            dir.path(),
            Arc::clone(&disk),
            &config,
            Log::default(),
            Access::Write,
        );
        let mut rig = rig.unwrap();
        feed(&mut rig, ROOM / 8);
        let segments = dir.path().join("segments").join(&config.sets[0].name);
        let path = segments.join("00000001.seg");
        if is_linked {
            RealDisk.link(&path, &dir.path().join("aside")).unwrap();
        }
        RealDisk.remove(&path).unwrap();
        if is_replaced {
            replace_file(&RealDisk, &path, &[0; 5000]).unwrap();
        }
        rig.place(9000, ARTICLE).unwrap();
        assert_eq!(rig.commit_with_repair(), Some(1), "{is_replaced}");
        let facts = rig.reader.buffers()[0].facts();
        assert_eq!(facts.suspended, None);
        let why = facts.complaint.unwrap();
        assert!(why.contains("was removed or renamed, or"), "{why}");
        assert_eq!(why.contains("marked as deleted"), !is_linked, "{why}");
        assert_eq!(why.contains("find -inum"), is_linked, "{why}");
        assert!(RealDisk.exists(&segments.join("00000002.seg")).unwrap());
        // What came before is there as long as nobody closes it.
        assert_eq!(rig.read_all().gone, 0);
        let log = rig.log.clone();
        drop(rig);
        let rig = Rig::recover_in(dir.path(), disk, &config, log, Access::Write);
        let rig = rig.unwrap();
        let last = rig.log.articles().last().unwrap();
        assert_eq!(last.number, 9000);
        rig.read(last).unwrap();
    }
}

/// Only what a batch wrote is looked for: an old one that is gone is no reason to take nothing.
#[test]
fn what_is_erased_in_an_old_segment_that_was_removed_suspends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let mut config = config_of("segment", ROOM);
    config.sets[0].erase_withdrawn = true;
    let rig = Rig::recover_in(dir.path(), disk, &config, Log::default(), Access::Write);
    let mut rig = rig.unwrap();
    feed(&mut rig, 2 * ROOM);
    let segments = dir.path().join("segments").join(&config.sets[0].name);
    RealDisk.remove(&segments.join("00000001.seg")).unwrap();
    let first = rig.log.articles().next().unwrap().token;
    erase(&mut rig, first);
    rig.place(9000, ARTICLE).unwrap();
    rig.commit().unwrap();
    let facts = rig.reader.buffers()[0].facts();
    assert_eq!((facts.suspended, facts.complaint), (None, None));
}

/// Nobody told of it.
#[test]
fn a_start_tells_of_the_newest_segment_that_was_removed() {
    let config = config_of("segment", ROOM);
    for octets in [ROOM / 2, 2 * ROOM] {
        let memory = Arc::new(MemoryDisk::new());
        let mut rig = Rig::new(Arc::clone(&memory) as Arc<dyn Disk>, &config).unwrap();
        feed(&mut rig, octets);
        let newest = rig.log.articles().last().unwrap().token;
        let name = format!("{:08}.seg", newest.position().cycle());
        let dir = Path::new("/spool/segments").join(&config.sets[0].name);
        memory.remove(&dir.join(&name)).unwrap();
        let disk = Arc::clone(&rig.disk);
        for access in [Access::ReadOnly, Access::Write] {
            let rig = Rig::recover(Arc::clone(&disk), &config, rig.log.clone(), access);
            let told = rig.unwrap().reader.buffers()[0].facts().complaint.unwrap();
            let what = match octets < ROOM {
                true => "there are no segments any more".to_owned(),
                false => format!("there is no {name}, the newest"),
            };
            assert!(told.contains(&what), "{told}");
        }
    }
}

/// What was written behind its end made holes, in front of which everything was lost, and all of it was acknowledged.
#[test]
fn a_cyclic_buffer_takes_nothing_once_its_file_was_cut() {
    let memory = Arc::new(MemoryDisk::new());
    let config = sized(ROOM);
    let mut rig = Rig::new(Arc::clone(&memory) as Arc<dyn Disk>, &config).unwrap();
    feed(&mut rig, ROOM / 8);
    let file = memory.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
    file.set_len(ROOM / 2).unwrap();
    rig.place(9000, ARTICLE).unwrap();
    assert!(rig.commit().is_err());
    let why = rig.reader.buffers()[0].facts().suspended.unwrap();
    assert!(why.contains("was cut: it has 524288 octets"), "{why}");
    file.set_len(ROOM).unwrap();
    let mut rig = recovered(&rig, &config).unwrap();
    rig.place(9000, ARTICLE).unwrap();
    rig.commit().unwrap();
}

/// What came behind its end was acknowledged, and nobody but a read or the scrub told of it.
#[test]
fn nothing_more_is_written_to_a_segment_that_was_cut() {
    let memory = Arc::new(MemoryDisk::new());
    let config = config_of("segment", ROOM);
    let mut rig = Rig::new(Arc::clone(&memory) as Arc<dyn Disk>, &config).unwrap();
    feed(&mut rig, ROOM / 8);
    let dir = Path::new("/spool/segments").join(&config.sets[0].name);
    let path = dir.join("00000001.seg");
    let file = memory.open(&path, OpenMode::ReadWrite).unwrap();
    file.set_len(5000).unwrap();
    rig.place(9000, ARTICLE).unwrap();
    assert_eq!(rig.commit_with_repair(), Some(1));
    let facts = rig.reader.buffers()[0].facts();
    assert_eq!(facts.suspended, None);
    let why = facts.complaint.unwrap();
    assert!(why.contains("00000001.seg was cut: it has"), "{why}");
    assert!(memory.exists(&dir.join("00000002.seg")).unwrap());
    let rig = recovered(&rig, &config).unwrap();
    rig.read(rig.log.articles().last().unwrap()).unwrap();
}
