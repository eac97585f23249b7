//! NNTP over the real engine on a disk that cannot be read: 403 to whoever asked, and nobody is told that an article is gone.
//!
//! All in one process: the session, the engine, and a disk in memory that fails when it is told to.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use newsreel_engine::{Engine, EngineConfig, GroupSpec};
use newsreel_host::{Clock, Disk, Effect, FakeClock, Fault, FaultyDisk, MemoryDisk, Op};
use newsreel_net::access::{Door, Grant};
use newsreel_net::{Drain, Stream};
use newsreel_service::{Connection, ConnectionId};
use newsreel_session::{Lists, Metrics, SessionConfig, Shared, serve};
use newsreel_store::StoreConfig;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};

use crate::client::article;

/// The day of the articles that tests send.
const NOW_S: u64 = 1_767_182_400;
const ARTICLES: usize = 40;

struct World {
    disk: FaultyDisk,
    clock: Arc<FakeClock>,
    config: EngineConfig,
    engine: Engine,
}

fn id(nth: usize) -> String {
    format!("<{nth}@failing.example>")
}

impl World {
    /// A server whose articles and overview readers find on the disk only.
    async fn new() -> Self {
        let mut config = EngineConfig::new(PathBuf::from("/spool"));
        config.store = StoreConfig::two_buffers(4 << 20);
        config.store.sets[0].recent_octets = Some(0);
        config.journal.segment_octets = 1 << 20;
        config.sequencer.path_identity = "news.example".to_owned();
        let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let clock = Arc::new(FakeClock::new(NOW_S));
        let engine = open(&config, &disk, &clock);
        engine
            .add_groups(vec![GroupSpec::new("misc.test")])
            .unwrap();
        let world = Self {
            disk,
            clock,
            config,
            engine,
        };
        let mut client = world.connect().await;
        for nth in 0..ARTICLES {
            let id = id(nth);
            let text = format!("TAKETHIS {id}\r\n{}", article(&id, "misc.test"));
            client.send(&text).await;
            assert_eq!(client.line().await, format!("239 {id}"));
        }
        drop(client);
        let Self {
            disk,
            clock,
            config,
            engine,
        } = world;
        engine.shutdown().unwrap();
        drop(engine);
        let engine = open(&config, &disk, &clock);
        Self {
            disk,
            clock,
            config,
            engine,
        }
    }

    async fn connect(&self) -> Client {
        let (ours, theirs) = duplex(64 << 10);
        let door = Door::open(Grant::everything("test"), Ipv4Addr::LOCALHOST.into());
        let shared = Shared::new(
            SessionConfig::default(),
            Lists::default(),
            Arc::new(Metrics::default()),
        );
        let connection = Connection::new(ConnectionId(1), None, None);
        let watch = Drain::new().watch();
        let service = self.engine.service();
        #[expect(
            clippy::disallowed_methods,
            reason = "a test's runtime ends all its tasks"
        )]
        tokio::spawn(serve(
            Stream::Plain(theirs),
            service,
            shared,
            connection,
            door,
            watch,
        ));
        let mut client = Client(BufReader::new(ours));
        assert!(client.line().await.starts_with("20"));
        client
    }

    /// From now on nothing on a path with this part can be read.
    fn fail(&self, path_part: &str) {
        let fault = Fault::new(Op::Read, path_part, Effect::Medium);
        self.disk.add(fault.forever());
    }
}

fn open(config: &EngineConfig, disk: &FaultyDisk, clock: &Arc<FakeClock>) -> Engine {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    Engine::open(config.clone(), disk, clock, &mut |_, _, _| {}).unwrap()
}

struct Client(BufReader<DuplexStream>);

