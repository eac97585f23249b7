//! `newsreel bench storage`, little of it: every method on a file system of its own, counted, drawn, and nothing left behind.

use std::path::Path;

use newsreel_host::{Disk as _, RealDisk, read_whole};
use newsreel_testkit::free_ports;
use serde_json::Value;

use crate::scale::is_full;
use crate::spool::{newsreel, said};

/// One that keeps files, one that makes them on demand, one that has them; all of them where there is time.
const SOME: [&str; 3] = ["tradspool-flat", "segment", "cnfs"];
const ALL: [&str; 6] = [
    "tradspool-flat",
    "tradspool-range1024",
    "timehash",
    "md5spool",
    "segment",
    "cnfs",
];

#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

fn text(path: &Path) -> String {
    String::from_utf8(read_whole(&RealDisk, path, 1 << 20).unwrap()).unwrap()
}

/// Each method has what it is made for: files are inodes, cyclic buffers are none.
fn check(row: &Value, method: &str) {
    let statistics = &row["statistics"];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} in {row}"));
    let batches = row["batches"].as_array().unwrap();
    assert_eq!((&row["method"], batches.len()), (&method.into(), 4));
    for batch in batches {
        assert_eq!(batch["articles"], 60, "{row}");
        assert!(number(&batch["seconds"]) > 0.0 && number(&batch["octets"]) > 60_000.0);
        assert!(
            (2..=50).contains(&batch["groups"].as_u64().unwrap()),
            "{row}"
        );
    }
    assert_eq!(row["short"]["articles"], 100, "{row}");
    let whole = &row["whole"];
    assert!(number(&whole["written_ratio"]) > 0.9, "{row}");
    let device = &statistics["device"];
    assert!(number(&device["writes"]) >= 4.0, "{row}");
    assert!(
        number(&whole["device"]["writes"]) > number(&device["writes"]),
        "{row}"
    );
    if let Some(made) = statistics["calls"]["inodes_made"].as_u64() {
        let files = !matches!(method, "cnfs" | "segment");
        assert_eq!(made >= 4 * 60, files, "{row}");
    } else {
        assert!(statistics["calls_untold"].is_string(), "{row}");
    }
}

/// The bare calls of the methods of files that have them, once made durable and once not.
fn check_bare(rows: &[&Value], methods: &[&str]) {
    let held = methods
        .iter()
        .filter(|method| matches!(**method, "tradspool-flat" | "timehash"));
    let held: Vec<&str> = held.copied().collect();
    let expected = ["bare", "unsynced"].map(|server| held.iter().map(move |one| (server, *one)));
    let expected: Vec<(&str, &str)> = expected.into_iter().flatten().collect();
    assert_eq!(rows.len(), expected.len(), "{rows:?}");
    for (row, (server, method)) in rows.iter().zip(expected) {
        assert_eq!(row["server"], server);
        check(row, method);
        let flushes = row["statistics"]["device"]["flushes"].as_u64();
        assert!(server == "unsynced" || flushes >= Some(4), "{row}");
    }
}

