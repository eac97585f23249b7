//! Which networks an address belongs to, for limits that one site must not get round by using many addresses.

use std::net::IpAddr;

/// Wider networks of IPv6, by their length: so many times what one network may is allowed in them.
const WIDER: [(u8, u32); 2] = [(56, 4), (48, 16)];

/// What counts as one address: an IPv4 address, also when mapped into IPv6, or an IPv6 /64.
#[must_use]
pub fn network_of(address: IpAddr) -> IpAddr {
    cut(address, 64).0
}

/// What counts as one site where few share what there is: an IPv4 address, or an IPv6 /48.
#[must_use]
pub fn site_of(address: IpAddr) -> IpAddr {
    cut(address, 48).0
}

/// The networks in which an address is counted, each with its length and the weight of what it may: that of [`network_of`], once, and
/// of IPv6 the /56 four times and the /48 sixteen times, so that who holds one of those is not as many as they have networks.
pub fn networks_around(address: IpAddr) -> impl DoubleEndedIterator<Item = ((IpAddr, u8), u32)> {
    let own = cut(address, 64);
    let wider = WIDER.into_iter().filter(move |_| own.1 == 64);
    let wider = wider.map(move |(bits, weight)| (cut(address, bits), weight));
    std::iter::once((own, 1)).chain(wider)
}

/// An address cut to so many bits, where it is one of IPv6 that can be cut, and how many are left.
fn cut(address: IpAddr, bits: u8) -> (IpAddr, u8) {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let rest = u128::MAX >> bits;
            (IpAddr::V6((v6.to_bits() & !rest).into()), bits)
        }
        IpAddr::V6(v6) => (v6.into(), 128),
        IpAddr::V4(v4) => (v4.into(), 32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        for (address, network, site, around) in [
            ("192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1/32*1"),
            (
                "::ffff:192.0.2.1",
                "192.0.2.1",
                "192.0.2.1",
                "192.0.2.1/32*1",
            ),
            (
                "2001:db8:1:203:3:4:5:6",
                "2001:db8:1:203::",
                "2001:db8:1::",
                "2001:db8:1:203::/64*1 2001:db8:1:200::/56*4 2001:db8:1::/48*16",
            ),
            ("::1", "::1", "::1", "::1/128*1"),
        ] {
            let address = address.parse().unwrap();
            let of = [network_of(address), site_of(address)];
            let right = [network, site].map(|it| it.parse::<IpAddr>().unwrap());
            assert_eq!(of, right, "{address}");
            let shown = |((network, bits), weight)| format!("{network}/{bits}*{weight}");
            let all: Vec<String> = networks_around(address).map(shown).collect();
            assert_eq!(all.join(" "), around, "{address}");
        }
    }
}
