//! The clock jumps: nothing is refused, forgotten or lost by it until somebody says that it is right.

use std::sync::Arc;

use newsreel_engine::EngineConfig;
use newsreel_host::{MemoryDisk, WallTime};
use newsreel_service::{Outcome, Reject};

use crate::world::{NOW, World, article, config, open_on};

const DAY: u64 = 86_400;
const TEN_YEARS: u64 = 3650 * DAY;

/// An article written on this date.
fn dated(n: usize, date: &str) -> (String, Vec<u8>) {
    let (id, text) = article(n, "misc.test");
    let text = String::from_utf8(text).unwrap();
    (
        id,
        text.replace("14 Nov 2023", date)
            .replace("Tue, ", "")
            .into_bytes(),
    )
}

fn set(world: &World, secs: u64) {
    world.clock.set(WallTime { secs, nanos: 0 });
}

fn small() -> EngineConfig {
    let mut config = config(1 << 20);
    config.index.runs_max = 2;
    config.index.history_rows_max = 1 << 10;
    config
}

/// Articles enough that the first are overwritten and only remembered.
async fn filled() -> World {
    let world = World::on(Arc::new(MemoryDisk::new()), small());
    for round in 0..40 {
        let articles: Vec<_> = (0..50)
            .map(|at| {
                let (id, mut text) = article(round * 50 + at, "misc.test");
                let end = text.split_off(text.len() - 3);
                text.extend_from_slice("x".repeat(1500).as_bytes());
                text.extend_from_slice(b"\r\n");
                text.extend_from_slice(&end);
                (id, text)
            })
            .collect();
        assert_eq!(world.send(&articles).await, vec![Outcome::Accepted; 50]);
    }
    world.seal();
    assert!(world.by_id("<0@t.example>").await.is_none());
    world
}

/// Gives compaction every reason to forget: more sealed files, and time to merge them.
async fn compact(world: &World, from: usize) {
    for round in 0..4 {
        world.send(&[dated(from + round, "14 Nov 2023")]).await;
        world.seal();
    }
    world.wait_until("compaction", |world| {
        world.engine.status().history.buckets <= 2
    });
}

async fn outcome(world: &World, n: usize, date: &str) -> Outcome {
    world.send(&[dated(n, date)]).await[0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_years_ahead_and_back_costs_nothing() {
    let world = filled().await;
    assert_eq!(
        outcome(&world, 90_000, "14 Nov 2022").await,
        Outcome::Rejected(Reject::TooOld)
    );
    set(&world, NOW + TEN_YEARS);
    let told = world.engine.status().clock.unwrap();
    assert!(
        told.contains("ahead") && told.contains("newsreel clock confirm"),
        "{told}"
    );
    // Nobody knows whether it was right before or is right now: neither date is refused for good.
    assert_eq!(
        outcome(&world, 90_001, "14 Nov 2023").await,
        Outcome::Accepted
    );
    assert_eq!(
        outcome(&world, 90_002, "14 Nov 2033").await,
        Outcome::Accepted
    );
    compact(&world, 90_010).await;
    assert_eq!(
        outcome(&world, 0, "14 Nov 2023").await,
        Outcome::Duplicate,
        "remembered"
    );
    set(&world, NOW);
    assert_eq!(world.engine.status().clock, None);
    assert_eq!(
        outcome(&world, 90_003, "14 Nov 2022").await,
        Outcome::Rejected(Reject::TooOld)
    );
    let high = world.high("misc.test");
    let arrivals = world.lines("misc.test").await.len();
    let world = world.restart();
    assert_eq!(world.engine.status().clock, None);
    assert_eq!(world.high("misc.test"), high);
    assert_eq!(world.lines("misc.test").await.len(), arrivals);
    assert_eq!(outcome(&world, 0, "14 Nov 2023").await, Outcome::Duplicate);
    assert_eq!(world.problems(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_confirmed_counts_ahead_and_back() {
    let world = filled().await;
    set(&world, NOW + TEN_YEARS);
    world.engine.confirm_clock().unwrap();
    assert_eq!(world.engine.status().clock, None);
    assert_eq!(
        outcome(&world, 90_001, "14 Nov 2023").await,
        Outcome::Rejected(Reject::TooOld)
    );
    for n in 0..4 {
        assert_eq!(
            outcome(&world, 90_010 + n, "10 Nov 2033").await,
            Outcome::Accepted
        );
        world.seal();
    }
    // What was only remembered is forgotten: then its date decides.
    let mut forgotten = false;
    for _ in 0..300 {
        forgotten = outcome(&world, 0, "14 Nov 2023").await == Outcome::Rejected(Reject::TooOld);
        if forgotten {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(forgotten);
    // Back again, over a restart: an alarm once more, arrival steps back, and the order stays.
    set(&world, NOW);
    assert!(world.engine.status().clock.is_some());
    let world = world.restart();
    let told = world.engine.status().clock.unwrap();
    assert!(told.contains("back"), "{told}");
    assert_eq!(
        outcome(&world, 90_020, "14 Nov 2023").await,
        Outcome::Accepted
    );
    world.engine.confirm_clock().unwrap();
    assert_eq!(
        outcome(&world, 90_021, "14 Nov 2033").await,
        Outcome::Rejected(Reject::FutureDate)
    );
    let world = world.restart();
    assert_eq!(world.engine.status().clock, None);
    let lines = world.lines("misc.test").await;
    assert!(lines.last().unwrap().contains("<90020@t.example>"));
    compact(&world, 90_030).await;
    assert_eq!(
        outcome(&world, 90_020, "14 Nov 2023").await,
        Outcome::Duplicate
    );
    assert_eq!(world.problems(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_that_passes_is_no_jump_also_when_nothing_happens() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), small());
    for _ in 0..4 {
        let before = world.engine.status().sequence;
        world.wait_s(DAY - 3600);
        world.wait_until("the time in the log", |world| {
            world.engine.status().sequence > before
        });
    }
    assert_eq!(world.engine.status().clock, None);
    // No clean stop: the log has the time all the same.
    world.wait_s(DAY / 2);
    let (left, clock) = (memory.crash_losing_all(), Arc::clone(&world.clock));
    let world = open_on(Arc::new(left.clone()), &small(), &clock);
    assert_eq!(world.engine.status().clock, None);
    // A jump that nobody saw is one.
    drop(world);
    clock.set(WallTime {
        secs: NOW + TEN_YEARS,
        nanos: 0,
    });
    let world = open_on(Arc::new(left), &small(), &clock);
    let told = world.engine.status().clock.unwrap();
    assert!(told.contains("ahead"), "{told}");
    assert_eq!(outcome(&world, 0, "14 Nov 2023").await, Outcome::Accepted);
}
