//! The queue: one file a mail, durable before it is said to be there, gone when it was sent.
//!
//! A file is named after its article, so the same one handed over again is one mail.  Those that may be tried go in the order
//! they came in, which the times of their files keep; one that fails holds up no other.  When a mail is tried next is in memory
//! only: after a start all are tried at once.  A damaged file is set aside and reported, never deleted.  What was sent goes out of
//! the queue behind that, so a stop between the two sends it again: the same octets, with the same Message-ID.  An empty file says
//! that it was, so that the same is not taken once more; of these the newest [`SENT_KEPT_MAX`] stay.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use newsreel_host::{Clock, Disk, ErrorKind, read_whole, replace_file, set_aside};
use newsreel_service::posting::{Mail, MailDrop, MailRefused};
use parking_lot::{Condvar, Mutex};

use crate::deliver::Deliver;
use crate::format::{self, FILE_OCTETS_MAX};

/// How a mail's file ends.
const ENDING: &str = ".mail";

/// How the file ends that says that one was sent.
const SENT_ENDING: &str = ".sent";

/// Mails of which it is known that they were sent; each is an empty file.
pub const SENT_KEPT_MAX: usize = 10_000;

/// How many mails there may be, and how long is waited between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Mails that may wait.
    pub mails_max: usize,
    /// The first pause after an attempt that failed.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

/// Mails that wait to be sent.
#[derive(Debug)]
pub struct MailQueue {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    folder: PathBuf,
    pace: Pace,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// File names, and when each is tried.
    waiting: BTreeMap<String, Attempt>,
    /// Files that are being written.
    coming: BTreeSet<String>,
    /// The names of mails that were sent, and the order in which they were.
    sent: BTreeSet<String>,
    sent_order: VecDeque<String>,
    /// The place of the next one.
    place: u64,
    stopping: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Attempt {
    /// Which came before which.
    place: u64,
    /// On the clock that only goes on.
    next: Duration,
    /// The last pause; none before the first attempt.
    pause: Duration,
}

impl State {
    /// Puts one at the end.
    fn append(&mut self, name: String) {
        let attempt = Attempt {
            place: self.place,
            ..Attempt::default()
        };
        self.place += 1;
        self.waiting.insert(name, attempt);
    }

