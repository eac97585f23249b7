//! `newsreel store resize`: buffers made as large as the configuration says.
//!
//! What is in them stays where it is.  Looked at first, all of them: nothing is done while one of them cannot be.  A server that
//! runs does it itself.

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
    let grows = |buffer: &&&PlannedBuffer| buffer.octets_there < Some(buffer.octets);
    let larger: Vec<String> = meant
        .iter()
        .filter(grows)
        .map(|it| it.name.clone())
        .collect();
    if !dry_run && !larger.is_empty() {
        if Client::connect(&dir)?.is_some() {
            beside_the_server(&meant, &larger, spool)?;
        } else {
            access::no_foreign_root(&disk, &dir)?;
            let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
            Engine::enlarge_buffers(&engine, &disk, &clock, &larger, &mut access::making())?;
            access::note_sizes(disk.as_ref(), &config, &larger)?;
        }
    }
    let rows: Vec<Value> = meant
        .iter()
        .map(|buffer| {
            let what = match (larger.contains(&buffer.name), dry_run) {
                (false, _) => "has it",
                (true, true) => "would be made larger",
                (true, false) => "made larger",
            };
            json!({"name": buffer.name, "set": buffer.set, "octets_there": buffer.octets_there, "octets": buffer.octets,
                "free_octets": buffer.free_octets, "sparse": buffer.is_sparse, "path": buffer.path, "what": what})
        })
        .collect();
    if spool.json {
        output::json(&rows.into())
    } else if rows.is_empty() {
        output::text("every buffer has the size that the configuration says\n")
    } else {
        output::text(&output::table(COLUMNS, &rows))
    }
}

/// Has the server do it that runs, one after the other.
fn beside_the_server(meant: &[&PlannedBuffer], larger: &[String], spool: &SpoolArgs) -> Result<()> {
    for buffer in meant.iter().filter(|buffer| larger.contains(&buffer.name)) {
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
        true => buffer
            .octets_there
            .is_some_and(|there| there != buffer.octets),
        false => names.contains(&buffer.name),
    };
    let meant: Vec<&PlannedBuffer> = planned.iter().filter(is_meant).collect();
    for buffer in &meant {
        let (name, path) = (&buffer.name, &buffer.path);
        match buffer.octets_there {
            None => bail!("buffer {name} is not there, or its header is damaged: look at {path}"),
            Some(there) if there > buffer.octets => bail!(
                "buffer {name} has {}, and none becomes smaller: for less room add a smaller one of another name to its set, and \
                 let this one drain: `newsreel store retire {name}`",
                output::octets(&there.into())
            ),
            Some(_) => {}
        }
    }
    Ok(meant)
}
