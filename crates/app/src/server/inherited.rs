//! Sockets that whoever started the server made: systemd's (socket activation), or the standard input (inetd).

use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};

use anyhow::{Context as _, Result};
use listenfd::ListenFd;
use newsreel_net::{Inherited, ListenConfig, is_of_internet};

/// What says how the sockets are called, in their order, with colons between them.
const NAMES: &str = "LISTEN_FDNAMES";

/// What somebody is told whose connection cannot be served.
const NOT_NOW: &[u8] = b"400 Cannot serve you now, try again later\r\n";

/// The sockets that are there; none: those of the configuration are bound.
pub(super) fn sockets(config: &ListenConfig) -> Result<Option<Inherited>> {
    let mut inherited = Inherited::default();
    if config.inetd {
        let fd = std::io::stdin().as_fd().try_clone_to_owned();
        let fd = fd.context("the standard input cannot be used (--inetd)")?;
        inherited.take(fd, "the standard input (--inetd)", None, config)?;
        return Ok(Some(inherited));
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "this is how systemd says what a socket is"
    )]
    let names = std::env::var(NAMES).unwrap_or_default();
    // It takes these variables away: they are for no program that the server starts.
    let mut given = ListenFd::from_env();
    let mut names = names.split(':');
    for at in 0..given.len() {
        let name = names.next();
        let what = format!("socket {at} of systemd (LISTEN_FDS)");
        let listener = given.take_tcp_listener(at).with_context(|| what.clone())?;
        if let Some(listener) = listener {
            inherited.take(OwnedFd::from(listener), &what, name, config)?;
        }
    }
    Ok((!inherited.is_empty()).then_some(inherited))
}

/// Whether what is logged would go to whoever is served: inetd has the standard error be the connection, too.
pub(super) fn are_lines_for_the_reader(config: &ListenConfig) -> bool {
    config.inetd && is_of_internet(&std::io::stderr())
}

/// Tells whoever is connected that it is not served.
pub(super) fn refuse(config: &ListenConfig) {
    if !config.inetd {
        return;
    }
    let fd = std::io::stdin().as_fd().try_clone_to_owned();
    // A socket that listens takes no octets.
    if let Ok(mut stream) = fd.map(std::net::TcpStream::from) {
        let _ = stream.write_all(NOT_NOW);
    }
}
