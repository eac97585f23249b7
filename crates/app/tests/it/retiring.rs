//! `newsreel store retire`, beside a server that is killed between the steps: a buffer drains, and is forgotten.

use std::ops::Range;
use std::path::Path;

use newsreel_host::{Disk as _, OpenMode, RealDisk, read_whole};

use crate::client::{NewsClient, article};
use crate::lifecycle::wait_for;
use crate::spool::{Server, Spool};

fn id(n: usize) -> String {
    format!("<{n}@retiring.example>")
}

/// Feeds articles of some 60,000 octets.
fn feed(server: &Server, range: Range<usize>) {
    let mut client = NewsClient::connect(server.address);
    let body = "a line of a body that is not short and not long\r\n".repeat(1200);
    for n in range.clone() {
        let text = article(&id(n), "misc.test");
        let text = text.strip_suffix(".\r\n").unwrap();
        client.send(format!("TAKETHIS {}\r\n{text}{body}.\r\n", id(n)).as_bytes());
        // No more than its connection holds.
        assert_eq!(client.line(), format!("239 {}", id(n)));
    }
}

/// State and live octets of a buffer.
fn state(spool: &Spool, name: &str) -> (String, u64) {
    let buffers = spool.json(&["store", "list"]);
    let mut buffers = buffers.as_array().unwrap().iter();
    let buffer = buffers.find(|buffer| buffer["name"] == name).unwrap();
    let state = buffer["state"].as_str().unwrap();
    let word = state.split(':').next().unwrap();
    (word.to_owned(), buffer["live_octets"].as_u64().unwrap())
}

/// Which of these are still here.
fn here(server: &Server, range: Range<usize>) -> Vec<usize> {
    let mut client = NewsClient::connect(server.address);
    range
        .filter(|n| client.ask(&format!("STAT {}", id(*n))).starts_with("223"))
        .collect()
}

#[test]
fn a_retired_buffer_drains_over_crashes_and_is_forgotten() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let said = spool.text(&["store", "retire", "A", "--dry-run"]);
    assert!(said.contains("\nnothing in it is alive: "), "{said}");
    feed(&server, 0..40);
    let (_, before) = state(&spool, "A");
    assert!(before > 0 && state(&spool, "B").1 > 0, "both have some");

    let said = spool.text(&["store", "retire", "B", "--dry-run"]);
    assert!(said.contains(" of it are alive, and go as"), "{said}");
    let only_said = spool.json(&["store", "retire", "A", "--dry-run"]);
    assert_eq!(
        (&only_said["new"], &only_said["dry_run"]),
        (&true.into(), &true.into())
    );
    assert_eq!(state(&spool, "A").0, "ok");
    let done = spool.text(&["store", "retire", "A"]);
    assert!(
        done.starts_with("take no more articles: A, of set main"),
        "{done}"
    );
    server.kill();
    // Whoever looks without a server writes no buffer, and had taken that for none that takes articles.
    let undone = spool.json(&["store", "retire", "A", "--undo", "--dry-run"]);
    assert_eq!(undone["new"], true);
    for words in [
        &["store", "retire", "B", "--dry-run"][..],
        &["store", "retire", "B"],
    ] {
        let error = spool.error(words);
        assert!(error.contains("no other buffer of its set"), "{error}");
    }
    let only_said = spool.json(&["store", "retire", "A", "--dry-run"]);
    assert_eq!(only_said["new"], false);
    spool.text(&["store", "retire", "A", "--undo"]);
    for name in ["A", "B"] {
        let only_said = spool.text(&["store", "retire", name, "--dry-run"]);
        assert!(
            only_said.starts_with("would take no more articles: "),
            "{only_said}"
        );
    }
    spool.text(&["store", "retire", "A"]);

    let server = spool.serve();
    feed(&server, 40..100);
    let (word, alive) = state(&spool, "A");
    assert_eq!(word, "retired");
    assert!(alive >= before, "its turn has not come");
    assert_eq!(here(&server, 0..100).len(), 100);
    feed(&server, 100..150);
    server.kill();
    let server = spool.serve();
    feed(&server, 150..210);
    assert_eq!(state(&spool, "A"), ("drained".to_owned(), 0));
    let left = here(&server, 0..210);
    assert!(!left.is_empty() && left.len() < 150, "{}", left.len());
    let text = spool.text(&["store", "list"]);
    assert!(text.contains("A: drained: nothing is left in it"), "{text}");
    let strip = |name: &str| {
        let text = spool.text(&["store", "inspect", name]);
        let strip = text.lines().find(|line| line.starts_with('[')).unwrap();
        (strip.to_owned(), text)
    };
    let (drawn, text) = strip("A");
    assert_eq!(drawn.trim_matches(['[', ']', '.']), ">", "{text}");
    assert!(!text.contains("an article stays"), "{text}");
    let (drawn, text) = strip("B");
    assert!(drawn.contains('=') && drawn.contains('#'), "{text}");
    assert!(
        text.contains(" old\n") && text.contains("an article stays"),
        "{text}"
    );
    server.stop();

    spool.configure(&Spool::changed(&[("name = \"A\"\n", "name = \"C\"\n")]));
    let (file, aside) = (spool.path().join("buffers/A"), spool.folder().join("A"));
    RealDisk.rename(&file, &aside).unwrap();
    let server = spool.serve();
    assert_eq!(here(&server, 0..210), left);
    feed(&server, 210..240);
    assert!(state(&spool, "C").1 > 0, "the new one takes its share");
    assert_eq!(spool.json(&["check"])["problems"], serde_json::json!([]));
    server.stop();
    a_name_is_not_given_again(&spool, &file, &aside);
}

