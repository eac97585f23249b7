//! Rot in the sealed files of the views: reported, counted, rebuilt in the background, and served around meanwhile; and
//! in the articles themselves: it costs the article it is in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_engine::{
    ArticleRef, EngineConfig, GroupChange, GroupReport, GroupSpec, NewnewsCursor, Reason,
    Withdrawal,
};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Disk, FakeClock, MemoryDisk, Op, RealDisk, read_whole};
use newsreel_service::{ArticleBuf, ArticleQuery, NewsService, Outcome, Part, ServiceError};
use newsreel_wire::{ArticleNumber, GroupId, MessageId, UnixTime, Wildmat};

use crate::world::{World, article, config, open_on};

const GROUPS: [&str; 3] = ["misc.test", "misc.other", "misc.test,misc.other"];

fn articles(from: usize, len: usize) -> Vec<(String, Vec<u8>)> {
    (from..from + len)
        .map(|at| article(at, GROUPS[at % 3]))
        .collect()
}

/// The files of a view, oldest first.
pub(crate) fn files(disk: &dyn Disk, stem: &str) -> Vec<PathBuf> {
    let index = Path::new("/spool/index");
    let files = disk.list(index).unwrap().into_iter();
    files
        .filter(|file| file.name.starts_with(stem))
        .map(|file| index.join(file.name))
        .collect()
}

/// Overwrites everything behind a file's first page.
fn ruin(memory: &MemoryDisk, path: &Path) {
    let file = memory.open(path, newsreel_host::OpenMode::Read).unwrap();
    let len = file.len().unwrap() as usize;
    memory
        .corrupt(path, 4096, &vec![0x5a; len.saturating_sub(4096)])
        .unwrap();
}

/// What readers see of a world: all overview lines, and every article.
async fn seen(world: &World, ids: &[String]) -> (Vec<Vec<String>>, Vec<Option<String>>) {
    let mut lines = Vec::new();
    for group in ["misc.test", "misc.other"] {
        lines.push(world.lines(group).await);
    }
    let mut texts = Vec::new();
    for id in ids {
        texts.push(world.by_id(id).await);
    }
    (lines, texts)
}

/// While something is rebuilt, GROUP and OVER answer with all they had or with a fault (403), never with less.
async fn no_gap(world: &World, before: &[String]) {
    match world.try_lines("misc.test").await {
        Ok(lines) => assert_eq!(lines, before),
        Err(error) => assert!(matches!(error, ServiceError::Fault("index")), "{error:?}"),
    }
}

pub(crate) fn wait_for_repair(world: &World) {
    world.wait_until("the rebuild", |world| {
        let status = world.engine.status();
        status.damaged.is_empty() && status.counters.rebuilt_files > 0
    });
}

