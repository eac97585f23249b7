//! A feeder only: articles and history, without numbers, overview and Xref.

use std::sync::Arc;

use newsreel_engine::{EngineConfig, Mode};
use newsreel_host::MemoryDisk;
use newsreel_service::Outcome;

use crate::world::{World, article, config, open_on};

fn transit(octets: u64) -> EngineConfig {
    let mut config = config(octets);
    config.sequencer.mode = Mode::Transit;
    config
}

/// Articles for groups that are here, for some that are not, and for both.
const GROUPS: [&str; 3] = ["misc.test", "no.such.group", "misc.other,no.such.group"];

fn batch(from: usize, len: usize) -> Vec<(String, Vec<u8>)> {
    (from..from + len)
        .map(|n| article(n, GROUPS[n % 3]))
        .collect()
}

/// An article as it must come out again: our name in front of Path, and nothing else.
fn relayed(article: &[u8]) -> String {
    let text = String::from_utf8(article.to_vec()).unwrap();
    let path = "Path: feeder.example!";
    assert!(text.starts_with(path));
    text.replacen(path, "Path: news.example!feeder.example!", 1)
}

async fn assert_relayed(world: &World, articles: &[(String, Vec<u8>)]) {
    for (id, text) in articles {
        assert_eq!(world.by_id(id).await, Some(relayed(text)), "{id}");
    }
}

/// Groups may be there, and nothing is filed in them.
async fn assert_nothing_filed(world: &World) {
    for name in ["misc.test", "misc.other"] {
        let group = world.engine.group(name).unwrap();
        assert_eq!((group.low, group.high, group.count), (1, 0, 0), "{name}");
        assert_eq!(world.lines(name).await, Vec::<String>::new(), "{name}");
    }
    let overview = world.engine.status().overview;
    assert_eq!(
        (overview.recent, overview.sealed, overview.packs),
        (0, 0, 0)
    );
}

async fn assert_sound(world: &World, articles: &[(String, Vec<u8>)]) {
    assert_relayed(world, articles).await;
    assert_nothing_filed(world).await;
    assert_eq!(world.problems(), Vec::<String>::new());
    let outcomes = world.send(articles).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| *outcome == Outcome::Duplicate)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feeder_keeps_articles_and_ids_over_restarts_and_crashes_and_files_nothing() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), transit(4 << 20));
    let articles = batch(0, 90);
    assert_eq!(world.send(&articles[..60]).await, [Outcome::Accepted; 60]);
    assert_sound(&world, &articles[..60]).await;
    // Sealed, in the log only, and after both ways to end.
    world.seal();
    assert_eq!(world.send(&articles[60..]).await, [Outcome::Accepted; 30]);
    let left = memory.crash_losing_all();
    let crashed = open_on(Arc::new(left), &world.config, &world.clock);
    assert_sound(&crashed, &articles).await;
    let world = world.restart();
    assert_sound(&world, &articles).await;
    let report = world.engine.check(&mut |_, _| {}).unwrap();
    assert_eq!((report.articles, report.rows), (90, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feeders_buffers_wrap() {
    let world = World::new(transit(1 << 20));
    let large = |n: usize| {
        let (id, mut text) = article(n, GROUPS[n % 3]);
        let end = text.split_off(text.len() - 3);
        text.extend_from_slice("x".repeat(9000).as_bytes());
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(&end);
        (id, text)
    };
    const SENT: usize = 600;
    for first in (0..SENT).step_by(20) {
        let articles: Vec<_> = (first..first + 20).map(large).collect();
        assert_eq!(world.send(&articles).await, [Outcome::Accepted; 20]);
    }
    let buffers = world.engine.status().buffers;
    assert!(buffers.iter().all(|b| b.cycle > 1), "{buffers:?}");
    world.seal();
    let world = world.restart();
    // The newest are there; the oldest are gone, and known.
    let newest: Vec<_> = (SENT - 40..SENT).map(large).collect();
    assert_sound(&world, &newest).await;
    for n in 0..40 {
        let old = large(n);
        assert_eq!(world.by_id(&old.0).await, None, "{}", old.0);
        assert_eq!(world.send(&[old]).await, [Outcome::Duplicate]);
    }
}
