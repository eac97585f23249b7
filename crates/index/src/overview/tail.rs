//! The newest overview rows, in memory: a tail of rows for each group, their texts in shared chunks.
//!
//! A batch's texts are one chunk, written before any row points into it and never changed after, so readers take them
//! without a lock; a crosspost's text is there once.  Rows are in shards by group, each under its own lock, held only to
//! add a row or to copy a few out.  A part is never shrunk; a checkpoint replaces it, and its memory serves the next.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use newsreel_wire::{ArticleNumber, GroupId, Token};
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;

use crate::layers::Part;
use crate::liveness::{FactsList, Floors, Share, alive, count_in};
use crate::narrow::u32_of;
use crate::stable::StableVec;

const SHARDS: usize = 64;

/// Smaller chunks are not kept for later.
const POOLED_MIN: usize = 4096;

/// A tail with room for no more rows than this is not kept for later: its group is nearly idle.
const ROWS_MIN: usize = 16;

/// Rows copied out at once.
pub(crate) const COPIED: usize = 64;

/// A row in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TailRow {
    pub(crate) number: u64,
    pub(crate) token: Token,
    pub(crate) arrival: u32,
    /// Which chunk, and where in it: first the message-id, then the text.
    pub(crate) chunk: u32,
    pub(crate) at: u32,
    pub(crate) text_len: u32,
    pub(crate) id_len: u16,
    pub(crate) flags: u16,
}

/// Rows copied out of a tail.
pub(crate) type Copied = SmallVec<[TailRow; COPIED]>;

#[derive(Debug)]
struct Tail {
    group: u32,
    arrival_max: u32,
    rows: Vec<TailRow>,
    buffers: FactsList,
}

#[derive(Debug, Default)]
struct Shard {
    /// Where a group's tail is, plus one, by group / `SHARDS`.
    places: Vec<u32>,
    tails: Vec<Tail>,
}

impl Shard {
    fn tail(&self, group: GroupId) -> Option<&Tail> {
        let place = *self.places.get(group.0 as usize / SHARDS)?;
        self.tails.get((place as usize).checked_sub(1)?)
    }

    fn tail_or_new(&mut self, group: GroupId) -> Option<&mut Tail> {
        let at = group.0 as usize / SHARDS;
        if at >= self.places.len() {
            self.places.resize(at + 1, 0);
        }
        if self.places[at] == 0 {
            self.tails.push(Tail {
                group: group.0,
                arrival_max: 0,
                rows: Vec::new(),
                buffers: FactsList::new(),
            });
            self.places[at] = u32_of(self.tails.len());
        }
        self.tails.get_mut(self.places[at] as usize - 1)
    }
}

impl Tail {
    fn bounds(&self) -> Option<(u64, u64)> {
        Some((self.rows.first()?.number, self.rows.last()?.number))
    }

    /// The first row with a number of at least this.
    fn position(&self, number: u64) -> usize {
        let Some((first, _)) = self.bounds() else {
            return 0;
        };
        // Numbers have no gaps, nearly always.
        let guess = usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX);
        if self.rows.get(guess).is_some_and(|row| row.number == number) {
            return guess;
        }
        self.rows.partition_point(|row| row.number < number)
    }
}

/// Chunks of an earlier part, to be filled again: fresh memory costs more than a text's copy.
#[derive(Debug, Default)]
struct Pool {
    /// By capacity.
    chunks: Vec<Vec<u8>>,
}

impl Pool {
    /// A chunk for `len` octets, the smallest that fits if it is not far too large.
    fn take(&mut self, len: usize) -> Vec<u8> {
        let at = self.chunks.partition_point(|chunk| chunk.capacity() < len);
        let fits = self
            .chunks
            .get(at)
            .is_some_and(|chunk| chunk.capacity() <= len * 3 / 2);
        if fits {
            return self.chunks.remove(at);
        }
        // What has no use now will not have one later: batches are alike.
        self.chunks.pop();
        Vec::with_capacity(len)
    }
}

/// What is alive of a group in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LiveRows {
    pub(crate) count: u64,
    /// The lowest number alive.
    pub(crate) low: Option<u64>,
}

/// A part of the overview in memory.
#[derive(Debug)]
pub(crate) struct TailPart {
    shards: Box<[RwLock<Shard>]>,
    chunks: StableVec<Vec<u8>>,
    pool: Mutex<Pool>,
    next_chunk: AtomicU32,
    text_octets: AtomicU64,
    rows: AtomicU64,
}

impl Default for TailPart {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            chunks: StableVec::default(),
            pool: Mutex::default(),
            next_chunk: AtomicU32::new(0),
            text_octets: AtomicU64::new(0),
            rows: AtomicU64::new(0),
        }
    }
}

