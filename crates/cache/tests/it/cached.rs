//! The cache in front of a server: what it asks there, and what it tells when things there change.

use std::sync::Arc;
use std::time::Duration;

use newsreel_cache::keep::{Keep, KeepSettings};
use newsreel_cache::policies::PolicyKind;
use newsreel_cache::queue::PostQueue;
use newsreel_cache::{CServer, CacheSettings, RServer, RemoteNewnews, RemoteSettings, Route};
use newsreel_host::{
    Clock as _, Disk, Effect, FakeClock, Fault, FaultyDisk, MemoryDisk, Op, WallTime,
};
use newsreel_net::client::{Pool, PoolLimits};
use newsreel_service::posting::{Post, PostingConfig};
use newsreel_service::{
    ArticleBuf, ArticleQuery, Connection, ConnectionId, GroupInfo, GroupStatus, NewsService,
    Outcome, OverviewRows, Part, ServiceError,
};
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupName, MessageId, UnixTime};
use tokio::time::Instant;

use crate::everything;
use crate::toy::{To, article};

/// How old marks and numbers may be, seconds.
pub(crate) const REFRESH_S: u64 = 100;

pub(crate) struct Rig {
    pub(crate) to: To,
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) disk: MemoryDisk,
    pub(crate) here: Arc<CServer<To>>,
}

pub(crate) fn keep_settings() -> KeepSettings {
    KeepSettings {
        directory: "/cache".into(),
        octets: KeepSettings::OCTETS_MIN,
        large_octets: 16 << 10,
        overview_octets: 1 << 20,
        makes_lines: false,
        memory_octets: 1 << 20,
        overview_memory_octets: 1 << 20,
        table_memory_octets: 1 << 20,
        policy: PolicyKind::Lrug,
        policy_articles_max: 100_000,
        pinned_octets: 1 << 20,
    }
}

fn cached(to: &To, clock: &Arc<FakeClock>, disk: &MemoryDisk, refresh_s: u64) -> Arc<CServer<To>> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let keep = Keep::open(&disk, &keep_settings()).unwrap();
    in_front(&[to], clock, keep, refresh_s)
}

/// A cache in front of servers, each of the next tier.
pub(crate) fn in_front(
    servers: &[&To],
    clock: &Arc<FakeClock>,
    keep: Keep,
    refresh_s: u64,
) -> Arc<CServer<To>> {
    let server = |(tier, to): (u32, &&To)| ((*to).clone(), everything(&tier.to_string(), tier));
    let servers = (0..).zip(servers).map(server).collect();
    served(servers, clock, keep, refresh_s, None)
}

/// A cache in front of servers, each for some groups, and a queue of posts.
pub(crate) fn routed(
    servers: &[(&To, &str, &str)],
    clock: &Arc<FakeClock>,
    keep: Keep,
    refresh_s: u64,
    queue: Option<Arc<PostQueue>>,
) -> Arc<CServer<To>> {
    let server = |(to, name, groups): &(&To, &str, &str)| {
        let route = Route {
            groups: Wildmat::parse(groups).unwrap(),
            ..everything(name, 0)
        };
        ((*to).clone(), route)
    };
    let servers = servers.iter().map(server).collect();
    served(servers, clock, keep, refresh_s, queue)
}

/// A server alone, without a cache.
pub(crate) fn remote(to: &To, clock: &Arc<FakeClock>) -> RServer<To> {
    asked(vec![(to.clone(), everything("up", 0))], clock)
}

/// Servers that are read from only were said to take posts, which were refused once they had come.
#[test]
fn where_no_server_takes_posts_none_is_offered() {
    let clock = Arc::new(FakeClock::new(1_767_225_600));
    for posting in [true, false] {
        let route = Route {
            posting,
            ..everything("up", 0)
        };
        let here = asked(vec![(To::default(), route)], &clock);
        assert_eq!(here.features().posting, posting);
    }
}

