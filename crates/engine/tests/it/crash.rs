//! Power cuts: whatever was answered "accepted" before is there afterwards, and all views agree.

use std::sync::Arc;

use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Disk, MemoryDisk, Op};
use newsreel_service::Outcome;

use crate::damage::{files, wait_for_repair};
use crate::world::{World, article, config, open_on};

const GROUPS: [&str; 3] = ["misc.test", "misc.other", "misc.test,misc.other"];

fn batch(round: usize, len: usize) -> Vec<(String, Vec<u8>)> {
    (0..len)
        .map(|at| article(round * 1000 + at, GROUPS[(round + at) % 3]))
        .collect()
}

/// Opens what a power cut left and looks for everything that had been acknowledged.
async fn check_after(world: &World, left: MemoryDisk, acknowledged: &[String], what: &str) {
    let after = open_on(Arc::new(left), &world.config, &world.clock);
    for id in acknowledged {
        let text = after.by_id(id).await;
        assert!(
            text.is_some_and(|text| text.contains(id)),
            "{what}: {id} is lost"
        );
    }
    let report = after.engine.check(&mut |_, _| {}).unwrap();
    assert_eq!(report.problems, Vec::<String>::new(), "{what}");
    // Numbers and ids go on as if nothing had been.
    let outcomes = after.send(&batch(500, 3)).await;
    assert_eq!(outcomes, [Outcome::Accepted; 3], "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_at_any_moment_loses_nothing_acknowledged() {
    for seed in 0..30u64 {
        let memory = MemoryDisk::new();
        let mut config = config(4 << 20);
        config.sequencer.checkpoint_log_octets = 20_000;
        let world = World::on(Arc::new(memory.clone()), config);
        let mut acknowledged = Vec::new();
        for round in 0..6 {
            let articles = batch(round, 20);
            let moment = seed * 7 % 5;
            let cut = {
                let memory = memory.clone();
                tokio::task::spawn_blocking(move || {
                    for _ in 0..moment {
                        std::thread::yield_now();
                    }
                    memory.crash(seed * 100 + round as u64)
                })
            };
            let before = acknowledged.clone();
            let outcomes = world.send(&articles).await;
            assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
            acknowledged.extend(articles.into_iter().map(|(id, _)| id));
            let what = format!("seed {seed}, in round {round}");
            check_after(&world, cut.await.unwrap(), &before, &what).await;
        }
        let left = memory.crash_losing_all();
        check_after(
            &world,
            left,
            &acknowledged,
            &format!("seed {seed}, at the end"),
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_buffer_costs_no_article() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let world = World::on(Arc::new(faulty.clone()), config(4 << 20));
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..6 {
        if round == 3 {
            faulty.add(Fault::new(Op::Sync, "buffers/C0", Effect::Medium));
            faulty.add(Fault::new(Op::Sync, "buffers/C1", Effect::Medium));
        }
        let articles = batch(round, 20);
        let outcomes = world.send(&articles).await;
        for ((id, _), outcome) in articles.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Accepted => acknowledged.push(id),
                Outcome::Failed | Outcome::Deferred(_) => {}
                other => panic!("round {round}: {other:?}"),
            }
        }
    }
    assert!(acknowledged.len() >= 60, "{}", acknowledged.len());
    for id in &acknowledged {
        assert!(world.by_id(id).await.is_some(), "{id}");
    }
    check_after(
        &world,
        memory.crash_losing_all(),
        &acknowledged,
        "after EIO",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_log_is_never_answered_with_accepted() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let world = World::on(Arc::new(faulty.clone()), config(4 << 20));
    let first = batch(0, 20);
    assert!(
        world
            .send(&first)
            .await
            .iter()
            .all(|outcome| *outcome == Outcome::Accepted)
    );
    // In the segment that is written; the next one may still be on its way, and syncs too.
    let log = world.config.spool.join("log");
    let segments = memory.list(&log).unwrap();
    faulty.add(Fault::new(Op::Sync, &segments[0].name, Effect::Medium));
    let lost = world.send(&batch(1, 20)).await;
    assert!(lost.contains(&Outcome::Failed), "{lost:?}");
    // The log goes on in another segment: the same articles are welcome, and none is a duplicate
    // of one that failed.
    let mut again = world.send(&batch(1, 20)).await;
    for _ in 0..50 {
        if again
            .iter()
            .all(|o| matches!(o, Outcome::Accepted | Outcome::Duplicate))
        {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        again = world.send(&batch(1, 20)).await;
    }
    assert!(
        again
            .iter()
            .all(|o| matches!(o, Outcome::Accepted | Outcome::Duplicate)),
        "{again:?}"
    );
    let mut ids: Vec<String> = first.into_iter().map(|(id, _)| id).collect();
    ids.extend(batch(1, 20).into_iter().map(|(id, _)| id));
    check_after(
        &world,
        memory.crash_losing_all(),
        &ids,
        "after the log failed",
    )
    .await;
}

/// Every sync of a run is once the last one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_at_every_sync_loses_nothing_acknowledged() {
    let mut syncs = 1;
    loop {
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()) as Arc<dyn Disk>);
        let mut config = config(4 << 20);
        config.sequencer.checkpoint_log_octets = 10_000;
        let world = World::on(Arc::new(faulty.clone()), config);
        let begun = faulty.counts().of(Op::Sync) + faulty.counts().of(Op::SyncDir);
        faulty.stop_at_sync(begun + syncs);
        let mut acknowledged = Vec::new();
        for round in 0..5 {
            let articles = batch(round, 8);
            let outcomes = world.send(&articles).await;
            for ((id, _), outcome) in articles.into_iter().zip(outcomes) {
                if outcome == Outcome::Accepted {
                    acknowledged.push(id);
                }
            }
        }
        let stopped = faulty.stopped();
        let what = format!("stopped at sync {syncs}");
        check_after(&world, memory.crash(syncs), &acknowledged, &what).await;
        if !stopped {
            break;
        }
        syncs += 1;
    }
    assert!(syncs > 10, "only {syncs} syncs");
}

/// With the files of the history lost as well, no start was possible where the buffers have an article that the log does not: whether it is
/// known could not be looked up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_history_stops_no_start_after_a_crash() {
    let mut kept = 0;
    for nth in 1..4 {
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()) as Arc<dyn Disk>);
        let world = World::on(Arc::new(faulty.clone()), config(4 << 20));
        assert_eq!(world.send(&batch(0, 6)).await, [Outcome::Accepted; 6]);
        world.seal();
        faulty.stop_at_sync(faulty.counts().syncs() + nth);
        world.send(&batch(1, 1)).await;
        let left = memory.crash_losing_all();
        for path in files(&left, "history") {
            left.remove(&path).unwrap();
        }
        let after = open_on(Arc::new(left), &world.config, &world.clock);
        wait_for_repair(&after);
        for at in 0..6 {
            assert!(after.by_id(&format!("<{at}@t.example>")).await.is_some());
        }
        kept += u32::from(after.by_id("<1000@t.example>").await.is_some());
        assert_eq!(after.problems(), Vec::<String>::new(), "sync {nth}");
    }
    assert!(kept > 0, "the log never missed it");
}
