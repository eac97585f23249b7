//! What peers and posters hand over, up to the queue of the sequencer.
//!
//! It is looked up and judged on the task that brought it, on all cores; filters have their word, and what is for cancels and signatures
//! is read.  Every article is answered once: here, or, when it is queued, behind its commit.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_service::{Completion, Connection, Defer, Outcome, Transfer};
use newsreel_wire::IdHash;
use tokio::sync::oneshot;

use crate::accept::{self, Candidate, CandidateBatch, LookedUp, Origin};
use crate::control;
use crate::counters::Counters;
use crate::local::{LocalService, blocking};
use crate::shared::Shared;

impl LocalService {
    /// What the history says of the ids of these; what must be read for it is read by a thread that may wait.
    pub(crate) async fn look_up(&self, batch: &[Transfer]) -> Vec<LookedUp> {
        let shared = &self.shared;
        let now = batch.iter().map(|it| LookedUp::now(shared, &it.offered));
        let mut found: Vec<LookedUp> = now.collect();
        let open = found.iter().enumerate().filter(|(_, it)| it.must_wait());
        let open: Vec<(usize, IdHash)> = open.map(|(at, it)| (at, it.hash)).collect();
        if open.is_empty() {
            return found;
        }
        let read = blocking(shared, move |shared| {
            let open = open.into_iter();
            open.map(|(at, hash)| (at, LookedUp::waiting(shared, hash)))
                .collect::<Vec<_>>()
        });
        // What is still open if that failed is put off.
        for (at, looked_up) in read.await.unwrap_or_default() {
            found[at] = looked_up;
        }
        found
    }

    /// Answers while nothing is taken: what is here already the peer need not keep.
    pub(crate) async fn put_off(&self, defer: Defer, batch: &mut Vec<Transfer>, from: &Connection) {
        let found = self.look_up(batch).await;
        let answers = batch.drain(..).zip(found).map(|(transfer, looked_up)| {
            let outcome = if looked_up.is_known() {
                self.shared.offers.unclaim(&looked_up.hash, from.id());
                Counters::add(&self.shared.counters.duplicates, 1);
                Outcome::Duplicate
            } else {
                Outcome::Deferred(defer)
            };
            Completion {
                ticket: transfer.ticket,
                outcome,
            }
        });
        from.complete(answers.collect::<Vec<_>>());
    }

    /// Judges articles and queues what passes; each is answered once.  What comes behind a message about groups is judged with the
    /// groups as that leaves them.
    pub(crate) async fn take(
        &self,
        batch: &mut Vec<Transfer>,
        from: &Arc<Connection>,
        origin: Origin,
    ) {
        while !batch.is_empty() {
            self.take_some(batch, from, origin).await;
        }
    }

    /// Takes as many of them as can be judged now; done when nothing of it changes groups any more.
    async fn take_some(&self, batch: &mut Vec<Transfer>, from: &Arc<Connection>, origin: Origin) {
        let shared = &self.shared;
        let octets: usize = batch.iter().map(|transfer| transfer.article.len()).sum();
        let all = (shared.config.sequencer.queue_octets_max as usize / 1024).max(1);
        let kib = u32::try_from((octets / 1024 + 1).min(all)).unwrap_or(u32::MAX);
        let Ok(permit) = Arc::clone(&shared.queue).acquire_many_owned(kib).await else {
            let failed = Outcome::Failed;
            from.complete(batch.drain(..).map(|t| Completion {
                ticket: t.ticket,
                outcome: failed,
            }));
            return;
        };
        let found = self.look_up(batch).await;
        let mut candidates = shared.accept.batch(shared, from, origin);
        candidates.permit = Some(permit);
        self.judge_some(batch, found, from, &mut candidates);
        self.settle_filtered(&mut candidates, from, origin).await;
        self.settle_cancels(&mut candidates, from).await;
        self.settle_signed(&mut candidates).await;
        if candidates.candidates.is_empty() {
            shared.accept.recycle(candidates);
            return;
        }
        let due = candidates.due();
        let ended = self.queue_up(candidates);
        match ended {
            Some(ended) if !due.is_empty() => {
                // Also if who brought them hangs up.
                let work = move |shared: &Shared| {
                    let _ = ended.blocking_recv();
                    shared.do_what_is_due(&due);
                };
                let _ = blocking(shared, work).await;
            }
            Some(ended) => {
                // It only ends.
                let _ = ended.await;
            }
            None => {}
        }
    }

    /// Judges articles, up to one behind a message that may change groups; those that pass are candidates, the others are answered.
    fn judge_some(
        &self,
        batch: &mut Vec<Transfer>,
        found: Vec<LookedUp>,
        from: &Connection,
        candidates: &mut CandidateBatch,
    ) {
        let shared = &self.shared;
        let now = shared.time.judging();
        let (mut answered, mut judged, mut changes_groups) = (Vec::new(), 0, false);
        for (transfer, looked_up) in batch.iter().zip(found) {
            // Of several such messages each is worked out in its turn, behind those before it.
            if changes_groups && !control::is_about_groups(&shared.policy.load(), &transfer.article)
            {
                break;
            }
            judged += 1;
            let hash = looked_up.hash;
            match accept::judge(shared, now, transfer, looked_up, candidates) {
                Ok(()) => {
                    let last = candidates.candidates.last();
                    changes_groups |= last.is_some_and(Candidate::changes_groups);
                }
                Err(outcome) => {
                    shared.accept.count(&shared.counters, &outcome);
                    answered.push(Completion {
                        ticket: transfer.ticket,
                        outcome,
                    });
                    shared.offers.unclaim(&hash, from.id());
                }
            }
        }
        batch.drain(..judged);
        if !answered.is_empty() {
            from.complete(answered);
        }
    }

    /// Queues candidates; what ends with their commit, if they may change groups, or something is due behind them.
    fn queue_up(&self, mut candidates: CandidateBatch) -> Option<oneshot::Receiver<()>> {
        let shared = &self.shared;
        let mut all = candidates.candidates.iter();
        let is_waited_for = |it: &Candidate| it.changes_groups() || it.is_something_due();
        let ended = all.any(is_waited_for).then(|| {
            let (ending, ended) = oneshot::channel();
            candidates.ended = Some(ending);
            ended
        });
        for candidate in &candidates.candidates {
            shared.offers.queue(&candidate.hash);
        }
        if let Err(late) = shared.inbox.push_batch(candidates) {
            shared.give_back(late);
        }
        ended
    }

    /// What holds up all offers at present.
    pub(crate) fn held_up(&self) -> Option<Defer> {
        if self.shared.closing.load(Ordering::Acquire) {
            return Some(Defer::Stopping);
        }
        self.shared.holds.lock().defer()
    }
}
