//! A service elsewhere, asked over NNTP, and a cache in front of it: what readers are told is what the service there tells.
//!
//! The service there is the one in memory, served by sessions of ours; what conformance checks take goes into it directly,
//! and what they read comes by the client.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use newsreel_cache::keep::{Keep, KeepSettings};
use newsreel_cache::policies::PolicyKind;
use newsreel_cache::{CServer, CacheSettings, RServer, RemoteSettings, Route};
use newsreel_host::{Disk, FakeClock, MemoryDisk};
use newsreel_net::access::{Door, Grant};
use newsreel_net::client::{Client, ClientError, Connect, Pool, PoolLimits, Remote};
use newsreel_net::{Drain, Stream};
use newsreel_service::conformance::{Maker, run_some};
use newsreel_service::memory::{MemoryConfig, MemoryService};
use newsreel_service::posting::{Post, Poster, PostingConfig};
use newsreel_service::{
    Arriving, ArticleBuf, ArticleQuery, Connection, ConnectionId, Direction, Features, Found,
    GroupCursor, GroupInfo, GroupRow, GroupSelect, NewsService, Offer, OfferedId, Outcome,
    OverviewRows, Part, Reject, ServiceError, Transfer,
};
use newsreel_session::{Lists, ListsConfig, Metrics, SessionConfig, Shared, serve};
use newsreel_testkit::CLOCK_START_S;
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupId, GroupName, MessageId, UnixTime};
use tokio::io::{DuplexStream, duplex};

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The way to the service there.
#[derive(Debug)]
struct There {
    service: Arc<MemoryService>,
    drain: Drain,
    came: AtomicU64,
}

impl Connect for There {
    type Io = DuplexStream;

    fn name(&self) -> String {
        "there".to_owned()
    }

    async fn connect(&self) -> Result<Client<DuplexStream>, ClientError> {
        let (ours, theirs) = duplex(64 << 10);
        let number = self.came.fetch_add(1, Ordering::Relaxed);
        let connection = Connection::new(ConnectionId(number), Some(ADDRESS), None);
        let lists = Lists::new(&ListsConfig::default(), &MemoryConfig::default().moderators);
        let metrics = Arc::new(Metrics::default());
        let session = serve(
            Stream::Plain(theirs),
            self.service.clone(),
            Shared::new(SessionConfig::default(), lists, metrics),
            connection,
            Door::open(Grant::everything("there"), ADDRESS),
            self.drain.watch(),
        );
        #[expect(
            clippy::disallowed_methods,
            reason = "a test's runtime ends all its tasks"
        )]
        tokio::spawn(session);
        Client::open(ours, &Remote::reader("there")).await
    }
}

/// Takes there, reads from here.
#[derive(Debug)]
struct Both<S> {
    there: Arc<MemoryService>,
    here: S,
}

async fn both(groups: &[&str]) -> Both<RServer<There>> {
    let there = MemoryService::new(MemoryConfig::default(), UnixTime(CLOCK_START_S));
    for group in groups {
        there.add_group(group, "y", "");
    }
    let there = Arc::new(there);
    let connect = There {
        service: there.clone(),
        drain: Drain::new(),
        came: AtomicU64::new(1),
    };
    let second = Duration::from_secs(60);
    let limits = PoolLimits {
        connections_max: 2,
        idle: second,
        wait: second,
    };
    let pool = Pool::new(connect, limits);
    // What the service there can do is known after the first connection.
    pool.lend().await.unwrap().give_back();
    let settings = RemoteSettings {
        article_octets_max: 1 << 20,
        passed_on_octets_max: 1 << 20,
        groups_max: 1000,
        list_refresh: Duration::ZERO,
        list_whole: Duration::ZERO,
        missing_refresh: Duration::ZERO,
        forwarded: Vec::new(),
        posting: PostingConfig::default(),
        host: "here.example".to_owned(),
    };
    let clock = Arc::new(FakeClock::new(CLOCK_START_S));
    let route = Route {
        name: "there".to_owned(),
        groups: Wildmat::parse("*").unwrap(),
        tier: 0,
        posting: true,
    };
    let here = RServer::new(vec![(pool, route)], clock, settings, 1);
    let name = GroupName::parse(b"no.such.group").unwrap();
    assert_eq!(here.group(name).await, Ok(None));
    Both { there, here }
}

