//! The table: everything small that is kept, in one redb file.
//!
//! A change is atomic and seen at once; it is on disk with the next one that is durable.  redb checks what it reads only after a
//! crash, and may panic where its file rots: that is caught here, ends the table, and removes its file, so that it begins anew
//! with the next checkpoint.  Where the disk failed, be it that it was full, the file stays and can be opened again: it is gone on with as
//! it reads then.  After a failed sync that is not for certain what lies on the disk: pages may be in the system's memory that were
//! never written, and read as sound until a crash.  The risk is taken, as all can be fetched again: redb's checksums find after a
//! crash what is torn, and the table begins anew.  What the tables hold is in `docs/formats/cache.md`.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_host::{Disk, OpenMode};
use newsreel_store::Marks;
use newsreel_wire::{BufferId, IdHash, Position, Token};
use parking_lot::RwLock;
use redb::{
    Database, Durability, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _,
    TableDefinition, WriteTransaction,
};

use super::backend::{OnDisk, is_fault_of_disk};
use super::block::Block;
use super::error::{KeepError, Result};
use super::group::KeptGroup;
use super::row::Row;
use super::sealed;
use super::wanted::Use;

/// Message-ids' hashes to tokens.
const ARTICLES: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("articles");
/// Buffers and positions to message-ids' hashes.
const PLACES: TableDefinition<'_, (u16, u64), &[u8; 16]> = TableDefinition::new("places");
/// Groups and numbers of blocks to blocks.
const BLOCKS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("blocks");
/// Groups' names to groups.
const GROUPS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("groups");
/// The rest, by name.
const FACTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("facts");

/// The fact that says where each buffer stands.
const MARKS: &str = "marks";

/// The fact that says which was the last use of an article.
const LAST_USE: &str = "last use";

/// Any error of redb.
pub(super) type Fault = Box<redb::Error>;

fn fault(error: impl Into<redb::Error>) -> Fault {
    Box::new(error.into())
}

/// The key of a block's checksum.
fn block_key(group: &str, block: u64) -> Vec<u8> {
    [group.as_bytes(), &block.to_le_bytes()].concat()
}

/// An article's row as it lies in the table, if it is sound.
fn row_of(id: &IdHash, value: &[u8]) -> Option<Row> {
    Row::decode(sealed::open(&id.0, value)?)
}

/// Where an article lies.
fn place_of(row: &Row) -> (u16, u64) {
    (row.token.buffer().0, row.token.position().0)
}

/// The table.
pub(super) struct Table {
    /// None: it could not be opened, or not again.
    database: RwLock<Option<Arc<Database>>>,
    disk: Arc<dyn Disk>,
    path: PathBuf,
    cache_octets: usize,
    is_broken: AtomicBool,
    /// It is opened again before the next start.
    may_come_back: AtomicBool,
    /// It is not the disk that failed: nothing in the file is of use, and it is removed.
    is_damaged: AtomicBool,
    /// That it failed was said.
    is_told: AtomicBool,
    /// Something was changed that is not durable.
    is_changed: AtomicBool,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("path", &self.path)
            .field("is_broken", &self.is_broken)
            .finish_non_exhaustive()
    }
}

fn opened(file: OnDisk, cache_octets: usize) -> std::result::Result<Database, Fault> {
    let mut builder = Database::builder();
    builder.set_cache_size(cache_octets);
    let database = builder.create_with_backend(file).map_err(fault)?;
    let tables = database.begin_write().map_err(fault)?;
    tables.open_table(ARTICLES).map_err(fault)?;
    tables.open_table(PLACES).map_err(fault)?;
    tables.open_table(BLOCKS).map_err(fault)?;
    tables.open_table(GROUPS).map_err(fault)?;
    tables.open_table(FACTS).map_err(fault)?;
    tables.commit().map_err(fault)?;
    Ok(database)
}

/// Gives a database up: one that is damaged may panic then, too.
fn give_up<T>(database: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
}

