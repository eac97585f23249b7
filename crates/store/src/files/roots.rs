//! Which directories of a set lie on file systems of their own: mounted there, or behind symbolic links.
//!
//! Without its disk such a directory looks as if everybody had removed its files.  So what is known of roots is kept in a
//! file, `roots` in the catalogue, durable before the first article on one is acknowledged.  Where a known root is missing
//! nothing is written, and nothing that lay there is taken for removed; one that is full or fails keeps out its own articles
//! only.  Nor does anything count as removed on a file system on which no article of the set was seen since it came there: it
//! may be another one than had them.  A symbolic link that leads nowhere is met when something is to be written below it, and keeps out
//! what is to go there until it leads somewhere; so does, for a while, a directory that is kept from who runs the program.  A set that was made before there was such a list, or whose list is damaged, has one that is not complete: there an
//! absent or empty directory may be a disk that nobody knows, for good.  The file is drawn in `docs/formats/catalogue.md`; who
//! writes `none` into it says that there are no roots any more.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_host::{Disk, Error as HostError, ErrorKind, read_whole, replace_file};
use newsreel_wire::UnixTime;
use parking_lot::Mutex;

use crate::method::{Blocking, CheckpointWrite, TRIED_AGAIN_AFTER_S};

use super::folder::Folder;

/// What the file is called.
pub(crate) const ROOTS: &str = "roots";
const FIRST_LINE: &str = "newsreel roots 1";
/// The first line where there may be roots that the list does not have.
const FIRST_LINE_INCOMPLETE: &str = "newsreel roots 1 incomplete";
/// What a person writes instead of a list.
const NONE: &[u8] = b"none";
/// More is no list of ours.
const OCTETS_MAX: usize = 1 << 20;

/// The roots of one set.
#[derive(Debug)]
pub(crate) struct Roots {
    disk: Arc<dyn Disk>,
    /// The directory of the set.
    dir: PathBuf,
    file: PathBuf,
    /// The file system of that directory; it may get another number while it is mounted anew.
    own: Mutex<Option<u64>>,
    inner: Mutex<Inner>,
    /// At least one was missing or failing when that was looked at last.
    are_in_trouble: AtomicBool,
    /// There is at least one.
    are_there: AtomicBool,
    /// What is not in the list is no root.
    is_complete: bool,
    /// The list may be written.
    may_write: bool,
}

#[derive(Debug, Default)]
struct Inner {
    /// By their names below the directory of the set.
    known: BTreeMap<String, Root>,
    /// Symbolic links in the places of directories that led nowhere when that was looked at last.
    nowhere: BTreeSet<String>,
    /// Directories in which who runs the program may make nothing, and since when that is known.
    denied: BTreeMap<String, Option<UnixTime>>,
    /// One is in trouble that was not when that was asked last.
    is_news: bool,
}

#[derive(Debug)]
struct Root {
    /// Which one is there, once that was seen.
    file_system: Option<u64>,
    /// An article was read or written on it since it came.
    is_seen: bool,
    is_missing: bool,
    failing: Failing,
    /// Octets that may be written before its file system is asked again.
    room: u64,
}

/// Whether what was written to a root failed.
#[derive(Debug, PartialEq, Eq)]
enum Failing {
    No,
    /// Since what time is not known yet.
    Since(Option<UnixTime>),
}

impl Root {
    fn new() -> Self {
        Self {
            file_system: None,
            is_seen: false,
            is_missing: false,
            failing: Failing::No,
            room: u64::MAX,
        }
    }

    fn is_in_trouble(&self) -> bool {
        self.is_missing || self.failing != Failing::No
    }
}

impl Inner {
    /// The root on which something of this name is: the longest that leads there.
    fn of(&mut self, name: &str) -> Option<(&String, &mut Root)> {
        let name = Path::new(name);
        let roots = self.known.iter_mut();
        let mut leading = roots.filter(|(root, _)| name.starts_with(root));
        // Of those that lead to one name the longest is the last in this order.
        leading.next_back()
    }
}

/// What a file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    is_complete: bool,
    names: BTreeSet<String>,
}

