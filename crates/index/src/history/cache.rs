//! Pages of the history that were read lately, within a budget of octets.
//!
//! Only checked pages come in, and the key names the run: run ids are never used twice, so nothing in here goes stale.

use std::fmt;
use std::sync::Arc;

use quick_cache::sync::Cache;

use super::page::{PAGE_OCTETS, Page};

/// What a page costs beside its octets.
const ENTRY_OCTETS: u64 = 64;

/// A checked page.
#[derive(Debug)]
pub(crate) struct HeldPage {
    pub(crate) octets: [u8; PAGE_OCTETS],
    pub(crate) entries: usize,
}

impl HeldPage {
    pub(crate) const fn page(&self) -> Page<'_> {
        Page::checked(&self.octets, self.entries)
    }
}

/// The cache, by run and page.
pub(crate) struct PageCache {
    pages: Cache<(u64, u32), Arc<HeldPage>>,
}

impl fmt::Debug for PageCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageCache")
            .field("pages", &self.pages.len())
            .finish_non_exhaustive()
    }
}

impl PageCache {
    pub(crate) fn new(octets_max: u64) -> Self {
        let pages = octets_max / (PAGE_OCTETS as u64 + ENTRY_OCTETS);
        Self {
            pages: Cache::new(usize::try_from(pages).unwrap_or(usize::MAX)),
        }
    }

    /// Octets held.
    pub(crate) fn octets(&self) -> u64 {
        self.pages.len() as u64 * (PAGE_OCTETS as u64 + ENTRY_OCTETS)
    }

    pub(crate) fn get(&self, run: u64, page: u32) -> Option<Arc<HeldPage>> {
        self.pages.get(&(run, page))
    }

    pub(crate) fn put(&self, run: u64, page: u32, held: &Arc<HeldPage>) {
        self.pages.insert((run, page), Arc::clone(held));
    }
}
