//! Articles as they come: each is told to whoever waits for it when it is there, or as soon as its header block is where more of
//! it is still to come.
//!
//! Of what nobody asked for no more is held than the settings say, and one article.  One whose end does not come is never kept,
//! and who reads it is told.

use std::sync::Arc;

use bytes::Bytes;
use newsreel_net::client::Connect;
use newsreel_service::{Arriving, ServiceError, says_in};
use newsreel_wire::article::Headers;
use newsreel_wire::{ArticleNumber, IdHash, MessageId};
use parking_lot::Mutex;

use super::flights::{Flight, Landed, LetGo};
use super::line::line_of;
use super::{Inner, Noted};
use crate::keep::{Fetched, Kept};
use crate::remote::Take;

/// An article that landed.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) number: ArticleNumber,
    pub(super) fetched: Fetched,
    /// Its overview line; none: it is no article that may be kept.
    pub(super) line: Option<Vec<u8>>,
    pub(super) let_go: LetGo,
}

/// An article whose end is still to come.
#[derive(Debug)]
pub(super) struct Coming {
    /// Its message-id.
    pub(super) id: Box<[u8]>,
    /// Octets of its header block, empty line not included.
    pub(super) head_len: usize,
    pub(super) arriving: Arc<Arriving>,
    readers: Mutex<Readers>,
}

/// Who is given an article as it comes.
#[derive(Debug, Default)]
struct Readers {
    /// The one it was fetched for, and those who are given it besides.
    parts: [Part; 2],
    /// Octets of the whole; none: the end has not come.
    whole: Option<u64>,
}

/// Those for whom it is a hit, or those for whom it is none.
#[derive(Debug, Default)]
struct Part {
    count: u64,
    /// Octets that were counted for them when they began.
    counted: u64,
    /// How often it was asked for, whatever part of it.
    asked: u64,
}

impl Readers {
    const fn part(&mut self, is_hit: bool) -> &mut Part {
        let [fetched, hits] = &mut self.parts;
        if is_hit { hits } else { fetched }
    }
}

impl Coming {
    pub(super) fn new(id: Box<[u8]>, head_len: usize, octets: Vec<u8>) -> Self {
        Self {
            id,
            head_len,
            arriving: Arc::new(Arriving::new(octets)),
            readers: Mutex::default(),
        }
    }

    /// Somebody reads it, for whom octets up to this place are counted; what else is to be counted already.
    pub(super) fn joined(&self, is_hit: bool, up_to: usize) -> u64 {
        let mut readers = self.readers.lock();
        if let Some(whole) = readers.whole {
            return whole.saturating_sub(up_to as u64);
        }
        let part = readers.part(is_hit);
        part.count += 1;
        part.counted += up_to as u64;
        0
    }

    /// Somebody asked for it, which is noted when its end has come; true: it has.
    pub(super) fn asked(&self, is_hit: bool) -> bool {
        let mut readers = self.readers.lock();
        readers.part(is_hit).asked += 1;
        readers.whole.is_some()
    }

    /// It has so many octets; what is to be counted for those who read it, and how often it was asked for: where it is no hit,
    /// and where it is one.
    pub(super) fn is_whole(&self, octets: u64) -> [(bool, u64, u64); 2] {
        let mut readers = self.readers.lock();
        readers.whole = Some(octets);
        [false, true].map(|is_hit| {
            let part = readers.part(is_hit);
            let uncounted = (part.count * octets).saturating_sub(part.counted);
            (is_hit, uncounted, part.asked)
        })
    }
}

/// The article that is being taken.
enum Taking {
    /// None.
    Nothing,
    /// One that is not wanted any more: who waited for it was told, or will be given another's; its place is taken until its end.
    Dropped,
    /// Its header block has not all come, or it goes to nobody as it comes.
    Unseen(Box<[u8]>, Vec<u8>),
    /// It is told as it comes.
    Seen(Arc<Coming>),
}

/// Why articles are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Readers ask for them, or are about to.
    Asked,
    /// They are to be here once somebody asks.
    Prefetch,
}

/// Articles that were asked for, in order.
pub(super) struct Arrivals<'f, C: Connect> {
    inner: &'f Inner<C>,
    flights: &'f [(ArticleNumber, Flight)],
    why: Why,
    /// The group that they have to say they are in; none: any.
    group: Option<&'f str>,
    /// Those that were answered.
    answered: usize,
    /// Places of those among them that have to be asked for elsewhere.
    passed: Vec<usize>,
    taking: Taking,
    held: u64,
    landed: Vec<Arrival>,
    /// The numbers of which the server said something that is known now.
    told: Vec<ArticleNumber>,
}

