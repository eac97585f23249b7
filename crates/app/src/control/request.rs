//! The one table of requests: what can be asked of a spool, and how it is answered.
//!
//! Both the control socket and the offline commands come here.  An answer is JSON; nothing here prints.

use std::collections::HashSet;
use std::fmt;

use newsreel_engine::{
    ArticleRef, Engine, GroupChange, GroupReport, GroupSpec, Reason, Withdrawal,
};
use newsreel_wire::{ArticleNumber, GroupName, Wildmat};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Progress;
use crate::active::{self, ListedGroup};

/// A name in the log is no longer than this.
const SUMMARY_CHARS_MAX: usize = 300;

/// An answer names no more groups than this that cannot be made.
const REFUSED_MAX: usize = 20;

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Request {
    /// How the server or spool is.
    Status,
    /// The groups that match.
    GroupList {
        /// A wildmat.
        wildmat: String,
    },
    /// One group.
    GroupShow {
        /// Its name.
        name: String,
    },
    /// Make groups.
    GroupAdd {
        /// Those to make.
        groups: Vec<ListedGroup>,
        /// Who makes them.
        creator: String,
        /// Leave those that exist already as they are; otherwise they are an error.
        keep_existing: bool,
        /// Only say what would be done, after so many others had been made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dry_run: Option<usize>,
    },
    /// Change a group; what is absent stays.
    GroupSet {
        /// Its name.
        name: String,
        /// New status field.
        status: Option<String>,
        /// New description.
        description: Option<String>,
        /// New high mark, if it is higher.
        high: Option<u64>,
    },
    /// Remove groups.
    GroupRemove {
        /// Their names.
        names: Vec<String>,
        /// Only say what would be done.
        dry_run: bool,
    },
    /// Make do without the group rows that are lost.
    GroupForgetLost,
    /// An article and where it lies.
    Article {
        /// Message-id, `group:number` or token.
        which: String,
    },
    /// Take articles out.
    ArticleCancel {
        /// Message-ids, `group:number`s or tokens.
        which: Vec<String>,
        /// Only say what would be done.
        dry_run: bool,
    },
    /// The buffers.
    Store,
    /// Whether store, log and views agree.
    Check,
    /// The clock jumped and is right.
    ClockConfirm,
    /// Read the configuration again.
    Reload,
    /// Finish and stop.
    Stop,
}

impl Request {
    /// What it asks, short enough for a log line.  Nothing has looked at the names yet: one with a line end must not
    /// pass for a second line.
    pub(crate) fn summary(&self) -> String {
        one_line(&self.plain_summary())
    }

    fn plain_summary(&self) -> String {
        match self {
            Self::GroupAdd {
                groups, creator, ..
            } => match groups.as_slice() {
                [group] => format!("add group {} for {creator}", group.name),
                groups => format!("add {} groups for {creator}", groups.len()),
            },
            Self::GroupSet { name, .. } => format!("change group {name}"),
            Self::GroupRemove { names, .. } => match names.as_slice() {
                [name] => format!("remove group {name}"),
                names => format!(
                    "remove {} groups, {} and others",
                    names.len(),
                    names.first().map_or("", String::as_str)
                ),
            },
            Self::ArticleCancel { which, .. } => match which.as_slice() {
                [one] => format!("cancel article {one}"),
                which => format!(
                    "cancel {} articles, {} and others",
                    which.len(),
                    which.first().map_or("", String::as_str)
                ),
            },
            other => format!("{other:?}"),
        }
    }

    /// Whether it changes the spool.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Self::GroupAdd { dry_run, .. } => dry_run.is_none(),
            Self::GroupRemove { dry_run, .. } | Self::ArticleCancel { dry_run, .. } => !dry_run,
            Self::GroupSet { .. } | Self::GroupForgetLost | Self::ClockConfirm => true,
            _ => false,
        }
    }
}

