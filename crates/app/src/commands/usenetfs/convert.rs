//! `newsreel usenetfs convert`: a full directory turned over or back; killed anywhere, it goes on when it is run again.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use newsreel_host::Folder;
use newsreel_layout::convert::{self, Options, Plan, Report, Target};
use newsreel_layout::{Algorithm, Fingerprint};
use serde_json::{Value, json};

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
    /// The directory; nobody may use it meanwhile
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
    let folder = Folder::open(&what.directory)?;
    super::not_mounted(&folder)?;
    if what.dry_run {
        return say_plan(&convert::plan(&folder, target)?, what.json);
    }
    let bar = bar();
    let options = Options {
        verify: what.verify,
    };
    let report = convert::convert(&folder, target, options, &mut |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        bar.set_message(progress.step.to_string());
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    say_report(&report?, what)
}

/// How far it is, where somebody looks.
fn bar() -> ProgressBar {
    if !output::is_watched() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(
        "{msg} {wide_bar} {human_pos}/{human_len} {per_sec} ends in {eta}",
    );
    let bar = ProgressBar::new(0);
    style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style))
}

fn plan_as_json(plan: &Plan) -> Value {
    let refusals: Vec<_> = plan.refusals.iter().map(ToString::to_string).collect();
    json!({
        "from": plan.from.to_string(),
        "to": plan.to.to_string(),
        "goes_on": plan.goes_on.map(|step| step.to_string()),
        "entries": plan.entries,
        "articles": plan.articles,
        "folders": plan.folders,
        "relative_links": plan.relative_links,
        "new_folders": plan.new_folders,
        "refusals": refusals,
    })
}

fn say_plan(plan: &Plan, json: bool) -> Result<()> {
    let value = plan_as_json(plan);
    if json {
        output::json(&value)?;
    } else {
        let fact = |key: &str| output::cell(&value[key]);
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
    if plan.refusals.is_empty() {
        return Ok(());
    }
    let reasons: Vec<_> = plan.refusals.iter().map(ToString::to_string).collect();
    bail!("it would not be converted: {}", reasons.join("; "))
}

fn say_report(report: &Report, what: &What) -> Result<()> {
    let view =
        |view: Fingerprint| json!({"entries": view.entries, "sum": format!("{:x}", view.sum)});
    let verified = report.verified;
    if what.verify && verified.is_none() && report.plan.goes_on.is_some() {
        output::warning(
            "not compared: the conversion that was gone on with was begun without --verify",
        );
    }
    if what.json {
        output::json(&json!({
            "plan": plan_as_json(&report.plan),
            "renames": report.renames,
            "before": verified.map(|(before, _)| view(before)),
            "after": verified.map(|(_, after)| view(after)),
        }))?;
    } else {
        let checked = match verified {
            Some((before, after)) if before == after => ", and the view is the same as before",
            _ => "",
        };
        output::text(&format!(
            "{}: {} (was {}), {} renames{checked}\n",
            what.directory.display(),
            report.plan.to,
            report.plan.from,
            report.renames,
        ))?;
    }
    if report.differs() {
        bail!("the view is not what it was before: something else changed it meanwhile");
    }
    Ok(())
}
