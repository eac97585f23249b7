//! The service itself: each question is asked of the server, posts go to it, and nothing is taken from peers.

use std::sync::Arc;

use bytes::Bytes;
use newsreel_net::client::{ClientError, Connect};
use newsreel_service::posting::{self, Post, Refused};
use newsreel_service::{
    ArticleBuf, ArticleQuery, Completion, Connection, Defer, Direction, Features, Found,
    GroupCursor, GroupInfo, GroupRow, GroupSelect, NewsService, Offer, OfferedId, Outcome,
    OverviewRows, Part, Reject, ServiceError, Transfer,
};
use newsreel_wire::article::HeaderLimits;
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupId, GroupName, MessageId, UnixTime};

use super::{RServer, RemoteNewnews};

impl<C: Connect> RServer<C> {
    /// A post that its poster may send, with the message-id that the poster is told.  The server sees all posts as ours, so
    /// who may do what is decided here.
    fn judged(&self, post: &Post) -> Result<Bytes, Refused> {
        let (settings, now) = (&self.settings.posting, self.now());
        let proto = posting::check(&post.article, HeaderLimits::USUAL, settings, now)?;
        if proto.is_approved() && !post.poster.may_approve {
            return Err(Reject::NoApproval.into());
        }
        let mut groups = proto.groups();
        if !groups.all(|group| post.poster.may_post_to(group.as_str())) {
            return Err(Reject::NotAllowed.into());
        }
        if proto.message_id.is_some() {
            return Ok(post.article.clone());
        }
        let id = post.id.as_bytes();
        Ok([b"Message-ID: ", id, b"\r\n", &post.article]
            .concat()
            .into())
    }

    /// Sends a post on; what the server says of it.
    async fn posted(&self, article: &[u8]) -> Outcome {
        let Ok(mut client) = self.lend().await else {
            return Outcome::Deferred(Defer::Paused);
        };
        let posting = async {
            client.command(&[b"POST"])?;
            let mut code = client.reply("POST").await?;
            if code == 340 {
                client.article(article).await?;
                code = client.reply("POST").await?;
            }
            match code {
                240 => Ok(Outcome::Accepted),
                440 | 441 => Ok(Outcome::Rejected(Reject::RefusedElsewhere)),
                code => Err::<_, ClientError>(client.refused("POST", code)),
            }
        };
        match posting.await {
            Ok(outcome) => {
                client.give_back();
                outcome
            }
            Err(error) => {
                self.failed(&error);
                Outcome::Failed
            }
        }
    }
}

impl<C: Connect> NewsService for RServer<C> {
    type NewnewsCursor = RemoteNewnews<C>;

    fn features(&self) -> Features {
        let known = self.capabilities.lock();
        Features {
            reader: true,
            transit: false,
            newnews: known.has("NEWNEWS"),
            over_by_id: known.has_with("OVER", "MSGID"),
            posting: true,
        }
    }

    fn now(&self) -> UnixTime {
        UnixTime(self.clock.now().secs)
    }

    async fn group(&self, name: GroupName<'_>) -> Result<Option<GroupInfo>, ServiceError> {
        self.group_of(name).await
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
        self.numbers_in(group, (low, high), limit, out).await
    }

    async fn overview(
        &self,
        group: GroupId,
        low: ArticleNumber,
        high: ArticleNumber,
        limit_bytes: usize,
        rows: &mut OverviewRows,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        self.overview_in(group, (low, high), limit_bytes, rows)
            .await
    }

    async fn overview_by_id(
        &self,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> Result<bool, ServiceError> {
        self.overview_of(id, rows).await
    }

    async fn neighbour(
        &self,
        group: GroupId,
        number: ArticleNumber,
        direction: Direction,
        out: &mut ArticleBuf,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        self.neighbour_of(group, number, direction, out).await
    }

    async fn article(
        &self,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        self.article_of(query, part, out).await
    }

    async fn newnews(
        &self,
        wildmat: &Wildmat,
        since: UnixTime,
        cursor: &mut Self::NewnewsCursor,
        limit_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        self.newnews_of(wildmat, since, cursor, limit_bytes, out)
            .await
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
        self.ids.make(&self.settings.host)
    }

    async fn post(&self, post: Post, from: &Arc<Connection>) {
        let outcome = match self.judged(&post) {
            Ok(article) => self.posted(&article).await,
            Err(refused) => refused.into(),
        };
        let ticket = post.ticket;
        from.complete([Completion { ticket, outcome }]);
    }

    fn decline(&self, _id: MessageId<'_>, _from: &Connection) {}

    fn release(&self, _from: &Connection) {}
}
