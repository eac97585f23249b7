//! Replays the committed fuzz corpora of all parsers with a stable compiler.
//!
//! The targets' functions are included from the fuzz package, which is outside the workspace; each target must have
//! its file, its row in the manifest and at least one input, and no corpus may be without a target.

#[path = "../../../../fuzz/src/spool.rs"]
#[expect(
    unreachable_pub,
    reason = "public in the fuzz package, of which it is a part"
)]
mod spool;
#[path = "../../../../fuzz/src/wire.rs"]
#[expect(
    unreachable_pub,
    reason = "public in the fuzz package, of which it is a part"
)]
#[expect(clippy::expect_used, reason = "a fuzz target fails by panicking")]
mod wire;

use std::path::{Path, PathBuf};

use newsreel_host::{Disk, RealDisk, read_whole};

/// Module, name, function.
fn targets() -> impl Iterator<Item = (&'static str, &'static str, fn(&[u8]))> {
    let of = |module, targets: &'static [wire::Target]| {
        targets.iter().map(move |(name, run)| (module, *name, *run))
    };
    of("spool", spool::TARGETS).chain(of("wire", wire::TARGETS))
}

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = RealDisk.list(folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries
        .iter()
        .map(|entry| folder.join(&entry.name))
        .collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> Vec<u8> {
    read_whole(&RealDisk, path, 1 << 20)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn replays_every_committed_input() {
    for (_, name, target) in targets() {
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
    for (module, name, _) in targets() {
        let file = read(&fuzz_folder().join(format!("fuzz_targets/{name}.rs")));
        assert!(
            String::from_utf8_lossy(&file).contains(&format!("{module}::{name}(data)")),
            "{name}"
        );
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "{name} is not in Cargo.toml"
        );
    }
    for corpus in list(&fuzz_folder().join("corpus")) {
        let name = corpus.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            targets().any(|target| target.1 == name),
            "{name} has no target"
        );
    }
    for module in ["spool", "wire"] {
        let text = String::from_utf8(read(&fuzz_folder().join(format!("src/{module}.rs"))));
        let functions = text.unwrap();
        let names = functions
            .lines()
            .filter_map(|line| line.strip_prefix("pub fn "));
        for name in names.filter_map(|line| line.split('(').next()) {
            assert!(
                targets().any(|target| target.1 == name),
                "{name} is not in TARGETS"
            );
        }
    }
}

/// Inputs that are whole get through, so that the targets reach what lies behind the first check.
#[test]
fn whole_inputs_are_taken() {
    let input = |name: &str| read(&fuzz_folder().join("corpus").join(name));
    for name in ["article", "group", "reserved", "removed", "state", "jumped"] {
        let octets = input(&format!("log_record/{name}"));
        let (kind, payload) = octets.split_first().unwrap();
        assert!(
            newsreel_engine::fuzz::decode_record(*kind, payload),
            "{name}"
        );
    }
    assert_eq!(
        newsreel_index::fuzz::decode_parts(&input("sealed_parts/columns")),
        1
    );
    let segment = newsreel_journal::decode_segment(&input("log_segment/small")).unwrap();
    assert!(segment.frames > 3 && segment.damaged == 0, "{segment:?}");
}
