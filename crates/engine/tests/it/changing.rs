//! What LIST ACTIVE.MODTIME goes by: which groups' lines are not what they were, whoever changed them.

use std::sync::Arc;

use newsreel_engine::GroupChange;
use newsreel_host::{Clock as _, MemoryDisk, read_whole, replace_file};
use newsreel_service::{GroupCursor, GroupSelect, NewsService as _, Outcome};
use newsreel_wire::UnixTime;

use crate::world::{World, article, config, open_on};

/// The groups whose lines changed since this moment of the server's clock.
async fn since(world: &World, moment: u64) -> Vec<String> {
    let select = GroupSelect {
        changed_since: Some(UnixTime(moment)),
        ..GroupSelect::default()
    };
    let (mut cursor, mut names) = (GroupCursor::default(), Vec::new());
    while !cursor.is_done() {
        let mut visit = |row: newsreel_service::GroupRow<'_>| names.push(row.name.to_string());
        let listed = world.service.groups(select, &mut cursor, 1, &mut visit);
        listed.await.unwrap();
    }
    names
}

/// Ten seconds pass; the moment it is then.
fn later(world: &World) -> u64 {
    world.wait_s(10);
    world.clock.now().secs
}

async fn send(world: &World, numbers: std::ops::Range<usize>, group: &str) {
    let batch: Vec<_> = numbers.map(|n| article(n, group)).collect();
    let outcomes = world.send(&batch).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_change_by_articles_low_marks_and_hands() {
    let mut config = config(1 << 20);
    config.store.sets[0].buffers.truncate(1);
    config.store.buffers.truncate(1);
    let world = World::new(config);
    assert_eq!(since(&world, 0).await, ["misc.other", "misc.test"]);
    let t1 = later(&world);
    assert_eq!(since(&world, t1).await, [""; 0]);
    send(&world, 0..3, "misc.test").await;
    assert_eq!(since(&world, t1).await, ["misc.test"], "an article came");
    let t2 = later(&world);
    assert_eq!(since(&world, t2).await, [""; 0]);
    // Others overwrite them: the high mark stays, the low mark rises.
    send(&world, 3..3000, "misc.other").await;
    assert_eq!(world.engine.group("misc.test").unwrap().count, 0);
    let both = ["misc.other", "misc.test"];
    assert_eq!(since(&world, t2).await, both, "articles were overwritten");
    let t3 = later(&world);
    assert_eq!(since(&world, t3).await, [""; 0]);
    let moderated = GroupChange {
        status: Some("m".to_owned()),
        ..GroupChange::default()
    };
    world.engine.set_group("misc.test", moderated).unwrap();
    assert_eq!(since(&world, t3).await, ["misc.test"], "made moderated");
}

/// Once all groups had changed whenever a server was started again.  What is known holds for the log that it was written behind, and
/// no longer: who was shown a line before a crash must be told of every other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_known_outlives_a_clean_stop_and_no_crash() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    let both = ["misc.other", "misc.test"];
    assert_eq!(since(&world, 0).await, both);
    let t1 = later(&world);
    send(&world, 0..3, "misc.test").await;
    assert_eq!(since(&world, t1).await, ["misc.test"]);
    let t2 = later(&world);
    let world = world.restart();
    assert_eq!(since(&world, t2).await, [""; 0], "as before");
    assert_eq!(since(&world, t1).await, ["misc.test"], "as before");
    assert_eq!(since(&world, 0).await, both, "as before");
    // What nobody looked at before the stop is told behind it; a stop without a look between loses nothing.
    let t3 = later(&world);
    send(&world, 3..4, "misc.other").await;
    let world = world.restart().restart();
    assert_eq!(since(&world, t3).await, ["misc.other"], "unseen");
    assert_eq!(since(&world, t2).await, ["misc.other"], "unseen");
    // A moment that was noted does not step back with the clock.
    let t4 = later(&world);
    let change = |status: &str| GroupChange {
        status: Some(status.to_owned()),
        ..GroupChange::default()
    };
    world.engine.set_group("misc.test", change("m")).unwrap();
    assert_eq!(since(&world, t4).await, ["misc.test"]);
    // Shown, set back and forgotten by a crash: the file of the last stop is not there any more.
    let t5 = later(&world);
    world.engine.set_group("misc.test", change("y")).unwrap();
    let crashed = Arc::new(memory.crash_losing_all());
    let world = open_on(crashed, &world.config, &world.clock);
    assert_eq!(since(&world, t5).await, both, "after a crash");
    let t6 = later(&world);
    assert_eq!(since(&world, t6).await, [""; 0]);
    // One that lies there from an older time is not believed.
    let changes = world.config.spool.join("changes");
    world.engine.shutdown().unwrap();
    let old = read_whole(world.disk.as_ref(), &changes, 1 << 20).unwrap();
    let world = world.restart();
    assert_eq!(since(&world, t6).await, [""; 0]);
    assert!(!world.disk.exists(&changes).unwrap(), "taken up");
    send(&world, 4..5, "misc.test").await;
    world.engine.shutdown().unwrap();
    replace_file(world.disk.as_ref(), &changes, &old).unwrap();
    let world = world.restart();
    let t7 = later(&world);
    assert_eq!(since(&world, t7).await, both, "of an older log");
}
