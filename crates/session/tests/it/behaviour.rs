//! What transcripts cannot say: answers held back, bounds, draining, the cost of an idle session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use newsreel_net::access::{Door, Grant};
use newsreel_net::{Drain, Stream};
use newsreel_service::memory::{MemoryConfig, MemoryService, Trouble};
use newsreel_service::{Arriving, Beside, Connection, ConnectionId, Features, Outcome};
use newsreel_session::{End, Lists, ListsConfig, Metrics, SessionConfig, Shared, serve};
use newsreel_testkit::transcript::Action;
use newsreel_testkit::{CLOCK_START_S, Driver as _, Setup};
use newsreel_wire::{ArticleNumber, UnixTime};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex,
};

use crate::driver::{ADDRESS, MemoryDriver};

fn article(id: &str) -> String {
    format!(
        "Path: peer.example!not-for-mail\r\nFrom: a@example.org\r\nNewsgroups: misc.test\r\n\
         Subject: s\r\nDate: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: {id}\r\n\r\nbody\r\n.\r\n"
    )
}

fn takethis(id: &str) -> String {
    format!("TAKETHIS {id}\r\n{}", article(id))
}

fn driver(session: SessionConfig) -> MemoryDriver {
    let driver = MemoryDriver::new(session, MemoryConfig::default(), &ListsConfig::default());
    driver.service.add_group("misc.test", "y", "");
    driver
}

/// What has come so far, without waiting for more than the session's own work.
async fn so_far(stream: &mut DuplexStream) -> String {
    tokio::time::sleep(Duration::from_millis(1)).await;
    let mut buf = vec![0; 1 << 16];
    let read = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut buf)).await;
    let len = read.map_or(0, |len| len.unwrap());
    String::from_utf8_lossy(&buf[..len]).into_owned()
}

async fn say(stream: &mut DuplexStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

async fn greeted(driver: &mut MemoryDriver) -> DuplexStream {
    let mut stream = driver.open();
    assert!(so_far(&mut stream).await.starts_with("200 "));
    stream
}

#[tokio::test(start_paused = true)]
async fn answers_wait_for_those_before_them() {
    let mut driver = driver(SessionConfig::default());
    let mut stream = greeted(&mut driver).await;
    driver.service.set_trouble(Trouble {
        hold: true,
        ..Trouble::default()
    });
    let pipeline = [
        takethis("<1@t>"),
        takethis("<2@t>"),
        "CHECK <9@t>\r\nCHECK nonsense\r\n".to_owned(),
        takethis("<3@t>"),
        "DATE\r\n".to_owned(),
        takethis("<4@t>"),
    ];
    say(&mut stream, &pipeline.concat()).await;
    assert_eq!(so_far(&mut stream).await, "");
    assert_eq!(driver.service.held(), 3, "what is behind DATE waits for it");
    driver.service.let_go(2, true);
    assert_eq!(so_far(&mut stream).await, "", "3 and 2 are known, 1 is not");
    driver.service.let_go(1, true);
    let answers = so_far(&mut stream).await;
    let expected = "239 <1@t>\r\n239 <2@t>\r\n238 <9@t>\r\n501 Malformed message-id\r\n239 <3@t>\r\n\
                    111 20260101000000\r\n";
    assert_eq!(answers, expected);
    assert_eq!(driver.service.held(), 1);
    driver.service.let_go(1, false);
    assert_eq!(so_far(&mut stream).await, "239 <4@t>\r\n");
}

#[tokio::test(start_paused = true)]
async fn what_is_owed_is_bounded_and_then_nothing_is_read() {
    let config = SessionConfig {
        pipeline_replies_max: 10,
        input_chunk_bytes: 4096,
        ..SessionConfig::default()
    };
    let mut driver = driver(config);
    let stream = greeted(&mut driver).await;
    driver.service.set_trouble(Trouble {
        hold: true,
        ..Trouble::default()
    });
    let all: String = (0..1000).map(|n| takethis(&format!("<{n}@t>"))).collect();
    let (mut read, mut write) = tokio::io::split(stream);
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's runtime ends all its tasks"
    )]
    let writing = tokio::spawn(async move { write.write_all(all.as_bytes()).await.unwrap() });
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(!writing.is_finished(), "the sender is held up");
    assert_eq!(driver.service.held(), 10);
    driver.service.set_trouble(Trouble::default());
    driver.service.let_go(10, true);
    let expected: String = (0..1000).map(|n| format!("239 <{n}@t>\r\n")).collect();
    let mut got = vec![0; expected.len()];
    read.read_exact(&mut got).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&got), expected);
    writing.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn answers_are_given_while_the_service_takes_nothing_more() {
    let mut driver = driver(SessionConfig::default());
    let mut stream = greeted(&mut driver).await;
    driver.service.set_trouble(Trouble {
        hold: true,
        ..Trouble::default()
    });
    say(&mut stream, &takethis("<1@t>")).await;
    assert_eq!(so_far(&mut stream).await, "");
    driver.service.set_trouble(Trouble {
        hold: true,
        busy: true,
        ..Trouble::default()
    });
    say(&mut stream, &takethis("<2@t>")).await;
    assert_eq!(so_far(&mut stream).await, "");
    driver.service.let_go(1, false);
    assert_eq!(so_far(&mut stream).await, "239 <1@t>\r\n");
    driver.service.set_trouble(Trouble::default());
    assert_eq!(so_far(&mut stream).await, "239 <2@t>\r\n");
}

