//! Connections to the upstream server, as the configuration says.
//!
//! Files of certificates and passwords are read for each connection, so that renewed ones need no restart; one that cannot be
//! used is told with its name, as any other reason why there is no connection.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, read_whole};
use newsreel_net::client::{Client, ClientError, Connect, Fault, Remote, Socket};

use crate::config::UpstreamConfig;

/// A file of certificates, a key or a password is not larger.
pub const SECRET_OCTETS_MAX: usize = 1 << 20;

/// The upstream server.
#[derive(Debug, Clone)]
pub struct Upstream {
    disk: Arc<dyn Disk>,
    config: UpstreamConfig,
}

impl Upstream {
    /// Certificates and passwords are files of this disk.
    #[must_use]
    pub const fn new(disk: Arc<dyn Disk>, config: UpstreamConfig) -> Self {
        Self { disk, config }
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
