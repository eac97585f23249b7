//! The caching server: listeners and sessions in front of a server elsewhere and what is kept of it.
//!
//! Order of a start: the signals, the sockets, the cache's directory (its lock keeps a second server out), then work.  The server
//! elsewhere need not be there: what is kept is served without it.  Order of a stop: no new connections, those that are
//! open drain, those to the server elsewhere end, and what is kept is made durable.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use newsreel_cache::keep::{Keep, Renumbered};
use newsreel_cache::queue::PostQueue;
use newsreel_cache::{
    AFTER_A_KILL, AccessLog, CServer, CacheConfig, Censor, Counted, CountedGroup, CountedPart,
    PrefetchLimits, Prefetched, RServer, RemoteSettings, Route, Routes, Upstream, UpstreamConfig,
};
use newsreel_host::{Clock, Disk, LogWriter, RealDisk, random_bytes, replace_file};
use newsreel_net::client::{Account, Pool};
use newsreel_net::{Drain, Limits, LineLimit, Listeners};
use newsreel_session::Metrics;
use newsreel_wire::Wildmat;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::front::{self, Front};
use super::logging::{Logging, PATIENCE};
use super::metrics::MetricsDoor;
use super::running::{Settings, connections, sessions};
use super::signals::Signals;
use super::{
    Beside, Doors, begin_logging, inherited, kept, offline, runtime, settings, tell_listening,
    waiting_posts,
};
use crate::config::{self, Config};
use crate::control::Progress;
use crate::control::cache_request::CacheRequest;
use crate::control::request::Request;
use crate::control::server::{Answers, ControlSocket};

/// The file in the cache's directory that is there while a server runs: behind one that was killed it is left.
const RUNNING: &str = "running";

/// What is called so in message-ids where the machine has no name.
const NO_NAME: &str = "localhost";

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
        let by_policy = self.service.counts_by_policy().into_iter();
        let by_policy: Vec<Value> = by_policy
            .map(|(kind, counted)| asked((kind.name(), counted)))
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
                "log_lines_lost": self.log.lost(),
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
                "pins": kept.pins,
                "pinned_octets": kept.pinned_octets,
                "pinned_octets_max": kept.pinned_octets_max,
            },
            "is_offline": self.service.is_offline(),
            "posts": self.service.queue().map(|queue| waiting_posts::figures(queue)),
            "upstreams": upstreams,
            "asked": self.service.counts().map(asked),
            "by_policy": by_policy,
            "by_group": self.service.counts_by_group(GROUPS_SHOWN_MAX).iter().map(of_group).collect::<Vec<_>>(),
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

