//! Feeds that end on this machine: a program that gets each article on its standard input, or a file that articles are appended to.
//!
//! Articles come from the feed's queue as they do for a connection, and are settled by the program's end, or when the file is on disk.
//! An article is octets to be read and nothing else: no word of it reaches a command line, an environment or a name of a file.

use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use newsreel_host::process::kill_group;
use newsreel_host::{Disk, OpenMode};
use newsreel_net::DrainWatch;
use newsreel_service::ArticleBuf;
use newsreel_wire::nntp::framing::wire_to_lf;
use newsreel_wire::{UnixTime, batch, mbox};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::time::{sleep, timeout};

use crate::config::{FeedKind, FileForm};
use crate::feed::{Feed, LinkState, Pauses, Worker};
use crate::queue::{Item, Settled};

/// Articles that are appended to a file at once, and their octets.
const APPENDED_MAX: usize = 64;
const APPENDED_OCTETS_MAX: usize = 4 << 20;
/// A file that is moved away while it is appended to is made anew, so often.
const APPENDS_MAX: usize = 3;
/// Of what a program complains so much is read and told.
const SAID_OCTETS_MAX: u64 = 500;
/// How long what a program said is waited for when it has ended, and how long it may still work when the server stops.
const LAST_WORDS: Duration = Duration::from_millis(200);
const GRACE: Duration = Duration::from_secs(10);
/// A program says with this that it never wants the article (`EX_DATAERR` of sysexits.h).
const UNWANTED: i32 = 65;

/// What works for a feed.
pub(crate) struct Sink {
    pub(crate) worker: Worker,
    pub(crate) disk: Arc<dyn Disk>,
}

/// Gives back what is not settled, however the work ends.
struct Taken<'f> {
    feed: &'f Feed,
    items: Vec<Item>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let items = std::mem::take(&mut self.items);
        if !items.is_empty() {
            self.feed.queue.lock().give_back(items);
            self.feed.more.notify_waiters();
        }
    }
}

/// A program that leads a group of processes, which is ended with it where nobody waits for it any more.
struct Leader(Child);

impl Drop for Leader {
    fn drop(&mut self) {
        // Until it was waited for, its number is its own.
        if let Some(group) = self.0.id() {
            kill_group(group);
        }
    }
}

impl Sink {
    /// Works until it is told to stop.
    pub(crate) async fn run(self, mut stop: DrainWatch) {
        let mut pauses = Pauses::new();
        loop {
            self.worker
                .feed
                .link_is(self.worker.number, LinkState::Idle);
            tokio::select! {
                () = stop.started() => return,
                () = self.worker.feed.until_waiting(1 + self.worker.number as usize, || self.worker.now_ms()) => {}
            }
            let mut stopping = self.worker.feed.stop.watch();
            // What is being appended is there whatever we do, and must be settled.
            let may_be_cut = self.worker.feed.config.kind != FeedKind::File;
            let ended = tokio::select! {
                ended = self.work(&stop) => ended,
                () = async { stopping.started().await; sleep(GRACE).await }, if may_be_cut => return,
            };
            let Err(why) = ended else { continue };
            if !pauses
                .after(&self.worker.feed, self.worker.number, why, &mut stop)
                .await
            {
                return;
            }
        }
    }

    /// Works as long as there is something; why it cannot.
    async fn work(&self, stop: &DrainWatch) -> Result<(), String> {
        self.worker
            .feed
            .link_is(self.worker.number, LinkState::Working);
        let many = match self.worker.feed.config.kind {
            FeedKind::File => APPENDED_MAX,
            _ => 1,
        };
        let mut memory = ArticleBuf::new();
        while !stop.is_started() && !self.worker.feed.is_paused() {
            let mut taken = Taken {
                feed: &self.worker.feed,
                items: Vec::new(),
            };
            self.worker
                .feed
                .queue
                .lock()
                .take(many, self.worker.now_ms(), &mut taken.items);
            if taken.items.is_empty() {
                return Ok(());
            }
            let done = match self.worker.feed.config.kind {
                FeedKind::File => self.append(&mut taken, &mut memory).await,
                _ => self.give(&mut taken, &mut memory).await,
            };
            if self.worker.feed.queue.lock().wants_more() {
                self.worker.settled.notify_one();
            }
            done?;
        }
        Ok(())
    }

