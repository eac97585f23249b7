//! The power is cut in a conversion, at one change after the other: what the file system had not made durable is gone,
//! nothing else, and another run completes the conversion or turns it round.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use newsreel_host::{ErrorKind, FaultyDisk, Folder, MemoryDisk};
use newsreel_layout::convert::{Options, Target, convert};
use newsreel_layout::verify::verify;
use newsreel_layout::{Algorithm, Cookie, Error, Listing, Opened, Result};
use newsreel_testkit::{Image, ImageKind};

use super::{Place, skipped};
use crate::scale::scaled;

/// Entries of the view with their inodes, however they lie.
type Entries = BTreeMap<(OsString, u64), usize>;

/// A directory in an image.
struct World {
    image: Image,
    group: PathBuf,
}

impl World {
    /// Articles, holes in their numbers, names like buckets', and a subdirectory that is called like an article.
    fn new(image: Image) -> Self {
        let group = image.at().join("group");
        fs::create_dir(&group).unwrap();
        let numbers = (1000..1020).chain(123_450..123_470).chain([7, 34, 345]);
        let names = numbers.map(|number: u32| number.to_string());
        let odd = ["0123", "r0", "r16", "000", "aaa", ".overview", " "].map(str::to_owned);
        for name in names.chain(odd) {
            fs::write(group.join(&name), &name).unwrap();
        }
        fs::create_dir(group.join("2600")).unwrap();
        fs::write(group.join("2600/345"), "below").unwrap();
        Self { image, group }
    }

    fn folder(&self) -> Folder {
        Folder::open(&self.group).unwrap()
    }

    /// A folder that stops at the `nth` change.
    fn faulty(&self, nth: u64) -> Folder {
        let faults = FaultyDisk::new(Arc::new(MemoryDisk::default()));
        faults.stop_at_change(nth);
        Folder::open_with_faults(&self.group, &faults).unwrap()
    }

    /// What is shown.
    fn view(&self) -> Entries {
        let mut seen = Entries::new();
        match Opened::new(self.folder()).unwrap() {
            Opened::Flat(flat) => {
                for entry in flat.entries().unwrap().map(std::result::Result::unwrap) {
                    *seen.entry((entry.name, entry.inode)).or_default() += 1;
                }
            }
            Opened::Managed(managed) => Listing::default()
                .fill(&managed, Cookie::DOT_DOT, |entry, _| {
                    *seen.entry((entry.name.clone(), entry.inode)).or_default() += 1;
                    true
                })
                .unwrap(),
            Opened::UnderWay(_, under_way) => panic!("under way: {under_way}"),
        }
        seen
    }

    /// Stops a conversion at one change and cuts the power; says whether it came to its end before.
    fn cut(&self, to: Target, nth: u64) -> bool {
        let done = AtomicBool::new(false);
        let result = std::thread::scope(|scope| {
            scope.spawn(|| write_beside(self.image.at(), &done));
            let result = run(&self.faulty(nth), to);
            done.store(true, Ordering::SeqCst);
            result
        });
        self.image.cut_power().unwrap();
        self.image.restart().unwrap();
        result.is_ok()
    }

    /// Cuts the power at one change after the other; each time another run goes on to `again`.
    fn cut_everywhere(&self, [from, to, again]: [Target; 3], stride: usize) -> usize {
        let mut cuts = 0;
        for nth in (1..).step_by(stride) {
            run(&self.folder(), from).unwrap();
            let (view, before) = (self.view(), files(&self.group));
            self.folder().sync_file_system().unwrap();
            let is_done = self.cut(to, nth);
            cuts += 1;
            assert_eq!(files(&self.group), before, "{to:?} cut at {nth}");
            if run(&self.folder(), again).is_err() {
                // Too far to be turned round.
                run(&self.folder(), to).unwrap();
            }
            assert_eq!(self.view(), view, "{to:?} cut at {nth}");
            let mut findings = Vec::new();
            let mut note = |finding: &_| findings.push(format!("{finding:?}"));
            verify(&self.folder(), false, &mut note).unwrap();
            assert!(findings.is_empty(), "{to:?} cut at {nth}: {findings:?}");
            if is_done {
                break;
            }
        }
        cuts
    }
}

/// Every file below, with its name and contents, wherever it is.
fn files(at: &Path) -> Vec<(OsString, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(at).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            let text = fs::read_to_string(entry.path()).unwrap();
            found.push((entry.file_name(), text));
        }
    }
    found.sort();
    found
}

/// Makes a file of its own durable all the time, and with it what the journal holds of others by then.
fn write_beside(at: &Path, done: &AtomicBool) {
    let mut file = File::create(at.join("beside")).unwrap();
    while !done.load(Ordering::SeqCst) {
        file.write_all(b"more").unwrap();
        file.sync_all().unwrap();
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn run(folder: &Folder, target: Target) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let mut go_on = |_| ControlFlow::Continue(());
        match convert(folder, target, Options { verify: true }, &mut go_on) {
            // A process that another test is just starting has our lock too, until it has begun.
            Err(Error::Host(error))
                if error.kind() == ErrorKind::Locked && Instant::now() < until =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => {
                let report = result?;
                assert!(!report.differs(), "{report:?}");
                return Ok(());
            }
        }
    }
}

#[test]
fn a_conversion_that_loses_its_power_is_completed_or_turned_round() {
    let [yyy, low, ..] = Algorithm::ALL.map(Target::To);
    let range = Target::To(Algorithm::range(16).unwrap());
    for kind in ImageKind::ALL {
        let Some(place) = Place::new() else {
            return;
        };
        let image = match Image::new(&place.lower(""), kind) {
            Ok(image) => image,
            Err(error) => {
                skipped(&format!("{kind:?}: {error:#}"));
                continue;
            }
        };
        let world = World::new(image);
        let mut cuts = 0;
        for course in [
            [Target::Off, range, range],
            [range, yyy, yyy],
            [low, Target::Off, Target::Off],
            [Target::Off, yyy, Target::Off],
            [range, Target::Off, range],
        ] {
            cuts += world.cut_everywhere(course, scaled(29, 11));
        }
        assert!(cuts > 15, "{cuts}");
    }
}