impl Caching {
    /// Answers what is asked of caching servers alone.
    fn answer_of_cache(
        &self,
        asked: CacheRequest,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Value, String> {
        let (service, keep) = (&self.service, self.service.keep());
        match asked {
            CacheRequest::Prefetch { wildmat, limits } => {
                prefetch(service, &wildmat, limits.into(), progress)
            }
            CacheRequest::Warm {
                named,
                threads,
                limits,
            } => warm(service, (&named, threads), limits.into(), progress),
            CacheRequest::Offline { offline } => {
                if let Some(offline) = offline {
                    let held = offline::hold(&RealDisk, &self.config.cache, offline);
                    held.map_err(|error| crate::output::chain(&error))?;
                    let set = service.set_offline(offline);
                    set.map_err(|error| error.to_string())?;
                    tracing::info!(target: "newsreel::cache", offline, "as asked");
                }
                Ok(json!({"is_offline": service.is_offline()}))
            }
            CacheRequest::List { wildmat, articles } => kept::list(keep, &wildmat, articles),
            CacheRequest::Drop { named, dry_run } => kept::drop(service, &named, dry_run),
            CacheRequest::Pin { add, remove } => kept::pin(keep, &add, &remove),
            CacheRequest::Queue { action } => waiting_posts::answer(&**service, action),
        }
    }
}

/// A database's questions.
fn asked((what, counted): (&str, Counted)) -> Value {
    let part = |part: CountedPart| {
        json!({
            "answers": part.answers,
            "octets": part.octets,
            "us": part.us,
            "us_95_percent": part.within_us(95),
        })
    };
    json!({"what": what, "kept": part(counted.kept), "fetched": part(counted.fetched)})
}

/// A group's articles; those of all others have no name.
fn of_group((name, counted): &(Box<str>, CountedGroup)) -> Value {
    json!({
        "group": name,
        "hits": counted.hits,
        "saved_octets": counted.saved_octets,
        "misses": counted.misses,
        "fetched_octets": counted.fetched_octets,
    })
}

impl Answers for Arc<Caching> {
    fn answer(
        &self,
        request: Request,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Value, String> {
        match request {
            Request::Status => Ok(self.facts()),
            Request::Cache { asked } => self.answer_of_cache(asked, progress),
            Request::AccessBans { lift } => {
                super::running::bans(&self.settings().gate(), lift.as_deref())
            }
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
    Ok(fetched(&done.map_err(|error| error.to_string())?))
}

/// Fetches groups and articles by their names; on a thread that may wait.
fn warm(
    service: &CServer<Upstream>,
    (what, threads): (&[String], bool),
    limits: PrefetchLimits,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let (ids, wildmats) = kept::named(what)?;
    let mut all = Prefetched::default();
    let runtime = tokio::runtime::Handle::current();
    let left = |all: &Prefetched| PrefetchLimits {
        octets: limits.octets.saturating_sub(all.octets),
        // Who names something wants it there, not only listed.
        reads_kept: true,
        ..limits
    };
    for wildmat in &wildmats {
        let mut goes_on = |done: &Prefetched| {
            let (done, total) = (done.groups, done.matching);
            progress(Progress { done, total })
        };
        let fetching = service.prefetch(wildmat, left(&all), &mut goes_on);
        let done = runtime.block_on(fetching);
        all = all.with(&done.map_err(|error| error.to_string())?);
    }
    let total = ids.len() as u64;
    let mut goes_on = |done: &Prefetched| {
        let done = done.articles.min(total);
        progress(Progress { done, total })
    };
    let fetching = service.warm(&ids, threads, left(&all), &mut goes_on);
    Ok(fetched(&all.with(&runtime.block_on(fetching))))
}

/// What was fetched.
fn fetched(done: &Prefetched) -> Value {
    json!({
        "groups": done.groups,
        "matching": done.matching,
        "failed": done.failed,
        "asked": done.asked,
        "articles": done.articles,
        "octets": done.octets,
        "is_cut": done.is_cut,
    })
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
    let logging = begin_logging(&config)?;
    let log = logging.out();
    let listen = config.listen.clone();
    let result = run_logged(config, may_renumber, &clock, logging);
    if result.is_err() {
        inherited::refuse(&listen);
    }
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
            started: Instant::now(),
        }
    };
    let control = {
        let _inside = runtime.enter();
        ControlSocket::bind(&disk, &caching.config.cache.directory)
            .context("cannot make the control socket in the cache's directory")?
    };
    let doors = (doors.listeners, doors.metrics, control);
    let serving = until_drained(Arc::new(caching), doors, signals);
    let result = runtime.block_on(serving);
    runtime.shutdown_timeout(Duration::from_secs(5));
    tracing::info!(target: "newsreel::server", "stopped");
    result
}

/// What is kept, in front of the servers elsewhere, and the pools of connections to these.
async fn service_of(
    config: &Config,
    disk: &Arc<dyn Disk>,
    clock: &Arc<dyn Clock>,
    starting: Starting,
) -> Result<(CServer<Upstream>, Vec<Arc<Pool<Upstream>>>)> {
    let folder = &config.cache.directory;
    let keep = Keep::open(disk, &config.cache.keep());
    let keep = keep.with_context(|| {
        format!(
            "cannot keep anything in {} (a caching server needs a directory of its own that it can write, with room in it: see to this one, \
             or name another with --directory or `cache.directory`)",
            folder.display()
        )
    })?;
    let not_before = after_a_kill(disk.as_ref(), folder)?;
    let servers = servers(config, disk, not_before);
    let pools = servers.iter().map(|(pool, _)| Arc::clone(pool)).collect();
    let routes = servers.iter().map(|(_, route)| route.clone()).collect();
    let (keep, there) = (Arc::new(keep), remote(config, servers, clock)?);
    let routes = Routes::new(routes);
    take_routes(&keep, &there, config, (&routes, starting)).await?;
    let waiting_max = config.cache.posts_octets;
    let open = || PostQueue::open(disk, folder, waiting_max);
    let queue = (waiting_max > 0).then(open).transpose()?.map(Arc::new);
    let service = CServer::new(there, keep, config.cache.settings(), queue);
    if offline::begins(disk.as_ref(), &config.cache)? {
        service.set_offline(true)?;
    }
    if let Some(censor) = Censor::new(&config.censor) {
        service.censor(censor);
    }
    if config.cache.access_log_octets > 0 {
        let log_octets = config.cache.access_log_octets;
        service.note_access(AccessLog::new(disk, folder, log_octets));
    }
    Ok((service, pools))
}

/// Notes that a server runs; when it may connect to those elsewhere, where that is not at once: connections of one that was killed
/// count there for a moment.
fn after_a_kill(disk: &dyn Disk, folder: &Path) -> Result<Option<Instant>> {
    let running = folder.join(RUNNING);
    if disk.exists(&running)? {
        let seconds = AFTER_A_KILL.as_secs();
        tracing::info!(target: "newsreel::server", seconds, "the last server here was killed: those elsewhere are asked after a moment");
        return Ok(Some(Instant::now() + AFTER_A_KILL));
    }
    replace_file(disk, &running, b"")?;
    Ok(None)
}

/// The servers elsewhere; their groups are wildmats, as the configuration has been checked.
fn servers<'c>(
    config: &'c Config,
    disk: &Arc<dyn Disk>,
    not_before: Option<Instant>,
) -> Vec<(Arc<Pool<Upstream>>, Route)> {
    let mut accounts: HashMap<&str, Arc<Account<Upstream>>> = HashMap::new();
    let server = |upstream: &'c UpstreamConfig| {
        let connect = Upstream::new(Arc::clone(disk), upstream.clone(), not_before);
        let account = match upstream.account.as_str() {
            "" => None,
            name => {
                let account = accounts.entry(name);
                Some(&*account.or_insert_with(|| Account::new(upstream.connections)))
            }
        };
        let pool = Pool::of_account(connect, upstream.limits(), account);
        Some((pool, upstream.route()?))
    };
    config.upstream.iter().filter_map(server).collect()
}

