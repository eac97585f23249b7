//! Articles fetched from servers that close, say nothing, or have numbers without end; and what another configuration touches.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::GroupSpec;
use newsreel_feed::{PullConfig, PullReport, Pulling, Pulls};
use newsreel_host::Clock;
use newsreel_net::Drain;
use newsreel_service::{Connection, ConnectionId, NewsService as _, Offer};
use newsreel_wire::MessageId;
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::site::{Site, id};

/// What it says to a command; nothing: it says nothing, none: it closes the connection.
type Says = fn(&[&str]) -> Option<String>;

/// A server that articles are fetched from.
struct Upstream {
    address: String,
    commands: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    async fn new(says: Says) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let commands = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&commands);
        #[expect(clippy::disallowed_methods, reason = "ends with the test")]
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                seen.lock().push("connects".to_owned());
                let seen = Arc::clone(&seen);
                #[expect(clippy::disallowed_methods, reason = "ends with its connection")]
                tokio::spawn(async move {
                    let _ = serve(stream, says, &seen).await;
                });
            }
        });
        Self { address, commands }
    }

    /// How many commands began so.
    fn seen(&self, begin: &str) -> usize {
        let commands = self.commands.lock();
        commands.iter().filter(|it| it.starts_with(begin)).count()
    }

    async fn until_seen(&self, begin: &str) {
        for _ in 0..2000 {
            if self.seen(begin) > 0 {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("waited in vain for {begin}: {:?}", self.commands.lock());
    }

    fn config(&self, name: &str) -> PullConfig {
        PullConfig {
            name: name.to_owned(),
            address: self.address.clone(),
            interval_s: 3600,
            ..PullConfig::default()
        }
    }
}

async fn serve(
    mut stream: TcpStream,
    says: Says,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut commands = BufReader::new(reader).lines();
    writer.write_all(b"200 here\r\n").await?;
    while let Some(command) = commands.next_line().await? {
        seen.lock().push(command.clone());
        let words: Vec<&str> = command.split_whitespace().collect();
        let answer = match words[0] {
            "CAPABILITIES" => {
                Some("101 list\r\nVERSION 2\r\nREADER\r\nOVER\r\nLIST ACTIVE\r\n.\r\n".to_owned())
            }
            "MODE" => Some("200 here\r\n".to_owned()),
            "QUIT" => None,
            _ => says(&words),
        };
        let Some(answer) = answer else {
            return Ok(());
        };
        writer.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

fn row(n: usize) -> String {
    format!("{n}\ts\tf\td\t{}\t\t9\t1\r\n", id(n))
}

/// The article under a number.
fn article(n: &str, group: &str) -> String {
    let id = id(n.parse().unwrap());
    format!(
        "220 {n} {id}\r\nPath: up.example!x\r\nFrom: a@t.example\r\nNewsgroups: {group}\r\nSubject: s\r\n\
         Date: Tue, 14 Nov 2023 22:00:00 +0000\r\nMessage-ID: {id}\r\n\r\nbody\r\n.\r\n"
    )
}

fn said(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn pulls(site: &Site, configs: &[PullConfig]) -> Arc<Pulls> {
    let pulls = Pulls::open(
        Arc::clone(&site.engine),
        Arc::clone(&site.disk),
        Path::new("/spool"),
        Arc::clone(&site.clock) as Arc<dyn Clock>,
        configs,
    );
    Arc::new(pulls.unwrap())
}

async fn pull(pulls: &Pulls) -> Result<PullReport, String> {
    let wanted = Pulling {
        host: "up".to_owned(),
        groups: None,
        dry_run: false,
    };
    pulls.pull(&wanted, &mut |_, _, _| true).await
}

/// Takes over another configuration.
async fn change(pulls: &Pulls, to: &[PullConfig]) {
    pulls.reload(to);
    for _ in 0..2000 {
        if !pulls.is_changing() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain for another configuration");
}

/// Any reload ended all runs, and began them anew whatever the interval said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_configuration_touches_what_it_changes() {
    let site = Site::new(&[]);
    // Its run is under way for as long as the test is.
    let slow = Upstream::new(|_| said("")).await;
    let closed = Upstream::new(|_| None).await;
    let (first, second) = (slow.config("up"), closed.config("b"));
    let pulls = pulls(&site, std::slice::from_ref(&first));
    let drain = Drain::new();
    #[expect(clippy::disallowed_methods, reason = "joined below")]
    let running = tokio::spawn(Arc::clone(&pulls).run(drain.watch()));
    slow.until_seen("LIST").await;
    change(&pulls, &[second.clone(), first.clone()]).await;
    closed.until_seen("LIST").await;
    let report = || pulls.reports().pop().unwrap();
    assert!(
        report().running && report().ended.is_none(),
        "{:?}",
        report()
    );
    assert_eq!(slow.seen("connects"), 1);
    let other = PullConfig {
        groups: "alt.*".to_owned(),
        ..first
    };
    change(&pulls, &[second, other]).await;
    assert_eq!(report().groups, "alt.*");
    drain.start();
    running.await.unwrap();
}

/// What a run had asked for when it was cut was put off to all others for as long as one waits for an article.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_run_that_is_cut_asked_for_may_come_from_others() {
    let site = Site::new(&[]);
    let up = Upstream::new(|words| match words {
        ["LIST", ..] => said("215 list\r\nmisc.test 1 1 y\r\n.\r\n"),
        ["GROUP", ..] => said("211 1 1 1 misc.test\r\n"),
        ["OVER", ..] => Some(format!("224 list\r\n{}.\r\n", row(1))),
        _ => said(""),
    })
    .await;
    let pulls = pulls(&site, &[up.config("up")]);
    let drain = Drain::new();
    #[expect(clippy::disallowed_methods, reason = "joined below")]
    let running = tokio::spawn(Arc::clone(&pulls).run(drain.watch()));
    up.until_seen("ARTICLE").await;
    let other = Arc::new(Connection::new(ConnectionId(1), None, None));
    let offered = async || {
        let id = id(1);
        let id = MessageId::parse(id.as_bytes()).unwrap();
        site.engine.service().offer(id, &other).await
    };
    assert!(matches!(offered().await, Offer::Later(_)));
    change(&pulls, &[]).await;
    assert_eq!(offered().await, Offer::Want);
    drain.start();
    running.await.unwrap();
}

/// A group at which the server ends each connection kept all behind it away for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_at_which_connections_end_holds_up_no_other() {
    let site = Site::new(&[]);
    let up = Upstream::new(|words| match words {
        ["LIST", ..] => said("215 list\r\nalt.test 2 1 y\r\nmisc.test 1 1 y\r\n.\r\n"),
        ["GROUP", "misc.test"] => said("211 1 1 1 misc.test\r\n"),
        ["OVER", ..] => Some(format!("224 list\r\n{}.\r\n", row(1))),
        ["ARTICLE", n] => Some(article(n, "misc.test")),
        _ => None,
    })
    .await;
    let config = up.config("up");
    let report = pull(&pulls(&site, &[config])).await.unwrap();
    assert_eq!(report.last.accepted, 1, "{report:?}");
    let why = &report.last.refused["alt.test"];
    assert!(why.contains("closed the connection"), "{why}");
    assert_eq!(up.seen("connects"), 2);
    // Where there is nothing else, it is no success.
    let config = PullConfig {
        groups: "alt.*".to_owned(),
        ..up.config("up")
    };
    let report = pull(&pulls(&site, &[config])).await.unwrap();
    let why = report.failed.unwrap();
    assert!(why.contains("closed the connection"), "{why}");
    assert_eq!(report.last.refused["alt.test"], why);
}

/// What a run had brought before it failed, and at which group it did, was not told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_fails_tells_what_it_brought_and_where_it_failed() {
    let site = Site::new(&[]);
    let up = Upstream::new(|words| match words {
        ["LIST", ..] => said("215 list\r\nmisc.test 2 1 y\r\n.\r\n"),
        ["GROUP", ..] => said("211 2 1 2 misc.test\r\n"),
        ["OVER", "1-2"] => Some(format!("224 list\r\n{}{}.\r\n", row(1), row(2))),
        ["OVER", range] if range.starts_with('1') => Some(format!("224 list\r\n{}.\r\n", row(1))),
        ["OVER", ..] => Some(format!("224 list\r\n{}.\r\n", row(2))),
        ["ARTICLE", "1"] => Some(article("1", "misc.test")),
        _ => None,
    })
    .await;
    let report = pull(&pulls(&site, &[up.config("up")])).await.unwrap();
    assert_eq!(report.last.accepted, 1, "{report:?}");
    let why = report.failed.unwrap();
    assert!(why.contains("closed the connection"), "{why}");
    assert_eq!(report.last.refused["misc.test"], why);
}

/// Behind more groups than a run passes over at which connections end, none was ever come to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_run_begins_behind_the_groups_at_which_one_gave_up() {
    let site = Site::new(&[]);
    let groups = (10..40).map(|n| GroupSpec::new(&format!("alt.n{n}")));
    site.engine.add_groups(groups.collect()).unwrap();
    let up = Upstream::new(|words| match words {
        ["LIST", ..] => {
            let closing = (10..40).map(|n| format!("alt.n{n} 1 1 y\r\n"));
            let list: String = closing.collect();
            Some(format!("215 list\r\n{list}misc.test 1 1 y\r\n.\r\n"))
        }
        ["GROUP", "misc.test"] => said("211 1 1 1 misc.test\r\n"),
        ["OVER", ..] => Some(format!("224 list\r\n{}.\r\n", row(1))),
        ["ARTICLE", n] => Some(article(n, "misc.test")),
        _ => None,
    })
    .await;
    let configs = [up.config("up")];
    let report = pull(&pulls(&site, &configs)).await.unwrap();
    let why = report.failed.unwrap();
    assert!(
        why.contains("17 groups") && why.contains("alt.n26"),
        "{why}"
    );
    let named = |from, to| (from..to).map(|n| format!("alt.n{n}")).collect::<Vec<_>>();
    let refused = |of: &newsreel_feed::Pulled| of.refused.keys().cloned().collect::<Vec<_>>();
    assert_eq!(refused(&report.last), named(10, 27));
    // The next one goes on there, also after a start, and comes to all.
    let report = pull(&pulls(&site, &configs)).await.unwrap();
    assert_eq!(report.last.accepted, 1, "{report:?}");
    assert_eq!(
        refused(&report.last),
        [named(10, 14), named(27, 40)].concat()
    );
    let why = report.failed.unwrap();
    assert!(why.contains("alt.n13"), "{why}");
}

