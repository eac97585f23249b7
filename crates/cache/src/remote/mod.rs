//! The paper's RServer: servers elsewhere as one news service, without anything kept but the lists of their groups.
//!
//! Which of them is asked for what is in `route.rs`; one that cannot be asked hides nothing that another has.
//! Everything is asked anew, in one round trip where the protocol lets it be one.  What the server says is judged before it
//! is passed on: numbers, message-ids, names and overview lines are what they should be or are left out.

mod article;
mod ask;
mod forward;
mod groups;
mod listing;
mod names;
mod newnews;
mod numbers;
mod one;
mod route;
mod sameness;
mod service;
mod site;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use newsreel_host::Clock;
use newsreel_net::client::{Connect, Pool};
use newsreel_service::posting::{IdMaker, PostingConfig};
use newsreel_service::{LastChanges, ServiceError};
use newsreel_wire::{GroupId, GroupName, MessageId, UnixTime};
use parking_lot::Mutex;

use crate::keep::Keep;
use groups::Merged;
use names::Names;
use one::{Common, One};
use site::SiteLists;

pub(crate) use article::Take;
pub(crate) use ask::PATIENCE;
pub use forward::{FORWARDED_OCTETS_MAX, Forwarded};
pub(crate) use listing::{TakeList, Wants};
pub use newnews::RemoteNewnews;
pub(crate) use numbers::{GAP_NUMBERS, TakeLines, WholeList};
pub(crate) use one::{Delivery, Sending};
pub use one::{MISSING_GROUPS_MAX, MISSING_IDS_MAX};
pub use route::{Route, Routes};
pub use sameness::{SAMPLED_GROUPS_MAX, SAMPLED_NUMBERS_MAX, Sameness};
pub(crate) use service::Judged;

/// Articles up to so many octets are passed on to who asks for them, though they are larger than those that are kept.
pub const PASSED_ON_OCTETS_MAX: usize = 16 << 20;

/// What is taken from the server at most, and what is sent to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteSettings {
    /// The largest article that is kept.
    pub article_octets_max: usize,
    /// The largest that is passed on at all.
    pub passed_on_octets_max: usize,
    /// Groups that are known at the same time.
    pub groups_max: usize,
    /// How old the list of groups may be when a new listing begins.
    pub list_refresh: Duration,
    /// After how long it is fetched whole from a server that tells what has changed of it, which groups that are gone are not.
    pub list_whole: Duration,
    /// How long a server is not asked again for a message-id that it does not have.
    pub missing_refresh: Duration,
    /// Commands that are passed on.
    pub forwarded: Vec<Forwarded>,
    /// What a post must be before it is sent on.
    pub posting: PostingConfig,
    /// What stands behind the `@` of message-ids made here.
    pub host: String,
}

/// Servers elsewhere.
pub struct RServer<C: Connect> {
    /// In the order of the routes.
    ones: Vec<One<C>>,
    routes: Routes,
    /// Those whose lists make the list of all groups.
    listing: Vec<usize>,
    common: Arc<Common>,
    /// The list of all groups.
    merged: Mutex<Option<Merged>>,
    /// When each group's line in it was seen to be another than before.
    changes: Mutex<LastChanges>,
    site_lists: SiteLists,
}

impl<C: Connect> fmt::Debug for RServer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RServer")
            .field("ones", &self.ones)
            .field("routes", &self.routes)
            .field("settings", &self.common.settings)
            .finish_non_exhaustive()
    }
}

impl<C: Connect> RServer<C> {
    /// Servers, each behind its pool of connections; `random` is another number at every start.
    pub fn new(
        servers: Vec<(Arc<Pool<C>>, Route)>,
        clock: Arc<dyn Clock>,
        settings: RemoteSettings,
        random: u64,
    ) -> Self {
        let now = UnixTime(clock.now().secs);
        let common = Arc::new(Common {
            clock,
            names: Mutex::new(Names::new(settings.groups_max)),
            settings,
            ids: IdMaker::new(now, random),
            is_offline: AtomicBool::new(false),
            kept: OnceLock::new(),
        });
        let one = |(pool, route): &(_, Route)| One::new(route, Arc::clone(pool), &common);
        let ones = servers.iter().map(one).collect();
        let routes = Routes::new(servers.into_iter().map(|(_, route)| route).collect());
        Self {
            ones,
            listing: routes.listing(),
            routes,
            common,
            merged: Mutex::default(),
            changes: Mutex::default(),
            site_lists: SiteLists::default(),
        }
    }

