//! Articles, whole or in part, as the server has them.
//!
//! What comes under an id or a number that was not asked for is not passed on.

use newsreel_net::client::{Client, ClientError, Connect};
use newsreel_service::{ArticleBuf, ArticleQuery, Found, Part, ServiceError};
use newsreel_wire::nntp::framing::TERMINATOR_LINE;
use newsreel_wire::{ArticleNumber, MessageId};
use tokio::io::{AsyncRead, AsyncWrite};

use super::ask::{asked, numbered};
use super::numbers::marks_of;
use super::one::One;

/// Takes articles as they come.
pub(crate) trait Take: Send {
    /// The next one that was asked for is there, under this message-id; none: it is not there.  One that had begun is never
    /// finished: it is asked for again.
    fn begins(&mut self, id: Option<&[u8]>);

    /// Octets of it, in wire form.
    fn piece(&mut self, octets: &[u8], is_last: bool);

    /// The next one that was asked for is not there, which is no word about other servers.
    fn passes(&mut self);
}

/// The command for a part, and the code of its answer.
const fn command_of(part: Part) -> (&'static str, u16) {
    match part {
        Part::Whole => ("ARTICLE", 220),
        Part::Head => ("HEAD", 221),
        Part::Body => ("BODY", 222),
        Part::Stat => ("STAT", 223),
    }
}

/// Asks for an article; false: it is not there.
async fn fetch<Io>(
    client: &mut Client<Io>,
    group: Option<&str>,
    which: &[u8],
    part: Part,
    octets_max: usize,
    out: &mut ArticleBuf,
) -> Result<Option<ArticleNumber>, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let (verb, _) = command_of(part);
    if let Some(group) = group {
        client.command(&[b"GROUP", group.as_bytes()])?;
    }
    client.command(&[verb.as_bytes(), which])?;
    if group.is_some() {
        marks_of(client).await?;
    }
    answered(client, part, octets_max, out).await
}

/// Takes the answer to a command for an article; none: it is not there.
async fn answered<Io>(
    client: &mut Client<Io>,
    part: Part,
    octets_max: usize,
    out: &mut ArticleBuf,
) -> Result<Option<ArticleNumber>, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let (verb, _) = command_of(part);
    out.clear();
    out.storage_mut().clear();
    let said = told(client, part, |id| out.set_id(id)).await?;
    if said.is_some() && part != Part::Stat {
        client.block(verb, octets_max, out.storage_mut()).await?;
    }
    Ok(said)
}

/// Takes the status line: the number, and the message-id; none: it is not there.
async fn told<Io>(
    client: &mut Client<Io>,
    part: Part,
    mut id_is: impl FnMut(&[u8]),
) -> Result<Option<ArticleNumber>, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let (verb, found) = command_of(part);
    match client.reply(verb).await? {
        code if code == found => {}
        411 | 412 | 420 | 423 | 430 => return Ok(None),
        code => return Err(client.refused(verb, code)),
    }
    let said = numbered(client.text(), b' ').and_then(|(number, rest)| {
        let id = rest.split(|octet| *octet == b' ').next()?;
        MessageId::parse(id).ok()?;
        id_is(id);
        Some(number)
    });
    said.map_or_else(|| Err(client.refused(verb, found)), |said| Ok(Some(said)))
}

/// Takes the answer to ARTICLE as it comes; whether it is there, under the number or the message-id that was asked for.
async fn taken<Io>(
    client: &mut Client<Io>,
    is_asked: impl Fn(ArticleNumber, &[u8]) -> bool,
    octets_max: usize,
    take: &mut impl Take,
) -> Result<bool, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    const VERB: &str = "ARTICLE";
    let mut id = Vec::new();
    let said = told(client, Part::Whole, |said| id.extend_from_slice(said)).await?;
    let Some(number) = said else {
        return Ok(false);
    };
    let is_asked = is_asked(number, &id);
    if is_asked {
        take.begins(Some(&id));
    }
    let mut octets = 0;
    loop {
        let piece = client.piece(VERB).await?;
        octets += piece.octets.len();
        if octets > octets_max {
            return Err(client.too_large(VERB, octets_max));
        }
        if is_asked {
            take.piece(piece.octets, piece.is_last);
        }
        if piece.is_last {
            return Ok(is_asked);
        }
    }
}

impl<C: Connect> One<C> {
    /// Asks for articles of a group in one round trip; they are taken one by one as they come.
    pub(super) async fn articles_in(
        &self,
        group: &str,
        numbers: &[ArticleNumber],
        take: &mut impl Take,
    ) -> Result<(), ServiceError> {
        let most = self.common.settings.article_octets_max;
        let mut rest = numbers;
        asked!(self, client => {
            client.command(&[b"GROUP", group.as_bytes()])?;
            for number in rest {
                let mut digits = itoa::Buffer::new();
                client.command(&[b"ARTICLE", digits.format(number.0).as_bytes()])?;
            }
            marks_of(&mut client).await?;
            while let Some((number, behind)) = rest.split_first() {
                if !taken(&mut client, |said, _| said == *number, most, take).await? {
                    take.begins(None);
                }
                rest = behind;
            }
            Ok(())
        });
        Ok(())
    }

    /// Asks for articles by their message-ids in one round trip; they are taken one by one as they come.
    pub(super) async fn articles_with_ids(
        &self,
        ids: &[MessageId<'_>],
        take: &mut impl Take,
    ) -> Result<(), ServiceError> {
        let most = self.common.settings.article_octets_max;
        let mut rest = ids;
        asked!(self, client => {
            for id in rest {
                client.command(&[b"ARTICLE", id.as_bytes()])?;
            }
            while let Some((id, behind)) = rest.split_first() {
                if !taken(&mut client, |_, said| said == id.as_bytes(), most, take).await? {
                    self.said_missing(*id);
                    take.passes();
                }
                rest = behind;
            }
            Ok(())
        });
        Ok(())
    }

    /// Asks for an article by its message-id, which is taken as it comes; false: it is not there.
    pub(super) async fn article_with_id(
        &self,
        id: MessageId<'_>,
        take: &mut impl Take,
    ) -> Result<bool, ServiceError> {
        let most = self.common.settings.article_octets_max;
        Ok(asked!(self, client => {
            client.command(&[b"ARTICLE", id.as_bytes()])?;
            taken(&mut client, |_, said| said == id.as_bytes(), most, take).await
        }))
    }

    pub(super) async fn article_of(
        &self,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        let mut digits = itoa::Buffer::new();
        let (group, which, asked_for) = match query {
            ArticleQuery::ById(id) => (None, id.as_bytes(), None),
            ArticleQuery::ByNumber(group, number) => {
                let Some(name) = self.common.names.lock().name(group) else {
                    return Ok(None);
                };
                let which = digits.format(number.0).as_bytes();
                (Some(name), which, Some(number))
            }
        };
        let most = self.common.settings.article_octets_max;
        let number = asked!(self, client => {
            fetch(&mut client, group.as_deref(), which, part, most, out).await
        });
        let is_other = |number: ArticleNumber| match asked_for {
            Some(asked_for) => number != asked_for,
            None => out.id() != which,
        };
        let Some(number) = number.filter(|number| !is_other(*number)) else {
            out.clear();
            return Ok(None);
        };
        let len = out.storage_mut().len();
        match part {
            Part::Stat => {}
            Part::Head => out.set_content(0..len.saturating_sub(TERMINATOR_LINE.len())),
            Part::Body | Part::Whole => out.set_content(0..len),
        }
        let number = if asked_for.is_some() {
            number
        } else {
            ArticleNumber(0)
        };
        Ok(Some(Found { number }))
    }
}
