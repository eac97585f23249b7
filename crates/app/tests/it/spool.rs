//! A spool in a temporary directory with a configuration, and a server on it.
//!
//! A server that a test leaves behind is killed when it is dropped; every wait is bounded.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use newsreel_host::{RealDisk, read_whole, replace_file};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;

use crate::scale::binary;

/// How long a server may take to come up or to go away.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Two small buffers and a small log, so that a spool is made in no time.
const CONFIG: &str = r#"
[server]
spool = "spool"

[listen]
addresses = ["127.0.0.1:0"]

[articles]
age_s_max = 0

[log]
segment_octets = "1MiB"

[[buffer]]
name = "A"
octets = "8MiB"

[[buffer]]
name = "B"
octets = "8MiB"
"#;

pub(crate) struct Spool {
    folder: tempfile::TempDir,
}

impl Spool {
    /// A spool to be, with the usual configuration.
    pub(crate) fn new() -> Self {
        Self::with(CONFIG)
    }

    /// A spool to be, with this configuration.
    pub(crate) fn with(config: &str) -> Self {
        let spool = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        spool.configure(config);
        spool
    }

    /// The usual configuration with changes: each pair is a text and what it becomes.
    pub(crate) fn changed(changes: &[(&str, &str)]) -> String {
        let mut config = CONFIG.to_owned();
        for (old, new) in changes {
            assert!(config.contains(old), "{old:?} is not in the configuration");
            config = config.replace(old, new);
        }
        config
    }

    /// Writes another configuration.
    pub(crate) fn configure(&self, config: &str) {
        replace_file(&RealDisk, &self.config(), config.as_bytes()).unwrap();
    }

    /// Makes a certificate for this name, and its key, as `cert.pem` and `key.pem` beside the configuration.
    pub(crate) fn certify(&self, name: &str) {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        for (file, text) in [
            ("cert.pem", made.cert.pem()),
            ("key.pem", made.signing_key.serialize_pem()),
        ] {
            replace_file(&RealDisk, &self.folder().join(file), text.as_bytes()).unwrap();
        }
    }

    /// Where its server takes TLS, which is the second address it listens at.
    pub(crate) fn secure_address(&self) -> SocketAddr {
        let status = self.json(&["status"]);
        let secure = status["server"]["listening"][1].as_str();
        secure.unwrap().parse().unwrap()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder().join("newsreel.toml")
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder().join("spool")
    }

