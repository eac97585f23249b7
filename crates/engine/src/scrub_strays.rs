//! Files that lie in the directory of a set and to which no card leads: a kill or a power cut came between a file and its card.
//!
//! Such a file is removed only where it is certain that nobody needs it: the article was taken when it came again, has a card of this
//! set and a sound file of its own, and this one is a copy of it, to which no other path leads; or a move was ended, and the article is read
//! in another set, has the same octets there, and no file that this one is; or the history knows that the article lay in this set, under this name, and was
//! withdrawn; or nothing is in it, and no card leads there.  In a directory that somebody has turned over (Usenetfs) none is removed, and it is
//! told.  What else nobody is led to is told of and stays: it may be of a
//! catalogue or a log that was lost.  What is just being written is no stray: who looks waits for the commit under way, and
//! looks again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::OpenMode;
use newsreel_index::{HistoryEntry, Led};
use newsreel_store::{
    Blocking, BufferReader, Error as StoreError, FileOf, FileWalk, Lying, Scanned, Want,
};
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{IdHash, MessageId, Position, Token};

use crate::requests::Request;
use crate::scrub_cards::LostCards;
use crate::shared::Shared;

/// So many files are kept in mind, to be looked at again.
pub const STRAYS_AT_ONCE: usize = 1024;

/// So many files with nothing in them are held against all cards at once.
pub const EMPTY_AT_ONCE: usize = 64;

/// So many directories that were turned over are told by name.
const TURNED_OVER_MAX: usize = 20;

/// What was met of them in the directory of one set.
#[derive(Debug)]
pub(crate) struct Strays<'a> {
    shared: &'a Shared,
    buffer: &'a Arc<dyn BufferReader>,
    files: Box<dyn FileWalk>,
    lost: LostCards<'a>,
    text: Vec<u8>,
    met: Vec<(Lying, Option<IdHash>)>,
    /// Those of articles that have a later name than their own.
    later: Vec<(PathBuf, Token)>,
    /// So many of them have their own again.
    named: u64,
    removed: u64,
    /// Those of articles that lie in other sets.
    moved: u64,
    /// Those of articles that were withdrawn.
    withdrawn: u64,
    /// Those with nothing in them.
    empty: u64,
    stay: u64,
    /// The first of those that stay.
    first: Option<PathBuf>,
    /// Places of the catalogue that were closed.
    closed: u64,
    /// Directories that somebody has turned over, and how many are not told by name.
    turned: BTreeSet<PathBuf>,
    turned_more: u64,
    /// The directory of the file that was looked at last, and whether it lies in such a one.
    last: (PathBuf, bool),
}

impl<'a> Strays<'a> {
    /// None where articles have no files of their own.
    pub(crate) fn of(shared: &'a Shared, buffer: &'a Arc<dyn BufferReader>) -> Option<Self> {
        Some(Self {
            shared,
            buffer,
            files: Arc::clone(buffer).files()?,
            lost: LostCards::new(shared, buffer),
            text: Vec::new(),
            met: Vec::new(),
            later: Vec::new(),
            named: 0,
            removed: 0,
            moved: 0,
            withdrawn: 0,
            empty: 0,
            stay: 0,
            first: None,
            closed: 0,
            turned: BTreeSet::new(),
            turned_more: 0,
            last: (PathBuf::new(), false),
        })
    }

    /// Looks at one file more; how many octets were read, `None` at the end.
    pub(crate) fn step(&mut self) -> Result<Option<u64>, StoreError> {
        let Some(file) = self.files.step(&mut self.text)? else {
            self.lost.restore();
            self.settle();
            self.name_plainly();
            self.closed = self.lost.close_holes().unwrap_or_else(|error| {
                let set = self.buffer.name();
                tracing::warn!(%error, set, "what is lost of a catalogue, and whose that was, cannot be told");
                0
            });
            return Ok(None);
        };
        self.look_at_directory(&file.path);
        let headers = Headers::scan_stored(&self.text).ok();
        let id = headers
            .as_ref()
            .and_then(|headers| headers.content(Known::MessageId));
        let id = id.and_then(|id| MessageId::parse(id).ok());
        let hash = id.map(|id| self.shared.id_hash(id));
        let entry = self.entry_of(hash);
        let is_known = self.whose(&file, &self.text, entry) == FileOf::Article;
        let is_lost = match (headers, entry) {
            (Some(headers), Some(entry)) if !is_known => {
                self.lost.is_of_one(&file, &headers, entry)?
            }
            _ => false,
        };
        // Where somebody turned a directory over, nothing is named anew.
        if is_known && !self.last.1 {
            self.has_later_name(&file, entry);
        }
        // What else lies behind a link is nobody's business here, unless an ended move or a power cut may have left it.
        let is_met = || {
            (file.link.is_none() || self.has_left(entry)) && !self.is_of_another_set(&file, entry)
        };
        if !is_known && !is_lost && is_met() {
            self.met.push((file, hash));
            if self.met.len() >= STRAYS_AT_ONCE {
                self.settle();
            }
        }
        Ok(Some(self.text.len() as u64))
    }

