//! Damaged sealed files of the views, rebuilt in the background from the store.
//!
//! What is kept in two files and bad in one is only told of here: compaction writes both anew.
//! It runs on the checkpoint thread, a bounded step at a time: checkpoints are never held up, and what is sound is
//! served meanwhile.  A rebuild that fails leaves everything as it was and is begun again later.  An article that no
//! commit named (its log frame failed) is not taken for one: the history must lead to it.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use newsreel_index::{ArticleRow, DamagedRun, Rebuild, RunKind, Wait};
use newsreel_store::{Blocking, ReadError, Stored, Want};
use newsreel_wire::article::{self, ArticleFacts, Headers, Known};
use newsreel_wire::{Sequence, Token, UnixTime};

use crate::counters::Counters;
use crate::error::Error;
use crate::expire::expires;
use crate::in_order::InOrder;
use crate::lost_groups::WHAT_TO_DO;
use crate::places::{Places, Retired, places, write_line};
use crate::requests::Request;
use crate::sequencer::Event;
use crate::shared::Shared;

/// A rebuild that failed is begun again after this, milliseconds.
const AGAIN_MS: u64 = 30_000;

/// Articles looked at in one step.
const STEP_ARTICLES: usize = 1024;

/// Rebuilds one damaged file after the other.
#[derive(Debug)]
pub(crate) struct Mender {
    shared: Arc<Shared>,
    work: Option<Work>,
    /// Damaged files that were told of.
    told: HashSet<PathBuf>,
    /// Nothing is begun before.
    rests_until_ms: u64,
}

/// A rebuild under way.
#[derive(Debug)]
struct Work {
    rebuild: Rebuild,
    articles: InOrder,
    retired: Retired,
    memory: Vec<u8>,
    text: Vec<u8>,
}

impl Mender {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            work: None,
            told: HashSet::new(),
            rests_until_ms: 0,
        }
    }

    /// Does one bounded piece of work.  `false`: there is nothing to do now.
    pub(crate) fn step(&mut self) -> bool {
        let worked = match self.work.take() {
            Some(work) => self.go_on(work).map(|()| true),
            None => self.begin(),
        };
        worked.unwrap_or_else(|error| {
            tracing::error!(%error, "a damaged file of the views could not be rebuilt; it is tried again later");
            Counters::add(&self.shared.counters.disk_errors, 1);
            self.rests_until_ms = self.shared.now_ms() + AGAIN_MS;
            false
        })
    }

    fn begin(&mut self) -> Result<bool, Error> {
        let views = Arc::clone(&self.shared.views);
        let mut damaged = views.damaged();
        self.tell(&damaged);
        if self.shared.now_ms() < self.rests_until_ms {
            return Ok(false);
        }
        damaged.retain(|run| !run.is_readable);
        if damaged
            .iter()
            .any(|run| run.kind == RunKind::Groups && !run.is_lost)
        {
            self.retell();
        }
        damaged.retain(|run| run.kind != RunKind::Groups);
        // The overview asks the history.
        damaged.sort_by_key(|run| match run.kind {
            RunKind::Groups | RunKind::History => 0,
            RunKind::Overview => 1,
        });
        let Some(run) = damaged.first() else {
            return Ok(false);
        };
        let rebuild = views.rebuild(run.run)?;
        let (first, last) = rebuild.sequences();
        let last = last.unwrap_or_else(|| self.shared.committed());
        let articles = InOrder::new(&self.shared.store, (first, last));
        self.work = Some(Work {
            rebuild,
            articles,
            retired: views.groups().retired(),
            memory: Vec::new(),
            text: Vec::new(),
        });
        Ok(true)
    }

    /// Memory has what was in damaged group rows: a checkpoint tells it again.
    fn retell(&mut self) {
        let (answer, _) = sync_channel(1);
        let request = Request::Checkpoint;
        self.shared
            .inbox
            .push_event(Event::Request(request, answer));
        self.rests_until_ms = self.shared.now_ms() + AGAIN_MS;
    }

    /// Tells of what was found damaged, and of what is good again.
    fn tell(&mut self, damaged: &[DamagedRun]) {
        let counters = &self.shared.counters;
        for run in damaged {
            if !self.told.insert(run.path.clone()) {
                continue;
            }
            Counters::add(&counters.damaged_files, 1);
            if run.is_readable {
                tracing::error!(
                    why = run.why,
                    "its other file is read instead, and both are written anew in the background"
                );
            } else if run.is_lost {
                // That was told when the spool was opened.
            } else {
                tracing::error!(
                    why = run.why,
                    "it is rebuilt from the store in the background"
                );
            }
        }
        self.told.retain(|path| {
            let is_damaged = damaged.iter().any(|run| run.path == *path);
            if !is_damaged {
                Counters::add(&counters.rebuilt_files, 1);
                tracing::warn!(path = %path.display(), "a damaged file of the views was made anew");
            }
            is_damaged
        });
    }

    fn go_on(&mut self, mut work: Work) -> Result<(), Error> {
        for _ in 0..STEP_ARTICLES {
            match work.articles.next()? {
                Some((sequence, token)) => work.article(&self.shared, sequence, token)?,
                None if !work.articles.is_done() => break,
                None if work.rebuild.step()? => return Ok(work.rebuild.finish()?),
                None => break,
            }
        }
        self.work = Some(work);
        Ok(())
    }
}

