//! Counting connections by entry of `[[access]]`: of all whom it is for, from one address, and of one user.
//!
//! A [`Place`] is given back when dropped.  The table has at most three entries a connection, so it is bounded by their number.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use newsreel_wire::network_of;
use parking_lot::Mutex;

use super::rules::Grant;

/// Of whom connections of an entry are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Of {
    All,
    Network(IpAddr),
    User(String),
}

/// The counts, by an entry's name.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<(String, Of), u32>>);

/// One connection's place.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    grant: Arc<Grant>,
    counted: Vec<Of>,
}

impl Places {
    /// A place for one more connection; none: there are as many as there may be.
    #[must_use]
    pub(super) fn take(
        self: &Arc<Self>,
        grant: &Arc<Grant>,
        address: IpAddr,
        user: Option<&str>,
    ) -> Option<Place> {
        let mut place = Place {
            places: Arc::clone(self),
            grant: Arc::clone(grant),
            counted: Vec::new(),
        };
        let of_all = (Of::All, grant.connections_max);
        let network = Of::Network(network_of(address));
        let of_network = (network, grant.connections_per_address_max);
        let is_taken =
            place.count(&[of_all, of_network]) && user.is_none_or(|user| place.count_user(user));
        is_taken.then_some(place)
    }
}

impl Place {
    /// Counts it as one of a user's too; false: they have as many as they may.
    #[must_use]
    pub(super) fn count_user(&mut self, user: &str) -> bool {
        let most = self.grant.connections_per_user_max;
        self.count(&[(Of::User(user.to_owned()), most)])
    }

    /// Counts it as one of all of these, or of none.
    fn count(&mut self, these: &[(Of, u32)]) -> bool {
        let mut counts = self.places.0.lock();
        let key = |of: &Of| (self.grant.name.clone(), of.clone());
        let is_full = |(of, most): &(Of, u32)| {
            *most > 0 && counts.get(&key(of)).is_some_and(|count| count >= most)
        };
        if these.iter().any(is_full) {
            return false;
        }
        for (of, _) in these {
            *counts.entry(key(of)).or_default() += 1;
            self.counted.push(of.clone());
        }
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.places.0.lock();
        for of in self.counted.drain(..) {
            let key = (self.grant.name.clone(), of);
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
        let take = |address: &str| places.take(&grant, address.parse().unwrap(), None);
        let first = take("192.0.2.1").unwrap();
        let _second = take("192.0.2.1").unwrap();
        assert!(take("192.0.2.1").is_none());
        let _third = take("192.0.2.2").unwrap();
        assert!(take("192.0.2.3").is_none());
        let other = Arc::new(Grant::everything("b"));
        assert!(
            places
                .take(&other, "192.0.2.1".parse().unwrap(), None)
                .is_some()
        );
        drop(first);
        assert!(take("192.0.2.3").is_some());
        drop((_second, _third));
        assert!(places.0.lock().is_empty());
    }

    #[test]
    fn a_user_has_places_wherever_they_come_from() {
        let places = Arc::new(Places::default());
        let grant = Arc::new(Grant {
            connections_max: 3,
            connections_per_user_max: 1,
            ..Grant::everything("a")
        });
        let take = |address: &str, user| places.take(&grant, address.parse().unwrap(), user);
        let first = take("192.0.2.1", Some("ada")).unwrap();
        // What is refused takes no place of any kind.
        for _ in 0..3 {
            assert!(take("192.0.2.2", Some("ada")).is_none());
        }
        let mut second = take("192.0.2.2", None).unwrap();
        assert!(!second.count_user("ada") && second.count_user("bob"));
        let third = take("192.0.2.2", None).unwrap();
        assert!(take("192.0.2.2", None).is_none());
        drop(first);
        assert!(
            take("192.0.2.3", Some("bob")).is_none() && take("192.0.2.3", Some("ada")).is_some()
        );
        drop((second, third));
        assert!(places.0.lock().is_empty());
    }
}
