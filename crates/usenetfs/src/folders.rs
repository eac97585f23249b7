//! Open directories: what they are by their marks, and the descriptors of a few that were used last.
//!
//! A bounded number of descriptors, whatever the tree's size.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use newsreel_host::Folder;
use newsreel_host::node::{Errno, Outcome, Stamp, Stat, open_bucket};
use newsreel_layout::{Bucket, Managed, Name, NameError, Opened};
use parking_lot::Mutex;

/// So many directories are kept open for their next use, twice: young ones and old ones.
const KEPT_MAX: usize = 256;

/// An open directory.
#[derive(Debug)]
pub(crate) struct Dir {
    pub(crate) node: u64,
    opened: Opened,
    /// Its time of change when its mark was read.
    marked_at: Stamp,
    /// The bucket that was used last.
    last: Mutex<Option<(Bucket, Arc<OwnedFd>)>>,
}

/// The real directory in which a name of the view lies.
#[derive(Debug)]
pub(crate) enum Place<'a> {
    /// The directory itself.
    Flat(&'a Folder),
    /// A bucket of it.
    Bucket(Bucket, Arc<OwnedFd>),
}

impl AsFd for Place<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Flat(folder) => folder.as_fd(),
            Self::Bucket(_, fd) => fd.as_fd(),
        }
    }
}

impl Place<'_> {
    /// The bucket, if it is one.
    pub(crate) const fn bucket(&self) -> Option<Bucket> {
        match self {
            Self::Flat(_) => None,
            Self::Bucket(bucket, _) => Some(*bucket),
        }
    }
}

impl Dir {
    /// Looks at the mark of an open directory.
    pub(crate) fn new(node: u64, folder: Folder) -> Outcome<Self> {
        let marked_at = Stat::of(&folder)?.changed;
        let opened = Opened::new(folder).map_err(|error| errno(&error))?;
        Ok(Self {
            node,
            opened,
            marked_at,
            last: Mutex::new(None),
        })
    }

    /// The directory itself.
    pub(crate) const fn folder(&self) -> &Folder {
        match &self.opened {
            Opened::Flat(folder) | Opened::UnderWay(folder, _) => folder,
            Opened::Managed(managed) => managed.folder(),
        }
    }

    /// As a managed directory, if it is one.
    pub(crate) const fn managed(&self) -> Option<&Managed> {
        match &self.opened {
            Opened::Managed(managed) => Some(managed),
            Opened::Flat(_) | Opened::UnderWay(..) => None,
        }
    }

    /// Whether a conversion has begun in it and not ended: nothing is served from it until that is completed.
    pub(crate) const fn is_under_way(&self) -> bool {
        matches!(self.opened, Opened::UnderWay(..))
    }

    /// Whether it was changed since its mark was read, by whomever.
    fn is_changed(&self) -> bool {
        Stat::of(self.folder()).map(|stat| stat.changed) != Ok(self.marked_at)
    }

    /// Where a name lies; `ENOENT` while its bucket is not there.
    pub(crate) fn place(&self, name: &OsStr) -> Outcome<Place<'_>> {
        match &self.opened {
            Opened::UnderWay(..) => Err(Errno::BUSY),
            Opened::Flat(folder) => Ok(Place::Flat(folder)),
            Opened::Managed(managed) => {
                let bucket = managed.algorithm().bucket(parsed(name)?);
                self.bucket(managed, bucket)
            }
        }
    }

    fn bucket(&self, managed: &Managed, bucket: Bucket) -> Outcome<Place<'_>> {
        let kept = self.last.lock().clone();
        if let Some((last, fd)) = kept
            && last == bucket
        {
            return Ok(Place::Bucket(bucket, fd));
        }
        let path = managed.algorithm().bucket_path(bucket);
        let fd = Arc::new(open_bucket(managed.folder(), &path).map_err(foreign_is_missing)?);
        *self.last.lock() = Some((bucket, Arc::clone(&fd)));
        Ok(Place::Bucket(bucket, fd))
    }

    /// Whether a place that said `ENOENT` is a bucket that was removed meanwhile; then it is not used again.
    pub(crate) fn is_gone(&self, place: &Place<'_>) -> bool {
        let Place::Bucket(bucket, fd) = place else {
            return false;
        };
        let is_gone = Stat::of(fd).map_or(true, |stat| stat.links == 0);
        if is_gone {
            self.leave(*bucket);
        }
        is_gone
    }

    /// Keeps a bucket's descriptor no longer.
    pub(crate) fn leave(&self, bucket: Bucket) {
        let mut last = self.last.lock();
        if last.as_ref().is_some_and(|(kept, _)| *kept == bucket) {
            *last = None;
        }
    }
}

/// A name of the view.
pub(crate) fn parsed(name: &OsStr) -> Outcome<Name<'_>> {
    Name::parse(name).map_err(|error| match error {
        NameError::TooLong => Errno::NAMETOOLONG,
        NameError::NoName | NameError::Octet => Errno::INVAL,
    })
}

/// Something that is no directory of ours in a bucket's place is in no view.
fn foreign_is_missing(errno: Errno) -> Errno {
    match errno {
        Errno::NOTDIR | Errno::LOOP | Errno::XDEV => Errno::NOENT,
        other => other,
    }
}

