//! The queue without any connection: what goes out when, and what is held.

use newsreel_wire::{ArticleNumber, GroupId};
use proptest::prelude::*;

use super::*;

fn offered(sequence: u64) -> Arc<Offered> {
    Arc::new(Offered {
        sequence: Sequence(sequence),
        filed: None,
        id: format!("<{sequence}@x>").into(),
        octets: None,
        text: crate::text::Slot::default(),
    })
}

fn queue_of(next: Sequence, articles_max: u32, retry_s: u64) -> Queue {
    let config = FeedConfig {
        articles_max,
        retry_s,
        delay_s: 60,
        ..FeedConfig::default()
    };
    Queue::new(Place::at(next), &config)
}

fn taken(queue: &mut Queue, many: usize, now_ms: u64) -> Vec<Item> {
    let mut out = Vec::new();
    queue.take(many, now_ms, &mut out);
    out
}

fn numbers(items: &[Item]) -> Vec<u64> {
    items.iter().map(|item| item.offered.sequence.0).collect()
}

#[test]
fn the_place_stands_at_what_is_not_settled() {
    let mut queue = queue_of(Sequence(5), 3, 10);
    for n in [5, 6, 9] {
        assert!(queue.has_room());
        queue.push(offered(n));
    }
    queue.advance(Sequence(10));
    assert!(!queue.has_room() && !queue.is_hungry());
    let items = taken(&mut queue, 9, 0);
    assert_eq!(numbers(&items), [5, 6, 9]);
    queue.settle(Sequence(6), Settled::Accepted);
    assert_eq!(queue.place().needs_from(), Sequence(5));
    assert!(
        queue.has_room() && !queue.is_hungry(),
        "not half of it is settled"
    );
    queue.settle(Sequence(5), Settled::Refused);
    assert!(queue.is_hungry());
    assert_eq!(queue.place().needs_from(), Sequence(9));
    // The connection ended; the peer's word on 5 came before.
    queue.give_back(items);
    assert_eq!(numbers(&taken(&mut queue, 9, 0)), [9]);
    queue.settle(Sequence(9), Settled::Gone);
    queue.settle(Sequence(9), Settled::Accepted);
    assert_eq!(queue.place(), &Place::at(Sequence(10)));
    let tally = queue.tally;
    assert_eq!((tally.accepted, tally.refused, tally.gone), (1, 1, 1));
}

#[test]
fn what_an_article_is_doing_is_known() {
    let mut queue = queue_of(Sequence(1), 100, 10);
    for n in 1..4 {
        queue.push(offered(n));
    }
    let mut items = taken(&mut queue, 2, 0);
    queue.defer(items.remove(0), 500);
    assert_eq!(
        queue.held(Sequence(1), 1000),
        Some(Held::PutOff {
            times: 1,
            seconds: 10
        })
    );
    assert_eq!(queue.held(Sequence(2), 0), Some(Held::UnderWay));
    assert_eq!(queue.held(Sequence(3), 0), Some(Held::Waits));
    let item = items.remove(0);
    queue.last_word(&item.offered, Settled::Rejected, "439 no", UnixTime(7));
    assert_eq!(queue.held(Sequence(2), 0), None);
    let word = queue.remembered("<2@x>").unwrap();
    assert_eq!(
        (word.at, word.said.as_deref()),
        (UnixTime(7), Some("439 no"))
    );
    // It goes on with what follows the feed.
    let mut next = queue_of(Sequence(4), 1, 1);
    next.continues(&queue);
    assert!(next.remembered("<2@x>").is_some() && next.remembered("<3@x>").is_none());
    assert_eq!(next.rejection(), Some((UnixTime(7), "439 no".to_owned())));
}

