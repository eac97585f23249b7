//! `newsreel cache simulate`: replacement policies over a trace, the paper's figures 3 and 4.

mod trace;

use std::path::{Path, PathBuf};

use anyhow::Result;
use newsreel_bench::plot;
use newsreel_cache::policies::POLICIES;
use newsreel_cache::simulate::{
    Finding, Outcome, Request, Shape, Totals, WANTED_PART, findings, generated, run,
    run_in_segments,
};
use newsreel_host::{Disk as _, RealDisk, replace_file};
use serde_json::{Value, json};
use trace::Source;

use crate::access::bar;
use crate::output;

/// So many requests a trace has at most.
pub(crate) const REQUESTS_MAX: u64 = 20_000_000;

#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "The trace is made up, if none is given: it has the statistics of the paper's (309 hosts, 1314 groups of which \
                  ten have 59 % of all requests, 205363 requests in ten days, 21 % of which a cache with room for everything \
                  answers). A caching server writes one of its own where `cache.access_log_octets` says so. \
                  Each policy is told how much room it has, and what it lets go is gone. IN SEGMENTS is what a running \
                  cache does: what goes lies in the segments for a while, and what stays is written again.\n\n\
                  Examples:\n  newsreel cache simulate --seed 7 --report figures\n  \
                  newsreel cache simulate --trace newsreel-cache/access.log.1 --trace newsreel-cache/access.log"
)]
pub(crate) struct Args {
    /// The access log of a caching server of ours; may be given several times
    #[arg(long, value_name = "LOG", conflicts_with_all = ["seed", "requests"])]
    trace: Vec<PathBuf>,
    /// What the trace follows from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// How many requests it has
    #[arg(long, value_name = "NUMBER", default_value_t = Shape::default().requests,
          value_parser = clap::value_parser!(u64).range(1..=REQUESTS_MAX))]
    requests: u64,
    /// How large caches are, in parts of a hundred of the octets of all articles that are asked for
    #[arg(long, value_name = "PERCENT", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..=100),
          default_values_t = [1, 2, 4, 7, 10, 15, 20, 30, 40, 60, 80, 100])]
    sizes: Vec<u64>,
    /// The server lets articles go when they are so old, and the cache then, too [default: neither does]
    #[arg(long, value_name = "DAYS")]
    keep_days: Option<u64>,
    /// Write the figures, as SVG and as tables, into this directory
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What one policy did at each size.
struct Simulated {
    name: &'static str,
    is_in_figures: bool,
    outcomes: Vec<Outcome>,
    in_segments: Vec<Outcome>,
}

/// Everything that is shown.
struct Figures {
    source: Source,
    totals: Totals,
    sizes: Vec<u64>,
    policies: Vec<Simulated>,
    findings: Vec<Finding>,
}

pub(super) fn run_command(args: &Args) -> Result<()> {
    let (source, trace) = traced(args)?;
    let figures = simulated(args, source, &trace);
    if let Some(directory) = &args.report {
        write_report(directory, &figures)?;
    }
    if args.json {
        return output::json(&as_json(&figures));
    }
    output::said(&said(&figures))
}

/// The requests, and where they are from.
fn traced(args: &Args) -> Result<(Source, Vec<Request>)> {
    if !args.trace.is_empty() {
        return trace::read(&args.trace);
    }
    let shape = Shape {
        requests: args.requests,
        ..Shape::default()
    };
    Ok((
        Source::MadeUp { seed: args.seed },
        generated(&shape, args.seed),
    ))
}

fn simulated(args: &Args, source: Source, trace: &[Request]) -> Figures {
    let totals = Totals::of(trace);
    let mut parts = args.sizes.clone();
    parts.sort_unstable();
    parts.dedup();
    let of = |part: u64| totals.articles_octets.saturating_mul(part) / 100;
    let sizes: Vec<u64> = parts.into_iter().map(of).collect();
    let keep_s = args.keep_days.map(|days| days.saturating_mul(86_400));
    let bar = bar();
    bar.set_length((POLICIES.len() * sizes.len()) as u64);
    let mut policies = Vec::new();
    for row in POLICIES {
        let (mut outcomes, mut in_segments) = (Vec::new(), Vec::new());
        for size in &sizes {
            outcomes.push(run(trace, row.kind, *size, keep_s));
            in_segments.push(run_in_segments(trace, row.kind, *size, WANTED_PART));
            bar.inc(1);
        }
        policies.push(Simulated {
            name: row.name,
            is_in_figures: row.is_in_figures,
            outcomes,
            in_segments,
        });
    }
    bar.finish_and_clear();
    let compared: Vec<_> = POLICIES
        .iter()
        .zip(&policies)
        .map(|(row, simulated)| (row.kind, simulated.outcomes.clone()))
        .collect();
    Figures {
        source,
        totals,
        findings: findings(&sizes, &compared),
        sizes,
        policies,
    }
}

const MIB: f64 = (1 << 20) as f64;

/// Octets that were written again for each that came.
fn again(outcome: &Outcome) -> f64 {
    outcome.rewritten as f64 / outcome.fetched.max(1) as f64
}

/// A row for each policy, a column for each size.
fn table(figures: &Figures, cell: impl Fn(&Simulated) -> Vec<String>) -> String {
    let names: Vec<String> = figures
        .sizes
        .iter()
        .map(|size| format!("{:.0}M", *size as f64 / MIB))
        .collect();
    let mut columns = vec![("POLICY", "policy")];
    columns.extend(names.iter().map(|name| (name.as_str(), name.as_str())));
    let rows: Vec<Value> = figures
        .policies
        .iter()
        .map(|simulated| {
            let mut row = serde_json::Map::new();
            row.insert("policy".to_owned(), json!(simulated.name));
            for (name, value) in names.iter().zip(cell(simulated)) {
                row.insert(name.clone(), json!(value));
            }
            Value::Object(row)
        })
        .collect();
    output::table(&columns, &rows)
}

