//! A news database in memory: small, exact and slow, for tests of everything above the trait.
//!
//! It checks and numbers articles as the real one does, so that the same transcripts run on both, and it can be told to
//! hold answers back, to be full and to fail.  One lock guards everything; nothing here is meant to be fast.

mod accept;
mod post;
mod reading;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use newsreel_wire::path::Diagnostic;
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupId, GroupName, MessageId, UnixTime};
use parking_lot::Mutex;

use crate::arriving::Arriving;
use crate::article::{ArticleBuf, ArticleQuery, Found, Part};
use crate::changes::LastChanges;
use crate::connection::{Completion, Connection, ConnectionId};
use crate::error::ServiceError;
use crate::group::{GroupCursor, GroupInfo, GroupRow, GroupSelect};
use crate::overview::OverviewRows;
use crate::posting::{IdMaker, Post, PostLimits, PostingConfig};
use crate::service::{Direction, Features, NewsService};
use crate::transfer::{Defer, Offer, OfferedId, Outcome, Transfer};

/// Settings of a [`MemoryService`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Our name in Path and Xref.
    pub path_identity: String,
    /// What it offers.
    pub features: Features,
    /// Articles with an older date are refused; 0 means none.
    pub age_max_s: u64,
    /// Articles with a date further ahead are refused.
    pub ahead_max_s: u64,
    /// Offers open per connection.
    pub offers_max: usize,
    /// What a post must be.
    pub posting: PostingConfig,
    /// Whose groups are whose: `pattern:address`.
    pub moderators: Vec<String>,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            path_identity: "news.test.example".to_owned(),
            features: Features {
                reader: true,
                transit: true,
                newnews: true,
                over_by_id: true,
                posting: true,
            },
            age_max_s: 0,
            ahead_max_s: 86_400,
            offers_max: 1000,
            posting: PostingConfig::default(),
            moderators: Vec::new(),
        }
    }
}

/// What a test makes the service do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trouble {
    /// Articles under way get this instead of being looked at, offers are put off.
    pub transfers: Option<Outcome>,
    /// Whatever readers ask fails.
    pub reads_fail: bool,
    /// Whatever readers ask is elsewhere, and cannot be had now.
    pub is_away: bool,
    /// Articles from this number on are, when they are asked for by number.
    pub away_from: Option<ArticleNumber>,
    /// Lists of a group fail from this number on.
    pub lists_fail_from: Option<ArticleNumber>,
    /// Answers to transfers are held back until [`MemoryService::let_go`].
    pub hold: bool,
    /// Nothing more is taken, as when the budget is used up, until this ends.
    pub busy: bool,
    /// So long it takes to look for news.
    pub slow: Option<Duration>,
}

/// The service.
#[derive(Debug)]
pub struct MemoryService {
    config: MemoryConfig,
    ids: IdMaker,
    now: AtomicU64,
    state: Mutex<State>,
    calm: tokio::sync::Notify,
}

#[derive(Debug, Default)]
struct State {
    groups: BTreeMap<String, Group>,
    names: HashMap<GroupId, String>,
    by_id: HashMap<Box<[u8]>, Arc<Stored>>,
    /// In order of arrival.
    arrivals: Vec<Arc<Stored>>,
    offers: HashMap<Box<[u8]>, ConnectionId>,
    held: Vec<(Arc<Connection>, Completion)>,
    /// Mails to moderators: address and text.
    mails: Vec<(String, Vec<u8>)>,
    /// The message-id of each.
    mailed: HashSet<OfferedId>,
    limits: PostLimits,
    changes: LastChanges,
    /// Whose text comes bit by bit.
    coming: HashMap<Box<[u8]>, Arc<Arriving>>,
    /// Answers to commands that are carried out elsewhere, by their verbs.
    forwarded: HashMap<Box<[u8]>, Vec<u8>>,
    trouble: Trouble,
}

#[derive(Debug)]
struct Group {
    id: GroupId,
    status: String,
    description: String,
    created: UnixTime,
    high: u64,
    articles: BTreeMap<u64, Arc<Stored>>,
}

/// An article as it is served.
#[derive(Debug)]
struct Stored {
    id: Box<[u8]>,
    wire: Vec<u8>,
    /// Where the empty line begins, and where the body does.
    head_end: usize,
    body: usize,
    overview: Vec<u8>,
    groups: Vec<String>,
    arrival: UnixTime,
}

