//! Numbers and overview of a group: what is kept of it is compared with the server where that is too long ago, what is missing
//! is asked for, and all of it is told from what is kept then.

use std::sync::Arc;
use std::time::Duration;

use newsreel_net::client::Connect;
use newsreel_service::{
    ArticleBuf, ArticleQuery, Direction, NewsService as _, OverviewRows, Part, ServiceError,
};
use newsreel_wire::overview::message_id;
use newsreel_wire::range::parse_number;
use newsreel_wire::{ArticleNumber, GroupId, UnixTime};
use tokio::time::Instant;

use super::Inner;
use super::lines::{Asked, WINDOW_BLOCKS};
use super::turns::Asked as TurnAsked;
use crate::keep::{BLOCK_NUMBERS, Block, Keep, KeptGroup, each_of, place_of, places_in};
use crate::remote::{GAP_NUMBERS, PATIENCE};

/// Blocks whose numbers are asked for at once: about eight thousand.
const NUMBER_BLOCKS: u64 = 64;

/// So often lines are asked for of which the articles that they are made from have just gone.
const MADE_TRIES: usize = 3;

/// A range of numbers.
pub(super) type Numbers = (ArticleNumber, ArticleNumber);

/// What came of a comparison with the server.
#[derive(Debug, Clone)]
pub(super) struct Compared {
    /// The group's when it began.
    generation: u64,
    range: Numbers,
    answer: Result<(), ServiceError>,
}

/// Blocks with their numbers, in order.
pub(super) type Blocks = Vec<(u64, Arc<Block>)>;

/// What is known of a range.
pub(super) struct Known {
    pub(super) blocks: Blocks,
    /// Nobody was asked for it.
    pub(super) is_kept: bool,
}

/// What must be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Which numbers are there.
    Numbers,
    /// The lines of those that are there.
    Lines,
    /// The message-ids of those that are there: of their lines no more need be known.
    Ids,
    /// Nothing: what is kept must only not be too old.
    Nothing,
}

/// The first and the last number of a range that is one of these.
pub(super) fn span(
    blocks: &Blocks,
    range: Numbers,
    wanted: impl Fn(&Block, u128) -> u128,
) -> Option<Numbers> {
    let mut each = blocks.iter().filter_map(|(number, block)| {
        let places = wanted(block, places_in(*number, range.0, range.1));
        let first = number * BLOCK_NUMBERS;
        let (low, high) = (places.trailing_zeros(), places.checked_ilog2()?);
        Some((first + u64::from(low), first + u64::from(high)))
    });
    let (low, high) = each.next()?;
    let high = each.last().map_or(high, |(_, high)| high);
    Some((ArticleNumber(low), ArticleNumber(high)))
}

/// A range cut to what a group has and to so many blocks; none: nothing of it is there.
fn window(group: &KeptGroup, range: Numbers, blocks: u64) -> Option<Numbers> {
    let low = range.0.max(group.low);
    let end = (place_of(low).0 + blocks) * BLOCK_NUMBERS - 1;
    let high = range.1.min(group.high).min(ArticleNumber(end));
    (low <= high).then_some((low, high))
}

/// The part of a range whose overview is told at once: to the end of a window as lines are fetched.
fn overview_window(group: &KeptGroup, range: Numbers) -> Option<Numbers> {
    let first = place_of(range.0.max(group.low)).0;
    window(group, range, WINDOW_BLOCKS - first % WINDOW_BLOCKS)
}

/// Whole blocks of a range, as far as the group has them.
fn widened(group: &KeptGroup, (low, high): Numbers) -> Numbers {
    let first = place_of(low).0 * BLOCK_NUMBERS;
    let last = (place_of(high).0 + 1) * BLOCK_NUMBERS - 1;
    let low = ArticleNumber(first).max(group.low);
    (low, ArticleNumber(last).min(group.high))
}

/// Where a listing goes on behind a window.
fn go_on(window: Numbers, range: Numbers, group: &KeptGroup) -> Option<ArticleNumber> {
    let next = ArticleNumber(window.1.0 + 1);
    (next <= range.1.min(group.high)).then_some(next)
}

