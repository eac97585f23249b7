//! The local service keeps what every news service promises.

use std::sync::Arc;

use newsreel_engine::{GroupSpec, LocalService};
use newsreel_host::{FakeClock, MemoryDisk};
use newsreel_service::conformance::{self, Maker};
use parking_lot::Mutex;

use crate::world::{World, config, open_on};

/// 2026-01-01 00:00:00 UTC.
const NEW_YEAR: u64 = 1_767_225_600;

/// Makes engines, and keeps them until the suite is through.
#[derive(Default)]
struct Local {
    worlds: Mutex<Vec<World>>,
}

impl Maker for Local {
    type Service = LocalService;

    async fn make(&self, groups: &[&str]) -> Arc<LocalService> {
        let clock = Arc::new(FakeClock::new(NEW_YEAR));
        let world = open_on(Arc::new(MemoryDisk::new()), &config(8 << 20), &clock);
        let specs: Vec<GroupSpec> = groups.iter().map(|name| GroupSpec::new(name)).collect();
        world.engine.add_groups(specs).unwrap();
        let service = Arc::clone(&world.service);
        self.worlds.lock().push(world);
        service
    }

    fn path_identity(&self) -> String {
        "news.example".to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_local_service_passes_the_suite() {
    let failures = conformance::run(&Local::default()).await;
    assert_eq!(failures, Vec::<String>::new());
}
