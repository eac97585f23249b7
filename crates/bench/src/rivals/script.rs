//! A server that a script starts and stops: INN, which is many programs and files.
//!
//! The script is called `SCRIPT start DIR PORT METHOD` (`cnfs`, `tradspool`, `timehash`) and `SCRIPT stop DIR`, with the settings in its
//! environment: `ACTIVE` (a file of group names), `OVMETHOD`, `HISTSIZE` (entries), `CNFSSIZE` (MiB),
//! `CNFSFILL` (how buffers are made), `MAXART` (octets). When `start` returns the server answers on 127.0.0.1:PORT and its process id is
//! in `DIR/run/innd.pid`.
//! Invariant: what was started is stopped by the same script in the same directory.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use newsreel_host::{RealDisk, read_whole};

use super::{Rival, Running};
use crate::error::Error;

/// INN, or what else a script starts.
#[derive(Debug)]
pub struct ScriptRival {
    name: String,
    script: PathBuf,
    method: String,
    environment: Vec<(String, String)>,
    started: Option<PathBuf>,
}

impl ScriptRival {
    /// INN with its cyclic buffers and its default overview, started by `script`.
    pub fn inn(script: PathBuf, history_entries: u64, buffers_mib: u64) -> Self {
        let settings = [
            ("OVMETHOD", "tradindexed".to_owned()),
            ("HISTSIZE", history_entries.to_string()),
            ("CNFSSIZE", buffers_mib.to_string()),
            ("MAXART", "2000000".to_owned()),
        ];
        Self {
            name: "inn".to_owned(),
            script,
            method: "cnfs".to_owned(),
            environment: settings
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            started: None,
        }
    }

    /// The same with another storage method, its buffers written out in full when they are made.
    #[must_use]
    pub fn with_method(mut self, method: &str) -> Self {
        method.clone_into(&mut self.method);
        let fill = ("CNFSFILL".to_owned(), "zero".to_owned());
        self.environment.push(fill);
        self.name = format!("inn {method}");
        self
    }

    /// The same without overview, as a server that only passes articles on.
    #[must_use]
    pub fn without_overview(mut self) -> Self {
        for (name, value) in &mut self.environment {
            if name == "OVMETHOD" {
                *value = "none".to_owned();
            }
        }
        "inn without overview".clone_into(&mut self.name);
        self
    }

    fn run(&self, arguments: &[&str], groups: Option<&Path>) -> Result<(), Error> {
        let failed = |why: String| Error::Program {
            program: format!("{} {}", self.script.display(), arguments.join(" ")),
            why,
        };
        let mut command = Command::new(&self.script);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(groups) = groups {
            command.env("ACTIVE", groups);
        }
        // Its standard error is ours: the server it leaves running keeps it open.
        let status = command
            .status()
            .map_err(|error| failed(error.to_string()))?;
        if status.success() {
            Ok(())
        } else {
            Err(failed(format!("it ended with {status}")))
        }
    }
}

impl Rival for ScriptRival {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(
        &mut self,
        directory: &Path,
        address: SocketAddr,
        groups: &Path,
    ) -> Result<Running, Error> {
        let (place, port) = (directory.display().to_string(), address.port().to_string());
        self.started = Some(directory.to_path_buf());
        self.run(&["start", &place, &port, &self.method], Some(groups))?;
        let path = directory.join("run/innd.pid");
        let text = read_whole(&RealDisk, &path, 64)?;
        let pid = String::from_utf8_lossy(&text)
            .trim()
            .parse()
            .map_err(|_| Error::Program {
                program: self.script.display().to_string(),
                why: format!("{} holds no process id", path.display()),
            })?;
        Ok(Running { address, pid })
    }

    fn stop(&mut self) -> Result<(), Error> {
        match self.started.take() {
            Some(directory) => self.run(&["stop", &directory.display().to_string()], None),
            None => Ok(()),
        }
    }
}

impl Drop for ScriptRival {
    fn drop(&mut self) {
        // Whatever went wrong has been reported; here only the server must not stay.
        let _ = self.stop();
    }
}