#[test]
fn a_small_run_counts_and_draws() {
    if newsreel_host::process::own_uid() != 0 {
        return skipped("only root can mount");
    }
    let dir = tempfile::tempdir().unwrap();
    let (work, report) = (dir.path().join("work"), dir.path().join("report"));
    let port = free_ports().unwrap().to_string();
    let mut command = newsreel();
    command.args([
        "bench",
        "storage",
        "--json",
        "--file-systems",
        "ext4",
        "--port",
        &port,
    ]);
    command.args([
        "--articles",
        "60",
        "--small",
        "100",
        "--groups",
        "50",
        "--buffers",
        "16",
    ]);
    command
        .arg("--directory")
        .arg(&work)
        .arg("--report")
        .arg(&report);
    let methods = if is_full() { &ALL[..] } else { &SOME };
    command.args(["--methods", &methods.join(",")]);
    let rows = match said(command.output().unwrap()) {
        Ok(rows) => rows,
        Err(why) if why.contains("mke2fs") || why.contains("mount:") => {
            return skipped(&format!("no file system can be made and mounted: {why}"));
        }
        Err(why) => panic!("{why}"),
    };
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let (rows, bare): (Vec<&Value>, Vec<&Value>) =
        rows.iter().partition(|row| row["server"] == "newsreel");
    assert_eq!(rows.len(), methods.len());
    for (row, method) in rows.iter().zip(methods) {
        check(row, method);
    }
    check_bare(&bare, methods);
    let factors: Vec<bool> = rows.iter().map(|row| row["factor"].is_number()).collect();
    let all_but_first: Vec<bool> = (0..methods.len()).map(|place| place > 0).collect();
    assert_eq!(factors, all_but_first);
    for figure in ["8", "9"] {
        let picture = text(&report.join(format!("ext4-{figure}.svg")));
        assert!(picture.starts_with("<svg"), "{figure}");
        for method in methods {
            let bars = picture.matches(&format!("newsreel {method}")).count();
            assert_eq!(bars, 1, "{figure}: {method}");
        }
    }
    let page = text(&report.join("figures.md"));
    assert!(
        page.contains("| path look-ups |") && page.contains("| newsreel cnfs |"),
        "{page}"
    );
    // Neither images nor mount points stay.
    assert_eq!(RealDisk.list(&work).unwrap(), []);
}

/// The figures without syncs could be had by a configuration alone.
#[test]
fn a_run_without_syncs_has_none() {
    if newsreel_host::process::own_uid() != 0 {
        return skipped("only root can mount");
    }
    let dir = tempfile::tempdir().unwrap();
    let flushes = |durability: &str| {
        let work = dir.path().join(durability);
        let port = free_ports().unwrap().to_string();
        let mut command = newsreel();
        command.args(["bench", "storage", "--json", "--file-systems", "ext4"]);
        command.args(["--articles", "60", "--small", "0", "--groups", "50"]);
        command.args(["--buffers", "16", "--methods", "cnfs", "--port", &port]);
        command.args(["--durability", durability, "--directory"]);
        let rows: Value =
            serde_json::from_str(&said(command.arg(&work).output().unwrap())?).unwrap();
        let flushes = &rows[0]["statistics"]["device"]["flushes"];
        Ok::<u64, String>(flushes.as_u64().unwrap_or_else(|| panic!("{rows}")))
    };
    let synced = match flushes("group-commit") {
        Ok(flushes) => flushes,
        Err(why) if why.contains("mke2fs") || why.contains("mount:") => {
            return skipped(&format!("no file system can be made and mounted: {why}"));
        }
        Err(why) => panic!("{why}"),
    };
    let without = flushes("none").unwrap();
    // The last writing of all is counted, too.
    assert!(without + 4 <= synced, "{without} and {synced} flushes");
}

/// All but the newest articles of a small run expire, and where they lay nothing is read or written.
#[test]
fn a_small_run_of_expiry_touches_no_article() {
    if newsreel_host::process::own_uid() != 0 {
        return skipped("only root can mount");
    }
    let dir = tempfile::tempdir().unwrap();
    let (work, report) = (dir.path().join("work"), dir.path().join("expiry.md"));
    let port = free_ports().unwrap().to_string();
    let mut command = newsreel();
    command.args(["bench", "expiry", "--json", "--port", &port]);
    command.args(["--articles", "3000", "--groups", "7", "--directory"]);
    command.arg(&work).arg("--report").arg(&report);
    let rows = match said(command.output().unwrap()) {
        Ok(rows) => rows,
        Err(why) if why.contains("mke2fs") || why.contains("mount:") => {
            return skipped(&format!("no file system can be made and mounted: {why}"));
        }
        Err(why) => panic!("{why}"),
    };
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let methods = rows.iter().filter_map(|row| row["method"].as_str());
    assert_eq!(methods.collect::<Vec<_>>(), ["cnfs", "segment"]);
    for row in &rows {
        assert_eq!(row["expired"], 2993, "{row}");
        let articles = &row["expiring"]["articles"];
        // The sync that ends the step is a write of nothing.
        let touched = (&articles["read_octets"], &articles["written_octets"]);
        assert_eq!(touched, (&0.into(), &0.into()), "{row}");
        // A record of the log for each.
        let views = &row["expiring"]["views"]["written_octets"];
        assert!(views.as_u64() >= Some(2993 * 30), "{row}");
        let reclaimed = &row["reclaiming"]["views"]["writes"];
        assert!(reclaimed.as_u64() > Some(0), "{row}");
    }
    let table = text(&report);
    assert!(
        table.contains("| cnfs (ext4) | 2993 | expiring |"),
        "{table}"
    );
    assert_eq!(RealDisk.list(&work).unwrap(), []);
}