/// What is started in front of the servers elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Starting {
    /// A caching server.
    Cache,
    /// The same, and numbers may be those of other servers than before.
    Renumbering,
    /// A server with groups of its own.
    Beside,
}

impl Starting {
    /// How numbers of another server are taken.
    const fn to_renumber(self) -> &'static str {
        match self {
            Self::Cache | Self::Renumbering => "give --renumber",
            Self::Beside => "run `newsreel cache --renumber` with this configuration",
        }
    }
}

/// Groups that a message names.
const NAMED: usize = 5;

/// Numbers that readers remember become another server's only if somebody says so, or if they are the same there.
async fn take_routes(
    keep: &Keep,
    there: &RServer<Upstream>,
    config: &Config,
    (routes, starting): (&Routes, Starting),
) -> Result<()> {
    let is_declared = |other: &Renumbered| {
        let mut servers = config.upstream.iter();
        servers.any(|it| it.address == other.to && it.same_numbers_as == other.from)
    };
    let others = keep.renumbered(routes)?;
    if starting == Starting::Renumbering {
        return Ok(keep.take_routes(routes, &others)?);
    }
    let (declared, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_declared);
    if others.is_empty() {
        if !declared.is_empty() && !are_the_same(keep, there, &declared, starting).await? {
            // The next start looks at it again.
            return Ok(());
        }
        return Ok(keep.take_routes(routes, &[])?);
    }
    let named: Vec<&str> = others.iter().take(NAMED).map(|it| &*it.group).collect();
    bail!(
        "the numbers of {}, {}{}, would come from another server than before, and readers remember them: put back which \
         [[upstream]] these groups come from (its place, its `tier`, its `groups`), say `same_numbers_as` where it has the same \
         numbers, or {} once",
        crate::output::count(others.len() as u64, "group"),
        named.join(" "),
        others.get(NAMED).map_or("", |_| " and others"),
        starting.to_renumber()
    );
}

