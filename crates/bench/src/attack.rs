//! Those who are no readers and no peers: what each does to a server, so that what others feel of it can be measured.
//!
//! To add one: a row of [`ATTACKS`].  Each comes from an address of its own, as attackers do, and as others do not: 127.0.0.2 and
//! following.  Invariant: an attack ends; an answer that the protocol does not have for it is an error, and whatever else the server
//! does to its connections is no concern of it, be it that it refuses them.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_send_buffer_size, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use crate::client::connect::Opened;
use crate::error::Error;

const MIB: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// Who is not answered by then is shut out.
const CONNECTED_IN: Duration = Duration::from_secs(4);

/// What an attacker has said and nobody has taken yet is on a machine of its own, not in this one's kernel: copying megabytes into that at
/// once, and freeing them when the server hangs up, holds a processor for milliseconds, whoever wants it.
const ON_ITS_WAY_OCTETS: usize = 64 << 10;

/// Who is refused comes again after this, so often.
const PAUSE: Duration = Duration::from_millis(10);
const TRIES_MAX: usize = 6_000;

/// Whom an attack is against: a server on loopback.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Where it listens.
    pub server: SocketAddr,
    /// Where it takes TLS.
    pub secure: SocketAddr,
}

impl Target {
    /// At this port of this address, and at the next with TLS.
    pub fn at(address: Ipv4Addr, port: u16) -> Self {
        Self {
            server: SocketAddr::from((address, port)),
            secure: SocketAddr::from((address, port + 1)),
        }
    }
}

/// An attack.
#[derive(Debug)]
pub struct Attack {
    /// Its name in tables and for choosing it.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    run: fn(&Origin<'_>) -> Result<Vec<TcpStream>, Error>,
}

/// An attack on its way.
struct Origin<'a> {
    target: &'a Target,
    /// Where it comes from.
    address: Ipv4Addr,
}

impl Attack {
    /// Attacks until it has done all, or is not answered any more; the connections that go on to be in the way as long as they are
    /// held.
    pub fn run(&self, target: &Target) -> Result<Vec<TcpStream>, Error> {
        let place = ATTACKS.iter().position(|it| it.name == self.name);
        let address = Ipv4Addr::new(127, 0, 0, place.map_or(2, |place| place as u8 + 2));
        match (self.run)(&Origin { target, address }) {
            // The time to connect was over (connect(2)): it is shut out.
            Err(Error::Connect { source, .. })
                if source.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) =>
            {
                Ok(Vec::new())
            }
            done => done,
        }
    }
}

/// All of them.
pub static ATTACKS: &[Attack] = &[
    Attack {
        name: "stalled",
        help: "200 connections that stall in a command or in an article",
        run: stalled,
    },
    Attack {
        name: "half-open",
        help: "200 handshakes of TLS that stall",
        run: half_open,
    },
    Attack {
        name: "dropped",
        help: "10,000 connections, opened and dropped, a quarter of them with a word",
        run: dropped,
    },
    Attack {
        name: "garbage",
        help: "50 times 64 KiB that no protocol has",
        run: garbage,
    },
    Attack {
        name: "line",
        help: "a line of 64 MiB",
        run: line,
    },
    Attack {
        name: "headers",
        help: "40,000 header fields, a field of 80,000 lines, an article of 64 MiB",
        run: headers,
    },
    Attack {
        name: "pipelined",
        help: "10,000 commands at once",
        run: pipelined,
    },
    Attack {
        name: "bombs",
        help: "60 times 16 MiB, compressed to a thousandth",
        run: bombs,
    },
    Attack {
        name: "hollow",
        help: "30 times 4 MiB of compressed blocks that stand for nothing, or for an octet in 64 KiB",
        run: hollow,
    },
];

