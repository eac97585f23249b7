//! A buffer on a block device: a loop device, where the machine lets a test have one.

use std::path::{Path, PathBuf};
use std::process::Command;

use newsreel_host::{Disk as _, OpenMode, RealDisk};
use serde_json::Value;

use crate::client::NewsClient;
use crate::spool::{Spool, newsreel, said};

const OCTETS: u64 = 2 << 20;
const ARTICLES: usize = 120;

/// A loop device over a file; it goes with this.
struct Loop {
    device: PathBuf,
}

impl Loop {
    /// `None`, with the reason said, where there is no such thing.
    #[expect(clippy::print_stdout, reason = "a skipped test says why")]
    fn over(image: &Path, octets: u64) -> Option<Self> {
        let file = RealDisk.open(image, OpenMode::CreateNew).unwrap();
        file.set_len(octets).unwrap();
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(image)
            .output();
        let why = match made {
            Ok(output) if output.status.success() => {
                let device = String::from_utf8(output.stdout).unwrap();
                return Some(Self {
                    device: PathBuf::from(device.trim_end()),
                });
            }
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        println!("skipped: no loop device to be had: {why}");
        None
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.device).status();
    }
}

fn config(device: &Path, octets: &str) -> String {
    format!(
        "[server]\nspool = \"spool\"\n\n[listen]\naddresses = [\"127.0.0.1:0\"]\n\n[articles]\nage_s_max = 0\n\n\
         [[buffer]]\nname = \"A\"\npath = \"{}\"\noctets = \"{octets}\"\n",
        device.display()
    )
}

fn id(n: usize) -> String {
    format!("<{n}@device.example>")
}

fn body(n: usize) -> String {
    format!("{n} says this\r\n").repeat(3000)
}

fn feed(client: &mut NewsClient, n: usize) {
    let id = id(n);
    let body = body(n);
    let article = format!(
        "Path: peer.example!not-for-mail\r\nFrom: a@example.org\r\nNewsgroups: misc.test\r\nSubject: a test\r\n\
         Date: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: {id}\r\n\r\n{body}.\r\n"
    );
    client.send(format!("TAKETHIS {id}\r\n{article}").as_bytes());
    assert!(client.line().starts_with("239"), "{n}");
}

/// The articles that are there, each as it was sent.
fn there(client: &mut NewsClient) -> Vec<usize> {
    let mut there = Vec::new();
    for n in 0..ARTICLES {
        if client.ask(&format!("BODY {}", id(n))).starts_with("222") {
            assert_eq!(client.block().join("\r\n") + "\r\n", body(n), "{n}");
            there.push(n);
        }
    }
    there
}

#[test]
fn a_buffer_on_a_block_device_wraps_and_survives_kills() {
    let folder = Spool::with("");
    let Some(device) = Loop::over(&folder.folder().join("image"), OCTETS) else {
        return;
    };
    let spool = Spool::with(&config(&device.device, "2MiB"));
    let mut server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let mut kept = Vec::new();
    for round in 0..3 {
        let mut client = NewsClient::connect(server.address);
        for n in round * ARTICLES / 3..(round + 1) * ARTICLES / 3 {
            feed(&mut client, n);
        }
        kept = there(&mut client);
        server.kill();
        server = spool.serve();
        let mut client = NewsClient::connect(server.address);
        assert_eq!(there(&mut client), kept, "round {round}");
    }
    assert!((20..ARTICLES - 20).contains(&kept.len()), "{kept:?}");
    assert_eq!(kept.last(), Some(&(ARTICLES - 1)));
    spool.text(&["check"]);
    server.kill();
    // The device alone tells what lies in it, and nothing makes it a buffer of another spool.
    let verified = newsreel()
        .args(["store", "verify", "--json"])
        .arg(&device.device)
        .output();
    let report: Value = serde_json::from_str(&said(verified.unwrap()).unwrap()).unwrap();
    assert_eq!(report[0]["damaged"], 0);
    let other = Spool::with(&config(&device.device, "2MiB"));
    let error = other.error(&["serve"]);
    assert!(error.contains("another spool"), "{error}");
}

