//! Files of articles whose commits are durable before they are: after a power cut they are made again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use newsreel_host::disk::{Effect, Fault};
use newsreel_host::{Disk, FaultyDisk, MemoryDisk, Op, OpenMode, read_whole};
use newsreel_store::conformance::{Log, Logged, Rig, WIRE, config_of};
use newsreel_store::{Access, Result, StoreConfig};

const DIR: &str = "/spool/articles/main";
const REDO: &str = "/spool/articles/main/.catalogue/redo.0";
const METHODS: [&str; 4] = ["md5spool", "timehash", "tradspool", WIRE];

/// A set that keeps so many octets of files.
fn config(method: &str, redo_octets: u64) -> StoreConfig {
    let mut config = config_of(method, 1 << 20);
    config.sets[0].redo_octets = Some(redo_octets);
    config
}

/// Articles of numbers from here on, seven to a commit.
fn feed(rig: &mut Rig, first: u64, commits: u64) -> Result<()> {
    for commit in 0..commits {
        for n in 0..7 {
            rig.place(first + commit * 7 + n, 900 + 700 * n as usize)
                .unwrap();
        }
        rig.commit()?;
    }
    Ok(())
}

/// The files of articles and what they have.
fn files(disk: &dyn Disk) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut dirs, mut files) = (vec![PathBuf::from(DIR)], BTreeMap::new());
    while let Some(dir) = dirs.pop() {
        for entry in disk.list(&dir).unwrap_or_default() {
            let path = dir.join(&entry.name);
            match entry.is_dir {
                true if entry.name == ".catalogue" => {}
                true => dirs.push(path),
                false => {
                    let octets = read_whole(disk, &path, 1 << 20).unwrap();
                    files.insert(path, octets);
                }
            }
        }
    }
    files
}

fn recover(disk: &MemoryDisk, config: &StoreConfig, log: &Log) -> Rig {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Rig::recover(disk, config, log.clone(), Access::Write).unwrap()
}

fn withdraw(rig: &mut Rig, articles: &[Logged]) {
    let tokens: Vec<_> = articles.iter().map(|logged| logged.token).collect();
    let mut writes = Vec::new();
    rig.store.withdrawn(&tokens, &mut writes);
    for write in &mut writes {
        write.write().unwrap();
        write.sync().unwrap();
    }
}

#[test]
fn what_a_power_cut_took_is_made_again() {
    for method in METHODS {
        let (memory, config) = (MemoryDisk::new(), config(method, 4 << 20));
        let mut rig = Rig::new(Arc::new(memory.clone()), &config).unwrap();
        feed(&mut rig, 1, 9).unwrap();
        let (before, log) = (files(&memory), rig.log.clone());
        assert!(before.len() >= 63, "{method}");
        let left = memory.crash_losing_all();
        assert_eq!(files(&left).len(), 0, "{method}: nothing was durable");
        let rig = recover(&left, &config, &log);
        assert_eq!(rig.read_all().read, 63, "{method}");
        assert!(files(&left) == before, "{method}");
        // Now it is.
        assert!(files(&left.crash_losing_all()) == before, "{method}");
    }
}

/// Of some files a power cut leaves the names, or a part of what they have; and their names may be somebody's.
#[test]
fn files_of_which_a_part_was_left_are_mended_in_their_place() {
    let config = config("tradspool", 4 << 20);
    let memory = MemoryDisk::new();
    let mut rig = Rig::new(Arc::new(memory.clone()), &config).unwrap();
    feed(&mut rig, 1, 3).unwrap();
    let (before, log) = (files(&memory), rig.log.clone());
    let left = memory.crash_losing_all();
    let mut somebodys = PathBuf::new();
    // The others are links to these.
    let first = before
        .iter()
        .filter(|(path, _)| path.starts_with("/spool/articles/main/misc/test"));
    for (at, (path, octets)) in first.enumerate() {
        let part = match at % 5 {
            0 => Vec::new(),
            1 => octets[..octets.len() / 2].to_vec(),
            2 => vec![0; octets.len()],
            3 if somebodys.as_os_str().is_empty() => {
                somebodys.clone_from(path);
                b"somebody's".to_vec()
            }
            _ => continue,
        };
        left.create_dir_all(path.parent().unwrap()).unwrap();
        let file = left.open(path, OpenMode::CreateNew).unwrap();
        file.write_at(&part, 0).unwrap();
    }
    let rig = recover(&left, &config, &log);
    assert_eq!(rig.read_all().read, 21);
    let mut after = files(&left);
    assert_eq!(after.remove(&somebodys).unwrap(), b"somebody's");
    let mut later = somebodys.clone().into_os_string();
    later.push("+");
    let own = after.remove(Path::new(&later)).unwrap();
    after.insert(somebodys, own);
    let (names, wanted): (Vec<_>, Vec<_>) = (after.keys().collect(), before.keys().collect());
    assert_eq!(names, wanted);
    assert!(after == before);
}

