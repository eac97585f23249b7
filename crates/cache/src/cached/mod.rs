//! The paper's CServer: a server elsewhere as a news service, with a cache between.
//!
//! What was told is told again for a time, and then compared with the server: so cancelled, expired and reinstated articles are
//! seen within that time, and with a time of zero at once.  Articles never change.  Equal questions at the same time are one
//! question there.  What cannot be kept is passed on all the same.

mod arrivals;
mod article;
mod counts;
mod equals;
mod fetch;
mod flights;
mod groups;
mod kept_only;
mod line;
mod lines;
mod list;
mod made;
mod numbers;
mod posting;
mod prefetch;
mod rate;
mod service;
mod shown;
mod turns;
mod warm;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use newsreel_net::LineLimit;
use newsreel_net::client::Connect;
use newsreel_service::{NewsService as _, ServiceError};
use newsreel_wire::{GroupId, GroupName, IdHash, MessageId};
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::access_log::{AccessLine, AccessLog};
use crate::censor::Censor;
use crate::keep::{Dropped, Fetched, Keep, KeepError, Kept, KeptFigures, group_and_date};
use crate::policies::PolicyKind;
use crate::queue::{PostQueue, QueueError};
use crate::remote::{MISSING_IDS_MAX, RServer, WholeList};
use counts::{Counts, Unread};
use fetch::Run;
use flights::{Flights, Landed};
use groups::Facts;
use lines::Ahead;
use numbers::Compared;
use turns::Turns;

pub use counts::{ANSWER_US, Counted, CountedGroup, CountedPart, GROUPS_COUNTED_MAX};
pub use fetch::RUNS_MAX;
pub use lines::LINES_AT_ONCE_MAX;
pub use prefetch::{PrefetchLimits, Prefetched, THREADS_MAX};

/// What is kept is made durable so often.
const CHECKPOINT: Duration = Duration::from_secs(5);

/// Whether a list has come that lacks groups is looked at so often.
const LISTS_LOOKED_AT: Duration = Duration::from_secs(5);

/// What readers asked for is written to the access log so often.
const ACCESS_WRITTEN: Duration = Duration::from_secs(1);

/// How long a stop waits for articles that are under way.
const STOP: Duration = Duration::from_secs(5);

/// How long who lets articles go waits for those that are still coming.
const UNTIL_KEPT: Duration = Duration::from_secs(5);

/// What readers are told when the cache's own files cannot be used.
const NO_FILES: ServiceError = ServiceError::Fault("the cache's own files cannot be used");

/// Groups of which all numbers are remembered, of servers that list no part of one.
const WHOLE_LISTS_MAX: usize = 4;

/// How old what is told may be, and how much is fetched before it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    /// How old marks, counts and numbers of a group may be, seconds; 0: the server is asked each time.
    pub refresh_s: u64,
    /// So many articles are fetched at once at most when they are read one behind the other; 1: none ahead.
    pub read_ahead_max: usize,
    /// ... and about so many octets.
    pub read_ahead_octets_max: u64,
    /// Whether no more is shown of groups than articles that are kept, while nobody elsewhere is asked.
    pub offline_kept_only: bool,
}

/// A server elsewhere, cached.
pub struct CServer<C: Connect> {
    inner: Arc<Inner<C>>,
}

/// What the tasks share.
struct Inner<C: Connect> {
    there: RServer<C>,
    keep: Arc<Keep>,
    settings: CacheSettings,
    flights: Arc<Flights>,
    /// Questions for a group's facts.
    asking: Turns<Facts>,
    /// ... and for its numbers.
    comparing: Turns<Compared>,
    /// All numbers of groups, by the groups' generations, of servers that list no part of a group: while they may be told again.
    whole_lists: Cache<Arc<str>, (u64, Arc<WholeList>)>,
    /// Articles of which it was said that they are not there, as who asked may not read them, and when.
    said_missing: Cache<IdHash, Instant>,
    /// How each group is being read, by who read last at the end; an entry for each group that has a name.
    runs: Mutex<HashMap<GroupId, Vec<Run>>>,
    /// Overview that was fetched before somebody asked for it.
    ahead: Ahead,
    counts: Counts,
    unread: Unread,
    /// Where it is noted which articles are asked for; none: nowhere.
    access_log: OnceLock<AccessLog>,
    /// What readers are not shown; none: they are shown everything.
    censor: OnceLock<Censor>,
    /// Posts that wait; none: none may.
    queue: Option<Arc<PostQueue>>,
    posts_changed: Notify,
    lines: LineLimit,
    /// What goes on when who wanted it has gone: it ends by itself, or with the service.
    tasks: Mutex<JoinSet<()>>,
}

