//! A disk that fails by script, around any other disk.
//!
//! Every operation is counted and shown to the script first; one that no fault strikes goes through unchanged.  A
//! struck sync does what Linux does: the pages count as clean, the data are lost, and the error is told once to whoever
//! syncs it by another opening that was there before (errseq, Linux 4.13 and later); who shares an opening with the one
//! that was told is told nothing.

mod script;
#[cfg(test)]
mod tests;
mod waits;

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{DirEntry, Disk, File, FileFacts, Lock, OpenMode};
use crate::error::{Error, ErrorKind, Op, Result};
use script::{Call, Script};
pub use script::{Effect, Fault, OpCounts};
use waits::Waits;

const SECTOR_BYTES: usize = 512;

/// A disk that fails by script; clones share script and counters.
#[derive(Debug, Clone)]
pub struct FaultyDisk {
    inner: Arc<dyn Disk>,
    script: Arc<Script>,
    waits: Arc<Waits>,
}

#[derive(Debug)]
struct FaultyFile {
    inner: Arc<dyn File>,
    script: Arc<Script>,
    waits: Arc<Waits>,
    /// So many failed syncs of its path this opening was told of, or was too late for.
    told: AtomicU64,
}

impl FaultyDisk {
    /// A disk around `inner` with an empty script.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        Self {
            inner,
            script: Arc::default(),
            waits: Arc::default(),
        }
    }

    /// Adds a fault.
    pub fn add(&self, fault: Fault) {
        self.script.add(fault);
    }

    /// Forgets every fault and every stop; the counters go on.
    pub fn clear(&self) {
        self.script.clear();
    }

    /// Stops the machine at the `nth` changing operation since this disk was made, counted from 1: it and everything
    /// after fails as stopped.
    pub fn stop_at_change(&self, nth: u64) {
        self.script.stop_at_change(nth);
    }

    /// Stops the machine at the `nth` sync of a file or directory since this disk was made, counted from 1.
    pub fn stop_at_sync(&self, nth: u64) {
        self.script.stop_at_sync(nth);
    }

    /// Stops the machine now.
    pub fn stop(&self) {
        self.script.stop();
    }

    /// Whether the machine was stopped.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.script.stopped()
    }

    /// How often what was tried so far.
    #[must_use]
    pub fn counts(&self) -> OpCounts {
        self.script.counts()
    }

    /// How often the calling thread read from a file and would have waited for it, had it not been in memory.
    #[must_use]
    pub fn waits_here(&self) -> u64 {
        self.waits.here()
    }

    /// Octets written so far to files whose paths contain `path_part`.
    #[must_use]
    pub fn octets_written(&self, path_part: &str) -> u64 {
        self.script.octets_written(path_part)
    }

    /// Writes so far to files whose paths contain `path_part` that did not begin where the write before them ended.
    #[must_use]
    pub fn writes_apart(&self, path_part: &str) -> u64 {
        self.script.writes_apart(path_part)
    }

    /// Octets asked for so far of files whose paths contain `path_part`, whether or not they lay in memory.
    #[must_use]
    pub fn octets_read(&self, path_part: &str) -> u64 {
        self.script.octets_read(path_part)
    }

    fn around(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(FaultyFile {
            told: AtomicU64::new(self.script.failed_syncs(inner.path())),
            inner,
            script: Arc::clone(&self.script),
            waits: Arc::clone(&self.waits),
        })
    }

    /// Counts an operation and shows it to the script; an open folder asks here too.
    pub(crate) fn strike(&self, op: Op, path: &Path) -> Result<()> {
        let call = Call::new(op, path);
        self.script
            .strike(&call)?
            .map_or(Ok(()), |effect| refuse(effect, &call))
    }
}

