//! Filters beside the accept path: what they say of an article is what becomes of it.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use newsreel_service::{
    ArticleFilter, Connection, ConnectionId, Defer, NewsService as _, Offer, Outcome, Reject,
    Subject, Verdict, Verdicts,
};
use newsreel_store::SetConfig;
use newsreel_wire::MessageId;

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
