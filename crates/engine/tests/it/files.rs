//! Sets whose articles are files, under the engine: what is served is what came, what is withdrawn leaves no file, and what
//! others do to the files costs those alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::{ArticleRef, EngineConfig, GroupSpec, Reason, Withdrawal};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Disk, MemoryDisk, Op, OpenMode, RealDisk, read_whole};
use newsreel_service::{Defer, Outcome, Part};
use newsreel_store::methods::METHODS;
use newsreel_store::{FileFormat, SetConfig};
use tokio::task::JoinSet;

use crate::world::{World, article, config, open_on};

const DIR: &str = "/spool/articles/main";

pub(crate) fn files_config(method: &str, change: impl FnOnce(&mut SetConfig)) -> EngineConfig {
    let mut config = config(4 << 20);
    config.store.buffers.clear();
    let set = &mut config.store.sets[0];
    set.buffers.clear();
    method.clone_into(&mut set.method);
    change(set);
    config
}

fn methods() -> impl Iterator<Item = &'static str> {
    let in_files = METHODS.iter().filter(|method| method.in_files);
    in_files.map(|method| method.name)
}

/// The files of articles below a directory.
fn files(disk: &dyn Disk, dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in disk.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        match entry.is_dir {
            true if entry.name != ".catalogue" => found.extend(files(disk, &path)),
            true => {}
            // The mark of the set.
            false if entry.name == ".newsreel-set" => {}
            false => found.push(path),
        }
    }
    found
}

#[expect(
    clippy::disallowed_methods,
    reason = "a disk makes no symbolic links to directories: administrators do"
)]
fn symlink(to: &Path, at: &Path) {
    std::os::unix::fs::symlink(to, at).unwrap();
}

async fn feed(world: &World, from: usize, count: usize) -> Vec<Outcome> {
    let articles: Vec<_> = (from..from + count)
        .map(|n| article(n, "misc.test"))
        .collect();
    world.send(&articles).await
}

async fn alive(world: &World, count: usize) -> Vec<usize> {
    let mut alive = Vec::new();
    for n in 0..count {
        let Some(text) = world.by_id(&format!("<{n}@t.example>")).await else {
            continue;
        };
        let (_, sent) = article(n, "misc.test");
        let sent = String::from_utf8(sent).unwrap();
        let (_, body) = sent.split_once("\r\n\r\n").unwrap();
        assert!(text.ends_with(&format!("\r\n\r\n{body}")), "{n}: {text:?}");
        alive.push(n);
    }
    alive
}

