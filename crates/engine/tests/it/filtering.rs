//! Filters beside the accept path: what they say of an article is what becomes of it.

use std::future::{Future, poll_fn, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use newsreel_engine::GroupSpec;
use newsreel_service::posting::{Account, Mail, MailDrop, MailRefused, Mailed, Post, Poster};
use newsreel_service::{
    ArticleFilter, Connection, ConnectionId, Defer, NewsService as _, Offer, OfferedId, Outcome,
    Reject, Subject, Verdict, Verdicts,
};
use newsreel_store::SetConfig;
use newsreel_wire::MessageId;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::world::{World, article, config};

/// Judges by the number in the Subject.
#[derive(Debug)]
struct ByNumber;

fn verdict(subject: &Subject) -> Verdict {
    assert!(!subject.is_post);
    let text = String::from_utf8_lossy(&subject.article).into_owned();
    let number = text.split_once("Subject: number ").unwrap().1;
    match number.split_once("\r\n").unwrap().0 {
        "1" => Verdict::Reject("No ones here"),
        "2" => Verdict::Drop,
        "3" => Verdict::Later,
        "4" => Verdict::Class("other"),
        "5" => Verdict::Class("no such class"),
        _ => Verdict::Accept,
    }
}

impl ArticleFilter for ByNumber {
    fn judge(&self, subjects: Vec<Subject>) -> Verdicts<'_> {
        Box::pin(ready(subjects.iter().map(verdict).collect()))
    }

    fn begun(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(ready(()))
    }
}

async fn send(world: &World, numbers: std::ops::Range<usize>) -> Vec<Outcome> {
    let batch: Vec<_> = numbers.map(|n| article(n, "misc.test")).collect();
    world.send(&batch).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verdicts_are_what_becomes_of_articles() {
    let mut config = config(4 << 20);
    let buffer = config.store.sets[0].buffers.pop().unwrap();
    config.store.sets.push(SetConfig {
        name: "second".to_owned(),
        class: Some("other".to_owned()),
        buffers: vec![buffer],
        ..config.store.sets[0].clone()
    });
    let world = World::new(config);
    world.engine.set_filter(Some(Arc::new(ByNumber)));
    let put_off = Outcome::Deferred(Defer::Unjudged);
    assert_eq!(
        send(&world, 0..7).await,
        [
            Outcome::Accepted,
            Outcome::RejectedWith(Reject::Filtered, "No ones here"),
            Outcome::Accepted,
            put_off,
            Outcome::Accepted,
            Outcome::Accepted,
            Outcome::Accepted,
        ]
    );
    let set_of = |n: usize| {
        let id = newsreel_engine::ArticleRef::Id(format!("<{n}@t.example>"));
        world.engine.article(&id).unwrap().map(|it| it.set)
    };
    let first = set_of(0);
    assert_eq!([1, 2, 3].map(set_of), [None, None, None]);
    assert_eq!(set_of(4).as_deref(), Some("second"));
    assert!(first.is_some() && first != set_of(4) && set_of(5) == first);
    assert_eq!(world.high("misc.test"), 4, "no number was lost");
    let counters = world.engine.status().counters;
    assert_eq!(
        (counters.rejected, counters.dropped, counters.failed),
        (1, 1, 1)
    );
    // Nobody else is kept from sending what was not taken, and without the filter it is taken.
    let other = Arc::new(Connection::new(ConnectionId(2), None, None));
    for n in 1..4 {
        let id = format!("<{n}@t.example>");
        let id = MessageId::parse(id.as_bytes()).unwrap();
        assert_eq!(world.service.offer(id, &other).await, Offer::Want);
        world.service.decline(id, &other);
    }
    world.engine.set_filter(None);
    assert_eq!(send(&world, 1..4).await, [Outcome::Accepted; 3]);
}

/// Lets a post go on for each permit, and says when one has come.
#[derive(Debug)]
struct Gate {
    come: Semaphore,
    may: Semaphore,
}

impl ArticleFilter for Gate {
    fn judge(&self, subjects: Vec<Subject>) -> Verdicts<'_> {
        Box::pin(async move {
            self.come.add_permits(1);
            self.may.acquire().await.unwrap().forget();
            vec![Verdict::Accept; subjects.len()]
        })
    }

    fn begun(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(ready(()))
    }
}

/// The message-ids of the mails that were kept.
#[derive(Debug, Default)]
struct Mails {
    ids: Mutex<Vec<OfferedId>>,
    /// As many wait as may.
    is_full: AtomicBool,
}

impl MailDrop for Mails {
    fn find(&self, id: &OfferedId) -> Option<Mailed> {
        let ids = self.ids.lock().unwrap();
        ids.contains(id).then_some(Mailed::Kept)
    }

    fn has_room(&self, _: Option<Account>) -> Result<(), MailRefused> {
        match self.is_full.load(Ordering::Relaxed) {
            true => Err(MailRefused::Share),
            false => Ok(()),
        }
    }

    fn submit(&self, mail: &Mail, _: Option<Account>) -> Result<(), MailRefused> {
        self.ids.lock().unwrap().push(mail.id.clone());
        Ok(())
    }
}

/// Posts one on a connection of its own.
async fn post(world: &World, id: &str, group: &str) -> Outcome {
    post_as(world, id, group, "", Arc::default()).await
}

