//! Settings of the store: `[[buffer]]`, `[[set]]`, `[[rule]]`.
//!
//! Without any of them there is one set, `main`, of two buffers of 1 GiB in the spool, and one
//! rule that puts everything there.  [`StoreConfig::problems`] lists everything wrong at once.

use std::path::PathBuf;

use newsreel_wire::{BUFFER_NAME_OCTETS_MAX, OFFSET_MAX, Wildmat};
use serde::{Deserialize, Serialize};

/// The smallest buffer, octets: room for the headers and a few reserved regions.
pub const BUFFER_OCTETS_MIN: u64 = 1 << 20;

/// `[[buffer]]`: one cyclic buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferConfig {
    /// Its name, as in tokens: at most 15 letters, digits, `-`, `_`.
    pub name: String,
    /// Its file; none: `buffers/NAME` in the spool.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// Its size, octets, everything included.
    pub octets: u64,
    /// Do not write the file out when it is made; room on the disk is then not certain.
    #[serde(default)]
    pub sparse: bool,
}

/// In which order a set fills its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum SetOrder {
    /// A megabyte or a batch here, the next there.
    #[default]
    Interleave,
    /// One buffer to its end, then the next.
    Sequential,
}

/// `[[set]]`: buffers that share what a rule gives them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetConfig {
    /// Its name.
    pub name: String,
    /// The names of its buffers; a buffer belongs to one set.
    pub buffers: Vec<String>,
    /// How they are filled.
    #[serde(default)]
    pub order: SetOrder,
}

/// Which groups of an article a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum GroupMatch {
    /// The first one, as in the paper.
    #[default]
    First,
    /// At least one.
    Any,
    /// Every one.
    All,
}

/// `[[rule]]`: what goes into a set; the first rule that matches decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// A wildmat of groups.
    #[serde(default = "everything")]
    pub groups: String,
    /// Which groups of the article it is held against.
    #[serde(default, rename = "match")]
    pub matching: GroupMatch,
    /// Only articles strictly larger than this, octets in wire form (`~>100000` in the paper).
    #[serde(default)]
    pub larger_than: Option<u64>,
    /// Only articles of at most this size, octets in wire form.
    #[serde(default)]
    pub octets_max: Option<u64>,
    /// Only articles crossposted to this many groups or more (`~G10` in the paper).
    #[serde(default)]
    pub groups_min: Option<u32>,
    /// The set they go to.
    pub set: String,
}

fn everything() -> String {
    "*".to_owned()
}

/// Buffers, sets and rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// The buffers.
    #[serde(default, rename = "buffer")]
    pub buffers: Vec<BufferConfig>,
    /// The sets.
    #[serde(default, rename = "set")]
    pub sets: Vec<SetConfig>,
    /// The rules, in order.
    #[serde(default, rename = "rule")]
    pub rules: Vec<RuleConfig>,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self::two_buffers(1 << 30)
    }
}

impl StoreConfig {
    /// One set `main` of two buffers of this size, taking everything.
    #[must_use]
    pub fn two_buffers(octets: u64) -> Self {
        let buffer = |name: &str| BufferConfig {
            name: name.to_owned(),
            path: None,
            octets,
            sparse: false,
        };
        Self {
            buffers: vec![buffer("C0"), buffer("C1")],
            sets: vec![SetConfig {
                name: "main".to_owned(),
                buffers: vec!["C0".to_owned(), "C1".to_owned()],
                order: SetOrder::Interleave,
            }],
            rules: vec![RuleConfig {
                groups: everything(),
                matching: GroupMatch::First,
                larger_than: None,
                octets_max: None,
                groups_min: None,
                set: "main".to_owned(),
            }],
        }
    }

    /// What is wrong, each with the key it concerns.
    #[must_use]
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let mut wrong = |key: String, why: String| problems.push((key, why));
        for at in 0..self.buffers.len() {
            self.buffer_problems(at, &mut wrong);
        }
        for at in 0..self.sets.len() {
            self.set_problems(at, &mut wrong);
        }
        for (at, rule) in self.rules.iter().enumerate() {
            let key = |field: &str| format!("rule[{at}].{field}");
            if let Err(error) = Wildmat::parse(&rule.groups) {
                wrong(key("groups"), error.to_string());
            }
            if !self.sets.iter().any(|set| set.name == rule.set) {
                wrong(key("set"), format!("there is no set {:?}", rule.set));
            }
        }
        if self.rules.is_empty() {
            wrong(
                "rule".to_owned(),
                "there is no rule, so no article could be taken".to_owned(),
            );
        }
        if self.sets.len() > usize::from(u8::MAX) {
            wrong("set".to_owned(), "there are more than 255 sets".to_owned());
        }
        problems
    }

    fn buffer_problems(&self, at: usize, wrong: &mut dyn FnMut(String, String)) {
        let buffer = &self.buffers[at];
        let key = |field: &str| format!("buffer[{at}].{field}");
        if !is_name(&buffer.name) {
            wrong(
                key("name"),
                format!("{:?} is not 1 to 15 of A-Z a-z 0-9 - _", buffer.name),
            );
        }
        if self.buffers[..at]
            .iter()
            .any(|other| other.name == buffer.name)
        {
            wrong(key("name"), format!("{:?} is there twice", buffer.name));
        }
        if !(BUFFER_OCTETS_MIN..=OFFSET_MAX).contains(&buffer.octets) {
            wrong(
                key("octets"),
                format!(
                    "{} is not within {BUFFER_OCTETS_MIN} to {OFFSET_MAX}",
                    buffer.octets
                ),
            );
        }
        let users = self
            .sets
            .iter()
            .filter(|set| set.buffers.contains(&buffer.name))
            .count();
        if users != 1 {
            wrong(
                key("name"),
                format!("{:?} is in {users} sets; one is right", buffer.name),
            );
        }
    }

    fn set_problems(&self, at: usize, wrong: &mut dyn FnMut(String, String)) {
        let set = &self.sets[at];
        let key = |field: &str| format!("set[{at}].{field}");
        if set.buffers.is_empty() {
            wrong(key("buffers"), format!("set {:?} has no buffer", set.name));
        }
        if self.sets[..at].iter().any(|other| other.name == set.name) {
            wrong(key("name"), format!("{:?} is there twice", set.name));
        }
        for name in &set.buffers {
            if !self.buffers.iter().any(|buffer| buffer.name == *name) {
                wrong(key("buffers"), format!("there is no buffer {name:?}"));
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=BUFFER_NAME_OCTETS_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_sound_and_all_problems_are_named() {
        assert_eq!(StoreConfig::default().problems(), []);
        let mut config = StoreConfig::default();
        config.buffers[1].name = "C0".to_owned();
        config.buffers[0].octets = 5;
        config.rules[0].set = "other".to_owned();
        config.rules[0].groups = "a[".to_owned();
        let keys: Vec<String> = config.problems().into_iter().map(|(key, _)| key).collect();
        for key in [
            "buffer[0].octets",
            "buffer[1].name",
            "rule[0].set",
            "rule[0].groups",
        ] {
            assert!(keys.iter().any(|found| found == key), "{key} in {keys:?}");
        }
    }
}
