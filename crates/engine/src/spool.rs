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
/// The same again: one rotten block must not cost the spool.
const COPY: &str = "spool.copy";
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
        let id = match Self::find(disk, dir)? {
            Some(id) => id,
            None => Self::make(disk, dir)?,
        };
        Self::keep(disk, dir, &id);
        Ok(Self {
            dir: dir.to_path_buf(),
            id,
            _lock: Some(lock),
        })
    }

    /// Opens an existing spool without the lock, to look only.
    pub(crate) fn open_read_only(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Self, Error> {
        let Some(id) = Self::find(disk, dir)? else {
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

    /// The identity, from its copy when the file itself is gone or damaged.
    fn find(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Option<[u8; 16]>, Error> {
        let found = Self::read(disk, dir, IDENTITY);
        if matches!(found, Ok(Some(_))) {
            return found;
        }
        match Self::read(disk, dir, COPY) {
            Ok(Some(id)) => Ok(Some(id)),
            _ => found,
        }
    }

    /// Sees to it that both files say this.  A disk that refuses does not keep the spool from being used.
    fn keep(disk: &Arc<dyn Disk>, dir: &Path, id: &[u8; 16]) {
        for name in [IDENTITY, COPY] {
            let path = dir.join(name);
            match Self::read(disk, dir, name) {
                Ok(Some(said)) if said == *id => continue,
                // A spool of an earlier version has no copy.
                Ok(None) if name == COPY => {}
                Ok(_) => {
                    tracing::warn!(path = %path.display(), "it is missing or another spool's; it is written again")
                }
                Err(error) => tracing::warn!(%error, "it is written again from its copy"),
            }
            if let Err(error) = newsreel_host::replace_file(disk.as_ref(), &path, &print(id)) {
                tracing::warn!(%error, "the spool's identity is in one file only");
            }
        }
    }

    fn read(disk: &Arc<dyn Disk>, dir: &Path, name: &str) -> Result<Option<[u8; 16]>, Error> {
        let path = dir.join(name);
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

pub(crate) fn parse(bytes: &[u8]) -> Result<[u8; 16], String> {
    if bytes.len() != IDENTITY_OCTETS || !bytes.starts_with(MAGIC) {
        return Err(format!(
            "it does not look like one, and there is no good {COPY} beside it; restore either from a copy"
        ));
    }
    let (body, crc) = bytes.split_at(IDENTITY_OCTETS - 4);
    if crc32c::crc32c(body).to_le_bytes() != crc {
        return Err(format!(
            "its checksum is wrong, and there is no good {COPY} beside it; restore either from a copy"
        ));
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
    use newsreel_host::{MemoryDisk, OpenMode};

    use super::*;

    /// A way to damage a file.
    type Harm = fn(&dyn Disk, &Path);

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
    fn either_of_the_two_files_is_enough_and_mends_the_other() {
        let dir = Path::new("/spool");
        let damage: [Harm; 3] = [
            |disk, path| disk.remove(path).unwrap(),
            |disk, path| {
                disk.open(path, OpenMode::ReadWrite)
                    .unwrap()
                    .set_len(0)
                    .unwrap()
            },
            |disk, path| {
                let file = disk.open(path, OpenMode::ReadWrite).unwrap();
                file.write_at(b"rot", 14).unwrap();
            },
        ];
        for (name, harm) in [IDENTITY, COPY]
            .iter()
            .flat_map(|name| damage.map(|harm| (name, harm)))
        {
            let disk = disk();
            let id = Spool::open(&disk, dir).unwrap().id;
            harm(disk.as_ref(), &dir.join(name));
            assert_eq!(Spool::open_read_only(&disk, dir).unwrap().id, id, "{name}");
            assert_eq!(Spool::open(&disk, dir).unwrap().id, id, "{name}");
            for name in [IDENTITY, COPY] {
                let bytes = read_whole(disk.as_ref(), &dir.join(name), 4096).unwrap();
                assert_eq!(parse(&bytes), Ok(id), "{name} is whole again");
            }
        }
        let disk = disk();
        drop(Spool::open(&disk, dir).unwrap());
        [IDENTITY, COPY]
            .iter()
            .for_each(|name| damage[2](disk.as_ref(), &dir.join(name)));
        let error = Spool::open(&disk, dir).unwrap_err().to_string();
        assert!(error.contains("restore either"), "{error}");
    }

    #[test]
    fn a_directory_with_other_things_is_refused() {
        let disk = disk();
        let dir = Path::new("/home");
        disk.create_dir_all(dir).unwrap();
        disk.open(&dir.join("thesis.txt"), OpenMode::CreateNew)
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
