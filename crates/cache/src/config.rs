//! The sections `[cache]` and `[[upstream]]` of the configuration: what is kept, and the server it is fetched from.
//!
//! [`problems`] lists everything that is wrong with upstreams at once, by the path of its key.

use std::path::PathBuf;
use std::time::Duration;

use newsreel_net::client::{PoolLimits, Reach, Secured};
use newsreel_wire::wildmat::Wildmat;
use serde::{Deserialize, Serialize};

use crate::access_log::ACCESS_OCTETS_MIN;
use crate::cached::{CacheSettings, PrefetchLimits};
use crate::keep::KeepSettings;
use crate::queue::TARGETS_MAX;
use crate::remote::{Forwarded, Route};

/// `[cache]`: what a caching server keeps, and how old what it tells may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheConfig {
    /// The directory in which all of it lies, and no spool; a relative path counts from the configuration file's directory.
    pub directory: PathBuf,
    /// Articles that are kept, octets: never more. `policy` says what goes. Made smaller than eight of the segments that are there (each a
    /// thirty-second to a sixteenth of what it was, at most 64MiB), it throws away all that is kept at the next start, overview too.
    pub octets: u64,
    /// Articles of more octets are large and lie in files apart from those of the others, so that a few of them do not push many small
    /// ones out; both share `octets`. A multiple of what the file system allots at once is best. 0: all lie together.
    pub large_octets: u64,
    /// Which articles go where there is no room for more.
    pub policy: PolicyKind,
    /// Articles that the policy looks after, each with some 100 octets of memory; more are kept as long as their segment is.
    pub policy_articles_max: u64,
    /// Octets of articles that stay for the groups that are pinned (`newsreel cache pin`), whatever `policy` says; never more than half
    /// of `octets`.
    pub pinned_octets: u64,
    /// Where the overview of articles comes from that are kept and not large.
    pub overview: OverviewKind,
    /// Overview that is kept, octets. That of the groups asked for longest ago goes first.
    pub overview_octets: u64,
    /// Articles in memory, octets.
    pub memory_octets: u64,
    /// Overview in memory, octets.
    pub overview_memory_octets: u64,
    /// The cache's table in memory, octets.
    pub table_memory_octets: u64,
    /// How old the marks, counts and numbers of a group may be that readers are told, seconds: so long a new article, one that
    /// was cancelled or one that is there again may go unnoticed, and a new group that somebody had asked for before. 0: the upstream server
    /// is asked each time.
    pub refresh_s: u64,
    /// How old the list of groups may be, marks and all, seconds. 0: it is fetched for each listing.
    pub list_refresh_s: u64,
    /// After how long the list of groups is fetched whole from an upstream server that tells what has changed of it (LIST ACTIVE.MODTIME),
    /// seconds: so long a group that is gone there and that nobody asks for may stay in the list. 0: it is each time.
    pub list_whole_s: u64,
    /// How long an upstream server is not asked again for a message-id that it does not have, seconds. 0: it is each time.
    pub missing_s: u64,
    /// Articles that are fetched at once when they are read one behind the other; 1: none ahead.
    pub read_ahead: u32,
    /// ... and octets of them.
    pub read_ahead_octets: u64,
    /// The log of which articles are asked for (`access.log` in `directory`, and the one before it), octets, for
    /// `newsreel cache simulate --trace`; who asks is not in it. 64 KiB or more; 0: there is none.
    pub access_log_octets: u64,
    /// Commands that are none of ours and are passed on to the upstream server (that of the selected group, or the first), with the answer:
    /// for readers who may read all groups, as nobody here knows what they ask for. A verb each, and behind it codes of answers that are
    /// followed by a block, beside the usual ones: `["XPATH", "XTHREAD 288"]`.
    pub forward: Vec<String>,
    /// Groups that are known at the same time; more are left out of the list, of which the log warns.
    pub groups_max: u32,
    /// The groups whose newest articles are fetched before anybody asks for them, a wildmat; empty: none. Those that readers asked for most
    /// since the start, for each octet, come first.
    pub prefetch: String,
    /// How long after that has ended it is done again, seconds; the first time is at the start.
    pub prefetch_every_s: u64,
    /// The newest articles of each of these groups: so many numbers.
    pub prefetch_articles: u64,
    /// So many numbers before those are looked through for articles that belong to the same threads, which are fetched, too. 0: none.
    pub prefetch_threads: u64,
    /// Octets that are fetched so each time, about.
    pub prefetch_octets: u64,
    /// ... and in a second; 0: as fast as it goes.
    pub prefetch_octets_per_s: u64,
    /// Whether it is offline where nobody has switched it by `newsreel cache offline`: no upstream server is asked, what is kept is served, and
    /// posts wait. What was switched holds over restarts.
    pub offline: bool,
    /// Whether no more is shown of groups while it is offline than articles that are kept: lists of numbers, overview, the article before
    /// and behind, the counts of GROUP and LIST COUNTS and what GROUP selects. What can be read is seen so at once; but newsreaders mark what is missing there as read or
    /// expired, and some never show it again. Not for a cache that another cache reads from, which takes what is missing for cancelled.
    pub offline_kept_only: bool,
    /// Posts that wait until the servers that they are for can be asked, octets. 0: none do; what cannot be sent at once is not
    /// taken.
    pub posts_octets: u64,
}

