//! The machine's own file systems and block devices, through `rustix`.
//!
//! The only module that touches `std::fs`.  Every call is retried when a signal interrupts it, and every error says
//! which path it was.  Nothing is mapped into memory: a mapped page on a failing disk would be a SIGBUS.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the disk everyone else is passed"
)]

use std::fs;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{Advice, CWD, FallocateFlags, FlockOperation, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, ReadWriteFlags};

use super::aligned::is_aligned;
use super::{AlignedBuf, DIRECT_ALIGN_BYTES, DirEntry, Disk, File, FileFacts, Lock, OpenMode};
use crate::error::{Error, Op, Result};
use crate::process::lock_holder;

/// One write of a zero fill.
const ZERO_CHUNK_BYTES: usize = 1 << 20;
/// What direct writes are aligned to.
const ALIGN_BYTES: u64 = DIRECT_ALIGN_BYTES as u64;
/// A buffered zero fill is synced this often, so that no more than this is dirty at once.
const ZERO_SYNC_BYTES: u64 = 32 << 20;
/// A `/proc` file is never longer.
const SMALL_FILE_BYTES_MAX: u64 = 64 << 10;

/// The machine's disks.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

#[derive(Debug)]
struct RealFile {
    file: fs::File,
    mode: OpenMode,
    path: PathBuf,
    /// A second descriptor that writes around the page cache; opened when first asked for.
    direct: OnceLock<Option<OwnedFd>>,
    /// One that reads around it: whoever may only read cannot have the other.
    direct_reads: OnceLock<Option<OwnedFd>>,
}

#[derive(Debug)]
struct RealLock {
    // Held for its lock: the kernel releases it when the descriptor closes, also after `kill -9`.
    file: fs::File,
    path: PathBuf,
}

impl Drop for RealLock {
    /// A program that is just being started has the descriptor, too, until its own code is loaded: the lock must not wait for that.
    fn drop(&mut self) {
        let _ = retry(|| rustix::fs::flock(&self.file, FlockOperation::Unlock));
    }
}

impl Lock for RealLock {
    fn path(&self) -> &Path {
        &self.path
    }
}

/// Reads a small text file of the kernel's.
pub(crate) fn read_small(path: &Path) -> Result<String> {
    let text = String::from_utf8(read_table(path, SMALL_FILE_BYTES_MAX)?);
    text.map_err(|error| Error::from_io(Op::Read, path, io::Error::other(error)))
}

/// Reads at most so many octets of a file of the kernel's, of which nobody knows the length before.
pub(crate) fn read_table(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let mut octets = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(bytes_max).read_to_end(&mut octets))
        .map_err(|e| Error::from_io(Op::Read, path, e))?;
    Ok(octets)
}

/// What is advised to be read ahead at once.
const AHEAD_PIECE: u64 = 128 << 10;
const STREAM: &str = "a pipe, a socket or a terminal";

/// Makes an error of what the kernel said about `path`.
pub(crate) fn failed(op: Op, path: &Path) -> impl FnOnce(Errno) -> Error {
    move |errno| Error::from_io(op, path, errno.into())
}

/// Repeats a call that a signal interrupted.
pub(crate) fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Open flags as the standard library takes them.
const fn as_flags(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

/// What stands in a file's place, if it has no octets at offsets.  It was opened without waiting: a FIFO would else hold
/// its reader until somebody writes into it.
fn other_than_file(file: &fs::File, path: &Path) -> Result<Option<&'static str>> {
    let facts = file.metadata();
    let kind = facts
        .map_err(|e| Error::from_io(Op::Stat, path, e))?
        .file_type();
    let is_stream = kind.is_fifo() || kind.is_char_device() || kind.is_socket();
    Ok(match (kind.is_dir(), is_stream) {
        (true, _) => Some("a directory"),
        (_, true) => Some(STREAM),
        _ => None,
    })
}

