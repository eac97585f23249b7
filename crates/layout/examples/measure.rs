//! Measures what a directory costs, flat and managed, for the table in `crates/layout/src/advise/figures.rs`.
//!
//! `cargo run --release -p newsreel-layout --example measure -- DIR FORGET [FILES...]`; `FORGET` is a shell command after
//! which nothing of the file system is in memory: it unmounts and mounts it again, because dropping caches leaves what a
//! journal still holds.  Prints one row for each number of files and layout: processor time in microseconds and reads of the
//! device for one of 1000 random lookups, one of 1000 additions, one removal of the 1000 oldest, and one whole listing,
//! each with nothing in memory.

#![expect(clippy::print_stdout, reason = "the table is what it is for")]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use newsreel_host::{Disk as _, Folder, OpenMode, RealDisk};
use newsreel_layout::convert::{Options, Target, convert};
use newsreel_layout::{Algorithm, Cookie, Listing, Name, Opened};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const FIRST: u64 = 1_000_000;
const BATCH: u64 = 1000;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().ok_or("which directory?")?);
    let forget = arguments
        .next()
        .ok_or("which command makes the machine forget?")?;
    let mut sizes = arguments
        .map(|size| size.parse())
        .collect::<Result<Vec<u64>, _>>()?;
    if sizes.is_empty() {
        sizes = vec![1 << 10, 1 << 13, 1 << 16];
    }
    println!("files layout lookup add remove list (us/reads)");
    for files in sizes {
        for layout in [None, Some(Algorithm::RANGE_1024), Some(Algorithm::YYY)] {
            measure(&dir, &forget, files, layout)?;
        }
    }
    Ok(())
}

/// Makes a directory, measures it, and removes it; the flat one is converted first.
fn measure(dir: &Path, forget: &str, files: u64, layout: Option<Algorithm>) -> Outcome<()> {
    let path = dir.join("measured");
    Folder::open(dir)?.make_folder(Path::new("measured"), 0o755)?;
    if let Some(algorithm) = layout {
        newsreel_layout::Mark::set(&Folder::open(&path)?, algorithm)?;
    }
    let group = Group::open(&path)?;
    (0..files).try_for_each(|number| group.add(FIRST + number))?;
    drop(group);
    let cost = |act: &dyn Fn(&Group) -> Outcome<()>| cost(&path, forget, act);
    let lookup =
        cost(&|group| (0..BATCH).try_for_each(|at| group.look(FIRST + random(at) % files)))?;
    let add = cost(&|group| (0..BATCH).try_for_each(|at| group.add(FIRST + files + at)))?;
    let remove = cost(&|group| (0..BATCH).try_for_each(|at| group.remove(FIRST + at)))?;
    let list = cost(&|group| group.list())?;
    let called = layout.map_or_else(|| "flat".to_owned(), |a| a.to_string());
    let [lookup, add, remove] = [lookup, add, remove].map(|cost| cost.per(BATCH));
    println!("{files} {called} {lookup} {add} {remove} {}", list.per(1));
    if layout.is_none() {
        let converted = cost(&|group| {
            let target = Target::On(Algorithm::RANGE_1024);
            let mut go_on = |_| ControlFlow::Continue(());
            convert(group.folder(), target, Options::default(), &mut go_on)?;
            Ok(())
        })?;
        println!("# {files} converted to range1024: {}", converted.per(files));
        let list = cost(&|group| group.list())?;
        println!("# {files} listed after that: {}", list.per(1));
    }
    let group = Group::open(&path)?;
    (0..files + BATCH).try_for_each(|number| group.remove(FIRST + number))?;
    group.end()?;
    drop(group);
    let list = cost(&|group| group.list())?;
    println!("# {files} {called} emptied, listed: {}", list.per(1));
    Folder::open(dir)?.remove_folder(Path::new("measured"))?;
    Ok(())
}

