//! Header blocks of a not too large corpus, made ahead, so that sending costs a copy and no more.
//!
//! Invariant: what is taken from here is what would be generated. Longer corpora are generated as
//! they are sent, in constant memory.

use super::generated::Generated;
use super::words::Cut;

/// Corpora up to this many articles are prepared: some 60 MB.
const ARTICLES_MAX: u64 = 100_000;

#[derive(Debug, Default)]
pub(crate) struct Prepared {
    first: u64,
    heads: Vec<u8>,
    /// Where each header block ends, and its body.
    places: Vec<(usize, Cut)>,
}

impl Prepared {
    /// Makes the header blocks of articles `first..end`, or none when they are too many.
    pub(crate) fn new(generated: &Generated, first: u64, end: u64) -> Self {
        let mut prepared = Self {
            first,
            ..Self::default()
        };
        if end - first <= ARTICLES_MAX {
            for n in first..end {
                let cut = generated.write_head(n, &mut prepared.heads);
                prepared.places.push((prepared.heads.len(), cut));
            }
        }
        prepared
    }

    /// The header block of article `n` with its empty line, and its body.
    pub(crate) fn get(&self, n: u64) -> Option<(&[u8], Cut)> {
        let place = usize::try_from(n.checked_sub(self.first)?).ok()?;
        let (end, cut) = self.places.get(place)?;
        let start = place
            .checked_sub(1)
            .and_then(|before| self.places.get(before));
        Some((
            self.heads.get(start.map_or(0, |before| before.0)..*end)?,
            *cut,
        ))
    }
}
