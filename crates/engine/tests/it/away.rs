//! The directory of a whole set goes beside the server, and comes back: nothing is taken for lost, and nothing is removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_engine::{ArticleRef, EngineConfig, Reason, ScrubReport, Withdrawal};
use newsreel_host::{Disk, RealDisk, read_whole, replace_file};
use newsreel_service::{ArticleBuf, ArticleQuery, NewsService, Outcome, Part, ServiceError};
use newsreel_wire::MessageId;

use crate::segments::{large, segments};
use crate::world::World;

/// A quarter of them is in one segment.
const COUNT: usize = 120;
const MARK: &str = ".newsreel-set";

fn of_method(method: &str, spool: &Path, dir: &Path) -> EngineConfig {
    let mut config = segments(|set| {
        set.method = method.to_owned();
        set.directory = Some(dir.to_path_buf());
    });
    config.spool = spool.to_path_buf();
    config
}

fn articles(from: usize, count: usize) -> Vec<(String, Vec<u8>)> {
    (from..from + count).map(|n| large(n, 30_000)).collect()
}

/// Those that can be read, and those of which the server says that it cannot read them now.
async fn read(world: &World, count: usize) -> (Vec<usize>, usize) {
    let (mut alive, mut faults) = (Vec::new(), 0);
    for n in 0..count {
        let id = format!("<{n}@t.example>");
        let query = ArticleQuery::ById(MessageId::parse(id.as_bytes()).unwrap());
        let mut out = ArticleBuf::new();
        match world.service.article(query, Part::Whole, &mut out).await {
            Ok(found) => alive.extend(found.map(|_| n)),
            Err(ServiceError::Fault(_)) => faults += 1,
            Err(error) => panic!("{n}: {error:?}"),
        }
    }
    (alive, faults)
}

fn scrub(world: &World) -> ScrubReport {
    world.engine.scrub(&[], 0, &mut |_, _| true).unwrap()
}

fn state(world: &World) -> String {
    world.engine.status().buffers[0].state.clone()
}

/// All files below a directory that are no directories.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in RealDisk.list(dir).unwrap_or_default() {
        let path = dir.join(&entry.name);
        match entry.is_dir {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

/// The mark of another set.
fn of_another(mark: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(mark.to_vec()).unwrap();
    let said = text.replacen("main", "text", 1);
    let said = said.trim_end().rsplit_once(' ').unwrap().0;
    format!("{said} {:08x}\n", crc32c::crc32c(said.as_bytes())).into_bytes()
}

/// Articles were withdrawn at first sight, the scrub removed their files when they were back, and what came lay below the mount point.
/// In the place of the directory is nothing, a mount point, or the directory of another set.
async fn goes_and_comes_back(method: &str, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (dir, away) = (at("disk"), at("away"));
    let world = World::on(Arc::new(RealDisk), of_method(method, &at("spool"), &dir));
    let sent = world.send(&articles(0, COUNT)).await;
    assert_eq!(sent, [Outcome::Accepted; COUNT]);
    // What was open stays so.
    let world = world.restart();
    let before = files(&dir).len();
    let lines = world.lines("misc.test").await;
    RealDisk.rename(&dir, &away).unwrap();
    if what != "nothing" {
        RealDisk.create_dir_all(&dir).unwrap();
    }
    if what == "another" {
        let mark = read_whole(&RealDisk, &away.join(MARK), 1000).unwrap();
        replace_file(&RealDisk, &dir.join(MARK), &of_another(&mark)).unwrap();
    }
    let there = files(&dir);

    let (alive, faults) = read(&world, COUNT).await;
    assert_eq!(alive.len() + faults, COUNT, "{method}, {what}");
    assert!(faults >= COUNT / 2, "{method}, {what}: {faults}");
    let report = scrub(&world);
    assert_eq!(report.damaged, [], "{method}, {what}");
    assert!(report.unreadable[0].contains(MARK), "{report:?}");
    let said = state(&world);
    assert!(said.starts_with("suspended: cannot"), "{said}");
    assert!(said.contains(MARK) && said.contains("mount it"), "{said}");
    for outcome in world.send(&articles(COUNT, 10)).await {
        assert!(matches!(outcome, Outcome::Deferred(_)), "{outcome:?}");
    }
    let cancelled = ArticleRef::Id("<7@t.example>".to_owned());
    let cancelled = world.engine.withdraw(&[cancelled], Reason::Cancelled);
    assert_eq!(cancelled.unwrap(), [Withdrawal::Done], "{method}, {what}");
    assert_eq!(world.lines("misc.test").await.len(), lines.len() - 1);
    assert_eq!(files(&dir), there, "{method}, {what}");

    if what != "nothing" {
        RealDisk.rename(&dir, &at("stood in")).unwrap();
    }
    RealDisk.rename(&away, &dir).unwrap();
    let sent = world.send(&articles(COUNT, 10)).await;
    assert_eq!(sent, [Outcome::Accepted; 10], "{method}, {what}");
    assert_eq!(state(&world), "ok");
    let all: Vec<usize> = (0..COUNT + 10).filter(|n| *n != 7).collect();
    assert_eq!(read(&world, COUNT + 10).await, (all.clone(), 0));
    let report = scrub(&world);
    assert_eq!((report.damaged, report.unreadable), (vec![], vec![]));
    assert_eq!(world.problems(), [""; 0], "{method}, {what}");
    let world = world.restart();
    assert_eq!(read(&world, COUNT + 10).await, (all, 0));
    let report = scrub(&world);
    assert_eq!((report.damaged, report.unreadable), (vec![], vec![]));
    if method != "segment" {
        // The file of the one that was cancelled went, and its catalogue may have one more.
        assert!(files(&dir).len() - before - 9 <= 1, "{method}, {what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_whose_directory_goes_beside_the_server_is_not_lost() {
    for method in ["segment", "tradspool", "md5spool", "timehash"] {
        goes_and_comes_back(method, "a mount point").await;
    }
    for what in ["nothing", "another"] {
        goes_and_comes_back("segment", what).await;
        goes_and_comes_back("tradspool", what).await;
    }
}

/// While nobody asks for an old article the only sign is the commit itself: what it made below the mount point was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_acknowledged_below_a_mount_point() {
    for method in ["segment", "timehash"] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (dir, away) = (at("disk"), at("away"));
        let world = World::on(Arc::new(RealDisk), of_method(method, &at("spool"), &dir));
        assert_eq!(world.send(&articles(0, 5)).await, [Outcome::Accepted; 5]);
        RealDisk.rename(&dir, &away).unwrap();
        RealDisk.create_dir_all(&dir).unwrap();
        for outcome in world.send(&articles(5, 40)).await {
            assert!(matches!(outcome, Outcome::Deferred(_)), "{outcome:?}");
        }
        assert_eq!(files(&dir), [""; 0].map(PathBuf::from), "{method}");
        RealDisk.rename(&dir, &at("stood in")).unwrap();
        RealDisk.rename(&away, &dir).unwrap();
        assert_eq!(world.send(&articles(5, 40)).await, [Outcome::Accepted; 40]);
        assert_eq!(read(&world, 45).await.0.len(), 45);
        assert_eq!(world.problems(), [""; 0], "{method}");
    }
}
