//! All sets of a spool as the sequencer uses them; everyone else reads through [`StoreReader`].
//!
//! The order of a commit: `place` as often as there are articles, `reservations` (into the log frame of this commit),
//! `seal`, then on the commit thread `write` and `sync` of every batch, the log, and back here `reserved` for each
//! reservation that the log now has.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, machine_octets};
use newsreel_wire::{BufferId, Position, Sequence, SetId, Token, UnixTime};

use crate::addition::{Addition, NewBuffer};
use crate::config::StoreConfig;
use crate::error::{Error, PlaceError, Result};
use crate::facts::PlannedBuffer;
use crate::method::{
    BatchWrite, BufferReader, CheckpointWrite, LastKnown, Left, Marks, Missing, Place, Reservation,
    StorageMethod,
};
use crate::methods::cnfs::{self, CreateProgress, Resizing, Room};
use crate::methods::{self, Opening};
use crate::reader::StoreReader;
use crate::register::Register;
use crate::retirement::Retirement;

/// The sequencer's half: all sets.
#[derive(Debug)]
pub struct Store {
    sets: Vec<Box<dyn StorageMethod>>,
    reader: Arc<StoreReader>,
    retirement: Arc<Retirement>,
    addition: Arc<Addition>,
    access: Access,
    /// Only the bitmaps may know what was withdrawn, and the store is written on.
    are_bits_newer: bool,
}

/// The register of a spool's buffers, which a sound configuration names all.
fn register(disk: &Arc<dyn Disk>, spool_dir: &Path, config: &StoreConfig) -> Result<Register> {
    if let Some(problem) = config.problems().into_iter().next() {
        return Err(Error::Config(format!("{}: {}", problem.key, problem.right)));
    }
    let mut register = Register::open(disk.as_ref(), &spool_dir.join("buffers"))?;
    register.reconcile(&|name| names(config, name), &config.dropped)?;
    Ok(register)
}

/// Whether a configuration names a buffer, or a set without buffers.
fn names(config: &StoreConfig, name: &str) -> bool {
    let mut sets = config.sets.iter();
    config.buffers.iter().any(|buffer| buffer.name == name)
        || sets.any(|set| !set.has_buffers() && set.name == name)
}

/// A set's id is its place in the configuration.
fn set_id(at: usize) -> Result<SetId> {
    let id = u8::try_from(at).map(SetId);
    id.map_err(|_| Error::Config("there are more than 255 sets".to_owned()))
}

/// The names of those that cannot be, and why.
pub(crate) fn refused(
    names: &[String],
    mut check: impl FnMut(&String) -> Result<bool>,
) -> Vec<(String, Error)> {
    let why = |name| Some((String::clone(name), check(name).err()?));
    names.iter().filter_map(why).collect()
}

/// Whether a store is opened to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Articles are placed; missing buffers are made.
    Write,
    /// Only read, nothing is written or made; a missing buffer is an error, but for sets without buffers that are made at the next start
    /// beside others.
    ReadOnly,
}

