//! A disk in memory with a power switch.
//!
//! It behaves as the real disk in every result and error, and keeps apart what is durable: [`MemoryDisk::crash`]
//! makes the disk that a power cut at this moment would leave.  Pages of zeros cost nothing.

mod content;
mod dice;
mod names;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::{DirEntry, Disk, File, Lock, OpenMode};
use crate::error::{Error, Op, Result};
use content::{Content, NoRoom, Room};
use dice::Dice;
use names::{Files, Names, Shared};

/// A disk in memory; clones share it.
#[derive(Debug, Clone)]
pub struct MemoryDisk {
    names: Arc<Mutex<Names>>,
    room: Arc<Room>,
}

#[derive(Debug)]
struct MemoryFile {
    content: Shared,
    path: PathBuf,
    writable: bool,
}

#[derive(Debug)]
struct MemoryLock {
    names: Arc<Mutex<Names>>,
    path: PathBuf,
}

impl Lock for MemoryLock {
    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.names.lock().locked.remove(&self.path);
    }
}

impl Default for MemoryDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryDisk {
    /// An empty disk of practically no limit.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(u64::MAX / 2)
    }

    /// An empty disk that is full when its files are `bytes` long in all.
    #[must_use]
    pub fn with_capacity(bytes: u64) -> Self {
        Self {
            names: Arc::default(),
            room: Arc::new(Room::new(bytes)),
        }
    }

    /// The disk that a power cut now would leave: of everything not synced some survives, by `seed`.  This disk is
    /// not changed, so that many outcomes of one moment can be looked at.
    #[must_use]
    pub fn crash(&self, seed: u64) -> Self {
        self.crashed(Dice::new(seed), false)
    }

    /// The disk that a power cut now would leave in the worst case: nothing that was not synced is there.
    #[must_use]
    pub fn crash_losing_all(&self) -> Self {
        self.crashed(Dice::new(0), true)
    }

    /// Inverts one bit on the medium, unseen by any bookkeeping.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> Result<()> {
        let content = self.content(path)?;
        content
            .write()
            .corrupt(|octet| *octet ^= 1 << (bit % 8), offset);
        Ok(())
    }

    /// Overwrites octets on the medium, unseen by any bookkeeping.
    pub fn corrupt(&self, path: &Path, offset: u64, octets: &[u8]) -> Result<()> {
        let content = self.content(path)?;
        let mut content = content.write();
        for (at, new) in (offset..).zip(octets) {
            content.corrupt(|octet| *octet = *new, at);
        }
        Ok(())
    }

    /// How many sectors of a file a power cut could take.
    pub fn unsynced_sectors(&self, path: &Path) -> Result<usize> {
        Ok(self.content(path)?.read().unsynced())
    }

    fn content(&self, path: &Path) -> Result<Shared> {
        let known = self.names.lock().files().get(path).cloned();
        known.ok_or_else(|| Error::NotFound {
            op: Op::Open,
            path: path.to_path_buf(),
        })
    }

    fn crashed(&self, mut dice: Dice, worst: bool) -> Self {
        let room = Arc::new(Room::new(self.room.limit()));
        let names = self.names.lock();
        let left = names.crashed(&mut dice, worst);
        // All at one moment: nobody writes to one of them, because another was synced, while the others are looked at.
        let once = |content| (Arc::as_ptr(content), content);
        let contents: BTreeMap<_, _> = left.values().map(once).collect();
        let held = contents
            .into_iter()
            .map(|(of, content)| (of, content.read()));
        let held: BTreeMap<_, _> = held.collect();
        let mut made: BTreeMap<_, Shared> = BTreeMap::new();
        let after = |(path, content): (&PathBuf, &Shared)| {
            // A file of several names is one file.
            let made = made.entry(Arc::as_ptr(content)).or_insert_with(|| {
                let after = held[&Arc::as_ptr(content)].crashed(&mut dice, &room, worst);
                Arc::new(RwLock::new(after))
            });
            (path.clone(), Arc::clone(made))
        };
        let files: Files = left.iter().map(after).collect();
        drop(held);
        let names = Names::from_medium(files, names.dirs.clone());
        Self {
            names: Arc::new(Mutex::new(names)),
            room,
        }
    }
}

