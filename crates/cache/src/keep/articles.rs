//! Articles in segments: placed one behind the other, the oldest segment dropped whole.
//!
//! There is no log: an article is found by its row in the table, and where the buffer stands is noted in the same change.  After a
//! crash both are as they were at the last durable change, and what lies behind is written over.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, ErrorKind};
use newsreel_store::{
    Access, BatchWrite, Blocking, CheckpointWrite, Marks, Place, PlaceError, ReadError,
    Reservation, RuleConfig, SetConfig, Store, StoreConfig, StoreReader, Want,
};
use newsreel_wire::{BufferId, IdHash, Sequence, SetId, Token, UnixTime};

use super::error::Result;
use super::table::Table;
use super::{Keep, KeepSettings, Kept};

/// The name of the set, and of the directory of its files.
const SET: &str = "articles";

/// The directory of the store's register of buffers.
const REGISTER: &str = "buffers";

/// An article that came.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Its message-id.
    pub id: Box<[u8]>,
    /// The hash of that.
    pub hash: IdHash,
    /// The article.
    pub kept: Arc<Kept>,
}

/// The half that places.
#[derive(Debug)]
pub(super) struct Articles {
    store: Store,
    sequence: u64,
}

/// Removes the files of articles.
pub(super) fn remove_files(disk: &dyn Disk, dir: &Path) -> Result<()> {
    for folder in [SET, REGISTER].map(|name| dir.join(name)) {
        if !disk.exists(&folder)? {
            continue;
        }
        for entry in disk.list(&folder)? {
            if !entry.is_dir {
                disk.remove(&folder.join(&entry.name))?;
            }
        }
    }
    Ok(())
}

