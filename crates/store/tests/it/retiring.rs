//! Buffers that take nothing new: how they drain, what a restart knows of it, and when they may be forgotten.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use newsreel_host::disk::{Effect, Fault};
use newsreel_host::{Disk, FaultyDisk, MemoryDisk, Op, OpenMode};
use newsreel_store::conformance::{Logged, Rig, config_of};
use newsreel_store::{Access, BufferFacts, SetOrder, StoreConfig};
use newsreel_wire::{BufferId, Sequence};

use crate::common::feed;

const ROOM: u64 = 1 << 20;
const C0: BufferId = BufferId(1);

/// Two buffers, both overwritten once at least, and C0 retired.
fn retired(disk: &Arc<dyn Disk>, config: &StoreConfig) -> Rig {
    retired_after(3 * ROOM, disk, config)
}

fn retired_after(octets: u64, disk: &Arc<dyn Disk>, config: &StoreConfig) -> Rig {
    let mut rig = Rig::new(Arc::clone(disk), config).unwrap();
    feed(&mut rig, octets);
    let retirement = rig.store.retirement();
    assert!(retirement.retire("C0", true).unwrap());
    assert!(!retirement.retire("C0", true).unwrap(), "it is said twice");
    rig
}

fn restarted(rig: Rig, config: &StoreConfig) -> Rig {
    let (disk, log) = (Arc::clone(&rig.disk), rig.log.clone());
    drop(rig);
    Rig::recover(disk, config, log, Access::Write).unwrap()
}

/// The articles of C0 that are alive, and those that are gone.
fn of_c0(rig: &Rig) -> (Vec<Logged>, Vec<Logged>) {
    let here = rig.log.articles().filter(|it| it.token.buffer() == C0);
    here.partition(|logged| rig.reader.is_live(&logged.token))
}

fn facts(rig: &Rig) -> BTreeMap<String, BufferFacts> {
    let facts = rig.reader.facts().into_iter();
    facts.map(|facts| (facts.name.clone(), facts)).collect()
}

/// The newest that is gone of what was alive in C0, and the oldest that is left in the others.
fn newest_gone_and_oldest_left(
    rig: &Rig,
    before: &[Logged],
) -> (Option<Sequence>, Option<Sequence>) {
    let gone = before.iter().filter(|it| !rig.reader.is_live(&it.token));
    let gone = gone.map(|it| it.sequence).max();
    let others = rig.log.articles().filter(|it| it.token.buffer() != C0);
    let left = others.filter(|it| rig.reader.is_live(&it.token));
    (gone, left.map(|it| it.sequence).min())
}

