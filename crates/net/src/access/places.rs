//! Counting connections by entry of `[[access]]`: of all whom it is for, from one address and (IPv6) the wider networks around it, and
//! of one user; and the paces that they share.
//!
//! A [`Place`] is given back when dropped.  The table has at most five entries a connection, and those of paces that outlive
//! theirs ([`Kept`]).

use std::net::IpAddr;
use std::sync::Arc;

use newsreel_wire::networks_around;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::pace::{Pace, SHARED, SharedPace};
use super::rules::Grant;
use crate::kept::{Dues, Kept};

/// Of whom connections of an entry are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Of {
    All,
    Network(IpAddr),
    /// A network around one, by its length.
    Wider(IpAddr, u8),
    User(String),
}

/// An entry's name, and of whom.
type Key = (String, Of);

/// The paces that they share.
#[derive(Debug)]
struct Paces {
    octets: SharedPace,
    commands: SharedPace,
    articles: SharedPace,
}

impl Paces {
    fn are_none(&self) -> bool {
        let all = [&self.octets, &self.commands, &self.articles];
        all.into_iter().all(SharedPace::is_none)
    }
}

impl Dues for Paces {
    fn are_paid(&self, now: Instant) -> bool {
        let all = [&self.octets, &self.commands, &self.articles];
        all.into_iter().all(|pace| pace.is_paid(now))
    }
}

/// The counts, by an entry's name.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<Kept<Key, Paces>>);

/// One connection's place.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    grant: Arc<Grant>,
    counted: Vec<Of>,
    /// None, as of most: it shares no pace.
    shared: Option<Box<Shared>>,
}

/// The paces that one connection shares with others.
#[derive(Debug, Default)]
struct Shared {
    octets: [SharedPace; SHARED],
    commands: [SharedPace; SHARED],
    articles: [SharedPace; SHARED],
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
            shared: None,
        };
        let mut these = vec![(Of::All, grant.connections_max)];
        these.extend(networks_around(address).map(|((network, bits), weight)| {
            let of = match weight {
                1 => Of::Network(network),
                _ => Of::Wider(network, bits),
            };
            (of, grant.connections_per_address_max.saturating_mul(weight))
        }));
        let is_taken = place.count(&these) && user.is_none_or(|user| place.count_user(user));
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
        self.sharing(self.grant.octets_per_s_max, |shared| &shared.octets)
    }

    /// The connection's pace of commands, with those that it shares.
    pub(super) fn commands(&self) -> Pace {
        let own = self.grant.commands_per_s_max.into();
        self.sharing(own, |shared| &shared.commands)
    }

    /// The pace of articles of others that it shares.
    pub(super) fn articles(&self) -> Pace {
        self.sharing(0, |shared| &shared.articles)
    }

    fn sharing(&self, own: u64, of: impl Fn(&Shared) -> &[SharedPace; SHARED]) -> Pace {
        let pace = Pace::new(own);
        match &self.shared {
            Some(shared) => pace.shared(of(shared).clone()),
            None => pace,
        }
    }

    /// Counts it as one of all of these, or of none.
    fn count(&mut self, these: &[(Of, u32)]) -> bool {
        let mut table = self.places.0.lock();
        table.tidy(Instant::now());
        let grant = &self.grant;
        let key = |of: &Of| (grant.name.clone(), of.clone());
        let is_full = |(of, most): &(Of, u32)| *most > 0 && table.connections(&key(of)) >= *most;
        if these.iter().any(is_full) {
            return false;
        }
        for (of, _) in these {
            let (octets, commands, articles) = match of {
                Of::All => (
                    grant.octets_per_s_of_all_max,
                    0,
                    grant.articles_per_s_of_all_max,
                ),
                Of::Wider(..) => (0, 0, 0),
                Of::Network(_) => (
                    grant.octets_per_s_per_address_max,
                    grant.commands_per_s_per_address_max,
                    0,
                ),
                Of::User(_) => (
                    grant.octets_per_s_per_user_max,
                    grant.commands_per_s_per_user_max,
                    0,
                ),
            };
            let paces = table.come(key(of), || Paces {
                octets: SharedPace::new(octets),
                commands: SharedPace::new(commands.into()),
                articles: SharedPace::new(articles.into()),
            });
            let place = match of {
                Of::Wider(..) => None,
                Of::Network(_) => Some(0),
                Of::User(_) => Some(1),
                Of::All => {
                    // Some of its connections last for weeks, through changes of the configuration.
                    paces.octets.becomes(octets);
                    paces.articles.becomes(articles.into());
                    Some(2)
                }
            };
            if let Some(at) = place
                && !paces.are_none()
            {
                let shared = self.shared.get_or_insert_default();
                shared.octets[at] = paces.octets.clone();
                shared.commands[at] = paces.commands.clone();
                shared.articles[at] = paces.articles.clone();
            }
            self.counted.push(of.clone());
        }
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.places.0.lock();
        for of in self.counted.drain(..) {
            table.go((self.grant.name.clone(), of));
        }
        table.tidy(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::kept::PACES_KEPT_MAX;

    fn is_empty(places: &Places) -> bool {
        places.0.lock().len() == (0, 0)
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
        let (known, gone) = places.0.lock().len();
        assert!(known <= PACES_KEPT_MAX && gone <= PACES_KEPT_MAX);
    }

    /// Who comes from several addresses shares the pace of all, and a change of it holds for who comes from then on.
    #[tokio::test(start_paused = true)]
    async fn all_of_an_entry_share_a_pace() {
        let places = Arc::new(Places::default());
        let grant = |octets, articles| {
            Arc::new(Grant {
                octets_per_s_of_all_max: octets,
                articles_per_s_of_all_max: articles,
                ..Grant::everything("a")
            })
        };
        let before = grant(100, 10);
        let take =
            |grant, address: &str| places.take(grant, address.parse().unwrap(), None).unwrap();
        let one = take(&before, "192.0.2.1");
        let other = take(&before, "2001:db8::1");
        assert_eq!(one.octets().spend(100), Duration::ZERO);
        assert_eq!(other.octets().spend(100), Duration::from_secs(1));
        assert_eq!(one.articles().spend(10), Duration::ZERO);
        assert_eq!(other.articles().spend(5), Duration::from_millis(500));
        assert_eq!(other.commands().spend(1000), Duration::ZERO);
        let third = take(&grant(0, 20), "192.0.2.1");
        assert_eq!(third.octets().spend(1000), Duration::ZERO);
        assert_eq!(third.articles().spend(30), Duration::from_millis(500));
        tokio::time::advance(Duration::from_secs(10)).await;
        drop((one, other, third));
        assert!(is_empty(&places));
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

    /// Who has a /48 could have the connections of 65,536 addresses.
    #[test]
    fn who_has_a_wide_network_is_few() {
        let places = Arc::new(Places::default());
        let grant = Arc::new(Grant {
            connections_per_address_max: 2,
            ..Grant::everything("a")
        });
        let take = |n: u32| {
            let address = format!("2001:db8:{:x}:{:x}::1", 8 + n / 256, (n % 256) * 0x100);
            places.take(&grant, address.parse().unwrap(), None)
        };
        let mut all: Vec<Place> = (0..32).map(|n| take(n).unwrap()).collect();
        assert!(take(32).is_none());
        all.push(take(256).unwrap());
        all.swap_remove(0);
        all.push(take(32).unwrap());
        assert!(take(33).is_none());
        drop(all);
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
