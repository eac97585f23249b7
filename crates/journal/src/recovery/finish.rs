//! The end of a recovery: the log's end is made fast, what lies behind it is taken away, the writer starts.
//!
//! Good frames nobody vouched for were synced before they were read.  Before the first new frame the headers of cut
//! frames are overwritten and segments behind the end have lost their names, durably: nothing that was cut can come
//! back.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use newsreel_host::{OpenMode, set_aside};
use parking_lot::Mutex;

use super::scan::each_header;
use super::{Recovered, Recovery};
use crate::error::Result;
use crate::format::{PAGE_OCTETS, seed};
use crate::prepare::Preparer;
use crate::shared::{Journal, Shared};
use crate::source::FrameSource;
use crate::table::{Segment, Table, path_of};
use crate::writer::{Current, JournalWriter, Start};

impl Recovery {
    /// Replays what is left, makes the log's end fast and starts the writer.
    pub fn finish(mut self) -> Result<(JournalWriter, Journal, Recovered)> {
        self.conclude()?;
        let current = self.current()?;
        if let Some(current) = &current {
            self.erase_behind(current)?;
        }
        self.set_strange_aside()?;
        let kept = self.kept();
        let recyclable = self.take_names_behind(kept)?;
        // A frame that was cut vouches for the hole before it, too.
        let missing_before = self.cut_follows.unwrap_or(self.recovered.vouched_before);
        let start = Start {
            current,
            next: self.recovered.next,
            follows: self.recovered.end.max(missing_before),
            epoch: self.recovered.epoch,
            next_id: self.files.id_max + 1,
        };
        let segment_octets = self.config.segment_octets_used();
        let continues = start.current.is_some();
        let (shared, recovered) = self.share(kept, continues);
        let preparer = Arc::new(Preparer::new(Arc::clone(&shared), segment_octets));
        preparer.give_back(recyclable);
        let writer = JournalWriter::new(shared, preparer, start)?;
        let journal = writer.journal();
        Ok((writer, journal, recovered))
    }

    /// Replays what is left, for reading only.
    pub fn finish_read_only(mut self) -> Result<(Journal, Recovered)> {
        self.conclude()?;
        let kept = self.kept();
        let (shared, recovered) = self.share(kept, true);
        Ok((
            Journal {
                shared,
                preparer: None,
            },
            recovered,
        ))
    }

    /// What has a segment's name and is none gives the name up: one day a segment gets it.
    fn set_strange_aside(&mut self) -> Result<()> {
        for strange in &mut self.files.strange {
            strange.path = set_aside(&*self.disk, &strange.path)?;
        }
        if !self.files.strange.is_empty() {
            self.disk.sync_dir(&self.dir)?;
        }
        Ok(())
    }

    /// How many of the used segments stay: those before the replay and those with good frames.
    fn kept(&self) -> usize {
        self.good
            .map_or(self.start_at, |(at, _)| at + 1)
            .min(self.files.used.len())
    }

    fn conclude(&mut self) -> Result<()> {
        while self.next_frame()?.is_some() {}
        let unused = self.files.used.get(self.kept()..).unwrap_or_default();
        // A segment that was begun and holds nothing may still name aborted sequences: they are not used again.
        let live = unused
            .iter()
            .filter(|used| used.segment.first < used.segment.limit);
        let named = live
            .map(|used| used.segment.first)
            .max()
            .unwrap_or_default();
        let recovered = &mut self.recovered;
        recovered.end = self.place.expected;
        let floor = recovered.vouched_before.max(self.replay_from).max(named);
        recovered.next = recovered.end.max(floor);
        Ok(())
    }

    /// The segment with the last good frame, if it can be written on.
    fn current(&self) -> Result<Option<Current>> {
        let Some((at, offset)) = self.good else {
            return Ok(None);
        };
        let Some(used) = self.files.used.get(at).filter(|used| used.header_is_whole) else {
            return Ok(None);
        };
        let file = self.disk.open(&used.segment.path, OpenMode::ReadWrite)?;
        let Segment {
            id,
            octets,
            ref path,
            ..
        } = used.segment;
        Ok(Some(Current {
            id,
            file,
            offset,
            octets,
            begun: true,
            path: path.clone(),
        }))
    }

    /// Overwrites the headers of frames behind the end.
    fn erase_behind(&self, current: &Current) -> Result<()> {
        let file = Arc::clone(&current.file);
        let mut source = FrameSource::new(file, current.id, seed(self.spool), current.octets);
        let mut stale = Vec::new();
        each_header(&mut source, current.offset, |offset, _| stale.push(offset))?;
        for offset in &stale {
            current.file.write_at(&[0; PAGE_OCTETS as usize], *offset)?;
        }
        if !stale.is_empty() {
            current.file.sync_data()?;
        }
        Ok(())
    }

    /// Segments behind the end get new ids, so that nothing in them counts; one is kept for recycling with the
    /// spare ones, the others are removed.
    fn take_names_behind(&mut self, kept: usize) -> Result<Vec<std::path::PathBuf>> {
        let given_up: Vec<Segment> = self
            .files
            .used
            .drain(kept..)
            .map(|used| used.segment)
            .collect();
        let mut recyclable = Vec::new();
        for segment in &given_up {
            self.files.id_max += 1;
            let path = path_of(&self.dir, self.files.id_max);
            self.disk.rename(&segment.path, &path)?;
            recyclable.push(path);
        }
        if !given_up.is_empty() {
            self.disk.sync_dir(&self.dir)?;
        }
        recyclable.extend(self.files.spare.drain(..).map(|segment| segment.path));
        Ok(recyclable)
    }

    /// Makes the shared side of the first `kept` segments.
    fn share(mut self, kept: usize, continues: bool) -> (Arc<Shared>, Recovered) {
        self.files.used.truncate(kept);
        self.recovered.strange = std::mem::take(&mut self.files.strange);
        // Only the segments that stay say what was given up, and the one that comes next.
        self.files.set_limits();
        let mut table = Table::default();
        for (at, used) in self.files.used.into_iter().enumerate() {
            let mut segment = used.segment;
            if let Some((last, offset)) = self.good
                && at == last
            {
                segment.end = offset;
            }
            table.push(segment);
        }
        if !continues {
            table.limit(self.recovered.end);
        }
        let shared = Shared {
            disk: self.disk,
            dir: self.dir,
            spool: self.spool,
            seed: seed(self.spool),
            committed: AtomicU64::new(self.recovered.next.0),
            table: Mutex::new(table),
        };
        (Arc::new(shared), self.recovered)
    }
}
