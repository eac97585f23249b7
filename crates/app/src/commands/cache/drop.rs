//! `newsreel cache drop`: has a caching server let go what it keeps.

use anyhow::Result;
use serde_json::Value;

use super::Which;
use crate::control::cache_request::CacheRequest;
use crate::output::{self, count, octets};

#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Of a group its articles, its overview and its marks go; what somebody asks for then is fetched again. Articles \
                  are offered no more at once, and the room they took is free when the segment that they lie in goes.\n\n\
                  Examples:\n  newsreel cache drop --dry-run 'alt.binaries.*'\n  newsreel cache drop alt.test '<17@news.example.org>'"
)]
pub(super) struct Args {
    /// Groups, as names or wildmats, and message-ids
    #[arg(required = true, value_name = "WILDMAT|MESSAGE-ID")]
    what: Vec<String>,
    /// Only say what would go
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    which: Which,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let (named, dry_run) = (args.what.clone(), args.dry_run);
    let dropped = args.which.ask(CacheRequest::Drop { named, dry_run })?;
    match args.which.json {
        true => output::json(&dropped),
        false => output::text(&said(&dropped)),
    }
}

fn said(dropped: &Value) -> String {
    let number = |key: &str| dropped[key].as_u64().unwrap_or(0);
    let (groups, articles) = (number("groups"), number("articles"));
    if groups == 0 && articles == 0 {
        return "nothing is kept of it\n".to_owned();
    }
    let verb = match (dropped["dry_run"] == true, groups + articles) {
        (true, _) => "would be",
        (false, 1) => "is",
        (false, _) => "are",
    };
    let what = match groups {
        0 => count(articles, "article"),
        groups => format!(
            "{} with {}",
            count(groups, "group"),
            count(articles, "article")
        ),
    };
    let (of_articles, overview) = (
        octets(&dropped["octets"]),
        octets(&dropped["overview_octets"]),
    );
    format!("{what} {verb} dropped, {of_articles} of articles and {overview} of overview\n")
}
