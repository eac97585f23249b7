//! HDR, XHDR and XPAT: one field of many articles, or of those whose field matches.
//!
//! What the overview has is answered from it; any other field is read from the articles' header blocks, one at a
//! time.  Memory is bounded by a chunk of overview, or of numbers.

use newsreel_service::{ArticleQuery, NewsService, OverviewRows, Part, ServiceError};
use newsreel_wire::article::Known;
use newsreel_wire::overview::{OverviewFields, unfold};
use newsreel_wire::{ArticleNumber, GroupId, MessageId, Wildmat};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::coop::consume_budget;

use crate::core::{Core, scratch_of};
use crate::end::End;
use crate::listing::Listing;
use crate::overview::{Range, Style, after_number, next_line, range_of};
use crate::retrieve::{article_shown, overview_shown};

/// Articles of one list that cannot be read, and are left out, before it is given up.
const UNREADABLE_MAX: usize = 64;

/// Octets of overview asked for at a time.
const OVERVIEW_BYTES_MAX: usize = 32 << 10;

/// Numbers asked for at a time when articles must be read.
const NUMBERS_MAX: usize = 1024;

/// Which field, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted<'a> {
    /// `:bytes`.
    Bytes,
    /// `:lines`: counted, whatever the article says.
    Lines,
    /// A field the overview has.
    Overview(Known),
    /// Any other: from the article.
    Article(&'a [u8]),
}

impl<'a> Wanted<'a> {
    fn parse(field: &'a [u8], style: Style) -> Result<Self, &'static str> {
        // To XHDR and XPAT these two are as any field of the overview, as with INN: they are older than the colon.
        let metadata = match (style, field) {
            (Style::Rfc2980, field) => field.strip_prefix(b":").unwrap_or(field),
            (Style::Rfc3977, [b':', name @ ..]) => name,
            (Style::Rfc3977, _) => b"",
        };
        if metadata.eq_ignore_ascii_case(b"bytes") {
            return Ok(Self::Bytes);
        }
        if metadata.eq_ignore_ascii_case(b"lines") {
            return Ok(Self::Lines);
        }
        if field.starts_with(b":") {
            return Err("503 No such metadata here\r\n");
        }
        if !field
            .iter()
            .all(|octet| octet.is_ascii_graphic() && *octet != b':')
        {
            return Err("501 Malformed field name\r\n");
        }
        Ok(match Known::from_name(field) {
            Some(known) if IN_OVERVIEW.contains(&known) => Self::Overview(known),
            _ => Self::Article(field),
        })
    }

    /// Appends the value from an overview line (without its number); nothing when the line does not have it.
    fn write(self, line: &[u8], out: &mut Vec<u8>) -> bool {
        let Ok(fields) = OverviewFields::parse(line) else {
            return false;
        };
        let number = |value: Option<u64>, out: &mut Vec<u8>| {
            let value = value.unwrap_or_default();
            out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            true
        };
        match self {
            Self::Bytes => number(fields.bytes, out),
            Self::Lines => number(fields.lines, out),
            Self::Overview(known) => match fields.header(known) {
                Some(value) if !value.is_empty() => {
                    out.extend_from_slice(value);
                    true
                }
                _ => false,
            },
            Self::Article(_) => false,
        }
    }
}

const IN_OVERVIEW: [Known; 6] = [
    Known::Subject,
    Known::From,
    Known::Date,
    Known::MessageId,
    Known::References,
    Known::Xref,
];

/// What XHDR says where HDR says nothing.
const fn missing(style: Style) -> &'static [u8] {
    match style {
        Style::Rfc3977 => b"",
        Style::Rfc2980 => b"(none)",
    }
}

const fn status(style: Style) -> &'static [u8] {
    match style {
        Style::Rfc3977 => b"225 Header follows\r\n",
        Style::Rfc2980 => b"221 Header follows\r\n",
    }
}

/// What of an article is listed.
#[derive(Debug, Clone, Copy)]
struct Form<'a> {
    style: Style,
    /// Only fields that are there and match.
    pattern: Option<&'a Wildmat>,
}

