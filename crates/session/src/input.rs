//! What has come and is not used up: chunks that articles are cut from without copying.
//!
//! While a connection waits it holds no chunk: what is left of a command or a small article is stowed in a buffer of
//! its own size, and the chunk goes back to the pool.  Chunks are as long as reads have been lately, because an article on
//! its way holds all of the chunk it is in; for a large article the chunk grows, up to the largest allowed.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Buf, BufMut as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::memory::{Account, Hold, NoRoom};
use crate::pool;

/// Up to this many octets are stowed when a connection begins to wait.
const STOW_BYTES_MAX: usize = 8 << 10;

/// A read is not tried into less room than this.
const ROOM_BYTES_MIN: usize = 8 << 10;

/// The first chunk of a connection, and of one that sends little at a time.
const SMALL_CHUNK_BYTES: usize = 16 << 10;

/// A read takes no more than this: copying an article of megabytes at once would keep other connections waiting.
pub(crate) const READ_BYTES_MAX: usize = 64 << 10;

/// Beyond the largest article: its terminator and what was pipelined behind it.
const ARTICLE_SLACK_BYTES: usize = 4 << 10;

#[derive(Debug)]
pub(crate) struct Input {
    buf: BytesMut,
    /// Length of the chunk `buf` is in; 0 when it is none of the pool's.
    chunk: usize,
    /// Length of the next chunk: about what comes at once.
    usual: usize,
    chunk_bytes: usize,
    article_bytes_max: usize,
    account: Account,
    /// What a chunk longer than usual takes of the budget.
    hold: Option<Hold>,
    /// The other side has closed its half.
    eof: bool,
}

