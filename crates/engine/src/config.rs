//! The engine's settings: what an article must be, how durable an answer is, when checkpoints come.
//!
//! Each crate below has its own section; [`EngineConfig`] only puts them together.  All values
//! here are resolved (octets, seconds); the app reads the file and reports what is wrong with it.

use std::path::PathBuf;

use newsreel_index::IndexConfig;
use newsreel_journal::JournalConfig;
use newsreel_service::posting::{ModerationConfig, PostingConfig};
use newsreel_store::StoreConfig;
use newsreel_wire::GROUP_NAME_OCTETS_MAX;
use newsreel_wire::article::HeaderLimits;
use serde::{Deserialize, Serialize};

use crate::control::config::ControlConfig;
use crate::expire::{ExpireRule, ExpiryConfig};

/// When an article is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// After the commit that holds it is on disk; one commit takes all that waits.
    #[default]
    GroupCommit,
    /// Like `group-commit`, one article a commit.
    Each,
    /// Before anything is on disk, as INN does: a power cut may lose the last second.
    None,
}

/// What a group does that has given its largest number, 2147483647.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum NumberOverflow {
    /// It files no more articles, until it is removed.
    #[default]
    Stop,
    /// It goes on with larger ones, up to 16 digits: readers that keep to RFC 3977 may not ask for those.
    Larger,
}

/// What the server keeps of an article.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Numbers, overview and Xref, for readers.
    #[default]
    Reader,
    /// Articles and history only: a feeder, as in the CNFS paper. It takes articles of any group that
    /// `articles.accept` lets in, whether or not it has that group, and looks at no group's status.
    Transit,
}

/// What becomes of articles of groups that are not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum UnknownGroups {
    /// They are refused.
    #[default]
    Refuse,
    /// They are filed in the group `junk`.
    Junk,
}

/// `[articles]`: what a relayed article must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ArticlesConfig {
    /// Largest article taken, octets on the wire; no more than `session.article_bytes_max` and the buffers let in.
    pub octets_max: u32,
    /// Largest header block taken, octets.
    pub header_octets_max: u32,
    /// Most header fields taken.
    pub header_fields_max: u32,
    /// Articles with an older Date are refused, seconds; 0 takes any age.
    pub age_s_max: u64,
    /// Articles dated further ahead than this are refused, seconds.
    pub future_s_max: u64,
    /// Articles whose Newsgroups names more groups than this are refused, whether those groups are here or not.
    pub groups_max: u32,
    /// Groups taken at all, a wildmat; an article that meets a poison pattern (`@`) is refused.
    pub accept: String,
    /// What becomes of an article whose groups are not here, or only such as file nothing (status `j`): `refuse` it, or
    /// file it in the group `junk`, if there is one, to be fed on and read by who cares.
    pub unknown_groups: UnknownGroups,
}

impl Default for ArticlesConfig {
    fn default() -> Self {
        Self {
            octets_max: 1024 * 1024,
            header_octets_max: 64 * 1024,
            header_fields_max: 1000,
            age_s_max: 10 * 86_400,
            future_s_max: 86_400,
            groups_max: 100,
            accept: "*".to_owned(),
            unknown_groups: UnknownGroups::Refuse,
        }
    }
}

impl ArticlesConfig {
    /// What the header scanner takes.
    #[must_use]
    pub const fn header_limits(&self) -> HeaderLimits {
        HeaderLimits {
            octets: self.header_octets_max as usize,
            fields: self.header_fields_max as usize,
        }
    }

    /// No article that is taken has a larger record in the log, octets: an overview line from the header block, Path,
    /// and for each group its name in our Xref, its id and number.
    #[must_use]
    pub const fn record_octets_max(&self) -> u64 {
        let groups = self.groups_max as u64 * (GROUP_NAME_OCTETS_MAX as u64 + 32);
        self.header_octets_max as u64 + PATH_OCTETS + groups + FIXED_OCTETS
    }

    /// The smallest segment of the log that will do, octets: it has two of the largest records, so that the log can
    /// always go on.
    #[must_use]
    pub const fn segment_octets_min(&self) -> u64 {
        (2 * self.record_octets_max() + SEGMENT_MARGIN_OCTETS).next_multiple_of(64 << 10)
    }
}

/// Room of a log segment beside the largest records, octets.
const SEGMENT_MARGIN_OCTETS: u64 = 64 << 10;

/// Our Path entry and the content of Path have a length of 16 bits in the log.
const PATH_OCTETS: u64 = 64 * 1024;

/// What is left of an article's record: token, hash, message-id, counts.
const FIXED_OCTETS: u64 = 4 * 1024;

