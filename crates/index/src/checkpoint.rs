//! Checkpoints: the memory parts become sealed runs, all three views at the same sequence.
//!
//! Freezing is cheap and happens on the applier thread; writing happens in the background, sequentially; the manifest
//! is switched when everything is durable; installing lets the memory go.  The frozen parts stay readable throughout.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_wire::Sequence;

use crate::apply::Applier;
use crate::error::{Error, Result};
use crate::groups::seal::{GroupFile, GroupRun};
use crate::history::bucket::Bucket;
use crate::history::memory::MemoryPart;
use crate::history::write::BucketWriter;
use crate::layers::Turn;
use crate::lost::Retold;
use crate::overview::pack::Pack;
use crate::overview::tail::TailPart;
use crate::overview::write::write_tails;
use crate::repack::Told;
use crate::sealed::catalog::Change;
use crate::sealed::set::Slot;
use crate::sealed::writer::Place;
use crate::sealed::{RunKind, RunMeta};
use crate::views::Views;

/// A checkpoint under way.  It must be written (again, if that fails) and installed: until then there is no other.
#[derive(Debug)]
pub struct Frozen {
    views: Arc<Views>,
    sequence: Sequence,
    history: Arc<MemoryPart>,
    overview: Arc<TailPart>,
    groups: GroupRun,
    retold: Retold,
    /// Packs that the log has replaced and the manifest not yet.
    repacked: Vec<Told>,
    written: Option<Written>,
}

/// The sealed runs of a checkpoint, open.
#[derive(Debug, Default)]
struct Written {
    history: Vec<Slot<Bucket>>,
    overview: Vec<Slot<Pack>>,
    groups: Vec<Slot<GroupFile>>,
}

impl Applier {
    /// Sets everything applied up to `sequence` aside for a checkpoint.
    ///
    /// # Errors
    /// [`Error::Busy`] while another one is under way; otherwise as [`Applier::publish`].
    pub fn freeze(&mut self, sequence: Sequence) -> Result<Frozen> {
        self.publish()?;
        let views = Arc::clone(&self.views);
        if views.is_frozen.swap(true, Ordering::AcqRel) {
            return Err(Error::Busy);
        }
        let retold = views.retell();
        let mut groups = views.groups.freeze();
        groups.withdrawn = std::mem::take(&mut *views.withdrawn.lock());
        if retold.is_any() {
            groups.withdrawn = views.overview.withdrawn().all();
        }
        Ok(Frozen {
            history: views.history.layers.freeze(),
            overview: views.overview.layers.freeze(),
            groups,
            sequence,
            retold,
            repacked: views.repacks.told(),
            written: None,
            views,
        })
    }
}

impl Frozen {
    /// The sequence it covers.
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Writes the sealed runs and switches the manifest; durable when it returns.  After an error it may be called
    /// again.
    ///
    /// # Errors
    /// When the disk fails or is full.
    pub fn write(&mut self) -> Result<()> {
        if self.written.is_some() {
            return Ok(());
        }
        let catalog = Arc::clone(&self.views.catalog);
        let last = self.sequence.max(catalog.manifest().checkpoint);
        let range = (catalog.manifest().checkpoint.next().min(last), last);
        let mut runs = Vec::new();
        let written = self.seal(range, &mut runs).inspect_err(|_| {
            // It is tried again with new ones.
            catalog.discard(&runs);
        })?;
        // Only those that are still there.
        let named = catalog.manifest();
        let is_named = |id: &u64| named.of_kind(RunKind::Groups).any(|run| run.id == *id);
        self.retold.damaged.retain(is_named);
        self.retold.made_up.retain(is_named);
        let new = runs
            .iter()
            .map(|meta| (meta.kind, &[][..], std::slice::from_ref(meta)));
        let gone = self.retold.damaged.chunks(1);
        let gone = gone.map(|id| (RunKind::Groups, id, &[][..]));
        let repacked = self.repacked.iter().map(Told::replace);
        catalog.commit(&Change {
            replace: gone.chain(new).chain(repacked).collect(),
            checkpoint: Some(last),
            made_up: self.retold.made_up.clone(),
            floors: Some(self.views.history.floors()),
        })?;
        self.views.damages.forget(&self.retold.damaged);
        self.views.repacks.named(self.repacked.len());
        self.written = Some(written);
        Ok(())
    }

    /// Writes the runs of all three views; those that are on the disk are in `runs`, also after an error.
    fn seal(&self, range: (Sequence, Sequence), runs: &mut Vec<RunMeta>) -> Result<Written> {
        let views = &self.views;
        let catalog = &views.catalog;
        let place = catalog.place();
        let mut written = Written::default();
        if let Some(meta) = write_history(place, catalog.new_run(), range, &self.history)? {
            runs.push(meta);
            written.history.push(views.history.layers.open_new(&meta)?);
        }
        let mut floors = views.overview.floors();
        let (id, tails) = (catalog.new_run(), &self.overview);
        if let Some(meta) = write_tails(place, id, range, &views.config, tails, &mut floors)? {
            runs.push(meta);
            written
                .overview
                .push(views.overview.layers.open_new(&meta)?);
        }
        let marks = GroupRun {
            marks: self.overview.marks(),
            ..GroupRun::default()
        };
        let groups = GroupRun::merged(vec![self.groups.clone(), marks], &mut floors);
        if let Some(meta) = groups.write(place, catalog.new_run(), range)? {
            runs.push(meta);
            written.groups.push(views.group_files.open_new(&meta)?);
        }
        Ok(written)
    }
}

fn write_history(
    place: &Place,
    id: u64,
    range: (Sequence, Sequence),
    part: &MemoryPart,
) -> Result<Option<RunMeta>> {
    if part.rows() == 0 {
        return Ok(None);
    }
    let mut writer = BucketWriter::create(place, id, range, part.rows())?;
    part.sorted(|stored| writer.push(stored))?;
    writer.finish().map(Some)
}

impl Views {
    /// Readers find a written checkpoint in its sealed files from now on, and its memory goes.
    ///
    /// # Errors
    /// [`Error::Busy`] when it was not written.
    pub fn install(&self, frozen: Frozen) -> Result<()> {
        let Some(written) = frozen.written else {
            return Err(Error::Busy);
        };
        self.group_files.drop_runs(&frozen.retold.damaged);
        self.group_files
            .replace(&[], written.groups, Turn::Installed);
        self.overview
            .layers
            .replace(&[], written.overview, Turn::Installed);
        self.history
            .layers
            .replace(&[], written.history, Turn::Installed);
        self.overview.layers.recycle(frozen.overview);
        self.history.layers.recycle(frozen.history);
        self.is_frozen.store(false, Ordering::Release);
        Ok(())
    }
}
