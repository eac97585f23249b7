//! Octets that may become compressed in both directions: raw DEFLATE (RFC 1951), as RFC 8054 has it.
//!
//! Of what comes no more is inflated than is asked for, and of what is sent no more is kept than [`HELD_OCTETS_MAX`], so
//! memory is bounded whatever the other side sends.  What was written has left whole after a flush.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Compressed octets of one direction that are kept.
const HELD_OCTETS_MAX: usize = 16 << 10;

/// How much work is made of compressing (decision 0016): so much for a connection that its network holds back, or that wants little ...
const LEVEL: Compression = Compression::new(2);

/// ... and so much where nothing but this processor does.
const LEVEL_IN_HASTE: Compression = Compression::new(1);

/// A connection is in haste that takes so much text in a second, and never lets us wait.
const HASTE_OCTETS_PER_S: u128 = 16_000_000;

/// How long it is looked at before that is said.
const HASTE_LOOK: Duration = Duration::from_millis(50);

/// Octets that may come beyond [`OCTETS_PAID_FOR`]: no compressor writes so many empty blocks.
const FRUITLESS_OCTETS_MAX: usize = 64 << 10;

/// So many that inflate to nothing are a turn: 16 KiB of empty blocks took half a millisecond, and others waited.
const FRUITLESS_AT_ONCE: usize = 2 << 10;

/// A last block with nothing in it (RFC 1951, 3.2.6).
const END: [u8; 2] = [3, 0];

/// Octets of which one that they inflate to pays for so many: a flush behind each octet of text takes seven.
const OCTETS_PAID_FOR: usize = 64;

/// Octets that are inflated at once.
const INFLATED_OCTETS_MAX: usize = 64 << 10;

/// Octets that may be compressed.
#[derive(Debug)]
pub struct Deflatable<Io> {
    io: Io,
    both: Option<Box<Both>>,
}

/// Both directions of a compressed connection.
#[derive(Debug)]
struct Both {
    inflate: Decompress,
    /// What came and is not inflated yet.
    came: Held,
    /// Octets that came and were not paid for by some that they inflated to.
    fruitless: usize,
    /// The other side has ended its stream.
    is_over: bool,
    /// Made when something is sent: who sends nothing but what ends its connection costs no compressor.
    deflate: Option<Compress>,
    haste: Haste,
    /// What is compressed and not sent yet.
    going: Held,
    /// What was written since the last flush may still be in the compressor.
    is_unflushed: bool,
    /// Our stream is ended.
    is_ended: bool,
}

/// What tells how much compressing is worth on a connection.
#[derive(Debug)]
struct Haste {
    since: Instant,
    /// Octets of text since then.
    text: u64,
    /// The network had not taken what there was.
    has_waited: bool,
    is_there: bool,
}

impl Haste {
    fn new(now: Instant) -> Self {
        Self {
            since: now,
            text: 0,
            has_waited: false,
            is_there: false,
        }
    }

    /// Looks, if it is time; whether it changed.
    fn has_changed(&mut self, now: Instant) -> bool {
        let looked = now.saturating_duration_since(self.since);
        if looked < HASTE_LOOK {
            return false;
        }
        let per_s = u128::from(self.text) * 1_000_000 / looked.as_micros();
        let is_there = per_s >= HASTE_OCTETS_PER_S && !self.has_waited;
        let before = self.is_there;
        *self = Self::new(now);
        self.is_there = is_there;
        is_there != before
    }

    const fn level(&self) -> Compression {
        match self.is_there {
            true => LEVEL_IN_HASTE,
            false => LEVEL,
        }
    }
}

/// Octets between one side and the other.
#[derive(Debug)]
struct Held {
    octets: Vec<u8>,
    from: usize,
}

impl Held {
    fn new() -> Self {
        Self {
            octets: Vec::with_capacity(HELD_OCTETS_MAX),
            from: 0,
        }
    }

    fn left(&self) -> &[u8] {
        self.octets.get(self.from..).unwrap_or_default()
    }

    /// So many octets from the front are done with.
    fn used(&mut self, len: usize) {
        self.from += len;
        if self.from >= self.octets.len() {
            self.octets.clear();
            self.from = 0;
        }
    }

    const fn is_full(&self) -> bool {
        self.octets.len() == self.octets.capacity()
    }
}

impl<Io> Deflatable<Io> {
    /// Not compressed.
    pub const fn new(io: Io) -> Self {
        Self { io, both: None }
    }

