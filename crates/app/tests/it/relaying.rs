//! Articles on their way through several servers, INN's among them, over connections that are cut and past servers that are killed:
//! everything arrives, once, octet for octet but for Path and Xref.
//!
//! Articles are those of the corpus where it lies beside the repository, some in the daily run and, round the ring, all in CI; else they
//! are made.

use std::collections::{BTreeSet, HashSet};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use newsreel_bench::rivals::{INN_PROGRAMS, Inn, Rival as _};
use newsreel_host::{Disk as _, RealDisk, replace_file};
use newsreel_testkit::free_ports;
use tokio::time::Instant;

use crate::client::{NewsClient, article};
use crate::corpus::{Sample, ask_all, compare, feed, folder, samples};
use crate::scale::scaled;
use crate::slow_link::SlowLink;
use crate::spool::{Server, Spool};

const ROUND_TRIP: Duration = Duration::from_millis(10);
/// One in so many pieces is lost.
const LOSS: u64 = 20;

fn free() -> SocketAddr {
    ([127, 0, 0, 1], free_ports().unwrap()).into()
}

/// Articles that every server can take.
fn articles(little: usize) -> Vec<Sample> {
    let found = folder().map(|folder| samples(&folder, little / 2, usize::MAX));
    let made = || {
        let made = (0..little).map(|n| {
            let id = format!("<{n}@relay.example>");
            Sample {
                wire: article(&id, "misc.test").into_bytes(),
                id,
                groups: vec!["misc.test".to_owned()],
                is_bad: false,
            }
        });
        made.collect()
    };
    let mut all = found.unwrap_or_else(made);
    all.retain(|sample| !sample.is_bad);
    all
}

/// A site of this name that listens there and sends to these.
struct Site {
    name: String,
    spool: Spool,
    server: Option<Server>,
    address: SocketAddr,
}

impl Site {
    fn new(name: &str, address: SocketAddr, peers: &[(&str, SocketAddr)]) -> Self {
        let size = scaled("octets = \"16MiB\"", "octets = \"512MiB\"");
        let mut config = Spool::changed(&[
            (
                "[articles]",
                &format!("[engine]\npath_identity = '{name}'\n\n[articles]"),
            ),
            ("127.0.0.1:0", &address.to_string()),
            ("octets = \"8MiB\"", size),
        ]);
        for (peer, address) in peers {
            config += &format!("\n[[peer]]\nname = '{peer}'\naddress = '{address}'\n");
        }
        let spool = Spool::with(&config);
        let server = Some(spool.serve());
        Self {
            name: name.to_owned(),
            spool,
            server,
            address,
        }
    }

    fn groups(&self, list: &str) {
        let file = self.spool.folder().join("groups");
        replace_file(&RealDisk, &file, list.as_bytes()).unwrap();
        let file = file.display().to_string();
        self.spool.text(&["group", "import", &file, "--skip-bad"]);
    }

    /// It is killed, and comes again.
    fn kill(&mut self) {
        self.server.take().unwrap().kill();
        self.server = Some(self.spool.serve());
    }

    /// Which of these are not here.
    fn missing<'s>(&self, of: &[&'s Sample]) -> Vec<&'s Sample> {
        absent(self.address, of)
    }

    /// Has all of these, each once and as it was sent, and nothing else; ends it.
    fn has_exactly(mut self, all: &[&Sample]) {
        ask_all(
            self.address,
            all,
            |sample| format!("ARTICLE {}", sample.id),
            |client, sample| {
                assert_eq!(client.line(), format!("220 0 {}", sample.id));
                compare(sample, &client.raw_block());
            },
        );
        let check = self.spool.json(&["check"]);
        assert_eq!(check["articles"], all.len(), "{check}");
        assert_eq!(check["problems"], serde_json::json!([]), "{check}");
        self.server.take().unwrap().stop();
    }

    /// Tries again now what waits.
    fn flush(&self) {
        for peer in self.spool.json(&["peer", "list"])["feeds"]
            .as_array()
            .unwrap()
        {
            self.spool
                .text(&["peer", "flush", peer["peer"].as_str().unwrap()]);
        }
    }
}

fn absent<'s>(address: SocketAddr, of: &[&'s Sample]) -> Vec<&'s Sample> {
    let mut absent = Vec::new();
    ask_all(
        address,
        of,
        |sample| format!("STAT {}", sample.id),
        |client, sample| {
            if !client.line().starts_with("223") {
                absent.push(*sample);
            }
        },
    );
    absent
}

/// Groups of all articles, one a line.
fn groups_of(samples: &[Sample]) -> String {
    let names = samples.iter().flat_map(|sample| &sample.groups);
    let names: BTreeSet<&String> = names.collect();
    names.iter().map(|name| format!("{name}\n")).collect()
}