impl Input {
    pub(crate) fn new(chunk_bytes: usize, article_bytes_max: usize, account: Account) -> Self {
        Self {
            buf: BytesMut::new(),
            chunk: 0,
            usual: SMALL_CHUNK_BYTES.min(chunk_bytes),
            chunk_bytes,
            article_bytes_max,
            account,
            hold: None,
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

    /// Reads once, no more than `most`; 0 at the end.  [`io::ErrorKind::OutOfMemory`]: large articles of all connections take
    /// too much.
    pub(crate) fn poll_read<Io: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut Io,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        if !self.make_room() {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        let mut room = (&mut self.buf).limit(READ_BYTES_MAX.min(most));
        let reading = pin!(io.read_buf(&mut room));
        match Future::poll(reading as Pin<&mut _>, cx) {
            Poll::Ready(Ok(0)) => {
                self.eof = true;
                Poll::Ready(Ok(0))
            }
            Poll::Ready(Ok(len)) => {
                self.learn(len);
                Poll::Ready(Ok(len))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                self.stow();
                Poll::Pending
            }
        }
    }

    /// Chunks follow what comes at once: twice as long when one was filled, half when little came.
    fn learn(&mut self, len: usize) {
        if self.buf.len() == self.buf.capacity() {
            self.usual = (self.usual * 2).min(self.chunk_bytes);
        } else if len < self.usual / 16 {
            self.usual = (self.usual / 2).max(SMALL_CHUNK_BYTES.min(self.chunk_bytes));
        }
    }

    /// Sees to it that there is room for a read; false: there is no memory for an article so large.
    fn make_room(&mut self) -> bool {
        let have = self.buf.len();
        if self.chunk > 0 && self.buf.capacity() - have >= ROOM_BYTES_MIN.min(self.chunk_bytes / 2)
        {
            return true;
        }
        // An article that fills half of a chunk gets one of twice the size, until it fits.
        let mut want = self.usual;
        let most = (self.article_bytes_max + ARTICLE_SLACK_BYTES).max(self.chunk_bytes);
        while want < most && have > want / 2 {
            want *= 2;
        }
        let want = want.max(have + ROOM_BYTES_MIN);
        let is_large = want > self.chunk_bytes + ROOM_BYTES_MIN;
        let hold = match is_large.then(|| self.account.hold(want)) {
            None => None,
            Some(Ok(hold)) => Some(hold),
            Some(Err(NoRoom)) => return false,
        };
        let (mut chunk, whole) = pool::take_chunk(want);
        chunk.extend_from_slice(&self.buf);
        let old = std::mem::replace(&mut self.buf, chunk);
        pool::give_chunk(old, std::mem::replace(&mut self.chunk, whole));
        self.hold = hold;
        true
    }

    /// Gives the chunk back while nothing comes.
    fn stow(&mut self) {
        if self.buf.len() > STOW_BYTES_MAX {
            return;
        }
        self.shrink();
    }

    /// Nothing has come for a while: holds only what is there.
    pub(crate) fn shrink(&mut self) {
        if self.chunk == 0 {
            return;
        }
        let kept = BytesMut::from(&self.buf[..]);
        let old = std::mem::replace(&mut self.buf, kept);
        pool::give_chunk(old, std::mem::take(&mut self.chunk));
        // What is kept of a large article that stalls counts on.
        if self.buf.len() <= self.chunk_bytes {
            self.hold = None;
        } else if let Some(hold) = &mut self.hold {
            hold.shrink_to(self.buf.len());
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        pool::give_chunk(std::mem::take(&mut self.buf), self.chunk);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Waker;

    use super::*;
    use crate::memory::Budget;

    fn account(octets: usize) -> Account {
        Arc::new(Budget::new(octets, octets)).account(None)
    }

    fn input() -> Input {
        Input::new(64 << 10, 1 << 20, account(3 << 20))
    }

    fn read(input: &mut Input, mut from: &[u8]) -> usize {
        let mut cx = Context::from_waker(Waker::noop());
        match input.poll_read(&mut cx, &mut from, usize::MAX) {
            Poll::Ready(Ok(len)) => len,
            other => panic!("{other:?}"),
        }
    }

    fn wait(input: &mut Input) {
        let (mut ours, _theirs) = tokio::io::duplex(16);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(input.poll_read(&mut cx, &mut ours, usize::MAX).is_pending());
    }

    #[test]
    fn waiting_holds_only_what_is_left() {
        let mut input = input();
        wait(&mut input);
        assert_eq!(input.buf.capacity(), 0);
        assert_eq!(read(&mut input, b"QUIT\r\nDA"), 8);
        assert!(input.buf.capacity() >= 15 << 10);
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
        let mut input = input();
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
        assert!(input.hold.is_none() || input.chunk > 64 << 10);
    }

    #[test]
    fn chunks_follow_what_comes_at_once() {
        let mut input = input();
        let much = vec![b'x'; 1 << 20];
        let mut lens = [0; 4];
        for len in &mut lens {
            *len = read(&mut input, &much);
            input.consume(*len);
            wait(&mut input);
        }
        assert_eq!(lens, [16 << 10, 32 << 10, 64 << 10, 64 << 10]);
        for _ in 0..3 {
            read(&mut input, b"little");
            input.consume(6);
            wait(&mut input);
        }
        read(&mut input, b"little");
        assert!(input.chunk <= 32 << 10, "{}", input.chunk);
    }

    #[test]
    fn large_articles_share_a_budget() {
        let account = account(2 << 20);
        let mut inputs = [(); 2].map(|()| Input::new(64 << 10, 1 << 20, account.clone()));
        let fill = |input: &mut Input| {
            let (piece, mut cx) = ([b'x'; 60 << 10], Context::from_waker(Waker::noop()));
            while input.octets().len() < 900 << 10 {
                match input.poll_read(&mut cx, &mut &piece[..], usize::MAX) {
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(error)) => return Err(error.kind()),
                    Poll::Pending => unreachable!(),
                }
            }
            Ok(())
        };
        assert_eq!(fill(&mut inputs[0]), Ok(()));
        assert_eq!(fill(&mut inputs[1]), Err(io::ErrorKind::OutOfMemory));
        let all = inputs[0].octets().len();
        inputs[0].consume(all);
        wait(&mut inputs[0]);
        assert_eq!(
            fill(&mut inputs[1]),
            Ok(()),
            "what was given back serves others"
        );
    }

    #[test]
    fn a_large_article_that_stalls_counts_by_its_own_size() {
        let account = account(3 << 20);
        let mut input = Input::new(64 << 10, 1 << 20, account.clone());
        let article = vec![b'x'; 600 << 10];
        let mut sent = 0;
        while sent < article.len() {
            sent += read(&mut input, &article[sent..]);
        }
        assert!(account.hold(2200 << 10).is_err());
        input.shrink();
        assert!(account.hold(2200 << 10).is_ok());
    }

    #[test]
    fn a_stalled_article_is_held_in_its_own_size() {
        let mut input = input();
        read(&mut input, &[b'x'; 16 << 10]);
        read(&mut input, &[b'x'; 4 << 10]);
        wait(&mut input);
        assert!(input.buf.capacity() >= 30 << 10, "it may go on at once");
        input.shrink();
        assert!(input.buf.capacity() < 24 << 10 && input.octets().len() == 20 << 10);
    }
}
