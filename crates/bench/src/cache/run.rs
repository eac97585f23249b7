//! One run: an origin, a cache in front of it behind each link, and what a reader waits for at both.
//!
//! Invariant: a figure is the time of a reader whose answers were all right; a hit is counted as one only if nothing went over the link
//! meanwhile.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use newsreel_host::replace_file;
use newsreel_wire::UnixTime;
use serde::Serialize;

use super::fixture::{BUSY, Fixture, QUIET, READ};
use super::floor::{Both, Cost, Floor, us_each};
use super::leaves::{self, LeafReport, LeavesArgs};
use super::link::{Link, Pace};
use super::operations::Operation;
use super::readers::{self, DatabaseReport, Readers};
use crate::corpus::{self, ListForm};
use crate::error::Error;
use crate::load::Machine;
use crate::measure::process::ServerLook;
use crate::rivals::{CommandRival, Inn, NO_FIGURES, Rival, Running};

/// Hits are read so often, and the fastest counts: who else runs on this machine takes time.
pub(super) const HITS: usize = 3;
/// Caches that are asked for the first time, for the same reason, and how often their origin is.
const FIRSTS: usize = 3;
/// More than anything takes, and round trips.
const NEVER: (Duration, u64) = (Duration::MAX, u64::MAX);
/// More than an article takes in a buffer, in the mean.
const ARTICLE_OCTETS_MAX: u64 = 6144;

/// More than the overview of an article takes.
const OVERVIEW_OCTETS_MAX: u64 = 512;

/// What a cache keeps of overview at first.
const OVERVIEW_OCTETS_MIN: u64 = 128 << 20;

/// Groups that change before the list is asked for again.
const CHANGED_GROUPS: usize = 100;

/// Octets a second of the paper's modem.
const MODEM_OCTETS_PER_S: u64 = 7000;

/// The round trip of a link that is far and fast.
const FAR: Duration = Duration::from_millis(20);

/// What was told stays true all the time: a hit is one however slow the link was before.
const STAYS: &str = "refresh_s = 86400\nlist_refresh_s = 86400";
/// ... but for the list.
const LIST_CHANGES: &str = "refresh_s = 86400\nlist_refresh_s = 1";
/// Nothing is true without asking, but for the list, which is fetched as often as a cache does it by itself.
const ALWAYS_ASKED: &str = "refresh_s = 0";

/// What to measure.
#[derive(Debug, Clone)]
pub struct CacheArgs {
    /// This program, which is cache and origin.
    pub program: PathBuf,
    /// An empty or new directory for the servers' files.
    pub directory: PathBuf,
    /// INN as an origin, too: where its programs are.
    pub inn: Option<PathBuf>,
    /// Groups that the origin lists.
    pub groups: usize,
    /// Articles in each of five groups.
    pub articles: u64,
    /// The links by name.
    pub links: Vec<String>,
    /// Other servers that are measured beside the cache.
    pub leaves: LeavesArgs,
    /// The origin listens on this port of 127.0.0.1, and the cache on the next.
    pub port: u16,
}

/// What this program is called as an origin.
pub(super) const NEWSREEL: &str = "newsreel";

/// The names of the links.
pub const LINKS: [&str; 3] = ["none", "20ms", "56k"];

fn pace(link: &str) -> Pace {
    match link {
        "20ms" => Pace {
            round_trip: FAR,
            octets_per_s: None,
        },
        "56k" => Pace {
            round_trip: Duration::ZERO,
            octets_per_s: Some(MODEM_OCTETS_PER_S),
        },
        _ => Pace::default(),
    }
}

/// Who was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// The origin itself.
    Origin,
    /// The cache, for the first time.
    Miss,
    /// The cache, again.
    Hit,
}

/// How long a reader waited.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// The origin.
    pub origin: String,
    /// The link between cache and origin.
    pub link: String,
    /// For what.
    pub operation: Operation,
    /// At whom.
    pub asked: Asked,
    /// Milliseconds.
    pub ms: f64,
    /// Round trips over the link.
    pub round_trips: u64,
}

