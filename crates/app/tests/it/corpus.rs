//! Real articles of 1993 to 2022: fed, read back by id and by number, and counted independently.
//!
//! Only where the corpus lies beside the repository; elsewhere the tests say so and do nothing.  What an article is, which
//! groups it names and how often is worked out here anew, from the batches themselves.

use std::collections::{BTreeMap, HashSet};
use std::io::Write as _;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use newsreel_host::{RealDisk, read_whole, replace_file};
use newsreel_store::methods::METHODS;
use newsreel_testkit::{same_article, wire_form};

use crate::client::NewsClient;
use crate::scale::{is_full, scaled};
use crate::spool::{Server, Spool};

/// Commands sent ahead when reading back.
const AHEAD: usize = 64;

pub(crate) fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    folder.is_dir().then_some(folder)
}

#[expect(clippy::print_stdout, reason = "a skipped test says why")]
pub(crate) fn skipped() {
    println!("skipped: the corpus does not lie beside this repository (../shared/corpus)");
}

pub(crate) fn unpacked(path: &Path) -> Vec<u8> {
    let packed = read_whole(&RealDisk, path, 1 << 30).unwrap();
    let mut decoder = zstd::Decoder::new(packed.as_slice()).unwrap();
    decoder.window_log_max(27).unwrap();
    let mut octets = Vec::new();
    std::io::copy(&mut decoder, &mut octets).unwrap();
    octets
}

/// The articles of a batch, as they lie there.
fn articles(batch: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut rest = batch;
    while !rest.is_empty() {
        let end = rest.iter().position(|octet| *octet == b'\n').unwrap();
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        let len: usize = line.strip_prefix("#! rnews ").unwrap().parse().unwrap();
        found.push(&rest[end + 1..end + 1 + len]);
        rest = &rest[end + 1 + len..];
    }
    found
}

/// The content of a header field, unfolded.
pub(crate) fn field(article: &[u8], name: &str) -> String {
    let head = String::from_utf8_lossy(article);
    let mut found: Option<String> = None;
    for line in head.lines().take_while(|line| !line.is_empty()) {
        if line.starts_with([' ', '\t']) {
            if let Some(content) = &mut found {
                content.push_str(line);
            }
        } else if found.is_some() {
            break;
        } else if let Some((field, content)) = line.split_once(':')
            && field.eq_ignore_ascii_case(name)
        {
            found = Some(content.to_owned());
        }
    }
    found.unwrap_or_default().trim().to_owned()
}

fn groups(article: &[u8]) -> Vec<String> {
    let list = field(article, "Newsgroups");
    let mut seen = HashSet::new();
    let names = list
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    names
        .filter(|name| seen.insert(name.to_owned()))
        .map(str::to_owned)
        .collect()
}

pub(crate) struct Sample {
    pub(crate) id: String,
    pub(crate) groups: Vec<String>,
    pub(crate) wire: Vec<u8>,
    /// A CR that no LF follows; everything else in the corpus is fit to be relayed.
    pub(crate) is_bad: bool,
}

/// So many of each batch: in the daily run, and in CI.
pub(crate) fn samples(folder: &Path, little: usize, full: usize) -> Vec<Sample> {
    let mut samples = Vec::new();
    for name in ["news1993.rnews.zst", "cobol1994-2022.rnews.zst"] {
        let batch = unpacked(&folder.join(name));
        let articles = articles(&batch);
        let wanted = scaled(little, full);
        samples.extend(articles.into_iter().take(wanted).map(|article| {
            let wire = wire_form(article);
            let is_bad = wire
                .windows(2)
                .any(|pair| pair[0] == b'\r' && pair[1] != b'\n');
            Sample {
                id: field(article, "Message-ID"),
                groups: groups(article),
                wire,
                is_bad,
            }
        }));
    }
    samples
}

/// Sets of all methods that keep a file for each article, and rules that share the articles among them.
fn sets_of_files() -> String {
    let mut config = String::new();
    let methods: Vec<&str> = METHODS
        .iter()
        .filter(|method| method.in_files)
        .map(|method| method.name)
        .collect();
    for name in &methods {
        config += &format!("[[set]]\nname = {name:?}\nmethod = {name:?}\n\n");
    }
    // A third of the corpus each, about.
    let shares = [Some(1500), Some(2300)];
    let mut shares = shares.into_iter().take(methods.len() - 1).chain([None]);
    for name in &methods {
        let octets_max = shares.next().flatten();
        let octets_max = octets_max.map_or(String::new(), |max| format!("octets_max = {max}\n"));
        config += &format!("[[rule]]\nset = {name:?}\n{octets_max}\n");
    }
    config
}

