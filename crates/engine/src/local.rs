//! The local news service (the papers' *LServer*): the engine behind the trait of all services.
//!
//! Reads run on the caller's task as long as everything is in memory or page cache; what must
//! wait for the disk goes to the runtime's bounded pool of blocking threads.  What is handed over to be
//! kept goes to `taking`.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use newsreel_index::{Error as IndexError, Group, GroupFacts, Wait};
use newsreel_service::posting::Post;
use newsreel_service::{
    Arriving, ArticleBuf, ArticleQuery, Connection, Defer, Direction, Features, Found, GroupCursor,
    GroupInfo, GroupRow, GroupSelect, GroupStatus, NewsService, Offer, OfferedId, Outcome,
    OverviewRows, Part, ServiceError, Transfer,
};
use newsreel_store::{Blocking, ReadError, Want};
use newsreel_wire::{ArticleNumber, GroupId, GroupName, MessageId, Token, UnixTime, Wildmat};
use parking_lot::Mutex;

use crate::accept::Origin;
use crate::active::ActiveList;
use crate::config::Mode;
use crate::counters::Counters;
use crate::newnews::NewnewsCursor;
use crate::offers::Claim;
use crate::shared::Shared;

/// The engine as a [`NewsService`].
#[derive(Debug)]
pub struct LocalService {
    pub(crate) shared: Arc<Shared>,
    active: Arc<Mutex<ActiveList>>,
}

/// Groups examined in one step of a listing at most, so that a listing never holds a task long.
pub(crate) const GROUPS_STEP: usize = 1024;

/// Tries in memory first; what must wait is done again on a thread that may.
macro_rules! or_wait {
    ($shared:expr, $now:expr, $later:expr) => {
        match $now {
            Err(newsreel_index::Error::WouldBlock) => {
                $crate::local::blocking($shared, $later).await?
            }
            other => other,
        }
    };
}
pub(crate) use or_wait;

pub(crate) async fn blocking<T: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce(&Shared) -> T + Send + 'static,
) -> Result<T, ServiceError> {
    let shared = Arc::clone(shared);
    tokio::task::spawn_blocking(move || work(&shared))
        .await
        .map_err(|_| ServiceError::Fault("a reading thread ended"))
}

