//! What it costs that very many articles expire by a rule: in time, and on the devices of articles and of everything else.
//!
//! Articles lie on a file system of their own, log and views on another, each in an image, so that the devices tell whether the area of
//! articles was touched; root is needed. Nothing of either is in memory only when a step begins or ends.
//! Invariant: a row counts only if every article was taken, and all but the newest of each group are gone.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use newsreel_host::mounts::canonical;
use serde::Serialize;

use crate::corpus::{Corpus, CorpusArgs, Size};
use crate::error::Error;
use crate::load::{LoadArgs, Machine};
use crate::measure::machine::{DeviceCost, DeviceLook};
use crate::removal;
use crate::rivals::{CommandRival, Rival as _};
use crate::storage::{Method, UNTOLD, groups_of, heading, line};
use crate::usenetfs::FileSystem;
use crate::usenetfs::volume::{Volume, device_of, told};

/// The methods that keep many articles in a file: what goes of them is never touched.
pub const EXPIRING: [&str; 2] = ["cnfs", "segment"];

/// Room of the articles' file system for one of them.
const OCTETS_AN_ARTICLE: u64 = 6 << 10;
/// ... of buffers besides: what comes is to overwrite nothing.
const BUFFER_OCTETS_BESIDE: u64 = 64 << 20;
/// ... of the other one: its records in the log and the views, old and new.
const OCTETS_OF_VIEWS: u64 = 3 << 10;
/// What file systems and logs need themselves.
const OCTETS_BESIDE: u64 = 1 << 30;
const INODES: u64 = 1024;
/// A server that reads nothing for so long has started, or it is measured as it is after so many looks.
const REST: Duration = Duration::from_millis(500);
const RESTS_MAX: u32 = 60;

/// The newest article of each group stays, and nothing goes before that is asked for. No checkpoint comes meanwhile, also not for want of
/// memory: what it writes into headers and bitmap of cyclic buffers, and behind the end of segments, lies on the device of the articles, and
/// would hide whether their area was touched.
const RULES: &str = "[engine]\ncheckpoint_log_octets = 1099511627776\ncheckpoint_s_max = 86400\n\
                     [index]\nhistory_rows_max = 16777216\ntail_bytes_max = 1073741824\n[scrub]\noctets_per_s = 0\n\
                     [expiry]\nrows_per_s = 0\nwithdrawn_max = 1000000000\n[[expire]]\narticles_max = 1\n";

/// What to measure.
#[derive(Debug, Clone)]
pub struct ExpiryArgs {
    /// An empty or new directory, for image files and mount points.
    pub directory: PathBuf,
    /// This program.
    pub program: PathBuf,
    /// On which file system.
    pub file_system: FileSystem,
    /// The methods by name.
    pub methods: Vec<String>,
    /// Articles, of which all but the newest of each group expire.
    pub articles: u64,
    /// Groups they are in.
    pub groups: usize,
    /// The server listens on this port of 127.0.0.1.
    pub port: u16,
    /// Show a progress bar on standard error when that is a terminal.
    pub progress: bool,
}

/// A step of it, on both devices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Step {
    /// How long it took until nothing of it was in memory only.
    pub seconds: f64,
    /// What the device of the articles did.
    pub articles: Option<DeviceCost>,
    /// What that of log and views did.
    pub views: Option<DeviceCost>,
}

/// One method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The file system.
    pub file_system: String,
    /// The storage method.
    pub method: String,
    /// Articles that expired.
    pub expired: u64,
    /// Until nobody is shown them any more, durably.
    pub expiring: Step,
    /// The server stops with a checkpoint, which writes headers and bitmap of cyclic buffers in front of their articles, notes behind the end
    /// of segments what went of them, and takes what is left of them in the views out of these.
    pub reclaiming: Step,
}

impl Row {
    /// Octets of log and views that a step wrote for an article.
    pub(crate) fn written_each(&self, step: &Step) -> f64 {
        let written = step.views.map_or(0, |cost| cost.written_octets);
        written as f64 / self.expired.max(1) as f64
    }

