//! The one table of requests: what can be asked of a spool.
//!
//! Both the control socket and the offline commands ask so; how it is answered is in `answers`.

use std::path::PathBuf;

use newsreel_feed::{Batching, Pulling};
use serde::{Deserialize, Serialize};

use super::cache_request::CacheRequest;
use crate::active::ListedGroup;

/// A name in the log is no longer than this.
const SUMMARY_CHARS_MAX: usize = 300;

/// What is to be moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreMove {
    /// The set that has the articles.
    pub(crate) from: String,
    /// The set that is to have them.
    pub(crate) to: String,
    /// A wildmat: only articles in these groups.
    pub(crate) groups: Option<String>,
    /// Only say how much would be moved.
    pub(crate) dry_run: bool,
}

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Request {
    /// How the server or spool is.
    Status,
    /// The groups that match.
    GroupList {
        /// A wildmat.
        wildmat: String,
    },
    /// One group.
    GroupShow {
        /// Its name.
        name: String,
    },
    /// Make groups.
    GroupAdd {
        /// Those to make.
        groups: Vec<ListedGroup>,
        /// Who makes them.
        creator: String,
        /// Leave those that exist already as they are; otherwise they are an error.
        keep_existing: bool,
        /// Only say what would be done, after so many others had been made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dry_run: Option<usize>,
    },
    /// Set the descriptions of groups that are there.
    GroupDescribe {
        /// Names and descriptions.
        descriptions: Vec<(String, String)>,
        /// Only say what would be done.
        dry_run: bool,
    },
    /// Change groups; what is absent stays.
    GroupSet {
        /// A name, or a wildmat.
        name: String,
        /// New status field.
        status: Option<String>,
        /// New description.
        description: Option<String>,
        /// New high mark, if it is higher.
        high: Option<u64>,
        /// Only say which would be changed.
        #[serde(default)]
        dry_run: bool,
    },
    /// Remove groups.
    GroupRemove {
        /// Names and wildmats.
        names: Vec<String>,
        /// Only say what would be done.
        dry_run: bool,
    },
    /// Make do without the group rows that are lost.
    GroupForgetLost,
    /// An article and where it lies.
    Article {
        /// Message-id, `group:number` or token.
        which: String,
    },
    /// Take articles out.
    ArticleCancel {
        /// Message-ids, `group:number`s or tokens.
        which: Vec<String>,
        /// Only say what would be done.
        dry_run: bool,
    },
    /// The messages about groups that still ask for something.
    ControlList,
    /// One of them.
    ControlShow {
        /// Message-id, `group:number` or token.
        which: String,
    },
    /// What would come of a message about groups if it came now.
    ControlTry {
        /// The article in wire form, in base64.
        article: String,
    },
    /// The site's key for an article that was posted here.
    ControlKey {
        /// Its message-id.
        id: String,
    },
    /// Do what one asks for.
    ControlApprove {
        /// Message-id, `group:number` or token.
        which: String,
        /// Only say what would be done.
        dry_run: bool,
    },
    /// Forget what was heeded of a hierarchy.
    ControlForget {
        /// Its name.
        hierarchy: String,
        /// Only say what would be done.
        dry_run: bool,
    },
    /// Something about the servers that articles are sent to.
    Peer {
        /// What.
        action: PeerAction,
        /// A peer, a feed as `peer/feed`, or a message-id; nothing for all.
        name: String,
    },
    /// Write the batches of a peer's feeds.
    Batch(Batching),
    /// Fetch articles from a server.
    Pull(Pulling),
    /// How the pulls of the configuration stand.
    PullList,
    /// The buffers.
    Store,
    /// Which articles of our files are offered no more.
    StoreWithdrawn {
        /// Tokens and message-ids.
        articles: Vec<(String, String)>,
    },
    /// Take in the articles of files from elsewhere.
    StoreAttach {
        /// Absolute paths of buffers, segments, and directories of sets.
        paths: Vec<PathBuf>,
        /// Make groups that are not here.
        make_groups: bool,
        /// Also what was withdrawn there.
        withdrawn: bool,
        /// They stay where they lie.
        #[serde(default)]
        in_place: bool,
        /// Where a set keeps less than comes, the oldest of that go.
        #[serde(default)]
        oldest_may_go: bool,
        /// Only say what would be done.
        dry_run: bool,
    },
    /// Have articles of one set kept by another.
    StoreMove(StoreMove),
    /// Have a cyclic buffer take nothing new.
    StoreRetire {
        /// Its name.
        buffer: String,
        /// Have it take articles again.
        undo: bool,
        /// Only say what would be done.
        dry_run: bool,
    },
    /// Give cyclic buffers other sizes; none of them while one cannot have it.
    StoreResize {
        /// Their names, and the octets that each is to have.
        buffers: Vec<(String, u64)>,
        /// Only say whether they can have them.
        dry_run: bool,
    },
    /// Compare the checksums of what is stored.
    Scrub {
        /// The buffers; none: all.
        buffers: Vec<String>,
        /// Octets read a second, at most; 0: as fast as it goes.  None: as the background does, offline as fast as it goes.
        octets_per_s: Option<u64>,
    },
    /// Let go what the rules of expiry let go.
    Expire {
        /// Only say what would go.
        dry_run: bool,
    },
    /// Whether store, log and views agree.
    Check,
    /// Something of a caching server.
    Cache {
        /// What.
        asked: CacheRequest,
    },
    /// Networks that are refused since their logins failed.
    AccessBans {
        /// An address or network of which no failed login is to count any more.
        lift: Option<String>,
    },
    /// The clock jumped and is right.
    ClockConfirm,
    /// Read the configuration again.
    Reload,
    /// Finish and stop.
    Stop,
}

