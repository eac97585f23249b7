//! Counting connections: in all and per address.
//!
//! An [`Admission`] is a connection's place; it is given back when dropped, however the connection ends.  The table
//! has one entry per address that is connected now, so it is bounded by the total.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_wire::network_of;
use parking_lot::Mutex;

use crate::config::ListenConfig;

/// The counters and limits of one server, shared by its listeners.
#[derive(Debug)]
pub struct Limits {
    state: Mutex<State>,
    next_id: AtomicU64,
    admitted: AtomicU64,
    refused_total: AtomicU64,
    refused_address: AtomicU64,
    accept_errors: AtomicU64,
}

#[derive(Debug)]
struct State {
    open: usize,
    per_address: HashMap<IpAddr, usize>,
    total_max: usize,
    per_address_max: usize,
    loopback_unlimited: bool,
}

/// Why a connection is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The server has as many as it may.
    Total,
    /// This address has as many as it may.
    Address,
}

impl Refusal {
    /// The line the peer gets.
    #[must_use]
    pub const fn reply(self) -> &'static str {
        match self {
            Self::Total => "400 Too many connections, try again later\r\n",
            Self::Address => "400 Too many connections from your address\r\n",
        }
    }
}

/// A connection's place under the limits.
#[derive(Debug)]
pub struct Admission {
    limits: Arc<Limits>,
    key: Option<IpAddr>,
    id: u64,
    peer: SocketAddr,
    pub(crate) is_tls: bool,
}

impl Admission {
    /// Whether it came to an address where TLS is spoken from the first octet on.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The connection's number, never used twice by this process.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Where it comes from.
    #[must_use]
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut state = self.limits.state.lock();
        state.open = state.open.saturating_sub(1);
        let Some(key) = self.key else { return };
        if let Some(count) = state.per_address.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                state.per_address.remove(&key);
            }
        }
    }
}

/// What has been counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitsSnapshot {
    /// Connections open now.
    pub open: usize,
    /// Connections admitted.
    pub admitted: u64,
    /// Connections refused because there were too many in all.
    pub refused_total: u64,
    /// Connections refused because there were too many from their address.
    pub refused_address: u64,
    /// Errors of accept, among them "too many open files".
    pub accept_errors: u64,
}

