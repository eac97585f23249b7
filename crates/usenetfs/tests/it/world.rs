//! A directory that is mounted for a test, by this process, and goes with it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use newsreel_host::{Caller, Folder, RealClock, process};
use newsreel_layout::verify::verify;
use newsreel_layout::{Algorithm, Cookie, Listing, Mark, Opened};
use newsreel_usenetfs::{
    Access, Changes, Error, Mounted, Options, ROOT, Result, Settings, Unmounter, View,
};

/// Whoever makes things in tests without a mount.
pub(crate) const SELF: Caller = Caller { uid: 0, gid: 0 };

/// A mounted directory.
pub(crate) struct World {
    dir: tempfile::TempDir,
    server: Option<JoinHandle<Result<()>>>,
    unmounter: Unmounter,
    view: Arc<View>,
}

/// Whether this machine lets a test mount; says why not.
pub(crate) fn can_mount() -> bool {
    if process::own_uid() != 0 {
        println!("skipped: only root can mount");
        return false;
    }
    if fs::File::open("/dev/fuse").is_err() {
        println!("skipped: there is no /dev/fuse");
        return false;
    }
    true
}

impl World {
    /// Mounts an empty directory; `None` where that cannot be done.
    pub(crate) fn new(settings: Settings) -> Option<Self> {
        Self::with(settings, Some(64 << 10))
    }

    pub(crate) fn with(settings: Settings, passthrough_bytes_min: Option<u64>) -> Option<Self> {
        Self::prepared(settings, passthrough_bytes_min, |_| {})
    }

    /// Mounts a directory that was prepared before.
    pub(crate) fn prepared(
        settings: Settings,
        passthrough_bytes_min: Option<u64>,
        prepare: impl FnOnce(&Path),
    ) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["lower", "mnt", "native"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        prepare(&dir.path().join("lower"));
        let options = Options {
            lower: dir.path().join("lower"),
            at: dir.path().join("mnt"),
            settings,
            access: Access {
                devices: true,
                set_uid: true,
                ..Access::default()
            },
            passthrough_bytes_min,
            threads: 2,
        };
        let mounted = Mounted::new(&options, Arc::new(RealClock::default())).unwrap();
        let view = Arc::clone(mounted.view());
        Some(Self {
            dir,
            unmounter: mounted.unmounter(),
            server: Some(std::thread::spawn(move || mounted.serve())),
            view,
        })
    }

    /// A path in the mount.
    pub(crate) fn path(&self, at: &str) -> PathBuf {
        self.dir.path().join("mnt").join(at)
    }

    /// The same path in the directory below.
    pub(crate) fn lower(&self, at: &str) -> PathBuf {
        self.dir.path().join("lower").join(at)
    }

    /// A directory beside both.
    pub(crate) fn native(&self) -> PathBuf {
        self.dir.path().join("native")
    }

    /// What serves the mount.
    pub(crate) const fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// Makes a managed directory through the mount.
    pub(crate) fn managed(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).unwrap();
        set_mode(&path, 0o4755);
        path
    }

    /// Ends the mount, and says what the directory below it is like.
    pub(crate) fn end(mut self) -> tempfile::TempDir {
        self.stop();
        let empty = tempfile::tempdir().unwrap();
        std::mem::replace(&mut self.dir, empty)
    }

    /// Ends the mount.
    pub(crate) fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            self.unmounter.unmount().unwrap();
            server.join().unwrap().unwrap();
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        } else if let Some(server) = self.server.take() {
            let _ = self.unmounter.unmount();
            let _ = server.join();
        }
    }
}

/// The same directory mounted again.
pub(crate) struct Remounted {
    dir: tempfile::TempDir,
    unmounter: Unmounter,
    server: Option<JoinHandle<Result<()>>>,
}