/// Why it could not be opened: a socket says that there is no such device.
fn no_file(path: &Path, error: io::Error) -> Error {
    let is_no_device = error.raw_os_error() == Some(Errno::NXIO.raw_os_error());
    if is_no_device && fs::metadata(path).is_ok_and(|facts| facts.file_type().is_socket()) {
        let (op, path) = (Op::Open, path.to_path_buf());
        let what = STREAM;
        return Error::NotAFile { op, path, what };
    }
    Error::from_io(Op::Open, path, error)
}

/// Refuses what has no octets at offsets.  It was opened without waiting: a FIFO in a file's place would else hold
/// its reader until somebody writes into it.
fn no_stream(file: fs::File) -> io::Result<fs::File> {
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() || kind.is_char_device() || kind.is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a pipe, a socket or a terminal; take it away, and put the file back if there was one",
        ));
    }
    Ok(file)
}

/// Whether a hard link cannot be made because of where the two names lie, or how many there are.
fn is_not_linkable(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    let reasons = [Errno::XDEV, Errno::MLINK, Errno::OPNOTSUPP, Errno::PERM];
    errno.is_some_and(|errno| reasons.iter().any(|reason| reason.raw_os_error() == errno))
}

/// A lock is written to, so it must not be a link that leads to somebody's file.
fn no_link(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
        return io::Error::new(
            error.kind(),
            "it is a symbolic link, not a file of its own; remove it",
        );
    }
    error
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).mode(match mode {
            OpenMode::CreateForAll => 0o644,
            _ => 0o640,
        });
        match mode {
            OpenMode::Read => &mut options,
            OpenMode::ReadWrite => options.write(true),
            OpenMode::CreateNew | OpenMode::CreateForAll => options.write(true).create_new(true),
            OpenMode::CreateOrOpen => options.write(true).create(true).truncate(false),
        };
        let mut open = |flags| options.custom_flags(as_flags(flags)).open(path);
        let opened = match mode {
            // Reading writes no time of access where the kernel lets us say so: to the owner of the file.
            OpenMode::Read => match open(OFlags::NONBLOCK | OFlags::NOATIME) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    open(OFlags::NONBLOCK)
                }
                opened => opened,
            },
            _ => open(OFlags::NONBLOCK),
        };
        let file = opened.map_err(|error| no_file(path, error))?;
        match mode {
            // Nothing else is made so.
            OpenMode::CreateNew | OpenMode::CreateForAll => {
                Ok(RealFile::shared((file, mode), path))
            }
            _ => RealFile::of((file, mode), path),
        }
    }

    fn open_cached(&self, path: &Path) -> Result<Option<Arc<dyn File>>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOATIME;
        let (mode, resolve) = (Mode::empty(), ResolveFlags::CACHED);
        match retry(|| rustix::fs::openat2(CWD, path, flags, mode, resolve)) {
            Ok(fd) => RealFile::of((fd.into(), OpenMode::Read), path).map(Some),
            Err(Errno::NOENT) => Err(failed(Op::Open, path)(Errno::NOENT)),
            // It would wait; or a kernel that does not know, a file of somebody else: who may wait finds out.
            Err(_) => Ok(None),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|e| Error::from_io(Op::Rename, from, e))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|e| Error::from_io(Op::Remove, path, e))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let linked = match fs::hard_link(from, to) {
            // Also what the file system cannot link, or not as often.
            Err(error) if is_not_linkable(&error) => std::os::unix::fs::symlink(from, to),
            linked => linked,
        };
        linked.map_err(|e| Error::from_io(Op::Link, to, e))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut missing = Vec::new();
        let mut at = Some(path);
        while let Some(dir) = at.filter(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()) {
            missing.push(dir);
            at = dir.parent();
        }
        fs::create_dir_all(path).map_err(|error| {
            // Its own words are about the last step, which the path does not show.
            let why = match error.kind() {
                io::ErrorKind::AlreadyExists => "it is a file, not a directory",
                io::ErrorKind::NotADirectory => "a file stands in its way",
                io::ErrorKind::NotFound => "none can be made there",
                _ => return Error::from_io(Op::CreateDir, path, error),
            };
            Error::from_io(Op::CreateDir, path, io::Error::other(why))
        })?;
        for parent in missing.iter().rev().filter_map(|dir| dir.parent()) {
            self.sync_dir(parent)?;
        }
        Ok(())
    }

    fn make_dirs(&self, path: &Path) -> Result<()> {
        fs::create_dir_all(path).map_err(|e| Error::from_io(Op::CreateDir, path, e))
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        let failed = |e| Error::from_io(Op::List, dir, e);
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let facts = match entry.metadata() {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                other => other.map_err(failed)?,
            };
            let is_dir = facts.is_dir();
            entries.push(DirEntry {
                name,
                len: if is_dir { 0 } else { facts.len() },
                is_dir,
            });
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn has_entries(&self, dir: &Path) -> Result<bool> {
        let entries = fs::read_dir(dir).map_err(|e| Error::from_io(Op::List, dir, e))?;
        Ok(entries.take(1).count() > 0)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists()
            .map_err(|e| Error::from_io(Op::Stat, path, e))
    }

    fn link_target(&self, path: &Path) -> Result<Option<PathBuf>> {
        match fs::read_link(path) {
            Ok(target) => Ok(Some(target)),
            // It is none.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(None),
            Err(e) => Err(Error::from_io(Op::Stat, path, e)),
        }
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        fs::canonicalize(path).map_err(|e| Error::from_io(Op::Stat, path, e))
    }

    fn facts(&self, path: &Path) -> Result<Option<FileFacts>> {
        let facts = retry(|| rustix::fs::stat(path)).map_err(failed(Op::Stat, path))?;
        let is_file = rustix::fs::FileType::from_raw_mode(facts.st_mode).is_file();
        let len = u64::try_from(facts.st_size).ok().filter(|_| is_file);
        let both = len.zip(u64::try_from(facts.st_mtime).ok());
        let changed_s = u64::try_from(facts.st_ctime).unwrap_or(0);
        Ok(both.map(|(len, modified)| FileFacts {
            len,
            modified,
            inode: facts.st_ino,
            changed_ns: changed_s
                .saturating_mul(1_000_000_000)
                .saturating_add(facts.st_ctime_nsec),
        }))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let at = if dir.as_os_str().is_empty() {
            Path::new(".")
        } else {
            dir
        };
        fs::File::open(at)
            .and_then(|file| file.sync_all())
            .map_err(|e| Error::from_io(Op::SyncDir, dir, e))
    }

    fn date(&self, path: &Path, modified: u64) -> Result<()> {
        let time = |secs, nsecs| rustix::fs::Timespec {
            tv_sec: secs,
            tv_nsec: nsecs,
        };
        let times = rustix::fs::Timestamps {
            last_access: time(0, rustix::fs::UTIME_OMIT),
            last_modification: time(i64::try_from(modified).unwrap_or(i64::MAX), 0),
        };
        let flags = rustix::fs::AtFlags::empty();
        retry(|| rustix::fs::utimensat(CWD, path, &times, flags))
            .map_err(failed(Op::SetAttribute, path))
    }

    fn sync_file_system(&self, dir: &Path) -> Result<()> {
        let at = fs::File::open(dir).map_err(|e| Error::from_io(Op::SyncDir, dir, e))?;
        retry(|| rustix::fs::syncfs(&at)).map_err(failed(Op::SyncDir, dir))
    }

    fn file_system(&self, dir: &Path) -> Result<u64> {
        let facts = retry(|| rustix::fs::stat(dir)).map_err(failed(Op::Stat, dir))?;
        Ok(facts.st_dev)
    }

    fn folder_mark(&self, dir: &Path, attribute: &str) -> Result<(Option<Vec<u8>>, u32)> {
        let folder = crate::Folder::open(dir)?;
        // What a mount of Usenetfs shows lies as it is seen.
        if folder.file_system()?.kind == crate::folder::FileSystemKind::Fuse {
            return Ok((None, 0));
        }
        Ok((folder.attribute(attribute)?, folder.facts()?.mode))
    }

    fn mounts_below(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let whole = crate::mounts::canonical(dir);
        let mounts = crate::mounts::mount_points()?.into_iter();
        // Told as below the path that was given.
        let below = |at: PathBuf| at.strip_prefix(&whole).ok().map(|below| dir.join(below));
        let mut found: Vec<_> = mounts.filter_map(|mount| below(mount.at)).collect();
        found.retain(|at| at != dir);
        Ok(found)
    }

    fn free_bytes(&self, path: &Path) -> Result<u64> {
        let facts = retry(|| rustix::fs::statvfs(path)).map_err(failed(Op::Stat, path))?;
        Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        let is_dir = fs::metadata(path).is_ok_and(|facts| facts.is_dir());
        // A directory may be reached by a link, a file that is written to may not.
        let flags = match is_dir {
            true => OFlags::DIRECTORY,
            false => OFlags::NONBLOCK | OFlags::NOFOLLOW,
        };
        let file = fs::OpenOptions::new()
            .read(true)
            .write(!is_dir)
            .create(!is_dir)
            .truncate(false)
            .mode(0o640)
            .custom_flags(as_flags(flags))
            .open(path)
            .and_then(|file| if is_dir { Ok(file) } else { no_stream(file) })
            .map_err(|e| Error::from_io(Op::Lock, path, no_link(e)))?;
        match retry(|| rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => {}
            // File systems of other machines lock only what is open for writing.
            Err(Errno::BADF | Errno::OPNOTSUPP | Errno::NOLCK) if is_dir => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(Error::Locked {
                    path: path.to_path_buf(),
                    pid: lock_holder(path),
                });
            }
            Err(errno) => return Err(failed(Op::Lock, path)(errno)),
        }
        let holder = format!("{}\n", std::process::id());
        if !is_dir {
            // Who looks meanwhile finds a holder in the first line at any time.
            file.write_all_at(holder.as_bytes(), 0)
                .and_then(|()| file.set_len(holder.len() as u64))
                .map_err(|e| Error::from_io(Op::Lock, path, e))?;
        }
        Ok(Box::new(RealLock {
            file,
            path: path.to_path_buf(),
        }))
    }
}

