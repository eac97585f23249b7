//! INN with an article a file, as it is measured: `rnews -U`, `batcher`, and its articles removed as the paper removed them.
//!
//! What is to go is known by when its file was written, since INN's expiry goes by the clock. As in the paper the files alone are removed:
//! history and overview are not touched, and finding out what goes is not timed; sorting is.
#![expect(
    clippy::disallowed_methods,
    reason = "the files of a server that is compared are no spool of ours"
)]

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::args::{RETENTION, ToasterArgs};
use super::feed::Batches;
use super::run::Sent;
use super::subject::{Subject, Taken};
use crate::error::Error;
use crate::load::Machine;
use crate::rivals::{Inn, Rival as _, Running};
use crate::usenetfs::volume::told;

/// Files are told apart by when they were written: no pass begins in the moment in which another ends.
const APART: Duration = Duration::from_millis(50);

/// In which order articles are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// By path, by INN's `fastrm`.
    Sorted,
    /// In that of the history, one call for each.
    History,
}

/// INN on a site.
#[derive(Debug)]
pub(super) struct InnSubject<'a> {
    args: &'a ToasterArgs,
    machine: Machine<'a>,
    programs: &'a Path,
    inn: Inn,
    home: PathBuf,
    articles: PathBuf,
    incoming: PathBuf,
    order: Order,
    has_links: bool,
    running: Option<Running>,
    known: u64,
    /// When each pass was over, in nanoseconds since 1970.
    ends: Vec<i128>,
    /// What goes: when it came, and where it lies.
    going: Vec<(i128, PathBuf)>,
}

impl<'a> InnSubject<'a> {
    pub(super) fn new(
        args: &'a ToasterArgs,
        machine: Machine<'a>,
        programs: &'a Path,
        (home, articles): (&Path, &Path),
        order: Order,
        has_links: bool,
    ) -> Self {
        Self {
            args,
            machine,
            programs,
            inn: Inn::new(programs, articles),
            home: home.to_path_buf(),
            articles: articles.to_path_buf(),
            incoming: home.join("inn/spool/incoming"),
            order,
            has_links,
            running: None,
            known: 0,
            ends: Vec::new(),
            going: Vec::new(),
        }
    }

    fn now_ns(&self) -> i128 {
        let now = self.machine.clock.now();
        i128::from(now.secs) * 1_000_000_000 + i128::from(now.nanos)
    }

    fn remove_sorted(&mut self) -> Result<(), Error> {
        self.going.sort_unstable_by(|a, b| a.1.cmp(&b.1));
        let lines = self.going.iter();
        let names: String = lines
            .map(|(_, path)| format!("{}\n", path.display()))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        // It must not be promised that there are no links where there are.
        let promises: &[&str] = if self.has_links { &[] } else { &["-u"] };
        let mut command = Command::new(self.programs.join("fastrm"));
        command.arg("-e").args(promises).args(["-s", "/"]);
        told(&mut command, &names).map(drop)
    }

    fn remove_by_age(&mut self) -> Result<(), Error> {
        self.going.sort_unstable();
        for (_, path) in &self.going {
            fs::remove_file(path).map_err(|source| failed("remove", path, source))?;
        }
        Ok(())
    }
}

impl Subject for InnSubject<'_> {
    fn incoming(&self) -> &Path {
        &self.incoming
    }

    fn begin(&mut self, _pass: u32) -> Result<u32, Error> {
        if let Some(running) = self.running {
            return Ok(running.pid);
        }
        let directory = self.home.join("inn");
        self.machine.disk.create_dir_all(&directory)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.args.port));
        let groups = self.home.join("groups");
        let running = self.inn.start(&directory, address, &groups)?;
        self.running = Some(running);
        self.inn.name_outgoing()?;
        Ok(running.pid)
    }

    fn receive(&self, batches: &Batches) -> Result<(), Error> {
        // Only of its user's it opens them.
        let failed = |source| failed("give to INN", &self.incoming, source);
        let owner = fs::metadata(&self.incoming).map_err(failed)?;
        let (user, group) = (Some(owner.uid()), Some(owner.gid()));
        let mut files = batches.files.iter();
        files.try_for_each(|file| chown(file, user, group).map_err(failed))
    }

    fn unbatch(&mut self, _batches: &Batches) -> Result<(), Error> {
        self.inn.rnews()
    }

    fn taken(&mut self, batches: &Batches) -> Result<Taken, Error> {
        let all = self.inn.articles()?;
        let accepted = all - self.known;
        self.known = all;
        let left = self.machine.disk.list(&self.incoming)?;
        let left = left
            .iter()
            .filter(|entry| !entry.name.starts_with(['b', 't']));
        if left.count() > 0 {
            return Err(Error::Program {
                program: "rnews".to_owned(),
                why: format!("batches are left in {}", self.incoming.display()),
            });
        }
        self.inn
            .put_outgoing_aside(&format!("pass{}", self.ends.len() + 1))?;
        std::thread::sleep(APART);
        self.ends.push(self.now_ns());
        std::thread::sleep(APART);
        Ok(Taken {
            accepted,
            rejected: batches.articles.saturating_sub(accepted),
            ..Taken::default()
        })
    }

    fn batch(&mut self, pass: u32, _articles: u64) -> Result<Sent, Error> {
        let clock = self.machine.clock;
        let begin = clock.monotonic();
        let articles = self.inn.batch(&format!("pass{}", pass - 1))?;
        Ok(Sent {
            articles,
            seconds: clock.monotonic().saturating_sub(begin).as_secs_f64(),
        })
    }

    fn look(&mut self, pass: u32) -> Result<(), Error> {
        self.going.clear();
        let Some(oldest) = pass.checked_sub(RETENTION + 1) else {
            return Ok(());
        };
        let end = self.ends.get(oldest as usize).copied().unwrap_or(0);
        let mut folders = vec![self.articles.clone()];
        while let Some(folder) = folders.pop() {
            let failed = |source| failed("look into", &folder, source);
            for entry in fs::read_dir(&folder).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                let is_article = path
                    .file_name()
                    .and_then(|name| name.to_str())
                    .is_some_and(|name| name.bytes().all(|octet| octet.is_ascii_digit()));
                let facts = fs::symlink_metadata(&path).map_err(failed)?;
                if is_article && !facts.is_dir() {
                    let came = i128::from(facts.mtime()) * 1_000_000_000;
                    let came = came + i128::from(facts.mtime_nsec());
                    if came <= end {
                        self.going.push((came, path));
                    }
                } else if fs::metadata(&path).is_ok_and(|facts| facts.is_dir()) {
                    folders.push(path);
                }
            }
        }
        Ok(())
    }

    fn expire(&mut self, _pass: u32) -> Result<u64, Error> {
        match self.order {
            Order::Sorted => self.remove_sorted()?,
            Order::History => self.remove_by_age()?,
        }
        Ok(self.going.len() as u64)
    }

    fn end(&mut self, pass: u32) -> Result<(), Error> {
        match pass == self.args.passes {
            true => self.inn.stop(),
            false => Ok(()),
        }
    }

    fn batch_is(&self) -> &'static str {
        "INN's batcher, to /dev/null"
    }
}

fn failed(what: &str, path: &Path, source: std::io::Error) -> Error {
    let what = format!("cannot {what} {}", path.display());
    Error::Stream { what, source }
}
