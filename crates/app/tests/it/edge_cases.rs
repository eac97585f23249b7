//! The 381 edge cases beside the corpus: what other projects test their articles, overviews and binaries with.
//!
//! Files that are articles are fed as such, and each is refused for the reason it was made for; its line ends are set right
//! and it gets an id of its own unless it is about them.  All others are texts: they are fed as the body of a good article,
//! which must come back octet for octet, and as if they were articles, which they are not.

use std::collections::BTreeMap;

use newsreel_host::{Disk as _, RealDisk, replace_file};
use newsreel_testkit::wire_form;

use crate::client::NewsClient;
use crate::corpus::{field, folder, skipped, unpacked};
use crate::spool::{Spool, newsreel, said};

const NO_EMPTY_LINE: &str = "No empty line between header and body";
const BAD_LINE: &str = "Malformed header line";
const BARE_CR: &str = "CR without LF in article";
const BARE_LF: &str = "LF without CR in article";
const NUL: &str = "NUL octet in article";
const EMPTY: &str = "A header field has no content";
const TAKEN: &str = "taken";

/// The articles, and what becomes of each.  (Two have header lines of over 998 octets: nobody may make such a line, but a
/// relaying agent need not refuse it, RFC 5537 section 3.6.)
const ARTICLES: &[(&str, &str)] = &[
    ("1", TAKEN),
    ("2", TAKEN),
    ("3", TAKEN),
    ("4", BARE_CR),
    ("5", BARE_CR),
    ("6", TAKEN),
    ("7", BARE_CR),
    ("bad-empty", BAD_LINE),
    ("bad-hdr-empty", EMPTY),
    ("bad-hdr-nospc", BAD_LINE),
    ("bad-hdr-space", BAD_LINE),
    ("bad-hdr-trunc", BAD_LINE),
    ("bad-long-cont", TAKEN),
    ("bad-long-hdr", TAKEN),
    ("bad-msgid", BARE_CR),
    ("bad-no-body", NO_EMPTY_LINE),
    ("bad-no-header", BAD_LINE),
    ("bad-nul-body", NUL),
    ("bad-nul-header", NUL),
    ("bad-subj", "No Subject field"),
    ("wire-7", BARE_CR),
    ("wire-no-body", NO_EMPTY_LINE),
    ("wire-strange", BARE_LF),
    ("wire-truncated", NO_EMPTY_LINE),
    ("xref", TAKEN),
];

/// Those that lack mandatory fields, which is not what they are about.
const INCOMPLETE: &[&str] = &[
    "bad-hdr-empty",
    "bad-hdr-nospc",
    "bad-hdr-space",
    "bad-hdr-trunc",
];

/// How many texts there are, and what becomes of them as articles.  Most control records are lines `key: value` without an
/// empty line; 27 of them have a lone bracket or a comment, which is no header line, and so have all the others.
const TEXTS: &[(&str, &[(&str, usize)])] = &[
    ("control-config", &[(BAD_LINE, 27), (NO_EMPTY_LINE, 289)]),
    ("inn/db", &[(BAD_LINE, 4)]),
    ("inn/overview", &[(BAD_LINE, 8)]),
    ("yenc", &[(BAD_LINE, 28)]),
];

/// Texts that no article may have in its body.
const BAD_BODIES: &[(&str, &str)] = &[("yenc/test_empty_file.yenc", NUL)];

type File = (String, Vec<u8>);

/// An article's wire form, whatever form its file has.
fn as_article(octets: &[u8]) -> Vec<u8> {
    if octets.ends_with(b"\r\n.\r\n") {
        octets.to_vec()
    } else if octets.ends_with(b"\r\n") {
        [octets, b".\r\n"].concat()
    } else if octets.windows(2).any(|pair| pair == b"\r\n") {
        [octets, b"\r\n.\r\n"].concat()
    } else {
        wire_form(octets)
    }
}

