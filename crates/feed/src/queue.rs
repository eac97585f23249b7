//! A feed's articles in memory: those that wait, those that are under way, those that are tried again later.
//!
//! All connections of a feed share one queue.  An article is in it from when it was read from the log until the peer settled it or
//! it is gone; the place follows.  Pure: time comes in, nothing is sent here.

mod item;
mod line;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use newsreel_wire::{Sequence, UnixTime};

use crate::config::FeedConfig;
use crate::place::Place;
use crate::quota::Quota;
use crate::remembered::{LastWord, Remembered};

pub use item::Tally;
pub(crate) use item::{Held, Item, Offered, Settled};
use line::Line;

/// No article waits longer for its next try, milliseconds.
const RETRY_MS_MAX: u64 = 3_600_000;

/// How often it is seen at least whether what waits for its time may go.
pub(crate) const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// The articles of one feed.
#[derive(Debug)]
pub(crate) struct Queue {
    place: Place,
    /// Of what is open, what was so when the feed began and is in the log only, not in memory.
    in_log: BTreeSet<Sequence>,
    /// What the place names is not in memory yet.
    lacks_named: bool,
    /// What is in memory, whoever has it.
    in_memory: BTreeMap<Sequence, Weak<Offered>>,
    waiting: Line,
    /// What was passed over and goes out while nothing else waits.
    late: Line,
    deferred: BTreeMap<(u64, Sequence), Item>,
    articles_max: usize,
    retry_ms: u64,
    /// It was full, and is not half empty yet.
    was_full: bool,
    delay_s: u64,
    /// The next article is too young before this.
    resumes_at_s: u64,
    fresh_first: bool,
    by_group: bool,
    quota: Quota,
    pub(crate) tally: Tally,
    /// The newest that were gone before they could be sent, by message-id.
    gone: VecDeque<Box<str>>,
    /// What became of the newest.
    remembered: Remembered,
    /// How often what there was was dropped.
    drops: u64,
}

/// Connections that end at an article while others go through; then it is given up.
///
/// It is lost to the peer then, for good; kept, it costs a connection now and then.  A line that breaks each minute ends now and then
/// at one that has done nothing, above all at a large one; but hardly at the same one for eight times that lie twice as far apart each time,
/// over twenty minutes by default, which is longer than a peer takes to be started anew.
pub const BLAMED_MAX: u32 = 8;

/// Stretches of the log that a feed passed over; with so many it passes over no more, and what comes goes out in the order of the log.
const BEHIND_MAX: usize = 16;

/// Articles named that were gone before they could be sent; the others are counted.
pub const GONE_NAMED_MAX: usize = 100;

/// So many open articles are named in a place at the most; others that the log loses are found only while they are in memory.
const NAMED_MAX: usize = 10_000;

/// The most articles that a part of the log can have: each has two records there, of which one is for feeds.
const fn articles_at_most(from: Sequence, before: Sequence) -> u64 {
    before.0.saturating_sub(from.0).div_ceil(2)
}

/// Where the log goes on behind an article.
const fn behind(article: Sequence) -> Sequence {
    Sequence(article.0.saturating_add(1))
}

/// Names an article; of many the newest stay.
fn name(names: &mut VecDeque<Box<str>>, id: &str) {
    if names.len() >= GONE_NAMED_MAX {
        names.pop_front();
    }
    names.push_back(id.into());
}

impl Queue {
    pub(crate) fn new(place: Place, config: &FeedConfig) -> Self {
        let missed = place.missed.many;
        Self {
            in_log: place.open_in_log().collect(),
            lacks_named: !place.named.is_empty(),
            in_memory: BTreeMap::new(),
            place,
            waiting: Line::new(config.by_group),
            late: Line::new(config.by_group),
            deferred: BTreeMap::new(),
            articles_max: config.articles_max.max(1) as usize,
            retry_ms: config.retry_s.max(1).saturating_mul(1000),
            was_full: false,
            delay_s: config.delay_s,
            resumes_at_s: 0,
            fresh_first: config.fresh_first,
            by_group: config.by_group,
            quota: Quota::new(config),
            tally: Tally {
                missed,
                ..Tally::default()
            },
            gone: VecDeque::new(),
            remembered: Remembered::default(),
            drops: 0,
        }
    }

