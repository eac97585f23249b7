//! What readers are shown of what there is: all but what the rules of the configuration hide.
//!
//! Without rules nothing here costs anything.  An article is judged by its header block, which is had for it where only the body was
//! asked for; STAT and lists of numbers tell that it is there, as nobody can have read it.

use newsreel_net::client::Connect;
use newsreel_service::{ArticleBuf, ArticleQuery, Found, OverviewRows, Part, Reads, ServiceError};
use newsreel_wire::{ArticleNumber, GroupId, MessageId};

use super::CServer;
use super::article::Ask;
use super::numbers::Numbers;
use crate::censor::Censor;
use crate::keep::Kept;

impl<C: Connect> CServer<C> {
    /// An article, if it is shown.
    pub(super) async fn article_shown(
        &self,
        query: ArticleQuery<'_>,
        ask: Ask<'_>,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        let part = ask.part();
        let found = self.article_of(query, ask, out).await?;
        if let Some(censor) = self.inner.censor.get()
            && found.is_some()
            && part != Part::Stat
        {
            // Boxed: a session that waits is no larger for what few ask for.
            let hiding = Box::pin(self.is_hidden(censor, query, (ask, out.content())));
            if hiding.await? {
                out.clear();
                return Ok(None);
            }
        }
        Ok(found)
    }

    /// Whether an article is hidden of which a part was found.
    async fn is_hidden(
        &self,
        censor: &Censor,
        query: ArticleQuery<'_>,
        (ask, content): (Ask<'_>, &[u8]),
    ) -> Result<bool, ServiceError> {
        let name = match query {
            ArticleQuery::ByNumber(group, _) => self.inner.there.group_name(group),
            ArticleQuery::ById(_) => None,
        };
        let part = ask.part();
        if part == Part::Whole && Kept::head_len_of(content).is_some() {
            return Ok(censor.hides_article(content, name.as_deref()));
        }
        let mut head = ArticleBuf::new();
        let block = match part {
            Part::Head => content,
            Part::Stat | Part::Body | Part::Whole => {
                let looking = self.article_of(query, ask.unseen_head(), &mut head);
                if looking.await?.is_none() {
                    return Ok(true);
                }
                head.content()
            }
        };
        let block = [block, b"\r\n"].concat();
        Ok(censor.hides_article(&block, name.as_deref()))
    }

    /// Overview lines of a range, but for those of what is hidden.
    pub(super) async fn overview_shown(
        &self,
        group: GroupId,
        range: Numbers,
        limit_bytes: usize,
        rows: &mut OverviewRows,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        let inner = &self.inner;
        let Some((censor, name)) = inner.censor.get().zip(inner.there.group_name(group)) else {
            return inner.overview_in(group, range, limit_bytes, rows).await;
        };
        let mut all = OverviewRows::default();
        let asking = Box::pin(inner.overview_in(group, range, limit_bytes, &mut all));
        let next = asking.await?;
        copy_shown(&all, rows, |line| censor.hides_line(line, &name));
        Ok(next)
    }

    /// The overview line of an article by its message-id, if it is shown.
    pub(super) async fn overview_by_id_shown(
        &self,
        reads: Option<Reads<'_>>,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> Result<bool, ServiceError> {
        if self.inner.censor.get().is_some() {
            let mut head = ArticleBuf::new();
            let query = ArticleQuery::ById(id);
            let asking = Ask::unseen(Part::Head, reads);
            let looking = Box::pin(self.article_shown(query, asking, &mut head));
            if looking.await?.is_none() {
                return Ok(false);
            }
        }
        self.overview_of(reads, id, rows).await
    }
}

/// Copies the lines that are not hidden; the number in front is not part of what is judged.
fn copy_shown(from: &OverviewRows, to: &mut OverviewRows, is_hidden: impl Fn(&[u8]) -> bool) {
    for line in from.text().split_inclusive(|octet| *octet == b'\n') {
        let fields = line.split(|octet| *octet == b'\t').next();
        let behind = fields.map_or(0, |number| number.len() + 1);
        let judged = line.get(behind..).unwrap_or_default();
        if !is_hidden(judged.strip_suffix(b"\r\n").unwrap_or(judged)) {
            to.buffer().extend_from_slice(line);
        }
    }
}
