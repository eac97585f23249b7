//! Articles that are let go while readers are given them.

use std::sync::Arc;
use std::time::Duration;

use newsreel_service::{ArticleBuf, ArticleQuery, NewsService as _, Part};
use newsreel_wire::MessageId;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cached::{REFRESH_S, rig};

/// What had just been read, and was not written yet, was not found by who let it go, and came back.
#[tokio::test]
async fn what_was_just_read_is_let_go() {
    let rig = rig(40, REFRESH_S);
    let ids = |number: u64| format!("<{number}@t.example>");
    for _ in 0..5 {
        for number in 1..=4 {
            assert!(rig.read(number).await.unwrap());
        }
        assert!(rig.read_by_id(&ids(9), Part::Whole).await.is_some());
        for number in [1, 2, 3, 4, 9] {
            let id = ids(number);
            let id = MessageId::parse(id.as_bytes()).unwrap();
            let dropped = rig.here.let_go(&|_| false, &[id], false).await.unwrap();
            assert_eq!(dropped.articles, 1, "{number}");
        }
        assert!(rig.read_by_id(&ids(20), Part::Whole).await.is_some());
        let misc = |name: &str| name == "misc.test";
        assert!(rig.here.let_go(&misc, &[], false).await.unwrap().articles >= 1);
        rig.here.stop().await;
        assert_eq!(rig.here.kept_figures().articles, 0);
    }
}

/// Who let an article go that did not end waited as long as its server did.
#[tokio::test(start_paused = true)]
async fn an_article_whose_end_does_not_come_is_let_go_all_the_same() {
    let rig = rig(3, REFRESH_S);
    let goes_on = Arc::new(Notify::new());
    let id = MessageId::parse(b"<2@t.example>").unwrap();
    rig.to.0.lock().holds = Some(("ARTICLE <2@t.example>", 300, Arc::clone(&goes_on)));
    let mut out = ArticleBuf::new();
    out.take_portions(true);
    let asking = rig
        .here
        .article(ArticleQuery::ById(id), Part::Whole, &mut out);
    assert!(asking.await.unwrap().is_some());
    let rest = Arc::clone(out.coming().unwrap());
    for names_group in [true, false] {
        let begun = Instant::now();
        let misc = |name: &str| names_group && name == "misc.test";
        let ids = [id];
        let ids = if names_group { &[] } else { &ids[..] };
        let waiting = rig.here.let_go(&misc, ids, false);
        let minute = Duration::from_secs(60);
        assert!(tokio::time::timeout(minute, waiting).await.is_ok());
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
    // Who reads it is given all of it, and it is not kept behind the back of who let it go.
    goes_on.notify_one();
    rest.whole().await.unwrap();
    assert_eq!(rest.seen(<[u8]>::len), rig.wire(2).len());
    rig.here.stop().await;
    assert_eq!(rig.here.kept_figures().articles, 0);
    // It is fetched again, and kept then.
    assert!(rig.read_by_id("<2@t.example>", Part::Whole).await.is_some());
    rig.here.stop().await;
    assert_eq!(rig.here.kept_figures().articles, 1);
}

/// Who only asked what would go waited for an article that was still coming, and that was never kept then.
#[tokio::test(start_paused = true)]
async fn what_would_go_is_told_at_once_and_stays() {
    let rig = rig(3, REFRESH_S);
    assert!(rig.read(1).await.unwrap());
    // What has just come is kept by another thread: who only asks does not wait for that.
    rig.here.stop().await;
    let goes_on = Arc::new(Notify::new());
    let id = MessageId::parse(b"<2@t.example>").unwrap();
    rig.to.0.lock().holds = Some(("ARTICLE <2@t.example>", 300, Arc::clone(&goes_on)));
    let mut out = ArticleBuf::new();
    out.take_portions(true);
    let query = ArticleQuery::ById(id);
    let asking = rig.here.article(query, Part::Whole, &mut out);
    assert!(asking.await.unwrap().is_some());
    let begun = Instant::now();
    let misc = |name: &str| name == "misc.test";
    assert_eq!(
        rig.here.let_go(&misc, &[id], true).await.unwrap().articles,
        1
    );
    assert!(begun.elapsed() < Duration::from_secs(1));
    goes_on.notify_one();
    out.coming().unwrap().whole().await.unwrap();
    rig.here.stop().await;
    assert_eq!(rig.here.kept_figures().articles, 2);
}
