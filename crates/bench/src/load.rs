//! Running a pass: connections opened, workers driven, the server looked at, everything counted.
//!
//! Invariant: nothing is measured before every connection is open and greeted, and the server is
//! looked at while all of them are still open. A pass always ends with a report, whatever the server
//! did. Must not know what a pass sends.

use std::fmt::Debug;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use newsreel_host::{Clock, Disk};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::client::connect::Opened;
use crate::client::connection::{Connection, Manner, Pace};
use crate::client::script::Script;
use crate::client::tally::{Kind, Tally};
use crate::client::worker::{self, Finished, Laps, Shared};
use crate::error::Error;
use crate::measure::process::{ServerCost, ServerLook};
use crate::measure::progress::Progress;
use crate::report::{Moment, Report};

/// A pass in which nothing moves for so long is given up.
const STALL: Duration = Duration::from_secs(60);
const MONITOR: Duration = Duration::from_millis(100);

/// What a benchmark takes from the machine.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    /// Files of the corpus, and `/proc`.
    pub disk: &'a dyn Disk,
    /// Time.
    pub clock: &'a dyn Clock,
}

/// How hard, how long and at whom.
#[derive(Debug, Clone)]
pub struct LoadArgs {
    /// The server's address.
    pub server: SocketAddr,
    /// Number of connections.
    pub connections: usize,
    /// Threads of the client; one serves many connections.
    pub threads: usize,
    /// Operations a second, all connections together; without it as fast as the server answers.
    pub rate: Option<f64>,
    /// Stop after so many seconds.
    pub duration_secs: Option<f64>,
    /// Acknowledge replies at once (`TCP_QUICKACK`) instead of waiting up to 40 ms for something to
    /// send. A server that writes a reply in several pieces stalls without it.
    pub quick_ack: bool,
    /// In TLS from the first octet; whose certificate it is, is not looked at.
    pub tls: bool,
    /// Compressed in both directions, by COMPRESS DEFLATE.
    pub compress: bool,
    /// Process id of the server on this machine: its CPU, memory, switches and calls are reported,
    /// those of its children included.
    pub server_pid: Option<u32>,
    /// Also report the operations done and the server's memory every so many seconds.
    pub timeline_secs: Option<f64>,
    /// Also report when each so many operations were done.
    pub lap_operations: Option<u64>,
    /// Show a progress bar on standard error when that is a terminal.
    pub progress: bool,
    /// Stop as soon as somebody sets this (an interrupt, another pass that is done).
    pub stop: Option<Arc<AtomicBool>>,
}

impl LoadArgs {
    /// One connection at full speed.
    pub const fn new(server: SocketAddr) -> Self {
        Self {
            server,
            connections: 1,
            threads: 1,
            rate: None,
            duration_secs: None,
            quick_ack: false,
            tls: false,
            compress: false,
            server_pid: None,
            timeline_secs: None,
            lap_operations: None,
            progress: false,
            stop: None,
        }
    }

    fn check(&self) -> Result<(), Error> {
        let refuse = |name, value: String, why: &str| {
            Err(Error::Argument {
                name,
                value,
                why: why.to_owned(),
            })
        };
        if !(1..=60_000).contains(&self.connections) {
            return refuse(
                "connections",
                self.connections.to_string(),
                "from 1 to 60,000 work",
            );
        }
        if !(1..=256).contains(&self.threads) {
            return refuse("threads", self.threads.to_string(), "from 1 to 256 work");
        }
        for (name, value) in [
            ("rate", self.rate),
            ("duration", self.duration_secs),
            ("timeline", self.timeline_secs),
        ] {
            if value.is_some_and(|value| !(1e-6..=1e9).contains(&value)) {
                let value = value.unwrap_or_default().to_string();
                return refuse(name, value, "it must be above zero");
            }
        }
        Ok(())
    }
}

