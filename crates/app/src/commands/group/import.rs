//! `newsreel group import`: the groups that a file lists, all of them or none.
//!
//! What can be wrong is found before the first group is made: bad lines and aliases here, with their places, and the
//! rest by a dry run of every request.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::access::{Access, LookArgs};
use crate::active::{self, Listed, ListedGroup, Named};
use crate::control::request::Request;
use crate::{input, output};

/// Groups sent in one request.
const BATCH_GROUPS: usize = 1000;

/// ... and octets of them: less than half of the smallest log segment that is taken.
const BATCH_OCTETS: usize = 128 << 10;

/// The largest list of groups that is read.
pub(crate) const FILE_OCTETS_MAX: usize = 256 << 20;

/// Bad lines that are shown.
const BAD_SHOWN_MAX: usize = 100;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Names, or an active file; - is the standard input
    file: PathBuf,
    /// Descriptions: a newsgroups file
    newsgroups: Option<PathBuf>,
    /// Import the good lines although there are bad ones
    #[arg(long)]
    skip_bad: bool,
    /// Who makes them, as told by LIST ACTIVE.TIMES
    #[arg(long, default_value = "newsreel")]
    creator: String,
    /// Change nothing; say what would be made
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    spool: LookArgs,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let Args {
        file,
        newsgroups,
        dry_run,
        spool,
        ..
    } = args;
    if spool.read_only && !dry_run {
        bail!("this changes the spool, which --read-only forbids");
    }
    let mut listed = listed(file, newsgroups.as_deref())?;
    let mut access = Access::open(spool, !dry_run)?;
    let made = check_aliases(&mut access, &mut listed, &file.display().to_string())
        .and_then(|()| make(&mut access, &listed, args));
    access.close()?;
    let made = made?;
    if spool.json {
        output::json(&summary(made.as_ref(), &listed, *dry_run))?;
    }
    let Some((added, existing)) = made else {
        bail!(refusal(&listed, spool.json));
    };
    let reserved = listed.groups.iter();
    let reserved = reserved.filter(|group| active::is_reserved(&group.name));
    match reserved.count() {
        0 => {}
        count => output::warning(&format!(
            "{count} of the names begin with one that RFC 5536 reserves for what is no newsgroup"
        )),
    }
    if spool.json {
        return Ok(());
    }
    let shown = &listed.bad[..listed.bad.len().min(BAD_SHOWN_MAX)];
    for bad in shown {
        output::warning(&format!("{}:{}: {}", bad.file, bad.line, bad.what));
    }
    let text = match dry_run {
        true => format!("dry run: {added} groups would be added, {existing} exist already"),
        false => format!("{added} groups added, {existing} existed already"),
    };
    let kept = match existing {
        0 => "",
        _ => "; those stay as they are, descriptions too: `newsreel group set` changes one",
    };
    output::text(&format!("{text}{}{kept}\n", remarks(&listed)))
}

/// Makes the groups and says how many were made and how many were there; `None` when bad lines forbid it.
fn make(access: &mut Access, listed: &Listed, args: &Args) -> Result<Option<(usize, usize)>> {
    if !listed.bad.is_empty() && !args.skip_bad {
        return Ok(None);
    }
    let groups = in_order(&listed.groups);
    let creator = &args.creator;
    let found = in_batches(access, &alone(&groups), creator, true)?;
    if args.dry_run {
        return Ok(Some(found));
    }
    in_batches(access, &groups, creator, false).map(Some)
}

/// What the files list, with their bad lines.
fn listed(file: &Path, newsgroups: Option<&Path>) -> Result<Listed> {
    if file == Path::new(input::STANDARD_INPUT) && newsgroups == Some(file) {
        bail!("only one of the two files can be the standard input");
    }
    let octets = input::read(file, FILE_OCTETS_MAX)?.octets;
    let names = newsgroups
        .map(|path| input::read(path, FILE_OCTETS_MAX))
        .transpose()?;
    let file_name = file.display().to_string();
    let names_name = newsgroups.map(|path| path.display().to_string());
    Ok(active::read(
        Named {
            name: &file_name,
            octets: &octets,
        },
        names.as_ref().map(|read| Named {
            name: names_name.as_deref().unwrap_or_default(),
            octets: &read.octets,
        }),
    ))
}

