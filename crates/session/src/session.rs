//! The session: one connection from greeting to its end.
//!
//! A turn of the loop uses up what has come, hands the articles among it to the service in one batch, gives the
//! answers that are due, sends them in one write, and waits.  CHECK and TAKETHIS are pipelined through reply slots;
//! any other command waits until the slots before it are empty.  While replies cannot be sent, or too many are owed,
//! nothing is read, so memory is bounded whatever the other side does.

use std::future::poll_fn;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use newsreel_net::access::{Door, Pace};
use newsreel_net::{Deflatable, DrainWatch, LineLimit, Stream, network_of};
use newsreel_service::posting::{self, Post};
use newsreel_service::{
    Connection, NewsService, OfferedId, Outcome, Places, Reject, Transfer, TransferKind,
};
use newsreel_wire::MessageId;
use newsreel_wire::nntp::line::{BadLine, Command};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::task::{coop::consume_budget, yield_now};

use crate::answers;
use crate::commands::{Verb, authinfo};
use crate::config::SessionConfig;
use crate::core::{Core, Incoming, scratch_of};
use crate::dispatch;
use crate::end::End;
use crate::framer::{Framed, Framer};
use crate::input::{Input, READ_BYTES_MAX};
use crate::link::{DROPPING_PAUSE, Link};
use crate::lists::Lists;
use crate::memory::Budget;
use crate::metrics::{Metrics, Tally};
use crate::pool;
use crate::pulse::{Beats, Pulse, Waiting};
use crate::slots::Answer;

/// Networks are told apart by so many lanes, in which what is thrown away waits for its turn.
const DROPPING_LANES: usize = 64;

/// What all sessions share.
#[derive(Debug)]
pub struct Shared {
    /// Limits and texts.
    pub(crate) config: SessionConfig,
    /// What LIST says of the site.
    pub(crate) lists: Lists,
    /// Counters.
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) beats: Beats,
    /// What large articles may take together.
    pub(crate) memory: Arc<Budget>,
    /// Connections that may still be compressed.
    pub(crate) compressed: Arc<Places<IpAddr>>,
    /// Whose turn it is to throw away what comes, of those from one network.
    dropping: [Mutex<()>; DROPPING_LANES],
    /// Lines about handshakes of TLS that failed.
    no_tls: LineLimit,
}

impl Shared {
    /// Waits for leave to throw away the next 64 KiB.  All connections from one network together have it once in
    /// [`DROPPING_PAUSE`], so what is of no use takes little of the processor, however many send it.
    async fn throw_away(&self, from: Option<IpAddr>) {
        let mut hasher = DefaultHasher::new();
        from.map(network_of).hash(&mut hasher);
        let lane = hasher.finish() as usize % DROPPING_LANES;
        let _turn = match self.dropping.get(lane) {
            Some(lane) => Some(lane.lock().await),
            None => None,
        };
        tokio::time::sleep(DROPPING_PAUSE).await;
    }

    /// Tells the log of a handshake of TLS that failed, of one in a second: strangers cause them as they like.
    pub fn note_no_tls(&self, address: Option<IpAddr>, error: &io::Error) {
        if let Some(more) = self.no_tls.admit() {
            let address = address.map(tracing::field::display);
            let advice = newsreel_net::advice(error);
            tracing::info!(target: "newsreel::net", address, more, "no TLS: {error}{advice}");
        }
    }

    /// Sessions begun with this have these limits and count here; a changed configuration gets a new one.
    #[must_use]
    pub fn new(config: SessionConfig, lists: Lists, metrics: Arc<Metrics>) -> Arc<Self> {
        let beats = Beats::new(&config);
        Arc::new(Self {
            memory: Arc::new(Budget::new(
                config.large_articles_bytes_max,
                config.article_room(),
            )),
            compressed: Places::new(config.compressed_connections_max),
            dropping: [const { Mutex::const_new(()) }; DROPPING_LANES],
            no_tls: LineLimit::default(),
            config,
            lists,
            metrics,
            beats,
        })
    }
}

/// What a connection offered may be asked of others when it ends, also when its task is cut.
struct Offering<S: NewsService> {
    service: Arc<S>,
    connection: Arc<Connection>,
}

