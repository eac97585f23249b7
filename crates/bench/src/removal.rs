//! How long the oldest articles of large groups take to go: by this program's expiry, and by INN's `fastrm` from a flat directory.
//!
//! Every contender gets the same articles on a file system of its own, filled by this program, which stores them as INN does.
//! Nothing of it is in memory when the removal begins, and it is durable before the next contender begins; root is needed.
//! Invariant: a row counts only if exactly the articles that were to go are gone.
#![expect(
    clippy::disallowed_methods,
    reason = "the files of a measurement are no spool of ours"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use newsreel_host::OpenMode;
use newsreel_host::mounts::canonical;
use serde::Serialize;

use crate::corpus::{self, Corpus, CorpusArgs, ListForm};
use crate::error::Error;
use crate::feed::{self, FeedArgs};
use crate::load::{LoadArgs, Machine};
use crate::measure::machine::DeviceLook;
use crate::report::Report;
use crate::rivals::{CommandRival, NO_FIGURES, Rival as _};
use crate::storage::groups_of;
use crate::usenetfs::FileSystem;
use crate::usenetfs::volume::{Volume, device_of, forget_everything, told};

/// Of an article as a file: its blocks, its inode, its share of everything else.
const OCTETS_A_FILE: u64 = 16 << 10;
/// Log, views, and what the file system needs itself.
const OCTETS_BESIDE: u64 = 1 << 30;
const SET: &str = "all";
/// How often, and with what pause, it is looked whether a file is gone.
const LOOKS_MAX: u32 = 10_000;
const LOOK_AFTER: Duration = Duration::from_millis(1);

/// What to measure.
#[derive(Debug, Clone)]
pub struct RemovalArgs {
    /// An empty or new directory, for image files and mount points.
    pub directory: PathBuf,
    /// This program.
    pub program: PathBuf,
    /// INN's `fastrm`, if that is to be measured too.
    pub fastrm: Option<PathBuf>,
    /// On which file systems.
    pub file_systems: Vec<FileSystem>,
    /// The layouts of directories from which this program removes.
    pub layouts: Vec<String>,
    /// Articles of a group.
    pub articles: u64,
    /// Groups.
    pub groups: usize,
    /// How many of each go.
    pub oldest: u64,
    /// The server listens on this port of 127.0.0.1.
    pub port: u16,
    /// Show a progress bar on standard error when that is a terminal.
    pub progress: bool,
}

/// Who removed how fast.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The file system.
    pub file_system: String,
    /// `newsreel` or `fastrm`.
    pub program: String,
    /// The layout of the directories.
    pub layout: String,
    /// Articles that went.
    pub articles: u64,
    /// How long it took until the program said that they are gone.
    pub seconds: f64,
    /// The same for one.
    pub article_us: f64,
    /// Of that, until its file was gone and the log durable: what a program does that only removes files. Behind it are the rules
    /// and the overview, which say what is to go.
    pub removal_us: f64,
    /// How long it took from then until nothing of it was in memory only.
    pub settling_seconds: f64,
    /// Reads and writes of the device, that included.
    pub operations: Option<u64>,
}

impl Row {
    /// For a terminal.
    #[must_use]
    pub fn human(&self) -> String {
        let operations = self.operations.unwrap_or_default();
        format!(
            "{:4} {:8} {:10} {:>7} articles, {:>7.1} us each, {:>7.1} of them to remove it, {:.3} s more until all are durably gone, \
             disk operations {operations}",
            self.file_system,
            self.program,
            self.layout,
            self.articles,
            self.article_us,
            self.removal_us,
            self.settling_seconds,
        )
    }
}

/// Measures; every row is told when it is there.
pub fn run(
    args: &RemovalArgs,
    machine: Machine<'_>,
    on_row: &mut dyn FnMut(&Row),
) -> Result<Vec<Row>, Error> {
    let corpus = CorpusArgs {
        groups: args.groups,
        is_even: true,
        crossposted_percent: 0,
        articles: Some(args.articles * args.groups as u64),
        base_time_secs: Some(machine.clock.now().secs),
        ..CorpusArgs::default()
    };
    let corpus = Corpus::new(&corpus, machine.disk, machine.clock)?;
    let mut rows = Vec::new();
    for &file_system in &args.file_systems {
        let fastrm = args.fastrm.as_deref().map(|fastrm| ("flat", Some(fastrm)));
        let own = args.layouts.iter().map(|layout| (layout.as_str(), None));
        for (layout, fastrm) in fastrm.into_iter().chain(own) {
            let room = corpus.len() * OCTETS_A_FILE + OCTETS_BESIDE;
            let files = 2 * corpus.len();
            let volume = Volume::with_room(&args.directory, file_system, files, room)?;
            let stage = Stage {
                args,
                machine,
                volume: &volume,
                corpus: &corpus,
                layout,
            };
            let row = stage.measure(file_system, fastrm)?;
            on_row(&row);
            rows.push(row);
        }
    }
    Ok(rows)
}

