//! The passes of one contender after the other.
//!
//! Invariant: what cannot be measured here is named with its reason, and the others are; nothing that a contender made stays.

use std::path::Path;

use newsreel_host::OpenMode;
use serde::Serialize;

use super::about::{About, file_system_of};
use super::args::{BATCH_EVERY, RETENTION, ToasterArgs};
use super::feed::Feed;
use super::inn::{InnSubject, Order};
use super::limit::Limit;
use super::newsreel::Newsreel;
use super::place::{Place, Room, Site, cost, why_not_cold};
use super::subject::{Subject, Taken};
use super::variant::Variant;
use crate::compare::make_directory;
use crate::corpus::{self, ListForm};
use crate::error::Error;
use crate::load::Machine;
use crate::measure::machine::DeviceCost;
use crate::measure::progress::Progress;
use crate::storage::{METHODS, Method};
use crate::usenetfs::volume::forget_everything;

/// Of an article as a file: its blocks, its inode, its share of everything else.
const OCTETS_A_FILE: u64 = 16 << 10;
/// Of an article in log, history and overview, for as long as they are kept.
const OCTETS_AT_HOME: u64 = 2 << 10;
/// What file systems, logs and views need themselves.
const OCTETS_BESIDE: u64 = 512 << 20;
/// Of a record besides its article, and what two buffers need themselves.
const OCTETS_A_RECORD: u64 = 256;
const OCTETS_OF_BUFFERS: u64 = 8 << 20;

/// How long something took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Phase {
    /// Until it was done.
    pub seconds: f64,
    /// How long it took from then until nothing of it was in memory only.
    pub settling_seconds: f64,
    /// What the devices of the articles did meanwhile, that included.
    pub device: Option<DeviceCost>,
}

/// What went out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sent {
    /// Articles.
    pub articles: u64,
    /// How long it took.
    pub seconds: f64,
}

/// What went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expired {
    /// Articles; of INN files, of which a crossposted article has several.
    pub articles: u64,
    /// How long it took.
    #[serde(flatten)]
    pub phase: Phase,
}

/// One pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pass {
    /// Its number, from 1.
    pub pass: u32,
    /// Batches.
    pub batches: u64,
    /// Articles in them.
    pub articles: u64,
    /// Octets of them.
    pub octets: u64,
    /// What came of them.
    #[serde(flatten)]
    pub taken: Taken,
    /// Articles unbatched in a second.
    pub per_second: f64,
    /// How long that took.
    pub unbatch: Phase,
    /// What went out, in every third pass.
    pub batch: Option<Sent>,
    /// What went.
    pub expire: Expired,
}

/// All passes of one contender.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// Where its articles lay.
    pub place: String,
    /// `newsreel` or `inn`.
    pub server: String,
    /// Its storage method.
    pub method: String,
    /// What was done otherwise; `plain`: nothing.
    pub variant: String,
    /// The file system that they lay on, as the kernel calls it.
    pub file_system: String,
    /// How articles went out.
    pub batch_is: String,
    /// The passes.
    pub passes: Vec<Pass>,
    /// Articles unbatched in a second, of all passes.
    pub per_second: f64,
    /// The rate of the last pass, as a share of the first's.
    pub ageing: f64,
    /// The rate of pass 8, the first after articles went, as a share of pass 7's.
    pub eight_to_seven: Option<f64>,
    /// BLAKE3 of all batches that it was fed.
    pub digest: String,
    /// What was not quite as it was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What went wrong; a run with any is no measurement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub complaints: Vec<String>,
}

/// What was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skip {
    /// Which contender.
    pub what: String,
    /// Why.
    pub why: String,
    /// Whether it was begun and went wrong; else this machine has not got what it needs.
    pub is_failure: bool,
}

/// Everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The machine, and what was asked for.
    pub about: About,
    /// Why caches were not emptied between phases, if they were not.
    pub warm: Option<String>,
    /// What was measured.
    pub runs: Vec<Run>,
    /// What was not.
    pub skipped: Vec<Skip>,
}

/// Who is measured.
#[derive(Debug, Clone, Copy)]
enum Contender {
    Newsreel(Method),
    Inn,
}

impl Contender {
    fn all(args: &ToasterArgs) -> Vec<Self> {
        let chosen = METHODS.into_iter().filter(|method| {
            args.methods.is_empty() || args.methods.iter().any(|name| name == method.name)
        });
        let inn = args.inn.iter().map(|_| Self::Inn);
        chosen.map(Self::Newsreel).chain(inn).collect()
    }

    const fn names(&self) -> (&'static str, &'static str) {
        match self {
            Self::Newsreel(method) => ("newsreel", method.name),
            Self::Inn => ("inn", "tradspool"),
        }
    }
}

