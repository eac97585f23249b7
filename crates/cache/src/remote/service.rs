//! The service itself: each question is asked of the server it belongs to, posts go there, and nothing is taken from peers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use newsreel_net::client::Connect;
use newsreel_service::posting::{self, Post, Refused};
use newsreel_service::{
    Arriving, ArticleBuf, ArticleQuery, Completion, Connection, Defer, Direction, Features, Found,
    GroupCursor, GroupInfo, GroupRow, GroupSelect, NewsService, Offer, OfferedId, Outcome,
    OverviewRows, Part, Reject, ServiceError, Texts, Transfer,
};
use newsreel_wire::article::{HeaderLimits, Known};
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupId, GroupName, MessageId, UnixTime};

use super::article::Take;
use super::ask::{NO_ANSWER, all_of};
use super::numbers::{TakeLines, WholeList};
use super::one::{Delivery, One, Sending};
use super::{RServer, RemoteNewnews};

/// What servers say of posts that they refuse.
static SAID: Texts = Texts::new();

const NOWHERE: &str = "No server takes posts to these groups";

/// A post that is for no server.
const GOES_NOWHERE: Outcome = Outcome::RejectedWith(Reject::RefusedElsewhere, NOWHERE);

/// A post that may be sent on.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    /// In wire form, with its message-id.
    pub(crate) article: Bytes,
    pub(crate) id: Vec<u8>,
    pub(crate) groups: Vec<String>,
    /// Whether its author says when it was written.
    pub(crate) has_date: bool,
}

impl Delivery {
    /// Whether the server is to be asked again.
    pub(crate) const fn waits(&self) -> bool {
        matches!(self, Self::Unreached(_) | Self::Away(_) | Self::Unsure(_))
    }

    /// What its poster is told.
    fn outcome(&self) -> Outcome {
        let why = Reject::RefusedElsewhere;
        match self {
            Self::Taken => Outcome::Accepted,
            Self::Had(_) => Outcome::Duplicate,
            Self::Refused(said) | Self::Barred(said) => {
                let said = said.strip_prefix("441 ").unwrap_or(said);
                SAID.kept(&format!("{}: {said}", why.text()))
                    .map_or(Outcome::Rejected(why), |text| {
                        Outcome::RejectedWith(why, text)
                    })
            }
            Self::Unreached(_) | Self::Away(_) => Outcome::Deferred(Defer::Paused),
            Self::Unsure(_) => Outcome::Failed,
        }
    }
}

/// What became of a post at the servers that it is for.
#[derive(Debug)]
pub(crate) struct Posted {
    /// Each of them by its name.
    pub(crate) at: Vec<(String, Delivery)>,
}

impl Posted {
    fn is_taken(&self) -> bool {
        self.at.iter().any(|(_, it)| *it == Delivery::Taken)
    }

    /// Those that do not have it.
    fn lacking(&self) -> impl Iterator<Item = &(String, Delivery)> {
        let has = |it: &Delivery| matches!(it, Delivery::Taken | Delivery::Had(_));
        self.at.iter().filter(move |(_, it)| !has(it))
    }

    /// Whether its poster is told that it was taken, and a server does not have it.
    pub(crate) fn is_half_taken(&self) -> bool {
        self.is_taken() && self.lacking().next().is_some()
    }

    /// Whether a server is to be asked again.
    pub(crate) fn any_waits(&self) -> bool {
        self.at.iter().any(|(_, it)| it.waits())
    }

    /// What its poster is told: that it was taken where a server took it, else what the last one said.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.at.last() {
            Some(_) if self.is_taken() => Outcome::Accepted,
            Some((_, delivery)) => delivery.outcome(),
            None => GOES_NOWHERE,
        }
    }

    /// Where it was taken, says which servers never get it, as nothing of it is kept.
    pub(crate) fn log_lost(&self, judged: &Judged, why: &str) {
        if !self.is_taken() {
            return;
        }
        let id = String::from_utf8_lossy(&judged.id);
        for (upstream, what) in self.lacking() {
            tracing::warn!(target: "newsreel::cache", %id, upstream, %what, why,
                "a post that another server took does not reach this one: it is not kept");
        }
    }
}

