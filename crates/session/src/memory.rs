//! The memory that large articles take, on their way in and out, of all connections together.
//!
//! Small ones are bounded by what a connection has under way.  A large one needs room for all of it before its fate is
//! known, or until its reader has taken it, and many slow connections at once would need more than a machine has.  One
//! network may hold a quarter, so that whoever stalls with all the connections it may have keeps nobody else out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;

use newsreel_net::network_of;
use parking_lot::Mutex;

/// What part of all one network may hold.
const NETWORK_SHARE: usize = 4;

/// Octets that may be held, and how many are.
#[derive(Debug)]
pub(crate) struct Budget {
    octets_max: usize,
    network_max: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    networks: HashMap<Option<IpAddr>, usize>,
}

impl Budget {
    /// A budget in which one network can always hold `least`.
    pub(crate) fn new(octets_max: usize, least: usize) -> Self {
        Self {
            octets_max,
            network_max: (octets_max / NETWORK_SHARE).max(least).min(octets_max),
            held: Mutex::default(),
        }
    }

    /// The share of the network that an address is in.
    pub(crate) fn account(self: &Arc<Self>, address: Option<IpAddr>) -> Account {
        Account {
            budget: Arc::clone(self),
            network: address.map(network_of),
        }
    }
}

/// Large articles take too much already.
#[derive(Debug)]
pub(crate) struct NoRoom;

/// One network's share of the budget.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    budget: Arc<Budget>,
    network: Option<IpAddr>,
}

impl Account {
    /// Holds so many octets until the hold is dropped.
    pub(crate) fn hold(&self, octets: usize) -> Result<Hold, NoRoom> {
        let mut held = self.budget.held.lock();
        let all = held.all.saturating_add(octets);
        let mine = held.networks.get(&self.network).copied();
        let mine = mine.unwrap_or_default().saturating_add(octets);
        if all > self.budget.octets_max || mine > self.budget.network_max {
            return Err(NoRoom);
        }
        held.all = all;
        held.networks.insert(self.network, mine);
        Ok(Hold {
            account: self.clone(),
            octets,
        })
    }

    fn give_back(&self, octets: usize) {
        let mut held = self.budget.held.lock();
        held.all -= octets;
        if let Entry::Occupied(mut mine) = held.networks.entry(self.network) {
            *mine.get_mut() -= octets;
            if *mine.get() == 0 {
                mine.remove();
            }
        }
    }
}

/// Octets held.
#[derive(Debug)]
pub(crate) struct Hold {
    account: Account,
    octets: usize,
}

impl Hold {
    /// Gives back what is above `octets`.
    pub(crate) fn shrink_to(&mut self, octets: usize) {
        let less = self.octets.saturating_sub(octets);
        self.octets -= less;
        self.account.give_back(less);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.account.give_back(self.octets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(budget: &Arc<Budget>, address: &str) -> Account {
        budget.account(Some(address.parse().unwrap()))
    }

    #[test]
    fn what_is_dropped_can_be_held_again() {
        let account = Arc::new(Budget::new(100, 100)).account(None);
        let first = account.hold(60);
        assert!(first.is_ok() && account.hold(41).is_err());
        let mut second = account.hold(40).unwrap();
        assert!(account.hold(1).is_err());
        drop(first);
        assert!(account.hold(60).is_ok());
        second.shrink_to(10);
        second.shrink_to(30);
        assert!(account.hold(90).is_ok() && account.hold(91).is_err());
        assert!(account.hold(usize::MAX).is_err());
    }

    #[test]
    fn one_network_keeps_nobody_else_out() {
        let budget = Arc::new(Budget::new(400, 50));
        let greedy = account(&budget, "2001:db8::1");
        let held: Vec<Hold> = std::iter::from_fn(|| greedy.hold(10).ok()).collect();
        assert_eq!(held.len(), 10, "a quarter");
        assert!(account(&budget, "2001:db8::2").hold(1).is_err(), "the same");
        assert!(account(&budget, "2001:db8:1::1").hold(100).is_ok());
        assert!(account(&budget, "192.0.2.1").hold(100).is_ok());
        drop(held);
        assert!(budget.held.lock().networks.is_empty());
        assert!(
            account(&Arc::new(Budget::new(100, 80)), "192.0.2.1")
                .hold(80)
                .is_ok()
        );
    }
}
