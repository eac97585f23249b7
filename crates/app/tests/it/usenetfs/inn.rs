//! INN's traditional spool on a mount: after a feed and an expiry it is, file by file, what it is on a plain directory.
//!
//! Skipped, with the reason printed, where INN is not installed.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use newsreel_bench::rivals::{INN_PROGRAMS, Inn, Rival as _};
use newsreel_testkit::free_ports;
use serde_json::Value;

use super::{Place, skipped};
use crate::scale::scaled;
use crate::spool::{newsreel, said};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Few groups, so that some are large; every fourth article goes to more than one.
const CORPUS: [&str; 6] = ["--seed", "11", "--groups", "4", "--crossposted", "25"];

/// An INN, and where it listens.
struct Peer {
    inn: Inn,
    address: SocketAddr,
}

impl Peer {
    fn start(directory: &Path, articles: &Path, groups: &Path, port: u16) -> Self {
        let mut inn = Inn::new(Path::new(INN_PROGRAMS), articles);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        inn.start(directory, address, groups).unwrap();
        Self { inn, address }
    }

    /// Feeds articles posted so long ago; all of them must be taken.
    fn feed(&self, first: u64, articles: u64, posted: SystemTime) {
        let base = posted.duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut feed = newsreel();
        feed.args(["bench", "feed", "--expect-all", "--json"])
            .args(CORPUS);
        feed.arg("--server").arg(self.address.to_string());
        feed.args([
            "--first",
            &first.to_string(),
            "--articles",
            &articles.to_string(),
        ]);
        feed.args(["--base-time", &base.to_string()]);
        let report = said(feed.output().unwrap()).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["accepted"], articles, "{report}");
    }
}

/// Everything below a directory: what a file holds, where a link leads, that a directory is one.
fn tree(top: &Path, at: &Path, seen: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(top).unwrap().to_path_buf();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            seen.insert(name, b"a directory".to_vec());
            tree(top, &path, seen);
        } else if kind.is_symlink() {
            // An absolute one leads into the spool it is in.
            let to = fs::read_link(&path).unwrap();
            let to = to.strip_prefix(top).unwrap_or(&to);
            seen.insert(name, to.as_os_str().as_encoded_bytes().to_vec());
        } else {
            seen.insert(name, fs::read(&path).unwrap());
        }
    }
}

fn numbers(tree: &BTreeMap<PathBuf, Vec<u8>>) -> usize {
    let is_number = |path: &&PathBuf| {
        let name = path.file_name().unwrap().as_encoded_bytes();
        name.iter().all(u8::is_ascii_digit)
    };
    tree.keys().filter(is_number).count()
}

#[test]
fn inn_keeps_on_a_mount_what_it_keeps_on_a_plain_directory() {
    let Some(place) = Place::new() else {
        return;
    };
    if !Inn::is_installed(Path::new(INN_PROGRAMS)) {
        return skipped("INN is not installed (apt-get install inn2)");
    }
    let groups = place.dir.path().join("groups");
    let mut list = newsreel();
    list.args(["bench", "corpus", "--list-groups", "names"])
        .args(CORPUS);
    fs::write(&groups, said(list.output().unwrap()).unwrap()).unwrap();
    let plain = place.dir.path().join("plain");
    fs::create_dir(&plain).unwrap();
    place
        .run(&["mount", "--inherit", "@lower", "@mnt"])
        .unwrap();
    let managed = place.managed("articles");

    let port = free_ports().unwrap();
    let start = |name: &str, articles: &Path, port| {
        Peer::start(&place.dir.path().join(name), articles, &groups, port)
    };
    let mut peers = [
        start("inn0", &plain, port),
        start("inn1", &managed, port + 1),
    ];
    let (now, half) = (SystemTime::now(), scaled(400, 5_000));
    for peer in &peers {
        peer.feed(0, half, now - 6 * DAY);
        peer.feed(half, half, now);
    }
    let trees = || {
        [&plain, &managed].map(|top| {
            let mut seen = BTreeMap::new();
            tree(top, top, &mut seen);
            seen
        })
    };
    let fed = trees();
    assert!(fed[0] == fed[1], "they differ after the feed");
    assert!(numbers(&fed[0]) > 2 * half as usize, "{}", numbers(&fed[0]));
    for peer in &peers {
        peer.inn.expire(3.0).unwrap();
    }
    let left = trees();
    assert!(left[0] == left[1], "they differ after the expiry");
    let (before, after) = (numbers(&fed[0]), numbers(&left[0]));
    assert!(
        (before / 3..before * 2 / 3).contains(&after),
        "{after} of {before}"
    );
    for peer in &mut peers {
        peer.inn.stop().unwrap();
    }
    place.run(&["umount", "@mnt"]).unwrap();
    let verified = place.json(&["verify", "--recursive", "@lower"]);
    assert!(
        verified["articles"].as_u64().unwrap() >= after as u64,
        "{verified}"
    );
}

