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

use std::net::TcpListener;

pub use article::{same_article, wire_form};
pub use driver::{Driver, Setup, Support};
pub use image::{Image, ImageKind};
pub use run::{Report, Runner, Verdict};
pub use tls::{Certificate, certificate};

/// The time at which every play starts, where the driver can set a clock: 2026-01-01 00:00:00 UTC.
pub const CLOCK_START_S: u64 = 1_767_225_600;

/// A port of 127.0.0.1 that is free, as is the one after it.
///
/// # Errors
/// When no port can be had at all.
pub fn free_ports() -> std::io::Result<u16> {
    loop {
        let first = TcpListener::bind("127.0.0.1:0")?;
        let port = first.local_addr()?.port();
        if port < u16::MAX && TcpListener::bind(("127.0.0.1", port + 1)).is_ok() {
            return Ok(port);
        }
    }
}

/// Reads a file of a transcript's, in wire form: `.wire` files as they are, others from plain text.
///
/// # Errors
/// When it cannot be read.
pub fn read_article(path: &std::path::Path) -> anyhow::Result<Vec<u8>> {
    article::read(path)
}
