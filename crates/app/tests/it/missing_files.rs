//! What readers and peers are told of articles whose file is not there any more, or whose card is lost: the reply that RFC 3977 has for each
//! command, and which of the two comes back.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use newsreel_host::{Disk, OpenMode, RealDisk, read_whole, replace_file};

use crate::client::NewsClient;
use crate::spool::{Spool, newsreel};

/// A set of each method whose articles are files.
const SETS: &str = r#"
[[set]]
name = "numbered"
method = "tradspool"

[[set]]
name = "hashed"
method = "md5spool"

[[set]]
name = "timed"
method = "timehash"

[[rule]]
groups = "misc.numbered"
set = "numbered"

[[rule]]
groups = "misc.hashed"
set = "hashed"

[[rule]]
set = "timed"

[[set]]
name = "main"
buffers = ["A", "B"]

[[buffer]]
name = "A"
"#;

const NAMES: [&str; 3] = ["numbered", "hashed", "timed"];
const ARTICLES: u64 = 5;

fn id(name: &str, n: u64) -> String {
    format!("<{n}.{name}@missing.example>")
}

/// The file with this message-id below a directory.
fn file_of(dir: &Path, id: &str) -> PathBuf {
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in RealDisk.list(&dir).unwrap() {
            let path = dir.join(&entry.name);
            if entry.is_dir {
                dirs.extend((entry.name != ".catalogue").then_some(path));
            } else if let Ok(octets) = read_whole(&RealDisk, &path, 1 << 16)
                && String::from_utf8_lossy(&octets).contains(&format!("Message-ID: {id}"))
            {
                return path;
            }
        }
    }
    panic!("no file has {id}");
}

/// Asks, reads the block that follows such a reply, and says the code.
fn code(client: &mut NewsClient, command: &str) -> String {
    let reply = client.ask(command);
    let code = reply.get(..3).unwrap_or_default().to_owned();
    let has_block = match &*code {
        "211" => command.starts_with("LISTGROUP"),
        code => ["215", "220", "221", "222", "224", "225", "230"].contains(&code),
    };
    if has_block {
        client.block();
    }
    code
}

fn block(client: &mut NewsClient, command: &str) -> Vec<String> {
    let reply = client.ask(command);
    assert!(reply.starts_with('2'), "{command}: {reply}");
    client.block()
}

fn assert_codes(client: &mut NewsClient, expected: &str, commands: &[String]) {
    for command in commands {
        assert_eq!(code(client, command), expected, "{command}");
    }
}

/// A server with some articles in each set, whose catalogues are on the disk.
fn served() -> (Spool, crate::spool::Server) {
    let config = Spool::changed(&[("[[buffer]]\nname = \"A\"\n", SETS)]);
    let spool = Spool::with(&config);
    let server = spool.serve();
    for name in NAMES {
        spool.text(&["group", "add", &format!("misc.{name}")]);
    }
    let mut client = NewsClient::connect(server.address);
    for (name, n) in NAMES
        .iter()
        .flat_map(|name| (1..=ARTICLES).map(move |n| (name, n)))
    {
        let reply = client.takethis(&id(name, n), &format!("misc.{name}"));
        assert!(reply.starts_with("239"), "{reply}");
    }
    drop(client);
    // What came lately is in memory: who removes a file behind it is not noticed.
    server.stop();
    let server = spool.serve();
    (spool, server)
}

/// RFC 3977 6.2.1 has another code for each way in which an article is asked for; who is at it when it goes is told 420.
#[test]
fn a_removed_file_has_the_reply_of_each_command_and_leaves_lists_and_counts() {
    let (spool, server) = served();
    for name in NAMES {
        let mut client = NewsClient::connect(server.address);
        let group = format!("misc.{name}");
        assert_eq!(
            client.ask(&format!("GROUP {group}")),
            format!("211 5 1 5 {group}")
        );
        assert_codes(&mut client, "223", &["STAT 3".to_owned()]);
        let [second, third] = [id(name, 2), id(name, 3)];
        for gone in [&second, &third] {
            let dir = spool.path().join("articles").join(name);
            RealDisk.remove(&file_of(&dir, gone)).unwrap();
        }
        // STAT, too, finds out by itself.
        assert_codes(&mut client, "430", &[format!("STAT {second}")]);
        // By the current article, which is seen first; by another number; by an id.
        let verbs = ["ARTICLE", "HEAD", "BODY", "STAT"];
        for verb in verbs {
            assert_codes(&mut client, "420", &[verb.to_owned()]);
        }
        assert_codes(
            &mut client,
            "420",
            &["OVER", "HDR Subject"].map(str::to_owned),
        );
        let numbered = verbs.map(|verb| format!("{verb} 2"));
        assert_codes(&mut client, "423", &numbered);
        assert_codes(
            &mut client,
            "423",
            &["OVER 2", "HDR Subject 3"].map(str::to_owned),
        );
        let both = [&second, &third];
        let named = both
            .iter()
            .flat_map(|gone| verbs.map(|verb| format!("{verb} {gone}")));
        assert_codes(&mut client, "430", &named.collect::<Vec<_>>());
        for gone in both {
            let lines = [format!("OVER {gone}"), format!("HDR Subject {gone}")];
            assert_codes(&mut client, "430", &lines);
            // It was here: a peer need not send it again.
            assert_codes(&mut client, "435", &[format!("IHAVE {gone}")]);
            assert_codes(&mut client, "438", &[format!("CHECK {gone}")]);
            let again = client.takethis(gone, &group);
            assert!(again.starts_with("439"), "{again}");
        }
        // Who is at one that goes comes to its neighbours.
        assert_eq!(client.ask("NEXT"), format!("223 4 {}", id(name, 4)));
        assert_eq!(client.ask("LAST"), format!("223 1 {}", id(name, 1)));
        assert_eq!(block(&mut client, "LISTGROUP"), ["1", "4", "5"]);
        assert_eq!(block(&mut client, "OVER 1-").len(), 3);
        assert_eq!(
            client.ask(&format!("GROUP {group}")),
            format!("211 3 1 5 {group}")
        );
    }
    server.stop();
}

