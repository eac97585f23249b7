//! Figure 7 of the paper: how long a package takes to be compiled, over and over, beside a news server that is fed, expires and
//! sends to a peer; without and with its largest groups managed.
//!
//! Invariant: articles and builds share one file system, made anew for each server and way. A measurement ends only when articles
//! were taken, let go and sent, however slow the machine is; a server that does nothing of it is an error.

mod news;
mod report;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use self::news::News;
pub use self::report::{BESIDE_TITLES, BesideRow, Build, beside_svg};
use super::package::Package;
use super::volume::{FileSystem, Volume, call};
use crate::corpus::{Corpus, CorpusArgs};
use crate::error::Error;
use crate::feed::{self, FeedArgs};
use crate::load::{LoadArgs, Machine};
use crate::measure::progress::Progress;
use crate::null::{NullArgs, NullServer};
use crate::report::Report;

/// After so long without all that must happen nothing more is hoped for.
const PATIENCE: Duration = Duration::from_secs(1200);
const NAP: Duration = Duration::from_millis(20);

/// A server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// INN with its traditional spool, behind a mount where groups are managed, as in the paper.
    Inn,
    /// This program, which uses the layout natively.
    Newsreel,
}

impl Server {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Inn, Self::Newsreel];

    /// Its name, on the command line and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inn => "inn",
            Self::Newsreel => "newsreel",
        }
    }
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct BesideArgs {
    /// An empty or new directory, for image files, servers and mount points.
    pub directory: PathBuf,
    /// The program that mounts, and serves.
    pub program: PathBuf,
    /// Where INN's programs are.
    pub inn: PathBuf,
    /// Which servers.
    pub servers: Vec<Server>,
    /// On which file system.
    pub file_system: FileSystem,
    /// Its size.
    pub octets: u64,
    /// What is unpacked and built.
    pub package: Package,
    /// Groups.
    pub groups: usize,
    /// How many of them, the largest, are managed.
    pub managed: usize,
    /// Articles that are there before.
    pub articles: u64,
    /// So many articles of a group a server of ours keeps; INN keeps half of all, by their dates.
    pub kept: u64,
    /// Articles fed a second.
    pub rate: f64,
    /// How long, at least.
    pub seconds: f64,
    /// From one expiry, and one sending, to the next.
    pub cycle_seconds: f64,
    /// Where servers listen, on 127.0.0.1.
    pub port: u16,
    /// Show a progress bar on standard error when that is a terminal.
    pub progress: bool,
}

/// What the server has done beside the builds.
#[derive(Debug, Default)]
struct Done {
    fed: AtomicU64,
    refused: AtomicU64,
    expiries: AtomicU64,
    sent: AtomicU64,
}

impl Done {
    /// Whether everything has happened that the figure is about.
    fn is_enough(&self) -> bool {
        let all = [&self.fed, &self.expiries, &self.sent];
        all.iter().all(|count| count.load(Ordering::Relaxed) > 0)
    }
}

/// Measures; every build is told when it is done.
pub fn run(
    args: &BesideArgs,
    machine: Machine<'_>,
    on_build: &mut dyn FnMut(Server, bool, &Build),
) -> Result<Vec<BesideRow>, Error> {
    let mut rows = Vec::new();
    for &server in &args.servers {
        for is_managed in [false, true] {
            rows.push(with_peer(|peer| {
                measure(args, machine, (server, is_managed), peer, on_build)
            })?);
        }
    }
    Ok(rows)
}

/// Does something while there is a peer that takes everything.
fn with_peer<T>(act: impl FnOnce(SocketAddr) -> Result<T, Error>) -> Result<T, Error> {
    let peer = NullServer::bind(&NullArgs::new((Ipv4Addr::LOCALHOST, 0).into()))?;
    let address = peer.address()?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| peer.serve(&stop));
        let done = act(address);
        stop.store(true, Ordering::Relaxed);
        serving.join().map_err(|_| Error::WorkerLost)??;
        done
    })
}

fn measure(
    args: &BesideArgs,
    machine: Machine<'_>,
    way: (Server, bool),
    peer: SocketAddr,
    on_build: &mut dyn FnMut(Server, bool, &Build),
) -> Result<BesideRow, Error> {
    let volume = Volume::with_room(
        &args.directory,
        args.file_system,
        args.articles * 2,
        args.octets,
    )?;
    let articles = Articles::new(args, machine);
    let groups = articles.part(0, 1)?.groups().to_vec();
    let mut news = News::start(args, machine, &volume, way, &groups, peer)?;
    let address = news.address;
    let filled = feed::run(
        &FeedArgs::new(LoadArgs::new(address)),
        &articles.part(0, args.articles)?,
        machine,
    )?;
    whole(&filled)?;
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Done::default());
    let built = std::thread::scope(|scope| {
        let feeding = scope.spawn(|| articles.feed(address, &stop, &done));
        let caring = scope.spawn(|| care(args, machine, &mut news, &stop, &done));
        let has_ended = || feeding.is_finished() || caring.is_finished();
        let what = format!("{} {}", way.0.name(), report::way(way.1));
        let built = build(args, machine, volume.at(), &what, &done, has_ended, |one| {
            on_build(way.0, way.1, one);
        });
        stop.store(true, Ordering::Relaxed);
        feeding.join().map_err(|_| Error::WorkerLost)??;
        caring.join().map_err(|_| Error::WorkerLost)??;
        built
    });
    news.stop()?;
    let builds = built?;
    let place = news.place.clone();
    // The mount goes first.
    drop(news);
    call("rm", ["-rf".as_ref(), place.as_os_str()])?;
    Ok(BesideRow {
        server: way.0.name().to_owned(),
        is_managed: way.1,
        file_system: args.file_system.name().to_owned(),
        builds,
        fed: done.fed.into_inner(),
        refused: done.refused.into_inner(),
        expiries: done.expiries.into_inner(),
        sent: done.sent.into_inner(),
    })
}

