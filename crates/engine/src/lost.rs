//! Articles to which the history leads and that a walk over their buffer did not meet: whether they are lost, and whose they were.
//!
//! That is asked only now, of history, overview and log, each read once for all of them: a stretch of zeros may have held many.

use std::ops::Range;
use std::sync::Arc;

use newsreel_index::TokenWalk;
use newsreel_store::BufferReader;
use newsreel_wire::{ArticleNumber, GroupId, IdHash, MessageId, Position, Sequence, Token};

use crate::record::{ArticleRecord, kind};
use crate::scrub_state::KNOWN_MAX;
use crate::shared::Shared;

/// One of them, with what is known of it.
#[derive(Debug)]
pub(crate) struct LostArticle {
    pub(crate) token: Token,
    pub(crate) hash: IdHash,
    pub(crate) sequence: Option<Sequence>,
    pub(crate) id: Option<String>,
    pub(crate) places: Vec<(GroupId, ArticleNumber)>,
}

/// Those that were missed, being asked about.
#[derive(Debug)]
pub(crate) struct Asking {
    /// In order, and whether each is known to be lost.
    missed: Vec<(Position, bool)>,
    walk: TokenWalk,
    found: Vec<LostArticle>,
    more: u64,
}

impl Asking {
    /// Begins; `missed` is in order.
    pub(crate) fn new(
        shared: &Shared,
        buffer: &Arc<dyn BufferReader>,
        missed: Vec<Position>,
    ) -> Result<Self, newsreel_index::Error> {
        let stretch = stretch_of(missed.iter().copied());
        Ok(Self {
            walk: shared.views.history().tokens_in(buffer.id(), stretch)?,
            missed: missed.into_iter().map(|at| (at, false)).collect(),
            found: Vec::new(),
            more: 0,
        })
    }

    /// Octets of the history that were read.
    pub(crate) fn octets_read(&self) -> u64 {
        self.walk.octets_read()
    }

    /// The last of those that were missed.
    pub(crate) fn last(&self) -> Position {
        self.missed.last().map_or(Position::ZERO, |(at, _)| *at)
    }

    /// A piece further; `false`: all is known.
    pub(crate) fn step(
        &mut self,
        shared: &Shared,
        buffer: &Arc<dyn BufferReader>,
    ) -> Result<bool, newsreel_index::Error> {
        let Self {
            missed,
            walk,
            found,
            more,
        } = self;
        let history = shared.views.history();
        let mut failed = None;
        let has_more = walk.step(history, |led| {
            let at = led.token.position();
            let nth = missed.binary_search_by_key(&at, |(at, _)| *at);
            let one = nth.ok().and_then(|nth| missed.get_mut(nth));
            let Some((_, is_lost)) = one.filter(|(_, is_lost)| !*is_lost) else {
                return;
            };
            match history.lookup(&led.hash) {
                Ok(entry) => {
                    *is_lost =
                        entry.is_some_and(|entry| entry.leads_to(&led.token)) && buffer.is_lost(at);
                }
                Err(error) => failed = Some(error),
            }
            match *is_lost {
                false => {}
                true if found.len() < KNOWN_MAX => found.push(LostArticle {
                    token: led.token,
                    hash: led.hash,
                    sequence: None,
                    id: None,
                    places: Vec::new(),
                }),
                true => *more += 1,
            }
        })?;
        failed.map_or(Ok(has_more), Err)
    }

    /// Which are lost, in order, with what the overview and the log know of them; and how many more than are kept in mind.
    pub(crate) fn end(
        mut self,
        shared: &Shared,
        buffer: &Arc<dyn BufferReader>,
    ) -> (Vec<LostArticle>, u64) {
        self.found
            .sort_unstable_by_key(|lost| lost.token.position());
        listed(shared, buffer, &mut self.found);
        if self.found.iter().any(|lost| lost.id.is_none()) {
            logged(shared, &mut self.found);
        }
        (self.found, self.more)
    }
}

/// From the first to the last of some positions.
fn stretch_of(mut places: impl DoubleEndedIterator<Item = Position>) -> Range<Position> {
    let first = places.next().unwrap_or_default();
    let last = places.next_back().unwrap_or(first);
    first..Position(last.0.saturating_add(1))
}

/// The one that lay at this place.
fn lost_at<'l>(found: &'l mut [LostArticle], token: &Token) -> Option<&'l mut LostArticle> {
    let at = token.position();
    let nth = found.binary_search_by_key(&at, |lost| lost.token.position());
    let lost = found.get_mut(nth.ok()?)?;
    lost.token.same_place(token).then_some(lost)
}

/// What the overview knows of them.
fn listed(shared: &Shared, buffer: &Arc<dyn BufferReader>, found: &mut [LostArticle]) {
    let stretch = stretch_of(found.iter().map(|lost| lost.token.position()));
    let overview = shared.views.overview();
    let seen = overview.rows_within(buffer.id(), &stretch, |group, column, id| {
        let Some(lost) = lost_at(found, &column.token) else {
            return;
        };
        let parsed = MessageId::parse(id).ok();
        if parsed.is_some_and(|id| shared.id_hash(id) == lost.hash) {
            lost.id = Some(String::from_utf8_lossy(id).into_owned());
            lost.places.push((group, column.number));
        }
    });
    if let Err(error) = seen {
        tracing::warn!(%error, "whose the lost articles were cannot be told of all");
    }
    for lost in found {
        lost.places.sort_unstable();
        lost.places.dedup();
    }
}

/// What the log knows of them, as far as it goes back.
fn logged(shared: &Shared, found: &mut [LostArticle]) {
    let mut cursor = shared.journal.read_from(shared.journal.oldest());
    loop {
        let frame = match cursor.next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            Err(newsreel_journal::Error::Damaged(_)) => continue,
            Err(_) => return,
        };
        for record in frame.records().filter(|it| it.kind == kind::ARTICLE) {
            let Ok(article) = ArticleRecord::decode(record.sequence, record.payload) else {
                continue;
            };
            let lost = lost_at(found, &article.token);
            if let Some(lost) = lost.filter(|lost| lost.hash == article.id_hash) {
                lost.sequence = Some(record.sequence);
                lost.id = Some(String::from_utf8_lossy(article.id).into_owned());
            }
        }
    }
}
