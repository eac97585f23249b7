//! Places for what costs a connection much memory: so many in all, and of those a quarter for one network.
//!
//! Who holds one gives it back when it is dropped.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use newsreel_net::network_of;
use parking_lot::Mutex;

/// The places.
#[derive(Debug)]
pub(crate) struct Places {
    max: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    network: Option<IpAddr>,
}

impl Places {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            held: Mutex::default(),
        })
    }

    /// One for a connection from there; none: all are held, or the share of its network (an IPv4 address, an IPv6 /64) is.
    pub(crate) fn take(self: &Arc<Self>, from: Option<IpAddr>) -> Option<Place> {
        let network = from.map(network_of);
        let mut held = self.held.lock();
        let of = network.map_or(0, |network| held.of.get(&network).copied().unwrap_or(0));
        if held.all >= self.max || of >= self.max.div_ceil(4) {
            return None;
        }
        held.all += 1;
        if let Some(network) = network {
            held.of.insert(network, of + 1);
        }
        drop(held);
        Some(Place {
            places: Arc::clone(self),
            network,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.places.held.lock();
        held.all -= 1;
        let Some(network) = self.network else { return };
        if let Some(of) = held.of.get_mut(&network) {
            *of -= 1;
            if *of == 0 {
                held.of.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_network_has_a_quarter() {
        let places = Places::new(8);
        let from = |text: &str| text.parse().ok();
        let first = places.take(from("2001:db8::1"));
        let second = places.take(from("2001:db8::2"));
        assert!(first.is_some() && second.is_some());
        assert!(places.take(from("2001:db8::3")).is_none());
        let others = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2"];
        let others = others.map(|it| places.take(from(it)));
        assert!(others.iter().all(Option::is_some));
        drop(first);
        assert!(places.take(from("2001:db8::3")).is_some());
        // Who comes by no address is ourselves, and has what is left.
        let own = [(); 3].map(|()| places.take(None));
        assert!(own.iter().all(Option::is_some));
        assert!(places.take(None).is_none() && places.take(from("192.0.2.3")).is_none());
        drop((second, others, own));
        assert!(places.held.lock().of.is_empty());
    }
}