/// Other figures of the cache in front of an origin, without a link.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Facts {
    /// The origin.
    pub origin: String,
    /// What of a reader's wait is the machine's own.
    pub floors: Vec<Floor>,
    /// Processor time for an article that is kept, one by one.
    pub costs: Vec<Cost>,
    /// Microseconds of it where fifty are asked for at a time.
    pub us_per_hit_pipelined: f64,
    /// Milliseconds for the overview of the busy groups, made from articles that are kept.
    pub overview_made_ms: f64,
    /// Seconds in which `cache prefetch` fetched the busy groups, and how many articles that were.
    pub prefetch_s: f64,
    /// ... and how many articles that were.
    pub prefetched: u64,
    /// Octets of its memory with these and the list.
    pub memory_octets: u64,
    /// Seconds from its start with these until it answers.
    pub restart_s: f64,
    /// Octets over the link for the list when some groups have changed.
    pub refresh_octets: u64,
}

/// All that was found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CacheReport {
    /// Groups that the origin lists.
    pub groups: usize,
    /// Articles that are read one by one.
    pub read: u64,
    /// Articles in each of five groups.
    pub articles: u64,
    /// How long readers waited.
    pub figures: Vec<Figure>,
    /// The rest, for each origin.
    pub facts: Vec<Facts>,
    /// Servers that fetch in batches.
    pub leaves: Vec<LeafReport>,
    /// What many readers ask the cache for, in front of this program without a link.
    pub databases: Vec<DatabaseReport>,
}

/// Measures all of it; `told` is called with each figure.
pub fn run(
    args: &CacheArgs,
    machine: Machine<'_>,
    told: &mut dyn FnMut(&Figure),
) -> Result<CacheReport, Error> {
    let has = Fixture {
        groups: args.groups.max(BUSY + QUIET),
        articles: args.articles,
        is_there: true,
        now: UnixTime(machine.clock.now().secs),
    };
    let mut bench = Bench {
        args,
        machine,
        has,
        report: CacheReport {
            groups: has.groups,
            read: has.read(),
            articles: args.articles,
            ..CacheReport::default()
        },
        told,
    };
    let program = args.program.display().to_string();
    machine.disk.create_dir_all(&args.directory)?;
    let config = args.directory.join("origin.toml");
    replace_file(
        machine.disk,
        &config,
        origin_config(args.articles).as_bytes(),
    )?;
    let config = config.display().to_string();
    let mut origin = CommandRival::newsreel(&program).with_words(&["--config", &config]);
    bench.in_front_of(NEWSREEL, &mut origin, &args.links)?;
    if let Some(programs) = &args.inn {
        let articles = args.directory.join("inn-articles");
        machine.disk.create_dir_all(&articles)?;
        let near = [LINKS[0].to_owned()];
        bench.in_front_of("INN", &mut Inn::new(programs, &articles), &near)?;
    }
    Ok(bench.report)
}

/// An address of which the port was free a moment ago.
fn free_address() -> Result<SocketAddr, Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map_err(Error::EventLoop)
}

/// Buffers that keep all articles of the busy groups.
fn origin_config(articles: u64) -> String {
    let all = BUSY as u64 * articles * ARTICLE_OCTETS_MAX;
    let octets = (all / 2).max(1 << 30);
    let buffers =
        ["A", "B"].map(|name| format!("[[buffer]]\nname = \"{name}\"\noctets = {octets}\n"));
    NO_FIGURES.to_owned() + &buffers.concat()
}

struct Bench<'a> {
    args: &'a CacheArgs,
    machine: Machine<'a>,
    has: Fixture,
    report: CacheReport,
    told: &'a mut dyn FnMut(&Figure),
}

/// A cache at work, and the link to its origin.
struct Caching {
    server: CommandRival,
    running: Running,
    directory: PathBuf,
    link: Link,
}

