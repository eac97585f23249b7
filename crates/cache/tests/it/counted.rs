//! What readers asked for, as it is counted and noted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use newsreel_cache::{ACCESS_LOG, AccessLog, Counted};
use newsreel_host::{Disk, read_whole};
use newsreel_service::{ArticleBuf, ArticleQuery, NewsService as _, Part};
use newsreel_wire::MessageId;
use tokio::sync::Notify;

use crate::cached::{REFRESH_S, Rig, keep_settings, rig};
use crate::toy::article;

/// Answers and octets of a database: hits, and what was fetched.
fn parts(rig: &Rig, what: &str) -> [(u64, u64); 2] {
    let counts: HashMap<&str, Counted> = rig.here.counts().into();
    let counted = counts[what];
    [counted.kept, counted.fetched].map(|part| (part.answers, part.octets))
}

/// R3: what is saved is the octets of all reads but the first.
#[tokio::test]
async fn what_is_saved_is_counted() {
    let rig = rig(3, REFRESH_S);
    for _ in 0..3 {
        // First, as the lines of articles that were read are kept a moment later, and then not asked for.
        assert_eq!(rig.overview().await.len(), 3);
        // Not one behind the other, so that none is fetched ahead.
        for number in [3, 2, 1] {
            assert!(rig.read(number).await.unwrap());
        }
        while rig.here.kept_figures().articles < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    assert!(!rig.read(4).await.unwrap());
    let octets: u64 = (1..=3).map(|number| rig.wire(number).len() as u64).sum();
    assert_eq!(parts(&rig, "articles"), [(6, 2 * octets), (3, octets)]);
    assert_eq!(parts(&rig, "groups"), [(12, 0), (1, 0)]);
    let [kept, fetched] = parts(&rig, "overview");
    assert_eq!((kept, fetched.0), ((2, 2 * fetched.1), 1));
    assert_eq!(rig.here.kept_figures().articles, 3);
}

/// The access log has a line for each request for an article or a part of it: what was kept, what was fetched, and what came for
/// somebody else.
#[tokio::test(start_paused = true)]
async fn what_is_asked_for_is_in_the_access_log() {
    let rig = rig(3, REFRESH_S);
    let disk: Arc<dyn Disk> = Arc::new(rig.disk.clone());
    let folder = keep_settings().directory;
    rig.here
        .note_access(AccessLog::new(&disk, &folder, 1 << 20));
    assert_eq!(rig.overview().await.len(), 3);
    rig.to.0.lock().round_trip = Duration::from_millis(20);
    let id = "<2@t.example>";
    let both = tokio::join!(
        rig.read_by_id(id, Part::Head),
        rig.read_by_id(id, Part::Body)
    );
    assert!(both.0.is_some() && both.1.is_some());
    rig.here.stop().await;
    rig.later(7);
    assert!(rig.read(2).await.unwrap());
    assert!(rig.read_by_id(id, Part::Stat).await.is_some());
    assert!(rig.read_by_id("<9@t.example>", Part::Whole).await.is_none());
    rig.here.stop().await;
    let log = read_whole(&rig.disk, &folder.join(ACCESS_LOG), 1 << 20).unwrap();
    let octets = rig.wire(2).len();
    let line = |at: u64, what: &str| {
        let at = 1_767_225_600 + at;
        format!("{at} {what} {octets} 1767225600 misc.test {id}\n")
    };
    let expected = [line(0, "miss"), line(0, "hit"), line(7, "hit")];
    assert_eq!(String::from_utf8(log).unwrap(), expected.concat());
}

/// Who asked again before the article was put away was told of as one more for whom it was fetched; so was whoever read what
/// had come ahead of him, or it was a hit for him, as it happened.
#[tokio::test]
async fn what_came_once_is_counted_as_fetched_once() {
    let rig = rig(100, REFRESH_S);
    for _ in 0..3 {
        for number in 1..=100 {
            assert!(rig.read(number).await.unwrap());
        }
    }
    let asked = rig.to.asked();
    let came = asked.iter().filter(|said| said.starts_with("ARTICLE"));
    assert_eq!(came.count(), 100);
    let octets: u64 = (1..=100).map(|it| rig.wire(it).len() as u64).sum();
    assert_eq!(parts(&rig, "articles"), [(200, 2 * octets), (100, octets)]);
    let [(_, group)] = &rig.here.counts_by_group(1)[..] else {
        panic!("there is one group");
    };
    assert_eq!((group.hits, group.saved_octets), (200, 2 * octets));
    assert_eq!((group.misses, group.fetched_octets), (100, octets));
}

/// All who read an article while it came were told of as those for whom it was fetched.
#[tokio::test(start_paused = true)]
async fn what_comes_for_one_is_a_hit_for_the_others() {
    let rig = rig(2, REFRESH_S);
    let goes_on = Arc::new(Notify::new());
    {
        let mut toy = rig.to.0.lock();
        toy.articles.insert(2, article(2, 100_000));
        toy.holds = Some(("ARTICLE <2@t.example>", 50_000, Arc::clone(&goes_on)));
    }
    let mut readers: Vec<ArticleBuf> = (0..8).map(|_| ArticleBuf::new()).collect();
    for (at, out) in readers.iter_mut().enumerate() {
        out.take_portions(true);
        let query = ArticleQuery::ById(MessageId::parse(b"<2@t.example>").unwrap());
        let part = if at == 3 { Part::Body } else { Part::Whole };
        rig.here.article(query, part, out).await.unwrap().unwrap();
        assert!(out.has_more());
    }
    goes_on.notify_one();
    let mut octets = Vec::new();
    for out in &mut readers {
        let mut all = out.content().len() as u64;
        while out.has_more() {
            out.more().await.unwrap();
            all += out.content().len() as u64;
        }
        octets.push(all);
    }
    let saved = octets[1..].iter().sum();
    assert_eq!(parts(&rig, "articles"), [(7, saved), (1, octets[0])]);
    assert_eq!(rig.to.asked(), ["ARTICLE <2@t.example>"]);
    let [(_, group)] = &rig.here.counts_by_group(1)[..] else {
        panic!("there is one group");
    };
    assert_eq!((group.hits, group.misses), (7, 1));
}
