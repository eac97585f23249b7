//! The table of commands, the table of refusals and the transcripts agree.

use std::collections::{BTreeSet, HashMap, VecDeque};

use newsreel_service::Reject;
use newsreel_session::commands::{Needs, TABLE};

use crate::transcripts::tests_folder;

/// What is asked for and answered without looking at anything that could fail.
const NO_FAULTS: &[&str] = &["DATE", "HELP", "MODE", "POST"];

/// Forms of LIST that read groups.
const LISTS: &[&str] = &["ACTIVE", "ACTIVE.TIMES", "COUNTS", "NEWSGROUPS"];

/// Forms of LIST that say what the configuration says.
const SITE_LISTS: &[&str] = &[
    "DISTRIB.PATS",
    "DISTRIBUTIONS",
    "MODERATORS",
    "MOTD",
    "SUBSCRIPTIONS",
];

/// Refusals that no conversation brings about with a server of one set, or at all, whose tests are in the engine; and that of
/// a `[[peer]]`, whose tests are `path::` of the program and in `feed::filter`; that a mail was refused is tried with the mails.
const NOT_SHOWN: &[Reject] = &[
    Reject::NotFromPeer,
    Reject::PeerGroups,
    Reject::PeerControl,
    Reject::PeerOctets,
    Reject::PeerContent,
    Reject::PeerPath,
    Reject::PeerHops,
    Reject::PeerDistribution,
    Reject::PeerShare,
    Reject::NoStorageRule,
    Reject::MailRefused,
    Reject::Undecodable,
    Reject::RefusedElsewhere,
];

/// One side of a conversation: what was asked and is not answered yet.
#[derive(Default)]
struct Talk {
    asked: VecDeque<String>,
    in_article: bool,
    in_block: bool,
    /// What is said next belongs to an exchange.
    in_exchange: bool,
    /// Octets without line ends were said: what is answered to what is not known any more.
    is_lost: bool,
}

impl Talk {
    fn says(&mut self, mark: char, text: &str) {
        match mark {
            '|' => self.is_lost = true,
            '<' => self.in_article = false,
            _ if self.in_article => self.in_article = text != ".",
            _ if self.in_exchange => self.in_exchange = false,
            '*' => {
                let (times, line) = text.split_once(' ').unwrap_or((text, ""));
                for _ in 0..times.parse().unwrap_or(0) {
                    self.asks(line);
                }
            }
            _ => self.asks(text),
        }
    }

    fn asks(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let mut verb = words.next().unwrap_or_default().to_ascii_uppercase();
        if verb == "LIST" {
            verb = format!(
                "LIST {}",
                words.next().unwrap_or("ACTIVE").to_ascii_uppercase()
            );
        }
        self.in_article = verb == "TAKETHIS";
        self.asked.push_back(verb);
    }

    /// The command that this line answers, if it is the first line of a reply.
    fn answer(&mut self, mark: char, text: &str) -> Option<(String, u16)> {
        if mark == '<' || self.in_block {
            self.in_block = mark != '<' && text != ".";
            return None;
        }
        let code: u16 = text.get(..3)?.parse().ok().filter(|_| mark == ':')?;
        let verb = match code {
            335 | 340 => {
                self.in_article = true;
                self.asked.front().cloned()
            }
            383 => {
                self.in_exchange = true;
                self.asked.front().cloned()
            }
            _ => self.asked.pop_front(),
        }?;
        self.in_block = match code {
            211 => verb == "LISTGROUP",
            code => matches!(
                code,
                100 | 101 | 215 | 220..=222 | 224 | 225 | 230 | 231 | 282
            ),
        };
        (!self.is_lost).then_some((verb, code))
    }
}

/// Every command with every code that a transcript shows as its answer.
fn answers(text: &str, shown: &mut BTreeSet<(String, u16)>) {
    let mut talks: HashMap<&str, Talk> = HashMap::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix(['C', 'S']) else {
            continue;
        };
        let Some(at) = rest.find([':', '|', '<', '*', '=', '~', '+', '!']) else {
            continue;
        };
        let (name, rest) = rest.split_at(at);
        let mark = rest.chars().next().unwrap_or(':');
        let said = rest[1..].strip_prefix(' ').unwrap_or(&rest[1..]);
        let talk = talks.entry(name).or_default();
        if line.starts_with('C') {
            talk.says(mark, said);
        } else if let Some((verb, code)) = talk.answer(mark, said) {
            if verb.starts_with("LIST ") {
                shown.insert(("LIST".to_owned(), code));
            }
            shown.insert((verb, code));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "looks at the source tree")]
