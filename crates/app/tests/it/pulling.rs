//! Articles fetched from a server as a newsreader does: once each, only what is new, whatever ends whoever fetches.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use newsreel_host::{Clock as _, RealClock, RealDisk, read_whole};
use newsreel_testkit::free_ports;

use crate::client::NewsClient;
use crate::spool::{Server, Spool, newsreel};

/// The server that articles are fetched from.
fn upstream(name: &str, address: SocketAddr) -> (Spool, Server) {
    let config = Spool::changed(&[
        (
            "[articles]",
            &format!("[engine]\npath_identity = '{name}'\n\n[articles]"),
        ),
        ("127.0.0.1:0", &address.to_string()),
    ]);
    let spool = Spool::with(&config);
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    spool.text(&["group", "add", "misc.other"]);
    (spool, server)
}

/// Ours.
fn site(address: SocketAddr, more: &str) -> Spool {
    let config = Spool::changed(&[(
        "[articles]",
        "[engine]\npath_identity = 'us.example'\n\n[articles]",
    )]);
    Spool::with(&format!(
        "{config}\n[[pull]]\nname = 'up'\naddress = '{address}'\n{more}"
    ))
}

fn free() -> SocketAddr {
    ([127, 0, 0, 1], free_ports().unwrap()).into()
}

fn give(server: &Server, numbers: std::ops::Range<u32>, group: &str) {
    let mut feeder = NewsClient::connect(server.address);
    for n in numbers {
        let said = feeder.takethis(&format!("<{n}@t.example>"), group);
        assert!(said.starts_with("239"), "{said}");
    }
}

fn counts(report: &serde_json::Value) -> [u64; 3] {
    ["accepted", "known", "wanted"].map(|key| report["last"][key].as_u64().unwrap())
}

#[test]
fn what_is_new_is_fetched_once() {
    let address = free();
    let (up, up_server) = upstream("up.example", address);
    give(&up_server, 0..70, "misc.test");
    give(&up_server, 70..75, "misc.other");
    let ours = site(address, "interval_s = 0\n");
    let server = ours.serve();
    ours.text(&["group", "add", "misc.test"]);
    let dry = ours.json(&["pull", "up", "--dry-run"]);
    assert_eq!(counts(&dry), [0, 0, 70], "{dry}");
    // One is here already.
    give(&server, 7..8, "misc.test");
    let first = ours.json(&["pull", "up"]);
    assert_eq!(counts(&first), [69, 1, 0], "{first}");
    assert_eq!(first["last"]["groups"], 1, "misc.other is not here");
    let again = ours.json(&["pull", "up"]);
    assert_eq!(counts(&again), [0; 3], "{again}");
    give(&up_server, 75..80, "misc.test");
    assert_eq!(counts(&ours.json(&["pull", "up"])), [5, 0, 0]);
    let mut reader = NewsClient::connect(server.address);
    assert!(reader.ask("GROUP misc.test").starts_with("211 75 "));
    let path = reader.ask("HDR Path <9@t.example>");
    assert!(path.starts_with("225"), "{path}");
    let path = String::from_utf8_lossy(&reader.raw_block()[0]).into_owned();
    assert!(
        path.contains("us.example!") && path.contains("up.example!"),
        "{path}"
    );
    let listed = ours.text(&["pull", "--list"]);
    assert!(
        listed.contains("on call") && listed.contains("waits"),
        "{listed}"
    );
    // As any server, with groups; and by itself, without one of ours.
    ours.text(&["group", "add", "misc.other"]);
    server.stop();
    let alone = ours.text(&["pull", &address.to_string(), "misc.*", "!misc.test"]);
    assert!(
        alone.contains("1 group,") && alone.contains(": 5 accepted, 0 known"),
        "{alone}"
    );
    let unknown = ours.error(&["pull", "nowhere.example"]);
    assert!(unknown.contains("say which groups"), "{unknown}");
    up_server.stop();
    let away = ours.error(&["pull", "up"]);
    assert!(away.contains(&address.to_string()), "{away}");
    drop(up);
}