fn ids(of: &[usize]) -> Vec<ArticleRef> {
    let id = |n: &usize| ArticleRef::Id(format!("<{n}@t.example>"));
    of.iter().map(id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_withdrawn_leaves_no_file_and_everything_else_stays() {
    for method in methods() {
        let world = World::new(files_config(method, |_| {}));
        assert_eq!(feed(&world, 0, 60).await, [Outcome::Accepted; 60]);
        assert_eq!(alive(&world, 60).await.len(), 60);
        let disk = world.disk.clone();
        let made = files(disk.as_ref(), Path::new(DIR));
        assert_eq!(made.len(), 60, "{method}");
        // What any program reads.
        let text = read_whole(disk.as_ref(), &made[0], 1 << 20).unwrap();
        assert!(!text.contains(&b'\r') && text.ends_with(b"\n"), "{method}");
        let gone = [3, 20, 59];
        let outcomes = world.engine.withdraw(&ids(&gone), Reason::Cancelled);
        assert_eq!(outcomes.unwrap(), [const { Withdrawal::Done }; 3]);
        // With the next commit.
        assert_eq!(feed(&world, 60, 5).await, [Outcome::Accepted; 5]);
        let kept: Vec<usize> = (0..65).filter(|n| !gone.contains(n)).collect();
        assert_eq!(alive(&world, 65).await, kept);
        assert_eq!(files(disk.as_ref(), Path::new(DIR)).len(), 62, "{method}");
        assert_eq!(world.lines("misc.test").await.len(), 62);
        assert_eq!(world.problems(), Vec::<String>::new());
        // From the log alone, and from a checkpoint.
        let world = world.restart();
        assert_eq!(alive(&world, 65).await, kept);
        world.seal();
        let world = world.restart();
        assert_eq!(alive(&world, 65).await, kept);
        assert_eq!(feed(&world, 65, 5).await, [Outcome::Accepted; 5]);
        assert_eq!(files(disk.as_ref(), Path::new(DIR)).len(), 67, "{method}");
        assert_eq!(world.problems(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_somebody_removed_or_changed_costs_its_article_alone() {
    for method in methods() {
        let memory = MemoryDisk::new();
        let disk = Arc::new(memory.clone());
        let world = World::on(disk, files_config(method, |_| {}));
        feed(&world, 0, 20).await;
        let made = files(&memory, Path::new(DIR));
        let id_of = |path: &Path| {
            let octets = read_whole(&memory, path, 1 << 20).unwrap();
            let text = String::from_utf8(octets).unwrap();
            let (_, id) = text.split_once("Message-ID: ").unwrap();
            id.lines().next().unwrap().to_owned()
        };
        let [removed, damaged] = [id_of(&made[4]), id_of(&made[9])];
        memory.remove(&made[4]).unwrap();
        memory.flip_bit(&made[9], 200, 1).unwrap();
        // Both are found, and no other.
        let problems = world.problems().join("\n");
        for n in 0..20 {
            let id = format!("<{n}@t.example>");
            let is_found = [&removed, &damaged].contains(&&id);
            assert_eq!(problems.contains(&id), is_found, "{method}: {problems}");
        }
        assert!(
            problems.contains(&format!("{removed}: its file was removed")),
            "{problems}"
        );
        let path = made[9].display().to_string();
        let names_file = |line: &str| line.contains(&damaged) && line.contains(&path);
        assert!(problems.lines().any(names_file), "{problems}");
        assert_eq!(world.lines("misc.test").await.len(), 20);
        assert_eq!(alive(&world, 20).await.len(), 18, "{method}");
        // The one whose file is gone was seen; of the other somebody must see to it.
        let lines = world.lines("misc.test").await;
        assert_eq!(lines.len(), 19, "{method}");
        assert!(!lines.concat().contains(&removed), "{method}");
        let world = world.restart();
        assert_eq!(alive(&world, 20).await.len(), 18);
        assert_eq!(world.lines("misc.test").await.len(), 19, "{method}");
        let problems = world.problems().join("\n");
        assert!(
            problems.contains(&damaged) && !problems.contains(&removed),
            "{problems}"
        );
        assert_eq!(feed(&world, 20, 5).await, [Outcome::Accepted; 5]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_room_articles_are_put_off_until_there_is_some() {
    for method in methods() {
        let memory = MemoryDisk::with_capacity(200 << 20);
        let disk = Arc::new(memory.clone());
        let other = Path::new("/other");
        let file = memory.open(other, OpenMode::CreateNew).unwrap();
        file.write_at(&vec![1; 8 << 20], 0).unwrap();
        drop(file);
        // Everything but a little is to stay free.
        let free = memory.free_bytes(Path::new("/")).unwrap();
        let world = World::on(
            disk,
            files_config(method, |set| set.free_octets_min = Some(free)),
        );
        let put_off = [Outcome::Deferred(Defer::Full); 5];
        assert_eq!(feed(&world, 0, 5).await, put_off, "{method}");
        assert_eq!(world.lines("misc.test").await.len(), 0);
        let status = world.engine.status();
        let state = &status.buffers[0].state;
        assert!(state.starts_with("defers: there is no room"), "{state}");
        let held = status.put_off;
        let held: Vec<_> = held.iter().map(|it| (&*it.set, it.articles)).collect();
        assert_eq!(held, [("main", 5)]);
        // Somebody makes room.
        memory.remove(other).unwrap();
        memory.sync_dir(Path::new("/")).unwrap();
        assert_eq!(feed(&world, 0, 3).await, [Outcome::Accepted; 3], "{method}");
        assert_eq!(world.engine.status().put_off, []);
        let clock = Arc::clone(&world.clock);
        drop(world);
        let config = files_config(method, |set| set.free_octets_min = Some(1 << 20));
        let world = open_on(Arc::new(memory.clone()), &config, &clock);
        assert_eq!(feed(&world, 3, 5).await, [Outcome::Accepted; 5], "{method}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_disk_costs_no_acknowledged_article() {
    for method in methods() {
        for (op, part) in [
            (Op::Write, "main/"),
            (Op::SyncDir, "main"),
            (Op::Open, "main/"),
        ] {
            let memory = MemoryDisk::new();
            let faulty = FaultyDisk::new(Arc::new(memory.clone()));
            let disk = Arc::new(faulty.clone());
            let world = World::on(disk, files_config(method, |_| {}));
            assert_eq!(feed(&world, 0, 20).await, [Outcome::Accepted; 20]);
            faulty.add(Fault::new(op, part, Effect::Medium).nth(2));
            let outcomes = feed(&world, 20, 40).await;
            faulty.clear();
            let taken = outcomes.iter().enumerate();
            let taken = taken.filter(|(_, outcome)| **outcome == Outcome::Accepted);
            let mut expected: Vec<usize> = (0..20).collect();
            expected.extend(taken.map(|(at, _)| 20 + at));
            assert_eq!(alive(&world, 60).await, expected, "{method} {op}");
            assert_eq!(world.problems(), Vec::<String>::new());
            let left = memory.crash_losing_all();
            let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
            drop(world);
            let world = open_on(Arc::new(left), &config, &clock);
            assert_eq!(alive(&world, 60).await, expected, "{method} {op}, later");
            assert_eq!(world.problems(), Vec::<String>::new());
        }
    }
}

/// The disk refuses to remove the file of a withdrawn article: it stayed for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_whose_removal_is_refused_is_tried_again() {
    for (method, restarts) in methods().flat_map(|method| [(method, false), (method, true)]) {
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let world = World::on(Arc::new(faulty.clone()), files_config(method, |_| {}));
        feed(&world, 0, 5).await;
        let there = || files(&memory, Path::new(DIR)).len();
        faulty.add(Fault::new(Op::Remove, "main/", Effect::Medium).forever());
        let outcomes = world.engine.withdraw(&ids(&[1, 3]), Reason::Cancelled);
        assert_eq!(outcomes.unwrap(), [const { Withdrawal::Done }; 2]);
        feed(&world, 5, 1).await;
        feed(&world, 6, 1).await;
        assert_eq!(there(), 7, "{method}");
        let world = match restarts {
            false => {
                faulty.clear();
                world.wait_s(59);
                feed(&world, 7, 1).await;
                assert_eq!(there(), 8, "{method}");
                world.wait_s(2);
                feed(&world, 8, 1).await;
                assert_eq!(there(), 7, "{method}");
                world
            }
            true => {
                let world = world.restart();
                assert_eq!(there(), 7, "{method}");
                let scrub = || world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
                let (why, told) = (scrub(), "buffer main: files of 2 articles that went");
                let first = why.headers.concat();
                assert!(
                    first.starts_with(told) && first.contains(" cannot be removed, first /spool"),
                    "{why:?}"
                );
                faulty.clear();
                let done = scrub();
                let expected = format!("{told} were there still; they were removed");
                assert_eq!((done.headers, done.articles), (vec![expected], 5));
                assert_eq!(there(), 5, "{method}");
                assert_eq!(scrub().headers, Vec::<String>::new());
                world
            }
        };
        assert_eq!(world.problems(), Vec::<String>::new(), "{method}");
    }
}

/// Of many that go at once the cards stay until the next sync: each scrub said of their files that they had been there still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_tells_of_no_files_that_are_gone() {
    for method in methods() {
        let world = World::new(files_config(method, |_| {}));
        feed(&world, 0, 130).await;
        let outcomes = world
            .engine
            .withdraw(&ids(&Vec::from_iter(0..120)), Reason::Cancelled);
        assert_eq!(outcomes.unwrap().len(), 120);
        world.seal();
        for _ in 0..2 {
            let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
            assert_eq!(report.headers, Vec::<String>::new(), "{method}");
        }
        assert_eq!(world.problems(), Vec::<String>::new(), "{method}");
    }
}

/// Names of the files of a set, below its directory.
fn names(disk: &dyn Disk) -> Vec<String> {
    let dir = Path::new(DIR);
    let files = files(disk, dir).into_iter();
    let name = |path: PathBuf| path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = files.map(name).collect();
    names.sort_unstable();
    names
}

/// Whatever of a commit fails, its articles, the views or the log: when the same articles came again there is a file for each, and
/// no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_taken_leaves_no_file() {
    for method in methods() {
        for op in [Op::Write, Op::Sync, Op::SyncDir] {
            let (mut nth, mut is_struck) = (0, true);
            while is_struck {
                nth += 1;
                let at = format!("{method}, {op} {nth}");
                let memory = MemoryDisk::new();
                let faulty = FaultyDisk::new(Arc::new(memory.clone()));
                let world = World::on(Arc::new(faulty.clone()), files_config(method, |_| {}));
                assert_eq!(feed(&world, 0, 3).await, [Outcome::Accepted; 3]);
                let count = faulty.counts().of(op);
                faulty.add(Fault::new(op, "", Effect::Medium).nth(nth));
                for n in 3..6 {
                    let _ = feed(&world, n, 1).await;
                }
                is_struck = faulty.counts().of(op) - count >= nth;
                faulty.clear();
                let left = memory.crash_losing_all();
                let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
                drop(world);
                for (how, left) in [("a power cut", left), ("a restart", memory)] {
                    let world = open_on(Arc::new(left.clone()), &config, &clock);
                    let again = feed(&world, 3, 3).await;
                    let is_there = |it| matches!(it, Outcome::Accepted | Outcome::Duplicate);
                    assert!(again.into_iter().all(is_there), "{at}, {how}");
                    assert_eq!(alive(&world, 6).await.len(), 6, "{at}, {how}");
                    let there = files(&left, Path::new(DIR));
                    // A power cut just when the log failed may undo the removal.
                    let most = if how == "a restart" { 6 } else { 7 };
                    assert!((6..=most).contains(&there.len()), "{at}, {how}: {there:?}");
                    world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
                    // A card that was not taken may tell of the file of the one that was: the scrub removed that.
                    assert_eq!(alive(&world, 6).await.len(), 6, "{at}, {how}, scrubbed");
                    let there = files(&left, Path::new(DIR));
                    assert_eq!(there.len(), 6, "{at}, {how}, scrubbed: {there:?}");
                    assert_eq!(world.problems(), Vec::<String>::new(), "{at}, {how}");
                }
            }
            assert!(nth > 3, "{method}: {op} failed {nth} times");
        }
    }
}

/// Withdraws these of so many articles, and cuts the power at each change of the disk, or so many apart, until the server has ended: no
/// file of theirs is left behind the scrub.
async fn cut_while_these_go(method: &str, count: usize, gone: &[usize], step: usize) {
    let mut stopped = 0;
    for nth in (1..).step_by(step) {
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let world = World::on(Arc::new(faulty.clone()), files_config(method, |_| {}));
        assert_eq!(feed(&world, 0, count).await, vec![Outcome::Accepted; count]);
        // The removal goes with the next commit, whatever that is.
        let outcomes = world.engine.withdraw(&ids(gone), Reason::Cancelled);
        assert_eq!(outcomes.unwrap(), vec![Withdrawal::Done; gone.len()]);
        let cut = faulty.counts().changes() + nth;
        faulty.stop_at_change(cut);
        let next = feed(&world, count, 1).await;
        // Its last checkpoint too.
        let ended = world.engine.shutdown();
        let is_whole = faulty.counts().changes() < cut;
        assert!(!is_whole || next == [Outcome::Accepted] && ended.is_ok());
        stopped += u32::from(!is_whole);
        for seed in 0..12u64.div_ceil(step as u64) {
            let left = memory.crash(seed);
            let world = open_on(Arc::new(left.clone()), &world.config, &world.clock);
            world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
            let at = format!("{method}, step {nth}, seed {seed}");
            let alive = alive(&world, count).await;
            let kept: Vec<usize> = (0..count).filter(|n| !gone.contains(n)).collect();
            assert_eq!(alive, kept, "{at}");
            for path in files(&left, Path::new(DIR)) {
                let text = read_whole(&left, &path, 1 << 16).unwrap();
                let text = String::from_utf8_lossy(&text);
                let is_of = |n: &usize| text.contains(&format!("<{n}@t.example>"));
                assert!(!gone.iter().any(is_of), "{at}: {path:?}");
            }
            assert_eq!(world.problems(), Vec::<String>::new(), "{at}");
        }
        if is_whole {
            break;
        }
    }
    assert!(stopped > 3, "{method}: {stopped}");
}

/// The card of a withdrawn article was overwritten before the removal of its file was durable: a power cut in between left a file to
/// which nothing led any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_while_files_are_removed_leaves_none() {
    for method in methods() {
        cut_while_these_go(method, 6, &[1, 3], 1).await;
    }
}

/// Of many at once the removal is not synced by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_while_many_files_are_removed_leaves_none() {
    let gone: Vec<usize> = (0..120).filter(|n| n % 10 != 3).collect();
    for method in methods() {
        cut_while_these_go(method, 120, &gone, 4).await;
    }
}

/// Each thousand of files that expired was synced by itself, and with it the directories of which the next thousand had files, too: an
/// article cost five times as much as one that INN removes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_in_large_numbers_is_synced_by_a_checkpoint() {
    for method in methods() {
        let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let world = World::on(Arc::new(faulty.clone()), files_config(method, |_| {}));
        let (dir, catalogue) = (
            Path::new(DIR),
            Path::new(DIR).join(".catalogue/00000001.seg"),
        );
        assert_eq!(feed(&world, 0, 460).await, vec![Outcome::Accepted; 460]);
        let name = |path: PathBuf| path.strip_prefix(dir).unwrap().display().to_string();
        let all: Vec<String> = files(&faulty, dir).into_iter().map(name).collect();
        let gone: Vec<usize> = (0..400).collect();
        let syncs = || faulty.counts().of(Op::SyncDir);
        let before = syncs();
        for some in gone.chunks(100) {
            let outcomes = world.engine.withdraw(&ids(some), Reason::Expired);
            assert_eq!(outcomes.unwrap(), vec![Withdrawal::Done; 100]);
        }
        // The last of them go with the next commit.
        let other = vec![GroupSpec::new("misc.new")];
        world.engine.add_groups(other).unwrap();
        assert_eq!(files(&faulty, dir).len(), 60, "{method}");
        assert_eq!(syncs(), before, "{method}");
        let named = || {
            let cards = read_whole(&faulty, &catalogue, 1 << 20).unwrap();
            let is_named = |name: &&String| {
                let mut found = cards.windows(name.len() + 1);
                found.any(|octets| {
                    octets.starts_with(name.as_bytes()) && !octets[name.len()].is_ascii_digit()
                })
            };
            all.iter().filter(is_named).count()
        };
        assert!(named() >= 400, "{method}: {}", named());
        world.seal();
        assert!(syncs() > before, "{method}");
        assert!(named() <= 60, "{method}: {}", named());
        assert_eq!(world.problems(), Vec::<String>::new());
    }
}

/// A file is made before its card: where a power cut came in between the file stayed for ever, and nobody was told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_tells_of_files_without_cards_and_removes_copies_alone() {
    for (method, format) in
        methods().flat_map(|method| [(method, FileFormat::Native), (method, FileFormat::Wire)])
    {
        let memory = MemoryDisk::new();
        let config = files_config(method, |set| set.format = Some(format));
        let world = World::on(Arc::new(memory.clone()), config);
        feed(&world, 0, 6).await;
        let write = |path: &Path, octets: &[u8]| {
            let file = memory.open(path, OpenMode::CreateNew).unwrap();
            file.write_at(octets, 0).unwrap();
        };
        let with = |path: &Path, more: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(more);
            PathBuf::from(name)
        };
        let made = files(&memory, Path::new(DIR));
        let text = read_whole(&memory, &made[2], 1 << 16).unwrap();
        let text = String::from_utf8(text).unwrap();
        // The article came again, and had another number then.
        let copy = with(&made[2], "+");
        let other_number = text.replace("misc.test:", "misc.test:1");
        assert_ne!(other_number, text);
        write(&copy, other_number.as_bytes());
        // It never did; or only half of it was there; or nothing.
        let unknown = [
            with(&made[3], "+"),
            with(&made[4], "+"),
            with(&made[5], "+"),
        ];
        let strange = text.replace("Message-ID: <", "Message-ID: <other-");
        let half = read_whole(&memory, &made[4], 1 << 16).unwrap();
        write(&unknown[0], strange.as_bytes());
        write(&unknown[1], &half[..half.len() - 7]);
        write(&unknown[2], b"");
        // Somebody's.
        let own = [with(&made[2], ".bak"), made[2].with_file_name("README")];
        own.iter().for_each(|path| write(path, text.as_bytes()));
        let scrub = || world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        let said = scrub().headers;
        assert_eq!(said.len(), 3, "{method}: {said:?}");
        assert!(
            said[0].contains("which have their own, left by a power cut: 1; "),
            "{said:?}"
        );
        assert!(
            said[1].contains("files with nothing in them to which no card leads"),
            "{said:?}"
        );
        assert!(
            said[2].contains("files to which no card leads: 2, first /spool"),
            "{said:?}"
        );
        let there = |path: &PathBuf| memory.exists(path).unwrap();
        assert!(!there(&copy) && !there(&unknown[2]), "{method}");
        for path in made.iter().chain(&unknown[..2]).chain(&own) {
            assert!(there(path), "{method}: {path:?}");
        }
        assert_eq!(scrub().headers.len(), 1, "{method}");
        assert_eq!(alive(&world, 6).await.len(), 6);
        // Of a withdrawn article nothing is told that its card does not tell.
        let outcomes = world.engine.withdraw(&ids(&[0]), Reason::Cancelled);
        assert_eq!(outcomes.unwrap(), [const { Withdrawal::Done }; 1]);
        feed(&world, 6, 1).await;
        assert_eq!(scrub().headers.len(), 1, "{method}");
        assert_eq!(world.problems(), Vec::<String>::new());
    }
}

/// It was told a second time, as a file to which no card leads and that may be removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_articles_file_that_became_empty_is_damage_and_nothing_else() {
    for method in methods() {
        let memory = MemoryDisk::new();
        let world = World::on(Arc::new(memory.clone()), files_config(method, |_| {}));
        feed(&world, 0, 6).await;
        world.seal();
        let made = files(&memory, Path::new(DIR));
        let file = memory.open(&made[2], OpenMode::ReadWrite).unwrap();
        file.set_len(0).unwrap();
        let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        assert_eq!(report.headers, Vec::<String>::new(), "{method}");
        assert_eq!(report.damaged.len(), 1, "{method}");
    }
}

/// A file of an article that was cancelled stayed for ever where nothing of its card is left, and with it the text that was to go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_removes_files_without_cards_of_articles_that_were_withdrawn() {
    for (method, is_sealed) in methods().flat_map(|method| [(method, false), (method, true)]) {
        let memory = MemoryDisk::new();
        let world = World::on(Arc::new(memory.clone()), files_config(method, |_| {}));
        feed(&world, 0, 6).await;
        let octets = |path: &PathBuf| read_whole(&memory, path, 1 << 16).unwrap();
        let found = files(&memory, Path::new(DIR));
        let file_of = |n: usize| {
            let id = format!("Message-ID: <{n}@t.example>");
            let is_it = |path: &&PathBuf| String::from_utf8(octets(path)).unwrap().contains(&id);
            found.iter().find(is_it).unwrap().clone()
        };
        let made = [0, 1, 2].map(file_of);
        let text = |n: usize| octets(&made[n]);
        let (cancelled, alive_one) = (text(0), text(1));
        let strange = String::from_utf8(text(2)).unwrap();
        let strange = strange.replace("Message-ID: <", "Message-ID: <other-");
        let outcomes = world.engine.withdraw(&ids(&[0]), Reason::Cancelled);
        assert_eq!(outcomes.unwrap(), [const { Withdrawal::Done }; 1]);
        // It is removed with the next commit, and known by a bucket, or not yet.
        feed(&world, 6, 1).await;
        if is_sealed {
            world.seal();
        }
        let put = |n: usize, octets: &[u8]| {
            let path = PathBuf::from(format!("{}+", made[n].display()));
            let file = memory.open(&path, OpenMode::CreateNew).unwrap();
            file.write_at(octets, 0).unwrap();
            path
        };
        assert!(!memory.exists(&made[0]).unwrap(), "{method}");
        let again = memory.open(&made[0], OpenMode::CreateNew).unwrap();
        again.write_at(&cancelled, 0).unwrap();
        let (left, stranger) = (put(0, &cancelled), put(2, strange.as_bytes()));
        // What has another name than a set gives is somebody's, whatever is in it.
        let own = ["0.bak", "README", ".7", "7~"].map(|name| made[0].with_file_name(name));
        for path in &own {
            let file = memory.open(path, OpenMode::CreateNew).unwrap();
            file.write_at(&cancelled, 0).unwrap();
        }
        let scrub = || {
            world
                .engine
                .scrub(&[], 0, &mut |_, _| true)
                .unwrap()
                .headers
        };
        let said = scrub();
        let told = "that were cancelled, expired or moved: 2; they were removed";
        assert!(
            said.iter().any(|said| said.contains(told)),
            "{method}: {said:?}"
        );
        let there = [&made[0], &left, &made[1], &stranger].map(|path| memory.exists(path).unwrap());
        assert_eq!(
            there,
            [false, false, true, true],
            "{method}, sealed: {is_sealed}"
        );
        assert!(
            own.iter().all(|path| memory.exists(path).unwrap()),
            "{method}"
        );
        assert_eq!(text(1), alive_one);
        let said = scrub();
        assert!(
            said.len() == 1 && said[0].contains("no card leads: 1, "),
            "{said:?}"
        );
        assert_eq!(alive(&world, 7).await, [1, 2, 3, 4, 5, 6]);
        assert_eq!(world.problems(), Vec::<String>::new());
    }
}

/// The catalogue has a single copy: where it was lost, so were all articles, though each of their files was there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_catalogue_is_made_again_from_the_files() {
    const CARDS: &str = "/spool/articles/main/.catalogue/00000001.seg";
    for (method, how) in methods().flat_map(|method| {
        ["removed", "zeros", "cut", "rot", "all", "blank", "ruined"].map(|how| (method, how))
    }) {
        let memory = MemoryDisk::new();
        let config = files_config(method, |set| {
            set.layouts = match method {
                "tradspool" => vec!["misc.other range2".to_owned()],
                _ => Vec::new(),
            };
        });
        let world = World::on(Arc::new(memory.clone()), config);
        for n in 0..30 {
            let groups = ["misc.test", "misc.test,misc.other"][n % 2];
            assert_eq!(world.send(&[article(n, groups)]).await, [Outcome::Accepted]);
            if n == 9 {
                // The log does not go back so far, and the rest is in memory alone.
                world.seal();
            }
        }
        let outcomes = world.engine.withdraw(&ids(&[4]), Reason::Cancelled);
        assert_eq!(outcomes.unwrap(), [const { Withdrawal::Done }; 1]);
        assert_eq!(feed(&world, 30, 1).await, [Outcome::Accepted]);
        // Its article lies in another bucket of the history than that it was withdrawn.
        world.seal();
        let all: Vec<usize> = (0..31).filter(|n| *n != 4).collect();
        assert_eq!(alive(&world, 31).await, all);
        let (lines, made) = (world.lines("misc.test").await, names(&memory));
        let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
        drop(world);
        let file = memory.open(Path::new(CARDS), OpenMode::ReadWrite).unwrap();
        let cards_from = 12 << 10;
        match how {
            "removed" => memory.remove(Path::new(CARDS)).unwrap(),
            "zeros" => {
                let zeros = vec![0; (1 << 20) - cards_from];
                file.write_at(&zeros, cards_from as u64).unwrap();
            }
            "cut" => file.set_len(20 << 10).unwrap(),
            "blank" => file.write_at(&vec![0; 1 << 20], 0).unwrap(),
            "ruined" => file.write_at(&vec![b'x'; 1 << 20], 0).unwrap(),
            "rot" => {
                let rot = vec![b'x'; 32 << 10];
                file.write_at(&rot, cards_from as u64).unwrap();
            }
            _ => {
                memory.remove(Path::new(CARDS)).unwrap();
                let roots = Path::new(CARDS).with_file_name("roots");
                if memory.exists(&roots).unwrap() {
                    memory.remove(&roots).unwrap();
                }
            }
        }
        let world = open_on(Arc::new(memory.clone()), &config, &clock);
        let at = format!("{method}, {how}");
        let complaint = world.engine.status().buffers[0].state.clone();
        assert!(
            complaint.contains("its catalogue is damaged: of 1 files 1 ")
                && complaint.contains("store scrub main"),
            "{at}: {complaint}"
        );
        assert!(alive(&world, 31).await.len() < all.len(), "{at}");
        // What is lost is gone from nowhere, also behind a checkpoint.
        world.seal();
        assert_eq!(world.lines("misc.test").await, lines, "{at}");
        let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        let told = report.headers.concat();
        assert!(
            told.contains("articles whose cards were lost: "),
            "{at}: {told}"
        );
        assert!(!told.contains("no card leads"), "{at}: {told}");
        assert_eq!(
            (report.damaged.len(), report.articles),
            (0, 30),
            "{at}: {report:?}"
        );
        assert!(told.contains("they were closed"), "{at}: {told}");
        assert_eq!(alive(&world, 31).await, all, "{at}");
        assert_eq!(world.lines("misc.test").await, lines, "{at}");
        assert_eq!(world.problems(), Vec::<String>::new(), "{at}");
        assert_eq!(names(&memory), made, "{at}");
        let again = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        assert_eq!((again.headers, again.damaged.len()), (vec![], 0), "{at}");
        let state = world.engine.status().buffers[0].state.clone();
        match how {
            // What took the place of it is told of until somebody has moved it.
            "ruined" => assert!(
                state.starts_with(&format!("{CARDS}.aside: set aside"))
                    && !state.contains("its catalogue is damaged"),
                "{at}: {state}"
            ),
            _ => assert_eq!(state, "ok", "{at}"),
        }
        let holes = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        assert_eq!(holes.headers, Vec::<String>::new(), "{at}");
        // They are articles as before: they go with their files.
        let world = world.restart();
        assert_eq!(alive(&world, 31).await, all, "{at}");
        assert_eq!(feed(&world, 31, 1).await, [Outcome::Accepted], "{at}");
        let gone: Vec<usize> = all[..20].to_vec();
        let outcomes = world.engine.withdraw(&ids(&gone), Reason::Cancelled);
        assert_eq!(outcomes.unwrap(), [const { Withdrawal::Done }; 20], "{at}");
        assert_eq!(feed(&world, 32, 1).await, [Outcome::Accepted], "{at}");
        let odd = gone.iter().filter(|n| **n % 2 == 1).count();
        let links = if method == "tradspool" { odd } else { 0 };
        assert_eq!(names(&memory).len(), made.len() + 2 - 20 - links, "{at}");
        assert_eq!(world.problems(), Vec::<String>::new(), "{at}");
    }
}

