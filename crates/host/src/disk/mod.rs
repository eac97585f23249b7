//! The disk, passed in: files read and written at offsets, names that become durable only when their directory is
//! synced, and a lock.
//!
//! What every implementation keeps: data is durable only after [`File::sync_data`] returned well; a name is durable
//! only after [`Disk::sync_dir`] of its directory (directories made by [`Disk::create_dir_all`] are durable when it
//! returns).  After a failed sync nothing written since the last good one may be counted on, and syncing again does
//! not help: write it elsewhere.

mod aligned;
mod appended;
mod faulty;
mod memory;
mod real;

use std::fmt::Debug;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use aligned::{AlignedBuf, DIRECT_ALIGN_BYTES};
pub use appended::Appended;
pub use faulty::{Effect, Fault, FaultyDisk, OpCounts};
pub use memory::MemoryDisk;
pub use real::RealDisk;
pub(crate) use real::{failed, read_small, read_table, retry};

use crate::error::{Error, ErrorKind, Result};

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpenMode {
    /// It must exist; only read.
    Read,
    /// It must exist.
    ReadWrite,
    /// It must not exist; for the server's user and its group.
    CreateNew,
    /// It must not exist; for everybody to read whom the process's mask lets.
    CreateForAll,
    /// Made when it does not exist.
    CreateOrOpen,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirEntry {
    /// The name, without the directory's path.
    pub name: String,
    /// A file's length in octets; 0 for a directory.
    pub len: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// What a file system notes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// Its length in octets.
    pub len: u64,
    /// When its octets were changed last, in seconds since 1970, by the clock of the machine.
    pub modified: u64,
    /// Its number on its file system: another for a file that took its name.
    pub inode: u64,
    /// When anything of it was changed last, nobody can set that, in nanoseconds since 1970.
    pub changed_ns: u64,
}

/// A lock that is held until this is dropped.
pub trait Lock: Send + Sync + Debug {
    /// The lock file.
    fn path(&self) -> &Path;
}

/// A place where files live.
pub trait Disk: Send + Sync + Debug {
    /// Opens or makes a file.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>>;

    /// Opens a file to read as [`Disk::open`] does, but only when that needs nothing that is not in memory already; `None`
    /// means it would have to wait, or that it cannot be told.
    fn open_cached(&self, path: &Path) -> Result<Option<Arc<dyn File>>> {
        self.open(path, OpenMode::Read).map(Some)
    }

    /// Gives a file another name, replacing a file of that name.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file's name.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Gives a file one more name, which must not be there; where that lies on another file system, a symbolic link to the
    /// first name, for which a full path is given.
    fn link(&self, from: &Path, to: &Path) -> Result<()>;

    /// Makes a directory and those above it; durable when it returns.
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// Makes a directory and those above it; durable after [`Disk::sync_file_system`].
    fn make_dirs(&self, path: &Path) -> Result<()> {
        self.create_dir_all(path)
    }

    /// What is in a directory, sorted by name.  Names that are not UTF-8 are left out: nothing of ours has one.
    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>>;

    /// Whether anything is in a directory.
    fn has_entries(&self, dir: &Path) -> Result<bool> {
        Ok(!self.list(dir)?.is_empty())
    }

    /// Whether a file or directory of that name exists.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// What is known of a file without opening it; `None` where nobody notes when it is changed.
    fn facts(&self, _path: &Path) -> Result<Option<FileFacts>> {
        Ok(None)
    }

    /// Says of a file when its octets were changed last, in seconds since 1970.
    fn date(&self, _path: &Path, _modified: u64) -> Result<()> {
        Ok(())
    }

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Makes everything durable that was written so far on the file system which holds `dir`: octets of files, names,
    /// directories.  Far cheaper than syncing many small files one by one.
    fn sync_file_system(&self, dir: &Path) -> Result<()>;

    /// A path without symbolic links and dots: the same for all that lead to one file or directory.
    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.to_path_buf())
    }

    /// Where the symbolic link of this name leads, as it says; none where something else has the name.
    fn link_target(&self, _path: &Path) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// Which file system holds a directory: the same number for all of one.
    fn file_system(&self, _dir: &Path) -> Result<u64> {
        Ok(0)
    }

    /// What a directory says of itself: the value of this extended attribute, if it has one, and the bits of its mode.  Nothing where nobody
    /// keeps such.
    fn folder_mark(&self, _dir: &Path, _attribute: &str) -> Result<(Option<Vec<u8>>, u32)> {
        Ok((None, 0))
    }

    /// What is mounted below a directory.
    fn mounts_below(&self, _dir: &Path) -> Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    /// What a scripted failing sync of the file system does instead of syncing: all pages become clean and their data is lost.
    #[doc(hidden)]
    fn lose_unsynced(&self) {}

    /// Room left for an ordinary user on the file system that holds `path`, in octets.
    fn free_bytes(&self, path: &Path) -> Result<u64>;

    /// Takes the exclusive lock at `path` at once or says who holds it: a file, which is made and names the holder, or a
    /// directory that is there.
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>>;
}

