//! The accept path: what is decided about an article before it waits for its place in the order.
//!
//! It runs on the task of the connection that brought the article, on all cores, and touches
//! nothing but the article, the groups and the history: shape and syntax (`wire`), then policy
//! (age, size, loop, groups), then the sealed history.  What passes becomes a [`Candidate`]; what
//! does not is answered at once.  Reasons never depend on what other connections are doing.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use newsreel_index::{Error as IndexError, HistoryEntry};
use newsreel_service::{Connection, GroupStatus, Neighbour, OfferedId, Outcome, Reject, Transfer};
use newsreel_store::{Chosen, FileFormat, RuleSubject};
use newsreel_wire::article::{
    ArticleFacts, Content, Control, Headers, Known, RelayFacts, check_relay,
};
use newsreel_wire::path::{self, Diagnostic};
use newsreel_wire::{
    ArticleFault, GroupId, IdHash, MessageId, SetId, UnixTime, Verdict, newsgroups, overview,
};
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::config::{ArticlesConfig, Mode, UnknownGroups};
use crate::control::{self, Asked};
use crate::counters::Counters;
use crate::places::Places;
use crate::shared::{Policy, Shared};

/// An article that may be taken, ready for the sequencer.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// The connection's number for it.
    pub(crate) ticket: u64,
    /// The hash of its message-id.
    pub(crate) hash: IdHash,
    /// The history's generation when it was looked up there in vain.
    pub(crate) generation: u64,
    /// Wire form, terminator included.
    pub(crate) article: Bytes,
    /// The message-id in it.
    pub(crate) id: Range<u32>,
    /// The content of Path in it.
    pub(crate) path: Range<u32>,
    /// What outgoing feeds must know of it.
    pub(crate) fed: Fed,
    /// The whole Xref field in it, to be taken out.
    pub(crate) xref: Option<Range<u32>>,
    /// Where the empty line begins that ends the header block.
    pub(crate) head_end: u32,
    /// Octets without dot-stuffing, terminator and foreign Xref.
    pub(crate) octets: u32,
    /// Lines of the body.
    pub(crate) lines: u32,
    /// The set that the storage rules chose.
    pub(crate) set: SetId,
    /// The form of its file that they say.
    pub(crate) format: Option<FileFormat>,
    /// The groups of Newsgroups that exist here.
    pub(crate) groups: SmallVec<[GroupId; 4]>,
    /// Subject to References of its overview line, in the batch's text.
    pub(crate) line: Range<usize>,
    /// The content of Cancel-Lock in it.
    pub(crate) locks: Option<Range<u32>>,
    /// When it asks to go.
    pub(crate) expires: Option<UnixTime>,
    /// A control message: it is kept even where no group files it.
    pub(crate) is_control: bool,
    /// It came from a configured peer whose name is not the first in Path.
    pub(crate) is_mismatched: bool,
    /// What it asks of the server.
    pub(crate) asked: Option<Box<Asked>>,
    /// What it was given elsewhere, if it comes from there.
    pub(crate) kept: Option<Box<Kept>>,
}

/// What outgoing feeds must know of an article, beside what everybody does.
#[derive(Debug, Default)]
pub(crate) struct Fed {
    /// The content of Newsgroups in it.
    pub(crate) newsgroups: Range<u32>,
    /// The content of Distribution in it; empty where there is none.
    pub(crate) distribution: Range<u32>,
    /// What its body is, if a feed asks.
    pub(crate) content: Option<Content>,
}

impl Fed {
    fn of(shared: &Shared, wire: &[u8], headers: &Headers<'_>, relay: &RelayFacts<'_>) -> Self {
        let asks = shared.feeds.ask_content();
        Self {
            newsgroups: span_of(wire, relay.newsgroups),
            distribution: span_in(wire, headers.content(Known::Distribution)),
            content: asks.then(|| Content::of(headers)),
        }
    }
}

/// What an article keeps of the place it had in another spool, or in this one before its log was lost.
#[derive(Debug)]
pub(crate) struct Kept {
    /// When it arrived there.
    pub(crate) arrival: UnixTime,
    /// Its numbers there; 0 where none is known.
    pub(crate) places: Places,
    /// Where it lies in another spool, if it stays there.
    pub(crate) lies_at: Option<String>,
}

impl Candidate {
    /// Its message-id.
    pub(crate) fn id(&self) -> &[u8] {
        let id = self.id.start as usize..self.id.end as usize;
        self.article.get(id).unwrap_or_default()
    }

