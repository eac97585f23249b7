//! The transcripts, played against the real binary over loopback.
//!
//! Faults are provoked by what causes them: a process that may not write, buffers without their octets.  What needs a hand
//! inside the server is skipped with its reason; those files are played over the memory service by the session crate.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use newsreel_host::{
    Clock as _, Disk as _, OpenMode, RealClock, RealDisk, read_whole, replace_file,
};
use newsreel_testkit::transcript::{Action, parse};
use newsreel_testkit::{
    CLOCK_START_S, Driver, Runner, Setup, Support, Verdict, certificate, read_article,
};
use tokio::net::TcpStream;

use crate::client::NewsClient;
use crate::spool::{Server, Spool};

/// Whoever makes a group later than this after a start starts again: groups tell in which second they were made.
const STALE: Duration = Duration::from_millis(500);

/// What a buffer has before its articles.
const HEADERS_OCTETS: usize = 16 << 10;

/// Files that are played at the same time.
const AT_ONCE: usize = 3;

/// The longest `@advance` that is simply waited for.
const WAIT_MAX: Duration = Duration::from_secs(5);

struct ProcessDriver {
    running: Option<(Spool, Server)>,
    /// What the server took for the time when it was started.
    clock_s: u64,
    /// When the process began to count from there.
    since: RealClock,
    /// Whether the transcript has a connection: then the server cannot be started anew unnoticed.
    connected: bool,
    /// Buffers with other octets than they had.
    spoilt: Vec<(PathBuf, Vec<u8>)>,
}

impl ProcessDriver {
    fn running(&self) -> anyhow::Result<&(Spool, Server)> {
        self.running
            .as_ref()
            .ok_or_else(|| anyhow::anyhow!("no server is running"))
    }

    fn start_again(&mut self, crash: bool) -> anyhow::Result<()> {
        if let Some((spool, server)) = self.running.take() {
            if crash {
                server.kill()
            } else {
                server.stop()
            }
            self.since = RealClock::new();
            let server = start(&spool, self.clock_s);
            self.running = Some((spool, server));
        }
        Ok(())
    }

    /// A process takes its clock with it from its start on.
    fn set_clock(&mut self, now_s: u64) -> anyhow::Result<Support> {
        if self.connected {
            return Ok(Support::Cannot(
                "a running process keeps its clock".to_owned(),
            ));
        }
        self.clock_s = now_s;
        self.start_again(false)?;
        Ok(Support::Done)
    }

    /// Provokes it by what would cause it: a disk that takes nothing, or other octets.
    fn fault(&mut self, what: &str) -> anyhow::Result<Support> {
        if what == "damaged" && self.connected {
            let why = "what came lately is in the memory of a running process";
            return Ok(Support::Cannot(why.to_owned()));
        }
        match what {
            "full" | "failed" => {
                let (spool, server) = self.running()?;
                server.forbid_writing(spool);
            }
            "damaged" => {
                self.start_again(false)?;
                for path in self.buffers()? {
                    let octets = read_whole(&RealDisk, &path, 64 << 20)?;
                    let others = vec![b'?'; octets.len() - HEADERS_OCTETS];
                    let file = RealDisk.open(&path, OpenMode::ReadWrite)?;
                    file.write_at(&others, HEADERS_OCTETS as u64)?;
                    self.spoilt.push((path, octets));
                }
            }
            "none" => {
                for (path, octets) in self.spoilt.drain(..) {
                    let file = RealDisk.open(&path, OpenMode::ReadWrite)?;
                    file.write_at(&octets, 0)?;
                }
                let (spool, server) = self.running()?;
                server.allow_writing(spool);
            }
            _ => return Ok(Support::Cannot(format!("a real process has no {what}"))),
        }
        Ok(Support::Done)
    }

    fn buffers(&self) -> anyhow::Result<Vec<PathBuf>> {
        let folder = self.running()?.0.path().join("buffers");
        Ok(vec![folder.join("A"), folder.join("B")])
    }

