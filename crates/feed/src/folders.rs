//! Where feeds write on this machine, and that no two of them write to one place, whatever each calls it.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use newsreel_host::Disk;

use crate::config::{FeedConfig, FeedKind, PeerConfig};

/// Where batches go in a spool, unless the configuration says.
const FOLDER: &str = "batches/out";

/// Where a feed's batches go.
pub(crate) fn folder_of(spool: &Path, peer: &PeerConfig, feed: &FeedConfig) -> PathBuf {
    match feed.folder.as_os_str().is_empty() {
        true => spool.join(FOLDER).join(&peer.name),
        false => feed.folder.clone(),
    }
}

/// Feeds that would write over what others write, whatever their paths are by their letters: key and what would be right.  Paths are whole.
/// Waits for the disk.
#[must_use]
pub fn shared_places(peers: &[PeerConfig], disk: &dyn Disk, spool: &Path) -> Vec<(String, String)> {
    let (mut problems, mut before) = (Vec::new(), Vec::<FeedConfig>::new());
    for (at, peer) in peers.iter().enumerate() {
        for (place, feed) in peer.feed.iter().enumerate() {
            let real = with_real_places(disk, spool, peer, feed);
            let shared = before.iter().find_map(|other| real.shares_with(other));
            if let Some((key, right)) = shared {
                problems.push((format!("[{at}].feed[{place}].{key}"), right.to_owned()));
            }
            before.push(real);
        }
    }
    problems
}

/// A feed with its places as the disk has them.
fn with_real_places(
    disk: &dyn Disk,
    spool: &Path,
    peer: &PeerConfig,
    feed: &FeedConfig,
) -> FeedConfig {
    let mut feed = feed.clone();
    match feed.kind {
        FeedKind::Batch => feed.folder = real(disk, &folder_of(spool, peer, &feed)),
        FeedKind::File => feed.file = real(disk, &feed.file),
        FeedKind::Nntp | FeedKind::Program => {}
    }
    feed
}

/// A path without symbolic links and dots; of what is not there yet, as it will be when it is made.
fn real(disk: &dyn Disk, path: &Path) -> PathBuf {
    let mut missing: Vec<&OsStr> = Vec::new();
    let mut there = path;
    loop {
        if let Ok(mut real) = disk.canonical(there) {
            for name in missing.into_iter().rev() {
                match name == Component::ParentDir.as_os_str() {
                    true => drop(real.pop()),
                    false => real.push(name),
                }
            }
            return real;
        }
        let (Some(parent), Some(last)) = (there.parent(), there.components().next_back()) else {
            return path.to_owned();
        };
        missing.push(last.as_os_str());
        there = parent;
    }
}
