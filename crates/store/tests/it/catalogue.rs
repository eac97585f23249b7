//! A catalogue does not grow for ever: files of which nothing is left go, and nothing else does.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, FaultyDisk, MemoryDisk};
use newsreel_store::conformance::{Log, Logged, Rig, config_of};
use newsreel_store::{Access, Result};

/// A card is so long that a file has some dozen.
const XREF_OCTETS: usize = 60_000;
const ARTICLES: u64 = 60;

/// The files of the catalogue.
fn files(disk: &dyn Disk) -> Vec<String> {
    let dir = Path::new("/spool/articles/main/.catalogue");
    let entries = disk.list(dir).unwrap_or_default().into_iter();
    entries.map(|entry| entry.name).collect()
}

fn filled(disk: Arc<dyn Disk>) -> Rig {
    let mut rig = Rig::new(disk, &config_of("md5spool", 1 << 20)).unwrap();
    rig.xref_octets = XREF_OCTETS;
    for number in 0..ARTICLES {
        rig.place(number, 500).unwrap();
        if number % 10 == 9 {
            rig.commit().unwrap();
        }
    }
    rig
}

/// Takes articles out that the log has withdrawn; with the next commit their files and cards go.
fn withdraw(rig: &mut Rig, articles: &[Logged]) -> Result<()> {
    let tokens: Vec<_> = articles.iter().map(|logged| logged.token).collect();
    let mut writes = Vec::new();
    rig.store.withdrawn(&tokens, &mut writes);
    for write in &mut writes {
        write.write()?;
        write.sync()?;
    }
    Ok(())
}

/// A checkpoint, and the commits by which what it found goes.
fn reclaim(rig: &mut Rig) -> Result<()> {
    rig.checkpoint()?;
    rig.commit()?;
    rig.commit()
}

fn all_there(rig: &Rig, articles: &[Logged], what: &str) {
    for logged in articles {
        rig.read(logged)
            .unwrap_or_else(|error| panic!("{what}: {logged:?}: {error}"));
    }
}

#[test]
fn files_of_which_no_card_is_left_go() {
    let memory = MemoryDisk::new();
    let mut rig = filled(Arc::new(memory.clone()));
    let all: Vec<Logged> = rig.log.articles().copied().collect();
    let before = files(&memory);
    assert!(before.len() >= 4, "{before:?}");
    reclaim(&mut rig).unwrap();
    assert_eq!(files(&memory), before, "nothing is withdrawn");
    // The first of all stays: all others of its file may go, and the whole next file.
    let (kept, rest) = all.split_at(1);
    let in_front = |logged: &&Logged| logged.token.position().cycle() <= 2;
    let gone: Vec<Logged> = rest.iter().take_while(in_front).copied().collect();
    let behind = &rest[gone.len()..];
    withdraw(&mut rig, &gone).unwrap();
    reclaim(&mut rig).unwrap();
    assert_eq!(files(&memory), before, "one card is left in front");
    withdraw(&mut rig, kept).unwrap();
    // Only a checkpoint looks.
    rig.commit().unwrap();
    assert_eq!(files(&memory), before);
    reclaim(&mut rig).unwrap();
    assert_eq!(files(&memory), before[2..]);
    all_there(&rig, behind, "reclaimed");
    // And it goes on, behind a restart too; then all but what is written on may go.
    let log = rig.log.clone();
    drop(rig);
    let config = config_of("md5spool", 1 << 20);
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let mut rig = Rig::recover(disk, &config, log, Access::Write).unwrap();
    all_there(&rig, behind, "after a restart");
    assert_eq!(files(&memory), before[2..]);
    withdraw(&mut rig, behind).unwrap();
    reclaim(&mut rig).unwrap();
    assert_eq!(files(&memory), before[before.len() - 1..]);
    rig.place(1000, 500).unwrap();
    rig.commit().unwrap();
    all_there(&rig, &[*rig.log.articles().last().unwrap()], "later");
}

/// A power cut at any sync of it costs no article that is not withdrawn, and the rest of it is done later.
#[test]
fn a_power_cut_while_files_go_costs_nothing() {
    let config = config_of("md5spool", 1 << 20);
    let run = |faulty: &FaultyDisk| -> (Log, Vec<Logged>) {
        let mut rig = filled(Arc::new(faulty.clone()));
        let all: Vec<Logged> = rig.log.articles().copied().collect();
        let (gone, kept) = all.split_at(40);
        // Where it was stopped its log is as it was then.
        let _ = withdraw(&mut rig, gone).and_then(|()| reclaim(&mut rig));
        (rig.log.clone(), kept.to_vec())
    };
    let counting = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    drop(filled(Arc::new(counting.clone())));
    let filled_by = counting.counts().syncs();
    let whole = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    run(&whole);
    let total = whole.counts().syncs();
    assert!(total > filled_by + 3);
    for nth in filled_by + 1..=total {
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        faulty.stop_at_sync(nth);
        let (log, kept) = run(&faulty);
        for left in [memory.crash(nth), memory.crash_losing_all()] {
            let what = format!("stopped at {nth}");
            let disk: Arc<dyn Disk> = Arc::new(left.clone());
            let mut rig = Rig::recover(disk, &config, log.clone(), Access::Write).unwrap();
            all_there(&rig, &kept, &what);
            let gone: Vec<Logged> = rig.log.articles().take(40).copied().collect();
            withdraw(&mut rig, &gone).unwrap();
            reclaim(&mut rig).unwrap();
            all_there(&rig, &kept, &what);
            let first = kept[0].token.position().cycle();
            assert_eq!(files(&left)[0], format!("{first:08}.seg"), "{what}");
        }
    }
}
