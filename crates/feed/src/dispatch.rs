//! Reads the log for the feeds: one pass for all that stand at the same place.
//!
//! Feeds that keep up stand at the end of the log, so that one pass looks at each article for all of them: which feeds take its
//! groups is found once for each list of groups.  A feed that has as many articles in memory as it may stays behind and is
//! read for alone, from where it stopped, until it is at the end again: a backlog is a place in the log and takes no memory.
//! One that is to send what is newer first passes over what it has no room for, and is read for from there while it has.
//! Where a backlog is read, its small texts are wanted of the store before the connections ask for them, so that a disk has much to do at once.
//! A feed with a delay stands before the first article that is too young, and is passed by until that is old enough.
//! Where the log cannot be read for a feed, no other one waits.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::{Engine, Error, FedArticle, FedGroups, FeedCursor, FeedRead};
use newsreel_host::Clock;
use newsreel_wire::{Sequence, Token, UnixTime};

use crate::config::FeedKind;
use crate::failures::{Aim, Failures};
use crate::feed::Feed;
use crate::queue::Offered;
use crate::text::Slot;

/// Lists of groups that are kept with the feeds that take them.
const LISTS_MAX: usize = 50_000;

/// A larger text is read by itself as fast as can be.
const AHEAD_EACH_OCTETS: u32 = 64 << 10;
/// In so many commits what feeds miss is named before they are read for again, and their places written.
const NAMED_AT_ONCE: usize = 64;
/// So much of a backlog is wanted of the store at once, and the rest when it is asked for.
const AHEAD_OCTETS: u64 = 16 << 20;

/// Texts that are wanted of the store.
#[derive(Debug, Default)]
struct Ahead {
    texts: Vec<Token>,
    octets: u64,
}

impl Ahead {
    fn add(&mut self, article: &FedArticle<'_>) {
        let small = article.octets <= AHEAD_EACH_OCTETS && self.octets < AHEAD_OCTETS;
        if let Some(token) = article.token.filter(|_| small) {
            self.texts.push(token);
            self.octets += u64::from(article.octets);
        }
    }

    /// Says so; what just came, and is no backlog, is in memory.
    fn want_of(mut self, engine: &Engine, is_backlog: bool) {
        if is_backlog {
            engine.will_need(&mut self.texts);
        }
    }
}

/// Who reads.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    engine: Arc<Engine>,
    clock: Arc<dyn Clock>,
    feeds: Vec<Arc<Feed>>,
    /// The feeds that take a list of groups.
    lists: HashMap<Box<[u8]>, Box<[usize]>>,
    /// Where a pass goes on.
    cursors: BTreeMap<Sequence, FeedCursor>,
    /// Where what a feed passed over goes on.
    late: BTreeMap<usize, FeedCursor>,
    /// What feeds missed before this was named.
    named_to: Sequence,
    /// Where that goes on, and how many articles it found of each feed.
    losing: Option<FeedCursor>,
    missed: BTreeMap<usize, u64>,
    failures: Failures,
}

impl Dispatcher {
    pub(crate) fn new(engine: Arc<Engine>, feeds: Vec<Arc<Feed>>, clock: Arc<dyn Clock>) -> Self {
        Self {
            engine,
            clock,
            feeds,
            lists: HashMap::new(),
            cursors: BTreeMap::new(),
            late: BTreeMap::new(),
            named_to: Sequence::ZERO,
            losing: None,
            missed: BTreeMap::new(),
            failures: Failures::default(),
        }
    }

    /// Reads one step for everybody who wants more; whether anybody got further.  Waits for the disk.
    pub(crate) fn step(&mut self) -> bool {
        self.bring_back();
        let has_named = self.name_missed();
        self.round() || has_named
    }

    /// Brings into memory again what was not settled when a feed ended, for those that begin.
    fn bring_back(&mut self) {
        let now = self.clock.monotonic();
        for (at, feed) in self.feeds.iter().enumerate() {
            let of = (at, Aim::Open);
            if feed.config.kind == FeedKind::Batch || !self.failures.may_read(of, now) {
                continue;
            }
            let read = bring_back_of(&self.engine, feed);
            self.failures.note(feed, of, now, read.as_ref().copied());
        }
    }

