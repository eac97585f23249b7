//! Connections to one server, lent one at a time to whoever has something to ask.
//!
//! No more than the configured number exist at any moment, those that are made, lent, idle and closed together: providers count them
//! from their beginning until they have closed them themselves, and bar accounts that go beyond; the limit may be that of an account
//! with several servers.  An idle one is looked at before it is lent, since servers close them.  A server that cannot be reached or
//! turns us away is left alone for a while that doubles; meanwhile the connections that are there go on being used, and one is made for
//! who asks in spite of that.  So is one that takes a question and says nothing: what connections idle there are of no more use then than
//! the one that was asked on, and only an answer, not a connection alone, says that it is back.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::account::{Account, Queued, Share};
use super::connection::Client;
use super::error::{ClientError, Fault};
use super::remote::Remote;
use super::socket::Socket;

/// How long a server is left alone after it could not be reached once.
const REST_MIN: Duration = Duration::from_secs(1);

/// How long at most, however often that happened.
const REST_MAX: Duration = Duration::from_secs(120);

/// The same after a refusal: whoever turned us away does not change its mind soon.
const REST_REFUSED_MIN: Duration = Duration::from_secs(15);

/// The same after a silence: whoever waits for the next answer waits long again.
const REST_SILENT_MIN: Duration = Duration::from_secs(10);

/// A silence of so long, at the end of which somebody gave up, is a server that does not answer.
const SILENT: Duration = Duration::from_secs(5);

/// Makes connections for a pool.
pub trait Connect: fmt::Debug + Send + Sync + 'static {
    /// What they go over.
    type Io: AsyncRead + AsyncWrite + fmt::Debug + Unpin + Send + 'static;

    /// What errors call the server.
    fn name(&self) -> String;

    /// One connection, ready for commands.
    fn connect(&self) -> impl Future<Output = Result<Client<Self::Io>, ClientError>> + Send;
}

impl Connect for Remote {
    type Io = Socket;

    fn name(&self) -> String {
        Self::name(self)
    }

    fn connect(&self) -> impl Future<Output = Result<Client<Socket>, ClientError>> + Send {
        Client::connect(self)
    }
}

/// How many connections a pool has, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolLimits {
    /// Connections at the same time: those that are made, lent, idle and closed together.
    pub connections_max: u16,
    /// How long an idle one is kept.
    pub idle: Duration,
    /// How long somebody waits for one.
    pub wait: Duration,
}

/// Connections to one server.
#[derive(Debug)]
pub struct Pool<C: Connect> {
    connect: C,
    name: Arc<str>,
    limits: PoolLimits,
    /// One permit for each connection that may be lent.
    places: Arc<Semaphore>,
    state: Mutex<State<C::Io>>,
    /// Connections that are being made or closed, each with its place: no more are there than places.
    tasks: Mutex<JoinSet<()>>,
    /// A connection came back, or the state of the server changed.
    changed: Notify,
    /// Connections count together with those to other servers.
    account: Option<Arc<Account<C>>>,
    /// Those who wait here for a share of it.
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct State<Io> {
    /// The longest idle in front.
    idle: VecDeque<Parked<Io>>,
    lent: usize,
    rest: Option<Rest>,
    is_closed: bool,
}

#[derive(Debug)]
pub(super) struct Parked<Io> {
    client: Client<Io>,
    since: Instant,
    /// Free again only when the server has closed the connection.
    share: Share,
}

/// What there is for who wants a connection.
enum Found<Io> {
    Idle(Box<Parked<Io>>),
    /// None is idle, and a new one may be made with this share.
    Room(Share),
}

/// The server is left alone.
#[derive(Debug)]
struct Rest {
    since: Instant,
    /// When the last connection was begun that could not be made.
    tried: Instant,
    until: Instant,
    length: Duration,
    why: Arc<str>,
    /// It takes connections, and says nothing.
    is_silent: bool,
}

/// No new connection is made now.
struct Resting {
    until: Instant,
    why: Arc<str>,
    /// Somebody may give one back before.
    is_lent: bool,
}

/// A connection that is lent: to be given back; dropped, it is closed.
#[derive(Debug)]
pub struct Lent<C: Connect> {
    /// None: it was given back, or is being closed.
    held: Option<(Parked<C::Io>, OwnedSemaphorePermit)>,
    pool: Arc<Pool<C>>,
    since: Instant,
    /// Answers that had come on it before.
    answers: u64,
}

impl<C: Connect> Pool<C> {
    /// A pool without a connection yet.
    pub fn new(connect: C, limits: PoolLimits) -> Arc<Self> {
        Self::of_account(connect, limits, None)
    }

