//! Whose turn it is to have a login judged: of one network a few at a time, of one that has failed one alone.  Where nobody is banned that
//! is so of each name in a network.
//!
//! A turn lasts until the answer may be said, so the pause behind a failed login holds up every other login of its network:
//! guesses on many connections come no faster than on one.  A network is in the table while somebody of it waits or is judged, so
//! the table is bounded by the connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use newsreel_wire::network_of;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The shares that one network's logins have together.
pub(super) const SHARES: u32 = 4;

/// Nobody waits longer for their login to be judged: neither for others of their network, nor for those of all.
pub const TURN_WAIT_MAX: Duration = Duration::from_secs(32);

/// Whose line it is: a network's, or of one name there.
type Of = (IpAddr, Option<Box<str>>);

/// Who waits or is judged.
#[derive(Debug, Default, Clone)]
pub(super) struct Turns(Arc<Mutex<HashMap<Of, Line>>>);

#[derive(Debug)]
struct Line {
    shares: Arc<Semaphore>,
    /// Those who stand in it.
    standing: usize,
}

/// Somebody's place in the line, and from `take` on their turn.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Turns,
    of: Of,
    shares: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

impl Turns {
    /// Stands in line, behind those of this name alone if there is one.
    pub(super) fn stand(&self, address: IpAddr, name: Option<&str>) -> Turn {
        let of = (network_of(address), name.map(Box::from));
        let mut table = self.0.lock();
        let line = table.entry(of.clone()).or_insert_with(|| Line {
            shares: Arc::new(Semaphore::new(SHARES as usize)),
            standing: 0,
        });
        line.standing += 1;
        Turn {
            turns: self.clone(),
            of,
            shares: Arc::clone(&line.shares),
            held: None,
        }
    }
}

impl Turn {
    /// Waits for so many shares, in the order of asking; those that were held are given back first.
    pub(super) async fn take(&mut self, shares: u32) {
        self.held = None;
        let asked = Arc::clone(&self.shares).acquire_many_owned(shares.min(SHARES));
        self.held = asked.await.ok();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut table = self.turns.0.lock();
        if let Some(line) = table.get_mut(&self.of) {
            line.standing -= 1;
            if line.standing == 0 {
                table.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn may_go(turn: &mut Turn, shares: u32) -> bool {
        let soon = tokio::time::timeout(Duration::from_secs(1), turn.take(shares));
        soon.await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn few_go_at_once_or_one_alone() {
        let turns = Turns::default();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut few: Vec<Turn> = (0..=SHARES)
            .map(|_| turns.stand(address("2001:db8::1"), None))
            .collect();
        let mut went = Vec::new();
        for turn in &mut few {
            went.push(may_go(turn, 1).await);
        }
        assert_eq!(went, [true, true, true, true, false]);
        let mut alone = turns.stand(address("2001:db8::2"), None);
        assert!(!may_go(&mut alone, SHARES).await, "its network has turns");
        assert!(may_go(&mut turns.stand(address("2001:db8:0:1::1"), None), SHARES).await);
        drop(few);
        assert!(may_go(&mut alone, SHARES).await);
        assert!(!may_go(&mut turns.stand(address("2001:db8::1"), None), 1).await);
        assert_eq!(turns.0.lock().len(), 1);
        drop(alone);
        assert!(turns.0.lock().is_empty());
    }
}