/// What goes where there is no room for more.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum PolicyKind {
    /// The group that was read longest ago goes, with all its articles.
    #[default]
    Lrug,
    /// The article that was read longest ago goes.
    Lrua,
    /// The group that was read least often goes, with all its articles.
    Lfug,
    /// The article that was read least often goes.
    Lfua,
    /// The biggest article goes.
    Baf,
    /// The article that expires first goes: the oldest by its date.
    Letf,
    /// Of the group that was read longest ago the article that was read longest ago goes (the paper's authors tried a mix of these
    /// two, and dropped it).
    Hybrid,
    /// Three queues (S3-FIFO, 2023): what is not read again soon goes soon.
    S3fifo,
    /// Frequency by size, with ageing (GDSF, 1998): what is big and seldom read goes.
    Gdsf,
}

/// Where the overview of articles comes from that are kept and not large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum OverviewKind {
    /// It is kept, as the upstream server told it, whether the article is kept or not.
    #[default]
    Stored,
    /// It is made from the article each time: what is kept of it is the message-id. It takes a fifth of the room, some microseconds
    /// for each line, and a read of the disk where the article is not in memory; where an article has gone the upstream server is asked again.
    Made,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            directory: PathBuf::from("newsreel-cache"),
            octets: 1 << 30,
            large_octets: 16 << 10,
            policy: PolicyKind::Lrug,
            policy_articles_max: 1_000_000,
            pinned_octets: 256 << 20,
            overview: OverviewKind::Stored,
            overview_octets: 128 << 20,
            memory_octets: 32 << 20,
            overview_memory_octets: 32 << 20,
            table_memory_octets: 16 << 20,
            refresh_s: 60,
            list_refresh_s: 600,
            list_whole_s: 3600,
            missing_s: 60,
            read_ahead: 32,
            read_ahead_octets: 1 << 20,
            access_log_octets: 0,
            forward: Vec::new(),
            groups_max: 200_000,
            prefetch: String::new(),
            prefetch_every_s: 3600,
            prefetch_articles: 500,
            prefetch_threads: 0,
            prefetch_octets: 256 << 20,
            prefetch_octets_per_s: 0,
            offline: false,
            offline_kept_only: false,
            posts_octets: 64 << 20,
        }
    }
}

impl CacheConfig {
    /// What is wrong: key and what would be right.
    #[must_use]
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        if self.directory.as_os_str().is_empty() {
            let right = "an empty path is no directory: give one, as in \"newsreel-cache\"";
            all.push(("directory", right.to_owned()));
        }
        if (1..ACCESS_OCTETS_MIN).contains(&self.access_log_octets) {
            let right = "give it \"64KiB\" or more, or 0 for none";
            all.push(("access_log_octets", right.to_owned()));
        }
        let wrong = self
            .forward
            .iter()
            .filter_map(|it| Forwarded::parse(it).err());
        all.extend(wrong.map(|right| ("forward", right)));
        if !self.prefetch.is_empty()
            && let Err(why) = Wildmat::parse(&self.prefetch)
        {
            all.push(("prefetch", why.to_string()));
        }
        all
    }

    /// The groups that are fetched before anybody asks, and how much of them; none: nothing is.
    #[must_use]
    pub fn prefetched(&self) -> Option<(Wildmat, PrefetchLimits)> {
        let groups = Some(&self.prefetch).filter(|groups| !groups.is_empty())?;
        let limits = PrefetchLimits {
            articles: self.prefetch_articles,
            threads: self.prefetch_threads,
            octets: self.prefetch_octets,
            octets_per_s: self.prefetch_octets_per_s,
            reads_kept: false,
        };
        Some((Wildmat::parse(groups).ok()?, limits))
    }

    /// The commands that are passed on.
    #[must_use]
    pub fn forwarded(&self) -> Vec<Forwarded> {
        let all = self.forward.iter().map(|it| Forwarded::parse(it));
        all.filter_map(Result::ok).collect()
    }

    /// What is kept, and where.
    #[must_use]
    pub fn keep(&self) -> KeepSettings {
        KeepSettings {
            directory: self.directory.clone(),
            octets: self.octets,
            large_octets: self.large_octets,
            overview_octets: self.overview_octets,
            makes_lines: self.overview == OverviewKind::Made,
            memory_octets: self.memory_octets,
            overview_memory_octets: self.overview_memory_octets,
            table_memory_octets: usize::try_from(self.table_memory_octets).unwrap_or(usize::MAX),
            policy: self.policy,
            policy_articles_max: usize::try_from(self.policy_articles_max).unwrap_or(usize::MAX),
            pinned_octets: self.pinned_octets,
        }
    }

    /// How old what is told may be.
    #[must_use]
    pub fn settings(&self) -> CacheSettings {
        CacheSettings {
            refresh_s: self.refresh_s,
            read_ahead_max: usize::try_from(self.read_ahead).unwrap_or(usize::MAX),
            read_ahead_octets_max: self.read_ahead_octets,
            offline_kept_only: self.offline_kept_only,
        }
    }
}