/// Zeros in the place of a short card, behind others in its page, look like what a batch leaves of its last page: a start sees nothing of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_card_that_is_lost_at_the_end_of_a_page_is_made_again() {
    for method in methods() {
        let memory = MemoryDisk::new();
        let world = World::on(Arc::new(memory.clone()), files_config(method, |_| {}));
        assert_eq!(feed(&world, 0, 20).await, [Outcome::Accepted; 20]);
        world.seal();
        let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
        drop(world);
        let cards = Path::new(DIR).join(".catalogue/00000001.seg");
        let octets = read_whole(&memory, &cards, 1 << 20).unwrap();
        let end = 1 + octets.iter().rposition(|octet| *octet != 0).unwrap();
        let starts = (0..end).rev().filter(|at| at % 64 == 0);
        let mut cards_from = starts.filter(|at| octets[*at..].starts_with(b"NA"));
        let [last, before] = [(); 2].map(|()| cards_from.next().unwrap());
        assert_eq!(last / 4096, before / 4096, "{method}: one page");
        let file = memory.open(&cards, OpenMode::ReadWrite).unwrap();
        file.write_at(&vec![0; end - last], last as u64).unwrap();
        let world = open_on(Arc::new(memory.clone()), &config, &clock);
        assert_eq!(world.engine.status().buffers[0].state, "ok", "{method}");
        assert_eq!(alive(&world, 20).await.len(), 19, "{method}");
        assert_eq!(world.lines("misc.test").await.len(), 20, "{method}");
        let told = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        let headers = told.headers.concat();
        assert!(
            headers.contains("articles whose cards were lost: 1; "),
            "{method}: {headers}"
        );
        assert_eq!((told.damaged.len(), told.articles), (0, 20), "{method}");
        assert_eq!(alive(&world, 20).await.len(), 20, "{method}");
        // One that was withdrawn before it was lost is missed by nobody.
        let outcomes = world.engine.withdraw(&ids(&[19]), Reason::Cancelled);
        assert_eq!(outcomes.unwrap(), [const { Withdrawal::Done }; 1]);
        assert_eq!(feed(&world, 20, 1).await, [Outcome::Accepted], "{method}");
        world.seal();
        drop(world);
        file.write_at(&vec![0; end - last], last as u64).unwrap();
        let world = open_on(Arc::new(memory.clone()), &config, &clock);
        let told = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        assert_eq!((told.damaged.len(), told.articles), (0, 20), "{method}");
        assert_eq!(world.problems(), Vec::<String>::new(), "{method}");
    }
}