/// What was withdrawn stays so.
#[test]
fn what_was_withdrawn_is_not_made_again() {
    for method in METHODS {
        let (memory, config) = (MemoryDisk::new(), config(method, 4 << 20));
        let mut rig = Rig::new(Arc::new(memory.clone()), &config).unwrap();
        feed(&mut rig, 1, 4).unwrap();
        let all: Vec<Logged> = rig.log.articles().copied().collect();
        withdraw(&mut rig, &all[3..9]);
        let before = files(&memory);
        let left = memory.crash_losing_all();
        let rig = recover(&left, &config, &rig.log);
        assert!(files(&left) == before, "{method}");
        for (at, logged) in all.iter().enumerate() {
            let is_gone = (3..9).contains(&at);
            assert_eq!(rig.read(logged).is_err(), is_gone, "{method} {at}");
        }
    }
}

/// The kernel says once that it lost what was written, and then that all is well.
#[test]
fn files_that_could_not_be_made_durable_are_written_again() {
    let (memory, config) = (MemoryDisk::new(), config("md5spool", 4 << 20));
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let mut rig = Rig::new(Arc::new(faulty.clone()), &config).unwrap();
    feed(&mut rig, 1, 4).unwrap();
    let before = files(&memory);
    let syncs = || faulty.counts().of(Op::SyncDir);
    let at_first = syncs();
    faulty.add(Fault::new(Op::SyncDir, DIR, Effect::Medium));
    rig.checkpoint().unwrap();
    assert_eq!(syncs(), at_first + 1);
    assert_eq!(files(&memory.crash_losing_all()).len(), 0);
    feed(&mut rig, 1000, 1).unwrap();
    let left = memory.crash_losing_all();
    for (path, octets) in &before {
        let stored = read_whole(&left, path, 1 << 20);
        assert!(
            stored.is_ok_and(|stored| stored == *octets),
            "{}",
            path.display()
        );
    }
    let rig = recover(&left, &config, &rig.log);
    assert_eq!(rig.read_all().read, 35);
}

/// One that cannot be read costs the files of its commit alone, and is told.
#[test]
fn what_is_damaged_costs_nothing_else() {
    let (memory, config) = (MemoryDisk::new(), config("md5spool", 4 << 20));
    let mut rig = Rig::new(Arc::new(memory.clone()), &config).unwrap();
    feed(&mut rig, 1, 3).unwrap();
    let left = memory.crash_losing_all();
    // The first commit has some 21,000 octets; this is in its text.
    left.flip_bit(Path::new(REDO), 5000, 3).unwrap();
    let rig = recover(&left, &config, &rig.log);
    let articles: Vec<Logged> = rig.log.articles().copied().collect();
    assert!(articles[..7].iter().all(|logged| rig.read(logged).is_err()));
    assert!(articles[7..].iter().all(|logged| rig.read(logged).is_ok()));
    let facts = rig.reader.facts();
    let told = facts[0].complaint.as_deref().unwrap_or_default();
    assert!(told.contains("redo.0"), "{told}");
}

/// Large articles are written once: their commits sync them as files.
#[test]
fn large_articles_are_durable_as_files() {
    let (memory, config) = (MemoryDisk::new(), config("timehash", 4 << 20));
    let mut rig = Rig::new(Arc::new(memory.clone()), &config).unwrap();
    for number in 0..3 {
        rig.place(number, 40_000).unwrap();
    }
    rig.commit().unwrap();
    assert!(!memory.exists(Path::new(REDO)).unwrap());
    assert!(files(&memory.crash_losing_all()) == files(&memory));
}