/// A spool with room for all, and all groups that are named.
fn server(samples: &[Sample], store: Option<&str>) -> (Spool, Server, HashSet<String>) {
    let config = Spool::changed(&[
        ("8MiB", "96MiB"),
        ("1MiB", "64MiB"),
        ("age_s_max = 0", "age_s_max = 0\ngroups_max = 1000"),
    ]);
    let buffers = config.find("[[buffer]]").unwrap();
    let spool = Spool::with(&match store {
        Some(store) => format!("{}{store}", &config[..buffers]),
        None => config,
    });
    let server = spool.serve();
    let names: HashSet<&str> = samples
        .iter()
        .flat_map(|sample| sample.groups.iter().map(String::as_str))
        .collect();
    let list: String = names.iter().map(|name| format!("{name}\n")).collect();
    let file = spool.folder().join("groups");
    replace_file(&RealDisk, &file, list.as_bytes()).unwrap();
    spool.text(&["group", "import", &file.display().to_string(), "--skip-bad"]);
    let groups = spool.json(&["group", "list"]);
    let known = groups.as_array().unwrap().iter();
    let known: HashSet<String> = known
        .map(|group| group["name"].as_str().unwrap().to_owned())
        .collect();
    // What is left out of the counts is no name by RFC 5536 section 3.1.4.
    let is_plain = |part: &str| {
        let mut octets = part.bytes();
        !part.is_empty()
            && octets.all(|octet| octet.is_ascii_alphanumeric() || b"+-_".contains(&octet))
    };
    let names = names.iter().filter(|name| name.split('.').all(is_plain));
    let left_out: Vec<_> = names.filter(|name| !known.contains(**name)).collect();
    assert!(left_out.is_empty(), "{left_out:?}");
    (spool, server, known)
}

/// Feeds everything on one connection, far ahead of the replies; these.
pub(crate) fn feed(address: SocketAddr, samples: &[Sample]) -> Vec<String> {
    let mut client = NewsClient::connect(address);
    let mut writer: TcpStream = client.writer();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for sample in samples {
                writer
                    .write_all(format!("TAKETHIS {}\r\n", sample.id).as_bytes())
                    .unwrap();
                writer.write_all(&sample.wire).unwrap();
            }
            writer.shutdown(Shutdown::Write).unwrap();
        });
        samples
            .iter()
            .map(|sample| {
                let reply = client.line();
                assert_eq!(reply.split(' ').nth(1), Some(sample.id.as_str()), "{reply}");
                reply
            })
            .collect()
    })
}

/// Asks many commands, a few ahead, and hands every reply to `look`.
pub(crate) fn ask_all<T>(
    address: SocketAddr,
    items: &[T],
    command: impl Fn(&T) -> String,
    mut look: impl FnMut(&mut NewsClient, &T),
) {
    let mut client = NewsClient::connect(address);
    for items in items.chunks(AHEAD) {
        let commands: String = items
            .iter()
            .map(|item| format!("{}\r\n", command(item)))
            .collect();
        client.send(commands.as_bytes());
        for item in items {
            look(&mut client, item);
        }
    }
}

/// What was sent and what is served, line by line.
pub(crate) fn compare(sample: &Sample, served: &[Vec<u8>]) {
    let wire = &sample.wire[..sample.wire.len() - 3];
    let sent: Vec<&[u8]> = wire
        .split_inclusive(|octet| *octet == b'\n')
        .map(|line| &line[..line.len() - 2])
        .collect();
    let served: Vec<&[u8]> = served.iter().map(Vec::as_slice).collect();
    if let Err(error) = same_article(&sent, &served) {
        panic!("{}: {error}", sample.id);
    }
}

#[test]
fn real_articles_come_back_as_they_were_sent() {
    let Some(folder) = folder() else {
        return skipped();
    };
    let samples = samples(&folder, 1500, usize::MAX);
    let (spool, server, known) = server(&samples, None);
    let replies = feed(server.address, &samples);
    let refused = samples.iter().filter(|sample| sample.is_bad).count();
    assert_eq!(refused, scaled(0, 5));
    assert!(!is_full() || samples.len() == 60_849, "{}", samples.len());
    let is_right = |sample: &Sample, reply: &str| match sample.is_bad {
        true => reply.trim_end() == format!("439 {} CR without LF in article", sample.id),
        false => reply.starts_with("239 "),
    };
    let pairs = samples.iter().zip(&replies);
    let wrong: Vec<&String> = pairs
        .filter(|(sample, reply)| !is_right(sample, reply))
        .map(|(_, reply)| reply)
        .collect();
    assert!(
        wrong.is_empty(),
        "{} wrong answers: {wrong:#?}",
        wrong.len()
    );
    let taken: Vec<&Sample> = samples.iter().filter(|sample| !sample.is_bad).collect();

    let mut filed: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in &taken {
        for group in sample.groups.iter().filter(|group| known.contains(*group)) {
            filed.entry(group).or_default().push(sample);
        }
    }
    ask_all(
        server.address,
        &taken,
        |s| format!("ARTICLE {}", s.id),
        |client, sample| {
            assert_eq!(client.line(), format!("220 0 {}", sample.id));
            compare(sample, &client.raw_block());
        },
    );
    let groups: Vec<&str> = filed.keys().copied().collect();
    let mut numbers = 0;
    for group in groups {
        numbers += read_group(server.address, group, &filed[group]);
    }
    println!(
        "corpus: {} articles, {} taken, {} refused, {numbers} places in {} groups",
        samples.len(),
        taken.len(),
        refused,
        filed.len()
    );
    let check = spool.json(&["check"]);
    assert_eq!(check["problems"], serde_json::json!([]));
    assert_eq!(check["articles"], taken.len());
    server.stop();
}

