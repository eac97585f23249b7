//! An open managed directory: where names lie, buckets made on demand and removed when they are not needed again.
//!
//! No state beside the descriptor: whoever else makes or removes buckets at the same time is reckoned with.

use std::path::{Path, PathBuf};

use newsreel_host::folder::{Facts, Kind};
use newsreel_host::{ErrorKind, Folder, process};

use crate::algorithm::{Algorithm, Bucket, Node};
use crate::error::Result;
use crate::listing::nodes;
use crate::mark::SET_UID;
use crate::name::Name;

/// So often a bucket is made again that others remove meanwhile.
const ATTEMPTS: u32 = 100;

/// An open managed directory.
#[derive(Debug)]
pub struct Managed {
    folder: Folder,
    algorithm: Algorithm,
}

impl Managed {
    /// A directory that is managed by `algorithm`, as its mark said.
    #[must_use]
    pub const fn new(folder: Folder, algorithm: Algorithm) -> Self {
        Self { folder, algorithm }
    }

    /// The directory itself; what lies in it is buckets.
    #[must_use]
    pub const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Its algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Where a name lies, seen from [`Managed::folder`].
    #[must_use]
    pub fn place(&self, name: Name<'_>) -> PathBuf {
        self.algorithm.place(name)
    }

    /// Opens the bucket of a name, if there is one.
    pub fn open_bucket(&self, bucket: Bucket) -> Result<Option<Folder>> {
        open_if_there(&self.folder, &self.algorithm.bucket_path(bucket))
    }

    /// Does something that makes `name`, given its place seen from [`Managed::folder`]: when it says that there is no
    /// such directory, its bucket is made and it is done again.  What still says so then misses something else.
    pub fn with_bucket<T>(
        &self,
        name: Name<'_>,
        mut make: impl FnMut(&Folder, &Path) -> newsreel_host::Result<T>,
    ) -> Result<T> {
        let bucket = self.algorithm.bucket(name);
        let place = self.place(name);
        let mut made = make(&self.folder, &place);
        for _ in 0..ATTEMPTS {
            match made {
                Err(e) if e.kind() == ErrorKind::NotFound => self.make_bucket(bucket)?,
                other => return Ok(other?),
            }
            made = make(&self.folder, &place);
        }
        Ok(made?)
    }

    /// Makes a bucket with the owner and mode of the directory; it is well when it is there.
    pub fn make_bucket(&self, bucket: Bucket) -> Result<()> {
        make_bucket(&self.folder, self.algorithm, bucket, &self.folder.facts()?)
    }

    /// Removes a bucket that may have become empty, if it is not needed again.
    pub fn tidy_bucket(&self, bucket: Bucket) -> Result<()> {
        if self.algorithm.drops_empty_buckets() && bucket != Bucket::OTHERS {
            remove(&self.folder, &self.algorithm.bucket_path(bucket))?;
        }
        Ok(())
    }

    /// Gives every bucket the owner and mode that the directory is to have next: all of them, or none as far as that can
    /// be done.
    pub fn adopt_buckets(&self, change: impl FnOnce(&mut Facts)) -> Result<()> {
        let mut like = self.folder.facts()?;
        change(&mut like);
        let adopted = make_like(&self.folder, self.algorithm, None, &like);
        if adopted.is_err() {
            // What it failed for was told; whatever else fails here would not be news.
            let _ = adopt_buckets(&self.folder, self.algorithm);
        }
        adopted
    }

    /// Removes every bucket, for as long as they are empty; says whether all are gone.  What is no bucket stays and
    /// counts as an entry.
    pub fn remove_buckets(&self) -> Result<bool> {
        remove_buckets(&self.folder, self.algorithm, "")
    }
}

/// Gives every bucket the owner and mode of the directory that they lie in.
pub(crate) fn adopt_buckets(folder: &Folder, algorithm: Algorithm) -> Result<()> {
    make_like(folder, algorithm, None, &folder.facts()?)
}

