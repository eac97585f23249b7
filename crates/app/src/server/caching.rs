//! The caching server: listeners and sessions in front of a server elsewhere and what is kept of it.
//!
//! Order of a start: the signals, the sockets, the cache's directory (its lock keeps a second server out), then work.  The server
//! elsewhere need not be there: what is kept is served without it.  Order of a stop: no new connections, those that are
//! open drain, those to the server elsewhere end, and what is kept is made durable.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use newsreel_cache::keep::Keep;
use newsreel_cache::{CServer, RServer, RemoteSettings, Upstream, UpstreamConfig};
use newsreel_host::{Clock, Disk, RealDisk, random_bytes};
use newsreel_net::client::Pool;
use newsreel_net::{Drain, LineLimit};
use newsreel_session::Metrics;

use super::front::{self, Front};
use super::logging::{Logging, PATIENCE};
use super::running::Settings;
use super::signals::Signals;
use super::{Doors, runtime, settings};
use crate::config::Config;

/// What is called so in message-ids where the machine has no name.
const NO_NAME: &str = "localhost";

/// The parts that sessions use.
struct Caching {
    service: Arc<CServer<Upstream>>,
    settings: Settings,
    drain: Drain,
    strangers: LineLimit,
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

/// Runs a caching server in front of `upstream` until it is told to stop.
pub(crate) fn run(config: Config, upstream: &UpstreamConfig, clock: Arc<dyn Clock>) -> Result<()> {
    let logging = Logging::start(&config.logging)?;
    let log = logging.out();
    let result = run_logged(config, upstream, &clock);
    // Nobody is there any more to be told that it is not all written.
    let _ = log.flush(PATIENCE);
    result
}

fn run_logged(config: Config, upstream: &UpstreamConfig, clock: &Arc<dyn Clock>) -> Result<()> {
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
    let elsewhere = (upstream.address.as_str(), &*pool);
    let serving = until_drained(config, &disk, doors, Arc::new(service), elsewhere, signals);
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
    config: Config,
    disk: &Arc<dyn Disk>,
    doors: Doors,
    service: Arc<CServer<Upstream>>,
    (upstream, pool): (&str, &Pool<Upstream>),
    signals: Signals,
) -> Result<()> {
    let Doors {
        listeners, drain, ..
    } = doors;
    let addresses = listeners.addresses();
    let metrics = Arc::new(Metrics::default());
    let caching = Arc::new(Caching {
        service: Arc::clone(&service),
        settings: settings(disk, config, &metrics)?,
        drain: drain.clone(),
        strangers: LineLimit::default(),
    });
    for address in &addresses {
        tracing::info!(target: "newsreel::server", %address, "listening");
    }
    let serving = listeners.run(|stream, admission| front::session(&caching, stream, admission));
    // Whether the server elsewhere is there is known before the first reader comes; that it is not is told by who asks it.
    let greeting = async {
        if service.greet().await {
            tracing::info!(target: "newsreel::server", upstream, "the upstream server answers");
        }
    };
    let beside = async {
        tokio::join!(
            service.tend(),
            pool.tend(),
            signals.obey_stops(&drain),
            greeting
        );
    };
    let cut = tokio::select! {
        cut = serving => cut,
        // None of them ends before.
        () = beside => 0,
    };
    tracing::info!(target: "newsreel::server", cut, "connections ended");
    pool.close().await;
    service.stop().await;
    Ok(())
}
