//! A set of segments under the engine: what goes, what stays, what a full disk and a power cut cost.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::{ArticleRef, EngineConfig, Reason, Relocation, Withdrawal};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Disk, MemoryDisk, Op, OpenMode, replace_file};
use newsreel_service::{Defer, Outcome};
use newsreel_store::SetConfig;
use newsreel_wire::Wildmat;

use crate::world::{World, article, between_runs, config, open_on};

const DIR: &str = "/spool/segments/main";

/// One set of segments of a megabyte.
pub(crate) fn segments(change: impl FnOnce(&mut SetConfig)) -> EngineConfig {
    let mut config = config(4 << 20);
    config.store.buffers.clear();
    let set = &mut config.store.sets[0];
    set.buffers.clear();
    "segment".clone_into(&mut set.method);
    set.segment_octets = 1 << 20;
    change(set);
    config
}

/// An article of about so many octets.
pub(crate) fn large(n: usize, octets: usize) -> (String, Vec<u8>) {
    let (id, mut wire) = article(n, "misc.test");
    wire.truncate(wire.len() - 3);
    while wire.len() < octets {
        wire.extend_from_slice(
            b"a line of some length that fills the article up, again and again\r\n",
        );
    }
    wire.extend_from_slice(b".\r\n");
    (id, wire)
}

async fn feed(world: &World, from: usize, count: usize) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for n in (from..from + count).step_by(5) {
        let articles: Vec<_> = (n..n + 5).map(|n| large(n, 30_000)).collect();
        outcomes.extend(world.send(&articles).await);
    }
    outcomes
}

fn files(disk: &dyn Disk) -> Vec<String> {
    let mut names: Vec<_> = disk
        .list(Path::new(DIR))
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .filter(|name| name != ".newsreel-set")
        .collect();
    names.sort();
    names
}

