//! Buffers that wrap: kills between buffer and log, readers at the write front, groups of mixed retention.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use newsreel_engine::{ArticleRef, BufferStatus, EngineConfig};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Disk, FakeClock, MemoryDisk, Op, RealDisk};
use newsreel_service::{NewsService, Outcome, Part};
use newsreel_store::{RuleConfig, SetConfig};
use newsreel_wire::GroupName;

use crate::world::{NOW, World, article, config, open_on};

/// Article `n` with a body of so many octets that all follow from `n`.
fn sized(n: usize, groups: &str, octets: usize) -> (String, Vec<u8>) {
    let (id, text) = article(n, groups);
    let text = String::from_utf8(text).unwrap();
    let head = text.split("\r\n\r\n").next().unwrap();
    (
        id,
        format!("{head}\r\n\r\n{}.\r\n", body(n, octets)).into_bytes(),
    )
}

fn body(n: usize, octets: usize) -> String {
    let line = format!("every line says {n} {:x}\r\n", n * 7919);
    line.repeat(octets / line.len() + 1)
}

fn accepted(outcomes: &[Outcome]) -> bool {
    outcomes.iter().all(|outcome| *outcome == Outcome::Accepted)
}

/// Round `round` of articles, twenty each.
fn round_of(round: usize) -> Vec<(String, Vec<u8>)> {
    (0..20)
        .map(|at| sized(round * 20 + at, "misc.test", 2500))
        .collect()
}

/// Where each article that can be read lies: buffer, cycle, offset.
type Places = BTreeMap<usize, (String, u32, u64)>;

fn places(world: &World, upto: usize) -> Places {
    let mut places = Places::new();
    for n in 0..upto {
        let id = ArticleRef::Id(format!("<{n}@t.example>"));
        if let Some(report) = world.engine.article(&id).unwrap() {
            let mut token = report.token.split(':');
            let name = token.next().unwrap().to_owned();
            let offset = u64::from_str_radix(token.next().unwrap(), 16).unwrap();
            let cycle = u32::from_str_radix(token.next().unwrap(), 16).unwrap();
            places.insert(n, (name, cycle, offset));
        }
    }
    places
}

/// Whether the buffers' reserved marks leave a place alive.
fn is_left(buffers: &[BufferStatus], (name, cycle, offset): &(String, u32, u64)) -> bool {
    let buffer = buffers.iter().find(|buffer| buffer.name == *name).unwrap();
    let turns = u32::from(buffer.reserved_offset < buffer.free_offset);
    let overwrites = buffer.cycle + turns - 1;
    *cycle > overwrites || *cycle == overwrites && *offset >= buffer.reserved_offset
}

