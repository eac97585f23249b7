//! Checks of offers and transfers.

use newsreel_wire::ArticleNumber;

use super::sample::{accepted, article, connection, group, id, read, send, send_all};
use super::{Maker, same};
use crate::article::{ArticleQuery, Part};
use crate::reject::Reject;
use crate::service::NewsService;
use crate::transfer::{Defer, Offer, Outcome};

const TEST: &str = "misc.test";

pub(super) async fn an_article_comes_back_as_it_was_sent<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let body = "one\r\n..\r\n..two\r\n\u{e4}\u{f6}\r\n\r\n";
    accepted(
        &*service,
        "<1@t.example>",
        &article("<1@t.example>", TEST, "", body),
    )
    .await?;
    let info = group(&*service, TEST).await?;
    same(
        "the group",
        (info.low.0, info.high.0, info.count),
        (1, 1, 1),
    )?;
    let by_id = ArticleQuery::ById(id("<1@t.example>")?);
    let by_number = ArticleQuery::ByNumber(info.id, ArticleNumber(1));
    for (query, number) in [(by_id, 0), (by_number, 1)] {
        let read_part = |part| read(&*service, query, part);
        let whole = read_part(Part::Whole)
            .await?
            .ok_or("ARTICLE does not find it")?;
        let head = read_part(Part::Head)
            .await?
            .ok_or("HEAD does not find it")?;
        let got_body = read_part(Part::Body)
            .await?
            .ok_or("BODY does not find it")?;
        let stat = read_part(Part::Stat)
            .await?
            .ok_or("STAT does not find it")?;
        for found in [&whole, &head, &got_body, &stat] {
            same("number", found.0, number)?;
            same("message-id", found.1.as_str(), "<1@t.example>")?;
        }
        same("the body", got_body.2.as_str(), &format!("{body}.\r\n"))?;
        same(
            "head, empty line, body",
            format!("{}\r\n{}", head.2, got_body.2),
            whole.2,
        )?;
    }
    let none = read(
        &*service,
        ArticleQuery::ById(id("<2@t.example>")?),
        Part::Whole,
    )
    .await?;
    same("an id that was never sent", none, None)?;
    let none = ArticleQuery::ByNumber(info.id, ArticleNumber(2));
    same(
        "a number that was never given",
        read(&*service, none, Part::Stat).await?,
        None,
    )
}

pub(super) async fn only_path_and_xref_are_changed<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let more = "X-Odd:   kept as  it is \r\n\tfolded\r\nXref: elsewhere.example misc.test:77\r\n";
    let wire = article("<1@t.example>", TEST, more, "body\r\n");
    accepted(&*service, "<1@t.example>", &wire).await?;
    let query = ArticleQuery::ById(id("<1@t.example>")?);
    let (_, _, head) = read(&*service, query, Part::Head)
        .await?
        .ok_or("not found")?;
    let sent = String::from_utf8_lossy(&wire).into_owned();
    let sent_head = sent.split("\r\n\r\n").next().unwrap_or_default();
    let lines = |text: &str| -> Vec<String> {
        let ours = |line: &&str| !line.starts_with("Path:") && !line.starts_with("Xref:");
        text.split("\r\n")
            .filter(ours)
            .filter(|l| !l.is_empty())
            .map(str::to_owned)
            .collect()
    };
    same("other fields", lines(&head), lines(sent_head))?;
    let path = head
        .split("\r\n")
        .find(|line| line.starts_with("Path: "))
        .unwrap_or_default();
    if !path.ends_with("!peer.example!not-for-mail") || !path.contains(&m.path_identity()) {
        return Err(format!("Path is {path:?}"));
    }
    let xref: Vec<&str> = head
        .split("\r\n")
        .filter(|line| line.starts_with("Xref:"))
        .collect();
    match xref.as_slice() {
        [one] if one.ends_with(" misc.test:1") => Ok(()),
        other => Err(format!("Xref is {other:?}")),
    }
}

pub(super) async fn duplicates_are_refused<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let wire = article("<1@t.example>", TEST, "", "a\r\n");
    accepted(&*service, "<1@t.example>", &wire).await?;
    let again = send(&*service, "<1@t.example>", &wire).await?;
    same("the second copy", again, Outcome::Duplicate)?;
    let offer = service.offer(id("<1@t.example>")?, &connection()).await;
    same("an offer of it", offer, Offer::Known)?;
    same("articles", group(&*service, TEST).await?.count, 1)
}

