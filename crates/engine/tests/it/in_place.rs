//! Buffers of another spool whose articles are served from where they lie: read, and never written.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_engine::{
    ArticleRef, Attached, Attaching, EngineConfig, GroupSpec, Reason, Relocation, Withdrawal,
};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Disk, MemoryDisk, Op, OpenMode, read_whole};
use newsreel_service::{ArticleBuf, ArticleQuery, NewsService as _, Outcome, Part};
use newsreel_store::SetConfig;
use newsreel_wire::MessageId;

use crate::attaching::{ARTICLES, GROUPS, ROOM, copy, filled, source};
use crate::world::{World, article, between_runs, config, open_on};

const SETS: [&str; 2] = ["old-C0", "old-C1"];

fn paths() -> Vec<PathBuf> {
    ["/elsewhere/C0", "/elsewhere/C1"]
        .map(PathBuf::from)
        .to_vec()
}

/// A server of another name, which has what lies in `/elsewhere`.
fn with_archive() -> EngineConfig {
    let mut config = config(ROOM);
    config.sequencer.path_identity = "arch.example".to_owned();
    for (name, path) in SETS.iter().zip(paths()) {
        config.store.sets.push(SetConfig {
            name: (*name).to_owned(),
            method: "attached".to_owned(),
            file: Some(path),
            ..SetConfig::default()
        });
    }
    config
}

/// A spool beside the buffers of another one.
fn beside(old: &World) -> (MemoryDisk, World) {
    let disk = MemoryDisk::new();
    copy(old, "/spool/buffers", &disk);
    let world = World::on(Arc::new(disk.clone()), with_archive());
    (disk, world)
}

fn in_place(dry_run: bool) -> Attaching {
    Attaching {
        paths: paths(),
        make_groups: false,
        withdrawn: false,
        in_place: true,
        oldest_may_go: false,
        dry_run,
    }
}

fn attach(world: &World) -> Attached {
    world
        .engine
        .attach(&in_place(false), &mut |_, _| true)
        .unwrap()
}

/// Taken, known, under other numbers.
fn counts(report: &Attached) -> (u64, u64, u64) {
    let has_failed = !report.refused.is_empty() || !report.unreadable.is_empty();
    assert!(!has_failed && report.damaged == 0, "{report:?}");
    (report.taken, report.known, report.renumbered)
}

const ALL: u64 = ARTICLES as u64;

fn contents(disk: &dyn Disk) -> Vec<Vec<u8>> {
    let read = |path: &PathBuf| read_whole(disk, path, 64 << 20).unwrap();
    paths().iter().map(read).collect()
}

fn id(n: usize) -> String {
    format!("<{n}@t.example>")
}

async fn texts(world: &World) -> Vec<Option<String>> {
    let mut texts = Vec::new();
    for n in (0..ARTICLES).step_by(37) {
        texts.push(world.by_id(&id(n)).await);
    }
    texts
}

/// As the other server shows what this one had.
fn renamed(text: &str) -> String {
    text.replace("Xref: news.example ", "Xref: arch.example ")
}

fn all_renamed(texts: &[Option<String>]) -> Vec<Option<String>> {
    let texts = texts.iter().map(|text| text.as_deref().map(renamed));
    texts.collect()
}

async fn shows(world: &World, lines: &[Vec<String>], texts: &[Option<String>], what: &str) {
    for (group, lines) in GROUPS.iter().zip(lines) {
        let lines: Vec<String> = lines.iter().map(|line| renamed(line)).collect();
        assert_eq!(world.lines(group).await, lines, "{what}: {group}");
    }
    assert_eq!(self::texts(world).await, all_renamed(texts), "{what}");
    assert_eq!(world.problems(), Vec::<String>::new(), "{what}");
}