/// A spool with three checkpoints' worth of sealed files.
async fn sealed(memory: &MemoryDisk) -> (World, Vec<String>) {
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    let mut ids = Vec::new();
    for round in 0..3 {
        let articles = articles(round * 100, 100);
        let outcomes = world.send(&articles).await;
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
        ids.extend(articles.into_iter().map(|(id, _)| id));
        world.seal();
    }
    (world, ids)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ruined_or_missing_files_of_the_views_are_rebuilt_after_a_start() {
    for stem in ["history", "overview", "groups"] {
        for is_removed in [false, true] {
            let memory = MemoryDisk::new();
            let (world, ids) = sealed(&memory).await;
            let before = seen(&world, &ids).await;
            let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
            drop(world);
            let path = files(&memory, stem).remove(0);
            if is_removed {
                memory.remove(&path).unwrap();
            } else {
                ruin(&memory, &path);
            }
            let what = format!("{stem}, removed: {is_removed}");
            let world = open_on(Arc::new(memory.clone()), &config, &clock);
            if stem == "overview" {
                // Its blocks are looked at when somebody asks for them.
                no_gap(&world, &before.0[0]).await;
            }
            wait_for_repair(&world);
            assert!(world.engine.status().counters.damaged_files > 0, "{what}");
            assert_eq!(seen(&world, &ids).await, before, "{what}");
            assert_eq!(world.problems(), Vec::<String>::new(), "{what}");
            assert_eq!(
                world.send(&articles(0, 2)).await,
                [Outcome::Duplicate; 2],
                "{what}"
            );
            let world = world.restart();
            assert_eq!(world.engine.status().damaged, Vec::<String>::new());
            assert_eq!(seen(&world, &ids).await, before, "{what}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_met_while_serving_is_told_and_rebuilt_and_the_rest_is_served() {
    let memory = MemoryDisk::new();
    let (world, ids) = sealed(&memory).await;
    let before = seen(&world, &ids).await;
    // Nothing decoded is in memory after a start.
    let world = world.restart();
    // Only the oldest file is ruined.
    ruin(&memory, &files(&memory, "overview")[0]);
    no_gap(&world, &before.0[0]).await;
    let report = world.engine.check(&mut |_, _| {}).unwrap();
    let status = world.engine.status();
    let is_mended = status.counters.rebuilt_files > 0;
    assert!(is_mended || !report.is_clean(), "{report:?}");
    wait_for_repair(&world);
    assert!(world.engine.status().counters.damaged_files > 0);
    assert_eq!(seen(&world, &ids).await, before);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Articles of a commit that failed lie in the store, but nobody was told that they were taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuild_brings_back_nothing_that_was_never_committed() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let world = World::on(Arc::new(faulty.clone()), config(4 << 20));
    world.send(&articles(0, 30)).await;
    let (nth, _) = world
        .until_a_commit_fails(&faulty, |nth| articles(1000 * nth, 30))
        .await;
    let first = 1000 * nth;
    let again = world.send(&articles(first, 15)).await;
    assert!(
        again
            .iter()
            .all(|o| matches!(o, Outcome::Accepted | Outcome::Duplicate))
    );
    world.send(&articles(200, 30)).await;
    world.seal();
    let before = seen(&world, &[]).await;
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    drop(world);
    ruin(&memory, &files(&memory, "overview")[0]);
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    no_gap(&world, &before.0[0]).await;
    wait_for_repair(&world);
    assert_eq!(seen(&world, &[]).await, before);
    assert_eq!(world.problems(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuild_gives_a_group_made_again_nothing_of_the_former_one() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    world.send(&articles(0, 30)).await;
    world.engine.remove_group("misc.test").unwrap();
    let again = vec![GroupSpec::new("misc.test")];
    world.engine.add_groups(again).unwrap();
    world.send(&articles(100, 30)).await;
    world.seal();
    let before = seen(&world, &[]).await;
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    drop(world);
    ruin(&memory, &files(&memory, "overview")[0]);
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    no_gap(&world, &before.0[0]).await;
    wait_for_repair(&world);
    assert_eq!(seen(&world, &[]).await, before);
    assert_eq!(before.0[0].len(), 20);
    let query = world.numbered("misc.test", 21).await;
    assert!(world.read(query, Part::Head).await.is_some());
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// What NEWNEWS answers for these groups.
pub(crate) async fn newnews(world: &World, wildmat: &str) -> Result<usize, ServiceError> {
    let wildmat = Wildmat::parse(wildmat).unwrap();
    let (mut cursor, mut out) = (NewnewsCursor::default(), Vec::new());
    let newnews = world
        .service
        .newnews(&wildmat, UnixTime(0), &mut cursor, 1 << 20, &mut out);
    newnews.await?;
    Ok(out.split(|octet| *octet == b'\n').count() - 1)
}

/// A pack that is gone costs the groups that may have rows in it, not all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_overview_file_costs_only_the_groups_in_it() {
    let memory = MemoryDisk::new();
    let mut config = config(4 << 20);
    config.index.runs_max = 1 << 10;
    let world = World::on(Arc::new(memory.clone()), config.clone());
    let more = ["misc.empty", "misc.lost"].map(GroupSpec::new).to_vec();
    world.engine.add_groups(more).unwrap();
    let only = |from: usize, group: &str| -> Vec<_> {
        (from..from + 30).map(|at| article(at, group)).collect()
    };
    for (from, group) in [
        (0, "misc.test"),
        (100, "misc.lost"),
        (200, "misc.lost"),
        (300, "misc.test"),
        (400, "misc.lost"),
        (500, "misc.other"),
    ] {
        world.send(&only(from, group)).await;
        world.seal();
    }
    let before = [
        world.lines("misc.test").await,
        world.lines("misc.other").await,
    ];
    let active = active(&world).await;
    let clock = Arc::clone(&world.clock);
    drop(world);
    let packs = files(&memory, "overview");
    memory.remove(&packs[2]).unwrap();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    faulty.add(Fault::new(Op::Write, "/index/", Effect::Full).forever());
    let world = open_on(Arc::new(faulty.clone()), &config, &clock);
    for (name, lines) in ["misc.test", "misc.other"].into_iter().zip(&before) {
        assert_eq!(world.try_lines(name).await.unwrap(), *lines);
        assert_eq!(newnews(&world, name).await.unwrap(), lines.len());
    }
    assert_eq!(
        world.try_lines("misc.empty").await.unwrap(),
        Vec::<String>::new()
    );
    let lost = world.try_lines("misc.lost").await;
    assert!(
        matches!(lost, Err(ServiceError::Fault("index"))),
        "{lost:?}"
    );
    assert!(newnews(&world, "misc.lost").await.is_err() && newnews(&world, "*").await.is_err());
    // What lies on this side and on that side of the gap can be read.
    let group = world.engine.group("misc.lost").unwrap();
    assert_eq!((group.low, group.high, group.count), (1, 90, 90));
    for number in [1, 30, 61, 90] {
        let query = ArticleQuery::ByNumber(GroupId(group.id), ArticleNumber(number));
        assert!(world.read(query, Part::Head).await.is_some());
    }
    for number in [31, 60] {
        let (mut out, number) = (ArticleBuf::new(), ArticleNumber(number));
        let query = ArticleQuery::ByNumber(GroupId(group.id), number);
        let read = world.service.article(query, Part::Head, &mut out).await;
        assert!(
            matches!(read, Err(ServiceError::Fault("index"))),
            "{read:?}"
        );
    }
    assert_eq!(self::active(&world).await, active);
    faulty.clear();
    clock.advance(std::time::Duration::from_secs(31));
    wait_for_repair(&world);
    assert_eq!(world.lines("misc.lost").await.len(), 90);
    assert_eq!(self::active(&world).await, active);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// LIST ACTIVE.
async fn active(world: &World) -> Vec<String> {
    let mut lines = Vec::new();
    world.service.active_list(&mut lines).await.unwrap();
    let text = String::from_utf8(lines.concat()).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Where it cannot be known what is lost, LIST ACTIVE names no number too few: its low marks may be too low.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_active_answers_while_overview_is_lost() {
    let memory = MemoryDisk::new();
    // So small that the oldest articles are overwritten.
    let world = World::on(Arc::new(memory.clone()), config(1 << 20));
    for round in 0..30 {
        let articles: Vec<_> = (0..100)
            .map(|at| large_article(round * 100 + at, GROUPS[at % 3]))
            .collect();
        world.send(&articles).await;
        world.seal();
    }
    let before = active(&world).await;
    let low = |line: &String| line.split(' ').nth(2).unwrap().parse::<u64>().unwrap();
    assert!(before.iter().all(|line| low(line) > 100), "{before:?}");
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    drop(world);
    for path in files(&memory, "overview") {
        memory.remove(&path).unwrap();
    }
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    faulty.add(Fault::new(Op::Write, "/index/", Effect::Full).forever());
    let world = open_on(Arc::new(faulty.clone()), &config, &clock);
    let estimate = active(&world).await;
    assert_eq!(estimate.len(), before.len());
    for (line, exact) in estimate.iter().zip(&before) {
        let name_and_high = |line: &String| line.rsplitn(3, ' ').nth(2).map(str::to_owned);
        assert_eq!(name_and_high(line), name_and_high(exact));
        assert!(low(line) <= low(exact), "{line}, {exact}");
    }
    faulty.clear();
    clock.advance(std::time::Duration::from_secs(31));
    wait_for_repair(&world);
    assert_eq!(active(&world).await, before);
}

fn large_article(n: usize, groups: &str) -> (String, Vec<u8>) {
    long_article(n, groups, 30)
}

pub(crate) fn long_article(n: usize, groups: &str, lines: usize) -> (String, Vec<u8>) {
    let (id, mut article) = article(n, groups);
    let body = [b"x".repeat(70), b"\r\n".to_vec()].concat().repeat(lines);
    let end = article.len() - 3;
    article.splice(end..end, body);
    (id, article)
}

/// A rebuild that cannot be written leaves everything as it was and is done later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuild_that_fails_is_tried_again() {
    let memory = MemoryDisk::new();
    let (world, ids) = sealed(&memory).await;
    let before = seen(&world, &ids).await;
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    drop(world);
    for path in &files(&memory, "history")[..2] {
        memory.remove(path).unwrap();
    }
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    faulty.add(Fault::new(Op::Write, "/index/", Effect::Full));
    let world = open_on(Arc::new(faulty), &config, &clock);
    world.wait_until("the failure", |world| {
        world.engine.status().counters.disk_errors > 0
    });
    assert!(!world.engine.status().damaged.is_empty());
    clock.advance(std::time::Duration::from_secs(31));
    wait_for_repair(&world);
    assert_eq!(seen(&world, &ids).await, before);
}

/// Overwriting, cutting or removing every first file of the history: nothing is asked for twice, not for a moment, and
/// it is reported, counted and made good.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_places_of_the_history_is_enough() {
    for suffix in [".run", ".copy"] {
        let memory = MemoryDisk::new();
        let (world, _) = sealed(&memory).await;
        // Its pages are in memory otherwise.
        let world = world.restart();
        for path in files(&memory, "history") {
            if path.to_str().unwrap().ends_with(suffix) {
                ruin(&memory, &path);
            }
        }
        let outcomes = world.send(&articles(0, 300)).await;
        assert_eq!(outcomes, vec![Outcome::Duplicate; 300]);
        if suffix == ".copy" {
            // Nobody reads the second file; a check does.
            let problems = world.problems();
            assert!(
                problems.iter().all(|why| why.contains("answers")),
                "{problems:?}"
            );
        }
        world.wait_until("three good files", |world| {
            let counters = world.engine.status().counters;
            counters.damaged_files == 3 && counters.rebuilt_files == 3
        });
        assert_eq!(world.problems(), Vec::<String>::new());
        let world = world.restart();
        assert_eq!(
            world.send(&articles(0, 300)).await,
            vec![Outcome::Duplicate; 300]
        );
        assert_eq!(world.engine.status().damaged, Vec::<String>::new());
    }
}

/// Without its manifest a spool whose log was retired goes on with the sealed files themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_manifest_is_made_again_though_the_log_does_not_reach_back() {
    for is_removed in [true, false] {
        let memory = MemoryDisk::new();
        let mut config = config(4 << 20);
        config.journal.segment_octets = 64 << 10;
        config.sequencer.log_keep_octets = 0;
        let world = World::on(Arc::new(memory.clone()), config.clone());
        let mut ids = Vec::new();
        for round in 0..6 {
            let articles = articles(round * 100, 100);
            world.send(&articles).await;
            ids.extend(articles.into_iter().map(|(id, _)| id));
            world.seal();
        }
        assert!(world.engine.status().log.oldest > 100);
        let before = seen(&world, &ids).await;
        let clock = Arc::clone(&world.clock);
        drop(world);
        let manifest = Path::new("/spool/index/manifest");
        if is_removed {
            memory.remove(manifest).unwrap();
        } else {
            memory.corrupt(manifest, 0, &[0x5a; 8000]).unwrap();
        }
        let world = open_on(Arc::new(memory.clone()), &config, &clock);
        world.wait_until("the rebuild", |world| {
            world.engine.status().damaged.is_empty()
        });
        assert_eq!(seen(&world, &ids).await, before);
        assert_eq!(
            world.send(&articles(0, 600)).await,
            vec![Outcome::Duplicate; 600]
        );
        assert_eq!(world.problems(), Vec::<String>::new());
        let high = world.high("misc.test");
        assert_eq!(world.send(&articles(600, 3)).await, [Outcome::Accepted; 3]);
        assert!(world.high("misc.test") > high);
        let world = world.restart();
        assert_eq!(world.problems(), Vec::<String>::new());
    }
}

/// Ruins both files of every run of group rows.
fn ruin_groups(memory: &MemoryDisk) {
    for path in files(memory, "groups") {
        ruin(memory, &path);
    }
}

/// A spool whose log does not reach back to when its groups were made.
async fn without_old_log(memory: &MemoryDisk) -> World {
    let mut config = config(4 << 20);
    config.journal.segment_octets = 64 << 10;
    config.sequencer.log_keep_octets = 0;
    let world = World::on(Arc::new(memory.clone()), config);
    world
        .engine
        .add_groups(vec![GroupSpec::new("misc.empty")])
        .unwrap();
    for round in 0..4 {
        world.send(&articles(round * 100, 100)).await;
        world.seal();
    }
    assert!(world.engine.status().log.oldest > 100);
    world
}

/// Nobody is given the articles of a group that is lost: the id of a new one was the id of an old one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_whose_rows_are_lost_come_back_from_their_articles() {
    let memory = MemoryDisk::new();
    let world = without_old_log(&memory).await;
    let before = seen(&world, &[]).await;
    let highs = ["misc.test", "misc.other"].map(|name| world.high(name));
    let ids = ["misc.test", "misc.other"].map(|name| world.engine.group(name).unwrap().id);
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    drop(world);
    ruin_groups(&memory);
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    let names = || -> Vec<String> {
        let groups = world.engine.groups().into_iter();
        groups.map(|group| group.name).collect()
    };
    assert_eq!(names(), ["misc.other", "misc.test"]);
    for (at, name) in ["misc.test", "misc.other"].into_iter().enumerate() {
        let group = world.engine.group(name).unwrap();
        assert_eq!((group.id, &group.status[..]), (ids[at], "y"));
        assert_eq!(group.creator, "rebuilt");
    }
    world
        .engine
        .add_groups(vec![GroupSpec::new("misc.new")])
        .unwrap();
    assert!(
        world.engine.group("misc.new").unwrap().id > 2,
        "an id was given twice"
    );
    assert_eq!(world.lines("misc.new").await, Vec::<String>::new());
    assert_eq!(seen(&world, &[]).await, before);
    assert_eq!(world.send(&articles(400, 3)).await, [Outcome::Accepted; 3]);
    assert!(world.high("misc.test") > highs[0] && world.high("misc.other") > highs[1]);
    // One that nobody knows of any more: no number of it is given again.
    world
        .engine
        .add_groups(vec![GroupSpec::new("misc.empty")])
        .unwrap();
    assert!(world.high("misc.empty") >= 400);
}

/// Groups that were filed alike, and a name that two groups had one after the other, are told apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_groups_that_look_alike_are_told_apart() {
    let memory = MemoryDisk::new();
    let mut config = config(4 << 20);
    config.journal.segment_octets = 64 << 10;
    config.sequencer.log_keep_octets = 0;
    let world = World::on(Arc::new(memory.clone()), config.clone());
    let names = [
        "misc.a",
        "misc.b",
        "misc.again",
        "misc.c",
        "misc.other",
        "misc.test",
    ];
    let make = |names: &[&str]| {
        let specs = names.iter().map(|name| GroupSpec::new(name)).collect();
        world.engine.add_groups(specs).unwrap();
    };
    make(&["misc.again", "misc.c", "misc.b", "misc.a"]);
    let both = |from: usize, groups: &str| -> Vec<_> {
        (from..from + 100).map(|at| article(at, groups)).collect()
    };
    let all = "misc.test,misc.a,misc.other,misc.c,misc.b,misc.again";
    world.send(&both(0, all)).await;
    world.seal();
    world.engine.remove_group("misc.again").unwrap();
    make(&["misc.again"]);
    for (from, groups) in [
        (100, "misc.again,misc.b,misc.a"),
        (200, "misc.c"),
        (300, "misc.test"),
    ] {
        world.send(&both(from, groups)).await;
        world.seal();
    }
    assert!(world.engine.status().log.oldest > 100);
    let facts = |world: &World| -> Vec<(String, u32, u64)> {
        let groups = world.engine.groups().into_iter();
        groups
            .map(|group| (group.name, group.id, group.count))
            .collect()
    };
    let (before, lines) = (facts(&world), all_lines(&world, &names).await);
    let clock = Arc::clone(&world.clock);
    drop(world);
    ruin_groups(&memory);
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    assert_eq!(all_lines(&world, &names).await, lines);
    // Nothing ever came to one of these that did not come to the other.
    let alike = ["misc.a", "misc.b"];
    let but_ids = |mut facts: Vec<(String, u32, u64)>| {
        let mut alike: Vec<_> = facts
            .iter_mut()
            .filter(|fact| alike.contains(&&fact.0[..]))
            .collect();
        alike.iter_mut().for_each(|fact| fact.1 = 0);
        facts
    };
    assert_eq!(but_ids(facts(&world)), but_ids(before));
    let world = world.restart();
    assert_eq!(all_lines(&world, &names).await, lines);
}

async fn all_lines(world: &World, names: &[&str]) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    for name in names {
        lines.push(world.lines(name).await);
    }
    lines
}

/// The loss of group rows is told as long as nobody says that it is settled, and is made up for once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_group_rows_stay_in_sight_until_they_are_back_or_forgotten() {
    for is_restored in [true, false] {
        let memory = MemoryDisk::new();
        let world = without_old_log(&memory).await;
        let before = seen(&world, &[]).await;
        let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
        drop(world);
        let paths = files(&memory, "groups");
        let read = |path: &PathBuf| read_whole(&memory, path, 1 << 30).unwrap();
        let copies: Vec<Vec<u8>> = paths.iter().map(read).collect();
        ruin_groups(&memory);
        let mut world = open_on(Arc::new(memory.clone()), &config, &clock);
        let mut highs = Vec::new();
        for round in 0..3 {
            world.send(&articles(400 + round * 10, 10)).await;
            world.seal();
            let status = world.engine.status();
            assert!(!status.damaged.is_empty());
            assert!(
                status.damaged.iter().all(|why| why.contains("forget-lost")),
                "{status:?}"
            );
            assert!(world.problems().iter().any(|why| why.contains("lost")));
            highs.push(world.high("misc.test"));
            world = world.restart();
        }
        assert!(highs[2] < highs[0] + 100, "it jumped again: {highs:?}");
        if is_restored {
            drop(world);
            for (path, octets) in paths.iter().zip(&copies) {
                memory.corrupt(path, 0, octets).unwrap();
            }
            world = open_on(Arc::new(memory.clone()), &config, &clock);
            assert!(world.engine.group("misc.empty").is_some());
            assert_eq!(world.engine.group("misc.test").unwrap().creator, "newsreel");
        } else {
            world.engine.forget_lost_groups().unwrap();
        }
        for _ in 0..2 {
            assert_eq!(world.engine.status().damaged, Vec::<String>::new());
            assert_eq!(world.problems(), Vec::<String>::new());
            let lines = world.lines("misc.test").await;
            assert_eq!(lines[..before.0[0].len()], before.0[0]);
            assert_eq!(world.high("misc.test"), highs[2]);
            world = world.restart();
        }
    }
}

/// What the log still tells of a lost group is exact, also when it has no articles.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_whose_rows_are_lost_come_back_from_the_log() {
    let memory = MemoryDisk::new();
    let (world, _) = sealed(&memory).await;
    let mut empty = GroupSpec::new("misc.empty");
    empty.high = ArticleNumber(70);
    let gone = GroupSpec::new("misc.gone");
    world.engine.add_groups(vec![empty, gone]).unwrap();
    world.engine.remove_group("misc.gone").unwrap();
    let change = GroupChange {
        status: Some("m".to_owned()),
        description: Some("Moderated".to_owned()),
        ..GroupChange::default()
    };
    world.engine.set_group("misc.other", change).unwrap();
    world.seal();
    let before = world.engine.groups();
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    drop(world);
    ruin_groups(&memory);
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    let without_high = |mut group: GroupReport| {
        group.high = 0;
        group.low = group.low.min(1);
        group
    };
    let groups = world.engine.groups().into_iter();
    let expect: Vec<_> = before.into_iter().map(without_high).collect();
    assert_eq!(groups.map(without_high).collect::<Vec<_>>(), expect);
    assert!(world.high("misc.empty") >= 70);
    assert!(world.engine.group("misc.gone").is_none());
}

