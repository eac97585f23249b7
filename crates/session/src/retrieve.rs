//! ARTICLE, HEAD, BODY, STAT in their three forms, and NEXT and LAST.
//!
//! An article is read into the connection's own buffer, checked there by the service, and only then is its first
//! octet sent; one that is still coming from elsewhere is sent on as it comes, and where its end does not come the connection
//! ends in its place, so that it is never taken for whole.  By message-id the number is 0 and nothing is selected (RFC 3977 section 6.2.1).

use std::sync::Arc;

use newsreel_net::access::Grant;
use newsreel_service::{
    Arriving, ArticleBuf, ArticleQuery, Direction, Found, NewsService, OverviewRows, Part,
    ServiceError,
};
use newsreel_wire::range::parse_number;
use newsreel_wire::{ArticleNumber, MessageId};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::{Core, scratch_of};
use crate::end::End;
use crate::memory::{Account, Hold, NoRoom};

/// Which article an argument names.
enum Target<'a> {
    Id(MessageId<'a>),
    Number(ArticleNumber),
    Current,
}

impl<'a> Target<'a> {
    fn parse(argument: Option<&'a [u8]>) -> Result<Self, &'static str> {
        match argument {
            None => Ok(Self::Current),
            Some(id @ [b'<', ..]) => MessageId::parse(id)
                .map(Self::Id)
                .map_err(|_| "501 Malformed message-id\r\n"),
            Some(number) => parse_number(number)
                .map(Self::Number)
                .map_err(|_| "501 Neither a message-id nor a number\r\n"),
        }
    }
}

/// What whoever asks may be shown by message-id.
#[derive(Clone, Copy)]
enum Shown {
    Everything,
    /// To a peer that feeds and may read nothing: what it asks for is nobody else's, and the articles of other servers, which are had with our
    /// account, are not for it.
    WhatIsHere,
    /// What is in a group that may be read.
    WhatIsRead,
}

impl Shown {
    fn to(grant: &Grant) -> Self {
        match grant {
            grant if grant.reads_all() => Self::Everything,
            grant if grant.feed && grant.read.is_none() => Self::WhatIsHere,
            _ => Self::WhatIsRead,
        }
    }
}

/// Asks for an article, in the connection's own buffer, as far as it may be shown.  One that may not is like one that is not here.
pub(crate) async fn article_shown<S, Io>(
    core: &mut Core<S, Io>,
    query: ArticleQuery<'_>,
    part: Part,
) -> Result<Option<Found>, ServiceError>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let article = &mut scratch_of(&mut core.scratch).article;
    // In boxes but for the first: few ask so, and every connection would have room for it.
    match (Shown::to(&core.grant), query) {
        (Shown::Everything, query) => core.service.article(query, part, article).await,
        (Shown::WhatIsHere, ArticleQuery::ById(id)) => {
            Box::pin(core.service.article_here(id, part, article)).await
        }
        (_, query) => {
            let grant = Arc::clone(&core.grant);
            let reads = |group: &str| grant.reads(group);
            Box::pin(core.service.article_for(&reads, query, part, article)).await
        }
    }
}

/// The same of the overview line of an article by its message-id.
pub(crate) async fn overview_shown<S, Io>(
    core: &mut Core<S, Io>,
    id: MessageId<'_>,
    rows: &mut OverviewRows,
) -> Result<bool, ServiceError>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    match Shown::to(&core.grant) {
        Shown::Everything => {}
        Shown::WhatIsHere => {
            let article = &mut scratch_of(&mut core.scratch).article;
            let is_here = Box::pin(core.service.article_here(id, Part::Stat, article)).await?;
            if is_here.is_none() {
                return Ok(false);
            }
        }
        Shown::WhatIsRead => {
            let grant = Arc::clone(&core.grant);
            let reads = |group: &str| grant.reads(group);
            return Box::pin(core.service.overview_for(&reads, id, rows)).await;
        }
    }
    core.service.overview_by_id(id, rows).await
}

/// Says that an article cannot be had now.  Of one that is elsewhere with 400, and the connection ends: some readers take any
/// other answer for "gone", and mark the article as read (slrnpull does at 403).
fn failed<S, Io>(core: &mut Core<S, Io>, error: &ServiceError)
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if matches!(error, ServiceError::Away | ServiceError::Offline) {
        core.reply_parts(&[b"400 ", error.to_string().as_bytes()]);
        core.ending = Some(End::Away);
    } else {
        core.reply_error(error);
    }
}

const fn status_of(part: Part) -> &'static [u8] {
    match part {
        Part::Whole => b"220 ",
        Part::Head => b"221 ",
        Part::Body => b"222 ",
        Part::Stat => b"223 ",
    }
}

/// What is asked for, and what is said if it is not there; `None`: it cannot be asked for, and that was replied.
fn query_of<'a, S, Io>(
    core: &mut Core<S, Io>,
    argument: Option<&'a [u8]>,
) -> Option<(ArticleQuery<'a>, &'static str)>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let target = match Target::parse(argument) {
        Ok(Target::Id(id)) => return Some((ArticleQuery::ById(id), "430 No such article\r\n")),
        Ok(target) => target,
        Err(line) => {
            core.reply(line);
            return None;
        }
    };
    let selected = core.selected_or_412()?;
    let (number, absent) = match target {
        Target::Number(number) => (Some(number), "423 No article with that number\r\n"),
        _ => (selected.current, "420 Current article is gone\r\n"),
    };
    let Some(number) = number else {
        core.reply("420 No current article\r\n");
        return None;
    };
    Some((ArticleQuery::ByNumber(selected.id, number), absent))
}