impl<'f, C: Connect> Arrivals<'f, C> {
    pub(super) const fn new(
        inner: &'f Inner<C>,
        flights: &'f [(ArticleNumber, Flight)],
        why: Why,
    ) -> Self {
        Self {
            inner,
            flights,
            why,
            group: None,
            answered: 0,
            passed: Vec::new(),
            taking: Taking::Nothing,
            held: 0,
            landed: Vec::new(),
            told: Vec::new(),
        }
    }

    /// The same, from a server that says nothing of the group by number: one that does not say itself that it is in the group has to be
    /// asked for elsewhere.
    pub(super) const fn only_in(mut self, group: &'f str) -> Self {
        self.group = Some(group);
        self
    }

    /// What has come, in order, and the numbers of which the server said something; nothing of what was let go meanwhile.
    pub(super) fn into_parts(mut self) -> (Vec<Arrival>, Vec<ArticleNumber>) {
        let flights = self.flights.iter();
        let let_go = flights.filter(|(_, flight)| flight.let_go().is_so());
        let let_go: Vec<ArticleNumber> = let_go.map(|(number, _)| *number).collect();
        let (mut landed, mut told) = (
            std::mem::take(&mut self.landed),
            std::mem::take(&mut self.told),
        );
        landed.retain(|arrival| !let_go.contains(&arrival.number));
        told.retain(|number| !let_go.contains(number));
        (landed, told)
    }

    /// The places of those of which nothing has come, and that may be asked for elsewhere.
    pub(super) fn left(&self) -> Vec<usize> {
        let has_begun = matches!(self.taking, Taking::Seen(_) | Taking::Dropped);
        let behind = self.answered + usize::from(has_begun)..self.flights.len();
        self.passed.iter().copied().chain(behind).collect()
    }

    /// The server failed: whoever waits for the first one is told, and who wants it from now on asks again.
    pub(super) fn failed(&mut self, error: ServiceError) {
        self.broke_off(&error);
        if self.answered == 0 {
            self.leave();
            self.land(Landed::Failed(error));
        }
    }

    /// The end of what had begun does not come.
    fn broke_off(&mut self, error: &ServiceError) {
        if let Taking::Seen(coming) = std::mem::replace(&mut self.taking, Taking::Nothing) {
            coming.arriving.ended(Err(error.clone()));
            self.leave();
        }
    }

    /// Nobody waits any more for the one that is being taken.
    fn leave(&self) {
        if let Some((_, flight)) = self.flights.get(self.answered) {
            flight.leave();
        }
    }

    /// All of the next one has come.
    fn ends(&mut self, id: &[u8], wire: Bytes) {
        let Some((number, flight)) = self.flights.get(self.answered) else {
            return;
        };
        self.answered += 1;
        self.held += wire.len() as u64;
        let landed = self.inner.landed(id, wire);
        flight.land(landed.clone());
        if let Landed::Found(fetched) = landed {
            let line = match self.is_kept(&fetched) {
                true => line_of(&fetched.id, &fetched.kept),
                false => None,
            };
            // Of one that is damaged, or too large, nothing is known: the next who wants it asks again.
            if line.is_some() {
                self.told.push(*number);
            }
            self.landed.push(Arrival {
                number: *number,
                fetched,
                line,
                let_go: flight.let_go(),
            });
        }
    }

    /// Whether an article is not too large to be kept.
    fn is_kept(&self, fetched: &Fetched) -> bool {
        let most = self.inner.there.article_octets_max();
        let octets = fetched.kept.wire.len() as u64;
        if octets > most
            && let Some(more) = self.inner.lines.admit()
        {
            let id = String::from_utf8_lossy(&fetched.id);
            tracing::info!(target: "newsreel::cache", %id, octets, more,
                "an article is larger than articles.octets_max: it is passed on, and not kept");
        }
        octets <= most
    }

    /// Whether so many octets more are too much, of what nobody reads yet.
    const fn is_too_much(&self, octets: usize) -> bool {
        self.held > 0 && self.held + octets as u64 > self.inner.settings.read_ahead_octets_max
    }

    fn land(&self, landed: Landed) {
        if let Some((_, flight)) = self.flights.get(self.answered) {
            flight.land(landed);
        }
    }

    /// Octets of one that is not wanted any more.  The next one begins behind its end, and not before: where the connection breaks
    /// off, it is this one that is asked for again.
    fn goes_by(&mut self, is_last: bool) {
        if is_last {
            self.answered += 1;
        } else {
            self.taking = Taking::Dropped;
        }
    }

