//! What is shown of groups while nobody elsewhere is asked, where no more is to be shown than can be read (`cache.offline_kept_only`):
//! lists of numbers, overview, neighbours and counts tell of the articles that are kept, as if there were no others.
//!
//! Marks stay as they are, so that no reader takes the group for another one; and an article that is asked for all the same is no
//! "no such article".

use std::sync::Arc;

use newsreel_net::client::Connect;
use newsreel_service::ServiceError;

use super::Inner;
use super::numbers::{Known, Numbers};
use crate::keep::{KeptGroup, place_of};

impl<C: Connect> Inner<C> {
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

    /// How many articles of a group are shown.
    pub(super) async fn count_shown(
        &self,
        name: &Arc<str>,
        group: &KeptGroup,
    ) -> Result<u64, ServiceError> {
        if !self.shows_kept_only() {
            return Ok(group.count);
        }
        let (name, range) = (Arc::clone(name), (group.low, group.high));
        self.on_disk(move |keep| keep.count_kept(&name, range))
            .await
    }
}
