//! What a server costs, from `/proc`: a process and its children, before and after.
//!
//! Invariant: a fact is the sum over the process, its threads and its living descendants; a process
//! that ended between two looks is counted by what its parent inherited. What cannot be read counts
//! as nothing, because a measured server may be somebody else's. Reads only, through the `Disk`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use newsreel_host::{Disk, OpenMode};

/// A server that works less than this in such a time has come to rest, or is taken as it is after so many looks.
const REST: Duration = Duration::from_millis(300);
const REST_CPU: Duration = Duration::from_millis(3);
const RESTS_MAX: u32 = 100;

/// Processor time is counted in these in `/proc/stat` and `/proc/PID/stat` on every Linux we run on.
pub(super) const TICK: Duration = Duration::from_millis(10);
const FILE_OCTETS_MAX: usize = 16 * 1024;
const DESCENDANTS_MAX: usize = 20_000;

/// One look at one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ThreadLook {
    /// From the scheduler, to the nanosecond.
    scheduled_ns: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

/// One look at one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ProcessLook {
    started_ticks: u64,
    user_ticks: u64,
    system_ticks: u64,
    children_ticks: u64,
    read_calls: u64,
    write_calls: u64,
    written_octets: u64,
    disk_read_octets: u64,
    disk_written_octets: u64,
    rss_octets: u64,
    pss_octets: u64,
    /// Those that live.
    threads: BTreeMap<u32, ThreadLook>,
}

/// One look at a server: all its processes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerLook {
    processes: BTreeMap<u32, ProcessLook>,
}

/// What a server spent between two looks, and its size at the second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ServerCost {
    pub(crate) cpu: Duration,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
    pub(crate) read_calls: u64,
    pub(crate) write_calls: u64,
    pub(crate) written_octets: u64,
    pub(crate) disk_read_octets: u64,
    pub(crate) disk_written_octets: u64,
    pub(crate) rss_octets: u64,
    /// Memory with shared pages counted in part; 0 where it may not be read.
    pub(crate) pss_octets: u64,
    pub(crate) threads: u64,
    pub(crate) processes: u64,
}

impl ServerLook {
    /// Looks at `pid` and all that descend from it.
    pub(crate) fn take(disk: &dyn Disk, pid: u32) -> Self {
        let mut processes = BTreeMap::new();
        let mut left = vec![pid];
        while let Some(pid) = left.pop() {
            if processes.len() >= DESCENDANTS_MAX || processes.contains_key(&pid) {
                continue;
            }
            let directory = PathBuf::from(format!("/proc/{pid}"));
            if let Some(look) = look_at(disk, &directory, &mut left) {
                processes.insert(pid, look);
            }
        }
        Self { processes }
    }

