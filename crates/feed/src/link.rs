//! One connection of a feed: made when there is something to send, made again when it ends, with growing pauses.
//!
//! Articles are taken from the feed's queue as the window has room, and whatever ends the connection, those that are not settled
//! go back there.  Reading and writing never wait for each other, so that a peer that answers late cannot block itself.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use newsreel_net::DrainWatch;
use newsreel_service::ArticleBuf;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::conversation::{Conversation, Manner, Over, Rest, Word};
use crate::dial::Dial;
use crate::feed::{LinkState, Pauses, Worker};
use crate::queue::{Item, Settled};

/// How long the peer may take for an answer, to connect, to take our goodbye.
const ANSWER: Duration = Duration::from_secs(300);
const CONNECT: Duration = Duration::from_secs(30);
const GOODBYE: Duration = Duration::from_secs(2);
/// A connection on which nothing was sent for so long is closed.
const IDLE: Duration = Duration::from_secs(120);
/// So much unsent is enough for the socket.
const UNSENT_MAX: usize = 256 * 1024;
/// No line of an answer is longer.
const LINE_MAX: usize = 4096;
/// A peer that is reached sooner is near: what is under way is with it and not on its way.  Its answers are left to come together while it has
/// enough to do, for each would wake us, and on the same machine it would have less of the processors.
const NEAR: Duration = Duration::from_millis(2);
const READ_OCTETS: usize = 16 * 1024;

/// What a connection needs.
pub(crate) struct Link {
    pub(crate) worker: Worker,
    pub(crate) dial: Arc<dyn Dial>,
}

/// What texts are read into.
struct Reading {
    memory: ArticleBuf,
    /// The text of what is offered by IHAVE.
    ahead: Vec<u8>,
}

/// Why a connection ended.
enum End {
    /// There was nothing to send for long, or the feed is paused or stops.
    Done,
    /// It is made again later.
    Failed(String),
}

impl Link {
    /// Sends until it is told to stop.
    pub(crate) async fn run(self, mut stop: DrainWatch) {
        let mut pauses = Pauses::new();
        loop {
            self.worker
                .feed
                .link_is(self.worker.number, LinkState::Idle);
            tokio::select! {
                () = stop.started() => return,
                () = self.until_needed() => {}
            }
            let ended = tokio::select! {
                ended = self.connection() => ended,
                // What was under way when it is cut is still open.
                () = stop.started() => return,
            };
            let End::Failed(why) = ended else {
                continue;
            };
            if !pauses
                .after(&self.worker.feed, self.worker.number, why, &mut stop)
                .await
            {
                return;
            }
        }
    }

    /// Each further connection is needed only when there is a window's worth for it.
    async fn until_needed(&self) {
        let least = 1 + self.worker.number as usize * self.worker.feed.config.window as usize;
        self.worker
            .feed
            .until_waiting(least, || self.worker.now_ms())
            .await;
    }

    async fn connection(&self) -> End {
        self.worker
            .feed
            .link_is(self.worker.number, LinkState::Connecting);
        let dialled = match timeout(CONNECT, self.dial.dial(&self.worker.feed.peer)).await {
            Ok(Ok(dialled)) => dialled,
            Ok(Err(error)) => return End::Failed(error.to_string()),
            Err(_) => return End::Failed("no connection came about in time".to_owned()),
        };
        let (reader, writer) = tokio::io::split(dialled.io);
        let mut lines = Lines::new(reader);
        let mut wire = Wire {
            lines: &mut lines,
            writer,
            is_near: dialled.reached_in < NEAR,
        };
        match timeout(ANSWER, wire.begin()).await {
            Ok(Ok(manner)) => self.converse(wire, manner).await,
            Ok(Err(why)) => End::Failed(why),
            Err(_) => End::Failed("the peer says nothing".to_owned()),
        }
    }

    async fn converse<R, W>(&self, wire: Wire<'_, R, W>, manner: Manner) -> End
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let mut talk = Guard {
            worker: &self.worker,
            talk: Some(Conversation::new(manner, self.worker.feed.config.window)),
        };
        let Some(talk) = talk.talk.as_mut() else {
            return End::Done;
        };
        self.exchange(wire, talk).await
    }

