//! What can be asked of a caching server alone.

use newsreel_cache::PrefetchLimits;
use serde::{Deserialize, Serialize};

/// How much is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FetchLimits {
    /// The newest articles of each group: so many numbers.
    pub(crate) articles: u64,
    /// So many numbers before these are looked through for articles of the same threads.
    pub(crate) threads: u64,
    /// Octets in all.
    pub(crate) octets: u64,
    /// Octets a second; 0: as fast as it goes.
    pub(crate) octets_per_s: u64,
}

impl From<FetchLimits> for PrefetchLimits {
    fn from(limits: FetchLimits) -> Self {
        Self {
            articles: limits.articles,
            threads: limits.threads,
            octets: limits.octets,
            octets_per_s: limits.octets_per_s,
            reads_kept: false,
        }
    }
}

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum CacheRequest {
    /// Whether it asks no server elsewhere.
    Offline {
        /// What shall be; nothing: only tell.
        offline: Option<bool>,
    },
    /// Have it fetch articles before anybody asks.
    Prefetch {
        /// A wildmat: the groups.
        wildmat: String,
        /// How much.
        limits: FetchLimits,
    },
    /// Have it fetch what somebody names.
    Warm {
        /// Wildmats of groups, and message-ids.
        named: Vec<String>,
        /// The threads of these articles, too.
        threads: bool,
        /// How much.
        limits: FetchLimits,
    },
    /// What it keeps.
    List {
        /// A wildmat: the groups.
        wildmat: String,
        /// So many of their articles instead of the groups.
        articles: Option<usize>,
    },
    /// Have it let go what it keeps.
    Drop {
        /// Wildmats of groups, and message-ids.
        named: Vec<String>,
        /// Only say what would go.
        dry_run: bool,
    },
    /// Change or tell which groups no policy touches.
    Pin {
        /// Wildmats that come.
        add: Vec<String>,
        /// Wildmats that go.
        remove: Vec<String>,
    },
    /// Something about the posts that wait.
    Queue {
        /// What.
        action: QueueAction,
    },
}

/// What can be asked of posts that wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum QueueAction {
    /// All of them.
    List,
    /// One with its text.
    Show {
        /// Its number.
        number: u64,
    },
    /// Another text in the place of one.
    Edit {
        /// Its number.
        number: u64,
        /// The article in wire form, in base64.
        article: String,
    },
    /// Try some now.
    Retry {
        /// Their numbers; none: all.
        numbers: Vec<u64>,
    },
    /// Forget some.
    Drop {
        /// Their numbers.
        numbers: Vec<u64>,
        /// Only say what would be forgotten.
        dry_run: bool,
    },
}

impl CacheRequest {
    /// What it asks, without the text of an article.
    pub(super) fn summary(&self) -> String {
        match self {
            Self::Queue { action } => action.summary(),
            Self::Drop { named, .. } => {
                format!("let go what the cache keeps of {}", named.join(", "))
            }
            Self::Pin { add, remove } => {
                let said = [("keep", add), ("no longer keep", remove)].into_iter();
                let said = said.filter(|(_, groups)| !groups.is_empty());
                let said = said.map(|(what, groups)| {
                    format!("{what} {} whatever the policy says", groups.join(", "))
                });
                said.collect::<Vec<_>>().join(", ")
            }
            // These change nothing, and are in no log.
            Self::Offline { .. }
            | Self::Prefetch { .. }
            | Self::Warm { .. }
            | Self::List { .. } => "tell something of the cache".to_owned(),
        }
    }

    /// Whether it changes what is kept.
    pub(super) const fn writes(&self) -> bool {
        match self {
            Self::Drop { dry_run, .. } => !*dry_run,
            Self::Pin { add, remove } => !(add.is_empty() && remove.is_empty()),
            Self::Queue { action } => match action {
                QueueAction::List | QueueAction::Show { .. } => false,
                QueueAction::Edit { .. } | QueueAction::Retry { .. } => true,
                QueueAction::Drop { dry_run, .. } => !*dry_run,
            },
            Self::Offline { .. }
            | Self::Prefetch { .. }
            | Self::Warm { .. }
            | Self::List { .. } => false,
        }
    }
}

impl QueueAction {
    /// What it asks, without the text of an article.
    fn summary(&self) -> String {
        let posts = |numbers: &[u64]| {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            match numbers.is_empty() {
                true => "all posts that wait".to_owned(),
                false => format!("posts that wait: {}", numbers.join(", ")),
            }
        };
        match self {
            Self::List => "list the posts that wait".to_owned(),
            Self::Show { number } => format!("show post {number}"),
            Self::Edit { number, .. } => format!("edit post {number}"),
            Self::Retry { numbers } => format!("try now {}", posts(numbers)),
            Self::Drop { numbers, .. } => format!("forget {}", posts(numbers)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log had shown them as the program has them, such as `cache: Queue { action: Retry { numbers: [1] } }`.
    #[test]
    fn what_is_asked_of_a_cache_is_told_in_words() {
        let queue = |action| CacheRequest::Queue { action }.summary();
        let retry = |numbers: &[u64]| {
            queue(QueueAction::Retry {
                numbers: numbers.to_vec(),
            })
        };
        assert_eq!(retry(&[1, 7]), "try now posts that wait: 1, 7");
        assert_eq!(retry(&[]), "try now all posts that wait");
        let pin = CacheRequest::Pin {
            add: vec!["misc.*".to_owned()],
            remove: vec!["alt.*".to_owned(), "a.b".to_owned()],
        };
        assert_eq!(
            pin.summary(),
            "keep misc.* whatever the policy says, no longer keep alt.*, a.b whatever the policy says"
        );
        let drop = CacheRequest::Drop {
            named: vec!["alt.*".to_owned()],
            dry_run: false,
        };
        assert_eq!(drop.summary(), "let go what the cache keeps of alt.*");
    }
}