/// The directory of `path` must be there.
fn check_parent(names: &Names, op: Op, path: &Path) -> Result<()> {
    if path.parent().is_none_or(|dir| names.has_dir(dir)) {
        return Ok(());
    }
    Err(Error::NotFound {
        op,
        path: path.to_path_buf(),
    })
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut names = self.names.lock();
        let old = names.files().get(path).cloned();
        let content = match (mode, old) {
            (OpenMode::CreateNew | OpenMode::CreateForAll, Some(_)) => {
                return Err(Error::Exists {
                    op: Op::Open,
                    path: path.to_path_buf(),
                });
            }
            (_, Some(content)) => content,
            (OpenMode::Read | OpenMode::ReadWrite, None) => {
                return Err(Error::NotFound {
                    op: Op::Open,
                    path: path.to_path_buf(),
                });
            }
            (OpenMode::CreateNew | OpenMode::CreateForAll | OpenMode::CreateOrOpen, None) => {
                check_parent(&names, Op::Open, path)?;
                let content = Arc::new(RwLock::new(Content::new(Arc::clone(&self.room))));
                names.create(path, Arc::clone(&content));
                content
            }
        };
        let writable = mode != OpenMode::Read;
        Ok(Arc::new(MemoryFile {
            content,
            path: path.to_path_buf(),
            writable,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut names = self.names.lock();
        check_parent(&names, Op::Rename, to)?;
        if names.rename(from, to) {
            return Ok(());
        }
        Err(Error::NotFound {
            op: Op::Rename,
            path: from.to_path_buf(),
        })
    }

    fn remove(&self, path: &Path) -> Result<()> {
        if self.names.lock().remove(path) {
            return Ok(());
        }
        Err(Error::NotFound {
            op: Op::Remove,
            path: path.to_path_buf(),
        })
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let (op, path) = (Op::Link, to.to_path_buf());
        let mut names = self.names.lock();
        check_parent(&names, op, to)?;
        if names.files().contains_key(to) || names.has_dir(to) {
            return Err(Error::Exists { op, path });
        }
        match names.files().get(from).cloned() {
            Some(content) => names.create(to, content),
            None => return Err(Error::NotFound { op, path }),
        }
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut names = self.names.lock();
        for dir in path.ancestors() {
            if names.files().contains_key(dir) {
                return Err(Error::Exists {
                    op: Op::CreateDir,
                    path: dir.to_path_buf(),
                });
            }
            names.dirs.insert(dir.to_path_buf());
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        let names = self.names.lock();
        if !names.has_dir(dir) {
            return Err(Error::NotFound {
                op: Op::List,
                path: dir.to_path_buf(),
            });
        }
        let name_in = |path: &Path| -> Option<String> {
            let own = path.parent() == Some(dir);
            path.file_name()
                .filter(|_| own)?
                .to_str()
                .map(str::to_owned)
        };
        let files = names.files().iter().filter_map(|(path, content)| {
            let name = name_in(path)?;
            Some(DirEntry {
                name,
                len: content.read().len(),
                is_dir: false,
            })
        });
        let dirs = names.dirs.iter().filter_map(|path| {
            let name = name_in(path)?;
            Some(DirEntry {
                name,
                len: 0,
                is_dir: true,
            })
        });
        let mut entries: Vec<DirEntry> = files.chain(dirs).collect();
        entries.sort_unstable();
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let names = self.names.lock();
        Ok(names.files().contains_key(path) || names.has_dir(path))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let mut names = self.names.lock();
        if !names.has_dir(dir) {
            return Err(Error::NotFound {
                op: Op::SyncDir,
                path: dir.to_path_buf(),
            });
        }
        names.sync_dir(dir);
        Ok(())
    }

    fn sync_file_system(&self, dir: &Path) -> Result<()> {
        let mut names = self.names.lock();
        if !names.has_dir(dir) {
            return Err(Error::NotFound {
                op: Op::SyncDir,
                path: dir.to_path_buf(),
            });
        }
        names
            .files()
            .values()
            .for_each(|content| content.write().sync());
        names.sync_all();
        Ok(())
    }

    fn lose_unsynced(&self) {
        let names = self.names.lock();
        let files = names.files().values();
        files.for_each(|content| content.write().lose_unsynced());
    }

    fn free_bytes(&self, _path: &Path) -> Result<u64> {
        Ok(self.room.free())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        let mut names = self.names.lock();
        check_parent(&names, Op::Lock, path)?;
        if !names.locked.insert(path.to_path_buf()) {
            let pid = Some(std::process::id());
            return Err(Error::Locked {
                path: path.to_path_buf(),
                pid,
            });
        }
        Ok(Box::new(MemoryLock {
            names: Arc::clone(&self.names),
            path: path.to_path_buf(),
        }))
    }
}

impl MemoryFile {
    fn change(
        &self,
        op: Op,
        change: impl FnOnce(&mut Content) -> std::result::Result<(), NoRoom>,
    ) -> Result<()> {
        if !self.writable {
            let source = std::io::Error::other("the file was opened for reading");
            return Err(Error::Io {
                op,
                path: self.path.clone(),
                source,
            });
        }
        change(&mut self.content.write()).map_err(|NoRoom| Error::Full {
            op,
            path: self.path.clone(),
        })
    }
}

impl File for MemoryFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        Ok(self.content.read().read(buf, offset))
    }

    fn read_cached_at(&self, buf: &mut [u8], offset: u64) -> Result<Option<usize>> {
        self.read_at(buf, offset).map(Some)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.change(Op::Write, |content| content.write(buf, offset))
    }

    fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.change(Op::Write, |content| {
            let mut at = offset;
            for part in parts {
                content.write(part, at)?;
                at += part.len() as u64;
            }
            Ok(())
        })
    }

    fn sync_data(&self) -> Result<()> {
        self.content.write().sync();
        Ok(())
    }

    fn sync_all(&self) -> Result<()> {
        self.sync_data()
    }

    fn len(&self) -> Result<u64> {
        Ok(self.content.read().len())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.change(Op::SetLen, |content| content.set_len(len))
    }

    fn zero_fill(&self, offset: u64, len: u64) -> Result<()> {
        self.change(Op::ZeroFill, |content| content.zero(offset, len))
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.change(Op::Reserve, |content| {
            content.grow(offset.saturating_add(len))
        })
    }

    fn give_back(&self, offset: u64, len: u64) -> Result<()> {
        self.change(Op::GiveBack, |content| content.zero(offset, len))
    }

    fn drop_cache(&self, offset: u64, len: u64) -> Result<()> {
        self.content.write().drop_cache(offset, len);
        Ok(())
    }

    fn lose_unsynced(&self) {
        self.content.write().lose_unsynced();
    }
}
