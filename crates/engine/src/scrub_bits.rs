//! The bitmap of a buffer beside its articles, as the scrub passes them: where they do not agree it is written again.
//!
//! Nothing is served by it, so what cannot be told for certain is left: what withdrawals are still about to change, and in stretches with
//! damage in them, where the history is lost, all but the articles that are sound there.  A bit where nothing begins may be all that is left of an
//! article: it is told of where pages are empty between articles, or the log was an old one.  Elsewhere it is cleared, unless the history leads there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use newsreel_store::{BufferReader, WrongBits};
use newsreel_wire::{IdHash, Position, Token};

use crate::requests::Request;
use crate::scrub_state::KNOWN_MAX;
use crate::shared::Shared;

/// So many bits of a buffer are kept in mind of which it is to be told at the end what they are; the next scrub looks at those beyond.
const DOUBTFUL_MAX: usize = 1 << 16;

/// So many gaps of a buffer are kept in mind.
pub(crate) const GAPS_MAX: usize = KNOWN_MAX;

/// Writes bits as they should be; whether it may.  What was withdrawn since that was compared may have lost its bit before it got it here, so
/// that is asked once more: who has it lose its bit behind the answer told the history before.
fn write(
    buffer: &dyn BufferReader,
    wrong: &WrongBits,
    is_wanted: &dyn Fn(&Position) -> bool,
) -> Result<bool, newsreel_store::Error> {
    let is_written = buffer.mend_bits(wrong)?;
    let withdrawn = wrong.missing.iter().filter(|at| !is_wanted(at));
    let extra: Vec<Position> = withdrawn.copied().collect();
    if is_written && !extra.is_empty() {
        let missing = Vec::new();
        buffer.mend_bits(&WrongBits { missing, extra })?;
    }
    Ok(is_written)
}

/// What the scrub has passed since it looked last, and what it found.
#[derive(Debug)]
pub(crate) struct Bits {
    from: Position,
    /// The articles that begin since then.
    pub(crate) starts: Vec<(Token, IdHash)>,
    /// Those of them to which nobody is led, where only a mark in the record can tell it.
    withdrawn: Vec<(Token, IdHash)>,
    marked: u64,
    /// Somewhere since then it cannot be told what begins.
    pub(crate) is_unsure: bool,
    /// What should be here nobody knows.
    pub(crate) is_blind: bool,
    wrong: u64,
    is_written: bool,
    /// Where nothing is, and the bitmap says that an article begins.
    doubtful: Vec<Position>,
    /// Those of them in stretches with damage: where the history leads to one it was told as that.
    unsure: BTreeSet<Position>,
    /// So many more of those are left as they are.
    unsettled: u64,
    /// Whole pages between articles in which nothing is, from the beginning on.
    pub(crate) gaps: Vec<Range<Position>>,
}

impl Bits {
    /// From a position on.
    pub(crate) const fn new(from: Position) -> Self {
        Self {
            from,
            starts: Vec::new(),
            withdrawn: Vec::new(),
            marked: 0,
            is_unsure: false,
            is_blind: false,
            wrong: 0,
            is_written: true,
            doubtful: Vec::new(),
            unsure: BTreeSet::new(),
            unsettled: 0,
            gaps: Vec::new(),
        }
    }

    /// An article begins here; whether nobody is led to it.
    pub(crate) fn met(&mut self, buffer: &dyn BufferReader, met: (Token, IdHash), is_gone: bool) {
        if is_gone && buffer.marks_withdrawn(met.0.position()) {
            self.withdrawn.push(met);
        }
        self.starts.push(met);
    }

    /// It goes on somewhere else.
    pub(crate) fn restart(&mut self, from: Position) {
        self.from = from;
        self.starts.clear();
        self.withdrawn.clear();
        self.is_unsure = false;
    }

    /// Compares what was passed up to here.
    pub(crate) fn look(&mut self, shared: &Shared, buffer: &Arc<dyn BufferReader>, at: Position) {
        self.mark(shared);
        if let Err(error) = self.compare(shared, buffer, at) {
            tracing::error!(buffer = buffer.name(), %error, "its bitmap cannot be looked at");
        }
        self.restart(at);
    }

