//! What is measured: directories that grow by doubling, and at every size the operations of a news server.
//!
//! Invariant: a directory has the size that its row says before and after every measurement; the least of all rounds
//! counts, natively and through the mount one after the other in each.

use std::path::{Path, PathBuf};
use std::time::Duration;

use newsreel_layout::Algorithm;
use serde::Serialize;

use super::directory::Directory;
use super::volume::{FileSystem, View, Volume, forget_names};
use crate::error::Error;
use crate::load::Machine;
use crate::random::Dice;

/// What to measure.
#[derive(Debug, Clone)]
pub struct FiguresArgs {
    /// An empty or new directory, for image files and mount points.
    pub directory: PathBuf,
    /// The program that mounts.
    pub program: PathBuf,
    /// On which file systems.
    pub file_systems: Vec<FileSystem>,
    /// The largest directory has two to this power of files; the paper's 19.
    pub exponent_max: u32,
    /// From one size to the next the exponent grows by so much.
    pub step: u32,
    /// How often each is measured.
    pub rounds: u32,
    /// Articles that are looked at, added and removed each time; the paper's 1000.
    pub articles: u64,
}

/// What one directory costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The file system.
    pub file_system: String,
    /// The algorithm, or `flat`.
    pub layout: String,
    /// Whether it is seen through a mount.
    pub mounted: bool,
    /// Files in it.
    pub files: u64,
    /// One of the random lookups.
    pub random_us: f64,
    /// One of the sequential lookups.
    pub sequential_us: f64,
    /// One of the additions.
    pub add_us: f64,
    /// One of the removals of the oldest.
    pub remove_us: f64,
    /// The whole listing.
    pub list_us: f64,
}

/// Measures; every row is told when it is there.
pub fn run(
    args: &FiguresArgs,
    machine: Machine<'_>,
    on_row: &mut dyn FnMut(&Row),
) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    let algorithms = Algorithm::ALL.map(Some);
    for &file_system in &args.file_systems {
        for layout in [None].into_iter().chain(algorithms) {
            let files = (1 << args.exponent_max) + args.articles;
            let volume = Volume::new(&args.directory, file_system, files)?;
            let mut group = Group::new(args, machine, &volume, layout)?;
            for exponent in (0..=args.exponent_max).step_by(args.step.max(1) as usize) {
                group.grow(1 << exponent)?;
                let mut times = [Times::MOST, Times::MOST];
                for _ in 0..args.rounds {
                    for (mounted, times) in [false, true].into_iter().zip(&mut times) {
                        group.measure(mounted, times)?;
                    }
                }
                for (mounted, times) in [false, true].into_iter().zip(&times) {
                    let row = times.row(&group, file_system, mounted);
                    on_row(&row);
                    rows.push(row);
                }
            }
        }
    }
    Ok(rows)
}

/// The least that each took so far.
#[derive(Debug, Clone)]
struct Times {
    random: Duration,
    sequential: Duration,
    add: Duration,
    remove: Duration,
    list: Duration,
}

impl Times {
    const MOST: Self = Self {
        random: Duration::MAX,
        sequential: Duration::MAX,
        add: Duration::MAX,
        remove: Duration::MAX,
        list: Duration::MAX,
    };

    fn row(&self, group: &Group<'_>, file_system: FileSystem, mounted: bool) -> Row {
        let articles = group.args.articles as f64;
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        Row {
            file_system: file_system.name().to_owned(),
            layout: group.layout.clone(),
            mounted,
            files: group.files,
            random_us: us(self.random) / articles,
            sequential_us: us(self.sequential) / articles,
            add_us: us(self.add) / articles,
            remove_us: us(self.remove) / articles,
            list_us: us(self.list),
        }
    }
}

/// A directory that grows: its files are numbered one after the other from `first` on.
struct Group<'a> {
    args: &'a FiguresArgs,
    machine: Machine<'a>,
    layout: String,
    /// What is mounted: the directory lies in it, so that its own mark is seen as anybody's would.
    lower: &'a Path,
    first: u64,
    files: u64,
}

const GROUP: &str = "group";

impl<'a> Group<'a> {
    fn new(
        args: &'a FiguresArgs,
        machine: Machine<'a>,
        volume: &'a Volume,
        algorithm: Option<Algorithm>,
    ) -> Result<Self, Error> {
        Directory::make(&volume.at().join(GROUP), algorithm)?;
        Ok(Self {
            args,
            machine,
            layout: algorithm.map_or_else(|| "flat".to_owned(), |algorithm| algorithm.to_string()),
            lower: volume.at(),
            first: 1,
            files: 0,
        })
    }

    fn grow(&mut self, files: u64) -> Result<(), Error> {
        let directory = Directory::native(&self.lower.join(GROUP))?;
        while self.files < files {
            directory.add(self.first + self.files)?;
            self.files += 1;
        }
        directory.settle()
    }

    fn measure(&mut self, mounted: bool, times: &mut Times) -> Result<(), Error> {
        let native = Directory::native(&self.lower.join(GROUP))?;
        if !mounted {
            return self.measure_in(&native, &native, times);
        }
        let at = self.args.directory.join("view");
        let view = View::new(&self.args.program, self.lower, &at)?;
        let seen = Directory::seen(&view.at().join(GROUP))?;
        self.measure_in(&seen, &native, times)
    }

    fn measure_in(
        &mut self,
        directory: &Directory,
        native: &Directory,
        times: &mut Times,
    ) -> Result<(), Error> {
        let (first, files, articles) = (self.first, self.files, self.args.articles);
        let mut dice = Dice::new(1, 0x75, files);
        let numbers: Vec<u64> = (0..articles)
            .map(|_| first + dice.below(files as usize) as u64)
            .collect();
        let timed = |time: &mut Duration, act: &mut dyn FnMut() -> Result<(), Error>| {
            native.settle()?;
            forget_names()?;
            let begin = self.machine.clock.monotonic();
            act()?;
            *time = (*time).min(self.machine.clock.monotonic().saturating_sub(begin));
            Ok::<_, Error>(())
        };
        // Once for nothing: what lies in blocks is in memory then.
        directory.list()?;
        timed(&mut times.random, &mut || {
            numbers
                .iter()
                .try_for_each(|&number| directory.look(number))
        })?;
        timed(&mut times.sequential, &mut || {
            (0..articles).try_for_each(|at| directory.look(first + at % files))
        })?;
        timed(&mut times.list, &mut || {
            let listed = directory.list()?;
            if listed == files {
                return Ok(());
            }
            Err(Error::Argument {
                name: "the listing",
                value: listed.to_string(),
                why: format!("there are {files} files: somebody else changes the directory"),
            })
        })?;
        timed(&mut times.add, &mut || {
            (0..articles).try_for_each(|at| directory.add(first + files + at))
        })?;
        timed(&mut times.remove, &mut || {
            (0..articles).try_for_each(|at| directory.remove(first + at))
        })?;
        self.first += articles;
        Ok(())
    }
}