    /// Names what the log loses next and feeds have not come to, in some commits; whether there may be more.
    fn name_missed(&mut self) -> bool {
        let to = self.engine.feeds_lose_before();
        if self.named_to >= to {
            return false;
        }
        let feeds = self.feeds.clone();
        (0..NAMED_AT_ONCE).all(|_| self.name_missed_at_last(&feeds, to))
    }

    /// The same in the commit at which the last of them stand, for all who have not come to something in it: the log is read once for all.
    fn name_missed_at_last(&mut self, feeds: &[Arc<Feed>], to: Sequence) -> bool {
        let now = self.clock.monotonic();
        let (mut is_all, mut last, mut those) = (true, to, Vec::new());
        for (at, feed) in feeds.iter().enumerate() {
            let from = feed.queue.lock().unseen_from();
            if from >= to {
                self.tell_missed(at, feed);
                continue;
            }
            is_all = false;
            if !self.failures.may_read((at, Aim::Missed), now) {
                continue;
            }
            // Whoever writes a batch has the place.
            let Ok(alone) = feed.batching.try_lock() else {
                continue;
            };
            last = last.min(from);
            those.push((at, feed, from, alone));
        }
        if is_all {
            self.named_to = to;
        }
        if those.is_empty() {
            self.losing = None;
            return false;
        }
        let members: Vec<_> = those.iter().map(|(at, it, ..)| (*at, &***it)).collect();
        let read = self.name_missed_by(&members, last, to);
        for (at, feed, ..) in those.iter().filter(|(_, _, from, _)| *from == last) {
            let read = read.as_ref().copied();
            self.failures.note(feed, (*at, Aim::Missed), now, read);
        }
        true
    }

    /// Names what some feeds have not come to and the log loses up to there, in one commit: what is counted is lost at once, so that nothing is
    /// counted again.
    fn name_missed_by(
        &mut self,
        members: &[(usize, &Feed)],
        from: Sequence,
        to: Sequence,
    ) -> Result<(), Error> {
        let known = self.losing.take().filter(|it| it.position() == from);
        let mut cursor = known.unwrap_or_else(|| self.engine.feed_from(from));
        let mut found = vec![Vec::new(); members.len()];
        let read = cursor.read(|article| {
            if article.sequence >= to {
                return ControlFlow::Break(());
            }
            for ((_, feed), found) in members.iter().zip(&mut found) {
                let is_unseen = feed.queue.lock().is_unseen(article.sequence);
                if is_unseen && feed.filter.takes(article) {
                    found.push(String::from_utf8_lossy(article.id).into_owned());
                }
            }
            ControlFlow::Continue(())
        })?;
        let now = UnixTime(self.clock.now().secs);
        for ((at, feed), found) in members.iter().zip(found) {
            let mut queue = feed.queue.lock();
            if let FeedRead::Missed { from, before, why } = &read {
                let many = queue.unseen_at_most(*from, (*before).min(to));
                queue.miss(many);
                feed.tell_missed(many, why);
            }
            *self.missed.entry(*at).or_default() += found.len() as u64;
            found.iter().for_each(|id| queue.miss_one(id, now));
            queue.lose(match &read {
                FeedRead::End => to,
                _ => cursor.position().min(to),
            });
        }
        self.losing = Some(cursor);
        Ok(())
    }

    /// Says how many articles of a feed went with the log.
    fn tell_missed(&mut self, at: usize, feed: &Feed) {
        let many = self.missed.remove(&at).unwrap_or(0);
        if many > 0 {
            let (peer, feed) = (&feed.peer.name, &feed.config.name);
            tracing::error!(
                peer,
                feed,
                "missed {many} articles, of which `newsreel peer show` names the newest: the log is kept no longer (`engine.log_keep_octets`)"
            );
        }
    }

