//! Checks of posts.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use newsreel_wire::article::Known;

use super::sample::{article, connection, group, id, read, send};
use super::{Maker, same};
use crate::article::{ArticleQuery, Part};
use crate::connection::Completion;
use crate::posting::{self, Post, Poster};
use crate::reject::Reject;
use crate::service::NewsService;
use crate::transfer::{Offer, OfferedId, Outcome};

const TEST: &str = "misc.test";

fn proto(more: &str, body: &str) -> Vec<u8> {
    let text = format!(
        "From: A Tester <tester@example.org>\r\nNewsgroups: {TEST}\r\nSubject: s\r\n{more}\r\n{body}.\r\n"
    );
    text.into_bytes()
}

/// Posts one article; what became of it, and its message-id.
async fn post<S: NewsService>(
    service: &S,
    poster: Poster,
    wire: &[u8],
) -> Result<(Outcome, OfferedId), String> {
    let from = connection();
    let made = service.new_message_id();
    let name = posting::own_id(wire).map_or(made, OfferedId::from);
    let post = Post {
        ticket: 7,
        id: name.clone(),
        poster: Arc::new(poster),
        article: Bytes::copy_from_slice(wire),
    };
    service.post(post, &from).await;
    let mut completions: Vec<Completion> = Vec::new();
    poll_fn(|cx| from.poll_completions(cx, &mut completions)).await;
    match completions.as_slice() {
        [one] if one.ticket == 7 => Ok((one.outcome, name)),
        other => Err(format!("a post got {other:?}")),
    }
}

pub(super) async fn a_post_is_injected<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let body = "..dots\r\n\u{e4}\r\n\r\n";
    let (outcome, name) = post(
        &*service,
        Poster::default(),
        &proto("X-Kept:  a\r\n b\r\n", body),
    )
    .await?;
    same("the post", outcome, Outcome::Accepted)?;
    let name = name.to_string();
    let query = ArticleQuery::ById(id(&name)?);
    let (_, _, got_body) = read(&*service, query, Part::Body)
        .await?
        .ok_or("not found")?;
    same("the body", got_body, format!("{body}.\r\n"))?;
    let (_, _, head) = read(&*service, query, Part::Head)
        .await?
        .ok_or("not found")?;
    let us = m.path_identity();
    for part in [
        format!("Path: {us}!.POSTED!not-for-mail\r\n"),
        format!("Message-ID: {name}\r\n"),
        format!("Injection-Info: {us}"),
        "X-Kept:  a\r\n b\r\n".to_owned(),
        "\r\nDate: ".to_owned(),
        "\r\nInjection-Date: ".to_owned(),
    ] {
        if !head.contains(&part) {
            return Err(format!("{part:?} is not in {head:?}"));
        }
    }
    same("articles", group(&*service, TEST).await?.count, 1)
}

pub(super) async fn a_post_is_there_once<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let wire = proto("Message-ID: <1@t.example>\r\n", "x\r\n");
    let mut outcomes = Vec::new();
    for _ in 0..2 {
        outcomes.push(post(&*service, Poster::default(), &wire).await?.0);
    }
    same(
        "both",
        outcomes,
        vec![Outcome::Accepted, Outcome::Duplicate],
    )?;
    let relayed = article("<1@t.example>", TEST, "", "x\r\n");
    let sent = send(&*service, "<1@t.example>", &relayed).await?;
    same("from a peer", sent, Outcome::Duplicate)?;
    let offer = service.offer(id("<1@t.example>")?, &connection()).await;
    same("an offer", offer, Offer::Known)?;
    let relayed = article("<2@t.example>", TEST, "", "x\r\n");
    let sent = send(&*service, "<2@t.example>", &relayed).await?;
    same("from a peer", sent, Outcome::Accepted)?;
    let wire = proto("Message-ID: <2@t.example>\r\n", "x\r\n");
    let (outcome, _) = post(&*service, Poster::default(), &wire).await?;
    same("posted after it", outcome, Outcome::Duplicate)
}

pub(super) async fn posts_are_refused_with_their_reason<M: Maker>(m: &M) -> Result<(), String> {
    let service = m.make(&[TEST]).await;
    let none = Poster::default;
    let others = Poster {
        groups: newsreel_wire::Wildmat::parse("other.*").ok(),
        ..none()
    };
    for (poster, wire, expected) in [
        (
            none(),
            proto("Xref: a b:1\r\n", "x\r\n"),
            Outcome::RejectedField(Reject::ForbiddenHeader, Known::Xref.into()),
        ),
        (
            none(),
            proto("Approved: a@b.example\r\n", "x\r\n"),
            Reject::NoApproval.into(),
        ),
        (none(), proto("", ""), Reject::EmptyBody.into()),
        (none(), proto("", "a\nb\r\n"), Reject::BareLf.into()),
        (others, proto("", "x\r\n"), Reject::NotAllowed.into()),
    ] {
        let (outcome, name) = post(&*service, poster, &wire).await?;
        same("a bad post", outcome, expected)?;
        let name = name.to_string();
        let query = ArticleQuery::ById(id(&name)?);
        same(
            "left of it",
            read(&*service, query, Part::Stat).await?,
            None,
        )?;
    }
    same("high mark", group(&*service, TEST).await?.high.0, 0)
}
