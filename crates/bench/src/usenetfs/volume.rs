//! A file system in an image file, mounted for as long as it is measured, and a view of it mounted by the program.
//!
//! Invariant: what is mounted here is unmounted when it goes, and its image file is removed.
#![expect(
    clippy::disallowed_methods,
    reason = "the files of a measurement are no spool of ours"
)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use newsreel_host::mounts::{canonical, mount_points};
use newsreel_host::{Disk, OpenMode};

use crate::error::Error;

/// A file system to measure on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// ext2 whose directories are searched from their beginning, as in 1998.
    Ext2,
    /// ext4 with its defaults: names are found by a hash.
    Ext4,
    /// XFS with its defaults: names are found in a tree.
    Xfs,
    /// btrfs with its defaults: nothing is overwritten in its place.
    Btrfs,
}

impl FileSystem {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ext2, Self::Ext4, Self::Xfs, Self::Btrfs];

    /// Its name, on the command line and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// The command that makes it in a file, for so many inodes.
    fn command(self, inodes: u64) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Ext2 => &["mke2fs", "-qF", "-t", "ext2", "-O", "^dir_index"],
            // Nothing is left for the kernel to write while others are counted.
            Self::Ext4 => &["mke2fs", "-qF", "-t", "ext4", "-E", LAZY_NOT],
            Self::Xfs => &["mkfs.xfs", "-qf"],
            Self::Btrfs => &["mkfs.btrfs", "-qf"],
        };
        let mut words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        if matches!(self, Self::Ext2 | Self::Ext4) {
            words.extend(["-N".to_owned(), inodes.to_string()]);
        }
        words
    }
}

/// Tables of inodes and the journal are written when the file system is made.
const LAZY_NOT: &str = "lazy_itable_init=0,lazy_journal_init=0";

/// An image, mounted.
#[derive(Debug)]
pub(crate) struct Volume {
    image: PathBuf,
    at: PathBuf,
    file_system: FileSystem,
}

/// Inodes for buckets and what the file system needs itself: the two-level algorithms make ten thousand directories.
const INODES_BESIDE: u64 = 16_384;
/// A file of 2 KiB takes a block of 4 KiB, and its share of everything else.
const BYTES_A_FILE: u64 = 12 << 10;
const BYTES_BESIDE: u64 = 512 << 20;
/// Octets of an image that are written with one call.
const FILLED_AT_ONCE: u64 = 1 << 20;
/// So often a file system is taken off that is in use, with a pause between.
const LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

impl Volume {
    /// Makes one for so many files in `directory` and mounts it there.
    pub(super) fn new(
        directory: &Path,
        file_system: FileSystem,
        files: u64,
    ) -> Result<Self, Error> {
        let octets = files * BYTES_A_FILE + BYTES_BESIDE;
        Self::with_room(directory, file_system, files, octets)
    }

    /// Makes one with room for so many files and octets.
    pub(crate) fn with_room(
        directory: &Path,
        file_system: FileSystem,
        files: u64,
        octets: u64,
    ) -> Result<Self, Error> {
        Self::named(directory, file_system.name(), file_system, (files, octets))
    }

    /// The same under a name of its own, so that there can be several.
    pub(crate) fn named(
        directory: &Path,
        name: &str,
        file_system: FileSystem,
        (files, octets): (u64, u64),
    ) -> Result<Self, Error> {
        let image = directory.join(format!("{name}.image"));
        let at = directory.join(name);
        // Removed with it, however far this comes.
        let volume = Self {
            image,
            at,
            file_system,
        };
        can_mount()?;
        can_loop()?;
        write_out(&volume.image, octets)?;
        let (image, at) = (volume.image.as_os_str(), volume.at.as_os_str());
        let words = file_system.command(files + INODES_BESIDE);
        let (program, options) = words.split_first().ok_or(Error::WorkerLost)?;
        call(program, options.iter().map(OsStr::new).chain([image]))?;
        call("mkdir", ["-p".as_ref(), at])?;
        volume.mount()?;
        Ok(volume)
    }

    fn mount(&self) -> Result<(), Error> {
        self.mount_as(&[])
    }

    fn mount_as(&self, words: &[&str]) -> Result<(), Error> {
        let words = words.iter().chain(&["-o", "loop,noatime"]).map(OsStr::new);
        let words = words.chain([self.image.as_os_str(), self.at.as_os_str()]);
        call("mount", words).map_err(|error| unless_in_kernel(self.file_system.name(), error))
    }

    /// Fills it. ext2, where a name is looked for in the whole directory before it is added (an hour for half a million), has indexes
    /// meanwhile: e2fsck takes them off, and puts names into the order of their inodes, each of which was the lowest that was free.
    /// So it is the directory that would have grown without: the same names in the same order. Nobody may use it.
    pub(super) fn filled(&self, fill: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        if !matches!(self.file_system, FileSystem::Ext2) {
            return fill();
        }
        self.take_off()?;
        self.tune(
            "dir_index",
            &["feature flex_bg", "ssv log_groups_per_flex 15"],
        )?;
        self.mount_as(&["-t", "ext4"])?;
        let filled = fill();
        self.take_off()?;
        self.tune(
            "^dir_index",
            &["feature -flex_bg", "ssv log_groups_per_flex 0"],
        )?;
        self.mount()?;
        filled
    }