/// Group rows are lost, and the overview's rows that could tell what numbers were given.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_number_is_given_twice_when_group_rows_are_lost() {
    let manifest = Path::new("/spool/index/manifest");
    for is_named in [true, false] {
        let memory = MemoryDisk::new();
        let mut config = config(4 << 20);
        config.journal.segment_octets = 64 << 10;
        config.sequencer.log_keep_octets = 0;
        config.index.runs_max = 1 << 10;
        let world = World::on(Arc::new(memory.clone()), config.clone());
        for round in 0..6 {
            world.send(&articles(round * 100, 100)).await;
            world.seal();
        }
        let (before, clock) = (world.high("misc.test"), Arc::clone(&world.clock));
        drop(world);
        for stem in ["groups", "overview"] {
            let paths = files(&memory, stem);
            let newest = paths.iter().max().unwrap().with_extension("");
            for path in paths
                .iter()
                .filter(|path| path.with_extension("") == newest)
            {
                memory.remove(path).unwrap();
            }
        }
        if !is_named {
            memory.remove(manifest).unwrap();
        }
        let world = open_on(Arc::new(memory.clone()), &config, &clock);
        assert_eq!(world.send(&articles(600, 3)).await, [Outcome::Accepted; 3]);
        world.wait_until("the rebuild", |world| {
            let damaged = world.engine.status().damaged;
            damaged.iter().all(|why| why.starts_with("groups"))
        });
        world.seal();
        let lost = usize::from(is_named);
        assert_eq!(world.engine.forget_lost_groups().unwrap(), lost);
        assert_eq!(world.engine.status().damaged, Vec::<String>::new());
        let high = world.high("misc.test");
        assert!(high > before, "named {is_named}: {high}, {before}");
        let world = world.restart();
        assert_eq!(world.high("misc.test"), high);
        assert_eq!(world.problems(), Vec::<String>::new());
    }
}

