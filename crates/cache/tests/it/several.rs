//! Several servers behind one cache: the numbers of one, the articles of all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use newsreel_cache::keep::{Keep, Renumbered};
use newsreel_cache::{PrefetchLimits, Routes, Sameness};
use newsreel_host::{Disk, MemoryDisk};
use newsreel_service::posting::Post;
use newsreel_service::{
    ArticleBuf, ArticleQuery, Connection, ConnectionId, GroupCursor, GroupRow, GroupSelect,
    NewsService as _, Outcome, Part, ServiceError,
};
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{GroupName, MessageId};

use crate::cached::{REFRESH_S, Rig, in_front, keep_settings, remote, rig, routed, whole_list};
use crate::everything;
use crate::toy::{To, article};

/// The first server, and a backup that has the same articles under other numbers.
fn with_backup(count: u64) -> (Rig, To) {
    let mut rig = rig(count, REFRESH_S);
    let backup = To::default();
    let articles = (1..=count).map(|number| (number + 100, article(number, 500)));
    backup.0.lock().articles = articles.collect::<BTreeMap<_, _>>();
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let keep = Keep::open(&disk, &keep_settings()).unwrap();
    rig.here = in_front(&[&rig.to, &backup], &rig.clock, keep, REFRESH_S);
    (rig, backup)
}

/// Whether there is an article, if that is known.
async fn read(rig: &Rig, id: &str) -> Result<bool, ServiceError> {
    let mut out = ArticleBuf::new();
    let query = ArticleQuery::ById(MessageId::parse(id.as_bytes()).unwrap());
    let found = rig.here.article(query, Part::Whole, &mut out).await;
    found.map(|found| found.is_some())
}

