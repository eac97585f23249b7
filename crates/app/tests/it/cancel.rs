//! `newsreel article cancel`, live and offline, as a reader on the wire sees it.

use serde_json::{Value, json};

use crate::client::NewsClient;
use crate::spool::Spool;

const GROUP: &str = "misc.test";

fn id(n: usize) -> String {
    format!("<{n}@cancel.example>")
}

/// Every command that shows articles shows only these.
fn assert_left(client: &mut NewsClient, left: &[usize], high: usize) {
    let (low, count) = (left[0], left.len());
    let group = client.ask(&format!("LISTGROUP {GROUP}"));
    assert_eq!(
        group,
        format!("211 {count} {low} {high} {GROUP} list follows")
    );
    let numbers: Vec<usize> = client
        .block()
        .iter()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(numbers, left);
    for command in ["OVER", "HDR Subject"] {
        assert!(client.ask(&format!("{command} 1-")).starts_with("22"));
        let lines = client.block();
        let first = |line: &String| line.split(['\t', ' ']).next().unwrap().parse().unwrap();
        let numbers: Vec<usize> = lines.iter().map(first).collect();
        assert_eq!(numbers, left, "{command}");
    }
    assert!(
        client
            .ask(&format!("NEWNEWS {GROUP} 20000101 000000"))
            .starts_with("230")
    );
    let ids = client.block();
    for n in 1..=high {
        let is_left = left.contains(&n);
        assert_eq!(ids.contains(&id(n)), is_left, "NEWNEWS {n}");
        let stat = client.ask(&format!("STAT {n}"));
        assert_eq!(stat.starts_with("223"), is_left, "STAT {n}: {stat}");
        let stat = client.ask(&format!("STAT {}", id(n)));
        assert_eq!(stat.starts_with("223"), is_left, "STAT {}: {stat}", id(n));
        assert!(client.ask(&format!("CHECK {}", id(n))).starts_with("438"));
    }
    // The list of all groups is kept ready, that of some is made each time.
    for asked in ["LIST ACTIVE".to_owned(), format!("LIST ACTIVE {GROUP}")] {
        assert!(client.ask(&asked).starts_with("215"));
        let lines = client.block();
        let line = format!("{GROUP} {high} {low} y");
        assert!(lines.contains(&line), "{asked}: {lines:?}");
    }
}

#[test]
fn what_is_cancelled_is_gone_at_once_and_stays_gone() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", GROUP]);
    let mut client = NewsClient::connect(server.address);
    for n in 1..=6 {
        assert!(client.takethis(&id(n), GROUP).starts_with("239"));
    }
    assert_left(&mut client, &[1, 2, 3, 4, 5, 6], 6);
    let (first, third) = (id(1), id(3));
    let tried = spool.text(&["article", "cancel", "--dry-run", &first]);
    assert_eq!(tried, format!("would cancel {first}\n"));
    let tried = spool.json(&["article", "cancel", "--dry-run", &first]);
    assert_eq!(tried["dry_run"], true);
    assert_left(&mut client, &[1, 2, 3, 4, 5, 6], 6);
    let said = spool.json(&["article", "cancel", &first, &third, "<never@here.example>"]);
    let expect =
        json!({"cancelled": [first, third], "not_here": ["<never@here.example>"], "failed": []});
    assert_eq!(said, expect);
    assert_left(&mut client, &[2, 4, 5, 6], 6);
    assert!(
        spool
            .error(&["article", "cancel", &third])
            .contains("none of these articles is here")
    );
    assert!(
        spool
            .error(&["article", "cancel", "nonsense"])
            .contains("nothing was cancelled")
    );
    assert_eq!(spool.json(&["check"])["problems"], json!([]));
    for (which, why) in [
        (
            third.as_str(),
            ": cancelled, expired, or its file was removed",
        ),
        (
            "<never@here.example>",
            ": it was never here, or is no longer remembered",
        ),
        (
            "misc.test:3",
            ": it was never here, was cancelled, or had to make room",
        ),
        ("misc.test:7", ": misc.test has given numbers up to 6 only"),
    ] {
        let error = spool.error(&["article", "show", which]);
        assert!(
            error.starts_with(&format!("error: no article {which}: ")) && error.contains(why),
            "{error}"
        );
    }
    server.stop();
    // Without a server, too.
    spool.text(&["article", "cancel", &format!("{GROUP}:5")]);
    let server = spool.serve();
    let mut client = NewsClient::connect(server.address);
    assert_left(&mut client, &[2, 4, 6], 6);
    assert_eq!(spool.json(&["check"])["problems"], json!([]));
    server.stop();
}

/// Requests are of a thousand articles each, and what cannot be meant stands behind the first thousand.
#[test]
fn a_long_list_is_cancelled_whole_or_not_at_all() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", GROUP]);
    let mut client = NewsClient::connect(server.address);
    for n in 1..=3 {
        assert!(client.takethis(&id(n), GROUP).starts_with("239"));
    }
    let cancel = |list: &str| spool.piped(&["article", "cancel", "-", "--json"], list);
    let mut list: String = (1..=1500).map(|n| format!("{}\n", id(n))).collect();
    let error = cancel(&format!("{list}nonsense\n")).unwrap_err();
    let error: Value = serde_json::from_str(&error).unwrap();
    let error = error["error"].as_str().unwrap();
    assert!(error.contains("\"nonsense\" names no article"), "{error}");
    assert!(error.contains("nothing was cancelled"), "{error}");
    assert_left(&mut client, &[1, 2, 3], 3);
    list = list.replace(&format!("{}\n", id(2)), "\n");
    let done: Value = serde_json::from_str(&cancel(&list).unwrap()).unwrap();
    assert_eq!(done["cancelled"], json!([id(1), id(3)]));
    assert_eq!(done["not_here"].as_array().unwrap().len(), 1497);
    assert_left(&mut client, &[2], 3);
    server.stop();
}
