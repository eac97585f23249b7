//! The queue: one file a mail, durable before it is said to be there, gone when it was sent.
//!
//! A file is named after its article and its recipient, so the same one handed over again is one mail, and after who posted it: each
//! has a share of the queue, also after a start.  Those that may be tried go in the order they came in, which the times of their files keep; one that fails holds up no other.  When a mail is tried next is in memory
//! only: after a start all are tried at once.  A damaged file is set aside and reported, never deleted.  What was sent goes out of
//! the queue behind that, so a stop between the two sends it again: the same octets, with the same Message-ID.  An empty file says
//! that it was, so that no article of this message-id is taken once more; of these the newest [`SENT_KEPT_MAX`] stay.
//!
//! What is refused for good is tried until the pauses are the longest; then it is kept in a folder of the queue's, where it holds up
//! nobody and waits for the administrator.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use newsreel_host::{Clock, Disk, ErrorKind, read_whole, replace_file, set_aside};
use newsreel_service::posting::{Account, Mail, MailDrop, MailRefused, Mailed};
use newsreel_service::{NoPlace, OfferedId, Place, Places};
use parking_lot::{Condvar, Mutex};

use crate::deliver::Deliver;
use crate::format::{self, FILE_OCTETS_MAX};

/// How a mail's file ends.
const ENDING: &str = ".mail";

/// How the file ends that says that one was sent.
const SENT_ENDING: &str = ".sent";

/// The folder in a queue's where those are that were refused for good.
pub const REFUSED_FOLDER: &str = "refused";

/// Digits in a file's name, of the message-id and of the recipient.
const ID_DIGITS: usize = 20;
const TO_DIGITS: usize = 12;

/// Mails of which it is known that they were sent; each is an empty file.
pub const SENT_KEPT_MAX: usize = 10_000;

/// How many mails there may be, and how long is waited between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Mails that may wait, of one poster's a quarter of what others leave; and that are kept of those refused for good.
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
    places: Arc<Places<Poster>>,
    state: Mutex<State>,
    changed: Condvar,
}

/// Who posted it, as a file's name says it.
type Poster = String;

/// What tells one mail from all others: digits of its article's message-id, then such of its recipient.
type Digits = String;

#[derive(Debug, Default)]
struct State {
    /// When each is tried.
    waiting: BTreeMap<Digits, Attempt>,
    /// Those that are being written.
    coming: BTreeSet<Digits>,
    /// Mails that were sent or refused for good, and the order in which they were.
    sent: BTreeMap<Digits, Mailed>,
    sent_order: VecDeque<Digits>,
    /// The turn of the next one.
    turn: u64,
    stopping: bool,
}

#[derive(Debug)]
struct Attempt {
    file: String,
    /// Its poster's, until it is gone.
    _place: Place<Poster>,
    /// Which came before which.
    turn: u64,
    /// On the clock that only goes on.
    next: Duration,
    /// The last pause; none before the first attempt.
    pause: Duration,
}

impl State {
    /// What became of a mail of these first digits.
    fn find(&self, first: &str) -> Option<Mailed> {
        let from = || first.to_owned()..;
        let begins = |digits: &Digits| digits.starts_with(first);
        let waiting = self.waiting.range(from()).next();
        if waiting.is_some_and(|(digits, _)| begins(digits)) {
            return Some(Mailed::Kept);
        }
        let sent = self.sent.range(from()).next();
        let coming = self.coming.range(from()).next();
        sent.filter(|(digits, _)| begins(digits))
            .map(|(_, mailed)| *mailed)
            .or_else(|| {
                coming
                    .filter(|digits| begins(digits))
                    .map(|_| Mailed::Coming)
            })
    }

    /// Puts one at the end.
    fn append(&mut self, file: String, place: Place<Poster>) {
        let (digits, _) = parts(&file);
        let digits = digits.to_owned();
        let attempt = Attempt {
            file,
            _place: place,
            turn: self.turn,
            next: Duration::ZERO,
            pause: Duration::ZERO,
        };
        self.turn += 1;
        self.waiting.insert(digits, attempt);
    }

