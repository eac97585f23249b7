//! The section `[index]` of the configuration: every limit of the views, with its default.
//!
//! Unknown keys are refused by the parser; what is out of range is listed by [`IndexConfig::problems`], all of it at
//! once.  Nothing here is read again while the server runs: a view gets its configuration when it is opened.

use serde::{Deserialize, Serialize};

/// Limits of history, overview and groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IndexConfig {
    /// Octets of overview kept in memory before a checkpoint is due (during one, up to twice this).
    pub tail_bytes_max: u64,
    /// History entries kept in memory before a checkpoint is due (about 60 octets each; during one, up to twice this).
    pub history_rows_max: u64,
    /// Octets of history pages kept in memory.
    pub history_cache_bytes_max: u64,
    /// Octets of decoded overview blocks kept in memory.
    pub cache_bytes_max: u64,
    /// Groups whose exact count is remembered.
    pub facts_groups_max: usize,
    /// Sealed files of one kind above which adjacent ones are merged (those of more than half the largest size are not
    /// counted).
    pub runs_max: usize,
    /// Sealed files merged at once, at most.
    pub merge_runs_max: usize,
    /// Entries of one history bucket; larger ones are never made by merging.
    pub bucket_rows_max: u64,
    /// Octets of one overview pack; larger ones are never made by merging (at most 2 GiB).
    pub pack_bytes_max: u64,
    /// Percentage of dead octets, of all sealed files of a kind, above which the sparsest is rewritten.
    pub dead_percent_max: u32,
    /// Rows of one overview block.
    pub block_rows_max: u32,
    /// Octets of text in one overview block (a longer single line makes its own block).
    pub block_text_bytes_max: u32,
    /// Rows of a merged pack from which on its text is compressed: smaller ones are new, and most of what is read.
    pub compress_rows_min: u64,
    /// Compression level of text in merged packs (zstd; 1 is fast, 3 is smaller, negative is faster still).
    pub compression_level: i32,
    /// Octets read by one step of compaction.
    pub step_bytes: u64,
    /// Seconds for which the id of an article that is gone is remembered at least, counted from when it went; one that went before its place
    /// was written over is known until it is.
    pub remember_s: u64,
}

impl Default for IndexConfig {
    fn default() -> Self {
        Self {
            tail_bytes_max: 16 << 20,
            history_rows_max: 128 << 10,
            history_cache_bytes_max: 16 << 20,
            cache_bytes_max: 24 << 20,
            facts_groups_max: 16 << 10,
            runs_max: 12,
            merge_runs_max: 8,
            bucket_rows_max: 16 << 20,
            pack_bytes_max: 1 << 30,
            dead_percent_max: 18,
            block_rows_max: 256,
            block_text_bytes_max: 64 << 10,
            compress_rows_min: 1 << 20,
            compression_level: 1,
            step_bytes: 4 << 20,
            remember_s: 11 * 86_400,
        }
    }
}

impl IndexConfig {
    /// What is out of range, as `key: what would be right`.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let ranges = [
            ("tail_bytes_max", self.tail_bytes_max, 1 << 16, 1 << 30),
            ("history_rows_max", self.history_rows_max, 1 << 10, 1 << 30),
            (
                "history_cache_bytes_max",
                self.history_cache_bytes_max,
                1 << 16,
                1 << 40,
            ),
            ("cache_bytes_max", self.cache_bytes_max, 1 << 16, 1 << 40),
            (
                "facts_groups_max",
                self.facts_groups_max as u64,
                64,
                1 << 24,
            ),
            ("runs_max", self.runs_max as u64, 2, 1 << 10),
            ("merge_runs_max", self.merge_runs_max as u64, 2, 64),
            ("bucket_rows_max", self.bucket_rows_max, 1 << 10, 1 << 30),
            ("pack_bytes_max", self.pack_bytes_max, 1 << 16, 2 << 30),
            ("dead_percent_max", u64::from(self.dead_percent_max), 1, 90),
            ("block_rows_max", u64::from(self.block_rows_max), 1, 4096),
            (
                "block_text_bytes_max",
                u64::from(self.block_text_bytes_max),
                1 << 10,
                1 << 20,
            ),
            ("compress_rows_min", self.compress_rows_min, 0, 1 << 40),
            ("step_bytes", self.step_bytes, 1 << 12, 1 << 30),
            ("remember_s", self.remember_s, 0, 100 * 365 * 86_400),
        ];
        let mut problems: Vec<String> = ranges
            .iter()
            .filter(|(_, value, low, high)| value < low || value > high)
            .map(|(key, value, low, high)| format!("{key}: {value} is not within {low}..={high}"))
            .collect();
        if !(-50..=19).contains(&self.compression_level) {
            let level = self.compression_level;
            problems.push(format!("compression_level: {level} is not within -50..=19"));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range_and_problems_are_all_listed() {
        assert_eq!(IndexConfig::default().problems(), Vec::<String>::new());
        let bad = IndexConfig {
            runs_max: 1,
            compression_level: 99,
            ..IndexConfig::default()
        };
        assert_eq!(
            bad.problems(),
            [
                "runs_max: 1 is not within 2..=1024",
                "compression_level: 99 is not within -50..=19"
            ]
        );
    }
}