    /// Notes a directory that somebody has turned over, once for all files in it.
    fn look_at_directory(&mut self, file: &Path) {
        let dir = file.parent().unwrap_or(file);
        if dir == self.last.0 {
            return;
        }
        let turned = self.buffer.turned_over(file);
        self.last = (dir.to_path_buf(), turned.is_some());
        if let Some(turned) = turned.filter(|it| !self.turned.contains(it)) {
            match self.turned.len() < TURNED_OVER_MAX {
                true => drop(self.turned.insert(turned)),
                false => self.turned_more += 1,
            }
        }
    }

    /// Notes a file of an article that has a later name than its own.
    fn has_later_name(&mut self, file: &Lying, entry: Option<HistoryEntry>) {
        let is_later = file.path.to_str().is_some_and(|path| path.ends_with('+'));
        let token = entry.and_then(|entry| entry.token);
        if let Some(token) = token.filter(|_| is_later && file.is_plain) {
            self.later.push((file.path.clone(), token));
            if self.later.len() >= STRAYS_AT_ONCE {
                // What has their names may be about to go.
                self.settle();
                self.name_plainly();
            }
        }
    }

    /// Gives them their own, where what had those is gone.
    fn name_plainly(&mut self) {
        let later = std::mem::take(&mut self.later);
        let Some(_nothing_moves) = self.shared.moving.rests().filter(|_| !later.is_empty()) else {
            return;
        };
        match self.buffer.name_plainly(&later) {
            Ok(named) => self.named += named,
            Err(error) => {
                let set = self.buffer.name();
                tracing::warn!(%error, set, "files that have later names than their own keep them");
            }
        }
    }

    /// What the history says of the message-id in a file.
    fn entry_of(&self, hash: Option<IdHash>) -> Option<HistoryEntry> {
        self.shared.views.history().lookup(&hash?).ok()?
    }

    /// Where it leads, if that is another set.
    fn other_token(&self, entry: Option<HistoryEntry>) -> Option<Token> {
        let token = entry?.token?;
        (token.buffer() != self.buffer.id()).then_some(token)
    }

    /// Whether the history knows the article and leads nobody to this set for it.
    fn has_left(&self, entry: Option<HistoryEntry>) -> bool {
        entry.is_some_and(|it| it.token.is_none()) || self.other_token(entry).is_some()
    }

    /// Whether the file is, or may be, the one that the article has in another set, whose directory lies in this one's.
    fn is_of_another_set(&self, file: &Lying, entry: Option<HistoryEntry>) -> bool {
        self.other_token(entry).is_some_and(|token| {
            let other = self.shared.store.buffer(token.buffer());
            other.is_some_and(|other| other.may_own(&file.path, &token))
        })
    }

    /// Whose a file is of whose message-id the history says this.
    fn whose(&self, file: &Lying, front: &[u8], entry: Option<HistoryEntry>) -> FileOf {
        let token = entry.and_then(|entry| entry.token);
        match token.filter(|token| token.buffer() == self.buffer.id()) {
            Some(token) => self.buffer.is_file_of(file, front, &token),
            None => FileOf::Unknown,
        }
    }

    /// Whether a file has what the article has, which lies in another set and was read there.
    fn is_elsewhere(&self, file: &Lying, entry: Option<HistoryEntry>) -> bool {
        let store = &self.shared.store;
        let Some(token) = self.other_token(entry) else {
            return false;
        };
        let mut memory = Vec::new();
        let Ok(stored) = store.read(&token, Want::Whole, Blocking::Yes, &mut memory) else {
            return false;
        };
        let text = memory.get(stored.octets).unwrap_or_default();
        let other = store.buffer(token.buffer());
        other.is_some_and(|other| !other.may_own(&file.path, &token))
            && self.buffer.has_text(file, text)
    }

