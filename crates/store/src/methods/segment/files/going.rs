//! Files and articles that go: a dropped segment is removed, and what was withdrawn of one is noted in it.

use std::collections::BTreeMap;

use newsreel_host::{ErrorKind, OpenMode};
use newsreel_wire::Position;

use super::super::standing::{Standing, standing};
use super::{Held, Segments, key_of};
use crate::methods::cnfs::STARTS_MAX;
use crate::records::Home as _;
use crate::records::format::FileHeader;
use crate::records::gone::Gone;

impl Segments {
    /// Removes the files below a cycle; while their directory is not there they stay, for the next time.
    pub(in crate::methods::segment) fn remove_below(&self, cycle: u32) {
        if self.look().is_err() {
            return;
        }
        let mut inner = self.inner.lock();
        let kept = inner.files.split_off(&cycle);
        let gone = std::mem::replace(&mut inner.files, kept);
        let ours = inner.header.header.clone();
        drop(inner);
        for (cycle, held) in gone {
            let path = &held.path;
            if let Err(why) = self.may_remove(cycle, &held, &ours) {
                tracing::error!(path = %path.display(), why, "a segment whose turn has come is not removed; move it elsewhere");
                continue;
            }
            match self.disk.remove(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::error!(%error, "a dropped segment cannot be removed");
                }
                _ => tracing::info!(path = %path.display(), "a segment is dropped"),
            }
        }
    }

    /// Whether a file is what its name says, looked at once more: it may have been put there since.
    fn may_remove(&self, cycle: u32, held: &Held, ours: &FileHeader) -> Result<(), &'static str> {
        if !held.is_ours() {
            return Err("it is not what its name says");
        }
        let file = match self.disk.open(&held.path, OpenMode::Read) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            file => file.map_err(|_| "it cannot be opened")?,
        };
        match standing(file.as_ref(), cycle, ours, &self.geometry) {
            Ok(Standing::Right | Standing::Headless(_)) => Ok(()),
            Ok(Standing::Unknown(_)) => Err("nothing in it tells whether it is what its name says"),
            Ok(Standing::Of(_)) => Err("it is another segment than its name says"),
            Ok(Standing::Foreign(_)) => Err("it belongs to another set or spool"),
            Err(_) => Err("its header cannot be read"),
        }
    }

    /// Articles were withdrawn: their files say so from the next checkpoint on.
    pub(in crate::methods::segment) fn withdraw(&self, starts: impl Iterator<Item = Position>) {
        let mut withdrawn = self.withdrawn.lock();
        let room = STARTS_MAX.saturating_sub(withdrawn.len());
        withdrawn.extend(starts.take(room));
    }

    /// Whether there is something of that to be said.
    pub(in crate::methods::segment) fn has_withdrawn(&self) -> bool {
        !self.withdrawn.lock().is_empty()
    }

    /// Notes in each file what was withdrawn of it.  Nothing depends on that but who has the file alone: what cannot be noted is told
    /// in the log, and left.
    pub(in crate::methods::segment) fn write_withdrawn(&self) {
        let mut of_cycles: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for start in std::mem::take(&mut *self.withdrawn.lock()) {
            of_cycles
                .entry(start.cycle())
                .or_default()
                .push(start.offset());
        }
        for (cycle, offsets) in of_cycles {
            match self.note_gone(cycle, &offsets) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::error!(%error, segment = cycle, "what was withdrawn of a segment cannot be noted in its file");
                }
                _ => {}
            }
        }
    }

    fn note_gone(&self, cycle: u32, offsets: &[u64]) -> newsreel_host::Result<()> {
        let (octets, key) = {
            let inner = self.inner.lock();
            let is_written = |held: &Held| held.standing == Standing::Right;
            if !inner.files.get(&cycle).is_some_and(is_written) {
                return Ok(());
            }
            let header = &inner.header.header;
            (header.octets, key_of(header))
        };
        let file = self.beside(cycle)?;
        Gone::read(&*file, octets, key)?.add(&*file, offsets, key)
    }
}