/// A spool of sixty articles that readers find on the disk only.
async fn on_disk(memory: &MemoryDisk) -> (FaultyDisk, World) {
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let mut config = config(4 << 20);
    config.store.sets[0].recent_octets = Some(0);
    let world = World::on(Arc::new(faulty.clone()), config);
    let outcomes = world.send(&articles(0, 60)).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
    (faulty, world.restart())
}

/// Where an octet in the middle of an article's body lies: file and offset.
fn body_of(world: &World, n: usize) -> (PathBuf, u64) {
    const RECORD_HEADER: u64 = 64;
    let id = ArticleRef::Id(format!("<{n}@t.example>"));
    let report = world.engine.article(&id).unwrap().unwrap();
    let mut token = report.token.split(':');
    let name = token.next().unwrap();
    let offset = u64::from_str_radix(token.next().unwrap(), 16).unwrap();
    let buffers = world.engine.status().buffers;
    let buffer = buffers.iter().find(|buffer| buffer.name == name).unwrap();
    let path = PathBuf::from(&buffer.path);
    (path, offset + RECORD_HEADER + report.octets - 10)
}

/// Every article but one is served, by id and by number, and so is every line.
async fn assert_neighbours(world: &World, damaged: usize) {
    for n in (0..60).filter(|n| *n != damaged) {
        let text = world.by_id(&format!("<{n}@t.example>")).await.unwrap();
        assert!(text.contains(&format!("Body of {n}\r\n")), "{text}");
    }
    for (group, count) in [("misc.test", 40), ("misc.other", 40)] {
        assert_eq!(world.lines(group).await.len(), count);
        let mut served = 0;
        for number in 1..=count as u64 {
            let query = world.numbered(group, number).await;
            let mut out = ArticleBuf::new();
            let read = world.service.article(query, Part::Head, &mut out).await;
            served += usize::from(matches!(read, Ok(Some(_))));
        }
        assert!(served + 1 >= count, "{group}: {served} of {count}");
    }
}

