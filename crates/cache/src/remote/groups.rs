//! Groups: one asked for by name, and the listings.
//!
//! GROUP is always asked of the server.  A listing that goes on uses the list it began with, so that it neither repeats nor
//! hides a group, unless another has fetched a newer one meanwhile.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_net::client::Connect;
use newsreel_service::{
    GroupCursor, GroupInfo, GroupRow, GroupSelect, GroupStatus, NewsService as _, ServiceError,
};
use newsreel_wire::{ArticleNumber, GroupName};

use super::RServer;
use super::ask::{NO_ANSWER, asked};
use super::listing::{Listing, active_line, status_of};
use super::numbers::marks_of;
use super::one::One;

/// Not that the server is away: its list would be taken for one that was never had.
const TOO_MANY: ServiceError = ServiceError::Fault("more groups than `cache.groups_max`");

impl<C: Connect> One<C> {
    pub(super) async fn group_of(
        &self,
        name: GroupName<'_>,
    ) -> Result<Option<GroupInfo>, ServiceError> {
        let asked = name.as_str().as_bytes();
        let found = asked!(self, client => {
            client.command(&[b"GROUP", asked])?;
            client.command(&[b"LIST", b"ACTIVE", asked])?;
            let marks = marks_of(&mut client).await?;
            let mut status = GroupStatus::Open;
            // Who cannot say the status of one group lets posting be tried.
            if client.reply("LIST ACTIVE").await? == 215 {
                while let Some(line) = client.line("LIST ACTIVE").await? {
                    if let Some((_, row)) = active_line(line).filter(|(other, _)| *other == name) {
                        status = status_of(&row.status);
                    }
                }
            }
            Ok(marks.map(|marks| (marks, status)))
        });
        let Some((marks, status)) = found else {
            self.is_gone(name.as_str());
            return Ok(None);
        };
        let id = self.common.names.lock().id(name).ok_or(NO_ANSWER)?;
        Ok(Some(GroupInfo {
            id,
            low: ArticleNumber(marks.low),
            high: ArticleNumber(marks.high),
            count: marks.count,
            status,
        }))
    }

    /// There is no such group any more: changes of the list do not tell that, so that the next one is fetched whole.
    fn is_gone(&self, name: &str) {
        let listed = self.listing.try_lock();
        let is_listed = |listing: &Arc<Listing>| listing.rows.contains_key(name);
        if listed.is_ok_and(|kept| kept.as_ref().is_some_and(is_listed)) {
            self.wants_whole.store(true, Ordering::Release);
        }
    }

    /// Whether a listing that begins now gets a list that is there.
    pub(super) fn has_fresh_list(&self) -> bool {
        let refresh = self.common.settings.list_refresh;
        let kept = self.listing.try_lock();
        kept.is_ok_and(|kept| kept.as_ref().is_some_and(|it| it.is_younger(refresh)))
    }

    /// The list; a listing that begins gets one that is not too old, as far as the server can be asked.
    pub(super) async fn listed(&self, begins: bool) -> Result<Arc<Listing>, ServiceError> {
        let mut kept = self.listing.lock().await;
        let refresh = self.common.settings.list_refresh;
        if let Some(listing) = &*kept
            && (!begins || listing.is_younger(refresh))
        {
            return Ok(listing.clone());
        }
        match self.fetched(kept.as_deref()).await {
            Ok(listing) => {
                let listing = Arc::new(listing);
                if !kept.as_ref().is_some_and(|old| old.is_as(&listing)) {
                    self.put_away(Arc::clone(&listing)).await;
                }
                Ok(kept.insert(listing).clone())
            }
            // An old list is better than none, and than one that passes for all groups.
            Err(error) => {
                if kept.is_none() {
                    *kept = self.put_by().await.map(Arc::new);
                }
                kept.clone().ok_or(error)
            }
        }
    }

    /// Keeps a list over a restart, where lists are kept.
    async fn put_away(&self, listing: Arc<Listing>) {
        if let Some(keep) = self.common.lists.get().map(Arc::clone) {
            let name = self.name.clone();
            let putting =
                tokio::task::spawn_blocking(move || keep.put_list(&name, &listing.encode()));
            let _ = putting.await;
        }
    }

    /// The list that was kept, as old as can be.
    async fn put_by(&self) -> Option<Listing> {
        let keep = self.common.lists.get().map(Arc::clone)?;
        let (name, most) = (self.name.clone(), self.common.settings.groups_max);
        let reading = tokio::task::spawn_blocking(move || {
            let octets = keep.list(&name)?;
            Listing::decode(&octets, most)
        });
        reading.await.ok().flatten()
    }