/// A text as it may stand in a log line.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars().take(SUMMARY_CHARS_MAX) {
        if c.is_control() {
            line.extend(c.escape_debug());
        } else {
            line.push(c);
        }
    }
    line
}

/// What only a running server can do.
pub(crate) trait Running: Send + Sync + fmt::Debug {
    /// Facts for `status`.
    fn facts(&self) -> Value;
    /// Reads the configuration again; what was taken over and what needs a restart.
    fn reload(&self) -> Result<Value, String>;
    /// Begins to stop.
    fn stop(&self);
}

/// Answers one request.
pub(crate) fn answer(
    engine: &Engine,
    server: Option<&dyn Running>,
    request: Request,
    progress: &mut dyn FnMut(Progress),
) -> Result<Value, String> {
    let needs_server = || "no server is running on this spool".to_owned();
    match request {
        Request::Status => status(engine, server),
        Request::GroupList { wildmat } => group_list(engine, &wildmat),
        Request::GroupShow { name } => value(&group(engine, &name)?),
        Request::GroupAdd {
            groups,
            creator,
            keep_existing,
            dry_run,
        } => {
            let (specs, existing) = sorted_out(engine, groups, &creator, keep_existing)?;
            group_add(engine, specs, &existing, dry_run)
        }
        Request::GroupSet {
            name,
            status,
            description,
            high,
        } => {
            if let Some(high) = high {
                goes_up(&group(engine, &name)?, high)?;
            }
            let change = GroupChange {
                status,
                description,
                high: high.map(ArticleNumber),
            };
            engine.set_group(&name, change).map_err(said)?;
            value(&group(engine, &name)?)
        }
        Request::GroupRemove { names, dry_run } => group_remove(engine, &names, dry_run, progress),
        Request::GroupForgetLost => {
            let files = engine.forget_lost_groups().map_err(said)?;
            Ok(json!({"files": files}))
        }
        Request::Article { which } => article(engine, &which),
        Request::ArticleCancel { which, dry_run } => article_cancel(engine, &which, dry_run),
        Request::Store => value(&engine.inspect_store().map_err(said)?),
        Request::Check => {
            let report = engine
                .check(&mut |done, total| progress(Progress { done, total }))
                .map_err(said)?;
            value(&report)
        }
        Request::ClockConfirm => {
            let was = engine.status().clock;
            engine.confirm_clock().map_err(said)?;
            Ok(json!({"was": was}))
        }
        Request::Reload => server.ok_or_else(needs_server)?.reload(),
        Request::Stop => {
            server.ok_or_else(needs_server)?.stop();
            Ok(json!({"stopping": true}))
        }
    }
}

fn said(error: impl fmt::Display) -> String {
    error.to_string()
}

fn value(report: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(report).map_err(said)
}

fn status(engine: &Engine, server: Option<&dyn Running>) -> Result<Value, String> {
    let mut status = value(&engine.status())?;
    status["server"] = server.map_or(Value::Null, Running::facts);
    Ok(status)
}

fn group(engine: &Engine, name: &str) -> Result<GroupReport, String> {
    engine
        .group(name)
        .ok_or_else(|| format!("no group {name:?}"))
}

fn group_list(engine: &Engine, wildmat: &str) -> Result<Value, String> {
    let wildmat = Wildmat::parse(wildmat).map_err(|error| format!("{wildmat:?}: {error}"))?;
    let mut groups = engine.groups();
    groups.retain(|group| wildmat.matches(&group.name));
    value(&groups)
}

/// Numbers of a group only go up: readers have seen the old ones.
fn goes_up(group: &GroupReport, high: u64) -> Result<(), String> {
    if high >= group.high {
        return Ok(());
    }
    Err(format!(
        "the high mark of {} is {} and cannot go down to {high}; nothing was changed",
        group.name, group.high
    ))
}

