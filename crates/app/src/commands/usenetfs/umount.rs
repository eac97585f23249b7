//! `newsreel usenetfs umount`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use newsreel_host::{Folder, mounts};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Waits until the server has ended, so that the directory can be converted at once.\n\n\
                        Example:\n  newsreel usenetfs umount /mnt"
)]
pub(crate) struct Args {
    /// Where it is mounted
    #[arg(value_name = "MOUNTPOINT")]
    at: PathBuf,
    /// Also when it is in use: it is gone from its place at once, and ends with its last user
    #[arg(long)]
    lazy: bool,
}

/// So often it is looked whether the server has ended, with a pause between.
const LOOKS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &Args) -> Result<()> {
    let mounted = super::mounted_at(&args.at)?;
    mounts::unmount(&mounted.at, args.lazy)?;
    if args.lazy {
        return Ok(());
    }
    let lower = Folder::open(&mounted.source)?;
    for _ in 0..LOOKS {
        if lower.lock().is_ok() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    bail!(
        "{} is unmounted, but {} is still locked",
        mounted.at.display(),
        mounted.source.display()
    )
}
