//! Turns: of those who would ask the server the same, one asks, and the others look again when that is done.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Mutex as TurnMutex, OwnedMutexGuard};

/// What there can be turns for, by group.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<Arc<str>, Arc<TurnMutex<()>>>>);

/// A turn; dropped, the next one's comes.
#[derive(Debug)]
pub(super) struct Turn<'t> {
    turns: &'t Turns,
    name: Arc<str>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Waits for a turn.
    pub(super) async fn wait(&self, name: &Arc<str>) -> Turn<'_> {
        let turn = self.0.lock().entry(Arc::clone(name)).or_default().clone();
        let mut waiting = Turn {
            turns: self,
            name: Arc::clone(name),
            guard: None,
        };
        waiting.guard = Some(turn.lock_owned().await);
        waiting
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut turns = self.turns.0.lock();
        self.guard = None;
        // Nobody holds it or waits for it: only the table has it.
        if turns
            .get(&self.name)
            .is_some_and(|turn| Arc::strong_count(turn) == 1)
        {
            turns.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_after_the_other_and_nothing_stays() {
        let turns = Turns::default();
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        let first = turns.wait(&one).await;
        let _other = turns.wait(&two).await;
        let mut second = Box::pin(turns.wait(&one));
        let now = std::time::Duration::ZERO;
        assert!(tokio::time::timeout(now, &mut second).await.is_err());
        drop(first);
        drop(second.await);
        drop(_other);
        // Given up while it waits.
        let first = turns.wait(&one).await;
        assert!(tokio::time::timeout(now, turns.wait(&one)).await.is_err());
        drop(first);
        assert!(turns.0.lock().is_empty());
    }
}