/// The last number of a group with two articles.
const LAST: &str = "9007199254740992";

/// A server that gave any numbers was asked for all between them, five hundred at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_under_which_nothing_is_are_passed_over() {
    fn says(words: &[&str]) -> Option<String> {
        let rows = |range: &str| {
            let (from, to) = range.split_once('-').unwrap();
            let range = from.parse().unwrap()..=to.parse::<usize>().unwrap();
            let those = [1, LAST.parse().unwrap()];
            let those = those.into_iter().filter(|n| range.contains(n));
            format!("224 list\r\n{}.\r\n", those.map(row).collect::<String>())
        };
        match words {
            ["LIST", ..] => Some(format!("215 list\r\nmisc.test {LAST} 1 y\r\n.\r\n")),
            ["GROUP", ..] => Some(format!("211 2 1 {LAST} misc.test\r\n")),
            ["OVER", range] => Some(rows(range)),
            ["LISTGROUP", _, range] => {
                assert!(range.ends_with(LAST));
                Some(format!(
                    "211 2 1 {LAST} misc.test\r\n1\r\nx\r\n{LAST}\r\n.\r\n"
                ))
            }
            ["ARTICLE", n] => Some(article(n, "misc.test")),
            _ => None,
        }
    }
    let site = Site::new(&[]);
    let up = Upstream::new(says).await;
    let config = |up: &Upstream| PullConfig {
        first_articles_max: 0,
        ..up.config("up")
    };
    let report = pull(&pulls(&site, &[config(&up)])).await.unwrap();
    assert_eq!(report.last.accepted, 2, "{report:?}");
    assert!(up.seen("OVER") < 30, "{}", up.seen("OVER"));
    // A server that does not list numbers is asked for some in each run.
    let up = Upstream::new(|words| match words[0] {
        "LISTGROUP" => said("500 what?\r\n"),
        _ => says(words),
    })
    .await;
    let site = Site::new(&[]);
    let pulls = pulls(&site, &[config(&up)]);
    for before in ["500501", "1000501"] {
        let report = pull(&pulls).await.unwrap();
        let why = &report.last.refused["misc.test"];
        assert!(why.contains(&format!("numbers before {before}")), "{why}");
    }
    assert_eq!(up.seen("ARTICLE 1"), 1);
}

