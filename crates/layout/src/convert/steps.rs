//! The four steps of conversions, each of which can be begun again wherever it was left.
//!
//! `scatter` and `raise` make a directory managed, `lower` and `spread` undo that or lead to another algorithm.  What
//! a step finds moved already it leaves; what it finds in both places is one file under two names (a file system
//! without a journal after a power cut), or a clash that a human has to look at.

use std::ops::ControlFlow;
use std::path::Path;

use newsreel_host::folder::{Entry, Facts};
use newsreel_host::{ErrorKind, Folder};

use super::{OnProgress, Progress, STAGING, fingerprint};
use crate::algorithm::Algorithm;
use crate::carry::carry;
use crate::error::{Error, Result};
use crate::managed::{adopt, adopt_buckets, bucket_mode, open_if_there, remove_buckets};
use crate::mark::{Fingerprint, Layout, Step, UnderWay, write_flat, write_managed};
use crate::name::Name;
use crate::walk::{Lot, walk};

/// So many names are in memory (some 150 MB) and moved in order at once: the fewer such lots, the seldomer is a block of inodes written.
const NAMES_MAX: usize = 1 << 20;
/// So many renames lie between two reports of progress.
const REPORT_EVERY: u64 = 256;

/// One run of a conversion.
pub(super) struct Run<'a, 'b> {
    folder: &'a Folder,
    /// What buckets are made like.
    like: Facts,
    /// Whether another run made buckets before, when the directory may have had another owner or mode.
    goes_on: bool,
    on_progress: &'a mut OnProgress<'b>,
    progress: Progress,
    renames: u64,
}

impl<'a, 'b> Run<'a, 'b> {
    pub(super) fn new(
        folder: &'a Folder,
        goes_on: bool,
        on_progress: &'a mut OnProgress<'b>,
    ) -> Result<Self> {
        Ok(Self {
            folder,
            like: folder.facts()?,
            goes_on,
            on_progress,
            progress: Progress {
                step: Step::Scatter,
                done: 0,
                total: 0,
            },
            renames: 0,
        })
    }

    pub(super) const fn renames(&self) -> u64 {
        self.renames
    }

    /// Does what is left; answers the view before and after, if there is one before.
    pub(super) fn complete(
        &mut self,
        mut under_way: UnderWay,
    ) -> Result<Option<(Fingerprint, Fingerprint)>> {
        loop {
            let next = match (under_way.step, under_way.from, under_way.to) {
                (Step::Scatter, Layout::Flat, Layout::Managed(to)) => {
                    self.scatter(to).map(|()| Step::Raise)
                }
                (Step::Scatter, Layout::Managed(from), to) => {
                    self.gather(from, to).map(|()| Step::Raise)
                }
                (Step::Lower, _, _) => self.lower().map(|()| Step::Spread),
                (Step::Spread, Layout::Managed(from), to) => {
                    self.spread(from, to)?;
                    break;
                }
                _ => {
                    self.raise()?;
                    break;
                }
            };
            under_way.step = next?;
            self.folder.sync_file_system()?;
            under_way.write(self.folder)?;
        }
        if let (true, Layout::Managed(to)) = (self.goes_on, under_way.to) {
            adopt_buckets(self.folder, to)?;
        }
        self.folder.sync_file_system()?;
        let after = under_way.before.map(|before| {
            let after = fingerprint::take(self.folder, under_way.to)?;
            Ok::<_, Error>((before, after))
        });
        let after = after.transpose()?;
        match under_way.to {
            Layout::Flat => write_flat(self.folder)?,
            Layout::Managed(algorithm) => write_managed(self.folder, algorithm)?,
        }
        Ok(after)
    }

    /// From the directory into buckets in the staging directory.
    fn scatter(&mut self, to: Algorithm) -> Result<()> {
        let folder = self.folder;
        let staging = self.make_staging()?;
        self.begin(Step::Scatter, count(unstaged(folder)?)?)?;
        // What is moved while a directory is read may hide others from this reading, so it is read until it is empty.
        loop {
            let mut stream = unstaged(folder)?.peekable();
            if stream.peek().is_none() {
                return Ok(());
            }
            while stream.peek().is_some() {
                let some = stream.by_ref().take(NAMES_MAX);
                let mut lot = some.collect::<newsreel_host::Result<Vec<_>>>()?;
                sort(&mut lot, to);
                for entry in &lot {
                    self.carry(folder, entry, &staging, Layout::Managed(to))?;
                }
            }
        }
    }

    /// The buckets in the staging directory go to the directory.
    fn raise(&mut self) -> Result<()> {
        // It is gone when the run before was killed behind the removal.
        let Some(staging) = self.open_staging()? else {
            return Ok(());
        };
        self.begin(Step::Raise, count(staging.entries()?)?)?;
        self.hand_over(&staging, self.folder)?;
        self.remove_staging()
    }

