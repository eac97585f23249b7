//! The documents a newcomer needs are there, and none is longer than a reader's patience.

use super::super::Findings;
use crate::tree::Tree;

/// Must be there, with the most lines it may have.
const DOCUMENTS: [(&str, usize); 9] = [
    ("README.md", 200),
    ("ARCHITECTURE.md", 300),
    ("CONTRIBUTING.md", 80),
    ("CHANGELOG.md", 2000),
    ("LICENSE-APACHE", 300),
    ("LICENSE-MIT", 40),
    ("docs/glossary.md", 200),
    ("docs/rfc-map.md", 300),
    ("docs/reference/config.md", 2000),
];

/// Folders of which every page is bounded.
const PAGES: [(&str, usize); 1] = [("docs/decisions/", 40)];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (path, lines_max) in DOCUMENTS {
        match tree.text(path) {
            None => findings.file(path, "is missing"),
            Some(text) => bound(path, text, lines_max, findings),
        }
    }
    for (folder, lines_max) in PAGES {
        for (path, text) in tree.under(folder) {
            bound(path, text, lines_max, findings);
            decision_is_numbered(path, folder, findings);
        }
    }
}

fn bound(path: &str, text: &str, lines_max: usize, findings: &mut Findings) {
    let lines = text.lines().count();
    if lines > lines_max {
        findings.file(
            path,
            format!("{lines} lines, at most {lines_max}: say it shorter"),
        );
    }
}

fn decision_is_numbered(path: &str, folder: &str, findings: &mut Findings) {
    let name = path.strip_prefix(folder).unwrap_or(path);
    let number = name
        .get(..4)
        .is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()));
    if !number || name.as_bytes().get(4) != Some(&b'-') {
        findings.file(path, "a decision is named NNNN-what.md");
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn missing_long_and_unnumbered_are_named() {
        let long = "line\n".repeat(81);
        let files = [
            ("ARCHITECTURE.md", ""),
            ("CHANGELOG.md", ""),
            ("CONTRIBUTING.md", long.as_str()),
            ("LICENSE-APACHE", ""),
            ("LICENSE-MIT", ""),
            ("docs/glossary.md", ""),
            ("docs/rfc-map.md", ""),
            ("docs/reference/config.md", ""),
            ("docs/decisions/blocks.md", ""),
            ("docs/decisions/0001-blocks.md", ""),
        ];
        assert_eq!(
            findings_of(check, &files),
            [
                "README.md: is missing",
                "CONTRIBUTING.md: 81 lines, at most 80: say it shorter",
                "docs/decisions/blocks.md: a decision is named NNNN-what.md",
            ]
        );
    }
}