/// An article at which a peer ended every connection stood in front of all others for ever.
#[test]
fn an_article_that_ends_connections_is_given_up_when_others_go_through() {
    let mut queue = queue_of(Sequence(1), 100, 1);
    for n in 1..50 {
        queue.push(offered(n));
    }
    let mut now_ms = 0;
    let first = taken(&mut queue, 1, now_ms).remove(0);
    assert!(queue.blame(first, now_ms).is_none());
    // Once may be anything: it goes again, in front.
    let first = taken(&mut queue, 1, now_ms).remove(0);
    assert_eq!(first.offered.sequence, Sequence(1));
    assert!(queue.blame(first, now_ms).is_none());
    // However late the next connection is made, others go before it.
    let second = taken(&mut queue, 2, now_ms + 3_600_000);
    assert_eq!(numbers(&second), [2, 3]);
    queue.give_back(second);
    let due = |queue: &mut Queue, now_ms: &mut u64| loop {
        *now_ms += 500;
        let mut others = taken(queue, 100, *now_ms);
        let first = others
            .iter()
            .position(|item| item.offered.sequence == Sequence(1));
        let first = first.map(|at| others.remove(at));
        queue.give_back(others);
        if let Some(first) = first {
            return first;
        }
    };
    // While nothing goes through, it is not the article.
    for _ in 0..30 {
        let item = due(&mut queue, &mut now_ms);
        assert!(queue.blame(item, now_ms).is_none());
    }
    for n in 2.. {
        queue.settle(Sequence(n), Settled::Accepted);
        let item = due(&mut queue, &mut now_ms);
        if queue.blame(item, now_ms).is_some() {
            assert_eq!(n, 1 + u64::from(BLAMED_MAX));
            break;
        }
    }
    assert_eq!(queue.tally.rejected, 1);
    assert_eq!(queue.place().open.first(), Some(&Sequence(10)));
}

#[test]
fn what_is_put_off_waits_longer_each_time() {
    let mut queue = queue_of(Sequence(1), 10, 10);
    queue.push(offered(1));
    queue.push(offered(2));
    let mut now_ms = 0;
    for wait_s in [10, 20, 40] {
        let items = taken(&mut queue, 1, now_ms);
        assert_eq!(numbers(&items), [1]);
        queue.defer(items[0].clone(), now_ms);
        let due_ms = queue.deferred.first_key_value().map(|((due, _), _)| *due);
        assert_eq!(due_ms, Some(now_ms + wait_s * 1000));
        now_ms += wait_s * 1000;
    }
    assert_eq!(numbers(&taken(&mut queue, 9, now_ms - 1)), [2]);
    queue.hurry();
    assert_eq!(numbers(&taken(&mut queue, 9, 0)), [1]);
    assert_eq!(queue.tally.deferred, 3);
    assert_eq!(queue.drop_all(Sequence(8)), 2);
    assert_eq!(queue.place(), &Place::at(Sequence(8)));
}

#[test]
fn an_article_waits_for_its_delay_and_no_longer() {
    let mut queue = queue_of(Sequence(1), 3, 10);
    assert!(queue.is_too_young(UnixTime(1000), 1059));
    assert!(!queue.is_due(1059) && queue.is_due(1060));
    assert!(!queue.is_too_young(UnixTime(1000), 1060));
    // The clock stepped back by years: then for no longer than the delay, and before anything is read, at once.
    assert!(queue.is_due(10));
    assert!(queue.is_too_young(UnixTime(1000), 10));
    assert!(!queue.is_due(69) && queue.is_due(70));
    // Without a delay nothing is ever held up.
    let mut queue = Queue::new(Place::at(Sequence(1)), &FeedConfig::default());
    assert!(!queue.is_too_young(UnixTime(1000), 1000) && queue.is_due(10));
}