/// A feed, readers and expiries at the same time; two minutes of it in CI.
#[test]
fn inn_soaks_on_a_mount() {
    let Some(place) = Place::new() else {
        return;
    };
    if !Inn::is_installed(Path::new(INN_PROGRAMS)) {
        return skipped("INN is not installed (apt-get install inn2)");
    }
    let seconds = scaled(6.0, 120.0);
    let mut soak = newsreel();
    soak.args(["bench", "usenetfs", "soak", "--json"]);
    soak.args(["--port", &free_ports().unwrap().to_string()]);
    soak.args(["--duration", &seconds.to_string()]);
    soak.args(["--cycle", &(seconds / 6.0).to_string()]);
    let report = soak.arg("--directory").arg(place.lower("soak")).output();
    let report: Value = serde_json::from_str(&said(report.unwrap()).unwrap()).unwrap();
    let of = |what: &str| report[what].as_u64().unwrap();
    assert_eq!((of("refused"), of("damaged")), (0, 0), "{report}");
    assert!(of("fed") > seconds as u64 * 30, "{report}");
    assert!(of("read") > seconds as u64 * 10, "{report}");
    // About half of what was fed is old enough to go.
    assert!(of("expired") > 0 && of("expiries") > 2, "{report}");
    let verified = report["verified"].as_str().unwrap();
    assert!(verified.contains(" 0 findings"), "{report}");
    // It goes on where it ended, with the articles that are there; the report says both runs.
    let mut soak = newsreel();
    soak.args(["bench", "usenetfs", "soak", "--json", "--continue"]);
    soak.args(["--port", &free_ports().unwrap().to_string()]);
    soak.args(["--duration", "2", "--cycle", "1"]);
    let sum = soak.arg("--directory").arg(place.lower("soak")).output();
    let sum: Value = serde_json::from_str(&said(sum.unwrap()).unwrap()).unwrap();
    let of = |report: &Value, what: &str| report[what].as_u64().unwrap();
    assert_eq!((of(&sum, "refused"), of(&sum, "damaged")), (0, 0), "{sum}");
    for what in ["fed", "read", "expiries"] {
        assert!(
            of(&sum, what) > of(&report, what),
            "{what}: {report}, then {sum}"
        );
    }
    let parts = sum["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 2, "{sum}");
    let begun = &report["parts"][0]["begun_secs"];
    assert_eq!(&parts[0]["begun_secs"], begun, "{sum}");
    let seconds: f64 = parts
        .iter()
        .map(|part| part["seconds"].as_f64().unwrap())
        .sum();
    assert!(
        (seconds - sum["seconds"].as_f64().unwrap()).abs() < 1e-6,
        "{sum}"
    );
    let noted = fs::read(place.lower("soak/soak.json")).unwrap();
    let noted: Value = serde_json::from_slice(&noted).unwrap();
    assert_eq!(noted["report"], sum);
}

/// Builds beside a server: whatever the machine, it lasts until articles were taken, let go and sent.
#[test]
fn a_package_is_built_beside_a_news_server() {
    let Some(place) = Place::new() else {
        return;
    };
    let has_inn = Inn::is_installed(Path::new(INN_PROGRAMS));
    let servers = if has_inn { "inn,newsreel" } else { "newsreel" };
    let (work, report) = (place.lower("work"), place.lower("figure.md"));
    let mut beside = newsreel();
    beside.args([
        "bench",
        "usenetfs",
        "beside",
        "--json",
        "--servers",
        servers,
    ]);
    beside.args(["--port", &free_ports().unwrap().to_string()]);
    beside.args([
        "--articles",
        "200",
        "--kept",
        "20",
        "--groups",
        "4",
        "--managed",
        "2",
    ]);
    beside.args(["--rate", "50", "--duration", "1", "--cycle", "1"]);
    beside.args(["--room", "128", "--sources", "2"]);
    beside
        .arg("--directory")
        .arg(&work)
        .arg("--report")
        .arg(&report);
    let found = match said(beside.output().unwrap()) {
        Ok(found) => found,
        Err(why)
            if ["mke2fs", "mount:", "compiler", "make: not found"]
                .iter()
                .any(|it| why.contains(it)) =>
        {
            return skipped(&format!(
                "no package can be built on a file system here: {why}"
            ));
        }
        Err(why) => panic!("{why}"),
    };
    let rows: Vec<Value> = serde_json::from_str(&found).unwrap();
    assert_eq!(rows.len(), if has_inn { 4 } else { 2 }, "{found}");
    for row in &rows {
        for what in ["fed", "expiries", "sent"] {
            assert!(row[what].as_u64().unwrap() > 0, "{what}: {row}");
        }
        assert_eq!(row["refused"], 0, "{row}");
        let builds = row["builds"].as_array().unwrap();
        assert!(!builds.is_empty(), "{row}");
        assert!(
            builds
                .iter()
                .all(|build| build["seconds"].as_f64().unwrap() > 0.0)
        );
    }
    let table = fs::read_to_string(&report).unwrap();
    assert_eq!(
        table.matches("| managed |").count(),
        rows.len() / 2,
        "{table}"
    );
    let figure = fs::read_to_string(report.with_extension("svg")).unwrap();
    assert!(figure.contains("newsreel, managed"), "{figure}");
    let left: Vec<String> = super::names(&work).into_iter().collect();
    assert_eq!(left, ["package.tar"]);
}
