//! The caching server: listeners and sessions in front of a server elsewhere and what is kept of it.
//!
//! Order of a start: the signals, the sockets, the cache's directory (its lock keeps a second server out), then work.  The server
//! elsewhere need not be there: what is kept is served without it.  Order of a stop: no new connections, those that are
//! open drain, those to the server elsewhere end, and what is kept is made durable.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use newsreel_cache::keep::Keep;
use newsreel_cache::{
    CServer, Counted, CountedPart, RServer, RemoteSettings, Upstream, UpstreamConfig,
};
use newsreel_host::{Clock, Disk, RealDisk, random_bytes};
use newsreel_net::client::Pool;
use newsreel_net::{Drain, Limits, LineLimit, Listeners};
use newsreel_session::Metrics;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::front::{self, Front};
use super::logging::{Logging, PATIENCE};
use super::running::{Settings, connections, sessions};
use super::signals::Signals;
use super::{Doors, runtime, settings};
use crate::config::Config;
use crate::control::Progress;
use crate::control::request::Request;
use crate::control::server::{Answers, ControlSocket};

/// What is called so in message-ids where the machine has no name.
const NO_NAME: &str = "localhost";

/// The parts that sessions use, and that others ask.
struct Caching {
    service: Arc<CServer<Upstream>>,
    pool: Arc<Pool<Upstream>>,
    settings: Settings,
    drain: Drain,
    strangers: LineLimit,
    limits: Arc<Limits>,
    metrics: Arc<Metrics>,
    logging: Logging,
    config: Config,
    addresses: Vec<SocketAddr>,
    started: Instant,
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

impl Caching {
    fn facts(&self) -> Value {
        let kept = self.service.kept_figures();
        let (lent, idle) = self.pool.counts();
        let config = &self.config.cache;
        let upstream = self.config.upstream.first();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": self.started.elapsed().as_secs(),
            "server": {
                "pid": newsreel_host::process::own_pid(),
                "config": self.config.file,
                "listening": self.addresses,
                "connections": connections(&self.limits),
                "sessions": sessions(&self.metrics.snapshot()),
                "log_lines_lost": self.logging.lines_lost(),
            },
            "cache": {
                "directory": config.directory,
                "articles": kept.articles,
                "octets": kept.octets,
                "octets_max": config.octets,
                "memory_octets": kept.memory_octets,
                "groups": kept.groups,
                "overview_octets": kept.overview_octets,
                "overview_octets_max": config.overview_octets,
                "overview_memory_octets": kept.overview_memory_octets,
                "is_broken": kept.is_broken,
            },
            "upstreams": [{
                "address": upstream.map(|upstream| &upstream.address),
                "lent": lent,
                "idle": idle,
            }],
            "asked": self.service.counts().map(asked),
        })
    }
}

/// A database's questions.
fn asked((what, counted): (&str, Counted)) -> Value {
    let part =
        |part: CountedPart| json!({"answers": part.answers, "octets": part.octets, "us": part.us});
    json!({"what": what, "kept": part(counted.kept), "fetched": part(counted.fetched)})
}

impl Answers for Arc<Caching> {
    fn answer(
        &self,
        request: Request,
        _: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Value, String> {
        match request {
            Request::Status => Ok(self.facts()),
            Request::Stop => {
                self.drain.start();
                Ok(json!({"stopping": true}))
            }
            _ => Err("a caching server runs here: it has no spool, and reads its configuration when it starts".to_owned()),
        }
    }
}

/// Runs a caching server in front of `upstream` until it is told to stop.
pub(crate) fn run(config: Config, upstream: &UpstreamConfig, clock: Arc<dyn Clock>) -> Result<()> {
    let logging = Logging::start(&config.logging)?;
    let log = logging.out();
    let result = run_logged(config, upstream, &clock, logging);
    // Nobody is there any more to be told that it is not all written.
    let _ = log.flush(PATIENCE);
    result
}

fn run_logged(
    config: Config,
    upstream: &UpstreamConfig,
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
    let keep = Keep::open(&disk, &config.cache.keep());
    let keep = keep.with_context(|| format!("cannot keep anything in {directory}"))?;
    let connect = Upstream::new(Arc::clone(&disk), upstream.clone());
    let pool = Pool::new(connect, upstream.limits());
    let service = service(&config, &pool, Arc::new(keep), clock)?;
    let caching = {
        let metrics = Arc::new(Metrics::default());
        Caching {
            service: Arc::new(service),
            pool,
            settings: settings(&disk, config.clone(), &metrics)?,
            drain: doors.drain.clone(),
            strangers: LineLimit::default(),
            limits: Arc::clone(&doors.limits),
            metrics,
            logging,
            addresses: doors.listeners.addresses(),
            config,
            started: Instant::now(),
        }
    };
    let control = {
        let _inside = runtime.enter();
        ControlSocket::bind(&disk, &caching.config.cache.directory)
            .context("cannot make the control socket in the cache's directory")?
    };
    let serving = until_drained(Arc::new(caching), doors.listeners, control, signals);
    let result = runtime.block_on(serving);
    runtime.shutdown_timeout(Duration::from_secs(5));
    tracing::info!(target: "newsreel::server", "stopped");
    result
}

/// The cache in front of a server elsewhere.
fn service(
    config: &Config,
    pool: &Arc<Pool<Upstream>>,
    keep: Arc<Keep>,
    clock: &Arc<dyn Clock>,
) -> Result<CServer<Upstream>> {
    let host = match config.posting.message_id_host.as_str() {
        "" => newsreel_host::process::host_name().unwrap_or_else(|| NO_NAME.to_owned()),
        host => host.to_owned(),
    };
    let settings = RemoteSettings {
        article_octets_max: usize::try_from(config.articles.octets_max).unwrap_or(usize::MAX),
        groups_max: usize::try_from(config.cache.groups_max).unwrap_or(usize::MAX),
        list_refresh: Duration::from_secs(config.cache.list_refresh_s),
        posting: config.posting.clone(),
        host,
    };
    let random = u64::from_le_bytes(random_bytes()?);
    let there = RServer::new(Arc::clone(pool), Arc::clone(clock), settings, random);
    Ok(CServer::new(there, keep, config.cache.settings()))
}

async fn until_drained(
    caching: Arc<Caching>,
    listeners: Listeners,
    control: ControlSocket,
    signals: Signals,
) -> Result<()> {
    let Caching {
        service,
        pool,
        drain,
        ..
    } = &*caching;
    for address in &caching.addresses {
        tracing::info!(target: "newsreel::server", %address, "listening");
    }
    let serving = listeners.run(|stream, admission| front::session(&caching, stream, admission));
    let connections_max = caching.config.server.control_connections_max as usize;
    let answering = control.run(Arc::clone(&caching), connections_max, drain.watch());
    // Whether the server elsewhere is there is known before the first reader comes; that it is not is told by who asks it.
    let greeting = async {
        if service.greet().await {
            let upstream = caching
                .config
                .upstream
                .first()
                .map(|it| it.address.as_str());
            tracing::info!(target: "newsreel::server", upstream, "the upstream server answers");
        }
    };
    let beside = async {
        tokio::join!(
            service.tend(),
            pool.tend(),
            signals.obey_stops(drain),
            greeting
        );
    };
    let cut = tokio::select! {
        (cut, ()) = async { tokio::join!(serving, answering) } => cut,
        // None of them ends before.
        () = beside => 0,
    };
    tracing::info!(target: "newsreel::server", cut, "connections ended");
    pool.close().await;
    service.stop().await;
    Ok(())
}
