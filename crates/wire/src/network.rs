//! Which network an address belongs to, for limits that one site must not get round by using many addresses.

use std::net::IpAddr;

/// What counts as one address: an IPv4 address, also when mapped into IPv6, or an IPv6 /64.
#[must_use]
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            IpAddr::V6((v6.to_bits() & !u128::from(u64::MAX)).into())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        for (address, network) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("::1", "::1"),
        ] {
            let of = network_of(address.parse().unwrap());
            assert_eq!(of, network.parse::<IpAddr>().unwrap(), "{address}");
        }
    }
}
