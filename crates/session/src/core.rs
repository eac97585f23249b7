//! What a command's handler works with: the service, the connection's state, and its replies.
//!
//! Replies are gathered in one buffer and leave when the commands that have come are done with, or when the buffer
//! is full; a long reply therefore streams, and a handler's memory is bounded by the chunk.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use newsreel_net::access::{Door, Grant, Pace};
use newsreel_service::posting::{Post, Poster};
use newsreel_service::{Connection, Features, NewsService, Offer, OfferedId, Place, ServiceError};
use newsreel_wire::{ArticleNumber, GroupId, GroupName};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::dispatch::{LOG_IN_FIRST, NOT_PERMITTED, START_TLS_FIRST};
use crate::end::End;
use crate::link::Link;
use crate::memory::Account;
use crate::pool::{self, Scratch};
use crate::sasl::Exchange;
use crate::session::Shared;

/// Content from here on is sent from where it lies instead of being copied behind other replies.
const COPY_BYTES_MAX: usize = 32 << 10;

/// What is said to who has a group selected that has gone.
pub(crate) const SELECTED_GONE: &str = "412 The selected newsgroup has gone\r\n";

/// The group a reader has selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Selected {
    pub(crate) id: GroupId,
    /// The current article; none in a group that was empty (RFC 3977 section 6.1.1.2).
    pub(crate) current: Option<ArticleNumber>,
}

/// What the article that comes next belongs to.
#[derive(Debug)]
pub(crate) enum Incoming {
    Ihave(OfferedId),
    Takethis(OfferedId),
    /// A post, with the message-id it gets if it brings none.
    Post(OfferedId),
    /// It is read to its end and gets this line.
    Refused(&'static str),
}

/// One session's state but for what has come and is not used up.
#[derive(Debug)]
pub(crate) struct Core<S, Io> {
    pub(crate) service: Arc<S>,
    /// What the service can do, as far as it was known when that mattered last.
    pub(crate) features: Features,
    pub(crate) shared: Arc<Shared>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) link: Link<Io>,
    pub(crate) scratch: Option<Box<Scratch>>,
    pub(crate) selected: Option<Selected>,
    /// The selected group's name, kept when nothing is selected for its memory.
    pub(crate) group_name: String,
    /// Set by a handler that wants an article next.
    pub(crate) incoming: Option<Incoming>,
    /// The way in, and who came.
    pub(crate) door: Door,
    /// The name that AUTHINFO USER said, until the password has come.
    pub(crate) login: Option<Box<str>>,
    /// Set by a handler that wants a line of this exchange next.
    pub(crate) exchange: Option<Exchange>,
    /// Whether something came behind the command that is carried out.
    pub(crate) has_more_come: bool,
    /// Its place among the compressed connections.
    pub(crate) compressing: Option<Place<IpAddr>>,
    /// What who is there may do.
    pub(crate) grant: Arc<Grant>,
    /// Unknown commands since the last that was one.
    pub(crate) bad_commands: u32,
    /// How fast commands are taken.
    pub(crate) commands: Pace,
    /// How fast articles of others are taken; none: any number.  Few connections have a pace of them.
    pub(crate) articles: Option<Box<ArticlesPace>>,
    /// Who is there and may post; none: posting is not permitted.
    pub(crate) poster: Option<Arc<Poster>>,
    /// A post that has come and is not handed over: the next POST waits for this one's answer, so there is one at most.
    pub(crate) post: Option<Post>,
    /// Set by what ends the session after its replies.
    pub(crate) ending: Option<End>,
    /// What its large articles may take.
    pub(crate) memory: Account,
}

/// How fast articles of others are taken.
#[derive(Debug)]
pub(crate) struct ArticlesPace {
    pace: Pace,
    /// So long nothing more is taken behind those that have come.
    unpaid: Duration,
}

impl ArticlesPace {
    /// One more has come.
    pub(crate) fn came(&mut self) {
        self.unpaid = self.pace.spend(1);
    }

    /// How long to wait for what has come, which is paid for with that; none: nothing is owed.
    pub(crate) fn owes(&mut self) -> Option<Duration> {
        let unpaid = std::mem::take(&mut self.unpaid);
        (!unpaid.is_zero()).then_some(unpaid)
    }
}

/// The working set of a busy connection.
pub(crate) fn scratch_of(scratch: &mut Option<Box<Scratch>>) -> &mut Scratch {
    scratch.get_or_insert_with(pool::take_scratch)
}

