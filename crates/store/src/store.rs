//! All buffers of a spool: the sequencer's half ([`Store`]) and everyone else's ([`StoreReader`]).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_host::{Disk, OpenMode};
use newsreel_wire::{BufferId, Position, Sequence, SetId, Token, TokenText};

use crate::config::StoreConfig;
use crate::error::{Error, PlaceError, ReadError, Result};
use crate::method::{
    ArticleReader, BatchWrite, Blocking, CheckpointWrite, Marks, Place, Reservation, StorageMethod,
    Stored, Want,
};
use crate::methods::cnfs::{Buffer, Cnfs, CreateProgress, METHOD, Scan};

/// The sequencer's half: all sets.
#[derive(Debug)]
pub struct Store {
    sets: Vec<Box<dyn StorageMethod>>,
    reader: Arc<StoreReader>,
}

/// The readers' half: any thread, any time.
#[derive(Debug)]
pub struct StoreReader {
    buffers: Vec<Arc<Buffer>>,
    epoch: AtomicU64,
}

/// Whether a store is opened to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Articles are placed; missing buffers are made.
    Write,
    /// Only read; a missing buffer is an error.
    ReadOnly,
}

impl Store {
    /// Opens the buffers of a spool; `known` are the ids the log has ever given, so that a new
    /// buffer gets another one.
    pub fn open(
        disk: &dyn Disk,
        spool_dir: &Path,
        spool: [u8; 16],
        config: &StoreConfig,
        known: &[BufferId],
        access: Access,
        progress: CreateProgress<'_>,
    ) -> Result<Self> {
        if let Some((key, why)) = config.problems().into_iter().next() {
            return Err(Error::Config(format!("{key}: {why}")));
        }
        let mut buffers = Vec::new();
        let mut missing = Vec::new();
        let mode = match access {
            Access::Write => OpenMode::ReadWrite,
            Access::ReadOnly => OpenMode::Read,
        };
        let set_of = |name: &String| {
            let at = config
                .sets
                .iter()
                .position(|set| set.buffers.contains(name))
                .unwrap_or(0);
            SetId(u8::try_from(at).unwrap_or(u8::MAX))
        };
        for buffer in &config.buffers {
            let path = crate::methods::cnfs::path_of(buffer, spool_dir);
            if !disk.exists(&path)? && access == Access::Write {
                missing.push((buffer, path));
                continue;
            }
            buffers.push(Buffer::open(
                disk,
                buffer,
                &path,
                (spool, set_of(&buffer.name)),
                mode,
            )?);
        }
        let highest = buffers
            .iter()
            .map(|buffer| buffer.id.0)
            .chain(known.iter().map(|id| id.0));
        let mut next_id = highest.max().map_or(1, |id| id.saturating_add(1));
        for (buffer, path) in missing {
            let id = BufferId(next_id);
            next_id = next_id.saturating_add(1);
            Buffer::create(disk, buffer, &path, (spool, id), progress)?;
            buffers.push(Buffer::open(
                disk,
                buffer,
                &path,
                (spool, set_of(&buffer.name)),
                mode,
            )?);
        }
        Self::assemble(config, buffers)
    }

    fn assemble(config: &StoreConfig, buffers: Vec<Buffer>) -> Result<Self> {
        let buffers: Vec<Arc<Buffer>> = buffers.into_iter().map(Arc::new).collect();
        for (at, buffer) in buffers.iter().enumerate() {
            if buffers[..at].iter().any(|other| other.id == buffer.id) {
                return Err(Error::Config(format!(
                    "two buffer files carry the id {}; one is a copy of the other, take it out",
                    buffer.id.0
                )));
            }
            if let Some(complaint) = &buffer.complaint {
                tracing::warn!(buffer = buffer.name, "{complaint}");
            }
        }
        let mut sets: Vec<Box<dyn StorageMethod>> = Vec::new();
        for set in &config.sets {
            let of_set = set
                .buffers
                .iter()
                .filter_map(|name| buffers.iter().find(|buffer| buffer.name == *name))
                .map(Arc::clone)
                .collect();
            sets.push(Box::new(Cnfs::new(of_set, set.order)));
        }
        let reader = Arc::new(StoreReader {
            buffers,
            epoch: AtomicU64::new(1),
        });
        Ok(Self { sets, reader })
    }

    /// The readers' half.
    #[must_use]
    pub fn reader(&self) -> Arc<StoreReader> {
        Arc::clone(&self.reader)
    }

