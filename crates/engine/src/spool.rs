//! The spool directory: its identity, its lock, where everything in it lies.
//!
//! A spool has one UUID, made with it and written into every file in it; two servers never share
//! one (the lock), and a file of another spool is never taken for ours.
//! Layout: `docs/formats/spool.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, Error as HostError, ErrorKind, Lock, random_bytes, read_whole};

use crate::error::Error;

/// The file that makes a directory a spool.
const IDENTITY: &str = "spool.newsreel";
/// The lock a running server (or an offline writer) holds.
const LOCK: &str = "lock";

const MAGIC: &[u8; 8] = b"NRSPOOL\0";
const VERSION: u32 = 1;
/// Magic 8, version 4, UUID 16, crc32c 4.
const IDENTITY_OCTETS: usize = 32;

/// A spool's paths and identity.
#[derive(Debug)]
pub(crate) struct Spool {
    dir: PathBuf,
    /// Its UUID.
    pub(crate) id: [u8; 16],
    /// Held while we may write.
    _lock: Option<Box<dyn Lock>>,
}

impl Spool {
    /// Takes the lock and opens the spool, making it when the directory is new or empty.
    pub(crate) fn open(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Self, Error> {
        disk.create_dir_all(dir)?;
        let lock = disk.lock(&dir.join(LOCK)).map_err(|error| match error {
            HostError::Locked { pid, .. } => Error::Locked {
                path: dir.to_path_buf(),
                pid,
            },
            other => Error::Host(other),
        })?;
        let id = match Self::read(disk, dir)? {
            Some(id) => id,
            None => Self::make(disk, dir)?,
        };
        Ok(Self {
            dir: dir.to_path_buf(),
            id,
            _lock: Some(lock),
        })
    }

    /// Opens an existing spool without the lock, to look only.
    pub(crate) fn open_read_only(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Self, Error> {
        let Some(id) = Self::read(disk, dir)? else {
            return Err(Error::NotASpool {
                path: dir.to_path_buf(),
                why: format!("it has no {IDENTITY}; `newsreel serve --spool DIR` makes a spool"),
            });
        };
        Ok(Self {
            dir: dir.to_path_buf(),
            id,
            _lock: None,
        })
    }

    /// The log's directory.
    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// The views' directory.
    pub(crate) fn index(&self) -> PathBuf {
        self.dir.join("index")
    }

    fn read(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Option<[u8; 16]>, Error> {
        let path = dir.join(IDENTITY);
        let bytes = match read_whole(disk.as_ref(), &path, 4096) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        parse(&bytes)
            .map(Some)
            .map_err(|why| Error::NotASpool { path, why })
    }

    fn make(disk: &Arc<dyn Disk>, dir: &Path) -> Result<[u8; 16], Error> {
        let foreign: Vec<String> = disk
            .list(dir)?
            .into_iter()
            .map(|entry| entry.name)
            .filter(|name| name != LOCK && !name.starts_with('.'))
            .collect();
        if let Some(name) = foreign.first() {
            return Err(Error::NotASpool {
                path: dir.to_path_buf(),
                why: format!(
                    "it has no {IDENTITY} but holds {name:?} and more; give an empty directory"
                ),
            });
        }
        let id: [u8; 16] = random_bytes()?;
        newsreel_host::replace_file(disk.as_ref(), &dir.join(IDENTITY), &print(&id))?;
        Ok(id)
    }
}

fn print(id: &[u8; 16]) -> Vec<u8> {
    let mut out = Vec::with_capacity(IDENTITY_OCTETS);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(id);
    out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
    out
}

fn parse(bytes: &[u8]) -> Result<[u8; 16], String> {
    if bytes.len() != IDENTITY_OCTETS || !bytes.starts_with(MAGIC) {
        return Err("it does not look like one".to_owned());
    }
    let (body, crc) = bytes.split_at(IDENTITY_OCTETS - 4);
    if crc32c::crc32c(body).to_le_bytes() != crc {
        return Err("its checksum is wrong; restore it from a copy".to_owned());
    }
    let mut version = [0; 4];
    version.copy_from_slice(&body[8..12]);
    let version = u32::from_le_bytes(version);
    if version != VERSION {
        return Err(format!(
            "version {version}, this newsreel knows {VERSION}; use a newer one"
        ));
    }
    let mut id = [0; 16];
    id.copy_from_slice(&body[12..28]);
    Ok(id)
}

#[cfg(test)]
mod tests {
    use newsreel_host::MemoryDisk;

    use super::*;

    fn disk() -> Arc<dyn Disk> {
        Arc::new(MemoryDisk::new())
    }

    #[test]
    fn a_spool_keeps_its_identity_and_its_lock() {
        let disk = disk();
        let dir = Path::new("/spool");
        let first = Spool::open(&disk, dir).unwrap();
        let error = Spool::open(&disk, dir).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
        let id = first.id;
        drop(first);
        assert_eq!(Spool::open(&disk, dir).unwrap().id, id);
        assert_eq!(Spool::open_read_only(&disk, dir).unwrap().id, id);
    }

    #[test]
    fn a_directory_with_other_things_is_refused() {
        let disk = disk();
        let dir = Path::new("/home");
        disk.create_dir_all(dir).unwrap();
        disk.open(&dir.join("thesis.txt"), newsreel_host::OpenMode::CreateNew)
            .unwrap();
        let error = Spool::open(&disk, dir).unwrap_err().to_string();
        assert!(error.contains("thesis.txt"), "{error}");
    }

    #[test]
    fn a_damaged_or_newer_identity_is_refused() {
        let good = print(&[5; 16]);
        assert_eq!(parse(&good), Ok([5; 16]));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(parse(&bad).is_err(), "octet {at}");
        }
    }
}