    /// One more was sent; the names of those that are too many.
    fn sent(&mut self, name: String) -> Vec<String> {
        if self.sent.insert(name.clone()) {
            self.sent_order.push_back(name);
        }
        let too_many = self.sent_order.len().saturating_sub(SENT_KEPT_MAX);
        let gone: Vec<String> = self.sent_order.drain(..too_many).collect();
        for name in &gone {
            self.sent.remove(name);
        }
        gone
    }
}

/// The file that says that a mail was sent.
fn sent_file(name: &str) -> String {
    [name.strip_suffix(ENDING).unwrap_or(name), SENT_ENDING].concat()
}

/// How many mails wait in a queue's folder, whoever has it.
///
/// # Errors
/// When the folder cannot be read.
pub fn waiting_in(disk: &dyn Disk, folder: &Path) -> newsreel_host::Result<usize> {
    if !disk.exists(folder)? {
        return Ok(0);
    }
    let entries = disk.list(folder)?.into_iter();
    Ok(entries.filter(|it| it.name.ends_with(ENDING)).count())
}

impl MailQueue {
    /// Takes up what waits in `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// When the disk cannot be read or written.
    pub fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        folder: &Path,
        pace: Pace,
    ) -> newsreel_host::Result<Self> {
        if !disk.exists(folder)? {
            disk.create_dir_all(folder)?;
            disk.sync_dir(folder.parent().unwrap_or(folder))?;
        }
        let (mut found, mut sent) = (Vec::new(), Vec::new());
        for entry in disk.list(folder)? {
            let changed = || {
                let facts = disk.facts(&folder.join(&entry.name))?;
                newsreel_host::Result::Ok(facts.map(|it| it.changed_ns))
            };
            if entry.name.ends_with(ENDING) {
                found.push((changed()?, entry.name));
            } else if let Some(digits) = entry.name.strip_suffix(SENT_ENDING) {
                sent.push((changed()?, [digits, ENDING].concat()));
            } else if entry.name.ends_with(".new") {
                // Never acknowledged: it was being written when the machine stopped.
                disk.remove(&folder.join(entry.name))?;
            }
        }
        found.sort();
        sent.sort();
        let mut state = State::default();
        for (_, name) in found {
            state.append(name);
        }
        for (_, name) in sent {
            for gone in state.sent(name) {
                if let Err(error) = disk.remove(&folder.join(sent_file(&gone))) {
                    tracing::warn!(%error, "what was sent long ago stays in the folder of mails");
                }
            }
        }
        Ok(Self {
            disk,
            clock,
            folder: folder.to_path_buf(),
            pace,
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// Mails waiting.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Sends what waits until [`MailQueue::stop`]; the thread that calls this is the one that waits for others.
    pub fn run(&self, deliver: &dyn Deliver) {
        while let Some(name) = self.next_due() {
            self.attempt(&name, deliver);
        }
    }

    /// Lets [`MailQueue::run`] return after the attempt it is at.
    pub fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_all();
    }

    /// Waits until a mail is due.  `None`: it is time to stop.
    fn next_due(&self) -> Option<String> {
        let mut state = self.state.lock();
        loop {
            if state.stopping {
                return None;
            }
            let now = self.clock.monotonic();
            // Of those that are due the one that came first.
            let turn = |at: &Attempt| (at.next.max(now), at.place);
            let first = state.waiting.iter().min_by_key(|(_, at)| turn(at));
            match first.map(|(name, at)| (name.clone(), at.next)) {
                Some((name, next)) if next <= now => return Some(name),
                Some((_, next)) => {
                    let _ = self.changed.wait_for(&mut state, next - now);
                }
                None => self.changed.wait(&mut state),
            }
        }
    }

    fn attempt(&self, name: &str, deliver: &dyn Deliver) {
        let path = self.folder.join(name);
        let read = read_whole(self.disk.as_ref(), &path, FILE_OCTETS_MAX);
        let octets = match read {
            Ok(octets) => octets,
            Err(error) if error.kind() == ErrorKind::NotFound => return self.forget(name),
            Err(error) => {
                tracing::error!(target: "newsreel::mail", %error, "a waiting mail cannot be read");
                return self.put_off(name);
            }
        };
        let mail = match format::decode(&octets) {
            Ok(mail) => mail,
            Err(why) => {
                let aside = set_aside(self.disk.as_ref(), &path);
                let file = aside.as_deref().unwrap_or(&path).display();
                tracing::error!(target: "newsreel::mail", %file, %why,
                    "a waiting mail is damaged and was set aside: look at it and send it by hand");
                return self.forget(name);
            }
        };
        let id = mail.id.to_string();
        match deliver.deliver(&mail) {
            Ok(()) => {
                tracing::info!(target: "newsreel::mail", id, to = mail.to, "sent to the moderator, or to the administrator");
                self.remove(name, &path);
            }
            Err(why) => {
                tracing::warn!(target: "newsreel::mail", id, to = mail.to, %why,
                    "a mail could not be sent; it is kept and tried again");
                self.put_off(name);
            }
        }
    }

    /// Notes that a mail was sent, and takes it out.
    fn remove(&self, name: &str, path: &Path) {
        let file = |name: &str| self.folder.join(sent_file(name));
        match replace_file(self.disk.as_ref(), &file(name), b"") {
            Ok(()) => {
                let gone = self.state.lock().sent(name.to_owned());
                for name in gone {
                    // One that stays goes at the next start.
                    let _ = self.disk.remove(&file(&name));
                }
            }
            Err(error) => {
                tracing::error!(target: "newsreel::mail", %error,
                    "it cannot be kept that a mail was sent: the same article is mailed again if it is posted again");
            }
        }
        let removed = self.disk.remove(path);
        let removed = removed.and_then(|()| self.disk.sync_dir(&self.folder));
        if let Err(error) = removed {
            tracing::error!(target: "newsreel::mail", %error,
                "a mail that was sent cannot be taken out of the queue: the next start sends it again");
        }
        self.forget(name);
    }

    fn forget(&self, name: &str) {
        self.state.lock().waiting.remove(name);
    }

    fn put_off(&self, name: &str) {
        let now = self.clock.monotonic();
        if let Some(attempt) = self.state.lock().waiting.get_mut(name) {
            let pause = (attempt.pause * 2).clamp(self.pace.first, self.pace.longest);
            attempt.next = now + pause;
            attempt.pause = pause;
        }
    }

    /// Holds a place for one more mail.
    fn reserve(&self, name: &str) -> Result<(), MailRefused> {
        let mut state = self.state.lock();
        if state.waiting.contains_key(name) || state.sent.contains(name) {
            return Err(MailRefused::Again);
        }
        // Whoever hands over what another is just handing over comes again: by then it is known how that went.
        let is_full = state.waiting.len() + state.coming.len() >= self.pace.mails_max;
        if is_full || !state.coming.insert(name.to_owned()) {
            return Err(MailRefused::Full);
        }
        Ok(())
    }
}

/// The file of an article's mail.
fn name_of(mail: &Mail) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(mail.id.as_bytes()).update(mail.to.as_bytes());
    let hex = hash.finalize().to_hex();
    format!("{}{ENDING}", hex.get(..32).unwrap_or_default())
}

impl MailDrop for MailQueue {
    fn submit(&self, mail: &Mail) -> Result<(), MailRefused> {
        let name = name_of(mail);
        self.reserve(&name)?;
        let written = format::encode(mail)
            .ok_or(MailRefused::Failed)
            .and_then(|octets| {
                let path = self.folder.join(&name);
                replace_file(self.disk.as_ref(), &path, &octets).map_err(|error| {
                    tracing::error!(target: "newsreel::mail", %error, "a mail cannot be kept");
                    match error.kind() {
                        ErrorKind::Full => MailRefused::Full,
                        _ => MailRefused::Failed,
                    }
                })
            });
        let mut state = self.state.lock();
        state.coming.remove(&name);
        if written.is_ok() {
            state.append(name);
        }
        drop(state);
        self.changed.notify_all();
        written
    }
}

#[cfg(test)]
mod tests;
