//! Numbers and overview of a group, window by window, and the neighbours of a number.
//!
//! A window is as wide as what was asked for at most, so that an answer is bounded whatever the group; GROUP goes in front of
//! each in the same round trip and says where the group begins and ends, so that gaps are jumped.

use std::future::Future;

use newsreel_net::client::{Client, ClientError, Connect};
use newsreel_service::{ArticleBuf, Direction, OverviewRows, ServiceError};
use newsreel_wire::overview::{OverviewFields, message_id};
use newsreel_wire::{ArticleNumber, GroupId, MessageId};
use tokio::io::{AsyncRead, AsyncWrite};

use super::ask::{Marks, asked, numbered};
use super::one::One;

/// The largest number that servers have to understand (RFC 3977 section 6).
const NUMBER_MAX: u64 = (1 << 31) - 1;

/// What an overview line has at least, so that a window is not much wider than what was asked for.
const OVERVIEW_OCTETS_USUAL: usize = 256;

/// The widest window of overview lines: what the cache asks for at once.
const WINDOW_MAX: u64 = 1024;

/// The first window in which a neighbour is looked for.
const NEIGHBOUR_WINDOW: u64 = 32;

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
    ((low, high), has_group): ((u64, u64), bool),
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
                let is_line = OverviewFields::parse(fields).is_ok();
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
        412 if !has_group => Ok(()),
        code => Err(client.refused("OVER", code)),
    }
}

/// Takes the overview lines of a window that can be read, each with its number.
async fn overview_window<Io>(
    client: &mut Client<Io>,
    group: &str,
    window: (u64, u64),
    mut take: impl FnMut(ArticleNumber, &[u8]),
) -> Result<Option<Marks>, ClientError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    client.command(&[b"GROUP", group.as_bytes()])?;
    ask_overview(client, window)?;
    let marks = marks_of(client).await?;
    let taking = overview_lines(client, (window, marks.is_some()), |number, line| {
        if !line.is_empty() {
            take(number, line);
        }
    });
    taking.await?;
    Ok(marks)
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

impl<C: Connect> One<C> {
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
        let window = format!("{low}-{to}");
        let begun = out.len();
        let marks = asked!(self, client => {
            out.truncate(begun);
            client.command(&[b"GROUP", name.as_bytes()])?;
            client.command(&[b"LISTGROUP", name.as_bytes(), window.as_bytes()])?;
            let marks = marks_of(&mut client).await?;
            match client.reply("LISTGROUP").await? {
                211 => {
                    let mut last = low - 1;
                    while let Some(line) = client.line("LISTGROUP").await? {
                        if let Some((number, _)) = numbered(line, b' ')
                            && number.0 > last
                            && number.0 <= to
                        {
                            last = number.0;
                            out.push(number);
                        }
                    }
                }
                411 => {}
                code => return Err(client.refused("LISTGROUP", code)),
            }
            Ok(marks)
        });
        Ok(marks.and_then(|marks| go_on(to, high, marks)))
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
            let taking = overview_window(&mut client, &name, (low, to), |number, line| {
                room.take(number, line);
            });
            let marks = taking.await?;
            Ok((marks, room.full))
        });
        Ok(full.or_else(|| marks.and_then(|marks| go_on(to, high, marks))))
    }

    /// Asks for the overview lines of ranges of a group in one round trip; they are taken range by range as they come, of each no
    /// more than so many octets and a line.  Of a group that is not there nothing is.
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
            let is_there = marks_of(&mut client).await?.is_some();
            if is_there {
                self.has_selected(group);
            }
            while let Some(((low, high), behind)) = rest.split_first() {
                let mut rows = OverviewRows::default();
                let mut room = Room::new(&mut rows, octets_max);
                let window = ((low.0, high.0), is_there);
                let taking = overview_lines(&mut client, window, |number, line| {
                    room.take(number, line);
                });
                taking.await?;
                let end = room.full.map_or(*high, |next| ArticleNumber(next.0.saturating_sub(1)));
                rest = behind;
                if is_there {
                    take.window((*low, end), rows).await;
                }
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
        let (mut at, mut width) = (number.0.min(NUMBER_MAX), NEIGHBOUR_WINDOW);
        loop {
            let (low, high) = match direction {
                Direction::Next => (at + 1, at + width),
                Direction::Last => (at.saturating_sub(width).max(1), at.saturating_sub(1)),
            };
            if high < low {
                return Ok(None);
            }
            let (marks, found) = asked!(self, client => {
                let mut found = None;
                let taking = overview_window(&mut client, &name, (low, high), |number, line| {
                    let is_nearer = found.is_none() || direction == Direction::Last;
                    let id = message_id(line).filter(|id| MessageId::parse(id).is_ok());
                    if let Some(id) = id.filter(|_| is_nearer) {
                        out.set_id(id);
                        found = Some(number);
                    }
                });
                let marks = taking.await?;
                Ok((marks, found))
            });
            let Some(marks) = marks else {
                return Ok(None);
            };
            if found.is_some() {
                return Ok(found);
            }
            (at, width) = match direction {
                Direction::Next => (high.max(marks.low - 1), width * 2),
                Direction::Last => (low.min(marks.high + 1), width * 2),
            };
            let is_over = match direction {
                Direction::Next => at >= marks.high,
                Direction::Last => at <= marks.low,
            };
            if is_over {
                return Ok(None);
            }
            width = width.min(WINDOW_MAX);
        }
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
