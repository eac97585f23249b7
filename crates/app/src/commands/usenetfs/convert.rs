//! `newsreel usenetfs convert`: a full directory turned over or back; killed anywhere, it goes on when it is run again.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use newsreel_host::{Folder, mounts};
use newsreel_layout::convert::{self, Options, Progress, Target};
use newsreel_layout::{Algorithm, Layout, Mark};
use newsreel_usenetfs::{Order, plan_as_json, report_as_json};
use serde_json::Value;

use super::through::{self, Told};
use crate::output;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Make a directory managed
    #[command(
        after_help = "Killed at any moment, it goes on when it is run again; `convert off` turns it round.\n\n\
                            Examples:\n  newsreel usenetfs convert on /var/spool/news/articles/alt/test\n  \
                            newsreel usenetfs convert on --algorithm yyy --dry-run /var/spool/news/articles/alt/test"
    )]
    On {
        /// How its entries are spread
        #[arg(long, default_value = "range1024", value_name = "NAME", value_parser = super::algorithm)]
        algorithm: Algorithm,
        #[command(flatten)]
        what: What,
    },
    /// Make a managed directory an ordinary one
    #[command(
        after_help = "Example:\n  newsreel usenetfs convert off /var/spool/news/articles/alt/test"
    )]
    Off {
        #[command(flatten)]
        what: What,
    },
    /// Have a directory managed by an algorithm, whatever it was
    #[command(
        after_help = "Example:\n  newsreel usenetfs convert to range4096 /var/spool/news/articles/alt/test"
    )]
    To {
        /// How its entries are spread
        #[arg(value_name = "ALGORITHM", value_parser = super::algorithm)]
        algorithm: Algorithm,
        #[command(flatten)]
        what: What,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct What {
    /// The directory. Below a mount point it is converted by the mount's server, and others wait meanwhile; elsewhere nobody may use it
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Compare names, inodes and lengths before and after
    #[arg(long)]
    verify: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    let (target, what) = match verb {
        Verb::On { algorithm, what } => (Target::On(*algorithm), what),
        Verb::Off { what } => (Target::Off, what),
        Verb::To { algorithm, what } => (Target::To(*algorithm), what),
    };
    let order = Order {
        target,
        is_plan: what.dry_run,
        verify: what.verify,
    };
    if let Some(path) = super::within_mount(&what.directory)? {
        return match through::told(&path, order)? {
            Told::Planned(plan) => say_plan(&plan, what.json),
            Told::Converted(report) => say_report(&report, what),
        };
    }
    let folder = Folder::open(&what.directory)?;
    super::not_mounted(&folder, super::Work::Convert)?;
    if let Some(part) = super::mounted_below(&mounts::canonical(&what.directory), false)? {
        bail!(
            "{} is mounted on {}, and lies in {}; unmount it first",
            part.source.display(),
            part.at.display(),
            what.directory.display()
        );
    }
    if what.dry_run {
        let plan = convert::plan(&folder, target)?;
        return say_plan(&plan_as_json(&plan), what.json);
    }
    let bar = bar();
    let options = Options {
        verify: what.verify,
    };
    let mut last = None;
    let report = convert::convert(&folder, target, options, &mut |progress| {
        last = Some(progress);
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        bar.set_message(progress.step.to_string());
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    let report = report.map_err(|error| match left_halfway(&folder, last) {
        Some(left) => anyhow!(error).context(format!("{}: {left}", what.directory.display())),
        None => anyhow!(error),
    });
    say_report(&report_as_json(&report?), what)
}

/// What a conversion that failed after it had begun leaves, and what to do.
fn left_halfway(folder: &Folder, last: Option<Progress>) -> Option<String> {
    let Ok(Mark::UnderWay(under_way)) = Mark::read(folder) else {
        return None;
    };
    let done = last.map_or_else(String::new, |last| {
        format!(", where {} of {} things were moved", last.done, last.total)
    });
    Some(format!(
        "it is half converted from {} to {} (step {}{done}), nothing is lost, and no mount serves it until it is whole: when what is told below is \
         mended, run the same again, which goes on there, or `newsreel usenetfs convert {}`, which turns it round",
        under_way.from,
        under_way.to,
        under_way.step,
        match under_way.from {
            Layout::Flat => "off".to_owned(),
            Layout::Managed(algorithm) => format!("to {algorithm}"),
        }
    ))
}

/// How far it is, where somebody looks.
pub(super) fn bar() -> ProgressBar {
    if !output::is_watched() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(
        "{msg} {wide_bar} {human_pos}/{human_len} {per_sec} ends in {eta}",
    );
    let bar = ProgressBar::new(0);
    style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style))
}

fn say_plan(plan: &Value, json: bool) -> Result<()> {
    if json {
        output::json(plan)?;
    } else {
        let fact = |key: &str| output::cell(&plan[key]);
        output::text(&output::facts(&[
            ("from", fact("from")),
            ("to", fact("to")),
            ("goes on with", fact("goes_on")),
            ("entries to move", fact("entries")),
            ("of them articles", fact("articles")),
            ("of them directories", fact("folders")),
            ("relative links", fact("relative_links")),
            ("directories to make", fact("new_folders")),
        ]))?;
    }
    let refusals = plan["refusals"].as_array().into_iter().flatten();
    let reasons: Vec<_> = refusals.filter_map(Value::as_str).collect();
    if reasons.is_empty() {
        return Ok(());
    }
    bail!("it would not be converted: {}", reasons.join("; "))
}

fn say_report(report: &Value, what: &What) -> Result<()> {
    let (plan, before, after) = (&report["plan"], &report["before"], &report["after"]);
    if what.verify && before.is_null() && !plan["goes_on"].is_null() {
        output::warning(
            "not compared: the conversion that was gone on with was begun without --verify",
        );
    }
    if what.json {
        output::json(report)?;
    } else {
        let checked = match before.is_null() || before != after {
            true => "",
            false => ", and the view is the same as before",
        };
        let fact = |value: &Value| output::cell(value);
        output::text(&format!(
            "{}: {} (was {}), {} renames{checked}\n",
            what.directory.display(),
            fact(&plan["to"]),
            fact(&plan["from"]),
            fact(&report["renames"]),
        ))?;
    }
    if before != after {
        bail!("the view is not what it was before: something else changed it meanwhile");
    }
    Ok(())
}
