//! The running server: engine, listeners, sessions and control socket put together, from start to clean stop.
//!
//! Order of a start: the signals, the sockets (nothing is made when an address is taken), the spool (its lock keeps a
//! second server out), then work.  Order of a stop: no new connections, those that are open drain, the engine makes its last checkpoint.  Tasks are spawned here
//! or by an owner that joins them.

mod both;
pub(crate) mod caching;
pub(crate) mod clock;
mod front;
pub(crate) mod hosts;
mod inherited;
mod kept;
pub(crate) mod logging;
pub(crate) mod login_program;
mod logins;
mod mail;
pub(crate) mod metrics;
mod offline;
pub(crate) mod peers;
mod running;
mod signals;
mod waiting_posts;

pub(crate) use self::running::certificate;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use newsreel_engine::Engine;
use newsreel_feed::{Peers, Pulls};
use newsreel_host::{Clock, Disk, RealDisk};
use newsreel_net::access::Counted;
use newsreel_net::{Drain, Limits, LineLimit, Listeners};
use newsreel_session::Metrics;
use newsreel_users::Users;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use self::both::WithCache;
use self::caching::{Caching, PartOf};
use self::logging::{Logging, PATIENCE};
use self::mail::Mailing;
use self::metrics::MetricsDoor;
use self::running::Server;
use self::signals::Signals;
use crate::access::{self, Access};
use crate::config::Config;
use crate::control::client::Client;
use crate::control::request::Request;
use crate::control::server::{Answering, ControlSocket};
use crate::pulling;

/// What the command line said, which stays in force when the file is read again.
pub(crate) type Overrides = Box<dyn Fn(&mut Config) + Send + Sync>;

/// Runs a server until it is told to stop.
pub(crate) fn run(config: Config, overrides: Overrides, clock: Arc<dyn Clock>) -> Result<()> {
    let logging = begin_logging(&config)?;
    let log = logging.out();
    let listen = config.listen.clone();
    let result = run_logged(config, overrides, clock, logging);
    if result.is_err() {
        inherited::refuse(&listen);
    }
    // Nobody is there any more to be told that it is not all written.
    let _ = log.flush(PATIENCE);
    result
}

/// Begins to log, where that goes to nobody who is served.
fn begin_logging(config: &Config) -> Result<Logging> {
    let mut logging = config.logging.clone();
    if inherited::are_lines_for_the_reader(&config.listen) {
        "off".clone_into(&mut logging.level);
    }
    Logging::start(&logging)
}

fn run_logged(
    config: Config,
    overrides: Overrides,
    clock: Arc<dyn Clock>,
    logging: Logging,
) -> Result<()> {
    let runtime = runtime(&config)?;
    let signals = {
        let _inside = runtime.enter();
        Signals::take().context("cannot watch for signals")?
    };
    let version = env!("CARGO_PKG_VERSION");
    let spool = config.server.spool.display().to_string();
    tracing::info!(target: "newsreel::server", version, %spool, "starting");
    match newsreel_host::process::raise_open_files() {
        Ok(open_files) => tracing::debug!(target: "newsreel::server", open_files, "limit"),
        Err(error) => tracing::warn!(target: "newsreel::server", %error, "few files may be open"),
    }
    if let Err(error) = newsreel_host::take_small_pages() {
        tracing::debug!(target: "newsreel::server", %error, "memory comes in huge pages");
    }
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let doors = {
        let _inside = runtime.enter();
        Doors::open(&config)
    };
    let doors = match (doors, Client::connect(&config.server.spool)) {
        (Ok(doors), _) => doors,
        // The same server once more: that is what is wrong, not the address.
        (Err(_), Ok(Some(mut client))) => bail!("{}", taken(&spool, &mut client)),
        (Err(error), _) => return Err(error),
    };
    let engine = match access::open_when_free(&config, &disk, &clock)? {
        Access::Offline(engine) => Arc::from(engine),
        Access::Live(mut client) => bail!("{}", taken(&spool, &mut client)),
    };
    tell_room(&engine, &spool);
    tell_path_identity(&engine, &config);
    runtime.block_on(begin_filters(&engine, &config))?;
    let peers = peers::open(&engine, &disk, &clock, &config)?;
    let spool = &config.server.spool;
    let pulls = pulling::open(&engine, &disk, &clock, spool, &config.pull)?;
    let mailing = Mailing::start(&config, &disk, &clock)?;
    engine.set_mail_drops(mailing.moderators(), mailing.notices());
    engine.do_what_is_due();
    let beside = Beside {
        overrides,
        logging,
        peers,
        pulls,
        peers_changed: Notify::new(),
        clock,
    };
    let serving = until_drained(&engine, &disk, config, doors, beside, signals);
    let result = runtime.block_on(serving);
    engine.set_filter(None);
    runtime.shutdown_timeout(Duration::from_secs(5));
    mailing.stop();
    let stopped = engine.shutdown();
    match &stopped {
        Ok(()) => tracing::info!(target: "newsreel::server", "stopped"),
        Err(error) => tracing::error!(target: "newsreel::server", %error, "stopped badly"),
    }
    result?;
    Ok(stopped?)
}

