//! Several disks as one: btrfs over loop devices, striped or mirrored.
//!
//! Invariant: loop devices and images go with it, however far it came.
#![expect(
    clippy::disallowed_methods,
    reason = "the files of a measurement are no spool of ours"
)]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use newsreel_host::{Disk, OpenMode};

use crate::error::Error;
use crate::usenetfs::volume::{
    call, can_loop, can_mount, told, unless_in_kernel, unmount, write_out,
};

/// The least that btrfs makes a disk of.
const DISK_OCTETS_MIN: u64 = 256 << 20;

/// Disks as one.
#[derive(Debug)]
pub(super) struct Pool {
    at: PathBuf,
    images: Vec<PathBuf>,
    devices: Vec<String>,
    is_mounted: bool,
}

impl Pool {
    /// Makes one of so many disks of so many octets, with a profile of btrfs for data and the rest.
    pub(super) fn new(
        directory: &Path,
        profile: &str,
        disks: u64,
        octets: u64,
    ) -> Result<Self, Error> {
        let mut pool = Self {
            at: directory.join(profile),
            images: Vec::new(),
            devices: Vec::new(),
            is_mounted: false,
        };
        can_mount()?;
        can_loop()?;
        // Before some gigabytes are written in vain.
        told(Command::new("mkfs.btrfs").arg("--version"), "")?;
        for disk in 1..=disks {
            let image = directory.join(format!("{profile}-{disk}.image"));
            pool.images.push(image.clone());
            write_out(&image, octets.max(DISK_OCTETS_MIN))?;
            let mut command = Command::new("losetup");
            let device = told(command.args(["--find", "--show"]).arg(&image), "")?;
            let device = String::from_utf8_lossy(&device).trim().to_owned();
            pool.devices.push(device);
        }
        let made = ["-qf", "-d", profile, "-m", profile];
        let devices = pool.devices.iter().map(String::as_str);
        call(
            "mkfs.btrfs",
            made.into_iter().chain(devices).map(OsStr::new),
        )?;
        call("mkdir", ["-p".as_ref(), pool.at.as_os_str()])?;
        let named = pool
            .devices
            .iter()
            .map(|device| format!(",device={device}"));
        let options = format!("noatime{}", named.collect::<String>());
        let first = pool.devices.first().map_or("", String::as_str);
        let words = ["-t", "btrfs", "-o", &options, first].map(OsStr::new);
        call("mount", words.into_iter().chain([pool.at.as_os_str()]))
            .map_err(|error| unless_in_kernel("btrfs", error))?;
        pool.is_mounted = true;
        Ok(pool)
    }

    pub(super) fn at(&self) -> &Path {
        &self.at
    }

    /// Their names in `/sys/block`.
    pub(super) fn devices(&self) -> Vec<String> {
        let names = self.devices.iter();
        names
            .map(|device| device.trim_start_matches("/dev/").to_owned())
            .collect()
    }

    /// Nothing of it is in memory only, nor of its images.
    pub(super) fn settle(&self, disk: &dyn Disk) -> Result<(), Error> {
        disk.sync_file_system(&self.at)?;
        for image in &self.images {
            disk.open(image, OpenMode::ReadWrite)?.sync_all()?;
        }
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Whatever went wrong has been told; here only nothing may stay.
        if self.is_mounted {
            let _ = unmount(&self.at);
        }
        for device in &self.devices {
            let _ = call("losetup", ["--detach", device].map(OsStr::new));
        }
        for image in &self.images {
            let _ = fs::remove_file(image);
        }
        let _ = fs::remove_dir(&self.at);
    }
}
