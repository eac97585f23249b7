//! The scrub of one buffer: what its walk meets is told, and mended where something proves what it was.
//!
//! The walk goes from the oldest article to what was the newest when it began, piece by piece, with a pause behind each; no lock is held
//! meanwhile.  Who is overtaken by the free pointer goes on with what is the oldest by then: what was overwritten is no damage.
//! Where articles are files of their own, those to which no card leads are looked at behind it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use newsreel_store::{BufferReader, Error as StoreError, HeaderWrite, is_withdrawn};
use newsreel_wire::{BufferId, IdHash, Position, Token, TokenText};

use crate::counters::Counters;
use crate::pace::Pace;
use crate::report::Damage;
use crate::scrub_bits::{Bits, GAPS_MAX};
use crate::scrub_left::LeftOver;
use crate::scrub_looked::Looked;
use crate::scrub_packed::Undone;
use crate::scrub_state::{KNOWN_MAX, Tally};
use crate::scrub_strays::Strays;
use crate::shared::Shared;
use crate::walk::{Met, Walk};

/// What was done since it was told last.
pub(crate) struct Piece {
    /// All before this is done.
    pub(crate) at: Position,
    /// Octets of the buffer that lie behind.
    pub(crate) passed: u64,
    /// Articles that were compared, octets that were read.
    pub(crate) tally: Tally,
    /// Articles that were compared and that nobody is led to any more.
    pub(crate) withdrawn: u64,
    /// Articles that were compared and that a log which was put back older than they are does not know.
    pub(crate) unknown: u64,
    /// How long to wait now.
    pub(crate) pause: Duration,
}

/// Who has a buffer scrubbed.
pub(crate) trait Scrubber {
    /// Told of each piece; waits as long as is said, and says whether to go on.
    fn passed(&mut self, piece: &Piece) -> bool;

    /// Told of each damaged place.
    fn damaged(&mut self, damage: Damage);

    /// Told of so many more than are kept in mind.
    fn more_damaged(&mut self, _count: u64) {}

    /// Told what was wrong with a buffer's header, and what was done.
    fn mended(&mut self, _what: String) {}

    /// Told of each article whose file is not there; whether that is no damage.
    fn removed(&mut self, token: &Token, id_hash: &IdHash) -> bool;
}

/// What a scrub of one buffer has met.
struct Scrub<'a> {
    shared: &'a Shared,
    buffer: &'a Arc<dyn BufferReader>,
    again: Again,
    bits: Bits,
    seen: &'a mut Seen,
    left: LeftOver<'a>,
    undone: Undone,
    /// So many were counted by an earlier walk.
    before: u64,
    /// Sound articles since the last piece, and such as nobody is led to.
    articles: u64,
    withdrawn: u64,
    unknown: u64,
}

impl Scrub<'_> {
    /// Counts one that nobody is led to: it was withdrawn, or it lies behind what a log knows that was put back.
    fn gone(&mut self, token: &Token, id_hash: &IdHash) {
        let shared = self.shared;
        let is_behind = shared
            .scrubs
            .lock()
            .is_distrusted(token.buffer(), token.position());
        let is_unknown = is_behind
            && matches!(shared.views.history().lookup(id_hash), Ok(None))
            && !is_withdrawn(self.buffer.as_ref(), token).unwrap_or(false);
        match is_unknown {
            true => self.unknown += 1,
            false => self.withdrawn += 1,
        }
    }

    /// Notes what a step met; whether the walk goes back to it, as it was written again.
    fn meets(&mut self, met: Met, walk: &mut Walk<'_>, scrubber: &mut dyn Scrubber) -> bool {
        let (shared, buffer) = (self.shared, self.buffer);
        let is_left = self.left.is(&met);
        match met {
            Met::Sound {
                token,
                id_hash,
                is_withdrawn,
                ..
            } => {
                match is_withdrawn {
                    _ if is_left => {}
                    true => self.gone(&token, &id_hash),
                    false => {
                        self.articles += u64::from(self.before == 0);
                        self.before = self.before.saturating_sub(1);
                    }
                }
                let met = (token, id_hash);
                self.bits.met(buffer.as_ref(), met, is_withdrawn);
                self.again.is_sound(buffer, token.position(), scrubber);
            }
            Met::Damaged(at, _) | Met::Torn(at, _) if self.again.is_tried(shared, walk, at) => {
                return true;
            }
            Met::Damaged(at, damage) | Met::Torn(at, Some(damage)) => {
                self.bits.is_unsure = true;
                if !self.undone.is_one_more(buffer, at, &damage) {
                    self.seen.damage(shared, at, *damage, scrubber);
                }
            }
            Met::Torn(_, None) => self.bits.is_unsure = true,
            Met::Lost(at, damage) => self.seen.damage(shared, at, *damage, scrubber),
            Met::MoreLost(more) => self.seen.more(shared, more, scrubber),
            Met::Removed(token, id_hash, damage) => {
                if !scrubber.removed(&token, &id_hash) {
                    self.seen
                        .damage(shared, token.position(), *damage, scrubber);
                }
            }
            Met::Passed | Met::Unwanted { .. } => {}
        }
        false
    }

    /// So many octets more were read.
    fn piece(&mut self, walk: &mut Walk<'_>, octets: u64, pace: &mut Pace) -> Piece {
        let shared = self.shared;
        self.bits.is_unsure |= walk.has_missed();
        self.bits.is_blind |= walk.is_blind();
        walk.take_gaps(&mut self.bits.gaps);
        self.bits.gaps.truncate(GAPS_MAX + 1);
        self.bits.look(shared, self.buffer, walk.at());
        let tally = shared.scrubbed(std::mem::take(&mut self.articles), octets);
        Piece {
            withdrawn: std::mem::take(&mut self.withdrawn),
            unknown: std::mem::take(&mut self.unknown),
            ..piece(
                shared,
                (walk.settled_at(), walk.octets_passed()),
                tally,
                pace,
            )
        }
    }

    /// Tells what is known at the end of a stretch.
    fn end(mut self, stretch: Range<Position>, scrubber: &mut dyn Scrubber) {
        let (shared, buffer) = (self.shared, self.buffer);
        let left = self.bits.settle(shared, buffer);
        // One more shows that there are more than are kept in mind.
        let told_max = KNOWN_MAX + 1;
        for at in left.iter().take(told_max) {
            let damage = by_the_bitmap(buffer, *at);
            self.seen.damage(shared, *at, damage, scrubber);
        }
        let more = left.len().saturating_sub(told_max) as u64;
        if more > 0 {
            self.seen.more(shared, more, scrubber);
        }
        let told = self.bits.told(buffer.name()).chain(self.left.end());
        for what in told.chain(self.undone.told(buffer.name())) {
            scrubber.mended(what);
        }
        self.seen.tell(shared, stretch);
    }
}

