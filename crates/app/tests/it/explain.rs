//! `newsreel store explain`: which rule takes an article, of a file and of one that is here.

use newsreel_host::{RealDisk, replace_file};
use newsreel_testkit::free_ports;
use serde_json::json;

use crate::caching::figures;
use crate::client::{NewsClient, article};
use crate::spool::{Spool, newsreel};

const SETS: &str = r#"
[[set]]
name = "text"
buffers = ["A"]

[[set]]
name = "large"
buffers = ["B"]
class = "binaries"

[[rule]]
groups = "misc.*"
larger_than = 1000
set = "large"

[[rule]]
groups = "misc.*,!misc.none"
octets_max = "1MiB"
set = "text"
"#;

/// One article was refused by then for want of a rule.
fn refusals_are_counted(spool: &Spool, client: &mut NewsClient, page: &str) {
    assert!(client.ask("IHAVE <5@explain.example>").starts_with("335 "));
    let text = article("<5@explain.example>", "misc.none");
    client.send(text.as_bytes());
    assert_eq!(client.line(), "437 No storage rule takes it");
    let status = spool.json(&["status"]);
    let refused = &status["server"]["sessions"]["articles_refused"];
    assert_eq!(*refused, json!({"no_storage_rule": 2}), "{status}");
    assert_eq!(status["counters"]["rejected"], 2, "{status}");
    let said = spool.text(&["status"]);
    let line = said.lines().find(|line| line.starts_with("refused "));
    assert!(
        line.is_some_and(|line| line.contains("no storage rule 2")),
        "{said}"
    );
    let figures = figures(page);
    let metric = "newsreel_articles_refused_total{reason=\"no_storage_rule\"} 2";
    assert!(figures.lines().any(|line| line == metric), "{figures}");
    let told = |what: &str| figures.lines().find_map(|line| line.strip_prefix(what));
    let number = |what: &str| told(what).map(|number| number.trim().parse().unwrap());
    let [room, live] = ["room", "live"].map(|what| {
        number(&format!(
            "newsreel_buffer_bytes{{buffer=\"A\",set=\"text\",what=\"{what}\"}}"
        ))
    });
    let (room, live): (u64, u64) = (room.unwrap(), live.unwrap());
    assert!(0 < live && live < room, "{figures}");
    let of_a = |name: &str| number(&format!("{name}{{buffer=\"A\",set=\"text\"}}"));
    assert_eq!(of_a("newsreel_buffer_is_ok"), Some(1));
    assert_eq!(of_a("newsreel_buffer_is_suspended"), Some(0));
    assert!(of_a("newsreel_buffer_newest_timestamp_seconds") > Some(1_000_000_000));
}

#[test]
fn rules_say_why_they_take_an_article_or_not() {
    let page = format!("127.0.0.1:{}", free_ports().unwrap());
    let metrics = format!("[server]\nmetrics = [{page:?}]");
    let spool = Spool::with(&(Spool::changed(&[("[server]", &metrics)]) + SETS));
    let file = spool.folder().join("article.txt");
    let path = file.display().to_string();
    let say = |text: String, more: &[&str]| {
        replace_file(&RealDisk, &file, text.as_bytes()).unwrap();
        spool.text(&[&["store", "explain", &path][..], more].concat())
    };
    // Of a file, whatever its line ends, without a spool.
    let small = article("<1@explain.example>", "misc.test");
    for text in [small.clone(), small.replace("\r\n", "\n")] {
        let said = say(text, &[]);
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[1].starts_with("   1  large  no "), "{said}");
        assert!(
            lines[1].ends_with("octets are not more than 1000"),
            "{said}"
        );
        assert!(lines[2].starts_with("   2  text   yes "), "{said}");
        assert!(
            lines[2].contains(r#"misc.test matches "misc.*,!misc.none", "#)
                && lines[2].ends_with("octets are at most 1048576"),
            "{said}"
        );
        assert_eq!(lines.len(), 3, "{said}");
    }
    let large = article("<2@explain.example>", "misc.test")
        .replace("\r\n\r\n", &format!("\r\n\r\n{}\r\n", "x".repeat(1000)));
    let said = say(large.clone(), &["--json"]);
    assert!(said.contains(r#""set": "large""#) && said.contains(r#""class": "binaries""#));
    assert!(say(large, &[]).ends_with("\nit is of class binaries\n"));
    let nowhere = say(article("<3@explain.example>", "misc.none"), &[]);
    assert!(
        nowhere.ends_with("no rule takes it: it is refused\n"),
        "{nowhere}"
    );
    let piped = spool.piped(&["store", "explain", "-"], &small);
    assert!(piped.unwrap().contains("   2  text   yes "));
    // Of an article that is here, by the configuration that the server runs with.
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test", "misc.none"]);
    let mut client = NewsClient::connect(server.address);
    assert!(
        client
            .takethis("<1@explain.example>", "misc.test")
            .starts_with("239")
    );
    assert!(
        client
            .takethis("<3@explain.example>", "misc.none")
            .starts_with("439")
    );
    refusals_are_counted(&spool, &mut client, &page);
    let said = spool.json(&["store", "explain", "<1@explain.example>"]);
    assert_eq!(said["set"], json!("text"), "{said}");
    assert_eq!(said["class"], json!("text"), "{said}");
    assert_eq!(said["stored"]["set"], json!("text"), "{said}");
    assert_eq!(said["rules"][1]["taken"], json!(true), "{said}");
    // It is judged as it came: our Path and Xref make none larger.
    let came = article("<4@explain.example>", "misc.test");
    let fill = "x".repeat(1000 - came.len() - 2);
    let came = came.replace("\r\n\r\n", &format!("\r\n\r\n{fill}\r\n"));
    assert_eq!(came.len(), 1000);
    client.send(format!("TAKETHIS <4@explain.example>\r\n{came}").as_bytes());
    assert!(client.line().starts_with("239"));
    let said = spool.json(&["store", "explain", "<4@explain.example>"]);
    assert_eq!(said["set"], said["stored"]["set"], "{said}");
    assert!(
        said["rules"][0]["why"] == "1000 octets are not more than 1000",
        "{said}"
    );
    // Without a configuration: by what the server runs with.
    let mut command = newsreel();
    command
        .args(["store", "explain", "misc.test:1", "--spool"])
        .arg(spool.path());
    let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(
        said.contains("   2  text   yes ") && said.contains("it lies in set text, at A:"),
        "{said}"
    );
    let error = spool.error(&["store", "explain", "<3@explain.example>"]);
    assert!(error.contains("no article <3@explain.example>"), "{error}");
    let error = spool.error(&["store", "explain", "no-such-file"]);
    assert!(error.contains("no file that is there"), "{error}");
    server.stop();
}
