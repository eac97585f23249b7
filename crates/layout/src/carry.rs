//! Moving one entry to where it belongs: a rename that never replaces, the bucket made when it is missing.

use std::path::PathBuf;

use newsreel_host::folder::{Entry, Facts};
use newsreel_host::{ErrorKind, Folder};

use crate::error::{Error, Result};
use crate::managed::make_bucket;
use crate::mark::Layout;
use crate::name::Name;

/// Moves an entry of `from` to its place in `to`, which is laid out so; buckets are made like `like`.
///
/// When both places have it as one file under two names (a file system without a journal after a power cut), one name
/// goes: a rename would leave both.  When it is gone already, that is well.
pub(crate) fn carry(
    from: &Folder,
    entry: &Entry,
    to: &Folder,
    layout: Layout,
    like: &Facts,
) -> Result<()> {
    let at = entry.path();
    let (place, bucket) = match (layout, Name::parse(&entry.name)) {
        (Layout::Managed(algorithm), Ok(name)) => {
            let bucket = algorithm.bucket(name);
            (algorithm.place(name), Some((algorithm, bucket)))
        }
        _ => (PathBuf::from(&entry.name), None),
    };
    let moved = match from.rename_new(at, to, &place) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            if let Some((algorithm, bucket)) = bucket {
                make_bucket(to, algorithm, bucket, like)?;
            }
            from.rename_new(at, to, &place)
        }
        other => other,
    };
    match moved {
        Err(e) if e.kind() == ErrorKind::Exists => {
            if !from.facts_of(at)?.is_same_as(&to.facts_of(&place)?) {
                return Err(Error::Clash {
                    path: from.path().join(at),
                    other: to.path().join(place),
                });
            }
            Ok(from.remove(at)?)
        }
        Err(e) if e.kind() == ErrorKind::NotFound => match from.facts_of(at) {
            Err(gone) if gone.kind() == ErrorKind::NotFound => Ok(()),
            _ => Err(e.into()),
        },
        other => Ok(other?),
    }
}
