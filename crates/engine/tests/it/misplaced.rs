//! What others put in the place of an article's file, or of a directory above it: nobody waits for it, it is not served, and it is not
//! removed.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::{ArticleRef, EngineConfig, Reason, Relocation, ScrubReport, Withdrawal};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Disk, MemoryDisk, Op, OpenMode, RealDisk, read_whole, replace_file};
use newsreel_service::{ArticleQuery, Outcome, Part};
use newsreel_store::SetConfig;
use newsreel_store::methods::METHODS;
use newsreel_wire::MessageId;

use crate::world::{World, article, between_runs, config};

/// A set in a directory of its own, whose articles are files.
fn of_method(method: &str, folder: &Path) -> EngineConfig {
    let mut config = config(4 << 20);
    config.spool = folder.join("spool");
    config.store.buffers.clear();
    let set = &mut config.store.sets[0];
    set.buffers.clear();
    method.clone_into(&mut set.method);
    set.directory = Some(folder.join("news"));
    config
}

fn methods() -> impl Iterator<Item = &'static str> {
    let in_files = METHODS.iter().filter(|method| method.in_files);
    in_files.map(|method| method.name)
}

/// The file of each article below a directory: those of number 0, 1, ...
fn files(disk: &dyn Disk, dir: &Path, count: usize) -> Vec<PathBuf> {
    let (mut dirs, mut found) = (vec![dir.to_path_buf()], vec![PathBuf::new(); count]);
    while let Some(dir) = dirs.pop() {
        for entry in disk.list(&dir).unwrap() {
            let path = dir.join(&entry.name);
            if entry.is_dir {
                dirs.extend((entry.name != ".catalogue").then_some(path));
                continue;
            }
            if entry.name == ".newsreel-set" {
                continue;
            }
            let octets = read_whole(disk, &path, 1 << 20).unwrap();
            let text = String::from_utf8(octets).unwrap();
            let (_, number) = text.split_once("Subject: number ").unwrap();
            let number: usize = number.lines().next().unwrap().parse().unwrap();
            found[number] = path;
        }
    }
    found
}

#[expect(
    clippy::disallowed_methods,
    reason = "a disk makes no symbolic links that lead anywhere: people do"
)]
fn symlink(to: &Path, at: &Path) {
    std::os::unix::fs::symlink(to, at).unwrap();
}

/// What has a name, whatever it leads to; whether it is a symbolic link.
#[expect(clippy::disallowed_methods, reason = "a disk follows symbolic links")]
fn entry(at: &Path) -> Option<bool> {
    let facts = std::fs::symlink_metadata(at).ok();
    facts.map(|facts| facts.is_symlink())
}

/// What stands in the places of the first files; the last is the only one that has octets.
const MISPLACED: [&str; 8] = [
    "a pipe",
    "a socket",
    "a directory",
    "a link to nowhere",
    "a link to itself",
    "a link to a device",
    "a link to a pipe",
    "a link to a file",
];

/// Puts something in the place of a file.
fn put(what: &str, at: &Path, elsewhere: &Path) {
    RealDisk.remove(at).unwrap();
    let pipe = |path: &Path| {
        let made = Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    };
    match what {
        "a pipe" => pipe(at),
        "a socket" => drop(UnixListener::bind(at).unwrap()),
        "a directory" => RealDisk.create_dir_all(at).unwrap(),
        "a link to nowhere" => symlink(&elsewhere.join("nowhere"), at),
        "a link to itself" => symlink(at, at),
        "a link to a device" => symlink(Path::new("/dev/zero"), at),
        "a link to a pipe" => {
            pipe(&elsewhere.join("pipe"));
            symlink(&elsewhere.join("pipe"), at);
        }
        _ => {
            let text = b"From: root\nSubject: number 7\n\nnobody's business\n";
            replace_file(&RealDisk, &elsewhere.join("secret"), text).unwrap();
            symlink(&elsewhere.join("secret"), at);
        }
    }
}

