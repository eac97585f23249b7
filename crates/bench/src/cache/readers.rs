//! Table 3 of the paper: which part of what readers ask for is answered from the cache.
//!
//! Readers come as often, and ask for as much each time, as those of the paper in the mean, of as many groups as have the paper's part of
//! requests in the ten that are read most.  Nothing is prefetched.  Invariant: all of it follows from the scale; what a reader asks for is
//! at the origin, and every answer is looked at.

use std::net::SocketAddr;
use std::path::Path;

use serde::Serialize;

use super::fixture::{self, Fixture};
use super::operations::{article, block, list};
use super::run::ask_cache;
use crate::client::connect::Opened;
use crate::error::Error;
use crate::random::{Dice, Zipf};

/// Groups that are read: by Zipf's law ten of so many have 59 parts of a hundred of the requests, as the paper's ten had of 1314.
pub(super) const GROUPS: usize = 80;
/// Times that somebody came in the paper's ten days, and how many hosts that were.
const PAPER_VISITS: u64 = 6350;
const PAPER_READERS: usize = 309;
/// Of a thousand visits so many begin with LIST ACTIVE: 941 of 6350.
const LISTS_PER_MILLE: usize = 148;
/// Groups in a visit, and of a thousand visits so many with one more: 40,866 in 6350.
const GROUPS_EACH: usize = 6;
const ONE_MORE_PER_MILLE: usize = 436;
/// Of a thousand groups so many have their overview asked for twice: 44,159 for 40,866.
const AGAIN_PER_MILLE: usize = 81;
/// Articles that are read of a group in a visit: 205,363 of 40,866.
const READ_EACH: u64 = 5;
/// Each reader comes back to as many groups.
const FOLLOWED: usize = 12;
/// What is new to a reader is no more than that: of a longer list only the end is looked at.
const LOOKED_AT: u64 = 20;
/// Articles of a group for each request that is made there, of which a fifth is there at first: with so many every fifth request is for an
/// article that somebody has read before, as in the paper.
const ARTICLES_PER_REQUEST: f64 = 2.5;
/// What the dice are thrown for.
const PURPOSE: u64 = 0x7433;

/// The paper's table: requests, hits of a hundred, and of a hundred octets those that were not fetched.
const PAPER: [(&str, u64, u64, u64); 4] = [
    ("list", 941, 78, 69),
    ("groups", 40_866, 8, 7),
    ("overview", 44_159, 23, 10),
    ("articles", 205_363, 21, 11),
];

/// What a cache said of one of its databases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatabaseReport {
    /// list, groups, overview or articles.
    pub what: String,
    /// Whether the origin was asked each time whether a group is as it was (T = 0), or never again.
    pub asks_again: bool,
    /// Answers.
    pub answers: u64,
    /// Those from what was kept.
    pub hits: u64,
    /// Octets of all answers.
    pub octets: u64,
    /// Octets of the hits.
    pub saved: u64,
}

/// The name of a group that is read.
pub(super) fn group(rank: usize) -> String {
    format!("bench.read.g{rank}")
}

/// How many readers come, and what they find.
#[derive(Debug, Clone, Copy)]
pub(super) struct Readers {
    visits: u64,
    readers: usize,
}

/// A reader's place in a group.
#[derive(Debug, Clone, Copy)]
struct Followed {
    rank: usize,
    /// The last article that was there when it was looked at; none: never.
    seen: Option<u64>,
}

impl Readers {
    /// A tenth of the paper's, or as few as show that it works.
    pub(super) const fn new(is_full: bool) -> Self {
        let part = if is_full { 10 } else { 300 };
        Self {
            visits: PAPER_VISITS / part,
            readers: PAPER_READERS / part as usize + 1,
        }
    }

    /// Articles of a group.
    fn articles(&self, rank: usize) -> u64 {
        let all: f64 = (1..=GROUPS).map(|rank| 1.0 / rank as f64).sum();
        let part = 1.0 / (rank as f64 + 1.0) / all;
        let requests = self.visits * READ_EACH * GROUPS_EACH as u64;
        ((requests as f64 * part * ARTICLES_PER_REQUEST) as u64).max(LOOKED_AT)
    }

    /// The last article of a group that is there when somebody comes.
    fn high(&self, rank: usize, visit: u64) -> u64 {
        let all = self.articles(rank);
        (all / 5 + all * 4 / 5 * visit / self.visits).max(1)
    }

    /// Brings what is read to the origin.
    pub(super) fn feed(&self, origin: SocketAddr, has: &Fixture) -> Result<(), Error> {
        (0..GROUPS).try_for_each(|rank| {
            fixture::bring(origin, &group(rank), 1..=self.articles(rank), has.now)
        })
    }

    /// All of them, one behind the other.
    pub(super) fn read(&self, server: SocketAddr, has: &Fixture) -> Result<(), Error> {
        let zipf = Zipf::new(GROUPS);
        let mut dice = Dice::new(1, PURPOSE, 0);
        let follow = |_| Followed {
            rank: zipf.rank(dice.next()),
            seen: None,
        };
        let places = self.readers * FOLLOWED;
        let mut followed: Vec<Followed> = (0..places).map(follow).collect();
        for visit in 0..self.visits {
            let mut to = Opened::open(server, false)?;
            to.command("MODE READER", &[200, 201])?;
            if dice.chance(LISTS_PER_MILLE) {
                list(&mut to, has)?;
            }
            let reader = dice.below(self.readers) * FOLLOWED;
            let groups = GROUPS_EACH + usize::from(dice.chance(ONE_MORE_PER_MILLE));
            let first = dice.below(FOLLOWED);
            for at in first..first + groups {
                let Some(place) = followed.get_mut(reader + at % FOLLOWED) else {
                    continue;
                };
                let high = self.high(place.rank, visit);
                visit_group(&mut to, place, high, &mut dice, has)?;
            }
            to.command("QUIT", &[205])?;
        }
        Ok(())
    }
}