/// One contender at work.
struct Stage<'a> {
    args: &'a RemovalArgs,
    machine: Machine<'a>,
    volume: &'a Volume,
    corpus: &'a Corpus,
    layout: &'a str,
}

impl Stage<'_> {
    fn measure(&self, file_system: FileSystem, fastrm: Option<&Path>) -> Result<Row, Error> {
        let mut server = self.server("")?;
        self.start(&mut server)?;
        self.feed()?;
        server.stop()?;
        let before = self.count()?;
        // With the file system everything goes that is known of it.
        self.volume.cool(self.machine.disk)?;
        let mut server = self.server(&self.rules())?;
        let names = self.oldest()?;
        if fastrm.is_none() {
            self.start(&mut server)?;
        }
        self.volume.settle(self.machine.disk)?;
        forget_everything()?;
        let committed = self.commit_us(fastrm)?;
        let device = device_of(self.volume.at())?;
        let device_before = DeviceLook::take(self.machine.disk, &device);
        let begin = self.machine.clock.monotonic();
        match fastrm {
            Some(fastrm) => remove(fastrm, &names)?,
            None => {
                self.expire()?;
                self.wait_until_gone(&names);
            }
        }
        let end = self.machine.clock.monotonic();
        self.machine.disk.sync_file_system(self.volume.at())?;
        let settled = self.machine.clock.monotonic().saturating_sub(end);
        let committed = self.commit_us(fastrm)?.zip(committed);
        let device_after = DeviceLook::take(self.machine.disk, &device);
        server.stop()?;
        let articles = before.saturating_sub(self.count()?);
        let wanted = self.args.oldest * self.args.groups as u64;
        if articles != wanted {
            return Err(Error::Program {
                program: fastrm.unwrap_or(&self.args.program).display().to_string(),
                why: format!("{articles} articles are gone, {wanted} should be"),
            });
        }
        let seconds = end.saturating_sub(begin).as_secs_f64();
        let removing = committed.map_or(seconds * 1e6, |(after, before)| after - before);
        Ok(Row {
            file_system: file_system.name().to_owned(),
            program: fastrm.map_or("newsreel", |_| "fastrm").to_owned(),
            layout: self.layout.to_owned(),
            articles,
            seconds,
            article_us: seconds * 1e6 / articles.max(1) as f64,
            removal_us: removing / articles.max(1) as f64,
            settling_seconds: settled.as_secs_f64(),
            operations: device_after
                .zip(device_before)
                .map(|(after, before)| after.since(&before).operations()),
        })
    }

    fn spool(&self) -> PathBuf {
        self.volume.at().join("server/spool")
    }

    /// Where the directories of groups are.
    fn articles(&self) -> PathBuf {
        canonical(&self.spool().join("articles").join(SET))
    }

    /// A server that stores files, with this in its configuration besides.
    fn server(&self, more: &str) -> Result<CommandRival, Error> {
        let words = format!(
            "[[set]]\nname = \"{SET}\"\nmethod = \"tradspool\"\nlayouts = [\"* {}\"]\n[[rule]]\nset = \"{SET}\"\n{more}",
            self.layout
        );
        configured(&self.args.program, self.volume.at(), &words, self.machine)
    }

    /// With which the oldest of each group go, when that is asked for and not before.
    fn rules(&self) -> String {
        let mut articles: BTreeMap<String, u64> = BTreeMap::new();
        let mut scratch = Vec::new();
        for n in self.corpus.first()..self.corpus.end() {
            let (head, _) = self.corpus.parts(n, &mut scratch);
            for group in groups_of(head) {
                *articles.entry(group).or_default() += 1;
            }
        }
        let rules = articles.into_iter().map(|(group, articles)| {
            let stay = articles.saturating_sub(self.args.oldest);
            format!("[[expire]]\ngroups = \"{group}\"\narticles_max = {stay}\n")
        });
        let rules: String = rules.collect();
        format!("[scrub]\noctets_per_s = 0\n[expiry]\nrows_per_s = 0\n{rules}")
    }

    fn start(&self, server: &mut CommandRival) -> Result<(), Error> {
        start(
            server,
            self.corpus,
            self.volume.at(),
            self.args.port,
            self.machine,
        )
        .map(drop)
    }

    fn feed(&self) -> Result<(), Error> {
        let load = LoadArgs {
            progress: self.args.progress,
            ..LoadArgs::new(([127, 0, 0, 1], self.args.port).into())
        };
        feed_all(load, self.corpus, self.machine)
    }

    /// Files of articles that are there.
    fn count(&self) -> Result<u64, Error> {
        let mut count = 0;
        walk(&self.articles(), &mut |_, _| count += 1)?;
        Ok(count)
    }

    /// The oldest of each group, as lines, in the order in which they are best removed.
    fn oldest(&self) -> Result<String, Error> {
        let mut names = Vec::new();
        walk(&self.articles(), &mut |path, number| {
            if number <= self.args.oldest {
                names.push((
                    path.parent().map(Path::to_path_buf),
                    number,
                    path.to_path_buf(),
                ));
            }
        })?;
        names.sort();
        let lines = names
            .iter()
            .map(|(_, _, path)| format!("{}\n", path.display()));
        Ok(lines.collect())
    }

    fn expire(&self) -> Result<(), Error> {
        let spool = self.spool();
        let words = ["expire".as_ref(), "--spool".as_ref(), spool.as_os_str()];
        told(Command::new(&self.args.program).args(words), "").map(drop)
    }

    /// The server says that articles are gone when nobody is shown them any more; the files of the last go a moment later.
    fn wait_until_gone(&self, names: &str) {
        for name in names.lines().rev() {
            for _ in 0..LOOKS_MAX {
                if !Path::new(name).exists() {
                    break;
                }
                std::thread::sleep(LOOK_AFTER);
            }
        }
    }

    /// How long the server's commits took so far; the last one is counted a moment after it.
    fn commit_us(&self, fastrm: Option<&Path>) -> Result<Option<f64>, Error> {
        if fastrm.is_some() {
            return Ok(None);
        }
        let spool = self.spool();
        std::thread::sleep(20 * LOOK_AFTER);
        let mut command = Command::new(&self.args.program);
        command.args(["status", "--json", "--spool"]).arg(spool);
        let status = told(&mut command, "")?;
        let status: serde_json::Value = serde_json::from_slice(&status).unwrap_or_default();
        Ok(status["counters"]["commit_us"].as_f64())
    }
}

