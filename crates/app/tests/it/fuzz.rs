//! Replays the committed fuzz corpora of all parsers with a stable compiler.
//!
//! The targets' functions are included from the fuzz package, which is outside the workspace; each target must have
//! its file, its row in the manifest and at least one input, and no corpus may be without a target.

#[path = "../../../../fuzz/src/app.rs"]
#[expect(
    unreachable_pub,
    reason = "public in the fuzz package, of which it is a part"
)]
mod app;
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

use newsreel_bench::fuzz::Saw;
use newsreel_host::{Disk, RealDisk, read_whole};

/// Module, name, function.
fn targets() -> impl Iterator<Item = (&'static str, &'static str, fn(&[u8]))> {
    let of = |module, targets: &'static [wire::Target]| {
        targets.iter().map(move |(name, run)| (module, *name, *run))
    };
    of("app", app::TARGETS)
        .chain(of("spool", spool::TARGETS))
        .chain(of("wire", wire::TARGETS))
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
    for module in ["app", "spool", "wire"] {
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
    let records = [
        "article",
        "group",
        "reserved",
        "removed",
        "state",
        "jumped",
        "withdrawn",
        "cancel-pending",
        "feed",
        "copy",
        "moved",
        "repacked",
        "repacked-to-nothing",
        "heeded",
        "heeded-list",
        "heeded-approved",
        "heeded-list-says",
        "heeded-share",
        "waiting",
    ];
    for name in records {
        let octets = input(&format!("log_record/{name}"));
        let (kind, payload) = octets.split_first().unwrap();
        assert!(
            newsreel_engine::fuzz::decode_record(*kind, payload),
            "{name}"
        );
    }
    assert!(newsreel_mail::fuzz::decode(&input("waiting_mail/one")));
    assert!(newsreel_users::fuzz::decode(&input("users/two")));
    assert!(newsreel_net::fuzz::decode_logins(&input("logins/two")));
    assert!(newsreel_net::fuzz::decode_made_logins(&input(
        "logins/rows"
    )));
    assert!(newsreel_cache::fuzz::decode(&input("cache_values/block")));
    assert!(newsreel_cache::fuzz::decode(&input("cache_values/post")));
    assert!(newsreel_engine::fuzz::decode_keyring(&input(
        "control_keys/two"
    )));
    let unsorted = input("control_keys/not-in-order");
    assert!(!newsreel_engine::fuzz::decode_keyring(&unsorted));
    let asked = |name: &str| {
        newsreel_engine::fuzz::control_message(&input(&format!("control_message/{name}")))
    };
    assert_eq!(asked("newgroup-signed"), Some((1, Some(385))));
    assert_eq!(asked("newgroup"), Some((1, None)));
    // One of its two groups is in a hierarchy that it leaves out.
    assert_eq!(asked("checkgroups"), Some((1, None)));
    let rules = |name: &str| {
        let text = String::from_utf8(input(&format!("control_rules/{name}")));
        newsreel_app::fuzz::policies(&text.unwrap())
    };
    assert_eq!((rules("control-ctl"), rules("policy")), ((4, 1), (3, 0)));
    parts_are_taken(&input);
    files_are_taken(&input);
    for name in ["yyy", "pairs", "range", "on", "off", "to"] {
        let mark = newsreel_layout::Mark::decode(&input(&format!("directory_mark/{name}")));
        assert!(mark.is_some(), "{name}");
    }
    for (kind, blocks) in [("history", 0), ("groups", 0), ("overview", 3)] {
        let run = newsreel_index::fuzz::open_run(&input(&format!("sealed_run/{kind}")));
        assert!(
            run.as_ref().is_ok_and(|read| *read >= blocks),
            "{kind}: {run:?}"
        );
        let cut = newsreel_index::fuzz::open_run(&input(&format!("sealed_run/{kind}-cut")));
        assert!(cut.is_err(), "{kind}");
    }
    // It asked for a gigabyte of memory.
    let beyond = newsreel_index::fuzz::open_run(&input("sealed_run/overview-group-beyond-all"));
    assert!(beyond.is_err(), "{beyond:?}");
    let page = newsreel_index::fuzz::decode_page(&input("history_page/full"));
    assert_eq!(page, Some(22));
    let register = newsreel_store::fuzz::decode_register(&input("register/two"));
    assert_eq!(register, Some(2));
    assert!(newsreel_engine::fuzz::decode_identity(&input(
        "spool_identity/whole"
    )));
    assert!(newsreel_feed::fuzz::decode_places(&input(
        "feed_places/whole"
    )));
    assert!(!newsreel_feed::fuzz::decode_places(&input(
        "feed_places/cut"
    )));
    assert!(newsreel_feed::fuzz::decode_marks(&input(
        "pull_marks/whole"
    )));
    assert!(!newsreel_feed::fuzz::decode_marks(&input("pull_marks/cut")));
    assert!(newsreel_engine::fuzz::decode_scrub(&input("scrub/whole")));
    assert!(!newsreel_engine::fuzz::decode_scrub(&input("scrub/cut")));
    let xref = input("xref/two");
    let named: Vec<_> = newsreel_engine::fuzz::named(&xref).collect();
    assert_eq!(named, [("misc.test", 3000), ("misc.a", 7)]);
    let text = |name: &str| String::from_utf8(input(name)).unwrap();
    for name in ["last", "small", "buffers", "large_articles", "empty"] {
        let text = text(&format!("configuration/{name}"));
        assert!(newsreel_app::fuzz::configuration(&text), "{name}");
    }
    for name in [
        "status",
        "group-add",
        "dry-run",
        "group-set",
        "group-remove",
        "forget-lost",
        "article",
        "article-cancel",
        "control-try",
    ] {
        let line = input(&format!("control_request/{name}"));
        assert!(newsreel_app::fuzz::control(&line), "{name}");
    }
    let said = newsreel_app::fuzz::answers(&input("answers/taken"));
    assert_eq!(said.as_deref(), Ok("240 <a@b> taken"));
    let mounts = newsreel_host::mounts::mounts_in(&input("mount_table/some"));
    assert_eq!(mounts.len(), 2, "{mounts:?}");
    let listed = newsreel_app::fuzz::import(&input("group_list/descriptions"));
    assert_eq!(listed, (2, 1));
    let came = newsreel_session::fuzz::frame(&input("framer/conversation"), 7);
    assert_eq!(came.len(), 4, "{came:?}");
    let saw = newsreel_bench::fuzz::replies(&input("replies/conversation"), 7, true);
    let blocks = saw.iter().filter(|saw| matches!(saw, Saw::Block(_)));
    assert_eq!((saw.len(), blocks.count()), (8, 3), "{saw:?}");
    let saw = newsreel_bench::fuzz::replies(&input("replies/line-too-long"), 7, true);
    assert_eq!(saw, [Saw::TooLong]);
}