/// What was there before the kill is there, but for what the marks say may be overwritten; that is not much.
async fn assert_left(after: &World, before: &Places, acknowledged: usize, what: &str) {
    let early = after.engine.status().buffers;
    let (mut left, mut lost) = (0, 0);
    for (n, place) in before {
        let text = after.by_id(&format!("<{n}@t.example>")).await;
        let late = after.engine.status().buffers;
        let is_there = text.is_some();
        assert!(is_there || !is_left(&late, place), "{what}: {n} is lost");
        assert!(!is_there || is_left(&early, place), "{what}: {n} is back");
        *(if is_there { &mut left } else { &mut lost }) += 1;
    }
    // Three rounds of twenty, and in each buffer the region reserved before and the one ahead.
    assert!(lost <= 60 + 4 * 25, "{what}: {lost} are lost, {left} left");
    let newest = before.keys().last().unwrap() + 1;
    for n in newest..acknowledged {
        let text = after.by_id(&format!("<{n}@t.example>")).await;
        assert!(text.is_some(), "{what}: {n} was acknowledged");
    }
    let lines = after.lines("misc.test").await;
    assert!(
        lines.len() >= left + acknowledged - newest,
        "{what}: {} lines, {left} left",
        lines.len()
    );
    for line in &lines {
        let n = line.split('\t').nth(1).unwrap();
        let n: usize = n["number ".len()..].parse().unwrap();
        let text = after.by_id(&format!("<{n}@t.example>")).await;
        let text = text.unwrap_or_else(|| panic!("{what}: {n} cannot be read"));
        let body = format!("{}.\r\n", body(n, 2500));
        assert!(text.ends_with(&body), "{what}: {n}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_between_buffer_write_and_log_sync_on_a_wrapped_buffer() {
    for (op, after) in [(Op::Write, 0), (Op::Sync, 0), (Op::Sync, 1)] {
        for seed in 0..6u64 {
            let memory = MemoryDisk::new();
            let faulty = FaultyDisk::new(Arc::new(memory.clone()));
            let world = World::on(Arc::new(faulty.clone()), config(1 << 20));
            for round in 0..70 {
                assert!(accepted(&world.send(&round_of(round)).await));
            }
            let mut acknowledged = 70 * 20;
            let buffers = world.engine.status().buffers;
            assert!(buffers.iter().all(|b| b.cycle > 1), "{buffers:?}");
            let before = places(&world, acknowledged);
            // The buffers have the next commits, the log does not.
            faulty.add(Fault::new(op, "/log/", Effect::Stop).nth(1 + after));
            for round in 70..73 {
                let outcomes = world.send(&round_of(round)).await;
                if !faulty.stopped() && accepted(&outcomes) {
                    acknowledged = round * 20 + 20;
                }
            }
            assert!(faulty.stopped());
            let what = format!("{op}, {after} later, seed {seed}");
            let left = memory.crash(seed);
            let after = open_on(Arc::new(left), &world.config, &world.clock);
            assert_eq!(after.problems(), Vec::<String>::new(), "{what}");
            assert_left(&after, &before, acknowledged, &what).await;
            let more: Vec<_> = (9000..9020).map(|n| sized(n, "misc.test", 2500)).collect();
            assert!(accepted(&after.send(&more).await), "{what}");
            assert_eq!(after.problems(), Vec::<String>::new(), "{what}");
        }
    }
}

fn size_of(n: usize) -> usize {
    [700_000, 2000, 60_000, 700_000, 9000][n % 5]
}

/// On a real disk, so that reads and writes really meet.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test's runtime ends all its tasks"
)]
async fn readers_at_the_write_front_of_a_small_buffer_get_whole_articles_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = EngineConfig {
        spool: folder.path().join("spool"),
        ..config(16 << 20)
    };
    config.store.buffers.truncate(1);
    config.store.sets[0].buffers.truncate(1);
    // Readers are to ask the file, not memory.
    config.store.sets[0].recent_octets = Some(0);
    let clock = Arc::new(FakeClock::new(NOW));
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let world = Arc::new(open_on(disk, &config, &clock));
    let groups = vec![newsreel_engine::GroupSpec::new("misc.test")];
    world.engine.add_groups(groups).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let fed = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..3)
        .map(|seed| {
            let (world, is_over) = (Arc::clone(&world), Arc::clone(&is_over));
            let fed = Arc::clone(&fed);
            tokio::spawn(async move { read_at_the_front(&world, &is_over, &fed, seed).await })
        })
        .collect();
    let mut n = 0;
    let began = tokio::time::Instant::now();
    let cycle = || world.engine.status().buffers[0].cycle;
    // On a busy disk it takes longer until it has come around.
    let wants_more = |took: Duration| took.as_secs() < 5 || took.as_secs() < 120 && cycle() < 4;
    while wants_more(began.elapsed()) {
        let articles: Vec<_> = (n..n + 4)
            .map(|n| sized(n, "misc.test", size_of(n)))
            .collect();
        assert!(accepted(&world.send(&articles).await));
        n += 4;
        fed.store(n, Ordering::Release);
    }
    is_over.store(true, Ordering::Release);
    let (mut whole, mut gone) = (0, 0);
    for reader in readers {
        let (read, missed) = reader.await.unwrap();
        (whole, gone) = (whole + read, gone + missed);
    }
    assert!(whole > 50 && gone > 5, "{whole} read, {gone} gone, {n} fed");
    let status = world.engine.status();
    assert!(status.buffers[0].cycle > 1, "{:?}", status.buffers);
    assert_eq!(status.counters.corrupt_reads, 0);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Reads the articles that are overwritten next, by number and by id, and compares every octet.
