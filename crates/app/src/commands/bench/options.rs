//! Options that the bench verbs share: which articles, which server, how hard.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Result;
use newsreel_bench::corpus::{Corpus, CorpusArgs, Size};
use newsreel_bench::load::{LoadArgs, Machine};
use serde::de::DeserializeOwned;

/// Articles of a run: indices beyond are ids that no server knows.
const ARTICLES_MAX: u64 = 1 << 40;
/// Clones of each article; the paper had two.
pub(super) const CLONES_MAX: u64 = 10_000;
/// Groups of generated articles.
pub(super) const GROUPS_MAX: usize = 1_000_000;
/// Connections of a run: one address has no more ports.
pub(super) const CONNECTIONS_MAX: usize = 60_000;
/// Threads of a client or of the server that does nothing.
pub(super) const THREADS_MAX: usize = 256;

/// The articles.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Articles")]
pub(crate) struct ArticleArgs {
    /// Real articles: rnews batches (packed: .zst), articles, or directories of them; else generated ones
    #[arg(long, value_name = "PATH")]
    from: Vec<PathBuf>,
    /// Decides everything about generated articles but their dates
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Groups that generated articles are posted to
    #[arg(long, default_value_t = 3000, value_parser = count(1, GROUPS_MAX))]
    groups: usize,
    /// Octets of a generated article, or `text`: as in real text groups, 2.65 KB in the mean; `small`: of those the ones up to 4 KB
    #[arg(long, default_value = "text", value_parser = size)]
    size: Size,
    /// How many of a hundred go to more than one group
    #[arg(long, default_value_t = 12, value_name = "PERCENT", value_parser = count(0_u32, 100))]
    crossposted: u32,
    /// Generated articles are dated before this, seconds since 1970 [default: now]
    #[arg(long, value_name = "SECONDS")]
    base_time: Option<u64>,
    /// Index of the first article
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Number of articles [default: all real ones, 50,000 generated ones]
    #[arg(long, value_parser = count(1, ARTICLES_MAX))]
    articles: Option<u64>,
    /// How often all of them come again, each time under message-ids of their own
    #[arg(long, default_value_t = 0, value_parser = count(0, CLONES_MAX))]
    clones: u64,
}

/// The server and how hard it is worked.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct ServerArgs {
    /// The server
    #[arg(long, default_value = "127.0.0.1:1119", value_name = "ADDRESS", value_parser = crate::typed::address)]
    pub(super) server: SocketAddr,
    /// Connections
    #[arg(long, default_value_t = 1, value_parser = count(1, CONNECTIONS_MAX))]
    pub(super) connections: usize,
    /// Threads of the client
    #[arg(long, default_value_t = 1, value_parser = count(1, THREADS_MAX))]
    threads: usize,
    /// Operations a second [default: as fast as the server answers]
    #[arg(long, value_parser = above_zero)]
    rate: Option<f64>,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = above_zero)]
    pub(super) duration: Option<f64>,
    /// Acknowledge replies at once (TCP_QUICKACK)
    #[arg(long)]
    quick_ack: bool,
    /// In TLS, at a port of `listen.tls_addresses`; whose certificate it is, is not looked at
    #[arg(long)]
    tls: bool,
    /// Compressed in both directions, by COMPRESS DEFLATE
    #[arg(long)]
    compress: bool,
    /// The server's process on this machine: report what it cost
    #[arg(long)]
    pub(super) pid: Option<u32>,
    /// Report how far it is every so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = above_zero)]
    timeline: Option<f64>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A word that the bench crate knows.
pub(super) fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

/// A count within limits: what is out of them would be told only when the work is half begun, or make no sense at all.
pub(super) fn count<T>(least: T, most: T) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Copy,
{
    move |text| match text.parse() {
        Ok(count) if (least..=most).contains(&count) => Ok(count),
        _ => Err(format!("give a number from {least} to {most}")),
    }
}

/// A rate or a time.
pub(super) fn above_zero(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (1e-6..=1e9).contains(&number) => Ok(number),
        _ => Err("give a number above zero".to_owned()),
    }
}

pub(super) fn size(text: &str) -> Result<Size, String> {
    match text {
        "text" => return Ok(Size::Text),
        "small" => return Ok(Size::Small),
        _ => {}
    }
    text.parse()
        .map(Size::Fixed)
        .map_err(|_| "write `text`, `small` or a number of octets".to_owned())
}

impl ArticleArgs {
    pub(super) fn args(&self) -> CorpusArgs {
        CorpusArgs {
            from: self.from.clone(),
            seed: self.seed,
            groups: self.groups,
            size: self.size,
            crossposted_percent: self.crossposted,
            base_time_secs: self.base_time,
            first: self.first,
            articles: self.articles,
            clones: self.clones,
            ..CorpusArgs::default()
        }
    }

    pub(super) fn corpus(&self, machine: Machine<'_>) -> Result<Corpus> {
        Ok(Corpus::new(&self.args(), machine.disk, machine.clock)?)
    }
}

impl ServerArgs {
    pub(super) fn load(&self) -> LoadArgs {
        LoadArgs {
            connections: self.connections,
            threads: self.threads,
            rate: self.rate,
            duration_secs: self.duration,
            quick_ack: self.quick_ack,
            tls: self.tls,
            compress: self.compress,
            server_pid: self.pid,
            timeline_secs: self.timeline,
            progress: true,
            ..LoadArgs::new(self.server)
        }
    }
}
