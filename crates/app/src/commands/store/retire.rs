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
        said.push_str(&match report["live_octets"].as_u64() {
            Some(0) => "nothing in it is alive: it is drained with a running server's next checkpoint, as `newsreel store list` \
                        then says\n"
                .to_owned(),
            _ => format!(
                "{} of it are alive, and go as the rest of the set is overwritten, or are withdrawn before; `newsreel store \
                 list` says when it is drained\n",
                output::octets(&report["live_octets"])
            ),
        });
    }
    output::text(&said)
}
