//! `newsreel store verify|dump|export`: what lies in a file or directory of articles, when nothing is left but that.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use newsreel_host::{Disk as _, OpenMode, RealDisk, read_whole};
use serde_json::Value;

use crate::client::NewsClient;
use crate::spool::{Spool, newsreel, said};

const ARTICLES: usize = 60;
/// ... and so many more that are files.
const HEAPED: usize = 9;

const CONFIG: &str = r#"
[server]
spool = "spool"

[listen]
addresses = ["127.0.0.1:0"]

[articles]
age_s_max = 0

[[buffer]]
name = "A"
octets = "1MiB"

[[set]]
name = "ring"
buffers = ["A"]

[[set]]
name = "pile"
method = "segment"
segment_octets = "1MiB"

[[set]]
name = "heap"
method = "md5spool"

[[rule]]
groups = "misc.pile"
set = "pile"

[[rule]]
groups = "misc.heap"
set = "heap"

[[rule]]
set = "ring"
"#;

fn id(n: usize) -> String {
    format!("<{n}@alone.example>")
}

fn run(words: &[&str], path: &Path) -> Output {
    newsreel()
        .arg("store")
        .args(words)
        .arg(path)
        .output()
        .unwrap()
}

/// The records of a file, as `dump --json` tells them.
fn dumped(path: &Path) -> Vec<Value> {
    dumped_with(path, &[])
}

