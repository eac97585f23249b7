//! Durability `each`: no article waits for another one, and none is answered before it is on the disk itself.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::{Durability, EngineConfig};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{MemoryDisk, Op};
use newsreel_service::{NewsService, Outcome, Transfer, TransferKind};
use newsreel_wire::MessageId;

use crate::world::{World, article, config, open_on};

fn durability(durability: Durability) -> EngineConfig {
    let mut config = config(4 << 20);
    config.sequencer.durability = durability;
    config
}

fn articles(from: usize, len: usize) -> Vec<(String, Vec<u8>)> {
    (from..from + len)
        .map(|at| article(at, "misc.test"))
        .collect()
}

/// Commits and syncs that so many articles take which come at once.
async fn cost(of: Durability, articles_sent: usize) -> (u64, u64) {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let world = World::on(Arc::new(faulty.clone()), durability(of));
    let commits = || world.engine.status().counters.commits;
    let syncs = || faulty.counts().of(Op::Sync);
    let before = (commits(), syncs());
    let outcomes = world.send(&articles(0, articles_sent)).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
    (commits() - before.0, syncs() - before.1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_article_has_a_commit_and_the_syncs_of_buffer_and_log_of_its_own() {
    const ARTICLES: u64 = 40;
    let (commits, syncs) = cost(Durability::Each, ARTICLES as usize).await;
    assert!(commits >= ARTICLES, "{commits} commits");
    assert!(syncs >= 2 * ARTICLES, "{syncs} syncs");
    // The others share theirs.
    for other in [Durability::GroupCommit, Durability::None] {
        let (commits, syncs) = cost(other, ARTICLES as usize).await;
        assert!(
            commits <= ARTICLES / 2 && syncs <= ARTICLES,
            "{commits} commits, {syncs} syncs"
        );
    }
}

/// Whenever an answer comes, the power goes; also in the middle of a batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_answered_survives_a_power_cut_right_behind_the_answer() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let world = World::on(Arc::new(faulty.clone()), durability(Durability::Each));
    // Slow enough that answers come one by one.
    let slow = Effect::Slow(Duration::from_millis(5));
    faulty.add(Fault::new(Op::Sync, "/log/", slow).forever());
    let sent = articles(0, 30);
    let transfer = |(ticket, (id, article)): (usize, &(String, Vec<u8>))| Transfer {
        ticket: ticket as u64,
        kind: TransferKind::Takethis,
        offered: MessageId::parse(id.as_bytes()).unwrap().into(),
        article: article.clone().into(),
    };
    let mut batch: Vec<Transfer> = sent.iter().enumerate().map(transfer).collect();
    world.service.transfer(&mut batch, &world.connection).await;
    let (mut answered, mut done, mut cuts) = (Vec::new(), Vec::new(), Vec::new());
    while answered.len() < sent.len() {
        poll_fn(|cx| world.connection.poll_completions(cx, &mut done)).await;
        for completion in done.drain(..) {
            assert_eq!(completion.outcome, Outcome::Accepted);
            answered.push(completion.ticket as usize);
        }
        cuts.push((memory.crash_losing_all(), answered.clone()));
    }
    assert!(cuts.len() > 1, "all answers came at once");
    for (left, answered) in cuts {
        let after = open_on(Arc::new(left), &world.config, &world.clock);
        for n in &answered {
            let text = after.by_id(&format!("<{n}@t.example>")).await;
            let what = format!("{n} of {} answered", answered.len());
            assert!(
                text.is_some_and(|text| text.contains(&format!("Body of {n}\r\n"))),
                "{what}"
            );
        }
        assert!(after.high("misc.test") >= answered.len() as u64);
    }
}
