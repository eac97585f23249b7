//! Pulls: articles fetched from servers that feed nobody, as a newsreader fetches them, by schedule or when somebody asks.

mod config;
mod fetch;
mod marks;
mod run;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::Engine;
use newsreel_host::{Clock, Disk};
use newsreel_net::client::Remote;
use newsreel_net::{Drain, DrainWatch};
use newsreel_wire::Wildmat;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

pub use self::config::{PullConfig, PullTls, PullsConfig, pull_problems};
pub use self::fetch::{GROUPS_MAX, NEWNEWS_MAX};
use self::marks::Marks;
pub(crate) use self::marks::is_file;
pub use self::run::Pulled;
use self::run::{Ended, Run};
use crate::dial;

/// A run that failed is made again after this, or after its interval if that is shorter.
const RETRY: Duration = Duration::from_secs(60);
/// How long a run may take to end by itself when it is told to stop.
const STOP_AFTER: Duration = Duration::from_secs(5);

/// What somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pulling {
    /// A pull of the configuration, or a server as `host` or `host:port`.
    pub host: String,
    /// Groups, a wildmat; none: those of the configuration.
    pub groups: Option<String>,
    /// Only look what would be fetched.
    pub dry_run: bool,
}

/// How a pull stands.
#[derive(Debug, Clone, Serialize)]
pub struct PullReport {
    /// Its name.
    pub name: String,
    /// The server.
    pub address: String,
    /// Its groups.
    pub groups: String,
    /// Seconds from the end of a run to the next; 0: only when somebody asks.
    pub interval_s: u64,
    /// Whether a run is under way.
    pub running: bool,
    /// When the last run ended, seconds since 1970.
    pub ended: Option<u64>,
    /// What came of it, or of the one under way.
    pub last: Pulled,
    /// Articles that runs brought since the server started.
    pub accepted: u64,
    /// Why the last run ended before all was fetched.
    pub failed: Option<String>,
}

/// One of them.
#[derive(Debug)]
struct Pull {
    config: PullConfig,
    /// Held by a run: there is one at a time.
    running: tokio::sync::Mutex<()>,
    /// Ends its runs by schedule.
    ends: Drain,
    report: Mutex<PullReport>,
}

impl Pull {
    fn new(config: &PullConfig) -> Self {
        let report = PullReport {
            name: config.name.clone(),
            address: config.address.clone(),
            groups: config.groups.clone(),
            interval_s: config.interval_s,
            running: false,
            ended: None,
            last: Pulled::default(),
            accepted: 0,
            failed: None,
        };
        Self {
            config: config.clone(),
            running: tokio::sync::Mutex::default(),
            ends: Drain::new(),
            report: Mutex::new(report),
        }
    }
}

/// A pull that runs by schedule.
type Schedule = (Arc<Pull>, JoinSet<()>);

/// Says what came so far, and how far the group at hand is, of how many; `false`: that is enough.
pub type PullTold<'t> = &'t mut (dyn FnMut(&Pulled, u64, u64) -> bool + Send);

/// All pulls.
#[derive(Debug)]
pub struct Pulls {
    engine: Arc<Engine>,
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    marks: Arc<Marks>,
    pulls: Mutex<Vec<Arc<Pull>>>,
    wanted: Mutex<Option<Vec<PullConfig>>>,
    changed: Notify,
    /// Ends the runs that were asked for.
    stop: Drain,
}

impl Pulls {
    /// Finds out how far each group of each server was fetched.
    ///
    /// # Errors
    /// When the file that says so cannot be read, or a later newsreel wrote it.
    pub fn open(
        engine: Arc<Engine>,
        disk: Arc<dyn Disk>,
        spool: &Path,
        clock: Arc<dyn Clock>,
        pulls: &[PullConfig],
    ) -> Result<Self, io::Error> {
        Ok(Self {
            engine,
            clock,
            marks: Arc::new(Marks::load(&disk, spool)?),
            disk,
            pulls: Mutex::new(pulls.iter().map(|it| Arc::new(Pull::new(it))).collect()),
            wanted: Mutex::new(None),
            changed: Notify::new(),
            stop: Drain::new(),
        })
    }

