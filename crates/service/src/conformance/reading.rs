//! Checks of what readers are told.

use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupName, UnixTime};

use super::sample::{accepted, article, group, id};
use super::{Maker, same};
use crate::article::ArticleBuf;
use crate::error::ServiceError;
use crate::group::{GroupCursor, GroupSelect};
use crate::overview::OverviewRows;
use crate::service::{Direction, NewsService};

const TEST: &str = "misc.test";

/// Counts the chunks of a listing, so that one that never ends is a failure and not a hang.
#[derive(Default)]
struct Rounds(usize);

impl Rounds {
    fn again(&mut self) -> Result<(), String> {
        self.0 += 1;
        if self.0 > 100 {
            Err("a listing of a few lines does not end".to_owned())
        } else {
            Ok(())
        }
    }
}

fn told<T>(result: Result<T, ServiceError>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

fn wildmat(text: &str) -> Result<Wildmat, String> {
    Wildmat::parse(text).map_err(|error| error.to_string())
}

/// Articles `<1@t.example>` to `<count@t.example>` in one group.
async fn fill<S: NewsService>(service: &S, count: usize) -> Result<(), String> {
    for n in 1..=count {
        let name = format!("<{n}@t.example>");
        accepted(service, &name, &article(&name, TEST, "", "a\r\n")).await?;
    }
    Ok(())
}

pub(super) async fn an_empty_group<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let info = group(&*service, TEST).await?;
    same("count", info.count, 0)?;
    same("low is high + 1", info.low.0, info.high.0 + 1)?;
    let name = GroupName::parse(b"no.such.group").map_err(|error| error.to_string())?;
    same("another group", told(service.group(name).await)?, None)?;
    let mut numbers = Vec::new();
    let all = (ArticleNumber(0), ArticleNumber(u64::MAX));
    let next = told(
        service
            .numbers(info.id, all.0, all.1, 10, &mut numbers)
            .await,
    )?;
    same("numbers", (numbers, next), (vec![], None))?;
    let mut rows = OverviewRows::default();
    let next = told(
        service
            .overview(info.id, all.0, all.1, 1000, &mut rows)
            .await,
    )?;
    same("overview", (rows.rows(), next), (0, None))
}

pub(super) async fn numbers_in_chunks<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    fill(&*service, 5).await?;
    let info = group(&*service, TEST).await?;
    for (low, high, limit, expected) in [
        (0, u64::MAX, 100, vec![1, 2, 3, 4, 5]),
        (0, u64::MAX, 2, vec![1, 2, 3, 4, 5]),
        (2, 4, 1, vec![2, 3, 4]),
        (5, 5, 5, vec![5]),
        (6, u64::MAX, 5, vec![]),
        (4, 2, 5, vec![]),
    ] {
        let mut got = Vec::new();
        let mut next = Some(ArticleNumber(low));
        let mut rounds = Rounds::default();
        while let Some(from) = next {
            rounds.again()?;
            let before = got.len();
            let high = ArticleNumber(high);
            next = told(service.numbers(info.id, from, high, limit, &mut got).await)?;
            if got.len() - before > limit {
                return Err(format!(
                    "{} numbers where {limit} were wanted",
                    got.len() - before
                ));
            }
        }
        let got: Vec<u64> = got.into_iter().map(|number| number.0).collect();
        same(&format!("{low}-{high} by {limit}"), got, expected)?;
    }
    Ok(())
}

pub(super) async fn overview_in_chunks<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    fill(&*service, 5).await?;
    let info = group(&*service, TEST).await?;
    let mut whole = OverviewRows::default();
    let (low, high) = (ArticleNumber(2), ArticleNumber(9));
    same(
        "next",
        told(
            service
                .overview(info.id, low, high, 1 << 20, &mut whole)
                .await,
        )?,
        None,
    )?;
    let mut pieces = Vec::new();
    let mut next = Some(low);
    let mut rounds = Rounds::default();
    while let Some(from) = next {
        rounds.again()?;
        let mut rows = OverviewRows::default();
        next = told(service.overview(info.id, from, high, 1, &mut rows).await)?;
        pieces.extend_from_slice(rows.text());
    }
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    same("in pieces and whole", text(&pieces), text(whole.text()))?;
    same("rows", whole.rows(), 4)?;
    let lines = text(&pieces);
    let first: Vec<&str> = lines
        .split("\r\n")
        .next()
        .unwrap_or_default()
        .split('\t')
        .collect();
    same(
        "number, subject, from, date, id, references",
        first.get(..6),
        Some(
            &[
                "2",
                "conformance",
                "A Tester <tester@example.org>",
                "Thu, 01 Jan 2026 00:00:00 +0000",
                "<2@t.example>",
                "",
            ][..],
        ),
    )?;
    same("lines", first.get(7).copied(), Some("1"))?;
    let xref = first.get(8).copied().unwrap_or_default();
    if !xref.starts_with("Xref: ") || !xref.ends_with(" misc.test:2") {
        return Err(format!("the last field is {xref:?}"));
    }
    by_id_as_by_number(
        &*service,
        lines.split_inclusive("\r\n").next().unwrap_or_default(),
    )
    .await
}

