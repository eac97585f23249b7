//! What `cargo xtask docs` makes from the sources alone is as it would make it now.

use super::super::Findings;
use crate::docs;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let fresh = match docs::config_keys(tree) {
        Ok(fresh) => fresh,
        Err(error) => {
            findings.file(docs::KEYS_PATH, format!("cannot be made: {error:#}"));
            return;
        }
    };
    if tree.text(docs::KEYS_PATH) != Some(fresh.as_str()) {
        findings.file(docs::KEYS_PATH, "is stale: run `cargo xtask docs`");
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn sections_that_are_gone_and_stale_tables_are_named() {
        let found = findings_of(check, &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("cannot be made"), "{found:?}");

        let root = Tree::load(&crate::root()).unwrap();
        let mut sources: Vec<(&str, &str)> = root.under("crates/").collect();
        sources.retain(|(path, _)| *path != docs::KEYS_PATH);
        sources.push((docs::KEYS_PATH, "# of last year\n"));
        let stale = format!("{}: is stale: run `cargo xtask docs`", docs::KEYS_PATH);
        assert_eq!(findings_of(check, &sources), [stale]);
    }
}
