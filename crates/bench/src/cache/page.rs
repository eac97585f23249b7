//! The figures as tables, beside those of the paper, and what is asked of them.

use std::fmt::Write as _;

use super::floor::Placing;
use super::leaves;
use super::operations::Operation;
use super::readers;
use super::run::{Asked, CacheReport, Facts, Figure, LINKS, NEWSREEL};
use crate::error::Error;
use crate::plot;
use crate::usenetfs::{GOAL_TITLES, Goal};

const MIB: f64 = 1024.0 * 1024.0;

/// Octets that the cache may have in memory for articles, overview and its table, as its configuration says at first.
const TIERS_MIB: f64 = 80.0;

/// The paper's figures in seconds: NewsCache hit and miss, and INN, at once and over the modem.
const fn paper(operation: Operation, link: &str) -> Option<(f64, f64, f64)> {
    let modem = match link.as_bytes() {
        b"none" => false,
        b"56k" => true,
        _ => return None,
    };
    match (operation, modem) {
        (Operation::List, false) => Some((3.6, 7.0, 6.0)),
        (Operation::List, true) => Some((10.1, 120.0, 110.0)),
        (Operation::Articles, false) => Some((19.0, 38.0, 20.0)),
        (Operation::Articles, true) => Some((27.5, 523.0, 471.0)),
        (Operation::Overview, false) => Some((16.1, 111.0, 108.0)),
        (Operation::Overview, true) => Some((40.3, 373.0, 331.0)),
        (Operation::Groups, false) => Some((0.7, 21.8, 20.6)),
        (Operation::Groups, true) => Some((0.7, 43.6, 43.3)),
        _ => None,
    }
}