/// Every part of a sealed file that has a decoder of its own.
fn parts_are_taken(input: &dyn Fn(&str) -> Vec<u8>) {
    let parts = [
        "columns",
        "filter",
        "blocks",
        "facts",
        "groups",
        "marks",
        "withdrawn",
    ];
    for (number, name) in parts.into_iter().enumerate() {
        let octets = input(&format!("sealed_parts/{name}"));
        let (part, octets) = octets.split_first().unwrap();
        assert_eq!(usize::from(*part), number, "{name}");
        assert!(newsreel_index::fuzz::decode_part(*part, octets), "{name}");
    }
    for name in ["columns-cut", "blocks-end-elsewhere", "groups-cut"] {
        let octets = input(&format!("sealed_parts/{name}"));
        let (part, octets) = octets.split_first().unwrap();
        assert!(!newsreel_index::fuzz::decode_part(*part, octets), "{name}");
    }
    let manifest = |name: &str| newsreel_index::fuzz::decode_manifest(&input(name));
    assert_eq!(manifest("manifest/whole"), Some(6));
    for name in ["unknown-kind", "claims-more", "newer"] {
        assert_eq!(manifest(&format!("manifest/{name}")), None, "{name}");
    }
}

/// Files that are checked as they are, and behind checksums that were made right.
fn files_are_taken(input: &dyn Fn(&str) -> Vec<u8>) {
    let octets = input("log_segment/small");
    let segment = newsreel_journal::decode_segment(&octets).unwrap();
    assert!(segment.frames > 3 && segment.damaged == 0, "{segment:?}");
    let made = newsreel_journal::decode_made_segment(&octets).unwrap();
    assert_eq!(made, segment);
    let rot = input("log_segment/rot-in-a-frame");
    let rotten = newsreel_journal::decode_segment(&rot).unwrap();
    let made = newsreel_journal::decode_made_segment(&rot).unwrap();
    assert!(rotten.frames < segment.frames, "{rotten:?}");
    assert_eq!(made, segment);

    let buffer = |name: &str| {
        let made = newsreel_store::fuzz::decode_made_buffer(&input(name)).unwrap();
        (made.sound, made.unsound, made.read, made.rescued)
    };
    // Four articles, six scans, head and whole; and where the header was made again, which nothing vouches for, one scan.
    assert_eq!(buffer("buffer/made-whole"), (24, 0, 48, 4));
    assert_eq!(buffer("buffer/made-rot"), (24, 0, 48, 4));
    assert_eq!(buffer("buffer/made-erased"), (18, 0, 36, 3));
    assert_eq!(buffer("buffer/made-claims-more"), (18, 0, 36, 3));
}