#[tokio::test(start_paused = true)]
async fn draining_lets_an_article_come_to_its_end() {
    let mut driver = driver(SessionConfig::default());
    let (mut idle, mut busy) = (greeted(&mut driver).await, greeted(&mut driver).await);
    let text = takethis("<1@t>");
    let (front, back) = text.split_at(100);
    say(&mut busy, front).await;
    assert_eq!(so_far(&mut busy).await, "");
    driver.drain.start();
    assert_eq!(so_far(&mut idle).await, "400 Server is stopping\r\n");
    assert_eq!(so_far(&mut busy).await, "");
    say(&mut busy, &format!("{back}{}", takethis("<2@t>"))).await;
    assert_eq!(
        so_far(&mut busy).await,
        "239 <1@t>\r\n400 Server is stopping\r\n"
    );
    assert_eq!(busy.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_reads_nothing_is_cut() {
    let config = SessionConfig {
        write_stall_s: 4,
        ..SessionConfig::default()
    };
    let mut driver = driver(config);
    let mut stream = greeted(&mut driver).await;
    say(&mut stream, &"HELP\r\n".repeat(5000)).await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    let ended = driver.metrics.snapshot().ended;
    assert!(ended.contains(&("write_stalled", 1)), "{ended:?}");
}

/// How often another task has its turn while `commands` are answered, on a machine of one core.
async fn turns_of_others(driver: &mut MemoryDriver, commands: &str) -> usize {
    let mut stream = greeted(driver).await;
    let turns = Arc::new(AtomicUsize::new(0));
    let counting = turns.clone();
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's runtime ends all its tasks"
    )]
    let other = tokio::spawn(async move {
        loop {
            counting.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let before = turns.load(Ordering::Relaxed);
    say(&mut stream, &format!("{commands}QUIT\r\n")).await;
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).await.unwrap();
    other.abort();
    assert!(answers.ends_with(b"205 Bye\r\n"));
    turns.load(Ordering::Relaxed) - before
}

/// Hundreds of listings in one write, all answered from memory and most of them empty, held a thread for seconds.
#[tokio::test]
async fn long_replies_let_others_have_their_turn() {
    let mut driver = driver(SessionConfig::default());
    for group in 0..5000 {
        driver.service.add_group(&format!("g.{group}"), "y", "");
    }
    for number in 0..300 {
        let id = format!("<{number}@t>");
        let wire = article(&id);
        let outcome = driver.service.inject(id.as_bytes(), wire.as_bytes());
        assert_eq!(outcome, Outcome::Accepted);
    }
    for (commands, times, least) in [
        ("LIST ACTIVE *x\r\n", 100, 100),
        ("NEWGROUPS 20270101 000000\r\n", 100, 100),
        ("NEWNEWS *x 20200101 000000\r\n", 100, 100),
        ("HDR Path 1-\r\n", 20, 40),
        ("STAT 7\r\n", 1000, 7),
    ] {
        let all = format!("GROUP misc.test\r\n{}", commands.repeat(times));
        let turns = turns_of_others(&mut driver, &all).await;
        assert!(turns >= least, "{commands}: only {turns} turns");
    }
}

/// What had come of an article of megabytes, or of a line of them, was read in one turn, and a reader beside it waited for milliseconds.
#[tokio::test]
async fn who_sends_much_lets_others_have_their_turn() {
    const MUCH: u64 = 8 << 20;
    for begun in ["", "TAKETHIS <1@t>\r\n"] {
        let service = driver(SessionConfig::default()).service;
        let config = SessionConfig::default();
        let shared = Shared::new(config, Lists::default(), Arc::default());
        let sent = begun.as_bytes().chain(tokio::io::repeat(b'x').take(MUCH));
        let io = tokio::io::join(sent.chain(&b"\r\n.\r\nQUIT\r\n"[..]), tokio::io::sink());
        let connection = Connection::new(ConnectionId(1), Some(ADDRESS), None);
        let session = serve(
            Stream::Plain(io),
            service,
            shared,
            connection,
            Door::open(Grant::everything("memory"), ADDRESS),
            Drain::new().watch(),
        );
        let mut turns = 0;
        let others = async {
            loop {
                turns += 1;
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            _ = session => {}
            () = others => {}
        }
        assert!(turns >= MUCH / (64 << 10), "only {turns} turns");
    }
}

#[tokio::test(start_paused = true)]
async fn everything_is_counted() {
    let mut driver = driver(SessionConfig::default());
    let mut stream = greeted(&mut driver).await;
    let junk = takethis("<2@t>").replace("misc.test", "no.such.group");
    say(
        &mut stream,
        &format!("{}{junk}NONSENSE\r\nQUIT\r\n", takethis("<1@t>")),
    )
    .await;
    assert!(so_far(&mut stream).await.ends_with("205 Bye\r\n"));
    drop(stream);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let seen = driver.metrics.snapshot();
    let count = |name: &str| {
        seen.commands
            .iter()
            .find(|(verb, _)| *verb == name)
            .unwrap()
            .1
    };
    assert_eq!(
        (count("TAKETHIS"), count("QUIT"), count("unknown")),
        (2, 1, 1)
    );
    assert_eq!(
        seen.replies,
        [(200, 1), (205, 1), (239, 1), (439, 1), (500, 1)]
    );
    assert_eq!(
        (seen.accepted, seen.rejected),
        (1, vec![("unknown_groups", 1)])
    );
    assert_eq!((seen.opened, seen.closed), (1, 1));
    assert!(seen.ended.contains(&("quit", 1)));
    assert_eq!(
        seen.octets_in as usize,
        takethis("<1@t>").len() + junk.len() + 16
    );
}

/// Large articles of all connections share a budget: who comes too late is asked to come back, and loses no article.
#[tokio::test(start_paused = true)]
async fn large_articles_share_a_budget() {
    let mut driver = driver(SessionConfig {
        input_chunk_bytes: 64 << 10,
        large_articles_bytes_max: 2 << 20,
        ..SessionConfig::default()
    });
    let junk = "x".repeat(900 << 10);
    let mut first = greeted(&mut driver).await;
    say(&mut first, &format!("TAKETHIS <1@t>\r\n{junk}")).await;
    let mut second = greeted(&mut driver).await;
    let begun = format!("TAKETHIS <2@t>\r\n{junk}");
    let _ = second.write_all(begun.as_bytes()).await;
    let said = so_far(&mut second).await;
    assert_eq!(
        said,
        "400 Too many large articles at once; try again later\r\n"
    );
    drop(first);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut third = greeted(&mut driver).await;
    say(&mut third, &format!("{begun}\r\n.\r\n")).await;
    assert!(so_far(&mut third).await.starts_with("439 <2@t>"));
}

/// A reader who asks for more than is left of the budget is told so before anything of the article is sent.
#[tokio::test(start_paused = true)]
async fn a_large_article_waits_for_room_in_the_budget() {
    let mut driver = driver(SessionConfig {
        input_chunk_bytes: 64 << 10,
        large_articles_bytes_max: 1 << 20,
        ..SessionConfig::default()
    });
    let body = format!("{}\r\n", "x".repeat(998)).repeat(900);
    let text = article("<1@t>").replace("body\r\n", &body);
    let injected = driver.service.inject(b"<1@t>", text.as_bytes());
    assert_eq!(injected, Outcome::Accepted);
    let mut slow = greeted(&mut driver).await;
    say(&mut slow, "ARTICLE <1@t>\r\n").await;
    assert!(so_far(&mut slow).await.starts_with("220 0 <1@t>\r\n"));
    let mut other = greeted(&mut driver).await;
    say(&mut other, "ARTICLE <1@t>\r\nSTAT <1@t>\r\n").await;
    assert_eq!(
        so_far(&mut other).await,
        "403 Too many large articles at once; try again later\r\n223 0 <1@t>\r\n"
    );
    drop(slow);
    tokio::time::sleep(Duration::from_secs(1)).await;
    say(&mut other, "ARTICLE <1@t>\r\n").await;
    assert!(so_far(&mut other).await.starts_with("220 0 <1@t>\r\n"));
}

/// A large answer from elsewhere was held for a slow reader beside all budgets.
#[tokio::test(start_paused = true)]
async fn a_large_answer_from_elsewhere_is_counted() {
    let mut driver = driver(SessionConfig {
        input_chunk_bytes: 64 << 10,
        large_articles_bytes_max: 1 << 20,
        ..SessionConfig::default()
    });
    let lines = format!("{}\r\n", "x".repeat(998)).repeat(900);
    let large = format!("288 follows\r\n{lines}.\r\n");
    driver.service.forward_as(b"XLARGE", large.as_bytes());
    let small = b"288 follows\r\n.\r\n";
    driver.service.forward_as(b"XSMALL", small);
    let mut slow = greeted(&mut driver).await;
    say(&mut slow, "XLARGE\r\n").await;
    assert!(so_far(&mut slow).await.starts_with("288 follows\r\n"));
    let mut other = greeted(&mut driver).await;
    say(&mut other, "XLARGE\r\nXSMALL\r\n").await;
    assert_eq!(
        so_far(&mut other).await,
        "403 Too many large answers at once; try again later\r\n288 follows\r\n.\r\n"
    );
    drop(slow);
    tokio::time::sleep(Duration::from_secs(1)).await;
    say(&mut other, "XLARGE\r\n").await;
    assert!(so_far(&mut other).await.starts_with("288 follows\r\n"));
}

/// A peer that feeds and may read nothing was shown what a server elsewhere has, which was asked for it with our account.
#[tokio::test]
async fn who_may_only_feed_sees_only_what_is_here() {
    let with = |id: &str| {
        let service = MemoryService::new(MemoryConfig::default(), UnixTime(CLOCK_START_S));
        service.add_group("misc.test", "y", "");
        let taken = service.inject(id.as_bytes(), article(id).as_bytes());
        assert_eq!(taken, Outcome::Accepted);
        Arc::new(service)
    };
    let both = Arc::new(Beside::new(with("<1@t>"), with("<2@t>")));
    let feeding = Grant {
        read: None,
        ..Grant::everything("test")
    };
    let asked =
        "STAT <1@t>\r\nSTAT <2@t>\r\nHEAD <2@t>\r\nOVER <2@t>\r\nHDR Subject <2@t>\r\nQUIT\r\n";
    for (grant, expected) in [
        (feeding, ["223", "430", "430", "430", "430"]),
        (
            Grant::everything("test"),
            ["223", "223", "221", "224", "225"],
        ),
    ] {
        let (mut ours, theirs) = duplex(1 << 16);
        let session = serve(
            Stream::Plain(theirs),
            Arc::clone(&both),
            Shared::new(SessionConfig::default(), Lists::default(), Arc::default()),
            Connection::new(ConnectionId(1), Some(ADDRESS), None),
            Door::open(grant, ADDRESS),
            Drain::new().watch(),
        );
        let mut answers = String::new();
        let asking = async {
            ours.write_all(asked.as_bytes()).await.unwrap();
            ours.read_to_string(&mut answers).await.unwrap();
        };
        tokio::join!(session, asking);
        let is_code = |word: &&str| word.len() == 3 && word.parse::<u16>().is_ok();
        let first = |line: &'static str| line.split(' ').next();
        let lines = answers.leak().lines().filter_map(first).filter(is_code);
        let codes: Vec<&str> = lines.skip(1).take(5).collect();
        assert_eq!(codes, expected);
    }
}

/// An article that was still coming counted nowhere while a slow reader held it, however large it had become.
#[tokio::test(start_paused = true)]
async fn what_still_comes_is_counted_as_it_grows() {
    let mut driver = driver(SessionConfig {
        input_chunk_bytes: 64 << 10,
        large_articles_bytes_max: 1 << 20,
        ..SessionConfig::default()
    });
    let body = format!("{}\r\n", "x".repeat(998)).repeat(900);
    for id in ["<1@t>", "<2@t>"] {
        let text = article(id).replace("body\r\n", &body);
        let injected = driver.service.inject(id.as_bytes(), text.as_bytes());
        assert_eq!(injected, Outcome::Accepted);
    }
    let first = &article("<1@t>").into_bytes()[..100];
    let coming = Arc::new(Arriving::new(first.to_vec()));
    driver.service.comes(b"<1@t>", &coming);
    let mut slow = greeted(&mut driver).await;
    say(&mut slow, "ARTICLE <1@t>\r\n").await;
    assert!(so_far(&mut slow).await.starts_with("220 0 <1@t>\r\n"));
    let mut other = greeted(&mut driver).await;
    let ask = "ARTICLE <2@t>\r\n";
    say(&mut other, ask).await;
    let mut taken = 0;
    while taken < body.len() {
        taken += so_far(&mut other).await.len();
    }
    coming.came(body.as_bytes());
    say(&mut other, ask).await;
    assert_eq!(
        so_far(&mut other).await,
        "403 Too many large articles at once; try again later\r\n"
    );
    // It makes room as any other does, also when the end has come meanwhile.
    coming.came(b".\r\n");
    coming.ended(Ok(()));
    tokio::time::sleep(Duration::from_secs(3)).await;
    say(&mut other, ask).await;
    assert!(so_far(&mut other).await.starts_with("220 0 <2@t>\r\n"));
    let ended = driver.metrics.snapshot().ended;
    assert!(ended.contains(&("write_stalled", 1)), "{ended:?}");
}

/// Who stalls in the middle of large articles, or of taking them, makes room for those who do not.
#[tokio::test(start_paused = true)]
async fn who_stalls_with_large_articles_makes_room() {
    let mut driver = driver(SessionConfig {
        input_chunk_bytes: 64 << 10,
        large_articles_bytes_max: 2 << 20,
        ..SessionConfig::default()
    });
    let body = format!("{}\r\n", "x".repeat(998)).repeat(900);
    let whole = |id: &str| article(id).replace("body\r\n", &body);
    let injected = driver.service.inject(b"<1@t>", whole("<1@t>").as_bytes());
    assert_eq!(injected, Outcome::Accepted);
    let mut stalled = greeted(&mut driver).await;
    let begun = format!("TAKETHIS <2@t>\r\n{}", "x".repeat(900 << 10));
    say(&mut stalled, &begun).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut good = greeted(&mut driver).await;
    let takethis = |id: &str| format!("TAKETHIS {id}\r\n{}", whole(id));
    say(&mut good, &takethis("<3@t>")).await;
    assert_eq!(so_far(&mut good).await, "239 <3@t>\r\n");
    assert_eq!(
        so_far(&mut stalled).await,
        "400 Too many large articles at once; try again later\r\n"
    );
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut reader = greeted(&mut driver).await;
        say(&mut reader, "ARTICLE <1@t>\r\n").await;
        assert!(so_far(&mut reader).await.starts_with("220 0 <1@t>\r\n"));
        slow.push(reader);
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    say(&mut good, &takethis("<4@t>")).await;
    assert_eq!(so_far(&mut good).await, "239 <4@t>\r\n");
    let ended = driver.metrics.snapshot().ended;
    assert!(ended.contains(&("no_memory", 1)), "{ended:?}");
    let stalled = ended.iter().find(|(label, _)| *label == "write_stalled");
    assert!(stalled.is_some(), "{ended:?}");
}

/// The rest of a command line that is too long already has no more time than the line.
#[tokio::test(start_paused = true)]
async fn an_overlong_line_has_the_time_of_a_line() {
    // Slowly, and so fast that nothing is ever waited for.
    let (one, many) = (vec![b'x'; 1], vec![b'x'; 64 << 10]);
    for (begun, piece, pause_s) in [("X", &one, 1), ("TAKETHIS ", &one, 1), ("X", &many, 0)] {
        let mut driver = driver(SessionConfig {
            command_s: 4,
            ..SessionConfig::default()
        });
        let mut stream = greeted(&mut driver).await;
        say(&mut stream, &format!("{begun}{}", "x".repeat(600))).await;
        let ended = async {
            while driver.metrics.snapshot().closed == 0 {
                tokio::time::sleep(Duration::from_secs(pause_s)).await;
                let _ = stream.write_all(piece).await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
        assert!(ended.is_ok(), "{begun} {pause_s}");
    }
}

/// A client that has gone, with many expensive commands behind it, costs one of them.
#[tokio::test(start_paused = true)]
async fn a_client_that_has_gone_is_noticed_between_commands() {
    let mut driver = driver(SessionConfig::default());
    driver.service.set_trouble(Trouble {
        slow: Some(Duration::from_secs(5)),
        ..Trouble::default()
    });
    let mut stream = greeted(&mut driver).await;
    say(&mut stream, &"NEWNEWS * 20200101 000000\r\n".repeat(1000)).await;
    drop(stream);
    let begun = tokio::time::Instant::now();
    while driver.metrics.snapshot().closed == 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

/// A task that is cut (at the end of a drain) gives its offers back too.
#[tokio::test(start_paused = true)]
async fn a_session_that_is_cut_releases_its_offers() {
    let mut driver = driver(SessionConfig::default());
    let (mut ours, theirs) = duplex(4096);
    let shared = Shared::new(
        SessionConfig::default(),
        Lists::default(),
        Arc::new(Metrics::default()),
    );
    let connection = Connection::new(ConnectionId(77), None, None);
    let watch = Drain::new().watch();
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's runtime ends all its tasks"
    )]
    let task = tokio::spawn(serve(
        Stream::Plain(theirs),
        driver.service.clone(),
        shared,
        connection,
        Door::open(Grant::everything("test"), ADDRESS),
        watch,
    ));
    say(&mut ours, "CHECK <1@t>\r\n").await;
    assert!(so_far(&mut ours).await.ends_with("238 <1@t>\r\n"));
    let mut other = greeted(&mut driver).await;
    say(&mut other, "CHECK <1@t>\r\n").await;
    assert_eq!(so_far(&mut other).await, "431 <1@t>\r\n");
    task.abort();
    say(&mut other, "CHECK <1@t>\r\n").await;
    assert_eq!(so_far(&mut other).await, "238 <1@t>\r\n");
}

/// 5,000 idle readers must cost less than 150 MB in all; what a session allocates beside its task is small.
#[tokio::test]
async fn a_session_is_small() {
    let service = Arc::new(MemoryService::new(
        MemoryConfig::default(),
        UnixTime(1_767_225_600),
    ));
    let shared = Shared::new(
        SessionConfig::default(),
        Lists::default(),
        Arc::new(Metrics::default()),
    );
    let connection = Connection::new(ConnectionId(1), None, None);
    let (ours, theirs) = duplex(64);
    let session = serve(
        Stream::Plain(theirs),
        service,
        shared,
        connection,
        Door::open(Grant::everything("test"), ADDRESS),
        Drain::new().watch(),
    );
    let octets = size_of_val(&session);
    assert!(octets < 4096, "a session's task has {octets} octets");
    drop(ours);
    assert_eq!(session.await, End::Broken);
}

#[tokio::test(start_paused = true)]
async fn a_current_article_that_is_gone_is_not_there_by_number_either() {
    let mut driver = driver(SessionConfig::default());
    for id in ["<1@t>", "<2@t>"] {
        let wire = article(id);
        assert_eq!(
            driver.service.inject(id.as_bytes(), wire.as_bytes()),
            Outcome::Accepted
        );
    }
    let mut stream = greeted(&mut driver).await;
    say(&mut stream, "GROUP misc.test\r\nSTAT\r\n").await;
    let said = so_far(&mut stream).await;
    assert_eq!(said, "211 2 1 2 misc.test\r\n223 1 <1@t>\r\n");
    driver.service.remove(b"<1@t>");
    for command in ["ARTICLE", "HEAD", "BODY", "STAT"] {
        say(&mut stream, &format!("{command}\r\n{command} 1\r\n")).await;
        let said = so_far(&mut stream).await;
        let expected = "420 Current article is gone\r\n423 No article with that number\r\n";
        assert_eq!(said, expected, "{command}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_ends_the_session_behind_what_was_answered() {
    let config = SessionConfig {
        reply_chunk_bytes: 1 << 10,
        ..SessionConfig::default()
    };
    let mut driver = driver(config);
    for nth in 1..=30 {
        let id = format!("<{nth}@t>");
        let wire = article(&id);
        assert_eq!(
            driver.service.inject(id.as_bytes(), wire.as_bytes()),
            Outcome::Accepted
        );
    }
    driver.service.set_trouble(Trouble {
        lists_fail_from: Some(ArticleNumber(5)),
        ..Trouble::default()
    });
    let mut stream = greeted(&mut driver).await;
    say(&mut stream, "GROUP misc.test\r\nOVER 1-30\r\n").await;
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert!(said.starts_with("211 30 1 30 misc.test\r\n224 "), "{said}");
    assert!(said.contains("\n1\t") && said.ends_with("\r\n"), "{said}");
    assert!(
        !said.contains("\n.\r\n") && !said.contains("\n30\t"),
        "{said}"
    );
}

/// Articles that are elsewhere, and cannot be had now, were left out like those in bad sectors: a list without them passed for whole.
#[tokio::test(start_paused = true)]
async fn a_list_of_a_field_ends_where_an_article_is_away() {
    let mut driver = driver(SessionConfig::default());
    for nth in 1..=9 {
        let id = format!("<{nth}@t>");
        let wire = article(&id);
        let taken = driver.service.inject(id.as_bytes(), wire.as_bytes());
        assert_eq!(taken, Outcome::Accepted);
    }
    for command in [
        "HDR Newsgroups 1-9",
        "XHDR Newsgroups 1-9",
        "XPAT Newsgroups 1-9 *",
    ] {
        for (from, told) in [(1, 0), (6, 5)] {
            driver.service.set_trouble(Trouble {
                away_from: Some(ArticleNumber(from)),
                ..Trouble::default()
            });
            let mut stream = greeted(&mut driver).await;
            say(
                &mut stream,
                &format!("GROUP misc.test\r\n{command}\r\nQUIT\r\n"),
            )
            .await;
            let mut said = String::new();
            stream.read_to_string(&mut said).await.unwrap();
            let lines: Vec<&str> = said.lines().skip(1).collect();
            if told == 0 {
                let is_refused = lines[0].starts_with("403 ") && lines[1].starts_with("205 ");
                assert!(is_refused, "{command}: {said}");
            } else {
                assert_eq!(lines.len(), 1 + told, "{command}: {said}");
                assert!(lines[0].starts_with('2'), "{command}: {said}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_in_the_middle_of_a_line_is_told_that_the_server_stops() {
    let mut driver = driver(SessionConfig::default());
    let mut stream = greeted(&mut driver).await;
    say(&mut stream, "DAT").await;
    assert_eq!(so_far(&mut stream).await, "");
    driver.drain.start();
    assert!(so_far(&mut stream).await.starts_with("400 "));
}

#[tokio::test(start_paused = true)]
async fn an_article_that_was_too_large_may_be_asked_of_others() {
    let config = SessionConfig {
        article_bytes_max: 1 << 10,
        ..SessionConfig::default()
    };
    let mut driver = driver(config);
    let mut first = greeted(&mut driver).await;
    let mut second = greeted(&mut driver).await;
    say(&mut first, "CHECK <1@t>\r\n").await;
    assert_eq!(so_far(&mut first).await, "238 <1@t>\r\n");
    say(&mut second, "CHECK <1@t>\r\n").await;
    assert_eq!(so_far(&mut second).await, "431 <1@t>\r\n");
    let large = "x".repeat(2 << 10);
    say(&mut first, &format!("TAKETHIS <1@t>\r\n{large}\r\n.\r\n")).await;
    assert_eq!(
        so_far(&mut first).await,
        "439 <1@t> Article is too large\r\n"
    );
    say(&mut second, "CHECK <1@t>\r\n").await;
    assert_eq!(so_far(&mut second).await, "238 <1@t>\r\n");
}

/// Where no post is taken from anybody a login was asked for in vain (RFC 3977 section 6.3.1).
#[tokio::test(start_paused = true)]
async fn where_nobody_posts_no_login_is_asked_for() {
    for (posting, answer) in [(true, "480 "), (false, "440 ")] {
        let mut driver = driver(SessionConfig::default());
        let entries = "[{ name = 'ada', users = ['ada'], read = '*', post = '*' }, \
                       { name = 'all', read = '*' }]";
        let setup = Setup {
            config: vec![("access".to_owned(), entries.to_owned())],
            ..Setup::default()
        };
        driver.start(&setup).await.unwrap();
        let usual = MemoryConfig::default();
        let memory = MemoryConfig {
            features: Features {
                posting,
                ..usual.features
            },
            ..usual
        };
        driver.service = Arc::new(MemoryService::new(memory, UnixTime(CLOCK_START_S)));
        let mut stream = driver.open();
        assert!(so_far(&mut stream).await.starts_with("201 "));
        say(&mut stream, "POST\r\n").await;
        let said = so_far(&mut stream).await;
        assert!(said.starts_with(answer), "{posting}: {said}");
    }
}

/// A driver whose clients may do everything, at a pace.
fn paced(octets_per_s_max: u64, commands_per_s_max: u32) -> MemoryDriver {
    let mut driver = driver(SessionConfig::default());
    driver.grant = Grant {
        octets_per_s_max,
        commands_per_s_max,
        ..Grant::everything("paced")
    };
    driver
}

#[tokio::test(start_paused = true)]
async fn commands_are_taken_no_faster_than_they_may_come() {
    let mut driver = paced(0, 10);
    let mut stream = greeted(&mut driver).await;
    let begun = tokio::time::Instant::now();
    say(&mut stream, &format!("{}QUIT\r\n", "DATE\r\n".repeat(60))).await;
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert_eq!(said.matches("111 ").count(), 60);
    let passed = begun.elapsed().as_millis();
    assert!((5000..5200).contains(&passed), "{passed} ms");
}

/// What comes faster than it may waits unread, and what has come is answered meanwhile; offers cost nothing.
#[tokio::test(start_paused = true)]
async fn articles_are_taken_no_faster_than_they_may_come() {
    let mut driver = paced(0, 0);
    driver.grant.articles_per_s_of_all_max = 10;
    let stream = greeted(&mut driver).await;
    let checks: String = (0..60).map(|n| format!("CHECK <{n}@t>\r\n")).collect();
    let articles: String = (0..60).map(|n| takethis(&format!("<{n}@t>"))).collect();
    let begun = tokio::time::Instant::now();
    let (mut reading, mut writing) = tokio::io::split(stream);
    let all = format!("{checks}{articles}QUIT\r\n");
    let sending = writing.write_all(all.as_bytes());
    let mut said = Vec::new();
    let hearing = async {
        let mut lines = BufReader::new(&mut reading).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            said.push((begun.elapsed().as_millis(), line));
        }
    };
    tokio::join!(hearing, sending).1.unwrap();
    let answers = |code: &str| -> Vec<u128> {
        let these = said.iter().filter(|(_, line)| line.starts_with(code));
        these.map(|(at, _)| *at).collect()
    };
    let (offers, taken) = (answers("238"), answers("239"));
    assert_eq!((offers.len(), taken.len()), (60, 60), "{said:?}");
    assert!(offers[59] < 100, "{offers:?}");
    // A second's worth at once, and each of the others in its time.
    for (nth, at) in taken.iter().enumerate() {
        let due = (nth as u128 * 100).saturating_sub(1000);
        assert!((due..due + 300).contains(at), "{nth}: {taken:?}");
    }
}

/// Two connections from one address are together as fast as it may be, and a login adds the pace of the user.
#[tokio::test(start_paused = true)]
async fn connections_of_one_address_share_its_pace() {
    for (key, login) in [
        ("address", ""),
        (
            "user",
            "AUTHINFO USER ada\r\nAUTHINFO PASS correct-horse\r\n",
        ),
    ] {
        let mut driver = driver(SessionConfig::default());
        let entry = format!(
            "[{{ name = 'all', read = '*', post = '*', commands_per_s_per_{key}_max = 10 }}]"
        );
        let setup = Setup {
            config: vec![("access".to_owned(), entry)],
            ..Setup::default()
        };
        driver.start(&setup).await.unwrap();
        let ada = ["ada", "correct-horse"].map(str::to_owned);
        let [name, password] = ada;
        let user = Action::User {
            name,
            password,
            groups: Vec::new(),
        };
        driver.act(&user).await.unwrap();
        let (mut one, mut other) = (greeted(&mut driver).await, greeted(&mut driver).await);
        for stream in [&mut one, &mut other] {
            say(stream, login).await;
            so_far(stream).await;
        }
        let begun = tokio::time::Instant::now();
        let dates = format!("{}QUIT\r\n", "DATE\r\n".repeat(29));
        for stream in [&mut one, &mut other] {
            say(stream, &dates).await;
        }
        let (mut said, mut by_other) = (String::new(), String::new());
        let reading = (
            one.read_to_string(&mut said),
            other.read_to_string(&mut by_other),
        );
        let (first, second) = tokio::join!(reading.0, reading.1);
        first.and(second).unwrap();
        assert_eq!((said + &by_other).matches("111 ").count(), 58);
        let passed = begun.elapsed().as_millis();
        assert!((5000..5600).contains(&passed), "{passed} ms by {key}");
    }
}

/// A rate held what a client is sent only: a post of any size was taken as fast as it came.
#[tokio::test(start_paused = true)]
async fn octets_are_taken_no_faster_than_they_may() {
    let large = |id: &str| article(id).replace("body\r\n", &"a line of a body\r\n".repeat(500));
    for (command, asks, answer) in [
        ("POST", "340 ", "240 "),
        ("IHAVE <2@t>", "335 ", "235 "),
        ("TAKETHIS <2@t>", "", "239 <2@t>"),
    ] {
        let mut driver = paced(1000, 0);
        let mut stream = greeted(&mut driver).await;
        let begun = tokio::time::Instant::now();
        // What is owed for what came before does not wait for what is paid behind it.
        say(&mut stream, &takethis("<1@t>")).await;
        let first = so_far(&mut stream).await;
        assert_eq!(first, "239 <1@t>\r\n", "{command}");
        say(&mut stream, &format!("{command}\r\n")).await;
        if !asks.is_empty() {
            assert!(so_far(&mut stream).await.starts_with(asks), "{command}");
        }
        let sent = large("<2@t>");
        let (mut reading, mut writing) = tokio::io::split(stream);
        let mut said = vec![0; 64];
        let (written, read) =
            tokio::join!(writing.write_all(sent.as_bytes()), reading.read(&mut said));
        written.unwrap();
        let said = String::from_utf8_lossy(&said[..read.unwrap()]);
        assert!(said.starts_with(answer), "{command}: {said}");
        let least = sent.len() as u128 - 1000;
        let passed = begun.elapsed().as_millis();
        assert!(
            (least..least + 1000).contains(&passed),
            "{command}: {passed} ms, {least}"
        );
    }
}

/// While more may not be read yet, what is owed is answered, and a server that stops does not wait.
#[tokio::test(start_paused = true)]
async fn who_sends_too_fast_is_answered_and_let_go() {
    let mut driver = paced(100, 0);
    let mut stream = greeted(&mut driver).await;
    driver.service.set_trouble(Trouble {
        hold: true,
        ..Trouble::default()
    });
    // The last piece that is read at once is as long as one may be, and takes a second to be paid for.
    let sent = takethis("<1@t>");
    let more = "y".repeat(100 - sent.len() % 100);
    say(&mut stream, &sent.replace("body", &format!("body{more}"))).await;
    while driver.service.held() == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    driver.service.let_go(1, false);
    assert_eq!(so_far(&mut stream).await, "239 <1@t>\r\n");
    let mut stream = greeted(&mut driver).await;
    say(&mut stream, &"x".repeat(300)).await;
    assert_eq!(so_far(&mut stream).await, "");
    driver.act(&Action::Stop).await.unwrap();
    assert_eq!(so_far(&mut stream).await, "400 Server is stopping\r\n");
}

#[tokio::test(start_paused = true)]
async fn octets_are_sent_no_faster_than_they_may() {
    let mut driver = paced(1000, 0);
    let mut stream = greeted(&mut driver).await;
    let begun = tokio::time::Instant::now();
    say(&mut stream, &format!("{}QUIT\r\n", "HELP\r\n".repeat(10))).await;
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert_eq!(said.matches("100 ").count(), 10);
    // What the greeting took of the first second is not counted.
    let least = (said.len() as u128).saturating_sub(1000);
    let passed = begun.elapsed().as_millis();
    assert!(
        (least..least + 300).contains(&passed),
        "{passed} ms, {least}"
    );
}

/// What is thrown away was paid for as an article is, which may take as long as it takes: a line or an article without end,
/// at a pace, ended never.
#[tokio::test(start_paused = true)]
async fn what_has_no_end_ends_at_a_pace_too() {
    for (begun, seconds) in [("", 60), ("TAKETHIS <1@t>\r\n", 1800)] {
        let mut driver = driver(SessionConfig {
            article_bytes_max: 1 << 10,
            ..SessionConfig::default()
        });
        driver.grant.octets_per_s_max = 1000;
        let mut stream = greeted(&mut driver).await;
        say(&mut stream, begun).await;
        let (mut reading, mut writing) = tokio::io::split(stream);
        let mut said = String::new();
        let sending = async { while writing.write_all(&[b'x'; 1000]).await.is_ok() {} };
        let both = async { tokio::join!(reading.read_to_string(&mut said), sending).0 };
        let ended = tokio::time::timeout(Duration::from_secs(2 * seconds), both).await;
        ended.expect(begun).unwrap();
        assert!(said.ends_with("400 Too slow\r\n"), "{begun}: {said}");
    }
}

/// A reader at a pace, which nothing keeps waiting but that, held large articles when others had been given their room.
#[tokio::test(start_paused = true)]
async fn who_reads_at_a_pace_makes_room() {
    let mut driver = driver(SessionConfig {
        input_chunk_bytes: 64 << 10,
        large_articles_bytes_max: 2 << 20,
        ..SessionConfig::default()
    });
    let body = format!("{}\r\n", "x".repeat(998)).repeat(900);
    let text = article("<1@t>").replace("body\r\n", &body);
    let injected = driver.service.inject(b"<1@t>", text.as_bytes());
    assert_eq!(injected, Outcome::Accepted);
    driver.grant.octets_per_s_max = 1000;
    let mut readers = Vec::new();
    for _ in 0..8 {
        let mut reader = greeted(&mut driver).await;
        say(&mut reader, "ARTICLE <1@t>\r\n").await;
        assert!(so_far(&mut reader).await.starts_with("220 0 <1@t>\r\n"));
        readers.push(reader);
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    let ended = driver.metrics.snapshot().ended;
    assert!(ended.contains(&("write_stalled", 6)), "{ended:?}");
}
