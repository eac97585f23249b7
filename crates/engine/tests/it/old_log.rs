//! An old log put back beside newer views and buffers, and a log that is lost whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_engine::{CheckReport, Engine, EngineConfig};
use newsreel_host::{Clock, Disk, FakeClock, MemoryDisk, OpenMode};
use newsreel_service::Outcome;

use crate::segments::{large, segments};
use crate::world::{World, article, config, open_on};

/// Articles before the copy of the log is made, and behind it.
const EACH: usize = 5000;

/// Buffers that never wrap here, and some that do.
const ROOMY: u64 = 8 << 20;
const TIGHT: u64 = 1 << 20;

/// The headers of a buffer: two pages.
const HEADER_OCTETS: usize = 8192;

fn articles(from: usize, len: usize) -> Vec<(String, Vec<u8>)> {
    (from..from + len)
        .map(|at| article(at, "misc.test"))
        .collect()
}

fn all(outcomes: &[Outcome], wanted: Outcome) -> bool {
    outcomes.iter().all(|outcome| *outcome == wanted)
}

fn numbers(lines: &[String]) -> Vec<u64> {
    let number = |line: &String| line.split('\t').next().unwrap().parse().unwrap();
    lines.iter().map(number).collect()
}

fn octets_of(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    let file = disk.open(path, OpenMode::Read).unwrap();
    let mut octets = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut octets, 0).unwrap();
    octets
}

fn empty(disk: &dyn Disk, dir: &str) {
    for entry in disk.list(Path::new(dir)).unwrap() {
        disk.remove(&Path::new(dir).join(entry.name)).unwrap();
    }
}

/// Makes a directory what another one is.
fn copy(disk: &dyn Disk, from: &str, to: &str) {
    disk.create_dir_all(Path::new(to)).unwrap();
    empty(disk, to);
    for entry in disk.list(Path::new(from)).unwrap() {
        let octets = octets_of(disk, &Path::new(from).join(&entry.name));
        let copy = disk
            .open(&Path::new(to).join(&entry.name), OpenMode::CreateNew)
            .unwrap();
        copy.write_at(&octets, 0).unwrap();
        copy.sync_all().unwrap();
    }
}

/// What is in a directory and below; the lock is nobody's.
fn files(disk: &dyn Disk, dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in disk.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            found.extend(files(disk, &path));
        } else if entry.name != "lock" {
            let octets = octets_of(disk, &path);
            found.insert(path, octets);
        }
    }
    found
}

/// The headers of all buffers, both copies of each.
fn headers(disk: &dyn Disk) -> Vec<(PathBuf, Vec<u8>)> {
    let dir = Path::new("/spool/buffers");
    let buffers = disk.list(dir).unwrap().into_iter();
    let buffers = buffers.filter(|entry| entry.len > HEADER_OCTETS as u64);
    let header = |path: PathBuf| {
        let mut octets = octets_of(disk, &path);
        octets.truncate(HEADER_OCTETS);
        (path, octets)
    };
    buffers.map(|entry| header(dir.join(entry.name))).collect()
}

/// What the headers of the buffers, which are only hints, say when the old log is put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hints {
    /// All there is: the buffers themselves know that they are ahead.
    Newest,
    /// What the old log says: none was written since it was copied.
    AsTheLog,
    /// Nothing: none was ever written since the buffers were made.
    AsMade,
}

/// A spool whose log is of the middle of its life, and the overview as it was at the end.
async fn with_an_old_log(
    octets: u64,
    hints: Hints,
) -> (MemoryDisk, EngineConfig, Arc<FakeClock>, Vec<String>) {
    let memory = MemoryDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let world = World::on(Arc::clone(&disk), config(octets));
    let as_made = headers(&memory);
    assert_eq!(as_made.len(), 2);
    assert!(all(
        &world.send(&articles(0, EACH)).await,
        Outcome::Accepted
    ));
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    drop(world);
    copy(&memory, "/spool/log", "/old");
    let as_the_log = headers(&memory);
    let world = open_on(disk, &config, &clock);
    assert!(all(
        &world.send(&articles(EACH, EACH)).await,
        Outcome::Accepted
    ));
    let lines = world.lines("misc.test").await;
    assert_eq!(lines.len() == 2 * EACH, octets == ROOMY);
    drop(world);
    copy(&memory, "/old", "/spool/log");
    let put_back = match hints {
        Hints::Newest => Vec::new(),
        Hints::AsTheLog => as_the_log,
        Hints::AsMade => as_made,
    };
    for (path, octets) in put_back {
        memory.corrupt(&path, 0, &octets).unwrap();
    }
    (memory, config, clock, lines)
}

