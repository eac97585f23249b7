//! Making buffers: before a start would, the same files by the same code, under the spool's lock; or beside the server that
//! runs, whose sequencer takes them in.

use std::sync::Arc;

use newsreel_host::Disk;
use newsreel_journal::SpoolId;
use newsreel_store::{PlannedBuffer, Store};
use newsreel_wire::BufferId;

use crate::config::EngineConfig;
use crate::engine::{Engine, Progress};
use crate::error::Error;
use crate::replay::Replay;
use crate::requests::Request;
use crate::spool::Spool;

impl Engine {
    /// The cyclic buffers of a configuration, each with what there is of it; reads only, and needs no spool.
    ///
    /// # Errors
    /// When the configuration cannot be, or what is there cannot be looked at.
    pub fn planned_buffers(
        config: &EngineConfig,
        disk: &Arc<dyn Disk>,
    ) -> Result<Vec<PlannedBuffer>, Error> {
        Ok(Store::planned(disk, &config.spool, &config.store)?)
    }

    /// Makes the buffers of these names that are not there, and the spool too where there is none.
    ///
    /// # Errors
    /// When somebody has the spool, or a buffer cannot be made; those before are.
    pub fn create_buffers(
        config: &EngineConfig,
        disk: &Arc<dyn Disk>,
        names: &[String],
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let spool = Spool::open(disk, &config.spool)?;
        // As a start: no id is given that the log has, also where the register is lost.
        let mut replay = Replay::default();
        if disk.exists(&spool.log())? {
            replay.look_back(disk, &spool.log(), SpoolId(spool.id))?;
        }
        let known: Vec<BufferId> = replay.marks.keys().copied().collect();
        let place = (config.spool.as_path(), spool.id);
        Store::create(disk, place, &config.store, names, &known, progress)?;
        Ok(())
    }

    /// The buffers of a configuration that could be added now: new ones, of sets that are in use.
    pub fn missing_buffers(&self, config: &EngineConfig) -> Vec<String> {
        self.shared.addition.lock().missing(&config.store)
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
        if self.only_looks() {
            return Err(Error::Stopping);
        }
        let addition = self.shared.addition.lock();
        let buffer = addition.make(&config.store, name, progress)?;
        self.ask(Request::AddBuffer(Box::new(buffer)))
    }
}
