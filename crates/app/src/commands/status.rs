//! `newsreel status`: how a server or spool is.

use anyhow::Result;
use serde_json::Value;

use crate::access::{self, SpoolArgs};
use crate::control::request::Request;
use crate::output::{self, cell, duration, octets};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    spool: SpoolArgs,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let status = access::ask(&args.spool, Request::Status)?;
    if args.spool.json {
        return output::json(&status);
    }
    output::text(&said(&status))
}

fn said(status: &Value) -> String {
    let server = &status["server"];
    let (log, history, overview) = (&status["log"], &status["history"], &status["overview"]);
    let mut facts = vec![("spool", cell(&status["spool"]))];
    if server.is_null() {
        facts.push(("server", "none is running".to_owned()));
    } else {
        let listening: Vec<String> = server["listening"]
            .as_array()
            .into_iter()
            .flatten()
            .map(cell)
            .collect();
        let up = duration(&status["uptime_s"]);
        facts.push(("server", format!("pid {}, up {up}", cell(&server["pid"]))));
        facts.push(("listening", listening.join(" ")));
        facts.push(("connections", connections(&server["connections"])));
    }
    facts.extend([
        ("version", cell(&status["version"])),
        (
            "mode",
            format!("{}, {}", cell(&status["mode"]), cell(&status["durability"])),
        ),
        ("paused", cell(&status["paused"])),
        ("groups", cell(&status["groups"])),
        (
            "log",
            format!(
                "sequence {}, checkpoint {}, {} segments, {}",
                status["sequence"],
                status["checkpoint"],
                log["segments"],
                octets(&log["octets"])
            ),
        ),
        (
            "history",
            format!(
                "{} recent, {} sealed in {} buckets, {} memory, {} disk",
                history["recent"],
                history["sealed"],
                history["buckets"],
                octets(&history["memory_octets"]),
                octets(&history["disk_octets"])
            ),
        ),
        (
            "overview",
            format!(
                "{} recent, {} sealed in {} packs, {} memory, {} disk",
                overview["recent"],
                overview["sealed"],
                overview["packs"],
                octets(&overview["memory_octets"]),
                octets(&overview["disk_octets"])
            ),
        ),
        ("memory", octets(&status["memory_octets"])),
    ]);
    let counters = status["counters"].as_object().into_iter().flatten();
    let counted: Vec<String> = counters
        .filter(|(_, value)| value.as_u64() != Some(0))
        .map(|(name, value)| format!("{} {value}", name.replace('_', " ")))
        .collect();
    facts.push((
        "counted",
        if counted.is_empty() {
            "-".to_owned()
        } else {
            counted.join(", ")
        },
    ));
    let buffers = status["buffers"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let table = output::table(super::store::BUFFER_COLUMNS, buffers);
    format!("{}\n{table}", output::facts(&facts))
}

fn connections(connections: &Value) -> String {
    format!(
        "{} open, {} admitted, {} refused",
        connections["open"], connections["admitted"], connections["refused"]
    )
}
