//! `newsreel group import`: the groups that a file lists, all of them or none; and descriptions, as far as they are good.
//!
//! What can be wrong is found before the first group is made: bad lines, marks and aliases here, with their places, and the
//! rest by a dry run of every request.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use newsreel_host::{Disk as _, RealDisk};
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

/// Bad lines that are shown, and strange ones.
const BAD_SHOWN_MAX: usize = 100;

/// Groups that are named of those of which one thing is to be told.
const NAMES_SHOWN_MAX: usize = 5;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Names, or an active file; - is the standard input
    file: PathBuf,
    /// Descriptions: a newsgroups file
    newsgroups: Option<PathBuf>,
    /// Import the good lines although there are bad ones; those of a newsgroups file are left out in any case
    #[arg(long)]
    skip_bad: bool,
    /// Of groups that are there, raise high marks that are lower than the listed ones, and set a listed status other than y
    #[arg(long)]
    raise: bool,
    /// When groups were made, and by whom: an active.times file (name, seconds, creator) [default: active.times beside FILE, if that is
    /// called active]; groups that are there keep their times
    #[arg(long, value_name = "FILE")]
    times: Option<PathBuf>,
    /// Who makes them, as told by LIST ACTIVE.TIMES, where no file says it
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
        times,
        dry_run,
        spool,
        ..
    } = args;
    if spool.read_only && !dry_run {
        bail!("this changes the spool, which --read-only forbids");
    }
    let mut listed = listed(file, newsgroups.as_deref())?;
    if let Some(times) = times.clone().or_else(|| times_beside(file)) {
        let octets = input::read(&times, FILE_OCTETS_MAX)?.octets;
        let (name, octets) = (&*times.display().to_string(), &*octets);
        active::date(&mut listed, Named { name, octets });
    }
    let mut access = Access::open(spool, !dry_run)?;
    let name = file.display().to_string();
    let made = check_marks(&mut access, &mut listed, &name)
        .and_then(|()| check_aliases(&mut access, &mut listed, (&name, args.raise)))
        .and_then(|()| make(&mut access, &listed, args));
    access.close()?;
    let made = made?;
    if spool.json {
        let none = Made::default();
        output::json(&made.as_ref().unwrap_or(&none).json(&listed, *dry_run))?;
    }
    let Some(made) = made else {
        bail!(refusal(&listed, spool.json));
    };
    warn_of_reserved(&listed);
    if spool.json {
        return Ok(());
    }
    for lines in [&listed.bad, &listed.strange] {
        for line in lines.iter().take(BAD_SHOWN_MAX) {
            output::warning(&format!("{}:{}: {}", line.file, line.line, line.what));
        }
    }
    output::said(&made.said(&listed, *dry_run))
}

/// Names that a group should not have.
fn warn_of_reserved(listed: &Listed) {
    let names = listed.groups.iter().map(|group| group.name.as_str());
    let reserved: Vec<&str> = names.filter(|name| active::is_reserved(name)).collect();
    if reserved.is_empty() {
        return;
    }
    let shown = reserved.iter().take(NAMES_SHOWN_MAX);
    let shown = shown.copied().collect::<Vec<_>>().join(", ");
    let more = match reserved.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    output::warning(&format!(
        "{shown}{more} {} with a name that RFC 5536 reserves for what is no newsgroup",
        if reserved.len() == 1 {
            "begins"
        } else {
            "begin"
        }
    ));
}

/// What an import did, or would do.
#[derive(Debug, Default)]
struct Made {
    added: u64,
    /// ... of which so many with the time at which they were made elsewhere.
    dated: u64,
    existing: u64,
    /// Groups that were there and have another description now.
    described: u64,
    /// Descriptions of groups that are not here.
    unused: u64,
    /// Groups whose high mark is not the listed one.
    high_differs: Vec<Value>,
    /// Groups that were there and have the listed high mark or status now, where that was asked for.
    raised: Option<u64>,
}

impl Made {
    fn json(&self, listed: &Listed, dry_run: bool) -> Value {
        let mut summary = json!({
            "added": self.added,
            "dated": self.dated,
            "existing": self.existing,
            "described": self.described,
            "high_differs": self.high_differs,
            "bad": listed.bad,
            "strange": listed.strange,
            "descriptions_unused": self.unused,
        });
        if let Some(raised) = self.raised {
            summary["raised"] = raised.into();
        }
        if dry_run {
            summary["dry_run"] = true.into();
        }
        summary
    }