#[test]
fn a_retired_buffer_drains_as_the_others_come_around() {
    // Many runs in each; and those that are filled one behind the other where C0 has the newest, or the oldest, in percent what is left
    // when the others have come half around.
    let room = 8 * ROOM;
    for (order, fed, half) in [
        (SetOrder::Interleave, 3 * room, 30..=75),
        (SetOrder::Sequential, 3 * room - room / 8, 100..=100),
        (SetOrder::Sequential, 4 * room - room / 8, 20..=65),
    ] {
        let mut config = config_of("cnfs", room);
        config.sets[0].order = order;
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut rig = retired_after(fed, &disk, &config);
        let (before, _) = of_c0(&rig);
        assert!(before.len() > 200, "{}", before.len());
        let last = rig.log.articles().filter(|it| it.token.buffer() == C0);
        let last = last.map(|it| it.sequence).max();

        feed(&mut rig, room / 2);
        for _ in 0..2 {
            // Oldest first, and none sooner than older ones elsewhere; also behind a restart.
            let (alive, gone) = of_c0(&rig);
            let left = alive.len() * 100 / before.len();
            assert!(half.contains(&left), "{order:?} after {fed}: {left} %");
            let newest_gone = gone.iter().map(|it| it.sequence).max();
            assert!(newest_gone < alive.iter().map(|it| it.sequence).min());
            let (gone, elsewhere) = newest_gone_and_oldest_left(&rig, &before);
            assert!(gone < elsewhere, "{order:?}: {gone:?} and {elsewhere:?}");
            assert!(facts(&rig)["C0"].is_retired && !facts(&rig)["C0"].is_drained);
            assert_eq!(rig.read_all().corrupt, 0);
            rig = restarted(rig, &config);
        }

        feed(&mut rig, room * 6 / 10);
        assert_eq!(of_c0(&rig).0, [], "{order:?}");
        assert!(facts(&rig)["C0"].is_drained);
        let newest = rig.log.articles().filter(|it| it.token.buffer() == C0);
        assert_eq!(newest.map(|it| it.sequence).max(), last, "it took some");
        assert_eq!(rig.read_all().corrupt, 0);
        let rig = restarted(rig, &config);
        assert!(facts(&rig)["C0"].is_drained, "{order:?}");
        assert_eq!(facts(&rig)["C0"].live_octets, 0);
        assert_eq!(of_c0(&rig).0, []);

        let mut without = config.clone();
        without.buffers.remove(0);
        without.sets[0].buffers.remove(0);
        let open = |config: &StoreConfig, rig: &Rig| {
            Rig::recover(Arc::clone(&disk), config, rig.log.clone(), Access::Write)
        };
        let sound = rig.read_all();
        let rig = open(&without, &rig).unwrap();
        disk.remove(Path::new("/spool/buffers/C0")).unwrap();
        assert_eq!(rig.read_all(), sound);
        let error = open(&config, &rig).unwrap_err().to_string();
        assert!(error.contains("C0"), "its name is not given again: {error}");
    }
}

/// `store list` said that a buffer was drained and might be taken out; a kill before the next checkpoint, and the start without it was refused.
#[test]
fn what_was_said_to_be_drained_is_so_after_a_kill() {
    let config = config_of("cnfs", ROOM);
    let mut without = config.clone();
    without.buffers.remove(0);
    without.sets[0].buffers.remove(0);
    // The register can be written at once; or not, and the next start notes it.
    for fails in [false, true] {
        let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let mut rig = retired(&disk, &config);
        if fails {
            faulty.add(Fault::new(Op::Rename, "register", Effect::Medium).times(u64::MAX));
        }
        let open = |config: &StoreConfig, rig: &Rig| {
            faulty.clear();
            Rig::recover(Arc::clone(&disk), config, rig.log.clone(), Access::Write)
        };
        while !facts(&rig)["C0"].is_drained {
            feed(&mut rig, ROOM / 10);
        }
        if fails {
            let error = open(&without, &rig).unwrap_err().to_string();
            assert!(error.contains("does not name: C0"), "{error}");
            rig = open(&config, &rig).unwrap();
        }
        let sound = rig.read_all();
        assert_eq!(open(&without, &rig).unwrap().read_all(), sound, "{fails}");
    }
}

#[test]
fn a_buffer_that_is_retired_no_longer_takes_articles_again() {
    let config = config_of("cnfs", ROOM);
    for drained in [false, true] {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut rig = retired(&disk, &config);
        feed(&mut rig, if drained { ROOM * 2 } else { ROOM / 2 });
        assert_eq!(of_c0(&rig).0.is_empty(), drained);
        rig.checkpoint().unwrap();
        rig = restarted(rig, &config);
        let (_, gone) = of_c0(&rig);
        assert!(rig.store.retirement().retire("C0", false).unwrap());
        for _ in 0..2 {
            feed(&mut rig, ROOM);
            let (alive, _) = of_c0(&rig);
            assert!(alive.iter().any(|it| it.number > gone.len() as u64 * 2));
            assert!(!facts(&rig)["C0"].is_retired);
            assert_eq!(rig.read_all().corrupt, 0);
            rig = restarted(rig, &config);
        }
        // Both are full again.
        feed(&mut rig, 2 * ROOM);
        for (name, facts) in facts(&rig) {
            let share = facts.live_octets * 100 / facts.capacity_octets.unwrap();
            assert!(share > 75, "{name}: {share} %");
        }
    }
}

