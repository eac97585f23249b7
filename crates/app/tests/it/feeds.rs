//! Servers that send to each other: articles arrive, go on, come back to nobody, and wait for who is away.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use crate::client::NewsClient;
use crate::spool::{Server, Spool};

/// A site that listens somewhere and sends to another one.
fn site(name: &str, listens: &str, peer: &str, address: SocketAddr) -> Spool {
    let config = Spool::changed(&[
        (
            "[articles]",
            &format!("[engine]\npath_identity = '{name}'\n\n[articles]"),
        ),
        ("127.0.0.1:0", listens),
    ]);
    Spool::with(&format!(
        "{config}\n[[peer]]\nname = '{peer}'\naddress = '{address}'\n"
    ))
}

/// An address that nobody listens on.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

fn serve(spool: &Spool) -> Server {
    let server = spool.serve();
    spool.run(&["group", "add", "misc.test"]);
    server
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..300 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("waited in vain: {what}");
}

#[test]
fn what_comes_goes_on_and_waits_for_who_is_away() {
    let address = free();
    let left = site("left.example", "127.0.0.1:0", "right.example", address);
    let left_server = serve(&left);
    // Nobody is there yet: what comes waits.
    let id = |n: u32| format!("<{n}@t.example>");
    let mut feeder = NewsClient::connect(left_server.address);
    for n in 1..=20 {
        assert!(feeder.takethis(&id(n), "misc.test").starts_with("239"));
    }
    let listed = || left.json(&["peer", "list"])["feeds"][0].clone();
    until("the first attempt", || {
        listed()["connections"][0]
            .as_str()
            .unwrap()
            .contains("tries again")
    });
    assert_eq!(listed()["waiting"], 20);
    left_server.stop();
    let left_server = left.serve();
    assert_eq!(listed()["waiting"], 20, "the place outlives a stop");
    let listens = address.to_string();
    let right = site(
        "right.example",
        &listens,
        "left.example",
        left_server.address,
    );
    let right_server = serve(&right);
    left.text(&["peer", "flush", "right.example"]);
    let mut reader = NewsClient::connect(right_server.address);
    until("all articles", || listed()["accepted"] == 20);
    assert!(reader.ask("GROUP misc.test").starts_with("211 20 "));
    // They came from there, so nothing goes back.
    let said = right.text(&["peer", "explain", &id(7)]);
    assert!(
        said.contains("does not go out: its Path has left.example already"),
        "{said}"
    );
    let back = &right.json(&["peer", "list"])["feeds"][0];
    assert_eq!(
        (&back["accepted"], &back["refused"]),
        (&0.into(), &0.into())
    );
    let shown = left.text(&["peer", "show", "right.example/all"]);
    assert!(shown.contains("sending by CHECK and TAKETHIS"), "{shown}");
    left.text(&["peer", "pause", "right.example"]);
    let mut feeder = NewsClient::connect(left_server.address);
    assert!(feeder.takethis(&id(21), "misc.test").starts_with("239"));
    until("a backlog", || listed()["behind"].as_u64() > Some(0));
    let dropped = left.text(&["peer", "drop-backlog", "right.example"]);
    assert!(dropped.starts_with("given up: "), "{dropped}");
    left.text(&["peer", "resume", "right.example"]);
    assert!(feeder.takethis(&id(22), "misc.test").starts_with("239"));
    until("the next one", || listed()["accepted"] == 21);
    assert!(reader.ask("STAT <22@t.example>").starts_with("223"));
    assert!(reader.ask("STAT <21@t.example>").starts_with("430"));
    let none = left.error(&["peer", "pause", "nobody.example"]);
    assert!(none.contains("there are right.example"), "{none}");
    right_server.stop();
    left_server.stop();
}