    /// Counts on, and keeps to the quota, where another one ended.
    pub(crate) fn continues(&mut self, before: &Self) {
        self.tally = before.tally;
        self.gone.clone_from(&before.gone);
        self.remembered = before.remembered.clone();
        self.quota.continues(&before.quota);
    }

    pub(crate) const fn place(&self) -> &Place {
        &self.place
    }

    /// Articles that are not settled.
    pub(crate) fn open(&self) -> usize {
        self.place.open.len()
    }

    /// Articles that take room: where windows are sorted, what connections have taken up does not, so that the next window is as large.
    fn taking_room(&self) -> usize {
        if !self.by_group {
            return self.open();
        }
        let named = match self.lacks_named {
            true => self.place.named.len(),
            false => 0,
        };
        self.waiting.len() + self.late.len() + self.deferred.len() + self.in_log.len() + named
    }

    /// Whether one more article fits.
    pub(crate) fn has_room(&self) -> bool {
        self.taking_room() < self.articles_max
    }

    /// Whether one more article fits that was passed over: a quarter of the room stays for what is newer in any case.
    pub(crate) fn has_room_for_late(&self) -> bool {
        self.taking_room() < self.articles_max - self.articles_max / 4
    }

    /// Whether the log is to be read for more: once it was full, not before half of it is settled, or where windows are sorted, not before
    /// what waits is taken up.
    pub(crate) fn is_hungry(&mut self) -> bool {
        let has_window = self.by_group && self.waiting.len() > 0;
        self.was_full &= has_window || self.taking_room() > self.articles_max / 2;
        !self.was_full && self.has_room()
    }

    /// Whether the log is to be read for anything.
    pub(crate) fn wants_more(&mut self) -> bool {
        self.is_hungry() || self.wants_late()
    }

    /// Whether what was passed over is to be read: half of the room stays for what is newer, and where windows are sorted, none is begun
    /// before what is newer is taken up, which would leave it only the rest of that half.
    pub(crate) fn wants_late(&self) -> bool {
        let waits = self.late.len() + self.waiting.len() > 0;
        let may_be_read = !self.by_group || self.late.gathers() || !waits;
        let half = self.articles_max.div_ceil(2);
        !self.place.behind.is_empty() && may_be_read && self.taking_room() < half
    }

    /// Says whether the log is read for more of what waits, and of what was passed over: none of that goes meanwhile where windows are
    /// sorted.  Whether something may go now that could not.
    pub(crate) fn gather(&mut self, reads_next: bool, reads_late: bool) -> bool {
        self.waiting.gather(reads_next) | self.late.gather(reads_late)
    }

    /// Whether windows are sorted.
    pub(crate) const fn goes_by_group(&self) -> bool {
        self.by_group
    }

    /// There is no room for more: what comes until `end` is looked at later, and what comes then goes out before it.
    pub(crate) fn pass_over(&mut self, end: Sequence) {
        let from = self.place.next;
        if !self.fresh_first || from >= end {
            return;
        }
        let are_many = self.place.behind.len() >= BEHIND_MAX;
        match self.place.behind.last_mut() {
            Some((_, to)) if *to == from => *to = end,
            _ if are_many => return,
            _ => self.place.behind.push((from, end)),
        }
        self.advance(end);
    }

    /// The first stretch that was passed over.
    pub(crate) fn late_stretch(&self) -> Option<(Sequence, Sequence)> {
        self.place.behind.first().copied()
    }

    /// Sequences that were passed over.
    pub(crate) fn passed_over(&self) -> u64 {
        self.place.passed_over()
    }

    /// Names what is open and in memory, and before this in the log, which goes up to there: it is found by its message-id then.
    pub(crate) fn name_open(&mut self, before: Sequence) {
        let named = &mut self.place.named;
        let room = NAMED_MAX.saturating_sub(named.len());
        let those = self.in_memory.range(..before);
        let those = those.filter(|(at, _)| !named.contains_key(at));
        let those = those.filter_map(|(at, it)| Some((*at, it.upgrade()?.id.clone())));
        let those: Vec<_> = those.take(room).collect();
        named.extend(those);
    }

    /// Its articles are named in the place, or in the log only: nobody works for it any more.
    pub(crate) fn forget_articles(&mut self) {
        self.name_open(Sequence(u64::MAX));
        self.in_memory = BTreeMap::new();
        self.waiting.clear();
        self.late.clear();
        self.deferred = BTreeMap::new();
    }