async fn alive(world: &World, count: usize) -> Vec<usize> {
    let mut alive = Vec::new();
    for n in 0..count {
        if world.by_id(&format!("<{n}@t.example>")).await.is_some() {
            alive.push(n);
        }
    }
    alive
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_segments_go_when_there_are_too_many_octets() {
    let world = World::new(segments(|set| set.keep_octets = Some(3 << 20)));
    let outcomes = feed(&world, 0, 200).await;
    assert_eq!(outcomes, [Outcome::Accepted; 200]);
    let left = files(world.disk.as_ref());
    assert_eq!(left, ["00000004.seg", "00000005.seg", "00000006.seg"]);
    let kept = alive(&world, 200).await;
    assert!((65..110).contains(&kept.len()), "{} of 200", kept.len());
    assert_eq!(*kept.last().unwrap(), 199);
    assert_eq!(
        kept.len(),
        200 - kept[0],
        "what is alive is the end, without a gap"
    );
    assert_eq!(world.lines("misc.test").await.len(), kept.len());
    assert_eq!(world.problems(), Vec::<String>::new());
    // The same after a restart, from the log alone and from a checkpoint.
    let world = world.restart();
    assert_eq!(alive(&world, 200).await, kept);
    world.seal();
    let world = world.restart();
    assert_eq!(alive(&world, 200).await, kept);
    assert_eq!(feed(&world, 200, 40).await, [Outcome::Accepted; 40]);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Something else takes the disk: the oldest segments go one by one, the one that is written stays, and none goes for what is free again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_segments_go_when_too_little_is_free() {
    const MIN: u64 = 64 << 20;
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::with_capacity(256 << 20));
    let free = || disk.free_bytes(Path::new("/")).unwrap();
    let config = segments(|set| set.free_octets_min = Some(MIN));
    let world = World::on(Arc::clone(&disk), config);
    assert_eq!(feed(&world, 0, 200).await, [Outcome::Accepted; 200]);
    assert_eq!(files(disk.as_ref()).len(), 6, "enough is free");
    assert_eq!(alive(&world, 200).await.len(), 200);

    // Two segments and a half are missing.
    let other = Path::new("/other");
    let file = disk.open(other, OpenMode::CreateNew).unwrap();
    file.set_len(free() - MIN + (5 << 19)).unwrap();
    let mut fed = 200;
    while free() < MIN {
        assert!(fed < 300, "{} free, {:?}", free(), files(disk.as_ref()));
        // One goes with a commit; this disk has its room back when that is durable.
        assert_eq!(feed(&world, fed, 5).await, [Outcome::Accepted; 5]);
        disk.sync_dir(Path::new(DIR)).unwrap();
        fed += 5;
    }
    assert!(free() < MIN + (2 << 20), "{} free", free());
    let left = files(disk.as_ref());
    assert!((3..6).contains(&left.len()), "{left:?}");
    let kept = alive(&world, fed).await;
    assert_eq!((kept.len(), kept.last()), (fed - kept[0], Some(&(fed - 1))));
    assert_eq!(world.lines("misc.test").await.len(), kept.len());
    // Far too little: all but what is written.
    file.set_len(file.len().unwrap() + (16 << 20)).unwrap();
    assert_eq!(feed(&world, fed, 50).await, [Outcome::Accepted; 50]);
    let left = files(disk.as_ref()).len();
    assert!(left <= 2, "{left} files");
    drop(file);
    disk.remove(other).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    assert_eq!(feed(&world, fed + 50, 120).await, [Outcome::Accepted; 120]);
    assert!(files(disk.as_ref()).len() >= left + 3);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// What is left is looked at once a second, and drops are judged at commits: so one article comes now and then.
async fn until_oldest_is_above(world: &World, cycle: usize) {
    for n in 0..200 {
        let name = files(world.disk.as_ref()).remove(0);
        if name > format!("{cycle:08}.seg") {
            return;
        }
        let more = world.engine.status().sequence;
        world
            .send(&[article(10_000 + more as usize + n, "misc.test")])
            .await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{:?}", files(world.disk.as_ref()));
}

/// The file of the set in which an article lies, as its token says.
fn cycle_of(world: &World, n: usize) -> u32 {
    let which = ArticleRef::Id(format!("<{n}@t.example>"));
    let token = world.engine.article(&which).unwrap().unwrap().token;
    let (_, cycle) = token.rsplit_once(':').unwrap();
    u32::from_str_radix(cycle, 16).unwrap()
}

fn withdraw(world: &World, some: &[usize]) {
    let which = |n| ArticleRef::Id(format!("<{n}@t.example>"));
    let some: Vec<_> = some.iter().map(which).collect();
    let outcomes = world.engine.withdraw(&some, Reason::Expired).unwrap();
    assert!(outcomes.iter().all(|it| *it == Withdrawal::Done));
}

/// Nothing is left in the first file and in the third; in the second there is one article, for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn segments_with_nothing_left_go_early_unless_an_age_is_promised() {
    let of_octets = World::new(segments(|set| set.keep_octets = Some(1 << 30)));
    let of_age = World::new(segments(|set| set.keep_s = Some(1 << 30)));
    // How many fit into a file depends on which came in one commit.
    for world in [&of_octets, &of_age] {
        assert_eq!(feed(world, 0, 150).await, [Outcome::Accepted; 150]);
    }
    let cycles: Vec<u32> = (0..150).map(|n| cycle_of(&of_octets, n)).collect();
    assert!(cycles.is_sorted() && cycles[149] > 3, "{cycles:?}");
    let ends = [1, 2, 3].map(|cycle| cycles.partition_point(|it| *it <= cycle));
    let [first, kept, rest] = [ends[0] - 1, ends[1] - 1, ends[2]];
    let before = files(of_age.disk.as_ref());
    let gone: Vec<usize> = (0..first)
        .chain(ends[0]..kept)
        .chain(ends[1]..rest)
        .collect();
    for world in [&of_octets, &of_age] {
        withdraw(world, &gone);
    }
    for (last, cycle) in [(first, 1), (kept, 3)] {
        for world in [&of_octets, &of_age] {
            withdraw(world, &[last]);
        }
        until_oldest_is_above(&of_octets, cycle).await;
        let oldest = format!("{:08}.seg", cycle + 1);
        assert_eq!(files(of_octets.disk.as_ref())[0], oldest);
        let left = (kept..=kept).filter(|kept| *kept > last).chain(rest..150);
        assert_eq!(alive(&of_octets, 150).await, left.collect::<Vec<_>>());
    }
    assert_eq!(files(of_age.disk.as_ref()), before);
    for world in [&of_octets, &of_age] {
        assert_eq!(world.problems(), Vec::<String>::new());
    }
    let of_octets = of_octets.restart();
    assert_eq!(
        alive(&of_octets, 150).await,
        (rest..150).collect::<Vec<_>>()
    );
}

/// Articles that are moved in came long before those in front of them: by the arrival of the last one a segment went while others in it
/// were too young.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_goes_by_its_newest_article_and_what_is_moved_by_its_arrival() {
    let mut config = config(4 << 20);
    config.store.sets.push(SetConfig {
        name: "aged".to_owned(),
        method: "segment".to_owned(),
        segment_octets: 1 << 20,
        keep_s: Some(1000),
        ..SetConfig::default()
    });
    let world = World::new(config);
    feed(&world, 0, 50).await;
    world.wait_s(500);
    world.send(&[article(50, "misc.other")]).await;
    world.wait_s(400);
    for (groups, count) in [("misc.other", 1), ("misc.test", 50)] {
        let what = Relocation {
            from: "main".to_owned(),
            to: "aged".to_owned(),
            groups: Some(Wildmat::parse(groups).unwrap()),
            dry_run: false,
        };
        let moved = world.engine.relocate(&what, &mut |_, _| true).unwrap();
        assert_eq!(moved.articles, count);
    }
    // What goes is judged at commits.
    world.wait_s(102);
    feed(&world, 60, 5).await;
    assert_eq!(alive(&world, 51).await, (0..51).collect::<Vec<_>>());
    world.wait_s(500);
    feed(&world, 70, 5).await;
    let left = alive(&world, 51).await;
    assert!((1..20).contains(&left.len()) && left[0] > 30, "{left:?}");
    assert_eq!(world.problems(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn segments_go_when_their_articles_are_old_enough_and_not_before() {
    let world = World::new(segments(|set| set.keep_s = Some(1000)));
    feed(&world, 0, 100).await;
    world.wait_s(900);
    feed(&world, 100, 5).await;
    assert_eq!(alive(&world, 105).await.len(), 105);
    // The first files hold nothing younger than the limit; the one that was being written then does.
    world.wait_s(150);
    for n in [105, 110, 115, 120] {
        feed(&world, n, 5).await;
    }
    let kept = alive(&world, 125).await;
    assert!(kept.len() < 70 && kept.contains(&100), "{kept:?}");
    // Nobody feeds any more: the commit that tells the time lets them go.
    let before = files(world.disk.as_ref()).len();
    world.wait_s(4000);
    world.wait_until("an idle drop", |world| {
        files(world.disk.as_ref()).len() < before
    });
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// With little traffic one file was written for ever, and went never.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_little_traffic_segments_go_by_their_age_too() {
    const DAY: u64 = 86_400;
    let mut config = segments(|set| set.keep_s = Some(8 * DAY));
    // Their Date is of the first day.
    config.articles.age_s_max = 0;
    let mut world = World::new(config);
    for day in 0..40 {
        // Once behind a start, where what it began with tells the age of the written one.
        if day % 7 == 3 {
            world = world.restart();
        }
        assert_eq!(feed(&world, day * 5, 5).await, [Outcome::Accepted; 5]);
        world.wait_s(DAY);
        let kept = alive(&world, day * 5 + 5).await;
        // Nothing goes before its age.
        for n in (day.saturating_sub(6) * 5)..(day * 5 + 5) {
            assert!(kept.contains(&n), "{n} went on day {day}: {kept:?}");
        }
    }
    assert_eq!(feed(&world, 200, 5).await, [Outcome::Accepted; 5]);
    let kept = alive(&world, 205).await;
    assert!(kept[0] >= 27 * 5, "{kept:?}");
    let made = files(world.disk.as_ref());
    assert!(made.len() <= 14, "{made:?}");
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Lets the time go on in steps, less than an hour in all, so that the log is not told the time.
fn pass_until(world: &World, what: &str, mut is_so: impl FnMut(&World) -> bool) {
    for _ in 0..2000 {
        if is_so(world) {
            return;
        }
        world.wait_s(1);
        // This disk has its room back when that is durable.
        world.disk.sync_dir(Path::new(DIR)).unwrap();
        // The stores are asked once a second of everybody's time, and one segment goes then.
        std::thread::sleep(Duration::from_millis(30));
    }
    panic!("{what}: {:?}", files(world.disk.as_ref()));
}

/// Old segments waited for something to commit, one for each commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_segments_go_without_articles_and_a_server_with_none_writes_nothing() {
    let mut config = segments(|set| set.keep_s = Some(1000));
    config.sequencer.checkpoint_s_max = 1 << 30;
    let world = World::new(config);
    feed(&world, 0, 200).await;
    let written = files(world.disk.as_ref());
    assert_eq!(written.len(), 6);
    world.seal();
    // The last commit is vouched for, and nothing is left to be written.
    for _ in 0..3 {
        world.wait_s(2);
        std::thread::sleep(Duration::from_millis(1100));
    }
    world.wait_s(1100);
    pass_until(&world, "old segments stay", |world| {
        files(world.disk.as_ref()) == written[5..]
    });
    assert_eq!(world.problems(), Vec::<String>::new());
    let known = [article(1000, "misc.test")];
    assert_eq!(world.send(&known).await, [Outcome::Accepted]);
    let end = world.engine.status().sequence;
    for _ in 0..3 {
        world.wait_s(61);
        assert_eq!(world.send(&known).await, [Outcome::Duplicate]);
    }
    // This one is vouched for once.
    assert!(world.engine.status().sequence <= end + 1);
}

/// Where the spool lay on the same disk and that was full, articles were put off for good: nothing was committed, so nothing went.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn articles_put_off_for_room_are_taken_again_once_old_segments_had_their_age() {
    let memory = MemoryDisk::with_capacity(300 << 20);
    let config = segments(|set| set.keep_s = Some(1000));
    let world = World::on(Arc::new(memory.clone()), config);
    feed(&world, 0, 600).await;
    let ballast = Path::new("/spool/ballast");
    let file = memory.open(ballast, OpenMode::CreateNew).unwrap();
    let room = world.engine.disk_room().unwrap();
    file.reserve(0, room.free - room.kept + (1 << 20)).unwrap();
    let is_paused = |world: &World| world.engine.status().paused.is_some();
    pass_until(&world, "the disk has room", is_paused);
    let put_off = Outcome::Deferred(Defer::Full);
    assert_eq!(feed(&world, 900, 5).await, [put_off; 5]);
    let count = files(&memory).len();
    assert_eq!(alive(&world, 600).await.len(), 600);
    world.wait_s(1000);
    pass_until(&world, "nothing goes", |world| !is_paused(world));
    assert!(files(&memory).len() < count - 1);
    assert_eq!(feed(&world, 900, 5).await, [Outcome::Accepted; 5]);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// How old a file is the next one tells, and behind a kill, or the loss of newer files, the header that was left did not know: articles that
/// were seconds old went.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_age_alone_holds_behind_kills_and_lost_files() {
    let memory = MemoryDisk::new();
    let config = segments(|set| set.keep_s = Some(1000));
    let world = World::on(Arc::new(memory.clone()), config);
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    assert_eq!(feed(&world, 0, 30).await, [Outcome::Accepted; 30]);
    let killed = memory.crash_losing_all();
    drop(world);
    let world = open_on(Arc::new(killed.clone()), &config, &clock);
    // Too large for what is left of the file.
    let next = world.send(&[large(30, 200_000)]).await;
    assert_eq!((next, files(&killed).len()), (vec![Outcome::Accepted], 2));
    assert_eq!(feed(&world, 31, 25).await, [Outcome::Accepted; 25]);
    assert_eq!(alive(&world, 56).await, (0..56).collect::<Vec<_>>());
    // So it is behind the next start, by what was written then.
    let world = world.restart();
    assert_eq!(feed(&world, 56, 30).await, [Outcome::Accepted; 30]);
    assert_eq!(alive(&world, 86).await, (0..86).collect::<Vec<_>>());
    drop(world);
    for name in &files(&killed)[1..] {
        killed.remove(&Path::new(DIR).join(name)).unwrap();
    }
    let world = open_on(Arc::new(killed.clone()), &config, &clock);
    let first = alive(&world, 90).await;
    assert!(first.len() > 25, "{first:?}");
    for n in [90, 120, 150] {
        assert_eq!(feed(&world, n, 30).await, [Outcome::Accepted; 30]);
    }
    let left = alive(&world, 180).await;
    assert_eq!(left[..first.len()], first);
    // From that start on it counts.
    world.wait_s(1100);
    feed(&world, 180, 5).await;
    assert!(!alive(&world, 1).await.contains(&0));
}

/// An age alone is a guarantee: a full disk puts articles off, drops nothing, and takes them again when there is room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_puts_articles_off_where_only_an_age_was_promised() {
    let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let world = World::on(
        Arc::new(disk.clone()),
        segments(|set| set.keep_s = Some(1 << 40)),
    );
    assert_eq!(feed(&world, 0, 100).await, [Outcome::Accepted; 100]);
    // The segments lie on a disk of their own, whose room the engine does not watch.
    disk.add(Fault::new(Op::Reserve, DIR, Effect::Full).forever());
    let outcomes = feed(&world, 100, 100).await;
    let put_off = |outcome: &&Outcome| matches!(outcome, Outcome::Failed | Outcome::Deferred(_));
    let count = outcomes.iter().filter(put_off).count();
    let is_accepted = |n: &usize| *n < 100 || outcomes[n - 100] == Outcome::Accepted;
    let accepted: Vec<usize> = (0..200).filter(is_accepted).collect();
    assert!(count > 60 && accepted.len() + count == 200, "{outcomes:?}");
    assert_eq!(alive(&world, 200).await, accepted);
    disk.clear();
    assert_eq!(feed(&world, 1000, 30).await, [Outcome::Accepted; 30]);
    assert_eq!(alive(&world, 200).await, accepted);
    assert_eq!(world.problems(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_costs_nothing_that_was_acknowledged() {
    let memory = MemoryDisk::new();
    let world = World::on(
        Arc::new(memory.clone()),
        segments(|set| set.keep_octets = Some(4 << 20)),
    );
    for round in 0..20 {
        assert_eq!(feed(&world, round * 10, 10).await, [Outcome::Accepted; 10]);
        let kept = alive(&world, (round + 1) * 10).await;
        for left in [memory.crash_losing_all(), memory.crash(round as u64)] {
            let after = open_on(Arc::new(left), &world.config, &world.clock);
            let found = alive(&after, (round + 1) * 10).await;
            assert_eq!(found, kept, "round {round}");
            assert_eq!(after.problems(), Vec::<String>::new());
        }
    }
}

/// A file that somebody removed costs the articles in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_that_was_removed_costs_its_articles() {
    let world = World::new(segments(|_| {}));
    feed(&world, 0, 100).await;
    world
        .disk
        .remove(Path::new("/spool/segments/main/00000002.seg"))
        .unwrap();
    let world = world.restart();
    let kept = alive(&world, 100).await;
    assert!((60..75).contains(&kept.len()), "{kept:?}");
    let problems = world.problems();
    let is_told = |problem: &String| problem.contains("of cycle 2");
    assert!(problems.iter().any(is_told), "{problems:?}");
    assert_eq!(feed(&world, 100, 10).await, [Outcome::Accepted; 10]);
    // The newest as well: it goes on behind it.
    let newest = files(world.disk.as_ref()).pop().unwrap();
    let world = {
        world.disk.remove(&Path::new(DIR).join(newest)).unwrap();
        world.restart()
    };
    assert_eq!(feed(&world, 110, 10).await, [Outcome::Accepted; 10]);
    assert!(world.by_id("<119@t.example>").await.is_some());
}

/// The oldest: nobody was told, its articles were listed for ever, and the set was more than full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_segment_that_was_removed_is_told_and_its_articles_go_at_once() {
    let world = World::new(segments(|_| {}));
    feed(&world, 0, 150).await;
    let kept: Vec<usize> = (0..150).filter(|n| cycle_of(&world, *n) > 2).collect();
    assert!((60..100).contains(&kept.len()), "{kept:?}");
    let world = between_runs(world, |disk| {
        for name in ["00000001.seg", "00000002.seg"] {
            disk.remove(&Path::new(DIR).join(name)).unwrap();
        }
    });
    let buffer = |world: &World| world.engine.status().buffers[0].clone();
    let state = buffer(&world).state;
    assert!(
        state.contains("there is no 00000001.seg to 00000002.seg, the oldest of set main"),
        "{state}"
    );
    world.wait_until("the first commit", |world| {
        world.engine.group("misc.test").unwrap().count == kept.len() as u64
    });
    assert_eq!(world.lines("misc.test").await.len(), kept.len());
    assert_eq!(alive(&world, 150).await, kept);
    assert_eq!(world.problems(), Vec::<String>::new());
    assert_eq!(feed(&world, 150, 10).await, [Outcome::Accepted; 10]);
    let world = world.restart();
    assert_eq!(buffer(&world).state, "ok");
    assert_eq!(alive(&world, 150).await, kept);
    // They may all be away, and only the mark of the set there: then none is there, or only what came since, and nothing goes.
    let away = Path::new("/away");
    let rename = |disk: &dyn Disk, from: &Path, to: &Path| {
        disk.create_dir_all(to).unwrap();
        let mut entries = disk.list(from).unwrap();
        entries.retain(|entry| entry.name != ".newsreel-set");
        for entry in entries {
            disk.rename(&from.join(&entry.name), &to.join(&entry.name))
                .unwrap();
        }
    };
    let world = between_runs(world, |disk| rename(disk, Path::new(DIR), away));
    assert_eq!(feed(&world, 160, 5).await, [Outcome::Accepted; 5]);
    let world = world.restart();
    let state = buffer(&world).state;
    assert!(state.contains("is its disk mounted?"), "{state}");
    assert_eq!(feed(&world, 165, 5).await, [Outcome::Accepted; 5]);
    assert_eq!(alive(&world, 150).await, [0; 0]);
    let world = between_runs(world, |disk| rename(disk, away, Path::new(DIR)));
    assert_eq!(alive(&world, 150).await, kept);
    assert_eq!(buffer(&world).state, "ok");
}

/// Once more new files were made than were away, those were taken for removed: their articles were withdrawn, and they were removed when
/// they were back, though the set had promised to keep them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn segments_that_come_back_late_are_kept_as_promised() {
    let world = World::new(segments(|set| set.keep_s = Some(1000)));
    assert_eq!(feed(&world, 0, 60).await, [Outcome::Accepted; 60]);
    let away = Path::new("/away");
    let rename = |disk: &dyn Disk, from: &Path, to: &Path| {
        disk.create_dir_all(to).unwrap();
        for entry in disk.list(from).unwrap() {
            disk.rename(&from.join(&entry.name), &to.join(&entry.name))
                .unwrap();
        }
    };
    // Somebody says that what was there is lost for good.
    let mut world = between_runs(world, |disk| {
        rename(disk, Path::new(DIR), away);
        replace_file(disk, &Path::new(DIR).join(".newsreel-set"), b"").unwrap();
    });
    for n in [60, 120, 180] {
        assert_eq!(feed(&world, n, 60).await, [Outcome::Accepted; 60]);
        world = world.restart();
        let state = world.engine.status().buffers[0].state.clone();
        assert!(state.contains("nothing is withdrawn"), "{state}");
    }
    assert!(files(world.disk.as_ref()).len() > 5);
    assert_eq!(feed(&world, 240, 5).await, [Outcome::Accepted; 5]);
    let count = |world: &World| world.engine.group("misc.test").unwrap().count;
    assert_eq!(count(&world), 245);
    let world = between_runs(world, |disk| rename(disk, away, Path::new(DIR)));
    assert_eq!(alive(&world, 245).await, (0..245).collect::<Vec<_>>());
    assert_eq!(feed(&world, 245, 5).await, [Outcome::Accepted; 5]);
    let world = world.restart();
    assert_eq!(alive(&world, 250).await, (0..250).collect::<Vec<_>>());
    assert_eq!(world.problems(), Vec::<String>::new());
    // They go when the promise ends, before those that came later.
    world.wait_s(1100);
    feed(&world, 250, 5).await;
    assert!(!files(world.disk.as_ref()).contains(&"00000001.seg".to_owned()));
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// The newest file cut off costs what was in it; the next start goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_that_was_cut_costs_its_articles() {
    let world = World::new(segments(|_| {}));
    feed(&world, 0, 60).await;
    let newest = Path::new(DIR).join(files(world.disk.as_ref()).pop().unwrap());
    let file = world.disk.open(&newest, OpenMode::ReadWrite).unwrap();
    file.set_len(300_000).unwrap();
    let world = world.restart();
    let kept = alive(&world, 60).await;
    assert!((30..60).contains(&kept.len()), "{kept:?}");
    assert_eq!(feed(&world, 60, 10).await, [Outcome::Accepted; 10]);
    assert_eq!(alive(&world, 60).await, kept);
}

/// One in the middle too: what lay behind the cut is damaged, not a fault of the disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_that_was_cut_in_the_middle_costs_its_articles() {
    let world = World::new(segments(|_| {}));
    feed(&world, 0, 100).await;
    let second = Path::new(DIR).join("00000002.seg");
    let file = world.disk.open(&second, OpenMode::ReadWrite).unwrap();
    file.set_len(300_000).unwrap();
    let world = world.restart();
    let kept = alive(&world, 100).await;
    assert!((60..100).contains(&kept.len()), "{kept:?}");
    assert_eq!(feed(&world, 100, 10).await, [Outcome::Accepted; 10]);
}

/// So does one whose room cannot be had again: the start goes on, and so do new articles.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_that_was_cut_on_a_full_disk_stops_no_start() {
    let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let world = World::on(Arc::new(disk.clone()), segments(|_| {}));
    feed(&world, 0, 60).await;
    let newest = Path::new(DIR).join(files(world.disk.as_ref()).pop().unwrap());
    let file = world.disk.open(&newest, OpenMode::ReadWrite).unwrap();
    file.set_len(300_000).unwrap();
    disk.add(Fault::new(Op::Reserve, DIR, Effect::Full));
    let world = world.restart();
    let kept = alive(&world, 60).await;
    assert!((30..60).contains(&kept.len()), "{kept:?}");
    assert_eq!(feed(&world, 60, 10).await, [Outcome::Accepted; 10]);
    assert!(world.by_id("<69@t.example>").await.is_some());
}