/// What a contender is told of when it is done, or why it was not begun.
#[derive(Debug)]
pub enum Told<'a> {
    /// It was measured.
    Run(&'a Run),
    /// It was not.
    Skip(&'a Skip),
}

/// Measures; every contender is told when it is done.
pub fn run(
    args: &ToasterArgs,
    machine: Machine<'_>,
    on_done: &mut dyn FnMut(Told<'_>),
) -> Result<Report, Error> {
    for directory in [Some(&args.directory), args.at.as_ref()] {
        directory.map_or(Ok(()), |directory| make_directory(directory, machine))?;
    }
    let feed = Feed::new(args, machine)?;
    let mut report = Report {
        about: About::new(args, &feed, machine),
        warm: match args.warm {
            true => Some("that was asked for".to_owned()),
            false => why_not_cold(),
        },
        ..Report::default()
    };
    let buffers = feed.octets_of(RETENTION)
        + OCTETS_A_RECORD * u64::from(RETENTION) * feed.pass_articles()
        + OCTETS_OF_BUFFERS;
    for (place, contender, variant) in all(args) {
        let bench = Bench {
            args,
            machine,
            feed: &feed,
            buffers,
            is_cold: report.warm.is_none(),
        };
        match bench.measure(place, contender, variant) {
            Ok(run) => {
                on_done(Told::Run(&run));
                report.runs.push(run);
            }
            Err(failed) => {
                let (server, method) = contender.names();
                // What this machine has not got is no fault.
                let is_failure = !matches!(failed, Error::Missing { .. });
                let why = failed.to_string();
                let what = format!("{} {server} {method} {}", place.name(), variant.name());
                let skip = Skip {
                    what,
                    why,
                    is_failure,
                };
                on_done(Told::Skip(&skip));
                report.skipped.push(skip);
            }
        }
    }
    Ok(report)
}

/// Everybody everywhere, and then otherwise. What INN alone can do otherwise is nobody else's.
fn all(args: &ToasterArgs) -> Vec<(Place, Contender, Variant)> {
    let mut all = Vec::new();
    for &place in &args.places {
        for contender in Contender::all(args) {
            let can = |variant: &Variant| {
                *variant != Variant::HistoryOrder || matches!(contender, Contender::Inn)
            };
            let variants = args.variants.iter().copied().filter(can);
            all.extend(variants.map(|variant| (place, contender, variant)));
        }
    }
    all
}

/// A contender at work. It ends before its site and its group go.
struct Stage<'a> {
    subject: Box<dyn Subject + 'a>,
    site: &'a Site<'a>,
    limit: Option<Limit>,
    digest: blake3::Hasher,
}

/// What all contenders have in common.
struct Bench<'a> {
    args: &'a ToasterArgs,
    machine: Machine<'a>,
    feed: &'a Feed,
    buffers: u64,
    is_cold: bool,
}

