//! What is being fetched: who asks for it meanwhile waits for that, and it is fetched once.
//!
//! A flight is there until what it brought is kept, so nobody asks in between.  It ends whatever becomes of who began it.

use std::collections::HashMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_service::ServiceError;
use newsreel_wire::{ArticleNumber, GroupId, IdHash};
use parking_lot::Mutex;
use tokio::sync::{Notify, SetOnce};

use super::arrivals::Coming;
use crate::keep::Fetched;

/// What is fetched: an article whose message-id is known, or not yet (which one that is differs between generations of the group); the
/// overview lines of a window of a group; the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Wanted {
    Id(IdHash),
    Number(GroupId, u64, ArticleNumber),
    Lines(GroupId, u64),
    List,
}

/// What came of it.
#[derive(Debug, Clone)]
pub(super) enum Landed {
    Found(Fetched),
    /// It is there, and some of it is still to come.
    Coming(Arc<Coming>),
    /// What the server said of it is kept.
    Told,
    /// The server does not have it.
    Missing,
    Failed(ServiceError),
    /// Given up, for no reason of its own: whoever still wants it asks again.
    Lost,
}

pub(super) type Landing = Arc<SetOnce<Landed>>;

/// All flights.
#[derive(Default)]
pub(super) struct Flights {
    under_way: Mutex<HashMap<Wanted, UnderWay>>,
    /// One of them is over.
    over: Notify,
}

impl fmt::Debug for Flights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Flights")
            .field(&self.under_way.lock().len())
            .finish()
    }
}

/// Whether what a flight brings goes to who waits for it, and is not kept.
#[derive(Debug, Clone, Default)]
pub(super) struct LetGo(Arc<AtomicBool>);

impl LetGo {
    /// Whether that is so by now; once it is it stays so.
    pub(super) fn is_so(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A flight as others see it.
struct UnderWay {
    landing: Landing,
    let_go: LetGo,
}

/// A flight as who fetches holds it; dropped, it is over.
#[derive(Debug)]
pub(super) struct Flight {
    flights: Arc<Flights>,
    wanted: Wanted,
    landing: Landing,
    let_go: LetGo,
}

impl Flight {
    /// Says what came; only the first time.
    pub(super) fn land(&self, landed: Landed) {
        let _ = self.landing.set(landed);
    }

    /// Whoever wants it from now on begins another: what becomes of this one is told, or is not worth waiting for.
    pub(super) fn leave(&self) {
        let mut under_way = self.flights.under_way.lock();
        if is_at(&under_way, &self.wanted, &self.landing) {
            under_way.remove(&self.wanted);
            drop(under_way);
            self.flights.over.notify_waiters();
        }
    }

    /// Whether what it brings is not kept, for as long as that is not done.
    pub(super) fn let_go(&self) -> LetGo {
        self.let_go.clone()
    }

    /// What it ends with, for who began it.
    pub(super) fn landing(&self) -> Landing {
        Arc::clone(&self.landing)
    }
}

/// Whether this is what ends with a thing, and no later flight is.
fn is_at(under_way: &HashMap<Wanted, UnderWay>, wanted: &Wanted, landing: &Landing) -> bool {
    let there = under_way.get(wanted);
    there.is_some_and(|there| Arc::ptr_eq(&there.landing, landing))
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.leave();
        self.land(Landed::Lost);
    }
}

impl Flights {
    /// What ends with the thing that is wanted: of a flight under way, or of one that is begun so.
    pub(super) fn landing(self: &Arc<Self>, wanted: Wanted, begin: impl FnOnce(Flight)) -> Landing {
        self.begin(wanted).map_or_else(
            |landing| landing,
            |flight| {
                let landing = flight.landing();
                begin(flight);
                landing
            },
        )
    }

    /// Begins a flight; where there is one already, what that ends with.
    pub(super) fn begin(self: &Arc<Self>, wanted: Wanted) -> Result<Flight, Landing> {
        let mut under_way = self.under_way.lock();
        if let Some(there) = under_way.get(&wanted) {
            return Err(Arc::clone(&there.landing));
        }
        let (landing, let_go) = (Landing::default(), LetGo::default());
        let there = UnderWay {
            landing: Arc::clone(&landing),
            let_go: let_go.clone(),
        };
        under_way.insert(wanted, there);
        Ok(Flight {
            flights: Arc::clone(self),
            wanted,
            landing,
            let_go,
        })
    }

    /// Keeps nothing of what has landed by now and is not kept yet, as far as it is wanted.
    pub(super) fn let_go(&self, is_wanted: impl Fn(&Landed) -> bool) {
        for there in self.under_way.lock().values() {
            if there.landing.get().is_some_and(&is_wanted) {
                there.let_go.0.store(true, Ordering::Release);
            }
        }
    }

    /// Waits until what has landed by now is kept, as far as it is wanted.
    pub(super) async fn kept(&self, is_wanted: impl Fn(&Landed) -> bool) {
        let has_landed = |there: &UnderWay| there.landing.get().is_some_and(&is_wanted);
        let waited: Vec<(Wanted, Landing)> = {
            let under_way = self.under_way.lock();
            let landed = under_way.iter().filter(|(_, there)| has_landed(there));
            landed
                .map(|(wanted, it)| (*wanted, Arc::clone(&it.landing)))
                .collect()
        };
        for (wanted, landing) in &waited {
            loop {
                let mut over = pin!(self.over.notified());
                over.as_mut().enable();
                if !is_at(&self.under_way.lock(), wanted, landing) {
                    break;
                }
                over.await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_fetches_and_others_wait_and_an_end_is_told_whatever_happens() {
        let flights = Arc::new(Flights::default());
        let wanted = Wanted::Number(GroupId(1), 1, ArticleNumber(7));
        let flight = flights.begin(wanted).unwrap();
        let waiting = flights.begin(wanted).unwrap_err();
        flight.land(Landed::Missing);
        flight.land(Landed::Lost);
        assert!(matches!(waiting.wait().await, Landed::Missing));
        assert!(flights.begin(wanted).is_err(), "it is not kept yet");
        drop(flight);
        let flight = flights.begin(wanted).unwrap();
        let waiting = flight.landing();
        drop(flight);
        assert!(matches!(waiting.wait().await, Landed::Lost));
        // One that is left makes room for another, which its end does not end.
        let left = flights.begin(wanted).unwrap();
        left.leave();
        let flight = flights.begin(wanted).unwrap();
        drop(left);
        assert!(flights.begin(wanted).is_err());
        drop(flight);
        assert_eq!(format!("{flights:?}"), "Flights(0)");
    }
}