    /// The same; its connections count together with those of the account's other pools.
    pub fn of_account(
        connect: C,
        limits: PoolLimits,
        account: Option<&Arc<Account<C>>>,
    ) -> Arc<Self> {
        let pool = Arc::new(Self {
            name: connect.name().into(),
            connect,
            limits,
            places: Arc::new(Semaphore::new(usize::from(limits.connections_max))),
            state: Mutex::new(State {
                idle: VecDeque::new(),
                lent: 0,
                rest: None,
                is_closed: false,
            }),
            tasks: Mutex::default(),
            changed: Notify::new(),
            account: account.cloned(),
            waiting: AtomicUsize::new(0),
        });
        if let Some(account) = account {
            account.enter(&pool);
        }
        pool
    }

    /// How many connections there may be at the same time.
    pub fn most(&self) -> usize {
        usize::from(self.limits.connections_max)
    }

    /// How many connections are lent, and how many idle.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.lent, state.idle.len())
    }

    /// Lends a connection: an idle one that is still there, a new one, or the next that comes back.
    ///
    /// # Errors
    /// When none can be had in time; at once while the server is left alone and no connection to it is lent.
    pub async fn lend(self: &Arc<Self>) -> Result<Lent<C>, ClientError> {
        self.lend_to(None, None).await
    }

    /// The same to who waits no longer in silence than this, be it for a new connection or for answers on the one that he gets.
    ///
    /// # Errors
    /// As [`Pool::lend`].
    pub async fn lend_for(
        self: &Arc<Self>,
        patience: Option<Duration>,
    ) -> Result<Lent<C>, ClientError> {
        self.lend_to(None, patience).await
    }

    /// The same to who knows better than to leave the server alone, since then: it is left alone only if it was tried since then.
    ///
    /// # Errors
    /// When none can be had in time.
    pub async fn lend_in_spite(self: &Arc<Self>, since: Instant) -> Result<Lent<C>, ClientError> {
        self.lend_to(Some(since), None).await
    }

    async fn lend_to(
        self: &Arc<Self>,
        in_spite: Option<Instant>,
        patience: Option<Duration>,
    ) -> Result<Lent<C>, ClientError> {
        let until = Instant::now() + self.limits.wait;
        loop {
            let permit = timeout_at(until, self.places.clone().acquire_owned()).await;
            let permit = match permit {
                Ok(Ok(permit)) => permit,
                Ok(Err(_)) => return Err(self.error(Fault::Stopped)),
                Err(_) => return Err(self.error(Fault::Busy(self.limits.wait))),
            };
            match self.find_or_room(in_spite, until).await? {
                Found::Idle(parked) => {
                    let mut lent = self.lent(*parked, permit);
                    if lent.is_fresh().await {
                        lent.wait_at_most(patience);
                        return Ok(lent);
                    }
                }
                Found::Room(share) => {
                    let mut lent = self.new_one(share, permit, patience).await?;
                    lent.wait_at_most(patience);
                    return Ok(lent);
                }
            }
        }
    }

