//! What the server writes in front of Path, and how it calls itself in Xref (RFC 5537 section 3.2.1).

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

use crate::client::{NewsClient, article};
use crate::spool::Spool;

/// Feeds an article with this Path field; the one it is served with, and its Xref.
fn served(address: SocketAddr, id: &str, field: &str) -> (String, String) {
    served_in(address, id, "misc.test", field)
}

fn served_in(address: SocketAddr, id: &str, group: &str, field: &str) -> (String, String) {
    let mut client = NewsClient::connect(address);
    client.send(
        format!(
            "TAKETHIS {id}\r\nFrom: a@example.org\r\n{field}\r\nNewsgroups: {group}\r\nSubject: path\r\n\
             Date: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: {id}\r\n\r\nbody\r\n.\r\n"
        )
        .as_bytes(),
    );
    assert_eq!(client.line(), format!("239 {id}"));
    assert_eq!(client.ask(&format!("HEAD {id}")), format!("221 0 {id}"));
    let head = client.block().join("\n");
    let (_, rest) = head.split_once("From: a@example.org\n").unwrap();
    let (path, rest) = rest.split_once("\nNewsgroups").unwrap();
    let (_, xref) = rest.split_once("\nXref: ").unwrap();
    (path.to_owned(), xref.to_owned())
}

/// A relaying agent prepends `!`, a diagnostic, and its own identity; `.SEEN.` with the address where it is not told
/// which identity to expect of it, so that it can neither confirm (`!!`) nor deny (`.MISMATCH.`) one.
#[test]
fn an_address_that_was_seen_stands_behind_our_name() {
    let config = Spool::changed(&[
        ("[\"127.0.0.1:0\"]", "[\"127.0.0.1:0\", \"[::1]:0\"]"),
        (
            "[log]",
            "[engine]\npath_identity = \"news.example.org\"\n[log]",
        ),
    ]);
    let spool = Spool::with(&config);
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let seen = "news.example.org!.SEEN.127.0.0.1!";
    for (number, (field, expected)) in (1..).zip([
        (
            "Path: peer.example!not-for-mail",
            format!("Path: {seen}peer.example!not-for-mail"),
        ),
        // The field's name, its blanks, its folds and the entries of others stay as they are.
        (
            "path:   peer.example!not-for-mail",
            format!("path:   {seen}peer.example!not-for-mail"),
        ),
        (
            "Path: a.example!!b.example!.POSTED.192.0.2.1\r\n !not-for-mail",
            format!("Path: {seen}a.example!!b.example!.POSTED.192.0.2.1\n !not-for-mail"),
        ),
        // No relay at all, and our name in the tail entry, which names no server.
        ("Path: not-for-mail", format!("Path: {seen}not-for-mail")),
        (
            "Path: peer.example!news.example.org",
            format!("Path: {seen}peer.example!news.example.org"),
        ),
    ]) {
        let (path, xref) = served(server.address, &format!("<{number}@path.example>"), field);
        assert_eq!(path, expected, "{field}");
        assert_eq!(xref, format!("news.example.org misc.test:{number}"));
    }
    let six = spool.json(&["status"])["server"]["listening"][1].clone();
    let six: SocketAddr = six.as_str().unwrap().parse().unwrap();
    let (path, _) = served(six, "<6@path.example>", "Path: peer.example!not-for-mail");
    assert_eq!(
        path,
        "Path: news.example.org!.SEEN.::1!peer.example!not-for-mail"
    );
    server.stop();
}

/// Peers could be known by addresses only, which those of others are not ours to keep up with; and when the doors were open already, one name
/// was asked for after the other.
#[test]
fn a_peer_is_known_by_the_name_of_its_host() {
    let peer = |name: &str, host: &str| {
        format!("[[peer]]\nname = \"{name}\"\nfeed = []\nfrom_addresses = [\"{host}\"]\n")
    };
    // A name that nobody has is nobody, however long it takes to find out, and holds no other.
    let lost = (0..50).map(|nth| {
        peer(
            &format!("lost{nth}.example"),
            &format!("host-{nth}.invalid"),
        )
    });
    let text = lost.collect::<String>() + &peer("peer.example", "localhost");
    let config = Spool::changed(&[("[log]", &format!("{text}[log]"))]);
    let spool = Spool::with(&config);
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let (path, _) = served(
        server.address,
        "<1@path.example>",
        "Path: peer.example!not-for-mail",
    );
    assert!(path.ends_with("!!peer.example!not-for-mail"), "{path}");
    let explained = spool.json(&["access", "explain", "127.0.0.1"]);
    assert_eq!(explained["rule"], "[[peer]] peer.example");
    server.stop();
}

