//! A set of segments: when the oldest go, and everything else as of any buffer.

use std::sync::Arc;

use newsreel_wire::{BufferId, Position, Sequence, Token, UnixTime};

use super::files::Segments;
use crate::config::SetConfig;
use crate::error::{PlaceError, Result};
use crate::method::{
    BatchWrite, CheckpointWrite, Left, Marks, Missing, Place, Reservation, StorageMethod,
    TRIED_AGAIN_AFTER_S,
};
use crate::records::Home as _;
use crate::records::buffer::Buffer;
use crate::records::erase::Erasure;
use crate::records::format::{Hints, RECORD_HEADER, RecordHeader};
use crate::records::placing::Filling;

/// A set of segments, filled by one thread.
#[derive(Debug)]
pub(crate) struct SegmentSet {
    filling: Filling,
    files: Arc<Segments>,
    limits: SetConfig,
    /// The oldest file whose age is known: when the newest article in it arrived.
    oldest: Option<(u32, UnixTime)>,
    /// Since when the file is written that is being filled.
    began: Option<(u32, UnixTime)>,
    /// It is to be left by its age.
    is_to_leave: bool,
    /// What the time was when it was told last.
    now: UnixTime,
    /// Since when nothing can be written, where that is so.
    failing_since: Option<UnixTime>,
    /// For how many seconds nothing is tried then: twice as many after each try, since each may leave an empty file.
    try_after_s: u64,
    /// Files below this cycle should be there by the log, and somebody removed them.
    missing_below: Option<u32>,
}

/// A file is written for the eighth part of the age at which its articles are to go, so that the oldest stay little longer: it goes by its newest.
const FILES_AN_AGE: u64 = 8;
/// ... and for so many seconds at least.
const WRITTEN_FOR_S_MIN: u64 = 3600;

/// The longest pause between two tries.
const TRY_AFTER_S_MAX: u64 = 3600;

impl SegmentSet {
    pub(super) fn new(buffer: Buffer, files: Arc<Segments>, limits: SetConfig) -> Self {
        let mut filling = Filling::new(Arc::new(buffer));
        if let Some(level) = limits.compression_level {
            filling.pack_at(level);
        }
        // With an age alone nothing else is a reason.
        if limits.keep_s.is_none() || may_drop_early(&limits) {
            files.drop_vacated();
        }
        Self {
            filling,
            files,
            limits,
            oldest: None,
            began: None,
            is_to_leave: false,
            now: UnixTime(0),
            failing_since: None,
            try_after_s: TRIED_AGAIN_AFTER_S,
            missing_below: None,
        }
    }

    pub(crate) fn buffer(&self) -> Arc<Buffer> {
        Arc::clone(&self.filling.buffer)
    }

    /// What the log must say so that the files below this cycle go.
    pub(crate) fn dropping(&self, cycle: u32) -> Option<Reservation> {
        let buffer = &self.filling.buffer;
        let may_go = buffer.is_usable() && cycle <= self.filling.cycle() && buffer.look().is_ok();
        // What lies one cycle before is gone.
        let up_to = cycle.checked_add(1).filter(|_| may_go);
        Some(Reservation {
            buffer: buffer.id,
            up_to: buffer.geometry().start_of(up_to?)?,
        })
    }

    /// Why no article is placed while it is suspended: where its directory is back it goes on behind the commit that is open.
    pub(crate) fn refusal(&self) -> PlaceError {
        match self.filling.buffer.is_back() {
            true => PlaceError::NeedsReservation,
            false => PlaceError::Suspended,
        }
    }

    /// Goes on in the next file, whatever suspended it but a directory that is not there.
    pub(crate) fn go_on(&mut self) {
        let buffer = &self.filling.buffer;
        if buffer.suspension().is_some() && !buffer.is_away() {
            self.filling.leave_file();
            self.filling.buffer.give_file_up();
        }
    }

    /// A set whose disk failed goes on in the next file once a while has passed: disks come back, and fill up and empty again.
    fn try_again(&mut self, now: Option<UnixTime>) {
        if self.filling.buffer.suspension().is_none() {
            self.failing_since = None;
            if self.filling.has_synced() {
                self.try_after_s = TRIED_AGAIN_AFTER_S;
            }
            return;
        }
        if self.filling.buffer.is_away() {
            // What was placed before that showed fails first, and is placed again.
            if !self.filling.is_open() && self.filling.buffer.is_back() {
                self.filling.buffer.come_back();
                self.go_on();
            }
            return;
        }
        let Some(now) = now else { return };
        let since = *self.failing_since.get_or_insert(now);
        if now.0.saturating_sub(since.0) >= self.try_after_s {
            self.failing_since = None;
            self.try_after_s = (2 * self.try_after_s).min(TRY_AFTER_S_MAX);
            tracing::info!(set = self.filling.buffer.name, "what failed is tried again");
            self.go_on();
        }
    }

