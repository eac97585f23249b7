//! Connections to the upstream server, as the configuration says.
//!
//! Files of certificates and passwords are read for each connection, so that renewed ones need no restart; one that cannot be
//! used is told with its name, as any other reason why there is no connection.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use newsreel_host::{Disk, read_whole};
use newsreel_net::client::{Client, ClientError, Connect, Fault, Remote, Socket};
use tokio::time::{Instant, sleep_until};

use crate::config::UpstreamConfig;

/// A file of certificates, a key or a password is not larger.
pub const SECRET_OCTETS_MAX: usize = 1 << 20;

/// So long after the start of a process whose forerunner was killed no server is connected to: connections that nobody said goodbye
/// on count until a server has seen that they are gone, and providers bar accounts that have too many.
pub const AFTER_A_KILL: Duration = Duration::from_secs(2);

/// The upstream server.
#[derive(Debug, Clone)]
pub struct Upstream {
    disk: Arc<dyn Disk>,
    config: UpstreamConfig,
    /// No connection is made before; none: at once.
    not_before: Option<Instant>,
}

impl Upstream {
    /// Certificates and passwords are files of this disk; no connection is made before a time, if there is one.
    #[must_use]
    pub const fn new(
        disk: Arc<dyn Disk>,
        config: UpstreamConfig,
        not_before: Option<Instant>,
    ) -> Self {
        Self {
            disk,
            config,
            not_before,
        }
    }
}

impl Connect for Upstream {
    type Io = Socket;

    fn name(&self) -> String {
        self.config.address.clone()
    }

    async fn connect(&self) -> Result<Client<Socket>, ClientError> {
        let error = |why: String| ClientError {
            server: self.config.address.as_str().into(),
            doing: "the configuration",
            fault: Fault::Unusable(why),
        };
        if let Some(time) = self.not_before {
            sleep_until(time).await;
        }
        let of = self.clone();
        let reading = tokio::task::spawn_blocking(move || of.remote()).await;
        let remote = reading.map_err(|gone| error(gone.to_string()))?;
        Client::connect(&remote.map_err(error)?).await
    }
}

impl Upstream {
    fn remote(&self) -> Result<Remote, String> {
        let read = |path: &Path| {
            let octets = read_whole(self.disk.as_ref(), path, SECRET_OCTETS_MAX);
            octets.map_err(|error| error.to_string())
        };
        self.config.reach().remote(&read)
    }
}