    /// A part of it.
    pub(crate) fn part(&self, part: &Range<u32>) -> &[u8] {
        let part = part.start as usize..part.end as usize;
        self.article.get(part).unwrap_or_default()
    }

    /// Where it lies in another spool, if it stays there.
    pub(crate) fn lies_at(&self) -> Option<&str> {
        self.kept.as_ref()?.lies_at.as_deref()
    }

    /// Whether groups may be others behind it.
    pub(crate) fn changes_groups(&self) -> bool {
        match self.asked.as_deref() {
            Some(Asked::Groups(heeding)) => heeding.is_heeded,
            Some(Asked::Signed(_)) => true,
            Some(Asked::Cancel(_) | Asked::Notice(_)) | None => false,
        }
    }

    /// Whether something may be due behind it when it is filed.
    pub(crate) fn is_something_due(&self) -> bool {
        match self.asked.as_deref() {
            Some(Asked::Groups(heeding)) => heeding.is_mailed,
            Some(Asked::Notice(_)) => true,
            Some(Asked::Cancel(_) | Asked::Signed(_)) | None => false,
        }
    }

    /// The content of its Cancel-Lock.
    pub(crate) fn locks(&self) -> Option<&[u8]> {
        let locks = self.locks.as_ref()?;
        self.article.get(locks.start as usize..locks.end as usize)
    }
}

/// Candidates of one connection that came together.
#[derive(Debug)]
pub(crate) struct CandidateBatch {
    pub(crate) sink: Arc<Connection>,
    /// The configured peer they come from.
    pub(crate) neighbour: Option<Arc<Neighbour>>,
    /// What goes in front of the content of Path: our name and the diagnostic.
    pub(crate) path_entry: PathEntry,
    /// They are injected here.
    pub(crate) is_posted: bool,
    pub(crate) candidates: Vec<Candidate>,
    /// The first one the sequencer has not taken up yet.
    pub(crate) next: usize,
    /// Overview text of the candidates.
    pub(crate) text: Vec<u8>,
    /// Room in the queue, given back when the batch is done with.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    /// Who waits until the commit of the last one has ended: told by its end, whatever came of it.
    pub(crate) ended: Option<oneshot::Sender<()>>,
}

/// What goes in front of the content of Path, for who is whom Path says and, behind it, for who is not.
#[derive(Debug, Default)]
pub(crate) struct PathEntry {
    octets: Vec<u8>,
    mismatch_at: usize,
}

impl PathEntry {
    /// It, for an article.
    pub(crate) fn of(&self, is_mismatched: bool) -> &[u8] {
        let (usual, mismatch) = self
            .octets
            .split_at_checked(self.mismatch_at)
            .unwrap_or_default();
        if is_mismatched { mismatch } else { usual }
    }

    /// Our name with the diagnostic of RFC 5537 section 3.2.1: `!!` for a peer that is who the Path says, `.MISMATCH.` for
    /// one that is not, `.SEEN.` when only the address is known, `.POSTED` for what is injected here.  Ends with the delimiter.
    fn write(
        &mut self,
        identity: &str,
        from: &Connection,
        neighbour: Option<&Neighbour>,
        origin: Origin,
    ) {
        let out = &mut self.octets;
        out.clear();
        match (origin, neighbour, from.address()) {
            (Origin::Post(address), ..) => {
                let address = address.map(|address| address.to_string());
                path::write_prefix(identity, Diagnostic::Posted(address.as_deref()), out);
            }
            (Origin::Peer, Some(_), _) => path::write_prefix(identity, Diagnostic::Match, out),
            (Origin::Peer, None, Some(address)) => {
                path::write_prefix(identity, Diagnostic::Seen(&address.to_string()), out);
            }
            (Origin::Peer, None, None) => path::write_prefix(identity, Diagnostic::None, out),
        }
        self.mismatch_at = out.len();
        if let Some(neighbour) = neighbour {
            path::write_prefix(identity, Diagnostic::Mismatch(neighbour.name()), out);
        }
    }
}

/// A batch's memory: candidates, overview text, Path entry.
type BatchMemory = (Vec<Candidate>, Vec<u8>, PathEntry);

/// Judges articles; keeps the memory of batches for the next ones.
#[derive(Debug, Default)]
pub(crate) struct Accept {
    pool: Mutex<Vec<BatchMemory>>,
}

/// Batches whose memory is kept.
const POOL_MAX: usize = 16;
/// Text kept per batch; a larger one is given back.
const TEXT_KEPT_MAX: usize = 1024 * 1024;