/// Buffers that differ in size: what is retired goes neither before older ones elsewhere nor long after them.
#[test]
fn a_small_buffer_drains_as_slowly_as_a_large_one_comes_around() {
    let mut config = config_of("cnfs", 16 * ROOM);
    config.buffers[0].octets = ROOM;
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
    feed(&mut rig, 40 * ROOM);
    rig.store.retirement().retire("C0", true).unwrap();
    let (before, _) = of_c0(&rig);
    for _ in 0..8 {
        feed(&mut rig, ROOM * 3 / 2);
        let (gone, elsewhere) = newest_gone_and_oldest_left(&rig, &before);
        assert!(gone < elsewhere, "{gone:?} and {elsewhere:?}");
    }
    feed(&mut rig, 5 * ROOM);
    assert_eq!(of_c0(&rig).0, []);
}

/// A server that is started so often that its buffers are given no whole region between two starts drains as well.
#[test]
fn a_retired_buffer_drains_beside_a_server_that_is_started_again_and_again() {
    let room = 8 * ROOM;
    let config = config_of("cnfs", room);
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut rig = retired_after(3 * room, &disk, &config);
    let (before, _) = of_c0(&rig);
    for _ in 0..18 {
        feed(&mut rig, room / 16);
        rig = restarted(rig, &config);
        let (gone, elsewhere) = newest_gone_and_oldest_left(&rig, &before);
        assert!(gone < elsewhere, "{gone:?} and {elsewhere:?}");
    }
    assert_eq!(of_c0(&rig).0, []);
    assert!(facts(&rig)["C0"].is_drained);
}

/// In front of what is alive in the other lies much that nobody can read, or that was erased: it is older all the same.
#[test]
fn what_is_older_holds_a_retired_buffer_up_wherever_it_lies() {
    let large = 24 * ROOM;
    let mut config = config_of("cnfs", large);
    config.sets[0].order = SetOrder::Sequential;
    config.sets[0].erase_withdrawn = true;
    config.buffers[0].octets = 4 * ROOM;
    for is_rotten in [true, false] {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        // C0 has the newest, and both have come around.
        let mut rig = retired_after(2 * large + 8 * ROOM - ROOM / 4, &disk, &config);
        let (mut before, _) = of_c0(&rig);
        let others = rig.log.articles().filter(|it| it.token.buffer() != C0);
        let others = others.filter(|it| rig.reader.is_live(&it.token));
        let mut others: Vec<Logged> = others.copied().collect();
        let newest = others.iter().map(|it| it.sequence).max();
        before.retain(|it| Some(it.sequence) > newest);
        assert!(before.len() > 500, "{}", before.len());
        if is_rotten {
            let file = disk
                .open(Path::new("/spool/buffers/C1"), OpenMode::ReadWrite)
                .unwrap();
            for logged in &others[..200] {
                let end = logged.token.position().offset() + u64::from(logged.token.len());
                file.write_at(b"rot", end - 100).unwrap();
            }
        } else {
            let tokens = others.drain(..others.len() - 100).map(|it| it.token);
            let (tokens, mut erasures) = (tokens.collect::<Vec<_>>(), Vec::new());
            rig.store.withdrawn(&tokens, &mut erasures);
            for mut erasure in erasures {
                erasure.write().unwrap();
            }
            rig.checkpoint().unwrap();
        }
        rig = restarted(rig, &config);
        feed(&mut rig, ROOM);
        let is_live = |logged: &&Logged| rig.reader.is_live(&logged.token);
        assert!(
            others.iter().filter(is_live).count() >= 100,
            "these are older"
        );
        assert_eq!(
            before.iter().filter(is_live).count(),
            before.len(),
            "rotten: {is_rotten}"
        );
        // And no longer than that.
        feed(&mut rig, large);
        assert_eq!(of_c0(&rig).0, [], "rotten: {is_rotten}");
    }
}

