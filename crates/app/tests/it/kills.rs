//! A server that is killed at random moments of a feed: nothing acknowledged is lost, nothing is half there.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use newsreel_host::random_bytes;
use newsreel_testkit::same_article;
use serde_json::{Value, json};

use crate::client::NewsClient;
use crate::scale::scaled;
use crate::spool::{Server, Spool};

const CONNECTIONS: usize = 4;
/// Kills before it is said that a machine is too slow for the test.
const ROUNDS_MAX: usize = 100;
/// Articles sent ahead of their replies.
const WINDOW: usize = 32;
const GROUPS: [&str; 3] = ["crash.one", "crash.two", "crash.three"];
/// Room for all that is fed in all rounds, without taking it from the disk before.
const LARGE: &str = "\"2GiB\"\nsparse = true";
/// A checkpoint for each mebibyte of log, and merges all the time: kills meet both.
const BUSY: &str = "[engine]\ncheckpoint_log_octets = \"1MiB\"\n\n[index]\nruns_max = 4\nmerge_runs_max = 2\n\n[log]";
/// What an article costs at most in a buffer, alone in its batch: a batch is written in whole pages.
const ARTICLE_PAGES: usize = 4096;

/// What one connection did before the server died: ids with the place of their reply among all replies.
#[derive(Default)]
struct Sent {
    acknowledged: Vec<(u64, String)>,
    unanswered: VecDeque<String>,
}

/// The article of an id: its body follows from it, and so does its length.
fn article(id: &str) -> String {
    let seed: usize = id.bytes().map(usize::from).sum();
    let groups = GROUPS[..1 + seed % GROUPS.len()].join(",");
    let body = format!("{id} says this\r\n").repeat(1 + seed % 40);
    format!(
        "Path: peer.example!not-for-mail\r\nFrom: a@example.org\r\nNewsgroups: {groups}\r\n\
         Subject: crash\r\nDate: Wed, 31 Dec 2025 12:00:00 +0000\r\nMessage-ID: {id}\r\n\r\n{body}.\r\n"
    )
}

/// A connection that has had its greeting.
fn greeted(address: SocketAddr) -> BufReader<TcpStream> {
    let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert!(line.starts_with("20"), "{line}");
    stream
}

/// Feeds until the server is gone; what was answered, and what may or may not be there.
fn feed(mut stream: BufReader<TcpStream>, name: &str, replies: &AtomicU64) -> Sent {
    let mut sent = Sent::default();
    let mut line = String::new();
    let mut goes_out = true;
    for next in 0.. {
        let id = format!("<{name}.{next}@crash.example>");
        let text = format!("TAKETHIS {id}\r\n{}", article(&id));
        sent.unanswered.push_back(id);
        goes_out = goes_out && stream.get_mut().write_all(text.as_bytes()).is_ok();
        if goes_out && sent.unanswered.len() < WINDOW {
            continue;
        }
        line.clear();
        if stream.read_line(&mut line).unwrap_or(0) == 0 || !line.ends_with('\n') {
            break;
        }
        let id = sent.unanswered.pop_front().unwrap();
        assert_eq!(line.trim_end(), format!("239 {id}"));
        let place = replies.fetch_add(1, Ordering::Relaxed);
        sent.acknowledged.push((place, id));
    }
    sent
}

/// An article's number in a group, and how it was served by its id.
type Numbered = (String, Vec<String>);

/// Where articles are filed: group and number.
type Places = Vec<(String, String)>;

/// Asks for every id; which are there, each whole, and the same under each of its numbers.
fn present<'a>(
    address: SocketAddr,
    ids: impl Iterator<Item = &'a String>,
) -> HashMap<&'a str, Places> {
    let mut client = NewsClient::connect(address);
    let mut found = HashMap::new();
    let ids: Vec<&String> = ids.collect();
    for ids in ids.chunks(256) {
        let mut places: BTreeMap<String, Vec<Numbered>> = BTreeMap::new();
        let commands: String = ids.iter().map(|id| format!("ARTICLE {id}\r\n")).collect();
        client.send(commands.as_bytes());
        for id in ids {
            let reply = client.line();
            if reply.starts_with("430") {
                continue;
            }
            assert_eq!(reply, format!("220 0 {id}"));
            let served = client.block();
            let filed = whole(id, &served);
            for (group, number) in filed.clone() {
                let place = (number, served.clone());
                places.entry(group).or_default().push(place);
            }
            found.insert(id.as_str(), filed);
        }
        for (group, places) in places {
            assert_served(&mut client, &group, &places);
        }
    }
    found
}

