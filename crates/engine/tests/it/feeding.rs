//! Articles in, articles out, before and after a restart.

use newsreel_service::{ArticleQuery, NewsService, Outcome, OverviewRows, Part, Reject};
use newsreel_wire::{ArticleNumber, GroupName};

use crate::world::{World, article, config};

fn group(name: &str) -> GroupName<'_> {
    GroupName::parse(name.as_bytes()).unwrap()
}

async fn check_first(world: &World) {
    let info = world
        .service
        .group(group("misc.test"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((info.low.0, info.high.0, info.count), (1, 3, 3));
    let first = world.by_id("<0@t.example>").await.unwrap();
    assert_eq!(
        first,
        "Path: news.example!feeder.example!not-for-mail\r\nFrom: a@b.example\r\n\
         Newsgroups: misc.test\r\nSubject: number 0\r\nDate: Tue, 14 Nov 2023 22:00:00 +0000\r\n\
         Message-ID: <0@t.example>\r\nXref: news.example misc.test:1\r\n\r\n\
         Body of 0\r\n..dots\r\n.\r\n"
    );
    let query = ArticleQuery::ByNumber(info.id, ArticleNumber(3));
    assert_eq!(
        world.read(query, Part::Body).await.unwrap(),
        "Body of 2\r\n..dots\r\n.\r\n"
    );
    let head = world.read(query, Part::Head).await.unwrap();
    assert!(
        head.ends_with("Xref: news.example misc.test:3 misc.other:1\r\n"),
        "{head}"
    );
    let mut rows = OverviewRows::default();
    let (low, high) = (ArticleNumber(1), ArticleNumber(9));
    let next = world
        .service
        .overview(info.id, low, high, 1 << 20, &mut rows)
        .await
        .unwrap();
    assert_eq!((next, rows.rows()), (None, 3));
    let whole = world.read(query, Part::Whole).await.unwrap();
    let octets = whole.len() - ".\r\n".len() - 1;
    let text = String::from_utf8(rows.text().to_vec()).unwrap();
    let last = text.lines().last().unwrap();
    assert_eq!(
        last,
        format!(
            "3\tnumber 2\ta@b.example\tTue, 14 Nov 2023 22:00:00 +0000\t<2@t.example>\t\t{octets}\t2\t\
             Xref: news.example misc.test:3 misc.other:1"
        )
    );
}

#[tokio::test]
async fn articles_come_back_as_they_were_stored_also_after_a_restart() {
    let world = World::new(config(4 << 20));
    let articles = [
        article(0, "misc.test"),
        article(1, "misc.test"),
        article(2, "misc.test,misc.other"),
    ];
    assert_eq!(world.send(&articles).await, [Outcome::Accepted; 3]);
    assert_eq!(world.send(&articles[..1]).await, [Outcome::Duplicate]);
    check_first(&world).await;
    let world = world.restart();
    check_first(&world).await;
    assert_eq!(world.send(&articles[..1]).await, [Outcome::Duplicate]);
    assert_eq!(
        world.send(&[article(7, "misc.other")]).await,
        [Outcome::Accepted]
    );
    let info = world
        .service
        .group(group("misc.other"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((info.low.0, info.high.0, info.count), (1, 2, 2));
}

#[tokio::test]
async fn two_copies_in_one_batch_are_stored_once() {
    let world = World::new(config(4 << 20));
    let copies = vec![article(5, "misc.test"); 4];
    let outcomes = world.send(&copies).await;
    let accepted = outcomes
        .iter()
        .filter(|outcome| **outcome == Outcome::Accepted)
        .count();
    assert_eq!(accepted, 1, "{outcomes:?}");
    assert!(
        outcomes
            .iter()
            .all(|o| matches!(o, Outcome::Accepted | Outcome::Duplicate))
    );
}

#[tokio::test]
async fn refusals_have_their_reason() {
    let world = World::new(config(4 << 20));
    let cases: [(&str, &str, Reject); 5] = [
        (
            "Newsgroups: misc.test",
            "Newsgroups: no.such.group",
            Reject::UnknownGroups,
        ),
        ("Path: feeder", "Path: news.example!feeder", Reject::Loop),
        ("14 Nov 2023", "14 Nov 2022", Reject::TooOld),
        ("14 Nov 2023", "17 Nov 2023", Reject::FutureDate),
        ("Subject: number 1\r\n", "", Reject::NoSubject),
    ];
    for (from, to, reject) in cases {
        let (id, text) = article(1, "misc.test");
        let text = String::from_utf8(text).unwrap().replace(from, to);
        let outcomes = world.send(&[(id, text.into_bytes())]).await;
        assert_eq!(outcomes, [Outcome::Rejected(reject)], "{to}");
    }
    // The same id in a sound copy is welcome.
    assert_eq!(
        world.send(&[article(1, "misc.test")]).await,
        [Outcome::Accepted]
    );
}

#[tokio::test]
async fn the_buffers_wrap_and_everything_follows() {
    let mut config = config(1 << 20);
    config.sequencer.checkpoint_log_octets = 200_000;
    let world = World::new(config);
    let filler = "x".repeat(70);
    for round in 0..60 {
        let articles: Vec<_> = (0..50)
            .map(|at| {
                let (id, mut text) = article(round * 50 + at, "misc.test");
                text.truncate(text.len() - 3);
                for _ in 0..25 {
                    text.extend_from_slice(filler.as_bytes());
                    text.extend_from_slice(b"\r\n");
                }
                text.extend_from_slice(b".\r\n");
                (id, text)
            })
            .collect();
        assert_eq!(
            world.send(&articles).await,
            vec![Outcome::Accepted; 50],
            "round {round}"
        );
    }
    check_wrapped(&world).await;
    let world = world.restart();
    check_wrapped(&world).await;
    let report = world.engine.check(&mut |_, _| {}).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert!(
        report.groups == 2 && report.articles > 100 && report.overwritten > 0,
        "{report:?}"
    );
}

async fn check_wrapped(world: &World) {
    let info = world
        .service
        .group(group("misc.test"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(info.high.0, 3000);
    assert!(info.count > 300 && info.count < 1000, "{info:?}");
    let mut numbers = Vec::new();
    let (low, high) = (ArticleNumber(1), ArticleNumber(9999));
    world
        .service
        .numbers(info.id, low, high, 10_000, &mut numbers)
        .await
        .unwrap();
    assert_eq!(numbers.len() as u64, info.count);
    assert_eq!(numbers.first(), Some(&info.low));
    for number in numbers {
        let query = ArticleQuery::ByNumber(info.id, number);
        let text = world.read(query, Part::Whole).await;
        let subject = format!("Subject: number {}\r\n", number.0 - 1);
        assert!(text.unwrap().contains(&subject));
    }
}