    /// What was passed over was looked at up to here.
    pub(crate) fn advance_late(&mut self, next: Sequence) {
        let Some((from, to)) = self.place.behind.first_mut() else {
            return;
        };
        *from = next.max(*from);
        if *from >= *to {
            self.place.behind.remove(0);
        }
    }

    /// An article that was passed over and goes out, unless it was dropped meanwhile; the first stretch begins behind it.
    pub(crate) fn push_late(&mut self, offered: Arc<Offered>) {
        if !self.is_behind(offered.sequence) {
            return;
        }
        self.advance_late(behind(offered.sequence));
        // A place that an older newsreel wrote may have stretches with what is under way in them.
        if self.place.open.insert(offered.sequence) {
            self.hold(&offered);
            self.late.push(Item::new(offered, true));
        }
    }

    /// So many octets of an article were sent.
    pub(crate) fn spend(&mut self, article: Sequence, octets: u64, now_ms: u64) {
        self.tally.octets += octets;
        self.quota.spend(article, octets, now_ms);
    }

    /// When something may be sent again; none: now.
    pub(crate) fn closed_until_ms(&self, now_ms: u64) -> Option<u64> {
        self.quota.closed_until_ms(now_ms)
    }

    /// Whether an article waits for its delay to be over; then the log is not read on before that is.  A clock that stepped back
    /// makes none wait longer than the delay.
    pub(crate) fn is_too_young(&mut self, arrival: UnixTime, now_s: u64) -> bool {
        let due_s = arrival.0.min(now_s).saturating_add(self.delay_s);
        self.resumes_at_s = due_s;
        due_s > now_s
    }

    /// Whether the log may be read on; when the clock stepped back no moment is right any more, and it may.
    pub(crate) const fn is_due(&self, now_s: u64) -> bool {
        self.resumes_at_s.saturating_sub(now_s) == 0 || self.resumes_at_s - now_s > self.delay_s
    }

    /// An article that goes out, unless it was dropped meanwhile; it is behind all before, and the log was looked at up to it.
    pub(crate) fn push(&mut self, offered: Arc<Offered>) {
        if offered.sequence < self.place.next {
            return;
        }
        self.advance(behind(offered.sequence));
        self.place.open.insert(offered.sequence);
        self.hold(&offered);
        self.waiting.push(Item::new(offered, false));
        self.was_full |= !self.has_room();
    }

    /// Articles that no connection has taken up and that may go.
    pub(crate) fn waiting(&self, now_ms: u64) -> usize {
        if !self.quota.lets_go(now_ms) {
            return 0;
        }
        let due = (now_ms, Sequence(u64::MAX));
        self.waiting.ready() + self.late.ready() + self.deferred.range(..=due).count()
    }

    fn hold(&mut self, offered: &Arc<Offered>) {
        let it = Arc::downgrade(offered);
        self.in_memory.insert(offered.sequence, it);
    }

    /// What is open and named in the place is in memory again, whether or not it was found in the log.
    pub(crate) fn bring_back_named(&mut self) {
        if !self.lacks_named {
            return;
        }
        let named = self.place.named.iter().filter(|(at, _)| self.lacks(**at));
        let named: Vec<_> = named.map(|(at, id)| Offered::by_id(*at, id)).collect();
        self.lacks_named = false;
        for offered in named.into_iter().map(Arc::new) {
            self.hold(&offered);
            self.waiting.push(Item::new(offered, false));
        }
        self.was_full |= !self.has_room();
    }

    /// Whether an article is open and named in the place, and not in memory.
    fn lacks(&self, sequence: Sequence) -> bool {
        self.lacks_named
            && self.place.named.contains_key(&sequence)
            && !self.in_memory.contains_key(&sequence)
    }

    /// From where to where the articles are that are open and not in memory.
    pub(crate) fn to_bring_back(&self) -> Option<(Sequence, Sequence)> {
        // It is asked for twice a step of each feed: by the ends, and not through all.
        let named = self.lacks_named.then_some(&self.place.named);
        let named = named.and_then(|it| Some([it.keys().next()?, it.keys().next_back()?]));
        let in_log = [self.in_log.first(), self.in_log.last()];
        let ends = || {
            named
                .into_iter()
                .flatten()
                .chain(in_log.into_iter().flatten())
        };
        Some((*ends().min()?, *ends().max()?))
    }

