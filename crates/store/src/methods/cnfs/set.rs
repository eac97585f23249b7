//! A set of cyclic buffers: which one takes the next article.
//!
//! It turns to another buffer between batches only (`interleave`), because each buffer that a commit touches must be
//! synced; or when one has come to its end (`sequential`): then nothing of the next one goes before it has its turn.  One that is retired gets no turn, and its articles go
//! at the pace at which the others are overwritten, and none sooner than older ones of the others (`records/due.rs`): once those have come around nothing is left in it.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use newsreel_wire::{BufferId, Position, Sequence, Token, UnixTime};

use super::checkpoint::BufferCheckpoint;
use super::enlarge::{Resizing, enlarge_open};
use super::file::Cyclic;
use super::narrow;
use crate::addition::NewBuffer;
use crate::config::{SetConfig, SetOrder};
use crate::error::{Error, PlaceError, Result};
use crate::method::{
    BatchWrite, BufferReader as _, CheckpointWrite, LastKnown, Left, Marks, Missing, Place,
    Reservation, StorageMethod,
};
use crate::records::Home as _;
use crate::records::erase::Erasure;
use crate::records::format::Hints;
use crate::records::placing::{Filling, Turn};

/// An interleaved set turns to the next buffer after a batch, but not before this much.
pub const RUN_OCTETS: u64 = 1 << 20;

/// A set of buffers, filled by one thread.
#[derive(Debug)]
pub(super) struct Cnfs {
    fillings: Vec<Filling>,
    /// The same buffers, with their files.
    cyclics: Vec<Cyclic>,
    order: SetOrder,
    /// The text of withdrawn articles is overwritten.
    erase_withdrawn: bool,
    current: usize,
    /// That of the last article that the log had told of before `resume`: headers may be older.
    replayed: Option<BufferId>,
}

impl Cnfs {
    /// A set of these buffers, in this order.
    pub(super) fn new(cyclics: Vec<Cyclic>, config: &SetConfig) -> Self {
        let buffers = cyclics.iter().map(|cyclic| Arc::clone(&cyclic.buffer));
        let mut set = Self {
            fillings: buffers.map(Filling::new).collect(),
            cyclics,
            order: config.order,
            erase_withdrawn: config.erase_withdrawn,
            current: 0,
            replayed: None,
        };
        set.turn_to_newest();
        set
    }

    /// Goes on with the buffer that was written last.
    fn turn_to_newest(&mut self) {
        let fillings = self.fillings.iter().enumerate();
        // Of buffers that are all unused, the first.
        let newest = fillings.max_by_key(|(at, filling)| {
            let is_replayed = self.replayed == Some(filling.buffer.id);
            (is_replayed, filling.last_sequence(), Reverse(*at))
        });
        self.current = newest.map_or(0, |(at, _)| at);
    }

    fn turn_to(&mut self, at: usize) {
        self.current = at;
        if let Some(filling) = self.fillings.get_mut(at) {
            filling.begin_turn();
        }
    }

    /// The first buffer at or behind `at` that takes articles.
    fn usable_from(&self, at: usize) -> Option<usize> {
        let count = self.fillings.len();
        (at..at + count)
            .map(|at| at % count.max(1))
            .find(|at| self.is_usable(*at))
    }

    fn is_usable(&self, at: usize) -> bool {
        let filling = self.fillings.get(at);
        filling.is_some_and(|filling| filling.buffer.takes_articles())
    }

    /// The buffer for an article of this length: the current one, unless it is suspended, too small for it, or full
    /// for this time in a set that is filled in sequence.
    fn choose(&mut self, len: u64) -> std::result::Result<usize, PlaceError> {
        let at = self
            .usable_from(self.current)
            .ok_or(PlaceError::Suspended)?;
        if at != self.current {
            self.turn_to(at);
        }
        if len > self.fillings[at].article_octets_max() {
            return self.largest_for(len);
        }
        if self.order == SetOrder::Sequential && self.fillings[at].leaves_turn(len) {
            match self.usable_from(at + 1) {
                Some(next) if next != at => {
                    self.fillings[at].end_turn();
                    self.turn_to(next);
                    return match len > self.fillings[next].article_octets_max() {
                        true => self.largest_for(len),
                        false => Ok(next),
                    };
                }
                _ => self.fillings[at].extend_turn(),
            }
        }
        Ok(at)
    }

