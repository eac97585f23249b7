//! Articles of buffers, segments and sets of files from elsewhere, taken in: from another machine, or from a spool of which
//! nothing else is left.
//!
//! The records are read by themselves, in the order of the log they came from, and each article that is not known here is
//! filed like one that has just come: stored by our rules, in our log, with our Xref.  It keeps its arrival, and its number in
//! each group unless that group has given it or a later one already; then it gets the next: no number is given twice.  The
//! files are only read.  What is known is passed over, so that the same again, or the rest after a stop, does no harm.
//! So is what the files say was withdrawn there, as far as they do: a cyclic buffer has a bitmap of what is wanted, a segment has it noted
//! behind its end, both as of the last checkpoint; an erased record, or a card that was overwritten, has no article any more.

mod cards;
mod in_place;
mod walk;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use bytes::Bytes;
use newsreel_service::{Completion, Connection, ConnectionId, Outcome, Reject};
use newsreel_store::{BufferReader, Chosen, RuleSubject, open_alone};
use newsreel_wire::article::{self, ArticleFacts, Control, Headers, Known};
use newsreel_wire::nntp::framing::is_whole_block;
use newsreel_wire::{
    ArticleNumber, BufferId, GroupId, GroupName, IdHash, MessageId, SetId, Token, UnixTime,
    newsgroups, overview, xref,
};
use serde::Serialize;

use crate::accept::{Candidate, CandidateBatch, Fed, Kept, PathEntry, small, span, span_of};
use crate::config::Mode;
use crate::control;
use crate::engine::Engine;
use crate::error::Error;
use crate::filing::{number_from, number_max};
use crate::moving::room::Target;
use crate::places::Places;
use crate::requests::GroupSpec;
use crate::scrub_cards::LostCards;
use cards::OfBuffer;
use walk::Walk;

/// So much is handed to the sequencer at once: about as much as one commit holds.
pub const ATTACHED_AT_ONCE_OCTETS: usize = 1 << 20;
/// So many articles are remembered, so that one that comes again is counted once.
pub const THOUGHT_OF_MAX: usize = 1 << 22;
/// A number that is so far behind the one before it is told.
const JUMP_MIN: u64 = 1 << 20;
/// What a number in an Xref takes with what stands around it, at most.
const NUMBER_OCTETS: usize = 18;
/// How long an answer is waited for before it is asked whether any can come.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is to be taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attaching {
    /// Files of buffers or segments, or directories of sets.
    pub paths: Vec<PathBuf>,
    /// Make the groups that are not here; otherwise articles are filed in those that are.
    pub make_groups: bool,
    /// Also articles of which a bitmap says that they were withdrawn there.
    pub withdrawn: bool,
    /// Also where a set keeps less than comes into it: then the oldest of that go.
    pub oldest_may_go: bool,
    /// They stay where they lie: each path is the `file` of a set.
    pub in_place: bool,
    /// Only say what would become of the articles.
    pub dry_run: bool,
}

/// What became of the articles of attached files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Attached {
    /// Taken in.
    pub taken: u64,
    /// ... of which so many have another number in a group than they had: it was given already.
    pub renumbered: u64,
    /// ... of which so many had come there later than now: they come now.
    pub later: u64,
    /// Numbers that groups pass over, as an Xref says so: the largest jump of each group, where it is large.
    pub jumps: Vec<String>,
    /// Their message-ids are known here: they are here, or were.
    pub known: u64,
    /// Known ones of a set of method `attached` that are there again: their cards were lost, and were made again.
    pub cards_made: u64,
    /// ... of which so many have none still: what is attached is not the `file` of that set, or that cannot be read.
    pub cards_lost: u64,
    /// Not taken: their file says that they were cancelled, expired or moved where it was written.
    pub withdrawn: u64,
    /// Damaged, or nothing can be read where they should be.
    pub damaged: u64,
    /// The first of those places: the file, where in it, and why.
    pub places: Vec<String>,
    /// What was wrong with files when they were opened, and bitmaps by which nothing is alive.
    pub warnings: Vec<String>,
    /// Files whose bitmaps are damaged and by which articles were not taken.
    pub doubtful: Vec<String>,
    /// What sets lack for those that would be taken in, where that is only asked.
    pub shortages: Vec<String>,
    /// What sets give up to make room, of what they have now and of what comes.
    pub makes_room: Vec<String>,
    /// Not taken, and why.
    pub refused: BTreeMap<&'static str, u64>,
    /// Groups that were made, or would be.
    pub groups_made: Vec<String>,
    /// Files that could not be opened, or not be read to their ends.
    pub unreadable: Vec<String>,
    /// Directories with files that have no names of articles: how many, and the first of them.
    pub passed_over: Vec<String>,
    /// It was ended before all was done.
    pub is_cut: bool,
}

