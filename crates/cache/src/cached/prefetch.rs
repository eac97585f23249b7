//! Fetching before anybody asks: the newest articles of groups, in pipelined windows over several connections at a time.
//!
//! Where threads are wanted whole, those articles come, too, that are older and belong to a thread of the newest ones.
//! What is kept already is not fetched again; whether it can be read is looked at only where that is wanted.  Readers come first: one
//! connection of a server's account is left to them where there is more than one.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use newsreel_net::client::Connect;
use newsreel_service::ServiceError;
use newsreel_wire::overview::{OverviewFields, message_id};
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupId, GroupName, MessageId};
use tokio::task::JoinSet;

use super::arrivals::Why;
use super::flights::Wanted;
use super::numbers::{Blocks, Need, Numbers, lines};
use super::rate::Rate;
use super::{CServer, Inner};
use crate::keep::{BLOCK_NUMBERS, Keep, KeptGroup};

/// Articles that are asked for in one round trip.
const WINDOW: usize = 48;

/// Numbers whose overview is looked at together.
const NUMBERS: u64 = 8 * BLOCK_NUMBERS;

/// The first articles of so many threads are looked for in the older part of a group.
pub const THREADS_MAX: usize = 10_000;

/// Message-ids of first articles.
type Firsts = HashSet<Box<[u8]>>;

/// How much is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefetchLimits {
    /// The newest articles of each group: so many numbers.
    pub articles: u64,
    /// So many numbers before these are looked through for articles of the same threads; 0: none.
    pub threads: u64,
    /// Octets in all, about.
    pub octets: u64,
    /// Octets a second, about; 0: as fast as it goes.
    pub octets_per_s: u64,
    /// What is kept of these articles is read, and what is damaged comes anew; else all that is kept is taken to be sound.
    pub reads_kept: bool,
}

/// What was fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prefetched {
    /// Groups that match.
    pub matching: u64,
    /// Those of them that were looked at.
    pub groups: u64,
    /// Groups of which something could not be had.
    pub failed: u64,
    /// Articles that were asked for.
    pub asked: u64,
    /// Articles that came.
    pub articles: u64,
    /// Octets of those that were asked for, as their overview says.
    pub octets: u64,
    /// It ended before all was fetched: there are as many octets as there may be, or nobody wants more.
    pub is_cut: bool,
}

/// What is asked for in one round trip.
struct Window {
    /// Articles of which overview says that they have more octets are left out: they could not come.
    article_octets_max: u64,
    /// So many octets at most, or one article.
    octets_max: u64,
    /// The first articles of threads: nothing else; none: everything.
    threads: Option<Arc<Firsts>>,
    /// What is kept is read, whether it is sound.
    reads_kept: bool,
}

/// A prefetch under way.
pub(super) struct Fetching<C: Connect> {
    pub(super) inner: Arc<Inner<C>>,
    pub(super) limits: PrefetchLimits,
    /// The first articles of threads: nothing else is fetched; none: everything is.
    pub(super) threads: Option<Arc<Firsts>>,
    pub(super) done: Prefetched,
    tasks: JoinSet<u64>,
    pub(super) rate: Rate,
    /// So many octets one article may have.
    article_octets_max: u64,
}

impl<C: Connect> CServer<C> {
    /// Fetches the newest articles of the groups that match; `goes_on` is told what was done so far, and says whether more is
    /// wanted.
    ///
    /// # Errors
    /// When not even the list of groups can be had.
    pub async fn prefetch(
        &self,
        wildmat: &Wildmat,
        limits: PrefetchLimits,
        goes_on: &mut impl FnMut(&Prefetched) -> bool,
    ) -> Result<Prefetched, ServiceError> {
        let mut fetching = self.fetching(limits);
        let names = self.inner.matching(wildmat).await?;
        fetching.done.matching = names.len() as u64;
        for name in names {
            fetching.done.groups += 1;
            if fetching.group(&name, goes_on).await.is_err() {
                fetching.done.failed += 1;
            }
            if fetching.done.is_cut {
                break;
            }
        }
        while fetching.joined().await {}
        goes_on(&fetching.done);
        Ok(fetching.done)
    }

