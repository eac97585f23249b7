//! `newsreel serve`: runs the server in the foreground.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use newsreel_host::{Clock, RealClock};

use crate::config::{self, Config, LogFormat};
use crate::server::{self, clock::ShiftedClock};

#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Without any option and file: spool in ./newsreel-spool, two cyclic buffers of 1 GiB, 127.0.0.1:1119. \
                  SIGTERM and SIGINT stop it cleanly, SIGHUP reads the configuration again.\n\n\
                  Example:\n  newsreel serve --spool /var/spool/newsreel --listen 127.0.0.1:1119 --listen '[::1]:1119'"
)]
pub(crate) struct Args {
    #[arg(long, value_name = "FILE", help = config::HELP_WITH_SPOOL)]
    config: Option<PathBuf>,
    /// The spool directory; made when it is not there
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Listen here, and nowhere else: not where the configuration says, `tls_addresses` included; may be given several times
    #[arg(long, value_name = "ADDRESS", value_parser = crate::typed::address)]
    listen: Vec<SocketAddr>,
    /// Serve what the standard input is, as inetd has it: a listening socket, or one connection and then nothing more
    #[arg(long, conflicts_with = "listen")]
    inetd: bool,
    /// Let a buffer go that the configuration no longer has: the articles in it are gone for good
    #[arg(long, value_name = "NAME")]
    drop_buffer: Vec<String>,
    /// How log lines look
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// Log a line for every article taken or refused
    #[arg(long)]
    log_articles: bool,
    /// Pretend that it is this time now, seconds since 1970: for tests and for feeds of long ago
    #[arg(long, value_name = "SECONDS", value_parser = clock, allow_hyphen_values = true)]
    clock: Option<u64>,
}

/// What a clock may be set to: from 1980, when Usenet began, to the end of 2099; the history keeps times in 32 bits.
const CLOCK_S: std::ops::RangeInclusive<u64> = 315_532_800..=4_102_444_799;

/// A time of the command line.
fn clock(text: &str) -> Result<u64, String> {
    let seconds = text.parse().ok();
    seconds.filter(|seconds| CLOCK_S.contains(seconds)).ok_or_else(|| {
        format!(
            "give whole seconds since 1970, from {} (the year 1980) to {} (2099); `date +%s` prints those of now, \
             `date +%s -d 1999-12-31` those of a day",
            CLOCK_S.start(),
            CLOCK_S.end()
        )
    })
}

impl Args {
    /// What was typed wins over the file.
    fn apply(&self, config: &mut Config) {
        if let Some(spool) = &self.spool {
            config.server.spool.clone_from(spool);
        }
        if !self.listen.is_empty() {
            config.listen.addresses.clone_from(&self.listen);
            config.listen.tls_addresses.clear();
        }
        config.listen.inetd = self.inetd;
        config.store.dropped.clone_from(&self.drop_buffer);
        if let Some(format) = self.log_format {
            config.logging.format = format;
        }
        config.logging.articles |= self.log_articles;
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut args = args.clone();
    // A path that was typed counts from here, also when the file is read again.
    args.spool = args.spool.map(std::path::absolute).transpose()?;
    let mut config = config::load(args.config.as_deref(), args.spool.as_deref())?;
    args.apply(&mut config);
    if let Some((_, right)) = config.listen.problems().first() {
        bail!("--listen: {right}");
    }
    config.server.spool = std::path::absolute(&config.server.spool)?;
    let clock: Arc<dyn Clock> = match args.clock {
        Some(begin_s) => Arc::new(ShiftedClock::new(begin_s)),
        None => Arc::new(RealClock::new()),
    };
    server::run(config, Box::new(move |config| args.apply(config)), clock)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Typed {
        #[command(flatten)]
        args: Args,
    }

    /// A trial beside the real server was refused, as its addresses for TLS are taken.
    #[test]
    fn where_it_is_to_listen_it_listens_alone() {
        let text = "[listen]\naddresses = ['127.0.0.1:119']\ntls_addresses = ['127.0.0.1:563']\n\
                    [tls]\ncertificate = '/c.pem'\nkey = '/k.pem'\n";
        let listens = |words: &[&str]| {
            let mut config = config::parse(text, "news.toml").unwrap();
            let typed = Typed::try_parse_from(words).unwrap();
            typed.args.apply(&mut config);
            let listen = config.listen;
            let all = listen.addresses.iter().chain(&listen.tls_addresses);
            all.map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(listens(&["serve"]), ["127.0.0.1:119", "127.0.0.1:563"]);
        let trial = listens(&["serve", "--listen", "127.0.0.1:1120"]);
        assert_eq!(trial, ["127.0.0.1:1120"]);
    }
}