#[test]
fn a_block_device_that_is_too_small_or_not_blank_is_left_alone() {
    let folder = Spool::with("");
    let Some(device) = Loop::over(&folder.folder().join("image"), OCTETS) else {
        return;
    };
    let error = Spool::with(&config(&device.device, "4MiB")).error(&["serve"]);
    assert!(error.contains("has room for 2097152 octets"), "{error}");
    let file = RealDisk.open(&device.device, OpenMode::ReadWrite).unwrap();
    file.write_at(&[b'?'; 4096], 1 << 20).unwrap();
    file.sync_all().unwrap();
    let error = Spool::with(&config(&device.device, "2MiB")).error(&["serve"]);
    assert!(error.contains("blank"), "{error}");
    // What is free of the file system of its node says nothing of it.
    let create = ["store", "create", "--dry-run", "--json"];
    let planned = Spool::with(&config(&device.device, "2MiB")).run(&create);
    let planned: Value = serde_json::from_slice(&planned.stdout).unwrap();
    assert_eq!(planned[0]["free_octets"], Value::Null, "{planned}");
}

/// Nobody was told of it before the first article.
#[test]
fn a_buffer_on_a_device_that_is_read_only_is_suspended_at_once() {
    let folder = Spool::with("");
    let Some(device) = Loop::over(&folder.folder().join("image"), OCTETS) else {
        return;
    };
    let set = |to: &str| {
        let done = Command::new("blockdev")
            .arg(to)
            .arg(&device.device)
            .status();
        assert!(done.unwrap().success());
    };
    set("--setro");
    let spool = Spool::with(&config(&device.device, "2MiB"));
    let error = spool.error(&["serve"]);
    assert!(error.contains("read-only, so no buffer"), "{error}");
    set("--setrw");
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    feed(&mut NewsClient::connect(server.address), 1);
    server.stop();
    set("--setro");
    let server = spool.serve();
    let said = spool.text(&["store", "list"]);
    assert!(
        said.contains("suspended") && said.contains("`read_only = true`"),
        "{said}"
    );
    assert_eq!(there(&mut NewsClient::connect(server.address)), [1]);
    server.stop();
    set("--setrw");
    let server = spool.serve();
    assert!(!spool.text(&["store", "list"]).contains("suspended"));
    feed(&mut NewsClient::connect(server.address), 2);
}

/// Where both copies of its header were lost on the way the start was refused; a file went on with that.
#[test]
fn a_buffer_on_a_device_that_becomes_smaller_outlives_its_header() {
    // It stands in front of the new end, behind it, in the next cycle; the device ends with it, or behind it.
    let longer = OCTETS * 5 / 2;
    for (count, octets) in [(50, longer), (85, OCTETS * 2), (85, longer), (100, longer)] {
        let folder = Spool::with("");
        let Some(device) = Loop::over(&folder.folder().join("image"), octets) else {
            return;
        };
        let spool = Spool::with(&config(&device.device, "4MiB"));
        let mut server = spool.serve();
        spool.text(&["group", "add", "misc.test"]);
        let mut client = NewsClient::connect(server.address);
        (0..count).for_each(|n| feed(&mut client, n));
        spool.configure(&config(&device.device, "3MiB"));
        spool.text(&["store", "resize"]);
        let kept = there(&mut client);
        server.kill();
        let file = RealDisk.open(&device.device, OpenMode::ReadWrite).unwrap();
        file.write_at(&[0x55; 8192], 0).unwrap();
        file.sync_all().unwrap();
        for _ in 0..2 {
            server = spool.serve();
            let mut client = NewsClient::connect(server.address);
            // Where it stood behind the new end it goes on at the start: of what is oldest there two regions are reserved at once.
            let left = there(&mut client);
            let lost = (kept.len() - left.len()) * body(10).len();
            assert!(
                kept.ends_with(&left) && lost <= 2 * (3 << 20) / 16 + body(10).len(),
                "{count}: {left:?} of {kept:?}"
            );
            assert_eq!(spool.json(&["check"])["problems"], serde_json::json!([]));
            server.stop();
        }
        server = spool.serve();
        let mut client = NewsClient::connect(server.address);
        (count..ARTICLES + 80).for_each(|n| feed(&mut client, n));
        // With a checkpoint, as at a stop.
        server.stop();
        server = spool.serve();
        let state = spool.text(&["store", "list"]);
        assert!(!state.contains("becomes smaller"), "{count}: {state}");
        assert_eq!(spool.json(&["check"])["problems"], serde_json::json!([]));
        server.stop();
    }
}
