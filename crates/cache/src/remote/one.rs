//! One server elsewhere: its connections, what it can do, and the list of its groups.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use newsreel_host::Clock;
use newsreel_net::LineLimit;
use newsreel_net::client::{Capabilities, Client, ClientError, Connect, Fault, Lent, Pool};
use newsreel_service::posting::IdMaker;
use newsreel_service::{Reject, ServiceError};
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{MessageId, UnixTime};
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex as TurnMutex;
use tokio::time::Instant;

use super::RemoteSettings;
use super::ask::is_stale;
use super::listing::Listing;
use super::names::Names;
use super::route::Route;
use crate::keep::Keep;

/// Message-ids that a server does not have are remembered so many at most, for each server.
pub const MISSING_IDS_MAX: usize = 10_000;

/// Names of groups that a server does not have are remembered so many at most, for each server.
pub const MISSING_GROUPS_MAX: usize = 10_000;

/// When a server was asked for a group that it does not have.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoGroup {
    pub(super) told: UnixTime,
    pub(super) asked: Instant,
}

/// What all servers share.
pub(super) struct Common {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: RemoteSettings,
    pub(super) names: Mutex<Names>,
    pub(super) ids: IdMaker,
    /// Nobody elsewhere is asked.
    pub(super) is_offline: AtomicBool,
    /// What is kept over a restart: lists, and which groups there are.
    pub(super) kept: OnceLock<Arc<Keep>>,
}

/// A server.
pub(super) struct One<C: Connect> {
    /// How its route calls it.
    pub(super) name: String,
    /// The groups that it is asked for.
    groups: Wildmat,
    pub(super) pool: Arc<Pool<C>>,
    pub(super) common: Arc<Common>,
    /// What the server said last that it can do; none: it was never asked.
    pub(super) capabilities: Mutex<Option<Capabilities>>,
    /// Held while the list is fetched, so that it is fetched once for all who want it.
    pub(super) listing: TurnMutex<Option<Arc<Listing>>>,
    /// A list that is to be kept over a restart.
    pub(super) unkept: Mutex<Option<Arc<Listing>>>,
    /// So often a group was said to be gone that the list shows, or may show.
    pub(super) gone: AtomicU64,
    /// ... and so often before the last list that was fetched whole.
    pub(super) gone_followed: AtomicU64,
    /// The list was fetched whole, and nobody has looked yet for what it lacks.
    pub(super) is_newly_whole: AtomicBool,
    /// Message-ids that it said it does not have, and when.
    missing: Cache<Box<[u8]>, Instant>,
    /// Groups that it said it does not have.
    pub(super) no_groups: Cache<Box<str>, NoGroup>,
    pub(super) lines: LineLimit,
    /// The group that was selected last.
    selected: Mutex<Option<Arc<str>>>,
    /// It tells of no message-id before a group is selected.
    wants_group: AtomicBool,
    /// Its LISTGROUP takes no range.
    pub(super) lists_whole: AtomicBool,
}

impl<C: Connect> fmt::Debug for One<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("One")
            .field("pool", &self.pool.counts())
            .finish_non_exhaustive()
    }
}

/// How a post is sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sending {
    /// It may have come there before.
    pub(crate) may_be_there: bool,
    /// Somebody wanted it tried then, though the server may be left alone.
    pub(crate) by_hand: Option<Instant>,
}

/// What became of a post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The server has it.
    Taken,
    /// It refused it: these are its words.
    Refused(String),
    /// It refused it, and has an article with its message-id: these are its words.
    Had(String),
    /// It takes no posts from us: another server may.
    Barred(String),
    /// There was no connection to it: another server may be tried.
    Unreached(String),
    /// It was not sent: another server may be tried.
    Away(String),
    /// What the server made of it is not known.
    Unsure(String),
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken => f.write_str("the server has it"),
            Self::Refused(said) => write!(f, "refused: {said}"),
            Self::Had(said) => write!(
                f,
                "refused, as the server has an article with its message-id: {said}"
            ),
            Self::Barred(said) => write!(f, "the server takes no posts from here: {said}"),
            Self::Unreached(why) | Self::Away(why) => write!(f, "not sent: {why}"),
            Self::Unsure(why) => write!(f, "sent, and what became of it is not known: {why}"),
        }
    }
}

impl<C: Connect> One<C> {
    pub(super) fn new(route: &Route, pool: Arc<Pool<C>>, common: &Arc<Common>) -> Self {
        Self {
            name: route.name.clone(),
            groups: route.groups.clone(),
            pool,
            common: Arc::clone(common),
            capabilities: Mutex::default(),
            listing: TurnMutex::new(None),
            unkept: Mutex::default(),
            gone: AtomicU64::new(0),
            gone_followed: AtomicU64::new(0),
            is_newly_whole: AtomicBool::new(false),
            missing: Cache::new(MISSING_IDS_MAX),
            no_groups: Cache::new(MISSING_GROUPS_MAX),
            lines: LineLimit::default(),
            selected: Mutex::default(),
            wants_group: AtomicBool::new(false),
            lists_whole: AtomicBool::new(false),
        }
    }

    /// Whether it said what it can do.
    pub(super) fn is_known(&self) -> bool {
        self.capabilities.lock().is_some()
    }

    /// A group was selected.
    pub(super) fn has_selected(&self, group: &str) {
        let mut selected = self.selected.lock();
        if selected.as_deref() != Some(group) {
            *selected = Some(group.into());
        }
    }

