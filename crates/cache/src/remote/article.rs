//! Articles, whole or in part, as the server has them.
//!
//! What comes under an id or a number that was not asked for is not passed on, and says nothing of what was: the server has failed.
//! So it is where it says that no group or article is selected: only 430, and 423 of a number, say that an article is not there.  Where
//! GROUP is refused nothing is taken of what is answered behind it by number: that is of the group that somebody else has selected.

use newsreel_net::LineLimit;
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

/// What is asked for: a number of a group, or a message-id.
#[derive(Debug, Clone, Copy)]
enum Which<'a> {
    Number(ArticleNumber),
    Id(&'a [u8]),
}

impl Which<'_> {
    const fn is_number(self) -> bool {
        matches!(self, Self::Number(_))
    }

    /// Whether it is this that a server answers with.
    fn is(self, number: ArticleNumber, id: &[u8]) -> bool {
        match self {
            Self::Number(asked_for) => number == asked_for,
            Self::Id(asked_for) => id == asked_for,
        }
    }
}

/// Sends the command for a part of an article.
fn ask<Io>(client: &mut Client<Io>, verb: &str, which: Which<'_>) -> Result<(), ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let mut digits = itoa::Buffer::new();
    let which = match which {
        Which::Number(number) => digits.format(number.0).as_bytes(),
        Which::Id(id) => id,
    };
    client.command(&[verb.as_bytes(), which])
}

/// Takes the answer to the command for a part of an article; false: it is not there.
async fn fetch<Io>(
    client: &mut Client<Io>,
    which: Which<'_>,
    part: Part,
    octets_max: usize,
    out: &mut ArticleBuf,
) -> Result<bool, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let (verb, _) = command_of(part);
    out.clear();
    out.storage_mut().clear();
    let is_there = told(client, which, part, |id| out.set_id(id)).await?;
    if is_there && part != Part::Stat {
        client.block(verb, octets_max, out.storage_mut()).await?;
    }
    Ok(is_there)
}

/// Takes the status line, with the message-id; false: it is not there.
async fn told<Io>(
    client: &mut Client<Io>,
    which: Which<'_>,
    part: Part,
    mut id_is: impl FnMut(&[u8]),
) -> Result<bool, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let (verb, found) = command_of(part);
    match client.reply(verb).await? {
        code if code == found => {}
        430 => return Ok(false),
        423 if which.is_number() => return Ok(false),
        code => return Err(client.refused(verb, code)),
    }
    let said = numbered(client.text(), b' ').and_then(|(number, rest)| {
        let id = rest.split(|octet| *octet == b' ').next()?;
        MessageId::parse(id).ok()?;
        which.is(number, id).then_some(id)
    });
    match said {
        Some(id) => id_is(id),
        None => return Err(client.refused(verb, found)),
    }
    Ok(true)
}

/// Takes the answer to ARTICLE as it comes; whether it is there.
async fn taken<Io>(
    client: &mut Client<Io>,
    which: Which<'_>,
    (octets_max, lines): (usize, &LineLimit),
    take: &mut impl Take,
) -> Result<bool, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    const VERB: &str = "ARTICLE";
    let mut under: Box<[u8]> = Box::default();
    let begins = |id: &[u8]| {
        take.begins(Some(id));
        under = id.into();
    };
    if !told(client, which, Part::Whole, begins).await? {
        return Ok(false);
    }
    let mut octets = 0;
    loop {
        let piece = client.piece(VERB).await?;
        octets += piece.octets.len();
        if octets > octets_max {
            if let Some(more) = lines.admit() {
                let id = String::from_utf8_lossy(&under);
                tracing::warn!(target: "newsreel::cache", %id, octets_max, more,
                    "an article is too large to be passed on, and is cut off: give articles.octets_max more, if it is wanted");
            }
            return Err(client.too_large(VERB, octets_max));
        }
        take.piece(piece.octets, piece.is_last);
        if piece.is_last {
            return Ok(true);
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
        let most = (self.common.settings.passed_on_octets_max, &self.lines);
        let mut rest = numbers;
        asked!(self, client => {
            client.command(&[b"GROUP", group.as_bytes()])?;
            for number in rest {
                ask(&mut client, "ARTICLE", Which::Number(*number))?;
            }
            self.select(&mut client, group).await?;
            while let Some((number, behind)) = rest.split_first() {
                if !taken(&mut client, Which::Number(*number), most, take).await? {
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
        let most = (self.common.settings.passed_on_octets_max, &self.lines);
        let mut rest = ids;
        asked!(self, client => {
            let group = self.group_for_ids();
            if let Some(group) = &group {
                client.command(&[b"GROUP", group.as_bytes()])?;
            }
            for id in rest {
                ask(&mut client, "ARTICLE", Which::Id(id.as_bytes()))?;
            }
            if group.is_some() {
                marks_of(&mut client).await?;
            }
            while let Some((id, behind)) = rest.split_first() {
                if !taken(&mut client, Which::Id(id.as_bytes()), most, take).await? {
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
        let most = (self.common.settings.passed_on_octets_max, &self.lines);
        Ok(asked!(self, client => {
            let (which, group) = (Which::Id(id.as_bytes()), self.group_for_ids());
            if let Some(group) = &group {
                client.command(&[b"GROUP", group.as_bytes()])?;
            }
            ask(&mut client, "ARTICLE", which)?;
            if group.is_some() {
                marks_of(&mut client).await?;
            }
            taken(&mut client, which, most, take).await
        }))
    }

    pub(super) async fn article_of(
        &self,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        let (group, which, number) = match query {
            ArticleQuery::ById(id) => (None, Which::Id(id.as_bytes()), ArticleNumber(0)),
            ArticleQuery::ByNumber(group, number) => {
                let Some(name) = self.common.names.lock().name(group) else {
                    return Ok(None);
                };
                (Some(name), Which::Number(number), number)
            }
        };
        let most = self.common.settings.passed_on_octets_max;
        let (verb, _) = command_of(part);
        let is_there = asked!(self, client => {
            let selected = group.clone().or_else(|| self.group_for_ids());
            if let Some(selected) = &selected {
                client.command(&[b"GROUP", selected.as_bytes()])?;
            }
            ask(&mut client, verb, which)?;
            if let Some(group) = &group {
                self.select(&mut client, group).await?;
            } else if selected.is_some() {
                marks_of(&mut client).await?;
            }
            fetch(&mut client, which, part, most, out).await
        });
        if !is_there {
            return Ok(None);
        }
        let len = out.storage_mut().len();
        match part {
            Part::Stat => {}
            Part::Head => out.set_content(0..len.saturating_sub(TERMINATOR_LINE.len())),
            Part::Body | Part::Whole => out.set_content(0..len),
        }
        Ok(Some(Found { number }))
    }
}
