//! The passes: what connections say to a server, one file each.
//!
//! To add one: write `passes/<name>.rs` with a `Script` and a constant that describes it,
//! declare the module, and add the constant to [`FEED`] or [`READ`]. Help texts, the command line's choices and the
//! test that runs every pass against the do-nothing server follow from the row.
//! Invariant: a row's `kinds` are in the order of the script's kind numbers.

mod asked;
mod cancel;
mod check;
mod check_only;
mod date;
mod fetch;
mod group;
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
    /// Whether articles are sent, not only offered.
    pub sends: bool,
    /// Whether commands may follow one another without waiting; if not, the window is one article.
    pub(crate) streams: bool,
    /// What is said first on a connection, and which answers are right.
    pub(crate) hello: Option<(&'static str, &'static [u16])>,
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
    takethis::PASS,
    check::PASS,
    asked::IHAVE_PASS,
    asked::POST_PASS,
    cancel::PASS,
    check_only::KNOWN,
    check_only::UNKNOWN_IDS,
];

/// All ways to read.
pub static READ: &[ReadPass] = &[
    fetch::ARTICLE_PASS,
    fetch::HEAD_PASS,
    fetch::BODY_PASS,
    fetch::STAT_PASS,
    over::PASS,
    group::PASS,
    list::PASS,
    listgroup::PASS,
    session::PASS,
    date::PASS,
];

/// A row of [`FEED`] by name.
pub fn feed(name: &str) -> Option<&'static FeedPass> {
    FEED.iter().find(|pass| pass.name == name)
}

/// A row of [`READ`] by name.
pub fn read(name: &str) -> Option<&'static ReadPass> {
    READ.iter().find(|pass| pass.name == name)
}