    /// A newer list than this one: what has changed of it, where the server tells that, and from time to time all of it.
    async fn fetched(&self, old: Option<&Listing>) -> Result<Listing, ServiceError> {
        let (most, whole_every) = (
            self.common.settings.groups_max,
            self.common.settings.list_whole,
        );
        let wants_whole = self.wants_whole.load(Ordering::Acquire);
        let old = old.filter(|old| !wants_whole && old.may_be_updated(whole_every));
        let listing = asked!(self, client => {
            if let Some(old) = old
                && let Some(listing) = old.fetch_changes(&mut client, most).await?
            {
                return Ok(listing);
            }
            Listing::fetch(&mut client, most).await
        });
        if wants_whole {
            self.wants_whole.store(false, Ordering::Release);
        }
        Ok(listing)
    }
}

/// The list of all groups, and what it was made of.
pub(super) struct Merged {
    parts: Vec<Option<Arc<Listing>>>,
    whole: Arc<Listing>,
}

impl<C: Connect> RServer<C> {
    pub(super) async fn visit_groups(
        &self,
        select: GroupSelect<'_>,
        cursor: &mut GroupCursor,
        limit: usize,
        visit: &mut (dyn FnMut(GroupRow<'_>) + Send),
    ) -> Result<(), ServiceError> {
        let listing = self.listed(cursor.after().is_empty()).await?;
        let (prefix, after) = (select.prefix(), cursor.after());
        let from = match after < prefix {
            true => Bound::Included(prefix),
            false => Bound::Excluded(after),
        };
        let mut visited = 0;
        let rest = listing.rows.range::<str, _>((from, Bound::Unbounded));
        let rest = rest.take_while(|(name, _)| name.starts_with(prefix));
        let since = select.changed_since;
        let mut changes = since.map(|since| (since, self.changes.lock()));
        let now = self.now();
        for (name, row) in rest {
            if visited >= limit {
                return Ok(());
            }
            cursor.advance(name);
            let Ok(parsed) = GroupName::parse(name.as_bytes()) else {
                continue;
            };
            if !select.takes(name, row.created, &row.description) {
                continue;
            }
            let id = self.common.names.lock().id(parsed).ok_or(TOO_MANY)?;
            let row = GroupRow {
                name: parsed,
                info: GroupInfo {
                    id,
                    low: row.low,
                    high: row.high,
                    count: row.high.0 + 1 - row.low.0,
                    status: status_of(&row.status),
                },
                status: &row.status,
                created: row.created,
                creator: &row.creator,
                description: &row.description,
            };
            if let Some((since, changes)) = &mut changes
                && !changes.look(&row, *since, now)
            {
                continue;
            }
            visited += 1;
            visit(row);
        }
        cursor.finish();
        Ok(())
    }

    /// Whether a listing that begins now gets lists that are there.
    pub(crate) fn has_fresh_list(&self) -> bool {
        self.ones.iter().all(One::has_fresh_list)
    }

    /// The list of all groups; a listing that begins gets one that is not too old.  The groups of a server whose list could
    /// never be fetched are not in it.
    pub(super) async fn listed(&self, begins: bool) -> Result<Arc<Listing>, ServiceError> {
        let mut parts = Vec::with_capacity(self.ones.len());
        let mut failed = NO_ANSWER;
        for one in &self.ones {
            let listed = one.listed(begins).await;
            parts.push(listed.map_err(|error| failed = error).ok());
        }
        match parts.as_slice() {
            [Some(only)] => return Ok(Arc::clone(only)),
            parts if parts.iter().all(Option::is_none) => return Err(failed),
            _ => {}
        }
        let mut merged = self.merged.lock();
        let is_same = |merged: &Merged| {
            let mut both = merged.parts.iter().zip(&parts);
            both.all(|pair| match pair {
                (Some(old), Some(new)) => Arc::ptr_eq(old, new),
                (old, new) => old.is_none() && new.is_none(),
            })
        };
        if let Some(merged) = merged.as_ref().filter(|merged| is_same(merged)) {
            return Ok(Arc::clone(&merged.whole));
        }
        let numbers = |at: usize, name: &str| self.routes.numbering(name) == Some(at);
        let most = self.common.settings.groups_max;
        let whole = Arc::new(Listing::merged(&parts, numbers, most));
        *merged = Some(Merged {
            parts,
            whole: Arc::clone(&whole),
        });
        Ok(whole)
    }
}
