//! Two news services as one: groups of this server's own, and beside them those of another (R27, R28).
//!
//! A group is on one side only: one of this server's own hides one of that name there.  The top bit of a group's id says which side it is
//! on, so what is asked for by number goes where it belongs without a look at names.  By message-id this side is asked first.  A
//! post goes to each side that has one of its groups, and is counted here wherever it goes; articles from peers are this side's.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupId, GroupName, MessageId, UnixTime, newsgroups};

use crate::arriving::Arriving;
use crate::article::{ArticleBuf, ArticleQuery, Found, Part};
use crate::connection::{Completion, Connection};
use crate::error::ServiceError;
use crate::group::{GroupCursor, GroupInfo, GroupRow, GroupSelect, GroupStatus, HeldRow};
use crate::overview::OverviewRows;
use crate::posting::Post;
use crate::reads::Reads;
use crate::service::{Direction, Features, NewsService};
use crate::transfer::{Offer, OfferedId, Outcome, Transfer};

/// The bit of a group's id that says that it is on the other side; neither side has as many groups.
const THERE: u32 = 1 << 31;

/// The services.
#[derive(Debug)]
pub struct Beside<L, C> {
    local: Arc<L>,
    there: Arc<C>,
}

/// Where a NEWNEWS listing stands on both sides.
#[derive(Debug, Default)]
pub struct BesideNewnews<L, C> {
    local: L,
    there: C,
    is_local_told: bool,
}

/// Which sides a post is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Local,
    There,
    Both,
}

/// A group's id on the side that it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Local(GroupId),
    There(GroupId),
}

const fn side_of(id: GroupId) -> Side {
    match id.0 & THERE {
        0 => Side::Local(id),
        _ => Side::There(GroupId(id.0 & !THERE)),
    }
}

const fn there(info: GroupInfo) -> GroupInfo {
    GroupInfo {
        id: GroupId(info.id.0 | THERE),
        ..info
    }
}

/// Some rows of one side's listing, and how far it came; none: to its end.
#[derive(Default)]
struct Rows {
    rows: BTreeMap<Box<str>, HeldRow>,
    up_to: Option<Box<str>>,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("rows", &self.rows.len())
            .field("up_to", &self.up_to)
            .finish()
    }
}

async fn rows_of<S: NewsService>(
    service: &S,
    select: GroupSelect<'_>,
    after: &str,
    limit: usize,
) -> Result<Rows, ServiceError> {
    let mut cursor = GroupCursor::default();
    cursor.advance(after);
    let mut rows = BTreeMap::new();
    let mut take = |row: GroupRow<'_>| {
        rows.insert(row.name.as_str().into(), HeldRow::of(&row));
    };
    service
        .groups(select, &mut cursor, limit, &mut take)
        .await?;
    let up_to = (!cursor.is_done()).then(|| cursor.after().into());
    Ok(Rows { rows, up_to })
}

/// What the other side listed.  It says that it is away only where no list of it was ever kept: its groups are not in the list then, and
/// those of this server are all the same.
fn listed_there<T: Default>(listed: Result<T, ServiceError>) -> Result<T, ServiceError> {
    match listed {
        Err(ServiceError::Away | ServiceError::Offline) => Ok(T::default()),
        listed => listed,
    }
}

/// The list of a side that broke off.
const CUT_LIST: ServiceError = ServiceError::Fault("the list of groups broke off");

/// A side's LIST ACTIVE when all of it has come: which of its lines are hidden is not known before.
async fn append_whole<S: NewsService>(
    service: &S,
    out: &mut Vec<Bytes>,
) -> Result<(), ServiceError> {
    if let Some(rest) = service.active_list(out).await? {
        // That somebody is away is said only where no list is kept.
        rest.whole().await.map_err(|_| CUT_LIST)?;
        out.push(rest.seen(Bytes::copy_from_slice));
    }
    Ok(())
}

/// Asks one side for an article, for who may read all groups or these.
async fn asked<S: NewsService>(
    service: &S,
    reads: Option<Reads<'_>>,
    query: ArticleQuery<'_>,
    part: Part,
    out: &mut ArticleBuf,
) -> Result<Option<Found>, ServiceError> {
    match reads {
        None => service.article(query, part, out).await,
        Some(reads) => service.article_for(reads, query, part, out).await,
    }
}

