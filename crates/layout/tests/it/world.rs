//! A directory to work on, and what is seen in it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use newsreel_host::folder::{Entry, Kind};
use newsreel_host::{Disk, Folder, OpenMode, RealDisk, read_whole};
use newsreel_layout::{Algorithm, Cookie, Listing, Managed, Mark, Name, Opened};

/// A directory that goes with the test.
pub(crate) struct World {
    dir: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::in_dir(tempfile::tempdir().unwrap())
    }

    /// In memory, where there is such a file system that keeps attributes: for tests that sync thousands of times.
    pub(crate) fn fast() -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").ok().filter(|dir| {
            let folder = Folder::open(dir.path()).unwrap();
            folder.set_attribute("user.newsreel.test", b"").is_ok()
        });
        dir.map_or_else(Self::new, Self::in_dir)
    }

    fn in_dir(dir: tempfile::TempDir) -> Self {
        let parent = Folder::open(dir.path()).unwrap();
        parent.make_folder(Path::new("group"), 0o755).unwrap();
        Self { dir }
    }

    /// Another directory beside the group's.
    pub(crate) fn new_beside(world: &Self, name: &str) -> Folder {
        let parent = Folder::open(world.dir.path()).unwrap();
        parent.make_folder(Path::new(name), 0o755).unwrap();
        parent.open_folder(Path::new(name)).unwrap()
    }

    /// A flat directory with articles, holes in their numbers, and names that look like buckets and worse.
    pub(crate) fn with_odd_names() -> Self {
        let world = Self::fast();
        let group = world.group();
        let long = "9".repeat(255);
        let numbers = (1000..1020)
            .chain(123_450..123_470)
            .chain([7, 34, 56, 345, 987]);
        let numbers: Vec<String> = numbers.map(|number: u32| number.to_string()).collect();
        let names = [
            "0123",
            "r0",
            "r16",
            "000",
            long.as_str(),
            ".overview",
            "foo.tmp",
            " ",
            "\\n",
        ];
        for name in numbers.iter().map(String::as_str).chain(names) {
            put(&group, Path::new(name), name.as_bytes()).unwrap();
        }
        let octets = std::ffi::OsStr::from_bytes(b"\xff\xfe\n");
        put(&group, Path::new(octets), b"octets").unwrap();
        // Subdirectories that are called like articles and buckets, with something in them.
        for folder in ["2600", "aaa", "098"] {
            group.make_folder(Path::new(folder), 0o755).unwrap();
            put(&group, &Path::new(folder).join("345"), b"below").unwrap();
        }
        link(&group, "987", &group, "98700");
        #[expect(
            clippy::disallowed_methods,
            reason = "makes what a conversion must cope with"
        )]
        std::os::unix::fs::symlink("../group/7", world.path().join("777")).unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "makes what a conversion must cope with"
        )]
        std::os::unix::fs::symlink("/nowhere", world.path().join("link")).unwrap();
        world
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

/// Gives a file one more name.
pub(crate) fn link(from: &Folder, name: &str, to: &Folder, new: &str) {
    #[expect(
        clippy::disallowed_methods,
        reason = "makes what a conversion must cope with"
    )]
    std::fs::hard_link(from.path().join(name), to.path().join(new)).unwrap();
}

/// Makes a symbolic link.
pub(crate) fn soft(folder: &Folder, target: &Path, name: &str) {
    #[expect(
        clippy::disallowed_methods,
        reason = "makes what a conversion must cope with"
    )]
    std::os::unix::fs::symlink(target, folder.path().join(name)).unwrap();
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

/// Everything that is no bucket, by inode, with how many names each inode has; directories' contents count.
pub(crate) type Seen = BTreeMap<(u64, OsString), u32>;

/// Names and inodes of all files and links below, and of all directories that are not empty and no bucket's.
pub(crate) fn inodes(folder: &Folder) -> Seen {
    let mut seen = Seen::new();
    for entry in folder.entries().unwrap() {
        let entry = entry.unwrap();
        if let Ok(below) = folder.open_folder(entry.path()) {
            for (name, times) in inodes(&below) {
                *seen.entry(name).or_default() += times;
            }
        } else {
            *seen.entry((entry.inode, entry.name)).or_default() += 1;
        }
    }
    seen
}

/// What a view shows: names with their inodes, and what files hold, what directories hold, where links lead.
pub(crate) fn view(folder: &Folder) -> BTreeMap<OsString, (u64, Vec<u8>)> {
    let again = Folder::open(folder.path()).unwrap();
    let mut seen = BTreeMap::new();
    let mut see = |at: &Path, entry: &Entry| {
        let text = match entry.kind {
            Kind::File => contents(&folder.path().join(at)),
            Kind::Folder => tree(&folder.open_folder(at).unwrap()).concat().into_bytes(),
            Kind::Link => folder.read_link(at).unwrap(),
            Kind::Other => Vec::new(),
        };
        let old = seen.insert(entry.name.clone(), (entry.inode, text));
        assert_eq!(old, None, "{entry:?}");
    };
    match Opened::new(again).unwrap() {
        Opened::Flat(flat) => {
            for entry in flat.entries().unwrap() {
                let entry = entry.unwrap();
                see(entry.path(), &entry);
            }
        }
        Opened::Managed(managed) => Listing::default()
            .fill(&managed, Cookie::DOT_DOT, |entry, _| {
                see(&managed.place(Name::parse(&entry.name).unwrap()), entry);
                true
            })
            .unwrap(),
        Opened::UnderWay(_, under_way) => panic!("under way: {under_way}"),
    }
    seen
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
