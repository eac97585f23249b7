//! Groups: one asked for by name, and the listings.
//!
//! GROUP is always asked of the server.  A listing that goes on uses the list it began with, so that it neither repeats nor
//! hides a group, unless another has fetched a newer one meanwhile.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use newsreel_net::LineLimit;
use newsreel_net::client::Connect;
use newsreel_service::{
    GroupCursor, GroupInfo, GroupRow, GroupSelect, GroupStatus, NewsService as _, ServiceError,
};
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupId, GroupName, UnixTime};
use tokio::time::Instant;

use super::RServer;
use super::ask::{NO_ANSWER, PATIENCE, all_of, asked};
use super::listing::{Listing, Row, TakeList, Wants, active_line, status_of};
use super::numbers::marks_of;
use super::one::{NoGroup, One};

/// Tells that a list does not have all groups.
fn told_left_out(lines: &LineLimit, upstream: &str, left_out: usize) {
    if left_out > 0
        && let Some(more) = lines.admit()
    {
        tracing::warn!(target: "newsreel::cache", upstream, left_out, more, "more groups than cache.groups_max: the rest is left out of the list; give it more");
    }
}

fn row_info(id: GroupId, row: &Row) -> GroupInfo {
    GroupInfo {
        id,
        low: row.low,
        high: row.high,
        count: row.high.0 + 1 - row.low.0,
        first: row.low,
        status: status_of(&row.status),
    }
}

