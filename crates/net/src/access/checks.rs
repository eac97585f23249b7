//! Whose login is judged next, where more wait than can be judged at once.
//!
//! Who has a lower rank goes first (`failures`, `known`).  Among equals it is drawn: every other time by network, first which of the wide
//! networks that wait (IPv4: /16, IPv6: /32), then which narrower one in it, and every other time by the name that is said.  So whoever holds
//! a wide network has no more draws than one who is alone in theirs, guesses at one name hold up no other name, and no order
//! can be relied on to keep somebody waiting.  Whether there is somebody of a name plays no part.  A rank is looked at again when its turn
//! would come: of a crowd that guesses each network costs others one check, not all that it sent at once.  Who waits is in the table, and some
//! who have given up, never more than there are of the others or a few.

use std::fmt::{self, Debug};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;

use newsreel_wire::network_of;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Programs that are asked at the same time: they wait for others more than they take.
pub const PROGRAMS_AT_ONCE: usize = 8;

/// Of these, so many are for who has logged in before alone: the others may all be held by guesses.
pub(super) const PROGRAMS_KEPT: usize = 2;

/// Names that are looked up at the same time, where nothing is compared: one does while another waits for the disk.
pub(super) const LOOKUPS_AT_ONCE: usize = 2;

/// From so many on it is looked who of them has given up.
const TIDIED_FROM: usize = 64;

/// The networks by which it is drawn, from the widest on: so many leading bits of an IPv4 address and of an IPv6 address.  The last is what
/// is counted as one network elsewhere.
const DRAWN_BY: [(u8, u8); 3] = [(16, 32), (24, 48), (32, 64)];

/// Passwords held against their hashes at the same time: each takes a core and some 20 MiB for a moment, and one core is for what
/// else there is to do.
#[must_use]
pub(super) fn checks_at_once() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores - 1).max(1)
}

/// By what somebody waits: the less, the sooner; asked anew.
type Rank = Box<dyn Fn() -> u32 + Send>;

struct Waiting {
    rank: Rank,
    /// What it was when it was asked last.
    ranked: u32,
    networks: [u64; DRAWN_BY.len()],
    name: u64,
    go: oneshot::Sender<Check>,
}

struct Queue {
    free: usize,
    /// Of those that are free, so many are for the lowest rank alone.
    kept: usize,
    waiting: Vec<Waiting>,
    tidied_from: usize,
    drawn: u64,
    /// Nobody outside can tell who will be drawn.
    secret: RandomState,
}

/// Those that are judged and those that wait for it.
#[derive(Clone)]
pub(super) struct Checks(Arc<Mutex<Queue>>);

/// One that is judged; given back when dropped.
pub(super) struct Check(Option<Checks>);

impl Checks {
    pub(super) fn new(at_once: usize) -> Self {
        Self::keeping(at_once, 0)
    }

    /// With places that are for those of rank 0 alone.
    pub(super) fn keeping(at_once: usize, kept: usize) -> Self {
        Self(Arc::new(Mutex::new(Queue {
            free: at_once,
            kept,
            waiting: Vec::new(),
            tidied_from: TIDIED_FROM,
            drawn: 0,
            secret: RandomState::new(),
        })))
    }

    /// Waits until a login of this name, from there, may be judged; none: never.
    pub(super) async fn take(
        &self,
        address: IpAddr,
        name: &str,
        rank: impl Fn() -> u32 + Send + 'static,
    ) -> Option<Check> {
        let coming = {
            let mut queue = self.0.lock();
            if queue.free > queue.kept || queue.free > 0 && rank() == 0 {
                queue.free -= 1;
                return Some(Check(Some(self.clone())));
            }
            queue.stand(address, name, Box::new(rank))
        };
        coming.await.ok()
    }
}

