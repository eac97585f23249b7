//! What can be asked about groups: list, make, describe, change, remove.
//!
//! Whatever can be refused is refused before the first group is touched.

use std::collections::HashSet;

use newsreel_engine::{Engine, GroupChange, GroupReport, GroupSpec};
use newsreel_wire::{ArticleNumber, GroupName, UnixTime, Wildmat};
use serde_json::{Value, json};

use super::Progress;
use super::answers::{said, value};
use crate::active::{self, ListedGroup};
use crate::output;

/// An answer names no more groups than this that cannot be made.
const REFUSED_MAX: usize = 20;

/// Groups changed in one commit: with the longest texts they fit into the smallest frame.
const CHANGED_AT_ONCE: usize = 50;

/// The group of a name.
pub(super) fn one(engine: &Engine, name: &str) -> Result<GroupReport, String> {
    engine
        .group(name)
        .ok_or_else(|| match is_wildmat(name) {
            true => format!(
                "no group {name:?}: give one name; `group list`, `group set` and `group remove` take wildmats"
            ),
            false => format!("no group {name:?}"),
        })
}

/// The groups that match.
pub(super) fn list(engine: &Engine, wildmat: &str) -> Result<Value, String> {
    value(&matching(engine, wildmat)?)
}

fn matching(engine: &Engine, wildmat: &str) -> Result<Vec<GroupReport>, String> {
    let wildmat = Wildmat::parse(wildmat).map_err(|error| format!("{wildmat:?}: {error}"))?;
    let mut groups = engine.groups();
    groups.retain(|group| wildmat.matches(&group.name));
    Ok(groups)
}

/// Whether this is a wildmat: what makes it one stands in no name.
fn is_wildmat(which: &str) -> bool {
    which.contains(['*', '?', '[', ']', '!', ',', '\\'])
}

/// The groups that a name or a wildmat means; it means at least one.
fn meant(engine: &Engine, which: &str) -> Result<Vec<GroupReport>, String> {
    if !is_wildmat(which) {
        return Ok(vec![one(engine, which)?]);
    }
    let groups = matching(engine, which)?;
    if groups.is_empty() {
        return Err(format!("no group matches {which:?}"));
    }
    Ok(groups)
}

