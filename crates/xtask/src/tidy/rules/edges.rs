//! Dependencies between the crates go only where the drawing lets them.
//!
//! What a crate may use is the edges drawn below and all that lies under them; tests may also use `testkit`.  The drawing
//! that people read is in ARCHITECTURE.md, and must be this one as far as its crates exist.

use std::collections::BTreeSet;

use super::super::Findings;
use crate::tree::Tree;

const EVERYTHING: &[&str] = &[
    "web", "session", "feed", "cache", "usenetfs", "bench", "engine", "net", "service", "store",
    "index", "journal", "layout", "mail", "filter", "users", "openpgp", "wire", "host",
];

/// The drawing, top to bottom: a crate and what it points at.
const DRAWN: &[(&str, &[&str])] = &[
    ("app", EVERYTHING),
    ("web", &["service"]),
    ("session", &["service", "net", "wire"]),
    ("feed", &["engine", "net"]),
    ("cache", &["service", "store", "index", "net"]),
    ("usenetfs", &["layout", "wire", "host"]),
    ("bench", &["engine", "net", "layout"]),
    (
        "engine",
        &["service", "store", "index", "journal", "openpgp"],
    ),
    ("net", &["wire", "host"]),
    ("mail", &["service", "host"]),
    ("filter", &["service", "host"]),
    ("users", &["host"]),
    ("service", &["wire"]),
    ("store", &["layout", "wire", "host"]),
    ("index", &["wire", "host"]),
    ("journal", &["wire", "host"]),
    ("layout", &["host"]),
    ("openpgp", &[]),
    ("wire", &[]),
    ("host", &[]),
    ("testkit", &["service", "wire", "host"]),
    ("xtask", &[]),
];

const PAGE: &str = "ARCHITECTURE.md";

/// What stands beside the drawing on the page.
const BESIDE: &[&str] = &["testkit", "xtask"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    if let Some(page) = tree.text(PAGE) {
        compare(page, &tree.crates(), findings);
    }
    for name in tree.crates() {
        let path = format!("crates/{name}/Cargo.toml");
        let Some(allowed) = allowed(&name) else {
            findings.file(
                &path,
                format!("crate {name} is not in the drawing: add it to tidy's"),
            );
            continue;
        };
        let manifest: toml::Table = match tree.text(&path).unwrap_or_default().parse() {
            Ok(manifest) => manifest,
            Err(error) => {
                findings.file(&path, format!("is not TOML: {error}"));
                continue;
            }
        };
        for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
            for used in ours(&manifest, section) {
                let for_tests = section == "dev-dependencies" && used == "testkit";
                if !for_tests && !allowed.contains(used.as_str()) {
                    findings.file(&path, format!("[{section}] {name} may not use {used}"));
                }
            }
        }
    }
}

/// Holds the page's drawing against ours.
fn compare(page: &str, crates: &[String], findings: &mut Findings) {
    let on_page = drawn_on(page);
    let here = |name: &str| crates.iter().any(|one| one == name);
    for (name, to) in DRAWN {
        if !here(name) || BESIDE.contains(name) {
            continue;
        }
        let ours: BTreeSet<&str> = to.iter().copied().filter(|to| here(to)).collect();
        let mut theirs = BTreeSet::new();
        let edges = on_page.iter().filter(|(from, _)| from == name);
        for (_, to) in edges {
            match *to {
                "everything" => theirs.extend(EVERYTHING.iter().copied().filter(|to| here(to))),
                "nothing" => {}
                to => theirs.extend([to]),
            }
        }
        if ours != theirs {
            findings.file(
                PAGE,
                format!("the drawing has {name} -> {theirs:?}, tidy has {ours:?}"),
            );
        }
    }
}

/// The edges of the page's drawing: statements such as `a, b -> c, d`, set apart by two blanks.
fn drawn_on(page: &str) -> Vec<(&str, &str)> {
    let mut edges = Vec::new();
    for line in page.lines() {
        for statement in line.split("  ") {
            let Some((from, to)) = statement.split_once(" -> ") else {
                continue;
            };
            // What is in brackets is said to people.
            let to = to.split(" (").next().unwrap_or_default();
            for from in from.split(',') {
                edges.extend(to.split(',').map(|to| (from.trim(), to.trim())));
            }
        }
    }
    edges
}

/// All that lies under a crate.
fn allowed(name: &str) -> Option<BTreeSet<&'static str>> {
    let below = |name: &str| {
        DRAWN
            .iter()
            .find(|(from, _)| *from == name)
            .map(|(_, to)| *to)
    };
    let mut allowed = BTreeSet::new();
    let mut open = below(name)?.to_vec();
    while let Some(next) = open.pop() {
        if allowed.insert(next) {
            open.extend(below(next).unwrap_or_default());
        }
    }
    Some(allowed)
}

/// The crates of ours in one section, without the prefix.
fn ours(manifest: &toml::Table, section: &str) -> Vec<String> {
    let Some(section) = manifest.get(section).and_then(toml::Value::as_table) else {
        return Vec::new();
    };
    section
        .keys()
        .filter_map(|key| key.strip_prefix("newsreel-"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn edges_go_down_only() {
        let files = [
            (
                "crates/wire/Cargo.toml",
                "[dependencies]\nnewsreel-host = { path = \"../host\" }\nserde = \"1\"\n",
            ),
            (
                "crates/engine/Cargo.toml",
                "[dependencies]\nnewsreel-wire.workspace = true\nnewsreel-net.workspace = true\n\
                 [dev-dependencies]\nnewsreel-testkit.workspace = true\n",
            ),
            (
                "crates/session/Cargo.toml",
                "[dev-dependencies]\nnewsreel-engine.workspace = true\n",
            ),
            ("crates/extra/Cargo.toml", ""),
        ];
        assert_eq!(
            findings_of(check, &files),
            [
                "crates/engine/Cargo.toml: [dependencies] engine may not use net",
                "crates/extra/Cargo.toml: crate extra is not in the drawing: add it to tidy's",
                "crates/session/Cargo.toml: [dev-dependencies] session may not use engine",
                "crates/wire/Cargo.toml: [dependencies] wire may not use host",
            ]
        );
    }

    #[test]
    fn the_page_has_the_same_drawing() {
        let page = "x\n```\n2  service   index    service -> wire      index -> host, wire\n```\n";
        let files = [
            ("ARCHITECTURE.md", page),
            ("crates/service/Cargo.toml", ""),
            ("crates/index/Cargo.toml", ""),
            ("crates/journal/Cargo.toml", ""),
            ("crates/wire/Cargo.toml", ""),
            ("crates/host/Cargo.toml", ""),
        ];
        assert_eq!(
            findings_of(check, &files),
            ["ARCHITECTURE.md: the drawing has journal -> {}, tidy has {\"host\", \"wire\"}"]
        );
    }

    #[test]
    fn the_drawing_has_no_cycle() {
        for (name, _) in DRAWN {
            assert!(
                !allowed(name).unwrap().contains(name),
                "{name} lies under itself"
            );
        }
    }
}