pub(super) async fn two_copies_in_one_batch_are_one_article<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let copy = |body: &str| {
        (
            "<1@t.example>".to_owned(),
            article("<1@t.example>", TEST, "", body),
        )
    };
    let outcomes = send_all(&*service, &connection(), &[copy("a\r\n"), copy("b\r\n")]).await?;
    same(
        "answers",
        outcomes,
        vec![Outcome::Accepted, Outcome::Duplicate],
    )?;
    same("articles", group(&*service, TEST).await?.count, 1)
}

pub(super) async fn every_ticket_is_answered_once<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let one = |n: usize| {
        let name = format!("<{n}@t.example>");
        // Every third is one that was sent before; every seventh is bad.
        let name = if n % 3 == 2 {
            format!("<{}@t.example>", n - 1)
        } else {
            name
        };
        let groups = if n.is_multiple_of(7) {
            "no.such.group"
        } else {
            TEST
        };
        let wire = article(&name, groups, "", &"line\r\n".repeat(n % 50));
        (name, wire)
    };
    let articles: Vec<_> = (0..400).map(one).collect();
    let outcomes = send_all(&*service, &connection(), &articles).await?;
    let accepted = outcomes
        .iter()
        .filter(|outcome| **outcome == Outcome::Accepted)
        .count();
    let info = group(&*service, TEST).await?;
    same("articles", info.count, accepted as u64)?;
    same("high mark", info.high.0, accepted as u64)?;
    same(
        "refused",
        outcomes[0],
        Outcome::Rejected(Reject::UnknownGroups),
    )?;
    same("duplicate", outcomes[5], Outcome::Duplicate)
}

pub(super) async fn an_offer_is_held_until_its_connection_ends<M: Maker>(
    m: &M,
) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let (a, b) = (connection(), connection());
    let name = id("<1@t.example>")?;
    same(
        "the first offer",
        service.offer(name, &a).await,
        Offer::Want,
    )?;
    same(
        "another peer's",
        service.offer(name, &b).await,
        Offer::Later(Defer::UnderWay),
    )?;
    same(
        "the same peer's",
        service.offer(name, &a).await,
        Offer::Want,
    )?;
    service.release(&a);
    same("after its end", service.offer(name, &b).await, Offer::Want)?;
    service.release(&b);
    Ok(())
}

pub(super) async fn an_offer_that_is_declined_is_free<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let (a, b) = (connection(), connection());
    let name = id("<1@t.example>")?;
    same("the offer", service.offer(name, &a).await, Offer::Want)?;
    service.decline(name, &b);
    same(
        "another peer's",
        service.offer(name, &b).await,
        Offer::Later(Defer::UnderWay),
    )?;
    service.decline(name, &a);
    same("declined", service.offer(name, &b).await, Offer::Want)
}

pub(super) async fn an_offer_that_was_sent_is_known<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let (a, b) = (connection(), connection());
    let name = id("<1@t.example>")?;
    same("the offer", service.offer(name, &a).await, Offer::Want)?;
    let wire = article("<1@t.example>", TEST, "", "a\r\n");
    let articles = [("<1@t.example>".to_owned(), wire)];
    same(
        "the transfer",
        send_all(&*service, &a, &articles).await?,
        vec![Outcome::Accepted],
    )?;
    same(
        "another peer's offer",
        service.offer(name, &b).await,
        Offer::Known,
    )
}

pub(super) async fn bad_octets_are_refused<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    for (body, reason) in [
        ("a\0b\r\n", Reject::Nul),
        ("a\rb\r\n", Reject::BareCr),
        ("a\nb\r\n", Reject::BareLf),
        ("a\n.\nQUIT\r\n", Reject::BareLf),
        ("a\r\r\n", Reject::BareCr),
    ] {
        let wire = article("<1@t.example>", TEST, "", body);
        let got = send(&*service, "<1@t.example>", &wire).await?;
        same(&format!("{body:?}"), got, Outcome::Rejected(reason))?;
    }
    same("articles", group(&*service, TEST).await?.count, 0)
}

