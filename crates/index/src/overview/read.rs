//! Reading rows: by number, in ranges, to the neighbours, by arrival.
//!
//! Every reader works on one snapshot of the parts, from the oldest to the newest, and offers only what is alive now.
//! What cannot be read is never passed over: the answer is an error until it is rebuilt, for the groups with rows in a
//! damaged block, and for those that may have some in a pack that is missing.  Long answers come in pieces: whoever asked goes on
//! from the number given back.

use std::ops::ControlFlow;
use std::sync::Arc;

use newsreel_wire::overview::write_numbered;
use newsreel_wire::{ArticleNumber, GroupId, Token, UnixTime};

use super::block::Columns;
use super::pack::{Block, Pack};
use super::tail::{Copied, TailPart, TailRow};
use super::withdrawn::OfGroup;
use super::{Column, Overview, Parts};
use crate::error::{Error, Result};
use crate::liveness::{Floors, Share};
use crate::sealed::reader::Wait;

/// What a reader of ranges carries along.
pub(super) struct Range<'a> {
    group: GroupId,
    /// The next number wanted.
    from: u64,
    to: u64,
    floors: Floors<'a>,
    withdrawn: Option<OfGroup>,
    wait: Wait,
}

impl Range<'_> {
    fn is_withdrawn(&self, number: u64) -> bool {
        let withdrawn = self.withdrawn.as_ref();
        withdrawn.is_some_and(|withdrawn| withdrawn.has(number))
    }

    /// Whether the article of a row is alive and was not withdrawn.
    pub(super) fn offers(&mut self, number: u64, token: &Token) -> bool {
        self.floors.is_live(token) && !self.is_withdrawn(number)
    }

    /// What was appended before the disk would have to be asked is a piece of the answer.
    fn piece(
        &self,
        result: Result<Option<ArticleNumber>>,
        has_some: bool,
    ) -> Result<Option<ArticleNumber>> {
        match result {
            Err(Error::WouldBlock) if has_some => Ok(Some(ArticleNumber(self.from))),
            other => other,
        }
    }
}

/// A row seen by its columns.
pub(super) enum Seen<'a> {
    Tail(&'a TailPart, &'a TailRow),
    Block(&'a Columns, usize),
}

impl Seen<'_> {
    pub(super) fn column(&self) -> Column {
        match self {
            Self::Tail(_, row) => Column {
                number: ArticleNumber(row.number),
                token: row.token,
                arrival: UnixTime(u64::from(row.arrival)),
                flags: row.flags,
            },
            Self::Block(columns, row) => columns.without_text(*row),
        }
    }

    pub(super) fn id(&self) -> &[u8] {
        match self {
            Self::Tail(part, row) => part.id(row),
            Self::Block(columns, row) => columns.id(*row),
        }
    }
}