/// The same with a cache that asks each time whether anything has changed.
async fn cached(groups: &[&str]) -> Both<CServer<There>> {
    let Both { there, here } = both(groups).await;
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let settings = KeepSettings {
        directory: "/cache".into(),
        octets: KeepSettings::OCTETS_MIN,
        large_octets: 2000,
        overview_octets: 1 << 20,
        makes_lines: false,
        memory_octets: 1 << 20,
        overview_memory_octets: 1 << 20,
        table_memory_octets: 1 << 20,
        policy: PolicyKind::Lrug,
        policy_articles_max: 100_000,
        pinned_octets: 0,
    };
    let keep = Arc::new(Keep::open(&disk, &settings).unwrap());
    let settings = CacheSettings {
        refresh_s: 0,
        read_ahead_max: 8,
        read_ahead_octets_max: 1 << 20,
        offline_kept_only: false,
    };
    let here = CServer::new(here, keep, settings, None);
    Both { there, here }
}

impl<S: NewsService> NewsService for Both<S> {
    type NewnewsCursor = S::NewnewsCursor;

    fn features(&self) -> Features {
        self.here.features()
    }

    fn now(&self) -> UnixTime {
        self.there.now()
    }

    async fn group(&self, name: GroupName<'_>) -> Result<Option<GroupInfo>, ServiceError> {
        self.here.group(name).await
    }