impl Table {
    /// One that is not open yet.
    pub(super) fn closed(disk: &Arc<dyn Disk>, path: &Path, cache_octets: usize) -> Self {
        Self {
            database: RwLock::default(),
            disk: Arc::clone(disk),
            path: path.to_owned(),
            cache_octets,
            is_broken: AtomicBool::new(true),
            may_come_back: AtomicBool::new(true),
            is_damaged: AtomicBool::new(false),
            is_told: AtomicBool::new(false),
            is_changed: AtomicBool::new(false),
        }
    }

    fn database_of(&self, mode: OpenMode) -> Result<Database> {
        let file = OnDisk(self.disk.open(&self.path, mode)?);
        match catch_unwind(AssertUnwindSafe(|| opened(file, self.cache_octets))) {
            Ok(Ok(database)) => Ok(database),
            Ok(Err(fault)) => Err(self.wrong(fault.to_string(), is_fault_of_disk(&fault))),
            Err(_) => Err(self.wrong("it is damaged".to_owned(), false)),
        }
    }

    fn wrong(&self, why: String, is_of_disk: bool) -> KeepError {
        let path = self.path.clone();
        match is_of_disk {
            true => KeepError::Disk { path, why },
            false => KeepError::Table { path, why },
        }
    }

    /// Opens it, also again where the disk failed: it is gone on with as it reads then.
    pub(super) fn open(&self, mode: OpenMode) -> Result<()> {
        let mut held = self.database.write();
        match held.take().map(Arc::try_unwrap) {
            // Somebody has not seen yet that it failed.
            Some(Err(old)) => {
                *held = Some(old);
                return Err(self.wrong("it is in use still".to_owned(), true));
            }
            old => give_up(old),
        }
        *held = Some(Arc::new(self.database_of(mode)?));
        self.is_damaged.store(false, Ordering::Release);
        self.may_come_back.store(true, Ordering::Release);
        self.is_broken.store(false, Ordering::Release);
        Ok(())
    }

    /// Nobody uses it until it is opened again.
    pub(super) fn close(&self) {
        self.is_broken.store(true, Ordering::Release);
        let old = self.database.write().take();
        give_up(old);
    }

    /// Whether it may be opened again before the next start.
    pub(super) fn may_come_back(&self) -> bool {
        self.may_come_back.load(Ordering::Acquire)
    }

    /// What lies beside it cannot be used, so neither can it until that is tried again.
    pub(super) fn failed(&self, error: &KeepError) {
        self.is_broken.store(true, Ordering::Release);
        if self.may_come_back() {
            self.broke(&error.to_string(), true);
        }
    }

    /// Its file stays as it is until the next start.
    pub(super) fn stays_closed(&self, error: &KeepError) {
        self.may_come_back.store(false, Ordering::Release);
        self.close();
        tracing::error!(target: "newsreel::cache", path = %self.path.display(), %error,
            "the cache's table is not gone on with; nothing is cached until the next start");
    }

    /// What is kept goes on after it was opened again.
    pub(super) fn came_back(&self) {
        self.is_told.store(false, Ordering::Release);
        tracing::info!(target: "newsreel::cache", path = %self.path.display(), "the cache's table can be used again");
    }

    /// Whether it failed, and nothing in it is to be had any more.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }

