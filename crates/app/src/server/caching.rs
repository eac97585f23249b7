//! The caching server: listeners and sessions in front of a server elsewhere and what is kept of it.
//!
//! Order of a start: the signals, the sockets, the cache's directory (its lock keeps a second server out), then work.  The server
//! elsewhere need not be there: what is kept is served without it.  Order of a stop: no new connections, those that are
//! open drain, those to the server elsewhere end, and what is kept is made durable.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use newsreel_cache::keep::Keep;
use newsreel_cache::queue::PostQueue;
use newsreel_cache::{
    AccessLog, CServer, CacheConfig, Counted, CountedPart, PrefetchLimits, Prefetched, RServer,
    RemoteSettings, Route, Routes, Upstream, UpstreamConfig,
};
use newsreel_host::{Clock, Disk, RealDisk, random_bytes};
use newsreel_net::client::Pool;
use newsreel_net::{Drain, Limits, LineLimit, Listeners};
use newsreel_session::Metrics;
use newsreel_wire::Wildmat;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::front::{self, Front};
use super::logging::{Logging, PATIENCE};
use super::running::{Settings, connections, sessions};
use super::signals::Signals;
use super::{Doors, runtime, settings, waiting_posts};
use crate::config::{self, Config};
use crate::control::Progress;
use crate::control::request::Request;
use crate::control::server::{Answers, ControlSocket};

/// What is called so in message-ids where the machine has no name.
const NO_NAME: &str = "localhost";

/// The parts that sessions use, and that others ask.
struct Caching {
    service: Arc<CServer<Upstream>>,
    /// In the order of the configuration.
    pools: Vec<Arc<Pool<Upstream>>>,
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
        let config = &self.config.cache;
        let servers = self.config.upstream.iter().zip(&self.pools);
        let upstreams: Vec<Value> = servers
            .map(|(server, pool)| {
                let (lent, idle) = pool.counts();
                json!({"address": server.address, "lent": lent, "idle": idle})
            })
            .collect();
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
                "policy": kept.policy.name(),
                "wanted_octets": kept.wanted_octets,
                "written_octets": kept.written.came,
                "written_again_octets": kept.written.again,
            },
            "is_offline": self.service.is_offline(),
            "posts": self.service.queue().map(|queue| waiting_posts::figures(queue)),
            "upstreams": upstreams,
            "asked": self.service.counts().map(asked),
        })
    }
}

