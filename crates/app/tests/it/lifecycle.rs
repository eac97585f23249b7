//! A server's life: one a spool, a clean stop, a configuration read again, a crash.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use newsreel_host::process::host_name;
use newsreel_host::{Disk as _, LOG_LINES_MAX, RealDisk, read_whole};
use serde_json::{Value, json};

use crate::client::{NewsClient, article};
use crate::scale::binary;
use crate::spool::{Server, Spool, newsreel, said};

#[test]
fn a_second_server_on_one_spool_is_refused() {
    let spool = Spool::new();
    let server = spool.serve();
    let error = spool.error(&["serve"]);
    let expected = format!("is in use by a server, process {}", server.pid());
    assert!(
        error.contains(&expected) && error.contains("--spool"),
        "{error}"
    );
    NewsClient::connect(server.address);
    server.stop();
}

/// A killed server holds its lock and its socket until the kernel has taken it apart; the next start waits for that.
#[test]
fn a_start_right_behind_a_kill_waits_for_the_end_of_the_killed() {
    let spool = Spool::new();
    let first = spool.serve();
    // It is as good as dead: it has everything, and says nothing.
    first.signal("STOP");
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        first.kill();
    });
    let second = spool.serve();
    killer.join().unwrap();
    second.stop();
}

#[test]
fn a_server_that_hangs_does_not_hang_the_next_one() {
    let spool = Spool::new();
    let first = spool.serve();
    first.signal("STOP");
    let error = spool.error(&["serve"]);
    assert!(error.contains("a server that does not answer"), "{error}");
    first.signal("CONT");
    first.stop();
}

/// A process that has begun to start, and does not answer yet.
fn starting(spool: &Spool) -> std::process::Child {
    let mut command = newsreel();
    command.args(["serve", "--config"]).arg(spool.config());
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let log = child.stderr.as_mut().unwrap();
    BufReader::with_capacity(1, log)
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("starting"), "{line}");
    child
}

