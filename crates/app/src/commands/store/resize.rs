//! `newsreel store resize`: buffers made as large as the configuration says; one that is larger becomes smaller when it comes around.
//!
//! What is in them stays where it is.  Looked at first, all of them: nothing is done while one of them cannot be.  A server that
//! runs does it itself.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use newsreel_engine::Engine;
use newsreel_host::{Clock, Disk, RealClock, RealDisk};
use newsreel_store::PlannedBuffer;
use newsreel_wire::{BufferId, Position};
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
    let is_served = Client::connect(&dir)?.is_some();
    let ends = match is_served {
        true => ends_beside_the_server(spool)?,
        false => Engine::buffer_ends(&engine, &disk)?,
    };
    let planned = Engine::planned_buffers(&engine, &disk, &ends)?;
    let meant = meant(&planned, names)?;
    let changed = meant.iter().filter(|buffer| is_new(buffer));
    let changes: Vec<String> = changed.clone().map(|it| it.name.clone()).collect();
    if is_served && !changes.is_empty() {
        let buffers = changed.map(|it| (it.name.clone(), it.octets)).collect();
        access::change(spool, Request::StoreResize { buffers, dry_run })?;
    } else if !changes.is_empty() {
        access::no_foreign_root(&disk, &dir)?;
        if dry_run {
            let refusals = Engine::try_resize_offline(&engine, &disk, &changes)?;
            if let Some((_, why)) = refusals.into_iter().next() {
                return Err(why.into());
            }
        } else {
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

/// Where the buffers of the server stand that runs.
fn ends_beside_the_server(spool: &SpoolArgs) -> Result<BTreeMap<BufferId, Position>> {
    let buffers = access::change(spool, Request::Store)?;
    let end = |buffer: &Value| {
        let id = u16::try_from(buffer["id"].as_u64()?).ok()?;
        let cycle = u32::try_from(buffer["cycle"].as_u64()?).ok()?;
        let end = Position::checked(cycle, buffer["free_offset"].as_u64()?)?;
        Some((BufferId(id), end))
    };
    Ok(buffers
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(end)
        .collect())
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
