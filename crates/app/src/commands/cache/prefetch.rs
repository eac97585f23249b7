//! `newsreel cache prefetch`: has a caching server fetch articles before anybody asks for them.

use anyhow::Result;
use newsreel_wire::Wildmat;
use serde_json::Value;

use super::Which;
use crate::access;
use crate::control::cache_request::{CacheRequest, FetchLimits};
use crate::control::request::Request;
use crate::output::{self, count, octets};

#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "What is kept already is not fetched again, nor read: `newsreel cache warm` finds what is damaged on the disk. \
                  The upstream server is asked over all connections but one, which is left to readers. It ends with the last \
                  article, or when the command is ended.\n\n\
                  Examples:\n  newsreel cache prefetch 'comp.lang.*'\n  \
                  newsreel cache prefetch --articles 100 --threads 5000 comp.lang.rust\n  \
                  newsreel cache prefetch --articles 1000 --octets 1GiB --rate 1MiB '*,!*.binaries.*'"
)]
pub(super) struct Args {
    /// The groups
    #[arg(value_name = "WILDMAT")]
    groups: String,
    /// Look through so many numbers before those for articles of the same threads, and fetch them, too
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    threads: u64,
    #[command(flatten)]
    how_much: HowMuch,
    #[command(flatten)]
    which: Which,
}

/// How much is fetched.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct HowMuch {
    /// The newest articles of each group: so many numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 500)]
    articles: u64,
    /// Octets in all, about
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = crate::typed::octets)]
    octets: u64,
    /// Octets a second, about [default: as fast as it goes]
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = crate::typed::octets)]
    rate: u64,
}

impl HowMuch {
    pub(super) const fn limits(&self) -> FetchLimits {
        FetchLimits {
            articles: self.articles,
            threads: 0,
            octets: self.octets,
            octets_per_s: self.rate,
        }
    }
}

pub(super) fn run(args: &Args) -> Result<()> {
    // Told before a server is looked for.
    Wildmat::parse(&args.groups)?;
    let asked = CacheRequest::Prefetch {
        wildmat: args.groups.clone(),
        limits: FetchLimits {
            threads: args.threads,
            ..args.how_much.limits()
        },
    };
    fetch(&args.which, asked)
}

/// Has a server fetch, and says what came.
pub(super) fn fetch(which: &Which, asked: CacheRequest) -> Result<()> {
    let bar = access::bar();
    let fetched = which.ask_with(&Request::Cache { asked }, &mut |at| {
        bar.set_length(at.total);
        bar.set_position(at.done);
    });
    bar.finish_and_clear();
    let fetched = fetched?;
    match which.json {
        true => output::json(&fetched),
        false => output::text(&said(&fetched)),
    }
}

fn said(fetched: &Value) -> String {
    let number = |key: &str| fetched[key].as_u64().unwrap_or(0);
    let (came, asked) = (number("articles"), number("asked"));
    let groups = count(number("groups"), "group");
    let of = match number("groups") {
        0 => String::new(),
        _ => format!(" of {groups}"),
    };
    let (articles, octets) = (count(came, "article"), octets(&fetched["octets"]));
    let mut text = format!("{articles}{of} fetched, {octets}");
    if asked > came {
        text += &format!("; {} did not come", count(asked - came, "article"));
    }
    if number("failed") > 0 {
        text += &format!(
            "; {} could not be asked for",
            count(number("failed"), "group")
        );
    }
    if fetched["is_cut"] == true {
        text += "; there are more, and --octets ends it here";
    }
    text + "\n"
}