/// `--dry-run` took the name of a buffer that was let go for one whose disk is not mounted, or for one that is there.
fn a_name_is_not_given_again(spool: &Spool, file: &Path, aside: &Path) {
    let both = "name = \"C\"\noctets = \"8MiB\"\n\n[[buffer]]\nname = \"A\"\n";
    spool.configure(&Spool::changed(&[("name = \"A\"\n", both)]));
    for is_there in [false, true] {
        if is_there {
            RealDisk.rename(aside, file).unwrap();
        }
        for words in [&["--dry-run"][..], &["A", "--dry-run"], &[], &["A"]] {
            let words = [&["store", "create"], words].concat();
            let output = spool.run(&words);
            let said = String::from_utf8_lossy(&output.stderr);
            let is_told = said.contains("was let go") || said.contains("was dropped");
            assert!(is_told, "{words:?}: {said}");
            assert!(said.contains("another name"), "{words:?}: {said}");
            if words.contains(&"--dry-run") {
                let table = String::from_utf8_lossy(&output.stdout);
                let row = table.lines().find(|line| line.starts_with("A "));
                assert!(row.is_some_and(|row| row.contains("  let go  ")), "{table}");
            }
        }
        assert_eq!(RealDisk.exists(file).unwrap(), is_there);
    }
}

/// A restart was needed for that.
#[test]
fn a_drained_buffer_is_let_go_beside_the_server() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    feed(&server, 0..40);
    spool.text(&["store", "retire", "A"]);
    spool.configure(&Spool::changed(&[("name = \"A\"\n", "name = \"C\"\n")]));
    server.signal("HUP");
    let told = wait_for(&spool, "a buffer cannot be let go");
    assert!(told.contains("articles in it are alive"), "{told}");
    assert_eq!(here(&server, 0..40).len(), 40);
    feed(&server, 40..400);
    assert_eq!(state(&spool, "A"), ("drained".to_owned(), 0));
    let left = here(&server, 0..400);
    server.signal("HUP");
    wait_for(&spool, "it is let go");
    let names = || {
        let buffers = spool.json(&["store", "list"]);
        let buffers = buffers.as_array().unwrap().iter();
        let mut names: Vec<_> = buffers.map(|it| it["name"].clone()).collect();
        names.sort_by_key(ToString::to_string);
        names
    };
    assert_eq!(names(), ["B", "C"]);
    assert_eq!(here(&server, 0..400), left);
    feed(&server, 400..440);
    assert_eq!(spool.json(&["check"])["problems"], serde_json::json!([]));
    RealDisk.remove(&spool.path().join("buffers/A")).unwrap();
    server.kill();
    let server = spool.serve();
    assert_eq!(names(), ["B", "C"]);
    assert_eq!(here(&server, 400..440).len(), 40);
    server.stop();
}

/// The flags with which a server has a file open, each time.
fn open_flags(server: &Server, path: &Path) -> Vec<u32> {
    let proc = Path::new("/proc").join(server.pid().to_string());
    let mut found = Vec::new();
    for entry in RealDisk.list(&proc.join("fd")).unwrap() {
        let fd = proc.join("fd").join(&entry.name);
        if fd.read_link().is_ok_and(|to| to == path) {
            // Its length is said to be 0.
            let mut info = [0; 4096];
            let file = RealDisk.open(&proc.join("fdinfo").join(&entry.name), OpenMode::Read);
            let len = file.unwrap().read_at(&mut info, 0).unwrap();
            let info = std::str::from_utf8(&info[..len]).unwrap();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            found.push(u32::from_str_radix(flags.unwrap().trim(), 8).unwrap());
        }
    }
    found
}

/// Behind a crash, too: a start writes nothing of it.
#[test]
fn a_read_only_buffer_is_opened_to_read() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    feed(&server, 0..40);
    server.kill();
    let path = spool.path().join("buffers/A").canonicalize().unwrap();
    let before = read_whole(&RealDisk, &path, 16 << 20).unwrap();
    let read_only = "name = \"A\"\nread_only = true\n";
    spool.configure(&Spool::changed(&[("name = \"A\"\n", read_only)]));
    let server = spool.serve();
    feed(&server, 40..60);
    assert_eq!(here(&server, 0..60).len(), 60);
    assert_eq!(state(&spool, "A").0, "read-only");
    let flags = open_flags(&server, &path);
    // The last two bits: 0 to read, 1 to write, 2 for both.
    assert!(
        !flags.is_empty() && flags.iter().all(|flags| flags & 3 == 0),
        "{flags:?}"
    );
    let other = open_flags(&server, &path.with_file_name("B"));
    assert!(other.iter().any(|flags| flags & 3 == 2), "{other:?}");
    server.stop();
    assert!(
        read_whole(&RealDisk, &path, 16 << 20).unwrap() == before,
        "it was written"
    );
}
