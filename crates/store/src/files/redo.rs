//! The octets of the files of the last commits once more, until the files themselves are durable.
//!
//! To sync a file system on which some hundred small files were made writes every directory and every table of inodes that they changed.
//! So a commit syncs their octets here, one behind the other, and the file system is synced for many commits at once: when a half is full,
//! beside the commits that go on in the other half, and at each checkpoint.  What a power cut took of the files is made again from here
//! when the set is opened, before anybody reads ([`Redo::restore`]); a half says that it was settled before it is used again.  What is
//! large, or does not fit, is synced as files.  The layout is in `docs/formats/catalogue.md`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use newsreel_host::{Disk, ErrorKind, File, OpenMode};
use newsreel_wire::Position;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::CATALOGUE;
use super::batch::{Collected, Unwritten};
use super::card::Card;
use super::folder::Folder;
use crate::error::{ReadError, Result};
use crate::method::{Blocking, BufferReader as _, CheckpointWrite, Want};
use crate::records::buffer::Buffer;
use crate::records::geometry::{PAGE, in_memory};

/// What the two halves are called in the catalogue.
pub(super) const NAMES: [&str; 2] = ["redo.0", "redo.1"];
/// A half becomes longer by so much at least.
const STEP: u64 = 1 << 20;
/// The octets of longer articles, in the mean, are written once: their files cost no more to sync than they do here.
const MEAN_OCTETS_MAX: usize = 16 << 10;

/// In front of what a commit has.
const MAGIC: [u8; 8] = *b"nr-redo\n";
const VERSION: u32 = 1;
/// Octets in front of the files of a commit.
const FRONT: usize = 48;
/// ... and of each of them.
const ENTRY: usize = 16;

/// One stretch of a half, as its front tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Front {
    /// Rises each time that a half is begun.
    epoch: u64,
    /// Octets behind the front.
    octets: u64,
    /// Files; none: what the epoch had is settled.
    files: u32,
    crc: u32,
}

