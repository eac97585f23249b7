//! NEWNEWS, passed on while it comes.
//!
//! A listing that is not finished keeps its connection; given up, that is closed.  What may be told is less than what is asked for where
//! rules of access are in front of us: then the server is asked for the groups that are left, by their names.

use std::collections::VecDeque;
use std::fmt;

use newsreel_net::client::{Connect, Lent};
use newsreel_service::ServiceError;
use newsreel_wire::date::print_nntp;
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{MessageId, UnixTime};

use super::ask::is_stale;
use super::listing::{Wants, together};
use super::one::One;

/// Where a listing stands.
pub struct RemoteNewnews<C: Connect> {
    under_way: Option<Lent<C>>,
    /// The wildmats that are still to be asked for; none: it has not begun.
    waiting: Option<VecDeque<String>>,
}

impl<C: Connect> Default for RemoteNewnews<C> {
    fn default() -> Self {
        Self {
            under_way: None,
            waiting: None,
        }
    }
}

impl<C: Connect> fmt::Debug for RemoteNewnews<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteNewnews")
            .field("is_under_way", &self.under_way.is_some())
            .finish()
    }
}

impl<C: Connect> One<C> {
    /// What the server is asked for, one after the other.
    async fn wildmats(&self, wildmat: &Wildmat) -> Result<VecDeque<String>, ServiceError> {
        if let Some(one) = wildmat.as_one() {
            return Ok([one.to_owned()].into());
        }
        let listing = self.listed(true, Wants::Active, None).await?;
        let names = listing.rows.keys().map(|name| &**name);
        Ok(together(names.filter(|name| wildmat.matches(name))).into())
    }

    pub(super) async fn newnews_of(
        &self,
        wildmat: &Wildmat,
        since: UnixTime,
        cursor: &mut RemoteNewnews<C>,
        limit_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        if cursor.waiting.is_none() {
            cursor.waiting = Some(self.wildmats(wildmat).await?);
        }
        let waiting = cursor.waiting.get_or_insert_default();
        let mut client = match cursor.under_way.take() {
            Some(client) => client,
            None => match waiting.pop_front() {
                Some(next) => self.begun(&next, since).await?,
                None => return Ok(false),
            },
        };
        while out.len() < limit_bytes {
            match client.line("NEWNEWS").await {
                Ok(Some(id)) => {
                    if MessageId::parse(id).is_ok() {
                        out.extend_from_slice(id);
                        out.extend_from_slice(b"\r\n");
                    }
                }
                Ok(None) => {
                    client.give_back();
                    return Ok(!waiting.is_empty());
                }
                Err(error) => return Err(self.failed(&error)),
            }
        }
        cursor.under_way = Some(client);
        Ok(true)
    }

    async fn begun(&self, wildmat: &str, since: UnixTime) -> Result<Lent<C>, ServiceError> {
        let mut moment = Vec::new();
        print_nntp(since, &mut moment);
        let (date, time) = moment.split_at_checked(8).unwrap_or_default();
        let words = [b"NEWNEWS", wildmat.as_bytes(), date, time, b"GMT"];
        let mut is_again = false;
        loop {
            let mut client = self.lend().await?;
            let asked = async {
                client.command(&words)?;
                match client.reply("NEWNEWS").await? {
                    230 => Ok(()),
                    code => Err(client.refused("NEWNEWS", code)),
                }
            };
            match asked.await {
                Ok(()) => return Ok(client),
                Err(error) if !is_again && is_stale(&error) => is_again = true,
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }
}
