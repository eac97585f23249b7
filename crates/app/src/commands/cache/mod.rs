//! `newsreel cache`: runs a caching server in the foreground; and its verbs, which ask one.

mod drop;
mod list;
mod offline;
mod pin;
mod prefetch;
mod queue;
mod simulate;
pub(super) mod stats;
mod warm;

pub(crate) use simulate::REQUESTS_MAX;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use newsreel_cache::UpstreamConfig;
use newsreel_host::RealClock;
use serde_json::Value;

use crate::config::{self, Config, LogFormat};
use crate::control::Progress;
use crate::control::cache_request::CacheRequest;
use crate::control::client::Client;
use crate::control::request::Request;
use crate::server::caching;

/// Which server.
#[derive(Debug, Clone, clap::Args)]
struct Which {
    /// The cache's directory [default: what the configuration says, else ./newsreel-cache]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    #[arg(long, value_name = "FILE", help = config::HELP_WITH_DIRECTORY)]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Which {
    /// Asks the caching server that runs there.
    fn ask(&self, asked: CacheRequest) -> Result<Value> {
        self.ask_with(&Request::Cache { asked }, &mut |_| {})
    }

    /// The same, told meanwhile how far it is.
    fn ask_with(&self, request: &Request, progress: &mut dyn FnMut(Progress)) -> Result<Value> {
        let (file, given) = (self.config.as_deref(), self.directory.as_deref());
        let mut directory = config::load_of_cache(file, given)?.cache.directory;
        if let Some(given) = &self.directory {
            directory.clone_from(given);
        }
        let Some(mut client) = Client::connect(&directory)? else {
            bail!("no caching server runs on {}", directory.display());
        };
        client.ask(request, progress)
    }
}

#[derive(Debug, Clone, clap::Subcommand)]
enum Verb {
    /// List the groups or articles that are kept, with their sizes and when they were read last
    List(list::Args),
    /// Let go what is kept of groups or articles
    Drop(drop::Args),
    /// Have groups stay, whatever the policy says
    Pin(pin::Args),
    /// Say whether it asks the upstream servers, or have it ask none
    Offline(offline::Args),
    /// Have articles fetched before anybody asks for them
    Prefetch(prefetch::Args),
    /// Have groups, articles or threads fetched that are named
    Warm(warm::Args),
    /// Posts that wait: list, show, edit, retry and drop them
    #[command(subcommand)]
    Queue(queue::Verb),
    /// Show what a running caching server has answered, and from where
    Stats(stats::Args),
    /// Compare the policies that say what goes: hits and octets fetched by the size of the cache
    Simulate(simulate::Args),
}

#[derive(Debug, Clone, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Stands between readers and a news server: what was read once is not fetched again. \
                  Articles are kept in ./newsreel-cache, at most 1 GiB, and readers are served on \
                  127.0.0.1:1119, if nothing else is said.\n\
                  SIGTERM and SIGINT stop it cleanly.\n\n\
                  Example:\n  newsreel cache --upstream news.example.org --listen 127.0.0.1:1119"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The server to read from, and to post to: HOST or HOST:PORT
    #[arg(long, value_name = "HOST")]
    upstream: Option<String>,
    #[arg(long, value_name = "FILE", help = config::HELP_WITH_DIRECTORY)]
    config: Option<PathBuf>,
    /// The directory in which articles are kept; made when it is not there
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Listen here, and nowhere else: not where the configuration says, `tls_addresses` included; may be given several times
    #[arg(long, value_name = "ADDRESS", value_parser = crate::typed::address)]
    listen: Vec<SocketAddr>,
    /// Serve what the standard input is, as inetd has it: a listening socket, or one connection and then nothing more
    #[arg(long, conflicts_with = "listen")]
    inetd: bool,
    /// Take the numbers of groups from other servers than before, as the configuration says now: readers who remember numbers
    /// of these groups will miss articles, or see old ones as new
    #[arg(long)]
    renumber: bool,
    /// How log lines look
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
}

impl Args {
    /// What was typed wins over the file.
    fn apply(&self, config: &mut Config) {
        if let Some(address) = &self.upstream {
            config.upstream = vec![UpstreamConfig {
                address: address.clone(),
                ..config.upstream.first().cloned().unwrap_or_default()
            }];
        }
        if let Some(directory) = &self.directory {
            config.cache.directory.clone_from(directory);
        }
        if !self.listen.is_empty() {
            config.listen.addresses.clone_from(&self.listen);
            config.listen.tls_addresses.clear();
        }
        config.listen.inetd = self.inetd;
        if let Some(format) = self.log_format {
            config.logging.format = format;
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.verb {
        Some(Verb::Stats(args)) => return stats::run(args),
        Some(Verb::List(args)) => return list::run(args),
        Some(Verb::Drop(args)) => return drop::run(args),
        Some(Verb::Pin(args)) => return pin::run(args),
        Some(Verb::Warm(args)) => return warm::run(args),
        Some(Verb::Queue(verb)) => return queue::run(verb),
        Some(Verb::Prefetch(args)) => return prefetch::run(args),
        Some(Verb::Offline(args)) => return offline::run(args),
        Some(Verb::Simulate(args)) => return simulate::run_command(args),
        None => {}
    }
    let written = config::load_of_cache(args.config.as_deref(), args.directory.as_deref())?;
    let mut config = written.clone();
    args.apply(&mut config);
    if let Some((_, right)) = config.listen.problems().first() {
        bail!("--listen: {right}");
    }
    if let Some((_, right)) = newsreel_cache::problems(&config.upstream).first() {
        bail!("--upstream: {right}");
    }
    if config.upstream.is_empty() {
        bail!(
            "there is no server to read from: give --upstream HOST, or an [[upstream]] in the configuration"
        );
    }
    config.cache.directory = std::path::absolute(&config.cache.directory)?;
    // Users of its own, and the socket by which it is asked.
    config.server.spool.clone_from(&config.cache.directory);
    caching::run(config, written, args.renumber, Arc::new(RealClock::new()))
}