/// Damaged headers of a file in the middle do not keep what is old for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_with_damaged_headers_goes_with_its_age_too() {
    let world = World::new(segments(|set| set.keep_s = Some(1000)));
    feed(&world, 0, 150).await;
    let third = Path::new(DIR).join("00000003.seg");
    let file = world.disk.open(&third, OpenMode::ReadWrite).unwrap();
    file.write_at(&[b'?'; 8192], 0).unwrap();
    world.wait_s(5000);
    for n in 0..12 {
        feed(&world, 150 + n, 1).await;
    }
    // The newest, and the two in front of it at the most: one was left by its age, and each tells the age of the one before.
    assert!(files(world.disk.as_ref()).len() <= 3);
}

/// Zeros where articles should be: a start took the file for one in which nothing is left, and removed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_in_which_nothing_can_be_met_is_not_an_empty_one() {
    let world = World::new(segments(|set| set.keep_octets = Some(1 << 30)));
    assert_eq!(feed(&world, 0, 150).await, [Outcome::Accepted; 150]);
    let cycles: Vec<u32> = (0..150).map(|n| cycle_of(&world, n)).collect();
    let ends = [1, 2].map(|cycle| cycles.partition_point(|it| *it <= cycle));
    world.seal();
    let world = between_runs(world, |disk| {
        for name in ["00000001.seg", "00000002.seg"] {
            let path = Path::new(DIR).join(name);
            let file = disk.open(&path, OpenMode::ReadWrite).unwrap();
            file.write_at(&vec![0; (1 << 20) - 12_288], 12_288).unwrap();
        }
    });
    let come = async |world: &World, from: usize| {
        for n in from..from + 30 {
            world.send(&[article(n, "misc.test")]).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    come(&world, 1000).await;
    assert_eq!(files(world.disk.as_ref())[0], "00000001.seg");
    assert_eq!(alive(&world, 150).await, (ends[1]..150).collect::<Vec<_>>());
    // What is told to be empty by the history goes as before.
    let rest: Vec<usize> = (ends[1]..150).collect();
    withdraw(&world, &rest);
    come(&world, 2000).await;
    assert_eq!(files(world.disk.as_ref())[0], "00000001.seg");
}

/// A disk that is away, comes back and goes once more: what was told once is told again, and forgotten in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gap_is_told_anew_when_it_is_there_again() {
    let world = World::new(segments(|set| set.keep_octets = Some(1 << 30)));
    assert_eq!(feed(&world, 0, 150).await, [Outcome::Accepted; 150]);
    let all = alive(&world, 150).await;
    world.seal();
    let places = ["00000002.seg", "away.seg"].map(|name| Path::new(DIR).join(name));
    let [here, away] = places;
    let state = |world: &World| world.engine.status().buffers[0].state.clone();
    let scrub = |world: &World| {
        let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        (
            report.damaged.len(),
            world.engine.status().counters.damaged_articles,
        )
    };
    let mut world = world;
    for _ in 0..2 {
        world = between_runs(world, |disk| disk.rename(&here, &away).unwrap());
        assert!(
            state(&world).contains("there is no 00000002.seg"),
            "{}",
            state(&world)
        );
        let lost = all.len() - alive(&world, 150).await.len();
        assert!(lost > 10, "{lost}");
        assert_eq!(scrub(&world), (lost, lost as u64));
        assert_eq!(scrub(&world), (lost, lost as u64), "once in each run");
        world = between_runs(world, |disk| disk.rename(&away, &here).unwrap());
        assert_eq!(state(&world), "ok");
        assert_eq!(scrub(&world), (0, 0));
        assert_eq!(alive(&world, 150).await, all);
    }
}