/// Filters are ready before the first article comes.
async fn begin_filters(engine: &Engine, config: &Config) -> Result<()> {
    if let Some(filter) = running::filters(config)? {
        filter.begun().await;
        engine.set_filter(Some(filter));
    }
    Ok(())
}

/// Who has the spool.
fn taken(spool: &str, client: &mut Client) -> String {
    let status = client
        .ask(&Request::Status, &mut |_| {})
        .unwrap_or_default();
    let server = match status["server"]["pid"].as_u64() {
        Some(pid) => format!("a server, process {pid}"),
        None => "a server".to_owned(),
    };
    format!("the spool {spool} is in use by {server}: stop it, or give another --spool")
}

/// Says before anybody is listened to that nothing could be taken: where a disk is too small it is seen at once, not by
/// the peers' articles that are put off.
fn tell_room(engine: &Engine, spool: &str) {
    let room = match engine.disk_room() {
        Ok(room) if room.free < room.needed() => room,
        Ok(_) => return,
        Err(error) => {
            tracing::warn!(target: "newsreel::server", %error, "the room of the spool's disk is not known");
            return;
        }
    };
    let said = |octets: u64| crate::output::octets(&octets.into());
    let free = said(room.free);
    let needed = said(room.needed());
    let log = said(room.log);
    let kept = said(room.kept);
    tracing::error!(target: "newsreel::server", %spool, %free, %needed, %log, %kept,
        "the disk has no room for log and index beside the buffers, so articles are put off until it has: free some, \
         put the spool on a larger disk, or begin anew with a smaller buffer.octets or log.segment_octets");
}

/// Says how the server calls itself where nobody chose that and the name is bare: another machine may well have the same.
fn tell_path_identity(engine: &Engine, config: &Config) {
    let name = engine.path_identity();
    if config.engine.path_identity.is_empty() && !name.contains('.') {
        tracing::warn!(target: "newsreel::server", name,
            "the machine's bare name stands in Path, and a server of the same name refuses what passed through here: \
             set engine.path_identity to a name that is this server's alone, such as news.example.org");
    }
}

/// After so many turns of tasks a thread looks at what has come.  A turn takes up to a tenth of a millisecond where somebody
/// sends much, and with the usual 61 of them a reader waited for milliseconds.
const EVENT_INTERVAL: u32 = 3;

fn runtime(config: &Config) -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if config.server.threads > 0 {
        builder.worker_threads(config.server.threads as usize);
    }
    builder
        .event_interval(EVENT_INTERVAL)
        .max_blocking_threads(config.server.waiting_threads_max as usize)
        .thread_name("session")
        .enable_all()
        .build()
        .context("cannot start the threads that serve connections")
}

