//! Everything arrives once, in whatever way connections, peers and we ourselves end.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use newsreel_feed::{Fate, FeedReport, LOOKS_MAX, LinkState, PeerConfig};
use newsreel_host::{Effect, Fault, Op};
use newsreel_wire::{MessageId, UnixTime};

use crate::site::{Sending, Site, id, peers};

fn report(sending: &Sending, peer: &str) -> FeedReport {
    let mut reports = sending.peers.reports().into_iter();
    reports.find(|it| it.peer == peer).unwrap()
}

/// How many feeds the configuration has.
fn feeds(sending: &Sending) -> usize {
    let reports = sending.peers.reports();
    reports.iter().filter(|it| it.kept_s.is_none()).count()
}

/// Takes over another configuration.
async fn change(site: &Site, sending: &Sending, to: &[PeerConfig]) {
    sending.peers.reload(to);
    site.until(sending, "b.example", |_| !sending.peers.is_changing())
        .await;
}

/// At the head of the log an article is read from the store once, however many peers it goes to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_article_is_read_once_for_all_peers() {
    let names = ["a.example", "b.example", "c.example"];
    let site = Site::new(&names);
    let peer = |name: &str| format!("[[peer]]\nname = '{name}'\naddress = 'h:1'\n");
    let sending = site.send_to(&peers(&names.map(peer).concat()));
    site.receive(0..500, "misc.test").await;
    for name in names {
        site.until_has(&sending, name, 500).await;
        let has = site.world.0[name].articles.lock().clone();
        assert_eq!(has[&id(7)], site.stored(7).await);
        assert!(has[&id(7)].ends_with(b"Body of 7\r\n..dots\r\n.\r\n"));
        site.until(&sending, name, |_| report(&sending, name).open == 0)
            .await;
        let tally = report(&sending, name).tally;
        assert_eq!((tally.accepted, tally.refused, tally.rejected), (500, 0, 0));
    }
    assert_eq!(sending.peers.reads_and_sent(), (500, 1500));
    sending.stop().await;
}

/// Cut after every few lines, with a queue that is far smaller than the backlog: nothing is lost, and only what was not
/// acknowledged is sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_lose_nothing() {
    let site = Site::new(&["b.example"]);
    let text = "[[peer]]\nname = 'b.example'\naddress = 'h:1'\n[[peer.feed]]\nconnections = 3\nwindow = 8\narticles_max = 40";
    let sending = site.send_to(&peers(text));
    let peer = &site.world.0["b.example"];
    peer.habits.lock().cut_after = Some(60);
    site.receive(0..600, "misc.test").await;
    site.until_has(&sending, "b.example", 600).await;
    let connections = *peer.connections.lock();
    assert!(connections >= 10, "{connections} connections");
    let came = peer.came.lock().len();
    assert!(
        came < 600 + connections * 9,
        "{came} came on {connections} connections"
    );
    for n in [0, 299, 599] {
        let has = peer.articles.lock()[&id(n)].clone();
        assert_eq!(has, site.stored(n).await);
    }
    assert!(report(&sending, "b.example").open <= 40);
    sending.stop().await;
}

/// An article that is taken out while it waits is not sent; it is counted and named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_gone_before_it_is_sent_is_named() {
    let site = Site::new(&["b.example"]);
    let text = "[[peer]]\nname = 'b.example'\naddress = 'h:1'\n";
    let sending = site.send_to(&peers(text));
    sending.peers.pause("b.example", true);
    site.receive(0..3, "misc.test").await;
    site.withdraw(1);
    sending.peers.pause("b.example", false);
    site.until_has(&sending, "b.example", 2).await;
    site.until(&sending, "b.example", |_| {
        report(&sending, "b.example").open == 0
    })
    .await;
    let now = report(&sending, "b.example");
    assert_eq!((now.tally.accepted, now.tally.gone), (2, 1));
    assert_eq!(now.gone, [id(1)]);
    sending.stop().await;
}

/// Each article that was gone when a peer without streaming wanted it ended the connection, and the pauses grew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_gone_costs_no_connection() {
    let site = Site::new(&["b.example"]);
    let sending = site.send_to(&peers(
        "[[peer]]\nname = 'b.example'\naddress = 'h:1'\n[[peer.feed]]\nconnections = 1\n",
    ));
    let peer = &site.world.0["b.example"];
    peer.habits.lock().old = true;
    sending.peers.pause("b.example", true);
    site.receive(0..40, "misc.test").await;
    (0..38).filter(|n| n % 8 > 0).for_each(|n| site.withdraw(n));
    sending.peers.pause("b.example", false);
    site.until(&sending, "b.example", |_| {
        let tally = report(&sending, "b.example").tally;
        tally.accepted + tally.gone == 40
    })
    .await;
    let tally = report(&sending, "b.example").tally;
    assert_eq!((tally.accepted, tally.gone), (7, 33));
    assert_eq!(*peer.connections.lock(), 1);
    let stored = site.stored(8).await;
    assert_eq!(peer.articles.lock()[&id(8)], stored);
    sending.stop().await;
}

/// An article that a peer without streaming did not want counted as sent: its text is read before it is offered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_wanted_is_not_sent() {
    let site = Site::new(&["b.example"]);
    let peer = &site.world.0["b.example"];
    peer.habits.lock().old = true;
    let has = (0..30).map(|n| (id(n), Vec::new()));
    peer.articles.lock().extend(has);
    let sending = site.send_to(&peers("[[peer]]\nname = 'b.example'\naddress = 'h:1'\n"));
    site.receive(0..40, "misc.test").await;
    let tally = || report(&sending, "b.example").tally;
    site.until(&sending, "b.example", |_| {
        tally().accepted + tally().refused == 40
    })
    .await;
    assert_eq!((tally().accepted, tally().refused), (10, 30));
    assert_eq!(sending.peers.reads_and_sent(), (40, 10));
    sending.stop().await;
}