    /// What there is for who has a place.
    async fn find_or_room(
        &self,
        in_spite: Option<Instant>,
        until: Instant,
    ) -> Result<Found<C::Io>, ClientError> {
        let mut queued = None;
        loop {
            let changed = self.changed.notified();
            if self.places.is_closed() {
                return Err(self.error(Fault::Stopped));
            }
            match self.find(in_spite) {
                Ok(Some(parked)) => return Ok(Found::Idle(Box::new(parked))),
                Ok(None) => {
                    if let Some(share) = self.share(&mut queued, changed, until).await? {
                        return Ok(Found::Room(share));
                    }
                }
                Err(resting) => {
                    // Nobody else waits for a share behind who cannot use one.
                    queued = None;
                    if resting.is_lent {
                        tokio::select! {
                            () = changed => {}
                            () = sleep_until(resting.until.min(until)) => {}
                        }
                    }
                    if !resting.is_lent || Instant::now() >= until {
                        return Err(self.error(Fault::Resting(resting.why)));
                    }
                }
            }
        }
    }

    fn lent(self: &Arc<Self>, parked: Parked<C::Io>, place: OwnedSemaphorePermit) -> Lent<C> {
        self.state.lock().lent += 1;
        let (since, answers) = (Instant::now(), parked.client.answers());
        let (held, pool) = (Some((parked, place)), Arc::clone(self));
        Lent {
            held,
            pool,
            since,
            answers,
        }
    }

    /// A new connection.  It is made to its end though who asked may not wait any more, and is for the next then: the server counts it
    /// from its beginning on.  A pool that closes waits for none.
    async fn new_one(
        self: &Arc<Self>,
        share: Share,
        place: OwnedSemaphorePermit,
        patience: Option<Duration>,
    ) -> Result<Lent<C>, ClientError> {
        let begun = Instant::now();
        let (tell, told) = oneshot::channel();
        let pool = Arc::clone(self);
        self.beside(async move {
            let opened = tokio::select! {
                opened = pool.open() => opened,
                () = pool.until_closed() => Err(pool.error(Fault::Stopped)),
            };
            let opened = opened.map(|client| {
                let since = Instant::now();
                let parked = Parked {
                    client,
                    since,
                    share,
                };
                pool.lent(parked, place)
            });
            if let Err(Ok(unwanted)) = tell.send(opened) {
                unwanted.give_back();
            }
        });
        let until = patience.map(|patience| (begun + patience, patience));
        let told = match until {
            None => told.await,
            Some((until, patience)) => match timeout_at(until, told).await {
                Ok(told) => told,
                Err(_) => {
                    let error = self.error(Fault::Silent(patience));
                    self.was_silent(&error, begun);
                    return Err(error);
                }
            },
        };
        told.unwrap_or_else(|_| Err(self.error(Fault::Stopped)))
    }

    /// The server said nothing to who asked it then: it is left alone, and nobody is lent what connections idle.
    fn was_silent(&self, error: &ClientError, begun: Instant) {
        self.state.lock().failed(error, begun);
        while self.closes_idle() {}
        self.changed.notify_waiters();
    }

    async fn until_closed(&self) {
        loop {
            let changed = self.changed.notified();
            if self.places.is_closed() {
                return;
            }
            changed.await;
        }
    }

    /// A share of the account for a new connection; none: something came back meanwhile.  Who goes on waiting then does so at the place
    /// that he has.
    async fn share(
        &self,
        queued: &mut Queued,
        changed: Notified<'_>,
        until: Instant,
    ) -> Result<Option<Share>, ClientError> {
        let Some(account) = &self.account else {
            return Ok(Some(None));
        };
        if let Ok(share) = Arc::clone(&account.places).try_acquire_owned() {
            return Ok(Some(Some(share)));
        }
        let places = Arc::clone(&account.places);
        let queued = queued.get_or_insert_with(|| Box::pin(places.acquire_owned()));
        // What comes back elsewhere from here on is not parked there, and what is parked is seen.
        let _waiting = account.wait(&self.waiting);
        account.make_room(self);
        tokio::select! {
            share = queued => Ok(Some(share.ok())),
            () = changed => Ok(None),
            () = sleep_until(until) => Err(self.error(Fault::Busy(self.limits.wait))),
        }
    }

