//! The section `[lists]` of the configuration, and what LIST says of it: texts that no article changes.
//!
//! They are made ready once, in wire form, and are the same for every session until the configuration is read again.
//! What nobody has written is told as a server elsewhere says it.  Where none does it is not kept: LIST answers 503 and CAPABILITIES
//! does not name it.

use bytes::Bytes;
use newsreel_service::posting::Moderators;
use newsreel_wire::{GroupName, Wildmat};
use serde::{Deserialize, Serialize};

/// `[lists]`: what readers are told about this site by LIST.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct ListsConfig {
    /// The message of the day, any number of lines (LIST MOTD); empty: there is none.
    pub motd: String,
    /// Distributions that posters may use, each with what it means behind a space, as in `local Only this site` (LIST
    /// DISTRIBUTIONS).
    pub distributions: Vec<String>,
    /// Which Distribution suits which groups, `weight:wildmat:distribution`: of the entries that match the one of the
    /// highest weight holds (LIST DISTRIB.PATS, RFC 3977 section 7.6.5).
    pub distrib_pats: Vec<String>,
    /// Groups that new readers are subscribed to, the most recommended first (LIST SUBSCRIPTIONS).
    pub subscriptions: Vec<String>,
}

impl ListsConfig {
    /// Everything that is wrong with the values, as `(key, what would be right)`.
    #[must_use]
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let mut wrong = |key: String, right: String| problems.push((key, right));
        let is_text = |text: &str| !text.chars().any(|c| c.is_control() && c != '\t');
        if !self.motd.lines().all(is_text) {
            let right = "lines without control characters";
            wrong("motd".into(), right.into());
        }
        for (at, entry) in self.distributions.iter().enumerate() {
            if !is_text(entry) || distribution(entry).is_none() {
                let right = format!("{entry:?} must be a name, a space and what it means");
                wrong(format!("distributions[{at}]"), right);
            }
        }
        for (at, entry) in self.distrib_pats.iter().enumerate() {
            if !is_pattern(entry) {
                let right = format!("{entry:?} must be as in \"10:local.*:local\"");
                wrong(format!("distrib_pats[{at}]"), right);
            }
        }
        for (at, entry) in self.subscriptions.iter().enumerate() {
            if let Err(why) = GroupName::parse(entry.as_bytes()) {
                let right = format!("{entry:?} is no newsgroup name: {why}");
                wrong(format!("subscriptions[{at}]"), right);
            }
        }
        problems
    }
}

/// A distribution's name (RFC 5536 section 3.2.7).
fn is_name(name: &str) -> bool {
    let more = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'+' | b'-' | b'_');
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.bytes().all(more)
}

/// `name meaning`, in two.
fn distribution(entry: &str) -> Option<(&str, &str)> {
    let (name, meaning) = entry.split_once([' ', '\t'])?;
    let meaning = meaning.trim();
    (is_name(name) && !meaning.is_empty()).then_some((name, meaning))
}

/// `weight:wildmat:distributions`.
fn is_pattern(entry: &str) -> bool {
    let Some((weight, rest)) = entry.split_once(':') else {
        return false;
    };
    let Some((wildmat, value)) = rest.rsplit_once(':') else {
        return false;
    };
    !weight.starts_with('+')
        && weight.parse::<u32>().is_ok()
        && Wildmat::parse_argument(wildmat.as_bytes()).is_ok()
        && value.split(',').all(is_name)
}

/// One keyword of LIST with what follows 215, if it is kept.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) keyword: &'static str,
    /// In wire form; empty: it is not kept.
    pub(crate) lines: Bytes,
    pub(crate) names: Names,
}

/// What the lines of a keyword name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// No groups.
    Nothing,
    /// A group each; a wildmat may say which.
    Groups,
    /// Patterns that match groups, in that column.
    Patterns { at: usize },
}

/// The texts, ready to be listed.
#[derive(Debug)]
pub struct Lists([Kept; 5]);

impl Lists {
    /// From sound values; `moderators` is `moderation.moderators`.
    #[must_use]
    pub fn new(config: &ListsConfig, moderators: &[String]) -> Self {
        let kept = |keyword, names, lines: Vec<String>| Kept {
            keyword,
            lines: lines
                .iter()
                .map(|line| format!("{line}\r\n"))
                .collect::<String>()
                .into(),
            names,
        };
        let distributions = config.distributions.iter().filter_map(|entry| {
            let (name, meaning) = distribution(entry)?;
            Some(format!("{name}\t{meaning}"))
        });
        let moderators = Moderators::parse(moderators).unwrap_or_default();
        // The lines of the others begin with a letter or a digit.
        let stuffed = |line: &str| match line.starts_with('.') {
            true => format!(".{line}"),
            false => line.to_owned(),
        };
        Self([
            kept(
                "DISTRIB.PATS",
                Names::Patterns { at: 1 },
                config.distrib_pats.clone(),
            ),
            kept("DISTRIBUTIONS", Names::Nothing, distributions.collect()),
            kept(
                "MODERATORS",
                Names::Patterns { at: 0 },
                moderators.lines().map(|line| stuffed(&line)).collect(),
            ),
            kept(
                "MOTD",
                Names::Nothing,
                config.motd.lines().map(stuffed).collect(),
            ),
            kept("SUBSCRIPTIONS", Names::Groups, config.subscriptions.clone()),
        ])
    }

    /// What a keyword of LIST names.
    pub(crate) fn find(&self, keyword: &[u8]) -> Option<&Kept> {
        let is_it = |kept: &&Kept| kept.keyword.as_bytes().eq_ignore_ascii_case(keyword);
        self.0.iter().find(is_it)
    }

    /// Whether the keyword is none of these, or kept.
    pub(crate) fn offers(&self, keyword: &str) -> bool {
        self.find(keyword.as_bytes())
            .is_none_or(|kept| !kept.lines.is_empty())
    }
}

impl Default for Lists {
    fn default() -> Self {
        Self::new(&ListsConfig::default(), &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|&entry| entry.to_owned()).collect()
    }

    #[test]
    fn what_is_wrong_is_told_by_entry() {
        assert_eq!(ListsConfig::default().problems(), []);
        let sound = ListsConfig {
            motd: "One\n\n.dot\n".into(),
            distributions: list(&["local This site", "de\tGermany"]),
            distrib_pats: list(&["0:*:world", "10:a.[b:]*,!c:x,y"]),
            subscriptions: list(&["news.answers"]),
        };
        assert_eq!(sound.problems(), []);
        let bad = ListsConfig {
            motd: "a\u{7}b".into(),
            distributions: list(&["local", "lo,cal x", " x y", "local a\nb"]),
            distrib_pats: list(&["10:local.*", "x:*:y", "+1:*:y", "1::y", "1:*:y z", "1:*:"]),
            subscriptions: list(&["a..b"]),
        };
        let keys: Vec<String> = bad.problems().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys.len(), 1 + 4 + 6 + 1, "{keys:?}");
    }

    #[test]
    fn what_is_not_kept_is_not_offered() {
        let lists = Lists::default();
        assert!(!lists.offers("MOTD") && lists.offers("ACTIVE"));
        let config = ListsConfig {
            motd: ".".into(),
            ..ListsConfig::default()
        };
        let lists = Lists::new(&config, &list(&[".x:a@b.example"]));
        assert!(lists.offers("MOTD") && lists.offers("MODERATORS"));
        assert_eq!(lists.find(b"motd").unwrap().lines, "..\r\n");
        assert_eq!(
            lists.find(b"moderators").unwrap().lines,
            "..x:a@b.example\r\n"
        );
    }
}
