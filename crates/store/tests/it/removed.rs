//! Files that somebody removes, or puts others in their place, while they are in use.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk, RealDisk, read_whole, replace_file};
use newsreel_store::conformance::{Log, Rig, config_of};
use newsreel_store::{Access, Blocking, ReadError, Want};

use crate::common::{ARTICLE, feed, recovered, sized};

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
        assert!(why.contains("was removed, or another file"), "{why}");
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
    feed(&mut rig, 3 * ROOM);
    let rig = recovered(&rig, &config).unwrap();
    let buffer = &rig.reader.buffers()[0];
    assert_eq!(buffer.facts().complaint, None);
    let tokens: Vec<_> = rig.log.articles().map(|logged| logged.token).collect();
    let dir = Path::new("/spool/segments").join(&config.sets[0].name);
    let path = dir.join("00000002.seg");
    memory.remove(&path).unwrap();
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
    assert!(matches!(read(2), Err(ReadError::Gone)));
    let told = buffer.facts().complaint.unwrap();
    assert!(
        told.starts_with(&format!("{} is not there", path.display())),
        "{told}"
    );
}
