//! Many attackers at once beside a reader: none gets what is not for it, what they cost is bounded, and the reader is
//! served all the time, each article whole.
//!
//! How much slower it gets is printed and not held here: attackers and server share the processors of one machine.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use newsreel_host::{Clock as _, RealClock};

use crate::client::{NewsClient, article};
use crate::spool::{Server, Spool};

const MIB: u64 = 1 << 20;

/// What the server may take beside what it has alone: large articles (`session.large_articles_bytes_max`, 16 MiB), forty
/// compressed connections of 400 KiB, two hundred stalled ones that each have begun an article of 64 KiB, as many half-open
/// handshakes, and what the allocator keeps of ten thousand connections.
const GROWTH_OCTETS_MAX: u64 = 64 * MIB;

/// No more than one article in a hundred may take longer, on whatever machine.
const SLOW_MAX: Duration = Duration::from_secs(2);

const CONFIG: &str = r#"
[tls]
certificate = "cert.pem"
key = "key.pem"

[[access]]
name = "anybody"
read = "*"
feed = true
"#;

fn start() -> (Spool, Server, SocketAddr) {
    let listen = ("[listen]", "[listen]\ntls_addresses = [\"127.0.0.1:0\"]");
    let session = "\n[session]\nlarge_articles_bytes_max = \"16MiB\"\narticle_bytes_max = \"1MiB\"\n\
                   compressed_connections_max = 40\n";
    let spool = Spool::with(&(Spool::changed(&[listen]) + session + CONFIG));
    spool.certify("a.example");
    let server = spool.serve();
    let secure = spool.secure_address();
    (spool, server, secure)
}

/// A connection that says this first; what a server does to it is no concern of its own.
fn say(address: SocketAddr, octets: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).unwrap();
    stream.set_write_timeout(patience).unwrap();
    let _ = stream.write_all(octets);
    stream
}

/// Everything that comes until the end.
fn end_of(stream: &mut TcpStream) -> Vec<u8> {
    let _ = stream.shutdown(Shutdown::Write);
    let mut came = Vec::new();
    let _ = stream.read_to_end(&mut came);
    came
}

/// Octets that no protocol has, the same each time.
fn garbage(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(next).collect()
}

/// Connections that are opened and dropped, some with a word: from an address of their own, so that they take no port of 127.0.0.1
/// on which other tests are about to listen.
fn drops(address: SocketAddr) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    runtime.block_on(async {
        for n in 0..10_000 {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
            let stream = socket.connect(address).await.unwrap();
            if n % 4 == 0 {
                let _ = stream.try_write(b"MODE READER\r\n");
            }
        }
    });
}

/// A line of 64 MB, a command block that never ends a line, and garbage.
fn lines(address: SocketAddr) {
    let mut long = say(address, b"");
    let chunk = vec![b'x'; 1 << 20];
    let sent = (0..64).take_while(|_| long.write_all(&chunk).is_ok());
    assert_eq!(sent.count(), 64, "it is read to its end");
    let _ = long.write_all(b"\r\nDATE\r\n");
    let came = String::from_utf8(end_of(&mut long)).unwrap();
    assert!(
        came.contains("\r\n501 ") && came.contains("\r\n111 "),
        "{came}"
    );
    for seed in 1..50 {
        let came = end_of(&mut say(address, &garbage(seed, 64 << 10)));
        let came = String::from_utf8(came).unwrap();
        let mut said = came.lines();
        let is_fine = said.all(|line| {
            line.as_bytes()
                .first()
                .is_some_and(|it| b"245".contains(it))
        });
        assert!(is_fine, "{came}");
    }
}

/// Header blocks that are bombs: many fields, one field of megabytes, an article without end of 64 MB.
fn headers(address: SocketAddr) {
    let mut client = NewsClient::connect(address);
    let many = "X-Field: value\r\n".repeat(40_000);
    let folded = format!("X-Field: v\r\n{}", " folded\r\n".repeat(80_000));
    for (n, block) in [many, folded].iter().enumerate() {
        let text = article(&format!("<bomb{n}@t.example>"), "misc.test");
        client.send(format!("TAKETHIS <bomb{n}@t.example>\r\n{block}{text}").as_bytes());
        assert!(client.line().starts_with("439 "), "{n}");
    }
    client.send(b"TAKETHIS <huge@t.example>\r\n");
    let chunk = b"a line of a body without end\r\n".repeat(34_953);
    for _ in 0..64 {
        client.send(&chunk);
    }
    client.send(b".\r\n");
    assert_eq!(&client.line()[..3], "439");
    assert_eq!(&client.ask("DATE")[..3], "111");
}

/// Ten thousand commands at once, and replies that are not read before all were sent.
fn pipelined(address: SocketAddr) {
    let mut client = NewsClient::connect(address);
    let mut writer = client.writer();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            writer
                .write_all(&b"STAT <none@t.example>\r\nDATE\r\n".repeat(5_000))
                .unwrap();
        });
        std::thread::sleep(Duration::from_millis(200));
        for n in 0..5_000 {
            assert_eq!(&client.line()[..3], "430", "{n}");
            assert_eq!(&client.line()[..3], "111", "{n}");
        }
    });
}

