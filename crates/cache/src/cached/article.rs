//! Articles: from memory, from the cache's files, or fetched.
//!
//! By number the message-id is found first, so that an article is kept once whatever it was asked for by, and one that the
//! server has cancelled is not shown.  One that is still coming is shown as it comes.  What may be shown to who may not read all groups
//! is decided by the header block of what is shown: a server's word about an article that another one has opens nothing.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use newsreel_net::client::Connect;
use newsreel_service::{
    ArticleBuf, ArticleQuery, Found, NewsService as _, OverviewRows, Part, Reads, ServiceError,
    says_in,
};
use newsreel_wire::article::Headers;
use newsreel_wire::overview::message_id;
use newsreel_wire::{ArticleNumber, GroupId, IdHash, MessageId};
use tokio::time::Instant;

use super::arrivals::{Coming, is_in};
use super::flights::{Flight, Landed, Wanted};
use super::line::line_of;
use super::numbers::{Blocks, Need, Numbers, lines};
use super::{CServer, Noted};
use crate::keep::{Fetched, Kept, place_of};

/// So often is asked again for what others gave up.
const TRIES: usize = 3;

/// Puts a part of an article where it belongs.
fn answer(id: &[u8], kept: &Kept, part: Part, out: &mut ArticleBuf) {
    let (wire, head) = (&kept.wire[..], kept.head_len);
    let octets = match part {
        Part::Stat => None,
        Part::Head => wire.get(..head),
        Part::Body => wire.get(head + 2..),
        Part::Whole => Some(wire),
    };
    out.clear();
    out.copy_content(octets.unwrap_or_default());
    out.set_id(id);
}

/// What is asked for.
#[derive(Clone, Copy)]
pub(super) struct Ask<'r> {
    part: Part,
    /// Whether a reader asks, whose question is counted and noted; else it is looked at here only.
    is_counted: bool,
    /// Which groups may be read; none: all.
    reads: Option<Reads<'r>>,
}

impl<'r> Ask<'r> {
    /// What a reader asks for.
    pub(super) const fn of_reader(part: Part, reads: Option<Reads<'r>>) -> Self {
        Self {
            part,
            is_counted: true,
            reads,
        }
    }

    /// What is looked at here.
    pub(super) const fn unseen(part: Part, reads: Option<Reads<'r>>) -> Self {
        Self {
            part,
            is_counted: false,
            reads,
        }
    }

    /// The header block of the same, looked at here.
    pub(super) const fn unseen_head(self) -> Self {
        Self::unseen(Part::Head, self.reads)
    }

    /// Whether an article of which the header block, and its end, has come says that it is in a group that may be read.
    fn shows(self, wire: &[u8]) -> bool {
        self.reads.is_none_or(|reads| {
            let headers = Headers::scan_stored(wire);
            headers.is_ok_and(|headers| says_in(&headers, reads))
        })
    }

    /// The same of what came of asking for it.
    fn shows_landed(self, landed: &Landed) -> bool {
        match landed {
            Landed::Found(fetched) => self.shows(&fetched.kept.wire),
            Landed::Coming(coming) => coming.arriving.seen(|octets| self.shows(octets)),
            Landed::Missing | Landed::Failed(_) | Landed::Told | Landed::Lost => true,
        }
    }

    pub(super) const fn part(self) -> Part {
        self.part
    }

    /// Whether the answer is counted: that something is there is none.
    fn counts(self) -> bool {
        self.is_counted && self.part != Part::Stat
    }
}

/// Where an answer came from, as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// From here: what was kept, or came for somebody else.
    Kept,
    There,
}

impl Source {
    fn is_kept(self) -> bool {
        self == Self::Kept
    }
}

/// The message-id that a number is known to have.
fn id_in(blocks: &Blocks, one: Numbers) -> Option<&[u8]> {
    let (_, line) = lines(blocks, one).next()?;
    message_id(line).filter(|id| MessageId::parse(id).is_ok())
}

/// Where an article of a group is.
enum Place {
    /// It is not there.
    Nowhere,
    /// It has this message-id.
    Named(Vec<u8>),
    /// The server has to be asked.
    There,
}

impl Place {
    /// Whether another message-id was said of it before.
    fn is_other(&self, id: &[u8]) -> bool {
        matches!(self, Self::Named(named) if **named != *id)
    }
}

