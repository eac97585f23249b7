//! Those who are no readers and no peers: what each does to a server, so that what others feel of it can be measured.
//!
//! To add one: a row of [`ATTACKS`].  Invariant: an attack ends; an answer that the protocol does not have for it is an error, and
//! whatever else the server does to its connections is no concern of it.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use crate::client::connect::Opened;
use crate::error::Error;

const MIB: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// Whom an attack is against: a server on loopback.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Where it listens.
    pub server: SocketAddr,
    /// Where it takes TLS.
    pub secure: SocketAddr,
}

/// An attack.
#[derive(Debug)]
pub struct Attack {
    /// Its name in tables and for choosing it.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    run: fn(&Target) -> Result<Vec<TcpStream>, Error>,
}

impl Attack {
    /// Attacks; the connections that go on to be in the way as long as they are held.
    pub fn run(&self, target: &Target) -> Result<Vec<TcpStream>, Error> {
        (self.run)(target)
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
];

/// A connection that says this first; what the server does to it then is no concern of it.
fn say(server: SocketAddr, octets: &[u8]) -> Result<TcpStream, Error> {
    let connected = || {
        let mut stream = TcpStream::connect(server)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let _ = stream.write_all(octets);
        Ok(stream)
    };
    connected().map_err(|source| Error::Connect { server, source })
}

/// Everything that comes until the end, which may be a reset.
fn end_of(stream: &mut TcpStream) -> Vec<u8> {
    let _ = stream.shutdown(Shutdown::Write);
    let mut came = Vec::new();
    let _ = stream.read_to_end(&mut came);
    came
}

fn broken(target: &Target, asked: &str) -> impl FnOnce(io::Error) -> Error {
    let (server, asked) = (target.server, asked.to_owned());
    move |source| Error::Broken {
        server,
        asked,
        source,
    }
}

fn refused(target: &Target, asked: &str, came: &[u8]) -> Error {
    Error::Refused {
        server: target.server,
        asked: asked.to_owned(),
        reply: String::from_utf8_lossy(came).into_owned(),
    }
}

fn stalled(target: &Target) -> Result<Vec<TcpStream>, Error> {
    let begun = b"TAKETHIS <stalled@t.example>\r\nSubject: ";
    let article = [&begun[..], &vec![b'x'; 64 << 10]].concat();
    let begun = |n| if n % 2 == 0 { b"ARTIC" } else { &article[..] };
    (0..200).map(|n| say(target.server, begun(n))).collect()
}

fn half_open(target: &Target) -> Result<Vec<TcpStream>, Error> {
    let begun: [&[u8]; 2] = [b"", &[22, 3, 1, 2, 0, 1, 0]];
    let begun = begun.into_iter().cycle().take(200);
    begun.map(|octets| say(target.secure, octets)).collect()
}

/// From an address of their own, so that they take no port of 127.0.0.1 on which others are about to listen.
fn dropped(target: &Target) -> Result<Vec<TcpStream>, Error> {
    let connected = || -> io::Result<TcpStream> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        bind(&socket, &SocketAddr::from(([127, 0, 0, 2], 0)))?;
        connect(&socket, &target.server)?;
        Ok(TcpStream::from(socket))
    };
    for n in 0..10_000 {
        let stream = connected().map_err(broken(target, "opening a connection"))?;
        if n % 4 == 0 {
            let _ = (&stream).write(b"MODE READER\r\n");
        }
    }
    Ok(Vec::new())
}

fn garbage(target: &Target) -> Result<Vec<TcpStream>, Error> {
    for seed in 1..=50_u64 {
        let mut state = seed;
        let octet = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        let octets: Vec<u8> = (0..64 << 10).map(octet).collect();
        let came = end_of(&mut say(target.server, &octets)?);
        let mut lines = came.split(|octet| *octet == b'\n');
        let is_reply = |line: &[u8]| line.first().is_none_or(|first| b"245".contains(first));
        if !lines.all(is_reply) {
            return Err(refused(target, "garbage", &came));
        }
    }
    Ok(Vec::new())
}

fn line(target: &Target) -> Result<Vec<TcpStream>, Error> {
    let mut stream = say(target.server, b"")?;
    let piece = vec![b'x'; MIB];
    for _ in 0..64 {
        let sent = stream.write_all(&piece);
        sent.map_err(broken(target, "a line of 64 MiB"))?;
    }
    let _ = stream.write_all(b"\r\nDATE\r\n");
    let came = end_of(&mut stream);
    let has = |code: &[u8]| memchr::memmem::find(&came, code).is_some();
    if has(b"\r\n501 ") && has(b"\r\n111 ") {
        return Ok(Vec::new());
    }
    Err(refused(target, "a line of 64 MiB", &came))
}

fn headers(target: &Target) -> Result<Vec<TcpStream>, Error> {
    let mut client = Opened::open(target.server, false)?;
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
fn pipelined(target: &Target) -> Result<Vec<TcpStream>, Error> {
    let mut client = Opened::open(target.server, false)?;
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
        came.and(sent.map_err(broken(target, "10,000 commands")))
    });
    sent.map(|()| Vec::new())
}

/// On more connections than may be compressed: those that may not say so.
fn bombs(target: &Target) -> Result<Vec<TcpStream>, Error> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    let piece = vec![b'x'; MIB];
    let packed = (0..16).try_for_each(|_| encoder.write_all(&piece));
    let bomb = packed.and_then(|()| encoder.finish());
    let bomb = bomb.map_err(broken(target, "making a bomb"))?;
    let thrown = (0..60).map(|_| {
        let mut client = Opened::open(target.server, false)?;
        client.command("COMPRESS DEFLATE", &[206, 403])?;
        // It is no line, and too long for one: the server may have closed by now.
        let _ = client.send(&bomb);
        client.sender()
    });
    thrown.collect()
}
