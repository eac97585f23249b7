//! `newsreel group`: list, show, add, set, remove and import groups.

mod import;

use anyhow::{Result, bail};
use serde_json::Value;

pub(crate) use self::import::FILE_OCTETS_MAX;
use crate::access::{self, LookArgs, SpoolArgs};
use crate::active::{self, ListedGroup};
use crate::control::request::Request;
use crate::output;

/// Aliases that lead nowhere, named one by one below a list of groups.
const ASTRAY_SHOWN_MAX: usize = 20;

/// Groups that are named when they are removed.
const NAMES_SHOWN_MAX: usize = 20;

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
        spool: LookArgs,
    },
    /// Show a group
    #[command(after_help = "Example:\n  newsreel group show misc.test")]
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        spool: LookArgs,
    },
    /// Make groups
    #[command(after_help = "Example:\n  newsreel group add misc.test --description 'For tests'")]
    Add(AddArgs),
    /// Change a group, or all that match
    #[command(
        after_help = "Examples:\n  newsreel group set misc.test --description 'For tests'\n  \
                      newsreel group set misc.old --status =misc.test\n  \
                      newsreel group set 'alt.*,!alt.binaries.*' --status n\n  \
                      newsreel group set 'comp.*' --high 5000 --dry-run"
    )]
    Set(SetArgs),
    /// Remove groups; their articles stay where else they are filed
    #[command(
        after_help = "All of them are removed, or none if one does not exist. A group that is made again goes on above \
                      its old numbers.\n\n\
                      Examples:\n  newsreel group remove misc.old misc.older\n  \
                      newsreel group remove 'alt.binaries.*' --dry-run"
    )]
    Remove {
        /// Names, and wildmats as in 'alt.*,!alt.test'
        #[arg(required = true, value_name = "NAME|WILDMAT")]
        names: Vec<String>,
        /// Change nothing; say what would be removed
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        spool: LookArgs,
    },
    /// Make do without a file of groups that is lost
    #[command(
        after_help = "`newsreel status` and `newsreel check` name the file as long as it is missing: groups that were only in it \
                      are not known, but for those whose articles or log records still name them. It is better to put the \
                      file back from a copy while the server is stopped. What is left of the file is removed.\n\n\
                      Example:\n  newsreel group forget-lost"
    )]
    ForgetLost {
        #[command(flatten)]
        spool: SpoolArgs,
    },
    /// Make the groups that a file lists; high marks are kept
    #[command(
        after_help = "FILE has a name on each line, or is an active file (name, high, low, flag); a dash is the standard input. \
                      Groups that exist already get their descriptions; their status and numbers stay as they are, or with --raise \
                      get the listed ones where those are higher, or other than y. If a line of FILE is \
                      bad, nothing is imported; bad lines of a newsgroups file are told and left out. \
                      Groups that are made get the times and creators of the file active.times beside an active file, or of --times.\n\n\
                      Examples:\n  newsreel group import /var/lib/news/active /var/lib/news/newsgroups --dry-run\n  \
                      newsreel group import /var/lib/news/active /var/lib/news/newsgroups\n  \
                      newsreel group import /dev/null /var/lib/news/newsgroups    # descriptions alone\n  \
                      newsreel bench corpus --list-groups names | newsreel group import -"
    )]
    Import(import::Args),
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
    /// Its name, or a wildmat as in 'alt.*,!alt.test'
    #[arg(value_name = "NAME|WILDMAT")]
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
    /// Change nothing; say which groups would be changed
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    spool: LookArgs,
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
        Verb::ForgetLost { spool } => forget_lost(spool),
        Verb::Import(args) => import::run(args),
    }
}

