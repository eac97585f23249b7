//! Cancels and Supersedes: who may take an article out, before and after it came, and that it stays out.

use std::sync::Arc;

use newsreel_engine::{Cancels, GroupSpec};
use newsreel_host::MemoryDisk;
use newsreel_host::disk::FaultyDisk;
use newsreel_service::{
    Connection, ConnectionId, Neighbour, NewsService as _, Offer, Outcome, Reject,
};
use newsreel_wire::{MessageId, Wildmat};

use crate::world::{World, config, open_on};

/// RFC 8315 section 5: a key and its lock.
const KEY: &str = "Cancel-Key: sha256:qv1VXHYiCGjkX/N1nhfYKcAeUn8bCVhrWhoKuBSnpMA=\r\n";
const LOCK: &str = "Cancel-Lock: sha256:s/pmK/3grrz++29ce2/mQydzJuc7iqHn1nqcJiQTPMc=\r\n";
const OTHER_LOCK: &str = "Cancel-Lock: sha256:NSBTz7BfcQFTCen+U4lQ0VS8VIlZao2b8mxD/xJaaeE=\r\n";

type Article = (String, Vec<u8>);

/// An article with more header fields.
fn with(name: &str, more: &str) -> Article {
    let id = id(name);
    let text = format!(
        "Path: feeder.example!not-for-mail\r\nFrom: a@b.example\r\nNewsgroups: misc.test\r\nSubject: {name}\r\n\
         Date: Tue, 14 Nov 2023 22:00:00 +0000\r\nMessage-ID: {id}\r\n{more}\r\nBody of {name}\r\n.\r\n"
    );
    (id, text.into_bytes())
}

fn id(name: &str) -> String {
    format!("<{name}@t.example>")
}

fn cancel(name: &str, target: &str, more: &str) -> Article {
    with(name, &format!("Control: cancel {}\r\n{more}", id(target)))
}

fn world_of(cancels: Cancels, memory: &MemoryDisk) -> World {
    let mut config = config(4 << 20);
    config.control.cancels = cancels;
    let world = World::on(Arc::new(memory.clone()), config);
    let groups = ["control", "control.cancel"].map(GroupSpec::new).to_vec();
    world.engine.add_groups(groups).unwrap();
    world
}

async fn is_there(world: &World, name: &str) -> bool {
    world.by_id(&id(name)).await.is_some()
}

/// Which of these are there.
async fn there<'a>(world: &World, names: &[&'a str]) -> Vec<&'a str> {
    let mut there = Vec::new();
    for name in names {
        if is_there(world, name).await {
            there.push(*name);
        }
    }
    there
}

const KINDS: [&str; 6] = [
    "locked",
    "other",
    "open",
    "locked-no",
    "other-no",
    "open-no",
];

/// Targets of each kind of lock, and for each a cancel with the key or without.
fn targets_and_cancels() -> (Vec<Article>, Vec<Article>) {
    let locks = [LOCK, OTHER_LOCK, "", LOCK, OTHER_LOCK, ""];
    let targets = KINDS.iter().zip(locks);
    let targets = targets.map(|(name, lock)| with(name, lock)).collect();
    let cancels = KINDS.iter().map(|name| {
        let key = if name.ends_with("-no") { "" } else { KEY };
        cancel(&format!("c-{name}"), name, key)
    });
    (targets, cancels.collect())
}

