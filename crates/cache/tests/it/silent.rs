//! A server that lets connections in and then says nothing, and many who ask the same at the same time.

use std::time::Duration;

use newsreel_service::{ArticleBuf, ArticleQuery, NewsService as _, OverviewRows, Part};
use newsreel_wire::{ArticleNumber, GroupName, MessageId};
use tokio::time::Instant;

use crate::cached::{REFRESH_S, Rig, rig, whole_list};
use crate::toy::article;

const SECOND: Duration = Duration::from_secs(1);

/// So long somebody waits for an answer in whose place something may be told.
const PATIENCE: Duration = Duration::from_secs(10);

/// Everything that is kept of the group, as one reader asks for it.
async fn all_that_is_kept(rig: &Rig, count: u64) {
    let info = rig.group().await.unwrap();
    assert_eq!(info.high, ArticleNumber(count));
    assert_eq!(rig.numbers().await.len() as u64, count);
    assert_eq!(rig.overview().await.len() as u64, count);
    assert_eq!(rig.read(7).await, Ok(true));
    let list = whole_list(&rig.here).await.unwrap();
    assert!(list.starts_with(b"misc.test "));
}

/// Each waited a minute for each of his questions, one behind the other.
#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_hides_nothing_that_is_kept() {
    const COUNT: u64 = 1115;
    let rig = rig(COUNT, REFRESH_S);
    for number in 1..=9 {
        assert_eq!(rig.read(number).await, Ok(true));
    }
    all_that_is_kept(&rig, COUNT).await;
    for turn in 0..2 {
        rig.later(REFRESH_S);
        tokio::time::sleep(65 * SECOND).await;
        rig.to.0.lock().hangs = true;
        rig.to.asked();
        let begun = Instant::now();
        let reader = || all_that_is_kept(&rig, COUNT);
        tokio::join!(reader(), reader(), reader(), reader(), reader());
        let waited = begun.elapsed();
        assert!(waited <= 2 * PATIENCE, "{turn}: {waited:?}");
        let asked = rig.to.asked();
        assert!(asked.len() < 10, "{turn}: {asked:?}");
        // It is left alone for a while now.
        let begun = Instant::now();
        tokio::join!(reader(), reader());
        assert!(begun.elapsed() < SECOND, "{turn}: {:?}", begun.elapsed());
        // What is not kept is not there for anybody, and nobody waits for that either.
        assert!(rig.read(99).await.is_err());
        assert!(begun.elapsed() < SECOND, "{turn}: {:?}", begun.elapsed());
        // It is back, and is asked again.
        rig.to.0.lock().hangs = false;
        tokio::time::sleep(120 * SECOND).await;
        assert_eq!(rig.read(90 + turn).await, Ok(true));
        let (begun, _) = (Instant::now(), rig.group().await.unwrap());
        assert!(begun.elapsed() < SECOND);
    }
}

/// They asked one behind the other, and each waited for what the one before had been refused.
#[tokio::test(start_paused = true)]
async fn who_waits_takes_the_failure_of_who_asked_before() {
    for refresh_s in [0, REFRESH_S] {
        let rig = rig(9, refresh_s);
        rig.to.0.lock().hangs = true;
        let name = GroupName::parse(b"misc.test").unwrap();
        let begun = Instant::now();
        let reader = || async { assert!(rig.here.group(name).await.is_err()) };
        tokio::join!(reader(), reader(), reader(), reader(), reader());
        // Nothing is kept that could be told in its place.
        assert_eq!(begun.elapsed(), 60 * SECOND);
        assert_eq!(rig.to.asked().len(), 2, "GROUP, and its line of the list");
    }
}

/// Twenty readers had the server asked twenty times, where nothing may be told that is older than the question.
#[tokio::test(start_paused = true)]
async fn a_question_that_begins_later_is_the_question_of_all_who_wait() {
    let rig = rig(300, 0);
    assert_eq!(rig.overview().await.len(), 300);
    let id = rig.group().await.unwrap().id;
    rig.to.0.lock().round_trip = Duration::from_millis(20);
    rig.to.asked();
    let count = |said: &[String], what: &str| {
        let all = said.iter().filter(|it| it.starts_with(what));
        all.count()
    };
    let readers = || async {
        let mut all = Vec::new();
        for _ in 0..20 {
            all.push(rig.group());
        }
        let mut highs = Vec::new();
        for info in crate::together(all).await {
            highs.push(info.unwrap().high.0);
        }
        highs
    };
    assert_eq!(readers().await, [300; 20]);
    assert_eq!(count(&rig.to.asked(), "GROUP "), 2);
    // None is told what was before he came.
    let new = article(301, 500);
    rig.to.0.lock().articles.insert(301, new);
    assert_eq!(readers().await, [301; 20]);
    assert_eq!(count(&rig.to.asked(), "GROUP "), 2);
    let reader = || async {
        let mut rows = OverviewRows::default();
        let (low, high) = (ArticleNumber(1), ArticleNumber(50));
        let asking = rig.here.overview(id, low, high, 1 << 20, &mut rows);
        assert_eq!(asking.await, Ok(None));
        rows.text().split(|octet| *octet == b'\n').count() - 1
    };
    let lines = crate::together((0..20).map(|_| reader()).collect()).await;
    assert_eq!(lines, [50; 20]);
    let asked = rig.to.asked();
    let (groups, lists) = (count(&asked, "GROUP "), count(&asked, "LISTGROUP "));
    assert!(lists <= 3 && groups <= 3 + lists, "{asked:?}");
}

/// The cache showed it, and said that it was not there.
#[tokio::test]
async fn what_overview_shows_is_there_though_it_was_not() {
    let rig = rig(3, 0);
    assert_eq!(rig.read_by_id("<4@t.example>", Part::Whole).await, None);
    let wire = article(4, 500);
    rig.to.0.lock().articles.insert(4, wire.clone());
    assert_eq!(rig.read_by_id("<4@t.example>", Part::Whole).await, None);
    assert_eq!(rig.overview().await, [1, 2, 3, 4]);
    let found = rig.read_by_id("<4@t.example>", Part::Whole).await;
    assert_eq!(found, Some(wire.into_bytes()));
}

/// It was cut at the size of what is kept, whenever somebody asked for it.
#[tokio::test]
async fn what_is_too_large_to_be_kept_is_passed_on() {
    let rig = rig(3, REFRESH_S);
    let (large, huge) = (article(4, 2 << 20), article(5, 5 << 20));
    {
        let mut toy = rig.to.0.lock();
        toy.articles.insert(4, large.clone());
        toy.articles.insert(5, huge);
    }
    let id = rig.group().await.unwrap().id;
    for turn in 0..2 {
        rig.to.asked();
        let mut out = ArticleBuf::new();
        let query = ArticleQuery::ByNumber(id, ArticleNumber(4));
        let found = rig.here.article(query, Part::Whole, &mut out).await;
        assert!(found.unwrap().is_some() && out.content() == large.as_bytes());
        let found = rig.read_by_id("<4@t.example>", Part::Whole).await;
        assert!(found.is_some_and(|found| found == large.as_bytes()));
        let asked = rig.to.asked();
        let articles = asked.iter().filter(|it| it.starts_with("ARTICLE"));
        assert_eq!(articles.count(), 2, "{turn}: {asked:?}");
    }
    rig.here.stop().await;
    assert_eq!(rig.here.kept_figures().articles, 0);
    let mut out = ArticleBuf::new();
    let query = ArticleQuery::ById(MessageId::parse(b"<5@t.example>").unwrap());
    assert!(
        rig.here
            .article(query, Part::Whole, &mut out)
            .await
            .is_err()
    );
}