/// Compares what is alive in a buffer from a position on, up to what is the newest now.  Says whether it came to the end.
pub(crate) fn scrub_buffer(
    shared: &Shared,
    buffer: &Arc<dyn BufferReader>,
    from: Position,
    pace: &mut Pace,
    scrubber: &mut dyn Scrubber,
) -> Result<bool, StoreError> {
    buffer.look()?;
    mend_header(shared, buffer, scrubber);
    // Where each article is a file, what is damaged is told when it is known whether the files make up for it.
    let mut seen = Seen::new(buffer.id());
    seen.holds = buffer.removes_files();
    let mut counted = 0;
    let at = walk_buffer(
        shared,
        buffer,
        from,
        pace,
        (&mut *scrubber, &mut seen, &mut counted),
    );
    let mut strays = Strays::of(shared, buffer);
    if let (Ok(Some(at)), Some(looked)) = (&at, Looked::of(shared, buffer)) {
        return look_at_files(shared, looked, *at, pace, scrubber);
    }
    let looked = match (&at, &mut strays) {
        (Ok(Some(at)), Some(strays)) => look_for_strays(shared, strays, *at, pace, scrubber),
        (Ok(at), _) => Ok(at.is_some()),
        (Err(_), _) => Ok(false),
    };
    let restored = strays.as_ref().map_or(0, Strays::restored);
    if let Ok(true) = looked {
        for what in strays.map(Strays::told).unwrap_or_default() {
            scrubber.mended(what);
        }
    }
    if restored == 0 || !matches!(looked, Ok(true)) {
        seen.tell_held(shared, scrubber);
        return at.and(looked);
    }
    // What it met before is met again, if it is damaged still.
    seen = Seen::new(buffer.id());
    let at = walk_buffer(
        shared,
        buffer,
        from,
        pace,
        (scrubber, &mut seen, &mut counted),
    )?;
    Ok(at.is_some())
}