/// The articles of a group have these numbers and are served by them as by their ids.
fn assert_served(client: &mut NewsClient, group: &str, places: &[Numbered]) {
    assert!(client.ask(&format!("GROUP {group}")).starts_with("211 "));
    let numbers = places.iter().map(|(number, _)| number);
    let commands: String = numbers
        .map(|number| format!("ARTICLE {number}\r\n"))
        .collect();
    client.send(commands.as_bytes());
    for (number, served) in places {
        let reply = client.line();
        assert!(
            reply.starts_with(&format!("220 {number} ")),
            "{group}:{number}: {reply}"
        );
        assert_eq!(&client.block(), served, "{group}:{number}");
    }
}

/// Compares an article that is served with what was sent, line by line; the places that its Xref names.
fn whole(id: &str, served: &[String]) -> Places {
    let text = article(id);
    let sent: Vec<&[u8]> = text
        .strip_suffix(".\r\n")
        .unwrap()
        .split_terminator("\r\n")
        .map(str::as_bytes)
        .collect();
    let lines: Vec<&[u8]> = served.iter().map(String::as_bytes).collect();
    if let Err(error) = same_article(&sent, &lines) {
        panic!("{id}: {error}");
    }
    let xref = served.iter().find_map(|line| line.strip_prefix("Xref: "));
    let places = xref.unwrap().split(' ').skip(1);
    let places: Places = places
        .map(|place| place.split_once(':').unwrap())
        .map(|(group, number)| (group.to_owned(), number.to_owned()))
        .collect();
    let groups: Vec<&str> = places.iter().map(|(group, _)| group.as_str()).collect();
    let seed: usize = id.bytes().map(usize::from).sum();
    assert_eq!(groups, GROUPS[..1 + seed % GROUPS.len()], "{id}");
    places
}

fn random_below(most: u64) -> u64 {
    u64::from_le_bytes(random_bytes().unwrap()) % most
}

/// A spool whose server is killed again and again.
struct Killed {
    spool: Spool,
    server: Server,
    replies: AtomicU64,
    /// What was acknowledged, in the order of the replies, and what was not and is there.
    acknowledged: Vec<String>,
    maybe: Vec<String>,
    /// Where articles were filed when they were seen first.
    filed: HashMap<String, Places>,
    rounds: usize,
    /// Rounds in which something was acknowledged, and those in which the server died over articles it had not answered.
    with_answers: usize,
    in_the_middle: usize,
}

impl Killed {
    fn new(config: &str) -> Self {
        let spool = Spool::with(config);
        let server = spool.serve();
        spool.text(&[&["group", "add"][..], &GROUPS].concat());
        Self {
            spool,
            server,
            replies: AtomicU64::new(0),
            acknowledged: Vec::new(),
            maybe: Vec::new(),
            filed: HashMap::new(),
            rounds: 0,
            with_answers: 0,
            in_the_middle: 0,
        }
    }

    /// Feeds and kills after a random time, and starts again.  What was acknowledged in this round must be there, or
    /// else as many of the last ones.
    fn round(mut self, kept: Option<usize>) -> Self {
        let wait = Duration::from_millis(5 + random_below(250));
        let round = self.rounds;
        let streams: Vec<_> = (0..CONNECTIONS)
            .map(|_| greeted(self.server.address))
            .collect();
        let (server, replies) = (self.server, &self.replies);
        let sent: Vec<Sent> = std::thread::scope(|scope| {
            let feeds: Vec<_> = streams
                .into_iter()
                .enumerate()
                .map(|(connection, stream)| {
                    let name = format!("{round}.{connection}");
                    scope.spawn(move || feed(stream, &name, replies))
                })
                .collect();
            std::thread::sleep(wait);
            server.kill();
            feeds.into_iter().map(|feed| feed.join().unwrap()).collect()
        });
        self.server = self.spool.serve();
        let (mut new, mut open) = (Vec::new(), Vec::new());
        for sent in sent {
            new.extend(sent.acknowledged);
            open.extend(sent.unanswered);
        }
        new.sort_unstable();
        self.rounds += 1;
        self.with_answers += usize::from(!new.is_empty());
        self.in_the_middle += usize::from(open.len() > CONNECTIONS);
        let before = self.acknowledged.len();
        self.acknowledged.extend(new.into_iter().map(|(_, id)| id));
        let newest = match kept {
            None => before,
            Some(kept) => self.acknowledged.len().saturating_sub(kept),
        };
        let newest = &self.acknowledged[newest..];
        let found = present(self.server.address, newest.iter());
        let is_lost = |id: &&String| !found.contains_key(id.as_str());
        let lost: Vec<&String> = newest.iter().filter(is_lost).collect();
        assert!(
            lost.is_empty(),
            "round {round}, killed after {wait:?}: lost {lost:?}"
        );
        let kept = present(self.server.address, open.iter());
        self.maybe.extend(kept.keys().map(|id| (*id).to_owned()));
        for (id, places) in found.into_iter().chain(kept) {
            let before = self.filed.entry(id.to_owned());
            assert_eq!(before.or_insert_with(|| places.clone()), &places, "{id}");
        }
        self
    }

