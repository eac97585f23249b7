//! What is measured: four batches, the statistics of the machine and the device meanwhile, and a run of small articles.
//!
//! Invariant: what is still in memory when a batch has been answered is written before the device is looked at; so a server
//! that leaves its writing for later has it counted all the same.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use newsreel_host::OpenMode;
use serde::Serialize;

use super::bare::{Bare, groups_of};
use super::contenders::{Contender, REFERENCE};
use crate::corpus::{self, Corpus, CorpusArgs, ListForm, Size};
use crate::error::Error;
use crate::feed::{self, FeedArgs};
use crate::load::{LoadArgs, Machine};
use crate::measure::calls::{Calls, Counting};
use crate::measure::machine::{CpuLook, CpuShares, DeviceCost, DeviceLook};
use crate::measure::process::ServerLook;
use crate::report::Moment;
use crate::rivals::{NO_FIGURES, Rival, Running};
use crate::usenetfs::FileSystem;
use crate::usenetfs::volume::{Volume, device_of};

/// The paper's batches.
const BATCHES: u64 = 4;
/// The small articles are looked at so often; their peak is the best of these.
const LOOK_SECS: f64 = 0.05;
/// Of an article as a file: its blocks, its inode, its share of everything else.
const OCTETS_A_FILE: u64 = 16 << 10;
/// Logs, views and what file systems need themselves; nothing is written to most of it.
const OCTETS_BESIDE: u64 = 1 << 30;

/// When a server makes articles durable that is told nothing of it.
pub const DURABILITY: &str = "group-commit";

/// What to measure.
#[derive(Debug, Clone)]
pub struct StorageArgs {
    /// An empty or new directory, for image files and mount points.
    pub directory: PathBuf,
    /// This program.
    pub program: PathBuf,
    /// The script that starts INN, if it is to be measured too.
    pub inn: Option<PathBuf>,
    /// On which file systems.
    pub file_systems: Vec<FileSystem>,
    /// The methods by name; none for all.
    pub methods: Vec<String>,
    /// Articles of a batch.
    pub articles: u64,
    /// Articles fed before anything is counted: a server in use has been around its buffers.
    pub warming_articles: u64,
    /// Small articles of the run after them; 0: no such run.
    pub short_articles: u64,
    /// Articles under way.
    pub window: usize,
    /// Cyclic buffers of a server together.
    pub buffers_octets: u64,
    /// When this program makes articles durable, as its configuration has it; others do as they are used to.
    pub durability: String,
    /// The articles: seed, groups, size.
    pub corpus: CorpusArgs,
    /// Servers listen on this port of 127.0.0.1.
    pub port: u16,
    /// Show a progress bar on standard error when that is a terminal.
    pub progress: bool,
}

impl StorageArgs {
    /// The paper's numbers, on ext4 and linear ext2.
    pub fn new(directory: PathBuf, program: PathBuf) -> Self {
        Self {
            directory,
            program,
            inn: None,
            file_systems: vec![FileSystem::Ext4, FileSystem::Ext2],
            methods: Vec::new(),
            articles: 5400,
            warming_articles: 0,
            short_articles: 20_000,
            window: 1000,
            buffers_octets: 512 << 20,
            durability: DURABILITY.to_owned(),
            // So that a batch goes to as many groups as the paper's did (2,616 to 2,962): threads that keep to theirs would make them fewer.
            corpus: CorpusArgs {
                groups: 6000,
                is_even: true,
                replies_percent: 42,
                ..CorpusArgs::default()
            },
            port: 11_930,
            progress: false,
        }
    }
}

/// A batch, as a row of the paper's figure 8.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Batch {
    /// Articles in it.
    pub articles: u64,
    /// Groups that one of them is in.
    pub groups: u64,
    /// Octets of its articles.
    pub octets: u64,
    /// How long the session took.
    pub seconds: f64,
    /// Articles accepted in a second.
    pub per_second: f64,
}