/// A server that goes with its test, however that ends.
struct Ending(std::process::Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn send(signal: &str, child: &std::process::Child) {
    let words = ["-s", signal, &child.id().to_string()];
    let done = std::process::Command::new("kill").args(words).status();
    assert!(done.unwrap().success(), "kill -s {signal}");
}

/// A start may take long, and signals do not wait for it.
#[test]
fn signals_during_a_start_are_obeyed_when_it_is_done() {
    let spool = Spool::new();
    for early in ["TERM", "INT", "HUP"] {
        let child = starting(&spool);
        send(early, &child);
        if early == "HUP" {
            let answers = || {
                let status = spool.run(&["status", "--json"]).stdout;
                let status: Option<Value> = serde_json::from_slice(&status).ok();
                status.is_some_and(|status| !status["server"].is_null())
            };
            while !answers() {
                std::thread::sleep(Duration::from_millis(20));
            }
            send("TERM", &child);
        }
        let output = child.wait_with_output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{early}: {}\n{log}", output.status);
        let expected = if early == "HUP" {
            "configuration read again"
        } else {
            "stopped"
        };
        assert!(log.contains(expected), "{early}: {log}");
    }
}

/// In its first instant a server has made no spool yet: who looked then was told that there is none.
#[test]
fn who_looks_in_the_first_instant_of_a_start_waits_for_it() {
    let spool = Spool::new();
    let config = spool.config();
    let looking = std::thread::spawn(move || {
        let mut command = newsreel();
        command.args(["status", "--json", "--config"]).arg(config);
        command.output().unwrap()
    });
    std::thread::sleep(Duration::from_millis(100));
    let server = starting(&spool);
    let seen = looking.join().unwrap();
    send("TERM", &server);
    assert!(server.wait_with_output().unwrap().status.success());
    let status: Value = serde_json::from_slice(&seen.stdout).unwrap_or_default();
    // It may see the spool before the server answers.
    assert_eq!(status["mode"], "reader", "{:?}", said(seen));
}

/// What was typed is no change of what the file says, and counts from where it was typed.
#[test]
fn a_relative_spool_is_the_same_after_a_reload() {
    let spool = Spool::new();
    let mut command = newsreel();
    command.current_dir(spool.folder());
    command.args(["serve", "--spool", "./spool", "--config"]);
    command.arg(spool.config());
    let log = spool.folder().join("log.txt");
    let server = Server::start(command, log, |_| {
        let status = spool.run(&["status", "--json"]).stdout;
        let status: Value = serde_json::from_slice(&status).ok()?;
        (!status["server"].is_null()).then_some(status)
    });
    server.signal("HUP");
    let told = wait_for(&spool, "configuration read again");
    assert!(told.contains("needs_restart=[]"), "{told}");
    server.stop();
}

/// Paths count from where the server was started, and SIGHUP does not wait for a pipe that is gone.
#[test]
fn a_configuration_from_a_pipe_is_read_once() {
    let spool = Spool::new();
    let mut command = std::process::Command::new("bash");
    let script = "exec \"$0\" serve --config <(cat newsreel.toml)";
    command.args(["-c", script]).arg(binary());
    command.current_dir(spool.folder());
    let log = spool.folder().join("log.txt");
    let server = Server::start(command, log, |child| {
        let status = spool.run(&["status", "--json"]).stdout;
        let status: Value = serde_json::from_slice(&status).ok()?;
        (status["server"]["pid"] == child.id()).then_some(status)
    });
    server.signal("HUP");
    wait_for(&spool, "there is no configuration file to read again");
    NewsClient::connect(server.address);
    server.stop();
}

/// Waits until the log has a line with this text; the line.
pub(crate) fn wait_for(spool: &Spool, text: &str) -> String {
    for _ in 0..500 {
        let log = spool.log();
        if let Some(line) = log.lines().find(|line| line.contains(text)) {
            return line.to_owned();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no {text:?} in {}", spool.log());
}

#[test]
fn sigterm_drains_and_stops_and_nothing_is_lost() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let mut client = NewsClient::connect(server.address);
    assert_eq!(
        client.takethis("<1@t.example>", "misc.test"),
        "239 <1@t.example>"
    );
    let mut idle = NewsClient::connect(server.address);
    server.signal("TERM");
    assert_eq!(
        idle.line().split(' ').next(),
        Some("400"),
        "an idle connection is told"
    );
    let status = server.wait();
    assert!(status.success(), "{status}");
    let log = spool.log();
    assert!(log.contains("stopping") && log.contains("stopped"), "{log}");

    let server = spool.serve();
    let mut client = NewsClient::connect(server.address);
    assert_eq!(client.ask("GROUP misc.test"), "211 1 1 1 misc.test");
    assert_eq!(client.ask("CHECK <1@t.example>"), "438 <1@t.example>");
    server.stop();
}

#[test]
fn sighup_reads_the_configuration_again() {
    let spool = Spool::new();
    let server = spool.serve();
    let greeting = "[session]\ngreeting = \"changed while running\"\n[log]";
    spool.configure(&Spool::changed(&[("[log]", greeting), ("1MiB", "2MiB")]));
    server.signal("HUP");
    wait_for(&spool, "configuration read again");
    let warned = wait_for(&spool, "after a restart only");
    assert!(
        warned.contains("WARN") && warned.contains("log.segment_octets"),
        "{warned}"
    );
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    let mut line = [0; 64];
    let len = std::io::Read::read(&mut stream, &mut line).unwrap();
    assert!(String::from_utf8_lossy(&line[..len]).contains("changed while running"));

    spool.configure("[listen]\nbacklogg = 1\n");
    server.signal("HUP");
    wait_for(&spool, "the server goes on with the old one");
    NewsClient::connect(server.address);
}

/// What was asked is logged when it is known what became of it.
/// A reload had promised the new size of a buffer for the next start, which then was refused.
#[test]
fn a_buffer_of_another_size_is_told_what_to_do_at_a_reload_and_at_a_start() {
    let spool = Spool::new();
    let server = spool.serve();
    for (octets, expected) in [
        (
            "9MiB",
            "the size of buffer \"B\" cannot change from 8MiB to 9MiB: set its `octets` back to 8MiB; for more room say `newsreel store resize B",
        ),
        (
            "7MiB",
            "from 8MiB to 7MiB: set its `octets` back to 8MiB; for less room say `newsreel store resize B",
        ),
    ] {
        let b = format!("name = \"B\"\noctets = \"{octets}\"");
        spool.configure(&Spool::changed(&[("name = \"B\"\noctets = \"8MiB\"", &b)]));
        server.signal("HUP");
        let told = wait_for(&spool, octets);
        let plain = told.replace('\\', "");
        assert!(
            told.contains("the next start will be refused") && plain.contains(expected),
            "{told}"
        );
    }
    server.stop();
    let error = spool.error(&["serve"]);
    let expected = "error: the size of buffer \"B\" cannot change from 8MiB to 7MiB: set its `octets` back to 8MiB; for \
                    less room say `newsreel store resize B --config ";
    assert!(error.contains(expected), "{error}");
    assert!(
        !error.contains("the configuration says"),
        "said twice: {error}"
    );
}

/// A jump since the last run was told twice, and one backwards as what a pause of the server would be.
#[test]
fn a_clock_behind_the_last_run_is_told_once_and_in_words_of_its_own() {
    let spool = Spool::new();
    spool.serve_with(&["--clock", "1767225600"]).stop();
    let server = spool.serve_with(&["--clock", "1766225600"]);
    let told = wait_for(&spool, "behind the last run");
    assert!(
        told.contains("277 hours behind the last run, so it is wrong now, or was then"),
        "{told}"
    );
    spool.text(&["group", "add", "misc.test"]);
    wait_for(&spool, "add group misc.test");
    let log = spool.log();
    assert!(!log.contains("the clock jumped"), "{log}");
    server.stop();
}

#[test]
fn changes_are_logged_with_their_outcome() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let done = wait_for(&spool, "add group misc.test");
    assert!(done.contains("done"), "{done}");
    spool.error(&["group", "add", "misc.test", "misc.other"]);
    let refused = wait_for(&spool, "add 2 groups");
    assert!(
        refused.contains("refused") && refused.contains("misc.test exists already"),
        "{refused}"
    );
    spool.text(&["clock", "confirm"]);
    let log = spool.log();
    assert!(
        !log.contains("the clock was confirmed") && !log.contains("asked"),
        "{log}"
    );
    server.stop();
}

/// A limit on the size of files (`ulimit -f`) is no end: articles are put off, and taken when it is gone.
#[test]
fn a_server_that_may_not_write_puts_off_and_goes_on() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let mut client = NewsClient::connect(server.address);
    server.forbid_writing(&spool);
    assert_eq!(client.ask("CHECK <1@t.example>"), "431 <1@t.example>");
    assert_eq!(client.ask("GROUP misc.test"), "211 0 1 0 misc.test");
    let mut other = NewsClient::connect(server.address);
    let reply = other.takethis("<1@t.example>", "misc.test");
    assert!(reply.starts_with("400 "), "{reply}");
    server.allow_writing(&spool);
    let reply = client.takethis("<1@t.example>", "misc.test");
    assert_eq!(reply, "239 <1@t.example>");
    server.stop();
    assert_eq!(spool.json(&["check"])["problems"], json!([]));
}