/// Where not each commit is synced, one that is makes those before it durable, too.
#[test]
fn a_commit_makes_those_durable_that_were_only_written() {
    let (memory, config) = (MemoryDisk::new(), config("md5spool", 4 << 20));
    let mut rig = Rig::new(Arc::new(memory.clone()), &config).unwrap();
    feed(&mut rig, 1, 2).unwrap();
    for commit in 1..4 {
        rig.place(100 * commit, 2000).unwrap();
        let mut batches = rig.seal();
        for batch in &mut batches {
            batch.write().unwrap();
            if commit == 3 {
                batch.sync().unwrap();
            }
        }
        rig.log_commit();
    }
    let left = memory.crash_losing_all();
    let rig = recover(&left, &config, &rig.log);
    assert_eq!(rig.read_all().read, 17);
}

/// While they could not be made again nobody takes them for removed, and the next start tries it once more.
#[test]
fn a_disk_that_fails_at_the_start_costs_nothing() {
    let (memory, config) = (MemoryDisk::new(), config("tradspool", 4 << 20));
    let mut rig = Rig::new(Arc::new(memory.clone()), &config).unwrap();
    feed(&mut rig, 1, 3).unwrap();
    let log = rig.log.clone();
    let left = memory.crash_losing_all();
    let faulty = FaultyDisk::new(Arc::new(left.clone()));
    faulty.add(Fault::new(Op::SyncDir, DIR, Effect::Medium).forever());
    let rig = Rig::recover(Arc::new(faulty), &config, log.clone(), Access::Write).unwrap();
    assert!(rig.reader.facts()[0].suspended.is_some());
    let token = log.articles().next().unwrap().token;
    let path = files(&left).into_keys().next().unwrap();
    left.remove(&path).unwrap();
    for logged in log.articles() {
        let removed = rig.reader.removed(&logged.token);
        assert!(
            removed.is_none_or(|removed| !removed.is_certain),
            "{token:?}"
        );
    }
    drop(rig);
    let rig = recover(&left.crash_losing_all(), &config, &log);
    assert_eq!(rig.read_all().read, 21);
}

/// What an orderly end settled is not looked at again: somebody may have removed a file since.
#[test]
fn what_was_settled_is_left_alone() {
    let (memory, config) = (MemoryDisk::new(), config("md5spool", 4 << 20));
    let mut rig = Rig::new(Arc::new(memory.clone()), &config).unwrap();
    feed(&mut rig, 1, 3).unwrap();
    rig.checkpoint().unwrap();
    let path = files(&memory).into_keys().next().unwrap();
    memory.remove(&path).unwrap();
    let rig = recover(&memory, &config, &rig.log);
    assert!(!memory.exists(&path).unwrap());
    drop(rig);
}

/// A checkpoint comes while files are written whose octets are kept already: it must not say of those that they are settled.
#[test]
fn a_checkpoint_beside_a_commit_settles_what_was_written_alone() {
    let (memory, config) = (MemoryDisk::new(), config("md5spool", 4 << 20));
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let mut rig = Rig::new(Arc::new(faulty.clone()), &config).unwrap();
    feed(&mut rig, 1, 2).unwrap();
    let mut checkpoint = Vec::new();
    rig.store.checkpoint(&mut checkpoint);
    for number in 100..107 {
        rig.place(number, 2000).unwrap();
    }
    let mut batches = rig.seal();
    let slow = Effect::Slow(Duration::from_millis(20));
    faulty.add(Fault::new(Op::Write, DIR, slow).forever());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(80));
            checkpoint
                .iter_mut()
                .for_each(|write| write.write().unwrap());
        });
        for batch in &mut batches {
            batch.will_sync();
            batch.write().and_then(|()| batch.sync()).unwrap();
        }
    });
    rig.log_commit();
    let left = memory.crash_losing_all();
    let rig = recover(&left, &config, &rig.log);
    assert_eq!(rig.read_all().read, 21);
}
