//! What a running server can be asked: facts about itself, to read its configuration again, to stop.
//!
//! Reading again either takes a whole sound configuration over or changes nothing.  What only a start can change is
//! named, never silently ignored.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::Result;
use newsreel_engine::{Engine, LocalService};
use newsreel_feed::{Batching, Hosts, Pulling};
use newsreel_filter::Filters;
use newsreel_host::{Disk, RealDisk, read_whole};
use newsreel_net::access::{Counted, Gate};
use newsreel_net::{Drain, Limits, LineLimit, Tls, TlsConfig, TlsFile, TlsFiles};
use newsreel_service::ArticleFilter;
use newsreel_session::{Lists, Metrics, MetricsSnapshot, Shared};
use serde_json::{Value, json};

use super::Beside;
use super::caching::Caching;
use super::front::Front;
use crate::access::note_values;
use crate::config::{self, Config};
use crate::control::Progress;
use crate::control::answers::Running;
use crate::control::request::PeerAction;

/// The parts of a server that others ask.
pub(crate) struct Server {
    pub(super) engine: Arc<Engine>,
    pub(super) limits: Arc<Limits>,
    pub(super) drain: Drain,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) settings: Settings,
    /// Lines about connections that are refused.
    pub(super) strangers: LineLimit,
    /// Groups of servers elsewhere are served, too, from a cache.
    pub(super) caching: Option<Arc<Caching>>,
    pub(super) beside: Beside,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

/// The configuration in force.
#[derive(Debug)]
pub(super) struct Settings(RwLock<InForce>);

#[derive(Debug)]
struct InForce {
    started: Config,
    config: Config,
    session: Arc<Shared>,
    gate: Arc<Gate>,
    counted: Arc<Counted>,
    hosts: Hosts,
}

impl Settings {
    pub(super) fn new(
        config: Config,
        metrics: &Arc<Metrics>,
        counted: Arc<Counted>,
        tls: Option<Arc<Tls>>,
    ) -> Self {
        know_neighbours(&config, metrics);
        let session = session_of(&config, &config, metrics);
        let hosts = Hosts::default();
        Self(RwLock::new(InForce {
            gate: gate_of(&config, &hosts, &counted, tls),
            counted,
            hosts,
            started: config.clone(),
            config,
            session,
        }))
    }

    /// The way in.
    pub(super) fn gate(&self) -> Arc<Gate> {
        let in_force = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&in_force.gate)
    }

    /// Writes where people have logged in, for the next start.
    pub(super) fn remember(&self) {
        let in_force = self.0.read().unwrap_or_else(PoisonError::into_inner);
        in_force.counted.remember();
    }

    /// What new sessions begin with.
    pub(super) fn session(&self) -> Arc<Shared> {
        Arc::clone(
            &self
                .0
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .session,
        )
    }

    fn config(&self) -> Config {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .config
            .clone()
    }

    fn started(&self) -> Config {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .started
            .clone()
    }

    /// The server runs with this buffer of `config` now, as if it had been started so.
    fn has_buffer(&self, name: &str, config: &Config) {
        let mut in_force = self.0.write().unwrap_or_else(PoisonError::into_inner);
        in_force.started.store.take_in(name, &config.store);
    }

    /// The server runs without this buffer now.
    fn has_no(&self, name: &str) {
        let mut in_force = self.0.write().unwrap_or_else(PoisonError::into_inner);
        in_force.started.store.take_out(name);
    }

    /// One of its buffers has this size now.
    fn resized(&self, name: &str, octets: u64) {
        let mut in_force = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut buffers = in_force.started.store.buffers.iter_mut();
        if let Some(buffer) = buffers.find(|buffer| buffer.name == name) {
            buffer.octets = octets;
        }
    }

    fn set(&self, config: Config, session: Arc<Shared>, tls: Option<Arc<Tls>>) {
        let mut in_force = self.0.write().unwrap_or_else(PoisonError::into_inner);
        in_force.gate = gate_of(&config, &in_force.hosts, &in_force.counted, tls);
        in_force.config = config;
        in_force.session = session;
    }

    /// The names of hosts that peers are known by.
    pub(super) fn host_names(&self) -> BTreeSet<String> {
        let in_force = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Hosts::names(&in_force.config.peer)
    }

    /// The resolver answered; whether that is news, which new connections meet.
    pub(super) fn found(&self, name: &str, addresses: &[IpAddr]) -> bool {
        let mut in_force = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_news = in_force.hosts.found(name, addresses.iter().copied());
        if is_news {
            let tls = in_force.gate.tls();
            in_force.gate = gate_of(&in_force.config, &in_force.hosts, &in_force.counted, tls);
        }
        is_news
    }
}