async fn is_there(world: &World, n: usize, part: Part) -> bool {
    let id = format!("<{n}@t.example>");
    let query = ArticleQuery::ById(MessageId::parse(id.as_bytes()).unwrap());
    world.read(query, part).await.is_some()
}

async fn alive(world: &World, count: usize) -> Vec<usize> {
    let mut alive = Vec::new();
    for n in 0..count {
        if is_there(world, n, Part::Whole).await {
            alive.push(n);
        }
    }
    alive
}

fn scrub(world: &World) -> ScrubReport {
    let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    assert_eq!(report.unreadable, Vec::<String>::new());
    report
}

/// Someone who puts a pipe where an article was does not stop a server, and a link makes it serve no other file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_in_an_articles_place_is_not_waited_for_served_or_removed() {
    const COUNT: usize = 12;
    let last = MISPLACED.len() - 1;
    for (method, scrubs_first) in methods().flat_map(|it| [(it, false), (it, true)]) {
        let folder = tempfile::Builder::new().prefix("nr").tempdir().unwrap();
        let (news, elsewhere) = (folder.path().join("news"), folder.path().join("else"));
        RealDisk.create_dir_all(&elsewhere).unwrap();
        let world = World::on(Arc::new(RealDisk), of_method(method, folder.path()));
        let articles: Vec<_> = (0..COUNT).map(|n| article(n, "misc.test")).collect();
        assert_eq!(world.send(&articles).await, [Outcome::Accepted; COUNT]);
        let made = files(&RealDisk, &news, COUNT);
        let world = world.restart();
        for (what, at) in MISPLACED.iter().zip(&made) {
            put(what, at, &elsewhere);
        }
        let secret = read_whole(&RealDisk, &elsewhere.join("secret"), 1 << 10).unwrap();
        let whole: Vec<usize> = (MISPLACED.len()..COUNT).collect();
        let looked = async {
            if scrubs_first {
                let told = scrub(&world);
                let damaged: Vec<_> = told.damaged.iter().map(|it| &it.message_id).collect();
                let expected = Some(format!("<{last}@t.example>"));
                assert_eq!(damaged, [&expected], "{method}: {told:?}");
            }
            alive(&world, COUNT).await
        };
        let looked = tokio::time::timeout(Duration::from_secs(60), looked);
        assert_eq!(looked.await.expect("nobody waits"), whole, "{method}");
        // All but the last count as removed; that one is damaged.
        let lines = world.lines("misc.test").await;
        assert_eq!(lines.len(), COUNT - last, "{method}");
        assert!(lines[0].contains(&format!("<{last}@t.example>")));
        assert_eq!(scrub(&world).damaged.len(), 1, "{method}");
        let which = ArticleRef::Id(format!("<{last}@t.example>"));
        let withdrawn = world.engine.withdraw(&[which], Reason::Cancelled);
        assert_eq!(withdrawn.unwrap(), [Withdrawal::Done], "{method}");
        // Their numbers, and so their names, are not given again.
        let more = [article(COUNT, "misc.test")];
        assert_eq!(world.send(&more).await, [Outcome::Accepted]);
        let world = world.restart();
        let left: Vec<usize> = (MISPLACED.len()..=COUNT).collect();
        assert_eq!(alive(&world, COUNT + 1).await, left, "{method}");
        assert_eq!(world.problems(), Vec::<String>::new(), "{method}");
        for (what, at) in MISPLACED.iter().zip(&made) {
            assert!(entry(at).is_some(), "{method}: {what} is gone");
        }
        let still = read_whole(&RealDisk, &elsewhere.join("secret"), 1 << 10);
        assert_eq!(still.unwrap(), secret, "{method}");
    }
}

/// What may have become of the only file of a set of segments, or of a catalogue: nothing in it can be a record.
const SPOILT: [&str; 9] = [
    "cut to 0",
    "cut to 300",
    "a text",
    "a pipe",
    "a directory",
    "a link to nowhere",
    "a link to itself",
    "a link to a device",
    "a link to a file",
];

