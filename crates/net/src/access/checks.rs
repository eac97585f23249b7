//! Whose login is judged next, where more wait than can be judged at once: who has logged in from there before, then who has not, and
//! behind them those whose networks have failed lately, the fewer failures the sooner.
//!
//! Among equals the newest goes first, so that a crowd does not keep who comes behind it waiting.  Whether a network has failed is looked at
//! again when its turn would come: of a crowd that guesses each network costs others one check, not all that it sent at once.  Who waits is in
//! the table, and some who have given up, never more than there are of the others or a few.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Programs that are asked at the same time: they wait for others more than they take.
pub const PROGRAMS_AT_ONCE: usize = 4;

/// From so many on it is looked who of them has given up.
const TIDIED_FROM: usize = 64;

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
    go: oneshot::Sender<Check>,
}

struct Queue {
    free: usize,
    waiting: BTreeMap<(u32, Reverse<u64>), Waiting>,
    came: u64,
    tidied_from: usize,
}

/// Those that are judged and those that wait for it.
#[derive(Clone)]
pub(super) struct Checks(Arc<Mutex<Queue>>);

/// One that is judged; given back when dropped.
pub(super) struct Check(Option<Checks>);

impl Checks {
    pub(super) fn new(at_once: usize) -> Self {
        Self(Arc::new(Mutex::new(Queue {
            free: at_once,
            waiting: BTreeMap::new(),
            came: 0,
            tidied_from: TIDIED_FROM,
        })))
    }

    /// Waits until it may be judged; none: never.
    pub(super) async fn take(&self, rank: impl Fn() -> u32 + Send + 'static) -> Option<Check> {
        let coming = {
            let mut queue = self.0.lock();
            if queue.free > 0 {
                queue.free -= 1;
                return Some(Check(Some(self.clone())));
            }
            queue.stand(Box::new(rank))
        };
        coming.await.ok()
    }
}

impl Queue {
    fn stand(&mut self, rank: Rank) -> oneshot::Receiver<Check> {
        let (go, coming) = oneshot::channel();
        if self.waiting.len() >= self.tidied_from {
            self.waiting.retain(|_, waiting| !waiting.go.is_closed());
            self.tidied_from = TIDIED_FROM.max(self.waiting.len() * 2);
        }
        self.came += 1;
        let key = (rank(), Reverse(self.came));
        self.waiting.insert(key, Waiting { rank, go });
        coming
    }

    /// Who is next; none: nobody waits, and one more is free.
    fn next(&mut self) -> Option<oneshot::Sender<Check>> {
        while let Some(((rank, came), waiting)) = self.waiting.pop_first() {
            if waiting.go.is_closed() {
                continue;
            }
            // Of its network others have failed meanwhile.
            let now = (waiting.rank)();
            if now > rank {
                self.waiting.insert((now, came), waiting);
                continue;
            }
            return Some(waiting.go);
        }
        self.free += 1;
        None
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

    use super::*;

    type Taking = std::pin::Pin<Box<dyn Future<Output = Option<Check>> + Send>>;

    /// Stands in line by this rank.
    fn stand(checks: &Checks, rank: &Arc<AtomicU32>) -> Taking {
        let (checks, rank) = (checks.clone(), Arc::clone(rank));
        let mut taking: Taking = Box::pin(async move {
            let rank = move || rank.load(Ordering::Relaxed);
            checks.take(rank).await
        });
        assert!(went(&mut taking).is_none());
        taking
    }

    fn went(taking: &mut Taking) -> Option<Check> {
        let mut cx = Context::from_waker(Waker::noop());
        match taking.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(check) => check,
            std::task::Poll::Pending => None,
        }
    }

    /// Whoever guessed from many networks kept everybody's logins waiting.
    #[tokio::test]
    async fn who_has_failed_is_behind_who_has_not() {
        let checks = Checks::new(1);
        let rank = |rank| Arc::new(AtomicU32::new(rank));
        let mut check = checks.take(|| 9).await.unwrap();
        let (turns_bad, good) = (rank(1), rank(0));
        let mut all = [
            stand(&checks, &rank(5)),
            stand(&checks, &turns_bad),
            stand(&checks, &turns_bad),
            stand(&checks, &rank(1)),
            stand(&checks, &rank(1)),
            stand(&checks, &good),
        ];
        turns_bad.store(2, Ordering::Relaxed);
        let mut order = Vec::new();
        for _ in 0..all.len() {
            drop(check);
            let now: Vec<_> = all.iter_mut().map(went_once).collect();
            let (at, next) = now
                .into_iter()
                .enumerate()
                .find_map(|(at, check)| Some((at, check?)))
                .unwrap();
            order.push(at);
            check = next;
        }
        assert_eq!(order, [5, 4, 3, 2, 1, 0]);
        drop(check);
        assert_eq!(checks.0.lock().free, 1);
    }

    /// One that has gone already is not asked again.
    fn went_once(taking: &mut Taking) -> Option<Check> {
        let check = went(taking)?;
        *taking = Box::pin(std::future::pending());
        Some(check)
    }

    #[tokio::test]
    async fn who_gives_up_takes_no_room_and_no_turn() {
        let checks = Checks::new(1);
        let rank = Arc::new(AtomicU32::new(1));
        let check = checks.take(|| 1).await.unwrap();
        let mut stays = stand(&checks, &rank);
        for _ in 0..10 * TIDIED_FROM {
            drop(stand(&checks, &rank));
        }
        assert!(checks.0.lock().waiting.len() <= TIDIED_FROM + 1);
        drop(check);
        let check = went(&mut stays).unwrap();
        // It was sent to who gives up before it has it.
        let given_up = stand(&checks, &rank);
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
