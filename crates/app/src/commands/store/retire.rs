//! `newsreel store retire`: a buffer takes nothing new, and drains.
//!
//! What it says of the buffer is what the spool says of it then; nothing is decided here.

use anyhow::Result;

use crate::access::{self, SpoolArgs};
use crate::control::request::Request;
use crate::output;

pub(super) fn run(buffer: &str, undo: bool, dry_run: bool, spool: &SpoolArgs) -> Result<()> {
    let request = Request::StoreRetire {
        buffer: buffer.to_owned(),
        undo,
        dry_run,
    };
    let done = access::change(spool, request)?;
    if spool.json {
        return output::json(&done);
    }
    let report = &done["buffer"];
    let set = output::cell(&report["set"]);
    let would = if dry_run { "would " } else { "" };
    let already = if done["new"] == true {
        ""
    } else {
        ", as before"
    };
    let mut said = match undo {
        true => format!("{would}take articles again{already}: {buffer}, for set {set}\n"),
        false => format!("{would}take no more articles{already}: {buffer}, of set {set}\n"),
    };
    if !undo {
        let alive = output::octets(&report["live_octets"]);
        said.push_str(&format!(
            "{alive} of it are alive, and go as the rest of the set is overwritten; `newsreel store list` says when it is \
             drained\n"
        ));
    }
    output::text(&said)
}
