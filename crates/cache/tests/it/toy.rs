//! A server elsewhere with one group, whose articles come and go as a test wants; it counts what it is asked, and takes a while
//! for each round trip.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use newsreel_net::client::{Client, ClientError, Connect, Remote};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::Notify;

/// What the server has and was asked.
#[derive(Debug, Default)]
pub(crate) struct Toy {
    pub(crate) articles: BTreeMap<u64, String>,
    /// The marks; none: as the articles are.
    pub(crate) marks: Option<(u64, u64)>,
    /// Lines of the list beside that of the group.
    pub(crate) listed: &'static str,
    /// It tells what has changed of the list: these lines.
    pub(crate) changed: Option<&'static str>,
    /// The seconds of what it says the time is.
    pub(crate) seconds: u32,
    /// There is no such group.
    pub(crate) is_without_group: bool,
    /// It ends each connection.
    pub(crate) is_down: bool,
    /// It lets connections in, takes what is asked then, and says nothing.
    pub(crate) hangs: bool,
    /// Every command since they were taken.
    pub(crate) asked: Vec<String>,
    pub(crate) round_trip: Duration,
    /// Connections that were made, or tried.
    pub(crate) connections: usize,
    /// It ends the connection in the place of its answer to a post; whether it takes it.
    pub(crate) loses_post: Option<bool>,
    pub(crate) refuses_posts: bool,
    /// The words with which it does.
    pub(crate) refusal: Option<&'static str>,
    /// What it answers to a command, whatever it has.
    pub(crate) says: Option<(&'static str, &'static str)>,
    /// It ends the connection, once, so many octets into its answer to a command.
    pub(crate) cuts: Option<(&'static str, usize)>,
    /// It sends so many octets of its answer to a command, once, and the rest when it is told to; if it is down by then it ends the
    /// connection instead.
    pub(crate) holds: Option<(&'static str, usize, Arc<Notify>)>,
    /// Its LISTGROUP takes no range.
    pub(crate) lists_whole: bool,
    /// It tells of no message-id before a group is selected; whether one is.
    pub(crate) has_selected: Option<bool>,
}

/// The way to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct To(pub(crate) Arc<Mutex<Toy>>);

/// An article with number `number`, whose body has so many octets.
pub(crate) fn article(number: u64, octets: usize) -> String {
    let body = "x".repeat(octets);
    format!(
        "Subject: {number}\r\nFrom: me@t.example\r\nDate: Thu, 01 Jan 2026 00:00:00 +0000\r\n\
         Newsgroups: misc.test\r\nMessage-ID: <{number}@t.example>\r\nXref: t misc.test:{number}\r\n\r\n{body}\r\n.\r\n"
    )
}

/// The message-id of an article.
fn id_of(wire: &str) -> &str {
    let id = wire.split("Message-ID: ").nth(1);
    id.and_then(|rest| rest.split("\r\n").next()).unwrap()
}

fn line(number: u64, wire: &str) -> String {
    let (id, octets) = (id_of(wire), wire.len() - 3);
    let references = wire.split("References: ").nth(1);
    let references = references.map_or("", |rest| rest.split("\r\n").next().unwrap());
    format!(
        "{number}\ts\tme@t.example\tThu, 01 Jan 2026 00:00:00 +0000\t{id}\t{references}\t{octets}\t1\t\
         Xref: t misc.test:{number}\r\n"
    )
}

impl Toy {
    fn selected(&self) -> String {
        let first = self.articles.keys().next().copied();
        let last = self.articles.keys().next_back().copied();
        let (low, high) = self
            .marks
            .unwrap_or((first.unwrap_or(1), last.unwrap_or(0)));
        format!("211 {} {low} {high} misc.test\r\n", self.articles.len())
    }

    fn range(&self, text: &str) -> impl Iterator<Item = (&u64, &String)> {
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let high = if high.is_empty() {
            u64::MAX
        } else {
            high.parse().unwrap()
        };
        self.articles.range(low.parse().unwrap()..=high)
    }

    fn answer(&mut self, command: &str) -> String {
        self.asked.push(command.to_owned());
        if let Some((_, answer)) = self.says.filter(|(to, _)| *to == command) {
            return answer.to_owned();
        }
        if let Some(has_selected) = &mut self.has_selected {
            *has_selected |= command.starts_with("GROUP ");
            if !*has_selected && command.contains(" <") {
                return "412 no group\r\n".to_owned();
            }
        }
        let words: Vec<&str> = command.split(' ').collect();
        let article =
            |code: u16, number: u64, wire: &str| format!("{code} {number} {}\r\n", id_of(wire));
        match *words {
            ["CAPABILITIES"] => {
                let list = self
                    .changed
                    .map_or("", |_| "LIST ACTIVE ACTIVE.MODTIME\r\n");
                format!("101 list\r\nVERSION 2\r\nREADER\r\nOVER MSGID\r\n{list}.\r\n")
            }
            ["DATE"] => {
                self.seconds += 1;
                format!("111 202601010000{:02}\r\n", self.seconds)
            }
            ["LIST", "ACTIVE.MODTIME", _] => match self.changed {
                Some("503") => "503 not now\r\n".to_owned(),
                Some(lines) => format!("215 changed\r\n{lines}.\r\n"),
                None => "501 what?\r\n".to_owned(),
            },
            ["LIST", "NEWSGROUPS"] => "215 list\r\nmisc.test\tWhat it is\r\n.\r\n".to_owned(),
            ["LIST", "NEWSGROUPS", names] if self.changed.is_some() => {
                format!("215 list\r\n{names}\tWhat is new\r\n.\r\n")
            }
            ["LIST", "ACTIVE.TIMES", names] if self.changed.is_some() => {
                format!("215 list\r\n{names} 1767225600 them\r\n.\r\n")
            }
            ["GROUP" | "LISTGROUP", ..] | ["LIST", "ACTIVE", _] if self.is_without_group => {
                "411 none\r\n".to_owned()
            }
            ["LIST", "ACTIVE"] => {
                let last = self.articles.keys().next_back().copied().unwrap_or(0);
                format!("215 list\r\nmisc.test {last} 1 y\r\n{}.\r\n", self.listed)
            }
            ["GROUP", _] => self.selected(),
            ["LIST", "ACTIVE", _] => "215 list\r\nmisc.test 0 1 y\r\n.\r\n".to_owned(),
            ["LISTGROUP", _, _] if self.lists_whole => "501 what?\r\n".to_owned(),
            ["LISTGROUP", _, ref range @ ..] => {
                let range = range.first().unwrap_or(&"1-");
                let numbers: String = self
                    .range(range)
                    .map(|(number, _)| format!("{number}\r\n"))
                    .collect();
                format!("{}{numbers}.\r\n", self.selected())
            }
            ["POST"] => "340 send it\r\n".to_owned(),
            ["OVER", id] if id.starts_with('<') => "430 none\r\n".to_owned(),
            ["OVER", range] => {
                let lines: String = self
                    .range(range)
                    .map(|(number, wire)| line(*number, wire))
                    .collect();
                format!("224 lines\r\n{lines}.\r\n")
            }
            [verb @ ("ARTICLE" | "HEAD" | "STAT"), which] => {
                let found = match which.parse::<u64>() {
                    Ok(number) => self.articles.get_key_value(&number),
                    Err(_) => self
                        .articles
                        .iter()
                        .find(|(_, wire)| wire.contains(&format!("Message-ID: {which}\r\n"))),
                };
                match found {
                    Some((number, wire)) if verb == "ARTICLE" => article(220, *number, wire) + wire,
                    Some((number, wire)) if verb == "HEAD" => {
                        let head = wire.split("\r\n\r\n").next().unwrap();
                        format!("{}{head}\r\n.\r\n", article(221, *number, wire))
                    }
                    Some((number, wire)) => article(223, *number, wire),
                    None if which.starts_with('<') => "430 none\r\n".to_owned(),
                    None => "423 none\r\n".to_owned(),
                }
            }
            _ => "500 what?\r\n".to_owned(),
        }
    }
}

impl To {
    /// The commands since the last time, but for those with which a connection begins.
    pub(crate) fn asked(&self) -> Vec<String> {
        let mut asked = std::mem::take(&mut self.0.lock().asked);
        asked.retain(|command| command != "CAPABILITIES");
        asked
    }

    async fn serve(self, mut io: DuplexStream) {
        let _ = io.write_all(b"200 ready\r\n").await;
        let (mut said, mut piece) = (Vec::new(), [0; 4096]);
        let mut post: Option<String> = None;
        while let Ok(len @ 1..) = io.read(&mut piece).await {
            said.extend_from_slice(&piece[..len]);
            let round_trip = self.0.lock().round_trip;
            tokio::time::sleep(round_trip).await;
            let Some(end) = said.iter().rposition(|octet| *octet == b'\n') else {
                continue;
            };
            let rest = said.split_off(end + 1);
            let commands = String::from_utf8(std::mem::replace(&mut said, rest)).unwrap();
            for command in commands.lines() {
                let answer = {
                    let mut toy = self.0.lock();
                    if toy.is_down {
                        return;
                    }
                    if toy.hangs && command != "CAPABILITIES" {
                        toy.asked.push(command.to_owned());
                        continue;
                    }
                    match &mut post {
                        None => toy.answer(command),
                        Some(wire) => {
                            *wire += &format!("{command}\r\n");
                            if command != "." {
                                continue;
                            }
                            if toy.loses_post == Some(false) {
                                return;
                            }
                            if toy.loses_post == Some(true) || !toy.refuses_posts {
                                let next = toy.articles.keys().next_back();
                                let next = next.map_or(1, |last| last + 1);
                                toy.articles.insert(next, std::mem::take(wire));
                            }
                            if toy.loses_post.is_some() {
                                return;
                            }
                            if toy.refuses_posts {
                                format!("441 {}\r\n", toy.refusal.unwrap_or("no"))
                            } else {
                                "240 taken\r\n".to_owned()
                            }
                        }
                    }
                };
                post = answer.starts_with("340").then(String::new);
                let mut rest = answer.as_bytes();
                let holds = self.0.lock().holds.take_if(|(at, ..)| *at == command);
                if let Some((_, octets, goes_on)) = holds {
                    let _ = io.write_all(&rest[..octets]).await;
                    rest = &rest[octets..];
                    goes_on.notified().await;
                    if self.0.lock().is_down {
                        return;
                    }
                }
                let cut = self.0.lock().cuts.take_if(|(at, _)| *at == command);
                if let Some((_, octets)) = cut {
                    let _ = io.write_all(&rest[..octets]).await;
                    return;
                }
                let _ = io.write_all(rest).await;
            }
        }
    }
}

impl Connect for To {
    type Io = DuplexStream;

    fn name(&self) -> String {
        "up".to_owned()
    }

    async fn connect(&self) -> Result<Client<DuplexStream>, ClientError> {
        self.0.lock().connections += 1;
        let (ours, theirs) = duplex(1 << 20);
        #[expect(
            clippy::disallowed_methods,
            reason = "a test's runtime ends all its tasks"
        )]
        tokio::spawn(self.clone().serve(theirs));
        Client::open(ours, &Remote::reader("up")).await
    }
}
