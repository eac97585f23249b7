//! `newsreel serve` with groups of its own, and beside them those of an upstream server.

use std::time::Duration;

use newsreel_host::{Disk as _, RealDisk, replace_file};
use newsreel_testkit::free_ports;

use crate::caching::{Cache, body_of, figures, id};
use crate::client::NewsClient;
use crate::spool::{Spool, in_vain, newsreel, said};

/// The names in LIST ACTIVE.
fn listed(reader: &mut NewsClient) -> Vec<String> {
    assert!(reader.ask("LIST ACTIVE").starts_with("215"));
    let name = |line: String| line.split(' ').next().unwrap().to_owned();
    let mut names: Vec<String> = reader.block().into_iter().map(name).collect();
    names.sort_unstable();
    names
}

fn post(reader: &mut NewsClient, n: u32, groups: &str) -> String {
    assert!(reader.ask("POST").starts_with("340"));
    let id = id(n);
    let text = format!(
        "From: a@example.org\r\nNewsgroups: {groups}\r\nSubject: x\r\nMessage-ID: {id}\r\n\r\nx\r\n.\r\n"
    );
    reader.send(text.as_bytes());
    reader.line()
}

/// One list; numbers are those of the side that a group is on; posts go where their groups are, and one to groups of both sides to both; a
/// group of our own hides one there; and while the upstream server is away all else goes on, also after a restart.
#[test]
fn groups_of_our_own_and_of_an_upstream_server_are_one_server() {
    let upstream = Spool::new();
    let there = upstream.serve();
    for group in ["misc.test", "here.too"] {
        upstream.text(&["group", "add", group]);
    }
    let mut feeder = NewsClient::connect(there.address);
    for n in 1..=3 {
        assert!(
            feeder
                .takethis(&id(n), "misc.test,here.too")
                .starts_with("239")
        );
    }
    let cache = format!(
        "\n[cache]\nrefresh_s = 0\nlist_refresh_s = 0\n\n[[upstream]]\naddress = \"{}\"\n",
        there.address
    );
    let spool = Spool::with(&(Spool::changed(&[]) + &cache));
    let here = spool.serve();
    for group in ["here.only", "here.too"] {
        spool.text(&["group", "add", group]);
    }
    let mut reader = NewsClient::connect(here.address);
    let names = listed(&mut reader);
    for group in ["here.only", "here.too", "misc.test"] {
        assert_eq!(
            names.iter().filter(|name| *name == group).count(),
            1,
            "{names:?}"
        );
    }
    assert!(reader.ask("GROUP misc.test").starts_with("211 3 1 3 "));
    for n in 1..=2 {
        assert!(reader.ask(&format!("ARTICLE {n}")).starts_with("220"));
        assert!(reader.block().concat().contains(&body_of(n)));
    }
    assert!(reader.ask("OVER 1-").starts_with("224"));
    assert_eq!(reader.block().len(), 3);
    assert!(reader.ask("GROUP here.too").starts_with("211 0 "));
    assert!(post(&mut reader, 11, "here.only").starts_with("240"));
    assert!(post(&mut reader, 12, "misc.test").starts_with("240"));
    assert!(post(&mut reader, 13, "misc.test,here.only").starts_with("240"));
    assert!(post(&mut reader, 14, "no.such.group").starts_with("441"));
    for (n, is_there) in [(11, false), (12, true), (13, true), (14, false)] {
        let stat = feeder.ask(&format!("STAT {}", id(n)));
        assert_eq!(stat.starts_with("223"), is_there, "{n}: {stat}");
    }
    assert!(reader.ask("GROUP here.only").starts_with("211 2 1 2 "));
    assert!(reader.ask("GROUP misc.test").starts_with("211 5 1 5 "));
    // Where it is asked for by number its own side answers, and by message-id either.
    for n in [11, 12, 13] {
        assert!(reader.ask(&format!("HEAD {}", id(n))).starts_with("221"));
        reader.block();
    }
    // What is kept is looked after by its own commands.
    let folder = spool.folder().join("newsreel-cache");
    let mut stats = newsreel();
    stats.args(["cache", "list", "--directory"]).arg(&folder);
    assert!(said(stats.output().unwrap()).unwrap().contains("misc.test"));
    there.stop();
    let goes_on = |reader: &mut NewsClient| {
        let kept = reader.ask(&format!("ARTICLE {}", id(1)));
        assert!(kept.starts_with("220"), "{kept}");
        reader.block();
        assert!(reader.ask("GROUP here.only").starts_with("211 2 "));
        assert!(reader.ask("ARTICLE 1").starts_with("220"));
        reader.block();
        // The upstream server's list is fetched for each listing; what was kept of it is told while it cannot be.
        let names = listed(reader);
        for group in ["here.only", "misc.test"] {
            assert!(names.iter().any(|name| name == group), "{names:?}");
        }
    };
    goes_on(&mut reader);
    drop(reader);
    here.stop();
    let here = spool.serve();
    goes_on(&mut NewsClient::connect(here.address));
    here.stop();
}