    /// Whether it failed as it is damaged.
    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Acquire)
    }

    /// Whether something was changed that is not durable.
    pub(super) fn is_changed(&self) -> bool {
        self.is_changed.load(Ordering::Acquire)
    }

    /// Does something with the database; what fails once is not used again.
    fn guarded<T>(
        &self,
        work: impl FnOnce(&Database) -> std::result::Result<T, Fault>,
    ) -> Result<T> {
        let held = match self.is_broken() {
            true => None,
            false => self.database.read().clone(),
        };
        let Some(database) = held else {
            let is_of_disk = self.may_come_back() && !self.is_damaged();
            return Err(self.wrong("it failed before".to_owned(), is_of_disk));
        };
        let (why, is_of_disk) = match catch_unwind(AssertUnwindSafe(|| work(&database))) {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(fault)) => (fault.to_string(), is_fault_of_disk(&fault)),
            Err(_) => ("it is damaged".to_owned(), false),
        };
        // Another may have taken the place of one that is damaged.
        let is_used = |held: &Arc<Database>| Arc::ptr_eq(held, &database);
        let is_used = self.database.read().as_ref().is_some_and(is_used);
        if is_used && !self.is_broken.swap(true, Ordering::AcqRel) {
            self.broke(&why, is_of_disk);
        }
        give_up(database);
        Err(self.wrong(why, is_of_disk))
    }

    fn broke(&self, why: &str, is_of_disk: bool) {
        let is_told = self.is_told.swap(true, Ordering::AcqRel);
        let path = self.path.display();
        if is_of_disk {
            if !is_told {
                tracing::error!(target: "newsreel::cache", %path, %why,
                    "the disk of the cache's table failed; nothing is cached until it can be used: it is tried again each minute");
            }
            return;
        }
        self.is_damaged.store(true, Ordering::Release);
        tracing::error!(target: "newsreel::cache", %path, %why,
            "the cache's table is damaged: it begins anew in some seconds, and what was kept is fetched again; pins stay.  If that comes \
            again look at its disk, and for who else writes there");
        if let Err(error) = self.disk.remove(&self.path) {
            tracing::error!(target: "newsreel::cache", %error, "it cannot be removed");
        }
    }

    /// Where an article lies, and what policies know of it.
    pub(super) fn article(&self, id: &IdHash) -> Result<Option<Row>> {
        self.guarded(|database| {
            let reading = database.begin_read().map_err(fault)?;
            let articles = reading.open_table(ARTICLES).map_err(fault)?;
            let found = articles.get(&id.0).map_err(fault)?;
            Ok(found.and_then(|value| row_of(id, value.value())))
        })
    }

    /// Where of these articles those lie that there are, and what policies know of them.
    pub(super) fn rows_of(
        &self,
        ids: &[IdHash],
        mut visit: impl FnMut(&IdHash, Row),
    ) -> Result<()> {
        self.guarded(|database| {
            let reading = database.begin_read().map_err(fault)?;
            let articles = reading.open_table(ARTICLES).map_err(fault)?;
            for id in ids {
                let value = articles.get(&id.0).map_err(fault)?;
                if let Some(row) = value.and_then(|value| row_of(id, value.value())) {
                    visit(id, row);
                }
            }
            Ok(())
        })
    }

    /// Every article.
    pub(super) fn each_article(&self, mut visit: impl FnMut(&IdHash, Row)) -> Result<()> {
        self.guarded(|database| {
            let reading = database.begin_read().map_err(fault)?;
            let articles = reading.open_table(ARTICLES).map_err(fault)?;
            for entry in articles.iter().map_err(fault)? {
                let (id, value) = entry.map_err(fault)?;
                let id = IdHash(*id.value());
                if let Some(row) = row_of(&id, value.value()) {
                    visit(&id, row);
                }
            }
            Ok(())
        })
    }

    /// The articles that lie below a position of a buffer and nowhere else, in order.
    pub(super) fn articles_below(
        &self,
        buffer: BufferId,
        floor: Position,
    ) -> Result<Vec<(IdHash, Row)>> {
        self.guarded(|database| {
            let reading = database.begin_read().map_err(fault)?;
            let places = reading.open_table(PLACES).map_err(fault)?;
            let articles = reading.open_table(ARTICLES).map_err(fault)?;
            let below = (buffer.0, 0)..(buffer.0, floor.0);
            let mut found = Vec::new();
            for place in places.range(below).map_err(fault)? {
                let (place, id) = place.map_err(fault)?;
                let id = IdHash(*id.value());
                let value = articles.get(&id.0).map_err(fault)?;
                let row = value.and_then(|value| row_of(&id, value.value()));
                let row = row.filter(|row| place_of(row) == place.value());
                found.extend(row.map(|row| (id, row)));
            }
            Ok(found)
        })
    }

    /// The last use that was noted.
    pub(super) fn last_use(&self) -> Result<u64> {
        let octets = self.fact(LAST_USE)?;
        let last = octets.and_then(|octets| octets.try_into().ok());
        Ok(last.map_or(0, u64::from_le_bytes))
    }

    /// How many articles there are.
    pub(super) fn articles(&self) -> Result<u64> {
        self.guarded(|database| {
            let reading = database.begin_read().map_err(fault)?;
            let articles = reading.open_table(ARTICLES).map_err(fault)?;
            articles.len().map_err(fault)
        })
    }

    /// What is known of a block.
    pub(super) fn block(&self, group: &str, block: u64) -> Result<Option<Block>> {
        self.guarded(|database| {
            let reading = database.begin_read().map_err(fault)?;
            let blocks = reading.open_table(BLOCKS).map_err(fault)?;
            let found = blocks.get((group, block)).map_err(fault)?;
            Ok(found.and_then(|value| {
                let octets = sealed::open(&block_key(group, block), value.value())?;
                Block::decode(octets)
            }))
        })
    }

    /// The blocks of a group that are known, in order.
    pub(super) fn each_block(&self, group: &str, mut visit: impl FnMut(u64, &Block)) -> Result<()> {
        self.guarded(|database| {
            let reading = database.begin_read().map_err(fault)?;
            let blocks = reading.open_table(BLOCKS).map_err(fault)?;
            for row in blocks.range((group, 0)..(group, u64::MAX)).map_err(fault)? {
                let (key, value) = row.map_err(fault)?;
                let number = key.value().1;
                let octets = sealed::open(&block_key(group, number), value.value());
                if let Some(block) = octets.and_then(Block::decode) {
                    visit(number, &block);
                }
            }
            Ok(())
        })
    }

    /// Every group.
    pub(super) fn groups(&self, mut visit: impl FnMut(&str, KeptGroup)) -> Result<()> {
        self.guarded(|database| {
            let reading = database.begin_read().map_err(fault)?;
            let groups = reading.open_table(GROUPS).map_err(fault)?;
            for row in groups.iter().map_err(fault)? {
                let (name, value) = row.map_err(fault)?;
                let octets = sealed::open(name.value().as_bytes(), value.value());
                if let Some(group) = octets.and_then(KeptGroup::decode) {
                    visit(name.value(), group);
                }
            }
            Ok(())
        })
    }

    /// A fact that was noted.
    pub(super) fn fact(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.guarded(|database| {
            let reading = database.begin_read().map_err(fault)?;
            let facts = reading.open_table(FACTS).map_err(fault)?;
            let found = facts.get(name).map_err(fault)?;
            Ok(found.and_then(|value| {
                let octets = sealed::open(name.as_bytes(), value.value())?;
                Some(octets.to_vec())
            }))
        })
    }

    /// Where the buffers stood, and the last sequence.
    pub(super) fn marks(&self) -> Result<(Vec<Marks>, u64)> {
        let octets = self.fact(MARKS)?.unwrap_or_default();
        let mut numbers = octets.as_chunks().0.iter();
        let mut number = || numbers.next().map(|octets| u64::from_le_bytes(*octets));
        let mut marks = || {
            let buffer = BufferId(u16::try_from(number()?).ok()?);
            let (end, reserved) = (Position(number()?), Position(number()?));
            let marks = Marks {
                buffer,
                end,
                reserved,
                known: None,
            };
            Some((marks, number()?))
        };
        let (mut all, mut last) = (Vec::new(), 0);
        while let Some((marks, sequence)) = marks() {
            all.push(marks);
            last = sequence;
        }
        Ok((all, last))
    }

    /// Changes it.
    pub(super) fn change<T>(
        &self,
        is_durable: bool,
        changing: impl FnOnce(&Change<'_>) -> std::result::Result<T, Fault>,
    ) -> Result<T> {
        self.guarded(|database| {
            let mut writing = database.begin_write().map_err(fault)?;
            if !is_durable {
                writing.set_durability(Durability::None).map_err(|error| {
                    let error = redb::StorageError::Io(std::io::Error::other(error.to_string()));
                    fault(error)
                })?;
            }
            let done = changing(&Change(&writing))?;
            // Only who writes says so, as others wait for it.
            self.is_changed.store(!is_durable, Ordering::Release);
            writing.commit().map_err(fault)?;
            Ok(done)
        })
    }
}

