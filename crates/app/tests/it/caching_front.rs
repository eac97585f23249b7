//! What stands in front of a cache: the rules of access, and another cache.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use std::thread::spawn;

use newsreel_host::{RealDisk, replace_file};

use crate::caching::{Cache, body_of, cache_said, id, post, read};
use crate::client::NewsClient;
use crate::spool::{Spool, newsreel, said};

/// Whoever has not logged in may read and post to some groups only; the cache's account may do everything.
const RULES: &str = r#"
[[access]]
name = "all"
users = ["ada", "cache"]
read = "*"
post = "*"
feed = true
newnews = true

[[access]]
name = "everybody"
addresses = ["local"]
read = "misc.*"
post = "misc.*"
newnews = true
"#;

const PASSWORD: &str = "correct-horse";

/// What somebody may ask who wants more than is permitted.
const ASKED: &[&str] = &[
    "LIST ACTIVE",
    "LIST ACTIVE private.*",
    "LIST NEWSGROUPS",
    "LIST ACTIVE.TIMES",
    "LIST ACTIVE.MODTIME 19700101000000",
    "LIST COUNTS",
    "NEWGROUPS 20200101 000000 GMT",
    "NEWNEWS * 20200101 000000 GMT",
    "NEWNEWS misc.*,private.* 20200101 000000 GMT",
    "NEWNEWS private.* 20200101 000000 GMT",
    "GROUP private.test",
    "LISTGROUP private.test",
    "ARTICLE <2@t.example>",
    "HEAD <2@t.example>",
    "BODY <2@t.example>",
    "STAT <2@t.example>",
    "OVER <2@t.example>",
    "HDR Subject <2@t.example>",
    "XHDR Subject <2@t.example>",
    "XPAT Subject <2@t.example> *",
    "XGTITLE *",
    "XGTITLE private.*",
    "LIST SUBSCRIPTIONS",
    "LIST SUBSCRIPTIONS private.*",
    "LIST MODERATORS",
    "LIST DISTRIB.PATS",
    "GROUP misc.test",
    "OVER 1-",
    "HDR Xref 1-",
    "ARTICLE <3@t.example>",
    "HEAD <3@t.example>",
    "XPAT Subject 1- *",
    "NEXT",
    "LAST",
];

/// What the server itself tells of groups and of patterns that match some.
const LISTS: &str = r#"
[lists]
subscriptions = ["misc.test", "private.test"]
distrib_pats = ["10:private.*:local", "5:misc.*:world"]

[moderation]
moderators = ["private.*:ada@example.org", "misc.*:%s@example.org"]
"#;

/// The first line of an answer without what only its reader is told, and the lines of its block.
fn answer(client: &mut NewsClient, command: &str) -> (String, Vec<String>) {
    let code = client.ask(command)[..3].to_owned();
    let is_block = matches!(
        &*code,
        "215" | "220" | "221" | "222" | "224" | "225" | "230" | "231" | "282"
    );
    let lines = if is_block { client.block() } else { Vec::new() };
    (code, lines)
}

fn log_in(client: &mut NewsClient, name: &str) {
    assert!(
        client
            .ask(&format!("AUTHINFO USER {name}"))
            .starts_with("381")
    );
    let said = client.ask(&format!("AUTHINFO PASS {PASSWORD}"));
    assert!(said.starts_with("281"), "{said}");
}

