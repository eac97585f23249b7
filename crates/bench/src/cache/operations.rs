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

fn lines(block: &[u8]) -> u64 {
    block.iter().filter(|octet| **octet == b'\n').count() as u64
}

fn list(to: &mut Opened, has: &Fixture) -> Result<(), Error> {
    let block = to.block("LIST ACTIVE", &[215])?;
    match lines(&block) {
        found if found >= has.groups as u64 => Ok(()),
        found => Err(wrong(to, "LIST ACTIVE", format!("{found} groups"))),
    }
}

/// One article, which must be the one that was asked for.
fn article(to: &mut Opened, command: &str, id: &str, has: &Fixture) -> Result<(), Error> {
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
    to.command(&format!("GROUP {group}"), &[211])?;
    (1..=has.read())
        .try_for_each(|number| article(to, &format!("ARTICLE {number}"), &id(&group, number), has))
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
        let block = to.block("OVER 1-", &[224])?;
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
