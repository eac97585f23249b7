//! Tests of open folders, on the file system that holds temporary files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::{Disk, Fault, MemoryDisk, OpenMode, RealDisk};

fn scratch() -> (tempfile::TempDir, Folder) {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    (dir, folder)
}

fn put(folder: &Folder, name: &str) {
    RealDisk
        .open(&folder.path().join(name), OpenMode::CreateNew)
        .unwrap();
}

fn names(folder: &Folder) -> Vec<String> {
    let mut names: Vec<_> = folder
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn entries_have_their_kinds_and_inodes() {
    let (dir, folder) = scratch();
    put(&folder, "file");
    folder.make_folder(Path::new("sub"), 0o755).unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "makes what a folder of others may hold"
    )]
    std::os::unix::fs::symlink("file", dir.path().join("soft")).unwrap();
    let mut entries: Vec<_> = folder.entries().unwrap().map(Result::unwrap).collect();
    entries.sort();
    let kinds: Vec<_> = entries
        .iter()
        .map(|e| (e.name.to_str().unwrap(), e.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            ("file", Kind::File),
            ("soft", Kind::Link),
            ("sub", Kind::Folder)
        ]
    );
    for entry in &entries {
        let facts = folder.facts_of(entry.path()).unwrap();
        assert_eq!((facts.inode, facts.kind), (entry.inode, entry.kind));
    }
    assert_eq!(folder.read_link(Path::new("soft")).unwrap(), b"file");
}

#[test]
fn any_octets_are_a_name() {
    let (_dir, folder) = scratch();
    let name = PathBuf::from(OsStr::from_bytes(&[0xff; 255]));
    folder.make_folder(&name, 0o700).unwrap();
    assert!(folder.entries().unwrap().any(|e| e.unwrap().name == name));
    let inner = folder.open_folder(&name).unwrap();
    inner.make_folder(&name, 0o700).unwrap();
    assert!(!folder.remove_folder(&name).unwrap());
    assert!(inner.remove_folder(&name).unwrap());
    assert!(folder.remove_folder(&name).unwrap());
}

#[test]
fn a_rename_never_replaces() {
    let (_dir, folder) = scratch();
    put(&folder, "a");
    put(&folder, "b");
    let (a, b) = (Path::new("a"), Path::new("b"));
    let error = folder.rename_new(a, &folder, b).unwrap_err();
    assert_eq!(
        (error.kind(), error.path()),
        (ErrorKind::Exists, &*folder.path().join("b"))
    );
    folder.remove(b).unwrap();
    folder.rename_new(a, &folder, b).unwrap();
    assert_eq!(names(&folder), ["b"]);
}

#[test]
fn links_share_the_inode() {
    let (_dir, folder) = scratch();
    put(&folder, "a");
    #[expect(
        clippy::disallowed_methods,
        reason = "makes what a folder of others may hold"
    )]
    std::fs::hard_link(folder.path().join("a"), folder.path().join("b")).unwrap();
    let (a, b) = (
        folder.facts_of(Path::new("a")).unwrap(),
        folder.facts_of(Path::new("b")).unwrap(),
    );
    assert!(a.is_same_as(&b));
    assert_eq!((a.links, b.links), (2, 2));
}

#[test]
fn symbolic_links_are_not_opened_as_folders() {
    let (dir, folder) = scratch();
    folder.make_folder(Path::new("sub"), 0o700).unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "makes what a folder of others may hold"
    )]
    std::os::unix::fs::symlink("sub", dir.path().join("soft")).unwrap();
    assert!(folder.open_folder(Path::new("sub")).is_ok());
    assert!(folder.open_folder(Path::new("soft")).is_err());
}

#[test]
fn modes_and_attributes_are_set_and_read() {
    let (_dir, folder) = scratch();
    let facts = folder.facts().unwrap();
    folder.set_mode(facts.mode | 0o4000).unwrap();
    assert_eq!(folder.facts().unwrap().mode, facts.mode | 0o4000);
    folder.set_owner(facts.uid, facts.gid).unwrap();
    assert_eq!(folder.attribute("user.newsreel.test").unwrap(), None);
    folder.set_attribute("user.newsreel.test", b"x").unwrap();
    assert_eq!(
        folder.attribute("user.newsreel.test").unwrap(),
        Some(b"x".to_vec())
    );
    folder.remove_attribute("user.newsreel.test").unwrap();
    folder.remove_attribute("user.newsreel.test").unwrap();
    assert_eq!(folder.attribute("user.newsreel.test").unwrap(), None);
}