/// The error or delay an effect means for an operation it cannot change otherwise.
fn refuse(effect: Effect, call: &Call<'_>) -> Result<()> {
    match effect {
        Effect::Medium => Err(Error::medium(call.op, call.path)),
        Effect::Denied => Err(Error::from_io(
            call.op,
            call.path,
            std::io::ErrorKind::PermissionDenied.into(),
        )),
        Effect::Full => Err(Error::Full {
            op: call.op,
            path: call.path.to_path_buf(),
        }),
        Effect::Stop => Err(Error::Stopped {
            op: call.op,
            path: call.path.to_path_buf(),
        }),
        Effect::Slow(time) => {
            std::thread::sleep(time);
            Ok(())
        }
        Effect::Torn { .. } | Effect::FlipBit { .. } | Effect::Cold => Ok(()),
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut call = Call::new(Op::Open, path);
        call.changes = !matches!(mode, OpenMode::Read | OpenMode::ReadWrite);
        if let Some(effect) = self.script.strike(&call)? {
            refuse(effect, &call)?;
        }
        Ok(self.around(self.inner.open(path, mode)?))
    }

    fn open_cached(&self, path: &Path) -> Result<Option<Arc<dyn File>>> {
        self.strike(Op::Open, path)?;
        let opened = self.inner.open_cached(path)?;
        Ok(opened.map(|inner| self.around(inner)))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.strike(Op::Rename, from)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.strike(Op::Remove, path)?;
        self.inner.remove(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.strike(Op::Link, to)?;
        self.inner.link(from, to)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.strike(Op::CreateDir, path)?;
        self.inner.create_dir_all(path)
    }

    fn make_dirs(&self, path: &Path) -> Result<()> {
        self.strike(Op::CreateDir, path)?;
        self.inner.make_dirs(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        self.strike(Op::List, dir)?;
        self.inner.list(dir)
    }

    fn has_entries(&self, dir: &Path) -> Result<bool> {
        self.strike(Op::List, dir)?;
        self.inner.has_entries(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.strike(Op::Stat, path)?;
        self.inner.exists(path)
    }

    fn facts(&self, path: &Path) -> Result<Option<FileFacts>> {
        self.strike(Op::Stat, path)?;
        self.inner.facts(path)
    }

    fn date(&self, path: &Path, modified: u64) -> Result<()> {
        self.strike(Op::SetAttribute, path)?;
        self.inner.date(path, modified)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.strike(Op::SyncDir, dir)?;
        self.inner.sync_dir(dir)
    }

    fn sync_file_system(&self, dir: &Path) -> Result<()> {
        let struck = self.strike(Op::SyncDir, dir);
        if struck
            .as_ref()
            .is_err_and(|e| e.kind() != ErrorKind::Stopped)
        {
            self.inner.lose_unsynced();
        }
        struck?;
        self.inner.sync_file_system(dir)
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        self.strike(Op::Stat, path)?;
        self.inner.canonical(path)
    }

    fn link_target(&self, path: &Path) -> Result<Option<PathBuf>> {
        self.strike(Op::Stat, path)?;
        self.inner.link_target(path)
    }

    fn file_system(&self, dir: &Path) -> Result<u64> {
        self.strike(Op::Stat, dir)?;
        self.inner.file_system(dir)
    }

    fn folder_mark(&self, dir: &Path, attribute: &str) -> Result<(Option<Vec<u8>>, u32)> {
        self.inner.folder_mark(dir, attribute)
    }

    fn mounts_below(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        self.inner.mounts_below(dir)
    }

    fn lose_unsynced(&self) {
        self.inner.lose_unsynced();
    }

    fn free_bytes(&self, path: &Path) -> Result<u64> {
        self.strike(Op::Stat, path)?;
        self.inner.free_bytes(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.strike(Op::Lock, path)?;
        self.inner.lock(path)
    }
}

impl FaultyFile {
    fn call(&self, op: Op, offset: u64, len: u64) -> Call<'_> {
        Call::new(op, self.inner.path()).range(offset, len)
    }

    /// Counts the operation; an effect that remains is the caller's to act out.
    fn strike(&self, op: Op, offset: u64, len: u64) -> Result<Option<Effect>> {
        let call = self.call(op, offset, len);
        let effect = self.script.strike(&call)?;
        effect.map_or(Ok(()), |effect| refuse(effect, &call))?;
        Ok(effect)
    }

    /// A sync that fails leaves clean pages and lost data behind.
    fn faulty_sync(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let struck = self.strike(Op::Sync, 0, 0);
        if struck
            .as_ref()
            .is_err_and(|e| e.kind() != ErrorKind::Stopped)
        {
            let failed = self.script.fail_sync(self.path());
            self.told.store(failed, Ordering::SeqCst);
            self.inner.lose_unsynced();
        }
        struck?;
        sync()?;
        let failed = self.script.failed_syncs(self.path());
        if self.told.swap(failed, Ordering::SeqCst) < failed {
            return Err(Error::medium(Op::Sync, self.path()));
        }
        Ok(())
    }

    fn faulty_write(
        &self,
        buf: &[u8],
        offset: u64,
        write: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        match self.strike(Op::Write, offset, buf.len() as u64)? {
            Some(Effect::Torn { sectors, silent }) => self.torn(sectors, silent, buf, offset),
            Some(Effect::FlipBit { offset: at, bit }) => {
                let mut rotten = buf.to_vec();
                flip(&mut rotten, offset, at, bit);
                write(&rotten)
            }
            _ => write(buf),
        }
    }

    /// A write of which only the beginning is done.
    fn torn(&self, sectors: usize, silent: bool, buf: &[u8], offset: u64) -> Result<()> {
        let done = buf
            .get(..sectors.saturating_mul(SECTOR_BYTES))
            .unwrap_or(buf);
        self.inner.write_at(done, offset)?;
        if silent {
            Ok(())
        } else {
            Err(Error::medium(Op::Write, self.inner.path()))
        }
    }
}

/// Inverts the bit if `bytes`, which begin at `start`, cover it.
fn flip(bytes: &mut [u8], start: u64, offset: u64, bit: u8) {
    let at = offset
        .checked_sub(start)
        .and_then(|at| usize::try_from(at).ok());
    if let Some(octet) = at.and_then(|at| bytes.get_mut(at)) {
        *octet ^= 1 << (bit % 8);
    }
}

impl File for FaultyFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.waits.count();
        let effect = self.strike(Op::Read, offset, buf.len() as u64)?;
        let got = self.inner.read_at(buf, offset)?;
        if let Some(Effect::FlipBit { offset: at, bit }) = effect {
            flip(buf.get_mut(..got).unwrap_or_default(), offset, at, bit);
        }
        Ok(got)
    }

    fn read_cached_at(&self, buf: &mut [u8], offset: u64) -> Result<Option<usize>> {
        let effect = self.strike(Op::Read, offset, buf.len() as u64)?;
        if effect == Some(Effect::Cold) {
            return Ok(None);
        }
        let got = self.inner.read_cached_at(buf, offset)?;
        if let (Some(Effect::FlipBit { offset: at, bit }), Some(got)) = (effect, got) {
            flip(buf.get_mut(..got).unwrap_or_default(), offset, at, bit);
        }
        Ok(got)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.faulty_write(buf, offset, |buf| self.inner.write_at(buf, offset))
    }

    fn write_direct_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.faulty_write(buf, offset, |buf| self.inner.write_direct_at(buf, offset))
    }

    fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<()> {
        // One call, so that it counts once and can be torn anywhere.
        let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        self.write_at(&whole, offset)
    }

    fn sync_data(&self) -> Result<()> {
        self.faulty_sync(|| self.inner.sync_data())
    }

    fn sync_all(&self) -> Result<()> {
        self.faulty_sync(|| self.inner.sync_all())
    }

    fn len(&self) -> Result<u64> {
        self.strike(Op::Stat, 0, 0)?;
        self.inner.len()
    }

    fn is_device(&self) -> Result<bool> {
        self.inner.is_device()
    }

    fn is_in_place(&self) -> Result<bool> {
        self.strike(Op::Stat, 0, 0)?;
        self.inner.is_in_place()
    }

    fn named_inode(&self) -> Result<Option<u64>> {
        self.inner.named_inode()
    }

    fn is_read_only(&self) -> Result<bool> {
        self.inner.is_read_only()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.strike(Op::SetLen, 0, len)?;
        self.inner.set_len(len)
    }

    fn zero_fill(&self, offset: u64, len: u64) -> Result<()> {
        match self.strike(Op::ZeroFill, offset, len)? {
            Some(Effect::Torn { sectors, silent }) => {
                let done = len.min((sectors * SECTOR_BYTES) as u64);
                self.inner.zero_fill(offset, done)?;
                if silent {
                    Ok(())
                } else {
                    Err(Error::medium(Op::ZeroFill, self.path()))
                }
            }
            _ => self.inner.zero_fill(offset, len),
        }
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.strike(Op::Reserve, offset, len)?;
        self.inner.reserve(offset, len)
    }

    fn give_back(&self, offset: u64, len: u64) -> Result<()> {
        self.strike(Op::GiveBack, offset, len)?;
        self.inner.give_back(offset, len)
    }

    fn will_need(&self, offset: u64, len: u64) {
        self.inner.will_need(offset, len);
    }

    fn drop_cache(&self, offset: u64, len: u64) -> Result<()> {
        self.strike(Op::Stat, offset, len)?;
        self.inner.drop_cache(offset, len)
    }

    fn lose_unsynced(&self) {
        self.inner.lose_unsynced();
    }
}
