//! `newsreel control`: what newgroup, rmgroup and checkgroups messages ask for, and doing it; the site's keys for cancels, and
//! the keys of those who sign.

mod import;
mod keys;

use std::path::PathBuf;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use newsreel_host::process::shell_word;
use serde_json::{Value, json};

use crate::access::{self, LookArgs, SpoolArgs};
use crate::control::request::Request;
use crate::{input, output, posting};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// List the messages about groups that still ask for something
    #[command(
        after_help = "Of a message that asks for much the first changes are listed; `newsreel control show` says all.\n\n\
                      Example:\n  newsreel control list"
    )]
    List {
        #[command(flatten)]
        spool: LookArgs,
    },
    /// Show what one message asks for, and what `control.rules` say to it
    #[command(
        after_help = "Examples:\n  newsreel control show '<1@host.example>'\n  newsreel control show control.newgroup:12"
    )]
    Show {
        /// `<MESSAGE-ID>`, `GROUP:NUMBER` or `TOKEN`
        message: String,
        #[command(flatten)]
        spool: LookArgs,
    },
    /// Say what would come of a message in a file if it came now; nothing is changed
    #[command(
        after_help = "A file has header fields, an empty line and the text, with LF or CRLF line ends.\n\n\
                      Example:\n  newsreel control dry-run newgroup.txt"
    )]
    DryRun {
        /// The message; `-` is the standard input
        file: PathBuf,
        #[command(flatten)]
        spool: LookArgs,
    },
    /// Make rules from INN's control.ctl, or from the policies of hierarchies that it is made from
    Import(import::Args),
    /// Print the Cancel-Key by which the site takes an article back that was posted here
    #[command(
        after_help = "Whoever has it can cancel that article everywhere.\n\nExample:\n  newsreel control key '<1@host.example>'"
    )]
    Key {
        /// `<MESSAGE-ID>`
        id: String,
        #[command(flatten)]
        spool: LookArgs,
    },
    /// Keep the keys that `verify-KEY` of `control.rules` name
    #[command(subcommand)]
    Keys(keys::Verb),
    /// Do what one message asks for, whatever the rules say
    #[command(
        after_help = "The message itself may be forged: its From proves nothing.\n\nExamples:\n  \
                      newsreel control approve '<1@host.example>'\n  newsreel control approve --dry-run control.newgroup:12"
    )]
    Approve {
        /// `<MESSAGE-ID>`, `GROUP:NUMBER` or `TOKEN`
        message: String,
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Forget which messages about a hierarchy were heeded, so that what is older counts again
    #[command(
        after_help = "For a hierarchy whose sender used a serial number or a Date that is too large: what comes behind it waits as older. \
                      No group is changed.\n\nExamples:\n  newsreel control forget --dry-run local\n  newsreel control forget local"
    )]
    Forget {
        /// The hierarchy, with all that is in it, or one group
        hierarchy: String,
        /// Only say what would be forgotten
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        spool: SpoolArgs,
    },
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    match verb {
        Verb::Keys(verb) => keys::run(verb),
        Verb::Import(args) => import::run(args),
        Verb::DryRun { file, spool } => {
            let wire = posting::wire_of(&input::read(file, posting::ARTICLE_OCTETS_MAX)?.octets);
            let article = STANDARD.encode(wire);
            told(spool, Request::ControlTry { article })
        }
        Verb::Key { id, spool } => {
            let made = access::ask(spool, Request::ControlKey { id: id.clone() })?;
            match spool.json {
                true => output::json(&made),
                false => output::text(&format!(
                    "Cancel-Key: {}\n",
                    output::cell(&made["cancel_key"])
                )),
            }
        }
        Verb::List { spool } => list(spool),
        Verb::Show { message, spool } => {
            let which = message.clone();
            told(spool, Request::ControlShow { which })
        }
        Verb::Approve {
            message,
            dry_run,
            spool,
        } => approve(message, *dry_run, spool),
        Verb::Forget {
            hierarchy,
            dry_run,
            spool,
        } => forget(hierarchy, *dry_run, spool),
    }
}

/// Asks for one message and says what it is.
fn told(spool: &LookArgs, request: Request) -> Result<()> {
    let found = access::ask(spool, request)?;
    match spool.json {
        true => output::json(&found),
        false => output::text(&shown(&found)),
    }
}

fn list(spool: &LookArgs) -> Result<()> {
    let found = access::ask(spool, Request::ControlList)?;
    if spool.json {
        return output::json(&found);
    }
    let messages = found.as_array().map(Vec::as_slice).unwrap_or_default();
    if messages.is_empty() {
        return output::text("no message about groups asks for anything\n");
    }
    let rows: Vec<Value> = messages
        .iter()
        .map(|message| {
            json!({
                "id": message["message_id"],
                "came": came(message),
                "from": message["sender"],
                "asks": in_words(message),
            })
        })
        .collect();
    let columns = [
        ("message-id", "id"),
        ("came", "came"),
        ("from", "from"),
        ("asks for", "asks"),
    ];
    output::text(&output::table(&columns, &rows))
}

/// When a message came, as far as it can be told.
fn came(message: &Value) -> String {
    match message["arrival"].as_u64() {
        None | Some(0) => "-".to_owned(),
        Some(_) => output::date(&message["arrival"]),
    }
}