impl Store {
    /// Opens the buffers of a spool and makes those it never had.  `known` are buffer ids that the log has: a new
    /// buffer gets another one, also when the spool's register of buffers is lost.
    ///
    /// # Errors
    /// When the configuration contradicts itself or does not name a buffer of the spool, or a buffer is missing, damaged,
    /// or of another spool.
    pub fn open(
        disk: &Arc<dyn Disk>,
        spool_dir: &Path,
        spool: [u8; 16],
        config: &StoreConfig,
        known: &[BufferId],
        access: Access,
        progress: CreateProgress<'_>,
    ) -> Result<Self> {
        let mut register = register(disk, spool_dir, config)?;
        for name in &config.dropped {
            tracing::warn!(
                buffer = name,
                "a buffer is let go, and the articles in it; its file may be removed"
            );
        }
        let mut opening = Opening {
            disk,
            spool_dir,
            spool,
            config,
            register: &mut register,
            known,
            access,
            machine_octets: machine_octets(),
            progress,
        };
        let (mut sets, mut readers, mut cyclic) = (Vec::new(), Vec::new(), Vec::new());
        for (at, set) in config.sets.iter().enumerate() {
            let id = set_id(at)?;
            let Some(method) = methods::find(&set.method) else {
                return Err(Error::Config(format!(
                    "there is no method {:?}",
                    set.method
                )));
            };
            let mut opened = (method.open)(&mut opening, id, set)?;
            sets.push(opened.placing);
            readers.append(&mut opened.readers);
            cyclic.append(&mut opened.cyclic);
        }
        if access == Access::Write {
            register.settle(disk.as_ref())?;
        }
        let reader = Arc::new(StoreReader::new(readers));
        let place = (Arc::clone(disk), access);
        let retirement = Arc::new(Retirement::new(place, register, cyclic, config));
        let addition = Addition {
            disk: Arc::clone(disk),
            spool_dir: spool_dir.to_path_buf(),
            spool,
            sets: config.sets.clone(),
            known: known.to_vec(),
            reader: Arc::clone(&reader),
            retirement: Arc::clone(&retirement),
        };
        Ok(Self {
            sets,
            reader,
            retirement,
            addition: Arc::new(addition),
            access,
            are_bits_newer: false,
        })
    }

    /// The cyclic buffers of a configuration, each with what there is of it, as far as `ends` do not tell where it stands by its header;
    /// reads only.
    ///
    /// # Errors
    /// When the configuration contradicts itself, or what is there cannot be looked at.
    pub fn planned(
        disk: &Arc<dyn Disk>,
        spool_dir: &Path,
        config: &StoreConfig,
        ends: &BTreeMap<BufferId, Position>,
    ) -> Result<Vec<PlannedBuffer>> {
        let register = register(disk, spool_dir, config)?;
        let mut planned = Vec::new();
        for set in config.sets.iter().filter(|set| set.has_buffers()) {
            let set = (config, set);
            planned.extend(cnfs::planned(disk, spool_dir, set, &register, ends)?);
        }
        Ok(planned)
    }

    /// Buffers and sets of a spool that a configuration does not name, and without which it does not open; reads only.
    ///
    /// # Errors
    /// When the spool's register cannot be read.
    pub fn unnamed(
        disk: &Arc<dyn Disk>,
        spool_dir: &Path,
        config: &StoreConfig,
    ) -> Result<Vec<String>> {
        let register = Register::open(disk.as_ref(), &spool_dir.join("buffers"))?;
        let unnamed = register.unnamed(&|name| names(config, name)).into_iter();
        Ok(unnamed.map(str::to_owned).collect())
    }

    /// Which of the cyclic buffers of these names [`Store::create`] could not make, or not look at, and why; reads only.
    ///
    /// # Errors
    /// When the configuration contradicts itself.
    pub fn try_create(
        disk: &Arc<dyn Disk>,
        (spool_dir, spool): (&Path, [u8; 16]),
        config: &StoreConfig,
        names: &[String],
    ) -> Result<Vec<(String, Error)>> {
        let mut register = register(disk, spool_dir, config)?;
        let mut opening = Opening {
            disk,
            spool_dir,
            spool,
            config,
            register: &mut register,
            known: &[],
            access: Access::Write,
            machine_octets: machine_octets(),
            progress: &mut |_, _, _| {},
        };
        let (mut refusals, mut room) = (Vec::new(), Room::default());
        for (at, set) in config.sets.iter().enumerate() {
            if set.has_buffers() {
                let set = (set_id(at)?, set);
                refusals.append(&mut cnfs::refusals(&mut opening, set, names, &mut room)?);
            }
        }
        Ok(refusals)
    }

