//! Decoded blocks that were read lately, within a budget of octets.
//!
//! The key names the run, and run ids are never used twice, so nothing in here can go stale.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use zstd::bulk::Decompressor;

use super::block::Columns;
use crate::cursor::Bad;

/// Which part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Columns,
    Text,
}

/// Run, block, part.
pub(crate) type Key = (u64, u32, Part);

#[derive(Clone)]
enum Held {
    Columns(Arc<Columns>),
    Text(Bytes),
}

#[derive(Debug, Clone)]
struct Octets;

impl Weighter<Key, Held> for Octets {
    fn weight(&self, _: &Key, held: &Held) -> u64 {
        let octets = match held {
            Held::Columns(columns) => columns.octets().len(),
            Held::Text(text) => text.len(),
        };
        octets as u64 + ENTRY_OCTETS
    }
}

/// What an entry costs beside its octets.
const ENTRY_OCTETS: u64 = 128;
/// About how many octets a part of a block has, to size the cache's own tables.
const PART_OCTETS: u64 = 16 << 10;
/// Decompressors kept for later.
const DECOMPRESSORS_MAX: usize = 16;

/// The cache, with the decompressors.
pub(crate) struct BlockCache {
    cache: Cache<Key, Held, Octets>,
    decompressors: Mutex<Vec<Decompressor<'static>>>,
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache")
            .field("octets", &self.cache.weight())
            .finish_non_exhaustive()
    }
}

impl BlockCache {
    pub(crate) fn new(octets_max: u64) -> Self {
        let items = usize::try_from(octets_max / PART_OCTETS).unwrap_or(usize::MAX);
        Self {
            cache: Cache::with_weighter(items.max(16), octets_max, Octets),
            decompressors: Mutex::default(),
        }
    }

    /// Octets held.
    pub(crate) fn octets(&self) -> u64 {
        self.cache.weight()
    }

    pub(crate) fn columns(&self, key: &Key) -> Option<Arc<Columns>> {
        match self.cache.get(key)? {
            Held::Columns(columns) => Some(columns),
            Held::Text(_) => None,
        }
    }

    pub(crate) fn put_columns(&self, key: Key, columns: &Arc<Columns>) {
        self.cache.insert(key, Held::Columns(Arc::clone(columns)));
    }

    pub(crate) fn text(&self, key: &Key) -> Option<Bytes> {
        match self.cache.get(key)? {
            Held::Text(text) => Some(text),
            Held::Columns(_) => None,
        }
    }

    pub(crate) fn put_text(&self, key: Key, text: &Bytes) {
        self.cache.insert(key, Held::Text(text.clone()));
    }

    /// Decompresses a text that must have exactly `len` octets.
    pub(crate) fn decompress(&self, octets: &[u8], len: usize) -> Result<Vec<u8>, Bad> {
        let kept = self.decompressors.lock().pop();
        let mut decompressor = match kept {
            Some(decompressor) => decompressor,
            None => Decompressor::new().map_err(|_| Bad("no memory to decompress with"))?,
        };
        let result = decompressor.decompress(octets, len);
        let mut kept = self.decompressors.lock();
        if kept.len() < DECOMPRESSORS_MAX {
            kept.push(decompressor);
        }
        result.map_err(|_| Bad("a block's text cannot be decompressed"))
    }
}