    /// Gives or takes features of an ext2 that is not mounted: indexes, and one region of groups, in which inodes are taken in order.
    fn tune(&self, index: &str, requests: &[&str]) -> Result<(), Error> {
        let image = self.image.as_os_str();
        call("tune2fs", ["-O".as_ref(), index.as_ref(), image])?;
        for request in requests {
            call(
                "debugfs",
                ["-w".as_ref(), "-R".as_ref(), request.as_ref(), image],
            )?;
        }
        // It says by its code that it changed something.
        let mut check = Command::new("e2fsck");
        told_with(check.arg("-fyD").arg(image), "", &[0, 1]).map(drop)
    }

    /// Nothing of it is in memory only, nor of the image it lies in: what the image's file system is still to write would be in
    /// the way, and could not be forgotten.
    pub(crate) fn settle(&self, disk: &dyn Disk) -> Result<(), Error> {
        disk.sync_file_system(&self.at)?;
        Ok(disk.open(&self.image, OpenMode::ReadWrite)?.sync_all()?)
    }

    /// Nothing of it is in memory: it is taken off, its image is forgotten, and it is mounted again. Nobody may use it.
    pub(crate) fn cool(&self, disk: &dyn Disk) -> Result<(), Error> {
        self.take_off()?;
        let image = disk.open(&self.image, OpenMode::ReadWrite)?;
        image.sync_all()?;
        image.drop_cache(0, image.len()?)?;
        self.mount()
    }

    fn take_off(&self) -> Result<(), Error> {
        over_and_over(|| call("umount", [self.at.as_os_str()]))
    }

    pub(crate) fn at(&self) -> &Path {
        &self.at
    }
}

/// Makes an image file, every block of it, as a disk has all of its own: else the file system below had to find room, and to keep its
/// own journal, at each sync above.
pub(crate) fn write_out(image: &Path, octets: u64) -> Result<(), Error> {
    let parts = format!("count={}", octets.div_ceil(FILLED_AT_ONCE));
    let from = ["if=/dev/zero", "bs=1M", "conv=fsync", "status=none", &parts];
    let mut of = OsString::from("of=");
    of.push(image);
    call("dd", from.iter().map(OsStr::new).chain([of.as_os_str()]))
}

/// Takes off what is mounted there.
pub(crate) fn unmount(at: &Path) -> Result<(), Error> {
    over_and_over(|| call("umount", [at.as_os_str()]))
        .or_else(|_| call("umount", ["-l".as_ref(), at.as_os_str()]))
}

/// Takes something off that may be busy: whoever used it until now may be about to end.
fn over_and_over(take_off: impl Fn() -> Result<(), Error>) -> Result<(), Error> {
    let mut result = take_off();
    for _ in 1..LOOKS {
        if result.is_ok() {
            break;
        }
        std::thread::sleep(PAUSE);
        result = take_off();
    }
    result
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Whatever went wrong has been told; here only nothing may stay.
        let _ = unmount(&self.at);
        let _ = fs::remove_file(&self.image);
        let _ = fs::remove_dir(&self.at);
    }
}

/// A directory, mounted by the program at another place.
#[derive(Debug)]
pub(crate) struct View<'a> {
    program: &'a Path,
    at: PathBuf,
}

impl<'a> View<'a> {
    pub(super) fn new(program: &'a Path, lower: &Path, at: &Path) -> Result<Self, Error> {
        Self::with(program, &["usenetfs", "mount"], lower, at)
    }

    /// One in which directories made in managed ones are managed.
    pub(crate) fn inheriting(program: &'a Path, lower: &Path, at: &Path) -> Result<Self, Error> {
        Self::with(program, &["usenetfs", "mount", "--inherit"], lower, at)
    }

    fn with(program: &'a Path, words: &[&str], lower: &Path, at: &Path) -> Result<Self, Error> {
        call("mkdir", ["-p".as_ref(), at.as_os_str()])?;
        let words = words.iter().map(OsStr::new);
        let words = words.chain([lower.as_os_str(), at.as_os_str()]);
        call(program, words)?;
        Ok(Self {
            program,
            at: at.to_path_buf(),
        })
    }

    pub(crate) fn at(&self) -> &Path {
        &self.at
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        let words = ["usenetfs", "umount"].map(OsStr::new);
        let _ =
            over_and_over(|| call(self.program, words.into_iter().chain([self.at.as_os_str()])));
        let _ = fs::remove_dir(&self.at);
    }
}

/// Forgets names and inodes, of everything on this machine; what lies in blocks stays.
pub(super) fn forget_names() -> Result<(), Error> {
    forget("2")
}

/// Forgets blocks, too, as far as they are written: of everything on this machine.
pub(crate) fn forget_everything() -> Result<(), Error> {
    forget("3")
}