/// Whether there is a server process to look at.
pub(crate) fn has_process(machine: Machine<'_>, pid: u32) -> Result<(), Error> {
    if ServerLook::take(machine.disk, pid).is_empty() {
        return Err(Error::Argument {
            name: "pid",
            value: pid.to_string(),
            why: "there is no such process on this machine".to_owned(),
        });
    }
    Ok(())
}

/// What a pass needs from the one who runs it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) kinds: &'static [Kind],
    /// What each connection says first, with the code it wants to hear.
    pub(crate) hello: Option<(&'static str, &'static [u16])>,
    pub(crate) depth: usize,
    /// Operations to come, if that is known.
    pub(crate) total: Option<u64>,
}

/// Runs a pass; `script` makes each connection's behaviour.
pub(crate) fn run<'c>(
    args: &LoadArgs,
    machine: Machine<'_>,
    plan: &Plan,
    script: &mut dyn FnMut(usize) -> Box<dyn Script<'c> + 'c>,
) -> Result<Report, Error> {
    args.check()?;
    if let Some(pid) = args.server_pid {
        has_process(machine, pid)?;
    }
    let connections = open(args, machine.clock, plan, script)?;
    let mut shares: Vec<Vec<Connection<'c>>> = Vec::new();
    shares.resize_with(args.threads.min(args.connections), Vec::new);
    let threads = shares.len();
    for (place, connection) in connections.into_iter().enumerate() {
        shares[place % threads].push(connection);
    }
    let tallies: Vec<Tally> = (0..threads)
        .map(|_| Tally::new(plan.kinds))
        .collect::<Result<_, _>>()
        .map_err(|error| Error::EventLoop(std::io::Error::other(error)))?;

    let look = || {
        args.server_pid
            .map(|pid| ServerLook::take(machine.disk, pid))
    };
    let before = look().unwrap_or_default();
    let cpu_before = own_cpu();
    let started = machine.clock.monotonic();
    let shared = Shared {
        clock: machine.clock,
        answered: AtomicU64::new(0),
        laps: args.lap_operations.map(Laps::new),
        deadline: args
            .duration_secs
            .map(|secs| started + Duration::from_secs_f64(secs)),
        stop: args.stop.as_deref(),
        stall: STALL,
    };
    let (tell, told) = sync_channel(threads);
    let (finished, timeline) = std::thread::scope(|scope| {
        let workers = shares.into_iter().zip(tallies).map(|(share, tally)| {
            let (tell, shared) = (tell.clone(), &shared);
            scope.spawn(move || work(shared, share, tally, &tell))
        });
        let workers: Vec<_> = workers.collect();
        let timeline = monitor(args, machine, plan, &shared, started, &told, threads);
        let finished: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        (finished, timeline)
    });
    let cpu = own_cpu().saturating_sub(cpu_before);
    let cost = look()
        .filter(|look| !look.is_empty())
        .map(|after| after.since(&before));
    let mut report = conclude(args, plan, finished, timeline, Spent { started, cpu, cost })?;
    let ends = shared.laps.as_ref().map(Laps::ends).unwrap_or_default();
    let since = |end: &Duration| end.saturating_sub(started).as_secs_f64();
    report.lap_secs = ends.iter().map(since).collect();
    Ok(report)
}

struct Spent {
    started: Duration,
    cpu: Duration,
    cost: Option<ServerCost>,
}

type Worked = std::thread::Result<rustix::io::Result<Finished>>;

fn conclude(
    args: &LoadArgs,
    plan: &Plan,
    workers: Vec<Worked>,
    timeline: Vec<Moment>,
    spent: Spent,
) -> Result<Report, Error> {
    let mut tally: Option<Tally> = None;
    let mut ended = spent.started;
    let mut streams: Vec<TcpStream> = Vec::new();
    for worker in workers {
        let finished = worker.map_err(|_| Error::WorkerLost)?;
        let finished = finished.map_err(|errno| Error::EventLoop(errno.into()))?;
        ended = ended.max(finished.ended);
        streams.extend(finished.streams);
        match &mut tally {
            Some(tally) => tally.merge(finished.tally),
            None => tally = Some(finished.tally),
        }
    }
    let tally = tally.ok_or(Error::WorkerLost)?;
    // The server has been looked at with the connections open; now they may go.
    drop(streams);
    let elapsed = ended.saturating_sub(spent.started);
    let mut report = Report::new(&plan.name, args, plan.depth, elapsed, tally);
    report.client_spent(spent.cpu);
    if let Some(cost) = spent.cost {
        report.server_spent(&cost);
    }
    report.timeline = timeline;
    Ok(report)
}