/// A hierarchy may lie behind a symbolic link: its articles were said to be lost for good, though each of their files was there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_catalogue_is_made_again_where_a_hierarchy_lies_behind_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (spool, other) = (folder.path().join("spool"), folder.path().join("other"));
    let set = folder.path().join("news");
    RealDisk.create_dir_all(&set).unwrap();
    RealDisk.create_dir_all(&other.join("misc/deep")).unwrap();
    symlink(&other.join("misc"), &set.join("misc"));
    // Round about, and to what is nobody's here.
    symlink(&set, &other.join("misc/deep/back"));
    symlink(&other, &other.join("misc/up"));
    let elsewhere = folder.path().join("backup");
    RealDisk.create_dir_all(&elsewhere).unwrap();
    symlink(&elsewhere, &set.join("backup"));
    let mut config = files_config("tradspool", |made| made.directory = Some(set.clone()));
    config.spool = spool;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let world = World::on(Arc::clone(&disk), config);
    assert_eq!(feed(&world, 0, 20).await, [Outcome::Accepted; 20]);
    assert_eq!(
        world.send(&[article(20, "misc.test,misc.other")]).await,
        [Outcome::Accepted]
    );
    world.seal();
    let outcomes = world.engine.withdraw(&ids(&[3]), Reason::Cancelled);
    assert_eq!(outcomes.unwrap(), [const { Withdrawal::Done }; 1]);
    assert_eq!(feed(&world, 21, 1).await, [Outcome::Accepted]);
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    drop(world);
    // One of them is gone, but for a copy to which nothing of ours leads.
    let (from, to) = (other.join("misc/test/8"), elsewhere.join("8"));
    RealDisk.rename(&from, &to).unwrap();
    RealDisk
        .remove(&set.join(".catalogue/00000001.seg"))
        .unwrap();
    let world = open_on(disk, &config, &clock);
    let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    let told = report.headers.concat();
    assert!(
        told.contains("articles whose cards were lost: 20; "),
        "{told}"
    );
    assert!(!told.contains("no card leads"), "{told}");
    let lost: Vec<_> = report.damaged.iter().map(|it| &it.message_id).collect();
    assert_eq!(lost, [&Some("<7@t.example>".to_owned())], "{report:?}");
    let left: Vec<usize> = (0..22).filter(|n| ![3, 7].contains(n)).collect();
    assert_eq!(alive(&world, 22).await, left);
    let world = world.restart();
    assert_eq!(alive(&world, 22).await, left);
    assert_eq!(world.engine.group("misc.other").unwrap().count, 1);
}

