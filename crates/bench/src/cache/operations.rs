//! What a reader asks for, as in the paper's tables, over one connection; each answer is looked at.

use std::net::SocketAddr;

use serde::Serialize;

use super::fixture::{BUSY, Fixture, QUIET, busy, id, quiet};
use crate::client::connect::Opened;
use crate::error::Error;

/// Commands that are sent before an answer is waited for, where that is what is measured.
const AT_ONCE: usize = 50;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// The active database.
    List,
    /// A thousand articles, by number and one by one.
    Articles,
    /// The same by message-id.
    ById,
    /// The same by message-id, fifty at a time.
    Pipelined,
    /// The overview of five groups.
    Overview,
    /// GROUP for 350 groups.
    Groups,
}

impl Operation {
    /// All of them, in the order of the paper.
    pub const ALL: [Self; 6] = [
        Self::List,
        Self::Articles,
        Self::ById,
        Self::Pipelined,
        Self::Overview,
        Self::Groups,
    ];

    /// Those of the paper: what is read by them for the first time is a miss.
    pub(super) const PAPER: [Self; 4] = [Self::List, Self::Articles, Self::Overview, Self::Groups];

    /// Those that a server that does nothing is asked, too.
    pub(super) const NULL: [Self; 3] = [Self::Articles, Self::ById, Self::Groups];

    /// What it is called in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "active database (LIST ACTIVE)",
            Self::Articles => "articles by number, one by one",
            Self::ById => "articles by message-id, one by one",
            Self::Pipelined => "articles by message-id, 50 at a time",
            Self::Overview => "overview of 5 groups (OVER)",
            Self::Groups => "GROUP for 350 groups",
        }
    }

    /// Does it.
    pub(super) fn run(self, server: SocketAddr, has: &Fixture) -> Result<(), Error> {
        let mut to = Opened::open(server, false)?;
        to.command("MODE READER", &[200, 201])?;
        let done = match self {
            Self::List => list(&mut to, has),
            Self::Articles => articles(&mut to, has),
            Self::ById => by_id(&mut to, has),
            Self::Pipelined => pipelined(&mut to, has),
            Self::Overview => overview(&mut to, has),
            Self::Groups => groups(&mut to),
        };
        done?;
        to.command("QUIT", &[205]).map(drop)
    }
}

/// What was answered is not what was asked for.
fn wrong(server: &Opened, asked: &str, reply: String) -> Error {
    Error::Refused {
        server: server.server(),
        asked: asked.to_owned(),
        reply,
    }
}

/// The number of a group's first article, and how many there are, as a server tells them when the group is selected.
pub(super) fn first_and_count(line: &[u8]) -> (u64, u64) {
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_ascii_whitespace().skip(1);
    let mut number = || words.next().and_then(|word| word.parse().ok());
    let count = number().unwrap_or_default();
    (number().unwrap_or(1), count)
}

/// An answer of many lines, of which the server may send the first apart.
pub(super) fn block(to: &mut Opened, command: &str, code: u16) -> Result<Vec<u8>, Error> {
    to.command(command, &[code])?;
    to.quick_ack();
    to.rest(command)
}

/// The overview of the group that is selected, by its older name where the newer one is not known.
fn over(to: &mut Opened) -> Result<Vec<u8>, Error> {
    match block(to, "OVER 1-", 224) {
        Err(Error::Refused { reply, .. }) if reply.starts_with("500") => block(to, "XOVER 1-", 224),
        answered => answered,
    }
}

fn lines(block: &[u8]) -> u64 {
    block.iter().filter(|octet| **octet == b'\n').count() as u64
}

pub(super) fn list(to: &mut Opened, has: &Fixture) -> Result<(), Error> {
    let block = block(to, "LIST ACTIVE", 215)?;
    match lines(&block) {
        found if found >= has.groups as u64 => Ok(()),
        found => Err(wrong(to, "LIST ACTIVE", format!("{found} groups"))),
    }
}

