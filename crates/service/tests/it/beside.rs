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
    NewsService, Outcome, Part, Reject,
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
    // While no list of the other side's groups can be had they are not listed; ours are.
    there.set_trouble(Trouble {
        is_away: true,
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
    // Whatever else goes wrong there is no list, and ours alone would pass for all.
    there.set_trouble(Trouble {
        reads_fail: true,
        ..Trouble::default()
    });
    let (mut cursor, mut ignored) = (
        GroupCursor::default(),
        |_: newsreel_service::GroupRow<'_>| (),
    );
    let all = GroupSelect::default();
    assert!(
        both.groups(all, &mut cursor, 9, &mut ignored)
            .await
            .is_err()
    );
    assert!(both.active_list(&mut Vec::new()).await.is_err());
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
        // Who may not read all groups is shown what is in one that he may read, whichever side it is on.
        for is_read in [true, false] {
            let (reads, mut out) = (|_: &str| is_read, ArticleBuf::new());
            let query = ArticleQuery::ById(parsed);
            let shown = both.article_for(&reads, query, Part::Whole, &mut out);
            assert_eq!(shown.await.unwrap().is_some(), is_read, "{id}");
            let mut rows = newsreel_service::OverviewRows::default();
            let told = both.overview_for(&reads, parsed, &mut rows).await;
            assert_eq!((told, rows.is_empty()), (Ok(is_read), !is_read), "{id}");
        }
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

impl Rig {
    /// What becomes of a post, with more fields, and whether it is here and there.
    async fn post(&self, id: &str, groups: &str, more: &str) -> (Outcome, bool, bool) {
        let id = MessageId::parse(id.as_bytes()).unwrap();
        let text = format!(
            "From: a@t.example\r\nNewsgroups: {groups}\r\nSubject: s\r\nMessage-ID: {}\r\n{more}\r\nx\r\n.\r\n",
            id.as_str()
        );
        let post = Post {
            ticket: 5,
            id: id.into(),
            poster: Arc::new(Poster {
                user: Some("somebody".into()),
                may_approve: true,
                ..Poster::default()
            }),
            article: Bytes::from(text),
        };
        let from = Arc::new(Connection::new(ConnectionId(1), None, None));
        self.both.post(post, &from).await;
        let mut done = Vec::new();
        poll_fn(|cx| from.poll_completions(cx, &mut done)).await;
        assert_eq!((done.len(), done[0].ticket), (1, 5));
        let has = async |side: &MemoryService| {
            let mut out = ArticleBuf::new();
            let found = side.article(ArticleQuery::ById(id), Part::Stat, &mut out);
            found.await.unwrap().is_some()
        };
        let (is_here, is_there) = (has(&self.local).await, has(&self.there).await);
        (done[0].outcome, is_here, is_there)
    }
}

/// A post is where its groups are, under one message-id; one that is refused elsewhere is nowhere.
#[tokio::test]
async fn a_post_goes_to_each_side_that_has_one_of_its_groups() {
    let rig = rig();
    let post = async |id: &str, groups: &str| {
        let (outcome, is_here, is_there) = rig.post(id, groups, "").await;
        (outcome == Outcome::Accepted, is_here, is_there)
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
    rig.there.set_trouble(Trouble {
        transfers: Some(Outcome::Failed),
        ..Trouble::default()
    });
    assert_eq!(
        post("<6@t.example>", "a.local,b.there").await,
        (false, false, false)
    );
    assert_eq!(post("<7@t.example>", "a.local").await, (true, true, false));
}

/// What this side would refuse went out all the same, and was told as posted.
#[tokio::test]
async fn a_post_that_is_refused_here_is_not_posted_elsewhere() {
    let rig = rig();
    rig.local.add_group("c.shut", "n", "");
    assert_eq!(
        rig.post("<1@t.example>", "b.there,c.shut", "").await,
        (Outcome::Rejected(Reject::NoPosting), false, false)
    );
}

/// Where this side fails when it is out already, its poster is not to post it again; who does all the same makes it whole.
#[tokio::test]
async fn a_post_that_one_side_lacks_is_made_whole_when_it_is_posted_again() {
    let rig = rig();
    let groups = "a.local,b.there";
    rig.local.set_trouble(Trouble {
        transfers: Some(Outcome::Failed),
        ..Trouble::default()
    });
    let halved = rig.post("<1@t.example>", groups, "").await;
    assert_eq!(halved, (Outcome::Accepted, false, true));
    rig.local.set_trouble(Trouble::default());
    let whole = rig.post("<1@t.example>", groups, "").await;
    assert_eq!(whole, (Outcome::Accepted, true, true));
    let again = rig.post("<1@t.example>", groups, "").await;
    assert_eq!(again, (Outcome::Duplicate, true, true));
}

/// What is for a moderator of either side is in no group of the other before it is approved.
#[tokio::test]
async fn a_post_for_a_moderator_is_in_no_group() {
    let moderated = |group: &str, open: &str| {
        let config = MemoryConfig {
            moderators: vec!["*:%s@mod.example".to_owned()],
            ..MemoryConfig::default()
        };
        let service = MemoryService::new(config, UnixTime(1_767_225_600));
        service.add_group(group, "m", "");
        service.add_group(open, "y", "");
        Arc::new(service)
    };
    let local = moderated("mod.local", "a.local");
    let there = moderated("mod.there", "b.there");
    let both = Beside::new(Arc::clone(&local), Arc::clone(&there));
    let rig = Rig { local, there, both };
    for (id, groups, mails) in [
        ("<1@t.example>", "b.there,mod.local", (1, 0)),
        ("<2@t.example>", "a.local,mod.there,mod.local", (1, 1)),
    ] {
        let mailed = rig.post(id, groups, "").await;
        assert_eq!(mailed, (Outcome::Accepted, false, false), "{groups}");
        assert_eq!((rig.local.mails().len(), rig.there.mails().len()), mails);
        let approved = rig.post(id, groups, "Approved: m@mod.example\r\n").await;
        assert_eq!(approved, (Outcome::Accepted, true, true), "{groups}");
    }
}

/// How often somebody may post holds wherever the groups are; what names too many groups is asked for nowhere.
#[tokio::test]
async fn limits_of_posts_hold_for_groups_that_are_elsewhere() {
    let mut config = MemoryConfig::default();
    config.posting.articles_per_day_max = 2;
    let local = Arc::new(MemoryService::new(config, UnixTime(1_767_225_600)));
    local.add_group("a.local", "y", "");
    let there = memory(&["b.there"], "");
    let both = Beside::new(Arc::clone(&local), Arc::clone(&there));
    let rig = Rig { local, there, both };
    let first = rig.post("<1@t.example>", "b.there", "").await;
    assert_eq!(first, (Outcome::Accepted, false, true));
    let second = rig.post("<2@t.example>", "a.local,b.there", "").await;
    assert_eq!(second, (Outcome::Accepted, true, true));
    for groups in ["b.there", "a.local,b.there"] {
        let used = Outcome::Rejected(Reject::QuotaUsed);
        let third = rig.post("<3@t.example>", groups, "").await;
        assert_eq!(third, (used, false, false), "{groups}");
    }
    rig.there.set_trouble(Trouble {
        is_away: true,
        transfers: Some(Outcome::Failed),
        ..Trouble::default()
    });
    let names: Vec<String> = (0..11).map(|n| format!("g.{n}")).collect();
    let from = Arc::new(Connection::new(ConnectionId(1), None, None));
    let id = MessageId::parse(b"<4@t.example>").unwrap();
    let post = Post {
        ticket: 5,
        id: id.into(),
        poster: Arc::default(),
        article: format!(
            "From: a@t.example\r\nNewsgroups: {}\r\nSubject: s\r\n\r\nx\r\n.\r\n",
            names.join(",")
        )
        .into(),
    };
    rig.both.post(post, &from).await;
    let mut done = Vec::new();
    from.take_completions(&mut done);
    let refused = Outcome::Rejected(Reject::TooManyGroups);
    assert_eq!(done[0].outcome, refused);
}