/// The statistics of the paper's figure 9, of all batches together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statistics {
    /// Of the whole machine, the feeding client included.
    pub cpu: Option<CpuShares>,
    /// The server's processor time for an article.
    pub server_cpu_us: f64,
    /// The server's read calls.
    pub read_calls: u64,
    /// Its write calls.
    pub write_calls: u64,
    /// What it asked of the file systems.
    pub calls: Option<Calls>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_untold: Option<String>,
    /// What the device did, until nothing of it was in memory any more.
    pub device: Option<DeviceCost>,
    /// How long that last writing took.
    pub settling_seconds: f64,
}

/// The run of small articles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Short {
    /// Articles.
    pub articles: u64,
    /// Accepted in a second, from the first to the last.
    pub sustained: f64,
    /// In the best twentieth of a second; absent where it was over sooner.
    pub peak: Option<f64>,
}

/// From the first article until the server had ended: logs, views and checkpoints are in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Whole {
    /// Octets of all articles that were fed.
    pub octets: u64,
    /// What the device did.
    pub device: Option<DeviceCost>,
    /// Octets written to it for an octet of articles.
    pub written_ratio: Option<f64>,
}

/// A server with a method on a file system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The file system.
    pub file_system: String,
    /// `newsreel` or `inn`; `bare`: the calls alone, durable as often as in a session; `unsynced`: never.
    pub server: String,
    /// The storage method.
    pub method: String,
    /// Figure 8.
    pub batches: Vec<Batch>,
    /// Of all batches together: articles in a second.
    pub per_second: f64,
    /// How many times the rate of this server's articles as files.
    pub factor: Option<f64>,
    /// Figure 9.
    pub statistics: Statistics,
    /// The small articles.
    pub short: Option<Short>,
    /// Everything.
    pub whole: Whole,
    /// What went wrong; a row with any is no measurement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub complaints: Vec<String>,
}

impl Row {
    /// Whether it is what others of its server are held against.
    #[must_use]
    pub fn is_reference(&self) -> bool {
        self.method == REFERENCE
    }

    /// What its figures are held against: articles as files, of the same server on the same file system.
    #[must_use]
    pub fn reference<'a>(&self, rows: &'a [Self]) -> Option<&'a Self> {
        rows.iter().find(|row| {
            row.is_reference() && row.server == self.server && row.file_system == self.file_system
        })
    }
}

/// Measures; every row is told when it is there.
pub fn run(
    args: &StorageArgs,
    machine: Machine<'_>,
    on_row: &mut dyn FnMut(&Row),
) -> Result<Vec<Row>, Error> {
    let feed = Feed::new(args, machine)?;
    let mut rows: Vec<Row> = Vec::new();
    for &file_system in &args.file_systems {
        for contender in Contender::all(args) {
            let mut row = measure(args, &contender, file_system, &feed, machine)?;
            row.factor = row
                .reference(&rows)
                .map(|reference| row.per_second / reference.per_second.max(1e-9));
            on_row(&row);
            rows.push(row);
        }
    }
    Ok(rows)
}

/// What every contender is fed.
struct Feed {
    warming: Option<Corpus>,
    /// All of the batches, one behind the other.
    whole: Corpus,
    batches: Vec<(Corpus, Batch)>,
    short: Option<(Corpus, u64)>,
    names: String,
}

impl Feed {
    fn new(args: &StorageArgs, machine: Machine<'_>) -> Result<Self, Error> {
        let corpus = CorpusArgs {
            articles: Some(args.warming_articles + args.articles * BATCHES),
            base_time_secs: Some(machine.clock.now().secs),
            ..args.corpus.clone()
        };
        let short = CorpusArgs {
            // Others than those of the batches.
            seed: corpus.seed + 1,
            size: Size::Small,
            articles: Some(args.short_articles),
            ..corpus.clone()
        };
        let all = Corpus::new(&corpus, machine.disk, machine.clock)?;
        let short = match args.short_articles {
            0 => None,
            _ => Some(Corpus::new(&short, machine.disk, machine.clock)?),
        };
        let begin = all.first() + args.warming_articles;
        let warming = (begin > all.first()).then(|| all.part(all.first(), begin));
        let mut batches = Vec::new();
        for first in (0..BATCHES).map(|n| begin + n * args.articles) {
            let part = all.part(first, first + args.articles);
            let batch = describe(&part);
            batches.push((part, batch));
        }
        let names = corpus::list(all.groups().iter().map(String::as_str), ListForm::Names);
        let short = short.map(|short| {
            let octets = describe(&short).octets;
            (short, octets)
        });
        Ok(Self {
            warming,
            whole: all.part(begin, begin + BATCHES * args.articles),
            batches,
            short,
            names,
        })
    }

