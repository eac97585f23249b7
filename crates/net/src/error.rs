//! What can go wrong before a connection exists.

use std::net::SocketAddr;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}; is another server running there?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is nothing to listen on.
    #[error("no address to listen on: give at least one in listen.addresses")]
    NoAddress,
}
