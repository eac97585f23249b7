//! Networks: an address with the number of its leading bits that count.

use std::net::IpAddr;

use ipnet::IpNet;

/// Addresses that a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    /// This machine's own.
    Local,
    /// One network; a single address is a whole-length one.
    Net(IpNet),
}

/// Whether an address is in a network that is written as an address, or an address with a slash and a length.
#[must_use]
pub fn is_within(address: IpAddr, network: &str) -> bool {
    net_of(network).is_some_and(|net| net.contains(&address.to_canonical()))
}

/// Reads an address, or an address with a slash and a length; what is IPv4 in IPv6 (`::ffff:192.0.2.1`) is IPv4.
pub(super) fn net_of(text: &str) -> Option<IpNet> {
    let net: IpNet = match text.parse::<IpAddr>() {
        Ok(address) => address.into(),
        Err(_) => text.parse().ok()?,
    };
    let IpNet::V6(v6) = net else {
        return Some(net);
    };
    match (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(96)) {
        (Some(v4), Some(length)) => IpNet::new(v4.into(), length).ok(),
        _ => Some(net),
    }
}

impl Network {
    /// Reads `local`, an address, or an address with a slash and a length.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == "local" {
            return Some(Self::Local);
        }
        let net = net_of(text)?;
        // What has bits behind its length was meant otherwise.
        (net.addr() == net.network()).then_some(Self::Net(net))
    }

    /// The networks that it is.
    pub(super) fn spans(self) -> Vec<IpNet> {
        match self {
            Self::Local => ["127.0.0.0/8", "::1/128"]
                .into_iter()
                .filter_map(net_of)
                .collect(),
            Self::Net(net) => vec![net],
        }
    }

    /// All addresses.
    pub(super) fn everywhere() -> Vec<IpNet> {
        ["0.0.0.0/0", "::/0"]
            .into_iter()
            .filter_map(net_of)
            .collect()
    }

    /// Whether an address, in its canonical form, belongs to it.
    pub(super) fn has(self, address: IpAddr) -> bool {
        match self {
            Self::Local => address.is_loopback(),
            Self::Net(net) => net.contains(&address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        let has = |net: &str, address: &str| {
            let address: IpAddr = address.parse().unwrap();
            Network::parse(net).unwrap().has(address.to_canonical())
        };
        assert!(has("192.0.2.0/24", "192.0.2.255") && !has("192.0.2.0/24", "192.0.3.0"));
        assert!(has("192.0.2.7", "::ffff:192.0.2.7") && !has("192.0.2.7", "192.0.2.8"));
        assert!(has("2001:db8::/32", "2001:db8:1::1") && !has("2001:db8::/32", "2001:db9::"));
        assert!(has("0.0.0.0/0", "127.0.0.1") && !has("0.0.0.0/0", "::1"));
        // An entry for an IPv4 address that was written as IPv6 was for nobody.
        assert!(has("::ffff:192.0.2.7", "192.0.2.7") && has("::ffff:192.0.2.0/120", "192.0.2.9"));
        assert!(!has("::ffff:192.0.2.0/120", "192.0.3.1") && has("::/0", "2001:db8::1"));
        assert!(has("local", "127.9.9.9") && has("local", "::1") && !has("local", "192.0.2.1"));
        for bad in [
            "",
            "192.0.2.1/24",
            "192.0.2.0/33",
            "a.example",
            "localhost",
            "2001:db8::1/32",
            "::ffff:192.0.2.1/120",
        ] {
            assert_eq!(Network::parse(bad), None, "{bad}");
        }
    }
}