    /// Closes a connection, beside everything else: its place and its share are free when the server has closed it, too.
    fn closes(&self, parked: Parked<C::Io>, place: Option<OwnedSemaphorePermit>) {
        let Parked { client, share, .. } = parked;
        let share = self.account.as_ref().map(|account| account.leaves(share));
        self.beside(async move {
            client.quit().await;
            drop((share, place));
        });
    }

    /// Does something with a connection, whatever becomes of who asked for it.
    fn beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        // Without a runtime everything ends.
        if let Ok(runtime) = Handle::try_current() {
            tasks.spawn_on(work, &runtime);
        }
    }

    /// Since when the longest idle connection is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.state.lock().idle.front().map(|parked| parked.since)
    }

    /// Closes the longest idle connection; false: none is idle, or whoever has the last place will have it.
    pub(super) fn closes_idle(&self) -> bool {
        let found = self.idle_if(|_| true);
        let is_found = found.is_some();
        if let Some((parked, place)) = found {
            self.closes(parked, Some(place));
        }
        is_found
    }

    /// Closes what was idle for too long, until the pool is closed; somebody has to run it.
    pub async fn tend(&self) {
        loop {
            let changed = self.changed.notified();
            let now = Instant::now();
            let is_overdue = |parked: &Parked<C::Io>| parked.since + self.limits.idle <= now;
            if let Some((parked, place)) = self.idle_if(is_overdue) {
                self.closes(parked, Some(place));
                continue;
            }
            let next = {
                let state = self.state.lock();
                if state.is_closed {
                    return;
                }
                let first = state.idle.front();
                first.map(|parked| parked.since + self.limits.idle)
            };
            match next {
                Some(next) if next > Instant::now() => tokio::select! {
                    () = changed => {}
                    () = sleep_until(next) => {}
                },
                _ => changed.await,
            }
        }
    }

    /// Lends none any more, says goodbye on those that are idle, and waits until all that are not lent are closed.
    pub async fn close(&self) {
        self.places.close();
        let idle = {
            let mut state = self.state.lock();
            state.is_closed = true;
            std::mem::take(&mut state.idle)
        };
        self.changed.notify_waiters();
        for parked in idle {
            self.closes(parked, None);
        }
        // One that is made meanwhile is closed behind these.
        loop {
            let mut tasks = std::mem::take(&mut *self.tasks.lock());
            if tasks.is_empty() {
                return;
            }
            while tasks.join_next().await.is_some() {}
        }
    }

    /// The longest idle connection, if it is such a one, with a place: while it is closed it still counts for the server.
    fn idle_if(
        &self,
        is_such: impl Fn(&Parked<C::Io>) -> bool,
    ) -> Option<(Parked<C::Io>, OwnedSemaphorePermit)> {
        let mut state = self.state.lock();
        state.idle.front().filter(|first| is_such(first))?;
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some((state.idle.pop_front()?, place))
    }

    /// An idle connection, or none: a new one may be made, also while the server is left alone if it was not tried since `in_spite`.
    fn find(&self, in_spite: Option<Instant>) -> Result<Option<Parked<C::Io>>, Resting> {
        let mut state = self.state.lock();
        if let Some(parked) = state.idle.pop_back() {
            return Ok(Some(parked));
        }
        let is_lent = state.lent > 0;
        let holds = |rest: &&Rest| in_spite.is_none_or(|since| rest.tried >= since);
        match state.rest.as_ref().filter(holds) {
            Some(rest) if rest.until > Instant::now() => Err(Resting {
                until: rest.until,
                why: rest.why.clone(),
                // What is lent to a server that says nothing does not come back soon.
                is_lent: is_lent && !rest.is_silent,
            }),
            _ => Ok(None),
        }
    }

    /// A new connection; how that went is remembered.  That a silent server lets one in is no answer.
    async fn open(&self) -> Result<Client<C::Io>, ClientError> {
        let begun = Instant::now();
        let opened = self.connect.connect().await;
        let mut state = self.state.lock();
        match &opened {
            Ok(_) => {
                state.rest.take_if(|rest| !rest.is_silent);
            }
            Err(error) => state.failed(error, begun),
        }
        drop(state);
        opened
    }

    fn error(&self, fault: Fault) -> ClientError {
        ClientError {
            server: self.name.clone(),
            doing: "waiting for a connection",
            fault,
        }
    }
}

