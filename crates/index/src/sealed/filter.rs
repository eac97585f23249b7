//! A split-block Bloom filter: one cache line tells that a key is not there.
//!
//! Each key sets eight bits, one in each word of a 256-bit block (Putze, Sanders, Singler: "Cache-, Hash- and
//! Space-Efficient Bloom Filters", and Parquet's filter).  With 16 bits a key about one foreign key in a thousand
//! passes.  Keys must be well mixed already; a filter never says no for a key that was put in.

use crate::cursor::Bad;
use crate::narrow::halves;

/// Memory a key takes.
const BITS_PER_KEY: u64 = 16;

const WORDS: usize = 8;
const BLOCK_OCTETS: usize = WORDS * 4;

/// Odd multipliers, one a word (those of Parquet).
const SALT: [u32; WORDS] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// The filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    blocks: Vec<[u32; WORDS]>,
}

impl Filter {
    /// An empty filter for so many keys.
    pub(crate) fn for_keys(keys: u64) -> Self {
        let blocks = (keys * BITS_PER_KEY)
            .div_ceil(BLOCK_OCTETS as u64 * 8)
            .max(1);
        Self {
            blocks: vec![[0; WORDS]; usize::try_from(blocks).unwrap_or(usize::MAX)],
        }
    }

    /// Puts a key in.
    pub(crate) fn insert(&mut self, key: u64) {
        let at = self.block_of(key);
        let mask = mask(halves(key)[0]);
        for (word, bit) in self.blocks[at].iter_mut().zip(mask) {
            *word |= bit;
        }
    }

    /// Whether the key may have been put in.
    pub(crate) fn may_contain(&self, key: u64) -> bool {
        let block = &self.blocks[self.block_of(key)];
        let mask = mask(halves(key)[0]);
        block
            .iter()
            .zip(mask)
            .fold(0, |missing, (word, bit)| missing | (bit & !word))
            == 0
    }

    fn block_of(&self, key: u64) -> usize {
        (((key >> 32) * self.blocks.len() as u64) >> 32) as usize
    }

    /// Octets in memory.
    pub(crate) fn octets(&self) -> usize {
        self.blocks.len() * BLOCK_OCTETS
    }

    /// The stored form: the blocks' words, little-endian.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.octets());
        for block in &self.blocks {
            for word in block {
                out.extend_from_slice(&word.to_le_bytes());
            }
        }
        out
    }

    /// Reads the stored form.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Bad> {
        let (chunks, rest) = bytes.as_chunks::<BLOCK_OCTETS>();
        if chunks.is_empty() || !rest.is_empty() {
            return Err(Bad("the filter has no whole number of blocks"));
        }
        let blocks = chunks
            .iter()
            .map(|chunk| {
                let (words, _) = chunk.as_chunks::<4>();
                std::array::from_fn(|at| words.get(at).map_or(0, |word| u32::from_le_bytes(*word)))
            })
            .collect();
        Ok(Self { blocks })
    }
}

fn mask(key: u32) -> [u32; WORDS] {
    SALT.map(|salt| 1 << (key.wrapping_mul(salt) >> 27))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A well-mixed key (splitmix64).
    fn key(seed: u64) -> u64 {
        let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    #[test]
    fn it_never_denies_and_seldom_lies() {
        let mut filter = Filter::for_keys(20_000);
        (0..20_000).for_each(|seed| filter.insert(key(seed)));
        let filter = Filter::decode(&filter.encode()).unwrap();
        assert!((0..20_000).all(|seed| filter.may_contain(key(seed))));
        let lies = (20_000..220_000).filter(|seed| filter.may_contain(key(*seed)));
        let lies = lies.count();
        assert!((20..400).contains(&lies), "{lies} of 200000");
    }

    #[test]
    fn odd_lengths_are_refused() {
        assert!(Filter::decode(&[]).is_err());
        assert!(Filter::decode(&[0; 33]).is_err());
    }
}