/// What is newer goes out first, and of what was passed over nothing is left out.
#[test]
fn what_is_passed_over_comes_last() {
    let config = FeedConfig {
        articles_max: 4,
        fresh_first: true,
        ..FeedConfig::default()
    };
    let mut queue = Queue::new(Place::at(Sequence(1)), &config);
    for n in 1..=4 {
        queue.push(offered(n));
        queue.advance(Sequence(n + 1));
    }
    assert!(!queue.is_hungry() && !queue.wants_late());
    queue.pass_over(Sequence(7));
    queue.pass_over(Sequence(9));
    assert_eq!(queue.late_stretch(), Some((Sequence(5), Sequence(9))));
    assert_eq!((queue.place().next, queue.passed_over()), (Sequence(9), 4));
    for item in taken(&mut queue, 4, 0) {
        queue.settle(item.offered.sequence, Settled::Accepted);
    }
    assert_eq!(queue.place().needs_from(), Sequence(5));
    assert!(queue.is_hungry() && queue.wants_late());
    queue.push_late(offered(5));
    queue.push_late(offered(6));
    queue.advance_late(Sequence(7));
    assert!(!queue.wants_late(), "half of the room is kept");
    queue.push(offered(9));
    queue.advance(Sequence(10));
    let items = taken(&mut queue, 2, 0);
    assert_eq!(numbers(&items), [9, 5]);
    queue.give_back(items);
    let items = taken(&mut queue, 9, 0);
    assert_eq!(numbers(&items), [9, 5, 6]);
    for item in items {
        queue.settle(item.offered.sequence, Settled::Accepted);
    }
    assert_eq!(queue.place().needs_from(), Sequence(7));
    queue.advance_late(Sequence(9));
    assert_eq!(queue.place(), &Place::at(Sequence(10)));
    // Who does not want that passes nothing over, and stretches are few.
    let mut plain = queue_of(Sequence(1), 4, 1);
    plain.pass_over(Sequence(9));
    assert_eq!(plain.place(), &Place::at(Sequence(1)));
}

/// What lay between stretches went out again where there were too many of them.
#[test]
fn what_went_out_is_not_passed_over_where_stretches_are_many() {
    let config = FeedConfig {
        articles_max: 4,
        fresh_first: true,
        ..FeedConfig::default()
    };
    let mut queue = Queue::new(Place::at(Sequence(1)), &config);
    let mut next = 1;
    let mut settled = 0;
    for _ in 0..100 {
        let at = queue.place().next.0;
        (at..at + 4).for_each(|n| queue.push(offered(n)));
        next = (at + 8).max(next + 8);
        queue.pass_over(Sequence(next));
        for item in taken(&mut queue, 4, 0) {
            let at = item.offered.sequence;
            assert!(!queue.is_unseen(at));
            queue.settle(at, Settled::Accepted);
            settled += 1;
        }
        let unseen = (1..next).filter(|n| queue.is_unseen(Sequence(*n)));
        assert_eq!(unseen.count(), next as usize - 1 - settled);
    }
    assert_eq!(queue.place().behind.len(), BEHIND_MAX);
    assert_eq!(queue.place().next, Sequence(16 * 8 + 84 * 4 + 1));
    // One of them is looked at, and what comes goes before what waits again.
    queue.advance_late(Sequence(9));
    queue.pass_over(Sequence(next));
    assert_eq!(queue.place().next, Sequence(next));
}

#[test]
fn a_window_goes_by_group_and_number() {
    let config = FeedConfig {
        by_group: true,
        ..FeedConfig::default()
    };
    let mut queue = Queue::new(Place::at(Sequence(1)), &config);
    for (n, group, number) in [(1, 2, 7), (2, 1, 9), (3, 2, 6), (4, 1, 8)] {
        queue.push(filed(n, group, number));
    }
    // It is not known yet how far the log was read.
    assert_eq!((queue.waiting(0), taken(&mut queue, 9, 0).len()), (0, 0));
    assert!(queue.gather(false, false));
    let items = taken(&mut queue, 2, 0);
    assert_eq!(numbers(&items), [4, 2]);
    // What comes waits for the window to be taken up, and nothing that was in it for what comes.
    queue.push(filed(5, 1, 10));
    queue.give_back(items);
    assert_eq!(numbers(&taken(&mut queue, 9, 0)), [4, 2, 3, 1, 5]);
}

fn filed(n: u64, group: u32, number: u64) -> Arc<Offered> {
    Arc::new(Offered {
        sequence: Sequence(n),
        filed: Some((GroupId(group), ArticleNumber(number))),
        id: "<x@y>".into(),
        octets: None,
        text: crate::text::Slot::default(),
    })
}