/// The code of a reply line.
fn code_of(line: &[u8]) -> u16 {
    let digit = |at: usize| {
        line.get(at)
            .map_or(0, |octet| u16::from(octet.wrapping_sub(b'0')))
    };
    digit(0)
        .wrapping_mul(100)
        .wrapping_add(digit(1) * 10)
        .wrapping_add(digit(2))
}

impl<S: NewsService, Io: AsyncRead + AsyncWrite + Unpin + Send> Core<S, Io> {
    pub(crate) fn scratch(&mut self) -> &mut Scratch {
        scratch_of(&mut self.scratch)
    }

    /// Takes over what the door grants: at the beginning, and after a login.
    pub(crate) fn take_grant(&mut self) {
        let grant = Arc::clone(self.door.grant());
        let peer = grant.peer.as_deref();
        self.connection
            .belongs_to(peer.and_then(|name| self.shared.metrics.neighbours().get(name)));
        self.poster = grant.post.clone().map(|groups| {
            Arc::new(Poster {
                user: self.door.user().map(Box::from),
                groups: (!groups.matches_all()).then_some(groups),
                may_approve: grant.approve,
            })
        });
        self.link.pace = self.door.octets();
        self.commands = self.door.commands();
        self.articles = self.door.articles().map(|pace| {
            Box::new(ArticlesPace {
                pace,
                unpaid: Duration::ZERO,
            })
        });
        if !grant.reads(&self.group_name) {
            self.selected = None;
        }
        self.grant = grant;
    }

    /// Looks anew at what the service can do, where it was not known that it can do this.
    pub(crate) async fn learn(&mut self, can: fn(Features) -> bool) {
        if !can(self.features) {
            // Boxed: a session that waits is no larger for what few wait for.
            self.features = Box::pin(self.service.learn_features()).await;
        }
    }