/// With each thousand articles that were withdrawn the whole history was read once more before their segment went.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_is_read_once_before_a_segment_goes_however_many_left_it() {
    const ARTICLES: usize = 9000;
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let mut config = segments(|set| set.keep_octets = Some(1 << 30));
    // Nothing is merged meanwhile, and no page that is asked for is read twice.
    config.index.runs_max = 1 << 10;
    config.index.history_cache_bytes_max = 64 << 20;
    let world = World::on(Arc::new(faulty.clone()), config);
    let articles: Vec<_> = (0..ARTICLES).map(|n| article(n, "misc.test")).collect();
    for some in articles.chunks(500) {
        let outcomes = world.send(some).await;
        assert!(outcomes.iter().all(|it| *it == Outcome::Accepted));
    }
    // The history leads to them in a bucket; that they were withdrawn is in memory.
    world.seal();
    let cycles: Vec<u32> = (0..ARTICLES).map(|n| cycle_of(&world, n)).collect();
    let behind = cycles[ARTICLES - 1];
    let gone: Vec<usize> = (0..ARTICLES).filter(|n| cycles[*n] < behind).collect();
    assert!(gone.len() > 6000, "{}", gone.len());
    withdraw(&world, &gone);
    // Both files are compared in the background; who asks the history reads one of them.
    let read = || {
        let of = |kind| faulty.octets_read(&format!("history-0000000000000001.{kind}"));
        of("run").saturating_sub(of("copy"))
    };
    let run = Path::new("/spool/index/history-0000000000000001.run");
    let octets = memory.open(run, OpenMode::Read).unwrap().len().unwrap();
    let before = read();
    until_oldest_is_above(&world, behind as usize - 1).await;
    let read = read() - before;
    assert!(
        octets > 400 << 10 && read < 3 * octets,
        "{read} of {octets}"
    );
}