fn served(
    servers: Vec<(To, Route)>,
    clock: &Arc<FakeClock>,
    keep: Keep,
    refresh_s: u64,
    queue: Option<Arc<PostQueue>>,
) -> Arc<CServer<To>> {
    let settings = CacheSettings {
        refresh_s,
        read_ahead_max: 32,
        read_ahead_octets_max: 1 << 20,
        offline_kept_only: true,
    };
    let there = asked(servers, clock);
    Arc::new(CServer::new(there, Arc::new(keep), settings, queue))
}

fn asked(servers: Vec<(To, Route)>, clock: &Arc<FakeClock>) -> RServer<To> {
    asked_for(servers, clock, 1000)
}

/// Servers of which so many groups are known at most.
pub(crate) fn asked_for(
    servers: Vec<(To, Route)>,
    clock: &Arc<FakeClock>,
    groups_max: usize,
) -> RServer<To> {
    let minute = Duration::from_secs(60);
    let limits = PoolLimits {
        connections_max: 4,
        idle: minute,
        wait: minute,
    };
    let settings = RemoteSettings {
        article_octets_max: 1 << 20,
        passed_on_octets_max: 4 << 20,
        groups_max,
        list_refresh: minute,
        list_whole: 10 * minute,
        missing_refresh: minute,
        forwarded: Vec::new(),
        posting: PostingConfig::default(),
        host: "here.example".to_owned(),
    };
    let servers = servers.into_iter();
    let servers = servers.map(|(to, route)| (Pool::new(to, limits), route));
    RServer::new(servers.collect(), clock.clone(), settings, 1)
}

/// A server with articles 1 to `count`, and the cache in front of it.
pub(crate) fn rig(count: u64, refresh_s: u64) -> Rig {
    let to = To::default();
    to.0.lock().articles = (1..=count)
        .map(|number| (number, article(number, 500)))
        .collect();
    let clock = Arc::new(FakeClock::new(1_767_225_600));
    let disk = MemoryDisk::new();
    let here = cached(&to, &clock, &disk, refresh_s);
    Rig {
        to,
        clock,
        disk,
        here,
    }
}

/// LIST ACTIVE, when all of it has come.
pub(crate) async fn whole_list(here: &CServer<To>) -> Result<Vec<u8>, ServiceError> {
    let mut lines = Vec::new();
    if let Some(rest) = here.active_list(&mut lines).await? {
        rest.whole().await?;
        rest.seen(|octets| lines.push(octets.to_vec().into()));
    }
    Ok(lines.concat())
}

impl Rig {
    pub(crate) async fn group(&self) -> Option<GroupInfo> {
        let name = GroupName::parse(b"misc.test").unwrap();
        self.here.group(name).await.unwrap()
    }

    /// An article by number, if it is there.
    pub(crate) async fn read(&self, number: u64) -> Result<bool, ServiceError> {
        let id = self.group().await.unwrap().id;
        let mut out = ArticleBuf::new();
        let query = ArticleQuery::ByNumber(id, ArticleNumber(number));
        let found = self.here.article(query, Part::Whole, &mut out).await?;
        if found.is_some() {
            assert_eq!(out.content(), self.wire(number).as_bytes());
        }
        Ok(found.is_some())
    }

    pub(crate) async fn read_by_id(&self, id: &str, part: Part) -> Option<Vec<u8>> {
        let mut out = ArticleBuf::new();
        let query = ArticleQuery::ById(MessageId::parse(id.as_bytes()).unwrap());
        let found = self.here.article(query, part, &mut out).await.unwrap();
        found.map(|_| out.content().to_vec())
    }

    pub(crate) fn wire(&self, number: u64) -> String {
        article(number, 500)
    }

    /// The numbers of overview lines.
    pub(crate) async fn overview(&self) -> Vec<u64> {
        let id = self.group().await.unwrap().id;
        let (mut rows, mut from) = (OverviewRows::default(), Some(ArticleNumber(1)));
        while let Some(low) = from {
            let high = ArticleNumber(u64::MAX);
            from = self
                .here
                .overview(id, low, high, 1 << 20, &mut rows)
                .await
                .unwrap();
        }
        let text = String::from_utf8(rows.text().to_vec()).unwrap();
        text.lines()
            .map(|line| line.split('\t').next().unwrap().parse().unwrap())
            .collect()
    }