impl Caching {
    /// Reads the configuration again, of which the policy is taken over.
    fn reload(&self) -> Result<Value, String> {
        let Some(file) = &self.config.file else {
            return Err("there is no configuration file to read again".to_owned());
        };
        let config = config::load_again(file).map_err(|error| {
            let error = crate::output::chain(&error);
            tracing::error!(target: "newsreel::server", error = %error.replace('\n', "; "),
                "the configuration cannot be used; the server goes on with the old one");
            error
        })?;
        let policy = config.cache.policy;
        let changed = if self.service.set_policy(policy) {
            vec!["cache.policy"]
        } else {
            Vec::new()
        };
        tracing::info!(target: "newsreel::server", policy = policy.name(), ?changed,
            "configuration read again; of other keys what has changed is in force after a restart only");
        Ok(json!({"changed": changed, "needs_restart": [], "file": file}))
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
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Value, String> {
        match request {
            Request::CachePrefetch {
                wildmat,
                articles,
                octets,
                octets_per_s,
            } => {
                let limits = PrefetchLimits {
                    articles,
                    octets,
                    octets_per_s,
                };
                prefetch(&self.service, &wildmat, limits, progress)
            }
            Request::Status => Ok(self.facts()),
            Request::CacheOffline { offline } => {
                if let Some(offline) = offline {
                    let set = self.service.set_offline(offline);
                    set.map_err(|error| error.to_string())?;
                    tracing::info!(target: "newsreel::cache", offline, "as asked");
                }
                Ok(json!({"is_offline": self.service.is_offline()}))
            }
            Request::CacheQueue { action } => waiting_posts::answer(&*self.service, action),
            Request::Reload => self.reload(),
            Request::Stop => {
                self.drain.start();
                Ok(json!({"stopping": true}))
            }
            _ => Err("a caching server runs here: it has no spool".to_owned()),
        }
    }
}

/// Fetches articles before anybody asks; on a thread that may wait.
fn prefetch(
    service: &CServer<Upstream>,
    wildmat: &str,
    limits: PrefetchLimits,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let wildmat = Wildmat::parse(wildmat).map_err(|error| error.to_string())?;
    let mut goes_on = |done: &Prefetched| {
        let (done, total) = (done.groups, done.matching);
        progress(Progress { done, total })
    };
    let fetching = service.prefetch(&wildmat, limits, &mut goes_on);
    let done = tokio::runtime::Handle::current().block_on(fetching);
    let done = done.map_err(|error| error.to_string())?;
    Ok(json!({
        "groups": done.groups,
        "matching": done.matching,
        "failed": done.failed,
        "asked": done.asked,
        "articles": done.articles,
        "octets": done.octets,
        "is_cut": done.is_cut,
    }))
}

/// How long after a prefetch that failed another is tried, at most.
const PREFETCH_AGAIN: Duration = Duration::from_secs(60);

/// Fetches what the configuration says, again and again.
async fn prefetch_often(service: &CServer<Upstream>, config: &CacheConfig) {
    let Some((groups, limits)) = config.prefetched() else {
        return;
    };
    loop {
        let mut pause = Duration::from_secs(config.prefetch_every_s);
        match service.prefetch(&groups, limits, &mut |_| true).await {
            Ok(done) => {
                let Prefetched {
                    groups,
                    failed,
                    articles,
                    octets,
                    is_cut,
                    ..
                } = done;
                tracing::info!(target: "newsreel::cache", groups, failed, articles, octets, is_cut, "prefetched");
            }
            // Why was told by who asked.
            Err(error) => {
                tracing::warn!(target: "newsreel::cache", %error, "nothing prefetched");
                pause = pause.min(PREFETCH_AGAIN);
            }
        }
        tokio::time::sleep(pause).await;
    }
}

/// Runs a caching server until it is told to stop; `may_renumber`: the numbers of groups may be those of other servers than
/// before.
pub(crate) fn run(config: Config, may_renumber: bool, clock: Arc<dyn Clock>) -> Result<()> {
    let logging = Logging::start(&config.logging)?;
    let log = logging.out();
    let result = run_logged(config, may_renumber, &clock, logging);
    // Nobody is there any more to be told that it is not all written.
    let _ = log.flush(PATIENCE);
    result
}

fn run_logged(
    config: Config,
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
    let keep = Keep::open(&disk, &config.cache.keep());
    let keep = keep.with_context(|| format!("cannot keep anything in {directory}"))?;
    let servers = servers(&config, &disk);
    let pools = servers.iter().map(|(pool, _)| Arc::clone(pool)).collect();
    let routes = servers.iter().map(|(_, route)| route.clone()).collect();
    take_routes(&keep, &Routes::new(routes), may_renumber)?;
    let waiting_max = config.cache.posts_octets;
    let open = || PostQueue::open(disk.as_ref(), &config.cache.directory, waiting_max);
    let queue = (waiting_max > 0).then(open).transpose()?.map(Arc::new);
    let service = service(&config, servers, (Arc::new(keep), queue), clock)?;
    let (log_octets, folder) = (config.cache.access_log_octets, &config.cache.directory);
    if log_octets > 0 {
        service.note_access(AccessLog::new(&disk, folder, log_octets));
    }
    let caching = {
        let metrics = Arc::new(Metrics::default());
        Caching {
            service: Arc::new(service),
            pools,
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

/// The servers elsewhere; their groups are wildmats, as the configuration has been checked.
fn servers(config: &Config, disk: &Arc<dyn Disk>) -> Vec<(Arc<Pool<Upstream>>, Route)> {
    let server = |upstream: &UpstreamConfig| {
        let connect = Upstream::new(Arc::clone(disk), upstream.clone());
        Some((Pool::new(connect, upstream.limits()), upstream.route()?))
    };
    config.upstream.iter().filter_map(server).collect()
}

/// Groups that a message names.
const NAMED: usize = 5;

/// Numbers that readers remember become another server's only if somebody says so.
fn take_routes(keep: &Keep, routes: &Routes, may_renumber: bool) -> Result<()> {
    let others = keep.take_routes(routes, may_renumber)?;
    if others.is_empty() {
        return Ok(());
    }
    let named: Vec<&str> = others.iter().take(NAMED).map(|name| &**name).collect();
    bail!(
        "the numbers of {}, {}{}, would come from another server than before, and readers remember them: put back which \
         [[upstream]] these groups come from (its place, its `tier`, its `groups`), or give --renumber once",
        crate::output::count(others.len() as u64, "group"),
        named.join(" "),
        others.get(NAMED).map_or("", |_| " and others")
    );
}

/// The cache in front of servers elsewhere.
fn service(
    config: &Config,
    servers: Vec<(Arc<Pool<Upstream>>, Route)>,
    (keep, queue): (Arc<Keep>, Option<Arc<PostQueue>>),
    clock: &Arc<dyn Clock>,
) -> Result<CServer<Upstream>> {
    let begins_offline = config.cache.offline;
    let host = match config.posting.message_id_host.as_str() {
        "" => newsreel_host::process::host_name().unwrap_or_else(|| NO_NAME.to_owned()),
        host => host.to_owned(),
    };
    let settings = RemoteSettings {
        article_octets_max: usize::try_from(config.articles.octets_max).unwrap_or(usize::MAX),
        groups_max: usize::try_from(config.cache.groups_max).unwrap_or(usize::MAX),
        list_refresh: Duration::from_secs(config.cache.list_refresh_s),
        missing_refresh: Duration::from_secs(config.cache.missing_s),
        posting: config.posting.clone(),
        host,
    };
    let random = u64::from_le_bytes(random_bytes()?);
    let there = RServer::new(servers, Arc::clone(clock), settings, random);
    let service = CServer::new(there, keep, config.cache.settings(), queue);
    if begins_offline {
        service.set_offline(true)?;
    }
    Ok(service)
}

async fn until_drained(
    caching: Arc<Caching>,
    listeners: Listeners,
    control: ControlSocket,
    signals: Signals,
) -> Result<()> {
    let Caching {
        service,
        pools,
        drain,
        ..
    } = &*caching;
    for address in &caching.addresses {
        tracing::info!(target: "newsreel::server", %address, "listening");
    }
    let front = Arc::clone(&caching);
    let serving = listeners.run(move |stream, admission| front::session(&front, stream, admission));
    let connections_max = caching.config.server.control_connections_max as usize;
    let answering = control.run(Arc::clone(&caching), connections_max, drain.watch());
    // Whether the server elsewhere is there is known before the first reader comes; that it is not is told by who asks it.
    let greeting = async {
        let servers = caching.config.upstream.iter();
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
    let prefetching = prefetch_often(service, &caching.config.cache);
    let beside = async {
        tokio::join!(
            service.tend(),
            signals.obey_stops(drain, || drop(caching.reload())),
            greeting,
            prefetching
        );
    };
    let cut = tokio::select! {
        (cut, ()) = async { tokio::join!(serving, answering) } => cut,
        // None of them ends before.
        () = beside => 0,
    };
    tracing::info!(target: "newsreel::server", cut, "connections ended");
    for pool in pools {
        pool.close().await;
    }
    tending.join_all().await;
    service.stop().await;
    Ok(())
}
