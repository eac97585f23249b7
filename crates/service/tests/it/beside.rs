//! Two services as one: the suite over groups of a server's own, and both sides in one list.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use newsreel_service::conformance::{Maker, run};
use newsreel_service::memory::{MemoryConfig, MemoryService, Trouble};
use newsreel_service::posting::{Post, Poster};
use newsreel_service::{
    ArticleBuf, ArticleQuery, Beside, Connection, ConnectionId, GroupCursor, GroupSelect,
    NewsService, Outcome, Part,
};
use newsreel_wire::{ArticleNumber, GroupName, MessageId, UnixTime, Wildmat};

type Both = Beside<MemoryService, MemoryService>;

fn memory(groups: &[&str], description: &str) -> Arc<MemoryService> {
    let service = MemoryService::new(MemoryConfig::default(), UnixTime(1_767_225_600));
    for group in groups {
        service.add_group(group, "y", description);
    }
    Arc::new(service)
}

struct Local;

impl Maker for Local {
    type Service = Both;

    async fn make(&self, groups: &[&str]) -> Arc<Both> {
        Arc::new(Beside::new(memory(groups, ""), memory(&[], "")))
    }

    fn path_identity(&self) -> String {
        MemoryConfig::default().path_identity
    }
}

struct There;

impl Maker for There {
    type Service = Both;

    async fn make(&self, groups: &[&str]) -> Arc<Both> {
        Arc::new(Beside::new(memory(&[], ""), memory(groups, "")))
    }

    fn path_identity(&self) -> String {
        MemoryConfig::default().path_identity
    }
}

/// Whoever has nothing beside its own groups is the same server as before.
#[tokio::test]
async fn a_server_with_groups_of_its_own_alone_conforms() {
    let failures = run(&Local).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Of what is there alone everything can be read and posted to; only articles from peers are not for it.
#[tokio::test]
async fn groups_that_are_elsewhere_are_posted_to() {
    let failures =
        newsreel_service::conformance::run_some(&There, "posting::a_post_is_injected").await;
    assert!(failures.is_empty(), "{failures:#?}");
}

struct Rig {
    local: Arc<MemoryService>,
    there: Arc<MemoryService>,
    both: Both,
}

fn rig() -> Rig {
    let local = memory(&["a.local", "m.both", "z.local"], "ours");
    let there = memory(&["b.there", "m.both", "q.there"], "theirs");
    let both = Beside::new(Arc::clone(&local), Arc::clone(&there));
    Rig { local, there, both }
}

fn name(text: &str) -> GroupName<'_> {
    GroupName::parse(text.as_bytes()).unwrap()
}

fn article(id: &str, groups: &str) -> Vec<u8> {
    format!(
        "Path: p!x\r\nFrom: a@t.example\r\nNewsgroups: {groups}\r\nSubject: s\r\nDate: Thu, 01 Jan 2026 00:00:00 +0000\r\n\
         Message-ID: {id}\r\n\r\nx\r\n.\r\n"
    )
    .into_bytes()
}

async fn listed(both: &Both, select: GroupSelect<'_>, limit: usize) -> Vec<(String, String)> {
    let (mut cursor, mut all) = (GroupCursor::default(), Vec::new());
    while !cursor.is_done() {
        let mut some = 0;
        let mut visit = |row: newsreel_service::GroupRow<'_>| {
            some += 1;
            all.push((row.name.as_str().to_owned(), row.description.to_owned()));
        };
        both.groups(select, &mut cursor, limit, &mut visit)
            .await
            .unwrap();
        assert!(some <= limit);
    }
    all
}

/// Each group is listed once and in order, however many are wanted at a time; one of this server's own hides one there, whatever is selected.
#[tokio::test]
async fn both_sides_are_one_list() {
    let Rig { local, there, both } = rig();
    let expected = [
        ("a.local", "ours"),
        ("b.there", "theirs"),
        ("m.both", "ours"),
        ("q.there", "theirs"),
        ("z.local", "ours"),
    ]
    .map(|(name, of)| (name.to_owned(), of.to_owned()));
    for limit in 1..8 {
        assert_eq!(
            listed(&both, GroupSelect::default(), limit).await,
            expected,
            "{limit}"
        );
    }
    let wildmat = Wildmat::parse("?.there,m.*").unwrap();
    let select = GroupSelect {
        wildmat: Some(&wildmat),
        ..GroupSelect::default()
    };
    assert_eq!(listed(&both, select, 2).await, expected[1..4]);
    let mut pieces = Vec::new();
    both.active_list(&mut pieces).await.unwrap();
    let text = String::from_utf8(pieces.concat()).unwrap();
    let mut names: Vec<&str> = text
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["a.local", "b.there", "m.both", "q.there", "z.local"]
    );
    // While the other side cannot be had its groups are not listed; ours are.
    there.set_trouble(Trouble {
        reads_fail: true,
        ..Trouble::default()
    });
    let own: Vec<String> = listed(&both, GroupSelect::default(), 9)
        .await
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(own, ["a.local", "m.both", "z.local"]);
    let mut pieces = Vec::new();
    both.active_list(&mut pieces).await.unwrap();
    assert_eq!(
        pieces
            .concat()
            .iter()
            .filter(|octet| **octet == b'\n')
            .count(),
        3
    );
    assert!(both.group(name("b.there")).await.is_err());
    assert!(both.group(name("m.both")).await.unwrap().is_some());
    drop(local);
}