impl<C: Connect> Inner<C> {
    /// Where a listing goes on behind a window: in front of a large gap at the next number that is there.
    async fn goes_on(
        &self,
        name: &Arc<str>,
        group: &KeptGroup,
        (window, range): (Numbers, Numbers),
        blocks: &Blocks,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        let Some(next) = go_on(window, range, group) else {
            return Ok(None);
        };
        let last = range.1.min(group.high);
        let first = place_of(window.1).0.saturating_sub(NUMBER_BLOCKS - 1);
        let before = ArticleNumber(first * BLOCK_NUMBERS).max(group.low);
        let is_far = last.0 - next.0 >= GAP_NUMBERS;
        let is_empty = is_far && present(blocks, window).next().is_none();
        if !is_empty || !self.has_none(name, (before, window.1)).await? {
            return Ok(Some(next));
        }
        match self.nearest(name, (window.1, last), Direction::Next).await {
            Some(nearest) => Ok(nearest),
            None => Ok(Some(next)),
        }
    }

    /// Whether it is known of all numbers of a range that they are not there.
    async fn has_none(&self, name: &Arc<str>, range: Numbers) -> Result<bool, ServiceError> {
        let blocks = match self.shows_kept_only() {
            true => self.known_of_kept(name, range).await?.blocks,
            false => self.blocks(name, range).await?,
        };
        let others = span(&blocks, range, |block, places| {
            places & (block.there() | !block.asked())
        });
        Ok(others.is_none())
    }

    /// The number nearest to one end of a range, that not included, that is there; none: nobody can be asked.  It is asked for each time, so that
    /// no more is kept of a gap than its beginning.
    async fn nearest(
        &self,
        name: &Arc<str>,
        (low, high): Numbers,
        direction: Direction,
    ) -> Option<Option<ArticleNumber>> {
        let from = match direction {
            Direction::Next => low,
            Direction::Last => high,
        };
        let is_within = |number: &ArticleNumber| (low..=high).contains(number) && *number != from;
        if self.shows_kept_only() {
            let name = Arc::clone(name);
            let looking = self.on_disk(move |keep| keep.numbers_kept(&name, (low, high)));
            let kept = looking.await.ok()?.into_iter().filter(is_within);
            return Some(match direction {
                Direction::Next => kept.min(),
                Direction::Last => kept.max(),
            });
        }
        let nearest = self.there.nearest(name, from, direction).await.ok()?;
        Some(nearest.filter(is_within))
    }

    /// Where a neighbour is looked for on: in front of a large gap beside the next number that is there; none: there is none.
    async fn jumped(
        &self,
        name: &Arc<str>,
        group: &KeptGroup,
        at: ArticleNumber,
        direction: Direction,
    ) -> Option<ArticleNumber> {
        let left = match direction {
            Direction::Next => (at, group.high),
            Direction::Last => (group.low, at),
        };
        if left.1.0.saturating_sub(left.0.0) < GAP_NUMBERS {
            return Some(at);
        }
        match self.nearest(name, left, direction).await {
            None => Some(at),
            Some(nearest) => nearest.map(|nearest| match direction {
                Direction::Next => ArticleNumber(nearest.0 - 1),
                Direction::Last => ArticleNumber(nearest.0 + 1),
            }),
        }
    }

    pub(super) async fn blocks(
        &self,
        name: &Arc<str>,
        (low, high): Numbers,
    ) -> Result<Blocks, ServiceError> {
        let numbers = place_of(low).0..=place_of(high).0;
        let in_memory: Option<Blocks> = numbers
            .clone()
            .map(|number| Some((number, self.keep.block_in_memory(name, number)?)))
            .collect();
        if let Some(blocks) = in_memory {
            return Ok(blocks);
        }
        let name = Arc::clone(name);
        let reading = self.on_disk(move |keep| {
            numbers
                .map(|number| (number, keep.block(&name, number)))
                .collect()
        });
        reading.await
    }

    /// What of a range is too old to be told.
    fn stale(&self, blocks: &Blocks, range: Numbers, need: Need) -> Option<Numbers> {
        let (now, age_s) = (self.there.now(), self.settings.refresh_s);
        span(blocks, range, |block, places| {
            let told = match need {
                Need::Numbers => places,
                // What was never asked for is asked for in any case.
                Need::Lines | Need::Ids | Need::Nothing => places & block.asked(),
            };
            told & !block.covered(now, age_s)
        })
    }

    /// What of a range must be asked for.
    fn unknown(blocks: &Blocks, range: Numbers, need: Need) -> Option<Numbers> {
        match need {
            Need::Lines | Need::Ids => span(blocks, range, |block, places| places & !block.asked()),
            Need::Numbers | Need::Nothing => None,
        }
    }

    /// Whether enough is known of a range to tell it, however old, and whatever the clock showed.
    fn is_told(blocks: &Blocks, range: Numbers, need: Need) -> bool {
        const END: UnixTime = UnixTime(u64::MAX);
        let missing = span(blocks, range, |block, places| match need {
            Need::Numbers => places & !block.covered(END, u64::MAX),
            Need::Lines | Need::Ids => places & !block.asked(),
            Need::Nothing => 0,
        });
        missing.is_none()
    }

