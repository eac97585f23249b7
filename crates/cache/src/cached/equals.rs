//! Articles of a group by the message-ids that their numbers are known to have, from a server beside the one whose numbers these are: so
//! that equals share what is read by number as they share what is read by message-id.
//!
//! What it does not have, or does not answer for, or what does not say itself that it is in the group, is asked of the one whose numbers they are as if nobody else had been.

use std::sync::Arc;

use newsreel_net::client::Connect;
use newsreel_wire::overview::message_id;
use newsreel_wire::{ArticleNumber, GroupId, MessageId};

use super::Inner;
use super::arrivals::{Arrivals, Why};
use super::fetch::{Wants, behind};
use crate::keep::place_of;

impl<C: Connect> Inner<C> {
    /// Fetches articles of a group that somebody reads in one round trip, and keeps them: from the least busy of the servers that are
    /// equals for the group, where all their message-ids are known.
    pub(super) async fn fetched_for_reader(&self, name: Arc<str>, group: GroupId, flights: Wants) {
        let run = (group, behind(&flights));
        let Ok(flights) = self.unsettled(&name, flights).await else {
            return;
        };
        if let Some(equal) = self.there.less_in_use(&name)
            && let Some(ids) = self.ids_of(&name, &flights).await
        {
            let ids: Vec<MessageId<'_>> = ids.iter().flat_map(|id| MessageId::parse(id)).collect();
            if ids.len() == flights.len() && !self.there.lacks_any(equal, &ids) {
                self.fetched_from((equal, &ids), name, run, flights).await;
                return;
            }
        }
        self.fetched_by_number(name, run, flights, Why::Asked).await;
    }

    /// Fetches them from a server by their message-ids, and what it does not send from the one whose numbers they have.  Of their
    /// overview lines nothing is learnt: those are known, and are that one's.
    async fn fetched_from(
        &self,
        (server, ids): (usize, &[MessageId<'_>]),
        name: Arc<str>,
        run: (GroupId, u64),
        mut flights: Wants,
    ) {
        let mut arrivals = Arrivals::new(self, &flights, Why::Asked).only_in(&name);
        // What went wrong there is logged, and nobody is told.
        let _ = self.there.articles_from(server, ids, &mut arrivals).await;
        let left = arrivals.left();
        let (landed, _) = arrivals.into_parts();
        self.came_in_run(run, &landed);
        let keeping = self.keep_sound(landed);
        let mut at = 0..;
        let rest: Wants = flights
            .extract_if(.., |_| at.next().is_some_and(|at| left.contains(&at)))
            .collect();
        if rest.is_empty() {
            keeping.await;
        } else {
            let fetching = self.fetched_by_number(name, run, rest, Why::Asked);
            tokio::join!(keeping, fetching);
        }
        // Until they are kept nobody else asks for them.
        drop(flights);
    }

    /// The message-ids of numbers; none: not all are known.
    async fn ids_of(&self, name: &Arc<str>, flights: &Wants) -> Option<Vec<Vec<u8>>> {
        let numbers: Vec<ArticleNumber> = flights.iter().map(|(number, _)| *number).collect();
        let name = Arc::clone(name);
        let looking = self.on_disk(move |keep| {
            let id = |number: &ArticleNumber| {
                let (block, place) = place_of(*number);
                let block = keep.block(&name, block);
                Some(message_id(block.line(place)?)?.to_vec())
            };
            numbers.iter().map(id).collect()
        });
        looking.await.ok().flatten()
    }
}
