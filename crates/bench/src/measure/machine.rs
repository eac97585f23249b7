//! What the whole machine and one block device did, from `/proc/stat` and `/sys/block`.
//!
//! Invariant: a figure is the difference of two looks. What cannot be read is absent, never nothing: a table must not say
//! that a disk was idle when nobody looked. Reads only, through the `Disk`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use newsreel_host::Disk;
use serde::Serialize;

use super::process::{TICK, text};

/// The kernel counts sectors of so many octets, whatever the device has.
const SECTOR: u64 = 512;

/// One look at the processors' time, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuLook {
    user: u64,
    system: u64,
    idle: u64,
    wait: u64,
    /// What a host took for others; `system` has it too.
    stolen: u64,
}

/// How the time of all processors was spent, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CpuShares {
    /// Nothing to do.
    pub idle: f64,
    /// In programs.
    pub user: f64,
    /// In the kernel, interrupts and what a host took for others included.
    pub system: f64,
    /// Nothing to do before a disk answers.
    pub wait: f64,
}

impl CpuLook {
    pub(crate) fn take(disk: &dyn Disk) -> Option<Self> {
        parse_cpu(&text(disk, Path::new("/proc/stat"))?)
    }

    /// How long processors were at work, all of them together and for whomever.
    pub(crate) fn busy_since(&self, before: &Self) -> Duration {
        let busy = |look: &Self| look.user + look.system - look.stolen;
        let ticks = busy(self).saturating_sub(busy(before));
        TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
    }

    /// None where no tick went by.
    pub(crate) fn since(&self, before: &Self) -> Option<CpuShares> {
        let grown = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before)) as f64;
        let (user, system) = (grown(|look| look.user), grown(|look| look.system));
        let (idle, wait) = (grown(|look| look.idle), grown(|look| look.wait));
        let all = user + system + idle + wait;
        (all > 0.0).then(|| CpuShares {
            idle: 100.0 * idle / all,
            user: 100.0 * user / all,
            system: 100.0 * system / all,
            wait: 100.0 * wait / all,
        })
    }
}

/// The first line: user nice system idle iowait irq softirq steal.
fn parse_cpu(stat: &str) -> Option<CpuLook> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let at = |place: usize| ticks.get(place).copied();
    Some(CpuLook {
        user: at(0)? + at(1)?,
        system: at(2)? + at(5)? + at(6)? + at(7)?,
        idle: at(3)?,
        wait: at(4)?,
        stolen: at(7)?,
    })
}

/// One look at a block device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DeviceLook {
    reads: u64,
    read_sectors: u64,
    writes: u64,
    written_sectors: u64,
    flushes: u64,
    waited_ms: u64,
}

/// What a block device did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DeviceCost {
    /// Octets read.
    pub read_octets: u64,
    /// Octets written.
    pub written_octets: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Times it was told to make durable what it has.
    pub flushes: u64,
    /// How long a read or write took in the mean; absent where there was none.
    pub service_ms: Option<f64>,
}

impl DeviceCost {
    /// Reads and writes.
    #[must_use]
    pub const fn operations(&self) -> u64 {
        self.reads + self.writes
    }
}

impl DeviceLook {
    /// `name` as in `/sys/block`.
    pub(crate) fn take(disk: &dyn Disk, name: &str) -> Option<Self> {
        let path = PathBuf::from(format!("/sys/block/{name}/stat"));
        parse_device(&text(disk, &path)?)
    }

    pub(crate) fn since(&self, before: &Self) -> DeviceCost {
        let grown = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before));
        let (reads, writes) = (grown(|look| look.reads), grown(|look| look.writes));
        let waited = grown(|look| look.waited_ms) as f64;
        let operations = reads + writes;
        DeviceCost {
            read_octets: grown(|look| look.read_sectors) * SECTOR,
            written_octets: grown(|look| look.written_sectors) * SECTOR,
            reads,
            writes,
            flushes: grown(|look| look.flushes),
            service_ms: (operations > 0).then(|| waited / operations as f64),
        }
    }
}

/// Documentation/block/stat of the kernel: reads, merged, sectors, ms; the same of writes; in flight, busy, queued; discards;
/// flushes since 5.5.
fn parse_device(stat: &str) -> Option<DeviceLook> {
    let numbers: Vec<u64> = stat
        .split_ascii_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let at = |place: usize| numbers.get(place).copied();
    Some(DeviceLook {
        reads: at(0)?,
        read_sectors: at(2)?,
        writes: at(4)?,
        written_sectors: at(6)?,
        flushes: at(15).unwrap_or_default(),
        waited_ms: at(3)? + at(7)?,
    })
}

#[cfg(test)]
mod tests {
    use newsreel_host::{MemoryDisk, OpenMode};

    use super::*;

    fn disk(path: &str, stat: &str) -> MemoryDisk {
        let (disk, path) = (MemoryDisk::new(), Path::new(path));
        disk.create_dir_all(path.parent().unwrap()).unwrap();
        let file = disk.open(path, OpenMode::CreateNew).unwrap();
        file.write_at(stat.as_bytes(), 0).unwrap();
        disk
    }

    #[test]
    fn processors_by_percent() {
        let look = |stat: &str| CpuLook::take(&disk("/proc/stat", stat)).unwrap();
        let before = look("cpu  100 20 300 4000 50 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
        let after = look("cpu  120 30 310 4040 70 7 8 16 0 0\n");
        let shares = after.since(&before).unwrap();
        let expected = CpuShares {
            idle: 100.0 * 40.0 / 110.0,
            user: 100.0 * 30.0 / 110.0,
            system: 100.0 * 20.0 / 110.0,
            wait: 100.0 * 20.0 / 110.0,
        };
        assert_eq!(shares, expected);
        // What the host took for others is nobody's work here.
        assert_eq!(after.busy_since(&before), Duration::from_millis(420));
        assert_eq!(before.since(&before), None);
        assert_eq!(CpuLook::take(&MemoryDisk::new()), None);
    }

    #[test]
    fn a_device_by_its_line() {
        let look = |stat: &str| DeviceLook::take(&disk("/sys/block/loop3/stat", stat), "loop3");
        let before = look("10 0 80 5 20 1 160 30 0 40 35 0 0 0 0 2 1\n").unwrap();
        let after = look("13 0 104 8 25 1 240 43 0 48 51 0 0 0 0 6 3\n").unwrap();
        let expected = DeviceCost {
            read_octets: 24 * 512,
            written_octets: 80 * 512,
            reads: 3,
            writes: 5,
            flushes: 4,
            service_ms: Some(2.0),
        };
        assert_eq!(after.since(&before), expected);
        assert_eq!(after.since(&before).operations(), 8);
        assert_eq!(before.since(&before).service_ms, None);
        assert_eq!(look("10 0 80\n"), None);
    }
}