/// The article under an id of its own, with the fields it lacks; and that id.
fn prepared(name: &str, octets: &[u8]) -> (String, Vec<u8>) {
    let id = format!("<{name}@edge.example>");
    let own = field(octets, "Message-ID");
    let mut article = octets.to_vec();
    if own.starts_with('<') {
        article = replaced(&article, own.as_bytes(), id.as_bytes());
    }
    if INCOMPLETE.contains(&name) {
        let mut fields = format!(
            "Path: a!b\nNewsgroups: example.test\nSubject: s\nMessage-ID: {id}\n\
             Date: Tue, 18 May 2004 01:43:21 -0700\n"
        );
        if name != "bad-hdr-empty" {
            fields.push_str("From: ada@a.example\n");
        }
        article = [fields.as_bytes(), &article].concat();
    }
    (id, as_article(&article))
}

fn replaced(octets: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = octets.windows(from.len()).position(|part| part == from);
    let at = at.unwrap();
    [&octets[..at], to, &octets[at + from.len()..]].concat()
}

/// Feeds it; `taken`, or why not.
fn fed(client: &mut NewsClient, id: &str, wire: &[u8]) -> String {
    client.send(format!("TAKETHIS {id}\r\n").as_bytes());
    client.send(wire);
    let reply = client.line();
    // Nothing of it was taken for a command.
    assert!(client.ask("DATE").starts_with("111 "), "after {id}");
    if reply == format!("239 {id}") {
        return TAKEN.to_owned();
    }
    let why = reply.strip_prefix(&format!("439 {id} "));
    why.unwrap_or_else(|| panic!("{reply}")).to_owned()
}

/// The text as the body of a good article: taken and served as it is.
fn feed_as_body(client: &mut NewsClient, number: usize, name: &str, octets: &[u8]) {
    let id = format!("<body.{number}@edge.example>");
    let body = as_article(octets);
    let head = format!(
        "Path: a!b\r\nFrom: ada@a.example\r\nNewsgroups: example.test\r\nSubject: s\r\n\
         Message-ID: {id}\r\nDate: Tue, 18 May 2004 01:43:21 -0700\r\n\r\n"
    );
    let reply = fed(client, &id, &[head.as_bytes(), &body].concat());
    let bad = BAD_BODIES.iter().find(|(bad, _)| *bad == name);
    assert_eq!(reply, bad.map_or(TAKEN, |(_, why)| why), "{name} as a body");
    if bad.is_none() {
        assert_eq!(client.ask(&format!("BODY {id}")), format!("222 0 {id}"));
        let mut served = client.raw_block().join(&b"\r\n"[..]);
        if body != b".\r\n" {
            served.extend_from_slice(b"\r\n");
        }
        assert!([&served[..], b".\r\n"].concat() == body, "{name} as a body");
    }
}

fn server(files: &[File]) -> (Spool, crate::spool::Server) {
    let place = tempfile::tempdir().unwrap();
    let spool = Spool::new();
    let server = spool.serve();
    for name in ["active", "newsgroups"] {
        let path = format!("inn/db/{name}");
        let (_, octets) = files.iter().find(|(file, _)| *file == path).unwrap();
        replace_file(&RealDisk, &place.path().join(name), octets).unwrap();
    }
    let path = |name: &str| place.path().join(name).display().to_string();
    spool.text(&[
        "group",
        "import",
        &path("active"),
        &path("newsgroups"),
        "--skip-bad",
    ]);
    (spool, server)
}

#[test]
fn edge_cases_are_answered_rightly_and_the_conversation_goes_on() {
    let Some(folder) = folder() else {
        return skipped();
    };
    let archive = unpacked(&folder.join("edge-cases.tar.zst"));
    let files = untar(&archive);
    assert_eq!(files.len(), 381);
    let (_spool, server) = server(&files);
    let mut client = NewsClient::connect(server.address);
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut articles = 0;
    for (number, (path, octets)) in files.iter().enumerate() {
        if let Some(name) = path.strip_prefix("inn/articles/") {
            let (id, wire) = prepared(name, octets);
            let (_, expected) = ARTICLES.iter().find(|(file, _)| *file == name).unwrap();
            assert_eq!(fed(&mut client, &id, &wire), *expected, "{path}");
            articles += 1;
            continue;
        }
        let id = format!("<text.{number}@edge.example>");
        let why = fed(&mut client, &id, &as_article(octets));
        let (folder, _) = TEXTS
            .iter()
            .find(|(folder, _)| path.starts_with(folder))
            .unwrap();
        *counts.entry(((*folder).to_owned(), why)).or_default() += 1;
        feed_as_body(&mut client, number, path, octets);
    }
    assert_eq!(articles, ARTICLES.len());
    let expected = TEXTS.iter().flat_map(|(folder, reasons)| {
        let count =
            |(why, count): &(&str, usize)| (((*folder).to_owned(), (*why).to_owned()), *count);
        reasons.iter().map(count)
    });
    assert_eq!(counts, expected.collect());
    server.stop();
}

