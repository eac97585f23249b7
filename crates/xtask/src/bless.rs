//! Rewrites what tests expect: golden texts, transcripts' replies, generated pages.
//!
//! It only runs the tests that know how, with the variables that tell them to; a person reads the diff.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Tests that rewrite what they compare with: package, words for its test binaries.
const BLESSED: &[(&str, &[&str])] = &[
    ("newsreel-app", &["--test", "it", "transcripts"]),
    ("newsreel-app", &["--test", "it", "docs"]),
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
