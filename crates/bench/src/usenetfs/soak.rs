//! INN on a mount, with a feed, readers and expiry at the same time, for as long as one likes, in as many runs as it takes.
//!
//! Invariant: every article that is fed is taken, every one that is read is compared octet for octet, and at the end
//! nothing in the directory is where no view would find it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use newsreel_host::{OpenMode, read_whole, replace_file};
use newsreel_layout::Algorithm;
use serde::{Deserialize, Serialize};

use super::directory::Directory;
use super::volume::View;
use crate::corpus::{self, Corpus, CorpusArgs, ListForm};
use crate::error::Error;
use crate::feed::{self, FeedArgs};
use crate::load::{LoadArgs, Machine};
use crate::read::{self, ReadArgs, Verify};
use crate::report::Report;
use crate::rivals::{Inn, Rival as _};

/// Generated articles are dated within three hours before a time; half of them are older than this.
const KEPT_SECONDS: f64 = 5400.0;

const DAY_SECONDS: f64 = 86_400.0;

/// Where a soak notes how far it is, in its directory.
const NOTES: &str = "soak.json";
/// More octets than this are no notes.
const NOTES_BYTES_MAX: usize = 1 << 20;

/// How to soak.
#[derive(Debug, Clone)]
pub struct SoakArgs {
    /// An empty or new directory, for INN and its articles; or that of a soak that is to go on.
    pub directory: PathBuf,
    /// Whether one goes on there.
    pub continues: bool,
    /// The program that mounts.
    pub program: PathBuf,
    /// Where INN's programs are.
    pub inn: PathBuf,
    /// Where INN listens, on 127.0.0.1.
    pub port: u16,
    /// How long.
    pub seconds: f64,
    /// From one expiry to the next.
    pub cycle_seconds: f64,
    /// Articles fed a second, and as many read.
    pub rate: f64,
    /// Groups, all of them managed.
    pub groups: usize,
}

/// One run of a soak that was continued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SoakPart {
    /// When it began, in seconds since 1970.
    pub begun_secs: u64,
    /// How long it was.
    pub seconds: f64,
}

/// What happened, in all parts together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SoakReport {
    /// How long it was.
    pub seconds: f64,
    /// Each run.
    pub parts: Vec<SoakPart>,
    /// Articles that INN took.
    pub fed: u64,
    /// Articles that it did not.
    pub refused: u64,
    /// Articles that were read and compared.
    pub read: u64,
    /// Articles that had expired when they were asked for.
    pub expired: u64,
    /// Articles that were not as they had been fed, and connections that broke.
    pub damaged: u64,
    /// Expiries.
    pub expiries: u64,
    /// What `usenetfs verify` said at the end of the last part that came to its end.
    pub verified: String,
}

impl SoakReport {
    /// Whether everything was as it should be.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.refused == 0 && self.damaged == 0
    }

    fn add(&mut self, feed: &Report, readers: Option<&Report>) {
        self.fed += feed.accepted;
        self.refused += feed.refused;
        self.damaged += feed.damaged + feed.lost_connections;
        if let Some(readers) = readers {
            self.read += readers.operations - readers.missing;
            self.expired += readers.missing;
            self.damaged += readers.damaged + readers.lost_connections;
        }
    }

    /// The part that is under way has lasted so long.
    fn lasts(&mut self, seconds: f64) {
        if let Some(part) = self.parts.last_mut() {
            part.seconds = seconds;
        }
        self.seconds = self.parts.iter().map(|part| part.seconds).sum();
    }
}

/// How far a soak is; written before a cycle and after it, so that a run that is killed costs one cycle and offers nothing twice.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Notes {
    base_time_secs: u64,
    groups: usize,
    /// The article that the next cycle begins with.
    first: u64,
    /// Articles of the last cycle that was completed.
    known: Option<(u64, u64)>,
    report: SoakReport,
}

impl Notes {
    fn begin(args: &SoakArgs, machine: Machine<'_>) -> Result<Self, Error> {
        let begun_secs = machine.clock.now().secs;
        let mut notes = if args.continues {
            let octets = read_whole(machine.disk, &args.directory.join(NOTES), NOTES_BYTES_MAX)?;
            serde_json::from_slice(&octets).map_err(|error| Error::Argument {
                name: "the directory of the soak",
                value: args.directory.display().to_string(),
                why: format!("its {NOTES} cannot be read: {error}"),
            })?
        } else {
            Self {
                base_time_secs: begun_secs,
                groups: args.groups,
                first: 0,
                known: None,
                report: SoakReport::default(),
            }
        };
        notes.report.parts.push(SoakPart {
            begun_secs,
            seconds: 0.0,
        });
        Ok(notes)
    }

