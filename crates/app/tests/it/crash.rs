//! A server that is killed at random moments of a feed: nothing acknowledged is lost, nothing is half there.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use newsreel_host::random_bytes;
use serde_json::json;

use crate::client::NewsClient;
use crate::scale::scaled;
use crate::spool::Spool;

const CONNECTIONS: usize = 4;
/// Articles a connection sends at most in a round, so that all rounds fit into the buffers.
const ARTICLES_MAX: usize = 1250;
/// Articles sent ahead of their replies.
const WINDOW: usize = 32;
const GROUPS: [&str; 3] = ["crash.one", "crash.two", "crash.three"];

/// What one connection did before the server died.
#[derive(Default)]
struct Sent {
    acknowledged: Vec<String>,
    unanswered: Vec<String>,
}

/// The article of an id: its body follows from it, and so does its length.
fn article(id: &str) -> String {
    let seed: usize = id.bytes().map(usize::from).sum();
    let groups = GROUPS[..1 + seed % GROUPS.len()].join(",");
    let body = format!("{id} says this\r\n").repeat(1 + seed % 40);
    format!(
        "Path: peer.example!not-for-mail\r\nFrom: a@example.org\r\nNewsgroups: {groups}\r\n\
         Subject: crash\r\nDate: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: {id}\r\n\r\n{body}.\r\n"
    )
}

/// Feeds until the server is gone or everything is sent; what was answered, and what may or may not be there.
fn feed(address: SocketAddr, round: usize, connection: usize) -> Sent {
    let mut sent = Sent::default();
    let Ok(stream) = TcpStream::connect(address) else {
        return sent;
    };
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    let mut line = String::new();
    if replies.read_line(&mut line).unwrap_or(0) == 0 {
        return sent;
    }
    let (mut next, mut open) = (0, 0);
    while next < ARTICLES_MAX || open > 0 {
        if next < ARTICLES_MAX && open < WINDOW {
            let id = format!("<{round}.{connection}.{next}@crash.example>");
            let text = format!("TAKETHIS {id}\r\n{}", article(&id));
            sent.unanswered.push(id);
            next += 1;
            open += 1;
            if stream.write_all(text.as_bytes()).is_ok() {
                continue;
            }
        }
        line.clear();
        if replies.read_line(&mut line).unwrap_or(0) == 0 || !line.ends_with('\n') {
            break;
        }
        let id = sent.unanswered.remove(0);
        assert_eq!(line.trim_end(), format!("239 {id}"));
        sent.acknowledged.push(id);
        open -= 1;
    }
    sent
}

/// Asks for every id; which are there, each whole.
fn present<'a>(address: SocketAddr, ids: impl Iterator<Item = &'a String>) -> HashSet<&'a str> {
    let mut client = NewsClient::connect(address);
    let mut found = HashSet::new();
    let ids: Vec<&String> = ids.collect();
    for ids in ids.chunks(64) {
        let commands: String = ids.iter().map(|id| format!("BODY {id}\r\n")).collect();
        client.send(commands.as_bytes());
        for id in ids {
            let reply = client.line();
            if reply.starts_with("430") {
                continue;
            }
            assert_eq!(reply, format!("222 0 {id}"));
            let expected = article(id);
            let (_, body) = expected.split_once("\r\n\r\n").unwrap();
            let body: Vec<&str> = body.strip_suffix(".\r\n").unwrap().lines().collect();
            assert_eq!(client.block(), body, "{id}");
            found.insert(id.as_str());
        }
    }
    found
}

fn random_below(most: u64) -> u64 {
    u64::from_le_bytes(random_bytes().unwrap()) % most
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let spool = Spool::with(&Spool::changed(&[("8MiB", "160MiB")]));
    let rounds = scaled(3, 50);
    let mut acknowledged: Vec<String> = Vec::new();
    let mut maybe: Vec<String> = Vec::new();
    let mut server = spool.serve();
    spool.text(&[&["group", "add"][..], &GROUPS].concat());
    for round in 0..rounds {
        let address = server.address;
        let wait = Duration::from_millis(5 + random_below(250));
        let sent: Vec<Sent> = std::thread::scope(|scope| {
            let feeds: Vec<_> = (0..CONNECTIONS)
                .map(|connection| scope.spawn(move || feed(address, round, connection)))
                .collect();
            std::thread::sleep(wait);
            server.kill();
            feeds.into_iter().map(|feed| feed.join().unwrap()).collect()
        });
        server = spool.serve();
        let (mut new, mut open) = (Vec::new(), Vec::new());
        for sent in sent {
            new.extend(sent.acknowledged);
            open.extend(sent.unanswered);
        }
        let found = present(server.address, new.iter());
        let lost: Vec<&String> = new
            .iter()
            .filter(|id| !found.contains(id.as_str()))
            .collect();
        assert!(
            lost.is_empty(),
            "round {round}, killed after {wait:?}: lost {lost:?}"
        );
        let kept = present(server.address, open.iter());
        maybe.extend(kept.into_iter().map(str::to_owned));
        acknowledged.extend(new);
        if round % 10 == 0 {
            assert_eq!(
                spool.json(&["check"])["problems"],
                json!([]),
                "round {round}"
            );
        }
    }
    let all: Vec<&String> = acknowledged.iter().chain(&maybe).collect();
    assert_eq!(
        present(server.address, all.iter().copied()).len(),
        all.len()
    );
    for (place, group) in GROUPS.iter().enumerate() {
        let filed = |id: &&&String| id.bytes().map(usize::from).sum::<usize>() % 3 >= place;
        let count = all.iter().filter(filed).count();
        let reply = NewsClient::connect(server.address).ask(&format!("GROUP {group}"));
        assert_eq!(
            reply.split(' ').nth(1),
            Some(count.to_string().as_str()),
            "{reply}"
        );
    }
    let check = spool.json(&["check"]);
    assert_eq!(
        (&check["problems"], &check["articles"]),
        (&json!([]), &json!(all.len()))
    );
    println!(
        "crash: {rounds} kills, {} acknowledged articles all there, {} more that were not answered",
        acknowledged.len(),
        maybe.len()
    );
    server.stop();
}