    /// From here on compressed, in both directions.
    pub fn deflate(&mut self) {
        self.both = Some(Box::new(Both {
            inflate: Decompress::new(false),
            came: Held::new(),
            fruitless: 0,
            is_over: false,
            deflate: None,
            haste: Haste::new(Instant::now()),
            going: Held::new(),
            is_unflushed: false,
            is_ended: false,
        }));
    }

    /// Whether it is compressed.
    pub const fn is_deflated(&self) -> bool {
        self.both.is_some()
    }

    /// What the octets go over.
    pub fn into_inner(self) -> Io {
        self.io
    }
}

/// What became of some of what came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inflated {
    /// Octets, or the end.
    Some,
    /// It stands for nothing; there may be more of it.
    Nothing,
    /// More must come first.
    NeedsMore,
}

impl Both {
    /// Inflates some of what came.
    fn inflate(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<Inflated> {
        if !self.is_over {
            let (taken_before, given_before) = (self.inflate.total_in(), self.inflate.total_out());
            let room = buf.initialize_unfilled_to(buf.remaining().min(INFLATED_OCTETS_MAX));
            let left = self.came.left();
            let some = left.get(..FRUITLESS_AT_ONCE).unwrap_or(left);
            let inflated = self.inflate.decompress(some, room, FlushDecompress::None);
            let status =
                inflated.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let taken = len_of(self.inflate.total_in() - taken_before);
            let given = len_of(self.inflate.total_out() - given_before);
            self.came.used(taken);
            buf.advance(given);
            self.is_over = status == Status::StreamEnd;
            if given > 0 {
                let paid = given.saturating_mul(OCTETS_PAID_FOR);
                self.fruitless = self.fruitless.saturating_sub(paid);
            } else if !self.is_over {
                return Ok(match taken {
                    0 => Inflated::NeedsMore,
                    _ => Inflated::Nothing,
                });
            }
        }
        Ok(Inflated::Some)
    }

    /// Compresses some octets, as far as there is room; how many.
    fn compress(&mut self, octets: &[u8], flush: FlushCompress) -> io::Result<usize> {
        let level = self.haste.level();
        let deflate = self
            .deflate
            .get_or_insert_with(|| Compress::new(level, false));
        let before = deflate.total_in();
        let deflated = deflate.compress_vec(octets, &mut self.going.octets, flush);
        deflated.map_err(io::Error::other)?;
        let taken = deflate.total_in() - before;
        self.haste.text += taken;
        Ok(len_of(taken))
    }

    /// Compresses as it is worth from here on.  Behind a flush a stream without a header ends with a whole octet, and may go on by
    /// another compressor.
    fn look(&mut self, now: Instant) {
        if self.haste.has_changed(now) {
            self.deflate = None;
        }
    }

    /// Sends what is compressed.
    fn poll_going<Io>(&mut self, cx: &mut Context<'_>, io: &mut Io) -> Poll<io::Result<()>>
    where
        Io: AsyncWrite + Unpin,
    {
        while !self.going.left().is_empty() {
            let sent = Pin::new(&mut *io).poll_write(cx, self.going.left());
            self.haste.has_waited |= sent.is_pending();
            let sent = ready!(sent)?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.going.used(sent);
        }
        Poll::Ready(Ok(()))
    }

    /// Gets all out of the compressor, and sends it.
    fn poll_emptied<Io>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut Io,
        flush: FlushCompress,
    ) -> Poll<io::Result<()>>
    where
        Io: AsyncWrite + Unpin,
    {
        while self.is_unflushed {
            ready!(self.poll_going(cx, io))?;
            self.compress(&[], flush)?;
            // What filled the room may have left something behind.
            self.is_unflushed = self.going.is_full();
        }
        self.poll_going(cx, io)
    }
}

/// What one call moved; more than the buffers have it cannot be.
fn len_of(octets: u64) -> usize {
    usize::try_from(octets).unwrap_or(usize::MAX)
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncRead for Deflatable<Io> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { io, both } = self.get_mut();
        let Some(both) = both else {
            return Pin::new(io).poll_read(cx, buf);
        };
        loop {
            match both.inflate(buf)? {
                Inflated::Some => break,
                Inflated::Nothing => {
                    // That does not keep other connections waiting.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Inflated::NeedsMore => {}
            }
            // All that came is used up, so there is room for a whole portion.
            let reading = pin!(io.read_buf(&mut both.came.octets));
            let len = ready!(reading.poll(cx))?;
            if len == 0 {
                break;
            }
            both.fruitless += len;
            if both.fruitless > FRUITLESS_OCTETS_MAX {
                let why = "compressed octets that stand for nothing";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Deflatable<Io> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { io, both } = self.get_mut();
        let Some(both) = both else {
            return Pin::new(io).poll_write(cx, buf);
        };
        loop {
            if both.going.is_full() {
                ready!(both.poll_going(cx, io))?;
            }
            let used = both.compress(buf, FlushCompress::None)?;
            both.is_unflushed = true;
            if used > 0 || buf.is_empty() {
                return Poll::Ready(Ok(used));
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.both.is_none() {
            return Pin::new(&mut self.get_mut().io).poll_write_vectored(cx, slices);
        }
        let first = slices.iter().find(|slice| !slice.is_empty());
        self.poll_write(cx, first.map_or(&[], |slice| slice))
    }

    fn is_write_vectored(&self) -> bool {
        self.both.is_none() && self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, both } = self.get_mut();
        if let Some(both) = both {
            let has_sent = both.is_unflushed;
            ready!(both.poll_emptied(cx, io, FlushCompress::Sync))?;
            if has_sent {
                both.look(Instant::now());
            }
        }
        Pin::new(io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, both } = self.get_mut();
        if let Some(both) = both {
            if !both.is_ended && both.deflate.is_some() {
                // Asked again after a pause it adds nothing to a stream that is ended.
                both.is_unflushed = true;
                ready!(both.poll_emptied(cx, io, FlushCompress::Finish))?;
            } else if !both.is_ended {
                both.going.octets.extend_from_slice(&END);
            }
            both.is_ended = true;
            ready!(both.poll_going(cx, io))?;
        }
        Pin::new(io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    /// Two ends, compressed.
    fn ends(pipe_octets: usize) -> (Deflatable<DuplexStream>, Deflatable<DuplexStream>) {
        let (one, other) = duplex(pipe_octets);
        let mut ends = (Deflatable::new(one), Deflatable::new(other));
        ends.0.deflate();
        ends.1.deflate();
        ends
    }

    /// Octets that nothing can make short.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[tokio::test]
    async fn what_is_flushed_has_come_whole() {
        let (mut one, mut other) = ends(64 << 10);
        for said in [&b"DATE\r\n"[..], b"", b"211 1 2 3\r\n"] {
            one.write_all(said).await.unwrap();
            one.flush().await.unwrap();
            let mut came = vec![0; said.len()];
            other.read_exact(&mut came).await.unwrap();
            assert_eq!(came, said);
        }
        // A flush of nothing sends nothing.
        one.flush().await.unwrap();
        one.io.shutdown().await.unwrap();
        assert_eq!(other.read(&mut [0; 8]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn much_goes_through_a_narrow_pipe() {
        for pipe_octets in [1, 100, 64 << 10] {
            let len = if pipe_octets == 1 { 20_000 } else { 300_000 };
            let (mut one, mut other) = ends(pipe_octets);
            let said = [noise(len), vec![b'x'; len], noise(len)].concat();
            let sending = async {
                one.write_all(&said).await.unwrap();
                one.shutdown().await.unwrap();
                one
            };
            let mut came = Vec::new();
            let (_one, read) = tokio::join!(sending, other.read_to_end(&mut came));
            read.unwrap();
            assert!(came == said, "{pipe_octets}");
        }
    }

    /// Text goes on, and whoever reads it sees no difference.
    #[tokio::test]
    async fn the_level_changes_on_the_way() {
        let (mut one, mut other) = ends(1 << 20);
        let text = b"a line of an overview, or what looks like one\r\n".repeat(2000);
        let mut later = Instant::now();
        for (nth, len) in [1, 90_000, 40, 90_000, 90_000, 0, 7]
            .into_iter()
            .enumerate()
        {
            one.write_all(&text[..len]).await.unwrap();
            one.flush().await.unwrap();
            let both = one.both.as_mut().unwrap();
            let text_octets = if nth % 2 == 0 { 1 << 30 } else { 1 };
            both.haste.text = text_octets;
            later += Duration::from_secs(1);
            both.look(later);
            assert_eq!(both.haste.is_there, nth % 2 == 0, "{nth}");
            let mut came = vec![0; len];
            other.read_exact(&mut came).await.unwrap();
            assert!(came == text[..len], "{nth}");
        }
    }

    #[test]
    fn who_waits_or_wants_little_is_not_in_haste() {
        let now = Instant::now();
        let look = |text, has_waited, ms| {
            let mut haste = Haste {
                text,
                has_waited,
                ..Haste::new(now)
            };
            let has_changed = haste.has_changed(now + Duration::from_millis(ms));
            (has_changed, haste.level() == LEVEL_IN_HASTE)
        };
        assert_eq!(look(1_600_000, false, 100), (true, true));
        assert_eq!(look(1_600_000, true, 100), (false, false));
        assert_eq!(look(1_500_000, false, 100), (false, false));
        // It is not told in so short a time.
        assert_eq!(look(1_600_000, false, 49), (false, false));
    }

    /// A compressor takes memory and time: those who only send have none.
    #[tokio::test]
    async fn who_is_sent_nothing_has_no_compressor() {
        let (mut one, mut other) = ends(64 << 10);
        one.write_all(b"DATE\r\n").await.unwrap();
        one.flush().await.unwrap();
        other.read_exact(&mut [0; 6]).await.unwrap();
        other.flush().await.unwrap();
        let has_any = |end: &Deflatable<DuplexStream>| end.both.as_ref().unwrap().deflate.is_some();
        assert_eq!([has_any(&one), has_any(&other)], [true, false]);
        // Its stream is ended all the same.
        for pipe_octets in [1, 100] {
            let (mut one, mut other) = ends(pipe_octets);
            let ended = async { other.shutdown().await.unwrap() };
            let (came, ()) = tokio::join!(one.read_u8(), ended);
            assert_eq!(came.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
            assert!(one.both.as_ref().unwrap().is_over);
            assert!(!has_any(&other));
        }
    }

    /// What inflates to a thousand times itself is inflated as far as it is asked for.
    #[tokio::test]
    async fn a_bomb_is_inflated_in_portions() {
        let mut bomb = Vec::with_capacity(64 << 10);
        let mut deflate = Compress::new(Compression::best(), false);
        let zeros = vec![0; 32 << 20];
        let finish = FlushCompress::Finish;
        deflate.compress_vec(&zeros, &mut bomb, finish).unwrap();
        assert!(bomb.len() < 40 << 10);
        let (mut one, other) = duplex(64 << 10);
        let mut other = Deflatable::new(other);
        other.deflate();
        one.write_all(&bomb).await.unwrap();
        drop(one);
        let (mut all, mut portion) = (0, Vec::with_capacity(1 << 20));
        loop {
            portion.clear();
            let len = other.read_buf(&mut portion).await.unwrap();
            assert!(len <= INFLATED_OCTETS_MAX, "{len}");
            let held = other.both.as_ref().unwrap().came.octets.capacity();
            assert_eq!(held, HELD_OCTETS_MAX);
            all += len;
            if len == 0 {
                break;
            }
        }
        assert_eq!(all, zeros.len());
    }

    /// Empty blocks without end inflated to nothing, in one turn as long as they came; and an octet of text now and then bought as
    /// many again.
    #[tokio::test]
    async fn what_stands_for_nothing_ends_it() {
        let empty = [0, 0, 0, 0xff, 0xff];
        let text = [0, 1, 0, 0xfe, 0xff, b'x'];
        let nothing = empty.repeat(FRUITLESS_OCTETS_MAX);
        let hardly_anything = [&empty.repeat(FRUITLESS_OCTETS_MAX / 6)[..], &text]
            .concat()
            .repeat(6);
        for compressed in [nothing, hardly_anything] {
            let io = tokio::io::join(&compressed[..], tokio::io::sink());
            let mut other = Deflatable::new(io);
            other.deflate();
            let mut turns = 0;
            let reading = async {
                loop {
                    if let Err(error) = other.read_u8().await {
                        return error;
                    }
                }
            };
            let ended = tokio::select! {
                biased;
                ended = reading => ended,
                () = async { loop { turns += 1; tokio::task::yield_now().await } } => unreachable!(),
            };
            assert_eq!(ended.kind(), io::ErrorKind::InvalidData);
            // An octet of text ends a read.
            assert!(
                turns + 7 >= FRUITLESS_OCTETS_MAX / FRUITLESS_AT_ONCE,
                "{turns}"
            );
        }
    }

    /// Who flushes behind each octet, as a program may that sends what somebody types, is no attacker.
    #[tokio::test]
    async fn an_octet_at_a_time_is_taken() {
        let text = [0, 1, 0, 0xfe, 0xff, b'x', 0, 0, 0, 0xff, 0xff].repeat(50_000);
        let mut other = Deflatable::new(tokio::io::join(&text[..], tokio::io::sink()));
        other.deflate();
        let mut read = vec![0; 50_000];
        other.read_exact(&mut read).await.unwrap();
        assert!(read.iter().all(|octet| *octet == b'x'));
    }

    #[tokio::test]
    async fn what_is_not_deflated_is_an_error() {
        let (mut one, other) = duplex(64);
        let mut other = Deflatable::new(other);
        other.deflate();
        one.write_all(b"\xffGROUP misc.test\r\n").await.unwrap();
        let why = other.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::InvalidData);
    }
}