/// A private group that one user has read is in the cache; another gets of it what the server itself would give: nothing.
#[test]
fn the_rules_in_front_of_a_cache_are_those_of_a_server() {
    let login = "[login]\nfailures_max = 0\n";
    let spool = Spool::with(&(Spool::changed(&[]) + login + LISTS + RULES));
    let upstream = spool.serve();
    for group in ["misc.test", "private.test"] {
        spool.text(&["group", "add", group]);
    }
    for name in ["ada", "cache"] {
        spool
            .piped(&["user", "add", name], &format!("{PASSWORD}\n"))
            .unwrap();
    }
    let mut feeder = NewsClient::connect(upstream.address);
    log_in(&mut feeder, "cache");
    for (n, groups) in [
        (1, "misc.test"),
        (2, "private.test"),
        (3, "private.test,misc.test"),
    ] {
        assert!(feeder.takethis(&id(n), groups).starts_with("239"));
    }
    let cache = Cache::of(upstream.address);
    let add = || {
        let mut command = newsreel();
        command.args(["user", "add", "ada", "--spool"]);
        command.arg(cache.folder.path().join("cache"));
        let mut adding = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = adding.stdin.take().unwrap();
        input.write_all(PASSWORD.as_bytes()).unwrap();
        drop(input);
        said(adding.wait_with_output().unwrap())
    };
    // What was advised makes a spool, which is no place for a cache's users.
    let too_early = add().unwrap_err();
    assert!(
        too_early.contains("the first start of `newsreel cache` makes"),
        "{too_early}"
    );
    let secret = cache.folder.path().join("password");
    replace_file(&RealDisk, &secret, PASSWORD.as_bytes()).unwrap();
    let server = cache.serve_with(&format!(
        "[[upstream]]\naddress = \"{}\"\nuser = \"cache\"\npassword_file = {secret:?}\nclear_text = true\n{login}{RULES}",
        upstream.address
    ));
    add().unwrap();
    // All of it is kept, and more than once read.
    let mut ada = NewsClient::connect(server.address);
    log_in(&mut ada, "ada");
    for _ in 0..2 {
        assert!(ada.ask("GROUP private.test").starts_with("211 2 "));
        assert!(answer(&mut ada, "OVER 1-").0 == "224");
        for n in [1, 2] {
            assert!(read(&mut ada, n).unwrap().contains(&body_of(n + 1)));
        }
    }
    let answers = |address: SocketAddr| {
        let mut client = NewsClient::connect(address);
        let mut all = Vec::new();
        for command in ASKED {
            all.push((*command, answer(&mut client, command)));
        }
        // Posts to what may not be posted to.
        let crossposted = "From: a@example.org\r\nNewsgroups: misc.test,private.test\r\nSubject: x\r\n\r\nx\r\n.\r\n";
        let posted = match client.ask("POST") {
            said if said.starts_with("340") => {
                client.send(crossposted.as_bytes());
                client.line()
            }
            said => said,
        };
        all.push(("POST", (posted[..3].to_owned(), Vec::new())));
        all
    };
    let (here, there) = (answers(server.address), answers(upstream.address));
    for (here, there) in here.iter().zip(&there) {
        assert_eq!(here, there);
    }
    // And these answers give nothing away.
    let mut given = 0;
    for (command, (code, lines)) in &here {
        let all = lines.concat();
        // A line of an article that is in both groups may name both.
        let is_public =
            |line: &String| !line.contains("private.test") || line.contains("misc.test");
        assert!(
            lines.iter().all(is_public) && !all.contains(&body_of(2)),
            "{command}: {all}"
        );
        if command.contains("<2@") || command.contains("GROUP private") {
            assert!(
                code.starts_with('4') || code.starts_with('5'),
                "{command}: {code}"
            );
        }
        given += lines.len();
    }
    assert!(given > 10, "what is permitted is there: {here:?}");
    assert_eq!(here.last().unwrap().1.0, "441");
    // While the server is not asked, or is away, a group that is kept is as one that nobody knows.
    let switched = cache_said(&cache, &["offline", "on"]).unwrap();
    assert!(switched.starts_with("offline"), "{switched}");
    gives_nothing_away(server.address);
    cache_said(&cache, &["offline", "off"]).unwrap();
    upstream.stop();
    gives_nothing_away(server.address);
    server.stop();
}