impl<C: Connect> RServer<C> {
    /// A post that its poster may send, as it is sent on.  The servers see all posts as ours, so who may do what is decided
    /// here.
    pub(crate) fn judged(&self, post: &Post) -> Result<Judged, Refused> {
        let (settings, now) = (&self.common.settings.posting, self.now());
        let proto = posting::check(&post.article, HeaderLimits::USUAL, settings, now)?;
        if proto.is_approved() && !post.poster.may_approve {
            return Err(Reject::NoApproval.into());
        }
        let mut groups = proto.groups();
        if !groups.all(|group| post.poster.may_post_to(group.as_str())) {
            return Err(Reject::NotAllowed.into());
        }
        let id = proto
            .message_id
            .map_or_else(|| post.id.as_bytes().to_vec(), |id| id.as_bytes().to_vec());
        let has_date = proto.headers.present().contains(Known::Date);
        let article = match proto.message_id {
            Some(_) => post.article.clone(),
            None => [b"Message-ID: ", &*id, b"\r\n", &post.article]
                .concat()
                .into(),
        };
        Ok(Judged {
            article,
            id,
            groups: proto
                .groups()
                .map(|group| group.as_str().to_owned())
                .collect(),
            has_date,
        })
    }

    /// The servers that a post to these groups is for, by their names.
    pub(crate) fn post_targets(&self, groups: &[String]) -> Vec<String> {
        let targets = self.routes.post_targets(groups.iter().map(String::as_str));
        let names = targets.into_iter().filter_map(|at| self.routes.name(at));
        names.map(str::to_owned).collect()
    }

    /// Sends a post on to one that it is for, or to another that may take it in its place.
    pub(crate) async fn delivered(
        &self,
        post: &Judged,
        target: &str,
        sending: Sending,
    ) -> Delivery {
        let groups = post.groups.iter().map(String::as_str);
        let mut last = Delivery::Refused(NOWHERE.to_owned());
        let Ok(id) = MessageId::parse(&post.id) else {
            return last;
        };
        for one in self.routes.by_way_of(target, groups) {
            let Some(one) = self.ones.get(one) else {
                continue;
            };
            match one.delivered(&post.article, id, sending).await {
                Delivery::Barred(said) if matches!(last, Delivery::Refused(_)) => {
                    last = Delivery::Refused(said);
                }
                Delivery::Barred(_) => {}
                // One that was asked is tried again later than one that was not there.
                Delivery::Unreached(_) if matches!(last, Delivery::Away(_)) => {}
                away @ (Delivery::Unreached(_) | Delivery::Away(_)) => last = away,
                settled => return settled,
            }
        }
        last
    }