fn spoil(what: &str, at: &Path, elsewhere: &Path) {
    let cut = what.strip_prefix("cut to ");
    if let Some(octets) = cut {
        let file = RealDisk.open(at, OpenMode::ReadWrite).unwrap();
        file.set_len(octets.parse().unwrap()).unwrap();
    } else if what == "a text" {
        replace_file(&RealDisk, at, &b"hello world\n".repeat(25)).unwrap();
    } else {
        put(what, at, elsewhere);
    }
}

/// What stands at a path or was set aside there, and its octets where it has some.
fn remains(at: &Path) -> (Option<bool>, Vec<u8>) {
    let aside = PathBuf::from(format!("{}.aside", at.display()));
    let at = entry(&aside).map_or(at, |_| &aside);
    let octets = read_whole(&RealDisk, at, 1 << 10).unwrap_or_default();
    (entry(at), octets)
}

/// A segment that was cut to nothing, or a link to a disk that is not there, ended the start of the whole server where the set had no
/// other file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_segment_is_lost_alone_whatever_stands_in_its_place() {
    for (what, level) in SPOILT.iter().flat_map(|it| [(it, None), (it, Some(3))]) {
        let folder = tempfile::Builder::new().prefix("nr").tempdir().unwrap();
        let mut config = of_method("segment", folder.path());
        config.store.sets[0].segment_octets = 1 << 20;
        config.store.sets[0].compression_level = level;
        let at = folder.path().join("news/00000001.seg");
        let world = World::on(Arc::new(RealDisk), config);
        let articles = [0, 1, 2].map(|n| article(n, "misc.test"));
        assert_eq!(world.send(&articles).await, [Outcome::Accepted; 3]);
        let mut before = None;
        let world = between_runs(world, |_| {
            spoil(what, &at, folder.path());
            before = Some(remains(&at));
        });
        let before = before.unwrap();
        assert_eq!(alive(&world, 3).await, [0; 0], "{what}");
        let state = world.engine.status().buffers[0].state.clone();
        assert!(state.contains("00000001.seg"), "{what}: {state}");
        assert_eq!(scrub(&world).damaged.len(), 3, "{what}");
        let more = [3, 4].map(|n| article(n, "misc.test"));
        assert_eq!(world.send(&more).await, [Outcome::Accepted; 2], "{what}");
        let world = world.restart();
        assert_eq!(alive(&world, 5).await, [3, 4], "{what}");
        assert_eq!(remains(&at), before, "{what}: it was overwritten");
        assert!(before.0.is_some(), "{what}");
    }
}

/// So did the only file of a catalogue, though each card in it can be made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_file_of_a_catalogue_is_made_again_whatever_stands_in_its_place() {
    for (what, method) in SPOILT.iter().flat_map(|it| methods().map(move |m| (it, m))) {
        let folder = tempfile::Builder::new().prefix("nr").tempdir().unwrap();
        let at = folder.path().join("news/.catalogue/00000001.seg");
        let world = World::on(Arc::new(RealDisk), of_method(method, folder.path()));
        let articles = [0, 1, 2].map(|n| article(n, "misc.test"));
        assert_eq!(world.send(&articles).await, [Outcome::Accepted; 3]);
        let mut before = None;
        let world = between_runs(world, |_| {
            spoil(what, &at, folder.path());
            before = Some(remains(&at));
        });
        let before = before.unwrap();
        let state = world.engine.status().buffers[0].state.clone();
        assert_ne!(state, "ok", "{method}: {what}");
        assert_eq!(scrub(&world).damaged.len(), 0, "{method}: {what}");
        assert_eq!(alive(&world, 3).await, [0, 1, 2], "{method}: {what}");
        let more = [article(3, "misc.test")];
        assert_eq!(world.send(&more).await, [Outcome::Accepted], "{what}");
        let world = world.restart();
        assert_eq!(alive(&world, 4).await, [0, 1, 2, 3], "{method}: {what}");
        assert_eq!(remains(&at), before, "{method}: {what}: it was overwritten");
        assert_eq!(world.problems(), Vec::<String>::new(), "{method}: {what}");
    }
}

