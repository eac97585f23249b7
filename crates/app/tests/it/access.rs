//! `newsreel access explain`: the rules of a configuration, as the server takes them.

use crate::client::NewsClient;
use crate::spool::{Spool, newsreel};

const RULES: &str = r#"
[[access]]
name = "peer"
addresses = ["192.0.2.7"]
feed = true

[[access]]
name = "here"
addresses = ["local"]
read = "*,!secret.*"

[[access]]
name = "virtual"
listen = ["198.51.100.1:0"]
read = "misc.*"
commands_per_s_max = 5
"#;

#[test]
fn what_is_explained_is_what_the_server_does() {
    let spool = Spool::with(&(Spool::changed(&[]) + RULES));
    let explain = |words: &[&str]| spool.text(&[&["access", "explain"][..], words].concat());
    let said = explain(&["192.0.2.7"]);
    assert!(
        said.starts_with("192.0.2.7 has what \"peer\" grants:\n"),
        "{said}"
    );
    let said = explain(&["203.0.113.9", "--listen", "198.51.100.1:563"]);
    assert!(
        said.starts_with(
            "not \"peer\": it is for other addresses\nnot \"here\": it is for other addresses\n\
             203.0.113.9 has what \"virtual\" grants:\n"
        ),
        "{said}"
    );
    let json = spool.json(&["access", "explain", "::1"]);
    assert_eq!(json["rule"], "here");
    assert_eq!(json["grants"]["read"], "*,!secret.*");
    assert_eq!(json["grants"]["feed"], false);
    assert_eq!(json["passed_over"][0]["rule"], "peer");
    let why = spool.error(&["access", "explain", "203.0.113.9"]);
    assert!(
        why.contains("no access rule is for 203.0.113.9: it is refused"),
        "{why}"
    );
    // The server does so, and its last values are explained without the file.
    let server = spool.serve();
    let mut client = NewsClient::connect(server.address);
    assert_eq!(client.ask("IHAVE <a@b.example>"), "502 Not permitted");
    server.stop();
    let at = spool.path().display().to_string();
    let last = newsreel()
        .args(["access", "explain", "127.0.0.1", "--spool", &at])
        .output();
    let said = crate::spool::said(last.unwrap()).unwrap();
    assert!(
        said.contains("127.0.0.1 has what \"here\" grants:"),
        "{said}"
    );
}

#[test]
fn without_rules_the_keys_are_explained() {
    let spool = Spool::new();
    let json = spool.json(&["access", "explain", "127.0.0.1"]);
    assert_eq!(json["rule"], "this machine");
    assert_eq!(json["grants"]["post"], "*");
    let why = spool.error(&["access", "explain", "192.0.2.1"]);
    assert!(why.contains("no access rule is for 192.0.2.1"), "{why}");
}