    fn said(&self, listed: &Listed, dry_run: bool) -> String {
        let added = output::count(self.added, "group");
        let mut text = match (dry_run, self.existing) {
            (true, 1) => format!("dry run: {added} would be added, 1 exists already"),
            (true, there) => format!("dry run: {added} would be added, {there} exist already"),
            (false, there) => format!("{added} added, {there} existed already"),
        };
        let remarks = [
            (self.dated, "group", "with the times of active.times"),
            (listed.bad.len() as u64, "bad line", "left out"),
            (listed.strange.len() as u64, "strange line", "taken"),
            (
                self.described,
                "description",
                if dry_run { "would be set" } else { "set" },
            ),
            (self.unused, "description", "of groups that are not here"),
        ];
        for (count, what, how) in remarks {
            if count > 0 {
                text.push_str(&format!(", {} {how}", output::count(count, what)));
            }
        }
        match self.raised {
            Some(raised) => {
                let raised = output::count(raised, "group");
                let how = if dry_run { " would be" } else { "" };
                text.push_str(&format!("; {raised}{how} raised"));
            }
            None if self.existing > 0 => text.push_str(
                "; status and numbers of those stay as they are: `--raise` or `newsreel group set` changes them",
            ),
            None => {}
        }
        text.push('\n');
        let is_higher = |row: &&Value| row["high"].as_u64() > row["listed"].as_u64();
        let (higher, lower): (Vec<_>, Vec<_>) = self.high_differs.iter().partition(is_higher);
        text.push_str(&marks(
            &higher,
            "the high mark is higher than the listed one, and stays so as numbers are never given twice",
        ));
        text.push_str(&marks(
            &lower,
            "the high mark is lower than the listed one, and stays so: `--raise` or `newsreel group set NAME --high NUMBER` raises it",
        ));
        text
    }
}

/// A line about groups whose high mark is not the listed one, with the first of them.
fn marks(groups: &[&Value], how: &str) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let first = groups.iter().take(NAMES_SHOWN_MAX).map(|row| {
        let name = output::cell(&row["name"]);
        format!("{name} ({}, listed {})", row["high"], row["listed"])
    });
    let first = first.collect::<Vec<_>>().join(", ");
    let more = match groups.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let count = output::count(groups.len() as u64, "group");
    format!("of {count} {how}: {first}{more}\n")
}

/// Makes the groups and describes those that were there; `None` when bad lines forbid it.
fn make(access: &mut Access, listed: &Listed, args: &Args) -> Result<Option<Made>> {
    if listed.lacks_groups() && !args.skip_bad {
        return Ok(None);
    }
    let groups = in_order(&listed.groups);
    let creator = &args.creator;
    let (mut made, mut existing) = in_batches(access, &alone(&groups), creator, true)?;
    if !args.dry_run {
        (made, existing) = in_batches(access, &groups, creator, false)?;
    }
    if args.raise {
        made.raised = Some(raise(access, &groups, &existing, args.dry_run)?);
        let is_higher = |row: &Value| row["high"].as_u64() > row["listed"].as_u64();
        made.high_differs.retain(is_higher);
    }
    let described = groups
        .into_iter()
        .filter(|group| !group.description.is_empty() && existing.contains(group.name.as_str()));
    let mut descriptions: Vec<(String, String)> = described
        .map(|group| (group.name, group.description))
        .collect();
    descriptions.extend(listed.others.clone());
    for batch in batches(&descriptions, |(name, text)| name.len() + text.len()) {
        let request = Request::GroupDescribe {
            descriptions: batch.to_vec(),
            dry_run: args.dry_run,
        };
        let done = access.ask(request).with_context(|| {
            format!(
                "after {} had been added",
                output::count(made.added, "group")
            )
        })?;
        made.described += done["described"].as_u64().unwrap_or(0);
        made.unused += done["unknown"].as_u64().unwrap_or(0);
    }
    Ok(Some(made))
}

/// Gives groups that were there the listed high mark, where theirs is lower, and the listed status, where that is not the usual one; how
/// many.
fn raise(
    access: &mut Access,
    groups: &[ListedGroup],
    existing: &HashSet<String>,
    dry_run: bool,
) -> Result<u64> {
    let wildmat = "*".to_owned();
    let there = access.ask(Request::GroupList { wildmat })?;
    let there: HashMap<&str, &Value> = there
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|group| Some((group["name"].as_str()?, group)))
        .collect();
    let mut raised = 0;
    for group in groups.iter().filter(|it| existing.contains(&it.name)) {
        let Some(now) = there.get(group.name.as_str()) else {
            continue;
        };
        let high = Some(group.high).filter(|high| now["high"].as_u64() < Some(*high));
        let status = Some(group.status.as_str());
        let status = status.filter(|it| *it != "y" && now["status"].as_str() != Some(it));
        if high.is_none() && status.is_none() {
            continue;
        }
        raised += 1;
        if !dry_run {
            let request = Request::GroupSet {
                name: group.name.clone(),
                status: status.map(str::to_owned),
                description: None,
                high,
                dry_run: false,
            };
            let change = || {
                format!(
                    "after {} had been raised",
                    output::count(raised - 1, "group")
                )
            };
            access.ask(request).with_context(change)?;
        }
    }
    Ok(raised)
}

