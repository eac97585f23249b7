//! Lines for somebody who may stop reading: a server's log.
//!
//! Who writes waits once, for a moment, until the other side can take more; after that lines are dropped, and counted, until it
//! can.  Never torn: what could not be written whole is ended before the next line begins.

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// What is written at once: so much never blocks where anything can be written (`PIPE_BUF`, a page).
const PIECE_OCTETS: usize = 4096;

/// Writes lines to a file, a pipe, a socket or a terminal.
#[derive(Debug)]
pub struct PatientWriter<W> {
    patience: Duration,
    state: Mutex<State<W>>,
    lost: AtomicU64,
}

#[derive(Debug)]
struct State<W> {
    to: W,
    /// It took nothing when it was asked last.
    is_stuck: bool,
    /// The last line has no end.
    is_torn: bool,
}

impl<W: Write + AsFd> PatientWriter<W> {
    /// Waits for `to` no longer than `patience`.
    pub const fn new(to: W, patience: Duration) -> Self {
        Self {
            patience,
            state: Mutex::new(State {
                to,
                is_stuck: false,
                is_torn: false,
            }),
            lost: AtomicU64::new(0),
        }
    }

    /// Writes a line, with its end, or drops it.
    pub fn write_line(&self, line: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.write_line(line, self.patience) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that were dropped, in whole or in part.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl<W: Write + AsFd> State<W> {
    fn write_line(&mut self, line: &[u8], patience: Duration) -> bool {
        if self.is_torn {
            self.is_torn = !self.write_piece(b"\n", patience);
        }
        let mut is_begun = false;
        for piece in line.chunks(PIECE_OCTETS) {
            if self.is_torn || !self.write_piece(piece, patience) {
                self.is_torn |= is_begun;
                return false;
            }
            is_begun = true;
        }
        true
    }

    fn write_piece(&mut self, piece: &[u8], patience: Duration) -> bool {
        let patience = match self.is_stuck {
            true => Duration::ZERO,
            false => patience,
        };
        self.is_stuck = !can_take(&self.to, patience);
        // One that is gone takes nothing: nobody misses these lines.
        !self.is_stuck && self.to.write_all(piece).is_ok()
    }
}

/// Whether it takes a piece, within some time.
fn can_take(to: &impl AsFd, patience: Duration) -> bool {
    let timeout = Timespec::try_from(patience).ok();
    loop {
        match poll(&mut [PollFd::new(to, PollFlags::OUT)], timeout.as_ref()) {
            Ok(ready) => return ready > 0,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn who_does_not_read_holds_nobody_up() {
        let (mut from, to) = std::io::pipe().unwrap();
        let writer = PatientWriter::new(to, Duration::from_millis(20));
        let line = |at: usize, len: usize| format!("{at} {}\n", "x".repeat(len)).into_bytes();
        let mut written = 0;
        while writer.lost() == 0 {
            writer.write_line(&line(written, 100));
            written += 1;
        }
        // Longer than a piece: it may be begun and not ended.
        writer.write_line(&line(written, 3 * PIECE_OCTETS));
        assert_eq!(writer.lost(), 2);
        let mut taken = vec![0; 16 * PIECE_OCTETS];
        let len = from.read(&mut taken).unwrap();
        taken.truncate(len);
        writer.write_line(b"again\n");
        writer.write_line(&line(7, 30 * PIECE_OCTETS));
        assert_eq!(writer.lost(), 3, "it can take a part of it only");
        let mut rest = vec![0; 64 * PIECE_OCTETS];
        let len = from.read(&mut rest).unwrap();
        taken.extend_from_slice(&rest[..len]);
        writer.write_line(b"and again\n");
        drop(writer);
        from.read_to_end(&mut taken).unwrap();
        let text = String::from_utf8(taken).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], format!("0 {}", "x".repeat(100)));
        assert!(lines.contains(&"again"), "{} lines", lines.len());
        assert_eq!(lines.last(), Some(&"and again"));
    }

    #[test]
    fn who_is_gone_is_not_missed() {
        let (from, to) = std::io::pipe().unwrap();
        drop(from);
        let writer = PatientWriter::new(to, Duration::from_secs(60));
        writer.write_line(b"lost\n");
        assert_eq!(writer.lost(), 1);
    }
}
