//! The trait [`NewsService`]: a news database as sessions, web pages and feeds in need it.
//!
//! The local engine answers with futures that are ready at once whenever nothing has to wait (memory, page cache);
//! remote and cached services really wait.  Listings are chunked: the caller's buffer is filled up to a limit and
//! the service says where to go on, so that memory per session is bounded whatever the range.  What was offered once
//! under (group, number) or message-id never changes; what is gone is simply not found.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupId, GroupName, MessageId, UnixTime};

use crate::arriving::Arriving;
use crate::article::{ArticleBuf, ArticleQuery, Found, Part};
use crate::connection::Connection;
use crate::error::ServiceError;
use crate::group::{GroupCursor, GroupInfo, GroupRow, GroupSelect};
use crate::overview::OverviewRows;
use crate::posting::Post;
use crate::reads::{Reads, line_is_in};
use crate::transfer::{Offer, OfferedId, Outcome, Transfer};

/// What a service can do; CAPABILITIES follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// Keeps groups, numbers and overview: READER, OVER, HDR, LIST and so on.
    pub reader: bool,
    /// Takes articles from peers: IHAVE, CHECK, TAKETHIS.
    pub transit: bool,
    /// Can list articles by arrival: NEWNEWS.
    pub newnews: bool,
    /// Can find overview by message-id: OVER MSGID.
    pub over_by_id: bool,
    /// Takes articles from posters who may post: POST.
    pub posting: bool,
}

/// Which neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The nearest higher number.
    Next,
    /// The nearest lower number.
    Last,
}

