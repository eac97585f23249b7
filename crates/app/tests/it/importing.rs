//! Mail folders and directory trees are taken article by article, each answered for; what is damaged is named.

use std::io::Write as _;

use newsreel_host::{Disk as _, RealDisk, replace_file};

use crate::client::NewsClient;
use crate::spool::{Server, Spool};

fn served() -> (Spool, Server) {
    let spool = Spool::new();
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    (spool, server)
}

fn article(nth: u32, body: &str) -> String {
    format!(
        "Path: peer.example!not-for-mail\nFrom: a@example.org\nNewsgroups: misc.test\nSubject: a test\n\
         Date: Wed, 31 Dec 2025 12:00:00 +0000\nMessage-ID: <{nth}@import.example>\n\n{body}\n"
    )
}

fn file(spool: &Spool, name: &str, octets: &[u8]) -> String {
    let path = spool.folder().join(name);
    replace_file(&RealDisk, &path, octets).unwrap();
    path.to_str().unwrap().to_owned()
}

fn body(server: &Server, nth: u32) -> Vec<String> {
    let mut client = NewsClient::connect(server.address);
    let said = client.ask(&format!("BODY <{nth}@import.example>"));
    assert!(said.starts_with("222"), "{said}");
    let lines = client.raw_block();
    lines
        .into_iter()
        .map(|line| String::from_utf8(line).unwrap())
        .collect()
}

#[test]
fn mail_folders_are_taken_and_damage_is_named() {
    let (spool, server) = served();
    let parts = [
        "junk\n\n".to_owned(),
        format!(
            "From news Wed Dec 31 12:00:00 2025\n{}\n",
            article(1, ">From here\n>>From there\n.")
        ),
        format!(
            "From -42\n{}\n",
            article(2, "two").replace("Message-ID", "X-Nothing")
        ),
        format!(
            "From x\n{}\n",
            article(3, "three").replace("misc.test", "no.such.group")
        ),
        format!("From x\n{}\n", article(4, "four").replace('\n', "\r\n")),
        format!("From x\n{}\n", article(1, "again")),
        // What is sent by mail has neither, and had been rejected for it after a dry run that had promised otherwise.
        format!(
            "From a@example.org Wed Dec 31 12:00:00 2025\n{}\n",
            article(6, "six")
                .replace("Path", "X-Path")
                .replace("Date", "X-Date")
        ),
        format!(
            "From x\n{}\n",
            article(7, "seven").replace("Newsgroups", "X-Groups")
        ),
    ];
    let folder = file(&spool, "folder", parts.concat().as_bytes());
    let dry = spool.json(&["import", "mbox", "--dry-run", &folder]);
    assert_eq!(
        (&dry["articles"], &dry["damaged"]),
        (&6.into(), &2.into()),
        "{dry}"
    );
    assert_eq!(dry["rejected"], 1, "{dry}");
    let said = spool.text(&["import", "mbox", "--dry-run", &folder]);
    assert!(
        said.contains("6 articles would be handed over\nrejected 1 of them: ")
            && said.contains("the server's word"),
        "{said}"
    );
    let report = spool.json(&["import", "mbox", &folder]);
    let counts = ["accepted", "refused", "rejected", "deferred", "damaged"];
    let counts = counts.map(|key| report[key].as_u64().unwrap());
    assert_eq!(counts, [3, 1, 2, 0, 2], "{report}");
    let named = report["damages"].to_string();
    assert!(
        named.contains("octet 0: no \\\"From \\\" line") && named.contains("Message-ID"),
        "{named}"
    );
    assert_eq!(report["kept_in"].as_array().unwrap().len(), 1);
    assert_eq!(body(&server, 1), ["From here", ">From there", ".."]);
    assert_eq!(body(&server, 4), ["four"]);
    assert_eq!(body(&server, 6), ["six"]);

    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let one = format!("From x\n{}", article(5, ">>From me"));
    packed.write_all(one.as_bytes()).unwrap();
    let packed = file(&spool, "folder.gz", &packed.finish().unwrap());
    let told = spool.text(&["import", "mbox", "--quoting", "mboxo", "-v", &packed]);
    assert!(
        told.starts_with("<5@import.example> accepted\n1 accepted"),
        "{told}"
    );
    assert_eq!(body(&server, 5), [">>From me"]);
    server.stop();
    let away = spool.error(&["import", "mbox", &packed]);
    assert!(away.contains("no server is running"), "{away}");
}