/// Gives every bucket below one level the owner and mode of `like`.
fn make_like(
    folder: &Folder,
    algorithm: Algorithm,
    above: Option<u64>,
    like: &Facts,
) -> Result<()> {
    for (node, entry) in nodes(folder, algorithm, above)? {
        let Some(below) = open_if_there(folder, entry.path())? else {
            continue;
        };
        adopt(&below, like)?;
        if let Node::Inner(rank) = node {
            make_like(&below, algorithm, Some(rank), like)?;
        }
    }
    Ok(())
}

/// Removes the empty buckets below `folder`; says whether nothing is left but what is called `but`.
pub(crate) fn remove_buckets(folder: &Folder, algorithm: Algorithm, but: &str) -> Result<bool> {
    let mut inner = Vec::new();
    for entry in folder.entries()? {
        let entry = entry?;
        match algorithm.node(None, &entry.name) {
            _ if entry.name == but => {}
            _ if entry.kind != Kind::Folder => return Ok(false),
            Some(Node::Inner(_)) => inner.push(entry),
            Some(Node::Bucket(_)) if remove(folder, entry.path())? => {}
            _ => return Ok(false),
        }
    }
    for entry in inner {
        let Some(below) = open_if_there(folder, entry.path())? else {
            continue;
        };
        for bucket in below.entries()? {
            let bucket = bucket?;
            if bucket.kind != Kind::Folder || !remove(&below, bucket.path())? {
                return Ok(false);
            }
        }
        if !remove(folder, entry.path())? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Opens a directory, if it is there.
pub(crate) fn open_if_there(folder: &Folder, at: &Path) -> Result<Option<Folder>> {
    match folder.open_folder(at) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        other => Ok(Some(other?)),
    }
}

/// Removes an empty directory; says whether it is gone, by whomever.
fn remove(folder: &Folder, at: &Path) -> Result<bool> {
    match folder.remove_folder(at) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(true),
        other => Ok(other?),
    }
}

/// Makes a bucket below `folder`, and the directories it lies in, with owner and mode of `like`.
pub(crate) fn make_bucket(
    folder: &Folder,
    algorithm: Algorithm,
    bucket: Bucket,
    like: &Facts,
) -> Result<()> {
    let path = algorithm.bucket_path(bucket);
    // Level by level, so that nothing is made behind a link that somebody put in a bucket's place.
    let mut above: Option<Folder> = None;
    for part in &path {
        let in_folder = above.as_ref().unwrap_or(folder);
        let made = match in_folder.make_folder(Path::new(part), bucket_mode(like)) {
            Err(e) if e.kind() == ErrorKind::Exists => false,
            other => other.map(|()| true)?,
        };
        // Removed again by others: whoever needs it makes it again.
        let Some(level) = open_if_there(in_folder, Path::new(part))? else {
            return Ok(());
        };
        if made && let Err(error) = adopt(&level, like) {
            // A bucket that its directory's owner has no room for would stay with another one.
            remove(in_folder, Path::new(part))?;
            return Err(error);
        }
        above = Some(level);
    }
    Ok(())
}

/// The mode of a bucket in a directory like this.
pub(crate) const fn bucket_mode(like: &Facts) -> u32 {
    like.mode & !SET_UID
}

/// Gives a bucket the owner and mode of the directory, as far as this process may.
pub(crate) fn adopt(bucket: &Folder, like: &Facts) -> Result<()> {
    let is = bucket.facts()?;
    let own = process::own_uid();
    let is_ours = own == is.uid && own == like.uid;
    if (is.uid, is.gid) != (like.uid, like.gid)
        && (own == 0 || is_ours && process::is_in_group(like.gid).unwrap_or(false))
    {
        bucket.set_owner(like.uid, like.gid)?;
    }
    if is.mode != bucket_mode(like) && [0, is.uid].contains(&process::own_uid()) {
        bucket.set_mode(bucket_mode(like))?;
    }
    Ok(())
}
