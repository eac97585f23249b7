//! One policy with so much room over a trace.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::Request;
use crate::policies::{Article, PolicyKind, Room};

/// So many segments there are in [`run_in_segments`].
pub const SEGMENTS: u64 = 16;

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Requests.
    pub requests: u64,
    /// Those that were answered from the cache.
    pub hits: u64,
    /// Octets of all answers.
    pub octets: u64,
    /// Octets that had to be fetched.
    pub fetched: u64,
    /// Octets that were written again to be kept, where there are segments.
    pub rewritten: u64,
}

impl Outcome {
    /// Of all requests those that were hits, parts of a hundred.
    #[must_use]
    pub fn hit_part(&self) -> f64 {
        100.0 * self.hits as f64 / self.requests.max(1) as f64
    }

    fn answered(&mut self, octets: u64, is_hit: bool) {
        self.requests += 1;
        self.octets += octets;
        if is_hit {
            self.hits += 1;
        } else {
            self.fetched += octets;
        }
    }
}

fn article_of(request: &Request) -> Article {
    Article {
        key: request.key,
        group: request.group,
        octets: request.octets,
        dated: request.dated,
        uses: 1,
    }
}

/// A policy with so many octets.  The server lets articles go when they are so old, and the cache then, too.
#[must_use]
pub fn run(trace: &[Request], kind: PolicyKind, octets: u64, keep_s: Option<u64>) -> Outcome {
    let mut room = Room::new(kind, octets, usize::MAX);
    let (mut outcome, mut gone) = (Outcome::default(), Vec::new());
    // When articles expire, as far as they came.
    let mut ends: BTreeMap<(u64, u64), ()> = BTreeMap::new();
    for request in trace {
        while let Some((&(end, key), ())) = ends.first_key_value()
            && end < request.at
        {
            ends.pop_first();
            room.remove(key);
        }
        let is_hit = room.touch(request.key);
        outcome.answered(request.octets, is_hit);
        if !is_hit {
            gone.clear();
            room.insert(article_of(request), &mut gone);
            if let Some(keep_s) = keep_s {
                ends.insert((request.dated.saturating_add(keep_s), request.key), ());
            }
        }
    }
    outcome
}

/// Where an article of [`Segments`] lies.
#[derive(Debug, Clone, Copy)]
struct Placed {
    segment: u64,
    article: Article,
}

/// What the running cache does with its files, in a model.
#[derive(Debug)]
struct Segments {
    room: Room,
    segment_octets: u64,
    /// Articles of each segment, the oldest first, and their octets.
    segments: VecDeque<(Vec<u64>, u64)>,
    first: u64,
    placed: HashMap<u64, Placed>,
    rewritten: u64,
}

impl Segments {
    fn place(&mut self, article: Article) {
        let is_full = self
            .segments
            .back()
            .is_none_or(|(_, octets)| octets + article.octets > self.segment_octets);
        if is_full {
            self.segments.push_back((Vec::new(), 0));
        }
        let segment = self.first + self.segments.len() as u64 - 1;
        if let Some((keys, octets)) = self.segments.back_mut() {
            keys.push(article.key);
            *octets += article.octets;
        }
        self.placed.insert(article.key, Placed { segment, article });
    }

    /// Lets the oldest segment go while there is one too many; what the policy holds of it is placed again.
    fn make_room(&mut self) {
        while self.segments.len() as u64 > SEGMENTS {
            let Some((keys, _)) = self.segments.pop_front() else {
                return;
            };
            let segment = self.first;
            self.first += 1;
            for key in keys {
                let Some(placed) = self.placed.get(&key).filter(|it| it.segment == segment) else {
                    continue;
                };
                let article = placed.article;
                self.placed.remove(&key);
                if self.room.worth(key).is_some() {
                    self.rewritten += article.octets;
                    self.place(article);
                }
            }
        }
    }
}

/// A policy as the running cache has it: what it lets go is there until its segment goes, and what it holds is written again then.
/// It may hold `part` of a hundred of all octets.
#[must_use]
pub fn run_in_segments(trace: &[Request], kind: PolicyKind, octets: u64, part: u64) -> Outcome {
    let mut segments = Segments {
        room: Room::new(kind, octets / 100 * part, usize::MAX),
        segment_octets: octets / SEGMENTS,
        segments: VecDeque::new(),
        first: 0,
        placed: HashMap::new(),
        rewritten: 0,
    };
    let (mut outcome, mut gone) = (Outcome::default(), Vec::new());
    for request in trace {
        let is_hit = segments.placed.contains_key(&request.key);
        outcome.answered(request.octets, is_hit);
        if !segments.room.touch(request.key) {
            gone.clear();
            segments.room.insert(article_of(request), &mut gone);
        }
        if !is_hit {
            segments.place(article_of(request));
            segments.make_room();
        }
    }
    outcome.rewritten = segments.rewritten;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::POLICIES;
    use crate::simulate::{Shape, Totals, generated};

    fn small() -> Vec<Request> {
        let shape = Shape {
            hosts: 20,
            groups: 40,
            sessions: 400,
            requests: 4000,
            ..Shape::default()
        };
        generated(&shape, 7)
    }

    /// With room for everything all policies have the hits that there are, and with less none has more.
    #[test]
    fn no_policy_has_more_hits_than_there_are() {
        let trace = small();
        let totals = Totals::of(&trace);
        let best = totals.requests - totals.articles;
        for row in POLICIES {
            let all = run(&trace, row.kind, totals.articles_octets, None);
            assert_eq!((all.hits, all.requests), (best, totals.requests));
            assert_eq!(
                (all.fetched, all.octets),
                (totals.articles_octets, totals.octets)
            );
            let some = run(&trace, row.kind, totals.articles_octets / 50, None);
            assert!(some.hits < best, "{}", row.name);
            let none = run(&trace, row.kind, 0, None);
            assert_eq!((none.hits, none.fetched), (0, totals.octets));
        }
    }

    /// What is older than the server keeps it is not there.
    #[test]
    fn what_expired_is_no_hit() {
        let request = |at| Request {
            at,
            key: 1,
            group: 1,
            octets: 10,
            dated: 100,
        };
        let trace = [request(101), request(150), request(201)];
        let hits = |keep_s| run(&trace, PolicyKind::Lrua, 100, keep_s).hits;
        assert_eq!((hits(None), hits(Some(100)), hits(Some(10))), (2, 1, 0));
    }

    /// What may be held is written again at most once for each octet that comes, as half of all is the most that stays.
    #[test]
    fn segments_rewrite_no_more_than_comes() {
        let trace = small();
        let octets = Totals::of(&trace).articles_octets / 5;
        for row in POLICIES {
            let outcome = run_in_segments(&trace, row.kind, octets, 50);
            let (again, first) = (outcome.rewritten, outcome.fetched);
            assert!(again <= first + octets, "{}: {again} of {first}", row.name);
            let none = run_in_segments(&trace, row.kind, octets, 0);
            assert_eq!(none.rewritten, 0, "{}", row.name);
        }
        let held = run_in_segments(&trace, PolicyKind::Lfua, octets, 50);
        assert!(held.rewritten > 0);
    }
}
