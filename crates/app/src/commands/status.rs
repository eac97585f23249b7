//! `newsreel status`: how a server or spool is.

use anyhow::Result;
use serde_json::{Value, json};

use crate::access::{self, LookArgs};
use crate::control::request::Request;
use crate::output::{self, cell, duration, octets};

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
    output::said(&said(&status, args.spool.read_only))
}

fn said(status: &Value, read_only: bool) -> String {
    let mut facts = server(status, read_only);
    facts.extend(views(status));
    facts.push(("memory", octets(&status["memory_octets"])));
    facts.push(("counted", counted(&status["counters"])));
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
    }
    let mode = format!("{}, {}", cell(&status["mode"]), cell(&status["durability"]));
    facts.push(("version", cell(&status["version"])));
    facts.push(("mode", mode));
    facts.push(("paused", cell(&status["paused"])));
    facts.push(("clock", cell(&status["clock"])));
    facts
}

fn views(status: &Value) -> Facts {
    let (log, history, overview) = (&status["log"], &status["history"], &status["overview"]);
    let log = format!(
        "sequence {}, checkpoint {}, {} segments, {}",
        status["sequence"],
        status["checkpoint"],
        log["segments"],
        octets(&log["octets"])
    );
    let view = |view: &Value, files: &str| {
        format!(
            "{} recent, {} sealed in {} {files}, {} memory, {} disk",
            view["recent"],
            view["sealed"],
            view[files],
            octets(&view["memory_octets"]),
            octets(&view["disk_octets"])
        )
    };
    vec![
        ("groups", cell(&status["groups"])),
        ("log", log),
        ("history", view(history, "buckets")),
        ("overview", view(overview, "packs")),
        ("damaged", damaged(&status["damaged"])),
    ]
}

fn damaged(files: &Value) -> String {
    let files: Vec<String> = files.as_array().into_iter().flatten().map(cell).collect();
    if files.is_empty() {
        return "-".to_owned();
    }
    files.join("; ")
}

fn counted(counters: &Value) -> String {
    let counters = counters.as_object().into_iter().flatten();
    let counted: Vec<String> = counters
        .filter(|(_, value)| value.as_u64() != Some(0))
        .map(|(name, value)| format!("{} {value}", name.replace('_', " ")))
        .collect();
    if counted.is_empty() {
        "-".to_owned()
    } else {
        counted.join(", ")
    }
}

fn connections(connections: &Value) -> String {
    format!(
        "{} open, {} admitted, {} refused",
        connections["open"], connections["admitted"], connections["refused"]
    )
}
