//! `newsreel store move`, beside a server and without one, and with a server that is killed meanwhile.

use std::process::{Command, Stdio};
use std::time::Duration;

use newsreel_host::{Disk as _, RealDisk};

use crate::client::{NewsClient, article};
use crate::real_clients::{output, program};
use crate::scale::binary;
use crate::spool::{Server, Spool};

/// The usual set, which takes what comes, and one of files.
const SETS: &str = r#"
[[set]]
name = "main"
buffers = ["A", "B"]

[[set]]
name = "files"
method = "tradspool"

[[rule]]
set = "main"

[[buffer]]
name = "A"
"#;

fn spool() -> Spool {
    Spool::with(&Spool::changed(&[("[[buffer]]\nname = \"A\"\n", SETS)]))
}

fn id(n: usize) -> String {
    format!("<{n}@moving.example>")
}

/// Articles of some 6,000 octets, one after the other in two groups.
fn feed(server: &Server, range: std::ops::Range<usize>) {
    let mut client = NewsClient::connect(server.address);
    let body = "a line of a body that is not short and not long\r\n".repeat(120);
    for n in range {
        let group = ["misc.test", "misc.other"][n % 2];
        let text = article(&id(n), group);
        let text = text.strip_suffix(".\r\n").unwrap();
        client.send(format!("TAKETHIS {}\r\n{text}{body}.\r\n", id(n)).as_bytes());
        assert_eq!(client.line(), format!("239 {}", id(n)));
    }
}

/// What a reader is shown of the first so many, and of both groups.
fn seen(server: &Server, count: usize) -> Vec<String> {
    let mut client = NewsClient::connect(server.address);
    let mut seen = Vec::new();
    for n in 0..count {
        seen.push(client.ask(&format!("ARTICLE {}", id(n))));
        seen.extend(client.block());
    }
    for group in ["misc.test", "misc.other"] {
        seen.push(client.ask(&format!("GROUP {group}")));
        seen.push(client.ask("OVER 1-"));
        seen.extend(client.block());
    }
    seen
}

fn relocate(spool: &Spool, from: &str, to: &str, more: &[&str]) -> u64 {
    let words = [&["store", "move", "--from", from, "--to", to], more].concat();
    let report = spool.json(&words);
    assert_eq!(
        (&report["left"], &report["is_cut"]),
        (&0.into(), &false.into()),
        "{report}"
    );
    report["articles"].as_u64().unwrap()
}

#[test]
fn articles_move_beside_a_server_and_without_one() {
    let spool = spool();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test", "misc.other"]);
    feed(&server, 0..40);
    let before = seen(&server, 40);
    assert_eq!(
        relocate(&spool, "main", "files", &["misc.test", "--dry-run"]),
        20
    );
    assert_eq!(relocate(&spool, "main", "files", &["misc.test"]), 20);
    assert_eq!(seen(&server, 40), before);
    let said = spool.text(&["store", "move", "--from", "main", "--to", "files"]);
    assert!(
        said.starts_with("20 articles moved from main to files, "),
        "{said}"
    );
    assert_eq!(seen(&server, 40), before);
    assert!(spool.path().join("articles/files/misc/test/1").exists());
    for (words, why) in [
        (["files", "files"], "--from and --to are the same"),
        (
            ["files", "tape"],
            "there is no set \"tape\"; the configuration has",
        ),
    ] {
        let [from, to] = words;
        let error = spool.error(&["store", "move", "--from", from, "--to", to]);
        assert!(error.contains(why), "{error}");
    }
    server.stop();
    // Nobody has it: the command does it itself.
    let words = ["store", "move", "--from", "files", "--to", "main"];
    let said = spool.text(&[&words[..], &["--dry-run"]].concat());
    assert!(
        said.starts_with("40 articles would move from files to main, ")
            && said.contains("they take up to ")
            && said.contains(" there, "),
        "{said}"
    );
    assert_eq!(relocate(&spool, "files", "main", &[]), 40);
    let server = spool.serve();
    assert_eq!(seen(&server, 40), before);
    assert!(!spool.path().join("articles/files/misc/test/1").exists());
    assert_eq!(spool.json(&["check"])["problems"], serde_json::json!([]));
    server.stop();
}

/// On a terminal, which `script` is, it shows how far it is, beside a server and without one; elsewhere only what was done.
#[test]
fn a_move_shows_its_progress_on_a_terminal_and_nowhere_else() {
    if program("/usr/bin/script", "bsdutils").is_none() {
        return;
    }
    let spool = spool();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test", "misc.other"]);
    feed(&server, 0..40);
    let words = |from: &str, to: &str| format!("store move --from {from} --to {to}");
    let on_terminal = |words: &str| {
        let (newsreel, config) = (binary(), spool.config());
        let command = format!(
            "{} {words} --config {}",
            newsreel.display(),
            config.display()
        );
        let mut script = Command::new("/usr/bin/script");
        script.args(["-qec", &command, "/dev/null"]);
        let shown = script.env("TERM", "xterm").stdin(Stdio::null());
        String::from_utf8(output(shown).stdout).unwrap()
    };
    // The rows of each article in one group.
    let shown = on_terminal(&words("main", "files"));
    assert!(
        shown.contains("/40 ") && shown.contains("40 articles moved"),
        "{shown:?}"
    );
    server.stop();
    let shown = on_terminal(&words("files", "main"));
    assert!(
        shown.contains("/40 ") && shown.contains("40 articles moved"),
        "{shown:?}"
    );
    let words = words("main", "files");
    let piped = spool.run(&words.split(' ').collect::<Vec<_>>());
    let said = String::from_utf8(piped.stdout).unwrap();
    assert!(
        said.starts_with("40 articles moved") && !said.contains("/40"),
        "{said}"
    );
    assert_eq!(String::from_utf8(piped.stderr).unwrap(), "");
}

/// Killed again and again at other moments: nothing is lost, and in the end all has moved.
#[test]
fn a_move_survives_kills() {
    let spool = spool();
    let mut server = spool.serve();
    spool.text(&["group", "add", "misc.test", "misc.other"]);
    feed(&server, 0..200);
    let before = seen(&server, 200);
    let words = ["store", "move", "--from", "main", "--to", "files"];
    let files = |group: &str| {
        let dir = spool.path().join("articles/files/misc").join(group);
        RealDisk.list(&dir).map_or(0, |files| files.len())
    };
    let mut kills = 0;
    for wait_ms in [0, 20, 60, 150] {
        let there = files("test");
        std::thread::scope(|scope| {
            let mover = scope.spawn(|| spool.run(&words));
            while files("test") == there && !mover.is_finished() {
                std::thread::sleep(Duration::from_millis(2));
            }
            std::thread::sleep(Duration::from_millis(wait_ms));
            server.kill();
            kills += usize::from(!mover.join().unwrap().status.success());
        });
        server = spool.serve();
        assert_eq!(seen(&server, 200), before, "after {wait_ms} ms");
    }
    assert!(kills > 1, "{kills} moves were killed");
    relocate(&spool, "main", "files", &[]);
    assert_eq!(seen(&server, 200), before);
    server.stop();
    assert_eq!(spool.json(&["check"])["problems"], serde_json::json!([]));
    // A kill leaves the files that were being written, and no more.
    let there = files("test") + files("other");
    assert!((200..=200 + kills * 180).contains(&there), "{there}");
}
