//! Asking and changing the file of users.

use std::path::PathBuf;
use std::sync::Arc;

use newsreel_host::{Disk, FileFacts, random_bytes, read_whole, replace_file};
use parking_lot::Mutex;

use crate::error::Error;
use crate::file::{self, Contents, FILE_OCTETS_MAX, User, is_name};
use crate::password;
use crate::scram::{self, ScramKeys};

/// The users of a spool.
#[derive(Debug, Clone)]
pub struct Users {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    keeps_scram: bool,
    kept: Arc<Mutex<Option<Kept>>>,
}

/// What the file had when it was read last: good as long as it is the same file, unchanged.
#[derive(Debug)]
struct Kept {
    facts: FileFacts,
    contents: Arc<Contents>,
}

/// What is changed of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A new user, with a password and groups.
    Add {
        /// The password.
        password: String,
        /// The groups.
        groups: Vec<String>,
    },
    /// Another password.
    Password(String),
    /// Other groups.
    Groups(Vec<String>),
    /// May not log in, or may again.
    Lock(bool),
    /// Gone.
    Remove,
}

impl Users {
    /// Those in a file; it need not be there.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, path: PathBuf) -> Self {
        Self {
            disk,
            path,
            keeps_scram: false,
            kept: Arc::default(),
        }
    }

    /// Whether what SCRAM needs is kept of passwords that are set from here on; else none of what there was.
    #[must_use]
    pub fn keeping_scram(self, keeps_scram: bool) -> Self {
        Self {
            keeps_scram,
            ..self
        }
    }

    /// Whether there may be any: somebody was added once.  One look for the file's name, which the system has in memory.
    #[must_use]
    pub fn may_be_any(&self) -> bool {
        self.disk.exists(&self.path).unwrap_or(true)
    }

    /// All, in the order of their names.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn all(&self) -> Result<Vec<User>, Error> {
        Ok(self.read()?.users)
    }

    /// Who has this name, if anybody.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn find(&self, name: &str) -> Result<Option<User>, Error> {
        Ok(self.contents()?.find(name).cloned())
    }

    /// What the file has now.  It is read again when it is another or was changed; two who ask wait for one reading.
    fn contents(&self) -> Result<Arc<Contents>, Error> {
        let mut kept = self.kept.lock();
        if !self.disk.exists(&self.path)? {
            return Ok(Arc::default());
        }
        let facts = self.disk.facts(&self.path)?;
        if let Some(kept) = kept.as_ref().filter(|kept| Some(kept.facts) == facts) {
            return Ok(Arc::clone(&kept.contents));
        }
        *kept = None;
        let contents = Arc::new(self.read()?);
        // What was replaced while it was read is read again next time.
        if let Some(facts) = facts {
            let contents = Arc::clone(&contents);
            *kept = Some(Kept { facts, contents });
        }
        Ok(contents)
    }

    /// Reads the file.
    fn read(&self) -> Result<Contents, Error> {
        if !self.disk.exists(&self.path)? {
            return Ok(Contents::default());
        }
        let octets = read_whole(self.disk.as_ref(), &self.path, FILE_OCTETS_MAX)?;
        file::decode(&octets).map_err(|(line, why)| Error::Damaged {
            path: self.path.clone(),
            line,
            why,
        })
    }

    /// Who has this name and password and may log in.  It takes tens of milliseconds of a core and 19 MiB, whatever the
    /// name is.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn check(&self, name: &str, password: &str) -> Result<Option<User>, Error> {
        let found = self.find(name)?;
        let is_right = password::matches(found.as_ref().map(|user| user.hash.as_str()), password);
        Ok(found.filter(|user| is_right && !user.is_locked))
    }

    /// What a proof of this name is held against, and who has it and may log in.  Of whom nobody knows, who is locked, or of
    /// whom nothing is kept for SCRAM, there are keys too, and nobody has them.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn scram(&self, name: &str) -> Result<(ScramKeys, Option<User>), Error> {
        let contents = self.contents()?;
        // Without a secret nobody has keys either, so there is nobody to be told from others.
        let nobody = scram::of_nobody(&contents.secret.unwrap_or_default(), name);
        let found = contents.find(name).cloned();
        let keys = found.as_ref().and_then(|user| user.scram.clone());
        let user = found.filter(|user| user.scram.is_some() && !user.is_locked);
        Ok((keys.unwrap_or(nobody), user))
    }

    /// Changes one user; two changes at the same time wait for each other.
    ///
    /// # Errors
    /// When the change cannot be made, or the file not written: then it is as it was.
    pub fn change(&self, name: &str, change: Change) -> Result<(), Error> {
        let mut lock = self.path.as_os_str().to_owned();
        lock.push(".lock");
        let _lock = self.disk.lock(&PathBuf::from(lock))?;
        let Contents { secret, mut users } = self.read()?;
        let place = users.binary_search_by(|user| user.name.as_str().cmp(name));
        match (change, place) {
            (Change::Add { .. }, Ok(_)) => return Err(Error::Known(name.to_owned())),
            (Change::Add { password, groups }, Err(place)) => {
                let names = groups.iter().map(String::as_str).chain([name]);
                if let Some(bad) = names.into_iter().find(|name| !is_name(name)) {
                    return Err(Error::BadName(bad.to_owned()));
                }
                users.insert(
                    place,
                    User {
                        name: name.to_owned(),
                        groups,
                        is_locked: false,
                        hash: hash(&password)?,
                        scram: self.scram_keys(&password)?,
                    },
                );
            }
            (_, Err(_)) => return Err(Error::Unknown(name.to_owned())),
            (Change::Remove, Ok(place)) => {
                users.remove(place);
            }
            (change, Ok(place)) => {
                if let Some(user) = users.get_mut(place) {
                    self.alter(user, change)?;
                }
            }
        }
        let secret = secret.map_or_else(random_bytes, Ok)?;
        let text = file::encode(&secret, &users);
        if text.len() > FILE_OCTETS_MAX {
            return Err(Error::Full(FILE_OCTETS_MAX));
        }
        Ok(replace_file(
            self.disk.as_ref(),
            &self.path,
            text.as_bytes(),
        )?)
    }

    fn alter(&self, user: &mut User, change: Change) -> Result<(), Error> {
        match change {
            Change::Password(password) => {
                user.hash = hash(&password)?;
                user.scram = self.scram_keys(&password)?;
            }
            Change::Lock(is_locked) => user.is_locked = is_locked,
            Change::Groups(groups) => {
                if let Some(bad) = groups.iter().find(|group| !is_name(group)) {
                    return Err(Error::BadName(bad.clone()));
                }
                user.groups = groups;
            }
            Change::Add { .. } | Change::Remove => {}
        }
        Ok(())
    }

    fn scram_keys(&self, password: &str) -> Result<Option<ScramKeys>, Error> {
        match self.keeps_scram {
            true => Ok(scram::keys(password, &random_bytes()?)),
            false => Ok(None),
        }
    }
}