    /// Has the records marked of articles that were withdrawn when nothing did that yet.  What the history does not know may be of a log
    /// that was lost, and to the copies of articles that move nobody is led yet.
    fn mark(&mut self, shared: &Shared) {
        let history = shared.views.history();
        let mut withdrawn = std::mem::take(&mut self.withdrawn);
        let Some(_nothing_moves) = shared.moving.rests().filter(|_| !withdrawn.is_empty()) else {
            return;
        };
        // Behind an old log it may lead to where an article was before it moved here.
        let state = shared.scrubs.lock();
        withdrawn.retain(|(token, _)| !state.is_distrusted(token.buffer(), token.position()));
        drop(state);
        withdrawn.retain(|(token, hash)| {
            let known = history.lookup(hash);
            known.is_ok_and(|entry| entry.is_some_and(|entry| !entry.leads_to(token)))
        });
        if !withdrawn.is_empty() {
            self.marked += withdrawn.len() as u64;
            let tokens = withdrawn.iter().map(|(token, _)| *token);
            shared.have_done(Request::Clear(tokens.collect()));
        }
    }

    fn compare(
        &mut self,
        shared: &Shared,
        buffer: &Arc<dyn BufferReader>,
        at: Position,
    ) -> Result<(), newsreel_store::Error> {
        let starts: Vec<Position> = self
            .starts
            .iter()
            .map(|(token, _)| token.position())
            .collect();
        let mut wrong = buffer.wrong_bits(self.from..at, &starts)?;
        let is_wanted = |start: &Position| {
            let found = self
                .starts
                .iter()
                .find(|(token, _)| token.position() == *start);
            found.is_some_and(|(token, hash)| shared.is_wanted(token, hash))
        };
        let state = shared.scrubs.lock();
        let missing = &mut wrong.missing;
        missing.retain(|at| !state.is_distrusted(buffer.id(), *at));
        drop(state);
        missing.retain(is_wanted);
        let is_inside = |at: &Position| {
            let mut records = self.starts.iter().map(|(token, _)| {
                let start = token.position();
                (start, buffer.octets_for(u64::from(token.len())))
            });
            records.any(|(start, len)| {
                start.cycle() == at.cycle()
                    && start < *at
                    && at.offset() < start.offset().saturating_add(len)
            })
        };
        let (doubtful, unsettled) = (&mut self.doubtful, &mut self.unsettled);
        wrong.extra.retain(|at| {
            let is_nothing = is_inside(at) || (!self.is_unsure && !buffer.is_lost(*at));
            match doubtful.len() < DOUBTFUL_MAX {
                _ if is_nothing || (self.is_unsure && self.is_blind) => {}
                true => {
                    doubtful.push(*at);
                    if self.is_unsure {
                        self.unsure.insert(*at);
                    }
                }
                false => *unsettled += 1,
            }
            is_nothing
        });
        let count = (wrong.missing.len() + wrong.extra.len()) as u64;
        if count > 0 {
            self.is_written &= write(buffer.as_ref(), &wrong, &is_wanted)?;
            self.wrong += count;
        }
        Ok(())
    }

    /// Clears the bits of those in doubt that the history knows to be withdrawn, or does not know, where nothing else speaks for them; the
    /// others come back, in order.
    pub(crate) fn settle(
        &mut self,
        shared: &Shared,
        buffer: &Arc<dyn BufferReader>,
    ) -> Vec<Position> {
        let mut doubtful = std::mem::take(&mut self.doubtful);
        doubtful.sort_unstable();
        doubtful.dedup();
        let (Some(first), Some(last)) = (doubtful.first(), doubtful.last()) else {
            return doubtful;
        };
        let stretch = *first..Position(last.0.saturating_add(1));
        let history = shared.views.history();
        let mut known = BTreeMap::new();
        let asked = history
            .tokens_in(buffer.id(), stretch)
            .and_then(|mut walk| {
                while walk.step(history, |led| {
                    let at = led.token.position();
                    if doubtful.binary_search(&at).is_ok() {
                        // Whoever is led there still counts.
                        *known.entry(at).or_insert(true) &= led.is_withdrawn;
                    }
                })? {}
                Ok(())
            });
        if let Err(error) = asked {
            tracing::warn!(buffer = buffer.name(), %error, "what was withdrawn there cannot be told");
            return Vec::new();
        }
        let state = shared.scrubs.lock();
        let is_stray = |at: &Position| match known.get(at) {
            Some(is_withdrawn) => *is_withdrawn,
            None => !state.is_distrusted(buffer.id(), *at) && !self.is_in_gap(*at),
        };
        let (stray, mut left): (Vec<_>, Vec<_>) = doubtful.into_iter().partition(is_stray);
        drop(state);
        left.retain(|at| !self.unsure.contains(at) || !known.contains_key(at));
        let wrong = WrongBits {
            missing: Vec::new(),
            extra: stray,
        };
        if !wrong.extra.is_empty() {
            self.wrong += wrong.extra.len() as u64;
            match buffer.mend_bits(&wrong) {
                Ok(is_written) => self.is_written &= is_written,
                Err(error) => {
                    tracing::error!(buffer = buffer.name(), %error, "its bitmap cannot be written");
                }
            }
        }
        left
    }