impl<S: NewsService> Drop for Offering<S> {
    fn drop(&mut self) {
        self.service.release(&self.connection);
    }
}

/// Serves one connection until it ends; `door` says what it may do.
pub async fn serve<S, Io>(
    io: Stream<Io>,
    service: Arc<S>,
    shared: Arc<Shared>,
    connection: Connection,
    door: Door,
    drain: DrainWatch,
) -> End
where
    S: NewsService,
    Io: AsyncRead + AsyncWrite + Unpin + Send,
{
    let connection = Arc::new(connection);
    let _offering = Offering {
        service: Arc::clone(&service),
        connection: Arc::clone(&connection),
    };
    let mut session = Session::new(io, service, shared, connection, door, drain);
    dispatch::greet(&mut session.core);
    loop {
        let end = session.run().await;
        if end != End::StartTls {
            note_end(&session.core.shared, &session.core.connection, end);
            return end;
        }
        // Boxed: a handshake is short, and a session's task is held for all its time.
        match Box::pin(session.secured()).await {
            Ok(over_tls) => session = over_tls,
            Err(end) => return end,
        }
    }
}

struct Session<S, Io> {
    input: Input,
    framer: Framer,
    /// Octets that have come since other connections went on.
    came: usize,
    core: Core<S, Io>,
}

impl<S: NewsService, Io: AsyncRead + AsyncWrite + Unpin + Send> Session<S, Stream<Io>> {
    /// The session over TLS that STARTTLS begins: it has nothing of this one but who is connected (RFC 4642 section 2.2.2).
    async fn secured(self) -> Result<Self, End> {
        let Self { input, core, .. } = self;
        // What came behind the command in clear is no part of what is secured.
        drop(input);
        let Core {
            service,
            shared,
            connection,
            mut door,
            link: Link { io, drain, .. },
            ..
        } = core;
        let secured = match door.tls().map(Arc::clone) {
            Some(tls) => io.into_inner().secure(&tls).await,
            None => Err(io::ErrorKind::Unsupported.into()),
        };
        let end = match &secured {
            Ok(_) => End::StartTls,
            Err(_) => End::NoTls,
        };
        note_end(&shared, &connection, end);
        let io = secured.map_err(|error| {
            shared.note_no_tls(connection.address(), &error);
            end
        })?;
        let secured = door.secured(io.certificate_names());
        let mut session = Self::new(io, service, shared, connection, door, drain);
        if let Err(denied) = secured {
            session.core.reply(denied.reply());
            session.core.ending = Some(End::NoService);
        }
        Ok(session)
    }
}

/// Counts a session's end, and tells the log.
fn note_end(shared: &Shared, connection: &Connection, end: End) {
    shared.metrics.end(end);
    tracing::debug!(
        target: "newsreel::session",
        connection = connection.id().0,
        address = connection.address().map(tracing::field::display),
        end = end.label(),
        "session ended"
    );
}

/// Why using up what has come stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paused {
    /// Nothing whole is left: read on.
    Input,
    /// Answers must come first.
    Answers,
    /// The server is stopping: what is owed is still given.
    Draining,
    /// The session ends.
    Ending,
}

/// Why waiting ended.
enum Woken {
    Read(usize),
    Closed,
    Completions,
    Drain,
    Ended(End),
}

impl<S: NewsService, Io: AsyncRead + AsyncWrite + Unpin + Send> Session<S, Io> {
    fn new(
        io: Io,
        service: Arc<S>,
        shared: Arc<Shared>,
        connection: Arc<Connection>,
        door: Door,
        drain: DrainWatch,
    ) -> Self {
        let config = &shared.config;
        let memory = shared.memory.account(connection.address());
        let grant = Arc::clone(door.grant());
        let mut session = Self {
            input: Input::new(
                config.input_chunk_bytes,
                config.article_bytes_max,
                memory.clone(),
            ),
            framer: Framer::new(config.article_bytes_max),
            came: 0,
            core: Core {
                features: service.features(),
                service,
                connection,
                link: Link {
                    io: Deflatable::new(io),
                    pulse: Pulse::new(shared.beats, memory.clone()),
                    drain,
                    pace: Pace::new(0),
                    unpaid: None,
                    sent_at: tokio::time::Instant::now(),
                },
                scratch: None,
                selected: None,
                group_name: String::new(),
                incoming: None,
                bad_commands: 0,
                commands: Pace::new(0),
                articles: None,
                door,
                login: None,
                exchange: None,
                has_more_come: false,
                compressing: None,
                grant,
                poster: None,
                post: None,
                ending: None,
                memory,
                shared,
            },
        };
        session.core.take_grant();
        session
    }