    /// Of files that nobody needs where their articles lay here and were withdrawn, those of which the history says so.  What it merely
    /// remembers may be of a spool that somebody wants to take in.
    fn went(&self, met: &[(Lying, Option<IdHash>)]) -> BTreeMap<IdHash, Vec<Token>> {
        let history = self.shared.views.history();
        let is_nowhere = |hash: &IdHash| {
            let known = history.lookup(hash);
            known.is_ok_and(|entry| entry.is_some_and(|entry| entry.token.is_none()))
        };
        let hashes = met.iter().filter_map(|(_, hash)| *hash);
        let nowhere: BTreeSet<IdHash> = hashes.filter(is_nowhere).collect();
        let mut went = BTreeMap::<_, Vec<_>>::new();
        if nowhere.is_empty() {
            return went;
        }
        let walk = history.tokens_in(self.buffer.id(), Position::ZERO..Position(u64::MAX));
        let asked = walk.and_then(|mut walk| {
            let mut is_led = |led: Led| {
                if nowhere.contains(&led.hash) {
                    went.entry(led.hash).or_default().push(led.token);
                }
            };
            while walk.step(history, &mut is_led)? {}
            Ok(())
        });
        if let Err(error) = asked {
            let set = self.buffer.name();
            tracing::warn!(%error, set, "whose the files are to which no card leads cannot be told of all");
        }
        went
    }

    /// Looks again at what was met, when what was on its way has come, and removes what is a copy.
    fn settle(&mut self) {
        let met = std::mem::take(&mut self.met);
        // To copies of articles that move nobody is led yet.
        let Some(_nothing_moves) = self.shared.moving.rests().filter(|_| !met.is_empty()) else {
            return;
        };
        let is_done = self.shared.have_done(Request::Clear(Vec::new()));
        let (mut left, mut empty) = (Vec::new(), Vec::new());
        for (file, hash) in met {
            // Where it lies is not where it was written: what the cards and the history say of that tells nothing of it.
            if self.buffer.turned_over(&file.path).is_some() {
                self.stay += 1;
                self.first.get_or_insert(file.path);
                continue;
            }
            let may_go = is_done && file.is_plain && file.octets == 0;
            if may_go && empty.len() < EMPTY_AT_ONCE {
                empty.push(file);
                continue;
            }
            let entry = self.entry_of(hash);
            match self.whose(&file, &[], entry) {
                FileOf::Article => {}
                FileOf::Copy if file.is_plain && self.buffer.remove_copy(&file.path).is_ok() => {
                    self.removed += 1;
                }
                FileOf::Unknown
                    if file.is_plain
                        && self.is_elsewhere(&file, entry)
                        && self.buffer.remove_copy(&file.path).is_ok() =>
                {
                    self.moved += 1;
                }
                // It went with the commit that was under way.
                _ if !self.shared.disk.exists(&file.path).unwrap_or(true) => {}
                FileOf::Copy | FileOf::Unknown => left.push((file, hash)),
            }
        }
        left.extend(
            self.remove_empty(empty)
                .into_iter()
                .map(|file| (file, None)),
        );
        let went = self.went(&left);
        for (file, hash) in left {
            // One that somebody moved away counts as removed, so that its article is withdrawn: it may be the only copy.
            let tokens = hash.and_then(|hash| went.get(&hash));
            let lies_there = |token: &Token| self.buffer.is_named(&file.path, token);
            let is_to_go = file.is_plain && tokens.is_some_and(|it| it.iter().any(lies_there));
            if is_to_go && self.buffer.remove_copy(&file.path).is_ok() {
                self.withdrawn += 1;
            } else {
                self.stay += 1;
                self.first.get_or_insert(file.path);
            }
        }
    }

