//! Every pass is run against the do-nothing server, and against servers that answer wrongly.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use newsreel_bench::beside::{self, BesideArgs};
use newsreel_bench::corpus::{Corpus, CorpusArgs, Size};
use newsreel_bench::feed::{self, FeedArgs};
use newsreel_bench::idle::{self, IdleArgs};
use newsreel_bench::load::{LoadArgs, Machine};
use newsreel_bench::null::{NullArgs, NullServer};
use newsreel_bench::passes;
use newsreel_bench::read::{self, By, Order, ReadArgs, Verify};
use newsreel_bench::report::Report;
use newsreel_host::{RealClock, RealDisk};

struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start() -> Self {
        let loopback = "127.0.0.1:0".parse().unwrap();
        let args = NullArgs {
            groups: 10,
            ..NullArgs::new(loopback)
        };
        let server = NullServer::bind(&args).unwrap();
        let address = server.address().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.serve(&told).unwrap());
        Self {
            address,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn corpus(articles: u64) -> Corpus {
    let args = CorpusArgs {
        articles: Some(articles),
        groups: 10,
        ..CorpusArgs::default()
    };
    Corpus::new(&args, &RealDisk, &RealClock::new()).unwrap()
}

fn feed(args: &FeedArgs, corpus: &Corpus) -> Report {
    let clock = RealClock::new();
    feed::run(
        args,
        corpus,
        Machine {
            disk: &RealDisk,
            clock: &clock,
        },
    )
    .unwrap()
}

fn read(args: &ReadArgs, corpus: &Corpus) -> Report {
    let clock = RealClock::new();
    read::run(
        args,
        corpus,
        Machine {
            disk: &RealDisk,
            clock: &clock,
        },
    )
    .unwrap()
}

#[test]
fn every_way_to_feed_offers_each_article_once() {
    let corpus = corpus(1500);
    for pass in passes::FEED {
        let server = Server::start();
        for (turn, (connections, window)) in (0..).zip([(1, 1), (3, 0), (4, 20)]) {
            let part = corpus.part(turn * 500, (turn + 1) * 500);
            let load = LoadArgs {
                connections,
                threads: 2,
                ..LoadArgs::new(server.address)
            };
            if pass.name == "check-known" {
                feed(&FeedArgs::new(load.clone()), &part);
            }
            let args = FeedArgs {
                mode: pass.name.to_owned(),
                window,
                ..FeedArgs::new(load)
            };
            let report = feed(&args, &part);
            assert!(report.is_sound(), "{}", report.human());
            assert_eq!(report.operations, 500, "{}", report.human());
            assert_eq!(report.accepted, if pass.sends { 500 } else { 0 });
            // As many as there are, and each of them is known now: none was sent twice.  POST names none of them to a
            // server that does nothing, and cancels are other messages; a real one takes all of them (`every_pass` of the
            // app's tests).
            if pass.sends && !matches!(pass.name, "post" | "cancel") {
                let known = FeedArgs {
                    mode: "check-known".to_owned(),
                    ..args.clone()
                };
                let known = feed(&known, &part);
                assert!(known.is_sound(), "{}", known.human());
                assert_eq!(known.operations, 500);
            }
            if pass.name == "check" {
                assert_eq!(feed(&args, &part).operations, 0, "all of them are known");
            }
        }
    }
}

#[test]
fn overlapping_peers_offer_everything() {
    let (server, corpus) = (Server::start(), corpus(100));
    let load = LoadArgs {
        connections: 3,
        ..LoadArgs::new(server.address)
    };
    let report = feed(
        &FeedArgs {
            overlap: true,
            ..FeedArgs::new(load)
        },
        &corpus,
    );
    assert_eq!((report.operations, report.accepted), (300, 300));
}

#[test]
fn every_way_to_read_verifies_what_it_gets() {
    let (server, corpus) = (Server::start(), corpus(100));
    for pass in passes::READ {
        for (depth, quick_ack) in [(1, true), (7, false)] {
            let load = LoadArgs {
                connections: 3,
                quick_ack,
                ..LoadArgs::new(server.address)
            };
            let by = if depth == 1 { By::Id } else { By::Number };
            let mode = pass.name.to_owned();
            let args = ReadArgs {
                mode,
                by,
                depth,
                operations: Some(300),
                ..ReadArgs::new(load)
            };
            let report = read(&args, &corpus);
            assert!(report.is_sound(), "{}", report.human());
            assert_eq!(report.operations, 300, "{}", report.human());
            assert!(
                serde_json::to_string(&report)
                    .unwrap()
                    .contains("\"p99_us\"")
            );
        }
    }
}

#[test]
fn in_order_every_number_of_every_group_is_read_once() {
    let (server, corpus) = (Server::start(), corpus(100));
    let load = LoadArgs {
        connections: 3,
        ..LoadArgs::new(server.address)
    };
    let mut args = ReadArgs {
        by: By::Number,
        order: Order::Sequential,
        ..ReadArgs::new(load)
    };
    args.load.duration_secs = None;
    // The do-nothing server says that it has ten groups of twenty articles.
    assert_eq!(read(&args, &corpus).operations, 200);
    args.by = By::Id;
    assert_eq!(read(&args, &corpus).operations, 100);
}

#[test]
fn a_rate_is_kept_and_a_duration_ends_the_run() {
    let (server, corpus) = (Server::start(), corpus(100));
    let load = LoadArgs {
        connections: 20,
        rate: Some(400.0),
        duration_secs: Some(0.5),
        timeline_secs: Some(0.1),
        server_pid: Some(std::process::id()),
        ..LoadArgs::new(server.address)
    };
    let report = read(&ReadArgs::new(load), &corpus);
    assert!(
        (150..=220).contains(&report.operations),
        "{}",
        report.human()
    );
    assert!(report.timeline.len() >= 3);
    assert!(report.server.unwrap().rss_bytes > 0);
}

#[test]
fn a_feed_beside_readers_is_measured_three_times() {
    let (server, corpus) = (Server::start(), corpus(3000));
    let load = LoadArgs::new(server.address);
    let readers = LoadArgs {
        connections: 30,
        rate: Some(600.0),
        ..load.clone()
    };
    let args = BesideArgs {
        feed: FeedArgs::new(load),
        read: ReadArgs::new(readers),
    };
    let clock = RealClock::new();
    let machine = Machine {
        disk: &RealDisk,
        clock: &clock,
    };
    let report = beside::run(&args, &corpus, machine).unwrap();
    assert!(
        report.kept > 0.0 && report.readers.operations > 100,
        "{}",
        report.human()
    );
    for fed in [&report.before, &report.beside, &report.after] {
        assert_eq!(fed.accepted, 1000);
    }
}

#[test]
fn idle_connections_are_held_and_found_alive() {
    let server = Server::start();
    let args = IdleArgs {
        server: server.address,
        connections: 50,
        duration_secs: 0.1,
        server_pid: Some(std::process::id()),
        progress: false,
    };
    let clock = RealClock::new();
    let report = idle::run(
        &args,
        Machine {
            disk: &RealDisk,
            clock: &clock,
        },
    )
    .unwrap();
    assert_eq!((report.connections, report.alive), (50, 50));
    assert!(report.human().starts_with("50 idle connections"));
}

/// A server that plays one script for each connection in turn: for each read that brings something
/// it says the next part (parts end with `|`), then it closes.
fn scripted(scripts: &'static [&'static str]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for script in scripts {
            let (mut stream, _) = listener.accept().unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(5)))
                .unwrap();
            stream.write_all(b"200 hello\r\n").unwrap();
            let mut said = *script;
            while let Some((now, rest)) = said.split_once('|') {
                let mut buf = [0; 65_536];
                if stream.read(&mut buf).unwrap_or(0) == 0 {
                    break;
                }
                stream.write_all(now.as_bytes()).unwrap();
                said = rest;
            }
        }
    });
    address
}

