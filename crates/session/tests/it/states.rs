//! What is promised holds in every state of a connection: each transcript that is about none of them is played behind STARTTLS,
//! behind a login, behind COMPRESS, and behind all three.

use std::fmt::Write as _;

use crate::transcripts::{LISTED, SKIPPED, play_text, read};

/// What puts a connection into a state: lines for the server's set-up, and the conversation.
struct State {
    name: &'static str,
    setup: &'static str,
    /// Who may do what, if that must be said.
    access: &'static str,
    talk: &'static str,
}

const ALL: &str = "{ name = \"all\", read = \"*\", post = \"*\", approve = true, feed = true }";

const TLS: State = State {
    name: "TLS",
    setup: "@config tls.certificate = \"cert.pem\"\n@config tls.key = \"key.pem\"\n",
    access: ALL,
    talk: "C: STARTTLS\nS: 382 {*}\n@tls\n",
};

const LOGIN: State = State {
    name: "a login",
    setup: "@user ada correct-horse\n",
    access: "{ name = \"all\", users = [\"*\"], read = \"*\", post = \"*\", approve = true, feed = true }, \
             { name = \"before\", post = \"*\" }",
    talk: "C: AUTHINFO USER ada\nS: 381 {*}\nC: AUTHINFO PASS correct-horse\nS: 281 {*}\n",
};

const COMPRESS: State = State {
    name: "COMPRESS",
    setup: "",
    access: "",
    talk: "C: COMPRESS DEFLATE\nS: 206 {*}\n@deflate\n",
};

/// Each alone, and all of them in the only order there is.
const COMBINATIONS: [&[&State]; 4] = [&[&TLS], &[&LOGIN], &[&COMPRESS], &[&TLS, &LOGIN, &COMPRESS]];

/// What stands in transcripts that are about states, about several connections, or about what comes before a state could be reached.
const OTHERS: [&str; 8] = [
    "CAPABILITIES",
    "STARTTLS",
    "AUTHINFO",
    "COMPRESS",
    "@config access",
    "@config session",
    "C@",
    "S@",
];

/// The transcript, with a connection that is in these states first; `None`: it is no such one.
fn behind(states: &[&State], text: &str) -> Option<String> {
    let talks = |line: &str| {
        let mut letters = line.chars();
        matches!(letters.next(), Some('C' | 'S'))
            && letters.next().is_some_and(|it| ":|<*=~+!".contains(it))
    };
    let is_of_others = OTHERS.iter().any(|other| text.contains(other));
    let first = text.lines().position(talks).filter(|_| !is_of_others)?;
    let greets = |line: &str| line.starts_with("S: 20");
    let first = first + usize::from(text.lines().nth(first).is_some_and(greets));
    let mut out = String::new();
    for (at, line) in text.lines().enumerate() {
        if at == 1 {
            states.iter().for_each(|state| out += state.setup);
            // Of two that say who may do what the later one has conditions.
            let access = states.iter().rfind(|state| !state.access.is_empty());
            if let Some(state) = access {
                let _ = writeln!(out, "@config access = [{}]", state.access);
            }
        }
        if at == first {
            states.iter().for_each(|state| out += state.talk);
        }
        let _ = writeln!(out, "{line}");
    }
    Some(out)
}

#[test]
fn what_is_promised_holds_in_every_state() {
    let mut failed = String::new();
    for states in COMBINATIONS {
        let names: Vec<&str> = states.iter().map(|state| state.name).collect();
        let mut played = 0;
        for name in LISTED {
            if SKIPPED.contains(name) {
                continue;
            }
            let Some(text) = behind(states, &read(name)) else {
                continue;
            };
            played += 1;
            let report = play_text(name, &text, false);
            if let Some(failure) = report.failure() {
                let _ = writeln!(failed, "behind {}: {failure}", names.join(", "));
            }
        }
        assert!(played > 40, "{played} behind {names:?}");
    }
    assert!(failed.is_empty(), "{failed}");
}