/// Whoever asks a cache whose server is not asked learns nothing of the private group that it keeps.
fn gives_nothing_away(address: SocketAddr) {
    for command in ASKED {
        // An article that cannot be had ends the connection.
        let mut client = NewsClient::connect(address);
        client.ask("GROUP misc.test");
        let said = answer(&mut client, command);
        let all = said.1.concat();
        let is_public =
            |line: &String| !line.contains("private.test") || line.contains("misc.test");
        let is_silent = said.1.iter().all(is_public) && !all.contains(&body_of(2));
        assert!(is_silent, "{command}: {said:?}");
        if command.ends_with("private.test") || command.ends_with("private.*") {
            let unknown = command.replace("private.", "unknown.");
            let mut other = NewsClient::connect(address);
            assert_eq!(answer(&mut other, &unknown), said, "{command}");
        }
    }
}

/// The second cache reads from the first as from any server: numbers, posts, cancels, new groups and those that are gone go through
/// both, and what is kept in either outlives the server.
#[test]
fn two_caches_in_a_chain_are_one_server() {
    let lists = "\n[lists]\nsubscriptions = [\"misc.test\", \"misc.old\"]\n";
    let spool = Spool::with(&(Spool::changed(&[]) + lists));
    let upstream = spool.serve();
    for group in ["misc.test", "misc.old"] {
        spool.text(&["group", "add", group]);
    }
    let mut feeder = NewsClient::connect(upstream.address);
    for n in 1..=6 {
        assert!(feeder.takethis(&id(n), "misc.test").starts_with("239"));
    }
    let fresh = "[cache]\nrefresh_s = 0\nlist_refresh_s = 0\nread_ahead = 1\n";
    let inner = Cache::of(upstream.address);
    let inner_server = inner.serve_with(fresh);
    let outer = Cache::of(inner_server.address);
    let outer_server = outer.serve_with(fresh);
    let mut reader = NewsClient::connect(outer_server.address);
    let list = |reader: &mut NewsClient| {
        assert!(reader.ask("LIST").starts_with("215"));
        let mut lines = reader.block();
        lines.retain(|line| line.starts_with("misc."));
        lines
    };
    assert_eq!(list(&mut reader), ["misc.old 0 1 y", "misc.test 6 1 y"]);
    assert!(reader.ask("CAPABILITIES").starts_with("101"));
    let is_offered = |line: &String| line.starts_with("LIST ") && line.contains("SUBSCRIPTIONS");
    assert!(reader.block().iter().any(is_offered));
    for (command, expected) in [
        ("LIST SUBSCRIPTIONS", &["misc.test", "misc.old"][..]),
        ("LIST SUBSCRIPTIONS *.old", &["misc.old"]),
    ] {
        assert!(reader.ask(command).starts_with("215"));
        assert_eq!(reader.block(), expected, "{command}");
    }
    assert!(reader.ask("LIST MOTD").starts_with("503"));
    assert_eq!(reader.ask("GROUP misc.test"), "211 6 1 6 misc.test");
    for n in 1..=4 {
        assert!(read(&mut reader, n).unwrap().contains(&body_of(n)));
    }
    let posted = post(&mut reader, 7);
    assert!(posted.starts_with("240"), "{posted}");
    let there = NewsClient::connect(upstream.address).ask(&format!("STAT {}", id(7)));
    assert!(there.starts_with("223"), "{there}");
    assert_eq!(reader.ask("GROUP misc.test"), "211 7 1 7 misc.test");
    // Both lists are brought up to date by what has changed, and of a group that is missed both are asked for whole.
    spool.text(&["group", "add", "misc.new"]);
    let lines = ["misc.new 0 1 y", "misc.old 0 1 y", "misc.test 7 1 y"];
    assert_eq!(list(&mut reader), lines);
    spool.text(&["group", "remove", "misc.old"]);
    assert!(reader.ask("GROUP misc.old").starts_with("411"));
    assert_eq!(list(&mut reader), [lines[0], lines[2]]);
    // What is cancelled there is gone here, though it was read.
    spool.text(&["article", "cancel", "<3@t.example>"]);
    assert!(reader.ask("LISTGROUP misc.test").starts_with("211"));
    let numbers = reader.block();
    assert_eq!(numbers, ["1", "2", "4", "5", "6", "7"]);
    outer_server.stop();
    // One behind the other goes away, and what each has kept is there; refreshed in a minute is old enough then.
    let mut inner_reader = NewsClient::connect(inner_server.address);
    assert!(inner_reader.ask("GROUP misc.test").starts_with("211"));
    assert!(read(&mut inner_reader, 5).is_ok());
    inner_server.stop();
    let inner_server = inner.serve_with("");
    let outer = Cache::of(inner_server.address);
    let outer_server = outer.serve_with("");
    upstream.kill();
    let mut reader = NewsClient::connect(outer_server.address);
    assert!(reader.ask("GROUP misc.test").starts_with("211"));
    for n in [1, 2, 4, 5] {
        assert!(read(&mut reader, n).unwrap().contains(&body_of(n)));
    }
    let not_kept = read(&mut reader, 6).unwrap_err();
    assert!(not_kept.starts_with("400"), "{not_kept}");
    inner_server.kill();
    let mut reader = NewsClient::connect(outer_server.address);
    assert!(reader.ask("GROUP misc.test").starts_with("211"));
    for n in [1, 2, 4, 5] {
        assert!(read(&mut reader, n).unwrap().contains(&body_of(n)));
    }
    outer_server.stop();
}