    async fn groups(
        &self,
        select: GroupSelect<'_>,
        cursor: &mut GroupCursor,
        limit: usize,
        visit: &mut (dyn FnMut(GroupRow<'_>) + Send),
    ) -> Result<(), ServiceError> {
        self.here.groups(select, cursor, limit, visit).await
    }

    async fn active_list(
        &self,
        out: &mut Vec<Bytes>,
    ) -> Result<Option<Arc<Arriving>>, ServiceError> {
        self.here.active_list(out).await
    }

    async fn numbers(
        &self,
        group: GroupId,
        low: ArticleNumber,
        high: ArticleNumber,
        limit: usize,
        out: &mut Vec<ArticleNumber>,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        self.here.numbers(group, low, high, limit, out).await
    }

    async fn overview(
        &self,
        group: GroupId,
        low: ArticleNumber,
        high: ArticleNumber,
        limit_bytes: usize,
        rows: &mut OverviewRows,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        self.here
            .overview(group, low, high, limit_bytes, rows)
            .await
    }

    async fn overview_by_id(
        &self,
        id: MessageId<'_>,
        rows: &mut OverviewRows,
    ) -> Result<bool, ServiceError> {
        self.here.overview_by_id(id, rows).await
    }

    async fn neighbour(
        &self,
        group: GroupId,
        number: ArticleNumber,
        direction: Direction,
        out: &mut ArticleBuf,
    ) -> Result<Option<ArticleNumber>, ServiceError> {
        self.here.neighbour(group, number, direction, out).await
    }

    async fn article(
        &self,
        query: ArticleQuery<'_>,
        part: Part,
        out: &mut ArticleBuf,
    ) -> Result<Option<Found>, ServiceError> {
        self.here.article(query, part, out).await
    }

    async fn newnews(
        &self,
        wildmat: &Wildmat,
        since: UnixTime,
        cursor: &mut Self::NewnewsCursor,
        limit_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, ServiceError> {
        self.here
            .newnews(wildmat, since, cursor, limit_bytes, out)
            .await
    }

    async fn offer(&self, id: MessageId<'_>, from: &Arc<Connection>) -> Offer {
        self.there.offer(id, from).await
    }

    async fn transfer(&self, batch: &mut Vec<Transfer>, from: &Arc<Connection>) {
        self.there.transfer(batch, from).await;
    }

    fn new_message_id(&self) -> OfferedId {
        self.here.new_message_id()
    }

    async fn post(&self, post: Post, from: &Arc<Connection>) {
        self.here.post(post, from).await;
    }

    fn decline(&self, id: MessageId<'_>, from: &Connection) {
        self.there.decline(id, from);
    }

    fn release(&self, from: &Connection) {
        self.there.release(from);
    }
}

struct Remotely;

impl Maker for Remotely {
    type Service = Both<RServer<There>>;

    async fn make(&self, groups: &[&str]) -> Arc<Self::Service> {
        Arc::new(both(groups).await)
    }

    fn path_identity(&self) -> String {
        MemoryConfig::default().path_identity
    }
}

struct Cached;

impl Maker for Cached {
    type Service = Both<CServer<There>>;

    async fn make(&self, groups: &[&str]) -> Arc<Self::Service> {
        Arc::new(cached(groups).await)
    }

    fn path_identity(&self) -> String {
        MemoryConfig::default().path_identity
    }
}

/// The checks that read.
async fn check<M: Maker>(maker: &M) {
    for checks in [
        "reading::",
        "comes_back_as_it_was_sent",
        "large_articles",
        "crossposts",
    ] {
        let checked = run_some(maker, checks);
        let failures = tokio::time::timeout(Duration::from_secs(60), checked).await;
        assert_eq!(failures.unwrap(), [] as [String; 0], "{checks}");
    }
}

#[tokio::test]
async fn a_service_elsewhere_conforms() {
    check(&Remotely).await;
}

#[tokio::test]
async fn a_cache_in_front_of_it_conforms() {
    check(&Cached).await;
}

/// A post goes there with the message-id its poster was told, and what is refused there is refused here.
#[tokio::test]
async fn posts_go_to_the_service_elsewhere() {
    let both = both(&["misc.test"]).await;
    let from = Arc::new(Connection::new(ConnectionId(1 << 50), Some(ADDRESS), None));
    let mine = Poster {
        groups: Some(Wildmat::parse("misc.*,no.*").unwrap()),
        ..Poster::default()
    };
    let mine = Arc::new(mine);
    let mut outcomes = Vec::new();
    for (ticket, groups, more) in [
        (1, "misc.test", ""),
        (2, "no.such.group", ""),
        (3, "misc.test,alt.test", ""),
        (4, "misc.test", "Approved: me@example.org\r\n"),
    ] {
        let article = format!(
            "From: A Poster <poster@example.org>\r\nNewsgroups: {groups}\r\nSubject: x\r\n{more}\r\nText.\r\n.\r\n"
        );
        let post = Post {
            ticket,
            id: both.new_message_id(),
            poster: mine.clone(),
            article: article.into(),
        };
        let id = post.id.clone();
        both.post(post, &from).await;
        let mut done = Vec::new();
        from.take_completions(&mut done);
        outcomes.extend(done.iter().map(|done| done.outcome));
        let mut out = ArticleBuf::new();
        let id = MessageId::parse(id.as_bytes()).unwrap();
        let found = both
            .article(ArticleQuery::ById(id), Part::Stat, &mut out)
            .await;
        assert_eq!(found.unwrap().is_some(), ticket == 1);
    }
    let refused = |why| Outcome::Rejected(why);
    let expected = [
        Outcome::Accepted,
        Outcome::RejectedWith(
            Reject::RefusedElsewhere,
            "Refused by the server it was sent on to: No such newsgroups here",
        ),
        refused(Reject::NotAllowed),
        refused(Reject::NoApproval),
    ];
    assert_eq!(outcomes, expected);
}
