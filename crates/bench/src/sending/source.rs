//! The server that sends: one of ours with its neighbours in the configuration.
//!
//! What is to wait is held back by the delay of its feeds; they send when it is taken away and the configuration read anew.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use newsreel_host::OpenMode;
use rustix::process::{Pid, Signal, kill_process};

use super::SendingArgs;
use crate::corpus::{self, Corpus, ListForm};
use crate::error::Error;
use crate::load::{LoadArgs, Machine};
use crate::measure::process::{ServerCost, ServerLook};
use crate::removal;
use crate::rivals::{CommandRival, NO_FIGURES, Rival as _};
use crate::storage::Method;
use crate::usenetfs::volume::{forget_everything, told};

/// A feed from which nothing comes for so long has sent what it had.
const QUIET: Duration = Duration::from_secs(20);
const LOOK_AFTER: Duration = Duration::from_millis(1);
const ASK_AFTER: Duration = Duration::from_millis(40);
/// Until then nothing goes out.
const DELAY_LONG: &str = "30d";
/// Room of buffers for an article, and besides: what comes is to overwrite nothing.
const OCTETS_AN_ARTICLE: u64 = 4 << 10;
const OCTETS_BESIDE: u64 = 128 << 20;

/// How its feeds are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Feeds<'a> {
    /// Where the neighbours listen.
    pub(super) peers: &'a [SocketAddr],
    pub(super) connections: usize,
    /// A backlog goes out by group and number.
    pub(super) by_group: bool,
}

/// The server, at work.
#[derive(Debug)]
pub(super) struct Source<'a> {
    args: &'a SendingArgs,
    machine: Machine<'a>,
    home: PathBuf,
    storage: String,
    feeds: Feeds<'a>,
    server: CommandRival,
    pid: u32,
}

/// What sending took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Took {
    pub(super) seconds: f64,
    pub(super) cost: ServerCost,
}

impl<'a> Source<'a> {
    /// Starts one that stores by a method, in a directory of its own; with `waiting` nothing goes out yet.
    pub(super) fn start(
        args: &'a SendingArgs,
        machine: Machine<'a>,
        method: Method,
        feeds: Feeds<'a>,
        (home, groups, waiting): (&Path, &Path, bool),
    ) -> Result<Self, Error> {
        machine.disk.create_dir_all(&home.join("server"))?;
        let octets = args.articles.max(args.fresh.0) * OCTETS_AN_ARTICLE + OCTETS_BESIDE;
        let config = home.join("config").display().to_string();
        let server = CommandRival::newsreel(&args.program.display().to_string());
        let mut source = Self {
            args,
            machine,
            home: home.to_path_buf(),
            storage: method.config(octets, None),
            feeds,
            server: server.with_words(&["--config", &config]),
            pid: 0,
        };
        source.configure(if waiting { DELAY_LONG } else { "0s" })?;
        source.serve(groups)?;
        Ok(source)
    }

