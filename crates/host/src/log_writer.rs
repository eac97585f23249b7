//! Lines for somebody who may stop reading, or read slowly: a server's log.
//!
//! A thread of its own writes them, several at once where several wait.  Who gives it a line never waits: when as much lies
//! before the thread as it may keep, lines are dropped, and counted.  Never torn: what could not be written whole is ended
//! before the next line begins.

use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

/// As many lines may wait: some megabytes, a tenth of a second of the fastest feed with a line for each article.
pub const LOG_LINES_MAX: usize = 16_384;

/// What is written at once.
const WRITE_OCTETS: usize = 64 << 10;

/// How long who waits for the end rests before it looks whether there is room for asking.
const REST: Duration = Duration::from_millis(10);

/// What the thread is given.
#[derive(Debug)]
enum Given {
    Line(Vec<u8>),
    /// All before it is written: whoever asked is told.
    Asked(SyncSender<()>),
}

/// Gives lines to the thread that writes them to a file, a pipe, a socket or a terminal.
#[derive(Debug)]
pub struct LogWriter {
    lines: SyncSender<Given>,
    lost: Arc<AtomicU64>,
}

impl LogWriter {
    /// Starts the thread; it ends with the last line when this is dropped.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub fn start<W: Write + AsFd + Send + 'static>(to: W) -> std::io::Result<Self> {
        let (lines, given) = sync_channel(LOG_LINES_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let mut out = Out {
            to,
            is_torn: false,
            lost: Arc::clone(&lost),
        };
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || out.write_all_of(&given))?;
        Ok(Self { lines, lost })
    }

    /// Writes a line, with its end, or drops it.
    pub fn write_line(&self, line: &[u8]) {
        if self.lines.try_send(Given::Line(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that were dropped, in whole or in part.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until all lines so far are written, no longer than `patience`; whether they are.
    pub fn flush(&self, patience: Duration) -> bool {
        let (told, done) = sync_channel(1);
        let mut asking = Given::Asked(told);
        let mut waited = Duration::ZERO;
        while let Err(TrySendError::Full(back)) = self.lines.try_send(asking) {
            if waited >= patience {
                return false;
            }
            std::thread::sleep(REST);
            (asking, waited) = (back, waited + REST);
        }
        done.recv_timeout(patience.saturating_sub(waited)).is_ok()
    }
}

/// What the thread has.
struct Out<W> {
    to: W,
    /// The last line that was begun has no end.
    is_torn: bool,
    lost: Arc<AtomicU64>,
}

impl<W: Write + AsFd> Out<W> {
    fn write_all_of(&mut self, given: &Receiver<Given>) {
        let mut octets = Vec::with_capacity(WRITE_OCTETS);
        while let Ok(first) = given.recv() {
            let mut asked = None;
            octets.clear();
            let mut next = Some(first);
            while let Some(given_now) = next {
                match given_now {
                    Given::Line(line) => octets.extend_from_slice(&line),
                    Given::Asked(told) => asked = Some(told),
                }
                let has_room = octets.len() < WRITE_OCTETS && asked.is_none();
                next = match has_room {
                    true => given.try_recv().ok(),
                    false => None,
                };
            }
            self.write(&octets);
            if let Some(told) = asked {
                let _ = told.send(());
            }
        }
    }

    /// Writes whole lines; those that cannot be written are lost.
    fn write(&mut self, lines: &[u8]) {
        let written = match self.is_torn && self.take(b"\n") == 0 {
            true => 0,
            false => {
                self.is_torn = false;
                self.take(lines)
            }
        };
        let (done, rest) = lines.split_at(written);
        if !rest.is_empty() {
            self.is_torn |= done.last().is_some_and(|octet| *octet != b'\n');
            let lost = rest.iter().filter(|octet| **octet == b'\n').count();
            self.lost.fetch_add(lost as u64, Ordering::Relaxed);
        }
    }

    /// Writes as much of this as is taken, however long that lasts; how much it was.
    fn take(&mut self, octets: &[u8]) -> usize {
        let mut rest = octets;
        while !rest.is_empty() {
            match self.to.write(rest) {
                Ok(0) => break,
                Ok(len) => rest = rest.get(len..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Somebody else who has it made it so.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let _ = poll(&mut [PollFd::new(&self.to, PollFlags::OUT)], None);
                }
                // One that is gone takes nothing: nobody misses these lines.
                Err(_) => break,
            }
        }
        octets.len() - rest.len()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, PipeWriter, read_to_string};
    use std::os::fd::BorrowedFd;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn who_does_not_read_holds_nobody_up() {
        let (from, to) = std::io::pipe().unwrap();
        let writer = LogWriter::start(to).unwrap();
        let filler = "x".repeat(100);
        let line = |at: usize| format!("{at} {filler}\n").into_bytes();
        let mut given = 0;
        while writer.lost() < 3 {
            writer.write_line(&line(given));
            given += 1;
        }
        assert!(given > LOG_LINES_MAX);
        let reading = std::thread::spawn(move || {
            let lines = BufReader::new(from).lines();
            lines.map(Result::unwrap).collect::<Vec<_>>()
        });
        // What waits is written when somebody reads again.
        let lost = writer.lost();
        assert!(writer.flush(PATIENCE));
        drop(writer);
        let lines = reading.join().unwrap();
        assert_eq!(lines.len() as u64 + lost, given as u64);
        let ends = [lines.first(), lines.last()].map(|line| line.unwrap().as_str());
        let first = format!("0 {filler}");
        assert!(ends[0] == first && ends[1].ends_with(&filler), "{ends:?}");
    }

    #[test]
    fn the_end_does_not_wait_for_who_does_not_read() {
        let (_from, to) = std::io::pipe().unwrap();
        let writer = LogWriter::start(to).unwrap();
        for _ in 0..4000 {
            writer.write_line(&[b'x'; 100]);
        }
        assert!(!writer.flush(Duration::from_millis(20)));
        while writer.lost() == 0 {
            writer.write_line(b"more\n");
        }
        assert!(!writer.flush(Duration::from_millis(20)));
    }

    #[test]
    fn who_is_gone_is_not_missed() {
        let (from, to) = std::io::pipe().unwrap();
        drop(from);
        let writer = LogWriter::start(to).unwrap();
        writer.write_line(b"lost\n");
        assert!(writer.flush(PATIENCE));
        assert_eq!(writer.lost(), 1);
    }

    /// Takes a few octets, then nothing, then everything: a disk that was full for a while.
    struct Full {
        file: PipeWriter,
        room: Vec<usize>,
    }

    impl AsFd for Full {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.file.as_fd()
        }
    }

    impl Write for Full {
        fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
            match self.room.pop() {
                Some(0) => Err(std::io::Error::from(ErrorKind::StorageFull)),
                Some(len) => self.file.write(&octets[..len.min(octets.len())]),
                None => self.file.write(octets),
            }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_was_begun_is_ended_before_the_next() {
        let (from, to) = std::io::pipe().unwrap();
        let mut out = Out {
            to: Full {
                file: to,
                // Of the first call 9 octets, of the second none, and the third after a line's end.
                room: vec![0, 3, 0, 9],
            },
            is_torn: false,
            lost: Arc::default(),
        };
        out.write(b"first\nsecond\nthird\n");
        assert_eq!(out.lost.load(Ordering::Relaxed), 2);
        out.write(b"fourth\n");
        assert_eq!(out.lost.load(Ordering::Relaxed), 3);
        out.write(b"fifth\n");
        drop(out);
        assert_eq!(read_to_string(from).unwrap(), "first\nsec\nfifth\n");
    }
}