fn forget(what: &str) -> Result<(), Error> {
    fs::write("/proc/sys/vm/drop_caches", what).map_err(|source| Error::Stream {
        what: "cannot make the kernel forget what it has in memory (as root, /proc/sys/vm/drop_caches)".to_owned(),
        source,
    })
}

/// The name of the device in `/sys/block` that is mounted at `at`.
pub(crate) fn device_of(at: &Path) -> Result<String, Error> {
    let at = canonical(at);
    let mounts = mount_points()?;
    let found = mounts.iter().rev().find(|mount| mount.at == at);
    let name = found.and_then(|mount| mount.source.file_name());
    let name = name.ok_or_else(|| Error::Program {
        program: "the table of mounts".to_owned(),
        why: format!("nothing is mounted at {}", at.display()),
    })?;
    Ok(name.to_string_lossy().into_owned())
}

pub(crate) fn call<'a>(
    program: impl AsRef<OsStr>,
    words: impl IntoIterator<Item = &'a OsStr>,
) -> Result<(), Error> {
    told(Command::new(program).args(words), "").map(drop)
}

/// Runs a program with this on its standard input; what it says.
pub(crate) fn told(command: &mut Command, input: &str) -> Result<Vec<u8>, Error> {
    told_with(command, input, &[0])
}

/// The same, where it ends well with any of these codes.
fn told_with(command: &mut Command, input: &str, codes: &[i32]) -> Result<Vec<u8>, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |why: String| Error::Program {
        program: program.clone(),
        why,
    };
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let child = command.stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| match error.kind() {
        // One that was looked for, and not one that a path says.
        std::io::ErrorKind::NotFound if !program.contains('/') => {
            Error::missing(&program, "there is no such program in PATH")
        }
        _ => failed(error.to_string()),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        let written = stdin.write_all(input.as_bytes());
        written.map_err(|error| failed(error.to_string()))?;
    }
    let output = child.wait_with_output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output
        .status
        .code()
        .is_some_and(|code| codes.contains(&code))
    {
        return Ok(output.stdout);
    }
    Err(failed(
        String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    ))
}

/// Bit of CAP_SYS_ADMIN in the line `CapEff` of a process.
const MAY_MOUNT: u64 = 1 << 21;

/// An error where this process may not mount anything.
pub(crate) fn can_mount() -> Result<(), Error> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    match effective.is_none_or(|bits| bits & MAY_MOUNT != 0) {
        true => Ok(()),
        false => Err(Error::missing(
            "the right to mount",
            "only root has it (CAP_SYS_ADMIN)",
        )),
    }
}

/// An error where a file cannot become a device.
pub(crate) fn can_loop() -> Result<(), Error> {
    opens("/dev/loop-control", "loop devices")
}

/// An error where no program can serve a file system.
pub(crate) fn can_fuse() -> Result<(), Error> {
    opens("/dev/fuse", "FUSE")
}

fn opens(device: &str, what: &str) -> Result<(), Error> {
    let opened = fs::File::options().read(true).write(true).open(device);
    match opened {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::missing(what, format!("{device}: {error}"))),
    }
}

/// What a mount failed for, unless the kernel has no such file system: it has by now what it could load.
pub(crate) fn unless_in_kernel(file_system: &str, error: Error) -> Error {
    match fs::read_to_string("/proc/filesystems") {
        Ok(all) if !is_listed(&all, file_system) => Error::missing(
            &format!("{file_system} in its kernel"),
            format!("it is not in /proc/filesystems ({error})"),
        ),
        _ => error,
    }
}

fn is_listed(all: &str, file_system: &str) -> bool {
    all.lines()
        .any(|line| line.split_ascii_whitespace().next_back() == Some(file_system))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_missing(error: &Error) -> bool {
        matches!(error, Error::Missing { .. })
    }

    /// Every error had been taken for something that is not there.
    #[test]
    fn what_is_not_there_is_told_apart_from_what_fails() {
        let none = call("newsreel-no-such-program", []).unwrap_err();
        assert!(is_missing(&none), "{none}");
        assert!(none.to_string().contains("newsreel-no-such-program"));
        for (program, words) in [
            ("false", &[][..]),
            ("cat", &["/no/such/file"][..]),
            ("/no/such/program", &[]),
        ] {
            let error = call(program, words.iter().map(OsStr::new)).unwrap_err();
            assert!(!is_missing(&error), "{error}");
        }
        let failed = |file_system| {
            let why = "bad superblock".to_owned();
            let program = "mount".to_owned();
            unless_in_kernel(file_system, Error::Program { program, why })
        };
        assert!(is_missing(&failed("no-such-file-system")));
        assert!(!is_missing(&failed("proc")));
        let none = opens("/dev/no-such-device", "devices").unwrap_err();
        assert!(is_missing(&none), "{none}");
        opens("/dev/null", "devices").unwrap();
    }

    #[test]
    fn a_file_system_is_known_by_its_whole_name() {
        let all = "nodev\tproc\n\text4\n";
        assert!(is_listed(all, "proc") && is_listed(all, "ext4"));
        assert!(!is_listed(all, "ext") && !is_listed(all, "nodev"));
    }
}
