//! `newsreel pull`: fetches articles from a server as a newsreader does, and says how the scheduled pulls stand.

use std::sync::Arc;

use anyhow::{Result, bail};
use newsreel_engine::Engine;
use newsreel_feed::Pulling;
use newsreel_host::{Clock, Disk, RealClock, RealDisk};
use serde_json::Value;

use crate::access::{self, Access, LookArgs, SpoolArgs};
use crate::control::Progress;
use crate::control::request::Request;
use crate::server::peers;
use crate::{output, pulling};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "HOST is the name of a [[pull]] of the configuration, which says its groups, TLS and login, or a server as host or host:port in \
                  clear. Of the groups there that match, those are fetched that are here. Articles are offered here as by a peer: each is \
                  accepted, known, rejected for a reason, put off until the next run, or gone. How far each group is stays in the spool, so that \
                  the next run fetches only what is new; of a new group the newest `first_articles_max` articles are fetched (1000). A run that does not come to its end says what it fetched and where it ended; \
                  the exit code is 1 then.\n\n\
                  Examples:\n  newsreel pull news.example.org 'comp.*' '!comp.binaries.*'\n  newsreel pull --list\n  newsreel pull upstream --dry-run"
)]
pub(crate) struct Args {
    /// A `[[pull]]` of the configuration, or a server
    #[arg(required_unless_present = "list")]
    host: Option<String>,
    /// Groups [default: its `groups` in the configuration]
    wildmats: Vec<String>,
    /// Say how the pulls of the configuration stand
    #[arg(long, conflicts_with_all = ["host", "wildmats", "dry_run"])]
    list: bool,
    /// Only count what would be fetched
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    spool: SpoolArgs,
}

const COLUMNS: &[(&str, &str)] = &[
    ("NAME", "name"),
    ("ADDRESS", "address"),
    ("GROUPS", "groups"),
    ("EVERY", "every"),
    ("LAST", "last"),
    ("ACCEPTED", "accepted"),
    ("STATE", "state"),
];

pub(crate) fn run(args: &Args) -> Result<()> {
    let Some(host) = args.host.clone() else {
        let report = access::change(&args.spool, Request::PullList)?;
        return match args.spool.json {
            true => output::json(&report),
            false => output::text(&listed(&report)),
        };
    };
    let groups = args.wildmats.join(",");
    let wanted = Pulling {
        host,
        groups: (!groups.is_empty()).then_some(groups),
        dry_run: args.dry_run,
    };
    let report = match Access::open(&LookArgs::from(&args.spool), true)? {
        Access::Offline(engine) => alone(engine, args, &wanted)?,
        mut live @ Access::Live(_) => live.ask(Request::Pull(wanted))?,
    };
    match args.spool.json {
        true => output::json(&report)?,
        false => output::text(&said(&report))?,
    }
    match report["failed"].as_str() {
        Some(why) => bail!("{why}"),
        None => Ok(()),
    }
}

/// Fetches with nobody else at work on the spool.
fn alone(engine: Box<Engine>, args: &Args, wanted: &Pulling) -> Result<Value> {
    let config = access::config_of(&args.spool)?;
    if !config.filter.is_empty() {
        engine.shutdown()?;
        bail!(
            "the filters of the configuration run in a server only: start it, and call this again"
        );
    }
    let engine: Arc<Engine> = Arc::from(engine);
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    if !wanted.dry_run {
        peers::feeds_begin(&engine, &config)?;
    }
    let pulls = pulling::open(&engine, &disk, &clock, &config.server.spool, &config.pull)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let bar = access::bar();
    let mut told = |at: Progress| {
        bar.set_length(at.total);
        bar.set_position(at.done);
        true
    };
    let report = runtime.block_on(pulling::pull(&pulls, wanted, &mut told));
    bar.finish_and_clear();
    drop(runtime);
    engine.shutdown()?;
    report.map_err(anyhow::Error::msg)
}

/// How the pulls of the configuration stand, as rows of a table.
pub(super) fn rows(report: &Value) -> Vec<Value> {
    let mut pulls = report["pulls"].as_array().cloned().unwrap_or_default();
    for pull in &mut pulls {
        let interval_s = pull["interval_s"].as_u64().unwrap_or(0);
        pull["every"] = match interval_s {
            0 => "on call".to_owned(),
            seconds => format!("{seconds} s"),
        }
        .into();
        pull["state"] = match (&pull["running"], pull["failed"].as_str()) {
            (Value::Bool(true), _) => "runs".to_owned(),
            (_, Some(why)) => why.to_owned(),
            _ => "waits".to_owned(),
        }
        .into();
        pull["last"] = output::or_dash(output::date(&pull["ended"])).into();
    }
    pulls
}

fn listed(report: &Value) -> String {
    match rows(report).as_slice() {
        [] => "there is no [[pull]] in the configuration\n".to_owned(),
        pulls => output::table(COLUMNS, pulls),
    }
}

fn said(report: &Value) -> String {
    let last = &report["last"];
    let number = |key: &str| last[key].as_u64().unwrap_or(0);
    let groups = output::count(number("groups"), "group");
    let rejected = last["rejected"].as_object();
    let reasons = || rejected.into_iter().flatten();
    let all: u64 = reasons().filter_map(|(_, many)| many.as_u64()).sum();
    let (known, deferred, gone) = (number("known"), number("deferred"), number("gone"));
    let mut said = match report["dry_run"] == true {
        true => format!(
            "{groups}: {} would be fetched, {known} known\n",
            output::count(number("wanted"), "article")
        ),
        false => format!(
            "{groups}, {}: {} accepted, {known} known, {all} rejected, {deferred} deferred, {gone} gone\n",
            output::octets(&last["octets"]),
            number("accepted"),
        ),
    };
    for (why, many) in reasons() {
        said += &format!("rejected {many}: {}\n", output::printable(why));
    }
    for (group, why) in last["refused"].as_object().into_iter().flatten() {
        let (group, why) = (output::printable(group), output::cell(why));
        said += &format!("{group} was not read to the end: {why}\n");
    }
    for group in last["renumbered"].as_array().into_iter().flatten() {
        said += &format!(
            "{}: its numbers were given anew there, and all of it was looked at\n",
            output::cell(group)
        );
    }
    said
}
