//! A trace with the paper's statistics, made from a seed: so many hosts that read so many groups for ten days, of which ten have
//! most requests.
//!
//! Readers follow groups of their own and come back twice a day or so; in each group they read some of what is new to
//! them, the newest part of it where there is much.  What one has read another who follows the group may read, too: these are
//! all the hits there are.  Articles of groups of binaries are large.

use std::collections::HashMap;

use super::Request;

/// What a trace is made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Hosts that read.
    pub hosts: u64,
    /// Groups that are read.
    pub groups: u64,
    /// Of all requests those in ten groups, parts of a hundred.
    pub top_ten_part: f64,
    /// Times that a host comes.
    pub sessions: u64,
    /// Requests for articles.
    pub requests: u64,
    /// For how long, days.
    pub days: u64,
    /// Of a hundred groups so many have binaries.
    pub binary_part: u64,
}

impl Default for Shape {
    /// The paper's (its table 3 and the text beside it).
    fn default() -> Self {
        Self {
            hosts: 309,
            groups: 1314,
            top_ten_part: 59.0,
            sessions: 6350,
            requests: 205_363,
            days: 10,
            binary_part: 12,
        }
    }
}

/// When it begins: 1999-01-04.
const BEGIN: u64 = 915_408_000;

const DAY_S: u64 = 86_400;

/// In a group so many articles come for each request that will be made there: with this few enough are read by two that the hit
/// rate with room for everything is near the paper's 21 %.
const ARTICLES_PER_REQUEST: f64 = 18.0;

/// What is there in a group when the trace begins came in so many days before.
const BEFORE_DAYS: f64 = 3.0;

/// Numbers that look random and follow from a seed (splitmix64).
#[derive(Debug)]
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0, below 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: u64) -> u64 {
        ((self.part() * end as f64) as u64).min(end.saturating_sub(1))
    }

    /// Around 0, with a deviation of 1.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.part()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.part()).cos()
    }
}

/// The parts of groups, largest first: by Zipf's law with the exponent that gives the ten first their part.
fn weights(groups: u64, top_ten: f64) -> Vec<f64> {
    let of = |exponent: f64| {
        let mut all: Vec<f64> = (1..=groups)
            .map(|rank| (rank as f64).powf(-exponent))
            .collect();
        let sum: f64 = all.iter().sum();
        all.iter_mut().for_each(|weight| *weight /= sum);
        all
    };
    let (mut low, mut high) = (0.0, 8.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let top: f64 = of(middle).iter().take(10).sum();
        if top < top_ten {
            low = middle;
        } else {
            high = middle;
        }
    }
    of(high)
}

#[derive(Debug)]
struct Group {
    weight: f64,
    is_binary: bool,
    /// Articles in a second.
    rate: f64,
}

impl Group {
    /// The last article that is there at a time.
    fn high(&self, at: u64) -> u64 {
        let since = (at - BEGIN) as f64 + BEFORE_DAYS * DAY_S as f64;
        (since * self.rate) as u64
    }

    fn dated(&self, number: u64) -> u64 {
        let since = number as f64 / self.rate - BEFORE_DAYS * DAY_S as f64;
        (BEGIN as f64 + since) as u64
    }
}

/// Octets of an article of this kind.
fn octets(numbers: &mut Numbers, is_binary: bool) -> u64 {
    let (median, deviation) = if is_binary {
        (40_000.0_f64, 0.9)
    } else {
        (1_700.0, 0.7)
    };
    let octets = (median.ln() + deviation * numbers.normal()).exp();
    (octets as u64).clamp(300, 1 << 20)
}

