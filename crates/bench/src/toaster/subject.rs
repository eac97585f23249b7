//! A server that is measured: how it does what each phase asks for.

use std::fmt::Debug;
use std::path::Path;

use serde::Serialize;

use super::feed::Batches;
use super::run::Sent;
use crate::error::Error;

/// What became of the articles of a pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// Taken.
    pub accepted: u64,
    /// Not taken because they were there.
    pub refused: u64,
    /// Never taken.
    pub rejected: u64,
    /// Not taken now: a measurement has none.
    pub deferred: u64,
}

/// One server with one method. Passes are counted from 1.
pub(super) trait Subject: Debug {
    /// Where batches must lie.
    fn incoming(&self) -> &Path;

    /// The server is up and takes articles; not timed. Its process.
    fn begin(&mut self, pass: u32) -> Result<u32, Error>;

    /// Sees to it that `rnews` can have the batches; not timed.
    fn receive(&self, _batches: &Batches) -> Result<(), Error> {
        Ok(())
    }

    /// Puts the batches through `rnews`; timed until it ends.
    fn unbatch(&mut self, batches: &Batches) -> Result<(), Error>;

    /// What came of them; not timed.
    fn taken(&mut self, batches: &Batches) -> Result<Taken, Error>;

    /// Sends what came in the pass before this one, so many articles; times itself.
    fn batch(&mut self, pass: u32, articles: u64) -> Result<Sent, Error>;

    /// Finds out what is to go, where the server does not know it itself; not timed.
    fn look(&mut self, pass: u32) -> Result<(), Error>;

    /// Lets go what came six passes before this one; timed. How many articles went.
    fn expire(&mut self, pass: u32) -> Result<u64, Error>;

    /// What is left to do; not timed.
    fn end(&mut self, pass: u32) -> Result<(), Error>;

    /// How the batch phase was done.
    fn batch_is(&self) -> &'static str;
}