    /// One that has fetched nothing yet.
    pub(super) fn fetching(&self, limits: PrefetchLimits) -> Fetching<C> {
        Fetching {
            inner: Arc::clone(&self.inner),
            limits,
            threads: None,
            done: Prefetched::default(),
            tasks: JoinSet::new(),
            rate: Rate::new(limits.octets_per_s),
            article_octets_max: self.inner.there.article_octets_max().min(limits.octets),
        }
    }
}

/// The message-ids that an overview line says its article follows, the first one first.
fn references(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let references = line.split(|octet| *octet == b'\t').nth(4);
    let words = references.unwrap_or_default();
    let words = words.split(u8::is_ascii_whitespace);
    words.filter(|word| !word.is_empty())
}

/// Whether an overview line is of an article in one of the threads that begin with these.
fn is_in_threads(line: &[u8], firsts: &Firsts) -> bool {
    let is_first = message_id(line).is_some_and(|id| firsts.contains(id));
    is_first || references(line).any(|id| firsts.contains(id))
}

/// Whether an article is kept and can be read.
fn is_readable(keep: &Keep, id: &[u8]) -> bool {
    let kept = MessageId::parse(id).map(|id| keep.article_unasked(&keep.id_hash(id)));
    kept.is_ok_and(|kept| kept.is_some())
}

/// Where the threads begin that articles of a range belong to and did not begin.
fn firsts_of(blocks: &Blocks, range: Numbers, firsts: &mut Firsts) {
    for (_, line) in lines(blocks, range) {
        if firsts.len() >= THREADS_MAX {
            return;
        }
        firsts.extend(references(line).next().map(Box::from));
    }
}

impl<C: Connect> Fetching<C> {
    /// Waits until one window more has come; whether one was under way.
    pub(super) async fn joined(&mut self) -> bool {
        let joined = self.tasks.join_next().await;
        let articles = joined.as_ref().and_then(|joined| joined.as_ref().ok());
        self.done.articles += articles.copied().unwrap_or(0);
        joined.is_some()
    }

    pub(super) async fn group(
        &mut self,
        name: &Arc<str>,
        goes_on: &mut impl FnMut(&Prefetched) -> bool,
    ) -> Result<(), ServiceError> {
        let inner = Arc::clone(&self.inner);
        let (Ok(parsed), Some(facts)) =
            (GroupName::parse(name.as_bytes()), inner.facts(name).await?)
        else {
            return Ok(());
        };
        let id = inner.there.group_id(parsed)?;
        let newest = (facts.high.0 + 1).saturating_sub(self.limits.articles);
        let newest = newest.max(facts.low.0);
        let (group, mut firsts) = ((id, name, &*facts), Firsts::new());
        self.numbers(group, (newest, facts.high.0), &mut firsts, goes_on)
            .await?;
        let older = newest.saturating_sub(self.limits.threads).max(facts.low.0);
        if older < newest && !firsts.is_empty() && !self.done.is_cut {
            self.threads = Some(Arc::new(firsts));
            let range = (older, newest - 1);
            let done = self
                .numbers(group, range, &mut Firsts::new(), goes_on)
                .await;
            self.threads = None;
            done?;
        }
        Ok(())
    }

    /// What there is between two numbers; tells which threads that belongs to.
    async fn numbers(
        &mut self,
        (id, name, facts): (GroupId, &Arc<str>, &KeptGroup),
        (low, last): (u64, u64),
        firsts: &mut Firsts,
        goes_on: &mut impl FnMut(&Prefetched) -> bool,
    ) -> Result<(), ServiceError> {
        let inner = Arc::clone(&self.inner);
        let mut low = low;
        while low <= last {
            let high = (low + NUMBERS - 1).min(last);
            let range = (ArticleNumber(low), ArticleNumber(high));
            let up_to = ArticleNumber(last);
            let known = inner.known((id, name), facts, (range, up_to), Need::Lines);
            let known = known.await?;
            // What cannot be kept is not worth fetching.
            let Some(known) = known else {
                return Ok(());
            };
            if self.limits.threads > 0 {
                firsts_of(&known.blocks, range, firsts);
            }
            let missing = inner.missing(name, known.blocks, range, self.window());
            for (numbers, octets) in missing.await? {
                let most = inner.there.connections(name).saturating_sub(1).max(1);
                while self.tasks.len() >= most {
                    self.joined().await;
                }
                let is_enough = self.done.octets + octets > self.limits.octets;
                if is_enough || !goes_on(&self.done) {
                    self.done.is_cut = true;
                    return Ok(());
                }
                self.fetch((id, name, facts), &numbers, octets);
                self.rate.pause(octets).await;
            }
            low = high + 1;
        }
        Ok(())
    }