/// An open file.  All calls take `&self` and an offset; it may be used from many threads at once.
pub trait File: Send + Sync + Debug {
    /// The path it was opened under.
    fn path(&self) -> &Path;

    /// Reads into `buf`; fewer octets than asked for only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;

    /// Reads as [`File::read_at`] does, around the page cache where that can be done: what the medium has, and nothing that
    /// others want to have in memory makes room for it.  Address, offset and length must be multiples of
    /// [`DIRECT_ALIGN_BYTES`], see [`AlignedBuf`]; otherwise it is an ordinary read.
    fn read_direct_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.read_at(buf, offset)
    }

    /// Reads as [`File::read_at`] does, but only what is in memory already; `None` means it would have to wait.
    fn read_cached_at(&self, buf: &mut [u8], offset: u64) -> Result<Option<usize>>;

    /// Writes all of `buf`.
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()>;

    /// Writes all parts, one after the other.
    fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<()>;

    /// Writes as [`File::write_at`] does, around the page cache where that can be done: far cheaper for large writes of
    /// what is not read soon.  Address, offset and length must be multiples of [`DIRECT_ALIGN_BYTES`], see
    /// [`AlignedBuf`]; otherwise it is an ordinary write.
    fn write_direct_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.write_at(buf, offset)
    }

    /// Makes the data durable, and the length as far as it is needed to find them.
    fn sync_data(&self) -> Result<()>;

    /// Makes data and attributes durable.
    fn sync_all(&self) -> Result<()>;

    /// Length in octets (a block device's size).
    fn len(&self) -> Result<u64>;

    /// Whether there is nothing in it.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Whether it is a device, whose length nobody changes.
    fn is_device(&self) -> Result<bool> {
        Ok(false)
    }

    /// Whether its path leads to it still: it may have been removed, or another file put there.
    fn is_in_place(&self) -> Result<bool> {
        Ok(true)
    }

    /// Its number on its file system where some name leads to it, be it another than its path; none: it has no name any more.
    fn named_inode(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Whether it is a device that the kernel lets nobody write to, also who opened it for that.
    fn is_read_only(&self) -> Result<bool> {
        Ok(false)
    }

    /// Cuts or extends with zeros.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Really writes zeros, so that later overwriting costs no allocation.  The caller syncs.
    fn zero_fill(&self, offset: u64, len: u64) -> Result<()>;

    /// Reserves room, extending the file; what is reserved reads as zeros.
    fn reserve(&self, offset: u64, len: u64) -> Result<()>;

    /// Gives the room of a range inside the file back to the file system, where that can take it: nobody needs what is there,
    /// and what is read there later are the octets that were, or zeros.
    fn give_back(&self, offset: u64, len: u64) -> Result<()>;

    /// Advises that a range will be read soon: it comes into memory meanwhile, where that can be done.
    fn will_need(&self, _offset: u64, _len: u64) {}

    /// Advises that a range will not be read soon.
    fn drop_cache(&self, offset: u64, len: u64) -> Result<()>;

    /// Reads exactly `buf.len()` octets or says how many there were.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let got = self.read_at(buf, offset)?;
        exactly(self.path(), offset, buf.len(), got)
    }

    /// Reads exactly `buf.len()` octets as [`File::read_direct_at`] does, or says how many there were.
    fn read_exact_direct_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let got = self.read_direct_at(buf, offset)?;
        exactly(self.path(), offset, buf.len(), got)
    }

    /// What a scripted failing sync does instead of syncing: the pages become clean and their data is lost.
    #[doc(hidden)]
    fn lose_unsynced(&self) {}
}