fn hash(password: &str) -> Result<String, Error> {
    password::hash(password, &random_bytes()?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use newsreel_host::{FaultyDisk, MemoryDisk, RealDisk};

    use super::*;

    fn users() -> (Users, MemoryDisk) {
        let disk = MemoryDisk::new();
        disk.create_dir_all(Path::new("/spool")).unwrap();
        let path = PathBuf::from("/spool/users");
        (Users::new(Arc::new(disk.clone()), path), disk)
    }

    fn add(users: &Users, name: &str, groups: &[&str]) -> Result<(), Error> {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        let password = format!("{name}-password");
        users.change(name, Change::Add { password, groups })
    }

    fn may(users: &Users, name: &str, password: &str) -> bool {
        users.check(name, password).unwrap().is_some()
    }

    #[test]
    fn users_are_added_changed_locked_and_removed() {
        let (users, _) = users();
        assert_eq!(users.all().unwrap(), []);
        assert!(!may(&users, "ada", "ada-password"));
        add(&users, "eve", &[]).unwrap();
        add(&users, "ada", &["staff"]).unwrap();
        assert!(matches!(add(&users, "ada", &[]), Err(Error::Known(_))));
        let found = users.check("ada", "ada-password").unwrap().unwrap();
        assert_eq!(
            (found.name.as_str(), found.groups),
            ("ada", vec!["staff".to_owned()])
        );
        assert!(!may(&users, "ada", "eve-password") && !may(&users, "ad", "ada-password"));
        let change = |change| users.change("ada", change);
        change(Change::Password("another-one".into())).unwrap();
        assert!(!may(&users, "ada", "ada-password") && may(&users, "ada", "another-one"));
        change(Change::Lock(true)).unwrap();
        assert!(!may(&users, "ada", "another-one"));
        change(Change::Lock(false)).unwrap();
        change(Change::Groups(vec!["x".into(), "y".into()])).unwrap();
        assert_eq!(users.all().unwrap()[0].groups, ["x", "y"]);
        change(Change::Remove).unwrap();
        assert!(!may(&users, "ada", "another-one") && may(&users, "eve", "eve-password"));
        assert!(matches!(change(Change::Lock(true)), Err(Error::Unknown(_))));
    }

    /// Who is not known, is locked, or has nothing for SCRAM looks like anybody else, and nobody is found for them.
    #[test]
    fn keys_of_scram_are_there_for_every_name_and_a_user_for_few() {
        let (users, disk) = users();
        add(&users, "old", &[]).unwrap();
        let scram = users.clone().keeping_scram(true);
        add(&scram, "ada", &["staff"]).unwrap();
        let found = |name: &str| {
            let (keys, user) = users.scram(name).unwrap();
            (keys, user.map(|user| user.name))
        };
        let (keys, user) = found("ada");
        assert_eq!(user.as_deref(), Some("ada"));
        assert_eq!(
            scram::keys("ada-password", &keys.salt).as_ref(),
            Some(&keys)
        );
        for name in ["old", "eve"] {
            let (nobodys, user) = found(name);
            assert_eq!((nobodys.iterations, user), (keys.iterations, None));
            assert_eq!(found(name).0, nobodys, "the same after a restart too");
        }
        let change = |users: &Users, change| users.change("ada", change).unwrap();
        change(&users, Change::Lock(true));
        assert_eq!(found("ada"), (keys.clone(), None));
        change(&users, Change::Lock(false));
        // Another password has other keys, or none; the old ones are of no use.
        change(&scram, Change::Password("another-one".into()));
        let (other, user) = found("ada");
        assert!(other != keys && user.is_some());
        change(&users, Change::Password("the-third-one".into()));
        assert_eq!(found("ada").1, None);
        let text = read_whole(&disk, Path::new("/spool/users"), FILE_OCTETS_MAX).unwrap();
        assert!(text.starts_with(b"newsreel users 2 "));
    }

    /// A file of 20,000 users was read and taken apart for each login and each challenge: nineteen a second kept all threads
    /// busy that look users up.
    #[test]
    fn the_file_is_read_again_only_when_it_was_changed() {
        let dir = tempfile::tempdir().unwrap();
        let disk = FaultyDisk::new(Arc::new(RealDisk));
        let path = dir.path().join("users");
        let asked = Users::new(Arc::new(disk.clone()), path.clone());
        let changed = Users::new(Arc::new(RealDisk), path.clone());
        let read = || disk.octets_read("users");
        assert_eq!(asked.find("ada").unwrap(), None);
        for name in ["ada", "eve"] {
            add(&changed, name, &["staff"]).unwrap();
            let before = read();
            assert!(asked.find(name).unwrap().is_some(), "at once");
            let once = read();
            assert!(once > before);
            for _ in 0..100 {
                asked.scram(name).unwrap();
                asked.find("nobody").unwrap();
            }
            assert_eq!(read(), once);
        }
        // As long as before.
        for group in ["other", "third"] {
            let groups = Change::Groups(vec![group.into()]);
            changed.change("ada", groups).unwrap();
            assert_eq!(asked.find("ada").unwrap().unwrap().groups, [group]);
        }
        RealDisk.remove(&path).unwrap();
        assert_eq!(asked.find("ada").unwrap(), None);
    }

    #[test]
    fn what_cannot_be_is_refused_and_changes_nothing() {
        let (users, _) = users();
        for bad in [
            "",
            "a b",
            "a:b",
            "@staff",
            "*",
            "-",
            "a\tb",
            &"x".repeat(65),
        ] {
            assert!(
                matches!(add(&users, bad, &[]), Err(Error::BadName(_))),
                "{bad}"
            );
        }
        assert!(matches!(
            add(&users, "ada", &["a,b"]),
            Err(Error::BadName(_))
        ));
        add(&users, "ada", &[]).unwrap();
        add(&users, "ada@b.example", &[]).unwrap();
        assert!(may(&users, "ada@b.example", "ada@b.example-password"));
        let groups = Change::Groups(vec!["a b".into()]);
        assert!(matches!(
            users.change("ada", groups),
            Err(Error::BadName(_))
        ));
        let short = users.change("ada", Change::Password("short".into()));
        assert!(matches!(short, Err(Error::BadPassword(_))));
        assert!(may(&users, "ada", "ada-password"));
    }

    #[test]
    fn a_damaged_file_lets_nobody_in_and_is_not_written_over() {
        let (users, disk) = users();
        add(&users, "ada", &[]).unwrap();
        let path = Path::new("/spool/users");
        let mut octets = read_whole(&disk, path, FILE_OCTETS_MAX).unwrap();
        *octets.last_mut().unwrap() ^= 1;
        replace_file(&disk, path, &octets).unwrap();
        assert!(matches!(
            users.check("ada", "ada-password"),
            Err(Error::Damaged { line: 1, .. })
        ));
        assert!(matches!(
            add(&users, "eve", &[]),
            Err(Error::Damaged { .. })
        ));
        assert_eq!(read_whole(&disk, path, FILE_OCTETS_MAX).unwrap(), octets);
    }

    /// Whatever a change is struck at, the file is as it was or as it is to be.
    #[test]
    fn a_change_that_fails_leaves_what_was_there() {
        let (whole, disk) = users();
        add(&whole, "ada", &[]).unwrap();
        for at in 1.. {
            let faulty = FaultyDisk::new(Arc::new(disk.clone()));
            faulty.stop_at_change(at);
            let users = Users::new(Arc::new(faulty.clone()), PathBuf::from("/spool/users"));
            let done = users.change("ada", Change::Lock(at % 2 == 0));
            assert_eq!(whole.all().unwrap().len(), 1, "struck at {at}");
            if done.is_ok() {
                assert!(at > 3, "nothing was struck before change {at}");
                return;
            }
        }
    }
}