/// All octets of a file of the set.
fn content(disk: &dyn Disk, name: &str) -> Vec<u8> {
    let file = disk
        .open(&Path::new(DIR).join(name), OpenMode::Read)
        .unwrap();
    let mut octets = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut octets, 0).unwrap();
    octets
}

fn swap(disk: &dyn Disk, one: &str, other: &str) {
    let path = |name: &str| Path::new(DIR).join(name);
    disk.rename(&path(one), &path("swap")).unwrap();
    disk.rename(&path(other), &path(one)).unwrap();
    disk.rename(&path("swap"), &path(other)).unwrap();
}

/// Names that were swapped cost 132 articles, and one of the files was removed, or written into.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn segments_whose_names_were_swapped_are_served_told_and_left_alone() {
    let world = World::new(segments(|set| set.keep_octets = Some(1 << 30)));
    assert_eq!(feed(&world, 0, 150).await, [Outcome::Accepted; 150]);
    let newest = files(world.disk.as_ref()).pop().unwrap();
    assert_eq!(newest, "00000005.seg");
    let mut before = Vec::new();
    let world = between_runs(world, |disk| {
        swap(disk, "00000002.seg", "00000003.seg");
        swap(disk, "00000001.seg", &newest);
        before = ["00000001.seg", "00000002.seg", "00000003.seg", &newest]
            .map(|name| content(disk, name))
            .to_vec();
    });
    assert_eq!(alive(&world, 150).await, (0..150).collect::<Vec<_>>());
    assert_eq!(world.problems(), Vec::<String>::new());
    let state = world.engine.status().buffers.remove(0).state;
    let said = "00000001.seg: by its name it is segment 1 of the set, by its content segment 5";
    assert!(state.contains(said), "{state}");
    // New ones come into a new file.
    assert_eq!(feed(&world, 150, 10).await, [Outcome::Accepted; 10]);
    let names = files(world.disk.as_ref());
    assert_eq!(names.last().unwrap(), "00000006.seg");
    // Nothing is left in any of them: what is not what its name says stays.
    withdraw(&world, &(0..150).collect::<Vec<_>>());
    for n in 0..40 {
        world.send(&[article(1000 + n, "misc.test")]).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let expect = [
        "00000001.seg",
        "00000002.seg",
        "00000003.seg",
        &newest,
        "00000006.seg",
    ];
    let names = files(world.disk.as_ref());
    assert_eq!(names, expect);
    let after = expect[..4]
        .iter()
        .map(|name| content(world.disk.as_ref(), name));
    assert!(after.eq(before), "not an octet of them was written");
}

