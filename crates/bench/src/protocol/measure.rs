//! One measurement each, on a server that is at work.
//!
//! Invariant: a reply that is not what was asked for, or a connection that is lost, is an error and no figure.

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::setpriority_process;
use rustix::thread::gettid;

use super::{Found, Measure, Measured};
use crate::attack::{Attack, Target};
use crate::client::connect::Opened;
use crate::corpus::Corpus;
use crate::error::Error;
use crate::feed::{self, FeedArgs};
use crate::load::{LoadArgs, Machine};
use crate::read::{self, Choice, ReadArgs};
use crate::report::Report;

/// Connections that post, and that read, in TLS and without.
const CONNECTIONS: usize = 16;

/// Connections that ask for overviews: few, as these replies are long.
const OVERVIEWS: usize = 4;

/// The reader beside attackers: as many articles a second, over so many connections, as a busy site's readers ask for, and no
/// more than the server has time for.
const READERS: usize = 4;
const READ_RATE: f64 = 500.0;

/// So many come in a second: fewer than may from one address.
const COMING_RATE: f64 = 40.0;

/// Gives this thread a policy of the scheduler, by the program that everybody has for it.
fn schedule(policy: &str, priority: &str) -> bool {
    let thread = gettid().as_raw_pid().to_string();
    let mut program = Command::new("chrt");
    let asked = program.args([policy, "--pid", priority, &thread]);
    let done = asked.stdin(Stdio::null()).stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}

/// An attacker runs only where nobody else wants to; where that is refused, the figure is the worse for it.
fn stand_back() {
    if !schedule("--idle", "0") {
        let _ = setpriority_process(None, 19);
    }
}

/// A reader runs when it wants to, so that its figure is the server's; where that is refused, it is the machine's too.
fn come_first() {
    schedule("--fifo", "1");
}

fn again_and_again(attack: &Attack, target: &Target, is_over: &AtomicBool) -> Result<(), Error> {
    stand_back();
    let mut held: Vec<TcpStream> = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        if held.is_empty() {
            held = attack.run(target)?;
        } else {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}

/// On a thread that stands back; what is started there does, too.
pub(super) fn last<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    on_a_thread(stand_back, work)
}

/// On a thread that comes first.
fn first<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    on_a_thread(come_first, work)
}

fn on_a_thread<T: Send>(
    manner: fn(),
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let working = scope.spawn(move || {
            manner();
            work()
        });
        working.join().map_err(|_| Error::WorkerLost)?
    })
}

/// What is done before attackers, beside those of another server, and beside those of this one.
struct InTurn<T> {
    alone: T,
    elsewhere: T,
    beside: T,
}

impl Found {
    /// How much longer was waited beside something.
    fn ratio(waited: &InTurn<f64>, reports: Vec<Report>) -> Self {
        Self {
            value: waited.beside / waited.alone,
            waited_us: Some([waited.alone, waited.beside]),
            elsewhere: Some(waited.elsewhere / waited.alone),
            reports,
        }
    }
}

/// A server at work, and what it is to be asked for.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) machine: Machine<'a>,
    pub(super) target: Target,
    /// Another server, which has only what nobody else wants of the processors.
    pub(super) other: Target,
    pub(super) pid: u32,
    pub(super) seconds: f64,
    pub(super) progress: bool,
    /// Whether the second of two that are compared begins.
    pub(super) swaps: bool,
    /// Articles that it has, once it was filled.
    pub(super) there: Corpus,
    /// Articles that it has not.
    pub(super) fresh: Corpus,
}

