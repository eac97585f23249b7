//! Sources are ASCII, so that what is read is what is compiled; other characters are written as escapes.

use super::super::Findings;
use crate::tree::Tree;

/// Endings of files that count as sources.
const ENDINGS: [&str; 4] = ["rs", "toml", "sh", "nntp"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (path, text) in ENDINGS.iter().flat_map(|ending| tree.ending(ending)) {
        for (at, line) in text.lines().enumerate() {
            if let Some(odd) = line.chars().find(|c| !c.is_ascii()) {
                let code = u32::from(odd);
                findings.line(
                    path,
                    at + 1,
                    format!("character U+{code:04X}: write it as an escape"),
                );
            }
            if path.ends_with(".rs") && line.contains('\t') {
                findings.line(path, at + 1, "a tab: use spaces, or \\t in a string");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn other_characters_and_tabs_are_named() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "//! Fine.\nconst DASH: char = '\u{2014}';\n\tfn f() {}\n",
            ),
            ("README.md", "An em dash \u{2014} is fine in prose.\n"),
        ];
        assert_eq!(
            findings_of(check, &files),
            [
                "crates/a/src/lib.rs:2: character U+2014: write it as an escape",
                "crates/a/src/lib.rs:3: a tab: use spaces, or \\t in a string",
            ]
        );
    }
}