/// This program as a server with this configuration, which is written below `at`.
pub(crate) fn configured(
    program: &Path,
    at: &Path,
    words: &str,
    machine: Machine<'_>,
) -> Result<CommandRival, Error> {
    let config = at.join("config");
    let file = machine.disk.open(&config, OpenMode::CreateOrOpen)?;
    file.set_len(0)?;
    file.write_at(format!("{NO_FIGURES}{words}").as_bytes(), 0)?;
    let own = CommandRival::newsreel(&program.display().to_string());
    Ok(own.with_words(&["--config", &config.display().to_string()]))
}

/// Starts a server in a directory below `at`, with the groups of a corpus; its process.
pub(crate) fn start(
    server: &mut CommandRival,
    corpus: &Corpus,
    at: &Path,
    port: u16,
    machine: Machine<'_>,
) -> Result<u32, Error> {
    let (groups, directory) = (at.join("groups"), at.join("server"));
    let names = corpus.groups().iter().map(String::as_str);
    let file = machine.disk.open(&groups, OpenMode::CreateOrOpen)?;
    file.write_at(corpus::list(names, ListForm::Names).as_bytes(), 0)?;
    machine.disk.create_dir_all(&directory)?;
    let running = server.start(&directory, ([127, 0, 0, 1], port).into(), &groups)?;
    Ok(running.pid)
}

/// Feeds a server all articles of a corpus.
///
/// # Errors
/// When it does not take every one.
pub(crate) fn feed_all(load: LoadArgs, corpus: &Corpus, machine: Machine<'_>) -> Result<(), Error> {
    feed_each(&FeedArgs::new(load), corpus, machine).map(drop)
}

/// The same in any manner; what came of it.
///
/// # Errors
/// When it does not take every one.
pub(crate) fn feed_each(
    args: &FeedArgs,
    corpus: &Corpus,
    machine: Machine<'_>,
) -> Result<Report, Error> {
    let report = feed::run(args, corpus, machine)?;
    if report.accepted == corpus.len() {
        return Ok(report);
    }
    let reasons = report.reasons.iter().map(ToString::to_string);
    Err(Error::Program {
        program: "the server".to_owned(),
        why: reasons.collect::<Vec<_>>().join("; "),
    })
}

/// Every file whose name is a number.
fn walk(dir: &Path, seen: &mut dyn FnMut(&Path, u64)) -> Result<(), Error> {
    let failed = |source| Error::Stream {
        what: format!("cannot look into {}", dir.display()),
        source,
    };
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if entry.file_type().map_err(failed)?.is_dir() {
            walk(&entry.path(), seen)?;
        } else if let Some(number) = name.to_str().and_then(|name| name.parse().ok()) {
            seen(&entry.path(), number);
        }
    }
    Ok(())
}

/// Has `fastrm` remove what these lines name, as INN's expiry does.
fn remove(fastrm: &Path, names: &str) -> Result<(), Error> {
    let words = ["-e", "-u", "-s", "/"];
    told(Command::new(fastrm).args(words), names).map(drop)
}
