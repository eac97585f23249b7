//! `format` of `[[set]]` and `[[rule]]`: in which form the files of articles are, and that readers are told the same.

use newsreel_host::{Disk as _, RealDisk, read_whole};

use crate::client::{NewsClient, article};
use crate::spool::{Server, Spool};

/// One set, into which two rules put articles, and one that files can be moved to.
const SETS: &str = r#"
[[set]]
name = "main"
buffers = ["A", "B"]

[[set]]
name = "files"
method = "tradspool"

[[set]]
name = "others"
method = "tradspool"
format = "wire"

[[rule]]
groups = "misc.wire"
set = "files"
format = "wire"

[[rule]]
groups = "misc.other"
set = "others"

[[rule]]
set = "files"

[[buffer]]
name = "A"
"#;

const GROUPS: [&str; 3] = ["misc.test", "misc.wire", "misc.other"];

fn configuration() -> String {
    Spool::changed(&[("[[buffer]]\nname = \"A\"\n", SETS)])
}

/// What a reader is shown of an article, octet by octet.
fn served(server: &Server, id: &str) -> Vec<u8> {
    let mut client = NewsClient::connect(server.address);
    assert!(client.ask(&format!("ARTICLE {id}")).starts_with("220"));
    let mut lines = client.raw_block();
    lines.extend([b".".to_vec(), Vec::new()]);
    lines.join(&b"\r\n"[..])
}

/// The file of a group's first article.
fn file(spool: &Spool, set: &str, group: &str) -> Vec<u8> {
    let path = spool.path().join("articles").join(set);
    let path = path.join(group.replace('.', "/")).join("1");
    read_whole(&RealDisk, &path, 1 << 16).unwrap()
}

#[test]
fn a_rule_says_the_form_of_its_files_and_readers_are_told_the_same() {
    let spool = Spool::with(&configuration());
    let server = spool.serve();
    spool.text(&[&["group", "add"][..], &GROUPS].concat());
    let mut client = NewsClient::connect(server.address);
    let mut sent = Vec::new();
    for group in GROUPS {
        let id = format!("<{group}@forms.example>");
        let text = article(&id, group).replace("\r\n\r\n", "\r\n\r\n..a dot\r\n");
        client.send(format!("TAKETHIS {id}\r\n{text}").as_bytes());
        assert!(client.line().starts_with("239"), "{group}");
        let seen = served(&server, &id);
        assert!(seen.ends_with(text.split_once("\r\n\r\n").unwrap().1.as_bytes()));
        sent.push((id, seen));
    }
    let is_wire = |octets: &[u8]| octets.ends_with(b"\r\n.\r\n");
    let native = file(&spool, "files", "misc.test");
    assert!(!native.contains(&b'\r') && native.windows(4).any(|four| four == b"\n.a "));
    assert!(is_wire(&file(&spool, "files", "misc.wire")));
    assert_eq!(file(&spool, "files", "misc.wire"), sent[1].1);
    assert!(is_wire(&file(&spool, "others", "misc.other")));
    for (at, form) in ["native", "wire", "wire"].into_iter().enumerate() {
        let said = spool.json(&["store", "explain", &sent[at].0]);
        assert_eq!(said["format"], form, "{said}");
        let said = spool.text(&["store", "explain", &sent[at].0]);
        let told = format!("\nits file gets the {form} form\n");
        assert!(said.contains(&told), "{said}");
    }
    // In which form a file is follows from it, not from the rules and sets of today.
    server.stop();
    let turned = configuration()
        .replace("groups = \"misc.wire\"", "groups = \"misc.none\"")
        .replace("format = \"wire\"\n\n[[rule]]", "\n[[rule]]");
    spool.configure(&turned);
    let server = spool.serve();
    for (id, before) in &sent {
        assert_eq!(&served(&server, id), before, "{id}");
    }
    // What moves has the form of the set.
    spool.text(&["store", "move", "--from", "files", "--to", "others"]);
    for (id, before) in &sent {
        assert_eq!(&served(&server, id), before, "{id}");
    }
    assert!(!is_wire(&file(&spool, "others", "misc.wire")));
    server.stop();
    assert_eq!(spool.json(&["check"])["problems"], serde_json::json!([]));
}

#[test]
fn a_form_is_refused_where_articles_are_no_files() {
    let rule = "[[rule]]\nset = \"main\"\nformat = \"wire\"\n";
    let spool = Spool::with(&(Spool::changed(&[]) + rule));
    let why = spool.error(&["serve"]);
    assert!(why.contains("keeps no file for each article"), "{why}");
}

/// Where the file system asks another clock, as over a network, whose file it is was told by reading it, each that expired.
#[test]
fn a_file_has_the_time_at_which_its_article_came() {
    const CLOCK: u64 = 1_767_225_600;
    let spool = Spool::with(&configuration());
    let server = spool.serve_with(&["--clock", &CLOCK.to_string()]);
    spool.text(&["group", "add", "misc.test"]);
    let mut client = NewsClient::connect(server.address);
    let id = "<clock@t.example>";
    let sent = client.takethis(id, "misc.test");
    assert!(sent.starts_with("239"), "{sent}");
    let path = spool.path().join("articles/files/misc/test/1");
    let modified = RealDisk.facts(&path).unwrap().unwrap().modified;
    assert!((CLOCK..CLOCK + 600).contains(&modified), "{modified}");
}