/// A server with groups of its own and cached ones told Prometheus nothing of its cache, and said at SIGHUP that it had taken over
/// another policy, which it had not.
#[test]
fn the_cache_of_a_server_with_groups_of_its_own_is_measured_and_obeys_sighup() {
    let upstream = Spool::new();
    let there = upstream.serve();
    upstream.text(&["group", "add", "misc.test"]);
    let mut feeder = NewsClient::connect(there.address);
    assert!(feeder.takethis(&id(1), "misc.test").starts_with("239"));
    let metrics = format!("127.0.0.1:{}", free_ports().unwrap());
    let config = |policy: &str| {
        let server = format!("[server]\nmetrics = [{metrics:?}]");
        Spool::changed(&[("[server]", &server)])
            + &format!(
                "\n[cache]\npolicy = {policy:?}\n\n[[upstream]]\naddress = \"{}\"\n",
                there.address
            )
    };
    let spool = Spool::with(&config("lfua"));
    let here = spool.serve();
    spool.text(&["group", "add", "here.only"]);
    let mut reader = NewsClient::connect(here.address);
    assert!(reader.ask("GROUP misc.test").starts_with("211 1 1 1 "));
    assert!(reader.ask("ARTICLE 1").starts_with("220"));
    reader.block();
    let told = |line: &str| figures(&metrics).lines().any(|it| it == line);
    assert!(told(
        "newsreel_cache_policy_answers_total{policy=\"lfua\",result=\"miss\"} 1"
    ));
    assert!(told("newsreel_groups 1"), "{}", figures(&metrics));
    let families = figures(&metrics);
    let mut families: Vec<&str> = families
        .lines()
        .filter(|line| line.starts_with("# TYPE"))
        .collect();
    let all = families.len();
    families.sort_unstable();
    families.dedup();
    assert_eq!(families.len(), all, "each once");
    spool.configure(&config("gdsf"));
    here.signal("HUP");
    while !spool.log().contains("configuration read again") {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(reader.ask(&format!("HEAD {}", id(1))).starts_with("221"));
    reader.block();
    let hit = "newsreel_cache_policy_answers_total{policy=\"gdsf\",result=\"hit\"} 1";
    assert!(told(hit), "{}", figures(&metrics));
    here.stop();
    there.stop();
}

/// What this server would refuse is not posted upstream either: a group of its own that is closed, a poster who posts too often.
#[test]
fn what_is_refused_here_is_not_posted_upstream() {
    let upstream = Spool::new();
    let there = upstream.serve();
    upstream.text(&["group", "add", "misc.test"]);
    let more = format!(
        "\n[posting]\narticles_per_day_max = 2\n\n[[upstream]]\naddress = \"{}\"\n",
        there.address
    );
    let spool = Spool::with(&(Spool::changed(&[]) + &more));
    let here = spool.serve();
    spool.text(&["group", "add", "here.only"]);
    spool.text(&["group", "add", "here.shut", "--status", "n"]);
    let mut reader = NewsClient::connect(here.address);
    let mut looking = NewsClient::connect(there.address);
    for (n, groups, is_taken) in [
        (21, "misc.test,here.shut", false),
        (22, "misc.test", true),
        (23, "misc.test,here.only", true),
        (24, "misc.test", false),
        (25, "misc.test,here.only", false),
    ] {
        let said = post(&mut reader, n, groups);
        let stat = looking.ask(&format!("STAT {}", id(n)));
        let told = (said.starts_with("240"), stat.starts_with("223"));
        assert_eq!(told, (is_taken, is_taken), "{groups}: {said}, {stat}");
    }
    here.stop();
    there.stop();
}

/// A server with groups of its own starts where another upstream server is said to have the numbers that are kept and cannot be asked; where nobody says
/// that, it names the command that takes other numbers.
#[test]
fn another_upstream_server_that_is_away_does_not_keep_it_from_starting() {
    let upstream = Spool::new();
    let there = upstream.serve();
    upstream.text(&["group", "add", "misc.test"]);
    let mut feeder = NewsClient::connect(there.address);
    assert!(feeder.takethis(&id(1), "misc.test").starts_with("239"));
    let config = |address: &str, more: &str| {
        Spool::changed(&[]) + &format!("\n[[upstream]]\naddress = \"{address}\"\n{more}")
    };
    let address = there.address.to_string();
    let spool = Spool::with(&config(&address, ""));
    let here = spool.serve();
    spool.text(&["group", "add", "here.only"]);
    let reads = |reader: &mut NewsClient| {
        assert!(reader.ask("GROUP here.only").starts_with("211 0 "));
        assert!(reader.ask("GROUP misc.test").starts_with("211 1 1 1 "));
        assert!(reader.ask("OVER 1").starts_with("224"));
        reader.block();
        assert!(reader.ask("ARTICLE 1").starts_with("220"));
        reader.block();
    };
    reads(&mut NewsClient::connect(here.address));
    here.stop();
    let away = "127.0.0.1:1";
    spool.configure(&config(away, &format!("same_numbers_as = \"{address}\"\n")));
    let here = spool.serve();
    reads(&mut NewsClient::connect(here.address));
    here.stop();
    // What nobody has compared is compared later.
    spool.configure(&config(away, ""));
    let mut command = newsreel();
    command.args(["serve", "--config"]).arg(spool.config());
    let error = said(in_vain(command)).unwrap_err();
    assert!(error.contains("`newsreel cache --renumber`"), "{error}");
    // The next start would take a server that never served for one that was killed.
    let running = spool.folder().join("newsreel-cache/running");
    assert!(!RealDisk.exists(&running).unwrap());
    there.stop();
}

/// A start that was refused when what is kept was open already was a kill for the next one, which asked nobody elsewhere for two seconds.
#[test]
fn a_start_that_is_refused_late_is_no_kill() {
    let there = "127.0.0.1:1";
    let spool =
        Spool::with(&(Spool::changed(&[]) + &format!("\n[[upstream]]\naddress = \"{there}\"\n")));
    let alone = Cache::of(there.parse().unwrap());
    let of_spool = spool.folder().join("newsreel-cache");
    let of_cache = alone.folder.path().join("cache");
    for (folder, is_alone) in [(of_cache, true), (of_spool, false)] {
        // Nothing can have its control socket's name.
        let taken = folder.join("control.sock");
        RealDisk.create_dir_all(&taken.join("taken")).unwrap();
        let running = folder.join("running");
        for was_killed in [false, true] {
            if was_killed {
                replace_file(&RealDisk, &running, b"").unwrap();
            }
            let mut command = alone.command();
            if !is_alone {
                command = newsreel();
                command.args(["serve", "--config"]).arg(spool.config());
            }
            let error = said(in_vain(command)).unwrap_err();
            assert!(
                error.contains("control socket in the cache's directory"),
                "{error}"
            );
            assert_eq!(RealDisk.exists(&running).unwrap(), was_killed, "{is_alone}");
        }
        RealDisk.rename(&taken, &folder.join("aside")).unwrap();
        let server = if is_alone {
            alone.serve()
        } else {
            spool.serve()
        };
        assert!(RealDisk.exists(&running).unwrap(), "while it runs");
        server.stop();
        assert!(!RealDisk.exists(&running).unwrap(), "behind a stop");
    }
}