    /// Brings an article in as a peer would, numbered as the transcript says.
    fn bring(&self, id: &str, groups: &[(String, Option<u64>)], wire: &[u8]) -> anyhow::Result<()> {
        let (spool, server) = self.running()?;
        for (group, number) in groups {
            if let Some(number) = number {
                let high = (number - 1).to_string();
                spool.text(&["group", "set", group, "--high", &high]);
            }
        }
        let mut client = NewsClient::connect(server.address);
        client.send(format!("TAKETHIS {id}\r\n").as_bytes());
        client.send(wire);
        let reply = client.line();
        anyhow::ensure!(reply == format!("239 {id}"), "{id} got {reply}");
        Ok(())
    }
}

fn start(spool: &Spool, clock_s: u64) -> Server {
    spool.serve_with(&["--clock", &clock_s.to_string()])
}

/// The configuration that a transcript asks for, or why it cannot be had.
fn configuration(setup: &Setup) -> Result<String, String> {
    let mut config = toml::Table::new();
    for (key, value) in &setup.config {
        let line = format!("{key} = {value}\n");
        let more: toml::Table = line
            .parse()
            .map_err(|error| format!("@config {line}: {error}"))?;
        merge(&mut config, more);
    }
    match setup
        .mode
        .as_deref()
        .map(|mode| mode.split(' ').next().unwrap_or_default())
    {
        None => {}
        Some("transit") => {
            let more: toml::Table = "engine.mode = \"transit\"".parse().map_err(|_| "mode")?;
            merge(&mut config, more);
        }
        Some(mode) => return Err(format!("no mode {mode}")),
    }
    if let Some((name, _)) = setup
        .with
        .iter()
        .find(|(name, value)| name != "store" || value != "cnfs")
    {
        return Err(format!("nothing else for {name} yet"));
    }
    let mut whole: toml::Table = Spool::changed(&[("age_s_max = 0", "")])
        .parse()
        .map_err(|error| format!("{error}"))?;
    merge(&mut whole, config);
    Ok(whole.to_string())
}

