//! The do-nothing server's event loop.
//!
//! Invariant: one read and one write for all the commands that have arrived; a client that does not
//! read its replies is not read from. Ends when it is told to.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use super::replies::{After, Replies, three};
use crate::client::incoming::{Got, Incoming};
use crate::error::Error;
use crate::load::allow_open_files;

/// Replies that may wait for a slow client.
const WAITING_OCTETS_MAX: usize = 1 << 20;
const LISTENER: u64 = u64::MAX;
const NAP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// What the do-nothing server pretends to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NullArgs {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Threads that serve.
    pub threads: usize,
    /// The size of every article it gives out.
    pub article_octets: u32,
    /// How many groups it lists.
    pub groups: usize,
    /// How many articles each group has.
    pub articles: u64,
}

impl NullArgs {
    /// Articles of the usual size in the usual number of groups.
    pub const fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            threads: 1,
            article_octets: 2650,
            groups: 3000,
            articles: 20,
        }
    }
}

/// A do-nothing server that has its socket.
#[derive(Debug)]
pub struct NullServer {
    listener: TcpListener,
    replies: Replies,
    threads: usize,
}

impl NullServer {
    /// Makes its replies and listens.
    pub fn bind(args: &NullArgs) -> Result<Self, Error> {
        let bound = TcpListener::bind(args.listen).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        Ok(Self {
            listener: bound.map_err(Error::EventLoop)?,
            replies: Replies::new(args.article_octets, args.groups, args.articles)?,
            threads: args.threads.max(1),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().map_err(Error::EventLoop)
    }

    /// Articles that it took so far.
    pub fn taken(&self) -> u64 {
        self.replies.taken()
    }

    /// Serves until `stop` is set.
    pub fn serve(&self, stop: &AtomicBool) -> Result<(), Error> {
        allow_open_files(65_000);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads)
                .map(|_| scope.spawn(|| self.serve_thread(stop)))
                .collect();
            for thread in threads {
                let served = thread.join().map_err(|_| Error::WorkerLost)?;
                served.map_err(|errno| Error::EventLoop(errno.into()))?;
            }
            Ok(())
        })
    }

    fn serve_thread(&self, stop: &AtomicBool) -> rustix::io::Result<()> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let listening = EventFlags::IN | EventFlags::EXCLUSIVE;
        epoll::add(
            &epoll,
            &self.listener,
            EventData::new_u64(LISTENER),
            listening,
        )?;
        let mut clients: Vec<Option<Client>> = Vec::new();
        let mut events = Vec::with_capacity(256);
        while !stop.load(Ordering::Relaxed) {
            events.clear();
            match epoll::wait(&epoll, spare_capacity(&mut events), Some(&NAP)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            for event in &events {
                let place = event.data.u64();
                if place == LISTENER {
                    while let Ok((stream, _)) = self.listener.accept() {
                        let Ok(client) = Client::new(stream) else {
                            continue;
                        };
                        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
                        let data = EventData::new_u64(clients.len() as u64);
                        epoll::add(&epoll, &client.stream, data, flags)?;
                        clients.push(Some(client));
                    }
                } else if let Some(slot) = clients.get_mut(place as usize)
                    && slot
                        .as_mut()
                        .is_none_or(|client| client.serve(&self.replies).is_err())
                {
                    *slot = None;
                }
            }
        }
        Ok(())
    }
}

struct Client {
    stream: TcpStream,
    incoming: Incoming,
    out: Vec<u8>,
    sent: usize,
    /// The reply to the article that is being received, without CRLF.
    article: Option<Vec<u8>>,
    quit: bool,
}

impl Client {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let out = b"200 does nothing\r\n".to_vec();
        Ok(Self {
            stream,
            incoming: Incoming::new(),
            out,
            sent: 0,
            article: None,
            quit: false,
        })
    }

    /// Reads, answers and writes as far as it goes without waiting.
    fn serve(&mut self, replies: &Replies) -> io::Result<()> {
        loop {
            self.write()?;
            if self.quit {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if self.out.len() - self.sent > WAITING_OCTETS_MAX {
                return Ok(());
            }
            let got = self.incoming.read(&mut (&self.stream))?;
            if got == Got::End {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.answer(replies)?;
            if got == Got::All {
                return self.write();
            }
        }
    }

    fn answer(&mut self, replies: &Replies) -> io::Result<()> {
        while !self.quit {
            if self.article.is_some() {
                match self.incoming.part_of_block() {
                    None => return Ok(()),
                    Some((_, false)) => {}
                    Some((_, true)) => {
                        let reply = self.article.take().unwrap_or_default();
                        three(&mut self.out, &reply, b"", b"");
                    }
                }
                continue;
            }
            let line = self.incoming.line();
            let Some(line) = line.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))? else {
                return Ok(());
            };
            match replies.answer(self.incoming.get(line), &mut self.out) {
                After::Answered => {}
                After::Quit => self.quit = true,
                After::Article(code) => {
                    let line = self.incoming.get(line);
                    let id = line
                        .rsplit(|&octet| octet == b' ')
                        .next()
                        .unwrap_or_default();
                    replies.took(id);
                    self.article = Some([code, id].concat());
                }
            }
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        while self.sent < self.out.len() {
            match (&self.stream).write(self.out.get(self.sent..).unwrap_or_default()) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }
}