    /// The conversation itself.
    async fn exchange<R, W>(&self, wire: Wire<'_, R, W>, talk: &mut Conversation) -> End
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let (lines, mut writer, is_near) = (wire.lines, wire.writer, wire.is_near);
        // What is to be sent, how much of it is written, and whether that has left.
        let (mut out, mut sent, mut flushed) = (Vec::new(), 0, true);
        let (memory, ahead, mut items) = (ArticleBuf::new(), Vec::new(), Vec::new());
        let mut reading = Reading { memory, ahead };
        let (mut was_skipping, mut was_idle) = (None, true);
        // When something was offered first, or the peer answered, or took a part of what is to be sent.
        let mut heard = Instant::now();
        loop {
            let (more, mut has_come) = (self.worker.feed.more.notified(), false);
            self.offer(talk, &mut items, &mut reading, &mut out).await;
            if sent == out.len() || sent > UNSENT_MAX {
                out.drain(..sent);
                sent = 0;
            }
            self.texts_of(talk, &mut reading, &mut out, sent).await;
            if was_skipping.replace(talk.skips()) != Some(talk.skips()) {
                self.tell(talk);
            }
            let is_idle = talk.is_idle() && sent == out.len();
            if is_idle && self.worker.feed.is_paused() {
                break;
            }
            if std::mem::replace(&mut was_idle, is_idle) && !is_idle {
                heard = Instant::now();
            }
            let patience = if is_idle { IDLE } else { ANSWER };
            let looks_after = self.looks_after(talk);
            tokio::select! {
                read = lines.fill() => match read {
                    Ok(()) => (has_come, heard) = (true, Instant::now()),
                    Err(why) => return blamed(talk, why),
                },
                moved = push(&mut writer, out.get(sent..).unwrap_or_default()), if sent < out.len() || !flushed => match moved {
                    Ok(0) => flushed = true,
                    Ok(octets) => {
                        (sent, flushed) = (sent + octets, false);
                        heard = if sent < out.len() { Instant::now() } else { heard };
                    }
                    Err(error) => return self.last_words(talk, lines, error.to_string()).await,
                },
                () = more, if talk.room() > 0 => {}
                // What was put off becomes due, and a quota is open again, without a word.
                () = sleep(looks_after.unwrap_or_default()), if looks_after.is_some() => {}
                () = sleep_until(heard + patience) => match is_idle {
                    true => break,
                    false => return blamed(talk, "the peer does not answer".to_owned()),
                },
            }
            if let Some(end) = self.heed(talk, lines) {
                return end;
            }
            if has_come && sent == out.len() {
                let_more_come(talk, is_near).await;
            }
        }
        goodbye(&mut writer).await;
        End::Done
    }

    /// The peer takes no more: what it said until then is heeded.
    async fn last_words<R>(&self, talk: &mut Conversation, lines: &mut Lines<R>, why: String) -> End
    where
        R: AsyncRead + Unpin,
    {
        let said = timeout(GOODBYE, async {
            loop {
                if let Some(end) = self.heed(talk, lines) {
                    return Some(end);
                }
                if lines.fill().await.is_err() {
                    return None;
                }
            }
        });
        match said.await {
            Ok(Some(end)) => end,
            _ => blamed(talk, why),
        }
    }

    /// Says how it sends.
    fn tell(&self, talk: &Conversation) {
        let sending = LinkState::Sending {
            ihave: talk.manner() == Manner::Ihave,
            skips_check: talk.skips(),
        };
        self.worker.feed.link_is(self.worker.number, sending);
    }

