//! Cards of a catalogue that were lost, made again: of files that are there, to which the history leads and to which no card does.
//!
//! An article that history and overview have under the message-id and the numbers in a file, and whose card cannot be read, is that file's.
//! Of all that a card says only the place of the article in the log is nowhere in the file: the log tells it as far as it goes back, and
//! for those before it one is taken that lies between those of its neighbours.

use std::ops::Range;
use std::sync::Arc;

use newsreel_index::{HistoryEntry, Wait};
use newsreel_journal::Error as JournalError;
use newsreel_store::{
    BufferReader, Cards, Error as StoreError, Hole, Lying, Place, Scanned, Written,
};
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{MessageId, Position, Sequence, Token, xref};

use crate::accept::small;
use crate::error::Error;
use crate::record::token_in;
use crate::requests::Request;
use crate::shared::Shared;

/// So many octets of cards are made at once.
const AT_ONCE_OCTETS: usize = 8 << 20;
/// So many places whose sequences are known are kept in mind, at most.
pub const PLACES_MAX: usize = 1 << 16;

/// Cards that are made again in one set.
#[derive(Debug)]
pub(crate) struct LostCards<'a> {
    shared: &'a Shared,
    buffer: &'a Arc<dyn BufferReader>,
    /// Read when they are needed first.
    sequences: Option<Sequences>,
    found: Cards,
    octets: usize,
    met: u64,
    written: Arc<Written>,
}

impl<'a> LostCards<'a> {
    pub(crate) fn new(shared: &'a Shared, buffer: &'a Arc<dyn BufferReader>) -> Self {
        Self {
            shared,
            buffer,
            sequences: None,
            found: Cards::new(),
            octets: 0,
            met: 0,
            written: Arc::default(),
        }
    }

    /// Whether this is the file of an article whose card is lost: then that is made again.
    pub(crate) fn is_of_one(
        &mut self,
        file: &Lying,
        headers: &Headers<'_>,
        entry: HistoryEntry,
    ) -> Result<bool, StoreError> {
        let id = headers.content(Known::MessageId);
        let id = id.and_then(|id| MessageId::parse(id).ok());
        let Some((id, token)) = id.zip(entry.token) else {
            return Ok(false);
        };
        let is_here = token.buffer() == self.buffer.id() && self.shared.store.is_live(&token);
        let xref = headers.content(Known::Xref).unwrap_or_default();
        if !is_here || !self.is_filed(&token, xref) {
            return Ok(false);
        }
        let mut place = Place {
            sequence: Sequence::ZERO,
            arrival: entry.arrival,
            id_hash: self.shared.id_hash(id),
            id: id.as_bytes(),
            set: self.buffer.set(),
            format: None,
            xref,
            article: &[],
            head_len: small(headers.body_start().saturating_sub(2)),
        };
        // Whether it is lost is found out before the log is read.
        if self.buffer.card_again(file, &place, &token).is_none() {
            return Ok(false);
        }
        place.sequence = self.sequence_of(&token)?;
        let Some(card) = self.buffer.card_again(file, &place, &token) else {
            return Ok(false);
        };
        self.keep(&token, card);
        Ok(true)
    }

    /// Makes the card of an article again that lies in the file of another spool; whether that can be done.
    pub(crate) fn is_of_lent(
        &mut self,
        lies_at: &str,
        place: &Place<'_>,
        token: &Token,
    ) -> Result<bool, StoreError> {
        let place = Place {
            sequence: self.sequence_of(token)?,
            ..*place
        };
        let Some(card) = self.buffer.card_of_lent(lies_at, &place, token) else {
            return Ok(false);
        };
        self.keep(token, card);
        Ok(true)
    }

    fn keep(&mut self, token: &Token, card: Vec<u8>) {
        self.octets += card.len();
        self.found.insert(token.position(), card);
        if self.octets >= AT_ONCE_OCTETS {
            self.restore();
        }
    }