impl Accept {
    /// An empty batch for this connection.
    pub(crate) fn batch(
        &self,
        shared: &Shared,
        from: &Arc<Connection>,
        origin: Origin,
    ) -> CandidateBatch {
        let (candidates, text, mut path_entry) = self.pool.lock().pop().unwrap_or_default();
        let neighbour = from.peer().filter(|_| origin == Origin::Peer);
        path_entry.write(&shared.path_identity, from, neighbour.as_deref(), origin);
        CandidateBatch {
            sink: Arc::clone(from),
            neighbour,
            path_entry,
            is_posted: matches!(origin, Origin::Post(_)),
            candidates,
            next: 0,
            text,
            permit: None,
            ended: None,
        }
    }

    /// Counts an answer that needed no place in the order.
    pub(crate) fn count(&self, counters: &Counters, outcome: &Outcome) {
        let counter = match outcome {
            Outcome::Duplicate => &counters.duplicates,
            Outcome::Rejected(_) | Outcome::RejectedField(..) | Outcome::RejectedWith(..) => {
                &counters.rejected
            }
            _ => &counters.failed,
        };
        Counters::add(counter, 1);
    }

    /// Takes a batch's memory back.
    pub(crate) fn recycle(&self, mut batch: CandidateBatch) {
        batch.candidates.clear();
        batch.text.clear();
        let mut pool = self.pool.lock();
        if pool.len() < POOL_MAX && batch.text.capacity() <= TEXT_KEPT_MAX {
            pool.push((batch.candidates, batch.text, batch.path_entry));
        }
    }
}

/// Where articles come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From a peer, relayed.
    Peer,
    /// Injected here, by somebody at this address if it may be told.
    Post(Option<IpAddr>),
}

/// What the history says of the id that an article was offered under.
#[derive(Debug)]
pub(crate) struct LookedUp {
    pub(crate) hash: IdHash,
    /// The history's before it was asked.
    generation: u64,
    found: Result<Option<HistoryEntry>, IndexError>,
}

impl LookedUp {
    /// Waits for the disk.
    pub(crate) fn waiting(shared: &Shared, hash: IdHash) -> Self {
        let history = shared.views.history();
        Self {
            hash,
            generation: history.generation(),
            found: history.lookup(&hash),
        }
    }

    /// From what is in memory.
    pub(crate) fn now(shared: &Shared, offered: &OfferedId) -> Self {
        let history = shared.views.history();
        // It was a message-id before it was kept; what were none, no article has.
        let id = MessageId::parse(offered.as_bytes());
        let hash = id.map_or(IdHash([0; 16]), |id| shared.id_hash(id));
        Self {
            hash,
            generation: history.generation(),
            found: history.lookup_now(&hash),
        }
    }

    /// Whether the disk has to be asked.
    pub(crate) const fn must_wait(&self) -> bool {
        matches!(self.found, Err(IndexError::WouldBlock))
    }

    /// Whether it is in the history.
    pub(crate) const fn is_known(&self) -> bool {
        matches!(self.found, Ok(Some(_)))
    }
}

/// Judges one transfer, whose id was looked up; its age only when the time is known.  `Ok`: a candidate is in the batch.
pub(crate) fn judge(
    shared: &Shared,
    now: Option<UnixTime>,
    transfer: &Transfer,
    looked_up: LookedUp,
    batch: &mut CandidateBatch,
) -> Result<(), Outcome> {
    let policy = shared.policy.load();
    let (articles, wire) = (&policy.articles, &transfer.article[..]);
    if wire.len() > articles.octets_max as usize {
        return Err(Reject::TooLarge.into());
    }
    let (headers, facts, relay) =
        check_syntax(wire, articles).map_err(|fault| Reject::from(&fault))?;
    if relay.message_id.as_bytes() != transfer.offered.as_bytes() {
        return Err(Reject::OtherMessageId.into());
    }
    let xref = headers
        .get(Known::Xref)
        .map(|field| span(field.start, field.end));
    let octets = small(facts.bytes - xref.as_ref().map_or(0, |xref| xref.len()));
    let is_mismatched = held_against_path(&headers, &relay, octets, batch)?;
    match looked_up.found {
        Ok(None) => {}
        Ok(Some(_)) => return Err(Outcome::Duplicate),
        Err(error) => {
            tracing::error!(%error, "history lookup failed; the article is put off");
            return Err(Outcome::Failed);
        }
    }
    check_policy(shared, articles, now, &relay)?;
    let control = relay.control.and_then(Control::parse);
    let groups = match &control {
        Some(control) => control_groups(shared, &policy, &headers, &relay, control)?,
        None => find_groups(shared, &policy, &headers, &relay)?,
    };
    let Chosen { set, format, .. } = choose_set((shared, &policy), now, &headers, wire.len())?;
    let from = batch.text.len();
    if shared.config.sequencer.mode == Mode::Reader {
        overview::write_front(&headers, &mut batch.text);
    }
    batch.candidates.push(Candidate {
        ticket: transfer.ticket,
        hash: looked_up.hash,
        generation: looked_up.generation,
        article: transfer.article.clone(),
        id: span_of(wire, relay.message_id.as_bytes()),
        path: span_of(wire, relay.path.content()),
        fed: Fed::of(shared, wire, &headers, &relay),
        head_end: small(headers.body_start().saturating_sub(2)),
        octets,
        xref,
        lines: small(facts.lines),
        set,
        format,
        groups,
        line: from..batch.text.len(),
        locks: headers
            .content(Known::CancelLock)
            .map(|locks| span_of(wire, locks)),
        expires: relay.expires,
        is_control: control.is_some(),
        is_mismatched,
        asked: control::asked(shared, &policy, &headers, &relay),
        kept: None,
    });
    Ok(())
}