/// What a peer said before it took no more was thrown away, and what it had taken was sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_before_a_reset_counts() {
    let site = Site::new(&["b.example"]);
    let sending = site.send_to(&peers(
        "[[peer]]\nname = 'b.example'\naddress = 'h:1'\n[[peer.feed]]\nconnections = 1\nwindow = 8\n",
    ));
    let peer = &site.world.0["b.example"];
    peer.habits.lock().ends_after = Some(4);
    site.receive_with(0..60, "misc.test", &"a line\r\n".repeat(10_000))
        .await;
    site.until_has(&sending, "b.example", 40).await;
    peer.habits.lock().ends_after = None;
    site.until_has(&sending, "b.example", 60).await;
    sending.stop().await;
    let came = peer.came.lock();
    let once: BTreeSet<&String> = came.iter().collect();
    assert_eq!(came.len(), once.len(), "sent again");
}

/// What went with the log was counted by its records, two for an article, and not named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_log_loses_is_counted_and_named() {
    const EACH: usize = 500;
    const ALL: usize = 12_000;
    let names = ["b.example", "c.example"];
    let site = Site::keeping_log(&names, 1 << 20);
    let feed = "[[peer.feed]]\ngroups = 'misc.*'\narticles_max = 100\n";
    let peer = |name, more| format!("[[peer]]\nname = '{name}'\naddress = 'h:1'\n{feed}{more}\n");
    let text = peer(names[0], "") + &peer(names[1], "fresh_first = true");
    let mute = |is_so| {
        for peer in site.world.0.values() {
            peer.habits.lock().is_mute = is_so;
        }
    };
    mute(true);
    let sending = site.send_to(&peers(&text));
    for from in (0..ALL).step_by(EACH) {
        site.receive(from..from + EACH, "misc.test").await;
        // These do not go out.
        site.receive(ALL + from..ALL + from + 50, "alt.test").await;
        // What goes next is named before more can go.
        site.until(&sending, names[0], |_| {
            report(&sending, names[0]).next >= site.engine.feeds_lose_before().0
        })
        .await;
    }
    let missed = || names.map(|name| report(&sending, name).tally.missed as usize);
    assert!(
        missed()[0] > EACH && missed()[0] < ALL - EACH,
        "{:?}",
        missed()
    );
    mute(false);
    for name in names {
        site.until(&sending, name, |_| {
            let FeedReport { tally, open, .. } = report(&sending, name);
            (tally.accepted + tally.missed, open) == (ALL as u64, 0)
        })
        .await;
        let report = report(&sending, name);
        assert_eq!(report.missed.len(), 100);
        for id in &report.missed {
            assert!(!site.world.0[name].articles.lock().contains_key(id), "{id}");
        }
        let last = MessageId::parse(report.missed[99].as_bytes()).unwrap();
        let told = sending.peers.explain(last).await.unwrap().unwrap();
        let told = told.iter().find(|it| it.peer == name).unwrap();
        assert!(matches!(told.fate, Some(Fate::Missed(_))), "{told:?}");
    }
    // They stay missed: beside the server, and by the next one.
    let counts = |report: FeedReport| (report.tally.missed, report.missed);
    let before = names.map(|name| counts(report(&sending, name)));
    sending.stop().await;
    let found = site.found(&peers(&text)).reports().into_iter().map(counts);
    assert_eq!(found.collect::<Vec<_>>(), before);
    let removed = site.found(&[]).reports().into_iter().map(counts);
    assert_eq!(removed.collect::<Vec<_>>(), before);
    let sending = site.send_to(&peers(&text));
    sending.peers.drop_backlog(names[0], false);
    assert_eq!(names.map(|name| counts(report(&sending, name))), before);
    sending.stop().await;
}

/// Each of the peers that were away read by itself what the log lost, while nobody else was read for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_log_loses_is_read_once_for_all() {
    const EACH: usize = 500;
    let names: Vec<String> = (0..20).map(|n| format!("p{n}.example")).collect();
    let site = Site::keeping_log(
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
        1 << 20,
    );
    // They stand at different places.
    let peer = |(n, name)| {
        let many = 100 + 10 * n;
        format!(
            "[[peer]]\nname = '{name}'\naddress = 'h:1'\n[[peer.feed]]\narticles_max = {many}\n"
        )
    };
    let text: String = names.iter().enumerate().map(peer).collect();
    for peer in site.world.0.values() {
        peer.habits.lock().is_mute = true;
    }
    let sending = site.send_to(&peers(&text));
    let missed = |name: &String| report(&sending, name).tally.missed as usize;
    site.receive(0..EACH, "misc.test").await;
    site.until(&sending, "", |_| {
        let mut all = names.iter().enumerate();
        all.all(|(n, name)| report(&sending, name).open == 100 + 10 * n)
    })
    .await;
    let (mut all, before) = (EACH, site.faults.octets_read("/log/"));
    while missed(&names[19]) < 5 * EACH {
        site.receive(all..all + EACH, "misc.test").await;
        all += EACH;
        site.until(&sending, "", |_| {
            let lost = site.engine.feeds_lose_before().0;
            names.iter().all(|name| report(&sending, name).next >= lost)
        })
        .await;
    }
    // All that one has in memory more than another it misses less.
    site.until(&sending, "", |_| {
        let least = missed(&names[19]);
        let mut all = names.iter().map(missed).enumerate();
        all.all(|(n, it)| it == least + 190 - 10 * n)
    })
    .await;
    let (read, written) = (
        site.faults.octets_read("/log/") - before,
        site.faults.octets_written("/log/"),
    );
    assert!(read < 3 * written, "{read} octets of {written} were read");
    sending.kill().await;
}

