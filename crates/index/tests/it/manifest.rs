//! The manifest is lost: it is made again from the sealed files and the log, whatever stage they are in.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, Effect, Fault, FaultyDisk, MemoryDisk, Op, OpenMode, read_whole};
use newsreel_index::{Error, Views};
use newsreel_wire::Sequence;

use crate::damage::rebuild_all;
use crate::world::{DIR, Marks, Record, SPOOL, World, small};

/// A way to lose it.
type Harm = fn(&MemoryDisk, &Path);

const HARMS: [Harm; 4] = [
    |disk, path| disk.remove(path).unwrap(),
    |disk, path| {
        let file = disk.open(path, OpenMode::ReadWrite).unwrap();
        file.set_len(0).unwrap();
    },
    |disk, path| {
        let file = disk.open(path, OpenMode::ReadWrite).unwrap();
        file.set_len(100).unwrap();
    },
    |disk, path| {
        let len = disk.open(path, OpenMode::Read).unwrap().len().unwrap();
        disk.flip_bit(path, 60, 3).unwrap();
        disk.flip_bit(path, len / 2 + 60, 5).unwrap();
    },
];

/// What is done between two looks.
fn stage(world: &mut World, nth: u64) {
    match nth % 4 {
        0 => {
            let article = world.article(&[1, 2], 2);
            world.record(Record::Withdraw(article));
        }
        1 => {
            world.marks.raise(0, world.positions[0] / 2);
            world.pass(2000);
        }
        2 => world.compact(),
        _ => {}
    }
    world.articles(30, 4);
    if !nth.is_multiple_of(3) {
        world.checkpoint();
    }
}

/// Opens what is left, with a log that begins at `log_from`, and looks at everything.
fn regained(world: &mut World, left: Arc<MemoryDisk>, log_from: u64, what: &str) {
    let disk: Arc<dyn Disk> = left;
    let again = Arc::clone(&disk);
    let (checkpoint, _) = Views::regain(again, Path::new(DIR), SPOOL, Sequence(log_from))
        .unwrap_or_else(|error| panic!("{what}, log from {log_from}: {error}"));
    assert!(checkpoint.0 + 1 >= log_from, "{what}: {checkpoint:?}");
    world.reopen(&disk);
    rebuild_all(world);
    world.check();
    world.articles(10, 4);
    world.checkpoint();
    world.compact();
    world.check();
}

#[test]
fn a_manifest_lost_at_any_stage_is_made_again() {
    let manifest = Path::new(DIR).join("manifest");
    for (which, harm) in HARMS.into_iter().enumerate() {
        let memory = Arc::new(MemoryDisk::new());
        let disk: Arc<dyn Disk> = Arc::clone(&memory) as _;
        let mut world = World::with_groups(&disk, small(), 4);
        for nth in 1..16 {
            stage(&mut world, nth);
            let checkpoint = world.views.checkpoint().unwrap_or(Sequence(0)).0;
            for log_from in [1, checkpoint / 2 + 1, checkpoint + 1] {
                let left = Arc::new(memory.crash_losing_all());
                harm(&left, &manifest);
                let what = format!("harm {which}, stage {nth}");
                let opened = Views::open(
                    Arc::clone(&left) as _,
                    Path::new(DIR),
                    small(),
                    SPOOL,
                    Arc::new(Marks::default()),
                );
                let error = opened.unwrap_err();
                assert!(
                    matches!(error, Error::ManifestLost { .. }),
                    "{what}: {error}"
                );
                let mut other = World::with_history_of(&world);
                regained(&mut other, left, log_from, &what);
            }
        }
    }
}

#[test]
fn a_damaged_copy_is_told_and_written_again() {
    let memory = Arc::new(MemoryDisk::new());
    let faulty = Arc::new(FaultyDisk::new(Arc::clone(&memory) as Arc<dyn Disk>));
    let disk: Arc<dyn Disk> = Arc::clone(&faulty) as _;
    let mut world = World::with_groups(&disk, small(), 4);
    (1..4).for_each(|nth| stage(&mut world, nth));
    let path = Path::new(DIR).join("manifest");
    let len = disk.open(&path, OpenMode::Read).unwrap().len().unwrap();
    let copies = [(60, "first"), (len / 2 + 60, "second")];
    // What the medium does not give is no better than what it gives wrong.
    for (is_bad_sector, (at, copy)) in [false, true]
        .iter()
        .flat_map(|is| copies.map(|at| (is, at)))
    {
        assert_eq!(world.views.check_files().unwrap(), None);
        match is_bad_sector {
            false => memory.flip_bit(&path, at, 3).unwrap(),
            true => {
                let fault = Fault::new(Op::Read, "/manifest", Effect::Medium);
                faulty.add(fault.covering(at).forever());
            }
        }
        let damage = world.views.check_files().unwrap();
        let expected = format!("{}: its {copy} copy is damaged", path.display());
        assert_eq!(damage, Some(expected));
        // Who will write sweeps first; that gives the file other sectors.
        let before = faulty.counts().changes();
        world.reopen(&disk);
        assert!(faulty.counts().changes() > before, "it is written again");
        faulty.clear();
        world.check();
    }
    assert_eq!(world.views.check_files().unwrap(), None);
}

