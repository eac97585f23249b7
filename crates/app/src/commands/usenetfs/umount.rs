//! `newsreel usenetfs umount`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use newsreel_host::{Clock as _, Folder, RealClock, mounts};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Waits until the server has ended, so that the directory can be converted at once; but not for that of a mount with \
                        --shared, beside which others may go on.\n\n\
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

/// So long it is looked whether the server has ended, with a pause between; a look takes its time, too.
const ENDS_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &Args) -> Result<()> {
    let mounted = super::mounted_at(&args.at)?;
    take_off(&mounted.at, args.lazy)?;
    if args.lazy {
        return Ok(());
    }
    // Whose disk has failed is unmounted all the same, and nobody converts it now.
    let Ok(lower) = Folder::open(&mounted.source) else {
        return Ok(());
    };
    let clock = RealClock::default();
    let until = clock.monotonic().saturating_add(ENDS_WITHIN);
    loop {
        // Others who share it may go on.
        if lower.lock_shared().is_ok() {
            return Ok(());
        }
        if clock.monotonic() >= until {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    bail!(
        "{} is unmounted, but {} is still locked: its server has not ended (it is stopped, or waits for its disk), or somebody else uses it",
        mounted.at.display(),
        mounted.source.display()
    )
}

/// Takes a mount off.  Its server is not asked for anything: it may be stopped, and who waits for it uses the mount.
fn take_off(at: &Path, lazily: bool) -> Result<()> {
    let error = match mounts::unmount(at, lazily) {
        Err(newsreel_host::Error::Io { source, .. }) => source,
        other => return Ok(other?),
    };
    match error.kind() {
        ErrorKind::PermissionDenied => mounts::unmount_by_helper(at, lazily).with_context(|| {
            format!(
                "cannot take off {}, which only root and the user who mounted it can",
                at.display()
            )
        }),
        ErrorKind::ResourceBusy => bail!(
            "{} is in use; --lazy takes it off its place at once, and it ends with its last user",
            at.display()
        ),
        _ => Err(error).with_context(|| format!("cannot take off {}", at.display())),
    }
}
