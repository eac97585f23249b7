//! What is fetched before anybody asks for it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use newsreel_cache::keep::Keep;
use newsreel_cache::{PrefetchLimits, Prefetched};
use newsreel_host::{Disk, Effect, Fault, FaultyDisk, Op};
use newsreel_service::{ArticleBuf, ArticleQuery, NewsService as _, Part};
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupName, MessageId};
use tokio::time::Instant;

use crate::cached::{REFRESH_S, Rig, in_front, keep_settings, rig};
use crate::toy::article;

const ALL: PrefetchLimits = PrefetchLimits {
    articles: 1000,
    threads: 0,
    octets: 1 << 30,
    octets_per_s: 0,
    reads_kept: false,
};

async fn prefetch(rig: &Rig, groups: &str, limits: PrefetchLimits) -> Prefetched {
    let wildmat = Wildmat::parse(groups).unwrap();
    let mut goes_on = |_: &Prefetched| true;
    let fetching = rig.here.prefetch(&wildmat, limits, &mut goes_on);
    fetching.await.unwrap()
}

fn articles_asked(rig: &Rig) -> Vec<String> {
    let mut asked = rig.to.asked();
    asked.retain(|said| said.starts_with("ARTICLE"));
    asked
}

#[tokio::test(start_paused = true)]
async fn what_is_not_kept_is_fetched_in_few_round_trips_and_is_there() {
    let rig = rig(1000, REFRESH_S);
    rig.to.0.lock().articles.remove(&990);
    assert!(rig.read(1000).await.unwrap());
    while rig.here.kept_figures().articles < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    rig.to.asked();
    let round_trip = Duration::from_millis(20);
    rig.to.0.lock().round_trip = round_trip;
    let begun = Instant::now();
    let newest = PrefetchLimits {
        articles: 500,
        ..ALL
    };
    let done = prefetch(&rig, "misc.*", newest).await;
    assert_eq!((done.matching, done.groups, done.failed), (1, 1, 0));
    assert_eq!((done.asked, done.articles, done.is_cut), (498, 498, false));
    // Three connections, windows of 48, and what is asked before.
    let trips = begun.elapsed().as_millis() / round_trip.as_millis();
    assert!(trips <= 12, "{trips} round trips");
    assert_eq!(articles_asked(&rig).len(), 498);
    for number in 501..=1000 {
        assert_eq!(rig.read(number).await, Ok(number != 990));
    }
    assert_eq!(articles_asked(&rig), [""; 0]);
    // Nothing is new.
    assert_eq!(prefetch(&rig, "misc.*", newest).await.asked, 0);
    assert_eq!(prefetch(&rig, "alt.*", ALL).await.matching, 0);
}

/// Of a thread the articles come that one follows, and those that follow the same first one; nothing else of the group does.
#[tokio::test(start_paused = true)]
async fn an_article_that_is_named_comes_and_its_thread_with_it() {
    let rig = rig(60, REFRESH_S);
    for (number, follows) in [
        (20, "<7@t.example>"),
        (30, "<7@t.example> <20@t.example>"),
        (40, "<8@t.example>"),
    ] {
        let mut toy = rig.to.0.lock();
        let article = toy.articles.get_mut(&number).unwrap();
        *article = article.replacen("\r\n", &format!("\r\nReferences: {follows}\r\n"), 1);
    }
    let warm = async |id: &str, threads| {
        let id = MessageId::parse(id.as_bytes()).unwrap();
        let done = rig.here.warm(&[id, id], threads, ALL, &mut |_| true).await;
        let mut asked = articles_asked(&rig);
        asked.sort_unstable();
        (done.articles, asked)
    };
    let one = (1, vec!["ARTICLE <40@t.example>".to_owned()]);
    assert_eq!(warm("<40@t.example>", false).await, one);
    let (came, asked) = warm("<20@t.example>", true).await;
    let thread = [
        "ARTICLE 30",
        "ARTICLE <20@t.example>",
        "ARTICLE <7@t.example>",
    ];
    assert_eq!((came, asked), (3, thread.map(str::to_owned).to_vec()));
    assert_eq!(warm("<30@t.example>", true).await, (0, vec![]));
    assert_eq!(warm("<99@t.example>", true).await.0, 0);
}