impl<C: Connect> CServer<C> {
    pub(super) async fn article_of(
        &self,
        query: ArticleQuery<'_>,
        ask: Ask<'_>,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        let begun = Instant::now();
        let (source, number) = match query {
            ArticleQuery::ById(id) => (self.by_id(id, ask, out).await?, ArticleNumber(0)),
            ArticleQuery::ByNumber(group, number) => {
                (self.by_number(group, number, ask, out).await?, number)
            }
        };
        if let Some(source) = source.filter(|_| ask.counts()) {
            let octets = out.content().len();
            let policy = self.inner.keep.policy();
            let counts = &self.inner.counts;
            counts.article(policy, source.is_kept(), octets, begun);
        }
        Ok(source.map(|_| Found { number }))
    }

    /// Where an article comes from that is answered with now.
    fn source(&self, hash: Option<IdHash>, ask: Ask<'_>) -> Source {
        let hash = hash.filter(|_| ask.counts());
        match hash.is_some_and(|hash| self.inner.unread.is_first(&hash)) {
            true => Source::There,
            false => Source::Kept,
        }
    }

    /// Answers with an article that is kept, or that has all come.
    fn answer_all(
        &self,
        (id, hash, kept): (&[u8], IdHash, &Kept),
        ask: Ask<'_>,
        out: &mut ArticleBuf,
    ) -> Source {
        answer(id, kept, ask.part, out);
        let source = self.source(Some(hash), ask);
        if ask.counts() {
            let (noted, octets) = (Noted::of(id, kept), out.content().len() as u64);
            self.inner.noted(&noted, source.is_kept(), (1, octets));
        }
        source
    }

    /// An article that is kept.
    async fn kept(&self, hash: IdHash) -> Result<Option<Arc<Kept>>, ServiceError> {
        let now = self.inner.there.now();
        match self.inner.keep.article_in_memory(&hash, now) {
            Some(kept) => Ok(Some(kept)),
            None => {
                let reading = self.inner.on_disk(move |keep| keep.article(&hash, now));
                reading.await
            }
        }
    }

    async fn by_id(
        &self,
        id: MessageId<'_>,
        ask: Ask<'_>,
        out: &mut ArticleBuf,
    ) -> Result<Option<Source>, ServiceError> {
        let inner = &self.inner;
        let hash = inner.keep.id_hash(id);
        for _ in 0..TRIES {
            if let Some(kept) = self.kept(hash).await? {
                if !ask.shows(&kept.wire) {
                    // The same servers are asked, and answer or do not, as where it is not kept: nobody learns so what others read.
                    if !self.was_said_missing(&hash) {
                        self.is_there(id, ask, out).await?;
                        inner.said_missing.insert(hash, Instant::now());
                    }
                    return Ok(None);
                }
                let source = self.answer_all((id.as_bytes(), hash, &kept), ask, out);
                return Ok(Some(source));
            }
            if ask.part == Part::Stat {
                let is_there = self.is_there(id, ask, out).await?;
                return Ok(is_there.then_some(Source::There));
            }
            let begin = |flight| self.fetch_by_id(id, flight);
            let landing = inner.flights.landing(Wanted::Id(hash), begin);
            let landed = landing.wait().await;
            if !ask.shows_landed(landed) {
                inner.said_missing.insert(hash, Instant::now());
                return Ok(None);
            }
            if let ControlFlow::Break(source) = self.came(landed, ask, out).await? {
                return Ok(source);
            }
        }
        Err(super::Inner::<C>::given_up())
    }

    /// Whether it was said not long ago of an article that it is not there, to who may not read it: for as long as a server is not asked
    /// again for what it does not have.
    fn was_said_missing(&self, hash: &IdHash) -> bool {
        let refresh = self.inner.there.missing_refresh();
        let said = self.inner.said_missing.get(hash);
        said.is_some_and(|said| said.elapsed() < refresh)
    }

