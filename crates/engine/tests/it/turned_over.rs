//! Directories of groups that somebody has turned over with Usenetfs behind the server's back: nothing counts as removed, and nothing is removed.

use std::path::Path;
use std::sync::Arc;

use newsreel_engine::{ArticleRef, EngineConfig, Reason, ScrubReport, Withdrawal};
use newsreel_host::{Disk, Folder, RealDisk};
use newsreel_service::Outcome;

use crate::files::files_config;
use crate::world::{World, article, between_runs};

const COUNT: usize = 12;
const ATTRIBUTE: &str = "user.usenetfs";

fn config(dir: &Path) -> EngineConfig {
    let mut config = files_config("tradspool", |set| set.directory = Some(dir.join("news")));
    config.spool = dir.join("spool");
    config
}

async fn feed(world: &World) {
    let articles: Vec<_> = (0..COUNT).map(|n| article(n, "misc.test")).collect();
    let outcomes = world.send(&articles).await;
    assert_eq!(outcomes, [Outcome::Accepted; COUNT]);
}

async fn alive(world: &World) -> usize {
    let mut alive = 0;
    for n in 0..COUNT {
        let text = world.by_id(&format!("<{n}@t.example>")).await;
        alive += usize::from(text.is_some());
    }
    alive
}

/// Numbers begin with 1.
fn moved(group: &Path, from: &str, to: &str) {
    RealDisk.make_dirs(&group.join(to)).unwrap();
    for number in 1..=COUNT {
        let name = number.to_string();
        RealDisk
            .rename(&group.join(from).join(&name), &group.join(to).join(&name))
            .unwrap();
    }
}

fn mark(group: &Path, text: &str) {
    let folder = Folder::open(group).unwrap();
    folder.set_attribute(ATTRIBUTE, text.as_bytes()).unwrap();
    folder.set_mode(0o4755).unwrap();
}

fn lying(group: &Path) -> usize {
    let here = RealDisk.list(group).unwrap();
    let (dirs, files): (Vec<_>, Vec<_>) = here.into_iter().partition(|entry| entry.is_dir);
    let below = dirs.iter().map(|dir| lying(&group.join(&dir.name)));
    files.len() + below.sum::<usize>()
}

fn scrub(world: &World) -> ScrubReport {
    world.engine.scrub(&[], 0, &mut |_, _| true).unwrap()
}

/// The articles were taken for removed and withdrawn; then what lay where the conversion had brought it was removed as theirs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_converted_group_loses_nothing() {
    for is_running in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("news/misc/test");
        let mut world = World::on(Arc::new(RealDisk), config(dir.path()));
        feed(&world).await;
        let turn = |_: &dyn Disk| {
            moved(&group, "", "r0");
            mark(&group, "1 range1024");
        };
        match is_running {
            true => turn(&RealDisk),
            false => world = between_runs(world, turn),
        }
        assert_eq!(alive(&world).await, COUNT);
        for _ in 0..2 {
            let report = scrub(&world);
            assert_eq!(
                (report.withdrawn, report.damaged.len()),
                (0, 0),
                "{report:?}"
            );
            let told = report.headers.join("\n");
            assert!(
                told.contains(&group.display().to_string()) && told.contains("convert off"),
                "{told}"
            );
            assert!(!told.contains("no card leads"), "{told}");
        }
        let world = world.restart();
        assert_eq!((alive(&world).await, lying(&group)), (COUNT, COUNT));
        assert_eq!(world.problems(), Vec::<String>::new());
    }
}

/// What somebody moved away within the set is withdrawn, as no reader can be given it; its files, perhaps the only copies, were removed then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_moved_away_is_not_removed() {
    let dir = tempfile::tempdir().unwrap();
    let group = dir.path().join("news/misc/test");
    let world = World::on(Arc::new(RealDisk), config(dir.path()));
    feed(&world).await;
    moved(&group, "", "old");
    for _ in 0..2 {
        let told = scrub(&world).headers.join("\n");
        let stay = format!("no card leads: {COUNT}, ");
        assert!(told.contains(&stay), "{told}");
        assert_eq!((alive(&world).await, lying(&group)), (0, COUNT));
    }
}

/// While it is on its way nobody finds it, and behind that everybody does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversion_that_was_killed_withdraws_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let group = dir.path().join("news/misc/test");
    let world = World::on(Arc::new(RealDisk), config(dir.path()));
    feed(&world).await;
    mark(&group, "1 convert flat range1024 scatter");
    moved(&group, "", ".usenetfs-convert/r0");
    assert_eq!(alive(&world).await, 0);
    let report = scrub(&world);
    assert_eq!(
        (report.withdrawn, report.damaged.len()),
        (0, COUNT),
        "{report:?}"
    );
    assert_eq!(lying(&group), COUNT);
    let world = between_runs(world, |_| {
        moved(&group, ".usenetfs-convert/r0", "r0");
        mark(&group, "1 range1024");
    });
    assert_eq!(alive(&world).await, COUNT);
    let report = scrub(&world);
    assert_eq!(
        (report.withdrawn, report.damaged.len()),
        (0, 0),
        "{report:?}"
    );
}

/// What was cancelled meanwhile stays for as long as the directory is marked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_removed_where_a_directory_is_marked() {
    let dir = tempfile::tempdir().unwrap();
    let group = dir.path().join("news/misc/test");
    let world = World::on(Arc::new(RealDisk), config(dir.path()));
    feed(&world).await;
    moved(&group, "", "r0");
    mark(&group, "1 range1024");
    let gone = [ArticleRef::Id("<3@t.example>".to_owned())];
    let outcomes = world.engine.withdraw(&gone, Reason::Cancelled).unwrap();
    assert_eq!(outcomes, [Withdrawal::Done]);
    let world = world.restart();
    scrub(&world);
    assert_eq!((alive(&world).await, lying(&group)), (COUNT - 1, COUNT));
    // Taken back, what is alive is as any other; of what was cancelled nothing says any more where it was to lie, so it is told of and stays.
    moved(&group, "r0", "");
    let folder = Folder::open(&group).unwrap();
    folder.set_mode(0o755).unwrap();
    folder.remove_attribute(ATTRIBUTE).unwrap();
    let report = scrub(&world);
    assert_eq!((alive(&world).await, lying(&group)), (COUNT - 1, COUNT));
    let told = report.headers.join("\n");
    assert!(told.contains("no card leads: 1, "), "{told}");
}
