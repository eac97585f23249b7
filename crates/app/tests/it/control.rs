//! The same questions to a running server, to nobody (offline) and read-only get the same answers.

use serde_json::{Value, json};

use crate::client::NewsClient;
use crate::spool::Spool;

/// Commands whose answers must not depend on who answers.
const QUESTIONS: &[&[&str]] = &[
    &["group", "list"],
    &["group", "list", "misc.*"],
    &["group", "show", "misc.test"],
    &["article", "show", "<1@t.example>"],
    &["article", "show", "misc.test:2"],
    &["store", "inspect"],
];

fn answers(spool: &Spool, more: &[&str]) -> Vec<Value> {
    QUESTIONS
        .iter()
        .map(|words| spool.json(&[words, more].concat()))
        .collect()
}

#[test]
fn live_offline_and_read_only_answer_alike() {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&[
        "group",
        "add",
        "misc.test",
        "alt.x",
        "--description",
        "For tests",
    ]);
    let mut client = NewsClient::connect(server.address);
    for id in ["<1@t.example>", "<2@t.example>"] {
        assert_eq!(client.takethis(id, "misc.test,alt.x"), format!("239 {id}"));
    }
    let live = answers(&spool, &[]);
    assert_eq!(live[0].as_array().unwrap().len(), 2);
    assert_eq!(live[2]["high"], 2);
    assert_eq!(live[3]["xref"], json!([["misc.test", 1], ["alt.x", 1]]));
    let token = live[4]["token"].as_str().unwrap().to_owned();
    let by_token = spool.json(&["article", "show", &token]);
    assert_eq!(by_token["message_id"], "<2@t.example>");
    let beside = answers(&spool, &["--read-only"]);
    let check = spool.json(&["check"]);
    assert_eq!(
        (&check["articles"], &check["problems"]),
        (&json!(2), &json!([]))
    );
    let status = spool.json(&["status"]);
    assert_eq!(status["server"]["pid"], server.pid());
    assert_eq!(status["counters"]["accepted"], 2);
    assert_eq!(client.ask("NONSENSE"), "500 Unknown command");
    let sessions = &spool.json(&["status"])["server"]["sessions"];
    let expected = json!({"TAKETHIS": 2, "unknown": 1});
    assert_eq!(sessions["commands"], expected, "{sessions}");
    assert_eq!(
        (&sessions["replies"]["239"], &sessions["replies"]["500"]),
        (&json!(2), &json!(1))
    );
    assert!(
        spool
            .text(&["status"])
            .contains("commands     TAKETHIS 2, unknown 1\n")
    );
    assert_eq!(status["clock"], Value::Null);
    assert_eq!(spool.json(&["clock", "confirm"])["was"], Value::Null);
    server.stop();

    let offline = answers(&spool, &[]);
    let read_only = answers(&spool, &["--read-only"]);
    for (at, words) in QUESTIONS.iter().enumerate() {
        // After a start writing goes on at the next page, and a new region is reserved; the state says who looks.
        let same = |answer: &Value| match answer.as_array() {
            Some(buffers) if words[0] == "store" => {
                let fact = |b: &Value| json!([b["name"], b["octets"], b["cycle"]]);
                Value::Array(buffers.iter().map(fact).collect())
            }
            _ => answer.clone(),
        };
        assert_eq!(same(&live[at]), same(&offline[at]), "{words:?} offline");
        assert_eq!(same(&live[at]), same(&read_only[at]), "{words:?} read-only");
        assert_eq!(
            same(&live[at]),
            same(&beside[at]),
            "{words:?} beside the server"
        );
    }
    let check = spool.json(&["check"]);
    assert_eq!(
        (&check["articles"], &check["problems"]),
        (&json!(2), &json!([]))
    );
    assert_eq!(spool.json(&["status"])["server"], Value::Null);
}