/// A file without a header, and one of zeros: the newest is not written into, and none is removed before its turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn segments_that_tell_nothing_of_themselves_are_told_and_left_alone() {
    let world = World::new(segments(|set| set.keep_octets = Some(1 << 30)));
    assert_eq!(feed(&world, 0, 150).await, [Outcome::Accepted; 150]);
    let cycles: Vec<u32> = (0..150).map(|n| cycle_of(&world, n)).collect();
    let newest = files(world.disk.as_ref()).pop().unwrap();
    let mut before = Vec::new();
    let world = between_runs(world, |disk| {
        for (name, octets) in [("00000001.seg", 1 << 20), (&newest, 8192)] {
            let path = Path::new(DIR).join(name);
            let file = disk.open(&path, OpenMode::ReadWrite).unwrap();
            file.write_at(&vec![0; octets], 0).unwrap();
        }
        disk.remove(&Path::new(DIR).join("00000003.seg")).unwrap();
        before = content(disk, &newest);
    });
    let is_left = |n: &usize| !matches!(cycles[*n], 1 | 3);
    assert_eq!(
        alive(&world, 150).await,
        (0..150).filter(is_left).collect::<Vec<_>>()
    );
    let state = world.engine.status().buffers.remove(0).state;
    assert!(
        state.contains("00000001.seg: it is full of zeros"),
        "{state}"
    );
    assert!(state.contains("and 2 more"), "{state}");
    for n in 0..30 {
        world.send(&[article(1000 + n, "misc.test")]).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let names = files(world.disk.as_ref());
    assert_eq!(
        (names[0].as_str(), names.len()),
        ("00000001.seg", 5),
        "{names:?}"
    );
    assert_eq!(content(world.disk.as_ref(), &newest), before);
}

