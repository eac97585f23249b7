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
    // Of a dead server nothing is known, and nothing has to be waited for.
    let is_shared = super::status::of(&mounted.at).is_ok_and(|status| status["shared"] == true);
    match mounts::unmount(&mounted.at, args.lazy) {
        Err(newsreel_host::Error::Io { source, .. })
            if source.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            mounts::unmount_by_helper(&mounted.at, args.lazy)?;
        }
        other => other?,
    }
    if args.lazy {
        return Ok(());
    }
    // Whose disk has failed is unmounted all the same, and nobody converts it now.
    let Ok(lower) = Folder::open(&mounted.source) else {
        return Ok(());
    };
    for _ in 0..LOOKS {
        let lock = if is_shared {
            // Others may go on.
            lower.lock_shared()
        } else {
            lower.lock()
        };
        if lock.is_ok() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    bail!(
        "{} is unmounted, but {} is still locked: its server has not ended, or somebody else uses it",
        mounted.at.display(),
        mounted.source.display()
    )
}
