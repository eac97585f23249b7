//! Batches as INN's rnews takes them: packed in any way, damaged, while the server is away or takes nothing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use newsreel_host::{Disk as _, RealDisk, read_whole, replace_file};
use serde_json::Value;

use crate::client::NewsClient;
use crate::spool::{Spool, newsreel, said};

fn article(nth: u32) -> String {
    format!(
        "Path: peer.example!not-for-mail\nFrom: a@example.org\nNewsgroups: misc.test\nSubject: a test\n\
         Date: Wed, 31 Dec 2025 12:00:00 +0000\nMessage-ID: <{nth}@batch.example>\n\n.body {nth}\n"
    )
}

fn framed(article: &str) -> String {
    format!("#! rnews {}\n{article}", article.len())
}

fn batch(numbers: std::ops::Range<u32>) -> String {
    numbers.map(|nth| framed(&article(nth))).collect()
}

fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(octets).unwrap();
    out.finish().unwrap()
}

fn bzip2(octets: &[u8]) -> Vec<u8> {
    let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    out.write_all(octets).unwrap();
    out.finish().unwrap()
}

fn zstd(octets: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(octets, 1).unwrap()
}

/// A spool with a group, and its server.
fn served() -> (Spool, crate::spool::Server) {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    (spool, server)
}

fn file(spool: &Spool, name: &str, octets: &[u8]) -> String {
    let path = spool.folder().join(name);
    replace_file(&RealDisk, &path, octets).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs rnews with this on its standard input.
fn piped(spool: &Spool, octets: &[u8]) -> Value {
    let mut command = newsreel();
    command
        .args(["rnews", "--json", "--config"])
        .arg(spool.config());
    serde_json::from_str(&piped_into(command, octets).unwrap()).unwrap()
}

fn piped_into(mut command: Command, octets: &[u8]) -> Result<String, String> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let written = input.write_all(octets);
    drop(input);
    let output = child.wait_with_output().unwrap();
    written.unwrap();
    said(output)
}

/// Counts of accepted, refused, rejected, deferred and damaged.
fn counts(report: &Value) -> [u64; 5] {
    ["accepted", "refused", "rejected", "deferred", "damaged"]
        .map(|key| report[key].as_u64().unwrap())
}

/// The files that a report names.
fn files(report: &Value, key: &str) -> Vec<PathBuf> {
    let list = report[key].as_array().unwrap().iter();
    list.map(|path| path.as_str().unwrap().into()).collect()
}

fn text_of(path: &Path) -> Vec<u8> {
    let octets = read_whole(&RealDisk, path, 64 << 20).unwrap();
    match path.extension().is_some_and(|ending| ending == "zst") {
        true => zstd::stream::decode_all(&octets[..]).unwrap(),
        false => octets,
    }
}

fn files_in(spool: &Spool, folder: &str) -> usize {
    let folder = spool.path().join("batches").join(folder);
    RealDisk.list(&folder).map_or(0, |entries| entries.len())
}

#[test]
fn batches_are_taken_however_they_are_packed() {
    let (spool, server) = served();
    let plain = file(&spool, "plain", batch(0..3).as_bytes());
    assert_eq!(counts(&spool.json(&["rnews", &plain])), [3, 0, 0, 0, 0]);
    assert_eq!(counts(&spool.json(&["rnews", &plain])), [0, 3, 0, 0, 0]);
    type Packing = fn(&[u8]) -> Vec<u8>;
    let packings: [(u32, Packing); 4] = [
        (3, gzip),
        (6, bzip2),
        (9, zstd),
        (12, |octets| [b"#! zunbatch\n", &gzip(octets)[..]].concat()),
    ];
    for (from, packed) in packings {
        let octets = packed(batch(from..from + 3).as_bytes());
        assert_eq!(counts(&piped(&spool, &octets)), [3, 0, 0, 0, 0]);
        let path = file(&spool, "packed", &octets);
        assert_eq!(counts(&spool.json(&["rnews", &path])), [0, 3, 0, 0, 0]);
    }
    assert_eq!(
        counts(&piped(&spool, article(15).as_bytes())),
        [1, 0, 0, 0, 0]
    );
    let crlf = article(16).replace('\n', "\r\n");
    assert_eq!(
        counts(&piped(&spool, framed(&crlf).as_bytes())),
        [1, 0, 0, 0, 0]
    );
    // On the way each line got a CR, and no count knows of it.
    let gateway = batch(17..19).replace('\n', "\r\n");
    assert_eq!(counts(&piped(&spool, gateway.as_bytes())), [2, 0, 0, 0, 0]);
    assert_eq!(counts(&piped(&spool, b"")), [0; 5]);
    assert_eq!(
        (files_in(&spool, "waiting"), files_in(&spool, "damaged")),
        (0, 0)
    );
    let mut client = NewsClient::connect(server.address);
    for nth in [1, 4, 16, 17, 18] {
        assert!(
            client
                .ask(&format!("BODY <{nth}@batch.example>"))
                .starts_with("222")
        );
        assert_eq!(client.raw_block(), [format!("..body {nth}").into_bytes()]);
    }
    server.stop();
}

