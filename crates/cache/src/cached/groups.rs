//! A group's facts: as they are kept while that is not too long ago, else as the server tells them.
//!
//! A server that cannot be asked is no reason to hide what is kept, unless it must never be old.

use std::sync::Arc;

use newsreel_net::client::Connect;
use newsreel_service::{GroupInfo, GroupStatus, NewsService as _, ServiceError};
use newsreel_wire::{GroupId, GroupName, UnixTime};

use super::Inner;
use crate::keep::KeptGroup;

const fn text_of(status: GroupStatus) -> &'static str {
    match status {
        GroupStatus::Open => "y",
        GroupStatus::NoPosting => "n",
        GroupStatus::Moderated => "m",
        GroupStatus::Junk => "j",
        GroupStatus::Closed => "x",
        GroupStatus::Alias => "=",
    }
}

/// As a session wants it.
pub(super) fn info_of(id: GroupId, kept: &KeptGroup) -> GroupInfo {
    GroupInfo {
        id,
        low: kept.low,
        high: kept.high,
        count: kept.count,
        first: kept.low,
        status: GroupStatus::parse(&kept.status).unwrap_or(GroupStatus::NoPosting),
    }
}

impl<C: Connect> Inner<C> {
    /// Whether what was told at a time may be told again.
    pub(super) fn is_fresh(&self, told: UnixTime) -> bool {
        self.there.now().0.saturating_sub(told.0) < self.settings.refresh_s
    }

    /// What is kept of a group, if it may be told again.
    pub(super) fn fresh_group(&self, name: &str) -> Option<Arc<KeptGroup>> {
        let kept = self.keep.group(name);
        kept.filter(|kept| !kept.is_outdated && self.is_fresh(kept.told))
    }

    /// What is told of a group; none: there is no such group.
    pub(super) async fn facts(
        &self,
        name: &Arc<str>,
    ) -> Result<Option<Arc<KeptGroup>>, ServiceError> {
        if let Some(told) = self.told_before(name) {
            return Ok(told);
        }
        let _turn = self.turns.wait(name).await;
        match self.told_before(name) {
            Some(told) => Ok(told),
            None => self.asked(name).await,
        }
    }

    /// What may be told again of a group, also that there is none; none: nothing.
    fn told_before(&self, name: &str) -> Option<Option<Arc<KeptGroup>>> {
        match self.fresh_group(name) {
            Some(kept) => Some(Some(kept)),
            None => {
                let is_fresh = |told| self.is_fresh(told);
                self.there.lacks_group(name, is_fresh).then_some(None)
            }
        }
    }

    /// What the server tells of a group.
    async fn asked(&self, name: &Arc<str>) -> Result<Option<Arc<KeptGroup>>, ServiceError> {
        let Ok(parsed) = GroupName::parse(name.as_bytes()) else {
            return Ok(None);
        };
        let told = self.there.now();
        let name = Arc::clone(name);
        match self.there.group(parsed).await {
            Ok(Some(info)) => {
                let group = KeptGroup {
                    low: info.low,
                    high: info.high,
                    count: info.count,
                    told,
                    is_outdated: false,
                    overview_octets: 0,
                    status: text_of(info.status).into(),
                };
                let put = group.clone();
                self.on_disk(move |keep| keep.put_group(&name, put)).await?;
                Ok(Some(Arc::new(group)))
            }
            Ok(None) => {
                self.on_disk(move |keep| keep.remove_group(&name)).await?;
                Ok(None)
            }
            Err(error) => {
                let kept = self.keep.group(&name);
                let may_be_old = self.settings.refresh_s > 0 || self.there.is_offline();
                let kept = kept.filter(|_| may_be_old);
                kept.map_or(Err(error), |kept| Ok(Some(kept)))
            }
        }
    }
}
