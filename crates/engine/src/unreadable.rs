//! Which articles are known to be damaged, by a read or by a scrub: they are not there for whoever asks for one of them.
//!
//! ARTICLE, HEAD, BODY and STAT answer alike, and so do OVER and HDR by message-id.  Lists tell what the views have: the line of a
//! damaged article is sound, and the damage may be gone with the next read.  A read that succeeds, or a scrub that does not meet it,
//! has it forgotten.  What is kept of this in the spool is the scrub's.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_wire::{BufferId, Position, Token};
use parking_lot::Mutex;

use crate::scrub_state::KNOWN_MAX;
use crate::shared::Shared;

/// So many places that reads found wait to be looked at; the others are left to the next scrub.
const WAITING_MAX: usize = 64;

/// What reads found.
#[derive(Debug, Default)]
pub(crate) struct Unreadable {
    /// Something may be known to be damaged: else nobody has to take a lock.
    is_any: AtomicBool,
    places: Mutex<BTreeSet<(BufferId, Position)>>,
    /// What was found and nobody has tried to mend.
    waiting: Mutex<VecDeque<(BufferId, Position)>>,
}

impl Unreadable {
    /// Where something is known from an earlier run already, or nothing.
    pub(crate) fn new(is_any: bool) -> Self {
        Self {
            is_any: AtomicBool::new(is_any),
            places: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// Something is known to be damaged.
    pub(crate) fn look_from_now_on(&self) {
        self.is_any.store(true, Ordering::Release);
    }

    /// The next place that may be mended.
    pub(crate) fn take_waiting(&self) -> Option<(BufferId, Position)> {
        self.waiting.lock().pop_front()
    }

    /// A scrub has compared a stretch: what is damaged there it knows.
    pub(crate) fn compared(&self, buffer: BufferId, stretch: &Range<Position>) {
        let mut places = self.places.lock();
        places.retain(|(of, at)| *of != buffer || !stretch.contains(at));
    }
}

fn place(token: &Token) -> (BufferId, Position) {
    (token.buffer(), token.position())
}

impl Shared {
    /// Whether this article is known to be damaged.
    pub(crate) fn is_damaged(&self, token: &Token) -> bool {
        if !self.unreadable.is_any.load(Ordering::Acquire) {
            return false;
        }
        let place = place(token);
        let by_a_read = self.unreadable.places.lock().contains(&place);
        by_a_read || self.scrubs.lock().known.contains_key(&place)
    }

    /// Damaged places of a buffer, or of all, that are not overwritten yet: how many scrubs know, and how many more reads met.
    pub(crate) fn damaged_places(&self, of: Option<BufferId>) -> (u64, u64) {
        let mut by_reads = self.unreadable.places.lock().clone();
        let state = self.scrubs.lock();
        by_reads.retain(|place| !state.known.contains_key(place));
        let is_there = |(buffer, at): &&(BufferId, Position)| {
            of.is_none_or(|of| of == *buffer) && *at >= self.store.floor(*buffer)
        };
        let known = state.known.keys().filter(is_there).count();
        (
            known as u64,
            by_reads.iter().filter(is_there).count() as u64,
        )
    }

    /// A read found this article damaged; whether that is news.
    pub(crate) fn found_unreadable(&self, token: &Token) -> bool {
        let is_news = !self.is_damaged(token);
        let mut places = self.unreadable.places.lock();
        if places.len() < KNOWN_MAX {
            places.insert(place(token));
        }
        drop(places);
        let mut waiting = self.unreadable.waiting.lock();
        if is_news && waiting.len() < WAITING_MAX {
            waiting.push_back(place(token));
        }
        drop(waiting);
        self.unreadable.look_from_now_on();
        is_news
    }

    /// This article has no file any more, or its buffer was put back as it had been before: where that is not certain its disk may be missing,
    /// and until that is back the article is not there, however it is asked for.
    pub(crate) fn found_removed(&self, token: &Token) {
        if !self.withdraw_removed(token) {
            self.found_unreadable(token);
        }
    }

    /// The whole of this article was read, and is sound.
    pub(crate) fn found_readable(&self, token: &Token) {
        if self.is_damaged(token) {
            let place = place(token);
            self.unreadable.places.lock().remove(&place);
            self.scrubs.lock().known.remove(&place);
        }
    }
}
