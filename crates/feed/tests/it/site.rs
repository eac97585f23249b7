//! Our side: an engine on a memory disk, and the peers it sends to.

use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::{Engine, EngineConfig, GroupSpec, Reason, Withdrawal};
use newsreel_feed::{PeerConfig, Peers, PeersConfig, problems};
use newsreel_host::{Clock, Disk, FakeClock, FaultyDisk, MemoryDisk};
use newsreel_net::Drain;
use newsreel_service::{Connection, ConnectionId, NewsService as _, Transfer, TransferKind};
use newsreel_store::StoreConfig;
use newsreel_wire::MessageId;

use crate::peer::World;

const NOW: u64 = 1_700_000_000;

type Open = fn(
    Arc<Engine>,
    Arc<dyn Disk>,
    &Path,
    Arc<dyn Clock>,
    Arc<dyn newsreel_feed::Dial>,
    &[PeerConfig],
) -> io::Result<Peers>;

pub(crate) struct Site {
    pub(crate) disk: Arc<dyn Disk>,
    /// What goes wrong with the engine's disk.
    pub(crate) faults: FaultyDisk,
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) world: Arc<World>,
}

/// Peers that send.
pub(crate) struct Sending {
    pub(crate) peers: Arc<Peers>,
    drain: Drain,
    task: tokio::task::JoinHandle<()>,
}

impl Sending {
    /// Stops as a server does.
    pub(crate) async fn stop(self) {
        self.drain.start();
        self.task.await.unwrap();
    }

    /// Ends as a server does that is killed.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

pub(crate) fn peers(text: &str) -> Vec<PeerConfig> {
    let peers: PeersConfig = toml::from_str(text).unwrap();
    assert_eq!(problems(&peers.peer), []);
    peers.peer
}

impl Site {
    pub(crate) fn new(names: &[&str]) -> Self {
        Self::keeping_log(
            names,
            EngineConfig::new(PathBuf::new()).sequencer.log_keep_octets,
        )
    }

    /// One that keeps no article in memory: all are read from the disk.
    pub(crate) fn reading_from_disk(names: &[&str]) -> Self {
        let octets = EngineConfig::new(PathBuf::new()).sequencer.log_keep_octets;
        Self::with(names, octets, Some(0))
    }

    /// One whose log is kept for feeds up to so many octets.
    pub(crate) fn keeping_log(names: &[&str], octets: u64) -> Self {
        Self::with(names, octets, None)
    }

    fn with(names: &[&str], octets: u64, recent_octets: Option<u64>) -> Self {
        let faults = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let disk: Arc<dyn Disk> = Arc::new(faults.clone());
        let clock = Arc::new(FakeClock::new(NOW));
        let mut config = EngineConfig::new(PathBuf::from("/spool"));
        config.store = StoreConfig::two_buffers(16 << 20);
        for buffer in &mut config.store.buffers {
            buffer.sparse = true;
        }
        config.store.sets[0].recent_octets = recent_octets;
        config.journal.segment_octets = 1 << 20;
        config.sequencer.path_identity = "us.example".to_owned();
        config.sequencer.log_keep_octets = octets;
        config.sequencer.checkpoint_log_octets = config.sequencer.checkpoint_log_octets.min(octets);
        config.scrub.octets_per_s = 0;
        let as_clock = Arc::clone(&clock) as Arc<dyn Clock>;
        let engine = Engine::open(config, Arc::clone(&disk), as_clock, &mut |_, _, _| {}).unwrap();
        engine
            .add_groups(vec![
                GroupSpec::new("misc.test"),
                GroupSpec::new("alt.test"),
            ])
            .unwrap();
        Self {
            disk,
            faults,
            clock,
            engine: Arc::new(engine),
            world: World::new(names),
        }
    }

    /// As a program sees them that looks while no server runs.
    pub(crate) fn found(&self, peers: &[PeerConfig]) -> Peers {
        self.peers(Peers::found, peers)
    }