    /// Looks whether the newest file is not there, or none is.  Of a catalogue it is told how much of it is lost.
    fn look_for_newest(&self) -> Result<()> {
        let filling = &self.filling;
        let (buffer, cycle) = (&filling.buffer, filling.cycle());
        let has_articles = match self.files.are_none() {
            true => filling.has_begun(),
            false => !filling.begins_cycle(),
        };
        if has_articles
            && self.files.kind().is_of_articles
            && let Some(why) = self.files.newest_missing(cycle)?
        {
            tracing::error!(set = buffer.name, "{why}");
            buffer.complain(why);
        }
        Ok(())
    }

    /// Looks whether the oldest files are not there while others are: nothing can be read of what was in them, so it goes with the first
    /// commit.  Where as many are missing as are there a disk may be, and where those that are there were made when all of the missing ones
    /// were away it was one: then nothing goes before its turn.  Of a catalogue the articles are there, and their cards can be made again.
    fn look_for_oldest(&mut self) -> Result<()> {
        let buffer = self.buffer();
        let first = buffer.floor().cycle().max(1);
        if !self.files.kind().is_of_articles {
            return Ok(());
        }
        let Some((below, there)) = self.files.missing_from(first)? else {
            return Ok(());
        };
        let missing = below - first;
        let names = match missing {
            1 => format!("{first:08}.seg"),
            _ => format!("{first:08}.seg to {:08}.seg", below - 1),
        };
        let were_removed = there.is_some_and(|there| missing < there);
        let goes = match (were_removed, buffer.is_usable()) {
            (true, true) => "somebody removed that, so its articles are withdrawn",
            (true, false) => "its articles cannot be read",
            (false, _) => {
                "its articles cannot be read; is its disk mounted? Put it back and start again: nothing is withdrawn"
            }
        };
        let why = format!(
            "{}: there is no {names}, the oldest of set {}, but files behind: {goes}",
            self.files.path().display(),
            buffer.name
        );
        tracing::error!(set = buffer.name, "{why}");
        buffer.complain(why);
        self.missing_below = Some(below).filter(|_| were_removed);
        Ok(())
    }

    /// Since when the file of this cycle is written; behind a start as its first article tells it.
    fn began_at(&mut self, cycle: u32, now: UnixTime) -> UnixTime {
        if let Some((known, began)) = self.began
            && known == cycle
        {
            return began;
        }
        // What was moved here came long before; then another file is begun once more than need be.
        let is_first = self.began.is_none();
        let began = is_first.then(|| self.first_arrival(cycle)).flatten();
        let began = began.unwrap_or(now).min(now);
        self.began = Some((cycle, began));
        began
    }

    /// When the first article of a file arrived.
    fn first_arrival(&self, cycle: u32) -> Option<UnixTime> {
        let buffer = &self.filling.buffer;
        let first = buffer.geometry().start_of(cycle)?;
        let mut stored = [0; RECORD_HEADER];
        let file = buffer.home.file(cycle).ok()?;
        file.read_exact_at(&mut stored, first.offset()).ok()?;
        let header = RecordHeader::decode(&stored, buffer.key).ok()?;
        (header.position == first).then_some(header.arrival)
    }

    /// Has the next article begin another file where this one is written for long: it went when its newest article was old, which with few
    /// articles was never.  Not where a limit of octets would have the oldest go for that.
    fn begin_anew(&mut self, now: Option<UnixTime>) {
        let (Some(keep_s), Some(now)) = (self.limits.keep_s, now) else {
            return;
        };
        if self.is_to_leave || self.filling.begins_cycle() || !self.filling.buffer.is_usable() {
            return;
        }
        let cycle = self.filling.cycle();
        let written_s = now.0.saturating_sub(self.began_at(cycle, now).0);
        if written_s < (keep_s / FILES_AN_AGE).max(WRITTEN_FOR_S_MIN) {
            return;
        }
        let octets = self.limits.segment_octets;
        let least = self.limits.free_octets_min.unwrap_or(0);
        let has_room = self
            .files
            .free_octets()
            .is_ok_and(|free| free / 2 >= octets.saturating_add(least / 2))
            && self
                .limits
                .keep_octets
                .is_none_or(|keep| self.files.octets().saturating_add(octets) <= keep);
        match has_room {
            true => self.leave_by_age(),
            // It is asked again when as much time has gone.
            false => self.began = Some((cycle, now)),
        }
    }

