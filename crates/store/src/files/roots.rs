//! Which directories of a set lie on file systems of their own: mounted there, or behind symbolic links.
//!
//! Without its disk such a directory looks as if everybody had removed its files.  So what is known of roots is kept in a
//! file, `roots` in the catalogue, durable before the first article on one is acknowledged.  Where a known root is missing
//! nothing is written, and nothing that lay there is taken for removed; one that is full or fails keeps out its own articles
//! only.  The file is drawn in `docs/formats/catalogue.md`; who removes it says that there are no roots any more.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_host::{Disk, ErrorKind, read_whole, replace_file};
use newsreel_wire::UnixTime;
use parking_lot::Mutex;

/// What the file is called.
pub(crate) const ROOTS: &str = "roots";
const FIRST_LINE: &str = "newsreel roots 1";
/// More is no list of ours.
const OCTETS_MAX: usize = 1 << 20;

/// A root that failed is tried again after so many seconds.
const AGAIN_AFTER_S: u64 = 60;

/// The roots of one set.
#[derive(Debug)]
pub(crate) struct Roots {
    disk: Arc<dyn Disk>,
    /// The directory of the set.
    dir: PathBuf,
    file: PathBuf,
    inner: Mutex<Inner>,
    /// At least one was missing or failing when that was looked at last.
    are_in_trouble: AtomicBool,
    /// There is at least one.
    are_there: AtomicBool,
    /// The list was there, and readable, when the set was opened: what is not in it is no root.
    was_kept: bool,
}

#[derive(Debug, Default)]
struct Inner {
    /// By their names below the directory of the set.
    known: BTreeMap<String, Root>,
    /// File systems whose roots are known.
    seen: HashSet<u64>,
    /// One is in trouble that was not when that was asked last.
    is_news: bool,
}

#[derive(Debug)]
struct Root {
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

/// The stored form.
pub(crate) fn encode<'n>(known: impl Iterator<Item = &'n str>) -> String {
    let mut text = format!("{FIRST_LINE}\n");
    for root in known {
        // A name with a line's end in it cannot be told; no group has one.
        if !root.contains('\n') {
            text.push_str(root);
            text.push('\n');
        }
    }
    let crc = crc32c::crc32c(text.as_bytes());
    // A string takes whatever is written.
    let _ = writeln!(text, "crc32c {crc:08x}");
    text
}

/// What a file says, if it is as it was written.
pub(crate) fn decode(octets: &[u8]) -> Option<BTreeSet<String>> {
    let text = std::str::from_utf8(octets).ok()?;
    let (front, last) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let covered = octets.get(..front.len() + 1)?;
    let crc = u32::from_str_radix(last.strip_prefix("crc32c ")?, 16).ok()?;
    let mut lines = front.lines();
    let is_ours = lines.next()? == FIRST_LINE && crc == crc32c::crc32c(covered);
    let is_below = |line: &&str| {
        let mut parts = Path::new(line).components();
        !line.is_empty() && parts.all(|part| matches!(part, std::path::Component::Normal(_)))
    };
    is_ours.then(|| lines.filter(is_below).map(str::to_owned).collect())
}