impl MemoryService {
    /// An empty one, at `now`.
    #[must_use]
    pub fn new(config: MemoryConfig, now: UnixTime) -> Self {
        Self {
            ids: IdMaker::new(now, 0),
            config,
            now: AtomicU64::new(now.0),
            state: Mutex::default(),
            calm: tokio::sync::Notify::new(),
        }
    }

    /// Sets the clock.
    pub fn set_now(&self, now: UnixTime) {
        self.now.store(now.0, Ordering::Relaxed);
    }

    /// Makes a group; one that is there keeps its articles.
    pub fn add_group(&self, name: &str, status: &str, description: &str) {
        let mut state = self.state.lock();
        let id = GroupId(u32::try_from(state.names.len()).unwrap_or(u32::MAX));
        if state.groups.contains_key(name) {
            return;
        }
        state.names.insert(id, name.to_owned());
        let group = Group {
            id,
            status: status.to_owned(),
            description: description.to_owned(),
            created: self.now(),
            high: 0,
            articles: BTreeMap::new(),
        };
        state.groups.insert(name.to_owned(), group);
    }

    /// Removes a group; its articles stay, in no group.
    pub fn remove_group(&self, name: &str) {
        let mut state = self.state.lock();
        if let Some(group) = state.groups.remove(name) {
            // No group has this name, nor one that is made again this id.
            state.names.insert(group.id, String::new());
        }
    }

    /// The next article of a group gets at least this number.
    pub fn raise(&self, group: &str, number: u64) {
        if let Some(group) = self.state.lock().groups.get_mut(group) {
            group.high = group.high.max(number.saturating_sub(1));
        }
    }

    /// Takes an article in wire form as if a peer had sent it.
    pub fn inject(&self, id: &[u8], wire: &[u8]) -> Outcome {
        self.accept_from(&mut self.state.lock(), id, wire, (Diagnostic::None, None))
    }

    /// The text of an article comes to readers as this does.
    pub fn comes(&self, id: &[u8], arriving: &Arc<Arriving>) {
        let mut state = self.state.lock();
        state.coming.insert(id.into(), Arc::clone(arriving));
    }

    /// A command that is none of ours is carried out elsewhere, and answered like this.
    pub fn forward_as(&self, verb: &[u8], answer: &[u8]) {
        let mut state = self.state.lock();
        state.forwarded.insert(verb.into(), answer.to_vec());
    }

    /// Removes an article, as a cancel does; its id stays known.
    pub fn remove(&self, id: &[u8]) {
        let mut state = self.state.lock();
        let Some(stored) = state.by_id.get(id).cloned() else {
            return;
        };
        for name in &stored.groups {
            if let Some(group) = state.groups.get_mut(name) {
                group
                    .articles
                    .retain(|_, other| !Arc::ptr_eq(other, &stored));
            }
        }
        state.arrivals.retain(|other| !Arc::ptr_eq(other, &stored));
        let gone = Stored {
            id: stored.id.clone(),
            wire: Vec::new(),
            head_end: 0,
            body: 0,
            overview: Vec::new(),
            groups: Vec::new(),
            arrival: stored.arrival,
        };
        state.by_id.insert(stored.id.clone(), Arc::new(gone));
    }

    /// Mails that would go to moderators: addresses and texts.
    #[must_use]
    pub fn mails(&self) -> Vec<(String, Vec<u8>)> {
        self.state.lock().mails.clone()
    }

    /// Makes trouble, or ends it.
    pub fn set_trouble(&self, trouble: Trouble) {
        self.state.lock().trouble = trouble;
        self.calm.notify_waiters();
    }

    /// Answers held back.
    #[must_use]
    pub fn held(&self) -> usize {
        self.state.lock().held.len()
    }

    /// Gives up to `count` of the answers held back, the last first when `reverse`.
    pub fn let_go(&self, count: usize, reverse: bool) {
        let mut state = self.state.lock();
        let count = count.min(state.held.len());
        let mut going: Vec<_> = if reverse {
            let from = state.held.len() - count;
            state.held.drain(from..).collect()
        } else {
            state.held.drain(..count).collect()
        };
        drop(state);
        if reverse {
            going.reverse();
        }
        for (connection, completion) in going {
            connection.complete([completion]);
        }
    }