    /// Takes over another configuration.
    pub fn reload(&self, pulls: &[PullConfig]) {
        *self.wanted.lock() = Some(pulls.to_vec());
        self.changed.notify_one();
    }

    /// Whether a configuration is still being taken over: runs that end take a moment.
    #[must_use]
    pub fn is_changing(&self) -> bool {
        self.wanted.lock().is_some()
    }

    /// How they stand.
    #[must_use]
    pub fn reports(&self) -> Vec<PullReport> {
        let pulls = self.pulls.lock();
        pulls
            .iter()
            .map(|pull| pull.report.lock().clone())
            .collect()
    }

    /// Fetches by schedule until told to stop.  A change of the configuration touches the pulls it changes and no other.
    pub async fn run(self: Arc<Self>, mut stop: DrainWatch) {
        let mut schedules = Vec::new();
        while !stop.is_started() {
            self.begin(&mut schedules);
            tokio::select! {
                () = self.changed.notified() => {}
                () = stop.started() => {}
            }
            let wanted = self.wanted.lock().clone();
            if let Some(wanted) = wanted {
                let those = schedules.into_iter();
                let (stay, go) = those.partition(|(it, _)| wanted.contains(&it.config));
                schedules = stay;
                end(go).await;
                self.change_to(&wanted);
                self.wanted.lock().take_if(|it| *it == wanted);
            }
        }
        self.stop.start();
        end(schedules).await;
        let pulls = self.pulls.lock().clone();
        for pull in pulls {
            drop(pull.running.lock().await);
        }
    }

    /// Begins those that have a schedule and have not begun.
    fn begin(self: &Arc<Self>, schedules: &mut Vec<Schedule>) {
        for pull in self.pulls.lock().iter() {
            let has_begun = schedules.iter().any(|(it, _)| Arc::ptr_eq(it, pull));
            if pull.config.interval_s > 0 && !has_begun {
                let mut task = JoinSet::new();
                task.spawn(Arc::clone(self).by_schedule(Arc::clone(pull)));
                schedules.push((Arc::clone(pull), task));
            }
        }
    }

    fn change_to(&self, wanted: &[PullConfig]) {
        let mut pulls = self.pulls.lock();
        let made = wanted.iter().map(|config| {
            let same = pulls.iter().find(|pull| pull.config == *config);
            same.map_or_else(|| Arc::new(Pull::new(config)), Arc::clone)
        });
        *pulls = made.collect();
    }

    async fn by_schedule(self: Arc<Self>, pull: Arc<Pull>) {
        let mut stopping = pull.ends.watch();
        while !pull.ends.is_started() {
            let done = {
                self.once(&pull, None, false, (&pull.ends, &mut |_, _, _| true))
                    .await
            };
            let interval = Duration::from_secs(pull.config.interval_s);
            let accepted = done.as_ref().map_or(0, |report| report.last.accepted);
            let pause = match done.map_or_else(Some, |report| report.failed) {
                Some(why) if !pull.ends.is_started() => {
                    let name = &pull.config.name;
                    tracing::warn!(
                        pull = name,
                        accepted,
                        "articles cannot be fetched, or not all: {why}"
                    );
                    interval.min(RETRY)
                }
                _ => interval,
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = stopping.started() => {}
            }
        }
    }

    /// Fetches once, now; where it cannot be done to the end, what came until then is here, and the report says why.
    ///
    /// # Errors
    /// When nothing is known of such a server.
    pub async fn pull(&self, wanted: &Pulling, told: PullTold<'_>) -> Result<PullReport, String> {
        let known = {
            let pulls = self.pulls.lock();
            pulls
                .iter()
                .find(|pull| pull.config.name == wanted.host)
                .map(Arc::clone)
        };
        let groups = wanted.groups.as_deref();
        let pull = match (known, groups) {
            (Some(pull), _) => pull,
            (None, Some(groups)) => Arc::new(Pull::new(&of_host(&wanted.host, groups))),
            (None, None) => {
                return Err(format!(
                    "no [[pull]] has the name {:?}: say which groups, as in `newsreel pull {} 'comp.*'`",
                    wanted.host, wanted.host
                ));
            }
        };
        self.once(&pull, groups, wanted.dry_run, (&self.stop, told))
            .await
    }