/// A full disk had no room for the lost file of a catalogue, and the scrub said all the same that the cards were made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cards_that_cannot_be_written_are_not_said_to_be_made_again() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let world = World::on(Arc::new(faulty.clone()), files_config("tradspool", |_| {}));
    assert_eq!(feed(&world, 0, 10).await, [Outcome::Accepted; 10]);
    world.seal();
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    drop(world);
    let cards = Path::new(DIR).join(".catalogue/00000001.seg");
    memory.remove(&cards).unwrap();
    let world = open_on(Arc::new(faulty.clone()), &config, &clock);
    faulty.add(Fault::new(Op::ZeroFill, ".catalogue", Effect::Full).times(u64::MAX));
    let scrub = || world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    let (report, told) = (scrub(), scrub().headers.concat());
    assert!(!told.contains("made again from"), "{told}");
    assert!(
        told.contains("cards were lost and cannot be written: 10"),
        "{told}"
    );
    assert!(told.contains("no space"), "{told}");
    assert_eq!(report.damaged.len(), 10, "{report:?}");
    assert_eq!(alive(&world, 10).await, Vec::<usize>::new());
    faulty.clear();
    let told = scrub().headers.concat();
    assert!(
        told.contains("articles whose cards were lost: 10; their cards were made"),
        "{told}"
    );
    assert_eq!(alive(&world, 10).await.len(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_are_directories_numbers_files_and_crossposts_links() {
    for format in [FileFormat::Native, FileFormat::Wire] {
        let world = World::new(files_config("tradspool", |set| {
            set.format = Some(format);
            set.layouts = vec!["misc.other range2".to_owned()];
        }));
        let groups = ["misc", "misc.1"].map(GroupSpec::new).to_vec();
        world.engine.add_groups(groups).unwrap();
        let posted = [
            "misc.test",
            "misc.test,misc.other",
            // Article 1 of `misc`, and the directory of `misc.1`.
            "misc,misc.1,misc.other",
            "misc.1",
        ];
        let posted = posted.iter().enumerate();
        let articles: Vec<_> = posted.map(|(n, groups)| article(n, groups)).collect();
        assert_eq!(world.send(&articles).await, [Outcome::Accepted; 4]);
        let disk = Arc::clone(&world.disk);
        let all = [
            "misc/1",
            "misc/1,/1",
            "misc/1,/2",
            "misc/other/r0/1",
            "misc/other/r2/2",
            "misc/test/1",
            "misc/test/2",
        ];
        assert_eq!(names(disk.as_ref()), all);
        let read = |name: &str| {
            let octets = read_whole(disk.as_ref(), &Path::new(DIR).join(name), 1 << 20);
            String::from_utf8(octets.unwrap()).unwrap()
        };
        let crossposted = read("misc/1");
        assert!(crossposted.contains("Xref: news.example misc:1 misc.1:1 misc.other:2"));
        for link in ["misc/1,/1", "misc/other/r2/2"] {
            assert_eq!(read(link), crossposted);
        }
        let is_wire = crossposted.ends_with("Body of 2\r\n..dots\r\n.\r\n");
        let is_native = crossposted.ends_with("Body of 2\n.dots\n");
        let expected = (format == FileFormat::Wire, format == FileFormat::Native);
        assert_eq!((is_wire, is_native), expected, "{crossposted:?}");
        // By any of its names, as long as one is left.
        disk.remove(&Path::new(DIR).join("misc/1")).unwrap();
        for (group, number) in [("misc", 1), ("misc.1", 1), ("misc.other", 2)] {
            let query = world.numbered(group, number).await;
            let text = world.read(query, Part::Whole).await.unwrap();
            assert!(text.ends_with("Body of 2\r\n..dots\r\n.\r\n"), "{text}");
        }
        assert_eq!(world.problems(), Vec::<String>::new());
        let world = world.restart();
        let outcomes = world.engine.withdraw(&ids(&[1, 2]), Reason::Cancelled);
        assert_eq!(outcomes.unwrap(), [const { Withdrawal::Done }; 2]);
        assert_eq!(feed(&world, 4, 1).await, [Outcome::Accepted]);
        let left = ["misc/1,/2", "misc/test/1", "misc/test/3"];
        assert_eq!(names(disk.as_ref()), left);
        assert_eq!(world.problems(), Vec::<String>::new());
    }
}

/// What is placed again after a failure gets the same names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_cannot_be_made_is_made_again() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let world = World::on(Arc::new(faulty.clone()), files_config("tradspool", |_| {}));
    assert_eq!(feed(&world, 0, 2).await, [Outcome::Accepted; 2]);
    faulty.add(Fault::new(Op::Link, "other", Effect::Medium));
    let sent = [article(2, "misc.test,misc.other")];
    assert_eq!(world.send(&sent).await, [Outcome::Accepted]);
    let expected = ["misc/other/1", "misc/test/1", "misc/test/2", "misc/test/3"];
    assert_eq!(names(&memory), expected);
    assert_eq!(alive(&world, 3).await, [0, 1, 2]);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Nobody asks for it: the scrub sees it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_sees_that_a_file_was_removed() {
    let memory = MemoryDisk::new();
    let mut config = files_config("tradspool", |_| {});
    config.scrub.octets_per_s = 1 << 30;
    let world = World::on(Arc::new(memory.clone()), config);
    let sent = [0, 1, 2].map(|n| article(n, "misc.test,misc.other"));
    assert_eq!(world.send(&sent).await, [Outcome::Accepted; 3]);
    let links = files(&memory, Path::new(DIR)).into_iter();
    // Article 2 under all its names.
    let lost: Vec<PathBuf> = links
        .filter(|path| {
            let octets = read_whole(&memory, path, 1 << 20).unwrap();
            String::from_utf8(octets).unwrap().contains("number 2")
        })
        .collect();
    for path in lost {
        memory.remove(&path).unwrap();
    }
    let counted = |world: &World| {
        ["misc.test", "misc.other"].map(|group| world.engine.group(group).unwrap().count)
    };
    assert_eq!(counted(&world), [3, 3]);
    world.wait_until("the scrub", |world| {
        world.wait_s(1 << 20);
        counted(world) == [2, 2]
    });
    let status = world.engine.status();
    assert_eq!(
        (status.counters.damaged_articles, status.scrub.damaged),
        (0, 0)
    );
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// A directory whose disk is not mounted is there and empty: what it should have may come back, where nobody wrote down which
/// directories have a disk of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_directory_of_a_group_costs_nothing_but_reading() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), files_config("tradspool", |_| {}));
    feed(&world, 0, 3).await;
    memory
        .remove(&Path::new(DIR).join(".catalogue/roots"))
        .unwrap();
    let world = world.restart();
    let away = |name: &str| [DIR, "/away"].map(|dir| Path::new(dir).join(name));
    memory.create_dir_all(Path::new("/away/misc/test")).unwrap();
    let all = names(&memory);
    for name in &all {
        let [here, there] = away(name);
        memory.rename(&here, &there).unwrap();
    }
    assert_eq!(alive(&world, 3).await, Vec::<usize>::new());
    assert_eq!(world.lines("misc.test").await.len(), 3);
    for name in &all {
        let [here, there] = away(name);
        memory.rename(&there, &here).unwrap();
    }
    assert_eq!(alive(&world, 3).await, [0, 1, 2]);
    // Who knows that it is gone for good may say so.
    for name in &all {
        memory.remove(&Path::new(DIR).join(name)).unwrap();
    }
    let outcomes = world.engine.withdraw(&ids(&[0, 2]), Reason::Cancelled);
    assert_eq!(outcomes.unwrap(), [const { Withdrawal::Done }; 2]);
    assert_eq!(world.lines("misc.test").await.len(), 1);
}

/// A killed move left one for each kill, which each scrub told of and none removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_removes_empty_files_unless_they_are_articles() {
    for method in methods() {
        let memory = MemoryDisk::new();
        let world = World::on(Arc::new(memory.clone()), files_config(method, |_| {}));
        feed(&world, 0, 6).await;
        let made = files(&memory, Path::new(DIR));
        let empty = PathBuf::from(format!("{}+", made[5].display()));
        memory.open(&empty, OpenMode::CreateNew).unwrap();
        let scrub = || world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        let said = scrub().headers;
        let told = "to which no card leads, left by a kill or a power cut: 1; they were removed";
        assert!(
            said.len() == 1 && said[0].contains(told),
            "{method}: {said:?}"
        );
        assert!(!memory.exists(&empty).unwrap(), "{method}");
        assert_eq!(scrub().headers, [""; 0], "{method}");
        // Of an article nothing is left but its file: that is damage, and it stays.
        let file = memory.open(&made[2], OpenMode::ReadWrite).unwrap();
        file.set_len(0).unwrap();
        let report = scrub();
        assert_eq!(report.damaged.len(), 1, "{method}: {report:?}");
        assert!(memory.exists(&made[2]).unwrap(), "{method}");
        assert_eq!(alive(&world, 6).await.len(), 5, "{method}");
    }
}

/// A scrub that met an article whose file was gone while a reader withdrew it told of damage.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_scrub_waits_for_a_reader_that_withdraws() {
    for method in methods() {
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let world = World::on(Arc::new(faulty.clone()), files_config(method, |_| {}));
        assert_eq!(feed(&world, 0, 3).await, [Outcome::Accepted; 3]);
        let is_lost = |path: &PathBuf| {
            let octets = read_whole(&memory, path, 1 << 20).unwrap();
            String::from_utf8(octets).unwrap().contains("number 1")
        };
        let made = files(&memory, Path::new(DIR)).into_iter();
        made.filter(is_lost)
            .for_each(|path| memory.remove(&path).unwrap());
        let slow = Effect::Slow(Duration::from_millis(600));
        faulty.add(Fault::new(Op::Sync, "/log/", slow).times(u64::MAX));
        let world = Arc::new(world);
        let mut reader = JoinSet::new();
        let asked = Arc::clone(&world);
        reader.spawn(async move { asked.by_id("<1@t.example>").await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
        faulty.clear();
        let read = reader.join_next().await.unwrap().unwrap();
        assert_eq!(read, None, "{method}");
        let told: Vec<String> = report.damaged.iter().map(ToString::to_string).collect();
        assert_eq!(told, [""; 0], "{method}");
        assert_eq!(alive(&world, 3).await, [0, 2], "{method}");
        assert_eq!(world.problems(), [""; 0], "{method}");
    }
}

/// Under each number that a group shows for one of these is the file of that article, whatever else lies there.
async fn have_plain_names(world: &World, disk: &dyn Disk, ids: &[String], what: &str) {
    let dir = Path::new(DIR);
    for group in ["misc.test", "misc.other"] {
        for line in world.lines(group).await {
            let mut fields = line.split('\t');
            let (number, id) = (fields.next().unwrap(), fields.nth(3).unwrap());
            // Of what nobody was told was taken a power cut may leave the names alone.
            if !ids.iter().any(|known| known == id) {
                continue;
            }
            let below = dir.join(group.replace('.', "/"));
            let mut found = files(disk, &below).into_iter();
            let file = found.find(|path| path.file_name().unwrap().to_str() == Some(number));
            let file = file.unwrap_or_else(|| {
                panic!(
                    "{what}: there is no {group}:{number}: {:?}",
                    files(disk, &below)
                )
            });
            let text = String::from_utf8(read_whole(disk, &file, 1 << 20).unwrap()).unwrap();
            assert!(text.contains(id), "{what}: {group}:{number}: {text}");
        }
    }
}

/// What a kill leaves between files and log has numbers that are given again: who came then had a `+` behind its name, and old
/// tools saw another article than the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_kills_each_article_lies_under_its_number() {
    let groups = ["misc.test", "misc.other", "misc.test,misc.other"];
    let some = |from: usize| -> Vec<_> {
        let some = from..from + 12;
        some.map(|n| article(n, groups[n % 3])).collect()
    };
    for layout in ["flat", "range1024"] {
        let config = files_config("tradspool", |set| {
            set.layouts = vec![format!("* {layout}")];
        });
        let (mut later, mut memory, mut acknowledged) = (0, MemoryDisk::new(), Vec::new());
        drop(World::on(Arc::new(memory.clone()), config.clone()));
        for kill in 0..12 {
            let faulty = FaultyDisk::new(Arc::new(memory.clone()));
            let clock = Arc::new(newsreel_host::FakeClock::new(crate::world::NOW));
            let world = open_on(Arc::new(faulty.clone()), &config, &clock);
            let what = format!("{layout}, kill {kill}");
            let begun = faulty.counts().of(Op::Sync) + faulty.counts().of(Op::SyncDir);
            faulty.stop_at_sync(begun + 1 + kill as u64 % 6);
            for round in 0..3 {
                let articles = some(kill * 100 + round * 12);
                let outcomes = world.send(&articles).await;
                let taken = articles.into_iter().zip(outcomes);
                let taken = taken.filter(|(_, outcome)| *outcome == Outcome::Accepted);
                acknowledged.extend(taken.map(|((id, _), _)| id));
            }
            memory = memory.crash(kill as u64);
            drop(world);
            let after = open_on(Arc::new(memory.clone()), &config, &clock);
            // Whatever the kill left, one more.
            let bucket = if layout == "flat" { "" } else { "r0/" };
            let next = after.high("misc.test") + 1;
            let left = PathBuf::from(format!("{DIR}/misc/test/{bucket}{next}"));
            if let Ok(file) = memory.open(&left, OpenMode::CreateNew) {
                file.write_at(b"Subject: left\n\nx\n", 0).unwrap();
            }
            let more = some(kill * 100 + 50);
            assert_eq!(after.send(&more).await, [Outcome::Accepted; 12]);
            acknowledged.extend(more.into_iter().map(|(id, _)| id));
            for id in &acknowledged {
                assert!(after.by_id(id).await.is_some(), "{what}: {id} is lost");
            }
            have_plain_names(&after, &memory, &acknowledged, &what).await;
            assert_eq!(after.problems(), Vec::<String>::new(), "{what}");
            let has_later = |path: &&PathBuf| path.to_str().unwrap().ends_with('+');
            later += files(&memory, Path::new(DIR))
                .iter()
                .filter(has_later)
                .count();
        }
        assert!(later > 0, "no kill left anything");
    }
}

/// With all eight names of one number taken nothing was taken for any group, a minute long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_under_all_names_of_a_number_put_nothing_off() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), files_config("tradspool", |_| {}));
    assert_eq!(feed(&world, 0, 1).await, [Outcome::Accepted; 1]);
    let name = |later: usize| PathBuf::from(format!("{DIR}/misc/test/2{}", "+".repeat(later)));
    for later in 0..8 {
        let file = memory.open(&name(later), OpenMode::CreateNew).unwrap();
        file.write_at(b"Subject: somebody's\n\nx\n", 0).unwrap();
    }
    let both = [article(1, "misc.test"), article(2, "misc.other")];
    assert_eq!(world.send(&both).await, [Outcome::Accepted; 2]);
    let ids = [1, 2].map(|n| format!("<{n}@t.example>"));
    have_plain_names(&world, &memory, &ids, "all are taken").await;
    let made = files(&memory, Path::new(DIR));
    assert_eq!(made.len(), 3 + 8, "what was there is removed");
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// When nobody has the number of an article any more its file gets it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_gives_plain_names_back() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), files_config("tradspool", |_| {}));
    assert_eq!(feed(&world, 0, 6).await, [Outcome::Accepted; 6]);
    let name =
        |number: usize, later: &str| PathBuf::from(format!("{DIR}/misc/test/{number}{later}"));
    for number in 2..5 {
        memory
            .rename(&name(number, ""), &name(number, "+"))
            .unwrap();
    }
    // A copy, as a power cut leaves it; and a file of somebody's.
    memory.link(&name(3, "+"), &name(3, "")).unwrap();
    let file = memory.open(&name(4, ""), OpenMode::CreateNew).unwrap();
    file.write_at(b"Subject: somebody's\n\nx\n", 0).unwrap();
    let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    assert!(report.damaged.is_empty(), "{report:?}");
    for number in 1..7 {
        let is_plain = number != 4;
        let text = read_whole(
            &memory,
            &name(number, if is_plain { "" } else { "+" }),
            1 << 20,
        );
        let text = String::from_utf8(text.unwrap()).unwrap();
        assert!(
            text.contains(&format!("<{}@t.example>", number - 1)),
            "{text}"
        );
        assert!(!is_plain || !memory.exists(&name(number, "+")).unwrap());
    }
    assert_eq!(alive(&world, 6).await.len(), 6);
}