/// Has an article posted on one side; what became of it.
async fn posted<S: NewsService>(service: &S, post: Post, from: &Connection) -> Outcome {
    let own = Arc::new(Connection::new(from.id(), from.address(), None));
    service.post(post, &own).await;
    let mut done = Vec::new();
    poll_fn(|cx| own.poll_completions(cx, &mut done)).await;
    let outcome = done.first().map(|completion| completion.outcome);
    outcome.unwrap_or(Outcome::Failed)
}

impl<L: NewsService, C: NewsService> Beside<L, C> {
    /// Groups of a server's own, and those of another.
    #[must_use]
    pub const fn new(local: Arc<L>, there: Arc<C>) -> Self {
        Self { local, there }
    }

    /// Where a post goes.  One for a moderator, who gets it whole, goes to the side of the first group that has one, and into no group
    /// of either (RFC 5537 section 3.5.1).
    async fn way_of(&self, article: &[u8]) -> Result<Way, ServiceError> {
        // What is for nobody is refused here, with the reason; so is what names too many groups, and none of them is asked for.
        let Ok(headers) = Headers::scan(article) else {
            return Ok(Way::Local);
        };
        let names = headers.content(Known::Newsgroups).unwrap_or_default();
        let names = newsgroups::split(names).flatten();
        let most = self.local.post_groups_max();
        if names.clone().nth(most).is_some() {
            return Ok(Way::Local);
        }
        let is_approved = headers.present().contains(Known::Approved);
        let mut all = None;
        for name in names {
            let (info, way) = match self.local.group(name).await? {
                Some(info) => (Some(info), Way::Local),
                None => match self.there.group(name).await {
                    Ok(None) => continue,
                    Ok(info) => (info, Way::There),
                    // It may well be there: the post waits for it.
                    Err(_) => (None, Way::There),
                },
            };
            let is_moderated = info.is_some_and(|info| info.status == GroupStatus::Moderated);
            if is_moderated && !is_approved {
                return Ok(way);
            }
            all = match all {
                Some(other) if other != way => Some(Way::Both),
                _ => Some(way),
            };
            if all == Some(Way::Both) && is_approved {
                break;
            }
        }
        Ok(all.unwrap_or(Way::Local))
    }

    /// Posts to both sides under one message-id: there first, as what is refused there is to be nowhere; before that this one is asked
    /// whether it would take it.
    async fn post_to_both(&self, post: Post, from: &Connection) -> Outcome {
        if let Err(outcome) = self.local.would_take(&post, from).await {
            return outcome;
        }
        let there = posted(&*self.there, post.clone(), from).await;
        // What they have already and is not here lacks this side alone.
        if !matches!(there, Outcome::Accepted | Outcome::Duplicate) {
            return there;
        }
        let id = post.id.clone();
        let here = posted(&*self.local, post, from).await;
        if there == Outcome::Accepted && !matches!(here, Outcome::Accepted | Outcome::Duplicate) {
            let id = String::from_utf8_lossy(id.as_bytes());
            tracing::error!(
                target: "newsreel::cache", %id, outcome = here.word(),
                "a post is in the groups upstream that it is for, and was not taken for those of this server"
            );
            // It is out.
            return there;
        }
        here
    }

    /// An article of either side, for who may read all groups or these.
    async fn article_of(
        &self,
        reads: Option<Reads<'_>>,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        match query {
            ArticleQuery::ById(_) => {
                let found = asked(&*self.local, reads, query, part, out).await?;
                if found.is_some() {
                    return Ok(found);
                }
                asked(&*self.there, reads, query, part, out).await
            }
            ArticleQuery::ByNumber(group, number) => match side_of(group) {
                Side::Local(_) => asked(&*self.local, reads, query, part, out).await,
                Side::There(group) => {
                    let query = ArticleQuery::ByNumber(group, number);
                    asked(&*self.there, reads, query, part, out).await
                }
            },
        }
    }
}

