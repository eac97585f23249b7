//! A group's facts: as they are kept while that is not too long ago, else as the server tells them.
//!
//! A server that cannot be asked, or says nothing, is no reason to hide what is kept, unless it must never be old.

use std::sync::Arc;
use std::time::Duration;

use newsreel_net::client::Connect;
use newsreel_service::{GroupInfo, GroupStatus, NewsService as _, ServiceError};
use newsreel_wire::{GroupId, GroupName, UnixTime};

use super::Inner;
use super::turns::Asked;
use crate::keep::KeptGroup;
use crate::remote::PATIENCE;

/// What is told of a group; none: there is no such group.
pub(super) type Facts = Result<Option<Arc<KeptGroup>>, ServiceError>;

/// So many groups that a list lacks are asked for at most.
const UNLISTED_ASKED_MAX: usize = 1000;

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

/// What a server told that was asked at a time, and after so many posts.
fn kept_of(info: &GroupInfo, told: UnixTime, asked: u64) -> KeptGroup {
    KeptGroup {
        low: info.low,
        high: info.high,
        count: info.count,
        told,
        asked,
        posted: 0,
        generation: 0,
        overview_octets: 0,
        status: text_of(info.status).into(),
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
    /// Whether what was told at a time may be told again; what was told by a clock that was ahead may not.
    pub(super) fn is_fresh(&self, told: UnixTime) -> bool {
        let age = self.there.now().0.checked_sub(told.0);
        age.is_some_and(|age| age < self.settings.refresh_s)
    }

    /// What is kept of a group, if it may be told again.
    pub(super) fn fresh_group(&self, name: &str) -> Option<Arc<KeptGroup>> {
        let kept = self.keep.group(name);
        kept.filter(|kept| !kept.is_outdated() && self.is_fresh(kept.told))
    }

    /// Whether what was told may be told again, however old, where the server cannot be asked.
    pub(super) fn may_be_old(&self) -> bool {
        self.settings.refresh_s > 0 || self.there.is_offline()
    }

    /// What is told of a group to who selects it: where nothing is kept of it and its server cannot be asked, what the list says that is
    /// kept.  Some newsreaders forget a group that the list shows and that cannot be selected.
    pub(super) async fn facts_or_row(&self, name: GroupName<'_>, asked: &Arc<str>) -> Facts {
        match self.facts(asked).await {
            Err(error @ (ServiceError::Away | ServiceError::Offline)) if self.may_be_old() => {
                let info = self.there.group_listed(name).await.ok_or(error)?;
                Ok(Some(Arc::new(kept_of(&info, UnixTime(0), 0))))
            }
            told => told,
        }
    }

    /// What is told of a group; none: there is no such group.
    pub(super) async fn facts(&self, name: &Arc<str>) -> Facts {
        if let Some(told) = self.told_before(name) {
            return Ok(told);
        }
        let old = self.keep.group(name).filter(|_| self.may_be_old());
        let has_row = || self.may_be_old() && self.there.lists_group(name);
        let patience = (old.is_some() || has_row()).then_some(PATIENCE);
        let Some(mut turn) = self.asking.wait_for(name, patience).await else {
            return old.map_or(Err(ServiceError::Away), |old| Ok(Some(old)));
        };
        if let Some(told) = self.told_before(name) {
            return Ok(told);
        }
        if let Some((told, asked)) = turn.last()
            && (asked == Asked::Since || told.is_err() || self.may_be_before(name))
        {
            return told.clone();
        }
        turn.ask(self.asked(name, patience)).await
    }

    /// Whether what was told of a group while somebody waited may be told to him though it was asked for before: not where nothing may be
    /// told again, or something was posted.
    fn may_be_before(&self, name: &str) -> bool {
        let kept = self.keep.group(name);
        self.settings.refresh_s > 0 && !kept.is_some_and(|kept| kept.is_outdated())
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

    /// Asks for groups that are kept and that a list lacks which has come whole: what is kept of those that are gone goes, as no reader asks
    /// for what the list does not show.  A list may lack more than is gone: what counts is what the server says of the group.
    pub(super) async fn ask_for_unlisted(&self) {
        let Some(is_unlisted) = self.there.unlisted() else {
            return;
        };
        let names = self.keep.names_of(&is_unlisted).into_values();
        for name in names.take(UNLISTED_ASKED_MAX) {
            let Ok(parsed) = GroupName::parse(name.as_bytes()) else {
                continue;
            };
            // What is asked in this turn is no answer for who waits.
            let _turn = self.asking.wait(&Arc::from(&*name)).await;
            match self.there.group(parsed).await {
                Ok(Some(_)) => {}
                Ok(None) => {
                    let _ = self.on_disk(move |keep| keep.remove_group(&name)).await;
                }
                Err(_) => return,
            }
        }
    }

    /// What the server tells of a group.
    async fn asked(&self, name: &Arc<str>, patience: Option<Duration>) -> Facts {
        let Ok(parsed) = GroupName::parse(name.as_bytes()) else {
            return Ok(None);
        };
        let (told, asked) = (self.there.now(), self.keep.posts());
        let name = Arc::clone(name);
        match self.there.group_within(parsed, patience).await {
            Ok(Some(info)) => {
                let group = kept_of(&info, told, asked);
                let putting = self.on_disk(move |keep| keep.put_group(&name, group));
                putting.await.map(Some)
            }
            Ok(None) => {
                self.on_disk(move |keep| keep.remove_group(&name)).await?;
                Ok(None)
            }
            Err(error) => {
                let kept = self.keep.group(&name).filter(|_| self.may_be_old());
                kept.map_or(Err(error), |kept| Ok(Some(kept)))
            }
        }
    }
}
