//! Many attackers at once beside a reader: none gets what is not for it, what they cost is bounded, and the reader is
//! served all the time, each article whole.
//!
//! How much slower it gets is printed and not held here: attackers and server share the processors of one machine.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use newsreel_bench::attack::{ATTACKS, Attack, Target};
use newsreel_host::{Clock as _, RealClock};

use crate::client::NewsClient;
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
    let target = Target {
        server: address,
        secure,
    };
    let attacks = ATTACKS.iter();
    let (staying, passing): (Vec<&Attack>, Vec<&Attack>) =
        attacks.partition(|attack| ["stalled", "half-open"].contains(&attack.name));
    assert_eq!((staying.len(), passing.len()), (2, ATTACKS.len() - 2));
    let held: Vec<_> = staying
        .iter()
        .map(|attack| attack.run(&target).unwrap())
        .collect();
    let done = AtomicBool::new(false);
    let (attacked, most) = std::thread::scope(|scope| {
        let reading =
            scope.spawn(|| Read::articles(&mut reader, |_| !done.load(Ordering::Acquire)));
        let attacks = passing.iter();
        let attacks: Vec<_> = attacks
            .map(|attack| scope.spawn(|| attack.run(&target).unwrap()))
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
    drop(held);
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
