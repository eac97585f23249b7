//! An article that is withdrawn is gone at once, from everything that shows articles, and stays gone.

use std::future::Future as _;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use newsreel_engine::{ArticleRef, BufferReport, EngineConfig, GroupSpec, Reason, Withdrawal};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Disk, FakeClock, MemoryDisk, Op, read_whole};
use newsreel_service::{ArticleBuf, Direction, NewsService as _, Outcome, OverviewRows, Part};
use newsreel_wire::{ArticleNumber, GroupId};

use crate::damage::newnews;
use crate::world::{NOW, World, article, config, open_on};

const COUNT: usize = 60;

fn id(n: usize) -> ArticleRef {
    ArticleRef::Id(format!("<{n}@t.example>"))
}

async fn filled(memory: &MemoryDisk) -> World {
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    let sent: Vec<_> = (1..=COUNT)
        .map(|n| article(n, "misc.test,misc.other"))
        .collect();
    assert_eq!(world.send(&sent).await, vec![Outcome::Accepted; COUNT]);
    world
}

/// Article `n`, which has the number `n` in both groups, is here or gone, whoever asks.
async fn assert_there(world: &World, n: usize, is_there: bool, what: &str) {
    assert_eq!(
        world.by_id(&format!("<{n}@t.example>")).await.is_some(),
        is_there,
        "{what}: {n}"
    );
    for name in ["misc.test", "misc.other"] {
        let query = world.numbered(name, n as u64).await;
        let text = world.read(query, Part::Whole).await;
        assert_eq!(text.is_some(), is_there, "{what}: {name}:{n}");
        let prefix = format!("{n}\t");
        let lines = world.lines(name).await;
        let has_line = lines.iter().any(|line| line.starts_with(&prefix));
        assert_eq!(has_line, is_there, "{what}: {name}:{n}");
    }
}

async fn assert_all(world: &World, gone: &[usize], what: &str) {
    for n in 1..=COUNT {
        assert_there(world, n, !gone.contains(&n), what).await;
    }
    let low = (1..=COUNT).find(|n| !gone.contains(n)).unwrap() as u64;
    for name in ["misc.test", "misc.other"] {
        let group = world.engine.group(name).unwrap();
        assert_eq!(group.count, (COUNT - gone.len()) as u64, "{what}");
        assert_eq!((group.low, group.high), (low, COUNT as u64), "{what}");
        assert_eq!(
            newnews(world, name).await.unwrap(),
            COUNT - gone.len(),
            "{what}"
        );
    }
    assert_eq!(world.problems(), [""; 0], "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_withdrawn_article_is_gone_for_everybody_and_stays_so() {
    let memory = MemoryDisk::new();
    let world = filled(&memory).await;
    let mut gone = vec![1, 2, 30];
    let which = [
        id(1),
        ArticleRef::Number("misc.other".to_owned(), 2),
        id(30),
        id(30_000),
    ];
    let outcomes = world.engine.withdraw(&which, Reason::Cancelled).unwrap();
    let (done, not_here) = (Withdrawal::Done, Withdrawal::NotHere);
    assert_eq!(
        outcomes,
        [done.clone(), done.clone(), done.clone(), not_here.clone()]
    );
    assert_all(&world, &gone, "at once").await;
    // Its id stays known.
    let again = world.send(&[article(30, "misc.test")]).await;
    assert_eq!(again, [Outcome::Duplicate]);
    let outcomes = world
        .engine
        .withdraw(&which[..1], Reason::Cancelled)
        .unwrap();
    assert_eq!(outcomes, [not_here]);
    // From the log alone, as a crash leaves it.
    let crashed = Arc::new(memory.crash_losing_all());
    let after = open_on(crashed, &world.config, &world.clock);
    assert_all(&after, &gone, "after a crash").await;
    drop(after);
    world.seal();
    assert_all(&world, &gone, "sealed").await;
    let outcomes = world
        .engine
        .withdraw(&[id(40), id(60)], Reason::Cancelled)
        .unwrap();
    assert_eq!(outcomes, [done.clone(), done]);
    gone.extend([40, 60]);
    assert_all(&world, &gone, "sealed before").await;
    let world = world.restart();
    assert_all(&world, &gone, "after a restart").await;
}

/// What is made again from the store must not bring it back, whichever view is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuild_brings_no_withdrawn_article_back() {
    for lost in ["overview", "history"] {
        let memory = MemoryDisk::new();
        let world = filled(&memory).await;
        world.seal();
        let gone = [7, 50];
        world
            .engine
            .withdraw(&[id(7), id(50)], Reason::Cancelled)
            .unwrap();
        world.seal();
        let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
        world.engine.shutdown().unwrap();
        drop(world);
        let index = Path::new("/spool/index");
        // The first file has the articles; a history file has a twin, which goes too.
        let files = memory.list(index).unwrap();
        let first = files
            .iter()
            .find(|file| file.name.starts_with(lost))
            .unwrap();
        let (stem, _) = first.name.split_once('.').unwrap();
        for file in files.iter().filter(|file| file.name.starts_with(stem)) {
            memory.remove(&index.join(&file.name)).unwrap();
        }
        let world = open_on(Arc::new(memory), &config, &clock);
        world.wait_until("the rebuild", |world| {
            world.engine.status().damaged.is_empty()
        });
        assert_all(&world, &gone, lost).await;
    }
}

