//! Limits of `[articles]` and `[engine]`: each holds as far up as it can be set, and no further.

use newsreel_engine::{ArticleRef, EngineConfig, GroupSpec};
use newsreel_service::{NewsService as _, Outcome, OverviewRows, Reject};
use newsreel_wire::MessageId;

use crate::world::{World, article, config};

/// A configuration that takes the largest header blocks that can be asked for.
fn large_headers() -> EngineConfig {
    let mut config = config(32 << 20);
    config.articles.octets_max = 4 << 20;
    config.articles.header_octets_max = 1 << 20;
    config.journal.segment_octets = 4 << 20;
    config
}

/// An article with a subject of so many octets, folded.
fn with_subject(n: usize, octets: usize) -> (String, Vec<u8>) {
    let (id, text) = article(n, "misc.test");
    let subject = format!(
        "Subject: {}",
        format!("{}\r\n ", "s".repeat(70)).repeat(octets / 73)
    );
    let text = String::from_utf8(text)
        .unwrap()
        .replace("Subject: ", &subject);
    (id, text.into_bytes())
}

async fn check_large(world: &World) {
    let lines = world.lines("misc.test").await;
    let lens: Vec<usize> = lines.iter().map(String::len).collect();
    assert!(
        lens.len() == 2 && lens.iter().all(|len| *len > 850 << 10),
        "{lens:?}"
    );
    let which: ArticleRef = "<1@t.example>".parse().unwrap();
    let report = world.engine.article(&which).unwrap().unwrap();
    assert_eq!(report.xref, [("misc.test".to_owned(), 2)]);
    let mut rows = OverviewRows::default();
    let id = MessageId::parse(b"<1@t.example>").unwrap();
    let found = world.service.overview_by_id(id, &mut rows).await;
    assert!(found.unwrap() && rows.rows() == 1);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// `articles.header_octets_max` went up to 16 MiB, and the scanner stopped at 64 KiB.
#[tokio::test]
async fn header_blocks_are_taken_up_to_their_limit_and_kept_whatever_it_is_later() {
    let world = World::new(large_headers());
    let large = [with_subject(0, 900 << 10), with_subject(1, 900 << 10)];
    assert_eq!(world.send(&large).await, [Outcome::Accepted; 2]);
    let too_large = [with_subject(2, 1100 << 10)];
    let refused = Outcome::Rejected(Reject::HeadTooLarge);
    assert_eq!(world.send(&too_large).await, [refused]);
    check_large(&world).await;
    let mut world = world.restart();
    check_large(&world).await;
    world.seal();
    check_large(&world).await;
    world.config.articles.header_octets_max = 64 << 10;
    let world = world.restart();
    check_large(&world).await;
    assert_eq!(world.send(&[with_subject(2, 100 << 10)]).await, [refused]);
}

#[tokio::test]
async fn fields_are_counted_up_to_their_limit() {
    let mut config = config(8 << 20);
    config.articles.header_fields_max = 20;
    let world = World::new(config);
    let with_fields = |n: usize, more: usize| {
        let (id, text) = article(n, "misc.test");
        let fields = format!("{}From: ", "X-More: y\r\n".repeat(more));
        let text = String::from_utf8(text).unwrap().replace("From: ", &fields);
        (id, text.into_bytes())
    };
    let outcomes = world.send(&[with_fields(0, 14), with_fields(1, 15)]).await;
    let refused = Outcome::Rejected(Reject::TooManyHeaders);
    assert_eq!(outcomes, [Outcome::Accepted, refused]);
}

#[tokio::test]
async fn a_commit_holds_so_many_articles() {
    let mut config = config(8 << 20);
    config.sequencer.commit_articles_max = 3;
    let world = World::new(config);
    let before = world.engine.status().counters.commits;
    let articles: Vec<_> = (0..30).map(|n| article(n, "misc.test")).collect();
    assert_eq!(world.send(&articles).await, [Outcome::Accepted; 30]);
    let commits = world.engine.status().counters.commits - before;
    assert!(commits >= 10, "{commits} commits");
}

#[tokio::test]
async fn groups_that_were_ever_made_are_counted() {
    let mut config = config(8 << 20);
    // Two are there already.
    config.sequencer.groups_max = 4;
    let world = World::new(config);
    let add = |names: &[&str]| {
        let specs = names.iter().copied().map(GroupSpec::new).collect();
        world
            .engine
            .add_groups(specs)
            .map_err(|error| error.to_string())
    };
    let error = add(&["a.b", "a.c", "a.d"]).unwrap_err();
    assert!(error.contains("engine.groups_max is 4"), "{error}");
    add(&["a.b"]).unwrap();
    world.engine.remove_group("a.b").unwrap();
    add(&["a.b"]).unwrap();
    let error = add(&["a.c"]).unwrap_err();
    assert!(error.contains("4 groups were made"), "{error}");
    let world = world.restart();
    let error = world.engine.add_groups(vec![GroupSpec::new("a.c")]);
    assert!(error.is_err());
}

/// The new file may give the log larger segments, but the log that runs has those it was opened with.
#[tokio::test]
async fn reload_takes_no_articles_whose_records_the_running_log_cannot_hold() {
    let world = World::new(config(32 << 20));
    let mut larger = large_headers();
    let error = world.engine.reload(&larger).unwrap_err().to_string();
    for part in [
        "articles.header_octets_max = 1048576",
        "log.segment_octets of 2424832 or more",
        "has 1048576",
        "restart",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let small = [with_subject(0, 100 << 10)];
    let refused = Outcome::Rejected(Reject::HeadTooLarge);
    assert_eq!(world.send(&small).await, [refused], "nothing is taken over");
    larger.articles.header_octets_max = 200 << 10;
    world.engine.reload(&larger).unwrap();
    assert_eq!(world.send(&small).await, [Outcome::Accepted]);
}
