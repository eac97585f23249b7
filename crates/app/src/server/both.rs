//! A server with groups of its own and those of servers elsewhere, in one list.

use std::sync::Arc;

use newsreel_cache::{CServer, Upstream};
use newsreel_engine::LocalService;
use newsreel_net::{Drain, LineLimit};
use newsreel_service::Beside;

use super::caching::Caching;
use super::front::Front;
use super::running::{Server, Settings};

/// What both have.
type Service = Beside<LocalService, CServer<Upstream>>;

/// What sessions use where there are both.
pub(super) struct WithCache {
    server: Arc<Server>,
    service: Arc<Service>,
}

impl WithCache {
    pub(super) fn new(server: Arc<Server>, caching: &Caching) -> Self {
        let service = Beside::new(server.service(), Arc::clone(&caching.service));
        Self {
            service: Arc::new(service),
            server,
        }
    }
}

impl Front for WithCache {
    type Service = Service;

    fn service(&self) -> Arc<Service> {
        Arc::clone(&self.service)
    }

    fn settings(&self) -> &Settings {
        self.server.settings()
    }

    fn drain(&self) -> &Drain {
        self.server.drain()
    }

    fn strangers(&self) -> &LineLimit {
        self.server.strangers()
    }
}
