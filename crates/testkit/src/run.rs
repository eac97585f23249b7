//! Playing a transcript: sends what `C` says, compares what comes with what `S` says.
//!
//! The first difference ends a play with file and line, what was expected, what came and the last lines before it;
//! with `bless` differences become edits and the play goes on.  Reading is bounded by a time per line, so a play always ends.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bless::apply;
use crate::driver::{Driver, Setup};
use crate::play::Play;
use crate::transcript::{Bindings, Transcript};

/// How one play ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Everything was as written.
    Passed,
    /// The driver cannot do what the file needs.
    Skipped(String),
    /// A difference, with `path:line:` in front.
    Failed(String),
}

/// The plays of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// One verdict per combination of `@with` values, with the combination's name (empty without `@with`).
    pub verdicts: Vec<(String, Verdict)>,
    /// The file with its `S:` lines as they were answered, when blessing and something differed.
    pub blessed: Option<String>,
}

impl Report {
    /// The first failure.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.verdicts
            .iter()
            .find_map(|(with, verdict)| match verdict {
                Verdict::Failed(message) if with.is_empty() => Some(message.clone()),
                Verdict::Failed(message) => Some(format!("{message}\n  with {with}")),
                Verdict::Passed | Verdict::Skipped(_) => None,
            })
    }
}

/// Plays transcripts on a driver.
#[derive(Debug)]
pub struct Runner<'d, D> {
    driver: &'d mut D,
    wait: Duration,
    bless: bool,
}

impl<'d, D: Driver> Runner<'d, D> {
    /// A runner that waits up to `wait` for every line.
    pub const fn new(driver: &'d mut D, wait: Duration) -> Self {
        Self {
            driver,
            wait,
            bless: false,
        }
    }

    /// Collects differences of `S:` lines as edits instead of failing.
    #[must_use]
    pub const fn blessing(mut self) -> Self {
        self.bless = true;
        self
    }

    /// Plays a file, once per combination of its `@with` values.
    pub async fn play(&mut self, transcript: &Transcript) -> Report {
        let mut report = Report {
            verdicts: Vec::new(),
            blessed: None,
        };
        for with in combinations(&transcript.with) {
            let name: Vec<String> = with
                .iter()
                .map(|(key, value)| format!("{key} = {value}"))
                .collect();
            let setup = Setup {
                config: transcript.config.clone(),
                mode: transcript.mode.clone(),
                with,
                reversed: transcript.reversed.clone(),
            };
            let mut play = Play {
                driver: self.driver,
                transcript,
                wait: self.wait,
                bless: self.bless && report.verdicts.is_empty(),
                channels: BTreeMap::new(),
                bindings: Bindings::new(),
                context: Vec::new(),
                output: Vec::new().into_iter(),
                edits: Vec::new(),
            };
            let verdict = play.all(&setup).await;
            if !play.edits.is_empty() {
                report.blessed = Some(apply(&transcript.source, &play.edits));
            }
            report.verdicts.push((name.join(", "), verdict));
        }
        report
    }
}

/// Every way to choose one value for each key.
fn combinations(with: &[(String, Vec<String>)]) -> Vec<Vec<(String, String)>> {
    let mut all = vec![Vec::new()];
    for (key, values) in with {
        all = all
            .iter()
            .flat_map(|chosen: &Vec<(String, String)>| {
                values.iter().map(move |value| {
                    let mut chosen = chosen.clone();
                    chosen.push((key.clone(), value.clone()));
                    chosen
                })
            })
            .collect();
    }
    all
}