impl Work {
    /// Gives an article of the store to the rebuild, if it is there and is the one the views should have.
    fn article(&mut self, shared: &Shared, sequence: Sequence, token: Token) -> Result<(), Error> {
        // Few of those behind the last sequence were moved.
        if sequence > self.rebuild.damaged().last {
            let Some(stored) = self.read(shared, (sequence, token), Want::Head)? else {
                return Ok(());
            };
            self.memory.truncate(stored.octets.end);
            self.memory.extend_from_slice(b"\r\n");
            let headers = Headers::scan_stored(&self.memory[stored.octets.start..]);
            let xref = headers.ok().and_then(|it| it.content(Known::Xref));
            let places = places(
                shared.views.groups(),
                &self.retired,
                xref.unwrap_or_default(),
            );
            if !self.rebuild.wants(&places) {
                return Ok(());
            }
        }
        let Some(stored) = self.read(shared, (sequence, token), Want::Whole)? else {
            return Ok(());
        };
        if self.rebuild.damaged().kind == RunKind::Overview && !is_known(shared, &stored, &token) {
            return Ok(());
        }
        self.row(shared, &stored, token)
    }

    /// Reads an article into memory; `None`: it is not there, or it is damaged, which is told.
    fn read(
        &mut self,
        shared: &Shared,
        (sequence, token): (Sequence, Token),
        want: Want,
    ) -> Result<Option<Stored>, Error> {
        let store = &shared.store;
        match store.read(&token, want, Blocking::Yes, &mut self.memory) {
            Ok(stored) => Ok(Some(stored).filter(|it| it.sequence == sequence)),
            Err(ReadError::Gone | ReadError::Removed) => Ok(None),
            Err(ReadError::Host(error)) if !error.is_medium() => Err(error.into()),
            Err(error) => {
                tracing::error!(%error, "an article is damaged and left out");
                Ok(None)
            }
        }
    }

    fn row(&mut self, shared: &Shared, stored: &Stored, token: Token) -> Result<(), Error> {
        let wire = &self.memory[stored.octets.clone()];
        let Ok(headers) = Headers::scan_stored(wire) else {
            return Ok(());
        };
        let Ok(facts) = ArticleFacts::of(&headers) else {
            return Ok(());
        };
        let id = headers.content(Known::MessageId).unwrap_or_default();
        let xref = headers.content(Known::Xref).unwrap_or_default();
        let places = places(shared.views.groups(), &self.retired, xref);
        if self.rebuild.damaged().kind == RunKind::History
            && lies_elsewhere(shared, &places, &token)
        {
            return Ok(());
        }
        self.text.clear();
        if !places.is_empty() {
            write_line(&headers, &facts, &mut self.text);
        }
        self.rebuild.article(&ArticleRow {
            hash: stored.id_hash,
            token,
            arrival: stored.arrival,
            flags: expires_of(&headers, stored.arrival),
            places: &places,
            id,
            text: &self.text,
        })?;
        Ok(())
    }
}

/// What a row keeps of the Expires field.
fn expires_of(headers: &Headers<'_>, arrival: UnixTime) -> u16 {
    article::expires(headers).map_or(0, |at| expires::flags(arrival, at))
}

/// Whether the history leads to this copy, as far as it can tell.  A withdrawn article has no token there.
fn is_known(shared: &Shared, stored: &Stored, token: &Token) -> bool {
    match shared.views.history().lookup(&stored.id_hash) {
        Ok(Some(entry)) => entry.token.is_none_or(|known| known.same_place(token)),
        Ok(None) => false,
        Err(_) => true,
    }
}

/// Whether the overview says that this copy is not the article, as far as it can tell.
fn lies_elsewhere(shared: &Shared, places: &Places, token: &Token) -> bool {
    let (overview, mut id) = (shared.views.overview(), Vec::new());
    let mut rows = places.iter().filter_map(|(group, number)| {
        let row = overview.column(*group, *number, Wait::Yes, &mut id);
        row.ok().flatten()
    });
    rows.next().is_some_and(|row| !row.token.same_place(token))
}

/// A damaged file in one line.
pub(crate) fn describe(run: &DamagedRun) -> String {
    let means = match (run.is_lost, run.is_readable) {
        (true, _) => format!(
            "both files are lost, and groups of sequences {} to {} with them: {WHAT_TO_DO}",
            run.first.0, run.last.0
        ),
        (_, true) => "its other file answers; written anew in the background".to_owned(),
        (_, false) => "rebuilt in the background".to_owned(),
    };
    format!(
        "{} file of {} rows: {}; {means}",
        run.kind, run.rows, run.why
    )
}