/// Such a buffer was refused, or each text was copied.
#[tokio::test]
async fn what_another_spool_has_is_served_from_where_it_lies() {
    let (old, lines) = source(false).await;
    let texts = texts(&old).await;
    assert!(texts.iter().all(Option::is_some));
    let (disk, mut world) = beside(&old);
    let before = contents(&disk);
    let dry = world.engine.attach(&in_place(true), &mut |_, _| true);
    assert_eq!(counts(&dry.unwrap()), (ALL, 0, 0));
    world.wait_s(3600);
    assert_eq!(counts(&attach(&world)), (ALL, 0, 0));
    for run in 0..3 {
        shows(&world, &lines, &texts, &format!("run {run}")).await;
        assert_eq!(counts(&attach(&world)), (0, ALL, 0));
        // Where it lies, and since when.
        let found = world
            .engine
            .article(&id(7).parse().unwrap())
            .unwrap()
            .unwrap();
        assert!(found.token.starts_with("old-C"), "{}", found.token);
        assert_eq!(found.arrival, crate::world::NOW);
        let scrubbed = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        assert_eq!((scrubbed.articles, &scrubbed.damaged[..]), (ALL, &[][..]));
        // The second start reads sealed views.
        if run == 1 {
            world.seal();
        }
        world = world.restart();
    }
    // Nothing was copied, and nothing written there.
    for report in world.engine.inspect_store().unwrap() {
        let is_own = !report.status.name.starts_with("old-");
        assert_eq!(report.articles == Some(0), is_own, "{report:?}");
    }
    assert!(contents(&disk) == before);
}