/// What was fetched while no server ran went out by no feed, ever.
#[test]
fn what_is_fetched_without_a_server_goes_out_by_the_feeds() {
    let (address, behind) = (free(), free());
    let (_up, up_server) = upstream("up.example", address);
    give(&up_server, 0..5, "misc.test");
    let ours = site(address, "interval_s = 0\n");
    let server = ours.serve();
    ours.text(&["group", "add", "misc.test"]);
    server.stop();
    // It is new: what comes from now on goes to it.
    let config = read_whole(&RealDisk, &ours.config(), 1 << 20).unwrap();
    let config = String::from_utf8(config).unwrap();
    let peer = format!("\n[[peer]]\nname = 'behind.example'\naddress = '{behind}'\n");
    ours.configure(&(config + &peer));
    assert_eq!(counts(&ours.json(&["pull", "up", "--dry-run"])), [0, 0, 5]);
    assert_eq!(counts(&ours.json(&["pull", "up"])), [5, 0, 0]);
    give(&up_server, 5..8, "misc.test");
    assert_eq!(counts(&ours.json(&["pull", "up"])), [3, 0, 0]);
    let server = ours.serve();
    let (_there, there_server) = upstream("behind.example", behind);
    let accepted = || ours.json(&["peer", "list"])["feeds"][0]["accepted"].clone();
    for _ in 0..300 {
        if accepted() == 8 {
            break;
        }
        ours.text(&["peer", "flush", "behind.example"]);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(accepted(), 8);
    for server in [server, there_server, up_server] {
        server.stop();
    }
}

/// Killed again and again, with little taken each time: in the end everything is here once.
#[test]
fn a_kill_loses_and_doubles_nothing() {
    let address = free();
    let (_up, up_server) = upstream("up.example", address);
    give(&up_server, 0..1500, "misc.test");
    let ours = site(address, "interval_s = 0\nfirst_articles_max = 0\n");
    let server = ours.serve();
    ours.text(&["group", "add", "misc.test"]);
    server.stop();
    let mut killed = 0;
    for round in 1..25 {
        let mut command = newsreel();
        command.args(["pull", "up", "--config"]).arg(ours.config());
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(8 * round));
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
    }
    assert!(killed > 5, "{killed}");
    ours.text(&["pull", "up"]);
    let server = ours.serve();
    let mut reader = NewsClient::connect(server.address);
    let group = reader.ask("GROUP misc.test");
    assert!(group.starts_with("211 1500 "), "{group}");
    server.stop();
    up_server.stop();
}

/// A server that begins anew has other articles under the numbers that were fetched.
#[test]
fn numbers_that_are_given_anew_are_noticed() {
    let address = free();
    let (up, up_server) = upstream("up.example", address);
    give(&up_server, 0..20, "misc.test");
    let ours = site(address, "interval_s = 0\n");
    let server = ours.serve();
    ours.text(&["group", "add", "misc.test"]);
    assert_eq!(counts(&ours.json(&["pull", "up"])), [20, 0, 0]);
    up_server.stop();
    drop(up);
    // Fewer numbers than before, and then as many with other articles.
    for (numbers, accepted) in [(100..110, 10), (200..240, 40)] {
        let (_up, up_server) = upstream("up.example", address);
        give(&up_server, numbers, "misc.test");
        let report = ours.json(&["pull", "up"]);
        assert_eq!(counts(&report), [accepted, 0, 0], "{report}");
        assert_eq!(report["last"]["renumbered"][0], "misc.test", "{report}");
        up_server.stop();
    }
    server.stop();
}

#[test]
fn pulls_run_by_schedule_and_follow_the_configuration() {
    let address = free();
    let (_up, up_server) = upstream("up.example", address);
    give(&up_server, 0..3, "misc.test");
    let ours = site(address, "interval_s = 1\ngroups = 'misc.other'\n");
    let server = ours.serve();
    ours.text(&["group", "add", "misc.test"]);
    let state = || ours.json(&["pull", "--list"])["pulls"][0].clone();
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        for _ in 0..300 {
            if is_so() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("waited in vain for {what}: {}", state());
    };
    until("a run", &|| state()["ended"].is_number());
    assert_eq!(state()["accepted"], 0);
    let config = Spool::changed(&[]);
    ours.configure(&format!(
        "{config}\n[[pull]]\nname = 'up'\naddress = '{address}'\ninterval_s = 1\n"
    ));
    server.signal("HUP");
    until("the other groups", &|| state()["accepted"] == 3);
    up_server.stop();
    until("a failure", &|| state()["failed"].is_string());
    server.stop();
}

/// A server that lets it wait held up the stop for as long as it liked.
#[test]
fn a_run_that_waits_for_its_server_ends_with_ours() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (came, coming) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        came.send(()).unwrap();
        // An octet now and then, and never a line.
        while stream.write_all(b"2").is_ok() {
            std::thread::sleep(Duration::from_millis(500));
        }
    });
    let ours = site(address, "interval_s = 1\n");
    let server = ours.serve();
    coming.recv().unwrap();
    let clock = RealClock::new();
    let begun = clock.monotonic();
    server.stop();
    let took = clock.monotonic().saturating_sub(begun);
    assert!(took < Duration::from_secs(15), "{took:?}");
}