    /// The text of one of the articles, with LF line ends; none: there is none now, and it is not among them any more.
    async fn text(
        &self,
        taken: &mut Taken<'_>,
        at: usize,
        memory: &mut ArticleBuf,
    ) -> Option<Vec<u8>> {
        let offered = &taken.items.get(at)?.offered;
        let mut wire = Vec::new();
        let found = self.worker.texts.append(offered, memory, &mut wire).await;
        if !matches!(found, Ok(true)) {
            let item = taken.items.remove(at);
            self.worker.textless(item, found.err().as_ref());
            return None;
        }
        let mut text = Vec::new();
        wire_to_lf(&wire, &mut text);
        Some(text)
    }

    fn settle(&self, item: &Item, how: Settled) {
        let (mut queue, now) = (self.worker.feed.queue.lock(), self.worker.now());
        let said = format!("the program ended with {UNWANTED}");
        queue.last_word(&item.offered, how, &said, now);
    }

    /// Gives one article to the program.
    async fn give(&self, taken: &mut Taken<'_>, memory: &mut ArticleBuf) -> Result<(), String> {
        let Some(text) = self.text(taken, 0, memory).await else {
            return Ok(());
        };
        let ended = self.program(&text).await;
        match ended {
            Ok(how) => {
                let (octets, now_ms) = (text.len() as u64, self.worker.now_ms());
                let mut queue = self.worker.feed.queue.lock();
                for item in &taken.items {
                    queue.spend(item.offered.sequence, octets, now_ms);
                }
                drop(queue);
                self.worker.texts.were_sent(taken.items.len());
                taken
                    .items
                    .drain(..)
                    .for_each(|item| self.settle(&item, how));
                Ok(())
            }
            Err(why) => {
                let now_ms = self.worker.now_ms();
                let mut queue = self.worker.feed.queue.lock();
                taken
                    .items
                    .drain(..)
                    .for_each(|item| queue.defer(item, now_ms));
                Err(why)
            }
        }
    }

    /// Runs the program once.
    async fn program(&self, text: &[u8]) -> Result<Settled, String> {
        let mut words = self.worker.feed.config.program.split_ascii_whitespace();
        let name = words.next().unwrap_or_default();
        let child = Command::new(name)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let mut leader = Leader(child.map_err(|error| format!("cannot run {name}: {error}"))?);
        let (input, errors) = (leader.0.stdin.take(), leader.0.stderr.take());
        let mut said = Vec::new();
        let limit_s = self.worker.feed.config.program_s;
        let ended = timeout(Duration::from_secs(u64::from(limit_s)), async {
            let spoken = async { tokio::join!(written(input, text), heard(errors, &mut said)) };
            tokio::pin!(spoken);
            let waiting = leader.0.wait();
            tokio::pin!(waiting);
            tokio::select! {
                status = &mut waiting => {
                    let _ = timeout(LAST_WORDS, &mut spoken).await;
                    status
                }
                _ = &mut spoken => waiting.await,
            }
        })
        .await;
        let status = match ended {
            Ok(status) => status.map_err(|error| format!("cannot wait for {name}: {error}"))?,
            Err(_) => {
                drop(leader);
                return Err(format!(
                    "{name} had not ended after {limit_s} s (`program_s`) and was killed"
                ));
            }
        };
        match status.code() {
            Some(0) => Ok(Settled::Accepted),
            Some(UNWANTED) => Ok(Settled::Rejected),
            _ => {
                let said = String::from_utf8_lossy(&said);
                let said = said.trim().replace(|c: char| c.is_control(), " ");
                Err(format!("{name} failed ({status}): {said}"))
            }
        }
    }

    /// Appends articles to the file, and has them on disk.
    async fn append(&self, taken: &mut Taken<'_>, memory: &mut ArticleBuf) -> Result<(), String> {
        let (mut out, mut appends) = (Vec::new(), Vec::new());
        while appends.len() < taken.items.len() && out.len() <= APPENDED_OCTETS_MAX {
            let before = out.len();
            let Some(text) = self.text(taken, appends.len(), memory).await else {
                continue;
            };
            match self.worker.feed.config.form {
                FileForm::Batch => batch::write_article(&text, &mut out),
                FileForm::Mbox => {
                    mbox::write_message(&text, UnixTime(self.worker.clock.now().secs), &mut out);
                }
            }
            appends.push((out.len() - before) as u64);
        }
        if appends.is_empty() {
            return Ok(());
        }
        let disk = Arc::clone(&self.disk);
        let (path, octets_max) = (
            self.worker.feed.config.file.clone(),
            self.worker.feed.config.waiting_octets_max,
        );
        let writing = move || appended(disk.as_ref(), &path, &out, octets_max);
        let wrote = tokio::task::spawn_blocking(writing).await;
        wrote.map_err(|error| error.to_string())??;
        self.worker.texts.were_sent(appends.len());
        let mut queue = self.worker.feed.queue.lock();
        let now_ms = self.worker.now_ms();
        for (item, octets) in taken.items.drain(..appends.len()).zip(appends) {
            queue.spend(item.offered.sequence, octets, now_ms);
            queue.last_word(&item.offered, Settled::Accepted, "", self.worker.now());
        }
        Ok(())
    }
}

