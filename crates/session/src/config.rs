//! The section `[session]` of the configuration: every limit of one connection.

use serde::{Deserialize, Serialize};

/// Limits and texts of NNTP sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionConfig {
    /// What the greeting says after its code.
    pub greeting: String,
    /// Silence between commands after which a connection is closed, in seconds (RFC 3977 section 3.1: at least 180).
    pub idle_s: u64,
    /// The longest time from a command line's first octet to its end, in seconds.
    pub command_s: u64,
    /// Silence in the middle of an article after which the connection is closed, in seconds.
    pub article_stall_s: u64,
    /// The longest time from an article's first octet to its last, on its way in or out, in seconds.
    pub article_s: u64,
    /// How long the other side may take nothing of a reply, in seconds.
    pub write_stall_s: u64,
    /// Unknown commands, and lines that cannot be commands, in a row after which a connection is closed: what talks like that is no newsreader and no peer.
    pub bad_commands_max: u32,
    /// The largest article, in octets on the wire; a larger one is read to its end and refused.
    pub article_bytes_max: usize,
    /// Replies owed on one connection before reading stops (CHECK and TAKETHIS).
    pub pipeline_replies_max: usize,
    /// Octets of articles under way on one connection before reading stops.
    pub pipeline_bytes_max: usize,
    /// Octets of large articles (longer than `input_chunk_bytes`) of all connections together, on their way in or out; a
    /// connection that needs more is asked to come back, unless a slow one has it: that one is ended instead.  One network
    /// (an IPv4 address, an IPv6 /48) gets a quarter of it, and always enough for one article.
    pub large_articles_bytes_max: usize,
    /// Connections that are compressed (COMPRESS, RFC 8054) at the same time; each takes some 400 KiB, and one network (an
    /// IPv4 address, an IPv6 /48) may have a quarter of what others leave. 0: none are.
    pub compressed_connections_max: usize,
    /// Octets read at once. A connection in the middle of an article may hold as many that count nowhere else: at worst
    /// `listen.connections_max` times this in all.
    pub input_chunk_bytes: usize,
    /// Octets of a long reply gathered before they are sent.
    pub reply_chunk_bytes: usize,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            greeting: "newsreel ready".to_owned(),
            idle_s: 600,
            command_s: 60,
            article_stall_s: 120,
            article_s: 1800,
            write_stall_s: 120,
            bad_commands_max: 100,
            article_bytes_max: 4 << 20,
            pipeline_replies_max: 4096,
            pipeline_bytes_max: 16 << 20,
            large_articles_bytes_max: 256 << 20,
            compressed_connections_max: 500,
            input_chunk_bytes: 256 << 10,
            reply_chunk_bytes: 64 << 10,
        }
    }
}

impl SessionConfig {
    /// How many times its own size an article may take of `large_articles_bytes_max` while it comes in: a chunk that it
    /// does not fit into is doubled, and the old one is there while it is copied.
    pub const CHUNK_TIMES_MAX: usize = 4;

    /// What an article of the largest size may take so, octets.
    #[must_use]
    pub const fn article_room(&self) -> usize {
        self.article_bytes_max.saturating_mul(Self::CHUNK_TIMES_MAX)
    }

    /// Everything that is wrong with the values, as `(key, what would be right)`.
    #[must_use]
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let plain = |octet: u8| octet == b' ' || octet.is_ascii_graphic();
        if self.greeting.len() > 400 || !self.greeting.bytes().all(plain) {
            problems.push((
                "greeting",
                "must be at most 400 printable ASCII characters".into(),
            ));
        }
        for (key, value) in [
            ("idle_s", self.idle_s),
            ("command_s", self.command_s),
            ("article_stall_s", self.article_stall_s),
            ("article_s", self.article_s),
            ("write_stall_s", self.write_stall_s),
        ] {
            if value == 0 {
                problems.push((key, "must be at least 1".into()));
            }
        }
        if self.bad_commands_max == 0 {
            problems.push(("bad_commands_max", "must be at least 1".into()));
        }
        for (key, value, least, most) in self.sizes() {
            if !(least..=most).contains(&value) {
                problems.push((key, format!("must be from {least} to {most}")));
            }
        }
        problems
    }

    /// Sizes and numbers, with the least and the most that they may be.
    const fn sizes(&self) -> [(&'static str, usize, usize, usize); 7] {
        [
            (
                "article_bytes_max",
                self.article_bytes_max,
                1 << 10,
                1 << 30,
            ),
            (
                "pipeline_replies_max",
                self.pipeline_replies_max,
                1,
                1 << 20,
            ),
            (
                "pipeline_bytes_max",
                self.pipeline_bytes_max,
                64 << 10,
                1 << 34,
            ),
            (
                "large_articles_bytes_max",
                self.large_articles_bytes_max,
                1 << 20,
                1 << 40,
            ),
            (
                "compressed_connections_max",
                self.compressed_connections_max,
                0,
                1 << 20,
            ),
            (
                "input_chunk_bytes",
                self.input_chunk_bytes,
                4 << 10,
                16 << 20,
            ),
            (
                "reply_chunk_bytes",
                self.reply_chunk_bytes,
                1 << 10,
                1 << 20,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_refused_and_an_empty_section_is_the_default() {
        assert_eq!(
            toml::from_str::<SessionConfig>("").unwrap(),
            SessionConfig::default()
        );
        assert!(toml::from_str::<SessionConfig>("idle = 5").is_err());
        assert!(SessionConfig::default().problems().is_empty());
        let bad = SessionConfig {
            idle_s: 0,
            greeting: "a\r\nb".into(),
            ..SessionConfig::default()
        };
        assert_eq!(bad.problems().len(), 2);
    }
}
