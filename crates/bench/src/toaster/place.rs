//! Where articles lie: file systems in image files, several of them together, memory, or a directory that is there.
//!
//! Invariant: what was mounted here is unmounted when it goes, the last first, and its images are removed.
#![expect(
    clippy::disallowed_methods,
    reason = "the directories of a measurement are no spool of ours"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use newsreel_layout::Algorithm;

use super::args::ToasterArgs;
use super::pool::Pool;
use super::variant::Variant;
use crate::error::Error;
use crate::load::Machine;
use crate::measure::machine::{DeviceCost, DeviceLook};
use crate::usenetfs::FileSystem;
use crate::usenetfs::directory::Directory;
use crate::usenetfs::volume::{
    View, Volume, call, can_fuse, can_mount, device_of, forget_everything, told, unmount,
};

/// Where articles lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A directory that is there: on NFS, say.
    Directory,
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// ext2 whose directories are searched from their beginning.
    Ext2,
    /// Memory.
    Tmpfs,
    /// The paper's four disks, joined by a mount, links and a directory as in its figure 1.
    Joined,
    /// A stripe of four disks.
    Stripe,
    /// Two pairs of disks that mirror each other.
    Mirror,
    /// Managed directories on ext4, through a mount of them.
    Usenetfs,
}

impl Place {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Directory,
        Self::Ext4,
        Self::Xfs,
        Self::Btrfs,
        Self::Ext2,
        Self::Tmpfs,
        Self::Joined,
        Self::Stripe,
        Self::Mirror,
        Self::Usenetfs,
    ];

    /// Its name, on the command line and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Ext2 => "ext2",
            Self::Tmpfs => "tmpfs",
            Self::Joined => "joined",
            Self::Stripe => "stripe",
            Self::Mirror => "mirror",
            Self::Usenetfs => "usenetfs",
        }
    }

    /// What can be made there costs nothing but a place: no file system has to be made and mounted.
    const fn is_there(self) -> bool {
        matches!(self, Self::Directory)
    }

    /// Whether links lead from one of its directories to another.
    pub(super) const fn has_links(self) -> bool {
        matches!(self, Self::Joined)
    }
}

/// What is to have room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Files of articles.
    pub(super) files: u64,
    /// Their octets, or those of the buffers.
    pub(super) octets: u64,
    /// Octets of batches, log and views.
    pub(super) home_octets: u64,
}

/// Files of log, views and batches.
const FILES_AT_HOME: u64 = 20_000;
/// Disks of the paper.
const DISKS: u64 = 4;
/// The hierarchies of the paper's disks that others are linked to; everything else is on the fourth.
const LINKED: [&[&str]; 2] = [
    &["rec", "soc", "talk", "de"],
    &["comp", "misc", "sci", "news", "bit", "gnu", "vmsnet"],
];

/// Something mounted that is no image.
#[derive(Debug)]
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        // Whatever went wrong has been told; here only nothing may stay.
        let _ = unmount(&self.0);
    }
}

/// What devices read ahead before this, which they would go on without: a loop device outlives its image.
#[derive(Debug, Default)]
struct ReadAhead {
    before: Vec<(String, String)>,
    /// Why the file below some of them is read ahead all the same.
    why_below: Option<String>,
}

impl ReadAhead {
    /// None from now on, nor of the image: without direct I/O the kernel reads that ahead as any file.
    fn off(&mut self, device: &str) -> Result<(), Error> {
        let device = format!("/dev/{device}");
        let before = told(Command::new("blockdev").args(["--getra", &device]), "")?;
        let before = String::from_utf8_lossy(&before).trim().to_owned();
        call("blockdev", ["--setra", "0", &device].map(AsRef::as_ref))?;
        self.before.push((device.clone(), before));
        let direct = call("losetup", ["--direct-io=on", &device].map(AsRef::as_ref));
        // Where the file system of the images cannot, or a loop device has smaller blocks than it.
        if let Err(error) = direct {
            self.why_below = Some(error.to_string());
        }
        Ok(())
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        for (device, before) in &self.before {
            // Whatever went wrong has been told; here only nothing may stay.
            let _ = call("blockdev", ["--setra", before, device].map(AsRef::as_ref));
        }
    }
}

/// Directories that were made; what is in them goes too, where that is said.
#[derive(Debug, Default)]
struct Folders(Vec<(PathBuf, bool)>);

impl Drop for Folders {
    fn drop(&mut self) {
        for (folder, is_whole) in self.0.iter().rev() {
            // One that something is still mounted in must not be emptied, and says so by not going.
            let _ = match is_whole {
                true => fs::remove_dir_all(folder),
                false => fs::remove_dir(folder),
            };
        }
    }
}

/// What a contender has to itself while it is measured. Parts go in the order of the fields.
#[derive(Debug)]
pub(super) struct Site<'a> {
    /// Log, views, batches and configuration.
    pub(super) home: PathBuf,
    /// Articles.
    pub(super) articles: PathBuf,
    read_ahead: ReadAhead,
    _view: Option<View<'a>>,
    mounted: Vec<Mounted>,
    pool: Option<Pool>,
    volumes: Vec<Volume>,
    home_volume: Option<Volume>,
    folders: Folders,
}