impl Part for TailPart {
    /// Empties it and keeps its memory for the next part.  Groups with few rows or none lose
    /// theirs.
    fn recycled(mut self) -> Self {
        let mut chunks: Vec<Vec<u8>> = self.chunks.take_all().collect();
        chunks.retain(|chunk| chunk.capacity() >= POOLED_MIN);
        chunks.iter_mut().for_each(Vec::clear);
        chunks.sort_unstable_by_key(Vec::capacity);
        for shard in &mut self.shards {
            let shard = shard.get_mut();
            let is_kept = |tail: &Tail| !tail.rows.is_empty() && tail.rows.capacity() > ROWS_MIN;
            shard.tails.retain(is_kept);
            shard.tails.shrink_to_fit();
            shard.places.fill(0);
            for (at, tail) in shard.tails.iter_mut().enumerate() {
                tail.rows.clear();
                tail.buffers.clear();
                tail.arrival_max = 0;
                shard.places[tail.group as usize / SHARDS] = u32_of(at) + 1;
            }
        }
        Self {
            shards: self.shards,
            pool: Mutex::new(Pool { chunks }),
            ..Self::default()
        }
    }
}

impl TailPart {
    fn shard(&self, group: GroupId) -> &RwLock<Shard> {
        &self.shards[group.0 as usize % SHARDS]
    }

    /// The number of the next chunk.  From the applier thread only, as all that adds.
    pub(crate) fn next_chunk(&self) -> u32 {
        self.next_chunk.load(Ordering::Relaxed)
    }

    /// Adds a copy of `texts` as the next chunk; `false` when the part can address no more.
    pub(crate) fn add_chunk(&self, texts: &[u8]) -> bool {
        let at = self.next_chunk();
        let mut chunk = self.pool.lock().take(texts.len());
        chunk.extend_from_slice(texts);
        let octets = chunk.capacity() as u64;
        if !self.chunks.set(at as usize, chunk) {
            return false;
        }
        self.text_octets.fetch_add(octets, Ordering::Relaxed);
        self.next_chunk.store(at + 1, Ordering::Relaxed);
        true
    }

    /// Adds a row whose chunk is there.  Numbers must rise; a row that was added before is passed over, so that
    /// replaying a log twice does no harm.
    pub(crate) fn append(&self, group: GroupId, row: TailRow) {
        let mut shard = self.shard(group).write();
        let Some(tail) = shard.tail_or_new(group) else {
            return;
        };
        if tail
            .rows
            .last()
            .is_some_and(|last| last.number >= row.number)
        {
            return;
        }
        count_in(&mut tail.buffers, &row.token);
        tail.arrival_max = tail.arrival_max.max(row.arrival);
        if tail.rows.capacity() == 0 {
            // Most groups of a large spool get one article between two checkpoints.
            tail.rows.reserve_exact(1);
        }
        tail.rows.push(row);
        drop(shard);
    }

    /// Adds a row whose chunk is there, whatever its number; it takes the place of one with the same.  For parts that nobody reads
    /// yet: the facts about buffers are of all that were ever put in.
    pub(crate) fn put(&self, group: GroupId, row: TailRow) {
        let mut shard = self.shard(group).write();
        let Some(tail) = shard.tail_or_new(group) else {
            return;
        };
        count_in(&mut tail.buffers, &row.token);
        tail.arrival_max = tail.arrival_max.max(row.arrival);
        match tail
            .rows
            .binary_search_by_key(&row.number, |row| row.number)
        {
            Ok(at) => tail.rows[at] = row,
            Err(at) => tail.rows.insert(at, row),
        }
    }

    /// Counts rows that were appended; once a batch, so that no row pays for it.
    pub(crate) fn count_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Rows in it.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Octets it takes, about.
    pub(crate) fn octets(&self) -> u64 {
        self.text_octets.load(Ordering::Relaxed)
            + self.rows() * (size_of::<TailRow>() as u64 * 3 / 2)
    }

    /// The row with this number.
    pub(crate) fn find(&self, group: GroupId, number: ArticleNumber) -> Option<TailRow> {
        let shard = self.shard(group).read();
        let tail = shard.tail(group)?;
        let row = tail.rows.get(tail.position(number.0))?;
        (row.number == number.0).then_some(*row)
    }

    /// The first and the last number of a group.
    pub(crate) fn bounds(&self, group: GroupId) -> Option<(u64, u64)> {
        self.shard(group).read().tail(group)?.bounds()
    }

    /// The last number of each group that has rows, by group.
    pub(crate) fn marks(&self) -> Vec<(GroupId, ArticleNumber)> {
        let last = |group| Some((group, ArticleNumber(self.bounds(group)?.1)));
        self.groups().into_iter().filter_map(last).collect()
    }

    /// The latest arrival of a group.
    pub(crate) fn arrival_max(&self, group: GroupId) -> Option<u32> {
        Some(self.shard(group).read().tail(group)?.arrival_max)
    }

    /// Copies the next rows of `from..=to`, a few at a time; none: there are no more.
    pub(crate) fn copy_rows(&self, group: GroupId, from: u64, to: u64, out: &mut Copied) {
        out.clear();
        let shard = self.shard(group).read();
        let Some(tail) = shard.tail(group) else {
            return;
        };
        let rows = tail.rows[tail.position(from)..].iter();
        out.extend(
            rows.take(COPIED)
                .take_while(|row| row.number <= to)
                .copied(),
        );
    }