/// The largest file of certificates or of a key that is read.
const PEM_OCTETS_MAX: usize = 1 << 20;

/// The certificate and its key, as their files are now; none where none is configured.
pub(crate) fn certificate(disk: &dyn Disk, config: &Config) -> Result<Option<Arc<Tls>>> {
    if config.tls.certificate.as_os_str().is_empty() {
        return Ok(None);
    }
    let TlsConfig {
        certificate,
        key,
        more,
        clients,
        handshake_s,
    } = &config.tls;
    let read = |path: &PathBuf| read_whole(disk, path, PEM_OCTETS_MAX);
    let (chain, own_key) = (read(certificate)?, read(key)?);
    let others = more.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let authorities = match clients.as_os_str().is_empty() {
        true => None,
        false => Some(read(clients)?),
    };
    let files = TlsFiles {
        certificate: &chain,
        key: &own_key,
        more: &others,
        clients: authorities.as_deref(),
    };
    let tls = Tls::from_files(&files, *handshake_s).map_err(|(file, why)| {
        let path = match file {
            TlsFile::Own => None,
            TlsFile::More(at) => more.get(at),
            TlsFile::Clients => Some(clients),
        };
        match path {
            Some(path) => anyhow::anyhow!("TLS cannot be spoken with {}: {why}", path.display()),
            None => {
                let (certificate, key) = (certificate.display(), key.display());
                anyhow::anyhow!("TLS cannot be spoken with {certificate} and {key}: {why}")
            }
        }
    })?;
    Ok(Some(Arc::new(tls)))
}

/// What judges articles, if a configuration names anything: its programs begin to run.
pub(super) fn filters(config: &Config) -> Result<Option<Arc<dyn ArticleFilter>>> {
    if config.filter.is_empty() {
        return Ok(None);
    }
    let filters = Filters::start(&config.filter).map_err(anyhow::Error::msg)?;
    Ok(Some(Arc::new(filters)))
}

/// Networks that are refused since their logins failed; what failed in one of them is forgotten first.
pub(super) fn bans(gate: &Gate, lift: Option<&str>) -> Result<Value, String> {
    let lifted = lift.map(|network| gate.lift(network)).transpose()?;
    if let (Some(network), Some(true)) = (lift, lifted) {
        tracing::info!(target: "newsreel::server", network, "failed logins are forgotten");
    }
    let row = |ban: newsreel_net::access::Ban| {
        let left_s = ban.left.as_secs();
        json!({"network": ban.network.to_string(), "failures": ban.failures, "left_s": left_s})
    };
    let rows: Vec<Value> = gate.bans().into_iter().map(row).collect();
    Ok(json!({"bans": rows, "lifted": lifted}))
}

/// The way in as a configuration has it; what is counted goes on.
fn gate_of(
    config: &Config,
    hosts: &Hosts,
    counted: &Arc<Counted>,
    tls: Option<Arc<Tls>>,
) -> Arc<Gate> {
    Gate::new(
        config.access_rules(hosts),
        config.login.clone(),
        Arc::clone(counted),
        tls,
    )
}

/// Servers that connections can belong to, by the configuration in force; what was counted of them goes on.
fn know_neighbours(config: &Config, metrics: &Metrics) {
    let known = config.peer.iter().filter(|peer| peer.is_known());
    // What was checked when it was read.
    metrics
        .neighbours()
        .set(known.filter_map(|peer| peer.neighbour().ok()));
}

/// What sessions share; whose group is whose cannot change before a start.
fn session_of(config: &Config, started: &Config, metrics: &Arc<Metrics>) -> Arc<Shared> {
    let lists = Lists::new(&config.lists, &started.moderation.moderators);
    Shared::new(config.session.clone(), lists, Arc::clone(metrics))
}

/// Paths whose values differ between two configurations.
pub(super) fn differences(old: &Config, new: &Config) -> Result<Vec<String>> {
    let (old, new) = (old.values()?, new.values()?);
    let mut paths = Vec::new();
    for (section, value) in &new {
        let before = old.get(section);
        match (value, before) {
            (toml::Value::Table(keys), Some(toml::Value::Table(before))) => {
                let changed = keys
                    .iter()
                    .filter(|(key, value)| before.get(*key) != Some(value));
                paths.extend(changed.map(|(key, _)| format!("{section}.{key}")));
                let gone = before.keys().filter(|key| !keys.contains_key(*key));
                paths.extend(gone.map(|key| format!("{section}.{key}")));
            }
            _ if before == Some(value) => {}
            _ => paths.push(section.clone()),
        }
    }
    Ok(paths)
}