    /// The largest buffer, for an article that another is too small for.
    fn largest_for(&self, len: u64) -> std::result::Result<usize, PlaceError> {
        let usable = (0..self.fillings.len()).filter(|at| self.is_usable(*at));
        let limits = usable.map(|at| (self.fillings[at].article_octets_max(), at));
        let (limit, largest) = limits.max().unwrap_or_default();
        // One that failed might have taken it: then that is our trouble, and not the article's.
        let fillings = self.fillings.iter();
        let ever = fillings.filter(|one| one.buffer.is_for_articles());
        let ever = ever.map(Filling::article_octets_max).max().unwrap_or(limit);
        if len > ever {
            Err(PlaceError::TooLarge { limit: ever })
        } else if len > limit {
            Err(PlaceError::Suspended)
        } else {
            Ok(largest)
        }
    }

    /// Whose turn it is, seen from this buffer.
    fn turn_of(&self, at: usize) -> Turn {
        let next = self.usable_from(at + 1);
        if self.order == SetOrder::Interleave || next.is_none_or(|next| next == at) {
            Turn::Always
        } else if self.usable_from(self.current) == Some(at) {
            Turn::ThisCycle
        } else {
            Turn::Elsewhere
        }
    }

    /// What goes of the buffers that are retired.
    fn drain(&mut self, out: &mut Vec<Reservation>) {
        let (retired, others): (Vec<_>, Vec<_>) = self
            .fillings
            .iter_mut()
            .partition(|one| one.buffer.is_retired());
        let others = others.iter().map(|one| &one.buffer);
        let others = others.filter(|one| one.takes_articles());
        out.extend(
            retired
                .into_iter()
                .filter_map(|filling| filling.drain(others.clone())),
        );
    }

    fn find(&mut self, buffer: BufferId) -> Option<&mut Filling> {
        let mut fillings = self.fillings.iter_mut();
        fillings.find(|filling| filling.buffer.id == buffer)
    }
}

impl StorageMethod for Cnfs {
    fn place(&mut self, place: &Place<'_>) -> std::result::Result<Token, PlaceError> {
        let len: usize = place.article.iter().map(|part| part.len()).sum();
        let at = self.choose(len as u64)?;
        self.fillings[at].place(place)
    }

    fn reservations(&mut self, _: Option<UnixTime>, out: &mut Vec<Reservation>) {
        for at in 0..self.fillings.len() {
            let turn = self.turn_of(at);
            let filling = &mut self.fillings[at];
            if filling.buffer.is_retired() {
                continue;
            }
            if filling.buffer.is_usable() {
                out.extend(filling.reservation(turn));
            }
        }
        if self.fillings.iter().any(|one| one.buffer.is_retired()) {
            self.drain(out);
        }
    }

    fn reserved(&mut self, reservation: Reservation) {
        let Some(filling) = self.find(reservation.buffer) else {
            return;
        };
        let octets = filling.reserved(reservation.up_to);
        if filling.buffer.is_retired() {
            return;
        }
        let fillings = self.fillings.iter();
        let others = fillings.filter(|one| one.buffer.takes_articles());
        let others = others.map(|one| one.buffer.geometry().capacity()).sum();
        for filling in &mut self.fillings {
            match filling.buffer.is_retired() {
                true => filling.owe(octets, others),
                // Where it takes articles again what was owed before is not theirs.
                false => filling.owe_nothing(),
            }
        }
    }

    fn seal(&mut self, out: &mut Vec<Box<dyn BatchWrite>>) {
        for filling in &mut self.fillings {
            if let Some(batch) = filling.seal() {
                out.push(Box::new(batch));
            }
        }
        let run_is_over = self
            .fillings
            .get(self.current)
            .is_some_and(|filling| filling.run_octets >= RUN_OCTETS);
        if self.order == SetOrder::Interleave
            && run_is_over
            && let Some(next) = self.usable_from(self.current + 1)
        {
            self.turn_to(next);
        }
    }

