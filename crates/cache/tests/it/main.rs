//! What a server elsewhere may say wrong, and when it may close: the service passes none of it on.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod cached;
mod counted;
mod far;
mod generations;
mod gone;
mod kept_only;
mod let_go;
mod limited;
mod lists;
mod made;
mod million;
mod odd;
mod posting;
mod prefetch;
mod several;
mod shown;
mod silent;
mod toy;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use newsreel_cache::{Forwarded, RServer, RemoteNewnews, RemoteSettings, Route};
use newsreel_host::FakeClock;
use newsreel_net::client::{Client, ClientError, Connect, Pool, PoolLimits, Remote};
use newsreel_service::posting::PostingConfig;
use newsreel_service::{
    ArticleBuf, ArticleQuery, GroupCursor, GroupSelect, NewsService, OverviewRows, Part,
    ServiceError,
};
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, GroupId, GroupName, MessageId, UnixTime};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};

/// What one connection expects and answers; at its end it closes.
type Script = &'static [(&'static str, &'static str)];

/// How long what stands behind a form feed takes to come.
const LATER: Duration = Duration::from_millis(300);

/// A server that follows a script for each connection.
#[derive(Debug)]
struct Scripted(Mutex<VecDeque<Script>>);

async fn follow(io: DuplexStream, script: Script) {
    let mut io = BufReader::new(io);
    let mut said = String::new();
    io.write_all(b"200 ready\r\n").await.unwrap();
    io.read_line(&mut said).await.unwrap();
    io.write_all(b"101 list\r\nREADER\r\nOVER MSGID\r\nNEWNEWS\r\n.\r\n")
        .await
        .unwrap();
    for (expected, answer) in script {
        said.clear();
        io.read_line(&mut said).await.unwrap();
        assert_eq!(said, format!("{expected}\r\n"));
        let answer = answer.replace('\n', "\r\n");
        // What stands behind this comes later.
        for (place, piece) in answer.split('\u{c}').enumerate() {
            if place > 0 {
                tokio::time::sleep(LATER).await;
            }
            if io.write_all(piece.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

impl Connect for Scripted {
    type Io = DuplexStream;

    fn name(&self) -> String {
        "up".to_owned()
    }

    async fn connect(&self) -> Result<Client<DuplexStream>, ClientError> {
        let (ours, theirs) = duplex(64 << 10);
        let script = self.0.lock().pop_front().unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "a test's runtime ends all its tasks"
        )]
        tokio::spawn(follow(theirs, script));
        Client::open(ours, &Remote::reader("up")).await
    }
}

fn server(scripts: &[Script]) -> RServer<Scripted> {
    let minute = Duration::from_secs(60);
    let limits = PoolLimits {
        connections_max: 1,
        idle: minute,
        wait: minute,
    };
    let scripts = Mutex::new(scripts.iter().copied().collect());
    let settings = RemoteSettings {
        article_octets_max: 1000,
        passed_on_octets_max: 1000,
        groups_max: 2,
        list_refresh: minute,
        list_whole: 10 * minute,
        missing_refresh: minute,
        forwarded: ["XPATH", "XTHREAD 288", "XNUMS"]
            .map(|it| Forwarded::parse(it).unwrap())
            .to_vec(),
        posting: PostingConfig::default(),
        host: "here.example".to_owned(),
    };
    let clock = Arc::new(FakeClock::new(1_767_225_600));
    let pool = Pool::new(Scripted(scripts), limits);
    RServer::new(vec![(pool, everything("up", 0))], clock, settings, 1)
}

/// A server that is asked for all groups.
fn everything(name: &str, tier: u32) -> Route {
    Route {
        name: name.to_owned(),
        groups: Wildmat::parse("*").unwrap(),
        tier,
        posting: true,
    }
}

const GROUP: (&str, &str) = ("GROUP misc.test", "211 3 1 5 misc.test\n");
const ACTIVE: (&str, &str) = ("LIST ACTIVE misc.test", "215 list\nmisc.test 5 1 m\n.\n");

async fn group(server: &RServer<Scripted>) -> GroupId {
    let name = GroupName::parse(b"misc.test").unwrap();
    server.group(name).await.unwrap().unwrap().id
}

async fn asked(server: &RServer<Scripted>, id: &str) -> Result<Option<String>, ServiceError> {
    let mut out = ArticleBuf::new();
    let id = ArticleQuery::ById(MessageId::parse(id.as_bytes()).unwrap());
    let found = server.article(id, Part::Whole, &mut out).await?;
    Ok(found.map(|_| String::from_utf8_lossy(out.content()).into_owned()))
}

/// The server closes an idle connection just as it is used: another one is asked, and nobody notices; a second time is
/// an error.
#[tokio::test(start_paused = true)]
async fn a_connection_that_closes_under_a_question_is_replaced_once() {
    const WHOLE: &str = "220 0 <a@b>\nSubject: x\n\n.\n";
    let server = server(&[
        &[
            ("ARTICLE <a@b>", WHOLE),
            ("ARTICLE <a@b>", "220 0 <a@b>\nSubject: c"),
        ],
        &[("ARTICLE <a@b>", WHOLE), ("STAT <c@d>", "")],
        &[],
    ]);
    let expected = "Subject: x\r\n\r\n.\r\n";
    assert_eq!(asked(&server, "<a@b>").await.unwrap().unwrap(), expected);
    assert_eq!(asked(&server, "<a@b>").await.unwrap().unwrap(), expected);
    let mut out = ArticleBuf::new();
    let id = ArticleQuery::ById(MessageId::parse(b"<c@d>").unwrap());
    assert!(server.article(id, Part::Stat, &mut out).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_was_not_asked_for_is_not_passed_on() {
    const OTHER: (&str, &str) = ("ARTICLE <a@b>", "220 0 <other@b>\nSubject: x\n\n.\n");
    let long = format!("220 0 <long@b>\n{}.\n", "0123456789\n".repeat(100));
    let first: Script = Box::leak(Box::new([
        ("ARTICLE <b@b>", "430 none\n"),
        ("ARTICLE <long@b>", &*long.leak()),
    ]));
    let server = server(&[
        &[OTHER],
        first,
        &[
            GROUP,
            ACTIVE,
            GROUP,
            ("HEAD 2", "221 3 <c@b>\nSubject: x\n.\n"),
        ],
        &[
            GROUP,
            (
                "OVER 2-4",
                "224 list\n1\ts\tf\td\t<1@b>\t\t1\t1\n3\ts\tf\td\t<3@b>\t\t1\t1\n3\ts\tf\td\t<4@b>\t\t1\t1\n\
                 4\tnot\tenough\n9\ts\tf\td\t<9@b>\t\t1\t1\n.\n",
            ),
        ],
    ]);
    // That is no word about the article that was asked for.
    assert_eq!(asked(&server, "<a@b>").await, Err(ServiceError::Away));
    assert_eq!(asked(&server, "<b@b>").await, Ok(None));
    assert!(asked(&server, "<long@b>").await.is_err());
    let group = group(&server).await;
    let mut out = ArticleBuf::new();
    let query = ArticleQuery::ByNumber(group, ArticleNumber(2));
    let other = server.article(query, Part::Head, &mut out).await;
    assert_eq!(other, Err(ServiceError::Away));
    let mut rows = OverviewRows::default();
    let (low, high) = (ArticleNumber(2), ArticleNumber(4));
    let next = server.overview(group, low, high, 64 << 10, &mut rows).await;
    assert_eq!(next, Ok(None));
    let text = String::from_utf8_lossy(rows.text());
    assert_eq!(text, "3\ts\tf\td\t<3@b>\t\t1\t1\r\n");
}

/// A list is fetched once while it is fresh; no more groups are taken than may be; a listing that goes on uses it.
#[tokio::test(start_paused = true)]
async fn the_list_is_fetched_once_and_has_a_limit() {
    let server = server(&[&[
        (
            "LIST ACTIVE",
            "215 list\nmisc.test 5 1 m\nbad..name 1 1 y\nalt.test 0 1 y\nrec.test 1 1 y\n.\n",
        ),
        (
            "LIST NEWSGROUPS",
            "215 list\nmisc.test\tFor \ttests\nother.test x\n.\n",
        ),
        ("LIST ACTIVE.TIMES", "503 no\n"),
    ]]);
    let mut cursor = GroupCursor::default();
    let mut got = Vec::new();
    while !cursor.is_done() {
        let mut visit = |row: newsreel_service::GroupRow<'_>| {
            let (name, status) = (row.name.as_str().to_owned(), row.status.to_owned());
            got.push(format!("{name} {status} {}", row.description));
        };
        let select = GroupSelect::default();
        server
            .groups(select, &mut cursor, 1, &mut visit)
            .await
            .unwrap();
    }
    assert_eq!(got, ["alt.test y ", "misc.test m For \ttests"]);
    let mut pieces = Vec::new();
    server.active_list(&mut pieces).await.unwrap();
    assert_eq!(pieces.concat(), b"alt.test 0 1 y\r\nmisc.test 5 1 m\r\n");
}

/// Once so many groups had been met one new one made every listing an error.
#[tokio::test(start_paused = true)]
async fn groups_that_come_and_go_end_no_listing() {
    let server = server(&[&[
        ("LIST ACTIVE", "215 list\na.a 5 1 m\na.b 5 1 m\n.\n"),
        ("LIST ACTIVE", "215 list\na.c 5 1 m\na.d 5 1 m\n.\n"),
        ("LIST ACTIVE", "215 list\na.d 5 1 m\na.e 5 1 m\n.\n"),
    ]]);
    for expected in [&["a.a", "a.b"][..], &["a.c", "a.d"], &["a.d"]] {
        let (mut cursor, mut got) = (GroupCursor::default(), Vec::new());
        while !cursor.is_done() {
            let mut visit = |row: newsreel_service::GroupRow<'_>| {
                got.push(row.name.as_str().to_owned());
            };
            let select = GroupSelect {
                bare: true,
                ..GroupSelect::default()
            };
            let listing = server.groups(select, &mut cursor, 1, &mut visit);
            listing.await.unwrap();
        }
        assert_eq!(got, expected);
        tokio::time::advance(Duration::from_secs(61)).await;
    }
}

/// What a server says of its site is asked for once while that is fresh, and told for longer while it cannot be asked; what it does not
/// keep is not taken for what could not be asked for.
#[tokio::test(start_paused = true)]
async fn lists_of_a_site_are_kept() {
    let first: Script = &[
        ("LIST SUBSCRIPTIONS", "215 list\nmisc.test\n..x\n.\n"),
        ("LIST MODERATORS", "503 none\n"),
    ];
    let server = server(&[first, &[], &[], &[], &[]]);
    let kept = Ok(Some("misc.test\r\n..x\r\n".into()));
    for _ in 0..2 {
        assert_eq!(server.site_list("SUBSCRIPTIONS").await, kept);
        assert_eq!(server.site_list("MODERATORS").await, Ok(None));
    }
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(server.site_list("SUBSCRIPTIONS").await, kept);
    let unknown = server.site_list("MODERATORS").await;
    assert_eq!(unknown, Err(ServiceError::Away));
}

/// NEWNEWS comes in portions; one that is given up closes its connection and makes room for the next.
#[tokio::test(start_paused = true)]
async fn a_listing_that_is_given_up_gives_its_connection_up() {
    let script: Script = &[(
        "NEWNEWS misc.* 20260101 000000 GMT",
        "230 list\n<1@b>\nno id\n<2@b>\n<3@b>\n.\n",
    )];
    let server = server(&[script, script]);
    let wildmat = Wildmat::parse("misc.*").unwrap();
    let since = UnixTime(1_767_225_600);
    let mut cursor = RemoteNewnews::default();
    let mut out = Vec::new();
    let more = server
        .newnews(&wildmat, since, &mut cursor, 1, &mut out)
        .await;
    assert_eq!(more, Ok(true));
    assert_eq!(out, b"<1@b>\r\n");
    drop(cursor);
    let mut cursor = RemoteNewnews::default();
    out.clear();
    let mut rounds = 0;
    while server
        .newnews(&wildmat, since, &mut cursor, out.len() + 1, &mut out)
        .await
        .unwrap()
    {
        rounds += 1;
    }
    assert_eq!(
        (out.as_slice(), rounds),
        (&b"<1@b>\r\n<2@b>\r\n<3@b>\r\n"[..], 3)
    );
}

/// The server may have closed the connection before it saw the question, as of any other.
#[tokio::test(start_paused = true)]
async fn a_listing_of_news_whose_connection_was_closed_is_asked_for_again() {
    const ASKED: &str = "NEWNEWS misc.* 20260101 000000 GMT";
    const CLOSED: Script = &[(ASKED, "")];
    const ANSWERED: Script = &[(ASKED, "230 list\n<1@b>\n.\n")];
    let server = server(&[CLOSED, ANSWERED]);
    let wildmat = Wildmat::parse("misc.*").unwrap();
    let (mut cursor, mut out) = (RemoteNewnews::default(), Vec::new());
    let since = UnixTime(1_767_225_600);
    let more = server.newnews(&wildmat, since, &mut cursor, 100, &mut out);
    assert_eq!(more.await, Ok(false));
    assert_eq!(out, b"<1@b>\r\n");
}

/// A command that is named goes where the selected group is, with a block where its code says so; without a group it goes on no connection
/// on which somebody has selected one, and what is between us and the server is no answer.
#[tokio::test(start_paused = true)]
async fn commands_that_are_named_are_passed_on() {
    let server = server(&[
        &[
            ("XPATH <a@b>", "223 misc/test/1\n"),
            GROUP,
            ("xthread 1-5", "288 threads\n1 2\n..3\n.\n"),
            // It is not to be asked this.
            ("XPATH <c@d>", "223 of another group\n"),
        ],
        &[
            ("XPATH <c@d>", "430 none\n"),
            ("XPATH <e@f>", "340 send it\n"),
        ],
        &[("XPATH <g@h>", "480 log in\n")],
        &[("XTHREAD", "288 endless\n")],
        &[("XTHREAD", "288 endless\n")],
    ]);
    let group = GroupName::parse(b"misc.test").unwrap();
    let asked = async |words: &[&[u8]], group| {
        let mut out = b"before".to_vec();
        let done = server.forward(words, group, &mut out).await;
        done.map(|is_done| (is_done, String::from_utf8(out.split_off(6)).unwrap()))
    };
    let told = |text: &str| Ok((true, text.replace('\n', "\r\n")));
    assert!(server.forwards(b"xpath") && !server.forwards(b"XPATHS"));
    let nothing = asked(&[b"XROVER", b"1"], None).await;
    assert_eq!(nothing, Ok((false, String::new())));
    let path = asked(&[b"XPATH", b"<a@b>"], None).await;
    assert_eq!(path, told("223 misc/test/1\n"));
    let threads = asked(&[b"xthread", b"1-5"], Some(group)).await;
    assert_eq!(threads, told("288 threads\n1 2\n..3\n.\n"));
    // The connection has selected a group, so it is not asked.
    assert_eq!(asked(&[b"XPATH", b"<c@d>"], None).await, told("430 none\n"));
    for command in [[&b"XPATH"[..], b"<e@f>"], [b"XPATH", b"<g@h>"]] {
        assert_eq!(asked(&command, None).await, Err(ServiceError::Away));
    }
    assert_eq!(asked(&[b"XTHREAD"], None).await, Err(ServiceError::Away));
}

/// A block that comes after its line, behind a code that nobody told us of, is not taken for the answer to another reader's question; where it is
/// known that none follows the connection is used again.
#[tokio::test(start_paused = true)]
async fn a_late_block_answers_nobody_else() {
    const WHOLE: &str = "220 0 <a@b>\nSubject: x\n\n.\n";
    let server = server(&[
        &[
            ("XPATH <a@b>", "223 misc/test/1\n"),
            ("XPATH <c@d>", "430 none\n"),
            ("XNUMS", "288 follows\n\u{c}430\n431\n.\n"),
        ],
        &[("ARTICLE <a@b>", WHOLE)],
    ]);
    let asking = async |words: &[&[u8]]| {
        let mut out = Vec::new();
        server.forward(words, None, &mut out).await.unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(asking(&[b"XPATH", b"<a@b>"]).await, "223 misc/test/1\r\n");
    assert_eq!(asking(&[b"XPATH", b"<c@d>"]).await, "430 none\r\n");
    assert_eq!(asking(&[b"XNUMS"]).await, "288 follows\r\n");
    let found = asked(&server, "<a@b>").await.unwrap();
    assert_eq!(found.unwrap(), "Subject: x\r\n\r\n.\r\n");
}

/// A command in a group that is gone there is not carried out in the group that somebody else has selected on the connection.
#[tokio::test(start_paused = true)]
async fn a_command_in_a_group_that_is_gone_is_not_carried_out() {
    let server = server(&[&[
        GROUP,
        ("XTHREAD 1-5", "288 threads\n1 2\n.\n"),
        ("GROUP misc.gone", "411 none\n"),
        GROUP,
        ("XTHREAD 6-", "288 threads\n.\n"),
    ]]);
    let asking = async |range: &[u8], group: &str| {
        let mut out = Vec::new();
        let group = GroupName::parse(group.as_bytes()).unwrap();
        let words: &[&[u8]] = &[b"XTHREAD", range];
        let done = server.forward(words, Some(group), &mut out).await;
        assert_eq!(done, Ok(true));
        String::from_utf8(out).unwrap()
    };
    let told = "288 threads\r\n1 2\r\n.\r\n";
    assert_eq!(asking(b"1-5", "misc.test").await, told);
    assert_eq!(asking(b"1-5", "misc.gone").await, "411 No such group\r\n");
    assert_eq!(asking(b"6-", "misc.test").await, "288 threads\r\n.\r\n");
}

/// Does several things at the same time; what came of them, in order.
async fn together<F: Future>(things: Vec<F>) -> Vec<F::Output> {
    let mut things: Vec<_> = things.into_iter().map(|it| (Box::pin(it), None)).collect();
    std::future::poll_fn(|cx| {
        for (thing, came) in things.iter_mut().filter(|(_, came)| came.is_none()) {
            if let std::task::Poll::Ready(out) = thing.as_mut().poll(cx) {
                *came = Some(out);
            }
        }
        match things.iter().all(|(_, came)| came.is_some()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    things.into_iter().filter_map(|(_, came)| came).collect()
}