#[test]
fn a_tree_is_taken_in_the_order_of_its_numbers() {
    let (spool, server) = served();
    let root = spool.folder().join("articles");
    for folder in ["misc/test", "misc/other"] {
        RealDisk.create_dir_all(&root.join(folder)).unwrap();
    }
    for nth in [1, 2, 10, 9] {
        file(
            &spool,
            &format!("articles/misc/test/{nth}"),
            article(nth, "text").as_bytes(),
        );
    }
    // Under a second name, no article, no name of one.
    file(
        &spool,
        "articles/misc/other/1",
        article(9, "text").as_bytes(),
    );
    file(&spool, "articles/misc/other/2", b"\x00\x01");
    file(&spool, "articles/.overview", b"1\tx\n");
    let root = root.to_str().unwrap();
    let dry = spool.json(&["import", "tree", "--dry-run", root]);
    assert_eq!(
        (&dry["articles"], &dry["damaged"]),
        (&5.into(), &1.into()),
        "{dry}"
    );
    let report = spool.json(&["import", "tree", root]);
    let counts = ["accepted", "refused", "rejected", "damaged"];
    let counts = counts.map(|key| report[key].as_u64().unwrap());
    assert_eq!(counts, [4, 1, 0, 1], "{report}");
    assert!(
        report["damages"].to_string().contains("misc/other/2"),
        "{report}"
    );
    assert_eq!(report["kept_in"].to_string(), "[]");
    let mut client = NewsClient::connect(server.address);
    client.ask("GROUP misc.test");
    // misc/other comes first, and has article 9.
    for (number, nth) in [(1, 9), (2, 1), (3, 2), (4, 10)] {
        let said = client.ask(&format!("STAT {number}"));
        assert!(said.contains(&format!("<{nth}@import.example>")), "{said}");
    }
    let none = spool.error(&["import", "tree", "/no/such/tree"]);
    assert!(none.contains("/no/such/tree"), "{none}");
    server.stop();
}

/// Who has nothing taken is told so, and what would have helped.
#[test]
fn a_tree_of_which_nothing_is_taken_is_no_success() {
    let spool = Spool::with(&Spool::changed(&[(
        "age_s_max = 0",
        "age_s_max = '10000d'",
    )]));
    let server = spool.serve();
    spool.text(&["group", "add", "misc.test"]);
    let root = spool.folder().join("articles");
    RealDisk.create_dir_all(&root).unwrap();
    let root = root.to_str().unwrap();
    assert!(
        spool
            .text(&["import", "tree", root])
            .starts_with("0 accepted")
    );
    let old = article(1, "text").replace("Wed, 31 Dec 2025", "Sun, 31 Dec 1995");
    file(&spool, "articles/1", old.as_bytes());
    let said = spool.run(&["import", "tree", root]);
    let printed = String::from_utf8(said.stdout).unwrap();
    let helps = "Too old (for old articles set `articles.age_s_max = 0`)";
    assert!(printed.contains(helps), "{printed}");
    let error = spool.error(&["import", "tree", root]);
    assert!(error.contains("no article was taken"), "{error}");
    // Of what is here already nothing is taken, and nothing is wrong.
    file(&spool, "articles/1", article(2, "text").as_bytes());
    for _ in 0..2 {
        spool.text(&["import", "tree", root]);
    }
    server.stop();
}

/// A tree that is not there had cost all others; the folders behind one that cannot be read were not looked at, nor named.
#[test]
fn what_cannot_be_read_holds_no_other() {
    let (spool, server) = served();
    let gone = spool.folder().join("gone").display().to_string();
    for (nth, name) in [(1, "a/1"), (2, "b/1")] {
        RealDisk
            .create_dir_all(&spool.folder().join(&name[..1]))
            .unwrap();
        file(&spool, name, article(nth, "text").as_bytes());
    }
    let tree = |name: &str| spool.folder().join(name).display().to_string();
    let mbox = |nth| {
        let one = format!("From x\n{}", article(nth, "text"));
        file(&spool, &format!("folder{nth}"), one.as_bytes())
    };
    // A directory is opened as a folder, and then cannot be read.
    let folders = [mbox(3), gone.clone(), tree("a"), mbox(4)];
    let trees = [tree("a"), gone.clone(), tree("b")];
    for (what, places, unreadable) in [("tree", &trees[..], 1), ("mbox", &folders[..], 2)] {
        for more in [&["--dry-run"][..], &[]] {
            let mut words = vec!["import", what, "--json"];
            words.extend(more);
            words.extend(places.iter().map(String::as_str));
            let said = spool.run(&words);
            assert_eq!(said.status.code(), Some(1), "{words:?}");
            let error = String::from_utf8(said.stderr).unwrap();
            assert!(
                error.contains("not everything could be read") && error.contains(&gone),
                "{error}"
            );
            let report: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
            let taken = if more.is_empty() {
                "accepted"
            } else {
                "articles"
            };
            assert_eq!(report[taken], 2, "{report}");
            assert_eq!(
                (&report["damaged"], &report["unreadable"]),
                (&0.into(), &unreadable.into())
            );
            let named = report["unread"][0].as_str().unwrap();
            assert!(
                named.contains(&gone) && named.contains("does not exist"),
                "{named}"
            );
        }
    }
    let mut words = vec!["import", "mbox"];
    words.extend(folders.iter().map(String::as_str));
    let said = String::from_utf8(spool.run(&words).stdout).unwrap();
    let lines = [
        format!("cannot read {gone}: it does not exist\n"),
        format!("cannot read {}: ", tree("a")),
    ];
    assert!(
        lines.iter().all(|line| said.contains(line)) && !said.contains("damaged:"),
        "{said}"
    );
    server.stop();
}