impl RealFile {
    /// An open file, if it is one.
    fn of((file, mode): (fs::File, OpenMode), path: &Path) -> Result<Arc<dyn File>> {
        if let Some(what) = other_than_file(&file, path)? {
            let (op, path) = (Op::Open, path.to_path_buf());
            return Err(Error::NotAFile { op, path, what });
        }
        Ok(Self::shared((file, mode), path))
    }

    /// An open file, which is one.
    fn shared((file, mode): (fs::File, OpenMode), path: &Path) -> Arc<dyn File> {
        Arc::new(Self {
            file,
            mode,
            path: path.to_path_buf(),
            direct: OnceLock::new(),
            direct_reads: OnceLock::new(),
        })
    }

    /// Another descriptor for the same file that goes around the page cache, where the file system can do that.
    fn open_direct(&self, access: OFlags) -> Option<OwnedFd> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let flags = access | OFlags::DIRECT | OFlags::CLOEXEC;
        retry(|| rustix::fs::open(own.as_str(), flags, Mode::empty())).ok()
    }

    /// The one that writes.
    fn direct(&self) -> Option<&OwnedFd> {
        // Who opened it to read does not write, by this descriptor either.
        let open = || match self.mode {
            OpenMode::Read => None,
            _ => self.open_direct(OFlags::WRONLY),
        };
        self.direct.get_or_init(open).as_ref()
    }

    /// Reads around the page cache as far as that works and says how many octets were read.
    fn pread_direct(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let open = || self.open_direct(OFlags::RDONLY);
        let Some(direct) = self.direct_reads.get_or_init(open) else {
            return Ok(0);
        };
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match retry(|| rustix::io::pread(direct, &mut *rest, offset + done as u64)) {
                // The end of the file, or refused: the caller goes on in the ordinary way.
                Ok(0) | Err(Errno::INVAL | Errno::OPNOTSUPP) => break,
                Ok(got) => {
                    done += got;
                    if !done.is_multiple_of(DIRECT_ALIGN_BYTES) {
                        break;
                    }
                }
                Err(errno) => return Err(failed(Op::Read, &self.path)(errno)),
            }
        }
        Ok(done)
    }

    /// Writes around the page cache as far as that works and says how many octets were written.
    fn pwrite_direct(&self, op: Op, buf: &[u8], offset: u64) -> Result<usize> {
        let Some(direct) = self.direct() else {
            return Ok(0);
        };
        let mut done = 0;
        while let Some(rest) = buf.get(done..).filter(|rest| !rest.is_empty()) {
            match retry(|| rustix::io::pwrite(direct, rest, offset + done as u64)) {
                // A short or refused direct write: the caller goes on in the ordinary way.
                Ok(0) | Err(Errno::INVAL | Errno::OPNOTSUPP) => break,
                Ok(written) => {
                    done += written;
                    if !done.is_multiple_of(DIRECT_ALIGN_BYTES) {
                        break;
                    }
                }
                Err(errno) => return Err(failed(op, &self.path)(errno)),
            }
        }
        Ok(done)
    }

    /// Writes zeros through the page cache, syncing and dropping as it goes so that memory stays bounded.
    fn zero_fill_buffered(&self, zeros: &[u8], from: u64, to: u64) -> Result<()> {
        let (mut at, mut clean_to) = (from, from);
        while at < to {
            let len = bounded(to - at, zeros.len());
            self.write_at(zeros.get(..len).unwrap_or(zeros), at)?;
            at += len as u64;
            if at - clean_to >= ZERO_SYNC_BYTES {
                self.sync_data()?;
                self.drop_cache(clean_to, at - clean_to)?;
                clean_to = at;
            }
        }
        if at > clean_to && to - from >= ZERO_SYNC_BYTES {
            self.sync_data()?;
            self.drop_cache(clean_to, at - clean_to)?;
        }
        Ok(())
    }

    /// Writes zeros around the page cache as far as that works and says how far it came.
    fn zero_fill_direct(&self, zeros: &[u8], from: u64, to: u64) -> Result<u64> {
        let mut at = from;
        while at < to {
            let len = bounded(to - at, zeros.len());
            let done = self.pwrite_direct(Op::ZeroFill, zeros.get(..len).unwrap_or(zeros), at)?;
            at += done as u64;
            if done < len {
                break;
            }
        }
        Ok(at)
    }
}