/// Builds over and over until it was long enough and everything has happened that is to be measured beside.
fn build(
    args: &BesideArgs,
    machine: Machine<'_>,
    on: &Path,
    what: &str,
    done: &Done,
    has_ended: impl Fn() -> bool,
    mut on_build: impl FnMut(&Build),
) -> Result<Vec<Build>, Error> {
    let at = on.join("build");
    let shown = Progress::new(args.progress, what, Some(args.seconds as u64));
    let begin = machine.clock.monotonic();
    let since = || machine.clock.monotonic().saturating_sub(begin);
    let mut builds = Vec::new();
    while (since().as_secs_f64() < args.seconds || !done.is_enough()) && !has_ended() {
        if since() > PATIENCE + Duration::from_secs_f64(args.seconds) {
            return Err(Error::Program {
                program: what.to_owned(),
                why: format!("it did not take, let go and send articles: {done:?}"),
            });
        }
        machine.disk.create_dir_all(&at)?;
        let begun = since();
        let top = args.package.unpack(&at)?;
        args.package.build(&top)?;
        let one = Build {
            at_seconds: begun.as_secs_f64(),
            seconds: since().saturating_sub(begun).as_secs_f64(),
        };
        call("rm", ["-rf".as_ref(), at.as_os_str()])?;
        on_build(&one);
        builds.push(one);
        shown.at(since().as_secs());
    }
    Ok(builds)
}

/// Lets articles go and sends them, once in each cycle.
fn care(
    args: &BesideArgs,
    machine: Machine<'_>,
    news: &mut News<'_>,
    stop: &AtomicBool,
    done: &Done,
) -> Result<(), Error> {
    let begin = machine.clock.monotonic();
    let since = || machine.clock.monotonic().saturating_sub(begin);
    let cycle = Duration::from_secs_f64(args.cycle_seconds);
    let mut next = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        if since() < next {
            std::thread::sleep(NAP);
            continue;
        }
        next = since() + cycle;
        done.sent.store(news.send()?, Ordering::Relaxed);
        news.expire(since().as_secs_f64())?;
        done.expiries.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// The articles of a measurement, all of one time.
struct Articles<'a> {
    args: &'a BesideArgs,
    machine: Machine<'a>,
    base_time_secs: u64,
}

impl<'a> Articles<'a> {
    fn new(args: &'a BesideArgs, machine: Machine<'a>) -> Self {
        Self {
            args,
            machine,
            base_time_secs: machine.clock.now().secs,
        }
    }

    fn part(&self, first: u64, articles: u64) -> Result<Corpus, Error> {
        let args = CorpusArgs {
            groups: self.args.groups,
            base_time_secs: Some(self.base_time_secs),
            first,
            articles: Some(articles),
            ..CorpusArgs::default()
        };
        Corpus::new(&args, self.machine.disk, self.machine.clock)
    }

    /// Feeds what comes after those that were there, a cycle's worth at a time.
    fn feed(&self, address: SocketAddr, stop: &Arc<AtomicBool>, done: &Done) -> Result<(), Error> {
        let each = ((self.args.rate * self.args.cycle_seconds) as u64).max(1);
        let mut first = self.args.articles;
        while !stop.load(Ordering::Relaxed) {
            let load = LoadArgs {
                rate: Some(self.args.rate),
                stop: Some(Arc::clone(stop)),
                ..LoadArgs::new(address)
            };
            let fed = feed::run(&FeedArgs::new(load), &self.part(first, each)?, self.machine)?;
            whole(&fed)?;
            done.fed.fetch_add(fed.accepted, Ordering::Relaxed);
            done.refused.fetch_add(fed.refused, Ordering::Relaxed);
            first += each;
        }
        Ok(())
    }
}

/// A feed that broke off measures nothing.
fn whole(fed: &Report) -> Result<(), Error> {
    if fed.damaged + fed.lost_connections == 0 {
        return Ok(());
    }
    Err(Error::Program {
        program: "the news server".to_owned(),
        why: format!("the feed broke off: {}", fed.complaints.join("; ")),
    })
}
