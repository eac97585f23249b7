//! The load generator against the server: every way to feed and to read, little of each, everything verified.
//!
//! Absolute figures are printed and never judged: machines differ.  The soak runs feed, readers and wrapping buffers at
//! the same time and looks at what must not grow.

use std::net::SocketAddr;
use std::process::{Child, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use newsreel_bench::corpus::{Corpus, CorpusArgs};
use newsreel_host::{RealClock, RealDisk, read_whole, replace_file};
use newsreel_testkit::free_ports;
use serde_json::{Value, json};

use crate::client::NewsClient;
use crate::scale::{is_full, scaled};
use crate::soak::Watch;
use crate::spool::{Server, Spool, newsreel};

/// Generated articles: the same in every command of a test.
const CORPUS: [&str; 6] = ["--seed", "7", "--groups", "50", "--base-time", "1767225600"];

const TLS: &str = "[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n";

fn start(words: &[&str], server: &Server, pid: bool) -> Child {
    start_at(words, server, server.address, pid)
}

/// At another address of the server.
fn start_at(words: &[&str], server: &Server, address: SocketAddr, pid: bool) -> Child {
    let (address, id) = (address.to_string(), server.pid().to_string());
    let mut command = newsreel();
    command
        .arg("bench")
        .args(words)
        .args(CORPUS)
        .args(["--json", "--server", &address]);
    if pid {
        command.args(["--pid", &id]);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn report(words: &[&str], output: Output) -> Value {
    let (text, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{words:?}: {errors}\n{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error} in {text}"))
}

fn run(words: &[&str], server: &Server) -> Value {
    report(
        words,
        start(words, server, true).wait_with_output().unwrap(),
    )
}

/// A server with the groups of the corpus.
fn server(config: &str) -> (Spool, Server) {
    let spool = Spool::with(config);
    spool.certify("a.example");
    let server = spool.serve_with(&["--clock", "1767225600"]);
    let mut command = newsreel();
    let names = command
        .args(["bench", "corpus", "--list-groups", "names"])
        .args(CORPUS)
        .output();
    let file = spool.folder().join("groups");
    replace_file(&RealDisk, &file, &names.unwrap().stdout).unwrap();
    spool.text(&["group", "import", &file.display().to_string()]);
    (spool, server)
}

#[test]
fn every_pass_runs_and_finds_nothing_wrong() {
    let listen = ("[listen]", "[listen]\ntls_addresses = [\"127.0.0.1:0\"]");
    let config = Spool::changed(&[("8MiB", "64MiB"), listen]);
    let (spool, server) = server(&format!("{config}\n[control]\ncancels = \"all\"\n{TLS}"));
    let secure = spool.secure_address();
    let step = scaled(300, 3000);
    let mut first = 0;
    let say = |name: &str, found: &Value| {
        let (rate, cpu) = (&found["per_second"], &found["server"]["cpu_us"]);
        println!(
            "{name:28} {:>9.0}/s {:>7.1} us CPU",
            rate.as_f64().unwrap(),
            cpu.as_f64().unwrap()
        );
    };
    for mode in ["takethis", "check", "ihave"] {
        let (from, count) = (first.to_string(), step.to_string());
        let words = [
            "feed",
            "--mode",
            mode,
            "--connections",
            "2",
            "--first",
            &from,
            "--articles",
            &count,
        ];
        let found = run(&words, &server);
        assert_eq!(found["accepted"], step, "{mode}");
        say(&format!("feed {mode}"), &found);
        first += step;
    }
    let all = first.to_string();
    for mode in [
        "article",
        "head",
        "body",
        "stat",
        "over",
        "group",
        "list",
        "listgroup",
        "session",
        "date",
    ] {
        for by in ["id", "number"] {
            let named = matches!(mode, "article" | "head" | "body" | "stat");
            if by == "number" && !named {
                continue;
            }
            let words = [
                "read",
                "--mode",
                mode,
                "--by",
                by,
                "--verify",
                "contents",
                "--connections",
                "4",
                "--quick-ack",
                "--depth",
                "4",
                "--operations",
                "400",
                "--articles",
                &all,
            ];
            let found = run(&words, &server);
            assert_eq!(
                (&found["damaged"], &found["missing"]),
                (&json!(0), &json!(0)),
                "{mode} by {by}"
            );
            say(&format!("read {mode} by {by}"), &found);
        }
    }
    // What is posted gets other fields, so it is no part of what was compared.
    let (from, count) = (first.to_string(), step.to_string());
    let words = ["feed", "--mode", "post", "--connections", "16"];
    let range = ["--first", &from, "--articles", &count];
    let found = run(&[&words[..], &range].concat(), &server);
    assert_eq!(found["accepted"], step, "{found}");
    say("feed post", &found);
    in_layers(&server, secure, first + step);
    // The articles of the first pass go, and nothing else.
    let words = ["feed", "--mode", "cancel", "--connections", "2"];
    let count = step.to_string();
    let found = run(&[&words[..], &["--articles", &count]].concat(), &server);
    assert_eq!(found["accepted"], step, "{found}");
    say("feed cancel", &found);
    let words = ["read", "--mode", "stat", "--order", "sequential"];
    let (all, twice) = (first.to_string(), (2 * step).to_string());
    let range = ["--articles", &all, "--operations", &twice];
    let found = run(&[&words[..], &range].concat(), &server);
    assert_eq!(found["missing"], step, "{found}");
    assert_eq!(spool.json(&["check"])["problems"], json!([]));
    server.stop();
}

/// Feeds and reads in TLS, compressed, and both; everything that is read is compared.
fn in_layers(server: &Server, secure: SocketAddr, mut first: u64) {
    for layers in [&["--tls"][..], &["--compress"], &["--tls", "--compress"]] {
        let has = |layer: &str| layers.contains(&layer);
        let address = match has("--tls") {
            true => secure,
            false => server.address,
        };
        let from = first.to_string();
        let run = |words: &[&str]| {
            let range = ["--articles", "300", "--first", &from];
            let words = [words, layers, &range].concat();
            let output = start_at(&words, server, address, false).wait_with_output();
            report(&words, output.unwrap())
        };
        let found = run(&["feed", "--connections", "2"]);
        assert_eq!(found["accepted"], 300, "{found}");
        let read = ["read", "--depth", "50", "--connections", "2"];
        let found = run(&[&read[..], &["--verify", "contents", "--operations", "600"]].concat());
        assert_eq!(found["compared"], 600, "{found}");
        let said = (&found["tls"], &found["compressed"]);
        assert_eq!(said, (&json!(has("--tls")), &json!(has("--compress"))));
        first += 300;
    }
}

/// Articles of another corpus passed as right when they were asked for by number.
#[test]
fn what_is_no_article_of_the_corpus_is_told() {
    let (_spool, server) = server(&Spool::changed(&[("8MiB", "64MiB")]));
    run(&["feed", "--articles", "300"], &server);
    for (mode, by) in [("article", "number"), ("head", "number"), ("session", "id")] {
        let read = |first: &str| {
            let words = ["read", "--mode", mode, "--by", by, "--verify", "contents"];
            let more = ["--operations", "200", "--articles", "300", "--first", first];
            let words = [&words[..], &more].concat();
            let output = start(&words, &server, true).wait_with_output().unwrap();
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            (output.status.success(), report)
        };
        let (success, report) = read("0");
        let compared = report["compared"].as_u64().unwrap();
        assert!(success && compared > 100, "{mode}: {report}");
        let (success, report) = read("1000");
        let damaged = report["damaged"].as_u64().unwrap();
        assert!(!success && damaged > 100, "{mode}: {report}");
        assert_eq!(report["compared"], 0, "{mode}: {report}");
    }
    server.stop();
}

/// What a server counts and has in its groups: name, largest number, articles.
fn contents(spool: &Spool) -> (Value, Value) {
    let groups = spool.json(&["group", "list"]);
    let groups = groups.as_array().unwrap().iter();
    let counts = groups.map(|group| json!([group["name"], group["high"], group["count"]]));
    let accepted = spool.json(&["status"])["counters"]["accepted"].clone();
    (counts.collect(), accepted)
}

#[test]
fn what_several_peers_offer_at_the_same_time_is_stored_once() {
    let config = Spool::changed(&[("8MiB", "64MiB")]);
    let step = scaled(500, 5000);
    let feed = |server: &Server, words: &[&str], first: u64, articles: u64| {
        let (first, articles) = (first.to_string(), articles.to_string());
        let range = ["--first", &first, "--articles", &articles];
        run(&[&["feed"], words, &range].concat(), server)
    };
    let (spool, several) = server(&config);
    let mut first = 0;
    for mode in ["takethis", "check", "ihave"] {
        let words = ["--mode", mode, "--connections", "4", "--overlap"];
        let found = feed(&several, &words, first, step);
        assert_eq!(
            found["commands"][0]["answered"],
            4 * step,
            "{mode}: {found}"
        );
        assert_eq!(found["accepted"], step, "{mode}: {found}");
        first += step;
    }
    // As many numbers and articles in each group as when one peer offers each article once.
    let (alone, one) = server(&config);
    let found = feed(&one, &["--connections", "1"], 0, first);
    assert_eq!(found["accepted"], first);
    assert_eq!(contents(&spool), contents(&alone));
    let checked = spool.json(&["check"]);
    assert_eq!(checked["articles"], first);
    assert_eq!(checked["problems"], json!([]));
    one.stop();
    several.stop();
}

/// Who forgets the groups is told so, and by more than figures.
#[test]
fn a_feed_of_which_nothing_is_taken_fails_and_says_what_is_missing() {
    let spool = Spool::new();
    let server = spool.serve_with(&["--clock", "1767225600"]);
    let said = |words: &[&str]| {
        let output = start(words, &server, false).wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), error)
    };
    for mode in ["takethis", "check", "ihave"] {
        let (success, error) = said(&["feed", "--mode", mode, "--articles", "20"]);
        let told = error.contains("none of the articles was taken; the server said: 43")
            && error.contains("x 20")
            && error.contains("newsreel bench corpus --list-groups");
        assert!(!success && told, "{mode}: {error}");
    }
    let (success, error) = said(&["feed", "--mode", "check-unknown", "--articles", "20"]);
    assert!(success, "{error}");
    server.stop();
}

/// What the server says is told, and nothing is guessed: these articles are here already, and then too old.
#[test]
fn a_feed_says_why_the_server_did_not_take_it() {
    let (spool, server) = server(&Spool::changed(&[("age_s_max = 0", "age_s_max = \"1d\"")]));
    let fed = |server: &Server, mode: &str, first: &str, reason: &str| {
        let words = ["feed", "--articles", "20", "--first", first, "--mode", mode];
        let output = start(&words, server, false).wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let said = &report["reasons"][0];
        assert_eq!(
            (&said["count"], &said["text"]),
            (&json!(20), &json!(reason)),
            "{mode}"
        );
        let code = &said["code"];
        let expected = format!("none of the articles was taken; the server said: {code}");
        assert!(error.contains(&expected), "{mode}: {error}");
        assert!(error.contains(&format!("{reason} x 20")), "{mode}: {error}");
        assert!(!error.contains("--list-groups"), "{mode}: {error}");
    };
    run(&["feed", "--articles", "20"], &server);
    for (mode, reason) in [
        ("takethis", "Duplicate"),
        ("check", ""),
        ("ihave", "Not wanted"),
        ("post", "An article with this Message-ID is here already"),
    ] {
        fed(&server, mode, "0", reason);
    }
    server.stop();
    let later = (1_767_225_600 + 10 * 86_400).to_string();
    let server = spool.serve_with(&["--clock", &later]);
    spool.text(&["clock", "confirm"]);
    for mode in ["takethis", "check", "ihave"] {
        fed(&server, mode, "100", "Too old");
    }
    fed(&server, "post", "100", "Too old: Date");
    server.stop();
}

#[test]
fn what_is_expected_in_full_must_be_there_in_full() {
    let (_spool, server) = server(&Spool::changed(&[]));
    let done = |words: &[&str]| {
        let output = start(words, &server, false).wait_with_output().unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let feed = ["feed", "--expect-all", "--articles"];
    assert!(done(&[&feed[..], &["20"]].concat()).0);
    let (success, error) = done(&[&feed[..], &["30"]].concat());
    assert!(
        !success && error.contains("10 of 30 articles were taken"),
        "{error}"
    );
    let read = ["read", "--expect-all", "--order", "sequential"];
    let words = ["--operations", "40", "--articles"];
    assert!(done(&[&read[..], &words, &["30"]].concat()).0);
    let (success, error) = done(&[&read[..], &words, &["40"]].concat());
    assert!(
        !success && error.contains("10 of 40 articles that were asked for are not there"),
        "{error}"
    );
    server.stop();
}

#[test]
fn feed_readers_and_wrapping_buffers_go_on_together() {
    // So small that they wrap in the time there is, also on a busy machine.
    let buffer = match scaled(0, 1) {
        0 => "3MiB",
        _ => "16MiB",
    };
    let config = Spool::changed(&[
        ("8MiB", buffer),
        (
            "[log]",
            "[engine]\ncheckpoint_log_octets = \"4MiB\"\nlog_keep_octets = 0\n[log]",
        ),
    ]);
    let (spool, server) = server(&config);
    let seconds = scaled(4, 60).to_string();
    let feed = [
        "feed",
        "--connections",
        "2",
        "--articles",
        "100000000",
        "--duration",
        &seconds,
    ];
    let by_number = [
        "read",
        "--by",
        "number",
        "--connections",
        "8",
        "--rate",
        "2000",
        "--articles",
        "100000000",
        "--duration",
        &seconds,
        "--verify",
        "contents",
        "--quick-ack",
    ];
    let over = [
        "read",
        "--mode",
        "over",
        "--connections",
        "2",
        "--rate",
        "50",
        "--articles",
        "100000000",
        "--duration",
        &seconds,
        "--verify",
        "contents",
        "--quick-ack",
    ];
    let mixed = [
        "read",
        "--mode",
        "session",
        "--connections",
        "4",
        "--rate",
        "500",
        "--articles",
        "100000000",
        "--duration",
        &seconds,
        "--quick-ack",
    ];
    let stop = Arc::new(AtomicBool::new(false));
    let feeding = start(&feed, &server, true);
    let watch = Watch::start(&spool);
    std::thread::sleep(Duration::from_secs(1));
    let behind = {
        let (address, names) = (server.address, spool.json(&["group", "list"]));
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || read_behind(address, &names, &stop))
    };
    let readers =
        [&by_number[..], &over, &mixed].map(|words| (words, start(words, &server, false)));
    for (words, child) in readers {
        let found = report(words, child.wait_with_output().unwrap());
        assert_eq!(
            (&found["damaged"], &found["lost_connections"]),
            (&json!(0), &json!(0)),
            "{words:?}"
        );
        assert!(found["operations"].as_u64().unwrap() > 0, "{words:?}");
        println!(
            "{:24} {} operations, {} missing",
            found["pass"], found["operations"], found["missing"]
        );
    }
    let found = report(&feed, feeding.wait_with_output().unwrap());
    watch.assert_steady(is_full());
    stop.store(true, Ordering::Relaxed);
    let (whole, gone) = behind.join().unwrap();
    println!("close behind the feed: {whole} articles octet for octet, {gone} gone");
    assert!(whole > 100, "hardly anything was read");
    let status = spool.json(&["status"]);
    let cycles = status["buffers"][0]["cycle"].as_u64().unwrap();
    println!(
        "soak: {} articles at {:.0}/s, {cycles} cycles, {} MB, history {} + {}, overview {} packs of {} MB, log {} segments",
        found["accepted"],
        found["per_second"].as_f64().unwrap(),
        status["memory_octets"].as_u64().unwrap() >> 20,
        status["history"]["recent"],
        status["history"]["sealed"],
        status["overview"]["packs"],
        status["overview"]["disk_octets"].as_u64().unwrap() >> 20,
        status["log"]["segments"],
    );
    assert!(cycles > 2, "the buffers must have wrapped: {status:#}");
    assert_eq!(status["counters"]["disk_errors"], 0);
    assert_eq!(status["counters"]["corrupt_reads"], 0);
    assert_eq!(spool.json(&["check"])["problems"], json!([]));
    server.stop();
}

/// As feeders only, from the command on: the servers get a configuration of their own, which lies in the directory.
#[test]
fn a_comparison_of_feeders_runs_and_a_directory_in_use_is_refused() {
    let spool = Spool::new();
    let directory = spool.folder().join("compared");
    let compare = || {
        let mut command = newsreel();
        let words =
            "bench compare --transit --null --rounds 1 --articles 300 --steps takethis-1 --json";
        command.args(words.split(' ')).arg("--directory");
        command.arg(&directory).arg("--port");
        command
            .arg(free_ports().unwrap().to_string())
            .output()
            .unwrap()
    };
    let found = report(&["bench", "compare"], compare());
    assert_eq!(found["steps"][0]["step"], "takethis-1", "{found:#}");
    let refused = compare();
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && told.contains("it is not empty"),
        "{told}"
    );
}

/// Reads what the feed has just brought, from every group in turn, and compares every octet of the bodies.
fn read_behind(address: SocketAddr, groups: &Value, stop: &AtomicBool) -> (u64, u64) {
    let args = CorpusArgs {
        seed: 7,
        groups: 50,
        base_time_secs: Some(1_767_225_600),
        articles: Some(100_000_000),
        ..CorpusArgs::default()
    };
    let corpus = Corpus::new(&args, &RealDisk, &RealClock::new()).unwrap();
    let mut client = NewsClient::connect(address);
    let (mut whole, mut gone) = (0, 0);
    for group in groups.as_array().unwrap().iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let reply = client.ask(&format!("GROUP {}", group["name"].as_str().unwrap()));
        let high: u64 = reply.split(' ').nth(3).unwrap().parse().unwrap();
        for number in high.saturating_sub(20).max(1)..=high {
            let reply = client.ask(&format!("BODY {number}"));
            if reply.starts_with("423") {
                gone += 1;
                continue;
            }
            let id = reply
                .strip_prefix(&format!("222 {number} "))
                .unwrap_or_else(|| panic!("{reply}"));
            let article = corpus
                .find(id.as_bytes())
                .unwrap_or_else(|| panic!("{id} was never fed"));
            let mut scratch = Vec::new();
            let (_, body) = corpus.parts(article, &mut scratch);
            let body: Vec<&[u8]> = body
                .split_inclusive(|octet| *octet == b'\n')
                .map(|line| &line[..line.len() - 2])
                .collect();
            assert!(
                client.raw_block() == body,
                "{id} in {reply}: not the octets that were fed"
            );
            whole += 1;
        }
    }
    (whole, gone)
}

