//! Articles on their way to the server: TAKETHIS, many at once (RFC 4644).
//!
//! Who reads a batch writes; a thread takes the answers, in the order of the articles, and keeps what has none: an article is let go
//! only when the server has said what becomes of it, or when it is in the file of those that wait.  What is under way is bounded in
//! number and octets.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::settled::{Settled, Tally};

/// Articles that wait for their answers.
const WINDOW: usize = 1024;
const WINDOW_OCTETS: usize = 32 << 20;
/// So much is written at once.
const WRITE_OCTETS: usize = 128 << 10;
/// How long a server may take to answer: a commit may wait for a slow disk.
const PATIENCE: Duration = Duration::from_secs(120);
const LINE_OCTETS_MAX: u64 = 4096;

/// A server that is ready for articles.
#[derive(Debug)]
pub(crate) struct Line {
    stream: BufReader<TcpStream>,
}

impl Line {
    /// Connects; why the server takes nothing now.
    pub(crate) fn open(server: SocketAddr) -> Result<Self, String> {
        let connect = || {
            let stream = TcpStream::connect_timeout(&server, PATIENCE)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok::<_, io::Error>(stream)
        };
        let stream = connect().map_err(|error| format!("cannot connect to {server}: {error}"))?;
        let mut line = Self {
            stream: BufReader::new(stream),
        };
        let greeting = line.answer()?;
        if !greeting.starts_with("20") {
            return Err(format!("the server says {greeting}"));
        }
        let asked = line.stream.get_mut().write_all(b"MODE STREAM\r\n");
        asked.map_err(|error| format!("the server went away: {error}"))?;
        let streams = line.answer()?;
        if !streams.starts_with("203") {
            return Err(format!("the server lets us not send articles: {streams}"));
        }
        Ok(line)
    }

    /// The next answer.
    fn answer(&mut self) -> Result<String, String> {
        let mut line = Vec::new();
        let mut limited = (&mut self.stream).take(LINE_OCTETS_MAX);
        let read = limited.read_until(b'\n', &mut line);
        read.map_err(|error| format!("the server does not answer: {error}"))?;
        if !line.ends_with(b"\n") {
            return Err("the server closed the connection".to_owned());
        }
        let line = String::from_utf8_lossy(&line);
        Ok(crate::output::printable(line.trim_end()))
    }
}

/// What was sent and is not answered.
struct Sent {
    id: String,
    article: Vec<u8>,
}

/// What of the octets that may be under way is taken.
#[derive(Debug, Default)]
struct Budget {
    taken: Mutex<usize>,
    less: Condvar,
}

impl Budget {
    /// Whether there is room now; an article that is larger than all of it goes alone.
    fn has_room(taken: usize, octets: usize) -> bool {
        taken == 0 || taken + octets <= WINDOW_OCTETS
    }

    fn try_take(&self, octets: usize) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = Self::has_room(*taken, octets);
        if has_room {
            *taken += octets;
        }
        has_room
    }

    fn take(&self, octets: usize) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .less
            .wait_while(taken, |taken| !Self::has_room(*taken, octets));
        *waited.unwrap_or_else(PoisonError::into_inner) += octets;
    }

    fn give(&self, octets: usize) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) -= octets;
        self.less.notify_one();
    }
}

/// What writer and taker of answers share.
#[derive(Debug, Default)]
pub(crate) struct Window {
    budget: Budget,
}

/// The writing end.
pub(crate) struct Sender<'scope> {
    stream: TcpStream,
    out: Vec<u8>,
    window: &'scope Window,
    sent: SyncSender<Sent>,
    settler: ScopedJoinHandle<'scope, Result<()>>,
    /// The connection takes nothing any more; the other end knows as well.
    is_over: bool,
}

impl<'scope> Sender<'scope> {
    /// Starts the thread that takes the answers.
    pub(crate) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        window: &'scope Window,
        line: Line,
        tally: &'scope mut Tally,
    ) -> Result<Self> {
        let stream = line.stream.get_ref().try_clone()?;
        let (sent, under_way) = sync_channel(WINDOW);
        let settler = std::thread::Builder::new()
            .name("answers".to_owned())
            .spawn_scoped(scope, move || settle(line, &under_way, window, tally))?;
        Ok(Self {
            stream,
            out: Vec::with_capacity(2 * WRITE_OCTETS),
            window,
            sent,
            settler,
            is_over: false,
        })
    }

    /// Sends an article, which is also here in wire form.  `false`: what becomes of articles can be noted no more.
    pub(crate) fn send(&mut self, id: &str, article: &[u8], wire: &[u8]) -> bool {
        if !self.window.budget.try_take(article.len()) {
            self.flush();
            self.window.budget.take(article.len());
        }
        let sent = Sent {
            id: id.to_owned(),
            article: article.to_vec(),
        };
        let pushed = match self.sent.try_send(sent) {
            Err(TrySendError::Full(sent)) => {
                self.flush();
                self.sent.send(sent).is_ok()
            }
            pushed => pushed.is_ok(),
        };
        for part in [b"TAKETHIS ", id.as_bytes(), b"\r\n", wire] {
            self.out.extend_from_slice(part);
        }
        if self.out.len() >= WRITE_OCTETS {
            self.flush();
        }
        pushed
    }

    /// Nothing waits here any more.
    pub(crate) fn flush(&mut self) {
        if !self.is_over && self.stream.write_all(&self.out).is_err() {
            // The answers that came before are still read; then whoever reads them learns of it.
            self.is_over = true;
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        self.out.clear();
    }

    /// Waits for all answers.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush();
        drop(self.sent);
        let settled = self.settler.join();
        settled.unwrap_or_else(|_| Err(anyhow!("the thread that takes the answers ended")))
    }
}