    /// Whether whole pages between articles are empty there; where there are more than are kept in mind, any may be.
    fn is_in_gap(&self, at: Position) -> bool {
        self.gaps.len() > GAPS_MAX || self.gaps.iter().any(|gap| gap.contains(&at))
    }

    /// What was found, for people; it is logged, too.
    pub(crate) fn told(&self, buffer: &str) -> impl Iterator<Item = String> {
        let told = [
            self.told_of_bits(buffer),
            self.told_of_unsettled(buffer),
            self.told_of_marks(buffer),
        ];
        told.into_iter().flatten()
    }

    fn told_of_unsettled(&self, buffer: &str) -> Option<String> {
        let unsettled = self.unsettled;
        (unsettled > 0).then(|| {
            let said = format!(
                "its bitmap has more bits where nothing lies than a scrub looks at: {unsettled}; they are left to the next one"
            );
            tracing::warn!(buffer, "{said}");
            format!("buffer {buffer}: {said}")
        })
    }

    fn told_of_marks(&self, buffer: &str) -> Option<String> {
        let marked = self.marked;
        (marked > 0).then(|| {
            let said = format!(
                "articles that were withdrawn behind the end of its bitmap, whose records did not say so: {marked}; they were marked"
            );
            tracing::warn!(buffer, "{said}");
            format!("buffer {buffer}: {said}")
        })
    }

    fn told_of_bits(&self, buffer: &str) -> Option<String> {
        if self.wrong == 0 {
            return None;
        }
        let (wrong, done) = (
            self.wrong,
            match self.is_written {
                true => "it was written again",
                false => "nothing was written",
            },
        );
        tracing::error!(
            buffer,
            "its bitmap was wrong at {wrong} of its bits; {done}"
        );
        Some(format!(
            "buffer {buffer}: its bitmap was wrong at {wrong} of its bits; {done}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use newsreel_host::MemoryDisk;
    use newsreel_store::conformance::{Rig, config_of};

    use super::*;

    /// Nothing ever cleared it again.
    #[test]
    fn what_was_withdrawn_since_it_was_compared_has_no_bit() {
        let config = config_of("cnfs", 1 << 20);
        let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
        let token = rig.place(1, 2000).unwrap();
        rig.commit().unwrap();
        let mut writes = Vec::new();
        rig.store.withdrawn(&[token], &mut writes);
        rig.checkpoint().unwrap();
        let start = token.position();
        let stretch = start..Position::new(start.cycle(), start.offset() + 64);
        let buffers = rig.reader.buffers();
        let mut buffers = buffers.iter();
        let buffer = buffers.find(|it| it.id() == token.buffer()).unwrap();
        let missing = || {
            buffer
                .wrong_bits(stretch.clone(), &[start])
                .unwrap()
                .missing
        };
        assert_eq!(missing(), [start]);
        let compared = WrongBits {
            missing: vec![start],
            extra: Vec::new(),
        };
        assert!(write(buffer.as_ref(), &compared, &|_| false).unwrap());
        assert_eq!(missing(), [start]);
        assert!(write(buffer.as_ref(), &compared, &|_| true).unwrap());
        assert_eq!(missing(), []);
    }
}