/// Every article that a line shows is the one the line tells of.
async fn assert_sound(world: &World, lines: &[String], what: &str) {
    for line in lines.iter().step_by(7) {
        let n = line.split('\t').nth(1).unwrap();
        let n = n.strip_prefix("number ").unwrap();
        let text = world.by_id(&format!("<{n}@t.example>")).await;
        let is_it = text.is_some_and(|text| text.contains(&format!("Body of {n}\r\n")));
        assert!(is_it, "{what}: {n} is not what it was");
    }
    assert_eq!(world.engine.status().counters.corrupt_reads, 0, "{what}");
    assert_eq!(world.problems(), Vec::<String>::new(), "{what}");
}

/// What was written after the copy of the log was made goes on being read, as far as the views have it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_log_beside_newer_views_and_buffers_reuses_no_number_and_mixes_nothing() {
    for octets in [ROOMY, TIGHT] {
        for hints in [Hints::Newest, Hints::AsTheLog, Hints::AsMade] {
            beside_an_old_log(octets, hints).await;
        }
    }
}

/// What a check finds that looks while nobody writes.
fn looked(disk: MemoryDisk, config: &EngineConfig, clock: &Arc<FakeClock>) -> CheckReport {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let look = Engine::open_read_only(config.clone(), Arc::new(disk), clock).unwrap();
    look.check(&mut |_, _| {}).unwrap()
}

/// The log is complained of, first of all; what else is.
fn doubted<'a>(report: &'a CheckReport, what: &str) -> &'a [String] {
    let first = report.problems.split_first();
    let (_, others) = first
        .filter(|(first, _)| first.contains("older than its views"))
        .unwrap_or_else(|| panic!("{what}: {:?}", report.problems.first()));
    others
}

async fn beside_an_old_log(octets: u64, hints: Hints) {
    let what = format!("{octets} octets, {hints:?}");
    let (memory, config, clock, lines) = with_an_old_log(octets, hints).await;
    // What was written over since is known to be gone only when the buffers go on behind it.
    let report = looked(memory.clone(), &config, &clock);
    assert!(doubted(&report, &what).is_empty() || octets == TIGHT);
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    // Who looks beside it finds nothing wrong: it has begun to go on behind.  Who looks at what a kill leaves now sees what
    // it saw before, until the log has something of it.
    let beside = looked(memory.clone(), &config, &clock);
    assert_eq!(beside.problems, Vec::<String>::new(), "{what}, beside it");
    let killed = looked(memory.crash_losing_all(), &config, &clock);
    let is_sound = killed.problems.is_empty() || doubted(&killed, &what).is_empty();
    assert!(is_sound, "{what}, killed: {:?}", killed.problems);
    for buffer in world.engine.status().buffers {
        let is_told = buffer.state.contains("an old log was put back");
        assert!(is_told, "{what}: {buffer:?}");
    }
    // The last checkpoint, made when it stopped, has everything; room for what comes is taken from the oldest.
    assert_mostly(&world.lines("misc.test").await, &lines, octets, &what);
    let new = articles(2 * EACH, 100);
    assert!(all(&world.send(&new).await, Outcome::Accepted), "{what}");
    let after = world.lines("misc.test").await;
    let (old, new) = after.split_at(after.len() - 100);
    assert!(
        numbers(new)[0] > 2 * EACH as u64 + 1000,
        "{what}: a number may be given twice"
    );
    assert_mostly(old, &lines, octets, &what);
    assert_sound(&world, &after, &what).await;
    let world = world.restart();
    assert!(world.lines("misc.test").await == after, "{what}");
    assert_sound(&world, &after, &what).await;
}