    /// What is known of a range, after the server was asked for what has to be; none: it could not be kept, so the question
    /// is the server's.  `up_to` is where whoever asks will be when all is told that is wanted: what is behind the range is
    /// asked for in the same round trip.
    pub(super) async fn known(
        self: &Arc<Self>,
        (id, name): (GroupId, &Arc<str>),
        group: &KeptGroup,
        (range, up_to): (Numbers, ArticleNumber),
        need: Need,
    ) -> Result<Option<Known>, ServiceError> {
        let mut is_kept = true;
        for _ in 0..MADE_TRIES {
            let asking = self.known_as_kept((id, name), group, (range, up_to), need);
            let Some(known) = asking.await? else {
                return Ok(None);
            };
            is_kept &= known.is_kept;
            if need != Need::Lines {
                return Ok(Some(known));
            }
            let of = (name, group.generation);
            if let Some(blocks) = self.made_whole(of, known.blocks, range).await? {
                return Ok(Some(Known { blocks, is_kept }));
            }
        }
        Ok(None)
    }

    /// The same, with lines as they are kept.
    async fn known_as_kept(
        self: &Arc<Self>,
        (id, name): (GroupId, &Arc<str>),
        group: &KeptGroup,
        (range, up_to): (Numbers, ArticleNumber),
        need: Need,
    ) -> Result<Option<Known>, ServiceError> {
        if need != Need::Nothing && self.shows_kept_only() {
            return self.known_of_kept(name, range).await.map(Some);
        }
        let blocks = self.blocks(name, range).await?;
        if self.stale(&blocks, range, need).is_none() && Self::is_told(&blocks, range, need) {
            let is_kept = true;
            return Ok(Some(Known { blocks, is_kept }));
        }
        let up_to = up_to.min(group.high);
        let comparing = self.compared(name, group, (range, up_to), need);
        let mut blocks = comparing.await?;
        while let Some(unknown) = Self::unknown(&blocks, range, need) {
            match self.have_lines((id, name), group, (unknown, up_to)).await? {
                Asked::Here => {
                    blocks = self.blocks(name, range).await?;
                    // It cannot be kept.
                    if Self::unknown(&blocks, range, need) == Some(unknown) {
                        break;
                    }
                }
                // What others asked may be older than this question.
                Asked::Elsewhere => {
                    let comparing = self.compared(name, group, (range, up_to), need);
                    blocks = comparing.await?;
                }
            }
        }
        let (is_told, is_kept) = (Self::is_told(&blocks, range, need), false);
        Ok(is_told.then_some(Known { blocks, is_kept }))
    }

    /// What is known of a range, after it was compared with the server where it is too old.
    async fn compared(
        &self,
        name: &Arc<str>,
        group: &KeptGroup,
        (range, up_to): (Numbers, ArticleNumber),
        need: Need,
    ) -> Result<Blocks, ServiceError> {
        let had = self.blocks(name, range).await?;
        let may_wait_less = self.may_be_old() && Self::is_told(&had, range, need);
        let patience = may_wait_less.then_some(PATIENCE);
        let Some(mut turn) = self.comparing.wait_for(name, patience).await else {
            return Ok(had);
        };
        let blocks = self.blocks(name, range).await?;
        let Some(mut stale) = self.stale(&blocks, range, need) else {
            return Ok(blocks);
        };
        if let Some(last) = self.compared_meanwhile(turn.last(), group, stale) {
            return self.or_old(last, blocks);
        }
        // What is asked for next is too old as well, and is not by then; where nothing may be told again that was told before, it
        // would be asked for anew.
        let wide = window(group, (range.0, up_to), NUMBER_BLOCKS);
        if let Some(wide) = wide.filter(|wide| wide.1 > range.1 && self.settings.refresh_s > 0) {
            let blocks = self.blocks(name, wide).await?;
            stale = self.stale(&blocks, wide, need).unwrap_or(stale);
        }
        let (generation, asked) = (group.generation, widened(group, stale));
        let comparing = turn.ask(async {
            let answer = self.compare(name, generation, (asked, patience)).await;
            Compared {
                generation,
                range: asked,
                answer,
            }
        });
        match comparing.await.answer {
            Ok(()) => self.blocks(name, range).await,
            failed @ Err(_) => self.or_old(failed, blocks),
        }
    }

