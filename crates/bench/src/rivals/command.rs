//! A server that is one program: newsreel itself, another build of it, the do-nothing server.
//!
//! Invariant: the process is waited for before its directory goes; it is asked to end by SIGTERM and
//! killed only when it does not.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{Rival, Running};
use crate::client::connect::Opened;
use crate::error::Error;

/// A server may take so long to answer, and to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const NAP: Duration = Duration::from_millis(20);

/// A server started by a command line, in which `{dir}`, `{address}` and `{groups}` stand for its
/// directory, the address to listen on and the file with the names of the groups.
#[derive(Debug)]
pub struct CommandRival {
    name: String,
    serve: Vec<String>,
    prepare: Option<Vec<String>>,
    child: Option<Child>,
}

impl CommandRival {
    /// `serve` runs in the foreground; `prepare`, if there is one, is run once it answers.
    pub fn new(name: &str, serve: &[&str], prepare: Option<&[&str]>) -> Self {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Self {
            name: name.to_owned(),
            serve: owned(serve),
            prepare: prepare.map(owned),
            child: None,
        }
    }

    /// newsreel itself, with its defaults: the program's path.
    pub fn newsreel(program: &str) -> Self {
        let serve = [
            program,
            "serve",
            "--spool",
            "{dir}/spool",
            "--listen",
            "{address}",
        ];
        let prepare = [
            program,
            "group",
            "import",
            "{groups}",
            "--spool",
            "{dir}/spool",
        ];
        Self::new("newsreel", &serve, Some(&prepare))
    }

    /// The same with more words behind what serves.
    #[must_use]
    pub fn with_words(mut self, words: &[&str]) -> Self {
        self.serve.extend(words.iter().map(|&word| word.to_owned()));
        self
    }

    /// The same where the configuration says where it listens: `--listen` leaves no address for TLS.
    #[must_use]
    pub fn listening_as_configured(mut self) -> Self {
        self.serve
            .retain(|word| word != "--listen" && word != "{address}");
        self
    }

    /// The same where nothing is to be prepared: it was before.
    #[must_use]
    pub fn unprepared(mut self) -> Self {
        self.prepare = None;
        self
    }
}

impl Rival for CommandRival {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(
        &mut self,
        directory: &Path,
        address: SocketAddr,
        groups: &Path,
    ) -> Result<Running, Error> {
        let filled = |words: &[String]| -> Vec<String> {
            let fill = |word: &String| {
                word.replace("{dir}", &directory.display().to_string())
                    .replace("{address}", &address.to_string())
                    .replace("{groups}", &groups.display().to_string())
            };
            words.iter().map(fill).collect()
        };
        let mut serve = command(&filled(&self.serve))?;
        let child = serve.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let child = child.map_err(|error| failed(&self.serve, &error.to_string()))?;
        let pid = child.id();
        self.child = Some(child);
        self.wait_until_it_answers(address)?;
        if let Some(prepare) = &self.prepare {
            let done = command(&filled(prepare))?.stdin(Stdio::null()).output();
            let done = done.map_err(|error| failed(prepare, &error.to_string()))?;
            if !done.status.success() {
                return Err(failed(
                    prepare,
                    String::from_utf8_lossy(&done.stderr).trim(),
                ));
            }
        }
        Ok(Running { address, pid })
    }

    fn stop(&mut self) -> Result<(), Error> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
        let mut waited = Duration::ZERO;
        while waited < PATIENCE {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return Ok(());
            }
            std::thread::sleep(NAP);
            waited += NAP;
        }
        let ended = child.kill().and_then(|()| child.wait());
        ended
            .map(|_| ())
            .map_err(|error| failed(&self.serve, &error.to_string()))?;
        Err(failed(
            &self.serve,
            "it did not end when asked to, and was killed",
        ))
    }
}

impl CommandRival {
    /// Kills it (SIGKILL), and waits for its end.
    pub(super) fn kill(&mut self) -> Result<(), Error> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        let ended = child.kill().and_then(|()| child.wait());
        ended
            .map(|_| ())
            .map_err(|error| failed(&self.serve, &error.to_string()))
    }

    fn wait_until_it_answers(&mut self, address: SocketAddr) -> Result<(), Error> {
        let mut waited = Duration::ZERO;
        while Opened::open(address, false).is_err() {
            let ended = self
                .child
                .as_mut()
                .and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = ended {
                self.child = None;
                return Err(failed(
                    &self.serve,
                    &format!("it ended at once with {status}"),
                ));
            }
            if waited > PATIENCE {
                return Err(failed(&self.serve, "it does not answer"));
            }
            std::thread::sleep(NAP);
            waited += NAP;
        }
        Ok(())
    }
}

impl Drop for CommandRival {
    fn drop(&mut self) {
        // Whatever went wrong has been reported; here only the process must not stay.
        let _ = self.stop();
    }
}

fn command(words: &[String]) -> Result<Command, Error> {
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| failed(words, "no program"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

fn failed(words: &[String], why: &str) -> Error {
    Error::Program {
        program: words.join(" "),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_ends_at_once_is_reported() {
        let mut rival = CommandRival::new("x", &["true", "{dir}"], None);
        let nowhere = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let error = rival
            .start(Path::new("/d"), nowhere, Path::new("/g"))
            .unwrap_err();
        assert!(error.to_string().contains("it ended at once"), "{error}");
        let mut rival = CommandRival::new("x", &["/no/such/program"], None);
        assert!(
            rival
                .start(Path::new("/d"), nowhere, Path::new("/g"))
                .is_err()
        );
        assert!(rival.stop().is_ok());
    }
}
