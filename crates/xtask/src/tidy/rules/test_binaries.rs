//! A crate's integration tests are one binary, `tests/it/main.rs`: every further one is linked again at each change.

use super::super::Findings;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for name in tree.crates() {
        let folder = format!("crates/{name}/tests/");
        for child in tree.children(&folder) {
            let path = format!("{folder}{child}");
            let binary = child.ends_with(".rs") || tree.exists(&format!("{path}/main.rs"));
            if binary && child != "it" {
                findings.file(
                    &path,
                    "is a test binary of its own: make it a module of tests/it",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn a_second_binary_is_named() {
        let files = [
            ("crates/a/Cargo.toml", ""),
            ("crates/a/tests/it/main.rs", ""),
            ("crates/a/tests/more.rs", ""),
            ("crates/a/tests/other/main.rs", ""),
            ("crates/a/tests/data/x.txt", ""),
        ];
        assert_eq!(
            findings_of(check, &files),
            [
                "crates/a/tests/more.rs: is a test binary of its own: make it a module of tests/it",
                "crates/a/tests/other: is a test binary of its own: make it a module of tests/it",
            ]
        );
    }
}
