//! What is asked of storage beside figures 8 and 9, each in a scene of its own, on ext4: buffers that have been around, large articles,
//! expiry, removal, cancels, reads and the opening of many terabytes.
//!
//! A scene calls what the commands for that call, with the numbers that are asked for. Invariant: one that fails is told and leaves the
//! others alone; what is missing for one (a program that is not installed) is told, too.

mod cancels;
mod opening;
mod preads;
mod reads;

use std::path::{Path, PathBuf};

pub use self::cancels::Cancels;
pub use self::opening::Opening;
pub use self::reads::Reads;
use super::contenders::Method;
use super::figures::{self, Row, StorageArgs};
use crate::corpus::{Corpus, CorpusArgs, Size};
use crate::error::Error;
use crate::expiry::{self, ExpiryArgs};
use crate::feed::FeedArgs;
use crate::load::{LoadArgs, Machine};
use crate::removal::{self, RemovalArgs, configured};
use crate::rivals::CommandRival;
use crate::usenetfs::FileSystem;
use crate::usenetfs::volume::Volume;

/// Behind so many articles buffers have been around several times.
const STEADY_WARMING: u64 = 1_200_000;
const STEADY_BATCH: u64 = 50_000;
const LARGE_BATCH: u64 = 400;
const LARGE_OCTETS: u32 = 700_000;
const EXPIRING: u64 = 1_000_000;
const EXPIRY_GROUPS: usize = 100;
const REMOVAL_GROUPS: usize = 2;
/// Of each of these groups.
const REMOVAL_ARTICLES: u64 = 100_000;
const REMOVAL_OLDEST: u64 = 1000;
/// The layout that is held against flat directories.
const REMOVAL_LAYOUT: &str = "range1024";
/// On which all of them are.
const PLACE: FileSystem = FileSystem::Ext4;
/// What file systems, logs and views need in a scene with a server of its own.
const OCTETS_BESIDE: u64 = 1 << 30;

/// What the scenes need beside what the figures do.
#[derive(Debug, Clone)]
pub struct SceneArgs {
    /// As for the figures.
    pub storage: StorageArgs,
    /// INN's `fastrm`, against which removal is held.
    pub fastrm: Option<PathBuf>,
    /// One in so many of the articles that are asked for, and octets of buffers that are opened; 1: all of them.
    pub part: u64,
}

/// What came of a scene, or why nothing did.
pub type Scene<T> = Result<T, String>;

/// What came of each.
#[derive(Debug)]
pub struct Scenes {
    /// A server in use with cyclic buffers, as in the figures.
    pub steady: Scene<Row>,
    /// The same with large articles.
    pub large: Scene<Row>,
    /// Very many articles expire.
    pub expiry: Scene<Vec<expiry::Row>>,
    /// The oldest of large groups go.
    pub removal: Scene<Vec<removal::Row>>,
    /// Cancels.
    pub cancels: Scene<Cancels>,
    /// Calls for the reading of articles.
    pub reads: Scene<Vec<Reads>>,
    /// Large buffers are opened.
    pub opening: Scene<Opening>,
}

impl Scenes {
    /// Measures; what came of a scene is told when it is there.
    pub fn run(args: &SceneArgs, machine: Machine<'_>, on_line: &mut dyn FnMut(&str)) -> Self {
        let stage = Stand { args, machine };
        Self {
            steady: told(
                "steady state",
                stage.steady(on_line).and_then(sound),
                on_line,
            ),
            large: told(
                "large articles",
                stage.large(on_line).and_then(sound),
                on_line,
            ),
            expiry: told("expiry", stage.expiry(on_line), on_line),
            removal: told("removal", stage.removal(on_line), on_line),
            cancels: told("cancels", stage.cancels(on_line), on_line),
            reads: told("reads", stage.reads(on_line), on_line),
            opening: told("opening", stage.opening(on_line), on_line),
        }
    }

    /// Why scenes failed.
    #[must_use]
    pub fn failures(&self) -> Vec<&str> {
        let all = [
            self.steady.as_ref().err(),
            self.large.as_ref().err(),
            self.expiry.as_ref().err(),
            self.removal.as_ref().err(),
            self.cancels.as_ref().err(),
            self.reads.as_ref().err(),
            self.opening.as_ref().err(),
        ];
        all.into_iter().flatten().map(String::as_str).collect()
    }
}

fn told<T>(scene: &str, done: Result<T, Error>, on_line: &mut dyn FnMut(&str)) -> Scene<T> {
    done.map_err(|error| {
        let why = format!("{scene}: {error}");
        on_line(&why);
        why
    })
}

/// The one row of a run, if it is a measurement.
fn sound(rows: Vec<Row>) -> Result<Row, Error> {
    let row = rows.into_iter().next().ok_or(Error::WorkerLost)?;
    match row.complaints.first() {
        None => Ok(row),
        Some(why) => Err(Error::Program {
            program: "the server".to_owned(),
            why: why.clone(),
        }),
    }
}

