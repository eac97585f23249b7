//! A walk over everything below a managed directory, whether it lies where it belongs or not.

use std::path::{Path, PathBuf};

use newsreel_host::Folder;
use newsreel_host::folder::{Entry, Kind};

use crate::algorithm::{Algorithm, Bucket, Node};
use crate::error::Result;
use crate::managed::open_if_there;
use crate::name::Name;

/// What one directory of the walk holds.
pub(crate) struct Lot<'a> {
    /// The directory.
    pub(crate) folder: &'a Folder,
    /// Its path from where the walk began.
    pub(crate) path: &'a Path,
    /// The bucket it is; other directories hold only buckets, or should.
    pub(crate) bucket: Option<Bucket>,
    /// What is in it, but for buckets and directories of them.
    pub(crate) entries: Vec<Entry>,
}

impl Lot<'_> {
    /// Whether the view finds an entry of this directory.
    pub(crate) fn is_in_view(&self, algorithm: Algorithm, entry: &Entry) -> bool {
        let name = Name::parse(&entry.name);
        name.is_ok_and(|name| self.bucket == Some(algorithm.bucket(name)))
    }
}

/// Visits a directory, the directories of buckets in it, and the buckets, in order.
pub(crate) fn walk(
    root: &Folder,
    algorithm: Algorithm,
    visit: &mut dyn FnMut(&Lot<'_>) -> Result<()>,
) -> Result<()> {
    level(root, Path::new(""), None, algorithm, visit)
}

fn level(
    folder: &Folder,
    path: &Path,
    above: Option<u64>,
    algorithm: Algorithm,
    visit: &mut dyn FnMut(&Lot<'_>) -> Result<()>,
) -> Result<()> {
    let mut nodes = Vec::new();
    let mut entries = Vec::new();
    for entry in folder.entries()? {
        let entry = entry?;
        match algorithm.node(above, &entry.name) {
            Some(Node::Bucket(bucket)) if entry.kind == Kind::Folder => {
                nodes.push((bucket.0, true, entry));
            }
            Some(Node::Inner(rank)) if entry.kind == Kind::Folder => {
                nodes.push((Some(rank), false, entry));
            }
            _ => entries.push(entry),
        }
    }
    nodes.sort_unstable();
    visit(&Lot {
        folder,
        path,
        bucket: None,
        entries,
    })?;
    for (rank, is_bucket, node) in nodes {
        let Some(below) = open_if_there(folder, node.path())? else {
            continue;
        };
        let path: PathBuf = path.join(node.path());
        if !is_bucket {
            level(&below, &path, rank, algorithm, visit)?;
            continue;
        }
        let entries = below.entries()?.collect::<newsreel_host::Result<_>>()?;
        visit(&Lot {
            folder: &below,
            path: &path,
            bucket: Some(Bucket(rank)),
            entries,
        })?;
    }
    Ok(())
}