/// Gives what stands at a path of [`differences`] the value that it has in another configuration.
fn take_in(values: &mut toml::Table, path: &str, new: &toml::Table) {
    let (mut own, mut new, mut key) = (values, new, path);
    if let Some((section, inner)) = path.split_once('.') {
        let inside = own.get_mut(section).and_then(toml::Value::as_table_mut);
        let (Some(mine), Some(other)) = (inside, new.get(section).and_then(toml::Value::as_table))
        else {
            return;
        };
        (own, new, key) = (mine, other, inner);
    }
    match new.get(key) {
        Some(value) => own.insert(key.to_owned(), value.clone()),
        None => own.remove(key),
    };
}

/// Lists of which SIGHUP takes over what it can.
const TRIED: [&str; 2] = ["buffer", "set"];

/// A key that changed; one that stands in no file with the one that does.
fn said(key: &str, new: &Config, old: &Config) -> String {
    match new.derived.written(key).or(old.derived.written(key)) {
        Some(written) => format!("{key} (follows from {written})"),
        None => key.to_owned(),
    }
}

impl Server {
    /// Takes over what of a sound configuration can change now.
    fn take_over(&self, config: Config) -> Result<Value> {
        let now = self.settings.config();
        let wanted = config.engine_config();
        let is_live = |path: &str| self.is_live(path, &config);
        let mut changed = differences(&now, &config)?;
        // Whether buffers and sets can be changed now shows only when it is tried.
        let tried = changed.iter().filter(|path| TRIED.contains(&path.as_str()));
        let tried: Vec<String> = tried.cloned().collect();
        changed.retain(|path| is_live(path));
        let mut resized = self.keep_sizes(&config);
        let started = self.settings.started();
        resized.extend(config::resized(&started, &config));
        let tls = certificate(&RealDisk, &started)?;
        self.engine.reload(&wanted)?;
        if self.settings.config().filter != config.filter {
            self.engine.set_filter(filters(&config)?);
        }
        self.beside.logging.set(&config.logging)?;
        self.limits.set(&config.listen);
        self.beside.peers.keep_removed_for(config.feeds.removed_s);
        self.beside.peers.reload(&config.peer);
        self.beside.pulls.reload(&config.pull);
        if let Some(caching) = &self.caching {
            caching.service.set_policy(config.cache.policy);
        }
        know_neighbours(&config, &self.metrics);
        let session = session_of(&config, &started, &self.metrics);
        self.settings.set(config.clone(), session, tls);
        self.beside.peers_changed.notify_one();
        let (added, not_added) = self.add_buffers(&config);
        let (removed, not_removed) = self.remove_buffers(&config);
        self.note();
        let started = self.settings.started();
        let mut restart = differences(&started, &config)?;
        restart.retain(|path| !is_live(path));
        changed.extend(tried.into_iter().filter(|path| !restart.contains(path)));
        let changed: Vec<String> = changed.iter().map(|key| said(key, &config, &now)).collect();
        let restart: Vec<String> = restart
            .iter()
            .map(|key| said(key, &config, &started))
            .collect();
        Ok(json!({
            "changed": changed, "needs_restart": restart, "cannot_change": resized, "added": added,
            "not_added": not_added, "removed": removed, "not_removed": not_removed,
        }))
    }

    /// Has buffers stay as large as they are that were to become smaller, where the configuration says their size again: as a start does.
    /// Why not, of the others.
    fn keep_sizes(&self, config: &Config) -> Vec<String> {
        let narrowing = self.engine.narrowing_buffers().into_iter();
        let is_kept = |(name, octets): &(String, u64)| {
            let mut buffers = config.store.buffers.iter();
            buffers.any(|it| it.name == *name && it.octets == *octets)
        };
        let kept = narrowing.filter(is_kept);
        let failed = kept.filter_map(|kept| self.give_sizes(&[kept], false, &mut |_, _| {}).err());
        failed.map(|error| crate::output::chain(&error)).collect()
    }