/// Makes groups.
pub(super) fn add(
    engine: &Engine,
    groups: Vec<ListedGroup>,
    creator: &str,
    keep_existing: bool,
    dry_run: Option<usize>,
) -> Result<Value, String> {
    let differs: Vec<Value> = groups
        .iter()
        .filter_map(|group| high_differs(engine, group))
        .collect();
    let (specs, existing) = sorted_out(engine, groups, creator, keep_existing)?;
    let added: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    let mut done = json!({"added": added, "existing": existing, "high_differs": differs});
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

/// The high mark of a group that a list gives, if the group's stays another: numbers are never given twice, and what
/// exists is left as it is.
fn high_differs(engine: &Engine, listed: &ListedGroup) -> Option<Value> {
    // A list of bare names says nothing of marks.
    if listed.high == 0 {
        return None;
    }
    let high = match engine.group(&listed.name) {
        Some(group) => group.high,
        None => engine.high_taken(&listed.name).0.max(listed.high),
    };
    (high != listed.high).then(|| json!({"name": listed.name, "high": high, "listed": listed.high}))
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
        let (created, by) = group.made.unzip();
        specs.push(GroupSpec {
            status: group.status,
            description: group.description,
            creator: by
                .filter(|by| !by.is_empty())
                .unwrap_or_else(|| creator.to_owned()),
            high: ArticleNumber(group.high),
            created: created.map(UnixTime),
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

/// Sets descriptions where they differ, of groups that are there.
pub(super) fn describe(
    engine: &Engine,
    descriptions: &[(String, String)],
    dry_run: bool,
) -> Result<Value, String> {
    let (mut changes, mut unknown) = (Vec::new(), 0);
    for (name, description) in descriptions {
        let change = GroupChange {
            description: Some(description.clone()),
            ..GroupChange::default()
        };
        match engine.group(name) {
            Some(group) if group.description == *description => {}
            Some(_) => changes.push((name.clone(), change)),
            None => unknown += 1,
        }
    }
    if !dry_run {
        change(engine, &changes, &mut |_| true)?;
    }
    Ok(json!({"described": changes.len(), "unknown": unknown}))
}

/// Changes groups in several commits.
fn change(
    engine: &Engine,
    changes: &[(String, GroupChange)],
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<(), String> {
    let mut done = 0;
    for some in changes.chunks(CHANGED_AT_ONCE) {
        engine.set_groups(some).map_err(|error| match done {
            0 => said(error),
            _ => format!("{error}; {} had been changed before", counted(done)),
        })?;
        done += some.len();
        progress(Progress {
            done: done as u64,
            total: changes.len() as u64,
        });
    }
    Ok(())
}

fn counted(groups: usize) -> String {
    output::count(groups as u64, "group")
}

/// Changes one group, or all that match, alike; as they are then, or, where that is only asked, as they are.
pub(super) fn set(
    engine: &Engine,
    which: &str,
    wanted: &GroupChange,
    dry_run: bool,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let groups = meant(engine, which)?;
    for group in &groups {
        goes_up(group, wanted.high)?;
    }
    let target = wanted.status.as_deref();
    let target = target.and_then(|status| status.strip_prefix('='));
    if let Some(target) = target
        && groups.iter().any(|group| group.name == target)
    {
        return Err(format!(
            "a group cannot be an alias of itself: {target:?}; nothing was changed"
        ));
    }
    if dry_run {
        return Ok(json!({"changed": groups, "dry_run": true}));
    }
    let changes: Vec<_> = groups
        .iter()
        .map(|group| (group.name.clone(), wanted.clone()))
        .collect();
    change(engine, &changes, progress)?;
    if !is_wildmat(which) {
        return value(&one(engine, which)?);
    }
    let now = groups.iter().filter_map(|group| engine.group(&group.name));
    value(&now.collect::<Vec<_>>())
}

/// Numbers of a group only go up: readers have seen the old ones.
fn goes_up(group: &GroupReport, high: Option<ArticleNumber>) -> Result<(), String> {
    match high {
        Some(ArticleNumber(high)) if high < group.high => Err(format!(
            "the high mark of {} is {} and cannot go down to {high}; nothing was changed",
            group.name, group.high
        )),
        _ => Ok(()),
    }
}

/// Removes all of them, or none because one does not exist.
pub(super) fn remove(
    engine: &Engine,
    which: &[String],
    dry_run: bool,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let (mut removed, mut gone) = (Vec::new(), HashSet::new());
    for one in which {
        let groups = meant(engine, one).map_err(|error| format!("{error}; nothing was removed"))?;
        for group in groups {
            if gone.insert(group.name.clone()) {
                removed.push(group);
            } else if !is_wildmat(one) {
                return Err(format!("{one} is given twice; nothing was removed"));
            }
        }
    }
    let mut aliases = engine.groups();
    aliases.retain(|group| {
        let target = group.status.strip_prefix('=');
        target.is_some_and(|target| gone.contains(target)) && !gone.contains(&group.name)
    });
    let aliases: Vec<String> = aliases.into_iter().map(|group| group.name).collect();
    let mut done = json!({"removed": removed, "aliases_left": aliases});
    if dry_run {
        done["dry_run"] = true.into();
        return Ok(done);
    }
    for (at, group) in removed.iter().enumerate() {
        let after = |error| format!("{error}; {} had been removed before", counted(at));
        engine.remove_group(&group.name).map_err(after)?;
        progress(Progress {
            done: at as u64 + 1,
            total: removed.len() as u64,
        });
    }
    Ok(done)
}
