//! Peers that are known by names of hosts: the addresses that those names have.
//!
//! Invariant: a name without an address stands for nobody, never for everybody. Nothing is asked here: who asks the resolver says
//! what it answered, and what nobody answers for stays as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::config::PeerConfig;

/// More addresses than this are not taken for one name: an answer is not ours to trust.
const ADDRESSES_MAX: usize = 64;
/// A name is no longer than this (RFC 1035 section 2.3.4).
const NAME_OCTETS_MAX: usize = 253;

/// Addresses of hosts, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts(BTreeMap<String, BTreeSet<IpAddr>>);

impl Hosts {
    /// The names that peers are known by.
    #[must_use]
    pub fn names(peers: &[PeerConfig]) -> BTreeSet<String> {
        let given = peers.iter().flat_map(|peer| &peer.from_addresses);
        given.filter(|text| is_host(text)).cloned().collect()
    }

    /// The resolver answered; whether that is news.
    pub fn found(&mut self, name: &str, addresses: impl Iterator<Item = IpAddr>) -> bool {
        let addresses: BTreeSet<IpAddr> = addresses.take(ADDRESSES_MAX).collect();
        if addresses.is_empty() || self.0.get(name) == Some(&addresses) {
            return false;
        }
        self.0.insert(name.to_owned(), addresses);
        true
    }

    /// The addresses of a name, as far as it is known.
    pub fn of(&self, name: &str) -> impl Iterator<Item = IpAddr> {
        self.0.get(name).into_iter().flatten().copied()
    }
}

/// Whether this is the name of a host: letters, digits, `-` and `_` between dots, the last of them no number. `local` is this machine.
pub(crate) fn is_host(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        let is_one = |octet: u8| octet.is_ascii_alphanumeric() || b"-_".contains(&octet);
        !label.is_empty() && label.bytes().all(is_one)
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name != "local"
        && name.len() <= NAME_OCTETS_MAX
        && name.split('.').all(is_label)
        && last.bytes().any(|octet| octet.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_addresses() {
        for name in [
            "news.example.org",
            "localhost",
            "a-b_c.example.",
            "4.example",
            "xn--a.b2",
        ] {
            assert!(is_host(name), "{name}");
        }
        for not in [
            "",
            ".",
            "local",
            "192.0.2.7",
            "192.0.2.0/24",
            "192.0.2.256",
            "2001:db8::7",
            "a..b",
            "a b",
            "news.example.org:119",
            "\u{e4}.example",
        ] {
            assert!(!is_host(not), "{not}");
        }
        assert!(!is_host(&"a.".repeat(200)));
    }

    #[test]
    fn what_nobody_answers_for_stays() {
        let mut hosts = Hosts::default();
        let address: IpAddr = "192.0.2.7".parse().unwrap();
        let other: IpAddr = "2001:db8::7".parse().unwrap();
        assert!(hosts.found("a.example", [address, other, address].into_iter()));
        assert!(!hosts.found("a.example", [other, address].into_iter()));
        assert!(!hosts.found("a.example", std::iter::empty()));
        assert!(hosts.of("a.example").eq([address, other]));
        assert_eq!(hosts.of("b.example").count(), 0);
        assert!(hosts.found("a.example", [other].into_iter()));
        assert!(hosts.of("a.example").eq([other]));
        let many =
            (0..1000).map(|number| IpAddr::from([10, 0, (number / 256) as u8, number as u8]));
        assert!(hosts.found("many.example", many));
        assert_eq!(hosts.of("many.example").count(), ADDRESSES_MAX);
    }
}
