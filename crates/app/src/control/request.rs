//! The one table of requests: what can be asked of a spool, and how it is answered.
//!
//! Both the control socket and the offline commands come here.  An answer is JSON; nothing here prints.

use std::fmt;

use newsreel_engine::{ArticleRef, Engine, GroupChange, GroupReport, GroupSpec};
use newsreel_wire::ArticleNumber;
use newsreel_wire::Wildmat;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Progress;
use crate::active::ListedGroup;

/// A name in the log is no longer than this.
const SUMMARY_CHARS_MAX: usize = 300;

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
    /// Remove a group.
    GroupRemove {
        /// Its name.
        name: String,
    },
    /// An article and where it lies.
    Article {
        /// Message-id, `group:number` or token.
        which: String,
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
        let mut line = String::new();
        for c in self.plain_summary().chars().take(SUMMARY_CHARS_MAX) {
            if c.is_control() {
                line.extend(c.escape_debug());
            } else {
                line.push(c);
            }
        }
        line
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
            Self::GroupRemove { name } => format!("remove group {name}"),
            other => format!("{other:?}"),
        }
    }

    /// Whether it changes the spool.
    pub(crate) fn writes(&self) -> bool {
        matches!(
            self,
            Self::GroupAdd { .. }
                | Self::GroupSet { .. }
                | Self::GroupRemove { .. }
                | Self::ClockConfirm
        )
    }
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
        } => group_add(engine, groups, &creator, keep_existing),
        Request::GroupSet {
            name,
            status,
            description,
            high,
        } => {
            let change = GroupChange {
                status,
                description,
                high: high.map(ArticleNumber),
            };
            engine.set_group(&name, change).map_err(said)?;
            value(&group(engine, &name)?)
        }
        Request::GroupRemove { name } => {
            let removed = group(engine, &name)?;
            engine.remove_group(&name).map_err(said)?;
            value(&removed)
        }
        Request::Article { which } => {
            let article: ArticleRef = which.parse()?;
            match engine.article(&article).map_err(said)? {
                Some(found) => value(&found),
                None => Err(format!(
                    "no article {which} (never here, overwritten or cancelled)"
                )),
            }
        }
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

fn group_add(
    engine: &Engine,
    groups: Vec<ListedGroup>,
    creator: &str,
    keep_existing: bool,
) -> Result<Value, String> {
    let (mut specs, mut existing) = (Vec::new(), Vec::new());
    for group in groups {
        if engine.group(&group.name).is_some() {
            existing.push(group.name);
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
    if let (false, Some(name)) = (keep_existing, existing.first()) {
        let more = existing.len() - 1;
        let others = if more == 0 {
            String::new()
        } else {
            format!(" (and {more} more)")
        };
        return Err(format!(
            "group {name} exists already{others}; nothing was added"
        ));
    }
    let added: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    if !specs.is_empty() {
        engine.add_groups(specs).map_err(said)?;
    }
    Ok(json!({"added": added, "existing": existing}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_line_of_the_log() {
        let asked = Request::GroupRemove {
            name: format!("a\u{1b}[2J\nINFO forged {}", "x".repeat(1000)),
        };
        let line = asked.summary();
        assert!(
            line.starts_with("remove group a\\u{1b}[2J\\nINFO forged xxx"),
            "{line}"
        );
        assert!(
            line.len() < 400 && !line.contains(char::is_control),
            "{line}"
        );
        let plain = Request::GroupRemove {
            name: "alt.o'reilly".into(),
        };
        assert_eq!(plain.summary(), "remove group alt.o'reilly");
    }
}