/// Articles for a group whose directory was a link to a disk that is not there kept the whole set from taking any: and STAT said that
/// those were there which ARTICLE did not give.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_leads_nowhere_keeps_out_its_own_articles_only() {
    for layouts in [vec![], vec!["misc.other range1024".to_owned()]] {
        let folder = tempfile::tempdir().unwrap();
        let mut config = of_method("tradspool", folder.path());
        config.store.sets[0].layouts = layouts;
        let (news, away) = (folder.path().join("news"), folder.path().join("away"));
        let world = World::on(Arc::new(RealDisk), config);
        let posted = |n: usize| article(n, ["misc.test", "misc.other"][n % 2]);
        let feed = |from: usize| [posted(from), posted(from + 1)];
        for from in [0, 2, 4] {
            assert_eq!(world.send(&feed(from)).await, [Outcome::Accepted; 2]);
        }
        let (others, at) = ([1, 3, 5], news.join("misc/other"));
        RealDisk.rename(&at, &away).unwrap();
        symlink(&folder.path().join("nowhere"), &at);
        for n in others {
            assert!(!is_there(&world, n, Part::Whole).await, "{n}");
            for part in [Part::Stat, Part::Head] {
                assert!(!is_there(&world, n, part).await, "{n}: {part:?}");
            }
        }
        assert_eq!(world.lines("misc.other").await.len(), 3, "nothing is lost");
        let mut world = world;
        for from in [10, 12] {
            let outcomes = world.send(&feed(from)).await;
            assert_eq!(outcomes[0], Outcome::Accepted, "{from}");
            assert!(matches!(outcomes[1], Outcome::Deferred(_)), "{outcomes:?}");
            world = world.restart();
        }
        let at_once = world.send(&[article(20, "misc.test,misc.other")]).await;
        assert!(matches!(at_once[..], [Outcome::Deferred(_)]), "{at_once:?}");
        let damaged = scrub(&world).damaged;
        assert_eq!(damaged.len(), 3, "{damaged:?}");
        assert!(
            damaged
                .iter()
                .all(|it| it.means.contains("its disk is missing"))
        );
        RealDisk.remove(&at).unwrap();
        symlink(&away, &at);
        for n in others {
            assert!(is_there(&world, n, Part::Stat).await, "{n}");
            assert!(is_there(&world, n, Part::Head).await, "{n}");
        }
        assert_eq!(alive(&world, 6).await, [0, 1, 2, 3, 4, 5]);
        world.wait_s(61);
        assert_eq!(world.send(&feed(14)).await, [Outcome::Accepted; 2]);
        assert_eq!(scrub(&world).damaged.len(), 0);
        assert_eq!(world.problems(), Vec::<String>::new());
    }
}

/// An article for each of two groups.
fn both(from: usize) -> [(String, Vec<u8>); 2] {
    [article(from, "misc.test"), article(from + 1, "misc.other")]
}

/// A pipe in the place of a group's directory, or a link that leads to itself, kept the whole set from taking articles.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_stands_in_a_directorys_place_keeps_out_its_own_articles_only() {
    for what in ["a pipe", "a socket", "a link to itself"] {
        let folder = tempfile::Builder::new().prefix("nr").tempdir().unwrap();
        let at = folder.path().join("news/misc/other");
        let world = World::on(Arc::new(RealDisk), of_method("tradspool", folder.path()));
        assert_eq!(
            world.send(&[article(0, "misc.test")]).await,
            [Outcome::Accepted]
        );
        replace_file(&RealDisk, &at, b"").unwrap();
        put(what, &at, folder.path());
        let outcomes = world.send(&both(1)).await;
        assert_eq!(outcomes[0], Outcome::Accepted, "{what}");
        if what == "a link to itself" {
            assert!(matches!(outcomes[1], Outcome::Deferred(_)), "{outcomes:?}");
            RealDisk.remove(&at).unwrap();
            assert_eq!(
                world.send(&[article(2, "misc.other")]).await,
                [Outcome::Accepted]
            );
        } else {
            assert_eq!(outcomes[1], Outcome::Accepted, "{what}");
            let later = at.with_file_name("other+");
            assert_eq!(
                entry(&later),
                Some(false),
                "{what} stays under a later name"
            );
        }
        assert_eq!(alive(&world, 3).await, [0, 1, 2], "{what}");
        assert_eq!(world.problems(), Vec::<String>::new(), "{what}");
    }
}