impl<'a> Site<'a> {
    /// Makes and mounts what it takes.
    pub(super) fn new(
        args: &'a ToasterArgs,
        place: Place,
        variant: Variant,
        room: Room,
    ) -> Result<Self, Error> {
        let directory = &args.directory;
        let is_same_disk = variant == Variant::SameDisk;
        let mut site = Self {
            home: PathBuf::new(),
            articles: PathBuf::new(),
            read_ahead: ReadAhead::default(),
            _view: None,
            mounted: Vec::new(),
            pool: None,
            volumes: Vec::new(),
            home_volume: None,
            folders: Folders::default(),
        };
        // On one disk it has room for all.
        let octets = match is_same_disk {
            true => room.octets + room.home_octets,
            false => room.octets,
        };
        let at = site.make(args, place, Room { octets, ..room })?;
        site.home = match (is_same_disk, place.is_there()) {
            (true, _) => at.join("home"),
            (false, true) => directory.join("home"),
            (false, false) => {
                let disk = site.folder(directory.join("home-disk"))?;
                let ext4 = FileSystem::Ext4;
                let home = Volume::with_room(&disk, ext4, FILES_AT_HOME, room.home_octets)?;
                let home = site.home_volume.insert(home);
                home.at().join("home")
            }
        };
        site.articles = at.join("articles");
        for made in [site.home.clone(), site.articles.clone()] {
            make(&made)?;
            // Elsewhere all of it goes with its file system.
            if place.is_there() {
                site.folders.0.push((made, true));
            }
        }
        match place {
            Place::Joined => site.join()?,
            Place::Usenetfs => {
                can_fuse()?;
                let managed = at.join("managed");
                Directory::make(&managed, Some(Algorithm::default()))?;
                let view = View::inheriting(&args.program, &managed, &directory.join("view"))?;
                site.articles = view.at().to_path_buf();
                site._view = Some(view);
            }
            _ => {}
        }
        site.vary(place, variant)?;
        Ok(site)
    }

    /// Does what is done otherwise to file systems and devices.
    fn vary(&mut self, place: Place, variant: Variant) -> Result<(), Error> {
        let cannot = |what: &str| {
            let why = format!("{} has no device of its own", place.name());
            Err(Error::missing(what, why))
        };
        match variant {
            Variant::Plain | Variant::SameDisk | Variant::HistoryOrder => Ok(()),
            Variant::Atime => {
                let volumes = self.volumes.iter().map(Volume::at);
                let pool = self.pool.iter().map(Pool::at);
                let all: Vec<&Path> = volumes.chain(pool).collect();
                if all.is_empty() {
                    return cannot("access times");
                }
                let options = ["-o", "remount,strictatime"].map(AsRef::as_ref);
                all.into_iter()
                    .try_for_each(|at| call("mount", options.into_iter().chain([at.as_os_str()])))
            }
            Variant::NoReadAhead => {
                let devices = self.devices();
                if devices.is_empty() {
                    return cannot("a device without read-ahead");
                }
                let mut devices = devices.iter();
                devices.try_for_each(|device| self.read_ahead.off(device))
            }
        }
    }

    /// The devices of the articles, as far as they are known, as in `/sys/block`; nobody else uses them.
    fn devices(&self) -> Vec<String> {
        let volumes = self.volumes.iter();
        let names = volumes.filter_map(|volume| device_of(volume.at()).ok());
        let pooled = self.pool.iter().flat_map(Pool::devices);
        names.chain(pooled).collect()
    }

    /// Where the articles' directory is to be made.
    fn make(&mut self, args: &ToasterArgs, place: Place, room: Room) -> Result<PathBuf, Error> {
        let directory = &args.directory;
        let (file_system, disks) = match place {
            Place::Directory => {
                return match &args.at {
                    Some(at) => Ok(at.clone()),
                    None => self.folder(directory.join("at")),
                };
            }
            Place::Tmpfs => {
                can_mount()?;
                let at = self.folder(directory.join("tmpfs"))?;
                let size = format!("size={}", room.octets);
                let words = ["-t", "tmpfs", "-o", &size, "tmpfs"].map(AsRef::as_ref);
                call("mount", words.into_iter().chain([at.as_os_str()]))?;
                self.mounted.push(Mounted(at.clone()));
                return Ok(at);
            }
            Place::Stripe | Place::Mirror => {
                let profile = match place {
                    Place::Stripe => "raid0",
                    _ => "raid1",
                };
                // Each of the mirrored ones has everything twice.
                let each = 2 * room.octets / DISKS;
                let pool = self
                    .pool
                    .insert(Pool::new(directory, profile, DISKS, each)?);
                return Ok(pool.at().to_path_buf());
            }
            Place::Ext4 | Place::Usenetfs => (FileSystem::Ext4, 1),
            Place::Joined => (FileSystem::Ext4, DISKS),
            Place::Xfs => (FileSystem::Xfs, 1),
            Place::Btrfs => (FileSystem::Btrfs, 1),
            Place::Ext2 => (FileSystem::Ext2, 1),
        };
        for disk in 1..=disks {
            let disk = self.folder(directory.join(format!("disk{disk}")))?;
            // Which share of the articles is on which of several is up to them.
            let volume = Volume::with_room(&disk, file_system, room.files, room.octets)?;
            self.volumes.push(volume);
        }
        let last = self.volumes.last().ok_or(Error::WorkerLost)?;
        Ok(last.at().to_path_buf())
    }