/// How connections to an upstream server are secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum UpstreamTls {
    /// Not at all.
    #[default]
    None,
    /// By STARTTLS before anything else; a server that cannot is not read from.
    Starttls,
    /// From the first octet on, as on port 563.
    Implicit,
}

/// The list of upstream servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamsConfig {
    /// The servers that a caching server reads from, and posts to.
    pub upstream: Vec<UpstreamConfig>,
}

/// A server that is read from, and posted to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamConfig {
    /// Where it is, `host` or `host:port`; the host is a name or an address, the usual port 119, and 563 where `tls` is
    /// "implicit".
    pub address: String,
    /// The groups that it is asked for, a wildmat. The numbers of a group come from the first server of the lowest `tier` that is
    /// asked for it; articles, which have message-ids, come from any.
    pub groups: String,
    /// The address of another server whose numbers this one has, too, as two servers of one provider may; it need not be in the
    /// configuration any more. Where groups come from this one in its place, some numbers that are kept are compared at the start, and
    /// `--renumber` is not needed.
    pub same_numbers_as: String,
    /// Servers of a higher tier are asked only for what those of lower ones do not have, and while these cannot be asked.
    pub tier: u32,
    /// Whether posts are sent to it: they go to the first of the lowest tier that is asked for one of their groups and takes posts. Where
    /// no server does, clients are greeted with 201, CAPABILITIES has no POST, and POST is answered with 440; where some do, but none
    /// that has the groups of a post, it is refused with 441.
    pub posting: bool,
    /// The address of this machine that connections come from; empty: what the system chooses.
    pub bind: String,
    /// How connections are secured. The server's certificate is always verified, for the host of `address`.
    pub tls: UpstreamTls,
    /// A file of the authorities that are believed, in PEM; empty: those of this machine. A relative path counts from the
    /// configuration file's directory; this file and the next three are read for each connection.
    pub authority: PathBuf,
    /// The file of the certificate that we show, and of those between it and its authority, in PEM; empty: none.
    pub certificate: PathBuf,
    /// The file of its key, in PEM.
    pub key: PathBuf,
    /// As whom we log in (AUTHINFO USER, or SASL PLAIN where only that is offered); empty: not at all.
    pub user: String,
    /// The file whose first line is the password.
    pub password_file: PathBuf,
    /// Whether the password may go where anybody on the way can read it: without TLS.
    pub clear_text: bool,
    /// Whether connections are compressed, where the server can (COMPRESS DEFLATE).
    pub compress: bool,
    /// Connections at the same time, never more: what the account there has.
    pub connections: u16,
    /// The account that it is read with, by a name of your own, where a provider counts connections over several servers: those that say
    /// the same name have no more than `connections` together, which must be the same number for all. Empty: it counts alone.
    pub account: String,
    /// How long a connection that is not used is kept, seconds.
    pub idle_s: u64,
    /// How long a reader waits for a connection where all are in use, seconds.
    pub wait_s: u64,
}

impl Default for UpstreamConfig {
    fn default() -> Self {
        Self {
            address: String::new(),
            groups: "*".to_owned(),
            same_numbers_as: String::new(),
            tier: 0,
            posting: true,
            bind: String::new(),
            tls: UpstreamTls::None,
            authority: PathBuf::new(),
            certificate: PathBuf::new(),
            key: PathBuf::new(),
            user: String::new(),
            password_file: PathBuf::new(),
            clear_text: false,
            compress: false,
            connections: 4,
            account: String::new(),
            idle_s: 60,
            wait_s: 30,
        }
    }
}