/// Wakes the thread that waits for answers.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Engine {
    /// Takes in the articles of files from elsewhere; durable when it returns.  `progress` is told octets read, and of how many
    /// about, and says whether to go on.
    ///
    /// # Errors
    /// When a file is none of ours, a set would overwrite what comes by what comes behind it, or this server cannot take articles at
    /// present; what was taken until then is here.
    pub fn attach(
        &self,
        what: &Attaching,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Attached, Error> {
        if !what.dry_run && self.only_looks() {
            return Err(Error::Stopping);
        }
        if what.dry_run || what.in_place || what.oldest_may_go {
            return self.attach_all(what, progress);
        }
        // All is counted before any of it is taken.
        let only_count = Attaching {
            dry_run: true,
            ..what.clone()
        };
        let counted = self.attach_all(&only_count, &mut |read, total| progress(read, 2 * total))?;
        if counted.is_cut {
            return Ok(Attached {
                is_cut: true,
                ..Attached::default()
            });
        }
        if !counted.shortages.is_empty() {
            let shortages = counted.shortages.join("; ");
            return Err(Error::Request(format!("{shortages}; nothing was taken in")));
        }
        if !counted.doubtful.is_empty() {
            let doubtful = counted.doubtful.join("; ");
            return Err(Error::Request(format!("{doubtful}; nothing was taken in")));
        }
        self.attach_all(what, &mut |read, total| progress(total + read, 2 * total))
    }

    fn attach_all(
        &self,
        what: &Attaching,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Attached, Error> {
        let (mut walks, mut total) = (Vec::new(), 0);
        let mut report = Attached::default();
        for path in &what.paths {
            let files = match what.in_place {
                true => self.lent(path)?,
                false => (open_alone(&self.shared.disk, path)?, None),
            };
            total += files.0.octets();
            walks.extend(Walk::new(files, what.withdrawn, &mut report));
        }
        let mut attach = Attach {
            engine: self,
            what,
            report,
            highs: HashMap::new(),
            sink: Arc::new(Connection::new(ConnectionId(u64::MAX), None, None)),
            batch: None,
            octets: 0,
            later: Vec::new(),
            thought_of: HashSet::new(),
            jumps: BTreeMap::new(),
            groups_thought_of: HashMap::new(),
            targets: HashMap::new(),
            cardless: BTreeMap::new(),
            cards: HashMap::new(),
        };
        attach.go_through(&mut walks, &mut |read| progress(read, total))?;
        attach.file()?;
        attach.look_at_room();
        attach.tell_jumps();
        Ok(attach.report)
    }
}

/// An article that a walk has come to.
struct Found<'w> {
    wire: &'w [u8],
    arrival: UnixTime,
    /// Where it lies, in what is read by this.
    token: Token,
    reader: &'w Arc<dyn BufferReader>,
    /// The set that it comes into, if it stays there.
    lends_to: Option<SetId>,
}

/// The header block of one article.
struct Parsed<'w> {
    headers: Headers<'w>,
    facts: ArticleFacts,
    id: MessageId<'w>,
    path: &'w [u8],
}

/// What comes into a set.
struct Coming {
    target: Target,
    octets: u64,
    largest: u64,
}

/// What an article says to servers, if it does.
fn control_of<'w>(headers: &Headers<'w>) -> Option<Control<'w>> {
    headers.content(Known::Control).and_then(Control::parse)
}