/// What, how much at most, what was found, and in what it is counted.
type Bound = (String, f64, Option<f64>, &'static str);

fn bound(what: &str, asked: f64, found: Option<f64>, unit: &'static str) -> Bound {
    (what.to_owned(), asked, found, unit)
}

impl CacheReport {
    fn find(&self, origin: &str, link: &str, what: (Operation, Asked)) -> Option<&Figure> {
        self.figures
            .iter()
            .find(|it| it.origin == origin && it.link == link && (it.operation, it.asked) == what)
    }

    /// The tables in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "The origin lists {} groups and has {} articles in each of five; {} of them are read one by one.\n",
            self.groups, self.articles, self.read
        );
        let mut done: Vec<(&str, &str)> = Vec::new();
        for figure in self.figures.iter().filter(|it| it.asked == Asked::Origin) {
            let table = (figure.origin.as_str(), figure.link.as_str());
            if !done.contains(&table) {
                done.push(table);
                self.table(table, &mut text);
            }
        }
        for facts in &self.facts {
            facts.markdown(&mut text);
        }
        readers::markdown(&self.databases, &mut text);
        let near = self.links().next().unwrap_or(LINKS[0]);
        let hit = |operation| self.find(NEWSREEL, near, (operation, Asked::Hit));
        leaves::markdown(&self.leaves, |it| hit(it).map(|hit| hit.ms), &mut text);
        let goals = self.goals();
        if !goals.is_empty() {
            // Writing to a text cannot fail.
            let _ = write!(text, "\n## What was asked\n\n{GOAL_TITLES}");
            goals.iter().for_each(|goal| text += &goal.markdown());
        }
        if !self.is_full() {
            text += "\nThe bounds are for 50,000 groups, 2000 articles in each busy one and 1000 that are read: this run was smaller.\n";
        }
        text
    }

    fn table(&self, (origin, link): (&str, &str), text: &mut String) {
        let name = match link {
            "none" => "without a link",
            "56k" => "56 kbit/s",
            _ => "a round trip of 20 ms",
        };
        let has_paper = Operation::PAPER.iter().any(|it| paper(*it, link).is_some());
        let _ = write!(
            text,
            "\n## {origin}, {name}\n\n| ms | origin | miss | round trips | hit | round trips |{}\n|---|---|---|---|---|---|{}\n",
            if has_paper {
                " the paper, s: hit / miss / INN |"
            } else {
                ""
            },
            if has_paper { "---|" } else { "" },
        );
        for operation in Operation::ALL {
            let ms = |asked| self.find(origin, link, (operation, asked));
            let shown = |asked| ms(asked).map_or_else(|| "-".to_owned(), |it| digits(it.ms));
            let trips =
                |asked| ms(asked).map_or_else(|| "-".to_owned(), |it| it.round_trips.to_string());
            let _ = write!(
                text,
                "| {} | {} | {} | {} | {} | {} |",
                operation.name(),
                shown(Asked::Origin),
                shown(Asked::Miss),
                trips(Asked::Miss),
                shown(Asked::Hit),
                trips(Asked::Hit),
            );
            if has_paper {
                let of = paper(operation, link);
                let said = of.map_or_else(
                    || "-".to_owned(),
                    |(hit, miss, inn)| format!("{hit} / {miss} / {inn}"),
                );
                let _ = write!(text, " {said} |");
            }
            text.push('\n');
        }
    }

    /// What is asked for, where it was measured.
    #[must_use]
    pub fn goals(&self) -> Vec<Goal> {
        let all = [self.of_hits(), self.of_misses(), self.of_facts()];
        let found = all.into_iter().flatten();
        let goal =
            |(what, asked, found, unit): Bound| Some(Goal::at_most(what, asked, found?, unit));
        found.filter_map(goal).collect()
    }

    fn of_hits(&self) -> Vec<Bound> {
        let hit = |operation| {
            let figure = self.find(NEWSREEL, LINKS[0], (operation, Asked::Hit));
            figure.map(|it| it.ms)
        };
        let floors = self.facts.first().map(|facts| &facts.floors);
        let times = |operation| {
            let of = (operation, Placing::Apart);
            let floor = floors?.iter().find(|it| (it.operation, it.placing) == of)?;
            Some(floor.hit_ms / floor.nothing_ms)
        };
        let hits = self.figures.iter().filter(|it| it.asked == Asked::Hit);
        let trips: u64 = hits.map(|it| it.round_trips).sum();
        let of_null = " times a do-nothing server, reader and server apart";
        let ms = " ms";
        vec![
            bound("LIST ACTIVE, a hit", 10.0, hit(Operation::List), ms),
            bound(
                "articles, hits one by one",
                1.15,
                times(Operation::Articles),
                of_null,
            ),
            bound("... by message-id", 1.15, times(Operation::ById), of_null),
            bound("... 50 at a time", 12.0, hit(Operation::Pipelined), ms),
            bound(
                "overview of five groups, a hit",
                8.0,
                hit(Operation::Overview),
                ms,
            ),
            bound(
                "GROUP for 350 groups, hits",
                1.15,
                times(Operation::Groups),
                of_null,
            ),
            bound("round trips for all hits", 0.0, Some(trips as f64), ""),
        ]
    }

    fn of_misses(&self) -> Vec<Bound> {
        let mut bounds = Vec::new();
        for link in self.links().filter(|link| *link != LINKS[0]) {
            for operation in Operation::PAPER {
                let of = |asked| self.find(NEWSREEL, link, (operation, asked));
                let both = of(Asked::Miss).zip(of(Asked::Origin));
                let times = both.map(|(miss, origin)| miss.ms / origin.ms);
                let what = format!("{link}: {}, a miss", operation.name());
                bounds.push(bound(&what, 1.1, times, " times the origin"));
            }
        }
        let far = self.find(NEWSREEL, "20ms", (Operation::Articles, Asked::Miss));
        let inn = self.find("INN", LINKS[0], (Operation::Articles, Asked::Miss));
        let seconds = |figure: Option<&Figure>| figure.map(|it| it.ms / 1000.0);
        let trips = far.map(|it| it.round_trips as f64);
        bounds.extend([
            bound(
                "articles one by one over 20 ms, misses",
                2.0,
                seconds(far),
                " s",
            ),
            bound("... round trips", 60.0, trips, ""),
            bound(
                "articles one by one from INN, misses",
                1.0,
                seconds(inn),
                " s",
            ),
        ]);
        bounds
    }

    fn of_facts(&self) -> Vec<Bound> {
        let Some(facts) = self.facts.first() else {
            return Vec::new();
        };
        let prefetch = format!("prefetch of {} articles", facts.prefetched);
        let restart = format!(
            "a restart with {} articles, to the first answer",
            facts.prefetched
        );
        let refresh_kb = facts.refresh_octets as f64 / 1000.0;
        let mut cost = facts.costs.iter();
        let cost = cost.rfind(|it| it.placing == Placing::Together);
        let memory = facts.memory_octets as f64 / MIB;
        let of_memory = "memory, 80 MiB of what it may keep there included";
        vec![
            bound(
                "processor time of a hit, one by one, on the reader's processor",
                8.0,
                cost.map(|it| it.hit_us),
                " us",
            ),
            bound(
                "... 50 at a time",
                8.0,
                Some(facts.us_per_hit_pipelined),
                " us",
            ),
            bound(
                "overview of five groups, made from articles",
                20.0,
                Some(facts.overview_made_ms),
                " ms",
            ),
            bound(&prefetch, 1.0, Some(facts.prefetch_s), " s"),
            bound(
                "the list again after 100 changed groups",
                20.0,
                Some(refresh_kb),
                " KB",
            ),
            bound(&restart, 1.0, Some(facts.restart_s), " s"),
            bound(of_memory, 100.0 + TIERS_MIB, Some(memory), " MiB"),
        ]
    }

    fn links(&self) -> impl Iterator<Item = &'static str> {
        let is_there = |link: &&str| self.figures.iter().any(|it| it.link == **link);
        LINKS.into_iter().filter(is_there)
    }

    /// A picture for each link: how long a reader waits at the origin, and at the cache.
    pub fn pictures(&self) -> Result<Vec<(String, String)>, Error> {
        let picture = |link: &str| {
            let of_link = |it: &&Figure| it.link == link && it.origin == NEWSREEL;
            let bars: Vec<(String, f64)> = Operation::ALL
                .iter()
                .flat_map(|operation| {
                    let these = self.figures.iter().filter(of_link);
                    these.filter(|it| it.operation == *operation)
                })
                .map(|it| (format!("{}: {:?}", it.operation.name(), it.asked), it.ms))
                .collect();
            let svg = plot::bars(&format!("Milliseconds, link: {link}"), &bars)?;
            Ok((format!("link-{link}"), svg))
        };
        self.links().map(picture).collect()
    }
}

