//! A peer as the tests want it: takes articles, and says later, goes away or knows nothing of streaming when it is told to.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use newsreel_feed::{Dial, Dialled, PeerConfig};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::time::sleep;

/// What the peer does.
#[derive(Debug, Default)]
pub(crate) struct Habits {
    /// Every connection ends after so many lines.
    pub(crate) cut_after: Option<usize>,
    /// These are put off once each.
    pub(crate) put_off: BTreeSet<String>,
    /// These are refused when they come.
    pub(crate) rejects: BTreeSet<String>,
    /// It knows IHAVE only.
    pub(crate) old: bool,
    /// It answers so many texts of a connection together, and ends it.
    pub(crate) ends_after: Option<usize>,
    /// Nobody gets in.
    pub(crate) closed: bool,
    /// It ends the connection when one of these comes.
    pub(crate) ends_at: BTreeSet<String>,
    /// It can make nothing of these.
    pub(crate) cannot_read: BTreeSet<String>,
    /// It answers no CHECK.
    pub(crate) is_mute: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Peer {
    pub(crate) habits: Mutex<Habits>,
    /// What it has, by id.
    pub(crate) articles: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Texts that came, in order, also those it had.
    pub(crate) came: Mutex<Vec<String>>,
    pub(crate) connections: Mutex<usize>,
}

/// All peers by their names.
#[derive(Debug, Default)]
pub(crate) struct World(pub(crate) BTreeMap<String, Arc<Peer>>);

impl World {
    pub(crate) fn new(names: &[&str]) -> Arc<Self> {
        let peers = names
            .iter()
            .map(|name| ((*name).to_owned(), Arc::default()));
        Arc::new(Self(peers.collect()))
    }
}

impl Dial for World {
    fn dial<'d>(
        &'d self,
        peer: &'d PeerConfig,
    ) -> std::pin::Pin<Box<dyn Future<Output = io::Result<Dialled>> + Send + 'd>> {
        Box::pin(async {
            let peer = Arc::clone(&self.0[&peer.name]);
            if peer.habits.lock().closed {
                return Err(io::Error::other("nobody is there"));
            }
            *peer.connections.lock() += 1;
            let (ours, theirs) = tokio::io::duplex(16 * 1024);
            #[expect(clippy::disallowed_methods, reason = "ends with its connection")]
            tokio::spawn(async move {
                let _ = peer.serve(theirs).await;
            });
            Ok(Dialled {
                io: Box::new(ours),
                reached_in: Duration::ZERO,
            })
        })
    }
}

impl Peer {
    async fn serve(&self, io: DuplexStream) -> io::Result<()> {
        let mut io = BufReader::new(io);
        let (mut line, mut lines) = (String::new(), 0);
        let mut answers = Vec::new();
        loop {
            line.clear();
            if io.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            lines += 1;
            if self.habits.lock().cut_after.is_some_and(|max| lines > max) {
                return Ok(());
            }
            let (verb, id) = line
                .trim_end()
                .split_once(' ')
                .unwrap_or((line.trim_end(), ""));
            while verb == "CHECK" && self.habits.lock().is_mute {
                sleep(Duration::from_millis(5)).await;
            }
            if verb != "CHECK" && self.habits.lock().ends_at.contains(id) {
                return Ok(());
            }
            if self.habits.lock().cannot_read.contains(id) {
                if verb == "TAKETHIS" {
                    text(&mut io).await?;
                }
                io.get_mut().write_all(b"501 Bad message-id\r\n").await?;
                continue;
            }
            let is_old = self.habits.lock().old;
            let answer = match verb {
                "MODE" if !is_old => "203 streaming\r\n".to_owned(),
                "MODE" => {
                    let words = ["500", "501", "502", "503", "200"];
                    format!("{} no\r\n", words[*self.connections.lock() % words.len()])
                }
                "CHECK" if !is_old => {
                    format!("{} {id}\r\n", self.offered(id, ["238", "438", "431"]))
                }
                "TAKETHIS" if !is_old => {
                    let text = text(&mut io).await?;
                    answers.push(format!("{} {id}\r\n", self.take(id, text, ["239", "439"])));
                    let ends_after = self.habits.lock().ends_after;
                    if ends_after.is_some_and(|many| answers.len() < many) {
                        continue;
                    }
                    let all = std::mem::take(&mut answers).concat();
                    if ends_after.is_some() {
                        return io.get_mut().write_all(all.as_bytes()).await;
                    }
                    all
                }
                "IHAVE" if is_old => {
                    let code = self.offered(id, ["335", "435", "436"]);
                    io.get_mut()
                        .write_all(format!("{code} so\r\n").as_bytes())
                        .await?;
                    if code != "335" {
                        continue;
                    }
                    let text = text(&mut io).await?;
                    format!("{} so\r\n", self.take(id, text, ["235", "437"]))
                }
                "QUIT" => {
                    io.get_mut().write_all(b"205 bye\r\n").await?;
                    return Ok(());
                }
                _ => "500 what?\r\n".to_owned(),
            };
            io.get_mut().write_all(answer.as_bytes()).await?;
        }
    }

    fn offered(&self, id: &str, [wanted, known, later]: [&'static str; 3]) -> &'static str {
        if self.habits.lock().put_off.remove(id) {
            return later;
        }
        match self.articles.lock().contains_key(id) {
            true => known,
            false => wanted,
        }
    }

    fn take(&self, id: &str, text: Vec<u8>, [taken, refused]: [&'static str; 2]) -> &'static str {
        self.came.lock().push(id.to_owned());
        let mut articles = self.articles.lock();
        if self.habits.lock().rejects.contains(id) || articles.contains_key(id) {
            return refused;
        }
        articles.insert(id.to_owned(), text);
        taken
    }

    pub(crate) fn has(&self) -> usize {
        self.articles.lock().len()
    }
}

/// A multi-line block, terminator and all.
async fn text(io: &mut BufReader<DuplexStream>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        let from = text.len();
        if io.read_until(b'\n', &mut text).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if text[from..] == *b".\r\n" {
            return Ok(text);
        }
    }
}