/// Compares what is said to be the same; false: it cannot be asked, and a server with groups of its own takes the administrator's word
/// for it meanwhile, as these are to be read whatever becomes of others.
async fn are_the_same(
    keep: &Keep,
    there: &RServer<Upstream>,
    declared: &[Renumbered],
    starting: Starting,
) -> Result<bool> {
    let groups = crate::output::count(declared.len() as u64, "group");
    let compared = match there.compared(keep, declared).await {
        Err(error) if starting == Starting::Beside => {
            tracing::warn!(
                target: "newsreel::cache", groups, %error,
                "whether numbers are the same (`same_numbers_as`) cannot be looked at now; they are taken to be, and compared at the next start"
            );
            return Ok(false);
        }
        compared => compared
            .context("whether numbers are the same (`same_numbers_as`) cannot be looked at now")?,
    };
    if let Some((group, number)) = compared.other {
        bail!(
            "number {} of {group} is another article at the server that is to have the same numbers (`same_numbers_as`): put back \
             which [[upstream]] its numbers come from, or {} once",
            number.0,
            starting.to_renumber()
        );
    }
    if compared.same == 0 {
        bail!(
            "nothing that is kept of {groups} could be compared with the server that is to have the same numbers \
             (`same_numbers_as`): {} once to take its numbers all the same",
            starting.to_renumber()
        );
    }
    let same = compared.same;
    tracing::info!(target: "newsreel::cache", groups, same, "numbers come from another server, which has the same");
    Ok(true)
}

/// The servers elsewhere, as one.
fn remote(
    config: &Config,
    servers: Vec<(Arc<Pool<Upstream>>, Route)>,
    clock: &Arc<dyn Clock>,
) -> Result<RServer<Upstream>> {
    let names = [
        &config.posting.message_id_host,
        &config.engine.path_identity,
    ];
    let host = match names.into_iter().find(|name| !name.is_empty()) {
        Some(name) => name.clone(),
        None => newsreel_host::process::host_name().unwrap_or_else(|| NO_NAME.to_owned()),
    };
    if !host.contains('.') {
        tracing::warn!(target: "newsreel::cache", host,
            "posts without a message-id get one with the machine's bare name, which is not its alone: \
             set engine.path_identity to a name that is this server's alone, such as news.example.org");
    }
    let settings = RemoteSettings {
        article_octets_max: usize::try_from(config.articles.octets_max).unwrap_or(usize::MAX),
        groups_max: usize::try_from(config.cache.groups_max).unwrap_or(usize::MAX),
        list_refresh: Duration::from_secs(config.cache.list_refresh_s),
        list_whole: Duration::from_secs(config.cache.list_whole_s),
        missing_refresh: Duration::from_secs(config.cache.missing_s),
        forwarded: config.cache.forwarded(),
        posting: config.posting.clone(),
        host,
    };
    let random = u64::from_le_bytes(random_bytes()?);
    Ok(RServer::new(servers, Arc::clone(clock), settings, random))
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
        started: Instant::now(),
    };
    let control = ControlSocket::bind(disk, directory)
        .context("cannot make the control socket in the cache's directory")?;
    tracing::info!(target: "newsreel::server", directory = %directory.display(), "groups of upstream servers are served, too");
    Ok(Some((Arc::new(caching), control)))
}

impl Caching {
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
    let signals = signals.obey_stops(&caching.drain, || drop(caching.reload()));
    let serving = async { tokio::join!(serving, measuring).0 };
    let cut = caching.while_serving(control, serving, signals).await;
    tracing::info!(target: "newsreel::server", cut, "connections ended");
    caching.settings.remember();
    Ok(())
}