/// A directory that an administrator had made for a group, and the server might not write, kept the whole set from taking articles.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_of_somebody_else_keeps_out_its_own_articles_only() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let world = World::on(
        Arc::new(faulty.clone()),
        of_method("tradspool", Path::new("/")),
    );
    faulty.add(Fault::new(Op::Open, "misc/other/", Effect::Denied).forever());
    for from in [0, 2] {
        let outcomes = world.send(&both(from)).await;
        assert_eq!(outcomes[0], Outcome::Accepted);
        assert!(matches!(outcomes[1], Outcome::Deferred(_)), "{outcomes:?}");
    }
    faulty.clear();
    world.wait_s(61);
    // With the first commit it is known to be a while ago.
    let mut outcomes = world.send(&both(4)).await;
    for from in (6..60).step_by(2) {
        if outcomes == [Outcome::Accepted; 2] {
            break;
        }
        world.wait_s(30);
        outcomes = world.send(&both(from)).await;
    }
    assert_eq!(outcomes, [Outcome::Accepted; 2]);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// The symbolic link of a crosspost stayed for ever when somebody had removed the file on the other disk.  Where two file systems are to be had, as
/// memory and a disk mostly are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_to_another_disk_goes_with_its_article_though_its_file_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let Ok(there) = tempfile::tempdir_in("/dev/shm") else {
        return println!("skipped: there is no /dev/shm");
    };
    let system = |dir: &Path| RealDisk.file_system(dir).unwrap();
    if system(folder.path()) == system(there.path()) {
        return println!("skipped: /dev/shm is on the same file system");
    }
    let news = folder.path().join("news");
    RealDisk.create_dir_all(&news.join("misc")).unwrap();
    symlink(there.path(), &news.join("misc/other"));
    let world = World::on(Arc::new(RealDisk), of_method("tradspool", folder.path()));
    let groups = |n: usize| ["misc.test,misc.other", "misc.other"][n / 3];
    let articles = [0, 1, 2, 3].map(|n| article(n, groups(n)));
    assert_eq!(world.send(&articles).await, [Outcome::Accepted; 4]);
    let link = |n: usize| there.path().join(n.to_string());
    for n in 1..=3 {
        assert_eq!(entry(&link(n)), Some(true));
    }
    let world = world.restart();
    // Somebody's own link, which leads nowhere too, has the name of one.
    RealDisk.remove(&link(2)).unwrap();
    symlink(&folder.path().join("nowhere"), &link(2));
    for n in [1, 2] {
        RealDisk
            .remove(&news.join(format!("misc/test/{n}")))
            .unwrap();
    }
    // That it is the disk which had articles is known when one was seen there.
    assert!(is_there(&world, 3, Part::Whole).await);
    assert_eq!(alive(&world, 4).await, [2, 3]);
    assert_eq!(
        world.send(&[article(4, "misc.test")]).await,
        [Outcome::Accepted]
    );
    let stands = |n: usize| entry(&link(n)).is_some();
    assert_eq!([1, 2, 3, 4].map(stands), [false, true, true, true]);
    assert_eq!(world.lines("misc.other").await.len(), 2);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// A file in the place of a group's directory ended the scrub of the whole set, and so did one that its owner let nobody read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_opened_costs_the_scrub_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::on(Arc::new(RealDisk), of_method("tradspool", folder.path()));
    let articles = [0, 1, 2, 3].map(|n| article(n, ["misc.other", "misc.test"][n % 2]));
    assert_eq!(world.send(&articles).await, [Outcome::Accepted; 4]);
    let (at, away) = (
        folder.path().join("news/misc/other"),
        folder.path().join("away"),
    );
    RealDisk.rename(&at, &away).unwrap();
    replace_file(&RealDisk, &at, b"a note\n").unwrap();
    let report = scrub(&world);
    assert_eq!(
        (report.damaged.len(), report.articles),
        (2, 2),
        "{report:?}"
    );
    assert_eq!(alive(&world, 4).await, [1, 3]);
    assert_eq!(world.lines("misc.other").await.len(), 2, "nothing is lost");
    RealDisk.remove(&at).unwrap();
    RealDisk.rename(&away, &at).unwrap();
    assert_eq!(alive(&world, 4).await, [0, 1, 2, 3]);
    assert_eq!(scrub(&world).damaged.len(), 0);

    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let config = of_method("tradspool", Path::new("/"));
    let world = World::on(Arc::new(faulty.clone()), config);
    assert_eq!(world.send(&articles).await, [Outcome::Accepted; 4]);
    // Nobody's, with a name that an article may have.
    let stray = Path::new("/news/misc/test/77");
    memory.open(stray, OpenMode::CreateNew).unwrap();
    for part in ["misc/other/1", "misc/test/77"] {
        faulty.add(Fault::new(Op::Open, part, Effect::Denied).forever());
    }
    let report = scrub(&world);
    assert_eq!(
        (report.damaged.len(), report.articles),
        (1, 3),
        "{report:?}"
    );
    let damage = &report.damaged[0];
    assert_eq!(damage.file.as_deref(), Some("/news/misc/other/1"));
    // It had been told as lost.
    assert!(
        damage.to_string().contains(") may not be read: "),
        "{damage}"
    );
    assert!(
        damage
            .means
            .contains("give it to the user that newsreel runs as"),
        "{damage:?}"
    );
    faulty.clear();
    assert_eq!(scrub(&world).damaged.len(), 0);
    assert_eq!(alive(&world, 4).await, [0, 1, 2, 3]);
}

