//! What has a segment's name and is none of this spool's: the log goes on without it, unless a segment may be missing
//! in its place.

use std::path::PathBuf;
use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk, OpenMode, RealDisk, read_whole};
use newsreel_journal::{Error, FrameBuilder, Recovery, SpoolId};
use newsreel_wire::Sequence;

use crate::support::{Log, Model, as_disk, assert_same, config, contents, dir};

const OTHER: SpoolId = SpoolId(*b"another's spool!");

fn segment(id: u64) -> PathBuf {
    dir().join(format!("{id:016x}.log"))
}

/// A segment of another spool.
fn foreign() -> Vec<u8> {
    let memory = MemoryDisk::new();
    let from = Sequence(1);
    let recovery = Recovery::open(as_disk(&memory), dir(), config(), OTHER, from).unwrap();
    let (mut writer, _, recovered) = recovery.finish().unwrap();
    let mut frame = FrameBuilder::new();
    frame.start(from, recovered.epoch);
    frame.push(7, &[b"theirs"]);
    writer.write(&frame).unwrap();
    writer.sync().unwrap();
    drop(writer);
    read_whole(&memory, &segment(1), 1 << 20).unwrap()
}

fn put(memory: &MemoryDisk, id: u64, octets: &[u8]) {
    let file = memory.open(&segment(id), OpenMode::CreateOrOpen).unwrap();
    file.set_len(0).unwrap();
    file.write_at(octets, 0).unwrap();
    file.sync_all().unwrap();
    memory.sync_dir(dir()).unwrap();
}

/// A log of several segments, the first of them retired; the ids of those in use, and of the prepared one.
fn written() -> (MemoryDisk, Model, Vec<u64>, u64) {
    let memory = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&memory), 1).unwrap();
    let mut model = log.commit_all((0..120).map(|n| 1 + n % 11));
    log.journal.retire_before(Sequence(100));
    let oldest = log.journal.oldest();
    model.retain(|sequence, _| *sequence >= oldest.0);
    let used: Vec<u64> = log.journal.segments().iter().map(|s| s.id).collect();
    drop(log);
    let (first, last) = (used[0], used[used.len() - 1]);
    assert!(first > 1 && used.len() > 4, "{used:?}");
    // Whether the next one was prepared in time is up to the threads: a second opening waits for it.
    let (log, _) = Log::open_from(&as_disk(&memory), 2, oldest.0, |_| true).unwrap();
    while !log.writer.has_room(config().segment_octets - 8192) {
        std::thread::yield_now();
    }
    drop(log);
    let names = memory.list(dir()).unwrap().into_iter();
    let ids =
        names.filter_map(|file| u64::from_str_radix(file.name.strip_suffix(".log")?, 16).ok());
    let prepared = ids.filter(|id| *id > last).max().unwrap();
    (memory, model, used, prepared)
}

fn oldest(model: &Model) -> u64 {
    *model.keys().next().unwrap()
}

#[test]
fn where_nothing_of_ours_can_be_missing_it_is_set_aside() {
    let (memory, model, used, prepared) = written();
    let foreign = foreign();
    for id in [1, prepared + 1, u64::MAX / 2] {
        let memory = memory.crash_losing_all();
        put(&memory, id, &foreign);
        let (log, found) = Log::open_from(&as_disk(&memory), 3, oldest(&model), |_| true).unwrap();
        assert_same(&found, &model, &format!("{id:x}"));
        let [strange] = &log.recovered.strange[..] else {
            panic!("{id:x}: {:?}", log.recovered);
        };
        assert_eq!(
            (strange.id, strange.what.contains("belongs to spool")),
            (id, true)
        );
        let aside = segment(id).with_extension("log.aside");
        assert_eq!(strange.path, aside);
        assert_eq!(read_whole(&memory, &aside, 1 << 20).unwrap(), foreign);
        assert!(log.recovered.damage.is_empty() && log.recovered.cut.is_none());
        let mut log = log;
        let more = log.commit_all([3; 40]);
        drop(log);
        let all: Model = model.clone().into_iter().chain(more).collect();
        let (log, found) = Log::open_from(&as_disk(&memory), 4, oldest(&model), |_| true).unwrap();
        assert_same(&found, &all, &format!("{id:x} again"));
        assert_eq!(log.recovered.strange, []);
    }
    assert!(used[0] > 1);
}

#[test]
fn where_a_segment_of_ours_is_missing_the_log_is_not_opened_without_it() {
    let (memory, model, used, prepared) = written();
    let foreign = foreign();
    for id in &used {
        let memory = memory.crash_losing_all();
        let own = read_whole(&memory, &segment(*id), 1 << 20).unwrap();
        if *id == used[used.len() - 1] {
            // As if it had not been prepared in time.
            memory.remove(&segment(prepared)).unwrap();
        }
        put(&memory, *id, &foreign);
        let refused = Log::open_from(&as_disk(&memory), 3, oldest(&model), |_| true);
        let Err(error @ Error::InTheWay { .. }) = refused else {
            panic!("{id:x}: {refused:?}");
        };
        let text = error.to_string();
        let name = segment(*id).display().to_string();
        assert!(
            text.contains(&name) && text.contains("put that segment back"),
            "{text}"
        );
        assert_eq!(
            read_whole(&memory, &segment(*id), 1 << 20).unwrap(),
            foreign
        );
        put(&memory, *id, &own);
        let (found, recovered) = crate::support::contents_from(&memory, oldest(&model));
        assert_same(&found, &model, &format!("{id:x} put back"));
        assert_eq!(recovered.strange, []);
    }
}

/// Only the first page was overwritten: the frames behind it are ours.
#[test]
fn a_segment_with_a_foreign_first_page_is_still_read() {
    let memory = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&memory), 1).unwrap();
    let model = log.commit_all((0..120).map(|n| 1 + n % 11));
    drop(log);
    memory.corrupt(&segment(2), 0, &foreign()[..4096]).unwrap();
    let (found, recovered) = contents(&memory);
    assert_same(&found, &model, "a foreign first page");
    assert!(recovered.strange.is_empty() && recovered.damage.is_empty());
}

#[test]
fn a_directory_with_the_name_of_a_segment_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, from): (Arc<dyn Disk>, _) = (Arc::new(RealDisk), Sequence(1));
    let open = || Recovery::open(Arc::clone(&disk), folder.path(), config(), OTHER, from);
    let (writer, _, _) = open().unwrap().finish().unwrap();
    while !writer.has_room(config().segment_octets - 8192) {
        std::thread::yield_now();
    }
    drop(writer);
    let name = |id: u64| folder.path().join(format!("{id:016x}.log"));
    disk.create_dir_all(&name(9).join("x")).unwrap();
    let (_writer, _, recovered) = open().unwrap().finish().unwrap();
    assert_eq!(recovered.strange.len(), 1);
    assert_eq!(
        recovered.strange[0].path,
        name(9).with_extension("log.aside")
    );
    assert!(
        disk.exists(&name(9).with_extension("log.aside").join("x"))
            .unwrap()
    );
}
