//! Numbers that are large, marks that are far apart, and a server that lists no part of a group.

use newsreel_service::{ArticleBuf, Direction, NewsService as _, OverviewRows};
use newsreel_wire::{ArticleNumber, GroupId, GroupName};

use crate::cached::{REFRESH_S, Rig, remote, rig};
use crate::toy::article;

/// The largest number that marks can have.
const LARGEST: u64 = 9_999_999_999_999_999;

/// A server that has these numbers.
fn with(numbers: impl Iterator<Item = u64>, refresh_s: u64) -> Rig {
    let rig = rig(0, refresh_s);
    let articles = numbers.map(|number| (number, article(number, 500)));
    rig.to.0.lock().articles = articles.collect();
    rig
}

/// They went when they were compared: what was asked for ended at the largest number of 31 bits.
#[tokio::test]
async fn numbers_beyond_31_bits_stay() {
    let all: Vec<u64> = (2_147_483_600..=2_147_484_000).collect();
    let rig = with(all.iter().copied(), REFRESH_S);
    for _ in 0..2 {
        assert_eq!(rig.numbers().await, all);
        assert_eq!(rig.overview().await, all);
        assert_eq!(rig.read(2_147_483_900).await, Ok(true));
        rig.later(REFRESH_S);
    }
    let there = remote(&rig.to, &rig.clock);
    let id = there
        .group(GroupName::parse(b"misc.test").unwrap())
        .await
        .unwrap()
        .unwrap()
        .id;
    let (mut out, last) = (ArticleBuf::new(), ArticleNumber(2_147_483_999));
    let next = there.neighbour(id, last, Direction::Next, &mut out).await;
    assert_eq!(next, Ok(Some(ArticleNumber(2_147_484_000))));
}

/// So many calls tell all of a group, at most.
const CALLS_MAX: usize = 200;

/// The numbers and the overview of a group, in no more calls than that.
async fn all_of(rig: &Rig, id: GroupId) -> (Vec<u64>, usize) {
    let high = ArticleNumber(u64::MAX);
    let (mut numbers, mut rows) = (Vec::new(), OverviewRows::default());
    let mut from = Some(ArticleNumber(1));
    for call in 0.. {
        let Some(low) = from else { break };
        assert!(call < CALLS_MAX);
        let asking = rig.here.numbers(id, low, high, 1000, &mut numbers);
        from = asking.await.unwrap();
    }
    from = Some(ArticleNumber(1));
    for call in 0.. {
        let Some(low) = from else { break };
        assert!(call < CALLS_MAX);
        let asking = rig.here.overview(id, low, high, 1 << 20, &mut rows);
        from = asking.await.unwrap();
    }
    let lines = rows.text().split(|octet| *octet == b'\n').count() - 1;
    (numbers.iter().map(|number| number.0).collect(), lines)
}

/// One reader had the cache ask for a million million windows, and keep that there is nothing in each.
#[tokio::test]
async fn marks_that_are_far_apart_are_no_endless_question() {
    for refresh_s in [REFRESH_S, 0] {
        for last in [None, Some(LARGEST - 5)] {
            let all: Vec<u64> = [1, 2, 70_000].into_iter().chain(last).collect();
            let rig = with(all.iter().copied(), refresh_s);
            rig.to.0.lock().marks = Some((1, LARGEST));
            let id = rig.group().await.unwrap().id;
            assert_eq!(all_of(&rig, id).await, (all.clone(), all.len()));
            let asked = rig.to.asked().len();
            assert!(asked < 1000, "{asked}");
            let kept = rig.here.kept_figures().overview_octets;
            assert!(kept < 100_000, "{kept}");
            let mut out = ArticleBuf::new();
            let (from, next) = (ArticleNumber(70_000), Direction::Next);
            let found = rig.here.neighbour(id, from, next, &mut out).await;
            assert_eq!(found, Ok(last.map(ArticleNumber)));
            let (from, before) = (ArticleNumber(LARGEST - 5), Direction::Last);
            let found = rig.here.neighbour(id, from, before, &mut out).await;
            assert_eq!(found, Ok(Some(ArticleNumber(70_000))));
        }
    }
}

/// The same of a server that nothing stands in front of, and offline, where no more is shown than is kept.
#[tokio::test]
async fn marks_that_are_far_apart_are_no_endless_question_elsewhere() {
    let all = [1, 2, 70_000, LARGEST - 5];
    let rig = with(all.into_iter(), REFRESH_S);
    rig.to.0.lock().marks = Some((1, LARGEST));
    let there = remote(&rig.to, &rig.clock);
    let name = GroupName::parse(b"misc.test").unwrap();
    let id = there.group(name).await.unwrap().unwrap().id;
    let (mut numbers, mut from, high) =
        (Vec::new(), Some(ArticleNumber(1)), ArticleNumber(LARGEST));
    for call in 0.. {
        let Some(low) = from else { break };
        assert!(call < CALLS_MAX);
        let asking = there.numbers(id, low, high, 1000, &mut numbers);
        from = asking.await.unwrap();
    }
    assert_eq!(numbers, all.map(ArticleNumber));
    let mut out = ArticleBuf::new();
    for (from, direction, nearest) in [
        (70_000, Direction::Next, LARGEST - 5),
        (LARGEST - 5, Direction::Last, 70_000),
    ] {
        let asking = there.neighbour(id, ArticleNumber(from), direction, &mut out);
        assert_eq!(asking.await, Ok(Some(ArticleNumber(nearest))));
    }
    assert_eq!(rig.read(2).await, Ok(true));
    assert_eq!(rig.read(LARGEST - 5).await, Ok(true));
    rig.here.stop().await;
    rig.here.set_offline(true).unwrap();
    let id = rig.group().await.unwrap().id;
    assert_eq!(all_of(&rig, id).await, (vec![2, LARGEST - 5], 2));
}

