//! A server that is a program for each reader, whose connection is its standard input and output, as inetd starts it; and programs that
//! prepare one.
//!
//! Invariant: a program started here is killed, with all that it started, when its time is over or its server is stopped; none is left
//! when that has returned.
#![expect(
    clippy::disallowed_methods,
    reason = "what a program of others says goes into a file of its own"
)]

use std::fs::{File, read};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, scope, sleep, spawn};
use std::time::Duration;

use newsreel_host::{Clock as _, RealClock};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::Error;

/// Whether a program has ended, or its time, is looked at so often: at first, as many end at once, and later.
const NAPS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// Lines of what a program said last that an error shows.
const SAID_LINES: usize = 3;

/// A time in which something is to be done.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    clock: RealClock,
    whole: Duration,
}

impl Limit {
    /// It begins now.
    pub(crate) fn new(whole: Duration) -> Self {
        Self {
            clock: RealClock::new(),
            whole,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.clock.monotonic() >= self.whole
    }
}

/// A program, what it is told, and what its environment has besides.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    words: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl Program {
    pub(crate) fn new(program: &Path, arguments: &[&str]) -> Self {
        let given = arguments.iter().map(|&word| word.to_owned());
        Self {
            words: [program.display().to_string()]
                .into_iter()
                .chain(given)
                .collect(),
            environment: Vec::new(),
        }
    }

    /// The same with this in its environment.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.environment.push((name, value));
        self
    }

    /// Runs it to its end, which must be a good one and come in time; `log` gets what it says.
    pub(crate) fn run(&self, log: &Path, limit: &Limit) -> Result<(), Error> {
        let said = || -> io::Result<[Stdio; 2]> {
            let file = File::create(log)?;
            Ok([file.try_clone()?.into(), file.into()])
        };
        let [out, err] = said().map_err(|error| self.failed(&error.to_string()))?;
        let child = self.start(Stdio::null(), out, err);
        let mut child = child.map_err(|error| self.failed(&error.to_string()))?;
        match wait(&mut child, &|| limit.is_over()) {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(status)) => {
                let said = read(log).unwrap_or_default();
                let said = last(&String::from_utf8_lossy(&said));
                Err(self.failed(&format!("it ended with {status}: {said}")))
            }
            Ok(None) => {
                let seconds = limit.whole.as_secs();
                Err(self.failed(&format!("it was not done in {seconds} s")))
            }
            Err(error) => Err(self.failed(&error.to_string())),
        }
    }

    /// Starts it on a connection.
    fn on(&self, connection: TcpStream) -> io::Result<Child> {
        let out = connection.try_clone()?;
        self.start(
            OwnedFd::from(connection).into(),
            OwnedFd::from(out).into(),
            Stdio::null(),
        )
    }

    fn start(&self, input: Stdio, out: Stdio, err: Stdio) -> io::Result<Child> {
        let (program, arguments) = self
            .words
            .split_first()
            .ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(input).stdout(out).stderr(err);
        let environment = self.environment.iter();
        command.envs(environment.map(|(name, value)| (name, value)));
        command.process_group(0).spawn()
    }

    fn failed(&self, why: &str) -> Error {
        Error::Program {
            program: self.words.join(" "),
            why: why.to_owned(),
        }
    }
}

/// The last lines of what a program said, as one.
fn last(said: &str) -> String {
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.collect();
    let from = lines.len().saturating_sub(SAID_LINES);
    lines.get(from..).unwrap_or_default().join("; ")
}

/// Waits for its end; nothing: the time was over, and it was killed with what it started.
fn wait(child: &mut Child, is_over: &dyn Fn() -> bool) -> io::Result<Option<ExitStatus>> {
    let [mut nap, longest] = NAPS;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if is_over() {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // They may have ended by themselves.
                let _ = kill_process_group(group, Signal::KILL);
            }
            child.wait()?;
            return Ok(None);
        }
        sleep(nap);
        nap = longest.min(nap * 2);
    }
}

/// A server at work.
#[derive(Debug)]
pub(crate) struct Inetd {
    address: SocketAddr,
    is_stopped: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Inetd {
    /// Serves on a free port of loopback until it is dropped or the time is over.
    pub(crate) fn start(program: Program, limit: Limit) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::EventLoop)?;
        let address = listener.local_addr().map_err(Error::EventLoop)?;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let is_stopped_there = Arc::clone(&is_stopped);
        let accepting = spawn(move || {
            let is_over = || is_stopped_there.load(Ordering::Acquire) || limit.is_over();
            serve(&listener, &program, &is_over);
        });
        Ok(Self {
            address,
            is_stopped,
            accepting: Some(accepting),
        })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

fn serve(listener: &TcpListener, program: &Program, is_over: &(dyn Fn() -> bool + Sync)) {
    scope(|readers| {
        for connection in listener.incoming() {
            if is_over() {
                return;
            }
            // Where none can be started the reader sees a connection that ends, and tells it.
            let Ok(mut child) = connection.and_then(|connection| program.on(connection)) else {
                continue;
            };
            readers.spawn(move || {
                // It is gone either way, and how it ended the reader has seen.
                let _ = wait(&mut child, is_over);
            });
        }
    });
}

impl Drop for Inetd {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Release);
        // Wakes who accepts; nobody may listen any longer.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::connect::Opened;

    fn shell(script: &str) -> Program {
        Program::new(Path::new("/bin/sh"), &["-c", script])
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn each_reader_has_a_program_and_none_is_left() {
        let script = r#"printf '200\r\n'; while read -r word; do printf "211 $MORE $$\r\n"; done"#;
        let program = shell(script).with("MORE", "here".to_owned());
        let server = Inetd::start(program, Limit::new(LONG)).unwrap();
        let mut readers = [(); 2].map(|()| Opened::open(server.address(), false).unwrap());
        let told = readers.each_mut().map(|reader| {
            let line = reader.command("GROUP x", &[211]).unwrap();
            String::from_utf8(line).unwrap()
        });
        assert!(told[0].starts_with("211 here "), "{told:?}");
        assert_ne!(told[0], told[1]);
        drop(server);
        for reader in &mut readers {
            reader.command("GROUP x", &[211]).unwrap_err();
        }
    }

    #[test]
    fn a_program_says_why_it_failed_and_ends_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let run = |script: &str, limit| shell(script).run(&log, &Limit::new(limit));
        run("exit 0", LONG).unwrap();
        let failed = run("echo one; echo no server >&2; exit 3", LONG).unwrap_err();
        assert!(
            failed.to_string().ends_with("3: one; no server"),
            "{failed}"
        );
        let late = run("sleep 600 & sleep 600", Duration::ZERO).unwrap_err();
        assert!(
            late.to_string().ends_with("it was not done in 0 s"),
            "{late}"
        );
    }
}
