//! The power is cut while a mount is used: what was made durable through it is there, what was durably removed is not,
//! and nothing has to be repaired but what `verify --repair` says it repairs.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use newsreel_testkit::{Image, ImageKind};
use serde_json::Value;

use super::{Place, names, skipped};
use crate::scale::scaled;
use crate::spool::{newsreel, said};

const WORKERS: usize = 3;

/// So many steps are done before the time runs after which the power is cut.
const STEPS_MIN: usize = 20;

/// What a crash may leave in a managed directory: both mean nothing to the view, and `--repair` takes them away.
const REPAIRABLE: [&str; 2] = [
    "is left over, and empty",
    "has not the owner, group and mode of the directory",
];

/// What is durable, as far as a worker was told.
#[derive(Default)]
struct Durable {
    there: Vec<String>,
    gone: Vec<String>,
}

/// What workers and whoever cuts the power know of each other.
#[derive(Default)]
struct Seen {
    steps: AtomicUsize,
    is_cut: AtomicBool,
}

fn text(name: &str) -> String {
    format!("{name} says this\n").repeat(120)
}

fn write(path: &Path, text: &str, sync: bool) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes())?;
    if sync { file.sync_all() } else { Ok(()) }
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

impl Durable {
    /// Makes, renames and removes articles until the power is cut.
    fn work(mut self, group: &Path, worker: usize, seen: &Seen) -> Self {
        // Three or four articles a bucket, so that buckets come and go.
        for number in (0..).map(|n| worker * 10_000_000 + n * 300) {
            let promised = self.step(group, number);
            // What is under way at the cut promises nothing: the kernel itself then answers some with success.
            if seen.is_cut.load(Ordering::SeqCst) {
                return self;
            }
            let Self { there, gone } = promised.unwrap();
            self.there.extend(there);
            self.gone.extend(gone);
            seen.steps.fetch_add(1, Ordering::SeqCst);
        }
        self
    }

    /// Does something; says what is durable by it.
    fn step(&mut self, group: &Path, number: usize) -> io::Result<Self> {
        let name = number.to_string();
        let path = group.join(&name);
        let mut promised = Self::default();
        match number / 300 % 5 {
            // Nothing is promised of it.
            0 => write(&path, &text(&name), false)?,
            1 => {
                write(&path, &text(&name), true)?;
                promised.there.push(name);
            }
            // As careful programs write: under another name first, in another bucket.
            2 => {
                let draft = group.join(format!("draft{name}"));
                write(&draft, &text(&name), true)?;
                fs::rename(&draft, &path)?;
                sync(group)?;
                promised.there.push(name);
            }
            3 => {
                write(&path, &text(&name), true)?;
                fs::remove_file(&path)?;
                sync(group)?;
                promised.gone.push(name);
            }
            // The oldest go, as in an expiry, and their buckets with them.
            _ => {
                promised.gone = self.there.drain(..self.there.len() / 4).collect();
                for name in &promised.gone {
                    fs::remove_file(group.join(name))?;
                }
                sync(group)?;
            }
        }
        Ok(promised)
    }

    fn assert_holds(&self, group: &Path, what: &str) {
        let names = names(group);
        for name in &self.there {
            let found = fs::read_to_string(group.join(name));
            assert_eq!(found.ok(), Some(text(name)), "{name} of {what}");
        }
        let back: Vec<_> = self.gone.iter().filter(|n| names.contains(*n)).collect();
        assert!(back.is_empty(), "{back:?} are there again: {what}");
    }
}

impl Place {
    /// What `verify` finds in what is mounted.
    fn findings(&self) -> Vec<Value> {
        let mut verify = newsreel();
        verify.args(["usenetfs", "verify", "--recursive", "--json"]);
        let output = verify.arg(self.lower("")).output().unwrap();
        let verified: Value = serde_json::from_slice(&output.stdout).unwrap();
        verified["findings"].as_array().unwrap().clone()
    }

    /// One round: used, cut off, looked at.
    fn is_cut_off(&self, image: &Image, algorithm: &str, after: Duration, what: &str) {
        self.run(&["mount", "--algorithm", algorithm, "@lower", "@mnt"])
            .unwrap();
        let group = self.managed(&format!("group-{}", after.as_millis()));
        sync(&self.path("")).unwrap();
        let (pid, seen) = (self.pid(), Seen::default());
        let done: Vec<Durable> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|worker| {
                    let (group, seen) = (&group, &seen);
                    scope.spawn(move || Durable::default().work(group, worker, seen))
                })
                .collect();
            let until = Instant::now() + Duration::from_secs(60);
            while seen.steps.load(Ordering::SeqCst) < STEPS_MIN && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(after);
            seen.is_cut.store(true, Ordering::SeqCst);
            image.cut_power().unwrap();
            workers.into_iter().map(|w| w.join().unwrap()).collect()
        });
        said(Command::new("kill").args(["-KILL", &pid]).output().unwrap()).unwrap();
        self.run(&["umount", "@mnt"]).unwrap();
        image.restart().unwrap();

        let bad: Vec<_> = self.findings();
        let is_repairable = |finding: &Value| REPAIRABLE.iter().any(|r| finding["what"] == *r);
        assert!(bad.iter().all(is_repairable), "{bad:?}: {what}");
        self.run(&["verify", "--repair", "--recursive", "@lower"])
            .unwrap();
        assert_eq!(self.findings(), Vec::<Value>::new(), "{what}");
        self.mount();
        let durable: usize = done.iter().map(|d| d.there.len() + d.gone.len()).sum();
        assert!(durable > 0, "nothing was made durable: {what}");
        done.iter().for_each(|done| done.assert_holds(&group, what));
        self.run(&["umount", "@mnt"]).unwrap();
    }
}

#[test]
fn what_was_made_durable_outlives_a_power_cut() {
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
        for round in 0..scaled(3, 12) {
            let algorithm = ["range1024", "yyy", "34/56"][round % 3];
            let after = Duration::from_millis(13 + 67 * round as u64);
            let what = format!("{kind:?}, {algorithm}, cut after {after:?}");
            place.is_cut_off(&image, algorithm, after, &what);
        }
    }
}
