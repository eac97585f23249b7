//! A directory with an article in each file, at any depth: a tradspool, or what somebody unpacked.
//!
//! Directories are read one at a time, names in the order of their numbers.  Names that begin with a dot are no articles.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use newsreel_host::{Disk, ErrorKind, read_whole};

use super::Takes;
use crate::posting;

/// Directories in directories, at most: a group's name has at most so many parts, and a link may lead to where it is.
const DEPTH_MAX: usize = 64;

/// Hands over the articles of a tree; `told` is told of each file.
pub(crate) fn take(
    disk: &dyn Disk,
    root: &Path,
    taker: &mut dyn Takes,
    told: &mut dyn FnMut(),
) -> Result<()> {
    each(disk, root, &mut |path| {
        told();
        taker.damages().begin(path.display().to_string());
        match read_whole(disk, path, posting::ARTICLE_OCTETS_MAX) {
            Ok(article) => taker.article(&article),
            // Somebody removed it meanwhile, as expiry does, or it is a link that leads nowhere.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => {
                taker.damages().add(None, &error.to_string());
                Ok(())
            }
        }
    })
}

/// How many files there are.
pub(crate) fn count(disk: &dyn Disk, root: &Path) -> Result<u64> {
    let mut many = 0;
    each(disk, root, &mut |_| {
        many += 1;
        Ok(())
    })?;
    Ok(many)
}

fn each(disk: &dyn Disk, root: &Path, visit: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    let mut open: Vec<(PathBuf, usize)> = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        let entries = disk.list(&folder);
        let mut entries = match (entries, depth) {
            (Ok(entries), _) => entries,
            // It went meanwhile.
            (Err(error), 1..) if error.kind() == ErrorKind::NotFound => continue,
            (Err(error), _) => {
                return Err(error).with_context(|| format!("cannot read {}", folder.display()));
            }
        };
        entries.retain(|entry| !entry.name.starts_with('.'));
        entries.sort_by(|a, b| order(&a.name).cmp(&order(&b.name)));
        let (folders, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|it| it.is_dir);
        for file in files {
            visit(&folder.join(file.name))?;
        }
        if depth < DEPTH_MAX {
            let deeper = folders.iter().rev();
            open.extend(deeper.map(|it| (folder.join(&it.name), depth + 1)));
        }
    }
    Ok(())
}

/// Numbers by their value, in front of other names.
fn order(name: &str) -> (bool, u64, &str) {
    match name.parse::<u64>() {
        Ok(number) => (false, number, name),
        Err(_) => (true, 0, name),
    }
}