/// Whether as much was read as was wanted.
fn exactly(path: &Path, offset: u64, wanted: usize, got: usize) -> Result<()> {
    if got == wanted {
        return Ok(());
    }
    Err(Error::ShortRead {
        path: path.to_path_buf(),
        offset,
        wanted,
        got,
    })
}

/// Reads a file of at most `limit` octets; a longer one is an error, so that no file makes us grow without bound.
pub fn read_whole(disk: &dyn Disk, path: &Path, limit: usize) -> Result<Vec<u8>> {
    read_all_of(disk, path, limit, |file, octets| {
        file.read_exact_at(octets, 0)
    })
}

/// The same with zeros where the medium has bad spots: for what is written twice, with checksums, so that what is left of it
/// is enough.
pub fn read_what_is_left(disk: &dyn Disk, path: &Path, limit: usize) -> Result<Vec<u8>> {
    read_all_of(disk, path, limit, |file, octets| {
        let mut offset = 0;
        for page in octets.chunks_mut(PAGE_OCTETS) {
            match file.read_exact_at(page, offset) {
                Err(error) if error.is_medium() => page.fill(0),
                read => read?,
            }
            offset += page.len() as u64;
        }
        Ok(())
    })
}

/// What a bad spot costs of a small file.
const PAGE_OCTETS: usize = 4096;

fn read_all_of(
    disk: &dyn Disk,
    path: &Path,
    limit: usize,
    read: impl FnOnce(&dyn File, &mut [u8]) -> Result<()>,
) -> Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Read)?;
    let len = usize::try_from(file.len()?)
        .ok()
        .filter(|len| *len <= limit)
        .ok_or_else(|| {
            let source = std::io::Error::other(format!("it is longer than {limit} octets"));
            Error::Io {
                op: crate::Op::Read,
                path: path.to_path_buf(),
                source,
            }
        })?;
    let mut bytes = vec![0; len];
    read(&*file, &mut bytes)?;
    Ok(bytes)
}

/// Replaces a small file as a whole, durably: after a crash either the old or the new contents are there.
pub fn replace_file(disk: &dyn Disk, path: &Path, contents: &[u8]) -> Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    match disk.remove(&temporary) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let file = disk.open(&temporary, OpenMode::CreateNew)?;
    file.write_at(contents, 0)?;
    file.sync_all()?;
    disk.rename(&temporary, path)?;
    disk.sync_dir(path.parent().unwrap_or_else(|| Path::new("/")))
}

/// Behind the name of what was [set aside](set_aside).
const ASIDE: &str = ".aside";

/// Whether this is a name that [`set_aside`] gives.
#[must_use]
pub fn is_aside(name: &str) -> bool {
    name.rsplit_once(ASIDE).is_some_and(|(_, nth)| {
        let digits = nth.strip_prefix('.').unwrap_or("1");
        let is_nth = nth.is_empty() || nth.starts_with('.');
        is_nth && !digits.is_empty() && digits.bytes().all(|octet| octet.is_ascii_digit())
    })
}

/// Gives what stands in a file's place a name under which nobody looks for it; nothing of it is lost.
///
/// # Errors
/// When it cannot be renamed.
pub fn set_aside(disk: &dyn Disk, path: &Path) -> Result<PathBuf> {
    for nth in 1u32.. {
        let mut aside = path.as_os_str().to_owned();
        aside.push(ASIDE);
        if nth > 1 {
            aside.push(format!(".{nth}"));
        }
        let aside = PathBuf::from(aside);
        if !disk.exists(&aside)? {
            disk.rename(path, &aside)?;
            return Ok(aside);
        }
    }
    Ok(path.to_path_buf())
}

#[cfg(test)]
mod tests;
