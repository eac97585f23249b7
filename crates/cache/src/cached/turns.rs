//! Turns: of those who would ask the server the same, one asks, and the others take what that brought, or ask next.
//!
//! A question that began after somebody came is answered for him, too, whoever asked it: so there is one under way and one next,
//! however many wait.  What a question brought that began before he came is for who waits to judge.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Mutex as TurnMutex, OwnedMutexGuard};

/// When a question was asked that has been answered while somebody waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It began before he came.
    Before,
    /// It began after he came.
    Since,
}

/// What the last question brought.
#[derive(Debug)]
struct Last<A> {
    begun: u64,
    ended: u64,
    answer: A,
}

type One<A> = Arc<TurnMutex<Option<Last<A>>>>;

/// What there can be turns for, by group.
#[derive(Debug)]
pub(super) struct Turns<A> {
    all: Mutex<HashMap<Arc<str>, One<A>>>,
    /// What happens is counted, so that it is known what was before.
    steps: AtomicU64,
}

impl<A> Default for Turns<A> {
    fn default() -> Self {
        Self {
            all: Mutex::default(),
            steps: AtomicU64::new(0),
        }
    }
}

/// A turn; dropped, the next one's comes.
#[derive(Debug)]
pub(super) struct Turn<'t, A> {
    turns: &'t Turns<A>,
    name: Arc<str>,
    came: u64,
    guard: Option<OwnedMutexGuard<Option<Last<A>>>>,
}

impl<A> Turns<A> {
    fn step(&self) -> u64 {
        self.steps.fetch_add(1, Ordering::AcqRel)
    }

    /// Waits for a turn.
    pub(super) async fn wait(&self, name: &Arc<str>) -> Turn<'_, A> {
        let came = self.step();
        let turn = self.all.lock().entry(Arc::clone(name)).or_default().clone();
        let mut waiting = Turn {
            turns: self,
            name: Arc::clone(name),
            came,
            guard: None,
        };
        waiting.guard = Some(turn.lock_owned().await);
        waiting
    }

    /// The same of who waits no longer than this; none: it did not come.
    pub(super) async fn wait_for(
        &self,
        name: &Arc<str>,
        patience: Option<Duration>,
    ) -> Option<Turn<'_, A>> {
        match patience {
            None => Some(self.wait(name).await),
            Some(patience) => tokio::time::timeout(patience, self.wait(name)).await.ok(),
        }
    }
}

impl<A> Turn<'_, A> {
    /// What the last question brought, if that came while this turn was waited for.
    pub(super) fn last(&self) -> Option<(&A, Asked)> {
        let last = self.guard.as_deref()?.as_ref()?;
        let asked = match last.begun > self.came {
            true => Asked::Since,
            false => Asked::Before,
        };
        (last.ended > self.came).then_some((&last.answer, asked))
    }

    /// Asks; those who wait see what that brings.
    pub(super) async fn ask(&mut self, question: impl Future<Output = A>) -> A
    where
        A: Clone,
    {
        let begun = self.turns.step();
        let answer = question.await;
        if let Some(guard) = &mut self.guard {
            **guard = Some(Last {
                begun,
                ended: self.turns.step(),
                answer: answer.clone(),
            });
        }
        answer
    }
}

impl<A> Drop for Turn<'_, A> {
    fn drop(&mut self) {
        let mut all = self.turns.all.lock();
        self.guard = None;
        // Nobody holds it or waits for it: only the table has it.
        if all
            .get(&self.name)
            .is_some_and(|turn| Arc::strong_count(turn) == 1)
        {
            all.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_after_the_other_and_nothing_stays() {
        let turns = Turns::<()>::default();
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        let first = turns.wait(&one).await;
        let _other = turns.wait(&two).await;
        let mut second = Box::pin(turns.wait(&one));
        let now = Duration::ZERO;
        assert!(tokio::time::timeout(now, &mut second).await.is_err());
        drop(first);
        drop(second.await);
        drop(_other);
        // Given up while it waits.
        let first = turns.wait(&one).await;
        assert!(turns.wait_for(&one, Some(now)).await.is_none());
        drop(first);
        assert!(turns.all.lock().is_empty());
    }

    #[tokio::test]
    async fn who_waits_sees_what_the_question_before_brought_and_when_it_began() {
        let turns = Turns::default();
        let name: Arc<str> = "one".into();
        let mut first = turns.wait(&name).await;
        assert_eq!(first.last(), None);
        let (mut second, mut third) = (
            Box::pin(turns.wait(&name)),
            Box::pin(async {
                let mut third = turns.wait(&name).await;
                assert_eq!(third.last(), Some((&2, Asked::Since)));
                third.ask(std::future::ready(3)).await
            }),
        );
        let now = Duration::ZERO;
        let asking = first.ask(async {
            assert!(tokio::time::timeout(now, &mut second).await.is_err());
            assert!(tokio::time::timeout(now, &mut third).await.is_err());
            1
        });
        assert_eq!(asking.await, 1);
        // Who comes now was not there while it was asked.
        let mut late = Box::pin(turns.wait(&name));
        assert!(tokio::time::timeout(now, &mut late).await.is_err());
        drop(first);
        let mut second = second.await;
        assert_eq!(second.last(), Some((&1, Asked::Before)));
        assert_eq!(second.ask(std::future::ready(2)).await, 2);
        drop(second);
        assert_eq!(third.await, 3);
        assert_eq!(late.await.last(), Some((&3, Asked::Since)));
    }
}