/// What both can do together.
const fn features_of(local: Features, there: Features) -> Features {
    Features {
        reader: local.reader,
        transit: local.transit,
        // Half of what is new is no answer.
        newnews: local.newnews && there.newnews,
        over_by_id: local.over_by_id && there.over_by_id,
        posting: local.posting || there.posting,
    }
}

impl<L: NewsService, C: NewsService> NewsService for Beside<L, C> {
    type NewnewsCursor = BesideNewnews<L::NewnewsCursor, C::NewnewsCursor>;

    fn features(&self) -> Features {
        features_of(self.local.features(), self.there.features())
    }

    async fn learn_features(&self) -> Features {
        let local = self.local.learn_features().await;
        features_of(local, self.there.learn_features().await)
    }

    fn has_site_list(&self, keyword: &str) -> bool {
        self.there.has_site_list(keyword)
    }

    async fn site_list(&self, keyword: &'static str) -> Result<Option<Bytes>, ServiceError> {
        self.there.site_list(keyword).await
    }

    fn now(&self) -> UnixTime {
        self.local.now()
    }

    async fn group(&self, name: GroupName<'_>) -> Result<Option<GroupInfo>, ServiceError> {
        if let Some(info) = self.local.group(name).await? {
            return Ok(Some(info));
        }
        Ok(self.there.group(name).await?.map(there))
    }

    async fn has_gone(&self, group: GroupId, name: GroupName<'_>) -> bool {
        match side_of(group) {
            Side::Local(group) => self.local.has_gone(group, name).await,
            Side::There(group) => self.there.has_gone(group, name).await,
        }
    }