/// Many at once are one commit after the other, in whatever order they are named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_are_withdrawn_at_once() {
    let world = World::new(config(16 << 20));
    let count = 5000;
    let sent: Vec<_> = (1..=count).map(|n| article(n, "misc.test")).collect();
    world.send(&sent).await;
    let which: Vec<_> = (1..=count).rev().filter(|n| n % 10 != 0).map(id).collect();
    let outcomes = world.engine.withdraw(&which, Reason::Cancelled).unwrap();
    assert!(outcomes.iter().all(|outcome| *outcome == Withdrawal::Done));
    assert_eq!(world.lines("misc.test").await.len(), count / 10);
    assert_eq!(
        world.engine.group("misc.test").unwrap().count,
        (count / 10) as u64
    );
    assert_eq!(newnews(&world, "misc.test").await.unwrap(), count / 10);
    assert_eq!(world.problems(), [""; 0]);
}

/// What lies in the buffers or segments.
fn buffers(disk: &MemoryDisk, method: &str) -> Vec<u8> {
    let dir = match method {
        "cnfs" => Path::new("/spool/buffers"),
        _ => Path::new("/spool/segments/main"),
    };
    let mut all = Vec::new();
    for file in disk.list(dir).unwrap_or_default() {
        all.extend(read_whole(disk, &dir.join(file.name), 8 << 20).unwrap());
    }
    all
}

fn has(octets: &[u8], n: usize) -> bool {
    let body = format!("Body of {n}\r\n");
    let mut places = octets.windows(body.len());
    places.any(|octets| octets == body.as_bytes())
}

/// Where the set wants that, the text is gone from the disk, too, and nothing of its neighbours is; also when the server
/// is killed between the two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_text_is_overwritten_where_that_is_wanted() {
    let cases = ["cnfs", "segment"].map(|method| [(method, false), (method, true)]);
    for (method, erases) in cases.into_iter().flatten() {
        let memory = MemoryDisk::new();
        let world = World::on(Arc::new(memory.clone()), config_of(method, erases));
        let sent: Vec<_> = (1..=COUNT)
            .map(|n| article(n, "misc.test,misc.other"))
            .collect();
        world.send(&sent).await;
        let gone = [1, 7, 8, 60];
        let token = world.engine.article(&id(7)).unwrap().unwrap().token;
        let which = gone.map(id);
        world.engine.withdraw(&which, Reason::Cancelled).unwrap();
        let crashed = memory.crash_losing_all();
        let is_done = |disk: &MemoryDisk| {
            let octets = buffers(disk, method);
            let left = (1..=COUNT).filter(|n| has(&octets, *n)).count();
            left == if erases { COUNT - gone.len() } else { COUNT }
        };
        world.wait_until("the text to be gone", |_| is_done(&memory));
        assert_all(&world, &gone, "erased").await;
        if erases {
            // The newest are in memory, whatever the disk has.
            let world = world.restart();
            assert_eq!(
                world.engine.article(&ArticleRef::Token(token)).unwrap(),
                None
            );
            assert_all(&world, &gone, "restarted").await;
        }
        let after = open_on(
            Arc::new(crashed.clone()),
            &config_of(method, erases),
            &Arc::new(FakeClock::new(NOW)),
        );
        after.wait_until("the text to be gone", |_| is_done(&crashed));
        assert_all(&after, &gone, "after a crash").await;
        after.seal();
        assert_all(&after, &gone, "sealed").await;
    }
}

