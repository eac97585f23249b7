//! Who only looks at a spool changes nothing there, least of all beside the server that writes it; what is told of buffers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use newsreel_engine::{Engine, EngineConfig, Error, Status};
use newsreel_host::disk::{DirEntry, Effect, Fault, FaultyDisk, Lock};
use newsreel_host::{
    Clock, Disk, Error as HostError, FakeClock, File, MemoryDisk, Op, OpenMode, read_whole,
};
use newsreel_service::Outcome;

use crate::world::{NOW, World, article, config};

fn look(disk: &Arc<dyn Disk>, config: &EngineConfig) -> Result<Status, Error> {
    let clock = Arc::new(FakeClock::new(NOW)) as Arc<dyn Clock>;
    let engine = Engine::open_read_only(config.clone(), Arc::clone(disk), clock)?;
    let status = engine.status();
    assert_eq!(engine.check(&mut |_, _| {})?.problems, [""; 0]);
    engine.shutdown()?;
    Ok(status)
}

async fn send(world: &World, numbers: std::ops::Range<usize>) {
    let batch: Vec<_> = numbers
        .map(|n| article(n, "misc.test,misc.other"))
        .collect();
    let outcomes = world.send(&batch).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
}

/// A sealed file that no manifest names yet: beside a server, the next one will.
fn unnamed_file(disk: &dyn Disk) {
    let index = Path::new("/spool/index");
    let files = disk.list(index).unwrap();
    let sealed = files.iter().find(|file| file.name.starts_with("overview"));
    let sealed = read_whole(disk, &index.join(&sealed.unwrap().name), 1 << 20).unwrap();
    let name = "overview-00000000000fffff.run";
    let unnamed = disk.open(&index.join(name), OpenMode::CreateNew).unwrap();
    unnamed.write_at(&sealed, 0).unwrap();
}

/// Behind a kill in the first checkpoint the manifest was called lost, and who only looked could not; a start that was refused wrote one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_checkpoint_that_was_not_finished_is_no_loss() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    send(&world, 0..50).await;
    world.seal();
    let left = memory.crash_losing_all();
    left.remove(Path::new("/spool/index/manifest")).unwrap();
    let faulty = FaultyDisk::new(Arc::new(left.clone()));
    faulty.stop_at_change(1);
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let status = look(&disk, &world.config).unwrap();
    assert!(status.damaged.is_empty() && !faulty.stopped());
    let buffer = Path::new(&status.buffers[0].path);
    let aside = buffer.with_extension("aside");
    left.rename(buffer, &aside).unwrap();
    let before = left.list(Path::new("/spool/index")).unwrap();
    let clock = || Arc::new(FakeClock::new(NOW)) as Arc<dyn Clock>;
    let open = || {
        let disk = Arc::new(left.clone()) as Arc<dyn Disk>;
        Engine::open(world.config.clone(), disk, clock(), &mut |_, _, _| {})
    };
    let error = open().unwrap_err().to_string();
    assert!(error.contains("its file is missing"), "{error}");
    assert_eq!(left.list(Path::new("/spool/index")).unwrap(), before);
    left.rename(&aside, buffer).unwrap();
    let engine = open().unwrap();
    assert_eq!(engine.check(&mut |_, _| {}).unwrap().problems, [""; 0]);
    assert_eq!(engine.status().damaged.len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_only_looks_writes_nothing() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    send(&world, 0..50).await;
    world.seal();
    send(&world, 50..60).await;
    let left = memory.crash_losing_all();
    unnamed_file(&left);
    let faulty = FaultyDisk::new(Arc::new(left));
    faulty.stop_at_change(1);
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let status = look(&disk, &world.config).unwrap();
    assert_eq!(status.damaged.len(), 0);
    assert!(!faulty.stopped());
    let clock = Arc::new(FakeClock::new(NOW));
    let looking = Engine::open_read_only(world.config.clone(), Arc::clone(&disk), clock).unwrap();
    assert!(looking.forget_lost_groups().is_err());
    assert_eq!(faulty.counts().changes(), 0);
    // Who takes the spool over removes it.
    faulty.clear();
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    let again = Engine::open(config, disk, clock, &mut |_, _, _| {}).unwrap();
    assert!(faulty.counts().changes() > 0);
    assert_eq!(again.check(&mut |_, _| {}).unwrap().problems, [""; 0]);
    again.shutdown().unwrap();
}

/// Looks until the sender of the other end is gone.  Between its manifest and its files each look dawdles.
fn looks(disk: &FaultyDisk, config: &EngineConfig, until: &Receiver<()>) {
    let as_disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let (mut looks, mut last) = (0, 0);
    while looks < 2 || until.try_recv() == Err(TryRecvError::Empty) {
        let dawdling = Effect::Slow(Duration::from_millis(20));
        disk.add(Fault::new(Op::Open, "/index/overview", dawdling));
        let status = look(&as_disk, config).unwrap();
        assert_eq!(status.damaged.len(), 0, "look {looks}");
        for buffer in &status.buffers {
            assert_eq!(buffer.state, "ok", "look {looks}");
        }
        assert!(status.sequence >= last, "look {looks}");
        last = status.sequence;
        looks += 1;
    }
}

