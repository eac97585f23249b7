//! `newsreel group`: list, show, add, set, remove and import groups.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use newsreel_host::RealDisk;
use serde_json::{Value, json};

use crate::access::{self, Access, SpoolArgs};
use crate::active::{self, ListedGroup, Named};
use crate::control::request::Request;
use crate::output;

/// Groups sent in one request.
const IMPORT_BATCH: usize = 1000;

/// The largest list of groups that is read.
const FILE_OCTETS_MAX: usize = 256 << 20;

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
    List {
        /// Only those that match, as in 'comp.*,!comp.binaries.*'
        #[arg(default_value = "*")]
        wildmat: String,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Show a group
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
    Set(SetArgs),
    /// Remove groups; their articles stay where else they are filed
    Remove {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Make the groups that a file lists; high marks are kept
    #[command(
        after_help = "FILE has a name on each line, or is an active file (name, high, low, flag).\n\
                      Groups that exist already stay as they are. If a line is bad, nothing is imported.\n\n\
                      Example:\n  newsreel group import /var/lib/news/active /var/lib/news/newsgroups"
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
        Verb::Remove { names, spool } => remove(names, spool),
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

fn remove(names: &[String], spool: &SpoolArgs) -> Result<()> {
    let request = |name: &String| Request::GroupRemove { name: name.clone() };
    if spool.read_only {
        bail!("this changes the spool, which --read-only forbids");
    }
    let mut access = Access::open(spool)?;
    let removed: Result<Vec<Value>> = names.iter().map(|name| access.ask(request(name))).collect();
    access.close()?;
    let removed = removed?;
    if spool.json {
        return output::json(&json!({"removed": removed}));
    }
    said(&format!("removed {}", names.join(" ")))
}

fn import(args: &ImportArgs) -> Result<()> {
    let ImportArgs {
        file,
        newsgroups,
        skip_bad,
        creator,
        spool,
    } = args;
    if spool.read_only {
        bail!("this changes the spool, which --read-only forbids");
    }
    let octets = read(file)?;
    let names = newsgroups.as_deref().map(read).transpose()?;
    let file_name = file.display().to_string();
    let names_name = newsgroups
        .as_ref()
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    let listed = active::read(
        Named {
            name: &file_name,
            octets: &octets,
        },
        names.as_ref().map(|octets| Named {
            name: &names_name,
            octets,
        }),
    );
    if !listed.bad.is_empty() && !*skip_bad {
        let lines: Vec<String> = listed
            .bad
            .iter()
            .map(|bad| format!("{}:{}: {}", bad.file, bad.line, bad.what))
            .collect();
        let count = lines.len();
        let lines = lines.join("\n");
        bail!("{lines}\n{count} bad lines, nothing was imported; --skip-bad imports the others");
    }
    let mut access = Access::open(spool)?;
    let totals = import_batches(&mut access, &listed.groups, creator);
    access.close()?;
    let (added, existing) = totals?;
    let summary = json!({
        "added": added,
        "existing": existing,
        "bad": listed.bad,
        "descriptions_unused": listed.descriptions_unused,
    });
    if spool.json {
        return output::json(&summary);
    }
    let mut text = format!("{added} groups added, {existing} existed already");
    if !listed.bad.is_empty() {
        text.push_str(&format!(", {} bad lines skipped", listed.bad.len()));
    }
    if listed.descriptions_unused > 0 {
        text.push_str(&format!(
            ", {} descriptions of other groups",
            listed.descriptions_unused
        ));
    }
    said(&text)
}

fn import_batches(
    access: &mut Access,
    groups: &[ListedGroup],
    creator: &str,
) -> Result<(usize, usize)> {
    let (mut added, mut existing) = (0, 0);
    let count = |done: &Value, key: &str| done[key].as_array().map_or(0, Vec::len);
    for batch in groups.chunks(IMPORT_BATCH) {
        let request = Request::GroupAdd {
            groups: batch.to_vec(),
            creator: creator.to_owned(),
            keep_existing: true,
        };
        let done = access
            .ask(request)
            .with_context(|| format!("after {added} groups had been added"))?;
        added += count(&done, "added");
        existing += count(&done, "existing");
    }
    Ok((added, existing))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    newsreel_host::read_whole(&RealDisk, path, FILE_OCTETS_MAX)
        .with_context(|| format!("cannot read {}", path.display()))
}