/// A server that says this to each command, for one connection: a command's beginning, and the answer.
fn scripted(script: &'static [(&'static str, &'static str)]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut commands = BufReader::new(stream.try_clone().unwrap());
        stream.write_all(b"200 here\r\n").unwrap();
        let mut command = String::new();
        while commands
            .read_line(&mut command)
            .is_ok_and(|octets| octets > 0)
        {
            let mut lines = script.iter();
            let found = lines.find(|(begin, _)| command.starts_with(begin));
            let answer = found.map_or("500 what?\r\n", |(_, answer)| *answer);
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
            command.clear();
        }
    });
    address
}

/// One group that wants a login, or whose overview is broken, had ended the whole run: nothing of the groups behind it ever came.
#[test]
fn a_group_that_is_refused_ends_itself_alone() {
    let address = scripted(&[
        (
            "CAPABILITIES",
            "101 list\r\nVERSION 2\r\nREADER\r\nOVER\r\nLIST ACTIVE\r\n.\r\n",
        ),
        ("MODE READER", "200 here\r\n"),
        (
            "LIST ACTIVE",
            "215 list\r\nmisc.closed 3 1 y\r\nmisc.broken 3 1 y\r\nmisc.odd 4 1 y\r\nmisc.test 2 1 y\r\n.\r\n",
        ),
        ("GROUP misc.odd", "211 4 1 4 misc.odd\r\n"),
        (
            "XOVER 1-4",
            "224 list\r\ngarbage\r\n3\r\nx\t\t\t\t\t\r\n.\r\n",
        ),
        ("GROUP misc.closed", "480 log in first\r\n"),
        ("GROUP misc.broken", "211 3 1 3 misc.broken\r\n"),
        ("OVER 1-3", "503 no overview\r\n"),
        ("XOVER 1-3", "503 no overview\r\n"),
        ("GROUP misc.test", "211 2 1 2 misc.test\r\n"),
        (
            "OVER 1-2",
            "224 list\r\n1\ts\tf\td\t<1@t.example>\t\t9\t1\r\n2\ts\tf\td\t<2@t.example>\t\t9\t1\r\n.\r\n",
        ),
        (
            "XOVER 1-2",
            "224 list\r\ngarbage\r\n1\ts\tf\td\t<1@t.example>\t\t9\t1\r\n2\ts\tf\td\t<2@t.example>\t\t9\t1\r\n.\r\n",
        ),
        ("ARTICLE 1", "480 log in first\r\n"),
        (
            "ARTICLE 2",
            "220 2 <2@t.example>\r\nPath: up.example!x\r\nFrom: a@t.example\r\nNewsgroups: misc.test\r\n\
             Subject: s\r\nDate: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: <2@t.example>\r\n\r\nbody\r\n.\r\n",
        ),
        ("QUIT", "205 bye\r\n"),
    ]);
    let ours = site(address, "interval_s = 0\n");
    let server = ours.serve();
    for group in ["misc.test", "misc.closed", "misc.broken", "misc.odd"] {
        ours.text(&["group", "add", group]);
    }
    let report = ours.json(&["pull", "up"]);
    assert_eq!(counts(&report), [1, 0, 0], "{report}");
    assert_eq!(report["last"]["deferred"], 1, "{report}");
    let unclear = "a line of the overview that cannot be understood";
    assert_eq!(report["last"]["rejected"][unclear], 1, "{report}");
    let refused = &report["last"]["refused"];
    for (group, why) in [
        ("misc.closed", "480 log in first"),
        ("misc.broken", "503 no overview"),
        ("misc.odd", "none of the 3 lines of its overview"),
    ] {
        assert!(refused[group].as_str().unwrap().contains(why), "{report}");
    }
    server.stop();
}