    /// Offers what there is, as far as the window has room.  Who was offered an article by IHAVE cannot be told that there is nothing:
    /// its text is read before.
    async fn offer(
        &self,
        talk: &mut Conversation,
        items: &mut Vec<Item>,
        reading: &mut Reading,
        out: &mut Vec<u8>,
    ) {
        while talk.room() > 0 && !self.worker.feed.is_paused() {
            let now_ms = self.worker.now_ms();
            let is_hungry = self
                .worker
                .feed
                .queue
                .lock()
                .take(talk.room(), now_ms, items);
            if is_hungry {
                self.worker.settled.notify_one();
            }
            let before = out.len();
            for item in items.drain(..) {
                talk.offer(item, out);
            }
            let Some(item) = talk.offered_by_ihave() else {
                return;
            };
            reading.ahead.clear();
            let (memory, ahead) = (&mut reading.memory, &mut reading.ahead);
            match self.worker.texts.append(&item.offered, memory, ahead).await {
                Ok(true) => return,
                gone_or_not => {
                    out.truncate(before);
                    if let Some(item) = talk.unoffer() {
                        self.worker.textless(item, gone_or_not.err().as_ref());
                    }
                }
            }
        }
    }

    /// After which time more is offered without a word, where there is room.
    fn looks_after(&self, talk: &Conversation) -> Option<Duration> {
        let now_ms = self.worker.now_ms();
        let queue = self.worker.feed.queue.lock();
        queue.looks_after(now_ms).filter(|_| talk.room() > 0)
    }

    /// Puts the texts that the peer waits for behind what is not sent yet.
    async fn texts_of(
        &self,
        talk: &mut Conversation,
        reading: &mut Reading,
        out: &mut Vec<u8>,
        sent: usize,
    ) {
        while out.len() - sent < UNSENT_MAX {
            let before = out.len();
            let Some(item) = talk.next_text(out) else {
                return;
            };
            let (text_at, article) = (out.len(), item.offered.sequence);
            let found = match talk.manner() {
                Manner::Ihave => {
                    out.append(&mut reading.ahead);
                    Ok(true)
                }
                Manner::Streaming => {
                    let memory = &mut reading.memory;
                    self.worker.texts.append(&item.offered, memory, out).await
                }
            };
            match found {
                Ok(true) => {
                    let octets = (out.len() - text_at) as u64;
                    let now_ms = self.worker.now_ms();
                    let mut queue = self.worker.feed.queue.lock();
                    queue.spend(article, octets, now_ms);
                    drop(queue);
                    self.worker.texts.were_sent(1);
                    talk.sent();
                }
                gone_or_not => {
                    out.truncate(before);
                    if let Some(item) = talk.without_text() {
                        self.worker.textless(item, gone_or_not.err().as_ref());
                    }
                }
            }
        }
    }

    /// Takes in all answers that have come.
    fn heed<R>(&self, talk: &mut Conversation, lines: &mut Lines<R>) -> Option<End> {
        let (mut queue, mut end, mut any) = (self.worker.feed.queue.lock(), None, false);
        let now = self.worker.now();
        while let Some(line) = lines.next() {
            match talk.answer(line) {
                Word::Wanted => {}
                Word::Settled(item, how) => {
                    any = true;
                    queue.last_word(&item.offered, how, &said(how, line), now);
                }
                Word::Unanswerable(item, why) => {
                    any = true;
                    queue.last_word(&item.offered, Settled::Rejected, &why, now);
                    self.worker.feed.tell_rejected(&item, &why);
                }
                Word::Deferred(item) => queue.defer(item, self.worker.now_ms()),
                Word::Over(Over::Closing(why)) => {
                    end = Some(End::Failed(format!("the peer says {why}")));
                }
                Word::Over(Over::Denied(why)) => {
                    end = Some(End::Failed(format!("the peer does not let us send: {why}")));
                }
                Word::Over(Over::Broken(why)) => {
                    end = Some(End::Failed(format!("the peer cannot be understood: {why}")));
                }
            }
            if end.is_some() {
                break;
            }
        }
        let is_hungry = any && queue.wants_more();
        drop(queue);
        if is_hungry {
            self.worker.settled.notify_one();
        }
        end
    }
}

/// Waits where a peer has enough to do.
async fn let_more_come(talk: &mut Conversation, is_near: bool) {
    if is_near && let Some(pause) = talk.pause() {
        sleep(pause).await;
    }
}

/// The conversation ends where an answer was due.
const fn blamed(talk: &mut Conversation, why: String) -> End {
    talk.blame();
    End::Failed(why)
}