    /// Looks at the articles of one commit, for everybody who wants more.
    fn round(&mut self) -> bool {
        let end = self.engine.watch_commits().borrow().next();
        let (now_s, now) = (self.clock.now().secs, self.clock.monotonic());
        self.gather(end, now_s, now);
        let (mut passes, mut late) = (BTreeMap::<Sequence, Vec<bool>>::new(), Vec::new());
        let many = self.feeds.len();
        for (at, feed) in self.feeds.iter().enumerate() {
            if feed.config.kind == FeedKind::Batch {
                continue;
            }
            let mut queue = feed.queue.lock();
            let next = queue.place().next;
            if feed.is_paused() || !queue.is_due(now_s) {
                continue;
            }
            if !queue.is_hungry() {
                queue.pass_over(end);
            } else if next < end && self.failures.may_read((at, Aim::Next), now) {
                let members = passes.entry(next).or_insert_with(|| vec![false; many]);
                if let Some(member) = members.get_mut(at) {
                    *member = true;
                }
            }
            // What is new comes first.
            if next >= end && queue.wants_late() && self.failures.may_read((at, Aim::Late), now) {
                late.push(at);
            }
        }
        self.cursors.retain(|at, _| passes.contains_key(at));
        self.late.retain(|at, _| late.contains(at));
        let mut got_further = false;
        for (from, members) in passes {
            let read = self.pass(from, members.clone(), (now_s, end));
            got_further |= read.is_ok();
            let those = self.feeds.iter().enumerate().zip(members);
            for ((at, feed), _) in those.filter(|(_, member)| *member) {
                let read = read.as_ref().copied();
                self.failures.note(feed, (at, Aim::Next), now, read);
            }
        }
        for at in late {
            let Some(feed) = self.feeds.get(at).map(Arc::clone) else {
                continue;
            };
            let read = self.late_pass(at, &feed, now_s);
            got_further |= read.is_ok();
            let read = read.as_ref().copied();
            self.failures.note(&feed, (at, Aim::Late), now, read);
        }
        self.gather(end, now_s, now);
        got_further
    }

    /// Where windows are sorted, what the log is read for waits until that was read, or is full.
    fn gather(&self, end: Sequence, now_s: u64, now: Duration) {
        for (at, feed) in self.feeds.iter().enumerate() {
            let mut queue = feed.queue.lock();
            if !queue.goes_by_group() || feed.is_paused() {
                continue;
            }
            let may_read = |aim| self.failures.may_read((at, aim), now);
            let (is_due, is_at_end) = (queue.is_due(now_s), queue.place().next >= end);
            let reads_next = is_due && !is_at_end && queue.is_hungry() && may_read(Aim::Next);
            let is_next_done = is_at_end || reads_next;
            let reads_late = is_due && is_next_done && queue.wants_late() && may_read(Aim::Late);
            let may_go = queue.gather(reads_next, reads_late);
            drop(queue);
            if may_go {
                feed.more.notify_waiters();
            }
        }
    }

    /// Looks at the articles of one commit that a feed passed over.
    fn late_pass(&mut self, at: usize, feed: &Feed, now_s: u64) -> Result<(), Error> {
        let Some((from, to)) = feed.queue.lock().late_stretch() else {
            return Ok(());
        };
        let known = self.late.remove(&at).filter(|it| it.position() == from);
        let mut cursor = known.unwrap_or_else(|| self.engine.feed_from(from));
        let (mut stopped_at, mut ahead) = (None, Ahead::default());
        let read = cursor.read(|article| {
            let mut queue = feed.queue.lock();
            if article.sequence >= to
                || !queue.has_room_for_late()
                || queue.is_too_young(article.arrival, now_s)
            {
                stopped_at = Some(article.sequence);
                return ControlFlow::Break(());
            }
            if feed.filter.takes(article) {
                queue.push_late(offered(article));
                ahead.add(article);
            }
            ControlFlow::Continue(())
        })?;
        let next = match &read {
            FeedRead::End => to,
            _ => stopped_at.unwrap_or(cursor.position()).min(to),
        };
        let mut queue = feed.queue.lock();
        if let FeedRead::Missed { from, before, why } = &read {
            let many = queue.unseen_at_most(*from, (*before).min(to));
            queue.miss(many);
            feed.tell_missed(many, why);
        }
        queue.advance_late(next);
        drop(queue);
        feed.more.notify_waiters();
        ahead.want_of(&self.engine, true);
        self.late.insert(at, cursor);
        Ok(())
    }