/// A window was as large as what the log brought while a connection took up the one before.
#[test]
fn each_window_of_a_backlog_is_as_large_as_may_be() {
    let config = FeedConfig {
        by_group: true,
        articles_max: 10,
        ..FeedConfig::default()
    };
    let mut queue = Queue::new(Place::at(Sequence(1)), &config);
    let mut under_way = Vec::new();
    for window in 0..5 {
        let first = queue.place().next.0;
        assert!(queue.is_hungry(), "{window}");
        queue.gather(true, false);
        while queue.is_hungry() {
            let n = queue.place().next.0;
            assert_eq!((queue.waiting(0), queue.has_room()), (0, true));
            queue.push(filed(n, n as u32 % 2, n));
        }
        assert!(queue.gather(false, false));
        assert_eq!((queue.place().next.0, queue.waiting(0)), (first + 10, 10));
        assert!(!queue.take(9, 0, &mut under_way) && !queue.is_hungry());
        assert!(queue.take(9, 0, &mut under_way), "the last was taken up");
        let numbers = numbers(under_way.get(window * 10..).unwrap());
        let even = (first..first + 10).filter(|n| n % 2 == 0);
        let odd = (first..first + 10).filter(|n| n % 2 == 1);
        assert_eq!(numbers, even.chain(odd).collect::<Vec<_>>());
    }
}

/// A feed with its log, of which every sequence is an article that goes out.
struct Model {
    queue: Queue,
    end: u64,
    now_ms: u64,
    /// What connections have.
    out: Vec<Item>,
    /// What was settled before the last start, and what was dropped.
    settled: u64,
    dropped: u64,
}

impl Model {
    fn new() -> Self {
        Self {
            queue: Queue::new(Place::at(Sequence(1)), &Self::config()),
            end: 1,
            now_ms: 0,
            out: Vec::new(),
            settled: 0,
            dropped: 0,
        }
    }

    fn config() -> FeedConfig {
        FeedConfig {
            articles_max: 20,
            retry_s: 1,
            fresh_first: true,
            ..FeedConfig::default()
        }
    }

    fn unseen(&self, before: u64) -> u64 {
        let unseen = |at: &u64| self.queue.is_unseen(Sequence(*at));
        (1..before).filter(unseen).count() as u64
    }

    /// The log is read, and new articles before what was passed over.
    fn read(&mut self, many: usize) {
        let queue = &mut self.queue;
        queue.bring_back_named();
        for _ in 0..many {
            let next = queue.place().next.0;
            let late = queue.late_stretch().filter(|_| queue.wants_late());
            match late {
                _ if next < self.end && queue.has_room() => queue.push(offered(next)),
                _ if next < self.end => queue.pass_over(Sequence(self.end)),
                Some((from, _)) => queue.push_late(offered(from.0)),
                None => return,
            }
        }
    }

    /// The feed ends with what its place says, and begins again; the log has what it had.
    fn start_again(&mut self) {
        self.settled += self.queue.tally.accepted;
        self.out.clear();
        self.queue = Queue::new(self.queue.place().clone(), &Self::config());
    }

    fn bring_back(&mut self, many: usize) {
        self.queue.bring_back_named();
        for _ in 0..many {
            let first = self.queue.to_bring_back().map(|(first, _)| first.0);
            first
                .into_iter()
                .for_each(|at| self.queue.bring_back(offered(at)));
        }
    }

    fn step(&mut self, what: u8, many: usize) {
        let some = many.min(self.out.len());
        match what {
            0 => self.end += many as u64,
            1 => self.read(many),
            2 => {
                self.queue.take(many, self.now_ms, &mut self.out);
            }
            3 => {
                for it in self.out.drain(..some) {
                    self.queue.settle(it.offered.sequence, Settled::Accepted);
                }
            }
            4 => {
                for it in self.out.drain(..some) {
                    self.queue.defer(it, self.now_ms);
                }
            }
            5 => self.queue.give_back(std::mem::take(&mut self.out)),
            6 => self.queue.hurry(),
            7 => self
                .queue
                .name_open(Sequence(self.end - (many as u64).min(self.end))),
            8 => {
                let to = self.queue.unseen_from().0 + many as u64;
                let to = to.min(self.end);
                self.queue.miss(self.unseen(to));
                self.queue.lose(Sequence(to));
            }
            9 if many == 0 => {
                self.dropped += self.unseen(self.end);
                self.dropped += self.queue.place().open.len() as u64;
                self.dropped -= self.queue.in_log.len() as u64;
                self.queue.drop_all(Sequence(self.end));
            }
            10 if many == 0 => self.start_again(),
            11 => self.bring_back(many),
            _ => self.now_ms += 700,
        }
    }