    /// The id of a group's name, a new one if need be.
    pub(crate) fn group_id(&self, name: GroupName<'_>) -> Result<GroupId, ServiceError> {
        self.common.names.lock().id(name).ok_or(ask::NO_ANSWER)
    }

    /// The name that has an id.
    pub(crate) fn group_name(&self, id: GroupId) -> Option<Arc<str>> {
        self.common.names.lock().name(id)
    }

    /// Whether what one server does not have may be had from another.
    pub(crate) const fn has_others(&self) -> bool {
        self.ones.len() > 1
    }

    /// Lists are kept here over a restart, and it is known from here which groups there are.
    pub(crate) fn keep_here(&self, keep: &Arc<Keep>) {
        let _ = self.common.kept.set(Arc::clone(keep));
    }

    /// The largest article that is kept, octets.
    pub(crate) fn article_octets_max(&self) -> u64 {
        self.common.settings.article_octets_max as u64
    }

    /// How long a server is not asked again for what it does not have.
    pub(crate) fn missing_refresh(&self) -> Duration {
        self.common.settings.missing_refresh
    }

    /// How many connections a group's server may have at the same time.
    pub(crate) fn connections(&self, group: &str) -> usize {
        self.numbering(group).map_or(1, |one| one.pool.most())
    }

    /// How many connections there may be to the server that has most of them.
    pub(crate) fn connections_max(&self) -> usize {
        self.ones
            .iter()
            .map(|one| one.pool.most())
            .max()
            .unwrap_or(1)
    }

    /// Whether nobody elsewhere is asked.
    pub(crate) fn is_offline(&self) -> bool {
        self.common.is_offline.load(Ordering::Acquire)
    }

    /// From now on nobody elsewhere is asked, or all are again; what is under way goes on.
    pub(crate) fn set_offline(&self, is_offline: bool) {
        self.common.is_offline.store(is_offline, Ordering::Release);
    }

    /// Which servers can be asked; what they can do is known then.
    pub(crate) async fn greet(&self) -> Vec<bool> {
        ask::all_of(self.ones.iter().map(One::greet)).await
    }

    /// The server that a group's numbers come from.
    fn numbering(&self, group: &str) -> Option<&One<C>> {
        self.ones.get(self.routes.numbering(group)?)
    }

    /// The same by the group's id.
    fn numbering_by_id(&self, id: GroupId) -> Option<&One<C>> {
        self.numbering(&self.group_name(id)?)
    }

    /// A group's own server does not have an article of it any more.
    pub(crate) fn said_missing(&self, group: &str, id: MessageId<'_>) {
        if let Some(one) = self.numbering(group) {
            one.said_missing(id);
        }
    }

    /// Whether the server that a group's numbers come from said of anything that it does not have it.
    pub(crate) fn has_missing(&self, group: &str) -> bool {
        self.numbering(group).is_some_and(One::has_missing)
    }

    /// The server that a group's numbers come from may have this by now.
    pub(crate) fn may_have(&self, group: &str, id: MessageId<'_>) {
        if let Some(one) = self.numbering(group) {
            one.may_have(id);
        }
    }

    /// The server that may be asked for a group's articles by message-id in the place of the one that its numbers come from, as less
    /// of it is in use; none: that one is to be asked.
    pub(crate) fn less_in_use(&self, group: &str) -> Option<usize> {
        let numbering = self.routes.numbering(group);
        let in_use = |at: &usize| self.ones.get(*at).map_or(0, |one| one.pool.counts().0);
        // Of several as busy as each other the first.
        let least = self.routes.equals(group).min_by_key(in_use);
        least.filter(|at| Some(*at) != numbering)
    }

    /// The servers as they are asked for what has a message-id, but those that said they do not have it.
    fn in_turn(&self, id: MessageId<'_>) -> impl Iterator<Item = &One<C>> {
        let in_use = |at: usize| self.ones.get(at).map_or(0, |one| one.pool.counts().0);
        let order = self.routes.in_turn(in_use).into_iter();
        let all = order.filter_map(move |at| self.ones.get(at));
        all.filter(move |one| !one.lacks(id))
    }
}
