//! What LIST ACTIVE.MODTIME goes by, from one run to the next: the spool's file `changes`.
//!
//! What it says holds only for the very log that it was written behind: it is written when the server has stopped cleanly, says the
//! last sequence of then, and is removed by the start that reads it.  After a crash there is none, and every group counts as changed:
//! somebody may have been shown lines that nobody remembers.  `docs/formats/spool.md` has the layout.

use std::fmt::Write as _;
use std::path::Path;

use newsreel_host::{Disk, ErrorKind, read_whole, replace_file};
use newsreel_service::{LastChange, LastChanges};
use newsreel_wire::{ArticleNumber, GroupId, Sequence, UnixTime};

use crate::shared::Shared;

/// The file's name in the spool.
const FILE: &str = "changes";
/// The first line: these words, and the crc32c of all lines behind it, hexadecimal.
const WORDS: &str = "newsreel changes 1 ";
/// A million groups and more; with a larger file all count as changed after the next start.
pub const CHANGES_OCTETS_MAX: usize = 64 << 20;

/// What was noted when the log ended at `last`, and is of this log; the file is gone then.
pub(crate) fn take(disk: &dyn Disk, spool: &Path, last: Sequence) -> LastChanges {
    let path = spool.join(FILE);
    let octets = match read_whole(disk, &path, CHANGES_OCTETS_MAX) {
        Ok(octets) => octets,
        Err(error) => {
            if error.kind() != ErrorKind::NotFound {
                tracing::warn!(%error, "when groups changed last is not known: all count as changed now");
            }
            return LastChanges::default();
        }
    };
    // It must not be met again by a start behind a crash of this run.
    let removed = disk.remove(&path).and_then(|()| disk.sync_dir(spool));
    if let Err(error) = removed {
        tracing::warn!(%error, "when groups changed last is not taken up: its file cannot be removed");
        return LastChanges::default();
    }
    match parse(&octets) {
        Some((written, changes)) if written == last => changes,
        Some(_) => {
            tracing::info!(
                "when groups changed last was noted before a crash: all count as changed now"
            );
            LastChanges::default()
        }
        None => {
            tracing::warn!("when groups changed last is damaged: all count as changed now");
            LastChanges::default()
        }
    }
}

impl Shared {
    /// Keeps what is noted of groups that are there, if there is anything; nothing may change any more.
    pub(crate) fn keep_changes(&self) {
        let changes = self.changes.lock();
        let groups = self.views.groups();
        let kept = changes.rows().filter(|(id, _)| groups.exists(*id));
        let kept = LastChanges::restored(changes.latest(), kept);
        if kept.rows().next().is_none() {
            return;
        }
        let text = print(self.committed(), &kept);
        if text.len() > CHANGES_OCTETS_MAX {
            tracing::warn!(
                "there are too many groups to note when they changed: at the next start all count as changed"
            );
            return;
        }
        let path = self.config.spool.join(FILE);
        if let Err(error) = replace_file(self.disk.as_ref(), &path, text.as_bytes()) {
            tracing::warn!(%error, "when groups changed last cannot be noted: at the next start all count as changed");
        }
    }
}

fn print(last: Sequence, changes: &LastChanges) -> String {
    let mut rows: Vec<_> = changes.rows().collect();
    rows.sort_unstable_by_key(|(id, _)| *id);
    let mut out = format!("log {} {}\n", last.0, changes.latest().0);
    for (id, row) in rows {
        let LastChange {
            low,
            high,
            status,
            at,
        } = row;
        let _ = writeln!(out, "{} {} {} {status:016x} {}", id.0, low.0, high.0, at.0);
    }
    let crc = crc32c::crc32c(out.as_bytes());
    format!("{WORDS}{crc:08x}\n{out}")
}

fn parse(octets: &[u8]) -> Option<(Sequence, LastChanges)> {
    let text = std::str::from_utf8(octets).ok()?;
    let (crc, lines) = text.strip_prefix(WORDS)?.split_once('\n')?;
    if u32::from_str_radix(crc, 16).ok()? != crc32c::crc32c(lines.as_bytes()) {
        return None;
    }
    let mut lines = lines.lines();
    let (last, latest) = lines.next()?.strip_prefix("log ")?.split_once(' ')?;
    let row = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [id, low, high, status, at] = words[..] else {
            return None;
        };
        let row = LastChange {
            low: ArticleNumber(low.parse().ok()?),
            high: ArticleNumber(high.parse().ok()?),
            status: u64::from_str_radix(status, 16).ok()?,
            at: UnixTime(at.parse().ok()?),
        };
        Some((GroupId(id.parse().ok()?), row))
    };
    let rows: Vec<_> = lines.map(row).collect::<Option<_>>()?;
    let changes = LastChanges::restored(UnixTime(latest.parse().ok()?), rows);
    Some((Sequence(last.parse().ok()?), changes))
}

/// Reads octets as the file, behind a right checksum; whether they are one.
pub(crate) fn again(octets: &[u8]) -> bool {
    let _ = parse(octets);
    let lines = String::from_utf8_lossy(octets);
    let crc = crc32c::crc32c(lines.as_bytes());
    let Some((last, changes)) = parse(format!("{WORDS}{crc:08x}\n{lines}").as_bytes()) else {
        return false;
    };
    let text = print(last, &changes);
    let written = parse(text.as_bytes());
    let is_same = written.is_some_and(|(again, changes)| print(again, &changes) == text);
    assert!(is_same, "it is read as it was written");
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let row = |low, high, status, at| LastChange {
            low: ArticleNumber(low),
            high: ArticleNumber(high),
            status,
            at: UnixTime(at),
        };
        let rows = [
            (GroupId(9), row(1, 0, u64::MAX, 100)),
            (GroupId(2), row(5, 1 << 40, 7, 99)),
        ];
        let changes = LastChanges::restored(UnixTime(120), rows);
        let text = print(Sequence(77), &changes);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let expected = [
            "log 77 120",
            "2 5 1099511627776 0000000000000007 99",
            "9 1 0 ffffffffffffffff 100",
        ];
        assert_eq!(lines, expected);
        let (last, again) = parse(text.as_bytes()).unwrap();
        assert_eq!((last, print(last, &again)), (Sequence(77), text.clone()));
        assert!(parse(text.replace("9 1 0", "9 1 1").as_bytes()).is_none());
        for other in ["", "newsreel changes 2 00000000\n", "log 1 2\n"] {
            assert!(parse(other.as_bytes()).is_none(), "{other:?}");
        }
        assert!(self::again(b"log 1 2\n") && self::again(b"log 1 2\n1 2 3 4 5\n"));
        for bad in ["log 1\n", "log 1 2\n1 2 3 4\n", "log 1 2\n1 2 3 x 5\n"] {
            assert!(!self::again(bad.as_bytes()), "{bad}");
        }
    }
}