    fn leave_by_age(&mut self) {
        self.is_to_leave = true;
        self.filling.close_file(true);
    }

    /// Another file was begun, or cannot be: then the old one is as good.
    fn leave_no_more(&mut self, now: UnixTime) {
        self.is_to_leave = false;
        self.filling.close_file(false);
        self.began = Some((self.filling.cycle(), now));
    }

    /// When the newest article of the oldest file arrived.
    fn oldest_arrival(&mut self, cycle: u32) -> Option<UnixTime> {
        if let Some((known, arrival)) = self.oldest
            && known == cycle
        {
            return Some(arrival);
        }
        let arrival = self.files.arrival_of(cycle).unwrap_or_else(|error| {
            tracing::error!(%error, "the age of a segment cannot be told");
            None
        })?;
        self.oldest = Some((cycle, arrival));
        Some(arrival)
    }

    /// Why the oldest file is to go, if it is.
    fn reason(&mut self, cycle: u32, now: Option<UnixTime>) -> Option<&'static str> {
        let octets = self.files.octets();
        if self.limits.keep_octets.is_some_and(|keep| octets > keep) {
            return Some("there is more than `keep_octets`");
        }
        if let Some(min) = self.limits.free_octets_min {
            match self.files.free_octets() {
                Ok(free) if free < min => return Some("less is free than `free_octets_min`"),
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "what is free cannot be told"),
            }
        }
        if may_drop_early(&self.limits) && self.files.take_full() {
            return Some("the disk is full");
        }
        let (keep_s, now) = (self.limits.keep_s?, now?);
        let arrival = self.oldest_arrival(cycle)?;
        let age_s = now.0.saturating_sub(arrival.0);
        (age_s > keep_s).then_some("its articles are older than `keep_s`")
    }
}

/// Whether articles of the set may go before their age.
fn may_drop_early(limits: &SetConfig) -> bool {
    limits.keep_octets.is_some() || limits.free_octets_min.is_some()
}

impl StorageMethod for SegmentSet {
    fn place(&mut self, place: &Place<'_>) -> std::result::Result<Token, PlaceError> {
        if !self.filling.buffer.is_usable() {
            return Err(self.refusal());
        }
        let mut placed = self.filling.place(place);
        if self.is_to_leave && !matches!(placed, Err(PlaceError::TooLarge { .. })) {
            self.leave_no_more(self.now.max(place.arrival));
            if placed.is_err() {
                placed = self.filling.place(place);
            }
        }
        if placed == Err(PlaceError::Suspended) {
            // It is suspended, and says why, where its directory is not there.
            let _ = self.filling.buffer.look();
        }
        placed
    }

    fn began(&mut self, now: UnixTime) {
        self.filling.arrived_by(now);
    }

    fn reservations(&mut self, now: Option<UnixTime>, out: &mut Vec<Reservation>) {
        self.try_again(now);
        self.now = now.unwrap_or(self.now);
        self.begin_anew(now);
        let buffer = self.buffer();
        if let Some(below) = self.missing_below.filter(|it| buffer.floor().cycle() < *it) {
            out.extend(self.dropping(below));
            return;
        }
        // The file that is written stays.
        let Some((cycle, Some(next))) = self.files.oldest() else {
            return;
        };
        if !buffer.is_usable() {
            return;
        }
        let newest = self.filling.cycle();
        let vacated = self.files.vacated_below().min(newest);
        let (why, below) = match self.reason(cycle, now) {
            Some(why) => (why, next.max(vacated)),
            None if cycle < vacated => ("no article is left in it", vacated),
            None => return,
        };
        tracing::info!(set = buffer.name, segment = cycle, why, "a segment goes");
        out.extend(self.dropping(below));
    }

    fn oldest(&self) -> Option<Reservation> {
        let (_, next) = self.files.oldest()?;
        self.dropping(next?)
    }

    fn reserved(&mut self, reservation: Reservation) {
        self.filling.reserved(reservation.up_to);
        self.files.remove_below(self.filling.buffer.floor().cycle());
        // That there was no room is of before.
        self.files.take_full();
    }

    fn seal(&mut self, out: &mut Vec<Box<dyn BatchWrite>>) {
        if let Some(batch) = self.filling.seal() {
            out.push(Box::new(batch));
        }
    }