#[test]
fn a_lock_excludes_and_goes_with_its_holder() {
    let (dir, folder) = scratch();
    let lock = folder.lock().unwrap();
    let other = Folder::open(dir.path()).unwrap();
    assert_eq!(other.lock().unwrap_err().kind(), ErrorKind::Locked);
    drop(lock);
    other.lock().unwrap();
}

/// As a program has it that is being started just then.
#[test]
fn a_lock_goes_with_its_holder_also_where_its_descriptor_stays() {
    let (dir, folder) = scratch();
    let lock = folder.lock().unwrap();
    let _copy = lock.fd.try_clone().unwrap();
    drop(lock);
    Folder::open(dir.path()).unwrap().lock().unwrap();
}

#[test]
fn the_file_system_is_told() {
    let (_dir, folder) = scratch();
    let found = folder.file_system().unwrap();
    assert!(found.free_bytes > 0 && found.block_bytes > 0, "{found:?}");
    folder.is_indexed().unwrap();
    folder.sync().unwrap();
    folder.sync_file_system().unwrap();
}

#[test]
fn a_script_strikes_folders_opened_through_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let faults = FaultyDisk::new(Arc::new(MemoryDisk::default()));
    let folder = Folder::open_with_faults(dir.path(), &faults).unwrap();
    folder.make_folder(Path::new("sub"), 0o700).unwrap();
    let sub = folder.open_folder(Path::new("sub")).unwrap();
    assert_eq!(faults.counts().changes(), 1);
    faults.add(Fault::new(Op::CreateDir, "sub", crate::Effect::Full));
    let full = sub.make_folder(Path::new("x"), 0o700).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::Full);
    faults.stop();
    assert_eq!(sub.facts().unwrap_err().kind(), ErrorKind::Stopped);
    assert!(names(&Folder::open(&dir.path().join("sub")).unwrap()).is_empty());
}

/// Whoever owns a directory could lead root out of it by a link in the place of a directory that root's commands use.
#[test]
fn a_link_on_the_way_is_never_followed() {
    let (dir, folder) = scratch();
    let outside = tempfile::tempdir().unwrap();
    let beyond = Folder::open(outside.path()).unwrap();
    put(&beyond, "theirs");
    beyond.make_folder(Path::new("empty"), 0o755).unwrap();
    put(&folder, "mine");
    folder.make_folder(Path::new("sub"), 0o755).unwrap();
    for (target, name) in [(outside.path(), "way"), (Path::new("../.."), "sub/up")] {
        #[expect(
            clippy::disallowed_methods,
            reason = "makes what a folder of others may hold"
        )]
        std::os::unix::fs::symlink(target, dir.path().join(name)).unwrap();
    }
    let mine = Path::new("mine");
    for way in ["way", "sub/up"] {
        let at = |name: &str| Path::new(way).join(name);
        let tried = [
            folder.rename_new(mine, &folder, &at("new")).err(),
            folder
                .rename_new(&at("theirs"), &folder, Path::new("got"))
                .err(),
            folder.facts_of(&at("theirs")).err(),
            folder.remove(&at("theirs")).err(),
            folder.remove_folder(&at("empty")).err(),
            folder.make_folder(&at("made"), 0o755).err(),
            folder.open_folder(&at("empty")).err(),
            folder.read_link(&at("theirs")).err(),
        ];
        for (nth, error) in tried.into_iter().enumerate() {
            let text = error.map(|error| error.to_string()).unwrap_or_default();
            assert!(text.contains("ot a directory"), "{way}, {nth}: {text:?}");
        }
    }
    let out = folder.facts_of(Path::new("../x")).unwrap_err().to_string();
    assert!(out.contains("cross-device"), "{out}");
    assert_eq!(names(&beyond), ["empty", "theirs"]);
    assert_eq!(names(&folder), ["mine", "sub", "way"]);
}

/// What is in memory without a limit tells zeros, which were taken for a full disk.
#[test]
fn a_file_system_that_tells_no_size_has_no_limit() {
    let none = Folder::open(Path::new("/proc")).unwrap();
    assert!(none.file_system().unwrap().has_no_limit);
    let dir = tempfile::tempdir().unwrap();
    let system = Folder::open(dir.path()).unwrap().file_system().unwrap();
    assert!(!system.has_no_limit, "{system:?}");
}