#[tokio::test]
async fn numbers_come_from_one_server_and_what_it_does_not_have_from_another() {
    let (rig, backup) = with_backup(5);
    assert_eq!(rig.overview().await, [1, 2, 3, 4, 5]);
    assert!(rig.read(1).await.unwrap());
    assert_eq!(
        backup.asked(),
        [""; 0],
        "a backup is asked only for what is missing"
    );
    // The overview says that it is there.
    rig.to.0.lock().articles.remove(&4);
    assert!(rig.read(4).await.unwrap());
    assert_eq!(backup.asked(), ["ARTICLE <4@t.example>"]);
    // By its number it had been asked: it does not have it.
    let by_id = |said: &String| said.starts_with("ARTICLE <");
    assert!(!rig.to.asked().iter().any(by_id));
    let wire = rig.read_by_id("<4@t.example>", Part::Whole).await.unwrap();
    assert_eq!(wire, article(4, 500).as_bytes());
    assert_eq!(rig.read_by_id("<9@t.example>", Part::Whole).await, None);
    assert_eq!(backup.asked(), ["ARTICLE <9@t.example>"]);
    // Compared with the server whose numbers they are, it is gone.
    rig.later(REFRESH_S);
    assert_eq!(rig.overview().await, [1, 2, 3, 5]);
    assert_eq!(backup.asked(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_down_hides_nothing_that_another_has() {
    let (rig, backup) = with_backup(5);
    assert_eq!(rig.overview().await.len(), 5);
    rig.to.0.lock().is_down = true;
    for number in 1..=5 {
        assert!(rig.read(number).await.unwrap(), "{number}");
    }
    // Nobody knows: the first may have it.
    assert!(read(&rig, "<9@t.example>").await.is_err());
    let article = "From: me@t.example\r\nNewsgroups: misc.test\r\nSubject: x\r\n\r\nText.\r\n.\r\n";
    let from = Arc::new(Connection::new(ConnectionId(1), None, None));
    rig.here.post(post(&rig, article), &from).await;
    let mut done = Vec::new();
    from.take_completions(&mut done);
    assert_eq!(done[0].outcome, Outcome::Accepted);
    assert_eq!(backup.0.lock().articles.len(), 6);
}

/// A post from somebody.
fn post(rig: &Rig, article: &str) -> Post {
    Post {
        ticket: 1,
        id: rig.here.new_message_id(),
        poster: Arc::default(),
        article: article.to_owned().into(),
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_have_it_is_not_asked_again_for_a_time() {
    let (rig, backup) = with_backup(2);
    let read = async |id: &str| read(&rig, id).await;
    // One said that it does not have it, and nothing is known of the other.
    rig.to.0.lock().is_down = true;
    for _ in 0..2 {
        assert!(read("<9@t.example>").await.is_err());
    }
    assert_eq!(backup.asked(), ["ARTICLE <9@t.example>"]);
    rig.to.0.lock().is_down = false;
    rig.to.0.lock().articles.insert(9, article(9, 500));
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(read("<9@t.example>").await, Ok(true));
    assert_eq!(backup.asked(), [""; 0]);
    rig.to.asked();
    for _ in 0..2 {
        assert_eq!(read("<8@t.example>").await, Ok(false));
    }
    assert_eq!(rig.to.asked(), ["ARTICLE <8@t.example>"]);
    assert_eq!(backup.asked(), ["ARTICLE <8@t.example>"]);
    // It comes to one of them through us.
    let text = article(8, 500).replace("Xref:", "X-Xref:");
    let from = Arc::new(Connection::new(ConnectionId(1), None, None));
    rig.here.post(post(&rig, &text), &from).await;
    assert_eq!(read("<8@t.example>").await, Ok(true));
}

/// A server that answered for another article was told of as one that does not have what was asked for, for as long as that is
/// remembered.
#[tokio::test(start_paused = true)]
async fn one_that_answers_for_another_article_has_failed() {
    const WIRE: &str = "Message-ID: <9@t.example>\r\nSubject: x\r\n\r\n.\r\n";
    let (rig, backup) = with_backup(3);
    backup.0.lock().articles.remove(&101);
    let answer = |line: &str| &*format!("220 {line} <9@t.example>\r\n{WIRE}").leak();
    for (command, id) in [
        ("ARTICLE <1@t.example>", Some("<1@t.example>")),
        ("ARTICLE 3", None),
    ] {
        rig.to.0.lock().says = Some((command, answer("9")));
        let read = async || match id {
            Some(id) => read(&rig, id).await,
            None => rig.read(3).await,
        };
        assert_eq!(read().await, Err(ServiceError::Away), "{command}");
        rig.to.0.lock().says = None;
        assert_eq!(read().await, Ok(true), "{command}");
    }
    // Another has it.
    rig.to.0.lock().says = Some(("ARTICLE <2@t.example>", answer("0")));
    assert_eq!(read(&rig, "<2@t.example>").await, Ok(true));
    assert_eq!(
        backup.asked(),
        ["ARTICLE <1@t.example>", "ARTICLE <2@t.example>"]
    );
}

/// Readers remember numbers: they become another server's only if somebody says so.
#[tokio::test]
async fn numbers_become_those_of_another_server_only_if_that_is_wanted() {
    let (rig, _) = with_backup(5);
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let keep = Keep::open(&disk, &keep_settings()).unwrap();
    let [one, other] = ["one", "other"].map(|name| Routes::new(vec![everything(name, 0)]));
    let groups = |keep: &Keep, routes| {
        let renumbered = keep.renumbered(routes).unwrap().into_iter();
        renumbered
            .map(|it| (it.group.into(), it.from, it.to))
            .collect::<Vec<(String, _, _)>>()
    };
    assert!(groups(&keep, &one).is_empty());
    keep.take_routes(&one, &[]).unwrap();
    let here = in_front(&[&rig.to], &rig.clock, keep, REFRESH_S);
    let name = GroupName::parse(b"misc.test").unwrap();
    assert!(here.group(name).await.unwrap().is_some());
    here.stop().await;
    drop(here);
    let keep = Keep::open(&disk, &keep_settings()).unwrap();
    assert!(groups(&keep, &one).is_empty());
    let expected = ["misc.test", "one", "other"].map(str::to_owned);
    let [group, from, to] = expected;
    assert_eq!(groups(&keep, &other), [(group, from, to)]);
    assert!(keep.group("misc.test").is_some());
    let renumbered = keep.renumbered(&other).unwrap();
    keep.take_routes(&other, &renumbered).unwrap();
    assert!(keep.group("misc.test").is_none());
    assert!(groups(&keep, &other).is_empty());
}

/// What is declared of a server is looked at: that it has the same articles under the numbers that are kept, as far as it has them
/// at all.
#[tokio::test]
async fn a_server_that_is_said_to_have_the_same_numbers_is_compared() {
    let rig = rig(600, REFRESH_S);
    assert_eq!(rig.overview().await.len(), 600);
    rig.here.stop().await;
    let keep = rig.here.keep();
    let misc = Renumbered {
        group: "misc.test".into(),
        from: "one".to_owned(),
        to: "up".to_owned(),
    };
    let sampled = keep.sampled("misc.test", 3);
    assert_eq!(sampled.len(), 3, "{sampled:?}");
    let compared = async |shift: u64, from: u64| {
        let to = To::default();
        let articles = (from..=600).map(|number| (number + shift, article(number, 500)));
        to.0.lock().articles = articles.collect();
        let there = remote(&to, &rig.clock);
        there
            .compared(keep, std::slice::from_ref(&misc))
            .await
            .unwrap()
    };
    let same = |same| Sameness { same, other: None };
    assert_eq!(compared(0, 1).await, same(5));
    // It keeps articles for a shorter time.
    assert_eq!(compared(0, 500).await, same(1));
    assert_eq!(compared(0, 600).await, same(0));
    let other = compared(1, 1).await.other.unwrap();
    assert_eq!(&*other.0, "misc.test");
    // What it says of numbers of a group that it does not have is of another group.
    let to = To::default();
    {
        let mut toy = to.0.lock();
        toy.articles = (1..=600)
            .map(|number| (number, article(number + 1, 500)))
            .collect();
        toy.is_without_group = true;
    }
    let there = remote(&to, &rig.clock);
    let compared = there.compared(keep, std::slice::from_ref(&misc)).await;
    assert_eq!(compared, Ok(same(0)));
}

/// Two servers of one tier, the second for what the first is not asked for, in front of them a cache that keeps nothing yet.
fn with_another() -> (Rig, To) {
    let mut rig = rig(5, REFRESH_S);
    let other = To::default();
    other.0.lock().listed = "c.test 1 1 y\r\n";
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let keep = Keep::open(&disk, &keep_settings()).unwrap();
    let servers = [
        (&rig.to, "one", "a.*,b.*,misc.*"),
        (&other, "other", "*,!b.*"),
    ];
    rig.here = routed(&servers, &rig.clock, keep, REFRESH_S, None);
    (rig, other)
}

async fn list(rig: &Rig) -> Result<String, ServiceError> {
    let list = whole_list(&rig.here).await?;
    Ok(String::from_utf8(list).unwrap())
}

#[tokio::test(start_paused = true)]
async fn one_list_has_the_groups_of_all() {
    let (rig, other) = with_another();
    let list = async || list(&rig).await.unwrap();
    rig.to.0.lock().listed = "a.test 1 1 y\r\n";
    // Both have misc.test: it is listed once, as the first says.
    let all = "a.test 1 1 y\r\nc.test 1 1 y\r\nmisc.test 5 1 y\r\n";
    assert_eq!(list().await, all);
    assert_eq!(other.asked(), ["LIST ACTIVE"]);
    // Once more from what is there.
    assert_eq!(list().await, all);
    assert_eq!(other.asked(), [""; 0]);
    // One of them has news, and the other is away.
    rig.to.0.lock().listed = "b.test 1 1 y\r\n";
    other.0.lock().is_down = true;
    tokio::time::advance(Duration::from_secs(61)).await;
    let all = "b.test 1 1 y\r\nc.test 1 1 y\r\nmisc.test 5 1 y\r\n";
    assert_eq!(list().await, all);
}

/// The groups of one server passed for all while the list of another, which was away, had never been kept.
#[tokio::test(start_paused = true)]
async fn a_list_that_lacks_that_of_a_server_is_told_to_nobody() {
    let (rig, other) = with_another();
    other.0.lock().is_down = true;
    let missing = ServiceError::ListMissing("other".into());
    assert_eq!(list(&rig).await, Err(missing.clone()));
    let (mut cursor, mut told) = (GroupCursor::default(), 0);
    let mut visit = |_: GroupRow<'_>| told += 1;
    let select = GroupSelect::default();
    let asking = rig.here.groups(select, &mut cursor, 9, &mut visit);
    assert_eq!((asking.await, told), (Err(missing), 0));
    assert!(rig.group().await.is_some(), "of a server that answers");
    let limits = PrefetchLimits {
        articles: 5,
        threads: 0,
        octets: 1 << 20,
        octets_per_s: 0,
        reads_kept: false,
    };
    let wildmat = Wildmat::parse("*").unwrap();
    let mut goes_on = |_: &_| true;
    let fetching = rig.here.prefetch(&wildmat, limits, &mut goes_on);
    assert_eq!(fetching.await.unwrap().articles, 5, "of the same");
    // It is back, and away once more.
    other.0.lock().is_down = false;
    tokio::time::advance(Duration::from_secs(2)).await;
    let all = Ok("c.test 1 1 y\r\nmisc.test 5 1 y\r\n".to_owned());
    assert_eq!(list(&rig).await, all);
    other.0.lock().is_down = true;
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(list(&rig).await, all);
}

/// No group's numbers come from a backup that has none of its own: its list says nothing, and nobody waits for it.
#[tokio::test(start_paused = true)]
async fn a_backup_that_is_away_leaves_the_list_whole() {
    let (rig, backup) = with_backup(5);
    backup.0.lock().is_down = true;
    assert_eq!(list(&rig).await.unwrap(), "misc.test 5 1 y\r\n");
    assert_eq!(backup.asked(), [""; 0]);
}

/// Two servers of one tier with the same articles, the overview of which is known.
pub(crate) async fn with_equal(count: u64) -> (Rig, To) {
    let mut rig = rig(count, REFRESH_S);
    let equal = To::default();
    let articles = (1..=count).map(|number| (number + 100, article(number, 500)));
    equal.0.lock().articles = articles.collect();
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let keep = Keep::open(&disk, &keep_settings()).unwrap();
    let servers = [(&rig.to, "one", "*"), (&equal, "equal", "misc.*")];
    rig.here = routed(&servers, &rig.clock, keep, REFRESH_S, None);
    assert_eq!(rig.overview().await.len() as u64, count);
    for to in [&rig.to, &equal] {
        to.asked();
        to.0.lock().round_trip = Duration::from_millis(20);
    }
    (rig, equal)
}

/// Ten readers, each of which reads every tenth number.
pub(crate) async fn read_by_ten(rig: &Rig, count: u64) {
    let reads = async |last: u64| {
        for number in (1..=count).rev().filter(|number| number % 10 == last) {
            assert_eq!(rig.read(number).await, Ok(true), "{number}");
        }
    };
    let five = async { tokio::join!(reads(0), reads(1), reads(2), reads(3), reads(4)) };
    let more = async { tokio::join!(reads(5), reads(6), reads(7), reads(8), reads(9)) };
    tokio::join!(five, more);
}

/// How many articles a server was asked for.
fn articles_asked(to: &To) -> usize {
    let asked = to.asked();
    asked.iter().filter(|it| it.starts_with("ARTICLE")).count()
}

/// By number all went to the server whose numbers they are, while its equal had nothing to do.
#[tokio::test(start_paused = true)]
async fn equals_share_what_is_read_by_number() {
    let (rig, equal) = with_equal(200).await;
    read_by_ten(&rig, 200).await;
    let asked = (articles_asked(&rig.to), articles_asked(&equal));
    assert!(
        asked.0 >= 60 && asked.1 >= 60 && asked.0 + asked.1 == 200,
        "{asked:?}"
    );
    // Alone nobody needs the other: numbers are asked for in one round trip, and ahead.
    let (rig, equal) = with_equal(200).await;
    for number in 1..=200 {
        assert_eq!(rig.read(number).await, Ok(true), "{number}");
    }
    assert_eq!((articles_asked(&rig.to), articles_asked(&equal)), (200, 0));
}

/// What the equal does not have, or does not say, is no word about the article.
#[tokio::test(start_paused = true)]
async fn what_an_equal_does_not_have_is_read_all_the_same() {
    for is_down in [false, true] {
        let (rig, equal) = with_equal(100).await;
        {
            let mut equal = equal.0.lock();
            equal.articles.retain(|number, _| number % 2 == 0);
            equal.is_down = is_down;
        }
        read_by_ten(&rig, 100).await;
        let asked = (articles_asked(&rig.to), articles_asked(&equal));
        assert!(asked.0 >= 50 && (asked.1 > 10 || is_down), "{asked:?}");
        rig.later(REFRESH_S);
        assert_eq!(rig.overview().await.len(), 100);
        read_by_ten(&rig, 100).await;
        assert_eq!((articles_asked(&rig.to), articles_asked(&equal)), (0, 0));
    }
}

/// What a server can do that nobody had asked yet was told of as what it cannot do, for as long as that session lasted.
#[tokio::test(start_paused = true)]
async fn what_a_server_can_do_is_asked_when_somebody_wants_to_know() {
    let (rig, backup) = with_backup(1);
    let can = async || rig.here.learn_features().await.over_by_id;
    assert!(!rig.here.features().over_by_id);
    // While nobody can be asked nobody is said to lack it; nor is it known of anybody.
    rig.here.set_offline(true).unwrap();
    assert!(can().await);
    rig.here.set_offline(false).unwrap();
    for to in [&rig.to, &backup] {
        to.0.lock().is_down = true;
    }
    assert!(can().await && !rig.here.features().over_by_id);
    backup.0.lock().is_down = false;
    tokio::time::advance(Duration::from_secs(120)).await;
    assert!(can().await && rig.here.features().over_by_id);
    let asked = || std::mem::take(&mut backup.0.lock().asked);
    assert_eq!(asked(), ["CAPABILITIES"]);
    assert!(can().await);
    assert_eq!(asked(), [""; 0]);
}

/// While the first server was away the second one's message of the day was told as if it were the first's, for as long as lists are kept, also
/// when the first was there again.
#[tokio::test(start_paused = true)]
async fn what_a_site_says_of_itself_is_told_of_the_first_server_that_said_it() {
    let (rig, backup) = with_backup(1);
    rig.to.0.lock().says = Some(("LIST MOTD", "215 list\r\nfirst\r\n.\r\n"));
    backup.0.lock().says = Some(("LIST MOTD", "215 list\r\nsecond\r\n.\r\n"));
    let away = |is_down| rig.to.0.lock().is_down = is_down;
    let told = async || rig.here.site_list("MOTD").await.unwrap().unwrap();
    let later = async || tokio::time::advance(Duration::from_secs(61)).await;
    away(true);
    assert_eq!(told().await, "second\r\n");
    away(false);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(told().await, "first\r\n");
    away(true);
    later().await;
    assert_eq!(told().await, "first\r\n");
}
