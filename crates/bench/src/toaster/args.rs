//! What to measure.

use std::path::PathBuf;

use super::place::Place;
use super::variant::Variant;
use crate::corpus::CorpusArgs;

/// Articles go when they are so many passes old.
pub(super) const RETENTION: u32 = 6;
/// Articles go out in each pass whose number is a multiple of this.
pub(super) const BATCH_EVERY: u32 = 3;
/// Of the server's clock a pass is half a day, as on a system that expires twice a day.
pub(super) const PASS_SECS: u64 = 12 * 3600;

/// When the captured feed was new, unless it is said: the beginning of 2026. Always the same, so that two runs feed the same.
const BASE_TIME_SECS: u64 = 1_767_225_600;

/// What to measure.
#[derive(Debug, Clone)]
pub struct ToasterArgs {
    /// An empty or new directory, for image files, mount points and servers.
    pub directory: PathBuf,
    /// This program.
    pub program: PathBuf,
    /// Where INN's programs are, if it is to be measured too.
    pub inn: Option<PathBuf>,
    /// Where articles lie.
    pub places: Vec<Place>,
    /// The directory that [`Place::Directory`] is; none: one in `directory`.
    pub at: Option<PathBuf>,
    /// The methods by name; none for all.
    pub methods: Vec<String>,
    /// What is done otherwise, in runs of their own.
    pub variants: Vec<Variant>,
    /// The originals: real ones, or generated.
    pub corpus: CorpusArgs,
    /// Articles of all passes together, clones included.
    pub articles: u64,
    /// Clones of each generated original; of real ones there are as many as are needed.
    pub clones: u64,
    /// Passes.
    pub passes: u32,
    /// Articles of a batch.
    pub batch_articles: u64,
    /// The server may have so much in memory, its share of the page cache included.
    pub memory_octets: Option<u64>,
    /// Leave the caches of the machine as they are: it has other work.
    pub warm: bool,
    /// The server listens on this port of 127.0.0.1.
    pub port: u16,
    /// Show a progress bar on standard error when that is a terminal.
    pub progress: bool,
}

impl ToasterArgs {
    /// The paper's numbers.
    pub fn new(directory: PathBuf, program: PathBuf) -> Self {
        Self {
            directory,
            program,
            inn: None,
            places: vec![Place::Ext4],
            at: None,
            methods: Vec::new(),
            variants: vec![Variant::Plain],
            corpus: CorpusArgs {
                base_time_secs: Some(BASE_TIME_SECS),
                ..CorpusArgs::default()
            },
            articles: 900_000,
            clones: 2,
            passes: 14,
            batch_articles: 109,
            memory_octets: None,
            warm: false,
            port: 11_950,
            progress: false,
        }
    }

    /// The time at which the server's clock begins.
    pub(super) fn base_time_secs(&self) -> u64 {
        self.corpus.base_time_secs.unwrap_or(BASE_TIME_SECS)
    }
}