/// The sockets, and what holds for all of them.
#[derive(Debug)]
struct Doors {
    listeners: Listeners,
    limits: Arc<Limits>,
    drain: Drain,
    metrics: MetricsDoor,
}

impl Doors {
    /// Binds the addresses; who connects waits until the server has started.
    fn open(config: &Config) -> Result<Self> {
        let drain = Drain::new();
        let limits = Limits::new(&config.listen);
        let listeners = match inherited::sockets(&config.listen)? {
            None => Listeners::bind(&config.listen, Arc::clone(&limits), drain.clone())?,
            Some(sockets) => {
                let listen = &config.listen;
                Listeners::inherited(listen, sockets, Arc::clone(&limits), drain.clone())?
            }
        };
        let metrics = MetricsDoor::bind(&config.server.metrics)?;
        Ok(Self {
            listeners,
            limits,
            drain,
            metrics,
        })
    }
}

/// What a server has beside its sockets, from before there are sessions.
struct Beside {
    overrides: Overrides,
    logging: Logging,
    peers: Arc<Peers>,
    pulls: Arc<Pulls>,
    /// Woken when the configuration may name other hosts.
    peers_changed: Notify,
    clock: Arc<dyn Clock>,
}

/// The file of networks where somebody has logged in.
const LOGINS: &str = "logins";

/// What holds for sessions at the start; where people log in is remembered in a directory that is the server's alone, if it has one.
fn settings(
    disk: &Arc<dyn Disk>,
    config: Config,
    metrics: &Arc<Metrics>,
    remembered: fn(&Config) -> Option<&PathBuf>,
) -> Result<running::Settings> {
    let tls = certificate(disk.as_ref(), &config)?;
    let users = Users::new(
        Arc::clone(disk),
        config.server.spool.join(newsreel_users::FILE),
    );
    let logins = logins::Builtin::shared(users);
    let counted = match remembered(&config) {
        Some(directory) => {
            let path = directory.join(LOGINS);
            Counted::remembering(logins, Arc::clone(disk), path)
        }
        None => Counted::new(Some(logins)),
    };
    Ok(running::Settings::new(config, metrics, counted, tls))
}

/// Notes for offline commands what this server runs with.
fn note_config(disk: &Arc<dyn Disk>, config: &Config) {
    if let Err(error) = access::note_config(disk.as_ref(), config) {
        let error = crate::output::chain(&error);
        tracing::warn!(target: "newsreel::server", %error,
            "offline commands will not know what this server runs with; give them --config");
    }
}

/// Serves whoever comes, with the groups of servers elsewhere beside those of this one, if there are any; how many connections were cut at
/// the end.
async fn served(
    listeners: Listeners,
    server: Arc<Server>,
    cached: Option<(Arc<Caching>, ControlSocket)>,
) -> usize {
    let own = Arc::clone(&server);
    let cut = match cached {
        None => {
            let session = move |stream, admission| front::session(&server, stream, admission);
            listeners.run(session).await
        }
        Some((cached, control)) => {
            let front = Arc::new(WithCache::new(server, &cached));
            let session = move |stream, admission| front::session(&front, stream, admission);
            let (serving, nothing_more) = (listeners.run(session), std::future::pending());
            cached.while_serving(control, serving, nothing_more).await
        }
    };
    own.settings.remember();
    cut
}

/// Says where it listens.
fn tell_listening(addresses: &[SocketAddr]) {
    for address in addresses {
        tracing::info!(target: "newsreel::server", %address, "listening");
    }
}

