//! The list `[[filter]]` of the configuration.

use newsreel_wire::Wildmat;
use serde::{Deserialize, Serialize};

use crate::builtin::field_and_pattern;

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct FilterConfig {
    /// What judges articles before they are taken, in this order: the first that does not take one decides. See
    /// docs/filters.md.
    pub filter: Vec<FilterRule>,
}

/// What holds while a filter does not answer in time, or is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Fallback {
    /// The article is taken.
    #[default]
    Accept,
    /// It is refused: no peer sends it again.
    Reject,
    /// It is put off: a peer keeps it, and may close the connection over it; a poster is told to try again.
    Defer,
}

/// One entry: a filter, and which articles it judges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilterRule {
    /// What the log calls it.
    pub name: String,
    /// Articles are refused that have one of these header fields, each as `Field: pattern`: the pattern is a wildmat for the
    /// whole content, without regard to case and with one blank for all between words; commas and `!` are characters like
    /// any other. The field is looked at as it stands in the article: encoded words (RFC 2047) are not decoded.
    pub refuse: Vec<String>,
    /// Articles with the same body that are taken in `copies_s`, whatever their blanks; 0: any number. Bodies of less than 100
    /// octets without their blanks, and those of control messages, are not counted. Who goes on gets none through until it has been quiet.
    pub copies_max: u32,
    /// The time in which `copies_max` are taken, seconds.
    pub copies_s: u64,
    /// Articles of one sender that are taken in `sender_s`; 0: any number. Of what is posted here a sender is an address (IPv6: a
    /// /64 network), of others what Injection-Info or NNTP-Posting-Host says, else what From does: that anybody may have written, so a
    /// low number keeps out whom somebody else writes in.
    pub sender_articles_max: u32,
    /// The time in which `sender_articles_max` are taken, seconds.
    pub sender_s: u64,
    /// The program that judges what is left then, if any, with its arguments, as the path of a file and words without quoting; no shell is involved. It
    /// is started by the server, as the server's user, and again when it ends; it speaks the protocol of docs/filters.md.
    pub program: String,
    /// How many of the program run at the same time; each judges one article at a time.
    pub instances: u32,
    /// How long an article waits for its verdict at most, milliseconds, while others are judged before it too; then `when_down`
    /// holds for it.
    pub late_ms: u64,
    /// A program that has not answered for so long is ended and started again, seconds; so is one that has not begun to.
    pub hung_s: u64,
    /// What becomes of articles that are not judged in time, or while no program runs: `accept`, `reject` or `defer`.
    pub when_down: Fallback,
    /// Only articles that are in a group which this wildmat matches.
    pub groups: String,
    /// Whether it judges what peers send.
    pub feeds: bool,
    /// Whether it judges what is posted here.
    pub posts: bool,
}

impl Default for FilterRule {
    fn default() -> Self {
        Self {
            name: String::new(),
            refuse: Vec::new(),
            copies_max: 0,
            copies_s: 86_400,
            sender_articles_max: 0,
            sender_s: 3600,
            program: String::new(),
            instances: 1,
            late_ms: 5000,
            hung_s: 60,
            when_down: Fallback::Accept,
            groups: "*".to_owned(),
            feeds: true,
            posts: true,
        }
    }
}

impl FilterConfig {
    /// What is wrong with the entries: key, beginning with the place of the entry, and what would be right.
    #[must_use]
    pub fn problems(rules: &[FilterRule]) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        for (at, rule) in rules.iter().enumerate() {
            let mut wrong =
                |key: &str, right: String| problems.push((format!("[{at}].{key}"), right));
            let mut before = rules.iter().take(at);
            if rule.name.is_empty() || before.any(|other| other.name == rule.name) {
                wrong("name", "give each entry a name of its own".to_owned());
            }
            for (place, text) in rule.refuse.iter().enumerate() {
                if let Err(right) = field_and_pattern(text) {
                    wrong(&format!("refuse[{place}]"), right);
                }
            }
            let counts = rule.copies_max > 0 || rule.sender_articles_max > 0;
            let judges = counts || !rule.refuse.is_empty();
            let is_path = rule.program.starts_with('/');
            if !(is_path || judges && rule.program.is_empty()) {
                let right = "the whole path of a program, and words behind it; or, without a program, give refuse, \
                             copies_max or sender_articles_max";
                wrong("program", right.to_owned());
            }
            if let Err(error) = Wildmat::parse(&rule.groups) {
                wrong("groups", error.to_string());
            }
        }
        problems
    }
}