    /// Gives an article a place in the set of `place` and copies it into that set's open batch.
    pub fn place(&mut self, place: &Place<'_>) -> std::result::Result<Token, PlaceError> {
        let set = self
            .sets
            .get_mut(usize::from(place.set.0))
            .ok_or(PlaceError::NoSet)?;
        set.place(place)
    }

    /// What must be reserved with the batch that is sealed next.
    pub fn reservations(&mut self, out: &mut Vec<Reservation>) {
        for set in &mut self.sets {
            set.reservations(out);
        }
    }

    /// A commit failed: what it was to reserve is asked for again.
    pub fn reservations_lost(&mut self) {
        for set in &mut self.sets {
            set.reservations_lost();
        }
    }

    /// A reservation is durable.
    pub fn reserved(&mut self, reservation: Reservation) {
        for set in &mut self.sets {
            set.reserved(reservation);
        }
        self.reader.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// Closes the open batches.
    pub fn seal(&mut self, out: &mut Vec<Box<dyn BatchWrite>>) {
        for set in &mut self.sets {
            set.seal(out);
        }
    }

    /// Takes the memory of written batches back.
    pub fn recycle(&mut self, batches: &mut Vec<Box<dyn BatchWrite>>) {
        for batch in batches.drain(..) {
            let (buffer, memory) = (batch.buffer(), batch.into_memory());
            let Some(set) = self
                .reader
                .buffer(buffer)
                .map(|buffer| usize::from(buffer.set.0))
            else {
                continue;
            };
            if let Some(set) = self.sets.get_mut(set) {
                set.recycle(buffer, memory);
            }
        }
    }

    /// Takes a buffer out of use after it failed.
    pub fn suspend(&mut self, buffer: BufferId) {
        for set in &mut self.sets {
            set.suspend(buffer);
        }
    }

    /// Where each buffer stands.
    pub fn marks(&self, out: &mut Vec<Marks>) {
        for set in &self.sets {
            set.marks(out);
        }
    }

    /// After recovery: each buffer goes on behind its last committed article.
    pub fn resume(&mut self, marks: &[Marks], log_end: Sequence) -> Result<()> {
        for mark in marks {
            for set in &mut self.sets {
                set.resume(*mark, log_end)?;
            }
        }
        self.reader.epoch.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// What the headers and bitmaps must be told; written on another thread.
    pub fn checkpoint(&mut self, out: &mut Vec<Box<dyn CheckpointWrite>>) {
        for set in &mut self.sets {
            set.checkpoint(out);
        }
    }
}

impl StoreReader {
    /// A buffer by its id.
    #[must_use]
    pub fn buffer(&self, id: BufferId) -> Option<&Arc<Buffer>> {
        self.buffers.iter().find(|buffer| buffer.id == id)
    }

    /// All buffers.
    #[must_use]
    pub fn buffers(&self) -> &[Arc<Buffer>] {
        &self.buffers
    }

    /// Positions below this are gone; all of them when there is no such buffer.
    #[must_use]
    pub fn floor(&self, buffer: BufferId) -> Position {
        self.buffer(buffer)
            .map_or(Position(u64::MAX), |buffer| buffer.floor())
    }

    /// Changes whenever a floor moves.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Whether the article is still there; costs no I/O.
    #[must_use]
    pub fn is_live(&self, token: &Token) -> bool {
        token.method() == METHOD && token.position() >= self.floor(token.buffer())
    }

    /// Reads an article, or its header block, into memory that is used again.
    pub fn read(
        &self,
        token: &Token,
        want: Want,
        blocking: Blocking,
        memory: &mut Vec<u8>,
    ) -> std::result::Result<Stored, ReadError> {
        match self.buffer(token.buffer()) {
            Some(buffer) if token.method() == METHOD => buffer.read(token, want, blocking, memory),
            _ => Err(ReadError::Gone),
        }
    }

    /// The records of a buffer that are alive, in the order of the file.
    #[must_use]
    pub fn scan(&self, buffer: BufferId) -> Option<Scan> {
        let buffer = self.buffer(buffer)?;
        Some(Scan::new(Arc::clone(buffer), buffer.end()))
    }

    /// A token in its text form.
    #[must_use]
    pub fn token_text(&self, token: &Token) -> Option<String> {
        let buffer = self.buffer(token.buffer())?;
        Some(
            TokenText {
                name: &buffer.name,
                position: token.position(),
            }
            .to_string(),
        )
    }

    /// The token of the record at a place given in text form, by looking there.
    pub fn token_at(&self, text: &TokenText<'_>) -> Option<Token> {
        let buffer = self
            .buffers
            .iter()
            .find(|buffer| buffer.name == text.name)?;
        buffer.token_at(text.position)
    }
}
