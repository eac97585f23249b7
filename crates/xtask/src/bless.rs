//! Rewrites what tests expect: transcripts' replies, refusals of configurations, generated pages, golden texts.
//!
//! It only runs the tests that know how, with the variables that tell them to; a person reads the diff.  Transcripts are
//! blessed by what the memory service says, because it can play nearly all of them; the binary must then say the same.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Tests that rewrite what they compare with: package, words for its test binaries.
const BLESSED: &[(&str, &[&str])] = &[
    ("newsreel-session", &["--test", "it", "transcripts"]),
    ("newsreel-app", &["--lib", "config::tests::invalid_files"]),
    ("newsreel-app", &["--test", "it", "docs"]),
    // Makes the spool of a new set of formats, never an old one again.
    ("newsreel-app", &["--test", "it", "formats"]),
    ("newsreel-wire", &["--lib"]),
    ("newsreel-layout", &["--lib"]),
    ("newsreel-layout", &["--test", "it", "advise"]),
    ("newsreel-testkit", &["--test", "it"]),
];

pub(crate) fn run() -> Result<()> {
    for (package, words) in BLESSED {
        rewrite(package, words)?;
    }
    Ok(())
}

/// Runs some tests of a package with leave to rewrite what they expect.
pub(crate) fn rewrite(package: &str, words: &[&str]) -> Result<()> {
    let status = Command::new("cargo")
        .args(["test", "--locked", "--package", package])
        .args(words)
        .current_dir(crate::root())
        .env("NEWSREEL_BLESS", "1")
        .env("UPDATE_EXPECT", "1")
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!(
            "cargo test --package {package} {} failed ({status})",
            words.join(" ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a test learns that it may rewrite: by itself, or by the macro for golden texts.
    const SIGNS: &[&str] = &["\"NEWSREEL_BLESS\"", "expect!["];

    /// A test that can rewrite what it expects is run by `bless`, or the table's words are wrong.
    #[test]
    fn every_test_that_can_rewrite_is_run() {
        let tree = crate::tree::Tree::load(&crate::root()).unwrap();
        let mut able = std::collections::BTreeSet::new();
        for (path, text) in tree.under("crates/") {
            let (folder, path) = path["crates/".len()..].split_once('/').unwrap();
            if folder != "xtask" && SIGNS.iter().any(|sign| text.contains(sign)) {
                let part = match path.starts_with("tests/") {
                    true => "--test",
                    false => "--lib",
                };
                able.insert((format!("newsreel-{folder}"), part));
            }
        }
        let run = BLESSED
            .iter()
            .map(|(package, words)| ((*package).to_owned(), words[0]));
        assert_eq!(able, run.collect());
    }
}