    /// Whether an article is at a server elsewhere, and is shown.
    async fn is_there(
        &self,
        id: MessageId<'_>,
        ask: Ask<'_>,
        out: &mut ArticleBuf,
    ) -> Result<bool, ServiceError> {
        let (query, there) = (ArticleQuery::ById(id), &self.inner.there);
        if ask.reads.is_none() {
            return Ok(there.article(query, Part::Stat, out).await?.is_some());
        }
        let found = there.article(query, Part::Head, out).await?;
        let is_shown = found.is_some() && ask.shows(&[out.content(), b"\r\n"].concat());
        out.clear();
        out.set_id(id.as_bytes());
        Ok(is_shown)
    }

    /// Answers with what came of asking for an article, unless that has to be done again.
    async fn came(
        &self,
        landed: &Landed,
        ask: Ask<'_>,
        out: &mut ArticleBuf,
    ) -> Result<ControlFlow<Option<Source>>, ServiceError> {
        match landed {
            Landed::Found(Fetched { id, hash, kept }) => {
                let source = self.answer_all((id, *hash, kept), ask, out);
                Ok(ControlFlow::Break(Some(source)))
            }
            Landed::Coming(coming) => {
                let source = self.source(self.inner.hash_of(&coming.id), ask);
                if !self.follow(coming, source, ask, out).await? {
                    return Ok(ControlFlow::Continue(()));
                }
                if ask.counts() && coming.asked(source.is_kept()) {
                    let all = |wire: &[u8]| {
                        let octets = wire.len() as u64;
                        let noted = Noted::of_wire(&coming.id, wire);
                        self.inner.noted(&noted, source.is_kept(), (1, octets));
                    };
                    coming.arriving.seen(all);
                }
                Ok(ControlFlow::Break(Some(source)))
            }
            Landed::Missing => Ok(ControlFlow::Break(None)),
            Landed::Failed(error) => Err(error.clone()),
            Landed::Told | Landed::Lost => Ok(ControlFlow::Continue(())),
        }
    }

    /// Answers with an article whose end is still to come; false: it will not come.
    async fn follow(
        &self,
        coming: &Coming,
        source: Source,
        ask: Ask<'_>,
        out: &mut ArticleBuf,
    ) -> Result<bool, ServiceError> {
        let Coming {
            id,
            head_len,
            arriving,
            ..
        } = coming;
        out.clear();
        let from = match ask.part {
            Part::Whole => 0,
            Part::Body => head_len + 2,
            Part::Stat | Part::Head => {
                let head = head_len * usize::from(ask.part == Part::Head);
                arriving.seen(|octets| out.copy_content(octets.get(..head).unwrap_or_default()));
                out.set_id(id);
                return Ok(true);
            }
        };
        if !out.takes_portions() {
            arriving.whole().await?;
            arriving.seen(|octets| out.copy_content(octets.get(from..).unwrap_or_default()));
        } else if arriving.has_failed() {
            return Ok(false);
        } else {
            out.set_rest(arriving, from);
        }
        if out.has_more() && ask.is_counted {
            let told = from + out.content().len();
            let policy = self.inner.keep.policy();
            let uncounted = coming.joined(source.is_kept(), told);
            let counts = &self.inner.counts;
            counts.came(policy, source.is_kept(), uncounted);
        }
        out.set_id(id);
        Ok(true)
    }

