//! Every package that is linked may be shipped under "Apache-2.0 OR MIT": its licence is on a short list.
//!
//! A test only: it asks cargo for the packages of the lock file, which a build has fetched already.

use std::process::Command;

/// Licences that ask for nothing but their notice.
const FINE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "bzip2-1.0.6",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether a licence expression can be fulfilled with what is fine.  (`a OR b` and `a AND b`, brackets around ORs.)
fn is_fine(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let all = expression.split(" AND ");
    all.into_iter().all(|part| {
        part.trim_matches(['(', ')', ' '])
            .split(" OR ")
            .any(|licence| FINE.contains(&licence.trim_matches(['(', ')', ' '])))
    })
}

#[test]
fn every_licence_is_compatible() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--format-version", "1"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(crate::root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(
        packages.len() > 50,
        "the list of packages is too short to be true"
    );
    for package in packages {
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(is_fine(licence), "{} is under {licence:?}", package["name"]);
    }
}

#[test]
fn expressions_are_understood() {
    assert!(is_fine("MIT OR Apache-2.0"));
    assert!(is_fine("MIT/GPL-3.0"));
    assert!(is_fine("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(!is_fine("MIT AND GPL-3.0"));
    assert!(!is_fine("GPL-2.0-only"));
    assert!(!is_fine(""));
}