fn work(
    shared: &Shared<'_>,
    share: Vec<Connection<'_>>,
    tally: Tally,
    tell: &SyncSender<()>,
) -> rustix::io::Result<Finished> {
    let finished = worker::run(shared, share, tally);
    // The monitor may have gone; then nobody needs to be told.
    let _ = tell.send(());
    finished
}

/// Watches until all workers are done; what it saw on the way, if that was asked for.
fn monitor(
    args: &LoadArgs,
    machine: Machine<'_>,
    plan: &Plan,
    shared: &Shared<'_>,
    started: Duration,
    told: &Receiver<()>,
    threads: usize,
) -> Vec<Moment> {
    let progress = Progress::new(args.progress, &plan.name, plan.total);
    let interval = args.timeline_secs.map(Duration::from_secs_f64);
    let mut next = interval.map(|interval| started + interval);
    let pause = interval.map_or(MONITOR, |interval| interval.min(MONITOR));
    let mut timeline = Vec::new();
    let mut working = threads;
    while working > 0 {
        match told.recv_timeout(pause) {
            Ok(()) => working -= 1,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let done = shared.answered.load(Ordering::Relaxed);
        progress.at(done);
        let now = machine.clock.monotonic();
        if let (Some(due), Some(interval)) = (next, interval)
            && now >= due
        {
            let look = args
                .server_pid
                .map(|pid| ServerLook::take(machine.disk, pid));
            timeline.push(Moment {
                at_secs: now.saturating_sub(started).as_secs_f64(),
                operations: done,
                server_rss_bytes: look.map(|look| look.rss_octets()),
            });
            next = Some(due.max(now.saturating_sub(interval)) + interval);
        }
    }
    timeline
}

fn open<'c>(
    args: &LoadArgs,
    clock: &dyn Clock,
    plan: &Plan,
    script: &mut dyn FnMut(usize) -> Box<dyn Script<'c> + 'c>,
) -> Result<Vec<Connection<'c>>, Error> {
    allow_open_files(args.connections as u64 + 100);
    let manner = Manner {
        depth: plan.depth,
        quick_ack: args.quick_ack,
    };
    let mut opened = Vec::with_capacity(args.connections);
    for _ in 0..args.connections {
        let mut connection = Opened::open(args.server, args.tls)?;
        if let Some((command, codes)) = plan.hello {
            connection.command(command, codes)?;
        }
        if args.compress {
            connection.compress()?;
        }
        opened.push(connection.into_parts()?);
    }
    let now_ns = u64::try_from(clock.monotonic().as_nanos()).unwrap_or(u64::MAX);
    let connections = args.connections as f64;
    let made = opened
        .into_iter()
        .enumerate()
        .map(|(place, (channel, incoming))| {
            // Each connection keeps its share of the rate; together they are spread evenly.
            let pace = args.rate.map(|rate| Pace {
                interval_ns: (connections / rate * 1e9) as u64,
                due_ns: now_ns + (place as f64 / rate * 1e9) as u64,
            });
            Connection::new(channel, incoming, script(place), manner, pace)
        });
    Ok(made.collect())
}

/// Raises the limit of open files as far as this user may.
pub(crate) fn allow_open_files(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    // Where it is refused, opening a connection will say so.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(raised),
            maximum: limit.maximum,
        },
    );
}

/// Processor time of this process so far.
fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let secs = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(secs, u32::try_from(time.tv_nsec).unwrap_or_default())
}
