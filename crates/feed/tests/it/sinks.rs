//! Feeds that end on this machine: programs, well and ill, and files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use newsreel_feed::FeedReport;
use newsreel_host::process::facts_of;
use newsreel_host::{Disk as _, Effect, Fault, FaultyDisk, Op, RealDisk, read_whole, replace_file};

use crate::site::{Sending, Site, id, peers};

fn report(sending: &Sending) -> FeedReport {
    sending.peers.reports().remove(0)
}

/// What the first of its programs is doing.
fn told(sending: &Sending) -> String {
    let links = report(sending).links;
    links.first().map(ToString::to_string).unwrap_or_default()
}

/// A directory that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("newsreel-{name}-{}", std::process::id()));
        RealDisk.create_dir_all(&path).unwrap();
        Self(path)
    }

    fn script(&self, text: &str) -> String {
        let path = self.0.join("program");
        replace_file(&RealDisk, &path, text.as_bytes()).unwrap();
        path.display().to_string()
    }

    fn text(&self, name: &str) -> String {
        let octets = read_whole(&RealDisk, &self.0.join(name), 1 << 20).unwrap_or_default();
        String::from_utf8(octets).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for entry in RealDisk.list(&self.0).unwrap_or_default() {
            let _ = RealDisk.remove(&self.0.join(entry.name));
        }
    }
}

fn program(words: &str, more: &str) -> String {
    format!(
        "[[peer]]\nname = 'archive'\n[[peer.feed]]\nkind = 'program'\nprogram = '{words}'\n{more}"
    )
}

async fn settled(site: &Site, sending: &Sending, many: u64) {
    site.until(sending, "archive", |_| {
        let tally = report(sending).tally;
        tally.accepted + tally.rejected >= many
    })
    .await;
}

/// Each article is on the program's input, and on nothing else; one that the program never wants is settled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_gets_each_article_once() {
    let (site, folder) = (Site::new(&[]), Folder::new("program"));
    let out = folder.0.join("out").display().to_string();
    let script = folder.script(
        "printf '%s|' \"$#\" >> \"$1\"; cat >> \"$1\"; test \"$(env | grep -c t.example)\" = 0",
    );
    let sending = site.send_to(&peers(&program(
        &format!("/bin/sh {script} {out}"),
        "connections = 1",
    )));
    site.receive(0..5, "misc.test").await;
    settled(&site, &sending, 5).await;
    let expected: Vec<String> = {
        let mut all = Vec::new();
        for n in 0..5 {
            let stored = String::from_utf8(site.stored(n).await).unwrap();
            let text = stored.strip_suffix(".\r\n").unwrap();
            let text = text.replace("\r\n..", "\r\n.").replace('\r', "");
            all.push(format!("1|{text}"));
        }
        all
    };
    assert_eq!(folder.text("out"), expected.concat());
    let tally = report(&sending).tally;
    assert_eq!((tally.accepted, tally.deferred), (5, 0));
    sending.stop().await;

    let sending = site.send_to(&peers(&program("/bin/sh -c exit${IFS}65", "")));
    site.receive(5..7, "misc.test").await;
    settled(&site, &sending, 2).await;
    assert_eq!(report(&sending).tally.rejected, 2);
    sending.stop().await;
}

/// A program that fails is tried again, and what it complained of is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_fails_is_tried_again() {
    let (site, folder) = (Site::new(&[]), Folder::new("failing"));
    let (out, tries) = (folder.0.join("out"), folder.0.join("tries"));
    let script = folder.script(&format!(
        "echo >> {0}; test $(wc -l < {0}) -gt 3 || {{ echo out of order >&2; exit 1; }}; cat >> {1}",
        tries.display(),
        out.display()
    ));
    let sending = site.send_to(&peers(&program(
        &format!("/bin/sh {script}"),
        "connections = 1",
    )));
    site.receive(0..2, "misc.test").await;
    let mut said = String::new();
    for _ in 0..500 {
        said = told(&sending);
        if said.contains("out of order") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(said.contains("tries again after 5 s"), "{said}");
    settled(&site, &sending, 2).await;
    let (tally, text) = (report(&sending).tally, folder.text("out"));
    assert_eq!((tally.accepted, tally.deferred), (2, 3));
    assert_eq!(text.matches("Message-ID:").count(), 2);
    sending.stop().await;
}

/// A change of feeds whose programs were at work held all other feeds until these had ended, ten seconds each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_ends_slowly_holds_no_other_feed() {
    let site = Site::new(&["b.example"]);
    let text = |limit_s: u32| {
        let other = "[[peer]]\nname = 'b.example'\naddress = 'h:1'\n";
        let more = format!("connections = 1\nprogram_s = {limit_s}");
        peers(&(other.to_owned() + &program("/bin/sleep 60", &more)))
    };
    let sending = site.send_to(&text(70));
    let archive = || sending.peers.reports().remove(1);
    site.receive(0..1, "misc.test").await;
    site.until_has(&sending, "b.example", 1).await;
    site.until(&sending, "b.example", |_| {
        archive().links.iter().any(|it| it.to_string() == "working")
    })
    .await;
    sending.peers.reload(&text(71));
    site.receive(1..2, "misc.test").await;
    let arrives = site.until_has(&sending, "b.example", 2);
    let arrived = tokio::time::timeout(Duration::from_secs(5), arrives).await;
    assert!(arrived.is_ok(), "it waits for the program");
    // The program has it still, and the feed that follows gets it again; what came just then may be one of either.
    assert!(sending.peers.is_changing());
    assert!(archive().open >= 1);
    site.until(&sending, "b.example", |_| !sending.peers.is_changing())
        .await;
    site.until(&sending, "b.example", |_| archive().open == 2)
        .await;
    sending.kill().await;
}