/// What groups are to be made, and which of them exist already.
fn sorted_out(
    engine: &Engine,
    groups: Vec<ListedGroup>,
    creator: &str,
    keep_existing: bool,
) -> Result<(Vec<GroupSpec>, Vec<String>), String> {
    let (mut specs, mut existing) = (Vec::new(), Vec::new());
    let mut refused = Vec::new();
    for group in groups {
        if engine.group(&group.name).is_some() {
            if !keep_existing {
                refused.push(format!("group {} exists already", group.name));
            }
            existing.push(group.name);
            continue;
        }
        if let Err(error) = GroupName::parse(group.name.as_bytes()) {
            refused.push(format!("{:?} is no group name: {error}", group.name));
            continue;
        }
        if let Some(why) = active::forbidden(&group.name) {
            refused.push(format!("{} cannot be a group: {why}", group.name));
            continue;
        }
        specs.push(GroupSpec {
            status: group.status,
            description: group.description,
            creator: creator.to_owned(),
            high: ArticleNumber(group.high),
            ..GroupSpec::new(&group.name)
        });
    }
    if refused.is_empty() {
        return Ok((specs, existing));
    }
    let more = refused.len().saturating_sub(REFUSED_MAX);
    refused.truncate(REFUSED_MAX);
    if more > 0 {
        refused.push(format!("and {more} more"));
    }
    Err(format!("{}; nothing was added", refused.join("; ")))
}

fn group_add(
    engine: &Engine,
    specs: Vec<GroupSpec>,
    existing: &[String],
    dry_run: Option<usize>,
) -> Result<Value, String> {
    let added: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    let mut done = json!({"added": added, "existing": existing});
    match dry_run {
        Some(before) => {
            engine.try_groups(&specs, before).map_err(said)?;
            done["dry_run"] = true.into();
        }
        None if specs.is_empty() => {}
        None => engine.add_groups(specs).map_err(said)?,
    }
    Ok(done)
}

/// Removes all of them, or none because one does not exist.
fn group_remove(
    engine: &Engine,
    names: &[String],
    dry_run: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Value, String> {
    let found: Result<Vec<GroupReport>, String> =
        names.iter().map(|name| group(engine, name)).collect();
    let removed = found.map_err(|error| format!("{error}; nothing was removed"))?;
    let gone: HashSet<&str> = names.iter().map(String::as_str).collect();
    if gone.len() < names.len() {
        return Err("a name is given twice; nothing was removed".to_owned());
    }
    let mut aliases = engine.groups();
    aliases.retain(|group| {
        let target = group.status.strip_prefix('=');
        target.is_some_and(|target| gone.contains(target)) && !gone.contains(group.name.as_str())
    });
    let aliases: Vec<String> = aliases.into_iter().map(|group| group.name).collect();
    let mut done = json!({"removed": removed, "aliases_left": aliases});
    if dry_run {
        done["dry_run"] = true.into();
        return Ok(done);
    }
    for (at, name) in names.iter().enumerate() {
        let after = |error| format!("{error}; {at} groups had been removed before");
        engine.remove_group(name).map_err(after)?;
        progress(Progress {
            done: at as u64 + 1,
            total: names.len() as u64,
        });
    }
    Ok(done)
}

fn article(engine: &Engine, which: &str) -> Result<Value, String> {
    match engine.article(&which.parse()?).map_err(said)? {
        Some(found) => value(&found),
        None => Err(format!(
            "no article {which} (never here, overwritten or cancelled)"
        )),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_line_of_the_log() {
        let remove = |name: String| Request::GroupRemove {
            names: vec![name],
            dry_run: false,
        };
        let asked = remove(format!("a\u{1b}[2J\nINFO forged {}", "x".repeat(1000)));
        let line = asked.summary();
        assert!(
            line.starts_with("remove group a\\u{1b}[2J\\nINFO forged xxx"),
            "{line}"
        );
        assert!(
            line.len() < 400 && !line.contains(char::is_control),
            "{line}"
        );
        let plain = remove("alt.o'reilly".to_owned());
        assert_eq!(plain.summary(), "remove group alt.o'reilly");
    }
}
