//! Which networks an address belongs to, for limits that one site must not get round by using many addresses.

use std::net::IpAddr;

/// What counts as one address: an IPv4 address, also when mapped into IPv6, or an IPv6 /64.
#[must_use]
pub fn network_of(address: IpAddr) -> IpAddr {
    cut(address, 64)
}

/// What counts as one site where few share what there is: an IPv4 address, or an IPv6 /48.
#[must_use]
pub fn site_of(address: IpAddr) -> IpAddr {
    cut(address, 48)
}

fn cut(address: IpAddr, bits: u32) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let rest = u128::MAX >> bits;
            IpAddr::V6((v6.to_bits() & !rest).into())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        for (address, network, site) in [
            ("192.0.2.1", "192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::", "2001:db8:1::"),
            ("::1", "::1", "::1"),
        ] {
            let address = address.parse().unwrap();
            let of = [network_of(address), site_of(address)];
            let right = [network, site].map(|it| it.parse::<IpAddr>().unwrap());
            assert_eq!(of, right, "{address}");
        }
    }
}