    pub(crate) async fn numbers(&self) -> Vec<u64> {
        let id = self.group().await.unwrap().id;
        let (mut out, mut from) = (Vec::new(), Some(ArticleNumber(1)));
        while let Some(low) = from {
            let high = ArticleNumber(u64::MAX);
            from = self
                .here
                .numbers(id, low, high, 1000, &mut out)
                .await
                .unwrap();
        }
        out.iter().map(|number| number.0).collect()
    }

    /// The cache begins again with what is on its disk.
    pub(crate) fn restart(&mut self) {
        // One uses the directory at a time.
        self.here = cached(&self.to, &self.clock, &MemoryDisk::new(), REFRESH_S);
        self.here = cached(&self.to, &self.clock, &self.disk, REFRESH_S);
    }

    pub(crate) fn later(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

/// R2, also after a restart, and whatever it is asked for by.
#[tokio::test]
async fn what_was_read_once_is_never_asked_for_again() {
    let mut rig = rig(3, REFRESH_S);
    assert!(rig.read(2).await.unwrap());
    let asked = rig.to.asked();
    let expected = [
        "GROUP misc.test",
        "LIST ACTIVE misc.test",
        "GROUP misc.test",
        "ARTICLE 2",
    ];
    assert_eq!(asked, expected);
    rig.here.stop().await;
    let wire = rig.wire(2);
    let (head, body) = wire.split_once("\r\n\r\n").unwrap();
    for restart in [false, true] {
        if restart {
            rig.restart();
        }
        assert!(rig.read(2).await.unwrap());
        assert_eq!(
            rig.read_by_id("<2@t.example>", Part::Whole).await.unwrap(),
            wire.as_bytes()
        );
        let read = rig.read_by_id("<2@t.example>", Part::Head).await.unwrap();
        assert_eq!(read, [head.as_bytes(), b"\r\n"].concat());
        let read = rig.read_by_id("<2@t.example>", Part::Body).await.unwrap();
        assert_eq!(read, body.as_bytes());
        assert_eq!(rig.to.asked(), [""; 0], "after a restart: {restart}");
    }
}

#[tokio::test]
async fn overview_is_asked_for_once_and_then_only_what_is_new() {
    let rig = rig(300, REFRESH_S);
    assert_eq!(rig.overview().await, (1..=300).collect::<Vec<_>>());
    let lines = ["GROUP misc.test", "OVER 1-255", "OVER 256-300"];
    assert_eq!(rig.to.asked()[2..], lines);
    assert_eq!(rig.overview().await.len(), 300);
    assert_eq!(rig.numbers().await.len(), 300);
    assert_eq!(rig.to.asked(), [""; 0]);
    rig.later(REFRESH_S);
    rig.to.0.lock().articles.insert(301, article(301, 500));
    assert_eq!(rig.overview().await, (1..=301).collect::<Vec<_>>());
    let over: Vec<String> = rig
        .to
        .asked()
        .into_iter()
        .filter(|said| said.starts_with("OVER"))
        .collect();
    assert_eq!(over, ["OVER 301-301"]);
}

/// R19 and R18: within the time that was set, and not before; with a time of zero at once.
#[tokio::test]
async fn cancelled_and_reinstated_articles_and_marks_that_move_are_seen_in_time() {
    for refresh_s in [REFRESH_S, 0] {
        let rig = rig(9, refresh_s);
        assert_eq!(rig.overview().await.len(), 9);
        assert!(rig.read(4).await.unwrap());
        // What came is told for as long as it is being kept, which takes no time by the clock that is made.
        rig.here.stop().await;
        let cancelled = rig.to.0.lock().articles.remove(&4).unwrap();
        if refresh_s > 0 {
            assert!(rig.read(4).await.unwrap(), "not long ago");
            rig.later(refresh_s);
        }
        assert!(!rig.read(4).await.unwrap(), "cancelled");
        assert_eq!(rig.read_by_id("<4@t.example>", Part::Whole).await, None);
        let left = [1, 2, 3, 5, 6, 7, 8, 9];
        assert_eq!(
            (rig.overview().await, rig.numbers().await),
            (left.to_vec(), left.to_vec())
        );
        rig.to.0.lock().articles.insert(4, cancelled);
        rig.later(refresh_s);
        assert!(rig.read(4).await.unwrap(), "reinstated");
        rig.here.stop().await;
        assert_eq!(rig.overview().await.len(), 9);
        rig.to.0.lock().articles.retain(|number, _| *number > 6);
        rig.to.0.lock().articles.insert(10, article(10, 500));
        rig.later(refresh_s);
        let marks = rig
            .group()
            .await
            .map(|group| (group.low.0, group.high.0, group.count));
        assert_eq!(marks, Some((7, 10, 4)));
        assert!(!rig.read(3).await.unwrap() && rig.read(10).await.unwrap());
        // Gone, and made again with other articles under the same numbers.
        rig.to.0.lock().is_without_group = true;
        rig.later(refresh_s);
        assert_eq!(rig.group().await, None);
        rig.to.0.lock().is_without_group = false;
        rig.to.0.lock().articles = [(7, article(70, 500))].into();
        rig.later(refresh_s);
        assert_eq!(rig.overview().await, [7]);
        let id = rig.group().await.unwrap().id;
        let mut out = ArticleBuf::new();
        let query = ArticleQuery::ByNumber(id, ArticleNumber(7));
        assert!(
            rig.here
                .article(query, Part::Stat, &mut out)
                .await
                .unwrap()
                .is_some()
        );
        assert_eq!(out.id(), b"<70@t.example>");
    }
}

/// Nothing but the articles shows that the group is another one.
#[tokio::test]
async fn other_articles_under_the_same_numbers_are_not_taken_for_the_old_ones() {
    let rig = rig(3, REFRESH_S);
    assert_eq!(rig.overview().await.len(), 3);
    rig.to.0.lock().articles = (1..=3)
        .map(|number| (number, article(number + 90, 500)))
        .collect();
    let id = rig.group().await.unwrap().id;
    let mut out = ArticleBuf::new();
    let query = ArticleQuery::ByNumber(id, ArticleNumber(2));
    let found = rig.here.article(query, Part::Whole, &mut out).await;
    assert!(found.unwrap().is_some());
    assert_eq!(out.id(), b"<92@t.example>");
    assert_eq!(out.content(), article(92, 500).as_bytes());
    rig.to.asked();
    assert_eq!(rig.overview().await.len(), 3);
    let asked = rig.to.asked();
    assert!(
        asked.iter().any(|said| said.starts_with("OVER 1-")),
        "{asked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn equal_questions_at_the_same_time_are_one() {
    let rig = rig(3, REFRESH_S);
    rig.to.0.lock().round_trip = Duration::from_millis(20);
    let read = tokio::join!(rig.read(2), rig.read(2), rig.read(2));
    assert_eq!(read, (Ok(true), Ok(true), Ok(true)));
    let expected = [
        "GROUP misc.test",
        "LIST ACTIVE misc.test",
        "GROUP misc.test",
        "ARTICLE 2",
    ];
    assert_eq!(rig.to.asked(), expected);
    let id = "<3@t.example>";
    let read = tokio::join!(
        rig.read_by_id(id, Part::Body),
        rig.read_by_id(id, Part::Head)
    );
    assert!(read.0.is_some() && read.1.is_some());
    assert_eq!(rig.to.asked(), ["ARTICLE <3@t.example>"]);
    // What is not there is not asked for again, for a time.
    for _ in 0..2 {
        assert_eq!(rig.read_by_id("<99@t.example>", Part::Whole).await, None);
    }
    assert_eq!(rig.to.asked(), ["ARTICLE <99@t.example>"]);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(rig.read_by_id("<99@t.example>", Part::Whole).await, None);
    assert_eq!(rig.to.asked().len(), 1);
}

/// Overview of two thousand numbers was asked for in four round trips, and in four again once it was too old, as each window was asked for
/// when the one before it had been told.
#[tokio::test(start_paused = true)]
async fn overview_takes_one_round_trip_and_one_more_when_it_is_too_old() {
    let rig = rig(2000, REFRESH_S);
    let round_trip = Duration::from_millis(20);
    rig.to.0.lock().round_trip = round_trip;
    let trips = async |expected: u128| {
        // Marks are had before.
        let id = rig.group().await.unwrap().id;
        rig.to.asked();
        let (begun, mut seen, mut from) = (Instant::now(), 0, Some(ArticleNumber(1)));
        while let Some(low) = from {
            let (high, mut rows) = (ArticleNumber(u64::MAX), OverviewRows::default());
            let asking = rig.here.overview(id, low, high, 16 << 10, &mut rows);
            from = asking.await.unwrap();
            seen += rows.rows();
        }
        let trips = begun.elapsed().as_millis() / round_trip.as_millis();
        assert_eq!((seen, trips), (2000, expected), "{:?}", rig.to.asked());
        rig.to.asked()
    };
    let asked = trips(1).await;
    assert_eq!(asked.len(), 9, "{asked:?}");
    // What came before it was asked for is no hit.
    let of_overview = || rig.here.counts()[2].1;
    let first = of_overview();
    assert!(first.fetched.answers >= 8, "{first:?}");
    assert_eq!(trips(0).await, [""; 0]);
    assert_eq!(of_overview().fetched, first.fetched);
    rig.later(REFRESH_S);
    assert_eq!(
        trips(1).await,
        ["GROUP misc.test", "LISTGROUP misc.test 1-2000"]
    );
}

/// Two who read the same are one question there, and a connection that ends in the middle of the answer takes nothing with it that
/// had come.
#[tokio::test(start_paused = true)]
async fn overview_for_two_is_asked_for_once_also_where_a_connection_ends_in_it() {
    let rig = rig(2000, REFRESH_S);
    {
        let mut toy = rig.to.0.lock();
        toy.round_trip = Duration::from_millis(20);
        toy.cuts = Some(("OVER 768-1023", 1000));
    }
    rig.group().await;
    rig.to.asked();
    let all: Vec<u64> = (1..=2000).collect();
    let (one, two) = tokio::join!(rig.overview(), rig.overview());
    assert_eq!((&one, &two), (&all, &all));
    let asked = rig.to.asked();
    for window in ["OVER 1-255", "OVER 512-767", "OVER 1792-2000"] {
        let times = asked.iter().filter(|said| *said == window).count();
        assert_eq!(times, 1, "{window}: {asked:?}");
    }
    assert_eq!(
        asked.iter().filter(|said| *said == "OVER 768-1023").count(),
        2
    );
}

/// GROUP asked for a line of LIST ACTIVE besides, for which servers look through all of theirs, also where the list was there.
#[tokio::test]
async fn a_group_of_a_list_that_is_there_is_one_question() {
    let rig = rig(3, REFRESH_S);
    rig.to.0.lock().listed = "alt.one 7 1 m\r\n";
    whole_list(&rig.here).await.unwrap();
    rig.here.stop().await;
    rig.to.asked();
    assert!(rig.group().await.is_some());
    assert_eq!(rig.to.asked(), ["GROUP misc.test"]);
    let name = GroupName::parse(b"alt.one").unwrap();
    let moderated = rig.here.group(name).await.unwrap().unwrap();
    assert_eq!(moderated.status, GroupStatus::Moderated);
    assert_eq!(rig.to.asked(), ["GROUP alt.one"]);
}

/// The paper's weak spot: it took a round trip for each.
#[tokio::test(start_paused = true)]
async fn a_thousand_articles_read_one_behind_the_other_take_at_most_sixty_round_trips() {
    let rig = rig(1000, REFRESH_S);
    let round_trip = Duration::from_millis(20);
    rig.to.0.lock().round_trip = round_trip;
    let begun = Instant::now();
    for number in 1..=1000 {
        assert!(rig.read(number).await.unwrap());
    }
    let trips = begun.elapsed().as_millis() / round_trip.as_millis();
    assert!(trips <= 60, "{trips} round trips");
    let articles = rig
        .to
        .asked()
        .iter()
        .filter(|said| said.starts_with("ARTICLE"))
        .count();
    assert_eq!(articles, 1000, "each once");
}

/// An article that was not wanted any more, as too much had been fetched ahead, was counted as answered before its end: when the
/// connection broke off in it, what came next was kept under the number behind its own.  And who asked for it before the others
/// had come was told three times that it is lost, and then that it cannot be had.
#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_in_what_is_passed_over_shifts_no_numbers() {
    let rig = rig(31, REFRESH_S);
    {
        let mut toy = rig.to.0.lock();
        // It leaves some seven thousand octets of what may be read ahead, and the next one's header block has more.
        toy.articles.insert(18, article(18, 1_040_000));
        let fields = format!(
            "Subject: 19\r\n{}",
            format!("X: {}\r\n", "x".repeat(900)).repeat(20)
        );
        let large = article(19, 300_000).replace("Subject: 19\r\n", &fields);
        toy.articles.insert(19, large);
        toy.cuts = Some(("ARTICLE 19", 200_000));
    }
    let there = rig.to.0.lock().articles.clone();
    for _ in 0..2 {
        for (number, wire) in &there {
            let id = rig.group().await.unwrap().id;
            let mut out = ArticleBuf::new();
            let query = ArticleQuery::ByNumber(id, ArticleNumber(*number));
            let found = rig.here.article(query, Part::Whole, &mut out).await;
            assert!(found.unwrap().is_some(), "{number}");
            assert!(out.content() == wire.as_bytes(), "{number}");
        }
        rig.here.stop().await;
    }
    assert_eq!(rig.to.0.lock().cuts, None);
}

/// Each reader's place counted as the group's: two of them in one group took a round trip for each article again.
#[tokio::test(start_paused = true)]
async fn readers_at_several_places_of_a_group_are_each_read_ahead_for() {
    let rig = rig(1000, REFRESH_S);
    let round_trip = Duration::from_millis(20);
    rig.to.0.lock().round_trip = round_trip;
    let begun = Instant::now();
    for number in 1..=250 {
        for place in [0, 250, 500, 750] {
            assert!(rig.read(place + number).await.unwrap());
        }
    }
    let trips = begun.elapsed().as_millis() / round_trip.as_millis();
    assert!(trips <= 60, "{trips} round trips");
}

/// What was kept already, or known not to be there, was fetched ahead once more.
#[tokio::test]
async fn what_is_known_is_not_fetched_ahead() {
    let rig = rig(100, REFRESH_S);
    rig.to.0.lock().articles.remove(&12);
    // A post that others answered, and the group's overview.
    assert!(rig.read(10).await.unwrap());
    assert_eq!(rig.overview().await.len(), 99);
    while rig.here.kept_figures().articles < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for number in (1..=30).filter(|number| *number != 12) {
        assert!(rig.read(number).await.unwrap());
    }
    let mut asked = rig.to.asked();
    asked.retain(|said| said.starts_with("ARTICLE"));
    let all = (1..=31).filter(|number| *number != 12).count();
    assert_eq!(asked.len(), all, "{asked:?}");
}

/// Who asked first has gone: the others wait for the same answer, and it is kept.
#[tokio::test(start_paused = true)]
async fn an_article_that_its_first_reader_gave_up_is_fetched_once_for_the_others() {
    let rig = rig(3, REFRESH_S);
    assert!(rig.group().await.is_some());
    rig.to.0.lock().round_trip = Duration::from_secs(10);
    rig.to.asked();
    let gone = async {
        let reading = rig.read(2);
        let given_up = tokio::time::timeout(Duration::from_secs(1), reading).await;
        assert!(given_up.is_err());
    };
    let stays = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        rig.read(2).await
    };
    let ((), read) = tokio::join!(gone, stays);
    assert_eq!(read, Ok(true));
    assert_eq!(rig.to.asked(), ["GROUP misc.test", "ARTICLE 2"]);
    assert_eq!(rig.read(2).await, Ok(true));
    assert_eq!(rig.to.asked(), [""; 0]);
}

/// What came damaged was noted as not there, so that nobody was told of it any more; now it is asked for again.
#[tokio::test]
async fn what_comes_damaged_is_not_taken_for_gone() {
    let rig = rig(4, REFRESH_S);
    {
        let mut toy = rig.to.0.lock();
        let other = article(3, 500).replace("Message-ID:", "X-Message-ID:");
        toy.articles.insert(3, other);
    }
    let group = rig.group().await.unwrap().id;
    let mut out = ArticleBuf::new();
    let third = ArticleQuery::ByNumber(group, ArticleNumber(3));
    let read = rig.here.article(third, Part::Whole, &mut out);
    assert!(read.await.unwrap().is_some(), "it is passed on as it is");
    assert_eq!(rig.overview().await, [1, 2, 3, 4]);
    let headless = "Message-ID: <2@t.example>\r\n.\r\n".to_owned();
    rig.to.0.lock().articles.insert(2, headless);
    assert!(
        rig.read(2).await.is_err(),
        "nobody knows whether it is there"
    );
    for number in [2, 3] {
        let mut toy = rig.to.0.lock();
        toy.articles.insert(number, article(number, 500));
    }
    for number in [2, 3] {
        // Who comes while it is still put away is told the same as the one before.
        for _ in 0..1000 {
            if rig.read(number).await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        rig.to.asked();
        assert!(rig.read(number).await.unwrap(), "{number}");
        assert_eq!(rig.to.asked(), [""; 0], "{number} is kept");
    }
}

/// Whoever posted looks whether it is there.
#[tokio::test]
async fn what_was_posted_here_is_seen_at_once() {
    let rig = rig(2, REFRESH_S);
    assert_eq!(rig.overview().await, [1, 2]);
    let article = "From: me@t.example\r\nNewsgroups: misc.test\r\nSubject: x\r\n\r\nText.\r\n.\r\n";
    let post = Post {
        ticket: 1,
        id: rig.here.new_message_id(),
        poster: Arc::default(),
        article: article.into(),
    };
    let id = post.id.to_string();
    let from = Arc::new(Connection::new(ConnectionId(1), None, None));
    rig.here.post(post, &from).await;
    let mut done = Vec::new();
    from.take_completions(&mut done);
    assert_eq!(done[0].outcome, Outcome::Accepted);
    assert_eq!(rig.overview().await, [1, 2, 3]);
    let read = rig.read_by_id(&id, Part::Whole).await.unwrap();
    assert!(read.ends_with(article.as_bytes()));
}

/// What had been told by a clock that was ahead was told until that time came.
#[tokio::test]
async fn what_was_told_in_the_future_is_old() {
    let rig = rig(9, REFRESH_S);
    assert_eq!(rig.overview().await.len(), 9);
    assert!(rig.read(4).await.unwrap());
    rig.here.stop().await;
    rig.to.0.lock().articles.remove(&4);
    let secs = rig.clock.now().secs - 86_400;
    rig.clock.set(WallTime { secs, nanos: 0 });
    assert_eq!(rig.group().await.unwrap().count, 8);
    assert_eq!(rig.overview().await.len(), 8);
    assert!(!rig.read(4).await.unwrap());
    // It is told all the same where nobody can be asked.
    rig.clock.set(WallTime {
        secs: secs - 86_400,
        nanos: 0,
    });
    rig.to.0.lock().is_down = true;
    assert_eq!(rig.numbers().await.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_hides_nothing_that_is_kept() {
    let rig = rig(5, REFRESH_S);
    let list = async || whole_list(&rig.here).await;
    assert_eq!(list().await.unwrap(), b"misc.test 5 1 y\r\n");
    assert_eq!(rig.overview().await.len(), 5);
    assert!(rig.read(2).await.unwrap());
    rig.to.0.lock().is_down = true;
    rig.later(2 * REFRESH_S);
    assert!(rig.read(2).await.unwrap());
    assert_eq!(rig.overview().await.len(), 5);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(list().await.unwrap(), b"misc.test 5 1 y\r\n");
    // Not "no such article": readers would mark it read.
    assert!(rig.read(3).await.is_err());
    assert!(
        rig.read(7).await.is_ok_and(|found| !found),
        "beyond the marks"
    );
}

/// The cache's own disk fails, or there is no room for overview: everything is passed on, and nothing is told wrong.
#[tokio::test]
async fn what_cannot_be_kept_is_passed_on() {
    let faults = [
        Some(("table.redb", Op::Write)),
        Some(("table.redb", Op::Sync)),
        Some((".seg", Op::Write)),
        None,
    ];
    for fault in faults {
        let mut rig = rig(300, REFRESH_S);
        let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let mut settings = keep_settings();
        if fault.is_none() {
            (settings.overview_octets, settings.overview_memory_octets) = (1, 0);
        }
        let keep = Keep::open(&disk, &settings).unwrap();
        rig.here = in_front(&[&rig.to], &rig.clock, keep, REFRESH_S);
        for is_failing in [false, true] {
            if let Some((path, op)) = fault.filter(|_| is_failing) {
                faulty.add(Fault::new(op, path, Effect::Medium).forever());
            }
            rig.here.stop().await;
            assert_eq!(
                rig.overview().await,
                (1..=300).collect::<Vec<_>>(),
                "{fault:?}"
            );
            assert_eq!(rig.numbers().await.len(), 300, "{fault:?}");
            for number in [7, 8, 7] {
                assert!(rig.read(number).await.unwrap(), "{fault:?}");
            }
            assert!(!rig.read(301).await.unwrap(), "{fault:?}");
            // What was fetched ahead is told for as long as it is being kept, which takes no time by the clock that is made.
            rig.here.stop().await;
            rig.to.0.lock().articles.remove(&9);
            rig.later(REFRESH_S);
            assert!(!rig.read(9).await.unwrap(), "{fault:?}");
            rig.to.0.lock().articles.insert(9, article(9, 500));
            rig.later(REFRESH_S);
        }
    }
}

/// After a start without a word from the server such a reader was told that there is no such command.
#[tokio::test]
async fn offline_no_command_is_said_not_to_be_there() {
    let mut rig = rig(3, REFRESH_S);
    assert!(rig.read(1).await.unwrap());
    rig.here.stop().await;
    rig.restart();
    rig.here.set_offline(true).unwrap();
    let features = rig.here.learn_features().await;
    assert!(features.newnews && features.over_by_id);
    let everything = Wildmat::parse("*").unwrap();
    let (mut cursor, mut out) = (RemoteNewnews::default(), Vec::new());
    let since = UnixTime(0);
    let asking = rig
        .here
        .newnews(&everything, since, &mut cursor, 100, &mut out);
    assert_eq!(asking.await, Err(ServiceError::Offline));
    let mut rows = OverviewRows::default();
    for (id, told) in [
        ("<1@t.example>", Ok(true)),
        ("<2@t.example>", Err(ServiceError::Offline)),
    ] {
        let id = MessageId::parse(id.as_bytes()).unwrap();
        assert_eq!(rig.here.overview_by_id(id, &mut rows).await, told);
    }
    // What a server says that it cannot do is not there.
    rig.to.0.lock().says = Some(("CAPABILITIES", "101 list\r\nVERSION 2\r\nREADER\r\n.\r\n"));
    rig.here.set_offline(false).unwrap();
    let features = rig.here.learn_features().await;
    assert!(!features.newnews && !features.over_by_id);
}

/// A stop waited a minute for an article that a hanging server had been asked for.
#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_no_server_that_hangs() {
    let rig = rig(3, REFRESH_S);
    assert!(rig.read(1).await.unwrap());
    rig.to.0.lock().round_trip = Duration::from_secs(3600);
    let reading = tokio::time::timeout(Duration::from_secs(1), rig.read(2));
    assert!(reading.await.is_err());
    let begun = Instant::now();
    rig.here.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(10));
}