    fn suspend(&mut self, _: BufferId, why: &str) {
        let buffer = &self.filling.buffer;
        // A batch for a file that was given up is no reason to give up the one behind it, which is sound: while articles keep coming
        // there is always one.
        if buffer.has_only_refused() {
            return;
        }
        buffer.suspend(why);
        if !buffer.is_away() {
            self.filling.give_file_up();
        }
    }

    fn marks(&self, out: &mut Vec<Marks>) {
        out.push(self.filling.marks());
    }

    fn replayed(&mut self, _: &Token) {}

    fn withdrawn(&mut self, tokens: &[Token], out: &mut Vec<Box<dyn BatchWrite>>) {
        let buffer = self.buffer();
        if !buffer.is_usable() {
            return;
        }
        let here = tokens.iter().filter(|token| token.buffer() == buffer.id);
        let starts = here.map(Token::position);
        if !self.limits.erase_withdrawn {
            self.files.withdraw(starts);
            return;
        }
        let starts: Vec<Position> = starts.collect();
        if !starts.is_empty() {
            out.push(Box::new(Erasure::new(buffer, starts, false)));
        }
    }

    fn is_ahead(&self, marks: &[Marks], log_end: Sequence) -> Result<bool> {
        let buffer = &self.filling.buffer;
        let marks = Marks::of(marks, buffer.id);
        Ok(!buffer.read_only && self.filling.is_ahead(marks, log_end)?)
    }

    fn may_have_left(&self, marks: &[Marks], missing: Missing) -> Result<bool> {
        let buffer = &self.filling.buffer;
        let marks = Marks::of(marks, buffer.id);
        Ok(buffer.is_usable() && self.filling.may_have_left(marks, missing)?)
    }

    fn left_over(&self, marks: &[Marks], missing: Missing, out: &mut Vec<Left>) -> Result<bool> {
        let buffer = &self.filling.buffer;
        if buffer.suspension().is_some() {
            return Ok(true);
        }
        let marks = Marks::of(marks, buffer.id);
        let left = self.filling.left_over(marks, missing)?;
        let is_all = left.is_some();
        out.extend(left);
        Ok(is_all)
    }

    fn distrust(&mut self) {
        self.filling.is_distrusted = true;
    }

    fn resume(&mut self, marks: &[Marks], log_end: Sequence) -> Result<()> {
        let buffer = self.buffer();
        let marks = Marks::of(marks, buffer.id);
        let is_trusted = !self.filling.is_distrusted && !buffer.is_rescued;
        if let Some(complaint) = self.filling.resume(marks, log_end)? {
            tracing::warn!(set = buffer.name, "{complaint}");
            buffer.complain(complaint);
        }
        self.look_for_newest()?;
        if is_trusted {
            self.look_for_oldest()?;
        }
        if buffer.read_only {
            return Ok(());
        }
        let cycle = self.filling.cycle();
        if self.files.is_missing(cycle) && !self.filling.begins_cycle() {
            // What was in it is gone; nothing is written in front of where it ended.
            self.filling.leave_file();
        }
        // Into a file that is not what its name says nothing is written.
        let mut cycle = self.filling.cycle();
        while !self.files.may_write(cycle) {
            self.filling.leave_file();
            if self.filling.cycle() == cycle {
                break;
            }
            cycle = self.filling.cycle();
        }
        if let Err(error) = self.files.sync(cycle.saturating_sub(1)..=cycle) {
            tracing::error!(%error, set = buffer.name, "the set is suspended");
            buffer.suspend(&error.to_string());
        }
        // A drop whose files were not removed in time.
        self.files.remove_below(buffer.floor().cycle());
        Ok(())
    }

    fn checkpoint(&mut self, out: &mut Vec<Box<dyn CheckpointWrite>>) {
        let (hints, written) = (self.filling.hints(), self.files.written());
        let is_news = hints.merge(written) != written || self.files.has_withdrawn();
        // Its file is opened by its path.
        let is_there = || self.filling.buffer.is_usable() && self.filling.buffer.look().is_ok();
        if is_news && is_there() {
            out.push(Box::new(SegmentCheckpoint {
                files: Arc::clone(&self.files),
                hints,
            }));
        }
        if self.filling.buffer.is_usable()
            && let Some(training) = self.filling.training()
        {
            out.push(Box::new(training));
        }
    }
}

/// The newest header brought up to date, and what was withdrawn noted.
#[derive(Debug)]
struct SegmentCheckpoint {
    files: Arc<Segments>,
    hints: Hints,
}

impl CheckpointWrite for SegmentCheckpoint {
    fn write(&mut self) -> Result<()> {
        self.files.write_both_headers(self.hints)?;
        self.files.write_withdrawn();
        Ok(())
    }
}