/// The power goes at any change of checkpoints and merges, and the manifest is gone besides.
#[test]
fn a_manifest_lost_in_a_crash_is_made_again() {
    let mut nth = 1;
    loop {
        let memory = Arc::new(MemoryDisk::new());
        let faulty = Arc::new(FaultyDisk::new(Arc::clone(&memory) as Arc<dyn Disk>));
        let disk: Arc<dyn Disk> = Arc::clone(&faulty) as _;
        let mut world = World::with_groups(&disk, small(), 4);
        (2..10).for_each(|nth| stage(&mut world, nth));
        faulty.stop_at_change(faulty.counts().changes() + nth);
        let done = (|| {
            let mut frozen = world.applier.freeze(world.sequence())?;
            frozen.write()?;
            world.views.install(frozen)?;
            while world.views.compact_step()? {}
            Ok::<_, Error>(())
        })();
        let checkpoint = world.views.checkpoint().unwrap().0;
        for log_from in [1, checkpoint + 1] {
            let left = Arc::new(memory.crash(nth));
            let manifest = Path::new(DIR).join("manifest");
            left.remove(&manifest).unwrap();
            let mut other = World::with_history_of(&world);
            regained(&mut other, left, log_from, &format!("change {nth}"));
        }
        if done.is_ok() && !faulty.stopped() {
            break;
        }
        nth += 1;
    }
    assert!(nth > 20, "{nth}");
}

/// A spool whose manifest is gone, and the script that its disk follows.
fn without_manifest() -> (Arc<FaultyDisk>, World) {
    let memory = Arc::new(MemoryDisk::new());
    let faulty = Arc::new(FaultyDisk::new(Arc::clone(&memory) as Arc<dyn Disk>));
    let disk: Arc<dyn Disk> = Arc::clone(&faulty) as _;
    let mut world = World::with_groups(&disk, small(), 4);
    (1..6).for_each(|nth| stage(&mut world, nth));
    disk.remove(&Path::new(DIR).join("manifest")).unwrap();
    (faulty, world)
}

fn names(disk: &dyn Disk) -> Vec<String> {
    let files = disk.list(Path::new(DIR)).unwrap();
    files.into_iter().map(|file| file.name).collect()
}

/// A file that could not be opened for a reason that passes counted as lost, and was removed as one that no manifest names.
#[test]
fn what_cannot_be_read_just_now_is_not_taken_for_lost() {
    for op in [Op::Open, Op::Read, Op::Stat] {
        let (faulty, mut world) = without_manifest();
        let disk: Arc<dyn Disk> = Arc::clone(&faulty) as _;
        let log_from = world.views.checkpoint().unwrap().0 + 1;
        let regain = || {
            let disk = Arc::clone(&disk);
            Views::regain(disk, Path::new(DIR), SPOOL, Sequence(log_from))
        };
        let before = names(disk.as_ref());
        for nth in 1..4 {
            // Anything but what a failing medium says.
            faulty.add(Fault::new(op, "history-", Effect::Full).nth(nth));
            let error = regain().unwrap_err();
            assert!(matches!(error, Error::Host(_)), "{op}: {error}");
            assert_eq!(names(disk.as_ref()), before);
            faulty.clear();
        }
        regain().unwrap();
        world.reopen(&disk);
        assert_eq!(world.views.damaged(), []);
        world.check();
    }
}

/// What the medium does not give today may be read by somebody tomorrow.
#[test]
fn files_that_cannot_be_read_are_set_aside() {
    let (faulty, mut world) = without_manifest();
    let disk: Arc<dyn Disk> = Arc::clone(&faulty) as _;
    let oldest = names(disk.as_ref())
        .into_iter()
        .find(|name| name.starts_with("history-"))
        .unwrap();
    let (oldest, _) = oldest.split_once('.').unwrap();
    let octets = |suffix: &str| {
        let path = Path::new(DIR).join(format!("{oldest}.{suffix}"));
        read_whole(disk.as_ref(), &path, 1 << 30).unwrap()
    };
    let before = octets("run");
    faulty.add(Fault::new(Op::Read, oldest, Effect::Medium).forever());
    let log_from = world.views.checkpoint().unwrap().0 + 1;
    let again = Arc::clone(&disk);
    Views::regain(again, Path::new(DIR), SPOOL, Sequence(log_from)).unwrap();
    world.reopen(&disk);
    rebuild_all(&mut world);
    faulty.clear();
    assert_eq!(octets("run.bad"), before);
    assert_eq!(octets("copy.bad"), before);
    world.check();
    world.reopen(&disk);
    world.check();
}

/// Files that end before the log begins: whatever lay between is nowhere.
#[test]
fn what_cannot_be_decided_is_refused_and_left_alone() {
    let memory = Arc::new(MemoryDisk::new());
    let disk: Arc<dyn Disk> = Arc::clone(&memory) as _;
    let mut world = World::with_groups(&disk, small(), 4);
    (1..6).for_each(|nth| stage(&mut world, nth));
    let checkpoint = world.views.checkpoint().unwrap().0;
    disk.remove(&Path::new(DIR).join("manifest")).unwrap();
    let before = disk.list(Path::new(DIR)).unwrap().len();
    let regained = Views::regain(
        Arc::clone(&disk),
        Path::new(DIR),
        SPOOL,
        Sequence(checkpoint + 2),
    );
    let error = regained.unwrap_err();
    assert!(
        matches!(error, Error::Manifest { .. }) && error.to_string().contains("restore"),
        "{error}"
    );
    assert_eq!(disk.list(Path::new(DIR)).unwrap().len(), before);
}
