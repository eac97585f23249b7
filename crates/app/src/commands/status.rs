//! `newsreel status`: how a server or spool is.

use anyhow::Result;
use serde_json::{Value, json};

use crate::access::{self, LookArgs};
use crate::control::request::Request;
use crate::output::{self, cell, count, date, duration, octets};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  newsreel status\n  newsreel status --spool /var/spool/newsreel --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    spool: LookArgs,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let status = access::ask(&args.spool, Request::Status)?;
    if args.spool.json {
        return output::json(&status);
    }
    if status["cache"].is_object() {
        return output::said(&super::cache::stats::said(&status));
    }
    output::said(&said(&status, args.spool.read_only))
}

fn said(status: &Value, read_only: bool) -> String {
    let mut facts = server(status, read_only);
    facts.extend(views(status));
    facts.push(("memory", octets(&status["memory_octets"])));
    facts.push(("counted", counted(&status["counters"])));
    for filter in status["filters"].as_array().into_iter().flatten() {
        facts.push(("filter", filtered(filter)));
    }
    let sessions = &status["server"]["sessions"];
    for (name, kind) in SESSIONS {
        if let Some(counts) = sessions[kind]
            .as_object()
            .filter(|counts| !counts.is_empty())
        {
            facts.push((name, counted(&json!(counts))));
        }
    }
    let table = super::store::table(&status["buffers"]);
    format!("{}\n{table}", output::facts(&facts))
}

/// What sessions count, by kind.
const SESSIONS: [(&str, &str); 5] = [
    ("commands", "commands"),
    ("replies", "replies"),
    ("refused", "articles_refused"),
    ("put off", "articles_put_off"),
    ("ended", "ended"),
];