    /// Whether an article is open and not in memory.
    pub(crate) fn is_to_bring_back(&self, sequence: Sequence) -> bool {
        self.is_in_log(sequence) || self.lacks(sequence)
    }

    /// Whether an article is open and in the log only.
    pub(crate) fn is_in_log(&self, sequence: Sequence) -> bool {
        self.in_log.contains(&sequence)
    }

    /// An article is in memory again, if it is open and was not.
    pub(crate) fn bring_back(&mut self, offered: Arc<Offered>) {
        if self.in_log.remove(&offered.sequence) || self.lacks(offered.sequence) {
            self.hold(&offered);
            self.waiting.push(Item::new(offered, false));
            self.was_full |= !self.has_room();
        }
    }

    /// What is open up to there and was not found in the log again is missed; how many articles that are.
    pub(crate) fn bring_back_no_more(&mut self, to: Sequence) -> u64 {
        let missed = self.close_in_log(behind(to));
        self.miss(missed);
        missed
    }

    /// What is in the log only and lies before this is not open any more; how many articles that are.
    fn close_in_log(&mut self, before: Sequence) -> u64 {
        let stays = self.in_log.split_off(&before);
        let closed = std::mem::replace(&mut self.in_log, stays);
        for sequence in &closed {
            self.place.open.remove(sequence);
        }
        closed.len() as u64
    }

    /// The log was looked at up to here.
    pub(crate) fn advance(&mut self, next: Sequence) {
        self.place.next = self.place.next.max(next);
    }

    /// Everything before this is settled, of a feed that has nothing in memory.
    pub(crate) fn pass(&mut self, to: Sequence) {
        let stays = self.place.named.split_off(&to);
        for at in std::mem::replace(&mut self.place.named, stays).keys() {
            self.place.open.remove(at);
        }
        self.lose(to);
    }

    /// The same, but these are open, and found by their message-ids.
    pub(crate) fn pass_leaving(&mut self, to: Sequence, open: BTreeMap<Sequence, Box<str>>) {
        self.pass(to);
        self.place.open.extend(open.keys());
        self.place.named.extend(open);
    }

    /// How often what there was was dropped: who has read ahead of the place writes nothing of it when that changed.
    pub(crate) const fn drops(&self) -> u64 {
        self.drops
    }

    /// Where the first article is that it has not come to, or that is open and in the log only.
    pub(crate) fn unseen_from(&self) -> Sequence {
        let behind = self.late_stretch().map(|(from, _)| from);
        let first = self.in_log.first().copied().into_iter().chain(behind);
        first.fold(self.place.next, Sequence::min)
    }

    /// Whether it has not come to an article, or that is open and in the log only.
    pub(crate) fn is_unseen(&self, sequence: Sequence) -> bool {
        self.place.next <= sequence || self.is_in_log(sequence) || self.is_behind(sequence)
    }

    /// Whether an article was passed over and not looked at since.
    fn is_behind(&self, sequence: Sequence) -> bool {
        let mut behind = self.place.behind.iter();
        behind.any(|(from, to)| *from <= sequence && sequence < *to)
    }

    /// The most articles that it can miss where nothing is left of the log from one sequence to before another.
    pub(crate) fn unseen_at_most(&self, from: Sequence, before: Sequence) -> u64 {
        if from >= before {
            return 0;
        }
        let rest = (self.place.next, before);
        let stretches = self.place.behind.iter().copied().chain([rest]);
        let in_each =
            stretches.map(|(first, to)| articles_at_most(first.max(from), to.min(before)));
        self.in_log.range(from..before).count() as u64 + in_each.sum::<u64>()
    }

    /// So many articles are missed, or at most so many.
    pub(crate) fn miss(&mut self, many: u64) {
        self.tally.missed += many;
        self.place.missed.many = self.tally.missed;
    }

    /// An article that is in the log only goes with it: it is counted and named.
    pub(crate) fn miss_one(&mut self, id: &str, now: UnixTime) {
        self.miss(1);
        self.remembered.note(id, Settled::Missed, "", now);
        name(&mut self.place.missed.ids, id);
    }

    /// The log goes up to there: nothing of it that is not in memory is looked at any more.
    pub(crate) fn lose(&mut self, to: Sequence) {
        for (from, _) in &mut self.place.behind {
            *from = to.max(*from);
        }
        self.place.behind.retain(|(from, to)| from < to);
        self.close_in_log(to);
        self.advance(to);
    }