    fn add(&mut self, buffer: NewBuffer) {
        self.fillings.push(buffer.filling);
        self.cyclics.push(buffer.cyclic);
    }

    fn remove(&mut self, buffer: BufferId) {
        let current = self.fillings.get(self.current).map(|one| one.buffer.id);
        self.fillings.retain(|one| one.buffer.id != buffer);
        self.cyclics.retain(|one| one.buffer.id != buffer);
        let mut left = self.fillings.iter();
        match left.position(|one| Some(one.buffer.id) == current) {
            Some(at) => self.current = at,
            // One that is removed has no turn.
            None => self.turn_to(0),
        }
    }

    fn resize(&mut self, resizing: &Resizing) -> Option<Result<()>> {
        let Resizing { buffer, octets } = resizing;
        let next = self.find(*buffer)?.next();
        let mut cyclics = self.cyclics.iter();
        let cyclic = cyclics.find(|cyclic| cyclic.buffer.id == *buffer)?;
        let is_larger = *octets > cyclic.file.octets();
        if is_larger && !cyclic.file.has_room(*octets) {
            return Some(Err(Error::Buffer {
                name: cyclic.buffer.name.clone(),
                path: cyclic.file.path().to_path_buf(),
                why: "it has become smaller just now: say it again in a minute".to_owned(),
            }));
        }
        let resized = match octets.cmp(&cyclic.file.octets()) {
            Ordering::Less => narrow::begin(cyclic, next, *octets),
            Ordering::Equal => narrow::give_up(cyclic),
            Ordering::Greater => enlarge_open(cyclic, next.cycle(), *octets),
        };
        // Which size its file has is not known then: nothing more is placed in it.
        let resized = resized.inspect_err(|error| cyclic.buffer.suspend(&error.to_string()));
        Some(resized.map_err(Into::into))
    }

    fn suspend(&mut self, buffer: BufferId, why: &str) {
        if let Some(filling) = self.find(buffer) {
            filling.buffer.suspend(why);
        }
    }

    fn marks(&self, out: &mut Vec<Marks>) {
        out.extend(self.fillings.iter().map(Filling::marks));
    }

    fn replayed(&mut self, token: &Token) {
        if let Some(filling) = self.find(token.buffer()) {
            filling.replayed(token.position());
            self.replayed = Some(token.buffer());
        }
    }

    fn withdrawn(&mut self, tokens: &[Token], out: &mut Vec<Box<dyn BatchWrite>>) {
        for Cyclic { buffer, file } in &self.cyclics {
            let here = tokens.iter().filter(|token| token.buffer() == buffer.id);
            let starts: Vec<Position> = here.map(Token::position).collect();
            if starts.is_empty() {
                continue;
            }
            let mut bitmap = file.starts.lock();
            starts.iter().for_each(|start| bitmap.withdraw(*start));
            drop(bitmap);
            let geometry = buffer.geometry();
            let is_erased = |start: &Position| self.erase_withdrawn || !geometry.has_bit(*start);
            let erased: Vec<Position> = starts.into_iter().filter(is_erased).collect();
            if !erased.is_empty() && buffer.is_usable() {
                let buffer = Arc::clone(buffer);
                out.push(Box::new(Erasure::new(
                    buffer,
                    erased,
                    !self.erase_withdrawn,
                )));
            }
        }
    }