impl<C: Connect> Drop for CServer<C> {
    fn drop(&mut self) {
        self.inner.tasks.lock().abort_all();
    }
}

impl<C: Connect> fmt::Debug for CServer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CServer")
            .field("there", &self.inner.there)
            .field("keep", &self.inner.keep)
            .field("settings", &self.inner.settings)
            .field("flights", &self.inner.flights)
            .field("queue", &self.inner.queue)
            .finish_non_exhaustive()
    }
}

impl<C: Connect> CServer<C> {
    /// A server with what is kept of it, and the posts that wait for it; without a queue none do.
    pub fn new(
        there: RServer<C>,
        keep: Arc<Keep>,
        settings: CacheSettings,
        queue: Option<Arc<PostQueue>>,
    ) -> Self {
        there.keep_here(&keep);
        let inner = Inner {
            there,
            keep,
            settings,
            flights: Arc::default(),
            asking: Turns::default(),
            comparing: Turns::default(),
            whole_lists: Cache::new(WHOLE_LISTS_MAX),
            said_missing: Cache::new(MISSING_IDS_MAX),
            runs: Mutex::default(),
            ahead: Ahead::default(),
            counts: Counts::default(),
            unread: Unread::default(),
            access_log: OnceLock::new(),
            censor: OnceLock::new(),
            queue,
            posts_changed: Notify::new(),
            lines: LineLimit::default(),
            tasks: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Which articles are asked for is noted from now on.
    pub fn note_access(&self, log: AccessLog) {
        let _ = self.inner.access_log.set(log);
    }

    /// Readers are not shown from now on what this hides.
    pub fn censor(&self, censor: Censor) {
        let _ = self.inner.censor.set(censor);
    }

    /// Which servers can be asked; what they can do is known then.
    pub async fn greet(&self) -> Vec<bool> {
        self.inner.there.greet().await
    }

    /// Whether no server elsewhere is asked.
    pub fn is_offline(&self) -> bool {
        self.inner.there.is_offline()
    }

    /// Asks no server elsewhere from now on, or all of them again; posts that wait are sent then.
    ///
    /// # Errors
    /// When the queue of posts fails.
    pub fn set_offline(&self, is_offline: bool) -> Result<(), QueueError> {
        self.inner.there.set_offline(is_offline);
        if !is_offline && let Some(queue) = &self.inner.queue {
            queue.wake(self.inner.there.now())?;
            self.look_at_posts();
        }
        Ok(())
    }

    /// What readers asked for since the start, by database.
    pub fn counts(&self) -> [(&'static str, Counted); 4] {
        self.inner.counts.seen()
    }

    /// Which articles they asked for, by the policy that was in force.
    pub fn counts_by_policy(&self) -> Vec<(PolicyKind, Counted)> {
        self.inner.counts.by_policy()
    }

    /// Which articles they asked for, by the first group that these name: so many groups, those asked for most first, and at the end
    /// all others, without a name.
    pub fn counts_by_group(&self, most: usize) -> Vec<(Box<str>, CountedGroup)> {
        self.inner.counts.by_group(most)
    }

    /// What is kept, for those who look after it.
    pub fn keep(&self) -> &Arc<Keep> {
        &self.inner.keep
    }

    /// Lets the groups that match go, with their overview and their articles, and articles by their message-ids; or only says what
    /// would go, which waits for nothing.  What readers have had by now is kept first, so that all of it goes.
    ///
    /// # Errors
    /// When the table of what is kept cannot be used.
    pub async fn let_go(
        &self,
        matches: &(dyn Fn(&str) -> bool + Sync),
        ids: &[MessageId<'_>],
        dry_run: bool,
    ) -> Result<Dropped, KeepError> {
        if !dry_run {
            self.until_kept(matches, ids).await;
        }
        self.inner.keep.drop_kept(matches, ids, dry_run)
    }

    /// Waits a moment until what readers have had by now of articles with these message-ids, and of those that name a group first which
    /// matches, is kept.  What is still not kept by then, as its end has not come, is given to those who read it, and never kept.
    async fn until_kept(&self, matches: &(dyn Fn(&str) -> bool + Sync), ids: &[MessageId<'_>]) {
        let is_wanted = |id: &[u8], group: Option<&str>| {
            ids.iter().any(|it| it.as_bytes() == id) || group.is_some_and(matches)
        };
        let has_come = |landed: &Landed| match landed {
            Landed::Found(Fetched { id, kept, .. }) => is_wanted(id, kept.group_and_date().0),
            Landed::Coming(coming) => coming.arriving.seen(|octets| {
                let (group, _) = group_and_date(octets);
                is_wanted(&coming.id, group.as_ref().map(GroupName::as_str))
            }),
            Landed::Told | Landed::Missing | Landed::Failed(_) | Landed::Lost => false,
        };
        let flights = &self.inner.flights;
        let keeping = flights.kept(has_come);
        if tokio::time::timeout(UNTIL_KEPT, keeping).await.is_err() {
            flights.let_go(has_come);
        }
    }

    /// What is kept, in figures.
    pub fn kept_figures(&self) -> KeptFigures {
        self.inner.keep.figures()
    }

    /// Another policy says which articles go from now on; false: it does already.
    pub fn set_policy(&self, policy: PolicyKind) -> bool {
        let is_another = self.inner.keep.policy() != policy;
        self.inner.keep.set_policy(policy);
        is_another
    }

    /// Makes what is kept durable from time to time, and sends posts that wait, for ever; given up, [`CServer::stop`] makes
    /// all durable a last time.
    pub async fn tend(&self) {
        tokio::join!(
            self.make_durable(),
            self.write_access_log_often(),
            self.send_posts(),
            self.let_gone_groups_go()
        );
    }

    /// What is kept of groups that are gone has no use.
    async fn let_gone_groups_go(&self) {
        loop {
            tokio::time::sleep(LISTS_LOOKED_AT).await;
            self.inner.ask_for_unlisted().await;
        }
    }

    async fn make_durable(&self) {
        loop {
            tokio::time::sleep(CHECKPOINT).await;
            self.inner.there.put_lists().await;
            let _ = self.inner.on_disk(Keep::checkpoint).await;
        }
    }

    /// Who looks at the log sees what is asked for now.
    async fn write_access_log_often(&self) {
        loop {
            tokio::time::sleep(ACCESS_WRITTEN).await;
            let log = self.inner.access_log.get();
            if log.is_some_and(AccessLog::has_waiting) {
                self.write_access_log().await;
            }
        }
    }

    async fn write_access_log(&self) {
        let inner = Arc::clone(&self.inner);
        let writing = tokio::task::spawn_blocking(move || {
            if let Some(Err(error)) = inner.access_log.get().map(AccessLog::flush)
                && let Some(more) = inner.lines.admit()
            {
                tracing::error!(target: "newsreel::cache", %error, more, "the access log cannot be written");
            }
        });
        let _ = writing.await;
    }

    /// Waits a moment for what is under way, ends the rest of it, and makes all durable.
    pub async fn stop(&self) {
        let mut tasks = std::mem::take(&mut *self.inner.tasks.lock());
        let all = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP, all).await.is_err() {
            tasks.shutdown().await;
        }
        self.inner.there.put_lists().await;
        let _ = self.inner.on_disk(Keep::checkpoint).await;
        self.inner.remove_untaken_posts().await;
        self.write_access_log().await;
    }
}

/// What is noted of an article that was asked for.
struct Noted<'a> {
    id: &'a [u8],
    octets: usize,
    group_and_date: (Option<&'a str>, u64),
}

impl<'a> Noted<'a> {
    /// One that is there.
    fn of(id: &'a [u8], kept: &'a Kept) -> Self {
        Self {
            id,
            octets: kept.wire.len(),
            group_and_date: kept.group_and_date(),
        }
    }

    /// One that is nowhere else yet.
    fn of_wire(id: &'a [u8], wire: &'a [u8]) -> Self {
        let (group, dated) = group_and_date(wire);
        Self {
            id,
            octets: wire.len(),
            group_and_date: (group.map(|group| group.as_str()), dated),
        }
    }
}

impl<C: Connect> Inner<C> {
    /// Does something that goes on when who wanted it has gone.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// An article was asked for, so many times, and answered with so many octets in all: it is counted for its group, and noted
    /// where that is noted.
    fn noted(&self, noted: &Noted<'_>, is_hit: bool, (times, octets): (u64, u64)) {
        let (group, dated) = noted.group_and_date;
        if times == 0 {
            return;
        }
        self.counts
            .of_group(group.unwrap_or(""), is_hit, times, octets);
        let (Some(log), Ok(id)) = (self.access_log.get(), MessageId::parse(noted.id)) else {
            return;
        };
        let line = AccessLine {
            at: self.there.now().0,
            is_hit,
            octets: noted.octets as u64,
            dated,
            group: group.and_then(|group| GroupName::parse(group.as_bytes()).ok()),
            id,
        };
        (0..times).for_each(|_| log.note(&line));
    }

    /// Does what may wait for the disk.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Keep) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        let keep = Arc::clone(&self.keep);
        let done = tokio::task::spawn_blocking(move || work(&keep)).await;
        done.map_err(|_| NO_FILES)
    }
}