/// Takes the answers; after the last that comes, articles wait.
fn settle(
    mut line: Line,
    under_way: &Receiver<Sent>,
    window: &Window,
    tally: &mut Tally,
) -> Result<()> {
    let mut settle_all = || {
        for Sent { id, article } in under_way {
            let settled = match tally.is_away() {
                true => Settled::Deferred,
                false => match line.answer().and_then(|said| understood(&said, &id)) {
                    Ok(settled) => settled,
                    Err(why) => {
                        // A writer that waits for the server to take more gives up.
                        let _ = line.stream.get_ref().shutdown(Shutdown::Both);
                        tally.is_away_because(why);
                        Settled::Deferred
                    }
                },
            };
            let noted = tally.settle(&id, &article, settled);
            window.budget.give(article.len());
            noted?;
        }
        Ok(())
    };
    let done = settle_all();
    if done.is_err() {
        // Nobody waits for room that is never given.
        while let Ok(Sent { article, .. }) = under_way.recv() {
            window.budget.give(article.len());
        }
    }
    done
}

/// What an answer to TAKETHIS says of this article; or why nothing is to be expected any more.
fn understood(said: &str, id: &str) -> Result<Settled, String> {
    let (code, rest) = said.split_once(' ').unwrap_or((said, ""));
    if let "400" | "480" | "483" | "502" | "503" = code {
        return Err(format!("the server says {said}"));
    }
    let (named, why) = rest.split_once(' ').unwrap_or((rest, ""));
    match code {
        "239" if named == id => Ok(Settled::Accepted),
        "439" if named == id => Ok(match why {
            "Duplicate" => Settled::Refused,
            "" => Settled::Rejected("no reason given".to_owned()),
            why => Settled::Rejected(why.to_owned()),
        }),
        "501" => Ok(Settled::Rejected(rest.to_owned())),
        _ => Err(format!(
            "the server cannot be understood: it says {said} of {id}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use newsreel_host::{Effect, FakeClock, Fault, FaultyDisk, MemoryDisk, Op};

    use super::*;
    use crate::batches::kept::Folder;

    /// Who had an article that could not be noted waited for its room for ever.
    #[test]
    fn what_cannot_be_noted_leaves_room() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let line = Line {
            stream: BufReader::new(stream),
        };
        let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        disk.add(Fault::new(Op::Open, "batches", Effect::Denied).forever());
        let folder = Folder::new(
            Arc::new(disk),
            Arc::new(FakeClock::new(1)),
            "/batches".into(),
        );
        let mut tally = Tally::new(folder, false, false);
        tally.is_away_because("nobody is there".to_owned());
        let (window, (sent, under_way)) = (Window::default(), sync_channel(WINDOW));
        for n in 0..2 {
            window.budget.take(100);
            let (id, article) = (format!("<{n}@x>"), vec![b'x'; 100]);
            sent.send(Sent { id, article }).unwrap();
        }
        drop(sent);
        assert!(settle(line, &under_way, &window, &mut tally).is_err());
        assert_eq!(*window.budget.taken.lock().unwrap(), 0);
    }

    #[test]
    fn what_answers_mean() {
        let check = |said, expected: Result<Settled, &str>| {
            let expected = expected.map_err(|why| format!("the server {why}"));
            assert_eq!(understood(said, "<1@x>"), expected);
        };
        check("239 <1@x>", Ok(Settled::Accepted));
        check("439 <1@x> Duplicate", Ok(Settled::Refused));
        check(
            "439 <1@x>",
            Ok(Settled::Rejected("no reason given".to_owned())),
        );
        let unwanted = "Unwanted group a.b".to_owned();
        check(
            "439 <1@x> Unwanted group a.b",
            Ok(Settled::Rejected(unwanted)),
        );
        check("400 closing", Err("says 400 closing"));
        check("480 who", Err("says 480 who"));
        check(
            "239 <2@x>",
            Err("cannot be understood: it says 239 <2@x> of <1@x>"),
        );
        check("", Err("cannot be understood: it says  of <1@x>"));
    }
}