/// The server goes on: it takes articles, makes checkpoints, starts again, and can say what is wrong.
async fn assert_goes_on(world: World, damaged: &str) -> World {
    let outcomes = world.send(&articles(100, 20)).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
    world.seal();
    let again = world.send(&articles(0, 60)).await;
    assert_eq!(again, [Outcome::Duplicate; 60]);
    let world = world.restart();
    let problems = world.problems();
    let names_it = problems.iter().any(|problem| problem.contains(damaged));
    // As the log has it, and as it is met in the buffer.
    assert!(names_it && problems.len() == 2, "{problems:?}");
    world
}

/// Whether STAT and HEAD find it.
async fn answers(world: &World, id: &str) -> [bool; 2] {
    let mut answers = [false; 2];
    for (answer, part) in answers.iter_mut().zip([Part::Stat, Part::Head]) {
        let query = ArticleQuery::ById(MessageId::parse(id.as_bytes()).unwrap());
        *answer = world.read(query, part).await.is_some();
    }
    answers
}

/// Where it is filed was read from its text alone, so of what was damaged nobody could take the line away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_article_can_be_withdrawn() {
    for how in ["zeros", "medium"] {
        let memory = MemoryDisk::new();
        let (faulty, world) = on_disk(&memory).await;
        // In both groups, and in one.
        for n in [30, 31] {
            let id = format!("<{n}@t.example>");
            let (path, at) = body_of(&world, n);
            match how {
                "zeros" => memory.corrupt(&path, at - 300, &[0; 305]).unwrap(),
                _ => {
                    let name = path.display().to_string();
                    let fault = Fault::new(Op::Read, &name, Effect::Medium).covering(at);
                    faulty.add(fault.times(u64::MAX));
                }
            }
            let lines = |world: &World| {
                ["misc.test", "misc.other"].map(|group| world.engine.group(group).unwrap().count)
            };
            let before = lines(&world);
            let article = ArticleRef::Id(id.clone());
            assert_eq!(
                world.engine.try_withdraw(&article),
                Withdrawal::Done,
                "{how}"
            );
            let outcomes = world
                .engine
                .withdraw(std::slice::from_ref(&article), Reason::Cancelled);
            assert_eq!(outcomes.unwrap(), [Withdrawal::Done], "{how}");
            let after = lines(&world);
            assert!(
                after != before && after[0] <= before[0] && after[1] <= before[1],
                "{how}"
            );
            assert_eq!(answers(&world, &id).await, [false; 2], "{how}");
            let again = world.engine.withdraw(&[article], Reason::Cancelled);
            assert_eq!(again.unwrap(), [Withdrawal::NotHere], "{how}");
        }
        faulty.clear();
        let world = world.restart();
        assert_eq!(answers(&world, "<30@t.example>").await, [false; 2], "{how}");
        let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        assert_eq!(report.damaged, [], "{how}");
        assert_eq!(world.problems(), Vec::<String>::new(), "{how}");
    }
}

/// STAT said that it was there, and ARTICLE that it was not.  Whoever found it, a read or a scrub.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_known_to_be_damaged_is_not_there_for_stat() {
    let memory = MemoryDisk::new();
    let (_, world) = on_disk(&memory).await;
    let id = "<29@t.example>";
    let (path, at) = body_of(&world, 29);
    assert_eq!(answers(&world, id).await, [true; 2]);
    memory.flip_bit(&path, at, 3).unwrap();
    // Nobody knows it yet.
    assert_eq!(answers(&world, id).await, [true; 2]);
    let scrub = |world: &World| world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    assert_eq!(scrub(&world).damaged.len(), 1);
    assert_eq!(answers(&world, id).await, [false; 2]);
    memory.flip_bit(&path, at, 3).unwrap();
    assert_eq!(scrub(&world).damaged.len(), 0);
    assert_eq!(answers(&world, id).await, [true; 2]);
    memory.flip_bit(&path, at, 3).unwrap();
    assert_eq!(world.by_id(id).await, None);
    assert_eq!(answers(&world, id).await, [false; 2]);
    assert_eq!(scrub(&world).damaged.len(), 1, "it is told all the same");
    // A read that succeeds has it forgotten.
    memory.flip_bit(&path, at, 3).unwrap();
    assert!(world.by_id(id).await.is_some());
    assert_eq!(answers(&world, id).await, [true; 2]);
}

/// Promise 5: a block that rots costs the article in it; that is counted, told, and the server goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_flipped_bit_costs_one_article() {
    let memory = MemoryDisk::new();
    let (_, world) = on_disk(&memory).await;
    let damaged = 29;
    let id = format!("<{damaged}@t.example>");
    let (path, at) = body_of(&world, damaged);
    let mut octet = [0];
    let file = memory.open(&path, newsreel_host::OpenMode::Read).unwrap();
    file.read_exact_at(&mut octet, at).unwrap();
    memory.corrupt(&path, at, &[octet[0] ^ 4]).unwrap();
    assert_eq!(world.by_id(&id).await, None);
    assert_eq!(world.engine.status().counters.corrupt_reads, 1);
    assert_eq!(answers(&world, &id).await, [false; 2]);
    assert_neighbours(&world, damaged).await;
    assert_eq!(world.engine.status().counters.corrupt_reads, 1);
    assert_eq!(world.engine.status().counters.disk_errors, 0);
    assert_goes_on(world, &id).await;
}

/// Until a scrub came by no damage was known, though readers had met some.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_that_reads_meet_is_in_the_status_before_a_scrub_passes_it() {
    let memory = MemoryDisk::new();
    let (_, world) = on_disk(&memory).await;
    let (path, at) = body_of(&world, 29);
    let known = |world: &World| {
        let status = world.engine.status();
        let mut states = status.buffers.iter().filter(|it| it.state != "ok");
        let state = states.next().map(|buffer| buffer.state.clone());
        (status.scrub.damaged, status.scrub.met_by_reads, state)
    };
    assert_eq!(known(&world), (0, 0, None));
    memory.flip_bit(&path, at, 3).unwrap();
    assert_eq!(world.by_id("<29@t.example>").await, None);
    let (damaged, met, state) = known(&world);
    assert_eq!((damaged, met), (0, 1));
    let state = state.unwrap();
    assert!(
        state.starts_with("damaged: ") && state.contains("damaged: 1; "),
        "{state}"
    );
    world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    let (damaged, met, after) = known(&world);
    assert_eq!((damaged, met, after), (1, 0, Some(state)));
    memory.flip_bit(&path, at, 3).unwrap();
    assert!(world.by_id("<29@t.example>").await.is_some());
    assert_eq!(known(&world), (0, 0, None));
}

