//! Completing the commit that a crash left: its articles lie in the buffers, and the log does not have them.
//!
//! Whether they were acknowledged cannot be told: the log's last frame may never have been written, or may be damaged so
//! that nothing of it is known.  So a batch that is whole is filed under the sequences and numbers that its articles were
//! given, and none of them is given again.  The record of an article in a buffer, with its Xref, says all that the log
//! did.  A batch that is not whole was never acknowledged: buffers come first, log second, reply third.

use std::collections::BTreeMap;

use newsreel_index::Views;
use newsreel_journal::{FrameBuilder, JournalWriter, Recovered};
use newsreel_store::{Blocking, StoreReader, Want};
use newsreel_wire::article::{ArticleFacts, Headers, Known};
use newsreel_wire::{IdHash, Sequence, Token};

use crate::applier::Applier;
use crate::error::Error;
use crate::places::{places, write_line};
use crate::record::{ArticleRecord, kind};

/// An article as the log should have told of it.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) token: Token,
    id_hash: IdHash,
    /// The record of the log.
    payload: Vec<u8>,
}

/// What is to be filed, by sequence.
pub(crate) type LeftOver = BTreeMap<Sequence, Left>;

/// The articles of these batches, by sequence, as far as a batch is whole and its articles are new.
pub(crate) fn read(
    views: &Views,
    store: &StoreReader,
    batches: &[Vec<Token>],
) -> Result<LeftOver, Error> {
    let mut left_over = LeftOver::new();
    let mut memory = Vec::new();
    for batch in batches {
        let articles = batch
            .iter()
            .map(|token| article(views, store, token, &mut memory));
        let Some(articles) = articles.collect::<Option<Vec<_>>>() else {
            tracing::info!(
                articles = batch.len(),
                "a commit was not finished, and never acknowledged"
            );
            continue;
        };
        for (sequence, left) in articles {
            // It may be of an earlier crash, and its article may have come again since.
            if views.history().lookup(&left.id_hash)?.is_none() {
                left_over.insert(sequence, left);
            }
        }
    }
    Ok(left_over)
}

/// An article and its sequence; `None` when it is not whole.
fn article(
    views: &Views,
    store: &StoreReader,
    token: &Token,
    memory: &mut Vec<u8>,
) -> Option<(Sequence, Left)> {
    let stored = store.read(token, Want::Whole, Blocking::Yes, memory).ok()?;
    let headers = Headers::scan_stored(&memory[stored.octets.clone()]).ok()?;
    let facts = ArticleFacts::of(&headers).ok()?;
    let content = |known| headers.content(known).unwrap_or_default();
    let groups = views.groups();
    let places = places(groups, &groups.retired(), content(Known::Xref));
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
    let left = Left {
        token: *token,
        id_hash: stored.id_hash,
        payload,
    };
    Some((stored.sequence, left))
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
    let mut articles = left.iter().peekable();
    while let Some((first, _)) = articles.peek() {
        let mut next = **first;
        let mut frame = FrameBuilder::new();
        frame.start(next, recovered.epoch);
        frame.vouch(durable_before);
        while let Some((_, left)) = articles.next_if(|(sequence, _)| **sequence == next) {
            frame.record(kind::ARTICLE).extend_from_slice(&left.payload);
            next = Sequence(next.0 + 1);
        }
        writer.write(&frame)?;
        applier.records(frame.records())?;
        (recovered.next, recovered.end) = (next, next);
    }
    if !left.is_empty() {
        writer.sync()?;
        tracing::warn!(
            articles = left.len(),
            "a commit was not finished, or its frame in the log is damaged: its articles are whole and are kept"
        );
    }
    Ok(())
}
