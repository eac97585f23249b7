//! The calls with which the sessions of a server read certain files, counted by `strace`, which knows the file behind each and the
//! name of each thread: what the server looks at in the background meanwhile is read for nobody.
//!
//! Invariant: counting has begun when [`Preads::start`] returns.
#![expect(
    clippy::disallowed_methods,
    reason = "the files of a measurement are no spool of ours"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// What `strace` puts behind the number of a thread that serves a session.
const SESSION: &str = "<session>";
const CALLS: &str = "trace=read,readv,pread64,preadv,preadv2";
/// What it says of a call that another one breaks into, there and when it goes on.
const UNFINISHED: &str = "<unfinished ...>";
const RESUMED: &str = " resumed>";
/// What it says of a call that has read nothing.
const HAS_NOTHING: &str = " EAGAIN ";
/// What it says when it has begun.
const BEGUN: &str = "attached";

/// A count under way.
#[derive(Debug)]
pub(super) struct Preads {
    strace: Child,
    /// Kept: what is said to nobody would end it.
    _said: BufReader<ChildStderr>,
    told: PathBuf,
}

impl Preads {
    /// Begins; what is called is written into the file `told`.
    pub(super) fn start(pid: u32, told: &Path) -> Result<Self, String> {
        let mut strace = Command::new("strace");
        strace.args([
            "-f",
            "-Y",
            "-y",
            "-s",
            "0",
            "-e",
            CALLS,
            "-p",
            &pid.to_string(),
        ]);
        let strace = strace.arg("-o").arg(told);
        let mut strace = strace
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("strace cannot be run: {error}"))?;
        let Some(said) = strace.stderr.take() else {
            return Err("strace says nothing".to_owned());
        };
        let (mut said, mut line) = (BufReader::new(said), String::new());
        let read = said.read_line(&mut line);
        let counting = Self {
            strace,
            _said: said,
            told: told.to_path_buf(),
        };
        if read.is_ok() && line.contains(BEGUN) {
            return Ok(counting);
        }
        counting.end()?;
        Err(format!("strace counts nothing: {}", line.trim()))
    }

    /// Ends; how many were of files below a directory.
    pub(super) fn stop(self, below: &Path) -> Result<u64, String> {
        let told = self.told.clone();
        self.end()?;
        let said = fs::read(&told).map_err(|error| format!("{}: {error}", told.display()))?;
        Ok(counted(&String::from_utf8_lossy(&said), below))
    }

    fn end(mut self) -> Result<(), String> {
        if let Some(pid) = i32::try_from(self.strace.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::INT);
        }
        let ended = self.strace.wait();
        ended
            .map(drop)
            .map_err(|error| format!("strace does not end: {error}"))
    }
}

/// Lines such as `4711<session> preadv(12</spool/buffers/A>, ...) = 3000`. A call that another one breaks into has a second line, without the
/// file. One that would have had to wait for the disk, and was not to, has read nothing: another follows.
fn counted(said: &str, below: &Path) -> u64 {
    let file = format!("<{}/", below.display());
    let (mut count, mut broken) = (0, BTreeSet::new());
    for line in said.lines() {
        let process = line.split(' ').next().unwrap_or_default();
        if !process.ends_with(SESSION) {
            continue;
        }
        let is_it = match line.contains(RESUMED) {
            true => broken.remove(process),
            false => line.contains(&file),
        };
        if is_it && line.contains(UNFINISHED) {
            broken.insert(process);
        } else if is_it && !line.contains(HAS_NOTHING) {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strace_says() {
        let said = "7<session> preadv(12</d/articles/A>, [{iov_base=\"\"..., iov_len=4096}], 1, 8192) = 4096\n\
                    8<session> pread64(13</d/index/history>, \"\"..., 4096, 0) = 4096\n\
                    7<session> pread64(14</d/articles/B>, <unfinished ...>\n\
                    8<session> read(9</d/articles2/B>, \"\"..., 1) = 1\n\
                    7<session> <... pread64 resumed>\"\"..., 4096, 0) = 4096\n\
                    7<session> preadv2(12</d/articles/A>, [...], 1, 64, RWF_NOWAIT) = -1 EAGAIN (Resource temporarily unavailable)\n\
                    7<session> preadv2(12</d/articles/A>, <unfinished ...>\n\
                    7<session> <... preadv2 resumed>[...], 1, 64, RWF_NOWAIT) = -1 EAGAIN (Resource temporarily unavailable)\n\
                    8<session> <... preadv2 resumed>[...], 1, 64, 0) = 64\n\
                    9<checkpoint> pread64(23</d/articles/B>, \"\"..., 778240, 139264) = 778240\n\
                    9<checkpoint> preadv2(23</d/articles/A>, <unfinished ...>\n\
                    9<checkpoint> <... preadv2 resumed>[...], 1, 64, 0) = 64\n";
        assert_eq!(counted(said, Path::new("/d/articles")), 2);
        assert_eq!(counted(said, Path::new("/e")), 0);
    }
}
