//! LIST ACTIVE for all groups, ready to send: rendered in chunks, redone only where groups changed.
//!
//! A chunk holds the lines of up to [`CHUNK_GROUPS`] neighbouring groups.  It is rendered again
//! when a mark of one of its groups moved or an article of theirs was withdrawn; everything is when groups came or went,
//! or when articles were overwritten (low marks).  GROUP is exact; this may lag behind by a moment, and where rows of a group
//! cannot be read its low mark may be too low.  Such a chunk is rendered every time.

use std::sync::Arc;

use bytes::Bytes;
use newsreel_index::{Error, Views, Wait};
use newsreel_wire::{GroupId, Sequence};

use crate::shared::Shared;

/// Groups of one chunk.
const CHUNK_GROUPS: usize = 256;

/// The lines as they were rendered last.
#[derive(Debug, Default)]
pub(crate) struct ActiveList {
    /// Of the groups and of the floors, for which the chunks hold.
    revision: Option<(u64, u64)>,
    /// Up to here all chunks are there and hold.
    committed: Option<Sequence>,
    order: Option<Arc<[GroupId]>>,
    chunks: Vec<Chunk>,
}

#[derive(Debug)]
struct Chunk {
    holds_for: State,
    lines: Bytes,
    /// Nothing of it was estimated.
    is_exact: bool,
}

/// What the lines of a chunk follow from, beside what all chunks do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    /// Sum of the high marks of its groups: rises whenever one of them does.
    highs: u64,
    withdrawals: u64,
}

impl ActiveList {
    /// Appends the lines of all groups, brought up to date.
    pub(crate) fn lines(
        &mut self,
        shared: &Shared,
        wait: Wait,
        out: &mut Vec<Bytes>,
    ) -> Result<(), Error> {
        let (views, committed) = (&shared.views, Some(shared.committed()));
        let epoch = shared.store.epoch();
        let revision = Some((views.groups().revision(), epoch));
        if self.revision != revision {
            self.order = None;
            self.chunks.clear();
            self.committed = None;
            self.revision = revision;
        }
        // One that must wait stops half way; the next goes on there.
        if self.committed != committed {
            self.refresh(views, wait)?;
            let is_exact = self.chunks.iter().all(|chunk| chunk.is_exact);
            self.committed = committed.filter(|_| is_exact);
        }
        out.extend(self.chunks.iter().map(|chunk| chunk.lines.clone()));
        Ok(())
    }

    fn refresh(&mut self, views: &Views, wait: Wait) -> Result<(), Error> {
        let groups = views.groups();
        let order = Arc::clone(self.order.get_or_insert_with(|| groups.sorted()));
        for (at, ids) in order.chunks(CHUNK_GROUPS).enumerate() {
            let state = State {
                highs: ids.iter().map(|id| groups.high(*id).0).sum(),
                withdrawals: views.withdrawal_mark(ids),
            };
            match self.chunks.get_mut(at) {
                Some(chunk) if chunk.holds_for == state && chunk.is_exact => {}
                Some(chunk) => *chunk = render(views, ids, state, wait)?,
                None => self.chunks.push(render(views, ids, state, wait)?),
            }
        }
        Ok(())
    }
}

fn render(views: &Views, ids: &[GroupId], state: State, wait: Wait) -> Result<Chunk, Error> {
    let mut is_all_exact = true;
    let mut out = Vec::with_capacity(ids.len() * 40);
    let mut digits = itoa::Buffer::new();
    for id in ids {
        let Some(group) = views.groups().by_id(*id) else {
            continue;
        };
        let (facts, is_exact) = views.group_facts_or_estimate(*id, wait)?;
        is_all_exact &= is_exact;
        out.extend_from_slice(group.name().as_bytes());
        for number in [facts.high, facts.low] {
            out.push(b' ');
            out.extend_from_slice(digits.format(number.0).as_bytes());
        }
        out.push(b' ');
        out.extend_from_slice(group.status().as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    Ok(Chunk {
        holds_for: state,
        lines: Bytes::from(out),
        is_exact: is_all_exact,
    })
}
