//! Reply slots: answers to pipelined CHECK and TAKETHIS (and to IHAVE's article), in the order of the commands.
//!
//! An answer that is known at once waits in its slot until those before it have been given.  Slots are bounded in
//! number and in octets of articles under way; the session stops reading when they are full.  Message-ids stand in
//! one byte queue, so that a slot costs no allocation.

use std::collections::VecDeque;

use newsreel_service::{Completion, Offer, Outcome, TransferKind};

/// An answer's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Not known yet.
    Waiting(TransferKind),
    /// What became of an article.
    Transferred(TransferKind, Outcome),
    /// The answer to CHECK.
    Offered(Offer),
    /// A line that is always the same, CRLF included.
    Fixed(&'static str),
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    answer: Answer,
    id_len: u16,
    /// Octets of the article.
    octets: u32,
}

/// What comes out at the front.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settled<'s> {
    pub(crate) answer: Answer,
    pub(crate) id: &'s [u8],
    pub(crate) octets: u32,
}

/// The answers owed on one connection.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    queue: VecDeque<Slot>,
    /// Message-ids of the slots, one behind the other; those before `ids_from` are done with.
    ids: Vec<u8>,
    ids_from: usize,
    first_ticket: u64,
    waiting: usize,
    octets: usize,
}

/// Octets of spent message-ids after which the queue is moved to its front.
const IDS_SPENT_MAX: usize = 16 << 10;

impl Slots {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Answers that are not known yet.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether another one may not be added.
    pub(crate) fn is_full(&self, replies_max: usize, octets_max: usize) -> bool {
        self.queue.len() >= replies_max || self.octets >= octets_max
    }

    /// Adds an answer; returns the ticket under which a [`Answer::Waiting`] one is completed.
    pub(crate) fn push(&mut self, answer: Answer, id: &[u8], octets: usize) -> u64 {
        let ticket = self.first_ticket + self.queue.len() as u64;
        if self.queue.is_empty() {
            self.ids.clear();
            self.ids_from = 0;
        }
        self.ids.extend_from_slice(id);
        self.octets += octets;
        self.waiting += usize::from(matches!(answer, Answer::Waiting(_)));
        self.queue.push_back(Slot {
            answer,
            id_len: id.len() as u16,
            octets: u32::try_from(octets).unwrap_or(u32::MAX),
        });
        ticket
    }

    /// Fills a slot in.  A ticket that is unknown or filled already is passed over.
    pub(crate) fn complete(&mut self, completion: Completion) {
        let place = completion.ticket.wrapping_sub(self.first_ticket);
        let slot = usize::try_from(place)
            .ok()
            .and_then(|place| self.queue.get_mut(place));
        debug_assert!(slot.is_some(), "a ticket nobody waits for");
        if let Some(slot) = slot
            && let Answer::Waiting(kind) = slot.answer
        {
            slot.answer = Answer::Transferred(kind, completion.outcome);
            self.waiting -= 1;
        }
    }

    /// Takes the next answer, if it is known.
    pub(crate) fn pop(&mut self) -> Option<Settled<'_>> {
        let slot = *self.queue.front()?;
        if matches!(slot.answer, Answer::Waiting(_)) {
            return None;
        }
        self.queue.pop_front();
        self.first_ticket += 1;
        self.octets -= slot.octets as usize;
        if self.ids_from >= IDS_SPENT_MAX {
            self.ids.drain(..self.ids_from);
            self.ids_from = 0;
        }
        let from = self.ids_from;
        let to = from + usize::from(slot.id_len);
        self.ids_from = to;
        Some(Settled {
            answer: slot.answer,
            id: &self.ids[from..to],
            octets: slot.octets,
        })
    }

    /// Forgets what it knew of an ended connection, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.ids.clear();
        self.ids_from = 0;
        self.first_ticket = 0;
        self.waiting = 0;
        self.octets = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: TransferKind = TransferKind::Takethis;

    fn drain(slots: &mut Slots) -> Vec<String> {
        let mut out = Vec::new();
        while let Some(settled) = slots.pop() {
            let id = String::from_utf8_lossy(settled.id);
            out.push(match settled.answer {
                Answer::Fixed(text) => text.to_owned(),
                Answer::Transferred(_, outcome) => format!("{outcome:?} {id} {}", settled.octets),
                other => format!("{other:?} {id}"),
            });
        }
        out
    }

    #[test]
    fn answers_keep_the_order_of_the_commands() {
        let mut slots = Slots::default();
        let a = slots.push(Answer::Waiting(KIND), b"<a>", 10);
        slots.push(Answer::Offered(Offer::Want), b"<b>", 0);
        let c = slots.push(Answer::Waiting(KIND), b"<c>", 30);
        slots.push(Answer::Fixed("501"), b"", 0);
        assert_eq!(slots.waiting(), 2);
        assert!(!slots.is_full(5, 41) && slots.is_full(4, 41) && slots.is_full(5, 40));
        slots.complete(Completion {
            ticket: c,
            outcome: Outcome::Duplicate,
        });
        assert_eq!(drain(&mut slots), Vec::<String>::new());
        slots.complete(Completion {
            ticket: a,
            outcome: Outcome::Accepted,
        });
        assert_eq!(
            drain(&mut slots),
            [
                "Accepted <a> 10",
                "Offered(Want) <b>",
                "Duplicate <c> 30",
                "501"
            ]
        );
        assert!(slots.is_empty() && slots.octets == 0);
        let d = slots.push(Answer::Waiting(KIND), b"<d>", 1);
        assert_eq!(d, 4);
        slots.complete(Completion {
            ticket: d,
            outcome: Outcome::Failed,
        });
        assert_eq!(drain(&mut slots), ["Failed <d> 1"]);
    }

    #[test]
    fn ids_do_not_pile_up() {
        let mut slots = Slots::default();
        let mut next = 0;
        for round in 0..20_000_u64 {
            let id = format!("<{round}@example>");
            let ticket = slots.push(Answer::Waiting(KIND), id.as_bytes(), 1);
            if round >= 10 {
                slots.complete(Completion {
                    ticket: ticket - 10,
                    outcome: Outcome::Accepted,
                });
                assert_eq!(drain(&mut slots), [format!("Accepted <{next}@example> 1")]);
                next += 1;
            }
        }
        assert!(
            slots.ids.capacity() < 4 * IDS_SPENT_MAX,
            "{}",
            slots.ids.capacity()
        );
    }
}
