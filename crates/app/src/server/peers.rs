//! The servers that articles are sent to, as the server's own parts and the control socket see them.
//!
//! Everything is done by `newsreel_feed`; here it is put together and said in JSON.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use newsreel_engine::Engine;
use newsreel_feed::{
    Backlog, Batching, Explained, Fate, FeedReport, LOOKS_MAX, NetDial, Peers, Pulling, Pulls,
};
use newsreel_host::{Clock, Disk, RealClock, RealDisk};
use newsreel_service::{Neighbour, Neighbours};
use newsreel_wire::{MessageId, UnixTime};
use serde_json::{Value, json};

use crate::config::Config;
use crate::control::Progress;
use crate::control::request::PeerAction;
use crate::{batches, pulling};

/// The peers of a configuration; where `begins`, new ones begin now, and from now on the log is kept for all.
fn found(
    engine: &Arc<Engine>,
    disk: &Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    config: &Config,
    begins: bool,
) -> io::Result<Peers> {
    let open = match begins {
        true => Peers::open,
        false => Peers::found,
    };
    let peers = open(
        Arc::clone(engine),
        Arc::clone(disk),
        &config.server.spool,
        clock,
        Arc::new(NetDial::new(Arc::clone(disk))),
        &config.peer,
    )?;
    peers.keep_removed_for(config.feeds.removed_s);
    Ok(peers)
}

/// The peers of a configuration, for a server.
pub(super) fn open(
    engine: &Arc<Engine>,
    disk: &Arc<dyn Disk>,
    clock: &Arc<dyn Clock>,
    config: &Config,
) -> io::Result<Arc<Peers>> {
    found(engine, disk, Arc::clone(clock), config, true).map(Arc::new)
}

/// The peers of a spool on which nobody else is at work, to change something or to look only.
pub(crate) fn alone(engine: &Arc<Engine>, config: &Config, changes: bool) -> io::Result<Peers> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    found(engine, &disk, Arc::new(RealClock::new()), config, changes)
}

/// What comes from now on to a spool on which nobody else is at work goes out by its feeds when the server runs.
///
/// # Errors
/// When the file with the places of its feeds cannot be used.
pub(crate) fn feeds_begin(engine: &Arc<Engine>, config: &Config) -> io::Result<()> {
    alone(engine, config, true).map(drop)
}

/// Fetches articles now; waits for the other server.
pub(super) fn pull(
    pulls: &Pulls,
    wanted: &Pulling,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let runtime = tokio::runtime::Handle::current();
    runtime.block_on(pulling::pull(pulls, wanted, progress))
}

/// Writes batches; waits for the disk.
pub(super) fn batch(
    peers: &Peers,
    wanted: &Batching,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let runtime = tokio::runtime::Handle::current();
    runtime.block_on(batches::outgoing::write(peers, wanted, progress))
}

/// Asks or tells them something.
pub(crate) fn answer(
    peers: &Peers,
    neighbours: &Neighbours,
    action: PeerAction,
    name: &str,
) -> Result<Value, String> {
    let known = || {
        let (feeds, all) = (peers.reports(), neighbours.all());
        let names = feeds.iter().map(|it| it.peer.as_str());
        let names: BTreeSet<&str> = names.chain(all.iter().map(|it| it.name())).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let is_it = |it: &FeedReport| it.peer == name || format!("{}/{}", it.peer, it.feed) == name;
        match names.is_empty() {
            _ if feeds.iter().any(is_it) => format!(
                "{name:?} was taken out of the configuration: put it back, or give up what waits by `newsreel peer drop-backlog {name}`"
            ),
            true => "there is no [[peer]] in the configuration".to_owned(),
            false => format!("there is no peer {name:?}; there are {}", names.join(", ")),
        }
    };
    let done = |feeds: usize| match feeds {
        0 => Err(known()),
        feeds => Ok(json!({"name": name, "feeds": feeds})),
    };
    match action {
        PeerAction::List => {
            let is_it = |it: &FeedReport| {
                name.is_empty() || it.peer == name || format!("{}/{}", it.peer, it.feed) == name
            };
            let those = peers.with_backlogs(is_it, LOOKS_MAX);
            let those: Vec<Value> = those.iter().map(|(it, waits)| report(it, waits)).collect();
            let all = neighbours.all();
            let from = all.iter().filter(|it| name.is_empty() || it.name() == name);
            let received: Vec<Value> = from.map(|it| received(it)).collect();
            if those.is_empty() && received.is_empty() && !name.is_empty() {
                return Err(known());
            }
            let (reads, sent) = peers.reads_and_sent();
            let is_changing = peers.is_changing();
            let removed_s = peers.keeps_removed_s();
            Ok(
                json!({"feeds": those, "received": received, "store_reads": reads, "articles_sent": sent, "changing": is_changing, "removed_s": removed_s}),
            )
        }
        PeerAction::Explain => explain(peers, name),
        PeerAction::Pause => done(peers.pause(name, true)),
        PeerAction::Resume => done(peers.pause(name, false)),
        PeerAction::Flush => done(peers.flush(name)),
        PeerAction::DropBacklog | PeerAction::TryDropBacklog => {
            let dry_run = action == PeerAction::TryDropBacklog;
            let (feeds, waits, articles) = peers.drop_backlog(name, dry_run);
            let mut dropped = done(feeds)?;
            if dry_run {
                dropped["dry_run"] = true.into();
            }
            dropped["behind"] = waits.behind.into();
            dropped["behind_is_more"] = waits.is_more.into();
            dropped["in_memory"] = articles.into();
            Ok(dropped)
        }
    }
}

