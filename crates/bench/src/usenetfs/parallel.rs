//! Several clients in one directory at the same time: they add articles, and then remove them, the oldest first.
//!
//! Invariant: numbers are given once and in order, as a server gives them, and go on from one measurement to the next; the
//! directory is empty before and after each.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;

use super::directory::Directory;
use super::figures::Layout;
use super::volume::{FileSystem, View, Volume};
use crate::error::Error;
use crate::load::Machine;
use crate::measure::progress::Progress;

const GROUP: &str = "group";

/// What to measure.
#[derive(Debug, Clone)]
pub struct ParallelArgs {
    /// An empty or new directory, for image files and mount points.
    pub directory: PathBuf,
    /// The program that mounts.
    pub program: PathBuf,
    /// On which file systems.
    pub file_systems: Vec<FileSystem>,
    /// With which layouts.
    pub layouts: Vec<Layout>,
    /// How many clients there are at a time.
    pub clients: Vec<usize>,
    /// How often each is measured.
    pub rounds: u32,
    /// Articles that are added and removed each time, by all clients together.
    pub articles: u64,
    /// Show a progress bar on standard error when that is a terminal.
    pub progress: bool,
}

/// What so many clients cost each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParallelRow {
    /// The file system.
    pub file_system: String,
    /// The algorithm, or `flat`.
    pub layout: String,
    /// Whether it is seen through a mount.
    pub mounted: bool,
    /// Clients at the same time.
    pub clients: usize,
    /// The time all of them took, for each of the additions.
    pub add_us: f64,
    /// The same for each of the removals.
    pub remove_us: f64,
}

impl ParallelRow {
    /// For a terminal.
    #[must_use]
    pub fn human(&self) -> String {
        format!(
            "{:5} {:10} {:8} {:>3} clients, us: add {:>7.1}, remove {:>7.1}",
            self.file_system,
            self.layout,
            self.by(),
            self.clients,
            self.add_us,
            self.remove_us
        )
    }

    /// As a line of a table in Markdown, below [`PARALLEL_TITLES`].
    #[must_use]
    pub fn markdown(&self) -> String {
        format!(
            "| {} | {} | {} | {} | {:.1} | {:.1} |\n",
            self.file_system,
            self.layout,
            self.by(),
            self.clients,
            self.add_us,
            self.remove_us
        )
    }

    const fn by(&self) -> &'static str {
        if self.mounted { "mounted" } else { "native" }
    }
}

/// The head of the table.
pub const PARALLEL_TITLES: &str =
    "| file system | layout | as | clients | add | remove |\n|---|---|---|---|---|---|\n";

/// Measures; every row is told when it is there.
pub fn run(
    args: &ParallelArgs,
    machine: Machine<'_>,
    on_row: &mut dyn FnMut(&ParallelRow),
) -> Result<Vec<ParallelRow>, Error> {
    let mut rows = Vec::new();
    let ways = args.clients.iter();
    let ways = ways.flat_map(|&clients| [false, true].map(|mounted| (mounted, clients)));
    let ways: Vec<(bool, usize)> = ways.collect();
    for &file_system in &args.file_systems {
        for &layout in &args.layouts {
            let volume = Volume::new(&args.directory, file_system, args.articles)?;
            Directory::make(&volume.at().join(GROUP), layout.algorithm())?;
            let mut group = Group {
                args,
                machine,
                volume: &volume,
                first: 1,
            };
            let what = format!("{} {layout}", file_system.name());
            let all = u64::from(args.rounds) * ways.len() as u64;
            let shown = Progress::new(args.progress, &what, Some(all));
            let mut done = 0;
            let mut least = vec![[Duration::MAX; 2]; ways.len()];
            for _ in 0..args.rounds {
                for (&(mounted, clients), least) in ways.iter().zip(&mut least) {
                    let took = group.measure(mounted, clients)?;
                    done += 1;
                    shown.at(done);
                    *least = [least[0].min(took[0]), least[1].min(took[1])];
                }
            }
            drop(shown);
            for (&(mounted, clients), least) in ways.iter().zip(least) {
                let us = least.map(|time| time.as_secs_f64() * 1e6 / args.articles as f64);
                let row = ParallelRow {
                    file_system: file_system.name().to_owned(),
                    layout: layout.to_string(),
                    mounted,
                    clients,
                    add_us: us[0],
                    remove_us: us[1],
                };
                on_row(&row);
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// The directory of all clients.
struct Group<'a> {
    args: &'a ParallelArgs,
    machine: Machine<'a>,
    volume: &'a Volume,
    first: u64,
}

impl Group<'_> {
    /// How long it takes to add all articles, and to remove them.
    fn measure(&mut self, mounted: bool, clients: usize) -> Result<[Duration; 2], Error> {
        let view = self.args.directory.join("view");
        let view = mounted.then(|| View::new(&self.args.program, self.volume.at(), &view));
        let view = view.transpose()?;
        // Every client opens it for itself, as programs do.
        let open = |_| match &view {
            Some(view) => Directory::seen(&view.at().join(GROUP)),
            None => Directory::native(&self.volume.at().join(GROUP)),
        };
        let directories = (0..clients).map(open).collect::<Result<Vec<_>, _>>()?;
        let added = self.together(&directories, Directory::add)?;
        let removed = self.together(&directories, Directory::remove)?;
        self.first += self.args.articles;
        let left = Directory::native(&self.volume.at().join(GROUP))?.list()?;
        if left == 0 {
            return Ok([added, removed]);
        }
        Err(Error::Argument {
            name: "the listing",
            value: left.to_string(),
            why: "all files were removed: somebody else changes the directory".to_owned(),
        })
    }

    /// All clients do it to all articles, each to the next that nobody has taken yet.
    fn together(
        &self,
        directories: &[Directory],
        act: fn(&Directory, u64) -> Result<(), Error>,
    ) -> Result<Duration, Error> {
        self.machine.disk.sync_file_system(self.volume.at())?;
        let next = AtomicU64::new(self.first);
        let end = self.first + self.args.articles;
        let work = |directory: &Directory| -> Result<(), Error> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return Ok(());
                }
                act(directory, number)?;
            }
        };
        let begin = self.machine.clock.monotonic();
        std::thread::scope(|scope| {
            let clients: Vec<_> = directories
                .iter()
                .map(|directory| scope.spawn(|| work(directory)))
                .collect();
            clients
                .into_iter()
                .try_for_each(|client| client.join().map_err(|_| Error::WorkerLost)?)
        })?;
        Ok(self.machine.clock.monotonic().saturating_sub(begin))
    }
}