impl Form<'_> {
    /// After its field was appended from `value_at` on, if the article `has` it: ends the line, or takes it back to
    /// `line_at`.
    fn end_line(self, out: &mut Vec<u8>, line_at: usize, value_at: usize, has: bool) {
        let value = out.get(value_at..).unwrap_or_default();
        let is_shown = self
            .pattern
            .is_none_or(|pattern| has && pattern.matches(&String::from_utf8_lossy(value)));
        if !is_shown {
            out.truncate(line_at);
            return;
        }
        if !has {
            out.extend_from_slice(missing(self.style));
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Answers with one field of the articles that the argument names; with a pattern only of those whose field matches,
/// which may be none.
pub(crate) async fn header<S, Io>(
    core: &mut Core<S, Io>,
    field: &[u8],
    argument: Option<&[u8]>,
    style: Style,
    pattern: Option<&Wildmat>,
) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let wanted = match Wanted::parse(field, style) {
        Ok(wanted) => wanted,
        Err(line) => {
            core.reply(line);
            return Ok(());
        }
    };
    match range_of(core, argument) {
        None => Ok(()),
        Some(Range::Id(id)) => by_id(core, wanted, id, Form { style, pattern }).await,
        Some(Range::Numbers(group, low, high)) => {
            let empty = match argument {
                None => "420 Current article is gone\r\n",
                Some(_) => style.empty_range(),
            };
            let listing = Listing::begin(core, status(style));
            let range = Numbers {
                group,
                next: (low <= high).then_some(low),
                high,
                form: Form { style, pattern },
            };
            match wanted {
                Wanted::Article(name) => range.list_from_articles(core, listing, name, empty).await,
                _ => range.list_from_overview(core, listing, wanted, empty).await,
            }
        }
    }
}

/// HDR's first word is 0 by message-id; XHDR's is the id.
async fn by_id<S, Io>(
    core: &mut Core<S, Io>,
    wanted: Wanted<'_>,
    id: MessageId<'_>,
    form: Form<'_>,
) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut value = Vec::new();
    let found = match wanted {
        Wanted::Article(name) => {
            let found = article_shown(core, ArticleQuery::ById(id), Part::Head).await;
            let article = &scratch_of(&mut core.scratch).article;
            found.map(|found| found.map(|_| write_field(article.content(), name, &mut value)))
        }
        _ => {
            let mut rows = OverviewRows::default();
            let found = overview_shown(core, id, &mut rows).await;
            found.map(|found| {
                let line = next_line(&mut rows.text()).unwrap_or_default();
                found.then(|| wanted.write(after_number(line), &mut value))
            })
        }
    };
    match found {
        Ok(Some(has)) => {
            let status = status(form.style);
            let out = core.out();
            out.extend_from_slice(status);
            let line_at = out.len();
            out.extend_from_slice(if form.style == Style::Rfc3977 {
                b"0"
            } else {
                id.as_bytes()
            });
            out.push(b' ');
            let value_at = out.len();
            out.extend_from_slice(&value);
            form.end_line(out, line_at, value_at, has);
            out.extend_from_slice(b".\r\n");
            core.count_reply(status);
        }
        Ok(None) => core.reply("430 No such article\r\n"),
        Err(error) => core.reply_error(&error),
    }
    Ok(())
}

/// The articles to be listed.
struct Numbers<'a> {
    group: GroupId,
    next: Option<ArticleNumber>,
    high: ArticleNumber,
    form: Form<'a>,
}