    /// Makes a directory that goes again.
    fn folder(&mut self, folder: PathBuf) -> Result<PathBuf, Error> {
        make(&folder)?;
        self.folders.0.push((folder.clone(), false));
        Ok(folder)
    }

    /// Figure 1: `alt` is a mount of the first disk, but for `alt.binaries`; some hierarchies are links to the second and third.
    fn join(&mut self) -> Result<(), Error> {
        let [first, linked @ .., last] = &self.volumes[..] else {
            return Err(Error::WorkerLost);
        };
        for (volume, hierarchies) in linked.iter().zip(LINKED) {
            for hierarchy in hierarchies {
                let target = volume.at().join(hierarchy);
                make(&target)?;
                link(&target, &self.articles.join(hierarchy))?;
            }
        }
        let binaries = last.at().join("alt.binaries");
        make(&binaries)?;
        link(&binaries, &first.at().join("binaries"))?;
        let alt = self.articles.join("alt");
        make(&alt)?;
        let words = ["--bind".as_ref(), first.at().as_os_str(), alt.as_os_str()];
        call("mount", words)?;
        self.mounted.push(Mounted(alt));
        Ok(())
    }

    /// What was not quite as it was asked for.
    pub(super) fn remarks(&self) -> Vec<String> {
        let below = self.read_ahead.why_below.iter();
        below
            .map(|why| format!("image files are still read ahead: no direct I/O ({why})"))
            .collect()
    }

    /// Nothing is in memory only: until then what came before costs what comes next.
    pub(super) fn settle(&self, machine: Machine<'_>) -> Result<(), Error> {
        for volume in self.volumes.iter().chain(&self.home_volume) {
            volume.settle(machine.disk)?;
        }
        if let Some(pool) = &self.pool {
            pool.settle(machine.disk)?;
        }
        for at in [&self.home, &self.articles] {
            machine.disk.sync_file_system(at)?;
        }
        Ok(())
    }

    /// What the devices of the articles did so far.
    pub(super) fn look(&self, machine: Machine<'_>) -> Vec<DeviceLook> {
        let devices = self.devices();
        let looks = devices
            .iter()
            .filter_map(|name| DeviceLook::take(machine.disk, name));
        looks.collect()
    }
}

/// What all devices did together; nothing is known where there are none.
pub(super) fn cost(before: &[DeviceLook], after: &[DeviceLook]) -> Option<DeviceCost> {
    let costs = after
        .iter()
        .zip(before)
        .map(|(after, before)| after.since(before));
    costs.reduce(|sum, one| DeviceCost {
        read_octets: sum.read_octets + one.read_octets,
        written_octets: sum.written_octets + one.written_octets,
        reads: sum.reads + one.reads,
        writes: sum.writes + one.writes,
        flushes: sum.flushes + one.flushes,
        // A mean of several has no weight here.
        service_ms: None,
    })
}

/// Why caches cannot be emptied, if they cannot.
pub(super) fn why_not_cold() -> Option<String> {
    forget_everything().err().map(|error| error.to_string())
}

fn make(directory: &Path) -> Result<(), Error> {
    fs::create_dir_all(directory).map_err(|source| failed("make", directory, source))
}

fn link(target: &Path, at: &Path) -> Result<(), Error> {
    symlink(target, at).map_err(|source| failed("make the link", at, source))
}

fn failed(what: &str, path: &Path, source: std::io::Error) -> Error {
    let what = format!("cannot {what} {}", path.display());
    Error::Stream { what, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The device read nothing ahead, and the file below it was read ahead as any.
    #[test]
    fn without_read_ahead_an_image_is_not_read_ahead_either() {
        let dir = tempfile::tempdir().unwrap();
        let volume = match Volume::with_room(dir.path(), FileSystem::Ext4, 10, 16 << 20) {
            Ok(volume) => volume,
            Err(error @ Error::Missing { .. }) => return println!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        };
        let device = device_of(volume.at()).unwrap();
        let block = Path::new("/sys/block").join(&device);
        let read = |name: &str| {
            let text = fs::read_to_string(block.join(name)).unwrap();
            text.trim().to_owned()
        };
        let before = read("queue/read_ahead_kb");
        let mut read_ahead = ReadAhead::default();
        read_ahead.off(&device).unwrap();
        assert_eq!(read("queue/read_ahead_kb"), "0");
        // Without direct I/O it is said why.
        let is_direct = read("loop/dio") == "1";
        assert_eq!(is_direct, read_ahead.why_below.is_none(), "{read_ahead:?}");
        drop(read_ahead);
        assert_eq!(read("queue/read_ahead_kb"), before);
    }
}
