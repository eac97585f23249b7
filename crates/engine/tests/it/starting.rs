//! A start after a crash reads the log since the last checkpoint, the filters, and of each buffer where it ends, however
//! much is stored.
//!
//! What it reads is counted, not timed: octets are the same on every machine.

use std::path::Path;
use std::sync::Arc;

use newsreel_engine::EngineConfig;
use newsreel_host::disk::FaultyDisk;
use newsreel_host::{FakeClock, MemoryDisk, Op};
use newsreel_service::Outcome;

use crate::put_back::{contents, put_back};
use crate::segments::large;
use crate::world::{NOW, World, article, config, open_on};

const SMALL: usize = 600;
const TIMES: usize = 20;
const ROUND: usize = 100;
const BODY_OCTETS: usize = 2000;
const SEGMENT: u64 = 128 << 10;
const PAGE: u64 = 4096;
/// What is looked at behind the end of a buffer for what a crash left there: the longest article, by the mebibyte.
const LOOK: u64 = 2 << 20;

/// Articles that the log may have behind the checkpoint when the crash comes, and what a record takes at most with its
/// part of a frame.
const TAIL: u64 = 800;
const RECORD_OCTETS: u64 = 400;

/// What a start may read of sealed files for each article in them: the filters, and where the blocks lie.
const FILTER_OCTETS: u64 = 8;

/// Checkpoints come by themselves every few hundred articles; the log is kept much longer.
fn spool_config() -> EngineConfig {
    let mut config = config(32 << 20);
    config.journal.segment_octets = SEGMENT;
    config.sequencer.checkpoint_log_octets = 64 << 10;
    config
}

fn sized(n: usize) -> (String, Vec<u8>) {
    let (id, mut text) = article(n, "misc.test,misc.other");
    let end = text.split_off(text.len() - 3);
    text.extend_from_slice("x".repeat(BODY_OCTETS).as_bytes());
    text.extend_from_slice(b"\r\n");
    text.extend_from_slice(&end);
    (id, text)
}

/// What a crash leaves of a spool with so many articles.
async fn crashed(articles: usize) -> MemoryDisk {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), spool_config());
    for first in (0..articles).step_by(ROUND) {
        let batch: Vec<_> = (first..first + ROUND).map(sized).collect();
        let outcomes = world.send(&batch).await;
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
    }
    world.wait_until("the checkpoints", |world| {
        let status = world.engine.status();
        status.sequence - status.checkpoint < TAIL
    });
    // The start holds against the store what no later frame vouches for: that is to be a small one.
    for n in articles..articles + 2 {
        assert_eq!(world.send(&[sized(n)]).await, [Outcome::Accepted]);
    }
    memory.crash_losing_all()
}

/// What a start read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    reads: u64,
    log: u64,
    index: u64,
    buffers: u64,
}

fn cost_of(disk: &FaultyDisk) -> Cost {
    Cost {
        reads: disk.counts().of(Op::Read),
        log: disk.octets_read("/log/"),
        index: disk.octets_read("/index/"),
        buffers: disk.octets_read("/buffers/"),
    }
}

