//! What is promised holds in every state of a connection: each transcript that is about none of them is played behind STARTTLS,
//! behind a login, behind COMPRESS, and behind all three.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use newsreel_session::commands::TABLE;

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

/// Commands that bring a state about or say what it is: their transcripts show them in each.
const OF_STATES: [&str; 4] = ["CAPABILITIES", "STARTTLS", "AUTHINFO", "COMPRESS"];

/// The transcript, with a connection that is in these states first; `None`: it is no such one.
fn behind(states: &[&State], text: &str) -> Option<String> {
    let is_of_others = OTHERS.iter().any(|other| text.contains(other));
    let access = states.iter().rfind(|state| !state.access.is_empty());
    // Of two that say who may do what the later one has conditions.
    let access = access.map_or("", |state| state.access);
    (!is_of_others).then(|| put_behind(states, access, text))?
}

fn put_behind(states: &[&State], access: &str, text: &str) -> Option<String> {
    let talks = |line: &str| {
        let mut letters = line.chars();
        matches!(letters.next(), Some('C' | 'S'))
            && letters.next().is_some_and(|it| ":|<*=~+!".contains(it))
    };
    let first = text.lines().position(talks)?;
    let greets = |line: &str| line.starts_with("S: 20");
    let first = first + usize::from(text.lines().nth(first).is_some_and(greets));
    let mut out = String::new();
    for (at, line) in text.lines().enumerate() {
        if at == 1 {
            states.iter().for_each(|state| out += state.setup);
            if !access.is_empty() {
                let _ = writeln!(out, "@config access = [{access}]");
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
        let (mut played, mut said) = (0, BTreeSet::new());
        for name in LISTED {
            if SKIPPED.contains(name) {
                continue;
            }
            let Some(text) = behind(states, &read(name)) else {
                continue;
            };
            played += 1;
            let commands = text.lines().filter_map(|line| line.strip_prefix("C: "));
            let verbs = commands.filter_map(|line| line.split(' ').next());
            said.extend(verbs.map(str::to_ascii_uppercase));
            let report = play_text(name, &text, false);
            if let Some(failure) = report.failure() {
                let _ = writeln!(failed, "behind {}: {failure}", names.join(", "));
            }
        }
        assert!(played > 40, "{played} behind {names:?}");
        // Which commands that tries was left to chance.
        let wanted = TABLE.iter().map(|spec| spec.name);
        let unsaid: Vec<&str> = wanted
            .filter(|name| !OF_STATES.contains(name) && !said.contains(*name))
            .collect();
        assert_eq!(unsaid, [""; 0], "behind {names:?}");
    }
    assert!(failed.is_empty(), "{failed}");
}

/// What a feeder may and may not was tried in clear only.
#[test]
fn a_feeder_is_one_in_every_state() {
    let text = read("transit/access_feeder.nntp");
    // Its second connection says every command; the first one is over by then.
    let is_of_it =
        |line: &&str| line.starts_with(['#', '@']) && *line != "@closed" || line.contains("@b");
    let lines = text.lines().filter(is_of_it);
    let text: String = lines.map(|line| line.replace("@b", "") + "\n").collect();
    for states in [&[&TLS][..], &[&COMPRESS], &[&TLS, &COMPRESS]] {
        let names: Vec<&str> = states.iter().map(|state| state.name).collect();
        let text = put_behind(states, "", &text).unwrap();
        for spec in TABLE.iter().filter(|spec| spec.name != "QUIT") {
            let is_said = text.contains(&format!("\nC: {}", spec.name));
            assert!(is_said || OF_STATES.contains(&spec.name), "{}", spec.name);
        }
        let report = play_text("transit/access_feeder.nntp", &text, false);
        let failure = report.failure();
        assert!(failure.is_none(), "behind {names:?}: {failure:?}");
    }
}