/// The mark of NEWNEWS had the blank in it, and the next start could not read any mark.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blank_between_patterns_costs_no_marks() {
    let site = Site::new(&[]);
    let up = Upstream::new(|words| match words {
        ["DATE"] => said("111 20231114221320\r\n"),
        ["LIST", ..] => said("215 list\r\nmisc.test 1 1 y\r\n.\r\n"),
        ["GROUP", "misc.test"] => said("211 1 1 1 misc.test\r\n"),
        ["OVER" | "XOVER", ..] => said(&format!("224 rows\r\n{}.\r\n", row(1))),
        ["ARTICLE", ..] => said(&article("1", "misc.test")),
        _ => said("500 what?\r\n"),
    })
    .await;
    let config = PullConfig {
        newnews: true,
        groups: "misc.*, alt.*".to_owned(),
        ..up.config("up")
    };
    for accepted in [1, 0] {
        // Each is a start of its own.
        let pulls = pulls(&site, std::slice::from_ref(&config));
        let report = pull(&pulls).await.unwrap();
        assert_eq!(report.last.accepted, accepted);
    }
    let seen = ["GROUP", "NEWNEWS"].map(|command| up.seen(command));
    assert_eq!(seen, [1, 1], "{:?}", up.commands.lock());
}

/// A group whose numbers could not be understood counted as one that is not there, and with `newnews` nobody ever looked at it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_whose_numbers_say_nothing_is_named() {
    let site = Site::new(&[]);
    let group = GroupSpec::new("misc.odd");
    site.engine.add_groups(vec![group]).unwrap();
    let up = Upstream::new(|words| match words {
        ["DATE"] => said("111 20231114221320\r\n"),
        ["LIST", ..] => said("215 list\r\nmisc.odd 1 1 y\r\nmisc.test 1 1 y\r\n.\r\n"),
        ["GROUP", "misc.odd"] => said("211 one to one\r\n"),
        ["GROUP", "misc.test"] => said("211 0 1 0 misc.test\r\n"),
        _ => said("500 what?\r\n"),
    })
    .await;
    let config = PullConfig {
        newnews: true,
        ..up.config("up")
    };
    let pulls = pulls(&site, &[config]);
    for _ in 0..2 {
        let report = pull(&pulls).await.unwrap();
        let why = &report.last.refused["misc.odd"];
        assert!(why.contains("cannot be understood"), "{why}");
    }
    assert_eq!((up.seen("GROUP misc.odd"), up.seen("NEWNEWS")), (2, 0));
}