    /// In the order of the feed.
    fn corpora(&self) -> impl Iterator<Item = &Corpus> {
        let short = self.short.iter().map(|(short, _)| short);
        self.batches.iter().map(|(part, _)| part).chain(short)
    }

    fn articles(&self) -> u64 {
        let short = self.short.iter().map(|(short, _)| short.len());
        let batches = self.batches.iter().map(|(part, _)| part.len());
        short.chain(batches).sum()
    }

    fn octets(&self) -> u64 {
        let short = self.short.iter().map(|(_, octets)| *octets);
        let batches = self.batches.iter().map(|(_, batch)| batch.octets);
        short.chain(batches).sum()
    }
}

fn describe(corpus: &Corpus) -> Batch {
    let mut groups = BTreeSet::new();
    let (mut octets, mut scratch) = (0, Vec::new());
    for n in corpus.first()..corpus.end() {
        let (head, body) = corpus.parts(n, &mut scratch);
        octets += (head.len() + body.len()) as u64;
        groups.extend(groups_of(head));
    }
    Batch {
        articles: corpus.len(),
        groups: groups.len() as u64,
        octets,
        seconds: 0.0,
        per_second: 0.0,
    }
}

fn measure(
    args: &StorageArgs,
    contender: &Contender,
    file_system: FileSystem,
    feed: &Feed,
    machine: Machine<'_>,
) -> Result<Row, Error> {
    let files = feed.articles() + args.warming_articles;
    let (kept, inodes) = match contender.method.is_cyclic() {
        // The table of inodes, too, would take the room that its log and views need.
        true => (0, 0),
        false => (files * OCTETS_A_FILE + 3 * feed.octets(), files * 2),
    };
    let room = kept + 2 * args.buffers_octets + OCTETS_BESIDE;
    let volume = Volume::with_room(&args.directory, file_system, inodes, room)?;
    let at = volume.at().join("server");
    machine.disk.create_dir_all(&at)?;
    let mut rival = None;
    let worker = match contender.bare(args, &at) {
        Some(mut bare) => {
            feed.corpora().for_each(|corpus| bare.prepare(corpus));
            Worker::Bare(bare)
        }
        None => {
            let started = start((args, contender, machine), &volume, &at, feed)?;
            Worker::Server(rival.insert(started).1)
        }
    };
    let mut stage = Stage {
        args,
        machine,
        worker,
        at: volume.at(),
        device: device_of(volume.at())?,
        complaints: Vec::new(),
    };
    if let (Some(warming), Worker::Server(_)) = (&feed.warming, &stage.worker) {
        stage.feed(warming, Told::default())?;
    }
    machine.disk.sync_file_system(volume.at())?;
    let before = stage.look();
    let (batches, statistics) = stage.feed_batches(feed)?;
    let short = stage.feed_short(feed)?;
    if let Some((mut rival, _)) = rival {
        rival.stop()?;
    }
    machine.disk.sync_file_system(volume.at())?;
    let all = stage.since(before);
    let octets = feed.octets();
    let articles: u64 = batches.iter().map(|batch| batch.articles).sum();
    let seconds: f64 = batches.iter().map(|batch| batch.seconds).sum();
    Ok(Row {
        file_system: file_system.name().to_owned(),
        server: contender.server.to_owned(),
        method: contender.method.name.to_owned(),
        batches,
        per_second: articles as f64 / seconds.max(1e-9),
        factor: None,
        statistics,
        short,
        whole: Whole {
            octets,
            device: all,
            written_ratio: all.map(|all| all.written_octets as f64 / octets.max(1) as f64),
        },
        complaints: stage.complaints,
    })
}