impl Bench<'_> {
    fn room(&self, contender: Contender) -> Room {
        let passes = u64::from(RETENTION) + 1;
        let live = passes * self.feed.pass_articles();
        let octets = self.feed.octets_of(RETENTION + 1);
        let is_cyclic = matches!(contender, Contender::Newsreel(method) if method.is_cyclic());
        let (files, kept) = match is_cyclic {
            true => (0, self.buffers),
            false => (2 * live, live * OCTETS_A_FILE + 2 * octets),
        };
        Room {
            files,
            octets: kept + OCTETS_BESIDE,
            home_octets: self.feed.articles() * OCTETS_AT_HOME + octets + OCTETS_BESIDE,
        }
    }

    fn measure(&self, place: Place, contender: Contender, variant: Variant) -> Result<Run, Error> {
        let limit = self.args.memory_octets.map(Limit::new).transpose()?;
        let site = Site::new(self.args, place, variant, self.room(contender))?;
        let names = self.feed.groups().iter().map(String::as_str);
        write(
            self.machine,
            &site.home.join("groups"),
            &corpus::list(names, ListForm::Names),
        )?;
        let places = (site.home.as_path(), site.articles.as_path());
        let (args, machine) = (self.args, self.machine);
        let subject: Box<dyn Subject> = match (contender, &args.inn) {
            (Contender::Newsreel(method), _) => {
                Box::new(Newsreel::new(args, machine, method, places, self.buffers)?)
            }
            (Contender::Inn, Some(programs)) => {
                let order = match variant {
                    Variant::HistoryOrder => Order::History,
                    _ => Order::Sorted,
                };
                let links = place.has_links();
                Box::new(InnSubject::new(
                    args, machine, programs, places, order, links,
                ))
            }
            (Contender::Inn, None) => return Err(Error::WorkerLost),
        };
        let mut stage = Stage {
            subject,
            site: &site,
            limit,
            digest: blake3::Hasher::new(),
        };
        let (mut passes, mut complaints) = (Vec::<Pass>::new(), Vec::new());
        let (server, method) = contender.names();
        let what = format!("{} {server} {method}", place.name());
        let progress = Progress::new(args.progress, &what, Some(self.feed.articles()));
        for pass in 1..=args.passes {
            let before = passes.last().map_or(0, |pass| pass.taken.accepted);
            let pass = self.pass(pass, before, &mut stage)?;
            complain(&pass, before, &mut complaints);
            passes.push(pass);
            progress.at(passes.iter().map(|pass| pass.articles).sum());
        }
        let rate = |number: usize| passes.get(number - 1).map(|pass| pass.per_second);
        let share = |of: Option<f64>, to: Option<f64>| Some(of? / to?.max(1e-9));
        let accepted: u64 = passes.iter().map(|pass| pass.taken.accepted).sum();
        let seconds: f64 = passes.iter().map(|pass| pass.unbatch.seconds).sum();
        Ok(Run {
            place: place.name().to_owned(),
            server: server.to_owned(),
            method: method.to_owned(),
            variant: variant.name().to_owned(),
            file_system: file_system_of(&site.articles),
            batch_is: stage.subject.batch_is().to_owned(),
            per_second: accepted as f64 / seconds.max(1e-9),
            ageing: share(rate(passes.len()), rate(1)).unwrap_or(0.0),
            eight_to_seven: share(rate(8), rate(7)),
            digest: stage.digest.finalize().to_hex().to_string(),
            passes,
            remarks: site.remarks(),
            complaints,
        })
    }

    fn pass(&self, pass: u32, before: u64, stage: &mut Stage<'_>) -> Result<Pass, Error> {
        let Stage {
            subject,
            site,
            limit,
            digest,
        } = stage;
        let pid = subject.begin(pass)?;
        if let Some(limit) = limit {
            limit.add(pid)?;
        }
        let batches = self
            .feed
            .write(pass, subject.incoming(), self.machine, digest)?;
        subject.receive(&batches)?;
        let ((), unbatch) = self.timed(site, || subject.unbatch(&batches))?;
        let taken = subject.taken(&batches)?;
        let batch = match pass % BATCH_EVERY {
            0 => {
                self.cool(site)?;
                Some(subject.batch(pass, before)?)
            }
            _ => None,
        };
        subject.look(pass)?;
        let (articles, phase) = self.timed(site, || subject.expire(pass))?;
        subject.end(pass)?;
        Ok(Pass {
            pass,
            batches: batches.files.len() as u64,
            articles: batches.articles,
            octets: batches.octets,
            taken,
            per_second: taken.accepted as f64 / unbatch.seconds.max(1e-9),
            unbatch,
            batch,
            expire: Expired { articles, phase },
        })
    }

    fn cool(&self, site: &Site<'_>) -> Result<(), Error> {
        if !self.is_cold {
            return Ok(());
        }
        site.settle(self.machine)?;
        forget_everything()
    }

    fn timed<T>(
        &self,
        site: &Site<'_>,
        act: impl FnOnce() -> Result<T, Error>,
    ) -> Result<(T, Phase), Error> {
        self.cool(site)?;
        let (clock, before) = (self.machine.clock, site.look(self.machine));
        let begin = clock.monotonic();
        let done = act()?;
        let end = clock.monotonic();
        site.settle(self.machine)?;
        let phase = Phase {
            seconds: end.saturating_sub(begin).as_secs_f64(),
            settling_seconds: clock.monotonic().saturating_sub(end).as_secs_f64(),
            device: cost(&before, &site.look(self.machine)),
        };
        Ok((done, phase))
    }
}

/// What must not be in a measurement.
fn complain(pass: &Pass, before: u64, complaints: &mut Vec<String>) {
    let number = pass.pass;
    if pass.taken.accepted == 0 || pass.taken.deferred > 0 {
        let (accepted, deferred) = (pass.taken.accepted, pass.taken.deferred);
        complaints.push(format!(
            "pass {number}: {accepted} articles accepted, {deferred} put off"
        ));
    }
    // Real articles cancel each other, and what is cancelled does not go out.
    if let Some(sent) = &pass.batch
        && sent.articles * 100 < before * 95
    {
        complaints.push(format!(
            "pass {number}: {} of {before} articles went out",
            sent.articles
        ));
    }
}

fn write(machine: Machine<'_>, path: &Path, text: &str) -> Result<(), Error> {
    let file = machine.disk.open(path, OpenMode::CreateNew)?;
    Ok(file.write_at(text.as_bytes(), 0)?)
}