/// Somebody's file had the name of a segment to come: it was written into, and what was acknowledged lay in a file of which the log said
/// that it may be removed; or it had the articles of another segment, and was set aside and forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_with_the_name_of_a_segment_to_come_is_left_alone() {
    let world = World::new(segments(|set| set.keep_octets = Some(1 << 30)));
    assert_eq!(feed(&world, 0, 100).await, [Outcome::Accepted; 100]);
    let newest = cycle_of(&world, 99);
    let name = |ahead: u32| format!("{:08}.seg", newest + ahead);
    let world = between_runs(world, |disk| {
        for (ahead, octet) in [(1, 0), (2, 1)] {
            let path = Path::new(DIR).join(name(ahead));
            let file = disk.open(&path, OpenMode::CreateNew).unwrap();
            file.write_at(&vec![octet; 1 << 20], 0).unwrap();
            file.sync_all().unwrap();
        }
        let path = |name: &str| Path::new(DIR).join(name);
        disk.rename(&path("00000001.seg"), &path(&name(4))).unwrap();
    });
    let before: Vec<_> = [1, 2, 4]
        .map(|ahead| content(world.disk.as_ref(), &name(ahead)))
        .into();
    // Put there while it runs.
    let late = Path::new(DIR).join(name(5));
    let file = world.disk.open(&late, OpenMode::CreateNew).unwrap();
    file.write_at(b"somebody's", 0).unwrap();
    file.sync_all().unwrap();
    assert_eq!(feed(&world, 100, 100).await, [Outcome::Accepted; 100]);
    let all: Vec<usize> = (0..200).collect();
    let mut world = world;
    for _ in 0..2 {
        assert_eq!(alive(&world, 200).await, all);
        let after: Vec<_> = [1, 2, 4]
            .map(|ahead| content(world.disk.as_ref(), &name(ahead)))
            .into();
        assert!(after == before, "{:?}", files(world.disk.as_ref()));
        assert_eq!(content(world.disk.as_ref(), &name(5)), b"somebody's");
        world = between_runs(world, |_| ());
    }
    assert!(cycle_of(&world, 199) > newest + 5);
}