/// What a visitor of rows says: the row is taken, and it wants more unless it is full.
pub(crate) const fn more_until(is_full: bool) -> ControlFlow<()> {
    if is_full {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

pub(crate) fn index_fault(error: &IndexError) -> ServiceError {
    tracing::error!(%error, "a view cannot be read");
    ServiceError::Fault("index")
}

/// A listing need not be exact (RFC 3977 section 7.6.3): one damaged file must not take all groups out of it.
fn listed(shared: &Shared, group: GroupId, wait: Wait) -> Result<GroupFacts, IndexError> {
    let facts = shared.views.group_facts_or_estimate(group, wait)?;
    Ok(facts.0)
}

/// What was read from the disk for a listing.
type FactsRead = HashMap<GroupId, GroupFacts>;

/// How far a listing came.
#[derive(Debug, Default)]
struct ListStep {
    /// Groups that are done with.
    passed: usize,
    /// The first group that is not, and others behind it: they must be read from the disk.
    cold: Vec<GroupId>,
}

fn info_of(group: &Group, facts: GroupFacts) -> GroupInfo {
    GroupInfo {
        id: group.id(),
        low: facts.low,
        high: facts.high,
        count: facts.count,
        first: facts.low,
        status: GroupStatus::parse(group.status()).unwrap_or(GroupStatus::Closed),
    }
}

fn row<'g>(group: &'g Group, name: GroupName<'g>, facts: GroupFacts) -> GroupRow<'g> {
    GroupRow {
        name,
        info: info_of(group, facts),
        status: group.status(),
        created: group.created(),
        creator: group.creator(),
        description: group.description(),
    }
}

impl LocalService {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            active: Arc::default(),
        }
    }

    /// Whether a group that a session has selected was removed since: nothing is in it then.
    fn is_removed(&self, group: GroupId) -> bool {
        !self.shared.views.groups().exists(group)
    }

    /// The token of the article asked for; its message-id goes to `out`.
    async fn locate(
        &self,
        query: ArticleQuery<'_>,
        out: &mut ArticleBuf,
    ) -> Result<Option<Token>, ServiceError> {
        let shared = &self.shared;
        match query {
            ArticleQuery::ById(id) => {
                let hash = shared.id_hash(id);
                let entry = or_wait!(
                    shared,
                    shared.views.history().lookup_now(&hash),
                    move |shared: &Shared| shared.views.history().lookup(&hash)
                )
                .map_err(|error| index_fault(&error))?;
                out.set_id(id.as_bytes());
                Ok(entry.and_then(|entry| entry.token))
            }
            ArticleQuery::ByNumber(group, _) if self.is_removed(group) => Ok(None),
            ArticleQuery::ByNumber(group, number) => {
                let mut id = Vec::new();
                let overview = shared.views.overview();
                let column = match overview.column(group, number, Wait::No, &mut id) {
                    Err(IndexError::WouldBlock) => {
                        let (column, later) = blocking(shared, move |shared| {
                            let mut id = Vec::new();
                            let overview = shared.views.overview();
                            (overview.column(group, number, Wait::Yes, &mut id), id)
                        })
                        .await?;
                        id = later;
                        column
                    }
                    other => other,
                }
                .map_err(|error| index_fault(&error))?;
                out.set_id(&id);
                Ok(column.map(|column| column.token))
            }
        }
    }

    /// Reads the article into `out`; `false`: gone, or damaged (which is counted and logged).
    async fn fetch(
        &self,
        token: Token,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<bool, ServiceError> {
        let shared = &self.shared;
        let want = if part == Part::Head {
            Want::Head
        } else {
            Want::Whole
        };
        let mut read = shared
            .store
            .read(&token, want, Blocking::No, out.storage_mut());
        if matches!(read, Err(ReadError::WouldBlock)) {
            let mut memory = std::mem::take(out.storage_mut());
            let (again, memory) = blocking(shared, move |shared| {
                (
                    shared.store.read(&token, want, Blocking::Yes, &mut memory),
                    memory,
                )
            })
            .await?;
            *out.storage_mut() = memory;
            read = again;
        }
        Counters::add(&shared.counters.reads, 1);
        match read {
            Ok(stored) => {
                if want == Want::Whole {
                    shared.found_readable(&token);
                }
                let octets = stored.octets;
                let body = octets.start + stored.head_len + 2;
                out.set_content(match part {
                    Part::Whole => octets,
                    Part::Head => octets.start..octets.start + stored.head_len,
                    Part::Body => body.min(octets.end)..octets.end,
                    Part::Stat => 0..0,
                });
                Ok(true)
            }
            Err(ReadError::Gone) => Ok(false),
            Err(ReadError::Removed) => {
                blocking(shared, move |shared| shared.found_removed(&token)).await?;
                Ok(false)
            }
            Err(ReadError::Corrupt { .. }) if shared.store.lacks(&token) => {
                blocking(shared, move |shared| shared.found_removed(&token)).await?;
                Ok(false)
            }
            Err(error @ ReadError::Corrupt { .. }) => {
                // Whoever asks once more has it looked at, and nothing counted.
                if shared.found_unreadable(&token) {
                    Counters::add(&shared.counters.corrupt_reads, 1);
                    let find = move |shared: &Shared| shared.store.file_of(&token);
                    let file = blocking(shared, find).await?;
                    let file = file.map(|file| file.display().to_string());
                    tracing::error!(%error, file, "an article is damaged and not served");
                }
                Ok(false)
            }
            Err(error) => {
                Counters::add(&shared.counters.disk_errors, 1);
                tracing::error!(%error, "an article cannot be read");
                Err(ServiceError::Fault("store"))
            }
        }
    }

    /// Visits groups up to the first one that must be read from the disk.
    fn list_known(
        &self,
        select: GroupSelect<'_>,
        cursor: &mut GroupCursor,
        limit: usize,
        read: &FactsRead,
        visit: &mut (dyn FnMut(GroupRow<'_>) + Send),
    ) -> Result<ListStep, ServiceError> {
        let mut step = ListStep::default();
        let since = select.changed_since;
        let mut changes = since.map(|since| (since, self.shared.changes.lock()));
        let mut is_listed = |row: &GroupRow<'_>| match &mut changes {
            Some((since, changes)) => changes.look(row, *since, self.now()),
            None => true,
        };
        let (mut fault, mut last) = (None, None);
        let after = Some(cursor.after()).filter(|after| !after.is_empty());
        let (groups, prefix) = (self.shared.views.groups(), select.prefix());
        let more = groups.list(after, prefix, limit, |group| {
            let name = GroupName::parse(group.name().as_bytes());
            let is_wanted = select.takes(group.name(), group.created(), group.description());
            if let (Ok(name), true) = (name, is_wanted) {
                match (self.facts(group, read), step.cold.is_empty()) {
                    (Err(IndexError::WouldBlock), _) => step.cold.push(group.id()),
                    (Ok(facts), true) => {
                        let row = row(group, name, facts);
                        if is_listed(&row) {
                            visit(row);
                        }
                    }
                    (Err(error), true) => fault = Some(error),
                    _ => {}
                }
            }
            if step.cold.is_empty() {
                step.passed += 1;
                last = Some(group.name().to_owned());
            }
        });
        if let Some(error) = fault {
            return Err(index_fault(&error));
        }
        match last {
            Some(last) if more || !step.cold.is_empty() => cursor.advance(&last),
            None if !step.cold.is_empty() => {}
            _ => cursor.finish(),
        }
        Ok(step)
    }

    /// A group's marks and count: those that were read for it, or what is in memory.
    fn facts(&self, group: &Group, read: &FactsRead) -> Result<GroupFacts, IndexError> {
        match read.get(&group.id()) {
            Some(facts) => Ok(*facts),
            None => listed(&self.shared, group.id(), Wait::No),
        }
    }
}

impl NewsService for LocalService {
    type NewnewsCursor = NewnewsCursor;

    fn features(&self) -> Features {
        let reader = self.shared.config.sequencer.mode == Mode::Reader;
        Features {
            reader,
            transit: true,
            newnews: reader,
            over_by_id: reader,
            posting: reader,
        }
    }

    fn now(&self) -> UnixTime {
        UnixTime(self.shared.clock.now().secs)
    }

    async fn group(&self, name: GroupName<'_>) -> Result<Option<GroupInfo>, ServiceError> {
        let shared = &self.shared;
        let Some(group) = shared.views.groups().by_name(name.as_str()) else {
            return Ok(None);
        };
        let id = group.id();
        let facts = or_wait!(
            shared,
            shared.views.group_facts(id, Wait::No),
            move |shared: &Shared| shared.views.group_facts(id, Wait::Yes)
        )
        .map_err(|error| index_fault(&error))?;
        Ok(Some(info_of(&group, facts)))
    }

    async fn groups(
        &self,
        select: GroupSelect<'_>,
        cursor: &mut GroupCursor,
        limit: usize,
        visit: &mut (dyn FnMut(GroupRow<'_>) + Send),
    ) -> Result<(), ServiceError> {
        let mut left = limit.min(GROUPS_STEP);
        let mut read = HashMap::new();
        loop {
            let step = self.list_known(select, cursor, left, &read, visit)?;
            left = left.saturating_sub(step.passed);
            if step.cold.is_empty() {
                return Ok(());
            }
            let facts = |shared: &Shared, id: GroupId| {
                let facts = listed(shared, id, Wait::Yes)?;
                Ok((id, facts))
            };
            read = blocking(&self.shared, move |shared| {
                let cold = step.cold.into_iter();
                cold.map(|id| facts(shared, id)).collect::<Result<_, _>>()
            })
            .await?
            .map_err(|error| index_fault(&error))?;
        }
    }

    async fn active_list(
        &self,
        out: &mut Vec<Bytes>,
    ) -> Result<Option<Arc<Arriving>>, ServiceError> {
        // Whoever holds it may be waiting for the disk.
        let now = match self.active.try_lock() {
            Some(mut active) => active.lines(&self.shared, Wait::No, out),
            None => Err(IndexError::WouldBlock),
        };
        match now {
            Err(IndexError::WouldBlock) => {
                let active = Arc::clone(&self.active);
                let (done, mut lines) = blocking(&self.shared, move |shared| {
                    let mut lines = Vec::new();
                    (active.lock().lines(shared, Wait::Yes, &mut lines), lines)
                })
                .await?;
                out.append(&mut lines);
                done
            }
            done => done,
        }
        .map_err(|error| index_fault(&error))?;
        Ok(None)
    }

    async fn numbers(
        &self,
        group: GroupId,
        low: ArticleNumber,
        high: ArticleNumber,
        limit: usize,
        out: &mut Vec<ArticleNumber>,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        if self.is_removed(group) {
            return Ok(None);
        }
        let shared = &self.shared;
        let all = out.len() + limit;
        let overview = shared.views.overview();
        match overview.numbers(group, (low, high), all, Wait::No, out) {
            Err(IndexError::WouldBlock) => {
                let (next, mut found) = blocking(shared, move |shared| {
                    let mut found = Vec::new();
                    let overview = shared.views.overview();
                    let range = (low, high);
                    (
                        overview.numbers(group, range, limit, Wait::Yes, &mut found),
                        found,
                    )
                })
                .await?;
                out.append(&mut found);
                next
            }
            other => other,
        }
        .map_err(|error| index_fault(&error))
    }

    async fn overview(
        &self,
        group: GroupId,
        low: ArticleNumber,
        high: ArticleNumber,
        limit_bytes: usize,
        rows: &mut OverviewRows,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        if self.is_removed(group) {
            return Ok(None);
        }
        let shared = &self.shared;
        let range = (low, high);
        let out = rows.buffer();
        let overview = shared.views.overview();
        match overview.lines(group, range, limit_bytes, Wait::No, out) {
            Err(IndexError::WouldBlock) => {
                let limit = limit_bytes.saturating_sub(out.len());
                let (next, lines) = blocking(shared, move |shared| {
                    let mut lines = Vec::new();
                    let overview = shared.views.overview();
                    let next = overview.lines(group, range, limit, Wait::Yes, &mut lines);
                    (next, lines)
                })
                .await?;
                out.extend_from_slice(&lines);
                next
            }
            other => other,
        }
        .map_err(|error| index_fault(&error))
    }

    async fn overview_by_id(
        &self,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> Result<bool, ServiceError> {
        let mut article = ArticleBuf::new();
        let query = ArticleQuery::ById(id);
        if self
            .article(query, Part::Head, &mut article)
            .await?
            .is_none()
        {
            return Ok(false);
        }
        self.write_line_of(id, &mut article, rows).await
    }

    async fn neighbour(
        &self,
        group: GroupId,
        number: ArticleNumber,
        direction: Direction,
        out: &mut ArticleBuf,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        if self.is_removed(group) {
            return Ok(None);
        }
        let find = move |shared: &Shared, wait: Wait| {
            let mut id = Vec::new();
            let overview = shared.views.overview();
            let column = match direction {
                Direction::Next => overview.next_live(group, number, wait, &mut id),
                Direction::Last => overview.prev_live(group, number, wait, &mut id),
            };
            column.map(|column| (column, id))
        };
        let (column, id) = or_wait!(
            &self.shared,
            find(&self.shared, Wait::No),
            move |shared: &Shared| find(shared, Wait::Yes)
        )
        .map_err(|error| index_fault(&error))?;
        out.set_id(&id);
        Ok(column.map(|column| column.number))
    }

    async fn article(
        &self,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        out.clear();
        let shared = &self.shared;
        let number = match query {
            ArticleQuery::ById(_) => ArticleNumber(0),
            ArticleQuery::ByNumber(_, number) => number,
        };
        loop {
            let (withdrawals, moves) = (shared.views.withdrawals(), shared.moves());
            let Some(token) = self.locate(query, out).await? else {
                return Ok(None);
            };
            let is_there = match part {
                // It may be sound again, or its disk there: whoever asks finds out.
                Part::Stat | Part::Head if shared.is_damaged(&token) => {
                    self.fetch(token, Part::Stat, out).await?
                        && (part == Part::Stat || self.fetch(token, part, out).await?)
                }
                // Whether somebody removed its file only that file tells.
                Part::Stat if shared.store.is_file(&token) => self.fetch(token, part, out).await?,
                Part::Stat => shared.store.is_live(&token),
                _ => self.fetch(token, part, out).await?,
            };
            if !is_there && shared.moves() != moves {
                // It lies elsewhere by now, perhaps, and its old place was cleared.
                continue;
            }
            if is_there && shared.views.withdrawals() != withdrawals {
                // Perhaps this one, while it was copied; one that moved is the same.
                let still = self.locate(query, out).await?;
                return Ok(still.map(|_| Found { number }));
            }
            return Ok(is_there.then_some(Found { number }));
        }
    }

    async fn newnews(
        &self,
        wildmat: &Wildmat,
        since: UnixTime,
        cursor: &mut NewnewsCursor,
        limit_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        self.new_articles(wildmat, since, cursor, (limit_bytes, out))
            .await
    }

    async fn offer(&self, id: MessageId<'_>, from: &Arc<Connection>) -> Offer {
        let shared = &self.shared;
        let hash = shared.id_hash(id);
        let known = match shared.views.history().lookup_now(&hash) {
            Err(IndexError::WouldBlock) => {
                blocking(shared, move |shared| shared.views.history().lookup(&hash))
                    .await
                    .ok()
                    .and_then(Result::ok)
            }
            other => other.ok(),
        };
        let counters = &shared.counters;
        let offer = match (known, self.held_up()) {
            // Whatever holds others up: what is here already the peer need not keep.
            (Some(Some(_)), _) => Offer::Known,
            (_, Some(defer)) => Offer::Later(defer),
            (Some(None), None) => match shared.offers.claim(&hash, from.id(), shared.now_ms()) {
                Claim::Granted => Offer::Want,
                Claim::Taken => Offer::Later(Defer::UnderWay),
                Claim::TooMany => Offer::Later(Defer::TooManyOffers),
            },
            (None, None) => Offer::Later(Defer::Paused),
        };
        Counters::add(
            match offer {
                Offer::Want => &counters.wanted,
                Offer::Known => &counters.known,
                Offer::Later(_) => &counters.deferred,
            },
            1,
        );
        offer
    }

    async fn transfer(&self, batch: &mut Vec<Transfer>, from: &Arc<Connection>) {
        match self.held_up() {
            Some(defer) => self.put_off(defer, batch, from).await,
            None => self.take(batch, from, Origin::Peer).await,
        }
    }

    fn new_message_id(&self) -> OfferedId {
        self.made_message_id()
    }

    async fn post(&self, post: Post, from: &Arc<Connection>) {
        self.take_post(post, from).await;
    }

    async fn would_take(&self, post: &Post, from: &Connection) -> Result<(), Outcome> {
        let judged = self.would_take_post(post, from.address()).await;
        self.counted(judged)
    }

    fn count_post(&self, post: &Post, from: &Connection) -> Result<(), Outcome> {
        self.counted(self.count_one_post(post, from.address()))
    }

    fn post_groups_max(&self) -> usize {
        self.shared.policy.load().posting.groups_max as usize
    }

    fn decline(&self, id: MessageId<'_>, from: &Connection) {
        let hash = self.shared.id_hash(id);
        self.shared.offers.unclaim(&hash, from.id());
    }

    fn release(&self, from: &Connection) {
        self.shared.offers.release(from.id());
    }
}