/// Removes everything.
pub(super) fn remove_all(disk: &dyn Disk, dir: &Path) -> Result<()> {
    remove_files(disk, dir)?;
    match disk.remove(&dir.join("table.redb")) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn store_config(settings: &KeepSettings, segment: u64) -> StoreConfig {
    let set = SetConfig {
        name: SET.to_owned(),
        method: "segment".to_owned(),
        directory: Some(settings.directory.join(SET)),
        segment_octets: segment,
        // One more is there while the next batch has not come.
        keep_octets: Some(settings.octets.saturating_sub(segment)),
        // Those in memory are kept in front of the store.
        recent_octets: Some(0),
        ..SetConfig::default()
    };
    StoreConfig {
        buffers: Vec::new(),
        sets: vec![set],
        rules: vec![RuleConfig {
            set: SET.to_owned(),
            ..RuleConfig::default()
        }],
        dropped: Vec::new(),
    }
}

impl Articles {
    /// Opens the segments, which go on where the table says.
    pub(super) fn open(
        disk: &Arc<dyn Disk>,
        settings: &KeepSettings,
        (spool, segment): ([u8; 16], u64),
        table: &Table,
    ) -> Result<Self> {
        let config = store_config(settings, segment);
        let known = table.marks()?;
        if known.is_none() {
            // Of what lies there nobody knows.
            remove_files(disk.as_ref(), &settings.directory)?;
        }
        let buffers: Vec<BufferId> = known.iter().map(|(marks, _)| marks.buffer).collect();
        let mut store = Store::open(
            disk,
            &settings.directory,
            spool,
            &config,
            &buffers,
            Access::Write,
            &mut |_, _, _| {},
        )?;
        let (marks, sequence): (Vec<Marks>, u64) = match known {
            Some((marks, sequence)) => (vec![marks], sequence),
            None => (Vec::new(), 0),
        };
        store.resume(&marks, Sequence(sequence))?;
        let articles = Self { store, sequence };
        let floors = articles.reader();
        table.change(false, |change| {
            for (buffer, floor) in buffers.iter().map(|id| (*id, floors.floor(*id))) {
                change.forget_below(buffer, floor)?;
            }
            Ok(())
        })?;
        Ok(articles)
    }

    pub(super) fn reader(&self) -> Arc<StoreReader> {
        self.store.reader()
    }

    fn marks(&self) -> Vec<Marks> {
        let mut marks = Vec::new();
        self.store.marks(&mut marks);
        marks
    }

    /// Drops what there is too much of.
    fn make_room(&mut self, table: &Table, now: UnixTime) -> Result<()> {
        let mut dropping: Vec<Reservation> = Vec::new();
        self.store.reservations(Some(now), &mut dropping);
        for reservation in dropping {
            let floor = reservation.up_to.one_cycle_before();
            table.change(false, |change| {
                change.forget_below(reservation.buffer, floor)
            })?;
            self.store.reserved(reservation);
        }
        Ok(())
    }

    fn place(
        &mut self,
        fetched: &Fetched,
        now: UnixTime,
    ) -> std::result::Result<Token, PlaceError> {
        let sequence = Sequence(self.sequence + 1);
        let placed = self.store.place(&Place {
            sequence,
            arrival: now,
            id_hash: fetched.hash,
            id: &fetched.id,
            set: SetId(0),
            format: None,
            xref: b"",
            article: &[&fetched.kept.wire],
            head_len: u32::try_from(fetched.kept.head_len).unwrap_or(u32::MAX),
        });
        if placed.is_ok() {
            self.sequence = sequence.0;
        }
        placed
    }

    /// Keeps articles.
    fn keep(&mut self, table: &Table, articles: &[Fetched], now: UnixTime) -> Result<()> {
        let mut rest = articles;
        while !rest.is_empty() {
            self.make_room(table, now)?;
            let mut rows = Vec::new();
            while let Some((first, behind)) = rest.split_first() {
                match self.place(first, now) {
                    Ok(token) => rows.push((first.hash, token)),
                    // What was collected is written first; an article that no empty batch takes is not kept.
                    Err(PlaceError::NeedsReservation) if !rows.is_empty() => break,
                    Err(error) => {
                        tracing::debug!(target: "newsreel::cache", %error, "an article is not kept");
                    }
                }
                rest = behind;
            }
            self.write(table, &rows)?;
        }
        Ok(())
    }

    fn write(&mut self, table: &Table, rows: &[(IdHash, Token)]) -> Result<()> {
        let mut batches: Vec<Box<dyn BatchWrite>> = Vec::new();
        self.store.seal(&mut batches);
        for batch in &mut batches {
            batch.write()?;
            batch.sync()?;
        }
        self.store.recycle(&mut batches);
        let (marks, sequence) = (self.marks(), self.sequence);
        table.change(false, |change| {
            change.put_articles(rows)?;
            let mut each = marks.iter();
            each.try_for_each(|marks| change.put_marks(marks, sequence))
        })
    }

    /// Makes what was kept so far durable.
    pub(super) fn checkpoint(&mut self, table: &Table) -> Result<()> {
        if !table.is_changed() {
            return Ok(());
        }
        let mut writes: Vec<Box<dyn CheckpointWrite>> = Vec::new();
        self.store.checkpoint(&mut writes);
        table.change(true, |_| Ok(()))?;
        for write in &mut writes {
            write.write()?;
        }
        Ok(())
    }
}

impl Keep {
    /// An article.
    #[must_use]
    pub fn article(&self, id: &IdHash) -> Option<Arc<Kept>> {
        if let Some(kept) = self.in_memory.get(id) {
            return Some(kept);
        }
        let token = self.told(self.table.article(id))??;
        let mut memory = Vec::new();
        let read = self
            .reader
            .read(&token, Want::Whole, Blocking::Yes, &mut memory);
        let stored = match read {
            Ok(stored) if stored.id_hash == *id => stored,
            Ok(_) | Err(ReadError::Gone) => return None,
            Err(error) => {
                // Damaged, or lost with the power: it is fetched again.
                if let Some(more) = self.lines.admit() {
                    tracing::warn!(target: "newsreel::cache", %error, more, "an article is lost");
                }
                return None;
            }
        };
        let kept = Arc::new(Kept {
            head_len: stored.head_len,
            wire: memory.get(stored.octets)?.to_vec().into(),
        });
        self.in_memory.insert(*id, Arc::clone(&kept));
        Some(kept)
    }

    /// Whether an article is kept.
    #[must_use]
    pub fn has_article(&self, id: &IdHash) -> bool {
        self.in_memory.peek(id).is_some()
            || self
                .told(self.table.article(id))
                .flatten()
                .is_some_and(|token| self.reader.is_live(&token))
    }

    /// Keeps articles.
    pub fn keep_articles(&self, articles: &[Fetched], now: UnixTime) {
        for fetched in articles {
            self.in_memory
                .insert(fetched.hash, Arc::clone(&fetched.kept));
        }
        let kept = self.articles.lock().keep(&self.table, articles, now);
        self.told(kept);
    }
}
