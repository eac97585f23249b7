//! The memory service keeps what every service promises, and the suite notices one that does not.

mod beside;

use std::sync::Arc;

use newsreel_service::Outcome;
use newsreel_service::conformance::{Maker, run};
use newsreel_service::memory::{MemoryConfig, MemoryService, Trouble};
use newsreel_wire::UnixTime;

struct Memory {
    trouble: Trouble,
}

impl Maker for Memory {
    type Service = MemoryService;

    async fn make(&self, groups: &[&str]) -> Arc<MemoryService> {
        let service = MemoryService::new(MemoryConfig::default(), UnixTime(1_767_225_600));
        for group in groups {
            service.add_group(group, "y", "");
        }
        service.set_trouble(self.trouble);
        Arc::new(service)
    }

    fn path_identity(&self) -> String {
        MemoryConfig::default().path_identity
    }
}

#[tokio::test]
async fn memory_conforms() {
    let failures = run(&Memory {
        trouble: Trouble::default(),
    })
    .await;
    assert!(failures.is_empty(), "{failures:#?}");
}

#[tokio::test]
async fn a_service_that_takes_nothing_does_not_conform() {
    let trouble = Trouble {
        transfers: Some(Outcome::Failed),
        ..Trouble::default()
    };
    let failures = run(&Memory { trouble }).await;
    assert!(failures.len() >= 12, "{failures:#?}");
}

#[tokio::test]
async fn a_service_that_cannot_read_does_not_conform() {
    let trouble = Trouble {
        reads_fail: true,
        ..Trouble::default()
    };
    let failures = run(&Memory { trouble }).await;
    assert!(failures.len() >= 12, "{failures:#?}");
}