    /// One more was sent, or refused for good; those that are too many.
    fn sent(&mut self, digits: Digits, mailed: Mailed) -> Vec<Digits> {
        if self.sent.insert(digits.clone(), mailed).is_none() {
            self.sent_order.push_back(digits);
        }
        let too_many = self.sent_order.len().saturating_sub(SENT_KEPT_MAX);
        let gone: Vec<Digits> = self.sent_order.drain(..too_many).collect();
        for digits in &gone {
            self.sent.remove(digits);
        }
        gone
    }
}

/// The file that says that a mail was sent.
fn sent_file(digits: &str) -> String {
    [digits, SENT_ENDING].concat()
}

/// A waiting file's digits, and who posted it, where its name says so.
fn parts(file: &str) -> (&str, Option<&str>) {
    let name = file.strip_suffix(ENDING).unwrap_or(file);
    match name.split_once('-') {
        Some((digits, poster)) => (digits, Some(poster)),
        None => (name, None),
    }
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
                sent.push((changed()?, digits.to_owned()));
            } else if entry.name.ends_with(".new") {
                // Never acknowledged: it was being written when the machine stopped.
                disk.remove(&folder.join(entry.name))?;
            }
        }
        found.sort();
        sent.sort();
        let (mut state, places) = (State::default(), Places::new(pace.mails_max));
        for (_, file) in found {
            let (_, poster) = parts(&file);
            let place = places.found(poster.map(str::to_owned));
            state.append(file, place);
        }
        // Without that folder they are said to have been sent.
        let refused = disk.list(&folder.join(REFUSED_FOLDER)).unwrap_or_default();
        let refused: BTreeSet<&str> = refused.iter().map(|it| parts(&it.name).0).collect();
        for (_, digits) in sent {
            let mailed = match refused.contains(digits.as_str()) {
                true => Mailed::Refused,
                false => Mailed::Kept,
            };
            for gone in state.sent(digits, mailed) {
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
            places,
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
        while let Some(file) = self.next_due() {
            self.attempt(&file, deliver);
        }
    }

    /// Lets [`MailQueue::run`] return after the attempt it is at.
    pub fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_all();
    }

    /// Waits until a mail is due; its file.  `None`: it is time to stop.
    fn next_due(&self) -> Option<String> {
        let mut state = self.state.lock();
        loop {
            if state.stopping {
                return None;
            }
            let now = self.clock.monotonic();
            // Of those that are due the one that came first.
            let turn = |at: &Attempt| (at.next.max(now), at.turn);
            let first = state.waiting.values().min_by_key(|at| turn(at));
            match first.map(|at| (at.next, &at.file)) {
                Some((next, file)) if next <= now => return Some(file.clone()),
                Some((next, _)) => {
                    let _ = self.changed.wait_for(&mut state, next - now);
                }
                None => self.changed.wait(&mut state),
            }
        }
    }

    fn attempt(&self, file: &str, deliver: &dyn Deliver) {
        let (path, (digits, _)) = (self.folder.join(file), parts(file));
        let read = read_whole(self.disk.as_ref(), &path, FILE_OCTETS_MAX);
        let octets = match read {
            Ok(octets) => octets,
            Err(error) if error.kind() == ErrorKind::NotFound => return self.forget(digits),
            Err(error) => {
                tracing::error!(target: "newsreel::mail", %error, "a waiting mail cannot be read");
                return self.put_off(digits);
            }
        };
        let mail = match format::decode(&octets) {
            Ok(mail) => mail,
            Err(why) => {
                let aside = set_aside(self.disk.as_ref(), &path);
                let file = aside.as_deref().unwrap_or(&path).display();
                tracing::error!(target: "newsreel::mail", %file, %why,
                    "a waiting mail is damaged and was set aside: look at it and send it by hand");
                return self.forget(digits);
            }
        };
        let id = mail.id.to_string();
        match deliver.deliver(&mail) {
            Ok(()) => {
                tracing::info!(target: "newsreel::mail", id, to = mail.to, "sent to the moderator, or to the administrator");
                self.remove(digits, &path, Mailed::Kept);
            }
            Err(why) => {
                tracing::warn!(target: "newsreel::mail", id, to = mail.to, %why,
                    "a mail could not be sent; it is kept and tried again");
                match why.is_for_good && self.is_slow(digits) {
                    true => self.give_up(file, &octets),
                    false => self.put_off(digits),
                }
            }
        }
    }

    /// Whether it is tried no oftener than any.
    fn is_slow(&self, digits: &str) -> bool {
        let state = self.state.lock();
        let attempt = state.waiting.get(digits);
        attempt.is_some_and(|it| it.pause >= self.pace.longest)
    }

    /// Keeps a mail where it holds up nobody, and takes it out; it stays where it cannot be kept.
    fn give_up(&self, file: &str, octets: &[u8]) {
        let (digits, _) = parts(file);
        match self.keep_refused(file, octets) {
            Ok(Some(kept)) => {
                tracing::error!(target: "newsreel::mail", file = %kept.display(),
                    "a mail is refused for good, and is tried no more: look at it, and send it by hand, or move it back into the \
                     queue's folder and start the server again");
                self.remove(digits, &self.folder.join(file), Mailed::Refused);
            }
            Ok(None) => {
                let folder = self.folder.join(REFUSED_FOLDER);
                tracing::error!(target: "newsreel::mail", folder = %folder.display(), mails = self.pace.mails_max,
                    "a mail is refused for good, and waits on: there are as many of those as may be kept; look through them, and \
                     take them away");
                self.put_off(digits);
            }
            Err(error) => {
                tracing::error!(target: "newsreel::mail", %error,
                    "a mail is refused for good, and waits on: it cannot be kept elsewhere");
                self.put_off(digits);
            }
        }
    }

    /// A copy of a mail among those that were refused, on disk; none: there are too many.
    fn keep_refused(&self, file: &str, octets: &[u8]) -> newsreel_host::Result<Option<PathBuf>> {
        let (disk, folder) = (self.disk.as_ref(), self.folder.join(REFUSED_FOLDER));
        if !disk.exists(&folder)? {
            disk.create_dir_all(&folder)?;
            disk.sync_dir(&self.folder)?;
        }
        if disk.list(&folder)?.len() >= self.pace.mails_max {
            return Ok(None);
        }
        let path = folder.join(file);
        if disk.exists(&path)? {
            // Of a stop in this very moment, or of another article that had the same message-id long ago.
            set_aside(disk, &path)?;
        }
        replace_file(disk, &path, octets)?;
        Ok(Some(path))
    }

    /// Notes that a mail was sent, or is tried no more, and takes it out.
    fn remove(&self, digits: &str, path: &Path, mailed: Mailed) {
        let file = |digits: &str| self.folder.join(sent_file(digits));
        match replace_file(self.disk.as_ref(), &file(digits), b"") {
            Ok(()) => {
                let gone = self.state.lock().sent(digits.to_owned(), mailed);
                for digits in gone {
                    // One that stays goes at the next start.
                    let _ = self.disk.remove(&file(&digits));
                }
            }
            Err(error) => {
                tracing::error!(target: "newsreel::mail", %error,
                    "it cannot be kept that a mail was dealt with: the same article is mailed again if it is posted again");
            }
        }
        let removed = self.disk.remove(path);
        let removed = removed.and_then(|()| self.disk.sync_dir(&self.folder));
        if let Err(error) = removed {
            tracing::error!(target: "newsreel::mail", %error,
                "a mail that was dealt with cannot be taken out of the queue: the next start sends it again");
        }
        self.forget(digits);
    }

    fn forget(&self, digits: &str) {
        self.state.lock().waiting.remove(digits);
    }

    fn put_off(&self, digits: &str) {
        let now = self.clock.monotonic();
        if let Some(attempt) = self.state.lock().waiting.get_mut(digits) {
            let pause = (attempt.pause * 2).clamp(self.pace.first, self.pace.longest);
            attempt.next = now + pause;
            attempt.pause = pause;
        }
    }

    fn place(&self, poster: Option<Poster>) -> Result<Place<Poster>, MailRefused> {
        self.places.take(poster).map_err(|why| match why {
            NoPlace::All => MailRefused::Full,
            NoPlace::Share => MailRefused::Share,
        })
    }

    /// Holds a place for one more mail.
    fn reserve(
        &self,
        digits: &str,
        old: &str,
        poster: Option<Poster>,
    ) -> Result<Place<Poster>, MailRefused> {
        let mut state = self.state.lock();
        // Whoever it goes to: filters and limits count an article once.
        let article = digits.get(..ID_DIGITS).unwrap_or(digits);
        match state.find(article).or_else(|| state.find(old)) {
            None => {}
            // Whoever hands over what another is just handing over comes again: by then it is known how that went.
            Some(Mailed::Coming) => return Err(MailRefused::Full),
            Some(Mailed::Kept | Mailed::Refused) => return Err(MailRefused::Again),
        }
        let place = self.place(poster)?;
        state.coming.insert(digits.to_owned());
        Ok(place)
    }
}

