//! The memory that large articles take, on their way in and out, of all connections together.
//!
//! Small ones are bounded by what a connection has under way.  A large one needs room for all of it before its fate is
//! known, or until its reader has taken it, and many slow connections at once would need more than a machine has.  One
//! network may hold a quarter.  Where there is no room, the slowest connection makes some: who stalls, with however many
//! connections, keeps nobody else out for longer than [`GRACE`].

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use newsreel_wire::site_of;
use parking_lot::Mutex;
use tokio::time::Instant;

/// What part of all one network may hold.
const NETWORK_SHARE: usize = 4;

/// Nobody has to make room who has held memory for less than this, nor who moves octets: some within this time, and
/// [`OCTETS_A_SECOND_MIN`] since it began.
const GRACE: Duration = Duration::from_secs(2);

/// Who moves fewer is slow.
const OCTETS_A_SECOND_MIN: u64 = 64 << 10;

/// Octets that may be held, and by whom they are.
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
    /// The connections that hold some, by their place in memory.
    holders: HashMap<usize, Holder>,
}

#[derive(Debug)]
struct Holder {
    octets: usize,
    since: Instant,
    member: Arc<Member>,
}

/// One connection.
#[derive(Debug)]
struct Member {
    network: Option<IpAddr>,
    /// Whether it holds memory, or had to make room: else there is nothing to look at.
    is_holding: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// It had to make room: what it holds counts no more.
    is_out: bool,
    /// Octets that came or went since it holds memory, and when the last did.
    moved: u64,
    moved_at: Option<Instant>,
    waker: Option<Waker>,
}

impl Held {
    /// Takes the octets of a connection off the accounts.
    fn subtract(&mut self, network: Option<IpAddr>, octets: usize) {
        self.all -= octets;
        if let Entry::Occupied(mut mine) = self.networks.entry(network) {
            *mine.get_mut() -= octets;
            if *mine.get() == 0 {
                mine.remove();
            }
        }
    }

    /// The slowest connection that may be told to make room, if any.
    fn slowest(&self, network: Option<Option<IpAddr>>, but: usize) -> Option<usize> {
        let now = Instant::now();
        let rate = |holder: &Holder| {
            let age = now.saturating_duration_since(holder.since);
            let state = holder.member.state.lock();
            let quiet = now.saturating_duration_since(state.moved_at.unwrap_or(holder.since));
            let rate = match quiet < GRACE {
                true => u128::from(state.moved) * 1000 / age.as_millis().max(1),
                false => 0,
            };
            let is_slow = age >= GRACE && rate < u128::from(OCTETS_A_SECOND_MIN);
            is_slow.then_some((rate, Reverse(quiet)))
        };
        self.holders
            .iter()
            .filter(|(key, holder)| {
                **key != but && network.is_none_or(|network| holder.member.network == network)
            })
            .filter_map(|(key, holder)| Some((rate(holder)?, *key)))
            .min()
            .map(|(_, key)| key)
    }

    /// Tells a connection to make room; its octets are free from now on.
    fn put_out(&mut self, key: usize) {
        let Some(holder) = self.holders.remove(&key) else {
            return;
        };
        self.subtract(holder.member.network, holder.octets);
        let mut state = holder.member.state.lock();
        state.is_out = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
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

    /// The account of a connection from this address.
    pub(crate) fn account(self: &Arc<Self>, address: Option<IpAddr>) -> Account {
        Account {
            budget: Arc::clone(self),
            member: Arc::new(Member {
                network: address.map(site_of),
                is_holding: AtomicBool::new(false),
                state: Mutex::default(),
            }),
        }
    }
}

/// Large articles take too much already, and nobody is slow enough to make room.
#[derive(Debug)]
pub(crate) struct NoRoom;

/// One connection's part of the budget.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    budget: Arc<Budget>,
    member: Arc<Member>,
}

impl Account {
    fn key(&self) -> usize {
        Arc::as_ptr(&self.member).addr()
    }

    /// Holds so many octets until the hold is dropped.
    pub(crate) fn hold(&self, octets: usize) -> Result<Hold, NoRoom> {
        let (budget, network) = (&self.budget, self.member.network);
        let mut held = budget.held.lock();
        if self.member.state.lock().is_out || octets > budget.network_max {
            return Err(NoRoom);
        }
        loop {
            let mine = held.networks.get(&network).copied().unwrap_or_default();
            let slow = if mine.saturating_add(octets) > budget.network_max {
                held.slowest(Some(network), self.key())
            } else if held.all.saturating_add(octets) > budget.octets_max {
                held.slowest(None, self.key())
            } else {
                break;
            };
            held.put_out(slow.ok_or(NoRoom)?);
        }
        held.all += octets;
        *held.networks.entry(network).or_default() += octets;
        let holder = held.holders.entry(self.key()).or_insert_with(|| {
            let mut state = self.member.state.lock();
            (state.moved, state.moved_at) = (0, None);
            self.member.is_holding.store(true, Ordering::Relaxed);
            Holder {
                octets: 0,
                since: Instant::now(),
                member: Arc::clone(&self.member),
            }
        });
        holder.octets += octets;
        Ok(Hold {
            account: self.clone(),
            octets,
        })
    }