/// A lost card is damage that a scrub mends: until then the article is not there, and stays in lists and counts.
#[test]
fn a_lost_card_has_the_reply_of_each_command_until_a_scrub_has_made_it_again() {
    let (spool, server) = served();
    server.stop();
    for name in NAMES {
        // The last card alone: cards begin with these letters, at every 64th octet.
        let catalogue = spool.path().join("articles").join(name).join(".catalogue");
        let cards = catalogue.join("00000001.seg");
        let file = RealDisk.open(&cards, OpenMode::ReadWrite).unwrap();
        let octets = read_whole(&RealDisk, &cards, 2 << 20).unwrap();
        let last = octets.iter().rposition(|octet| *octet != 0).unwrap();
        let starts = (0..=last).rev().filter(|at| at % 64 == 0);
        let at = starts
            .into_iter()
            .find(|at| octets[*at..].starts_with(b"NA"))
            .unwrap();
        file.write_at(&vec![0; last + 1 - at], at as u64).unwrap();
    }
    let server = spool.serve();
    for name in NAMES {
        let mut client = NewsClient::connect(server.address);
        let (group, lost) = (format!("misc.{name}"), id(name, 5));
        assert_eq!(
            client.ask(&format!("GROUP {group}")),
            format!("211 5 1 5 {group}")
        );
        let verbs = ["ARTICLE", "HEAD", "BODY", "STAT"];
        assert_codes(&mut client, "423", &verbs.map(|verb| format!("{verb} 5")));
        assert_codes(
            &mut client,
            "430",
            &verbs.map(|verb| format!("{verb} {lost}")),
        );
        assert_codes(&mut client, "435", &[format!("IHAVE {lost}")]);
        assert_codes(&mut client, "438", &[format!("CHECK {lost}")]);
        assert_eq!(block(&mut client, "LISTGROUP").len(), 5);
        assert_eq!(block(&mut client, "OVER 1-").len(), 5);
        let report = spool.json(&["store", "scrub", name]);
        let told = report["headers"].to_string();
        assert!(told.contains("whose cards were lost: 1; "), "{told}");
        for command in [format!("STAT {lost}"), "STAT 5".to_owned()] {
            assert_codes(&mut client, "223", &[command]);
        }
        assert_codes(&mut client, "220", &[format!("ARTICLE {lost}")]);
    }
    server.stop();
}

/// A server that starts listens before it answers commands: a scrub that was asked for then only looked, and made no card again.
#[test]
fn a_scrub_waits_for_the_server_that_starts() {
    let (spool, server) = served();
    server.stop();
    let catalogue = spool.path().join("articles/hashed/.catalogue");
    let cards = RealDisk.open(&catalogue.join("00000001.seg"), OpenMode::ReadWrite);
    cards.unwrap().set_len(300).unwrap();
    // Somebody has the spool, and does not answer yet.
    let lock = spool.path().join("lock");
    replace_file(&RealDisk, &lock, std::process::id().to_string().as_bytes()).unwrap();
    let mut command = newsreel();
    command.args(["store", "scrub", "hashed", "--json", "--config"]);
    let command = command.arg(spool.config());
    let asked = command.stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let server = spool.serve();
    let output = asked.wait_with_output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.contains("whose cards were lost: 5; their cards were made again"),
        "{told}"
    );
    let mut client = NewsClient::connect(server.address);
    let articles = (1..=ARTICLES).map(|n| format!("ARTICLE {}", id("hashed", n)));
    assert_codes(&mut client, "220", &articles.collect::<Vec<_>>());
    server.stop();
}