impl UpstreamConfig {
    /// How it is reached.
    #[must_use]
    pub fn reach(&self) -> Reach<'_> {
        Reach {
            address: &self.address,
            bind: &self.bind,
            tls: match self.tls {
                UpstreamTls::None => Secured::Not,
                UpstreamTls::Starttls => Secured::Starttls,
                UpstreamTls::Implicit => Secured::Implicit,
            },
            authority: &self.authority,
            certificate: &self.certificate,
            key: &self.key,
            user: &self.user,
            password_file: &self.password_file,
            clear_text: self.clear_text,
            compress: self.compress,
        }
    }

    /// What it is asked for; none: its groups are no wildmat.
    #[must_use]
    pub fn route(&self) -> Option<Route> {
        Some(Route {
            name: self.address.clone(),
            groups: Wildmat::parse(&self.groups).ok()?,
            tier: self.tier,
            posting: self.posting,
        })
    }

    /// The limits of its pool.
    #[must_use]
    pub const fn limits(&self) -> PoolLimits {
        PoolLimits {
            connections_max: self.connections,
            idle: Duration::from_secs(self.idle_s),
            wait: Duration::from_secs(self.wait_s),
        }
    }

    /// Its files: relative ones count from the configuration's directory.
    pub const fn paths_mut(&mut self) -> [&mut PathBuf; 4] {
        [
            &mut self.authority,
            &mut self.certificate,
            &mut self.key,
            &mut self.password_file,
        ]
    }
}

/// What is wrong with the upstream servers: key and what would be right.
#[must_use]
pub fn problems(upstreams: &[UpstreamConfig]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (at, upstream) in upstreams.iter().enumerate() {
        let mut tell = |key: &str, right: String| all.push((format!("[{at}].{key}"), right));
        for (key, right) in upstream.reach().problems() {
            tell(key, right);
        }
        if let Err(why) = Wildmat::parse(&upstream.groups) {
            tell("groups", why.to_string());
        }
        let mut before = upstreams.iter().take(at);
        let is_of_account = |other: &&UpstreamConfig| {
            !upstream.account.is_empty() && other.account == upstream.account
        };
        if let Some(other) = before.clone().find(is_of_account)
            && other.connections != upstream.connections
        {
            let (most, address) = (other.connections, &other.address);
            let right = format!(
                "it has its connections together with {address}, which says {most}: give the same number to both"
            );
            tell("connections", right);
        }
        if upstream.posting && before.clone().filter(|it| it.posting).count() == TARGETS_MAX {
            let right = format!(
                "posts may go to {TARGETS_MAX} upstream servers, and this is one more: set it to false for those that need none"
            );
            tell("posting", right);
        }
        if before.any(|other| other.address == upstream.address) {
            let right = "another upstream server has this address: give each once".to_owned();
            tell("address", right);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_by_its_place() {
        let good = UpstreamConfig {
            address: "news.example.org".to_owned(),
            ..UpstreamConfig::default()
        };
        assert_eq!(problems(std::slice::from_ref(&good)), []);
        // A post that waits for more servers could not be read again.
        let mut many: Vec<UpstreamConfig> = (0..=TARGETS_MAX)
            .map(|n| UpstreamConfig {
                address: format!("news{n}.example.org"),
                ..good.clone()
            })
            .collect();
        let told = problems(&many);
        assert!(told.len() == 1 && told[0].0 == "[64].posting", "{told:?}");
        many[3].posting = false;
        assert_eq!(problems(&many), []);
        let bad = UpstreamConfig {
            bind: "here".to_owned(),
            ..UpstreamConfig::default()
        };
        let keys = |upstreams: &[UpstreamConfig]| {
            let problems = problems(upstreams).into_iter();
            problems.map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert_eq!(keys(&[bad]), ["[0].address", "[0].bind"]);
        assert_eq!(keys(&[good.clone(), good.clone()]), ["[1].address"]);
        let backup = UpstreamConfig {
            address: "backup.example.org".to_owned(),
            groups: "[".to_owned(),
            ..good.clone()
        };
        assert_eq!(keys(&[good.clone(), backup]), ["[1].groups"]);
        let with = |address: &str, connections| UpstreamConfig {
            address: address.to_owned(),
            account: "mine".to_owned(),
            connections,
            ..UpstreamConfig::default()
        };
        let (one, two) = (with("a.example", 8), with("b.example", 8));
        assert_eq!(keys(&[one.clone(), good, two]), [""; 0]);
        assert_eq!(keys(&[one, with("b.example", 4)]), ["[1].connections"]);
        let nowhere = CacheConfig {
            directory: PathBuf::new(),
            prefetch: "[".to_owned(),
            forward: ["XPATH", "XBATCH", "XTHREAD 3"].map(str::to_owned).to_vec(),
            ..CacheConfig::default()
        };
        assert_eq!(nowhere.problems().len(), 4);
        assert_eq!(nowhere.forwarded().len(), 1);
    }

    /// What is there without a word of the configuration can be kept.
    #[test]
    fn the_defaults_are_settings_that_can_be() {
        let config = CacheConfig::default();
        assert!(config.keep().octets >= KeepSettings::OCTETS_MIN);
        assert_eq!(config.settings().refresh_s, 60);
    }
}