/// What the layout's error is as a number.
pub(crate) fn errno(error: &newsreel_layout::Error) -> Errno {
    match error {
        newsreel_layout::Error::Host(error) => Errno::from(error),
        newsreel_layout::Error::NotEmpty { .. } => Errno::NOTEMPTY,
        newsreel_layout::Error::Refused { .. } | newsreel_layout::Error::Interrupted { .. } => {
            Errno::BUSY
        }
        _ => Errno::IO,
    }
}

/// The directories that were used last.
#[derive(Debug)]
pub(crate) struct Folders {
    kept: Mutex<Kept>,
    /// Whether marks may change behind our back.
    is_shared: bool,
}

#[derive(Debug, Default)]
struct Kept {
    young: HashMap<u64, Arc<Dir>>,
    old: HashMap<u64, Arc<Dir>>,
    /// How often one was dropped.
    drops: u64,
}

impl Folders {
    pub(crate) fn new(is_shared: bool) -> Self {
        Self {
            kept: Mutex::default(),
            is_shared,
        }
    }

    /// A directory, opened by `open` if it is not kept.
    pub(crate) fn get(
        &self,
        node: u64,
        open: impl FnOnce() -> Outcome<Folder>,
    ) -> Outcome<Arc<Dir>> {
        let (kept, drops) = {
            let mut all = self.kept.lock();
            (all.get(node), all.drops)
        };
        if let Some(dir) = kept
            && !(self.is_shared && dir.is_changed())
        {
            return Ok(dir);
        }
        let dir = Arc::new(Dir::new(node, open()?)?);
        let mut all = self.kept.lock();
        // What was looked at while one was dropped may be that one, as it was before; and a conversion is completed by somebody else.
        if all.drops == drops && !dir.is_under_way() {
            all.put(node, &dir);
        }
        Ok(dir)
    }

    /// A directory that is kept, where its number can not have come to another one behind our back.
    pub(crate) fn kept(&self, node: u64) -> Option<Arc<Dir>> {
        let kept = self.kept.lock();
        let dir = kept.young.get(&node).or_else(|| kept.old.get(&node));
        dir.filter(|_| !self.is_shared).cloned()
    }

    /// Keeps a directory no longer: it is gone, or another kind of directory than before.
    pub(crate) fn drop(&self, node: u64) {
        let mut kept = self.kept.lock();
        kept.drops += 1;
        kept.young.remove(&node);
        kept.old.remove(&node);
    }

    /// How many are kept.
    pub(crate) fn len(&self) -> usize {
        let kept = self.kept.lock();
        kept.young.len() + kept.old.len()
    }
}

impl Kept {
    fn get(&mut self, node: u64) -> Option<Arc<Dir>> {
        if let Some(dir) = self.young.get(&node) {
            return Some(Arc::clone(dir));
        }
        let dir = self.old.remove(&node)?;
        self.put(node, &dir);
        Some(dir)
    }

    fn put(&mut self, node: u64, dir: &Arc<Dir>) {
        if self.young.len() >= KEPT_MAX {
            self.old = mem::take(&mut self.young);
        }
        self.old.remove(&node);
        self.young.insert(node, Arc::clone(dir));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        (dir, folder)
    }

    #[test]
    fn a_bounded_number_is_kept_and_the_last_used_are_among_them() {
        let (_dir, folder) = folder();
        let folders = Folders::new(false);
        let open = || {
            folder
                .open_folder(".".as_ref())
                .map_err(|e| Errno::from(&e))
        };
        for node in 0..2000 {
            folders.get(node, open).unwrap();
            folders.get(7, || Err(Errno::IO)).ok();
        }
        assert!(folders.len() <= 2 * KEPT_MAX, "{}", folders.len());
        assert!(folders.get(1999, || Err(Errno::IO)).is_ok());
        assert_eq!(folders.get(1, || Err(Errno::IO)).unwrap_err(), Errno::IO);
        // One that is used all the time stays.
        assert!(folders.get(7, || Err(Errno::IO)).is_ok());
    }

    /// Whoever completes a conversion below a mount need not mount it anew.
    #[test]
    fn a_conversion_under_way_is_looked_at_again() {
        let (dir, _) = folder();
        let open = || Folder::open(dir.path()).map_err(|e| Errno::from(&e));
        let folders = Folders::new(false);
        let under_way = newsreel_layout::UnderWay {
            from: newsreel_layout::Layout::Flat,
            to: newsreel_layout::Layout::Managed(newsreel_layout::Algorithm::YYY),
            step: newsreel_layout::Step::Scatter,
            before: None,
        };
        let mark = under_way.to_string();
        let (folder, name) = (open().unwrap(), newsreel_layout::ATTRIBUTE);
        folder.set_attribute(name, mark.as_bytes()).unwrap();
        assert!(folders.get(5, open).unwrap().is_under_way());
        assert!(folders.kept(5).is_none());
        folder.remove_attribute(name).unwrap();
        assert!(!folders.get(5, open).unwrap().is_under_way());
        assert!(folders.kept(5).is_some());
    }

    #[test]
    fn what_was_looked_at_before_a_drop_is_not_kept() {
        let (_dir, folder) = folder();
        let folders = Folders::new(false);
        let open = || {
            folders.drop(5);
            folder
                .open_folder(".".as_ref())
                .map_err(|e| Errno::from(&e))
        };
        folders.get(5, open).unwrap();
        assert_eq!(folders.len(), 0);
    }
}