/// What is left of the targets under each setting.
const LEFT: [(Cancels, &[&str]); 4] = [
    (
        Cancels::RequireAuth,
        &["other", "open", "locked-no", "other-no", "open-no"],
    ),
    (Cancels::Auth, &["other", "locked-no", "other-no"]),
    (Cancels::All, &[]),
    (Cancels::None, &KINDS),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_cancel_what_is_here() {
    let accepted = vec![Outcome::Accepted; KINDS.len()];
    for (cancels, left) in LEFT {
        let memory = MemoryDisk::new();
        let world = world_of(cancels, &memory);
        let (targets, messages) = targets_and_cancels();
        assert_eq!(world.send(&targets).await, accepted);
        assert_eq!(world.send(&messages).await, accepted, "taken in any case");
        assert_eq!(there(&world, &KINDS).await, left, "{cancels:?}");
        assert_eq!(world.lines("misc.test").await.len(), left.len());
        assert_eq!(world.lines("control.cancel").await.len(), KINDS.len());
        assert_eq!(world.lines("control").await.len(), 0);
        let gone = (KINDS.len() - left.len()) as u64;
        assert_eq!(world.engine.status().counters.cancelled, gone);
        // Their ids stay known.
        let again = world.send(&targets).await;
        assert_eq!(again, vec![Outcome::Duplicate; KINDS.len()]);
        // From the log alone, and sealed.
        let crashed = Arc::new(memory.crash_losing_all());
        let after = open_on(crashed, &world.config, &world.clock);
        assert_eq!(there(&after, &KINDS).await, left, "{cancels:?}");
        assert_eq!(after.problems(), [""; 0]);
        drop(after);
        world.seal();
        let world = world.restart();
        assert_eq!(there(&world, &KINDS).await, left, "{cancels:?}");
        assert_eq!(world.problems(), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_cancel_what_comes_later() {
    for (cancels, left) in LEFT {
        let memory = MemoryDisk::new();
        let world = world_of(cancels, &memory);
        let (targets, messages) = targets_and_cancels();
        world.send(&messages).await;
        // It cannot be told before it is seen.
        for name in KINDS {
            let id = id(name);
            let id = MessageId::parse(id.as_bytes()).unwrap();
            let offer = world.service.offer(id, &world.connection).await;
            assert_eq!(offer, Offer::Want);
        }
        // A crash, a checkpoint with all behind it, both, and neither.
        let crashed = open_on(
            Arc::new(memory.crash_losing_all()),
            &world.config,
            &world.clock,
        );
        assert_left(&crashed, &targets, left).await;
        drop(crashed);
        world.seal();
        let world = world.restart();
        let crashed = open_on(
            Arc::new(memory.crash_losing_all()),
            &world.config,
            &world.clock,
        );
        assert_left(&crashed, &targets, left).await;
        drop(crashed);
        assert_left(&world, &targets, left).await;
        assert_eq!(world.problems(), [""; 0]);
    }
}

async fn assert_left(world: &World, targets: &[Article], left: &[&str]) {
    let outcomes = world.send(targets).await;
    for (name, outcome) in KINDS.iter().zip(outcomes) {
        let expected = match left.contains(name) {
            true => Outcome::Accepted,
            false => Outcome::Rejected(Reject::Cancelled),
        };
        assert_eq!(outcome, expected, "{name}");
    }
    assert_eq!(there(world, &KINDS).await, left);
}

/// What somebody else sends under the id of an article that was cancelled is judged by its own locks, and does not stop
/// being judged so after a refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_waits_for_more_than_one_copy() {
    let world = world_of(Cancels::RequireAuth, &MemoryDisk::new());
    // Somebody else's comes first, and another key of the author's later.
    world
        .send(&[cancel("c0", "1", "Cancel-Key: sha256:junk\r\n")])
        .await;
    world.send(&[cancel("c1", "1", KEY)]).await;
    let refused = Outcome::Rejected(Reject::Cancelled);
    assert_eq!(world.send(&[with("1", LOCK)]).await, [refused]);
    assert_eq!(world.send(&[with("1", LOCK)]).await, [refused]);
    assert_eq!(
        world.send(&[with("1", OTHER_LOCK)]).await,
        [Outcome::Accepted]
    );
    assert_eq!(world.send(&[with("1", LOCK)]).await, [Outcome::Duplicate]);
}

/// All that waited had one table, which forgot the oldest: one peer's 2,000 cancels with made-up keys made those of all others
/// forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_cancels_pushes_out_nobody_elses() {
    let memory = MemoryDisk::new();
    let mut config = config(4 << 20);
    config.control.waiting_octets_max = 16 << 10;
    let world = World::on(Arc::new(memory.clone()), config);
    let peer = |n: u64, name: &str| {
        let known = Neighbour::new(name, &[], Wildmat::parse("*").unwrap());
        Arc::new(Connection::new(
            ConnectionId(n),
            None,
            Some(Arc::new(known)),
        ))
    };
    let (good, flood) = (peer(2, "good.example"), peer(3, "flood.example"));
    let wanted = [cancel("c1", "1", KEY), cancel("c2", "2", KEY)];
    world.send_by(&good, &wanted).await;
    let flood_of = |count: usize| {
        let mut numbers = 0..count;
        std::iter::from_fn(move || {
            let n = numbers.next()?;
            let key = format!("Cancel-Key: sha256:made-up-{n}\r\n");
            Some(cancel(&format!("f{n}"), &format!("absent{n}"), &key))
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(world.engine.status().counters.forgotten, 0);
    world.send_by(&flood, &flood_of(400)).await;
    let forgotten = world.engine.status().counters.forgotten;
    // Some 220 have room.
    assert!((150..250).contains(&forgotten), "{forgotten}");
    // Whose they are is in the log, and beside the checkpoint.
    world.seal();
    let world = world.restart();
    let crashed = Arc::new(memory.crash_losing_all());
    let world = open_on(crashed, &world.config, &world.clock);
    world.send_by(&flood, &flood_of(800)[400..]).await;
    let refused = Outcome::Rejected(Reject::Cancelled);
    assert_eq!(
        world.send(&[with("1", LOCK), with("2", LOCK)]).await,
        [refused; 2]
    );
    assert_eq!(world.problems(), [""; 0]);
}

/// A cancel waits no longer than articles may be old.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_does_not_wait_for_ever() {
    let mut config = config(4 << 20);
    config.articles.age_s_max = 1000;
    config.articles.future_s_max = 1_000_000;
    let world = World::new(config);
    let later = |name: &str| {
        let (id, text) = with(name, LOCK);
        let text = String::from_utf8(text).unwrap();
        let text = text.replace("14 Nov 2023 22:00:00", "15 Nov 2023 22:00:00");
        (id, text.into_bytes())
    };
    let early = |name: &str, target: &str| {
        let (id, text) = cancel(name, target, KEY);
        let text = String::from_utf8(text).unwrap();
        let text = text.replace("22:00:00", "22:10:00");
        (id, text.into_bytes())
    };
    assert_eq!(world.send(&[early("c1", "1")]).await, [Outcome::Accepted]);
    world.wait_s(1001);
    let other = later("c2");
    let text = String::from_utf8(other.1).unwrap();
    let other = (
        other.0,
        text.replace("Cancel-Lock", "Control: cancel <2@t.example>\r\nX-Lock")
            .into_bytes(),
    );
    let key = String::from_utf8(other.1)
        .unwrap()
        .replace("X-Lock", &format!("{KEY}X-Lock"));
    assert_eq!(
        world.send(&[(other.0, key.into_bytes())]).await,
        [Outcome::Accepted]
    );
    let refused = Outcome::Rejected(Reject::Cancelled);
    assert_eq!(
        world.send(&[later("1"), later("2")]).await,
        [Outcome::Accepted, refused]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_article_takes_the_older_one_out() {
    let world = world_of(Cancels::RequireAuth, &MemoryDisk::new());
    let supersedes = |target: &str, more: &str| format!("Supersedes: {}\r\n{more}", id(target));
    world.send(&[with("1", LOCK), with("2", LOCK)]).await;
    let newer = [
        with("3", &supersedes("1", &format!("{KEY}{LOCK}"))),
        with("4", &supersedes("2", "")),
    ];
    assert_eq!(world.send(&newer).await, [Outcome::Accepted; 2]);
    assert_eq!(there(&world, &["1", "2", "3", "4"]).await, ["2", "3", "4"]);
    let group = world.engine.group("misc.test").unwrap();
    assert_eq!((group.count, group.high), (3, 4), "filed as any other");
    // One that comes before what it replaces.
    let newer = with("6", &supersedes("5", KEY));
    assert_eq!(world.send(&[newer]).await, [Outcome::Accepted]);
    let refused = Outcome::Rejected(Reject::Cancelled);
    assert_eq!(world.send(&[with("5", LOCK)]).await, [refused]);
    // Nothing replaces itself.
    let itself = with("7", &supersedes("7", &format!("{KEY}{LOCK}")));
    assert_eq!(world.send(&[itself]).await, [Outcome::Accepted]);
    assert_eq!(world.problems(), [""; 0]);
}

/// Whichever is first, by one connection or two: none stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cancel_and_its_target_that_pass_each_other() {
    const COUNT: usize = 300;
    let world = world_of(Cancels::RequireAuth, &MemoryDisk::new());
    let other = Arc::new(Connection::new(ConnectionId(2), None, None));
    let target = |n: usize| with(&format!("t{n}"), LOCK);
    let message = |n: usize| cancel(&format!("c{n}"), &format!("t{n}"), KEY);
    let mut last = 0;
    for some in [1, 3, 10] {
        for from in (0..COUNT).step_by(some) {
            let numbers = last + from..last + from + some;
            let targets: Vec<_> = numbers.clone().map(target).collect();
            let messages: Vec<_> = numbers.clone().map(message).collect();
            tokio::join!(world.send(&targets), world.send_by(&other, &messages));
        }
        last += COUNT;
    }
    for pair in 0..20 {
        let mut both = vec![target(last + pair), message(last + pair)];
        if pair % 2 == 0 {
            both.reverse();
        }
        world.send(&both).await;
    }
    for n in 0..last + 20 {
        assert!(!is_there(&world, &format!("t{n}")).await, "t{n}");
    }
    assert_eq!(world.lines("control.cancel").await.len(), last + 20);
    assert_eq!(world.engine.group("misc.test").unwrap().count, 0);
    assert_eq!(world.problems(), [""; 0]);
}

/// Where there is no group for them they are kept all the same, and where there is none of their own the one for all
/// takes them; what is malformed changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_control_messages_are_filed() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    world.send(&[with("1", LOCK), with("2", LOCK)]).await;
    let sent = world.send(&[cancel("c1", "1", KEY)]).await;
    assert_eq!(sent, [Outcome::Accepted]);
    let text = world.by_id(&id("c1")).await.unwrap();
    assert!(!text.contains("Xref:"), "{text}");
    assert!(!is_there(&world, "1").await);
    assert_eq!(world.high("misc.test"), 2);
    world
        .engine
        .add_groups(vec![GroupSpec::new("control")])
        .unwrap();
    let groups = vec![GroupSpec::new("control.newgroup")];
    world.engine.add_groups(groups).unwrap();
    let sent = [
        with("c2", &format!("Control: cancel\r\n{KEY}")),
        with(
            "c3",
            &format!("Control: cancel {} {}\r\n{KEY}", id("2"), id("2")),
        ),
        with("c4", &format!("Control: cancel 2@t.example\r\n{KEY}")),
        with("c5", &format!("Control: newgroup {}\r\n{KEY}", id("2"))),
        with("c6", &format!("Control: NEWGROUP misc.new\r\n{KEY}")),
    ];
    assert_eq!(world.send(&sent).await, [Outcome::Accepted; 5]);
    assert!(is_there(&world, "2").await);
    let filed = ["misc.test", "control", "control.newgroup"].map(|name| world.high(name));
    assert_eq!(filed, [2, 3, 2]);
    // Groups that are not here.
    let (id, text) = cancel("c7", "2", KEY);
    let text = String::from_utf8(text)
        .unwrap()
        .replace("misc.test", "no.such");
    let sent = world.send(&[(id, text.into_bytes())]).await;
    assert_eq!(sent, [Outcome::Rejected(Reject::UnknownGroups)]);
    assert_eq!(world.problems(), [""; 0]);
    world.seal();
    let world = world.restart();
    assert_eq!(world.problems(), [""; 0]);
    assert!(is_there(&world, "c1").await);
}

/// However long it was here: who sends it again a day after it went is told that it is a duplicate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_cancelled_is_remembered_from_then_on() {
    let world = world_of(Cancels::RequireAuth, &MemoryDisk::new());
    world.send(&[with("1", LOCK)]).await;
    world.wait_s(100_000);
    let went = world.engine.absence(&"<1@t.example>".parse().unwrap());
    assert!(went.unwrap().contains("it came on"));
    world.send(&[cancel("c1", "1", KEY)]).await;
    let went = world.engine.absence(&"<1@t.example>".parse().unwrap());
    let went = went.unwrap();
    assert!(
        went.starts_with("it was withdrawn on Thu, 16 Nov 2023"),
        "{went}"
    );
}

fn superseding(name: &str, target: &str) -> Article {
    let supersedes = format!("Supersedes: {}\r\n{KEY}{LOCK}", id(target));
    with(name, &supersedes)
}

/// An article with Supersedes that was refused, as another one had its message-id, kept its target out, though the log knew nothing of it:
/// after a start the target was taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_itself_takes_nothing_out() {
    let world = world_of(Cancels::RequireAuth, &MemoryDisk::new());
    for (round, order) in ["xyb", "bxy", "xby"].into_iter().enumerate() {
        let of = |letter: char| format!("{letter}{round}");
        let article = |letter: char| match letter {
            'y' => superseding(&of('x'), &of('b')),
            other => with(&of(other), LOCK),
        };
        let sent: Vec<Article> = order.chars().map(article).collect();
        let outcomes = world.send(&sent).await;
        for (letter, outcome) in order.chars().zip(outcomes) {
            let expected = match letter {
                'y' => Outcome::Duplicate,
                _ => Outcome::Accepted,
            };
            assert_eq!(outcome, expected, "{letter} of {order}");
        }
        assert!(is_there(&world, &of('b')).await, "{order}");
    }
    // Nor later, nor a cancel that is cancelled itself.
    let sent = [with("x", LOCK), superseding("x", "b")];
    let taken = [Outcome::Accepted, Outcome::Duplicate];
    assert_eq!(world.send(&sent).await, taken);
    let accepted = [Outcome::Accepted];
    assert_eq!(world.send(&[with("b", LOCK)]).await, accepted);
    world.send(&[cancel("c1", "s", KEY)]).await;
    let refused = [Outcome::Rejected(Reject::Cancelled)];
    assert_eq!(world.send(&[superseding("s", "t")]).await, refused);
    assert_eq!(world.send(&[with("t", LOCK)]).await, accepted);
    assert_eq!(world.problems(), [""; 0]);
}

/// What came in one write came out otherwise than one by one: a target was kept out by a cancel that had not had its turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_in_one_write_comes_out_as_one_by_one() {
    let memory = MemoryDisk::new();
    let world = world_of(Cancels::RequireAuth, &memory);
    // b takes a out, c b, and d is a cancel of c.
    let chain = |name: &str| {
        let of = |letter: char| format!("{letter}-{name}");
        [
            with(&of('a'), LOCK),
            superseding(&of('b'), &of('a')),
            superseding(&of('c'), &of('b')),
            cancel(&of('d'), &of('c'), KEY),
        ]
    };
    let is_order = |order: &[usize; 4]| (0..4).all(|at| order.contains(&at));
    let all = (0..256).map(|n: usize| [n / 64, n / 16 % 4, n / 4 % 4, n % 4]);
    for (round, order) in all.filter(is_order).enumerate() {
        let (one, other) = (format!("one{round}"), format!("other{round}"));
        let (alone, together) = (chain(&one), chain(&other));
        let mut outcomes = Vec::new();
        for at in order {
            outcomes.extend(world.send(&alone[at..=at]).await);
        }
        let together = order.map(|at| together[at].clone());
        assert_eq!(world.send(&together).await, outcomes, "{order:?}");
        for letter in ["a", "b", "c", "d"] {
            let expected = is_there(&world, &format!("{letter}-{one}")).await;
            let is_there = is_there(&world, &format!("{letter}-{other}")).await;
            assert_eq!(is_there, expected, "{letter} of {order:?}");
        }
    }
    assert_eq!(world.problems(), [""; 0]);
    let count = world.engine.group("misc.test").unwrap().count;
    let crashed = Arc::new(memory.crash_losing_all());
    let after = open_on(crashed, &world.config, &world.clock);
    assert_eq!(after.engine.group("misc.test").unwrap().count, count);
    assert_eq!(after.problems(), [""; 0]);
}

/// A cancel whose commit failed was answered so, and kept its target out all the same, until the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_whose_commit_failed_keeps_nothing_out() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let world = World::on(Arc::new(faulty.clone()), config(4 << 20));
    let cancels = |number: usize| vec![cancel(&format!("c{number}"), &number.to_string(), KEY)];
    let (number, _) = world.until_a_commit_fails(&faulty, cancels).await;
    let target = number.to_string();
    let outcome = world.send_until_answered(&with(&target, LOCK)).await;
    assert_eq!(outcome, Outcome::Accepted);
    // It takes it out when it comes again.
    assert_eq!(world.send(&cancels(number)).await, [Outcome::Accepted]);
    assert!(!is_there(&world, &target).await);
}
