//! `newsreel bench toaster`, a hundredth of it: fourteen passes in which everything is counted and nothing timed is judged.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use newsreel_bench::rivals::{INN_PROGRAMS, Inn};
use newsreel_host::{Disk as _, RealDisk, read_whole};
use newsreel_testkit::free_ports;
use serde_json::Value;

use crate::scale::{is_full, scaled};
use crate::spool::{newsreel, said};

const SEED: &str = "5";
const BASE_TIME: &str = "1767225600";

#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

/// Runs it in a directory of its own, which is empty afterwards.
fn toaster(words: &[&str]) -> Value {
    // INN's user looks into it.
    let everybody = Permissions::from_mode(0o755);
    let dir = tempfile::Builder::new()
        .permissions(everybody)
        .tempdir()
        .unwrap();
    let work = dir.path().join("work");
    let port = free_ports().unwrap().to_string();
    let mut command = newsreel();
    command.args([
        "bench", "toaster", "--json", "--groups", "50", "--seed", SEED,
    ]);
    command.args(["--warm", "--port", &port]).args(words);
    command.arg("--directory").arg(&work);
    let output = command.output().unwrap();
    // The port of figures is that of the machine's own server.
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("listening") && !told.contains("Prometheus"),
        "{told}"
    );
    let report = said(output).unwrap_or_else(|why| panic!("{words:?}: {why}"));
    // Neither spools nor images nor mount points stay.
    assert_eq!(RealDisk.list(&work).unwrap(), [], "{words:?}");
    serde_json::from_str(&report).unwrap()
}

fn runs(report: &Value) -> &[Value] {
    report["runs"].as_array().unwrap()
}

/// Each pass took all that it was fed, sent what the one before took, and let go what came six passes before.
fn check(run: &Value, passes: u64, articles: u64) {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} in {run}"));
    let all = run["passes"].as_array().unwrap();
    assert_eq!(all.len() as u64, passes, "{run}");
    let fed = |pass: u64| number(&all[pass as usize - 1]["articles"]);
    assert_eq!((1..=passes).map(fed).sum::<u64>(), articles);
    for (pass, found) in (1..).zip(all) {
        assert_eq!(number(&found["accepted"]), fed(pass), "pass {pass}: {run}");
        let sent = match pass % 3 {
            0 => Some(fed(pass - 1)),
            _ => None,
        };
        assert_eq!(
            found["batch"]["articles"].as_u64(),
            sent,
            "pass {pass}: {run}"
        );
        let gone = number(&found["expire"]["articles"]);
        let came = if pass > 6 { fed(pass - 6) } else { 0 };
        match run["method"].as_str() {
            // What its buffers have overwritten by then cannot go any more.
            Some("cnfs") => assert!(gone <= came, "pass {pass}: {run}"),
            // A crossposted article has several files.
            Some("tradspool") => assert!(
                gone >= came && (gone > 0) == (came > 0),
                "pass {pass}: {run}"
            ),
            _ => assert_eq!(gone, came, "pass {pass}: {run}"),
        }
    }
}

/// What the generator of clones makes of the same originals, said by another command.
fn digest_of(originals: u64) -> Value {
    let mut command = newsreel();
    command.args([
        "bench", "corpus", "--json", "--groups", "50", "--seed", SEED,
    ]);
    command.args(["--base-time", BASE_TIME, "--clones", "2"]);
    command.args(["--articles", &originals.to_string()]);
    let facts: Value = serde_json::from_str(&said(command.output().unwrap()).unwrap()).unwrap();
    facts["digest"].clone()
}

