//! Opening what is kept, and the servers elsewhere behind it, by the configuration.
//!
//! Nothing elsewhere need be there for it.  Behind a server that was killed nobody elsewhere is connected to at once: its connections
//! still count there.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use newsreel_cache::keep::Keep;
use newsreel_cache::queue::PostQueue;
use newsreel_cache::{
    AFTER_A_KILL, AccessLog, CServer, Censor, PASSED_ON_OCTETS_MAX, RServer, RemoteSettings, Route,
    Routes, Upstream, UpstreamConfig,
};
use newsreel_host::{Clock, Disk, random_bytes};
use newsreel_net::client::{Account, Pool};
use tokio::time::Instant;

use super::renumbering::{Starting, take_routes};
use crate::config::Config;
use crate::server::offline;

/// The file in the cache's directory that is there while a server runs: behind one that was killed it is left.
pub(super) const RUNNING: &str = "running";

/// What is called so in message-ids where the machine has no name.
const NO_NAME: &str = "localhost";

/// What is kept, in front of the servers elsewhere, and the pools of connections to these.
pub(super) async fn service_of(
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
    let not_before = after_a_kill(disk.as_ref(), &folder.join(RUNNING))?;
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

/// When a server may connect to those elsewhere, where that is not at once: connections of one that was killed count there for a moment.
fn after_a_kill(disk: &dyn Disk, running: &Path) -> Result<Option<Instant>> {
    if disk.exists(running)? {
        let seconds = AFTER_A_KILL.as_secs();
        tracing::info!(target: "newsreel::server", seconds, "the last server here was killed: those elsewhere are asked after a moment");
        return Ok(Some(Instant::now() + AFTER_A_KILL));
    }
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
    let kept = usize::try_from(config.articles.octets_max).unwrap_or(usize::MAX);
    let settings = RemoteSettings {
        article_octets_max: kept,
        passed_on_octets_max: kept.max(PASSED_ON_OCTETS_MAX),
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