    /// A run that is told to stop ends with the article at hand; where its server lets it wait it ends all the same, which loses no more than
    /// a kill does.
    async fn once(
        &self,
        pull: &Pull,
        groups: Option<&str>,
        dry_run: bool,
        (stop, told): (&Drain, PullTold<'_>),
    ) -> Result<PullReport, String> {
        let mut stopping = stop.watch();
        let _alone = tokio::select! {
            alone = pull.running.lock() => alone,
            () = stopping.started() => return Ok(pull.report.lock().clone()),
        };
        let groups = groups.unwrap_or(&pull.config.groups);
        let wildmat = Wildmat::parse(groups).map_err(|why| format!("{groups:?}: {why}"))?;
        let before = {
            let mut report = pull.report.lock();
            report.running = true;
            report.last = Pulled::default();
            report.accepted
        };
        let mut noting = |pulled: &Pulled, done, total| {
            let mut report = pull.report.lock();
            report.last = pulled.clone();
            report.accepted = before + pulled.accepted;
            drop(report);
            !stop.is_started() && told(pulled, done, total)
        };
        let run = Run {
            engine: &self.engine,
            marks: &self.marks,
            name: &pull.config.name,
            wildmat: &wildmat,
            first_max: pull.config.first_articles_max,
            asks_newnews: pull.config.newnews,
            dry_run,
            told: &mut noting,
        };
        let running = async {
            match self.remote(&pull.config).await {
                Ok(remote) => run.run(&remote).await,
                Err(why) => (Pulled::default(), Err(why)),
            }
        };
        let too_late = async {
            stopping.started().await;
            sleep(STOP_AFTER).await;
        };
        let (pulled, ended) = tokio::select! {
            ran = running => ran,
            () = too_late => (pull.report.lock().last.clone(), Ok(Ended::Stopped)),
        };
        let mut report = pull.report.lock();
        report.running = false;
        report.ended = Some(self.clock.now().secs);
        report.accepted = before + pulled.accepted;
        report.last = pulled;
        report.failed = match &ended {
            Ok(Ended::Done) => None,
            Ok(Ended::Stopped) => Some("it was stopped".to_owned()),
            Err(why) => Some(why.clone()),
        };
        Ok(report.clone())
    }

    /// The server, with what its files say now.
    async fn remote(&self, config: &PullConfig) -> Result<Remote, String> {
        let (disk, peer) = (Arc::clone(&self.disk), config.as_peer());
        let remote = tokio::task::spawn_blocking(move || dial::remote(disk.as_ref(), &peer)).await;
        let remote = remote.map_err(|error| error.to_string())??;
        Ok(Remote {
            reads: true,
            ..remote
        })
    }
}

/// Ends schedules, with what of them is under way.
async fn end(schedules: Vec<Schedule>) {
    for (pull, _) in &schedules {
        pull.ends.start();
    }
    for (_, mut task) in schedules {
        while task.join_next().await.is_some() {}
    }
}

/// A server that the configuration does not know.
fn of_host(host: &str, groups: &str) -> PullConfig {
    let is_bare = host
        .parse::<std::net::IpAddr>()
        .is_ok_and(|ip| ip.is_ipv6());
    let address = match host.rsplit_once(':') {
        _ if is_bare => format!("[{host}]:119"),
        Some(_) => host.to_owned(),
        None => format!("{host}:119"),
    };
    PullConfig {
        name: address.clone(),
        address,
        groups: groups.to_owned(),
        interval_s: 0,
        ..PullConfig::default()
    }
}
