//! Batches that go out: written beside a running server and without one, taken whole by rnews, and neither lost nor doubled.

use std::path::PathBuf;
use std::time::Duration;

use newsreel_host::{Disk as _, RealDisk};
use serde_json::Value;

use crate::client::NewsClient;
use crate::spool::{Server, Spool, newsreel, said};

/// A site with a neighbour that gets batches.
fn site(feed: &str) -> (Spool, Server) {
    let spool = Spool::with(&format!(
        "{}\n[[peer]]\nname = 'leaf.example'\n[[peer.feed]]\nkind = 'batch'\n{feed}",
        Spool::changed(&[(
            "[articles]",
            "[engine]\npath_identity = 'us.example'\n\n[articles]"
        )])
    ));
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    (spool, server)
}

fn receive(server: &Server, numbers: std::ops::Range<u32>) {
    let mut feeder = NewsClient::connect(server.address);
    for n in numbers {
        let said = feeder.takethis(&format!("<{n}@t.example>"), "misc.test");
        assert!(said.starts_with("239"), "{said}");
    }
}

fn files(report: &Value) -> Vec<PathBuf> {
    let batches = report["feeds"][0]["batches"].as_array().unwrap().iter();
    let paths = batches.map(|batch| batch["file"].as_str().unwrap());
    paths.map(PathBuf::from).collect()
}

/// How feeds stand, and why an article does not go out, only a running server said; and of several reasons it said one.
#[test]
fn feeds_are_shown_without_a_server() {
    let (spool, server) =
        site("groups = 'alt.*'\nposted_only = true\n[[peer.feed]]\nname = 'two'\nkind = 'batch'\n");
    receive(&server, 0..20);
    let explained = |more: &str| {
        let said = spool.text(&["peer", "explain", "<1@t.example>"]);
        let reasons = "none of its groups is in `groups`; it was not posted here";
        assert!(said.contains(reasons) && said.contains(more), "{said}");
    };
    let config = spool.config().display().to_string();
    let waits = format!("goes out; waits in the log; `newsreel batch --config {config}` writes it");
    explained(&waits);
    server.stop();
    explained(&waits);
    let listed = || spool.json(&["peer", "list"]);
    let behind = |report: &Value| report["feeds"][1]["behind"].as_u64().unwrap();
    assert_eq!(listed()["running"], false);
    assert_eq!(behind(&listed()), 20);
    let said = spool.text(&["peer", "list"]);
    assert!(said.contains("no server is running"), "{said}");
    assert!(
        spool
            .text(&["peer", "show", "leaf.example/two"])
            .contains("behind in the log")
    );
    let dry = spool.text(&["peer", "drop-backlog", "leaf.example/two", "--dry-run"]);
    let words = "would be given up: 0 articles in memory, and 20 of the log";
    assert!(dry.starts_with(words), "{dry}");
    assert_eq!(behind(&listed()), 20);
    spool.text(&["peer", "drop-backlog", "leaf.example/two"]);
    assert_eq!(behind(&listed()), 0);
    let why = spool.error(&["peer", "pause", "leaf.example"]);
    assert!(why.contains("server"), "{why}");
    let server = spool.serve();
    assert_eq!(behind(&listed()), 0);
    server.stop();
}

/// Each start of a server, and each command that changed something without one, added the 65,536 sequences that it passes over to what waits
/// for a feed; and what did not go out by it, and was no article, counted too.
#[test]
fn what_a_start_passes_over_does_not_wait() {
    let (spool, mut server) = site("");
    let behind = || spool.json(&["peer", "list"])["feeds"][0]["behind"].as_u64();
    for nth in 0..3 {
        receive(&server, nth..nth + 1);
        server.kill();
        spool.text(&["group", "add", &format!("other.{nth}")]);
        server = spool.serve();
    }
    receive(&server, 3..4);
    assert_eq!(behind(), Some(4));
    let dropped = spool.json(&["peer", "drop-backlog", "leaf.example", "--dry-run"]);
    assert_eq!(dropped["behind"].as_u64(), behind(), "{dropped}");
    let report = spool.json(&["batch", "leaf.example"]);
    assert_eq!(report["feeds"][0]["articles"], 4, "{report}");
    assert_eq!(behind(), Some(0));
    server.stop();
}

