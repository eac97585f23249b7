//! The power goes at every change and every sync of a checkpoint, a merge and a rebuild: after it the old manifest or
//! the new one is there, and with the log behind it nothing is missing.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, Effect, Fault, FaultyDisk, MemoryDisk, Op};

use crate::world::{DIR, World, row, small};

/// A memory disk under a faulty one, and a world on it.
struct Stage {
    memory: Arc<MemoryDisk>,
    faulty: Arc<FaultyDisk>,
    world: World,
}

/// Two checkpoints' worth of articles sealed, some dead, more in memory.
fn stage() -> Stage {
    let memory = Arc::new(MemoryDisk::new());
    let faulty = Arc::new(FaultyDisk::new(Arc::clone(&memory) as Arc<dyn Disk>));
    let disk: Arc<dyn Disk> = Arc::clone(&faulty) as _;
    let mut world = World::with_groups(&disk, small(), 4);
    for _ in 0..5 {
        world.articles(40, 4);
        world.checkpoint();
    }
    let withdrawn = world.article(&[2], 1);
    world.record(crate::world::Record::Withdraw(withdrawn));
    world.articles(40, 4);
    world.marks.raise(0, world.positions[0] / 2);
    world.pass(2000);
    Stage {
        memory,
        faulty,
        world,
    }
}

/// Stops the machine at the `nth` change from now.
fn stop_at_change(disk: &FaultyDisk, nth: u64) {
    disk.stop_at_change(disk.counts().changes() + nth);
}

/// Stops the machine at the `nth` sync from now.
fn stop_at_sync(disk: &FaultyDisk, nth: u64) {
    disk.stop_at_sync(disk.counts().syncs() + nth);
}

/// What is interrupted; errors are what a stopped machine gives.
type Work = fn(&mut World) -> newsreel_index::Result<()>;

fn checkpoint(world: &mut World) -> newsreel_index::Result<()> {
    let mut frozen = world.applier.freeze(world.sequence())?;
    frozen.write()?;
    world.views.install(frozen)
}

fn compact(world: &mut World) -> newsreel_index::Result<()> {
    while world.views.compact_step()? {}
    Ok(())
}

fn both(world: &mut World) -> newsreel_index::Result<()> {
    checkpoint(world)?;
    compact(world)?;
    world.articles(30, 4);
    checkpoint(world)?;
    compact(world)
}

/// Runs the work with the machine stopping at every place `stop` can name, and looks at what each leaves.
fn at_every(work: Work, stop: fn(&FaultyDisk, u64)) {
    let mut stops = 0;
    loop {
        let mut stage = stage();
        stop(&stage.faulty, stops + 1);
        let result = work(&mut stage.world);
        let is_through = !stage.faulty.stopped();
        // The last change may be the removal of a file, which nobody needs to succeed.
        assert!(result.is_ok() || !is_through, "stop {stops}: {result:?}");
        for seed in 0..3 {
            let left = match seed {
                0 => stage.memory.crash_losing_all(),
                _ => stage.memory.crash(stops * 10 + seed),
            };
            let left: Arc<dyn Disk> = Arc::new(left);
            stage.world.reopen(&left);
            stage.world.check();
            stage.world.checkpoint();
            stage.world.compact();
            stage.world.check();
        }
        if is_through {
            break;
        }
        stops += 1;
    }
    assert!(stops > 5, "{stops} stops");
}

#[test]
fn a_checkpoint_stopped_at_any_change_loses_nothing() {
    at_every(checkpoint, stop_at_change);
}

#[test]
fn a_merge_stopped_at_any_change_loses_nothing() {
    at_every(compact, stop_at_change);
}

#[test]
fn checkpoints_and_merges_stopped_at_any_sync_lose_nothing() {
    at_every(both, stop_at_sync);
}

/// Every operation of a kind fails once; the work is tried again, then everything is compared.
fn fails_once(op: Op, effect: Effect, work: Work) {
    let mut nth = 1;
    loop {
        let mut stage = stage();
        let before = stage.faulty.counts().of(op);
        stage.faulty.add(Fault::new(op, "", effect).nth(nth));
        let mut frozen = stage.world.applier.freeze(stage.world.sequence()).unwrap();
        let first = frozen.write();
        if first.is_err() {
            frozen.write().unwrap();
        }
        stage.world.views.install(frozen).unwrap();
        let second = work(&mut stage.world);
        if second.is_err() {
            work(&mut stage.world).unwrap();
        }
        stage.faulty.clear();
        if stage.world.views.damaged().is_empty() {
            stage.world.check();
        }
        let left: Arc<dyn Disk> = Arc::new(stage.memory.crash_losing_all());
        stage.world.reopen(&left);
        stage.world.check();
        let made = stage.faulty.counts().of(op) - before;
        if nth > made {
            break;
        }
        nth += 1;
    }
    assert!(nth > 3, "{op} was tried {nth} times");
}