/// A connection with nothing to do stayed for as long as anything woke it.
#[tokio::test(start_paused = true)]
async fn a_connection_without_work_ends_whatever_wakes_it() {
    let site = Site::new(&["b.example"]);
    let sending = site.send_to(&peers("[[peer]]\nname = 'b.example'\naddress = 'h:1'\n"));
    site.receive(0..1, "misc.test").await;
    site.until_has(&sending, "b.example", 1).await;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(30)).await;
        sending.peers.flush("b.example");
    }
    let links = report(&sending, "b.example").links;
    assert_eq!(links.first(), Some(&LinkState::Idle), "{links:?}");
    assert_eq!(*site.world.0["b.example"].connections.lock(), 1);
    sending.stop().await;
}

/// What was in memory only was lost with a stop, a kill or another configuration, though it was in the store, and nothing said so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_open_outlives_the_log() {
    let site = Site::keeping_log(&["b.example"], 1 << 20);
    let config = |more: &str| {
        let feed = "[[peer.feed]]\ngroups = 'misc.*'\narticles_max = 100\n";
        peers(&format!(
            "[[peer]]\nname = 'b.example'\naddress = 'h:1'\n{feed}{more}"
        ))
    };
    let peer = &site.world.0["b.example"];
    peer.habits.lock().is_mute = true;
    let mut sending = site.send_to(&config(""));
    site.receive(0..100, "misc.test").await;
    let open = |sending: &Sending| report(sending, "b.example").open;
    site.until(&sending, "b.example", |_| open(&sending) == 100)
        .await;
    let mut others = 1000;
    while site.engine.status().log.oldest < 1000 {
        site.receive(others..others + 500, "alt.test").await;
        others += 500;
    }
    // Its places are written.
    let saved =
        || newsreel_host::read_whole(&*site.disk, Path::new("/spool/feeds"), 1 << 20).unwrap();
    site.clock.advance(Duration::from_secs(1));
    site.receive(others..others + 1, "alt.test").await;
    site.until(&sending, "b.example", |_| {
        String::from_utf8(saved()).unwrap().contains(&id(99))
    })
    .await;
    let fate = async |peers: &newsreel_feed::Peers, n| {
        let id = id(n);
        let told = peers
            .explain(MessageId::parse(id.as_bytes()).unwrap())
            .await;
        told.unwrap().unwrap()[0].fate.clone()
    };
    assert_ne!(fate(&sending.peers, 7).await, Some(Fate::Passed));
    change(&site, &sending, &config("window = 3\n")).await;
    assert_eq!(open(&sending), 100);
    sending.kill().await;
    assert_eq!(fate(&site.found(&config("")), 7).await, Some(Fate::Open));
    sending = site.send_to(&config(""));
    assert_eq!(open(&sending), 100);
    peer.habits.lock().is_mute = false;
    site.until(&sending, "b.example", |_| open(&sending) == 0)
        .await;
    let tally = report(&sending, "b.example").tally;
    assert_eq!((tally.accepted, tally.missed, tally.gone), (100, 0, 0));
    assert!(peer.articles.lock().contains_key(&id(7)));
    sending.stop().await;
}

/// What was in memory at a stop was missed where the log went before the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_open_at_a_stop_outlives_the_log() {
    let site = Site::keeping_log(&["b.example"], 4 << 20);
    let text =
        peers("[[peer]]\nname = 'b.example'\naddress = 'h:1'\n[[peer.feed]]\ngroups = 'misc.*'\n");
    let peer = &site.world.0["b.example"];
    peer.habits.lock().is_mute = true;
    let sending = site.send_to(&text);
    site.receive(0..100, "misc.test").await;
    let mut others = 1000;
    while others < 10_000 {
        site.receive(others..others + 500, "alt.test").await;
        others += 500;
    }
    let end = site.engine.watch_commits().borrow().next().0;
    site.until(&sending, "b.example", |_| {
        let now = report(&sending, "b.example");
        (now.open, now.next) == (100, end)
    })
    .await;
    assert_eq!(site.engine.feeds_lose_before().0, 0);
    sending.stop().await;
    while site.engine.status().log.oldest < 1000 {
        site.receive(others..others + 100, "alt.test").await;
        others += 100;
    }
    let oldest = site.engine.status().log.oldest;
    assert!(oldest <= end, "{oldest} is behind {end}");
    peer.habits.lock().is_mute = false;
    let sending = site.send_to(&text);
    site.until(&sending, "b.example", |_| {
        report(&sending, "b.example").open == 0
    })
    .await;
    let tally = report(&sending, "b.example").tally;
    assert_eq!((tally.accepted, tally.missed, tally.gone), (100, 0, 0));
    sending.stop().await;
}

/// A place that a later newsreel wrote was taken for damaged, and written over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_later_newsreel_wrote_ends_the_start() {
    let site = Site::new(&["b.example"]);
    let text = peers("[[peer]]\nname = 'b.example'\naddress = 'h:1'\n");
    let file = Path::new("/spool/feeds");
    let read = |name: &str| newsreel_host::read_whole(&*site.disk, Path::new(name), 999).unwrap();
    let put = |octets: &[u8]| newsreel_host::replace_file(&*site.disk, file, octets).unwrap();
    let later = newsreel_host::sealed::seal("newsreel feeds 3 ", b"b.example/all 1\n");
    put(&later);
    let why = site.try_open(&text).unwrap_err().to_string();
    assert!(
        why.contains("/spool/feeds") && why.contains("later"),
        "{why}"
    );
    assert_eq!(read("/spool/feeds"), later);
    // One that is damaged is kept beside what is written.
    put(b"newsreel feeds 2 01234567\n");
    site.send_to(&text).stop().await;
    assert_eq!(read("/spool/feeds.damaged"), b"newsreel feeds 2 01234567\n");
}