/// What can be asked of the servers that articles are sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PeerAction {
    /// How they stand.
    List,
    /// Which of them an article goes to, and why not to the others.
    Explain,
    /// Stop sending.
    Pause,
    /// Send again.
    Resume,
    /// Try now what waits to be tried again.
    Flush,
    /// Give up what waits.
    DropBacklog,
    /// Say what that would be.
    TryDropBacklog,
}

impl PeerAction {
    fn summary(self, name: &str) -> String {
        match self {
            Self::Pause => format!("send nothing to {name}"),
            Self::Resume => format!("send to {name} again"),
            Self::Flush => format!("try now what waits for {name}"),
            Self::DropBacklog => format!("give up what waits for {name}"),
            Self::List | Self::Explain | Self::TryDropBacklog => "tell of peers".to_owned(),
        }
    }
}

impl Request {
    /// What it asks, short enough for a log line.  Nothing has looked at the names yet: one with a line end must not
    /// pass for a second line.
    pub(crate) fn summary(&self) -> String {
        one_line(&self.plain_summary())
    }

    fn plain_summary(&self) -> String {
        match self {
            Self::GroupAdd {
                groups, creator, ..
            } => match groups.as_slice() {
                [group] => format!("add group {} for {creator}", group.name),
                groups => format!("add {} groups for {creator}", groups.len()),
            },
            Self::GroupSet { name, .. } => format!("change group {name}"),
            Self::GroupDescribe { descriptions, .. } => {
                format!("describe {} groups", descriptions.len())
            }
            Self::GroupRemove { names, .. } => match names.as_slice() {
                [name] => format!("remove group {name}"),
                names => format!(
                    "remove {} groups, {} and others",
                    names.len(),
                    names.first().map_or("", String::as_str)
                ),
            },
            Self::ArticleCancel { which, .. } => match which.as_slice() {
                [one] => format!("cancel article {one}"),
                which => format!(
                    "cancel {} articles, {} and others",
                    which.len(),
                    which.first().map_or("", String::as_str)
                ),
            },
            Self::Pull(Pulling { host, .. }) => format!("fetch articles from {host}"),
            Self::Batch(Batching { name, .. }) => format!("write batches for {name}"),
            Self::ControlTry { .. } => "try a control message".to_owned(),
            Self::Cache { asked } => asked.summary(),
            Self::ControlApprove { which, .. } => format!("approve control message {which}"),
            Self::ControlForget { hierarchy, .. } => {
                format!("forget what was heeded of {hierarchy}")
            }
            Self::Peer { action, name } => action.summary(name),
            Self::StoreAttach { .. }
            | Self::StoreMove(_)
            | Self::StoreRetire { .. }
            | Self::StoreResize { .. } => self.store_summary(),
            Self::Expire { .. } => "let go what the rules of expiry let go".to_owned(),
            Self::GroupForgetLost => "do without the groups that are lost".to_owned(),
            Self::ClockConfirm => "confirm the clock".to_owned(),
            // These change nothing, and are in no log.
            Self::Status
            | Self::GroupList { .. }
            | Self::GroupShow { .. }
            | Self::Article { .. }
            | Self::ControlList
            | Self::ControlShow { .. }
            | Self::ControlKey { .. }
            | Self::PullList
            | Self::Store
            | Self::StoreWithdrawn { .. }
            | Self::Scrub { .. }
            | Self::Check
            | Self::AccessBans { .. }
            | Self::Reload
            | Self::Stop => "tell something".to_owned(),
        }
    }

