//! Completing the commits that the log does not have: their articles lie in the buffers.
//!
//! Whether they were acknowledged cannot be told: the log's last frame may never have been written, or its header may be
//! damaged so that nothing of it is known.  So what is whole is filed under the sequences and numbers that it was given, and
//! none of them is given again.  The record of an article in a buffer, with its Xref, says all that the log did.  Only
//! what the last commits can have left is filed so; where there is more the log is an old one.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use newsreel_index::Views;
use newsreel_journal::{FrameBuilder, JournalWriter, Recovered};
use newsreel_store::{Blocking, Left, StoreReader, Want};
use newsreel_wire::article::{ArticleFacts, Headers, Known};
use newsreel_wire::{IdHash, Sequence, Token};

use crate::applier::Applier;
use crate::error::Error;
use crate::finish::SYNC_EVERY_RECORDS as RESERVE;
use crate::places::{Retired, places, write_line};
use crate::record::{ArticleRecord, kind};

/// Octets of a frame that is written at once, about.
const FRAME_OCTETS: usize = 1 << 20;

/// What is to be filed.
#[derive(Debug, Default)]
pub(crate) struct LeftOver {
    pub(crate) articles: BTreeMap<Sequence, LeftArticle>,
    /// The last sequence among them.
    pub(crate) last: Sequence,
    /// So many sequences among them may have been those of articles that are damaged.
    pub(crate) lost: u64,
}

/// An article as the log should have told of it.
#[derive(Debug)]
pub(crate) struct LeftArticle {
    pub(crate) token: Token,
    id_hash: IdHash,
    /// The record of the log.
    payload: Vec<u8>,
}

/// The articles of these that are whole and new; `next` is the first sequence that the log may give.
pub(crate) fn read(
    views: &Views,
    store: &StoreReader,
    left: &[Left],
    next: Sequence,
) -> Result<LeftOver, Error> {
    let mut over = LeftOver::default();
    let retired = views.groups().retired();
    let (mut memory, mut seen) = (Vec::new(), HashSet::new());
    let has_gaps = left.iter().any(|left| left.has_gaps);
    let found = left.iter().flat_map(|left| left.articles.iter().copied());
    // What a buffer failed to take was placed in another under the same sequence.
    let mut found: Vec<(Sequence, Token)> = found.collect();
    found.sort_unstable();
    let mut missing = Missing::from(next);
    let mut lost = BTreeSet::new();
    for (sequence, token) in found {
        if sequence < next {
            // The log has given that up.
            lost.insert(sequence);
            continue;
        }
        missing.count(sequence);
        over.last = sequence;
        let Some(article) = article((views, &retired), store, &token, &mut memory) else {
            lost.insert(sequence);
            continue;
        };
        // What was put off may have come again.
        let is_known = views.history().lookup(&article.id_hash)?.is_some();
        if !is_known && seen.insert(article.id_hash) {
            over.articles.insert(sequence, article);
        }
    }
    lost.retain(|sequence| !over.articles.contains_key(sequence));
    over.lost = lost.len() as u64;
    if has_gaps {
        over.lost += missing.sequences;
    }
    Ok(over)
}

/// Sequences between those of whole articles.
struct Missing {
    next: Sequence,
    sequences: u64,
}

impl Missing {
    const fn from(next: Sequence) -> Self {
        Self { next, sequences: 0 }
    }

    fn count(&mut self, sequence: Sequence) {
        let gap = sequence.0.saturating_sub(self.next.0);
        // A start after a crash passes over more than any commit has.
        if gap < RESERVE {
            self.sequences += gap;
        }
        self.next = Sequence(sequence.0 + 1);
    }
}

/// An article; `None` when it is not whole.
fn article(
    (views, retired): (&Views, &Retired),
    store: &StoreReader,
    token: &Token,
    memory: &mut Vec<u8>,
) -> Option<LeftArticle> {
    let stored = store.read(token, Want::Whole, Blocking::Yes, memory).ok()?;
    let headers = Headers::scan_stored(&memory[stored.octets.clone()]).ok()?;
    let facts = ArticleFacts::of(&headers).ok()?;
    let content = |known| headers.content(known).unwrap_or_default();
    let places = places(views.groups(), retired, content(Known::Xref));
    let mut line = Vec::new();
    if !places.is_empty() {
        write_line(&headers, &facts, &mut line);
    }
    let mut payload = Vec::new();
    ArticleRecord {
        token: *token,
        id_hash: stored.id_hash,
        arrival: stored.arrival,
        octets: u32::try_from(facts.bytes).unwrap_or(u32::MAX),
        groups: places,
        id: content(Known::MessageId),
        path: content(Known::Path),
        line: &line,
    }
    .encode(&mut payload);
    Some(LeftArticle {
        token: *token,
        id_hash: stored.id_hash,
        payload,
    })
}

/// Tells the log and the views of these articles, which are durable in their buffers; a frame may skip sequences, which
/// stay holes.
pub(crate) fn commit(
    left: &LeftOver,
    writer: &mut JournalWriter,
    applier: &mut Applier,
    recovered: &mut Recovered,
) -> Result<(), Error> {
    let durable_before = recovered.next;
    // One more record may go in: it is far smaller than the other half.
    let half = usize::try_from(writer.frame_octets_max() / 2).unwrap_or(usize::MAX);
    let octets_max = half.min(FRAME_OCTETS);
    let mut articles = left.articles.iter().peekable();
    while let Some((first, _)) = articles.peek() {
        let mut next = **first;
        let mut frame = FrameBuilder::new();
        frame.start(next, recovered.epoch);
        frame.vouch(durable_before);
        while frame.bytes().len() < octets_max
            && let Some((_, left)) = articles.next_if(|(sequence, _)| **sequence == next)
        {
            frame.record(kind::ARTICLE).extend_from_slice(&left.payload);
            next = Sequence(next.0 + 1);
        }
        writer.write(&frame)?;
        applier.records(frame.records())?;
        (recovered.next, recovered.end) = (next, next);
    }
    let articles = left.articles.len();
    if articles > 0 {
        writer.sync()?;
        tracing::warn!(
            articles,
            "the last commits were not finished, or their frames in the log are damaged: these articles are whole and \
             are kept; cancels and changes of groups in those frames are not known"
        );
    }
    if left.lost > 0 {
        tracing::error!(
            at_most = left.lost,
            "articles of the last commits were not finished, are damaged in the store, or the log gave them up: they are not \
             here; their numbers stay unused"
        );
    }
    Ok(())
}
