//! OVER and HDR by message-id find every article that can be read.

use std::path::Path;
use std::sync::Arc;

use newsreel_engine::{Engine, GroupSpec, LocalService};
use newsreel_host::{Clock, Disk, MemoryDisk};
use newsreel_service::{NewsService as _, Outcome, OverviewRows};
use newsreel_wire::MessageId;

use crate::world::{World, article, config};

async fn line(world: &World, id: &str) -> Option<String> {
    line_of(&world.service, id).await
}

async fn line_of(service: &LocalService, id: &str) -> Option<String> {
    let id = MessageId::parse(id.as_bytes()).unwrap();
    let mut rows = OverviewRows::default();
    let found = service.overview_by_id(id, &mut rows).await.unwrap();
    found.then(|| String::from_utf8(rows.text().to_vec()).unwrap())
}

/// A removed group takes its rows with it, and one made again has other numbers; the articles stay readable by id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn articles_of_removed_groups_have_their_line() {
    let world = World::on(Arc::new(MemoryDisk::new()), config(4 << 20));
    let sent = [article(1, "misc.test,misc.other"), article(2, "misc.test")];
    assert_eq!(world.send(&sent).await, [Outcome::Accepted; 2]);
    let ids = ["<1@t.example>", "<2@t.example>"];
    let before = [line(&world, ids[0]).await, line(&world, ids[1]).await];
    assert!(before[1].as_ref().unwrap().starts_with("0\tnumber 2\t"));
    assert!(
        before[1]
            .as_ref()
            .unwrap()
            .ends_with("Xref: news.example misc.test:2\r\n")
    );
    for round in ["removed", "made again", "sealed"] {
        match round {
            "removed" => world.engine.remove_group("misc.test").unwrap(),
            "made again" => {
                let again = vec![GroupSpec::new("misc.test")];
                world.engine.add_groups(again).unwrap();
                // It must not be taken for one of those before.
                world.send(&[article(3, "misc.test")]).await;
            }
            _ => world.seal(),
        };
        for (id, before) in ids.iter().zip(&before) {
            assert_eq!(line(&world, id).await, *before, "{round}");
        }
    }
    assert_eq!(line(&world, "<none@t.example>").await, None);
}

/// While a file of the overview is missing nothing is told of any group; the article itself is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_file_of_the_overview_costs_no_line() {
    let memory: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let world = World::on(Arc::clone(&memory), config(4 << 20));
    let sent = [article(1, "misc.test,misc.other")];
    assert_eq!(world.send(&sent).await, [Outcome::Accepted]);
    world.seal();
    let before = line(&world, "<1@t.example>").await;
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    world.engine.shutdown().unwrap();
    drop(world);
    let index = Path::new("/spool/index");
    for file in memory.list(index).unwrap() {
        if file.name.starts_with("overview") {
            memory.remove(&index.join(file.name)).unwrap();
        }
    }
    // Whoever only looks rebuilds nothing.
    let engine = Engine::open_read_only(config, memory, clock as Arc<dyn Clock>).unwrap();
    assert!(!engine.status().damaged.is_empty());
    let line = line_of(&engine.service(), "<1@t.example>").await;
    assert_eq!(line, before);
}