impl Client {
    async fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        assert!(line.ends_with("\r\n"), "{line:?}");
        line.truncate(line.len() - 2);
        line
    }

    /// The first line of the reply, and the lines of its block where one follows such a reply.
    async fn ask(&mut self, command: &str) -> (String, Vec<String>) {
        self.send(&format!("{command}\r\n")).await;
        let reply = self.line().await;
        let mut block = Vec::new();
        let code = reply.split(' ').next().unwrap_or_default();
        if ["220", "221", "222", "224", "225"].contains(&code) {
            loop {
                let line = self.line().await;
                if line == "." {
                    break;
                }
                block.push(line);
            }
        }
        (reply, block)
    }

    async fn assert_codes(&mut self, code: &str, commands: &[String]) {
        for command in commands {
            let (reply, _) = self.ask(command).await;
            assert!(reply.starts_with(code), "{command}: {reply}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_read_now_is_403_and_comes_back() {
    let world = World::new().await;
    let mut client = world.connect().await;
    client.ask("GROUP misc.test").await;
    let articles: Vec<String> = [
        "ARTICLE",
        "HEAD",
        "BODY",
        "HDR Organization",
        "XHDR Organization",
    ]
    .iter()
    .flat_map(|verb| [format!("{verb} {}", id(7)), format!("{verb} 9")])
    .collect();
    world.fail("/buffers/");
    client.assert_codes("403 ", &articles).await;
    // What is known without the articles is still served, and what is not there is still told apart.
    let (reply, lines) = client.ask("OVER 1-").await;
    assert!(reply.starts_with("224 "), "{reply}");
    assert_eq!(lines.len(), ARTICLES);
    let known = [format!("STAT {}", id(7)), "STAT 9".to_owned()];
    client.assert_codes("223 ", &known).await;
    let missing = ["ARTICLE <none@failing.example>".to_owned()];
    client.assert_codes("430 ", &missing).await;
    client
        .assert_codes("423 ", &["ARTICLE 4000".to_owned()])
        .await;
    assert!(world.engine.status().counters.disk_errors >= 10);

    world.disk.clear();
    for nth in 0..ARTICLES {
        let (reply, lines) = client.ask(&format!("ARTICLE {}", id(nth))).await;
        assert_eq!(reply, format!("220 0 {}", id(nth)));
        assert_eq!(lines.last(), Some(&format!("body of {}", id(nth))));
    }
    assert_eq!(
        world.engine.check(&mut |_, _| {}).unwrap().problems,
        [""; 0]
    );
}

/// One sector that could not be read took the line of every article behind it.
#[tokio::test]
async fn one_article_that_cannot_be_read_takes_no_other_out_of_a_list() {
    let world = World::new().await;
    let mut client = world.connect().await;
    client.ask("GROUP misc.test").await;
    let (_, whole) = client.ask("HDR Organization 1-").await;
    assert_eq!(whole.len(), ARTICLES);
    for nth in [1, 20, ARTICLES as u64] {
        let sector = Fault::new(Op::Read, "/buffers/", Effect::Medium);
        world.disk.add(sector.nth(nth));
        let (reply, lines) = client.ask("HDR Organization 1-").await;
        assert!(reply.starts_with("225 "), "{reply}");
        let mut expected = whole.clone();
        expected.remove(nth as usize - 1);
        assert_eq!(lines, expected);
        world.disk.clear();
    }
    world.fail("/buffers/");
    let both = ["HDR Organization 1-", "XPAT Organization 1- *"].map(str::to_owned);
    client.assert_codes("403 ", &both).await;
}

/// The overview of what was sealed is on the disk only.
#[tokio::test]
async fn an_overview_that_cannot_be_read_now_is_403_and_comes_back() {
    let world = World::new().await;
    let mut client = world.connect().await;
    let before = client.ask("GROUP misc.test").await.0;
    world.fail("/index/");
    let commands = ["OVER 1-", "XOVER 3", "HDR Subject 1-"].map(str::to_owned);
    client.assert_codes("403 ", &commands).await;
    let (reply, _) = client.ask("DATE").await;
    assert!(reply.starts_with("111 "), "{reply}");
    world.disk.clear();
    let (reply, lines) = client.ask("OVER 1-").await;
    assert!(reply.starts_with("224 "), "{reply}");
    assert_eq!(lines.len(), ARTICLES);
    assert_eq!(client.ask("GROUP misc.test").await.0, before);
}