/// Answers with `part` of the article that the argument names.
pub(crate) async fn retrieve<S, Io>(
    core: &mut Core<S, Io>,
    argument: Option<&[u8]>,
    part: Part,
) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Some((query, absent)) = query_of(core, argument) else {
        return Ok(());
    };
    let moves_to = match query {
        ArticleQuery::ById(_) => None,
        ArticleQuery::ByNumber(_, number) => Some(number),
    };
    scratch_of(&mut core.scratch).article.take_portions(true);
    let asked = article_shown(core, query, part).await;
    let found = match asked {
        Ok(Some(found)) => found,
        Ok(None) => {
            match query {
                ArticleQuery::ById(_) => core.reply(absent),
                ArticleQuery::ByNumber(..) => core.reply_nothing(absent).await,
            }
            return Ok(());
        }
        Err(error) => {
            failed(core, &error);
            return Ok(());
        }
    };
    let scratch = scratch_of(&mut core.scratch);
    let octets = scratch.article.content().len();
    let is_large = octets > core.shared.config.input_chunk_bytes;
    // What a large article takes of the budget until it is sent.
    let Ok(hold) = is_large.then(|| core.memory.hold(octets)).transpose() else {
        scratch.article = ArticleBuf::new();
        core.reply("403 Too many large articles at once; try again later\r\n");
        return Ok(());
    };
    if let (Some(selected), Some(number)) = (&mut core.selected, moves_to) {
        selected.current = Some(number);
    }
    status(core, status_of(part), found.number);
    match part {
        Part::Stat => {}
        Part::Head => core.send_article(b".\r\n").await?,
        Part::Body | Part::Whole if scratch_of(&mut core.scratch).article.has_more() => {
            // In a box: few articles are still coming, and every connection has room for what is not.
            Box::pin(send_coming(core)).await?;
        }
        Part::Body | Part::Whole => core.send_article(b"").await?,
    }
    if hold.is_some() {
        scratch_of(&mut core.scratch).article = ArticleBuf::new();
    }
    Ok(())
}

/// Sends an article on as it comes.  What has come of it is held for its slowest reader, so it takes of the budget of each as
/// one would that was there; where no room is left the connection ends, as nothing can be said in the middle of a reply.
async fn send_coming<S, Io>(core: &mut Core<S, Io>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let least = core.shared.config.input_chunk_bytes;
    let (memory, mut hold) = (core.memory.clone(), None);
    loop {
        let coming = scratch_of(&mut core.scratch).article.coming().cloned();
        let Some(coming) = coming else {
            return core.send_article(b"").await;
        };
        let sending = async {
            core.send_article(b"").await?;
            core.flush().await
        };
        tokio::select! {
            biased;
            full = holding(&memory, &mut hold, &coming, least) => return Err(full),
            sent = sending => sent?,
        }
        let more = scratch_of(&mut core.scratch).article.more().await;
        more.map_err(|_| End::CutShort)?;
    }
}

/// Holds so much of the budget as an article takes that grows, where that is more than `least`; ready when there is no more.
async fn holding(
    memory: &Account,
    hold: &mut Option<Hold>,
    coming: &Arriving,
    least: usize,
) -> End {
    let mut held = hold.as_ref().map_or(least, Hold::octets);
    loop {
        held = coming.grown(held).await;
        let holds = match hold {
            Some(hold) => hold.grow_to(held),
            None => memory.hold(held).map(|first| *hold = Some(first)),
        };
        if let Err(NoRoom) = holds {
            return End::WriteStalled;
        }
    }
}

/// `code number message-id`, the id from the article buffer.
fn status<S, Io>(core: &mut Core<S, Io>, code: &'static [u8], number: ArticleNumber)
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let scratch = scratch_of(&mut core.scratch);
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number.0).as_bytes();
    let id = scratch.article.id();
    for piece in [code, digits, b" ", id, b"\r\n"] {
        scratch.out.extend_from_slice(piece);
    }
    core.count_reply(code);
}

/// Moves the current article.
pub(crate) async fn step<S, Io>(core: &mut Core<S, Io>, direction: Direction) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Some(selected) = core.selected_or_412() else {
        return Ok(());
    };
    let Some(current) = selected.current else {
        core.reply("420 No current article\r\n");
        return Ok(());
    };
    let article = &mut scratch_of(&mut core.scratch).article;
    match core
        .service
        .neighbour(selected.id, current, direction, article)
        .await
    {
        Ok(Some(number)) => {
            if let Some(selected) = &mut core.selected {
                selected.current = Some(number);
            }
            status(core, b"223 ", number);
        }
        Ok(None) => {
            let nothing = match direction {
                Direction::Next => "421 No next article\r\n",
                Direction::Last => "422 No previous article\r\n",
            };
            core.reply_nothing(nothing).await;
        }
        Err(error) => core.reply_error(&error),
    }
    Ok(())
}