#[test]
fn batches_are_written_beside_a_server_and_without_one_and_taken_whole() {
    let (spool, server) = site("batch_octets_max = 2000\n");
    let leaf = Spool::new();
    let leaf_server = leaf.serve();
    leaf.text(&["group", "add", "misc.test"]);
    let mut from = 0;
    let mut taken = 0;
    for packing in ["none", "gzip", "bzip2", "zstd"] {
        receive(&server, from..from + 10);
        from += 10;
        let dry = spool.json(&["batch", "leaf.example", "--dry-run"]);
        assert_eq!(dry["feeds"][0]["articles"], 10, "{dry}");
        let report = spool.json(&["batch", "leaf.example", "--packing", packing]);
        let batches = files(&report);
        assert!(batches.len() > 1, "{report}");
        for batch in batches {
            let said = leaf.json(&["rnews", batch.to_str().unwrap()]);
            assert_eq!(said["damaged"], 0, "{said}");
            taken += said["accepted"].as_u64().unwrap();
        }
    }
    assert_eq!(taken, 40);
    receive(&server, 40..50);
    server.stop();
    // What there was is in its files still; what came since is written without a server.
    let report = spool.json(&["batch", "leaf.example/all", "--octets", "1000000"]);
    assert!(report["feeds"][0]["waiting"].as_array().unwrap().len() > 4);
    let batches = files(&report);
    assert_eq!(batches.len(), 1, "{report}");
    let said = leaf.json(&["rnews", batches[0].to_str().unwrap()]);
    assert_eq!(said["accepted"], 10, "{said}");
    // The server goes on where the command was.
    let server = spool.serve();
    receive(&server, 50..51);
    let said = spool.text(&["batch", "leaf.example"]);
    assert!(said.starts_with("leaf.example/all: 1 article, "), "{said}");
    let wrong = spool.error(&["batch", "nobody.example"]);
    assert!(
        wrong.contains("there is no peer \"nobody.example\""),
        "{wrong}"
    );
    let mut reader = NewsClient::connect(leaf_server.address);
    assert!(reader.ask("GROUP misc.test").starts_with("211 50 "));
    server.stop();
    leaf_server.stop();
}

/// A disk with a file for each article is read by group and number, within what goes into one batch.
#[test]
fn a_batch_goes_by_group_and_number() {
    let order = |feed: &str| -> Vec<Vec<String>> {
        let (spool, server) = site(&format!("packing = 'none'\n{feed}"));
        spool.text(&["group", "add", "misc.other"]);
        let mut feeder = NewsClient::connect(server.address);
        for n in 0..9 {
            let group = ["misc.other", "misc.test"][n % 2];
            let said = feeder.takethis(&format!("<{n}@t.example>"), group);
            assert!(said.starts_with("239"), "{said}");
        }
        let report = spool.json(&["batch", "leaf.example"]);
        server.stop();
        let ids = |file: PathBuf| {
            let text = newsreel_host::read_whole(&RealDisk, &file, 1 << 20).unwrap();
            let text = String::from_utf8(text).unwrap();
            let ids = text
                .lines()
                .filter_map(|line| line.strip_prefix("Message-ID: <"));
            ids.map(|id| id[..1].to_owned()).collect()
        };
        files(&report).into_iter().map(ids).collect()
    };
    assert_eq!(order(""), [["0", "1", "2", "3", "4", "5", "6", "7", "8"]]);
    // misc.test was there first.
    assert_eq!(
        order("by_group = true\narticles_max = 4\n"),
        [["1", "3", "0", "2", "5", "7", "4", "6", "8"]]
    );
    // A batch ends where the log does: what is in the next came later.
    let parts = order("by_group = true\nbatch_octets_max = 1024\n");
    assert!(parts.len() > 1, "{parts:?}");
    let mut last = None;
    for part in parts {
        let (first, end) = (part.iter().min().cloned(), part.iter().max().cloned());
        assert!(last < first, "{first:?} behind {last:?}");
        last = end;
    }
}

/// Gives the batches to a shell that reads this.
fn given_to(spool: &Spool, script: &str) -> Result<String, String> {
    let mut command = newsreel();
    command
        .args(["batch", "leaf.example", "--config"])
        .arg(spool.config())
        .args(["--", "/bin/sh", "-c", script]);
    said(command.output().unwrap())
}

