//! Reading from a server: the arguments, the groups it has, and what the read passes share.
//!
//! Invariant: what is asked for follows from the seed and the connection's place, so two servers
//! with the same articles are asked the same. The list of groups is fetched before measuring begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::client::connect::Opened;
use crate::client::outgoing::Outgoing;
use crate::client::script::{code, number, word};
use crate::client::tally::Tally;
use crate::corpus::Corpus;
use crate::error::Error;
use crate::feed::{UNKNOWN, names};
use crate::load::{self, LoadArgs, Machine, Plan};
use crate::passes;
use crate::random::Dice;
use crate::report::Report;

/// How articles are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// By group and number.
    Number,
    /// By message-id.
    #[default]
    Id,
    /// By message-ids of articles that do not exist.
    UnknownId,
}

/// In which order articles are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Any of them, again and again.
    #[default]
    Random,
    /// Each once, in order (and again from the start while there is time, with a duration).
    Sequential,
}

/// Which groups are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// All alike, small ones and large ones.
    Even,
    /// The busier, the more often: in proportion to their articles.
    Busy,
}

/// How closely replies are looked at; terminators, codes, numbers and ids always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// No closer than that.
    #[default]
    Replies,
    /// Every article is compared with the corpus octet for octet (but for Path and Xref, and for Date where no base time
    /// says what it was), and every overview line is read.
    Contents,
}

/// How to read.
#[derive(Debug, Clone)]
pub struct ReadArgs {
    /// What the connections say, by the name of a row of [`passes::READ`].
    pub mode: String,
    /// How articles are named.
    pub by: By,
    /// In which order articles are asked for.
    pub order: Order,
    /// Which groups are chosen; each mode has its own default.
    pub groups: Option<Choice>,
    /// Commands under way on a connection; 1 waits for each reply.
    pub depth: usize,
    /// How closely replies are looked at.
    pub verify: Verify,
    /// Stop after so many operations.
    pub operations: Option<u64>,
    /// Decides what is asked for.
    pub seed: u64,
    /// How hard, how long and at whom.
    pub load: LoadArgs,
}

impl ReadArgs {
    /// Articles by message-id, one at a time, for three seconds.
    pub fn new(load: LoadArgs) -> Self {
        Self {
            mode: "article".to_owned(),
            by: By::Id,
            order: Order::Random,
            groups: None,
            depth: 1,
            verify: Verify::Replies,
            operations: None,
            seed: 1,
            load: LoadArgs {
                duration_secs: load.duration_secs.or(Some(3.0)),
                ..load
            },
        }
    }
}

/// Reads from a server that has (some of) the articles of `corpus`.
pub fn run(args: &ReadArgs, corpus: &Corpus, machine: Machine<'_>) -> Result<Report, Error> {
    let pass = passes::read(&args.mode).ok_or_else(|| Error::Argument {
        name: "mode",
        value: args.mode.clone(),
        why: format!(
            "it must be one of {}",
            names(passes::READ.iter().map(|pass| pass.name))
        ),
    })?;
    if args.depth == 0 {
        return Err(Error::Argument {
            name: "depth",
            value: "0".to_owned(),
            why: "at least one command must be under way".to_owned(),
        });
    }
    let random = args.order == Order::Random;
    let endless = random && args.operations.is_none();
    if endless && args.load.duration_secs.is_none() {
        return Err(Error::Argument {
            name: "order",
            value: "random".to_owned(),
            why: "without a duration or a number of operations it would never end".to_owned(),
        });
    }
    let plan = Plan {
        name: format!("{}{}", args.mode, suffix(args)),
        kinds: pass.kinds,
        hello: Some(("MODE READER", &[200, 201])),
        depth: args.depth,
        total: args.operations,
    };
    let shared = Arc::new(Shared {
        groups: GroupTable::fetch(&args.load)?,
        left: AtomicU64::new(args.operations.unwrap_or(u64::MAX)),
        next: AtomicU64::new(0),
        repeat: args.load.duration_secs.is_some(),
    });
    load::run(&args.load, machine, &plan, &mut |place| {
        (pass.make)(ReadContext {
            corpus,
            shared: Arc::clone(&shared),
            by: args.by,
            order: args.order,
            choice: args.groups,
            verify: args.verify,
            dice: Dice::new(args.seed, 0x30, place as u64),
            stopped: false,
        })
    })
}

fn suffix(args: &ReadArgs) -> &'static str {
    match (args.mode.as_str(), args.by, args.order) {
        ("article" | "head" | "body" | "stat", By::Number, Order::Random) => " by number, random",
        ("article" | "head" | "body" | "stat", By::Number, Order::Sequential) => {
            " by number, in order"
        }
        ("article" | "head" | "body" | "stat", By::Id, _) => " by id",
        ("article" | "head" | "body" | "stat", By::UnknownId, _) => " by unknown id",
        _ => "",
    }
}

/// A group as the server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: Box<[u8]>,
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// The groups with articles, the largest first.
#[derive(Debug, Default)]
pub(crate) struct GroupTable {
    groups: Vec<Group>,
    /// Articles in the groups up to and including each.
    sums: Vec<u64>,
    /// Lines of the whole list, empty groups included.
    pub(crate) listed: u64,
}

impl GroupTable {
    fn fetch(load: &LoadArgs) -> Result<Self, Error> {
        let server = load.server;
        let mut connection = Opened::open(server, load.tls)?;
        connection.command("MODE READER", &[200, 201])?;
        let table = Self::parse(&connection.block("LIST ACTIVE", &[215])?);
        if table.groups.is_empty() {
            return Err(Error::NothingToRead { server });
        }
        Ok(table)
    }

