//! Buffers that connections borrow while they are busy and give back when they wait.
//!
//! One pool a thread, without locks.  An idle connection holds none of these, so thousands of them cost what their
//! task costs; a busy one finds its buffers warm.  The pool is bounded in number and in octets.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};
use newsreel_service::{ArticleBuf, Completion, Transfer};
use newsreel_wire::ArticleNumber;

use crate::slots::Slots;

/// Working sets kept by a thread.
const SCRATCH_KEPT_MAX: usize = 16;
/// A buffer in a working set that has grown beyond this is not kept.
const SCRATCH_BUFFER_BYTES_MAX: usize = 1 << 20;
/// Input chunks kept by a thread, those included that articles on their way still share.
const CHUNKS_KEPT_MAX: usize = 24;
/// Octets of input chunks kept by a thread.
const CHUNK_BYTES_KEPT_MAX: usize = 16 << 20;
/// How many chunks are looked at for one that is free.
const CHUNKS_TRIED_MAX: usize = 4;

/// What a connection needs while it is busy.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Replies gathered.
    pub(crate) out: Vec<u8>,
    /// The article being served.
    pub(crate) article: ArticleBuf,
    /// Article numbers of a listing.
    pub(crate) numbers: Vec<ArticleNumber>,
    /// Ready-made parts of a listing.
    pub(crate) parts: Vec<Bytes>,
    /// Articles received, not yet handed over.
    pub(crate) batch: Vec<Transfer>,
    /// Answers taken from the connection.
    pub(crate) completions: Vec<Completion>,
    /// Answers owed.
    pub(crate) slots: Slots,
}

impl Scratch {
    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.out.is_empty() && self.slots.is_empty() && self.batch.is_empty()
    }

    fn clear(&mut self) {
        self.out.clear();
        if self.out.capacity() > SCRATCH_BUFFER_BYTES_MAX {
            self.out = Vec::new();
        }
        self.article.clear();
        if self.article.capacity() > SCRATCH_BUFFER_BYTES_MAX {
            self.article = ArticleBuf::new();
        }
        self.numbers.clear();
        self.parts.clear();
        self.batch.clear();
        self.completions.clear();
        self.slots.clear();
    }
}

#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "a working set changes hands as one pointer")]
struct Pool {
    scratch: Vec<Box<Scratch>>,
    /// Empty handles with the length of their whole chunk; oldest first.
    chunks: std::collections::VecDeque<(BytesMut, usize)>,
    chunk_bytes: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = RefCell::default();
}

/// A clean working set.
pub(crate) fn take_scratch() -> Box<Scratch> {
    POOL.with_borrow_mut(|pool| pool.scratch.pop())
        .unwrap_or_default()
}

/// Gives a working set back.
pub(crate) fn give_scratch(mut scratch: Box<Scratch>) {
    scratch.clear();
    POOL.with_borrow_mut(|pool| {
        if pool.scratch.len() < SCRATCH_KEPT_MAX {
            pool.scratch.push(scratch);
        }
    });
}

/// An empty chunk of at least `len` octets, and its whole length.
pub(crate) fn take_chunk(len: usize) -> (BytesMut, usize) {
    let found = POOL.with_borrow_mut(|pool| {
        for _ in 0..pool.chunks.len().min(CHUNKS_TRIED_MAX) {
            let (mut chunk, whole) = pool.chunks.pop_front()?;
            pool.chunk_bytes -= whole;
            // Free again once no article shares it.
            if whole >= len && whole <= 2 * len && chunk.try_reclaim(whole) {
                return Some((chunk, whole));
            }
            pool.keep(chunk, whole);
        }
        None
    });
    found.unwrap_or_else(|| (BytesMut::with_capacity(len), len))
}

/// Gives a chunk back; articles may still share it.
pub(crate) fn give_chunk(mut chunk: BytesMut, whole: usize) {
    chunk.clear();
    if whole > 0 {
        POOL.with_borrow_mut(|pool| pool.keep(chunk, whole));
    }
}

impl Pool {
    fn keep(&mut self, chunk: BytesMut, whole: usize) {
        self.chunks.push_back((chunk, whole));
        self.chunk_bytes += whole;
        while self.chunks.len() > CHUNKS_KEPT_MAX || self.chunk_bytes > CHUNK_BYTES_KEPT_MAX {
            let Some((_, whole)) = self.chunks.pop_front() else {
                break;
            };
            self.chunk_bytes -= whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_comes_back_when_nothing_shares_it() {
        let (mut chunk, whole) = take_chunk(4096);
        let start = chunk.as_ptr() as usize;
        chunk.extend_from_slice(&[7; 4000]);
        let article = chunk.split_to(3000).freeze();
        give_chunk(chunk, whole);
        let (other, _) = take_chunk(4096);
        assert_ne!(other.as_ptr() as usize, start, "an article is still in it");
        assert_eq!(article[2999], 7);
        drop(article);
        let (again, whole) = take_chunk(4096);
        assert_eq!(
            (again.as_ptr() as usize, again.capacity(), whole),
            (start, 4096, 4096)
        );
        assert!(again.is_empty());
    }

    #[test]
    fn the_pool_is_bounded() {
        for _ in 0..100 {
            give_chunk(BytesMut::with_capacity(1 << 20), 1 << 20);
            give_scratch(Box::default());
        }
        POOL.with_borrow(|pool| {
            assert!(
                pool.chunk_bytes <= CHUNK_BYTES_KEPT_MAX && pool.chunks.len() <= CHUNKS_KEPT_MAX
            );
            assert_eq!(pool.scratch.len(), SCRATCH_KEPT_MAX);
        });
    }
}
