//! Servers without durability that fall, and NEWNEWS over many groups.

use std::collections::BTreeSet;
use std::sync::Arc;

use newsreel_engine::{Durability, EngineConfig, GroupSpec};
use newsreel_host::MemoryDisk;
use newsreel_service::{NewsService as _, Outcome};
use newsreel_wire::{UnixTime, Wildmat};

use crate::world::{World, article, config, open_on};

fn articles(from: usize, len: usize) -> Vec<(String, Vec<u8>)> {
    (from..from + len)
        .map(|at| article(at, "misc.test"))
        .collect()
}

fn numbers(lines: &[String]) -> Vec<u64> {
    let number = |line: &String| line.split('\t').next().unwrap().parse().unwrap();
    lines.iter().map(number).collect()
}

fn all(outcomes: &[Outcome], wanted: Outcome) -> bool {
    outcomes.iter().all(|outcome| *outcome == wanted)
}

fn volatile() -> EngineConfig {
    let mut config = config(4 << 20);
    config.sequencer.durability = Durability::None;
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_durability_no_number_is_used_twice() {
    for seed in 0..12 {
        let mut memory = MemoryDisk::new();
        let mut world = World::on(Arc::new(memory.clone()), volatile());
        let mut seen = BTreeSet::new();
        for round in 0..4 {
            assert!(all(
                &world.send(&articles(round * 50, 50)).await,
                Outcome::Accepted
            ));
            let lines = world.lines("misc.test").await;
            let highest = numbers(&lines).into_iter().max().unwrap();
            for line in lines {
                seen.insert(line);
            }
            if round == 1 {
                world.seal();
            }
            let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
            let after = memory.crash(seed * 4 + round as u64);
            drop(world);
            world = open_on(Arc::new(after.clone()), &config, &clock);
            assert_eq!(world.problems(), Vec::<String>::new(), "seed {seed}");
            world.send(&articles(1000 + round, 1)).await;
            let lines = world.lines("misc.test").await;
            let newest = lines.last().unwrap().clone();
            assert!(
                seen.contains(&newest) || numbers(&[newest]).first().unwrap() > &highest,
                "seed {seed}: a number was given twice"
            );
            memory = after;
        }
        // One number never shows two articles.
        let mut texts = std::collections::BTreeMap::new();
        for line in seen {
            let (number, text) = line.split_once('\t').unwrap();
            let text = text.to_owned();
            let other = texts.insert(number.to_owned(), text.clone());
            assert!(
                other.is_none_or(|other| other == text),
                "seed {seed}, {number}"
            );
        }
    }
}

/// However many groups there are and however few match, a step of NEWNEWS looks at a bounded number of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newnews_goes_through_many_groups_in_steps() {
    const GROUPS: usize = 5000;
    let world = World::new(config(4 << 20));
    let specs = (0..GROUPS).map(|n| GroupSpec::new(&format!("small.g{n}")));
    world.engine.add_groups(specs.collect()).unwrap();
    let sent: Vec<_> = (0..300)
        .map(|n| article(n, &format!("small.g{}", n * 16)))
        .collect();
    assert!(all(&world.send(&sent).await, Outcome::Accepted));
    for (pattern, expect) in [("no.*,*.such", 0), ("small.*", 300), ("*.g16", 1)] {
        let wildmat = Wildmat::parse(pattern).unwrap();
        let (mut cursor, mut out, mut steps) = (Default::default(), Vec::new(), 1);
        let since = UnixTime(0);
        while world
            .service
            .newnews(&wildmat, since, &mut cursor, 1 << 20, &mut out)
            .await
            .unwrap()
        {
            steps += 1;
        }
        assert!(steps >= GROUPS / 1024, "{pattern}: {steps} steps");
        let ids: BTreeSet<&[u8]> = out.split(|octet| *octet == b'\n').collect();
        assert_eq!(ids.len() - 1, expect, "{pattern}");
    }
}