/// What is left is the newest, and all of it where there is room.
fn assert_mostly(left: &[String], lines: &[String], octets: u64, what: &str) {
    let known: BTreeSet<&String> = lines.iter().collect();
    assert!(left.iter().all(|line| known.contains(line)), "{what}");
    let newest = lines.len() / 2;
    let is_newest = left.ends_with(&lines[newest..]);
    assert!(is_newest, "{what}: {} left", left.len());
    let least = if octets == ROOMY {
        lines.len()
    } else {
        lines.len() / 100 * 60
    };
    assert!(
        left.len() >= least,
        "{what}: {} of {} left",
        left.len(),
        lines.len()
    );
}

/// Makes both identity files what they were before they had the key of the history's hash.
fn without_key(disk: &dyn Disk) {
    for name in ["spool.newsreel", "spool.copy"] {
        let path = Path::new("/spool").join(name);
        let mut octets = octets_of(disk, &path);
        octets.truncate(28);
        octets[8] = 1;
        octets.extend_from_slice(&crc32c::crc32c(&octets).to_le_bytes());
        newsreel_host::replace_file(disk, &path, &octets).unwrap();
    }
}

/// The log's directory is gone: what the last checkpoint has is served and known, and what came behind it is in the buffers; no
/// number is used again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spool_without_its_log_goes_on_from_the_last_checkpoint() {
    for hints in [Hints::Newest, Hints::AsMade] {
        let what = format!("{hints:?}");
        let memory = MemoryDisk::new();
        let disk: Arc<dyn Disk> = Arc::new(memory.clone());
        let world = World::on(Arc::clone(&disk), config(8 << 20));
        let as_made = headers(&memory);
        assert!(all(
            &world.send(&articles(0, EACH)).await,
            Outcome::Accepted
        ));
        world.seal();
        // These are in no checkpoint when the machine stops.
        assert!(all(
            &world.send(&articles(EACH, 200)).await,
            Outcome::Accepted
        ));
        let lines = world.lines("misc.test").await;
        let sequence = world.engine.status().sequence;
        let left: MemoryDisk = memory.crash_losing_all();
        let config = world.config.clone();
        drop(world);
        empty(&left, "/spool/log");
        if hints == Hints::AsMade {
            for (path, octets) in as_made {
                left.corrupt(&path, 0, &octets).unwrap();
            }
        }
        let clock = Arc::new(FakeClock::new(crate::world::NOW));
        let report = looked(left.clone(), &config, &clock);
        assert_eq!(doubted(&report, &what), Vec::<String>::new(), "{what}");
        let behind = report
            .uncompared
            .iter()
            .map(|left| (left.why, left.articles));
        let why = "behind the end of the log: the next start takes them in";
        assert_eq!(behind.collect::<Vec<_>>(), [(why, 200)], "{what}");
        let world = open_on(Arc::new(left), &config, &clock);
        assert!(world.lines("misc.test").await == lines, "{what}");
        assert_sound(&world, &lines, &what).await;
        assert!(
            all(&world.send(&articles(0, EACH)).await, Outcome::Duplicate),
            "{what}"
        );
        assert!(
            all(&world.send(&articles(EACH, 200)).await, Outcome::Duplicate),
            "{what}"
        );
        // More may have been behind the checkpoint: what comes has other numbers.
        assert!(
            all(
                &world.send(&articles(EACH + 200, 200)).await,
                Outcome::Accepted
            ),
            "{what}"
        );
        assert!(world.engine.status().sequence > sequence + 200, "{what}");
        let after = world.lines("misc.test").await;
        let (old, new) = after.split_at(after.len() - 200);
        let first = numbers(new)[0];
        // What fills memory without a checkpoint, and what is under way when that stops the taking.
        let unknown = 4 * config.index.history_rows_max + 65_536;
        assert!(
            first > EACH as u64 + unknown,
            "{what}: a number may be given twice"
        );
        assert!(old == lines, "{what}: {} left", old.len());
        assert_sound(&world, &after, &what).await;
        let world = world.restart();
        assert!(world.lines("misc.test").await == after, "{what}");
        assert_sound(&world, &after, &what).await;
    }
}