/// Every peer's articles had `.SEEN.` with its address in Path, also those of servers that the configuration knows.
#[test]
fn a_peer_is_held_against_the_path_it_sends() {
    let config = Spool::changed(&[
        ("[\"127.0.0.1:0\"]", "[\"127.0.0.1:0\", \"[::1]:0\"]"),
        (
            "[log]",
            "[engine]\npath_identity = \"news.example.org\"\n[[peer]]\nname = \"peer.example\"\n\
             aliases = [\"old.example\"]\nfeed = []\nfrom_addresses = [\"127.0.0.1\"]\n\
             from_groups = \"*,!secret.*\"\nfrom_octets_max = 2000\nfrom_content = \"text\"\n[log]",
        ),
    ]);
    let spool = Spool::with(&config);
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    spool.text(&["group", "add", "secret.test"]);
    let us = "Path: news.example.org";
    for (number, (path, expected)) in (1..).zip([
        (
            "peer.example!not-for-mail",
            format!("{us}!!peer.example!not-for-mail"),
        ),
        (
            "OLD.example!!x!not-for-mail",
            format!("{us}!!OLD.example!!x!not-for-mail"),
        ),
        (
            "forged.example!peer.example!not-for-mail",
            format!("{us}!.MISMATCH.peer.example!forged.example!peer.example!not-for-mail"),
        ),
        (
            "peer.example",
            format!("{us}!.MISMATCH.peer.example!peer.example"),
        ),
    ]) {
        let id = format!("<{number}@path.example>");
        let (path, _) = served(server.address, &id, &format!("Path: {path}"));
        assert_eq!(path, expected);
    }
    let mut peer = NewsClient::connect(server.address);
    let refused = peer.takethis("<5@path.example>", "secret.test");
    assert!(
        refused.starts_with("439 <5@path.example> Newsgroups that are not"),
        "{refused}"
    );
    // So it is with all that its section says.
    for (id, body, expected) in [
        (
            "<18@path.example>",
            "x\r\n".repeat(1000),
            "Larger or smaller than what",
        ),
        (
            "<19@path.example>",
            "begin 644 x\r\n".to_owned()
                + &format!("M{}\r\n", "A".repeat(60)).repeat(20)
                + "`\r\nend\r\n",
            "A kind of body that",
        ),
    ] {
        let text = article(id, "misc.test").replace(&format!("body of {id}\r\n"), &body);
        peer.send(format!("TAKETHIS {id}\r\n{text}").as_bytes());
        let said = peer.line();
        assert!(said.starts_with(&format!("439 {id} {expected}")), "{said}");
    }
    assert!(
        peer.takethis("<1@path.example>", "misc.test")
            .starts_with("439")
    );
    assert!(peer.ask("CHECK <1@path.example>").starts_with("438"));
    // Who is not the peer is a stranger.
    let six = spool.json(&["status"])["server"]["listening"][1].clone();
    let six: SocketAddr = six.as_str().unwrap().parse().unwrap();
    let (path, _) = served(six, "<6@path.example>", "Path: peer.example!not-for-mail");
    assert_eq!(path, format!("{us}!.SEEN.::1!peer.example!not-for-mail"));
    let (_, xref) = served_in(six, "<7@path.example>", "secret.test", "Path: x.example!y");
    assert_eq!(xref, "news.example.org secret.test:1");
    // What it sent is counted by reason.
    let listed = spool.json(&["peer", "list"]);
    let from = &listed["received"][0];
    assert_eq!(
        [
            &from["accepted"],
            &from["refused"],
            &from["duplicate"],
            &from["mismatched"]
        ],
        [4, 1, 1, 2],
        "{listed}"
    );
    for why in ["not_from_peer", "peer_octets", "peer_content"] {
        assert_eq!(from["rejected"][why], 1, "{listed}");
    }
    assert_eq!(from["connections"], 1, "{listed}");
    let shown = spool.text(&["peer", "show", "peer.example"]);
    assert!(
        shown.contains("rejected: Newsgroups that are not taken from you"),
        "{shown}"
    );
    // What one of its connections was asked for another is not, until the first has failed.
    let mut other = NewsClient::connect(server.address);
    assert!(peer.ask("CHECK <8@path.example>").starts_with("238"));
    assert!(other.ask("CHECK <8@path.example>").starts_with("431"));
    assert!(other.ask("IHAVE <8@path.example>").starts_with("436"));
    drop(peer);
    let is_asked = |_| {
        std::thread::sleep(Duration::from_millis(20));
        other.ask("CHECK <8@path.example>").starts_with("238")
    };
    assert!((0..500).any(is_asked));
    let listed = spool.json(&["peer", "list"]);
    let deferred = &listed["received"][0]["deferred"]["under_way"];
    assert!(deferred.as_u64() >= Some(2), "{listed}");
    server.stop();
}

/// A peer could be held to so many connections, and to nothing that these do.
#[test]
fn what_a_peer_sends_has_its_pace() {
    for key in [
        "from_articles_per_s_max = 20",
        "from_octets_per_s_max = \"4KB\"",
    ] {
        let config = Spool::changed(&[(
            "[log]",
            &format!(
                "[[peer]]\nname = \"peer.example\"\nfeed = []\nfrom_addresses = [\"127.0.0.1\"]\n{key}\n[log]"
            ),
        )]);
        let spool = Spool::with(&config);
        let server = spool.serve();
        spool.text(&["group", "add", "misc.test"]);
        let begun = Instant::now();
        let send = |by: u32| {
            let mut client = NewsClient::connect(server.address);
            let ids: Vec<String> = (0..30)
                .map(|n| format!("<{n}.{by}@pace.example>"))
                .collect();
            for id in &ids {
                let text = article(id, "misc.test");
                client.send(format!("TAKETHIS {id}\r\n{text}").as_bytes());
            }
            for id in &ids {
                assert_eq!(client.line(), format!("239 {id}"));
            }
        };
        // All its connections share it: 60 articles, 15,000 octets with what is said of them, of which a second's worth comes at once.
        std::thread::scope(|scope| {
            for by in 0..2 {
                scope.spawn(move || send(by));
            }
        });
        let took = begun.elapsed();
        let least = match key.contains("articles") {
            true => Duration::from_millis(1900),
            false => Duration::from_millis(900),
        };
        assert!(took >= least, "{key}: {took:?}");
        server.stop();
    }
}