    /// From the greeting, or what stands for it, to the end.
    async fn run(&mut self) -> End {
        self.core.shared.metrics.add(Tally::SessionsOpened, 1);
        let end = self.turns().await;
        if let Some(scratch) = self.core.scratch.take() {
            pool::give_scratch(scratch);
        }
        end
    }

    async fn turns(&mut self) -> End {
        let end = loop {
            match self.turn().await {
                Ok(()) => {}
                Err(end) => break end,
            }
        };
        let said = match end {
            End::Idle => Some("400 Idle for too long\r\n"),
            End::Slow => Some("400 Too slow\r\n"),
            End::NoMemory => Some("400 Too many large articles at once; try again later\r\n"),
            End::Stopping if self.core.ending.is_none() => Some("400 Server is stopping\r\n"),
            _ => None,
        };
        if let Some(line) = said {
            self.core.reply(line);
        }
        if said.is_some() || end == End::CutShort {
            let _ = self.core.flush().await;
        }
        // Before the other side can see the end, so that what it was asked for is free when it does.
        self.core.service.release(&self.core.connection);
        let goes_on = end == End::StartTls;
        if !goes_on && !matches!(end, End::Broken | End::WriteStalled) {
            self.core.link.linger(&mut self.input).await;
        }
        end
    }

    /// One turn; an error is the end.
    async fn turn(&mut self) -> Result<(), End> {
        let paused = self.use_input().await?;
        self.hand_over().await?;
        self.settle();
        self.core.flush().await?;
        if paused == Paused::Ending || self.core.ending.is_some() {
            return Err(self.core.ending.unwrap_or(End::Quit));
        }
        let owed = self
            .core
            .scratch
            .as_ref()
            .map_or(0, |scratch| scratch.slots.waiting());
        if paused == Paused::Answers && owed == 0 {
            return Ok(());
        }
        if paused == Paused::Draining && owed == 0 {
            return Err(End::Stopping);
        }
        if self.input.is_eof() && owed == 0 {
            return Err(End::PeerClosed);
        }
        let reading = paused == Paused::Input && !self.input.is_eof();
        match poll_fn(|cx| self.poll_wait(cx, reading, owed > 0)).await {
            Woken::Read(len) => {
                self.core.shared.metrics.add(Tally::OctetsIn, len as u64);
                self.core.link.came(len);
                self.others_go_on(len).await
            }
            Woken::Closed | Woken::Drain => Ok(()),
            Woken::Completions => {
                self.settle_taken();
                Ok(())
            }
            Woken::Ended(end) => Err(end),
        }
    }

    /// Who sends much, or what inflates to much, does not keep other connections waiting.
    async fn others_go_on(&mut self, came: usize) -> Result<(), End> {
        self.came += came;
        if self.came < READ_BYTES_MAX {
            return Ok(());
        }
        self.came = 0;
        if !self.framer.is_dropping() {
            yield_now().await;
            return Ok(());
        }
        self.input.shrink();
        let core = &mut self.core;
        core.shared.throw_away(core.connection.address()).await;
        // What comes all the time is never waited for, and has its time all the same.
        let waiting = match self.framer.is_skipping() {
            true => Waiting::Line,
            false => Waiting::Article,
        };
        match poll_fn(|cx| Poll::Ready(core.link.pulse.poll_beat(cx, waiting))).await {
            Poll::Ready(Some(end)) => Err(end),
            _ => Ok(()),
        }
    }

