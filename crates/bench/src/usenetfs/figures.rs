//! What is measured: directories that grow by doubling, and at every size the operations of a news server.
//!
//! Invariant: a directory has the size that its row says before and after every measurement; the least of all rounds
//! counts, natively and through the mount one after the other in each.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use newsreel_layout::Algorithm;
use serde::Serialize;

use super::directory::Directory;
use super::stand::{Site, Stand, Way};
use super::volume::{FileSystem, Volume};
use crate::error::Error;
use crate::load::Machine;
use crate::measure::progress::Progress;
use crate::random::Dice;

/// How a directory that is not managed is called.
pub(super) const FLAT: &str = "flat";

/// Two to this power of files are a small group.
const SMALL_GROUP: u32 = 10;

/// What to measure.
#[derive(Debug, Clone)]
pub struct FiguresArgs {
    /// An empty or new directory, for image files and mount points.
    pub directory: PathBuf,
    /// The program that mounts.
    pub program: PathBuf,
    /// On which file system.
    pub file_system: FileSystem,
    /// With which layouts.
    pub layouts: Vec<Layout>,
    /// Each measurement with nothing in memory, too.
    pub cold: bool,
    /// The largest directory has two to this power of files; the paper's 19.
    pub exponent_max: u32,
    /// From one size to the next the exponent grows by so much.
    pub step: u32,
    /// How often each is measured.
    pub rounds: u32,
    /// Articles that are looked at, added and removed each time; the paper's 1000.
    pub articles: u64,
    /// Show progress bars on standard error when that is a terminal.
    pub progress: bool,
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
    /// Whether nothing was in memory; else nothing was known of names, and blocks were there.
    pub cold: bool,
    /// Files in it.
    pub files: u64,
    /// One of the random lookups.
    pub random_us: f64,
    /// One of the same lookups, again.
    pub known_us: f64,
    /// How many of those asked the server behind the mount.
    pub known_requests: Option<u64>,
    /// One of the sequential lookups.
    pub sequential_us: f64,
    /// One of the additions.
    pub add_us: f64,
    /// One of the removals of the oldest.
    pub remove_us: f64,
    /// The whole listing.
    pub list_us: f64,
    /// The listing after all files were removed; measured with the largest directory.
    pub emptied_list_us: Option<f64>,
}

/// How a directory keeps its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout(Option<Algorithm>);

impl Layout {
    /// Flat, and every algorithm.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let algorithms = Algorithm::ALL.map(Some);
        [None].into_iter().chain(algorithms).map(Self).collect()
    }

    pub(super) const fn algorithm(self) -> Option<Algorithm> {
        self.0
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(algorithm) => algorithm.fmt(f),
            None => f.write_str(FLAT),
        }
    }
}

impl FromStr for Layout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == FLAT {
            return Ok(Self(None));
        }
        let algorithm = text.parse().map_err(|error| Error::Argument {
            name: "a layout",
            value: text.to_owned(),
            why: format!("{error}; and {FLAT}, for one that is not managed"),
        })?;
        Ok(Self(Some(algorithm)))
    }
}

/// Measures; every row is told when it is there.
pub fn run(
    args: &FiguresArgs,
    machine: Machine<'_>,
    on_row: &mut dyn FnMut(&Row),
) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    let exponents = exponents(args.exponent_max, args.step);
    let ways = Way::all(args.cold);
    let files = (1 << args.exponent_max) + args.articles;
    for &layout in &args.layouts {
        let volume = Volume::new(&args.directory, args.file_system, files)?;
        let mut group = Group::new(args, machine, &volume, layout)?;
        for &exponent in &exponents {
            group.grow(1 << exponent)?;
            let mut times = vec![Times::MOST; ways.len()];
            for _ in 0..args.rounds {
                for (&way, times) in ways.iter().zip(&mut times) {
                    group.measure(way, times)?;
                }
            }
            let ways_and_times = ways.iter().zip(&times);
            let mut measured: Vec<Row> = ways_and_times
                .map(|(&way, times)| times.row(&group, way))
                .collect();
            if exponents.last() == Some(&exponent) {
                group.empty()?;
                group.measure_emptied(&ways, &mut measured)?;
            }
            measured.iter().for_each(&mut *on_row);
            rows.append(&mut measured);
        }
    }
    Ok(rows)
}

/// Sizes: every step, the largest, and 1024 files in any case, the size from which the paper would manage at the earliest.
fn exponents(most: u32, step: u32) -> Vec<u32> {
    let mut exponents: Vec<u32> = (0..=most).step_by(step.max(1) as usize).collect();
    exponents.push(most);
    if most >= SMALL_GROUP {
        exponents.push(SMALL_GROUP);
    }
    exponents.sort_unstable();
    exponents.dedup();
    exponents
}

/// The least that each took so far.
#[derive(Debug, Clone)]
struct Times {
    random: Duration,
    known: Duration,
    known_requests: Option<u64>,
    sequential: Duration,
    add: Duration,
    remove: Duration,
    list: Duration,
}

impl Times {
    const MOST: Self = Self {
        random: Duration::MAX,
        known: Duration::MAX,
        known_requests: None,
        sequential: Duration::MAX,
        add: Duration::MAX,
        remove: Duration::MAX,
        list: Duration::MAX,
    };

