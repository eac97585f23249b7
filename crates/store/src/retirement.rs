//! Buffers that take nothing new: said while the spool is written, kept in the register of buffers.
//!
//! What was said is durable before it holds.  A retired buffer drains as the rest of its set is overwritten (see
//! `methods/cnfs/set.rs`): its articles go oldest first, by reservations in the log like any other's, and all at once where none of them is alive.  With the last of those, or by the
//! start behind it, it is noted that nothing is left, and from then on the configuration may forget it; where the register cannot be
//! written, or nothing ever lay in it, by the next checkpoint.  No article is touched here.

use std::sync::Arc;

use newsreel_host::Disk;
use newsreel_wire::BufferId;
use parking_lot::{Mutex, RwLock};

use crate::config::StoreConfig;
use crate::error::{Error, Result};
use crate::method::CheckpointWrite;
use crate::methods::cnfs::{self, Cyclic};
use crate::records::buffer::Buffer;
use crate::register::{Register, Standing};
use crate::store::Access;

/// The register of a spool that is open, and its cyclic buffers.
#[derive(Debug)]
pub struct Retirement {
    disk: Arc<dyn Disk>,
    access: Access,
    register: Mutex<Register>,
    buffers: RwLock<Vec<Arc<Buffer>>>,
    /// Those of which the configuration says that they are never written; who only looks writes none.
    never_written: Vec<String>,
}

impl Retirement {
    /// Those that the register has as retired take nothing.
    pub(crate) fn new(
        (disk, access): (Arc<dyn Disk>, Access),
        register: Register,
        buffers: Vec<Arc<Buffer>>,
        config: &StoreConfig,
    ) -> Self {
        for buffer in &buffers {
            let standing = register.standing(&buffer.name);
            let is_retired = matches!(standing, Some(Standing::Retired | Standing::Drained));
            buffer.retire(is_retired);
        }
        Self {
            disk,
            access,
            register: Mutex::new(register),
            buffers: RwLock::new(buffers),
            never_written: config.never_written(),
        }
    }

    /// Retires a cyclic buffer, or has it take articles again; whether that is new.  Durable when it returns.
    ///
    /// # Errors
    /// When there is no such buffer, nothing would be left in its set to take articles, or the register cannot be written.
    pub fn retire(&self, name: &str, retired: bool) -> Result<bool> {
        let mut register = self.register.lock();
        let buffer = self.check(name, retired)?;
        let is_news = buffer.is_retired() != retired;
        let standing = match retired {
            true if is_news => Standing::Retired,
            true => return Ok(false),
            false => Standing::InUse,
        };
        let before = register.standing(name).unwrap_or(Standing::InUse);
        register.set_standing(name, standing);
        if let Err(error) = register.save(self.disk.as_ref()) {
            register.set_standing(name, before);
            return Err(error);
        }
        buffer.retire(retired);
        Ok(is_news)
    }

    /// The register as it is now.
    pub(crate) fn register(&self) -> Register {
        self.register.lock().clone()
    }

    /// A cyclic buffer was made: the register has it when this returns.
    pub(crate) fn enter(&self, cyclic: &Cyclic) -> Result<()> {
        let (buffer, mut register) = (&cyclic.buffer, self.register.lock());
        register.enter(buffer.id, cnfs::NAME, &buffer.name)?;
        register.set_uuid(&buffer.name, cyclic.file.header().uuid);
        register.save(self.disk.as_ref())
    }

    /// A cyclic buffer takes articles from now on.
    pub(crate) fn add(&self, buffer: Arc<Buffer>) {
        self.buffers.write().push(buffer);
    }

    /// The spool does without a buffer in which nothing is left; durable when it returns.
    ///
    /// # Errors
    /// When there is no such buffer, something in it is alive or may come, or the register cannot be written.
    pub fn let_go(&self, name: &str) -> Result<BufferId> {
        let mut register = self.register.lock();
        let buffer = self.buffer(name)?;
        if !buffer.is_drained() {
            return Err(Error::Buffer {
                name: name.to_owned(),
                path: buffer.home.path().to_path_buf(),
                why: format!(
                    "articles in it are alive, as far as the last checkpoint has told: give it back to the configuration, say `newsreel store retire {name}`, and take it out \
                     when `newsreel store list` says that it is drained"
                ),
            });
        }
        let before = register.standing(name).unwrap_or(Standing::Retired);
        register.set_standing(name, Standing::Dropped);
        if let Err(error) = register.save(self.disk.as_ref()) {
            register.set_standing(name, before);
            return Err(error);
        }
        // So nobody has it take articles again.
        self.remove(buffer.id);
        Ok(buffer.id)
    }