/// Starts a server that has the groups.
fn start(
    (args, contender, machine): (&StorageArgs, &Contender, Machine<'_>),
    volume: &Volume,
    at: &Path,
    feed: &Feed,
) -> Result<(Box<dyn Rival>, Running), Error> {
    let (config, groups) = (volume.at().join("config"), volume.at().join("groups"));
    write(machine, &groups, &feed.names)?;
    let sets = contender.method.config(args.buffers_octets, None);
    let words = format!(
        "{NO_FIGURES}[engine]\ndurability = \"{}\"\n{sets}",
        args.durability
    );
    write(machine, &config, &words)?;
    let mut rival = contender.rival(args, &config);
    let address = ([127, 0, 0, 1], args.port).into();
    let running = rival.start(at, address, &groups)?;
    Ok((rival, running))
}

/// Who does the work.
enum Worker {
    Server(Running),
    Bare(Bare),
}

impl Worker {
    fn pid(&self) -> u32 {
        match self {
            Self::Server(running) => running.pid,
            Self::Bare(_) => std::process::id(),
        }
    }
}

/// What came of a part of the feed.
#[derive(Default)]
struct Fed {
    accepted: u64,
    seconds: f64,
    timeline: Vec<Moment>,
    lap_secs: Vec<f64>,
}

/// What else is to be told of it.
#[derive(Default)]
struct Told {
    /// How it stood every so many seconds.
    timeline_secs: Option<f64>,
    /// When each so many articles were answered.
    lap_operations: Option<u64>,
}

/// A server at work on a file system.
struct Stage<'a> {
    args: &'a StorageArgs,
    machine: Machine<'a>,
    worker: Worker,
    at: &'a Path,
    device: String,
    complaints: Vec<String>,
}

impl Stage<'_> {
    fn look(&self) -> Option<DeviceLook> {
        DeviceLook::take(self.machine.disk, &self.device)
    }

    fn since(&self, before: Option<DeviceLook>) -> Option<DeviceCost> {
        Some(self.look()?.since(&before?))
    }

    fn feed_batches(&mut self, feed: &Feed) -> Result<(Vec<Batch>, Statistics), Error> {
        let (disk, pid) = (self.machine.disk, self.worker.pid());
        let counting = Counting::start(pid);
        let (device, cpu) = (self.look(), CpuLook::take(disk));
        let server = ServerLook::take(disk, pid);
        let seconds = self.batch_seconds(feed)?;
        let batches: Vec<Batch> = feed
            .batches
            .iter()
            .zip(seconds)
            .map(|((_, batch), seconds)| Batch {
                seconds,
                per_second: batch.articles as f64 / seconds.max(1e-9),
                ..batch.clone()
            })
            .collect();
        let cpu = cpu.and_then(|before| CpuLook::take(disk)?.since(&before));
        let cost = ServerLook::take(disk, pid).since(&server);
        let (calls, calls_untold) = match counting.and_then(Counting::stop) {
            Ok(calls) => (Some(calls), None),
            Err(why) => (None, Some(why)),
        };
        let begin = self.machine.clock.monotonic();
        self.machine.disk.sync_file_system(self.at)?;
        let settled = self.machine.clock.monotonic().saturating_sub(begin);
        let articles: u64 = batches.iter().map(|batch| batch.articles).sum();
        let statistics = Statistics {
            cpu,
            server_cpu_us: cost.cpu.as_secs_f64() * 1e6 / articles.max(1) as f64,
            read_calls: cost.read_calls,
            write_calls: cost.write_calls,
            calls,
            calls_untold,
            device: self.since(device),
            settling_seconds: settled.as_secs_f64(),
        };
        Ok((batches, statistics))
    }

    /// How long each batch took, all of them in one session: from the answer to the last article before it to that to its last.
    fn batch_seconds(&mut self, feed: &Feed) -> Result<Vec<f64>, Error> {
        if let Worker::Bare(bare) = &mut self.worker {
            let batches = feed.batches.iter();
            return batches.map(|_| Ok(bare.write(self.machine)?.1)).collect();
        }
        let told = Told {
            lap_operations: Some(self.args.articles),
            ..Told::default()
        };
        let fed = self.feed(&feed.whole, told)?;
        let begins = std::iter::once(&0.0).chain(&fed.lap_secs);
        let seconds: Vec<f64> = fed
            .lap_secs
            .iter()
            .zip(begins)
            .map(|(end, begin)| end - begin)
            .collect();
        match seconds.len() as u64 {
            BATCHES => Ok(seconds),
            answered => Err(Error::Unanswered {
                answered,
                batches: BATCHES,
                complaints: self.complaints.join("; "),
            }),
        }
    }

    fn feed_short(&mut self, feed: &Feed) -> Result<Option<Short>, Error> {
        let Some((corpus, _)) = &feed.short else {
            return Ok(None);
        };
        let told = Told {
            timeline_secs: Some(LOOK_SECS),
            ..Told::default()
        };
        let fed = self.feed(corpus, told)?;
        Ok(Some(Short {
            articles: fed.accepted,
            sustained: fed.accepted as f64 / fed.seconds.max(1e-9),
            peak: peak(&fed.timeline),
        }))
    }

    /// One streaming session; whatever the server does not take is complained of.
    fn feed(&mut self, corpus: &Corpus, told: Told) -> Result<Fed, Error> {
        let address = match &mut self.worker {
            Worker::Server(running) => running.address,
            Worker::Bare(bare) => {
                let (accepted, seconds) = bare.write(self.machine)?;
                return Ok(Fed {
                    accepted,
                    seconds,
                    ..Fed::default()
                });
            }
        };
        let load = LoadArgs {
            progress: self.args.progress,
            timeline_secs: told.timeline_secs,
            lap_operations: told.lap_operations,
            ..LoadArgs::new(address)
        };
        // Or the end of one is answered with the beginning of the next.
        let window_max = told.lap_operations.map_or(usize::MAX, |lap| {
            usize::try_from(lap / 4).unwrap_or(usize::MAX).max(1)
        });
        let args = FeedArgs {
            window: self.args.window.min(window_max),
            ..FeedArgs::new(load)
        };
        let report = feed::run(&args, corpus, self.machine)?;
        self.complaints.extend(report.complaints.iter().cloned());
        if report.accepted != corpus.len() {
            let (taken, all) = (report.accepted, corpus.len());
            let reasons = report.reasons.iter().map(ToString::to_string);
            let reasons = reasons.collect::<Vec<_>>().join("; ");
            let complaint = format!("{taken} of {all} articles were taken: {reasons}");
            self.complaints.push(complaint);
        }
        Ok(Fed {
            accepted: report.accepted,
            seconds: report.seconds,
            timeline: report.timeline,
            lap_secs: report.lap_secs,
        })
    }
}

