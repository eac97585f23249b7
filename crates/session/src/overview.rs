//! OVER and XOVER: overview lines by range, of the current article, or by message-id.
//!
//! The service writes lines straight into the reply buffer, a chunk at a time; memory is bounded by the chunk,
//! whatever the range.

use memchr::memmem;
use newsreel_service::{NewsService, OverviewRows};
use newsreel_wire::{ArticleNumber, GroupId, MessageId, NumberRange};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::{Core, scratch_of};
use crate::end::End;
use crate::listing::Listing;
use crate::retrieve::overview_shown;

/// Which specification's replies a command gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// OVER, HDR.
    Rfc3977,
    /// XOVER, XHDR.
    Rfc2980,
}

impl Style {
    /// What is said when a range holds no article.
    pub(crate) const fn empty_range(self) -> &'static str {
        match self {
            Self::Rfc3977 => "423 No articles in that range\r\n",
            Self::Rfc2980 => "420 No articles in that range\r\n",
        }
    }
}

/// Which articles an argument names.
pub(crate) enum Range<'a> {
    Id(MessageId<'a>),
    /// In the selected group; a single current article is its own range.
    Numbers(GroupId, ArticleNumber, ArticleNumber),
}

/// Reads the argument of OVER and HDR, or answers why it cannot be used.
pub(crate) fn range_of<'a, S, Io>(
    core: &mut Core<S, Io>,
    argument: Option<&'a [u8]>,
) -> Option<Range<'a>>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if let Some(id @ [b'<', ..]) = argument {
        return match MessageId::parse(id) {
            Ok(id) => Some(Range::Id(id)),
            Err(_) => {
                core.reply("501 Malformed message-id\r\n");
                None
            }
        };
    }
    let range = match argument.map(NumberRange::parse) {
        None => None,
        Some(Ok(range)) => Some(range),
        Some(Err(_)) => {
            core.reply("501 Neither a message-id nor a range\r\n");
            return None;
        }
    };
    let selected = core.selected_or_412()?;
    match (range, selected.current) {
        (Some(range), _) => {
            let high = range.high.unwrap_or(ArticleNumber(u64::MAX));
            Some(Range::Numbers(selected.id, range.low, high))
        }
        (None, Some(current)) => Some(Range::Numbers(selected.id, current, current)),
        (None, None) => {
            core.reply("420 No current article\r\n");
            None
        }
    }
}

/// Answers with overview lines.
pub(crate) async fn over<S, Io>(
    core: &mut Core<S, Io>,
    argument: Option<&[u8]>,
    style: Style,
) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    match range_of(core, argument) {
        None => Ok(()),
        Some(Range::Id(id)) => over_id(core, id).await,
        Some(Range::Numbers(group, low, high)) => {
            // Without an argument a vanished article is 420 too: there is no current one any more.
            let empty = match argument {
                None => "420 Current article is gone\r\n",
                Some(_) => style.empty_range(),
            };
            over_range(core, group, low, high, empty).await
        }
    }
}

const STATUS: &[u8] = b"224 Overview follows\r\n";

async fn over_id<S, Io>(core: &mut Core<S, Io>, id: MessageId<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    core.learn(|features| features.over_by_id).await;
    if !core.features.over_by_id {
        core.reply("503 Overview by message-id is not kept\r\n");
        return Ok(());
    }
    let out = core.out();
    let before = out.len();
    out.extend_from_slice(STATUS);
    let mut rows = OverviewRows::with_buffer(std::mem::take(out));
    let found = overview_shown(core, id, &mut rows).await;
    *core.out() = rows.into_buffer();
    if !matches!(found, Ok(true)) {
        core.out().truncate(before);
    }
    match found {
        Ok(true) => {
            core.count_reply(STATUS);
            core.out().extend_from_slice(b".\r\n");
        }
        Ok(false) => core.reply("430 No such article\r\n"),
        Err(error) => core.reply_error(&error),
    }
    Ok(())
}

async fn over_range<S, Io>(
    core: &mut Core<S, Io>,
    group: GroupId,
    low: ArticleNumber,
    high: ArticleNumber,
    empty: &'static str,
) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let chunk = core.shared.config.reply_chunk_bytes;
    let mut listing = Listing::begin(core, STATUS);
    let mut next = (low <= high).then_some(low);
    while let Some(from) = next {
        let out = &mut scratch_of(&mut core.scratch).out;
        let mut rows = OverviewRows::with_buffer(std::mem::take(out));
        let listed = core
            .service
            .overview(group, from, high, chunk, &mut rows)
            .await;
        if !rows.is_empty() {
            listing.stands(core);
        }
        core.scratch().out = rows.into_buffer();
        next = match listed {
            Ok(next) => next,
            Err(error) => return listing.failed(core, &error),
        };
        if next.is_some() {
            listing.step(core).await?;
        }
    }
    listing.end_selected_or(core, empty).await;
    Ok(())
}

/// What follows an overview line's number and TAB.
pub(crate) fn after_number(line: &[u8]) -> &[u8] {
    let tab = line.iter().position(|octet| *octet == b'\t');
    tab.map_or(&[][..], |tab| &line[tab + 1..])
}

/// Splits the next line, CRLF taken off, from the front of overview text.
pub(crate) fn next_line<'t>(text: &mut &'t [u8]) -> Option<&'t [u8]> {
    let end = memmem::find(text, b"\r\n")?;
    let line = &text[..end];
    *text = &text[end + 2..];
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let mut text = &b"1\ta\r\n\r\n2\tb\r\n"[..];
        assert_eq!(next_line(&mut text), Some(&b"1\ta"[..]));
        assert_eq!(next_line(&mut text), Some(&b""[..]));
        assert_eq!(next_line(&mut text), Some(&b"2\tb"[..]));
        assert_eq!(next_line(&mut text), None);
    }
}