/// Compares what is alive in a buffer; where that ended, `None` where it was told to stop.  `counted` articles were counted before and
/// are not counted again.
fn walk_buffer(
    shared: &Shared,
    buffer: &Arc<dyn BufferReader>,
    from: Position,
    pace: &mut Pace,
    (scrubber, seen, counted): (&mut dyn Scrubber, &mut Seen, &mut u64),
) -> Result<Option<Position>, StoreError> {
    let until = newest_in(buffer);
    let mut walk = Walk::new(shared, buffer, from);
    let (mut octets_counted, before) = (0, *counted);
    let mut scrub = Scrub {
        shared,
        buffer,
        again: Again::default(),
        bits: Bits::new(walk.at()),
        seen,
        left: LeftOver::new(shared, buffer),
        undone: Undone::default(),
        before,
        articles: 0,
        withdrawn: 0,
        unknown: 0,
    };
    let (mut is_overtaken, mut is_over) = (false, false);
    while !is_over {
        if walk.at() < buffer.floor() {
            walk = Walk::new(shared, buffer, buffer.floor());
            (is_overtaken, octets_counted) = (true, 0);
            scrub.bits.restart(walk.at());
        }
        // By itself a walk ends at what was the newest when it began.
        let is_there = is_overtaken && walk.at() >= until;
        let met = if is_there { walk.end()? } else { walk.step()? };
        is_over = met.is_none();
        // Nothing is lost where the directory is not there in which it should be.
        if met.as_ref().is_some_and(Met::is_loss) {
            buffer.look()?;
        }
        if met.is_some_and(|met| scrub.meets(met, &mut walk, scrubber)) {
            continue;
        }
        let octets = walk.octets_read() - octets_counted;
        if octets == 0 && !is_over {
            continue;
        }
        octets_counted += octets;
        *counted += scrub.articles;
        let piece = scrub.piece(&mut walk, octets, pace);
        if !scrubber.passed(&piece) {
            return Ok(None);
        }
    }
    scrub.end(from..walk.at(), scrubber);
    Ok(Some(walk.at()))
}

/// What is to be told of so much, up to there.
fn piece(shared: &Shared, (at, passed): (Position, u64), tally: Tally, pace: &mut Pace) -> Piece {
    Piece {
        at,
        passed,
        tally,
        withdrawn: 0,
        unknown: 0,
        pause: pace.pause(tally.octets, shared.clock.monotonic()),
    }
}

/// Behind the newest article of a buffer.
pub(crate) fn newest_in(buffer: &Arc<dyn BufferReader>) -> Position {
    let facts = buffer.facts();
    Position::checked(facts.cycle, facts.free_offset).unwrap_or_default()
}

/// An article of which nothing is left but a bit.
fn by_the_bitmap(buffer: &Arc<dyn BufferReader>, at: Position) -> Damage {
    let name = buffer.name();
    let token = TokenText { name, position: at };
    Damage {
        buffer: name.to_owned(),
        cycle: Some(at.cycle()),
        from: at.offset(),
        to: at.offset() + buffer.octets_for(0),
        sequence: None,
        token: Some(token.to_string()),
        file: None,
        message_id: None,
        groups: Vec::new(),
        is_denied: false,
        means: "by the bitmap of the buffer an article begins there; the history leads to none, so that nobody misses it",
    }
}