/// Also in the last commit before a crash, whose articles may all have been acknowledged and read: nothing else is lost,
/// and no number is given again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_flipped_bit_in_the_last_commit_costs_one_article() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    let outcomes = world.send(&articles(0, 60)).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
    let damaged = 29;
    let id = format!("<{damaged}@t.example>");
    let (path, at) = body_of(&world, damaged);
    let left = memory.crash_losing_all();
    let mut octet = [0];
    let file = left.open(&path, newsreel_host::OpenMode::Read).unwrap();
    file.read_exact_at(&mut octet, at).unwrap();
    left.corrupt(&path, at, &[octet[0] ^ 4]).unwrap();
    let world = open_on(Arc::new(left), &world.config, &world.clock);
    assert_eq!(world.by_id(&id).await, None);
    assert_neighbours(&world, damaged).await;
    assert_eq!(world.high("misc.test"), 40);
    assert_goes_on(world, &id).await;
}

/// Where the log's last frame is damaged its articles lie in the buffers, and nothing else is known of it: no number that it may
/// have given is given again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_of_a_damaged_last_frame_are_not_given_again() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    for from in [0, 30] {
        let outcomes = world.send(&articles(from, 30)).await;
        assert_eq!(outcomes, [Outcome::Accepted; 30]);
    }
    let lines = world.lines("misc.test").await;
    let left = memory.crash_losing_all();
    let log = Path::new("/spool/log");
    let segment = log.join(&left.list(log).unwrap()[0].name);
    let file = left.open(&segment, newsreel_host::OpenMode::Read).unwrap();
    let mut octets = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut octets, 0).unwrap();
    let id = b"<59@t.example>";
    let at = octets.windows(id.len()).rposition(|octets| octets == id);
    left.corrupt(&segment, at.unwrap() as u64, b"<58").unwrap();
    let world = open_on(Arc::new(left), &world.config, &world.clock);
    assert_eq!(world.lines("misc.test").await, lines);
    assert!(world.by_id("<59@t.example>").await.is_some());
    let outcomes = world.send(&[article(99, "misc.test")]).await;
    assert_eq!(outcomes, [Outcome::Accepted]);
    let lines = world.lines("misc.test").await;
    let number = lines.last().and_then(|line| line.split('\t').next());
    let number: u64 = number.unwrap().parse().unwrap();
    assert!(number > 40, "{number} was given before");
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Where the frames of the log lie in its only segment.
fn frames(disk: &MemoryDisk) -> (PathBuf, Vec<usize>) {
    let log = Path::new("/spool/log");
    let segment = log.join(&disk.list(log).unwrap()[0].name);
    let octets = read_whole(disk, &segment, 2 << 20).unwrap();
    let is_frame = |at: &usize| octets[*at..].starts_with(b"NRFR");
    let frames = (4096..octets.len()).step_by(4096).filter(is_frame);
    (segment, frames.collect())
}

/// Flips a bit in the header of each of the last frames.
fn spoil_headers(disk: &MemoryDisk, count: usize) {
    let (segment, frames) = frames(disk);
    for at in &frames[frames.len() - count..] {
        disk.flip_bit(&segment, *at as u64 + 33, 2).unwrap();
    }
}

/// Flips a bit in the header of the record of an article in the buffers.
pub(crate) fn spoil_record(disk: &MemoryDisk, n: usize) {
    let id = format!("<{n}@t.example>");
    let mut spoiled = 0;
    for path in ["/spool/buffers/C0", "/spool/buffers/C1"].map(Path::new) {
        let octets = read_whole(disk, path, 8 << 20).unwrap();
        let found = |at: &usize| octets[*at..].starts_with(id.as_bytes());
        for at in (0..octets.len()).filter(found) {
            let begins = |at: &usize| octets[*at..].starts_with(b"NA");
            let record = (0..=at).rev().filter(|at| at % 64 == 0).find(begins);
            disk.flip_bit(path, record.unwrap() as u64 + 30, 2).unwrap();
            spoiled += 1;
        }
    }
    assert_eq!(spoiled, 1, "{id}");
}

/// Whatever frames between the last checkpoint and the last frame are lost, their articles lie in the buffers: they are there
/// under their numbers, also after the next start, and after the next checkpoint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_lost_in_front_of_others_cost_no_article() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    world.send(&articles(0, 10)).await;
    world.seal();
    for commit in 1..7 {
        world.send(&articles(commit * 10, 10)).await;
    }
    let others = world.lines("misc.other").await;
    let lines = world.lines("misc.test").await;
    let (segment, frames) = frames(&memory);
    let last = frames.len() - 1;
    // Its header, something in its payload; one frame, some, all but the last, and with the last.
    for (lost, octet) in [
        (last - 1..last + 1, 600),
        (2..last + 1, 600),
        (2..3, 33),
        (2..3, 600),
        (last - 1..last, 33),
        (3..last, 33),
        (3..last, 600),
    ] {
        let what = format!("frames {lost:?}, octet {octet}");
        let left = memory.crash_losing_all();
        for at in &frames[lost] {
            left.flip_bit(&segment, *at as u64 + octet, 2).unwrap();
        }
        let mut after = open_on(Arc::new(left), &world.config, &world.clock);
        for start in 0..3 {
            assert_eq!(after.lines("misc.test").await, lines, "{what}, {start}");
            assert_eq!(after.lines("misc.other").await, others, "{what}, {start}");
            for n in 0..70 {
                let found = after.by_id(&format!("<{n}@t.example>")).await;
                assert!(found.is_some(), "{what}, {start}: {n}");
            }
            if start == 1 {
                after.seal();
            }
            after = after.restart();
        }
        let outcomes = after.send(&articles(60, 11)).await;
        assert!(outcomes[..10].iter().all(|one| *one == Outcome::Duplicate));
        assert_eq!(outcomes[10], Outcome::Accepted, "{what}");
    }
}

/// The last frame of the log was overwritten with zeros, and so looked as if it had never been written: the article that was
/// cancelled in it came back, and nobody was told.  A second later another frame stands behind it, for which nobody has waited.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_whose_frame_is_zeros_does_not_come_back_without_a_word() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let world = World::on(Arc::new(faulty.clone()), config(4 << 20));
    world.send(&articles(0, 10)).await;
    world.seal();
    world.wait_s(2);
    let at_rest = |world: &World, count: usize| {
        world.wait_until("the log to rest", |_| frames(&memory).1.len() == count);
    };
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let (syncs, before) = (faulty.counts().syncs(), frames(&memory).1.len());
    let lines = world.lines("misc.test").await;
    let target = [ArticleRef::Id("<3@t.example>".to_owned())];
    world.engine.withdraw(&target, Reason::Cancelled).unwrap();
    assert_eq!(frames(&memory).1.len(), before + 1);
    assert_eq!(
        faulty.counts().syncs(),
        syncs + 1,
        "who waits, waits for one"
    );
    world.wait_s(2);
    at_rest(&world, before + 2);
    // It is at rest then.
    world.wait_s(5);
    std::thread::sleep(std::time::Duration::from_millis(2500));
    at_rest(&world, before + 2);
    assert_eq!(faulty.counts().syncs(), syncs + 2);
    let left = memory.crash_losing_all();
    let (segment, frames) = frames(&left);
    let open = |left: MemoryDisk| open_on(Arc::new(left), &world.config, &world.clock);
    assert_eq!(
        open(memory.crash_losing_all()).engine.status().log.damage,
        0
    );
    left.corrupt(&segment, frames[before] as u64, &[0; 4096])
        .unwrap();
    let after = open(left);
    // What it said is lost, and that is told.
    assert_eq!(after.lines("misc.test").await, lines);
    assert_eq!(after.engine.status().log.damage, 1);
    assert_eq!(after.restart().engine.status().log.damage, 0);
}

