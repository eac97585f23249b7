//! Refusals that hang on the configuration of buffers and numbers, which transcripts do not reach.

use std::sync::Arc;

use newsreel_engine::{GroupChange, GroupSpec, NumberOverflow, UnknownGroups};
use newsreel_host::MemoryDisk;
use newsreel_service::{Outcome, Reject};
use newsreel_wire::ArticleNumber;

use crate::world::{World, article, config};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_storage_rule_takes_is_refused() {
    let mut config = config(4 << 20);
    config.store.rules[0].groups = "misc.test".to_owned();
    let world = World::on(Arc::new(MemoryDisk::new()), config);
    let sent = [article(1, "misc.other"), article(2, "misc.test")];
    assert_eq!(
        world.send(&sent).await,
        [Outcome::Rejected(Reject::NoStorageRule), Outcome::Accepted]
    );
    assert_eq!(world.high("misc.other"), 0);
}

/// The session hands on whole articles only; what has no terminator all the same is no article.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_end_is_refused() {
    let world = World::on(Arc::new(MemoryDisk::new()), config(4 << 20));
    let (id, mut octets) = article(1, "misc.test");
    octets.truncate(octets.len() - 3);
    let outcomes = world.send(&[(id, octets), article(1, "misc.test")]).await;
    assert_eq!(
        outcomes,
        [Outcome::Rejected(Reject::Undecodable), Outcome::Accepted]
    );
}

/// RFC 3977 lets a server offer 31 bits.
const LAST: u64 = 0x7fff_ffff;