    /// Uses up whole lines and articles.
    async fn use_input(&mut self) -> Result<Paused, End> {
        let (replies_max, octets_max) = {
            let config = &self.core.shared.config;
            (config.pipeline_replies_max, config.pipeline_bytes_max)
        };
        loop {
            if self.core.ending.is_some() {
                return Ok(Paused::Ending);
            }
            if self
                .core
                .scratch
                .as_ref()
                .is_some_and(|scratch| scratch.slots.is_full(replies_max, octets_max))
            {
                return Ok(Paused::Answers);
            }
            if self.core.link.drain.is_started() && !self.framer.in_article() {
                return Ok(Paused::Draining);
            }
            if self.input.is_empty() {
                return Ok(Paused::Input);
            }
            let articles = self.core.articles.as_mut();
            if let Some(unpaid) = articles.and_then(|pace| pace.owes()) {
                // Seldom, and no room of every session's.
                Box::pin(self.pay_articles(unpaid)).await?;
                continue;
            }
            match self.framer.next(self.input.octets()) {
                Framed::More { used } => {
                    self.input.consume(used);
                    return Ok(Paused::Input);
                }
                Framed::Line { len, used } => {
                    if !self.command(len, used).await? {
                        return Ok(Paused::Answers);
                    }
                }
                Framed::Bad {
                    why,
                    takethis,
                    used,
                } => self.bad_line(why, takethis, used).await?,
                Framed::Article { used } => self.article(used),
                Framed::Oversized { used } => self.oversized(used),
                Framed::Response { len, used } => self.response(len, used).await?,
            }
            self.core.link.pulse.completed();
            self.core.room().await?;
        }
    }

    /// Articles have come faster than they may: they are handed over and answered, and until they are paid for nothing more is looked at,
    /// nor is much more read.
    async fn pay_articles(&mut self, unpaid: Duration) -> Result<(), End> {
        let mut paid = pin!(tokio::time::sleep(unpaid));
        self.hand_over().await?;
        loop {
            self.settle();
            self.core.flush().await?;
            let is_over = poll_fn(|cx| {
                if paid.as_mut().poll(cx).is_ready()
                    || self.core.link.drain.poll_started(cx).is_ready()
                {
                    return Poll::Ready(true);
                }
                let scratch = scratch_of(&mut self.core.scratch);
                if scratch.slots.waiting() == 0 {
                    return Poll::Pending;
                }
                scratch.completions.clear();
                let come = self
                    .core
                    .connection
                    .poll_completions(cx, &mut scratch.completions);
                come.map(|()| false)
            })
            .await;
            if is_over {
                return Ok(());
            }
            self.settle_taken();
        }
    }

    /// Carries a command out; false: it must wait for the answers before it.
    async fn command(&mut self, len: usize, used: usize) -> Result<bool, End> {
        let Self {
            input,
            framer,
            core,
            ..
        } = self;
        let line = input.octets().get(..len).unwrap_or_default();
        let command = Command::parse(line);
        let verb = Verb::find(command.verb);
        let pipelined = verb.is_some_and(|verb| verb.spec().pipelined);
        if !pipelined
            && core
                .scratch
                .as_ref()
                .is_some_and(|scratch| !scratch.slots.is_empty())
        {
            return Ok(false);
        }
        core.pay_command().await?;
        core.has_more_come = input.octets().len() > used;
        dispatch::run(core, verb, &command).await?;
        if !pipelined {
            // Many in one write that are answered from memory do not keep other connections waiting.
            consume_budget().await;
            core.hurry().await?;
        }
        if core.incoming.is_some() {
            framer.expect_article();
        } else if core.exchange.is_some() {
            framer.expect_response();
        }
        drop(command);
        input.consume(used);
        Ok(true)
    }

    /// A line of an exchange of AUTHINFO has come; none: one that cannot be it.
    async fn response(&mut self, len: Option<usize>, used: usize) -> Result<(), End> {
        let line = len.and_then(|len| self.input.octets().get(..len));
        authinfo::respond(&mut self.core, line).await?;
        self.input.consume(used);
        if self.core.exchange.is_some() {
            self.framer.expect_response();
        }
        Ok(())
    }

