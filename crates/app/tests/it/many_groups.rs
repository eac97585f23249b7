//! What a hundred thousand small groups cost a server in memory, beside ten groups with the same articles.

use std::fmt::Write as _;
use std::path::Path;

use newsreel_host::{RealDisk, replace_file};

use crate::scale::{is_full, scaled};
use crate::spool::{Spool, newsreel};

const ARTICLES_A_GROUP: usize = 3;

/// A batch of articles spread evenly over so many groups, those groups, and how many articles there are.
fn write_corpus(folder: &Path, groups: usize, articles: usize) {
    let (mut batch, mut names) = (String::new(), String::new());
    for n in 0..groups {
        writeln!(names, "small.g{n}").unwrap();
    }
    for n in 0..articles {
        let group = n % groups;
        let article = format!(
            "Path: there.example!not-for-mail\nFrom: Poster <poster@there.example>\nNewsgroups: small.g{group}\n\
             Subject: Number {n} of many that look alike\nDate: Thu, 01 Jan 2026 00:00:00 +0000\n\
             Message-ID: <{n}.many@there.example>\nReferences: <{}.many@there.example>\n\nA short text.\n",
            n / 2
        );
        write!(batch, "#! rnews {}\n{article}", article.len()).unwrap();
    }
    replace_file(&RealDisk, &folder.join("batch"), batch.as_bytes()).unwrap();
    replace_file(&RealDisk, &folder.join("groups"), names.as_bytes()).unwrap();
}

/// Octets of memory of a server that was fed these articles.
fn memory(groups: usize, articles: usize) -> u64 {
    let spool = Spool::with(&Spool::changed(&[("8MiB", "256MiB"), ("1MiB", "16MiB")]));
    write_corpus(spool.folder(), groups, articles);
    let server = spool.serve();
    let names = spool.folder().join("groups").display().to_string();
    spool.text(&["group", "import", &names]);
    let mut feed = newsreel();
    let feed = feed
        .args(["bench", "feed", "--connections", "2", "--from"])
        .arg(spool.folder().join("batch"))
        .args(["--server", &server.address.to_string()])
        .output()
        .unwrap();
    assert!(feed.status.success(), "{feed:?}");
    let status = spool.json(&["status"]);
    assert_eq!(status["counters"]["accepted"], articles);
    assert_eq!(status["groups"], groups);
    server.stop();
    status["memory_octets"].as_u64().unwrap()
}

#[test]
fn a_hundred_thousand_groups_take_little_more_memory_than_ten() {
    let groups = scaled(2000, 100_000);
    let articles = groups * ARTICLES_A_GROUP;
    let (few, many) = (memory(10, articles), memory(groups, articles));
    println!("{articles} articles: {many} octets in {groups} groups, {few} in 10");
    let more = many.saturating_sub(few);
    let most = if is_full() { 100 << 20 } else { 32 << 20 };
    assert!(more < most, "{more} octets more");
}