type Facts = Vec<(&'static str, String)>;

fn server(status: &Value, read_only: bool) -> Facts {
    let server = &status["server"];
    let mut facts = vec![("spool", cell(&status["spool"]))];
    if read_only {
        facts.push(("server", "not asked (--read-only)".to_owned()));
    } else if server.is_null() {
        facts.push(("server", "none is running".to_owned()));
    } else {
        let listening = server["listening"]
            .as_array()
            .into_iter()
            .flatten()
            .map(cell);
        let up = duration(&status["uptime_s"]);
        facts.push(("server", format!("pid {}, up {up}", cell(&server["pid"]))));
        facts.push(("listening", listening.collect::<Vec<_>>().join(" ")));
        facts.push(("connections", connections(&server["connections"])));
        for pull in super::pull::rows(server) {
            let (name, state) = (cell(&pull["name"]), cell(&pull["state"]));
            let said = format!("{name}: {} accepted, {state}", cell(&pull["accepted"]));
            facts.push(("pull", said));
        }
        let lost = &server["log_lines_lost"];
        if lost.as_u64().is_some_and(|lost| lost > 0) {
            facts.push(("log lines lost", cell(lost)));
        }
    }
    let mode = format!("{}, {}", cell(&status["mode"]), cell(&status["durability"]));
    facts.push(("version", cell(&status["version"])));
    facts.push(("mode", mode));
    let paused = match &status["paused"] {
        Value::Null if server.is_null() => "no".to_owned(),
        Value::Null => "no, articles are taken".to_owned(),
        why => cell(why),
    };
    facts.push(("paused", paused));
    for held in status["put_off"].as_array().into_iter().flatten() {
        let articles = some(&held["articles"], "article");
        let (set, why) = (cell(&held["set"]), cell(&held["why"]));
        facts.push(("put off", format!("{articles} of set {set}: {why}")));
    }
    facts.push(("clock", cell(&status["clock"])));
    facts.push(("waiting", waiting(status)));
    facts
}

/// What waits for somebody: to be sent, and to be approved.
fn waiting(status: &Value) -> String {
    let messages = some(&status["control_waiting"], "control message");
    let waiting = match status["mails_waiting"].as_u64() {
        Some(mails) => format!("{}, {messages}", count(mails, "mail")),
        None => format!("mails that cannot be counted, {messages}"),
    };
    match status["mails_refused"].as_u64() {
        None | Some(0) => waiting,
        Some(mails) => format!("{waiting}; refused for good: {}", count(mails, "mail")),
    }
}

fn views(status: &Value) -> Facts {
    let (log, history, overview) = (&status["log"], &status["history"], &status["overview"]);
    let log = format!(
        "sequence {}, checkpoint {}, {}, {} on disk",
        status["sequence"],
        status["checkpoint"],
        some(&log["segments"], "segment"),
        octets(&log["octets"])
    );
    let view = |view: &Value, file: &str| {
        format!(
            "{} recent, {} sealed in {}, {} in memory, {} on disk",
            view["recent"],
            view["sealed"],
            some(&view[format!("{file}s")], file),
            octets(&view["memory_octets"]),
            octets(&view["disk_octets"])
        )
    };
    vec![
        ("groups", cell(&status["groups"])),
        ("log", log),
        ("history", view(history, "bucket")),
        ("overview", view(overview, "pack")),
        ("damaged", damaged(&status["damaged"])),
        ("scrub", scrub(&status["scrub"])),
        ("expiry", expiry(&status["expiry"])),
    ]
}

fn some(number: &Value, what: &str) -> String {
    count(number.as_u64().unwrap_or(0), what)
}

fn damaged(files: &Value) -> String {
    let files: Vec<String> = files.as_array().into_iter().flatten().map(cell).collect();
    if files.is_empty() {
        return "-".to_owned();
    }
    files.join("; ")
}

/// The scrub in the background: what it is at, what the last pass found.
fn scrub(scrub: &Value) -> String {
    let now = match (&scrub["octets_per_s"], &scrub["began"]) {
        (Value::Number(rate), _) if rate.as_u64() == Some(0) => "off".to_owned(),
        (_, Value::Null) => "rests".to_owned(),
        (_, began) => format!(
            "under way since {}, {} read",
            date(began),
            octets(&scrub["octets"])
        ),
    };
    let last = match &scrub["last_ended"] {
        Value::Null => "no whole pass yet".to_owned(),
        ended => format!(
            "its last whole pass ended {}, {} sound",
            date(ended),
            some(&scrub["last_articles"], "article")
        ),
    };
    let unreadable = match scrub["last_unreadable"].as_u64() {
        None | Some(0) => String::new(),
        Some(buffers) => format!(", {} not read to the end", count(buffers, "buffer")),
    };
    let some_places = |key: &str| match scrub[key].as_u64() {
        None | Some(0) => None,
        Some(places) => Some(format!(
            "{}{}",
            if places < newsreel_engine::DAMAGED_KNOWN_MAX as u64 {
                ""
            } else {
                "at least "
            },
            count(places, "DAMAGED place")
        )),
    };
    let lists = "(`newsreel store scrub` lists them)";
    let damaged = match (some_places("damaged"), some_places("met_by_reads")) {
        (None, None) => "no damage known".to_owned(),
        (Some(places), None) => format!("{places} {lists}"),
        (None, Some(met)) => format!("reads met {met} {lists}"),
        (Some(places), Some(met)) => format!("{places}, and reads met {met} since {lists}"),
    };
    format!("{now}; {last}{unreadable}; {damaged}")
}

/// Expiry in the background: what it is at, what the last pass let go.
fn expiry(expiry: &Value) -> String {
    let number = |key: &str| expiry[key].as_u64().unwrap_or(0);
    if number("rules") == 0 {
        return "no rules".to_owned();
    }
    let now = match (&expiry["began"], number("rows_per_s")) {
        _ if !expiry["held"].is_null() => cell(&expiry["held"]),
        (_, 0) => "off".to_owned(),
        (Value::Null, _) => "rests".to_owned(),
        (began, _) => format!(
            "under way since {}, {} of {} done",
            date(began),
            expiry["groups"][0],
            some(&expiry["groups"][1], "group")
        ),
    };
    let last = match &expiry["last_ended"] {
        Value::Null => "no whole pass yet".to_owned(),
        ended => format!(
            "last pass ended {}, {} went",
            date(ended),
            some(&expiry["last_articles"], "article")
        ),
    };
    format!("{}; {now}; {last}", some(&expiry["rules"], "rule"))
}

/// What a filter has said.
fn filtered(filter: &Value) -> String {
    let mut counts = filter.as_object().cloned().unwrap_or_default();
    let name = counts
        .remove("name")
        .as_ref()
        .map_or_else(String::new, cell);
    format!("{name}: {}", counted(&json!(counts)))
}

fn counted(counters: &Value) -> String {
    let counters = counters.as_object().into_iter().flatten();
    let counted: Vec<String> = counters
        .filter(|(_, value)| value.as_u64() != Some(0))
        .map(|(name, value)| with_unit(name, value))
        .collect();
    if counted.is_empty() {
        "-".to_owned()
    } else {
        counted.join(", ")
    }
}

/// A counter with its name and unit.
fn with_unit(name: &str, value: &Value) -> String {
    if let Some(name) = name.strip_suffix("_us") {
        return format!("{} time {value} us", name.replace('_', " "));
    }
    let said = match name.ends_with("octets") {
        true => octets(value),
        false => value.to_string(),
    };
    format!("{} {said}", name.replace('_', " "))
}

pub(super) fn connections(connections: &Value) -> String {
    format!(
        "{} open, {} admitted, {} refused",
        connections["open"], connections["admitted"], connections["refused"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody took any where no server ran.
    #[test]
    fn that_articles_are_taken_is_said_of_a_server_alone() {
        let paused = |status: &Value| {
            let facts = server(status, false);
            let fact = facts.into_iter().find(|(name, _)| *name == "paused");
            fact.unwrap().1
        };
        let running = json!({"server": {"pid": 1}, "paused": null});
        assert_eq!(paused(&running), "no, articles are taken");
        assert_eq!(paused(&json!({"server": null, "paused": null})), "no");
        assert_eq!(paused(&json!({"server": null, "paused": "why"})), "why");
    }

    #[test]
    fn one_is_no_plural_and_figures_have_units() {
        let view = |files: &str| json!({"recent": 1, "sealed": 2, files: 1, "memory_octets": 5, "disk_octets": 20_480});
        let status = json!({
            "sequence": 5, "checkpoint": 1, "log": {"segments": 1, "octets": 1_048_576},
            "history": view("buckets"), "overview": view("packs"),
        });
        let facts: Vec<String> = views(&status).into_iter().map(|(_, said)| said).collect();
        assert_eq!(
            facts[1],
            "sequence 5, checkpoint 1, 1 segment, 1024 KiB on disk"
        );
        assert_eq!(
            facts[2],
            "1 recent, 2 sealed in 1 bucket, 5 B in memory, 20 KiB on disk"
        );
        assert_eq!(
            facts[3],
            "1 recent, 2 sealed in 1 pack, 5 B in memory, 20 KiB on disk"
        );
        let counters =
            json!({"accepted": 1, "accepted_octets": 20_480, "commit_us": 277, "failed": 0});
        assert_eq!(
            counted(&counters),
            "accepted 1, accepted octets 20 KiB, commit time 277 us"
        );
    }
}