/// A change under way.
pub(super) struct Change<'t>(&'t WriteTransaction);

impl Change<'_> {
    /// An article was placed.
    pub(super) fn put_articles(
        &self,
        articles: &[(IdHash, Row)],
    ) -> std::result::Result<(), Fault> {
        let mut rows = self.0.open_table(ARTICLES).map_err(fault)?;
        let mut places = self.0.open_table(PLACES).map_err(fault)?;
        for (id, row) in articles {
            let value = sealed::seal(&id.0, &row.encode());
            rows.insert(&id.0, &*value).map_err(fault)?;
            places.insert(place_of(row), &id.0).map_err(fault)?;
        }
        let last = articles.iter().map(|(_, row)| row.used).max();
        self.raise_last_use(last.unwrap_or(0))
    }

    /// Articles were asked for, the last of them just now.
    pub(super) fn put_uses(
        &self,
        uses: &HashMap<IdHash, Use>,
        last: u64,
    ) -> std::result::Result<(), Fault> {
        let mut rows = self.0.open_table(ARTICLES).map_err(fault)?;
        for (id, noted) in uses {
            let row = rows.get(&id.0).map_err(fault)?;
            let row = row.and_then(|value| row_of(id, value.value()));
            if let Some(mut row) = row {
                row.uses = row.uses.saturating_add(noted.times);
                row.used = row.used.max(noted.last);
                row.used_at = row.used_at.max(noted.at.0);
                let value = sealed::seal(&id.0, &row.encode());
                rows.insert(&id.0, &*value).map_err(fault)?;
            }
        }
        drop(rows);
        self.raise_last_use(last)
    }

    fn raise_last_use(&self, last: u64) -> std::result::Result<(), Fault> {
        let noted = {
            let facts = self.0.open_table(FACTS).map_err(fault)?;
            let found = facts.get(LAST_USE).map_err(fault)?;
            found.and_then(|value| {
                let octets = sealed::open(LAST_USE.as_bytes(), value.value())?;
                Some(u64::from_le_bytes(octets.try_into().ok()?))
            })
        };
        match noted.is_none_or(|noted| noted < last) {
            true => self.put_fact(LAST_USE, &last.to_le_bytes()),
            false => Ok(()),
        }
    }

    /// These are not shown any more.  Their places go with their segments.
    pub(super) fn forget(&self, ids: &[IdHash]) -> std::result::Result<(), Fault> {
        let mut tokens = self.0.open_table(ARTICLES).map_err(fault)?;
        for id in ids {
            tokens.remove(&id.0).map_err(fault)?;
        }
        Ok(())
    }

    /// An article is not there where it should be.  Its place goes with its segment.
    pub(super) fn forget_at(&self, id: &IdHash, token: &Token) -> std::result::Result<(), Fault> {
        let mut rows = self.0.open_table(ARTICLES).map_err(fault)?;
        let row = rows.get(&id.0).map_err(fault)?;
        let row = row.and_then(|value| row_of(id, value.value()));
        // It may have been stored again since.
        if row.is_some_and(|row| row.token == *token) {
            rows.remove(&id.0).map_err(fault)?;
        }
        Ok(())
    }

    /// What lies below a position of a buffer is gone.
    pub(super) fn forget_below(
        &self,
        buffer: BufferId,
        floor: Position,
    ) -> std::result::Result<(), Fault> {
        let mut tokens = self.0.open_table(ARTICLES).map_err(fault)?;
        let mut places = self.0.open_table(PLACES).map_err(fault)?;
        let below = (buffer.0, 0)..(buffer.0, floor.0);
        let gone = places.extract_from_if(below, |_, _| true).map_err(fault)?;
        for place in gone {
            let (place, id) = place.map_err(fault)?;
            // It may have been stored again since.
            let is_there = tokens.get(id.value()).map_err(fault)?.is_some_and(|value| {
                let row = row_of(&IdHash(*id.value()), value.value());
                row.is_some_and(|row| place_of(&row) != place.value())
            });
            if !is_there {
                tokens.remove(id.value()).map_err(fault)?;
            }
        }
        Ok(())
    }

    /// A block of a group; gives its octets, and those of what was there.
    pub(super) fn put_block(
        &self,
        group: &str,
        number: u64,
        block: &Block,
    ) -> std::result::Result<(u64, u64), Fault> {
        let value = sealed::seal(&block_key(group, number), &block.encode());
        let mut blocks = self.0.open_table(BLOCKS).map_err(fault)?;
        let old = blocks.insert((group, number), &*value).map_err(fault)?;
        let old = old.map_or(0, |old| old.value().len());
        Ok((value.len() as u64, old as u64))
    }

    /// A group.
    pub(super) fn put_group(
        &self,
        name: &str,
        group: &KeptGroup,
    ) -> std::result::Result<(), Fault> {
        if let Some(value) = group.encode() {
            let value = sealed::seal(name.as_bytes(), &value);
            let mut groups = self.0.open_table(GROUPS).map_err(fault)?;
            groups.insert(name, &*value).map_err(fault)?;
        }
        Ok(())
    }

    /// A group is not known any more.
    pub(super) fn remove_group(&self, name: &str) -> std::result::Result<(), Fault> {
        let mut groups = self.0.open_table(GROUPS).map_err(fault)?;
        groups.remove(name).map_err(fault)?;
        Ok(())
    }

    /// Blocks of a group go, each shown before; gives their octets.
    pub(super) fn remove_blocks(
        &self,
        group: &str,
        numbers: Range<u64>,
        mut visit: impl FnMut(&Block),
    ) -> std::result::Result<u64, Fault> {
        let mut blocks = self.0.open_table(BLOCKS).map_err(fault)?;
        let mut octets = 0;
        let range = (group, numbers.start)..(group, numbers.end);
        for row in blocks.extract_from_if(range, |_, _| true).map_err(fault)? {
            let (key, value) = row.map_err(fault)?;
            octets += value.value().len() as u64;
            let sealed = sealed::open(&block_key(group, key.value().1), value.value());
            if let Some(block) = sealed.and_then(Block::decode) {
                visit(&block);
            }
        }
        Ok(octets)
    }

    /// Where the buffers stand, and the last sequence.
    pub(super) fn put_marks(
        &self,
        marks: &[Marks],
        sequence: u64,
    ) -> std::result::Result<(), Fault> {
        let numbers = marks.iter().flat_map(|marks| {
            [
                u64::from(marks.buffer.0),
                marks.end.0,
                marks.reserved.0,
                sequence,
            ]
        });
        let octets: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        self.put_fact(MARKS, &octets)
    }

    /// Notes a fact.
    pub(super) fn put_fact(&self, name: &str, value: &[u8]) -> std::result::Result<(), Fault> {
        let mut facts = self.0.open_table(FACTS).map_err(fault)?;
        let value = sealed::seal(name.as_bytes(), value);
        facts.insert(name, &*value).map_err(fault)?;
        Ok(())
    }
}