impl Origin<'_> {
    fn connect(&self, to: SocketAddr) -> Result<TcpStream, Error> {
        let connected = || -> io::Result<TcpStream> {
            let flags = SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
            bind(&socket, &SocketAddr::from((self.address, 0)))?;
            set_socket_timeout(&socket, Timeout::Send, Some(CONNECTED_IN))?;
            set_socket_send_buffer_size(&socket, ON_ITS_WAY_OCTETS)?;
            retry_on_intr(|| connect(&socket, &to))?;
            Ok(TcpStream::from(socket))
        };
        connected().map_err(|source| Error::Connect { server: to, source })
    }

    /// A connection that says this first; what the server does to it then is no concern of it.
    fn say(&self, to: SocketAddr, octets: &[u8]) -> Result<TcpStream, Error> {
        let mut stream = self.connect(to)?;
        let limited = stream.set_read_timeout(Some(PATIENCE));
        limited
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
            .map_err(|source| Error::Connect { server: to, source })?;
        let _ = stream.write_all(octets);
        Ok(stream)
    }

    /// A connection that was greeted, once the server lets one more in.
    fn open(&self) -> Result<Opened, Error> {
        let server = self.target.server;
        let mut tries = 0;
        loop {
            match Opened::over(self.connect(server)?, server, false) {
                Err(Error::Refused { reply, .. })
                    if reply.starts_with("400 ") && tries < TRIES_MAX =>
                {
                    tries += 1;
                    std::thread::sleep(PAUSE);
                }
                opened => return opened,
            }
        }
    }
}

/// Everything that comes until the end, which may be a reset.
fn end_of(stream: &mut TcpStream) -> Vec<u8> {
    let _ = stream.shutdown(Shutdown::Write);
    let mut came = Vec::new();
    let _ = stream.read_to_end(&mut came);
    came
}

fn broken(from: &Origin<'_>, asked: &str) -> impl FnOnce(io::Error) -> Error {
    let (server, asked) = (from.target.server, asked.to_owned());
    move |source| Error::Broken {
        server,
        asked,
        source,
    }
}

fn refused(from: &Origin<'_>, asked: &str, came: &[u8]) -> Error {
    Error::Refused {
        server: from.target.server,
        asked: asked.to_owned(),
        reply: String::from_utf8_lossy(came).into_owned(),
    }
}

fn stalled(from: &Origin<'_>) -> Result<Vec<TcpStream>, Error> {
    let begun = b"TAKETHIS <stalled@t.example>\r\nSubject: ";
    let article = [&begun[..], &vec![b'x'; 64 << 10]].concat();
    let begun = |n| if n % 2 == 0 { b"ARTIC" } else { &article[..] };
    (0..200)
        .map(|n| from.say(from.target.server, begun(n)))
        .collect()
}

fn half_open(from: &Origin<'_>) -> Result<Vec<TcpStream>, Error> {
    let begun: [&[u8]; 2] = [b"", &[22, 3, 1, 2, 0, 1, 0]];
    let begun = begun.into_iter().cycle().take(200);
    begun
        .map(|octets| from.say(from.target.secure, octets))
        .collect()
}

fn dropped(from: &Origin<'_>) -> Result<Vec<TcpStream>, Error> {
    for n in 0..10_000 {
        let stream = from.connect(from.target.server)?;
        if n % 4 == 0 {
            let _ = (&stream).write(b"MODE READER\r\n");
        }
    }
    Ok(Vec::new())
}

fn garbage(from: &Origin<'_>) -> Result<Vec<TcpStream>, Error> {
    for seed in 1..=50_u64 {
        let mut state = seed;
        let octet = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        let octets: Vec<u8> = (0..64 << 10).map(octet).collect();
        let came = end_of(&mut from.say(from.target.server, &octets)?);
        let mut lines = came.split(|octet| *octet == b'\n');
        let is_reply = |line: &[u8]| line.first().is_none_or(|first| b"245".contains(first));
        if !lines.all(is_reply) {
            return Err(refused(from, "garbage", &came));
        }
    }
    Ok(Vec::new())
}

