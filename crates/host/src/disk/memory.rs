//! A disk in memory.
//!
//! Files are tables of 4 KiB pages, pages of zeros cost nothing.  It behaves as the real disk does in every result
//! and error, without its timing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::{DirEntry, Disk, File, Lock, OpenMode};
use crate::error::{Error, Op, Result};

const PAGE_BYTES: usize = 4096;

type Page = Arc<[u8; PAGE_BYTES]>;

/// A disk in memory; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk {
    names: Arc<Mutex<Names>>,
}

#[derive(Debug, Default)]
struct Names {
    files: BTreeMap<PathBuf, Arc<RwLock<Content>>>,
    dirs: BTreeSet<PathBuf>,
    locked: BTreeSet<PathBuf>,
}

#[derive(Debug, Default)]
struct Content {
    pages: BTreeMap<u64, Page>,
    len: u64,
}

#[derive(Debug)]
struct MemoryFile {
    content: Arc<RwLock<Content>>,
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

impl MemoryDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Names {
    fn has_dir(&self, dir: &Path) -> bool {
        let top = dir.as_os_str().is_empty() || dir == Path::new("/") || dir == Path::new(".");
        top || self.dirs.contains(dir)
    }

    fn check_parent(&self, op: Op, path: &Path) -> Result<()> {
        if path.parent().is_none_or(|dir| self.has_dir(dir)) {
            return Ok(());
        }
        Err(Error::NotFound {
            op,
            path: path.to_path_buf(),
        })
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut names = self.names.lock();
        let old = names.files.get(path).cloned();
        let content = match (mode, old) {
            (OpenMode::CreateNew, Some(_)) => {
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
            (OpenMode::CreateNew | OpenMode::CreateOrOpen, None) => {
                names.check_parent(Op::Open, path)?;
                let content = Arc::<RwLock<Content>>::default();
                names.files.insert(path.to_path_buf(), Arc::clone(&content));
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
        names.check_parent(Op::Rename, to)?;
        let Some(content) = names.files.remove(from) else {
            return Err(Error::NotFound {
                op: Op::Rename,
                path: from.to_path_buf(),
            });
        };
        names.files.insert(to.to_path_buf(), content);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        match self.names.lock().files.remove(path) {
            Some(_) => Ok(()),
            None => Err(Error::NotFound {
                op: Op::Remove,
                path: path.to_path_buf(),
            }),
        }
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut names = self.names.lock();
        for dir in path.ancestors() {
            if names.files.contains_key(dir) {
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
        let files = names.files.iter().filter_map(|(path, content)| {
            let name = name_in(path)?;
            Some(DirEntry {
                name,
                len: content.read().len,
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
        Ok(names.files.contains_key(path) || names.has_dir(path))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        if self.names.lock().has_dir(dir) {
            return Ok(());
        }
        Err(Error::NotFound {
            op: Op::SyncDir,
            path: dir.to_path_buf(),
        })
    }

    fn free_bytes(&self, _path: &Path) -> Result<u64> {
        Ok(u64::MAX / 2)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        let mut names = self.names.lock();
        names.check_parent(Op::Lock, path)?;
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

/// Splits a range of the file at page boundaries: (page, from, to) with `from..to` inside the page.
fn spans(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = offset;
    let end = offset + len as u64;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let page = at / PAGE_BYTES as u64;
        let from = (at % PAGE_BYTES as u64) as usize;
        let to = PAGE_BYTES.min(from + usize::try_from(end - at).unwrap_or(PAGE_BYTES));
        at += (to - from) as u64;
        Some((page, from, to))
    })
}

impl Content {
    fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let left = self.len.saturating_sub(offset);
        let len = usize::try_from(left).map_or(buf.len(), |left| left.min(buf.len()));
        let mut done = 0;
        for (page, from, to) in spans(offset, len) {
            let Some(target) = buf.get_mut(done..done + (to - from)) else {
                break;
            };
            match self.pages.get(&page).and_then(|page| page.get(from..to)) {
                Some(source) => target.copy_from_slice(source),
                None => target.fill(0),
            }
            done += to - from;
        }
        done
    }

    fn write(&mut self, buf: &[u8], offset: u64) {
        let mut rest = buf;
        for (page, from, to) in spans(offset, buf.len()) {
            let (part, after) = rest.split_at(to - from);
            let page = self
                .pages
                .entry(page)
                .or_insert_with(|| Arc::new([0; PAGE_BYTES]));
            if let Some(target) = Arc::make_mut(page).get_mut(from..to) {
                target.copy_from_slice(part);
            }
            rest = after;
        }
        self.len = self.len.max(offset + buf.len() as u64);
    }

    fn zero(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        let whole = offset.div_ceil(PAGE_BYTES as u64)..end / PAGE_BYTES as u64;
        let gone: Vec<u64> = self.pages.range(whole).map(|(page, _)| *page).collect();
        for page in gone {
            self.pages.remove(&page);
        }
        for edge in [offset / PAGE_BYTES as u64, end / PAGE_BYTES as u64] {
            let start = edge * PAGE_BYTES as u64;
            let from = offset.saturating_sub(start).min(PAGE_BYTES as u64) as usize;
            let to = end.saturating_sub(start).min(PAGE_BYTES as u64) as usize;
            if let Some(page) = self.pages.get_mut(&edge)
                && let Some(target) = Arc::make_mut(page).get_mut(from..to)
            {
                target.fill(0);
            }
        }
        self.len = self.len.max(end);
    }

    fn set_len(&mut self, len: u64) {
        let old = self.len;
        if len < old {
            self.zero(len, old - len);
        }
        self.len = len;
    }
}

impl MemoryFile {
    fn check_writable(&self, op: Op) -> Result<()> {
        if self.writable {
            return Ok(());
        }
        let source = std::io::Error::other("the file was opened for reading");
        Err(Error::Io {
            op,
            path: self.path.clone(),
            source,
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
        self.check_writable(Op::Write)?;
        self.content.write().write(buf, offset);
        Ok(())
    }

    fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.check_writable(Op::Write)?;
        let mut content = self.content.write();
        let mut at = offset;
        for part in parts {
            content.write(part, at);
            at += part.len() as u64;
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.content.read().len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.check_writable(Op::SetLen)?;
        self.content.write().set_len(len);
        Ok(())
    }

    fn zero_fill(&self, offset: u64, len: u64) -> Result<()> {
        self.check_writable(Op::ZeroFill)?;
        self.content.write().zero(offset, len);
        Ok(())
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.check_writable(Op::Reserve)?;
        let mut content = self.content.write();
        content.len = content.len.max(offset + len);
        Ok(())
    }

    fn drop_cache(&self, _offset: u64, _len: u64) -> Result<()> {
        Ok(())
    }
}