    /// Sends a post on to all that it is for.
    pub(crate) async fn posted_to_all(&self, post: &Judged) -> Posted {
        let mut posted = Posted { at: Vec::new() };
        for target in self.post_targets(&post.groups) {
            let sending = Sending {
                may_be_there: posted.is_taken(),
                by_hand: None,
            };
            let delivery = self.delivered(post, &target, sending).await;
            posted.at.push((target, delivery));
        }
        posted
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

    /// Asks one server for articles by their message-ids in one round trip; they are taken one by one as they come.
    pub(crate) async fn articles_from(
        &self,
        at: usize,
        ids: &[MessageId<'_>],
        take: &mut impl Take,
    ) -> Result<(), ServiceError> {
        match self.ones.get(at) {
            Some(one) => one.articles_with_ids(ids, take).await,
            None => Err(NO_ANSWER),
        }
    }

    /// Whether a server said not long ago that it does not have one of these.
    pub(crate) fn lacks_any(&self, at: usize, ids: &[MessageId<'_>]) -> bool {
        let one = self.ones.get(at);
        one.is_none_or(|one| ids.iter().any(|id| one.lacks(*id)))
    }

    /// What the servers can do; `unknown`: whether one that never said what it can do can do it.
    fn features_where(&self, unknown: bool) -> Features {
        let may = |one: &One<C>| unknown && !one.is_known();
        let newnews = |one: &One<C>| one.has(|said| said.has("NEWNEWS")) || may(one);
        let over_by_id = |one: &One<C>| one.has_over_by_id() || may(one);
        Features {
            reader: true,
            transit: false,
            // Of several each would say what the others do.
            newnews: self.ones.len() == 1 && self.ones.iter().all(newnews),
            over_by_id: self.ones.iter().any(over_by_id),
            posting: self.routes.take_posts(),
        }
    }

    /// Whether what no server tells an overview line of by its message-id is nowhere.
    pub(crate) fn all_have_over_by_id(&self) -> bool {
        self.ones.iter().all(One::has_over_by_id)
    }

    /// Asks for overview lines of ranges of a group in one round trip; they are taken range by range as they come, of each no more
    /// than so many octets and a line.
    pub(crate) async fn lines_in(
        &self,
        group: &str,
        ranges: &[(ArticleNumber, ArticleNumber)],
        octets_max: usize,
        take: &mut impl TakeLines,
    ) -> Result<(), ServiceError> {
        match self.numbering(group) {
            Some(one) => one.lines_in(group, ranges, octets_max, take).await,
            None => Ok(()),
        }
    }

    /// A group, for who waits no longer in silence than this.
    pub(crate) async fn group_within(
        &self,
        name: GroupName<'_>,
        patience: Option<Duration>,
    ) -> Result<Option<GroupInfo>, ServiceError> {
        match self.numbering(name.as_str()) {
            Some(one) => one.group_of(name, patience).await,
            None => Ok(None),
        }
    }

    /// The numbers of a range of a group that are there, and when they were told.  `whole` is what is known of it from a server that lists no
    /// part of a group, and is that afterwards.
    pub(crate) async fn numbers_listed(
        &self,
        group: &str,
        range: (ArticleNumber, ArticleNumber),
        (whole, patience): (&mut Option<Arc<WholeList>>, Option<Duration>),
    ) -> Result<(Vec<ArticleNumber>, UnixTime), ServiceError> {
        match self.numbering(group) {
            Some(one) => one.listed_of(group, range, (whole, patience)).await,
            None => Ok((Vec::new(), self.now())),
        }
    }

    /// The number next to one that is there in a group, in a direction; none: there is none.
    pub(crate) async fn nearest(
        &self,
        group: &str,
        number: ArticleNumber,
        direction: Direction,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        match self.numbering(group) {
            Some(one) => one.nearest_in(group, number, direction).await,
            None => Ok(None),
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
        self.features_where(false)
    }

    async fn learn_features(&self) -> Features {
        let known = self.features();
        // Of several no other can add anything.
        if self.has_others() && known.over_by_id {
            return known;
        }
        let unknown = self.ones.iter().filter(|one| !one.is_known());
        all_of(unknown.map(One::greet)).await;
        // One that cannot be asked is not said to lack anything: whoever wants it is told that it cannot be asked.
        self.features_where(true)
    }

    fn has_site_list(&self, keyword: &str) -> bool {
        self.keeps_site_list(keyword)
    }

    async fn site_list(&self, keyword: &'static str) -> Result<Option<Bytes>, ServiceError> {
        self.site_lists.of(self, keyword).await
    }

    fn now(&self) -> UnixTime {
        UnixTime(self.common.clock.now().secs)
    }

    async fn group(&self, name: GroupName<'_>) -> Result<Option<GroupInfo>, ServiceError> {
        self.group_within(name, None).await
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

    async fn active_list(
        &self,
        out: &mut Vec<Bytes>,
    ) -> Result<Option<Arc<Arriving>>, ServiceError> {
        self.new_list(out).await?;
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

    async fn article_here(
        &self,
        _id: MessageId<'_>,
        _part: Part,
        _out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        Ok(None)
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
            Ok(judged) => {
                let posted = self.posted_to_all(&judged).await;
                posted.log_lost(&judged, "posts do not wait here");
                posted.outcome()
            }
            Err(refused) => refused.into(),
        };
        let ticket = post.ticket;
        from.complete([Completion { ticket, outcome }]);
    }

    fn forwards(&self, verb: &[u8]) -> bool {
        self.forwarded(verb).is_some()
    }

    async fn forward(
        &self,
        words: &[&[u8]],
        group: Option<GroupName<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        self.forward_to_one(words, group, out).await
    }

    fn decline(&self, _id: MessageId<'_>, _from: &Connection) {}

    fn release(&self, _from: &Connection) {}
}