#[test]
fn fourteen_passes_on_a_directory() {
    let originals = scaled(500, 3000);
    let articles = (3 * originals).to_string();
    let report_in = tempfile::tempdir().unwrap();
    let path = report_in.path().join("report");
    let mut words = vec![
        "--places",
        "directory",
        "--articles",
        &articles,
        "--batch-articles",
        "20",
    ];
    words.extend([
        "--methods",
        "cnfs,tradspool-flat",
        "--report",
        path.to_str().unwrap(),
    ]);
    let report = toaster(&words);
    let digest = digest_of(originals);
    assert_eq!(runs(&report).len(), 2);
    for (run, method) in runs(&report).iter().zip(["tradspool-flat", "cnfs"]) {
        assert_eq!((&run["method"], &run["digest"]), (&method.into(), &digest));
        check(run, 14, 3 * originals);
        assert!(run["ageing"].as_f64().unwrap() > 0.0 && run["eight_to_seven"].is_number());
    }
    let text = |name: &str| {
        let octets = read_whole(&RealDisk, Path::new(&path.join(name)), 1 << 20).unwrap();
        String::from_utf8(octets).unwrap()
    };
    for figure in ["2", "3", "4", "5"] {
        let picture = text(&format!("{figure}.svg"));
        assert!(picture.contains("directory newsreel cnfs"), "{figure}");
    }
    let page = text("figures.md");
    assert!(
        page.contains("**Figure 5") && page.contains("seed 5"),
        "{page}"
    );
    let kept: Value = serde_json::from_str(&text("report.json")).unwrap();
    assert_eq!(kept, report);
}

#[test]
fn inn_is_fed_the_same() {
    let inn = Path::new(INN_PROGRAMS);
    if newsreel_host::process::own_uid() != 0 || !Inn::is_installed(inn) {
        return skipped("INN is not installed, or this is not root");
    }
    let words = [
        "--places",
        "directory",
        "--articles",
        "300",
        "--passes",
        "9",
    ];
    let more = [
        "--batch-articles",
        "10",
        "--methods",
        "segment",
        "--inn",
        INN_PROGRAMS,
    ];
    let variants = ["--variants", "plain,history-order,same-disk"];
    let report = toaster(&[&words[..], &more, &variants].concat());
    let digest = digest_of(100);
    let names: Vec<_> = runs(&report)
        .iter()
        .map(|run| {
            (
                run["server"].as_str().unwrap(),
                run["variant"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("newsreel", "plain"),
        ("newsreel", "same-disk"),
        ("inn", "plain"),
        ("inn", "same-disk"),
        ("inn", "history-order"),
    ];
    assert_eq!(names, expected);
    for run in runs(&report) {
        assert_eq!(run["digest"], digest);
        check(run, 9, 300);
    }
}

#[test]
fn every_place_takes_articles() {
    if newsreel_host::process::own_uid() != 0 {
        return skipped("only root can mount");
    }
    if !is_full() {
        return skipped("images are written out in full: only where there is time");
    }
    // The last are managed directories without a mount, and the filer's other option.
    let all = "ext4,xfs,btrfs,ext2,tmpfs,joined,stripe,mirror,usenetfs,directory";
    for (places, methods, variants, many) in [
        (all, "tradspool-flat", "plain", 10),
        ("ext4,directory", "tradspool-range1024", "plain", 2),
        ("ext4", "tradspool-flat", "no-read-ahead", 1),
    ] {
        let words = ["--articles", "900", "--passes", "9", "--places", places];
        let report =
            toaster(&[&words[..], &["--methods", methods, "--variants", variants]].concat());
        // Only what this machine has not got may be left out, and is named; all else that goes wrong has ended the command with an error.
        let skips = report["skipped"].as_array().unwrap();
        for skip in skips {
            let why = skip["why"].as_str().unwrap();
            skipped(&format!("{}: {why}", skip["what"]));
            assert!(why.starts_with("this machine lacks "), "{skip}");
            assert_eq!(skip["is_failure"], false, "{skip}");
        }
        assert_eq!(runs(&report).len() + skips.len(), many, "{report}");
        for run in runs(&report) {
            check(run, 9, 900);
        }
    }
}
