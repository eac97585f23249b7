//! The connection: commands go out, several at a time if need be; status lines and blocks come in, in order.
//!
//! Who asks takes each answer whole before the next.  While we send, what comes is read, so that a long pipeline cannot
//! lock both sides.  After an error, or an answer that was not taken whole, a connection is not [`Client::is_idle`] and
//! of no use.  It owes nobody the meaning of a code.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use newsreel_wire::nntp::framing::is_whole_block;
use newsreel_wire::nntp::line::COMMAND_OCTETS_MAX;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::capabilities::Capabilities;
use super::error::{ClientError, Fault, Said};
use super::incoming::{Incoming, LINES_OCTETS_MAX, Line};
use super::remote::{Remote, Times};
use crate::deflate::Deflatable;
use crate::stream::Stream;

/// Commands that may be on their way at once: their octets fit in what any system buffers, so that sending them never
/// waits for answers to be taken.
pub const PIPELINED_MAX: usize = 64;

/// How long a server may take to say goodbye, and how long to close the connection behind that.
const GOODBYE: Duration = Duration::from_secs(2);

/// A connection to a server, ready for commands.
#[derive(Debug)]
pub struct Client<Io> {
    pub(super) server: Arc<str>,
    pub(super) io: Deflatable<Stream<Io>>,
    pub(super) incoming: Incoming,
    pub(super) capabilities: Capabilities,
    pub(super) may_post: bool,
    outgoing: Vec<u8>,
    /// Where the last status line's text is, in `incoming`.
    text: (usize, usize),
    /// Commands whose answers have not come.
    owed: usize,
    in_block: bool,
    /// A command that selects a group was put in the pipeline.
    has_selected: bool,
    /// Something failed, or was given up half done.
    is_broken: bool,
    left_out: u64,
    times: Times,
    /// Who asks now waits no longer in silence than this; none: as ever.
    patience: Option<Duration>,
    /// Since when nothing has come that is awaited; none: nothing is.
    silent_since: Option<Instant>,
    /// Answers that came by now.
    answers: u64,
    /// When the answer that is being taken has to be over.
    until: Option<Instant>,
    pub(super) reached_in: Duration,
}

/// Some octets of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'c> {
    /// The octets in wire form: dots stuffed, the last with the terminator.
    pub octets: &'c [u8],
    /// Whether the block ends with them.
    pub is_last: bool,
}

impl<Io: AsyncRead + AsyncWrite + Unpin> Client<Io> {
    pub(super) fn new(stream: Stream<Io>, remote: &Remote) -> Self {
        Self {
            server: remote.name().into(),
            io: Deflatable::new(stream),
            incoming: Incoming::new(),
            capabilities: Capabilities::default(),
            may_post: false,
            outgoing: Vec::new(),
            text: (0, 0),
            owed: 0,
            in_block: false,
            has_selected: false,
            is_broken: false,
            left_out: 0,
            times: remote.times,
            patience: None,
            silent_since: None,
            answers: 0,
            until: None,
            reached_in: Duration::ZERO,
        }
    }

    /// What the server says it can do, asked after the last thing that can change it.
    #[must_use]
    pub const fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Whether the server said that we may post.
    #[must_use]
    pub const fn may_post(&self) -> bool {
        self.may_post
    }

