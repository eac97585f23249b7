//! The sections that belong to the app itself: where the server works and what it logs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `[server]`: the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerConfig {
    /// The spool directory; a relative path counts from the configuration file's directory.
    pub(crate) spool: PathBuf,
    /// Threads that serve connections; 0: one for each core.
    pub(crate) threads: u32,
    /// Threads that wait for the disk, for readers whose article is not in memory, or for a request to the control socket;
    /// those who need one more wait their turn.
    pub(crate) waiting_threads_max: u32,
    /// Who may connect, where there is no `[[access]]`.
    pub(crate) clients: Clients,
    /// Programs that may talk to the control socket at the same time.
    pub(crate) control_connections_max: u32,
    /// Addresses where figures for Prometheus are served by HTTP, at `/metrics`; none (`[]`): they are not. Whoever can connect may read
    /// them. Where another program has the address that is meant when nothing is said here, the log says so and the server starts.
    pub(crate) metrics: Vec<SocketAddr>,
}

/// Where figures are served when nothing else is said: to this machine.
pub(crate) const METRICS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9119);

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            spool: PathBuf::from("newsreel-spool"),
            threads: 0,
            waiting_threads_max: 128,
            clients: Clients::Loopback,
            control_connections_max: 16,
            metrics: vec![METRICS],
        }
    }
}

impl ServerConfig {
    /// What is wrong with the values: key and what would be right.
    pub(crate) fn problems(&self) -> Vec<(&'static str, String)> {
        if !self.spool.as_os_str().is_empty() {
            return Vec::new();
        }
        let right = "an empty path is no directory: give one, as in \"newsreel-spool\"";
        vec![("spool", right.to_owned())]
    }
}

/// Whose connections are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Clients {
    /// Those of this machine; they may read and feed.
    #[default]
    Loopback,
    /// Everybody's: whoever can connect may read and feed.
    All,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// One line of text an event.
    #[default]
    Text,
    /// One JSON object an event.
    Json,
}

/// `[logging]`: what is written to standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LoggingConfig {
    /// How lines look.
    pub(crate) format: LogFormat,
    /// What is logged: `error`, `warn`, `info`, `debug` or `trace`, also by part, as in `info,newsreel::net=debug`.
    pub(crate) level: String,
    /// Whether every article taken or refused gets a line (target `newsreel::article`).
    pub(crate) articles: bool,
}

impl Default for LoggingConfig {
    fn default() -> Self {
        Self {
            format: LogFormat::Text,
            level: "info".to_owned(),
            articles: false,
        }
    }
}

/// What a level may be.
const LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace", "off"];

impl LoggingConfig {
    /// The filter for `tracing`.  What the library `pgp` says of a signature anybody can make it say, and the server says
    /// itself why a message counts for nothing; who wants it asks for `pgp=debug`.
    pub(crate) fn directives(&self) -> String {
        let articles = if self.articles { "debug" } else { "off" };
        format!("pgp=off,{},newsreel::article={articles}", self.level)
    }

    /// What is wrong with the values: key and what would be right.
    pub(crate) fn problems(&self) -> Vec<(&'static str, String)> {
        // What is no level is the name of a part to the filter, and everything else would be silent.
        let words = self.level.split(',').map(str::trim);
        let wrong = words.filter(|word| !word.contains('=') && !LEVELS.contains(word));
        if let Some(word) = wrong.into_iter().next() {
            let levels = LEVELS.join(", ");
            return vec![("level", format!("{word:?} is none of {levels}"))];
        }
        let filter = tracing_subscriber::EnvFilter::builder().parse(self.directives());
        match filter {
            Ok(_) => Vec::new(),
            Err(error) => vec![("level", format!("{:?} is no filter: {error}", self.level))],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strangers_could_write_is_not_logged() {
        use tracing_subscriber::layer::SubscriberExt as _;
        let is_logged = |level: &str| {
            let level = level.to_owned();
            let config = LoggingConfig {
                level,
                ..Default::default()
            };
            let filter = tracing_subscriber::EnvFilter::new(config.directives());
            let log = tracing_subscriber::registry().with(filter);
            tracing::subscriber::with_default(log, || {
                let ours = tracing::enabled!(target: "newsreel::control", tracing::Level::WARN);
                let theirs = tracing::enabled!(target: "pgp::packet", tracing::Level::WARN);
                (ours, theirs)
            })
        };
        assert_eq!(is_logged("info"), (true, false));
        assert_eq!(is_logged("info,pgp=debug"), (true, true));
    }

    #[test]
    fn filters_are_checked() {
        assert_eq!(LoggingConfig::default().problems(), []);
        let part = LoggingConfig {
            level: "warn,newsreel::net=debug".to_owned(),
            ..Default::default()
        };
        assert_eq!(part.problems(), []);
        let bad = LoggingConfig {
            level: "newsreel=loud".to_owned(),
            ..Default::default()
        };
        assert_eq!(bad.problems().len(), 1);
        let typo = LoggingConfig {
            level: "warn,inof".to_owned(),
            ..Default::default()
        };
        let why = "\"inof\" is none of error, warn, info, debug, trace, off";
        assert_eq!(typo.problems(), [("level", why.to_owned())]);
    }
}