#[test]
fn every_article_is_answered_for() {
    let (spool, server) = served();
    let unwanted = article(1).replace("misc.test", "no.such.group");
    let batch = [batch(0..1), framed(&unwanted), batch(0..1)].concat();
    let path = file(&spool, "batch", batch.as_bytes());
    let told = spool.text(&["rnews", "-v", &path]);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "<0@batch.example> accepted", "{told}");
    assert!(
        lines[1].starts_with("<1@batch.example> rejected: "),
        "{told}"
    );
    assert_eq!(lines[2], "<0@batch.example> refused", "{told}");
    assert_eq!(
        lines[3], "1 accepted, 1 refused, 1 rejected, 0 deferred",
        "{told}"
    );
    assert!(lines[4].starts_with("rejected 1: "), "{told}");
    let report = spool.json(&["rnews", &path]);
    assert_eq!(counts(&report), [0, 2, 1, 0, 0]);
    server.stop();
}

#[test]
fn a_damaged_batch_loses_only_what_is_damaged() {
    let (spool, server) = served();
    let cut = framed(&article(2)).replace("body", "bo");
    let nameless = article(4).replace("Message-ID", "X-Nothing");
    let tail = framed(&article(6));
    let parts = [
        "junk in front\n",
        &batch(0..2),
        &cut,
        &batch(3..4),
        &framed(&nameless),
        &batch(5..6),
        &tail[..tail.len() - 3],
    ];
    let report = piped(&spool, parts.concat().as_bytes());
    assert_eq!(counts(&report), [4, 0, 0, 0, 4], "{report}");
    let kept = files(&report, "kept_in");
    assert_eq!(kept.len(), 1);
    let expected = [parts[0], &cut, &framed(&nameless), parts[6]].concat();
    assert_eq!(String::from_utf8(text_of(&kept[0])).unwrap(), expected);
    server.stop();
}

