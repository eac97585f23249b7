//! What expiry tells: of a pass that was asked for, and of how the background stands.

use serde::Serialize;

/// Articles of a pass that are listed one by one; the others are counted.
pub const LISTED_MAX: usize = 1000;

/// A pass over all groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExpireReport {
    /// Nothing went: it only tells what would.
    pub dry_run: bool,
    /// Groups that a rule is for.
    pub groups: u64,
    /// Rows of the overview that were looked at.
    pub rows: u64,
    /// Articles that went, with their last group.
    pub articles: u64,
    /// Their octets, as stored.
    pub octets: u64,
    /// Places that articles left which stay in other groups.
    pub left: u64,
    /// The same by rule, those without any left out.
    pub rules: Vec<RuleCount>,
    /// Some of them.
    pub going: Vec<Going>,
    /// How many are not listed.
    pub going_omitted: u64,
    /// Why groups were passed over.
    pub unreadable: Vec<String>,
    /// How many more were.
    pub unreadable_omitted: u64,
    /// It was ended before its end.
    pub is_cut: bool,
}

/// What went by one rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RuleCount {
    /// Its place in the configuration, counted from 1.
    pub rule: usize,
    /// Articles that went.
    pub articles: u64,
    /// Their octets, as stored.
    pub octets: u64,
    /// Places that articles left which stay in other groups.
    pub left: u64,
}

/// An article that a group lets go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Going {
    /// The group; empty for an article in none.
    pub group: String,
    /// Its number there, or 0.
    pub number: u64,
    /// Its message-id.
    pub message_id: String,
    /// When it arrived, seconds since 1970.
    pub arrival: u64,
    /// Its octets, as stored.
    pub octets: u64,
    /// The rule that says so, counted from 1.
    pub rule: usize,
    /// `age`, `Expires`, `articles_max` or `octets_max`.
    pub why: &'static str,
    /// Whether it stays in other groups.
    pub stays: bool,
}

/// How expiry in the background stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExpiryStatus {
    /// Rules there are.
    pub rules: u64,
    /// Rows it looks at in a second, at most; 0: it is off.
    pub rows_per_s: u64,
    /// When the pass under way began, seconds since 1970; none: it rests.
    pub began: Option<u64>,
    /// Groups that this is past, of how many.
    pub groups: Option<(u64, u64)>,
    /// When the last whole pass ended.
    pub last_ended: Option<u64>,
    /// Articles that it let go.
    pub last_articles: Option<u64>,
    /// Why nothing expires at present.
    pub held: Option<String>,
}
