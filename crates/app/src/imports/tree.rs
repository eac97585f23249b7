//! A directory with an article in each file, at any depth: a tradspool, or what somebody unpacked.
//!
//! Directories are read one at a time, names in the order of their numbers.  Names that begin with a dot are no articles.  A link to a
//! directory is followed, once to each.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use newsreel_host::{Disk, Error, ErrorKind, Op, read_whole};

use super::Takes;
use crate::posting;

/// Directories in directories, at most: a group's name has at most so many parts.
const DEPTH_MAX: usize = 64;

/// Hands over the articles of a tree; `told` is told of each file.  What cannot be read is named, the root as all else.
pub(crate) fn take(
    disk: &dyn Disk,
    root: &Path,
    taker: &mut dyn Takes,
    told: &mut dyn FnMut(),
) -> Result<()> {
    each(disk, root, &mut |path, failed| {
        taker.damages().begin(path.display().to_string());
        if let Some(error) = failed {
            taker.damages().unread(&error);
            return Ok(());
        }
        told();
        match read_whole(disk, path, posting::ARTICLE_OCTETS_MAX) {
            Ok(article) => return taker.article(&article),
            // Somebody removed it meanwhile, as expiry does, or it is a link that leads nowhere.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => taker.damages().unread(&error),
        }
        Ok(())
    })
}

/// How many files there are, of what can be read.
pub(crate) fn count(disk: &dyn Disk, root: &Path) -> Result<u64> {
    let mut many = 0;
    each(disk, root, &mut |_, failed| {
        many += u64::from(failed.is_none());
        Ok(())
    })?;
    Ok(many)
}

/// Shows each file, and each directory that cannot be read, with the error.
fn each(
    disk: &dyn Disk,
    root: &Path,
    visit: &mut dyn FnMut(&Path, Option<Error>) -> Result<()>,
) -> Result<()> {
    let mut open: Vec<(PathBuf, usize)> = vec![(root.to_owned(), 0)];
    let mut linked = BTreeSet::from([disk.canonical(root).unwrap_or_default()]);
    while let Some((folder, depth)) = open.pop() {
        let entries = disk.list(&folder);
        let mut entries = match (entries, depth) {
            (Ok(entries), _) => entries,
            // It went meanwhile.
            (Err(error), 1..) if error.kind() == ErrorKind::NotFound => continue,
            (Err(error), _) => {
                visit(&folder, Some(error))?;
                continue;
            }
        };
        entries.retain(|entry| !entry.name.starts_with('.'));
        entries.sort_by(|a, b| order(&a.name).cmp(&order(&b.name)));
        let mut folders = Vec::new();
        for entry in entries {
            let path = folder.join(&entry.name);
            let target = match entry.is_dir {
                true => None,
                false => linked_folder(disk, &path),
            };
            match target {
                Some(target) => {
                    if linked.insert(target) {
                        folders.push(path);
                    }
                }
                None if entry.is_dir => folders.push(path),
                None => visit(&path, None)?,
            }
        }
        if depth < DEPTH_MAX {
            open.extend(folders.into_iter().rev().map(|path| (path, depth + 1)));
            continue;
        }
        for path in folders {
            visit(&path, Some(too_deep(&path)))?;
        }
    }
    Ok(())
}

/// Says of a directory that nothing in it is looked at.
fn too_deep(path: &Path) -> Error {
    let why = format!("it lies below {DEPTH_MAX} directories: take it in by itself");
    Error::from_io(Op::List, path, std::io::Error::other(why))
}

/// The directory that a link leads to.
fn linked_folder(disk: &dyn Disk, path: &Path) -> Option<PathBuf> {
    let is_link = disk.link_target(path).is_ok_and(|target| target.is_some());
    // Of a directory no facts are kept.
    (is_link && disk.facts(path).is_ok_and(|facts| facts.is_none()))
        .then(|| disk.canonical(path).ok())
        .flatten()
}

/// Numbers by their value, in front of other names.
fn order(name: &str) -> (bool, u64, &str) {
    match name.parse::<u64>() {
        Ok(number) => (false, number, name),
        Err(_) => (true, 0, name),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use newsreel_host::{Effect, Fault, FaultyDisk, MemoryDisk, RealDisk, replace_file};

    use super::*;
    use crate::batches::damages::Damages;
    use crate::imports::Counts;

    /// Nobody heard of what lay deeper than is looked.
    #[test]
    fn what_lies_too_deep_is_named() {
        let disk = MemoryDisk::new();
        let last = (0..=DEPTH_MAX).fold(PathBuf::from("/root"), |path, _| path.join("d"));
        let deep = last.join("deep");
        disk.create_dir_all(&deep).unwrap();
        replace_file(&disk, &deep.join("1"), b"not seen").unwrap();
        let mut told = Vec::new();
        each(&disk, Path::new("/root"), &mut |path, failed| {
            told.push((path.to_owned(), failed.map(|error| error.to_string())));
            Ok(())
        })
        .unwrap();
        let [(path, Some(why))] = &told[..] else {
            panic!("{told:?}");
        };
        assert_eq!(path, &last);
        assert!(why.contains("below 64 directories"), "{why}");
    }

    /// A directory that may not be read ended it all; a link to one was taken for damage.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "links are what is tested")]
    fn links_are_followed_and_what_cannot_be_read_is_named() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        for folder in ["root/misc", "root/lost+found", "elsewhere/deeper"] {
            RealDisk.create_dir_all(&place.path().join(folder)).unwrap();
        }
        for (nth, name) in ["root/misc/1", "elsewhere/deeper/1", "root/zz"]
            .iter()
            .enumerate()
        {
            let text = format!(
                "Path: a!b\nFrom: a@b.example\nNewsgroups: misc.test\nSubject: s\nDate: Wed, 31 Dec 2025 12:00:00 +0000\n\
                 Message-ID: <{nth}@x.example>\n\nbody\n"
            );
            replace_file(&RealDisk, &place.path().join(name), text.as_bytes()).unwrap();
        }
        for (to, at) in [
            ("../elsewhere", "root/alt"),
            ("../root", "elsewhere/back"),
            (".", "elsewhere/deeper/here"),
            ("nowhere", "root/gone"),
            ("misc/1", "root/one"),
        ] {
            std::os::unix::fs::symlink(to, place.path().join(at)).unwrap();
        }
        let disk = FaultyDisk::new(Arc::new(RealDisk));
        disk.add(Fault::new(Op::List, "lost+found", Effect::Denied).forever());
        let mut damages = Damages::named();
        let mut counts = Counts {
            articles: 0,
            rejected: BTreeMap::new(),
            damages: &mut damages,
        };
        take(&disk, &root, &mut counts, &mut || {}).unwrap();
        // One by two names; those of what is linked from itself once more.
        assert_eq!(counts.articles, 5);
        let said = damages.said();
        assert!(
            said.contains("lost+found") && !said.contains("damaged"),
            "{said}"
        );
        assert!(damages.all_was_read().is_err());
        assert_eq!(count(&disk, &root).unwrap(), 6);
    }
}
