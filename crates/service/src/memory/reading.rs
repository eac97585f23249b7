//! What readers ask of the memory service.

use std::collections::btree_map::Range;
use std::ops::Bound;
use std::sync::Arc;

use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupId, GroupName, UnixTime};

use super::{Group, State, Stored};
use crate::article::{ArticleBuf, ArticleQuery, Found, Part};
use crate::group::{GroupCursor, GroupInfo, GroupRow, GroupSelect, GroupStatus};
use crate::service::Direction;

impl Group {
    pub(super) fn info(&self) -> GroupInfo {
        let low = self
            .articles
            .keys()
            .next()
            .copied()
            .unwrap_or(self.high + 1);
        GroupInfo {
            id: self.id,
            low: ArticleNumber(low),
            high: ArticleNumber(self.high),
            count: self.articles.len() as u64,
            first: ArticleNumber(low),
            status: GroupStatus::parse(&self.status).unwrap_or(GroupStatus::Open),
        }
    }
}

impl State {
    pub(super) fn find(&self, id: &[u8]) -> Option<&Arc<Stored>> {
        self.by_id.get(id).filter(|stored| !stored.wire.is_empty())
    }

    fn group_of(&self, id: GroupId) -> Option<&Group> {
        self.groups.get(self.names.get(&id)?)
    }

    pub(super) fn range(
        &self,
        group: GroupId,
        low: ArticleNumber,
        high: ArticleNumber,
    ) -> Range<'_, u64, Arc<Stored>> {
        match self.group_of(group) {
            Some(group) if low <= high => group.articles.range(low.0..=high.0),
            _ => Range::default(),
        }
    }

    pub(super) fn neighbour(
        &self,
        group: GroupId,
        number: ArticleNumber,
        direction: Direction,
    ) -> Option<(ArticleNumber, &Arc<Stored>)> {
        let articles = &self.group_of(group)?.articles;
        let (found, stored) = match direction {
            Direction::Next => articles
                .range((Bound::Excluded(number.0), Bound::Unbounded))
                .next()?,
            Direction::Last => articles.range(..number.0).next_back()?,
        };
        Some((ArticleNumber(*found), stored))
    }

    pub(super) fn read(
        &self,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Option<Found> {
        let (stored, number) = match query {
            ArticleQuery::ById(id) => (self.find(id.as_bytes())?, ArticleNumber(0)),
            ArticleQuery::ByNumber(group, number) => {
                (self.group_of(group)?.articles.get(&number.0)?, number)
            }
        };
        out.clear();
        out.set_id(&stored.id);
        let coming = self.coming.get(&stored.id).filter(|_| part == Part::Whole);
        if let Some(coming) = coming.filter(|_| out.takes_portions()) {
            out.set_rest(coming, 0);
            return Some(Found { number });
        }
        out.copy_content(match part {
            Part::Stat => &[],
            Part::Head => &stored.wire[..stored.head_end],
            Part::Body => &stored.wire[stored.body..],
            Part::Whole => &stored.wire,
        });
        Some(Found { number })
    }

    pub(super) fn list_groups(
        &mut self,
        (select, now): (GroupSelect<'_>, UnixTime),
        cursor: &mut GroupCursor,
        limit: usize,
        visit: &mut (dyn FnMut(GroupRow<'_>) + Send),
    ) {
        let after = cursor.after().to_owned();
        let from = if after.is_empty() {
            Bound::Unbounded
        } else {
            Bound::Excluded(after)
        };
        let mut visited = 0;
        for (name, group) in self.groups.range((from, Bound::Unbounded)) {
            if visited == limit {
                return;
            }
            cursor.advance(name);
            let Ok(parsed) = GroupName::parse(name.as_bytes()) else {
                continue;
            };
            if select.takes(name, group.created, &group.description) {
                visited += 1;
                let row = GroupRow {
                    name: parsed,
                    info: group.info(),
                    status: &group.status,
                    created: group.created,
                    creator: "test",
                    description: &group.description,
                };
                let since = select.changed_since;
                if since.is_none_or(|since| self.changes.look(&row, since, now)) {
                    visit(row);
                }
            }
        }
        cursor.finish();
    }

    pub(super) fn newnews(
        &self,
        wildmat: &Wildmat,
        since: UnixTime,
        cursor: &mut usize,
        limit_bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        while let Some(stored) = self.arrivals.get(*cursor) {
            if out.len() >= limit_bytes {
                return true;
            }
            *cursor += 1;
            let matches = || stored.groups.iter().any(|group| wildmat.matches(group));
            if stored.arrival >= since && matches() {
                out.extend_from_slice(&stored.id);
                out.extend_from_slice(b"\r\n");
            }
        }
        false
    }
}
