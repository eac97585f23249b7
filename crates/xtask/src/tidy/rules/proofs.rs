//! What the map of RFCs and the page on security name as shown by is there.
//!
//! Looked at is the last column of their tables: a word alone between commas is a transcript, a name in a code span is a test.  A
//! promise whose test was renamed or went would stand there as kept.

use super::super::Findings;
use crate::tree::Tree;

const PAGES: [&str; 2] = ["docs/rfc-map.md", "docs/security.md"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for page in PAGES {
        for (line, named) in tree.text(page).map(shown_by).unwrap_or_default() {
            let is_there = match &named {
                Named::Transcript(name) => tree
                    .under("tests/transcripts/")
                    .any(|(path, _)| path.ends_with(&format!("/{name}.nntp"))),
                Named::Test(name) => tree
                    .under("crates/")
                    .any(|(_, text)| text.contains(&format!("fn {name}("))),
            };
            if !is_there {
                let (Named::Transcript(name) | Named::Test(name)) = named;
                findings.line(page, line, format!("{name} is no transcript or test"));
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Named {
    Transcript(String),
    Test(String),
}

/// What the last columns of a page's tables name, with the lines.
fn shown_by(page: &str) -> Vec<(usize, Named)> {
    let mut found = Vec::new();
    let is_name = |text: &str| {
        let is_of_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        !text.is_empty() && text.bytes().all(is_of_name)
    };
    let mut lines = page.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let is_head = lines
            .peek()
            .is_some_and(|(_, next)| next.starts_with("|--"));
        let line = line.trim_end();
        let last = line
            .strip_suffix('|')
            .unwrap_or(line)
            .trim_end()
            .rsplit_once("| ");
        let last = last.filter(|_| !line.ends_with("| |"));
        let Some((_, last)) = last.filter(|_| line.starts_with("| ") && !is_head) else {
            continue;
        };
        for part in last.split(", ").filter(|part| is_name(part)) {
            found.push((at + 1, Named::Transcript(part.to_owned())));
        }
        for span in last.split('`').skip(1).step_by(2) {
            let name = span.rsplit("::").next().unwrap_or(span);
            if is_name(name) {
                found.push((at + 1, Named::Test(name.to_owned())));
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
    fn what_is_not_there_is_named() {
        let files = [
            (
                "docs/rfc-map.md",
                "| what | transcript |\n|---|---|\n| a | post, gone, the same, `crates/a/src/lib.rs` |\n| b | |\n",
            ),
            (
                "docs/security.md",
                "| what | shown by |\n|---|---|\n| `not_looked_at` | post, `a::it_holds`, `it_held`, [page](a.md) |\n",
            ),
            ("tests/transcripts/reader/post.nntp", ""),
            ("crates/a/src/lib.rs", "fn it_holds() {}\n"),
        ];
        assert_eq!(
            findings_of(check, &files),
            [
                "docs/rfc-map.md:3: gone is no transcript or test",
                "docs/security.md:3: it_held is no transcript or test",
            ]
        );
    }
}