    /// The group to select before it is asked by message-id, where it wants one: the last, as any will do.
    pub(super) fn group_for_ids(&self) -> Option<Arc<str>> {
        let wants_group = self.wants_group.load(Ordering::Relaxed);
        wants_group.then(|| self.selected.lock().clone()).flatten()
    }

    /// Whether asking again may help, as it said that no group or article is selected: a group that is known is selected then.  Before any
    /// was it is one that is kept.
    pub(super) fn learns(&self, error: &ClientError) -> bool {
        let Fault::Refused {
            code: 411 | 412 | 420,
            ..
        } = error.fault
        else {
            return false;
        };
        let mut selected = self.selected.lock();
        if selected.is_none() {
            let kept = self.common.kept.get();
            let last = kept.and_then(|keep| keep.last_told(|name| self.groups.matches(name)));
            *selected = last.map(Arc::from);
        }
        self.wants_group
            .fetch_or(selected.is_some(), Ordering::Relaxed);
        selected.is_some()
    }

    /// Whether it said that it can do this.
    pub(super) fn has(&self, can: impl FnOnce(&Capabilities) -> bool) -> bool {
        self.capabilities.lock().as_ref().is_some_and(can)
    }

    /// Whether it said that it tells overview lines by message-id.
    pub(super) fn has_over_by_id(&self) -> bool {
        self.has(|said| said.has_with("OVER", "MSGID"))
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

    /// Whether it said of anything that it does not have it.
    pub(super) fn has_missing(&self) -> bool {
        !self.missing.is_empty()
    }

    /// It may have this by now.
    pub(super) fn may_have(&self, id: MessageId<'_>) {
        self.missing.remove(id.as_bytes());
    }

    /// A connection on which the server waits for a post; else what became of that.  A connection that turns out to be closed is replaced
    /// once: nothing was sent on it.
    async fn asked_to_post(
        &self,
        id: MessageId<'_>,
        sending: Sending,
    ) -> Result<Lent<C>, Delivery> {
        let mut is_again = false;
        loop {
            let lent = self.lend_by_hand(sending.by_hand).await;
            let mut client = lent.map_err(|error| match error {
                ServiceError::Offline => Delivery::Unreached(
                    "this server is offline; it is sent when that is over".to_owned(),
                ),
                error => Delivery::Unreached(error.to_string()),
            })?;
            let asking = async {
                if sending.may_be_there && is_there(&mut client, id).await? {
                    return Ok(Some(Delivery::Taken));
                }
                client.command(&[b"POST"])?;
                let code = client.reply("POST").await?;
                Ok(match code {
                    340 => None,
                    440 | 480 | 502 => Some(Delivery::Barred(said(code, client.text()))),
                    _ => Some(Delivery::Away(said(code, client.text()))),
                })
            };
            match asking.await {
                Ok(None) => return Ok(client),
                Ok(Some(delivery)) => {
                    client.give_back();
                    return Err(delivery);
                }
                Err(error) if !is_again && is_stale(&error) => is_again = true,
                Err(error) => {
                    self.failed(&error);
                    return Err(Delivery::Away(error.to_string()));
                }
            }
        }
    }

    /// Sends a post on; what the server makes of it.
    pub(super) async fn delivered(
        &self,
        article: &[u8],
        id: MessageId<'_>,
        sending: Sending,
    ) -> Delivery {
        let delivery = match self.asked_to_post(id, sending).await {
            Ok(client) => {
                let may_be_there = sending.may_be_there;
                self.sent(client, article, id, may_be_there).await
            }
            Err(delivery) => delivery,
        };
        match &delivery {
            Delivery::Taken | Delivery::Had(_) => self.may_have(id),
            Delivery::Refused(said) | Delivery::Barred(said) => {
                if let Some(more) = self.lines.admit() {
                    tracing::info!(target: "newsreel::cache", upstream = self.name, id = %id, said, more, "a server elsewhere refuses a post");
                }
            }
            Delivery::Unreached(_) | Delivery::Away(_) | Delivery::Unsure(_) => {}
        }
        delivery
    }

    /// Sends a post to a server that waits for it.
    async fn sent(
        &self,
        mut client: Lent<C>,
        article: &[u8],
        id: MessageId<'_>,
        may_be_there: bool,
    ) -> Delivery {
        let sending = async {
            client.article(article).await?;
            let code = client.reply("POST").await?;
            let said = said(code, client.text());
            match code {
                240 => Ok(Delivery::Taken),
                // From here, where it may have come before.
                440 | 441 if may_be_there && was_mailed(&said) => Ok(Delivery::Taken),
                // That it has it already is no refusal, where it may have it from here.
                440 | 441 if is_there(&mut client, id).await? => match may_be_there {
                    true => Ok(Delivery::Taken),
                    false => Ok(Delivery::Had(said)),
                },
                440 | 441 => Ok(Delivery::Refused(said)),
                _ => Err::<_, ClientError>(client.refused("POST", code)),
            }
        };
        match sending.await {
            Ok(delivery) => {
                client.give_back();
                delivery
            }
            Err(error) => {
                self.failed(&error);
                Delivery::Unsure(error.to_string())
            }
        }
    }
}

/// An answer, as it is told.
fn said(code: u16, text: &[u8]) -> String {
    format!("{code} {}", String::from_utf8_lossy(text))
}

/// Whether these words of a server of our kind say that a moderator has the article.
fn was_mailed(said: &str) -> bool {
    said.ends_with(Reject::MailedBefore.text())
}

/// Whether a server has an article.
async fn is_there<Io>(client: &mut Client<Io>, id: MessageId<'_>) -> Result<bool, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    client.command(&[b"STAT", id.as_bytes()])?;
    Ok(client.reply("STAT").await? == 223)
}