/// The same for the same two numbers, and otherwise anything.
const fn mixed(salt: u64, of: u64) -> u64 {
    let mut mixed = salt ^ of;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Waiting {
    /// The least of these is drawn: each group as likely as another, and within it each smaller group.
    fn lot(&self, at: usize, salt: u64, is_by_name: bool) -> [u64; 5] {
        let [wide, narrow, own] = self.networks.map(|network| mixed(salt, network));
        let name = mixed(salt, self.name);
        let itself = mixed(salt, at as u64);
        match is_by_name {
            true => [name, wide, narrow, own, itself],
            false => [wide, narrow, own, name, itself],
        }
    }
}

impl Queue {
    fn stand(&mut self, address: IpAddr, name: &str, rank: Rank) -> oneshot::Receiver<Check> {
        let (go, coming) = oneshot::channel();
        if self.waiting.len() >= self.tidied_from {
            self.tidy();
            self.tidied_from = TIDIED_FROM.max(self.waiting.len() * 2);
        }
        let network = |(of_v4, of_v6): (u8, u8)| match network_of(address) {
            IpAddr::V4(v4) => (4, u128::from(v4.to_bits() >> (32 - of_v4))),
            IpAddr::V6(v6) => (6, v6.to_bits() >> (128 - of_v6)),
        };
        self.waiting.push(Waiting {
            ranked: rank(),
            rank,
            networks: DRAWN_BY.map(|by| self.secret.hash_one((by, network(by)))),
            name: self.secret.hash_one(name),
            go,
        });
        coming
    }

    fn tidy(&mut self) {
        self.waiting.retain(|waiting| !waiting.go.is_closed());
    }

    /// One of those of the lowest rank.
    fn draw(&mut self) -> Option<usize> {
        let least = self.waiting.iter().map(|waiting| waiting.ranked).min()?;
        self.drawn += 1;
        let (salt, is_by_name) = (
            self.secret.hash_one(self.drawn),
            self.drawn.is_multiple_of(2),
        );
        let first = self.waiting.iter().enumerate();
        let first = first.filter(|(_, waiting)| waiting.ranked == least);
        let drawn = first.min_by_key(|(at, waiting)| waiting.lot(*at, salt, is_by_name));
        drawn.map(|(at, _)| at)
    }

    /// Who is next; none: nobody waits for whom it is, and one more is free.
    fn next(&mut self) -> Option<oneshot::Sender<Check>> {
        self.tidy();
        let mut drawn = self.draw();
        let has_risen = |waiting: &Waiting| (waiting.rank)() > waiting.ranked;
        if drawn.is_some_and(|at| self.waiting.get(at).is_some_and(has_risen)) {
            // Of its network others have failed meanwhile, and so perhaps of those of many.
            for waiting in &mut self.waiting {
                waiting.ranked = (waiting.rank)();
            }
            drawn = self.draw();
        }
        let may_go = |at: &usize| {
            let waiting = self.waiting.get(*at);
            self.free >= self.kept || waiting.is_some_and(|waiting| waiting.ranked == 0)
        };
        match drawn.filter(may_go) {
            Some(at) => Some(self.waiting.swap_remove(at).go),
            None => {
                self.free += 1;
                None
            }
        }
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        let Some(checks) = self.0.take() else {
            return;
        };
        loop {
            let Some(go) = checks.0.lock().next() else {
                return;
            };
            match go.send(Self(Some(checks.clone()))) {
                Ok(()) => return,
                // It has given up meanwhile.
                Err(mut back) => back.0 = None,
            }
        }
    }
}

impl Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.0.lock();
        let mut shown = f.debug_struct("Checks");
        shown.field("free", &queue.free);
        shown.field("waiting", &queue.waiting.len());
        shown.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Waker};

    use tokio::task::coop::unconstrained;

    use super::*;

    type Taking = std::pin::Pin<Box<dyn Future<Output = Option<Check>> + Send>>;

    /// Stands in line by this rank.
    fn stand(checks: &Checks, address: &str, name: &str, rank: &Arc<AtomicU32>) -> Taking {
        let (checks, rank) = (checks.clone(), Arc::clone(rank));
        let (address, name) = (address.parse().unwrap(), name.to_owned());
        // Many are polled at once here.
        let mut taking: Taking = Box::pin(unconstrained(async move {
            let rank = move || rank.load(Ordering::Relaxed);
            checks.take(address, &name, rank).await
        }));
        assert!(went(&mut taking).is_none());
        taking
    }

    fn went(taking: &mut Taking) -> Option<Check> {
        let mut cx = Context::from_waker(Waker::noop());
        match taking.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(check) => {
                // One that has gone is not asked again.
                *taking = Box::pin(std::future::pending());
                check
            }
            std::task::Poll::Pending => None,
        }
    }

    /// The place of who goes when one is given back, and what they hold then.
    fn after(check: Check, all: &mut [Taking]) -> Option<(usize, Check)> {
        drop(check);
        let mut all = all.iter_mut().enumerate();
        all.find_map(|(at, taking)| Some((at, went(taking)?)))
    }

    fn rank(rank: u32) -> Arc<AtomicU32> {
        Arc::new(AtomicU32::new(rank))
    }

    /// The draws until the first of these goes, while one after the other is judged; 200 times.
    async fn draws_until_the_first(these: &[(&str, &str)]) -> u32 {
        let (mut draws, same) = (0, rank(1));
        for _ in 0..200 {
            let checks = Checks::new(1);
            let held = checks.take([192, 0, 2, 1].into(), "x", || 9).await;
            let stand = |(address, name): &(&str, &str)| stand(&checks, address, name, &same);
            let mut all: Vec<Taking> = these.iter().map(stand).collect();
            let mut check = held.unwrap();
            loop {
                draws += 1;
                let (at, next) = after(check, &mut all).unwrap();
                check = next;
                if at == 0 {
                    break;
                }
            }
        }
        draws
    }

    /// Whoever guessed from many networks kept everybody's logins waiting.
    #[tokio::test]
    async fn who_has_failed_is_behind_who_has_not() {
        let checks = Checks::new(1);
        let mut check = checks.take([192, 0, 2, 1].into(), "x", || 9).await.unwrap();
        let turns_bad = rank(1);
        let (last, once, good) = (rank(5), rank(1), rank(0));
        let mut ranks = [&turns_bad; 11];
        (ranks[0], ranks[9], ranks[10]) = (&last, &once, &good);
        let mut all = ranks.map(|rank| stand(&checks, "192.0.2.1", "ada", rank));
        turns_bad.store(2, Ordering::Relaxed);
        let mut order = Vec::new();
        while let Some((at, next)) = after(check, &mut all) {
            order.push(at);
            check = next;
            if order.len() == all.len() {
                drop(check);
                break;
            }
        }
        order[2..10].sort_unstable();
        assert_eq!(order, [10, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
        assert_eq!(checks.0.lock().free, 1);
    }

    /// Of the logins that waited the newest went first, so that guesses from ever new networks kept who had come before
    /// them waiting for certain.
    #[tokio::test]
    async fn who_holds_a_wide_network_has_half_the_draws() {
        for (one, many) in [
            ("203.0.113.1", ["198.51.0.1", "198.51.7.1", "198.51.255.9"]),
            (
                "2001:db8::1",
                ["2001:db9:1::1", "2001:db9:7:7::1", "2001:db9:ffff::1"],
            ),
        ] {
            let crowd = many.iter().cycle().take(120);
            let crowd = crowd.map(|address| (*address, "ada"));
            let these: Vec<(&str, &str)> = [(one, "ada")].into_iter().chain(crowd).collect();
            let draws = draws_until_the_first(&these).await;
            // Two draws on average; 60 if nobody looked at networks.
            assert!((300..600).contains(&draws), "{one}: {draws}");
        }
    }

    /// Guesses at one user's name, from wherever, held up everybody's logins.
    #[tokio::test]
    async fn guesses_at_a_name_do_not_hold_up_another() {
        let addresses: Vec<String> = (0..120).map(|n| format!("{}.7.0.1", 11 + n)).collect();
        let crowd = addresses.iter().map(|address| (address.as_str(), "root"));
        let one = [("203.0.113.1", "ada")];
        let these: Vec<(&str, &str)> = one.into_iter().chain(crowd).collect();
        let draws = draws_until_the_first(&these).await;
        // Every other draw is by name: four on average; 60 if nobody looked at names.
        assert!((600..1200).contains(&draws), "{draws}");
    }

    /// Guesses held all programs for as long as failed logins wait, and users who are known waited behind them.
    #[tokio::test]
    async fn some_places_are_for_who_is_known() {
        let checks = Checks::keeping(3, 2);
        let known = || {
            let of = checks.clone();
            let taking = async move { of.take([192, 0, 2, 2].into(), "ada", || 0).await };
            went(&mut (Box::pin(unconstrained(taking)) as Taking))
        };
        let first = checks.take([192, 0, 2, 1].into(), "x", || 1).await.unwrap();
        let mut waits = stand(&checks, "192.0.2.1", "ada", &rank(1));
        let mut held = [known(), known()];
        assert!(held.iter().all(Option::is_some) && known().is_none());
        held[0] = None;
        assert!(went(&mut waits).is_none());
        held[1] = None;
        assert!(went(&mut waits).is_none());
        drop(first);
        let stranger = went(&mut waits);
        assert!(stranger.is_some());
        drop((held, stranger));
        assert_eq!(checks.0.lock().free, 3);
    }

    #[tokio::test]
    async fn who_gives_up_takes_no_room_and_no_turn() {
        let checks = Checks::new(1);
        let check = checks.take([192, 0, 2, 1].into(), "x", || 1).await.unwrap();
        let mut stays = stand(&checks, "192.0.2.1", "ada", &rank(1));
        for _ in 0..10 * TIDIED_FROM {
            drop(stand(&checks, "192.0.2.1", "ada", &rank(1)));
        }
        assert!(checks.0.lock().waiting.len() <= TIDIED_FROM + 1);
        drop(check);
        let check = went(&mut stays).unwrap();
        // It was sent to who gives up before it has it.
        let given_up = stand(&checks, "192.0.2.1", "ada", &rank(1));
        drop(check);
        assert_eq!(checks.0.lock().free, 0);
        drop(given_up);
        assert_eq!(checks.0.lock().free, 1);
    }

    #[test]
    fn a_core_is_left() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        assert!(checks_at_once() >= 1 && (cores == 1 || checks_at_once() < cores));
    }
}
