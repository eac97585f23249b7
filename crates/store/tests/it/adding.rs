//! Buffers that a set gets while it is in use: they take their share, a restart knows them, and nothing is lost on the way.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, FaultyDisk, MemoryDisk, read_whole};
use newsreel_store::conformance::{Rig, config_of};
use newsreel_store::{Access, BufferConfig, SetOrder, StoreConfig, StoreReader};

use crate::common::{ARTICLE, feed, recovered};

const ROOM: u64 = 1 << 20;
const REGISTER: &str = "/spool/buffers/register";

/// The same with one buffer more, in the middle.
fn with(config: &StoreConfig, name: &str) -> StoreConfig {
    let mut config = config.clone();
    let added = BufferConfig {
        name: name.to_owned(),
        ..config.buffers[0].clone()
    };
    config.buffers.insert(1, added);
    config.sets[0].buffers.insert(1, name.to_owned());
    config
}

fn add(rig: &mut Rig, config: &StoreConfig, name: &str) -> newsreel_store::Result<()> {
    let addition = rig.store.addition();
    assert_eq!(addition.missing(config), [name]);
    let buffer = addition.make(config, name, &mut |_, _, _| {})?;
    rig.store.add(buffer);
    assert!(addition.missing(config).is_empty());
    Ok(())
}

/// How much of a buffer is alive, percent.
fn share(rig: &Rig, name: &str) -> u64 {
    let facts = rig.reader.facts();
    let facts = facts.iter().find(|facts| facts.name == name).unwrap();
    facts.live_octets * 100 / facts.capacity_octets.unwrap()
}

#[test]
fn an_added_buffer_takes_its_share_and_a_restart_knows_it() {
    for order in [SetOrder::Interleave, SetOrder::Sequential] {
        let mut before = config_of("cnfs", ROOM);
        before.sets[0].order = order;
        let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &before).unwrap();
        feed(&mut rig, 3 * ROOM);
        // In the middle of a batch.
        let first = rig.log.articles().count() as u64;
        rig.place(first, ARTICLE).unwrap();
        let config = with(&before, "C9");
        let there = rig.read_all();
        add(&mut rig, &config, "C9").unwrap();
        // With what its records are signed with: its header may be lost before the next start.
        let register = read_whole(rig.disk.as_ref(), Path::new(REGISTER), 4096).unwrap();
        let register = String::from_utf8(register).unwrap();
        assert!(register.contains(" C9 uuid="), "{register}");
        rig.commit().unwrap();
        assert_eq!(share(&rig, "C9"), 0);
        assert_eq!(rig.read_all().read, there.read + 1);
        feed(&mut rig, 3 * ROOM);
        assert!(share(&rig, "C9") > 60, "{order:?}: {}", share(&rig, "C9"));
        assert_eq!(rig.read_all().corrupt, 0);

        // Without a checkpoint: the log and the register say all.
        let there = rig.read_all();
        let mut rig = recovered(&rig, &config).unwrap();
        assert_eq!(rig.read_all(), there, "{order:?}");
        feed(&mut rig, 3 * ROOM);
        assert_eq!(rig.read_all().corrupt, 0);
        let error = recovered(&rig, &before).unwrap_err().to_string();
        assert!(error.contains("does not name: C9"), "{error}");
        // It is retired as any other.
        assert!(rig.store.retirement().retire("C0", true).unwrap());
        assert!(rig.store.retirement().retire("C1", true).unwrap());
        assert!(rig.store.retirement().retire("C9", true).is_err());
    }
}

/// What was retired while the server ran stays so when the register is written for another buffer.
#[test]
fn an_added_buffer_can_be_retired_and_keeps_what_others_are() {
    let before = config_of("cnfs", ROOM);
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &before).unwrap();
    feed(&mut rig, 2 * ROOM);
    assert!(rig.store.retirement().retire("C0", true).unwrap());
    let config = with(&before, "C9");
    add(&mut rig, &config, "C9").unwrap();
    // With it there is another one that takes articles.
    assert!(rig.store.retirement().retire("C1", true).unwrap());
    feed(&mut rig, 2 * ROOM);
    assert_eq!((share(&rig, "C0"), share(&rig, "C1")), (0, 0));
    assert!(share(&rig, "C9") > 60);
    let rig = recovered(&rig, &config).unwrap();
    let facts = rig.reader.facts().into_iter();
    let retired: Vec<_> = facts.map(|facts| (facts.name, facts.is_retired)).collect();
    let expected = [("C0", true), ("C9", false), ("C1", true)];
    assert_eq!(retired, expected.map(|(name, is)| (name.to_owned(), is)));
}