    /// Removes those of these files in which nothing is still, now that what was being written is there, and to which no card leads; returns those
    /// that stay and of which it is to be told: one to which a card leads is damage of its article, told as that.
    fn remove_empty(&mut self, empty: Vec<Lying>) -> Vec<Lying> {
        let disk = &self.shared.disk;
        let is_empty = |path: &Path| {
            let there = disk.open(path, OpenMode::Read);
            there
                .and_then(|there| there.len())
                .is_ok_and(|len| len == 0)
        };
        let led = match self.led_to(&empty) {
            Ok(led) => led,
            Err(error) => {
                let set = self.buffer.name();
                tracing::warn!(%error, set, "to which files its cards lead cannot be told");
                return empty;
            }
        };
        let mut stay = Vec::new();
        let of_nobody = empty.into_iter().zip(led).filter(|(_, is_led)| !is_led);
        for (file, _) in of_nobody {
            if is_empty(&file.path) && self.buffer.remove_copy(&file.path).is_ok() {
                self.empty += 1;
            } else if disk.exists(&file.path).unwrap_or(true) {
                stay.push(file);
            }
        }
        stay
    }

    /// To which of these files a card leads, or may.
    fn led_to(&self, files: &[Lying]) -> Result<Vec<bool>, StoreError> {
        let mut led = vec![false; files.len()];
        let cards = Arc::clone(self.buffer).cards();
        let Some(mut cards) = cards.filter(|_| !files.is_empty()) else {
            return Ok(led);
        };
        while let Some(scanned) = cards.step()? {
            let Scanned::Record { token, .. } = scanned else {
                continue;
            };
            for (file, led) in files.iter().zip(&mut led) {
                *led = *led || self.buffer.may_own(&file.path, &token);
            }
        }
        Ok(led)
    }

    /// So many files have their cards again.
    pub(crate) fn restored(&self) -> u64 {
        self.lost.made()
    }

    /// Which directories somebody has turned over.
    fn told_turned(&self) -> Option<String> {
        let dirs: Vec<String> = self
            .turned
            .iter()
            .map(|dir| dir.display().to_string())
            .collect();
        let more = match self.turned_more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!dirs.is_empty()).then(|| {
            format!(
                "directories that somebody has turned over behind the server's back (`newsreel usenetfs convert`, or a set-uid bit): {}{more}; nothing \
                 is removed there; stop the server and `newsreel usenetfs convert off` each, or `chmod u-s` one that has only the bit: how its \
                 directories lie, `layouts` of the [[set]] says",
                dirs.join(", ")
            )
        })
    }

    /// What was met.
    pub(crate) fn told(self) -> Vec<String> {
        let buffer = self.buffer.name();
        let mut told = Vec::new();
        if self.restored() > 0 {
            told.push(format!(
                "articles whose cards were lost: {}; their cards were made again from their files, and they are served again",
                self.restored()
            ));
        }
        if let Some((left, why)) = self.lost.failed() {
            told.push(format!(
                "articles whose cards were lost and cannot be written: {left}; their files are there, and another scrub makes their \
                 cards again when this is over: {why}"
            ));
        }
        if self.closed > 0 {
            told.push(format!(
                "places of the catalogue in which no card can be read, of articles that were withdrawn: {}; they were closed",
                self.closed
            ));
        }
        if self.removed > 0 {
            told.push(format!(
                "files that are copies of articles which have their own, left by a power cut: {}; they were removed",
                self.removed
            ));
        }
        if self.moved > 0 {
            told.push(format!(
                "files to which no card leads, of articles that lie in other sets, left by a move that was ended: {}; they were removed",
                self.moved
            ));
        }
        if self.empty > 0 {
            told.push(format!(
                "files with nothing in them to which no card leads, left by a kill or a power cut: {}; they were removed",
                self.empty
            ));
        }
        if self.withdrawn > 0 {
            told.push(format!(
                "files to which no card leads, of articles that were cancelled, expired or moved: {}; they were removed",
                self.withdrawn
            ));
        }
        told.extend(self.told_turned());
        if self.named > 0 {
            told.push(format!(
                "files of articles that had a `+` behind their names, which others had when they came: {}; they have their own now",
                self.named
            ));
        }
        if let Some(first) = self.first {
            told.push(format!(
                "files to which no card leads: {}, first {}; nothing tells whether they were ever taken, so they stay: move them \
                 elsewhere, or remove them, if nobody needs them",
                self.stay,
                first.display()
            ));
        }
        for said in &told {
            tracing::warn!(buffer, "{said}");
        }
        told.iter()
            .map(|said| format!("buffer {buffer}: {said}"))
            .collect()
    }
}