    /// Who has what is open, each once.
    fn holders(&self) -> Vec<Sequence> {
        let queue = &self.queue;
        let here = queue.waiting.iter().chain(queue.late.iter());
        let here = here.chain(queue.deferred.values());
        // A connection may still have what was dropped.
        let is_open = |item: &&Item| queue.place.open.contains(&item.offered.sequence);
        let all = here.chain(self.out.iter().filter(is_open));
        let here = all.map(|it| it.offered.sequence);
        let named = queue.place.named.keys().filter(|_| queue.lacks_named);
        let mut all: Vec<_> = here
            .chain(queue.in_log.iter().copied())
            .chain(named.copied())
            .collect();
        all.sort_unstable();
        all
    }
}

proptest! {
    /// Whatever happens, each article is in exactly one place until it is settled, missed or dropped, and none is settled unasked.
    #[test]
    fn prop_nothing_is_lost(steps in proptest::collection::vec((0u8..13, 0usize..6), 0..300)) {
        let mut model = Model::new();
        for (what, many) in steps {
            model.step(what, many);
            let queue = &model.queue;
            let open: Vec<Sequence> = queue.place.open.iter().copied().collect();
            prop_assert_eq!(model.holders(), open);
            prop_assert!(queue.place.named.keys().all(|at| queue.place.open.contains(at)));
            prop_assert!(queue.open() <= 20);
            let (settled, tally) = (model.settled + model.dropped, queue.tally);
            let in_memory = queue.open() - queue.in_log.len();
            let all = settled + tally.accepted + tally.missed + in_memory as u64 + model.unseen(model.end);
            prop_assert_eq!(all, model.end - 1);
        }
    }
}

fn queue_with_open(next: u64, open: &[u64]) -> Queue {
    let place = Place {
        open: open.iter().copied().map(Sequence).collect(),
        ..Place::at(Sequence(next))
    };
    Queue::new(place, &FeedConfig::default())
}

/// What a connection took up while the rest was looked for in the log counted as gone, and was lost where the connection ended.
#[test]
fn what_is_taken_up_while_others_are_looked_for_stays_open() {
    let mut queue = queue_with_open(9, &[1, 2, 3, 4]);
    queue.bring_back(offered(1));
    queue.bring_back(offered(2));
    let mut items = taken(&mut queue, 2, 0);
    queue.defer(items.remove(0), 0);
    queue.bring_back(offered(3));
    assert_eq!(queue.bring_back_no_more(Sequence(4)), 1);
    assert_eq!((queue.tally.missed, queue.open()), (1, 3));
    queue.give_back(items);
    assert_eq!(numbers(&taken(&mut queue, 9, 1_000_000)), [1, 2, 3]);
    queue.settle(Sequence(1), Settled::Accepted);
    assert_eq!(queue.tally.accepted, 1);
}

/// What was dropped while it was looked for in the log went out all the same.
#[test]
fn what_is_dropped_while_it_is_looked_for_stays_dropped() {
    let mut queue = queue_with_open(9, &[1, 2]);
    queue.bring_back(offered(1));
    assert_eq!(queue.drop_all(Sequence(20)), 2);
    queue.bring_back(offered(2));
    queue.bring_back_no_more(Sequence(2));
    assert_eq!(queue.waiting(0), 0);
    assert_eq!(queue.place(), &Place::at(Sequence(20)));
    assert_eq!(queue.tally, Tally::default());
}

/// Where the log could not be read behind an article, that was taken up again each time.
#[test]
fn an_article_that_was_taken_up_is_behind_the_place() {
    let mut queue = queue_with_open(5, &[]);
    queue.push(offered(5));
    assert_eq!(queue.place().next, Sequence(6));
    queue.place.behind = vec![(Sequence(1), Sequence(4))];
    queue.push_late(offered(2));
    assert_eq!(queue.late_stretch(), Some((Sequence(3), Sequence(4))));
}