fn report(it: &FeedReport, waits: &Backlog) -> Value {
    let tally = it.tally;
    json!({
        "peer": it.peer,
        "feed": it.feed,
        "address": it.address,
        "paused": it.is_paused,
        "waiting": it.open,
        "quota_s": it.quota_s,
        "kept_s": it.kept_s,
        "behind": waits.behind,
        "behind_is_more": waits.is_more,
        "oldest": waits.oldest.map(|time| time.0),
        "accepted": tally.accepted,
        "refused": tally.refused,
        "rejected": tally.rejected,
        "deferred": tally.deferred,
        "gone": tally.gone,
        "gone_ids": it.gone,
        "missed_ids": it.missed,
        "unreadable": it.unreadable,
        "unreadable_ids": it.unreadable_ids,
        "last_rejection": it.rejection.as_ref().map(|(at, said)| json!({"at": at.0, "said": said})),
        "missed": tally.missed,
        "octets": tally.octets,
        "connections": it.links.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// What came from a peer.
fn received(from: &Neighbour) -> Value {
    let counts = from.received();
    let by_reason = |reasons: &[(&'static str, u64)]| {
        let pairs = reasons
            .iter()
            .map(|(why, count)| ((*why).to_owned(), json!(count)));
        Value::Object(pairs.collect())
    };
    json!({
        "peer": from.name(),
        "connections": counts.connections,
        "accepted": counts.accepted,
        "octets": counts.octets,
        "refused": counts.refused,
        "duplicate": counts.duplicate,
        "failed": counts.failed,
        "rejected": by_reason(&counts.rejected),
        "deferred": by_reason(&counts.deferred),
        "mismatched": counts.mismatched,
    })
}

/// What each feed says of an article; waits for the disk.
fn explain(peers: &Peers, id: &str) -> Result<Value, String> {
    let parsed = MessageId::parse(id.as_bytes());
    let parsed = parsed.map_err(|why| format!("{id:?} is no message-id: {why}"))?;
    let runtime = tokio::runtime::Handle::current();
    let all = runtime.block_on(peers.explain(parsed));
    let all = all.map_err(|error| error.to_string())?;
    let all = all.ok_or_else(|| format!("no article {id} is here"))?;
    let feeds: Vec<Value> = all.iter().map(explained).collect();
    Ok(json!({"message_id": id, "feeds": feeds}))
}

fn explained(it: &Explained) -> Value {
    let reasons: Vec<String> = it.refusals.iter().map(ToString::to_string).collect();
    let why = (!reasons.is_empty()).then(|| reasons.join("; "));
    json!({
        "peer": it.peer, "feed": it.feed, "goes": why.is_none(), "why": why, "reasons": reasons, "held": it.held,
        "fate": it.fate.as_ref().map(fate),
    })
}

/// What became of an article: a word, when that was, and why, as far as it is known.
fn fate(fate: &Fate) -> Value {
    let settled = |what: &str, at: &UnixTime| json!({"what": what, "at": at.0});
    match fate {
        Fate::Accepted(at) => settled("accepted", at),
        Fate::Written(at, file) => json!({"what": "written", "at": at.0, "file": file}),
        Fate::Refused(at) => settled("refused", at),
        Fate::Rejected(at, said) => json!({"what": "rejected", "at": at.0, "said": said}),
        Fate::Gone(at) => settled("gone", at),
        Fate::Missed(at) => settled("missed", at),
        Fate::Waits => json!({"what": "waits"}),
        Fate::UnderWay => json!({"what": "under-way"}),
        Fate::PutOff { times, seconds } => {
            json!({"what": "put-off", "times": times, "again_s": seconds})
        }
        Fate::Open => json!({"what": "open"}),
        Fate::InLog => json!({"what": "in-log"}),
        Fate::Passed => json!({"what": "passed"}),
        Fate::TooFarBack => json!({"what": "too-far-back"}),
    }
}