impl Roots {
    /// Those of a set's directory, and whether all are there.  Who may write has what is mounted below noted.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        catalogue: &Path,
        may_write: bool,
    ) -> Self {
        let file = catalogue.join(ROOTS);
        let kept = match read_whole(disk.as_ref(), &file, OCTETS_MAX) {
            Ok(octets) => {
                let kept = decode(&octets);
                if kept.is_none() {
                    tracing::error!(path = %file.display(), "the list of a set's roots is damaged; it is made anew as they are met");
                }
                kept
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                tracing::error!(%error, "the list of a set's roots cannot be read");
                None
            }
        };
        let was_kept = kept.is_some();
        let known = kept.unwrap_or_default().into_iter();
        let inner = Inner {
            known: known.map(|root| (root, Root::new())).collect(),
            ..Inner::default()
        };
        let roots = Self {
            disk: Arc::clone(disk),
            dir: dir.to_path_buf(),
            file,
            are_there: AtomicBool::new(!inner.known.is_empty()),
            inner: Mutex::new(inner),
            are_in_trouble: AtomicBool::new(false),
            was_kept,
        };
        roots.look();
        if may_write {
            roots.note_mounted();
        }
        roots
    }

    fn note_mounted(&self) {
        let mounted = self.disk.mounts_below(&self.dir).unwrap_or_default();
        let noted = mounted.iter().try_for_each(|at| self.note(at));
        let kept = match self.was_kept {
            true => Ok(()),
            // From the next start on what is not in it is no root.
            false => self.keep(&self.inner.lock()),
        };
        if let Err(error) = noted.and(kept) {
            tracing::error!(%error, "what is mounted below a set cannot be noted");
        }
    }

    /// Whether something is on another file system than what it lies in.
    fn is_root(&self, at: &Path) -> newsreel_host::Result<bool> {
        let above = at.parent().unwrap_or(&self.dir);
        match self.disk.file_system(at) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            here => Ok(here? != self.disk.file_system(above)?),
        }
    }

    /// Looks whether all known roots are there.
    pub(crate) fn look(&self) {
        if !self.are_there.load(Ordering::Acquire) {
            return;
        }
        let mut inner = self.inner.lock();
        let Inner { known, is_news, .. } = &mut *inner;
        for (name, root) in known {
            let at = self.dir.join(name);
            // What cannot be looked at is not there.
            let is_missing = !self.is_root(&at).unwrap_or(false);
            if is_missing && !root.is_missing {
                *is_news = true;
                tracing::error!(
                    path = %at.display(), roots = %self.file.display(),
                    "a file system is not there: articles on it cannot be read, and none are taken, until it is mounted; if what \
                     was on it has been brought here for good, stop the server and remove the file `roots`"
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
        let are_in_trouble = inner.known.values().any(Root::is_in_trouble);
        self.are_in_trouble.store(are_in_trouble, Ordering::Release);
    }

    /// Something could not be written or made durable at this path: where it is on a root, nothing is written to that one for a
    /// while.
    pub(crate) fn failed(&self, path: &Path) {
        self.look();
        let Some(name) = path.strip_prefix(&self.dir).ok().and_then(Path::to_str) else {
            return;
        };
        let mut inner = self.inner.lock();
        if let Some((name, root)) = inner.of(name)
            && !root.is_in_trouble()
        {
            tracing::error!(path = %self.dir.join(name).display(), again_after_s = AGAIN_AFTER_S, "a file system fails: articles for it are put off");
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
        for (name, root) in &mut inner.known {
            let free = self.disk.free_bytes(&self.dir.join(name));
            root.room = free.map_or(u64::MAX, |free| free.saturating_sub(free_octets_min));
            if let (Failing::Since(since), Some(now)) = (&mut root.failing, now) {
                let since = *since.get_or_insert(now);
                if now.0.saturating_sub(since.0) >= AGAIN_AFTER_S {
                    root.failing = Failing::No;
                }
            }
        }
        self.tell_trouble(&inner);
    }

    /// Whether one of these names, below the directory of the set, is on a root that is missing.
    pub(crate) fn hides<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        self.are_in_the_way(names, |root| root.is_missing)
    }

    /// Whether one of them is on a root to which nothing can be written at present.
    pub(crate) fn keeps_out<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        self.are_in_the_way(names, Root::is_in_trouble)
    }

    fn are_in_the_way<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
        is_in_the_way: impl Fn(&Root) -> bool,
    ) -> bool {
        if !self.are_in_trouble.load(Ordering::Acquire) {
            return false;
        }
        self.look();
        let inner = self.inner.lock();
        let troubled = inner.known.iter().filter(|(_, root)| is_in_the_way(root));
        let troubled: Vec<&Path> = troubled.map(|(name, _)| Path::new(name)).collect();
        let mut names = names.into_iter().map(Path::new);
        names.any(|name| troubled.iter().any(|root| name.starts_with(root)))
    }

    /// Whether there is a new trouble since this was asked last.
    pub(crate) fn take_news(&self) -> bool {
        std::mem::take(&mut self.inner.lock().is_news)
    }

    /// Whether what is not in the list is no root.
    pub(crate) fn are_known(&self) -> bool {
        self.was_kept
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

    /// Something was written in this directory, which is on another file system than the set's: notes where that begins,
    /// durably.
    pub(crate) fn note(&self, dir: &Path) -> newsreel_host::Result<()> {
        let file_system = self.disk.file_system(dir)?;
        let mut inner = self.inner.lock();
        if inner.seen.contains(&file_system) {
            return Ok(());
        }
        let mut is_new = false;
        for at in dir.ancestors().take_while(|at| *at != self.dir) {
            let Some(name) = at.strip_prefix(&self.dir).ok().and_then(Path::to_str) else {
                continue;
            };
            if !inner.known.contains_key(name) && self.is_root(at)? {
                inner.known.insert(name.to_owned(), Root::new());
                is_new = true;
            }
        }
        if is_new {
            self.keep(&inner)?;
            self.are_there.store(true, Ordering::Release);
        }
        inner.seen.insert(file_system);
        Ok(())
    }

    /// Writes the list.
    fn keep(&self, inner: &Inner) -> newsreel_host::Result<()> {
        if let Some(catalogue) = self.file.parent() {
            self.disk.create_dir_all(catalogue)?;
        }
        let text = encode(inner.known.keys().map(String::as_str));
        replace_file(self.disk.as_ref(), &self.file, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_is_read() {
        let known = BTreeSet::from(["alt".to_owned(), "comp/lang".to_owned()]);
        let text = encode(known.iter().map(String::as_str));
        assert_eq!(decode(text.as_bytes()), Some(known));
        for at in 0..text.len() {
            let mut bad = text.clone().into_bytes();
            bad[at] ^= 2;
            assert_eq!(decode(&bad), None, "octet {at}");
            assert_eq!(decode(&text.as_bytes()[..at]), None, "cut at {at}");
        }
        // Nothing leads out of the set's directory.
        let out = BTreeSet::from(["../x".to_owned(), "/y".to_owned(), "z".to_owned()]);
        let kept = decode(encode(out.iter().map(String::as_str)).as_bytes());
        assert_eq!(kept, Some(BTreeSet::from(["z".to_owned()])));
    }
}
