//! LIST: information about all groups, and about the server (RFC 3977 section 7.6, RFC 6048).

use std::sync::Arc;

use bytes::Bytes;
use newsreel_net::access::Grant;
use newsreel_service::{Arriving, GroupCursor, GroupRow, GroupSelect, NewsService};
use newsreel_wire::date::parse_nntp;
use newsreel_wire::nntp::line::Command;
use newsreel_wire::{Wildmat, overview};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::{Core, scratch_of};
use crate::end::End;
use crate::listing::Listing;
use crate::lists::{Kept, Names};
use crate::spec::{Needs, Spec};

/// What CAPABILITIES has one line for.
pub(super) const CAPABILITY: &str = "LIST";

/// Those that list groups, for whom may do that.
const OF_GROUPS: &[&str] = &[
    "ACTIVE",
    "ACTIVE.MODTIME",
    "ACTIVE.TIMES",
    "COUNTS",
    "NEWSGROUPS",
];

/// The variant that LIST is without a keyword, and whose lines NEWGROUPS has.
pub(super) const ACTIVE: &[u8] = b"ACTIVE";

/// The variant that XGTITLE is an older name of.
pub(super) const NEWSGROUPS: &[u8] = b"NEWSGROUPS";

/// Groups visited at a time.
const GROUPS_MAX: usize = 1024;

pub(super) const SPEC: Spec = Spec {
    name: "LIST",
    usage: "[ACTIVE|ACTIVE.TIMES|COUNTS|NEWSGROUPS|SUBSCRIPTIONS [wildmat]|ACTIVE.MODTIME yyyymmddhhmmss [wildmat]|\
            HEADERS [MSGID|RANGE]|DISTRIB.PATS|DISTRIBUTIONS|MODERATORS|MOTD|OVERVIEW.FMT]",
    args: (0, 3),
    needs: Needs::Reader,
    capability: Some(CAPABILITY),
    pipelined: false,
    codes: &[215, 503],
};

/// All groups, of which no more is wanted than LIST ACTIVE says.
const BARE: GroupSelect<'static> = GroupSelect {
    wildmat: None,
    created_since: None,
    changed_since: None,
    described: false,
    bare: true,
    counts: false,
};

const FOLLOWS: &[u8] = b"215 List follows\r\n";

/// Writes a row's line, without CRLF.
type WriteRow = fn(&GroupRow<'_>, &mut Vec<u8>);

pub(super) async fn run<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if is_refused(core, command.arg(0).unwrap_or(ACTIVE)) {
        return Ok(());
    }
    if command.args.is_empty() {
        return active(core).await;
    }
    if command.arg_is(0, "ACTIVE") && command.args.len() == 1 {
        return active(core).await;
    }
    if command.arg_is(0, "ACTIVE.MODTIME") {
        return changed(core, command).await;
    }
    if command.args.len() > 2 {
        core.reply("501 Too many arguments\r\n");
        return Ok(());
    }
    let all = GroupSelect::default();
    let described = true;
    let rows: Option<(WriteRow, GroupSelect<'_>)> = if command.arg_is(0, "ACTIVE") {
        Some((write_active, BARE))
    } else if command.arg_is(0, "ACTIVE.TIMES") {
        Some((write_times, all))
    } else if command.arg_is(0, "COUNTS") {
        let counts = true;
        Some((write_counts, GroupSelect { counts, ..BARE }))
    } else if command.arg_is(0, "NEWSGROUPS") {
        Some((write_description, GroupSelect { described, ..all }))
    } else {
        None
    };
    if let Some((write, select)) = rows {
        let Ok(wildmat) = command.arg(1).map(Wildmat::parse_argument).transpose() else {
            core.reply("501 Malformed wildmat\r\n");
            return Ok(());
        };
        let select = GroupSelect {
            wildmat: wildmat.as_ref(),
            ..select
        };
        return groups(core, FOLLOWS, select, write).await;
    }
    fixed(core, command).await
}

/// Answers who may not ask this variant, by whatever command it goes.
pub(super) fn is_refused<S, Io>(core: &mut Core<S, Io>, keyword: &[u8]) -> bool
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let is_refused = !may_list(&core.grant, keyword);
    if is_refused {
        let line = core.not_permitted(|it| it.is_for_readers() && may_list(it, keyword));
        core.reply(line);
    }
    is_refused
}

/// Whether a variant may be asked.
pub(super) fn may_list(grant: &Grant, keyword: &[u8]) -> bool {
    let is_it = |word: &&str| word.as_bytes().eq_ignore_ascii_case(keyword);
    let lists_groups = OF_GROUPS.iter().any(is_it);
    (grant.list || !lists_groups) && !grant.refuses_list(keyword)
}