/// Where the log could not be read for one feed, what that misses was counted again each time, and no feed was read for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_named_counts_once_and_holds_no_other() {
    const EACH: usize = 500;
    let names = ["b.example", "c.example"];
    let site = Site::keeping_log(&names, 1 << 20);
    let peer = |name| {
        format!("[[peer]]\nname = '{name}'\naddress = 'h:1'\n[[peer.feed]]\narticles_max = 100\n")
    };
    let is_mute = |is_so| site.world.0[names[0]].habits.lock().is_mute = is_so;
    is_mute(true);
    let sending = site.send_to(&peers(&names.map(peer).concat()));
    let first = site.disk.list(Path::new("/spool/log")).unwrap();
    let first = first.into_iter().map(|it| it.name).min().unwrap();
    let mut all = 0;
    while site.engine.feeds_lose_before().0 <= report(&sending, names[0]).next {
        site.receive(all..all + EACH, "misc.test").await;
        all += EACH;
        site.until_has(&sending, names[1], all).await;
        if all == 3 * EACH {
            // In the middle of what one of them has not come to, and the other has.
            let fault = Fault::new(Op::Read, &first, Effect::Denied);
            site.faults.add(fault.covering(200 << 10).forever());
        }
    }
    let mut missed = Vec::new();
    for _ in 0..3 {
        // What failed is tried again.
        site.clock.advance(Duration::from_secs(1));
        site.receive(all..all + 10, "misc.test").await;
        all += 10;
        site.until_has(&sending, names[1], all).await;
        missed.push(report(&sending, names[0]).tally.missed as usize);
    }
    assert!(missed[1] > 0 && missed[1] == missed[2], "{missed:?}");
    site.faults.clear();
    is_mute(false);
    site.until(&sending, names[0], |_| {
        let FeedReport { tally, open, .. } = report(&sending, names[0]);
        (tally.accepted + tally.missed, open) == (all as u64, 0)
    })
    .await;
    sending.stop().await;
}

/// What was open when a feed ended was never sent where the log could not be read at that moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_open_is_looked_for_until_it_is_found() {
    let site = Site::new(&["b.example"]);
    let peer = &site.world.0["b.example"];
    let text = peers("[[peer]]\nname = 'b.example'\naddress = 'h:1'\n");
    peer.habits.lock().is_mute = true;
    let sending = site.send_to(&text);
    site.receive(0..50, "misc.test").await;
    site.until(&sending, "b.example", |_| {
        report(&sending, "b.example").open == 50
    })
    .await;
    sending.peers.note().unwrap();
    sending.kill().await;
    peer.habits.lock().is_mute = false;
    // A read is tried once more at once, for less.
    let fault = Fault::new(Op::Read, "/spool/log", Effect::Denied);
    site.faults.add(fault.times(2));
    let sending = site.send_to(&text);
    site.receive(50..60, "misc.test").await;
    site.until_has(&sending, "b.example", 60).await;
    assert_eq!(peer.came.lock().len(), 60, "none is sent twice");
    site.until(&sending, "b.example", |_| {
        report(&sending, "b.example").open == 0
    })
    .await;
    assert_eq!(report(&sending, "b.example").tally.gone, 0);
    sending.stop().await;
}

/// A server that stops in the middle goes on where it was; what came while a peer was away waits in the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_outlives_a_stop() {
    let site = Site::new(&["b.example"]);
    let text = "[[peer]]\nname = 'b.example'\naddress = 'h:1'\n[[peer.feed]]\narticles_max = 30\nwindow = 5";
    let sending = site.send_to(&peers(text));
    let peer = &site.world.0["b.example"];
    site.receive(0..50, "misc.test").await;
    site.until_has(&sending, "b.example", 50).await;
    peer.habits.lock().closed = true;
    peer.habits.lock().cut_after = Some(0);
    site.receive(50..200, "misc.test").await;
    sending.stop().await;
    site.receive(200..300, "misc.test").await;
    let sending = site.send_to(&peers(text));
    peer.habits.lock().closed = false;
    peer.habits.lock().cut_after = None;
    site.until_has(&sending, "b.example", 300).await;
    assert_eq!(peer.came.lock().len(), 300, "none is sent twice");
    site.until(&sending, "b.example", |_| {
        report(&sending, "b.example").open == 0
    })
    .await;
    assert_eq!(report(&sending, "b.example").tally.gone, 0);
    sending.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_peers_and_those_who_say_later() {
    let site = Site::new(&["new.example", "old.example"]);
    let peer = |name: &str| {
        format!(
            "[[peer]]\nname = '{name}'\naddress = 'h:1'\n[[peer.feed]]\ngroups = 'misc.*'\n[[peer.feed]]\nname = 'alt'\ngroups = 'alt.*'\n"
        )
    };
    let both = ["new.example", "old.example"];
    let sending = site.send_to(&peers(&both.map(peer).concat()));
    let some = || -> BTreeSet<String> { [3, 4, 90].into_iter().map(id).collect() };
    for name in both {
        let mut habits = site.world.0[name].habits.lock();
        habits.old = name == "old.example";
        habits.put_off = some();
        habits.rejects = BTreeSet::from([id(5)]);
    }
    site.receive(0..50, "misc.test").await;
    site.receive(50..100, "alt.test").await;
    for name in both {
        site.until_has(&sending, name, 99).await;
        let open = || {
            sending
                .peers
                .reports()
                .iter()
                .map(|it| it.open)
                .sum::<usize>()
        };
        site.until(&sending, name, |_| open() == 0).await;
        let tally = report(&sending, name).tally;
        assert_eq!(
            (tally.accepted, tally.rejected, tally.deferred),
            (49, 1, 2),
            "{name}"
        );
    }
    sending.stop().await;
}