fn add(args: &AddArgs) -> Result<()> {
    active::status(args.status.as_bytes()).map_err(anyhow::Error::msg)?;
    if let Some(name) = args.names.iter().find(|name| active::is_example(name)) {
        bail!(
            "no group can be called {name}: RFC 5536 keeps `example` for examples, and nothing could be posted to it"
        );
    }
    let group = |name: &String| ListedGroup {
        name: name.clone(),
        status: args.status.clone(),
        description: args.description.clone(),
        high: args.high,
        made: None,
    };
    let request = Request::GroupAdd {
        groups: args.names.iter().map(group).collect(),
        creator: args.creator.clone(),
        keep_existing: false,
        dry_run: None,
    };
    let done = access::change(&args.spool, request)?;
    for name in args.names.iter().filter(|name| active::is_reserved(name)) {
        output::warning(&format!(
            "{name} begins with a name that RFC 5536 reserves for what is no newsgroup"
        ));
    }
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
        dry_run,
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
        dry_run: *dry_run,
    };
    let changed = access::ask(spool, request)?;
    if *dry_run {
        return would_change(spool, &changed);
    }
    match changed.as_array() {
        Some(groups) if !spool.json => said(&format!(
            "changed {}",
            output::count(groups.len() as u64, "group")
        )),
        _ => group_said(spool, &changed),
    }
}

/// The groups as they are, which would be changed.
fn would_change(spool: &SpoolArgs, answer: &Value) -> Result<()> {
    if spool.json {
        return output::json(answer);
    }
    let rows = answer["changed"].as_array().map_or(&[][..], Vec::as_slice);
    output::text(&output::table(COLUMNS, rows))?;
    let count = output::count(rows.len() as u64, "group");
    said(&format!("dry run: {count} would be changed"))
}

fn forget_lost(spool: &SpoolArgs) -> Result<()> {
    let done = access::change(spool, Request::GroupForgetLost)?;
    if spool.json {
        return output::json(&done);
    }
    said(&match done["files"].as_u64() {
        None | Some(0) => "no file of groups is lost".to_owned(),
        Some(files) => format!(
            "{} lost; the groups are what `newsreel group list` shows",
            output::count(files, "file")
        ),
    })
}

fn said(line: &str) -> Result<()> {
    output::said(&format!("{line}\n"))
}

fn groups_said(spool: &SpoolArgs, groups: &Value) -> Result<()> {
    if spool.json {
        return output::json(groups);
    }
    let rows = groups.as_array().map(Vec::as_slice).unwrap_or_default();
    output::text(&output::table(COLUMNS, rows))?;
    let astray: Vec<&Value> = rows
        .iter()
        .filter(|row| !row["leads_nowhere"].is_null())
        .collect();
    for row in astray.iter().take(ASTRAY_SHOWN_MAX) {
        let (name, why) = (&row["name"], &row["leads_nowhere"]);
        output::warning(&leads_nowhere(&output::cell(name), &output::cell(why)));
    }
    match astray.len().saturating_sub(ASTRAY_SHOWN_MAX) {
        0 => {}
        more => output::warning(&format!("and {more} more of these aliases")),
    }
    Ok(())
}

/// What an alias does that leads nowhere, and what to do.
pub(super) fn leads_nowhere(name: &str, why: &str) -> String {
    format!(
        "{name} is an alias, but {why}: articles for it are filed nowhere; `newsreel group set {name} --status \
         =other.group` leads it elsewhere, `newsreel group remove {name}` takes it out"
    )
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
        ("status", status(group)),
        (
            "description",
            output::or_dash(output::cell(&group["description"])),
        ),
        ("made", output::date(&group["created"])),
        ("made by", output::cell(&group["creator"])),
    ]))
}

/// A status field, and what is wrong with it.
fn status(group: &Value) -> String {
    let status = output::cell(&group["status"]);
    match group["leads_nowhere"].as_str() {
        Some(why) => format!("{status} (leads nowhere: {why})"),
        None => status,
    }
}

fn remove(names: &[String], dry_run: bool, spool: &LookArgs) -> Result<()> {
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
            let alias = output::cell(alias);
            format!("{}\n", leads_nowhere(&alias, "what it leads to is removed"))
        })
        .collect();
    let count = output::count(rows.len() as u64, "group");
    if dry_run {
        output::text(&output::table(COLUMNS, rows))?;
        return output::said(&format!("{left}dry run: {count} would be removed\n"));
    }
    output::said(&left)?;
    match rows.len() {
        // Who gave a wildmat wants to know how many, not to read them all.
        ..=NAMES_SHOWN_MAX => said(&format!("removed {count}: {}", named.join(" "))),
        _ => said(&format!("removed {count}")),
    }
}
