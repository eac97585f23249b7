//! An engine on a memory disk and a client that hands it articles and waits for answers.

use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::{Engine, EngineConfig, GroupSpec, LocalService};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Clock, Disk, FakeClock, MemoryDisk, Op};
use newsreel_service::{
    ArticleBuf, ArticleQuery, Completion, Connection, ConnectionId, NewsService, Outcome,
    OverviewRows, Part, ServiceError, Transfer, TransferKind,
};
use newsreel_store::StoreConfig;
use newsreel_wire::{ArticleNumber, GroupName, MessageId};

pub(crate) struct World {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) config: EngineConfig,
    pub(crate) engine: Engine,
    pub(crate) service: Arc<LocalService>,
    pub(crate) connection: Arc<Connection>,
}

pub(crate) const NOW: u64 = 1_700_000_000;

pub(crate) fn config(octets: u64) -> EngineConfig {
    let mut config = EngineConfig::new(PathBuf::from("/spool"));
    config.store = StoreConfig::two_buffers(octets);
    for buffer in &mut config.store.buffers {
        buffer.sparse = true;
    }
    config.journal.segment_octets = 1 << 20;
    config.sequencer.path_identity = "news.example".to_owned();
    // Tests count what is read and written; those of the scrub turn it on.
    config.scrub.octets_per_s = 0;
    config
}

fn open(config: &EngineConfig, disk: &Arc<dyn Disk>, clock: &Arc<FakeClock>) -> Engine {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    Engine::open(config.clone(), Arc::clone(disk), clock, &mut |_, _, _| {}).unwrap()
}

/// Ends the server, has something done to its disk, and starts it again.
pub(crate) fn between_runs(world: World, change: impl FnOnce(&dyn Disk)) -> World {
    let World {
        disk,
        clock,
        config,
        engine,
        ..
    } = world;
    engine.shutdown().unwrap();
    drop(engine);
    change(disk.as_ref());
    open_on(disk, &config, &clock)
}

/// The spool on this disk, as it is.
pub(crate) fn open_on(disk: Arc<dyn Disk>, config: &EngineConfig, clock: &Arc<FakeClock>) -> World {
    let engine = open(config, &disk, clock);
    let service = engine.service();
    let connection = Arc::new(Connection::new(ConnectionId(1), None, None));
    World {
        disk,
        clock: Arc::clone(clock),
        config: config.clone(),
        engine,
        service,
        connection,
    }
}

impl World {
    pub(crate) fn new(config: EngineConfig) -> Self {
        Self::on(Arc::new(MemoryDisk::new()), config)
    }

    /// A new spool on this disk.
    pub(crate) fn on(disk: Arc<dyn Disk>, config: EngineConfig) -> Self {
        let world = open_on(disk, &config, &Arc::new(FakeClock::new(NOW)));
        let groups = ["misc.test", "misc.other"].map(GroupSpec::new).to_vec();
        world.engine.add_groups(groups).unwrap();
        world
    }

    pub(crate) fn restart(self) -> Self {
        let Self {
            disk,
            clock,
            config,
            engine,
            connection,
            ..
        } = self;
        engine.shutdown().unwrap();
        drop(engine);
        let engine = open(&config, &disk, &clock);
        let service = engine.service();
        Self {
            disk,
            clock,
            config,
            engine,
            service,
            connection,
        }
    }

    /// Has a checkpoint made and waits until the views are sealed up to here.
    pub(crate) fn seal(&self) {
        let upto = self.engine.status().sequence;
        self.engine.checkpoint().unwrap();
        self.wait_until("the checkpoint", |world| {
            world.engine.status().checkpoint >= upto
        });
    }