    /// Up to so many articles to send now; whether the log is to be read for more for that.
    pub(crate) fn take(&mut self, many: usize, now_ms: u64, out: &mut Vec<Item>) -> bool {
        let wanted_more = self.wants_more();
        for _ in 0..many {
            if !self.quota.lets_go(now_ms) {
                break;
            }
            let item = self.take_due(now_ms).or_else(|| self.waiting.pop());
            let Some(item) = item.or_else(|| self.late.pop()) else {
                break;
            };
            let Offered {
                sequence, octets, ..
            } = *item.offered;
            self.quota.take(sequence, octets, now_ms);
            out.push(item);
        }
        !wanted_more && self.wants_more()
    }

    /// An article whose time has come. One at which connections end lets others go first, until one of them has gone through or none waits:
    /// connections are made again after as long as it is put off, and each would end at it.
    fn take_due(&mut self, now_ms: u64) -> Option<Item> {
        let (settled, are_others) = (
            self.tally.settled(),
            self.waiting.ready() + self.late.ready() > 0,
        );
        let lets_others = |item: &Item| item.ends > 1 && item.settled_then == settled && are_others;
        let mut due = self.deferred.range(..=(now_ms, Sequence(u64::MAX)));
        let (at, _) = due.find(|(_, item)| !lets_others(item))?;
        let at = *at;
        let mut item = self.deferred.remove(&at)?;
        item.is_unreadable = false;
        Some(item)
    }

    /// After which time it is to be seen whether articles may go that wait for their time; none: there is none to wait for.
    pub(crate) fn looks_after(&self, now_ms: u64) -> Option<Duration> {
        let closed = self.closed_until_ms(now_ms);
        let opens = closed.map(|until| Duration::from_millis(until.saturating_sub(now_ms)));
        let waits = !self.deferred.is_empty() || !self.quota.lets_go(now_ms);
        waits.then(|| opens.unwrap_or(LOOKS_EVERY).min(LOOKS_EVERY))
    }

    /// The last word on an article.
    pub(crate) fn settle(&mut self, sequence: Sequence, how: Settled) {
        self.quota.give_back(sequence);
        if !self.place.open.remove(&sequence) {
            return;
        }
        self.in_memory.remove(&sequence);
        self.place.named.remove(&sequence);
        let tally = &mut self.tally;
        match how {
            Settled::Accepted | Settled::Written => tally.accepted += 1,
            Settled::Refused => tally.refused += 1,
            Settled::Rejected => tally.rejected += 1,
            Settled::Gone => tally.gone += 1,
            Settled::Missed => self.miss(1),
        }
    }

    /// The same, remembered with the time and with what was said.
    pub(crate) fn last_word(&mut self, on: &Offered, how: Settled, said: &str, now: UnixTime) {
        self.settle(on.sequence, how);
        self.remember(&on.id, how, said, now);
    }

    /// Remembers how an article was settled.
    pub(crate) fn remember(&mut self, id: &str, how: Settled, said: &str, now: UnixTime) {
        self.remembered.note(id, how, said, now);
    }

    /// The last word on an article, if it is remembered.
    pub(crate) fn remembered(&self, id: &str) -> Option<&LastWord> {
        self.remembered.of(id)
    }

    /// When the peer rejected an article last, and what it said.
    pub(crate) fn rejection(&self) -> Option<(UnixTime, String)> {
        let (at, said) = self.remembered.rejection()?;
        Some((at, said.to_owned()))
    }

    /// Where an article was in the log that is open and in memory, or named in the place.
    pub(crate) fn sequence_of(&self, id: &str) -> Option<Sequence> {
        let mut named = self.place.named.iter();
        let named = named.find_map(|(at, it)| (&**it == id).then_some(*at));
        let is_it = |it: &Weak<Offered>| it.upgrade().is_some_and(|it| &*it.id == id);
        let mut here = self.in_memory.iter();
        named.or_else(|| here.find_map(|(at, it)| is_it(it).then_some(*at)))
    }

    /// Whether an article is in memory.
    pub(crate) fn is_in_memory(&self, sequence: Sequence) -> bool {
        self.in_memory.contains_key(&sequence)
    }

