//! The names of the generated groups, and lists of them in the forms servers import.
//!
//! Invariant: the names depend on their number only, not on the seed, so that every corpus of the
//! same number of groups fits the same server. The first name is the busiest group.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::words::Words;
use crate::random::Dice;

const GROUPS: u64 = 0x10;

/// Hierarchies; early ones are drawn more often, as the Big Eight and alt are on Usenet.
const HIERARCHIES: [&str; 16] = [
    "alt",
    "comp",
    "rec",
    "soc",
    "sci",
    "misc",
    "talk",
    "humanities",
    "alt.fan",
    "comp.lang",
    "comp.sys",
    "rec.arts",
    "rec.music",
    "soc.culture",
    "uk",
    "de",
];

/// The form of a list of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListForm {
    /// One name a line.
    #[default]
    Names,
    /// Lines of an `active` file: name, high mark, low mark, status.
    Active,
}

/// `len` distinct group names.
pub(crate) fn names(len: usize) -> Vec<String> {
    let words = Words::new(GROUPS, 4000);
    let mut seen = HashSet::with_capacity(len);
    let mut names = Vec::with_capacity(len);
    let mut dice = Dice::new(GROUPS, GROUPS, 1);
    while names.len() < len {
        let widest = dice.below(HIERARCHIES.len()) + 1;
        let hierarchy = HIERARCHIES
            .get(dice.below(widest))
            .copied()
            .unwrap_or_default();
        let mut name = format!("{hierarchy}.{}", words.any(&mut dice));
        for _ in 0..dice.below(3) {
            name.push('.');
            name.push_str(words.any(&mut dice));
        }
        if seen.insert(name.clone()) {
            names.push(name);
        }
    }
    names
}

/// A list of `names` in the form asked for.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>, form: ListForm) -> String {
    let mut text = String::new();
    for name in names {
        // Writing to a String cannot fail.
        let _ = match form {
            ListForm::Names => writeln!(text, "{name}"),
            ListForm::Active => writeln!(text, "{name} 0000000000 0000000001 y"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use newsreel_wire::GroupName;

    use super::*;

    #[test]
    fn names_are_distinct_valid_and_a_prefix_of_a_longer_list() {
        let few = names(300);
        let many = names(3000);
        assert_eq!(few, many[..300]);
        assert_eq!(many.iter().collect::<HashSet<_>>().len(), 3000);
        for name in &many {
            assert!(GroupName::parse(name.as_bytes()).is_ok(), "{name}");
        }
        let mean = many.iter().map(String::len).sum::<usize>() / many.len();
        assert!((12..30).contains(&mean), "mean length {mean}");
    }

    #[test]
    fn lists_come_as_names_or_as_an_active_file() {
        assert_eq!(list(["a.b", "c.d"], ListForm::Names), "a.b\nc.d\n");
        assert_eq!(
            list(["a.b"], ListForm::Active),
            "a.b 0000000000 0000000001 y\n"
        );
    }
}