fn config_of(method: &str, erases: bool) -> EngineConfig {
    let mut config = config(4 << 20);
    let set = &mut config.store.sets[0];
    set.erase_withdrawn = erases;
    if method == "segment" {
        (set.method, set.segment_octets) = (method.to_owned(), 1 << 20);
        set.buffers.clear();
        config.store.buffers.clear();
    }
    config
}

/// The cancel state is looked at again when an article was copied: who waits for a slow disk meanwhile is not served what
/// is gone by then.
#[test]
fn what_is_withdrawn_while_it_is_copied_is_not_served() {
    // The one thread that may wait for a disk is held up as long as somebody is to wait.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(withdraw_while_it_is_copied());
}

async fn withdraw_while_it_is_copied() {
    let memory = MemoryDisk::new();
    let warm = filled(&memory).await;
    let (config, clock) = (warm.config.clone(), Arc::clone(&warm.clock));
    warm.engine.shutdown().unwrap();
    drop(warm);
    let faulty = FaultyDisk::new(Arc::new(memory));
    let world = open_on(Arc::new(faulty.clone()), &config, &clock);
    faulty.add(Fault::new(Op::Read, "/buffers/", Effect::Cold).forever());
    let mut waited = 0;
    for n in 1..=COUNT / 2 {
        let query = world.numbered("misc.test", n as u64).await;
        let text = format!("<{n}@t.example>");
        let (by_number, by_id) = (world.read(query, Part::Whole), world.by_id(&text));
        let (mut by_number, mut by_id) = (pin!(by_number), pin!(by_id));
        let mut nobody = Context::from_waker(Waker::noop());
        let (go_on, held_up) = std::sync::mpsc::sync_channel::<()>(0);
        let held_up = tokio::task::spawn_blocking(move || held_up.recv().is_err());
        let is_there = by_number.as_mut().poll(&mut nobody).is_ready()
            || by_id.as_mut().poll(&mut nobody).is_ready();
        let which = if waited == 0 { n } else { n + COUNT / 2 };
        if !is_there {
            waited += 1;
            let outcomes = world.engine.withdraw(&[id(which)], Reason::Cancelled);
            assert_eq!(outcomes.unwrap(), [Withdrawal::Done], "{which}");
        }
        drop(go_on);
        assert!(held_up.await.unwrap());
        if is_there {
            continue;
        }
        // One that was withdrawn beside it does no harm.
        assert_eq!(by_number.await.is_some(), n != which, "{n}");
        assert_eq!(by_id.await.is_some(), n != which, "{n}");
        if waited > 1 {
            return;
        }
    }
    panic!("nobody had to wait");
}

/// An article that is also filed in a group which is not there any more, and the session that still has that selected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_group_shows_nothing_and_is_no_reason_for_complaints() {
    let memory = MemoryDisk::new();
    let world = filled(&memory).await;
    let former = GroupId(world.engine.group("misc.test").unwrap().id);
    let selected = world.numbered("misc.test", 1).await;
    let (first, last) = (ArticleNumber(1), ArticleNumber(u64::MAX));
    world.engine.remove_group("misc.test").unwrap();
    let cancelled = world.engine.withdraw(&[id(1)], Reason::Cancelled).unwrap();
    assert_eq!(cancelled, [Withdrawal::Done]);
    let again = || vec![GroupSpec::new("misc.test")];
    for made in [false, true] {
        if made {
            world.engine.add_groups(again()).unwrap();
        }
        assert_eq!(world.problems(), Vec::<String>::new(), "made again: {made}");
        assert_eq!(world.read(selected, Part::Stat).await, None);
        let (mut rows, mut numbers) = (OverviewRows::default(), Vec::new());
        let (service, mut out) = (&world.service, ArticleBuf::new());
        let listed = service.overview(former, first, last, 4096, &mut rows);
        assert_eq!((listed.await.unwrap(), rows.text()), (None, &b""[..]));
        let listed = service.numbers(former, first, last, 100, &mut numbers);
        assert_eq!((listed.await.unwrap(), numbers.len()), (None, 0));
        let next = service.neighbour(former, first, Direction::Next, &mut out);
        assert_eq!(next.await.unwrap(), None);
    }
    let world = world.restart();
    assert_eq!(world.problems(), Vec::<String>::new());
    assert!(world.by_id("<2@t.example>").await.is_some());
}