#[test]
fn a_failing_write_or_sync_is_survived() {
    fails_once(Op::Write, Effect::Medium, compact);
    fails_once(Op::Sync, Effect::Medium, compact);
    fails_once(Op::SyncDir, Effect::Medium, compact);
}

#[test]
fn a_full_disk_is_survived() {
    fails_once(Op::Write, Effect::Full, compact);
    fails_once(Op::Open, Effect::Full, compact);
    fails_once(Op::Rename, Effect::Full, compact);
}

/// Tried again and again on a full disk, nothing may pile up until the next start.
#[test]
fn what_fails_for_lack_of_room_leaves_no_files_behind() {
    for op in [Op::Open, Op::Write, Op::Sync] {
        for nth in 1..40 {
            let mut stage = stage();
            let fault = Fault::new(op, "", Effect::Full).nth(nth).forever();
            stage.faulty.add(fault);
            let mut frozen = stage.world.applier.freeze(stage.world.sequence()).unwrap();
            for _ in 0..3 {
                let _ = frozen.write();
            }
            let _ = stage.world.views.compact_step();
            let _ = stage.world.views.compact_step();
            stage.faulty.clear();
            frozen.write().unwrap();
            stage.world.views.install(frozen).unwrap();
            // A merge under way has a file, too.
            stage.world.compact();
            assert_no_orphans(&stage, &format!("{op} {nth}"));
        }
    }
}

fn assert_no_orphans(stage: &Stage, what: &str) {
    assert_eq!(
        files(stage.memory.as_ref()),
        wanted_files(&stage.world),
        "{what}"
    );
}

/// Files of runs that are there.
fn files(disk: &dyn Disk) -> usize {
    let files = disk.list(Path::new(DIR)).unwrap();
    files.iter().filter(|file| file.name.contains('-')).count()
}

/// Files that the manifest names: two for each run of history and groups.
fn wanted_files(world: &World) -> usize {
    let runs = world.views.facts();
    2 * (runs.history.buckets + runs.group_runs) + runs.overview.packs
}

#[test]
fn what_a_crash_leaves_lying_about_is_cleared_away() {
    let mut stage = stage();
    stop_at_change(&stage.faulty, 6);
    assert!(checkpoint(&mut stage.world).is_err());
    let left: Arc<dyn Disk> = Arc::new(stage.memory.crash(3));
    stage.world.reopen(&left);
    assert_eq!(files(left.as_ref()), wanted_files(&stage.world));
}

#[test]
fn a_rebuild_stopped_at_any_sync_leaves_the_old_or_the_new() {
    let mut nth = 1;
    loop {
        let mut stage = stage();
        checkpoint(&mut stage.world).unwrap();
        let files = stage.memory.list(Path::new(DIR)).unwrap();
        let name = &files
            .iter()
            .find(|file| file.name.starts_with("overview"))
            .unwrap()
            .name;
        let path = Path::new(DIR).join(name);
        stage.memory.corrupt(&path, 8, &[0; 16]).unwrap();
        let disk: Arc<dyn Disk> = Arc::clone(&stage.faulty) as _;
        stage.world.reopen(&disk);
        let damaged = stage.world.views.damaged();
        assert_eq!(damaged.len(), 1);
        stop_at_sync(&stage.faulty, nth);
        let result = rebuild(&stage.world, damaged[0].run);
        let left: Arc<dyn Disk> = Arc::new(stage.memory.crash(nth));
        stage.world.reopen(&left);
        for damaged in stage.world.views.damaged() {
            rebuild(&stage.world, damaged.run).unwrap();
        }
        stage.world.check();
        if result.is_ok() {
            break;
        }
        nth += 1;
    }
    assert!(nth > 3);
}

/// What the engine does with a damaged run: give back what the store has of its sequences.
pub(crate) fn rebuild(world: &World, run: u64) -> newsreel_index::Result<()> {
    let mut rebuild = world.views.rebuild(run)?;
    let (first, last) = (rebuild.damaged().first, rebuild.damaged().last);
    let records = world.log.iter().enumerate();
    for (at, record) in records {
        let sequence = at as u64 + 1;
        let crate::world::Record::Article(article) = record else {
            continue;
        };
        let is_stored = article.token.position()
            >= newsreel_index::Liveness::floor(world.marks.as_ref(), article.token.buffer());
        if (first.0..=last.0).contains(&sequence) && is_stored {
            let (id, text) = (article.id(), article.text());
            rebuild.article(&row(article, &id, &text))?;
        }
    }
    rebuild.finish()
}