/// The files of a set were away while others were made, which got a UUID of their own: those that came back were then said to be of
/// another set, of the same name, and nothing in them was served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_come_back_are_of_the_same_set() {
    let world = World::new(segments(|_| {}));
    assert_eq!(feed(&world, 0, 60).await, [Outcome::Accepted; 60]);
    let away = Path::new("/away");
    let names = files(world.disk.as_ref());
    let rename = |disk: &dyn Disk, from: &Path, to: &Path| {
        for name in &names {
            disk.rename(&from.join(name), &to.join(name)).unwrap();
        }
    };
    let world = between_runs(world, |disk| {
        disk.create_dir_all(away).unwrap();
        rename(disk, Path::new(DIR), away);
    });
    assert_eq!(feed(&world, 60, 60).await, [Outcome::Accepted; 60]);
    let new: Vec<usize> = (60..120).collect();
    assert_eq!(alive(&world, 120).await, new);
    let aside = Path::new(DIR).join("00000009.seg.aside");
    let world = between_runs(world, |disk| {
        let is_free = |name: &String| !disk.exists(&Path::new(DIR).join(name)).unwrap();
        assert!(names.iter().all(is_free));
        rename(disk, away, Path::new(DIR));
        // And what somebody has to look at.
        disk.open(&aside, OpenMode::CreateNew).unwrap();
    });
    let all: Vec<usize> = (0..120).collect();
    assert_eq!(alive(&world, 120).await, all);
    assert_eq!(feed(&world, 120, 5).await, [Outcome::Accepted; 5]);
    let world = world.restart();
    assert_eq!(alive(&world, 125).await.len(), 125);
    assert_eq!(world.problems(), Vec::<String>::new());
    let state = world.engine.status().buffers[0].state.clone();
    assert!(
        state.contains("/spool/segments/main/00000009.seg.aside: set aside")
            && state.contains("files: 1"),
        "{state}"
    );
}

/// A file of another spool was told twice: as what it is, and as one that is not there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_file_is_no_gap_and_what_is_lost_with_it_can_be_withdrawn() {
    let other = World::new(segments(|_| {}));
    assert_eq!(feed(&other, 0, 5).await, [Outcome::Accepted; 5]);
    let foreign = content(other.disk.as_ref(), "00000001.seg");
    let world = World::new(segments(|_| {}));
    assert_eq!(feed(&world, 0, 100).await, [Outcome::Accepted; 100]);
    let lost: Vec<usize> = (0..100).filter(|n| cycle_of(&world, *n) == 2).collect();
    let world = between_runs(world, |disk| {
        let path = Path::new(DIR).join("00000002.seg");
        let file = disk.open(&path, OpenMode::ReadWrite).unwrap();
        file.write_at(&foreign, 0).unwrap();
    });
    let state = world.engine.status().buffers[0].state.clone();
    assert!(
        state.contains("00000002.seg: it belongs to another spool")
            && !state.contains("more, see the log"),
        "{state}"
    );
    assert_eq!(alive(&world, 100).await.len(), 100 - lost.len());
    assert_eq!(world.lines("misc.test").await.len(), 100);
    withdraw(&world, &lost);
    assert_eq!(world.lines("misc.test").await.len(), 100 - lost.len());
    assert_eq!(content(world.disk.as_ref(), "00000002.seg"), foreign);
    let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    assert_eq!(report.damaged, []);
}