#[test]
fn what_cannot_be_added_is_refused_and_changes_nothing() {
    let before = config_of("cnfs", ROOM);
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut rig = Rig::new(Arc::clone(&disk), &before).unwrap();
    feed(&mut rig, ROOM);
    let addition = rig.store.addition();
    let refused = |config: &StoreConfig, name: &str| {
        let made = addition.make(config, name, &mut |_, _, _| {});
        made.unwrap_err().to_string()
    };
    assert!(refused(&before, "C0").contains("it is here already"));
    assert!(refused(&before, "C9").contains("its set is not"));

    // Another set, and one that is only read, are for a start.
    let mut config = with(&before, "C9");
    config.sets[0].name = "other".to_owned();
    assert!(addition.missing(&config).is_empty());
    let mut config = with(&before, "C9");
    config.buffers[1].read_only = true;
    assert!(addition.missing(&config).is_empty());

    // The file of another buffer.
    let mut config = with(&before, "C9");
    config.buffers[1].path = Some("/spool/buffers/C0".into());
    assert!(refused(&config, "C9").contains("it is buffer \"C0\""));

    // A buffer that was in use: the articles in it would stay unknown.
    let config = with(&before, "C9");
    add(&mut rig, &config, "C9").unwrap();
    feed(&mut rig, ROOM);
    rig.checkpoint().unwrap();
    drop(rig);
    for name in ["register", "register.copy"] {
        disk.remove(&Path::new("/spool/buffers").join(name))
            .unwrap();
    }
    let rig = Rig::new(Arc::clone(&disk), &before).unwrap();
    let addition = rig.store.addition();
    let made = addition.make(&config, "C9", &mut |_, _, _| {});
    let error = made.unwrap_err().to_string();
    assert!(error.contains("something was written in it"), "{error}");
    assert!(recovered(&rig, &before).is_ok(), "it was entered");
}

#[test]
fn more_than_there_are_places_for_wait_for_a_start() {
    let mut config = config_of("cnfs", ROOM);
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
    for n in 0..StoreReader::ADDED_MAX {
        let name = format!("D{n}");
        config = with(&config, &name);
        config.buffers[1].sparse = true;
        add(&mut rig, &config, &name).unwrap();
    }
    let one_more = with(&config, "E");
    let error = add(&mut rig, &one_more, "E").unwrap_err().to_string();
    assert!(error.contains("restart the server"), "{error}");
    feed(&mut rig, 2 * ROOM);
    assert_eq!(rig.read_all().corrupt, 0);
    assert!(recovered(&rig, &config).is_ok());
}

/// The machine stops at each step of it: the next start with the new configuration goes on, and all that was stored is there.
#[test]
fn a_power_cut_at_any_step_of_adding_loses_nothing() {
    let before = config_of("cnfs", ROOM);
    let config = with(&before, "C9");
    let (mut refused, mut nth) = (0, 0);
    loop {
        nth += 1;
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let mut rig = Rig::new(Arc::new(faulty.clone()), &before).unwrap();
        feed(&mut rig, ROOM);
        let there = rig.read_all();
        faulty.stop_at_change(faulty.counts().changes() + nth);
        let addition = rig.store.addition();
        let made = addition.make(&config, "C9", &mut |_, _, _| {}).is_ok();
        let disk: Arc<dyn Disk> = Arc::new(memory.crash(nth));
        let start = |config: &StoreConfig| {
            Rig::recover(Arc::clone(&disk), config, rig.log.clone(), Access::Write)
        };
        // One that the register has is missed.
        assert!(!made || start(&before).is_err(), "step {nth}");
        let mut rig = start(&config).unwrap();
        assert_eq!(rig.read_all(), there, "step {nth}");
        if made {
            feed(&mut rig, 2 * ROOM);
            assert!(share(&rig, "C9") > 0);
            break;
        }
        refused += 1;
    }
    // Zeros and headers, synced and named, then both files of the register.
    assert!(refused >= 10, "{refused}");
}
