//! Counting connections: in all and per address, those that are there and those that come.
//!
//! An [`Admission`] is a connection's place; it is given back when dropped, however the connection ends.  The table
//! has an entry for each network of an address that is connected now, and those of who came faster than they may ([`Kept`]): of
//! IPv6 a /56 and a /48 have theirs besides the /64, and may do four times and sixteen times as much ([`networks_around`]).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use newsreel_wire::networks_around;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::access::pace::Bucket;
use crate::config::ListenConfig;
use crate::kept::{Dues, Kept};

/// The counters and limits of one server, shared by its listeners.
#[derive(Debug)]
pub struct Limits {
    state: Mutex<State>,
    next_id: AtomicU64,
    admitted: AtomicU64,
    refused_total: AtomicU64,
    refused_address: AtomicU64,
    refused_rate: AtomicU64,
    accept_errors: AtomicU64,
}

#[derive(Debug)]
struct State {
    open: usize,
    networks: Kept<(IpAddr, u8), Comers>,
    total_max: usize,
    per_address_max: usize,
    per_s_per_address_max: u32,
    loopback_unlimited: bool,
}

/// As many as may come in so many seconds may come at once.
const SECONDS_AT_ONCE: u64 = 2;

/// Refusals in a second after which a network floods: who is refused so often does not mean to be let in.
pub const FLOOD_REFUSALS: u32 = 200;

/// ... and the second.
const COUNTED_FOR: Duration = Duration::from_secs(1);

/// How fast connections come from a network.
#[derive(Debug, Clone)]
struct Comers {
    pace: Bucket,
    /// So many were refused since then.
    refused: u32,
    since: Instant,
}

impl Dues for Comers {
    fn are_paid(&self, now: Instant) -> bool {
        self.pace.is_paid(now) && (self.refused == 0 || now - self.since >= COUNTED_FOR)
    }
}

impl Comers {
    const fn none_yet(now: Instant) -> Self {
        Self {
            pace: Bucket::new(0),
            refused: 0,
            since: now,
        }
    }

    /// One more; false: so many may not come.
    fn come(&mut self, per_s: u64, now: Instant) -> bool {
        self.pace.take(per_s, per_s * SECONDS_AT_ONCE, now)
    }

    /// Why one more that came is not let in: for this, or by now for more.
    fn refuse(&mut self, why: Refusal, weight: u32, now: Instant) -> Refusal {
        if now - self.since >= COUNTED_FOR {
            (self.since, self.refused) = (now, 0);
        }
        self.refused += 1;
        match self.refused >= FLOOD_REFUSALS.saturating_mul(weight) {
            true => Refusal::Flood,
            false => why,
        }
    }
}

/// Why a connection is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The server has as many as it may.
    Total,
    /// This address has as many as it may.
    Address,
    /// From this address too many come.
    Rate,
    /// From this address they do not cease to come.
    Flood,
}

impl Refusal {
    /// The same in words, with the key that says so.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::Total => "too many connections (listen.connections_max)",
            Self::Address => {
                "too many connections from its address (listen.connections_per_address_max)"
            }
            Self::Rate => {
                "too many new connections from its address (listen.connections_per_s_per_address_max)"
            }
            Self::Flood => {
                "a flood of new connections from its address, which is shut out for a while"
            }
        }
    }

    /// The line the peer gets.
    #[must_use]
    pub const fn reply(self) -> &'static str {
        match self {
            Self::Total => "400 Too many connections, try again later\r\n",
            Self::Address => "400 Too many connections from your address\r\n",
            Self::Rate | Self::Flood => {
                "400 Too many new connections from your address, try again later\r\n"
            }
        }
    }
}

/// A connection's place under the limits.
#[derive(Debug)]
pub struct Admission {
    limits: Arc<Limits>,
    /// Where those are counted.
    counted: Option<IpAddr>,
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
        if let Some(address) = self.counted {
            for (network, _) in networks_around(address) {
                state.networks.go(network);
            }
            state.networks.tidy(Instant::now());
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
    /// Connections refused because too many came from their address.
    pub refused_rate: u64,
    /// Errors of accept, among them "too many open files".
    pub accept_errors: u64,
}

impl State {
    /// Counts one more, of an address where those are counted.
    fn admit(&mut self, counted: Option<IpAddr>) -> Result<(), Refusal> {
        let is_full = self.open >= self.total_max;
        if let Some(address) = counted {
            let now = Instant::now();
            self.networks.tidy(now);
            self.refused(address, is_full, now)?;
            let per_s = u64::from(self.per_s_per_address_max);
            for (network, weight) in networks_around(address) {
                let comers = self.networks.come(network, || Comers::none_yet(now));
                comers.come(per_s * u64::from(weight), now);
            }
        } else if is_full {
            return Err(Refusal::Total);
        }
        self.open += 1;
        Ok(())
    }

