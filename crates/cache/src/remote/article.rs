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
    let (verb, found) = command_of(part);
    out.clear();
    out.storage_mut().clear();
    match client.reply(verb).await? {
        code if code == found => {}
        411 | 412 | 420 | 423 | 430 => return Ok(None),
        code => return Err(client.refused(verb, code)),
    }
    let said = numbered(client.text(), b' ').and_then(|(number, rest)| {
        let id = rest.split(|octet| *octet == b' ').next()?;
        MessageId::parse(id).ok()?;
        out.set_id(id);
        Some(number)
    });
    let Some(number) = said else {
        return Err(client.refused(verb, found));
    };
    if part != Part::Stat {
        client.block(verb, octets_max, out.storage_mut()).await?;
    }
    Ok(Some(number))
}

impl<C: Connect> One<C> {
    /// Asks for articles of a group in one round trip; `each` is told of them one by one as they come, with the message-id and
    /// the whole article; none: it is not there.
    pub(super) async fn articles_in(
        &self,
        group: &str,
        numbers: &[ArticleNumber],
        mut each: impl FnMut(Option<(&[u8], &[u8])>) + Send,
    ) -> Result<(), ServiceError> {
        let most = self.common.settings.article_octets_max;
        let (mut rest, mut out) = (numbers, ArticleBuf::new());
        asked!(self, client => {
            client.command(&[b"GROUP", group.as_bytes()])?;
            for number in rest {
                let mut digits = itoa::Buffer::new();
                client.command(&[b"ARTICLE", digits.format(number.0).as_bytes()])?;
            }
            marks_of(&mut client).await?;
            while let Some((number, behind)) = rest.split_first() {
                let said = answered(&mut client, Part::Whole, most, &mut out).await?;
                let wire = std::mem::take(out.storage_mut());
                each(said.filter(|said| said == number).map(|_| (out.id(), &*wire)));
                *out.storage_mut() = wire;
                rest = behind;
            }
            Ok(())
        });
        Ok(())
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
