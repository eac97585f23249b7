//! Posts that cannot be sent at once: taken, kept, sent when that is possible, and never lost without a word.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use newsreel_cache::CServer;
use newsreel_cache::keep::Keep;
use newsreel_cache::queue::{PostQueue, Standing};
use newsreel_host::{
    Disk, Effect, FakeClock, Fault as DiskFault, FaultyDisk, MemoryDisk, Op, WallTime,
};
use newsreel_service::posting::Post;
use newsreel_service::{Connection, ConnectionId, Defer, NewsService, Outcome, Reject};
use newsreel_wire::GroupName;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::cached::{REFRESH_S, keep_settings, remote, routed};
use crate::toy::To;

const ONE: &str = "From: me@t.example\r\nNewsgroups: misc.test\r\nSubject: x\r\nMessage-ID: <p@t.example>\r\n\r\nText.\r\n.\r\n";

struct World {
    misc: To,
    local: To,
    here: Arc<CServer<To>>,
    clock: Arc<FakeClock>,
    tasks: JoinSet<()>,
}

/// A server for misc.*, one for local.*, and a queue.
fn world() -> World {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    world_on(&disk)
}

fn world_on(disk: &Arc<dyn Disk>) -> World {
    world_with(disk, Some(1 << 20))
}

/// Posts of so many octets may wait, or none at all.
fn world_with(disk: &Arc<dyn Disk>, octets_max: Option<u64>) -> World {
    let (misc, local) = (To::default(), To::default());
    let clock = Arc::new(FakeClock::new(1_767_225_600));
    let keep = Keep::open(disk, &keep_settings()).unwrap();
    let queue = |octets_max| PostQueue::open(disk, &keep_settings().directory, octets_max);
    let queue = octets_max.map(|octets_max| Arc::new(queue(octets_max).unwrap()));
    let servers = [(&misc, "misc", "misc.*"), (&local, "local", "local.*")];
    let here = routed(&servers, &clock, keep, REFRESH_S, queue);
    let mut tasks = JoinSet::new();
    let tended = Arc::clone(&here);
    tasks.spawn(async move { tended.tend().await });
    World {
        misc,
        local,
        here,
        clock,
        tasks,
    }
}

/// The lines of the log: their level, and all fields.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &Field, value: &dyn fmt::Debug| {
            line += &format!(" {}={value:?}", field.name()).replace('"', "");
        });
        self.0.lock().push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// What the poster is told.
async fn posted(here: &impl NewsService, article: &str) -> Outcome {
    let post = Post {
        ticket: 1,
        id: here.new_message_id(),
        poster: Arc::default(),
        article: article.to_owned().into(),
    };
    let from = Arc::new(Connection::new(ConnectionId(1), None, None));
    here.post(post, &from).await;
    let mut done = Vec::new();
    from.take_completions(&mut done);
    done[0].outcome
}

impl World {
    async fn post(&self, article: &str) -> Outcome {
        posted(&*self.here, article).await
    }

    fn queue(&self) -> &PostQueue {
        self.here.queue().unwrap()
    }

    /// How each server stands to each post.
    fn standing(&self) -> Vec<(u64, Vec<Standing>)> {
        let all = self.queue().list().unwrap().into_iter();
        let standing = all.map(|(number, post)| {
            let targets = post.targets.iter().map(|target| target.standing);
            (number, targets.collect())
        });
        standing.collect()
    }

