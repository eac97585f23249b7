//! Posts that were taken and have not reached all their servers: kept until they have, or an administrator drops them.
//!
//! What [`PostQueue::put`] took is on disk when it returns, and every change after it.  Other than what the cache keeps, none of it
//! can be had again: a file that cannot be read is never removed, and the server does not start with it.  The layout is in
//! `docs/formats/cache.md`.  All calls may wait for the disk.

mod file;
mod post;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use newsreel_host::Disk;
use newsreel_wire::UnixTime;
use parking_lot::Mutex;
use redb::{ReadableDatabase as _, ReadableTable as _, TableDefinition, WriteTransaction};
use tokio::time::Instant;

use crate::keep::sealed;
use file::{Fault, QueueFile, fault};

pub use post::{PostTarget, QueuedPost, Standing, TARGETS_MAX};

/// Posts that may wait at the same time.
pub const QUEUED_POSTS_MAX: u64 = 10_000;

/// After a failure a server is tried again after this, and then after twice as long each time.
const AGAIN_MIN: Duration = Duration::from_secs(60);

/// ... but never later.
const AGAIN_MAX: Duration = Duration::from_secs(3600);

/// Numbers to posts, without their texts.
const POSTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("posts");
/// Numbers to texts.
const TEXTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("texts");
/// Under 0 the number of the next post, so that none is given twice.
const NEXT: TableDefinition<'_, u64, u64> = TableDefinition::new("next");

/// Why the queue cannot do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// Nothing more may wait.
    #[error("no more posts may wait: {0}")]
    Full(&'static str),
    /// Nothing is taken any more.
    #[error("this server is stopping")]
    Stopping,
    /// It is for more servers than a post may be.
    #[error(
        "it is for {0} servers, and a post that waits may be for {TARGETS_MAX}: post it to fewer groups at once"
    )]
    Targets(usize),
    /// There is no such post.
    #[error("no post {0} waits")]
    Missing(u64),
    /// It is being sent, or edited.
    #[error("post {0} is being sent or edited at this moment: look at the list again in a minute")]
    InHand(u64),
    /// The disk is full or fails.
    #[error(
        "the posts that wait, {}: {why}; none of those that were taken is lost, and no more are taken until the disk has room and can be \
         written", path.display()
    )]
    Disk {
        /// Which file.
        path: PathBuf,
        /// What the disk said.
        why: String,
    },
    /// The file is damaged.
    #[error(
        "the posts that wait, {}: {why}; nothing of it was removed: put back a sound copy, or move it away to do without them",
        path.display()
    )]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

type Result<T> = std::result::Result<T, QueueError>;

/// The queue.
pub struct PostQueue {
    file: QueueFile,
    octets_max: u64,
    /// Posts from this number on were not taken: whoever posted them was told that they may be lost, though the file may have them where a
    /// sync failed.
    taken_below: AtomicU64,
    /// Who changes a post holds this, so that none is changed from what it was before.
    changing: Mutex<()>,
    /// Those that are being sent or edited.
    in_hand: Mutex<HashSet<u64>>,
    /// Those that somebody wants tried though their servers may be left alone, and since when.
    by_hand: Mutex<HashMap<u64, Instant>>,
    /// When posts are tried again of which nothing else is to be noted: it is not worth a write each time.
    put_off: Mutex<HashMap<u64, HashMap<String, UnixTime>>>,
    /// What became of posts at servers, the oldest first, where the disk could not take it: posts are told with it, so that none is
    /// sent again to a server that has it.
    unnoted: Mutex<HashMap<u64, Vec<Unnoted>>>,
}

/// What became of a post at a server, and when.
#[derive(Debug)]
struct Unnoted {
    server: String,
    became: Became,
    at: UnixTime,
}

/// A post that nobody else sends, edits or drops; dropped, they may.
#[derive(Debug)]
pub struct InHand<'q> {
    queue: &'q PostQueue,
    number: u64,
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.queue.in_hand.lock().remove(&self.number);
    }
}