/// LIST ACTIVE of what changed since (docs/active-modtime.md): the moment as DATE says it, then perhaps a wildmat.
async fn changed<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let moment = command.arg(1).and_then(|word| word.split_at_checked(8));
    let since = moment.map(|(date, time)| parse_nntp(date, time, core.service.now()));
    let Some(Ok(since)) = since else {
        core.reply("501 Malformed time: yyyymmddhhmmss, as DATE says it\r\n");
        return Ok(());
    };
    let Ok(wildmat) = command.arg(2).map(Wildmat::parse_argument).transpose() else {
        core.reply("501 Malformed wildmat\r\n");
        return Ok(());
    };
    let select = GroupSelect {
        wildmat: wildmat.as_ref(),
        changed_since: Some(since),
        ..BARE
    };
    groups(core, FOLLOWS, select, write_active).await
}

/// What does not depend on groups.
async fn fixed<S, Io>(core: &mut Core<S, Io>, command: &Command<'_>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let shared = Arc::clone(&core.shared);
    if let Some(kept) = command.arg(0).and_then(|word| shared.lists.find(word)) {
        // Boxed: a session that waits is no larger for what few ask for.
        return Box::pin(site(core, kept, command.arg(1))).await;
    }
    let argument_is_known = match command.arg(1) {
        None => true,
        Some(_) => {
            command.arg_is(0, "HEADERS")
                && (command.arg_is(1, "MSGID") || command.arg_is(1, "RANGE"))
        }
    };
    let lines: &[&str] = if command.arg_is(0, "OVERVIEW.FMT") && argument_is_known {
        &overview::FORMAT
    } else if command.arg_is(0, "HEADERS") && argument_is_known {
        &overview::HEADERS
    } else {
        core.reply("501 Unknown LIST keyword or argument\r\n");
        return Ok(());
    };
    list_lines(core, lines.iter().copied());
    Ok(())
}

/// What the configuration says of this site, or a server elsewhere where it says nothing; of groups, and of patterns that match groups, what
/// may be read.
async fn site<S, Io>(
    core: &mut Core<S, Io>,
    kept: &Kept,
    argument: Option<&[u8]>,
) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let wildmat = match argument.map(Wildmat::parse_argument).transpose() {
        Ok(wildmat) if wildmat.is_none() || kept.names == Names::Groups => wildmat,
        _ => {
            core.reply("501 Unknown LIST argument\r\n");
            return Ok(());
        }
    };
    let lines = match kept.lines.is_empty() {
        false => Ok(Some(kept.lines.clone())),
        true => core.service.site_list(kept.keyword).await,
    };
    let lines = match lines {
        Ok(Some(lines)) => lines,
        Ok(None) => {
            core.reply("503 Not kept here\r\n");
            return Ok(());
        }
        Err(error) => {
            core.reply_error(&error);
            return Ok(());
        }
    };
    let lines = shown_of(lines, kept.names, wildmat, core.grant.read.as_ref());
    core.reply("215 List follows\r\n");
    scratch_of(&mut core.scratch).parts.push(lines);
    core.send_parts().await?;
    core.out().extend_from_slice(b".\r\n");
    Ok(())
}

/// Of lines those that match, as far as they may be told to who may read these groups.
fn shown_of(
    lines: Bytes,
    names: Names,
    wildmat: Option<Wildmat>,
    readable: Option<&Wildmat>,
) -> Bytes {
    match (readable, names) {
        (_, Names::Nothing) => lines,
        // Who may only post is shown none.
        (None, _) => Bytes::new(),
        (Some(readable), Names::Groups) => {
            let shown = match wildmat {
                Some(wildmat) => wildmat.within(readable),
                None => readable.clone(),
            };
            lines_of(&lines, |line| shown.matches(line).then(|| line.to_owned()))
        }
        (Some(readable), Names::Patterns { .. }) if readable.matches_all() => lines,
        (Some(readable), Names::Patterns { at }) => {
            lines_of(&lines, |line| line_shown(line, at, readable))
        }
    }
}