/// The files behind one that cannot be read were not looked at, and nothing said so.
#[test]
fn a_file_that_cannot_be_read_holds_no_other() {
    let (spool, server) = served();
    let [gone, folder] = ["gone", ""].map(|name| spool.folder().join(name).display().to_string());
    let (first, last) = (
        file(&spool, "first", batch(0..2).as_bytes()),
        file(&spool, "last", batch(2..5).as_bytes()),
    );
    let said = spool.run(&["rnews", "--json", &first, &gone, &folder, &last]);
    assert_eq!(said.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(counts(&report), [5, 0, 0, 0, 0], "{report}");
    assert_eq!(report["unreadable"], 2, "{report}");
    let named = report["unread"].to_string();
    assert!(
        named.contains(&gone) && named.contains("a directory"),
        "{named}"
    );
    let said = spool.run(&["rnews", &gone, &last]);
    assert_eq!(said.status.code(), Some(1));
    let text = String::from_utf8([said.stdout, said.stderr].concat()).unwrap();
    assert!(
        text.contains("3 refused") && text.contains("not everything could be read"),
        "{text}"
    );
    assert!(
        text.contains(&format!("cannot read {gone}: it does not exist\n")),
        "{text}"
    );
    server.stop();
}

/// What stood behind an article cost the article; of packed batches one behind the other only the first was taken.
#[test]
fn what_is_put_behind_each_other_is_all_taken() {
    let (spool, server) = served();
    let parts = [
        &batch(0..1),
        "\n\0\0",
        &batch(1..2),
        "junk behind\n",
        &batch(2..3),
        "\r\n",
    ];
    let report = piped(&spool, parts.concat().as_bytes());
    assert_eq!(counts(&report), [3, 0, 0, 0, 1], "{report}");
    assert_eq!(text_of(&files(&report, "kept_in")[0]), parts[3].as_bytes());
    let hinted = |numbers| [b"#! cunbatch\n", &gzip(batch(numbers).as_bytes())[..]].concat();
    let both = [hinted(3..5), hinted(5..7)].concat();
    assert_eq!(counts(&piped(&spool, &both)), [4, 0, 0, 0, 0]);
    // Behind articles that are not packed it was taken for junk.
    let mixed = [
        batch(11..13).into_bytes(),
        hinted(13..15),
        batch(15..16).into_bytes(),
        hinted(16..17),
    ];
    assert_eq!(counts(&piped(&spool, &mixed.concat())), [6, 0, 0, 0, 0]);
    // In an article it is text: nobody gets articles of theirs in by one that somebody passes on.
    let mut text = b"Path: a.example!b\nFrom: a@example.org\nNewsgroups: misc.test\nSubject: s\nMessage-ID: <17@batch.example>\n".to_vec();
    text.extend_from_slice(b"Date: Wed, 31 Dec 2025 12:00:00 +0000\n\n");
    text.extend_from_slice(
        &[b"#! cunbatch\n", &gzip(batch(18..19).as_bytes())[..], b"\n"].concat(),
    );
    let one = [format!("#! rnews {}\n", text.len()).into_bytes(), text].concat();
    let report = piped(&spool, &one);
    let [accepted, _, rejected, _, damaged] = counts(&report);
    assert_eq!((accepted + rejected, damaged), (1, 0), "{report}");
    // One that is damaged costs the other nothing; all is kept.
    let mut first = hinted(7..9);
    let at = first.len() - 12;
    first[at] ^= 0xff;
    let both = [first, hinted(9..11)].concat();
    let path = file(&spool, "both", &both);
    let report = spool.json(&["rnews", &path]);
    let [accepted, .., damaged] = counts(&report);
    assert!(accepted >= 2 && damaged >= 1, "{report}");
    assert!(
        files(&report, "kept_in")
            .iter()
            .any(|path| text_of(path) == both),
        "{report}"
    );
    let mut client = NewsClient::connect(server.address);
    assert!(client.ask("STAT <18@batch.example>").starts_with("430"));
    for nth in [1, 2, 6, 9, 10, 13, 15, 16] {
        let answer = client.ask(&format!("STAT <{nth}@batch.example>"));
        assert!(answer.starts_with("223"), "{nth}: {answer}");
    }
    server.stop();
}

#[test]
fn what_cannot_be_unpacked_is_kept_as_it_came() {
    let (spool, server) = served();
    let whole = batch(0..2000);
    for (nth, packed) in [
        gzip(whole.as_bytes()),
        bzip2(whole.as_bytes()),
        zstd(whole.as_bytes()),
    ]
    .iter()
    .enumerate()
    {
        let mut cut = packed[..packed.len() * 2 / 3].to_vec();
        cut.extend_from_slice(b"and something else");
        let path = file(&spool, "cut", &cut);
        for report in [piped(&spool, &cut), spool.json(&["rnews", &path])] {
            let [accepted, refused, rejected, deferred, damaged] = counts(&report);
            assert!(accepted + refused > 0 || nth == 1, "{report}");
            assert!(rejected + deferred == 0 && damaged >= 1, "{report}");
            let kept = files(&report, "kept_in");
            assert!(kept.iter().any(|path| text_of(path) == cut), "{report}");
        }
        // Behind articles, and with what is no batch behind it, by a pipe too.
        let packed = [&b"#! cunbatch\n"[..], &cut].concat();
        let behind = [batch(2000..2001).as_bytes(), &packed].concat();
        let path = file(&spool, "behind", &behind);
        for (report, expected) in [
            (piped(&spool, &behind), &packed),
            (spool.json(&["rnews", &path]), &behind),
        ] {
            let kept = files(&report, "kept_in");
            let is_kept = kept.iter().any(|path| text_of(path) == *expected);
            assert!(is_kept, "{report}");
        }
        // Not even a first octet can be unpacked.
        let report = piped(&spool, &packed[..7]);
        assert_eq!(counts(&report), [0, 0, 0, 0, 1], "{report}");
        assert_eq!(text_of(&files(&report, "kept_in")[0]), &packed[..7]);
    }
    let unfinished = RealDisk
        .list(&spool.path().join("batches/damaged"))
        .unwrap();
    assert!(
        unfinished.iter().all(|entry| !entry.name.ends_with(".new")),
        "{unfinished:?}"
    );
    server.stop();
}

/// A packed article that is larger than any may be, and is damaged behind that, ended the run.
#[test]
fn what_is_damaged_behind_the_limit_is_kept() {
    let (spool, server) = served();
    let mut large = article(0).into_bytes();
    large.resize(70 << 20, b'x');
    let mut packed = zstd(&large);
    packed.truncate(packed.len() - 9);
    let path = file(&spool, "large", &packed);
    for report in [piped(&spool, &packed), spool.json(&["rnews", &path])] {
        assert_eq!(counts(&report), [0, 0, 0, 0, 2], "{report}");
        let kept = files(&report, "kept_in");
        assert!(kept.iter().any(|path| text_of(path) == packed), "{report}");
    }
    server.stop();
}

/// A bomb is unpacked in little memory, and what is kept of it is little.
#[test]
fn a_bomb_is_harmless() {
    let (spool, server) = served();
    let mut out = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    for _ in 0..3000 {
        out.write_all(&[b'x'; 1 << 20]).unwrap();
    }
    let bomb = [
        out.finish().unwrap(),
        zstd(b"\n"),
        zstd(batch(0..2).as_bytes()),
    ]
    .concat();
    let path = file(&spool, "bomb", &bomb);
    // 3 GB do not fit into this.
    let limited = format!(
        "ulimit -v 1000000; exec {} rnews --json --config {} {path}",
        newsreel().get_program().to_str().unwrap(),
        spool.config().display()
    );
    let report = said(
        Command::new("/bin/sh")
            .args(["-c", &limited])
            .output()
            .unwrap(),
    );
    let report: Value = serde_json::from_str(&report.unwrap()).unwrap();
    assert_eq!(counts(&report), [2, 0, 0, 0, 1], "{report}");
    let kept = read_whole(&RealDisk, &files(&report, "kept_in")[0], 4 << 20).unwrap();
    assert!(kept.len() < 1 << 20, "{}", kept.len());
    server.stop();
}

/// A limit on the size of files ended rnews by a signal, and what it had begun to write stayed.
#[test]
fn a_file_that_cannot_be_written_to_its_end_does_not_stay() {
    let (spool, server) = served();
    server.stop();
    // Text that hardly packs.
    let mut state = 1_u64;
    let mut line = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{:x}", state >> 16)
    };
    let bodies = (0..100).map(|n| {
        article(n)
            + &std::iter::repeat_with(&mut line)
                .take(1000)
                .collect::<Vec<_>>()
                .join("\n")
            + "\n"
    });
    let all: String = bodies.map(|it| framed(&it)).collect();
    let path = file(&spool, "all", all.as_bytes());
    let limited = format!(
        "ulimit -f 100; exec {} rnews --config {} {path}",
        newsreel().get_program().to_str().unwrap(),
        spool.config().display()
    );
    let mut command = Command::new("/bin/sh");
    let why = said(command.args(["-c", &limited]).output().unwrap()).unwrap_err();
    assert!(why.contains("cannot write"), "{why}");
    assert_eq!(files_in(&spool, "waiting"), 0);
    // Without it they wait.
    assert_eq!(counts(&spool.json(&["rnews", &path]))[3], 100);
}

