//! Fetching articles: in tasks of their own, so that they land whoever has gone meanwhile, and some ahead of who reads one
//! behind the other.
//!
//! What has come is told at once (`arrivals.rs`) and kept then.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use newsreel_net::client::Connect;
use newsreel_service::{NewsService as _, ServiceError};
use newsreel_wire::{ArticleNumber, GroupId, IdHash, MessageId, UnixTime};

use super::arrivals::{Arrival, Arrivals, Why, is_in};
use super::flights::{Flight, Landed, LetGo, Wanted};
use super::numbers::Numbers;
use super::{CServer, Inner};
use crate::keep::{Fetched, Keep, Kept, KeptGroup, bare_line, place_of};
use crate::remote::Take as _;

/// So many readers of one group are told apart; of more, those that read longest ago begin anew.
pub const RUNS_MAX: usize = 8;

/// How somebody reads a group.  Who it is nobody knows: whoever asks for the number behind the last of a run goes on with it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    /// The number behind the last that was fetched.
    next: u64,
    /// So many were fetched at once.
    width: usize,
    /// Octets of the last one.
    octets: u64,
}

/// Articles of a group that are to be fetched, in order.
pub(super) type Wants = Vec<(ArticleNumber, Flight)>;

/// The number behind the last of them.
pub(super) fn behind(flights: &Wants) -> u64 {
    flights.last().map_or(0, |(number, _)| number.0 + 1)
}

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
        self.inner
            .spawn(async move { inner.fetched_by_id(&id, flight, Why::Asked).await });
    }

    /// Fetches an article of a group, and where it is read one behind the other some more.
    pub(super) fn fetch_by_number(
        &self,
        (group, name): (GroupId, Arc<str>),
        facts: &KeptGroup,
        first: (ArticleNumber, Flight),
    ) {
        let numbers = self.inner.ahead(group, first.0, facts.high);
        let mut flights = vec![first];
        for number in numbers {
            // What somebody fetches already is behind us: the rest will be theirs.
            let wanted = Wanted::Number(group, facts.generation, number);
            let Ok(flight) = self.inner.flights.begin(wanted) else {
                break;
            };
            flights.push((number, flight));
        }
        let inner = Arc::clone(&self.inner);
        self.inner.spawn(async move {
            inner.fetched_for_reader(name, group, flights).await;
        });
    }
}

impl<C: Connect> Inner<C> {
    pub(super) async fn fetched_by_id(&self, id: &[u8], flight: Flight, why: Why) {
        let Ok(asked) = MessageId::parse(id) else {
            return;
        };
        // By its message-id it has no number.
        let flights = [(ArticleNumber(0), flight)];
        let mut arrivals = Arrivals::new(self, &flights, why);
        match self.there.article_with_id(asked, &mut arrivals).await {
            Ok(true) => {}
            Ok(false) => arrivals.begins(None),
            Err(error) => arrivals.failed(error),
        }
        let (landed, _) = arrivals.into_parts();
        self.keep_sound(landed).await;
    }

    /// Keeps those of articles that came which are sound.
    pub(super) async fn keep_sound(&self, landed: Vec<Arrival>) {
        let sound: Vec<Arrival> = landed.into_iter().filter(|it| it.line.is_some()).collect();
        if !sound.is_empty() {
            let now = self.there.now();
            let keeping = self.on_disk(move |keep| keep_articles(keep, sound.iter(), now));
            let _ = keeping.await;
        }
    }