/// Makes a trace.
#[must_use]
pub fn generated(shape: &Shape, seed: u64) -> Vec<Request> {
    let mut numbers = Numbers(seed);
    let weights = weights(shape.groups, shape.top_ten_part / 100.0);
    let (requests, length) = (shape.requests as f64, (shape.days * DAY_S) as f64);
    let groups: Vec<Group> = (weights.iter().zip(0_u64..))
        .map(|(weight, rank)| Group {
            weight: *weight,
            // Of the ten first there are some, too.
            is_binary: (rank * 100 + 50) / 100 % (100 / shape.binary_part.max(1)) == 4,
            rate: (weight * requests * ARTICLES_PER_REQUEST / length).max(2.0 / length),
        })
        .collect();
    let quotas: Vec<u64> = groups
        .iter()
        .map(|group| ((group.weight * requests).round() as u64).max(1))
        .collect();
    let mut visits = Vec::new();
    for (group, quota) in quotas.iter().enumerate() {
        visits_of(shape, &mut numbers, (group, *quota), &mut visits);
    }
    visits.sort_unstable();
    read(&mut numbers, &groups, &visits)
}

/// A host reads so many articles in a group.
type Visit = (u64, u64, usize, u64);

/// All visits to a group: those who follow it come again and again, until all its requests are made.
fn visits_of(
    shape: &Shape,
    numbers: &mut Numbers,
    (group, quota): (usize, u64),
    visits: &mut Vec<Visit>,
) {
    let each = 2 + numbers.below(20);
    // A host comes some twenty times; a group of few requests has one reader or two.
    let followers = (quota / (each * 12)).clamp(1, shape.hosts);
    let first = numbers.below(shape.hosts);
    let mut left = quota;
    let comings = (shape.sessions / shape.hosts.max(1)).max(1);
    while left > 0 {
        let host = (first + numbers.below(followers) * 7) % shape.hosts;
        let coming = numbers.below(comings);
        // A host comes at times of its own, all of its groups at once.
        let at = BEGIN + (coming * shape.days * DAY_S + host * 997 % DAY_S) / comings;
        let count = (1 + numbers.below(2 * each)).min(left);
        visits.push((at, host, group, count));
        left -= count;
    }
}

fn read(numbers: &mut Numbers, groups: &[Group], visits: &[Visit]) -> Vec<Request> {
    let mut marks: HashMap<(u64, usize), u64> = HashMap::new();
    let mut sizes: HashMap<u64, u64> = HashMap::new();
    let mut trace = Vec::new();
    for (at, host, place, count) in visits {
        let Some(group) = groups.get(*place) else {
            continue;
        };
        let high = group.high(*at).max(1);
        let mark = marks.entry((*host, *place)).or_default();
        // What is new, or some of what there was where nothing is.
        let low = (*mark + 1).max(high.saturating_sub(3 * count));
        let low = if low > high {
            high.saturating_sub(*count) + 1
        } else {
            low
        };
        let span = high - low + 1;
        for step in 0..*count {
            let number = low + step * span / count;
            let key = ((*place as u64) << 32) | number;
            let octets = *sizes
                .entry(key)
                .or_insert_with(|| octets(numbers, group.is_binary));
            trace.push(Request {
                at: at + step * 4,
                key,
                group: *place as u64,
                octets,
                dated: group.dated(number),
            });
        }
        *mark = high;
    }
    trace.sort_by_key(|request| request.at);
    trace
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Totals;

    /// A trace that has other statistics than the paper's says nothing of its figures.
    #[test]
    fn a_trace_has_the_statistics_of_the_paper() {
        let shape = Shape::default();
        let trace = generated(&shape, 1);
        let totals = Totals::of(&trace);
        assert_eq!(totals.groups, 1314);
        let off = totals.requests.abs_diff(shape.requests);
        assert!(off < shape.requests / 100, "{totals:?}");
        assert!((totals.top_ten_part - 59.0).abs() < 1.0, "{totals:?}");
        assert!(
            (totals.best_hit_part() - 21.0).abs() < 3.0,
            "{:?} {}",
            totals,
            totals.best_hit_part()
        );
        assert!(trace.is_sorted_by_key(|request| request.at));
        assert!(trace.iter().all(|request| request.dated <= request.at));
        assert_eq!(trace, generated(&shape, 1));
        assert_ne!(trace, generated(&shape, 2));
    }
}
