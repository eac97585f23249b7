//! Where a measurement stands: natively or behind a mount, with blocks in memory or with nothing.
//!
//! Invariant: before every measurement all is written, and forgotten what its way says; with nothing in memory the file system and
//! the view are mounted anew for each, so that neither of them knows anything.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::directory::Directory;
use super::volume::{View, Volume, forget_names, told};
use crate::error::Error;
use crate::load::Machine;

/// How a directory is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    /// Through a mount.
    pub(super) mounted: bool,
    /// With nothing in memory; else nothing is known of names, and blocks are there.
    pub(super) cold: bool,
}

impl Way {
    /// Natively and mounted; both cold, too, if that is wanted.
    pub(super) fn all(cold: bool) -> Vec<Self> {
        let states = [false, true].into_iter().take(1 + usize::from(cold));
        let ways = states.flat_map(|cold| [false, true].map(|mounted| Self { mounted, cold }));
        ways.collect()
    }
}

/// What is there of a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'a> {
    /// The program that mounts.
    pub(super) program: &'a Path,
    /// For the view.
    pub(super) work: &'a Path,
    /// What is mounted: the directory lies in it, so that its own mark is seen as anybody's would.
    pub(super) volume: &'a Volume,
    /// The directory's name.
    pub(super) name: &'a str,
}

impl Site<'_> {
    /// Where the directory is natively.
    pub(super) fn native(&self) -> PathBuf {
        self.volume.at().join(self.name)
    }
}

/// A directory, opened. Closed before its view goes: fields are dropped in this order.
struct Seat<'a> {
    directory: Directory,
    view: Option<View<'a>>,
}

impl<'a> Seat<'a> {
    fn new(site: Site<'a>, mounted: bool) -> Result<Self, Error> {
        if !mounted {
            return Ok(Self {
                directory: Directory::native(&site.native())?,
                view: None,
            });
        }
        let view = View::new(site.program, site.volume.at(), &site.work.join("view"))?;
        Ok(Self {
            directory: Directory::seen(&view.at().join(site.name))?,
            view: Some(view),
        })
    }
}

/// What an `lstat` can ask of a server.
const LOOKS: [&str; 2] = ["lookup", "getattr"];

/// A directory as it is measured one way.
pub(super) struct Stand<'a> {
    site: Site<'a>,
    machine: Machine<'a>,
    way: Way,
    seat: Option<Seat<'a>>,
}

impl<'a> Stand<'a> {
    pub(super) const fn new(site: Site<'a>, machine: Machine<'a>, way: Way) -> Self {
        Self {
            site,
            machine,
            way,
            seat: None,
        }
    }

    /// Lists it once for nothing, and looks: what lies in blocks, of names and of inodes, is in memory then, where that is wanted.
    pub(super) fn warm(
        &mut self,
        look: impl FnOnce(&Directory) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.way.cold {
            return Ok(());
        }
        self.timed(&mut Duration::default(), |directory| {
            directory.list()?;
            look(directory)
        })
    }

    /// Does it, and keeps how long it took if that is the least so far.
    pub(super) fn timed(
        &mut self,
        least: &mut Duration,
        act: impl FnOnce(&Directory) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let disk = self.machine.disk;
        if self.way.cold {
            self.seat = None;
            self.site.volume.cool(disk)?;
        } else {
            self.site.volume.settle(disk)?;
        }
        self.seat()?;
        if !self.way.cold {
            forget_names()?;
        }
        self.again(least, act)
    }

    /// The same, with what is in memory from before.
    pub(super) fn again(
        &mut self,
        least: &mut Duration,
        act: impl FnOnce(&Directory) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let clock = self.machine.clock;
        let directory = &self.seat()?.directory;
        let begin = clock.monotonic();
        act(directory)?;
        let took = clock.monotonic().saturating_sub(begin);
        *least = took.min(*least);
        Ok(())
    }

    /// How often the server behind the view was asked for a name or for attributes.
    pub(super) fn requests(&mut self) -> Result<Option<u64>, Error> {
        let program = self.site.program;
        let Some(view) = &self.seat()?.view else {
            return Ok(None);
        };
        let mut command = Command::new(program);
        command
            .args(["usenetfs", "status", "--json"])
            .arg(view.at());
        let status = told(&mut command, "")?;
        let status: serde_json::Value = serde_json::from_slice(&status).unwrap_or_default();
        let counts = LOOKS
            .iter()
            .map(|name| status["operations"][*name].as_u64());
        counts
            .sum::<Option<u64>>()
            .map(Some)
            .ok_or_else(|| Error::Program {
                program: program.display().to_string(),
                why: "usenetfs status counts no lookups".to_owned(),
            })
    }

    fn seat(&mut self) -> Result<&Seat<'a>, Error> {
        Ok(match &mut self.seat {
            Some(seat) => seat,
            none => none.insert(Seat::new(self.site, self.way.mounted)?),
        })
    }
}
