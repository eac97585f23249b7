//! `newsreel store inspect`: the buffers, with what lies in them.

use anyhow::Result;
use serde_json::Value;

use crate::access::{self, LookArgs};
use crate::control::request::Request;
use crate::output;

/// The columns of a table of buffers.
const BUFFER_COLUMNS: &[(&str, &str)] = &[
    ("BUFFER", "name"),
    ("SET", "set"),
    ("OCTETS", "octets"),
    ("CYCLE", "cycle"),
    ("POSITION", "free_offset"),
    ("RESERVED", "reserved_offset"),
    ("STATE", "state"),
    ("FILE", "path"),
];

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Show every buffer: size, cycle, position of the next article, state
    #[command(after_help = "Example:\n  newsreel store inspect --spool /var/spool/newsreel")]
    Inspect {
        #[command(flatten)]
        spool: LookArgs,
    },
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    let Verb::Inspect { spool } = verb;
    let buffers = access::ask(spool, Request::Store)?;
    if spool.json {
        return output::json(&buffers);
    }
    output::text(&table(&buffers))
}

/// The buffers as a table; what is the matter with one stands in full below it.
pub(super) fn table(buffers: &Value) -> String {
    let mut rows = buffers.as_array().cloned().unwrap_or_default();
    let mut below = String::new();
    for row in &mut rows {
        let state = output::cell(&row["state"]);
        let word = word(&state);
        if word != state {
            below.push_str(&format!("{}: {state}\n", output::cell(&row["name"])));
        }
        row["state"] = word.into();
    }
    output::table(BUFFER_COLUMNS, &rows) + &below
}

/// One word for a state.
fn word(state: &str) -> &str {
    match state.split_once(": ") {
        _ if state == "ok" => state,
        Some((word @ "suspended", _)) => word,
        _ => "impaired",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_states_stand_below_the_table() {
        let row = |name: &str, state: &str| {
            json!({"name": name, "set": "main", "octets": 1, "cycle": 1, "free_offset": 5,
                "reserved_offset": 5, "state": state, "path": "/s"})
        };
        let said = table(&json!([
            row("C0", "ok"),
            row("C1", "suspended: cannot write /s: it is gone"),
            row("C2", "one copy of its header is damaged (bad crc)"),
        ]));
        assert_eq!(
            said,
            "BUFFER  SET   OCTETS  CYCLE  POSITION  RESERVED  STATE      FILE\n\
             C0      main       1      1         5         5  ok         /s\n\
             C1      main       1      1         5         5  suspended  /s\n\
             C2      main       1      1         5         5  impaired   /s\n\
             C1: suspended: cannot write /s: it is gone\n\
             C2: one copy of its header is damaged (bad crc)\n"
        );
    }
}