fn high(number: u64) -> GroupChange {
    GroupChange {
        high: Some(ArticleNumber(number)),
        ..GroupChange::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_is_full_says_so_and_larger_numbers_live_through_everything() {
    let mut config = config(4 << 20);
    let mut world = World::on(Arc::new(MemoryDisk::new()), config.clone());
    world.engine.set_group("misc.test", high(LAST - 1)).unwrap();
    let full = Outcome::Rejected(Reject::GroupFull);
    let sent = [1, 2].map(|n| article(n, "misc.test"));
    assert_eq!(world.send(&sent).await, [Outcome::Accepted, full]);
    let both = [article(3, "misc.test,misc.other")];
    assert_eq!(world.send(&both).await, [Outcome::Accepted]);
    assert_eq!(
        (world.high("misc.test"), world.high("misc.other")),
        (LAST, 1)
    );
    world = world.restart();
    assert_eq!(world.send(&sent[1..]).await, [full]);
    // Nobody is told for good: with another configuration it is taken.
    config.sequencer.number_overflow = NumberOverflow::Larger;
    world.config = config;
    world = world.restart();
    assert_eq!(world.send(&sent[1..]).await, [Outcome::Accepted]);
    for round in ["new", "sealed", "restarted"] {
        match round {
            "sealed" => world.seal(),
            "restarted" => world = world.restart(),
            _ => {}
        }
        assert_eq!(world.high("misc.test"), LAST + 1, "{round}");
        let lines = world.lines("misc.test").await;
        let numbers: Vec<_> = lines.iter().map(|line| line.split('\t').next()).collect();
        assert_eq!(numbers, [Some("2147483647"), Some("2147483648")], "{round}");
    }
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// A copy behind one that is refused is judged for itself: it is no copy of anything that is here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_of_what_is_refused_are_judged_for_themselves() {
    let world = World::on(Arc::new(MemoryDisk::new()), config(4 << 20));
    world.engine.set_group("misc.test", high(LAST - 1)).unwrap();
    let last = [article(9, "misc.test")];
    assert_eq!(world.send(&last).await, [Outcome::Accepted]);
    let (id, text) = article(1, "misc.test");
    let elsewhere = String::from_utf8(text.clone()).unwrap();
    let elsewhere = elsewhere.replace("misc.test", "misc.other").into_bytes();
    let copies =
        [&text, &text, &text, &elsewhere, &text, &elsewhere].map(|text| (id.clone(), text.clone()));
    let full = || Outcome::Rejected(Reject::GroupFull);
    // The transfer of many is sequenced in one go, behind each other.
    assert_eq!(
        world.send(&copies).await,
        [
            full(),
            full(),
            full(),
            Outcome::Accepted,
            Outcome::Duplicate,
            Outcome::Duplicate
        ]
    );
    assert_eq!(world.high("misc.other"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn high_marks_that_no_command_could_name_are_refused() {
    let world = World::on(Arc::new(MemoryDisk::new()), config(4 << 20));
    for number in [u64::MAX, 10_000_000_000_000_000] {
        let why = world.engine.set_group("misc.test", high(number));
        assert!(why.unwrap_err().to_string().contains("16 digits"));
    }
    // A group that stops at the last number of RFC 3977 could never take an article.
    let full = GroupSpec {
        high: ArticleNumber(3_000_000_000),
        ..GroupSpec::new("misc.full")
    };
    for why in [
        world.engine.add_groups(vec![full]).map(drop),
        world.engine.set_group("misc.test", high(2_147_483_647)),
    ] {
        assert!(why.unwrap_err().to_string().contains("number_overflow"));
    }
    assert_eq!(world.high("misc.test"), 0);
}

/// Two administrators who change different things of one group at the same time both get what they asked for.
#[test]
fn changes_of_one_group_at_the_same_time_lose_nothing() {
    let world = World::new(config(4 << 20));
    let of = |status: Option<&str>, description: Option<&str>| GroupChange {
        status: status.map(str::to_owned),
        description: description.map(str::to_owned),
        high: None,
    };
    for round in 0..100 {
        let text = format!("round {round}");
        let status = ["n", "y"][round % 2];
        let change = |change| world.engine.set_group("misc.test", change).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| change(of(Some(status), None)));
            scope.spawn(|| change(of(None, Some(&text))));
        });
        let group = world.engine.group("misc.test").unwrap();
        assert_eq!((group.status, group.description), (status.to_owned(), text));
    }
}

/// Who posted to an alias got around the moderator.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alias_is_as_moderated_and_as_closed_as_what_it_leads_to() {
    let world = World::on(Arc::new(MemoryDisk::new()), config(4 << 20));
    let group = |name: &str, status: &str| GroupSpec {
        status: status.to_owned(),
        ..GroupSpec::new(name)
    };
    let groups = [
        group("alt.m", "m"),
        group("alt.by", "=alt.m"),
        group("alt.x", "x"),
        group("alt.shut", "=alt.x"),
    ];
    world.engine.add_groups(groups.to_vec()).unwrap();
    let approved = |n: usize, group: &str| {
        let (id, text) = article(n, group);
        let text = String::from_utf8(text).unwrap();
        (
            id,
            text.replace("Subject:", "Approved: m@t.example\r\nSubject:")
                .into_bytes(),
        )
    };
    let sent = [
        article(1, "alt.by"),
        article(2, "alt.shut"),
        article(3, "misc.test,alt.by"),
        approved(4, "alt.by"),
        article(5, "misc.test,alt.shut"),
    ];
    let refused = |why| Outcome::Rejected(why);
    assert_eq!(
        world.send(&sent).await,
        [
            refused(Reject::NotApproved),
            refused(Reject::GroupClosed),
            refused(Reject::NotApproved),
            Outcome::Accepted,
            Outcome::Accepted,
        ]
    );
    assert_eq!((world.high("alt.m"), world.high("misc.test")), (1, 1));
}

/// Articles that no group here files go to `junk` where that is wanted and there is one; those of closed groups never.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn articles_of_unknown_groups_are_refused_or_kept_apart() {
    let mut config = config(4 << 20);
    let group = |name: &str, status: &str| GroupSpec {
        status: status.to_owned(),
        ..GroupSpec::new(name)
    };
    let groups = [
        group("alt.j", "j"),
        group("alt.x", "x"),
        group("alt.m", "m"),
        group("alt.to.j", "=alt.j"),
    ];
    let wanted = |from: usize| {
        [
            article(from, "no.such"),
            article(from + 1, "alt.j,no.such"),
            article(from + 2, "alt.to.j"),
            article(from + 3, "alt.x"),
            article(from + 4, "alt.x,no.such"),
            article(from + 5, "alt.m,no.such"),
            article(from + 6, "misc.test,no.such"),
        ]
    };
    let [unknown, closed, moderated] = [
        Reject::UnknownGroups,
        Reject::GroupClosed,
        Reject::NotApproved,
    ]
    .map(Outcome::Rejected);
    let taken = Outcome::Accepted;
    let refused = [unknown, closed, closed, closed, closed, moderated, taken];
    let kept = [taken, taken, taken, closed, taken, moderated, taken];

    let world = World::on(Arc::new(MemoryDisk::new()), config.clone());
    world.engine.add_groups(groups.to_vec()).unwrap();
    assert_eq!(world.send(&wanted(1)).await, refused);
    config.articles.unknown_groups = UnknownGroups::Junk;
    world.engine.reload(&config).unwrap();
    assert_eq!(
        world.send(&wanted(11)).await,
        refused,
        "there is no such group"
    );
    let junk = vec![GroupSpec::new("junk")];
    world.engine.add_groups(junk).unwrap();
    assert_eq!(world.send(&wanted(21)).await, kept);
    let lines = world.lines("junk").await;
    let xrefs = lines.iter().filter_map(|line| line.split('\t').next_back());
    assert_eq!(
        xrefs.collect::<Vec<_>>(),
        [1, 2, 3, 4].map(|n| format!("Xref: news.example junk:{n}"))
    );
    assert_eq!(world.high("misc.test"), 3);
    assert_eq!(world.problems(), [""; 0]);
}