impl Limits {
    /// Fresh counters under the configured limits.
    #[must_use]
    pub fn new(config: &ListenConfig) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                open: 0,
                per_address: HashMap::new(),
                total_max: config.connections_max,
                per_address_max: config.connections_per_address_max,
                loopback_unlimited: config.loopback_unlimited,
            }),
            next_id: AtomicU64::new(1),
            admitted: AtomicU64::new(0),
            refused_total: AtomicU64::new(0),
            refused_address: AtomicU64::new(0),
            accept_errors: AtomicU64::new(0),
        })
    }

    /// Takes new limits over; connections that are open stay.
    pub fn set(&self, config: &ListenConfig) {
        let mut state = self.state.lock();
        state.total_max = config.connections_max;
        state.per_address_max = config.connections_per_address_max;
        state.loopback_unlimited = config.loopback_unlimited;
    }

    /// A connection's number outside of any listener (control socket, batch reader).
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Lets a connection in, or says why not.
    ///
    /// # Errors
    /// When a limit is reached.
    pub fn admit(self: &Arc<Self>, peer: SocketAddr) -> Result<Admission, Refusal> {
        let mut state = self.state.lock();
        if state.open >= state.total_max {
            drop(state);
            self.refused_total.fetch_add(1, Ordering::Relaxed);
            return Err(Refusal::Total);
        }
        let key = network_of(peer.ip());
        let counted = !(state.loopback_unlimited && key.is_loopback());
        if counted {
            let per_address_max = state.per_address_max;
            let count = state.per_address.entry(key).or_insert(0);
            if *count >= per_address_max {
                drop(state);
                self.refused_address.fetch_add(1, Ordering::Relaxed);
                return Err(Refusal::Address);
            }
            *count += 1;
        }
        state.open += 1;
        drop(state);
        self.admitted.fetch_add(1, Ordering::Relaxed);
        let id = self.next_id();
        Ok(Admission {
            limits: Arc::clone(self),
            key: counted.then_some(key),
            id,
            peer,
            is_tls: false,
        })
    }

    /// Counts an error of accept.
    pub(crate) fn count_accept_error(&self) {
        self.accept_errors.fetch_add(1, Ordering::Relaxed);
    }

    /// The counters now.
    #[must_use]
    pub fn snapshot(&self) -> LimitsSnapshot {
        LimitsSnapshot {
            open: self.state.lock().open,
            admitted: self.admitted.load(Ordering::Relaxed),
            refused_total: self.refused_total.load(Ordering::Relaxed),
            refused_address: self.refused_address.load(Ordering::Relaxed),
            accept_errors: self.accept_errors.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(total: usize, per_address: usize, loopback_unlimited: bool) -> Arc<Limits> {
        Limits::new(&ListenConfig {
            connections_max: total,
            connections_per_address_max: per_address,
            loopback_unlimited,
            ..ListenConfig::default()
        })
    }

    fn from(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().unwrap(), 5000)
    }

    #[test]
    fn total_and_per_address_are_held_and_given_back() {
        let limits = limits(3, 2, true);
        let first = limits.admit(from("192.0.2.1")).unwrap();
        let _second = limits.admit(from("192.0.2.1")).unwrap();
        assert_eq!(
            limits.admit(from("192.0.2.1")).unwrap_err(),
            Refusal::Address
        );
        let _third = limits.admit(from("192.0.2.2")).unwrap();
        assert_eq!(limits.admit(from("192.0.2.3")).unwrap_err(), Refusal::Total);
        drop(first);
        let fourth = limits.admit(from("192.0.2.1")).unwrap();
        assert_eq!(fourth.id(), 4, "numbers are not used again");
        let seen = limits.snapshot();
        assert_eq!((seen.open, seen.admitted), (3, 4));
        assert_eq!((seen.refused_total, seen.refused_address), (1, 1));
    }

    #[test]
    fn one_ipv6_network_is_one_address_and_mapped_ipv4_is_ipv4() {
        let limits = limits(10, 1, true);
        let _one = limits.admit(from("2001:db8:0:1::1")).unwrap();
        assert_eq!(
            limits.admit(from("2001:db8:0:1:ffff::2")).unwrap_err(),
            Refusal::Address
        );
        let _other = limits.admit(from("2001:db8:0:2::1")).unwrap();
        let _four = limits.admit(from("192.0.2.1")).unwrap();
        assert_eq!(
            limits.admit(from("::ffff:192.0.2.1")).unwrap_err(),
            Refusal::Address
        );
    }

    #[test]
    fn loopback_counts_against_the_total_only() {
        let unlimited = limits(2, 1, true);
        let _one = unlimited.admit(from("127.0.0.1")).unwrap();
        let _two = unlimited.admit(from("127.0.0.1")).unwrap();
        assert_eq!(
            unlimited.admit(from("127.0.0.1")).unwrap_err(),
            Refusal::Total
        );
        let limited = limits(2, 1, false);
        let _one = limited.admit(from("::1")).unwrap();
        assert_eq!(limited.admit(from("::1")).unwrap_err(), Refusal::Address);
    }

    #[test]
    fn the_table_is_empty_when_all_are_gone() {
        let limits = limits(10, 10, true);
        let all: Vec<_> = (1..5)
            .map(|n| limits.admit(from(&format!("192.0.2.{n}"))).unwrap())
            .collect();
        drop(all);
        assert!(limits.state.lock().per_address.is_empty());
        assert_eq!(limits.snapshot().open, 0);
    }
}
