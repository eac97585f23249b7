//! What is done for each request of the table, on a running server or offline.
//!
//! Invariant: an answer is JSON, and an error is for the person who asked; nothing here prints.

use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use newsreel_engine::{ArticleRef, Attaching, Engine, GroupChange, Reason, Relocation, Withdrawal};
use newsreel_feed::{Batching, Pulling};
use newsreel_host::RealDisk;
use newsreel_wire::{ArticleNumber, Wildmat};
use serde::Serialize;
use serde_json::{Value, json};

use super::request::{PeerAction, Request, StoreMove};
use super::{Progress, groups};

/// What only a running server can do.
pub(crate) trait Running: Send + Sync + fmt::Debug {
    /// Facts for `status`.
    fn facts(&self) -> Value;
    /// Reads the configuration again; what was taken over and what needs a restart.
    fn reload(&self) -> Result<Value, String>;
    /// Asks or tells the peers something.
    fn peer(&self, action: PeerAction, name: &str) -> Result<Value, String>;
    /// Gives cyclic buffers other sizes, or only says whether they can have them.
    fn resize(
        &self,
        buffers: &[(String, u64)],
        dry_run: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Value, String>;
    /// Writes batches.
    fn batch(
        &self,
        wanted: &Batching,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Value, String>;
    /// Fetches articles from a server.
    fn pull(
        &self,
        wanted: &Pulling,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Value, String>;
    /// How the pulls of the configuration stand.
    fn pulls(&self) -> Value;
    /// Networks that are refused; those of one are let in again first.
    fn bans(&self, lift: Option<&str>) -> Result<Value, String>;
    /// Begins to stop.
    fn stop(&self);
}

/// Answers one request.  `progress` says whether anybody still listens.
pub(crate) fn answer(
    engine: &Engine,
    server: Option<&dyn Running>,
    request: Request,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    match request {
        Request::Status => status(engine, server),
        Request::GroupList { wildmat } => groups::list(engine, &wildmat),
        Request::GroupShow { name } => value(&groups::one(engine, &name)?),
        Request::GroupAdd {
            groups,
            creator,
            keep_existing,
            dry_run,
        } => groups::add(engine, groups, &creator, keep_existing, dry_run),
        Request::GroupDescribe {
            descriptions,
            dry_run,
        } => groups::describe(engine, &descriptions, dry_run),
        Request::GroupSet {
            name,
            status,
            description,
            high,
            dry_run,
        } => {
            let change = group_change(status, description, high);
            groups::set(engine, &name, &change, dry_run, progress)
        }
        Request::GroupRemove { names, dry_run } => {
            groups::remove(engine, &names, dry_run, progress)
        }
        Request::GroupForgetLost => forget_lost_groups(engine),
        Request::Article { which } => article(engine, &which),
        Request::ArticleCancel { which, dry_run } => article_cancel(engine, &which, dry_run),
        Request::ControlList => value(&engine.control_waiting().map_err(said)?),
        Request::ControlShow { which } => control_message(engine, &which),
        Request::ControlTry { article } => control_try(engine, &article),
        Request::ControlKey { id } => control_key(engine, &id),
        Request::ControlApprove { which, dry_run } => control_approve(engine, &which, dry_run),
        Request::ControlForget { hierarchy, dry_run } => forgotten(engine, &hierarchy, dry_run),
        Request::Peer { action, name } => running(server)?.peer(action, &name),
        Request::Batch(wanted) => running(server)?.batch(&wanted, progress),
        Request::Pull(wanted) => running(server)?.pull(&wanted, progress),
        Request::PullList => Ok(running(server)?.pulls()),
        Request::Store => value(&engine.inspect_store().map_err(said)?),
        Request::StoreWithdrawn { articles } => store_withdrawn(engine, &articles),
        attach @ Request::StoreAttach { .. } => store_attach(engine, attach, progress),
        Request::StoreMove(what) => store_move(engine, what, progress),
        Request::StoreRetire {
            buffer,
            undo,
            dry_run,
        } => store_retire(engine, &buffer, !undo, dry_run),
        Request::StoreResize { buffers, dry_run } => resize(server, &buffers, dry_run, progress),
        Request::Scrub {
            buffers,
            octets_per_s,
        } => scrub(engine, server.is_some(), (&buffers, octets_per_s), progress),
        Request::Expire { dry_run } => expire(engine, dry_run, progress),
        Request::Check => check(engine, progress),
        Request::Cache { .. } => no_cache(),
        Request::AccessBans { lift } => running(server)?.bans(lift.as_deref()),
        Request::ClockConfirm => confirm_clock(engine),
        Request::Reload => running(server)?.reload(),
        Request::Stop => stop(running(server)?),
    }
}

/// What a server that is no cache says to who takes it for one.
fn no_cache() -> Result<Value, String> {
    Err("no caching server runs here: this is a spool of its own".to_owned())
}

fn group_change(
    status: Option<String>,
    description: Option<String>,
    high: Option<u64>,
) -> GroupChange {
    GroupChange {
        status,
        description,
        high: high.map(ArticleNumber),
    }
}

fn stop(server: &dyn Running) -> Result<Value, String> {
    server.stop();
    Ok(json!({"stopping": true}))
}

fn forgotten(engine: &Engine, hierarchy: &str, dry_run: bool) -> Result<Value, String> {
    value(&engine.control_forget(hierarchy, dry_run).map_err(said)?)
}

pub(super) fn said(error: impl fmt::Display) -> String {
    error.to_string()
}

pub(super) fn value(report: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(report).map_err(said)
}

/// Control messages that a status reads; where more wait it says how many are remembered.
const CONTROL_LOOKED_AT_MAX: usize = 100;

fn status(engine: &Engine, server: Option<&dyn Running>) -> Result<Value, String> {
    let mut status = engine.status();
    // Of a few it is looked what they ask for now.
    if engine.control_remembered() <= CONTROL_LOOKED_AT_MAX {
        let waiting = engine.control_waiting().map_err(said)?;
        status.control_waiting = waiting.len() as u64;
    }
    let folders = [newsreel_mail::FOLDER, newsreel_mail::NOTICES_FOLDER];
    let folders = folders.map(|folder| Path::new(&status.spool).join(folder));
    let count = |folders: [PathBuf; 2]| {
        let counted = folders.iter();
        let mails = counted.map(|folder| newsreel_mail::waiting_in(&RealDisk, folder));
        let mails = mails.sum::<Result<usize, _>>();
        mails.map_or(Value::Null, Value::from)
    };
    let refused = folders
        .clone()
        .map(|it| it.join(newsreel_mail::REFUSED_FOLDER));
    let mut status = value(&status)?;
    status["mails_waiting"] = count(folders);
    status["mails_refused"] = count(refused);
    status["server"] = server.map_or(Value::Null, Running::facts);
    Ok(status)
}

fn check(engine: &Engine, progress: &mut dyn FnMut(Progress) -> bool) -> Result<Value, String> {
    let mut told = |done, total| {
        progress(Progress { done, total });
    };
    value(&engine.check(&mut told).map_err(said)?)
}

fn running(server: Option<&dyn Running>) -> Result<&dyn Running, String> {
    server.ok_or_else(|| "no server is running on this spool".to_owned())
}

fn forget_lost_groups(engine: &Engine) -> Result<Value, String> {
    let files = engine.forget_lost_groups().map_err(said)?;
    Ok(json!({"files": files}))
}

fn confirm_clock(engine: &Engine) -> Result<Value, String> {
    let was = engine.status().clock;
    engine.confirm_clock().map_err(said)?;
    Ok(json!({"was": was}))
}

fn store_attach(
    engine: &Engine,
    asked: Request,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let Request::StoreAttach {
        paths,
        make_groups,
        withdrawn,
        in_place,
        oldest_may_go,
        dry_run,
    } = asked
    else {
        return Err("it is not asked to attach anything".to_owned());
    };
    let what = Attaching {
        paths,
        make_groups,
        withdrawn,
        in_place,
        oldest_may_go,
        dry_run,
    };
    let mut told = |done, total| progress(Progress { done, total });
    let mut report = value(&engine.attach(&what, &mut told).map_err(said)?)?;
    if what.dry_run {
        report["dry_run"] = true.into();
    }
    Ok(report)
}

fn resize(
    server: Option<&dyn Running>,
    buffers: &[(String, u64)],
    dry_run: bool,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let mut told = |done, total| {
        progress(Progress { done, total });
    };
    let server = running(server)?;
    server.resize(buffers, dry_run, &mut told)
}

fn store_move(
    engine: &Engine,
    what: StoreMove,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let dry_run = what.dry_run;
    let groups = what.groups.as_deref().map(Wildmat::parse).transpose();
    let what = Relocation {
        from: what.from,
        to: what.to,
        groups: groups.map_err(said)?,
        dry_run,
    };
    let mut told = |done, total| progress(Progress { done, total });
    let mut report = value(&engine.relocate(&what, &mut told).map_err(said)?)?;
    if dry_run {
        report["dry_run"] = true.into();
    }
    Ok(report)
}

fn store_withdrawn(engine: &Engine, articles: &[(String, String)]) -> Result<Value, String> {
    value(&engine.are_withdrawn(articles).map_err(said)?)
}

/// The buffer as it stands then, and whether that is new.
fn store_retire(
    engine: &Engine,
    buffer: &str,
    retired: bool,
    dry_run: bool,
) -> Result<Value, String> {
    let is_new = match dry_run {
        true => engine.try_retire_buffer(buffer, retired),
        false => engine.retire_buffer(buffer, retired),
    };
    let is_new = is_new.map_err(said)?;
    let buffers = engine.inspect_store().map_err(said)?;
    let report = buffers.iter().find(|report| report.status.name == buffer);
    let mut done =
        json!({"buffer": report.map(value).transpose()?, "retired": retired, "new": is_new});
    if dry_run {
        done["dry_run"] = true.into();
    }
    Ok(done)
}

fn expire(
    engine: &Engine,
    dry_run: bool,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let mut told = |done, total| progress(Progress { done, total });
    value(&engine.expire(dry_run, &mut told).map_err(said)?)
}

/// Each damaged place also says itself in a line.
fn scrub(
    engine: &Engine,
    is_serving: bool,
    (buffers, octets_per_s): (&[String], Option<u64>),
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let usual = if is_serving { engine.scrub_rate() } else { 0 };
    let octets_per_s = octets_per_s.unwrap_or(usual);
    let mut told = |done, total| progress(Progress { done, total });
    let found = engine.scrub(buffers, octets_per_s, &mut told);
    let found = found.map_err(said)?;
    let mut report = value(&found)?;
    for (at, damage) in found.damaged.iter().enumerate() {
        report["damaged"][at]["said"] = damage.to_string().into();
    }
    Ok(report)
}

fn article(engine: &Engine, which: &str) -> Result<Value, String> {
    match engine.article(&which.parse()?).map_err(said)? {
        Some(found) => value(&found),
        None => {
            let why = engine.absence(&which.parse()?).map_err(said)?;
            Err(format!("no article {which}: {why}"))
        }
    }
}

/// A message about groups; why there is none.
fn control_message(engine: &Engine, which: &str) -> Result<Value, String> {
    match engine.control_message(&which.parse()?).map_err(said)? {
        Some(found) => value(&found),
        None => {
            article(engine, which)?;
            Err(format!(
                "article {which} is no newgroup, rmgroup or checkgroups message"
            ))
        }
    }
}

/// A message that has not come.
fn control_try(engine: &Engine, article: &str) -> Result<Value, String> {
    let wire = STANDARD.decode(article).map_err(said)?;
    match engine.control_try(&wire).map_err(said)? {
        Some(found) => value(&found),
        None => Err("it is no newgroup, rmgroup or checkgroups message".to_owned()),
    }
}

fn control_key(engine: &Engine, id: &str) -> Result<Value, String> {
    let key = engine.site_key(id).map_err(said)?;
    Ok(json!({"message_id": id, "cancel_key": key}))
}

fn control_approve(engine: &Engine, which: &str, dry_run: bool) -> Result<Value, String> {
    let found = control_message(engine, which)?;
    match dry_run {
        true => Ok(found),
        false => value(&engine.control_approve(&which.parse()?).map_err(said)?),
    }
}

/// Withdraws those that are here; says of the others why not.
fn article_cancel(engine: &Engine, which: &[String], dry_run: bool) -> Result<Value, String> {
    let articles: Result<Vec<ArticleRef>, String> = which.iter().map(|one| one.parse()).collect();
    let articles = articles.map_err(|error| format!("{error}; nothing was cancelled"))?;
    let outcomes = if dry_run {
        let tried = articles.iter().map(|article| engine.try_withdraw(article));
        tried.collect()
    } else {
        engine
            .withdraw(&articles, Reason::Cancelled)
            .map_err(said)?
    };
    let (mut cancelled, mut not_here, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (one, outcome) in which.iter().zip(outcomes) {
        match outcome {
            Withdrawal::Done => cancelled.push(one),
            Withdrawal::NotHere => not_here.push(one),
            Withdrawal::Failed(why) => failed.push(json!({"which": one, "why": why})),
        }
    }
    let mut done = json!({"cancelled": cancelled, "not_here": not_here, "failed": failed});
    if dry_run {
        done["dry_run"] = true.into();
    }
    Ok(done)
}