impl Bench<'_> {
    fn address(&self, at: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.args.port + at).into()
    }

    /// How long it takes.
    fn timed(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<Duration, Error> {
        let begin = self.machine.clock.monotonic();
        work()?;
        Ok(self.machine.clock.monotonic().saturating_sub(begin))
    }

    fn note(&mut self, figure: Figure) {
        (self.told)(&figure);
        self.report.figures.push(figure);
    }

    fn in_front_of(
        &mut self,
        name: &str,
        origin: &mut dyn Rival,
        links: &[String],
    ) -> Result<(), Error> {
        let place = self.args.directory.join(format!("origin-{name}"));
        self.machine.disk.create_dir_all(&place)?;
        let groups = place.join("groups");
        let names: Vec<String> = self.has.names().collect();
        let list = corpus::list(names.iter().map(String::as_str), ListForm::Names);
        replace_file(self.machine.disk, &groups, list.as_bytes())?;
        let running = origin.start(&place, self.address(0), &groups)?;
        self.has.feed(running.address)?;
        for link in links {
            self.over(name, link, running.address)?;
        }
        if name == NEWSREEL {
            let (args, directory) = (&self.args.leaves, &self.args.directory);
            let of = (running.address, self.has);
            self.report.leaves = leaves::measure(args, self.machine, directory, of);
        }
        let facts = self.facts(name, running.address)?;
        self.report.facts.push(facts);
        if name == NEWSREEL {
            self.community(running.address)?;
        }
        origin.stop()
    }

    /// The paper's table: the origin over a link, and a cache in front of it.
    fn over(&mut self, name: &str, link: &str, origin: SocketAddr) -> Result<(), Error> {
        let direct = Link::to(origin, pace(link))?;
        let figure = |operation, asked, took: Duration, round_trips| Figure {
            origin: name.to_owned(),
            link: link.to_owned(),
            operation,
            asked,
            ms: took.as_secs_f64() * 1000.0,
            round_trips,
        };
        // Over the modem one round takes most of an hour.
        let rounds = if link == "56k" { 1 } else { FIRSTS };
        for operation in Operation::ALL {
            if link != LINKS[0] && !Operation::PAPER.contains(&operation) {
                continue;
            }
            let (took, trips) = (0..rounds).try_fold(NEVER, |least, _| {
                let _ = direct.round_trips();
                let took = self.timed(|| operation.run(direct.address(), &self.has))?;
                Ok::<_, Error>(least.min((took, direct.round_trips())))
            })?;
            self.note(figure(operation, Asked::Origin, took, trips));
        }
        drop(direct);
        let mut misses = [NEVER; Operation::PAPER.len()];
        for round in 1..rounds {
            let name = format!("{name}-{link}-{round}");
            let mut cache = self.cache(&name, (origin, pace(link)), STAYS)?;
            self.misses(&cache, &mut misses)?;
            cache.server.stop()?;
        }
        let mut cache = self.cache(&format!("{name}-{link}"), (origin, pace(link)), STAYS)?;
        let address = cache.running.address;
        self.misses(&cache, &mut misses)?;
        for (operation, (took, trips)) in Operation::PAPER.into_iter().zip(misses) {
            self.note(figure(operation, Asked::Miss, took, trips));
        }
        for operation in Operation::ALL {
            let mut fastest = Duration::MAX;
            for _ in 0..HITS {
                let took = self.timed(|| operation.run(address, &self.has))?;
                fastest = fastest.min(took);
            }
            let trips = cache.link.round_trips();
            self.note(figure(operation, Asked::Hit, fastest, trips));
        }
        cache.server.stop()
    }

    /// Table 3: many readers at a cache that asks each time whether a group is as it was, and at one that never does again.
    fn community(&mut self, origin: SocketAddr) -> Result<(), Error> {
        let readers = Readers::new(self.has.groups >= 50_000);
        readers.feed(origin, &self.has)?;
        for (asks_again, more) in [(true, ALWAYS_ASKED), (false, STAYS)] {
            let name = format!("readers-{asks_again}");
            let mut cache = self.cache(&name, (origin, Pace::default()), more)?;
            readers.read(cache.running.address, &self.has)?;
            let directory = cache.directory.join("cache");
            let said = readers::stats(&self.args.program, &directory, asks_again)?;
            self.report.databases.extend(said);
            cache.server.stop()?;
        }
        Ok(())
    }

    /// Each operation at a cache with nothing in it; the least of several counts.
    fn misses(&self, cache: &Caching, least: &mut [(Duration, u64)]) -> Result<(), Error> {
        let _ = cache.link.round_trips();
        for (operation, least) in Operation::PAPER.into_iter().zip(least) {
            let took = self.timed(|| operation.run(cache.running.address, &self.has))?;
            *least = (*least).min((took, cache.link.round_trips()));
        }
        Ok(())
    }

    /// A server that does nothing, a process like the cache: what the machine takes for answers alone.
    fn null(&self) -> CommandRival {
        let program = self.args.program.display().to_string();
        let groups = self.has.groups.to_string();
        let articles = self.has.articles.to_string();
        let mut words = vec![program.as_str(), "bench", "null", "--listen", "{address}"];
        words.extend(["--groups", &groups, "--articles", &articles]);
        words.extend(["--article-octets", "3500"]);
        CommandRival::new("a do-nothing server", &words, None)
    }

    /// Starts a cache with nothing kept.
    fn cache(
        &self,
        name: &str,
        (origin, pace): (SocketAddr, Pace),
        more: &str,
    ) -> Result<Caching, Error> {
        let directory = self.args.directory.join(format!("cache-{name}"));
        self.machine.disk.create_dir_all(&directory)?;
        let link = Link::to(origin, pace)?;
        let overview = BUSY as u64 * self.args.articles * OVERVIEW_OCTETS_MAX;
        let overview = overview.max(OVERVIEW_OCTETS_MIN);
        let config = format!(
            "{NO_FIGURES}[cache]\ndirectory = \"cache\"\noctets = \"8GiB\"\noverview_octets = {overview}\n{more}\n\
             [[upstream]]\naddress = \"{}\"\ncompress = false\n",
            link.address()
        );
        let file = directory.join("cache.toml");
        replace_file(self.machine.disk, &file, config.as_bytes())?;
        let program = self.args.program.display().to_string();
        let words = [
            program.as_str(),
            "cache",
            "--config",
            "{dir}/cache.toml",
            "--listen",
            "{address}",
        ];
        let mut server = CommandRival::new("newsreel cache", &words, None);
        let running = server.start(&directory, self.address(1), Path::new(""))?;
        // A cache that runs has a connection: how long the first one takes is no part of a miss.
        link.settled();
        Ok(Caching {
            server,
            running,
            directory,
            link,
        })
    }

    /// What is no table of the paper.
    fn facts(&self, name: &str, origin: SocketAddr) -> Result<Facts, Error> {
        let near = (origin, Pace::default());
        let mut facts = Facts {
            origin: name.to_owned(),
            ..Facts::default()
        };
        let mut cache = self.cache(&format!("{name}-prefetch"), near, STAYS)?;
        Operation::List.run(cache.running.address, &self.has)?;
        let took = self.timed(|| {
            facts.prefetched = self.prefetch(&cache.directory.join("cache"))?;
            Ok(())
        })?;
        facts.prefetch_s = took.as_secs_f64();
        let mut null = self.null();
        let both = Both {
            machine: self.machine,
            has: self.has,
            cache: cache.running,
            nothing: null.start(&cache.directory, free_address()?, Path::new(""))?,
        };
        facts.floors = both.floors()?;
        facts.costs = both.costs()?;
        null.stop()?;
        let pipelined = Operation::Pipelined;
        facts.us_per_hit_pipelined = us_each(self.machine, &cache.running, pipelined, self.has)?;
        let look = ServerLook::take(self.machine.disk, cache.running.pid);
        facts.memory_octets = look.rss_octets();
        cache.server.stop()?;
        let took = self.timed(|| {
            let started =
                cache
                    .server
                    .start(&cache.directory, cache.running.address, Path::new(""));
            started.map(drop)
        })?;
        facts.restart_s = took.as_secs_f64();
        cache.server.stop()?;
        drop(cache);
        let mut cache = self.cache(&format!("{name}-list"), near, LIST_CHANGES)?;
        Operation::List.run(cache.running.address, &self.has)?;
        // At its first look all groups are new to the origin, and at the second what came in the second of the first is told again.
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(1100));
            Operation::List.run(cache.running.address, &self.has)?;
        }
        self.has.feed_more(origin, CHANGED_GROUPS)?;
        std::thread::sleep(Duration::from_millis(1100));
        let _ = cache.link.octets();
        Operation::List.run(cache.running.address, &self.has)?;
        facts.refresh_octets = cache.link.octets();
        cache.server.stop()?;
        facts.overview_made_ms = self.overview_made(name, near)?;
        Ok(facts)
    }

    /// Milliseconds for the overview of the busy groups where it is made from articles, all of which are kept.
    fn overview_made(&self, name: &str, near: (SocketAddr, Pace)) -> Result<f64, Error> {
        let more = format!("overview = \"made\"\n{STAYS}");
        let mut cache = self.cache(&format!("{name}-made"), near, &more)?;
        self.prefetch(&cache.directory.join("cache"))?;
        let _ = cache.link.round_trips();
        let mut fastest = Duration::MAX;
        for _ in 0..HITS {
            let reading = || Operation::Overview.run(cache.running.address, &self.has);
            fastest = fastest.min(self.timed(reading)?);
        }
        let trips = cache.link.round_trips();
        cache.server.stop()?;
        match trips {
            0 => Ok(fastest.as_secs_f64() * 1000.0),
            trips => Err(Error::Program {
                program: "newsreel cache".to_owned(),
                why: format!(
                    "it made overview from articles that are kept, and went over the link {trips} times for it"
                ),
            }),
        }
    }

    /// Has the busy groups fetched; how many articles came.
    fn prefetch(&self, directory: &Path) -> Result<u64, Error> {
        let articles = self.args.articles.to_string();
        let which = ["bench.busy.*", "--octets", "8GiB", "--articles", &articles];
        let words = [&["prefetch"], &which[..]].concat();
        let said = ask_cache(&self.args.program, directory, &words)?;
        let came = said.get("articles").and_then(serde_json::Value::as_u64);
        came.ok_or_else(|| Error::Program {
            program: "newsreel cache prefetch".to_owned(),
            why: "it does not say how many came".to_owned(),
        })
    }
}

/// What a command of `newsreel cache` says in JSON of the cache in a directory.
pub(super) fn ask_cache(
    program: &Path,
    directory: &Path,
    words: &[&str],
) -> Result<serde_json::Value, Error> {
    let failed = |why: String| Error::Program {
        program: format!("newsreel cache {}", words.first().unwrap_or(&"")),
        why,
    };
    let mut command = Command::new(program);
    command.arg("cache").args(words).arg("--json");
    command.arg("--directory").arg(directory);
    let said = command.stdin(Stdio::null()).output();
    let said = said.map_err(|error| failed(error.to_string()))?;
    if !said.status.success() {
        let why = String::from_utf8_lossy(&said.stderr);
        return Err(failed(why.trim().to_owned()));
    }
    serde_json::from_slice(&said.stdout).map_err(|error| failed(error.to_string()))
}

impl CacheReport {
    /// Whether as many articles are read one by one as the bounds are for.
    pub(super) const fn is_full(&self) -> bool {
        self.read == READ && self.groups >= 50_000 && self.articles >= 2000
    }
}
