//! Durability `none`: what is claimed is synced first, and what was given and lost is never given again.

use std::collections::BTreeMap;
use std::sync::Arc;

use newsreel_engine::{ArticleRef, Durability, EngineConfig, GroupSpec, Reason, Withdrawal};
use newsreel_host::MemoryDisk;
use newsreel_service::Outcome;
use newsreel_store::methods::METHODS;

use crate::world::{World, article, config, open_on};

fn volatile(octets: u64) -> EngineConfig {
    let mut config = config(octets);
    config.sequencer.durability = Durability::None;
    config
}

/// Articles of a good two kilobytes.
fn large(from: usize, len: usize) -> Vec<(String, Vec<u8>)> {
    let filler = format!("{}\r\n", "x".repeat(998)).repeat(2);
    let fill = |(id, mut text): (String, Vec<u8>)| {
        let end = text.split_off(text.len() - 3);
        text.extend_from_slice(filler.as_bytes());
        text.extend_from_slice(&end);
        (id, text)
    };
    (from..from + len)
        .map(|at| fill(article(at, "misc.test")))
        .collect()
}

async fn feed(world: &World, from: usize, len: usize) {
    for part in large(from, len).chunks(100) {
        assert!(
            world
                .send(part)
                .await
                .iter()
                .all(|outcome| *outcome == Outcome::Accepted)
        );
    }
}

fn after_power_cut(world: &World, memory: &MemoryDisk) -> World {
    let left = memory.crash_losing_all();
    open_on(Arc::new(left), &world.config, &world.clock)
}

async fn assert_has(world: &World, from: usize, len: usize) {
    for n in from..from + len {
        let id = format!("<{n}@t.example>");
        assert!(world.by_id(&id).await.is_some(), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_makes_all_buffers_durable_also_those_of_earlier_commits() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), volatile(64 << 20));
    // More than a megabyte: the set has turned to its second buffer.
    feed(&world, 0, 900).await;
    // Somebody waits for this one.
    let groups = vec![GroupSpec::new("misc.more")];
    world.engine.add_groups(groups).unwrap();
    let after = after_power_cut(&world, &memory);
    assert_has(&after, 0, 900).await;
    assert!(after.engine.group("misc.more").is_some());
    assert_eq!(after.problems(), Vec::<String>::new());
}

/// Only the segments were synced that the last batch had written: what earlier ones had put into others was lost with the power.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_makes_articles_durable_whatever_keeps_them() {
    for method in METHODS.iter().map(|method| method.name) {
        let memory = MemoryDisk::new();
        let mut config = volatile(64 << 20);
        let set = &mut config.store.sets[0];
        if method != "cnfs" {
            set.buffers.clear();
            config.store.buffers.clear();
            method.clone_into(&mut set.method);
            // So several files are written between two syncs.
            set.segment_octets = 1 << 20;
        }
        let is_erased = method == "cnfs" || method == "segment";
        set.erase_withdrawn = is_erased;
        let world = World::on(Arc::new(memory.clone()), config);
        feed(&world, 0, 2000).await;
        let id = ArticleRef::Id("<7@t.example>".to_owned());
        let withdrawn = world.engine.withdraw(&[id], Reason::Cancelled).unwrap();
        assert_eq!(withdrawn, [Withdrawal::Done]);
        feed(&world, 2000, 1).await;
        let groups = vec![GroupSpec::new("misc.more")];
        world.engine.add_groups(groups).unwrap();
        let after = after_power_cut(&world, &memory);
        assert_has(&after, 0, 7).await;
        assert_has(&after, 8, 1993).await;
        assert_eq!(after.problems(), Vec::<String>::new(), "{method}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_claims_nothing_that_is_not_synced() {
    for octets in [20_000, 50_000, 90_000] {
        let memory = MemoryDisk::new();
        let mut config = volatile(64 << 20);
        config.sequencer.checkpoint_log_octets = octets;
        let world = World::on(Arc::new(memory.clone()), config);
        feed(&world, 0, 400).await;
        world.wait_until("a checkpoint", |world| {
            world.engine.status().checkpoint > 50
        });
        let after = after_power_cut(&world, &memory);
        let buffers = after.engine.status().buffers;
        assert!(
            buffers.iter().all(|buffer| buffer.state == "ok"),
            "the log is behind its views: {buffers:?}"
        );
        assert_eq!(after.problems(), Vec::<String>::new());
        assert!(!after.lines("misc.test").await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nothing_comes_behind_is_synced_within_a_second() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), volatile(64 << 20));
    feed(&world, 0, 50).await;
    feed(&world, 50, 50).await;
    let before = world.engine.status().counters.commits;
    world.wait_s(1);
    world.wait_until("the sync", |world| {
        world.engine.status().counters.commits > before
    });
    let after = after_power_cut(&world, &memory);
    assert_has(&after, 0, 100).await;
}

/// What readers saw under a number stays, or the number is gone for good; over several cuts in a row, also at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_given_and_lost_are_not_given_again_however_often_the_power_goes() {
    let mut memory = MemoryDisk::new();
    let mut world = World::on(Arc::new(memory.clone()), volatile(8 << 20));
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let (mut sent, mut sequence) = (0, 0);
    for round in 0..8 {
        for _ in 0..round % 3 {
            feed(&world, sent, 60).await;
            sent += 60;
        }
        for line in world.lines("misc.test").await {
            let (number, rest) = line.split_once('\t').unwrap();
            let before = seen.insert(number.to_owned(), rest.to_owned());
            assert!(
                before.is_none_or(|before| before == rest),
                "round {round}: {number} shows another article"
            );
        }
        let now = world.engine.status().sequence;
        assert!(now > sequence, "round {round}: sequences go back");
        sequence = now;
        if round == 4 {
            world.seal();
        }
        let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
        memory = memory.crash_losing_all();
        drop(world);
        world = open_on(Arc::new(memory.clone()), &config, &clock);
        assert_eq!(world.problems(), Vec::<String>::new(), "round {round}");
        world.wait_until("the first commit", |world| {
            world.engine.status().sequence > sequence
        });
    }
    // A clean stop loses nothing, and nothing jumps.
    let before = (world.high("misc.test"), world.lines("misc.test").await);
    let world = world.restart();
    assert_eq!(
        (world.high("misc.test"), world.lines("misc.test").await),
        before
    );
}