    /// Whether the overview leads from the places in this Xref to the article, where it has any of them: a copy that was never taken has others.
    fn is_filed(&self, token: &Token, xref: &[u8]) -> bool {
        let (views, mut id) = (&self.shared.views, Vec::new());
        let places = xref::places(xref);
        let groups = places.filter_map(|(name, number)| {
            let group = views.groups().by_name(name)?.id();
            let column = views.overview().column(group, number, Wait::Yes, &mut id);
            Some(column.is_ok_and(|column| column.is_some_and(|it| it.token.same_place(token))))
        });
        let (mut is_any, mut is_one) = (false, false);
        for is_right in groups {
            (is_any, is_one) = (true, is_one || is_right);
        }
        is_one || !is_any
    }

    fn sequence_of(&mut self, token: &Token) -> Result<Sequence, StoreError> {
        let sequences = match &mut self.sequences {
            Some(sequences) => sequences,
            none => none.insert(Sequences::of(self.shared, self.buffer)?),
        };
        Ok(sequences.of_article(self.shared, token))
    }

    /// Has those that were found written.
    pub(crate) fn restore(&mut self) {
        let cards = std::mem::take(&mut self.found);
        self.octets = 0;
        self.met += cards.len() as u64;
        self.write(cards, &self.written);
    }

    fn write(&self, cards: Cards, written: &Arc<Written>) {
        let buffer = Arc::clone(self.buffer);
        if cards.is_empty() {
            return;
        }
        if let Some(write) = buffer.restoring(cards, Arc::clone(written)) {
            self.shared.have_done(Request::Write(write));
        }
    }

    /// So many were made again.
    pub(crate) fn made(&self) -> u64 {
        self.written.count()
    }

    /// So many could not be written, and why as far as that is known.
    pub(crate) fn failed(&self) -> Option<(u64, String)> {
        let left = self.met.saturating_sub(self.made());
        let why = || self.written.refused().unwrap_or("it takes long".to_owned());
        (left > 0).then(|| (left, why()))
    }

    /// Closes what is left of the catalogue in which no card can be read and to which nothing leads, when all files were looked at: so many
    /// places.
    pub(crate) fn close_holes(&self) -> Result<u64, Error> {
        let holes = self.buffer.holes()?;
        let (Some(first), Some(last)) = (holes.first(), holes.last()) else {
            return Ok(0);
        };
        let stretch = first.stretch.start..last.stretch.end;
        // To the cards of copies nobody is led yet; and what was found may be on its way still.
        let Some(_nothing_moves) = self
            .shared
            .moving
            .rests()
            .filter(|_| self.failed().is_none())
        else {
            return Ok(0);
        };
        let Some(wanted) = self.wanted(&holes, &stretch)? else {
            return Ok(0);
        };
        let written = Arc::default();
        self.write(self.buffer.closed(&holes, &wanted), &written);
        Ok(written.count())
    }

    /// The articles in these places to which history or overview lead, in order; none where they are more than are kept in mind.
    fn wanted(
        &self,
        holes: &[Hole],
        stretch: &Range<Position>,
    ) -> Result<Option<Vec<Token>>, Error> {
        let (history, id) = (self.shared.views.history(), self.buffer.id());
        let mut wanted = Vec::new();
        let mut keep = |token: &Token| {
            let at = token.position();
            let nth = holes.partition_point(|hole| hole.stretch.end <= at);
            let is_in_one = holes.get(nth).is_some_and(|it| it.stretch.start <= at);
            if is_in_one && wanted.len() <= PLACES_MAX {
                wanted.push(*token);
            }
        };
        let mut walk = history.tokens_in(id, stretch.clone())?;
        while walk.step(history, |led| {
            // An older bucket leads where a newer one says that it was withdrawn.
            let entry = history.lookup(&led.hash);
            if !led.is_withdrawn
                && entry.map_or(true, |it| it.is_some_and(|it| it.leads_to(&led.token)))
            {
                keep(&led.token);
            }
        })? {}
        let overview = self.shared.views.overview();
        overview.rows_within(id, stretch, |_, column, _| keep(&column.token))?;
        wanted.sort_unstable_by_key(Token::position);
        Ok((wanted.len() <= PLACES_MAX).then_some(wanted))
    }
}

/// Where articles of one buffer lie whose sequences are known: of very many, some.
#[derive(Debug)]
struct Met {
    places: Vec<(Position, Sequence)>,
    /// One of so many is kept.
    every: u64,
    met: u64,
}