fn transcripts() -> Vec<(String, String)> {
    let mut files = Vec::new();
    // What clients of ours hear from others is in a third folder.
    for folder in ["reader", "transit"] {
        let folder = tests_folder().join("transcripts").join(folder);
        let entries = std::fs::read_dir(folder).unwrap();
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            files.push((name, std::fs::read_to_string(path).unwrap()));
        }
    }
    files
}

/// Every verb has a transcript of its name, and every code it can answer is shown as its answer.
#[test]
fn every_command_has_a_transcript_that_shows_every_code() {
    let files = transcripts();
    let mut shown = BTreeSet::new();
    for (_, text) in &files {
        answers(text, &mut shown);
    }
    let mut wanted: Vec<(String, u16)> = Vec::new();
    for spec in TABLE {
        let verb = spec.name.to_ascii_lowercase();
        assert!(
            files.iter().any(|(name, _)| *name == verb),
            "no transcript {verb}.nntp"
        );
        let reads = matches!(spec.needs, Needs::Reader | Needs::Posting | Needs::Newnews);
        let fault = (reads && !NO_FAULTS.contains(&spec.name)).then_some(403);
        let unknown = (spec.needs != Needs::Nothing && reads).then_some(500);
        let denied = (spec.needs != Needs::Nothing && spec.needs != Needs::Articles).then_some(502);
        let codes = spec
            .codes
            .iter()
            .copied()
            .chain([501])
            .chain(fault)
            .chain(denied);
        wanted.extend(
            codes
                .chain(unknown)
                .map(|code| (spec.name.to_owned(), code)),
        );
    }
    for list in LISTS {
        wanted.extend([215, 403, 501, 502].map(|code| (format!("LIST {list}"), code)));
    }
    for list in SITE_LISTS {
        wanted.extend([215, 501, 503].map(|code| (format!("LIST {list}"), code)));
    }
    wanted.retain(|answer| !shown.contains(answer));
    assert!(wanted.is_empty(), "no transcript shows {wanted:?}");
    for code in [400, 500] {
        let is_shown = shown.iter().any(|(_, other)| *other == code);
        assert!(is_shown, "no transcript shows {code}");
    }
}

/// Whoever wants to know what keeps a paragraph of an RFC finds every transcript in the map.
#[test]
#[expect(clippy::disallowed_methods, reason = "looks at the source tree")]
fn every_transcript_is_in_the_map_of_rfcs() {
    let map = std::fs::read_to_string(tests_folder().join("../docs/rfc-map.md")).unwrap();
    let shown: BTreeSet<&str> = map
        .lines()
        .filter_map(|line| line.trim_end_matches(" |").rsplit_once("| "))
        .flat_map(|(_, names)| names.split(", "))
        .collect();
    let missing: Vec<String> = transcripts()
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| !shown.contains(name.as_str()))
        .collect();
    assert_eq!(missing, [""; 0]);
}

/// Every reason for a refusal is shown with its text.
#[test]
fn every_refusal_is_shown() {
    let files = transcripts();
    for reason in Reject::ALL {
        let is_shown = files.iter().any(|(_, text)| {
            let mut lines = text.lines().filter(|line| line.starts_with('S'));
            lines.any(|line| {
                let said = line.split_once(": 44").and_then(|(_, said)| said.get(2..));
                let names_it = said
                    .and_then(|said| said.split_once(": "))
                    .map(|(why, _)| why);
                line.contains(": 43") && line.ends_with(reason.text())
                    || said == Some(reason.text())
                    || names_it == Some(reason.text())
            })
        });
        assert_eq!(is_shown, !NOT_SHOWN.contains(reason), "{reason:?}");
    }
}

#[test]
fn answers_belong_to_what_was_asked() {
    let mut shown = BTreeSet::new();
    answers(
        "C: TAKETHIS <a@b>\nC: QUIT\nC: .\nC@b: LIST\nS: 439 <a@b> x\nS@b: 215 x\nS@b: 400 no reply\nS@b: .\n\
         C: IHAVE <a@b>\nS: 335 x\nC: DATE\nC: .\nS: 235 x\nC: GROUP x\nC: STAT\nS: 411 x\nS: 412 x\n\
         C: AUTHINFO SASL PLAIN\nS: 383 =\nC: AGE=\nS: 482 x\n\
         C| QU\nC: IT\nS: 205 x\n",
        &mut shown,
    );
    let expect = [
        ("AUTHINFO", 383),
        ("AUTHINFO", 482),
        ("GROUP", 411),
        ("IHAVE", 235),
        ("IHAVE", 335),
        ("LIST", 215),
        ("LIST ACTIVE", 215),
        ("STAT", 412),
        ("TAKETHIS", 439),
    ];
    assert_eq!(
        shown,
        expect.map(|(verb, code)| (verb.to_owned(), code)).into()
    );
}
