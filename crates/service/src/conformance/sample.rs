//! Articles, connections and answers for the checks.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use newsreel_wire::{GroupName, MessageId};

use crate::article::{ArticleBuf, ArticleQuery, Part};
use crate::connection::{Completion, Connection, ConnectionId};
use crate::group::GroupInfo;
use crate::service::NewsService;
use crate::transfer::{Outcome, Transfer, TransferKind};

/// An article in wire form.
pub(super) fn article(id: &str, groups: &str, more: &str, body: &str) -> Vec<u8> {
    format!(
        "Path: peer.example!not-for-mail\r\nFrom: A Tester <tester@example.org>\r\n\
         Newsgroups: {groups}\r\nSubject: conformance\r\nDate: Thu, 01 Jan 2026 00:00:00 +0000\r\n\
         Message-ID: {id}\r\n{more}\r\n{body}.\r\n"
    )
    .into_bytes()
}

pub(super) fn id(text: &str) -> Result<MessageId<'_>, String> {
    MessageId::parse(text.as_bytes()).map_err(|error| format!("{text}: {error}"))
}

/// Another connection each time.
pub(super) fn connection() -> Arc<Connection> {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 40);
    let number = ConnectionId(NEXT.fetch_add(1, Ordering::Relaxed));
    Arc::new(Connection::new(number, None, None))
}

/// Sends articles in one batch and waits for all answers, in the order of the articles.
pub(super) async fn send_all<S: NewsService>(
    service: &S,
    from: &Arc<Connection>,
    articles: &[(String, Vec<u8>)],
) -> Result<Vec<Outcome>, String> {
    let mut batch = Vec::new();
    for (ticket, (offered, wire)) in articles.iter().enumerate() {
        batch.push(Transfer {
            ticket: ticket as u64,
            kind: TransferKind::Takethis,
            offered: id(offered)?.into(),
            article: Bytes::copy_from_slice(wire),
        });
    }
    service.transfer(&mut batch, from).await;
    if !batch.is_empty() {
        return Err(format!("{} articles were left in the batch", batch.len()));
    }
    let mut outcomes = vec![None; articles.len()];
    let mut answered = 0;
    while answered < articles.len() {
        let mut completions: Vec<Completion> = Vec::new();
        poll_fn(|cx| from.poll_completions(cx, &mut completions)).await;
        for completion in completions {
            let place = usize::try_from(completion.ticket).ok();
            let slot = place.and_then(|place| outcomes.get_mut(place));
            match slot {
                Some(slot @ None) => *slot = Some(completion.outcome),
                _ => return Err(format!("{completion:?} was not waited for")),
            }
            answered += 1;
        }
    }
    Ok(outcomes.into_iter().flatten().collect())
}

/// Sends one article.
pub(super) async fn send<S: NewsService>(
    service: &S,
    offered: &str,
    wire: &[u8],
) -> Result<Outcome, String> {
    let articles = [(offered.to_owned(), wire.to_vec())];
    let outcomes = send_all(service, &connection(), &articles).await?;
    outcomes
        .first()
        .copied()
        .ok_or_else(|| "no answer".to_owned())
}

/// Sends one article that must be accepted.
pub(super) async fn accepted<S: NewsService>(
    service: &S,
    offered: &str,
    wire: &[u8],
) -> Result<(), String> {
    match send(service, offered, wire).await? {
        Outcome::Accepted => Ok(()),
        other => Err(format!("{offered} got {other:?}")),
    }
}

pub(super) async fn group<S: NewsService>(service: &S, name: &str) -> Result<GroupInfo, String> {
    let parsed = GroupName::parse(name.as_bytes()).map_err(|error| error.to_string())?;
    let info = service
        .group(parsed)
        .await
        .map_err(|error| error.to_string())?;
    info.ok_or_else(|| format!("no group {name}"))
}

/// Reads an article; `None`: not there.
pub(super) async fn read<S: NewsService>(
    service: &S,
    query: ArticleQuery<'_>,
    part: Part,
) -> Result<Option<(u64, String, String)>, String> {
    let mut out = ArticleBuf::new();
    let found = service
        .article(query, part, &mut out)
        .await
        .map_err(|error| error.to_string())?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    Ok(found.map(|found| (found.number.0, text(out.id()), text(out.content()))))
}