impl<Io> State<Io> {
    /// A connection could not be made, or a question was not answered, that was begun then: the server is left alone.
    fn failed(&mut self, error: &ClientError, begun: Instant) {
        let is_silent = matches!(error.fault, Fault::Silent(_));
        let first = match error.fault.is_refusal() {
            true => REST_REFUSED_MIN,
            false if is_silent => REST_SILENT_MIN,
            false => REST_MIN,
        };
        let length = match &mut self.rest {
            // Several that failed together are one failure.
            Some(rest) if rest.since >= begun => {
                rest.tried = rest.tried.max(begun);
                return;
            }
            // It was not to be asked yet: that it was not there is nothing new.
            Some(rest) if rest.until > begun => rest.length,
            Some(rest) => rest.length * 2,
            None => first,
        };
        let (length, since) = (length.clamp(first, REST_MAX), Instant::now());
        self.rest = Some(Rest {
            since,
            tried: begun,
            until: since + length,
            length,
            why: error.to_string().into(),
            is_silent,
        });
    }
}

impl<C: Connect> Lent<C> {
    /// What was heard on it: a silence is remembered as a failure, until something is answered.
    fn heard(&self) {
        let Some((Parked { client, .. }, _)) = &self.held else {
            return;
        };
        let silent = client.silent_for();
        if silent >= SILENT {
            let error = client.error("waiting for an answer", Fault::Silent(silent));
            self.pool.was_silent(&error, self.since);
        } else if client.answers() > self.answers {
            // That one which was there before is answered is no word about new ones.
            self.pool.state.lock().rest.take_if(|rest| rest.is_silent);
        }
    }

    /// Gives it back; it is closed if something is still under way on it, or its share of the account is wanted elsewhere.
    pub fn give_back(mut self) {
        self.heard();
        let Some((mut parked, permit)) = self.held.take_if(|(parked, _)| parked.client.is_idle())
        else {
            return;
        };
        let pool = &self.pool;
        parked.since = Instant::now();
        let account = pool.account.as_ref();
        let mut state = pool.state.lock();
        if state.is_closed || account.is_some_and(|it| it.is_wanted_elsewhere(&pool.waiting)) {
            drop(state);
            pool.closes(parked, Some(permit));
        } else {
            state.idle.push_back(parked);
        }
    }
}

impl<C: Connect> Drop for Lent<C> {
    fn drop(&mut self) {
        self.heard();
        self.pool.state.lock().lent -= 1;
        if let Some((parked, permit)) = self.held.take() {
            self.pool.closes(parked, Some(permit));
        }
        self.pool.changed.notify_waiters();
    }
}

impl<C: Connect> Deref for Lent<C> {
    type Target = Client<C::Io>;

    #[expect(clippy::expect_used, reason = "nobody has one that was given back")]
    fn deref(&self) -> &Self::Target {
        &self.held.as_ref().expect("lent").0.client
    }
}

impl<C: Connect> DerefMut for Lent<C> {
    #[expect(clippy::expect_used, reason = "nobody has one that was given back")]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.held.as_mut().expect("lent").0.client
    }
}

#[cfg(test)]
mod tests;
