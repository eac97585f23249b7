//! Whose turn it is to have a login judged: of one network a few at a time, of one that has failed one alone; of the wider networks
//! around it, which are refused after more failures, as many times more.  Where nobody is banned that is so of each name in a network.
//!
//! A turn lasts until the answer may be said, so the pause behind a failed login holds up every other login of its network:
//! guesses on many connections come no faster than on one.  A network is in the table while somebody of it waits or is judged, so
//! the table is bounded by the connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failures::around;

/// The shares that one network's logins have together; a wider one has as many times more as it may fail more often.
pub(super) const SHARES: u32 = 4;

/// Nobody waits longer for their login to be judged: neither for others of their network, nor for those of all.
pub const TURN_WAIT_MAX: Duration = Duration::from_secs(32);

/// Whose line it is: a network's, or of one name there.
type Of = (IpNet, Option<Box<str>>);

/// Who waits or is judged.
#[derive(Debug, Default, Clone)]
pub(super) struct Turns(Arc<Mutex<HashMap<Of, Line>>>);

#[derive(Debug)]
struct Line {
    shares: Arc<Semaphore>,
    /// Those who stand in it.
    standing: usize,
}

/// Somebody's place in the lines of their networks, and from `take` on their turn.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Turns,
    /// From the narrowest on: who has shares of one waits for the next one, so nobody waits in a circle.
    lines: Vec<(Of, Arc<Semaphore>)>,
    held: Vec<OwnedSemaphorePermit>,
}

impl Turns {
    /// Stands in line, behind those of this name alone if there is one.
    pub(super) fn stand(&self, address: IpAddr, name: Option<&str>) -> Turn {
        let mut table = self.0.lock();
        let networks = around(address).take(match name {
            Some(_) => 1,
            None => usize::MAX,
        });
        let mut stand = |(network, weight): (IpNet, u32)| {
            let of = (network, name.map(Box::from));
            let line = table.entry(of.clone()).or_insert_with(|| Line {
                shares: Arc::new(Semaphore::new((SHARES * weight) as usize)),
                standing: 0,
            });
            line.standing += 1;
            (of, Arc::clone(&line.shares))
        };
        Turn {
            turns: self.clone(),
            lines: networks.map(&mut stand).collect(),
            held: Vec::new(),
        }
    }
}

impl Turn {
    /// Waits for so many shares, in the order of asking; those that were held are given back first.
    pub(super) async fn take(&mut self, shares: u32) {
        self.held.clear();
        for (_, line) in &self.lines {
            let asked = Arc::clone(line).acquire_many_owned(shares.min(SHARES));
            self.held.extend(asked.await);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut table = self.turns.0.lock();
        for (of, _) in &self.lines {
            if let Some(line) = table.get_mut(of) {
                line.standing -= 1;
                if line.standing == 0 {
                    table.remove(of);
                }
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
        assert_eq!(turns.0.lock().len(), 3);
        drop(alone);
        assert!(turns.0.lock().is_empty());
    }

    /// Whoever had a /48 guessed from each of its 65,536 networks at the same time.
    #[tokio::test(start_paused = true)]
    async fn of_a_wide_network_few_go_at_once() {
        let turns = Turns::default();
        for (networks, at_once) in [(0..=255, 4), (0x100..=0xffff, 16)] {
            let (mut went, mut held) = (0, Vec::new());
            for n in networks
                .step_by(if at_once == 4 { 1 } else { 0x100 })
                .take(40)
            {
                let address = format!("2001:db8:7:{n:x}::1").parse().unwrap();
                let mut turn = turns.stand(address, None);
                went += u32::from(may_go(&mut turn, SHARES).await);
                held.push(turn);
            }
            assert_eq!(went, at_once);
        }
        assert!(turns.0.lock().is_empty());
        // Where nobody is banned each name is by itself, and so are networks of IPv4.
        let mut turn = turns.stand("2001:db8:7::1".parse().unwrap(), Some("ada"));
        assert!(may_go(&mut turn, SHARES).await);
        turn = turns.stand("192.0.2.1".parse().unwrap(), None);
        assert_eq!((turn.lines.len(), turns.0.lock().len()), (1, 1));
    }
}
