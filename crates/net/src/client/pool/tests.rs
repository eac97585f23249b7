//! A pool before a server that is scripted, in time that is made.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::task::JoinSet;

use super::*;
use crate::client::{Remote, Security, Trust};

/// A server: how it greets, and what became of its connections.
#[derive(Debug, Default)]
struct Toy {
    tasks: Mutex<JoinSet<()>>,
    open: AtomicUsize,
    open_max: AtomicUsize,
    came: AtomicUsize,
    refuses: Mutex<Option<&'static str>>,
    /// It takes what is said, and says nothing but when a connection begins.
    hangs: AtomicBool,
    silence: Option<Duration>,
    /// How long it takes to greet.
    greeting: Duration,
    /// How long it takes to close a connection behind its last word.
    goodbye: Duration,
    /// What is spoken to it; it speaks no TLS.
    security: Option<Security>,
}

#[derive(Debug, Clone)]
struct To(Arc<Toy>);

async fn serve(io: DuplexStream, toy: Arc<Toy>) {
    let mut io = BufReader::new(io);
    let refused = *toy.refuses.lock();
    tokio::time::sleep(toy.greeting).await;
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
            "STARTTLS\r\n" => b"382 go on\r\nwith this\r\n",
            _ => b"101 list\r\nREADER\r\nSTARTTLS\r\n.\r\n",
        };
        if line.starts_with("CAPABILITIES") || !toy.hangs.load(Ordering::Relaxed) {
            let _ = io.write_all(answer).await;
        }
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
        let mut remote = Remote::reader("news.example");
        remote.security = toy.security.clone().unwrap_or(Security::None);
        Client::open(ours, &remote).await
    }
}

const fn limits(connections_max: u16) -> PoolLimits {
    PoolLimits {
        connections_max,
        idle: Duration::from_secs(60),
        wait: Duration::from_secs(10),
    }
}

fn pool(connections_max: u16, toy: Toy) -> (Arc<Toy>, Arc<Pool<To>>) {
    let toy = Arc::new(toy);
    (toy.clone(), Pool::new(To(toy), limits(connections_max)))
}