    /// Time passes, here and in the timers.
    async fn later(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    fn posts(to: &To) -> usize {
        to.0.lock().articles.len()
    }
}

/// A post to groups of both servers.
fn crosspost() -> String {
    ONE.replace("misc.test", "misc.test,local.test")
}

#[tokio::test(start_paused = true)]
async fn a_post_waits_for_the_server_that_is_away_and_only_for_that() {
    let mut world = world();
    let both = crosspost();
    world.local.0.lock().is_down = true;
    assert_eq!(world.post(&both).await, Outcome::Accepted);
    assert_eq!(World::posts(&world.misc), 1);
    let half = [(1, vec![Standing::Sent, Standing::Waits])];
    assert_eq!(world.standing(), half);
    world.later(61).await;
    assert_eq!(world.standing(), half);
    assert_eq!(world.queue().get(1).unwrap().0.targets[1].tries, 0);
    world.local.0.lock().is_down = false;
    world.later(61).await;
    assert_eq!(world.standing(), []);
    assert_eq!(
        (World::posts(&world.misc), World::posts(&world.local)),
        (1, 1)
    );
    // Its author did not say when it was written.
    let sent = world
        .local
        .0
        .lock()
        .articles
        .values()
        .next()
        .unwrap()
        .clone();
    assert!(
        sent.starts_with("Date: Thu, 01 Jan 2026 00:00:00 +0000\r\n"),
        "{sent}"
    );
    assert!(sent.ends_with(&both), "{sent}");
    world.tasks.shutdown().await;
}

/// Its poster was told that it was taken, and the groups of the other server never had it.
#[tokio::test(start_paused = true)]
async fn a_crosspost_that_only_one_server_takes_stands_in_the_queue() {
    for is_first in [true, false] {
        let world = world();
        let refusing = if is_first { &world.misc } else { &world.local };
        refusing.0.lock().refuses_posts = true;
        assert_eq!(world.post(&crosspost()).await, Outcome::Accepted);
        let mut standing = vec![Standing::Refused, Standing::Sent];
        if !is_first {
            standing.reverse();
        }
        assert_eq!(world.standing(), [(1, standing.clone())]);
        world.later(3600).await;
        assert_eq!(world.standing(), [(1, standing)]);
        refusing.0.lock().refuses_posts = false;
        world.queue().retry(1, world.here.now()).unwrap();
        world.here.look_at_posts();
        world.later(1).await;
        assert_eq!(world.standing(), [], "{is_first}");
        let posts = (World::posts(&world.misc), World::posts(&world.local));
        assert_eq!(posts, (1, 1));
    }
    // One that nobody takes is its poster's.
    let world = world();
    for refusing in [&world.misc, &world.local] {
        refusing.0.lock().refuses_posts = true;
    }
    let refused = world.post(&crosspost()).await;
    assert!(matches!(refused, Outcome::RejectedWith(..)), "{refused:?}");
    assert_eq!(world.standing(), []);
}

/// It was told as taken without a word, and the groups of the other server never had it.
#[tokio::test(start_paused = true)]
async fn what_is_taken_by_one_and_cannot_wait_for_the_other_is_logged() {
    // No posts may wait at all, or this one is too large.
    for octets_max in [None, Some(10)] {
        let world = world_with(&(Arc::new(MemoryDisk::new()) as Arc<dyn Disk>), octets_max);
        world.local.0.lock().is_down = true;
        let log = Log::default();
        let logging = tracing::subscriber::set_default(log.clone());
        assert_eq!(world.post(&crosspost()).await, Outcome::Accepted);
        drop(logging);
        let lines = log.0.lock();
        let is_it = |line: &&String| {
            ["WARN", "id=<p@t.example>", "upstream=local"]
                .iter()
                .all(|words| line.contains(words))
        };
        assert_eq!(lines.iter().filter(is_it).count(), 1, "{lines:?}");
    }
}

/// It stayed in the queue as refused, though both had it.
#[tokio::test(start_paused = true)]
async fn a_crosspost_that_is_posted_again_waits_for_the_server_that_lacks_it() {
    let world = world();
    world.local.0.lock().is_down = true;
    assert_eq!(world.post(&crosspost()).await, Outcome::Accepted);
    // As after a kill before it was kept.
    world.queue().drop_one(1).unwrap();
    world.misc.0.lock().refuses_posts = true;
    assert_eq!(world.post(&crosspost()).await, Outcome::Accepted);
    let half = [(2, vec![Standing::Sent, Standing::Waits])];
    assert_eq!(world.standing(), half);
    // It is looked at, and waits for a minute.
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.local.0.lock().is_down = false;
    world.later(61).await;
    assert_eq!(world.standing(), []);
    assert_eq!(World::posts(&world.local), 1);
}

/// It was sent again each second: to the moderator, where the server has one for it.
#[tokio::test(start_paused = true)]
async fn a_post_of_which_nothing_can_be_noted_is_not_sent_again() {
    let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let world = world_on(&disk);
    world.misc.0.lock().loses_post = Some(false);
    assert_eq!(world.post(ONE).await, Outcome::Accepted);
    world.misc.0.lock().loses_post = None;
    let _ = world.misc.asked();
    // As where it goes to a moderator.
    world.misc.0.lock().says = Some(("STAT <p@t.example>", "430 none\r\n"));
    faulty.add(DiskFault::new(Op::Write, "posts.redb", Effect::Full));
    world.later(61).await;
    world.later(61).await;
    assert_eq!(world.misc.asked(), ["STAT <p@t.example>", "POST"]);
    assert_eq!(world.standing(), []);
}

/// Nobody knew what became of it, though nothing had been sent: no other server was tried, and its poster was told of a fault.
#[tokio::test(start_paused = true)]
async fn a_post_that_the_server_did_not_ask_for_was_not_sent() {
    let world = world();
    world.misc.0.lock().cuts = Some(("POST", 0));
    assert_eq!(world.post(ONE).await, Outcome::Accepted);
    assert_eq!(world.standing(), []);
    assert_eq!(world.misc.asked(), ["POST", "POST"]);
    world.misc.0.lock().says = Some(("POST", "what\r\n"));
    let clock = Arc::new(FakeClock::new(1_767_225_600));
    let alone = remote(&world.misc, &clock);
    assert_eq!(posted(&alone, ONE).await, Outcome::Deferred(Defer::Paused));
}

/// It waited until the time came again that the clock had shown.
#[tokio::test(start_paused = true)]
async fn a_post_is_tried_though_the_clock_was_ahead() {
    let world = world();
    world.misc.0.lock().is_down = true;
    assert_eq!(world.post(ONE).await, Outcome::Accepted);
    // It is looked at, and waits for a minute.
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.clock.set(WallTime {
        secs: 1_767_225_600 - 86_400,
        nanos: 0,
    });
    world.misc.0.lock().is_down = false;
    world.later(61).await;
    assert_eq!(world.standing(), []);
}

/// Nobody knows whether it came: it is looked for before it is sent again.
#[tokio::test(start_paused = true)]
async fn a_post_whose_answer_was_lost_is_not_posted_twice() {
    for has_come in [true, false] {
        let world = world();
        world.misc.0.lock().loses_post = Some(has_come);
        assert_eq!(world.post(ONE).await, Outcome::Accepted);
        assert_eq!(world.standing(), [(1, vec![Standing::Waits])]);
        assert_eq!(World::posts(&world.misc), usize::from(has_come));
        world.misc.0.lock().loses_post = None;
        world.misc.asked();
        world.later(61).await;
        assert_eq!(world.standing(), [], "{has_come}");
        assert_eq!(World::posts(&world.misc), 1, "{has_come}");
        let mut expected = vec!["STAT <p@t.example>", "POST"];
        expected.truncate(2 - usize::from(has_come));
        assert_eq!(world.misc.asked(), expected);
    }
}

/// One that was sent to a moderator is on no server: who sends it again is refused in words that say so.
#[tokio::test(start_paused = true)]
async fn a_post_that_a_server_had_sent_to_its_moderator_is_not_taken_for_refused() {
    let world = world();
    world.misc.0.lock().loses_post = Some(false);
    assert_eq!(world.post(ONE).await, Outcome::Accepted);
    let again = Reject::MailedBefore.text();
    {
        let mut misc = world.misc.0.lock();
        (misc.loses_post, misc.refuses_posts, misc.refusal) = (None, true, Some(again));
    }
    world.later(61).await;
    assert_eq!(world.standing(), []);
    // Who posts it anew is told that it is not needed.
    let told = Outcome::RejectedWith(
        Reject::RefusedElsewhere,
        "Refused by the server it was sent on to: An article with this Message-ID was taken for its moderator already",
    );
    assert_eq!(world.post(ONE).await, told);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_is_told_to_who_posts_or_to_who_looks_after_it() {
    let world = world();
    world.misc.0.lock().refuses_posts = true;
    let refused = Outcome::RejectedWith(
        Reject::RefusedElsewhere,
        "Refused by the server it was sent on to: no",
    );
    assert_eq!(world.post(ONE).await, refused);
    assert_eq!(world.standing(), []);
    // When it waited, its poster has been told that it was taken.
    world.misc.0.lock().is_down = true;
    assert_eq!(world.post(ONE).await, Outcome::Accepted);
    // It is looked at, and waits for a minute.
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.misc.0.lock().is_down = false;
    world.later(61).await;
    assert_eq!(world.standing(), [(1, vec![Standing::Refused])]);
    assert_eq!(world.queue().get(1).unwrap().0.targets[0].said, "441 no");
    world.later(3600).await;
    world.misc.0.lock().refuses_posts = false;
    assert_eq!(world.standing(), [(1, vec![Standing::Refused])]);
    assert!(world.here.edit_post(1, b"no article\r\n.\r\n").is_err());
    let other = ONE.replace("Subject: x", "Subject: y");
    world.here.edit_post(1, other.as_bytes()).unwrap();
    world.later(1).await;
    assert_eq!(world.standing(), []);
    assert!(world.misc.0.lock().articles[&1].contains("Subject: y"));
    // There is no server that it could ever go to.
    let nowhere = ONE.replace("misc.test", "alt.test");
    let nowhere = world.post(&nowhere).await;
    let expected = "No server takes posts to these groups";
    assert_eq!(
        nowhere,
        Outcome::RejectedWith(Reject::RefusedElsewhere, expected)
    );
}

/// Whether a server has an article already is not only said by "refused": groups of ours may lack it still.
#[tokio::test(start_paused = true)]
async fn a_post_that_a_server_has_already_is_a_duplicate() {
    let world = world();
    assert_eq!(world.post(ONE).await, Outcome::Accepted);
    world.misc.0.lock().refuses_posts = true;
    assert_eq!(world.post(ONE).await, Outcome::Duplicate);
    assert_eq!(world.standing(), []);
    assert_eq!(World::posts(&world.misc), 1);
}

/// What was edited while it was being sent was noted as sent, and gone, though the server had the text from before.
#[tokio::test(start_paused = true)]
async fn a_post_that_is_being_sent_is_not_edited_or_dropped() {
    let world = world();
    world.misc.0.lock().is_down = true;
    assert_eq!(world.post(ONE).await, Outcome::Accepted);
    {
        let mut misc = world.misc.0.lock();
        (misc.is_down, misc.round_trip) = (false, Duration::from_secs(4));
    }
    // It is looked at, and waits for a minute; after that it is on its way for some twenty seconds.
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.later(65).await;
    let other = ONE.replace("Subject: x", "Subject: y");
    let refused = world.here.edit_post(1, other.as_bytes()).unwrap_err();
    assert!(refused.contains("post 1 is being sent"), "{refused}");
    assert!(world.queue().drop_one(1).is_err());
    world.later(100).await;
    assert_eq!(world.standing(), []);
    assert!(world.misc.0.lock().articles[&1].contains("Subject: x"));
    let gone = world.here.edit_post(1, other.as_bytes()).unwrap_err();
    assert!(gone.contains("no post 1 waits"), "{gone}");
}

/// Nothing was left to be done for it, and nothing took it out of the list.
#[tokio::test(start_paused = true)]
async fn a_post_whose_edited_groups_have_it_waits_no_more() {
    let world = world();
    let both = crosspost();
    world.local.0.lock().is_down = true;
    assert_eq!(world.post(&both).await, Outcome::Accepted);
    assert_eq!(
        world.standing(),
        [(1, vec![Standing::Sent, Standing::Waits])]
    );
    assert_eq!(world.here.edit_post(1, ONE.as_bytes()), Ok(false));
    assert_eq!(world.standing(), []);
    assert_eq!(World::posts(&world.misc), 1);
}

/// Its poster was told of a fault inside this server, and not that there is no room.
#[tokio::test]
async fn a_post_for_which_the_disk_has_no_room_is_said_to_be_lost_perhaps() {
    let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let mut world = world_on(&disk);
    world.misc.0.lock().is_down = true;
    for effect in [Effect::Full, Effect::Medium] {
        faulty.add(DiskFault::new(Op::Write, "posts.redb", effect).forever());
        let outcome = world.post(ONE).await;
        assert_eq!(outcome, Outcome::Deferred(Defer::Disk));
        assert!(
            Defer::Disk
                .text()
                .contains("the disk here is full or fails, so it may be lost")
        );
        faulty.clear();
    }
    assert_eq!(world.post(ONE).await, Outcome::Accepted);
    world.tasks.abort_all();
    while world.tasks.join_next().await.is_some() {}
}

/// The next start sent what had been said not to be taken, as the file had it where only a sync had failed.
#[tokio::test]
async fn a_post_that_was_not_taken_does_not_wait_after_a_stop() {
    let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let mut world = world_on(&disk);
    world.misc.0.lock().is_down = true;
    let other = ONE.replace("<p@", "<q@");
    assert_eq!(world.post(&other).await, Outcome::Accepted);
    faulty.add(DiskFault::new(Op::Sync, "posts.redb", Effect::Medium));
    assert_eq!(world.post(ONE).await, Outcome::Deferred(Defer::Disk));
    faulty.clear();
    world.tasks.abort_all();
    while world.tasks.join_next().await.is_some() {}
    world.here.stop().await;
    drop(world);
    let after = PostQueue::open(&disk, &keep_settings().directory, 1 << 20).unwrap();
    let ids: Vec<_> = after
        .list()
        .unwrap()
        .into_iter()
        .map(|(_, post)| post.id)
        .collect();
    assert_eq!(ids, ["<q@t.example>"]);
}

/// Who posts while a group is asked for elsewhere, by somebody else, sees the post all the same: the answer that was under way took its
/// mark away.
#[tokio::test(start_paused = true)]
async fn what_is_posted_while_a_group_is_asked_for_is_seen() {
    for is_known in [true, false] {
        let world = world();
        let first = ONE.replace("<p@", "<first@");
        assert_eq!(world.post(&first).await, Outcome::Accepted);
        let name = || GroupName::parse(b"misc.test").unwrap();
        let high = async || world.here.group(name()).await.unwrap().unwrap().high.0;
        if is_known {
            assert_eq!(high().await, 1);
            world.later(REFRESH_S).await;
        }
        let goes_on = Arc::new(Notify::new());
        world.misc.0.lock().holds = Some(("GROUP misc.test", 0, Arc::clone(&goes_on)));
        let posting = async {
            while world.misc.0.lock().holds.is_some() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(world.post(ONE).await, Outcome::Accepted);
            goes_on.notify_one();
        };
        assert_eq!(tokio::join!(high(), posting).0, 1);
        assert_eq!(high().await, 2, "{is_known}");
        // ... and from then on nobody is asked.
        let _ = world.misc.asked();
        assert_eq!(high().await, 2);
        assert_eq!(world.misc.asked(), [""; 0]);
    }
}

impl World {
    /// How often a post was tried at the server for misc.*, and in how many seconds it is again.
    fn waits(&self, number: u64) -> (u32, u64) {
        let (post, _) = self.queue().get(number).unwrap();
        let (target, now) = (&post.targets[0], self.here.now());
        assert_eq!(target.standing, Standing::Waits);
        (target.tries, target.at.0.saturating_sub(now.0))
    }

    /// The connections to the server for misc.* since the last time.
    fn connections(&self) -> usize {
        std::mem::take(&mut self.misc.0.lock().connections)
    }
}

/// Nothing was tried, as the server was left alone for two minutes, and each such try doubled the time that the post waited.
#[tokio::test(start_paused = true)]
async fn a_try_by_hand_asks_a_server_that_is_left_alone() {
    let world = world();
    world.misc.0.lock().is_down = true;
    assert_eq!(world.post(ONE).await, Outcome::Accepted);
    // The server is left alone for longer and longer, the post is looked at each minute.
    for _ in 0..12 {
        world.later(61).await;
        let (tries, wait) = world.waits(1);
        assert_eq!((tries, wait <= 60), (0, true), "{wait}");
    }
    world.connections();
    let ask = async || {
        world.queue().retry(1, world.here.now()).unwrap();
        world.here.look_at_posts();
        world.later(1).await;
    };
    for _ in 0..20 {
        ask().await;
        assert_eq!(world.connections(), 1);
        let (tries, wait) = world.waits(1);
        assert_eq!((tries, wait <= 60), (0, true), "{wait}");
    }
    world.misc.0.lock().is_down = false;
    ask().await;
    assert_eq!((world.standing(), World::posts(&world.misc)), (vec![], 1));
}

/// The same where it is there and does not take it: what counts is what nobody wanted.
#[tokio::test(start_paused = true)]
async fn a_try_by_hand_makes_no_post_wait_longer() {
    let world = world();
    world.misc.0.lock().says = Some(("POST", "403 not now\r\n"));
    assert_eq!(world.post(ONE).await, Outcome::Accepted);
    assert_eq!(world.waits(1), (1, 60));
    world.later(61).await;
    world.later(121).await;
    let (tries, wait) = world.waits(1);
    assert_eq!((tries, (230..=240).contains(&wait)), (3, true), "{wait}");
    for _ in 0..5 {
        let _ = world.misc.asked();
        world.queue().retry(1, world.here.now()).unwrap();
        world.here.look_at_posts();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(world.misc.asked(), ["STAT <p@t.example>", "POST"]);
        assert_eq!(world.waits(1), (3, 240));
    }
    world.later(241).await;
    assert_eq!(world.waits(1).0, 4);
}

/// Ten thousand posts that are tried by hand are no ten thousand connections to a server that is not there.
#[tokio::test(start_paused = true)]
async fn all_that_are_tried_by_hand_have_one_connection_tried() {
    let world = world();
    world.misc.0.lock().is_down = true;
    for number in 0..30 {
        let one = ONE.replace("<p@", &format!("<{number}@"));
        assert_eq!(world.post(&one).await, Outcome::Accepted);
    }
    world.later(3).await;
    world.connections();
    for number in 1..=30 {
        world.queue().retry(number, world.here.now()).unwrap();
    }
    world.here.look_at_posts();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.connections(), 1);
    // When the server can be asked again, as somebody says, all are sent at once.
    world.misc.0.lock().is_down = false;
    world.here.set_offline(true).unwrap();
    world.here.set_offline(false).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((world.standing(), World::posts(&world.misc)), (vec![], 30));
}

/// A post that somebody waits for stood behind all that are due, each of which may take as long as a server says nothing.
#[tokio::test(start_paused = true)]
async fn what_is_tried_by_hand_is_not_behind_what_is_due() {
    let world = world();
    world.misc.0.lock().says = Some(("POST", "403 not now\r\n"));
    for number in 0..30 {
        let one = ONE.replace("<p@", &format!("<{number}@"));
        assert_eq!(world.post(&one).await, Outcome::Accepted);
    }
    world.misc.0.lock().says = None;
    world.misc.0.lock().round_trip = Duration::from_secs(1);
    world.clock.advance(Duration::from_secs(61));
    world.here.look_at_posts();
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.queue().retry(30, world.here.now()).unwrap();
    world.here.look_at_posts();
    let is_sent = || world.queue().get(30).is_err();
    tokio::time::timeout(Duration::from_secs(10), async {
        while !is_sent() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await
    .unwrap();
    assert!(world.standing().len() > 20);
    world.later(200).await;
    assert_eq!((world.standing(), World::posts(&world.misc)), (vec![], 30));
}

/// A server that refuses posts for ever fills the queue with those that another one took, and what becomes of others then is told.
#[tokio::test(start_paused = true)]
async fn a_server_that_always_refuses_costs_nobody_elses_post() {
    for (says, refuses_posts) in [
        (Some(("POST", "440 no posting here\r\n")), false),
        (None, true),
    ] {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let world = world_with(&disk, Some(500));
        {
            let mut local = world.local.0.lock();
            (local.says, local.refuses_posts) = (says, refuses_posts);
        }
        let post = |name: &str, groups: &str| {
            let post = ONE.replace("<p@", &format!("<{name}@"));
            post.replace("misc.test", groups)
        };
        // Whom nobody's word stands against is told.
        let told = world.post(&post("own", "local.test")).await;
        assert!(
            matches!(told, Outcome::RejectedWith(Reject::RefusedElsewhere, _)),
            "{told:?}"
        );
        for n in 0..9 {
            let post = post(&n.to_string(), "misc.test,local.test");
            assert_eq!(world.post(&post).await, Outcome::Accepted);
        }
        let full = world.standing();
        let refused =
            |(_, stands): &(u64, Vec<Standing>)| *stands == [Standing::Sent, Standing::Refused];
        assert!(
            (1..9).contains(&full.len()) && full.iter().all(refused),
            "{full:?}"
        );
        // Nobody asks again by himself.
        let _ = world.local.asked();
        // No pause is longer.
        world.later(3601).await;
        assert_eq!(
            (world.local.asked(), world.standing()),
            (vec![], full.clone())
        );
        // What can be sent is; what would have to wait is not taken, in words that say why.
        assert_eq!(
            world.post(&post("fine", "misc.test")).await,
            Outcome::Accepted
        );
        world.misc.0.lock().is_down = true;
        let told = world.post(&post("late", "misc.test")).await;
        assert_eq!(told, Outcome::Deferred(Defer::QueueFull));
        assert!(
            Defer::QueueFull
                .text()
                .contains("`newsreel cache queue list`")
        );
        assert_eq!(world.standing(), full);
        world.queue().drop_one(full[0].0).unwrap();
        assert_eq!(
            world.post(&post("late", "misc.test")).await,
            Outcome::Accepted
        );
        // It is looked at, and waits for a minute.
        tokio::time::sleep(Duration::from_secs(2)).await;
        world.misc.0.lock().is_down = false;
        world.later(61).await;
        assert_eq!(world.standing(), full[1..]);
    }
}

/// One that had to wait, and is refused when it comes, stands there and is not sent again.
#[tokio::test(start_paused = true)]
async fn what_is_refused_late_stands_in_the_queue_and_is_not_tried_again() {
    for (says, refuses_posts) in [
        (Some(("POST", "440 no posting here\r\n")), false),
        (None, true),
    ] {
        let world = world();
        world.misc.0.lock().is_down = true;
        assert_eq!(world.post(ONE).await, Outcome::Accepted);
        world.later(2).await;
        {
            let mut misc = world.misc.0.lock();
            (misc.is_down, misc.says, misc.refuses_posts) = (false, says, refuses_posts);
        }
        world.later(61).await;
        assert_eq!(world.standing(), [(1, vec![Standing::Refused])]);
        let _ = world.misc.asked();
        for _ in 0..2 {
            world.later(3601).await;
        }
        assert_eq!(world.misc.asked(), [""; 0]);
        let (post, text) = world.queue().get(1).unwrap();
        assert!(post.targets[0].said.starts_with("44"), "{post:?}");
        assert!(text.ends_with(b"Text.\r\n.\r\n"));
    }
}
