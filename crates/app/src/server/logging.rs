//! Where events go: standard error, as text or JSON, filtered; the filter can change while the server runs.
//!
//! Whoever reads them may stop, and the server goes on: what nobody takes in time is lost, and counted.

use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use newsreel_host::LogWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt, reload};

use crate::config::{LogFormat, LoggingConfig};
use crate::typed;

/// How long a server that ends waits for who reads its log.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// The handle on what is logged.
#[derive(Debug)]
pub(crate) struct Logging {
    filter: reload::Handle<EnvFilter, Registry>,
    out: Arc<LogWriter>,
}

/// Takes each line at once, as tracing gives them.
struct Out {
    to: Arc<LogWriter>,
    is_json: bool,
}

impl Write for Out {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.to.write_line(&typed::hinted_line(line, self.is_json));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Logging {
    /// Starts logging, once in a process.
    pub(crate) fn start(config: &LoggingConfig) -> Result<Self> {
        let (filter, handle) = reload::Layer::new(filter(config)?);
        let out = LogWriter::start(io::stderr()).context("cannot start the log's thread")?;
        let out = Arc::new(out);
        let lines = {
            let out = Arc::clone(&out);
            let is_json = config.format == LogFormat::Json;
            fmt::layer().with_writer(move || Out {
                to: Arc::clone(&out),
                is_json,
            })
        };
        let lines = match config.format {
            LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        Registry::default()
            .with(filter)
            .with(lines)
            .try_init()
            .context("cannot start logging")?;
        let filter = handle;
        Ok(Self { filter, out })
    }

    /// Lines that nobody took in time.
    pub(crate) fn lines_lost(&self) -> u64 {
        self.out.lost()
    }

    /// Where lines go, which outlives what is done with them.
    pub(crate) fn out(&self) -> Arc<LogWriter> {
        Arc::clone(&self.out)
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
