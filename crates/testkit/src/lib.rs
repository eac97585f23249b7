//! Transcripts: protocol tests as text that reads like the RFCs, played over anything that reads and writes octets.
//!
//! `transcript` reads `.nntp` files (the format is described in `tests/transcripts/README.md`), `run` plays one
//! through a [`Driver`] that starts, crashes and connects to some server, and `bless` writes what was really answered
//! back into the file.  Nothing here knows a server's insides.  `Image` is a file system whose power can be cut.
#![deny(missing_docs)]

mod article;
mod bless;
mod channel;
mod driver;
mod expect;
mod image;
mod play;
mod run;
mod scram;
mod tls;
pub mod transcript;

use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

pub use article::{same_article, wire_form};
pub use driver::{Driver, Setup, Support};
pub use image::{Image, ImageKind};
pub use run::{Report, Runner, Verdict};
pub use tls::{Certificate, certificate};

/// The time at which every play starts, where the driver can set a clock: 2026-01-01 00:00:00 UTC.
pub const CLOCK_START_S: u64 = 1_767_225_600;

/// The ports that [`free_ports`] chooses from: below those that Linux takes for connections that go out (from 32,768
/// on), so that none that another test opens can take one of them before the server under test binds it.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A port of 127.0.0.1 that is free, as is the one after it; each call gives others.
///
/// # Errors
/// When no port can be had at all.
pub fn free_ports() -> std::io::Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let pairs = u32::from(PORTS.end - PORTS.start) / 2;
    let mut last = std::io::Error::from(ErrorKind::AddrNotAvailable);
    for _ in 0..pairs {
        let pair = (std::process::id() + NEXT.fetch_add(1, Ordering::Relaxed)) % pairs;
        let port = PORTS.start + u16::try_from(2 * pair).unwrap_or(0);
        let both = [port, port + 1].map(|port| TcpListener::bind(("127.0.0.1", port)));
        match both.into_iter().collect::<Result<Vec<_>, _>>() {
            Ok(_) => return Ok(port),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Reads a file of a transcript's, in wire form: `.wire` files as they are, others from plain text.
///
/// # Errors
/// When it cannot be read.
pub fn read_article(path: &std::path::Path) -> anyhow::Result<Vec<u8>> {
    article::read(path)
}