/// The buffers go round several times, and the look is slow: the server overwrites what it has not come to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_overwrites_is_no_damage() {
    let world = World::new(config(1 << 20));
    send(&world, 0..1500).await;
    world.seal();
    let as_disk = Arc::clone(&world.disk);
    let clock = Arc::new(FakeClock::new(NOW)) as Arc<dyn Clock>;
    let looking = Engine::open_read_only(world.config.clone(), as_disk, clock).unwrap();
    for first in (1500..6000).step_by(100) {
        send(&world, first..first + 100).await;
        assert_eq!(
            looking.check(&mut |_, _| {}).unwrap().problems,
            [""; 0],
            "{first}"
        );
    }
}

/// Checkpoints and merges all the time, and the log is short: every look has to do with files that go.
async fn look_beside_a_server(octets: u64, articles: usize) {
    let mut config = config(octets);
    config.journal.segment_octets = 64 << 10;
    config.sequencer.checkpoint_log_octets = 16 << 10;
    let world = World::new(config.clone());
    let disk = FaultyDisk::new(Arc::clone(&world.disk));
    let (done, until) = sync_channel(1);
    let looking = std::thread::spawn(move || looks(&disk, &config, &until));
    for first in (0..articles).step_by(50) {
        send(&world, first..first + 50).await;
    }
    drop(done);
    looking.join().unwrap();
    assert_eq!(world.problems(), [""; 0]);
    assert_eq!(world.restart().problems(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_beside_a_server_finds_a_whole_spool() {
    look_beside_a_server(16 << 20, 4000).await;
}

/// The buffers go round all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_it_does_where_articles_are_overwritten() {
    look_beside_a_server(1 << 20, 10_000).await;
}

fn oldest_segment(disk: &dyn Disk) -> String {
    let names = disk.list(Path::new("/spool/log")).unwrap().into_iter();
    let segments = names
        .map(|file| file.name)
        .filter(|name| name.ends_with(".log"));
    segments.min().unwrap()
}

/// A disk that calls back before a file of the log is opened.
struct Watched {
    inner: Arc<dyn Disk>,
    world: Arc<World>,
    /// The server retires its log before so many more are opened.
    opens_left: AtomicI64,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watched")
    }
}

impl Disk for Watched {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>, HostError> {
        if path.starts_with("/spool/log") && self.opens_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            let oldest = oldest_segment(self.inner.as_ref());
            self.world.seal();
            self.world.wait_until("the end of the oldest segment", |_| {
                oldest_segment(self.inner.as_ref()) > oldest
            });
        }
        self.inner.open(path, mode)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), HostError> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), HostError> {
        self.inner.remove(path)
    }

    fn link(&self, from: &Path, to: &Path) -> newsreel_host::Result<()> {
        self.inner.link(from, to)
    }

    fn create_dir_all(&self, path: &Path) -> Result<(), HostError> {
        self.inner.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>, HostError> {
        self.inner.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool, HostError> {
        self.inner.exists(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), HostError> {
        self.inner.sync_dir(dir)
    }

    fn sync_file_system(&self, dir: &Path) -> Result<(), HostError> {
        self.inner.sync_file_system(dir)
    }

    fn free_bytes(&self, path: &Path) -> Result<u64, HostError> {
        self.inner.free_bytes(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, HostError> {
        self.inner.lock(path)
    }
}

/// Wherever in a look the log is retired that it reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_retired_under_a_look_is_looked_at_again() {
    let mut config = config(16 << 20);
    config.journal.segment_octets = 64 << 10;
    config.sequencer.log_keep_octets = 0;
    let world = Arc::new(World::new(config.clone()));
    let mut opens = 0;
    loop {
        for first in (0..600).step_by(50) {
            let first = 1000 * opens + first;
            send(&world, first..first + 50).await;
        }
        opens += 1;
        let watched = Arc::new(Watched {
            inner: Arc::clone(&world.disk),
            world: Arc::clone(&world),
            opens_left: AtomicI64::new(i64::try_from(opens).unwrap()),
        });
        let disk = Arc::clone(&watched) as Arc<dyn Disk>;
        look(&disk, &config).unwrap();
        if watched.opens_left.load(Ordering::Relaxed) > 0 {
            break;
        }
    }
    assert!(opens > 5, "{opens}");
}

/// What came in a second was told as so much a day.
#[tokio::test]
async fn a_rate_is_told_when_an_hour_of_articles_is_there() {
    let world = World::new(config(4 << 20));
    let rates = |world: &World| -> Vec<(Option<u64>, Option<u64>)> {
        let buffers = world.engine.inspect_store().unwrap();
        let rates = buffers.iter().map(|one| (one.octets_a_day, one.lasts_s));
        rates.collect()
    };
    for (nth, wait_s, is_told) in [
        (0, 1800, false),
        (1, 1700, false),
        (2, 3600, false),
        (3, 0, true),
    ] {
        world.send(&[article(nth, "misc.test")]).await;
        let told = rates(&world)
            .iter()
            .any(|(rate, stays)| rate.is_some() && stays.is_some());
        assert_eq!(told, is_told, "{nth}: {:?}", rates(&world));
        world.wait_s(wait_s);
    }
}