/// Before the first checkpoint only the log knows the groups: without it nothing is begun anew over articles that are there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_lost_before_the_first_checkpoint_is_told() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    let begun = memory.crash_losing_all();
    assert!(all(&world.send(&articles(0, 20)).await, Outcome::Accepted));
    let left = memory.crash_losing_all();
    empty(&left, "/spool/log");
    let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
    let disk: Arc<dyn Disk> = Arc::new(left);
    let config = world.config.clone();
    let opened = Engine::open(config, disk, clock, &mut |_, _, _| {});
    let error = opened.map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("/spool/log") && error.contains("restore the log"),
        "{error}"
    );
    // Where nothing was taken nothing is lost.
    empty(&begun, "/spool/log");
    let world = open_on(Arc::new(begun), &world.config, &world.clock);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Log and views were removed together, and it said that no checkpoint had been made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_and_views_that_are_lost_together_are_told() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    assert!(all(&world.send(&articles(0, 20)).await, Outcome::Accepted));
    world.seal();
    let left = memory.crash_losing_all();
    empty(&left, "/spool/log");
    let views: Vec<PathBuf> = files(&left, Path::new("/spool/index"))
        .into_keys()
        .collect();
    assert!(views.len() > 2, "{views:?}");
    views.iter().for_each(|path| left.remove(path).unwrap());
    let before = files(&left, Path::new("/spool"));
    let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
    let disk: Arc<dyn Disk> = Arc::new(left);
    let opened = Engine::open(
        world.config.clone(),
        Arc::clone(&disk),
        clock,
        &mut |_, _, _| {},
    );
    let error = opened.map(|_| ()).unwrap_err().to_string();
    let lost = [
        "/spool/log",
        "/spool/index",
        "the views are gone, too",
        "store attach",
    ];
    assert!(lost.iter().all(|lost| error.contains(lost)), "{error}");
    assert!(!error.contains("no checkpoint had been made"), "{error}");
    assert!(files(disk.as_ref(), Path::new("/spool")) == before);
}

/// Without the key of the history's hash nothing can be told from views and buffers alone.  So the server says what is
/// missing, and touches nothing that a copy could still mend.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_lost_whole_is_told_and_nothing_is_touched_before_it_is_back() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let world = World::on(Arc::clone(&disk), config(4 << 20));
    assert!(all(&world.send(&articles(0, 200)).await, Outcome::Accepted));
    let lines = world.lines("misc.test").await;
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    drop(world);
    copy(disk.as_ref(), "/spool/log", "/old");
    empty(disk.as_ref(), "/spool/log");
    without_key(disk.as_ref());
    let before = files(disk.as_ref(), Path::new("/spool"));
    for _ in 0..2 {
        let as_clock = Arc::clone(&clock) as Arc<dyn Clock>;
        let opened = Engine::open(
            config.clone(),
            Arc::clone(&disk),
            as_clock,
            &mut |_, _, _| {},
        );
        let error = opened.map(|_| ()).unwrap_err().to_string();
        assert!(
            error.contains("/spool/log") && error.contains("restore it from a copy"),
            "{error}"
        );
        let after = files(disk.as_ref(), Path::new("/spool"));
        assert!(
            after == before,
            "written: {:?}",
            after.keys().collect::<Vec<_>>()
        );
    }
    copy(disk.as_ref(), "/old", "/spool/log");
    let world = open_on(disk, &config, &clock);
    assert!(world.lines("misc.test").await == lines);
    assert_eq!(world.send(&articles(0, 2)).await, [Outcome::Duplicate; 2]);
    assert_eq!(world.send(&articles(200, 1)).await, [Outcome::Accepted]);
    assert_eq!(world.high("misc.test"), 201);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// What becomes of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Log {
    Lost,
    PutBack,
}