    /// Waits until it does nothing more.
    pub(crate) fn wait_for_rest(look: impl Fn() -> Self) {
        for _ in 0..RESTS_MAX {
            let before = look();
            std::thread::sleep(REST);
            if look().since(&before).cpu < REST_CPU {
                break;
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    pub(crate) fn rss_octets(&self) -> u64 {
        self.processes.values().map(|look| look.rss_octets).sum()
    }

    /// What was spent since `before`.
    pub(crate) fn since(&self, before: &Self) -> ServerCost {
        let mut cost = ServerCost {
            processes: self.processes.len() as u64,
            ..ServerCost::default()
        };
        for (pid, now) in &self.processes {
            let same = |then: &&ProcessLook| then.started_ticks == now.started_ticks;
            let nothing = ProcessLook::default();
            let then = before.processes.get(pid).filter(same);
            cost.add(then.unwrap_or(&nothing), now);
        }
        cost
    }
}

impl ServerCost {
    fn add(&mut self, then: &ProcessLook, now: &ProcessLook) {
        let user = ticks(now.user_ticks, then.user_ticks);
        let system = ticks(now.system_ticks, then.system_ticks);
        let counted = user + system;
        let grown = |now: u64, then: u64| now.saturating_sub(then);
        let mut scheduled = Duration::ZERO;
        for (thread, now) in &now.threads {
            let then = then.threads.get(thread).copied().unwrap_or_default();
            scheduled += Duration::from_nanos(grown(now.scheduled_ns, then.scheduled_ns));
            self.voluntary_switches += grown(now.voluntary_switches, then.voluntary_switches);
            self.involuntary_switches += grown(now.involuntary_switches, then.involuntary_switches);
        }
        // Threads that ended take their nanoseconds with them; their ticks stay.
        let own = if counted > scheduled + 5 * TICK {
            counted
        } else {
            scheduled
        };
        let inherited = ticks(now.children_ticks, then.children_ticks);
        self.cpu += own + inherited;
        self.user += user;
        self.system += system;
        self.read_calls += grown(now.read_calls, then.read_calls);
        self.write_calls += grown(now.write_calls, then.write_calls);
        self.written_octets += grown(now.written_octets, then.written_octets);
        self.disk_read_octets += grown(now.disk_read_octets, then.disk_read_octets);
        self.disk_written_octets += grown(now.disk_written_octets, then.disk_written_octets);
        self.rss_octets += now.rss_octets;
        self.pss_octets += now.pss_octets;
        self.threads += now.threads.len() as u64;
    }
}

fn ticks(now: u64, then: u64) -> Duration {
    TICK * u32::try_from(now.saturating_sub(then)).unwrap_or(u32::MAX)
}

/// Looks at one process; its children are added to `left`.
fn look_at(disk: &dyn Disk, directory: &Path, left: &mut Vec<u32>) -> Option<ProcessLook> {
    let mut look = parse_stat(&text(disk, &directory.join("stat"))?)?;
    let status = text(disk, &directory.join("status")).unwrap_or_default();
    look.rss_octets = field(&status, "VmRSS:") * 1024;
    let shares = text(disk, &directory.join("smaps_rollup")).unwrap_or_default();
    look.pss_octets = field(&shares, "Pss:") * 1024;
    let io = text(disk, &directory.join("io")).unwrap_or_default();
    look.read_calls = field(&io, "syscr:");
    look.write_calls = field(&io, "syscw:");
    look.written_octets = field(&io, "wchar:");
    look.disk_read_octets = field(&io, "read_bytes:");
    look.disk_written_octets = field(&io, "write_bytes:");
    let tasks = directory.join("task");
    for task in disk.list(&tasks).unwrap_or_default() {
        let Ok(thread) = task.name.parse::<u32>() else {
            continue;
        };
        let task = tasks.join(task.name);
        let scheduled = text(disk, &task.join("schedstat")).unwrap_or_default();
        let scheduled_ns = scheduled.split(' ').next().and_then(|ns| ns.parse().ok());
        let status = text(disk, &task.join("status")).unwrap_or_default();
        let seen = ThreadLook {
            scheduled_ns: scheduled_ns.unwrap_or(0),
            voluntary_switches: field(&status, "voluntary_ctxt_switches:"),
            involuntary_switches: field(&status, "nonvoluntary_ctxt_switches:"),
        };
        look.threads.insert(thread, seen);
        let children = text(disk, &task.join("children")).unwrap_or_default();
        left.extend(
            children
                .split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    Some(look)
}

/// Reads the fields of `/proc/PID/stat` that follow the program's name in parentheses.
fn parse_stat(stat: &str) -> Option<ProcessLook> {
    let (_, after) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    // Field 3 of proc(5) is the first here.
    let number = |place: usize| fields.get(place - 3)?.parse::<u64>().ok();
    Some(ProcessLook {
        user_ticks: number(14)?,
        system_ticks: number(15)?,
        children_ticks: number(16)? + number(17)?,
        started_ticks: number(22)?,
        ..ProcessLook::default()
    })
}

/// The number after `name` at the start of a line.
fn field(text: &str, name: &str) -> u64 {
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
    let number = values
        .next()
        .and_then(|rest| rest.split_ascii_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// A small file as text. Files in `/proc` have no length, so it is read until nothing comes.
pub(crate) fn text(disk: &dyn Disk, path: &Path) -> Option<String> {
    let file = disk.open(path, OpenMode::Read).ok()?;
    let mut octets = vec![0; FILE_OCTETS_MAX];
    let mut len = 0;
    loop {
        let got = file.read_at(octets.get_mut(len..)?, len as u64).ok()?;
        if got == 0 {
            break;
        }
        len += got;
    }
    octets.truncate(len);
    Some(String::from_utf8_lossy(&octets).into_owned())
}

#[cfg(test)]
mod tests {
    use newsreel_host::{MemoryDisk, RealDisk};

    use super::*;

    /// A machine with one server (pid 7) that has one child (pid 9).
    fn machine(user: u64, scheduled_ns: u64, children: &str) -> MemoryDisk {
        let disk = MemoryDisk::new();
        let put = |path: &str, text: &str| {
            let path = Path::new(path);
            disk.create_dir_all(path.parent().unwrap()).unwrap();
            let file = disk.open(path, OpenMode::CreateOrOpen).unwrap();
            file.write_at(text.as_bytes(), 0).unwrap();
        };
        for pid in [7, 9] {
            let zeros = "0 ".repeat(9);
            let stat = format!("{pid} (a (b) c) S {zeros} 0 {user} 5 1 2 20 0 3 0 1000 4096 512\n");
            put(&format!("/proc/{pid}/stat"), &stat);
            put(
                &format!("/proc/{pid}/status"),
                "Name:\tx\nVmRSS:\t   100 kB\n",
            );
            put(
                &format!("/proc/{pid}/io"),
                "rchar: 1\nwchar: 50\nsyscr: 10\nsyscw: 20\n",
            );
            let task = format!("/proc/{pid}/task/{pid}");
            put(
                &format!("{task}/schedstat"),
                &format!("{scheduled_ns} 5 6\n"),
            );
            let switches = "voluntary_ctxt_switches:\t30\nnonvoluntary_ctxt_switches:\t4\n";
            put(&format!("{task}/status"), switches);
            put(
                &format!("{task}/children"),
                if pid == 7 { children } else { "" },
            );
        }
        disk
    }

    #[test]
    fn a_server_is_its_processes_together() {
        let before = ServerLook::take(&machine(100, 1_000_000_000, ""), 7);
        let after = ServerLook::take(&machine(150, 1_560_000_000, "9 "), 7);
        let cost = after.since(&before);
        assert_eq!(
            (cost.processes, cost.threads, cost.rss_octets),
            (2, 2, 204_800)
        );
        // The old process spent 0.56 s, the new one all it has and what its children left it.
        assert_eq!(cost.cpu, Duration::from_millis(560 + 1560 + 30));
        assert_eq!(cost.user, Duration::from_millis(500 + 1500));
        assert_eq!((cost.write_calls, cost.voluntary_switches), (20, 30));
    }

    #[test]
    fn time_of_ended_threads_is_taken_from_the_ticks() {
        let before = ServerLook::take(&machine(100, 1_000_000_000, ""), 7);
        let after = ServerLook::take(&machine(300, 1_000_000_000, ""), 7);
        assert_eq!(after.since(&before).cpu, Duration::from_secs(2));
    }

    #[test]
    fn the_real_proc_is_understood() {
        let own = std::process::id();
        let before = ServerLook::take(&RealDisk, own);
        let sum = (0..30_000_000u64).fold(0, |sum, n| crate::random::mix(sum ^ n));
        let after = ServerLook::take(&RealDisk, own);
        let cost = after.since(&before);
        assert!(sum != 0 && cost.cpu > Duration::from_millis(1), "{cost:?}");
        assert!(cost.rss_octets > 1 << 20 && cost.threads >= 1 && cost.processes >= 1);
        assert!(ServerLook::take(&RealDisk, u32::MAX).is_empty());
    }
}
