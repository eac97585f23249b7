//! Making buffers: before a start would, the same files by the same code, under the spool's lock; or beside the server that
//! runs, whose sequencer takes them in.  And giving them another size: beside the server as well, or of a spool that was left in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use newsreel_host::{Clock, Disk};
use newsreel_journal::SpoolId;
use newsreel_store::{PlannedBuffer, Store};
use newsreel_wire::{BufferId, Position};
use parking_lot::MutexGuard;

use crate::config::EngineConfig;
use crate::engine::{Engine, Progress};
use crate::error::Error;
use crate::replay::Replay;
use crate::requests::{BufferChange, Request};
use crate::spool::Spool;

/// The name of a buffer with which something cannot be done, and why.
pub type Refusal = (String, newsreel_store::Error);

impl Engine {
    /// The cyclic buffers of a configuration, each with what there is of it; reads only, and needs no spool.  They stand at `ends`, or
    /// where their headers say, which may be from some time ago.
    ///
    /// # Errors
    /// When the configuration cannot be, or what is there cannot be looked at.
    pub fn planned_buffers(
        config: &EngineConfig,
        disk: &Arc<dyn Disk>,
        ends: &BTreeMap<BufferId, Position>,
    ) -> Result<Vec<PlannedBuffer>, Error> {
        Ok(Store::planned(disk, &config.spool, &config.store, ends)?)
    }