/// What is served does not depend on the form that an article has on disk.
#[test]
fn real_articles_come_back_from_files_of_their_own() {
    let Some(folder) = folder() else {
        return skipped();
    };
    let mut samples = samples(&folder, 300, 3000);
    samples.retain(|sample| !sample.is_bad);
    let (spool, server, _) = server(&samples, Some(&sets_of_files()));
    let replies = feed(server.address, &samples);
    let wrong: Vec<&String> = replies.iter().filter(|r| !r.starts_with("239 ")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    ask_all(
        server.address,
        &samples,
        |s| format!("ARTICLE {}", s.id),
        |client, sample| {
            assert_eq!(client.line(), format!("220 0 {}", sample.id));
            compare(sample, &client.raw_block());
        },
    );
    let check = spool.json(&["check"]);
    assert_eq!(check["problems"], serde_json::json!([]));
    assert_eq!(check["articles"], samples.len());
    let listed = spool.json(&["store", "list"]);
    for set in listed.as_array().unwrap() {
        assert!(
            set["oldest"].is_u64(),
            "every method has its share: {listed}"
        );
    }
    server.stop();
}

/// GROUP, LISTGROUP, OVER and every ARTICLE of a group against what was counted.
fn read_group(address: SocketAddr, group: &str, filed: &[&Sample]) -> usize {
    let count = filed.len();
    let mut client = NewsClient::connect(address);
    assert_eq!(
        client.ask(&format!("GROUP {group}")),
        format!("211 {count} 1 {count} {group}")
    );
    assert_eq!(client.ask("LISTGROUP").split(' ').next(), Some("211"));
    let numbers: Vec<String> = (1..=count).map(|number| number.to_string()).collect();
    assert_eq!(client.block(), numbers, "{group}");
    assert_eq!(client.ask("OVER 1-").split(' ').next(), Some("224"));
    let overview = client.raw_block();
    assert_eq!(overview.len(), count, "{group}");
    for at in (0..filed.len()).step_by(AHEAD) {
        let ahead = &filed[at..filed.len().min(at + AHEAD)];
        let commands: String = (0..ahead.len())
            .map(|more| format!("ARTICLE {}\r\n", at + more + 1))
            .collect();
        client.send(commands.as_bytes());
        for (more, sample) in ahead.iter().enumerate() {
            assert_eq!(
                client.line(),
                format!("220 {} {}", at + more + 1, sample.id)
            );
            let served = client.raw_block();
            compare(sample, &served);
            let line = &overview[at + more];
            let place = format!("{group}:{}", at + more + 1);
            assert_eq!(
                line.escape_ascii().to_string(),
                overview_line(at + more + 1, &served)
                    .escape_ascii()
                    .to_string(),
                "{place}"
            );
            let xref = field(&served.join(&b'\n'), "Xref");
            assert!(
                xref.split(' ').any(|found| found == place),
                "{place}: {xref}"
            );
        }
    }
    count
}

/// What OVER must say of an article that was served under a number (RFC 3977 section 8.3.2).
fn overview_line(number: usize, served: &[Vec<u8>]) -> Vec<u8> {
    let plain: Vec<&[u8]> = served
        .iter()
        .map(|line| line.strip_prefix(b".").unwrap_or(line))
        .collect();
    let head = plain.iter().position(|line| line.is_empty()).unwrap();
    let octets: usize = plain.iter().map(|line| line.len() + 2).sum();
    let content = |name: &str| unfolded(&plain[..head], name);
    let id = content("Message-ID");
    let parts = [
        number.to_string().into_bytes(),
        content("Subject"),
        content("From"),
        content("Date"),
        id.trim_ascii_end().to_vec(),
        content("References"),
        octets.to_string().into_bytes(),
        (plain.len() - head - 1).to_string().into_bytes(),
        [b"Xref: ", content("Xref").as_slice()].concat(),
    ];
    parts.join(&b'\t')
}

/// A header field's octets without its folds; what would break an overview line is a space.
fn unfolded(head: &[&[u8]], name: &str) -> Vec<u8> {
    let is_named = |line: &&[u8]| {
        let (found, after) = line.split_at_checked(name.len())?;
        (found.eq_ignore_ascii_case(name.as_bytes()) && after.starts_with(b":")).then_some(())
    };
    let Some(at) = head.iter().position(|line| is_named(line).is_some()) else {
        return Vec::new();
    };
    let more = head[at + 1..]
        .iter()
        .take_while(|line| line.starts_with(b" ") || line.starts_with(b"\t"));
    let mut octets = head[at][name.len() + 1..].to_vec();
    octets.extend(more.flat_map(|line| line.iter()));
    let octets = octets.trim_ascii_start().iter();
    octets
        .map(|octet| match octet {
            b'\t' | b'\r' | b'\n' | 0 => b' ',
            other => *other,
        })
        .collect()
}