/// A file system of 24 MiB of the test's own, where the machine lets it have one.
#[test]
fn a_disk_that_is_too_small_is_told_before_anybody_is_listened_to() {
    let spool = Spool::new();
    let place = spool.folder().join("small");
    RealDisk.create_dir_all(&place).unwrap();
    let small = |then: &str| {
        let mut command = std::process::Command::new("unshare");
        let script = format!("mount -t tmpfs -o size=24m small \"$1\" && exec {then}");
        command.args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            &script,
            "sh",
        ]);
        command.arg(&place).arg(binary());
        command.stderr(std::process::Stdio::piped());
        command
    };
    if !small("true")
        .output()
        .is_ok_and(|done| done.status.success())
    {
        println!("skipped: no file system can be mounted here");
        return;
    }
    let spool_there = place.join("spool").display().to_string();
    let config = Spool::changed(&[("spool = \"spool\"", &format!("spool = \"{spool_there}\""))]);
    spool.configure(&config);
    let config = spool.config();
    let mut command = small("\"$2\" serve --config \"$3\"");
    let mut child = command.arg(config).spawn().unwrap();
    let (mut told, mut put_off, mut listens) = (None, None, false);
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    for line in lines.map_while(Result::ok) {
        listens |= line.contains("listening");
        if line.contains("has no room for log and index") && !listens {
            told = Some(line);
        } else if line.contains("no room; articles are put off") {
            put_off = Some(line);
        }
        if listens && put_off.is_some() {
            break;
        }
    }
    send("TERM", &child);
    assert!(child.wait().unwrap().success());
    let told = told.expect("nothing is said of the room before the server listens");
    // The buffers have 16 MiB of it; a segment of the log and what a checkpoint may need are to stay free.
    for expected in [
        "ERROR",
        " free=",
        " needed=",
        " kept=36 MiB",
        "smaller buffer.octets or log.segment_octets",
    ] {
        assert!(told.contains(expected), "{expected} in {told}");
    }
    let put_off = put_off.expect("it takes articles");
    let sizes = ["B left, ", " MiB are kept for checkpoints and control"];
    for expected in sizes {
        assert!(put_off.contains(expected), "{expected} in {put_off}");
    }
}

