//! Playing the same files at any server on the net: a compatibility oracle.
//!
//! Nothing can be set up there, so files with directives are skipped, but for groups and articles when the caller
//! says that the server already has them.

use tokio::net::TcpStream;

use crate::driver::{Driver, Setup, Support};
use crate::transcript::Action;

/// Some server at `host:port`.
#[derive(Debug, Clone)]
pub struct TcpDriver {
    address: String,
    prepared: bool,
}

impl TcpDriver {
    /// `prepared`: the server has the groups and articles that the files ask for.
    #[must_use]
    pub fn new(address: &str, prepared: bool) -> Self {
        Self {
            address: address.to_owned(),
            prepared,
        }
    }
}

impl Driver for TcpDriver {
    type Io = TcpStream;

    async fn start(&mut self, setup: &Setup) -> anyhow::Result<Support> {
        Ok(if setup == &Setup::default() {
            Support::Done
        } else {
            Support::Cannot("a foreign server cannot be configured".into())
        })
    }

    async fn connect(&mut self, _name: &str) -> anyhow::Result<TcpStream> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn act(&mut self, action: &Action) -> anyhow::Result<Support> {
        Ok(match action {
            Action::Group { .. } | Action::Article { .. } if self.prepared => Support::Done,
            _ => Support::Cannot("a foreign server cannot be set up".into()),
        })
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}
