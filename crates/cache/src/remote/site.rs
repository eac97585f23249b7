//! Lists of the site that a server elsewhere keeps: what it recommends to readers, its moderators, and so on (RFC 6048).
//!
//! They are told as one server says them, which is the first that has one.  What each says is kept in memory for as long as the list of
//! groups is, and while it cannot be asked, so that no other server's words stand for it.  Of one that cannot be asked and
//! never was, nothing is known: the next one's are told, and its own as soon as it answers.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use newsreel_net::client::{Client, ClientError, Connect};
use newsreel_service::ServiceError;
use newsreel_wire::nntp::framing::TERMINATOR_LINE;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex as TurnMutex;
use tokio::time::Instant;

use super::RServer;
use super::ask::{PATIENCE, asked};
use super::one::One;

/// The longest list of a site, octets.
const SITE_LIST_OCTETS_MAX: usize = 1 << 20;

/// What is said in errors.
const DOING: &str = "LIST";

/// What a server said last of a list; none: it does not keep it.
type Said = (Instant, Option<Bytes>);

/// All such lists, by the server's place and their keywords.  Held while one is fetched, so that it is fetched once for all who want it.
#[derive(Default)]
pub(super) struct SiteLists(TurnMutex<HashMap<(usize, &'static str), Said>>);

/// Asks for a list; none: the server does not keep it.
async fn fetch<Io>(client: &mut Client<Io>, keyword: &str) -> Result<Option<Bytes>, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    client.command(&[b"LIST", keyword.as_bytes()])?;
    match client.reply(DOING).await? {
        215 => {}
        500..=503 => return Ok(None),
        code => return Err(client.refused(DOING, code)),
    }
    let mut lines = Vec::new();
    client
        .block(DOING, SITE_LIST_OCTETS_MAX, &mut lines)
        .await?;
    lines.truncate(lines.len().saturating_sub(TERMINATOR_LINE.len()));
    Ok(Some(lines.into()))
}

impl<C: Connect> One<C> {
    async fn site_list(
        &self,
        keyword: &str,
        patience: Option<Duration>,
    ) -> Result<Option<Bytes>, ServiceError> {
        Ok(asked!(self, within patience, client => fetch(&mut client, keyword).await))
    }
}

impl<C: Connect> RServer<C> {
    /// Whether a server says that it keeps such a list.
    pub(super) fn keeps_site_list(&self, keyword: &str) -> bool {
        let mut ones = self.ones.iter();
        ones.any(|one| one.has(|said| said.has_with("LIST", keyword)))
    }
}

impl SiteLists {
    /// A list as the first server says it that has one; each is asked where what it said is too old.  That nobody keeps it is known
    /// only when all have said so.
    pub(super) async fn of<C: Connect>(
        &self,
        there: &RServer<C>,
        keyword: &'static str,
    ) -> Result<Option<Bytes>, ServiceError> {
        let refresh = there.common.settings.list_refresh;
        let mut all = self.0.lock().await;
        let mut failed = None;
        for at in there.routes.in_turn(|_| 0) {
            let Some(one) = there.ones.get(at) else {
                continue;
            };
            let said = match all.get(&(at, keyword)).cloned() {
                Some((since, lines)) if since.elapsed() < refresh => lines,
                last => {
                    let last = last.and_then(|(_, lines)| lines);
                    let patience = last.is_some().then_some(PATIENCE);
                    match one.site_list(keyword, patience).await {
                        Ok(lines) => {
                            all.insert((at, keyword), (Instant::now(), lines.clone()));
                            lines
                        }
                        Err(_) if last.is_some() => last,
                        Err(error) => {
                            failed = Some(error);
                            None
                        }
                    }
                }
            };
            if said.is_some() {
                return Ok(said);
            }
        }
        failed.map_or(Ok(None), Err)
    }
}