/// The smaller of what is left and one chunk.
fn bounded(left: u64, chunk: usize) -> usize {
    usize::try_from(left).map_or(chunk, |left| left.min(chunk))
}

impl File for RealFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = offset + done as u64;
            match retry(|| rustix::io::pread(&self.file, &mut *rest, at)) {
                Ok(0) => break,
                Ok(got) => done += got,
                Err(errno) => return Err(failed(Op::Read, &self.path)(errno)),
            }
        }
        Ok(done)
    }

    fn read_direct_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let done = match is_aligned(buf, offset) {
            true => self.pread_direct(buf, offset)?,
            false => 0,
        };
        let rest = buf.get_mut(done..).unwrap_or_default();
        Ok(done + self.read_at(rest, offset + done as u64)?)
    }

    fn read_cached_at(&self, buf: &mut [u8], offset: u64) -> Result<Option<usize>> {
        let wanted = buf.len();
        let mut parts = [IoSliceMut::new(buf)];
        match retry(|| rustix::io::preadv2(&self.file, &mut parts, offset, ReadWriteFlags::NOWAIT))
        {
            Ok(got) if got == wanted => Ok(Some(got)),
            Ok(got) => {
                // Short: either the file ends here, or only the beginning was in memory.
                let ends = offset.saturating_add(got as u64) >= self.len()?;
                Ok(ends.then_some(got))
            }
            Err(Errno::AGAIN | Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(failed(Op::Read, &self.path)(errno)),
        }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.file
            .write_all_at(buf, offset)
            .map_err(|e| Error::from_io(Op::Write, &self.path, e))
    }

    fn write_direct_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        let done = if is_aligned(buf, offset) {
            self.pwrite_direct(Op::Write, buf, offset)?
        } else {
            0
        };
        let rest = buf.get(done..).unwrap_or_default();
        if rest.is_empty() {
            Ok(())
        } else {
            self.write_at(rest, offset + done as u64)
        }
    }

    fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<()> {
        // The kernel takes at most 1024 parts (IOV_MAX) at once.
        let mut at = offset;
        for group in parts.chunks(1024) {
            let wanted: usize = group.iter().map(|part| part.len()).sum();
            let written = retry(|| rustix::io::pwritev(&self.file, group, at))
                .map_err(failed(Op::Write, &self.path))?;
            let mut skip = written;
            for part in group.iter().filter(|_| written < wanted) {
                let start = skip.min(part.len());
                skip -= start;
                let rest = part.get(start..).unwrap_or_default();
                let done = wanted_before(group, part) + start;
                self.write_at(rest, at + done as u64)?;
            }
            at += wanted as u64;
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        retry(|| rustix::fs::fdatasync(&self.file)).map_err(failed(Op::Sync, &self.path))
    }

    fn sync_all(&self) -> Result<()> {
        retry(|| rustix::fs::fsync(&self.file)).map_err(failed(Op::Sync, &self.path))
    }

    fn len(&self) -> Result<u64> {
        let facts = self
            .file
            .metadata()
            .map_err(|e| Error::from_io(Op::Stat, &self.path, e))?;
        if facts.file_type().is_block_device() {
            return rustix::fs::seek(&self.file, rustix::fs::SeekFrom::End(0))
                .map_err(failed(Op::Stat, &self.path));
        }
        Ok(facts.len())
    }

    fn is_device(&self) -> Result<bool> {
        let facts = self.file.metadata();
        let facts = facts.map_err(|e| Error::from_io(Op::Stat, &self.path, e))?;
        Ok(facts.file_type().is_block_device())
    }

    fn is_in_place(&self) -> Result<bool> {
        let wrong = |error| Error::from_io(Op::Stat, &self.path, error);
        let ours = self.file.metadata().map_err(wrong)?;
        leads_to(&ours, fs::metadata(&self.path)).map_err(wrong)
    }

    fn named_inode(&self) -> Result<Option<u64>> {
        let facts = self.file.metadata();
        let facts = facts.map_err(|e| Error::from_io(Op::Stat, &self.path, e))?;
        Ok((facts.nlink() > 0).then_some(facts.ino()))
    }

    fn is_read_only(&self) -> Result<bool> {
        let facts = self.file.metadata();
        let facts = facts.map_err(|e| Error::from_io(Op::Stat, &self.path, e))?;
        if !facts.file_type().is_block_device() {
            return Ok(false);
        }
        let (major, minor) = (
            rustix::fs::major(facts.rdev()),
            rustix::fs::minor(facts.rdev()),
        );
        // Where that is not mounted nobody tells.
        let said = read_small(Path::new(&format!("/sys/dev/block/{major}:{minor}/ro")));
        Ok(said.is_ok_and(|said| said.trim_end() == "1"))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file
            .set_len(len)
            .map_err(|e| Error::from_io(Op::SetLen, &self.path, e))
    }

    fn zero_fill(&self, offset: u64, len: u64) -> Result<()> {
        let mut zeros = AlignedBuf::new();
        zeros.append(ZERO_CHUNK_BYTES).fill(0);
        let zeros = &*zeros;
        let end = offset.saturating_add(len);
        let direct_from = offset.next_multiple_of(ALIGN_BYTES).min(end);
        let direct_to = (end - end % ALIGN_BYTES).max(direct_from);
        self.zero_fill_buffered(zeros, offset, direct_from)?;
        let done_to = self.zero_fill_direct(zeros, direct_from, direct_to)?;
        self.zero_fill_buffered(zeros, done_to, end)
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        match retry(|| rustix::fs::fallocate(&self.file, FallocateFlags::empty(), offset, len)) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP) => {
                let end = offset.saturating_add(len);
                if self.len()? < end {
                    self.set_len(end)
                } else {
                    Ok(())
                }
            }
            Err(errno) => Err(failed(Op::Reserve, &self.path)(errno)),
        }
    }

    fn give_back(&self, offset: u64, len: u64) -> Result<()> {
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match retry(|| rustix::fs::fallocate(&self.file, punch, offset, len)) {
            Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
            Err(errno) => Err(failed(Op::GiveBack, &self.path)(errno)),
        }
    }

    fn will_need(&self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let mut at = offset;
        while at < end {
            // Of more at once the kernel brings the beginning only.
            let piece = (end - at).min(AHEAD_PIECE);
            // It is advice: what cannot be had is met by who reads.
            let _ = rustix::fs::fadvise(&self.file, at, NonZeroU64::new(piece), Advice::WillNeed);
            at += piece;
        }
    }

    fn drop_cache(&self, offset: u64, len: u64) -> Result<()> {
        let Some(len) = NonZeroU64::new(len) else {
            return Ok(());
        };
        retry(|| rustix::fs::fadvise(&self.file, offset, Some(len), Advice::DontNeed))
            .map_err(failed(Op::Stat, &self.path))
    }
}

