//! The access log: which articles were asked for, for `newsreel cache simulate`.
//!
//! Lines are collected in memory and appended to a file from time to time, so a kill loses the last of them.  What is on disk never
//! exceeds its size: at half of it the file takes the place of an older one, and another is begun.

mod line;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, File, OpenMode};
use parking_lot::Mutex;

pub use line::{ACCESS_LINE_OCTETS_MAX, AccessLine};

/// The log's file in the cache's directory.
pub const ACCESS_LOG: &str = "access.log";

/// The one before it.
pub const ACCESS_LOG_BEFORE: &str = "access.log.1";

/// The least that a log may have, octets.
pub const ACCESS_OCTETS_MIN: u64 = 64 << 10;

/// Octets of lines that wait to be written; what is more is lost, and counted.
pub const ACCESS_WAITING_OCTETS_MAX: usize = 4 << 20;

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    lost: u64,
}

/// The file that is written to.
struct Open {
    file: Arc<dyn File>,
    len: u64,
}

/// The log.
pub struct AccessLog {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    octets_max: u64,
    waiting: Mutex<Waiting>,
    open: Mutex<Option<Open>>,
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog")
            .field("directory", &self.directory)
            .field("octets_max", &self.octets_max)
            .finish_non_exhaustive()
    }
}

impl AccessLog {
    /// A log in a directory, with so many octets in all, of which there are at least [`ACCESS_OCTETS_MIN`].
    #[must_use]
    pub fn new(disk: &Arc<dyn Disk>, directory: &Path, octets_max: u64) -> Self {
        Self {
            disk: Arc::clone(disk),
            directory: directory.to_owned(),
            octets_max,
            waiting: Mutex::default(),
            open: Mutex::default(),
        }
    }

    /// An article was asked for; never waits for the disk.
    pub fn note(&self, line: &AccessLine<'_>) {
        let mut waiting = self.waiting.lock();
        if waiting.lines.len() + ACCESS_LINE_OCTETS_MAX > ACCESS_WAITING_OCTETS_MAX {
            waiting.lost += 1;
            return;
        }
        line.write(&mut waiting.lines);
    }

    /// Whether something waits to be written.
    pub(crate) fn has_waiting(&self) -> bool {
        let waiting = self.waiting.lock();
        !waiting.lines.is_empty() || waiting.lost > 0
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// When it cannot be written; it is lost then.
    pub fn flush(&self) -> newsreel_host::Result<()> {
        let mut open = self.open.lock();
        let Waiting { lines, lost } = std::mem::take(&mut *self.waiting.lock());
        if lost > 0 {
            tracing::warn!(target: "newsreel::cache", lost, "lines of the access log are lost: too many at once");
        }
        let half = usize::try_from(self.octets_max / 2).unwrap_or(usize::MAX);
        let mut rest = &lines[..];
        while !rest.is_empty() {
            // Whole lines, no more than a file may have.
            let most = rest.get(..half).unwrap_or(rest);
            let end = memchr::memrchr(b'\n', most).map_or(rest.len(), |end| end + 1);
            let (now, behind) = rest.split_at(end);
            rest = behind;
            self.append(&mut open, now)?;
        }
        Ok(())
    }

    fn append(&self, open: &mut Option<Open>, lines: &[u8]) -> newsreel_host::Result<()> {
        let path = self.directory.join(ACCESS_LOG);
        let half = self.octets_max / 2;
        let mut there = match open.take() {
            Some(there) => there,
            None => self.opened(&path)?,
        };
        if there.len > 0 && there.len + lines.len() as u64 > half {
            self.disk
                .rename(&path, &self.directory.join(ACCESS_LOG_BEFORE))?;
            there = self.opened(&path)?;
        }
        there.file.write_at(lines, there.len)?;
        there.len += lines.len() as u64;
        *open = Some(there);
        Ok(())
    }

    fn opened(&self, path: &Path) -> newsreel_host::Result<Open> {
        // It may have had more room before.
        for name in [ACCESS_LOG, ACCESS_LOG_BEFORE] {
            let path = self.directory.join(name);
            if self.disk.exists(&path)?
                && self.disk.open(&path, OpenMode::Read)?.len()? > self.octets_max / 2
            {
                self.disk.remove(&path)?;
            }
        }
        let file = self.disk.open(path, OpenMode::CreateOrOpen)?;
        let len = file.len()?;
        Ok(Open { file, len })
    }
}

#[cfg(test)]
mod tests {
    use newsreel_host::MemoryDisk;
    use newsreel_wire::MessageId;

