//! Whole spools of older versions are read, served and written on: one of each set of formats, made once and kept.
//!
//! A folder in `tests/fixtures/formats` belongs to a set of versions, which its `versions` lists.  In it are the
//! configuration (`newsreel.toml`), the spool as a killed server left it (`spool.zst`: for each file a line with path
//! and octets, then the octets), and what it must answer (`spool.nntp`, a transcript).  What is there is never made
//! again.  A new set: a number in [`NEWEST`], a folder with the first and the last of these, copied from the set before,
//! and `cargo xtask bless`, which makes the spool and the list.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use newsreel_host::{Disk as _, RealDisk, read_whole, replace_file};
use newsreel_testkit::transcript::{Action, parse};
use newsreel_testkit::{CLOCK_START_S, Driver, Runner, Setup, Support};
use serde_json::json;
use tokio::net::TcpStream;

use crate::client::NewsClient;
use crate::spool::{Server, Spool, newsreel, said};

/// The set that is written today.  Another one begins with a new number here, and `cargo xtask bless`.
const NEWEST: &str = "9";

/// Nothing of ours is larger, and nobody asks for so much.
const OCTETS_MAX: usize = 64 << 20;

/// Between the runs of the server that made a spool, and before it is served here: less than a jump of the clock.
const RUN_S: u64 = 12 * 3600;
const RUNS: u64 = 3;

/// So many that the log begins a second segment: the first one goes, and without the views' files all would be lost.
const MANY: u32 = 80;

/// Formats that no spool of a set has anything of: two are not of a spool, a mail is in it only while it waits, users and keys
/// only where somebody adds them, and logins where somebody logs in (their files are held to their formats by the tests of
/// `crates/cache`, `crates/mail`, `crates/users`, `crates/engine` and `crates/net`).
const BESIDE: [&str; 6] = [
    "cache.md",
    "control-keys.md",
    "logins.md",
    "mail.md",
    "managed-directory.md",
    "users.md",
];