/// Without its line ends each file is one long article, and ends where we say.
#[test]
fn edge_cases_without_line_ends_are_refused_whole() {
    let Some(folder) = folder() else {
        return skipped();
    };
    let files = untar(&unpacked(&folder.join("edge-cases.tar.zst")));
    let (_spool, server) = server(&files);
    let mut client = NewsClient::connect(server.address);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, octets) in &files {
        let end: &[u8] = match octets.ends_with(b"\r\n.\r\n") {
            true => b"",
            false => b"\r\n.\r\n",
        };
        let why = fed(&mut client, "<raw@edge.example>", &[octets, end].concat());
        *counts.entry(why).or_default() += 1;
    }
    // Those with LF alone, and two in which one stands somewhere; replies of NNTP, which begin with no header field; then
    // `wire-7`, `wire-truncated` and `wire-no-body`, whose last line ends here and makes an empty one.
    let expected = [
        (BARE_LF, 381 - 25 - 28 + 21 + 2),
        (BAD_LINE, 28 - 1),
        (BARE_CR, 1),
        (NO_EMPTY_LINE, 1),
        ("Message-ID differs from the one offered", 1),
    ];
    assert_eq!(
        counts,
        expected.map(|(why, count)| (why.to_owned(), count)).into()
    );
    server.stop();
}

/// The files of a tar archive.
fn untar(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let text = |octets: &[u8]| {
        let end = octets
            .iter()
            .position(|octet| *octet == 0)
            .unwrap_or(octets.len());
        String::from_utf8_lossy(&octets[..end]).trim().to_owned()
    };
    let mut files = Vec::new();
    let mut rest = archive;
    while rest.len() >= 512 && rest[0] != 0 {
        let (head, data) = rest.split_at(512);
        let len = usize::from_str_radix(&text(&head[124..136]), 8).unwrap();
        if head[156] == b'0' || head[156] == 0 {
            let name = format!("{}{}", text(&head[345..500]), text(&head[..100]));
            let name = name.trim_start_matches("./").to_owned();
            files.push((name, data[..len].to_vec()));
        }
        rest = &data[len.next_multiple_of(512)..];
    }
    files.sort();
    files
}

/// The policies of all hierarchies are given as the directory that they come in, with another in it, which was refused.
#[test]
fn policies_of_all_hierarchies_are_imported() {
    let Some(folder) = folder() else {
        return skipped();
    };
    let spool = Spool::new();
    let mut many = 0;
    for (path, octets) in untar(&unpacked(&folder.join("edge-cases.tar.zst"))) {
        if path.starts_with("control-config/") {
            let path = spool.folder().join(path);
            RealDisk.create_dir_all(path.parent().unwrap()).unwrap();
            replace_file(&RealDisk, &path, &octets).unwrap();
            many += 1;
        }
    }
    assert_eq!(many, 316);
    let made = newsreel()
        .args(["control", "import", "--mail-to", "a@b.example"])
        .arg(spool.folder().join("control-config"))
        .output()
        .unwrap();
    let printed = said(made).unwrap();
    let ending = |end: &str| printed.lines().filter(|line| line.contains(end)).count();
    let found = [":doit\"", ":drop\"", ":log\"", ":mail\"", ":verify-"].map(ending);
    assert_eq!(found, [24, 236, 349, 8, 298]);
    spool.configure(&(Spool::changed(&[]) + &printed));
    // A server takes it.
    spool.serve().stop();
}