    /// What came of an article that has all come.
    pub(super) fn landed(&self, id: &[u8], wire: Bytes) -> Landed {
        match (Kept::new(wire), MessageId::parse(id)) {
            (Some(kept), Ok(parsed)) => Landed::Found(Fetched {
                id: id.into(),
                hash: self.keep.id_hash(parsed),
                kept: Arc::new(kept),
            }),
            // Without an end of its header block it is no article, and that is no word about whether there is one.
            _ => Landed::Failed(ServiceError::Fault(
                "the news server elsewhere sent something that is no article",
            )),
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
        let runs = runs.entry(group).or_default();
        let mut run = match runs.iter().position(|run| run.next == first.0) {
            Some(at) => runs.remove(at),
            None => Run::default(),
        };
        let most = self.settings.read_ahead_max.max(1);
        let by_octets = self.settings.read_ahead_octets_max / run.octets.max(1);
        let by_octets = usize::try_from(by_octets).unwrap_or(usize::MAX).max(1);
        run.width = (run.width * 2).min(most).min(by_octets).max(1);
        let last = (first.0 + run.width as u64 - 1).min(high.0).max(first.0);
        run.next = last + 1;
        if runs.len() >= RUNS_MAX {
            runs.remove(0);
        }
        runs.push(run);
        (first.0 + 1..=last).map(ArticleNumber).collect()
    }

    /// Those of which something is to be learnt: the first, which somebody asks for, and of the others no more than is missing.
    pub(super) async fn unsettled(
        &self,
        name: &Arc<str>,
        mut flights: Wants,
    ) -> Result<Wants, ServiceError> {
        if flights.len() < 2 {
            return Ok(flights);
        }
        let name = Arc::clone(name);
        let sorting = self.on_disk(move |keep| {
            let first = flights.first().map(|(number, _)| *number);
            flights
                .retain(|(number, _)| Some(*number) == first || !keep.is_settled(&name, *number));
            flights
        });
        sorting.await
    }

    /// Fetches articles of a group in one round trip, and keeps them; how many came.  Those that came meanwhile are left out, unless it was
    /// seen that what is kept of these cannot be read.
    pub(super) async fn fetched_in(
        &self,
        name: Arc<str>,
        group: GroupId,
        flights: Wants,
        (why, reads_kept): (Why, bool),
    ) -> u64 {
        let run = (group, behind(&flights));
        let flights = match reads_kept {
            true => Ok(flights),
            false => self.unsettled(&name, flights).await,
        };
        match flights {
            Ok(flights) => self.fetched_by_number(name, run, flights, why).await,
            Err(_) => 0,
        }
    }

    /// The same of those of which something is to be learnt, in a run that goes on with a number.
    pub(super) async fn fetched_by_number(
        &self,
        name: Arc<str>,
        run: (GroupId, u64),
        flights: Wants,
        why: Why,
    ) -> u64 {
        let numbers: Vec<ArticleNumber> = flights.iter().map(|(number, _)| *number).collect();
        let now = self.there.now();
        let generation = self.keep.group(&name).map(|group| group.generation);
        let mut arrivals = Arrivals::new(self, &flights, why);
        let asking = self.there.articles_in(&name, &numbers, &mut arrivals);
        if let Err(error) = asking.await {
            arrivals.failed(error);
        }
        let (arrivals, told) = arrivals.into_parts();
        let came = arrivals.len() as u64;
        self.came_in_run(run, &arrivals);
        let keeping = self.on_disk(move |keep| {
            keep_arrivals(keep, (&name, generation), (&arrivals, &told), now);
        });
        let _ = keeping.await;
        drop(flights);
        came
    }

    /// How large the articles are that come in a run which goes on with a number.
    pub(super) fn came_in_run(&self, (group, next): (GroupId, u64), arrivals: &[Arrival]) {
        let Some(last) = arrivals.last() else {
            return;
        };
        let mut runs = self.runs.lock();
        let mut runs = runs.get_mut(&group).into_iter().flatten();
        if let Some(run) = runs.find(|run| run.next == next) {
            run.octets = last.fetched.kept.wire.len() as u64;
        }
    }

    /// What stands for an error that nobody told.
    pub(super) const fn given_up() -> ServiceError {
        ServiceError::Fault("the article could not be fetched")
    }
}

/// Keeps articles that came, but for what is let go meanwhile and what is there otherwise under their message-ids, of which it gives the
/// hashes.
fn keep_articles<'a>(
    keep: &Keep,
    arrivals: impl Iterator<Item = &'a Arrival> + Clone,
    now: UnixTime,
) -> HashSet<IdHash> {
    let articles: Vec<Fetched> = arrivals.clone().map(|it| it.fetched.clone()).collect();
    let let_go: HashMap<IdHash, &LetGo> =
        arrivals.map(|it| (it.fetched.hash, &it.let_go)).collect();
    let is_let_go = |id: &IdHash| let_go.get(id).is_some_and(|let_go| let_go.is_so());
    keep.keep_articles(&articles, now, &is_let_go)
}

/// Keeps articles that came, and their overview lines; of those that are not there it is known.  They were asked for when the
/// group was of this generation; none: nothing was known of it.
fn keep_arrivals(
    keep: &Keep,
    (name, generation): (&Arc<str>, Option<u64>),
    (arrivals, told): (&[Arrival], &[ArticleNumber]),
    now: UnixTime,
) {
    let sound = arrivals.iter().filter(|it| it.line.is_some());
    let refused = keep_articles(keep, sound.clone(), now);
    let Some(generation) = generation else {
        return;
    };
    let let_go = arrivals.iter().filter(|it| it.let_go.is_so());
    let let_go: HashSet<ArticleNumber> = let_go.map(|it| it.number).collect();
    let sound = sound.filter_map(|it| Some((it.number, &it.fetched, it.line.as_deref()?)));
    let sound = sound.filter(|(number, ..)| !let_go.contains(number));
    let mut lines: Vec<(ArticleNumber, Cow<'_, [u8]>)> = Vec::new();
    let mut made = HashSet::new();
    for (number, fetched, line) in sound {
        let is_made = keep.makes_line(&fetched.kept, line) && is_in(name, &fetched.kept.wire);
        if is_made && !refused.contains(&fetched.hash) {
            made.insert(number);
            lines.push((number, bare_line(&fetched.id).into()));
        } else {
            lines.push((number, line.into()));
        }
    }
    let known = |number: &ArticleNumber| {
        let (block, place) = place_of(*number);
        let block = keep.block(name, block);
        block.line(place).is_some_and(|line| !line.is_empty())
    };
    // The server's own lines stay, unless they are made.
    let new = told.iter().copied().filter(|it| !let_go.contains(it));
    let new = ranges(new.filter(|number| made.contains(number) || !known(number)));
    let lines = lines.iter().map(|(number, line)| (*number, &**line));
    keep.tell((name, generation), &new, lines, now);
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
