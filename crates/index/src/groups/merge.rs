//! Making one run of group rows of several neighbours: they are small, so it is done in one go.

use std::sync::Arc;

use newsreel_wire::Sequence;

use super::seal::{GroupFile, GroupRun};
use crate::error::Result;
use crate::layers::Run as _;
use crate::liveness::Floors;
use crate::sealed::RunMeta;
use crate::sealed::writer::Place;

/// A merge under way.
#[derive(Debug)]
pub(crate) struct GroupMerge {
    id: u64,
    /// From the oldest to the newest.
    inputs: Vec<Arc<GroupFile>>,
    written: Option<RunMeta>,
}

impl GroupMerge {
    /// Begins to merge neighbours, given from the oldest to the newest.
    pub(crate) fn begin(id: u64, files: &[Arc<GroupFile>]) -> Self {
        Self {
            id,
            inputs: files.to_vec(),
            written: None,
        }
    }

    fn range(&self) -> (Sequence, Sequence) {
        let metas = || self.inputs.iter().map(|file| file.file().meta());
        let first = metas().map(|meta| meta.first).min();
        let last = metas().map(|meta| meta.last).max();
        (first.unwrap_or_default(), last.unwrap_or_default())
    }

    /// Reads everything and writes it.
    pub(crate) fn write(&mut self, place: &Place, floors: &mut Floors<'_>) -> Result<()> {
        let runs: Vec<GroupRun> = self
            .inputs
            .iter()
            .map(|file| file.read())
            .collect::<Result<_>>()?;
        let merged = GroupRun::merged(runs, floors);
        self.written = merged.write(place, self.id, self.range())?;
        Ok(())
    }

    /// The new run; `None` when nothing was left to keep.
    pub(crate) fn finish(self) -> Option<RunMeta> {
        self.written
    }
}
