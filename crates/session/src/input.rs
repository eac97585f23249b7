//! What has come and is not used up: chunks that articles are cut from without copying.
//!
//! While a connection waits it holds no chunk: what is left of a command or a small article is stowed in a buffer of
//! its own size, and the chunk goes back to the pool.  The chunk grows for large articles, up to the largest allowed.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::pool;

/// Up to this many octets are stowed when a connection begins to wait.
const STOW_BYTES_MAX: usize = 8 << 10;

/// A read is not tried into less room than this.
const ROOM_BYTES_MIN: usize = 8 << 10;

/// Beyond the largest article: its terminator and what was pipelined behind it.
const ARTICLE_SLACK_BYTES: usize = 4 << 10;

#[derive(Debug)]
pub(crate) struct Input {
    buf: BytesMut,
    /// Length of the chunk `buf` is in; 0 when it is none of the pool's.
    chunk: usize,
    chunk_bytes: usize,
    article_bytes_max: usize,
    /// The other side has closed its half.
    eof: bool,
}

impl Input {
    pub(crate) fn new(chunk_bytes: usize, article_bytes_max: usize) -> Self {
        Self {
            buf: BytesMut::new(),
            chunk: 0,
            chunk_bytes,
            article_bytes_max,
            eof: false,
        }
    }

    pub(crate) fn octets(&self) -> &[u8] {
        &self.buf
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buf.is_empty()
    }

    pub(crate) const fn is_eof(&self) -> bool {
        self.eof
    }

    /// Drops octets from the front.
    pub(crate) fn consume(&mut self, used: usize) {
        self.buf.advance(used);
    }

    /// Cuts an article off the front; it shares the chunk.
    pub(crate) fn cut(&mut self, used: usize) -> Bytes {
        self.buf.split_to(used).freeze()
    }

    /// Reads once; 0 at the end.
    pub(crate) fn poll_read<Io: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut Io,
    ) -> Poll<io::Result<usize>> {
        self.make_room();
        let reading = pin!(io.read_buf(&mut self.buf));
        match Future::poll(reading as Pin<&mut _>, cx) {
            Poll::Ready(Ok(0)) => {
                self.eof = true;
                Poll::Ready(Ok(0))
            }
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => {
                self.stow();
                Poll::Pending
            }
        }
    }

    fn make_room(&mut self) {
        let have = self.buf.len();
        if self.chunk > 0 && self.buf.capacity() - have >= ROOM_BYTES_MIN.min(self.chunk_bytes / 2)
        {
            return;
        }
        // An article that fills half of a chunk gets one of twice the size, until it fits.
        let mut want = self.chunk_bytes;
        let most = (self.article_bytes_max + ARTICLE_SLACK_BYTES).max(self.chunk_bytes);
        while want < most && have > want / 2 {
            want *= 2;
        }
        let (mut chunk, whole) = pool::take_chunk(want.max(have + ROOM_BYTES_MIN));
        chunk.extend_from_slice(&self.buf);
        let old = std::mem::replace(&mut self.buf, chunk);
        pool::give_chunk(old, std::mem::replace(&mut self.chunk, whole));
    }

    /// Gives the chunk back while nothing comes.
    fn stow(&mut self) {
        if self.chunk == 0 || self.buf.len() > STOW_BYTES_MAX {
            return;
        }
        let kept = BytesMut::from(&self.buf[..]);
        let old = std::mem::replace(&mut self.buf, kept);
        pool::give_chunk(old, std::mem::take(&mut self.chunk));
    }

    /// Nothing has come for a while: holds only what is there.
    pub(crate) fn shrink(&mut self) {
        if self.chunk == 0 {
            return;
        }
        let kept = BytesMut::from(&self.buf[..]);
        let old = std::mem::replace(&mut self.buf, kept);
        pool::give_chunk(old, std::mem::take(&mut self.chunk));
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        pool::give_chunk(std::mem::take(&mut self.buf), self.chunk);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn read(input: &mut Input, mut from: &[u8]) -> usize {
        let mut cx = Context::from_waker(Waker::noop());
        match input.poll_read(&mut cx, &mut from) {
            Poll::Ready(Ok(len)) => len,
            other => panic!("{other:?}"),
        }
    }

    fn wait(input: &mut Input) {
        let (mut ours, _theirs) = tokio::io::duplex(16);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(input.poll_read(&mut cx, &mut ours).is_pending());
    }

    #[test]
    fn waiting_holds_only_what_is_left() {
        let mut input = Input::new(64 << 10, 1 << 20);
        wait(&mut input);
        assert_eq!(input.buf.capacity(), 0);
        assert_eq!(read(&mut input, b"QUIT\r\nDA"), 8);
        assert!(input.buf.capacity() >= 60 << 10);
        input.consume(6);
        wait(&mut input);
        assert!(
            input.octets() == b"DA" && input.buf.capacity() < 64,
            "{}",
            input.buf.capacity()
        );
        read(&mut input, b"TE\r\n");
        assert_eq!(input.octets(), b"DATE\r\n");
        input.consume(6);
        wait(&mut input);
        assert_eq!(input.buf.capacity(), 0);
        assert_eq!(read(&mut input, b""), 0);
        assert!(input.is_eof());
    }

    #[test]
    fn large_articles_grow_the_chunk_up_to_the_limit() {
        let mut input = Input::new(64 << 10, 1 << 20);
        let article = vec![b'x'; 1 << 20];
        let mut sent = 0;
        while sent < article.len() {
            sent += read(&mut input, &article[sent..]);
            assert!(input.buf.capacity() <= 2 << 20);
        }
        assert_eq!(input.octets(), article);
        let cut = input.cut(1 << 20);
        assert_eq!(cut.len(), 1 << 20);
        read(&mut input, b"next");
        assert_eq!(input.octets(), b"next");
        assert!(input.chunk == 64 << 10 || input.chunk == 2 << 20);
    }

    #[test]
    fn a_stalled_article_is_held_in_its_own_size() {
        let mut input = Input::new(64 << 10, 1 << 20);
        read(&mut input, &[b'x'; 20 << 10]);
        wait(&mut input);
        assert!(input.buf.capacity() > 40 << 10, "it may go on at once");
        input.shrink();
        assert!(input.buf.capacity() < 24 << 10 && input.octets().len() == 20 << 10);
    }
}