    /// The same of what concerns buffers and sets.
    fn store_summary(&self) -> String {
        match self {
            Self::StoreAttach { paths, .. } => {
                let shown: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
                format!("take in {}", shown.join(", "))
            }
            Self::StoreMove(StoreMove {
                from, to, groups, ..
            }) => {
                let groups = groups.as_deref().map(|it| format!(" in {it}"));
                format!(
                    "move articles{} from set {from} to set {to}",
                    groups.unwrap_or_default()
                )
            }
            Self::StoreRetire { buffer, undo, .. } => match undo {
                false => format!("retire buffer {buffer}"),
                true => format!("have buffer {buffer} take articles again"),
            },
            Self::StoreResize { buffers, .. } => {
                let sizes = buffers.iter();
                let sizes = sizes.map(|(name, octets)| format!("buffer {name} {octets} octets"));
                format!("give {}", sizes.collect::<Vec<_>>().join(", "))
            }
            _ => "look at buffers".to_owned(),
        }
    }

    /// Whether the log says that somebody asked for it.
    pub(crate) fn is_logged(&self) -> bool {
        let tells = |action| {
            use PeerAction::{Explain, List, TryDropBacklog};
            matches!(action, List | Explain | TryDropBacklog)
        };
        self.writes() || matches!(self, Self::Peer { action, .. } if !tells(*action))
    }

    /// Whether it changes the spool.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Self::GroupAdd { dry_run, .. } => dry_run.is_none(),
            Self::GroupRemove { dry_run, .. }
            | Self::GroupSet { dry_run, .. }
            | Self::GroupDescribe { dry_run, .. }
            | Self::ControlApprove { dry_run, .. }
            | Self::ControlForget { dry_run, .. }
            | Self::Batch(Batching { dry_run, .. })
            | Self::Pull(Pulling { dry_run, .. })
            | Self::StoreMove(StoreMove { dry_run, .. })
            | Self::StoreRetire { dry_run, .. }
            | Self::StoreResize { dry_run, .. }
            | Self::Expire { dry_run }
            | Self::StoreAttach { dry_run, .. }
            | Self::ArticleCancel { dry_run, .. } => !dry_run,
            Self::Cache { asked } => asked.writes(),
            Self::GroupForgetLost | Self::ClockConfirm => true,
            _ => false,
        }
    }

    /// Whether a server that is asked mends what it meets, and who asks a spool without one is only told.
    pub(crate) const fn mends(&self) -> bool {
        matches!(self, Self::Scrub { .. })
    }
}

/// A text as it may stand in a log line.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars().take(SUMMARY_CHARS_MAX) {
        if c.is_control() {
            line.extend(c.escape_debug());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_line_of_the_log() {
        let remove = |name: String| Request::GroupRemove {
            names: vec![name],
            dry_run: false,
        };
        let asked = remove(format!("a\u{1b}[2J\nINFO forged {}", "x".repeat(1000)));
        let line = asked.summary();
        assert!(
            line.starts_with("remove group a\\u{1b}[2J\\nINFO forged xxx"),
            "{line}"
        );
        assert!(
            line.len() < 400 && !line.contains(char::is_control),
            "{line}"
        );
        let plain = remove("alt.o'reilly".to_owned());
        assert_eq!(plain.summary(), "remove group alt.o'reilly");
    }

    /// The log had shown requests as the program has them, such as `StoreMove(StoreMove { from: "main", ... })`.
    #[test]
    fn what_is_asked_is_told_in_words() {
        let moving = Request::StoreMove(StoreMove {
            from: "main".to_owned(),
            to: "text".to_owned(),
            groups: Some("comp.*".to_owned()),
            dry_run: false,
        });
        let told = "move articles in comp.* from set main to set text";
        assert_eq!(
            (moving.is_logged(), moving.summary().as_str()),
            (true, told)
        );
        for (action, is_logged) in [
            (PeerAction::DropBacklog, true),
            (PeerAction::Pause, true),
            (PeerAction::TryDropBacklog, false),
            (PeerAction::List, false),
        ] {
            let name = "b.example".to_owned();
            assert_eq!(Request::Peer { action, name }.is_logged(), is_logged);
        }
    }
}