/// The line of an article by its id is that by its number, with number 0.
async fn by_id_as_by_number<S: NewsService>(service: &S, by_number: &str) -> Result<(), String> {
    if !service.features().over_by_id {
        return Ok(());
    }
    let mut rows = OverviewRows::default();
    let found = told(
        service
            .overview_by_id(id("<2@t.example>")?, &mut rows)
            .await,
    )?;
    same("by id", found, true)?;
    let by_id = String::from_utf8_lossy(rows.text()).into_owned();
    same(
        "its line",
        by_id.strip_prefix('0'),
        by_number.strip_prefix('2'),
    )
}

pub(super) async fn neighbours<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    fill(&*service, 3).await?;
    let info = group(&*service, TEST).await?;
    for (number, direction, expected) in [
        (1, Direction::Next, Some(2)),
        (3, Direction::Next, None),
        (3, Direction::Last, Some(2)),
        (1, Direction::Last, None),
        (0, Direction::Next, Some(1)),
        (9, Direction::Last, Some(3)),
    ] {
        let mut out = ArticleBuf::new();
        let got = service
            .neighbour(info.id, ArticleNumber(number), direction, &mut out)
            .await;
        let got = told(got)?.map(|number| number.0);
        same(&format!("{direction:?} of {number}"), got, expected)?;
        if let Some(expected) = expected {
            let name = String::from_utf8_lossy(out.id()).into_owned();
            same("its message-id", name, format!("<{expected}@t.example>"))?;
        }
    }
    Ok(())
}

pub(super) async fn groups_in_chunks<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&["b.two", "a.one", "c.three", "b.one"]).await;
    for (pattern, limit, expected) in [
        ("*", 1, vec!["a.one", "b.one", "b.two", "c.three"]),
        ("*", 100, vec!["a.one", "b.one", "b.two", "c.three"]),
        ("b.*,!*.one", 1, vec!["b.two"]),
        ("none", 1, vec![]),
    ] {
        let wildmat = wildmat(pattern)?;
        let select = GroupSelect {
            wildmat: Some(&wildmat),
            ..GroupSelect::default()
        };
        let mut cursor = GroupCursor::default();
        let mut got = Vec::new();
        let mut rounds = Rounds::default();
        while !cursor.is_done() {
            rounds.again()?;
            let mut visit = |row: crate::GroupRow<'_>| got.push(row.name.as_str().to_owned());
            told(service.groups(select, &mut cursor, limit, &mut visit).await)?;
        }
        same(
            pattern,
            got,
            expected.into_iter().map(str::to_owned).collect(),
        )?;
    }
    let mut parts = Vec::new();
    if let Some(rest) = told(service.active_list(&mut parts).await)? {
        told(rest.whole().await)?;
        parts.push(rest.seen(bytes::Bytes::copy_from_slice));
    }
    let lines = String::from_utf8_lossy(&parts.concat()).into_owned();
    same(
        "LIST ACTIVE",
        lines.as_str(),
        "a.one 0 1 y\r\nb.one 0 1 y\r\nb.two 0 1 y\r\nc.three 0 1 y\r\n",
    )
}

pub(super) async fn new_articles<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST, "a.one"]).await;
    if !service.features().newnews {
        return Ok(());
    }
    fill(&*service, 3).await?;
    let both = article("<4@t.example>", "misc.test,a.one", "", "a\r\n");
    accepted(&*service, "<4@t.example>", &both).await?;
    let now = service.now();
    for (pattern, since, expected) in [
        (
            "*",
            0,
            "<1@t.example> <2@t.example> <3@t.example> <4@t.example>",
        ),
        ("a.*", 0, "<4@t.example>"),
        ("none", 0, ""),
        ("*", now.0 + 1000, ""),
    ] {
        let wildmat = wildmat(pattern)?;
        let mut cursor = <M::Service as NewsService>::NewnewsCursor::default();
        let mut out = Vec::new();
        let mut rounds = Rounds::default();
        loop {
            rounds.again()?;
            let mut chunk = Vec::new();
            let since = UnixTime(since);
            let more = service
                .newnews(&wildmat, since, &mut cursor, 1, &mut chunk)
                .await;
            out.extend_from_slice(&chunk);
            if !told(more)? {
                break;
            }
        }
        let text = String::from_utf8_lossy(&out).into_owned();
        let mut got: Vec<&str> = text.split_terminator("\r\n").collect();
        got.sort_unstable();
        // RFC 3977 section 7.4: an id may stand there more than once.
        got.dedup();
        same(
            &format!("{pattern} since {since}"),
            got.join(" ").as_str(),
            expected,
        )?;
    }
    Ok(())
}