impl Place<'_> {
    pub(super) fn measure(&self, what: Measure) -> Measured {
        match what {
            Measure::Posts => self.posts(),
            Measure::InTls => self.in_tls(),
            Measure::Compressed => self.compressed(),
            Measure::Beside(attacks) => {
                let found = self.in_turn(attacks, || self.reader())?;
                let of = |report: &Report| {
                    let p99 = report.percentile_99_us("ARTICLE");
                    p99.ok_or_else(|| self.wrong(report, "no article was read"))
                };
                let waited = InTurn {
                    alone: of(&found.alone)?,
                    elsewhere: of(&found.elsewhere)?,
                    beside: of(&found.beside)?,
                };
                let reports = vec![found.alone, found.beside, found.elsewhere];
                Ok(Found::ratio(&waited, reports))
            }
            Measure::Coming(attacks) => {
                let waited = self.in_turn(attacks, || self.newcomers())?;
                Ok(Found::ratio(&waited, Vec::new()))
            }
        }
    }

    /// Brings what is there to be read.
    pub(super) fn fill(&self) -> Result<(), Error> {
        let load = LoadArgs {
            connections: 4,
            ..self.load()
        };
        let report = feed::run(&FeedArgs::new(load), &self.there, self.machine)?;
        self.sound(report).map(drop)
    }

    fn posts(&self) -> Measured {
        let load = LoadArgs {
            connections: CONNECTIONS,
            ..self.load()
        };
        let args = FeedArgs {
            mode: "post".to_owned(),
            ..FeedArgs::new(load)
        };
        let report = self.sound(feed::run(&args, &self.fresh, self.machine)?)?;
        if report.accepted != self.fresh.len() {
            return Err(self.wrong(&report, "an article was not taken"));
        }
        Ok(Found {
            value: report.per_second,
            reports: vec![report],
            ..Found::default()
        })
    }

    /// Readers in TLS beside plain ones.
    fn in_tls(&self) -> Measured {
        let read = |tls| {
            let load = LoadArgs {
                connections: CONNECTIONS,
                tls,
                server: match tls {
                    true => self.target.secure,
                    false => self.target.server,
                },
                ..self.load()
            };
            self.read(ReadArgs::new(load))
        };
        let (plain, secure) = match self.swaps {
            true => {
                let secure = read(true)?;
                (read(false)?, secure)
            }
            false => (read(false)?, read(true)?),
        };
        Ok(Found {
            value: secure.per_second / plain.per_second,
            reports: vec![plain, secure],
            ..Found::default()
        })
    }

    /// Overviews, compressed.
    fn compressed(&self) -> Measured {
        let load = LoadArgs {
            connections: OVERVIEWS,
            compress: true,
            ..self.load()
        };
        let report = self.read(ReadArgs {
            mode: "over".to_owned(),
            groups: Some(Choice::Busy),
            ..ReadArgs::new(load)
        })?;
        let Some(server) = &report.server else {
            return Err(self.wrong(&report, "nothing is known of the server's processor time"));
        };
        let value = report.received_mb_per_second / server.cpu_share;
        Ok(Found {
            value,
            reports: vec![report],
            ..Found::default()
        })
    }

    /// The same alone, and beside attacks that are made again and again: first on the other server, so that it can be told what of
    /// their effect is this machine's, then on the one that is measured.
    fn in_turn<T>(
        &self,
        attacks: &[Attack],
        of: impl Fn() -> Result<T, Error>,
    ) -> Result<InTurn<T>, Error> {
        Ok(InTurn {
            alone: of()?,
            elsewhere: Self::beside(attacks, &self.other, &of)?,
            beside: Self::beside(attacks, &self.target, &of)?,
        })
    }

    fn beside<T>(
        attacks: &[Attack],
        target: &Target,
        of: impl Fn() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let is_over = &is_over;
            let attack = |attack| scope.spawn(move || again_and_again(attack, target, is_over));
            let attacking: Vec<_> = attacks.iter().map(attack).collect();
            let found = of();
            is_over.store(true, Ordering::Relaxed);
            for attack in attacking {
                attack.join().map_err(|_| Error::WorkerLost)??;
            }
            found
        })
    }

    fn reader(&self) -> Result<Report, Error> {
        first(|| {
            self.read(ReadArgs::new(LoadArgs {
                connections: READERS,
                rate: Some(READ_RATE),
                ..self.load()
            }))
        })
    }

    /// Those who come, one after the other, are greeted and go: how long 99 of a hundred had to wait.
    fn newcomers(&self) -> Result<f64, Error> {
        let count = (self.seconds * COMING_RATE).ceil() as usize;
        let clock = self.machine.clock;
        let mut waited = first(|| {
            let came = || {
                let begun = clock.monotonic();
                let opened = Opened::open(self.target.server, false);
                let waited = clock.monotonic().saturating_sub(begun);
                std::thread::sleep(Duration::from_secs_f64(1.0 / COMING_RATE));
                opened.map(|_| waited)
            };
            (0..count).map(|_| came()).collect::<Result<Vec<_>, _>>()
        })?;
        waited.sort_unstable();
        let longest = waited.get(waited.len() * 99 / 100);
        longest
            .map(|waited| waited.as_secs_f64() * 1e6)
            .ok_or(Error::WorkerLost)
    }

    fn load(&self) -> LoadArgs {
        LoadArgs {
            quick_ack: true,
            server_pid: Some(self.pid),
            progress: self.progress,
            ..LoadArgs::new(self.target.server)
        }
    }

    fn read(&self, args: ReadArgs) -> Result<Report, Error> {
        let args = ReadArgs {
            load: LoadArgs {
                duration_secs: Some(self.seconds),
                ..args.load
            },
            ..args
        };
        self.sound(read::run(&args, &self.there, self.machine)?)
    }

    fn sound(&self, report: Report) -> Result<Report, Error> {
        match report.is_sound() && report.missing == 0 {
            true => Ok(report),
            false => Err(self.wrong(&report, "a reply was wrong, or a connection lost")),
        }
    }

    fn wrong(&self, report: &Report, why: &str) -> Error {
        Error::Refused {
            server: self.target.server,
            asked: format!("{} ({why})", report.pass),
            reply: report.complaints.join("; "),
        }
    }
}