/// Somebody removed the segment in which it lay before its text was overwritten: the set goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_overwritten_any_more_stops_nothing() {
    let memory = MemoryDisk::new();
    let config = config_of("segment", true);
    let world = World::on(Arc::new(memory.clone()), config);
    let large = |n: usize| {
        let (id, text) = article(n, "misc.test");
        let text = String::from_utf8(text).unwrap();
        let body = format!("\r\n\r\n{}", format!("{}\r\n", "x".repeat(70)).repeat(6000));
        (id, text.replacen("\r\n\r\n", &body, 1).into_bytes())
    };
    for n in 1..=8 {
        assert_eq!(world.send(&[large(n)]).await, [Outcome::Accepted]);
    }
    let which = world.engine.article(&id(3)).unwrap().unwrap();
    let cycle = which.token.split(':').next_back().unwrap();
    let cycle = u32::from_str_radix(cycle, 16).unwrap();
    world.engine.withdraw(&[id(3)], Reason::Cancelled).unwrap();
    // The log tells of it, so it is overwritten at the next start.
    let crashed = memory.crash_losing_all();
    let file = format!("/spool/segments/main/{cycle:08}.seg");
    crashed.remove(Path::new(&file)).unwrap();
    let world = open_on(Arc::new(crashed), &world.config, &world.clock);
    assert_eq!(world.send(&[large(9)]).await, [Outcome::Accepted]);
    assert!(world.by_id("<8@t.example>").await.is_some());
    let buffers = world.engine.status().buffers;
    let missing = format!("there is no {cycle:08}.seg");
    let is_usable = |state: &str| state == "ok" || state.contains(&missing);
    assert!(buffers.iter().all(|it| is_usable(&it.state)), "{buffers:?}");
}

/// Behind a crash nothing made a checkpoint until something came, so that what was withdrawn before stayed out of the bitmaps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_replayed_waits_for_a_checkpoint_as_what_is_written_does() {
    let memory = MemoryDisk::new();
    let world = filled(&memory).await;
    world.seal();
    let sealed = world.engine.status().checkpoint;
    world.engine.withdraw(&[id(7)], Reason::Cancelled).unwrap();
    let world = open_on(
        Arc::new(memory.crash_losing_all()),
        &world.config,
        &world.clock,
    );
    assert_eq!(world.engine.status().checkpoint, sealed);
    world.wait_s(world.config.sequencer.checkpoint_s_max + 1);
    world.wait_until("a checkpoint", |world| {
        world.engine.status().checkpoint > sealed
    });
    // Behind a clean stop there is nothing to seal.
    let world = world.restart();
    for _ in 0..3 {
        world.wait_s(world.config.sequencer.checkpoint_s_max + 1);
        let again = world.send(&[article(7, "misc.test")]).await;
        assert_eq!(again, [Outcome::Duplicate]);
    }
    assert_eq!(world.engine.status().counters.checkpoints, 0);
}

/// Where everything was withdrawn the store was told to be as full as before, and to have an oldest article.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_store_in_which_nothing_is_alive_no_oldest_is_told() {
    let memory = MemoryDisk::new();
    let world = filled(&memory).await;
    let told = |world: &World| {
        let buffers = world.engine.inspect_store().unwrap();
        let told = |it: &BufferReport| (it.oldest.is_some(), it.live_octets > Some(0));
        buffers.iter().map(told).collect::<Vec<_>>()
    };
    let all: Vec<_> = (1..=COUNT).map(id).collect();
    world.engine.withdraw(&all[1..], Reason::Cancelled).unwrap();
    assert!(told(&world).contains(&(true, true)));
    world.engine.withdraw(&all, Reason::Cancelled).unwrap();
    world.seal();
    assert_eq!(told(&world), [(false, false); 2]);
}