impl Remounted {
    pub(crate) fn new(dir: tempfile::TempDir) -> Self {
        let options = Options {
            lower: dir.path().join("lower"),
            at: dir.path().join("mnt"),
            settings: Settings::default(),
            access: Access::default(),
            passthrough_bytes_min: None,
            threads: 1,
        };
        let mount = || Mounted::new(&options, Arc::new(RealClock::default()));
        let mut mounted = mount();
        // A program that another test starts has the lock of the mount before, too, until it is that program.
        for _ in 0..500 {
            if matches!(mounted, Err(Error::InUse { .. })) {
                std::thread::sleep(Duration::from_millis(20));
                mounted = mount();
            }
        }
        let mounted = mounted.unwrap();
        Self {
            dir,
            unmounter: mounted.unmounter(),
            server: Some(std::thread::spawn(move || mounted.serve())),
        }
    }

    /// A path in the mount.
    pub(crate) fn path(&self, at: &str) -> PathBuf {
        self.dir.path().join("mnt").join(at)
    }
}

impl Drop for Remounted {
    fn drop(&mut self) {
        let _ = self.unmounter.unmount();
        self.server.take().map(JoinHandle::join);
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// The names in a directory, sorted.
pub(crate) fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Findings of `verify` in a directory below a mount.
pub(crate) fn findings(path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let folder = Folder::open(path).unwrap();
    verify(&folder, false, &mut |finding| {
        found.push(format!("{}: {}", finding.path.display(), finding.what));
    })
    .unwrap();
    found
}

/// Runs a script of the shell in a directory; what it said and how it ended.
pub(crate) fn shell(at: &Path, user: (u32, u32), script: &str) -> String {
    use std::os::unix::process::CommandExt as _;
    let output = Command::new("timeout")
        .args(["30", "sh", "-c", script])
        .current_dir(at)
        .env("LC_ALL", "C")
        .uid(user.0)
        .gid(user.1)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    format!("{said}{complained}{}\n", output.status.code().unwrap_or(-1))
}

/// A view without a mount, over a directory of its own; `None` where handles cannot be opened.
pub(crate) fn bare_view(settings: Settings) -> Option<(tempfile::TempDir, View)> {
    if process::own_uid() != 0 {
        println!("skipped: only root opens handles");
        return None;
    }
    let in_memory = tempfile::tempdir_in("/dev/shm").ok().filter(|dir| {
        let folder = Folder::open(dir.path()).unwrap();
        folder.set_attribute("user.newsreel.test", b"").is_ok()
    });
    let dir = in_memory.unwrap_or_else(|| tempfile::tempdir().unwrap());
    let lower = Folder::open(dir.path()).unwrap();
    let view = View::new(lower, settings, Arc::new(RealClock::default())).unwrap();
    Some((dir, view))
}

/// Makes a directory in a view without a mount, managed or not.
pub(crate) fn make_folder(view: &View, name: &str, mode: u32) -> u64 {
    let name = OsStr::new(name);
    let made = view.make_folder(ROOT, name, 0o755, SELF).unwrap();
    let changes = Changes {
        mode: Some(mode),
        ..Changes::default()
    };
    view.change(made.node, &changes).unwrap();
    made.node
}

/// The view of a real directory, without any file system in front.
pub(crate) fn natively(path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    match Opened::new(Folder::open(path).unwrap()).unwrap() {
        Opened::Flat(folder) => {
            let entries = folder.entries().unwrap();
            names.extend(entries.map(|entry| entry.unwrap().name.into_string().unwrap()));
        }
        Opened::Managed(managed) => Listing::default()
            .fill(&managed, Cookie::DOT_DOT, |entry, _| {
                names.push(entry.name.clone().into_string().unwrap());
                true
            })
            .unwrap(),
        Opened::UnderWay(_, under_way) => panic!("under way: {under_way}"),
    }
    names.sort();
    names
}

/// How a real directory is marked.
pub(crate) fn mark(path: &Path) -> Mark {
    Mark::read(&Folder::open(path).unwrap()).unwrap()
}

/// Settings with an algorithm.
pub(crate) fn by(algorithm: Algorithm) -> Settings {
    Settings {
        algorithm,
        ..Settings::default()
    }
}