    /// Whether nothing is on its way in either direction: another may use the connection.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.is_broken
            && !self.in_block
            && self.owed == 0
            && self.outgoing.is_empty()
            && self.incoming.is_empty()
    }

    /// Whether an idle connection is still there: the server has neither closed it nor said anything.
    pub async fn is_fresh(&mut self) -> bool {
        self.is_idle() && poll_fn(|cx| Poll::Ready(self.poll_read(cx).is_pending())).await
    }

    /// Who asks from now on waits no longer in silence than this, if that is less than usual; none: as usual.
    pub const fn wait_at_most(&mut self, patience: Option<Duration>) {
        self.patience = patience;
    }

    /// The longest silence while something is awaited, or not taken.
    fn silence(&self) -> Duration {
        let usual = self.times.silence;
        self.patience.map_or(usual, |patience| patience.min(usual))
    }

    /// How long nothing has come that is awaited, or was until somebody gave that up.
    pub(super) fn silent_for(&self) -> Duration {
        self.silent_since
            .map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// How many answers came by now.
    pub(super) const fn answers(&self) -> u64 {
        self.answers
    }

    /// Whether a group may be selected on it.
    #[must_use]
    pub const fn has_selected(&self) -> bool {
        self.has_selected
    }

    /// Lines of blocks that were left out, because they were too long or no lines.
    #[must_use]
    pub const fn lines_left_out(&self) -> u64 {
        self.left_out
    }

    /// Commands that are not answered yet.
    #[must_use]
    pub const fn owed(&self) -> usize {
        self.owed
    }

    /// Puts a command in the pipeline, its words with a blank between them; it goes out with [`Client::send`] or when an
    /// answer is waited for.
    ///
    /// # Errors
    /// When it is no one line or too long, or [`PIPELINED_MAX`] are under way: nothing was put there.
    pub fn command(&mut self, words: &[&[u8]]) -> Result<(), ClientError> {
        let len = words.iter().map(|word| word.len() + 1).sum::<usize>();
        let is_line = |word: &&[u8]| memchr::memchr3(b'\r', b'\n', 0, word).is_none();
        let unsayable = if len >= COMMAND_OCTETS_MAX {
            "it is longer than a command may be"
        } else if !words.iter().all(is_line) {
            "it is not one line"
        } else if self.owed >= PIPELINED_MAX {
            "too many commands wait for their answers"
        } else {
            for (place, word) in words.iter().enumerate() {
                if place > 0 {
                    self.outgoing.push(b' ');
                }
                self.outgoing.extend_from_slice(word);
            }
            self.outgoing.extend_from_slice(b"\r\n");
            self.has_selected |= matches!(words, [b"GROUP" | b"LISTGROUP", ..]);
            self.owed += 1;
            return Ok(());
        };
        Err(self.error("a command", Fault::Unsayable(unsayable)))
    }

    /// Sends what is in the pipeline.
    ///
    /// # Errors
    /// When the connection ends, or the server takes nothing for too long.
    pub async fn send(&mut self) -> Result<(), ClientError> {
        let outgoing = std::mem::take(&mut self.outgoing);
        self.send_octets(&outgoing).await?;
        self.outgoing = outgoing;
        self.outgoing.clear();
        Ok(())
    }

    /// Sends an article, or any other block: after a command that has one with it, or an answer that asks for it.
    ///
    /// # Errors
    /// As [`Client::send`]; and when it is not one block in wire form, terminator included.
    pub async fn article(&mut self, wire: &[u8]) -> Result<(), ClientError> {
        if !is_whole_block(wire) {
            return Err(self.error("an article", Fault::Unsayable("it is not one block")));
        }
        self.send().await?;
        self.send_octets(wire).await
    }

    /// The code of the next answer; its text is [`Client::text`].  What was asked is said in errors.
    ///
    /// # Errors
    /// When none comes in time, or it is no status line.
    pub async fn reply(&mut self, doing: &'static str) -> Result<u16, ClientError> {
        self.send().await?;
        self.begin(doing)?;
        let (from, to) = loop {
            match self.incoming.status() {
                Ok(Some(found)) => break found,
                Ok(None) => self.read(doing).await?,
                Err(fault) => return Err(self.broken(doing, fault)),
            }
        };
        let Some(code) = code_of(self.incoming.get(from, to)) else {
            let said = Said::new(self.incoming.get(from, to));
            return Err(self.broken(doing, Fault::Nonsense(said)));
        };
        self.text = ((from + 4).min(to), to);
        // These two ask for an article, and the answer is what comes after it.
        if !matches!(code, 335 | 340) {
            self.owed = self.owed.saturating_sub(1);
        }
        self.until = None;
        self.is_broken = false;
        self.answers += 1;
        Ok(code)
    }

    /// The text of the answer whose code came last, until something else is asked or read.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.incoming.get(self.text.0, self.text.1)
    }

    /// An error that says what the last answer was.
    #[must_use]
    pub fn refused(&self, doing: &'static str, code: u16) -> ClientError {
        let said = Said::new(self.text());
        self.error(doing, Fault::Refused { code, said })
    }

    /// The next octets of the block that follows an answer.
    ///
    /// # Errors
    /// When nothing comes for too long, or all of it takes too long.
    pub async fn piece(&mut self, doing: &'static str) -> Result<Piece<'_>, ClientError> {
        self.begin_block(doing)?;
        let (from, to, is_last) = loop {
            if let Some(found) = self.incoming.portion() {
                break found;
            }
            self.read(doing).await?;
        };
        self.is_broken = false;
        if is_last {
            self.end_block();
        }
        let octets = self.incoming.get(from, to);
        Ok(Piece { octets, is_last })
    }

    /// An error that says that the block is larger than it may be; its connection is of no use any more.
    pub fn too_large(&mut self, doing: &'static str, octets_max: usize) -> ClientError {
        self.broken(doing, Fault::TooLarge(octets_max))
    }

    /// Appends a whole block in wire form to `out`, which must not become longer than `octets_max` by it.
    ///
    /// # Errors
    /// As [`Client::piece`]; and when it is larger.
    pub async fn block(
        &mut self,
        doing: &'static str,
        octets_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), ClientError> {
        loop {
            let piece = self.piece(doing).await?;
            if out.len() + piece.octets.len() > octets_max {
                return Err(self.too_large(doing, octets_max));
            }
            out.extend_from_slice(piece.octets);
            if piece.is_last {
                return Ok(());
            }
        }
    }

    /// The next line of the block that follows an answer, without its CRLF and a stuffed dot; none: it has ended.
    ///
    /// # Errors
    /// As [`Client::piece`].
    pub async fn line(&mut self, doing: &'static str) -> Result<Option<&[u8]>, ClientError> {
        loop {
            match self.next_line(doing).await? {
                Line::Whole(from, to) => return Ok(Some(self.incoming.get(from, to))),
                Line::End => return Ok(None),
                _ => {}
            }
        }
    }

    /// The same; it says also where a line was left out, which gives no octets.
    ///
    /// # Errors
    /// As [`Client::piece`].
    pub async fn line_or_gap(
        &mut self,
        doing: &'static str,
    ) -> Result<Option<Option<&[u8]>>, ClientError> {
        Ok(match self.next_line(doing).await? {
            Line::Whole(from, to) => Some(Some(self.incoming.get(from, to))),
            Line::End => None,
            _ => Some(None),
        })
    }

    /// What is next in a block: a line, the end, or one that is left out.
    async fn next_line(&mut self, doing: &'static str) -> Result<Line, ClientError> {
        self.begin_block(doing)?;
        let found = loop {
            match self.incoming.line() {
                Line::More => self.read(doing).await?,
                Line::TooMuch => return Err(self.too_large(doing, LINES_OCTETS_MAX)),
                found => break found,
            }
        };
        self.is_broken = false;
        match found {
            Line::End => self.end_block(),
            Line::LeftOut => self.left_out += 1,
            _ => {}
        }
        Ok(found)
    }

    /// How long the server's system took to answer when the connection was made, however busy the server is; zero of a connection that
    /// was there.
    #[must_use]
    pub const fn reached_in(&self) -> Duration {
        self.reached_in
    }

    /// The connection itself, for who sends more at once than answers can be waited for one by one; nothing is on its way.
    #[must_use]
    pub fn into_io(self) -> Option<Deflatable<Stream<Io>>> {
        self.is_idle().then_some(self.io)
    }

    /// Says goodbye where nothing is under way, ends our side, and waits a moment until the server has closed the connection, too.
    pub async fn quit(mut self) {
        if self.is_idle() {
            let goodbye = async {
                self.command(&[b"QUIT"])?;
                self.reply("QUIT").await
            };
            let _ = tokio::time::timeout(GOODBYE, goodbye).await;
        }
        self.closed().await;
    }

    /// Ends our side, and waits a moment for the end of the server's: until then the server counts the connection.
    pub(super) async fn closed(mut self) {
        let closing = async {
            poll_fn(|cx| Pin::new(&mut self.io).poll_shutdown(cx)).await?;
            tokio::io::copy(&mut self.io, &mut tokio::io::sink()).await
        };
        let _ = tokio::time::timeout(GOODBYE, closing).await;
    }

    /// Something unasked is expected: the greeting.
    pub(super) const fn owe(&mut self) {
        self.owed += 1;
    }

    /// The same connection over TLS.  Where that fails the server may count it until it has closed it.
    pub(super) async fn secured(
        self,
        trust: &super::trust::Trust,
        until: Instant,
    ) -> Result<Self, ClientError> {
        // What came in front of the handshake would be taken for something said over TLS.
        if !self.incoming.is_empty() {
            let error = self.error("TLS", Fault::Nonsense(Said::new(b"octets before TLS")));
            self.closed().await;
            return Err(error);
        }
        let slow = self.error("TLS", Fault::Slow(self.times.connect));
        let handshake = self.io.into_inner().secure_to(trust);
        let (io, why) = match tokio::time::timeout_at(until, handshake).await {
            Ok(Ok(secured)) => (secured, None),
            Ok(Err((why, plain))) => (plain, Some(why)),
            Err(_) => {
                // It is closed here: the server is left the time to see that.
                tokio::time::sleep(GOODBYE).await;
                return Err(slow);
            }
        };
        let client = Self {
            io: Deflatable::new(io),
            ..self
        };
        let Some(source) = why else {
            return Ok(client);
        };
        let error = client.error("TLS", Fault::Tls { source });
        client.closed().await;
        Err(error)
    }

    pub(super) fn error(&self, doing: &'static str, fault: Fault) -> ClientError {
        let server = self.server.clone();
        ClientError {
            server,
            doing,
            fault,
        }
    }

    fn broken(&mut self, doing: &'static str, fault: Fault) -> ClientError {
        self.is_broken = true;
        self.error(doing, fault)
    }

    /// An answer begins to be taken, or goes on; given up before it is whole, the connection is broken.
    fn begin(&mut self, doing: &'static str) -> Result<(), ClientError> {
        if self.is_broken {
            return Err(self.error(doing, Fault::Closed));
        }
        self.is_broken = true;
        let until = Instant::now() + self.times.answer;
        self.until.get_or_insert(until);
        Ok(())
    }

    fn begin_block(&mut self, doing: &'static str) -> Result<(), ClientError> {
        self.begin(doing)?;
        self.in_block = true;
        Ok(())
    }

    const fn end_block(&mut self) {
        self.in_block = false;
        self.until = None;
    }

    /// Waits until some more has come.
    async fn read(&mut self, doing: &'static str) -> Result<(), ClientError> {
        let silence = self.silence();
        let begun = Instant::now();
        self.silent_since = Some(begun);
        let silent = begun + silence;
        let until = self.until.map_or(silent, |until| until.min(silent));
        let reading = poll_fn(|cx| self.poll_read(cx));
        let fault = match tokio::time::timeout_at(until, reading).await {
            Ok(Ok(1..)) => {
                self.silent_since = None;
                return Ok(());
            }
            Ok(Ok(0)) => Fault::Closed,
            Ok(Err(error)) => fault_of(error),
            Err(_) if until < silent => Fault::Slow(self.times.answer),
            Err(_) => return Err(self.broken(doing, Fault::Silent(silence))),
        };
        self.silent_since = None;
        Err(self.broken(doing, fault))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(self.incoming.room());
        if room.remaining() == 0 {
            return Poll::Pending;
        }
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut room))?;
        let len = room.filled().len();
        self.incoming.came(len);
        Poll::Ready(Ok(len))
    }

    /// Sends octets to the last; given up before, the connection is broken.
    async fn send_octets(&mut self, octets: &[u8]) -> Result<(), ClientError> {
        if octets.is_empty() {
            return Ok(());
        }
        if self.is_broken {
            return Err(self.error("sending", Fault::Closed));
        }
        self.is_broken = true;
        let (mut sent, silence) = (0, self.silence());
        loop {
            self.silent_since = Some(Instant::now());
            let step = poll_fn(|cx| self.poll_send(cx, octets, &mut sent));
            let fault = match tokio::time::timeout(silence, step).await {
                Ok(Ok(false)) => continue,
                Ok(Ok(true)) => break,
                // What the server said before it closed tells more than that it did.
                Ok(Err(_)) if !self.incoming.is_empty() => break,
                Ok(Err(error)) => fault_of(error),
                Err(_) => return Err(self.broken("sending", Fault::Silent(silence))),
            };
            self.silent_since = None;
            return Err(self.broken("sending", fault));
        }
        self.silent_since = None;
        self.is_broken = false;
        Ok(())
    }

    /// One step: some octets sent, or some come meanwhile; true: all is sent.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        octets: &[u8],
        sent: &mut usize,
    ) -> Poll<io::Result<bool>> {
        let left = octets.get(*sent..).unwrap_or_default();
        let polled = if left.is_empty() {
            Pin::new(&mut self.io).poll_flush(cx).map_ok(|()| true)
        } else {
            let written = Pin::new(&mut self.io).poll_write(cx, left);
            written.map_ok(|len| {
                *sent += len;
                false
            })
        };
        if polled.is_ready() {
            return polled;
        }
        match ready!(self.poll_read(cx))? {
            0 => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            _ => Poll::Ready(Ok(false)),
        }
    }
}

/// A broken pipe and its like are a connection that was closed.
fn fault_of(error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::UnexpectedEof => Fault::Closed,
        _ => Fault::Io(error),
    }
}

/// The code of a status line: three digits, and a blank or nothing behind them.
fn code_of(line: &[u8]) -> Option<u16> {
    let (digits, rest) = line.split_at_checked(3)?;
    let is_code = matches!(digits.first(), Some(b'1'..=b'5'))
        && digits.iter().all(u8::is_ascii_digit)
        && matches!(rest.first(), None | Some(b' '));
    is_code.then(|| {
        let digit = |octet: &u8| u16::from(*octet - b'0');
        digits
            .iter()
            .fold(0, |code, octet| code * 10 + digit(octet))
    })
}