    /// Makes the buffers that are new and has them take articles: which, and why not others.
    fn add_buffers(&self, config: &Config) -> (Vec<String>, Vec<String>) {
        let (wanted, mut added, mut not_added) = (config.engine_config(), Vec::new(), Vec::new());
        for buffer in self.engine.missing_buffers(&wanted) {
            tracing::info!(target: "newsreel::server", buffer, "a buffer is made");
            match self.engine.add_buffer(&wanted, &buffer, &mut |_, _, _| {}) {
                Ok(()) => {
                    tracing::info!(target: "newsreel::server", buffer, "it takes articles");
                    self.settings.has_buffer(&buffer, config);
                    added.push(buffer);
                }
                Err(error) => not_added.push(crate::output::chain(&error.into())),
            }
        }
        (added, not_added)
    }

    /// Does without the buffers that the configuration does not have any more: which, and why not others.
    fn remove_buffers(&self, config: &Config) -> (Vec<String>, Vec<String>) {
        let is_wanted = |name: &str| config.store.buffers.iter().any(|it| it.name == name);
        let (mut removed, mut not_removed) = (Vec::new(), Vec::new());
        for buffer in self.settings.started().store.buffers {
            let name = buffer.name;
            if is_wanted(&name) {
                continue;
            }
            match self.engine.remove_buffer(&name) {
                Ok(()) => {
                    tracing::info!(target: "newsreel::server", buffer = name, "it is let go; its file may be removed");
                    self.settings.has_no(&name);
                    removed.push(name);
                }
                Err(error) => not_removed.push(crate::output::chain(&error.into())),
            }
        }
        (removed, not_removed)
    }

    /// Notes for offline commands what it runs with now: what it took over, and of the rest what it was started with.
    fn note(&self) {
        let (started, config) = (self.settings.started(), self.settings.config());
        let values = started.values().and_then(|mut values| {
            let new = config.values()?;
            for path in differences(&started, &config)? {
                if self.is_live(&path, &config) {
                    take_in(&mut values, &path, &new);
                }
            }
            Ok(values)
        });
        let noted =
            values.and_then(|values| note_values(&RealDisk, &started.server.spool, &values));
        if let Err(error) = noted {
            let error = crate::output::chain(&error);
            tracing::warn!(target: "newsreel::server", %error,
                "offline commands will not know what this server runs with; give them --config");
        }
    }

    /// Whether a value of a configuration can change now.
    fn is_live(&self, path: &str, config: &Config) -> bool {
        config::is_live(path)
            && (path != "rule" || self.engine.has_sets_of(&config.engine_config()))
    }

    /// Gives buffers other sizes, one after the other, if all of them can have them.
    fn give_sizes(
        &self,
        buffers: &[(String, u64)],
        dry_run: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let mut wanted = self.settings.started().engine_config();
        for buffer in &mut wanted.store.buffers {
            let size = buffers.iter().find(|(name, _)| *name == buffer.name);
            buffer.octets = size.map_or(buffer.octets, |(_, octets)| *octets);
        }
        let names: Vec<String> = buffers.iter().map(|(name, _)| name.clone()).collect();
        let refusals = self.engine.try_resize_buffers(&wanted, &names);
        if let Some((_, why)) = refusals.into_iter().next() {
            return Err(why.into());
        }
        for (name, octets) in buffers.iter().filter(|_| !dry_run) {
            let mut told = |_: &str, done, total| progress(done, total);
            self.engine.resize_buffer(&wanted, name, &mut told)?;
            self.settings.resized(name, *octets);
            self.note();
            tracing::info!(target: "newsreel::server", buffer = name, octets, "a buffer has this size now, or when it has come around");
        }
        Ok(())
    }

    fn read_again(&self) -> Result<Value> {
        let Some(file) = self.settings.config().file else {
            return Ok(json!({"changed": [], "needs_restart": [], "file": null}));
        };
        let mut config = config::load_again(&file)?;
        (self.beside.overrides)(&mut config);
        let mut report = self.take_over(config)?;
        report["file"] = json!(file);
        Ok(report)
    }
}

impl Front for Server {
    type Service = LocalService;

