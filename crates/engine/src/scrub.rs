//! Scrubbing: every article that is alive is read again, at a limited rate, and its checksums are compared.
//!
//! In the background by one thread, which joins the engine's stop, and on request by the caller's.  Both walk the buffers one after the
//! other (`scrub_walk`); what is read goes around the page cache.  Each damaged place is logged once.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use newsreel_store::{BatchWrite, BufferReader};
use newsreel_wire::{BufferId, IdHash, Position, Token};

use crate::counters::Counters;
use crate::engine::Engine;
use crate::error::Error;
use crate::pace::{LOOK, Pace, rest};
use crate::report::{Damage, ScrubReport, ScrubStatus, ScrubbedBuffer};
use crate::requests::Request;
use crate::scrub_state::{KNOWN_MAX, ScrubState, Tally};
use crate::scrub_walk::{Piece, Scrubber, mend_what_reads_met, scrub_buffer};
use crate::sequencer::Event;
use crate::shared::Shared;

/// Who waits for an answer hears so often how far it is.
const TELL: Duration = Duration::from_millis(200);
/// How far a pass is, is kept so often: so much of it is done again after a crash.
const KEEP_EVERY: Duration = Duration::from_secs(600);

/// How long a commit is waited for that writes a damaged record again, or removes files.
const PATIENCE: Duration = Duration::from_secs(10);

impl Shared {
    /// Counts what was compared and read.
    pub(crate) fn scrubbed(&self, articles: u64, octets: u64) -> Tally {
        Counters::add(&self.counters.scrubbed, articles);
        Counters::add(&self.counters.scrubbed_octets, octets);
        Tally {
            articles,
            octets,
            unreadable: 0,
        }
    }

    /// Has something written with the next commit, and waits for that; whether it did any good, who looks again sees.
    pub(crate) fn write(&self, write: Box<dyn BatchWrite>) {
        self.have_done(Request::Write(write));
    }

    /// Has something done with the next commit, and waits for that, not for ever; whether it was done.
    pub(crate) fn have_done(&self, request: Request) -> bool {
        let (answer, answered) = sync_channel(1);
        self.inbox.push_event(Event::Request(request, answer));
        matches!(answered.recv_timeout(PATIENCE), Ok(Ok(())))
    }

    /// Damage that was not met before is told in the log, and counted.
    pub(crate) fn found_damaged(&self, place: (BufferId, Position), damage: &Damage) {
        self.unreadable.look_from_now_on();
        if !self.scrubs.lock().found(place) {
            return;
        }
        Counters::add(&self.counters.damaged_articles, 1);
        let means = damage.means;
        tracing::error!(buffer = damage.buffer, "{damage}; {means}");
    }

    /// How the scrub in the background stands.
    pub(crate) fn scrub_status(&self) -> ScrubStatus {
        let (damaged, met_by_reads) = self.damaged_places(None);
        let state = self.scrubs.lock();
        let (under_way, last) = (state.under_way, state.last);
        let buffer = under_way.and_then(|pass| self.store.buffer(pass.at?.0));
        ScrubStatus {
            octets_per_s: self.config.scrub.octets_per_s,
            began: under_way.map(|pass| pass.began.0),
            buffer: buffer.map(|buffer| buffer.name().to_owned()),
            octets: under_way.map(|pass| pass.tally.octets),
            last_began: last.map(|last| last.began.0),
            last_ended: last.map(|last| last.ended.0),
            last_articles: last.map(|last| last.tally.articles),
            last_octets: last.map(|last| last.tally.octets),
            last_unreadable: last.map(|last| last.tally.unreadable),
            damaged,
            met_by_reads,
        }
    }
}

/// The scrub in the background.
struct Background<'a> {
    shared: &'a Shared,
    stop: &'a Receiver<()>,
    /// The buffer that it is at.
    buffer: BufferId,
    /// What was kept, and when.
    kept: ScrubState,
    kept_at: Duration,
}

