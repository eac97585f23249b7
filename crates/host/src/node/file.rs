//! An open file of somebody else's: read and written at offsets, with what Linux offers beside that.

use std::ffi::OsStr;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};

use super::names::own;
use super::{Handle, HandleRoot, Outcome};
use crate::disk::retry;

/// An open file.
#[derive(Debug)]
pub struct OpenFile {
    fd: OwnedFd,
}

/// What to look for from an offset on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// Octets that were written.
    Data,
    /// None.
    Hole,
}

impl OpenFile {
    pub(super) const fn new(fd: OwnedFd) -> Self {
        Self { fd }
    }

    /// Opens what a handle stands for; `flags` as of `open(2)`.
    pub fn by_handle(root: &HandleRoot, handle: &Handle, flags: i32) -> Outcome<Self> {
        Ok(Self::new(root.open(handle, own(flags))?))
    }

    /// Reads as much as there is, up to the end of the buffer.
    pub fn read(&self, buf: &mut [u8], offset: u64) -> Outcome<usize> {
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            match retry(|| rustix::io::pread(&self.fd, &mut buf[done..], at)) {
                Ok(0) => break,
                Ok(got) => done += got,
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Writes; to the end if that is wanted, wherever that is by now.
    pub fn write(&self, octets: &[u8], offset: u64, appends: bool) -> Outcome<usize> {
        if appends {
            let slices = [IoSlice::new(octets)];
            let flags = ReadWriteFlags::APPEND;
            return retry(|| rustix::io::pwritev2(&self.fd, &slices, offset, flags));
        }
        let mut done = 0;
        while done < octets.len() {
            let at = offset + done as u64;
            match retry(|| rustix::io::pwrite(&self.fd, &octets[done..], at)) {
                Ok(0) => break,
                Ok(put) => done += put,
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Cuts or extends it.
    pub fn set_len(&self, len: u64) -> Outcome<()> {
        retry(|| rustix::fs::ftruncate(&self.fd, len))
    }

    /// How long one of its extended attributes is.
    pub fn attribute_len(&self, name: &OsStr) -> Outcome<usize> {
        rustix::fs::fgetxattr_query(&self.fd, name)
    }

    /// Makes it durable, or only its data.
    pub fn sync(&self, data_only: bool) -> Outcome<()> {
        if data_only {
            rustix::fs::fdatasync(&self.fd)
        } else {
            rustix::fs::fsync(&self.fd)
        }
    }

    /// Reserves, frees or clears a range; `mode` as of `fallocate(2)`.
    pub fn allocate(&self, mode: i32, offset: u64, len: u64) -> Outcome<()> {
        let mode = FallocateFlags::from_bits(mode.cast_unsigned()).ok_or(Errno::OPNOTSUPP)?;
        retry(|| rustix::fs::fallocate(&self.fd, mode, offset, len))
    }

    /// Where the next data or hole begins.
    pub fn seek(&self, what: Seek, offset: u64) -> Outcome<u64> {
        rustix::fs::seek(
            &self.fd,
            match what {
                Seek::Data => SeekFrom::Data(offset),
                Seek::Hole => SeekFrom::Hole(offset),
            },
        )
    }

    /// Copies a range to another file without the octets coming here.
    pub fn copy_to(&self, from: u64, to: &Self, at: u64, len: usize) -> Outcome<usize> {
        let (mut from, mut at) = (from, at);
        rustix::fs::copy_file_range(&self.fd, Some(&mut from), &to.fd, Some(&mut at), len)
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