    /// What must come first, where that could let be had what may not be had yet: a login (RFC 4643 section 2.1) or TLS
    /// (RFC 4642 section 2.2.2).
    pub(crate) fn not_yet(&self, wants: impl Fn(&Grant) -> bool) -> Option<&'static str> {
        if !self.is_compressed() && self.door.login_helps(&wants) {
            return Some(LOG_IN_FIRST);
        }
        (!self.is_compressed() && self.door.tls_helps(wants)).then_some(START_TLS_FIRST)
    }

    /// Whether COMPRESS was said.
    pub(crate) const fn is_compressed(&self) -> bool {
        self.link.io.is_deflated()
    }

    /// Whether AUTHINFO may come: behind COMPRESS a password's length and more could be told from the octets' number
    /// (RFC 8054 section 2.2.2).
    pub(crate) fn may_log_in(&self) -> bool {
        !self.is_compressed() && self.door.may_log_in()
    }

    /// Whether STARTTLS may come.
    pub(crate) fn may_start_tls(&self) -> bool {
        !self.is_compressed() && self.door.may_start_tls()
    }

    /// What is asked for may not be had, perhaps only not yet.
    pub(crate) fn not_permitted(&self, wants: impl Fn(&Grant) -> bool) -> &'static str {
        self.not_yet(wants).unwrap_or(NOT_PERMITTED)
    }

    /// Whether POST is permitted here and now: what the greeting, MODE READER and CAPABILITIES say too.
    pub(crate) const fn may_post(&self) -> bool {
        self.features.posting && self.poster.is_some()
    }

    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.scratch().out
    }

    /// A whole reply line, CRLF included.
    pub(crate) fn reply(&mut self, line: &str) {
        debug_assert!(line.ends_with("\r\n") && !line[..line.len() - 2].contains(['\r', '\n']));
        self.shared.metrics.reply(code_of(line.as_bytes()));
        self.out().extend_from_slice(line.as_bytes());
    }

    /// A reply line made of parts; its CRLF is added.
    pub(crate) fn reply_parts(&mut self, parts: &[&[u8]]) {
        self.shared
            .metrics
            .reply(code_of(parts.first().copied().unwrap_or_default()));
        let out = self.out();
        for part in parts {
            out.extend_from_slice(part);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Counts what was said to an offer.
    pub(crate) fn count_offer(&self, offer: Offer) {
        if let Offer::Later(why) = offer {
            self.shared.metrics.defer(why);
        }
        if let Some(peer) = self.connection.peer() {
            peer.count_offer(offer);
        }
    }

    /// Counts a reply whose line was written by its handler.
    pub(crate) fn count_reply(&self, line: &[u8]) {
        self.shared.metrics.reply(code_of(line));
    }

    /// What a service that could not answer makes of a command.
    pub(crate) fn reply_error(&mut self, error: &ServiceError) {
        match error {
            ServiceError::Stopping => {
                self.reply("400 Server is stopping\r\n");
                self.ending = Some(End::Stopping);
            }
            other => self.reply_parts(&[b"403 ", other.to_string().as_bytes()]),
        }
    }

    /// Sends what is gathered if it is a chunk or more: called between the parts of a long reply.
    pub(crate) async fn room(&mut self) -> Result<(), End> {
        if self.out().len() >= self.shared.config.reply_chunk_bytes {
            self.flush().await?;
        }
        Ok(())
    }

    /// Between the steps of a listing: sends what is gathered if it is a chunk or has waited, unless the status line may
    /// still be taken back (`begun` is false), and lets others go on.  What the service has in memory never waits, and what
    /// finds little writes little, so a listing would else hold its thread from its beginning to its end.
    pub(crate) async fn step(&mut self, begun: bool) -> Result<(), End> {
        if begun {
            self.room().await?;
            self.hurry().await?;
        }
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Sends what has been gathered for long.  So a listing that finds little is seen to go on, and a client that has gone,
    /// with thousands of commands behind it, costs no more than one: it refuses what it is sent.
    pub(crate) async fn hurry(&mut self) -> Result<(), End> {
        const GATHERED_MAX: Duration = Duration::from_secs(1);
        if self.link.sent_at.elapsed() >= GATHERED_MAX {
            self.flush().await?;
        }
        Ok(())
    }

    /// A command line has come, whatever it is: as many are taken in a second as this connection may say.
    pub(crate) async fn pay_command(&mut self) -> Result<(), End> {
        let pause = self.commands.spend(1);
        if !pause.is_zero() {
            self.flush().await?;
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// Sends what is gathered.
    pub(crate) async fn flush(&mut self) -> Result<(), End> {
        let Some(scratch) = &mut self.scratch else {
            return Ok(());
        };
        if scratch.out.is_empty() {
            return Ok(());
        }
        self.link
            .send(&self.shared.metrics, &[&scratch.out])
            .await?;
        scratch.out.clear();
        Ok(())
    }

    /// Adds the content of the article buffer, and `tail` behind it, to the reply.
    pub(crate) async fn send_article(&mut self, tail: &'static [u8]) -> Result<(), End> {
        let scratch = scratch_of(&mut self.scratch);
        let content = scratch.article.content();
        if content.len() <= COPY_BYTES_MAX {
            scratch.out.extend_from_slice(content);
            scratch.out.extend_from_slice(tail);
            return self.room().await;
        }
        self.link
            .send(&self.shared.metrics, &[&scratch.out, content, tail])
            .await?;
        scratch.out.clear();
        Ok(())
    }

    /// Adds the ready-made parts to the reply.
    pub(crate) async fn send_parts(&mut self) -> Result<(), End> {
        let scratch = scratch_of(&mut self.scratch);
        for part in scratch.parts.drain(..) {
            if part.len() <= COPY_BYTES_MAX && scratch.out.len() < COPY_BYTES_MAX {
                scratch.out.extend_from_slice(&part);
                continue;
            }
            self.link
                .send(&self.shared.metrics, &[&scratch.out, &part])
                .await?;
            scratch.out.clear();
        }
        Ok(())
    }

    /// The selected group, or 412.
    pub(crate) fn selected_or_412(&mut self) -> Option<Selected> {
        if self.selected.is_none() {
            self.reply("412 No newsgroup selected\r\n");
        }
        self.selected
    }

    /// What is said where nothing was found in the selected group: `nothing`, but where that has gone itself.  Then it is no group that could
    /// be selected, which is 412 (RFC 3977 sections 6.1.2 to 6.2.1 and 8.3.1), and none is from now on.
    pub(crate) async fn reply_nothing(&mut self, nothing: &str) {
        if self.has_selected_gone().await {
            self.reply(SELECTED_GONE);
        } else {
            self.reply(nothing);
        }
    }

    /// Whether the selected group has gone; none is selected then.
    pub(crate) async fn has_selected_gone(&mut self) -> bool {
        let name = GroupName::parse(self.group_name.as_bytes());
        let (Some(selected), Ok(name)) = (self.selected, name) else {
            return false;
        };
        // Boxed: a session that waits is no larger for what few wait for.
        let has_gone = Box::pin(self.service.has_gone(selected.id, name)).await;
        if has_gone {
            self.selected = None;
        }
        has_gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        assert_eq!(code_of(b"211 x"), 211);
        assert_eq!(code_of(b""), 0);
    }
}
