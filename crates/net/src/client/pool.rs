//! Connections to one server, lent one at a time to whoever has something to ask.
//!
//! No more than the configured number exist at any moment, lent, idle and closing together: providers count them until they have
//! closed them themselves, and bar accounts that go beyond; the limit may be that of an account with several servers.  An idle one is looked at before it is lent, since servers close them.  A server that cannot be reached
//! or turns us away is left alone for a while that doubles; meanwhile the connections that are there go on being used.

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
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::account::{Account, Share};
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
    /// Connections at the same time, lent and idle together.
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
    /// Those that are being closed, each with its place: no more are there than places.
    leaving: Mutex<JoinSet<()>>,
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

/// The server is left alone.
#[derive(Debug)]
struct Rest {
    since: Instant,
    until: Instant,
    length: Duration,
    why: Arc<str>,
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
            leaving: Mutex::default(),
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
        let until = Instant::now() + self.limits.wait;
        loop {
            let permit = timeout_at(until, self.places.clone().acquire_owned()).await;
            let permit = match permit {
                Ok(Ok(permit)) => permit,
                Ok(Err(_)) => return Err(self.error(Fault::Stopped)),
                Err(_) => return Err(self.error(Fault::Busy(self.limits.wait))),
            };
            let (mut parked, is_new) = self.parked(until).await?;
            if is_new || parked.client.is_fresh().await {
                self.state.lock().lent += 1;
                return Ok(Lent {
                    held: Some((parked, permit)),
                    pool: Arc::clone(self),
                });
            }
            self.closes(parked, Some(permit));
        }
    }

    /// A connection for who has a place, and whether it is a new one; else it was idle.
    async fn parked(&self, until: Instant) -> Result<(Parked<C::Io>, bool), ClientError> {
        loop {
            let changed = self.changed.notified();
            match self.find() {
                Ok(Some(parked)) => return Ok((parked, false)),
                Ok(None) => {
                    if let Some(share) = self.share(changed, until).await? {
                        let (client, since) = (self.open().await?, Instant::now());
                        let parked = Parked {
                            client,
                            since,
                            share,
                        };
                        return Ok((parked, true));
                    }
                }
                Err(resting) => {
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

    /// A share of the account for a new connection; none: something came back meanwhile.
    async fn share(
        &self,
        changed: Notified<'_>,
        until: Instant,
    ) -> Result<Option<Share>, ClientError> {
        let Some(account) = &self.account else {
            return Ok(Some(None));
        };
        if let Ok(share) = Arc::clone(&account.places).try_acquire_owned() {
            return Ok(Some(Some(share)));
        }
        // What comes back elsewhere from here on is not parked there, and what is parked is seen.
        let _waiting = account.wait(&self.waiting);
        account.make_room(self);
        tokio::select! {
            share = Arc::clone(&account.places).acquire_owned() => Ok(Some(share.ok())),
            () = changed => Ok(None),
            () = sleep_until(until) => Err(self.error(Fault::Busy(self.limits.wait))),
        }
    }

    /// Closes a connection, beside everything else: its place and its share are free when the server has closed it, too.
    fn closes(&self, parked: Parked<C::Io>, place: Option<OwnedSemaphorePermit>) {
        let Parked { client, share, .. } = parked;
        let share = self.account.as_ref().map(|account| account.leaves(share));
        let mut leaving = self.leaving.lock();
        while leaving.try_join_next().is_some() {}
        let closing = async move {
            client.quit().await;
            drop((share, place));
        };
        // Without a runtime everything ends.
        if let Ok(runtime) = Handle::try_current() {
            leaving.spawn_on(closing, &runtime);
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
        let mut leaving = std::mem::take(&mut *self.leaving.lock());
        while leaving.join_next().await.is_some() {}
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

    /// An idle connection, or none: a new one may be made.
    fn find(&self) -> Result<Option<Parked<C::Io>>, Resting> {
        let mut state = self.state.lock();
        if let Some(parked) = state.idle.pop_back() {
            return Ok(Some(parked));
        }
        let is_lent = state.lent > 0;
        match &state.rest {
            Some(rest) if rest.until > Instant::now() => Err(Resting {
                until: rest.until,
                why: rest.why.clone(),
                is_lent,
            }),
            _ => Ok(None),
        }
    }

    /// A new connection; how that went is remembered.
    async fn open(&self) -> Result<Client<C::Io>, ClientError> {
        let begun = Instant::now();
        let opened = self.connect.connect().await;
        let mut state = self.state.lock();
        match &opened {
            Ok(_) => state.rest = None,
            Err(error) => {
                let now = Instant::now();
                // Several that failed together are one failure.
                if state.rest.as_ref().is_none_or(|rest| rest.since < begun) {
                    let first = if error.fault.is_refusal() {
                        REST_REFUSED_MIN
                    } else {
                        REST_MIN
                    };
                    let last = state.rest.as_ref().map(|rest| rest.length * 2);
                    let length = last.unwrap_or(first).clamp(first, REST_MAX);
                    state.rest = Some(Rest {
                        since: now,
                        until: now + length,
                        length,
                        why: error.to_string().into(),
                    });
                }
            }
        }
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

impl<C: Connect> Lent<C> {
    /// Gives it back; it is closed if something is still under way on it, or its share of the account is wanted elsewhere.
    pub fn give_back(mut self) {
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
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
    use tokio::task::JoinSet;

    use super::*;
    use crate::client::Remote;

    /// A server: how it greets, and what became of its connections.
    #[derive(Debug, Default)]
    struct Toy {
        tasks: Mutex<JoinSet<()>>,
        open: AtomicUsize,
        open_max: AtomicUsize,
        came: AtomicUsize,
        refuses: Mutex<Option<&'static str>>,
        silence: Option<Duration>,
        /// How long it takes to close a connection behind its last word.
        goodbye: Duration,
    }

    #[derive(Debug, Clone)]
    struct To(Arc<Toy>);

    async fn serve(io: DuplexStream, toy: Arc<Toy>) {
        let mut io = BufReader::new(io);
        let refused = *toy.refuses.lock();
        let _ = io
            .write_all(refused.unwrap_or("200 ready\r\n").as_bytes())
            .await;
        let silence = toy.silence.unwrap_or(Duration::from_secs(1_000_000));
        let mut line = String::new();
        while refused.is_none()
            && let Ok(Ok(1..)) = tokio::time::timeout(silence, io.read_line(&mut line)).await
        {
            let answer: &[u8] = match line.as_str() {
                "QUIT\r\n" => b"205 bye\r\n",
                "DATE\r\n" => b"111 20260101000000\r\n",
                _ => b"101 list\r\nREADER\r\n.\r\n",
            };
            let _ = io.write_all(answer).await;
            if line == "QUIT\r\n" {
                break;
            }
            line.clear();
        }
        tokio::time::sleep(toy.goodbye).await;
        toy.open.fetch_sub(1, Ordering::Relaxed);
    }

    impl Connect for To {
        type Io = DuplexStream;

        fn name(&self) -> String {
            "news.example:119".to_owned()
        }

        async fn connect(&self) -> Result<Client<DuplexStream>, ClientError> {
            let toy = &self.0;
            let open = toy.open.fetch_add(1, Ordering::Relaxed) + 1;
            toy.open_max.fetch_max(open, Ordering::Relaxed);
            toy.came.fetch_add(1, Ordering::Relaxed);
            let (ours, theirs) = duplex(1024);
            toy.tasks.lock().spawn(serve(theirs, toy.clone()));
            Client::open(ours, &Remote::reader("news.example")).await
        }
    }

    fn pool(connections_max: u16, toy: Toy) -> (Arc<Toy>, Arc<Pool<To>>) {
        let toy = Arc::new(toy);
        let limits = PoolLimits {
            connections_max,
            idle: Duration::from_secs(60),
            wait: Duration::from_secs(10),
        };
        (toy.clone(), Pool::new(To(toy), limits))
    }

    async fn asks(pool: Arc<Pool<To>>, is_given_back: bool) {
        let mut lent = pool.lend().await.unwrap();
        lent.command(&[b"DATE"]).unwrap();
        if is_given_back {
            assert_eq!(lent.reply("DATE").await.unwrap(), 111);
        }
        lent.give_back();
    }

    async fn settle() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_never_more_than_the_limit_and_those_are_used_again() {
        let (toy, pool) = pool(3, Toy::default());
        let mut asking = JoinSet::new();
        for _ in 0..50 {
            asking.spawn(asks(pool.clone(), true));
        }
        asking.join_all().await;
        assert_eq!(toy.open_max.load(Ordering::Relaxed), 3);
        assert_eq!(toy.came.load(Ordering::Relaxed), 3);
        assert_eq!(pool.counts(), (0, 3));
        // One that is given back half done is closed.
        asks(pool.clone(), false).await;
        assert_eq!(pool.counts(), (0, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_too_long_is_told() {
        let (_toy, pool) = pool(1, Toy::default());
        let lent = pool.lend().await.unwrap();
        let told = pool.lend().await.unwrap_err().to_string();
        let expected = "news.example:119: waiting for a connection: all are in use, and none came back for 10 s";
        assert_eq!(told, expected);
        lent.give_back();
        pool.lend().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_one_that_the_server_closed_is_not_lent() {
        let silence = Some(Duration::from_secs(30));
        let (toy, pool) = pool(
            2,
            Toy {
                silence,
                ..Toy::default()
            },
        );
        asks(pool.clone(), true).await;
        tokio::time::sleep(Duration::from_secs(31)).await;
        asks(pool.clone(), true).await;
        assert_eq!(toy.came.load(Ordering::Relaxed), 2);
        assert_eq!(pool.counts(), (0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn idle_ones_are_closed_in_time_and_all_of_them_at_the_end() {
        let (toy, pool) = pool(2, Toy::default());
        let (one, two) = (pool.lend().await.unwrap(), pool.lend().await.unwrap());
        one.give_back();
        let mut tending = JoinSet::new();
        let tended = pool.clone();
        tending.spawn(async move { tended.tend().await });
        tokio::time::sleep(Duration::from_secs(50)).await;
        two.give_back();
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(pool.counts(), (0, 1));
        assert_eq!(toy.open.load(Ordering::Relaxed), 1);
        pool.close().await;
        tending.join_all().await;
        settle().await;
        assert_eq!(toy.open.load(Ordering::Relaxed), 0);
        let told = pool.lend().await.unwrap_err();
        assert!(matches!(told.fault, Fault::Stopped), "{told}");
    }

    /// Two servers of one account never have more connections than it may, whoever is asked: an idle one at the other is closed, and
    /// who waits gets the place of one that comes back there.
    #[tokio::test(start_paused = true)]
    async fn servers_of_one_account_have_no_more_together_than_it_may() {
        let toy = Arc::new(Toy {
            goodbye: Duration::from_millis(200),
            ..Toy::default()
        });
        let limits = PoolLimits {
            connections_max: 3,
            idle: Duration::from_secs(60),
            wait: Duration::from_secs(10),
        };
        let account = Account::new(3);
        let one = Pool::of_account(To(toy.clone()), limits, Some(&account));
        let two = Pool::of_account(To(toy.clone()), limits, Some(&account));
        let mut asking = JoinSet::new();
        for turn in 0..60 {
            let pool = if turn % 3 == 0 { &one } else { &two };
            asking.spawn(asks(pool.clone(), turn % 7 != 0));
        }
        asking.join_all().await;
        assert_eq!(toy.open_max.load(Ordering::Relaxed), 3);
        // All that there may be are idle at one, and then at the other.
        for pool in [&one, &two, &one] {
            let mut all = JoinSet::new();
            for _ in 0..3 {
                let pool = pool.clone();
                all.spawn(async move { pool.lend().await.unwrap() });
            }
            let all = all.join_all().await;
            assert_eq!((one.counts().0 + two.counts().0, all.len()), (3, 3));
            all.into_iter().for_each(Lent::give_back);
        }
        assert_eq!((one.counts(), two.counts()), ((0, 3), (0, 0)));
        let lent = [one.lend().await, one.lend().await, one.lend().await];
        let told = two.lend().await.unwrap_err().to_string();
        assert!(told.contains("all are in use"), "{told}");
        let waiting = async { two.lend().await.unwrap() };
        let giving = async {
            settle().await;
            lent.into_iter().for_each(|one| one.unwrap().give_back());
        };
        drop(tokio::join!(waiting, giving).0);
        assert_eq!(toy.open_max.load(Ordering::Relaxed), 3);
        // Without anybody who waits elsewhere they are parked.
        asks(one.clone(), true).await;
        assert!(one.counts().1 > 0);
    }

    /// So does a connection that was not let in.
    #[tokio::test(start_paused = true)]
    async fn one_that_was_turned_away_counts_until_the_server_has_closed_it() {
        let toy = Arc::new(Toy {
            goodbye: Duration::from_millis(200),
            refuses: Mutex::new(Some("502 not you\r\n")),
            ..Toy::default()
        });
        let limits = PoolLimits {
            connections_max: 1,
            idle: Duration::from_secs(60),
            wait: Duration::from_secs(10),
        };
        let account = Account::new(1);
        let one = Pool::of_account(To(toy.clone()), limits, Some(&account));
        let two = Pool::of_account(To(toy.clone()), limits, Some(&account));
        assert!(one.lend().await.is_err());
        *toy.refuses.lock() = None;
        two.lend().await.unwrap().give_back();
        assert_eq!(toy.open_max.load(Ordering::Relaxed), 1);
    }

    /// A connection that says goodbye still counts for the server.
    #[tokio::test(start_paused = true)]
    async fn nobody_takes_the_place_of_one_that_says_goodbye() {
        let goodbye = Duration::from_secs(1);
        let (toy, pool) = pool(
            1,
            Toy {
                goodbye,
                ..Toy::default()
            },
        );
        let mut tending = JoinSet::new();
        let tended = pool.clone();
        tending.spawn(async move { tended.tend().await });
        asks(pool.clone(), true).await;
        tokio::time::sleep(Duration::from_millis(60_500)).await;
        let lent = pool.lend().await.unwrap();
        assert_eq!(toy.came.load(Ordering::Relaxed), 2);
        assert_eq!(toy.open_max.load(Ordering::Relaxed), 1);
        // No more does that of one that is given up.
        drop(lent);
        let lent = pool.lend().await.unwrap();
        assert_eq!(toy.came.load(Ordering::Relaxed), 3);
        assert_eq!(toy.open_max.load(Ordering::Relaxed), 1);
        drop(lent);
        settle().await;
        // Nothing is idle, and who tends is woken all the same.
        pool.close().await;
        tending.join_all().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_turns_us_away_is_left_alone_for_a_while_that_doubles() {
        let (toy, pool) = pool(3, Toy::default());
        let lent = pool.lend().await.unwrap();
        *toy.refuses.lock() = Some("400 too many\r\n");
        let came = || toy.came.swap(0, Ordering::Relaxed);
        came();
        // Several at once are one failure, and then nobody tries.
        let (one, two) = tokio::join!(pool.lend(), pool.lend());
        assert!(one.is_err() && two.is_err());
        assert_eq!(came(), 2);
        lent.give_back();
        asks(pool.clone(), true).await;
        let lent = pool.lend().await.unwrap();
        // Who comes now gets the one that is lent as soon as it comes back.
        let waiting = async { pool.lend().await.unwrap() };
        let giving = async {
            settle().await;
            lent.give_back();
        };
        drop(tokio::join!(waiting, giving).0);
        let told = pool.lend().await.unwrap_err().to_string();
        assert!(told.contains("left alone for a while: "), "{told}");
        assert!(told.contains("400 too many"), "{told}");
        assert_eq!(came(), 0);
        tokio::time::sleep(Duration::from_secs(15)).await;
        assert!(pool.lend().await.is_err());
        assert_eq!(came(), 1);
        tokio::time::sleep(Duration::from_secs(29)).await;
        assert!(pool.lend().await.is_err());
        assert_eq!(came(), 0);
        *toy.refuses.lock() = None;
        tokio::time::sleep(Duration::from_secs(2)).await;
        asks(pool.clone(), true).await;
        assert_eq!(came(), 1);
    }
}
