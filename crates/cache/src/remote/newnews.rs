//! NEWNEWS, passed on while it comes.
//!
//! A listing that is not finished keeps its connection; given up, that is closed.

use std::fmt;

use newsreel_net::client::{Connect, Lent};
use newsreel_service::ServiceError;
use newsreel_wire::date::print_nntp;
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{MessageId, UnixTime};

use super::one::One;

/// Where a listing stands.
pub struct RemoteNewnews<C: Connect> {
    under_way: Option<Lent<C>>,
}

impl<C: Connect> Default for RemoteNewnews<C> {
    fn default() -> Self {
        Self { under_way: None }
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
    pub(super) async fn newnews_of(
        &self,
        wildmat: &Wildmat,
        since: UnixTime,
        cursor: &mut RemoteNewnews<C>,
        limit_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        let mut client = match cursor.under_way.take() {
            Some(client) => client,
            None => self.begun(wildmat, since).await?,
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
                    return Ok(false);
                }
                Err(error) => return Err(self.failed(&error)),
            }
        }
        cursor.under_way = Some(client);
        Ok(true)
    }

    async fn begun(&self, wildmat: &Wildmat, since: UnixTime) -> Result<Lent<C>, ServiceError> {
        let mut moment = Vec::new();
        print_nntp(since, &mut moment);
        let (date, time) = moment.split_at_checked(8).unwrap_or_default();
        let mut client = self.lend().await?;
        let words = [b"NEWNEWS", wildmat.as_str().as_bytes(), date, time, b"GMT"];
        let asked = async {
            client.command(&words)?;
            match client.reply("NEWNEWS").await? {
                230 => Ok(()),
                code => Err(client.refused("NEWNEWS", code)),
            }
        };
        match asked.await {
            Ok(()) => Ok(client),
            Err(error) => Err(self.failed(&error)),
        }
    }
}