    /// What has come of one that nobody is told of yet.
    fn goes_on(&mut self, id: Box<[u8]>, mut octets: Vec<u8>, piece: &[u8], is_last: bool) {
        if self.is_too_much(octets.len() + piece.len()) {
            self.leave();
            self.land(Landed::Lost);
            self.goes_by(is_last);
            return;
        }
        let before = octets.len();
        octets.extend_from_slice(piece);
        match head_len_behind(&octets, before) {
            Some(_) if self.group.is_some_and(|group| !is_in(group, &octets)) => {
                self.passed.push(self.answered);
                self.goes_by(is_last);
            }
            _ if is_last => self.ends(&id, octets.into()),
            Some(head_len) => {
                let coming = Arc::new(Coming::new(id, head_len, octets));
                self.land(Landed::Coming(Arc::clone(&coming)));
                self.taking = Taking::Seen(coming);
            }
            None => self.taking = Taking::Unseen(id, octets),
        }
    }
}

/// Octets of the header block of an article, or its beginning, empty line not included, where that was looked for in so many octets and not
/// found: they are not looked through again.  None: it has no end of it.
fn head_len_behind(wire: &[u8], looked: usize) -> Option<usize> {
    // An end that has begun there has three octets there.
    let from = looked.saturating_sub(3);
    match from {
        0 => Kept::head_len_of(wire),
        _ => Some(from + memchr::memmem::find(wire.get(from..)?, b"\r\n\r\n")? + 2),
    }
}

/// Whether an article says of itself that it is in a group.
pub(super) fn is_in(group: &str, wire: &[u8]) -> bool {
    let headers = Headers::scan_stored(wire);
    headers.is_ok_and(|headers| says_in(&headers, &|name| name == group))
}

impl<C: Connect> Inner<C> {
    /// The hash of a message-id; none: it is none.
    pub(super) fn hash_of(&self, id: &[u8]) -> Option<IdHash> {
        let id = MessageId::parse(id).ok()?;
        Some(self.keep.id_hash(id))
    }
}

impl<C: Connect> Take for Arrivals<'_, C> {
    fn begins(&mut self, id: Option<&[u8]>) {
        self.broke_off(&Inner::<C>::given_up());
        match id {
            Some(id) => {
                if self.why == Why::Asked
                    && let Some(hash) = self.inner.hash_of(id)
                {
                    self.inner.unread.note(hash);
                }
                self.taking = Taking::Unseen(id.into(), Vec::new());
            }
            None => {
                if let Some((number, flight)) = self.flights.get(self.answered) {
                    flight.land(Landed::Missing);
                    self.told.push(*number);
                    self.answered += 1;
                }
            }
        }
    }

    fn passes(&mut self) {
        self.passed.push(self.answered);
        self.answered += 1;
    }

    fn piece(&mut self, octets: &[u8], is_last: bool) {
        match std::mem::replace(&mut self.taking, Taking::Nothing) {
            Taking::Nothing => {}
            Taking::Dropped => self.goes_by(is_last),
            Taking::Unseen(id, before) => self.goes_on(id, before, octets, is_last),
            Taking::Seen(coming) => {
                coming.arriving.came(octets);
                if !is_last {
                    self.taking = Taking::Seen(coming);
                    return;
                }
                let wire = coming.arriving.seen(Bytes::copy_from_slice);
                let (inner, whole) = (self.inner, wire.len() as u64);
                let noted = Noted::of_wire(&coming.id, &wire);
                for (is_hit, uncounted, asked) in coming.is_whole(whole) {
                    inner.counts.came(inner.keep.policy(), is_hit, uncounted);
                    inner.noted(&noted, is_hit, (asked, asked * whole));
                }
                self.ends(&coming.id, wire);
                coming.arriving.ended(Ok(()));
            }
        }
    }
}

impl<C: Connect> Drop for Arrivals<'_, C> {
    fn drop(&mut self) {
        self.broke_off(&Inner::<C>::given_up());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_header_block_is_found_wherever_pieces_end() {
        for wire in [
            &b"Subject: x\r\n\r\nText.\r\n.\r\n"[..],
            b"\r\nText.\r\n.\r\n",
        ] {
            let whole = Kept::head_len_of(wire).unwrap();
            for cut in 0..=wire.len() {
                let (front, _) = wire.split_at(cut);
                let found = head_len_behind(front, 0);
                assert_eq!(found, Kept::head_len_of(front), "{cut}");
                if found.is_none() {
                    assert_eq!(head_len_behind(wire, cut), Some(whole), "{cut}");
                }
            }
        }
        // What was looked through is not looked through again.
        let looked = b"Subject: x\r\n\r\nText.\r\n";
        assert_eq!(head_len_behind(looked, looked.len()), None);
    }
}