    async fn groups(
        &self,
        select: GroupSelect<'_>,
        cursor: &mut GroupCursor,
        limit: usize,
        visit: &mut (dyn FnMut(GroupRow<'_>) + Send),
    ) -> Result<(), ServiceError> {
        let after = cursor.after().to_owned();
        let own = rows_of(&*self.local, select, &after, limit).await?;
        let theirs = listed_there(rows_of(&*self.there, select, &after, limit).await)?;
        let up_to = match (own.up_to, theirs.up_to) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let mut all = BTreeMap::new();
        for (name, mut row) in theirs.rows {
            let parsed = GroupName::parse(name.as_bytes());
            // One that is not listed here now may be there all the same, with other attributes.
            let is_hidden = match parsed {
                Ok(parsed) => {
                    own.rows.contains_key(&name) || self.local.group(parsed).await?.is_some()
                }
                Err(_) => true,
            };
            if !is_hidden {
                row.info = there(row.info);
                all.insert(name, row);
            }
        }
        all.extend(own.rows);
        let is_in = |name: &str| up_to.as_deref().is_none_or(|up_to| name <= up_to);
        let shown = all.iter().filter(|(name, _)| is_in(name));
        for (visited, (name, row)) in shown.enumerate() {
            if visited >= limit {
                return Ok(());
            }
            row.visit(visit);
            cursor.advance(name);
        }
        match up_to {
            Some(up_to) => cursor.advance(&up_to),
            None => cursor.finish(),
        }
        Ok(())
    }

    async fn active_list(
        &self,
        out: &mut Vec<Bytes>,
    ) -> Result<Option<Arc<Arriving>>, ServiceError> {
        let begun = out.len();
        append_whole(&*self.local, out).await?;
        let mut theirs = Vec::new();
        let listed = append_whole(&*self.there, &mut theirs).await;
        listed_there(listed)?;
        let own: Vec<Bytes> = out.iter().skip(begun).cloned().collect();
        let name = |line: &[u8]| {
            line.split(|octet| *octet == b' ')
                .next()
                .map(<[u8]>::to_vec)
        };
        let lines = own
            .iter()
            .flat_map(|piece| piece.split(|octet| *octet == b'\n'));
        let own: HashSet<Vec<u8>> = lines.filter_map(name).collect();
        let is_hidden = |line: &[u8]| name(line).is_some_and(|name| own.contains(&name));
        for piece in theirs {
            let mut lines = piece.split_inclusive(|octet| *octet == b'\n');
            if !lines.any(is_hidden) {
                out.push(piece);
                continue;
            }
            let lines = piece.split_inclusive(|octet| *octet == b'\n');
            let shown: Vec<u8> = lines
                .filter(|line| !is_hidden(line))
                .flatten()
                .copied()
                .collect();
            out.push(shown.into());
        }
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
        match side_of(group) {
            Side::Local(group) => self.local.numbers(group, low, high, limit, out).await,
            Side::There(group) => self.there.numbers(group, low, high, limit, out).await,
        }
    }

    async fn overview(
        &self,
        group: GroupId,
        low: ArticleNumber,
        high: ArticleNumber,
        limit_bytes: usize,
        rows: &mut OverviewRows,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        match side_of(group) {
            Side::Local(group) => {
                self.local
                    .overview(group, low, high, limit_bytes, rows)
                    .await
            }
            Side::There(group) => {
                self.there
                    .overview(group, low, high, limit_bytes, rows)
                    .await
            }
        }
    }

    async fn overview_by_id(
        &self,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> Result<bool, ServiceError> {
        Ok(self.local.overview_by_id(id, rows).await?
            || self.there.overview_by_id(id, rows).await?)
    }

    async fn overview_for(
        &self,
        reads: Reads<'_>,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> Result<bool, ServiceError> {
        Ok(self.local.overview_for(reads, id, rows).await?
            || self.there.overview_for(reads, id, rows).await?)
    }

    async fn neighbour(
        &self,
        group: GroupId,
        number: ArticleNumber,
        direction: Direction,
        out: &mut ArticleBuf,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        match side_of(group) {
            Side::Local(group) => self.local.neighbour(group, number, direction, out).await,
            Side::There(group) => self.there.neighbour(group, number, direction, out).await,
        }
    }

    async fn article(
        &self,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        self.article_of(None, query, part, out).await
    }

    async fn article_for(
        &self,
        reads: Reads<'_>,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        self.article_of(Some(reads), query, part, out).await
    }

    async fn article_here(
        &self,
        id: MessageId<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        self.local.article_here(id, part, out).await
    }

    async fn newnews(
        &self,
        wildmat: &Wildmat,
        since: UnixTime,
        cursor: &mut Self::NewnewsCursor,
        limit_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        if !cursor.is_local_told {
            let own = &mut cursor.local;
            let telling = self.local.newnews(wildmat, since, own, limit_bytes, out);
            cursor.is_local_told = !telling.await?;
            return Ok(true);
        }
        let theirs = &mut cursor.there;
        self.there
            .newnews(wildmat, since, theirs, limit_bytes, out)
            .await
    }

    async fn offer(&self, id: MessageId<'_>, from: &Arc<Connection>) -> Offer {
        self.local.offer(id, from).await
    }

    async fn transfer(&self, batch: &mut Vec<Transfer>, from: &Arc<Connection>) {
        self.local.transfer(batch, from).await;
    }

    fn new_message_id(&self) -> OfferedId {
        self.local.new_message_id()
    }

    async fn post(&self, post: Post, from: &Arc<Connection>) {
        let ticket = post.ticket;
        let outcome = match self.way_of(&post.article).await {
            Ok(Way::Local) => return self.local.post(post, from).await,
            Ok(Way::There) => match self.local.count_post(&post, from) {
                Ok(()) => return self.there.post(post, from).await,
                Err(outcome) => outcome,
            },
            Ok(Way::Both) => self.post_to_both(post, from).await,
            Err(_) => Outcome::Failed,
        };
        from.complete([Completion { ticket, outcome }]);
    }

    fn forwards(&self, verb: &[u8]) -> bool {
        self.there.forwards(verb)
    }

    async fn forward(
        &self,
        words: &[&[u8]],
        group: Option<GroupName<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        if let Some(group) = group
            && self.local.group(group).await?.is_some()
        {
            return Ok(false);
        }
        self.there.forward(words, group, out).await
    }

    fn decline(&self, id: MessageId<'_>, from: &Connection) {
        self.local.decline(id, from);
    }

    fn release(&self, from: &Connection) {
        self.local.release(from);
        self.there.release(from);
    }
}