#[test]
fn a_reply_for_another_article_is_a_complaint() {
    let server = scripted(&["203 on\r\n|239 <other@example>\r\n|"]);
    let args = FeedArgs {
        window: 1,
        ..FeedArgs::new(LoadArgs::new(server))
    };
    let report = feed(&args, &corpus(1));
    assert_eq!(
        (report.operations, report.damaged, report.lost_connections),
        (1, 1, 0)
    );
    assert!(
        report.complaints[0].contains("<other@example>"),
        "{:?}",
        report.complaints
    );
}

#[test]
fn a_connection_that_ends_early_is_reported_not_an_error() {
    let server = scripted(&["203 on\r\n||"]);
    let args = FeedArgs {
        window: 3,
        ..FeedArgs::new(LoadArgs::new(server))
    };
    let report = feed(&args, &corpus(10));
    assert_eq!((report.operations, report.lost_connections), (0, 1));
    assert!(
        report.complaints[0].contains("waits for the reply to TAKETHIS"),
        "{report:?}"
    );
}

#[test]
fn damaged_articles_are_found() {
    // The list is fetched on a connection of its own.
    let list = "201 r\r\n|215 list\r\nmisc.test 0000000001 0000000001 y\r\n.\r\n|";
    let reader = "201 r\r\n|211 1 1 1 misc.test\r\n|220 2 <a@b>\r\nPath: x\r\n\r\nbody\r\n.\r\n|";
    let server = scripted(Box::leak(Box::new([list, reader])));
    let by_number = ReadArgs {
        by: By::Number,
        ..ReadArgs::new(LoadArgs::new(server))
    };
    let args = ReadArgs {
        operations: Some(1),
        ..by_number
    };
    let report = read(&args, &corpus(1));
    assert_eq!(report.damaged, 1, "{report:?}");
}

