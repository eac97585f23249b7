//! `newsreel group`: list, show, add, set, remove and import groups.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use newsreel_host::RealDisk;
use serde_json::{Value, json};

use crate::access::{self, Access, SpoolArgs};
use crate::active::{self, Listed, ListedGroup, Named};
use crate::control::request::Request;
use crate::output;

/// Groups sent in one request.
const IMPORT_BATCH: usize = 1000;

/// ... and octets of them: less than half of the smallest log segment that is taken.
const BATCH_OCTETS: usize = 128 << 10;

/// The largest list of groups that is read.
pub(crate) const FILE_OCTETS_MAX: usize = 256 << 20;

const COLUMNS: &[(&str, &str)] = &[
    ("GROUP", "name"),
    ("LOW", "low"),
    ("HIGH", "high"),
    ("COUNT", "count"),
    ("STATUS", "status"),
    ("DESCRIPTION", "description"),
];

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// List groups
    #[command(
        after_help = "Examples:\n  newsreel group list\n  newsreel group list 'comp.*,!comp.binaries.*' --json"
    )]
    List {
        /// Only those that match, as in 'comp.*,!comp.binaries.*'
        #[arg(default_value = "*")]
        wildmat: String,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Show a group
    #[command(after_help = "Example:\n  newsreel group show misc.test")]
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Make groups
    #[command(after_help = "Example:\n  newsreel group add misc.test --description 'For tests'")]
    Add(AddArgs),
    /// Change a group
    #[command(
        after_help = "Examples:\n  newsreel group set misc.test --description 'For tests'\n  \
                      newsreel group set misc.old --status =misc.test"
    )]
    Set(SetArgs),
    /// Remove groups; their articles stay where else they are filed
    #[command(
        after_help = "All of them are removed, or none if one does not exist. A group that is made again goes on above \
                      its old numbers.\n\n\
                      Examples:\n  newsreel group remove misc.old --dry-run\n  newsreel group remove misc.old misc.older"
    )]
    Remove {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
        /// Change nothing; say what would be removed
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Make the groups that a file lists; high marks are kept
    #[command(
        after_help = "FILE has a name on each line, or is an active file (name, high, low, flag).\n\
                      Groups that exist already stay as they are. If a line is bad, nothing is imported.\n\n\
                      Examples:\n  newsreel group import /var/lib/news/active /var/lib/news/newsgroups --dry-run\n  \
                      newsreel group import /var/lib/news/active /var/lib/news/newsgroups"
    )]
    Import(ImportArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    /// Their names
    #[arg(required = true)]
    names: Vec<String>,
    /// y, n, m, j, x or =other.group
    #[arg(long, default_value = "y")]
    status: String,
    /// The line of LIST NEWSGROUPS
    #[arg(long, default_value = "")]
    description: String,
    /// Numbering goes on above this
    #[arg(long, default_value_t = 0)]
    high: u64,
    /// Who makes them, as told by LIST ACTIVE.TIMES
    #[arg(long, default_value = "newsreel")]
    creator: String,
    #[command(flatten)]
    spool: SpoolArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SetArgs {
    /// Its name
    name: String,
    /// y, n, m, j, x or =other.group
    #[arg(long)]
    status: Option<String>,
    /// The line of LIST NEWSGROUPS
    #[arg(long)]
    description: Option<String>,
    /// Numbering goes on above this, if it is higher
    #[arg(long)]
    high: Option<u64>,
    #[command(flatten)]
    spool: SpoolArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// Names, or an active file
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
    spool: SpoolArgs,
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    match verb {
        Verb::List { wildmat, spool } => {
            let groups = access::ask(
                spool,
                Request::GroupList {
                    wildmat: wildmat.clone(),
                },
            )?;
            groups_said(spool, &groups)
        }
        Verb::Show { name, spool } => {
            let group = access::ask(spool, Request::GroupShow { name: name.clone() })?;
            group_said(spool, &group)
        }
        Verb::Add(args) => add(args),
        Verb::Set(args) => set(args),
        Verb::Remove {
            names,
            dry_run,
            spool,
        } => remove(names, *dry_run, spool),
        Verb::Import(args) => import(args),
    }
}

fn add(args: &AddArgs) -> Result<()> {
    active::status(args.status.as_bytes()).map_err(anyhow::Error::msg)?;
    let group = |name: &String| ListedGroup {
        name: name.clone(),
        status: args.status.clone(),
        description: args.description.clone(),
        high: args.high,
    };
    let request = Request::GroupAdd {
        groups: args.names.iter().map(group).collect(),
        creator: args.creator.clone(),
        keep_existing: false,
        dry_run: None,
    };
    let done = access::ask(&args.spool, request)?;
    if args.spool.json {
        return output::json(&done);
    }
    said(&format!("added {}", args.names.join(" ")))
}

fn set(args: &SetArgs) -> Result<()> {
    let SetArgs {
        name,
        status,
        description,
        high,
        spool,
    } = args;
    if status.is_none() && description.is_none() && high.is_none() {
        bail!("give --status, --description or --high");
    }
    if let Some(status) = status {
        active::status(status.as_bytes()).map_err(anyhow::Error::msg)?;
    }
    let request = Request::GroupSet {
        name: name.clone(),
        status: status.clone(),
        description: description.clone(),
        high: *high,
    };
    group_said(spool, &access::ask(spool, request)?)
}

fn said(line: &str) -> Result<()> {
    output::text(&format!("{line}\n"))
}

fn groups_said(spool: &SpoolArgs, groups: &Value) -> Result<()> {
    if spool.json {
        return output::json(groups);
    }
    let rows = groups.as_array().map(Vec::as_slice).unwrap_or_default();
    output::text(&output::table(COLUMNS, rows))
}

fn group_said(spool: &SpoolArgs, group: &Value) -> Result<()> {
    if spool.json {
        return output::json(group);
    }
    output::text(&output::facts(&[
        ("group", output::cell(&group["name"])),
        ("low", output::cell(&group["low"])),
        ("high", output::cell(&group["high"])),
        ("count", output::cell(&group["count"])),
        ("status", output::cell(&group["status"])),
        ("description", output::cell(&group["description"])),
        ("made", output::date(&group["created"])),
        ("made by", output::cell(&group["creator"])),
    ]))
}

fn remove(names: &[String], dry_run: bool, spool: &SpoolArgs) -> Result<()> {
    let names = names.to_vec();
    let done = access::ask(spool, Request::GroupRemove { names, dry_run })?;
    if spool.json {
        return output::json(&done);
    }
    let rows = done["removed"].as_array().map(Vec::as_slice);
    let rows = rows.unwrap_or_default();
    let named: Vec<String> = rows.iter().map(|row| output::cell(&row["name"])).collect();
    let left = done["aliases_left"].as_array().into_iter().flatten();
    let left: String = left
        .map(|alias| {
            format!(
                "{} is an alias of one of them: articles for it are filed nowhere\n",
                output::cell(alias)
            )
        })
        .collect();
    if dry_run {
        output::text(&output::table(COLUMNS, rows))?;
        let count = rows.len();
        return output::text(&format!("{left}dry run: {count} groups would be removed\n"));
    }
    output::text(&left)?;
    said(&format!("removed {}", named.join(" ")))
}

fn import(args: &ImportArgs) -> Result<()> {
    let ImportArgs {
        file,
        newsgroups,
        skip_bad,
        creator,
        dry_run,
        spool,
    } = args;
    if spool.read_only && !dry_run {
        bail!("this changes the spool, which --read-only forbids");
    }
    let listed = listed(file, newsgroups.as_deref(), *skip_bad)?;
    let mut access = Access::open(spool, !dry_run)?;
    let remarks = remarks(&listed);
    let groups = in_order(listed.groups, *dry_run);
    let totals = import_batches(&mut access, &groups, creator, *dry_run);
    access.close()?;
    let (added, existing) = totals?;
    let mut summary = json!({
        "added": added,
        "existing": existing,
        "bad": listed.bad,
        "descriptions_unused": listed.descriptions_unused,
    });
    if *dry_run {
        summary["dry_run"] = true.into();
    }
    if spool.json {
        return output::json(&summary);
    }
    let text = match dry_run {
        true => format!("dry run: {added} groups would be added, {existing} exist already"),
        false => format!("{added} groups added, {existing} existed already"),
    };
    said(&(text + &remarks))
}

/// What the files list; bad lines are an error unless they are to be skipped.
fn listed(file: &Path, newsgroups: Option<&Path>, skip_bad: bool) -> Result<Listed> {
    let octets = read(file)?;
    let names = newsgroups.map(read).transpose()?;
    let file_name = file.display().to_string();
    let names_name = newsgroups.map(|path| path.display().to_string());
    let listed = active::read(
        Named {
            name: &file_name,
            octets: &octets,
        },
        names.as_ref().map(|octets| Named {
            name: names_name.as_deref().unwrap_or_default(),
            octets,
        }),
    );
    if !listed.bad.is_empty() && !skip_bad {
        let lines: Vec<String> = listed
            .bad
            .iter()
            .map(|bad| format!("{}:{}: {}", bad.file, bad.line, bad.what))
            .collect();
        let count = lines.len();
        let lines = lines.join("\n");
        bail!("{lines}\n{count} bad lines, nothing was imported; --skip-bad imports the others");
    }
    Ok(listed)
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

/// Targets before their aliases, so that a batch never names a group of a later one.  A dry run makes nothing that a
/// later batch could find, so an alias of a listed group counts as a group of its own there.
fn in_order(groups: Vec<ListedGroup>, dry_run: bool) -> Vec<ListedGroup> {
    let (mut groups, mut aliases): (Vec<_>, Vec<_>) = groups
        .into_iter()
        .partition(|group| !group.status.starts_with('='));
    if dry_run {
        let names: HashSet<String> = groups.iter().map(|group| group.name.clone()).collect();
        for alias in &mut aliases {
            if alias
                .status
                .strip_prefix('=')
                .is_some_and(|target| names.contains(target))
            {
                alias.status = "y".to_owned();
            }
        }
    }
    groups.append(&mut aliases);
    groups
}

fn import_batches(
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
        let len = groups.iter().take(IMPORT_BATCH).take_while(fits).count();
        let (batch, rest) = groups.split_at(len.max(1));
        batches.push(batch);
        groups = rest;
    }
    batches
}

fn read(path: &Path) -> Result<Vec<u8>> {
    newsreel_host::read_whole(&RealDisk, path, FILE_OCTETS_MAX)
        .with_context(|| format!("cannot read {}", path.display()))
}
