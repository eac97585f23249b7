//! What the origin has: a long list of groups, a few with many articles, and some with a few.
//!
//! Invariant: everything follows from the numbers of groups and articles, so that each origin has the same.

use std::fmt::Write as _;
use std::net::SocketAddr;

use newsreel_wire::UnixTime;
use newsreel_wire::date::print_rfc5322;

use super::readers;
use crate::client::connect::Opened;
use crate::error::Error;
use crate::random::Dice;

/// Groups with many articles, as in the paper's third row.
pub(super) const BUSY: usize = 5;
/// Groups with a few, which only GROUP is said for.
pub(super) const QUIET: usize = 345;
/// Articles in each of these.
const QUIET_ARTICLES: u64 = 2;
/// Articles of the busy groups that are asked for one by one.
pub(super) const READ: u64 = 1000;
/// Articles that are sent in one go.
const AT_ONCE: usize = 50;
/// What the dice are thrown for.
const PURPOSE: u64 = 0x6e63;

/// The groups and articles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fixture {
    /// All groups.
    pub(super) groups: usize,
    /// Articles in each busy one.
    pub(super) articles: u64,
    /// Whether whoever is asked has these, and no articles of its own.
    pub(super) is_there: bool,
    /// When they were written: servers refuse old ones.
    pub(super) now: UnixTime,
}

/// The name of a busy group.
pub(super) fn busy(group: usize) -> String {
    format!("bench.busy.g{group}")
}

/// ... and of one with a few articles.
pub(super) fn quiet(group: usize) -> String {
    format!("bench.quiet.g{group}")
}

/// The message-id of an article.
pub(super) fn id(group: &str, number: u64) -> String {
    format!("<{number}.{group}@bench.test>")
}

fn article(group: &str, number: u64, now: UnixTime) -> String {
    let seed = group.bytes().map(u64::from).sum();
    let (mut dice, mut date) = (Dice::new(seed, PURPOSE, number), Vec::new());
    print_rfc5322(now, &mut date);
    let date = String::from_utf8_lossy(&date);
    // Three in a hundred are larger than the paper's small ones; the mean is some 3.5 KB, as in what was captured.
    let lines = match dice.chance(30) {
        true => 250 + dice.below(300),
        false => 10 + dice.below(50),
    };
    let mut text = format!(
        "Path: bench.test!not-for-mail\r\nFrom: Reader {number} <reader@bench.test>\r\nNewsgroups: {group}\r\n\
         Subject: Article {number} of {group}\r\nDate: {date}\r\nMessage-ID: {}\r\n\r\n",
        id(group, number)
    );
    for _ in 0..lines {
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "{:064x}\r\n",
            u128::from(dice.next()) << 64 | u128::from(dice.next())
        );
    }
    text.push_str(".\r\n");
    text
}

impl Fixture {
    /// The same where whoever is asked has articles of its own.
    pub(super) const fn absent(self) -> Self {
        Self {
            is_there: false,
            ..self
        }
    }

    /// The names of all groups; those that readers of table 3 read are there in any case.
    pub(super) fn names(&self) -> impl Iterator<Item = String> + use<> {
        let rest = self.groups.saturating_sub(BUSY + QUIET + readers::GROUPS);
        let others = (0..rest).map(|group| format!("bench.list.g{group}"));
        (0..BUSY)
            .map(busy)
            .chain((0..QUIET).map(quiet))
            .chain((0..readers::GROUPS).map(readers::group))
            .chain(others)
    }

    /// Articles that are read one by one.
    pub(super) fn read(&self) -> u64 {
        READ.min(self.articles)
    }

    /// Brings all of it to a server.
    pub(super) fn feed(&self, server: SocketAddr) -> Result<(), Error> {
        for group in 0..BUSY {
            bring(server, &busy(group), 1..=self.articles, self.now)?;
        }
        for group in 0..QUIET {
            bring(server, &quiet(group), 1..=QUIET_ARTICLES, self.now)?;
        }
        Ok(())
    }

    /// Brings one article more to each of so many quiet groups.
    pub(super) fn feed_more(&self, server: SocketAddr, groups: usize) -> Result<(), Error> {
        (0..groups.min(QUIET)).try_for_each(|group| {
            let next = QUIET_ARTICLES + 1;
            bring(server, &quiet(group), next..=next, self.now)
        })
    }
}

pub(super) fn bring(
    server: SocketAddr,
    group: &str,
    numbers: std::ops::RangeInclusive<u64>,
    now: UnixTime,
) -> Result<(), Error> {
    let mut to = Opened::open(server, false)?;
    let numbers: Vec<u64> = numbers.collect();
    for some in numbers.chunks(AT_ONCE) {
        let mut all = String::new();
        for number in some {
            let text = article(group, *number, now);
            let _ = write!(all, "TAKETHIS {}\r\n{text}", id(group, *number));
        }
        to.send(all.as_bytes())?;
        for _ in some {
            to.expect("TAKETHIS", &[239])?;
        }
    }
    to.command("QUIT", &[205]).map(drop)
}