/// Where scenes are played.
struct Stand<'a> {
    args: &'a SceneArgs,
    machine: Machine<'a>,
}

impl Stand<'_> {
    fn part_of(&self, all: u64) -> u64 {
        (all / self.args.part.max(1)).max(1)
    }

    /// Cyclic buffers alone, fed as for the figures, with other numbers.
    fn cyclic(
        &self,
        change: impl FnOnce(&mut StorageArgs),
        on_line: &mut dyn FnMut(&str),
    ) -> Result<Vec<Row>, Error> {
        let mut args = StorageArgs {
            file_systems: vec![PLACE],
            methods: vec![CNFS.to_owned()],
            inn: None,
            short_articles: 0,
            ..self.args.storage.clone()
        };
        change(&mut args);
        figures::run(&args, self.machine, &mut |row| {
            on_line(&super::human(row));
        })
    }

    fn steady(&self, on_line: &mut dyn FnMut(&str)) -> Result<Vec<Row>, Error> {
        let change = |args: &mut StorageArgs| {
            args.warming_articles = self.part_of(STEADY_WARMING);
            args.articles = self.part_of(STEADY_BATCH);
        };
        self.cyclic(change, on_line)
    }

    fn large(&self, on_line: &mut dyn FnMut(&str)) -> Result<Vec<Row>, Error> {
        let change = |args: &mut StorageArgs| {
            args.warming_articles = 0;
            args.articles = self.part_of(LARGE_BATCH);
            args.corpus.size = Size::Fixed(LARGE_OCTETS);
        };
        self.cyclic(change, on_line)
    }

    fn expiry(&self, on_line: &mut dyn FnMut(&str)) -> Result<Vec<expiry::Row>, Error> {
        let storage = &self.args.storage;
        let args = ExpiryArgs {
            directory: storage.directory.clone(),
            program: storage.program.clone(),
            file_system: PLACE,
            methods: expiry::EXPIRING.map(str::to_owned).to_vec(),
            articles: self.part_of(EXPIRING),
            groups: EXPIRY_GROUPS,
            port: storage.port,
            progress: storage.progress,
        };
        expiry::run(&args, self.machine, &mut |row| on_line(&row.human()))
    }

    fn removal(&self, on_line: &mut dyn FnMut(&str)) -> Result<Vec<removal::Row>, Error> {
        let storage = &self.args.storage;
        let args = RemovalArgs {
            directory: storage.directory.clone(),
            program: storage.program.clone(),
            fastrm: self.args.fastrm.clone(),
            file_systems: vec![PLACE],
            layouts: vec![REMOVAL_LAYOUT.to_owned()],
            articles: self.part_of(REMOVAL_ARTICLES),
            groups: REMOVAL_GROUPS,
            oldest: self.part_of(REMOVAL_OLDEST),
            port: storage.port,
            progress: storage.progress,
        };
        removal::run(&args, self.machine, &mut |row| on_line(&row.human()))
    }

    /// A file system for a server, with room for so much.
    fn volume(&self, octets: u64) -> Result<Volume, Error> {
        let directory = &self.args.storage.directory;
        Volume::with_room(directory, PLACE, 0, octets + OCTETS_BESIDE)
    }

    fn server(&self, at: &Path, words: &str) -> Result<CommandRival, Error> {
        configured(&self.args.storage.program, at, words, self.machine)
    }

    fn start(&self, server: &mut CommandRival, corpus: &Corpus, at: &Path) -> Result<u32, Error> {
        removal::start(server, corpus, at, self.args.storage.port, self.machine)
    }

    fn load(&self) -> LoadArgs {
        LoadArgs {
            progress: self.args.storage.progress,
            ..LoadArgs::new(([127, 0, 0, 1], self.args.storage.port).into())
        }
    }

    fn feeding(&self) -> FeedArgs {
        FeedArgs {
            window: self.args.storage.window,
            ..FeedArgs::new(self.load())
        }
    }

    /// Articles of this size; another seed, others.
    fn corpus(&self, seed: u64, size: Size, articles: u64) -> Result<Corpus, Error> {
        let args = CorpusArgs {
            seed: self.args.storage.corpus.seed + seed,
            size,
            articles: Some(self.part_of(articles)),
            base_time_secs: Some(self.machine.clock.now().secs),
            ..self.args.storage.corpus.clone()
        };
        Corpus::new(&args, self.machine.disk, self.machine.clock)
    }
}

/// The method of cyclic buffers.
pub(super) const CNFS: &str = "cnfs";

/// What reads are counted of.
pub(super) const IN_FILES: [&str; 2] = [CNFS, "segment"];

fn method(name: &str) -> Result<Method, Error> {
    Method::named(name)
}
