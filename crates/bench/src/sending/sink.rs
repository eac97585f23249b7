//! Neighbours that take everything: servers that do nothing, one of ours, INN.
//!
//! Invariant: whoever is a neighbour of ours takes each article once; what is started here has ended when it goes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::SendingArgs;
use super::source::write;
use crate::error::Error;
use crate::load::Machine;
use crate::null::{NullArgs, NullServer};
use crate::rivals::{CommandRival, Inn, NO_FIGURES, Rival};

/// Has so many servers that do nothing serve while something is done.
pub(super) fn with_nothing<T>(
    count: usize,
    does: impl FnOnce(&[SocketAddr], &dyn Fn() -> u64) -> Result<T, Error>,
) -> Result<T, Error> {
    let args = NullArgs::new((Ipv4Addr::LOCALHOST, 0).into());
    let servers: Vec<NullServer> = (0..count)
        .map(|_| NullServer::bind(&args))
        .collect::<Result<_, _>>()?;
    let addresses: Vec<SocketAddr> = servers
        .iter()
        .map(NullServer::address)
        .collect::<Result<_, _>>()?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving: Vec<_> = servers
            .iter()
            .map(|server| scope.spawn(|| server.serve(&stop)))
            .collect();
        let done = does(&addresses, &|| servers.iter().map(NullServer::taken).sum());
        stop.store(true, Ordering::Relaxed);
        for thread in serving {
            thread.join().map_err(|_| Error::WorkerLost)??;
        }
        done
    })
}

/// A real server as the neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Neighbour<'a> {
    /// Another of ours.
    Own,
    /// INN, whose programs are there.
    Inn(&'a Path),
}

impl Neighbour<'_> {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Own => "newsreel",
            Self::Inn(_) => "INN",
        }
    }

    /// Starts it in a directory of its own.
    pub(super) fn start(
        self,
        (args, machine): (&SendingArgs, Machine<'_>),
        directory: &Path,
        groups: &Path,
        address: SocketAddr,
    ) -> Result<Box<dyn Rival>, Error> {
        let mut server: Box<dyn Rival> = match self {
            Self::Own => {
                let config = directory.join("config");
                write(
                    &config,
                    &format!(
                        "{NO_FIGURES}[articles]\nage_s_max = 0\n[engine]\npath_identity = \"sink.test\"\n"
                    ),
                    machine,
                )?;
                let own = CommandRival::newsreel(&args.program.display().to_string());
                Box::new(own.with_words(&["--config", &config.display().to_string()]))
            }
            Self::Inn(programs) => Box::new(Inn::new(programs, &directory.join("articles"))),
        };
        server.start(directory, address, groups)?;
        Ok(server)
    }
}
