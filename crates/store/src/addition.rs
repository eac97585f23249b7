//! Buffers that a set gets while it is in use, and room for those that become larger: made beside what runs, then taken in by
//! the sequencer.
//!
//! The register has a new buffer, durably, before it takes an article; so a start finds it, and misses it where the
//! configuration does not name it.  Only one in which nothing was ever written is taken in this way: articles that the log
//! does not have are for a start to find.

use std::path::PathBuf;
use std::sync::Arc;

use newsreel_host::{Disk, machine_octets};
use newsreel_wire::{BufferId, Sequence, SetId};

use crate::config::{BufferConfig, SetConfig, StoreConfig};
use crate::error::{Error, Result};
use crate::method::BufferReader as _;
use crate::methods::Opening;
use crate::methods::cnfs::{self, CreateProgress, Cyclic, Resizing, Room};
use crate::reader::StoreReader;
use crate::records::placing::Filling;
use crate::retirement::Retirement;
use crate::store::{Access, refused};

/// A buffer on its way to its set.
#[derive(Debug)]
pub struct NewBuffer {
    pub(crate) set: SetId,
    pub(crate) cyclic: Cyclic,
    pub(crate) filling: Filling,
}

/// What makes buffers for a spool that is open.
#[derive(Debug)]
pub struct Addition {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) spool_dir: PathBuf,
    pub(crate) spool: [u8; 16],
    /// The sets as they were opened: the place of each is its id.
    pub(crate) sets: Vec<SetConfig>,
    /// Ids that the log had when the spool was opened; all others are in the register.
    pub(crate) known: Vec<BufferId>,
    pub(crate) reader: Arc<StoreReader>,
    pub(crate) retirement: Arc<Retirement>,
}

impl Addition {
    /// The buffers of a configuration that could be added: those that are not here, of sets that are.
    #[must_use]
    pub fn missing(&self, config: &StoreConfig) -> Vec<String> {
        let is_missing = |buffer: &&BufferConfig| {
            let is_here = self.is_here(&buffer.name);
            !is_here && !buffer.read_only && self.set_of(config, &buffer.name).is_some()
        };
        let missing = config.buffers.iter().filter(is_missing);
        missing.map(|buffer| buffer.name.clone()).collect()
    }

    /// Makes room behind the end of a buffer that is here and is to become larger, which may take long; to be handed to
    /// [`Store::resize_open`](crate::Store::resize_open).  `None`: it is as large as the configuration says, or will be.
    ///
    /// # Errors
    /// When it is not here, cannot have that size, or there is no room.
    pub fn make_room(
        &self,
        config: &StoreConfig,
        name: &str,
        progress: CreateProgress<'_>,
    ) -> Result<Option<Resizing>> {
        let buffer = self.retirement.buffer(name)?;
        let configured = config.buffer(name)?;
        let place = (self.spool_dir.as_path(), self.spool);
        cnfs::make_room(self.disk.as_ref(), place, (configured, &buffer), progress)
    }

    /// Which of these buffers cannot have the size that the configuration says, and why; reads only.
    #[must_use]
    pub fn try_resize(&self, config: &StoreConfig, names: &[String]) -> Vec<(String, Error)> {
        let (place, mut room) = ((self.spool_dir.as_path(), self.spool), Room::default());
        let check = |name: &String| {
            let (buffer, configured) = (self.retirement.buffer(name)?, config.buffer(name)?);
            let sized = (configured, Some(&*buffer));
            cnfs::check_size(self.disk.as_ref(), place, sized, &mut room)
        };
        refused(names, check)
    }

    fn is_here(&self, name: &str) -> bool {
        let buffers = self.reader.buffers();
        buffers.iter().any(|buffer| buffer.name() == name)
    }

    /// The set that wants this buffer, if it was opened as a set of buffers.
    fn set_of<'c>(&self, config: &'c StoreConfig, name: &str) -> Option<(SetId, &'c SetConfig)> {
        let mut sets = config.sets.iter();
        let wants = |set: &&SetConfig| set.buffers.iter().any(|buffer| buffer == name);
        let set = sets.find(wants)?;
        let is_it = |here: &SetConfig| here.name == set.name && here.has_buffers();
        let at = self.sets.iter().position(is_it)?;
        Some((SetId(u8::try_from(at).ok()?), set))
    }

    /// Makes one of them, which may take long; to be handed to [`Store::add`](crate::Store::add).  One at a time, that
    /// included: or two would get one id.
    ///
    /// # Errors
    /// When it is no buffer of [`Addition::missing`], its file cannot be made or is not new, or there are too many.
    pub fn make(
        &self,
        config: &StoreConfig,
        name: &str,
        progress: CreateProgress<'_>,
    ) -> Result<NewBuffer> {
        let buffer = config.buffers.iter().find(|buffer| buffer.name == name);
        let (Some(buffer), Some((id, set)), false) =
            (buffer, self.set_of(config, name), self.is_here(name))
        else {
            return Err(Error::Config(format!(
                "buffer {name:?} cannot be added: it is here already, or its set is not"
            )));
        };
        if !self.reader.has_room() {
            return Err(Error::Config(format!(
                "buffer {name:?} cannot be added: {} were since the start; restart the server, which takes in all of them",
                StoreReader::ADDED_MAX
            )));
        }
        // What is retired meanwhile is not in this copy, and nothing of it is written.
        let mut register = self.retirement.register();
        let mut opening = Opening {
            disk: &self.disk,
            spool_dir: &self.spool_dir,
            spool: self.spool,
            config,
            register: &mut register,
            known: &self.known,
            access: Access::Write,
            machine_octets: machine_octets(),
            progress,
        };
        let cyclic = cnfs::open_one(&mut opening, (id, set), buffer)?;
        let wrong = |why: &str| Error::Buffer {
            name: name.to_owned(),
            path: cyclic.buffer.home.path().to_path_buf(),
            why: why.to_owned(),
        };
        if cyclic.buffer.home.opened().sequence != Sequence::ZERO {
            return Err(wrong(
                "something was written in it already: restart the server, which looks what that is",
            ));
        }
        let mut filling = Filling::new(Arc::clone(&cyclic.buffer));
        filling.resume(None, Sequence::ZERO)?;
        self.retirement.enter(&cyclic)?;
        cyclic.buffer.take_memory();
        Ok(NewBuffer {
            set: id,
            cyclic,
            filling,
        })
    }
}