/// A group in a visit: what is new is looked through, and some of it read.
fn visit_group(
    to: &mut Opened,
    place: &mut Followed,
    high: u64,
    dice: &mut Dice,
    has: &Fixture,
) -> Result<(), Error> {
    let group = group(place.rank);
    to.command(&format!("GROUP {group}"), &[211])?;
    let new = place
        .seen
        .map_or(LOOKED_AT, |seen| high.saturating_sub(seen));
    let first = high - new.min(LOOKED_AT).min(high) + 1;
    place.seen = Some(high);
    if first > high {
        return Ok(());
    }
    let times = 1 + usize::from(dice.chance(AGAIN_PER_MILLE));
    for _ in 0..times {
        block(to, &format!("OVER {first}-{high}"), 224)?;
    }
    let mut left = READ_EACH;
    for number in first..=high {
        if (dice.below((high - number + 1) as usize) as u64) < left {
            left -= 1;
            article(
                to,
                &format!("ARTICLE {number}"),
                &fixture::id(&group, number),
                has,
            )?;
        }
    }
    Ok(())
}

/// What a running cache says of itself.
pub(super) fn stats(
    program: &Path,
    directory: &Path,
    asks_again: bool,
) -> Result<Vec<DatabaseReport>, Error> {
    let said = ask_cache(program, directory, &["stats"])?;
    let databases = said.get("asked").and_then(serde_json::Value::as_array);
    let databases = databases.ok_or_else(|| Error::Program {
        program: "newsreel cache stats".to_owned(),
        why: "it does not say what was asked".to_owned(),
    })?;
    let of = |database: &serde_json::Value| {
        let number = |part: &str, what: &str| {
            let counted = database.get(part).and_then(|part| part.get(what));
            counted.and_then(serde_json::Value::as_u64).unwrap_or(0)
        };
        let (hits, saved) = (number("kept", "answers"), number("kept", "octets"));
        DatabaseReport {
            what: database
                .get("what")
                .and_then(|what| what.as_str())
                .unwrap_or_default()
                .to_owned(),
            asks_again,
            answers: hits + number("fetched", "answers"),
            hits,
            octets: saved + number("fetched", "octets"),
            saved,
        }
    };
    Ok(databases.iter().map(of).collect())
}

/// The table in Markdown.
pub(super) fn markdown(all: &[DatabaseReport], text: &mut String) {
    if all.is_empty() {
        return;
    }
    *text += "\n## Table 3: a community of readers\n\n\
        | database | requests | hits, T = 0 | gain | hits, never asked again | gain | the paper: requests, hits, gain |\n\
        |---|---|---|---|---|---|---|\n";
    let part = |these: u64, of: u64| match of {
        0 => "-".to_owned(),
        of => format!("{:.0} %", these as f64 * 100.0 / of as f64),
    };
    for (what, requests, hits, gain) in PAPER {
        let of = |asks_again| {
            let mut found = all.iter().filter(|it| it.what == what);
            found.find(|it| it.asks_again == asks_again)
        };
        let cells = |asks_again| {
            of(asks_again).map_or_else(
                || "- | -".to_owned(),
                |it| {
                    format!(
                        "{} | {}",
                        part(it.hits, it.answers),
                        part(it.saved, it.octets)
                    )
                },
            )
        };
        let answers = of(true).or(of(false)).map_or(0, |it| it.answers);
        let row = format!(
            "| {what} | {answers} | {} | {} | {requests}, {hits} %, {gain} % |\n",
            cells(true),
            cells(false)
        );
        *text += &row;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_groups_have_the_papers_part_of_the_requests() {
        let part = |rank: usize| 1.0 / (rank as f64 + 1.0);
        let top: f64 = (0..10).map(part).sum();
        let all: f64 = (0..GROUPS).map(part).sum();
        assert!((58.5..59.5).contains(&(top / all * 100.0)), "{}", top / all);
    }

    #[test]
    fn what_is_looked_at_is_at_the_origin() {
        for readers in [Readers::new(true), Readers::new(false)] {
            for rank in [0, 9, GROUPS - 1] {
                let last = readers.high(rank, readers.visits);
                assert!((1..=readers.articles(rank)).contains(&last), "{last}");
                assert!(readers.high(rank, 0) >= 1);
            }
        }
    }

    #[test]
    fn the_table_has_the_papers_beside_it() {
        let report = DatabaseReport {
            what: "articles".to_owned(),
            asks_again: true,
            answers: 200,
            hits: 50,
            octets: 1000,
            saved: 100,
        };
        let mut text = String::new();
        markdown(&[report], &mut text);
        assert!(
            text.contains("| articles | 200 | 25 % | 10 % | - | - | 205363, 21 %, 11 % |"),
            "{text}"
        );
        let mut nothing = String::new();
        markdown(&[], &mut nothing);
        assert_eq!(nothing, "");
    }
}
