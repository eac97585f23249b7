//! A buffer's file that somebody cut under a stopped server, and gave its size back: what is left is served, what is lost is told.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_engine::{Engine, EngineConfig};
use newsreel_host::{Disk, FakeClock, OpenMode, RealDisk};
use newsreel_service::Outcome;

use crate::world::{World, article, config, open_on};

const OCTETS: u64 = 4 << 20;

fn articles(from: usize, count: usize) -> Vec<(String, Vec<u8>)> {
    let one = |n| {
        let (id, mut wire) = article(n, "misc.test");
        wire.truncate(wire.len() - 3);
        wire.extend_from_slice(&b"a line of the text\r\n".repeat(100));
        wire.extend_from_slice(b".\r\n");
        (id, wire)
    };
    (from..from + count).map(one).collect()
}

async fn alive(world: &World, count: usize) -> Vec<usize> {
    let mut alive = Vec::new();
    for n in 0..count {
        if world.by_id(&format!("<{n}@t.example>")).await.is_some() {
            alive.push(n);
        }
    }
    alive
}

/// A spool of `count` articles in one buffer on a real disk, closed.
async fn filled(folder: &Path, count: usize) -> (EngineConfig, Arc<FakeClock>, PathBuf) {
    let mut config = config(OCTETS);
    config.spool = folder.join("spool");
    config.store.buffers.truncate(1);
    config.store.sets[0].buffers.truncate(1);
    let world = World::on(Arc::new(RealDisk), config);
    for from in (0..count).step_by(20) {
        let outcomes = world.send(&articles(from, 20)).await;
        assert_eq!(outcomes, [Outcome::Accepted; 20]);
    }
    let buffer = world.config.spool.join("buffers/C0");
    let World {
        config,
        clock,
        engine,
        ..
    } = world;
    engine.shutdown().unwrap();
    (config, clock, buffer)
}

/// As `truncate -s` does, twice.
fn cut(buffer: &Path, octets: u64) {
    let file = RealDisk.open(buffer, OpenMode::ReadWrite).unwrap();
    file.set_len(octets).unwrap();
    file.set_len(OCTETS).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_buffer_that_was_cut_all_that_is_left_is_served() {
    // Less than a cycle, and so much that it came around.
    for (count, to) in [
        (1300, OCTETS / 2),
        (1300, 4096),
        (2200, OCTETS / 2),
        (2200, 4096),
        (1300, 0),
        (2200, 0),
    ] {
        let what = format!("{count} articles, cut to {to}");
        let folder = tempfile::tempdir().unwrap();
        let (config, clock, buffer) = filled(folder.path(), count).await;
        let world = open_on(Arc::new(RealDisk), &config, &clock);
        let before = alive(&world, count).await;
        let lines = world.lines("misc.test").await.len();
        assert_eq!(before.len(), lines, "{what}");
        world.engine.shutdown().unwrap();
        drop(world);
        cut(&buffer, to);
        if to == 0 {
            // Nothing tells any more whose it is, and it may be another disk's place.
            let opened = Engine::open(config, Arc::new(RealDisk), clock, &mut |_, _, _| {});
            let why = opened.unwrap_err().to_string();
            assert!(
                why.contains("its file is blank") && why.contains("--drop-buffer C0"),
                "{why}"
            );
            continue;
        }
        let world = open_on(Arc::new(RealDisk), &config, &clock);
        let left = alive(&world, count).await;
        assert_eq!(left.is_empty(), to == 4096, "{what}: {}", left.len());
        assert!(left.len() < before.len() * 2 / 3, "{what}: {}", left.len());
        let scrub = || world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        let report = scrub();
        let told = report.damaged.len() as u64 + report.damaged_omitted;
        assert_eq!(told as usize, before.len() - left.len(), "{what}");
        assert!(
            report.damaged.iter().all(|it| it.message_id.is_some()),
            "{what}"
        );
        // Once, though it is met again.
        let counted = || world.engine.status().counters.damaged_articles;
        let (first, _) = (counted(), scrub());
        assert_eq!(
            (counted(), first as usize),
            (first, (before.len() - left.len()).min(1000)),
            "{what}"
        );
        let outcomes = world.send(&articles(count, 40)).await;
        assert_eq!(outcomes, [Outcome::Accepted; 40], "{what}");
        let world = world.restart();
        let new: Vec<usize> = (count..count + 40).collect();
        assert!(alive(&world, count + 40).await.ends_with(&new), "{what}");
        let state = world.engine.status().buffers[0].state.clone();
        assert!(state.starts_with("damaged: "), "{what}: {state}");
    }
}

/// Both copies of the header went with the front of the file, and the records stayed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_is_lost_with_the_front_of_a_file_is_made_again() {
    for octets in [8192, 12 << 10, 20 << 10] {
        let folder = tempfile::tempdir().unwrap();
        let (config, clock, buffer) = filled(folder.path(), 800).await;
        let file = RealDisk.open(&buffer, OpenMode::ReadWrite).unwrap();
        file.write_at(&vec![0; octets], 0).unwrap();
        let world = open_on(Arc::new(RealDisk), &config, &clock);
        let state = world.engine.status().buffers[0].state.clone();
        assert!(state.contains("made again"), "{state}");
        // The bitmap ends with the second page behind the headers.
        let left = alive(&world, 800).await.len();
        assert!(
            left >= 795 && (left == 800 || octets > 16 << 10),
            "{octets}: {left}"
        );
        assert_eq!(
            world.send(&articles(800, 20)).await,
            [Outcome::Accepted; 20]
        );
        let world = world.restart();
        assert_eq!(alive(&world, 820).await.len(), left + 20);
        let expected = if left < 800 { "damaged: " } else { "ok" };
        let state = world.engine.status().buffers[0].state.clone();
        assert!(state.starts_with(expected), "{octets}: {state}");
    }
}
