//! Parts of a spool put back as they had been before: log and views beside newer buffers, a buffer beside a newer log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_engine::{ArticleRef, Attaching, EngineConfig, Reason, Relocation, Withdrawal};
use newsreel_host::{Disk, FakeClock, MemoryDisk, OpenMode, read_whole};
use newsreel_service::Outcome;
use newsreel_store::{RuleConfig, SetConfig};

use crate::segments::large;
use crate::world::{World, article, config, open_on};

const ROOM: u64 = 4 << 20;
/// Articles before the copy is made, and behind it.
const BEFORE: usize = 100;
const BEHIND: usize = 1200;
/// The buffer that is put back.
const C1: &str = "/spool/buffers/C1";

pub(crate) fn contents(disk: &dyn Disk, dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in disk.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        match entry.is_dir {
            true => found.extend(contents(disk, &path)),
            false => {
                let octets = read_whole(disk, &path, 64 << 20).unwrap();
                found.push((path, octets));
            }
        }
    }
    found
}

/// Makes what is in some directories what it was.
pub(crate) fn put_back(disk: &dyn Disk, dirs: &[&str], before: &[(PathBuf, Vec<u8>)]) {
    for dir in dirs {
        for (path, _) in contents(disk, Path::new(dir)) {
            disk.remove(&path).unwrap();
        }
    }
    for (path, octets) in before {
        let file = disk.open(path, OpenMode::CreateNew).unwrap();
        file.write_at(octets, 0).unwrap();
        file.sync_all().unwrap();
    }
}

/// A server that went on behind a copy of one of its buffers, and the copy.
async fn gone_on(memory: &MemoryDisk) -> (World, Vec<u8>) {
    let world = World::on(Arc::new(memory.clone()), config(ROOM));
    send(&world, 0, BEFORE).await;
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    world.engine.shutdown().unwrap();
    drop(world);
    let before = read_whole(memory, Path::new(C1), 64 << 20).unwrap();
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    send(&world, BEFORE, BEHIND).await;
    (world, before)
}

async fn send(world: &World, from: usize, count: usize) {
    for first in (from..from + count).step_by(50) {
        let some: Vec<_> = (first..(first + 50).min(from + count))
            .map(|n| large(n, 2500))
            .collect();
        let outcomes = world.send(&some).await;
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
    }
}

fn id(n: usize) -> String {
    format!("<{n}@t.example>")
}

async fn here(world: &World, count: usize) -> Vec<usize> {
    let mut here = Vec::new();
    for n in 0..count {
        if world.by_id(&id(n)).await.is_some() {
            here.push(n);
        }
    }
    here
}

/// The bits of what had been cancelled were set again by the scrub, as the old views know of no cancel: whoever attached the buffers had it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_log_and_old_views_bring_no_bits_back() {
    let memory = MemoryDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let world = World::on(Arc::clone(&disk), config(ROOM));
    send(&world, 0, BEFORE).await;
    let (own, clock) = (world.config.clone(), Arc::clone(&world.clock));
    world.engine.shutdown().unwrap();
    drop(world);
    let dirs = ["/spool/log", "/spool/index"];
    let before = dirs.map(|dir| contents(&memory, Path::new(dir))).concat();
    let world = open_on(Arc::clone(&disk), &own, &clock);
    let gone = [5, 50, 71];
    let refs = gone.map(|n| ArticleRef::Id(id(n)));
    let outcomes = world.engine.withdraw(&refs, Reason::Cancelled).unwrap();
    assert_eq!(outcomes, [const { Withdrawal::Done }; 3]);
    send(&world, BEFORE, BEHIND).await;
    world.engine.shutdown().unwrap();
    drop(world);
    put_back(&memory, &dirs, &before);
    let mut world = open_on(disk, &own, &clock);
    for start in 0..2 {
        let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        assert_eq!(report.headers, [""; 0], "start {start}");
        let elsewhere = World::new(config(4 * ROOM));
        let what = Attaching {
            paths: copied(&memory, elsewhere.disk.as_ref()),
            make_groups: false,
            withdrawn: false,
            in_place: false,
            oldest_may_go: false,
            dry_run: false,
        };
        let report = elsewhere.engine.attach(&what, &mut |_, _| true).unwrap();
        let counts = (report.taken, report.withdrawn, report.damaged);
        assert_eq!(
            counts,
            ((BEFORE + BEHIND - 3) as u64, 3, 0),
            "start {start}"
        );
        world = world.restart();
    }
}