/// One that failed does not count: what is retired drains as those come around that take articles.
#[test]
fn a_suspended_buffer_slows_nothing_down() {
    let mut config = config_of("cnfs", 8 * ROOM);
    let mut third = config.buffers[0].clone();
    third.name = "C2".to_owned();
    third.octets = 32 * ROOM;
    config.buffers.push(third);
    config.sets[0].buffers.push("C2".to_owned());
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
    feed(&mut rig, 40 * ROOM);
    rig.store.retirement().retire("C0", true).unwrap();
    rig.store.suspend(BufferId(3));
    feed(&mut rig, 9 * ROOM);
    assert_eq!(of_c0(&rig).0, []);
    assert!(facts(&rig)["C0"].is_drained);
}

#[test]
fn the_last_buffer_of_a_set_is_not_retired() {
    let config = config_of("cnfs", ROOM);
    let rig = retired(&(Arc::new(MemoryDisk::new()) as Arc<dyn Disk>), &config);
    let retirement = rig.store.retirement();
    let error = retirement.retire("C1", true).unwrap_err().to_string();
    assert!(error.contains("no other buffer of its set"), "{error}");
    let error = retirement.retire("C9", true).unwrap_err().to_string();
    assert!(error.contains("there are C0, C1"), "{error}");
    assert!(!facts(&rig)["C1"].is_retired);

    // One that failed is none that takes articles.
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
    rig.store.suspend(BufferId(2));
    let error = rig.store.retirement().retire("C0", true).unwrap_err();
    assert!(error.to_string().contains("no other buffer"), "{error}");
}

/// The machine stops at each step of saying it: what was said holds behind the restart, and either way nothing is lost.
#[test]
fn a_power_cut_at_any_step_leaves_it_retired_or_not() {
    let config = config_of("cnfs", 1 << 20);
    let (mut refused, mut nth) = (0, 0);
    loop {
        nth += 1;
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let mut rig = Rig::new(Arc::new(faulty.clone()), &config).unwrap();
        feed(&mut rig, 1 << 20);
        let before = rig.read_all();
        faulty.stop_at_change(faulty.counts().changes() + nth);
        let said = rig.store.retirement().retire("C0", true);
        assert_eq!(facts(&rig)["C0"].is_retired, said.is_ok());
        let log = rig.log.clone();
        let disk = Arc::new(memory.crash(nth));
        let rig = Rig::recover(disk, &config, log, Access::Write).unwrap();
        assert_eq!(rig.read_all(), before);
        if said.is_ok() {
            assert!(facts(&rig)["C0"].is_retired, "step {nth}");
            break;
        }
        refused += 1;
    }
    // Written, synced, named, and the same once more for the copy.
    assert!(refused >= 6, "{refused}");
}

/// Letting a buffer go held the register and waited for the buffers, a checkpoint of the sequencer the other way round: both stood
/// still for ever.
#[test]
fn a_buffer_is_let_go_while_a_checkpoint_begins() {
    let config = config_of("cnfs", ROOM);
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let mut rig = retired(&(Arc::new(faulty.clone()) as Arc<dyn Disk>), &config);
    feed(&mut rig, 3 * ROOM);
    assert!(facts(&rig)["C0"].is_drained);
    // So the checkpoint begins while the register is being written.
    let (slow, begun) = (Duration::from_millis(1500), Duration::from_millis(300));
    faulty.add(Fault::new(Op::Sync, "register", Effect::Slow(slow)));
    let retirement = rig.store.retirement();
    let (tell, told) = sync_channel(2);
    let tell_too = tell.clone();
    std::thread::spawn(move || {
        retirement.let_go("C0").unwrap();
        tell_too.send("let go").unwrap();
    });
    std::thread::spawn(move || {
        std::thread::sleep(begun);
        rig.store.checkpoint(&mut Vec::new());
        tell.send("begun").unwrap();
    });
    for _ in 0..2 {
        let ended = told.recv_timeout(Duration::from_secs(30));
        ended.expect("one waits for the other");
    }
}
