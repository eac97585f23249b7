//! The register of buffers, damaged with its copy: it is made again, and nothing is taken for new that may have been there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_engine::Engine;
use newsreel_host::{Clock, Disk, MemoryDisk, OpenMode, read_whole};
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
    let as_clock = Arc::clone(&clock) as Arc<dyn Clock>;
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let opened = Engine::open(config.clone(), disk, as_clock, &mut |_, _, _| {});
    let error = opened.map(|_| ()).unwrap_err().to_string();
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
    let unmounted: Vec<_> = contents(&memory, dir);
    unmounted
        .iter()
        .for_each(|(path, _)| memory.remove(path).unwrap());
    let as_clock = Arc::clone(&clock) as Arc<dyn Clock>;
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let opened = Engine::open(config.clone(), disk, as_clock, &mut |_, _, _| {});
    let error = opened.map(|_| ()).unwrap_err().to_string();
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