    async fn bad_line(&mut self, why: BadLine, takethis: bool, used: usize) -> Result<(), End> {
        self.core.pay_command().await?;
        self.input.consume(used);
        self.core.shared.metrics.command(None);
        let line = match why {
            BadLine::TooLong => "501 Command line is too long\r\n",
            BadLine::Octet => "501 NUL, CR or LF in the command line\r\n",
        };
        if takethis {
            self.core.incoming = Some(Incoming::Refused(line));
            self.framer.expect_article();
        } else {
            let line = dispatch::count_bad(&mut self.core).unwrap_or(line);
            answers::push(&mut self.core, Answer::Fixed(line), b"");
        }
        Ok(())
    }

    /// A whole article has come.
    fn article(&mut self, used: usize) {
        let article = self.input.cut(used);
        let Some(incoming) = self.core.incoming.take() else {
            return;
        };
        let (kind, offered) = match incoming {
            Incoming::Ihave(offered) => (TransferKind::Ihave, offered),
            Incoming::Takethis(offered) => (TransferKind::Takethis, offered),
            Incoming::Post(made) => return self.post(made, article),
            Incoming::Refused(line) => {
                return answers::push(&mut self.core, Answer::Fixed(line), b"");
            }
        };
        if let Some(pace) = &mut self.core.articles {
            pace.came();
        }
        let scratch = scratch_of(&mut self.core.scratch);
        let octets = article.len();
        let ticket = scratch
            .slots
            .push(Answer::Waiting(kind), offered.as_bytes(), octets);
        scratch.batch.push(Transfer {
            ticket,
            kind,
            offered,
            article,
        });
    }

    /// A whole post has come; `made` is the message-id it gets if it brings none.
    fn post(&mut self, made: OfferedId, article: Bytes) {
        let core = &mut self.core;
        let id = posting::own_id(&article).map_or(made, OfferedId::from);
        let waiting = Answer::Waiting(TransferKind::Post);
        let slots = &mut scratch_of(&mut core.scratch).slots;
        let ticket = slots.push(waiting, id.as_bytes(), article.len());
        // Without a poster there was no 340.
        core.post = core.poster.clone().map(|poster| Post {
            ticket,
            id,
            poster,
            article,
        });
    }

    /// The end of an article that was too large has come.
    fn oversized(&mut self, used: usize) {
        self.input.consume(used);
        self.core.shared.metrics.add(Tally::Oversized, 1);
        let (kind, offered) = match self.core.incoming.take() {
            Some(Incoming::Ihave(offered)) => (TransferKind::Ihave, offered),
            Some(Incoming::Takethis(offered)) => (TransferKind::Takethis, offered),
            Some(Incoming::Post(made)) => (TransferKind::Post, made),
            Some(Incoming::Refused(line)) => {
                return answers::push(&mut self.core, Answer::Fixed(line), b"");
            }
            None => return,
        };
        if let (Some(pace), true) = (&mut self.core.articles, kind != TransferKind::Post) {
            pace.came();
        }
        if let Ok(id) = MessageId::parse(offered.as_bytes()) {
            self.core.service.decline(id, &self.core.connection);
        }
        let outcome = Outcome::Rejected(Reject::TooLarge);
        answers::push(
            &mut self.core,
            Answer::Transferred(kind, outcome),
            offered.as_bytes(),
        );
    }

    /// Hands the articles that have come to the service, giving answers that come meanwhile.
    async fn hand_over(&mut self) -> Result<(), End> {
        let core = &mut self.core;
        if let Some(post) = core.post.take() {
            let (service, connection) = (Arc::clone(&core.service), Arc::clone(&core.connection));
            let mut taking = Box::pin(service.post(post, &connection));
            Self::await_taking(core, taking.as_mut()).await?;
        }
        let Some(scratch) = &mut core.scratch else {
            return Ok(());
        };
        if scratch.batch.is_empty() {
            return Ok(());
        }
        let mut batch = std::mem::take(&mut scratch.batch);
        let (service, connection) = (Arc::clone(&core.service), Arc::clone(&core.connection));
        {
            let taking = pin!(service.transfer(&mut batch, &connection));
            Self::await_taking(core, taking).await?;
        }
        scratch_of(&mut core.scratch).batch = batch;
        Ok(())
    }

