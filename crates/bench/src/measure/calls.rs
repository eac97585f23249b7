//! What a process asks of the kernel's file systems: path look-ups, inodes made and fetched, pages that came into the cache.
//!
//! The kernel's trace points are counted by `perf stat`, which needs root and the program `perf`; nothing is recorded, and
//! the counted process is not stopped. Invariants: counting has begun in every thread when [`Counting::start`] returns, however busy the
//! machine is; where they cannot be counted that is said, and why; they are never zero for want of a look.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

/// Calls that take a path: each looks one up, those with two paths two.
const ONE_PATH: [&str; 20] = [
    "access",
    "chdir",
    "chmod",
    "faccessat",
    "mkdir",
    "mkdirat",
    "newfstatat",
    "newlstat",
    "newstat",
    "open",
    "openat",
    "readlink",
    "rmdir",
    "statx",
    "unlink",
    "unlinkat",
    "utimensat",
    "openat2",
    "faccessat2",
    "readlinkat",
];
const TWO_PATHS: [&str; 7] = [
    "link",
    "linkat",
    "rename",
    "renameat",
    "renameat2",
    "symlink",
    "symlinkat",
];
const INODE_MADE: &str = "ext4:ext4_allocate_inode";
const INODE_FETCHED: &str = "ext4:ext4_load_inode";
const PAGE_ADDED: &str = "filemap:mm_filemap_add_to_page_cache";

/// What tells `perf` to begin.
const ENABLE: &[u8] = b"enable\n";
/// What it answers when every counter of every thread runs.
const ENABLED: &[u8] = b"ack\n";

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// Paths in calls; those that ask for the state of an open file, by the same call without a path, are among them.
    pub path_lookups: u64,
    /// Inodes made.
    pub inodes_made: u64,
    /// Blocks of inodes that were looked for because they were not in memory.
    pub inodes_fetched: u64,
    /// Pages that came into the page cache.
    pub pages_cached: u64,
}

/// A count under way.
#[derive(Debug)]
pub(crate) struct Counting {
    perf: Child,
}

impl Counting {
    /// Begins to count what a process does, its threads and children to come included.
    pub(crate) fn start(pid: u32) -> Result<Self, String> {
        let events = events().join(",");
        let mut perf = Command::new("perf");
        // Counters begin disabled; its standard input takes what to do, its standard output says that it is done.
        perf.args(["stat", "-x,", "-D", "-1", "--control", "fd:0,1"]);
        perf.args(["-e", &events, "-p", &pid.to_string()]);
        let perf = perf
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("perf cannot be run: {error}"))?;
        let mut counting = Self { perf };
        if counting.enable() {
            return Ok(counting);
        }
        // It ended without an answer: what it said says why.
        counting.stop().and(Err("perf ended by itself".to_owned()))
    }

    /// Has it begin, and waits until it has; `false`: it ended instead.
    fn enable(&mut self) -> bool {
        let (Some(to), Some(from)) = (&mut self.perf.stdin, &mut self.perf.stdout) else {
            return false;
        };
        let mut answer = [0; ENABLED.len()];
        let asked = to.write_all(ENABLE).and_then(|()| to.flush());
        asked.is_ok() && from.read_exact(&mut answer).is_ok() && answer == *ENABLED
    }

    /// Ends it.
    pub(crate) fn stop(self) -> Result<Calls, String> {
        if let Some(pid) = i32::try_from(self.perf.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself; then what it said says why.
            let _ = kill_process(pid, Signal::INT);
        }
        let said = self
            .perf
            .wait_with_output()
            .map_err(|error| format!("perf: {error}"))?;
        let said = String::from_utf8_lossy(&said.stderr);
        counted(&said)
    }
}

/// Those of them that this kernel has; an unknown one would be refused with all others.
fn events() -> Vec<String> {
    let paths = ONE_PATH.iter().chain(&TWO_PATHS);
    let calls = paths.map(|call| format!("syscalls:sys_enter_{call}"));
    let others = [INODE_MADE, INODE_FETCHED, PAGE_ADDED].map(str::to_owned);
    let is_known = |event: &String| {
        let path = Path::new("/sys/kernel/tracing/events").join(event.replace(':', "/"));
        path.is_dir()
    };
    calls.filter(is_known).chain(others).collect()
}

/// Reads lines such as `213,,syscalls:sys_enter_openat,7751595,100.00,,`.
fn counted(said: &str) -> Result<Calls, String> {
    let mut calls = Calls::default();
    let mut lines = 0;
    for line in said.lines() {
        let mut fields = line.split(',');
        let (number, name) = (fields.next(), fields.nth(1));
        let (Some(number), Some(name)) = (number.and_then(|n| n.parse::<u64>().ok()), name) else {
            continue;
        };
        lines += 1;
        let call = name.strip_prefix("syscalls:sys_enter_");
        match name {
            INODE_MADE => calls.inodes_made += number,
            INODE_FETCHED => calls.inodes_fetched += number,
            PAGE_ADDED => calls.pages_cached += number,
            _ if call.is_some_and(|call| TWO_PATHS.contains(&call)) => {
                calls.path_lookups += 2 * number;
            }
            _ => calls.path_lookups += number,
        }
    }
    if lines > 3 {
        return Ok(calls);
    }
    let why = said.lines().find(|line| !line.trim().is_empty());
    Err(format!("perf counted nothing: {}", why.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_says() {
        let said = "213,,syscalls:sys_enter_openat,7751595,100.00,,\n2,,syscalls:sys_enter_linkat,1,100.00,,\n\
                    7,,ext4:ext4_allocate_inode,1,100.00,,\n0,,ext4:ext4_load_inode,1,100.00,,\n\
                    40,,filemap:mm_filemap_add_to_page_cache,1,100.00,,\n";
        let calls = Calls {
            path_lookups: 217,
            inodes_made: 7,
            inodes_fetched: 0,
            pages_cached: 40,
        };
        assert_eq!(counted(said), Ok(calls));
        let refused = "event syntax error: 'ext4:ext4_load_inode'\n";
        assert!(counted(refused).unwrap_err().contains("event syntax error"));
        let uncounted = "<not counted>,,ext4:ext4_load_inode,0,100.00,,\n";
        assert!(counted(uncounted).is_err());
    }
}