/// The digits of all mails with this article.
fn digits_of(id: &OfferedId) -> Digits {
    digits(id.as_bytes(), ID_DIGITS)
}

/// The first digits of a hash.
fn digits(of: &[u8], count: usize) -> Digits {
    let hex = blake3::hash(of).to_hex();
    hex.get(..count).unwrap_or_default().to_owned()
}

/// The digits of a mail, and its file.
fn names_of(mail: &Mail, poster: Option<&str>) -> (Digits, String) {
    let digits = digits_of(&mail.id) + &digits(mail.to.as_bytes(), TO_DIGITS);
    let poster = poster.map(|poster| ["-", poster].concat());
    let file = [&digits, poster.as_deref().unwrap_or_default(), ENDING].concat();
    (digits, file)
}

/// The digits of a mail as names had them until November 2026: one hash of both, so that nothing of it tells the article.
fn old_digits_of(mail: &Mail) -> Digits {
    let both = [mail.id.as_bytes(), mail.to.as_bytes()].concat();
    digits(&both, ID_DIGITS + TO_DIGITS)
}

/// A poster as a file's name says it.
fn name_of(poster: Account) -> Poster {
    let mut name = Poster::with_capacity(2 * poster.len());
    for octet in poster {
        let _ = write!(name, "{octet:02x}");
    }
    name
}