impl fmt::Debug for PostQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostQueue")
            .field("path", &self.file.path())
            .field("octets_max", &self.octets_max)
            .finish_non_exhaustive()
    }
}

/// What became of a post at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Became {
    /// The server has it.
    Sent,
    /// It refused it: these are its words.
    Refused(String),
    /// It did not take it, and is to be asked later, each time after twice as long; why.
    Waits(String),
    /// It could not be asked, or only was as somebody wanted it: the next time comes no later for that; why.
    PutOff(String),
}

impl PostTarget {
    /// Whether it is to be tried: also where that is farther away than any pause, as the clock was ahead when it was set.
    pub(crate) fn is_due(&self, now: UnixTime) -> bool {
        let farthest = UnixTime(now.0.saturating_add(AGAIN_MAX.as_secs()));
        self.standing == Standing::Waits && (self.at <= now || self.at > farthest)
    }

    /// Something became of it.
    pub(crate) fn became(&mut self, became: &Became, now: UnixTime) {
        let again = |tries| UnixTime(now.0 + pause(tries));
        match became {
            Became::Sent => self.stands(Standing::Sent, now, ""),
            Became::Refused(said) => self.stands(Standing::Refused, now, said),
            Became::Waits(why) => self.stands(Standing::Waits, again(self.tries), why),
            Became::PutOff(why) => self.put_off(again(self.tries.saturating_sub(1)), why),
        }
    }
}

impl QueuedPost {
    /// Something became of it at a server.
    fn became(&mut self, server: &str, became: &Became, now: UnixTime) {
        let mut targets = self.targets.iter_mut();
        if let Some(target) = targets.find(|target| target.server == server) {
            target.became(became, now);
        }
    }

    /// Whether it is to be sent to any server now.
    pub(crate) fn is_due(&self, now: UnixTime) -> bool {
        self.targets.iter().any(|target| target.is_due(now))
    }
}

/// How long after so many tries the next one is.
fn pause(tries: u32) -> u64 {
    let doubled = AGAIN_MIN.as_secs().saturating_mul(1 << tries.min(16));
    doubled.min(AGAIN_MAX.as_secs())
}

impl PostQueue {
    /// Opens the queue of a cache's directory, or makes it.
    ///
    /// # Errors
    /// When its file cannot be used.
    pub fn open(disk: &Arc<dyn Disk>, directory: &Path, octets_max: u64) -> Result<Self> {
        let queue = Self {
            file: QueueFile::open(disk, directory.join("posts.redb"))?,
            octets_max,
            taken_below: AtomicU64::new(u64::MAX),
            changing: Mutex::default(),
            in_hand: Mutex::default(),
            by_hand: Mutex::default(),
            put_off: Mutex::default(),
            unnoted: Mutex::default(),
        };
        queue.list()?;
        Ok(queue)
    }

    /// Keeps a post: its number.
    ///
    /// # Errors
    /// When there is no room, it is for too many servers, or the disk fails.
    pub fn put(&self, post: &QueuedPost, text: &[u8]) -> Result<u64> {
        bounded(post)?;
        let _changing = self.changing.lock();
        let all = self.list()?;
        let octets: u64 = all.iter().map(|(_, post)| post.octets).sum();
        if all.len() as u64 >= QUEUED_POSTS_MAX {
            return Err(QueueError::Full("there are as many as may be"));
        }
        if octets + text.len() as u64 > self.octets_max {
            return Err(QueueError::Full(
                "they have the octets of `cache.posts_octets`",
            ));
        }
        let post = QueuedPost {
            octets: text.len() as u64,
            ..post.clone()
        };
        let mut number = 0;
        self.file.change(|writing| {
            let mut next = writing.open_table(NEXT).map_err(fault)?;
            number = next.get(0).map_err(fault)?.map_or(1, |next| next.value());
            let untaken = self.taken_below.fetch_min(number, Ordering::AcqRel);
            (untaken..number).try_for_each(|number| remove(writing, number))?;
            next.insert(0, number + 1).map_err(fault)?;
            put_post(writing, number, &post)?;
            put_text(writing, number, text)
        })?;
        self.taken_below.store(u64::MAX, Ordering::Release);
        Ok(number)
    }