    fn reading(&self) -> Result<parking_lot::MutexGuard<'_, State>, ServiceError> {
        let state = self.state.lock();
        if state.trouble.reads_fail {
            return Err(ServiceError::Fault("told to fail"));
        }
        if state.trouble.is_away {
            return Err(ServiceError::Away);
        }
        Ok(state)
    }

    fn listing(
        &self,
        from: ArticleNumber,
    ) -> Result<parking_lot::MutexGuard<'_, State>, ServiceError> {
        let state = self.reading()?;
        let fails_from = state.trouble.lists_fail_from;
        if fails_from.is_some_and(|fails_from| from >= fails_from) {
            return Err(ServiceError::Fault("told to fail"));
        }
        Ok(state)
    }
}

impl NewsService for MemoryService {
    type NewnewsCursor = usize;

    fn features(&self) -> Features {
        self.config.features
    }

    fn now(&self) -> UnixTime {
        UnixTime(self.now.load(Ordering::Relaxed))
    }

    async fn group(&self, name: GroupName<'_>) -> Result<Option<GroupInfo>, ServiceError> {
        Ok(self.reading()?.groups.get(name.as_str()).map(Group::info))
    }

    async fn groups(
        &self,
        select: GroupSelect<'_>,
        cursor: &mut GroupCursor,
        limit: usize,
        visit: &mut (dyn FnMut(GroupRow<'_>) + Send),
    ) -> Result<(), ServiceError> {
        let select = (select, self.now());
        self.reading()?.list_groups(select, cursor, limit, visit);
        Ok(())
    }

    async fn active_list(
        &self,
        out: &mut Vec<Bytes>,
    ) -> Result<Option<Arc<Arriving>>, ServiceError> {
        let state = self.reading()?;
        // Several parts, as the real one has them.
        let lines: Vec<String> = state
            .groups
            .iter()
            .map(|(name, group)| {
                let info = group.info();
                format!("{name} {} {} {}\r\n", info.high, info.low, group.status)
            })
            .collect();
        out.extend(lines.chunks(2).map(|part| Bytes::from(part.concat())));
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
        let state = self.listing(low)?;
        let mut numbers = state
            .range(group, low, high)
            .map(|(number, _)| ArticleNumber(*number));
        out.extend(numbers.by_ref().take(limit));
        Ok(numbers.next())
    }

    async fn overview(
        &self,
        group: GroupId,
        low: ArticleNumber,
        high: ArticleNumber,
        limit_bytes: usize,
        rows: &mut OverviewRows,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        let state = self.listing(low)?;
        let mut next = None;
        for (number, stored) in state.range(group, low, high) {
            if !rows.is_empty() && rows.len() >= limit_bytes {
                next = Some(ArticleNumber(*number));
                break;
            }
            rows.push(ArticleNumber(*number), &stored.overview);
        }
        Ok(next)
    }

    async fn overview_by_id(
        &self,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> Result<bool, ServiceError> {
        let state = self.reading()?;
        let Some(stored) = state.find(id.as_bytes()) else {
            return Ok(false);
        };
        rows.push(ArticleNumber(0), &stored.overview);
        Ok(true)
    }

    async fn neighbour(
        &self,
        group: GroupId,
        number: ArticleNumber,
        direction: Direction,
        out: &mut ArticleBuf,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        let state = self.reading()?;
        let Some(found) = state.neighbour(group, number, direction) else {
            return Ok(None);
        };
        out.clear();
        out.set_id(&found.1.id);
        Ok(Some(found.0))
    }

    async fn article(
        &self,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        let state = self.reading()?;
        if let ArticleQuery::ByNumber(_, number) = query
            && state.trouble.away_from.is_some_and(|from| number >= from)
        {
            return Err(ServiceError::Away);
        }
        Ok(state.read(query, part, out))
    }

    async fn newnews(
        &self,
        wildmat: &Wildmat,
        since: UnixTime,
        cursor: &mut usize,
        limit_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        let slow = self.reading()?.trouble.slow;
        if let Some(slow) = slow {
            tokio::time::sleep(slow).await;
        }
        Ok(self
            .reading()?
            .newnews(wildmat, since, cursor, limit_bytes, out))
    }

    async fn offer(&self, id: MessageId<'_>, from: &Arc<Connection>) -> Offer {
        self.state
            .lock()
            .offer(id.as_bytes(), from.id(), self.config.offers_max)
    }

    async fn transfer(&self, batch: &mut Vec<Transfer>, from: &Arc<Connection>) {
        loop {
            let calm = self.calm.notified();
            if !self.state.lock().trouble.busy {
                break;
            }
            calm.await;
        }
        let address = from.address().map(|address| address.to_string());
        let source = address
            .as_deref()
            .map_or(Diagnostic::None, Diagnostic::Seen);
        let neighbour = from.peer();
        let source = (source, neighbour.as_deref());
        let mut state = self.state.lock();
        let mut completions = Vec::with_capacity(batch.len());
        for transfer in batch.drain(..) {
            let id = transfer.offered.as_bytes();
            let outcome = match state.trouble.transfers {
                Some(outcome) => outcome,
                None => self.accept_from(&mut state, id, &transfer.article, source),
            };
            state.offers.remove(id);
            completions.push(Completion {
                ticket: transfer.ticket,
                outcome,
            });
        }
        if state.trouble.hold {
            let held = completions.into_iter().map(|one| (Arc::clone(from), one));
            state.held.extend(held);
            return;
        }
        drop(state);
        from.complete(completions);
    }

    fn new_message_id(&self) -> OfferedId {
        self.ids.make(&self.config.path_identity)
    }

    async fn post(&self, post: Post, from: &Arc<Connection>) {
        let mut state = self.state.lock();
        let outcome = match state.trouble.transfers {
            Some(outcome) => outcome,
            None => self.injected(&mut state, &post, from.address()),
        };
        let completion = Completion {
            ticket: post.ticket,
            outcome,
        };
        if state.trouble.hold {
            state.held.push((Arc::clone(from), completion));
            return;
        }
        drop(state);
        from.complete([completion]);
    }

    async fn would_take(&self, post: &Post, from: &Connection) -> Result<(), Outcome> {
        self.would_inject(&mut self.state.lock(), post, from.address())
    }

    fn count_post(&self, post: &Post, from: &Connection) -> Result<(), Outcome> {
        let (config, now) = (&self.config.posting, self.now());
        let user = post.poster.user.as_deref();
        let limits = &mut self.state.lock().limits;
        Ok(limits.take(config, user, from.address(), now.0 * 1000)?)
    }

    fn post_groups_max(&self) -> usize {
        self.config.posting.groups_max as usize
    }

    fn forwards(&self, verb: &[u8]) -> bool {
        self.state.lock().forwarded.contains_key(verb)
    }

    async fn forward(
        &self,
        words: &[&[u8]],
        _group: Option<GroupName<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        let state = self.reading()?;
        let verb = words.first().copied().unwrap_or_default();
        let answer = state.forwarded.get(verb);
        out.extend_from_slice(answer.map_or(&[][..], Vec::as_slice));
        Ok(answer.is_some())
    }

    fn decline(&self, id: MessageId<'_>, from: &Connection) {
        let offers = &mut self.state.lock().offers;
        if offers.get(id.as_bytes()) == Some(&from.id()) {
            offers.remove(id.as_bytes());
        }
    }

    fn release(&self, from: &Connection) {
        self.state
            .lock()
            .offers
            .retain(|_, owner| *owner != from.id());
    }
}

impl State {
    fn offer(&mut self, id: &[u8], by: ConnectionId, offers_max: usize) -> Offer {
        // Whatever holds others up: what is here already the peer need not keep.
        if self.by_id.contains_key(id) {
            return Offer::Known;
        }
        if self.trouble.transfers.is_some() {
            return Offer::Later(Defer::Full);
        }
        match self.offers.get(id) {
            Some(owner) if *owner != by => Offer::Later(Defer::UnderWay),
            Some(_) => Offer::Want,
            None if self.offers.values().filter(|owner| **owner == by).count() >= offers_max => {
                Offer::Later(Defer::TooManyOffers)
            }
            None => {
                self.offers.insert(id.into(), by);
                Offer::Want
            }
        }
    }
}