/// One article, which must be the one that was asked for.
pub(super) fn article(
    to: &mut Opened,
    command: &str,
    id: &str,
    has: &Fixture,
) -> Result<(), Error> {
    let line = to.command(command, &[220])?;
    to.quick_ack();
    let block = to.rest(command)?;
    let is_it = !has.is_there || memchr::memmem::find(&line, id.as_bytes()).is_some();
    match is_it && !block.is_empty() {
        true => Ok(()),
        false => Err(wrong(
            to,
            command,
            String::from_utf8_lossy(&line).into_owned(),
        )),
    }
}

fn articles(to: &mut Opened, has: &Fixture) -> Result<(), Error> {
    let group = busy(0);
    let line = to.command(&format!("GROUP {group}"), &[211])?;
    // Who numbers articles by itself may begin with another number than the first.
    let (first, _) = first_and_count(&line);
    (1..=has.read()).try_for_each(|number| {
        let command = format!("ARTICLE {}", first + number - 1);
        article(to, &command, &id(&group, number), has)
    })
}

fn by_id(to: &mut Opened, has: &Fixture) -> Result<(), Error> {
    (1..=has.read()).try_for_each(|number| {
        let id = id(&busy(0), number);
        article(to, &format!("ARTICLE {id}"), &id, has)
    })
}

fn pipelined(to: &mut Opened, has: &Fixture) -> Result<(), Error> {
    let numbers: Vec<u64> = (1..=has.read()).collect();
    for some in numbers.chunks(AT_ONCE) {
        let ids: Vec<String> = some.iter().map(|number| id(&busy(0), *number)).collect();
        let commands: String = ids.iter().map(|id| format!("ARTICLE {id}\r\n")).collect();
        to.send(commands.as_bytes())?;
        to.quick_ack();
        for id in &ids {
            let line = to.expect("ARTICLE", &[220])?;
            to.rest("ARTICLE")?;
            if memchr::memmem::find(&line, id.as_bytes()).is_none() {
                return Err(wrong(to, id, String::from_utf8_lossy(&line).into_owned()));
            }
        }
    }
    Ok(())
}

fn overview(to: &mut Opened, has: &Fixture) -> Result<(), Error> {
    for group in (0..BUSY).map(busy) {
        to.command(&format!("GROUP {group}"), &[211])?;
        let block = over(to)?;
        if lines(&block) != has.articles {
            return Err(wrong(to, "OVER 1-", format!("{} lines", lines(&block))));
        }
    }
    Ok(())
}

fn groups(to: &mut Opened) -> Result<(), Error> {
    let names = (0..BUSY).map(busy).chain((0..QUIET).map(quiet));
    for name in names {
        to.command(&format!("GROUP {name}"), &[211])?;
        to.quick_ack();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use newsreel_wire::UnixTime;

    use super::*;
    use crate::rivals::inetd::{Inetd, Limit, Program};

    #[test]
    fn a_group_may_begin_with_another_number_and_have_overview_by_its_older_name() {
        let script = r#"
            say() { printf '%s\r\n' "$@"; }
            say 200
            while read -r verb what; do
                what=${what%?}
                case $verb in
                    MODE) say 200 ;;
                    GROUP) say "211 2 10 11 $what" ;;
                    ARTICLE) say "220 $what <$((what - 9)).bench.busy.g0@bench.test>" text . ;;
                    XOVER) say 224 one two . ;;
                    QUIT*) say 205; exit ;;
                    *) say 500 ;;
                esac
            done"#;
        let program = Program::new(Path::new("/bin/sh"), &["-c", script]);
        let server = Inetd::start(program, Limit::new(Duration::from_secs(600))).unwrap();
        let has = Fixture {
            groups: 350,
            articles: 2,
            is_there: true,
            now: UnixTime(0),
        };
        for operation in [Operation::Articles, Operation::Overview, Operation::Groups] {
            operation.run(server.address(), &has).unwrap();
        }
        Operation::List.run(server.address(), &has).unwrap_err();
    }

    #[test]
    fn what_a_group_has_is_read_from_the_answer() {
        assert_eq!(first_and_count(b"211 40 10 49 bench.busy.g0"), (10, 40));
        assert_eq!(first_and_count(b"211"), (1, 0));
    }
}