impl Front {
    fn encode(self) -> [u8; FRONT] {
        let mut out = [0; FRONT];
        let parts: [&[u8]; 6] = [
            &MAGIC,
            &VERSION.to_le_bytes(),
            &self.files.to_le_bytes(),
            &self.epoch.to_le_bytes(),
            &self.octets.to_le_bytes(),
            &self.crc.to_le_bytes(),
        ];
        let mut at = 0;
        for part in parts {
            out[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        let crc = crc32c::crc32c(&out[..FRONT - 4]);
        out[FRONT - 4..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    fn decode(octets: &[u8]) -> Option<Self> {
        let front: &[u8; FRONT] = octets.first_chunk()?;
        let u32_at = |at: usize| {
            front
                .get(at..)?
                .first_chunk()
                .map(|it| u32::from_le_bytes(*it))
        };
        let u64_at = |at: usize| {
            front
                .get(at..)?
                .first_chunk()
                .map(|it| u64::from_le_bytes(*it))
        };
        let is_whole = u32_at(FRONT - 4)? == crc32c::crc32c(&front[..FRONT - 4]);
        let is_ours = front.starts_with(&MAGIC) && u32_at(8)? == VERSION;
        let front = Self {
            files: u32_at(12)?,
            epoch: u64_at(16)?,
            octets: u64_at(24)?,
            crc: u32_at(32)?,
        };
        (is_whole && is_ours).then_some(front)
    }
}

/// A file that is kept: where its card lies, and its octets.
type Kept<'o> = (Position, &'o [u8]);

/// The files of a stretch; what is cut off ends it.
fn entries(mut octets: &[u8]) -> impl Iterator<Item = Kept<'_>> {
    std::iter::from_fn(move || {
        let (front, rest) = octets.split_first_chunk::<ENTRY>()?;
        let (position, rest_of_front) = front.split_first_chunk::<8>()?;
        let len = u32::from_le_bytes(*rest_of_front.first_chunk()?) as usize;
        let (file, rest) = rest.split_at_checked(len)?;
        octets = rest;
        Some((Position(u64::from_le_bytes(*position)), file))
    })
}

/// What a commit has to be kept.
#[derive(Debug)]
pub(super) struct Stretch {
    octets: Vec<u8>,
    files: u32,
}

impl Stretch {
    /// Of these articles, up to a page, but for its epoch.
    fn of<'a>(
        collected: &Collected,
        articles: impl Iterator<Item = &'a Unwritten>,
    ) -> Option<Self> {
        let mut out = Vec::with_capacity(collected.text.len() + collected.text.len() / 8);
        out.resize(FRONT, 0);
        let mut files = 0;
        for article in articles {
            files += 1;
            let octets = collected.file_of(article);
            out.extend_from_slice(&article.position.0.to_le_bytes());
            out.extend_from_slice(&u32::try_from(octets.len()).ok()?.to_le_bytes());
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(octets);
        }
        let front = Front {
            epoch: 0,
            octets: (out.len() - FRONT) as u64,
            files,
            crc: crc32c::crc32c(&out[FRONT..]),
        };
        out[..FRONT].copy_from_slice(&front.encode());
        out.resize(out.len().next_multiple_of(in_memory(PAGE)), 0);
        Some(Self { octets: out, files })
    }

    /// Says in which epoch it is.
    fn date(&mut self, epoch: u64) {
        let front = self.octets.first_chunk_mut::<FRONT>();
        if let Some(front) = front
            && let Some(known) = Front::decode(front)
        {
            *front = Front { epoch, ..known }.encode();
        }
    }
}

/// One of the two files.
#[derive(Debug, Default)]
struct Half {
    file: Option<Arc<dyn File>>,
    /// It is written out up to here.
    octets: u64,
    epoch: u64,
    /// Files in it are not known to be durable.
    is_held: bool,
}

#[derive(Debug, Default)]
struct State {
    halves: [Half; 2],
    /// The one that is written.
    active: usize,
    /// Where it goes on.
    at: u64,
    /// Of the half that was begun last.
    epoch: u64,
    /// A half is being settled.
    is_settling: bool,
    /// The files of the last stretch are still being written.
    is_early: bool,
    /// One could not be: what is in both must be made again first.
    has_failed: bool,
    /// What there is was not looked at, or could not be.
    is_unknown: bool,
    /// It cannot be written: all is synced as files.
    is_off: bool,
}

/// What the thread that settles shares.
#[derive(Debug)]
struct Shared {
    disk: Arc<dyn Disk>,
    /// The directory of the set.
    dir: PathBuf,
    state: Mutex<State>,
    settled: Condvar,
}

impl Shared {
    /// Makes durable all files that were written, and says in this half that they are.
    fn settle(&self, half: usize) {
        let synced = self.disk.sync_file_system(&self.dir);
        let mut state = self.state.lock();
        state.is_settling = false;
        match synced {
            Ok(()) => state.halves[half].say_settled(),
            Err(error) => {
                tracing::error!(%error, set = %self.dir.display(), "files cannot be made durable; they are written again");
                state.has_failed = true;
            }
        }
        drop(state);
        self.settled.notify_all();
    }
}

impl Half {
    /// Nothing in it is needed any more.
    fn say_settled(&mut self) {
        self.is_held = false;
        let front = Front {
            epoch: self.epoch,
            octets: 0,
            files: 0,
            crc: 0,
        };
        let Some(file) = &self.file else { return };
        let said = file.write_at(&front.encode(), 0);
        if let Err(error) = said.and_then(|()| file.sync_data()) {
            tracing::warn!(%error, "files that are durable will be written again at the next start");
        }
    }
}

/// Both halves of one set.
#[derive(Debug)]
pub(crate) struct Redo {
    shared: Arc<Shared>,
    /// The directory in which they lie.
    catalogue: PathBuf,
    /// Octets of a half; 0: all is synced as files.
    half_octets: u64,
    /// Commits that were written and are neither here nor synced.
    unsynced: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Redo {
    /// Of a set that keeps so many octets in both halves.
    pub(super) fn new(folder: &Folder, octets: u64) -> Self {
        Self {
            shared: Arc::new(Shared {
                disk: Arc::clone(&folder.disk),
                dir: folder.dir.clone(),
                state: Mutex::default(),
                settled: Condvar::new(),
            }),
            catalogue: folder.dir.join(CATALOGUE),
            half_octets: octets / 2 / PAGE * PAGE,
            unsynced: AtomicU64::new(0),
            thread: Mutex::default(),
        }
    }

    /// The files of a commit were written.
    pub(super) fn written(&self) {
        self.unsynced.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether files may be missing that nobody removed.
    pub(super) fn has_failed(&self) -> bool {
        let state = self.shared.state.lock();
        state.has_failed || state.is_unknown
    }

    /// What a commit has to be kept, but for articles of which `is_elsewhere` says that their files were synced elsewhere; none: they, and all that
    /// was written before, must be synced as files.
    pub(super) fn stretch(
        &self,
        collected: &Collected,
        is_elsewhere: impl Fn(&str) -> bool,
    ) -> Option<Stretch> {
        let octets_max = collected.articles.len() * MEAN_OCTETS_MAX;
        let is_off = self.shared.state.lock().is_off;
        if is_off || self.half_octets == 0 || collected.text.len() > octets_max {
            return None;
        }
        let is_away = |name: &String| is_elsewhere(name);
        let all = collected.articles.iter();
        let (away, here): (Vec<&Unwritten>, Vec<&Unwritten>) =
            all.partition(|article| article.names.iter().any(is_away));
        if !away.iter().all(|article| article.names.iter().all(is_away)) {
            return None;
        }
        let stretch = Stretch::of(collected, here.into_iter())?;
        (stretch.octets.len() as u64 <= self.half_octets).then_some(stretch)
    }

    /// Commits that were written and are neither here nor synced.
    pub(super) fn unsynced(&self) -> u64 {
        self.unsynced.load(Ordering::Relaxed)
    }

    /// What was written is synced, or kept here.
    pub(super) fn synced(&self) {
        self.unsynced.store(0, Ordering::Relaxed);
    }

    /// All files of what is kept were written.
    pub(super) fn caught_up(&self) {
        self.shared.state.lock().is_early = false;
        self.shared.settled.notify_all();
    }

    /// Makes the files of a commit safe here, also before they are written: then it is told when they are ([`Self::caught_up`]).
    ///
    /// # Errors
    /// When the disk fails: what comes later is synced as files.
    pub(super) fn keep(
        &self,
        of: (&Arc<Buffer>, &Folder),
        mut stretch: Stretch,
        is_early: bool,
    ) -> newsreel_host::Result<()> {
        let mut state = self.shared.state.lock();
        if stretch.files == 0 {
            return Ok(());
        }
        if state.is_unknown {
            self.look(&mut state)?;
        }
        if state.has_failed {
            self.make_again(&mut state, of)?;
        }
        if state.at + stretch.octets.len() as u64 > self.half_octets {
            if let Some(half) = self.turn(&mut state) {
                let is_begun = self.settle_beside(half);
                state.is_settling = is_begun;
                state.has_failed |= !is_begun;
            }
            if state.has_failed {
                self.make_again(&mut state, of)?;
            }
        }
        state.is_early = is_early;
        let written = self.write(&mut state, &mut stretch);
        // The spot may be bad for good.
        state.is_off |= written.is_err();
        written
    }

    /// Writes a stretch and syncs it.
    fn write(&self, state: &mut State, stretch: &mut Stretch) -> newsreel_host::Result<()> {
        let (half, at) = (state.active, state.at);
        state.epoch += u64::from(at == 0);
        stretch.date(state.epoch);
        let end = at + stretch.octets.len() as u64;
        let epoch = state.epoch;
        let written = &mut state.halves[half];
        written.epoch = epoch;
        let file = self.file(half, written, end)?;
        file.write_at(&stretch.octets, at)?;
        file.sync_data()?;
        written.is_held = true;
        state.at = end;
        Ok(())
    }

    /// The file of a half, written out up to here at least.
    fn file(&self, half: usize, of: &mut Half, end: u64) -> newsreel_host::Result<Arc<dyn File>> {
        let disk = &self.shared.disk;
        let file = match &of.file {
            Some(file) => Arc::clone(file),
            None => {
                let path = self.catalogue.join(NAMES[half]);
                let file = disk.open(&path, OpenMode::CreateOrOpen)?;
                of.octets = file.len()?;
                disk.sync_dir(&self.catalogue)?;
                file
            }
        };
        if of.octets < end {
            // Each time as long again: what is not written out yet costs a sync of the file system's own notes.
            let up_to = (2 * end).next_multiple_of(STEP).min(self.half_octets);
            file.zero_fill(of.octets, up_to - of.octets)?;
            file.sync_all()?;
            of.octets = up_to;
        }
        of.file = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Waits until the other half is free, and turns to it; the one that was written is to be settled.
    fn turn(&self, state: &mut MutexGuard<'_, State>) -> Option<usize> {
        while state.is_settling {
            self.shared.settled.wait(state);
        }
        let written = state.active;
        if state.has_failed || !state.halves[written].is_held {
            return None;
        }
        (state.active, state.at) = (1 - written, 0);
        state.is_settling = true;
        Some(written)
    }

    /// Settles a half while commits go on; whether that was begun.
    fn settle_beside(&self, half: usize) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut thread = self.thread.lock();
        join(&mut thread);
        let settling = std::thread::Builder::new().name("settle".to_owned());
        match settling.spawn(move || shared.settle(half)) {
            Ok(started) => *thread = Some(started),
            Err(error) => {
                tracing::error!(%error, "no thread can be started that makes files durable");
                return false;
            }
        }
        true
    }

    /// Whether files wait to become durable.
    pub(super) fn waits(&self) -> bool {
        let state = self.shared.state.lock();
        state.halves.iter().any(|half| half.is_held)
    }

    /// Settles what was kept so far; a failure is met again by the next commit.
    fn settle(&self) {
        let mut state = self.shared.state.lock();
        // Whichever of them ended last, the other may have begun again.
        while state.is_early || state.is_settling {
            self.shared.settled.wait(&mut state);
        }
        let half = self.turn(&mut state);
        drop(state);
        if let Some(half) = half {
            self.shared.settle(half);
        }
    }

    /// Makes again, when the set is opened, what a power cut took of files that were kept.
    ///
    /// # Errors
    /// When the disk fails; then nothing that is missing was removed by somebody, and the next commit tries it again.
    pub(super) fn restore(&self, of: (&Arc<Buffer>, &Folder)) -> newsreel_host::Result<()> {
        let mut state = self.shared.state.lock();
        state.is_unknown = true;
        self.look(&mut state)?;
        match state.has_failed {
            true => self.make_again(&mut state, of),
            false => Ok(()),
        }
    }

    /// Looks what there is of both halves.
    fn look(&self, state: &mut State) -> newsreel_host::Result<()> {
        for (half, name) in NAMES.iter().enumerate() {
            let file = match self
                .shared
                .disk
                .open(&self.catalogue.join(name), OpenMode::ReadWrite)
            {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file?,
            };
            let octets = file.len()?;
            let found = stretches(&*file)?;
            let epoch = found.iter().map(|(_, front)| front.epoch).max();
            let of_last = found.iter().filter(|(_, front)| Some(front.epoch) == epoch);
            state.epoch = state.epoch.max(epoch.unwrap_or_default());
            state.halves[half] = Half {
                file: Some(file),
                octets,
                epoch: epoch.unwrap_or_default(),
                is_held: of_last.clone().count() > 0 && of_last.clone().all(|(_, it)| it.files > 0),
            };
        }
        state.has_failed = state.halves.iter().any(|half| half.is_held);
        state.is_unknown = false;
        Ok(())
    }

    /// Sees that every file which is kept is there, writes it once more, as nobody knows what of it is durable, and makes all durable.
    fn make_again(
        &self,
        state: &mut State,
        of: (&Arc<Buffer>, &Folder),
    ) -> newsreel_host::Result<()> {
        let (mut changed, mut made) = (Vec::new(), 0_u64);
        let mut halves: Vec<&Half> = state.halves.iter().filter(|half| half.is_held).collect();
        halves.sort_by_key(|half| half.epoch);
        for half in halves {
            let Some(file) = &half.file else { continue };
            for (at, front) in stretches(&**file)? {
                if front.epoch != half.epoch {
                    continue;
                }
                let mut octets = vec![0; in_memory(front.octets)];
                file.read_exact_at(&mut octets, at + FRONT as u64)?;
                if crc32c::crc32c(&octets) != front.crc {
                    let what = "what was kept of the files of a commit is damaged: if a power cut took some of them, they are lost";
                    tracing::error!(file = %file.path().display(), at, "{what}");
                    of.0.complain(format!("{}: at {at} {what}", file.path().display()));
                    continue;
                }
                for kept in entries(&octets) {
                    made += u64::from(again(of, kept, &mut changed)?);
                }
            }
        }
        of.1.sync(changed.iter().map(PathBuf::as_path))?;
        if made > 0 {
            tracing::warn!(files = made, set = %of.1.dir.display(), "files of articles that were not durable yet are made again");
        }
        state.has_failed = false;
        state.at = 0;
        for half in &mut state.halves {
            if half.is_held {
                half.say_settled();
            }
        }
        Ok(())
    }
}

impl Drop for Redo {
    /// What is under way must not write into what somebody else has opened by then.
    fn drop(&mut self) {
        join(self.thread.get_mut());
    }
}

fn join(thread: &mut Option<JoinHandle<()>>) {
    if let Some(thread) = thread.take() {
        // One that ended by a defect has told of it.
        let _ = thread.join();
    }
}

/// Where stretches begin in a half, and their fronts.
fn stretches(file: &dyn File) -> newsreel_host::Result<Vec<(u64, Front)>> {
    let (mut at, end) = (0, file.len()?);
    let (mut found, mut octets) = (Vec::new(), [0; FRONT]);
    while at + PAGE <= end {
        let front = match file.read_exact_at(&mut octets, at) {
            Err(error) if error.is_medium() => None,
            read => {
                read?;
                Front::decode(&octets)
            }
        };
        let front = front.filter(|front| front.octets <= end - at - FRONT as u64);
        let octets = front.map_or(0, |front| front.octets + FRONT as u64);
        found.extend(front.map(|front| (at, front)));
        at += octets.max(1).next_multiple_of(PAGE);
    }
    Ok(found)
}

/// Sees that the file which is kept is there under each of its names, and writes it; whether it was not.  What was changed is added to `changed`.
fn again(
    (cards, folder): (&Arc<Buffer>, &Folder),
    (position, octets): Kept<'_>,
    changed: &mut Vec<PathBuf>,
) -> newsreel_host::Result<bool> {
    let mut memory = Vec::new();
    let read = cards
        .token_at(position)
        .and_then(|token| cards.read(&token, Want::Whole, Blocking::Yes, &mut memory));
    let stored = match read {
        Ok(stored) => stored,
        Err(ReadError::Host(error)) if !error.is_medium() => return Err(error),
        // It was withdrawn, or nothing leads to it.
        Err(_) => return Ok(false),
    };
    let Ok(card) = Card::decode(memory.get(stored.octets).unwrap_or_default()) else {
        return Ok(false);
    };
    // What lies on another file system was made durable there.
    if !card.is_of(octets) || folder.roots.hides(card.names()) {
        return Ok(false);
    }
    folder.make_again(&card, stored.arrival, octets, changed)
}

/// What was kept of files becomes durable as files.
#[derive(Debug)]
pub(super) struct Settling(pub(super) Arc<Redo>);

impl CheckpointWrite for Settling {
    fn write(&mut self) -> Result<()> {
        self.0.settle();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