/// Compressed octets that inflate to a thousand times as much, on more connections than may be compressed.
fn bombs(address: SocketAddr) {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    for _ in 0..16 {
        encoder.write_all(&vec![b'x'; 1 << 20]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 1 << 16, "{}", bomb.len());
    let held: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut stream = say(address, b"COMPRESS DEFLATE\r\n");
            let mut came = Vec::new();
            while came.iter().filter(|octet| **octet == b'\n').count() < 2 {
                let mut some = [0; 256];
                let len = stream.read(&mut some).unwrap();
                assert!(len > 0, "{came:?}");
                came.extend_from_slice(&some[..len]);
            }
            let _ = stream.write_all(&bomb);
            stream
        })
        .collect();
    drop(held);
}

/// What one reader saw: articles, and how long each took, sorted.
struct Read(Vec<Duration>);

impl Read {
    /// Fetches articles as long as it is told, and compares each.
    fn articles(client: &mut NewsClient, goes_on: impl Fn(usize) -> bool) -> Self {
        let (clock, mut took) = (RealClock::new(), Vec::new());
        while goes_on(took.len()) {
            let number = took.len() % 20 + 1;
            let begun = clock.monotonic();
            let said = client.ask(&format!("ARTICLE {number}"));
            assert!(said.starts_with(&format!("220 {number} ")), "{said}");
            let lines = client.block();
            took.push(clock.monotonic().saturating_sub(begun));
            let last = format!("body of <{number}@t.example>");
            assert_eq!(lines.last(), Some(&last));
        }
        took.sort();
        Self(took)
    }

    fn percentile(&self, percent: usize) -> Duration {
        let at = (self.0.len() * percent / 100).min(self.0.len() - 1);
        self.0[at]
    }
}

#[test]
fn a_reader_is_served_beside_many_attackers() {
    let (spool, server, secure) = start();
    let address = server.address;
    spool.text(&["group", "add", "misc.test"]);
    let mut feeder = NewsClient::connect(address);
    for n in 1..=20 {
        let id = format!("<{n}@t.example>");
        assert_eq!(feeder.takethis(&id, "misc.test"), format!("239 {id}"));
    }
    let mut reader = NewsClient::connect(address);
    assert!(reader.ask("GROUP misc.test").starts_with("211 20 1 20 "));
    let alone = Read::articles(&mut reader, |read| read < 2_000);
    let memory = || spool.json(&["status"])["memory_octets"].as_u64().unwrap();
    let before = memory();

    // Those who stall stay all the time: in a line, in an article, in a handshake.
    let begun = [
        b"TAKETHIS <stalled@t.example>\r\nSubject: ".to_vec(),
        vec![b'x'; 64 << 10],
    ];
    let begun = begun.concat();
    let stalled: Vec<TcpStream> = (0..200)
        .map(|n| say(address, if n % 2 == 0 { b"ARTIC" } else { &begun }))
        .collect();
    let half_open: Vec<TcpStream> = (0..200)
        .map(|n| {
            say(
                secure,
                if n % 2 == 0 {
                    b""
                } else {
                    &[22, 3, 1, 2, 0, 1, 0]
                },
            )
        })
        .collect();
    let done = AtomicBool::new(false);
    let (attacked, most) = std::thread::scope(|scope| {
        let reading =
            scope.spawn(|| Read::articles(&mut reader, |_| !done.load(Ordering::Acquire)));
        let attacks = [drops, lines, headers, pipelined, bombs];
        let attacks: Vec<_> = attacks
            .into_iter()
            .map(|attack| scope.spawn(move || attack(address)))
            .collect();
        let mut most = 0;
        while !attacks.iter().all(|attack| attack.is_finished()) {
            most = most.max(memory());
        }
        done.store(true, Ordering::Release);
        for attack in attacks {
            attack.join().unwrap();
        }
        (reading.join().unwrap(), most)
    });
    let said = |read: &Read| format!("{:?} {:?}", read.percentile(50), read.percentile(99));
    println!(
        "median and 99th percentile of {} articles alone {}, of {} beside attackers {}; memory {} MiB, then {} MiB at most",
        alone.0.len(),
        said(&alone),
        attacked.0.len(),
        said(&attacked),
        before / MIB,
        most / MIB
    );
    let slow = attacked.percentile(99);
    assert!(slow < SLOW_MAX, "{slow:?}");
    assert!(most < before + GROWTH_OCTETS_MAX, "{before} {most}");
    drop((stalled, half_open));
    // Nothing of theirs is here, and nobody else's work suffered.
    let status = spool.json(&["status"]);
    assert_eq!(status["counters"]["accepted"], 20);
    assert_eq!(
        feeder.takethis("<21@t.example>", "misc.test"),
        "239 <21@t.example>"
    );
    assert!(!spool.log().contains("panicked"), "{}", spool.log());
    server.stop();
}