/// The stored form.
fn encode<'n>(is_complete: bool, names: impl Iterator<Item = &'n str>) -> String {
    let first = match is_complete {
        true => FIRST_LINE,
        false => FIRST_LINE_INCOMPLETE,
    };
    let mut text = format!("{first}\n");
    for name in names {
        // A name with a line's end in it cannot be told; no group has one.
        if !name.contains('\n') {
            text.push_str(name);
            text.push('\n');
        }
    }
    let crc = crc32c::crc32c(text.as_bytes());
    // A string takes whatever is written.
    let _ = writeln!(text, "crc32c {crc:08x}");
    text
}

impl Listed {
    /// What is in a file, if that is as it was written.
    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        if octets.trim_ascii() == NONE {
            return Some(Self {
                is_complete: true,
                names: BTreeSet::new(),
            });
        }
        let text = std::str::from_utf8(octets).ok()?;
        let (front, last) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let covered = octets.get(..front.len() + 1)?;
        let crc = u32::from_str_radix(last.strip_prefix("crc32c ")?, 16).ok()?;
        let mut lines = front.lines();
        let is_complete = match lines.next()? {
            FIRST_LINE => true,
            FIRST_LINE_INCOMPLETE => false,
            _ => return None,
        };
        let is_below = |line: &&str| {
            let mut parts = Path::new(line).components();
            !line.is_empty() && parts.all(|part| matches!(part, std::path::Component::Normal(_)))
        };
        (crc == crc32c::crc32c(covered)).then(|| Self {
            is_complete,
            names: lines.filter(is_below).map(str::to_owned).collect(),
        })
    }

    /// The stored form.
    pub(crate) fn encode(&self) -> String {
        encode(self.is_complete, self.names.iter().map(String::as_str))
    }

    /// That of a set, which may be empty, damaged, or not there.
    fn read(disk: &dyn Disk, file: &Path) -> newsreel_host::Result<Option<Self>> {
        match read_whole(disk, file, OCTETS_MAX) {
            Ok(octets) => Ok(Some(Self::decode(&octets).unwrap_or_else(|| {
                tracing::error!(
                    path = %file.display(),
                    "the list of a set's roots is damaged, and made anew as they are met: a directory that is empty or not there is \
                     not taken for removed from now on; who knows that all file systems are mounted may stop the server and write \
                     `none` into it"
                );
                Self::default()
            }))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether a catalogue has nothing in it: the set is being made.
fn is_new(disk: &dyn Disk, catalogue: &Path) -> newsreel_host::Result<bool> {
    match disk.list(catalogue) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        entries => Ok(entries?.iter().all(|entry| entry.name.starts_with(ROOTS))),
    }
}

impl Roots {
    /// Those of a set's directory.  Who may write has what is mounted below noted, and does so before there is a catalogue; who only
    /// looks writes nothing.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        catalogue: &Path,
        may_write: bool,
    ) -> newsreel_host::Result<Self> {
        let file = catalogue.join(ROOTS);
        let kept = Listed::read(disk.as_ref(), &file)?;
        let is_new = kept.is_none() && may_write && is_new(disk.as_ref(), catalogue)?;
        let kept = kept.unwrap_or_default();
        let known = kept.names.into_iter();
        let inner = Inner {
            known: known.map(|root| (root, Root::new())).collect(),
            ..Inner::default()
        };
        let roots = Self {
            disk: Arc::clone(disk),
            dir: dir.to_path_buf(),
            file,
            own: Mutex::default(),
            are_there: AtomicBool::new(!inner.known.is_empty()),
            inner: Mutex::new(inner),
            are_in_trouble: AtomicBool::new(false),
            is_complete: is_new || kept.is_complete,
            may_write,
        };
        roots.look();
        if is_new {
            roots.keep(&roots.inner.lock())?;
        }
        if may_write {
            roots.note_mounted();
        }
        Ok(roots)
    }

    /// Notes what is mounted now: nobody may read or write there before it goes.
    fn note_mounted(&self) {
        *self.own.lock() = None;
        let mounted = self.disk.mounts_below(&self.dir).unwrap_or_default();
        let mut mounted = mounted.iter();
        let noted = mounted.try_for_each(|at| self.note(at, self.disk.file_system(at)?, false));
        if let Err(error) = noted {
            tracing::error!(%error, "what is mounted below a set cannot be noted");
        }
    }

    /// The file system of what is on another one than what it lies in.
    fn root_at(&self, at: &Path) -> newsreel_host::Result<Option<u64>> {
        let above = at.parent().unwrap_or(&self.dir);
        match self.disk.file_system(at) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            here => {
                let here = here?;
                Ok((here != self.disk.file_system(above)?).then_some(here))
            }
        }
    }

    /// Looks whether all known roots are there.
    pub(crate) fn look(&self) {
        if !self.are_there.load(Ordering::Acquire) {
            return;
        }
        let mut inner = self.inner.lock();
        let Inner {
            known,
            nowhere,
            is_news,
            ..
        } = &mut *inner;
        nowhere.retain(|name| {
            let at = self.dir.join(name);
            let leads_nowhere = self.leads_nowhere(&at);
            if !leads_nowhere {
                tracing::info!(path = %at.display(), "a symbolic link leads somewhere again, or is gone");
            }
            leads_nowhere
        });
        for (name, root) in known {
            let at = self.dir.join(name);
            // What cannot be looked at is not there.
            let file_system = self.root_at(&at).unwrap_or(None);
            let is_missing = file_system.is_none();
            root.is_seen &= root.file_system == file_system;
            root.file_system = file_system.or(root.file_system);
            if is_missing && !root.is_missing {
                *is_news = true;
                tracing::error!(
                    path = %at.display(), roots = %self.file.display(),
                    "a file system is not there: articles on it cannot be read, and none are taken, until it is mounted; if what \
                     was on it has been brought here for good, stop the server and write `none` into the file `roots`"
                );
            }
            if root.is_missing && !is_missing {
                tracing::info!(path = %at.display(), "a file system is there again");
            }
            root.is_missing = is_missing;
        }
        self.tell_trouble(&inner);
    }

    fn tell_trouble(&self, inner: &Inner) {
        let are_in_trouble = !inner.nowhere.is_empty()
            || !inner.denied.is_empty()
            || inner.known.values().any(Root::is_in_trouble);
        self.are_in_trouble.store(are_in_trouble, Ordering::Release);
    }

    /// Something could not be written or made durable at this path: where it is on a root, nothing is written to that one for a
    /// while.
    pub(crate) fn failed(&self, path: &Path, error: &HostError) {
        self.look();
        let Some(name) = path.strip_prefix(&self.dir).ok().and_then(Path::to_str) else {
            return;
        };
        let entry = path.parent().and_then(|dir| self.entry_at(dir).ok()?);
        let link = entry.filter(|at| self.leads_nowhere(at));
        let link = link.and_then(|at| self.name_of(at));
        let dir = path.parent().filter(|_| error.is_denied());
        let denied = dir.and_then(|dir| self.name_of(dir));
        let mut inner = self.inner.lock();
        if let Some(link) = link {
            let at = self.dir.join(&link);
            if inner.nowhere.insert(link) {
                tracing::error!(
                    path = %at.display(),
                    "a symbolic link leads nowhere: articles below it cannot be read, and none are taken, until it leads to a directory"
                );
                inner.is_news = true;
            }
            self.are_there.store(true, Ordering::Release);
        } else if let Some(dir) = denied.filter(|dir| !dir.is_empty()) {
            tracing::error!(
                path = %self.dir.join(&dir).display(), %error, again_after_s = TRIED_AGAIN_AFTER_S,
                "a directory is kept from the server: articles for it are put off; give it to the user that the server runs as"
            );
            inner.denied.insert(dir, None);
            inner.is_news = true;
            self.are_there.store(true, Ordering::Release);
        } else if let Some((name, root)) = inner.of(name)
            && !root.is_in_trouble()
        {
            tracing::error!(path = %self.dir.join(name).display(), again_after_s = TRIED_AGAIN_AFTER_S, "a file system fails: articles for it are put off");
            root.failing = Failing::Since(None);
            inner.is_news = true;
        }
        self.tell_trouble(&inner);
    }

    /// Asks the file systems what is free, of which so much must stay, and tries those again that failed a while ago.
    pub(crate) fn ask_for_room(&self, free_octets_min: u64, now: Option<UnixTime>) {
        if !self.are_there.load(Ordering::Acquire) {
            return;
        }
        self.look();
        let mut inner = self.inner.lock();
        inner.denied.retain(|_, since| {
            now.is_none_or(|now| {
                let since = *since.get_or_insert(now);
                now.0.saturating_sub(since.0) < TRIED_AGAIN_AFTER_S
            })
        });
        for (name, root) in &mut inner.known {
            let free = self.disk.free_bytes(&self.dir.join(name));
            root.room = free.map_or(u64::MAX, |free| free.saturating_sub(free_octets_min));
            if let (Failing::Since(since), Some(now)) = (&mut root.failing, now) {
                let since = *since.get_or_insert(now);
                if now.0.saturating_sub(since.0) >= TRIED_AGAIN_AFTER_S {
                    root.failing = Failing::No;
                }
            }
        }
        self.tell_trouble(&inner);
    }

    /// Whether one of these names, below the directory of the set, is on a root that is missing just now.
    pub(crate) fn hides<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        self.look();
        self.are_in_the_way(names, |root| root.is_missing, false)
    }

    /// Whether one of them is on a root to which nothing can be written; whether all are there is not asked again where none was in
    /// trouble: every commit asks that.
    pub(crate) fn keeps_out<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        if self.are_in_trouble.load(Ordering::Acquire) {
            self.look();
        }
        self.are_in_the_way(names, Root::is_in_trouble, true)
    }

    fn are_in_the_way<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
        is_in_the_way: impl Fn(&Root) -> bool,
        denied_too: bool,
    ) -> bool {
        if !self.are_in_trouble.load(Ordering::Acquire) {
            return false;
        }
        let inner = self.inner.lock();
        let troubled = inner.known.iter().filter(|(_, root)| is_in_the_way(root));
        let troubled = troubled.map(|(name, _)| name).chain(&inner.nowhere);
        let denied = inner.denied.keys().filter(|_| denied_too);
        let troubled = troubled.chain(denied);
        let troubled: Vec<&Path> = troubled.map(Path::new).collect();
        let mut names = names.into_iter().map(Path::new);
        names.any(|name| troubled.iter().any(|root| name.starts_with(root)))
    }

    /// Whether there is a new trouble since this was asked last.
    pub(crate) fn take_news(&self) -> bool {
        std::mem::take(&mut self.inner.lock().is_news)
    }

    /// Whether what is not in the list is no root.
    pub(crate) fn are_known(&self) -> bool {
        self.is_complete
    }

    /// Takes room for a file of this name: whether there is as much, where it is on a root.
    pub(crate) fn take_room(&self, name: &str, octets: u64) -> Option<bool> {
        if !self.are_there.load(Ordering::Acquire) {
            return None;
        }
        let mut inner = self.inner.lock();
        let (_, root) = inner.of(name)?;
        let left = root.room.checked_sub(octets);
        root.room = left.unwrap_or(root.room);
        Some(left.is_some())
    }

    /// The file system of the set's directory; none as long as there is no such directory.
    fn own(&self) -> Option<u64> {
        let mut own = self.own.lock();
        *own = own.or_else(|| self.disk.file_system(&self.dir).ok());
        *own
    }

    /// Whether this is a symbolic link that leads nowhere.
    fn leads_nowhere(&self, at: &Path) -> bool {
        let is_link = self
            .disk
            .link_target(at)
            .is_ok_and(|target| target.is_some());
        is_link && !self.disk.exists(at).unwrap_or(false)
    }

    /// What stands in the place of this directory, or of the lowest above it of which there is anything: where the directory is not there,
    /// a symbolic link that leads nowhere.
    pub(crate) fn entry_at<'p>(&self, dir: &'p Path) -> newsreel_host::Result<Option<&'p Path>> {
        for at in dir.ancestors().take_while(|at| *at != self.dir) {
            let above = at.parent().unwrap_or(&self.dir);
            match self.disk.list(above) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                entries => {
                    let name = at.file_name().and_then(std::ffi::OsStr::to_str);
                    let mut entries = entries?.into_iter();
                    let is_listed = entries.any(|entry| Some(entry.name.as_str()) == name);
                    return Ok(is_listed.then_some(at));
                }
            }
        }
        Ok(None)
    }

    fn name_of(&self, at: &Path) -> Option<String> {
        Some(at.strip_prefix(&self.dir).ok()?.to_str()?.to_owned())
    }

    /// An article was read from this file: where that is on another file system than the set's, that is noted.  `false`: it would
    /// have to wait for that.
    pub(crate) fn saw(&self, file: &Path, blocking: Blocking) -> bool {
        let dir = file.parent().unwrap_or(&self.dir);
        let Ok(here) = self.disk.file_system(dir) else {
            return true;
        };
        if self.own() == Some(here) || self.is_noted(dir, here, true) {
            return true;
        }
        if blocking == Blocking::Yes
            && let Err(error) = self.note(dir, here, true)
        {
            tracing::error!(path = %dir.display(), %error, "that articles lie on a file system of their own cannot be noted");
        }
        blocking == Blocking::Yes
    }

    /// Whether an article that is not in this directory was removed, as far as its file system tells: that of the set, or one
    /// on which others were seen.
    pub(crate) fn were_seen(&self, dir: &Path) -> bool {
        let there = dir
            .ancestors()
            .find_map(|at| match self.disk.file_system(at) {
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                here => Some(here.ok()),
            });
        let Some(Some(here)) = there else {
            return false;
        };
        let mut inner = self.inner.lock();
        let root = self.name_of(dir).and_then(|name| Some(inner.of(&name)?.1));
        let is_of_root = |root: &mut Root| root.is_seen && root.file_system == Some(here);
        self.own() == Some(here) || root.is_some_and(is_of_root)
    }

    /// Whether this directory is known to be on this file system; an article was seen there, or not.
    fn is_noted(&self, dir: &Path, file_system: u64, is_seen: bool) -> bool {
        let mut inner = self.inner.lock();
        let root = self.name_of(dir).and_then(|name| Some(inner.of(&name)?.1));
        let root = root.filter(|root| root.file_system == Some(file_system));
        root.map(|root| root.is_seen |= is_seen).is_some()
    }

    /// This directory, in which an article was seen or written, or perhaps none was, is on this file system and not on the set's:
    /// notes where that begins, durably where it may write.
    pub(crate) fn note(
        &self,
        dir: &Path,
        file_system: u64,
        is_seen: bool,
    ) -> newsreel_host::Result<()> {
        if self.is_noted(dir, file_system, is_seen) {
            return Ok(());
        }
        let mut inner = self.inner.lock();
        let mut new = Vec::new();
        for at in dir.ancestors().take_while(|at| *at != self.dir) {
            let Some(name) = self
                .name_of(at)
                .filter(|name| !inner.known.contains_key(name))
            else {
                continue;
            };
            if let Some(here) = self.root_at(at)? {
                let root = Root {
                    file_system: Some(here),
                    is_seen: is_seen && here == file_system,
                    ..Root::new()
                };
                inner.known.insert(name.clone(), root);
                new.push(name);
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        if self.may_write
            && let Err(error) = self.keep(&inner)
        {
            inner.known.retain(|name, _| !new.contains(name));
            return Err(error);
        }
        self.are_there.store(true, Ordering::Release);
        Ok(())
    }

    /// Writes the list.
    fn keep(&self, inner: &Inner) -> newsreel_host::Result<()> {
        if let Some(catalogue) = self.file.parent() {
            self.disk.create_dir_all(catalogue)?;
        }
        let text = encode(self.is_complete, inner.known.keys().map(String::as_str));
        replace_file(self.disk.as_ref(), &self.file, text.as_bytes())
    }
}

/// With each checkpoint the table of mounts is looked at.
#[derive(Debug)]
pub(super) struct LookAtMounts(pub(super) Arc<Folder>);

impl CheckpointWrite for LookAtMounts {
    fn write(&mut self) -> crate::error::Result<()> {
        self.0.roots.note_mounted();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(is_complete: bool, names: &[&str]) -> Listed {
        Listed {
            is_complete,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn what_is_kept_is_what_is_read() {
        for is_complete in [true, false] {
            let known = listed(is_complete, &["alt", "comp/lang"]);
            let text = known.encode();
            assert_eq!(Listed::decode(text.as_bytes()), Some(known));
            for at in 0..text.len() {
                let mut bad = text.clone().into_bytes();
                bad[at] ^= 2;
                assert_eq!(Listed::decode(&bad), None, "octet {at}");
                assert_eq!(Listed::decode(&text.as_bytes()[..at]), None, "cut at {at}");
            }
        }
        // Nothing leads out of the set's directory.
        let out = listed(true, &["../x", "/y", "z"]);
        let kept = Listed::decode(out.encode().as_bytes());
        assert_eq!(kept, Some(listed(true, &["z"])));
        assert_eq!(Listed::decode(b"none\n"), Some(listed(true, &[])));
    }
}
