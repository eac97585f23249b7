//! Where events go: standard error, as text or JSON, filtered; the filter can change while the server runs.

use std::io::IsTerminal as _;

use anyhow::{Context as _, Result};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt, reload};

use crate::config::{LogFormat, LoggingConfig};

/// The handle on what is logged.
#[derive(Debug)]
pub(crate) struct Logging {
    filter: reload::Handle<EnvFilter, Registry>,
}

impl Logging {
    /// Starts logging, once in a process.
    pub(crate) fn start(config: &LoggingConfig) -> Result<Self> {
        let (filter, handle) = reload::Layer::new(filter(config)?);
        let lines = fmt::layer().with_writer(std::io::stderr);
        let lines = match config.format {
            LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        Registry::default()
            .with(filter)
            .with(lines)
            .try_init()
            .context("cannot start logging")?;
        Ok(Self { filter: handle })
    }

    /// Takes a new filter over; the format stays.
    pub(crate) fn set(&self, config: &LoggingConfig) -> Result<()> {
        self.filter
            .reload(filter(config)?)
            .context("cannot change what is logged")
    }
}

fn filter(config: &LoggingConfig) -> Result<EnvFilter> {
    let directives = config.directives();
    EnvFilter::builder()
        .parse(&directives)
        .with_context(|| format!("logging.level {directives:?}"))
}
