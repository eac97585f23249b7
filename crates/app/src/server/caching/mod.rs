//! The caching server: listeners and sessions in front of a server elsewhere and what is kept of it.
//!
//! Order of a start: the signals, the sockets, the cache's directory (its lock keeps a second server out), then work.  The server
//! elsewhere need not be there: what is kept is served without it.  Order of a stop: no new connections, those that are
//! open drain, those to the server elsewhere end, and what is kept is made durable.

mod answers;
mod fetching;
mod opening;
mod renumbering;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use newsreel_cache::{CServer, Upstream};
use newsreel_host::{Clock, Disk, LogWriter, RealDisk, replace_file};
use newsreel_net::client::Pool;
use newsreel_net::{Drain, Limits, LineLimit, Listeners};
use newsreel_session::Metrics;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::fetching::prefetch_often;
use self::opening::{RUNNING, service_of};
use self::renumbering::Starting;
use super::front::{self, Front};
use super::logging::{Logging, PATIENCE};
use super::metrics::MetricsDoor;
use super::running::Settings;
use super::signals::Signals;
use super::{Beside, Doors, begin_logging, inherited, runtime, settings, tell_listening};
use crate::config::Config;
use crate::control::server::ControlSocket;

/// So many groups are shown with their hits: those asked for most.
pub(super) const GROUPS_SHOWN_MAX: usize = 500;

/// The parts that sessions use, and that others ask.
pub(super) struct Caching {
    pub(super) service: Arc<CServer<Upstream>>,
    /// In the order of the configuration.
    pub(super) pools: Vec<Arc<Pool<Upstream>>>,
    settings: Settings,
    drain: Drain,
    strangers: LineLimit,
    pub(super) limits: Arc<Limits>,
    pub(super) metrics: Arc<Metrics>,
    log: Arc<LogWriter>,
    pub(super) config: Config,
    /// What the configuration file said at the start, without what was typed.
    written: Box<Config>,
    addresses: Vec<SocketAddr>,
    pub(super) started: Instant,
}

impl Front for Caching {
    type Service = CServer<Upstream>;

    fn service(&self) -> Arc<CServer<Upstream>> {
        Arc::clone(&self.service)
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn drain(&self) -> &Drain {
        &self.drain
    }

    fn strangers(&self) -> &LineLimit {
        &self.strangers
    }
}

/// Runs a caching server until it is told to stop; `written` is its configuration without what was typed, and `may_renumber` says that the
/// numbers of groups may be those of other servers than before.
pub(crate) fn run(
    config: Config,
    written: Config,
    may_renumber: bool,
    clock: Arc<dyn Clock>,
) -> Result<()> {
    let logging = begin_logging(&config)?;
    let log = logging.out();
    let listen = config.listen.clone();
    let result = run_logged((config, written), may_renumber, &clock, logging);
    if result.is_err() {
        inherited::refuse(&listen);
    }
    // Nobody is there any more to be told that it is not all written.
    let _ = log.flush(PATIENCE);
    result
}

fn run_logged(
    (config, written): (Config, Config),
    may_renumber: bool,
    clock: &Arc<dyn Clock>,
    logging: Logging,
) -> Result<()> {
    let runtime = runtime(&config)?;
    let signals = {
        let _inside = runtime.enter();
        Signals::take().context("cannot watch for signals")?
    };
    let version = env!("CARGO_PKG_VERSION");
    let directory = config.cache.directory.display().to_string();
    tracing::info!(target: "newsreel::server", version, %directory, "starting");
    if let Err(error) = newsreel_host::process::raise_open_files() {
        tracing::warn!(target: "newsreel::server", %error, "few files may be open");
    }
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let doors = {
        let _inside = runtime.enter();
        Doors::open(&config)?
    };
    let starting = match may_renumber {
        true => Starting::Renumbering,
        false => Starting::Cache,
    };
    let opening = service_of(&config, &disk, clock, starting);
    let (service, pools) = runtime.block_on(opening)?;
    let caching = {
        let metrics = Arc::new(Metrics::default());
        Caching {
            service: Arc::new(service),
            pools,
            settings: settings(&disk, config.clone(), &metrics, |config| {
                Some(&config.cache.directory)
            })?,
            drain: doors.drain.clone(),
            strangers: LineLimit::default(),
            limits: Arc::clone(&doors.limits),
            metrics,
            log: logging.out(),
            addresses: doors.listeners.addresses(),
            config,
            written: Box::new(written),
            started: Instant::now(),
        }
    };
    let control = {
        let _inside = runtime.enter();
        ControlSocket::bind(&disk, &caching.config.cache.directory)
            .context("cannot make the control socket in the cache's directory")?
    };
    caching.begins(disk.as_ref())?;
    let doors = (doors.listeners, doors.metrics, control);
    let serving = until_drained(Arc::new(caching), doors, signals);
    let result = runtime.block_on(serving);
    runtime.shutdown_timeout(Duration::from_secs(5));
    tracing::info!(target: "newsreel::server", "stopped");
    result
}

/// What a caching server has from the server of which it is a part.
pub(super) struct PartOf<'s> {
    clock: &'s Arc<dyn Clock>,
    limits: &'s Arc<Limits>,
    drain: &'s Drain,
    metrics: &'s Arc<Metrics>,
    addresses: Vec<SocketAddr>,
    log: Arc<LogWriter>,
}