async fn read_at_the_front(
    world: &World,
    is_over: &AtomicBool,
    fed: &AtomicUsize,
    seed: u64,
) -> (usize, usize) {
    let (mut whole, mut gone, mut turn) = (0, 0, seed);
    let name = GroupName::parse(b"misc.test").unwrap();
    while !is_over.load(Ordering::Acquire) {
        turn += 1;
        let info = world.service.group(name).await.unwrap().unwrap();
        if info.count == 0 || fed.load(Ordering::Acquire) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        }
        let number = info.low.0 + turn % 4;
        let n = number as usize - 1;
        let text = if turn % 2 == 0 {
            let query = world.numbered("misc.test", number).await;
            world.read(query, Part::Whole).await
        } else {
            world.by_id(&format!("<{n}@t.example>")).await
        };
        let Some(text) = text else {
            gone += 1;
            continue;
        };
        let (head, rest) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("Message-ID: <{n}@t.example>\r\n")),
            "{head}"
        );
        assert!(
            rest == format!("{}.\r\n", body(n, size_of(n))),
            "{n} is mixed"
        );
        whole += 1;
    }
    (whole, gone)
}

/// A small set for crossposts, a large one for the rest: expiry is ragged in both groups.
fn mixed() -> EngineConfig {
    let mut config = config(1 << 20);
    config.store.buffers[1].octets = 3 << 20;
    let set = |name: &str, buffer: &str| SetConfig {
        name: name.to_owned(),
        buffers: vec![buffer.to_owned()],
        ..SetConfig::default()
    };
    config.store.sets = vec![set("small", "C0"), set("large", "C1")];
    let rule = |groups_min, set: &str| RuleConfig {
        groups_min,
        set: set.to_owned(),
        ..RuleConfig::default()
    };
    config.store.rules = vec![rule(Some(2), "small"), rule(None, "large")];
    config.index.runs_max = 4;
    config.index.tail_bytes_max = 1 << 16;
    config
}

/// What each group should show: the numbers whose articles can be read by id, low, and how many.
async fn assert_exact(world: &World, sent: &BTreeMap<String, Vec<usize>>) -> usize {
    let mut live = 0;
    for (group, ids) in sent {
        let mut numbers = Vec::new();
        for (at, n) in ids.iter().enumerate() {
            if world.by_id(&format!("<{n}@t.example>")).await.is_some() {
                numbers.push(at as u64 + 1);
            }
        }
        let report = world.engine.group(group).unwrap();
        assert_eq!(report.count, numbers.len() as u64, "{group}");
        assert_eq!(report.high, ids.len() as u64, "{group}");
        let low = numbers.first().copied().unwrap_or(report.high + 1);
        assert_eq!(report.low, low, "{group}");
        let lines = world.lines(group).await;
        let shown: Vec<u64> = lines
            .iter()
            .map(|line| line.split('\t').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(shown, numbers, "{group}");
        live += numbers.len();
    }
    live
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crossposts_into_groups_of_mixed_retention_have_exact_marks_and_cost_no_dead_disk() {
    let world = World::on(Arc::new(MemoryDisk::new()), mixed());
    let mut sent: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut n = 0;
    let mut lows = BTreeMap::from([("misc.test", 1), ("misc.other", 1)]);
    for round in 0..24 {
        let mut articles = Vec::new();
        for _ in 0..100 {
            let groups = ["misc.test", "misc.other", "misc.test,misc.other"][n % 3];
            articles.push(sized(n, groups, 3000));
            for group in groups.split(',') {
                sent.entry(group.to_owned()).or_default().push(n);
            }
            n += 1;
        }
        assert!(accepted(&world.send(&articles).await), "round {round}");
        world.seal();
        for (group, last) in &mut lows {
            let low = world.engine.group(group).unwrap().low;
            assert!(low >= *last, "round {round}: low of {group} fell");
            *last = low;
        }
    }
    assert!(lows.values().all(|low| *low > 100), "{lows:?}");
    let live = assert_exact(&world, &sent).await;
    let sent_rows: usize = sent.values().map(Vec::len).sum();
    assert!(live < sent_rows * 3 / 4, "{live} of {sent_rows} are left");
    // What is dead is given back: disk stays near what the live rows take.
    let row_octets = {
        let status = world.engine.status();
        status.overview.disk_octets / status.overview.sealed.max(1)
    };
    world.wait_until("compaction", |world| {
        let overview = world.engine.status().overview;
        overview.sealed as usize * 10 < live * 13
            && overview.disk_octets * 10 < live as u64 * row_octets * 13
    });
    let live_after = assert_exact(&world, &sent).await;
    assert_eq!(live_after, live);
    let world = world.restart();
    assert_eq!(assert_exact(&world, &sent).await, live);
    assert_eq!(world.problems(), Vec::<String>::new());
    assert!(world.disk.exists(Path::new("/spool/index")).unwrap());
}