/// The words of a peer that rejects an article; of others nobody needs more than which it was.
fn said(how: Settled, line: &[u8]) -> Cow<'_, str> {
    match how {
        Settled::Rejected => String::from_utf8_lossy(line),
        _ => Cow::Borrowed(""),
    }
}

/// Writes some of this, or has everything leave when there is nothing to write: then 0.
async fn push<W: AsyncWrite + Unpin>(writer: &mut W, octets: &[u8]) -> io::Result<usize> {
    if octets.is_empty() {
        writer.flush().await?;
        return Ok(0);
    }
    match writer.write(octets).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        octets => Ok(octets),
    }
}

/// The peer need not answer: nothing is under way.
async fn goodbye<W: AsyncWrite + Unpin>(writer: &mut W) {
    let goodbye = async {
        writer.write_all(b"QUIT\r\n").await?;
        writer.shutdown().await
    };
    let _ = timeout(GOODBYE, goodbye).await;
}

/// Gives back what is not settled, however a conversation ends.
struct Guard<'w> {
    worker: &'w Worker,
    talk: Option<Conversation>,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let feed = &self.worker.feed;
        let rest = self.talk.take().map(Conversation::into_rest);
        let Rest { blamed, items } = rest.unwrap_or_default();
        let mut queue = feed.queue.lock();
        queue.give_back(items);
        let given_up = blamed.and_then(|item| queue.blame(item, self.worker.now_ms()));
        if let Some(item) = given_up {
            let times = item.blamed;
            let why = format!("{times} connections ended at it, while others went through");
            queue.last_word(&item.offered, Settled::Rejected, &why, self.worker.now());
            feed.tell_rejected(&item, &why);
        }
        drop(queue);
        feed.more.notify_waiters();
    }
}

/// A connection in two halves.
struct Wire<'l, R, W> {
    lines: &'l mut Lines<R>,
    writer: W,
    /// See [`NEAR`].
    is_near: bool,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Wire<'_, R, W> {
    /// Asks whether the peer streams.
    async fn begin(&mut self) -> Result<Manner, String> {
        let streams = self.ask("MODE STREAM\r\n").await?;
        match streams.get(..3) {
            Some("203") => Ok(Manner::Streaming),
            // What does not know the command, or has no use for it, says so in more than one way.
            Some(code) if code.starts_with(['2', '5']) => Ok(Manner::Ihave),
            _ => Err(format!("the peer says to MODE STREAM {streams}")),
        }
    }

    async fn ask(&mut self, command: &str) -> Result<String, String> {
        let wrote = self.writer.write_all(command.as_bytes()).await;
        wrote.map_err(|error| error.to_string())?;
        let flushed = self.writer.flush().await;
        flushed.map_err(|error| error.to_string())?;
        self.line().await
    }

    async fn line(&mut self) -> Result<String, String> {
        loop {
            if let Some(line) = self.lines.next() {
                return Ok(String::from_utf8_lossy(line).into_owned());
            }
            self.lines.fill().await?;
        }
    }
}

/// Lines that come in.
struct Lines<R> {
    reader: R,
    buf: Vec<u8>,
    /// What was given out.
    taken: usize,
}

impl<R> Lines<R> {
    fn new(reader: R) -> Self {
        Self {
            reader,
            buf: Vec::new(),
            taken: 0,
        }
    }

    /// The next whole line without its end.
    fn next(&mut self) -> Option<&[u8]> {
        let rest = self.buf.get(self.taken..).unwrap_or_default();
        let len = rest.iter().position(|octet| *octet == b'\n')?;
        let start = self.taken;
        self.taken += len + 1;
        let line = self.buf.get(start..start + len)?;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Waits for more octets; may be dropped while it waits.
    async fn fill(&mut self) -> Result<(), String> {
        self.buf.drain(..self.taken);
        self.taken = 0;
        if self.buf.len() > LINE_MAX + READ_OCTETS {
            return Err("the peer sends a line without an end".to_owned());
        }
        self.buf.reserve(READ_OCTETS);
        match self.reader.read_buf(&mut self.buf).await {
            Ok(0) => Err("the peer closed the connection".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