    /// Runs a command on this spool.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let mut command = newsreel();
        command.args(words).arg("--config").arg(self.config());
        command.output().unwrap()
    }

    /// Runs a command with this on its standard input; what it printed, or why it failed.
    pub(crate) fn piped(&self, words: &[&str], text: &str) -> Result<String, String> {
        let mut command = newsreel();
        command.args(words).arg("--config").arg(self.config());
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        drop(input);
        said(child.wait_with_output().unwrap())
    }

    /// Runs a command that must succeed; what it printed.
    pub(crate) fn text(&self, words: &[&str]) -> String {
        said(self.run(words)).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Runs a command that must succeed, with `--json`.
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let text = self.text(&[words, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error} in {text}"))
    }

    /// Runs a command that must fail; what it said.
    pub(crate) fn error(&self, words: &[&str]) -> String {
        let output = match words.first() {
            Some(&"serve") => self.serve_in_vain(words),
            _ => self.run(words),
        };
        match said(output) {
            Ok(text) => panic!("{words:?} should have failed, and said {text}"),
            Err(error) => error,
        }
    }

    /// Starts a server that is to refuse.
    fn serve_in_vain(&self, words: &[&str]) -> Output {
        let mut command = newsreel();
        command.args(words).arg("--config").arg(self.config());
        in_vain(command)
    }

    /// Starts a server and waits until it answers.
    pub(crate) fn serve(&self) -> Server {
        self.serve_with(&[])
    }

    /// Starts a server with more arguments.
    pub(crate) fn serve_with(&self, words: &[&str]) -> Server {
        let mut command = newsreel();
        command
            .arg("serve")
            .arg("--config")
            .arg(self.config())
            .args(words);
        Server::start(command, self.folder().join("log.txt"), |child| {
            let status = self.run(&["status", "--json"]);
            let status: Value = serde_json::from_slice(&status.stdout).ok()?;
            // An old server's socket may answer, or we may have looked offline.
            (status["server"]["pid"] == child.id()).then_some(status)
        })
    }

    /// A server's log so far.
    pub(crate) fn log(&self) -> String {
        let bytes = read_whole(&RealDisk, &self.folder().join("log.txt"), 64 << 20).unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

/// Starts a server that is to refuse; one that comes up after all is killed when its time is over.
pub(crate) fn in_vain(mut command: Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut waited = Duration::ZERO;
    while child.try_wait().unwrap().is_none() && waited < PATIENCE {
        std::thread::sleep(PAUSE);
        waited += PAUSE;
    }
    let ended = child.try_wait().unwrap();
    if ended.is_none() {
        child.kill().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert!(ended.is_some(), "{command:?} came up: {output:?}");
    output
}

/// A call of the binary under test, which reads no configuration but what it is given, whatever this machine has.
pub(crate) fn newsreel() -> Command {
    let mut command = Command::new(binary());
    command.env("NEWSREEL_CONFIG", "");
    command
}

/// Standard output of a success, or standard error of a failure.
pub(crate) fn said(output: Output) -> Result<String, String> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "a log file is not in a spool")]
    pub(crate) fn start(
        mut command: Command,
        log: PathBuf,
        mut status: impl FnMut(&Child) -> Option<Value>,
    ) -> Self {
        let file = std::fs::File::create(&log).unwrap();
        let mut child = command.stdin(Stdio::null()).stderr(file).spawn().unwrap();
        let mut waited = Duration::ZERO;
        loop {
            if let Some(status) = status(&child) {
                let address = status["server"]["listening"][0].as_str().unwrap();
                return Self {
                    address: address.parse().unwrap(),
                    child,
                };
            }
            let ended = child.try_wait().unwrap();
            if ended.is_some() || waited > PATIENCE {
                let log = read_whole(&RealDisk, &log, 1 << 20).unwrap();
                panic!(
                    "the server did not come up: {ended:?}\n{}",
                    String::from_utf8_lossy(&log)
                );
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let done = Command::new("kill")
            .args(["-s", name, &self.pid().to_string()])
            .status();
        assert!(done.unwrap().success(), "kill -s {name}");
    }

    /// Lets it write nothing any more, as a full disk does, until it has seen so: it cannot even log what is asked of it.
    pub(crate) fn forbid_writing(&self, spool: &Spool) {
        self.may_write(false);
        let mut held = 0;
        let mut waited = Duration::ZERO;
        // The first segment that fails is left for the next, if that was prepared.
        while held < 3 {
            assert!(waited < PATIENCE, "it goes on without writing");
            std::thread::sleep(PAUSE);
            waited += PAUSE;
            let group = spool.run(&["group", "add", "not.made"]);
            let failed = !group.status.success() && self.is_paused(spool);
            held = if failed { held + 1 } else { 0 };
        }
    }

    /// Lets it write again, until it takes articles.
    pub(crate) fn allow_writing(&self, spool: &Spool) {
        self.may_write(true);
        let mut waited = Duration::ZERO;
        while self.is_paused(spool) {
            assert!(waited < PATIENCE, "it does not go on");
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }

    fn is_paused(&self, spool: &Spool) -> bool {
        let status = spool.json(&["status"]);
        assert_eq!(status["server"]["pid"], self.pid());
        !status["paused"].is_null()
    }

    fn may_write(&self, may: bool) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        let limit = Rlimit {
            current: (!may).then_some(0),
            maximum: None,
        };
        prlimit(Some(pid.unwrap()), Resource::Fsize, limit).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> ExitStatus {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(waited < PATIENCE, "the server does not end");
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }

    /// Stops it as an administrator would; it must end well.
    pub(crate) fn stop(self) {
        self.signal("TERM");
        let status = self.wait();
        assert!(status.success(), "{status}");
    }

    /// Kills it at once.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
