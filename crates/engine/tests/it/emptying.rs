//! Retired buffers in which no article is alive though nothing was overwritten.

use std::ops::Range;

use newsreel_engine::{ArticleRef, Reason, Withdrawal};
use newsreel_service::Outcome;

use crate::attaching::{ARTICLES, ROOM, filled, source};
use crate::world::{World, article, config};

/// What the store says of a buffer, in a word.
fn state(world: &World, name: &str) -> String {
    let reports = world.engine.inspect_store().unwrap();
    let report = reports.iter().find(|it| it.status.name == name).unwrap();
    let word = report.status.state.split(':').next().unwrap();
    word.to_owned()
}

/// The buffer of an article; none: it is not here.
fn buffer_of(world: &World, n: usize) -> Option<String> {
    let found = world.engine.article(&id(n)).unwrap()?;
    let (buffer, _) = found.token.split_once(':').unwrap();
    Some(buffer.to_owned())
}

fn id(n: usize) -> ArticleRef {
    ArticleRef::Id(format!("<{n}@t.example>"))
}

async fn send(world: &World, articles: Range<usize>) {
    for from in articles.clone().step_by(100) {
        let some: Vec<_> = (from..articles.end.min(from + 100)).map(filled).collect();
        let outcomes = world.send(&some).await;
        assert!(outcomes.iter().all(|it| *it == Outcome::Accepted));
    }
    world.seal();
}

fn withdraw(world: &World, articles: &[usize]) {
    for some in articles.chunks(100) {
        let ids: Vec<ArticleRef> = some.iter().map(|n| id(*n)).collect();
        let outcomes = world.engine.withdraw(&ids, Reason::Cancelled).unwrap();
        assert!(outcomes.iter().all(|it| *it == Withdrawal::Done));
    }
}

/// It stayed retired until the other had come around.
#[tokio::test]
async fn a_retired_buffer_that_was_never_used_drains_at_once() {
    let world = World::new(config(ROOM));
    assert!(world.engine.retire_buffer("C1", true).unwrap());
    world.seal();
    world.wait_until("drained", |world| state(world, "C1") == "drained");
    let mut world = world.restart();
    for round in 0..2 {
        assert_eq!(
            state(&world, "C1"),
            if round == 0 { "drained" } else { "ok" }
        );
        let all: Vec<usize> = (round * 800..(round + 1) * 800).collect();
        send(&world, round * 800..(round + 1) * 800).await;
        let buffers: Vec<_> = all.iter().map(|n| buffer_of(&world, *n)).collect();
        assert!(buffers.iter().all(Option::is_some), "{round}");
        let has_some = buffers.contains(&Some("C1".to_owned()));
        assert_eq!(has_some, round == 1);
        assert_eq!(world.problems(), Vec::<String>::new());
        if round == 0 {
            assert!(world.engine.retire_buffer("C1", false).unwrap());
        }
        world = world.restart();
    }
}

/// All of it was cancelled, and it stayed retired.  One article that is alive keeps it, also one that is filed in no group.
#[tokio::test]
async fn a_retired_buffer_of_which_all_was_withdrawn_drains_with_the_last() {
    let (world, _) = source(false).await;
    let last = ARTICLES;
    let (name, text) = article(last, "misc.test");
    let text = String::from_utf8(text).unwrap();
    let text = text.replacen("Subject: ", "Control: cancel <x@t.example>\r\nSubject: ", 1);
    let sent = world.send(&[(name, text.into_bytes())]).await;
    assert_eq!(sent, [Outcome::Accepted]);
    let buffer = buffer_of(&world, last).unwrap();
    let (gone, others): (Vec<usize>, Vec<usize>) =
        (0..ARTICLES).partition(|n| buffer_of(&world, *n).as_ref() == Some(&buffer));
    assert!(gone.len() > 100 && others.len() > 100, "{}", gone.len());

    assert!(world.engine.retire_buffer(&buffer, true).unwrap());
    world.seal();
    withdraw(&world, &gone[1..]);
    world.seal();
    withdraw(&world, &gone[..1]);
    let mut world = world;
    for _ in 0..2 {
        // What a checkpoint finds comes with a commit behind it.
        world.seal();
        world.seal();
        assert_eq!(state(&world, &buffer), "retired");
        assert!(buffer_of(&world, last).is_some());
        world = world.restart();
    }
    withdraw(&world, &[last]);
    world.seal();
    world.wait_until("drained", |world| state(world, &buffer) == "drained");
    for _ in 0..2 {
        assert_eq!(state(&world, &buffer), "drained");
        assert!(others.iter().all(|n| buffer_of(&world, *n).is_some()));
        assert_eq!(world.problems(), Vec::<String>::new());
        world = world.restart();
    }
}

/// What was owed while there was nothing left fell due when it was retired the next time: 725 of 1,500 articles went at once.
#[tokio::test]
async fn a_buffer_that_is_retired_again_owes_nothing_of_the_time_before() {
    let world = World::new(config(ROOM));
    assert!(world.engine.retire_buffer("C1", true).unwrap());
    world.seal();
    world.wait_until("drained", |world| state(world, "C1") == "drained");
    send(&world, 0..800).await;
    assert!(world.engine.retire_buffer("C1", false).unwrap());
    send(&world, 800..1600).await;
    let is_there = |n: &usize| buffer_of(&world, *n).as_deref() == Some("C1");
    let there: Vec<usize> = (800..1600).filter(is_there).collect();
    assert!(there.len() > 100, "{}", there.len());
    assert!(world.engine.retire_buffer("C1", true).unwrap());
    send(&world, 1600..1620).await;
    world.seal();
    let gone = there.iter().filter(|n| !is_there(n)).count();
    assert_eq!(gone, 0, "of {}", there.len());
}

/// All room in front of it was free, and was owed as soon as the other had overwritten as much as had come since: articles went while
/// those that came beside them had most of a round before them.
#[tokio::test]
async fn what_is_retired_again_goes_no_sooner_than_what_came_beside_it() {
    let mut world = World::new(config(ROOM));
    assert!(world.engine.retire_buffer("C1", true).unwrap());
    world.seal();
    world.wait_until("drained", |world| state(world, "C1") == "drained");
    assert!(world.engine.retire_buffer("C1", false).unwrap());
    send(&world, 0..2400).await;
    let is_in = |world: &World, n: usize, name: &str| buffer_of(world, n).as_deref() == Some(name);
    let these = |world: &World, name: &str| -> Vec<usize> {
        (0..2400).filter(|n| is_in(world, *n, name)).collect()
    };
    let (retired, beside) = (these(&world, "C1"), these(&world, "C0"));
    assert!(retired.len() > 100 && beside.len() > 100);
    assert!(world.engine.retire_buffer("C1", true).unwrap());
    let mut has_gone_slowly = false;
    for step in 24..200 {
        send(&world, step * 100..(step + 1) * 100).await;
        if step == 40 {
            world = world.restart();
        }
        let left =
            |all: &[usize], name: &str| all.iter().filter(|n| is_in(&world, **n, name)).count();
        let (of_retired, of_beside) = (left(&retired, "C1"), left(&beside, "C0"));
        assert!(
            of_retired == retired.len() || of_beside < beside.len(),
            "step {step}: {of_retired} of {}, beside {of_beside}",
            retired.len()
        );
        has_gone_slowly |= (1..retired.len()).contains(&of_retired);
        if of_beside == 0 && of_retired == 0 {
            assert!(has_gone_slowly);
            world.seal();
            return world.wait_until("drained", |world| state(world, "C1") == "drained");
        }
    }
    panic!("it does not drain");
}
