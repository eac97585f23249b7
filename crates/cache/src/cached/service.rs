//! The service itself: what is cached is told from the cache, the rest is the server's.

use std::sync::Arc;

use bytes::Bytes;
use newsreel_net::client::Connect;
use newsreel_service::posting::Post;
use newsreel_service::{
    Arriving, ArticleBuf, ArticleQuery, Completion, Connection, Direction, Features, Found,
    GroupCursor, GroupInfo, GroupRow, GroupSelect, NewsService, Offer, OfferedId, OverviewRows,
    Part, Reads, ServiceError, Transfer,
};
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::newsgroups;
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupId, GroupName, MessageId, UnixTime};
use tokio::time::Instant;

use super::CServer;
use super::article::Ask;
use super::groups::info_of;
use crate::remote::{RemoteNewnews, Wants};

impl<C: Connect> NewsService for CServer<C> {
    type NewnewsCursor = RemoteNewnews<C>;

    fn features(&self) -> Features {
        self.inner.there.features()
    }

    async fn learn_features(&self) -> Features {
        self.inner.there.learn_features().await
    }

    fn has_site_list(&self, keyword: &str) -> bool {
        self.inner.there.has_site_list(keyword)
    }

    async fn site_list(&self, keyword: &'static str) -> Result<Option<Bytes>, ServiceError> {
        self.inner.there.site_list(keyword).await
    }

    fn now(&self) -> UnixTime {
        self.inner.there.now()
    }

    async fn group(&self, name: GroupName<'_>) -> Result<Option<GroupInfo>, ServiceError> {
        let begun = Instant::now();
        let is_kept = self.inner.fresh_group(name.as_str()).is_some();
        let asked: Arc<str> = name.as_str().into();
        let Some(facts) = self.inner.facts_or_row(name, &asked).await? else {
            return Ok(None);
        };
        let shown = self.inner.shown_of(&asked, &facts).await?;
        self.inner.counts.groups.answered(is_kept, 0, begun);
        let info = info_of(self.inner.there.group_id(name)?, &facts);
        let (count, first) = (shown.count, shown.first);
        Ok(Some(GroupInfo {
            count,
            first,
            ..info
        }))
    }

    async fn has_gone(&self, _group: GroupId, name: GroupName<'_>) -> bool {
        // Who found nothing has had it asked for where that was too long ago.
        self.inner.there.lacks_group(name.as_str(), |_| true)
    }

    async fn groups(
        &self,
        select: GroupSelect<'_>,
        cursor: &mut GroupCursor,
        limit: usize,
        visit: &mut (dyn FnMut(GroupRow<'_>) + Send),
    ) -> Result<(), ServiceError> {
        let (inner, begun) = (&self.inner, Instant::now());
        let begins = cursor.after().is_empty();
        let wants = match select.bare {
            true => Wants::Active,
            false => Wants::All,
        };
        let is_kept = inner.there.has_fresh_list(wants);
        match select.counts && inner.shows_kept_only() {
            true => inner.groups_of_kept(select, cursor, limit, visit).await?,
            false => inner.there.groups(select, cursor, limit, visit).await?,
        }
        if begins {
            inner.counts.list.answered(is_kept, 0, begun);
        }
        Ok(())
    }

    async fn active_list(
        &self,
        out: &mut Vec<Bytes>,
    ) -> Result<Option<Arc<Arriving>>, ServiceError> {
        self.inner.list(out).await
    }

    async fn numbers(
        &self,
        group: GroupId,
        low: ArticleNumber,
        high: ArticleNumber,
        limit: usize,
        out: &mut Vec<ArticleNumber>,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        self.inner.numbers_in(group, (low, high), limit, out).await
    }

    async fn overview(
        &self,
        group: GroupId,
        low: ArticleNumber,
        high: ArticleNumber,
        limit_bytes: usize,
        rows: &mut OverviewRows,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        self.overview_shown(group, (low, high), limit_bytes, rows)
            .await
    }

    async fn overview_by_id(
        &self,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> Result<bool, ServiceError> {
        self.overview_by_id_shown(None, id, rows).await
    }

    async fn overview_for(
        &self,
        reads: Reads<'_>,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> Result<bool, ServiceError> {
        self.overview_by_id_shown(Some(reads), id, rows).await
    }

    async fn neighbour(
        &self,
        group: GroupId,
        number: ArticleNumber,
        direction: Direction,
        out: &mut ArticleBuf,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        self.inner.neighbour_of(group, number, direction, out).await
    }

    async fn article(
        &self,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        let ask = Ask::of_reader(part, None);
        self.article_shown(query, ask, out).await
    }

    async fn article_for(
        &self,
        reads: Reads<'_>,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        let ask = Ask::of_reader(part, Some(reads));
        self.article_shown(query, ask, out).await
    }

    async fn article_here(
        &self,
        id: MessageId<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        self.inner.there.article_here(id, part, out).await
    }

    async fn newnews(
        &self,
        wildmat: &Wildmat,
        since: UnixTime,
        cursor: &mut Self::NewnewsCursor,
        limit_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        let there = &self.inner.there;
        there
            .newnews(wildmat, since, cursor, limit_bytes, out)
            .await
    }

    async fn offer(&self, id: MessageId<'_>, from: &Arc<Connection>) -> Offer {
        self.inner.there.offer(id, from).await
    }

    async fn transfer(&self, batch: &mut Vec<Transfer>, from: &Arc<Connection>) {
        self.inner.there.transfer(batch, from).await;
    }

    fn new_message_id(&self) -> OfferedId {
        self.inner.there.new_message_id()
    }

    async fn post(&self, post: Post, from: &Arc<Connection>) {
        let (article, ticket) = (post.article.clone(), post.ticket);
        let outcome = self.inner.posted(&post).await;
        from.complete([Completion { ticket, outcome }]);
        // Posters look whether it is there.
        if let Ok(headers) = Headers::scan(&article) {
            let groups = headers.content(Known::Newsgroups).unwrap_or_default();
            for group in newsgroups::split(groups).flatten() {
                self.inner.keep.outdate_group(group.as_str());
                self.inner.there.may_have_group(group.as_str());
            }
        }
    }

    fn forwards(&self, verb: &[u8]) -> bool {
        self.inner.there.forwards(verb)
    }

    async fn forward(
        &self,
        words: &[&[u8]],
        group: Option<GroupName<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        self.inner.there.forward(words, group, out).await
    }

    fn decline(&self, id: MessageId<'_>, from: &Connection) {
        self.inner.there.decline(id, from);
    }

    fn release(&self, from: &Connection) {
        self.inner.there.release(from);
    }
}