/// Those that were taken when they were fed.
fn fed(address: SocketAddr, samples: &[Sample]) -> Vec<&Sample> {
    let replies = feed(address, samples);
    let pairs = samples.iter().zip(&replies);
    let taken = pairs.filter(|(_, reply)| reply.starts_with("239"));
    taken.map(|(sample, _)| sample).collect()
}

/// Until it is so, at most some minutes; something is done each time that it is not.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..scaled(900, 3000) {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("waited in vain: {what}");
}

/// How INN sends: by innfeed to one server as articles come. By innxmit it sends what it is told to.
fn peers_of_inn(inn: &Inn, right: SocketAddr) {
    let newsfeeds = format!(
        "ME:*/!local::\ninnfeed!:!*:Tc,Wnm*:{INN_PROGRAMS}/innfeed\nright/right.example:*:Tm:innfeed!\n"
    );
    let innfeed = format!(
        "pid-file: innfeed.pid\nlog-file: innfeed.log\nbacklog-directory: innfeed\nbacklog-rotate-period: 2\n\
         backlog-newfile-period: 2\ninitial-reconnect-time: 1\nmax-reconnect-time: 1\nstats-period: 600\n\
         peer right {{\n  ip-name: 127.0.0.1\n  port-number: {}\n}}\n",
        right.port()
    );
    inn.write("innfeed.conf", &innfeed).unwrap();
    inn.write("newsfeeds", &newsfeeds).unwrap();
    inn.run("ctlinnd", &["-s", "reload", "newsfeeds", "peers"])
        .unwrap();
}

/// Sends all that INN has by innxmit, again and again until nothing is left, over a link that is cut.
fn by_innxmit(inn: &Inn, link: &SlowLink, name: &str) {
    let list = inn.path("spool/outgoing").join(name);
    replace_file(&RealDisk, &list, inn.tokens().unwrap().as_bytes()).unwrap();
    // It writes there what is left of it.
    let owned = Command::new("chown").arg("news:news").arg(&list).status();
    assert!(owned.unwrap().success());
    let port = link.address.port().to_string();
    let mut cuts = 0;
    until("innxmit", || {
        let nth = cuts;
        cuts += 1;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(30 + 200 * nth));
                if nth < 3 {
                    link.cut();
                }
            });
            // It says by its status that something is left, which it has in its file.
            let _ = inn.run("innxmit", &["-P", &port, "127.0.0.1", name]);
        });
        !RealDisk.exists(&list).unwrap()
    });
}

/// What INN says against the only articles of the corpus that it does not take: those of which nothing stands behind the header, and
/// those whose message-ids have an empty part or a second `@` (`<1...@x>`, `<a@b@c>`), which RFC 5322 lets nobody write.
const REFUSED_BY_INN: [&str; 2] = ["437 No body", "435 Syntax error in message-ID"];

/// Nothing is missing there but what INN does not take, and it says of each again why.
fn refused_with_reason(inn_at: SocketAddr, without: &[&Sample]) {
    let mut client = NewsClient::connect(inn_at);
    for sample in without {
        let mut said = client.ask(&format!("IHAVE {}", sample.id));
        let is_so = if said.starts_with("335 ") {
            client.send(&sample.wire);
            said = client.line();
            said == REFUSED_BY_INN[0] && sample.wire.ends_with(b"\r\n\r\n.\r\n")
        } else {
            let id = sample.id.trim_matches(['<', '>']);
            let is_wrong = id.matches('@').count() != 1 || id.split(['@', '.']).any(str::is_empty);
            said == REFUSED_BY_INN[1] && is_wrong
        };
        assert!(is_so, "{}: {said}", sample.id);
    }
}

#[expect(clippy::print_stdout, reason = "a skipped test says why")]
fn inn(place: &Path) -> Option<Inn> {
    let programs = Path::new(INN_PROGRAMS);
    if newsreel_host::process::own_uid() != 0 || !Inn::is_installed(programs) {
        println!("skipped: INN is not installed (apt-get install inn2), or this is not root");
        return None;
    }
    let articles = place.join("articles");
    RealDisk.create_dir_all(&articles).unwrap();
    // INN's own user has to come in.
    let opened = Command::new("chmod").arg("755").arg(place).status();
    assert!(opened.unwrap().success());
    // What it has answered for is in its files, so that a kill costs nothing of that; and what it refuses it refuses again.
    let settings = "icdsynccount: 1\nremembertrash: false\n";
    Some(Inn::new(programs, &articles).with_settings(settings))
}

