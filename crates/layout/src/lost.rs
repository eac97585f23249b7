//! The algorithm of a directory that has lost its attribute to a program that copies none: how its files lie tells it.
//!
//! Without the attribute the set-uid bit means `yyy`.  What lies as another algorithm has it would be out of view, and a repair would
//! make it worse.

use std::os::unix::ffi::OsStrExt as _;

use newsreel_host::Folder;
use newsreel_host::folder::Kind;

use crate::algorithm::Algorithm;
use crate::error::Result;
use crate::managed::open_if_there;
use crate::mark::ATTRIBUTE;
use crate::name::written_number;
use crate::walk::walk;

/// What a directory is that has the set-uid bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// What its mark says.
    No,
    /// It has no attribute, and lies as this algorithm has it.
    By(Algorithm),
    /// It has no attribute, and all of so many things lie flat.
    Flat(u64),
}

/// The algorithm whose view finds more of a managed directory without an attribute than that of `yyy` does, and the most, when there is
/// one.
pub(crate) fn algorithm(folder: &Folder) -> Result<Lost> {
    if folder.attribute(ATTRIBUTE)?.is_some() {
        return Ok(Lost::No);
    }
    let (mut most, all) = in_view(folder, Algorithm::YYY)?;
    let mut best = None;
    if most == all {
        return Ok(Lost::No);
    }
    // Where several find the same, all of them are right.
    let others = Algorithm::ALL.into_iter().chain(range(folder)?);
    for algorithm in others.filter(|it| *it != Algorithm::YYY) {
        let (found, _) = in_view(folder, algorithm)?;
        if found > most {
            (most, best) = (found, Some(algorithm));
        }
    }
    Ok(match best {
        Some(algorithm) => Lost::By(algorithm),
        None if most == 0 => Lost::Flat(all),
        None => Lost::No,
    })
}

/// Whether most of what is in a directory lies as an algorithm has it; nothing at all does.
pub(crate) fn lies_by(folder: &Folder, algorithm: Algorithm) -> Result<bool> {
    let (found, all) = in_view(folder, algorithm)?;
    Ok(all == 0 || found > all - found)
}

/// How many entries its view finds, and how many there are.
fn in_view(folder: &Folder, algorithm: Algorithm) -> Result<(u64, u64)> {
    let (mut found, mut all) = (0, 0);
    walk(folder, algorithm, &mut |lot| {
        let entries = lot.entries.iter();
        found += entries.filter(|it| lot.is_in_view(algorithm, it)).count() as u64;
        all += lot.entries.len() as u64;
        Ok(())
    })?;
    Ok((found, all))
}

/// The range whose buckets begin where these do; of a single one, a range that has all its numbers.
fn range(folder: &Folder) -> Result<Option<Algorithm>> {
    let (mut divisor, mut single) = (0, None);
    for entry in folder.entries()? {
        let entry = entry?;
        let first = entry.name.as_bytes().strip_prefix(b"r");
        if let Some(first) = first.and_then(written_number)
            && entry.kind == Kind::Folder
        {
            divisor = common_divisor(divisor, first);
            single = Some(entry);
        }
    }
    if divisor == 0
        && let Some(bucket) = single
        && let Some(bucket) = open_if_there(folder, bucket.path())?
    {
        for entry in bucket.entries()? {
            let number = written_number(entry?.name.as_bytes()).unwrap_or(0);
            divisor = divisor.max((number + 1).next_power_of_two());
        }
    }
    Ok(u32::try_from(divisor).ok().and_then(Algorithm::range))
}

const fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}
