//! The section `[listen]` of the configuration.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

/// Where the server listens and how many may come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListenConfig {
    /// Addresses to listen on, `host:port` with a numeric host. `[::]:119` is every address of IPv6 only: give
    /// `["0.0.0.0:119", "[::]:119"]` for both.
    pub addresses: Vec<SocketAddr>,
    /// Addresses where TLS is spoken from the first octet on (port 563), with the certificate of `[tls]`. With one, TLS can be begun
    /// by STARTTLS at the other addresses.
    pub tls_addresses: Vec<SocketAddr>,
    /// Connections at the same time, in all.
    pub connections_max: usize,
    /// Connections at the same time from one address (IPv6: one /64 network; from a /56 four times, from a /48 sixteen times as
    /// many); no more than `connections_max`.
    pub connections_per_address_max: usize,
    /// New connections a second from one address (IPv6: one /64 network; from a /56 four times, from a /48 sixteen times as many),
    /// those of two seconds at once; more are refused, and who does not cease is shut out for ten seconds. 0: any number.
    pub connections_per_s_per_address_max: u32,
    /// Whether connections from this machine count against the total only.
    pub loopback_unlimited: bool,
    /// Connections the kernel keeps waiting until they are accepted.
    pub backlog: u32,
    /// Silence after which the kernel asks whether the other side is still there, in seconds.
    pub keepalive_s: u64,
    /// How long connections may go on with what they are doing when the server stops, in seconds.
    pub drain_s: u64,
    /// The standard input is what is served on, as inetd starts servers: a connection, or a listening socket.
    #[serde(skip)]
    pub inetd: bool,
}

impl Default for ListenConfig {
    fn default() -> Self {
        Self {
            addresses: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 1119))],
            tls_addresses: Vec::new(),
            connections_max: 10_000,
            connections_per_address_max: 256,
            connections_per_s_per_address_max: 50,
            loopback_unlimited: true,
            backlog: 1024,
            keepalive_s: 300,
            drain_s: 10,
            inetd: false,
        }
    }
}

impl ListenConfig {
    /// Everything that is wrong with the values, as `(key, what would be right)`.
    #[must_use]
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        if self.addresses.is_empty() && self.tls_addresses.is_empty() {
            problems.push((
                "addresses".to_owned(),
                "give at least one, as in [\"127.0.0.1:1119\"]".to_owned(),
            ));
        }
        let tls = (0..)
            .zip(&self.tls_addresses)
            .map(|(at, address)| ("tls_addresses", at, address));
        let plain = (0..)
            .zip(&self.addresses)
            .map(|(at, address)| ("addresses", at, address));
        for (place, (key, at, address)) in plain.chain(tls).enumerate() {
            let all = self.addresses.iter().chain(&self.tls_addresses);
            let mut before = all.take(place);
            if let Some(other) = before.find(|other| is_taken_by(address, other)) {
                let right = if other == address {
                    format!("{address} is there already: give each address once")
                } else {
                    format!("{address} and {other} cannot both be listened on: keep one of them")
                };
                problems.push((format!("{key}[{at}]"), right));
            }
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
                problems.push((key.to_owned(), "must be at least 1".to_owned()));
            }
        }
        if self.keepalive_s == 0 {
            problems.push(("keepalive_s".to_owned(), "must be at least 1".to_owned()));
        }
        problems
    }
}

/// Whether the system refuses one address because another is listened on: of one family (IPv6 sockets take no IPv4) the
/// unspecified address is every one.  Port 0 is another each time.
fn is_taken_by(address: &SocketAddr, other: &SocketAddr) -> bool {
    let (ip, other_ip) = (address.ip(), other.ip());
    let is_everywhere = ip.is_unspecified() || other_ip.is_unspecified();
    address.port() != 0
        && address.port() == other.port()
        && ip.is_ipv4() == other_ip.is_ipv4()
        && (ip == other_ip || is_everywhere)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Drain, Limits, Listeners};

    /// What the check refuses is what the system refuses, and nothing else.
    #[tokio::test]
    async fn addresses_that_cannot_be_listened_on_together_are_told() {
        let check = |addresses: &[String]| {
            let config = ListenConfig {
                addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
                ..ListenConfig::default()
            };
            let bound = Listeners::bind(&config, Limits::new(&config), Drain::new());
            let problems = config.problems();
            assert_eq!(
                problems.is_empty(),
                bound.is_ok(),
                "{addresses:?}: {bound:?}"
            );
            problems
        };
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let one = |host: &str| format!("{host}:{port}");
        let twice = check(&[one("127.0.0.1"), one("127.0.0.1")]);
        let right = format!("127.0.0.1:{port} is there already: give each address once");
        assert_eq!(twice, [("addresses[1]".to_owned(), right)]);
        let covered = check(&[one("127.0.0.1"), one("127.0.0.2"), one("0.0.0.0")]);
        let right = format!(
            "0.0.0.0:{port} and 127.0.0.1:{port} cannot both be listened on: keep one of them"
        );
        assert_eq!(covered, [("addresses[2]".to_owned(), right)]);
        assert_eq!(check(&[one("127.0.0.1"), one("127.0.0.2")]), []);
        assert_eq!(check(&["127.0.0.1:0".into(), "127.0.0.1:0".into()]), []);
    }

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
