//! The servers that are compared: how each is started on a port of loopback, and stopped. Contents.
//!
//! To add one: a file with a type that implements [`Rival`], and a line below.
//! Invariant: only processes started here are ended, each by its id; a server gets a directory of its
//! own that did not exist before, and nothing is left of it afterwards.

mod command;
pub(crate) mod inetd;
mod inn;
pub(crate) mod leaf;
mod script;

use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::Path;

pub use self::command::CommandRival;
pub use self::inn::{INN_PROGRAMS, Inn};
pub use self::script::ScriptRival;
use crate::error::Error;

/// In a configuration: no figures for Prometheus, whose port is that of the machine's own server.
pub(crate) const NO_FIGURES: &str = "[server]\nmetrics = []\n";

/// A server that can be started for a comparison.
pub trait Rival: Debug {
    /// Its name in tables.
    fn name(&self) -> &str;

    /// Starts it in `directory` with the groups of `groups` (a file of names), listening on
    /// `address`; when this returns it answers.
    fn start(
        &mut self,
        directory: &Path,
        address: SocketAddr,
        groups: &Path,
    ) -> Result<Running, Error>;

    /// Stops what was started, if anything was.
    fn stop(&mut self) -> Result<(), Error>;
}

/// A server at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process.
    pub pid: u32,
}
