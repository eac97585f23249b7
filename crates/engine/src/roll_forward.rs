//! Articles that the log does not have, or no longer: they lie in the buffers.
//!
//! The record of an article in a buffer, with its Xref, says all that the log did.  Behind the log's end it cannot be told
//! whether they were acknowledged: the last frame may never have been written, or its header may be damaged so that
//! nothing of it is known.  So what is whole is filed under the sequences and numbers that it was given, and none of them is
//! given again.  Only what the last commits can have left is filed so; where there is more the log is an old one.
//! Where a frame in front of others is lost, its articles go to the views, and the log keeps the hole.
//! What outgoing feeds must know of an article goes in front of it, where the sequence is free that it had: whoever sends it once more is
//! told that it is here, so that nobody else would pass it on.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use newsreel_index::{Error as IndexError, Views};
use newsreel_journal::{FrameBuilder, JournalWriter, Recovered};
use newsreel_store::{Blocking, Left, Missing as Stretch, Store, StoreReader, Want};
use newsreel_wire::article::{ArticleFacts, Content, Headers, Known};
use newsreel_wire::{IdHash, Sequence, Token};

use crate::applier::Applier;
use crate::error::Error;
use crate::finish::SYNC_EVERY_RECORDS as RESERVE;
use crate::places::{Retired, places, write_line};
use crate::record::{ArticleRecord, FeedRecord, kind};
use crate::replay::Replay;

/// Octets of a frame that is written at once, about.
const FRAME_OCTETS: usize = 1 << 20;

/// Sequences of lost frames that are looked for at once: what is found is in memory meanwhile.
const RESTORED_AT_ONCE: u64 = 16_384;

/// What is to be filed.
#[derive(Debug, Default)]
pub(crate) struct LeftOver {
    pub(crate) articles: BTreeMap<Sequence, LeftArticle>,
    /// Sequences from here on are those of what is left.
    from: Sequence,
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
    /// A group has given one of its numbers already.
    is_given: bool,
    /// The record of the log.
    payload: Vec<u8>,
    /// The one for outgoing feeds.
    fed: Vec<u8>,
}

impl LeftOver {
    /// The first sequence that is written.
    fn begin(&self) -> Option<Sequence> {
        let (first, _) = self.articles.first_key_value()?;
        Some(begin_of(*first, self.from))
    }
}

/// The sequence in front of an article, if it is free: that is where the record for outgoing feeds was; else its own.
fn begin_of(article: Sequence, free_from: Sequence) -> Sequence {
    Sequence(article.0.saturating_sub(1).max(free_from.0).min(article.0))
}

/// The articles of these that are whole and new; `next` is the first sequence that the views have not been told of.
pub(crate) fn read(
    views: &Views,
    store: &StoreReader,
    left: &[Left],
    next: Sequence,
) -> Result<LeftOver, Error> {
    let mut over = LeftOver {
        from: next,
        ..LeftOver::default()
    };
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
            // The views have been told of that.
            continue;
        }
        missing.count(sequence);
        over.last = sequence;
        let Some(article) = article((views, &retired), store, &token, &mut memory) else {
            lost.insert(sequence);
            continue;
        };
        // What was put off may have come again.
        let is_known = match views.history().lookup(&article.id_hash) {
            Ok(entry) => entry.is_some(),
            // It is made again when there is a start.
            Err(error) if error.is_damage() || matches!(error, IndexError::Incomplete { .. }) => {
                article.is_given
            }
            Err(error) => return Err(error.into()),
        };
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
    let xref = content(Known::Xref);
    let places = places(views.groups(), retired, xref);
    if places.is_empty() && !xref.is_empty() {
        // Nobody would find it, and nobody might send it again.
        return None;
    }
    let mut given = places.iter();
    let is_given = given.any(|(group, number)| *number <= views.groups().high(*group));
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
    let mut fed = Vec::new();
    FeedRecord {
        is_posted: is_posted(content(Known::Path)),
        is_control: headers.get(Known::Control).is_some(),
        content: Some(Content::of(&headers)),
        newsgroups: content(Known::Newsgroups),
        distribution: content(Known::Distribution),
    }
    .encode(&mut fed);
    Some(LeftArticle {
        token: *token,
        id_hash: stored.id_hash,
        is_given,
        payload,
        fed,
    })
}