/// What a message asks for, in a few words.
fn in_words(message: &Value) -> String {
    let lines = lines(message);
    match lines.as_slice() {
        [one] => one.clone(),
        [first, rest @ ..] => {
            let more = message["more"].as_u64().unwrap_or_default() + rest.len() as u64;
            let or = match more < newsreel_engine::ASKS_COUNTED_MAX as u64 {
                true => "",
                false => " or",
            };
            format!("{first}, and {more}{or} more")
        }
        [] => output::cell(&message["problem"]),
    }
}

/// What a message asks for, a line each.
fn lines(message: &Value) -> Vec<String> {
    let asks = message["asks"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let line = |ask: &Value| {
        let name = output::cell(&ask["name"]);
        let text = |key: &str| ask[key].as_str().filter(|text| !text.is_empty());
        let status = text("status").map(|status| match status {
            "m" => " moderated",
            _ => " unmoderated",
        });
        let description =
            text("description").map(|text| format!(" \"{}\"", output::printable(text)));
        let rest = format!(
            "{}{}",
            status.unwrap_or_default(),
            description.unwrap_or_default()
        );
        match ask["change"].as_str() {
            Some("make") => format!("make {name}{rest}"),
            Some("set") => format!("change {name}{rest}"),
            _ => format!("remove {name}"),
        }
    };
    asks.iter().map(line).collect()
}

fn shown(message: &Value) -> String {
    let asks = message["asks"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let ruled = lines(message).into_iter().zip(asks);
    let mut facts = vec![
        ("message-id", output::cell(&message["message_id"])),
        ("came", output::date(&message["arrival"])),
        ("from", output::cell(&message["sender"])),
        ("control", output::cell(&message["control"])),
    ];
    if !message["signature"].is_null() {
        facts.push(("signature", output::cell(&message["signature"])));
    }
    let mut text = output::facts(&facts);
    for (line, ask) in ruled {
        let (rule, becomes) = (output::cell(&ask["rule"]), output::cell(&ask["becomes"]));
        let becomes = match rule == becomes {
            true => String::new(),
            false => format!(", so {becomes}"),
        };
        let late = late(ask);
        text.push_str(&format!("{line} (by the rules: {rule}{becomes}{late})\n"));
    }
    if asks.is_empty() {
        let why = message["problem"]
            .as_str()
            .unwrap_or("all is here as it wants it");
        text.push_str(&format!("it asks for nothing: {why}\n"));
    }
    text + &newer(message)
}

/// What is to be said of something that is asked for of a group of which a newer message was heeded.
fn late(ask: &Value) -> &'static str {
    match ask["late"].as_bool() {
        Some(true) => "; a newer message about it was heeded",
        _ => "",
    }
}

/// Which newer messages want it otherwise, a line each.
fn newer(message: &Value) -> String {
    let newer = message["newer"].as_array();
    let newer = newer.map(Vec::as_slice).unwrap_or_default();
    let line = |id: &Value| {
        let id = shell_word(&output::cell(id));
        format!("a newer message wants it otherwise: newsreel control show {id}\n")
    };
    newer.iter().map(line).collect()
}

fn approve(message: &str, dry_run: bool, spool: &SpoolArgs) -> Result<()> {
    let which = message.to_owned();
    let done = access::change(spool, Request::ControlApprove { which, dry_run })?;
    if spool.json {
        return output::json(&done);
    }
    let lines = lines(&done);
    if lines.is_empty() {
        return output::text("nothing was to be done: all is here as it wants it\n");
    }
    let said = if dry_run { "would" } else { "did" };
    let asks = done["asks"].as_array().map(Vec::as_slice);
    let lines: Vec<String> = lines
        .iter()
        .zip(asks.unwrap_or_default())
        .map(|(line, ask)| format!("{said}: {line}{}\n", late(ask)))
        .collect();
    output::text(&(lines.concat() + &newer(&done)))
}

fn forget(hierarchy: &str, dry_run: bool, spool: &SpoolArgs) -> Result<()> {
    let request = Request::ControlForget {
        hierarchy: hierarchy.to_owned(),
        dry_run,
    };
    let forgotten = access::change(spool, request)?;
    if spool.json {
        return output::json(&forgotten);
    }
    let all = |what: &str| {
        let all = forgotten[what].as_array();
        all.map(Vec::as_slice).unwrap_or_default()
    };
    let said = if dry_run { "would forget" } else { "forgot" };
    let group = |name: &Value| format!("{said}: a newgroup or rmgroup of {}\n", output::cell(name));
    let list = |list: &Value| {
        let names = list["hierarchies"].as_array().map(Vec::as_slice);
        let names: Vec<String> = names.unwrap_or_default().iter().map(output::cell).collect();
        let number = match list["serial"].as_u64() {
            Some(serial) => format!("number {serial}, "),
            None => String::new(),
        };
        let stays = list["stays"].as_array().map(Vec::as_slice);
        let stays: Vec<String> = stays.unwrap_or_default().iter().map(output::cell).collect();
        let stays = match stays.is_empty() {
            true => String::new(),
            false => format!("; what it says of {} stays", stays.join(" ")),
        };
        format!(
            "{said}: a checkgroups of {} by {}, {number}{}{stays}\n",
            names.join(" "),
            output::cell(&list["sender"]),
            output::date(&list["date"])
        )
    };
    let groups = all("groups").iter().map(group);
    let lines: Vec<String> = groups.chain(all("lists").iter().map(list)).collect();
    match lines.is_empty() {
        true => output::text("nothing is remembered of it\n"),
        false => output::text(&lines.concat()),
    }
}