/// The same with more fields.
async fn post_as(world: &World, id: &str, group: &str, more: &str, poster: Arc<Poster>) -> Outcome {
    static NEXT: AtomicU64 = AtomicU64::new(100);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let from = Arc::new(Connection::new(ConnectionId(number), None, None));
    let wire = format!(
        "From: a@b.example\r\nNewsgroups: {group}\r\nSubject: s\r\nMessage-ID: {id}\r\n{more}\r\nbody\r\n.\r\n"
    );
    let post = Post {
        ticket: 1,
        id: MessageId::parse(id.as_bytes()).unwrap().into(),
        poster,
        article: Bytes::from(wire),
    };
    world.service.post(post, &from).await;
    let mut done = Vec::new();
    poll_fn(|cx| from.poll_completions(cx, &mut done)).await;
    done[0].outcome
}

/// A server with a moderated group `mod.test`, its mails, and a gate that holds posts up.
fn moderated_world() -> (Arc<World>, Arc<Mails>, Arc<Gate>) {
    let mut config = config(4 << 20);
    config.moderation.moderators = vec!["mod.*:mod@m.example".to_owned()];
    let world = Arc::new(World::new(config));
    let moderated = GroupSpec {
        status: "m".to_owned(),
        ..GroupSpec::new("mod.test")
    };
    world.engine.add_groups(vec![moderated]).unwrap();
    let mails = Arc::new(Mails::default());
    world.engine.set_mail_drops(mails.clone(), mails.clone());
    let gate = Arc::new(Gate {
        come: Semaphore::new(0),
        may: Semaphore::new(0),
    });
    world.engine.set_filter(Some(gate.clone()));
    (world, mails, gate)
}

/// Two posts of one message-id at once, one to a moderator, were mailed and filed, so that the moderator's copy was refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_of_one_message_id_at_once_go_one_way() {
    let (world, _, gate) = moderated_world();
    for (id, first, second) in [
        ("<1@t.example>", "mod.test", "misc.test"),
        ("<2@t.example>", "misc.test", "mod.test"),
        ("<3@t.example>", "misc.test", "misc.test"),
    ] {
        let mut one = JoinSet::new();
        let of_one = Arc::clone(&world);
        one.spawn(async move { post(&of_one, id, first).await });
        gate.come.acquire().await.unwrap().forget();
        // They did, too, when a filter had the first for longer than a peer has to send what it offered.
        world.clock.advance(Duration::from_secs(3600));
        tokio::select! {
            two = post(&world, id, second) => assert_eq!(two, Outcome::Deferred(Defer::UnderWay)),
            _ = gate.come.acquire() => panic!("{id} goes to {first} and to {second}"),
        }
        gate.may.add_permits(1);
        let one = one.join_next().await.unwrap();
        assert_eq!(one.unwrap(), Outcome::Accepted);
        assert_eq!(post(&world, id, second).await, Outcome::Duplicate);
    }
    // Of one that was refused nothing is left.
    let refused = post(&world, "<4@t.example>", "no.test").await;
    assert_eq!(refused, Reject::UnknownGroups.into());
    gate.may.add_permits(1);
    let taken = post(&world, "<4@t.example>", "mod.test").await;
    assert_eq!(taken, Outcome::Accepted);
}

/// Does it without a look of the filter's.
async fn unseen<T>(gate: &Gate, done: impl Future<Output = T>) -> T {
    tokio::select! {
        done = done => done,
        _ = gate.come.acquire() => panic!("the filter was asked"),
    }
}

/// Whoever posted again what was mailed held its message-id while filters looked, and the approved copy was put off as long as that went on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_mailed_is_refused_before_a_filter_is_asked() {
    let (world, _, gate) = moderated_world();
    gate.may.add_permits(1);
    let id = "<1@t.example>";
    assert_eq!(post(&world, id, "mod.test").await, Outcome::Accepted);
    gate.come.acquire().await.unwrap().forget();
    let again = unseen(&gate, post(&world, id, "mod.test")).await;
    assert_eq!(again, Reject::MailedBefore.into());
    let elsewhere = unseen(&gate, post(&world, id, "misc.test")).await;
    assert_eq!(elsewhere, Outcome::Duplicate);
    let moderator = Arc::new(Poster {
        may_approve: true,
        ..Poster::default()
    });
    gate.may.add_permits(1);
    let approved = "Approved: mod@m.example\r\n";
    let taken = post_as(&world, id, "mod.test", approved, moderator).await;
    assert_eq!(taken, Outcome::Accepted);
    gate.come.acquire().await.unwrap().forget();
    let known = unseen(&gate, post(&world, id, "mod.test")).await;
    assert_eq!(known, Outcome::Duplicate, "it is here");
}

/// Posts that could not be mailed just then were counted by filters each time, until the poster's other articles were refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_put_off_for_want_of_a_place_no_filter_counts() {
    let (world, mails, gate) = moderated_world();
    mails.is_full.store(true, Ordering::Relaxed);
    for id in ["<1@t.example>", "<2@t.example>"] {
        let put_off = unseen(&gate, post(&world, id, "mod.test")).await;
        assert_eq!(put_off, Outcome::Deferred(Defer::MailShare));
    }
    gate.may.add_permits(2);
    let open = post(&world, "<3@t.example>", "misc.test").await;
    assert_eq!(open, Outcome::Accepted);
    mails.is_full.store(false, Ordering::Relaxed);
    let mailed = post(&world, "<1@t.example>", "mod.test").await;
    assert_eq!(mailed, Outcome::Accepted);
}