    fn serve(&mut self, groups: &Path) -> Result<(), Error> {
        let running = self
            .server
            .start(&self.home.join("server"), self.address(), groups)?;
        self.pid = running.pid;
        Ok(())
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.args.port).into()
    }

    /// Writes the configuration; what goes out waits for so long.
    fn configure(&self, delay: &str) -> Result<(), Error> {
        let mut text = format!(
            "{NO_FIGURES}[articles]\nage_s_max = 0\n[scrub]\noctets_per_s = 0\n[expiry]\nrows_per_s = 0\n[engine]\npath_identity = \"source.test\"\nlog_keep_octets = \"1TiB\"\n{}",
            self.storage
        );
        for (n, address) in self.feeds.peers.iter().enumerate() {
            text += &format!(
                "[[peer]]\nname = \"sink{n}.test\"\naddress = \"{address}\"\n[[peer.feed]]\nname = \"all\"\ngroups = \"*\"\n\
                 delay_s = \"{delay}\"\nconnections = {}\nby_group = {}\n",
                self.feeds.connections, self.feeds.by_group
            );
        }
        write(&self.home.join("config"), &text, self.machine)
    }

    /// Feeds it all articles of a corpus, so many a second.
    pub(super) fn take(&self, corpus: &Corpus, rate: Option<f64>) -> Result<(), Error> {
        let load = LoadArgs {
            progress: self.args.progress,
            rate,
            ..LoadArgs::new(self.address())
        };
        removal::feed_all(load, corpus, self.machine)
    }

    /// Nothing of it is in memory: what it has to read comes from the disk.
    pub(super) fn cool(&mut self, groups: &Path) -> Result<(), Error> {
        self.server.stop()?;
        self.machine.disk.sync_file_system(&self.home)?;
        self.serve(groups)?;
        self.rest();
        self.machine.disk.sync_file_system(&self.home)?;
        forget_everything()
    }

    /// Waits until it does nothing more.
    pub(super) fn rest(&self) {
        ServerLook::wait_for_rest(|| self.look());
    }

    /// What it has spent until now.
    pub(super) fn look(&self) -> ServerLook {
        ServerLook::take(self.machine.disk, self.pid)
    }

    /// Lets go out what waits, until so many have arrived.
    pub(super) fn release(&self, arrived: &dyn Fn() -> u64, articles: u64) -> Result<Took, Error> {
        self.rest();
        let (before, had) = (self.look(), arrived());
        let begin = self.machine.clock.monotonic();
        self.configure("0s")?;
        if let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
            // One that has ended is noticed by what it sends.
            let _ = kill_process(pid, Signal::HUP);
        }
        let last = self.until(arrived, had + articles)?;
        Ok(Took {
            seconds: last.saturating_sub(begin).as_secs_f64(),
            cost: self.look().since(&before),
        })
    }

    /// Waits until so many have arrived; when the last did.
    pub(super) fn until(
        &self,
        arrived: &dyn Fn() -> u64,
        articles: u64,
    ) -> Result<Duration, Error> {
        let clock = self.machine.clock;
        let (mut seen, mut last) = (0, clock.monotonic());
        while seen < articles {
            std::thread::sleep(LOOK_AFTER);
            let (now, at) = (arrived(), clock.monotonic());
            if now > seen {
                (seen, last) = (now, at);
            } else if at.saturating_sub(last) > QUIET {
                return Err(Error::Program {
                    program: self.args.program.display().to_string(),
                    why: format!("{seen} articles arrived, {articles} should"),
                });
            }
        }
        Ok(last)
    }

    /// How many articles its neighbours have, as it says itself: what was offered twice is refused the second time.
    ///
    /// Asked now and then: each time a program starts, and takes of the processors that are measured.
    pub(super) fn arrived(&self) -> u64 {
        std::thread::sleep(ASK_AFTER);
        let mut command = Command::new(&self.args.program);
        command.args(["peer", "list", "--json", "--spool"]);
        let said = told(command.arg(self.home.join("server/spool")), "");
        let said: serde_json::Value =
            serde_json::from_slice(&said.unwrap_or_default()).unwrap_or_default();
        let feeds = said["feeds"].as_array().into_iter().flatten();
        let counts = feeds.flat_map(|feed| [&feed["accepted"], &feed["refused"]]);
        counts.filter_map(serde_json::Value::as_u64).sum()
    }

    /// Ends it.
    pub(super) fn stop(mut self) -> Result<(), Error> {
        self.server.stop()
    }
}

/// Writes a file whole.
pub(super) fn write(at: &Path, text: &str, machine: Machine<'_>) -> Result<(), Error> {
    let file = machine.disk.open(at, OpenMode::CreateOrOpen)?;
    file.set_len(0)?;
    Ok(file.write_at(text.as_bytes(), 0)?)
}

/// Writes the names of a corpus' groups, for a server to begin with.
pub(super) fn write_groups(corpus: &Corpus, at: &Path, machine: Machine<'_>) -> Result<(), Error> {
    let names = corpus.groups().iter().map(String::as_str);
    write(at, &corpus::list(names, ListForm::Names), machine)
}