    /// Why one more is not let in.  A wide network is asked before those in it: what it refuses fills the table with none of
    /// these, and what one of these is refused counts for itself alone.
    fn refused(&mut self, address: IpAddr, is_full: bool, now: Instant) -> Result<(), Refusal> {
        let per_s = u64::from(self.per_s_per_address_max);
        for (network, weight) in networks_around(address).rev() {
            let most = self.per_address_max.saturating_mul(weight as usize);
            let has_most = self.networks.connections(&network) as usize >= most;
            let comers = self.networks.note(network, || Comers::none_yet(now));
            let has_room = comers.clone().come(per_s * u64::from(weight), now);
            let why = match is_full {
                true => (weight == 1).then_some(Refusal::Total),
                false if has_most => Some(Refusal::Address),
                false => (!has_room).then_some(Refusal::Rate),
            };
            if let Some(why) = why {
                return Err(comers.refuse(why, weight, now));
            }
        }
        Ok(())
    }
}

impl Limits {
    /// Fresh counters under the configured limits.
    #[must_use]
    pub fn new(config: &ListenConfig) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                open: 0,
                networks: Kept::default(),
                total_max: config.connections_max,
                per_address_max: config.connections_per_address_max,
                per_s_per_address_max: config.connections_per_s_per_address_max,
                loopback_unlimited: config.loopback_unlimited,
            }),
            next_id: AtomicU64::new(1),
            admitted: AtomicU64::new(0),
            refused_total: AtomicU64::new(0),
            refused_address: AtomicU64::new(0),
            refused_rate: AtomicU64::new(0),
            accept_errors: AtomicU64::new(0),
        })
    }

    /// Takes new limits over; connections that are open stay.
    pub fn set(&self, config: &ListenConfig) {
        let mut state = self.state.lock();
        state.total_max = config.connections_max;
        state.per_address_max = config.connections_per_address_max;
        state.per_s_per_address_max = config.connections_per_s_per_address_max;
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
        let address = peer.ip().to_canonical();
        let mut state = self.state.lock();
        let counted = Some(address).filter(|it| !(state.loopback_unlimited && it.is_loopback()));
        if let Err(refusal) = state.admit(counted) {
            drop(state);
            let count = match refusal {
                Refusal::Total => &self.refused_total,
                Refusal::Address => &self.refused_address,
                Refusal::Rate | Refusal::Flood => &self.refused_rate,
            };
            count.fetch_add(1, Ordering::Relaxed);
            return Err(refusal);
        }
        drop(state);
        self.admitted.fetch_add(1, Ordering::Relaxed);
        let id = self.next_id();
        Ok(Admission {
            limits: Arc::clone(self),
            counted,
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
            refused_rate: self.refused_rate.load(Ordering::Relaxed),
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
            connections_per_s_per_address_max: 0,
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

    /// Who has a /48 has 65,536 networks, and each of them could have as many connections as one address.
    #[tokio::test(start_paused = true)]
    async fn who_has_a_wide_network_is_few() {
        let limits = limits(1000, 2, true);
        let connect = |text: String| limits.admit(from(&text));
        let of_56 = |n: u32| format!("2001:db8:7:{:x}::1", n & 0xff);
        let of_48 = |n: u32| format!("2001:db8:8:{:x}::1", n * 0x100);
        let mut all: Vec<Admission> = (0..8).map(|n| connect(of_56(n)).unwrap()).collect();
        assert_eq!(connect(of_56(8)).unwrap_err(), Refusal::Address);
        all.push(connect("2001:db8:7:100::1".to_owned()).unwrap());
        all.extend((0..32).map(|n| connect(of_48(n)).unwrap()));
        assert_eq!(connect(of_48(32)).unwrap_err(), Refusal::Address);
        all.push(connect("2001:db8:9::1".to_owned()).unwrap());
        // What is refused counts nowhere, and who goes gives its place back everywhere.
        all.swap_remove(0);
        all.push(connect(of_56(8)).unwrap());
        assert_eq!(connect(of_56(9)).unwrap_err(), Refusal::Address);
        drop(all);
        tokio::time::advance(COUNTED_FOR).await;
        limits.state.lock().networks.tidy(Instant::now());
        assert_eq!(limits.state.lock().networks.len(), (0, 0));
    }

    /// New connections from many networks of a /48 each came as from an address of its own, however fast; what one network of it is
    /// refused is none of the others' business.
    #[tokio::test(start_paused = true)]
    async fn a_flood_from_a_wide_network_is_refused() {
        let limits = Limits::new(&ListenConfig {
            connections_per_s_per_address_max: 1,
            ..ListenConfig::default()
        });
        let connect = |n: u32| limits.admit(from(&format!("2001:db8:8:{:x}::1", n * 0x100)));
        assert_eq!((0..1000).filter(|_| connect(0).is_ok()).count(), 2);
        assert_eq!((1..100).filter(|n| connect(*n).is_ok()).count(), 30);
        assert_eq!(connect(100).unwrap_err(), Refusal::Rate);
        // Nor does its table fill with those: the wide network alone has something to pay.
        let known = limits.state.lock().networks.len().0;
        (101..200).for_each(|n| drop(connect(n)));
        assert_eq!(limits.state.lock().networks.len().0, known);
        for n in 0..FLOOD_REFUSALS * 16 {
            drop(connect(n % 0x100));
        }
        assert_eq!(connect(0).unwrap_err(), Refusal::Flood);
        assert!(limits.admit(from("2001:db8:9::1")).is_ok());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((0..100).filter(|n| connect(*n).is_ok()).count(), 16);
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

    /// Those of two seconds come at once, then so many a second; other networks and what is open do not feel it.
    #[tokio::test(start_paused = true)]
    async fn a_flood_of_connections_is_refused() {
        let limits = Limits::new(&ListenConfig {
            connections_per_address_max: 30,
            connections_per_s_per_address_max: 10,
            ..ListenConfig::default()
        });
        let come = |address: &str, count: usize| {
            let let_in = |_: &usize| limits.admit(from(address)).is_ok();
            (0..count).filter(let_in).count()
        };
        let why = |address: &str| limits.admit(from(address)).unwrap_err();
        assert_eq!(come("192.0.2.1", 100), 20);
        assert_eq!(why("192.0.2.1"), Refusal::Rate);
        // Who does not cease floods; in another second it is seen anew.
        assert_eq!(come("192.0.2.1", 118), 0);
        assert_eq!(why("192.0.2.1"), Refusal::Flood);
        assert_eq!(come("192.0.2.2", 100), 20);
        assert_eq!(come("127.0.0.1", 100), 100);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(come("192.0.2.1", 11), 10);
        assert_eq!(why("192.0.2.1"), Refusal::Rate);
        assert_eq!(limits.snapshot().refused_rate, 80 + 120 + 80 + 2);
        tokio::time::advance(Duration::from_secs(2)).await;
        limits.state.lock().networks.tidy(Instant::now());
        assert_eq!(limits.state.lock().networks.len(), (0, 0));
    }

    /// Who does not cease to come floods, whatever it is refused for: as many as there may be of it, or of all.
    #[tokio::test(start_paused = true)]
    async fn who_is_refused_and_goes_on_floods() {
        for (total, who, refusal) in [
            (1000, "192.0.2.1", Refusal::Address),
            (2, "192.0.2.1", Refusal::Total),
            (2, "192.0.2.2", Refusal::Total),
        ] {
            let limits = limits(total, 2, true);
            let there = [(); 2].map(|()| limits.admit(from("192.0.2.1")).unwrap());
            let why = || limits.admit(from(who)).unwrap_err();
            for _ in 1..FLOOD_REFUSALS {
                assert_eq!(why(), refusal);
            }
            assert_eq!(why(), Refusal::Flood);
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(why(), refusal);
            drop(there);
            tokio::time::advance(Duration::from_secs(1)).await;
            limits.state.lock().networks.tidy(Instant::now());
            assert_eq!(limits.state.lock().networks.len(), (0, 0));
        }
    }

    #[test]
    fn the_table_is_empty_when_all_are_gone() {
        let limits = limits(10, 10, true);
        let all: Vec<_> = (1..5)
            .map(|n| limits.admit(from(&format!("192.0.2.{n}"))).unwrap())
            .collect();
        drop(all);
        assert_eq!(limits.state.lock().networks.len(), (0, 0));
        assert_eq!(limits.snapshot().open, 0);
    }
}