    /// Looks at the articles of one commit for those who stand here.
    fn pass(
        &mut self,
        from: Sequence,
        mut members: Vec<bool>,
        (now_s, end): (u64, Sequence),
    ) -> Result<(), Error> {
        let Self {
            engine,
            feeds,
            lists,
            cursors,
            ..
        } = self;
        let mut cursor = cursors
            .remove(&from)
            .unwrap_or_else(|| engine.feed_from(from));
        let mut left = members.iter().filter(|member| **member).count();
        let (mut got, mut ahead) = (vec![false; feeds.len()], Ahead::default());
        let read = cursor.read(|article| {
            let mut shared = None;
            for at in takers(lists, feeds, &article.groups) {
                let (Some(feed), Some(member)) = (feeds.get(*at), members.get_mut(*at)) else {
                    continue;
                };
                if !*member || feed.filter.judge(article).is_err() {
                    continue;
                }
                let mut queue = feed.queue.lock();
                if queue.is_too_young(article.arrival, now_s) || !queue.has_room() {
                    queue.advance(article.sequence);
                    *member = false;
                    left -= 1;
                    continue;
                }
                queue.push(Arc::clone(shared.get_or_insert_with(|| offered(article))));
                got[*at] = true;
            }
            if shared.is_some() {
                ahead.add(article);
            }
            match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        })?;
        if let FeedRead::Missed { from, before, why } = &read {
            for (feed, _) in feeds.iter().zip(&members).filter(|(_, member)| **member) {
                let mut queue = feed.queue.lock();
                let many = queue.unseen_at_most(*from, *before);
                queue.miss(many);
                feed.tell_missed(many, why);
            }
        }
        let is_backlog = cursor.position() < end;
        for (at, feed) in feeds.iter().enumerate() {
            if members.get(at) == Some(&true) {
                feed.queue.lock().advance(cursor.position());
            }
            if got.get(at) == Some(&true) {
                feed.more.notify_waiters();
            }
        }
        ahead.want_of(engine, is_backlog);
        cursors.insert(cursor.position(), cursor);
        Ok(())
    }
}

/// Brings into memory again what of a feed is open and not there.
fn bring_back_of(engine: &Engine, feed: &Feed) -> Result<(), Error> {
    let Some((first, last)) = feed.queue.lock().to_bring_back() else {
        return Ok(());
    };
    let read = find_open(engine, feed, first, last);
    // What is named goes without the log as well, which alone says where it is filed and how large it is.
    feed.queue.lock().bring_back_named();
    read?;
    let many = feed.queue.lock().bring_back_no_more(last);
    if many > 0 {
        let (peer, feed) = (&feed.peer.name, &feed.config.name);
        tracing::error!(
            peer,
            feed,
            "missed {many} articles that were not settled when the feed ended: the log is kept no longer (`engine.log_keep_octets`)"
        );
    }
    feed.more.notify_waiters();
    Ok(())
}

/// Finds in the log what is open and not in memory.
fn find_open(engine: &Engine, feed: &Feed, first: Sequence, last: Sequence) -> Result<(), Error> {
    let mut cursor = engine.feed_from(first);
    while cursor.position() <= last {
        let read = cursor.read(|article| {
            let mut queue = feed.queue.lock();
            if queue.is_to_bring_back(article.sequence) {
                queue.bring_back(offered(article));
            }
            ControlFlow::Continue(())
        })?;
        if read == FeedRead::End {
            break;
        }
    }
    Ok(())
}

/// The feeds that take a list of groups.
fn takers<'l>(
    lists: &'l mut HashMap<Box<[u8]>, Box<[usize]>>,
    feeds: &[Arc<Feed>],
    groups: &FedGroups<'_>,
) -> &'l [usize] {
    // What is filed apart goes under a name of its own: no Newsgroups has a line feed.
    let mut list = Cow::Borrowed(groups.newsgroups);
    if let Some(group) = groups.filed_in {
        let list = list.to_mut();
        list.push(b'\n');
        list.push(u8::from(groups.is_strange));
        list.extend_from_slice(group.as_bytes());
    }
    let newsgroups = &*list;
    if !lists.contains_key(newsgroups) {
        if lists.len() >= LISTS_MAX {
            lists.clear();
        }
        let takes = |feed: &Arc<Feed>| feed.filter.takes_groups(groups).is_ok();
        let those = feeds.iter().enumerate().filter(|(_, feed)| takes(feed));
        lists.insert(newsgroups.into(), those.map(|(at, _)| at).collect());
    }
    lists.get(newsgroups).map_or(&[], |those| those)
}

fn offered(article: &FedArticle<'_>) -> Arc<Offered> {
    Arc::new(Offered {
        sequence: article.sequence,
        filed: article.place,
        id: String::from_utf8_lossy(article.id).into(),
        octets: Some(article.octets),
        text: Slot::default(),
    })
}