    /// A cyclic buffer is not there any more.
    pub(crate) fn remove(&self, id: BufferId) {
        self.buffers.write().retain(|buffer| buffer.id != id);
    }

    /// Why that could not be done, without doing it.
    ///
    /// # Errors
    /// As [`Retirement::retire`].
    pub fn try_retire(&self, name: &str, retired: bool) -> Result<bool> {
        Ok(self.check(name, retired)?.is_retired() != retired)
    }

    /// A cyclic buffer by its name.
    pub(crate) fn buffer(&self, name: &str) -> Result<Arc<Buffer>> {
        let buffers = self.buffers.read();
        let buffer = buffers.iter().find(|buffer| buffer.name == name);
        buffer.cloned().ok_or_else(|| {
            let names: Vec<&str> = buffers.iter().map(|one| one.name.as_str()).collect();
            Error::NoBuffer {
                name: name.to_owned(),
                there: names.join(", "),
            }
        })
    }

    fn check(&self, name: &str, retired: bool) -> Result<Arc<Buffer>> {
        let (buffer, buffers) = (self.buffer(name)?, self.buffers.read());
        let mut others = buffers.iter();
        let takes = |one: &Arc<Buffer>| {
            let is_out = one.is_retired() || one.suspension().is_some();
            !is_out && !self.never_written.contains(&one.name)
        };
        let is_other = |one: &Arc<Buffer>| one.name != name && one.set == buffer.set;
        if retired && !others.any(|one| is_other(one) && takes(one)) {
            return Err(Error::Buffer {
                name: name.to_owned(),
                path: buffer.home.path().to_path_buf(),
                why: "no other buffer of its set takes articles: give the set another one first"
                    .to_owned(),
            });
        }
        Ok(buffer)
    }

    /// Buffers that are retired and have something left, or may have.
    pub(crate) fn draining(&self) -> Vec<BufferId> {
        let buffers = self.buffers.read();
        let draining = buffers
            .iter()
            .filter(|one| one.is_retired() && !one.is_drained());
        draining.map(|one| one.id).collect()
    }

    /// Buffers in which nothing is left and of which that is not noted yet.
    fn newly_drained(&self, register: &Register) -> Vec<String> {
        let buffers = self.buffers.read();
        let is_news = |name: &str| register.standing(name) == Some(Standing::Retired);
        let drained = buffers.iter().filter(|buffer| buffer.is_drained());
        let drained = drained.filter(|buffer| is_news(&buffer.name));
        drained.map(|buffer| buffer.name.clone()).collect()
    }

    /// Notes in which buffers nothing is left; durable when it returns.
    pub(crate) fn note_drained(&self) -> Result<()> {
        // The register may be on its way to the disk: who has nothing to note does not wait for that.
        let is_any = self.buffers.read().iter().any(|one| one.is_drained());
        if self.access == Access::ReadOnly || !is_any {
            return Ok(());
        }
        let mut register = self.register.lock();
        let before = register.clone();
        for name in self.newly_drained(&before) {
            register.set_standing(&name, Standing::Drained);
            tracing::info!(
                buffer = name,
                "nothing is left in a retired buffer; it may be taken out of the configuration"
            );
        }
        let saved = register.save(self.disk.as_ref());
        if saved.is_err() {
            *register = before;
        }
        saved
    }

    /// What a checkpoint writes: the register, if something was drained and that could not be noted.
    pub(crate) fn checkpoint(self: &Arc<Self>) -> Option<Box<dyn CheckpointWrite>> {
        let is_any = !self.newly_drained(&self.register.lock()).is_empty();
        is_any.then(|| Box::new(Drained(Arc::clone(self))) as Box<dyn CheckpointWrite>)
    }
}

/// Buffers in which nothing is left, on their way to the register.
#[derive(Debug)]
struct Drained(Arc<Retirement>);

impl CheckpointWrite for Drained {
    fn write(&mut self) -> Result<()> {
        self.0.note_drained()
    }
}
