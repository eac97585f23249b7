//! Filters between judging and the order: what is sound, wanted and not here is shown to them, and what they do not want
//! goes no further.
//!
//! It waits on the task of the connection that brought the articles and on no other, and no longer than the filter promises.  What
//! is asked of the disk for cancels and signatures comes later, for what is left.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use newsreel_service::{Completion, Connection, Defer, Outcome, Reject, Subject, Verdict};
use newsreel_wire::SetId;

use crate::accept::{CandidateBatch, Origin};
use crate::counters::Counters;
use crate::local::LocalService;
use crate::shared::Shared;

impl LocalService {
    /// Has the filter judge these candidates; answers those that it does not take.
    pub(crate) async fn settle_filtered(
        &self,
        batch: &mut CandidateBatch,
        from: &Arc<Connection>,
        origin: Origin,
    ) {
        let shared = &self.shared;
        let filter = shared.filter.read().clone();
        let Some(filter) = filter.filter(|_| !batch.candidates.is_empty()) else {
            return;
        };
        let subjects = batch.candidates.iter().map(|candidate| Subject {
            article: candidate.article.clone(),
            from: from.address(),
            is_post: matches!(origin, Origin::Post(_)),
        });
        let verdicts = filter.judge(subjects.collect()).await;
        debug_assert_eq!(verdicts.len(), batch.candidates.len());
        let mut answered = Vec::new();
        for (at, verdict) in verdicts.into_iter().enumerate().rev() {
            let Some(outcome) = outcome_of(verdict) else {
                let candidate = batch.candidates.get_mut(at);
                if let Verdict::Class(class) = verdict
                    && let Some((candidate, set)) = candidate.zip(set_of(shared, class))
                {
                    (candidate.set, candidate.format) = (set, None);
                }
                continue;
            };
            let candidate = batch.candidates.remove(at);
            match outcome {
                Outcome::Accepted => Counters::add(&shared.counters.dropped, 1),
                _ => shared.accept.count(&shared.counters, &outcome),
            }
            shared.offers.unclaim(&candidate.hash, from.id());
            answered.push(Completion {
                ticket: candidate.ticket,
                outcome,
            });
        }
        if !answered.is_empty() {
            from.complete(answered);
        }
    }

    /// What the filter makes of a post that goes to a moderator; none: it goes.
    pub(crate) async fn filtered_mail(
        &self,
        article: Bytes,
        address: Option<IpAddr>,
    ) -> Option<Outcome> {
        let filter = self.shared.filter.read().clone()?;
        let subject = Subject {
            article,
            from: address,
            is_post: true,
        };
        let verdict = filter.judge(vec![subject]).await.pop()?;
        let outcome = outcome_of(verdict)?;
        if outcome == Outcome::Accepted {
            Counters::add(&self.shared.counters.dropped, 1);
        }
        Some(outcome)
    }
}

/// What becomes of an article that a filter does not take.
const fn outcome_of(verdict: Verdict) -> Option<Outcome> {
    match verdict {
        Verdict::Accept | Verdict::Class(_) => None,
        Verdict::Reject(why) => Some(Outcome::RejectedWith(Reject::Filtered, why)),
        Verdict::Drop => Some(Outcome::Accepted),
        Verdict::Later => Some(Outcome::Deferred(Defer::Unjudged)),
    }
}

/// The first set of a class; where there is none the storage rules have the last word.
fn set_of(shared: &Shared, class: &str) -> Option<SetId> {
    let mut sets = shared.config.store.sets.iter();
    let Some(at) = sets.position(|set| set.class() == class) else {
        if let Some(more) = shared.may_say(|lines| &lines.no_set_of_class) {
            tracing::warn!(target: "newsreel::filter", class, more,
                "no set is of the class that a filter names: the storage rules decide; give a set this class, or mend the filter");
        }
        return None;
    };
    u8::try_from(at).ok().map(SetId)
}