    /// What an article in memory is doing.
    pub(crate) fn held(&self, sequence: Sequence, now_ms: u64) -> Option<Held> {
        if !self.place.open.contains(&sequence) {
            return None;
        }
        let mut put_off = self.deferred.iter();
        if let Some(((due, _), item)) = put_off.find(|((_, at), _)| *at == sequence) {
            let seconds = due.saturating_sub(now_ms).div_ceil(1000);
            let times = item.tries;
            return Some(Held::PutOff { times, seconds });
        }
        let mut waiting = self.waiting.iter().chain(self.late.iter());
        Some(
            match waiting.any(|item| item.offered.sequence == sequence) {
                true => Held::Waits,
                false => Held::UnderWay,
            },
        )
    }

    /// An article was gone before it could be sent: it is counted and named.
    pub(crate) fn is_gone(&mut self, offered: &Offered, now: UnixTime) {
        self.last_word(offered, Settled::Gone, "", now);
        self.name_gone(&offered.id);
    }

    /// Names one that was gone.
    pub(crate) fn name_gone(&mut self, id: &str) {
        name(&mut self.gone, id);
    }

    /// The newest that were gone, and that were missed, by message-id.
    pub(crate) fn gone_and_missed(&self) -> [Vec<String>; 2] {
        [&self.gone, &self.place.missed.ids]
            .map(|ids| ids.iter().map(|id| id.to_string()).collect())
    }

    /// Articles that wait for their texts to be readable: how many, and some of them by message-id.
    pub(crate) fn unreadable(&self) -> (usize, Vec<String>) {
        let all = self.deferred.values().filter(|item| item.is_unreadable);
        let some = all.clone().take(GONE_NAMED_MAX);
        (
            all.count(),
            some.map(|item| item.offered.id.to_string()).collect(),
        )
    }

    /// The peer put an article off, which is tried again unless it was dropped meanwhile.
    pub(crate) fn defer(&mut self, mut item: Item, now_ms: u64) {
        self.quota.give_back(item.offered.sequence);
        if !self.place.open.contains(&item.offered.sequence) {
            return;
        }
        self.tally.deferred += 1;
        let wait = self.retry_ms.saturating_mul(1 << item.tries.min(20));
        item.tries += 1;
        let due = now_ms.saturating_add(wait.min(RETRY_MS_MAX.max(self.retry_ms)));
        self.deferred.insert((due, item.offered.sequence), item);
    }

    /// A connection ended: what was under way on it waits again, in front.
    pub(crate) fn give_back(&mut self, mut items: Vec<Item>) {
        for item in &items {
            self.quota.give_back(item.offered.sequence);
        }
        items.retain(|item| self.place.open.contains(&item.offered.sequence));
        items.sort_by_key(|item| item.offered.sequence);
        let (late, items): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| item.is_late);
        self.late.give_back(late);
        self.waiting.give_back(items);
    }

    /// A connection ended at this article: the second time it is put off, so that it holds nobody up.  Given back: the connections end at
    /// it again and again, while others go through; it is settled, as rejected.
    pub(crate) fn blame(&mut self, mut item: Item, now_ms: u64) -> Option<Item> {
        self.quota.give_back(item.offered.sequence);
        if !self.place.open.contains(&item.offered.sequence) {
            return None;
        }
        let settled = self.tally.settled();
        item.ends += 1;
        // While nothing goes through, it is the peer.
        if item.ends > 1 && settled > item.settled_then {
            item.blamed += 1;
        }
        item.settled_then = settled;
        if item.blamed >= BLAMED_MAX {
            self.settle(item.offered.sequence, Settled::Rejected);
            return Some(item);
        }
        match item.ends {
            1 => self.give_back(vec![item]),
            _ => self.defer(item, now_ms),
        }
        None
    }

    /// Whoever waits to be tried again is tried now.
    pub(crate) fn hurry(&mut self) {
        let deferred = std::mem::take(&mut self.deferred);
        deferred
            .into_values()
            .for_each(|item| self.waiting.push(item));
    }

    /// Nothing of what there is goes out; how many articles were in memory.
    pub(crate) fn drop_all(&mut self, next: Sequence) -> usize {
        let many = self.place.open.len();
        self.waiting.clear();
        self.late.clear();
        self.deferred.clear();
        self.in_log.clear();
        self.in_memory.clear();
        self.drops += 1;
        self.place = self.place.goes_on_at(next.max(self.place.next));
        many
    }
}

#[cfg(test)]
mod tests;
