//! `newsreel expire`, beside a server and without one.

use serde_json::json;

use crate::client::NewsClient;
use crate::spool::Spool;

/// The server does nothing of it by itself.
const RULES: &str = r#"
[expiry]
rows_per_s = 0

[[expire]]
groups = "misc.test"
articles_max = 3

[[expire]]
class = "main"
articles_max = 8
"#;

fn numbers(client: &mut NewsClient, group: &str) -> String {
    assert!(client.ask(&format!("LISTGROUP {group}")).starts_with("211"));
    client.block().join(" ")
}

#[test]
fn what_goes_is_told_first_and_then_gone() {
    let spool = Spool::with(&(Spool::changed(&[]) + RULES));
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test", "misc.other"]);
    let mut client = NewsClient::connect(server.address);
    let mut feed = |from: usize, to: usize, groups: &str| {
        for n in from..=to {
            let answer = client.takethis(&format!("<{n}@expire.example>"), groups);
            assert!(answer.starts_with("239"), "{answer}");
        }
    };
    feed(1, 5, "misc.test,misc.other");
    feed(6, 7, "misc.test");
    let said = spool.text(&["expire", "--dry-run"]);
    let lines: Vec<&str> = said.lines().collect();
    let first: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!((first[0], first[1]), ("misc.test", "1"), "{said}");
    assert!(
        lines[1].contains("articles_max  stays elsewhere  <1@expire.example>"),
        "{said}"
    );
    assert!(
        said.ends_with(
            "0 articles would go, 0 B; 4 crossposts would leave groups and stay in others; \
             24 rows looked at in 2 groups\n"
        ),
        "{said}"
    );
    assert_eq!(numbers(&mut client, "misc.test"), "1 2 3 4 5 6 7");
    // A server goes by its own rules, whatever the file says by now; which is told.
    let file = Spool::changed(&[]) + RULES;
    let warned = |words: &[&str]| String::from_utf8(spool.run(words).stderr).unwrap();
    assert_eq!(warned(&["expire", "--dry-run"]), "");
    spool.configure(&file.replace("articles_max = 3", "articles_max = 1"));
    let said = warned(&["expire", "--dry-run"]);
    assert!(
        said.contains("goes by its own rules, which are not those of"),
        "{said}"
    );
    spool.configure(&file);
    let done = spool.json(&["expire"]);
    assert_eq!(
        (&done["articles"], &done["left"]),
        (&json!(0), &json!(4)),
        "{done}"
    );
    assert_eq!(done["rules"][0]["rule"], json!(1));
    assert_eq!(numbers(&mut client, "misc.test"), "5 6 7");
    assert_eq!(numbers(&mut client, "misc.other"), "1 2 3 4 5");
    assert!(client.ask("STAT <1@expire.example>").starts_with("223"));
    for n in 11..=14 {
        client.takethis(&format!("<{n}@expire.example>"), "misc.other");
    }
    let done = spool.text(&["expire"]);
    assert!(done.contains("1 article went"), "{done}");
    assert!(client.ask("STAT <1@expire.example>").starts_with("430"));
    assert!(client.ask("CHECK <1@expire.example>").starts_with("438"));
    let status = spool.json(&["status"]);
    let counters = &status["counters"];
    assert_eq!(
        (&counters["expired"], &counters["expired_places"]),
        (&json!(1), &json!(4))
    );
    assert_eq!(status["expiry"]["rules"], json!(2));
    assert!(spool.text(&["status"]).contains("expiry"));
    server.stop();
    // Without a server: told by who only looks, done by who may write.
    let dry = spool.json(&["expire", "--dry-run", "--read-only"]);
    assert_eq!(
        (&dry["articles"], &dry["dry_run"]),
        (&json!(0), &json!(true)),
        "{dry}"
    );
    let error = spool.error(&["expire", "--read-only"]);
    assert!(error.contains("--read-only forbids"), "{error}");
    assert_eq!(spool.json(&["expire"])["articles"], json!(0));
    assert!(spool.text(&["check"]).ends_with("agree\n"));
}