async fn until_drained(
    engine: &Arc<Engine>,
    disk: &Arc<dyn Disk>,
    config: Config,
    doors: Doors,
    beside: Beside,
    signals: Signals,
) -> Result<()> {
    note_config(disk, &config);
    let Doors {
        listeners,
        limits,
        drain,
        metrics: figures,
    } = doors;
    let control = ControlSocket::bind(disk, &config.server.spool)
        .context("cannot make the control socket in the spool")?;
    let connections_max = config.server.control_connections_max as usize;
    let (peers, pulls) = (Arc::clone(&beside.peers), Arc::clone(&beside.pulls));
    let metrics = Arc::new(Metrics::default());
    let part = PartOf::new(&beside, (&limits, &drain), &metrics, listeners.addresses());
    let cached = Box::pin(caching::open_beside(&config, disk, part)).await?;
    let server = Arc::new(Server {
        engine: Arc::clone(engine),
        limits,
        drain: drain.clone(),
        addresses: listeners.addresses(),
        settings: settings(disk, config, &metrics, |config| Some(&config.server.spool))?,
        metrics,
        strangers: LineLimit::default(),
        caching: cached.as_ref().map(|(caching, _)| Arc::clone(caching)),
        beside,
    });
    if let Some(caching) = &server.caching {
        caching.begins(disk.as_ref())?;
    }
    let answering = Answering {
        engine: Arc::clone(engine),
        server: server.clone(),
    };
    let (first, looked) = tokio::sync::oneshot::channel();
    #[expect(
        clippy::disallowed_methods,
        reason = "awaited or ended below, at the end of a drain"
    )]
    let (figures, control, sending, pulling, looking, signals) = (
        tokio::spawn(figures.run(Arc::clone(&server), drain.watch())),
        tokio::spawn(control.run(answering, connections_max, drain.watch())),
        tokio::spawn(peers.run(drain.watch())),
        tokio::spawn(pulls.run(drain.watch())),
        tokio::spawn(Arc::clone(&server).look_up_hosts(first, drain.watch())),
        tokio::spawn(signals.obey(Arc::clone(&server))),
    );
    let _ = tokio::time::timeout(hosts::FIRST, looked).await;
    tell_listening(&server.addresses);
    let taking = Arc::clone(engine);
    let taking = tokio::task::spawn_blocking(move || taking.take_memory());
    let cut = Box::pin(served(listeners, server, cached)).await;
    tracing::info!(target: "newsreel::server", cut, "connections ended");
    signals.abort();
    ended([
        (figures, "serves figures"),
        (control, "serves the control socket"),
        (sending, "sends"),
        (pulling, "fetches"),
        (taking, "takes memory"),
        (looking, "looks up hosts"),
    ])
    .await
}

/// Waits for the parts of the server that end by themselves.
async fn ended<const TASKS: usize>(tasks: [(JoinHandle<()>, &str); TASKS]) -> Result<()> {
    for (task, does) in tasks {
        task.await
            .with_context(|| format!("the task that {does} failed"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use newsreel_net::Admission;
    use tokio::net::TcpStream;

    use super::*;

    /// 5,000 idle readers must cost less than 150 MB in all.
    #[test]
    fn the_task_of_a_connection_is_small() {
        fn task_octets<F>(_: impl Fn(&'static Arc<Server>, TcpStream, Admission) -> F) -> usize {
            size_of::<F>()
        }
        let octets = task_octets(front::session::<Server>);
        assert!(octets < 3584, "a connection's task has {octets} octets");
    }

    #[test]
    fn no_more_threads_wait_than_the_configuration_says() {
        let mut config = Config::default();
        config.server.waiting_threads_max = 2;
        let runtime = runtime(&config).unwrap();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let works: Vec<_> = (0..8)
            .map(|_| {
                let (now, most) = (Arc::clone(&now), Arc::clone(&most));
                runtime.spawn_blocking(move || {
                    let here = now.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(here, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(20));
                    now.fetch_sub(1, Ordering::SeqCst);
                })
            })
            .collect();
        for work in works {
            runtime.block_on(work).unwrap();
        }
        assert!((1..=2).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    }
}