/// Whether the peer it comes from is not who Path says; what it may not send is refused.
fn held_against_path(
    headers: &Headers<'_>,
    relay: &RelayFacts<'_>,
    octets: u32,
    batch: &CandidateBatch,
) -> Result<bool, Reject> {
    let neighbour = batch.neighbour.as_deref();
    let is_mismatched = neighbour.is_some_and(|it| it.diagnostic(&relay.path) != Diagnostic::Match);
    // The log has sixteen bits for the length of Path.
    let entry = batch.path_entry.of(is_mismatched);
    if relay.path.content().len() + entry.len() > usize::from(u16::MAX) {
        return Err(Reject::HeadTooLarge);
    }
    if let Some(neighbour) = neighbour {
        neighbour.judge(headers, relay, octets)?;
        if is_mismatched {
            neighbour.count_mismatch();
        }
    }
    Ok(is_mismatched)
}

/// What any relaying agent must check.
fn check_syntax<'a>(
    wire: &'a [u8],
    articles: &ArticlesConfig,
) -> Result<(Headers<'a>, ArticleFacts, RelayFacts<'a>), ArticleFault> {
    let headers = Headers::scan_within(wire, articles.header_limits())?;
    let facts = ArticleFacts::of(&headers)?;
    let relay = check_relay(&headers, &facts)?;
    Ok((headers, facts, relay))
}

/// Offsets inside an article fit 32 bits: `octets_max` does.
pub(crate) fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

pub(crate) fn span(start: usize, end: usize) -> Range<u32> {
    small(start)..small(end)
}

/// Where a part borrowed from the article lies in it.
pub(crate) fn span_of(wire: &[u8], part: &[u8]) -> Range<u32> {
    let start = part.as_ptr().addr().wrapping_sub(wire.as_ptr().addr());
    debug_assert!(start + part.len() <= wire.len());
    span(start, start + part.len())
}

/// The same of a part that may not be there.
fn span_in(wire: &[u8], part: Option<&[u8]>) -> Range<u32> {
    part.map_or(0..0, |part| span_of(wire, part))
}

/// Age, future, loop: what the article says, against our settings.
fn check_policy(
    shared: &Shared,
    articles: &ArticlesConfig,
    now: Option<UnixTime>,
    relay: &RelayFacts<'_>,
) -> Result<(), Reject> {
    // RFC 5537 section 3.6: the injection date decides when there is one.
    let written = relay.injection_date.unwrap_or(relay.date);
    if now.is_some_and(|now| written.0 > now.0.saturating_add(articles.future_s_max)) {
        return Err(match relay.injection_date {
            Some(_) => Reject::FutureInjectionDate,
            None => Reject::FutureDate,
        });
    }
    let age_s = now.map_or(0, |now| now.0.saturating_sub(written.0));
    if articles.age_s_max > 0 && age_s > articles.age_s_max {
        return Err(Reject::TooOld);
    }
    if relay.path.contains(shared.path_identity.as_bytes()) {
        return Err(Reject::Loop);
    }
    Ok(())
}