    /// Octets came or went.
    pub(crate) fn moved(&self, octets: usize) {
        let member = &self.member;
        if member.is_holding.load(Ordering::Relaxed) {
            let mut state = member.state.lock();
            state.moved = state.moved.saturating_add(octets as u64);
            state.moved_at = Some(Instant::now());
        }
    }

    /// Ready when this connection has to make room for others.
    pub(crate) fn poll_out(&self, cx: &Context<'_>) -> Poll<()> {
        // What is held is asked for by the task itself, before it waits.
        if !self.member.is_holding.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let mut state = self.member.state.lock();
        if state.is_out {
            return Poll::Ready(());
        }
        if state
            .waker
            .as_ref()
            .is_none_or(|waker| !waker.will_wake(cx.waker()))
        {
            state.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    fn give_back(&self, octets: usize) {
        let mut held = self.budget.held.lock();
        // Who had to make room is not in it any more.
        let Entry::Occupied(mut holder) = held.holders.entry(self.key()) else {
            return;
        };
        holder.get_mut().octets -= octets;
        if holder.get().octets == 0 {
            holder.remove();
            self.member.is_holding.store(false, Ordering::Relaxed);
        }
        held.subtract(self.member.network, octets);
    }
}

/// Octets held.
#[derive(Debug)]
pub(crate) struct Hold {
    account: Account,
    octets: usize,
}

impl Hold {
    pub(crate) const fn octets(&self) -> usize {
        self.octets
    }

    /// Holds what is missing to `octets`, too.
    pub(crate) fn grow_to(&mut self, octets: usize) -> Result<(), NoRoom> {
        let mut more = self.account.hold(octets.saturating_sub(self.octets))?;
        self.octets += std::mem::take(&mut more.octets);
        Ok(())
    }

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
        assert!(second.grow_to(30).is_ok() && second.grow_to(101).is_err());
        assert!(account.hold(70).is_ok() && account.hold(71).is_err());
        assert!(account.hold(usize::MAX).is_err());
    }

    #[test]
    fn one_network_keeps_nobody_else_out() {
        let budget = Arc::new(Budget::new(400, 50));
        let greedy = account(&budget, "2001:db8::1");
        let held: Vec<Hold> = std::iter::from_fn(|| greedy.hold(10).ok()).collect();
        assert_eq!(held.len(), 10, "a quarter");
        assert!(
            account(&budget, "2001:db8:0:1::2").hold(1).is_err(),
            "the same"
        );
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

    #[tokio::test(start_paused = true)]
    async fn the_slowest_makes_room() {
        let budget = Arc::new(Budget::new(400, 100));
        let accounts: Vec<Account> = (0..3).map(|_| account(&budget, "192.0.2.1")).collect();
        let holds: Vec<_> = accounts.iter().map(|one| one.hold(33).unwrap()).collect();
        let good = account(&budget, "192.0.2.1");
        assert!(good.hold(50).is_err(), "nobody had time to be slow");
        tokio::time::sleep(2 * GRACE).await;
        for (nth, one) in accounts.iter().enumerate() {
            one.moved(nth * 1000);
        }
        let cx = Context::from_waker(Waker::noop());
        assert!(accounts[0].poll_out(&cx).is_pending());
        let room = good.hold(50).unwrap();
        let is_out: Vec<_> = accounts
            .iter()
            .map(|one| one.poll_out(&cx).is_ready())
            .collect();
        assert_eq!(is_out, [true, true, false]);
        assert!(accounts[0].hold(1).is_err(), "who is out stays out");
        let third = &accounts[2];
        third.moved(4 * OCTETS_A_SECOND_MIN as usize);
        assert!(
            account(&budget, "192.0.2.1").hold(50).is_err(),
            "it is not slow"
        );
        let other = account(&budget, "198.51.100.1");
        assert!(other.hold(100).is_ok(), "another network has its own part");
        drop((holds, room));
        let held = budget.held.lock();
        assert!(held.all == 0 && held.networks.is_empty() && held.holders.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn many_networks_together_keep_nobody_else_out() {
        let budget = Arc::new(Budget::new(400, 100));
        let holds: Vec<Hold> = (1..=4)
            .map(|n| account(&budget, &format!("192.0.{n}.1")).hold(100).unwrap())
            .collect();
        let good = account(&budget, "198.51.100.1");
        assert!(good.hold(1).is_err());
        tokio::time::sleep(GRACE).await;
        assert!(good.hold(100).is_ok());
        drop(holds);
        assert_eq!(budget.held.lock().all, 0);
    }
}
