//! The directory with the files of a buffer may go while it is open, and come back; its one file may go.
//!
//! Looked at before anything is called lost or removed, and when something was written; not by a read that finds what it wants.  While it
//! is not there the buffer is suspended; who places articles has it go on.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use super::Buffer;
use crate::error::{ReadError, Result};
use crate::records::home::Away;

impl Buffer {
    /// Looks whether the directory of its files is there; where it is not, it takes nothing until that is back.
    ///
    /// # Errors
    /// That it is not.
    pub(crate) fn look(&self) -> Result<()> {
        self.looked().map_err(|away| self.refusal(away.why))
    }

    fn looked(&self) -> std::result::Result<(), Away> {
        self.home.look().inspect_err(|away| {
            let mut told = self.why_suspended.lock();
            away.why.clone_into(&mut told);
            self.suspended.store(true, Ordering::SeqCst);
            let was_away = self.is_away.swap(true, Ordering::SeqCst);
            drop(told);
            if !was_away {
                tracing::error!(
                    buffer = self.name,
                    why = away.why,
                    "the directory or the file of a buffer is not as it was"
                );
            }
        })
    }

    /// Looks whether the files are there, and whole, in which a batch was written; where one is not, nothing more comes into it.
    ///
    /// # Errors
    /// That it is not.
    pub(super) fn unless_unfit(&self, cycles: RangeInclusive<u32>) -> Result<()> {
        let Some(why) = self.home.unfit(cycles) else {
            return Ok(());
        };
        tracing::error!(buffer = self.name, "{why}");
        self.suspend(&why);
        // It goes on in the next one; what is to be done about this one stays to be told.
        self.complain(why.clone());
        Err(self.refusal(why))
    }

    /// What is not there is gone, unless the directory is not there in which it should be.
    pub(crate) fn unless_away(&self) -> ReadError {
        self.looked()
            .map_or_else(|away| away.error.into(), |()| ReadError::Gone)
    }

    /// Whether that directory was not there when it was looked at last.
    pub(crate) fn is_away(&self) -> bool {
        self.is_away.load(Ordering::SeqCst)
    }

    /// Whether it was suspended as that directory was not there, and it is back.
    pub(crate) fn is_back(&self) -> bool {
        self.is_away() && self.home.look().is_ok()
    }

    /// It goes on where it is back.
    pub(crate) fn come_back(&self) {
        self.home.came_back();
        self.is_away.store(false, Ordering::SeqCst);
        tracing::info!(buffer = self.name, "the directory of a set is there again");
    }
}