/// A run of it.
struct Attach<'a> {
    engine: &'a Engine,
    what: &'a Attaching,
    report: Attached,
    /// The highest number that each group has given, those of this run included.
    highs: HashMap<GroupId, ArticleNumber>,
    sink: Arc<Connection>,
    batch: Option<CandidateBatch>,
    /// Which of the batch had come later than now.
    later: Vec<bool>,
    /// Of what was looked at and passed over since something was filed.
    octets: usize,
    /// What would be known by now, as far as nobody refuses it.
    thought_of: HashSet<IdHash>,
    /// The largest jump in the numbers of each group that has a large one: from where to where.
    jumps: BTreeMap<GroupId, (ArticleNumber, ArticleNumber)>,
    /// The groups that a dry run would have made.
    groups_thought_of: HashMap<String, GroupId>,
    /// Where they go.
    targets: HashMap<SetId, Coming>,
    /// What is known and has lost its card.
    cardless: BTreeMap<BufferId, OfBuffer>,
    /// The cards that are made again.
    cards: HashMap<BufferId, LostCards<'a>>,
}

impl Attach<'_> {
    /// Takes what these come to, in the order of their logs, until they are over or `go_on`, which is told octets read, says to end.
    fn go_through(
        &mut self,
        walks: &mut [Walk],
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), Error> {
        loop {
            // None is taken before it is known what all of them have next.
            if let Some(walk) = walks.iter_mut().find(|walk| walk.is_under_way()) {
                self.octets += walk.advance(&mut self.report);
            } else {
                let next = walks.iter_mut().filter(|walk| walk.here.is_some());
                let next = next.min_by_key(|walk| walk.here);
                let Some((walk, (_, arrival, token))) =
                    next.and_then(|walk| walk.here.take().map(|it| (walk, it)))
                else {
                    return Ok(());
                };
                self.article(&Found {
                    wire: walk.scan.article(),
                    arrival,
                    token,
                    reader: &walk.reader,
                    lends_to: walk.lends_to,
                })?;
            }
            if self.octets >= ATTACHED_AT_ONCE_OCTETS {
                self.file()?;
                if !go_on(walks.iter().map(Walk::octets_read).sum()) {
                    self.report.is_cut = true;
                    return Ok(());
                }
            }
        }
    }

    fn refuse(&mut self, why: &'static str) {
        *self.report.refused.entry(why).or_default() += 1;
    }

    /// Whether it would be dropped as soon as it is there; it is taken account of otherwise.
    fn is_past(&mut self, set: SetId, arrival: UnixTime, len: usize) -> bool {
        let engine = self.engine;
        let coming = self.targets.entry(set).or_insert_with(|| Coming {
            target: Target::of(engine, set),
            octets: 0,
            largest: 0,
        });
        let now = engine.shared.time.judging();
        if coming.target.is_past(arrival, now).is_some() {
            return true;
        }
        let octets = coming.target.octets_for(len as u64);
        coming.octets = coming.octets.saturating_add(octets);
        coming.largest = coming.largest.max(octets);
        false
    }

    /// Whether all of them have room, and what goes to make it.
    fn look_at_room(&mut self) {
        let report = &mut self.report;
        for it in self.targets.values() {
            if self.what.oldest_may_go {
                let goes = it.target.overwrites(it.octets, it.largest);
                report.makes_room.extend(goes);
            } else if self.what.dry_run {
                report
                    .shortages
                    .extend(it.target.shortage(it.octets, it.largest));
            }
            report.makes_room.extend(it.target.makes_room(it.octets));
        }
        report.shortages.sort_unstable();
        report.makes_room.sort_unstable();
    }

    /// Whether it came before, among so many.
    fn is_again(&mut self, hash: IdHash) -> bool {
        match self.thought_of.len() < THOUGHT_OF_MAX {
            true => !self.thought_of.insert(hash),
            false => self.thought_of.contains(&hash),
        }
    }

    /// The header block of an article that is one block and nothing more; or what is wrong with it.
    fn parsed<'w>(&self, wire: &'w [u8]) -> Result<Parsed<'w>, &'static str> {
        if !is_whole_block(wire) {
            // What is behind an end would be the server's word to readers.
            return Err("an end in its midst");
        }
        let limits = self.engine.shared.policy.load().articles.header_limits();
        let headers = Headers::scan_within(wire, limits).map_err(|_| "header block")?;
        let path = headers.content(Known::Path);
        // The log has sixteen bits for its length.
        let path = path.filter(|path| path.len() <= usize::from(u16::MAX));
        let id = headers.content(Known::MessageId);
        let id = id.and_then(|id| MessageId::parse(id).ok());
        match (ArticleFacts::of(&headers), id, path) {
            (Ok(facts), Some(id), Some(path)) => Ok(Parsed {
                headers,
                facts,
                id,
                path,
            }),
            _ => Err("header fields"),
        }
    }

    /// Puts one article into the batch, or counts why not.
    fn article(&mut self, found: &Found<'_>) -> Result<(), Error> {
        let wire = found.wire;
        // Whatever it says, it is here from now on, and goes by age as all else does.
        let arrival = found.arrival.min(self.engine.shared.time.calendar());
        self.octets += wire.len();
        let parsed = self.parsed(wire);
        let Ok(parsed) = parsed.map_err(|why| self.refuse(why)) else {
            return Ok(());
        };
        let (headers, facts, id) = (parsed.headers, parsed.facts, parsed.id);
        let history = self.engine.shared.views.history();
        let (hash, generation) = (self.engine.shared.id_hash(id), history.generation());
        if let Some(known) = history.lookup(&hash)? {
            let is_cardless = self.is_cardless(found, &headers, (hash, &known));
            self.report.known += u64::from(!is_cardless);
            return Ok(());
        }
        let chosen = match found.lends_to {
            Some(set) => Some(in_place::chosen(set)),
            None => self.destination(&headers, wire.len(), arrival),
        };
        let Some((chosen, places)) = self.filed(&headers, chosen)? else {
            return Ok(());
        };
        let is_later = arrival < found.arrival;
        if self.is_only_counted(hash, &places, is_later) {
            return Ok(());
        }
        self.later.push(is_later);
        let (xref, locks) = (headers.get(Known::Xref), headers.content(Known::CancelLock));
        let xref = xref.map(|field| span(field.start, field.end));
        self.put(
            &headers,
            Candidate {
                // Both follow from where it comes in the batch.
                ticket: 0,
                line: 0..0,
                hash,
                generation,
                article: Bytes::copy_from_slice(wire),
                id: span_of(wire, id.as_bytes()),
                path: span_of(wire, parsed.path),
                // What was here or elsewhere before is fed to nobody.
                fed: Fed::default(),
                head_end: small(headers.body_start().saturating_sub(2)),
                octets: small(facts.bytes - xref.as_ref().map_or(0, |xref| xref.len())),
                xref,
                lines: small(facts.lines),
                set: chosen.set,
                format: chosen.format,
                groups: places.iter().map(|(group, _)| *group).collect(),
                locks: locks.map(|locks| span_of(wire, locks)),
                is_control: control_of(&headers).is_some(),
                is_mismatched: false,
                asked: None,
                expires: article::expires(&headers),
                kept: Some(Box::new(Kept {
                    arrival,
                    places,
                    lies_at: found
                        .lends_to
                        .and_then(|_| found.reader.lies_at(&found.token)),
                })),
            },
        );
        Ok(())
    }

    /// Whether it is only asked what would become of one with these places, which is counted.
    fn is_only_counted(&mut self, hash: IdHash, places: &Places, is_later: bool) -> bool {
        let is_again = self.is_again(hash);
        let has_place = is_again || self.number(places);
        if self.what.dry_run {
            match (is_again, has_place) {
                (true, _) => self.report.known += 1,
                (_, true) => self.was_taken(is_later),
                _ => self.refuse(Reject::GroupFull.label()),
            }
        }
        self.what.dry_run
    }

    fn was_taken(&mut self, is_later: bool) {
        self.report.taken += 1;
        self.report.later += u64::from(is_later);
    }

    fn put(&mut self, headers: &Headers<'_>, candidate: Candidate) {
        let batch = self.batch.get_or_insert_with(|| CandidateBatch {
            sink: Arc::clone(&self.sink),
            neighbour: None,
            path_entry: PathEntry::default(),
            is_posted: false,
            candidates: Vec::new(),
            next: 0,
            text: Vec::new(),
            permit: None,
            ended: None,
        });
        let from = batch.text.len();
        if self.engine.shared.config.sequencer.mode == Mode::Reader {
            overview::write_front(headers, &mut batch.text);
        }
        batch.candidates.push(Candidate {
            ticket: batch.candidates.len() as u64,
            line: from..batch.text.len(),
            ..candidate
        });
    }

    /// What the rules choose; counts why that is nothing.
    fn destination(
        &mut self,
        headers: &Headers<'_>,
        octets: usize,
        arrival: UnixTime,
    ) -> Option<Chosen> {
        let subject = RuleSubject {
            headers,
            octets: octets as u64,
            arrival,
        };
        let policy = self.engine.shared.policy.load();
        let Some(chosen) = policy.storage.choose(&subject) else {
            self.refuse(Reject::NoStorageRule.label());
            return None;
        };
        // Xref is ours then, and may be longer.
        let newsgroups = headers.content(Known::Newsgroups).unwrap_or_default();
        let xref = self.engine.shared.path_identity.len() + newsgroups.len();
        let numbers = NUMBER_OCTETS * (1 + newsgroups.split(|octet| *octet == b',').count());
        if self.is_past(chosen.set, arrival, octets + xref + numbers) {
            self.refuse("older than its set keeps, `set.keep_s`");
            return None;
        }
        Some(chosen)
    }

    /// What was chosen, with the places; counts why there are none.
    fn filed(
        &mut self,
        headers: &Headers<'_>,
        chosen: Option<Chosen>,
    ) -> Result<Option<(Chosen, Places)>, Error> {
        let Some(chosen) = chosen else {
            return Ok(None);
        };
        if self.engine.shared.config.sequencer.mode == Mode::Transit {
            return Ok(Some((chosen, Places::new())));
        }
        let control = control_of(headers);
        let mut places = self.places(headers, control.is_some())?;
        match &control {
            // One whose Xref names groups that are not here was filed as that says.
            Some(control) if headers.content(Known::Xref).is_none() => {
                let filed_in = control::filed_in(&self.engine.shared, control);
                places.extend(filed_in.into_iter().map(|group| (group, ArticleNumber(0))));
            }
            None if places.is_empty() => {
                self.refuse(Reject::UnknownGroups.label());
                return Ok(None);
            }
            _ => {}
        }
        Ok(Some((chosen, places)))
    }

    /// Where it was filed, as far as the groups are here: by Xref, or, where it has none, by Newsgroups and without numbers.  A
    /// control message that has none was filed nowhere, and what servers file by themselves no Newsgroups brings.
    fn places(&mut self, headers: &Headers<'_>, is_control: bool) -> Result<Places, Error> {
        let mut named: Vec<(String, ArticleNumber)> = Vec::new();
        match headers.content(Known::Xref) {
            Some(content) => {
                named.extend(xref::places(content).map(|(name, at)| (name.to_owned(), at)));
            }
            None if is_control => {}
            None => {
                let names =
                    newsgroups::split(headers.content(Known::Newsgroups).unwrap_or_default());
                let names = names.flatten().filter(|name| !name.is_of_servers());
                named.extend(names.map(|name| (name.as_str().to_owned(), ArticleNumber(0))));
            }
        }
        let groups_max = self.engine.shared.policy.load().articles.groups_max as usize;
        named.truncate(groups_max);
        let mut places = Places::new();
        for (name, number) in named {
            if let Some(group) = self.group(&name)? {
                places.push((group, number));
            }
        }
        Ok(places)
    }

    /// The group of this name, made if it is to be.
    fn group(&mut self, name: &str) -> Result<Option<GroupId>, Error> {
        let there = || {
            let groups = self.engine.shared.views.groups();
            groups.by_name(name).map(|group| group.id())
        };
        let is_name = GroupName::parse(name.as_bytes()).is_ok();
        if let Some(group) = there() {
            return Ok(Some(group));
        }
        if !self.what.make_groups || !is_name {
            return Ok(None);
        }
        if self.what.dry_run {
            return Ok(Some(self.thought_of(name)));
        }
        let spec = GroupSpec {
            creator: "attach".to_owned(),
            ..GroupSpec::new(name)
        };
        self.engine.add_groups(vec![spec])?;
        self.report.groups_made.push(name.to_owned());
        Ok(there())
    }

    /// An id that no group has, for one that would be made.
    fn thought_of(&mut self, name: &str) -> GroupId {
        if let Some(group) = self.groups_thought_of.get(name) {
            return *group;
        }
        let nth = u32::try_from(self.groups_thought_of.len()).unwrap_or(u32::MAX);
        let group = GroupId(u32::MAX - nth);
        self.groups_thought_of.insert(name.to_owned(), group);
        self.report.groups_made.push(name.to_owned());
        group
    }

    /// Counts an article that cannot keep a number, as the sequencer will find unless others file in the group meanwhile, and notes
    /// where a number is far behind the one before it.  Whether it gets any where it is to have some.
    fn number(&mut self, places: &Places) -> bool {
        let number_max = number_max(self.engine.shared.config.sequencer.number_overflow);
        let (mut is_kept, mut has_place) = (true, places.is_empty());
        for (group, wanted) in places {
            let views = &self.engine.shared.views;
            let high = self.highs.entry(*group);
            let high = high.or_insert_with(|| views.groups().high(*group));
            let number = number_from(high.0 + 1, *wanted, number_max);
            has_place |= number <= number_max;
            is_kept &= number == wanted.0 || wanted.0 == 0;
            // In a group that has given none numbers begin anywhere.
            if high.0 > 0 && number - high.0 > JUMP_MIN {
                let largest = self.jumps.entry(*group).or_insert((*high, *high));
                if number - high.0 > largest.1.0 - largest.0.0 {
                    *largest = (*high, ArticleNumber(number));
                }
            }
            // A group that is full gives none.
            *high = ArticleNumber(number.min(number_max));
        }
        self.report.renumbered += u64::from(!is_kept && has_place);
        has_place
    }

    /// Tells of the numbers that were noted.
    fn tell_jumps(&mut self) {
        for (group, (high, number)) in std::mem::take(&mut self.jumps) {
            let mut made = self.groups_thought_of.iter();
            let made = made.find(|(_, id)| **id == group);
            let known = self.engine.shared.views.groups().by_id(group);
            let name = match &known {
                Some(known) => known.name(),
                None => made.map_or("?", |(name, _)| name.as_str()),
            };
            self.report.jumps.push(format!(
                "{name}: an Xref says {number}, far behind {high} before it: the group goes on there, and gives no number between"
            ));
        }
    }

    /// Has the batch filed, and counts what became of it.
    fn file(&mut self) -> Result<(), Error> {
        self.octets = 0;
        self.make_cards()?;
        let Some(batch) = self.batch.take() else {
            return Ok(());
        };
        let shared = &self.engine.shared;
        let count = batch.candidates.len();
        for candidate in &batch.candidates {
            shared.offers.queue(&candidate.hash);
        }
        if let Err(late) = shared.inbox.push_batch(batch) {
            shared.give_back(late);
        }
        let (later, mut stopped) = (std::mem::take(&mut self.later), None);
        for Completion { ticket, outcome } in self.outcomes(count)? {
            match outcome {
                Outcome::Accepted => {
                    let nth = usize::try_from(ticket).ok();
                    let is_later = nth.and_then(|nth| later.get(nth));
                    self.was_taken(is_later.copied().unwrap_or(false));
                }
                Outcome::Duplicate => self.report.known += 1,
                Outcome::Rejected(why) | Outcome::RejectedField(why, _) => self.refuse(why.label()),
                Outcome::RejectedWith(_, why) => self.refuse(why),
                Outcome::Deferred(_) | Outcome::Failed => stopped = Some(outcome),
            }
        }
        match stopped {
            None => Ok(()),
            Some(why) => Err(Error::Request(format!(
                "this server takes no articles at present ({why:?}; its log says more): {} were taken in; the same again goes \
                 on behind them",
                self.report.taken
            ))),
        }
    }

    /// Waits for so many answers.
    fn outcomes(&self, count: usize) -> Result<Vec<Completion>, Error> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let context = Context::from_waker(&waker);
        let (mut outcomes, mut done) = (Vec::new(), Vec::new());
        while outcomes.len() < count {
            match self.sink.poll_completions(&context, &mut done) {
                Poll::Ready(()) => outcomes.append(&mut done),
                Poll::Pending if self.engine.is_over() => return Err(Error::Stopping),
                Poll::Pending => std::thread::park_timeout(PATIENCE),
            }
        }
        Ok(outcomes)
    }
}
