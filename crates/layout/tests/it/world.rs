//! A directory to work on, and what is seen in it.

use std::path::Path;

use newsreel_host::{Disk, Folder, OpenMode, RealDisk, read_whole};
use newsreel_layout::{Algorithm, Cookie, Listing, Managed, Mark, Name, Opened};

/// A directory that goes with the test.
pub(crate) struct World {
    dir: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Folder::open(dir.path())
            .unwrap()
            .make_folder(Path::new("group"), 0o755)
            .unwrap();
        Self { dir }
    }

    /// A directory that is managed from its beginning.
    pub(crate) fn managed(algorithm: Algorithm) -> (Self, Managed) {
        let world = Self::new();
        Mark::set(&world.group(), algorithm).unwrap();
        let managed = world.open();
        (world, managed)
    }

    /// The group's directory.
    pub(crate) fn group(&self) -> Folder {
        Folder::open(&self.path()).unwrap()
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("group")
    }

    pub(crate) fn open(&self) -> Managed {
        match Opened::new(self.group()).unwrap() {
            Opened::Managed(managed) => managed,
            other => panic!("not managed: {other:?}"),
        }
    }
}

/// Writes a file.
pub(crate) fn put(folder: &Folder, at: &Path, contents: &[u8]) -> newsreel_host::Result<()> {
    let file = RealDisk.open(&folder.path().join(at), OpenMode::CreateNew)?;
    file.write_at(contents, 0)
}

/// Writes a file into the view.
pub(crate) fn add(managed: &Managed, name: &str) {
    let parsed = Name::parse(name.as_ref()).unwrap();
    managed
        .with_bucket(parsed, |folder, at| put(folder, at, name.as_bytes()))
        .unwrap();
}

/// Removes a file from the view.
pub(crate) fn take_away(managed: &Managed, name: &str) {
    let name = Name::parse(name.as_ref()).unwrap();
    managed.folder().remove(&managed.place(name)).unwrap();
    managed
        .tidy_bucket(managed.algorithm().bucket(name))
        .unwrap();
}

/// The names of the view, as they are listed.
pub(crate) fn listed(managed: &Managed) -> Vec<String> {
    let mut names = Vec::new();
    Listing::default()
        .fill(managed, Cookie::DOT_DOT, |entry, _| {
            names.push(entry.name.to_string_lossy().into_owned());
            true
        })
        .unwrap();
    names
}

/// Every path below a directory, with a slash behind directories.
pub(crate) fn tree(folder: &Folder) -> Vec<String> {
    let mut paths = Vec::new();
    for entry in folder.entries().unwrap() {
        let entry = entry.unwrap();
        let name = entry.name.to_string_lossy().into_owned();
        if let Ok(below) = folder.open_folder(entry.path()) {
            paths.push(format!("{name}/"));
            paths.extend(tree(&below).iter().map(|path| format!("{name}/{path}")));
        } else {
            paths.push(name);
        }
    }
    paths.sort();
    paths
}

/// A file's contents.
pub(crate) fn contents(path: &Path) -> Vec<u8> {
    read_whole(&RealDisk, path, 1 << 24).unwrap()
}

/// Set when it is dropped, so that threads end with the test that waits for them, however it ends.
#[derive(Default)]
pub(crate) struct Done(std::sync::atomic::AtomicBool);

impl Done {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Sets it when the guard goes.
    pub(crate) fn at_end(&self) -> impl Drop + '_ {
        struct Guard<'a>(&'a Done);
        impl Drop for Guard<'_> {
            fn drop(&mut self) {
                self.0.0.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        Guard(self)
    }
}
