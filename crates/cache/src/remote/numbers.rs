//! Numbers and overview of a group, window by window, and the neighbours of a number.
//!
//! A window is as wide as what was asked for at most, so that an answer is bounded whatever the group; GROUP goes in front of
//! each in the same round trip and says where the group begins and ends.  Where it is refused nothing is taken of the answers behind it:
//! these are of the group that somebody selected on the connection before.  Of a gap the beginning is looked through window by window, and
//! the rest in windows that become wider.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use newsreel_net::client::{Client, ClientError, Connect};
use newsreel_service::{ArticleBuf, Direction, OverviewRows, ServiceError};
use newsreel_wire::overview::{OverviewFields, message_id};
use newsreel_wire::range::NUMBER_DIGITS_MAX;
use newsreel_wire::{ArticleNumber, GroupId, MessageId, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};

use super::ask::{Marks, asked, numbered};
use super::one::One;

/// The largest number that is asked for: marks have no more digits either.
const NUMBER_MAX: u64 = 10_u64.pow(NUMBER_DIGITS_MAX as u32) - 1;

/// What an overview line has at least, so that a window is not much wider than what was asked for.
const OVERVIEW_OCTETS_USUAL: usize = 256;

/// The widest window of overview lines: what the cache asks for at once.
const WINDOW_MAX: u64 = 1024;

/// The first window in which a neighbour is looked for.
const NEIGHBOUR_WINDOW: u64 = 32;

/// Runs of numbers of a list that is remembered.
const RUNS_MAX: usize = 1 << 18;

/// Where so many numbers or more are left behind a window without any the next one that is there is looked for.
pub(crate) const GAP_NUMBERS: u64 = 1 << 20;

/// Where a listing up to `high` goes on after a window that ended at `to`.
fn go_on(to: u64, high: u64, marks: Marks) -> Option<ArticleNumber> {
    let next = (to + 1).max(marks.low);
    (next <= high.min(marks.high)).then_some(ArticleNumber(next))
}

/// The answer to GROUP; none: there is no such group.
pub(super) async fn marks_of<Io>(client: &mut Client<Io>) -> Result<Option<Marks>, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    match client.reply("GROUP").await? {
        411 => Ok(None),
        code => {
            let marks = Marks::parse(client.text()).filter(|_| code == 211);
            marks.map_or_else(
                || Err(client.refused("GROUP", code)),
                |marks| Ok(Some(marks)),
            )
        }
    }
}

/// All numbers of a group, as a server told them that lists no part of one.
#[derive(Debug)]
pub(crate) struct WholeList {
    /// When it was asked for.
    pub(crate) told: UnixTime,
    /// Up to which number all are known.
    known_to: u64,
    /// The first and the last number of each run without a gap, in order.
    runs: Vec<(u64, u64)>,
}

impl WholeList {
    /// One that was asked for then; its numbers are still to come.
    const fn new(told: UnixTime) -> Self {
        Self {
            told,
            known_to: NUMBER_MAX,
            runs: Vec::new(),
        }
    }

    /// The next number has come.
    fn add(&mut self, number: ArticleNumber) {
        let is_full = self.runs.len() >= RUNS_MAX;
        match self.runs.last_mut() {
            Some((_, last)) if number.0 <= *last => {}
            Some((_, last)) if number.0 == *last + 1 && number.0 <= self.known_to => {
                *last = number.0;
            }
            Some((_, last)) if is_full => self.known_to = self.known_to.min(*last),
            _ => self.runs.push((number.0, number.0)),
        }
    }

    /// The numbers of a range; none: not all of them are known.
    fn within(&self, (low, high): (u64, u64)) -> Option<impl Iterator<Item = ArticleNumber>> {
        let first = self.runs.partition_point(|(_, last)| *last < low);
        let runs = self.runs.iter().skip(first);
        let runs = runs.take_while(move |(first, _)| *first <= high);
        let numbers = runs.flat_map(move |(first, last)| *first.max(&low)..=*last.min(&high));
        (high <= self.known_to).then(|| numbers.map(ArticleNumber))
    }
}

