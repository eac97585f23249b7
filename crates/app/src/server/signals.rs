//! SIGTERM and SIGINT stop the server, SIGHUP makes it read its configuration again.
//!
//! They are watched from the beginning of a start on: one that comes before the server is there is obeyed then.  A
//! second stop does not wait for connections any longer than the first one promised.

use std::sync::Arc;

use newsreel_net::Drain;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use super::running::Server;
use crate::control::answers::Running as _;

/// The signals that mean something to us; none of them ends the process any more.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// Nobody waits for it: it is taken so that a limit on the size of files is an error of writing, and not the end.
    _file_size: Signal,
}

impl Signals {
    /// Takes them over; a runtime must be entered.
    pub(super) fn take() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            _file_size: signal(SignalKind::from_raw(
                newsreel_host::process::file_size_signal(),
            ))?,
        })
    }

    /// Obeys them until it is aborted.
    pub(super) async fn obey(mut self, server: Arc<Server>) {
        let mut reading = JoinSet::new();
        loop {
            tokio::select! {
                _ = self.terminate.recv() => server.stop(),
                _ = self.interrupt.recv() => server.stop(),
                // Making a buffer takes its time: a stop does not wait for it, and the next SIGHUP does.
                _ = self.hangup.recv(), if reading.is_empty() => {
                    let server = Arc::clone(&server);
                    reading.spawn_blocking(move || server.reload());
                }
                // Errors are logged where they are found; the server goes on as it was.
                Some(_) = reading.join_next(), if !reading.is_empty() => {}
            }
        }
    }

    /// Obeys them for a server that reads its configuration so.
    pub(super) async fn obey_stops(
        mut self,
        drain: &Drain,
        reload: impl Fn() + Clone + Send + 'static,
    ) {
        let mut reading = JoinSet::new();
        loop {
            tokio::select! {
                _ = self.terminate.recv() => drain.start(),
                _ = self.interrupt.recv() => drain.start(),
                // The disk may take its time: neither a stop nor a reader waits for it.
                _ = self.hangup.recv(), if reading.is_empty() => {
                    reading.spawn_blocking(reload.clone());
                }
                Some(_) = reading.join_next(), if !reading.is_empty() => {}
            }
        }
    }
}
