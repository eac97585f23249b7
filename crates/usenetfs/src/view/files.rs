//! Open files: reading, writing and what else goes through them.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::caller::obey_quotas;
use newsreel_host::node::{Errno, OpenFile, Outcome, Seek, open_bucket};

use super::View;
use crate::changes::Dirty;
use crate::counters::Op;
use crate::folders::Dir;

impl View {
    /// Opens a file; `flags` as of `open(2)`.
    pub fn open(&self, node: u64, flags: i32) -> Outcome<u64> {
        self.counters.count(Op::Open);
        Ok(self.files.put(node, self.open_file(node, flags)?))
    }

    /// An open file.
    pub fn file(&self, file: u64) -> Outcome<Arc<OpenFile>> {
        self.files.get(file)
    }

    /// Closes an open file.
    pub fn release(&self, file: u64) {
        self.counters.count(Op::Release);
        self.files.release(file);
    }

    /// Reads as much as there is.
    pub fn read(&self, file: u64, buf: &mut [u8], offset: u64) -> Outcome<usize> {
        self.counters.count(Op::Read);
        self.files.get(file)?.read(buf, offset)
    }

    /// Writes; to the end, wherever that is, if the file is to be appended to now.
    pub fn write(&self, file: u64, octets: &[u8], offset: u64, appends: bool) -> Outcome<usize> {
        self.counters.count(Op::Write);
        obey_quotas()?;
        let file = self.files.get(file)?;
        self.graves
            .make_room(|| file.write(octets, offset, appends))
    }

    /// Makes a file durable, or only its data.
    pub fn sync(&self, file: u64, data_only: bool) -> Outcome<()> {
        self.counters.count(Op::Fsync);
        self.files.get(file)?.sync(data_only)
    }

    /// Makes a directory durable: the buckets that changed since the last time, then itself.
    pub fn sync_folder(&self, node: u64) -> Outcome<()> {
        self.counters.count(Op::FsyncFolder);
        let dir = self.dir(node)?;
        self.write_time_of(&dir);
        self.changes.sync(node, |dirty| sync_all(&dir, dirty))
    }

    /// Reserves, frees or clears a range; `mode` as of `fallocate(2)`.
    pub fn allocate(&self, file: u64, mode: i32, offset: u64, len: u64) -> Outcome<()> {
        self.counters.count(Op::Allocate);
        obey_quotas()?;
        let file = self.files.get(file)?;
        self.graves.make_room(|| file.allocate(mode, offset, len))
    }

    /// Where the next data or hole begins.
    pub fn seek(&self, file: u64, what: Seek, offset: u64) -> Outcome<u64> {
        self.counters.count(Op::Seek);
        self.files.get(file)?.seek(what, offset)
    }

    /// Copies a range from file to file.
    pub fn copy(&self, from: (u64, u64), to: (u64, u64), len: usize) -> Outcome<usize> {
        self.counters.count(Op::Copy);
        obey_quotas()?;
        let (source, target) = (self.files.get(from.0)?, self.files.get(to.0)?);
        source.copy_to(from.1, &target, to.1, len)
    }
}

/// Makes the buckets durable that changed, and then the directory itself.
fn sync_all(dir: &Dir, dirty: &Dirty) -> Outcome<()> {
    let number = |error: newsreel_host::Error| Errno::from(&error);
    match (dir.managed(), dirty) {
        (Some(_), Dirty::Everything) => {
            return dir.folder().sync_file_system().map_err(number);
        }
        (Some(managed), Dirty::Buckets(buckets)) => {
            for bucket in buckets {
                let path = managed.algorithm().bucket_path(*bucket);
                let parts = path.components().count();
                // With two levels the one in between has a new name in it, too.
                for ancestor in path.ancestors().take(parts) {
                    sync_bucket(dir.folder(), ancestor)?;
                }
            }
        }
        (None, _) => {}
    }
    dir.folder().sync().map_err(number)
}

/// One that is gone has nothing to be made durable.
fn sync_bucket(folder: &newsreel_host::Folder, path: &Path) -> Outcome<()> {
    let bucket = match open_bucket(folder, path) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    let bucket = newsreel_host::Folder::of_descriptor(bucket, path.to_path_buf());
    bucket.sync().map_err(|error| Errno::from(&error))
}