/// One that hangs is killed with what it has started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_is_late_is_killed() {
    let (site, folder) = (Site::new(&[]), Folder::new("late"));
    let out = folder.0.join("out").display().to_string();
    let script = folder.script(&format!("(sleep 4; echo late >> {out}) & sleep 60"));
    let sending = site.send_to(&peers(&program(
        &format!("/bin/sh {script}"),
        "connections = 1\nprogram_s = 1",
    )));
    site.receive(0..1, "misc.test").await;
    let mut said = String::new();
    for _ in 0..1000 {
        said = told(&sending);
        if said.contains("killed") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(said.contains("had not ended after 1 s"), "{said}");
    assert_eq!(report(&sending).open, 1);
    sending.kill().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(folder.text("out"), "");
}

/// What a program had started went on when the feed ended while it worked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_ends_with_its_feed() {
    let (site, folder) = (Site::new(&[]), Folder::new("ending"));
    let pid = folder.0.join("pid").display().to_string();
    let script = folder.script(&format!(
        "sleep 600 & echo $! > {pid}.new; mv {pid}.new {pid}; wait"
    ));
    let sending = site.send_to(&peers(&program(
        &format!("/bin/sh {script}"),
        "connections = 1",
    )));
    site.receive(0..1, "misc.test").await;
    let mut started = String::new();
    while started.is_empty() {
        started = folder.text("pid").trim().to_owned();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let number = started.parse().unwrap();
    assert!(facts_of(number).is_ok());
    sending.kill().await;
    let mut is_running = true;
    for _ in 0..500 {
        // One that has ended, and was not waited for, has no memory.
        is_running = facts_of(number).is_ok_and(|facts| facts.rss_bytes > 0);
        if !is_running {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!is_running, "{started} goes on");
}

/// Articles are appended to a file; moved away, another is made; one that is full makes them wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn articles_are_appended_to_a_file() {
    let site = Site::new(&[]);
    let file = |more: &str| {
        format!(
            "[[peer]]\nname = 'archive'\n[[peer.feed]]\nkind = 'file'\nfile = '/spool/news'\n{more}"
        )
    };
    let read = |name: &str| {
        let octets = read_whole(&*site.disk, Path::new(name), 1 << 20).unwrap_or_default();
        String::from_utf8(octets).unwrap()
    };
    // A crash tore what was written last.
    replace_file(&*site.disk, Path::new("/spool/news"), b"#! rnews 99\ntorn").unwrap();
    let sending = site.send_to(&peers(&file("")));
    site.receive(0..3, "misc.test").await;
    settled(&site, &sending, 3).await;
    let text = read("/spool/news");
    assert!(text.starts_with("#! rnews 99\ntorn\n#! rnews "), "{text}");
    assert_eq!(text.matches("\n#! rnews ").count(), 3);
    site.disk
        .rename(Path::new("/spool/news"), Path::new("/spool/old"))
        .unwrap();
    site.receive(3..5, "misc.test").await;
    settled(&site, &sending, 5).await;
    assert_eq!(read("/spool/news").matches("Message-ID:").count(), 2);
    sending.stop().await;
    let octets = read("/spool/news").len();
    let sending = site.send_to(&peers(&file(&format!(
        "form = 'mbox'\nwaiting_octets_max = {octets}"
    ))));
    site.receive(5..6, "misc.test").await;
    for _ in 0..500 {
        if report(&sending).links[0]
            .to_string()
            .contains("move it away")
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(report(&sending).open, 1);
    site.disk.remove(Path::new("/spool/news")).unwrap();
    settled(&site, &sending, 1).await;
    let text = read("/spool/news");
    assert!(
        text.starts_with("From news ") && text.contains(&id(5)),
        "{text}"
    );
    sending.stop().await;
}

/// What was appended to a file that somebody had taken away and read was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_appended_to_a_file_that_is_away_is_appended_again() {
    let (mut site, folder) = (Site::new(&[]), Folder::new("away"));
    let faulty = FaultyDisk::new(Arc::new(RealDisk));
    let spool = std::mem::replace(&mut site.disk, Arc::new(faulty.clone()));
    drop(spool);
    let slow = Effect::Slow(Duration::from_secs(1));
    faulty.add(Fault::new(Op::Sync, "/news", slow).nth(1));
    let path = folder.0.join("news");
    let text = format!(
        "[[peer]]\nname = 'archive'\n[[peer.feed]]\nkind = 'file'\nfile = '{}'\n",
        path.display()
    );
    let sending = site.send_to(&peers(&text));
    site.receive(0..1, "misc.test").await;
    site.until(&sending, "archive", |_| !folder.text("news").is_empty())
        .await;
    RealDisk.remove(&path).unwrap();
    settled(&site, &sending, 1).await;
    assert!(folder.text("news").contains(&id(0)));
    sending.stop().await;
}