/// Behind a symbolic link to a directory anything may lie, so nothing is removed there; but of what an ended move left, texts of cancelled
/// articles among it, nothing was told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_move_left_behind_a_link_is_told_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (news, away) = (folder.path().join("news"), folder.path().join("away"));
    for dir in [&news, &away.join("test")] {
        RealDisk.create_dir_all(dir).unwrap();
    }
    symlink(&away, &news.join("misc"));
    let mut config = config(1 << 20);
    config.spool = folder.path().join("spool");
    // Another one has its own below the same link.
    for (name, directory) in [("files", news), ("others", away.join("others"))] {
        config.store.sets.push(SetConfig {
            name: name.to_owned(),
            method: "tradspool".to_owned(),
            directory: Some(directory),
            ..SetConfig::default()
        });
    }
    let world = World::on(Arc::new(RealDisk), config);
    let articles = [0, 1, 2, 3].map(|n| article(n, "misc.test"));
    assert_eq!(world.send(&articles[..3]).await, [Outcome::Accepted; 3]);
    let id = ArticleRef::Id(article(1, "").0);
    let cancelled = world.engine.withdraw(&[id], Reason::Cancelled);
    assert_eq!(cancelled.unwrap(), [const { Withdrawal::Done }]);
    let moves = Relocation {
        from: "main".to_owned(),
        to: "others".to_owned(),
        groups: None,
        dry_run: false,
    };
    let moved = world.engine.relocate(&moves, &mut |_, _| true).unwrap();
    assert_eq!(moved.articles, 2);
    // Of one that lies in the other set, of one that is gone, and of one that was never here.
    for n in [0, 1, 3] {
        replace_file(&RealDisk, &away.join(format!("test/{n}")), &articles[n].1).unwrap();
    }
    let told = scrub(&world).headers.concat();
    assert!(told.contains("no card leads: 2, first "), "{told}");
    for n in [0, 1, 3] {
        assert!(RealDisk.exists(&away.join(format!("test/{n}"))).unwrap());
    }
}