    /// As a server does at its start.
    pub(crate) fn try_open(&self, peers: &[PeerConfig]) -> io::Result<Peers> {
        self.open(Peers::open, peers)
    }

    fn peers(&self, open: Open, peers: &[PeerConfig]) -> Peers {
        self.open(open, peers).unwrap()
    }

    fn open(&self, open: Open, peers: &[PeerConfig]) -> io::Result<Peers> {
        open(
            Arc::clone(&self.engine),
            Arc::clone(&self.disk),
            Path::new("/spool"),
            Arc::clone(&self.clock) as Arc<dyn Clock>,
            Arc::clone(&self.world) as Arc<dyn newsreel_feed::Dial>,
            peers,
        )
    }

    pub(crate) fn send_to(&self, peers: &[PeerConfig]) -> Sending {
        let peers = Arc::new(self.peers(Peers::open, peers));
        let drain = Drain::new();
        let run = Arc::clone(&peers).run(drain.watch());
        #[expect(clippy::disallowed_methods, reason = "joined by stop")]
        let task = tokio::spawn(run);
        Sending { peers, drain, task }
    }

    /// Articles from a peer, numbered.
    pub(crate) async fn receive(&self, numbers: std::ops::Range<usize>, group: &str) {
        self.receive_with(numbers, group, "").await;
    }

    /// The same, with more in their bodies.
    pub(crate) async fn receive_with(
        &self,
        numbers: std::ops::Range<usize>,
        group: &str,
        more: &str,
    ) {
        let connection = Arc::new(Connection::new(ConnectionId(1), None, None));
        let many = numbers.len();
        let mut batch: Vec<Transfer> = numbers
            .map(|n| {
                let id = id(n);
                let text = format!(
                    "Path: feeder.example!not-for-mail\r\nFrom: a@b.example\r\nNewsgroups: {group}\r\nSubject: {n}\r\n\
                     Date: Tue, 14 Nov 2023 22:00:00 +0000\r\nMessage-ID: {id}\r\n\r\nBody of {n}\r\n..dots\r\n{more}.\r\n"
                );
                Transfer {
                    ticket: n as u64,
                    kind: TransferKind::Takethis,
                    offered: MessageId::parse(id.as_bytes()).unwrap().into(),
                    article: text.into_bytes().into(),
                }
            })
            .collect();
        self.engine
            .service()
            .transfer(&mut batch, &connection)
            .await;
        let (mut done, mut some) = (0, Vec::new());
        while done < many {
            some.clear();
            poll_fn(|cx| connection.poll_completions(cx, &mut some)).await;
            done += some.len();
        }
    }

    /// Takes an article out.
    pub(crate) fn withdraw(&self, n: usize) {
        let article = id(n).parse().unwrap();
        let done = self.engine.withdraw(&[article], Reason::Cancelled);
        assert_eq!(done.unwrap(), [Withdrawal::Done]);
    }

    /// Waits until a peer has so many articles, hurrying what waits.
    pub(crate) async fn until_has(&self, sending: &Sending, name: &str, many: usize) {
        self.until(sending, name, |site| site.world.0[name].has() >= many)
            .await;
    }

    pub(crate) async fn until(&self, sending: &Sending, name: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..2000 {
            if is_so(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            self.clock.advance(Duration::from_millis(100));
            sending.peers.flush(name);
        }
        panic!("waited in vain: {:#?}", sending.peers.reports());
    }

    /// What a peer must have of an article, octet for octet.
    pub(crate) async fn stored(&self, n: usize) -> Vec<u8> {
        let mut out = newsreel_service::ArticleBuf::new();
        let id = id(n);
        let query = newsreel_service::ArticleQuery::ById(MessageId::parse(id.as_bytes()).unwrap());
        let service = self.engine.service();
        let found = service
            .article(query, newsreel_service::Part::Whole, &mut out)
            .await
            .unwrap();
        assert!(found.is_some());
        out.content().to_vec()
    }
}

pub(crate) fn id(n: usize) -> String {
    format!("<{n}@t.example>")
}
