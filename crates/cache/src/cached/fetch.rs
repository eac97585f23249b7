//! Fetching articles: in tasks of their own, so that they land whoever has gone meanwhile, and some ahead of who reads one
//! behind the other.
//!
//! What has come is told at once and kept then.  Memory is bounded: of what is fetched ahead no more is held than the settings
//! say, and one article.

use std::sync::Arc;

use newsreel_net::client::Connect;
use newsreel_service::{ArticleBuf, ArticleQuery, NewsService as _, Part, ServiceError};
use newsreel_wire::{ArticleNumber, GroupId, MessageId};

use super::flights::{Flight, Landed, Wanted};
use super::line::line_of;
use super::numbers::Numbers;
use super::{CServer, Inner};
use crate::keep::{Fetched, Kept};

/// How a group is being read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    /// The number behind the last that was fetched.
    next: u64,
    /// So many were fetched at once.
    width: usize,
    /// Octets of the last one.
    octets: u64,
}

/// An article that landed, with its line.
type Arrival = (ArticleNumber, Fetched, Option<Vec<u8>>);

/// Numbers as ranges, in order.
fn ranges(numbers: impl Iterator<Item = ArticleNumber>) -> Vec<Numbers> {
    let mut ranges: Vec<Numbers> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, high)) if high.0 + 1 == number.0 => *high = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

impl<C: Connect> CServer<C> {
    /// Fetches an article by its message-id.
    pub(super) fn fetch_by_id(&self, id: MessageId<'_>, flight: Flight) {
        let id: Box<[u8]> = id.as_bytes().into();
        let inner = Arc::clone(&self.inner);
        self.spawn(async move { inner.fetched_by_id(&id, flight).await });
    }

    /// Fetches an article of a group, and where it is read one behind the other some more.
    pub(super) fn fetch_by_number(
        &self,
        (group, name): (GroupId, Arc<str>),
        high: ArticleNumber,
        first: (ArticleNumber, Flight),
    ) {
        let numbers = self.inner.ahead(group, first.0, high);
        let mut flights = vec![first];
        for number in numbers {
            // What somebody fetches already is behind us: the rest will be theirs.
            let Ok(flight) = self.inner.flights.begin(Wanted::Number(group, number)) else {
                break;
            };
            flights.push((number, flight));
        }
        let inner = Arc::clone(&self.inner);
        self.spawn(async move { inner.fetched_in(name, group, flights).await });
    }
}

impl<C: Connect> Inner<C> {
    async fn fetched_by_id(&self, id: &[u8], flight: Flight) {
        let mut out = ArticleBuf::new();
        let Ok(asked) = MessageId::parse(id) else {
            return;
        };
        let query = ArticleQuery::ById(asked);
        let landed = match self.there.article(query, Part::Whole, &mut out).await {
            Ok(Some(_)) => self.landed(id, out.content()),
            Ok(None) => Landed::Missing,
            Err(error) => Landed::Failed(error),
        };
        flight.land(landed.clone());
        if let Landed::Found(fetched) = landed
            && line_of(id, &fetched.kept.wire).is_some()
        {
            let now = self.there.now();
            let keeping = self.on_disk(move |keep| keep.keep_articles(&[fetched], now));
            let _ = keeping.await;
        }
    }

    fn landed(&self, id: &[u8], wire: &[u8]) -> Landed {
        let kept = Kept::new(wire.to_vec().into());
        let parsed = MessageId::parse(id);
        match (kept, parsed) {
            (Some(kept), Ok(parsed)) => Landed::Found(Fetched {
                id: id.into(),
                hash: self.keep.id_hash(parsed),
                kept: Arc::new(kept),
            }),
            // Without an end of its header block it is no article.
            _ => Landed::Missing,
        }
    }

    /// The numbers that are fetched with one, behind it.
    fn ahead(
        &self,
        group: GroupId,
        first: ArticleNumber,
        high: ArticleNumber,
    ) -> Vec<ArticleNumber> {
        let mut runs = self.runs.lock();
        let run = runs.entry(group).or_default();
        let most = self.settings.read_ahead_max.max(1);
        let by_octets = self.settings.read_ahead_octets_max / run.octets.max(1);
        let by_octets = usize::try_from(by_octets).unwrap_or(usize::MAX).max(1);
        run.width = if first.0 == run.next {
            (run.width * 2).min(most).min(by_octets)
        } else {
            1
        };
        let last = (first.0 + run.width as u64 - 1).min(high.0).max(first.0);
        run.next = last + 1;
        (first.0 + 1..=last).map(ArticleNumber).collect()
    }

    async fn fetched_in(
        &self,
        name: Arc<str>,
        group: GroupId,
        flights: Vec<(ArticleNumber, Flight)>,
    ) {
        let numbers: Vec<ArticleNumber> = flights.iter().map(|(number, _)| *number).collect();
        let mut arrivals: Vec<Arrival> = Vec::new();
        let (mut next, mut held, mut told) = (flights.iter(), 0, Vec::new());
        let now = self.there.now();
        let asking = self.there.articles_in(&name, &numbers, |found| {
            let Some((number, flight)) = next.next() else {
                return;
            };
            let octets = found.map_or(0, |(_, wire)| wire.len() as u64);
            if held > 0 && held + octets > self.settings.read_ahead_octets_max {
                flight.land(Landed::Lost);
                return;
            }
            held += octets;
            told.push(*number);
            let landed = found.map_or(Landed::Missing, |(id, wire)| self.landed(id, wire));
            flight.land(landed.clone());
            if let Landed::Found(fetched) = landed {
                let line = line_of(&fetched.id, &fetched.kept.wire);
                arrivals.push((*number, fetched, line));
            }
        });
        if let Err(error) = asking.await
            && let Some((_, first)) = flights.first()
        {
            first.land(Landed::Failed(error));
        }
        if let (Some(run), Some((_, last, _))) = (self.runs.lock().get_mut(&group), arrivals.last())
        {
            run.octets = last.kept.wire.len() as u64;
        }
        let keeping = self.on_disk(move |keep| {
            let sound = arrivals.iter().filter(|(_, _, line)| line.is_some());
            let articles: Vec<Fetched> = sound.map(|(_, fetched, _)| fetched.clone()).collect();
            keep.keep_articles(&articles, now);
            let known = |number: &ArticleNumber| {
                let (block, place) = crate::keep::place_of(*number);
                keep.block(&name, block).line(place).is_some()
            };
            // The server's own lines stay.
            let new = told.iter().copied().filter(|number| !known(number));
            let new = ranges(new);
            let lines = arrivals
                .iter()
                .filter_map(|(number, _, line)| Some((*number, line.as_deref()?)));
            keep.tell(&name, &new, lines, now);
        });
        let _ = keeping.await;
        drop(flights);
    }

    /// What stands for an error that nobody told.
    pub(super) const fn given_up() -> ServiceError {
        ServiceError::Fault("the article could not be fetched")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_each_other_are_one_range() {
        let of = |numbers: &[u64]| {
            let ranges = ranges(numbers.iter().copied().map(ArticleNumber));
            ranges
                .iter()
                .map(|(low, high)| (low.0, high.0))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[1, 2, 3, 7, 9, 10]), [(1, 3), (7, 7), (9, 10)]);
    }
}