/// What was damaged on the disk counted as there, for who named it, too.
#[tokio::test(start_paused = true)]
async fn what_is_damaged_comes_anew_for_who_wants_it_there() {
    let named: Vec<String> = (1..=60).map(|n| format!("<{n}@t.example>")).collect();
    let named: Vec<_> = named.iter().map(|id| id.as_bytes()).collect();
    let named: Vec<_> = named.iter().flat_map(|id| MessageId::parse(id)).collect();
    let reads = PrefetchLimits {
        reads_kept: true,
        ..ALL
    };
    for is_by_id in [false, true] {
        let mut rig = rig(60, REFRESH_S);
        assert_eq!(prefetch(&rig, "misc.*", ALL).await.articles, 60);
        rig.here.stop().await;
        rig.restart();
        let segment = Path::new("/cache/articles/00000001.seg");
        rig.disk.corrupt(segment, 20 << 10, &[7; 1000]).unwrap();
        assert_eq!(prefetch(&rig, "misc.*", ALL).await.asked, 0);
        let again = async || match is_by_id {
            true => rig.here.warm(&named, false, ALL, &mut |_| true).await,
            false => prefetch(&rig, "misc.*", reads).await,
        };
        let came = again().await.articles;
        assert!((1..=3).contains(&came), "{came}");
        assert_eq!(again().await.asked, 0);
    }
}

/// Of what the disk cannot read the first one of each window came anew, and no other.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_comes_anew() {
    let mut rig = rig(60, REFRESH_S);
    assert_eq!(prefetch(&rig, "misc.*", ALL).await.articles, 60);
    rig.here.stop().await;
    let faulty = FaultyDisk::new(Arc::new(rig.disk.clone()));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    // One uses the directory at a time.
    drop(std::mem::replace(
        &mut rig.here,
        crate::cached::rig(1, REFRESH_S).here,
    ));
    let keep = Keep::open(&disk, &keep_settings()).unwrap();
    rig.here = in_front(&[&rig.to], &rig.clock, keep, REFRESH_S);
    faulty.add(Fault::new(Op::Read, ".seg", Effect::Medium).forever());
    let reads = PrefetchLimits {
        reads_kept: true,
        ..ALL
    };
    let again = prefetch(&rig, "misc.*", reads).await;
    assert_eq!((again.asked, again.articles), (60, 60));
}

/// Each thread waited once more for what had come of the threads before it.
#[tokio::test(start_paused = true)]
async fn what_is_named_comes_as_fast_as_it_may_and_no_slower() {
    let rig = rig(60, REFRESH_S);
    for number in 31..=60 {
        let mut toy = rig.to.0.lock();
        let article = toy.articles.get_mut(&number).unwrap();
        let follows = format!("\r\nReferences: <{}@t.example>\r\n", number - 30);
        *article = article.replacen("\r\n", &follows, 1);
    }
    let ids: Vec<String> = (31..=60).map(|n| format!("<{n}@t.example>")).collect();
    let ids = ids.iter().map(|id| MessageId::parse(id.as_bytes()));
    let ids: Vec<_> = ids.map(Result::unwrap).collect();
    let slow = PrefetchLimits {
        octets_per_s: 1000,
        ..ALL
    };
    let begun = Instant::now();
    let done = rig.here.warm(&ids, true, slow, &mut |_| true).await;
    assert_eq!(done.articles, 60);
    let (took, needs) = (begun.elapsed().as_secs(), done.octets / 1000);
    assert!(took >= needs && took <= needs + 5, "{took} s for {done:?}");
}

/// Of threads that go on among the newest articles the older part comes, too, as far back as is wanted; nothing else that is old does.
#[tokio::test(start_paused = true)]
async fn threads_of_the_newest_come_whole() {
    for (threads, older) in [(0, vec![]), (30, vec![30, 35]), (100, vec![7, 30, 35])] {
        let rig = rig(60, REFRESH_S);
        for (number, follows) in [
            (30, "<7@t.example>"),
            (35, "<7@t.example> <30@t.example>"),
            (36, "<8@t.example>"),
            (58, "<7@t.example> <35@t.example>"),
        ] {
            let mut toy = rig.to.0.lock();
            let article = toy.articles.get_mut(&number).unwrap();
            *article = article.replacen("\r\n", &format!("\r\nReferences: {follows}\r\n"), 1);
        }
        let limits = PrefetchLimits {
            articles: 5,
            threads,
            ..ALL
        };
        let done = prefetch(&rig, "misc.*", limits).await;
        let mut asked = articles_asked(&rig);
        asked.sort_unstable();
        let numbers = older.into_iter().chain(56..=60);
        let mut expected: Vec<String> = numbers.map(|n| format!("ARTICLE {n}")).collect();
        expected.sort_unstable();
        assert_eq!((done.articles, asked), (expected.len() as u64, expected));
    }
}