/// Nothing of it was ever compared.
#[tokio::test]
async fn a_server_that_lists_no_part_of_a_group_is_asked_for_all_of_it() {
    let rig = with(1..=9, REFRESH_S);
    rig.to.0.lock().lists_whole = true;
    assert_eq!(rig.overview().await.len(), 9);
    rig.to.0.lock().articles.remove(&4);
    rig.to.asked();
    for turn in 0..2 {
        rig.later(REFRESH_S);
        assert_eq!(rig.overview().await, [1, 2, 3, 5, 6, 7, 8, 9]);
        let listing = |said: &String| said.starts_with("LISTGROUP");
        let asked: Vec<String> = rig.to.asked().into_iter().filter(listing).collect();
        let both = ["LISTGROUP misc.test 1-9", "LISTGROUP misc.test"];
        assert_eq!(asked, both[turn..], "it is remembered");
    }
}

/// Each eight thousand numbers of it cost a list of all of them.
#[tokio::test]
async fn all_of_a_group_is_listed_once_and_not_for_each_part() {
    const LAST: u64 = 30_000;
    let rig = with(1..=LAST, REFRESH_S);
    rig.to.0.lock().lists_whole = true;
    let listed = || {
        let is_list = |said: &String| said.starts_with("LISTGROUP");
        let asked = rig.to.asked().into_iter().filter(is_list);
        asked.collect::<Vec<_>>()
    };
    assert_eq!(rig.numbers().await.len() as u64, LAST);
    let first = listed();
    assert_eq!(first.len(), 2, "it is asked for a part once: {first:?}");
    rig.to.0.lock().articles.remove(&4);
    rig.to.0.lock().articles.remove(&LAST);
    rig.later(REFRESH_S);
    let seen: Vec<u64> = (1..LAST).filter(|number| *number != 4).collect();
    assert_eq!(rig.numbers().await, seen);
    assert_eq!(listed(), ["LISTGROUP misc.test"]);
    // What is told of it is as old as the list, and no older than anything may be.
    rig.later(REFRESH_S - 1);
    assert_eq!(rig.numbers().await, seen);
    assert_eq!(rig.to.asked(), [""; 0]);
    rig.to.0.lock().articles.remove(&9);
    rig.later(1);
    assert_eq!(rig.numbers().await.len(), seen.len() - 1);
    assert_eq!(listed(), ["LISTGROUP misc.test"]);
}

/// What has come since all of a group was listed is no part of that list.
#[tokio::test]
async fn what_is_behind_a_list_of_all_is_asked_for() {
    let rig = with(1..=200, REFRESH_S);
    rig.to.0.lock().lists_whole = true;
    assert_eq!(rig.numbers().await.len(), 200);
    rig.later(REFRESH_S / 2);
    for number in 201..=20_000 {
        let new = article(number, 500);
        rig.to.0.lock().articles.insert(number, new);
    }
    rig.here.keep().outdate_group("misc.test");
    assert_eq!(rig.numbers().await, (1..=20_000).collect::<Vec<_>>());
    // With a time of zero each comparison asks.
    let rig = with(1..=20_000, 0);
    rig.to.0.lock().lists_whole = true;
    for gone in [5, 15_000] {
        assert_eq!(
            rig.numbers().await.len() as u64,
            20_000 - u64::from(gone > 5)
        );
        rig.to.0.lock().articles.remove(&gone);
    }
    assert_eq!(rig.numbers().await.len(), 19_998);
}

/// A neighbour behind a gap was looked for in windows, each of which had all numbers listed.
#[tokio::test]
async fn the_next_number_is_found_in_one_list_of_all() {
    let there_are = [1, 2, 70_000, LARGEST - 5];
    for (count, from, direction, nearest) in [
        (4, 70_000, Direction::Next, Some(LARGEST - 5)),
        (4, LARGEST - 5, Direction::Last, Some(70_000)),
        (4, LARGEST - 5, Direction::Next, None),
        (3, 70_000, Direction::Next, None),
        (3, 1, Direction::Last, None),
    ] {
        let rig = with(there_are.into_iter().take(count), REFRESH_S);
        {
            let mut toy = rig.to.0.lock();
            (toy.marks, toy.lists_whole) = (Some((1, LARGEST)), true);
        }
        let there = remote(&rig.to, &rig.clock);
        let name = GroupName::parse(b"misc.test").unwrap();
        let id = there.group(name).await.unwrap().unwrap().id;
        let mut out = ArticleBuf::new();
        let asking = there.neighbour(id, ArticleNumber(from), direction, &mut out);
        assert_eq!(asking.await, Ok(nearest.map(ArticleNumber)), "{from}");
        let asked = rig.to.asked();
        let lists = asked.iter().filter(|said| said.starts_with("LISTGROUP"));
        assert!(lists.count() <= 2, "{asked:?}");
    }
}
