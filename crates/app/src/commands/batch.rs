//! `newsreel batch`: writes the batches of a peer's feeds, and gives them to a program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use newsreel_engine::Engine;
use newsreel_feed::{Batching, Packing};
use newsreel_host::{Disk as _, RealDisk};
use serde_json::{Value, json};

use crate::access::{self, Access, LookArgs, SpoolArgs};
use crate::batches::outgoing;
use crate::control::Progress;
use crate::control::request::Request;
use crate::output;
use crate::server::peers;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A feed with `kind = \"batch\"` of a [[peer]] waits in the log until this command writes what has come since the last time. A \
                  batch has its name when all of it is on disk and the feed stands behind it: whoever takes it away may do so at once, \
                  and nothing is lost or written twice, also when this is killed. PROGRAM gets each batch on its standard input, oldest \
                  first; when it ends well the batch is removed, else it stays, and those behind it.\n\n\
                  Examples:\n  newsreel batch leaf.example.org\n  \
                  newsreel batch leaf.example.org --packing zstd --octets 100000\n  \
                  newsreel batch leaf.example.org -- uux - -r -gd 'leaf!rnews'"
)]
pub(crate) struct Args {
    /// The peer, or one feed as PEER/FEED
    peer: String,
    /// The octets of a batch before it is packed [default: `batch_octets_max` of the feed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    octets: Option<u64>,
    /// How batches are packed [default: `packing` of the feed]
    #[arg(long, value_name = "HOW", value_parser = packing)]
    packing: Option<Packing>,
    /// Only say how much would be written
    #[arg(long)]
    dry_run: bool,
    /// Gets each batch on its standard input
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "dry_run")]
    program: Vec<String>,
    #[command(flatten)]
    spool: SpoolArgs,
}

fn packing(word: &str) -> Result<Packing, String> {
    Ok(match word {
        "none" => Packing::None,
        "gzip" => Packing::Gzip,
        "bzip2" => Packing::Bzip2,
        "zstd" => Packing::Zstd,
        _ => return Err("say none, gzip, bzip2 or zstd".to_owned()),
    })
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let wanted = Batching {
        name: args.peer.clone(),
        octets_max: args.octets,
        packing: args.packing,
        dry_run: args.dry_run,
    };
    let mut report = match Access::open(&LookArgs::from(&args.spool), true)? {
        Access::Offline(engine) => alone(engine, args, &wanted)?,
        mut live @ Access::Live(_) => live.ask(Request::Batch(wanted))?,
    };
    let handed = match args.program.as_slice() {
        [] => Ok(0),
        [program, words @ ..] => hand_over(program, words, &files(&report), &mut report),
    };
    match args.spool.json {
        true => output::json(&report)?,
        false => output::text(&said(&report))?,
    }
    handed.map(|_| ())
}

/// Writes them with nobody else at work on the spool.
fn alone(engine: Box<Engine>, args: &Args, wanted: &Batching) -> Result<Value> {
    let config = access::config_of(&args.spool)?;
    let engine: Arc<Engine> = Arc::from(engine);
    let peers = peers::alone(&engine, &config, !wanted.dry_run)?;
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build()?;
    let bar = access::bar();
    let mut told = |at: Progress| {
        bar.set_length(at.total);
        bar.set_position(at.done);
        true
    };
    let report = runtime.block_on(outgoing::write(&peers, wanted, &mut told));
    bar.finish_and_clear();
    drop(runtime);
    engine.shutdown()?;
    report.map_err(anyhow::Error::msg)
}

/// The batches that are there, oldest first.
fn files(report: &Value) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for feed in feeds(report) {
        let waiting = feed["waiting"].as_array().into_iter().flatten();
        let added = feed["batches"].as_array().into_iter().flatten();
        let added = added.map(|batch| &batch["file"]);
        let paths = waiting.chain(added).filter_map(Value::as_str);
        all.extend(paths.map(PathBuf::from));
    }
    all
}

/// Gives each batch to the program, and removes it when that ends well; how many those are.
fn hand_over(
    program: &str,
    words: &[String],
    files: &[PathBuf],
    report: &mut Value,
) -> Result<usize> {
    let mut handed = 0;
    let folders: BTreeSet<&Path> = files.iter().filter_map(|path| path.parent()).collect();
    let locks = folders.into_iter().map(|folder| RealDisk.lock(folder));
    let _alone: Vec<_> = locks
        .collect::<Result<_, _>>()
        .context("another command may be handing these batches over")?;
    let done = files.iter().try_for_each(|path| {
        // Another command may have handed it over since they were listed.
        if !RealDisk.exists(path)? {
            return Ok(());
        }
        give(program, words, path)?;
        RealDisk.remove(path)?;
        handed += 1;
        anyhow::Ok(())
    });
    report["handed_over"] = json!(handed);
    done.map(|()| handed)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a file that a program reads by itself: no Disk gives one out"
)]
fn give(program: &str, words: &[String], path: &Path) -> Result<()> {
    let file = std::fs::File::open(path)
        .with_context(|| format!("cannot read the batch {}", path.display()))?;
    let status = Command::new(program)
        .args(words)
        .stdin(file)
        // What it says is for whoever sees the errors: the standard output is this command's report.
        .stdout(Stdio::from(std::io::stderr()))
        .status()
        .with_context(|| format!("cannot run {program}"))?;
    if !status.success() {
        bail!(
            "{program} failed ({status}); the batch stays in {}, with those behind it",
            path.display()
        );
    }
    Ok(())
}

fn feeds(report: &Value) -> impl Iterator<Item = &Value> {
    report["feeds"].as_array().into_iter().flatten()
}

fn said(report: &Value) -> String {
    let mut said = String::new();
    for feed in feeds(report) {
        let number = |key: &str| feed[key].as_u64().unwrap_or(0);
        let name = format!(
            "{}/{}",
            output::cell(&feed["peer"]),
            output::cell(&feed["feed"])
        );
        let (articles, octets) = (
            output::count(number("articles"), "article"),
            output::octets(&feed["octets"]),
        );
        let batches = feed["batches"].as_array().map_or(0, Vec::len) as u64;
        said += &match report["dry_run"] == true {
            true => format!("{name}: {articles}, {octets}, would go\n"),
            false => format!(
                "{name}: {articles}, {octets}, in {}\n",
                output::count(batches, "batch")
            ),
        };
        for batch in feed["batches"].as_array().into_iter().flatten() {
            said += &format!(
                "  {}: {}, {}\n",
                output::cell(&batch["file"]),
                output::count(batch["articles"].as_u64().unwrap_or(0), "article"),
                output::octets(&batch["packed_octets"])
            );
        }
        let waiting = feed["waiting"].as_array().map_or(0, Vec::len) as u64;
        if waiting > 0 {
            said += &format!(
                "  there before, in {}: {}\n",
                output::cell(&feed["folder"]),
                output::count(waiting, "batch")
            );
        }
        if number("gone") > 0 {
            said += &format!(
                "  gone before they could be written: {}\n",
                output::count(number("gone"), "article")
            );
        }
        for id in feed["gone_ids"].as_array().into_iter().flatten() {
            said += &format!("    {}\n", output::cell(id));
        }
        if number("missed") > 0 {
            said += &format!(
                "  at most {} missed: the log was kept no longer\n",
                output::count(number("missed"), "article")
            );
        }
        if let Some(why) = feed["stopped"].as_str() {
            said += &format!("  not all: {why}\n");
        }
    }
    if let Some(handed) = report["handed_over"].as_u64() {
        said += &format!("{} handed over\n", output::count(handed, "batch"));
    }
    said
}
