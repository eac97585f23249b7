//! `newsreel cache warm`: has a caching server fetch groups, articles or threads that somebody names.

use anyhow::Result;

use super::Which;
use super::prefetch::{self, HowMuch};
use crate::control::cache_request::CacheRequest;

#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "What is kept already is not fetched again, but read: what is damaged on the disk comes anew. With --thread those \
                  articles come, too, that an article's References name, and of the newest of its groups those of the same thread.\n\n\
                  Examples:\n  newsreel cache warm comp.lang.rust '<17@news.example.org>'\n  \
                  newsreel cache warm --thread '<17@news.example.org>'"
)]
pub(super) struct Args {
    /// Groups, as names or wildmats, and message-ids
    #[arg(required = true, value_name = "WILDMAT|MESSAGE-ID")]
    what: Vec<String>,
    /// Fetch the threads of these articles
    #[arg(long)]
    thread: bool,
    #[command(flatten)]
    how_much: HowMuch,
    #[command(flatten)]
    which: Which,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let asked = CacheRequest::Warm {
        named: args.what.clone(),
        threads: args.thread,
        limits: args.how_much.limits(),
    };
    prefetch::fetch(&args.which, asked)
}
