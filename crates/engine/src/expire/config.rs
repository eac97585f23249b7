//! The list `[[expire]]` and the section `[expiry]` of the configuration.

use newsreel_wire::Wildmat;
use serde::{Deserialize, Serialize};

/// All rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct ExpireConfig {
    /// When articles go: for an article in a group, the first entry that is for both holds. Whatever none is for stays until
    /// its buffer or segment drops it. See docs/expiry.md.
    pub expire: Vec<ExpireRule>,
}

/// One entry: which articles it is for, and when a group lets them go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExpireRule {
    /// The groups that it is for, a wildmat. One for all of them (`*`) is for articles in no group, too, where those are files.
    pub groups: String,
    /// Only articles of sets of this class (`class` in `[[set]]`); empty: of any.
    pub class: String,
    /// How long an article stays that does not say when it expires, seconds. None: it does not go by age.
    pub keep_s: Option<u64>,
    /// An article with an Expires field stays at least so long, seconds; none: as long as `keep_s` says, so that the field makes
    /// no article go earlier.
    pub keep_s_min: Option<u64>,
    /// An article with an Expires field stays at most so long, seconds; none: as long as `keep_s` says, so that the field makes
    /// no article stay longer.
    pub keep_s_max: Option<u64>,
    /// So many of its articles stay in each group, the newest.
    pub articles_max: Option<u64>,
    /// Of its articles in each group the newest stay that have no more octets together than this, as stored.
    pub octets_max: Option<u64>,
}

impl Default for ExpireRule {
    fn default() -> Self {
        Self {
            groups: "*".to_owned(),
            class: String::new(),
            keep_s: None,
            keep_s_min: None,
            keep_s_max: None,
            articles_max: None,
            octets_max: None,
        }
    }
}

impl ExpireRule {
    /// What is wrong with it: key and what would be right.
    pub(super) fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        if let Err(error) = Wildmat::parse(&self.groups) {
            problems.push(("groups", error.to_string()));
        }
        let limits = [self.keep_s_min, self.keep_s, self.keep_s_max];
        let [least, usual, most] = limits;
        if let Some((least, most)) = least.zip(most.or(usual)).filter(|(a, b)| a > b) {
            let right = format!("no time is at least {least} and at most {most} seconds");
            problems.push(("keep_s_min", right));
        }
        if let Some((usual, most)) = usual.zip(most).filter(|(a, b)| a > b) {
            let right = format!("{most} is less than keep_s = {usual}: give as much or more");
            problems.push(("keep_s_max", right));
        }
        problems
    }
}

impl ExpireConfig {
    /// The entries that are for no article, as one in front of each is for all of theirs: the places of both.
    #[must_use]
    pub fn shadowed(rules: &[ExpireRule]) -> Vec<(usize, usize)> {
        let takes_all_of = |earlier: &ExpireRule, rule: &ExpireRule| {
            let both = Wildmat::parse(&earlier.groups).ok();
            let both = both.zip(Wildmat::parse(&rule.groups).ok());
            (earlier.class.is_empty() || earlier.class == rule.class)
                && both.is_some_and(|(earlier, rule)| earlier.covers(&rule))
        };
        let all = rules.iter().enumerate();
        let first = |(at, rule)| {
            let mut before = rules.iter().take(at);
            let place = before.position(|earlier| takes_all_of(earlier, rule))?;
            Some((at, place))
        };
        all.filter_map(first).collect()
    }

    /// What is wrong with its entries: key, beginning with the place of the entry, and what would be right.
    #[must_use]
    pub fn problems(rules: &[ExpireRule]) -> Vec<(String, String)> {
        let rules = rules.iter().enumerate();
        let of = |(at, rule): (usize, &ExpireRule)| {
            let problems = rule.problems().into_iter();
            let placed = problems.map(move |(key, right)| (format!("[{at}].{key}"), right));
            placed.collect::<Vec<_>>()
        };
        rules.flat_map(of).collect()
    }
}

/// `[expiry]`: how `[[expire]]` is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExpiryConfig {
    /// Rows of the overview that are looked at in a second, in the background; 0: nothing expires but by `newsreel expire`.
    /// The default costs one core a few hundredths of its time.
    pub rows_per_s: u64,
    /// Articles that go in a second, in the background, at most. Each costs a record in the log, and where articles are files
    /// the removal of one; the default is 86 million a day.
    pub articles_per_s: u64,
    /// From the beginning of a pass over all groups to that of the next, seconds. Where a pass takes longer the next one
    /// begins behind it.
    pub every_s: u64,
    /// Nothing expires while so many articles that went, once for each group, still lie behind older ones that stay in their
    /// buffer, segments or directory: each takes some 100 octets of memory until those go, too.
    pub withdrawn_max: u64,
}

impl Default for ExpiryConfig {
    fn default() -> Self {
        Self {
            rows_per_s: 50_000,
            articles_per_s: 1000,
            every_s: 300,
            withdrawn_max: 5_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_no_article_is_found() {
        let rule = |groups: &str, class: &str| ExpireRule {
            groups: groups.to_owned(),
            class: class.to_owned(),
            ..ExpireRule::default()
        };
        let shadowed = |first: (&str, &str), second: (&str, &str)| {
            let rules = [rule(first.0, first.1), rule(second.0, second.1)];
            ExpireConfig::shadowed(&rules) == [(1, 0)]
        };
        assert!(shadowed(("*", ""), ("alt.*", "")));
        assert!(shadowed(("*", ""), ("alt.*", "large")));
        assert!(shadowed(("alt.*", "large"), ("alt.binaries.*", "large")));
        assert!(!shadowed(("*", "large"), ("alt.*", "")));
        assert!(!shadowed(("*", "large"), ("alt.*", "small")));
        assert!(!shadowed(("alt.*", ""), ("*", "")));
    }

    #[test]
    fn what_contradicts_itself_is_told() {
        let rule = |least, usual, most| ExpireRule {
            keep_s_min: least,
            keep_s: usual,
            keep_s_max: most,
            ..ExpireRule::default()
        };
        let keys = |rule: ExpireRule| {
            let problems = ExpireConfig::problems(&[ExpireRule::default(), rule]);
            let keys: Vec<String> = problems.into_iter().map(|(key, _)| key).collect();
            keys.join(" ")
        };
        assert_eq!(keys(rule(Some(1), Some(2), Some(3))), "");
        assert_eq!(keys(rule(Some(3), None, None)), "");
        assert_eq!(keys(rule(Some(3), Some(2), None)), "[1].keep_s_min");
        assert_eq!(keys(rule(Some(3), None, Some(2))), "[1].keep_s_min");
        assert_eq!(keys(rule(None, Some(3), Some(2))), "[1].keep_s_max");
        let groups = ExpireRule {
            groups: "a[".to_owned(),
            ..ExpireRule::default()
        };
        assert_eq!(keys(groups), "[1].groups");
    }
}