impl MailDrop for MailQueue {
    fn find(&self, id: &OfferedId) -> Option<Mailed> {
        self.state.lock().find(&digits_of(id))
    }

    fn has_room(&self, poster: Option<Account>) -> Result<(), MailRefused> {
        self.place(poster.map(name_of)).map(drop)
    }

    fn submit(&self, mail: &Mail, poster: Option<Account>) -> Result<(), MailRefused> {
        let poster = poster.map(name_of);
        let (digits, file) = names_of(mail, poster.as_deref());
        let place = self.reserve(&digits, &old_digits_of(mail), poster)?;
        let written = format::encode(mail)
            .ok_or(MailRefused::Failed)
            .and_then(|octets| {
                let path = self.folder.join(&file);
                replace_file(self.disk.as_ref(), &path, &octets).map_err(|error| {
                    tracing::error!(target: "newsreel::mail", %error, "a mail cannot be kept");
                    match error.kind() {
                        ErrorKind::Full => MailRefused::Full,
                        _ => MailRefused::Failed,
                    }
                })
            });
        let mut state = self.state.lock();
        state.coming.remove(&digits);
        if written.is_ok() {
            state.append(file, place);
        }
        drop(state);
        self.changed.notify_all();
        written
    }
}

#[cfg(test)]
mod tests;
