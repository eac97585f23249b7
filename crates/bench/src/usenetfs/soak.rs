//! INN on a mount, with a feed, readers and expiry at the same time, for as long as one likes.
//!
//! Invariant: every article that is fed is taken, every one that is read is compared octet for octet, and at the end
//! nothing in the directory is where no view would find it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use newsreel_host::OpenMode;
use newsreel_layout::Algorithm;
use serde::Serialize;

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

/// How to soak.
#[derive(Debug, Clone)]
pub struct SoakArgs {
    /// An empty or new directory, for INN and its articles.
    pub directory: PathBuf,
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

/// What happened.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SoakReport {
    /// How long it was.
    pub seconds: f64,
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
    /// What `usenetfs verify` said at the end.
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
}

/// Soaks; a mount or an INN that ends before its time is an error.
pub fn run(
    args: &SoakArgs,
    machine: Machine<'_>,
    on_cycle: &mut dyn FnMut(&SoakReport),
) -> Result<SoakReport, Error> {
    let lower = args.directory.join("lower");
    Directory::make(&lower, Some(Algorithm::default()))?;
    let articles = args.directory.join("articles");
    let view = View::inheriting(&args.program, &lower, &articles)?;
    let mut inn = Inn::new(&args.inn, view.at());
    let base = machine.clock.now().secs;
    let corpus = |first: u64, articles: u64| {
        let args = CorpusArgs {
            groups: args.groups,
            base_time_secs: Some(base),
            first,
            articles: Some(articles),
            ..CorpusArgs::default()
        };
        Corpus::new(&args, machine.disk, machine.clock)
    };
    let groups = args.directory.join("groups");
    let names = corpus(0, 1)?;
    let list = corpus::list(names.groups().iter().map(String::as_str), ListForm::Names);
    machine
        .disk
        .open(&groups, OpenMode::CreateNew)?
        .write_at(list.as_bytes(), 0)?;
    let place = args.directory.join("inn");
    machine.disk.create_dir_all(&place)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    inn.start(&place, address, &groups)?;

    let begin = machine.clock.monotonic();
    let elapsed = || (machine.clock.monotonic().saturating_sub(begin)).as_secs_f64();
    let each = ((args.rate * args.cycle_seconds) as u64).max(1);
    let (mut report, mut known, mut first) = (SoakReport::default(), None, 0);
    while elapsed() < args.seconds {
        let fresh = corpus(first, each)?;
        let keep = (elapsed() + KEPT_SECONDS) / DAY_SECONDS;
        let expire = || inn.expire(keep);
        let (fed, readers) = cycle(args, machine, address, &fresh, known.as_ref(), &expire)?;
        report.add(&fed, readers.as_ref());
        report.expiries += 1;
        report.seconds = elapsed();
        on_cycle(&report);
        (known, first) = (Some(fresh), first + each);
    }
    inn.stop()?;
    drop(view);
    report.verified = verify(&args.program, &lower)?;
    Ok(report)
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
