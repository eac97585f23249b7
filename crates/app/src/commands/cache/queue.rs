//! `newsreel cache queue`: posts that a caching server took and could not send on yet.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use newsreel_wire::nntp::framing::wire_to_lf;
use serde_json::{Value, json};

use super::Which;
use crate::control::cache_request::{CacheRequest, QueueAction};
use crate::output::{self, cell, date};
use crate::{input, posting};

#[derive(Debug, Clone, clap::Subcommand)]
pub(super) enum Verb {
    /// List the posts that wait, or that a server refused
    #[command(
        after_help = "A post waits while a server that it is for cannot be asked, and is tried again after a minute; where the server \
                      could be asked and did not take it, after twice as long each time, an hour at most (TRIES counts those). \
                      One that a server refused stays until it is edited, retried or dropped.\n\n\
                      Example:\n  newsreel cache queue list --directory /var/cache/newsreel"
    )]
    List {
        #[command(flatten)]
        which: Which,
    },
    /// Print the text of one
    #[command(after_help = "Example:\n  newsreel cache queue show 3 > post.txt")]
    Show {
        /// Its number in the list
        number: u64,
        #[command(flatten)]
        which: Which,
    },
    /// Put another text in the place of one; it is sent to all servers that do not have it
    #[command(
        after_help = "A post that is being sent at this moment is not edited. \
                      A file has header fields, an empty line and the text, with LF or CRLF line ends.\n\n\
                      Example:\n  newsreel cache queue show 3 > post.txt\n  newsreel cache queue edit 3 post.txt"
    )]
    Edit {
        /// Its number in the list
        number: u64,
        /// The new text; `-` is the standard input
        file: PathBuf,
        #[command(flatten)]
        which: Which,
    },
    /// Try to send some now, or all, also where they were refused
    #[command(
        after_help = "A server is connected to at once, though it may be left alone for a while as it could not be reached; \
                      the list says what came of it. A try by hand that is in vain makes nobody wait longer.\n\n\
                      Examples:\n  newsreel cache queue retry\n  newsreel cache queue retry 3 4"
    )]
    Retry {
        /// Numbers in the list; none: all
        numbers: Vec<u64>,
        #[command(flatten)]
        which: Which,
    },
    /// Forget some
    #[command(
        after_help = "Examples:\n  newsreel cache queue drop --dry-run 3\n  newsreel cache queue drop 3"
    )]
    Drop {
        /// Numbers in the list
        #[arg(required = true)]
        numbers: Vec<u64>,
        /// Only say what would be forgotten
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        which: Which,
    },
}

fn ask(which: &Which, action: QueueAction) -> Result<Value> {
    which.ask(CacheRequest::Queue { action })
}

const COLUMNS: &[(&str, &str)] = &[
    ("NUMBER", "number"),
    ("TAKEN", "taken"),
    ("SERVER", "server"),
    ("STANDING", "standing"),
    ("TRIES", "tries"),
    ("GROUPS", "groups"),
    ("MESSAGE-ID", "id"),
    ("SAID", "said"),
];

/// A row for each server of each post.
fn rows(posts: &Value) -> Vec<Value> {
    let mut rows = Vec::new();
    for post in posts.as_array().into_iter().flatten() {
        for server in post["servers"].as_array().into_iter().flatten() {
            let standing = match server["standing"].as_str() {
                Some("waits") => format!("waits until {}", date(&server["next_try"])),
                Some(other) => other.to_owned(),
                None => String::new(),
            };
            rows.push(json!({
                "number": post["number"],
                "taken": date(&post["taken"]),
                "server": output::foreign(&cell(&server["server"])),
                "standing": standing,
                "tries": server["tries"],
                "groups": output::foreign(&cell(&post["groups"])),
                "id": output::foreign(&cell(&post["id"])),
                "said": output::or_dash(output::foreign(&cell(&server["said"]))),
            }));
        }
    }
    rows
}

fn listed(posts: &Value) -> String {
    match rows(posts).as_slice() {
        [] => "no posts wait\n".to_owned(),
        rows => output::table(COLUMNS, rows),
    }
}

pub(super) fn run(verb: &Verb) -> Result<()> {
    match verb {
        Verb::List { which } => {
            let found = ask(which, QueueAction::List)?;
            match which.json {
                true => output::json(&found),
                false => output::said(&listed(&found["posts"])),
            }
        }
        Verb::Show { number, which } => show(*number, which),
        Verb::Edit {
            number,
            file,
            which,
        } => {
            let wire = posting::wire_of(&input::read(file, posting::ARTICLE_OCTETS_MAX)?.octets);
            let article = STANDARD.encode(wire);
            let number = *number;
            let edited = ask(which, QueueAction::Edit { number, article })?;
            match which.json {
                true => output::json(&edited),
                false => output::text(&edited_said(number, edited["waits"] == true)),
            }
        }
        Verb::Retry { numbers, which } => {
            let numbers = numbers.clone();
            let retried = ask(which, QueueAction::Retry { numbers })?;
            match which.json {
                true => output::json(&retried),
                false => output::text(&retried_said(&retried)),
            }
        }
        Verb::Drop {
            numbers,
            dry_run,
            which,
        } => {
            let (numbers, dry_run) = (numbers.clone(), *dry_run);
            let dropped = ask(which, QueueAction::Drop { numbers, dry_run })?;
            if which.json {
                return output::json(&dropped);
            }
            let some = dropped["dropped"].as_array().map_or(0, Vec::len);
            let (one, several) = match dry_run {
                true => ("would be", "would be"),
                false => ("is", "are"),
            };
            output::text(&format!("{} dropped\n", posts(some, one, several)))?;
            output::said(&listed(&dropped["dropped"]))
        }
    }
}

/// What is tried and what is not, as it is being sent or edited.
fn retried_said(retried: &Value) -> String {
    let count = |what: &str| retried[what].as_array().map_or(0, Vec::len);
    let mut said = format!("{} tried now\n", posts(count("retried"), "is", "are"));
    let in_hand = count("in_hand");
    if in_hand > 0 {
        let verb = ("is being sent or edited", "are being sent or edited");
        let line = format!("{} at this moment\n", posts(in_hand, verb.0, verb.1));
        said += &line;
    }
    said
}

fn edited_said(number: u64, waits: bool) -> String {
    match waits {
        true => format!(
            "post {number} has another text and is sent as soon as its servers can be asked\n"
        ),
        false => format!(
            "all servers of its groups have post {number} already, as it was before: nothing waits any more\n"
        ),
    }
}

/// So many posts, and what they are.
fn posts(number: usize, one: &str, several: &str) -> String {
    let verb = if number == 1 { one } else { several };
    format!("{} {verb}", output::count(number as u64, "post"))
}

fn show(number: u64, which: &Which) -> Result<()> {
    let mut shown = ask(which, QueueAction::Show { number })?;
    let article = shown["article"].as_str().unwrap_or_default();
    let article = STANDARD.decode(article).context("what the server said")?;
    let mut text = Vec::with_capacity(article.len());
    wire_to_lf(&article, &mut text);
    if which.json {
        shown["article"] = String::from_utf8_lossy(&text).into();
        return output::json(&shown);
    }
    output::octets_out(&text)
}
