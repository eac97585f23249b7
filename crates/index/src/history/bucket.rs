//! A sealed history bucket, open for look-ups: a filter and the first key of each page in memory, pages on the disk.
//!
//! A miss is told by the filter and reads nothing (once in a thousand it reads a page); a hit reads one page.  Ids that
//! are no longer in the store exist only here, so a bucket is two files, and what rots in one is read from the other.
//! Layout: `docs/formats/history-bucket.md`.

use std::sync::Arc;

use newsreel_wire::{BufferId, IdHash, Position, UnixTime};

use super::cache::{HeldPage, PageCache};
use super::memory::MemoryPart;
use super::page::{PAGE_OCTETS, Page, Stored, key};
use crate::cursor::{Bad, Cursor, array_at};
use crate::error::Result;
use crate::layers::Run;
use crate::liveness::{BufferFacts, FactsList, Floors, Liveness, alive, dead_estimate};
use crate::narrow::u32_of;
use crate::past::seconds;
use crate::sealed::ends::HEADER_OCTETS;
use crate::sealed::filter::Filter;
use crate::sealed::reader::{RunFile, Wait};
use crate::sealed::window::Window;
use crate::sealed::{RunKind, RunMeta};

/// The section with the first key of each page.
pub(crate) const FENCES: u32 = 1;
/// The section with the filter.
pub(crate) const FILTER: u32 = 2;
/// The section with what is known about all entries.
pub(crate) const FACTS: u32 = 3;

/// Pages that are looked at in one go.
const CHECKED_AT_ONCE: u64 = 256;

/// What is known about a bucket's entries without reading them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct BucketFacts {
    /// Of entries with a token.
    pub(crate) buffers: FactsList,
    /// Entries without one.
    pub(crate) tokenless: u64,
    pub(crate) arrival_min: u32,
    pub(crate) arrival_max: u32,
}

impl BucketFacts {
    /// The stored form.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.tokenless.to_le_bytes());
        out.extend_from_slice(&self.arrival_min.to_le_bytes());
        out.extend_from_slice(&self.arrival_max.to_le_bytes());
        self.buffers.iter().for_each(|facts| facts.encode(&mut out));
        out
    }

    /// Reads the stored form.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Bad> {
        let mut cursor = Cursor::new(bytes);
        let mut facts = Self {
            tokenless: cursor.u64()?,
            arrival_min: cursor.u32()?,
            arrival_max: cursor.u32()?,
            buffers: FactsList::new(),
        };
        while !cursor.rest().is_empty() {
            facts.buffers.push(BufferFacts::decode(&mut cursor)?);
        }
        Ok(facts)
    }
}

/// Since when articles that are gone are remembered.
#[derive(Debug)]
pub(crate) struct Remember {
    /// What went before this is forgotten.
    pub(crate) since: UnixTime,
    /// Where the floors stood then.
    pub(crate) floors: Vec<(BufferId, Position)>,
}

/// Tells what is needed no more.
#[derive(Debug)]
pub(crate) struct Forgetting<'a> {
    since: u32,
    /// Where the floors stood then.
    then: Floors<'a>,
}

impl<'a> Forgetting<'a> {
    pub(crate) fn new(remember: &'a Remember, liveness: &'a dyn Liveness) -> Self {
        Self {
            since: seconds(remember.since),
            then: Floors::past(liveness, &remember.floors),
        }
    }

    /// Whether an entry is needed no more.  One that was withdrawn hides its article as long as that is there.
    pub(crate) fn forgets(&mut self, stored: &Stored) -> bool {
        let then = &mut self.then;
        stored.arrival < self.since && !stored.token().is_some_and(|token| then.is_live(&token))
    }
}

/// An open bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    run: RunFile,
    fences: Vec<u64>,
    filter: Filter,
    pub(crate) facts: BucketFacts,
}

/// Where a page lies.
pub(crate) const fn page_offset(page: u64) -> u64 {
    HEADER_OCTETS as u64 + page * PAGE_OCTETS as u64
}

impl Run for Bucket {
    const KIND: RunKind = RunKind::History;

    type Part = MemoryPart;

    fn file(&self) -> &RunFile {
        &self.run
    }

    fn check_part(&self, nth: u64) -> Result<bool> {
        let Some(nth) = nth.checked_sub(1) else {
            return self.run.check_sections().map(|()| true);
        };
        let pages = nth * CHECKED_AT_ONCE..self.pages().min((nth + 1) * CHECKED_AT_ONCE);
        let (is_there, mut octets) = (!pages.is_empty(), [0; PAGE_OCTETS]);
        for page in pages {
            let offset = page_offset(page);
            let check = |octets: &[u8]| self.entries(octets, offset, page).map(|_| ());
            self.run.check_all(&mut octets, offset, check)?;
        }
        Ok(is_there)
    }

