//! What became of the articles of a batch, counted; and where those are that have no answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use super::kept::{Folder, Keeping};
use crate::output;

/// Reasons that are named; of others there is a count.
const NAMED_MAX: usize = 100;

/// The last word on an article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The server has it now.
    Accepted,
    /// The server had it.
    Refused,
    /// The server never takes it.
    Rejected(String),
    /// It waits in a file.
    Deferred,
}

/// What became of the articles of one or more batches.
#[derive(Debug)]
pub(crate) struct Tally {
    folder: Folder,
    /// Each article has a line.
    is_verbose: bool,
    is_json: bool,
    accepted: u64,
    refused: u64,
    rejected: u64,
    deferred: u64,
    reasons: BTreeMap<String, u64>,
    /// Why the server takes nothing.
    away: Option<String>,
    waiting: Option<Keeping>,
    /// Files of articles that wait.
    waits_in: Vec<PathBuf>,
}

impl Tally {
    pub(crate) fn new(folder: Folder, is_verbose: bool, is_json: bool) -> Self {
        Self {
            folder,
            is_verbose,
            is_json,
            accepted: 0,
            refused: 0,
            rejected: 0,
            deferred: 0,
            reasons: BTreeMap::new(),
            away: None,
            waiting: None,
            waits_in: Vec::new(),
        }
    }

    /// Whether articles wait from now on.
    pub(crate) const fn is_away(&self) -> bool {
        self.away.is_some()
    }

    /// The server takes nothing from now on.
    pub(crate) fn is_away_because(&mut self, why: String) {
        self.away.get_or_insert(why);
    }

    /// Counts an article, and keeps it if it waits.
    pub(crate) fn settle(&mut self, id: &str, article: &[u8], settled: Settled) -> Result<()> {
        let (outcome, reason) = match settled {
            Settled::Accepted => ("accepted", None),
            Settled::Refused => ("refused", None),
            Settled::Rejected(why) => ("rejected", Some(why)),
            Settled::Deferred => ("deferred", None),
        };
        match outcome {
            "accepted" => self.accepted += 1,
            "refused" => self.refused += 1,
            "rejected" => self.rejected += 1,
            _ => {
                let waiting = match &mut self.waiting {
                    Some(waiting) => waiting,
                    none => none.insert(self.folder.wait()?),
                };
                waiting.article(article)?;
                self.deferred += 1;
            }
        }
        if self.is_verbose {
            self.tell(id, outcome, reason.as_deref())?;
        }
        if let Some(reason) = reason {
            let is_named = self.reasons.len() < NAMED_MAX || self.reasons.contains_key(&reason);
            let reason = if is_named {
                reason
            } else {
                "other reasons".to_owned()
            };
            *self.reasons.entry(reason).or_default() += 1;
        }
        Ok(())
    }

    fn tell(&self, id: &str, outcome: &str, reason: Option<&str>) -> Result<()> {
        let line = match (self.is_json, reason) {
            (true, _) => json!({"id": id, "outcome": outcome, "reason": reason}).to_string(),
            (false, Some(reason)) => format!("{id} {outcome}: {reason}"),
            (false, None) => format!("{id} {outcome}"),
        };
        output::text(&format!("{line}\n"))
    }

    /// A file waits as it did.
    pub(crate) fn still_waits(&mut self, path: PathBuf) {
        self.waits_in.push(path);
    }

    /// Makes what waits durable: before this an input may not be let go.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if let Some(waiting) = self.waiting.take() {
            self.waits_in.push(waiting.finish()?);
        }
        Ok(())
    }

    /// What programs are told.
    pub(crate) fn json(&self) -> Value {
        json!({
            "accepted": self.accepted,
            "refused": self.refused,
            "rejected": self.rejected,
            "reasons": self.reasons,
            "deferred": self.deferred,
            "away": self.away,
            "waits_in": self.waits_in,
        })
    }

    /// Whether there was something, and the server will never have any of it.
    pub(crate) const fn is_in_vain(&self) -> bool {
        self.rejected > 0 && self.accepted + self.refused + self.deferred == 0
    }

    /// What people are told.
    pub(crate) fn said(&self) -> String {
        let (accepted, refused) = (self.accepted, self.refused);
        let (rejected, deferred) = (self.rejected, self.deferred);
        let mut said = format!(
            "{accepted} accepted, {refused} refused, {rejected} rejected, {deferred} deferred\n"
        );
        for (reason, count) in &self.reasons {
            said += &format!("rejected {count}: {reason}{}\n", what_to_do(reason));
        }
        if let Some(away) = &self.away {
            said += &format!("deferred: {away}; `newsreel rnews --retry` tries again\n");
        }
        for path in &self.waits_in {
            said += &format!("waiting in {}\n", path.display());
        }
        said
    }
}

/// What helps where articles were rejected for this.
fn what_to_do(reason: &str) -> &'static str {
    match reason.starts_with("Too old") {
        true => " (for old articles set `articles.age_s_max = 0`)",
        false => "",
    }
}
