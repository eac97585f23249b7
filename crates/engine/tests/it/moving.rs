//! Articles that move between sets: nothing that anybody is shown changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::scope;
use std::time::Duration;

use newsreel_engine::{
    ArticleRef, Engine, EngineConfig, ExpireRule, Mode, Reason, Relocated, Relocation, Withdrawal,
};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Disk, MemoryDisk, Op, OpenMode, read_whole};
use newsreel_service::{Outcome, Part};
use newsreel_store::SetConfig;
use newsreel_wire::Wildmat;

use crate::checking::lose;
use crate::damage::{self, long_article, wait_for_repair};
use crate::world::{World, article, config, open_on};

const DIR: &str = "/spool/articles/files";

/// Articles come to `main`, which is cyclic; `files` has them as files.
fn two_sets() -> EngineConfig {
    let mut config = config(4 << 20);
    config.store.sets.push(SetConfig {
        name: "files".to_owned(),
        method: "tradspool".to_owned(),
        ..SetConfig::default()
    });
    config
}

fn files(disk: &dyn Disk, dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in disk.list(dir).unwrap_or_default() {
        let path = dir.join(&entry.name);
        match entry.is_dir {
            true if entry.name != ".catalogue" => found.extend(files(disk, &path)),
            true => {}
            false if entry.name == ".newsreel-set" => {}
            false => found.push(path),
        }
    }
    found
}

fn groups(n: usize) -> &'static str {
    match n % 3 {
        0 => "misc.test,misc.other",
        1 => "misc.other",
        _ => "misc.test",
    }
}

async fn feed(world: &World, from: usize, count: usize) {
    let some = (from..from + count).map(|n| article(n, groups(n)));
    let some: Vec<_> = some.collect();
    let outcomes = world.send(&some).await;
    assert!(outcomes.iter().all(|it| *it == Outcome::Accepted));
}

/// Everything that readers see of the first so many.
async fn seen(world: &World, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    for n in 0..count {
        seen.extend(world.by_id(&format!("<{n}@t.example>")).await);
    }
    for group in ["misc.test", "misc.other"] {
        seen.extend(world.lines(group).await);
        for number in 1..=world.high(group) {
            let query = world.numbered(group, number).await;
            seen.extend(world.read(query, Part::Whole).await);
        }
    }
    seen
}

/// The same, or what is not, in few words.
fn assert_same(now: &[String], before: &[String], when: &str) {
    let differs = now
        .iter()
        .zip(before)
        .position(|(now, before)| now != before);
    let at = differs.unwrap_or(now.len().min(before.len()));
    assert!(
        now == before,
        "{when}: {} and {}, from {at} on: {:?} and {:?}",
        now.len(),
        before.len(),
        now.get(at),
        before.get(at)
    );
}

fn what(from: &str, to: &str, groups: Option<&str>) -> Relocation {
    Relocation {
        from: from.to_owned(),
        to: to.to_owned(),
        groups: groups.map(|groups| Wildmat::parse(groups).unwrap()),
        dry_run: false,
    }
}

fn relocate(world: &World, from: &str, to: &str, groups: Option<&str>) -> Relocated {
    let what = what(from, to, groups);
    world.engine.relocate(&what, &mut |_, _| true).unwrap()
}

fn cancel(world: &World, id: &str) {
    let gone = [ArticleRef::Id(id.to_owned())];
    let outcomes = world.engine.withdraw(&gone, Reason::Cancelled).unwrap();
    assert_eq!(outcomes, [Withdrawal::Done]);
}