/// The table of what is asked was put together by hand, from runs of several commands.
#[test]
fn a_small_run_says_what_was_asked_and_seen() {
    if !is_full() {
        return skipped(
            "it takes a minute, and writes a dozen of images: NEWSREEL_TEST_SCALE=full",
        );
    }
    if newsreel_host::process::own_uid() != 0 {
        return skipped("only root can mount");
    }
    let dir = tempfile::tempdir().unwrap();
    let (work, report) = (dir.path().join("work"), dir.path().join("report"));
    let port = free_ports().unwrap().to_string();
    let mut command = newsreel();
    command.args(["bench", "storage", "--json", "--goals", "--part", "500"]);
    command.args(["--file-systems", "ext4", "--methods", "cnfs"]);
    command.args(["--articles", "60", "--small", "0", "--groups", "50"]);
    command.args(["--buffers", "16", "--port", &port, "--directory"]);
    command.arg(&work).arg("--report").arg(&report);
    let found = match said(command.output().unwrap()) {
        Ok(found) => found,
        Err(why) if why.contains("mke2fs") || why.contains("mount:") => {
            return skipped(&format!("no file system can be made and mounted: {why}"));
        }
        Err(why) => panic!("{why}"),
    };
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["figures"].as_array().unwrap().len(), 1);
    let mut bounds = Vec::new();
    for line in found["goals"].as_array().unwrap() {
        if let Some(missing) = line["not-measured"].as_object() {
            let (what, why) = (&missing["what"], missing["why"].as_str().unwrap());
            let is_known = ["--methods", "--fastrm", "strace cannot be run"];
            let is_known = is_known.iter().any(|known| why.contains(known));
            assert!(is_known, "{what}: {why}");
        } else if let Some(bound) = line["of-a-part"]["goal"].as_object() {
            assert_eq!(line["of-a-part"]["part"], 500);
            let (what, asked) = (bound["what"].as_str().unwrap(), &bound["asked"]);
            bounds.push((
                what,
                asked.as_f64().unwrap(),
                bound["measured"].as_f64().unwrap(),
            ));
        }
    }
    let of = |begin: &str| -> Vec<(f64, f64)> {
        let chosen = bounds.iter().filter(|(what, ..)| what.starts_with(begin));
        chosen
            .map(|(_, asked, measured)| (*asked, *measured))
            .collect()
    };
    let written = of("cnfs: octets written");
    let asked: Vec<f64> = written.iter().map(|(asked, _)| *asked).collect();
    assert_eq!(asked, [1.6, 1.05]);
    assert!(written.iter().all(|(_, seen)| *seen > 0.9), "{written:?}");
    for method in ["cnfs", "segment"] {
        let touched = of(&format!("{method}: octets read and written"));
        assert_eq!(touched, [(0.0, 0.0)], "{method}");
        for (asked, calls) in of(&format!("{method}: calls that read")) {
            assert!((1.0..=asked).contains(&calls), "{method}: {calls} calls");
        }
    }
    assert!(
        of("cancels in a second")
            .iter()
            .all(|(_, rate)| *rate > 0.0)
    );
    let opening = of("20 buffers");
    assert!(opening.len() == 2 && opening[1].1 > 1.0, "{opening:?}");
    let table = text(&report.join("goals.md"));
    assert!(
        !table.contains("| met |") && !table.contains("| missed |"),
        "{table}"
    );
    let lines = found["goals"].as_array().unwrap().len();
    assert_eq!(table.lines().count(), lines + 2, "{table}");
    assert!(
        table.contains("| segment: octets of log and views"),
        "{table}"
    );
    assert_eq!(RealDisk.list(&work).unwrap(), []);
}
