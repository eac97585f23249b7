//! Buffers that take nothing new: said while the spool is written, kept in the register of buffers.
//!
//! What was said is durable before it holds.  A retired buffer drains as the rest of its set is overwritten (see
//! `methods/cnfs/set.rs`): its articles go oldest first, by reservations in the log like any other's.  That nothing is left is
//! noted at the next checkpoint; from then on the configuration may forget it.  No article is touched here.

use std::sync::Arc;

use newsreel_host::Disk;
use newsreel_wire::BufferId;
use parking_lot::{Mutex, RwLock};

use crate::error::{Error, Result};
use crate::method::CheckpointWrite;
use crate::methods::cnfs;
use crate::records::buffer::Buffer;
use crate::register::{Register, Standing};

/// The register of a spool that is open, and its cyclic buffers.
#[derive(Debug)]
pub struct Retirement {
    disk: Arc<dyn Disk>,
    register: Mutex<Register>,
    buffers: RwLock<Vec<Arc<Buffer>>>,
}

impl Retirement {
    /// Those that the register has as retired take nothing.
    pub(crate) fn new(disk: Arc<dyn Disk>, register: Register, buffers: Vec<Arc<Buffer>>) -> Self {
        for buffer in &buffers {
            let standing = register.standing(&buffer.name);
            let is_retired = matches!(standing, Some(Standing::Retired | Standing::Drained));
            buffer.retire(is_retired);
        }
        Self {
            disk,
            register: Mutex::new(register),
            buffers: RwLock::new(buffers),
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
    pub(crate) fn enter(&self, buffer: &Buffer) -> Result<()> {
        let mut register = self.register.lock();
        register.enter(buffer.id, cnfs::NAME, &buffer.name)?;
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
                    "articles in it are alive: give it back to the configuration, say `newsreel store retire {name}`, and take it out \
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
        let takes = |one: &Arc<Buffer>| one.name != name && one.set == buffer.set;
        if retired && !others.any(|one| takes(one) && one.takes_articles()) {
            return Err(Error::Buffer {
                name: name.to_owned(),
                path: buffer.home.path().to_path_buf(),
                why: "no other buffer of its set takes articles: give the set another one first"
                    .to_owned(),
            });
        }
        Ok(buffer)
    }

    /// What a checkpoint writes: the register, if something was drained since.
    pub(crate) fn checkpoint(self: &Arc<Self>) -> Option<Box<dyn CheckpointWrite>> {
        let buffers = self.buffers.read();
        let drained = buffers.iter().filter(|buffer| buffer.is_drained());
        let drained: Vec<String> = drained.map(|buffer| buffer.name.clone()).collect();
        // Whoever lets a buffer go has the register first.
        drop(buffers);
        let register = self.register.lock();
        let is_news = |name: &&String| register.standing(name) == Some(Standing::Retired);
        drained.iter().any(|name| is_news(&name)).then(|| {
            Box::new(Drained {
                retirement: Arc::clone(self),
                names: drained.clone(),
            }) as Box<dyn CheckpointWrite>
        })
    }
}

/// Buffers in which nothing is left, on their way to the register.
#[derive(Debug)]
struct Drained {
    retirement: Arc<Retirement>,
    names: Vec<String>,
}

impl CheckpointWrite for Drained {
    fn write(&mut self) -> Result<()> {
        let mut register = self.retirement.register.lock();
        for name in &self.names {
            // Somebody may have thought better of it.
            if register.standing(name) == Some(Standing::Retired) {
                tracing::info!(
                    buffer = name,
                    "nothing is left in a retired buffer; it may be taken out of the configuration"
                );
                register.set_standing(name, Standing::Drained);
            }
        }
        register.save(self.retirement.disk.as_ref())
    }
}