/// Copies the buffers to another disk.
fn copied(from: &dyn Disk, to: &dyn Disk) -> Vec<PathBuf> {
    let dir = Path::new("/elsewhere");
    to.create_dir_all(dir).unwrap();
    let copy = |name: &str| {
        let octets = read_whole(from, &Path::new("/spool/buffers").join(name), 64 << 20).unwrap();
        let path = dir.join(name);
        to.open(&path, OpenMode::CreateNew)
            .unwrap()
            .write_at(&octets, 0)
            .unwrap();
        path
    };
    ["C0", "C1"].map(copy).to_vec()
}

/// A start said nothing of it, and its newer articles stayed in counts and lists for ever, as damage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buffer_that_is_older_than_the_log_is_told_and_costs_what_it_lacks() {
    for (is_killed, by_scrub) in [(false, false), (false, true), (true, false)] {
        let what = format!("killed: {is_killed}, by a scrub: {by_scrub}");
        let memory = MemoryDisk::new();
        let (world, before) = gone_on(&memory).await;
        let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
        let left = memory.crash_losing_all();
        world.engine.shutdown().unwrap();
        drop(world);
        let disk = if is_killed { left } else { memory };
        let older = (Path::new(C1), before.as_slice());
        assert_told(&disk, (&config, &clock), older, by_scrub, &what).await;
    }
}

async fn assert_told(
    disk: &MemoryDisk,
    (config, clock): (&EngineConfig, &Arc<FakeClock>),
    (path, before): (&Path, &[u8]),
    by_scrub: bool,
    what: &str,
) {
    let sound = open_on(Arc::new(disk.crash_losing_all()), config, clock);
    let states: Vec<String> = sound
        .engine
        .status()
        .buffers
        .into_iter()
        .map(|it| it.state)
        .collect();
    assert!(!states.concat().contains("behind"), "{what}: {states:?}");
    drop(sound);
    disk.corrupt(path, 0, before).unwrap();
    let world = open_on(Arc::new(disk.clone()), config, clock);
    let buffers = world.engine.status().buffers;
    let told: Vec<bool> = buffers
        .iter()
        .map(|it| it.state.contains("it is behind the log"))
        .collect();
    assert_eq!(told, [false, true], "{what}: {buffers:?}");
    let all = BEFORE + BEHIND;
    if by_scrub {
        world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    }
    let count = || world.engine.group("misc.test").unwrap().count;
    let there = here(&world, all).await;
    assert!(
        (BEFORE..all - 50).contains(&there.len()),
        "{what}: {}",
        there.len()
    );
    assert_eq!(there[..BEFORE], (0..BEFORE).collect::<Vec<_>>(), "{what}");
    assert_eq!(world.lines("misc.test").await.len(), there.len(), "{what}");
    assert_eq!(count(), there.len() as u64, "{what}");
    assert_eq!(world.engine.status().counters.corrupt_reads, 0, "{what}");
    let world = world.restart();
    send(&world, all, 50).await;
    assert_eq!(
        here(&world, all + 50).await.len(),
        there.len() + 50,
        "{what}"
    );
    let told = world.engine.status().buffers.into_iter().map(|it| it.state);
    assert!(
        !told.collect::<String>().contains("behind the log"),
        "{what}"
    );
}

/// It was known to the start that found it, and to nobody behind the next: what was not asked for by then was damage for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_older_buffer_lacks_is_known_behind_the_next_starts() {
    for is_killed in [false, true] {
        let what = format!("killed: {is_killed}");
        let memory = MemoryDisk::new();
        let (world, before) = gone_on(&memory).await;
        let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
        world.engine.shutdown().unwrap();
        drop(world);
        memory.corrupt(Path::new(C1), 0, &before).unwrap();
        let told = |world: &World| {
            let states = world.engine.status().buffers.into_iter().map(|it| it.state);
            states.collect::<String>().contains("behind the log")
        };
        let mut disk = memory.clone();
        let mut world = open_on(Arc::new(disk.clone()), &config, &clock);
        assert!(told(&world), "{what}");
        let all = BEFORE + BEHIND;
        for start in 0..2 {
            // Its header is as new as the log from here on.
            send(&world, all + start * 50, 50).await;
            world.seal();
            let left = disk.crash_losing_all();
            world.engine.shutdown().unwrap();
            drop(world);
            if is_killed {
                disk = left;
            }
            world = open_on(Arc::new(disk.clone()), &config, &clock);
            assert!(!told(&world), "{what}");
        }
        let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        assert_eq!(report.damaged.len(), 0, "{what}");
        let there = here(&world, all + 100).await;
        assert!(
            (BEFORE + 100..all).contains(&there.len()),
            "{what}: {}",
            there.len()
        );
        assert_eq!(world.lines("misc.test").await.len(), there.len(), "{what}");
        assert_eq!(world.problems(), [""; 0], "{what}");
    }
}