    /// Copies the last rows of `from..=to`, in descending order.
    pub(crate) fn copy_rows_back(&self, group: GroupId, from: u64, to: u64, out: &mut Copied) {
        out.clear();
        let shard = self.shard(group).read();
        let Some(tail) = shard.tail(group) else {
            return;
        };
        let end = tail.position(to.saturating_add(1));
        let rows = tail.rows[..end].iter().rev();
        out.extend(
            rows.take(COPIED)
                .take_while(|row| row.number >= from)
                .copied(),
        );
    }

    /// Appends the numbers alive in `from..=to` until `out` has `limit`; the number to go on from, if it had to stop.
    pub(crate) fn numbers(
        &self,
        group: GroupId,
        (from, to): (u64, u64),
        limit: usize,
        floors: &mut Floors<'_>,
        out: &mut Vec<ArticleNumber>,
    ) -> Option<u64> {
        let shard = self.shard(group).read();
        let tail = shard.tail(group)?;
        let share = alive(tail.buffers.iter().copied(), floors).share;
        if share == Share::None {
            return None;
        }
        for row in tail.rows[tail.position(from)..].iter() {
            if row.number > to {
                break;
            }
            if share == Share::All || floors.is_live(&row.token) {
                if out.len() >= limit {
                    return Some(row.number);
                }
                out.push(ArticleNumber(row.number));
            }
        }
        None
    }

    /// How many rows of a group are alive, and the first of them.
    pub(crate) fn live_rows(&self, group: GroupId, floors: &mut Floors<'_>) -> LiveRows {
        let shard = self.shard(group).read();
        let Some(tail) = shard.tail(group) else {
            return LiveRows::default();
        };
        let known = alive(tail.buffers.iter().copied(), floors);
        if known.share == Share::None {
            return LiveRows::default();
        }
        let mut live = tail.rows.iter().filter(|row| floors.is_live(&row.token));
        let low = live.next().map(|row| row.number);
        let count = if known.exact {
            known.rows
        } else {
            u64::from(low.is_some()) + live.count() as u64
        };
        LiveRows { count, low }
    }

    /// The message-id of a row of this part.
    pub(crate) fn id(&self, row: &TailRow) -> &[u8] {
        self.slice(row, row.at as usize, usize::from(row.id_len))
    }

    /// The text of a row of this part.
    pub(crate) fn text(&self, row: &TailRow) -> &[u8] {
        let at = row.at as usize + usize::from(row.id_len);
        self.slice(row, at, row.text_len as usize)
    }

    fn slice(&self, row: &TailRow, at: usize, len: usize) -> &[u8] {
        let chunk = self.chunks.get(row.chunk as usize);
        chunk
            .and_then(|chunk| chunk.get(at..at + len))
            .unwrap_or_default()
    }

    /// The groups that have rows, ascending.
    pub(crate) fn groups(&self) -> Vec<GroupId> {
        let mut groups: Vec<GroupId> = Vec::new();
        for shard in &self.shards {
            let shard = shard.read();
            let filled = shard.tails.iter().filter(|tail| !tail.rows.is_empty());
            groups.extend(filled.map(|tail| GroupId(tail.group)));
        }
        groups.sort_unstable();
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::liveness::tests::{Marks, token};

    fn part(rows: &[(u32, u64)]) -> TailPart {
        let part = TailPart::default();
        assert!(part.add_chunk(b"<1@t.example>text"));
        for (group, number) in rows {
            let row = TailRow {
                number: *number,
                token: token(0, number * 10),
                arrival: 5,
                chunk: 0,
                at: 0,
                text_len: 4,
                id_len: 13,
                flags: 0,
            };
            part.append(GroupId(*group), row);
        }
        part
    }

    #[test]
    fn rows_are_found_by_number_across_gaps() {
        let part = part(&[(3, 5), (3, 6), (67, 1), (3, 9), (3, 9), (3, 8)]);
        let row = part.find(GroupId(3), ArticleNumber(9)).unwrap();
        assert_eq!(part.id(&row), b"<1@t.example>");
        assert_eq!(part.text(&row), b"text");
        assert!(
            part.find(GroupId(3), ArticleNumber(8)).is_none(),
            "not rising"
        );
        assert_eq!(part.bounds(GroupId(3)), Some((5, 9)));
        assert_eq!(part.groups(), [GroupId(3), GroupId(67)]);
        let mut copied = Copied::new();
        part.copy_rows_back(GroupId(3), 6, 100, &mut copied);
        assert_eq!(
            copied.iter().map(|row| row.number).collect::<Vec<_>>(),
            [9, 6]
        );
    }

    #[test]
    fn what_died_is_not_counted() {
        let part = part(&[(3, 5), (3, 6), (3, 9)]);
        let marks = Marks::default();
        let check = |count, low| {
            let live = part.live_rows(GroupId(3), &mut Floors::new(&marks));
            assert_eq!(live, LiveRows { count, low });
        };
        check(3, Some(5));
        marks.raise(0, 60);
        check(2, Some(6));
        marks.raise(0, 91);
        check(0, None);
    }
}
