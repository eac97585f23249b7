//! The register of buffers, damaged with its copy: it is made again, and nothing is taken for new that may have been there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crc32c::crc32c;
use newsreel_engine::{Engine, EngineConfig};
use newsreel_host::{Clock, Disk, FakeClock, MemoryDisk, OpenMode, read_whole, replace_file};
use newsreel_service::Outcome;

use crate::put_back::{contents, put_back};
use crate::segments::segments;
use crate::world::{World, article, config, open_on};

const COUNT: usize = 40;

fn path(name: &str) -> PathBuf {
    Path::new("/spool/buffers").join(name)
}

fn octets(disk: &MemoryDisk, name: &str) -> Vec<u8> {
    read_whole(disk, &path(name), 8 << 20).unwrap()
}

/// No start was possible until somebody removed both files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_register_that_is_damaged_with_its_copy_is_made_again() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(2 << 20));
    let sent: Vec<_> = (0..COUNT).map(|n| article(n, "misc.test")).collect();
    assert_eq!(world.send(&sent).await, [Outcome::Accepted; COUNT]);
    let lines = world.lines("misc.test").await;
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    drop(world);
    let before = octets(&memory, "register");
    for name in ["register", "register.copy"] {
        memory
            .corrupt(&path(name), 0, &vec![b'x'; before.len()])
            .unwrap();
    }
    // A disk that is not mounted now is not taken for one that never was.
    let buffer = octets(&memory, "C1");
    memory.remove(&path("C1")).unwrap();
    let error = refusal(&memory, &config, &clock);
    assert!(
        error.contains("buffer C1 ") && error.contains("register"),
        "{error}"
    );
    assert!(!memory.exists(&path("C1")).unwrap());
    assert!(octets(&memory, "register").starts_with(b"xxx"));
    let again = memory.open(&path("C1"), OpenMode::CreateNew).unwrap();
    again.write_at(&buffer, 0).unwrap();
    let mut world = open_on(Arc::new(memory.clone()), &config, &clock);
    for _ in 0..2 {
        assert!(world.lines("misc.test").await == lines);
        assert_eq!(world.problems(), [""; 0]);
        assert_eq!(octets(&memory, "register"), before);
        assert_eq!(octets(&memory, "register.copy"), before);
        for aside in ["register.damaged", "register.copy.damaged"] {
            assert!(octets(&memory, aside).starts_with(b"xxx"), "{aside}");
        }
        world = world.restart();
    }
}

/// A set of segments whose disk was not mounted began anew, under an id that another may have had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_of_segments_is_not_begun_anew_while_the_register_is_in_doubt() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), segments(|_| ()));
    let sent: Vec<_> = (0..COUNT).map(|n| article(n, "misc.test")).collect();
    assert_eq!(world.send(&sent).await, [Outcome::Accepted; COUNT]);
    let lines = world.lines("misc.test").await;
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    world.engine.shutdown().unwrap();
    drop(world);
    let before = octets(&memory, "register");
    for name in ["register", "register.copy"] {
        let damage = vec![b'x'; before.len()];
        memory.corrupt(&path(name), 0, &damage).unwrap();
    }
    let dir = Path::new("/spool/segments/main");
    let unmounted = unmount(&memory, dir);
    let error = refusal(&memory, &config, &clock);
    assert!(
        error.contains("set \"main\" has no files") && error.contains("register"),
        "{error}"
    );
    assert_eq!(contents(&memory, dir).len(), 0);
    put_back(&memory, &[], &unmounted);
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    assert!(world.lines("misc.test").await == lines);
    assert_eq!(octets(&memory, "register"), before);
    assert_eq!(world.problems(), [""; 0]);
}

/// What a spool has in a directory is away, as when its disk is not mounted.
fn unmount(disk: &MemoryDisk, dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let there = contents(disk, dir);
    there
        .iter()
        .for_each(|(path, _)| disk.remove(path).unwrap());
    there
}

fn refusal(memory: &MemoryDisk, config: &EngineConfig, clock: &Arc<FakeClock>) -> String {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let opened = Engine::open(config.clone(), disk, clock, &mut |_, _, _| {});
    opened.map(|_| ()).unwrap_err().to_string()
}