/// The number nearest to one.
struct Nearest {
    to: ArticleNumber,
    direction: Direction,
    found: Option<ArticleNumber>,
}

impl Nearest {
    /// The next number has come.
    fn look(&mut self, number: ArticleNumber) {
        match self.direction {
            Direction::Next if number > self.to && self.found.is_none() => {
                self.found = Some(number)
            }
            Direction::Last if number < self.to => self.found = Some(number),
            Direction::Next | Direction::Last => {}
        }
    }
}

/// Takes overview lines as they come.
pub(crate) trait TakeLines: Send {
    /// All lines have come that are there of a range: the next that was asked for, or its beginning where that were too many.  Of one
    /// that cannot be read there is the number alone.
    fn window(
        &mut self,
        range: (ArticleNumber, ArticleNumber),
        rows: OverviewRows,
    ) -> impl Future<Output = ()> + Send;
}

/// Puts a question for the overview lines of a window in the pipeline.
fn ask_overview<Io>(client: &mut Client<Io>, (low, high): (u64, u64)) -> Result<(), ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let range = format!("{low}-{high}");
    let over: &[u8] = if client.capabilities().has("OVER") {
        b"OVER"
    } else {
        b"XOVER"
    };
    client.command(&[over, range.as_bytes()])
}

/// Takes the answer to it, each line with its number.  Of one that cannot be read nothing is there but the number; where not even that
/// can be read, it may be any between its neighbours'.
async fn overview_lines<Io>(
    client: &mut Client<Io>,
    (low, high): (u64, u64),
    mut take: impl FnMut(ArticleNumber, &[u8]),
) -> Result<(), ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let take_gap = |take: &mut dyn FnMut(ArticleNumber, &[u8]), from: u64, to: u64| {
        (from..=to).for_each(|number| take(ArticleNumber(number), &[]));
    };
    match client.reply("OVER").await? {
        224 => {
            let (mut next, mut is_gap) = (low, false);
            while let Some(line) = client.line_or_gap("OVER").await? {
                let Some((number, fields)) = line.and_then(|line| numbered(line, b'\t')) else {
                    is_gap = true;
                    continue;
                };
                // In order and each once, as asked for.
                if number.0 < next || number.0 > high {
                    continue;
                }
                if is_gap {
                    take_gap(&mut take, next, number.0 - 1);
                }
                let is_line = OverviewFields::parse(fields).is_ok()
                    && message_id(fields).is_some_and(|id| MessageId::parse(id).is_ok());
                take(number, if is_line { fields } else { &[] });
                (next, is_gap) = (number.0 + 1, false);
            }
            if is_gap {
                take_gap(&mut take, next, high);
            }
            Ok(())
        }
        // RFC 2980 has 420 for a range without articles.
        420 | 423 => Ok(()),
        code => Err(client.refused("OVER", code)),
    }
}

/// Lines that are taken as long as there is room.
struct Room<'r> {
    rows: &'r mut OverviewRows,
    begun: usize,
    octets_max: usize,
    /// The first that had none.
    full: Option<ArticleNumber>,
}

impl<'r> Room<'r> {
    const fn new(rows: &'r mut OverviewRows, octets_max: usize) -> Self {
        Self {
            begun: rows.len(),
            rows,
            octets_max,
            full: None,
        }
    }

    /// One line may go beyond the limit, so that every call gets on.
    fn take(&mut self, number: ArticleNumber, line: &[u8]) {
        let is_first = self.rows.len() == self.begun;
        if self.full.is_none() && (is_first || self.rows.len() < self.octets_max) {
            self.rows.push(number, line);
        } else {
            self.full.get_or_insert(number);
        }
    }
}

/// Windows beside a number, in a direction, each twice as wide as the one before.
struct Steps {
    /// The last number that was looked at; none: there are no more.
    at: Option<u64>,
    width: u64,
    direction: Direction,
}

impl Steps {
    fn new(number: ArticleNumber, direction: Direction, width: u64) -> Self {
        Self {
            at: Some(number.0.min(NUMBER_MAX)),
            width,
            direction,
        }
    }