fn merge(into: &mut toml::Table, more: toml::Table) {
    for (key, value) in more {
        match (into.get_mut(&key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => merge(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

impl Driver for ProcessDriver {
    type Io = TcpStream;

    async fn start(&mut self, setup: &Setup) -> anyhow::Result<Support> {
        let config = match configuration(setup) {
            Ok(config) => config,
            Err(why) => return Ok(Support::Cannot(why)),
        };
        let spool = Spool::with(&config);
        if setup.config.iter().any(|(key, _)| key.starts_with("tls.")) {
            for (name, text) in certificate()?.files() {
                replace_file(&RealDisk, &spool.folder().join(name), text.as_bytes())?;
            }
        }
        *self = Self {
            clock_s: CLOCK_START_S,
            since: RealClock::new(),
            connected: false,
            running: None,
            spoilt: Vec::new(),
        };
        let server = start(&spool, self.clock_s);
        self.running = Some((spool, server));
        Ok(Support::Done)
    }

    async fn connect(&mut self, _name: &str) -> anyhow::Result<TcpStream> {
        self.connected = true;
        let stream = TcpStream::connect(self.running()?.1.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn act(&mut self, action: &Action) -> anyhow::Result<Support> {
        match action {
            Action::User {
                name,
                password,
                groups,
            } => {
                let mut words = vec!["user", "add", name];
                words.extend(groups.iter().flat_map(|group| ["--group", group]));
                let added = self.running()?.0.piped(&words, &format!("{password}\n"));
                added.map_err(anyhow::Error::msg)?;
            }
            Action::Group {
                name,
                status,
                description,
            } => {
                // On a busy machine its clock may be about to go on to the next second.
                if self.since.monotonic() > STALE && !self.connected {
                    self.start_again(false)?;
                }
                let words = [
                    "group",
                    "add",
                    name,
                    "--status",
                    status,
                    "--description",
                    description,
                ];
                self.running()?.0.text(&words);
            }
            Action::Article { id, groups, file } => {
                self.bring(id, groups, &read_article(file)?)?;
            }
            Action::Advance(by) if *by <= WAIT_MAX => tokio::time::sleep(*by).await,
            Action::Advance(by) => return self.set_clock(self.clock_s + by.as_secs()),
            Action::Clock(now_s) => return self.set_clock(*now_s),
            Action::Fault(words) => return self.fault(words.first().map_or("", String::as_str)),
            Action::Stop => self.running()?.1.signal("TERM"),
            Action::Restart => self.start_again(false)?,
            Action::Crash => self.start_again(true)?,
            Action::Run(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let text = self.running()?.0.text(&words);
                return Ok(Support::Output(text.lines().map(str::to_owned).collect()));
            }
            other => {
                return Ok(Support::Cannot(format!(
                    "a real process takes no {other:?}"
                )));
            }
        }
        Ok(Support::Done)
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        if let Some((_, server)) = self.running.take() {
            server.stop();
        }
        Ok(())
    }
}

fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests")
        .canonicalize()
        .unwrap()
}

/// What became of files that were played.
#[derive(Default)]
struct Played {
    plays: usize,
    failures: Vec<String>,
    skipped: Vec<String>,
}

/// Plays one file of a folder.
#[expect(clippy::print_stdout, reason = "a skipped file says why")]
fn play_one(folder: &str, name: &str) -> Played {
    let tests = tests_folder();
    let shown = Path::new("tests/transcripts").join(folder).join(name);
    let path = tests.join("transcripts").join(folder).join(name);
    let text = String::from_utf8(read_whole(&RealDisk, &path, 1 << 20).unwrap()).unwrap();
    let transcript = parse(&shown, &tests, &text).unwrap_or_else(|error| panic!("{error}"));
    let mut driver = ProcessDriver {
        running: None,
        clock_s: 0,
        since: RealClock::new(),
        connected: false,
        spoilt: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut runner = Runner::new(&mut driver, Duration::from_secs(20));
    let report = runtime.block_on(runner.play(&transcript));
    let mut played = Played::default();
    for (with, verdict) in &report.verdicts {
        match verdict {
            Verdict::Skipped(why) => {
                println!("{} {with}: skipped: {why}", shown.display());
                played.skipped.push(name.to_owned());
            }
            Verdict::Passed | Verdict::Failed(_) => played.plays += 1,
        }
    }
    played.failures.extend(report.failure());
    played
}

/// Plays every file of a folder but `skipped`, which cannot be played; some at the same time, because they mostly wait.
#[expect(clippy::print_stdout, reason = "the figure of the test")]
fn play(folder: &str, skipped: &[&str]) {
    let files = RealDisk.list(&tests_folder().join("transcripts").join(folder));
    let names: Vec<String> = files.unwrap().into_iter().map(|file| file.name).collect();
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Played::default()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let played = play_one(folder, name);
                    let mut all = all.lock().unwrap();
                    all.plays += played.plays;
                    all.failures.extend(played.failures);
                    all.skipped.extend(played.skipped);
                }
            });
        }
    });
    let mut all = all.into_inner().unwrap();
    println!("{folder}: {} plays", all.plays);
    all.skipped.sort();
    assert_eq!(all.skipped, skipped);
    assert!(all.plays > 0, "nothing was played");
    all.failures.sort();
    assert!(
        all.failures.is_empty(),
        "{} failed:\n{}",
        all.failures.len(),
        all.failures.join("\n\n")
    );
}

#[test]
fn transcripts_of_readers_hold_for_the_binary() {
    // Groups and overview are in memory, and the disk is sound: not all that the memory service fails at can fail here; nor
    // does a running process go to the next day.
    play(
        "reader",
        &[
            "access_groups.nntp",
            "faults.nntp",
            "list_modtime.nntp",
            "post_limits.nntp",
            "unreadable.nntp",
        ],
    );
}

#[test]
fn transcripts_of_peers_hold_for_the_binary() {
    play("transit", &[]);
}