fn dumped_with(path: &Path, words: &[&str]) -> Vec<Value> {
    // What can be read is told, also where something cannot.
    let output = run(&[&["dump", "--json"], words].concat(), path);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

fn ids(records: &[Value]) -> Vec<String> {
    let id = |record: &Value| record["message_id"].as_str().unwrap().to_owned();
    records.iter().map(id).collect()
}

/// A spool of whose server and log nothing is left: the buffer, which is in its second cycle, and the segment.
fn left() -> (Spool, PathBuf, PathBuf) {
    let spool = Spool::with(CONFIG);
    let server = spool.serve();
    spool.text(&["group", "add", "misc.ring", "misc.pile", "misc.heap"]);
    let mut client = NewsClient::connect(server.address);
    let padding = "x".repeat(60) + "\r\n";
    for n in 0..ARTICLES {
        let group = ["misc.ring", "misc.pile"][n % 2];
        let body = format!(
            "body of {n}\r\n..a dot\r\n{}",
            padding.repeat(700 * (1 - n % 2))
        );
        let id = id(n);
        let article = format!(
            "Path: peer.example!not-for-mail\r\nFrom: a@example.org\r\nNewsgroups: {group}\r\nSubject: a test\r\n\
             Date: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: {id}\r\n\r\n{body}.\r\n"
        );
        client.send(format!("TAKETHIS {id}\r\n{article}").as_bytes());
        assert!(client.line().starts_with("239"), "{n}");
    }
    for n in ARTICLES..ARTICLES + HEAPED {
        assert!(client.takethis(&id(n), "misc.heap").starts_with("239"));
    }
    // Nothing is made up of what there is no figure for.
    let listed = spool.json(&["store", "list"]);
    let heap = &listed.as_array().unwrap()[2];
    assert_eq!(
        (&heap["name"], &heap["octets"], &heap["live_octets"]),
        (&"heap".into(), &Value::Null, &Value::Null)
    );
    assert!(
        heap["free_octets"].as_u64() > Some(0) && heap["oldest"].is_u64(),
        "{heap}"
    );
    let text = spool.text(&["store", "list"]);
    let heap = text.lines().find(|line| line.starts_with("heap")).unwrap();
    assert!(heap.contains(" free ") && !heap.contains('%'), "{heap}");
    server.kill();
    for gone in ["log", "index"] {
        let aside = spool.folder().join(gone);
        RealDisk.rename(&spool.path().join(gone), &aside).unwrap();
    }
    let (ring, pile) = ("buffers/A", "segments/pile/00000001.seg");
    let (ring, pile) = (spool.path().join(ring), spool.path().join(pile));
    (spool, ring, pile)
}

#[test]
fn a_file_alone_tells_what_lies_in_it() {
    let (spool, ring, pile) = left();
    let odd: Vec<String> = (0..ARTICLES).filter(|n| n % 2 == 1).map(id).collect();
    assert_eq!(ids(&dumped(&pile)), odd);
    // The newest of the others, in order, up to the last.
    let found = ids(&dumped(&ring));
    let even: Vec<String> = (0..ARTICLES).filter(|n| n % 2 == 0).map(id).collect();
    assert!((10..even.len()).contains(&found.len()), "{found:?}");
    assert!(even.ends_with(&found), "{found:?}");
    for path in [&ring, &pile] {
        let text = said(run(&["verify"], path)).unwrap();
        assert!(text.contains(" 0 damaged"), "{text}");
    }
    // Who had enough of it, as `head` has, is not told of an error.
    let mut export = newsreel();
    export.args(["store", "export"]).arg(&ring);
    export.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut export = export.spawn().unwrap();
    drop(export.stdout.take());
    let left = export.wait_with_output().unwrap();
    assert!(left.status.success() && left.stderr.is_empty(), "{left:?}");
    // Fed to another server they are the same.
    let batch = spool.folder().join("batch");
    let words = ["export", "--to", batch.to_str().unwrap()];
    let told = said(run(&words, &pile)).unwrap();
    assert!(
        told.starts_with(&format!("{} articles", odd.len())),
        "{told}"
    );
    let again = said(run(&words, &pile)).unwrap_err();
    assert!(again.contains("batch"), "{again}");
    let name = "[engine]\npath_identity = \"other.example\"\n\n[server]";
    let other = Spool::with(&Spool::changed(&[("[server]", name)]));
    let server = other.serve();
    other.text(&["group", "add", "misc.pile"]);
    let address = server.address.to_string();
    let words = [
        "bench",
        "feed",
        "--from",
        batch.to_str().unwrap(),
        "--server",
        &address,
    ];
    said(newsreel().args(words).output().unwrap()).unwrap();
    let mut client = NewsClient::connect(server.address);
    for (at, id) in odd.iter().enumerate() {
        assert!(client.ask(&format!("BODY {id}")).starts_with("222"));
        assert_eq!(
            client.block(),
            [format!("body of {}", 2 * at + 1), "..a dot".to_owned()]
        );
    }
}

#[test]
fn damage_in_a_file_is_named_and_costs_what_it_touches() {
    let (spool, ring, _) = left();
    let before = dumped(&ring);
    let octets = read_whole(&RealDisk, &ring, 2 << 20).unwrap();
    let file = RealDisk.open(&ring, OpenMode::ReadWrite).unwrap();
    let last = before.last().unwrap();
    let text = format!("body of {}", ARTICLES - 2);
    let at = octets
        .windows(text.len())
        .rposition(|found| found == text.as_bytes());
    file.write_at(b"B", at.unwrap() as u64).unwrap();
    let failed = run(&["verify", "--json"], &ring);
    assert_eq!(failed.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!(report[0]["damaged"], 1);
    let place = report[0]["places"][0].as_str().unwrap();
    assert!(place.contains(last["token"].as_str().unwrap()), "{place}");
    let batch = run(&["export"], &ring);
    let marks = batch.stdout.windows(8).filter(|found| found == b"#! rnews");
    assert_eq!(marks.count(), before.len() - 1);
    assert_eq!(batch.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&batch.stderr).contains("damaged"));
    // Both headers gone: the records tell how to read it.
    file.write_at(&[b'?'; 8192], 0).unwrap();
    assert!(ids(&dumped(&ring)).ends_with(&ids(&before)));
    // What is no such file is told.
    file.write_at(&vec![b'?'; 1 << 20], 0).unwrap();
    let error = said(run(&["dump"], &ring)).unwrap_err();
    assert!(error.contains("no records in it"), "{error}");
    let text = spool.config();
    let error = said(run(&["verify"], &text)).unwrap_err();
    let why = format!(
        "buffer newsreel.toml ({}): this is no file of a buffer or segment\n",
        text.display()
    );
    assert!(error.ends_with(&why), "{error}");
}

/// Nothing was given of a file that somebody had cut, though most of its records were whole.
#[test]
fn of_a_file_that_was_cut_all_in_front_of_the_cut_is_given() {
    let (_spool, ring, pile) = left();
    for path in [&ring, &pile] {
        let all = dumped(path);
        let end_of = |record: &Value| {
            let token = record["token"].as_str().unwrap();
            let offset = token.split(':').nth(1).unwrap();
            let offset = u64::from_str_radix(offset, 16).unwrap();
            offset + 64 + record["octets"].as_u64().unwrap()
        };
        let cut = all.iter().map(end_of).max().unwrap() - 10;
        let cut = cut.min(300_001);
        let file = RealDisk.open(path, OpenMode::ReadWrite).unwrap();
        file.set_len(cut).unwrap();
        let is_whole = |record: &&Value| end_of(record) <= cut;
        let left: Vec<Value> = all.iter().filter(is_whole).cloned().collect();
        assert!(!left.is_empty() && left.len() < all.len());
        assert_eq!(ids(&dumped(path)), ids(&left));
        for words in [&["dump"][..], &["verify"], &["export"]] {
            let output = run(words, path);
            assert_eq!(output.status.code(), Some(1), "{words:?}");
            let told = [output.stdout, output.stderr].concat();
            let told = String::from_utf8_lossy(&told).into_owned();
            let is_told = told.contains("nothing can be read from 0x")
                && told.contains("it was cut: of 1048576 octets");
            assert!(is_told, "{words:?}: {told}");
            if words == ["export"] {
                assert_eq!(told.matches("#! rnews").count(), left.len());
            }
        }
    }
}

/// One of the files in the directories below.
fn some_file(dir: &Path) -> PathBuf {
    let entries = RealDisk.list(dir).unwrap();
    let is_of_the_set = |name: &str| [".catalogue", ".newsreel-set"].contains(&name);
    let mut entries = entries.iter();
    let entry = entries.find(|entry| !is_of_the_set(&entry.name)).unwrap();
    let path = dir.join(&entry.name);
    match entry.is_dir {
        true => some_file(&path),
        false => path,
    }
}

#[test]
fn a_directory_of_articles_as_files_tells_what_lies_in_it() {
    let (spool, ..) = left();
    let heap = spool.path().join("articles/heap");
    let catalogue = heap.join(".catalogue/00000001.seg");
    let all: Vec<String> = (ARTICLES..ARTICLES + HEAPED).map(id).collect();
    for path in [&heap, &catalogue] {
        assert_eq!(ids(&dumped(path)), all);
        let text = said(run(&["verify"], path)).unwrap();
        assert!(
            text.contains(": 9 articles") && text.contains(" 0 damaged"),
            "{text}"
        );
    }
    // All segments of a set at once, too.
    assert_eq!(
        dumped(&spool.path().join("segments/pile")).len(),
        ARTICLES / 2
    );
    let batch = run(&["export"], &heap).stdout;
    let marks = batch.windows(8).filter(|found| found == b"#! rnews");
    assert_eq!(marks.count(), HEAPED);
    RealDisk.remove(&some_file(&heap)).unwrap();
    let failed = run(&["verify", "--json"], &heap);
    assert_eq!(failed.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!(
        (&report[0]["damaged"], &report[0]["articles"]),
        (&1.into(), &9.into())
    );
    let empty = spool.folder().join("empty");
    RealDisk.create_dir_all(&empty).unwrap();
    let error = said(run(&["verify"], &empty)).unwrap_err();
    assert!(error.contains("no articles of a set"), "{error}");
    // Cards are no articles, wherever their file is brought.
    let away = spool.folder().join("00000001.seg");
    RealDisk.rename(&catalogue, &away).unwrap();
    let error = said(run(&["dump"], &away)).unwrap_err();
    assert!(error.contains("it is of a catalogue"), "{error}");
}

/// What a file says of that is written at checkpoints: what was cancelled was listed and exported as all else.
#[test]
fn the_spool_in_which_a_file_lies_says_what_was_withdrawn() {
    let spool = Spool::with(CONFIG);
    let server = spool.serve();
    spool.text(&["group", "add", "misc.ring", "misc.pile", "misc.heap"]);
    let mut client = NewsClient::connect(server.address);
    let groups = ["misc.ring", "misc.pile", "misc.heap"];
    for n in 0..12 {
        assert!(client.takethis(&id(n), groups[n % 3]).starts_with("239"));
    }
    let cancelled = [id(3), id(4), id(5)];
    let cancel = [
        &["article", "cancel"][..],
        &cancelled.each_ref().map(String::as_str),
    ]
    .concat();
    spool.text(&cancel);
    let at = ["buffers/A", "segments/pile", "articles/heap"].map(|it| spool.path().join(it));
    let check = |path: &Path, withdrawn: &[String], words: &[&str]| {
        let records = dumped_with(path, words);
        let of = |record: &&Value| record["withdrawn"] == true;
        let marked: Vec<Value> = records.iter().filter(of).cloned().collect();
        assert_eq!(ids(&marked), withdrawn, "{path:?}");
        let exported = |more: &[&str]| {
            let batch = run(&[&["export"], words, more].concat(), path).stdout;
            batch.windows(8).filter(|it| it == b"#! rnews").count()
        };
        let all = exported(&["--withdrawn"]);
        assert_eq!((all, exported(&[])), (records.len(), all - withdrawn.len()));
    };
    let all = || {
        check(&at[0], &cancelled[..1], &[]);
        check(&at[1], &cancelled[1..2], &[]);
        // The file of an article goes with it.
        check(&at[2], &[], &[]);
    };
    all();
    server.stop();
    all();
    // Every command takes the configuration; by it the spool of a buffer is known that lies elsewhere.
    let config = spool.config().to_str().unwrap().to_owned();
    check(&at[0], &cancelled[..1], &["--config", &config]);
    assert!(
        run(&["verify", "--config", &config], &at[0])
            .status
            .success()
    );
    let error = said(run(&["verify", "--config", "/nowhere.toml"], &at[0])).unwrap_err();
    assert!(error.contains("/nowhere.toml"), "{error}");
    let elsewhere = spool.folder().join("A");
    RealDisk.rename(&at[0], &elsewhere).unwrap();
    let path = format!("name = \"A\"\npath = {elsewhere:?}");
    spool.configure(&CONFIG.replacen("name = \"A\"", &path, 1));
    for (words, is_alone) in [
        (&["dump"][..], true),
        (&["dump", "--config", &config], false),
    ] {
        let told = run(words, &elsewhere).stderr;
        let told = String::from_utf8_lossy(&told);
        assert_eq!(told.contains("it lies in no spool"), is_alone, "{told}");
    }
    RealDisk.rename(&elsewhere, &at[0]).unwrap();
    spool.configure(CONFIG);
    // A file that was brought elsewhere is known to no spool, and tells by itself; none is asked about it that is not its own.
    let away = spool.folder().join("00000001.seg");
    RealDisk.rename(&at[1].join("00000001.seg"), &away).unwrap();
    check(&away, &cancelled[1..2], &[]);
    let told = run(&["dump"], &away).stderr;
    assert!(String::from_utf8_lossy(&told).contains("--spool DIR"));
    let named = spool.path().to_str().unwrap().to_owned();
    let error = said(run(&["dump", "--spool", &named], &away)).unwrap_err();
    assert!(
        error.contains("is no buffer, segment or set of the spool"),
        "{error}"
    );
}

/// Where an article of a file lies, by its token.
fn offset(record: &Value) -> u64 {
    let token = record["token"].as_str().unwrap();
    let offset = token.split(':').nth(1).unwrap();
    u64::from_str_radix(offset, 16).unwrap()
}

/// Overwrites the pages of an article with zeros.
fn blank(path: &Path, record: &Value) {
    let octets = record["octets"].as_u64().unwrap() + 64;
    let from = offset(record) / 4096 * 4096;
    let to = (offset(record) + octets).next_multiple_of(4096);
    let file = RealDisk.open(path, OpenMode::ReadWrite).unwrap();
    file.write_at(&vec![0; (to - from) as usize], from).unwrap();
}

/// What `verify` says of a file in which something is damaged.
fn damaged_places(path: &Path) -> Vec<String> {
    let failed = run(&["verify", "--json"], path);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let report: Value = serde_json::from_slice(&failed.stdout).unwrap();
    let places = report[0]["places"].as_array().unwrap().iter();
    places.map(|it| it.as_str().unwrap().to_owned()).collect()
}

/// `verify` passed zeros as room in which nothing was ever written.
#[test]
fn zeros_between_articles_of_a_file_are_damage() {
    let (_spool, ring, pile) = left();
    for path in [&ring, &pile] {
        let before = dumped(path);
        blank(path, &before[before.len() / 2]);
        let places = damaged_places(path);
        assert_eq!(places.len(), 1, "{places:?}");
        assert!(places[0].contains("nothing is written from"), "{places:?}");
        assert_eq!(dumped(path).len(), before.len() - 1);
    }
}

/// A buffer of twenty small articles, of which the fifth was cancelled, behind an orderly stop.
fn stopped() -> (Spool, PathBuf) {
    let spool = Spool::with(CONFIG);
    let server = spool.serve();
    spool.text(&["group", "add", "misc.ring"]);
    let mut client = NewsClient::connect(server.address);
    for n in 0..20 {
        assert!(client.takethis(&id(n), "misc.ring").starts_with("239"));
    }
    spool.text(&["article", "cancel", &id(4)]);
    drop(client);
    server.stop();
    let ring = spool.path().join("buffers/A");
    (spool, ring)
}

/// Behind a stop the bitmap tells each article, the last one too.
#[test]
fn what_the_bitmap_of_a_file_tells_of_is_missed() {
    let (_spool, ring) = stopped();
    assert!(
        said(run(&["verify"], &ring))
            .unwrap()
            .contains(" 0 damaged")
    );
    let before = dumped(&ring);
    assert_eq!(before.len(), 20);
    for n in [4, 9, 19] {
        blank(&ring, &before[n]);
    }
    let places = damaged_places(&ring);
    // Nobody misses the one that was cancelled.
    let of = |n: usize| before[n]["token"].as_str().unwrap();
    assert_eq!(places.len(), 2, "{places:?}");
    assert!(
        places[0].contains(of(9)) && places[1].contains(of(19)),
        "{places:?}"
    );
}

/// Bits that stand for headers and bitmap were told as an article at offset 0 that is not there.
#[test]
fn bits_in_front_of_all_articles_are_no_articles() {
    let (_spool, buffer) = stopped();
    let sound = said(run(&["verify"], &buffer)).unwrap();
    assert!(sound.contains(" 0 damaged"), "{sound}");
    let file = RealDisk.open(&buffer, OpenMode::ReadWrite).unwrap();
    let mut octets = [0; 2];
    file.read_exact_at(&mut octets, 8192).unwrap();
    assert_eq!(octets, [0; 2]);
    file.write_at(&[0x11, 0x80], 8192).unwrap();
    let places = damaged_places(&buffer);
    assert_eq!(places.len(), 1, "{places:?}");
    assert!(
        places[0].contains("its bitmap is damaged") && places[0].ends_with(": 3"),
        "{places:?}"
    );
}

/// Octets of a dictionary were taken for bits, and a sound segment for a damaged one.
#[test]
fn a_segment_with_a_dictionary_is_sound() {
    let ring = "[[rule]]\nset = \"ring\"";
    assert!(CONFIG.contains(ring));
    let packed = CONFIG.replace(ring, "[[rule]]\nset = \"packed\"")
        + "\n[[set]]\nname = \"packed\"\nmethod = \"segment\"\nsegment_octets = \"8MiB\"\ncompression_level = 3\n";
    let spool = Spool::with(&packed);
    let server = spool.serve();
    spool.text(&["group", "add", "misc.words"]);
    let mut client = NewsClient::connect(server.address);
    let mut seed = 1_u64;
    for n in 0..400 {
        let mut body = String::new();
        while body.len() < 1500 {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(7);
            body.push_str(&format!("word-number-{}\r\n", (seed >> 33) % 300));
        }
        let id = id(n);
        let article = format!(
            "Path: peer.example!not-for-mail\r\nFrom: a@example.org\r\nNewsgroups: misc.words\r\nSubject: a test\r\n\
             Date: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: {id}\r\n\r\n{body}.\r\n"
        );
        client.send(format!("TAKETHIS {id}\r\n{article}").as_bytes());
        assert!(client.line().starts_with("239"), "{n}");
    }
    drop(client);
    server.stop();
    let path = spool.path().join("segments/packed/00000001.seg");
    let octets = read_whole(&RealDisk, &path, 16 << 20).unwrap();
    assert_eq!(&octets[8192..8200], b"NRZSTDIC");
    for path in [path.as_path(), path.parent().unwrap()] {
        let verified = said(run(&["verify"], path)).unwrap();
        assert!(
            verified.ends_with(" 0 damaged\n") && verified.lines().count() == 1,
            "{verified}"
        );
        assert_eq!(said(run(&["dump"], path)).unwrap().lines().count(), 400);
        let batch = run(&["export"], path);
        assert!(batch.status.success(), "{batch:?}");
        assert!(!String::from_utf8_lossy(&batch.stderr).contains("bitmap"));
    }
}