    fn assert_clean(&self) -> Value {
        let check = self.spool.json(&["check"]);
        assert_eq!(check["problems"], json!([]), "round {}", self.rounds);
        check
    }

    /// The server was really at work when it was killed.
    #[expect(clippy::print_stdout, reason = "the figures of the kills")]
    fn assert_in_the_middle(&self) {
        // A busy machine does not always answer within the first milliseconds.
        let few = (self.rounds / 5).max(2);
        let (answers, middle) = (self.with_answers, self.in_the_middle);
        let said = format!("{answers} and {middle} of {} rounds", self.rounds);
        assert!(self.rounds - answers <= few, "acknowledged in {said}");
        assert!(middle > self.rounds / 2, "unanswered in {said}");
        println!(
            "crash: {} kills, {middle} of them over unanswered articles; {} acknowledged articles, {} more that were not \
             answered and are there",
            self.rounds,
            self.acknowledged.len(),
            self.maybe.len()
        );
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let config = Spool::changed(&[("\"8MiB\"", LARGE), ("[log]", BUSY)]);
    let mut killed = Killed::new(&config);
    for round in 0..scaled(3, 50) {
        killed = killed.round(None);
        if round % 3 == 0 {
            killed.assert_clean();
        }
    }
    killed.assert_in_the_middle();
    let address = killed.server.address;
    let all: Vec<&String> = killed.acknowledged.iter().chain(&killed.maybe).collect();
    let found = present(address, all.iter().copied());
    assert_eq!(found.len(), all.len());
    for (id, places) in found {
        assert_eq!(killed.filed.get(id), Some(&places), "{id}");
    }
    for (place, group) in GROUPS.iter().enumerate() {
        let filed = |id: &&&String| id.bytes().map(usize::from).sum::<usize>() % 3 >= place;
        let count = all.iter().filter(filed).count();
        let reply = NewsClient::connect(address).ask(&format!("GROUP {group}"));
        assert_eq!(
            reply.split(' ').nth(1),
            Some(count.to_string().as_str()),
            "{reply}"
        );
    }
    assert_eq!(killed.assert_clean()["articles"], json!(all.len()));
    killed.server.stop();
}

/// Two buffers of a mebibyte that wrap while the server is killed: the oldest articles go, and only they.
#[test]
fn the_newest_are_kept_when_the_server_is_killed_while_buffers_wrap() {
    let mut killed = Killed::new(&Spool::changed(&[("8MiB", "1MiB"), ("[log]", BUSY)]));
    // Half of the room: the rest is what may be reserved ahead, and skipped by a start.
    let kept = (1 << 20) / ARTICLE_PAGES;
    let mut cycles = 0;
    // A busy machine feeds less in a round.
    while killed.rounds < scaled(6, 20) || (cycles <= 2 && killed.rounds < ROUNDS_MAX) {
        killed = killed.round(Some(kept));
        killed.assert_clean();
        let status = killed.spool.json(&["status"]);
        cycles = status["buffers"][0]["cycle"].as_u64().unwrap();
    }
    killed.assert_in_the_middle();
    println!("crash: {cycles} cycles");
    assert!(cycles > 2, "the buffers must have wrapped: {cycles} cycles");
    killed.server.stop();
}