/// How many articles there are: when the log is copied, at the checkpoint, and when the machine stops.
const COPIED: usize = 30;
const SEALED: usize = 43;
const SENT: usize = 60;

/// A spool that a crash left with articles behind its last checkpoint, and without its log, or with an old one.
async fn crashed(
    config: EngineConfig,
    octets: usize,
    log: Log,
) -> (MemoryDisk, Arc<FakeClock>, Vec<String>) {
    let memory = MemoryDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let some = |from, to| (from..to).map(|n| large(n, octets)).collect::<Vec<_>>();
    let world = World::on(Arc::clone(&disk), config);
    assert!(all(&world.send(&some(0, COPIED)).await, Outcome::Accepted));
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    drop(world);
    copy(&memory, "/spool/log", "/old");
    let world = open_on(disk, &config, &clock);
    assert!(all(
        &world.send(&some(COPIED, SEALED)).await,
        Outcome::Accepted
    ));
    world.seal();
    for from in (SEALED..SENT).step_by(5) {
        let batch = some(from, SENT.min(from + 5));
        assert!(all(&world.send(&batch).await, Outcome::Accepted));
    }
    let mut texts = Vec::new();
    for n in 0..SENT {
        texts.push(world.by_id(&format!("<{n}@t.example>")).await.unwrap());
    }
    let left = memory.crash_losing_all();
    match log {
        Log::Lost => empty(&left, "/spool/log"),
        Log::PutBack => copy(&left, "/old", "/spool/log"),
    }
    (left, clock, texts)
}

/// The last article of a checkpoint ends behind the page in which it begins: a start that knows of it by the views alone had
/// marked the rest as passed over, and so lost what it had acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_start_without_its_log_writes_into_the_last_article_of_the_checkpoint() {
    for octets in [100, 1500, 3000, 10_000, 60_000] {
        for config in [config(16 << 20), segments(|_| ())] {
            for log in [Log::Lost, Log::PutBack] {
                let what = format!("{octets} octets, {}, {log:?}", config.store.sets[0].method);
                let (left, clock, texts) = crashed(config.clone(), octets, log).await;
                let mut world = open_on(Arc::new(left), &config, &clock);
                for round in 0..2 {
                    let mut lost = Vec::new();
                    for (n, text) in texts.iter().enumerate() {
                        let id = format!("<{n}@t.example>");
                        if world.by_id(&id).await.as_ref() != Some(text) {
                            lost.push(n);
                        }
                    }
                    assert_eq!(lost, [0; 0], "{what}, start {round}");
                    assert_eq!(world.problems(), [""; 0], "{what}, start {round}");
                    world = world.restart();
                }
            }
        }
    }
}

/// Where the header of that article cannot be read nobody knows where it ends: its text stays as it is, for who mends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_text_behind_a_header_that_cannot_be_read_is_not_marked_as_passed_over() {
    let config = segments(|_| ());
    let (left, clock, _) = crashed(config.clone(), 10_000, Log::Lost).await;
    let subject = format!("Subject: number {}\r\n", SEALED - 1);
    let places = files(&left, Path::new("/spool/segments"));
    let at = |octets: &[u8]| {
        octets
            .windows(subject.len())
            .position(|it| it == subject.as_bytes())
    };
    let (path, at) = places
        .iter()
        .find_map(|(path, octets)| Some((path, at(octets)?)))
        .unwrap();
    let text = at..at + 9000;
    let begin = places[path][..at]
        .windows(5)
        .rposition(|it| it == b"Path:")
        .unwrap();
    left.corrupt(path, begin as u64 - 16, &[0x5a; 16]).unwrap();
    let world = open_on(Arc::new(left.clone()), &config, &clock);
    assert!(octets_of(&left, path)[text.clone()] == places[path][text]);
    for n in (0..SENT).filter(|n| *n != SEALED - 1) {
        assert!(
            world.by_id(&format!("<{n}@t.example>")).await.is_some(),
            "{n}"
        );
    }
}