impl Overview {
    pub(super) fn range(&self, group: GroupId, from: u64, to: u64, wait: Wait) -> Range<'_> {
        Range {
            group,
            from,
            to,
            floors: self.floors(),
            withdrawn: self.withdrawn.of(group),
            wait,
        }
    }

    /// Looks into the blocks that may hold numbers of the range, from the oldest, until one has an answer.  Behind each,
    /// the range begins behind it.
    fn in_blocks<T>(
        &self,
        parts: &Parts,
        range: &mut Range<'_>,
        mut look: impl FnMut(&Pack, &Block, &mut Range<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        self.all_there(parts, range.group, (range.from, range.to))?;
        for (pack, block) in Self::blocks(parts, range.group, range.from, range.to) {
            if block.last < range.from {
                continue;
            }
            match look(pack, &block, range) {
                Ok(None) => {}
                Ok(found) => return Ok(found),
                Err(error) => return Err(self.layers.noted(pack.meta(), error)),
            }
            range.from = block.last + 1;
        }
        Ok(None)
    }

    /// The row of a number, if its article is alive; its message-id goes to `id`.
    ///
    /// # Errors
    /// When the block that has it cannot be read, or a pack is missing that might have it.
    pub fn column(
        &self,
        group: GroupId,
        number: ArticleNumber,
        wait: Wait,
        id: &mut Vec<u8>,
    ) -> Result<Option<Column>> {
        let mut range = self.range(group, number.0, number.0, wait);
        id.clear();
        if range.is_withdrawn(number.0) {
            return Ok(None);
        }
        let parts = self.layers.load();
        let mut answer = |seen: &Seen<'_>| {
            let column = seen.column();
            let is_live = range.floors.is_live(&column.token);
            if is_live {
                id.extend_from_slice(seen.id());
            }
            is_live.then_some(column)
        };
        for part in parts.parts().rev() {
            if let Some(row) = part.find(group, number) {
                return Ok(answer(&Seen::Tail(part, &row)));
            }
        }
        for pack in parts.runs.open().rev() {
            for nth in pack.find(group, number.0, number.0) {
                let Some(block) = pack.block(nth) else {
                    continue;
                };
                let columns = pack
                    .columns(&block, &self.cache, wait)
                    .map_err(|error| self.layers.noted(pack.meta(), error))?;
                let row = columns.position(number.0);
                if row < columns.len() && columns.number(row) == number.0 {
                    return Ok(answer(&Seen::Block(&columns, row)));
                }
            }
        }
        let only = (number.0, number.0);
        self.all_there(&parts, group, only).map(|()| None)
    }

    /// Appends the numbers alive in `low..=high`, ascending, until `out` has `limit`; the number to go on from, if
    /// there may be more.
    ///
    /// # Errors
    /// When the disk fails, something is damaged or missing that may have some of them, or [`Error::WouldBlock`] when
    /// already the first of them cannot be had without the disk.  Others are given back, to be gone on from.
    pub fn numbers(
        &self,
        group: GroupId,
        (low, high): (ArticleNumber, ArticleNumber),
        limit: usize,
        wait: Wait,
        out: &mut Vec<ArticleNumber>,
    ) -> Result<Option<ArticleNumber>> {
        let parts = self.layers.load();
        let mut range = self.range(group, low.0, high.0, wait);
        let begun = out.len();
        let result = self.all_numbers(&parts, &mut range, limit, out);
        strike(out, begun, range.withdrawn.as_ref());
        range.piece(result, out.len() > begun)
    }

    fn all_numbers(
        &self,
        parts: &Parts,
        range: &mut Range<'_>,
        limit: usize,
        out: &mut Vec<ArticleNumber>,
    ) -> Result<Option<ArticleNumber>> {
        let next = self.in_blocks(parts, range, |pack, block, range| {
            // The limit is looked at between blocks only, so up to a block's worth may be above it.
            if out.len() >= limit {
                return Ok(Some(ArticleNumber(block.first.max(range.from))));
            }
            self.block_numbers(pack, block, range, out).map(|()| None)
        })?;
        if next.is_some() {
            return Ok(next);
        }
        for part in parts.parts() {
            let span = (range.from, range.to);
            let next = part.numbers(range.group, span, limit, &mut range.floors, out);
            if next.is_some() {
                return Ok(next.map(ArticleNumber));
            }
            if let Some((_, last)) = part.bounds(range.group) {
                range.from = range.from.max(last.saturating_add(1));
            }
        }
        Ok(None)
    }

    fn block_numbers(
        &self,
        pack: &Pack,
        block: &Block,
        range: &mut Range<'_>,
        out: &mut Vec<ArticleNumber>,
    ) -> Result<()> {
        let share = pack.alive(block, &mut range.floors).share;
        match share {
            Share::None => return Ok(()),
            Share::All if block.is_dense() => {
                let numbers = block.first.max(range.from)..=block.last.min(range.to);
                out.extend(numbers.map(ArticleNumber));
                return Ok(());
            }
            Share::All | Share::Some => {}
        }
        let columns = pack.columns(block, &self.cache, range.wait)?;
        let from = columns.position(range.from);
        let until = columns.position(range.to.saturating_add(1));
        if share == Share::All {
            columns.extend_numbers(from, until, out);
            return Ok(());
        }
        for row in from..until {
            if range.floors.is_live(&columns.token(row)) {
                out.push(ArticleNumber(columns.number(row)));
            }
        }
        Ok(())
    }

    /// Appends the lines of the articles alive in `low..=high` as OVER sends them, ascending, until `out` has `limit`
    /// octets; the number to go on from, if there may be more.
    ///
    /// # Errors
    /// As [`Overview::numbers`].
    pub fn lines(
        &self,
        group: GroupId,
        (low, high): (ArticleNumber, ArticleNumber),
        limit: usize,
        wait: Wait,
        out: &mut Vec<u8>,
    ) -> Result<Option<ArticleNumber>> {
        let parts = self.layers.load();
        let mut range = self.range(group, low.0, high.0, wait);
        let begun = out.len();
        let result = self.in_blocks(&parts, &mut range, |pack, block, range| {
            self.block_lines(pack, block, range, limit, out)
        });
        let next = range.piece(result, out.len() > begun)?;
        if next.is_some() {
            return Ok(next);
        }
        for part in parts.parts() {
            let stopped = tail_rows(part, &mut range, |row| {
                write_numbered(ArticleNumber(row.number), part.text(row), out);
                if out.len() >= limit {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            });
            if stopped {
                return Ok(Some(ArticleNumber(range.from)));
            }
        }
        Ok(None)
    }

    fn block_lines(
        &self,
        pack: &Pack,
        block: &Block,
        range: &mut Range<'_>,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<Option<ArticleNumber>> {
        let share = pack.alive(block, &mut range.floors).share;
        if share == Share::None {
            return Ok(None);
        }
        let (columns, text) = pack.whole(block, &self.cache, range.wait)?;
        let mut row = columns.position(range.from);
        let until = columns.position(range.to.saturating_add(1));
        let as_they_are = share == Share::All && range.withdrawn.is_none();
        while row < until {
            let room = limit.saturating_sub(out.len());
            let rows = match as_they_are {
                true => columns.rows_with(row, room).min(until - row),
                false => 1,
            };
            if as_they_are || range.offers(columns.number(row), &columns.token(row)) {
                out.extend_from_slice(columns.lines(row, row + rows, &text));
            }
            row += rows;
            if out.len() >= limit {
                return Ok(Some(ArticleNumber(columns.number(row - 1)).next()));
            }
        }
        Ok(None)
    }

    /// Visits message-id and token of the articles alive with numbers from `low` that arrived at or after `since`,
    /// until the visitor breaks; the number to go on from, if it did.
    ///
    /// # Errors
    /// As [`Overview::lines`].
    pub fn newnews(
        &self,
        group: GroupId,
        low: ArticleNumber,
        since: UnixTime,
        wait: Wait,
        mut visit: impl FnMut(&Token, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<ArticleNumber>> {
        let since = u32::try_from(since.0).unwrap_or(u32::MAX);
        let parts = self.layers.load();
        let mut range = self.range(group, low.0, u64::MAX, wait);
        let next = self.in_blocks(&parts, &mut range, |pack, block, range| {
            self.block_news(pack, block, since, range, &mut visit)
        })?;
        if next.is_some() {
            return Ok(next);
        }
        for part in parts.parts() {
            if part.arrival_max(group).is_none_or(|latest| latest < since) {
                continue;
            }
            let stopped = tail_rows(part, &mut range, |row| {
                if row.arrival < since {
                    return ControlFlow::Continue(());
                }
                visit(&row.token, part.id(row))
            });
            if stopped {
                return Ok(Some(ArticleNumber(range.from)));
            }
        }
        Ok(None)
    }

    fn block_news(
        &self,
        pack: &Pack,
        block: &Block,
        since: u32,
        range: &mut Range<'_>,
        visit: &mut impl FnMut(&Token, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<ArticleNumber>> {
        let is_older = block.arrival_max < since;
        if is_older || pack.alive(block, &mut range.floors).share == Share::None {
            return Ok(None);
        }
        let columns = pack.columns(block, &self.cache, range.wait)?;
        for row in columns.position(range.from)..columns.len() {
            let (number, token) = (columns.number(row), columns.token(row));
            if columns.arrival(row) >= since
                && range.offers(number, &token)
                && visit(&token, columns.id(row)).is_break()
            {
                return Ok(Some(ArticleNumber(number.saturating_add(1))));
            }
        }
        Ok(None)
    }

    /// Visits the columns and message-ids of the articles alive with numbers from `low`, ascending, until the visitor
    /// breaks; the number to go on from, if it did.
    ///
    /// # Errors
    /// As [`Overview::lines`].
    pub fn rows(
        &self,
        group: GroupId,
        low: ArticleNumber,
        wait: Wait,
        mut visit: impl FnMut(&Column, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<ArticleNumber>> {
        let parts = self.layers.load();
        let mut range = self.range(group, low.0, u64::MAX, wait);
        let next = self.in_blocks(&parts, &mut range, |pack, block, range| {
            if pack.alive(block, &mut range.floors).share == Share::None {
                return Ok(None);
            }
            let columns = pack.columns(block, &self.cache, range.wait)?;
            for row in columns.position(range.from)..columns.len() {
                let seen = Seen::Block(&columns, row);
                let column = seen.column();
                let number = column.number.0;
                if range.offers(number, &column.token) && visit(&column, seen.id()).is_break() {
                    return Ok(Some(ArticleNumber(number.saturating_add(1))));
                }
            }
            Ok(None)
        })?;
        if next.is_some() {
            return Ok(next);
        }
        for part in parts.parts() {
            let stopped = tail_rows(part, &mut range, |row| {
                let seen = Seen::Tail(part, row);
                visit(&seen.column(), seen.id())
            });
            if stopped {
                return Ok(Some(ArticleNumber(range.from)));
            }
        }
        Ok(None)
    }

    /// Visits the rows of a group whose articles are alive, as far as they can be read, until the visitor breaks.
    pub fn sample(&self, group: GroupId, mut visit: impl FnMut(&Column) -> ControlFlow<()>) {
        let parts = self.layers.load();
        let mut range = self.range(group, 0, u64::MAX, Wait::Yes);
        for (pack, block) in Self::blocks(&parts, group, 0, u64::MAX) {
            let Ok(columns) = pack.columns(&block, &self.cache, Wait::Yes) else {
                continue;
            };
            for row in 0..columns.len() {
                let column = Seen::Block(&columns, row).column();
                if range.offers(column.number.0, &column.token) && visit(&column).is_break() {
                    return;
                }
            }
        }
        for part in parts.parts() {
            let seen = |row: &TailRow| visit(&Seen::Tail(part, row).column());
            if tail_rows(part, &mut range, seen) {
                return;
            }
        }
    }

    /// The row of the next number above `number` whose article is alive; its message-id goes to `id`.
    ///
    /// # Errors
    /// As [`Overview::column`].
    pub fn next_live(
        &self,
        group: GroupId,
        number: ArticleNumber,
        wait: Wait,
        id: &mut Vec<u8>,
    ) -> Result<Option<Column>> {
        let mut from = number.next();
        loop {
            let Some(next) = self.first_live(group, from.0, wait)? else {
                id.clear();
                return Ok(None);
            };
            let column = self.column(group, ArticleNumber(next), wait, id)?;
            if column.is_some() {
                return Ok(column);
            }
            from = ArticleNumber(next).next();
        }
    }

    /// The row of the next number below `number` whose article is alive; its message-id goes to `id`.
    ///
    /// # Errors
    /// As [`Overview::column`].
    pub fn prev_live(
        &self,
        group: GroupId,
        number: ArticleNumber,
        wait: Wait,
        id: &mut Vec<u8>,
    ) -> Result<Option<Column>> {
        let mut to = number.0;
        loop {
            let below = to.checked_sub(1);
            let last = match below {
                Some(below) => self.last_live(group, below, wait)?,
                None => None,
            };
            let Some(last) = last else {
                id.clear();
                return Ok(None);
            };
            let column = self.column(group, ArticleNumber(last), wait, id)?;
            if column.is_some() {
                return Ok(column);
            }
            to = last;
        }
    }

    /// The lowest number alive that is at least `from`.
    pub(crate) fn first_live(&self, group: GroupId, from: u64, wait: Wait) -> Result<Option<u64>> {
        let parts = self.layers.load();
        let mut range = self.range(group, from, u64::MAX, wait);
        let mut first = self.in_blocks(&parts, &mut range, |pack, block, range| {
            self.first_in_block(pack, block, range)
        })?;
        if first.is_some() {
            return Ok(first);
        }
        for part in parts.parts() {
            let stopped = tail_rows(part, &mut range, |row| {
                first = Some(row.number);
                ControlFlow::Break(())
            });
            if stopped {
                break;
            }
        }
        Ok(first)
    }

    fn first_in_block(
        &self,
        pack: &Pack,
        block: &Block,
        range: &mut Range<'_>,
    ) -> Result<Option<u64>> {
        let share = pack.alive(block, &mut range.floors).share;
        if share == Share::None {
            return Ok(None);
        }
        if share == Share::All && range.from <= block.first && !range.is_withdrawn(block.first) {
            return Ok(Some(block.first));
        }
        let columns = pack.columns(block, &self.cache, range.wait)?;
        for row in columns.position(range.from)..columns.len() {
            let number = columns.number(row);
            if range.offers(number, &columns.token(row)) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// The highest number alive that is at most `to`.
    fn last_live(&self, group: GroupId, to: u64, wait: Wait) -> Result<Option<u64>> {
        let parts = self.layers.load();
        let mut range = self.range(group, 0, to, wait);
        let mut copied = Copied::new();
        for part in parts.parts().rev() {
            let mut until = to;
            loop {
                part.copy_rows_back(group, 0, until, &mut copied);
                let Some(lowest) = copied.last().map(|row| row.number) else {
                    break;
                };
                for row in &copied {
                    if range.offers(row.number, &row.token) {
                        return Ok(Some(row.number));
                    }
                }
                let Some(below) = lowest.checked_sub(1) else {
                    break;
                };
                until = below;
            }
        }
        self.all_there(&parts, group, (0, to))?;
        for pack in parts.runs.open().rev() {
            for nth in pack.find(group, 0, to).rev() {
                let Some(block) = pack.block(nth) else {
                    continue;
                };
                match self.last_in_block(pack, &block, &mut range) {
                    Ok(None) => {}
                    Ok(last) => return Ok(last),
                    Err(error) => return Err(self.layers.noted(pack.meta(), error)),
                }
            }
        }
        Ok(None)
    }

    fn last_in_block(
        &self,
        pack: &Pack,
        block: &Block,
        range: &mut Range<'_>,
    ) -> Result<Option<u64>> {
        if pack.alive(block, &mut range.floors).share == Share::None {
            return Ok(None);
        }
        let columns = pack.columns(block, &self.cache, range.wait)?;
        for row in (0..columns.position(range.to.saturating_add(1))).rev() {
            let number = columns.number(row);
            if range.offers(number, &columns.token(row)) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}

/// Visits the rows alive of a part; `true`: the visitor broke, and `range.from` is where to go on.
pub(super) fn tail_rows(
    part: &TailPart,
    range: &mut Range<'_>,
    mut visit: impl FnMut(&TailRow) -> ControlFlow<()>,
) -> bool {
    let mut copied = Copied::new();
    loop {
        part.copy_rows(range.group, range.from, range.to, &mut copied);
        let Some(last) = copied.last().map(|row| row.number) else {
            return false;
        };
        for row in &copied {
            if range.offers(row.number, &row.token) && visit(row).is_break() {
                range.from = row.number.saturating_add(1);
                return true;
            }
        }
        range.from = last.saturating_add(1);
        if last == u64::MAX {
            return false;
        }
    }
}

/// Takes the withdrawn numbers out of `out[begun..]`.
fn strike(out: &mut Vec<ArticleNumber>, begun: usize, withdrawn: Option<&OfGroup>) {
    let Some(withdrawn) = withdrawn else {
        return;
    };
    let mut kept = begun;
    for at in begun..out.len() {
        let number = out[at];
        if !withdrawn.has(number.0) {
            out[kept] = number;
            kept += 1;
        }
    }
    out.truncate(kept);
}

/// The parts' own view for the facts.
pub(super) fn blocks_of(
    parts: &Parts,
    group: GroupId,
) -> impl Iterator<Item = (&Arc<Pack>, Block)> {
    Overview::blocks(parts, group, 0, u64::MAX)
}
