//! A file system of its own in an image file, whose power can be cut.
//!
//! A cut is `FS_IOC_SHUTDOWN` without a flush of the journal: what was not made durable before is gone when the file system
//! is mounted again.  What is mounted here goes with its [`Image`].  The tools are the system's: who lacks one, or may not
//! mount, gets an error that says so, for the test to skip with.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// The kinds that can be cut off: `FS_IOC_SHUTDOWN` loses what it should on these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageKind {
    /// ext4 with its defaults.
    Ext4,
    /// XFS with its defaults.
    Xfs,
}

impl ImageKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Ext4, Self::Xfs];

    /// What makes it, and the octets it needs; nothing is written to most of them.
    const fn made_by(self) -> (&'static str, &'static str, u64) {
        match self {
            Self::Ext4 => ("mkfs.ext4", "-qF", 128 << 20),
            Self::Xfs => ("mkfs.xfs", "-qf", 300 << 20),
        }
    }
}

/// So often it is tried to unmount, and looked whether it is gone: whoever still used it may take a moment to end.
const TRIES: u32 = 1500;
const PAUSE: Duration = Duration::from_millis(20);

/// A mounted file system.
#[derive(Debug)]
pub struct Image {
    file: PathBuf,
    at: PathBuf,
}

impl Image {
    /// Makes one in a file beside the directory `at`, and mounts it there.
    ///
    /// # Errors
    /// When a tool is missing, or nothing can be mounted.
    pub fn new(at: &Path, kind: ImageKind) -> Result<Self> {
        let (program, option, octets) = kind.made_by();
        let (file, at) = (at.with_extension("image"), at.to_path_buf());
        // Asked for first: without it nothing could be cut.
        run("xfs_io", [OsStr::new("-V")])?;
        let octets = octets.to_string();
        run(
            "truncate",
            ["-s".as_ref(), octets.as_ref(), file.as_os_str()],
        )?;
        run(program, [option.as_ref(), file.as_os_str()])?;
        run("mkdir", ["-p".as_ref(), at.as_os_str()])?;
        let image = Self { file, at };
        image.mount()?;
        Ok(image)
    }

    /// Where it is mounted.
    #[must_use]
    pub fn at(&self) -> &Path {
        &self.at
    }

    /// Cuts the power: from now on everything that is asked of it fails.
    ///
    /// # Errors
    /// When it cannot be cut.
    pub fn cut_power(&self) -> Result<()> {
        let words = ["-x", "-c", "shutdown"].map(OsStr::new);
        run("xfs_io", words.into_iter().chain([self.at.as_os_str()])).map(drop)
    }

    /// Mounts it again, as after a power cut.
    ///
    /// # Errors
    /// When somebody goes on using it, or it cannot be mounted.
    pub fn restart(&self) -> Result<()> {
        patiently(|| run("umount", [self.at.as_os_str()]).map(drop))?;
        patiently(|| self.is_gone())?;
        self.mount()
    }

    /// A name space for mounts that somebody made meanwhile has it too.  For as long as that lives, the file system that was
    /// cut off lives on, and would be what is mounted again.
    fn is_gone(&self) -> Result<()> {
        let held = run("losetup", [OsStr::new("-j"), self.file.as_os_str()])?;
        if !held.is_empty() {
            bail!("{} is still in use: {held}", self.file.display());
        }
        Ok(())
    }

    fn mount(&self) -> Result<()> {
        let words = [OsStr::new("-o"), OsStr::new("loop")];
        let paths = [self.file.as_os_str(), self.at.as_os_str()];
        run("mount", words.into_iter().chain(paths)).map(drop)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // Whatever went wrong has been told; here only nothing may stay mounted.
        let _ = run("umount", [OsStr::new("-l"), self.at.as_os_str()]);
    }
}

/// Tries something until it works, or that is not to be hoped for any more.
fn patiently(mut act: impl FnMut() -> Result<()>) -> Result<()> {
    for _ in 1..TRIES {
        if act().is_ok() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    act()
}

/// Runs a program; what it printed.
fn run<'a>(program: &str, words: impl IntoIterator<Item = &'a OsStr>) -> Result<String> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    let output = command
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("{program}: {}", why.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
