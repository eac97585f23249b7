//! A directory's entries with the places between them, as the file system gives them, from any of these places on.
//!
//! At most one block of names is in memory.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Mode, OFlags, RawDir, SeekFrom};

use super::Outcome;

/// Octets of names read at once.
const BLOCK_BYTES: usize = 32 * 1024;

/// An entry, `.` and `..` among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: OsString,
    /// Its inode's number, as the directory says.
    pub inode: u64,
    /// The bits of a mode that say what it is, or 0 where the file system does not say.
    pub kind_bits: u32,
    /// The place behind it.
    pub after: u64,
}

/// A stream of entries.
#[derive(Debug)]
pub struct FolderStream {
    fd: OwnedFd,
    /// Behind what was returned last.
    at: u64,
    /// What was read and not returned yet.
    ready: VecDeque<Found>,
    is_at_end: bool,
}

impl FolderStream {
    /// A stream of its own over an open directory.
    pub fn of(folder: impl AsFd) -> Outcome<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            fd: rustix::fs::openat(folder, ".", flags, Mode::empty())?,
            at: 0,
            ready: VecDeque::new(),
            is_at_end: false,
        })
    }

    /// Hands the entries behind the place `from` to `take` until it refuses one, which then comes again, or there are
    /// no more.
    pub fn fill(
        &mut self,
        from: u64,
        mut take: impl FnMut(&Found) -> Outcome<bool>,
    ) -> Outcome<()> {
        if from != self.at || from == 0 {
            rustix::fs::seek(&self.fd, SeekFrom::Start(from))?;
            self.ready.clear();
            self.is_at_end = false;
            self.at = from;
        }
        loop {
            while let Some(found) = self.ready.front() {
                if !take(found)? {
                    return Ok(());
                }
                self.at = found.after;
                self.ready.pop_front();
            }
            if self.is_at_end {
                // Who asks again at the end sees what was added meanwhile.
                self.is_at_end = false;
                return Ok(());
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Outcome<()> {
        let mut block = [MaybeUninit::uninit(); BLOCK_BYTES];
        let mut stream = RawDir::new(&self.fd, &mut block);
        self.is_at_end = true;
        while let Some(entry) = stream.next() {
            let entry = entry?;
            self.is_at_end = false;
            self.ready.push_back(Found {
                name: OsStr::from_bytes(entry.file_name().to_bytes()).to_os_string(),
                inode: entry.ino(),
                kind_bits: match entry.file_type() {
                    FileType::Unknown => 0,
                    known => known.as_raw_mode(),
                },
                after: entry.next_entry_cookie(),
            });
            if stream.is_buffer_empty() {
                break;
            }
        }
        Ok(())
    }
}