/// The best rate between two looks one after the other.
fn peak(timeline: &[Moment]) -> Option<f64> {
    let pairs = timeline.iter().zip(timeline.iter().skip(1));
    let rates = pairs.map(|(before, after)| {
        let done = after.operations.saturating_sub(before.operations);
        done as f64 / (after.at_secs - before.at_secs).max(1e-9)
    });
    rates.max_by(f64::total_cmp)
}

fn write(machine: Machine<'_>, path: &Path, text: &str) -> Result<(), Error> {
    let file = machine.disk.open(path, OpenMode::CreateNew)?;
    Ok(file.write_at(text.as_bytes(), 0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_goes_to_as_many_groups_as_in_the_paper() {
        let args = StorageArgs::new(PathBuf::new(), PathBuf::new());
        let clock = newsreel_host::RealClock::new();
        for batch in 0..4 {
            let corpus = CorpusArgs {
                first: batch * args.articles,
                articles: Some(args.articles),
                ..args.corpus.clone()
            };
            let batch = describe(&Corpus::new(&corpus, &newsreel_host::RealDisk, &clock).unwrap());
            assert!((2616..=3100).contains(&batch.groups), "{batch:?}");
        }
    }

    #[test]
    fn the_peak_is_between_two_looks() {
        let at = |at_secs, operations| Moment {
            at_secs,
            operations,
            server_rss_bytes: None,
        };
        let timeline = [at(0.05, 100), at(0.10, 900), at(0.15, 1000)];
        let best = peak(&timeline).unwrap();
        assert!((best - 16_000.0).abs() < 1.0, "{best}");
        assert_eq!(peak(&timeline[..1]), None);
    }
}