/// Writes to a program that need not read it all.
async fn written(input: Option<ChildStdin>, text: &[u8]) {
    if let Some(mut input) = input {
        let _ = input.write_all(text).await;
    }
}

/// Reads what a program complains of, and keeps the beginning.
async fn heard(errors: Option<ChildStderr>, said: &mut Vec<u8>) {
    if let Some(mut errors) = errors {
        let _ = (&mut errors).take(SAID_OCTETS_MAX).read_to_end(said).await;
        let _ = tokio::io::copy(&mut errors, &mut tokio::io::sink()).await;
    }
}

/// How appending went.
enum Append {
    Done,
    /// There are so many octets already.
    Full(u64),
    /// The file has another name, or none.
    Away,
}

/// Appends to a file, whole or not at all as far as the system lets us, on disk when it returns.  Who renames the file gets a new one made,
/// which has what whoever took the other may have read before it came.
fn appended(
    disk: &dyn Disk,
    path: &std::path::Path,
    octets: &[u8],
    octets_max: u64,
) -> Result<(), String> {
    let append = || -> Result<Append, newsreel_host::Error> {
        let file = disk.open(path, OpenMode::CreateOrOpen)?;
        let len = file.len()?;
        if len >= octets_max {
            return Ok(Append::Full(len));
        }
        // Behind what a crash tore a line begins anew, in a mail folder behind an empty line.
        let ends_wanted = if octets.starts_with(b"From ") { 2 } else { 1 };
        let mut last = [b'\n'; 2];
        let there = len.min(last.len() as u64);
        let missing = last.len() - usize::try_from(there).unwrap_or(0);
        let (_, end) = last.split_at_mut(missing);
        file.read_exact_at(end, len - there)?;
        let ended = last
            .iter()
            .rev()
            .take_while(|octet| **octet == b'\n')
            .count();
        let torn = b"\n\n"
            .get(ended.min(ends_wanted)..ends_wanted)
            .unwrap_or_default();
        let written = file.write_at(&[torn, octets].concat(), len);
        let synced = written
            .and_then(|()| file.sync_all())
            .and_then(|()| match len {
                0 => disk.sync_dir(path.parent().unwrap_or_else(|| std::path::Path::new("/"))),
                _ => Ok(()),
            });
        // Whoever took it may have read it before this came.
        match synced.and_then(|()| file.is_in_place()) {
            Ok(true) => Ok(Append::Done),
            Ok(false) => Ok(Append::Away),
            Err(error) => {
                // What was not settled is not there twice later.
                let _ = file.set_len(len);
                Err(error)
            }
        }
    };
    for _ in 0..APPENDS_MAX {
        match append() {
            Ok(Append::Done) => return Ok(()),
            Ok(Append::Full(len)) => {
                return Err(format!(
                    "{} has {len} octets, and `waiting_octets_max` is {octets_max}: move it away",
                    path.display()
                ));
            }
            Ok(Append::Away) => {}
            Err(error) => return Err(io::Error::other(error).to_string()),
        }
    }
    Err(format!(
        "{} is moved away each time that it is appended to",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use newsreel_host::{Effect, Fault, FaultyDisk, MemoryDisk, Op, read_whole};

    use super::*;

    /// Whether its path led to it could not be told once the articles were on disk: they were appended again.
    #[test]
    fn what_is_not_settled_is_not_there_twice() {
        let memory = MemoryDisk::new();
        let disk = FaultyDisk::new(Arc::new(memory.clone()));
        let path = Path::new("/out");
        let octets = || read_whole(&memory, path, 1 << 10).unwrap();
        appended(&disk, path, b"one\n", 1 << 10).unwrap();
        // The length is asked for first.
        disk.add(Fault::new(Op::Stat, "/out", Effect::Medium).nth(2));
        appended(&disk, path, b"two\n", 1 << 10).unwrap_err();
        assert_eq!(octets(), b"one\n");
        appended(&disk, path, b"two\n", 1 << 10).unwrap();
        assert_eq!(octets(), b"one\ntwo\n");
    }
}
