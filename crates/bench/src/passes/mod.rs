//! The passes: what connections say to a server, one file each.
//!
//! To add one: write `passes/<name>.rs` with a [`Script`] and a function that makes it, declare the
//! module, and add a row to [`FEED`] or [`READ`]. Help texts, the command line's choices and the
//! test that runs every pass against the do-nothing server follow from the row.
//! Invariant: a row's `kinds` are in the order of the script's kind numbers.

mod check;
mod check_only;
mod date;
mod fetch;
mod group;
mod ihave;
mod list;
mod listgroup;
mod over;
mod session;
mod takethis;

use crate::client::script::Script;
use crate::client::tally::Kind;
use crate::feed::FeedContext;
use crate::read::ReadContext;

/// A way to bring articles to a server.
#[derive(Debug)]
pub struct FeedPass {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// Whether commands may follow one another without waiting; if not, the window is one article.
    pub(crate) streams: bool,
    pub(crate) kinds: &'static [Kind],
    pub(crate) make: for<'c> fn(FeedContext<'c>) -> Box<dyn Script<'c> + 'c>,
}

/// A way to read from a server.
#[derive(Debug)]
pub struct ReadPass {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    pub(crate) kinds: &'static [Kind],
    pub(crate) make: for<'c> fn(ReadContext<'c>) -> Box<dyn Script<'c> + 'c>,
}

/// All ways to feed.
pub static FEED: &[FeedPass] = &[
    FeedPass {
        name: "takethis",
        help: "TAKETHIS without asking first",
        streams: true,
        kinds: takethis::KINDS,
        make: takethis::make,
    },
    FeedPass {
        name: "check",
        help: "CHECK, and TAKETHIS for what is wanted, as streaming peers do",
        streams: true,
        kinds: check::KINDS,
        make: check::make,
    },
    FeedPass {
        name: "ihave",
        help: "IHAVE, one article at a time",
        streams: false,
        kinds: ihave::KINDS,
        make: ihave::make,
    },
    FeedPass {
        name: "check-known",
        help: "CHECK only, of articles that the server has",
        streams: true,
        kinds: check_only::KINDS,
        make: check_only::make_known,
    },
    FeedPass {
        name: "check-unknown",
        help: "CHECK only, of articles that do not exist",
        streams: true,
        kinds: check_only::KINDS,
        make: check_only::make_unknown,
    },
];

/// All ways to read.
pub static READ: &[ReadPass] = &[
    ReadPass {
        name: "article",
        help: "whole articles",
        kinds: fetch::ARTICLE_KINDS,
        make: fetch::make_article,
    },
    ReadPass {
        name: "head",
        help: "header blocks",
        kinds: fetch::HEAD_KINDS,
        make: fetch::make_head,
    },
    ReadPass {
        name: "body",
        help: "bodies",
        kinds: fetch::BODY_KINDS,
        make: fetch::make_body,
    },
    ReadPass {
        name: "stat",
        help: "whether articles are there",
        kinds: fetch::STAT_KINDS,
        make: fetch::make_stat,
    },
    ReadPass {
        name: "over",
        help: "GROUP, and the overview of the whole group",
        kinds: over::KINDS,
        make: over::make,
    },
    ReadPass {
        name: "group",
        help: "GROUP of busy and quiet groups as they come",
        kinds: group::KINDS,
        make: group::make,
    },
    ReadPass {
        name: "list",
        help: "LIST ACTIVE of all groups",
        kinds: list::KINDS,
        make: list::make,
    },
    ReadPass {
        name: "listgroup",
        help: "LISTGROUP, the numbers of a whole group",
        kinds: listgroup::KINDS,
        make: listgroup::make,
    },
    ReadPass {
        name: "session",
        help: "as a newsreader: a group, the newest overview, some of its articles",
        kinds: session::KINDS,
        make: session::make,
    },
    ReadPass {
        name: "date",
        help: "DATE, the cheapest command: what a round trip costs",
        kinds: date::KINDS,
        make: date::make,
    },
];

/// A row of [`FEED`] by name.
pub fn feed(name: &str) -> Option<&'static FeedPass> {
    FEED.iter().find(|pass| pass.name == name)
}

/// A row of [`READ`] by name.
pub fn read(name: &str) -> Option<&'static ReadPass> {
    READ.iter().find(|pass| pass.name == name)
}