    /// For a terminal.
    #[must_use]
    pub fn human(&self) -> String {
        let touched = |step: &Step| {
            let cost = step.articles;
            cost.map_or_else(
                || UNTOLD.to_owned(),
                |cost| {
                    format!(
                        "{} read and {} written",
                        cost.read_octets, cost.written_octets
                    )
                },
            )
        };
        format!(
            "{:4} {:8} {:>9} articles expired in {:.2} s: octets of the articles' device {}, log and views written {:.0} octets \
             an article; reclaimed in {:.2} s: {}, {:.0} octets an article",
            self.file_system,
            self.method,
            self.expired,
            self.expiring.seconds,
            touched(&self.expiring),
            self.written_each(&self.expiring),
            self.reclaiming.seconds,
            touched(&self.reclaiming),
            self.written_each(&self.reclaiming),
        )
    }
}

/// Measures; every row is told when it is there.
pub fn run(
    args: &ExpiryArgs,
    machine: Machine<'_>,
    on_row: &mut dyn FnMut(&Row),
) -> Result<Vec<Row>, Error> {
    let corpus = CorpusArgs {
        groups: args.groups,
        is_even: true,
        crossposted_percent: 0,
        size: Size::Small,
        articles: Some(args.articles),
        base_time_secs: Some(machine.clock.now().secs),
        ..CorpusArgs::default()
    };
    let corpus = Corpus::new(&corpus, machine.disk, machine.clock)?;
    let expires = corpus.len() - filled(&corpus);
    let mut rows = Vec::new();
    for method in &args.methods {
        let volume = |name: &str, each: u64| {
            let room = args.articles * each + OCTETS_BESIDE;
            Volume::named(&args.directory, name, args.file_system, (INODES, room))
        };
        let stage = Stage {
            args,
            machine,
            articles: volume("articles", OCTETS_AN_ARTICLE)?,
            views: volume("views", OCTETS_OF_VIEWS)?,
            corpus: &corpus,
            expires,
            method: Method::named(method)?,
        };
        let row = stage.measure()?;
        on_row(&row);
        rows.push(row);
    }
    Ok(rows)
}

/// How many groups the articles are in.
fn filled(corpus: &Corpus) -> u64 {
    let (mut groups, mut scratch) = (BTreeSet::new(), Vec::new());
    for n in corpus.first()..corpus.end() {
        let (head, _) = corpus.parts(n, &mut scratch);
        groups.extend(groups_of(head));
    }
    groups.len() as u64
}

/// The rows as a table.
#[must_use]
pub fn markdown(rows: &[Row]) -> String {
    let titles = [
        "method",
        "articles expired",
        "step",
        "seconds",
        "KB read of the articles' device",
        "KB written to it",
        "log and views: KB read",
        "octets written an article",
    ];
    let mut text = String::new();
    heading(&mut text, &titles.map(str::to_owned));
    for row in rows {
        for (name, step) in [("expiring", &row.expiring), ("reclaiming", &row.reclaiming)] {
            let told = |cost: Option<DeviceCost>, of: fn(DeviceCost) -> u64| {
                cost.map_or_else(|| UNTOLD.to_owned(), |cost| of(cost).to_string())
            };
            let cells = [
                format!("{} ({})", row.method, row.file_system),
                row.expired.to_string(),
                name.to_owned(),
                format!("{:.2}", step.seconds),
                told(step.articles, |cost| cost.read_octets.div_ceil(1000)),
                told(step.articles, |cost| cost.written_octets.div_ceil(1000)),
                told(step.views, |cost| cost.read_octets.div_ceil(1000)),
                format!("{:.0}", row.written_each(step)),
            ];
            line(&mut text, cells);
        }
    }
    text
}

/// A method at work.
struct Stage<'a> {
    args: &'a ExpiryArgs,
    machine: Machine<'a>,
    articles: Volume,
    views: Volume,
    corpus: &'a Corpus,
    /// How many articles expire.
    expires: u64,
    method: Method,
}

