//! The list `[[peer]]` of the configuration: the servers that articles are sent to, and which ones.
//!
//! [`problems`] lists everything that is wrong at once, by the path of its key.

use newsreel_net::client::Remote;
use serde::{Deserialize, Serialize};

use crate::filter::Filter;

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct PeersConfig {
    /// Servers that articles are sent to.
    pub peer: Vec<PeerConfig>,
}

/// A neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeerConfig {
    /// Its name in Path: what has been there is not sent to it. Commands and the log call it so.
    pub name: String,
    /// Other names it has in Path.
    pub aliases: Vec<String>,
    /// Where it listens, `host:port`; the host is a name or an address.
    pub address: String,
    /// What goes to it. Each has its own filter, its own connections and its own place in the log; an article goes out by each
    /// that lets it through.
    pub feed: Vec<FeedConfig>,
}

impl Default for PeerConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            aliases: Vec::new(),
            address: String::new(),
            feed: vec![FeedConfig::default()],
        }
    }
}

impl PeerConfig {
    /// Host and port, if both are there.
    fn place(&self) -> Option<(&str, u16)> {
        let (host, port) = self.address.rsplit_once(':')?;
        let host = host
            .strip_prefix('[')
            .and_then(|it| it.strip_suffix(']'))
            .unwrap_or(host);
        let port = port.parse().ok().filter(|port| *port > 0)?;
        (!host.is_empty()).then_some((host, port))
    }

    /// The server to connect to.
    pub(crate) fn remote(&self) -> Remote {
        let (host, port) = self.place().unwrap_or_default();
        Remote {
            port,
            reads: false,
            ..Remote::reader(host)
        }
    }
}

/// A feed: which articles go out by it, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeedConfig {
    /// What tells it from the peer's other feeds; its place in the log is kept under this name and the peer's.
    pub name: String,
    /// Groups that go out, a wildmat: an article with one of them goes, unless it has one that meets a poison pattern (`@`).
    pub groups: String,
    /// Distributions that go out, a wildmat; an article without any goes always.
    pub distributions: String,
    /// Path names besides the peer's own through which an article must not have come.
    pub not_through: Vec<String>,
    /// Smaller articles do not go, octets.
    pub octets_min: u64,
    /// Larger articles do not go, octets; 0: any size goes.
    pub octets_max: u64,
    /// Articles whose Newsgroups names more groups do not go; 0: any number.
    pub groups_max: u32,
    /// Articles that came through more servers do not go; 0: any number.
    pub hops_max: u32,
    /// Whether control messages go.
    pub control: bool,
    /// Whether only what was posted here goes.
    pub posted_only: bool,
    /// Which share of the articles goes, by the MD5 hash of the message-id as in Diablo and INN: `1/4` is the first of four,
    /// `2-3/4` the second and third, `1/2:4` looks at other bits of the hash (0 to 12). Several with commas between them; empty:
    /// all.
    pub hashfeed: String,
    /// Connections at the same time.
    pub connections: u32,
    /// Articles that may be asked about or sent on one connection before the answer to the first of them is there.
    pub window: u32,
    /// Articles in memory that wait to be sent, or for their answer, or to be tried again; what is behind them stays in the log.
    pub articles_max: u32,
    /// How long an article that the peer puts off (431, 436) waits for the next try, seconds; doubled each time up to an hour.
    pub retry_s: u64,
}

impl Default for FeedConfig {
    fn default() -> Self {
        Self {
            name: "all".to_owned(),
            groups: "*".to_owned(),
            distributions: "*".to_owned(),
            not_through: Vec::new(),
            octets_min: 0,
            octets_max: 0,
            groups_max: 0,
            hops_max: 0,
            control: true,
            posted_only: false,
            hashfeed: String::new(),
            connections: 2,
            window: 128,
            articles_max: 2000,
            retry_s: 10,
        }
    }
}

/// Names of peers and feeds are words: they stand in a file and in commands.
fn is_word(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=NAME_OCTETS_MAX).contains(&name.len()) && name.chars().all(is_plain)
}

/// The longest name of a peer or a feed.
pub(crate) const NAME_OCTETS_MAX: usize = 100;

/// What is wrong with the peers: key and what would be right.
#[must_use]
pub fn problems(peers: &[PeerConfig]) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    let mut tell = |key: String, right: &str| problems.push((key, right.to_owned()));
    let word = "a name of letters, digits, dots and hyphens, at most 100";
    for (at, peer) in peers.iter().enumerate() {
        let before = peers.get(..at).unwrap_or_default();
        if !is_word(&peer.name) {
            tell(format!("[{at}].name"), word);
        } else if before.iter().any(|other| other.name == peer.name) {
            tell(
                format!("[{at}].name"),
                "another peer has this name: give each its own",
            );
        }
        if peer.place().is_none() {
            tell(
                format!("[{at}].address"),
                "`host:port` is wanted, as in \"news.example.org:119\"",
            );
        }
        for (place, feed) in peer.feed.iter().enumerate() {
            let before = peer.feed.get(..place).unwrap_or_default();
            if !is_word(&feed.name) {
                tell(format!("[{at}].feed[{place}].name"), word);
            } else if before.iter().any(|other| other.name == feed.name) {
                tell(
                    format!("[{at}].feed[{place}].name"),
                    "another feed of this peer has this name: give each its own",
                );
            }
            if let Err((key, why)) = Filter::new(peer, feed) {
                tell(format!("[{at}].feed[{place}].{key}"), &why);
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let peers: PeersConfig = toml::from_str(text).unwrap();
        let said = |(key, right): (String, String)| format!("{key}: {right}");
        problems(&peers.peer).into_iter().map(said).collect()
    }

    #[test]
    fn a_peer_needs_a_name_and_an_address_and_has_one_feed_of_everything() {
        let text = "[[peer]]\nname = 'b.example'\naddress = '[2001:db8::1]:119'";
        assert_eq!(check(text), [] as [&str; 0]);
        let peers: PeersConfig = toml::from_str(text).unwrap();
        assert_eq!(peers.peer[0].feed, [FeedConfig::default()]);
        let all = check("[[peer]]\nname = 'a b'\naddress = 'host'\n");
        assert_eq!(all.len(), 2, "{all:?}");
    }

    #[test]
    fn everything_that_is_wrong_is_told() {
        let text = "[[peer]]\nname = 'b'\naddress = 'h:119'\n[[peer.feed]]\nname = 'x'\ngroups = ''\n\
                    [[peer.feed]]\nname = 'x'\ndistributions = '['\n[[peer.feed]]\nname = 'y'\nhashfeed = '3/2'\n\
                    [[peer]]\nname = 'b'\naddress = ':119'";
        let all = check(text);
        let keys: Vec<&str> = all.iter().filter_map(|it| it.split(':').next()).collect();
        assert_eq!(
            keys,
            [
                "[0].feed[0].groups",
                "[0].feed[1].name",
                "[0].feed[1].distributions",
                "[0].feed[2].hashfeed",
                "[1].name",
                "[1].address"
            ],
            "{all:?}"
        );
    }
}
