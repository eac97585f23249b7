//! Counting connections by entry of `[[access]]`: of all whom it is for, from one address, and of one user; and the paces that they
//! share.
//!
//! A [`Place`] is given back when dropped.  The table has at most three entries a connection, and those of connections that have gone
//! while a pace was not paid for: who comes again has it still.  Of those there are at most [`PACES_KEPT_MAX`].

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use newsreel_wire::network_of;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::pace::{Pace, SharedPace};
use super::rules::Grant;

/// Of whom connections of an entry are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Of {
    All,
    Network(IpAddr),
    User(String),
}

/// An entry's name, and of whom.
type Key = (String, Of);

/// What is known of those.
#[derive(Debug)]
struct Counted {
    connections: u32,
    octets: SharedPace,
    commands: SharedPace,
}

/// Paces that are kept of addresses and users that have gone; beyond it those that went first begin anew.
pub const PACES_KEPT_MAX: usize = 10_000;

#[derive(Debug, Default)]
struct Table {
    counted: HashMap<Key, Counted>,
    /// Of whom no connection is left, in the order in which they went; some may have come again.
    gone: VecDeque<Key>,
}

/// The counts, by an entry's name.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<Table>);

impl Table {
    /// Forgets whose paces are paid for, or who are too many.
    fn tidy(&mut self, now: Instant) {
        while let Some(first) = self.gone.front() {
            let is_back = self.counted.get(first).is_none_or(|it| it.connections > 0);
            let is_paid = |it: &Counted| it.octets.is_paid(now) && it.commands.is_paid(now);
            let is_over = self.counted.get(first).is_some_and(is_paid);
            if !is_back && !is_over && self.gone.len() <= PACES_KEPT_MAX {
                return;
            }
            if let Some(first) = self.gone.pop_front()
                && !is_back
            {
                self.counted.remove(&first);
            }
        }
    }
}

/// One connection's place.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    grant: Arc<Grant>,
    counted: Vec<Of>,
    octets: [SharedPace; 2],
    commands: [SharedPace; 2],
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
            octets: Default::default(),
            commands: Default::default(),
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

    /// The connection's pace of octets, with those that it shares.
    pub(super) fn octets(&self) -> Pace {
        Pace::new(self.grant.octets_per_s_max).shared(self.octets.clone())
    }

    /// The connection's pace of commands, with those that it shares.
    pub(super) fn commands(&self) -> Pace {
        Pace::new(self.grant.commands_per_s_max.into()).shared(self.commands.clone())
    }

    /// Counts it as one of all of these, or of none.
    fn count(&mut self, these: &[(Of, u32)]) -> bool {
        let mut table = self.places.0.lock();
        table.tidy(Instant::now());
        let grant = &self.grant;
        let key = |of: &Of| (grant.name.clone(), of.clone());
        let is_full = |(of, most): &(Of, u32)| {
            let counted = table.counted.get(&key(of));
            *most > 0 && counts_of(counted) >= *most
        };
        if these.iter().any(is_full) {
            return false;
        }
        for (of, _) in these {
            let (octets, commands) = match of {
                Of::All => (0, 0),
                Of::Network(_) => (
                    grant.octets_per_s_per_address_max,
                    grant.commands_per_s_per_address_max,
                ),
                Of::User(_) => (
                    grant.octets_per_s_per_user_max,
                    grant.commands_per_s_per_user_max,
                ),
            };
            let counted = table.counted.entry(key(of)).or_insert_with(|| Counted {
                connections: 0,
                octets: SharedPace::new(octets),
                commands: SharedPace::new(commands.into()),
            });
            counted.connections += 1;
            let place = match of {
                Of::All => None,
                Of::Network(_) => Some(0),
                Of::User(_) => Some(1),
            };
            if let Some(at) = place {
                self.octets[at] = counted.octets.clone();
                self.commands[at] = counted.commands.clone();
            }
            self.counted.push(of.clone());
        }
        true
    }
}

fn counts_of(counted: Option<&Counted>) -> u32 {
    counted.map_or(0, |counted| counted.connections)
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.places.0.lock();
        for of in self.counted.drain(..) {
            let key = (self.grant.name.clone(), of);
            if let Some(counted) = table.counted.get_mut(&key) {
                counted.connections -= 1;
                if counted.connections == 0 {
                    table.gone.push_back(key);
                }
            }
        }
        table.tidy(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn is_empty(places: &Places) -> bool {
        let table = places.0.lock();
        table.counted.is_empty() && table.gone.is_empty()
    }

    /// Who ends a connection and begins another is not faster for it.
    #[tokio::test(start_paused = true)]
    async fn a_pace_outlives_its_connections_until_it_is_paid_for() {
        let places = Arc::new(Places::default());
        let grant = Arc::new(Grant {
            commands_per_s_per_address_max: 10,
            octets_per_s_per_user_max: 100,
            ..Grant::everything("a")
        });
        let take = |address: &str, user| {
            let address = address.parse().unwrap();
            places.take(&grant, address, user).unwrap()
        };
        let one = take("192.0.2.1", Some("ada"));
        assert_eq!(one.commands().spend(30), Duration::from_secs(2));
        assert_eq!(one.octets().spend(100), Duration::ZERO);
        drop(one);
        let again = take("192.0.2.1", Some("bob"));
        assert_eq!(again.commands().spend(1), Duration::from_millis(2100));
        assert_eq!(again.octets().spend(100), Duration::ZERO, "another user");
        let elsewhere = take("192.0.2.2", Some("ada"));
        assert_eq!(elsewhere.commands().spend(1), Duration::ZERO);
        assert_eq!(elsewhere.octets().spend(100), Duration::from_secs(1));
        drop((again, elsewhere));
        assert!(!is_empty(&places));
        tokio::time::advance(Duration::from_secs(4)).await;
        let last = take("192.0.2.1", None);
        assert_eq!(last.commands().spend(10), Duration::ZERO);
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(last);
        assert!(is_empty(&places));
        for n in 0..PACES_KEPT_MAX + 10 {
            let address = std::net::Ipv4Addr::from_bits(n as u32).into();
            let place = places.take(&grant, address, None).unwrap();
            place.commands().spend(1);
        }
        assert!(places.0.lock().gone.len() <= PACES_KEPT_MAX);
        assert!(places.0.lock().counted.len() <= PACES_KEPT_MAX);
    }

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
        assert!(is_empty(&places));
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
        assert!(is_empty(&places));
    }
}