#[test]
fn an_article_that_is_filed_nowhere_says_so_by_a_dash() {
    let transit = "[engine]\nmode = \"transit\"\n\n[log]";
    let spool = Spool::with(&Spool::changed(&[("[log]", transit)]));
    let server = spool.serve();
    let mut client = NewsClient::connect(server.address);
    assert_eq!(
        client.takethis("<1@t.example>", "misc.test"),
        "239 <1@t.example>"
    );
    let shown = spool.text(&["article", "show", "<1@t.example>"]);
    assert!(shown.contains("\nfiled in    -\n"), "{shown}");
    server.stop();
}

#[test]
fn groups_are_changed_live_and_offline() {
    let spool = Spool::new();
    let server = spool.serve();
    let added = spool.json(&["group", "add", "a.b", "a.c", "--status", "m"]);
    assert_eq!(added["added"], json!(["a.b", "a.c"]));
    let set = spool.json(&["group", "set", "a.b", "--status", "n", "--high", "41"]);
    assert_eq!((&set["status"], &set["high"]), (&json!("n"), &json!(41)));
    assert!(
        spool
            .error(&["group", "add", "a.b"])
            .contains("a.b exists already")
    );
    assert!(
        spool
            .error(&["group", "add", "a..b"])
            .contains("empty component")
    );
    assert!(spool.error(&["group", "set", "a.b"]).contains("--status"));
    assert!(
        spool
            .error(&["group", "show", "no.such"])
            .contains("no group \"no.such\"")
    );
    assert!(
        spool
            .error(&["group", "add", "x.y", "--read-only"])
            .contains("--read-only")
    );
    let shown = spool.text(&["group", "show", "a.b"]);
    assert!(shown.contains("\ndescription  -\n"), "{shown}");
    let error = spool.error(&["group", "show", "a.*"]);
    let hint = "no group \"a.*\": give one name; `group list`, `group set` and `group remove` take wildmats";
    assert!(error.contains(hint), "{error}");
    let mut client = NewsClient::connect(server.address);
    assert_eq!(client.ask("GROUP a.b"), "211 0 42 41 a.b");
    server.stop();

    spool.text(&["group", "remove", "a.c"]);
    spool.text(&["group", "set", "a.b", "--description", "Offline"]);
    let groups = spool.json(&["group", "list"]);
    assert_eq!(groups.as_array().unwrap().len(), 1);
    assert_eq!(groups[0]["description"], "Offline");

    let server = spool.serve();
    let mut client = NewsClient::connect(server.address);
    assert_eq!(client.ask("GROUP a.c").split(' ').next(), Some("411"));
    assert_eq!(client.ask("LIST NEWSGROUPS").split(' ').next(), Some("215"));
    assert_eq!(client.block(), ["a.b\tOffline"]);
}

#[test]
fn the_socket_is_closed_to_others_and_refuses_nonsense() {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::fs::PermissionsExt as _;

    let spool = Spool::new();
    let server = spool.serve();
    let path = spool.path().join("control.sock");
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    stream
        .write_all(b"what?\n{\"request\":\"dance\"}\n{\"request\":\"group-show\",\"name\":7}\n")
        .unwrap();
    let mut lines = BufReader::new(stream).lines();
    for _ in 0..3 {
        let line = lines.next().unwrap().unwrap();
        assert!(line.starts_with("{\"error\":\"not a request: "), "{line}");
    }
    server.stop();
    assert!(!path.exists(), "a clean stop takes the socket away");
}

#[test]
fn a_long_spool_path_is_no_obstacle_to_the_socket() {
    let spool = Spool::new();
    let long = spool.folder().join("d".repeat(90)).join("e".repeat(60));
    let long = long.display().to_string();
    let server = {
        let mut command = crate::spool::newsreel();
        command
            .args(["serve", "--spool", &long, "--config"])
            .arg(spool.config());
        crate::spool::Server::start(command, spool.folder().join("log.txt"), |_| {
            let status = spool.run(&["status", "--json", "--spool", &long]);
            let status: Value = serde_json::from_slice(&status.stdout).ok()?;
            (!status["server"].is_null()).then_some(status)
        })
    };
    spool.text(&["group", "add", "misc.test", "--spool", &long]);
    server.stop();
}
