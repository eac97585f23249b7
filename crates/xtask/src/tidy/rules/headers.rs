//! Every Rust file says in its first lines what it is.

use super::super::Findings;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (path, text) in tree.ending("rs") {
        let first = text.lines().next().unwrap_or_default();
        let words = first
            .strip_prefix("//! ")
            .map_or(0, |rest| rest.split_whitespace().count());
        if words == 0 {
            findings.line(path, 1, "opens without `//! What this is.`");
        } else if words < 3 {
            findings.line(path, 1, "the header must be a sentence");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn a_file_without_a_header_is_named() {
        let files = [
            ("a.rs", "use std::fmt;\n"),
            ("b.rs", "//! Things.\n"),
            ("c.rs", "//! What this file holds.\n"),
        ];
        assert_eq!(
            findings_of(check, &files),
            [
                "a.rs:1: opens without `//! What this is.`",
                "b.rs:1: the header must be a sentence",
            ]
        );
    }
}
