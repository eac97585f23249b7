//! A new file that is written from its beginning to its end, for whoever writes through [`std::io::Write`].
//!
//! Nothing is durable before it is synced; writes are not gathered: put a buffer in front.

use std::io::{self, Write};
use std::sync::Arc;

use super::File;

/// A file and how much of it is written.
#[derive(Debug)]
pub struct Appended {
    file: Arc<dyn File>,
    len: u64,
}

impl Appended {
    /// Begins at the file's beginning.
    #[must_use]
    pub const fn new(file: Arc<dyn File>) -> Self {
        Self { file, len: 0 }
    }

    /// The file.
    #[must_use]
    pub const fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Octets written.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.len
    }
}

impl Write for Appended {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let wrote = self.file.write_at(octets, self.len);
        wrote.map_err(io::Error::other)?;
        self.len += octets.len() as u64;
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