/// Killed within the first second of a new feed, a server began again at the end of the log, and what had come was never sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_feed_outlives_a_kill_at_once() {
    let site = Site::new(&["b.example"]);
    let text = "[[peer]]\nname = 'b.example'\naddress = 'h:1'";
    site.world.0["b.example"].habits.lock().closed = true;
    let sending = site.send_to(&peers(text));
    site.receive(0..20, "misc.test").await;
    sending.kill().await;
    site.world.0["b.example"].habits.lock().closed = false;
    let sending = site.send_to(&peers(text));
    site.until_has(&sending, "b.example", 20).await;
    sending.stop().await;
}

/// A feed with a delay stands before what is too young, and holds nobody up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delay_is_kept() {
    let site = Site::new(&["a.example", "b.example"]);
    let text = "[[peer]]\nname = 'a.example'\naddress = 'h:1'\n[[peer.feed]]\ndelay_s = 3600\n\
                [[peer]]\nname = 'b.example'\naddress = 'h:1'";
    let sending = site.send_to(&peers(text));
    site.receive(0..10, "misc.test").await;
    site.until_has(&sending, "b.example", 10).await;
    site.clock.advance(Duration::from_secs(1800));
    site.receive(10..20, "misc.test").await;
    site.until_has(&sending, "b.example", 20).await;
    assert_eq!(site.world.0["a.example"].has(), 0);
    site.clock.advance(Duration::from_secs(1790));
    site.until_has(&sending, "a.example", 10).await;
    assert_eq!(report(&sending, "a.example").open, 0);
    assert_eq!(
        site.world.0["a.example"].has(),
        10,
        "the others are younger"
    );
    site.clock.advance(Duration::from_secs(1800));
    site.until_has(&sending, "a.example", 20).await;
    sending.stop().await;
}

/// A change of the configuration, a pause and a dropped backlog.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_for_happens_while_it_runs() {
    let site = Site::new(&["a.example", "b.example"]);
    let a = "[[peer]]\nname = 'a.example'\naddress = 'h:1'\n";
    let b = "[[peer]]\nname = 'b.example'\naddress = 'h:1'\n";
    let sending = site.send_to(&peers(a));
    site.receive(0..10, "misc.test").await;
    site.until_has(&sending, "a.example", 10).await;
    // A new peer begins at the end of the log.
    sending.peers.reload(&peers(&format!("{a}{b}")));
    site.until(&sending, "a.example", |_| {
        sending.peers.reports().len() == 2
    })
    .await;
    assert_eq!(sending.peers.pause("b.example", true), 1);
    site.receive(10..20, "misc.test").await;
    site.until_has(&sending, "a.example", 20).await;
    assert_eq!(site.world.0["b.example"].has(), 0);
    assert_eq!(sending.peers.drop_backlog("b.example/all", false).0, 1);
    assert_eq!(sending.peers.pause("b.example", false), 1);
    site.receive(20..30, "misc.test").await;
    site.until_has(&sending, "b.example", 10).await;
    assert!(
        site.world.0["b.example"]
            .articles
            .lock()
            .contains_key(&id(29))
    );
    // A change keeps the place: what waits still goes, and what was sent is not offered again.
    sending.peers.pause("a.example", true);
    site.receive(30..35, "misc.test").await;
    let changed = format!("{a}[[peer.feed]]\ngroups = 'misc.*'\n{b}");
    sending.peers.reload(&peers(&changed));
    site.until(&sending, "b.example", |site| {
        site.world.0["b.example"].has() == 15
    })
    .await;
    site.receive(35..40, "misc.test,alt.test").await;
    assert!(
        report(&sending, "a.example").is_paused,
        "a pause outlives a change"
    );
    // Another feed's change touches nothing of what is under way here: nothing goes twice.
    site.world.0["a.example"].habits.lock().is_mute = true;
    sending.peers.pause("a.example", false);
    site.until(&sending, "a.example", |_| {
        let report = report(&sending, "a.example");
        report.open == 10 && matches!(report.links[0], LinkState::Sending { .. })
    })
    .await;
    sending.peers.reload(&peers(&changed.replace(b, "")));
    site.until(&sending, "a.example", |_| feeds(&sending) == 1)
        .await;
    sending.peers.reload(&peers(&changed));
    site.world.0["a.example"].habits.lock().is_mute = false;
    site.until_has(&sending, "a.example", 40).await;
    site.until(&sending, "a.example", |_| {
        report(&sending, "a.example").open == 0
    })
    .await;
    assert_eq!(site.world.0["a.example"].came.lock().len(), 40);
    let said = |n| {
        let (peers, id) = (std::sync::Arc::clone(&sending.peers), id(n));
        async move {
            let id = MessageId::parse(id.as_bytes()).unwrap();
            let all = peers.explain(id).await.unwrap()?;
            let word = |it: newsreel_feed::Explained| {
                let why = it.refusals.first();
                why.map_or("goes".to_owned(), |why| why.to_string())
            };
            Some(all.into_iter().map(word).collect::<Vec<_>>())
        }
    };
    assert_eq!(said(7).await, Some(vec!["goes".to_owned(); 2]));
    assert_eq!(said(99).await, None);
    sending.peers.reload(&[]);
    site.until(&sending, "a.example", |_| feeds(&sending) == 0)
        .await;
    sending.stop().await;
}

