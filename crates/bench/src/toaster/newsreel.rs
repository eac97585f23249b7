//! This program as it is measured: a server on a spool, fed by `newsreel rnews`, emptied by `newsreel expire`.
//!
//! It is started for each pass with its clock half a day further, so that age says which pass an article came in. What goes out goes to a
//! server that does nothing: the feed's delay keeps everything back, and is made shorter for the phase, so that exactly the articles
//! of the pass before are due.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use newsreel_host::OpenMode;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::args::{BATCH_EVERY, PASS_SECS, RETENTION, ToasterArgs};
use super::feed::Batches;
use super::run::Sent;
use super::subject::{Subject, Taken};
use crate::error::Error;
use crate::load::Machine;
use crate::null::{NullArgs, NullServer};
use crate::rivals::{CommandRival, NO_FIGURES, Rival as _};
use crate::storage::Method;
use crate::usenetfs::volume::told;

/// The peer that takes everything.
const SINK: &str = "sink";
/// A feed from which nothing comes for so long has sent what it had.
const QUIET: Duration = Duration::from_secs(10);
const LOOK_AFTER: Duration = Duration::from_millis(1);
/// Until then nothing goes out.
const DELAY_LONG: &str = "30d";

/// Where it lies and what it stores by.
#[derive(Debug)]
pub(super) struct Newsreel<'a> {
    args: &'a ToasterArgs,
    machine: Machine<'a>,
    /// The directory of server, batches and configuration.
    home: PathBuf,
    incoming: PathBuf,
    /// The part of the configuration that says how articles are stored.
    storage: String,
    sink: NullServer,
    server: Option<(CommandRival, u32)>,
    report: Value,
}

impl<'a> Newsreel<'a> {
    /// One whose articles lie in a directory of their own.
    pub(super) fn new(
        args: &'a ToasterArgs,
        machine: Machine<'a>,
        method: Method,
        (home, articles): (&Path, &Path),
        buffers_octets: u64,
    ) -> Result<Self, Error> {
        let incoming = home.join("incoming");
        machine.disk.create_dir_all(&incoming)?;
        machine.disk.create_dir_all(&home.join("server"))?;
        Ok(Self {
            args,
            machine,
            home: home.to_path_buf(),
            incoming,
            storage: method.config(buffers_octets, Some(articles)),
            sink: NullServer::bind(&NullArgs::new((Ipv4Addr::LOCALHOST, 0).into()))?,
            server: None,
            report: Value::Null,
        })
    }

    fn spool(&self) -> PathBuf {
        self.home.join("server/spool")
    }

    /// Writes the configuration; what goes out waits for so long.
    fn configure(&self, delay: &str) -> Result<(), Error> {
        let keep_secs = u64::from(RETENTION) * PASS_SECS - PASS_SECS / 2;
        let sink = self.sink.address()?;
        let text = format!(
            "{NO_FIGURES}[articles]\nage_s_max = 0\n[control]\ncancels = \"all\"\n[scrub]\noctets_per_s = 0\n[expiry]\nrows_per_s = 0\n\
             [engine]\nlog_keep_octets = \"1TiB\"\n{}[[expire]]\ngroups = \"*\"\nkeep_s = {keep_secs}\n\
             [[peer]]\nname = \"{SINK}\"\naddress = \"{sink}\"\n[[peer.feed]]\nname = \"all\"\ngroups = \"*\"\ndelay_s = \"{delay}\"\n",
            self.storage,
        );
        let file = self
            .machine
            .disk
            .open(&self.home.join("config"), OpenMode::CreateOrOpen)?;
        file.set_len(0)?;
        Ok(file.write_at(text.as_bytes(), 0)?)
    }

    /// Runs one of the program's commands on the spool.
    fn tell(&self, words: &[&str], files: &[PathBuf]) -> Result<Vec<u8>, Error> {
        let mut command = Command::new(&self.args.program);
        command.args(words).arg("--spool").arg(self.spool());
        told(command.args(files), "")
    }

