//! The `[log]` section of the configuration.
//!
//! Sizes in octets.  [`JournalConfig::problems`] lists everything that is wrong at once.

use serde::{Deserialize, Serialize};

use crate::format::PAGE_OCTETS;

/// The smallest segment taken.
const SEGMENT_OCTETS_MIN: u64 = 16 * PAGE_OCTETS;
/// The largest segment taken: frame lengths are 32-bit numbers.
const SEGMENT_OCTETS_MAX: u64 = 1 << 31;

/// `[log]`: the log's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JournalConfig {
    /// Size of one log segment, a multiple of 4096; each is written in full once when it is made.
    pub segment_octets: u64,
}

impl Default for JournalConfig {
    fn default() -> Self {
        Self {
            segment_octets: 64 * 1024 * 1024,
        }
    }
}

impl JournalConfig {
    /// What is wrong with the values: key and explanation.
    #[must_use]
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let allowed = SEGMENT_OCTETS_MIN..=SEGMENT_OCTETS_MAX;
        if !allowed.contains(&self.segment_octets)
            || !self.segment_octets.is_multiple_of(PAGE_OCTETS)
        {
            problems.push((
                "segment_octets",
                format!(
                    "{} is not a multiple of {PAGE_OCTETS} from {SEGMENT_OCTETS_MIN} to {SEGMENT_OCTETS_MAX}",
                    self.segment_octets
                ),
            ));
        }
        problems
    }

    /// The segment size as it is used: a bad value becomes the nearest good one.
    pub(crate) fn segment_octets_used(&self) -> u64 {
        let bounded = self
            .segment_octets
            .clamp(SEGMENT_OCTETS_MIN, SEGMENT_OCTETS_MAX);
        bounded - bounded % PAGE_OCTETS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_good_and_bad_values_are_named() {
        assert!(JournalConfig::default().problems().is_empty());
        for bad in [0, 4096, (64 << 20) + 1, 1 << 40] {
            let config = JournalConfig {
                segment_octets: bad,
            };
            assert_eq!(config.problems().len(), 1, "{bad}");
            let used = JournalConfig {
                segment_octets: config.segment_octets_used(),
            };
            assert!(used.problems().is_empty(), "{bad}");
        }
    }

    #[test]
    fn unknown_keys_are_refused() {
        let parse = |text: &str| toml::from_str::<JournalConfig>(text);
        assert_eq!(
            parse("segment_octets = 1048576").unwrap().segment_octets,
            1 << 20
        );
        assert!(
            parse("segment_size = 1")
                .unwrap_err()
                .to_string()
                .contains("segment_size")
        );
    }
}