fn line(from: &Origin<'_>) -> Result<Vec<TcpStream>, Error> {
    let mut stream = from.say(from.target.server, b"")?;
    let piece = vec![b'x'; MIB];
    for _ in 0..64 {
        let sent = stream.write_all(&piece);
        sent.map_err(broken(from, "a line of 64 MiB"))?;
    }
    let _ = stream.write_all(b"\r\nDATE\r\n");
    let came = end_of(&mut stream);
    let has = |code: &[u8]| memchr::memmem::find(&came, code).is_some();
    if has(b"\r\n501 ") && has(b"\r\n111 ") {
        return Ok(Vec::new());
    }
    Err(refused(from, "a line of 64 MiB", &came))
}

fn headers(from: &Origin<'_>) -> Result<Vec<TcpStream>, Error> {
    let mut client = from.open()?;
    let many = "X-Field: value\r\n".repeat(40_000);
    let folded = format!("X-Field: v\r\n{}", " folded\r\n".repeat(80_000));
    for (n, fields) in [many, folded].iter().enumerate() {
        let id = format!("<bomb{n}@t.example>");
        let rest = format!(
            "Path: t.example!not-for-mail\r\nFrom: a@t.example\r\nNewsgroups: misc.test\r\nSubject: x\r\n\
             Date: Thu, 01 Jan 2026 00:00:00 +0000\r\nMessage-ID: {id}\r\n\r\nbody\r\n."
        );
        client.command(&format!("TAKETHIS {id}\r\n{fields}{rest}"), &[439])?;
    }
    client.send(b"TAKETHIS <huge@t.example>\r\n")?;
    let piece = b"a line of a body without end\r\n".repeat(MIB / 30);
    for _ in 0..65 {
        client.send(&piece)?;
    }
    client.command(".", &[439])?;
    client.command("DATE", &[111])?;
    Ok(Vec::new())
}

/// Nothing is read before all was sent, but what the server may not keep for this client.
fn pipelined(from: &Origin<'_>) -> Result<Vec<TcpStream>, Error> {
    let mut client = from.open()?;
    let commands = b"STAT <none@t.example>\r\nDATE\r\n".repeat(5_000);
    let sender = client.sender()?;
    let sent = std::thread::scope(|scope| {
        let sending = scope.spawn(move || (&sender).write_all(&commands));
        std::thread::sleep(Duration::from_millis(200));
        let came = (0..5_000).try_for_each(|_| {
            client.expect("STAT", &[430])?;
            client.expect("DATE", &[111]).map(drop)
        });
        let sent = sending.join().map_err(|_| Error::WorkerLost)?;
        came.and(sent.map_err(broken(from, "10,000 commands")))
    });
    sent.map(|()| Vec::new())
}

/// On more connections than may be compressed: those that may not say so.
fn bombs(from: &Origin<'_>) -> Result<Vec<TcpStream>, Error> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    let piece = vec![b'x'; MIB];
    let packed = (0..16).try_for_each(|_| encoder.write_all(&piece));
    let bomb = packed.and_then(|()| encoder.finish());
    let bomb = bomb.map_err(broken(from, "making a bomb"))?;
    let thrown = (0..60).map(|_| {
        let mut client = from.open()?;
        client.command("COMPRESS DEFLATE", &[206, 403])?;
        // It is no line, and too long for one: the server may have closed by now.
        let _ = client.send(&bomb);
        client.sender()
    });
    thrown.collect()
}

fn hollow(from: &Origin<'_>) -> Result<Vec<TcpStream>, Error> {
    let nothing = [0, 0, 0, 0xff, 0xff].repeat(12 << 10);
    let an_octet = [&nothing[..], &[0, 1, 0, 0xfe, 0xff, b'x']].concat();
    for n in 0..30 {
        let mut client = from.open()?;
        client.command("COMPRESS DEFLATE", &[206, 403])?;
        let piece = if n % 2 == 0 { &nothing } else { &an_octet };
        // The server may have closed by now.
        let _ = (0..4 * MIB / piece.len()).try_for_each(|_| client.send(piece));
    }
    Ok(Vec::new())
}