/// What was being appended when the feed ended was there and was not settled: it came twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_being_appended_is_settled() {
    let mut site = Site::new(&[]);
    let faulty = FaultyDisk::new(Arc::clone(&site.disk));
    site.disk = Arc::new(faulty.clone());
    // Longer than the grace of a feed that ends.
    let slow = Effect::Slow(Duration::from_secs(11));
    faulty.add(Fault::new(Op::Sync, "/spool/appended", slow).nth(1));
    let file = peers(
        "[[peer]]\nname = 'archive'\n[[peer.feed]]\nkind = 'file'\nfile = '/spool/appended'\n",
    );
    let text = || {
        let octets = read_whole(&*site.disk, Path::new("/spool/appended"), 1 << 20);
        String::from_utf8(octets.unwrap_or_default()).unwrap()
    };
    let sending = site.send_to(&file);
    site.receive(0..1, "misc.test").await;
    site.until(&sending, "archive", |_| !text().is_empty())
        .await;
    sending.stop().await;
    let sending = site.send_to(&file);
    site.receive(1..2, "misc.test").await;
    settled(&site, &sending, 1).await;
    assert_eq!(text().matches("Message-ID:").count(), 2);
    sending.stop().await;
}

/// From now on the sector cannot be read that has the body of this article.
fn spoil(site: &Site, n: usize) {
    let body = format!("Body of {n}\r\n");
    let buffers = Path::new("/spool/buffers");
    let mut spoilt = 0;
    for entry in site.disk.list(buffers).unwrap() {
        let path = buffers.join(entry.name);
        let octets = read_whole(&*site.disk, &path, 64 << 20).unwrap();
        if let Some(at) = octets
            .windows(body.len())
            .position(|it| it == body.as_bytes())
        {
            let sector = Fault::new(Op::Read, path.to_str().unwrap(), Effect::Medium);
            site.faults.add(sector.covering(at as u64).forever());
            spoilt += 1;
        }
    }
    assert_eq!(spoilt, 1, "{body:?} is where it was looked for");
}

/// What becomes of the others where one of five lies on a bad sector, and of that one when the sector can be read again.
async fn one_cannot_be_read(feed: &str, arrived: impl Fn(&Site) -> String) {
    let site = Site::reading_from_disk(&[]);
    let sending = site.send_to(&peers(feed));
    assert_eq!(sending.peers.pause("archive", true), 1);
    site.receive(0..5, "misc.test").await;
    spoil(&site, 2);
    assert_eq!(sending.peers.pause("archive", false), 1);
    let is_told = |site: &Site| {
        let FeedReport {
            tally, unreadable, ..
        } = report(&sending);
        // While it is tried again it is none of those that wait.
        tally.accepted == 4 && unreadable == 1 && !arrived(site).is_empty()
    };
    site.until(&sending, "archive", is_told).await;
    let FeedReport {
        tally,
        open,
        unreadable_ids,
        ..
    } = report(&sending);
    assert_eq!(
        (tally.accepted, tally.gone, tally.rejected, open),
        (4, 0, 0, 1)
    );
    assert!(tally.deferred >= 1);
    // It may be tried again at this moment, and then it is not among them.
    assert!(
        unreadable_ids.iter().all(|it| *it == id(2)),
        "{unreadable_ids:?}"
    );
    let text = arrived(&site);
    let came = |n: usize| text.matches(&format!("Message-ID: {}", id(n))).count();
    assert_eq!([0, 1, 2, 3, 4].map(came), [1, 1, 0, 1, 1]);
    site.faults.clear();
    settled(&site, &sending, 5).await;
    let FeedReport {
        unreadable,
        unreadable_ids,
        open,
        ..
    } = report(&sending);
    assert_eq!((unreadable, unreadable_ids, open), (0, vec![], 0));
    let text = arrived(&site);
    assert_eq!(text.matches(&format!("Message-ID: {}", id(2))).count(), 1);
    sending.stop().await;
}

/// An article on a bad sector held all others of a feed to a file or a program, and nothing said which it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_article_that_cannot_be_read_holds_no_other() {
    let file = "[[peer]]\nname = 'archive'\n[[peer.feed]]\nkind = 'file'\nfile = '/spool/news'\n";
    one_cannot_be_read(file, |site| {
        let octets = read_whole(&*site.disk, Path::new("/spool/news"), 1 << 20);
        String::from_utf8(octets.unwrap_or_default()).unwrap()
    })
    .await;
    let folder = Folder::new("unreadable");
    let out = folder.0.join("out").display().to_string();
    let script = folder.script("cat >> \"$1\"");
    let feed = program(&format!("/bin/sh {script} {out}"), "connections = 1");
    one_cannot_be_read(&feed, |_| folder.text("out")).await;
}
