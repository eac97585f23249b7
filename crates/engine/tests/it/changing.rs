//! What LIST ACTIVE.MODTIME goes by: which groups' lines are not what they were, whoever changed them.

use newsreel_engine::GroupChange;
use newsreel_host::Clock as _;
use newsreel_service::{GroupCursor, GroupSelect, NewsService as _, Outcome};
use newsreel_wire::UnixTime;

use crate::world::{World, article, config};

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
    // Nobody knows after a restart; then it goes on.
    let world = world.restart();
    let t4 = later(&world);
    assert_eq!(since(&world, t4).await, both, "started again");
    let t5 = later(&world);
    assert_eq!(since(&world, t5).await, [""; 0]);
}