/// What is left of each line.
fn lines_of(lines: &[u8], left: impl Fn(&str) -> Option<String>) -> Bytes {
    let each = lines.split_inclusive(|octet| *octet == b'\n');
    let mut out = Vec::with_capacity(lines.len());
    for line in each {
        let text = std::str::from_utf8(line.trim_ascii_end()).ok();
        if let Some(line) = text.and_then(&left) {
            out.extend_from_slice(line.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
    out.into()
}

/// What is left of a line of columns with colons between them, whose column `at` is a wildmat and whose last is none: the patterns that may
/// match a group that may be read; none: there are none.
fn line_shown(line: &str, at: usize, readable: &Wildmat) -> Option<String> {
    let (rest, last) = line.rsplit_once(':')?;
    let mut columns: Vec<&str> = rest.splitn(at + 1, ':').collect();
    let wildmat = columns.pop().filter(|_| columns.len() == at)?;
    // A line that begins with a dot has one more in wire form.
    let (dot, wildmat) = match wildmat.strip_prefix('.') {
        Some(plain) if at == 0 => (".", plain),
        _ => ("", wildmat),
    };
    let shown = readable.shows_of(wildmat)?;
    let dot = if shown.starts_with('.') { dot } else { "" };
    let front: String = columns.iter().map(|column| format!("{column}:")).collect();
    Some(format!("{front}{dot}{shown}:{last}"))
}

fn list_lines<'l, S, Io>(core: &mut Core<S, Io>, lines: impl Iterator<Item = &'l str>)
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    core.reply("215 List follows\r\n");
    let out = core.out();
    for line in lines {
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b".\r\n");
}

/// LIST ACTIVE of all groups, ready made by the service.
async fn active<S, Io>(core: &mut Core<S, Io>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    if !core.grant.reads_all() {
        return groups(core, FOLLOWS, BARE, write_active).await;
    }
    let scratch = scratch_of(&mut core.scratch);
    let rest = match core.service.active_list(&mut scratch.parts).await {
        Ok(rest) => rest,
        Err(error) => {
            core.reply_error(&error);
            return Ok(());
        }
    };
    core.reply("215 List follows\r\n");
    core.send_parts().await?;
    if let Some(rest) = rest {
        // In a box: few lists are still coming, and every connection has room for what is not.
        Box::pin(send_coming(core, &rest)).await?;
    }
    core.out().extend_from_slice(b".\r\n");
    Ok(())
}

/// Sends a list on as it comes.  All who read it share what has come, which is no larger than a list may be; where its end does
/// not come the connection ends in its place, so that it is never taken for whole.
async fn send_coming<S, Io>(core: &mut Core<S, Io>, rest: &Arc<Arriving>) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    scratch_of(&mut core.scratch).article.set_rest(rest, 0);
    loop {
        core.send_article(b"").await?;
        core.flush().await?;
        let article = &mut scratch_of(&mut core.scratch).article;
        if !article.has_more() {
            return Ok(());
        }
        article.more().await.map_err(|_| End::CutShort)?;
    }
}

/// Lists the selected groups that may be read, a chunk at a time.
pub(super) async fn groups<S, Io>(
    core: &mut Core<S, Io>,
    status: &'static [u8],
    select: GroupSelect<'_>,
    write: WriteRow,
) -> Result<(), End>
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let grant = Arc::clone(&core.grant);
    // Who may only post is shown none.
    let Some(readable) = &grant.read else {
        Listing::begin(core, status).end(core);
        return Ok(());
    };
    let wildmat = match select.wildmat {
        Some(wildmat) => wildmat.clone().within(readable),
        None => readable.clone(),
    };
    let select = GroupSelect {
        wildmat: Some(&wildmat),
        ..select
    };
    let mut listing = Listing::begin(core, status);
    let mut cursor = GroupCursor::default();
    while !cursor.is_done() {
        let out = &mut scratch_of(&mut core.scratch).out;
        let mut visit = |row: GroupRow<'_>| {
            write(&row, out);
            out.extend_from_slice(b"\r\n");
        };
        let listed = core
            .service
            .groups(select, &mut cursor, GROUPS_MAX, &mut visit)
            .await;
        if let Err(error) = listed {
            return listing.failed(core, &error);
        }
        listing.stands(core);
        listing.step(core).await?;
    }
    listing.end(core);
    Ok(())
}

fn number(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// `group high low status`.
pub(super) fn write_active(row: &GroupRow<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(row.name.as_bytes());
    out.push(b' ');
    number(row.info.high.0, out);
    out.push(b' ');
    number(row.info.low.0, out);
    out.push(b' ');
    out.extend_from_slice(row.status.as_bytes());
}

/// `group time creator`.
fn write_times(row: &GroupRow<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(row.name.as_bytes());
    out.push(b' ');
    number(row.created.0, out);
    out.push(b' ');
    out.extend_from_slice(row.creator.as_bytes());
}

/// `group high low count status` (RFC 6048 section 2.2).
fn write_counts(row: &GroupRow<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(row.name.as_bytes());
    for value in [row.info.high.0, row.info.low.0, row.info.count] {
        out.push(b' ');
        number(value, out);
    }
    out.push(b' ');
    out.extend_from_slice(row.status.as_bytes());
}

/// `group TAB description`.
pub(super) fn write_description(row: &GroupRow<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(row.name.as_bytes());
    out.push(b'\t');
    out.extend_from_slice(row.description.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_patterns_names_none_that_match_hidden_groups_alone() {
        let readable = Wildmat::parse("misc.*,.dot").unwrap();
        for (at, line, shown) in [
            (0, "misc.*:a@b.example", Some("misc.*:a@b.example")),
            (0, "private.*:a@b.example", None),
            (0, "*:%s@b.example", Some("*:%s@b.example")),
            (
                0,
                "misc.a,private.b:a@b.example",
                Some("misc.a:a@b.example"),
            ),
            (
                0,
                "..dot,misc.a:a@b.example",
                Some("..dot,misc.a:a@b.example"),
            ),
            (0, "..hidden,misc.a:a@b.example", Some("misc.a:a@b.example")),
            (0, "no line", None),
            (1, "10:misc.*:world", Some("10:misc.*:world")),
            (1, "10:private.*:local", None),
            (1, "10:misc.[a:b]*,private.*:x", Some("10:misc.[a:b]*:x")),
            (1, "misc.*:world", None),
        ] {
            let shown = shown.map(str::to_owned);
            assert_eq!(line_shown(line, at, &readable), shown, "{line}");
        }
    }
}