/// Two servers of an account that may have so many connections; three lenders at each may ask.
fn of_one_account(connections_max: u16, toy: &Arc<Toy>) -> [Arc<Pool<To>>; 2] {
    let account = Account::new(connections_max);
    [(); 2].map(|()| Pool::of_account(To(toy.clone()), limits(3), Some(&account)))
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
    let expected =
        "news.example:119: waiting for a connection: all are in use, and none came back for 10 s";
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
    let [one, two] = of_one_account(3, &toy);
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

/// Who waited for a share went behind all others whenever a connection came back where he waits.
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_share_keeps_his_place() {
    let toy = Arc::new(Toy::default());
    let [one, two] = of_one_account(2, &toy);
    let (here, there) = (one.lend().await.unwrap(), two.lend().await.unwrap());
    let mut waiting = JoinSet::new();
    for (place, pool) in [(1, one.clone()), (2, two.clone())] {
        waiting.spawn(async move { (place, pool.lend().await.unwrap()) });
        settle().await;
    }
    drop(here);
    let (place, first) = waiting.join_next().await.unwrap().unwrap();
    assert_eq!(place, 1);
    drop(there);
    let (place, second) = waiting.join_next().await.unwrap().unwrap();
    assert_eq!(place, 2);
    drop((first, second));
}

/// One that is left alone holds no share back that it cannot use.
#[tokio::test(start_paused = true)]
async fn who_waits_at_a_server_that_is_left_alone_is_not_waited_for() {
    let toy = Arc::new(Toy::default());
    let [one, two] = of_one_account(3, &toy);
    let (stays, goes) = (one.lend().await.unwrap(), two.lend().await.unwrap());
    let last = one.lend().await.unwrap();
    let mut waiting = JoinSet::new();
    for (place, pool) in [(1, one.clone()), (2, two.clone())] {
        waiting.spawn(async move { (place, pool.lend().await) });
        settle().await;
    }
    one.state.lock().rest = Some(Rest {
        since: Instant::now(),
        tried: Instant::now(),
        until: Instant::now() + REST_MAX,
        length: REST_MAX,
        why: "it is".into(),
        is_silent: false,
    });
    drop(last);
    let (place, second) = waiting.join_next().await.unwrap().unwrap();
    assert_eq!((place, second.is_ok()), (2, true));
    drop((stays, goes, waiting));
}

/// So does a connection that was not let in.
#[tokio::test(start_paused = true)]
async fn one_that_was_turned_away_counts_until_the_server_has_closed_it() {
    let toy = Arc::new(Toy {
        goodbye: Duration::from_millis(200),
        refuses: Mutex::new(Some("502 not you\r\n")),
        ..Toy::default()
    });
    let [one, two] = of_one_account(1, &toy);
    assert!(one.lend().await.is_err());
    *toy.refuses.lock() = None;
    two.lend().await.unwrap().give_back();
    assert_eq!(toy.open_max.load(Ordering::Relaxed), 1);
}

/// So does one over which TLS was to be spoken: it was closed at once, and the server had not seen that.
#[tokio::test(start_paused = true)]
async fn one_without_the_tls_that_was_wanted_counts_until_the_server_has_closed_it() {
    let made = rcgen::generate_simple_self_signed(["news.example".to_owned()]).unwrap();
    let own = made.cert.pem();
    let trust = Trust::new("news.example", Some(own.as_bytes()), None).unwrap();
    let connect = Remote::reader("news.example").times.connect;
    let second = Duration::from_secs(1);
    for (security, greeting, told) in [
        (Security::Implicit(trust.clone()), Duration::ZERO, "TLS"),
        (
            Security::Starttls(trust.clone()),
            Duration::ZERO,
            "octets before TLS",
        ),
        (Security::Implicit(trust), connect + second, "TLS"),
    ] {
        let is_garbled = matches!(security, Security::Implicit(_));
        let (toy, pool) = pool(
            1,
            Toy {
                greeting,
                goodbye: Duration::from_millis(200),
                refuses: Mutex::new(is_garbled.then_some("200 this is no TLS\r\n")),
                security: Some(security),
                ..Toy::default()
            },
        );
        let error = pool.lend().await.unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
        assert_eq!(toy.came.load(Ordering::Relaxed), 1);
        assert_eq!(toy.open.load(Ordering::Relaxed), 0, "{error}");
    }
}

/// So does one that nobody waits for any more when it is there: whoever comes next has it, or its share.
#[tokio::test(start_paused = true)]
async fn one_that_is_made_for_nobody_counts_and_is_used() {
    let toy = Arc::new(Toy {
        greeting: Duration::from_millis(200),
        goodbye: Duration::from_millis(200),
        ..Toy::default()
    });
    let [one, two] = of_one_account(1, &toy);
    let short = Duration::from_millis(10);
    assert!(tokio::time::timeout(short, one.lend()).await.is_err());
    drop(two.lend().await.unwrap());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(tokio::time::timeout(short, one.lend()).await.is_err());
    one.lend().await.unwrap().give_back();
    assert!(tokio::time::timeout(short, two.lend()).await.is_err());
    one.close().await;
    two.close().await;
    assert_eq!(toy.open_max.load(Ordering::Relaxed), 1);
    assert_eq!(toy.came.load(Ordering::Relaxed), 3);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(toy.open.load(Ordering::Relaxed), 0);
}

/// A stop waited for a server that said nothing, and for who waited for a share, and then connected.
#[tokio::test(start_paused = true)]
async fn a_pool_that_closes_waits_for_no_greeting() {
    let toy = Arc::new(Toy {
        greeting: Duration::from_secs(1000),
        ..Toy::default()
    });
    let [pool, _] = of_one_account(1, &toy);
    let mut asking = JoinSet::new();
    for _ in 0..3 {
        let pool = pool.clone();
        asking.spawn(async move { pool.lend().await.unwrap_err().to_string() });
    }
    settle().await;
    let begun = Instant::now();
    pool.close().await;
    for told in asking.join_all().await {
        assert!(told.contains("is stopping"), "{told}");
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(toy.came.load(Ordering::Relaxed), 1);
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

/// Who knew that the server was back had to wait for two minutes all the same.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_left_alone_is_asked_by_who_knows_better() {
    let (toy, pool) = pool(3, Toy::default());
    *toy.refuses.lock() = Some("400 not now\r\n");
    let came = || toy.came.swap(0, Ordering::Relaxed);
    assert!(pool.lend().await.is_err());
    settle().await;
    assert_eq!(came(), 1);
    let asked = Instant::now();
    assert!(pool.lend_in_spite(asked).await.is_err());
    assert_eq!(came(), 1);
    // What was tried since he asked is not tried for him again.
    let told = pool.lend_in_spite(asked).await.unwrap_err().to_string();
    assert!(told.contains("left alone for a while: "), "{told}");
    assert!(pool.lend().await.is_err());
    assert_eq!(came(), 0);
    // Nobody else waits longer for that: the pause begins anew and is no longer than it was.
    tokio::time::sleep(Duration::from_secs(14)).await;
    assert!(pool.lend().await.is_err());
    assert_eq!(came(), 0);
    *toy.refuses.lock() = None;
    tokio::time::sleep(Duration::from_secs(2)).await;
    asks(pool.clone(), true).await;
    assert_eq!(came(), 1);
    // It is back for everybody as soon as one was let in.
    *toy.refuses.lock() = Some("400 not now\r\n");
    let lent = pool.lend().await.unwrap();
    assert!(pool.lend().await.is_err());
    *toy.refuses.lock() = None;
    settle().await;
    drop(pool.lend_in_spite(Instant::now()).await.unwrap());
    drop(lent);
    asks(pool.clone(), true).await;
}

/// Each question was waited for a minute: a server that lets connections in was never left alone.
#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_left_alone_until_it_answers() {
    let (toy, pool) = pool(3, Toy::default());
    let came = || toy.came.swap(0, Ordering::Relaxed);
    let asked = async |patience: Duration| {
        let begun = Instant::now();
        let mut lent = pool.lend_for(Some(patience)).await?;
        lent.command(&[b"DATE"])?;
        let answer = lent.reply("DATE").await.map(|_| ());
        lent.give_back();
        answer.map(|()| begun.elapsed())
    };
    let ten = Duration::from_secs(10);
    // One idles beside it, and one is lent.
    let (idle, lent) = (pool.lend().await.unwrap(), pool.lend().await.unwrap());
    idle.give_back();
    assert_eq!(asked(ten).await.unwrap(), Duration::ZERO);
    came();
    toy.hangs.store(true, Ordering::Relaxed);
    let begun = Instant::now();
    assert!(matches!(asked(ten).await.unwrap_err().fault, Fault::Silent(it) if it == ten));
    assert_eq!(begun.elapsed(), ten);
    for _ in 0..5 {
        let told = asked(ten).await.unwrap_err().to_string();
        assert!(told.contains("left alone for a while: "), "{told}");
    }
    assert_eq!((begun.elapsed(), came()), (ten, 0));
    // It lets a connection in, and that is no answer: it is left alone for longer.
    tokio::time::sleep(ten).await;
    assert!(asked(ten).await.is_err());
    tokio::time::sleep(Duration::from_secs(19)).await;
    let told = asked(ten).await.unwrap_err().to_string();
    assert!(told.contains("left alone"), "{told}");
    assert_eq!(came(), 1);
    drop(pool.lend_in_spite(Instant::now()).await.unwrap());
    assert!(asked(ten).await.is_err());
    // An answer is one.
    toy.hangs.store(false, Ordering::Relaxed);
    let mut by_hand = pool.lend_in_spite(Instant::now()).await.unwrap();
    by_hand.command(&[b"DATE"]).unwrap();
    by_hand.reply("DATE").await.unwrap();
    by_hand.give_back();
    assert!(asked(ten).await.is_ok());
    drop(lent);
}

/// Who gives up soon, as his own client has gone, says nothing of the server; who gives up late does.  One that does not even greet is
/// silent, too.
#[tokio::test(start_paused = true)]
async fn a_silence_is_what_was_waited_through() {
    let (toy, pool) = pool(3, Toy::default());
    toy.hangs.store(true, Ordering::Relaxed);
    for (seconds, is_left_alone) in [(4, false), (6, true)] {
        let mut lent = pool.lend().await.unwrap();
        lent.command(&[b"DATE"]).unwrap();
        let waiting = tokio::time::timeout(Duration::from_secs(seconds), lent.reply("DATE"));
        assert!(waiting.await.is_err());
        drop(lent);
        assert_eq!(pool.lend().await.is_err(), is_left_alone, "{seconds}");
    }
    let greeting = Duration::from_secs(20);
    let (_toy, pool) = self::pool(
        3,
        Toy {
            greeting,
            ..Toy::default()
        },
    );
    let (begun, patience) = (Instant::now(), Some(Duration::from_secs(10)));
    for _ in 0..3 {
        assert!(pool.lend_for(patience).await.is_err());
    }
    assert_eq!(Some(begun.elapsed()), patience);
}
