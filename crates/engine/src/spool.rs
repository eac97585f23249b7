//! The spool directory: its identity, its lock, where everything in it lies.
//!
//! A spool has one UUID, made with it and written into every file in it; two servers never share
//! one (the lock), and a file of another spool is never taken for ours.
//! Layout: `docs/formats/spool.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, Error as HostError, ErrorKind, Lock, random_bytes, read_whole};

use crate::control::keyring::KEYRING_FILE;
use crate::error::Error;

/// A directory that has it is a spool.
pub const SPOOL_FILE: &str = IDENTITY;
/// The file that makes a directory a spool.
const IDENTITY: &str = "spool.newsreel";
/// What a first start leaves of it that is killed before it has its name (`replace_file`).
const IDENTITY_BEGUN: &str = "spool.newsreel.new";
/// The same again: one rotten block must not cost the spool.
const COPY: &str = "spool.copy";
/// The lock a running server (or an offline writer) holds.
const LOCK: &str = "lock";
/// The users' file (`newsreel_users::FILE`), which may be there before the first start.
const USERS: &str = "users";

const MAGIC: &[u8; 8] = b"NRSPOOL\0";
const VERSION: u32 = 2;
/// Magic 8, version 4, UUID 16, hash key 32, crc32c 4; version 1 had no key.
const IDENTITY_OCTETS: usize = 64;
const IDENTITY_1_OCTETS: usize = 32;

/// What the files say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The spool's UUID.
    pub(crate) id: [u8; 16],
    /// The key of the message-id hash, which the log has, too.  `None`: the file is of version 1.
    pub(crate) key: Option<[u8; 32]>,
}

impl Identity {
    /// What was found first counts, unless it is the same without the key.
    fn or_first(self, first: Option<Self>) -> Self {
        match first {
            Some(first) if first.key.is_some() || first.id != self.id => first,
            _ => self,
        }
    }
}

/// Why a file does not say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// A later newsreel wrote it.
    Newer(u32),
    /// It is damaged.
    Damaged(&'static str),
}

impl Unreadable {
    fn at(&self, path: PathBuf) -> Error {
        let why = match self {
            Self::Newer(version) => {
                format!("version {version}, this newsreel knows {VERSION}; use a newer one")
            }
            Self::Damaged(what) => {
                format!("{what}, and there is no good {COPY} beside it; restore either from a copy")
            }
        };
        Error::NotASpool { path, why }
    }
}

/// A spool's paths and identity.
#[derive(Debug)]
pub(crate) struct Spool {
    dir: PathBuf,
    /// Its UUID.
    pub(crate) id: [u8; 16],
    /// The key of the message-id hash, as far as the identity tells it.
    pub(crate) key: Option<[u8; 32]>,
    /// Held while we may write: the lock's file, which names us, and the directory, which nobody can remove to be rid of it.
    _locks: Vec<Box<dyn Lock>>,
}

impl Spool {
    /// Takes the lock and opens the spool, making it when the directory is new or empty.
    pub(crate) fn open(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Self, Error> {
        disk.create_dir_all(dir)?;
        // Before the lock's file is made: what is not ours is left as it is.  A spool's identity is the first that is made.
        Self::look(disk, dir)?;
        let locks = [dir.join(LOCK), dir.to_path_buf()]
            .iter()
            .map(|path| disk.lock(path))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| match error {
                HostError::Locked { pid, .. } => Error::Locked {
                    path: dir.to_path_buf(),
                    pid,
                },
                other => Error::Host(other),
            })?;
        let identity = match Self::find(disk, dir)? {
            Some(identity) => identity,
            None => Self::make(disk, dir)?,
        };
        Self::keep(disk, dir, &identity);
        Ok(Self {
            dir: dir.to_path_buf(),
            id: identity.id,
            key: identity.key,
            _locks: locks,
        })
    }