    /// Where the buffers of a spool that nobody has open stand by its log, as far as that tells; reads only.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn buffer_ends(
        config: &EngineConfig,
        disk: &Arc<dyn Disk>,
    ) -> Result<BTreeMap<BufferId, Position>, Error> {
        let Some(spool) = Spool::look(disk, &config.spool)? else {
            return Ok(BTreeMap::new());
        };
        let marks = of_the_log(disk, &spool)?.marks;
        Ok(marks.into_iter().map(|(id, (end, _))| (id, end)).collect())
    }

    /// Which of the buffers of these names [`Engine::create_buffers`] could not make, or not look at, and why; reads only.
    ///
    /// # Errors
    /// When the configuration cannot be, or the directory is none for a spool.
    pub fn try_create_buffers(
        config: &EngineConfig,
        disk: &Arc<dyn Disk>,
        names: &[String],
    ) -> Result<Vec<Refusal>, Error> {
        let spool = Spool::look(disk, &config.spool)?;
        // No buffer is of one that is not made yet.
        let id = spool.map_or([0; 16], |spool| spool.id);
        let place = (config.spool.as_path(), id);
        Ok(Store::try_create(disk, place, &config.store, names)?)
    }

    /// Makes the buffers of these names that are not there, and the spool too where there is none; none while one of them cannot be.
    ///
    /// # Errors
    /// When somebody has the spool, or a buffer cannot be made.
    pub fn create_buffers(
        config: &EngineConfig,
        disk: &Arc<dyn Disk>,
        names: &[String],
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let spool = Spool::open(disk, &config.spool)?;
        // As a start: no id is given that the log has, also where the register is lost.
        let replay = of_the_log(disk, &spool)?;
        let known: Vec<BufferId> = replay.marks.keys().copied().collect();
        let place = (config.spool.as_path(), spool.id);
        Store::create(disk, place, &config.store, names, &known, progress)?;
        Ok(())
    }

    /// Makes the buffers of these names as large as the configuration says, or has them become smaller when they come around.  A spool that
    /// was not left in order is opened for that, with the buffers as they are, and closed.  None of them while one cannot.
    ///
    /// # Errors
    /// When somebody has the spool, or a buffer cannot have that size.
    pub fn resize_buffers(
        config: &EngineConfig,
        disk: &Arc<dyn Disk>,
        clock: &Arc<dyn Clock>,
        names: &[String],
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let spool = match Self::left_in_order(config, disk)? {
            Ok(spool) => spool,
            Err(spool) => {
                drop(spool);
                let as_it_is = as_they_are(config, disk)?;
                let (disk_there, clock) = (Arc::clone(disk), Arc::clone(clock));
                Self::open(as_it_is, disk_there, clock, &mut *progress)?.shutdown()?;
                Self::left_in_order(config, disk)?.map_err(|_| Error::Locked {
                    path: config.spool.clone(),
                    pid: None,
                })?
            }
        };
        let place = (config.spool.as_path(), spool.id);
        let refusals = Store::try_resize(disk, place, &config.store, names);
        if let Some((_, why)) = refusals.into_iter().next() {
            return Err(why.into());
        }
        for name in names {
            Store::resize(disk, place, &config.store, name, progress)?;
        }
        Ok(())
    }

    /// Which of these buffers of a spool that nobody has open cannot have the size that the configuration says, and why; reads only.
    ///
    /// # Errors
    /// When there is no spool.
    pub fn try_resize_offline(
        config: &EngineConfig,
        disk: &Arc<dyn Disk>,
        names: &[String],
    ) -> Result<Vec<Refusal>, Error> {
        let spool = Spool::open_read_only(disk, &config.spool)?;
        let place = (config.spool.as_path(), spool.id);
        Ok(Store::try_resize(disk, place, &config.store, names))
    }

    /// The spool, locked; `Err`: the last record of its log is not that somebody stopped.
    fn left_in_order(
        config: &EngineConfig,
        disk: &Arc<dyn Disk>,
    ) -> Result<Result<Spool, Spool>, Error> {
        let spool = Spool::open(disk, &config.spool)?;
        let was_stopped = of_the_log(disk, &spool)?.stopped;
        Ok(if was_stopped { Ok(spool) } else { Err(spool) })
    }

    /// One at a time changes the buffers, of a spool that takes articles.
    fn changing_buffers(&self) -> Result<MutexGuard<'_, ()>, Error> {
        match self.only_looks() {
            true => Err(Error::Stopping),
            false => Ok(self.shared.adding.lock()),
        }
    }

    /// The buffers of a configuration that could be added now: new ones, of sets that are in use.
    pub fn missing_buffers(&self, config: &EngineConfig) -> Vec<String> {
        self.shared.addition.missing(&config.store)
    }

    /// Makes one of them, which may take long, and has it take its share of its set from then on.
    ///
    /// # Errors
    /// When it cannot be made or is not new, or the server stops.
    pub fn add_buffer(
        &self,
        config: &EngineConfig,
        name: &str,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let _one = self.changing_buffers()?;
        let buffer = self.shared.addition.make(&config.store, name, progress)?;
        self.ask(Request::Buffers(BufferChange::Add(Box::new(buffer))))
    }

    /// The spool does without a buffer in which nothing is left, from now on and after a start; durable when it returns.
    ///
    /// # Errors
    /// When it is not in use, something in it is alive or may come, or the server stops.
    pub fn remove_buffer(&self, name: &str) -> Result<(), Error> {
        let _one = self.changing_buffers()?;
        let buffer = self.shared.retirement.let_go(name)?;
        self.ask(Request::Buffers(BufferChange::Remove(buffer)))
    }

    /// The buffers that are to become smaller, and the size that each has as yet, octets.
    pub fn narrowing_buffers(&self) -> Vec<(String, u64)> {
        let buffers = self.shared.store.facts().into_iter();
        let narrowing = buffers.filter(|facts| facts.becomes.is_some());
        narrowing.map(|facts| (facts.name, facts.octets)).collect()
    }

    /// Which of these buffers that are in use cannot have the size that a configuration says, and why; reads only.
    pub fn try_resize_buffers(&self, config: &EngineConfig, names: &[String]) -> Vec<Refusal> {
        self.shared.addition.try_resize(&config.store, names)
    }

    /// Makes one that is in use as large as a configuration says, which may take long; one that is larger becomes smaller when it comes
    /// around. Durable when it returns.  Killed anywhere it has one size or the other.
    ///
    /// # Errors
    /// When it is not in use, cannot have that size, there is no room, or the server stops.
    pub fn resize_buffer(
        &self,
        config: &EngineConfig,
        name: &str,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let _one = self.changing_buffers()?;
        match self
            .shared
            .addition
            .make_room(&config.store, name, progress)?
        {
            None => Ok(()),
            Some(resizing) => self.ask(Request::Buffers(BufferChange::Resize(resizing))),
        }
    }
}

/// What the whole log says.
fn of_the_log(disk: &Arc<dyn Disk>, spool: &Spool) -> Result<Replay, Error> {
    let mut replay = Replay::default();
    if disk.exists(&spool.log())? {
        replay.look_back(disk, &spool.log(), SpoolId(spool.id))?;
    }
    Ok(replay)
}

/// A configuration with the sizes that its buffers have, or are on their way to.
fn as_they_are(config: &EngineConfig, disk: &Arc<dyn Disk>) -> Result<EngineConfig, Error> {
    let mut config = config.clone();
    let planned = Store::planned(disk, &config.spool, &config.store, &BTreeMap::new())?;
    for buffer in &mut config.store.buffers {
        let there = planned.iter().find(|one| one.name == buffer.name);
        let octets = there.and_then(|there| there.becomes.or(there.octets_there));
        buffer.octets = octets.unwrap_or(buffer.octets);
    }
    Ok(config)
}