    fn service(&self) -> Arc<LocalService> {
        self.engine.service()
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

impl Running for Server {
    fn facts(&self) -> Value {
        json!({
            "pid": newsreel_host::process::own_pid(),
            "config": self.settings.config().file,
            "listening": self.addresses,
            "connections": connections(&self.limits),
            "sessions": sessions(&self.metrics.snapshot()),
            "log_lines_lost": self.beside.logging.lines_lost(),
            "pulls": self.beside.pulls.reports(),
        })
    }

    fn reload(&self) -> Result<Value, String> {
        match self.read_again() {
            Ok(report) if report["file"].is_null() => {
                tracing::info!(target: "newsreel::server",
                    "there is no configuration file to read again; nothing has changed");
                Ok(report)
            }
            Ok(report) => {
                let (changed, restart) = (&report["changed"], &report["needs_restart"]);
                if restart.as_array().is_some_and(|keys| !keys.is_empty()) {
                    tracing::warn!(target: "newsreel::server", keys = %restart,
                        "these have changed in the file, and are in force after a restart only");
                }
                for why in report["cannot_change"].as_array().into_iter().flatten() {
                    let why = crate::output::cell(why);
                    tracing::error!(target: "newsreel::server", %why, "the next start will be refused");
                }
                for why in report["not_added"].as_array().into_iter().flatten() {
                    let why = crate::output::cell(why);
                    tracing::error!(target: "newsreel::server", %why, "a buffer cannot be added");
                }
                for why in report["not_removed"].as_array().into_iter().flatten() {
                    let why = crate::output::cell(why);
                    tracing::error!(target: "newsreel::server", %why, "a buffer cannot be let go; the next start will be refused");
                }
                tracing::info!(target: "newsreel::server", %changed, needs_restart = %restart,
                    "configuration read again");
                Ok(report)
            }
            Err(error) => {
                let error = crate::output::chain(&error);
                tracing::error!(target: "newsreel::server", error = %error.replace('\n', "; "),
                    "the configuration cannot be used; the server goes on with the old one");
                Err(error)
            }
        }
    }

    fn peer(&self, action: PeerAction, name: &str) -> Result<Value, String> {
        let (peers, neighbours) = (&self.beside.peers, self.metrics.neighbours());
        let mut answer = super::peers::answer(peers, neighbours, action, name)?;
        if action == PeerAction::List && name.is_empty() {
            answer["pulls"] = json!(self.beside.pulls.reports());
        }
        Ok(answer)
    }

    fn resize(
        &self,
        buffers: &[(String, u64)],
        dry_run: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Value, String> {
        let given = self.give_sizes(buffers, dry_run, progress);
        given.map_err(|error| crate::output::chain(&error))?;
        Ok(json!({"buffers": buffers, "dry_run": dry_run}))
    }

    fn batch(
        &self,
        wanted: &Batching,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Value, String> {
        super::peers::batch(&self.beside.peers, wanted, progress)
    }

    fn pull(
        &self,
        wanted: &Pulling,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Value, String> {
        super::peers::pull(&self.beside.pulls, wanted, progress)
    }

    fn bans(&self, lift: Option<&str>) -> Result<Value, String> {
        bans(&self.settings.gate(), lift)
    }

    fn pulls(&self) -> Value {
        let pulls = &self.beside.pulls;
        json!({"pulls": pulls.reports(), "changing": pulls.is_changing()})
    }

    fn stop(&self) {
        tracing::info!(target: "newsreel::server", "stopping");
        self.drain.start();
    }
}

/// The connections of readers and peers.
pub(super) fn connections(limits: &Limits) -> Value {
    let limits = limits.snapshot();
    json!({
        "open": limits.open,
        "admitted": limits.admitted,
        "refused": limits.refused_total + limits.refused_address + limits.refused_rate,
        "accept_errors": limits.accept_errors,
    })
}

/// What sessions counted; what never occurred is left out.
pub(super) fn sessions(seen: &MetricsSnapshot) -> Value {
    fn by_name<N: ToString>(counts: &[(N, u64)]) -> Value {
        let counts = counts.iter().filter(|(_, count)| *count > 0);
        let named = counts.map(|(name, count)| (name.to_string(), json!(count)));
        Value::Object(named.collect())
    }
    json!({
        "commands": by_name(&seen.commands),
        "replies": by_name(&seen.replies),
        "articles_refused": by_name(&seen.rejected),
        "articles_put_off": by_name(&seen.deferred),
        "ended": by_name(&seen.ended),
        "octets_in": seen.octets_in,
        "octets_out": seen.octets_out,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_told_apart_from_what_needs_a_restart() {
        let old = Config::default();
        let mut new = old.clone();
        new.listen.connections_max += 1;
        new.listen.backlog += 1;
        new.session.greeting.push('!');
        let found = differences(&old, &new).unwrap();
        assert_eq!(
            found,
            [
                "listen.backlog",
                "listen.connections_max",
                "session.greeting"
            ]
        );
        let live: Vec<bool> = found.iter().map(|path| config::is_live(path)).collect();
        assert_eq!(live, [false, true, true]);
        assert!(differences(&old, &old).unwrap().is_empty());
    }
}