/// Numbers that were given here stay, and what lies there has the new ones in its Xref.
#[tokio::test]
async fn an_article_gets_another_number_where_its_own_was_given() {
    let (old, _) = source(false).await;
    let (_, world) = beside(&old);
    let own: Vec<_> = (5000..5003).map(|n| article(n, "misc.test")).collect();
    assert_eq!(world.send(&own).await, [Outcome::Accepted; 3]);
    let report = attach(&world);
    assert_eq!((report.taken, report.renumbered), (ALL, 667), "{report:?}");
    let text = world.by_id(&id(2)).await.unwrap();
    assert!(
        text.contains("\r\nXref: arch.example misc.test:5\r\n\r\n"),
        "{text}"
    );
    assert_eq!(text.matches("Xref:").count(), 1);
    let query = world.numbered("misc.test", 5).await;
    assert_eq!(world.read(query, Part::Whole).await, Some(text));
    let world = world.restart();
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// A cancel that had been filed nowhere came into the group of its Newsgroups, and all behind it had other numbers.
#[tokio::test]
async fn a_control_message_without_xref_is_filed_as_one_that_comes() {
    let old = World::new(config(ROOM));
    let control = |n: usize, groups: &str, what: &str| {
        let (id, text) = article(n, groups);
        let text = String::from_utf8(text).unwrap();
        let field = format!("Control: {what}\r\nSubject: ");
        (id, text.replacen("Subject: ", &field, 1).into_bytes())
    };
    let sent = [
        article(1, "misc.test"),
        control(2, "misc.test", "cancel <9@t.example>"),
        control(3, "misc.new", "newgroup misc.new"),
        article(4, "misc.test"),
    ];
    assert_eq!(old.send(&sent).await, [Outcome::Accepted; 4]);
    let lines = old.lines("misc.test").await;
    assert_eq!(lines.len(), 2);
    for (in_place, groups) in [
        (false, &[][..]),
        (true, &[][..]),
        (false, &["control"][..]),
        (true, &["control", "control.cancel"][..]),
    ] {
        let (_, world) = beside(&old);
        let specs = groups.iter().copied().map(GroupSpec::new).collect();
        world.engine.add_groups(specs).unwrap();
        for dry_run in [true, false] {
            let what = Attaching {
                make_groups: true,
                in_place,
                ..self::in_place(dry_run)
            };
            let report = world.engine.attach(&what, &mut |_, _| true).unwrap();
            assert_eq!(counts(&report), (4, 0, 0), "{in_place} {groups:?}");
            assert_eq!(report.groups_made, Vec::<String>::new());
        }
        let renamed: Vec<String> = lines.iter().map(|line| renamed(line)).collect();
        assert_eq!(world.lines("misc.test").await, renamed);
        let mut filed = Vec::new();
        for group in groups {
            filed.push(world.lines(group).await.len());
        }
        let expected: &[usize] = match groups.len() {
            0 => &[],
            1 => &[2],
            _ => &[1, 1],
        };
        assert_eq!(filed, expected, "{in_place} {groups:?}");
        assert!(world.by_id("<2@t.example>").await.is_some());
        let world = world.restart();
        assert_eq!(world.problems(), Vec::<String>::new());
    }
}

/// What was in a group that is not here came into `control`, and what lay there got other numbers.
#[tokio::test]
async fn a_control_message_with_xref_is_filed_as_that_says() {
    let old = World::new(config(ROOM));
    let specs = vec![GroupSpec::new("control.cancel")];
    old.engine.add_groups(specs).unwrap();
    let (id, text) = article(1, "misc.test");
    let text = String::from_utf8(text).unwrap();
    let text = text.replacen("Subject: ", "Control: cancel <9@t.example>\r\nSubject: ", 1);
    let sent = [(id, text.into_bytes()), article(2, "misc.test")];
    assert_eq!(old.send(&sent).await, [Outcome::Accepted; 2]);
    assert_eq!(old.lines("control.cancel").await.len(), 1);
    for in_place in [false, true] {
        let (_, world) = beside(&old);
        world
            .engine
            .add_groups(vec![GroupSpec::new("control")])
            .unwrap();
        let what = Attaching {
            make_groups: false,
            in_place,
            ..self::in_place(false)
        };
        let report = world.engine.attach(&what, &mut |_, _| true).unwrap();
        assert_eq!(counts(&report), (2, 0, 0));
        assert_eq!(world.lines("control").await, Vec::<String>::new());
        assert_eq!(world.lines("misc.test").await.len(), 1);
    }
}

/// A cancel is noted here alone, and the article does not come again.
#[tokio::test]
async fn what_is_cancelled_is_gone_here_and_untouched_there() {
    let (old, _) = source(false).await;
    let (disk, mut world) = beside(&old);
    let before = contents(&disk);
    attach(&world);
    let gone = [3, 400, 999];
    let refs = gone.map(|n| ArticleRef::Id(id(n)));
    let outcomes = world.engine.withdraw(&refs, Reason::Cancelled).unwrap();
    assert_eq!(outcomes, [const { Withdrawal::Done }; 3]);
    for _ in 0..2 {
        for n in gone {
            assert_eq!(world.by_id(&id(n)).await, None, "{n}");
        }
        assert!(world.by_id(&id(4)).await.is_some());
        assert_eq!(counts(&attach(&world)), (0, ALL, 0));
        assert_eq!(
            world.lines("misc.test").await.len() + world.lines("misc.other").await.len(),
            1334 - 5
        );
        assert_eq!(world.problems(), Vec::<String>::new());
        world = world.restart();
    }
    assert!(contents(&disk) == before);
}

/// What is taken for others: rules and moves name no such set, and a file that is none's is told.
#[tokio::test]
async fn such_a_set_takes_nothing_else() {
    let (old, _) = source(false).await;
    let (_, world) = beside(&old);
    attach(&world);
    let mut wrong = with_archive();
    wrong.store.rules[0].set = "old-C0".to_owned();
    let problems = wrong.store.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].right.contains("takes no others"),
        "{problems:?}"
    );
    let relocation = |from: &str, to: &str| Relocation {
        from: from.to_owned(),
        to: to.to_owned(),
        groups: None,
        dry_run: false,
    };
    let into = world
        .engine
        .relocate(&relocation("main", "old-C0"), &mut |_, _| true);
    assert!(into.unwrap_err().to_string().contains("takes no others"));
    let what = Attaching {
        paths: vec![PathBuf::from("/elsewhere/C7")],
        ..in_place(false)
    };
    let error = world
        .engine
        .attach(&what, &mut |_, _| true)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/elsewhere/C7 is the file of no set"),
        "{error}"
    );
    let mut own = with_archive();
    let path = PathBuf::from("/spool/buffers/C0");
    own.store.sets.last_mut().unwrap().file = Some(path.clone());
    let what = Attaching {
        paths: vec![path],
        ..in_place(false)
    };
    let own = World::new(own);
    let error = own.engine.attach(&what, &mut |_, _| true).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("is of C0, which this server has"), "{error}");
    // Out of it everything may go: then it is a copy.
    let report = world
        .engine
        .relocate(&relocation("old-C0", "main"), &mut |_, _| true);
    let report = report.unwrap();
    assert!(
        report.articles > 100 && report.stopped.is_none(),
        "{report:?}"
    );
    assert_eq!(texts(&world).await, all_renamed(&texts(&old).await));
}

