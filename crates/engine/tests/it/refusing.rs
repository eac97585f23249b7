//! Refusals that hang on the configuration of buffers and numbers, which transcripts do not reach.

use std::sync::Arc;

use newsreel_host::MemoryDisk;
use newsreel_service::{Outcome, Reject};

use crate::world::{World, article, config};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_storage_rule_takes_is_refused() {
    let mut config = config(4 << 20);
    config.store.rules[0].groups = "misc.test".to_owned();
    let world = World::on(Arc::new(MemoryDisk::new()), config);
    let sent = [article(1, "misc.other"), article(2, "misc.test")];
    assert_eq!(
        world.send(&sent).await,
        [Outcome::Rejected(Reject::NoStorageRule), Outcome::Accepted]
    );
    assert_eq!(world.high("misc.other"), 0);
}

/// The session hands on whole articles only; what has no terminator all the same is no article.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_end_is_refused() {
    let world = World::on(Arc::new(MemoryDisk::new()), config(4 << 20));
    let (id, mut octets) = article(1, "misc.test");
    octets.truncate(octets.len() - 3);
    let outcomes = world.send(&[(id, octets), article(1, "misc.test")]).await;
    assert_eq!(
        outcomes,
        [Outcome::Rejected(Reject::Undecodable), Outcome::Accepted]
    );
}