    use super::*;

    fn text(disk: &MemoryDisk, name: &str) -> Vec<u8> {
        let path = Path::new("/cache").join(name);
        if !disk.exists(&path).unwrap() {
            return Vec::new();
        }
        let file = disk.open(&path, OpenMode::Read).unwrap();
        let mut octets = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read_exact_at(&mut octets, 0).unwrap();
        octets
    }

    fn numbers(octets: &[u8]) -> Vec<u64> {
        let lines = octets.split(|octet| *octet == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        lines
            .map(|line| AccessLine::parse(line).unwrap().at)
            .collect()
    }

    /// There is never more than its size, the newest lines are there whole and in order, also behind a restart.
    #[test]
    fn a_log_has_the_newest_lines_and_never_more_than_its_size() {
        let disk = MemoryDisk::new();
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        shared.create_dir_all(Path::new("/cache")).unwrap();
        let note = |log: &AccessLog, at| {
            log.note(&AccessLine {
                at,
                is_hit: at % 2 == 0,
                octets: 1000,
                dated: 5,
                group: None,
                id: MessageId::parse(b"<1@t.example>").unwrap(),
            });
        };
        let mut at = 0;
        for times in [1, 7, 100, 3, 1, 60] {
            let log = AccessLog::new(&shared, Path::new("/cache"), 2000);
            for _ in 0..times {
                at += 1;
                note(&log, at);
            }
            log.flush().unwrap();
            note(&log, at + 1);
            at += 1;
            log.flush().unwrap();
            let (before, now) = (text(&disk, ACCESS_LOG_BEFORE), text(&disk, ACCESS_LOG));
            assert!(before.len() + now.len() <= 2000);
            let all = [numbers(&before), numbers(&now)].concat();
            let first = at + 1 - all.len() as u64;
            assert_eq!(all, (first..=at).collect::<Vec<_>>());
        }
        assert!(text(&disk, ACCESS_LOG_BEFORE).len() > 500);
    }

    /// What was written when more might be goes.
    #[test]
    fn a_log_that_may_be_smaller_begins_anew() {
        let disk = MemoryDisk::new();
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        shared.create_dir_all(Path::new("/cache")).unwrap();
        let line = AccessLine::parse(b"1 hit 2 3 misc.test <1@t.example>").unwrap();
        let log = AccessLog::new(&shared, Path::new("/cache"), 4000);
        (0..100).for_each(|_| log.note(&line));
        log.flush().unwrap();
        let log = AccessLog::new(&shared, Path::new("/cache"), 200);
        log.note(&line);
        log.flush().unwrap();
        assert_eq!(text(&disk, ACCESS_LOG_BEFORE), b"");
        assert_eq!(numbers(&text(&disk, ACCESS_LOG)), [1]);
    }

    #[test]
    fn what_cannot_wait_is_lost() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        disk.create_dir_all(Path::new("/cache")).unwrap();
        let log = AccessLog::new(&disk, Path::new("/cache"), 1 << 30);
        let line = AccessLine::parse(b"1 hit 2 3 misc.test <1@t.example>").unwrap();
        for _ in 0..ACCESS_WAITING_OCTETS_MAX / 30 {
            log.note(&line);
        }
        assert!(log.waiting.lock().lines.len() <= ACCESS_WAITING_OCTETS_MAX);
        assert!(log.waiting.lock().lost > 0);
        log.flush().unwrap();
        assert_eq!(log.waiting.lock().lost, 0);
    }
}