/// Begins a pass whenever one is due, until it is told to stop.
pub(crate) fn run(shared: &Shared, stop: &Receiver<()>) {
    let every_s = shared.config.scrub.every_s;
    let mut background = Background {
        shared,
        stop,
        buffer: BufferId(0),
        kept: shared.scrubs.lock().clone(),
        kept_at: shared.clock.monotonic(),
    };
    loop {
        while !shared.scrubs.lock().is_due(shared.time.calendar(), every_s) {
            mend_what_reads_met(shared);
            if !background.rest(LOOK) {
                background.keep();
                return;
            }
        }
        let is_whole = background.pass();
        if is_whole {
            shared.scrubs.lock().end(shared.time.calendar());
        }
        background.keep();
        if !is_whole {
            return;
        }
    }
}

impl Background<'_> {
    /// One pass over all buffers, from where it was; whether it came to its end.
    fn pass(&mut self) -> bool {
        let shared = self.shared;
        let pass = shared.scrubs.lock().begin(shared.time.calendar());
        let buffers = shared.store.buffers();
        let (first, mut from) = pass.at.unwrap_or_default();
        // A buffer that is not there any more: all of them once more.
        let skipped = buffers.iter().position(|buffer| buffer.id() == first);
        let mut pace = Pace::new(shared.config.scrub.octets_per_s);
        for buffer in buffers.iter().skip(skipped.unwrap_or_default()) {
            self.buffer = buffer.id();
            if self.buffer != first {
                from = Position::ZERO;
            }
            match scrub_buffer(shared, buffer, from, &mut pace, self) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => {
                    Counters::add(&shared.counters.disk_errors, 1);
                    tracing::error!(buffer = buffer.name(), %error, "a buffer cannot be scrubbed to its end");
                    if let Some(pass) = &mut shared.scrubs.lock().under_way {
                        pass.tally.unreadable += 1;
                    }
                }
            }
        }
        true
    }

    /// Keeps what is known by now.
    fn keep(&mut self) {
        let shared = self.shared;
        let state = shared.scrubs.lock().clone();
        if state != self.kept {
            state.save(shared.disk.as_ref(), &shared.config.spool);
            self.kept = state;
        }
        self.kept_at = shared.clock.monotonic();
    }

    /// Waits; `false` when it is time to stop.
    fn rest(&self, pause: Duration) -> bool {
        rest(self.shared.clock.as_ref(), self.stop, pause)
    }
}

impl Scrubber for Background<'_> {
    fn passed(&mut self, piece: &Piece) -> bool {
        if let Some(pass) = &mut self.shared.scrubs.lock().under_way {
            pass.at = Some((self.buffer, piece.at));
            pass.tally.articles += piece.tally.articles;
            pass.tally.octets += piece.tally.octets;
        }
        mend_what_reads_met(self.shared);
        let now = self.shared.clock.monotonic();
        if now.saturating_sub(self.kept_at) >= KEEP_EVERY {
            self.keep();
        }
        self.rest(piece.pause)
    }

    fn damaged(&mut self, _: Damage) {}

    fn removed(&mut self, token: &Token, id_hash: &IdHash) -> bool {
        self.shared.withdraw_removed_in_turn(token, id_hash)
    }
}

/// A scrub that somebody waits for.
struct Asked<'a> {
    shared: &'a Shared,
    report: ScrubReport,
    /// Octets of the buffers before this one, and of this one and all.
    before: u64,
    live: u64,
    total: u64,
    progress: &'a mut dyn FnMut(u64, u64) -> bool,
}