impl Default for Met {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            every: 1,
            met: 0,
        }
    }
}

impl Met {
    fn add(&mut self, place: (Position, Sequence)) {
        if self.met.is_multiple_of(self.every) {
            self.places.push(place);
        }
        self.met += 1;
        if self.places.len() >= PLACES_MAX {
            let mut at = 0;
            self.places.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
        }
    }
}

/// The sequences of the articles of one buffer, as far as they can be told.
#[derive(Debug)]
struct Sequences {
    /// Ascending.
    places: Vec<(Position, Sequence)>,
    /// The log has more than these.
    is_some_of_log: bool,
    cycle_octets: u64,
    end: (Position, Sequence),
}

impl Sequences {
    /// By the cards that can be read, and by the log.
    fn of(shared: &Shared, buffer: &Arc<dyn BufferReader>) -> Result<Self, StoreError> {
        let facts = buffer.facts();
        let end = Position::checked(facts.cycle, facts.free_offset).unwrap_or_default();
        let end = (end, shared.committed());
        let (mut stored, mut logged) = (Met::default(), Met::default());
        if let Some(mut cards) = Arc::clone(buffer).cards() {
            while let Some(scanned) = cards.step()? {
                if let Scanned::Record {
                    token, sequence, ..
                } = scanned
                {
                    stored.add((token.position(), sequence));
                }
            }
        }
        let mut cursor = shared.journal.read_from(shared.journal.oldest());
        loop {
            let frame = match cursor.next_frame() {
                Ok(Some(frame)) => frame,
                // It goes on behind what is damaged.
                Err(JournalError::Damaged(_)) => continue,
                Ok(None) | Err(_) => break,
            };
            for record in frame.records() {
                let token = token_in(&record).filter(|token| token.buffer() == buffer.id());
                if let Some(token) = token {
                    logged.add((token.position(), record.sequence));
                }
            }
        }
        let is_some_of_log = logged.every > 1;
        let mut places = stored.places;
        places.extend(logged.places);
        places.sort_unstable();
        places.dedup_by_key(|(position, _)| *position);
        Ok(Self {
            places,
            is_some_of_log,
            cycle_octets: buffer.cycle_octets(),
            end,
        })
    }

    /// The sequence of an article: its own where the log has it, else one between those of its neighbours.
    fn of_article(&self, shared: &Shared, token: &Token) -> Sequence {
        let at = token.position();
        let behind = match self
            .places
            .binary_search_by_key(&at, |(position, _)| *position)
        {
            Ok(found) => return self.places[found].1,
            Err(behind) => behind,
        };
        let before = behind.checked_sub(1).and_then(|at| self.places.get(at));
        let before = before.copied().unwrap_or_default();
        let behind = self.places.get(behind).copied().unwrap_or(self.end);
        let logged = self
            .is_some_of_log
            .then(|| logged(shared, token, (before.1, behind.1)));
        logged.flatten().unwrap_or_else(|| {
            let octets = |position: Position| {
                u128::from(position.cycle()) * u128::from(self.cycle_octets)
                    + u128::from(position.offset())
            };
            let whole = octets(behind.0).saturating_sub(octets(before.0)).max(1);
            let part = octets(at).saturating_sub(octets(before.0));
            let sequences = u128::from(behind.1.0.saturating_sub(before.1.0));
            let more = u64::try_from(sequences * part / whole).unwrap_or_default();
            Sequence(before.1.0.saturating_add(more))
        })
    }
}

/// The sequence under which the log has an article, between these.
fn logged(shared: &Shared, token: &Token, range: (Sequence, Sequence)) -> Option<Sequence> {
    let from = range.0.max(shared.journal.oldest());
    let mut cursor = shared.journal.read_from(from);
    while let Some(frame) = cursor.next_frame().ok().flatten() {
        if frame.first() > range.1 {
            break;
        }
        let mut records = frame.records();
        let found = records.find(|it| token_in(it).is_some_and(|it| it.same_place(token)));
        if let Some(record) = found {
            return Some(record.sequence);
        }
    }
    None
}