    /// The spool that is there, without the lock, to look only; `None`: one can be made there.
    pub(crate) fn look(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Option<Self>, Error> {
        let foreign = match disk.exists(dir)? {
            true => Self::foreign(disk, dir)?,
            false => None,
        };
        let Some(name) = foreign else { return Ok(None) };
        match Self::find(disk, dir)? {
            Some(identity) => Ok(Some(Self::unlocked(dir, &identity))),
            None => Err(Self::not_empty(dir, &name)),
        }
    }

    fn unlocked(dir: &Path, identity: &Identity) -> Self {
        Self {
            dir: dir.to_path_buf(),
            id: identity.id,
            key: identity.key,
            _locks: Vec::new(),
        }
    }

    /// Opens an existing spool without the lock, to look only.
    pub(crate) fn open_read_only(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Self, Error> {
        let Some(identity) = Self::find(disk, dir)? else {
            return Err(Error::NotASpool {
                path: dir.to_path_buf(),
                why: format!("it has no {IDENTITY}; `newsreel serve --spool DIR` makes a spool"),
            });
        };
        Ok(Self::unlocked(dir, &identity))
    }

    /// What is wrong with either of the two files that say which spool this is.
    pub(crate) fn damage(&self, disk: &Arc<dyn Disk>) -> Vec<String> {
        let mut damage = Vec::new();
        for name in [IDENTITY, COPY] {
            let why = match Self::read(disk, &self.dir, name) {
                Ok(Ok(said)) if said.id == self.id => continue,
                Ok(Ok(_)) => "it is another spool's".to_owned(),
                Ok(Err(Unreadable::Newer(version))) => format!("it is of version {version}"),
                Ok(Err(Unreadable::Damaged(why))) => why.to_owned(),
                Err(error) => error.to_string(),
            };
            damage.push(format!("{}: {why}", self.dir.join(name).display()));
        }
        damage
    }

    /// Whether somebody may write now.  Where directories cannot be locked, whoever the lock's file names.
    pub(crate) fn is_held(disk: &Arc<dyn Disk>, dir: &Path) -> bool {
        let is_locked = matches!(disk.lock(dir), Err(HostError::Locked { .. }));
        is_locked || newsreel_host::process::lock_holder(&dir.join(LOCK)).is_some()
    }

    /// Sees to it that the identity has this key, which the log told.
    pub(crate) fn keep_key(&mut self, disk: &Arc<dyn Disk>, key: [u8; 32]) {
        if self.key != Some(key) {
            self.key = Some(key);
            let (id, key) = (self.id, self.key);
            Self::keep(disk, &self.dir, &Identity { id, key });
        }
    }

    /// The log's directory.
    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// The views' directory.
    pub(crate) fn index(&self) -> PathBuf {
        self.dir.join("index")
    }

    /// The directory of the buffers that lie in the spool, and of their register.
    pub(crate) fn buffers(&self) -> PathBuf {
        self.dir.join("buffers")
    }

    /// The identity, from its copy when the file itself is gone, damaged or without the key.  What a later newsreel wrote is not passed
    /// over for an older copy.
    fn find(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Option<Identity>, Error> {
        let mut first_error = None;
        let mut found = None;
        for name in [IDENTITY, COPY] {
            match Self::read(disk, dir, name) {
                Ok(Ok(identity)) => found = Some(identity.or_first(found)),
                Ok(Err(why @ Unreadable::Newer(_))) => return Err(why.at(dir.join(name))),
                Ok(Err(why)) => first_error = first_error.or(Some(why.at(dir.join(name)))),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => first_error = first_error.or(Some(error.into())),
            }
        }
        match (found, first_error) {
            (None, Some(error)) => Err(error),
            (found, _) => Ok(found),
        }
    }

    /// Sees to it that both files say this.  A disk that refuses does not keep the spool from being used.
    fn keep(disk: &Arc<dyn Disk>, dir: &Path, identity: &Identity) {
        for name in [IDENTITY, COPY] {
            let path = dir.join(name);
            match Self::read(disk, dir, name) {
                Ok(Ok(said)) if said == *identity => continue,
                // The key is added to what an earlier version wrote.
                Ok(Ok(said)) if said.id == identity.id => {}
                Ok(_) => {
                    tracing::warn!(path = %path.display(), "it is damaged or another spool's; it is written again");
                }
                Err(error) if error.kind() == ErrorKind::NotFound && name == COPY => {}
                Err(error) => tracing::warn!(%error, "it is written again from its copy"),
            }
            let octets = print(identity);
            if let Err(error) = newsreel_host::replace_file(disk.as_ref(), &path, &octets) {
                tracing::warn!(%error, "the spool's identity is in one file only");
            }
        }
    }

    fn read(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        name: &str,
    ) -> newsreel_host::Result<Result<Identity, Unreadable>> {
        Ok(parse(&read_whole(disk.as_ref(), &dir.join(name), 4096)?))
    }

    /// Something in the directory that a new spool would not have: it has the lock, and an identity that is not whole yet;
    /// where a file system is mounted, what that has; and users and keys that were added before the first start.
    fn foreign(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Option<String>, Error> {
        let ours = [LOCK, IDENTITY_BEGUN, "lost+found", USERS, KEYRING_FILE];
        let is_ours = |name: &str| ours.contains(&name.strip_suffix(".lock").unwrap_or(name));
        let mut names = disk.list(dir)?.into_iter().map(|entry| entry.name);
        Ok(names.find(|name| !is_ours(name) && !name.starts_with('.')))
    }

    fn not_empty(dir: &Path, name: &str) -> Error {
        Error::NotASpool {
            path: dir.to_path_buf(),
            why: format!(
                "it has no {IDENTITY} but holds {name:?} and more; give an empty directory"
            ),
        }
    }

    fn make(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Identity, Error> {
        if let Some(name) = Self::foreign(disk, dir)? {
            return Err(Self::not_empty(dir, &name));
        }
        let identity = Identity {
            id: random_bytes()?,
            key: Some(random_bytes()?),
        };
        let octets = print(&identity);
        newsreel_host::replace_file(disk.as_ref(), &dir.join(IDENTITY), &octets)?;
        Ok(identity)
    }
}

fn print(identity: &Identity) -> Vec<u8> {
    let version: u32 = if identity.key.is_some() { VERSION } else { 1 };
    let mut out = Vec::with_capacity(IDENTITY_OCTETS);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&identity.id);
    out.extend_from_slice(identity.key.as_ref().map_or(&[][..], |key| key));
    out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
    out
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Identity, Unreadable> {
    let whole = bytes.split_last_chunk::<4>();
    let Some((body, crc)) = whole.filter(|(body, _)| body.len() >= 12 && body.starts_with(MAGIC))
    else {
        return Err(Unreadable::Damaged("it does not look like one"));
    };
    if crc32c::crc32c(body).to_le_bytes() != *crc {
        return Err(Unreadable::Damaged("its checksum is wrong"));
    }
    let mut version = [0; 4];
    version.copy_from_slice(&body[8..12]);
    let version = u32::from_le_bytes(version);
    let octets = match version {
        1 => IDENTITY_1_OCTETS,
        VERSION => IDENTITY_OCTETS,
        _ => return Err(Unreadable::Newer(version)),
    };
    if bytes.len() != octets {
        return Err(Unreadable::Damaged("it has another length than it should"));
    }
    let (id, key) = body[12..].split_at(16);
    Ok(Identity {
        id: id.try_into().unwrap_or_default(),
        key: key.try_into().ok(),
    })
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

    /// A lock is often taken for what a dead server left, and removed.
    #[test]
    fn a_lock_that_was_removed_still_locks() {
        let disk: Arc<dyn Disk> = Arc::new(newsreel_host::RealDisk);
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::open(&disk, folder.path()).unwrap();
        disk.remove(&folder.path().join(LOCK)).unwrap();
        let error = Spool::open(&disk, folder.path()).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
        drop(spool);
        Spool::open(&disk, folder.path()).unwrap();
    }

    #[test]
    fn a_first_start_that_was_killed_is_begun_again() {
        let disk = disk();
        let dir = Path::new("/spool");
        disk.create_dir_all(&dir.join("lost+found")).unwrap();
        let begun = dir.join(format!("{IDENTITY}.new"));
        disk.open(&begun, OpenMode::CreateNew).unwrap();
        disk.open(&dir.join(LOCK), OpenMode::CreateNew).unwrap();
        let id = Spool::open(&disk, dir).unwrap().id;
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
            let looked = Spool::open_read_only(&disk, dir).unwrap();
            assert_eq!(looked.id, id, "{name}");
            let damage = looked.damage(&disk);
            let is_told = matches!(&damage[..], [one] if one.contains(name));
            assert!(is_told, "{damage:?}");
            assert_eq!(Spool::open(&disk, dir).unwrap().id, id, "{name}");
            assert_eq!(looked.damage(&disk), Vec::<String>::new());
            for name in [IDENTITY, COPY] {
                let bytes = read_whole(disk.as_ref(), &dir.join(name), 4096).unwrap();
                let said = parse(&bytes).map(|identity| identity.id);
                assert_eq!(said, Ok(id), "{name} is whole again");
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
        for key in [None, Some([7; 32])] {
            let identity = Identity { id: [5; 16], key };
            let good = print(&identity);
            assert_eq!(parse(&good), Ok(identity));
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= 1;
                assert!(parse(&bad).is_err(), "octet {at}");
                assert!(parse(&good[..at]).is_err(), "cut at {at}");
            }
        }
        assert_eq!(parse(&newer()), Err(Unreadable::Newer(9)));
    }

    /// An identity of a later version, longer than ours.
    fn newer() -> Vec<u8> {
        let mut newer = MAGIC.to_vec();
        newer.extend_from_slice(&9u32.to_le_bytes());
        newer.extend_from_slice(&[3; 100]);
        newer.extend_from_slice(&crc32c::crc32c(&newer).to_le_bytes());
        newer
    }

    /// An older copy beside it, as after a new version had written one of the two, does not make it an old spool.
    #[test]
    fn a_newer_identity_is_not_passed_over_for_an_older_copy() {
        let dir = Path::new("/spool");
        for name in [IDENTITY, COPY] {
            let disk = disk();
            drop(Spool::open(&disk, dir).unwrap());
            newsreel_host::replace_file(disk.as_ref(), &dir.join(name), &newer()).unwrap();
            for error in [
                Spool::open(&disk, dir).unwrap_err(),
                Spool::open_read_only(&disk, dir).unwrap_err(),
            ] {
                let error = error.to_string();
                assert!(
                    error.contains("version 9") && error.contains(name),
                    "{error}"
                );
            }
            let kept = read_whole(disk.as_ref(), &dir.join(name), 4096).unwrap();
            assert_eq!(kept, newer());
        }
    }

    #[test]
    fn of_two_files_the_one_with_the_key_is_believed() {
        let dir = Path::new("/spool");
        for without in [IDENTITY, COPY] {
            let disk = disk();
            let key = Spool::open(&disk, dir).unwrap().key;
            let id = Spool::open_read_only(&disk, dir).unwrap().id;
            let old = print(&Identity { id, key: None });
            newsreel_host::replace_file(disk.as_ref(), &dir.join(without), &old).unwrap();
            let looked = Spool::open_read_only(&disk, dir).unwrap();
            assert_eq!((looked.id, looked.key), (id, key), "{without}");
            assert_eq!(Spool::open(&disk, dir).unwrap().key, key, "{without}");
            let said = Spool::read(&disk, dir, without).unwrap().unwrap();
            assert_eq!(said.key, key, "{without} has it again");
        }
    }

    #[test]
    fn a_key_that_the_log_told_is_added_to_both_files() {
        let dir = Path::new("/spool");
        let disk = disk();
        disk.create_dir_all(dir).unwrap();
        let old = Identity {
            id: [5; 16],
            key: None,
        };
        newsreel_host::replace_file(disk.as_ref(), &dir.join(IDENTITY), &print(&old)).unwrap();
        let mut spool = Spool::open(&disk, dir).unwrap();
        assert_eq!((spool.id, spool.key), ([5; 16], None));
        spool.keep_key(&disk, [8; 32]);
        drop(spool);
        for name in [IDENTITY, COPY] {
            let said = Spool::read(&disk, dir, name).unwrap().unwrap();
            assert_eq!(said.key, Some([8; 32]), "{name}");
        }
    }
}