    fn row(&self, group: &Group<'_>, way: Way) -> Row {
        let articles = group.args.articles as f64;
        Row {
            file_system: group.args.file_system.name().to_owned(),
            layout: group.layout.to_string(),
            mounted: way.mounted,
            cold: way.cold,
            files: group.files,
            random_us: us(self.random) / articles,
            known_us: us(self.known) / articles,
            known_requests: self.known_requests,
            sequential_us: us(self.sequential) / articles,
            add_us: us(self.add) / articles,
            remove_us: us(self.remove) / articles,
            list_us: us(self.list),
            emptied_list_us: None,
        }
    }
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// A directory that grows: its files are numbered one after the other from `first` on.
struct Group<'a> {
    args: &'a FiguresArgs,
    machine: Machine<'a>,
    layout: Layout,
    site: Site<'a>,
    first: u64,
    files: u64,
}

impl<'a> Group<'a> {
    fn new(
        args: &'a FiguresArgs,
        machine: Machine<'a>,
        volume: &'a Volume,
        layout: Layout,
    ) -> Result<Self, Error> {
        let site = Site {
            program: &args.program,
            work: &args.directory,
            volume,
            name: "group",
        };
        Directory::make(&site.native(), layout.algorithm())?;
        Ok(Self {
            args,
            machine,
            layout,
            site,
            first: 1,
            files: 0,
        })
    }

    fn native(&self) -> Result<Directory, Error> {
        Directory::native(&self.site.native())
    }

    fn progress(&self, what: &str, files: u64) -> Progress {
        let what = format!("{what} {} directory", self.layout);
        Progress::new(self.args.progress, &what, Some(files))
    }

    fn grow(&mut self, files: u64) -> Result<(), Error> {
        let volume = self.site.volume;
        match self.layout.algorithm() {
            Some(_) => self.fill(files),
            None => volume.filled(|| self.fill(files)),
        }
    }

    fn fill(&mut self, files: u64) -> Result<(), Error> {
        let directory = self.native()?;
        let shown = self.progress("filling", files);
        while self.files < files {
            directory.add(self.first + self.files)?;
            self.files += 1;
            shown.at(self.files);
        }
        directory.settle()
    }

    /// Removes everything, the oldest first, as expiry does.
    fn empty(&mut self) -> Result<(), Error> {
        let directory = self.native()?;
        let files = self.files;
        let shown = self.progress("emptying", files);
        while self.files > 0 {
            directory.remove(self.first)?;
            (self.first, self.files) = (self.first + 1, self.files - 1);
            shown.at(files - self.files);
        }
        directory.settle()
    }

    fn measure(&mut self, way: Way, times: &mut Times) -> Result<(), Error> {
        let (first, files, articles) = (self.first, self.files, self.args.articles);
        let mut dice = Dice::new(1, 0x75, files);
        let numbers: Vec<u64> = (0..articles)
            .map(|_| first + dice.below(files as usize) as u64)
            .collect();
        let mut stand = Stand::new(self.site, self.machine, way);
        let random = |directory: &Directory| {
            let mut numbers = numbers.iter();
            numbers.try_for_each(|&number| directory.look(number))
        };
        stand.warm(random)?;
        stand.timed(&mut times.random, random)?;
        let asked = stand.requests()?;
        stand.again(&mut times.known, random)?;
        let requests = stand.requests()?.zip(asked);
        let requests = requests.map(|(after, before)| after - before);
        times.known_requests = times.known_requests.or(requests).min(requests);
        stand.timed(&mut times.sequential, |directory| {
            (0..articles).try_for_each(|at| directory.look(first + at % files))
        })?;
        stand.timed(&mut times.list, |directory| list(directory, files))?;
        stand.timed(&mut times.add, |directory| {
            (0..articles).try_for_each(|at| directory.add(first + files + at))
        })?;
        stand.timed(&mut times.remove, |directory| {
            (0..articles).try_for_each(|at| directory.remove(first + at))
        })?;
        self.first += articles;
        Ok(())
    }

    /// What it takes to see that nothing is left of what was a large directory.
    fn measure_emptied(&self, ways: &[Way], rows: &mut [Row]) -> Result<(), Error> {
        for _ in 0..self.args.rounds {
            for (&way, row) in ways.iter().zip(&mut *rows) {
                let mut least = Duration::MAX;
                let mut stand = Stand::new(self.site, self.machine, way);
                stand.warm(|_| Ok(()))?;
                stand.timed(&mut least, |directory| list(directory, 0))?;
                let so_far = row.emptied_list_us.unwrap_or(f64::MAX);
                row.emptied_list_us = Some(us(least).min(so_far));
            }
        }
        Ok(())
    }
}

/// Lists a directory that has so many files.
fn list(directory: &Directory, files: u64) -> Result<(), Error> {
    let listed = directory.list()?;
    if listed == files {
        return Ok(());
    }
    Err(Error::Argument {
        name: "the listing",
        value: listed.to_string(),
        why: format!("there are {files} files: somebody else changes the directory"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_small_group_of_the_paper_among_them() {
        assert_eq!(exponents(6, 3), [0, 3, 6]);
        assert_eq!(exponents(13, 4), [0, 4, 8, 10, 12, 13]);
        assert_eq!(exponents(10, 5), [0, 5, 10]);
        assert_eq!(exponents(19, 19), [0, 10, 19]);
    }

    #[test]
    fn layouts_by_name() {
        let all: Vec<String> = Layout::all().iter().map(ToString::to_string).collect();
        assert_eq!(all, ["flat", "yyy", "34/56", "56/34", "456", "range1024"]);
        for name in all.iter().map(String::as_str).chain(["range64"]) {
            assert_eq!(name.parse::<Layout>().unwrap().to_string(), name);
        }
        let why = "range1".parse::<Layout>().unwrap_err().to_string();
        assert!(why.contains("yyy") && why.contains("and flat"), "{why}");
    }
}