async fn read(both: &Both, query: ArticleQuery<'_>) -> Option<Vec<u8>> {
    let mut out = ArticleBuf::new();
    let found = both.article(query, Part::Whole, &mut out).await.unwrap();
    found.map(|_| out.content().to_vec())
}

/// Numbers are those of the side that the group is on; message-ids find what either side has.
#[tokio::test]
async fn articles_are_read_from_the_side_that_has_them() {
    let Rig { local, there, both } = rig();
    let ours = article("<1@t.example>", "a.local");
    let theirs = article("<2@t.example>", "b.there,m.both");
    there.raise("b.there", 100);
    assert_eq!(local.inject(b"<1@t.example>", &ours), Outcome::Accepted);
    assert_eq!(there.inject(b"<2@t.example>", &theirs), Outcome::Accepted);
    for (group, number, id) in [
        ("a.local", 1, "<1@t.example>"),
        ("b.there", 100, "<2@t.example>"),
    ] {
        let info = both.group(name(group)).await.unwrap().unwrap();
        assert_eq!((info.count, info.high.0), (1, number));
        let (mut numbers, mut rows) = (Vec::new(), newsreel_service::OverviewRows::default());
        let range = (ArticleNumber(1), ArticleNumber(1000));
        both.numbers(info.id, range.0, range.1, 10, &mut numbers)
            .await
            .unwrap();
        assert_eq!(numbers, [ArticleNumber(number)]);
        both.overview(info.id, range.0, range.1, 1 << 16, &mut rows)
            .await
            .unwrap();
        assert!(String::from_utf8_lossy(rows.text()).contains(id));
        let mut out = ArticleBuf::new();
        let before = ArticleNumber(number - 1);
        let next = both
            .neighbour(info.id, before, newsreel_service::Direction::Next, &mut out)
            .await;
        assert_eq!(next.unwrap(), Some(ArticleNumber(number)));
        let parsed = MessageId::parse(id.as_bytes()).unwrap();
        let by_number = read(
            &both,
            ArticleQuery::ByNumber(info.id, ArticleNumber(number)),
        )
        .await
        .unwrap();
        let by_id = read(&both, ArticleQuery::ById(parsed)).await.unwrap();
        assert!(String::from_utf8_lossy(&by_number).contains(id));
        assert_eq!(by_number, by_id);
        let mut rows = newsreel_service::OverviewRows::default();
        assert!(both.overview_by_id(parsed, &mut rows).await.unwrap());
    }
    // The group of that name there is hidden.
    assert_eq!(both.group(name("m.both")).await.unwrap().unwrap().count, 0);
    let none = MessageId::parse(b"<9@t.example>").unwrap();
    assert_eq!(read(&both, ArticleQuery::ById(none)).await, None);
    let (wildmat, mut told) = (Wildmat::parse("*").unwrap(), Vec::new());
    let (mut cursor, mut goes_on) = (Default::default(), true);
    while goes_on {
        let mut out = Vec::new();
        let telling = both.newnews(&wildmat, UnixTime(0), &mut cursor, 1, &mut out);
        goes_on = telling.await.unwrap();
        told.extend(out);
    }
    assert_eq!(
        String::from_utf8_lossy(&told),
        "<1@t.example>\r\n<2@t.example>\r\n"
    );
}

/// A post is where its groups are, under one message-id; one that is refused elsewhere is nowhere.
#[tokio::test]
async fn a_post_goes_to_each_side_that_has_one_of_its_groups() {
    let Rig { local, there, both } = rig();
    let from = Arc::new(Connection::new(ConnectionId(1), None, None));
    let post = async |id: &str, groups: &str| {
        let id = MessageId::parse(id.as_bytes()).unwrap();
        let text = format!(
            "From: a@t.example\r\nNewsgroups: {groups}\r\nSubject: s\r\nMessage-ID: {}\r\n\r\nx\r\n.\r\n",
            id.as_str()
        );
        let post = Post {
            ticket: 5,
            id: id.into(),
            poster: Arc::new(Poster::default()),
            article: Bytes::from(text),
        };
        both.post(post, &from).await;
        let mut done = Vec::new();
        poll_fn(|cx| from.poll_completions(cx, &mut done)).await;
        assert_eq!((done.len(), done[0].ticket), (1, 5));
        let mut out = ArticleBuf::new();
        let query = ArticleQuery::ById(id);
        let is_here = local
            .article(query, Part::Stat, &mut out)
            .await
            .unwrap()
            .is_some();
        let is_there = there
            .article(query, Part::Stat, &mut out)
            .await
            .unwrap()
            .is_some();
        (done[0].outcome == Outcome::Accepted, is_here, is_there)
    };
    assert_eq!(post("<1@t.example>", "a.local").await, (true, true, false));
    assert_eq!(post("<2@t.example>", "b.there").await, (true, false, true));
    assert_eq!(
        post("<3@t.example>", "z.local,q.there").await,
        (true, true, true)
    );
    assert_eq!(post("<4@t.example>", "m.both").await, (true, true, false));
    assert_eq!(
        post("<5@t.example>", "no.such").await,
        (false, false, false)
    );
    there.set_trouble(Trouble {
        transfers: Some(Outcome::Failed),
        ..Trouble::default()
    });
    assert_eq!(
        post("<6@t.example>", "a.local,b.there").await,
        (false, false, false)
    );
    assert_eq!(post("<7@t.example>", "a.local").await, (true, true, false));
}