/// Files of a running server, and none of the spool's.
const PASSING: [&str; 2] = ["lock", "control.sock"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sets() -> PathBuf {
    root().join("tests/fixtures/formats")
}

fn read(path: &Path) -> Vec<u8> {
    read_whole(&RealDisk, path, OCTETS_MAX)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn text(path: &Path) -> String {
    String::from_utf8(read(path)).unwrap()
}

/// The versions that the pages of a spool's formats say: page and title, a line each.
fn versions_today() -> String {
    let pages = root().join("docs/formats");
    let mut lines = String::new();
    let listed = RealDisk.list(&pages).unwrap();
    for page in listed
        .iter()
        .filter(|page| !BESIDE.contains(&page.name.as_str()))
    {
        let text = text(&pages.join(&page.name));
        let title = text.lines().next().unwrap().trim_start_matches("# ");
        lines.push_str(&format!("{}: {title}\n", page.name));
    }
    lines
}

/// The spool of a set, unpacked beside its configuration.
fn unpacked(set: &Path) -> Spool {
    let spool = Spool::with(&text(&set.join("newsreel.toml")));
    let packed = read(&set.join("spool.zst"));
    let mut octets = Vec::new();
    let decoder = zstd::Decoder::new(packed.as_slice()).unwrap();
    decoder
        .take(OCTETS_MAX as u64)
        .read_to_end(&mut octets)
        .unwrap();
    let mut rest = octets.as_slice();
    while let Some(end) = rest.iter().position(|octet| *octet == b'\n') {
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        let (path, len) = line.rsplit_once(' ').unwrap();
        let (file, after) = rest[end + 1..].split_at(len.parse().unwrap());
        let path = spool.path().join(path);
        RealDisk.create_dir_all(path.parent().unwrap()).unwrap();
        replace_file(&RealDisk, &path, file).unwrap();
        rest = after;
    }
    spool
}

fn pack(folder: &Path, below: &str, into: &mut Vec<u8>) {
    for entry in RealDisk.list(&folder.join(below)).unwrap() {
        let path = match below {
            "" => entry.name,
            below => format!("{below}/{}", entry.name),
        };
        if entry.is_dir {
            pack(folder, &path, into);
        } else if !PASSING.contains(&path.as_str()) {
            let octets = read(&folder.join(&path));
            into.extend_from_slice(format!("{path} {}\n", octets.len()).as_bytes());
            into.extend_from_slice(&octets);
        }
    }
}

fn serve(spool: &Spool, runs_before: u64) -> Server {
    let clock_s = CLOCK_START_S + runs_before * RUN_S;
    spool.serve_with(&["--clock", &clock_s.to_string()])
}

/// An article as a peer sends it.
fn article(id: &str, groups: &str, more: &str, body: &str) -> String {
    format!(
        "Path: peer.example!not-for-mail\r\nFrom: Jane <jane@example.org>\r\nNewsgroups: {groups}\r\n\
         Subject: about {id}\r\nDate: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: {id}\r\n{more}\r\n{body}.\r\n"
    )
}

fn take(client: &mut NewsClient, id: &str, groups: &str, more: &str, body: &str) {
    let wire = article(id, groups, more, body);
    client.send(format!("TAKETHIS {id}\r\n{wire}").as_bytes());
    assert_eq!(client.line(), format!("239 {id}"));
}

/// Makes the spool of a set: both buffers go around, two checkpoints, and a log behind them with every kind of record
/// that an administrator or a peer can cause; then the server is killed.
fn make(set: &Path) {
    let spool = Spool::with(&text(&set.join("newsreel.toml")));
    let server = serve(&spool, 0);
    let about = "--description";
    spool.text(&["group", "add", "old.large"]);
    spool.text(&["group", "add", "old.test", about, "Tests of long ago"]);
    spool.text(&["group", "add", "old.read", "--status", "n"]);
    spool.text(&["group", "add", "old.cross", "old.gone", "old.many"]);
    let mut client = NewsClient::connect(server.address);
    let line = "This line is there to fill a buffer, and says nothing.\r\n";
    for large in 0..20 {
        let id = format!("<large.{large}@old.example>");
        take(&mut client, &id, "old.large", "", &line.repeat(2500));
    }
    for many in 1..=MANY {
        let id = format!("<many.{many}@old.example>");
        take(&mut client, &id, "old.many", "", "one of many\r\n");
    }
    let id = |number: u32| format!("<{number}@old.example>");
    take(&mut client, &id(1), "old.test", "", "one\r\n");
    take(&mut client, &id(2), "old.test,old.cross", "", "two\r\n");
    take(&mut client, &id(3), "old.gone", "", "three\r\n");
    spool.text(&["group", "remove", "old.gone"]);
    drop(client);
    server.stop();

    let server = serve(&spool, 1);
    spool.text(&["group", "set", "old.cross", "--high", "99"]);
    let mut client = NewsClient::connect(server.address);
    let more = "References: <1@old.example>\r\n\t<2@old.example>\r\nX-Odd: caf\u{e9}\r\n";
    let body = "..a line with a dot in front\r\n\r\nthe last line\r\n";
    take(&mut client, &id(4), "old.cross,old.test", more, body);
    for number in 5..=8 {
        take(&mut client, &id(number), "old.test", "", "short\r\n");
    }
    drop(client);
    server.stop();

    let server = serve(&spool, 2);
    spool.text(&["group", "add", "old.late", "--status", "m"]);
    spool.text(&["group", "set", "old.test", about, "Tests of old"]);
    let mut client = NewsClient::connect(server.address);
    take(&mut client, &id(9), "old.test", "", "behind it\r\n");
    take(&mut client, &id(10), "old.cross", "", "the last\r\n");
    server.kill();
    let mut octets = Vec::new();
    pack(&spool.path(), "", &mut octets);
    let packed = zstd::encode_all(octets.as_slice(), 19).unwrap();
    replace_file(&RealDisk, &set.join("spool.zst"), &packed).unwrap();
    let versions = versions_today();
    replace_file(&RealDisk, &set.join("versions"), versions.as_bytes()).unwrap();
}

/// A server on the spool of a set.
struct OldSpool {
    set: PathBuf,
    running: Option<(Spool, Server)>,
}

impl OldSpool {
    fn running(&self) -> &(Spool, Server) {
        self.running.as_ref().unwrap()
    }
}

impl Driver for OldSpool {
    type Io = TcpStream;

    async fn start(&mut self, _: &Setup) -> anyhow::Result<Support> {
        let spool = unpacked(&self.set);
        // Without a server, with the given configuration and with the one in the spool.
        assert_eq!(spool.json(&["check"])["problems"], json!([]));
        let check = |command: &mut Command| said(command.output()?).map_err(anyhow::Error::msg);
        check(newsreel().args(["check", "--spool"]).arg(spool.path()))?;
        let server = serve(&spool, RUNS);
        self.running = Some((spool, server));
        Ok(Support::Done)
    }

    async fn connect(&mut self, _: &str) -> anyhow::Result<TcpStream> {
        Ok(TcpStream::connect(self.running().1.address).await?)
    }

    async fn act(&mut self, action: &Action) -> anyhow::Result<Support> {
        match action {
            Action::Restart | Action::Crash => {
                let (spool, server) = self.running.take().unwrap();
                match action {
                    Action::Crash => server.kill(),
                    _ => server.stop(),
                }
                let server = serve(&spool, RUNS);
                self.running = Some((spool, server));
                Ok(Support::Done)
            }
            Action::Run(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let text = self.running().0.text(&words);
                Ok(Support::Output(text.lines().map(str::to_owned).collect()))
            }
            other => anyhow::bail!("not on an old spool: {other:?}"),
        }
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        if let Some((spool, server)) = self.running.take() {
            server.stop();
            assert_eq!(spool.json(&["check"])["problems"], json!([]));
        }
        Ok(())
    }
}

/// `check` finds nothing, before and after, and what a set's transcript says holds: every article by id and by number,
/// groups, overview, ids that are known; one more article is there after a crash and after a stop.
#[test]
fn spools_of_all_versions_are_served() {
    let newest = sets().join(NEWEST);
    let lacks = !RealDisk.exists(&newest.join("spool.zst")).unwrap();
    if lacks && std::env::var_os("NEWSREEL_BLESS").is_some() {
        make(&newest);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut played = 0;
    for set in RealDisk.list(&sets()).unwrap() {
        let folder = sets().join(&set.name);
        if !set.is_dir {
            continue;
        }
        let path = folder.join("spool.nntp");
        let transcript = parse(&path, &folder, &text(&path));
        let mut driver = OldSpool {
            set: folder,
            running: None,
        };
        let report = runtime
            .block_on(Runner::new(&mut driver, Duration::from_secs(20)).play(&transcript.unwrap()));
        assert_eq!(report.failure(), None, "set {}", set.name);
        played += report.verdicts.len();
    }
    assert!(played > 0, "nothing was played");
}

/// Who gives a format another version keeps a spool of the new set: a new number here, then `cargo xtask bless`.
#[test]
fn the_newest_set_is_of_todays_versions() {
    assert_eq!(
        text(&sets().join(NEWEST).join("versions")),
        versions_today()
    );
}

/// The register of buffers had a version for which no spool was kept: files of text have theirs in their first line, and no page's title.
#[test]
fn text_files_of_the_newest_set_are_of_todays_versions() {
    let set = sets().join(NEWEST);
    let (kept, new) = (
        unpacked(&set),
        Spool::with(&text(&set.join("newsreel.toml"))),
    );
    serve(&new, 0).stop();
    let first_words = |path: &Path| {
        let octets = read(path);
        let line = octets.split(|octet| *octet == b'\n').next().unwrap();
        let line = String::from_utf8_lossy(line).into_owned();
        let words: Vec<&str> = line.split(' ').take(3).collect();
        line.starts_with("newsreel ").then(|| words.join(" "))
    };
    let mut compared = Vec::new();
    for name in [
        "buffers/register",
        "buffers/register.copy",
        "groups.changed",
        "scrub",
    ] {
        let (kept, new) = (kept.path().join(name), new.path().join(name));
        if RealDisk.exists(&kept).unwrap() && RealDisk.exists(&new).unwrap() {
            assert_eq!(first_words(&kept), first_words(&new), "{name}");
            compared.push(name);
        }
    }
    assert!(compared.contains(&"buffers/register"), "{compared:?}");
}