/// A server with these articles that ends each connection in the middle of the article after so many.
fn cutting(articles: u32, whole: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move |mut stream: TcpStream| -> std::io::Result<()> {
        let mut commands = BufReader::new(stream.try_clone()?);
        stream.write_all(b"200 here\r\n")?;
        let (mut command, mut served) = (String::new(), 0);
        while commands.read_line(&mut command)? > 0 {
            let words: Vec<&str> = command.split_whitespace().collect();
            let answer = match words[..] {
                ["CAPABILITIES"] => {
                    "101 list\r\nVERSION 2\r\nREADER\r\nOVER\r\nLIST ACTIVE\r\n.\r\n".to_owned()
                }
                ["LIST", ..] => format!("215 list\r\nmisc.test {articles} 1 y\r\n.\r\n"),
                ["GROUP", ..] => format!("211 {articles} 1 {articles} misc.test\r\n"),
                ["OVER" | "XOVER", range] => {
                    let (from, to) = range.split_once('-').unwrap();
                    let numbers = from.parse().unwrap()..=to.parse::<u32>().unwrap();
                    let row = |n: u32| format!("{n}\ts\tf\td\t<{n}@t.example>\t\t9\t1\r\n");
                    format!("224 list\r\n{}.\r\n", numbers.map(row).collect::<String>())
                }
                ["ARTICLE", n] => format!(
                    "220 {n} <{n}@t.example>\r\nPath: up.example!x\r\nFrom: a@t.example\r\nNewsgroups: misc.test\r\n\
                     Subject: s\r\nDate: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: <{n}@t.example>\r\n\r\nbody\r\n.\r\n"
                ),
                _ => "500 what?\r\n".to_owned(),
            };
            if words[0] == "ARTICLE" {
                served += 1;
                if served > whole {
                    return stream.write_all(&answer.as_bytes()[..answer.len() / 2]);
                }
            }
            stream.write_all(answer.as_bytes())?;
            command.clear();
        }
        Ok(())
    };
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = serve(stream.unwrap());
        }
    });
    address
}

/// Of a server that ends connections before it has answered what was asked at once, nothing ever came: not what it had given, either.
#[test]
fn what_came_before_a_connection_ended_is_here() {
    let address = cutting(100, 19);
    let ours = site(address, "interval_s = 0\n");
    let server = ours.serve();
    ours.text(&["group", "add", "misc.test"]);
    // One that gives nothing is not asked for ever.
    let never = cutting(100, 0);
    let why = ours.error(&["pull", &never.to_string(), "misc.test"]);
    assert!(why.contains("closed"), "{why}");
    // Both ways it is said of which group that was, and what came.
    let words = ["pull", &never.to_string(), "misc.test"];
    let told = String::from_utf8(ours.run(&words).stdout).unwrap();
    assert!(
        told.contains("0 accepted") && told.contains("misc.test was not read to the end"),
        "{told}"
    );
    let told = ours.run(&[&words[..], &["--json"]].concat()).stdout;
    let told: serde_json::Value = serde_json::from_slice(&told).unwrap();
    let failed = told["failed"].as_str().unwrap();
    assert_eq!(told["last"]["refused"]["misc.test"], failed, "{told}");
    let report = ours.json(&["pull", "up"]);
    assert_eq!(counts(&report), [100, 0, 0], "{report}");
    server.stop();
}

/// With `newnews` the first run looks at groups, and the next ones ask what came since.
#[test]
fn what_came_since_is_asked_by_newnews() {
    let address = free();
    let (up, up_server) = upstream("up.example", address);
    give(&up_server, 0..20, "misc.test");
    let ours = site(address, "interval_s = 0\nnewnews = true\n");
    let server = ours.serve();
    ours.text(&["group", "add", "misc.test"]);
    assert_eq!(counts(&ours.json(&["pull", "up"])), [20, 0, 0]);
    give(&up_server, 20..25, "misc.test");
    let second = ours.json(&["pull", "up"]);
    // What came shortly before is listed again, and known.
    assert_eq!(counts(&second), [5, 20, 0], "{second}");
    let commands = || up.json(&["status"])["server"]["sessions"]["commands"].clone();
    let before = commands();
    assert_eq!(
        (&before["NEWNEWS"], &before["GROUP"]),
        (&1.into(), &1.into()),
        "{before}"
    );
    // A server that does not let us is asked group by group.
    let config = read_whole(&RealDisk, &up.config(), 1 << 20).unwrap();
    let config = String::from_utf8(config).unwrap();
    let more = "\n[[access]]\nname = 'all'\nread = '*'\nfeed = true\nnewnews = false\n";
    up.configure(&(config + more));
    up_server.stop();
    let up_server = up.serve();
    give(&up_server, 25..27, "misc.test");
    let third = ours.json(&["pull", "up"]);
    assert_eq!(counts(&third)[0], 2, "{third}");
    let listed = ours.json(&["peer", "list"]);
    assert_eq!(listed["pulls"][0]["accepted"], 27, "{listed}");
    assert!(ours.text(&["peer", "list"]).contains("PULL"));
    let status = ours.json(&["status"]);
    assert_eq!(status["server"]["pulls"][0]["accepted"], 27, "{status}");
    assert!(ours.text(&["status"]).contains("27 accepted"));
    server.stop();
    up_server.stop();
}