    fn write(&self, args: &SoakArgs, machine: Machine<'_>) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        Ok(replace_file(
            machine.disk,
            &args.directory.join(NOTES),
            &text,
        )?)
    }

    fn corpus(&self, machine: Machine<'_>, (first, articles): (u64, u64)) -> Result<Corpus, Error> {
        let args = CorpusArgs {
            groups: self.groups,
            base_time_secs: Some(self.base_time_secs),
            first,
            articles: Some(articles),
            ..CorpusArgs::default()
        };
        Corpus::new(&args, machine.disk, machine.clock)
    }
}

/// Soaks, or goes on; a mount or an INN that ends before its time is an error.
pub fn run(
    args: &SoakArgs,
    machine: Machine<'_>,
    on_cycle: &mut dyn FnMut(&SoakReport),
) -> Result<SoakReport, Error> {
    let mut notes = Notes::begin(args, machine)?;
    let lower = args.directory.join("lower");
    if !args.continues {
        Directory::make(&lower, Some(Algorithm::default()))?;
    }
    let articles = args.directory.join("articles");
    let view = View::inheriting(&args.program, &lower, &articles)?;
    let mut inn = Inn::new(&args.inn, view.at());
    let place = args.directory.join("inn");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    if args.continues {
        inn.start_again(&place, address)?;
    } else {
        machine.disk.create_dir_all(&place)?;
        inn.start(&place, address, &list_of_groups(args, machine, &notes)?)?;
    }
    let begin = machine.clock.monotonic();
    let elapsed = || (machine.clock.monotonic().saturating_sub(begin)).as_secs_f64();
    let each = ((args.rate * args.cycle_seconds) as u64).max(1);
    let mut known = notes
        .known
        .map(|part| notes.corpus(machine, part))
        .transpose()?;
    while elapsed() < args.seconds {
        let part = (notes.first, each);
        notes.first += each;
        notes.write(args, machine)?;
        let fresh = notes.corpus(machine, part)?;
        let age = machine
            .clock
            .now()
            .secs
            .saturating_sub(notes.base_time_secs);
        let expire = || inn.expire((age as f64 + KEPT_SECONDS) / DAY_SECONDS);
        let (fed, readers) = cycle(args, machine, address, &fresh, known.as_ref(), &expire)?;
        notes.report.add(&fed, readers.as_ref());
        notes.report.expiries += 1;
        notes.report.lasts(elapsed());
        notes.known = Some(part);
        notes.write(args, machine)?;
        on_cycle(&notes.report);
        known = Some(fresh);
    }
    inn.stop()?;
    drop(view);
    notes.report.verified = verify(&args.program, &lower)?;
    notes.write(args, machine)?;
    Ok(notes.report)
}

/// A file with the names of all groups.
fn list_of_groups(args: &SoakArgs, machine: Machine<'_>, notes: &Notes) -> Result<PathBuf, Error> {
    let at = args.directory.join("groups");
    let names = notes.corpus(machine, (0, 1))?;
    let list = corpus::list(names.groups().iter().map(String::as_str), ListForm::Names);
    let file = machine.disk.open(&at, OpenMode::CreateNew)?;
    file.write_at(list.as_bytes(), 0)?;
    Ok(at)
}

/// Feeds what is fresh, reads what the last cycle brought, and expires, all at the same time.
fn cycle(
    args: &SoakArgs,
    machine: Machine<'_>,
    address: SocketAddr,
    fresh: &Corpus,
    known: Option<&Corpus>,
    expire: &(dyn Fn() -> Result<(), Error> + Sync),
) -> Result<(Report, Option<Report>), Error> {
    let load = LoadArgs {
        rate: Some(args.rate),
        ..LoadArgs::new(address)
    };
    let feed = FeedArgs::new(load.clone());
    let read = ReadArgs {
        verify: Verify::Contents,
        ..ReadArgs::new(LoadArgs {
            connections: 4,
            duration_secs: Some(args.cycle_seconds),
            quick_ack: true,
            ..load
        })
    };
    std::thread::scope(|scope| {
        let readers = known.map(|known| scope.spawn(|| read::run(&read, known, machine)));
        let expiry = scope.spawn(expire);
        let fed = feed::run(&feed, fresh, machine);
        let readers = readers.map(|readers| readers.join().map_err(|_| Error::WorkerLost));
        expiry.join().map_err(|_| Error::WorkerLost)??;
        Ok((fed?, readers.transpose()?.transpose()?))
    })
}

/// What the program says of the whole directory; something that no view finds is an error.
fn verify(program: &Path, lower: &Path) -> Result<String, Error> {
    let mut command = Command::new(program);
    command
        .args(["usenetfs", "verify", "--recursive"])
        .arg(lower);
    let failed = |why: String| Error::Program {
        program: "usenetfs verify".to_owned(),
        why,
    };
    let output = command
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(said);
    }
    Err(failed(said))
}