/// Of two that took what waits, one ended where the other had been.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a name of a file that is not there any more"
)]
fn what_another_has_taken_is_passed_over() {
    let (spool, server) = served();
    server.stop();
    assert_eq!(counts(&piped(&spool, batch(0..3).as_bytes()))[3], 3);
    let waiting = spool.path().join("batches/waiting");
    std::os::unix::fs::symlink(
        waiting.join("gone"),
        waiting.join("0000000000-1-0000.batch.zst"),
    )
    .unwrap();
    // One that cannot be read held all that came later.
    std::os::unix::fs::symlink(&waiting, waiting.join("0000000000-1-0001.batch.zst")).unwrap();
    let server = spool.serve();
    let done = spool.run(&["rnews", "--retry", "--json"]);
    assert!(!done.status.success());
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        (counts(&report)[0], files(&report, "waits_in").len()),
        (3, 1)
    );
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(told.contains("-0001.batch.zst"), "{told}");
    server.stop();
}

#[test]
fn articles_wait_while_the_server_is_away() {
    let (spool, server) = served();
    server.stop();
    let report = piped(&spool, &gzip(batch(0..5).as_bytes()));
    assert_eq!(counts(&report), [0, 0, 0, 5, 0], "{report}");
    assert!(
        report["away"]
            .as_str()
            .unwrap()
            .contains("no server is running"),
        "{report}"
    );
    let waits = files(&report, "waits_in");
    assert_eq!(text_of(&waits[0]), batch(0..5).as_bytes());
    let told = spool.text(&["rnews", "--retry"]);
    assert!(told.contains("waiting in"), "{told}");
    assert_eq!(files(&spool.json(&["rnews", "--retry"]), "waits_in"), waits);
    let server = spool.serve();
    assert_eq!(counts(&spool.json(&["rnews", "-U"])), [5, 0, 0, 0, 0]);
    assert_eq!(counts(&spool.json(&["rnews", "--retry"])), [0; 5]);
    assert_eq!(files_in(&spool, "waiting"), 0);
    server.stop();
}