/// `[engine]`: durability, limits of the queues, checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SequencerConfig {
    /// When an article is acknowledged.
    pub durability: Durability,
    /// `reader` or `transit`.
    pub mode: Mode,
    /// The name of this server in Path and Xref; empty: the machine's name. Servers of the same name refuse each other's
    /// articles.
    pub path_identity: String,
    /// What a group does that has given number 2147483647, the largest one RFC 3977 allows: `stop` filing (an article
    /// for no other group is refused), or go on with `larger` ones, which some readers do not understand.
    pub number_overflow: NumberOverflow,
    /// Articles waiting for the sequencer, octets; connections are not read beyond it.
    pub queue_octets_max: u32,
    /// One commit holds at most this much, octets; no more than `queue_octets_max`. More than 1.5 MiB is no faster: a
    /// commit in memory of its own size costs more than the syncs that it saves.
    pub commit_octets_max: u32,
    /// One commit holds at most this many articles.
    pub commit_articles_max: u32,
    /// Groups that may be made in the life of the spool; removed ones count, because their numbers stay taken. A group
    /// costs about 600 octets of memory.
    pub groups_max: u32,
    /// Message-ids that are kept while they are under way, asked for and not sent, on all connections together; about 60
    /// octets each. Beyond it ids are asked for without being kept, and two peers may send the same article.
    pub offers_max: usize,
    /// Message-ids one connection may have been asked for and not sent; no more than `offers_max`.
    pub offers_per_connection_max: usize,
    /// How long an id that was asked for is kept for that peer, milliseconds.
    pub offer_wait_ms: u64,
    /// A checkpoint is made when the log has grown by this, octets.
    pub checkpoint_log_octets: u64,
    /// A checkpoint is made at the latest after this, seconds, if anything happened.
    pub checkpoint_s_max: u64,
    /// The log is kept for outgoing feeds up to this size, octets, and what of it they need beyond that for one checkpoint more: so that what
    /// they miss can be named.
    pub log_keep_octets: u64,
}

impl Default for SequencerConfig {
    fn default() -> Self {
        Self {
            durability: Durability::GroupCommit,
            mode: Mode::Reader,
            path_identity: String::new(),
            number_overflow: NumberOverflow::Stop,
            queue_octets_max: 32 * 1024 * 1024,
            commit_octets_max: 3 * 512 * 1024,
            commit_articles_max: 16_384,
            groups_max: 1_000_000,
            offers_max: 500_000,
            offers_per_connection_max: 10_000,
            offer_wait_ms: 60_000,
            checkpoint_log_octets: 64 * 1024 * 1024,
            checkpoint_s_max: 600,
            log_keep_octets: 256 * 1024 * 1024,
        }
    }
}

/// `[scrub]`: every stored article is read again now and then and its checksums are compared, so that what rots on a disk is
/// known before a reader asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScrubConfig {
    /// Octets that the scrub in the background reads a second, at most; 0: there is none. The default costs a disk a few
    /// hundredths of its time, reads around the page cache, so that nothing readers want goes out of memory, and goes
    /// through 1 TiB in three days. Where a pass takes longer than `every_s`, the next one begins behind it.
    pub octets_per_s: u64,
    /// From the beginning of a pass to that of the next, seconds. The default is a month, as is usual for disks in an array.
    pub every_s: u64,
}

impl Default for ScrubConfig {
    fn default() -> Self {
        Self {
            octets_per_s: 4 << 20,
            every_s: 30 * 86_400,
        }
    }
}

/// Everything the engine needs to open a spool.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineConfig {
    /// The spool directory.
    pub spool: PathBuf,
    /// `[articles]`.
    pub articles: ArticlesConfig,
    /// `[engine]`.
    pub sequencer: SequencerConfig,
    /// Buffers, sets and rules.
    pub store: StoreConfig,
    /// `[scrub]`.
    pub scrub: ScrubConfig,
    /// `[[expire]]`.
    pub expire: Vec<ExpireRule>,
    /// `[expiry]`.
    pub expiry: ExpiryConfig,
    /// `[index]`.
    pub index: IndexConfig,
    /// `[log]`.
    pub journal: JournalConfig,
    /// `[posting]`.
    pub posting: PostingConfig,
    /// `[moderation]`.
    pub moderation: ModerationConfig,
    /// `[control]`.
    pub control: ControlConfig,
}

impl EngineConfig {
    /// The defaults, for a spool at this place.
    pub fn new(spool: PathBuf) -> Self {
        Self {
            spool,
            articles: ArticlesConfig::default(),
            sequencer: SequencerConfig::default(),
            store: StoreConfig::default(),
            scrub: ScrubConfig::default(),
            expire: Vec::new(),
            expiry: ExpiryConfig::default(),
            index: IndexConfig::default(),
            journal: JournalConfig::default(),
            posting: PostingConfig::default(),
            moderation: ModerationConfig::default(),
            control: ControlConfig::default(),
        }
    }
}