impl<C: Connect> One<C> {
    pub(super) async fn group_of(
        &self,
        name: GroupName<'_>,
        patience: Option<Duration>,
    ) -> Result<Option<GroupInfo>, ServiceError> {
        let asked = name.as_str().as_bytes();
        let listed = self.status_listed(name.as_str());
        let asked_at = NoGroup {
            told: UnixTime(self.common.clock.now().secs),
            asked: Instant::now(),
        };
        let found = asked!(self, within patience, client => {
            client.command(&[b"GROUP", asked])?;
            // Servers look through their whole list for one line of it.
            if listed.is_none() {
                client.command(&[b"LIST", b"ACTIVE", asked])?;
            }
            let marks = marks_of(&mut client).await?;
            // Who cannot say the status of one group lets posting be tried.
            let mut status = listed.unwrap_or(GroupStatus::Open);
            if listed.is_none() && client.reply("LIST ACTIVE").await? == 215 {
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
            self.no_groups.insert(name.as_str().into(), asked_at);
            return Ok(None);
        };
        self.no_groups.remove(name.as_str());
        self.has_selected(name.as_str());
        let id = self.common.names.lock().id(name).ok_or(NO_ANSWER)?;
        Ok(Some(GroupInfo {
            id,
            low: ArticleNumber(marks.low),
            high: ArticleNumber(marks.high),
            count: marks.count,
            first: ArticleNumber(marks.low),
            status,
        }))
    }

    /// What a list says of a group's status that is there and not too old.
    fn status_listed(&self, name: &str) -> Option<GroupStatus> {
        let refresh = self.common.settings.list_refresh;
        let kept = self.listing.try_lock().ok()?;
        let listing = kept.as_ref().filter(|it| it.is_younger(refresh))?;
        listing.rows.get(name).map(|row| status_of(&row.status))
    }

    /// Whether it said at a time that is fresh that it does not have a group, and no list of it since then shows the group, nor may one
    /// that is coming.
    fn lacks_group(&self, name: &str, is_fresh: impl Fn(UnixTime) -> bool) -> bool {
        let Some(said) = self.no_groups.get(name).filter(|said| is_fresh(said.told)) else {
            return false;
        };
        let is_since = |it: &&Arc<Listing>| it.taken.is_some_and(|taken| taken > said.asked);
        let shows = |it: &Arc<Listing>| it.rows.contains_key(name);
        let kept = self.listing.try_lock();
        kept.is_ok_and(|kept| !kept.as_ref().filter(is_since).is_some_and(shows))
    }

    /// There is no such group any more, or perhaps: changes of the list do not tell that, so that the next one is fetched whole.
    pub(super) fn is_gone(&self, name: &str) {
        let listed = self.listing.try_lock();
        let is_listed = |listing: &Arc<Listing>| listing.rows.contains_key(name);
        // One that is coming may show it.
        if listed.map_or(true, |kept| kept.as_ref().is_some_and(is_listed)) {
            self.gone.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Whether the list that is there shows a group; nobody is waited for.
    fn lists_group(&self, name: &str) -> bool {
        let kept = self.listing.try_lock();
        kept.is_ok_and(|kept| kept.as_ref().is_some_and(|it| it.rows.contains_key(name)))
    }

    /// Whether a listing that begins now gets a list that is there.
    pub(super) fn has_fresh_list(&self, wants: Wants) -> bool {
        let refresh = self.common.settings.list_refresh;
        let is_fresh = |it: &Arc<Listing>| it.is_younger(refresh) && it.has(wants);
        let kept = self.listing.try_lock();
        kept.is_ok_and(|kept| kept.as_ref().is_some_and(is_fresh))
    }

    /// The list; a listing that begins gets one that is not too old, as far as the server can be asked.  `told` takes one that has
    /// to be fetched whole as it comes.
    pub(super) async fn listed(
        &self,
        begins: bool,
        wants: Wants,
        told: Option<&mut dyn TakeList>,
    ) -> Result<Arc<Listing>, ServiceError> {
        let mut kept = self.listing.lock().await;
        let refresh = self.common.settings.list_refresh;
        let is_good = |listing: &&Listing| !begins || listing.is_younger(refresh);
        let mut put_by = None;
        let fetched = match kept.as_deref().filter(is_good) {
            Some(listing) if !listing.has(wants) => self.described(listing).await,
            Some(_) => return kept.clone().ok_or(NO_ANSWER),
            None => {
                put_by = match kept.is_none() {
                    true => self.put_by().await.map(Arc::new),
                    false => None,
                };
                let old = (kept.as_deref(), put_by.as_deref());
                self.fetched(old, wants, told).await
            }
        };
        match fetched {
            Ok(listing) => {
                let listing = Arc::new(listing);
                if !kept.as_ref().is_some_and(|old| old.is_as(&listing)) {
                    *self.unkept.lock() = Some(Arc::clone(&listing));
                }
                let listing = kept.insert(listing).clone();
                // That nobody tells it now is not told as if there were nothing.
                match listing.had(wants) {
                    true => Ok(listing),
                    false => Err(NO_ANSWER),
                }
            }
            // An old list is better than none, and than one that passes for all groups.
            Err(error) => {
                if kept.is_none() {
                    *kept = put_by;
                }
                let old = kept.clone().filter(|kept| kept.had(wants));
                old.ok_or(error)
            }
        }
    }

    /// The list, if it has been fetched whole since this was asked last; one that is empty, or has as many groups as it may, is none that shows
    /// which are gone.
    fn newly_whole(&self) -> Option<Arc<Listing>> {
        // Whoever fetches one holds it: the next time.
        let listing = self.listing.try_lock().ok()?.clone()?;
        let is_new = self.is_newly_whole.swap(false, Ordering::AcqRel);
        let groups = 1..self.common.settings.groups_max;
        (is_new && groups.contains(&listing.rows.len())).then_some(listing)
    }

    /// Keeps the list over a restart, where lists are kept and there is another than before; one that cannot be kept is the next time.
    /// Nobody waits for it who reads.
    pub(super) async fn put_away(&self) {
        let listing = self.unkept.lock().take();
        if let Some((keep, listing)) = self.common.kept.get().map(Arc::clone).zip(listing) {
            let (name, put) = (self.name.clone(), Arc::clone(&listing));
            let putting =
                tokio::task::spawn_blocking(move || keep.put_list(&name, || put.encode()));
            if let Ok(false) = putting.await {
                self.unkept.lock().get_or_insert(listing);
            }
        }
    }

    /// The list that was kept, as old as can be.
    async fn put_by(&self) -> Option<Listing> {
        let keep = self.common.kept.get().map(Arc::clone)?;
        let (name, most) = (self.name.clone(), self.common.settings.groups_max);
        let reading = tokio::task::spawn_blocking(move || {
            let octets = keep.list(&name)?;
            Listing::decode(&octets, most)
        });
        reading.await.ok().flatten()
    }

    /// What the list that is kept says of a group, however old; none where the server said since that there is no such group.
    async fn group_listed(&self, name: GroupName<'_>) -> Option<GroupInfo> {
        if self.lacks_group(name.as_str(), |_| true) {
            return None;
        }
        let mut kept = self.listing.lock().await;
        if kept.is_none() {
            *kept = self.put_by().await.map(Arc::new);
        }
        let listing = kept.clone()?;
        drop(kept);
        let row = listing.rows.get(name.as_str())?;
        let id = self.common.names.lock().id(name)?;
        Some(row_info(id, row))
    }

    /// A newer list than this one, or than that which was kept over a restart: what has changed of it, where the server tells that, and from
    /// time to time all of it.
    async fn fetched(
        &self,
        (old, put_by): (Option<&Listing>, Option<&Listing>),
        wants: Wants,
        mut told: Option<&mut dyn TakeList>,
    ) -> Result<Listing, ServiceError> {
        let (most, whole_every) = (
            self.common.settings.groups_max,
            self.common.settings.list_whole,
        );
        let now = UnixTime(self.common.clock.now().secs);
        let gone = self.gone.load(Ordering::Acquire);
        let wants_whole = gone != self.gone_followed.load(Ordering::Acquire);
        let updated = old.filter(|old| !wants_whole && old.may_be_updated(whole_every));
        // An old one may be told.
        let patience = old
            .or(put_by)
            .filter(|old| old.had(wants))
            .map(|_| PATIENCE);
        let (listing, is_whole) = asked!(self, within patience, client => {
            if let Some(old) = updated
                && let Some(listing) = old.fetch_changes(&mut client, (now, most)).await?
            {
                return Ok((listing, false));
            }
            // Who was told the beginning of another one is not told this.
            let told: Option<&mut dyn TakeList> = match &mut told {
                Some(told) if !told.has_begun() => Some(&mut **told),
                _ => None,
            };
            Ok((Listing::fetch(&mut client, most, wants, told).await?, true))
        });
        told_left_out(&self.lines, &self.name, listing.left_out);
        if !is_whole {
            return self.with(listing, wants).await;
        }
        self.gone_followed.store(gone, Ordering::Release);
        self.is_newly_whole.store(true, Ordering::Release);
        let listing = match old.or(put_by) {
            Some(old) => listing.behind(old, (now, most)),
            None => listing,
        };
        self.with(listing, wants).await
    }

    /// A list with what is wanted of it, as far as the server tells that now.
    async fn with(&self, listing: Listing, wants: Wants) -> Result<Listing, ServiceError> {
        if listing.has(wants) {
            return Ok(listing);
        }
        Ok(self.described(&listing).await.unwrap_or(listing))
    }

    /// A list with what its groups are about, and when they were made.
    async fn described(&self, listing: &Listing) -> Result<Listing, ServiceError> {
        let patience = listing.had(Wants::All).then_some(PATIENCE);
        Ok(asked!(self, within patience, client => listing.describe(&mut client).await))
    }
}

/// The list of all groups, and what it was made of.
pub(super) struct Merged {
    parts: Vec<Arc<Listing>>,
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
        let wants = match select.bare {
            true => Wants::Active,
            false => Wants::All,
        };
        let begins = cursor.after().is_empty();
        let listing = self.listed(begins, wants, None).await?;
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
            let Some(id) = self.common.names.lock().id(parsed) else {
                if let Some(one) = self.ones.first() {
                    told_left_out(&one.lines, "all", 1);
                }
                continue;
            };
            let row = GroupRow {
                name: parsed,
                info: row_info(id, row),
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

    /// Whether the server that a group's numbers come from said at a time that is fresh that there is no such group.
    pub(crate) fn lacks_group(&self, name: &str, is_fresh: impl Fn(UnixTime) -> bool) -> bool {
        let one = self.numbering(name);
        one.is_some_and(|one| one.lacks_group(name, is_fresh))
    }

    /// What the list of the server that a group's numbers come from says of it, however old; nobody is asked.
    pub(crate) async fn group_listed(&self, name: GroupName<'_>) -> Option<GroupInfo> {
        self.numbering(name.as_str())?.group_listed(name).await
    }

    /// Whether the list that is there of that server shows it; nobody is waited for.
    pub(crate) fn lists_group(&self, name: &str) -> bool {
        self.numbering(name)
            .is_some_and(|one| one.lists_group(name))
    }

    /// There may be such a group by now.
    pub(crate) fn may_have_group(&self, name: &str) {
        if let Some(one) = self.numbering(name) {
            one.no_groups.remove(name);
        }
    }

    /// Whether a group is missing in the list of the server that its numbers come from, among the lists that have been fetched whole since
    /// this was asked last; none: there are none.
    pub(crate) fn unlisted(&self) -> Option<impl Fn(&str) -> bool + Send + Sync> {
        let lists: Vec<_> = self.ones.iter().map(One::newly_whole).collect();
        let is_missing = |lists: &[Option<Arc<Listing>>], name: &str| {
            let at = self.routes.numbering(name);
            let list = at.and_then(|at| lists.get(at)?.as_ref());
            list.is_some_and(|list| !list.rows.contains_key(name))
        };
        let any = lists.iter().any(Option::is_some);
        any.then_some(move |name: &str| is_missing(&lists, name))
    }

    /// Whether a listing that begins now gets lists that are there.
    pub(crate) fn has_fresh_list(&self, wants: Wants) -> bool {
        self.listing().all(|one| one.has_fresh_list(wants))
    }

    /// Whether a list may be told to somebody who asked for it after it was.
    pub(crate) fn may_share_list(&self) -> bool {
        !self.common.settings.list_refresh.is_zero()
    }

    /// Fetches the list, if that is too old; `told` takes it as it comes where it comes from one server.
    pub(crate) async fn fetch_list(&self, told: &mut dyn TakeList) -> Result<(), ServiceError> {
        self.listed(true, Wants::Active, Some(told)).await.map(drop)
    }

    /// Appends the lines of the list, which is not too old.
    pub(crate) async fn new_list(&self, out: &mut Vec<Bytes>) -> Result<(), ServiceError> {
        let listing = self.listed(true, Wants::Active, None).await?;
        out.extend(listing.active.iter().cloned());
        Ok(())
    }

    /// Appends the lines of the list that is there, however old.
    pub(crate) async fn last_list(&self, out: &mut Vec<Bytes>) -> Result<(), ServiceError> {
        let listing = self.listed(false, Wants::Active, None).await?;
        out.extend(listing.active.iter().cloned());
        Ok(())
    }

    /// Keeps lists over a restart that are others than before.
    pub(crate) async fn put_lists(&self) {
        for one in &self.ones {
            one.put_away().await;
        }
    }

    /// The servers whose lists make the list of all groups.
    fn listing(&self) -> impl Iterator<Item = &One<C>> {
        self.listing.iter().filter_map(|at| self.ones.get(*at))
    }

    /// The server whose list is that of all groups.
    fn listing_alone(&self) -> Option<&One<C>> {
        match (self.ones.as_slice(), self.listing.as_slice()) {
            ([one], _) => Some(one),
            (ones, [at]) if self.routes.has_all_groups(*at) => ones.get(*at),
            _ => None,
        }
    }

    /// The list of all groups; a listing that begins gets one that is not too old.  There is none where that of a server is missing
    /// whose groups would be in it.
    pub(super) async fn listed(
        &self,
        begins: bool,
        wants: Wants,
        told: Option<&mut dyn TakeList>,
    ) -> Result<Arc<Listing>, ServiceError> {
        if let Some(one) = self.listing_alone() {
            return one.listed(begins, wants, told).await;
        }
        let (parts, failed) = self.parts(begins, wants).await;
        match failed {
            None => Ok(self.merged(parts.into_iter().map(|(_, part)| part).collect())),
            Some((one, ServiceError::Away | ServiceError::Offline)) if !parts.is_empty() => {
                Err(ServiceError::ListMissing(one.name.as_str().into()))
            }
            Some((_, error)) => Err(error),
        }
    }

    /// The lists that can be had of those that make the list of all groups, each with its server, and one of which that failed.
    async fn parts(
        &self,
        begins: bool,
        wants: Wants,
    ) -> (Vec<(usize, Arc<Listing>)>, Option<(&One<C>, ServiceError)>) {
        let listing = self.listing().map(|one| one.listed(begins, wants, None));
        let (mut parts, mut failed) = (Vec::new(), None);
        let listed = all_of(listing).await.into_iter();
        for ((at, one), listed) in self.listing.iter().zip(self.listing()).zip(listed) {
            match listed {
                Ok(listed) => parts.push((*at, listed)),
                Err(error) => failed = Some((one, error)),
            }
        }
        (parts, failed)
    }

    /// The names of the groups that match, as far as lists can be had: who fetches what is in them has no need of all.
    pub(crate) async fn names_at_hand(
        &self,
        wildmat: &Wildmat,
    ) -> Result<Vec<Arc<str>>, ServiceError> {
        let (parts, failed) = self.parts(true, Wants::Active).await;
        if let Some((_, error)) = failed.filter(|_| parts.is_empty()) {
            return Err(error);
        }
        let its = |at: usize, name: &str| self.routes.numbering(name) == Some(at);
        let names = parts.iter().flat_map(|(at, part)| {
            let names = part.rows.keys().map(|name| &**name);
            names.filter(move |name| wildmat.matches(name) && its(*at, name))
        });
        Ok(names.map(Arc::from).collect())
    }

    /// The groups of several lists, in the order of their servers, as one list.
    fn merged(&self, parts: Vec<Arc<Listing>>) -> Arc<Listing> {
        let mut merged = self.merged.lock();
        let is_same = |merged: &&Merged| {
            let mut both = merged.parts.iter().zip(&parts);
            both.all(|(old, new)| Arc::ptr_eq(old, new))
        };
        if let Some(merged) = merged.as_ref().filter(is_same) {
            return Arc::clone(&merged.whole);
        }
        let from = parts.iter().zip(&self.listing);
        let whole = Listing::merged(
            from.map(|(part, at)| (part, *at)),
            |at, name| self.routes.numbering(name) == Some(at),
            self.common.settings.groups_max,
        );
        if let Some(one) = self.ones.first() {
            told_left_out(&one.lines, "all", whole.left_out);
        }
        let whole = Arc::new(whole);
        *merged = Some(Merged {
            parts,
            whole: Arc::clone(&whole),
        });
        whole
    }
}