/// Moves aliases that cannot be made to the bad lines.  An alias is filed in a group that is there, or in one that the
/// file lists, and that is no alias itself.  What exists already stays as it is, whatever the file says of it.
fn check_aliases(access: &mut Access, listed: &mut Listed, file: &str) -> Result<()> {
    if listed.groups.iter().all(|group| target(group).is_none()) {
        return Ok(());
    }
    let wildmat = "*".to_owned();
    let there = access.ask(Request::GroupList { wildmat })?;
    let mut statuses: HashMap<&str, &str> = HashMap::new();
    for group in &listed.groups {
        statuses.insert(&group.name, &group.status);
    }
    let existing: HashMap<&str, &str> = there
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|group| Some((group["name"].as_str()?, group["status"].as_str()?)))
        .collect();
    statuses.extend(&existing);
    let wrong = |group: &ListedGroup| {
        let target = target(group).filter(|_| !existing.contains_key(group.name.as_str()))?;
        let name = &group.name;
        match statuses.get(target) {
            None => Some(format!(
                "{name} is to be filed in {target}, which does not exist"
            )),
            Some(status) if status.starts_with('=') => Some(format!(
                "{name} is to be filed in {target}, which is an alias itself"
            )),
            Some(_) => None,
        }
    };
    let wrong: HashMap<String, String> = listed
        .groups
        .iter()
        .filter_map(|group| Some((group.name.clone(), wrong(group)?)))
        .collect();
    listed.refuse(file, &wrong);
    Ok(())
}

fn target(group: &ListedGroup) -> Option<&str> {
    group.status.strip_prefix('=')
}

fn summary(made: Option<&(usize, usize)>, listed: &Listed, dry_run: bool) -> Value {
    let (added, existing) = made.copied().unwrap_or_default();
    let mut summary = json!({
        "added": added,
        "existing": existing,
        "bad": listed.bad,
        "descriptions_unused": listed.descriptions_unused,
    });
    if dry_run {
        summary["dry_run"] = true.into();
    }
    summary
}

/// Why nothing was imported; the lines stand in the JSON already, if that was asked for.
fn refusal(listed: &Listed, json: bool) -> String {
    let line = |bad: &active::BadLine| format!("{}:{}: {}\n", bad.file, bad.line, bad.what);
    let lines: String = match json {
        true => String::new(),
        false => listed.bad.iter().take(BAD_SHOWN_MAX).map(line).collect(),
    };
    let count = listed.bad.len();
    format!("{lines}{count} bad lines, nothing was imported; --skip-bad imports the others")
}

/// What else is to be said of an import.
fn remarks(listed: &Listed) -> String {
    let mut text = String::new();
    if !listed.bad.is_empty() {
        text.push_str(&format!(", {} bad lines skipped", listed.bad.len()));
    }
    if listed.descriptions_unused > 0 {
        text.push_str(&format!(
            ", {} descriptions of other groups",
            listed.descriptions_unused
        ));
    }
    text
}

/// Targets before their aliases, so that a batch never names a group of a later one.
fn in_order(groups: &[ListedGroup]) -> Vec<ListedGroup> {
    let (mut groups, aliases): (Vec<_>, Vec<_>) = groups
        .iter()
        .cloned()
        .partition(|group| target(group).is_none());
    groups.extend(aliases);
    groups
}

/// The same for a dry run, which makes nothing that an alias of a later batch could find; aliases are checked before.
fn alone(groups: &[ListedGroup]) -> Vec<ListedGroup> {
    let mut groups = groups.to_vec();
    for group in &mut groups {
        if target(group).is_some() {
            group.status = "y".to_owned();
        }
    }
    groups
}

fn in_batches(
    access: &mut Access,
    groups: &[ListedGroup],
    creator: &str,
    dry_run: bool,
) -> Result<(usize, usize)> {
    let (mut added, mut existing) = (0, 0);
    let count = |done: &Value, key: &str| done[key].as_array().map_or(0, Vec::len);
    for batch in batches(groups) {
        let request = Request::GroupAdd {
            groups: batch.to_vec(),
            creator: creator.to_owned(),
            keep_existing: true,
            dry_run: dry_run.then_some(added),
        };
        let done = access.ask(request).with_context(|| match dry_run {
            true => format!("nothing was imported, and an import would fail after {added} groups"),
            false => format!("after {added} groups had been added"),
        })?;
        added += count(&done, "added");
        existing += count(&done, "existing");
    }
    Ok((added, existing))
}

/// Groups that go together in one request: not too many, and no more text than one log frame surely holds.
fn batches(mut groups: &[ListedGroup]) -> Vec<&[ListedGroup]> {
    let mut batches = Vec::new();
    while !groups.is_empty() {
        let mut octets = 0;
        let fits = |group: &&ListedGroup| {
            octets += group.name.len() + group.status.len() + group.description.len() + 64;
            octets <= BATCH_OCTETS
        };
        let len = groups.iter().take(BATCH_GROUPS).take_while(fits).count();
        let (batch, rest) = groups.split_at(len.max(1));
        batches.push(batch);
        groups = rest;
    }
    batches
}