/// A set went on below the mount point: what it took there was hidden when the disk was back, and segments that came back were dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_whose_disk_is_not_mounted_is_not_begun_anew() {
    for method in ["segment", "tradspool", "md5spool", "timehash"] {
        let memory = MemoryDisk::new();
        let config = segments(|set| {
            set.method = method.to_owned();
            set.directory = Some(PathBuf::from("/disk/set"));
        });
        let world = World::on(Arc::new(memory.clone()), config);
        let sent: Vec<_> = (0..COUNT).map(|n| article(n, "misc.test")).collect();
        assert_eq!(world.send(&sent).await, [Outcome::Accepted; COUNT]);
        let lines = world.lines("misc.test").await;
        let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
        world.engine.shutdown().unwrap();
        drop(world);
        let dir = Path::new("/disk/set");
        let away = unmount(&memory, dir);
        for _ in 0..2 {
            let error = refusal(&memory, &config, &clock);
            assert!(error.contains("is its disk mounted?"), "{method}: {error}");
            assert!(error.contains("`umount /disk/set`"), "{method}: {error}");
            assert_eq!(contents(&memory, dir).len(), 0, "{method}");
        }
        put_back(&memory, &[], &away);
        let world = open_on(Arc::new(memory.clone()), &config, &clock);
        assert!(world.lines("misc.test").await == lines, "{method}");
        assert_eq!(world.problems(), [""; 0], "{method}");
        world.engine.shutdown().unwrap();
        drop(world);
        // Another set's, or one that is damaged; and whoever says so begins anew.
        let mark = dir.join(".newsreel-set");
        let other = contents(&memory, dir).into_iter();
        let other = other.filter(|(path, _)| *path == mark).collect::<Vec<_>>();
        let mut text = String::from_utf8(other[0].1.clone()).unwrap();
        text = text.replacen("main", "text", 1);
        let said = text.trim_end().rsplit_once(' ').unwrap().0;
        let text = format!("{said} {:08x}\n", crc32c(said.as_bytes()));
        replace_file(&memory, &mark, text.as_bytes()).unwrap();
        let error = refusal(&memory, &config, &clock);
        assert!(error.contains("set \"text\""), "{method}: {error}");
        unmount(&memory, dir);
        replace_file(&memory, &mark, b"").unwrap();
        let world = open_on(Arc::new(memory.clone()), &config, &clock);
        assert_eq!(
            world.send(&[article(5000, "misc.test")]).await,
            [Outcome::Accepted]
        );
        let marks = contents(&memory, dir).into_iter();
        let marks: Vec<_> = marks.filter(|(path, _)| *path == mark).collect();
        assert_eq!(marks, other, "{method}");
    }
}

/// A spool of an earlier version gets its marks where it has something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_without_a_mark_gets_one_where_its_files_are() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), segments(|_| ()));
    let sent: Vec<_> = (0..COUNT).map(|n| article(n, "misc.test")).collect();
    assert_eq!(world.send(&sent).await, [Outcome::Accepted; COUNT]);
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    world.engine.shutdown().unwrap();
    drop(world);
    let earlier = || {
        for name in ["register", "register.copy"] {
            let text = String::from_utf8(octets(&memory, name)).unwrap();
            let lines = text.split_once('\n').unwrap().1.replace(" marked", "");
            let text = format!(
                "newsreel buffers 4 {:08x}\n{lines}",
                crc32c(lines.as_bytes())
            );
            replace_file(&memory, &path(name), text.as_bytes()).unwrap();
        }
        let dir = Path::new("/spool/segments/main");
        memory.remove(&dir.join(".newsreel-set")).unwrap();
        dir
    };
    let dir = earlier();
    drop(open_on(Arc::new(memory.clone()), &config, &clock));
    assert!(memory.exists(&dir.join(".newsreel-set")).unwrap());
    earlier();
    let away = unmount(&memory, dir);
    drop(open_on(Arc::new(memory.clone()), &config, &clock));
    assert!(!memory.exists(&dir.join(".newsreel-set")).unwrap());
    put_back(&memory, &[], &away);
    drop(open_on(Arc::new(memory.clone()), &config, &clock));
    unmount(&memory, dir);
    let error = refusal(&memory, &config, &clock);
    assert!(error.contains("is its disk mounted?"), "{error}");
}
