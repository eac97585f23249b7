//! Replays the committed fuzz corpora of this crate's parsers with a stable compiler.
//!
//! The targets' functions are included from the fuzz package, which is outside the workspace; each target must have
//! its file, its row in the manifest and at least one input, and no corpus may be without a target.

#[path = "../../../../fuzz/src/wire.rs"]
#[expect(
    unreachable_pub,
    reason = "public in the fuzz package, of which it is a part"
)]
#[expect(clippy::expect_used, reason = "a fuzz target fails by panicking")]
mod targets;

use std::path::{Path, PathBuf};

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test reads committed files; this crate knows no disk"
)]
fn list(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test reads committed files; this crate knows no disk"
)]
fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn replays_every_committed_input() {
    for (name, target) in targets::TARGETS {
        let inputs = list(&fuzz_folder().join("corpus").join(name));
        assert!(!inputs.is_empty(), "target {name} has no inputs");
        for path in inputs {
            let input = read(&path);
            // So that a failure names the file.
            println!("{}", path.display());
            target(&input);
        }
    }
}

#[test]
fn every_target_is_complete() {
    let manifest = String::from_utf8(read(&fuzz_folder().join("Cargo.toml"))).unwrap();
    let entries = String::from_utf8(read(&fuzz_folder().join("src/wire.rs"))).unwrap();
    for (name, _) in targets::TARGETS {
        let file = read(&fuzz_folder().join(format!("fuzz_targets/{name}.rs")));
        assert!(
            String::from_utf8_lossy(&file).contains(&format!("wire::{name}(data)")),
            "{name}"
        );
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "{name} is not in Cargo.toml"
        );
    }
    for function in entries
        .lines()
        .filter_map(|line| line.strip_prefix("pub fn "))
    {
        let name = function.split('(').next().unwrap();
        assert!(
            targets::TARGETS.iter().any(|(target, _)| *target == name),
            "{name} is not in TARGETS"
        );
    }
}