impl<'s> PartOf<'s> {
    pub(super) fn new(
        beside: &'s Beside,
        (limits, drain): (&'s Arc<Limits>, &'s Drain),
        metrics: &'s Arc<Metrics>,
        addresses: Vec<SocketAddr>,
    ) -> Self {
        Self {
            clock: &beside.clock,
            limits,
            drain,
            metrics,
            addresses,
            log: beside.logging.out(),
        }
    }
}

/// Opens what is kept of servers elsewhere, beside a server's own groups, and the socket by which it is asked for it; none: there is no
/// server elsewhere.
pub(super) async fn open_beside(
    config: &Config,
    disk: &Arc<dyn Disk>,
    part: PartOf<'_>,
) -> Result<Option<(Arc<Caching>, ControlSocket)>> {
    if config.upstream.is_empty() {
        return Ok(None);
    }
    let directory = &config.cache.directory;
    let (service, pools) = service_of(config, disk, part.clock, Starting::Beside).await?;
    let caching = Caching {
        service: Arc::new(service),
        pools,
        settings: settings(disk, config.clone(), part.metrics, |_| None)?,
        drain: part.drain.clone(),
        strangers: LineLimit::default(),
        limits: Arc::clone(part.limits),
        metrics: Arc::clone(part.metrics),
        log: part.log,
        addresses: part.addresses,
        config: config.clone(),
        written: Box::new(config.clone()),
        started: Instant::now(),
    };
    let control = ControlSocket::bind(disk, directory)
        .context("cannot make the control socket in the cache's directory")?;
    tracing::info!(target: "newsreel::server", directory = %directory.display(), "groups of upstream servers are served, too");
    Ok(Some((Arc::new(caching), control)))
}

impl Caching {
    /// Notes that a server runs here, when nothing keeps it from serving any more: a start that is refused is no kill for the next one, and
    /// behind a kill it leaves what that has left.
    pub(super) fn begins(&self, disk: &dyn Disk) -> Result<()> {
        let running = self.config.cache.directory.join(RUNNING);
        replace_file(disk, &running, b"").context("cannot note that the cache is in use")
    }

    /// Looks after what is kept and the servers elsewhere while something is done, and closes all of it behind that.  `beside` does not
    /// end.
    pub(super) async fn while_serving<T>(
        self: &Arc<Self>,
        control: ControlSocket,
        serving: impl Future<Output = T>,
        beside: impl Future<Output = ()>,
    ) -> T {
        let Self { service, pools, .. } = &**self;
        let connections_max = self.config.server.control_connections_max as usize;
        let answering = control.run(Arc::clone(self), connections_max, self.drain.watch());
        // Whether the server elsewhere is there is known before the first reader comes; that it is not is told by who asks it.
        let greeting = async {
            let servers = self.config.upstream.iter();
            for (server, is_there) in servers.zip(service.greet().await) {
                if is_there {
                    let upstream = &server.address;
                    tracing::info!(target: "newsreel::server", upstream, "the upstream server answers");
                }
            }
        };
        let mut tending = JoinSet::new();
        for pool in pools {
            let pool = Arc::clone(pool);
            tending.spawn(async move { pool.tend().await });
        }
        let prefetching = prefetch_often(service, &self.config.cache);
        let looking_after = async {
            tokio::join!(service.tend(), beside, greeting, prefetching);
            std::future::pending::<T>().await
        };
        let done = tokio::select! {
            (done, ()) = async { tokio::join!(serving, answering) } => done,
            never = looking_after => never,
        };
        for pool in pools {
            pool.close().await;
        }
        tending.join_all().await;
        service.stop().await;
        // What was still lent has come back by now.
        for pool in pools {
            pool.close().await;
        }
        // Goodbye was said on all connections.
        if let Err(error) = RealDisk.remove(&self.config.cache.directory.join(RUNNING)) {
            tracing::warn!(target: "newsreel::server", %error, "the next start will take this server for one that was killed");
        }
        done
    }
}

async fn until_drained(
    caching: Arc<Caching>,
    (listeners, figures, control): (Listeners, MetricsDoor, ControlSocket),
    signals: Signals,
) -> Result<()> {
    tell_listening(&caching.addresses);
    let front = Arc::clone(&caching);
    let serving = listeners.run(move |stream, admission| front::session(&front, stream, admission));
    let measuring = figures.run(Arc::clone(&caching), caching.drain.watch());
    let reading = Arc::clone(&caching);
    let signals = signals.obey_stops(&caching.drain, move || drop(reading.reload()));
    let serving = async { tokio::join!(serving, measuring).0 };
    let cut = caching.while_serving(control, serving, signals).await;
    tracing::info!(target: "newsreel::server", cut, "connections ended");
    caching.settings.remember();
    Ok(())
}