#[test]
fn serve_without_a_configuration_listens_on_loopback() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = newsreel();
    command
        .current_dir(folder.path())
        .args(["serve", "--listen", "127.0.0.1:0"]);
    let server = Server::start(command, folder.path().join("log.txt"), |_| {
        let mut command = newsreel();
        let output = command
            .current_dir(folder.path())
            .args(["status", "--json"])
            .output()
            .unwrap();
        let status: Value = serde_json::from_slice(&output.stdout).ok()?;
        (!status["server"].is_null()).then_some(status)
    });
    assert!(server.address.ip().is_loopback());
    let mut client = NewsClient::connect(server.address);
    let reply = client.ask("CAPABILITIES");
    assert!(reply.starts_with("101"), "{reply}");
    let capabilities = client.block();
    for expected in ["READER", "IHAVE", "STREAMING"] {
        assert!(
            capabilities.iter().any(|line| line == expected),
            "{capabilities:?}"
        );
    }
    assert!(folder.path().join("newsreel-spool").is_dir());
    server.signal("HUP");
    server.stop();
    let log = read_whole(&RealDisk, &folder.path().join("log.txt"), 1 << 20).unwrap();
    let log = String::from_utf8(log).unwrap();
    assert!(!log.contains("configuration read again"), "{log}");
    let name = host_name().unwrap_or_else(|| "newsreel".to_owned());
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    match name.contains('.') {
        true => assert_eq!(warnings, [""; 0]),
        false => assert!(
            warnings.len() == 1
                && warnings[0].contains(&format!("name=\"{name}\""))
                && warnings[0].contains("set engine.path_identity"),
            "{warnings:?}"
        ),
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let spool = Spool::new();
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let server = spool.serve();
        if round == 0 {
            spool.text(&["group", "add", "misc.test"]);
        }
        let mut client = NewsClient::connect(server.address);
        for id in &acknowledged {
            assert_eq!(client.ask(&format!("STAT {id}")), format!("223 0 {id}"));
        }
        for n in 0..50 {
            let id = format!("<{round}.{n}@t.example>");
            assert_eq!(client.takethis(&id, "misc.test"), format!("239 {id}"));
            acknowledged.push(id);
        }
        server.kill();
    }
    let check = spool.json(&["check"]);
    assert_eq!(
        (&check["articles"], &check["problems"]),
        (&json!(150), &json!([]))
    );
}

/// A killed server holds the lock, and its socket takes connections, a little longer than it lives.
#[test]
fn a_server_that_is_being_killed_is_waited_for() {
    let spool = Spool::new();
    spool.serve().stop();
    let lock = RealDisk.lock(&spool.path().join("lock")).unwrap();
    let socket = UnixListener::bind(spool.path().join("control.sock")).unwrap();
    let dying = std::thread::spawn(move || {
        for _ in 0..20 {
            drop(socket.accept().unwrap());
        }
        drop(lock);
    });
    let server = spool.serve();
    dying.join().unwrap();
    server.stop();
}

/// With a line for each article, the server stood still for good when whoever took its log did.
#[test]
fn a_log_that_nobody_reads_holds_nobody_up() {
    let articles = Spool::changed(&[("[log]", "[logging]\narticles = true\n\n[log]")]);
    let spool = Spool::with(&articles);
    let mut server = Ending(starting(&spool));
    spool.text(&["group", "add", "misc.test"]);
    let lost = |status: &Value| status["server"]["log_lines_lost"].as_u64().unwrap();
    let status = spool.json(&["status"]);
    assert_eq!(lost(&status), 0);
    let address = status["server"]["listening"][0].as_str().unwrap();
    let mut client = NewsClient::connect(address.parse().unwrap());
    // More than a pipe holds, and what may wait before it: articles of no group here have a line, too.
    let count = LOG_LINES_MAX + 2000;
    let id = |at: usize| format!("<{at}@t.example>");
    let mut writer = client.writer();
    let sending = std::thread::spawn(move || {
        for at in 0..count {
            let article = article(&id(at), "no.such.group");
            let command = format!("TAKETHIS {}\r\n{article}", id(at));
            writer.write_all(command.as_bytes()).unwrap();
        }
    });
    for at in 0..count {
        let line = client.line();
        assert!(line.starts_with(&format!("439 {} ", id(at))), "{line}");
    }
    sending.join().unwrap();
    assert!(lost(&spool.json(&["status"])) > 0);
    assert!(spool.text(&["status"]).contains("log lines lost"));
    send("TERM", &server.0);
    assert!(server.0.wait().unwrap().success());
}

#[test]
fn logs_are_json_on_demand_and_articles_have_lines() {
    let spool = Spool::new();
    let server = spool.serve_with(&["--log-format", "json", "--log-articles"]);
    spool.text(&["group", "add", "misc.test"]);
    let mut client = NewsClient::connect(server.address);
    assert_eq!(
        client.takethis("<1@t.example>", "misc.test"),
        "239 <1@t.example>"
    );
    assert!(
        client
            .takethis("<2@t.example>", "no.such.group")
            .starts_with("439")
    );
    server.stop();
    let events: Vec<Value> = spool
        .log()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<Value> = events
        .iter()
        .filter(|event| event["target"] == "newsreel::article")
        .map(|event| {
            json!([
                event["address"],
                event["id"],
                event["outcome"],
                event["reason"]
            ])
        })
        .collect();
    let expect = [
        json!(["127.0.0.1", "<1@t.example>", "accepted", null]),
        json!(["127.0.0.1", "<2@t.example>", "rejected", "unknown_groups"]),
    ];
    assert_eq!(told, expect);
}
