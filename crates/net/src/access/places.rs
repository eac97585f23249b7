//! Counting connections by entry of `[[access]]`: of all whom it is for, and from one address.
//!
//! A [`Place`] is given back when dropped.  The table has at most two entries a connection, so it is bounded by their number.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use newsreel_wire::network_of;
use parking_lot::Mutex;

use super::rules::Grant;

/// What is counted: an entry's name, and the network for its count by address.
type Key = (Arc<Grant>, Option<IpAddr>);

/// The counts.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<(String, Option<IpAddr>), u32>>);

/// One connection's place.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    key: Key,
}

impl Places {
    /// A place for one more connection; none: there are as many as there may be.
    #[must_use]
    pub(super) fn take(self: &Arc<Self>, grant: &Arc<Grant>, address: IpAddr) -> Option<Place> {
        let network = Some(network_of(address));
        let of_all = (grant.name.clone(), None);
        let of_address = (grant.name.clone(), network);
        let mut counts = self.0.lock();
        let is_full = |key, most| most > 0 && counts.get(key).is_some_and(|count| *count >= most);
        if is_full(&of_all, grant.connections_max)
            || is_full(&of_address, grant.connections_per_address_max)
        {
            return None;
        }
        for key in [of_all, of_address] {
            *counts.entry(key).or_default() += 1;
        }
        drop(counts);
        Some(Place {
            places: Arc::clone(self),
            key: (Arc::clone(grant), network),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (grant, network) = &self.key;
        let mut counts = self.places.0.lock();
        for network in [None, *network] {
            let key = (grant.name.clone(), network);
            if let Some(count) = counts.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_and_given_back() {
        let places = Arc::new(Places::default());
        let grant = Arc::new(Grant {
            connections_max: 3,
            connections_per_address_max: 2,
            ..Grant::everything("a")
        });
        let take = |address: &str| places.take(&grant, address.parse().unwrap());
        let first = take("192.0.2.1").unwrap();
        let _second = take("192.0.2.1").unwrap();
        assert!(take("192.0.2.1").is_none());
        let _third = take("192.0.2.2").unwrap();
        assert!(take("192.0.2.3").is_none());
        let other = Arc::new(Grant::everything("b"));
        assert!(places.take(&other, "192.0.2.1".parse().unwrap()).is_some());
        drop(first);
        assert!(take("192.0.2.3").is_some());
        drop((_second, _third));
        assert!(places.0.lock().is_empty());
    }
}