/// Where there is not room for all, what readers want most for its size is there.
#[tokio::test(start_paused = true)]
async fn groups_that_are_read_come_first() {
    let rig = rig(20, REFRESH_S);
    // This server has the same articles in every group.
    rig.to.0.lock().listed = "alt.one 20 1 y\r\nzzz.last 20 1 y\r\n";
    let order = async || {
        let one = PrefetchLimits { articles: 1, ..ALL };
        rig.later(REFRESH_S);
        rig.to.asked();
        prefetch(&rig, "*", one).await;
        let mut groups = rig.to.asked();
        // A group is selected by each of the connections that its articles come over.
        let mut seen = std::collections::HashSet::new();
        groups.retain(|said| said.starts_with("GROUP ") && seen.insert(said.clone()));
        groups
    };
    let by_name = ["GROUP alt.one", "GROUP misc.test", "GROUP zzz.last"];
    assert_eq!(order().await, by_name);
    assert!(rig.read(3).await.unwrap());
    assert_eq!(order().await, [by_name[1], by_name[0], by_name[2]]);
}

/// A group that is asked for less, but whose articles are far smaller, comes first: more of what readers want has room.
#[tokio::test(start_paused = true)]
async fn groups_come_by_what_each_octet_is_worth() {
    let rig = rig(20, REFRESH_S);
    {
        let mut toy = rig.to.0.lock();
        toy.listed = "zzz.last 20 1 y\r\n";
        for number in [5, 9] {
            toy.articles.insert(number, article(number, 50_000));
        }
        // An article counts for the first group that it names.
        let small = article(14, 500).replace("misc.test", "zzz.last");
        toy.articles.insert(14, small);
    }
    for (group, number) in [("misc.test", 5), ("misc.test", 9), ("zzz.last", 14)] {
        let name = GroupName::parse(group.as_bytes()).unwrap();
        let info = rig.here.group(name).await.unwrap().unwrap();
        let query = ArticleQuery::ByNumber(info.id, ArticleNumber(number));
        let mut out = ArticleBuf::new();
        let found = rig.here.article(query, Part::Whole, &mut out).await;
        assert!(found.unwrap().is_some());
    }
    rig.later(REFRESH_S);
    rig.to.asked();
    let one = PrefetchLimits { articles: 1, ..ALL };
    prefetch(&rig, "*", one).await;
    let asked = rig.to.asked();
    let first = asked.iter().find(|said| said.starts_with("GROUP "));
    assert_eq!(first.unwrap(), "GROUP zzz.last");
}

/// One line that told of more octets than may be fetched ended each prefetch as long as it was among the newest.
#[tokio::test(start_paused = true)]
async fn what_is_too_large_is_left_out_and_the_rest_comes() {
    for octets in [200_000, 2 << 20] {
        let rig = rig(100, REFRESH_S);
        let large = article(80, octets);
        rig.to.0.lock().articles.insert(80, large);
        let limits = PrefetchLimits {
            octets: octets as u64 - 50_000,
            ..ALL
        };
        let done = prefetch(&rig, "misc.*", limits).await;
        assert_eq!((done.articles, done.is_cut), (99, false), "{done:?}");
        assert!(!articles_asked(&rig).contains(&"ARTICLE 80".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn it_keeps_to_its_limits_and_ends_when_nobody_wants_it() {
    let rig = rig(500, REFRESH_S);
    let few = PrefetchLimits {
        octets: 100_000,
        ..ALL
    };
    let done = prefetch(&rig, "*", few).await;
    assert!(
        done.is_cut && done.octets <= 100_000 && done.octets > 50_000,
        "{done:?}"
    );
    assert_eq!(articles_asked(&rig).len() as u64, done.articles);
    let slow = PrefetchLimits {
        octets_per_s: 10_000,
        ..ALL
    };
    let begun = Instant::now();
    let done = prefetch(&rig, "*", slow).await;
    let least = Duration::from_secs(done.octets / 10_000);
    assert!(
        begun.elapsed() >= least,
        "{:?} for {done:?}",
        begun.elapsed()
    );
    // On a slow link the first articles took it for themselves: 48 of them came at once, whatever the rate.
    let rig = crate::cached::rig(100, REFRESH_S);
    let wildmat = Wildmat::parse("*").unwrap();
    let (mut at_once, mut so_far) = (Vec::new(), 0);
    let mut goes_on = |done: &Prefetched| {
        at_once.push(done.octets - so_far);
        so_far = done.octets;
        true
    };
    let prefetched = rig.here.prefetch(&wildmat, slow, &mut goes_on).await;
    assert_eq!(prefetched.unwrap().articles, 100);
    assert!(
        at_once.iter().all(|octets| *octets <= 10_000),
        "{at_once:?}"
    );
    let rig = crate::cached::rig(500, REFRESH_S);
    let mut asked = 0;
    let mut goes_on = |_: &Prefetched| {
        asked += 1;
        asked <= 2
    };
    let done = rig
        .here
        .prefetch(&wildmat, ALL, &mut goes_on)
        .await
        .unwrap();
    assert!(done.is_cut && done.articles < 200, "{done:?}");
}