    /// Waits until something is so; a test that waits in vain fails.
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..3000 {
            if is_so(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("waited in vain for {what}: {:?}", self.engine.status());
    }

    /// Lets both clocks go on.
    pub(crate) fn wait_s(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// The largest number a group has given, as GROUP shows it.
    pub(crate) fn high(&self, group: &str) -> u64 {
        self.engine.group(group).unwrap().high
    }

    /// What a check complains of.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.engine.check(&mut |_, _| {}).unwrap().problems
    }

    /// Every overview line of a group, as OVER shows it.
    pub(crate) async fn lines(&self, name: &str) -> Vec<String> {
        self.try_lines(name).await.unwrap()
    }

    /// The same, where something may be damaged.
    pub(crate) async fn try_lines(&self, name: &str) -> Result<Vec<String>, ServiceError> {
        let name = GroupName::parse(name.as_bytes()).unwrap();
        let group = self.service.group(name).await?.unwrap().id;
        let (mut from, high) = (ArticleNumber(1), ArticleNumber(u64::MAX));
        let mut lines = Vec::new();
        loop {
            let mut rows = OverviewRows::default();
            let service = &self.service;
            let next = service.overview(group, from, high, 4096, &mut rows).await;
            let text = String::from_utf8(rows.text().to_vec()).unwrap();
            lines.extend(text.lines().map(str::to_owned));
            match next? {
                Some(next) => from = next,
                None => return Ok(lines),
            }
        }
    }

    /// Sends articles and waits for all answers, in the order of the articles.
    pub(crate) async fn send(&self, articles: &[(String, Vec<u8>)]) -> Vec<Outcome> {
        self.send_by(&self.connection, articles).await
    }

    /// The same as another peer.
    pub(crate) async fn send_by(
        &self,
        connection: &Arc<Connection>,
        articles: &[(String, Vec<u8>)],
    ) -> Vec<Outcome> {
        let mut batch: Vec<Transfer> = articles
            .iter()
            .enumerate()
            .map(|(ticket, (id, article))| Transfer {
                ticket: ticket as u64,
                kind: TransferKind::Takethis,
                offered: MessageId::parse(id.as_bytes()).unwrap().into(),
                article: article.clone().into(),
            })
            .collect();
        self.service.transfer(&mut batch, connection).await;
        let mut outcomes = vec![None; articles.len()];
        let mut open = articles.len();
        let mut done: Vec<Completion> = Vec::new();
        while open > 0 {
            poll_fn(|cx| connection.poll_completions(cx, &mut done)).await;
            for completion in done.drain(..) {
                outcomes[completion.ticket as usize] = Some(completion.outcome);
                open -= 1;
            }
        }
        outcomes.into_iter().map(Option::unwrap).collect()
    }

    /// Sends the articles of `make(1)`, `make(2)`, ... until a commit of one of them failed; which one, and what was said of its articles.
    ///
    /// The fault may meet another sync of the log, as that of the segment which is to come: articles are put off then, or taken.
    pub(crate) async fn until_a_commit_fails(
        &self,
        faulty: &FaultyDisk,
        make: impl Fn(usize) -> Vec<(String, Vec<u8>)>,
    ) -> (usize, Vec<Outcome>) {
        for nth in 1..500 {
            self.wait_until("the log", |world| world.engine.status().paused.is_none());
            faulty.add(Fault::new(Op::Sync, "/log/", Effect::Medium));
            let outcomes = self.send(&make(nth)).await;
            faulty.clear();
            if outcomes.contains(&Outcome::Failed) {
                self.wait_until("the log", |world| world.engine.status().paused.is_none());
                return (nth, outcomes);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no commit failed");
    }

    /// Sends it again for as long as the server cannot take it yet.
    pub(crate) async fn send_until_answered(&self, one: &(String, Vec<u8>)) -> Outcome {
        for _ in 0..500 {
            let outcome = self.send(std::slice::from_ref(one)).await[0];
            if !matches!(outcome, Outcome::Failed | Outcome::Deferred(_)) {
                return outcome;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{} was put off for ever", one.0);
    }

    pub(crate) async fn read(&self, query: ArticleQuery<'_>, part: Part) -> Option<String> {
        let mut out = ArticleBuf::new();
        let found = self.service.article(query, part, &mut out).await.unwrap();
        found.map(|_| String::from_utf8(out.content().to_vec()).unwrap())
    }

    /// How an article is asked for by number.
    pub(crate) async fn numbered(&self, group: &str, number: u64) -> ArticleQuery<'static> {
        let name = GroupName::parse(group.as_bytes()).unwrap();
        let group = self.service.group(name).await.unwrap().unwrap();
        ArticleQuery::ByNumber(group.id, ArticleNumber(number))
    }

    pub(crate) async fn by_id(&self, id: &str) -> Option<String> {
        let id = MessageId::parse(id.as_bytes()).unwrap();
        self.read(ArticleQuery::ById(id), Part::Whole).await
    }
}

/// Article `n`, posted to these groups.
pub(crate) fn article(n: usize, groups: &str) -> (String, Vec<u8>) {
    let id = format!("<{n}@t.example>");
    let text = format!(
        "Path: feeder.example!not-for-mail\r\nFrom: a@b.example\r\nNewsgroups: {groups}\r\n\
         Subject: number {n}\r\nDate: Tue, 14 Nov 2023 22:00:00 +0000\r\nMessage-ID: {id}\r\n\r\n\
         Body of {n}\r\n..dots\r\n.\r\n"
    );
    (id, text.into_bytes())
}
