//! Random histories of a server against the maps.

use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk};
use proptest::prelude::*;

use crate::world::{Record, World, small};

#[derive(Debug, Clone)]
enum Op {
    Articles(u64),
    /// A buffer's floor rises by a part (of 256) of what is alive.
    Raise(u16, u8),
    Freeze,
    Install,
    Compact(u8),
    CompactAll,
    Reopen,
    Time(u64),
    Withdraw(u64),
    Remember(u64),
    Change(u32),
    Remove(u32),
    MakeAgain(u32),
    Jump(u32, u64),
    Check,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (1_u64..40).prop_map(Op::Articles),
        5 => (0_u16..3, any::<u8>()).prop_map(|(buffer, part)| Op::Raise(buffer, part)),
        5 => Just(Op::Freeze),
        5 => Just(Op::Install),
        4 => (1_u8..6).prop_map(Op::Compact),
        2 => Just(Op::CompactAll),
        2 => Just(Op::Reopen),
        2 => (1_u64..400).prop_map(Op::Time),
        2 => any::<u64>().prop_map(Op::Withdraw),
        1 => any::<u64>().prop_map(Op::Remember),
        1 => (0_u32..6).prop_map(Op::Change),
        1 => (0_u32..6).prop_map(Op::Remove),
        2 => (0_u32..6).prop_map(Op::MakeAgain),
        1 => (0_u32..6, 1_u64..50).prop_map(|(id, by)| Op::Jump(id, by)),
        3 => Just(Op::Check),
    ]
}

fn run(world: &mut World, disk: &Arc<dyn Disk>, op: &Op) {
    match op {
        Op::Articles(count) => {
            let groups = world.model.groups.len() as u32;
            world.articles(*count, groups);
        }
        Op::Raise(buffer, part) => {
            let position = world.positions[usize::from(*buffer)];
            let floor = newsreel_index::Liveness::floor(
                world.marks.as_ref(),
                newsreel_wire::BufferId(*buffer),
            );
            let alive = position.saturating_sub(floor.0);
            world
                .marks
                .raise(*buffer, floor.0 + alive * u64::from(*part) / 256);
        }
        Op::Freeze if world.frozen.is_none() => world.freeze(),
        Op::Freeze => {}
        Op::Install => world.install(),
        Op::Compact(steps) => {
            for _ in 0..*steps {
                world.views.compact_step().unwrap();
            }
        }
        Op::CompactAll => world.compact(),
        Op::Reopen => world.reopen(disk),
        Op::Time(by) => {
            world.pass(*by);
        }
        Op::Withdraw(which) => {
            let group = *which as usize % world.model.groups.len();
            let group = world.model.groups.values().nth(group).cloned().unwrap();
            let live = world.live(&group);
            let nth = (which >> 8) as usize % live.len().max(1);
            if let Some(article) = live.values().nth(nth).cloned() {
                world.record(Record::Withdraw(article));
            }
        }
        Op::Remember(which) => {
            let key = 5_000_000 + which % 1_000_000;
            world.record(Record::Remember(key, world.time));
        }
        Op::Change(id) if !world.model.groups[id].is_removed => {
            world.record(Record::Change(*id, format!("={id}")));
        }
        Op::Remove(id) if !world.model.groups[id].is_removed => world.record(Record::Remove(*id)),
        Op::MakeAgain(id) => {
            let name = world.model.groups[id].name.clone();
            let mut same = world
                .model
                .groups
                .values()
                .filter(|group| group.name == name);
            if same.all(|group| group.is_removed) {
                let next = world.model.groups.len() as u32;
                assert_eq!(world.views.groups().next_id().0, next);
                world.record(Record::Make(next, name));
            }
        }
        Op::Change(_) | Op::Remove(_) => {}
        Op::Jump(id, by) => {
            world.applier.publish().unwrap();
            let high = world.model.groups[id].high + by;
            world.record(Record::Raise(*id, high));
        }
        Op::Check => world.check(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Whatever happens, in whatever order, the views answer as the maps do.
    #[test]
    fn prop_views_answer_as_maps_do(ops in prop::collection::vec(op(), 1..80)) {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut world = World::with_groups(&disk, small(), 6);
        for op in &ops {
            run(&mut world, &disk, op);
        }
        world.check();
        world.reopen(&disk);
        world.check();
        world.checkpoint();
        world.compact();
        world.check();
    }
}
