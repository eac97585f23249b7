//! SIGTERM and SIGINT stop the server, SIGHUP makes it read its configuration again.
//!
//! A second stop does not wait for connections any longer than the first one promised.

use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::running::Server;
use crate::control::request::Running as _;

/// Watches until it is aborted.
pub(super) async fn watch(server: Arc<Server>) {
    let signals = || -> std::io::Result<[Signal; 3]> {
        Ok([
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        ])
    };
    let [mut terminate, mut interrupt, mut hangup] = match signals() {
        Ok(signals) => signals,
        Err(error) => {
            tracing::error!(target: "newsreel::server", %error, "cannot watch for signals");
            return;
        }
    };
    loop {
        tokio::select! {
            _ = terminate.recv() => server.stop(),
            _ = interrupt.recv() => server.stop(),
            _ = hangup.recv() => {
                let server = Arc::clone(&server);
                // Errors are logged where they are found; the server goes on as it was.
                let _ = tokio::task::spawn_blocking(move || server.reload()).await;
            }
        }
    }
}