/// What an older buffer lacked is there again with the right one: damage to it is damage then, and nothing is withdrawn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_back_in_a_buffer_is_not_lacked_any_more() {
    let memory = MemoryDisk::new();
    let (world, before) = gone_on(&memory).await;
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    world.engine.shutdown().unwrap();
    drop(world);
    let right = read_whole(&memory, Path::new(C1), 64 << 20).unwrap();
    memory.corrupt(Path::new(C1), 0, &before).unwrap();
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    let states = world.engine.status().buffers.into_iter().map(|it| it.state);
    assert!(states.collect::<String>().contains("behind the log"));
    world.engine.shutdown().unwrap();
    drop(world);
    memory.corrupt(Path::new(C1), 0, &right).unwrap();
    let all = BEFORE + BEHIND;
    let place = |id: &str| right.windows(id.len()).position(|it| it == id.as_bytes());
    let there = (BEFORE..all).find_map(|n| Some((n, place(&id(n))?)));
    let (n, at) = there.unwrap();
    memory
        .corrupt(Path::new(C1), at as u64 + 1000, b"rot")
        .unwrap();
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    let told = report.damaged.iter().map(|it| it.message_id.as_deref());
    assert_eq!(told.collect::<Vec<_>>(), [Some(id(n).as_str())]);
    assert_eq!(here(&world, all).await.len(), all - 1);
    assert_eq!(world.lines("misc.test").await.len(), all);
}

/// Behind an old log that led to where articles had been before they moved, a scrub marked the records to which they had moved as withdrawn where a
/// bitmap has no bits: whoever attached that buffer did without them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_had_moved_is_not_marked_as_withdrawn_behind_an_old_log() {
    let memory = MemoryDisk::new();
    let with_pile = |octets: u64| {
        let mut config = config(octets);
        config.store.sets.push(SetConfig {
            name: "pile".to_owned(),
            method: "segment".to_owned(),
            segment_octets: 1 << 20,
            ..SetConfig::default()
        });
        let rule = RuleConfig {
            groups: "misc.other".to_owned(),
            set: "pile".to_owned(),
            ..RuleConfig::default()
        };
        config.store.rules.insert(0, rule);
        config
    };
    let mut world = World::on(Arc::new(memory.clone()), with_pile(ROOM / 4));
    world.config = with_pile(ROOM);
    for name in ["C0", "C1"] {
        let larger = world.config.clone();
        let resized = world.engine.resize_buffer(&larger, name, &mut |_, _, _| {});
        resized.unwrap();
    }
    // As far as behind the end of the bitmap, which is one page of bits.
    send(&world, 0, 1800).await;
    let piled: Vec<_> = (2000..2040).map(|n| article(n, "misc.other")).collect();
    assert_eq!(world.send(&piled).await, [Outcome::Accepted; 40]);
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    world.engine.shutdown().unwrap();
    drop(world);
    let dirs = ["/spool/log", "/spool/index"];
    let before = dirs.map(|dir| contents(&memory, Path::new(dir))).concat();
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    let what = Relocation {
        from: "pile".to_owned(),
        to: "main".to_owned(),
        groups: None,
        dry_run: false,
    };
    let moved = world.engine.relocate(&what, &mut |_, _| true).unwrap();
    assert_eq!(moved.articles, 40);
    world.engine.shutdown().unwrap();
    drop(world);
    put_back(&memory, &dirs, &before);
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    // What is committed now comes behind what moved.
    send(&world, 3000, 1).await;
    let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    let marked = report.headers.iter().any(|told| told.contains("marked"));
    assert!(!marked, "{:?}", report.headers);
    let elsewhere = World::new(crate::world::config(4 * ROOM));
    let what = Attaching {
        paths: copied(&memory, elsewhere.disk.as_ref()),
        make_groups: false,
        withdrawn: false,
        dry_run: false,
        in_place: false,
        oldest_may_go: false,
    };
    let report = elsewhere.engine.attach(&what, &mut |_, _| true).unwrap();
    assert_eq!((report.taken, report.withdrawn), (1841, 0), "{report:?}");
}