pub(super) async fn bad_articles_are_refused_with_their_reason<M: Maker>(
    m: &M,
) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let good = String::from_utf8_lossy(&article("<1@t.example>", TEST, "", "a\r\n")).into_owned();
    let without = |name: &str| {
        let lines = good
            .split_inclusive("\r\n")
            .filter(|line| !line.starts_with(name));
        lines.collect::<String>()
    };
    let us = m.path_identity();
    for (wire, reason) in [
        (without("Path:"), Reject::NoPath),
        (without("From:"), Reject::NoFrom),
        (without("Newsgroups:"), Reject::NoNewsgroups),
        (without("Subject:"), Reject::NoSubject),
        (without("Date:"), Reject::NoDate),
        (without("Message-ID:"), Reject::NoMessageId),
        (
            good.replace("Subject: ", "Subject: a\r\nSubject: "),
            Reject::DoubledHeader,
        ),
        (good.replace("Thu, 01 Jan", "someday"), Reject::BadDate),
        (good.replace("2026", "2099"), Reject::FutureDate),
        (
            good.replace("<1@t.example>", "<2@t.example>"),
            Reject::OtherMessageId,
        ),
        (
            good.replace("misc.test", "no.such.group"),
            Reject::UnknownGroups,
        ),
        (
            good.replace("misc.test", "misc..test"),
            Reject::BadNewsgroups,
        ),
        (
            good.replace("peer.example!", &format!("peer.example!{us}!")),
            Reject::Loop,
        ),
        (
            good.replace("Subject: ", "no colon\r\nSubject: "),
            Reject::BadHeaderLine,
        ),
        (good.replace("\r\n\r\na\r\n", "\r\n"), Reject::NoBody),
    ] {
        let got = send(&*service, "<1@t.example>", wire.as_bytes()).await?;
        same(&wire, got, Outcome::Rejected(reason))?;
    }
    accepted(&*service, "<1@t.example>", good.as_bytes()).await
}

pub(super) async fn a_refusal_does_not_block_a_good_copy<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let bad = article("<1@t.example>", TEST, "", "a\0\r\n");
    send(&*service, "<1@t.example>", &bad).await?;
    let offer = service.offer(id("<1@t.example>")?, &connection()).await;
    same("an offer after junk under its id", offer, Offer::Want)?;
    accepted(
        &*service,
        "<1@t.example>",
        &article("<1@t.example>", TEST, "", "a\r\n"),
    )
    .await
}

pub(super) async fn large_articles_pass<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let line = format!("{}\r\n", "0123456789abcdef".repeat(8));
    let body = line.repeat(700 * 1024 / line.len());
    accepted(
        &*service,
        "<1@t.example>",
        &article("<1@t.example>", TEST, "", &body),
    )
    .await?;
    let query = ArticleQuery::ById(id("<1@t.example>")?);
    let (_, _, got) = read(&*service, query, Part::Body)
        .await?
        .ok_or("not found")?;
    if got == format!("{body}.\r\n") {
        Ok(())
    } else {
        Err(format!(
            "a body of {} octets came back as other {} octets",
            body.len(),
            got.len()
        ))
    }
}

pub(super) async fn crossposts_are_in_every_group<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&["a.one", "a.two", "a.three"]).await;
    let first = article("<1@t.example>", "a.two", "", "a\r\n");
    accepted(&*service, "<1@t.example>", &first).await?;
    let groups = "a.one,no.such.group,a.two";
    accepted(
        &*service,
        "<2@t.example>",
        &article("<2@t.example>", groups, "", "b\r\n"),
    )
    .await?;
    for (name, number) in [("a.one", 1), ("a.two", 2)] {
        let info = group(&*service, name).await?;
        same(name, info.high.0, number)?;
        let query = ArticleQuery::ByNumber(info.id, ArticleNumber(number));
        let (_, got, head) = read(&*service, query, Part::Head)
            .await?
            .ok_or("not found")?;
        same("its message-id", got.as_str(), "<2@t.example>")?;
        let xref = head
            .split("\r\n")
            .find(|line| line.starts_with("Xref: "))
            .unwrap_or_default();
        let mut places: Vec<&str> = xref.split(' ').skip(2).collect();
        places.sort_unstable();
        same("Xref", places, vec!["a.one:1", "a.two:2"])?;
    }
    same(
        "the third group",
        group(&*service, "a.three").await?.count,
        0,
    )
}
