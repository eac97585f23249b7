//! `newsreel usenetfs`: large article directories as many small ones; mounted, converted, verified, weighed.
//!
//! Only arguments are read and reports printed here; what is done is in the crates `usenetfs` and `layout`.

mod advise;
mod convert;
mod helper;
mod mount;
mod status;
mod umount;
mod verify;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use newsreel_host::folder::FileSystemKind;
use newsreel_host::{ErrorKind, Folder, mounts};
use newsreel_layout::Algorithm;
use newsreel_usenetfs::FILE_SYSTEM;

pub(crate) use helper::arguments;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Show a directory, and those below it, with managed ones flat
    Mount(mount::Args),
    /// Take a mount off again
    Umount(umount::Args),
    /// Tell how a mount is and what was asked of it
    Status(status::Args),
    /// Turn a full directory over, or back
    #[command(subcommand)]
    Convert(convert::Verb),
    /// Look for what no view finds, and for what is left over
    Verify(verify::Args),
    /// Say whether managing a directory pays
    Advise(advise::Args),
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    match verb {
        Verb::Mount(args) => mount::run(args),
        Verb::Umount(args) => umount::run(args),
        Verb::Status(args) => status::run(args),
        Verb::Convert(verb) => convert::run(verb),
        Verb::Verify(args) => verify::run(args),
        Verb::Advise(args) => advise::run(args),
    }
}

/// An algorithm of the command line.
pub(super) fn algorithm(text: &str) -> Result<Algorithm, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// So often a lock is looked at again that somebody else may only look at, too.
const LOOKS: u32 = 5;

/// Refuses to work on a directory that is seen through a mount, or that a mount shows.
fn not_mounted(folder: &Folder) -> Result<()> {
    if folder.file_system()?.kind == FileSystemKind::Fuse {
        bail!(
            "{} is seen through a mount; name the directory that is mounted, and unmount it first",
            folder.path().display()
        );
    }
    let mut inner = folder.facts()?;
    let mut above = folder.open_folder("..".as_ref());
    // Who may not look further up cannot have mounted it there either, unless another user did: then the conversion's
    // own lock is all there is.
    while let Ok(level) = above {
        let facts = level.facts()?;
        if facts.is_same_as(&inner) {
            break;
        }
        if is_locked(&level) {
            bail!(
                "{} lies in {}, which is mounted or being converted; end that first",
                folder.path().display(),
                level.path().display()
            );
        }
        inner = facts;
        above = level.open_folder("..".as_ref());
    }
    Ok(())
}

fn is_locked(folder: &Folder) -> bool {
    for _ in 0..LOOKS {
        match folder.lock() {
            Err(error) if error.kind() == ErrorKind::Locked => {}
            _ => return false,
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// What of ours is mounted at a place; the one on top.
fn mounted_at(at: &std::path::Path) -> Result<mounts::MountPoint> {
    let place = mounts::canonical(at);
    let all = mounts::mount_points()?;
    let found = all.into_iter().rfind(|mount| mount.at == place);
    found
        .filter(|mount| mount.kind == FILE_SYSTEM)
        .with_context(|| format!("{} is no mount of newsreel's", at.display()))
}

/// Takes off what is left of a mount whose server has died.
fn clear_dead(at: &std::path::Path) -> Result<()> {
    let Ok(mounted) = mounted_at(at) else {
        return Ok(());
    };
    match Folder::open(&mounted.at) {
        Err(newsreel_host::Error::Io { source, .. })
            if source.kind() == std::io::ErrorKind::NotConnected =>
        {
            Ok(mounts::unmount(&mounted.at, true)?)
        }
        _ => Ok(()),
    }
}

/// Every mount of ours.
fn all_mounted() -> Result<Vec<mounts::MountPoint>> {
    let mut all = mounts::mount_points()?;
    all.retain(|mount| mount.kind == FILE_SYSTEM);
    Ok(all)
}

/// The directories of a list, with all below them if that is wanted; managed ones are not entered by their buckets.
fn directories(named: &[PathBuf], recursive: bool) -> Result<Vec<Folder>> {
    let mut found = Vec::new();
    for path in named {
        let folder = Folder::open(path)?;
        if recursive {
            below(folder, &mut found)?;
        } else {
            found.push(folder);
        }
    }
    Ok(found)
}

fn below(folder: Folder, found: &mut Vec<Folder>) -> Result<()> {
    use newsreel_host::folder::Kind;
    use newsreel_layout::{Cookie, Listing, Name, Opened};
    let mut places = Vec::new();
    let again = folder.open_folder(".".as_ref())?;
    match Opened::new(again)? {
        Opened::Flat(flat) => {
            for entry in flat.entries()? {
                let entry = entry?;
                if entry.kind == Kind::Folder {
                    places.push(PathBuf::from(entry.name));
                }
            }
        }
        Opened::Managed(managed) => {
            Listing::default().fill(&managed, Cookie::DOT_DOT, |entry, _| {
                if let (Kind::Folder, Ok(name)) = (entry.kind, Name::parse(&entry.name)) {
                    places.push(managed.place(name));
                }
                true
            })?;
        }
        Opened::UnderWay(..) => {}
    }
    places.sort_unstable();
    let inner: Vec<_> = places
        .iter()
        .filter_map(|place| folder.open_folder(place).ok())
        .collect();
    found.push(folder);
    inner
        .into_iter()
        .try_for_each(|folder| below(folder, found))
}