/// A peer that was away long gets what comes now before what waited, and in the end everything, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_new_goes_before_a_backlog() {
    let site = Site::new(&["b.example"]);
    let text = "[[peer]]\nname = 'b.example'\naddress = 'h:1'\n[[peer.feed]]\nconnections = 1\narticles_max = 20\n\
                window = 5\nfresh_first = true\noctets_per_s_max = 4000";
    let sending = site.send_to(&peers(text));
    let peer = &site.world.0["b.example"];
    peer.habits.lock().closed = true;
    for n in 0..20 {
        site.receive(n * 20..n * 20 + 20, "misc.test").await;
    }
    // Its room is full with the oldest, and the rest is passed over.
    let passed_over = || report(&sending, "b.example").passed_over;
    for _ in 0..500 {
        if passed_over() > 0 && report(&sending, "b.example").open == 20 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(passed_over() > 300, "{}", passed_over());
    // A sequence is no article: what waits is counted in articles.
    let waits = |looks_max| sending.peers.with_backlogs(|_| true, looks_max)[0].1;
    let all = waits(LOOKS_MAX);
    assert_eq!((all.behind, all.is_more), (380, false));
    let some = waits(100);
    assert_eq!((some.behind, some.is_more), (100, true));
    assert_eq!(
        (some.oldest, all.oldest),
        (all.oldest, Some(UnixTime(1_700_000_000)))
    );
    sending.stop().await;
    // The place of what was passed over outlives a stop.
    let sending = site.send_to(&peers(text));
    assert!(report(&sending, "b.example").passed_over > 300);
    peer.habits.lock().closed = false;
    site.until_has(&sending, "b.example", 30).await;
    site.receive(400..405, "misc.test").await;
    site.until_has(&sending, "b.example", 405).await;
    let came = peer.came.lock().clone();
    assert_eq!(came.len(), 405, "none is sent twice");
    let at = |n: usize| came.iter().position(|it| *it == id(n)).unwrap();
    assert!((400..405).all(|n| at(n) < 200), "{came:?}");
    site.until(&sending, "b.example", |_| {
        report(&sending, "b.example").open == 0
    })
    .await;
    let now = report(&sending, "b.example");
    assert_eq!((now.passed_over, now.needs_from), (0, now.next));
    assert_eq!((now.tally.accepted, now.tally.missed), (405, 0));
    sending.stop().await;
}

/// Of a backlog each window went in as many parts as the log was read in while a connection was at work.  The connection offers one article
/// at a time, since those on their way to a peer may pass each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_goes_window_by_window_and_each_by_group() {
    const ALL: usize = 120;
    const WINDOWS: usize = 4;
    let feed = "connections = 1\nby_group = true\narticles_max = 30\nwindow = 1";
    for (how, more) in [
        ("away", ""),
        ("paused", ""),
        ("stopped", ""),
        ("late", "\nfresh_first = true"),
    ] {
        let site = Site::new(&["b.example"]);
        let text =
            format!("[[peer]]\nname = 'b.example'\naddress = 'h:1'\n[[peer.feed]]\n{feed}{more}");
        let mut sending = site.send_to(&peers(&text));
        let peer = &site.world.0["b.example"];
        peer.habits.lock().closed = how != "paused";
        sending.peers.pause("b.example", how == "paused");
        for n in 0..ALL {
            let group = ["misc.test", "alt.test"][n % 2];
            site.receive(n..n + 1, group).await;
        }
        if how != "paused" {
            site.until(&sending, "b.example", |_| {
                report(&sending, "b.example").open == 30
            })
            .await;
        }
        if how == "stopped" {
            sending.stop().await;
            sending = site.send_to(&peers(&text));
        }
        peer.habits.lock().closed = false;
        sending.peers.pause("b.example", false);
        site.until_has(&sending, "b.example", ALL).await;
        let came = peer.came.lock().clone();
        let parity = |id: &String| id[1..id.find('@').unwrap()].parse::<u32>().unwrap() % 2;
        let changes = came
            .windows(2)
            .filter(|two| parity(&two[0]) != parity(&two[1]));
        let windows = if how == "late" {
            2 * WINDOWS - 1
        } else {
            WINDOWS
        };
        let changes = changes.count();
        assert!(changes < 2 * windows, "{how}: {changes} changes: {came:?}");
        assert_eq!(came.len(), ALL, "{how}: none is sent twice");
        sending.stop().await;
    }
}

