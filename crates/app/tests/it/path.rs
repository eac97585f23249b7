//! What the server writes in front of Path, and how it calls itself in Xref (RFC 5537 section 3.2.1).

use std::net::SocketAddr;

use crate::client::NewsClient;
use crate::spool::Spool;

/// Feeds an article with this Path field; the one it is served with, and its Xref.
fn served(address: SocketAddr, id: &str, field: &str) -> (String, String) {
    let mut client = NewsClient::connect(address);
    client.send(
        format!(
            "TAKETHIS {id}\r\nFrom: a@example.org\r\n{field}\r\nNewsgroups: misc.test\r\nSubject: path\r\n\
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

/// A relaying agent prepends `!`, a diagnostic, and its own identity; `.SEEN.` with the address, because it is not told
/// which identity to expect of an address, so that it can neither confirm (`!!`) nor deny (`.MISMATCH.`) one.
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