/// Reads article 0 of the corpus once from a server that gives what `change` makes of it.
fn read_changed(base_time_secs: Option<u64>, change: impl Fn(&str) -> String) -> Report {
    let args = CorpusArgs {
        articles: Some(1),
        base_time_secs,
        ..CorpusArgs::default()
    };
    let corpus = Corpus::new(&args, &RealDisk, &RealClock::new()).unwrap();
    let (mut head, mut id) = (Vec::new(), Vec::new());
    let body = corpus.write_article(0, &mut head);
    let article = change(&String::from_utf8([&head[..], body].concat()).unwrap());
    corpus.write_message_id(0, &mut id);
    let id = String::from_utf8(id).unwrap();
    let list = "201 r\r\n|215 list\r\nmisc.test 0000000001 0000000001 y\r\n.\r\n|";
    let reader = format!("201 r\r\n|220 0 {id}\r\n{article}.\r\n|");
    let server = scripted(Box::leak(Box::new([
        list,
        Box::leak(reader.into_boxed_str()),
    ])));
    let args = ReadArgs {
        operations: Some(1),
        verify: Verify::Contents,
        ..ReadArgs::new(LoadArgs::new(server))
    };
    read(&args, &corpus)
}

#[test]
fn contents_are_compared_octet_for_octet() {
    for base_time in [None, Some(1_767_225_600)] {
        let same = read_changed(base_time, |article| format!("Xref: us g:1\r\n{article}"));
        assert_eq!((same.damaged, same.compared), (0, 1), "{same:?}");
        for (from, to) in [("Subject: ", "Subject: x"), (".\r\n", "\r\n")] {
            let changed = read_changed(base_time, |article| article.replacen(from, to, 1));
            assert_eq!((changed.damaged, changed.compared), (1, 0), "{from:?}");
        }
        let longer = read_changed(base_time, |article| format!("{article}more\r\n"));
        assert_eq!((longer.damaged, longer.compared), (1, 0));
    }
}

/// Who reads without a base time has made articles with other dates than who fed.
#[test]
fn dates_are_compared_when_the_base_time_is_known() {
    let dated = |article: &str| article.replacen("\r\nDate: ", "\r\nDate: x", 1);
    let found = read_changed(Some(1_767_225_600), dated);
    assert_eq!((found.damaged, found.compared), (1, 0));
    let found = read_changed(None, dated);
    assert_eq!((found.damaged, found.compared), (0, 1), "{found:?}");
}

#[test]
fn what_cannot_be_run_is_an_error_with_advice() {
    let clock = RealClock::new();
    let machine = Machine {
        disk: &RealDisk,
        clock: &clock,
    };
    let unused = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let corpus = corpus(1);
    let refused = |args: &FeedArgs| feed::run(args, &corpus, machine).unwrap_err().to_string();
    let args = FeedArgs::new(LoadArgs::new(unused));
    assert!(refused(&args).ends_with("is the server running?"));
    let unknown = refused(&FeedArgs {
        mode: "push".to_owned(),
        ..args.clone()
    });
    assert!(
        unknown.starts_with("mode is push: it must be one of takethis, check"),
        "{unknown}"
    );
    let load = LoadArgs {
        connections: 0,
        ..LoadArgs::new(unused)
    };
    assert!(refused(&FeedArgs::new(load)).starts_with("connections is 0"));
    let load = LoadArgs {
        server_pid: Some(u32::MAX),
        ..LoadArgs::new(unused)
    };
    let no_process = refused(&FeedArgs::new(load));
    assert!(
        no_process.ends_with("there is no such process on this machine"),
        "{no_process}"
    );
    let nothing = feed::run(&args, &corpus.part(0, 0), machine)
        .unwrap_err()
        .to_string();
    assert!(
        nothing.starts_with("there are no articles to feed"),
        "{nothing}"
    );
    let mute = scripted(&["500 what\r\n|"]);
    let said = refused(&FeedArgs::new(LoadArgs::new(mute)));
    assert!(
        said.contains("answered MODE STREAM with \"500 what\""),
        "{said}"
    );
}

/// A server that stops says so; what it said is no damaged reply.
#[test]
fn a_server_that_takes_its_leave_is_quoted() {
    let leaving = scripted(&["203 on\r\n|400 shutting down\r\n|"]);
    let report = feed(&FeedArgs::new(LoadArgs::new(leaving)), &corpus(1));
    assert_eq!(
        (report.damaged, report.lost_connections),
        (0, 1),
        "{report:?}"
    );
    let said = &report.complaints[0];
    assert!(
        said.starts_with("the server said 400 shutting down; the connection waits"),
        "{said}"
    );
}

#[test]
fn large_articles_are_sent_and_read_whole() {
    let args = CorpusArgs {
        size: Size::Fixed(700_000),
        articles: Some(20),
        ..CorpusArgs::default()
    };
    let corpus = Corpus::new(&args, &RealDisk, &RealClock::new()).unwrap();
    let server = Server::start();
    let load = LoadArgs {
        connections: 2,
        ..LoadArgs::new(server.address)
    };
    let report = feed(&FeedArgs::new(load), &corpus);
    assert!(
        report.is_sound() && report.accepted == 20,
        "{}",
        report.human()
    );
    let sent = report.sent_mb_per_second * report.seconds * 1e6;
    assert!((sent / 20.0 - 700_000.0).abs() < 300.0, "{sent}");
}