/// What the log says of groups is nowhere else: a few seconds later a checkpoint has it, without being asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_groups_are_in_a_checkpoint_a_few_seconds_later() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    world.seal();
    let late = vec![GroupSpec::new("late.test")];
    world.engine.add_groups(late).unwrap();
    let upto = world.engine.status().sequence;
    world.wait_s(6);
    world.wait_until("the checkpoint", |world| {
        world.engine.status().checkpoint >= upto
    });
    let made = world.engine.group("late.test").unwrap();
    world.send(&articles(0, 10)).await;
    let left = memory.crash_losing_all();
    let (segment, frames) = frames(&memory);
    for at in frames {
        left.flip_bit(&segment, at as u64 + 33, 2).unwrap();
    }
    let after = open_on(Arc::new(left), &world.config, &world.clock);
    assert_eq!(after.engine.group("late.test").unwrap().id, made.id);
    assert_eq!(after.send(&articles(0, 1)).await, [Outcome::Duplicate]);
}

/// Where the log lost what it said of the buffers, and what they have had since, they still go on behind what the views
/// know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_article_of_a_checkpoint_is_overwritten_when_frames_are_lost() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(16 << 20));
    let mut first = 0;
    // Each commit turns to the other buffer.
    let send = async |world: &World, commit: usize| {
        let large: Vec<_> = (0..10)
            .map(|n| long_article(commit * 10 + n, "misc.test", 1700))
            .collect();
        assert_eq!(world.send(&large).await, [Outcome::Accepted; 10]);
    };
    for commit in 0..6 {
        if commit == 2 {
            first = frames(&memory).1.len();
        }
        send(&world, commit).await;
    }
    world.seal();
    send(&world, 6).await;
    let used = world.engine.status().buffers;
    assert!(
        used.iter().all(|buffer| buffer.free_offset > 2 << 20),
        "{used:?}"
    );
    let left = memory.crash_losing_all();
    // In front of the checkpoint and behind it, but for the first commits and the last.
    let (segment, frames) = frames(&left);
    for at in &frames[first..frames.len() - 1] {
        left.flip_bit(&segment, *at as u64 + 33, 2).unwrap();
    }
    let after = open_on(Arc::new(left), &world.config, &world.clock);
    send(&after, 7).await;
    send(&after, 8).await;
    for n in 0..90 {
        assert!(
            after.by_id(&format!("<{n}@t.example>")).await.is_some(),
            "{n}"
        );
    }
}

/// Where no state can be read, everything is taken to have been durable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_state_costs_no_article_of_the_last_commit() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    for commit in 0..3 {
        world.send(&articles(commit * 10, 10)).await;
    }
    let world = world.restart();
    for commit in 3..6 {
        world.send(&articles(commit * 10, 10)).await;
    }
    let left = memory.crash_losing_all();
    let (segment, frames) = frames(&left);
    for at in &frames[..frames.len() - 2] {
        left.flip_bit(&segment, *at as u64 + 33, 2).unwrap();
    }
    spoil_headers(&left, 1);
    let after = open_on(Arc::new(left), &world.config, &world.clock);
    for n in 0..60 {
        assert!(
            after.by_id(&format!("<{n}@t.example>")).await.is_some(),
            "{n}"
        );
    }
}

/// The first record behind the end of the log that is damaged hides no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_record_behind_a_lost_frame_hides_no_other() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    for commit in 0..4 {
        world.send(&articles(commit * 10, 10)).await;
    }
    let high = world.high("misc.test").max(world.high("misc.other"));
    for (count, lost) in [(1, 30), (1, 39), (2, 20), (2, 29), (2, 30), (3, 35)] {
        let what = format!("{count} frames, article {lost}");
        let left = memory.crash_losing_all();
        spoil_headers(&left, count);
        spoil_record(&left, lost);
        let after = open_on(Arc::new(left), &world.config, &world.clock);
        for start in 0..2 {
            for n in 0..40 {
                let found = after.by_id(&format!("<{n}@t.example>")).await;
                assert_eq!(found.is_some(), n != lost, "{what}, {start}: {n}");
            }
            // It was told once, and stays passed over.
            assert_eq!(after.problems(), Vec::<String>::new(), "{what}, {start}");
        }
        for (n, group) in [(50, "misc.test"), (51, "misc.other")] {
            after.send(&[article(n, group)]).await;
        }
        let highs = after.high("misc.test").max(after.high("misc.other"));
        assert!(highs > high + 1, "{what}: {highs} after {high}");
        let after = after.restart();
        assert_eq!(after.problems(), Vec::<String>::new(), "{what}");
    }
}

/// Where nothing is known of the last frames, because their headers are damaged, the articles in the buffers tell: they are
/// kept under their numbers, and go on being kept.  Buffers wrap meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn last_frames_with_damaged_headers_cost_nothing() {
    let memory = MemoryDisk::new();
    let mut world = World::on(Arc::new(memory.clone()), config(1 << 20));
    for round in 0..40 {
        let commits = 1 + round % 3;
        for commit in 0..commits {
            let from = (round * 3 + commit) * 10;
            let outcomes = world.send(&articles(from, 10)).await;
            assert_eq!(outcomes, [Outcome::Accepted; 10]);
        }
        let (lines, high) = (world.lines("misc.test").await, world.high("misc.test"));
        let left = memory.crash_losing_all();
        spoil_headers(&left, commits);
        let after = open_on(Arc::new(left), &world.config, &world.clock);
        assert_eq!(after.lines("misc.test").await, lines, "round {round}");
        let last = (round * 3 + commits) * 10 - 1;
        let outcomes = after.send(&articles(last, 2)).await;
        let expected = [Outcome::Duplicate, Outcome::Accepted];
        assert_eq!(outcomes, expected, "round {round}");
        assert!(after.high("misc.test") <= high + 1);
        let after = after.restart();
        assert!(after.lines("misc.test").await.starts_with(&lines));
        assert!(after.by_id(&format!("<{last}@t.example>")).await.is_some());
        assert_eq!(after.problems(), Vec::<String>::new(), "round {round}");
        if round % 10 == 9 {
            // Large ones, so that the buffers go around.
            for n in 0..8 {
                let (id, mut wire) = article(100_000 + round * 10 + n, "misc.other");
                wire.truncate(wire.len() - 3);
                wire.resize(200_000, b'x');
                wire.extend_from_slice(b"\r\n.\r\n");
                assert_eq!(world.send(&[(id, wire)]).await, [Outcome::Accepted]);
            }
            world = world.restart();
        }
    }
    assert!(
        world
            .engine
            .status()
            .buffers
            .iter()
            .any(|buffer| buffer.cycle > 1)
    );
}

