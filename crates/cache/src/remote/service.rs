//! The service itself: each question is asked of the server it belongs to, posts go there, and nothing is taken from peers.

use std::sync::Arc;

use bytes::Bytes;
use newsreel_net::client::Connect;
use newsreel_service::posting::{self, Post, Refused};
use newsreel_service::{
    ArticleBuf, ArticleQuery, Completion, Connection, Defer, Direction, Features, Found,
    GroupCursor, GroupInfo, GroupRow, GroupSelect, NewsService, Offer, OfferedId, Outcome,
    OverviewRows, Part, Reject, ServiceError, Transfer,
};
use newsreel_wire::article::{HeaderLimits, Headers, Known};
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupId, GroupName, MessageId, UnixTime};

use super::article::Take;
use super::ask::NO_ANSWER;
use super::one::{One, Sent};
use super::{RServer, RemoteNewnews};

impl<C: Connect> RServer<C> {
    /// A post that its poster may send, with the message-id that the poster is told, and the servers that it may go to.  They
    /// see all posts as ours, so who may do what is decided here.
    fn judged(&self, post: &Post) -> Result<(Bytes, Vec<usize>), Refused> {
        let (settings, now) = (&self.common.settings.posting, self.now());
        let proto = posting::check(&post.article, HeaderLimits::USUAL, settings, now)?;
        if proto.is_approved() && !post.poster.may_approve {
            return Err(Reject::NoApproval.into());
        }
        let mut groups = proto.groups();
        if !groups.all(|group| post.poster.may_post_to(group.as_str())) {
            return Err(Reject::NotAllowed.into());
        }
        let names: Vec<_> = proto.groups().collect();
        let servers = self
            .routes
            .for_posting(names.iter().map(|name| name.as_str()));
        if proto.message_id.is_some() {
            return Ok((post.article.clone(), servers));
        }
        let id = post.id.as_bytes();
        let article = [b"Message-ID: ", id, b"\r\n", &post.article].concat();
        Ok((article.into(), servers))
    }

    /// Sends a post on, to the first that can be asked and lets us post.
    async fn posted(&self, article: &[u8], servers: &[usize]) -> Outcome {
        let mut outcome = Outcome::Rejected(Reject::RefusedElsewhere);
        for one in servers.iter().filter_map(|at| self.ones.get(*at)) {
            match one.posted(article).await {
                Sent::Settled(settled) => {
                    let headers = Headers::scan(article);
                    let id = headers
                        .as_ref()
                        .ok()
                        .and_then(|headers| headers.content(Known::MessageId));
                    if let Some(Ok(id)) = id.map(MessageId::parse) {
                        one.may_have(id);
                    }
                    return settled;
                }
                Sent::NotHere(why) => outcome = why,
            }
        }
        outcome
    }

    /// Asks for articles of a group in one round trip; they are taken one by one as they come.
    pub(crate) async fn articles_in(
        &self,
        group: &str,
        numbers: &[ArticleNumber],
        take: &mut impl Take,
    ) -> Result<(), ServiceError> {
        match self.numbering(group) {
            Some(one) => one.articles_in(group, numbers, take).await,
            None => Ok(()),
        }
    }

