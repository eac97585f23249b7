//! A view in short: how many entries, and a sum over names, inodes and lengths that their order does not matter to.

use std::os::unix::ffi::OsStrExt;

use newsreel_host::Folder;
use newsreel_host::folder::{Entry, Kind};

use crate::error::Result;
use crate::hash::hash_of;
use crate::mark::{Fingerprint, Layout};
use crate::walk::walk;

/// Looks at every entry of a view.
pub(super) fn take(folder: &Folder, layout: Layout) -> Result<Fingerprint> {
    let mut sum = Fingerprint::default();
    match layout {
        Layout::Flat => {
            for entry in folder.entries()? {
                add(&mut sum, folder, &entry?)?;
            }
        }
        Layout::Managed(algorithm) => walk(folder, algorithm, &mut |lot| {
            let seen = lot.entries.iter().filter(|e| lot.is_in_view(algorithm, e));
            for entry in seen {
                add(&mut sum, lot.folder, entry)?;
            }
            Ok(())
        })?,
    }
    Ok(sum)
}

fn add(sum: &mut Fingerprint, folder: &Folder, entry: &Entry) -> Result<()> {
    let facts = folder.facts_of(entry.path())?;
    // A directory's length is the file system's own affair.
    let len = if facts.kind == Kind::Folder {
        0
    } else {
        facts.len
    };
    let mut octets = entry.name.as_bytes().to_vec();
    octets.extend(facts.inode.to_le_bytes());
    octets.extend(len.to_le_bytes());
    sum.entries += 1;
    sum.sum = sum.sum.wrapping_add(hash_of(&octets));
    Ok(())
}