    /// Takes out of the file what it may have of posts that were not taken, which the next start would send.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn remove_untaken(&self) -> Result<()> {
        let _changing = self.changing.lock();
        let untaken = self.taken_below.load(Ordering::Acquire);
        if untaken == u64::MAX {
            return Ok(());
        }
        self.file.change(|writing| {
            let next = writing.open_table(NEXT).map_err(fault)?;
            let next = next.get(0).map_err(fault)?.map_or(1, |next| next.value());
            (untaken..next).try_for_each(|number| remove(writing, number))
        })?;
        self.taken_below.store(u64::MAX, Ordering::Release);
        Ok(())
    }

    /// All of them, the oldest first.
    ///
    /// # Errors
    /// When the disk fails, or one is damaged.
    pub fn list(&self) -> Result<Vec<(u64, QueuedPost)>> {
        let all = self.file.guarded(|database| {
            let reading = database.begin_read().map_err(fault)?;
            let posts = reading.open_table(POSTS).map_err(fault)?;
            let mut all = Vec::new();
            for row in posts.iter().map_err(fault)? {
                let (number, value) = row.map_err(fault)?;
                all.push((number.value(), decoded(number.value(), value.value())));
            }
            Ok(all)
        })?;
        let taken_below = self.taken_below.load(Ordering::Acquire);
        let taken = all.into_iter().filter(|(number, _)| *number < taken_below);
        let sound = |(number, post): (u64, Option<QueuedPost>)| {
            let post = post.ok_or_else(|| self.file.damaged(number))?;
            Ok((number, self.with_unnoted(number, post)))
        };
        taken.map(sound).collect()
    }

    /// One of them, with its text.
    ///
    /// # Errors
    /// When it is not there, or cannot be read.
    pub fn get(&self, number: u64) -> Result<(QueuedPost, Vec<u8>)> {
        let found = self.file.guarded(|database| {
            let reading = database.begin_read().map_err(fault)?;
            let posts = reading.open_table(POSTS).map_err(fault)?;
            let texts = reading.open_table(TEXTS).map_err(fault)?;
            let post = posts.get(number).map_err(fault)?;
            let text = texts.get(number).map_err(fault)?;
            let Some(post) = post else {
                return Ok(None);
            };
            let text = text.and_then(|text| {
                let text = sealed::open(&number.to_le_bytes(), text.value())?;
                Some(text.to_vec())
            });
            Ok(Some(decoded(number, post.value()).zip(text)))
        })?;
        let found = found.ok_or(QueueError::Missing(number))?;
        let (post, text) = found.ok_or_else(|| self.file.damaged(number))?;
        Ok((self.with_unnoted(number, post), text))
    }

    /// A post as it stands, though the file does not have all of it.
    fn with_unnoted(&self, number: u64, mut post: QueuedPost) -> QueuedPost {
        if let Some(put_off) = self.put_off.lock().get(&number) {
            for target in &mut post.targets {
                let again = put_off.get(&target.server).copied();
                target.at = again.unwrap_or(target.at);
            }
        }
        for unnoted in self.unnoted.lock().get(&number).into_iter().flatten() {
            post.became(&unnoted.server, &unnoted.became, unnoted.at);
        }
        post
    }

    /// Notes what the disk could not take before.
    ///
    /// # Errors
    /// When it cannot now.
    pub(crate) fn note_unnoted(&self) -> Result<()> {
        let numbers: Vec<u64> = self.unnoted.lock().keys().copied().collect();
        for number in numbers {
            match self.change_one(number, |_| ()) {
                Ok(_) => {}
                Err(QueueError::Missing(_)) => {
                    self.unnoted.lock().remove(&number);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes one in hand, to send it or to edit it: what a server is told and what is noted of it are of one text.
    ///
    /// # Errors
    /// When somebody has it in hand.
    pub fn take_in_hand(&self, number: u64) -> Result<InHand<'_>> {
        if !self.in_hand.lock().insert(number) {
            return Err(QueueError::InHand(number));
        }
        Ok(InHand {
            queue: self,
            number,
        })
    }

    /// Changes one of them; it goes when every server has it.
    fn change_one(&self, number: u64, change: impl FnOnce(&mut QueuedPost)) -> Result<QueuedPost> {
        let _changing = self.changing.lock();
        self.change_locked(number, change)
    }

    /// The same of who holds `changing`.
    fn change_locked(
        &self,
        number: u64,
        change: impl FnOnce(&mut QueuedPost),
    ) -> Result<QueuedPost> {
        let (mut post, _) = self.get(number)?;
        change(&mut post);
        self.file.change(|writing| {
            if post.is_sent() {
                remove(writing, number)
            } else {
                put_post(writing, number, &post)
            }
        })?;
        self.is_noted(number);
        Ok(post)
    }

    /// The file has all of a post as it stands.
    fn is_noted(&self, number: u64) {
        self.unnoted.lock().remove(&number);
        self.put_off.lock().remove(&number);
    }

    /// Puts a post off of which nothing else is to be noted; none: something is.
    fn only_put_off(
        &self,
        number: u64,
        server: &str,
        became: &Became,
        now: UnixTime,
    ) -> Option<QueuedPost> {
        if !matches!(became, Became::PutOff(_)) {
            return None;
        }
        let _changing = self.changing.lock();
        let (mut post, _) = self.get(number).ok()?;
        let mut targets = post.targets.iter_mut();
        let target = targets.find(|target| target.server == server)?;
        let before = target.clone();
        target.became(became, now);
        let again = target.at;
        if (before.standing, &before.said) != (target.standing, &target.said) {
            return None;
        }
        let mut put_off = self.put_off.lock();
        let of_post = put_off.entry(number).or_default();
        of_post.insert(server.to_owned(), again);
        Some(post)
    }

    /// Something became of a post at a server.  Where the disk cannot take it, it is known as long as this process runs.
    pub(crate) fn became(
        &self,
        number: u64,
        server: &str,
        became: &Became,
        now: UnixTime,
    ) -> Result<QueuedPost> {
        if let Some(post) = self.only_put_off(number, server, became, now) {
            return Ok(post);
        }
        // What is not noted is known before anybody else changes it, who takes it for known then.
        let _changing = self.changing.lock();
        let noted = self.change_locked(number, |post| post.became(server, became, now));
        if !matches!(noted, Ok(_) | Err(QueueError::Missing(_))) {
            let unnoted = Unnoted {
                server: server.to_owned(),
                became: became.clone(),
                at: now,
            };
            let mut all = self.unnoted.lock();
            all.entry(number).or_default().push(unnoted);
        }
        noted
    }

    /// Another text in the place of one: it is sent to all servers that do not have it.  Where all of them have it, it goes.
    ///
    /// # Errors
    /// When it is not there, it is for too many servers, or the disk fails.
    pub fn edit(&self, of: &InHand<'_>, edited: &QueuedPost, text: &[u8]) -> Result<()> {
        bounded(edited)?;
        let number = of.number;
        let _changing = self.changing.lock();
        self.get(number)?;
        let post = QueuedPost {
            octets: text.len() as u64,
            ..edited.clone()
        };
        self.file.change(|writing| {
            if post.is_sent() {
                return remove(writing, number);
            }
            put_post(writing, number, &post)?;
            put_text(writing, number, text)
        })?;
        self.is_noted(number);
        self.is_wanted_now((!post.is_sent()).then_some(number));
        Ok(())
    }

    /// Somebody wants these tried now, though their servers may be left alone.
    fn is_wanted_now(&self, numbers: impl IntoIterator<Item = u64>) {
        let now = Instant::now();
        let wanted = numbers.into_iter().map(|number| (number, now));
        self.by_hand.lock().extend(wanted);
    }

    /// Whether somebody wants one tried now.
    pub(crate) fn is_by_hand(&self, number: u64) -> bool {
        self.by_hand.lock().contains_key(&number)
    }

    /// Whether somebody wants any tried now.
    pub(crate) fn has_by_hand(&self) -> bool {
        !self.by_hand.lock().is_empty()
    }

    /// Since when somebody wants one tried, which it is from now on.
    pub(crate) fn taken_by_hand(&self, number: u64) -> Option<Instant> {
        self.by_hand.lock().remove(&number)
    }

    /// Has one tried again now, also at servers that refused it, and though these are left alone as they could not be reached.
    ///
    /// # Errors
    /// When it is not there, somebody has it in hand, or the disk fails.
    pub fn retry(&self, number: u64, now: UnixTime) -> Result<()> {
        let _in_hand = self.take_in_hand(number)?;
        let changed = self.change_one(number, |post| {
            for target in &mut post.targets {
                if target.standing != Standing::Sent {
                    (target.standing, target.at) = (Standing::Waits, now);
                }
            }
        });
        changed.map(|_| self.is_wanted_now([number]))
    }

    /// Has all that wait tried now: the servers can be asked again.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn wake(&self, now: UnixTime) -> Result<()> {
        let _changing = self.changing.lock();
        let mut later = self.list()?;
        later.retain(|(_, post)| post.due().is_some());
        self.is_wanted_now(later.iter().map(|(number, _)| *number));
        later.retain(|(_, post)| post.due().is_some_and(|due| due > now));
        if later.is_empty() {
            return Ok(());
        }
        self.file.change(|writing| {
            for (number, post) in &mut later {
                for target in &mut post.targets {
                    if target.standing == Standing::Waits {
                        target.at = now;
                    }
                }
                put_post(writing, *number, post)?;
            }
            Ok(())
        })?;
        for (number, _) in &later {
            self.is_noted(*number);
        }
        Ok(())
    }

    /// Forgets one.
    ///
    /// # Errors
    /// When it is not there, somebody has it in hand, or the disk fails.
    pub fn drop_one(&self, number: u64) -> Result<QueuedPost> {
        let _in_hand = self.take_in_hand(number)?;
        let _changing = self.changing.lock();
        let (post, _) = self.get(number)?;
        self.file.change(|writing| remove(writing, number))?;
        self.is_noted(number);
        self.by_hand.lock().remove(&number);
        Ok(post)
    }
}

/// Of more servers a post cannot be read again.
const fn bounded(post: &QueuedPost) -> Result<()> {
    match post.targets.len() {
        ..=TARGETS_MAX => Ok(()),
        targets => Err(QueueError::Targets(targets)),
    }
}

fn decoded(number: u64, value: &[u8]) -> Option<QueuedPost> {
    QueuedPost::decode(sealed::open(&number.to_le_bytes(), value)?)
}

fn put_post(
    writing: &WriteTransaction,
    number: u64,
    post: &QueuedPost,
) -> std::result::Result<(), Fault> {
    let mut posts = writing.open_table(POSTS).map_err(fault)?;
    let value = sealed::seal(&number.to_le_bytes(), &post.encode());
    posts.insert(number, &*value).map_err(fault)?;
    Ok(())
}

fn put_text(
    writing: &WriteTransaction,
    number: u64,
    text: &[u8],
) -> std::result::Result<(), Fault> {
    let mut texts = writing.open_table(TEXTS).map_err(fault)?;
    let value = sealed::seal(&number.to_le_bytes(), text);
    texts.insert(number, &*value).map_err(fault)?;
    Ok(())
}

fn remove(writing: &WriteTransaction, number: u64) -> std::result::Result<(), Fault> {
    let mut posts = writing.open_table(POSTS).map_err(fault)?;
    posts.remove(number).map_err(fault)?;
    let mut texts = writing.open_table(TEXTS).map_err(fault)?;
    texts.remove(number).map_err(fault)?;
    Ok(())
}

#[cfg(test)]
mod tests;