/// A scrub without a server said of articles whose cards were damaged that nothing is left of them, and nothing of files without cards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_without_a_server_says_what_one_beside_it_mends() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), files_config("tradspool", |_| {}));
    assert_eq!(feed(&world, 0, 6).await, [Outcome::Accepted; 6]);
    world.seal();
    world.engine.shutdown().unwrap();
    let catalogue = PathBuf::from(format!("{DIR}/.catalogue/00000001.seg"));
    let file = memory.open(&catalogue, OpenMode::ReadWrite).unwrap();
    file.write_at(&[0xa5; 8192], 8192).unwrap();
    let stray = PathBuf::from(format!("{DIR}/misc/test/77"));
    let text = b"Subject: x\nMessage-ID: <stray@t.example>\n\nx\n";
    let file = memory.open(&stray, OpenMode::CreateNew).unwrap();
    file.write_at(text, 0).unwrap();
    let clock = Arc::clone(&world.clock) as Arc<dyn newsreel_host::Clock>;
    let looking = newsreel_engine::Engine::open_read_only(
        world.config.clone(),
        Arc::clone(&world.disk),
        clock,
    );
    let report = looking.unwrap().scrub(&[], 0, &mut |_, _| true).unwrap();
    let said = report.headers.join("\n");
    assert!(
        said.contains("files of articles whose cards are lost: 6; "),
        "{report:?}"
    );
    assert!(
        said.contains("no card leads: 1, first /spool/articles/main/misc/test/77; "),
        "{said}"
    );
    assert!(memory.exists(&stray).unwrap());
    assert!(!report.damaged.is_empty());
    for damage in &report.damaged {
        assert!(
            damage
                .means
                .contains("the scrub of a running server makes the record again"),
            "{damage:?}"
        );
    }
    // As it does.
    let world = world.restart();
    let report = world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    assert!(report.damaged.is_empty(), "{report:?}");
    assert_eq!(alive(&world, 6).await.len(), 6);
}
