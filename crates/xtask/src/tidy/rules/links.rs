//! Links and paths in documents and comments lead somewhere.
//!
//! Looked at: `[text](path#anchor)` and paths in code spans of Markdown, and `docs/...` paths in Rust comments.
//! What holds a placeholder (`<verb>`, `*`, `{a,b}`) is not a path.

use super::super::Findings;
use crate::tree::Tree;

/// Where a path of ours begins.
const ROOTS: [&str; 8] = [
    "crates/", "contrib/", "docs/", "script/", "tests/", "fuzz/", ".ci/", ".cargo/",
];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (path, text) in tree.ending("md") {
        for (line, target) in links(text) {
            link(tree, path, line, &target, findings);
        }
        for (line, span) in code_spans(text) {
            if is_path(&span) && !tree.exists(&span) {
                findings.line(path, line, format!("`{span}` does not exist"));
            }
        }
    }
    for (path, text) in tree.ending("rs") {
        for (line, named) in paths_in_comments(text) {
            if !tree.exists(&named) {
                findings.line(path, line, format!("{named} does not exist"));
            }
        }
    }
}

fn link(tree: &Tree, path: &str, line: usize, target: &str, findings: &mut Findings) {
    if target.contains("://") || target.starts_with("mailto:") {
        return;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let resolved = if file.is_empty() {
        path.to_owned()
    } else {
        resolve(path, file)
    };
    if !tree.exists(&resolved) {
        findings.line(
            path,
            line,
            format!("link to {target}, which does not exist"),
        );
    } else if !anchor.is_empty()
        && tree
            .text(&resolved)
            .is_some_and(|text| !anchors(text).contains(&anchor.to_owned()))
    {
        findings.line(path, line, format!("link to {target}: no such heading"));
    }
}

/// A link's target seen from the root.
fn resolve(from: &str, target: &str) -> String {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors that headings make.
fn anchors(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// Lines of prose with their numbers: no fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((at + 1, line))
    })
}

fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, words) in prose(text) {
        for (at, _) in words.match_indices("](") {
            if let Some(end) = words[at..].find(')') {
                found.push((line, words[at + 2..at + end].to_owned()));
            }
        }
    }
    found
}

fn code_spans(text: &str) -> Vec<(usize, String)> {
    let spans = |words: &str| -> Vec<String> {
        words
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    prose(text)
        .flat_map(|(line, words)| spans(words).into_iter().map(move |s| (line, s)))
        .collect()
}

fn is_path(span: &str) -> bool {
    ROOTS.iter().any(|root| span.starts_with(root))
        && span
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b))
        && !span.contains("NNNN")
}

/// Paths below `docs/` in the comments of a Rust file, with their lines.
pub(super) fn paths_in_comments(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            continue;
        };
        let separators = |c: char| !(c.is_ascii_alphanumeric() || "/._-<>*".contains(c));
        for word in comment.split(separators) {
            let word = word.trim_end_matches('.');
            if word.starts_with("docs/") && word.ends_with(".md") && is_path(word) {
                found.push((at + 1, word.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn dead_links_and_paths_are_named() {
        let files = [
            (
                "docs/a.md",
                "# The title\n[x](b.md) [y](../README.md#how-to-go-on) [z](c.md)\n\
                 [w](#the-title) [v](../README.md#nowhere) [u](https://example.org/q)\n\
                 `docs/a.md`, `docs/<name>.md`, `crates/none/src`\n```\n[x](no.md)\n```\n",
            ),
            ("docs/b.md", ""),
            ("README.md", "## How to go on\n"),
            (
                "crates/a/src/lib.rs",
                "//! See docs/b.md and `docs/formats/x.md`.\n",
            ),
        ];
        assert_eq!(
            findings_of(check, &files),
            [
                "docs/a.md:2: link to c.md, which does not exist",
                "docs/a.md:3: link to ../README.md#nowhere: no such heading",
                "docs/a.md:4: `crates/none/src` does not exist",
                "crates/a/src/lib.rs:1: docs/formats/x.md does not exist",
            ]
        );
    }
}