    /// The next one.
    fn window(&self) -> Option<(u64, u64)> {
        let at = self.at?;
        let (low, high) = match self.direction {
            Direction::Next => (at + 1, at.saturating_add(self.width).min(NUMBER_MAX)),
            Direction::Last => (at.saturating_sub(self.width).max(1), at.saturating_sub(1)),
        };
        (low <= high).then_some((low, high))
    }

    /// Nothing was in a window of a group with these marks.
    fn go_on(&mut self, (low, high): (u64, u64), marks: Marks) {
        let (at, is_over) = match self.direction {
            Direction::Next => {
                let at = high.max(marks.low - 1);
                (at, at >= marks.high)
            }
            Direction::Last => {
                let at = low.min(marks.high + 1);
                (at, at <= marks.low)
            }
        };
        self.at = (!is_over).then_some(at);
        self.width = self.width.saturating_mul(2);
    }
}

impl<C: Connect> One<C> {
    /// Takes the answer to GROUP in front of questions that are for that group.  Where it is refused these are answered for the group that
    /// was selected before (RFC 3977 section 6.1.1): the connection is of no use any more, and what is kept of the group is not told again
    /// before the server was asked whether it is there.
    pub(super) async fn select<Io>(
        &self,
        client: &mut Client<Io>,
        group: &str,
    ) -> Result<Marks, ClientError>
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        if let Some(marks) = marks_of(client).await? {
            self.has_selected(group);
            return Ok(marks);
        }
        self.is_gone(group);
        if let Some(keep) = self.common.kept.get() {
            keep.outdate_group(group);
        }
        Err(client.refused("GROUP", 411))
    }

    /// Takes the numbers of a range that are there, in order, or of the whole group from a server that lists no part of it; the group's
    /// marks, and whether it was the whole.
    async fn listed_in<Io>(
        &self,
        client: &mut Client<Io>,
        group: &str,
        (low, high): (u64, u64),
        mut take: impl FnMut(ArticleNumber),
    ) -> Result<(Marks, bool), ClientError>
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        const DOING: &str = "LISTGROUP";
        let range = format!("{low}-{high}");
        let whole: [&[u8]; 2] = [b"LISTGROUP", group.as_bytes()];
        let mut is_whole = self.lists_whole.load(Ordering::Relaxed);
        client.command(&[b"GROUP", group.as_bytes()])?;
        match is_whole {
            true => client.command(&whole)?,
            false => client.command(&[whole[0], whole[1], range.as_bytes()])?,
        }
        let marks = self.select(client, group).await?;
        let mut code = client.reply(DOING).await?;
        if code == 501 && !is_whole {
            client.command(&whole)?;
            code = client.reply(DOING).await?;
            is_whole = true;
            self.lists_whole.store(code == 211, Ordering::Relaxed);
        }
        if code != 211 {
            return Err(client.refused(DOING, code));
        }
        let (mut next, high) = match is_whole {
            true => (1, NUMBER_MAX),
            false => (low, high),
        };
        while let Some(line) = client.line(DOING).await? {
            if let Some((number, _)) = numbered(line, b' ')
                && (next..=high).contains(&number.0)
            {
                next = number.0 + 1;
                take(number);
            }
        }
        Ok((marks, is_whole))
    }

    /// Takes the overview lines of a window that can be read, each with its number.
    async fn overview_window<Io>(
        &self,
        client: &mut Client<Io>,
        group: &str,
        window: (u64, u64),
        mut take: impl FnMut(ArticleNumber, &[u8]),
    ) -> Result<Marks, ClientError>
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        client.command(&[b"GROUP", group.as_bytes()])?;
        ask_overview(client, window)?;
        let marks = self.select(client, group).await?;
        let taking = overview_lines(client, window, |number, line| {
            if !line.is_empty() {
                take(number, line);
            }
        });
        taking.await?;
        Ok(marks)
    }

    /// The number next to one that is there, in a direction, looked for in windows that become wider.
    pub(super) async fn nearest_in(
        &self,
        group: &str,
        number: ArticleNumber,
        direction: Direction,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        let mut steps = Steps::new(number, direction, WINDOW_MAX);
        while let Some(window) = steps.window() {
            let (marks, found) = asked!(self, client => {
                let (to, found) = (number, None);
                let mut nearest = Nearest { to, direction, found };
                let listing = self.listed_in(&mut client, group, window, |it| nearest.look(it));
                let (marks, is_whole) = listing.await?;
                Ok(((!is_whole).then_some(marks), nearest.found))
            });
            // Of the whole group there is no next window.
            let Some(marks) = marks.filter(|_| found.is_none()) else {
                return Ok(found);
            };
            steps.go_on(window, marks);
        }
        Ok(None)
    }

    /// The numbers of a range of a group that are there, and when they were told.  `whole` is what is known of it from a server that lists no
    /// part of a group, and is that afterwards.
    pub(super) async fn listed_of(
        &self,
        group: &str,
        range: (ArticleNumber, ArticleNumber),
        (whole, patience): (&mut Option<Arc<WholeList>>, Option<Duration>),
    ) -> Result<(Vec<ArticleNumber>, UnixTime), ServiceError> {
        let range = (range.0.0.max(1), range.1.0.min(NUMBER_MAX));
        if let Some(known) = &*whole
            && let Some(numbers) = known.within(range)
        {
            return Ok((numbers.collect(), known.told));
        }
        let now = UnixTime(self.common.clock.now().secs);
        let (listed, all) = asked!(self, within patience, client => {
            let (mut listed, mut all) = (Vec::new(), WholeList::new(now));
            let listing = self.listed_in(&mut client, group, range, |number| {
                all.add(number);
                if (range.0..=range.1).contains(&number.0) {
                    listed.push(number);
                }
            });
            let (marks, is_whole) = listing.await?;
            all.known_to = all.known_to.min(marks.high);
            Ok((listed, is_whole.then(|| Arc::new(all))))
        });
        *whole = all;
        Ok((listed, now))
    }

    /// Where a listing up to `high` goes on after a window that ended at `to`: behind one without anything, and in front of a large gap,
    /// at the next number that is there.
    async fn goes_on(
        &self,
        group: &str,
        (to, high): (u64, u64),
        marks: Marks,
        is_empty: bool,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        let next = go_on(to, high, marks);
        if !is_empty || next.is_none_or(|next| high.min(marks.high) - next.0 < GAP_NUMBERS) {
            return Ok(next);
        }
        let (to, direction) = (ArticleNumber(to), Direction::Next);
        let next = self.nearest_in(group, to, direction).await?;
        Ok(next.filter(|next| next.0 <= high))
    }

    pub(super) async fn numbers_in(
        &self,
        group: GroupId,
        range: (ArticleNumber, ArticleNumber),
        limit: usize,
        out: &mut Vec<ArticleNumber>,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        let Some(name) = self.common.names.lock().name(group) else {
            return Ok(None);
        };
        let (low, high) = (range.0.0.max(1), range.1.0.min(NUMBER_MAX));
        let width = u64::try_from(limit).unwrap_or(u64::MAX);
        let to = high.min(low.saturating_add(width).saturating_sub(1));
        if to < low {
            return Ok(None);
        }
        let begun = out.len();
        let marks = asked!(self, client => {
            out.truncate(begun);
            let listing = self.listed_in(&mut client, &name, (low, to), |number| {
                if (low..=to).contains(&number.0) {
                    out.push(number);
                }
            });
            Ok(listing.await?.0)
        });
        let is_empty = out.len() == begun;
        self.goes_on(&name, (to, high), marks, is_empty).await
    }

    pub(super) async fn overview_in(
        &self,
        group: GroupId,
        range: (ArticleNumber, ArticleNumber),
        limit_bytes: usize,
        rows: &mut OverviewRows,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        let Some(name) = self.common.names.lock().name(group) else {
            return Ok(None);
        };
        let (low, high) = (range.0.0.max(1), range.1.0.min(NUMBER_MAX));
        let room = limit_bytes.saturating_sub(rows.len()) / OVERVIEW_OCTETS_USUAL;
        let width = u64::try_from(room).unwrap_or(u64::MAX).clamp(1, WINDOW_MAX);
        let to = high.min(low.saturating_add(width - 1));
        if to < low {
            return Ok(None);
        }
        let begun = rows.len();
        let (marks, full) = asked!(self, client => {
            rows.buffer().truncate(begun);
            let mut room = Room::new(rows, limit_bytes);
            let taking = self.overview_window(&mut client, &name, (low, to), |number, line| {
                room.take(number, line);
            });
            let marks = taking.await?;
            Ok((marks, room.full))
        });
        if full.is_some() {
            return Ok(full);
        }
        let is_empty = rows.len() == begun;
        self.goes_on(&name, (to, high), marks, is_empty).await
    }

    /// Asks for the overview lines of ranges of a group in one round trip; they are taken range by range as they come, of each no
    /// more than so many octets and a line.
    pub(super) async fn lines_in(
        &self,
        group: &str,
        ranges: &[(ArticleNumber, ArticleNumber)],
        octets_max: usize,
        take: &mut impl TakeLines,
    ) -> Result<(), ServiceError> {
        let mut rest = ranges;
        asked!(self, client => {
            client.command(&[b"GROUP", group.as_bytes()])?;
            for (low, high) in rest {
                ask_overview(&mut client, (low.0, high.0))?;
            }
            self.select(&mut client, group).await?;
            while let Some(((low, high), behind)) = rest.split_first() {
                let mut rows = OverviewRows::default();
                let mut room = Room::new(&mut rows, octets_max);
                let taking = overview_lines(&mut client, (low.0, high.0), |number, line| {
                    room.take(number, line);
                });
                taking.await?;
                let end = room.full.map_or(*high, |next| ArticleNumber(next.0.saturating_sub(1)));
                rest = behind;
                take.window((*low, end), rows).await;
            }
            Ok(())
        });
        Ok(())
    }

    pub(super) async fn neighbour_of(
        &self,
        group: GroupId,
        number: ArticleNumber,
        direction: Direction,
        out: &mut ArticleBuf,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        let Some(name) = self.common.names.lock().name(group) else {
            return Ok(None);
        };
        let mut steps = Steps::new(number, direction, NEIGHBOUR_WINDOW);
        while let Some(window) = steps.window() {
            let (marks, found) = asked!(self, client => {
                let mut found = None;
                let taking = self.overview_window(&mut client, &name, window, |number, line| {
                    let is_nearer = found.is_none() || direction == Direction::Last;
                    if let Some(id) = message_id(line).filter(|_| is_nearer) {
                        out.set_id(id);
                        found = Some(number);
                    }
                });
                let marks = taking.await?;
                Ok((marks, found))
            });
            if found.is_some() {
                return Ok(found);
            }
            steps.go_on(window, marks);
            if let Some(at) = steps.at.filter(|_| steps.width > WINDOW_MAX) {
                let looking = self.nearest_in(&name, ArticleNumber(at), direction);
                let Some(nearest) = looking.await? else {
                    return Ok(None);
                };
                let beside = match direction {
                    Direction::Next => nearest.0 - 1,
                    Direction::Last => nearest.0 + 1,
                };
                steps = Steps::new(ArticleNumber(beside), direction, NEIGHBOUR_WINDOW);
            }
        }
        Ok(None)
    }

    pub(super) async fn overview_of(
        &self,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> Result<bool, ServiceError> {
        let begun = rows.len();
        let is_found = asked!(self, client => {
            rows.buffer().truncate(begun);
            client.command(&[b"OVER", id.as_bytes()])?;
            match client.reply("OVER").await? {
                224 => {
                    while let Some(line) = client.line("OVER").await? {
                        if let Some((_, fields)) = numbered(line, b'\t')
                            && rows.len() == begun
                            && message_id(fields) == Some(id.as_bytes())
                        {
                            rows.push(ArticleNumber(0), fields);
                        }
                    }
                    Ok(rows.len() > begun)
                }
                430 => Ok(false),
                code => Err(client.refused("OVER", code)),
            }
        });
        Ok(is_found)
    }
}