/// Whether an article was injected here: behind our own name in Path it says so (RFC 5536 section 3.1.5).
fn is_posted(path: &[u8]) -> bool {
    let mut names = path.split(|octet| *octet == b'!');
    names
        .nth(1)
        .is_some_and(|name| name.starts_with(b".POSTED"))
}

/// Tells the views of the articles whose frames the log has lost although they were durable, in front of those with which it
/// goes on.  The log keeps the hole: it is found again until a checkpoint.
pub(crate) fn restore(
    replay: &mut Replay,
    store: &mut Store,
    applier: &mut Applier,
    views: &Views,
    missing: Stretch,
) -> Result<(), Error> {
    let (mut first, before) = (missing.last.next(), missing.before.unwrap_or_default());
    let from = first;
    let (mut articles, mut missed) = (0, 0);
    while first < before {
        let next = before.min(Sequence(first.0.saturating_add(RESTORED_AT_ONCE)));
        let part = Stretch {
            last: Sequence(first.0.saturating_sub(1)),
            before: Some(next),
            ..missing
        };
        let left = store.left_over(&replay.marks(), part)?;
        for left in &left {
            replay.left(left);
        }
        let over = read(views, &store.reader(), &left, first)?;
        frames(&over, (0, FRAME_OCTETS), |frame| {
            applier.records(frame.records())
        })?;
        for article in over.articles.values() {
            replay.placed(&article.token);
        }
        articles += over.articles.len();
        missed += over.lost;
        first = next;
    }
    tracing::warn!(
        from = from.0,
        before = before.0,
        articles,
        missed,
        "frames of the log are lost: these articles of theirs are whole in the store and are kept; cancels and changes of \
         groups in those frames are not known"
    );
    Ok(())
}

/// Calls `each` with frames of these articles; a frame has no gaps.
fn frames(
    left: &LeftOver,
    (epoch, octets_max): (u64, usize),
    mut each: impl FnMut(&mut FrameBuilder) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut articles = left.articles.iter().peekable();
    let mut free_from = left.from;
    while let Some((first, _)) = articles.peek() {
        let begin = begin_of(**first, free_from);
        free_from = begin;
        let mut frame = FrameBuilder::new();
        frame.start(begin, epoch);
        while frame.bytes().len() < octets_max
            && let Some((sequence, article)) =
                articles.next_if(|(sequence, _)| begin_of(**sequence, free_from) == free_from)
        {
            if *sequence != free_from {
                frame.record(kind::FEED).extend_from_slice(&article.fed);
            }
            frame
                .record(kind::ARTICLE)
                .extend_from_slice(&article.payload);
            free_from = sequence.next();
        }
        each(&mut frame)?;
    }
    Ok(())
}

/// Tells the log and the views of these articles, which are durable in their buffers; a frame may skip sequences, which
/// stay holes.
pub(crate) fn commit(
    left: &LeftOver,
    writer: &mut JournalWriter,
    applier: &mut Applier,
    recovered: &mut Recovered,
) -> Result<(), Error> {
    let durable_before = recovered.end;
    if let Some(first) = left.begin() {
        writer.found_again(first);
    }
    // One more article may go in: its records are far smaller than the other half.
    let half = usize::try_from(writer.frame_octets_max() / 2).unwrap_or(usize::MAX);
    let shape = (recovered.epoch, half.min(FRAME_OCTETS));
    frames(left, shape, |frame| {
        frame.vouch(durable_before);
        writer.write(frame)?;
        applier.records(frame.records())?;
        recovered.end = frame.end();
        Ok(())
    })?;
    recovered.next = recovered.next.max(recovered.end);
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
            "articles of the last commits were not finished, or are damaged in the store: they are not here; their numbers \
             stay unused"
        );
    }
    Ok(())
}