/// Each file had a connection of its own, and the next one waited until all articles of it were answered for.
#[test]
fn no_file_waits_for_the_answers_to_those_before_it() {
    let spool = Spool::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let paths = [0, 1].map(|n| file(&spool, &format!("batch-{n}"), batch(n..n + 1).as_bytes()));
    let report = std::thread::scope(|scope| {
        let told = scope.spawn(|| {
            let args = ["rnews", "--server", &address, &paths[0], &paths[1]];
            spool.json(&args)
        });
        let (stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
        (&stream).write_all(b"200 ready\r\n").unwrap();
        assert_eq!(lines.next().unwrap(), "MODE STREAM");
        (&stream).write_all(b"203 go on\r\n").unwrap();
        for n in 0..2 {
            let offer = format!("TAKETHIS <{n}@batch.example>");
            assert_eq!(lines.next().unwrap(), offer);
            assert!(lines.any(|line| line == "."));
        }
        let answers = "239 <0@batch.example>\r\n239 <1@batch.example>\r\n";
        (&stream).write_all(answers.as_bytes()).unwrap();
        told.join().unwrap()
    });
    assert_eq!(counts(&report), [2, 0, 0, 0, 0], "{report}");
}

/// A batch that came while a server started was put aside, and waited for somebody to try again.
#[test]
fn a_server_that_starts_is_waited_for() {
    let (spool, server) = served();
    server.stop();
    let signal = |name: &str, pid: u32| {
        let sent = Command::new("kill").args([name, &pid.to_string()]).status();
        assert!(sent.unwrap().success());
    };
    for round in 0..5 {
        let mut command = newsreel();
        command.args(["serve", "--config"]).arg(spool.config());
        let mut server = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lock = spool.path().join("lock");
        let own = server.id().to_string();
        let holds = |pid: Vec<u8>| String::from_utf8_lossy(&pid).trim() == own;
        while !read_whole(&RealDisk, &lock, 100).is_ok_and(holds) {
            assert!(server.try_wait().unwrap().is_none(), "it did not start");
        }
        // It is held in the middle of its start.
        signal("-STOP", server.id());
        let report = std::thread::scope(|scope| {
            let taking = scope.spawn(|| piped(&spool, batch(round * 3..round * 3 + 3).as_bytes()));
            std::thread::sleep(Duration::from_millis(500));
            signal("-CONT", server.id());
            taking.join().unwrap()
        });
        signal("-TERM", server.id());
        server.wait().unwrap();
        assert_eq!(counts(&report), [3, 0, 0, 0, 0], "{report}");
    }
}

#[test]
fn articles_wait_while_the_server_takes_nothing() {
    let (spool, server) = served();
    let many = file(&spool, "many", batch(0..3000).as_bytes());
    server.forbid_writing(&spool);
    let report = spool.json(&["rnews", &many]);
    assert_eq!(counts(&report), [0, 0, 0, 3000, 0], "{report}");
    assert!(
        report["away"]
            .as_str()
            .unwrap()
            .starts_with("the server says 400 Cannot take articles now"),
        "{report}"
    );
    // It is tried again in vain: they wait in another file, and no article in two.
    let again = spool.json(&["rnews", "--retry"]);
    assert_eq!(counts(&again), [0, 0, 0, 3000, 0], "{again}");
    assert_eq!(files_in(&spool, "waiting"), 1);
    assert_eq!(
        text_of(&files(&again, "waits_in")[0]),
        batch(0..3000).as_bytes()
    );
    server.allow_writing(&spool);
    assert_eq!(
        counts(&spool.json(&["rnews", "--retry"])),
        [3000, 0, 0, 0, 0]
    );
    assert_eq!(files_in(&spool, "waiting"), 0);
    server.stop();
}

/// Whoever is killed has lost nothing: what it was given is given again, what waited waits.
#[test]
fn a_kill_loses_nothing() {
    let (spool, server) = served();
    server.stop();
    let all = file(&spool, "all", batch(0..20_000).as_bytes());
    assert_eq!(counts(&spool.json(&["rnews", &all])), [0, 0, 0, 20_000, 0]);
    let server = spool.serve();
    let mut done = 0;
    for round in 1..20 {
        let mut command = newsreel();
        command
            .args(["rnews", "--retry", "--config"])
            .arg(spool.config());
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(15 * round));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        done += u32::from(status.success());
        assert!(
            files_in(&spool, "waiting") >= 1 || done > 0,
            "nothing waits, and nobody took it"
        );
    }
    // The server goes while articles are under way.
    let mut command = newsreel();
    command
        .args(["rnews", "--json", "--config"])
        .arg(spool.config());
    let more = batch(20_000..30_000);
    let child = std::thread::spawn(move || piped_into(command, more.as_bytes()));
    std::thread::sleep(Duration::from_millis(150));
    server.kill();
    let report: Value = serde_json::from_str(&child.join().unwrap().unwrap()).unwrap();
    let [accepted, refused, rejected, deferred, damaged] = counts(&report);
    assert_eq!(accepted + deferred, 10_000, "{report}");
    assert_eq!((refused, rejected, damaged), (0, 0, 0), "{report}");
    let server = spool.serve();
    spool.json(&["rnews", "--retry"]);
    assert_eq!(counts(&spool.json(&["rnews", &all]))[1], 20_000);
    let mut client = NewsClient::connect(server.address);
    let group = client.ask("GROUP misc.test");
    assert!(group.starts_with("211 30000 "), "{group}");
    server.stop();
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a link beside the spool, as an administrator makes it"
)]
fn a_link_called_rnews_takes_a_batch() {
    let (spool, server) = served();
    let link = spool.folder().join("rnews");
    std::os::unix::fs::symlink(newsreel().get_program(), &link).unwrap();
    let mut command = Command::new(&link);
    command.arg("--config").arg(spool.config());
    let told = piped_into(command, batch(0..2).as_bytes()).unwrap();
    assert_eq!(told, "2 accepted, 0 refused, 0 rejected, 0 deferred\n");
    server.stop();
}
