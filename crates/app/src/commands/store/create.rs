//! `newsreel store create`: the buffers of a configuration, made before a server needs them.
//!
//! Made by the very code of a start, and only where nothing is.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use newsreel_engine::Engine;
use newsreel_host::{Disk, RealDisk};
use newsreel_store::PlannedBuffer;
use serde_json::{Value, json};

use crate::access::{self, SpoolArgs};
use crate::config::Config;
use crate::control::client::Client;
use crate::output;

/// The columns of its table.
const COLUMNS: &[(&str, &str)] = &[
    ("BUFFER", "name"),
    ("SET", "set"),
    ("OCTETS", "octets"),
    ("FREE", "free_octets"),
    ("WHAT", "what"),
    ("FILE", "path"),
];

pub(super) fn run(names: &[String], dry_run: bool, spool: &SpoolArgs) -> Result<()> {
    let config = access::config_of(spool)?;
    let dir = config.server.spool.clone();
    if Client::connect(&dir)?.is_some() {
        bail!(
            "a server is running on the spool {}, and made its buffers when it started: for new ones stop it first, or restart \
             it with a configuration that has them",
            dir.display()
        );
    }
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let engine = config.engine_config();
    let planned = Engine::planned_buffers(&engine, &disk, &BTreeMap::new())?;
    let wanted = wanted(&planned, names, &config)?;
    access::no_foreign_root(&disk, &dir)?;
    let names: Vec<String> = wanted.iter().map(|buffer| buffer.name.clone()).collect();
    let refusals = match dry_run {
        true => Engine::try_create_buffers(&engine, &disk, &names)?,
        false => {
            Engine::create_buffers(&engine, &disk, &names, &mut access::making())?;
            Vec::new()
        }
    };
    let rows: Vec<Value> = wanted
        .iter()
        .map(|buffer| {
            let is_refused = refusals.iter().any(|(name, _)| *name == buffer.name);
            let what = match (buffer.is_there, buffer.was_made, dry_run) {
                _ if buffer.was_dropped => "let go",
                (false, true, _) => "lost",
                _ if is_refused => "cannot be",
                (true, ..) => "is there",
                (false, false, true) => "would be made",
                (false, false, false) => "made",
            };
            json!({"name": buffer.name, "set": buffer.set, "octets": buffer.octets, "free_octets": buffer.free_octets,
                "sparse": buffer.is_sparse, "path": buffer.path, "what": what})
        })
        .collect();
    if spool.json {
        output::json(&rows.into())?;
    } else {
        output::text(&output::table(COLUMNS, &rows))?;
    }
    match refusals.into_iter().next() {
        None => Ok(()),
        Some((_, why)) => Err(why.into()),
    }
}

/// The buffers that are meant: all, or those that are named and not there.
fn wanted<'p>(
    planned: &'p [PlannedBuffer],
    names: &[String],
    config: &Config,
) -> Result<Vec<&'p PlannedBuffer>> {
    for name in names {
        let Some(buffer) = planned.iter().find(|buffer| buffer.name == *name) else {
            let mut sets = config.store.sets.iter();
            if sets.any(|set| set.name == *name && !set.has_buffers()) {
                bail!("{name} is a set of segments: its files are made when articles need them");
            }
            let all: Vec<&str> = planned.iter().map(|it| it.name.as_str()).collect();
            bail!(
                "the configuration has no buffer {name:?} in a set; there are {}",
                all.join(", ")
            );
        };
        if buffer.is_there && !buffer.was_dropped {
            bail!(
                "buffer {name} is there already, in {}: nothing is made over it",
                buffer.path
            );
        }
    }
    let is_meant = |buffer: &&PlannedBuffer| names.is_empty() || names.contains(&buffer.name);
    Ok(planned.iter().filter(is_meant).collect())
}