/// What was in memory only, since the log was gone, counted as gone where the feed began again, though the store had it.
#[test]
fn what_the_log_loses_while_it_is_in_memory_is_named_until_it_is_settled() {
    let mut queue = queue_of(Sequence(1), 100, 10);
    (1..=6).for_each(|n| queue.push(offered(n)));
    let under_way = taken(&mut queue, 2, 0);
    let put_off = taken(&mut queue, 1, 0).remove(0);
    queue.defer(put_off, 0);
    queue.name_open(Sequence(5));
    assert_eq!(queue.place().needs_from(), Sequence(5));
    queue.settle(Sequence(1), Settled::Accepted);
    let named: Vec<_> = queue.place().named.values().map(|id| &**id).collect();
    assert_eq!(named, ["<2@x>", "<3@x>", "<4@x>"]);
    assert_eq!(queue.sequence_of("<6@x>"), Some(Sequence(6)));
    drop(under_way);
    // It begins again, and of the log it finds only the last.
    let mut queue = Queue::new(queue.place().clone(), &FeedConfig::default());
    assert_eq!(queue.sequence_of("<3@x>"), Some(Sequence(3)));
    assert!(!queue.is_in_memory(Sequence(3)));
    queue.bring_back_named();
    assert_eq!(queue.to_bring_back(), Some((Sequence(5), Sequence(6))));
    queue.bring_back(offered(6));
    assert_eq!(queue.bring_back_no_more(Sequence(6)), 1);
    queue.bring_back_named();
    assert_eq!(numbers(&taken(&mut queue, 9, 0)), [2, 3, 4, 6]);
    assert_eq!((queue.tally.missed, queue.tally.gone), (1, 0));
    for n in [2, 3, 4, 6] {
        queue.settle(Sequence(n), Settled::Accepted);
    }
    assert_eq!(*queue.place(), queue.place().goes_on_at(Sequence(7)));
}

/// What was dropped while it was read, or while a connection had it, went out all the same.
#[test]
fn what_is_dropped_while_somebody_has_it_stays_dropped() {
    let config = FeedConfig {
        fresh_first: true,
        articles_max: 4,
        ..FeedConfig::default()
    };
    let mut queue = Queue::new(Place::at(Sequence(1)), &config);
    (1..=4).for_each(|n| queue.push(offered(n)));
    queue.pass_over(Sequence(9));
    let item = taken(&mut queue, 1, 0).remove(0);
    assert_eq!(queue.drop_all(Sequence(20)), 4);
    queue.push(offered(9));
    queue.push_late(offered(5));
    queue.defer(item, 0);
    assert_eq!(queue.waiting(u64::MAX), 0);
    assert_eq!(queue.place(), &Place::at(Sequence(20)));
    assert_eq!(queue.tally, Tally::default());
}

/// What had been seen counted as missed with the log around it.
#[test]
fn what_was_seen_is_not_missed() {
    let mut queue = queue_with_open(1000, &[5, 7]);
    queue.place.behind = vec![(Sequence(100), Sequence(110))];
    let missed = |from, before| queue.unseen_at_most(Sequence(from), Sequence(before));
    assert_eq!(missed(5, 100), 2);
    assert_eq!(missed(6, 105), 1 + 3);
    assert_eq!(missed(5, 1000), 2 + 5);
    assert_eq!(missed(200, 1010), 5);
    assert_eq!(missed(9, 9), 0);
}

/// Of what was passed over, all went with the first stretch that a batch was written of.
#[test]
fn what_was_passed_over_behind_a_batch_stays() {
    let mut queue = queue_with_open(1000, &[3, 50]);
    queue.place.behind = [(5, 40), (60, 900)]
        .map(|(from, to)| (Sequence(from), Sequence(to)))
        .into();
    queue.pass(Sequence(20));
    assert_eq!(
        queue.place().behind,
        [(20, 40), (60, 900)].map(|(from, to)| (Sequence(from), Sequence(to)))
    );
    assert_eq!(queue.place().settled_before(), Sequence(20));
    let open = BTreeMap::from([(Sequence(30), "<30@x>".into())]);
    queue.pass_leaving(Sequence(70), open);
    assert_eq!(queue.place().needs_from(), Sequence(70));
    assert_eq!(queue.place().settled_before(), Sequence(30));
    assert_eq!(queue.place().behind, [(Sequence(70), Sequence(900))]);
    assert_eq!(queue.sequence_of("<30@x>"), Some(Sequence(30)));
}