/// Whether what lies at the path of an open file is that file.
fn leads_to(ours: &fs::Metadata, there: io::Result<fs::Metadata>) -> io::Result<bool> {
    if ours.file_type().is_block_device() {
        // Its node may be made anew, or away for a moment: only another device is another one.
        let is_other = |there: fs::Metadata| {
            there.file_type().is_block_device() && there.rdev() != ours.rdev()
        };
        return Ok(!there.is_ok_and(is_other));
    }
    match there.map_err(|error| (Errno::from_io_error(&error), error)) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err((Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP), _)) => Ok(false),
        // No path leads to it.
        Err(_) if ours.nlink() == 0 => Ok(false),
        Err((_, error)) => Err(error),
    }
}

/// Octets of `group` before `part`, which is one of its elements.
fn wanted_before(group: &[IoSlice<'_>], part: &IoSlice<'_>) -> usize {
    group
        .iter()
        .take_while(|other| !std::ptr::eq(*other, part))
        .map(|other| other.len())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer on a device took nothing more until the next start when its node was away for a moment.
    #[test]
    fn a_device_is_in_place_until_its_path_leads_to_another() {
        let nodes = fs::read_dir("/dev").unwrap();
        let nodes = nodes.map(|node| fs::metadata(node.unwrap().path()));
        let is_device = |node: &fs::Metadata| node.file_type().is_block_device();
        let mut devices = nodes.filter_map(|node| node.ok().filter(is_device));
        let Some(ours) = devices.next() else { return };
        assert!(leads_to(&ours, Err(Errno::NOENT.into())).unwrap());
        assert!(leads_to(&ours, fs::metadata("/dev/null")).unwrap());
        let is_other = |node: &fs::Metadata| node.rdev() != ours.rdev();
        if let Some(other) = devices.find(is_other) {
            assert!(!leads_to(&ours, Ok(other)).unwrap());
        }
    }
}