/// INN's `active.times` beside its `active`.
fn times_beside(file: &Path) -> Option<PathBuf> {
    let beside = file.with_file_name("active.times");
    let is_there = file.ends_with("active") && RealDisk.exists(&beside).unwrap_or(false);
    is_there.then_some(beside)
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

/// Moves groups that could give no number to the bad lines.
fn check_marks(access: &mut Access, listed: &mut Listed, file: &str) -> Result<()> {
    if listed.groups.iter().all(|group| group.high == 0) {
        return Ok(());
    }
    let status = access.ask(Request::Status)?;
    let end = status["high_end"].as_u64().unwrap_or(u64::MAX);
    let wrong = listed.groups.iter().filter(|group| group.high >= end);
    let wrong: HashMap<String, String> = wrong
        .map(|ListedGroup { name, high, .. }| {
            let what = format!(
                "{name} cannot go on above {high}: {end} is the last number while engine.number_overflow is \"stop\" \
                 (\"larger\" goes on)"
            );
            (name.clone(), what)
        })
        .collect();
    listed.refuse(file, &wrong);
    Ok(())
}

/// Moves aliases that cannot be made to the bad lines.  An alias is filed in a group that is there, or in one that the
/// file lists, and that is no alias itself.  What exists already stays as it is, whatever the file says of it, unless it is raised.
fn check_aliases(
    access: &mut Access,
    listed: &mut Listed,
    (file, raises): (&str, bool),
) -> Result<()> {
    if listed.groups.iter().all(|group| target(group).is_none()) {
        return Ok(());
    }
    let wildmat = "*".to_owned();
    let there = access.ask(Request::GroupList { wildmat })?;
    let existing: HashMap<&str, &str> = there
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|group| Some((group["name"].as_str()?, group["status"].as_str()?)))
        .collect();
    let is_changed = |group: &ListedGroup| {
        !existing.contains_key(group.name.as_str()) || (raises && group.status != "y")
    };
    let mut statuses = existing.clone();
    for group in listed.groups.iter().filter(|it| is_changed(it)) {
        statuses.insert(&group.name, &group.status);
    }
    let wrong = |group: &ListedGroup| {
        let target = target(group).filter(|_| is_changed(group))?;
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

/// Why nothing was imported; the lines stand in the JSON already, if that was asked for.
fn refusal(listed: &Listed, json: bool) -> String {
    let line = |bad: &active::BadLine| format!("{}:{}: {}\n", bad.file, bad.line, bad.what);
    let lines: String = match json {
        true => String::new(),
        false => listed.bad.iter().take(BAD_SHOWN_MAX).map(line).collect(),
    };
    let count = output::count(listed.bad.len() as u64, "bad line");
    format!("{lines}{count}, nothing was imported; --skip-bad imports the others")
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

/// Makes groups, or only tries to; also which of them were there.
fn in_batches(
    access: &mut Access,
    groups: &[ListedGroup],
    creator: &str,
    dry_run: bool,
) -> Result<(Made, HashSet<String>)> {
    let (mut made, mut existing) = (Made::default(), HashSet::new());
    let octets = |group: &ListedGroup| {
        let by = group.made.as_ref().map_or(0, |(_, by)| by.len());
        group.name.len() + group.status.len() + group.description.len() + by + 64
    };
    for batch in batches(groups, octets) {
        let request = Request::GroupAdd {
            groups: batch.to_vec(),
            creator: creator.to_owned(),
            keep_existing: true,
            dry_run: dry_run.then_some(usize::try_from(made.added).unwrap_or(usize::MAX)),
        };
        let done = access.ask(request).with_context(|| {
            let added = output::count(made.added, "group");
            match dry_run {
                true => format!("nothing was imported, and an import would fail after {added}"),
                false => format!("after {added} had been added"),
            }
        })?;
        let list = |key: &str| done[key].as_array().cloned().unwrap_or_default();
        made.added += list("added").len() as u64;
        let there = list("existing");
        made.existing += there.len() as u64;
        existing.extend(there.iter().filter_map(Value::as_str).map(str::to_owned));
        let dated = |it: &&ListedGroup| it.made.is_some() && !existing.contains(&it.name);
        made.dated += batch.iter().filter(dated).count() as u64;
        made.high_differs.extend(list("high_differs"));
    }
    Ok((made, existing))
}

/// What goes together in one request: not too many, and no more text than one log frame surely holds.
fn batches<T>(mut all: &[T], octets_of: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let mut batches = Vec::new();
    while !all.is_empty() {
        let mut octets = 0;
        let fits = |one: &&T| {
            octets += octets_of(one);
            octets <= BATCH_OCTETS
        };
        let len = all.iter().take(BATCH_GROUPS).take_while(fits).count();
        let (batch, rest) = all.split_at(len.max(1));
        batches.push(batch);
        all = rest;
    }
    batches
}