    /// What another's comparison brought while somebody waited who wants this part of a group compared, if that is an answer for him: it began
    /// since he came, or may have begun before.  One that failed is, whatever was compared.
    fn compared_meanwhile(
        &self,
        last: Option<(&Compared, TurnAsked)>,
        group: &KeptGroup,
        stale: Numbers,
    ) -> Option<Result<(), ServiceError>> {
        let (last, asked) = last?;
        let (low, high) = widened(group, stale);
        let is_of_it = last.generation == group.generation
            && last.range.0 <= low
            && high <= last.range.1
            && (asked == TurnAsked::Since || self.settings.refresh_s > 0);
        (last.answer.is_err() || is_of_it).then(|| last.answer.clone())
    }

    /// What is kept, which is better than nothing behind a failure, where it may be old at all.
    fn or_old(
        &self,
        answer: Result<(), ServiceError>,
        kept: Blocks,
    ) -> Result<Blocks, ServiceError> {
        match answer {
            Err(error) if !self.may_be_old() => Err(error),
            _ => Ok(kept),
        }
    }

    async fn compare(
        &self,
        name: &Arc<str>,
        generation: u64,
        (range, patience): (Numbers, Option<Duration>),
    ) -> Result<(), ServiceError> {
        // What is told of all of a group is not asked for again with each part of it.
        let known = self.whole_lists.get(name);
        let known = known.filter(|(of, list)| *of == generation && self.is_fresh(list.told));
        let (mut whole, had) = match known {
            Some((_, list)) => (Some(list), true),
            None => (None, false),
        };
        let within = (&mut whole, patience);
        let listing = self.there.numbers_listed(name, range, within);
        let (listed, told) = listing.await?;
        match whole {
            Some(list) => self.whole_lists.insert(name.clone(), (generation, list)),
            None if had => {
                self.whole_lists.remove(name);
            }
            None => {}
        }
        let name = Arc::clone(name);
        let comparing = self.on_disk(move |keep| {
            keep.compare((&name, generation), range, &listed, told);
            // By now they may be told.
            keep.forget_lines((&name, generation), &without_line(keep, &name, range));
        });
        comparing.await
    }

    pub(super) async fn numbers_in(
        self: &Arc<Self>,
        id: GroupId,
        range: Numbers,
        limit: usize,
        out: &mut Vec<ArticleNumber>,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        let Some((name, group)) = self.group_by_id(id).await? else {
            return Ok(None);
        };
        let Some(window) = window(&group, range, NUMBER_BLOCKS) else {
            return Ok(None);
        };
        let known = self.known((id, &name), &group, (window, window.1), Need::Numbers);
        let Some(known) = known.await? else {
            let there = &self.there;
            return there.numbers(id, range.0, range.1, limit, out).await;
        };
        let mut left = limit;
        for number in present(&known.blocks, window) {
            if left == 0 {
                return Ok(Some(number));
            }
            left -= 1;
            out.push(number);
        }
        let blocks = &known.blocks;
        self.goes_on(&name, &group, (window, range), blocks).await
    }

    pub(super) async fn overview_in(
        self: &Arc<Self>,
        id: GroupId,
        range: Numbers,
        limit_bytes: usize,
        rows: &mut OverviewRows,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        let Some((name, group)) = self.group_by_id(id).await? else {
            return Ok(None);
        };
        let Some(window) = overview_window(&group, range) else {
            return Ok(None);
        };
        let (had, begun) = (rows.len(), Instant::now());
        let known = self.known((id, &name), &group, (window, range.1), Need::Lines);
        let (is_kept, next) = match known.await? {
            Some(known) => {
                let next = match told(&known, window, limit_bytes, rows) {
                    Some(next) => Some(next),
                    None => {
                        let blocks = &known.blocks;
                        self.goes_on(&name, &group, (window, range), blocks).await?
                    }
                };
                (known.is_kept, next)
            }
            None => {
                let there = &self.there;
                let asking = there.overview(id, range.0, range.1, limit_bytes, rows);
                (false, asking.await?)
            }
        };
        let is_first = self.ahead.is_first(id, window.0);
        let is_kept = is_kept && !is_first;
        let octets = rows.len() - had;
        self.counts.overview.answered(is_kept, octets, begun);
        Ok(next)
    }

