//! The section `[listen]` of the configuration.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

/// Where the server listens and how many may come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListenConfig {
    /// Addresses to listen on, `host:port` with a numeric host.
    pub addresses: Vec<SocketAddr>,
    /// Connections at the same time, in all.
    pub connections_max: usize,
    /// Connections at the same time from one address (IPv6: one /64 network); no more than `connections_max`.
    pub connections_per_address_max: usize,
    /// Whether connections from this machine count against the total only.
    pub loopback_unlimited: bool,
    /// Connections the kernel keeps waiting until they are accepted.
    pub backlog: u32,
    /// Silence after which the kernel asks whether the other side is still there, in seconds.
    pub keepalive_s: u64,
    /// How long connections may go on with what they are doing when the server stops, in seconds.
    pub drain_s: u64,
}

impl Default for ListenConfig {
    fn default() -> Self {
        Self {
            addresses: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 1119))],
            connections_max: 10_000,
            connections_per_address_max: 256,
            loopback_unlimited: true,
            backlog: 1024,
            keepalive_s: 300,
            drain_s: 10,
        }
    }
}

impl ListenConfig {
    /// Everything that is wrong with the values, as `(key, what would be right)`.
    #[must_use]
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        if self.addresses.is_empty() {
            problems.push((
                "addresses",
                "give at least one, as in [\"127.0.0.1:1119\"]".into(),
            ));
        }
        for (key, value) in [
            ("connections_max", self.connections_max),
            (
                "connections_per_address_max",
                self.connections_per_address_max,
            ),
            ("backlog", self.backlog as usize),
        ] {
            if value == 0 {
                problems.push((key, "must be at least 1".into()));
            }
        }
        if self.keepalive_s == 0 {
            problems.push(("keepalive_s", "must be at least 1".into()));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_refused_and_an_empty_section_is_the_default() {
        assert_eq!(
            toml::from_str::<ListenConfig>("").unwrap(),
            ListenConfig::default()
        );
        let error = toml::from_str::<ListenConfig>("adresses = []").unwrap_err();
        assert!(error.to_string().contains("adresses"), "{error}");
        assert!(ListenConfig::default().problems().is_empty());
        let bad = ListenConfig {
            addresses: vec![],
            backlog: 0,
            ..ListenConfig::default()
        };
        assert_eq!(bad.problems().len(), 2);
    }
}