/// The groups here that an article belongs to; why it belongs to none.
fn find_groups(
    shared: &Shared,
    policy: &Policy,
    headers: &Headers<'_>,
    relay: &RelayFacts<'_>,
) -> Result<SmallVec<[GroupId; 4]>, Reject> {
    let mut found = SmallVec::new();
    let (mut named, mut wanted, mut closed) = (0, 0u32, 0u32);
    let mut is_junk = false;
    for name in newsgroups::split(relay.newsgroups) {
        named += 1;
        if named > policy.articles.groups_max {
            return Err(Reject::TooManyGroups);
        }
        // A malformed name among good ones is a group that no server has (wire::newsgroups::check).
        let Ok(name) = name else { continue };
        match policy.wanted.verdict(name.as_str()) {
            Verdict::Poison => return Err(Reject::Poisoned),
            Verdict::NoMatch => continue,
            Verdict::Match => wanted += 1,
        }
        // What is filed there is the server's business: who looks for control messages is not to find a flood of articles.
        let is_not_for_it = name.is_of_servers() && headers.get(Known::Control).is_none();
        if shared.config.sequencer.mode == Mode::Transit || is_not_for_it {
            continue;
        }
        let Some(group) = shared.views.groups().by_name(name.as_str()) else {
            continue;
        };
        // An alias is as moderated and as closed as what it leads to.
        let target = group.status().strip_prefix('=');
        let target = target.and_then(|target| shared.views.groups().by_name(target));
        let status = target.as_ref().map_or(group.status(), |it| it.status());
        match GroupStatus::parse(status) {
            Some(GroupStatus::Moderated) if headers.get(Known::Approved).is_none() => {
                return Err(Reject::NotApproved);
            }
            Some(GroupStatus::Junk) => is_junk = true,
            Some(GroupStatus::Closed) => closed += 1,
            _ => found.push(group.id()),
        }
    }
    if wanted == 0 {
        return Err(Reject::Unwanted);
    }
    if found.is_empty() && shared.config.sequencer.mode == Mode::Reader {
        let is_closed = is_junk || closed > 0;
        // Where all are closed nobody is to read it.
        let junk = (wanted > closed).then(|| junk(shared, policy)).flatten();
        found.push(junk.ok_or(match is_closed {
            true => Reject::GroupClosed,
            false => Reject::UnknownGroups,
        })?);
    }
    Ok(found)
}

/// The groups that a control message is filed in; why it is not taken.
fn control_groups(
    shared: &Shared,
    policy: &Policy,
    headers: &Headers<'_>,
    relay: &RelayFacts<'_>,
    control: &Control<'_>,
) -> Result<SmallVec<[GroupId; 4]>, Reject> {
    match find_groups(shared, policy, headers, relay) {
        // Groups that are to be made are not here yet.
        Err(Reject::UnknownGroups | Reject::GroupClosed) if control::is_of_groups(control) => {}
        found => drop(found?),
    }
    Ok(control::filed_in(shared, control))
}

/// The group of articles that no other group here files, if there is to be one.
fn junk(shared: &Shared, policy: &Policy) -> Option<GroupId> {
    match policy.articles.unknown_groups {
        UnknownGroups::Refuse => None,
        UnknownGroups::Junk => Some(shared.views.groups().by_name("junk")?.id()),
    }
}

/// Which buffer set takes it, by the storage rules.
fn choose_set(
    (shared, policy): (&Shared, &Policy),
    now: Option<UnixTime>,
    headers: &Headers<'_>,
    octets: usize,
) -> Result<Chosen, Reject> {
    let subject = RuleSubject {
        headers,
        octets: octets as u64,
        arrival: now.unwrap_or_else(|| UnixTime(shared.clock.now().secs)),
    };
    policy.storage.choose(&subject).ok_or(Reject::NoStorageRule)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A candidate of this article as [`judge`] would make it, for the tests of filing.
    pub(crate) fn candidate_of(article: &'static str) -> Candidate {
        let wire = article.as_bytes();
        let headers = Headers::scan(wire).unwrap();
        let path = headers.get(Known::Path).unwrap();
        Candidate {
            ticket: 0,
            hash: IdHash([0; 16]),
            generation: 0,
            article: Bytes::from_static(wire),
            id: 0..0,
            path: span_of(wire, path.content),
            fed: Fed::default(),
            xref: headers
                .get(Known::Xref)
                .map(|field| span(field.start, field.end)),
            head_end: small(headers.body_start() - 2),
            octets: small(wire.len()),
            lines: 0,
            set: SetId(0),
            format: None,
            groups: SmallVec::new(),
            line: 0..0,
            locks: None,
            expires: None,
            is_control: false,
            is_mismatched: false,
            asked: None,
            kept: None,
        }
    }
}
