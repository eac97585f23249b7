//! Eight processes at once on one mount, whose directories are converted meanwhile, and everything is in order afterwards.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use newsreel_usenetfs::Settings;

use crate::converting::order;
use crate::world::{World, findings, names, natively};

const WORKERS: u64 = 8;
const LASTS: Duration = Duration::from_secs(3);

/// In the environment of a process that is a worker: which one, and the groups, one a line.
const WORKER: &str = "NEWSREEL_TEST_SOAK_WORKER";
const GROUPS: &str = "NEWSREEL_TEST_SOAK_GROUPS";

/// What a worker says before the number of operations that it could do.
const DONE: &str = "operations done: ";

/// So much each of them does at least, however slow the machine is.
const LEAST: u64 = 130;

/// So often a directory is converted there and back at least.
const CONVERSIONS: u64 = 3;

/// Numbers that are few to a bucket, so that buckets come and go all the time.
const NUMBERS: u64 = 60;
const STEP: u64 = 500;

/// Does one of everything, again and again.  What fails does so because another worker was first; writing never does.
fn work(groups: &[PathBuf], salt: u64, until: Instant) -> u64 {
    let mut dice = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut throw = |sides: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (dice >> 33) % sides
    };
    let mut done = 0;
    while Instant::now() < until || done < LEAST {
        let group = |number: u64| &groups[usize::try_from(number).unwrap()];
        let count = groups.len() as u64;
        let path = group(throw(count)).join((throw(NUMBERS) * STEP).to_string());
        let other = group(throw(count)).join((throw(NUMBERS) * STEP).to_string());
        let result = match throw(10) {
            0..=2 => {
                fs::write(&path, path.as_os_str().as_encoded_bytes()).unwrap();
                Ok(())
            }
            3 | 4 => fs::remove_file(&path),
            5 => fs::rename(&path, &other),
            6 => fs::hard_link(&path, &other),
            7 => fs::read(&path).map(|text| assert!(text.len() < 100_000)),
            8 => append(&path),
            _ => fs::read_dir(group(throw(count))).map(|entries| assert!(entries.count() < 10_000)),
        };
        done += u64::from(result.is_ok());
    }
    done
}

fn append(path: &Path) -> std::io::Result<()> {
    let file = fs::OpenOptions::new().append(true).open(path);
    file?.write_all(b".")
}

/// Converts a directory again and again; while somebody lists it that is refused, and tried again.
fn convert(group: &Path, until: Instant) {
    let mut done = 0;
    while Instant::now() < until || done < CONVERSIONS {
        for text in ["on range1024", "to yyy", "to 34/56", "off"] {
            while let Err(told) = order(group, text) {
                assert!(
                    told.contains("being converted") || told.contains("listing it"),
                    "{text}: {told}"
                );
            }
        }
        done += 1;
    }
}

/// What each of the processes runs: this program, for this test alone.
#[test]
fn one_worker() {
    let (Ok(salt), Ok(groups)) = (std::env::var(WORKER), std::env::var(GROUPS)) else {
        return;
    };
    let groups: Vec<PathBuf> = groups.lines().map(PathBuf::from).collect();
    let until = Instant::now() + LASTS;
    println!("{DONE}{}", work(&groups, salt.parse().unwrap(), until));
}

fn start(salt: u64, groups: &[PathBuf]) -> Child {
    let list: Vec<_> = groups.iter().map(|group| group.to_str().unwrap()).collect();
    let mut worker = Command::new(std::env::current_exe().unwrap());
    worker.args(["--exact", "soak::one_worker", "--nocapture"]);
    worker
        .env(WORKER, salt.to_string())
        .env(GROUPS, list.join("\n"));
    worker.stdout(Stdio::piped()).stderr(Stdio::piped());
    worker.spawn().unwrap()
}

/// How many operations it could do.
fn done(worker: Child) -> u64 {
    let output = worker.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complained}");
    // The harness begins the line.
    let count = said.lines().find_map(|line| line.split_once(DONE));
    count.unwrap().1.trim().parse().unwrap()
}

#[test]
fn eight_processes_leave_everything_in_order() {
    for is_by_name in [false, true] {
        soak(Settings {
            is_by_name,
            ..Settings::default()
        });
    }
}

fn soak(settings: Settings) {
    let Some(world) = World::new(settings) else {
        return;
    };
    let flat = world.path("flat");
    fs::create_dir(&flat).unwrap();
    let root = world.path("");
    let groups = [world.managed("a"), world.managed("b"), flat, root];
    let until = Instant::now() + LASTS;
    let done: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..=WORKERS).map(|salt| start(salt, &groups)).collect();
        scope.spawn(|| convert(&groups[2], until));
        scope.spawn(|| convert(&groups[3], until));
        workers.into_iter().map(done).sum()
    });
    assert!(done > 1000, "only {done} operations could be done");
    let shown: Vec<_> = groups.iter().map(|group| names(group)).collect();
    let dir = world.end();
    for (group, shown) in ["a", "b", "flat"].iter().zip(shown) {
        let lower = dir.path().join("lower").join(group);
        assert_eq!(natively(&lower), shown, "{group}");
        assert_eq!(findings(&lower), Vec::<String>::new(), "{group}");
    }
}