    /// Asks one after the other for the article that has a message-id, which is taken as it comes; false: it is nowhere.
    pub(crate) async fn article_with_id(
        &self,
        id: MessageId<'_>,
        take: &mut impl Take,
    ) -> Result<bool, ServiceError> {
        let mut failed = None;
        for one in self.in_turn(id) {
            match one.article_with_id(id, take).await {
                Ok(true) => return Ok(true),
                Ok(false) => one.said_missing(id),
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(false), Err)
    }

    /// Asks one after the other for what has a message-id.  That it is nowhere is known only when all have said so.
    async fn any(
        &self,
        id: MessageId<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        let mut failed = None;
        for one in self.in_turn(id) {
            match one.article_of(ArticleQuery::ById(id), part, out).await {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => one.said_missing(id),
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(None), Err)
    }
}

impl<C: Connect> NewsService for RServer<C> {
    type NewnewsCursor = RemoteNewnews<C>;

    fn features(&self) -> Features {
        let newnews = |one: &One<C>| one.capabilities.lock().has("NEWNEWS");
        Features {
            reader: true,
            transit: false,
            // Of several each would say what the others do.
            newnews: self.ones.len() == 1 && self.ones.iter().all(newnews),
            over_by_id: self.ones.iter().any(One::has_over_by_id),
            posting: true,
        }
    }

    fn now(&self) -> UnixTime {
        UnixTime(self.common.clock.now().secs)
    }

    async fn group(&self, name: GroupName<'_>) -> Result<Option<GroupInfo>, ServiceError> {
        match self.numbering(name.as_str()) {
            Some(one) => one.group_of(name).await,
            None => Ok(None),
        }
    }

    async fn groups(
        &self,
        select: GroupSelect<'_>,
        cursor: &mut GroupCursor,
        limit: usize,
        visit: &mut (dyn FnMut(GroupRow<'_>) + Send),
    ) -> Result<(), ServiceError> {
        self.visit_groups(select, cursor, limit, visit).await
    }

    async fn active_list(&self, out: &mut Vec<Bytes>) -> Result<(), ServiceError> {
        let listing = self.listed(true).await?;
        out.extend(listing.active.iter().cloned());
        Ok(())
    }

    async fn numbers(
        &self,
        group: GroupId,
        low: ArticleNumber,
        high: ArticleNumber,
        limit: usize,
        out: &mut Vec<ArticleNumber>,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        match self.numbering_by_id(group) {
            Some(one) => one.numbers_in(group, (low, high), limit, out).await,
            None => Ok(None),
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
        let range = (low, high);
        match self.numbering_by_id(group) {
            Some(one) => one.overview_in(group, range, limit_bytes, rows).await,
            None => Ok(None),
        }
    }

    async fn overview_by_id(
        &self,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> Result<bool, ServiceError> {
        let (mut failed, had) = (None, rows.len());
        for one in self.in_turn(id).filter(|one| one.has_over_by_id()) {
            match one.overview_of(id, rows).await {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => {
                    rows.buffer().truncate(had);
                    failed = Some(error);
                }
            }
        }
        failed.map_or(Ok(false), Err)
    }

    async fn neighbour(
        &self,
        group: GroupId,
        number: ArticleNumber,
        direction: Direction,
        out: &mut ArticleBuf,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        match self.numbering_by_id(group) {
            Some(one) => one.neighbour_of(group, number, direction, out).await,
            None => Ok(None),
        }
    }

    async fn article(
        &self,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        match query {
            ArticleQuery::ById(id) => self.any(id, part, out).await,
            ArticleQuery::ByNumber(group, _) => match self.numbering_by_id(group) {
                Some(one) => one.article_of(query, part, out).await,
                None => Ok(None),
            },
        }
    }

    async fn newnews(
        &self,
        wildmat: &Wildmat,
        since: UnixTime,
        cursor: &mut Self::NewnewsCursor,
        limit_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        match self.ones.as_slice() {
            [one] => {
                one.newnews_of(wildmat, since, cursor, limit_bytes, out)
                    .await
            }
            _ => Err(NO_ANSWER),
        }
    }

    async fn offer(&self, _id: MessageId<'_>, _from: &Arc<Connection>) -> Offer {
        Offer::Later(Defer::Paused)
    }

    async fn transfer(&self, batch: &mut Vec<Transfer>, from: &Arc<Connection>) {
        from.complete(batch.drain(..).map(|transfer| Completion {
            ticket: transfer.ticket,
            outcome: Outcome::Deferred(Defer::Paused),
        }));
    }

    fn new_message_id(&self) -> OfferedId {
        self.common.ids.make(&self.common.settings.host)
    }

    async fn post(&self, post: Post, from: &Arc<Connection>) {
        let outcome = match self.judged(&post) {
            Ok((article, servers)) => self.posted(&article, &servers).await,
            Err(refused) => refused.into(),
        };
        let ticket = post.ticket;
        from.complete([Completion { ticket, outcome }]);
    }

    fn decline(&self, _id: MessageId<'_>, _from: &Connection) {}

    fn release(&self, _from: &Connection) {}
}