    /// Reads the lines of LIST ACTIVE: name, high, low, status.
    fn parse(list: &[u8]) -> Self {
        let mut table = Self::default();
        for line in list
            .split(|&octet| octet == b'\n')
            .filter(|line| !line.is_empty())
        {
            table.listed += 1;
            let (name, high, low) = (word(line, 0), number(word(line, 1)), number(word(line, 2)));
            if let (Some(high), Some(low)) = (high, low)
                && high >= low.max(1)
            {
                table.groups.push(Group {
                    name: name.into(),
                    low: low.max(1),
                    high,
                });
            }
        }
        table
            .groups
            .sort_by_key(|group| std::cmp::Reverse(group.high - group.low));
        let mut sum = 0;
        table.sums.extend(table.groups.iter().map(|group| {
            sum += group.high - group.low + 1;
            sum
        }));
        table
    }

    pub(crate) fn get(&self, place: u32) -> Option<&Group> {
        self.groups.get(place as usize)
    }

    fn choose(&self, choice: Choice, dice: &mut Dice) -> u32 {
        let place = match choice {
            Choice::Even => dice.below(self.groups.len()),
            Choice::Busy => {
                let all = self.sums.last().copied().unwrap_or_default();
                let article = dice.below(usize::try_from(all).unwrap_or(usize::MAX)) as u64;
                self.sums.partition_point(|&sum| sum <= article)
            }
        };
        place as u32
    }
}

/// What the connections of a read pass share.
#[derive(Debug)]
struct Shared {
    groups: GroupTable,
    /// Operations that may still be begun.
    left: AtomicU64,
    /// The next article or group in sequential order.
    next: AtomicU64,
    repeat: bool,
}

/// What a reading connection works with.
#[derive(Debug)]
pub(crate) struct ReadContext<'c> {
    pub(crate) corpus: &'c Corpus,
    shared: Arc<Shared>,
    pub(crate) by: By,
    pub(crate) order: Order,
    choice: Option<Choice>,
    pub(crate) verify: Verify,
    pub(crate) dice: Dice,
    stopped: bool,
}

impl ReadContext<'_> {
    /// Whether another operation may be begun; it is taken from the number asked for.
    pub(crate) fn go_on(&self) -> bool {
        let take = |left: u64| left.checked_sub(1);
        let left = &self.shared.left;
        !self.stopped
            && left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .is_ok()
    }

    pub(crate) const fn stop(&mut self) {
        self.stopped = true;
    }

    pub(crate) fn groups(&self) -> &GroupTable {
        &self.shared.groups
    }

    pub(crate) fn group(&self, place: u32) -> Option<&Group> {
        self.shared.groups.get(place)
    }

    /// A group, by the choice asked for or else the pass's own.
    pub(crate) fn choose_group(&mut self, usual: Choice) -> u32 {
        self.shared
            .groups
            .choose(self.choice.unwrap_or(usual), &mut self.dice)
    }

    /// The next group in order; `None` after the last, unless they are to be repeated.
    pub(crate) fn next_group(&self) -> Option<u32> {
        let place = self.next_of(self.shared.groups.groups.len() as u64)?;
        u32::try_from(place).ok()
    }

    /// The article to ask for by id.
    pub(crate) fn choose_article(&mut self) -> Option<u64> {
        let articles = self.corpus.len();
        let place = match self.order {
            Order::Random => self.dice.below(usize::try_from(articles).ok()?) as u64,
            Order::Sequential => self.next_of(articles)?,
        };
        let beyond = if self.by == By::UnknownId { UNKNOWN } else { 0 };
        Some(self.corpus.first() + place + beyond)
    }

    /// Puts GROUP.
    pub(crate) fn write_group(&self, verb: &[u8], place: u32, out: &mut Outgoing<'_>) {
        let text = out.text();
        text.extend_from_slice(verb);
        text.push(b' ');
        text.extend_from_slice(self.group(place).map_or(&b""[..], |group| &group.name));
        text.extend_from_slice(b"\r\n");
    }

    /// Counts the reply to GROUP or LISTGROUP, and complains unless it names the group.
    pub(crate) fn verify_group(&self, kind: u8, place: u32, line: &[u8], tally: &mut Tally) {
        tally.code(kind, code(line));
        let named = self
            .group(place)
            .is_some_and(|group| word(line, 4) == &*group.name);
        if code(line) != Some(211) || !named {
            tally.complain(|| format!("GROUP said \"{}\"", String::from_utf8_lossy(line)));
        }
    }

    fn next_of(&self, len: u64) -> Option<u64> {
        let next = self.shared.next.fetch_add(1, Ordering::Relaxed);
        if self.shared.repeat {
            next.checked_rem(len)
        } else {
            (next < len).then_some(next)
        }
    }
}

/// Puts a decimal number.
pub(crate) fn write_number(text: &mut Vec<u8>, number: u64) {
    text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_groups_is_sorted_and_chosen_from() {
        let list =
            b"a.b 0000000010 0000000001 y\r\nempty 0000000000 0000000001 y\r\nnone 0 0 y\r\n\
                     c.d 0000000100 0000000011 m\r\nbad\r\n";
        let table = GroupTable::parse(list);
        assert_eq!((table.listed, table.groups.len()), (5, 2));
        assert_eq!(
            table.get(0).unwrap(),
            &Group {
                name: (*b"c.d").into(),
                low: 11,
                high: 100
            }
        );
        assert_eq!(table.sums, [90, 100]);
        let mut dice = Dice::new(1, 1, 1);
        let mut chosen = |choice| {
            (0..1000)
                .filter(|_| table.choose(choice, &mut dice) == 0)
                .count()
        };
        assert!((870..930).contains(&chosen(Choice::Busy)));
        assert!((450..550).contains(&chosen(Choice::Even)));
    }
}