    /// Waits until what was handed over is taken, giving answers that come meanwhile.  The taking stays where it is: a task that
    /// was given it would have room for it twice.
    async fn await_taking(
        core: &mut Core<S, Io>,
        mut taking: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(), End> {
        while poll_fn(|cx| Self::poll_taking(core, cx, taking.as_mut())).await {
            answers::settle(core);
            core.flush().await?;
        }
        Ok(())
    }

    /// Ready with false when the batch is taken, with true when answers have come before that.
    fn poll_taking(
        core: &mut Core<S, Io>,
        cx: &mut Context<'_>,
        taking: Pin<&mut impl Future<Output = ()>>,
    ) -> Poll<bool> {
        if taking.poll(cx).is_ready() {
            return Poll::Ready(false);
        }
        let scratch = scratch_of(&mut core.scratch);
        scratch.completions.clear();
        core.connection
            .poll_completions(cx, &mut scratch.completions)
            .map(|()| true)
    }

    /// Gives the answers that are there.
    fn settle(&mut self) {
        let core = &mut self.core;
        let Some(scratch) = &mut core.scratch else {
            return;
        };
        if scratch.slots.waiting() > 0 {
            scratch.completions.clear();
            core.connection.take_completions(&mut scratch.completions);
        }
        answers::settle(core);
    }

    /// Gives the answers that waiting has brought.
    fn settle_taken(&mut self) {
        self.core.link.pulse.moved(0);
        answers::settle(&mut self.core);
    }

    fn poll_wait(&mut self, cx: &mut Context<'_>, reading: bool, owed: bool) -> Poll<Woken> {
        let Self {
            input,
            framer,
            core,
            ..
        } = self;
        if owed {
            let scratch = scratch_of(&mut core.scratch);
            scratch.completions.clear();
            if core
                .connection
                .poll_completions(cx, &mut scratch.completions)
                .is_ready()
            {
                return Poll::Ready(Woken::Completions);
            }
        }
        if reading {
            match core.link.poll_read(cx, input) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Woken::Closed),
                Poll::Ready(Ok(len)) => {
                    core.link.pulse.moved(len);
                    return Poll::Ready(Woken::Read(len));
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::OutOfMemory => {
                    return Poll::Ready(Woken::Ended(End::NoMemory));
                }
                Poll::Ready(Err(_)) => return Poll::Ready(Woken::Ended(End::Broken)),
                Poll::Pending => {}
            }
        }
        let is_unpaid = core.link.unpaid.is_some();
        let waiting = match (framer.in_article(), input.is_empty()) {
            // What is thrown away has its limits also where it comes as fast as it may.
            (true, _) if reading && is_unpaid && framer.is_dropping() => Waiting::Article,
            (false, _) if reading && is_unpaid && framer.is_dropping() => Waiting::Line,
            (true, _) if reading && is_unpaid => Waiting::Paying,
            // It is not the other side that is slow.
            _ if !reading || is_unpaid => Waiting::Service,
            (true, _) => Waiting::Article,
            (false, false) => Waiting::Line,
            (false, true) if framer.is_skipping() => Waiting::Line,
            (false, true) if owed => Waiting::Service,
            (false, true) => Waiting::Command,
        };
        let between_articles = matches!(waiting, Waiting::Command | Waiting::Line)
            || reading && is_unpaid && !framer.in_article();
        if between_articles && core.link.drain.poll_started(cx).is_ready() {
            return Poll::Ready(Woken::Drain);
        }
        if waiting == Waiting::Command {
            if core
                .scratch
                .as_ref()
                .is_some_and(|scratch| scratch.is_idle())
                && let Some(scratch) = core.scratch.take()
            {
                pool::give_scratch(scratch);
            }
            core.link.pulse.completed();
        }
        while let Poll::Ready(passed) = core.link.pulse.poll_beat(cx, waiting) {
            if let Some(end) = passed {
                return Poll::Ready(Woken::Ended(end));
            }
            input.shrink();
        }
        Poll::Pending
    }
}
