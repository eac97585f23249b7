//! The paper's RServer: a server elsewhere as a news service, without anything kept but the list of its groups.
//!
//! Everything is asked anew, in one round trip where the protocol lets it be one.  What the server says is judged before it
//! is passed on: numbers, message-ids, names and overview lines are what they should be or are left out.

mod article;
mod ask;
mod groups;
mod listing;
mod names;
mod newnews;
mod numbers;
mod service;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use newsreel_host::Clock;
use newsreel_net::LineLimit;
use newsreel_net::client::{Capabilities, Connect, Pool};
use newsreel_service::ServiceError;
use newsreel_service::posting::{IdMaker, PostingConfig};
use newsreel_wire::{GroupId, GroupName, UnixTime};
use parking_lot::Mutex;
use tokio::sync::Mutex as TurnMutex;

use listing::Listing;
use names::Names;

pub use newnews::RemoteNewnews;

/// What is taken from the server at most, and what is sent to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteSettings {
    /// The largest article.
    pub article_octets_max: usize,
    /// Groups that are known at the same time.
    pub groups_max: usize,
    /// How old the list of groups may be when a new listing begins.
    pub list_refresh: Duration,
    /// What a post must be before it is sent on.
    pub posting: PostingConfig,
    /// What stands behind the `@` of message-ids made here.
    pub host: String,
}

/// A server elsewhere.
pub struct RServer<C: Connect> {
    pool: Arc<Pool<C>>,
    clock: Arc<dyn Clock>,
    settings: RemoteSettings,
    names: Mutex<Names>,
    /// What the server said last that it can do.
    capabilities: Mutex<Capabilities>,
    /// Held while the list is fetched, so that it is fetched once for all who want it.
    listing: TurnMutex<Option<Arc<Listing>>>,
    lines: LineLimit,
    ids: IdMaker,
}

impl<C: Connect> fmt::Debug for RServer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RServer")
            .field("pool", &self.pool.counts())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl<C: Connect> RServer<C> {
    /// A server behind a pool of connections; `random` is another number at every start.
    pub fn new(
        pool: Arc<Pool<C>>,
        clock: Arc<dyn Clock>,
        settings: RemoteSettings,
        random: u64,
    ) -> Self {
        let now = UnixTime(clock.now().secs);
        Self {
            pool,
            clock,
            names: Mutex::new(Names::new(settings.groups_max)),
            settings,
            capabilities: Mutex::default(),
            listing: TurnMutex::new(None),
            lines: LineLimit::default(),
            ids: IdMaker::new(now, random),
        }
    }

    /// The id of a group's name, a new one if need be.
    pub(crate) fn group_id(&self, name: GroupName<'_>) -> Result<GroupId, ServiceError> {
        self.names.lock().id(name).ok_or(ask::NO_ANSWER)
    }

    /// The name that has an id.
    pub(crate) fn group_name(&self, id: GroupId) -> Option<Arc<str>> {
        self.names.lock().name(id)
    }
}