    fn tell_json(&self, words: &[&str], files: &[PathBuf]) -> Result<Value, Error> {
        let said = self.tell(words, files)?;
        serde_json::from_slice(&said).map_err(|error| Error::Program {
            program: format!("newsreel {}", words.join(" ")),
            why: error.to_string(),
        })
    }

    /// Has the feed send what is due, and waits until so many articles arrived or nothing comes any more.
    fn send(&self, articles: u64) -> Result<Sent, Error> {
        let clock = self.machine.clock;
        let before = self.sink.taken();
        let begin = clock.monotonic();
        self.configure(&format!("{}s", PASS_SECS / 2))?;
        let pid = self.server.as_ref().map_or(0, |(_, pid)| *pid);
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // One that has ended is noticed by what it sends.
            let _ = kill_process(pid, Signal::HUP);
        }
        let (mut seen, mut last) = (0, begin);
        while seen < articles && clock.monotonic().saturating_sub(last) < QUIET {
            std::thread::sleep(LOOK_AFTER);
            let now = self.sink.taken() - before;
            if now > seen {
                (seen, last) = (now, clock.monotonic());
            }
        }
        Ok(Sent {
            articles: seen,
            seconds: last.saturating_sub(begin).as_secs_f64(),
        })
    }
}

impl Subject for Newsreel<'_> {
    fn incoming(&self) -> &Path {
        &self.incoming
    }

    fn begin(&mut self, pass: u32) -> Result<u32, Error> {
        self.configure(DELAY_LONG)?;
        let clock = self.args.base_time_secs() + u64::from(pass - 1) * PASS_SECS;
        let (config, clock) = (
            self.home.join("config").display().to_string(),
            clock.to_string(),
        );
        let program = self.args.program.display().to_string();
        let own = CommandRival::newsreel(&program);
        let mut own = own.with_words(&["--config", &config, "--clock", &clock]);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.args.port));
        let running = own.start(
            &self.home.join("server"),
            address,
            &self.home.join("groups"),
        )?;
        self.server = Some((own, running.pid));
        Ok(running.pid)
    }

    fn unbatch(&mut self, batches: &Batches) -> Result<(), Error> {
        self.report = self.tell_json(&["rnews", "--json"], &batches.files)?;
        Ok(())
    }

    fn taken(&mut self, batches: &Batches) -> Result<Taken, Error> {
        for file in &batches.files {
            self.machine.disk.remove(file)?;
        }
        let count = |name: &str| self.report[name].as_u64().unwrap_or(0);
        Ok(Taken {
            accepted: count("accepted"),
            refused: count("refused"),
            rejected: count("rejected"),
            deferred: count("deferred"),
        })
    }

    fn batch(&mut self, _pass: u32, articles: u64) -> Result<Sent, Error> {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| self.sink.serve(&stop));
            let sent = self.send(articles);
            stop.store(true, Ordering::Relaxed);
            serving.join().map_err(|_| Error::WorkerLost)??;
            sent
        })
    }

    fn look(&mut self, _pass: u32) -> Result<(), Error> {
        Ok(())
    }

    fn expire(&mut self, _pass: u32) -> Result<u64, Error> {
        let report = self.tell_json(&["expire", "--json"], &[])?;
        Ok(report["articles"].as_u64().unwrap_or(0))
    }

    fn end(&mut self, pass: u32) -> Result<(), Error> {
        // What is to be sent in a batch phase begins with the next pass.
        if pass % BATCH_EVERY == BATCH_EVERY - 2 {
            self.tell(&["peer", "drop-backlog", SINK], &[])?;
        }
        match self.server.take() {
            Some((mut server, _)) => server.stop(),
            None => Ok(()),
        }
    }

    fn batch_is(&self) -> &'static str {
        "an outgoing feed to a server that does nothing"
    }
}