/// A news database.
pub trait NewsService: Send + Sync + fmt::Debug + 'static {
    /// Where a NEWNEWS listing stands; the service's own.
    type NewnewsCursor: Default + Send + fmt::Debug;

    /// What it can do, as far as that is known now.
    fn features(&self) -> Features;

    /// The same, when servers elsewhere that have a say in it have said so, or could not be asked.
    fn learn_features(&self) -> impl Future<Output = Features> + Send {
        async { self.features() }
    }

    /// The time, for DATE and for two-digit years.
    fn now(&self) -> UnixTime;

    /// A group's facts, exact at this moment.  `None`: no such group.
    fn group(
        &self,
        name: GroupName<'_>,
    ) -> impl Future<Output = Result<Option<GroupInfo>, ServiceError>> + Send;

    /// Whether a group that was there has gone, by its id and its name, as far as that is known by who has just found nothing in it; one that
    /// was made again is another.
    fn has_gone(&self, group: GroupId, name: GroupName<'_>) -> impl Future<Output = bool> + Send {
        async move {
            let found = self.group(name).await;
            found.is_ok_and(|found| found.is_none_or(|info| info.id != group))
        }
    }

    /// Visits the selected groups in octet order of their names, from where `cursor` stands, at most `limit` of
    /// them, and moves the cursor on; the service may stop earlier (it has examined many without a match), so
    /// only [`GroupCursor::is_done`] ends a listing.
    fn groups(
        &self,
        select: GroupSelect<'_>,
        cursor: &mut GroupCursor,
        limit: usize,
        visit: &mut (dyn FnMut(GroupRow<'_>) + Send),
    ) -> impl Future<Output = Result<(), ServiceError>> + Send;

    /// Appends the lines of LIST ACTIVE for all groups, in wire form, without status line and terminator.  Ready
    /// made and shared; may lag a second behind.  `Some`: what follows these is still coming from elsewhere.
    fn active_list(
        &self,
        out: &mut Vec<Bytes>,
    ) -> impl Future<Output = Result<Option<Arc<Arriving>>, ServiceError>> + Send;

    /// Whether another server says that it keeps this list of its site ([`NewsService::site_list`]), as far as that is known now.
    fn has_site_list(&self, _keyword: &str) -> bool {
        false
    }

    /// The lines of a list of the site that another server keeps, as LIST MOTD and LIST SUBSCRIPTIONS name them, in wire form, without
    /// status line and terminator.  `None`: nobody keeps it.
    fn site_list(
        &self,
        _keyword: &'static str,
    ) -> impl Future<Output = Result<Option<Bytes>, ServiceError>> + Send {
        async { Ok(None) }
    }

    /// Appends the numbers offered in `low..=high`, ascending, at most `limit` of them whatever `out` held before;
    /// `Some(next)` says where to go on.
    fn numbers(
        &self,
        group: GroupId,
        low: ArticleNumber,
        high: ArticleNumber,
        limit: usize,
        out: &mut Vec<ArticleNumber>,
    ) -> impl Future<Output = Result<Option<ArticleNumber>, ServiceError>> + Send;

    /// Appends the overview lines of `low..=high`, ascending, until `rows` holds `limit_bytes` or more (one line
    /// may overshoot); `Some(next)` says where to go on.
    fn overview(
        &self,
        group: GroupId,
        low: ArticleNumber,
        high: ArticleNumber,
        limit_bytes: usize,
        rows: &mut OverviewRows,
    ) -> impl Future<Output = Result<Option<ArticleNumber>, ServiceError>> + Send;

    /// Appends the overview line of one article, with number 0.  `false`: not here.
    fn overview_by_id(
        &self,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> impl Future<Output = Result<bool, ServiceError>> + Send;

    /// The same for who may not read all groups.  `false` also where the article is in no group that may be read.
    fn overview_for(
        &self,
        reads: Reads<'_>,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> impl Future<Output = Result<bool, ServiceError>> + Send {
        async move {
            let had = rows.len();
            if !self.overview_by_id(id, rows).await? {
                return Ok(false);
            }
            let is_in = line_is_in(rows.text().get(had..).unwrap_or_default(), reads);
            if !is_in {
                rows.buffer().truncate(had);
            }
            Ok(is_in)
        }
    }

    /// The next or previous number offered in a group, its message-id put into `out`.
    fn neighbour(
        &self,
        group: GroupId,
        number: ArticleNumber,
        direction: Direction,
        out: &mut ArticleBuf,
    ) -> impl Future<Output = Result<Option<ArticleNumber>, ServiceError>> + Send;

    /// An article or a part of it, in `out` as [`ArticleBuf::set_content`] describes; only the beginning of it where `out`
    /// takes portions and the rest is still coming.  `None`: not here, or no longer (also when it is damaged: that is counted
    /// and reported by the service).
    fn article(
        &self,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> impl Future<Output = Result<Option<Found>, ServiceError>> + Send;

    /// The same for who may not read all groups, but may read the one that a number is of.  `None` also where an article that is asked
    /// for by its message-id is in no group that may be read.
    fn article_for(
        &self,
        reads: Reads<'_>,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> impl Future<Output = Result<Option<Found>, ServiceError>> + Send {
        async move {
            if let ArticleQuery::ById(id) = query
                && !self
                    .overview_for(reads, id, &mut OverviewRows::default())
                    .await?
            {
                return Ok(None);
            }
            self.article(query, part, out).await
        }
    }

    /// An article that is in this server's own spool: for who may ask for that alone.
    fn article_here(
        &self,
        id: MessageId<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> impl Future<Output = Result<Option<Found>, ServiceError>> + Send {
        self.article(ArticleQuery::ById(id), part, out)
    }

    /// Appends message-ids, one a line in wire form, of articles that arrived at or after `since` in groups that
    /// match, until `out` holds `limit_bytes` or more, or the service has looked at so many groups that others should
    /// go on.  `false`: complete.
    fn newnews(
        &self,
        wildmat: &Wildmat,
        since: UnixTime,
        cursor: &mut Self::NewnewsCursor,
        limit_bytes: usize,
        out: &mut Vec<u8>,
    ) -> impl Future<Output = Result<bool, ServiceError>> + Send;

    /// A peer offers an article.  After [`Offer::Want`] other connections are told to wait until this one
    /// sends it, ends, or its time is up.
    fn offer(
        &self,
        id: MessageId<'_>,
        from: &Arc<Connection>,
    ) -> impl Future<Output = Offer> + Send;

    /// A peer sent articles, offered before or not.  Takes all of `batch` (empty afterwards, the vector may be
    /// another one), waiting while the budget for articles under way is used up; each is answered by exactly one
    /// completion on `from`, in any order, perhaps before this returns.  Dropping the future loses what it had not
    /// taken.
    fn transfer(
        &self,
        batch: &mut Vec<Transfer>,
        from: &Arc<Connection>,
    ) -> impl Future<Output = ()> + Send;

    /// A message-id that no article has, for one that comes without.
    fn new_message_id(&self) -> OfferedId;

    /// Somebody posts an article: it is injected (RFC 5537 section 3.5) and then taken like any other, or goes to a
    /// moderator.  Answered as a transfer is, by one completion on `from`.
    fn post(&self, post: Post, from: &Arc<Connection>) -> impl Future<Output = ()> + Send;

    /// What a post would be refused for, as far as that is known before anything is done.
    fn would_take(
        &self,
        _post: &Post,
        _from: &Connection,
    ) -> impl Future<Output = Result<(), Outcome>> + Send {
        std::future::ready(Ok(()))
    }

    /// Counts a post that goes elsewhere among those of its poster.
    ///
    /// # Errors
    /// That it is one too many.
    fn count_post(&self, _post: &Post, _from: &Connection) -> Result<(), Outcome> {
        Ok(())
    }

    /// Groups that a post may name: one that names more is refused.
    fn post_groups_max(&self) -> usize {
        usize::MAX
    }

    /// Whether a command that is none of ours is carried out elsewhere.
    fn forwards(&self, _verb: &[u8]) -> bool {
        false
    }

    /// Has such a command carried out, its words as they came, for who has selected this group: appends the whole answer in wire
    /// form, with its line.  `false`: it is not carried out at all.
    fn forward(
        &self,
        _words: &[&[u8]],
        _group: Option<GroupName<'_>>,
        _out: &mut Vec<u8>,
    ) -> impl Future<Output = Result<bool, ServiceError>> + Send {
        std::future::ready(Ok(false))
    }

    /// What this connection was asked for will not come from it: others may be asked.
    fn decline(&self, id: MessageId<'_>, from: &Connection);

    /// A connection has ended: what was offered on it and not sent may be asked of others.  Transfers under way
    /// go on.
    fn release(&self, from: &Connection);
}