/// A file system that is not mounted, and another file in its place: nothing is served, and nothing is taken for gone.
#[tokio::test]
async fn what_is_away_is_not_gone() {
    let (old, lines) = source(false).await;
    let texts = texts(&old).await;
    let (disk, world) = beside(&old);
    attach(&world);
    let there = contents(&disk);
    let answer = async |world: &World| {
        let id = id(1);
        let id = MessageId::parse(id.as_bytes()).unwrap();
        let mut out = ArticleBuf::new();
        let query = ArticleQuery::ById(id);
        world.service.article(query, Part::Whole, &mut out).await
    };
    let put = |disk: &dyn Disk, octets: [&[u8]; 2]| {
        for (path, octets) in paths().iter().zip(octets) {
            drop(disk.remove(path));
            let file = disk.open(path, OpenMode::CreateNew).unwrap();
            file.write_at(octets, 0).unwrap();
        }
    };
    let world = between_runs(world, |disk| {
        paths().iter().for_each(|path| disk.remove(path).unwrap());
    });
    assert!(answer(&world).await.is_err());
    let scrubbed = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    assert_eq!(scrubbed.unreadable.len(), 2, "{scrubbed:?}");
    assert_eq!(world.engine.inspect_store().unwrap().len(), 4);
    // The same server serves it when it is back.
    put(disk_of(&world), [&there[0], &there[1]]);
    shows(&world, &lines, &texts, "it is back").await;
    // The two are exchanged.
    let world = between_runs(world, |disk| put(disk, [&there[1], &there[0]]));
    assert!(answer(&world).await.is_err());
    let scrubbed = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    assert_eq!(scrubbed.unreadable.len(), 2, "{scrubbed:?}");
    let world = between_runs(world, |disk| put(disk, [&there[0], &there[1]]));
    shows(&world, &lines, &texts, "each is back").await;
    assert_eq!(counts(&attach(&world)), (0, ALL, 0));
}

fn disk_of(world: &World) -> &dyn Disk {
    world.disk.as_ref()
}