    /// The buckets in the directory go to the staging directory.
    fn lower(&mut self) -> Result<()> {
        let staging = self.make_staging()?;
        self.begin(Step::Lower, count(unstaged(self.folder)?)?)?;
        self.hand_over(self.folder, &staging)
    }

    /// From the buckets in the directory into others in the staging directory: the way back from a spread among buckets.
    fn gather(&mut self, from: Algorithm, to: Layout) -> Result<()> {
        let staging = self.make_staging()?;
        self.rearrange(Step::Scatter, (self.folder, from), (&staging, to))
    }

    /// From the buckets in the staging directory to where it belongs.
    fn spread(&mut self, from: Algorithm, to: Layout) -> Result<()> {
        let Some(staging) = self.open_staging()? else {
            return Ok(());
        };
        self.rearrange(Step::Spread, (&staging, from), (self.folder, to))?;
        self.remove_staging()
    }

    /// From the buckets in one of the two directories to where it belongs in the other one, until the former are gone.
    fn rearrange(
        &mut self,
        step: Step,
        (from, algorithm): (&Folder, Algorithm),
        (to, layout): (&Folder, Layout),
    ) -> Result<()> {
        let mut total = 0;
        walk(from, algorithm, &mut |lot| {
            total += lot
                .entries
                .iter()
                .filter(|entry| !is_staging(lot, entry))
                .count() as u64;
            Ok(())
        })?;
        self.begin(step, total)?;
        loop {
            let before = self.progress.done;
            walk(from, algorithm, &mut |lot| {
                for entry in &lot.entries {
                    if !is_staging(lot, entry) {
                        self.carry(lot.folder, entry, to, layout)?;
                    }
                }
                Ok(())
            })?;
            if remove_buckets(from, algorithm, STAGING)? {
                return Ok(());
            }
            if self.progress.done == before {
                return Err(Error::NotEmpty {
                    path: from.path().to_path_buf(),
                });
            }
        }
    }

    /// Moves everything but the staging directory from one directory to another, as it is.
    fn hand_over(&mut self, from: &Folder, to: &Folder) -> Result<()> {
        loop {
            let mut stream = unstaged(from)?.peekable();
            if stream.peek().is_none() {
                return Ok(());
            }
            for entry in stream {
                let entry = entry?;
                self.carry(from, &entry, to, Layout::Flat)?;
            }
        }
    }

    /// Moves one entry to its place in `to`.
    fn carry(&mut self, from: &Folder, entry: &Entry, to: &Folder, layout: Layout) -> Result<()> {
        carry(from, entry, to, layout, &self.like)?;
        self.renames += 1;
        self.progress.done += 1;
        if self.progress.done.is_multiple_of(REPORT_EVERY) {
            self.report()?;
        }
        Ok(())
    }

    fn begin(&mut self, step: Step, total: u64) -> Result<()> {
        self.progress = Progress {
            step,
            done: 0,
            total,
        };
        self.report()
    }

    fn report(&mut self) -> Result<()> {
        match (self.on_progress)(self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Interrupted {
                path: self.folder.path().to_path_buf(),
            }),
        }
    }

    fn make_staging(&self) -> Result<Folder> {
        match self
            .folder
            .make_folder(Path::new(STAGING), bucket_mode(&self.like))
        {
            Err(e) if e.kind() == ErrorKind::Exists => {}
            other => other?,
        }
        let staging = self.folder.open_folder(Path::new(STAGING))?;
        adopt(&staging, &self.like)?;
        Ok(staging)
    }

    fn open_staging(&self) -> Result<Option<Folder>> {
        open_if_there(self.folder, Path::new(STAGING))
    }

    fn remove_staging(&self) -> Result<()> {
        if self.folder.remove_folder(Path::new(STAGING))? {
            return Ok(());
        }
        Err(Error::NotEmpty {
            path: self.folder.path().join(STAGING),
        })
    }
}

/// In the order of buckets, and of numbers in them: files made one after the other are moved so.
fn sort(entries: &mut [Entry], algorithm: Algorithm) {
    entries.sort_by_cached_key(|entry| {
        let name = Name::parse(&entry.name).ok();
        name.map(|name| (algorithm.bucket(name), name.number()))
    });
}

/// Whether an entry is the staging directory of what is walked over.
fn is_staging(lot: &Lot<'_>, entry: &Entry) -> bool {
    lot.path.as_os_str().is_empty() && entry.name == STAGING
}

/// The entries of a directory but for the staging directory.
fn unstaged(
    folder: &Folder,
) -> Result<impl Iterator<Item = newsreel_host::Result<Entry>> + use<'_>> {
    let all = folder.entries()?;
    Ok(all.filter(|entry| !entry.as_ref().is_ok_and(|entry| entry.name == STAGING)))
}

fn count(entries: impl Iterator<Item = newsreel_host::Result<Entry>>) -> Result<u64> {
    let mut count = 0;
    for entry in entries {
        entry?;
        count += 1;
    }
    Ok(count)
}