/// The same in every run.
const fn random(at: u64) -> u64 {
    at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

/// What something cost: time on a processor, and reads and writes of the device.  Unlike the time that went by, both are
/// the same on a busy machine.
struct Cost {
    cpu_ns: u64,
    reads: u64,
}

impl Cost {
    fn now(device: (u32, u32)) -> Outcome<Self> {
        #[expect(clippy::disallowed_methods, reason = "asks the kernel, not a spool")]
        let schedule = std::fs::read_to_string("/proc/self/schedstat")?;
        let (major, minor) = device;
        #[expect(clippy::disallowed_methods, reason = "asks the kernel, not a spool")]
        let disk = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat"))?;
        let first = |text: &str| {
            text.split_whitespace()
                .next()
                .and_then(|word| word.parse().ok())
        };
        Ok(Self {
            cpu_ns: first(&schedule).ok_or("schedstat?")?,
            reads: first(&disk).ok_or("disk statistics?")?,
        })
    }

    fn per(&self, times: u64) -> String {
        let each = |count: u64| count as f64 / times as f64;
        format!("{:.1}/{:.2}", each(self.cpu_ns) / 1000.0, each(self.reads))
    }
}

/// The cost of something that begins with nothing in memory, and with nothing open.
fn cost(path: &Path, forget: &str, act: &dyn Fn(&Group) -> Outcome<()>) -> Outcome<Cost> {
    let done = std::process::Command::new("sh")
        .args(["-c", forget])
        .status()?;
    if !done.success() {
        return Err(format!("`{forget}` failed").into());
    }
    let group = Group::open(path)?;
    let device = group.folder().facts()?.device;
    let before = Cost::now(device)?;
    act(&group)?;
    let after = Cost::now(device)?;
    Ok(Cost {
        cpu_ns: after.cpu_ns - before.cpu_ns,
        reads: after.reads - before.reads,
    })
}

/// A directory, whatever it is.
struct Group(Opened);

impl Group {
    fn open(path: &Path) -> Outcome<Self> {
        Ok(Self(Opened::new(Folder::open(path)?)?))
    }

    fn folder(&self) -> &Folder {
        match &self.0 {
            Opened::Flat(folder) | Opened::UnderWay(folder, _) => folder,
            Opened::Managed(managed) => managed.folder(),
        }
    }

    fn add(&self, number: u64) -> Outcome<()> {
        let text = number.to_string();
        let make = |folder: &Folder, at: &Path| {
            let path = folder.path().join(at);
            RealDisk.open(&path, OpenMode::CreateNew).map(|_| ())
        };
        match &self.0 {
            Opened::Managed(managed) => {
                managed.with_bucket(Name::parse(text.as_ref())?, make)?;
            }
            Opened::Flat(folder) | Opened::UnderWay(folder, _) => make(folder, Path::new(&text))?,
        }
        Ok(())
    }

    fn at(&self, number: u64) -> Outcome<PathBuf> {
        let text = number.to_string();
        Ok(match &self.0 {
            Opened::Managed(managed) => managed.place(Name::parse(text.as_ref())?),
            Opened::Flat(_) | Opened::UnderWay(..) => text.into(),
        })
    }

    fn look(&self, number: u64) -> Outcome<()> {
        self.folder().facts_of(&self.at(number)?)?;
        Ok(())
    }

    fn remove(&self, number: u64) -> Outcome<()> {
        let at = self.at(number)?;
        match self.folder().remove(&at) {
            Err(e) if e.kind() == newsreel_host::ErrorKind::NotFound => return Ok(()),
            other => other?,
        }
        let text = number.to_string();
        if let Opened::Managed(managed) = &self.0
            && number % 1024 == 1023
        {
            let name = Name::parse(text.as_ref())?;
            managed.tidy_bucket(managed.algorithm().bucket(name))?;
        }
        Ok(())
    }

    fn list(&self) -> Outcome<()> {
        match &self.0 {
            Opened::Managed(managed) => {
                Listing::default().fill(managed, Cookie::DOT_DOT, |_, _| true)?;
            }
            Opened::Flat(folder) | Opened::UnderWay(folder, _) => {
                folder.entries()?.try_for_each(|entry| entry.map(drop))?;
            }
        }
        Ok(())
    }

    /// Takes the buckets away.
    fn end(&self) -> Outcome<()> {
        if let Opened::Managed(managed) = &self.0 {
            managed.remove_buckets()?;
        }
        Ok(())
    }
}