/// Little of it: every figure is there, and a report that says what was asked.
#[test]
fn what_is_asked_of_the_protocol_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let port = free_ports().unwrap().to_string();
    let rows = ["post", "tls", "compress", "stalled", "garbage"];
    let output = newsreel()
        .args(["bench", "protocol", "--directory", &path("spools")])
        .args(["--rounds", "1", "--articles", "300", "--groups", "10"])
        .args(["--seconds", "0.3", "--rows", &rows.join(",")])
        .args(["--port", &port, "--report", &path("report.md"), "--json"])
        .output();
    let found = report(&["bench", "protocol"], output.unwrap());
    let found = found["rows"].as_array().unwrap().clone();
    let names: Vec<&Value> = found.iter().map(|row| &row["name"]).collect();
    assert_eq!(names, rows);
    for row in &found {
        assert!(row["values"][0].as_f64().unwrap() > 0.0, "{row}");
        let read = &row["rounds"][0][0]["operations"];
        assert!(read.as_u64().unwrap() > 50, "{row}");
    }
    assert_eq!(found[1]["rounds"][0][1]["tls"], true);
    assert_eq!(found[2]["rounds"][0][0]["compressed"], true);
    // Beside attackers the machine's share of the figure is told, by the same attackers at another server.
    for (row, is_beside) in found.iter().zip([false, false, false, true, true]) {
        let elsewhere = row["elsewhere"].as_array().unwrap();
        assert_eq!(elsewhere.len(), usize::from(is_beside), "{row}");
        assert!(elsewhere.iter().all(|times| times.as_f64().unwrap() > 0.0));
        assert_eq!(row["rounds"][0].as_array().unwrap().len() == 3, is_beside);
    }
    let page = read_whole(&RealDisk, &folder.path().join("report.md"), 1 << 16).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert_eq!(page.lines().count(), 2 + rows.len(), "{page}");
    assert!(page.contains("| POST, durable, 16 connections | at least 2000 articles/s |"));
    assert_eq!(
        page.matches("with the attackers at another server").count(),
        2,
        "{page}"
    );
}