fn cancel_all(world: &World, range: std::ops::Range<usize>) {
    range.for_each(|n| cancel(world, &format!("<{n}@t.example>")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_moved_is_served_as_before() {
    let world = World::new(two_sets());
    feed(&world, 0, 60).await;
    let before = seen(&world, 60).await;
    let moved = relocate(&world, "main", "files", None);
    assert_eq!(moved.articles, 60, "{moved:?}");
    assert_same(&seen(&world, 60).await, &before, "then");
    assert_eq!(world.problems(), Vec::<String>::new());
    assert!(files(world.disk.as_ref(), Path::new(DIR)).len() >= 60);
    let world = world.restart();
    assert_same(&seen(&world, 60).await, &before, "then");
    assert_eq!(world.problems(), Vec::<String>::new());
    // A set's number is its place in the configuration, and no more: the rest of a token says where an article is.
    let (mut config, disk) = (world.config.clone(), Arc::clone(&world.disk));
    let clock = Arc::clone(&world.clock);
    world.engine.shutdown().unwrap();
    drop(world);
    config.store.sets.swap(0, 1);
    let world = open_on(disk, &config, &clock);
    assert_eq!(world.problems(), Vec::<String>::new());
    // Back again: the files go.
    assert_eq!(relocate(&world, "files", "main", None).articles, 60);
    assert_same(&seen(&world, 60).await, &before, "then");
    feed(&world, 60, 1).await;
    assert_eq!(files(world.disk.as_ref(), Path::new(DIR)).len(), 0);
    assert_eq!(world.problems(), Vec::<String>::new());
    cancel(&world, "<3@t.example>");
    assert_eq!(world.by_id("<3@t.example>").await, None);
    let world = world.restart();
    assert_eq!(world.by_id("<3@t.example>").await, None);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// The log names where articles were; what the views and the store have of them by now is compared all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_moved_is_compared_where_it_is() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), two_sets());
    feed(&world, 0, 60).await;
    relocate(&world, "main", "files", None);
    let check = |world: &World| world.engine.check(&mut |_, _| {}).unwrap();
    let report = check(&world);
    assert_eq!((report.articles, report.rows), (60, 80), "{report:?}");
    let file = Path::new(DIR).join("misc/test/1");
    memory.flip_bit(&file, 40, 1).unwrap();
    let problems = world.problems();
    assert_eq!(problems.len(), 2, "the log's and the store's: {problems:?}");
    memory.flip_bit(&file, 40, 1).unwrap();
    assert!(check(&world).is_clean());
    world.seal();
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    let spool_id = world.engine.status().spool_id;
    drop(world);
    lose(&memory, &config, &spool_id, "overview");
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    let problems = world.problems();
    let complaint = "does not have it as number";
    let found = problems
        .iter()
        .filter(|problem| problem.contains(complaint));
    assert_eq!(found.count(), 80, "{problems:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_articles_of_the_groups_that_are_named_move() {
    let world = World::new(two_sets());
    feed(&world, 0, 30).await;
    let before = seen(&world, 30).await;
    // 0, 3, ... are in both groups.
    let mut only = what("main", "files", Some("misc.test"));
    only.dry_run = true;
    let checkpoint = world.engine.status().checkpoint;
    let would = world.engine.relocate(&only, &mut |_, _| true).unwrap();
    // It had one made, so as to count.
    assert_eq!(world.engine.status().checkpoint, checkpoint);
    // Some in packs and some not, each once; and as well by who only looks.
    world.seal();
    feed(&world, 30, 6).await;
    let more = world.engine.relocate(&only, &mut |_, _| true).unwrap();
    assert_eq!(more.articles, 24, "{more:?}");
    let all = Relocation {
        groups: None,
        ..only.clone()
    };
    let (disk, clock) = (Arc::clone(&world.disk), Arc::clone(&world.clock));
    let alone = Engine::open_read_only(world.config.clone(), disk, clock).unwrap();
    assert_eq!(alone.relocate(&only, &mut |_, _| true).unwrap(), more);
    assert_eq!(alone.relocate(&all, &mut |_, _| true).unwrap().articles, 36);
    cancel_all(&world, 30..36);
    let again = world.engine.relocate(&only, &mut |_, _| true).unwrap();
    assert_eq!(
        (again.articles, again.octets),
        (would.articles, would.octets)
    );
    let moved = relocate(&world, "main", "files", Some("misc.test"));
    assert_eq!(moved.articles, 20, "{moved:?}");
    assert_eq!((would.articles, would.left, would.is_cut), (20, 0, false));
    assert_same(&seen(&world, 30).await, &before, "then");
    let again = relocate(&world, "main", "files", Some("misc.test"));
    assert_eq!(again, Relocated::default());
    assert_eq!(relocate(&world, "main", "files", None).articles, 10);
    assert_same(&seen(&world, 30).await, &before, "then");
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Articles come to `main`, which is as large as they need; `small` is cyclic and is not.
fn large_and_small() -> EngineConfig {
    let mut config = config(8 << 20);
    let (mut buffer, set) = (config.store.buffers[0].clone(), SetConfig::default());
    buffer.name = "S".to_owned();
    buffer.octets = 2 << 20;
    buffer.block_octets = Some(4096);
    config.store.buffers.push(buffer);
    config.store.sets.push(SetConfig {
        name: "small".to_owned(),
        buffers: vec!["S".to_owned()],
        ..set
    });
    config
}

/// A move into a cyclic set that is smaller than what moved overwrote the first of it, and said that all was well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_moves_is_not_overwritten_by_what_moves_behind_it() {
    let world = World::new(large_and_small());
    feed_long(&world).await;
    let before = seen(&world, 40).await;
    let mut all = what("main", "small", None);
    let error = world.engine.relocate(&all, &mut |_, _| true).unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("40 articles take 2") && said.contains("nothing was moved"),
        "{said}"
    );
    all.dry_run = true;
    let would = world.engine.relocate(&all, &mut |_, _| true).unwrap();
    let room = would.room.clone().unwrap();
    // Of 72,000 octets and some, each in blocks of 4,096.
    assert_eq!(would.taken_octets, 40 * 18 * 4096, "{would:?}");
    assert!(room.keeps_octets.unwrap() < would.taken_octets, "{room:?}");
    assert_eq!(room.overwritten_octets, 0, "nothing is in it");
    assert_same(&seen(&world, 40).await, &before, "refused");
    // What is in no group is found on the way.
    let mut config = large_and_small();
    config.sequencer.mode = Mode::Transit;
    let world = World::new(config);
    feed_long(&world).await;
    let moved = relocate(&world, "main", "small", None);
    let stopped = moved.stopped.clone().unwrap_or_default();
    assert!(stopped.contains("set small would overwrite"), "{moved:?}");
    assert!(
        moved.is_cut && (5..28).contains(&moved.articles),
        "{moved:?}"
    );
    for n in 0..40 {
        assert!(
            world.by_id(&format!("<{n}@t.example>")).await.is_some(),
            "{n}"
        );
    }
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Older articles make room for what moves: that is told, in the octets that they take there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_makes_room_for_a_move_is_told() {
    let world = World::new(large_and_small());
    let groups = |n| ["misc.other", "misc.test"][n / 16];
    let some: Vec<_> = (0..32).map(|n| long_article(n, groups(n), 1000)).collect();
    world.send(&some).await;
    let told = |what: &Relocation| {
        let would = world.engine.relocate(what, &mut |_, _| true).unwrap();
        (would.taken_octets, would.room.unwrap())
    };
    let mut first = what("main", "small", Some("misc.other"));
    first.dry_run = true;
    let (taken, room) = told(&first);
    let free = room.free_octets.unwrap();
    assert_eq!((taken, room.overwritten_octets), (16 * 18 * 4096, 0));
    assert!((1_900_000..2 << 20).contains(&free), "{free}");
    first.dry_run = false;
    let moved = world.engine.relocate(&first, &mut |_, _| true).unwrap();
    assert_eq!((moved.articles, moved.taken_octets), (16, taken));
    first.groups = what("", "", Some("misc.test")).groups;
    first.dry_run = true;
    let (more, room) = told(&first);
    let left = room.free_octets.unwrap();
    assert!(left <= free - taken, "{left} of {free}, {taken} taken");
    assert_eq!(room.overwritten_octets, more - left);
    assert!(
        (1_000_000..1_300_000).contains(&room.alive_octets.unwrap()),
        "{room:?}"
    );
    // What is there and was withdrawn is nothing that goes.
    let gone: Vec<_> = (0..16)
        .map(|n| ArticleRef::Id(format!("<{n}@t.example>")))
        .collect();
    let reason = Reason::Cancelled;
    world.engine.withdraw(&gone, reason).unwrap();
    let (_, room) = told(&first);
    assert_eq!((room.overwritten_octets, room.alive_octets), (0, Some(0)));
}

/// A full set is said to be full, what was copied until then has moved, and the same again goes on when there is room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_into_a_full_set_says_so_and_goes_on_later() {
    let world = World::new(two_sets());
    feed_long(&world).await;
    let before = seen(&world, 40).await;
    // Reopened with so much room there for the set of files.
    let reopened = |world: World, octets: u64| {
        let (mut config, disk) = (world.config.clone(), Arc::clone(&world.disk));
        let clock = Arc::clone(&world.clock);
        world.engine.shutdown().unwrap();
        drop(world);
        let free = disk.free_bytes(Path::new("/spool")).unwrap();
        config.store.sets[1].free_octets_min = Some(free - octets);
        open_on(disk, &config, &clock)
    };
    let world = reopened(world, 2 << 20);
    let moved = relocate(&world, "main", "files", None);
    let stopped = moved.stopped.clone().unwrap_or_default();
    assert!(
        stopped.starts_with("there is no room in set files (/spool/articles/files"),
        "{moved:?}"
    );
    assert!(
        moved.is_cut && (5..38).contains(&moved.articles),
        "{moved:?}"
    );
    assert_same(&seen(&world, 40).await, &before, "then");
    let world = reopened(world, 1 << 30);
    let rest = relocate(&world, "main", "files", None);
    assert_eq!((rest.articles, rest.stopped), (40 - moved.articles, None));
    assert_same(&seen(&world, 40).await, &before, "then");
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Articles whose files somebody removed were passed over in silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn articles_whose_files_were_removed_are_told() {
    let world = World::new(two_sets());
    feed(&world, 0, 12).await;
    relocate(&world, "main", "files", None);
    // 1 and 2 are in one group each.
    for file in ["misc/other/2", "misc/test/2"] {
        world.disk.remove(&Path::new(DIR).join(file)).unwrap();
    }
    let mut back = what("files", "main", None);
    back.dry_run = true;
    let would = world.engine.relocate(&back, &mut |_, _| true).unwrap();
    assert_eq!((would.articles, would.gone, would.left), (10, 2, 0));
    let moved = relocate(&world, "files", "main", None);
    assert_eq!((moved.articles, moved.gone, moved.left), (10, 2, 0));
    // What an empty directory should have may come back: its disk is not mounted, perhaps, where nobody wrote down which have one.
    relocate(&world, "main", "files", Some("misc.test,!misc.other"));
    let list = Path::new(DIR).join(".catalogue/roots");
    world.disk.remove(&list).unwrap();
    let world = world.restart();
    for path in files(world.disk.as_ref(), &Path::new(DIR).join("misc/test")) {
        world.disk.remove(&path).unwrap();
    }
    let moved = relocate(&world, "files", "main", None);
    // Those that have another name are read by that; the one in the other group is surely gone.
    assert_eq!((moved.gone, moved.left), (1, 4), "{moved:?}");
    let why = moved.first_left.unwrap();
    assert!(why.contains("or its disk is not mounted"), "{why}");
}

/// Files of the set, and those of its catalogue that are of articles.
fn names(disk: &dyn Disk) -> usize {
    files(disk, Path::new(DIR)).len()
}

/// Articles so long that several requests take them: what the bar is told comes between.
async fn feed_long(world: &World) {
    let some = (0..40).map(|n| long_article(n, groups(n), 1000));
    let outcomes = world.send(&some.collect::<Vec<_>>()).await;
    assert!(outcomes.iter().all(|it| *it == Outcome::Accepted));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_cancelled_or_comes_meanwhile_is_as_it_should_be() {
    let world = World::new(two_sets());
    feed_long(&world).await;
    let mut told = Vec::new();
    let moved = world
        .engine
        .relocate(&what("main", "files", None), &mut |done, total| {
            if told.is_empty() && done > 0 {
                assert!(total >= 40, "{total}");
                // Copied already, and not yet.
                cancel(&world, "<1@t.example>");
                cancel(&world, "<39@t.example>");
                scope(|scope| {
                    let sent = scope.spawn(|| futures_block(feed(&world, 100, 3)));
                    sent.join().unwrap();
                });
            }
            told.extend(Some(done).filter(|done| *done > 0));
            true
        });
    assert!(told.len() > 1 && told.is_sorted(), "{told:?}");
    assert_eq!(moved.unwrap().articles, 40, "copies, which went at once");
    assert_eq!(world.by_id("<1@t.example>").await, None);
    assert_eq!(world.by_id("<39@t.example>").await, None);
    assert!(world.by_id("<101@t.example>").await.is_some());
    assert_eq!(world.problems(), Vec::<String>::new());
    // Of 40, 0, 3, ... 39 have two names.
    assert_eq!(names(world.disk.as_ref()), 54 - 1 - 2);
    let before = seen(&world, 103).await;
    let world = world.restart();
    assert_same(&seen(&world, 103).await, &before, "then");
    assert_eq!(relocate(&world, "main", "files", None).articles, 3);
    assert_same(&seen(&world, 103).await, &before, "then");
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Runs something to its end beside the tasks of a test.
fn futures_block<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_is_ended_goes_on_later() {
    let world = World::new(two_sets());
    feed_long(&world).await;
    let before = seen(&world, 40).await;
    let to_files = what("main", "files", None);
    let moved = world.engine.relocate(&to_files, &mut |done, _| done == 0);
    let moved = moved.unwrap();
    assert!(
        moved.is_cut && (1..40).contains(&moved.articles),
        "{moved:?}"
    );
    assert_same(&seen(&world, 40).await, &before, "then");
    let rest = relocate(&world, "main", "files", None);
    assert_eq!((rest.articles, rest.is_cut), (40 - moved.articles, false));
    assert_same(&seen(&world, 40).await, &before, "then");
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// What a rule lets go by its age goes by its arrival, not by when it was moved.
#[test]
fn what_moved_expires_by_its_arrival() {
    let (tell, told) = sync_channel(2);
    std::thread::spawn(move || {
        futures_block(moved_expires());
        tell.send(()).unwrap();
    });
    // Where an arrival is wrong something may wait for ever.
    let ended = told.recv_timeout(Duration::from_secs(60));
    ended.expect("it failed, or waits for ever");
}

async fn moved_expires() {
    let (mut config, day) = (two_sets(), 86_400);
    config.expire = vec![ExpireRule {
        groups: "*".to_owned(),
        keep_s: Some(3 * day),
        ..ExpireRule::default()
    }];
    config.expiry.rows_per_s = 0;
    config.articles.age_s_max = 0;
    let world = World::new(config);
    feed(&world, 0, 12).await;
    world.wait_s(2 * day);
    assert_eq!(relocate(&world, "main", "files", None).articles, 12);
    feed(&world, 20, 3).await;
    let expired = |world: &World| {
        let report = world.engine.expire(false, &mut |_, _| true);
        report.unwrap().articles
    };
    world.wait_s(day - 1);
    assert_eq!(expired(&world), 0);
    world.wait_s(1);
    assert_eq!(expired(&world), 12);
    assert_eq!(world.lines("misc.other").await.len(), 2);
    feed(&world, 30, 1).await;
    assert_eq!(names(world.disk.as_ref()), 0);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Who reads gets whole articles, all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_notice_nothing() {
    let world = World::new(two_sets());
    feed(&world, 0, 30).await;
    let before = seen(&world, 30).await;
    let is_over = AtomicBool::new(false);
    let rounds = scope(|scope| {
        let reader = scope.spawn(|| {
            let mut rounds = 0;
            while !is_over.load(Ordering::Relaxed) {
                assert_same(&futures_block(seen(&world, 30)), &before, "meanwhile");
                rounds += 1;
            }
            rounds
        });
        for _ in 0..3 {
            for (from, to) in [("main", "files"), ("files", "main")] {
                assert_eq!(relocate(&world, from, to, None).articles, 30);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(rounds > 0, "{rounds}");
    assert_eq!(world.problems(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn articles_in_no_group_move_too() {
    let world = World::new(two_sets());
    feed(&world, 0, 30).await;
    world.engine.remove_group("misc.other").unwrap();
    assert_eq!(relocate(&world, "main", "files", None).articles, 30);
    assert_eq!(world.problems(), Vec::<String>::new());
    let mut back = what("files", "main", Some("misc.*"));
    assert_eq!(
        world
            .engine
            .relocate(&back, &mut |_, _| true)
            .unwrap()
            .articles,
        20
    );
    back.groups = None;
    back.dry_run = true;
    assert_eq!(
        world
            .engine
            .relocate(&back, &mut |_, _| true)
            .unwrap()
            .articles,
        10
    );
    assert_eq!(relocate(&world, "files", "main", None).articles, 10);
    for n in 0..30 {
        assert!(
            world.by_id(&format!("<{n}@t.example>")).await.is_some(),
            "{n}"
        );
    }
    feed(&world, 60, 1).await;
    assert_eq!(names(world.disk.as_ref()), 0);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Twelve articles in a set, one of them cancelled, on a disk that may fail.
async fn about_to_move(from: &str) -> (MemoryDisk, FaultyDisk, World) {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let world = World::on(Arc::new(faulty.clone()), two_sets());
    feed(&world, 0, 12).await;
    if from == "files" {
        assert_eq!(relocate(&world, "main", "files", None).articles, 12);
    }
    cancel(&world, "<3@t.example>");
    world.wait_until("the removal of its files", |world| {
        [0, 14].contains(&names(world.disk.as_ref()))
    });
    (memory, faulty, world)
}

/// The same move again ends it, nobody is shown anything else, and only what moved lies in the files; where the removal of files of a
/// commit that failed may have been lost with the power, behind a scrub.
async fn assert_ends(
    after: &World,
    (from, to): (&str, &str),
    before: &[String],
    (at, is_scrubbed): (&str, bool),
) {
    let again = relocate(after, from, to, None);
    assert!(again.left == 0 && !again.is_cut, "{at}: {again:?}");
    assert_same(&seen(after, 12).await, before, at);
    feed(after, 60, 1).await;
    assert_eq!(after.problems(), Vec::<String>::new(), "{at}");
    // 0, 6 and 9 have two names.
    let expected = if to == "files" { 14 } else { 0 };
    if is_scrubbed {
        let shown = seen(after, 12).await;
        let report = after.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        assert_eq!(report.damaged.len(), 0, "{at}: {report:?}");
        assert_same(&seen(after, 12).await, &shown, at);
    }
    let there = files(after.disk.as_ref(), Path::new(DIR));
    assert_eq!(there.len(), expected, "{at}: {there:?}, {again:?}");
}

/// The power goes at every sync of a move, there and back again: all is there, and the same again ends it and leaves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_at_any_moment_of_a_move_costs_nothing() {
    for (from, to) in [("main", "files"), ("files", "main")] {
        let (mut nth, mut is_whole) = (0, false);
        while !is_whole {
            let (memory, faulty, world) = about_to_move(from).await;
            let before = seen(&world, 12).await;
            faulty.stop_at_sync(faulty.counts().syncs() + 1 + nth);
            let left = scope(|scope| {
                let mover = scope.spawn(|| {
                    let moved = world
                        .engine
                        .relocate(&what(from, to, None), &mut |_, _| true);
                    moved.is_ok_and(|moved| !moved.is_cut)
                });
                while !mover.is_finished() && !faulty.stopped() {
                    std::thread::yield_now();
                }
                let left = [(); 2].map(|()| memory.crash_losing_all());
                let _ = world.engine.shutdown();
                is_whole = mover.join().unwrap();
                left
            });
            let at = format!("{from} to {to}, sync {nth}");
            let [left, without] = left;
            // Copies that were made in vain are in the history of nobody.
            let lost = damage::files(&without, "history");
            lost.iter().for_each(|path| without.remove(path).unwrap());
            let after = open_on(Arc::new(without), &world.config, &world.clock);
            after.wait_until("the rebuild", |after| {
                after.engine.status().damaged.is_empty()
            });
            assert_same(&seen(&after, 12).await, &before, &at);
            assert_eq!(after.problems(), Vec::<String>::new(), "{at}");
            let after = open_on(Arc::new(left.clone()), &world.config, &world.clock);
            assert_same(&seen(&after, 12).await, &before, &at);
            assert_eq!(after.problems(), Vec::<String>::new(), "{at}");
            assert_ends(&after, (from, to), &before, (&at, false)).await;
            nth += 1;
        }
        assert!(nth > 8, "{nth}");
    }
}

/// What moved was counted as sound in both sets: an older file of the history still led to the old place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_counts_what_moved_where_it_is() {
    let world = World::new(two_sets());
    feed(&world, 0, 30).await;
    world.seal();
    for is_sealed in [false, true] {
        if is_sealed {
            world.seal();
        } else {
            assert_eq!(
                relocate(&world, "main", "files", Some("misc.test")).articles,
                20
            );
        }
        let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        let counts = report.buffers.iter().map(|it| (it.articles, it.withdrawn));
        let counts = counts.fold((0, 0), |all, it| (all.0 + it.0, all.1 + it.1));
        assert_eq!(counts, (30, 20), "{is_sealed}: {report:?}");
        assert_eq!(report.damaged, []);
    }
    cancel(&world, "<1@t.example>");
    world.seal();
    let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    assert_eq!((report.articles, report.withdrawn), (29, 21), "{report:?}");
}

/// A kill between the files of a move and their cards, whatever the method: the files stayed for ever, though the history knew their articles
/// elsewhere.  What is not a copy of an article that can be read elsewhere stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_a_killed_move_left_go_with_the_scrub() {
    for method in ["tradspool", "md5spool", "timehash"] {
        let memory = MemoryDisk::new();
        let mut config = two_sets();
        method.clone_into(&mut config.store.sets[1].method);
        let world = World::on(Arc::new(memory.clone()), config);
        feed(&world, 0, 12).await;
        let before = seen(&world, 12).await;
        world.seal();
        // The same server killed when the files are there, as if nothing had come behind that.
        let killed = memory.crash_losing_all();
        assert_eq!(relocate(&world, "main", "files", None).articles, 12);
        let made = files(&memory, Path::new(DIR));
        let content = |path: &Path| read_whole(&memory, path, 1 << 16).unwrap();
        let write = |path: &Path, octets: &[u8]| {
            killed.create_dir_all(path.parent().unwrap()).unwrap();
            let file = killed.open(path, OpenMode::CreateNew).unwrap();
            file.write_at(octets, 0).unwrap();
        };
        for path in &made {
            write(path, &content(path));
        }
        // Not quite the same; half; of an article that is nowhere.
        let with = |more: &str| PathBuf::from(format!("{}{more}", made[0].display()));
        let text = String::from_utf8(content(&made[0])).unwrap();
        write(&with("+"), text.replace("Body", "body").as_bytes());
        write(&with("++"), &text.as_bytes()[..text.len() - 7]);
        write(
            &with("+++"),
            text.replace("@t.example", "@nowhere").as_bytes(),
        );
        let (clock, mut config) = (Arc::clone(&world.clock), world.config.clone());
        drop(world);
        let world = open_on(Arc::new(killed.clone()), &config, &clock);
        let scrub = |world: &World| world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        let said = scrub(&world).headers;
        let left = format!("left by a move that was ended: {}; ", made.len());
        assert_eq!(said.len(), 2, "{method}: {said:?}");
        assert!(said[0].contains(&left), "{method}: {said:?}");
        assert!(said[1].contains("no card leads: 3, first"), "{said:?}");
        let there = files(&killed, Path::new(DIR));
        assert_eq!(there, ["+", "++", "+++"].map(with), "{method}");
        assert_same(&seen(&world, 12).await, &before, method);
        // The text that is left of a damaged article, it may be: that stays.
        write(&made[0], text.as_bytes());
        world.seal();
        drop(world);
        for buffer in &mut config.store.buffers {
            let path = Path::new("/spool/buffers").join(&buffer.name);
            let octets = read_whole(&killed, &path, 4 << 20).unwrap();
            let at = octets.windows(7).position(|window| window == b"Body of");
            if let Some(at) = at {
                let file = killed.open(&path, OpenMode::ReadWrite).unwrap();
                file.write_at(&vec![b'x'; octets.len() - at], at as u64)
                    .unwrap();
            }
        }
        let world = open_on(Arc::new(killed.clone()), &config, &clock);
        let said = scrub(&world).headers.concat();
        assert!(said.contains("no card leads: 4, first"), "{method}: {said}");
        assert!(killed.exists(&made[0]).unwrap(), "{method}");
    }
}

/// One call of a failing disk at any moment of a move, there and back again: readers notice nothing, and after a restart or a
/// power cut the same again ends it and leaves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fails_at_any_moment_of_a_move_costs_nothing() {
    for (from, to) in [("main", "files"), ("files", "main")] {
        // Of those that are many only some fail, each time.
        for (op, step) in [
            (Op::Write, 4),
            (Op::Sync, 1),
            (Op::SyncDir, 1),
            (Op::Read, 4),
            (Op::Open, 4),
            (Op::Remove, 1),
        ] {
            let (mut nth, mut is_struck) = (0, true);
            while is_struck {
                nth += step;
                let at = format!("{from} to {to}, {op} {nth}");
                let (memory, faulty, world) = about_to_move(from).await;
                let before = seen(&world, 12).await;
                let count = faulty.counts().of(op);
                faulty.add(Fault::new(op, "", Effect::Medium).nth(nth));
                let moved = scope(|scope| {
                    let mover = scope.spawn(|| {
                        let what = what(from, to, None);
                        world.engine.relocate(&what, &mut |_, _| true)
                    });
                    while !mover.is_finished() {
                        // A checkpoint that failed is tried again some seconds later.
                        world.clock.advance(Duration::from_secs(1));
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    mover.join().unwrap()
                });
                is_struck = faulty.counts().of(op) - count >= nth;
                faulty.clear();
                assert!(is_struck || moved.is_ok(), "{at}: {moved:?}");
                // A file of the views that could not be read once is made anew.
                world.wait_until("the rebuild", |world| {
                    world.engine.status().damaged.is_empty()
                });
                assert_same(&seen(&world, 12).await, &before, &at);
                let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
                let left = memory.crash_losing_all();
                drop(world);
                for (how, left) in [("a power cut", left), ("a restart", memory)] {
                    let (at, is_scrubbed) = (format!("{at}, {how}"), how == "a power cut");
                    let after = open_on(Arc::new(left.clone()), &config, &clock);
                    after.wait_until("the rebuild", |after| {
                        after.engine.status().damaged.is_empty()
                    });
                    assert_same(&seen(&after, 12).await, &before, &at);
                    assert_ends(&after, (from, to), &before, (&at, is_scrubbed)).await;
                }
            }
            assert!(
                nth > 4,
                "{at}",
                at = format_args!("{from} to {to}: {op} {nth}")
            );
        }
    }
}

/// Files of the views that are lost are made again from the store, also where what moved lies behind what came later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_files_of_the_views_are_rebuilt_with_what_moved() {
    for (stem, some) in [
        ("overview", 1),
        ("overview", 9),
        ("history", 2),
        ("history", 99),
    ] {
        let memory = MemoryDisk::new();
        let mut config = two_sets();
        config.index.runs_max = 1 << 10;
        // One pack moves in several frames.
        config.index.history_rows_max = 64;
        let world = World::on(Arc::new(memory.clone()), config);
        for round in 0..3 {
            feed(&world, round * 300, 300).await;
            world.seal();
        }
        cancel(&world, "<4@t.example>");
        assert_eq!(
            relocate(&world, "main", "files", Some("misc.other")).articles,
            599
        );
        cancel(&world, "<6@t.example>");
        assert_eq!(
            relocate(&world, "files", "main", Some("misc.test")).articles,
            299
        );
        feed(&world, 900, 30).await;
        world.seal();
        let before = seen(&world, 930).await;
        assert_eq!(world.problems(), Vec::<String>::new());
        let (mut config, clock) = (world.config.clone(), Arc::clone(&world.clock));
        drop(world);
        let lost = damage::files(&memory, stem);
        for path in lost.iter().take(some) {
            memory.remove(path).unwrap();
        }
        // So small that parts lie between each other.
        config.index.tail_bytes_max = 1 << 16;
        let world = open_on(Arc::new(memory.clone()), &config, &clock);
        wait_for_repair(&world);
        let at = format!("{some} of {stem}");
        assert_same(&seen(&world, 930).await, &before, &at);
        assert_eq!(world.problems(), Vec::<String>::new(), "{at}");
        let world = world.restart();
        assert_same(&seen(&world, 930).await, &before, &at);
        // Old places in `main` are overwritten.
        let long: Vec<_> = (0..130)
            .map(|n| long_article(n + 2000, "misc.test", 1000))
            .collect();
        for some in long.chunks(10) {
            let outcomes = world.send(some).await;
            assert!(outcomes.iter().all(|it| *it == Outcome::Accepted));
        }
        assert_eq!(world.problems(), Vec::<String>::new(), "{at}");
        // Who has gone is gone.
        for id in ["<4@t.example>", "<6@t.example>"] {
            assert_eq!(world.by_id(id).await, None, "{at}");
        }
    }
}

/// Articles went there by their arrival, and were gone with the next commit: "moved", and nobody was told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_new_set_would_drop_at_once_stays() {
    let mut config = config(4 << 20);
    config.store.sets.push(SetConfig {
        name: "aged".to_owned(),
        method: "segment".to_owned(),
        segment_octets: 1 << 20,
        keep_s: Some(1000),
        ..SetConfig::default()
    });
    let world = World::new(config);
    feed(&world, 0, 60).await;
    world.wait_s(2000);
    feed(&world, 60, 10).await;
    let mut dry = what("main", "aged", None);
    dry.dry_run = true;
    let would = world.engine.relocate(&dry, &mut |_, _| true).unwrap();
    assert_eq!(would.room.unwrap().keep_s, Some(1000));
    let before = seen(&world, 70).await;
    let moved = relocate(&world, "main", "aged", None);
    assert_eq!((moved.articles, moved.left), (10, 60), "{moved:?}");
    let why = moved.first_left.unwrap();
    assert!(why.contains("drops what is older than 1000 s"), "{why}");
    feed(&world, 70, 5).await;
    assert_same(&seen(&world, 70).await[..70], &before[..70], "then");
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// A token whose place its article had left showed it, also when it was cancelled since, and a cancel by it said that the article was not here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_that_an_article_had_leads_to_where_it_is() {
    let world = World::new(two_sets());
    feed(&world, 0, 6).await;
    let id = |n: usize| ArticleRef::Id(format!("<{n}@t.example>"));
    let show = |which: &ArticleRef| world.engine.article(which).unwrap();
    let tokens: Vec<_> = (0..6)
        .map(|n| ArticleRef::Token(show(&id(n)).unwrap().token))
        .collect();
    assert_eq!(show(&tokens[1]), show(&id(1)));
    relocate(&world, "main", "files", None);
    let moved = show(&tokens[1]).unwrap();
    assert_eq!(
        (Some(&moved), moved.set.as_str()),
        (show(&id(1)).as_ref(), "files")
    );
    cancel(&world, "<2@t.example>");
    assert_eq!(show(&tokens[2]), None);
    let why = world.engine.absence(&tokens[2]).unwrap();
    assert!(why.starts_with("it was withdrawn on "), "{why}");
    assert_eq!(world.engine.try_withdraw(&tokens[3]), Withdrawal::Done);
    let gone = [tokens[3].clone(), tokens[2].clone()];
    let outcomes = world.engine.withdraw(&gone, Reason::Cancelled).unwrap();
    assert_eq!(outcomes, [Withdrawal::Done, Withdrawal::NotHere]);
    assert!(world.by_id("<3@t.example>").await.is_none());
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Articles whose old places were overwritten when they had moved counted as overwritten, whether they were alive or withdrawn, and nobody
/// compared their rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_moved_is_compared_also_where_its_old_place_is_gone() {
    let mut config = two_sets();
    for buffer in &mut config.store.buffers {
        buffer.octets = 2 << 20;
    }
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config);
    feed(&world, 0, 30).await;
    relocate(&world, "main", "files", None);
    for n in [4, 5] {
        cancel(&world, &format!("<{n}@t.example>"));
    }
    // Some of these are overwritten themselves.
    let long = 120;
    for n in 100..100 + long {
        let one = [long_article(n, "misc.other", 1000)];
        assert_eq!(world.send(&one).await, [Outcome::Accepted]);
    }
    let mut alive = 0;
    for n in 100..100 + long {
        alive += u64::from(world.by_id(&format!("<{n}@t.example>")).await.is_some());
    }
    let check = |world: &World| world.engine.check(&mut |_, _| {}).unwrap();
    let report = check(&world);
    assert!(report.is_clean(), "{report:?}");
    let gone = long as u64 - alive;
    assert_eq!(
        (report.overwritten, report.withdrawn),
        (gone, 2),
        "{report:?}"
    );
    // Every third of the thirty is in two groups; 4 and 5 are in one.
    assert_eq!(
        (report.articles, report.rows),
        (30 + long as u64, 38 + alive)
    );
    world.seal();
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    let spool_id = world.engine.status().spool_id;
    drop(world);
    lose(&memory, &config, &spool_id, "overview");
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    let problems = world.problems();
    for n in (0..30).filter(|n| ![4, 5].contains(n)) {
        let of_it = format!("<{n}@t.example>: the overview of group");
        assert!(
            problems.iter().any(|problem| problem.starts_with(&of_it)),
            "{n}: {problems:?}"
        );
    }
}