/// Another snapshot, of a server that had gone on: what is new comes, and what was overwritten goes.
#[tokio::test]
async fn a_later_snapshot_brings_what_is_new_and_takes_what_is_gone() {
    let (old, _) = source(false).await;
    let (disk, world) = beside(&old);
    attach(&world);
    let more: Vec<_> = (ARTICLES..9 * ARTICLES).map(filled).collect();
    for some in more.chunks(200) {
        let outcomes = old.send(some).await;
        assert!(outcomes.iter().all(|it| *it == Outcome::Accepted));
    }
    assert_eq!(old.by_id(&id(0)).await, None);
    let mut lines = Vec::new();
    for group in GROUPS {
        let all = old.lines(group).await;
        lines.push(all.iter().map(|line| renamed(line)).collect::<HashSet<_>>());
    }
    paths().iter().for_each(|path| disk.remove(path).unwrap());
    copy(&old, "/spool/buffers", &disk);
    let report = attach(&world);
    assert_eq!((report.renumbered, report.damaged), (0, 0), "{report:?}");
    assert!(report.taken > ALL, "{report:?}");
    assert_eq!(world.by_id(&id(0)).await, None);
    assert!(world.by_id(&id(9 * ARTICLES - 1)).await.is_some());
    let scrubbed = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    assert_eq!(scrubbed.unreadable, [""; 0], "{scrubbed:?}");
    for (group, lines) in GROUPS.iter().zip(lines) {
        // What was about to be overwritten there is here still.
        let here = world.lines(group).await;
        let more = here.iter().filter(|line| !lines.contains(*line)).count();
        assert!(
            more < lines.len() / 4 && here.len() == lines.len() + more,
            "{group}: {more}"
        );
    }
    let world = world.restart();
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Damage there is told and costs the article; it is not ours to mend.
#[tokio::test]
async fn damage_is_told_and_nothing_is_mended_there() {
    let (old, _) = source(false).await;
    let (disk, world) = beside(&old);
    attach(&world);
    let found = old
        .engine
        .article(&id(400).parse().unwrap())
        .unwrap()
        .unwrap();
    let mut parts = found.token.split(':');
    let path = Path::new("/elsewhere").join(parts.next().unwrap());
    let at = u64::from_str_radix(parts.next().unwrap(), 16).unwrap();
    disk.corrupt(&path, at + 1000, b"rot").unwrap();
    disk.corrupt(&path, 100, b"rot").unwrap();
    let before = contents(&disk);
    let world = world.restart();
    assert_eq!(world.by_id(&id(400)).await, None);
    assert!(world.by_id(&id(401)).await.is_some());
    for _ in 0..2 {
        let scrubbed = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        let told: Vec<_> = scrubbed
            .damaged
            .iter()
            .map(|it| it.message_id.clone())
            .collect();
        assert_eq!(told, [Some(id(400))]);
        assert_eq!(scrubbed.articles, ALL - 1);
    }
    assert!(contents(&disk) == before);
}

/// Wherever the power goes while articles are attached: what was is there, the same again brings the rest, nothing twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_while_attaching_costs_nothing() {
    let (old, _) = source(false).await;
    let texts = texts(&old).await;
    let memory = MemoryDisk::new();
    copy(&old, "/spool/buffers", &memory);
    let begun = World::on(Arc::new(memory.clone()), with_archive());
    let (config, clock) = (begun.config.clone(), Arc::clone(&begun.clock));
    begun.engine.shutdown().unwrap();
    drop(begun);
    let there = contents(&memory);
    let (mut stopped, mut partly) = (0, 0);
    for (op, part) in [
        (Op::Write, "/.catalogue/"),
        (Op::Sync, "/.catalogue/"),
        (Op::Write, "/log/"),
        (Op::Sync, "/log/"),
    ] {
        for nth in 1..5 {
            let what = format!("{op} {part} {nth}");
            let memory = memory.crash_losing_all();
            let faulty = FaultyDisk::new(Arc::new(memory.clone()));
            let world = open_on(Arc::new(faulty.clone()), &config, &clock);
            faulty.add(Fault::new(op, part, Effect::Stop).nth(nth));
            let attached = world.engine.attach(&in_place(false), &mut |_, _| true);
            let left = memory.crash(nth);
            drop(world);
            stopped += usize::from(attached.is_err());
            let world = open_on(Arc::new(left.clone()), &config, &clock);
            assert_eq!(world.problems(), Vec::<String>::new(), "{what}");
            let report = attach(&world);
            let (taken, known, _) = counts(&report);
            assert_eq!(taken + known, ALL, "{what}");
            partly += usize::from(known > 0 && taken > 0);
            assert_eq!(
                all_numberless(&self::texts(&world).await),
                all_numberless(&texts),
                "{what}"
            );
            let lines =
                world.lines("misc.test").await.len() + world.lines("misc.other").await.len();
            assert_eq!(lines, 1334, "{what}");
            assert!(contents(&left) == there, "{what}");
        }
    }
    assert!(
        stopped >= 8 && partly > 0,
        "{stopped} stops, {partly} in the middle"
    );
}

