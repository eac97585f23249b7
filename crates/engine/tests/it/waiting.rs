//! A slow disk keeps those waiting who need it, and nobody else: no session's thread reads what is not in memory.

use std::path::Path;
use std::sync::Arc;

use newsreel_engine::GroupSpec;
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Disk as _, MemoryDisk, Op, OpenMode};
use newsreel_service::{
    Connection, ConnectionId, Defer, GroupCursor, GroupSelect, NewsService as _, Offer, Outcome,
};
use newsreel_wire::MessageId;

use crate::world::{World, article, config};

const GROUPS: usize = 12;

/// A spool whose buffers have wrapped, after a start: of many groups some articles are gone, and nothing is in memory.
async fn cold(faulty: &FaultyDisk) -> World {
    let mut config = config(1 << 20);
    config.store.sets[0].buffers.truncate(1);
    config.store.buffers.truncate(1);
    let world = World::on(Arc::new(faulty.clone()), config);
    let names: Vec<String> = (0..GROUPS).map(|n| format!("many.g{n}")).collect();
    let specs = names.iter().map(|name| GroupSpec::new(name)).collect();
    world.engine.add_groups(specs).unwrap();
    for round in 0..6 {
        let articles: Vec<_> = (0..500)
            .map(|at| article(round * 500 + at, &names[at % GROUPS]))
            .collect();
        let outcomes = world.send(&articles).await;
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
        world.seal();
    }
    world.restart()
}

/// Every group's name with its count.
async fn listed(world: &World) -> Vec<(String, u64)> {
    let mut cursor = GroupCursor::default();
    let mut rows = Vec::new();
    while !cursor.is_done() {
        let mut visit = |row: newsreel_service::GroupRow<'_>| {
            rows.push((row.name.as_str().to_owned(), row.info.count));
        };
        let select = GroupSelect::default();
        let service = &world.service;
        service
            .groups(select, &mut cursor, 5, &mut visit)
            .await
            .unwrap();
    }
    rows
}

/// On one thread, which is the one that serves all connections.
#[tokio::test]
async fn listings_and_duplicates_wait_elsewhere() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let world = cold(&faulty).await;
    let reads = || faulty.counts().of(Op::Read);
    faulty.add(Fault::new(Op::Read, "/index/", Effect::Cold).forever());
    let (waits, before) = (faulty.waits_here(), reads());
    let rows = listed(&world).await;
    assert!(reads() > before, "nothing had to be read for the groups");
    assert_eq!(faulty.waits_here(), waits, "groups");
    let before = reads();
    let old: Vec<_> = [2900, 2500, 2990].map(|n| article(n, "many.g0")).into();
    assert_eq!(world.send(&old).await, [Outcome::Duplicate; 3]);
    assert!(reads() > before, "nothing had to be read for the ids");
    assert_eq!(faulty.waits_here(), waits, "duplicates");
    // It is the same as without a hurry.
    let exact = |name: &str| world.engine.group(name).unwrap().count;
    assert_eq!(rows.len(), GROUPS + 2);
    for (name, count) in &rows {
        assert_eq!(*count, exact(name), "{name}");
    }
    assert!(rows.iter().any(|(_, count)| (1..250).contains(count)));
}

#[tokio::test]
async fn the_list_of_active_groups_waits_elsewhere() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let world = cold(&faulty).await;
    faulty.add(Fault::new(Op::Read, "/index/", Effect::Cold).forever());
    let (waits, before) = (faulty.waits_here(), faulty.counts().of(Op::Read));
    let mut parts = Vec::new();
    world.service.active_list(&mut parts).await.unwrap();
    assert!(faulty.counts().of(Op::Read) > before);
    assert_eq!(faulty.waits_here(), waits);
    let lines = parts.concat();
    assert_eq!(
        lines.iter().filter(|octet| **octet == b'\n').count(),
        GROUPS + 2
    );
}

/// While nothing is taken, a peer is still told of what is here, and need not come back with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn known_ids_are_known_also_while_the_disk_is_full() {
    let memory = MemoryDisk::with_capacity(300 << 20);
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    assert_eq!(
        world.send(&[article(1, "misc.test")]).await,
        [Outcome::Accepted]
    );
    let ballast = Path::new("/spool/ballast");
    let file = memory.open(ballast, OpenMode::CreateNew).unwrap();
    let free = memory.free_bytes(ballast).unwrap();
    file.reserve(0, free - (20 << 20)).unwrap();
    world.wait_s(1);
    world.wait_until("the stop", |world| world.engine.status().paused.is_some());
    let peer = Arc::new(Connection::new(ConnectionId(9), None, None));
    let offer = async |id: &str| {
        let id = MessageId::parse(id.as_bytes()).unwrap();
        world.service.offer(id, &peer).await
    };
    assert_eq!(offer("<1@t.example>").await, Offer::Known);
    assert_eq!(offer("<2@t.example>").await, Offer::Later(Defer::Full));
    let unasked = [article(1, "misc.test"), article(2, "misc.test")];
    assert_eq!(
        world.send_by(&peer, &unasked).await,
        [Outcome::Duplicate, Outcome::Deferred(Defer::Full)]
    );
}