/// Both devices at one moment.
type Looks = [Option<DeviceLook>; 2];

impl Stage<'_> {
    fn measure(&self) -> Result<Row, Error> {
        let mut server = self.server("")?;
        self.start(&mut server)?;
        self.feed()?;
        server.stop()?;
        let mut server = self.server(RULES)?;
        self.start(&mut server)?;
        self.rest()?;
        let mut expired = 0;
        let expiring = self.step(|| {
            expired = self.expire()?;
            Ok(())
        })?;
        if expired != self.expires {
            return Err(Error::Program {
                program: self.args.program.display().to_string(),
                why: format!("{expired} articles expired, {} should", self.expires),
            });
        }
        let reclaiming = self.step(|| server.stop())?;
        Ok(Row {
            file_system: self.args.file_system.name().to_owned(),
            method: self.method.name.to_owned(),
            expired,
            expiring,
            reclaiming,
        })
    }

    /// What something did on both devices, until nothing of it is in memory only.
    fn step(&self, does: impl FnOnce() -> Result<(), Error>) -> Result<Step, Error> {
        self.settle()?;
        let before = self.looks()?;
        let begin = self.machine.clock.monotonic();
        does()?;
        self.settle()?;
        let took = self.machine.clock.monotonic().saturating_sub(begin);
        let after = self.looks()?;
        let [articles, views] = [0, 1].map(|at| {
            let (before, after) = (before.get(at)?.as_ref()?, after.get(at)?.as_ref()?);
            Some(after.since(before))
        });
        Ok(Step {
            seconds: took.as_secs_f64(),
            articles,
            views,
        })
    }

    /// Waits until a server that has just started reads nothing more: what a start looks at is no part of what is measured.
    fn rest(&self) -> Result<(), Error> {
        for _ in 0..RESTS_MAX {
            let before = self.looks()?;
            std::thread::sleep(REST);
            let after = self.looks()?;
            let is_still = before.iter().zip(&after).all(|(before, after)| {
                let looks = before.as_ref().zip(after.as_ref());
                looks.is_none_or(|(before, after)| after.since(before).reads == 0)
            });
            if is_still {
                break;
            }
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), Error> {
        self.articles.settle(self.machine.disk)?;
        self.views.settle(self.machine.disk)
    }

    fn looks(&self) -> Result<Looks, Error> {
        let look = |volume: &Volume| -> Result<Option<DeviceLook>, Error> {
            let device = device_of(volume.at())?;
            Ok(DeviceLook::take(self.machine.disk, &device))
        };
        Ok([look(&self.articles)?, look(&self.views)?])
    }

    fn spool(&self) -> PathBuf {
        canonical(self.views.at()).join("server/spool")
    }

    /// A server whose articles lie on their own file system, with this in its configuration besides.
    fn server(&self, more: &str) -> Result<CommandRival, Error> {
        // As the set's directory it may have nothing else in it.
        let at = canonical(self.articles.at()).join("set");
        self.machine.disk.create_dir_all(&at)?;
        let octets = self.args.articles * OCTETS_AN_ARTICLE + BUFFER_OCTETS_BESIDE;
        let words = self.method.config(octets, Some(&at)) + more;
        removal::configured(&self.args.program, self.views.at(), &words, self.machine)
    }

    fn start(&self, server: &mut CommandRival) -> Result<(), Error> {
        removal::start(
            server,
            self.corpus,
            self.views.at(),
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
        removal::feed_all(load, self.corpus, self.machine)
    }

    /// How many articles went.
    fn expire(&self) -> Result<u64, Error> {
        let mut command = Command::new(&self.args.program);
        command.args(["expire", "--json", "--spool"]);
        let report = told(command.arg(self.spool()), "")?;
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap_or_default();
        Ok(report["articles"].as_u64().unwrap_or_default())
    }
}
