//! `newsreel store resize`: buffers made as large as the configuration says; one that is larger becomes smaller when it comes around.
//!
//! What is in them stays where it is.  Looked at first, all of them: nothing is done while one of them cannot be.  A server that
//! runs does it itself.

use std::cmp::Ordering;
use std::sync::Arc;

use anyhow::{Result, bail};
use newsreel_engine::Engine;
use newsreel_host::{Clock, Disk, RealClock, RealDisk};
use newsreel_store::PlannedBuffer;
use serde_json::{Value, json};

use crate::access::{self, SpoolArgs};
use crate::control::client::Client;
use crate::control::request::Request;
use crate::output;

/// The columns of its table.
const COLUMNS: &[(&str, &str)] = &[
    ("BUFFER", "name"),
    ("SET", "set"),
    ("OCTETS", "octets_there"),
    ("WANTED", "octets"),
    ("FREE", "free_octets"),
    ("WHAT", "what"),
    ("FILE", "path"),
];

pub(super) fn run(names: &[String], dry_run: bool, spool: &SpoolArgs) -> Result<()> {
    let config = access::config_of(spool)?;
    let dir = config.server.spool.clone();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let engine = config.engine_config();
    let planned = Engine::planned_buffers(&engine, &disk)?;
    let meant = meant(&planned, names)?;
    let changes: Vec<String> = meant
        .iter()
        .filter(|buffer| is_new(buffer))
        .map(|it| it.name.clone())
        .collect();
    if !dry_run && !changes.is_empty() {
        if Client::connect(&dir)?.is_some() {
            beside_the_server(&meant, &changes, spool)?;
        } else {
            access::no_foreign_root(&disk, &dir)?;
            let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
            Engine::resize_buffers(&engine, &disk, &clock, &changes, &mut access::making())?;
            access::note_sizes(disk.as_ref(), &config, &changes)?;
        }
    }
    let rows: Vec<Value> = meant.iter().map(|buffer| row(buffer, dry_run)).collect();
    if spool.json {
        output::json(&rows.into())
    } else if rows.is_empty() {
        output::text("every buffer has the size that the configuration says\n")
    } else {
        output::text(&output::table(COLUMNS, &rows))
    }
}

/// Whether it has another size, and is not on its way to this one.
fn is_new(buffer: &PlannedBuffer) -> bool {
    buffer.becomes.or(buffer.octets_there) != Some(buffer.octets)
}

fn row(buffer: &PlannedBuffer, dry_run: bool) -> Value {
    let there = buffer.octets_there.unwrap_or_default();
    let what = match (buffer.octets.cmp(&there), is_new(buffer), dry_run) {
        (Ordering::Equal, false, _) => "has it".to_owned(),
        (Ordering::Equal, true, true) => "would stay as large as it is".to_owned(),
        (Ordering::Equal, true, false) => "stays as large as it is".to_owned(),
        (Ordering::Greater, _, true) => "would be made larger".to_owned(),
        (Ordering::Greater, _, false) => "made larger".to_owned(),
        (Ordering::Less, is_new, _) => {
            let becomes = match is_new && dry_run {
                true => "would become",
                false => "becomes",
            };
            let beyond = output::octets(&buffer.beyond_octets.into());
            format!(
                "{becomes} smaller when it has come around; up to {beyond} of articles lie beyond"
            )
        }
    };
    json!({"name": buffer.name, "set": buffer.set, "octets_there": buffer.octets_there, "octets": buffer.octets,
        "beyond_octets": buffer.beyond_octets, "free_octets": buffer.free_octets, "sparse": buffer.is_sparse,
        "path": buffer.path, "what": what})
}

/// Has the server do it that runs, one after the other.
fn beside_the_server(
    meant: &[&PlannedBuffer],
    changes: &[String],
    spool: &SpoolArgs,
) -> Result<()> {
    let changes = |buffer: &&&PlannedBuffer| changes.contains(&buffer.name);
    for buffer in meant.iter().filter(changes) {
        let request = Request::StoreResize {
            buffer: buffer.name.clone(),
            octets: buffer.octets,
        };
        access::change(spool, request)?;
    }
    Ok(())
}

/// The buffers that are named, or those of another size than they should have; all of them can have it.
fn meant<'p>(planned: &'p [PlannedBuffer], names: &[String]) -> Result<Vec<&'p PlannedBuffer>> {
    for name in names {
        if !planned.iter().any(|buffer| buffer.name == *name) {
            let all: Vec<&str> = planned.iter().map(|it| it.name.as_str()).collect();
            bail!(
                "the configuration has no buffer {name:?} in a set; there are {}",
                all.join(", ")
            );
        }
    }
    let is_meant = |buffer: &&PlannedBuffer| match names.is_empty() {
        true => buffer.octets_there.is_some() && is_new(buffer),
        false => names.contains(&buffer.name),
    };
    let meant: Vec<&PlannedBuffer> = planned.iter().filter(is_meant).collect();
    for buffer in &meant {
        let (name, path) = (&buffer.name, &buffer.path);
        if buffer.octets_there.is_none() {
            bail!("buffer {name} is not there, or its header is damaged: look at {path}");
        }
    }
    Ok(meant)
}