impl Numbers<'_> {
    /// A list that nothing matches is empty; one of a range that holds nothing is `empty`.
    async fn end<S, Io>(&self, core: &mut Core<S, Io>, listing: Listing, empty: &'static str)
    where
        S: NewsService,
        Io: AsyncRead + AsyncWrite + Unpin + Send,
    {
        match self.form.pattern {
            Some(_) => listing.end_selected(core).await,
            None => listing.end_selected_or(core, empty).await,
        }
    }

    async fn list_from_overview<S, Io>(
        mut self,
        core: &mut Core<S, Io>,
        mut listing: Listing,
        wanted: Wanted<'_>,
        empty: &'static str,
    ) -> Result<(), End>
    where
        S: NewsService,
        Io: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let mut rows = OverviewRows::default();
        while let Some(from) = self.next {
            rows.clear();
            let listed = core
                .service
                .overview(self.group, from, self.high, OVERVIEW_BYTES_MAX, &mut rows)
                .await;
            self.next = match listed {
                Ok(next) => next,
                Err(error) => return listing.failed(core, &error),
            };
            if !rows.is_empty() {
                listing.stands(core);
            }
            let out = core.out();
            let mut text = rows.text();
            while let Some(line) = next_line(&mut text) {
                let rest = after_number(line);
                let line_at = out.len();
                out.extend_from_slice(&line[..line.len() - rest.len()]);
                if let Some(last) = out.last_mut() {
                    // The TAB behind the number.
                    *last = b' ';
                }
                let value_at = out.len();
                let has = wanted.write(rest, out);
                self.form.end_line(out, line_at, value_at, has);
            }
            if self.next.is_some() {
                listing.step(core).await?;
            }
        }
        self.end(core, listing, empty).await;
        Ok(())
    }

    async fn list_from_articles<S, Io>(
        mut self,
        core: &mut Core<S, Io>,
        mut listing: Listing,
        name: &[u8],
        empty: &'static str,
    ) -> Result<(), End>
    where
        S: NewsService,
        Io: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let mut unreadable = Vec::new();
        while let Some(from) = self.next {
            let mut numbers = std::mem::take(&mut core.scratch().numbers);
            numbers.clear();
            let listed = core
                .service
                .numbers(self.group, from, self.high, NUMBERS_MAX, &mut numbers)
                .await;
            self.next = match listed {
                Ok(next) => next,
                Err(error) => return listing.failed(core, &error),
            };
            for number in &numbers {
                let query = ArticleQuery::ByNumber(self.group, *number);
                match article_shown(core, query, Part::Head).await {
                    Ok(Some(_)) => {}
                    // Gone meanwhile: then it is not listed.
                    Ok(None) => continue,
                    // What is elsewhere is there: a list without it would be taken for whole.
                    Err(error @ (ServiceError::Away | ServiceError::Offline)) => {
                        return listing.failed(core, &error);
                    }
                    // One bad sector takes no other article's line away.
                    Err(error) if unreadable.len() < UNREADABLE_MAX => {
                        unreadable.push(error);
                        continue;
                    }
                    Err(error) => return listing.failed(core, &error),
                }
                listing.stands(core);
                let scratch = scratch_of(&mut core.scratch);
                let (out, article) = (&mut scratch.out, &scratch.article);
                let line_at = out.len();
                out.extend_from_slice(itoa::Buffer::new().format(number.0).as_bytes());
                out.push(b' ');
                let value_at = out.len();
                let has = write_field(article.content(), name, out);
                self.form.end_line(out, line_at, value_at, has);
                core.room().await?;
                core.hurry().await?;
                consume_budget().await;
            }
            core.scratch().numbers = numbers;
        }
        if let Some(error) = unreadable.first().filter(|_| !listing.has_begun()) {
            return listing.failed(core, error);
        }
        self.end(core, listing, empty).await;
        Ok(())
    }
}

/// Appends the unfolded content of the first field of this name in a header block (wire form, no empty line).
fn write_field(head: &[u8], name: &[u8], out: &mut Vec<u8>) -> bool {
    let mut rest = head;
    let mut content: Option<(usize, usize)> = None;
    let mut at = 0;
    while let Some(line) = next_line(&mut rest) {
        let end = at + line.len() + 2;
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            if let Some((_, to)) = &mut content {
                *to = end;
            }
        } else if content.is_some() {
            break;
        } else {
            let stuffed = usize::from(line.starts_with(b"."));
            let named = &line[stuffed..];
            let is_it = named.len() > name.len()
                && named[name.len()] == b':'
                && named[..name.len()].eq_ignore_ascii_case(name);
            if is_it {
                content = Some((at + stuffed + name.len() + 1, end));
            }
        }
        at = end;
    }
    let Some((from, to)) = content else {
        return false;
    };
    unfold(&head[from..to - 2], out);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_header_block() {
        let head =
            b"Subject: one\r\n two\r\n\tthree\r\nX-A: b\r\nX-A: c\r\n..Dot: d\r\nX-Empty: \r\n";
        let field = |name: &str| {
            let mut out = Vec::new();
            write_field(head, name.as_bytes(), &mut out).then(|| String::from_utf8(out).unwrap())
        };
        assert_eq!(field("subject").as_deref(), Some("one two three"));
        assert_eq!(field("x-a").as_deref(), Some("b"));
        assert_eq!(field(".dot").as_deref(), Some("d"));
        assert_eq!(field("X-Empty").as_deref(), Some(""));
        assert_eq!(field("X"), None);
        assert_eq!(field("Subject: one"), None);
    }

    #[test]
    fn wanted() {
        for style in [Style::Rfc3977, Style::Rfc2980] {
            let parse = |field| Wanted::parse(field, style);
            assert_eq!(parse(b"xref"), Ok(Wanted::Overview(Known::Xref)));
            assert_eq!(parse(b"Organization"), Ok(Wanted::Article(b"Organization")));
            assert_eq!(parse(b":LINES"), Ok(Wanted::Lines));
            assert!(parse(b":x").is_err_and(|line| line.starts_with("503")));
            assert!(parse(b"a:b").is_err_and(|line| line.starts_with("501")));
        }
        let field = Wanted::parse(b"Lines", Style::Rfc3977);
        assert_eq!(field, Ok(Wanted::Article(b"Lines")));
    }
}