/// A server elsewhere that knows a command that we do not.
fn knowing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    spawn(move || {
        for stream in listener.incoming() {
            let mut out = stream.unwrap();
            spawn(move || {
                let mut lines = BufReader::new(out.try_clone().unwrap()).lines();
                let mut answer = "200 ready".to_owned();
                while writeln!(out, "{answer}\r").is_ok()
                    && let Some(Ok(line)) = lines.next()
                {
                    answer = match line.as_str() {
                        "CAPABILITIES" => "101 list\r\nVERSION 2\r\nREADER\r\n.".to_owned(),
                        "GROUP misc.test" => "211 1 1 1 misc.test".to_owned(),
                        "LIST ACTIVE misc.test" => "215 list\r\nmisc.test 1 1 y\r\n.".to_owned(),
                        line if line.to_uppercase().starts_with("XTHREAD") => {
                            format!("288 threads\r\n{line}\r\n.")
                        }
                        _ => "500 what?".to_owned(),
                    };
                }
            });
        }
    });
    address
}

/// A command that the configuration names is carried out upstream, in the group that the reader has selected, and only for those who may
/// read everything: nobody here knows what it asks for.
#[test]
fn commands_that_are_named_are_passed_on_for_who_may_read_everything() {
    let cache = Cache::of(knowing());
    let rule = |name: &str, read: &str| {
        format!(
            "[cache]\nforward = [\"XTHREAD 288\"]\n\n[[access]]\nname = \"{name}\"\naddresses = [\"local\"]\nread = \"{read}\"\n"
        )
    };
    let server = cache.serve_with(&rule("all", "*"));
    let mut reader = NewsClient::connect(server.address);
    assert_eq!(reader.ask("XTHREAD 1"), "288 threads");
    assert_eq!(reader.block(), ["XTHREAD 1"]);
    assert!(reader.ask("GROUP misc.test").starts_with("211"));
    // A pipeline keeps its order.
    reader.send(b"xthread 2\r\nDATE\r\n");
    assert_eq!(reader.line(), "288 threads");
    assert_eq!(reader.block(), ["xthread 2"]);
    assert!(reader.line().starts_with("111"));
    assert!(reader.ask("XOTHER").starts_with("500"));
    server.stop();
    let cache = Cache::of(knowing());
    let server = cache.serve_with(&rule("some", "misc.*"));
    let mut reader = NewsClient::connect(server.address);
    assert!(reader.ask("XTHREAD 1").starts_with("502"));
    server.stop();
}