#[test]
fn everything_arrives_once_through_inn() {
    let place = tempfile::tempdir().unwrap();
    let Some(mut inn) = inn(place.path()) else {
        return;
    };
    let samples = articles(600);
    let groups = groups_of(&samples);
    let (right_at, third_at, inn_at) = (free(), free(), free());
    let list = place.path().join("list");
    replace_file(&RealDisk, &list, groups.as_bytes()).unwrap();
    inn.start(&place.path().join("inn"), inn_at, &list).unwrap();
    let to_inn = SlowLink::to(inn_at, ROUND_TRIP);
    let to_right = SlowLink::to(right_at, ROUND_TRIP);
    let to_third = SlowLink::to(third_at, ROUND_TRIP);
    peers_of_inn(&inn, to_right.address);
    let mut right = Site::new("right.example", right_at, &[]);
    let mut third = Site::new("third.example", third_at, &[]);
    let mut left = Site::new(
        "left.example",
        free(),
        &[("inn.bench.test", to_inn.address)],
    );
    for site in [&left, &right, &third] {
        site.groups(&groups);
    }

    let (first, second) = samples.split_at(samples.len() / 2);
    let mut given = fed(left.address, first);
    to_inn.cut();
    left.kill();
    // It is killed in the midst of what it is sent, as far as somebody who looks often sees that.
    let begun = Instant::now();
    while absent(inn_at, &given).len() == given.len() {
        assert!(begun.elapsed() < Duration::from_secs(300), "none at INN");
        std::thread::sleep(Duration::from_millis(2));
    }
    inn.kill().unwrap();
    inn.start_again(&place.path().join("inn"), inn_at).unwrap();
    let lost_on = absent(inn_at, &given);
    let lost_on: HashSet<&str> = lost_on.iter().map(|it| it.id.as_str()).collect();
    given.extend(fed(left.address, second));
    assert_eq!(given.len(), samples.len(), "ours takes all of them");
    to_inn.cut();
    left.flush();
    to_right.cut();
    right.kill();
    until("all at INN", || {
        let feed = &left.spool.json(&["peer", "list"])["feeds"][0];
        feed["waiting"] == 0 && feed["behind"] == 0
    });
    let without = absent(inn_at, &given);
    refused_with_reason(inn_at, &without);
    let without: HashSet<&str> = without.iter().map(|it| it.id.as_str()).collect();
    let at_inn = given.iter().copied();
    let at_inn: Vec<&Sample> = at_inn
        .filter(|it| !without.contains(it.id.as_str()))
        .collect();
    // What INN had not handed to innfeed yet when it was killed nobody sends any more: it forgets that, as its manual says.
    let nth_of_first = first.len();
    let by_innfeed = given.iter().enumerate().filter(|(nth, it)| {
        (*nth >= nth_of_first || lost_on.contains(it.id.as_str()))
            && !without.contains(it.id.as_str())
    });
    let by_innfeed: Vec<&Sample> = by_innfeed.map(|(_, it)| *it).collect();
    assert!(by_innfeed.len() * 3 > at_inn.len());
    let mut tries = 0;
    until("all at the right by innfeed", || {
        tries += 1;
        if tries < 3 {
            to_right.cut();
        }
        // What innfeed has put into files while nobody was there it takes up when it begins anew, or much later.
        if tries % 25 == 0 {
            inn.run("ctlinnd", &["-s", "flush", "innfeed!"]).unwrap();
        }
        right.missing(&by_innfeed).is_empty()
    });
    for (link, site) in [(&to_right, &mut right), (&to_third, &mut third)] {
        by_innxmit(&inn, link, &site.name);
        site.kill();
        assert_eq!(site.missing(&at_inn).len(), 0, "{}", site.name);
    }
    inn.stop().unwrap();
    right.has_exactly(&at_inn);
    third.has_exactly(&at_inn);
    left.has_exactly(&given);
}

/// Four servers in a ring, each of which sends to both sides, over links with a delay and losses, whose connections are cut.
#[test]
fn everything_arrives_once_in_a_ring() {
    let samples = articles(400);
    let groups = groups_of(&samples);
    let names = ["a.example", "b.example", "c.example", "d.example"];
    let addresses = names.map(|_| free());
    let links: Vec<[SlowLink; 2]> = (0..4)
        .map(|at| {
            [(at + 1) % 4, (at + 3) % 4]
                .map(|to| SlowLink::with_loss(addresses[to], ROUND_TRIP, LOSS))
        })
        .collect();
    let mut sites: Vec<Site> = (0..4)
        .map(|at| {
            let [on, back] = &links[at];
            let peers = [
                (names[(at + 1) % 4], on.address),
                (names[(at + 3) % 4], back.address),
            ];
            Site::new(names[at], addresses[at], &peers)
        })
        .collect();
    sites.iter().for_each(|site| site.groups(&groups));
    let mut given = Vec::new();
    for (at, part) in samples.chunks(samples.len().div_ceil(4)).enumerate() {
        given.extend(fed(sites[at].address, part));
        links[at].iter().for_each(SlowLink::cut);
    }
    sites[2].kill();
    let mut nth = 0;
    until("all everywhere", || {
        if nth < 8 {
            links[nth % 4][nth / 4].cut();
            nth += 1;
        }
        sites.iter().for_each(Site::flush);
        sites.iter().all(|site| site.missing(&given).is_empty())
    });
    for site in sites {
        site.has_exactly(&given);
    }
}