/// An article that rots besides is lost, alone; it is told, and its number is not given again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_article_of_a_last_frame_with_a_damaged_header_is_lost_alone() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    world.send(&articles(0, 10)).await;
    world.send(&articles(10, 10)).await;
    let high = world.high("misc.test").max(world.high("misc.other"));
    let left = memory.crash_losing_all();
    spoil_headers(&left, 1);
    let mut spoiled = 0;
    for name in ["C0", "C1"] {
        let path = Path::new("/spool/buffers").join(name);
        let octets = read_whole(&left, &path, 8 << 20).unwrap();
        let text = b"Body of 19";
        if let Some(at) = octets.windows(text.len()).position(|found| found == text) {
            left.corrupt(&path, at as u64, b"b").unwrap();
            spoiled += 1;
        }
    }
    assert_eq!(spoiled, 1);
    let after = open_on(Arc::new(left), &world.config, &world.clock);
    for n in 0..19 {
        assert!(
            after.by_id(&format!("<{n}@t.example>")).await.is_some(),
            "{n}"
        );
    }
    assert!(after.by_id("<19@t.example>").await.is_none());
    for (n, group) in [(50, "misc.test"), (51, "misc.other")] {
        after.send(&[article(n, group)]).await;
    }
    let highs = after.high("misc.test").max(after.high("misc.other"));
    assert!(highs > high + 1, "{highs} after {high}");
}

/// So does one of the longest articles there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_long_record_behind_a_lost_frame_hides_no_other() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    world.send(&articles(0, 10)).await;
    let before = frames(&memory).1.len();
    let mut last = vec![long_article(10, "misc.test", 10_000)];
    last.extend(articles(11, 3));
    assert_eq!(world.send(&last).await, [Outcome::Accepted; 4]);
    let left = memory.crash_losing_all();
    spoil_headers(&left, frames(&left).1.len() - before);
    spoil_record(&left, 10);
    let after = open_on(Arc::new(left), &world.config, &world.clock);
    for n in 0..14 {
        let found = after.by_id(&format!("<{n}@t.example>")).await;
        assert_eq!(found.is_some(), n != 10, "{n}");
    }
    assert_eq!(after.problems(), Vec::<String>::new());
}

/// Frames are lost since which a buffer has come around: what is alive of their articles stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_lost_before_a_buffer_came_around_cost_nothing_that_is_alive() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(1 << 20));
    let mut starts = Vec::new();
    for commit in 0..60 {
        starts.push(frames(&memory).1.len());
        let long = (0..5).map(|n| long_article(commit * 5 + n, "misc.test", 120));
        let long: Vec<_> = long.collect();
        assert_eq!(world.send(&long).await, [Outcome::Accepted; 5]);
    }
    let lines = world.lines("misc.test").await;
    assert!((50..250).contains(&lines.len()), "{}", lines.len());
    let oldest = 60 - lines.len() / 5;
    for lost in [oldest..oldest + 1, 2..oldest + 4, oldest + 2..58] {
        let left = memory.crash_losing_all();
        let (segment, frames) = frames(&left);
        for at in &frames[starts[lost.start]..starts[lost.end]] {
            left.flip_bit(&segment, *at as u64 + 600, 2).unwrap();
        }
        let after = open_on(Arc::new(left), &world.config, &world.clock);
        let found = after.lines("misc.test").await;
        // A reservation that is lost may show what was not overwritten yet.
        let missing = lines.iter().find(|line| !found.contains(line));
        assert_eq!(missing, None, "{lost:?}");
    }
}

/// The same when the medium says so itself.  Nothing is known of the article then: that is a fault, not "no such
/// article", and it may pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_bad_sector_costs_one_article() {
    let memory = MemoryDisk::new();
    let (faulty, world) = on_disk(&memory).await;
    let damaged = 29;
    let id = format!("<{damaged}@t.example>");
    let (path, at) = body_of(&world, damaged);
    let sector = Fault::new(Op::Read, path.to_str().unwrap(), Effect::Medium);
    faulty.add(sector.covering(at).forever());
    let query = ArticleQuery::ById(MessageId::parse(id.as_bytes()).unwrap());
    let mut out = ArticleBuf::new();
    let read = world.service.article(query, Part::Whole, &mut out).await;
    assert!(matches!(read, Err(ServiceError::Fault(_))), "{read:?}");
    assert_eq!(world.engine.status().counters.disk_errors, 1);
    assert_neighbours(&world, damaged).await;
    assert_eq!(world.engine.status().counters.disk_errors, 1);
    assert_eq!(world.engine.status().counters.corrupt_reads, 0);
    let world = assert_goes_on(world, &id).await;
    faulty.clear();
    assert!(world.by_id(&id).await.is_some(), "it passed");
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// A spool of 300 articles on a real disk, with sealed files, closed.
async fn on_real_disk(spool: &Path) -> (EngineConfig, Arc<FakeClock>) {
    let mut config = config(4 << 20);
    config.spool = spool.to_path_buf();
    config.index.runs_max = 1 << 10;
    let world = World::on(Arc::new(RealDisk), config);
    for round in 0..3 {
        world.send(&articles(round * 100, 100)).await;
        world.seal();
    }
    (world.config.clone(), Arc::clone(&world.clock))
}

/// Puts something else in the place of a file.
fn replace(path: &Path, by: &str) {
    if path.exists() {
        RealDisk.remove(path).unwrap();
    }
    match by {
        "directory" => RealDisk.create_dir_all(&path.join("inside")).unwrap(),
        "socket" => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
        _ => {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.unwrap().success());
        }
    }
}

/// A directory, a pipe or a socket in a file's place is damage of that file and no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_in_the_place_of_a_file_does_not_stop_the_start() {
    for by in ["directory", "pipe", "socket"] {
        for (stem, suffix) in [
            ("history", "run"),
            ("history", "copy"),
            ("groups", "run"),
            ("groups", "copy"),
            ("overview", "run"),
            ("manifest", ""),
        ] {
            let what = format!("a {by} in the place of {stem}.{suffix}");
            let folder = tempfile::Builder::new().prefix("nr").tempdir().unwrap();
            let spool = folder.path().join("s");
            let (config, clock) = on_real_disk(&spool).await;
            let index = spool.join("index");
            let names = || {
                let files = RealDisk.list(&index).unwrap().into_iter();
                files.map(|file| file.name).collect::<Vec<_>>()
            };
            let is_it = |name: &String| name.starts_with(stem) && name.ends_with(suffix);
            let name = names().into_iter().find(is_it).unwrap();
            replace(&index.join(&name), by);
            let world = open_on(Arc::new(RealDisk), &config, &clock);
            world.wait_until(&what, |world| world.engine.status().damaged.is_empty());
            let outcomes = world.send(&articles(0, 300)).await;
            assert_eq!(outcomes, vec![Outcome::Duplicate; 300], "{what}");
            assert_eq!(world.lines("misc.test").await.len(), 200, "{what}");
            assert_eq!(world.problems(), Vec::<String>::new(), "{what}");
            assert_eq!(world.send(&articles(300, 3)).await, [Outcome::Accepted; 3]);
            let world = world.restart();
            assert_eq!(world.problems(), Vec::<String>::new(), "{what}");
            assert_eq!(world.lines("misc.test").await.len(), 202, "{what}");
            if by == "directory" {
                let aside = index.join(format!("{name}.aside"));
                assert!(aside.join("inside").exists(), "{what}: {:?}", names());
            }
        }
    }
}
