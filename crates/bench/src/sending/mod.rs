//! What it costs to send articles on: to few neighbours and to many, to a server like ours and to INN, out of memory and from a cold
//! disk.
//!
//! To add a question: a row of [`SCENES`]. Invariant: a row counts only if every article reached every neighbour.

mod page;
mod scenes;
mod sink;
mod source;

use std::path::PathBuf;

use serde::Serialize;

pub use self::page::{human, markdown};
pub use self::scenes::{SCENES, run};
use crate::usenetfs::Goal;

/// What to measure.
#[derive(Debug, Clone)]
pub struct SendingArgs {
    /// An empty or new directory for the servers.
    pub directory: PathBuf,
    /// This program.
    pub program: PathBuf,
    /// Where INN's programs are, if it is to be a neighbour, too.
    pub inn: Option<PathBuf>,
    /// The questions, by the names in [`SCENES`]; none for all.
    pub scenes: Vec<String>,
    /// Articles that wait and are sent then.
    pub articles: u64,
    /// Articles that are sent on as they come, and how many come in a second.
    pub fresh: (u64, f64),
    /// How many neighbours get what comes.
    pub peers: Vec<usize>,
    /// Connections to a neighbour that gets what waits.
    pub connections: usize,
    /// How often each is measured.
    pub rounds: u32,
    /// Servers listen on this port of 127.0.0.1, and on the next.
    pub port: u16,
    /// Show a progress bar on standard error when that is a terminal.
    pub progress: bool,
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The question, as in [`SCENES`].
    pub scene: &'static str,
    /// What is sent where.
    pub what: String,
    /// Neighbours.
    pub peers: usize,
    /// Articles that arrived, all neighbours together.
    pub sent: u64,
    /// Until the last had arrived; the least of all rounds.
    pub seconds: f64,
    /// Processor time of the server that sends, for one that arrived; the least of all rounds. Where articles are sent as they come,
    /// without what it costs to take them. None: somebody else sends.
    pub cpu_us: Option<f64>,
    /// The server's memory in the end.
    pub rss_octets: Option<u64>,
}

impl Row {
    /// Articles a second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.sent as f64 / self.seconds.max(1e-9)
    }

    /// The better of two rounds, figure by figure.
    fn or_better(mut self, other: &Self) -> Self {
        self.seconds = self.seconds.min(other.seconds);
        let cpu = self.cpu_us.zip(other.cpu_us);
        self.cpu_us = cpu.map(|(one, two)| one.min(two));
        self.rss_octets = self.rss_octets.min(other.rss_octets);
        self
    }
}

/// What was measured, and what it says.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// All rows.
    pub rows: Vec<Row>,
    /// What is asked, as far as it was measured.
    pub goals: Vec<Goal>,
}