/// A program gets each batch; what it does not take stays.
#[test]
fn a_program_gets_the_batches_and_keeps_their_order() {
    let (spool, server) = site("packing = 'none'\nbatch_octets_max = 1024\n");
    receive(&server, 0..9);
    let out = spool.folder().join("out");
    let script = format!(
        "test $(cat {0} 2> /dev/null | grep -c '^#! rnews') -lt 4 || exit 1; cat >> {0}",
        out.display()
    );
    let failed = given_to(&spool, &script).unwrap_err();
    assert!(
        failed.contains("/bin/sh failed") && failed.contains("stays in"),
        "{failed}"
    );
    RealDisk.remove(&out).unwrap();
    let script = format!("cat >> {}", out.display());
    let told = given_to(&spool, &script).unwrap();
    assert!(told.contains("batches handed over"), "{told}");
    let text = newsreel_host::read_whole(&RealDisk, &out, 1 << 20).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("<8@t.example>") && !text.contains("<0@t.example>"),
        "{text}"
    );
    let folder = spool.path().join("batches/out/leaf.example");
    assert_eq!(RealDisk.list(&folder).unwrap(), []);
    server.stop();
}

/// The command is killed again and again, alone on the spool, while somebody takes finished batches away.
#[test]
fn a_kill_loses_and_doubles_nothing() {
    let (spool, server) = site("packing = 'none'\nbatch_octets_max = 3000\n");
    receive(&server, 0..300);
    server.stop();
    let folder = spool.path().join("batches/out/leaf.example");
    let mut ids = Vec::new();
    let mut take_away = || {
        for entry in RealDisk.list(&folder).unwrap_or_default() {
            if entry.name.ends_with(".batch") {
                let path = folder.join(&entry.name);
                let text = newsreel_host::read_whole(&RealDisk, &path, 1 << 20).unwrap();
                let text = String::from_utf8(text).unwrap();
                let found = text
                    .lines()
                    .filter_map(|line| line.strip_prefix("Message-ID: "));
                ids.extend(found.map(str::to_owned));
                RealDisk.remove(&path).unwrap();
            }
        }
    };
    let mut killed = 0;
    for round in 1..60 {
        let mut command = newsreel();
        command
            .args(["batch", "leaf.example", "--config"])
            .arg(spool.config());
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(4 * round));
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        take_away();
    }
    spool.text(&["batch", "leaf.example"]);
    take_away();
    assert!(killed > 5, "{killed}");
    ids.sort_unstable();
    let mut expected: Vec<String> = (0..300).map(|n| format!("<{n}@t.example>")).collect();
    expected.sort_unstable();
    assert_eq!(ids, expected);
}

/// Two feeds that called one directory by two names shared the names of what is being written there.
#[test]
#[expect(clippy::disallowed_methods, reason = "another name of a directory")]
fn no_two_feeds_write_to_one_directory_whatever_they_call_it() {
    let feed =
        |name: &str, more: &str| format!("[[peer]]\nname = '{name}'\n[[peer.feed]]\n{more}\n");
    let batch =
        |name: &str, folder: &str| feed(name, &format!("kind = 'batch'\nfolder = '{folder}'"));
    let usual = Spool::changed(&[]);
    let spool = Spool::with(&(usual.clone() + &batch("a.example", "out")));
    RealDisk
        .create_dir_all(&spool.folder().join("out"))
        .unwrap();
    std::os::unix::fs::symlink("out", spool.folder().join("link")).unwrap();
    let server = spool.serve();
    let whole = spool.folder().join("out").display().to_string();
    let words = "another feed of this name writes batches there";
    for (nth, other) in (1..).zip(["link", "./out", "not-there/../out", &whole]) {
        spool.configure(&(usual.clone() + &batch("a.example", "out") + &batch("b.example", other)));
        let why = spool.error(&["config", "check"]);
        assert!(why.contains(words), "{other}: {why}");
        server.signal("HUP");
        let mut waited = 0;
        while spool.log().matches(words).count() < nth {
            assert!(waited < 1000, "{other}: {}", spool.log());
            std::thread::sleep(Duration::from_millis(10));
            waited += 1;
        }
    }
    server.stop();
    let why = spool.error(&["serve"]);
    assert!(why.contains(words), "{why}");
    // Where nobody says it, it is a directory of the spool.
    let usual_folder = spool.path().join("batches/out/b.example");
    for (first, second) in [
        (
            batch("a.example", &usual_folder.display().to_string()),
            feed("b.example", "kind = 'batch'"),
        ),
        (
            feed("a.example", "kind = 'file'\nfile = 'link/f'"),
            feed("b.example", "kind = 'file'\nfile = 'out/f'"),
        ),
    ] {
        spool.configure(&(usual.clone() + &first + &second));
        let why = spool.error(&["config", "check"]);
        assert!(why.contains("another feed"), "{why}");
    }
    spool.configure(&(usual + &batch("a.example", "out") + &batch("b.example", "out/b")));
    spool.serve().stop();
}
