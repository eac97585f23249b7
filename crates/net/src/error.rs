//! What can go wrong before a connection exists.

use std::io::ErrorKind;
use std::net::SocketAddr;

/// Ports from here on are anybody's.
const PORT_FREE: u16 = 1024;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", hint(*address, source))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// A socket that whoever started the server made cannot be used.
    #[error("{what} cannot be served on: {why}")]
    Inherited {
        /// Which one.
        what: String,
        /// Why.
        why: String,
    },
    /// There is nothing to listen on.
    #[error("no address to listen on: give at least one in listen.addresses")]
    NoAddress,
}

/// What may be done about an address that cannot be listened on.
fn hint(address: SocketAddr, source: &std::io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::AddrInUse => "; is another server running there?",
        ErrorKind::AddrNotAvailable => "; this machine does not have that address",
        ErrorKind::PermissionDenied if address.port() < PORT_FREE => {
            "; a port below 1024 needs the capability CAP_NET_BIND_SERVICE, or root"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_be_had_comes_with_the_hint_for_its_reason() {
        let said = |port, kind: ErrorKind| {
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let source = kind.into();
            Error::Listen { address, source }.to_string()
        };
        let in_use = said(1119, ErrorKind::AddrInUse);
        assert!(
            in_use.ends_with("in use; is another server running there?"),
            "{in_use}"
        );
        let denied = said(119, ErrorKind::PermissionDenied);
        assert!(
            denied.ends_with(
                "denied; a port below 1024 needs the capability CAP_NET_BIND_SERVICE, or root"
            ),
            "{denied}"
        );
        let denied = said(1119, ErrorKind::PermissionDenied);
        assert!(denied.ends_with("permission denied"), "{denied}");
    }
}