/// Looks through the files of a set for those to which no card leads, behind a walk that ended there.  Says whether it came to the end.
fn look_for_strays(
    shared: &Shared,
    strays: &mut Strays<'_>,
    at: Position,
    pace: &mut Pace,
    scrubber: &mut dyn Scrubber,
) -> Result<bool, StoreError> {
    while let Some(octets) = strays.step()? {
        let tally = shared.scrubbed(0, octets);
        let piece = piece(shared, (at, u64::MAX), tally, pace);
        if !scrubber.passed(&piece) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The same for who only looks.
fn look_at_files(
    shared: &Shared,
    mut looked: Looked<'_>,
    at: Position,
    pace: &mut Pace,
    scrubber: &mut dyn Scrubber,
) -> Result<bool, StoreError> {
    while let Some(octets) = looked.step()? {
        let tally = shared.scrubbed(0, octets);
        let piece = piece(shared, (at, u64::MAX), tally, pace);
        if !scrubber.passed(&piece) {
            return Ok(false);
        }
    }
    for what in looked.told() {
        scrubber.mended(what);
    }
    Ok(true)
}

/// The damage that a scrub meets in a buffer, as far as anybody keeps it in mind.
struct Seen {
    buffer: BufferId,
    damaged: BTreeSet<Position>,
    /// It is not told yet, and kept here.
    holds: bool,
    held: Vec<(Position, Damage)>,
}

impl Seen {
    const fn new(buffer: BufferId) -> Self {
        Self {
            buffer,
            damaged: BTreeSet::new(),
            holds: false,
            held: Vec::new(),
        }
    }

    /// Tells what was kept.
    fn tell_held(&mut self, shared: &Shared, scrubber: &mut dyn Scrubber) {
        self.holds = false;
        for (at, damage) in std::mem::take(&mut self.held) {
            self.damage(shared, at, damage, scrubber);
        }
    }

    fn damage(
        &mut self,
        shared: &Shared,
        at: Position,
        damage: Damage,
        scrubber: &mut dyn Scrubber,
    ) {
        if self.damaged.len() <= KNOWN_MAX {
            self.damaged.insert(at);
        }
        if self.holds {
            self.held.push((at, damage));
            if self.held.len() > KNOWN_MAX {
                self.tell_held(shared, scrubber);
            }
            return;
        }
        shared.found_damaged((self.buffer, at), &damage);
        scrubber.damaged(damage);
    }

    /// So many more are damaged than anybody keeps in mind.
    fn more(&self, shared: &Shared, more: u64, scrubber: &mut dyn Scrubber) {
        shared.unreadable.look_from_now_on();
        let buffer = shared.store.buffer(self.buffer);
        let buffer = buffer.map_or("", |buffer| buffer.name());
        tracing::error!(buffer, more, "so many more articles are lost there");
        scrubber.more_damaged(more);
    }

    /// A stretch was seen whole: what was known to be damaged in it and was not met is sound, or gone.
    fn tell(&self, shared: &Shared, stretch: Range<Position>) {
        if self.damaged.len() <= KNOWN_MAX {
            shared.unreadable.compared(self.buffer, &stretch);
            let mut state = shared.scrubs.lock();
            state.seen(self.buffer, stretch, &self.damaged);
        }
    }
}

/// A header is there to find the articles by; while it is in memory it can be written again.
fn mend_header(shared: &Shared, buffer: &Arc<dyn BufferReader>, scrubber: &mut dyn Scrubber) {
    match buffer.mend_header() {
        Ok(None) => {}
        Ok(Some(what)) => {
            tracing::error!(buffer = buffer.name(), "{what}");
            scrubber.mended(format!("buffer {}: {what}", buffer.name()));
        }
        Err(error) => {
            Counters::add(&shared.counters.disk_errors, 1);
            tracing::error!(buffer = buffer.name(), %error, "its header cannot be looked at");
            scrubber.mended(format!(
                "buffer {}: its header cannot be looked at: {error}",
                buffer.name()
            ));
        }
    }
}

/// What is told of a record whose header was made anew.
const WITHOUT_CHECKSUM: &str = "the header of its record was lost; it was made again from log and history. The text has the lengths, the message-id and the \
                                overview line that they know, but the checksums to compare it with were lost with the header";

/// The record that was written again last: where it begins, and what is to be told of it.
#[derive(Default)]
struct Again(Option<(Position, Told)>);

/// Whose record was written again, and how it was.
struct Told {
    id: String,
    is_vouched: bool,
}

impl Again {
    /// Has the record written again that begins here, if that was not done just now and may do some good; the walk looks again.
    fn is_tried(&mut self, shared: &Shared, walk: &mut Walk<'_>, at: Position) -> bool {
        let is_first = self.0.as_ref().is_none_or(|(tried, _)| *tried != at);
        let mending = is_first.then(|| walk.mending(at)).flatten();
        let Some((id, HeaderWrite { write, is_vouched })) = mending else {
            return false;
        };
        shared.write(write);
        self.0 = Some((at, Told { id, is_vouched }));
        walk.again_from(at);
        true
    }

    /// The record here is sound: it is told if it was not.
    fn is_sound(
        &mut self,
        buffer: &Arc<dyn BufferReader>,
        at: Position,
        scrubber: &mut dyn Scrubber,
    ) {
        if let Some(said) = self.told(buffer, at) {
            scrubber.mended(said);
        }
    }

    /// What is to be told of the record here, if it was written again.
    fn told(&mut self, buffer: &Arc<dyn BufferReader>, at: Position) -> Option<String> {
        let (_, Told { id, is_vouched }) = self.0.take_if(|(tried, _)| *tried == at)?;
        let what = match is_vouched {
            true => WITHOUT_CHECKSUM,
            false => "the header of its record was damaged; it was written again",
        };
        let name = buffer.name();
        tracing::error!(buffer = name, article = id, "{what}");
        Some(format!("buffer {name}, {id}: {what}"))
    }
}

/// Has those records written again whose headers reads found to be damaged, where something proves what they were.
pub(crate) fn mend_what_reads_met(shared: &Shared) {
    while let Some((buffer, at)) = shared.unreadable.take_waiting() {
        let Some(buffer) = shared.store.buffer(buffer) else {
            continue;
        };
        if let Err(error) = mend_one(shared, buffer, at) {
            tracing::error!(buffer = buffer.name(), %error, "a damaged record cannot be looked at");
        }
    }
}

/// The record that begins here.
fn mend_one(
    shared: &Shared,
    buffer: &Arc<dyn BufferReader>,
    at: Position,
) -> Result<(), StoreError> {
    let mut walk = Walk::of_what_lies_there(shared, buffer, at);
    let mut again = Again::default();
    while let Some(met) = walk.step()? {
        match met {
            Met::Passed => {}
            Met::Damaged(place, _) | Met::Torn(place, _) if place == at => {
                if !again.is_tried(shared, &mut walk, at) {
                    break;
                }
            }
            Met::Sound { token, .. } if token.position() == at => {
                if again.told(buffer, at).is_some() {
                    shared.found_readable(&token);
                }
                break;
            }
            _ => break,
        }
    }
    Ok(())
}