fn each(outcomes: &[Outcome], cell: impl Fn(&Outcome) -> String) -> Vec<String> {
    outcomes.iter().map(cell).collect()
}

fn said(figures: &Figures) -> String {
    let totals = &figures.totals;
    let facts = output::facts(&[
        ("trace", figures.source.said()),
        (
            "requests",
            format!(
                "{} for {} in {}, {:.0} % of them in the ten first",
                totals.requests,
                output::count(totals.articles, "article"),
                output::count(totals.groups, "group"),
                totals.top_ten_part
            ),
        ),
        (
            "octets",
            format!(
                "{:.0} MiB asked for, {:.0} MiB of different articles",
                totals.octets as f64 / MIB,
                totals.articles_octets as f64 / MIB
            ),
        ),
        (
            "best",
            format!(
                "{:.2} % hits with room for everything",
                totals.best_hit_part()
            ),
        ),
    ]);
    let fetched = table(figures, |it| {
        each(&it.outcomes, |outcome| {
            format!("{:.0}", outcome.fetched as f64 / MIB)
        })
    });
    let hits = table(figures, |it| {
        each(&it.outcomes, |outcome| format!("{:.2}", outcome.hit_part()))
    });
    let kept = table(figures, |it| {
        each(&it.in_segments, |outcome| {
            format!("{:.2}/{:.2}", outcome.hit_part(), again(outcome))
        })
    });
    format!(
        "{facts}\nFigure 3: MiB fetched, by the size of the cache\n{fetched}\n\
         Figure 4: hits, parts of a hundred, by the size of the cache\n{hits}\n\
         In segments: hits, and octets written again for each that came\n{kept}\n\
         What the paper says of the policies\n{}",
        told(&figures.findings)
    )
}

/// Each finding in a line.
fn told(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let word = if finding.holds {
            "holds"
        } else {
            "DOES NOT HOLD"
        };
        let at: Vec<String> = finding
            .at
            .iter()
            .map(|size| format!("{:.0}M", *size as f64 / MIB))
            .collect();
        let at = match (
            finding.holds,
            finding.says.starts_with("at some size"),
            at.is_empty(),
        ) {
            (_, _, true) => String::new(),
            (_, true, false) => format!(" (at {})", at.join(", ")),
            (_, false, false) => format!(" (not at {})", at.join(", ")),
        };
        text.push_str(&format!("{word}: {}{at}\n", finding.says));
    }
    text
}

fn as_json(figures: &Figures) -> Value {
    let totals = &figures.totals;
    let policies: Vec<Value> = figures
        .policies
        .iter()
        .map(|it| {
            let hits = |outcomes: &[Outcome]| outcomes.iter().map(|it| it.hits).collect::<Vec<_>>();
            let fetched =
                |outcomes: &[Outcome]| outcomes.iter().map(|it| it.fetched).collect::<Vec<_>>();
            json!({
                "name": it.name,
                "is_in_figures": it.is_in_figures,
                "hits": hits(&it.outcomes),
                "fetched_octets": fetched(&it.outcomes),
                "in_segments": {
                    "hits": hits(&it.in_segments),
                    "fetched_octets": fetched(&it.in_segments),
                    "written_again_octets": it.in_segments.iter().map(|it| it.rewritten).collect::<Vec<_>>(),
                },
            })
        })
        .collect();
    let findings: Vec<Value> = figures
        .findings
        .iter()
        .map(|it| json!({"says": it.says, "holds": it.holds, "at_octets": it.at}))
        .collect();
    json!({
        "source": figures.source,
        "trace": {
            "requests": totals.requests,
            "octets": totals.octets,
            "articles": totals.articles,
            "articles_octets": totals.articles_octets,
            "groups": totals.groups,
            "top_ten_percent": totals.top_ten_part,
        },
        "sizes_octets": figures.sizes,
        "policies": policies,
        "findings": findings,
    })
}

fn write_report(directory: &Path, figures: &Figures) -> Result<()> {
    RealDisk.create_dir_all(directory)?;
    let write =
        |name: &str, text: &str| replace_file(&RealDisk, &directory.join(name), text.as_bytes());
    let curves = |value: fn(&Outcome) -> f64| {
        let curve = |it: &Simulated| {
            let points = figures.sizes.iter().zip(&it.outcomes);
            let points = points.map(|(size, outcome)| (*size as f64 / MIB, value(outcome)));
            let name = match it.is_in_figures {
                true => it.name.to_owned(),
                false => format!("{} (not in the paper)", it.name),
            };
            (name, points.collect())
        };
        figures.policies.iter().map(curve).collect::<Vec<_>>()
    };
    let bandwidth = curves(|outcome| outcome.fetched as f64 / MIB);
    let hits = curves(Outcome::hit_part);
    let axes = ("MiB of cache", "MiB fetched");
    let figure = plot::curves("Figure 3: what is fetched", axes, &bandwidth)?;
    write("figure-3.svg", &figure)?;
    let axes = ("MiB of cache", "hits in a hundred requests");
    let figure = plot::curves("Figure 4: hits", axes, &hits)?;
    write("figure-4.svg", &figure)?;
    write("figures.txt", &said(figures))?;
    Ok(())
}