    async fn by_number(
        &self,
        group: GroupId,
        number: ArticleNumber,
        ask: Ask<'_>,
        out: &mut ArticleBuf,
    ) -> Result<Option<Source>, ServiceError> {
        let inner = &self.inner;
        for _ in 0..TRIES {
            let Some((name, facts)) = inner.group_by_id(group).await? else {
                return Ok(None);
            };
            if number < facts.low || number > facts.high {
                return Ok(None);
            }
            let one = (number, number);
            let known = inner.known((group, &name), &facts, (one, number), Need::Nothing);
            let blocks = known.await?.map_or_else(Vec::new, |known| known.blocks);
            let place = match (id_in(&blocks, one), blocks.first()) {
                (Some(id), _) => Place::Named(id.to_vec()),
                (None, Some((_, block)))
                    if (block.asked() & !block.there()) >> place_of(number).1 & 1 == 1 =>
                {
                    Place::Nowhere
                }
                _ => Place::There,
            };
            match &place {
                Place::Nowhere => return Ok(None),
                Place::Named(id) => {
                    if let Some(source) = self.answered(id, ask, out).await? {
                        return Ok(Some(source));
                    }
                }
                Place::There => {}
            }
            let begin = |flight: Flight| match self.came_meanwhile(&place, &name) {
                Some(landed) => flight.land(landed),
                None => {
                    let name = Arc::clone(&name);
                    self.fetch_by_number((group, name), &facts, (number, flight));
                }
            };
            let wanted = Wanted::Number(group, facts.generation, number);
            let landing = inner.flights.landing(wanted, begin);
            let landed = landing.wait().await;
            if let (Landed::Missing | Landed::Failed(_), Place::Named(id)) = (landed, &place)
                && inner.there.has_others()
                && let Ok(id) = MessageId::parse(id)
            {
                if matches!(landed, Landed::Missing) {
                    inner.there.said_missing(&name, id);
                }
                return self.by_id(id, ask, out).await;
            }
            let id = match landed {
                Landed::Found(fetched) => Some(&fetched.id),
                Landed::Coming(coming) => Some(&coming.id),
                Landed::Missing | Landed::Failed(_) | Landed::Told | Landed::Lost => None,
            };
            if id.is_some_and(|id| place.is_other(id)) {
                // The group is another one: nothing that is kept of it is right.
                inner.on_disk(move |keep| keep.remove_group(&name)).await?;
            } else if let ControlFlow::Break(source) = self.came(landed, ask, out).await? {
                return Ok(source);
            }
        }
        Err(super::Inner::<C>::given_up())
    }

    /// What another's flight brought between the look at what is kept and the beginning of one's own, if it says itself that it is in the group:
    /// then whoever reads that may have it.
    fn came_meanwhile(&self, place: &Place, group: &str) -> Option<Landed> {
        let Place::Named(id) = place else {
            return None;
        };
        let hash = self.inner.hash_of(id)?;
        let kept = self.inner.keep.article_at_hand(&hash)?;
        let id = id.as_slice().into();
        is_in(group, &kept.wire).then_some(Landed::Found(Fetched { id, hash, kept }))
    }

    /// Answers with an article whose message-id a group's numbers tell, if it is kept.  To who may not read all groups such a number
    /// is no word about what was fetched elsewhere, if there is another server: the article says itself where it is.
    async fn answered(
        &self,
        id: &[u8],
        ask: Ask<'_>,
        out: &mut ArticleBuf,
    ) -> Result<Option<Source>, ServiceError> {
        let Some(hash) = self.inner.hash_of(id) else {
            return Ok(None);
        };
        if ask.part == Part::Stat && !self.inner.shows_kept_only() {
            out.clear();
            out.copy_content(b"");
            out.set_id(id);
            return Ok(Some(Source::Kept));
        }
        let kept = self.kept(hash).await?;
        let is_from_there = !self.inner.there.has_others();
        let shown = kept.filter(|kept| is_from_there || ask.shows(&kept.wire));
        Ok(shown.map(|kept| self.answer_all((id, hash, &kept), ask, out)))
    }

    /// The overview line of an article by its message-id: from the article, where that is kept, or a server tells no such lines, or not
    /// all groups may be read.
    pub(super) async fn overview_of(
        &self,
        reads: Option<Reads<'_>>,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> Result<bool, ServiceError> {
        let there = &self.inner.there;
        if reads.is_none() {
            let kept = self.kept(self.inner.keep.id_hash(id)).await?;
            if let Some(line) = kept.and_then(|kept| line_of(id.as_bytes(), &kept)) {
                rows.push(ArticleNumber(0), &line);
                return Ok(true);
            }
            if there.overview_by_id(id, rows).await? {
                return Ok(true);
            }
            if there.all_have_over_by_id() {
                return Ok(false);
            }
        }
        let (ask, mut whole) = (Ask::unseen(Part::Whole, reads), ArticleBuf::new());
        if Box::pin(self.by_id(id, ask, &mut whole)).await?.is_none() {
            return Ok(false);
        }
        let kept = Kept::new(Bytes::copy_from_slice(whole.content()));
        let line = kept.and_then(|kept| line_of(id.as_bytes(), &kept));
        let line = line.ok_or_else(super::Inner::<C>::given_up)?;
        rows.push(ArticleNumber(0), &line);
        Ok(true)
    }
}
