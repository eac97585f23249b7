//! One server elsewhere: its connections, what it can do, and the list of its groups.

use std::fmt;
use std::sync::Arc;

use newsreel_host::Clock;
use newsreel_net::LineLimit;
use newsreel_net::client::{Capabilities, ClientError, Connect, Pool};
use newsreel_service::posting::IdMaker;
use newsreel_service::{Defer, Outcome, Reject};
use newsreel_wire::MessageId;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use tokio::sync::Mutex as TurnMutex;
use tokio::time::Instant;

use super::RemoteSettings;
use super::listing::Listing;
use super::names::Names;

/// Message-ids that a server does not have are remembered so many at most, for each server.
pub const MISSING_IDS_MAX: usize = 10_000;

/// What all servers share.
pub(super) struct Common {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: RemoteSettings,
    pub(super) names: Mutex<Names>,
    pub(super) ids: IdMaker,
}

/// A server.
pub(super) struct One<C: Connect> {
    pub(super) pool: Arc<Pool<C>>,
    pub(super) common: Arc<Common>,
    /// What the server said last that it can do.
    pub(super) capabilities: Mutex<Capabilities>,
    /// Held while the list is fetched, so that it is fetched once for all who want it.
    pub(super) listing: TurnMutex<Option<Arc<Listing>>>,
    /// Message-ids that it said it does not have, and when.
    missing: Cache<Box<[u8]>, Instant>,
    pub(super) lines: LineLimit,
}

impl<C: Connect> fmt::Debug for One<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("One")
            .field("pool", &self.pool.counts())
            .finish_non_exhaustive()
    }
}

/// What became of a post.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// That is the answer.
    Settled(Outcome),
    /// It was not sent: another server may be tried.
    NotHere(Outcome),
}

impl<C: Connect> One<C> {
    pub(super) fn new(pool: Arc<Pool<C>>, common: &Arc<Common>) -> Self {
        Self {
            pool,
            common: Arc::clone(common),
            capabilities: Mutex::default(),
            listing: TurnMutex::new(None),
            missing: Cache::new(MISSING_IDS_MAX),
            lines: LineLimit::default(),
        }
    }

    /// Whether it tells overview lines by message-id.
    pub(super) fn has_over_by_id(&self) -> bool {
        self.capabilities.lock().has_with("OVER", "MSGID")
    }

    /// Whether it said not long ago that it does not have this.
    pub(super) fn lacks(&self, id: MessageId<'_>) -> bool {
        let refresh = self.common.settings.missing_refresh;
        let since = self.missing.get(id.as_bytes());
        since.is_some_and(|since| since.elapsed() < refresh)
    }

    /// It said that it does not have this, which is no word about other servers.
    pub(super) fn said_missing(&self, id: MessageId<'_>) {
        if !self.common.settings.missing_refresh.is_zero() {
            self.missing.insert(id.as_bytes().into(), Instant::now());
        }
    }

    /// It may have this by now.
    pub(super) fn may_have(&self, id: MessageId<'_>) {
        self.missing.remove(id.as_bytes());
    }

    /// Sends a post on; what the server says of it.
    pub(super) async fn posted(&self, article: &[u8]) -> Sent {
        let Ok(mut client) = self.lend().await else {
            return Sent::NotHere(Outcome::Deferred(Defer::Paused));
        };
        let refused = Outcome::Rejected(Reject::RefusedElsewhere);
        let posting = async {
            client.command(&[b"POST"])?;
            match client.reply("POST").await? {
                340 => {}
                440 => return Ok(Sent::NotHere(refused)),
                code => return Err(client.refused("POST", code)),
            }
            client.article(article).await?;
            match client.reply("POST").await? {
                240 => Ok(Sent::Settled(Outcome::Accepted)),
                440 | 441 => Ok(Sent::Settled(refused)),
                code => Err::<_, ClientError>(client.refused("POST", code)),
            }
        };
        match posting.await {
            Ok(sent) => {
                client.give_back();
                sent
            }
            Err(error) => {
                self.failed(&error);
                Sent::Settled(Outcome::Failed)
            }
        }
    }
}