/// Opens it a few times, each time from what the crash left: compaction, which begins soon after a start, may get
/// into one of the counts.
fn start(left: &MemoryDisk) -> (Cost, World) {
    let clock = Arc::new(FakeClock::new(NOW));
    let mut cheapest: Option<(Cost, World)> = None;
    for _ in 0..3 {
        let disk = FaultyDisk::new(Arc::new(left.crash_losing_all()));
        let world = open_on(Arc::new(disk.clone()), &spool_config(), &clock);
        let cost = cost_of(&disk);
        if cheapest.as_ref().is_none_or(|(least, _)| cost < *least) {
            cheapest = Some((cost, world));
        }
    }
    cheapest.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_after_a_crash_reads_no_more_of_a_large_spool() {
    let (small, _) = start(&crashed(SMALL).await);
    let articles = SMALL * TIMES;
    let (large, world) = start(&crashed(articles).await);
    let status = world.engine.status();
    println!("{SMALL} articles: {small:?}, {articles} articles: {large:?}, {status:?}");
    // It is all there, and much more than a start may read.
    let stored = (articles + 2) as u64;
    assert_eq!(world.high("misc.test"), stored);
    assert!(status.checkpoint < status.sequence, "it was a crash");
    let filled: u64 = status.buffers.iter().map(|buffer| buffer.free_offset).sum();
    assert!(filled > stored * BODY_OCTETS as u64);
    // The log since the checkpoint, to look for its end and to replay it, in whole segments; of each older segment its
    // first page.
    let since = 2 * (TAIL * RECORD_OCTETS + 2 * SEGMENT);
    let segments = status.log.segments;
    assert!(status.log.octets > 2 * (since + segments * PAGE));
    assert!(large.log <= since + segments * PAGE, "{large:?}");
    let sealed = status.history.disk_octets + status.overview.disk_octets;
    let filters = small.index + FILTER_OCTETS * stored;
    assert!(sealed > 10 * filters);
    assert!(large.index <= filters, "{large:?}");
    // Of each buffer the header, and what lies behind its end.
    for cost in [small, large] {
        assert!(cost.buffers <= 2 * (LOOK + 8 * PAGE), "{cost:?}");
    }
    let files = status.history.buckets + status.overview.packs;
    assert!(
        large.reads <= small.reads + segments + 16 * files,
        "{large:?}"
    );
}

/// Octets of a buffer, and what is looked at besides a quarter of it.
const ROOM: u64 = 64 << 20;
const LOOKS: u64 = 6 << 20;

/// With a log that had been put back, or without the headers of a buffer, a start read most of it, some of that three times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_with_an_old_log_or_without_headers_reads_no_more_than_a_quarter() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(ROOM));
    let send = async |from: usize, to: usize| {
        for first in (from..to).step_by(50) {
            let batch: Vec<_> = (first..first + 50).map(|n| large(n, 30_000)).collect();
            let outcomes = world.send(&batch).await;
            assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
        }
    };
    send(0, 100).await;
    let old = contents(&memory, Path::new("/spool/log"));
    let mut sent = 100;
    // In the first cycle, and in the second.
    for to in [3000, 5500] {
        send(sent, to).await;
        sent = to;
        let stands = |world: &World| -> Vec<(u32, u64)> {
            let buffers = world.engine.status().buffers.into_iter();
            let buffers = buffers.map(|buffer| (buffer.cycle, buffer.free_offset));
            buffers.collect()
        };
        let before = stands(&world);
        assert!(
            before
                .iter()
                .all(|(cycle, _)| *cycle == if to == 3000 { 1 } else { 2 })
        );
        for (is_old, has_headers) in [(true, true), (true, false), (false, false)] {
            let what = format!("{to} articles, log old: {is_old}, headers there: {has_headers}");
            let left = memory.crash_losing_all();
            if is_old {
                put_back(&left, &["/spool/log"], &old);
            }
            for name in ["C0", "C1"].into_iter().filter(|_| !has_headers) {
                let path = Path::new("/spool/buffers").join(name);
                left.corrupt(&path, 0, &[0; 8192]).unwrap();
            }
            let disk = FaultyDisk::new(Arc::new(left));
            let clock = Arc::new(FakeClock::new(NOW));
            let again = open_on(Arc::new(disk.clone()), &config(ROOM), &clock);
            let read = disk.octets_read("/buffers/");
            println!("{what}: {read} octets read");
            assert!(read <= 2 * (ROOM / 4 + LOOKS), "{what}: {read} octets read");
            // Nothing that was acknowledged is overwritten before its turn.
            for (after, before) in stands(&again).iter().zip(&before) {
                assert!(after >= before, "{what}: {after:?}, {before:?}");
            }
            if is_old && has_headers {
                assert_unknown_is_told(&again, to as u64, &what);
            }
            // No number is given twice: behind an old log it is known how far they may have come, not how far they came.
            let next = [large(to, 3000)];
            assert_eq!(again.send(&next).await, [Outcome::Accepted], "{what}");
            let (high, next) = (again.high("misc.test"), to as u64 + 1);
            assert!(high == next || (is_old && high > next), "{what}: {high}");
        }
    }
}

/// They were counted as withdrawn.
fn assert_unknown_is_told(world: &World, sent: u64, what: &str) {
    let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    let buffers = &report.buffers;
    let of_each = [
        buffers.iter().map(|it| it.articles).sum::<u64>(),
        buffers.iter().map(|it| it.withdrawn).sum(),
        buffers.iter().map(|it| it.unknown).sum(),
    ];
    assert_eq!(
        of_each,
        [report.articles, report.withdrawn, report.unknown],
        "{what}"
    );
    assert_eq!(report.withdrawn, 0, "{what}");
    assert!(report.unknown > 2000, "{what}: {}", report.unknown);
    assert!(report.articles + report.unknown <= sent, "{what}");
}