/// A quota of a day is used up; what is more waits, and goes out when the next day begins.  What connections had taken up by then was sent
/// all the same, most of all after a start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_holds_what_is_too_much() {
    let site = Site::new(&["b.example"]);
    let text =
        "[[peer]]\nname = 'b.example'\naddress = 'h:1'\n[[peer.feed]]\noctets_per_day_max = 1000";
    let sending = site.send_to(&peers(text));
    sending.peers.pause("b.example", true);
    site.receive(0..100, "misc.test").await;
    sending.peers.pause("b.example", false);
    let peer = &site.world.0["b.example"];
    site.until(&sending, "b.example", |_| {
        report(&sending, "b.example").quota_s.is_some()
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let now = report(&sending, "b.example");
    let sent = now.tally.octets;
    let one = site.stored(1).await.len() as u64;
    assert!((1000..1000 + one).contains(&sent), "{sent}, each {one}");
    assert!(
        now.quota_s.is_some_and(|seconds| seconds > 80_000),
        "{now:?}"
    );
    site.clock.advance(Duration::from_secs(86_400));
    site.until(&sending, "b.example", |_| {
        report(&sending, "b.example").tally.octets >= sent + 1000
    })
    .await;
    assert!(peer.has() < 20, "{}", peer.has());
    sending.stop().await;
    let sending = site.send_to(&peers(text));
    site.until(&sending, "b.example", |_| {
        report(&sending, "b.example").quota_s.is_some()
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let sent = report(&sending, "b.example").tally.octets;
    assert!((1000..1000 + one).contains(&sent), "{sent}, each {one}");
    sending.stop().await;
}

/// One article that a peer had no answer for, or at which it closed the connection, kept all behind it from going out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_article_without_an_answer_holds_no_other() {
    let both = ["new.example", "old.example"];
    let site = Site::new(&both);
    let peer = |name: &str| {
        format!(
            "[[peer]]\nname = '{name}'\naddress = 'h:1'\n[[peer.feed]]\nconnections = 1\nwindow = 4\n"
        )
    };
    for name in both {
        let mut habits = site.world.0[name].habits.lock();
        habits.old = name == "old.example";
        habits.ends_at.insert(id(3));
        habits.cannot_read.insert(id(5));
    }
    let sending = site.send_to(&peers(&both.map(peer).concat()));
    site.receive(0..20, "misc.test").await;
    for name in both {
        site.until_has(&sending, name, 18).await;
        assert_eq!(report(&sending, name).tally.rejected, 1);
    }
    // That other articles go through tells that it is not the peer.
    let mut many = 20;
    let rejected = || both.map(|name| report(&sending, name).tally.rejected);
    while rejected() != [2, 2] {
        assert!(many < 200, "{rejected:?}", rejected = rejected());
        site.receive(many..many + 1, "misc.test").await;
        many += 1;
        for name in both {
            site.until_has(&sending, name, many - 2).await;
        }
    }
    for name in both {
        site.until(&sending, name, |_| report(&sending, name).open == 0)
            .await;
        assert_eq!(report(&sending, name).tally.accepted as usize, many - 2);
    }
    sending.stop().await;
}

/// A peer that was taken out of the configuration and put back had lost what waited for it, and nobody said so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_that_is_put_back_goes_on() {
    let site = Site::new(&["b.example"]);
    let text = peers("[[peer]]\nname = 'b.example'\naddress = 'h:1'");
    let peer = &site.world.0["b.example"];
    let sending = site.send_to(&text);
    peer.habits.lock().closed = true;
    site.receive(0..20, "misc.test").await;
    site.until(&sending, "b.example", |_| {
        report(&sending, "b.example").open == 20
    })
    .await;
    sending.peers.pause("b.example", true);
    change(&site, &sending, &[]).await;
    let now = report(&sending, "b.example");
    assert_eq!(now.open, 20);
    assert!(now.kept_s.is_some_and(|seconds| seconds > 600_000));
    site.receive(20..30, "misc.test").await;
    sending.stop().await;
    let sending = site.send_to(&[]);
    assert_eq!(
        (report(&sending, "b.example").open, feeds(&sending)),
        (20, 0)
    );
    change(&site, &sending, &text).await;
    peer.habits.lock().closed = false;
    site.until_has(&sending, "b.example", 30).await;
    site.until(&sending, "b.example", |_| {
        report(&sending, "b.example").open == 0
    })
    .await;
    assert_eq!(peer.came.lock().len(), 30, "none is sent twice");
    // A pause outlives it as it outlives any change, and so do the counts.
    sending.peers.pause("b.example", true);
    change(&site, &sending, &[]).await;
    site.receive(30..40, "misc.test").await;
    assert_eq!(sending.peers.drop_backlog("b.example", true).1.behind, 10);
    change(&site, &sending, &text).await;
    let now = report(&sending, "b.example");
    assert!(now.is_paused && now.tally.accepted == 30, "{now:?}");
    sending.peers.pause("b.example", false);
    site.until_has(&sending, "b.example", 40).await;
    // What is given up, and what was out for too long, begins at the end of the log.
    for from in [40, 50] {
        change(&site, &sending, &[]).await;
        site.receive(from..from + 9, "misc.test").await;
        match from {
            40 => assert_eq!(sending.peers.drop_backlog("b.example/all", false).0, 1),
            _ => site.clock.advance(Duration::from_secs(7 * 86_400)),
        }
        site.until(&sending, "b.example", |_| {
            sending.peers.reports().is_empty()
        })
        .await;
        change(&site, &sending, &text).await;
        site.receive(from + 9..from + 10, "misc.test").await;
        let id = id(from + 9);
        site.until(&sending, "b.example", |_| {
            peer.articles.lock().contains_key(&id)
        })
        .await;
    }
    assert_eq!(peer.has(), 42);
    sending.stop().await;
}

/// Any change of a feed gave it the quota of a whole day again, and its counts began at nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_gives_no_quota_again() {
    let site = Site::new(&["b.example"]);
    let text = |max: u32| {
        peers(&format!(
            "[[peer]]\nname = 'b.example'\naddress = 'h:1'\n[[peer.feed]]\nwindow = 1\noctets_per_day_max = {max}"
        ))
    };
    let sending = site.send_to(&text(1000));
    site.receive(0..100, "misc.test").await;
    site.until(&sending, "b.example", |_| {
        report(&sending, "b.example").quota_s.is_some()
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = report(&sending, "b.example");
    assert!(before.tally.accepted > 0);
    change(&site, &sending, &text(1001)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let now = report(&sending, "b.example");
    assert_eq!(now.tally, before.tally);
    assert!(
        now.quota_s.is_some_and(|seconds| seconds > 80_000),
        "{now:?}"
    );
    sending.stop().await;
}

/// A peer that has everything and ends each connection soon: the pauses grew although the backlog shrank.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pauses_do_not_grow_while_a_backlog_shrinks() {
    let site = Site::new(&["b.example"]);
    let text =
        "[[peer]]\nname = 'b.example'\naddress = 'h:1'\n[[peer.feed]]\nconnections = 1\nwindow = 5";
    let peer = &site.world.0["b.example"];
    for n in 0..60 {
        peer.articles.lock().insert(id(n), Vec::new());
    }
    peer.habits.lock().cut_after = Some(11);
    let sending = site.send_to(&peers(text));
    site.receive(0..60, "misc.test").await;
    let longest_s = std::sync::atomic::AtomicU64::new(0);
    site.until(&sending, "b.example", |_| {
        let now = report(&sending, "b.example");
        if let Some(LinkState::Waiting { seconds, .. }) = now.links.first() {
            longest_s.fetch_max(*seconds, std::sync::atomic::Ordering::Relaxed);
        }
        now.tally.refused == 60
    })
    .await;
    assert!(*peer.connections.lock() >= 5);
    assert_eq!(longest_s.into_inner(), 5);
    sending.stop().await;
}

/// Text goes to one, files to the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_and_files_go_apart() {
    let site = Site::new(&["text.example", "files.example"]);
    let peer = |name: &str, content: &str| {
        format!(
            "[[peer]]\nname = '{name}'\naddress = 'h:1'\n[[peer.feed]]\ncontent = '{content}'\n"
        )
    };
    let both = [
        peer("text.example", "text"),
        peer("files.example", "binary"),
    ];
    let sending = site.send_to(&peers(&both.concat()));
    site.receive(0..3, "misc.test").await;
    let yenc = "=ybegin line=128 size=3 name=a.bin\r\nabc\r\n=yend size=3\r\n";
    site.receive_with(3..5, "misc.test", yenc).await;
    site.until_has(&sending, "text.example", 3).await;
    site.until_has(&sending, "files.example", 2).await;
    let has = |name: &str| {
        site.world.0[name]
            .articles
            .lock()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(has("text.example"), [id(0), id(1), id(2)]);
    assert_eq!(has("files.example"), [id(3), id(4)]);
    let said = sending
        .peers
        .explain(MessageId::parse(id(4).as_bytes()).unwrap())
        .await;
    let said = said.unwrap().unwrap();
    let why = said[0].refusals[0].to_string();
    assert_eq!(why, "its body is a file, and `content` is text");
    assert!(said[1].refusals.is_empty());
    sending.stop().await;
}

/// Which feeds an article goes out by was told, and not what became of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_became_of_an_article_is_told() {
    let site = Site::new(&["b.example"]);
    let text = "[[peer]]\nname = 'b.example'\naddress = 'h:1'\n[[peer.feed]]\ngroups = 'misc.*'\narticles_max = 4\nconnections = 1";
    let peer = &site.world.0["b.example"];
    {
        let mut habits = peer.habits.lock();
        habits.rejects.insert(id(1));
        habits.cannot_read.insert(id(2));
        peer.articles.lock().insert(id(3), Vec::new());
    }
    let sending = site.send_to(&peers(text));
    let fate = |n: usize| {
        let (peers, id) = (std::sync::Arc::clone(&sending.peers), id(n));
        async move {
            let id = MessageId::parse(id.as_bytes()).unwrap();
            peers.explain(id).await.unwrap().unwrap()[0].fate.clone()
        }
    };
    site.receive(0..4, "misc.test").await;
    site.until(&sending, "b.example", |_| {
        let tally = report(&sending, "b.example").tally;
        tally.accepted + tally.refused + tally.rejected >= 4
    })
    .await;
    assert!(matches!(fate(0).await, Some(Fate::Accepted(at)) if at.0 >= 1_700_000_000));
    assert!(matches!(fate(3).await, Some(Fate::Refused(_))));
    for (n, code) in [(1, "439 "), (2, "501 ")] {
        let told = fate(n).await;
        let Some(Fate::Rejected(_, Some(said))) = &told else {
            panic!("{told:?}");
        };
        assert!(said.starts_with(code), "{said}");
    }
    // What is gone by now was sent all the same.
    site.withdraw(0);
    assert!(matches!(fate(0).await, Some(Fate::Accepted(_))));
    // What is under way, and what the feed has not come to.
    peer.habits.lock().is_mute = true;
    sending.peers.pause("b.example", true);
    site.receive(10..20, "misc.test").await;
    site.receive(20..21, "alt.test").await;
    assert_eq!(fate(15).await, Some(Fate::InLog));
    assert_eq!(fate(20).await, None, "it does not go out");
    sending.peers.pause("b.example", false);
    site.until(&sending, "b.example", |_| {
        report(&sending, "b.example").open == 4
    })
    .await;
    for _ in 0..500 {
        if fate(11).await == Some(Fate::UnderWay) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(fate(11).await, Some(Fate::UnderWay));
    assert_eq!(fate(19).await, Some(Fate::InLog));
    // A start remembers nothing, and says so.
    sending.peers.note().unwrap();
    sending.kill().await;
    // Nothing is under way where nobody sends.
    let found = site.found(&peers(text));
    for (n, expected) in [(3, Fate::Passed), (11, Fate::Open), (19, Fate::InLog)] {
        let id = id(n);
        let told = found.explain(MessageId::parse(id.as_bytes()).unwrap());
        assert_eq!(told.await.unwrap().unwrap()[0].fate, Some(expected), "{id}");
    }
    drop(found);
    let sending = site.send_to(&peers(text));
    let told = sending
        .peers
        .explain(MessageId::parse(id(3).as_bytes()).unwrap())
        .await;
    assert_eq!(told.unwrap().unwrap()[0].fate, Some(Fate::Passed));
    sending.stop().await;
}
