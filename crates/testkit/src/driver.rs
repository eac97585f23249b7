//! What a test harness brings: some server that can be started, stopped, crashed and connected to.
//!
//! A driver does what it can and says [`Support::Cannot`] for the rest, which skips the file with the reason printed;
//! it must never pretend.  Every file starts with an empty spool: `start` is called once per play.

use std::future::Future;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::transcript::Action;

/// How a file wants its server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setup {
    /// `@config key = value`, in order; the value is TOML.
    pub config: Vec<(String, String)>,
    /// `@mode ...`, if given.
    pub mode: Option<String>,
    /// This play's choice of every `@with`.
    pub with: Vec<(String, String)>,
    /// Names of `@upstream` and `@sink` connections.
    pub reversed: Vec<String>,
}

/// Whether a driver could do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Support {
    /// It is done.
    Done,
    /// It is done and printed these lines (`@run`), or this value (`@metric`).
    Output(Vec<String>),
    /// This driver cannot: the file is skipped with this reason.
    Cannot(String),
}

/// A server under test.
pub trait Driver {
    /// One connection's two directions.
    type Io: AsyncRead + AsyncWrite + Unpin + 'static;

    /// Starts with an empty spool, on [`CLOCK_START_S`](crate::CLOCK_START_S) where the clock can be set.
    fn start(&mut self, setup: &Setup) -> impl Future<Output = anyhow::Result<Support>>;

    /// Opens a connection to the server.
    fn connect(&mut self, name: &str) -> impl Future<Output = anyhow::Result<Self::Io>>;

    /// Waits for the connection the server opens to the upstream or sink `name`.
    fn accept(&mut self, name: &str) -> impl Future<Output = anyhow::Result<Self::Io>> {
        let name = name.to_owned();
        async move { anyhow::bail!("this driver has no connections opened by the server: {name}") }
    }

    /// Carries a directive out.
    fn act(&mut self, action: &Action) -> impl Future<Output = anyhow::Result<Support>>;

    /// Stops it.
    fn stop(&mut self) -> impl Future<Output = anyhow::Result<()>>;
}