impl Scrubber for Asked<'_> {
    fn passed(&mut self, piece: &Piece) -> bool {
        self.report.articles += piece.tally.articles;
        self.report.octets += piece.tally.octets;
        self.report.withdrawn += piece.withdrawn;
        self.report.unknown += piece.unknown;
        if let Some(buffer) = self.report.buffers.last_mut() {
            buffer.articles += piece.tally.articles;
            buffer.withdrawn += piece.withdrawn;
            buffer.unknown += piece.unknown;
            buffer.octets += piece.tally.octets;
        }
        let done = self.before + piece.passed.min(self.live);
        let clock = &self.shared.clock;
        let until = clock.monotonic().saturating_add(piece.pause);
        loop {
            if !(self.progress)(done, self.total) {
                return false;
            }
            let left = until.saturating_sub(clock.monotonic());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(TELL));
        }
    }

    fn damaged(&mut self, damage: Damage) {
        if let Some(buffer) = self.report.buffers.last_mut() {
            buffer.damaged += 1;
        }
        if self.report.damaged.len() < KNOWN_MAX {
            self.report.damaged.push(damage);
        } else {
            self.report.damaged_omitted += 1;
        }
    }

    fn more_damaged(&mut self, count: u64) {
        if let Some(buffer) = self.report.buffers.last_mut() {
            buffer.damaged += count;
        }
        self.report.damaged_omitted += count;
    }

    fn mended(&mut self, what: String) {
        self.report.headers.push(what);
    }

    fn removed(&mut self, token: &Token, id_hash: &IdHash) -> bool {
        self.shared.withdraw_removed_in_turn(token, id_hash)
    }
}

/// How fast a scrub is that somebody asks for beside a server whose background has none, octets a second.
const USUAL_OCTETS_PER_S: u64 = 4 << 20;

impl Engine {
    /// The rate of a scrub that disturbs nobody beside a server, octets a second.
    pub fn scrub_rate(&self) -> u64 {
        match self.shared.config.scrub.octets_per_s {
            0 => USUAL_OCTETS_PER_S,
            rate => rate,
        }
    }

    /// Compares everything that is alive in these buffers, or in all; reads no more than so many octets a second (0: as
    /// fast as it goes).  `progress` is told how many octets of the buffers are done, of how many, and says whether to go on.
    ///
    /// # Errors
    /// When there is no such buffer.
    pub fn scrub(
        &self,
        names: &[String],
        octets_per_s: u64,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<ScrubReport, Error> {
        let shared = &*self.shared;
        let all = shared.store.buffers();
        let named = |name: &String| all.iter().any(|buffer| buffer.name() == name);
        if let Some(name) = names.iter().find(|name| !named(name)) {
            let names: Vec<&str> = all.iter().map(|buffer| buffer.name()).collect();
            return Err(Error::Request(format!(
                "there is no buffer {name:?}; there are {}",
                names.join(", ")
            )));
        }
        let is_wanted = |buffer: &Arc<dyn BufferReader>| {
            names.is_empty() || names.iter().any(|n| n == buffer.name())
        };
        let buffers: Vec<_> = all.iter().filter(|buffer| is_wanted(buffer)).collect();
        let began = shared.clock.monotonic();
        let mut pace = Pace::new(octets_per_s);
        let mut asked = Asked {
            shared,
            report: ScrubReport::default(),
            before: 0,
            live: 0,
            total: buffers
                .iter()
                .map(|buffer| buffer.facts().live_octets)
                .sum(),
            progress,
        };
        for buffer in buffers {
            asked.live = buffer.facts().live_octets;
            asked.report.buffers.push(ScrubbedBuffer {
                name: buffer.name().to_owned(),
                ..ScrubbedBuffer::default()
            });
            match scrub_buffer(shared, buffer, Position::ZERO, &mut pace, &mut asked) {
                Ok(true) => {}
                Ok(false) => {
                    asked.report.is_cut = true;
                    break;
                }
                Err(error) => {
                    let why = format!("buffer {}: {error}", buffer.name());
                    asked.report.unreadable.push(why);
                }
            }
            asked.before += asked.live;
        }
        let mut report = asked.report;
        report.seconds = shared.clock.monotonic().saturating_sub(began).as_secs();
        Ok(report)
    }
}