/// Without its catalogue an archive was hidden for good: the scrub said that its texts were lost, and whoever attached its file again was
/// told that all articles were known.
#[tokio::test]
async fn a_lost_catalogue_is_made_again_from_the_files_that_lend() {
    let (old, _) = source(false).await;
    for is_sealed in [false, true] {
        let (disk, world) = beside(&old);
        let copies = copied_elsewhere(&disk);
        // So that numbers are others than those in the files.
        let own: Vec<_> = (5000..5003).map(|n| article(n, "misc.test")).collect();
        assert_eq!(world.send(&own).await, [Outcome::Accepted; 3]);
        attach(&world);
        let gone = [ArticleRef::Id(id(3))];
        let outcomes = world.engine.withdraw(&gone, Reason::Cancelled).unwrap();
        assert_eq!(outcomes, [Withdrawal::Done]);
        let (lines, texts) = (lines_of(&world).await, texts(&world).await);
        if is_sealed {
            world.seal();
        }
        let of_each = SETS.map(|set| {
            let reports = world.engine.inspect_store().unwrap();
            let mut reports = reports.into_iter();
            let report = reports.find(|it| it.status.name == set).unwrap();
            report.articles.unwrap()
        });
        let world = between_runs(world, |disk| {
            for set in SETS {
                let dir = Path::new("/spool/articles").join(set).join(".catalogue");
                for entry in disk.list(&dir).unwrap() {
                    disk.remove(&dir.join(entry.name)).unwrap();
                }
            }
        });
        assert_eq!(world.by_id(&id(7)).await, None);
        for (nth, (set, path)) in SETS.iter().zip(paths()).enumerate() {
            let scrubbed = world
                .engine
                .scrub(&[(*set).to_owned()], 0, &mut |_, _| true);
            let scrubbed = scrubbed.unwrap();
            assert_eq!(scrubbed.damaged.len() as u64, of_each[nth]);
            for damage in scrubbed.damaged {
                assert!(damage.means.contains("may lie whole"), "{damage:?}");
                assert!(damage.means.contains("attach --in-place"), "{damage:?}");
                assert_eq!(damage.file.as_deref(), path.to_str());
            }
        }
        for report in world.engine.inspect_store().unwrap() {
            let is_told = report
                .status
                .state
                .contains("store attach --in-place /elsewhere/C");
            assert_eq!(
                is_told,
                report.status.name.starts_with("old-"),
                "{report:?}"
            );
        }
        // While the files are away nothing is made up, also where there are copies of them.
        let of_copies = Attaching {
            in_place: false,
            paths: copies,
            ..in_place(false)
        };
        let away = Path::new("/away");
        disk.rename(&paths()[0], away).unwrap();
        let report = world.engine.attach(&of_copies, &mut |_, _| true).unwrap();
        assert_eq!(
            (report.cards_made, report.cards_lost, report.taken),
            (of_each[1], of_each[0], 0),
            "{report:?}"
        );
        disk.rename(away, &paths()[0]).unwrap();
        for (dry_run, again) in [(true, of_each[0]), (false, of_each[0]), (false, 0)] {
            let report = world.engine.attach(&in_place(dry_run), &mut |_, _| true);
            let report = report.unwrap();
            assert_eq!((report.cards_made, report.cards_lost), (again, 0));
            assert_eq!(counts(&report), (0, ALL - again, 0));
        }
        let mut world = world;
        for run in 0..2 {
            let what = format!("sealed: {is_sealed}, run {run}");
            assert_eq!(lines_of(&world).await, lines, "{what}");
            assert_eq!(self::texts(&world).await, texts, "{what}");
            assert_eq!(world.by_id(&id(3)).await, None, "{what}");
            let scrubbed = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
            let found = (scrubbed.articles, &scrubbed.damaged[..]);
            assert_eq!(found, (ALL + 3 - 1, &[][..]), "{what}");
            assert_eq!(world.problems(), [""; 0], "{what}");
            for report in world.engine.inspect_store().unwrap() {
                assert_eq!(report.status.state, "ok", "{what}: {report:?}");
            }
            world = world.restart();
        }
    }
}