    fn fetch(
        &mut self,
        (id, name, facts): (GroupId, &Arc<str>, &KeptGroup),
        numbers: &[ArticleNumber],
        octets: u64,
    ) {
        let flights = numbers.iter().filter_map(|number| {
            // What somebody fetches already is theirs.
            let wanted = Wanted::Number(id, facts.generation, *number);
            let flight = self.inner.flights.begin(wanted).ok()?;
            Some((*number, flight))
        });
        let flights: Vec<_> = flights.collect();
        self.done.asked += flights.len() as u64;
        self.done.octets += octets;
        if !flights.is_empty() {
            let (inner, name) = (Arc::clone(&self.inner), Arc::clone(name));
            let how = (Why::Prefetch, self.limits.reads_kept);
            self.tasks
                .spawn(async move { inner.fetched_in(name, id, flights, how).await });
        }
    }

    /// What is fetched at once: no more than may be in a second, or one article.
    fn window(&self) -> Window {
        let most = self.inner.settings.read_ahead_octets_max;
        Window {
            article_octets_max: self.article_octets_max,
            octets_max: match self.limits.octets_per_s {
                0 => most,
                rate => most.min(rate),
            },
            threads: self.threads.clone(),
            reads_kept: self.limits.reads_kept,
        }
    }
}

impl<C: Connect> Inner<C> {
    /// The groups that match: those first that readers asked for most since the start, for each octet; others in the order of their names.
    async fn matching(&self, wildmat: &Wildmat) -> Result<Vec<Arc<str>>, ServiceError> {
        let mut names = self.there.names_at_hand(wildmat).await?;
        // Each is asked for once: readers go on asking meanwhile, and a sort does not bear an order that changes.  Of numbers that are
        // not negative the greater has the greater bits.
        names.sort_by_cached_key(|name| {
            let popularity = self.counts.popularity(name).to_bits();
            (Reverse(popularity), Arc::clone(name))
        });
        Ok(names)
    }

    /// What of a range is there and not kept, in windows, each with its octets.
    async fn missing(
        &self,
        name: &Arc<str>,
        blocks: Blocks,
        range: Numbers,
        window: Window,
    ) -> Result<Vec<(Vec<ArticleNumber>, u64)>, ServiceError> {
        let name = Arc::clone(name);
        let Window {
            article_octets_max,
            octets_max,
            threads,
            reads_kept,
        } = window;
        self.on_disk(move |keep| {
            let is_settled = |number, line: &[u8]| match reads_kept {
                true => is_readable(keep, message_id(line).unwrap_or_default()),
                false => keep.is_settled(&name, number),
            };
            let mut windows: Vec<(Vec<ArticleNumber>, u64)> = Vec::new();
            for (number, line) in lines(&blocks, range) {
                let is_wanted = threads
                    .as_ref()
                    .is_none_or(|firsts| is_in_threads(line, firsts));
                let octets = OverviewFields::parse(line).ok().and_then(|line| line.bytes);
                let octets = octets.unwrap_or(0);
                if !is_wanted || octets > article_octets_max || is_settled(number, line) {
                    continue;
                }
                match windows.last_mut() {
                    Some((numbers, all))
                        if numbers.len() < WINDOW && *all + octets <= octets_max =>
                    {
                        numbers.push(number);
                        *all += octets;
                    }
                    _ => windows.push((vec![number], octets)),
                }
            }
            windows
        })
        .await
    }
}