    fn open(run: RunFile) -> Result<Self> {
        let fences = run.section(FENCES)?;
        let (fences, rest) = fences.as_chunks::<8>();
        let fences: Vec<u64> = fences
            .iter()
            .map(|fence| u64::from_le_bytes(*fence))
            .collect();
        let end = page_offset(fences.len() as u64);
        if !rest.is_empty() || !fences.is_sorted() || end != run.blocks_end() {
            return Err(run.damage(0, Bad("the list of pages contradicts the file")));
        }
        let at_end = |why| run.damage(run.meta().len, why);
        let filter = Filter::decode(&run.section(FILTER)?).map_err(at_end)?;
        let facts = BucketFacts::decode(&run.section(FACTS)?).map_err(at_end)?;
        Ok(Self {
            run,
            fences,
            filter,
            facts,
        })
    }
}

impl Bucket {
    pub(crate) const fn meta(&self) -> &RunMeta {
        self.run.meta()
    }

    /// How many pages it has.
    pub(crate) const fn pages(&self) -> u64 {
        self.fences.len() as u64
    }

    /// Octets it takes in memory.
    pub(crate) fn octets(&self) -> u64 {
        (self.filter.octets() + self.fences.capacity() * 8) as u64
    }

    /// Whether nothing in it is needed any more.
    pub(crate) fn is_dead(&self, forgetting: &mut Forgetting<'_>) -> bool {
        let alive = alive(self.facts.buffers.iter().copied(), &mut forgetting.then);
        alive.rows == 0 && alive.exact && self.facts.arrival_max < forgetting.since
    }

    /// About how many entries are needed no more.
    pub(crate) fn dead(&self, forgetting: &mut Forgetting<'_>) -> u64 {
        let facts = &self.facts;
        let gone = dead_estimate(&facts.buffers, &mut forgetting.then) + facts.tokenless;
        let span = u64::from(facts.arrival_max.saturating_sub(facts.arrival_min)) + 1;
        let old = u64::from(forgetting.since.saturating_sub(facts.arrival_min)).min(span);
        let forgotten = u128::from(self.meta().rows) * u128::from(old) / u128::from(span);
        gone.min(u64::try_from(forgotten).unwrap_or(u64::MAX))
    }

    /// The entry with this hash.
    pub(crate) fn get(
        &self,
        hash: &IdHash,
        cache: &PageCache,
        wait: Wait,
    ) -> Result<Option<Stored>> {
        if !self.filter.may_contain(hash.suffix()) {
            return Ok(None);
        }
        let (prefix, _) = key(hash);
        // Keys with this prefix may begin on the page before the first fence that is not below it.
        let first = self.fence_above(prefix).saturating_sub(1);
        for page in first..self.fences.len() {
            if self.fences[page] > prefix {
                break;
            }
            let number = u32_of(page);
            let held = match cache.get(self.meta().id, number) {
                Some(held) => held,
                None => {
                    let held = Arc::new(self.page(page as u64, wait)?);
                    cache.put(self.meta().id, number, &held);
                    held
                }
            };
            let found = held.page().find(hash);
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The first page whose fence is at or above `prefix`.  Keys are evenly spread, so a guess is near.
    fn fence_above(&self, prefix: u64) -> usize {
        const NEAR: usize = 64;
        let fences = &self.fences[..];
        let guess = (u128::from(prefix) * fences.len() as u128) >> 64;
        let guess = usize::try_from(guess).unwrap_or(fences.len());
        let low = guess.saturating_sub(NEAR);
        let high = (guess + NEAR).min(fences.len());
        let is_within = (low == 0 || fences[low - 1] < prefix)
            && (high == fences.len() || fences[high] >= prefix);
        if is_within {
            return low + fences[low..high].partition_point(|fence| *fence < prefix);
        }
        fences.partition_point(|fence| *fence < prefix)
    }

    /// How many entries a good page has.
    fn entries(&self, octets: &[u8], offset: u64, page: u64) -> Result<usize, (u64, Bad)> {
        Page::decode(octets, self.meta().id, offset, u32_of(page))
            .map(|page| page.len())
            .map_err(|why| (offset, why))
    }

    /// Reads a page.
    fn page(&self, page: u64, wait: Wait) -> Result<HeldPage> {
        let offset = page_offset(page);
        let mut octets = [0; PAGE_OCTETS];
        let check = |octets: &[u8]| self.entries(octets, offset, page);
        let entries = self.run.checked(&mut octets, offset, wait, check)?;
        Ok(HeldPage { octets, entries })
    }

    /// The entries of a page, read through `window`.
    pub(crate) fn read_page(
        &self,
        page: u64,
        window: &mut Window,
        out: &mut Vec<Stored>,
    ) -> Result<()> {
        let offset = page_offset(page);
        let id = self.meta().id;
        window.checked(&self.run, offset, PAGE_OCTETS, |octets| {
            let page =
                Page::decode(octets, id, offset, u32_of(page)).map_err(|why| (offset, why))?;
            out.clear();
            out.extend((0..page.len()).map(|at| page.get(at)));
            Ok(())
        })
    }
}

/// The entries of a page at this place of a file, if it can still be read; wherever the file's footer went.
pub(crate) fn salvage(octets: &[u8], run: u64, offset: u64, out: &mut Vec<Stored>) {
    let number = u32::from_le_bytes(array_at(octets, 12));
    if page_offset(u64::from(number)) != offset {
        return;
    }
    if let Ok(page) = Page::decode(octets, run, offset, number) {
        out.extend((0..page.len()).map(|at| page.get(at)));
    }
}