    /// Makes the cyclic buffers of these names that are not there, as [`Store::open`] does with all, and looks at those that
    /// are.  None is made while one of them cannot be.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn create(
        disk: &Arc<dyn Disk>,
        (spool_dir, spool): (&Path, [u8; 16]),
        config: &StoreConfig,
        names: &[String],
        known: &[BufferId],
        progress: CreateProgress<'_>,
    ) -> Result<()> {
        let refusals = Self::try_create(disk, (spool_dir, spool), config, names)?;
        if let Some((_, why)) = refusals.into_iter().next() {
            return Err(why);
        }
        let mut register = register(disk, spool_dir, config)?;
        let mut opening = Opening {
            disk,
            spool_dir,
            spool,
            config,
            register: &mut register,
            known,
            access: Access::Write,
            machine_octets: machine_octets(),
            progress,
        };
        for (at, set) in config.sets.iter().enumerate() {
            if set.has_buffers() {
                cnfs::create(&mut opening, set_id(at)?, set, names)?;
            }
        }
        Ok(())
    }

    /// Makes a cyclic buffer as large as the configuration says, or has it become smaller when it comes around.  Nobody may have the store
    /// open, and the log must have ended in order.
    ///
    /// # Errors
    /// When it is not there, cannot have that size, or there is no room.
    pub fn resize(
        disk: &Arc<dyn Disk>,
        place: (&Path, [u8; 16]),
        config: &StoreConfig,
        name: &str,
        progress: CreateProgress<'_>,
    ) -> Result<()> {
        let buffer = config.buffer(name)?;
        cnfs::resize(disk.as_ref(), place, buffer, progress)
    }

    /// Which of these cyclic buffers [`Store::resize`] could not give the size that the configuration says, and why; reads only.
    pub fn try_resize(
        disk: &Arc<dyn Disk>,
        place: (&Path, [u8; 16]),
        config: &StoreConfig,
        names: &[String],
    ) -> Vec<(String, Error)> {
        let mut room = Room::default();
        let check = |name: &String| {
            let buffer = (config.buffer(name)?, None);
            cnfs::check_size(disk.as_ref(), place, buffer, &mut room)
        };
        refused(names, check)
    }

    /// The readers' half.
    #[must_use]
    pub fn reader(&self) -> Arc<StoreReader> {
        Arc::clone(&self.reader)
    }

    /// What says which buffers take nothing new.
    #[must_use]
    pub fn retirement(&self) -> Arc<Retirement> {
        Arc::clone(&self.retirement)
    }

    /// What makes buffers to be added.
    #[must_use]
    pub fn addition(&self) -> Arc<Addition> {
        Arc::clone(&self.addition)
    }

    /// A buffer takes its share of its set from now on.
    pub fn add(&mut self, buffer: NewBuffer) {
        let reader: Arc<dyn BufferReader> = Arc::clone(&buffer.cyclic.buffer) as _;
        self.reader.add(&reader);
        self.retirement.add(Arc::clone(&buffer.cyclic.buffer));
        if let Some(set) = self.sets.get_mut(usize::from(buffer.set.0)) {
            set.add(buffer);
        }
        self.reader.next_epoch();
    }

    /// A buffer that was [let go](Retirement::let_go) is not there any more.
    pub fn remove(&mut self, buffer: BufferId) {
        for set in &mut self.sets {
            set.remove(buffer);
        }
        self.retirement.remove(buffer);
        self.reader.remove(buffer);
        self.reader.next_epoch();
    }

    /// A buffer has as much room as was made for it, or becomes smaller from now on.  Waits for the disk.
    ///
    /// # Errors
    /// When its file cannot be written: then it takes nothing more until the next start.
    pub fn resize_open(&mut self, resizing: &Resizing) -> Result<()> {
        let mut sets = self.sets.iter_mut();
        let done = sets.find_map(|set| set.resize(resizing));
        self.reader.next_epoch();
        done.unwrap_or(Ok(()))
    }

    /// Gives an article a place in the set of `place` and copies it into that set's open batch.
    pub fn place(&mut self, place: &Place<'_>) -> std::result::Result<Token, PlaceError> {
        let set = self.sets.get_mut(usize::from(place.set.0));
        set.ok_or(PlaceError::NoSet)?.place(place)
    }

    /// The same; one that lies in another spool stays there, where its set is of such.
    pub fn place_or_refer(
        &mut self,
        place: &Place<'_>,
        lies_at: Option<&str>,
    ) -> std::result::Result<Token, PlaceError> {
        let Some(lies_at) = lies_at else {
            return self.place(place);
        };
        let set = self.sets.get_mut(usize::from(place.set.0));
        set.ok_or(PlaceError::NoSet)?.refer(place, lies_at)
    }

    /// It is this time, and nothing was placed yet: what was placed in earlier runs arrived before.
    pub fn began(&mut self, now: UnixTime) {
        for set in &mut self.sets {
            set.began(now);
        }
    }

    /// Appends what must be reserved, or may go by now, by the commit whose batches are sealed next.  All earlier commits must have
    /// ended: what they asked for in vain is asked for again.
    pub fn reservations(&mut self, now: Option<UnixTime>, out: &mut Vec<Reservation>) {
        for set in &mut self.sets {
            set.reservations(now, out);
        }
    }

    /// A reservation is durable in the log: what lies in the region is gone from now on, and it may be written.
    pub fn reserved(&mut self, reservation: Reservation) {
        if let Some(set) = self.set_of(reservation.buffer) {
            set.reserved(reservation);
        }
        self.note_drained();
        self.reader.next_epoch();
    }

    /// With what was reserved the last of a retired buffer may have gone.
    fn note_drained(&self) {
        if let Err(error) = self.retirement.note_drained() {
            tracing::error!(%error, "that a buffer is drained cannot be noted; a checkpoint tries it again");
        }
    }

    /// What must be reserved so that the oldest file of a buffer goes, whatever its set's limits say; none: there is no other than the
    /// one that is written.
    #[must_use]
    pub fn oldest(&self, buffer: BufferId) -> Option<Reservation> {
        let set = self.reader.buffer(buffer)?.set();
        self.sets.get(usize::from(set.0))?.oldest()
    }

    /// Closes the open batches and appends them.
    ///
    /// When a commit failed, seal what was placed since then first, into the next commit: only then is what is placed
    /// again from the failed batches a batch of its own.
    pub fn seal(&mut self, out: &mut Vec<Box<dyn BatchWrite>>) {
        for set in &mut self.sets {
            set.seal(out);
        }
    }

    /// Takes the memory of batches back that are done with.
    pub fn recycle(&mut self, batches: &mut Vec<Box<dyn BatchWrite>>) {
        // Each gives its memory to its set when it is dropped.
        batches.clear();
    }

    /// Takes a buffer out of use.  Batches of it that are still to be written are refused.
    pub fn suspend(&mut self, buffer: BufferId) {
        if let Some(set) = self.set_of(buffer) {
            set.suspend(buffer, "on request");
        }
    }

    /// Appends where each buffer stands, what is placed in the open batches included.
    pub fn marks(&self, out: &mut Vec<Marks>) {
        for set in &self.sets {
            set.marks(out);
        }
    }

    /// Retired buffers that are not drained, and where they stand.
    #[must_use]
    pub fn draining(&self) -> Vec<(BufferId, Position)> {
        let (draining, mut marks) = (self.retirement.draining(), Vec::new());
        if !draining.is_empty() {
            self.marks(&mut marks);
        }
        marks.retain(|mark| draining.contains(&mark.buffer));
        marks.iter().map(|mark| (mark.buffer, mark.end)).collect()
    }

    /// Told of each article that the log has since the last checkpoint, in order, before `resume`: so tools find it.
    pub fn replayed(&mut self, token: &Token) {
        if let Some(set) = self.set_of(token.buffer()) {
            set.replayed(token);
        }
    }

    /// Told of the articles that the log has withdrawn durably, also during recovery: so tools find them no more, and where
    /// their set wants that their text is overwritten by what is appended to `out`.
    pub fn withdrawn(&mut self, tokens: &[Token], out: &mut Vec<Box<dyn BatchWrite>>) {
        if tokens.is_empty() {
            return;
        }
        for set in &mut self.sets {
            set.withdrawn(tokens, out);
        }
    }

    /// Before [`Store::resume`]: the log is older than what was there (an old one was put back), so every buffer is
    /// searched for its true end.
    pub fn distrust(&mut self) {
        self.trust_bits();
        for set in &mut self.sets {
            set.distrust();
        }
    }

    /// The log may have lost withdrawals of which the bitmaps know.
    pub fn trust_bits(&mut self) {
        self.are_bits_newer = self.access == Access::Write;
    }

    /// Whether that was found, by who writes.
    #[must_use]
    pub const fn are_bits_newer(&self) -> bool {
        self.are_bits_newer
    }

    /// Before [`Store::resume`]: what lies in the buffers behind these marks and the log does not have.  At its end, nothing
    /// when there is more than the last commits can leave: then the log is an old one, and the buffers are searched for
    /// their true ends.
    ///
    /// # Errors
    /// When a buffer cannot be read or written, or the log's marks cannot be of these files.
    pub fn left_over(&mut self, marks: &[Marks], missing: Missing) -> Result<Vec<Left>> {
        let mut left = Vec::new();
        let may_have = missing.is_hurt || self.may_have_left(marks, missing)?;
        // What one buffer has begun, others may have too.
        for set in self.sets.iter().filter(|_| may_have) {
            if !set.left_over(marks, missing, &mut left)? {
                self.distrust();
                return Ok(Vec::new());
            }
        }
        Ok(left)
    }

    /// Before [`Store::resume`]: whether there is an article close behind these marks that the log does not have.
    ///
    /// # Errors
    /// When a buffer cannot be read, or the log's marks cannot be of these files.
    pub fn may_have_left(&self, marks: &[Marks], missing: Missing) -> Result<bool> {
        for set in &self.sets {
            if set.may_have_left(marks, missing)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_ahead(&self, marks: &[Marks], log_end: Sequence) -> Result<bool> {
        for set in &self.sets {
            if set.is_ahead(marks, log_end)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// After recovery: each buffer goes on behind its last committed article.  `log_end` is the last sequence the log
    /// has; where a buffer knows of more the log has lost something, and all go on behind all that was ever written.
    ///
    /// # Errors
    /// When the log's marks cannot be of these files.
    pub fn resume(&mut self, marks: &[Marks], log_end: Sequence) -> Result<()> {
        if self.is_ahead(marks, log_end)? {
            self.distrust();
        }
        for set in &mut self.sets {
            set.resume(marks, log_end)?;
        }
        self.note_drained();
        self.reader.next_epoch();
        Ok(())
    }

    /// Behind [`Self::resume`] with a log that is not too old: looks for buffers that were put back as they had been before.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn find_lacking(&mut self, known: &[LastKnown]) -> Result<()> {
        let mut sets = self.sets.iter_mut();
        sets.try_for_each(|set| set.find_lacking(known))
    }

    /// Appends what headers and bitmaps must be told.  It may be written when the commit that is open now is durable,
    /// on another thread.
    pub fn checkpoint(&mut self, out: &mut Vec<Box<dyn CheckpointWrite>>) {
        for set in &mut self.sets {
            set.checkpoint(out);
        }
        out.extend(self.retirement.checkpoint());
    }

    fn set_of(&mut self, buffer: BufferId) -> Option<&mut Box<dyn StorageMethod>> {
        let set = self.reader.buffer(buffer)?.set();
        self.sets.get_mut(usize::from(set.0))
    }
}
