//! The listing of a managed directory's view: bucket after bucket, from any cookie on.
//!
//! What is there during the whole listing is returned exactly once, whatever else is made or removed meanwhile.  In
//! memory are the names of the buckets and one bucket's entries.

use std::iter::Peekable;
use std::vec::IntoIter;

use newsreel_host::Folder;
use newsreel_host::folder::{Entry, Kind};

use crate::algorithm::{Algorithm, Bucket, Node};
use crate::cookie::{Cookie, in_order};
use crate::error::Result;
use crate::managed::{Managed, open_if_there};

/// A listing in progress; `.` and `..` are its caller's.
#[derive(Debug, Default)]
pub struct Listing {
    /// Behind what was returned last.
    after: Cookie,
    /// What of the bucket that is being read was not returned yet, and the buckets behind it.
    rest: Option<Rest>,
}

#[derive(Debug)]
struct Rest {
    entries: Peekable<IntoIter<(Cookie, Entry)>>,
    /// How many entries that bucket had.
    held: usize,
    buckets: IntoIter<Bucket>,
}

impl Listing {
    /// Hands the entries behind `from` to `take`, with their cookies and in their order, until it refuses one or there
    /// are no more.  One that was refused comes first when the listing goes on where it stopped.
    pub fn fill(
        &mut self,
        managed: &Managed,
        from: Cookie,
        mut take: impl FnMut(&Entry, Cookie) -> bool,
    ) -> Result<()> {
        if from != self.after || from <= Cookie::DOT_DOT {
            self.rest = None;
        }
        self.after = from;
        let mut rest = match self.rest.take() {
            Some(rest) => rest,
            None => Rest::from(managed, from)?,
        };
        loop {
            while let Some((cookie, entry)) = rest.entries.peek() {
                if *cookie > self.after {
                    if !take(entry, *cookie) {
                        self.rest = Some(rest);
                        return Ok(());
                    }
                    self.after = *cookie;
                }
                rest.entries.next();
            }
            // The room that its names took goes before that of the next ones is taken.
            rest.hold(Vec::new());
            let Some(bucket) = rest.buckets.next() else {
                self.rest = Some(rest);
                return Ok(());
            };
            rest.hold(entries_of(managed, bucket)?);
        }
    }

    /// How many names of entries and buckets are in memory.
    #[must_use]
    pub fn held(&self) -> usize {
        let rest = self.rest.as_ref();
        rest.map_or(0, |rest| rest.held + rest.buckets.len())
    }

    /// Keeps nothing in memory: what is needed is read again when it goes on.
    pub fn let_go(&mut self) {
        self.rest = None;
    }
}

impl Rest {
    fn from(managed: &Managed, from: Cookie) -> Result<Self> {
        let first = from.bucket(managed.algorithm());
        let mut buckets = match first {
            Some(_) => buckets(managed.folder(), managed.algorithm())?,
            None => Vec::new(),
        };
        buckets.retain(|bucket| Some(*bucket) >= first);
        Ok(Self {
            entries: Vec::new().into_iter().peekable(),
            held: 0,
            buckets: buckets.into_iter(),
        })
    }

    fn hold(&mut self, entries: Vec<(Cookie, Entry)>) {
        self.held = entries.len();
        self.entries = entries.into_iter().peekable();
    }
}

/// The buckets that are there, in order.
fn buckets(folder: &Folder, algorithm: Algorithm) -> Result<Vec<Bucket>> {
    let mut found = Vec::new();
    for (node, entry) in nodes(folder, algorithm, None)? {
        match node {
            Node::Bucket(bucket) => found.push(bucket),
            Node::Inner(rank) => {
                let Some(below) = open_if_there(folder, entry.path())? else {
                    continue;
                };
                let below = nodes(&below, algorithm, Some(rank))?;
                found.extend(below.into_iter().filter_map(|(node, _)| match node {
                    Node::Bucket(bucket) => Some(bucket),
                    Node::Inner(_) => None,
                }));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The directories of one level.
pub(crate) fn nodes(
    folder: &Folder,
    algorithm: Algorithm,
    above: Option<u64>,
) -> Result<Vec<(Node, Entry)>> {
    let mut found = Vec::new();
    for entry in folder.entries()? {
        let entry = entry?;
        if let Some(node) = algorithm.node(above, &entry.name)
            && entry.kind == Kind::Folder
        {
            found.push((node, entry));
        }
    }
    Ok(found)
}

/// What a bucket holds, in order; nothing when it is gone.
fn entries_of(managed: &Managed, bucket: Bucket) -> Result<Vec<(Cookie, Entry)>> {
    let Some(folder) = managed.open_bucket(bucket)? else {
        return Ok(Vec::new());
    };
    let entries = folder
        .entries()?
        .collect::<newsreel_host::Result<Vec<_>>>()?;
    Ok(in_order(managed.algorithm(), bucket, entries))
}