    pub(super) async fn neighbour_of(
        self: &Arc<Self>,
        id: GroupId,
        number: ArticleNumber,
        direction: Direction,
        out: &mut ArticleBuf,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        let Some((name, group)) = self.group_by_id(id).await? else {
            return Ok(None);
        };
        let mut at = number;
        loop {
            let whole = match direction {
                Direction::Next => (ArticleNumber(at.0.saturating_add(1)), group.high),
                Direction::Last => {
                    let high = ArticleNumber(at.0.saturating_sub(1)).min(group.high);
                    let first = place_of(high).0.saturating_sub(NUMBER_BLOCKS - 1);
                    (ArticleNumber(first * BLOCK_NUMBERS), high)
                }
            };
            let Some(window) = window(&group, whole, NUMBER_BLOCKS) else {
                return Ok(None);
            };
            let known = self.known((id, &name), &group, (window, window.1), Need::Numbers);
            let Some(known) = known.await? else {
                return self.there.neighbour(id, number, direction, out).await;
            };
            let mut all = present(&known.blocks, window);
            let nearest = match direction {
                Direction::Next => all.next(),
                Direction::Last => all.last(),
            };
            at = match (nearest, direction) {
                (Some(nearest), _) => nearest,
                (None, Direction::Next) => window.1,
                (None, Direction::Last) => window.0,
            };
            let Some(nearest) = nearest else {
                match self.jumped(&name, &group, at, direction).await {
                    Some(beside) => at = beside,
                    None => return Ok(None),
                }
                continue;
            };
            let one = (nearest, nearest);
            let known = self.known((id, &name), &group, (one, nearest), Need::Ids);
            let Some(known) = known.await? else {
                return self.there.neighbour(id, number, direction, out).await;
            };
            let line = lines(&known.blocks, one).next();
            if let Some(line) = line.and_then(|(_, line)| message_id(line)) {
                out.clear();
                out.set_id(line);
                return Ok(Some(nearest));
            }
            let is_there = present(&known.blocks, one).next().is_some();
            let query = ArticleQuery::ByNumber(id, nearest);
            if is_there && self.there.article(query, Part::Stat, out).await?.is_some() {
                return Ok(Some(nearest));
            }
        }
    }

    /// The name and the facts of a group.
    pub(super) async fn group_by_id(
        &self,
        id: GroupId,
    ) -> Result<Option<(Arc<str>, Arc<KeptGroup>)>, ServiceError> {
        let Some(name) = self.there.group_name(id) else {
            return Ok(None);
        };
        let group = self.facts(&name).await?;
        Ok(group.map(|group| (name, group)))
    }
}

/// A line of overview as it is sent, taken apart.
pub(super) fn numbered(line: &[u8]) -> Option<(ArticleNumber, &[u8])> {
    let line = line.strip_suffix(b"\r")?;
    let (number, line) = line.split_at_checked(line.iter().position(|octet| *octet == b'\t')?)?;
    Some((parse_number(number).ok()?, line.get(1..)?))
}

/// The numbers that are there.
fn present(blocks: &Blocks, range: Numbers) -> impl Iterator<Item = ArticleNumber> {
    blocks.iter().flat_map(move |(number, block)| {
        let places = places_in(*number, range.0, range.1);
        let there = places & (block.there() | !block.asked());
        each_of(there).map(move |place| number_at(*number, place))
    })
}

/// Appends the lines of a range; the number of the first that had no room.
fn told(
    known: &Known,
    range: Numbers,
    limit_bytes: usize,
    rows: &mut OverviewRows,
) -> Option<ArticleNumber> {
    let had = rows.len();
    for (number, line) in lines(&known.blocks, range) {
        // One line may go beyond the limit, so that every call gets on.
        if rows.len() > had && rows.len() >= limit_bytes {
            return Some(number);
        }
        rows.push(number, line);
    }
    None
}

/// The numbers of a range that are there without a line that can be read: an empty one stands for it.
fn without_line(keep: &Keep, name: &Arc<str>, range: Numbers) -> Vec<ArticleNumber> {
    let mut all = Vec::new();
    for number in place_of(range.0).0..=place_of(range.1).0 {
        let block = keep.block(name, number);
        let lines = block.lines_of(places_in(number, range.0, range.1));
        let empty = lines.filter(|(_, line)| line.is_empty());
        all.extend(empty.map(|(place, _)| number_at(number, place)));
    }
    all
}

/// The lines that are known.
pub(super) fn lines(
    blocks: &Blocks,
    range: Numbers,
) -> impl Iterator<Item = (ArticleNumber, &[u8])> {
    blocks.iter().flat_map(move |(number, block)| {
        let places = places_in(*number, range.0, range.1);
        let lines = block.lines_of(places).filter(|(_, line)| !line.is_empty());
        lines.map(move |(place, line)| (number_at(*number, place), line))
    })
}

/// The number at a place of a block.
pub(super) fn number_at(block: u64, place: u8) -> ArticleNumber {
    ArticleNumber(block * BLOCK_NUMBERS + u64::from(place))
}