impl Figure {
    /// For a terminal.
    #[must_use]
    pub fn human(&self) -> String {
        let who = match self.asked {
            Asked::Origin => "origin",
            Asked::Miss => "miss",
            Asked::Hit => "hit",
        };
        format!(
            "{:20} {:5} {:38} {who:7} {:>10} ms {:>5} round trips\n",
            self.origin,
            self.link,
            self.operation.name(),
            digits(self.ms),
            self.round_trips
        )
    }
}

impl Facts {
    fn markdown(&self, text: &mut String) {
        let _ = write!(
            text,
            "\nIn front of {}: {:.1} us of processor time for an article that is kept where fifty are asked for at a time; overview made from \
             articles in {:.1} ms; {} articles prefetched in {:.2} s; {:.1} MiB of memory with these; {:.2} s from a start with them to the \
             greeting; {} octets for the list when 100 groups have changed.\n\n\
             | medians | hits, ms | a do-nothing server, ms | times |\n|---|---|---|---|\n",
            self.origin,
            self.us_per_hit_pipelined,
            self.overview_made_ms,
            self.prefetched,
            self.prefetch_s,
            self.memory_octets as f64 / MIB,
            self.restart_s,
            self.refresh_octets
        );
        for floor in &self.floors {
            let what = format!("{}, {}", floor.operation.name(), floor.placing.name());
            let (hit, nothing) = (floor.hit_ms, floor.nothing_ms);
            row(text, &what, hit, nothing);
        }
        for cost in &self.costs {
            let what = format!("processor time of an article, us, {}", cost.placing.name());
            row(text, &what, cost.hit_us, cost.nothing_us);
        }
    }
}

fn row(text: &mut String, what: &str, hit: f64, nothing: f64) {
    let (times, hit, nothing) = (hit / nothing, digits(hit), digits(nothing));
    // Writing to a text cannot fail.
    let _ = writeln!(text, "| {what} | {hit} | {nothing} | {times:.2} |");
}

/// With as many digits as mean something.
pub(super) fn digits(ms: f64) -> String {
    match ms {
        ms if ms >= 100.0 => format!("{ms:.0}"),
        ms if ms >= 10.0 => format!("{ms:.1}"),
        ms => format!("{ms:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::floor::{Cost, Floor};
    use super::*;

    #[test]
    fn a_hit_that_went_over_the_link_and_a_slow_one_are_told() {
        let figure = |operation, asked, ms, round_trips| Figure {
            origin: "newsreel".to_owned(),
            link: "none".to_owned(),
            operation,
            asked,
            ms,
            round_trips,
        };
        let report = CacheReport {
            figures: vec![
                figure(Operation::Articles, Asked::Origin, 30.0, 1001),
                figure(Operation::Articles, Asked::Miss, 60.0, 40),
                figure(Operation::Articles, Asked::Hit, 24.0, 2),
                figure(Operation::List, Asked::Hit, 9.0, 0),
            ],
            facts: vec![Facts {
                floors: vec![Floor {
                    operation: Operation::Articles,
                    placing: Placing::Apart,
                    hit_ms: 24.0,
                    nothing_ms: 20.0,
                }],
                costs: vec![Cost {
                    placing: Placing::Together,
                    hit_us: 5.0,
                    nothing_us: 4.0,
                }],
                ..Facts::default()
            }],
            ..CacheReport::default()
        };
        let missed = |goal: &Goal| (!goal.is_met()).then(|| (goal.what.clone(), goal.measured));
        let missed: Vec<_> = report.goals().iter().filter_map(missed).collect();
        let expected = [
            ("articles, hits one by one".to_owned(), 1.2),
            ("round trips for all hits".to_owned(), 2.0),
        ];
        assert_eq!(missed, expected);
        let text = report.markdown();
        let row = "| articles by number, one by one | 30.0 | 60.0 | 40 | 24.0 | 2 | 19 / 38 / 20 |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("this run was smaller"), "{text}");
        assert_eq!(report.pictures().unwrap().len(), 1);
    }
}