/// Wherever the power goes while cards are made again: the same again makes the rest, under the same numbers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_while_cards_are_made_again_costs_nothing() {
    let (old, _) = source(false).await;
    let (memory, world) = beside(&old);
    attach(&world);
    let (lines, texts) = (lines_of(&world).await, texts(&world).await);
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    world.engine.shutdown().unwrap();
    drop(world);
    for set in SETS {
        let dir = Path::new("/spool/articles").join(set).join(".catalogue");
        for entry in memory.list(&dir).unwrap() {
            memory.remove(&dir.join(entry.name)).unwrap();
        }
        memory.sync_dir(&dir).unwrap();
    }
    let (mut stopped, mut partly) = (0, 0);
    for (op, part) in [(Op::Write, "/.catalogue/"), (Op::Sync, "/.catalogue/")] {
        for nth in 1..6 {
            let what = format!("{op} {part} {nth}");
            let memory = memory.crash_losing_all();
            let faulty = FaultyDisk::new(Arc::new(memory.clone()));
            let world = open_on(Arc::new(faulty.clone()), &config, &clock);
            faulty.add(Fault::new(op, part, Effect::Stop).nth(nth));
            let made = world.engine.attach(&in_place(false), &mut |_, _| true);
            stopped += usize::from(made.is_err() || made.is_ok_and(|it| it.cards_made < ALL));
            let left = memory.crash(nth);
            drop(world);
            let world = open_on(Arc::new(left), &config, &clock);
            let report = attach(&world);
            assert_eq!(report.cards_lost, 0, "{what}: {report:?}");
            assert_eq!(report.cards_made + report.known, ALL, "{what}");
            partly += usize::from(report.known > 0 && report.cards_made > 0);
            let world = world.restart();
            assert_eq!(lines_of(&world).await, lines, "{what}");
            assert_eq!(self::texts(&world).await, texts, "{what}");
            assert_eq!(world.problems(), [""; 0], "{what}");
        }
    }
    assert!(
        stopped > 3 && partly > 0,
        "{stopped} stops, {partly} in the middle"
    );
}

async fn lines_of(world: &World) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    for group in GROUPS {
        lines.push(world.lines(group).await);
    }
    lines
}

/// Copies of what lends, in another place.
fn copied_elsewhere(disk: &MemoryDisk) -> Vec<PathBuf> {
    let dir = Path::new("/copies");
    disk.create_dir_all(dir).unwrap();
    let copied = contents(disk).into_iter().zip(["C0", "C1"]);
    let copied = copied.map(|(octets, name)| {
        let file = disk.open(&dir.join(name), OpenMode::CreateNew).unwrap();
        file.write_at(&octets, 0).unwrap();
        dir.join(name)
    });
    copied.collect()
}

/// Numbers that a commit had given which was lost are not given again.
fn all_numberless(texts: &[Option<String>]) -> Vec<String> {
    let texts = texts.iter().flatten();
    let without = texts.map(|text| {
        let lines = text.lines().filter(|line| !line.starts_with("Xref: "));
        lines.collect::<Vec<_>>().join("\n")
    });
    without.collect()
}

/// Our log is lost behind a checkpoint, or the whole spool is: the cards tell what the log did, or the other buffers tell it again.
#[tokio::test]
async fn a_log_that_is_lost_costs_nothing() {
    let (old, lines) = source(false).await;
    let texts = texts(&old).await;
    let (disk, world) = beside(&old);
    attach(&world);
    world.seal();
    let world = between_runs(world, |disk| {
        let log = Path::new("/spool/log");
        for entry in disk.list(log).unwrap() {
            disk.remove(&log.join(entry.name)).unwrap();
        }
    });
    shows(&world, &lines, &texts, "the log is lost").await;
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    drop(world);
    // A spool elsewhere on the same disk, of which everything is new.
    let config = EngineConfig {
        spool: PathBuf::from("/anew"),
        ..config
    };
    let world = open_on(Arc::new(disk), &config, &clock);
    let what = Attaching {
        make_groups: true,
        ..in_place(false)
    };
    let report = world.engine.attach(&what, &mut |_, _| true).unwrap();
    assert_eq!(counts(&report), (ALL, 0, 0));
    shows(&world, &lines, &texts, "a new spool").await;
}
