//! What is shown of groups while nobody elsewhere is asked, where no more is to be shown than can be read (`cache.offline_kept_only`):
//! lists of numbers, overview, neighbours and counts tell of the articles that are kept, as if there were no others.
//!
//! Marks stay as they are, so that no reader takes the group for another one; and an article that is asked for all the same is no
//! "no such article".

use std::sync::Arc;

use newsreel_net::client::Connect;
use newsreel_service::{
    GroupCursor, GroupRow, GroupSelect, HeldRow, NewsService as _, ServiceError,
};
use newsreel_wire::ArticleNumber;

use super::Inner;
use super::numbers::{Known, Numbers};
use crate::keep::{KeptGroup, place_of};

/// The articles of a group that are shown.
pub(super) struct Shown {
    pub(super) count: u64,
    /// The lowest number, if there are any.
    pub(super) first: ArticleNumber,
}

impl<C: Connect> Inner<C> {
    /// The groups of a listing with the counts that GROUP tells: of one that nothing is known of no article is kept.
    pub(super) async fn groups_of_kept(
        &self,
        select: GroupSelect<'_>,
        cursor: &mut GroupCursor,
        limit: usize,
        visit: &mut (dyn FnMut(GroupRow<'_>) + Send),
    ) -> Result<(), ServiceError> {
        let mut rows: Vec<HeldRow> = Vec::new();
        let mut hold = |row: GroupRow<'_>| rows.push(HeldRow::of(&row));
        self.there.groups(select, cursor, limit, &mut hold).await?;
        let counting = self.on_disk(move |keep| {
            for row in &mut rows {
                let group = keep.group(row.name());
                row.info.count = group.map_or(0, |group| {
                    keep.numbers_kept(row.name(), (group.low, group.high)).len() as u64
                });
            }
            rows
        });
        for row in counting.await? {
            row.visit(visit);
        }
        Ok(())
    }

    /// Whether no more is shown of groups than articles that are kept.
    pub(super) fn shows_kept_only(&self) -> bool {
        self.settings.offline_kept_only && self.there.is_offline()
    }

    /// What is known of a range of a group's numbers, as if no article were there but those that are kept.
    pub(super) async fn known_of_kept(
        &self,
        name: &Arc<str>,
        (low, high): Numbers,
    ) -> Result<Known, ServiceError> {
        let name = Arc::clone(name);
        let looking = self.on_disk(move |keep| {
            let numbers = place_of(low).0..=place_of(high).0;
            let block = |number| (number, keep.block_of_kept(&name, number));
            numbers.map(block).collect()
        });
        Ok(Known {
            blocks: looking.await?,
            is_kept: true,
        })
    }

    /// Which articles of a group are shown.
    pub(super) async fn shown_of(
        &self,
        name: &Arc<str>,
        group: &KeptGroup,
    ) -> Result<Shown, ServiceError> {
        let (low, count) = (group.low, group.count);
        if !self.shows_kept_only() {
            return Ok(Shown { count, first: low });
        }
        let (name, range) = (Arc::clone(name), (low, group.high));
        let numbers = self.on_disk(move |keep| keep.numbers_kept(&name, range));
        let numbers = numbers.await?;
        Ok(Shown {
            count: numbers.len() as u64,
            first: numbers.into_iter().min().unwrap_or(low),
        })
    }
}