    fn is_ahead(&self, marks: &[Marks], log_end: Sequence) -> Result<bool> {
        for filling in &self.fillings {
            let marks = Marks::of(marks, filling.buffer.id);
            if !filling.buffer.read_only && filling.is_ahead(marks, log_end)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn may_have_left(&self, marks: &[Marks], missing: Missing) -> Result<bool> {
        for filling in &self.fillings {
            let marks = Marks::of(marks, filling.buffer.id);
            if filling.buffer.is_usable() && filling.may_have_left(marks, missing)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn left_over(&self, marks: &[Marks], missing: Missing, out: &mut Vec<Left>) -> Result<bool> {
        for filling in &self.fillings {
            let marks = Marks::of(marks, filling.buffer.id);
            if filling.buffer.suspension().is_some() {
                continue;
            }
            let Some(left) = filling.left_over(marks, missing)? else {
                return Ok(false);
            };
            out.push(left);
        }
        Ok(true)
    }

    fn distrust(&mut self) {
        for filling in &mut self.fillings {
            filling.is_distrusted = true;
        }
        self.replayed = None;
    }

    fn resume(&mut self, marks: &[Marks], log_end: Sequence) -> Result<()> {
        for (filling, cyclic) in self.fillings.iter_mut().zip(&self.cyclics) {
            let buffer = Arc::clone(&filling.buffer);
            let marks = Marks::of(marks, buffer.id);
            let complaint = filling.resume(marks, log_end)?;
            let is_ahead = complaint.is_some();
            if let Some(complaint) = complaint {
                tracing::warn!(buffer = buffer.name, "{complaint}");
                buffer.complain(complaint);
            }
            if buffer.read_only {
                continue;
            }
            if buffer.is_rescued {
                narrow::resume(cyclic, filling.next());
                // What was made again says nothing of where it stands, and may be written before there is news.
                let bitmap_end = cyclic.file.starts.lock().begin_anew(filling.next());
                cyclic.file.know(Hints {
                    bitmap_end,
                    ..filling.hints()
                });
                tracing::warn!(
                    buffer = buffer.name,
                    "its bitmap may be damaged as its header was: the scrub in the background begins anew, and compares it with \
                     the articles; `newsreel store scrub {}` does so at once",
                    buffer.name
                );
            }
            let cycle = filling.cycle();
            let synced = match is_ahead {
                // Who only looks must see the floor that this start raised, before the log has it.
                true => cyclic.file.write_both_headers(filling.hints_to_come()),
                false => buffer.home.sync(cycle..=cycle),
            };
            let synced = synced.and_then(|()| cyclic.file.note_given_up());
            if let Err(error) = synced {
                tracing::error!(%error, buffer = buffer.name, "the buffer is suspended");
                buffer.suspend(&error.to_string());
            } else if !buffer.is_rescued && buffer.complaint().is_some() {
                // A buffer to which nothing comes has no checkpoint that would do it.
                let _ = buffer.mend_header().inspect_err(|error| {
                    tracing::error!(%error, buffer = buffer.name, "its header cannot be looked at");
                });
            }
        }
        self.turn_to_newest();
        if self.order == SetOrder::Sequential {
            for (at, filling) in self.fillings.iter_mut().enumerate() {
                filling.resume_turn(at == self.current);
            }
        }
        Ok(())
    }

    fn find_lacking(&mut self, known: &[LastKnown]) -> Result<()> {
        for filling in self.fillings.iter().filter(|one| !one.buffer.read_only) {
            let mut known = known.iter();
            let Some(known) = known.find(|known| known.buffer == filling.buffer.id) else {
                continue;
            };
            if let Some(told) = filling.find_lack(known)? {
                tracing::error!(buffer = filling.buffer.name, "{told}");
                filling.buffer.complain(told);
            }
        }
        Ok(())
    }

    fn checkpoint(&mut self, out: &mut Vec<Box<dyn CheckpointWrite>>) {
        for (filling, cyclic) in self.fillings.iter().zip(&self.cyclics) {
            if !filling.buffer.is_usable() {
                continue;
            }
            let is_cut = match narrow::settle(cyclic, filling) {
                Ok(is_cut) => is_cut,
                Err(error) => {
                    // Which size its header says is not known.
                    cyclic.buffer.suspend(&error.to_string());
                    continue;
                }
            };
            let (hints, written) = (filling.hints(), cyclic.file.written());
            let is_news = hints.merge(written) != written || cyclic.file.has_withdrawn();
            if is_news || is_cut || cyclic.file.is_header_due() {
                out.push(Box::new(BufferCheckpoint {
                    cyclic: cyclic.clone(),
                    hints,
                    is_cut,
                }));
            }
        }
    }
}
