//! Expiry: what the rules let go is gone for everybody at once, group by group, and what they do not stays.

use std::sync::Arc;

use newsreel_engine::{
    ArticleRef, EngineConfig, ExpireReport, ExpireRule, GroupSpec, Mode, Reason,
};
use newsreel_host::{Clock as _, MemoryDisk, WallTime};
use newsreel_service::Outcome;
use newsreel_store::methods::METHODS;

use crate::attaching::{copies, copy};
use crate::damage::newnews;
use crate::world::{NOW, World, article, config, open_on};

const DAY: u64 = 86_400;

fn rule(groups: &str, change: impl FnOnce(&mut ExpireRule)) -> ExpireRule {
    let mut rule = ExpireRule {
        groups: groups.to_owned(),
        ..ExpireRule::default()
    };
    change(&mut rule);
    rule
}

fn days(groups: &str, days: u64) -> ExpireRule {
    rule(groups, |it| it.keep_s = Some(days * DAY))
}

/// Nothing goes in the background but where a test wants it.
fn with(rules: Vec<ExpireRule>) -> EngineConfig {
    let mut config = config(8 << 20);
    config.expire = rules;
    config.expiry.rows_per_s = 0;
    // Days pass, and articles come all the same.
    config.articles.age_s_max = 0;
    config
}

/// The same with a second set, of class `short`, for what has an Expires field.
fn of_two_classes(rules: Vec<ExpireRule>) -> EngineConfig {
    let mut config = with(rules);
    let mut long = config.store.sets[0].clone();
    let mut short = long.clone();
    long.buffers.truncate(1);
    short.buffers.remove(0);
    (short.name, short.class) = ("second".to_owned(), Some("short".to_owned()));
    let mut to_short = config.store.rules[0].clone();
    (to_short.set, to_short.header) = ("second".to_owned(), Some("Expires".to_owned()));
    config.store.sets = vec![long, short];
    config.store.rules.insert(0, to_short);
    config
}

async fn feed(world: &World, numbers: impl Iterator<Item = usize>, groups: &str) {
    let sent: Vec<_> = numbers.map(|n| article(n, groups)).collect();
    let outcomes = world.send(&sent).await;
    assert!(outcomes.iter().all(|it| *it == Outcome::Accepted));
}

/// Article `n` with an Expires field so many days ahead.
fn expiring(n: usize, groups: &str, days: u64) -> (String, Vec<u8>) {
    let (id, text) = article(n, groups);
    let text = String::from_utf8(text).unwrap();
    let field = format!("Expires: {} Nov 2023 22:13:20 +0000\r\n", 14 + days);
    let text = text.replacen("Message-ID:", &format!("{field}Message-ID:"), 1);
    (id, text.into_bytes())
}

fn expire(world: &World) -> ExpireReport {
    world.engine.expire(false, &mut |_, _| true).unwrap()
}

/// The articles of a group, as everything that shows articles has them.
async fn there(world: &World, group: &str) -> Vec<u64> {
    let lines = world.lines(group).await;
    let number = |line: &String| line.split('\t').next().unwrap().parse().unwrap();
    let numbers: Vec<u64> = lines.iter().map(number).collect();
    let facts = world.engine.group(group).unwrap();
    assert_eq!(facts.count, numbers.len() as u64, "{group}");
    if let Some(first) = numbers.first() {
        assert_eq!(facts.low, *first, "{group}");
    }
    let news = newnews(world, group).await.unwrap();
    assert_eq!(news, numbers.len(), "{group}");
    numbers
}

async fn is_there(world: &World, n: usize) -> bool {
    world.by_id(&format!("<{n}@t.example>")).await.is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_old_goes_whatever_the_method() {
    for method in METHODS.iter().map(|method| method.name) {
        let memory = MemoryDisk::new();
        let mut config = with(vec![days("misc.*", 3)]);
        if method != "cnfs" {
            config.store.buffers.clear();
            let set = &mut config.store.sets[0];
            set.buffers.clear();
            method.clone_into(&mut set.method);
        }
        let world = World::on(Arc::new(memory.clone()), config);
        feed(&world, 1..=700, "misc.test").await;
        world.seal();
        world.wait_s(2 * DAY);
        feed(&world, 701..=720, "misc.test").await;
        world.wait_s(DAY - 1);
        assert_eq!(expire(&world).articles, 0, "{method}: a second too early");
        world.wait_s(1);
        let dry = world.engine.expire(true, &mut |_, _| true).unwrap();
        assert_eq!((dry.articles, dry.going.len()), (700, 700), "{method}");
        assert_eq!(there(&world, "misc.test").await.len(), 720, "{method}");
        let done = expire(&world);
        assert_eq!((done.articles, done.octets), (700, dry.octets), "{method}");
        assert_eq!(done.rules, dry.rules, "{method}");
        let left: Vec<u64> = (701..=720).collect();
        assert_eq!(there(&world, "misc.test").await, left, "{method}");
        assert!(!is_there(&world, 1).await && is_there(&world, 701).await);
        // Its id is remembered.
        let again = world.send(&[article(1, "misc.test")]).await;
        assert_eq!(again, [Outcome::Duplicate], "{method}");
        assert_eq!(world.problems(), [""; 0], "{method}");
        // From the log alone, and sealed.
        let crashed = Arc::new(memory.crash_losing_all());
        let after = open_on(crashed, &world.config, &world.clock);
        assert_eq!(there(&after, "misc.test").await, left, "{method}");
        drop(after);
        world.seal();
        let world = world.restart();
        assert_eq!(there(&world, "misc.test").await, left, "{method}");
        assert_eq!(world.problems(), [""; 0], "{method}");
        assert_eq!(expire(&world).articles, 0, "{method}");
    }
}

/// Each group lets go by itself; the text goes with the last one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crosspost_leaves_its_groups_one_by_one() {
    let memory = MemoryDisk::new();
    let rules = vec![days("misc.test", 1), days("misc.other", 3)];
    let world = World::on(Arc::new(memory.clone()), with(rules));
    feed(&world, 1..=300, "misc.test,misc.other").await;
    world.wait_s(DAY);
    let report = expire(&world);
    assert_eq!((report.left, report.articles), (300, 0));
    assert!(
        report
            .going
            .iter()
            .all(|it| it.stays && it.group == "misc.test")
    );
    assert_eq!(there(&world, "misc.test").await, [0; 0]);
    assert_eq!(there(&world, "misc.other").await.len(), 300);
    assert!(is_there(&world, 300).await);
    assert_eq!(world.problems(), [""; 0]);
    // From the log alone, and sealed.
    let crashed = Arc::new(memory.crash_losing_all());
    let after = open_on(crashed, &world.config, &world.clock);
    assert_eq!(there(&after, "misc.test").await, [0; 0]);
    assert_eq!(there(&after, "misc.other").await.len(), 300);
    drop(after);
    world.seal();
    let world = world.restart();
    assert_eq!(there(&world, "misc.test").await, [0; 0]);
    assert_eq!(world.problems(), [""; 0]);
    world.wait_s(2 * DAY);
    let report = expire(&world);
    assert_eq!((report.left, report.articles), (0, 300));
    assert_eq!(there(&world, "misc.other").await, [0; 0]);
    assert!(!is_there(&world, 300).await);
    // Both at once.
    feed(&world, 1001..=1010, "misc.test,misc.other").await;
    world.wait_s(3 * DAY);
    let dry = world.engine.expire(true, &mut |_, _| true).unwrap();
    let report = expire(&world);
    assert_eq!((report.left, report.articles), (10, 10));
    assert_eq!((dry.left, dry.articles), (10, 10));
    assert!(!is_there(&world, 1010).await);
    assert_eq!(world.problems(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_expires_and_classes_hold_for_each_group() {
    let config = of_two_classes(vec![
        rule("misc.limited", |it| it.articles_max = Some(600)),
        rule("misc.small", |it| it.octets_max = Some(2000)),
        rule("misc.test", |it| {
            it.keep_s_min = Some(DAY);
            it.keep_s = Some(4 * DAY);
            it.keep_s_max = Some(8 * DAY);
        }),
        rule("misc.other", |it| {
            it.class = "short".to_owned();
            it.keep_s = Some(DAY);
        }),
    ]);
    let world = World::new(config);
    let groups = ["misc.limited", "misc.small"].map(GroupSpec::new).to_vec();
    world.engine.add_groups(groups).unwrap();
    feed(&world, 1..=2000, "misc.limited").await;
    feed(&world, 2001..=2020, "misc.small").await;
    feed(&world, 3001..=3001, "misc.test").await;
    let asks = [0, 2, 6, 15].into_iter().zip(3002..);
    let asks: Vec<_> = asks
        .map(|(days, n)| expiring(n, "misc.test", days))
        .collect();
    world.send(&asks).await;
    world.send(&[expiring(4001, "misc.other", 9)]).await;
    feed(&world, 4002..=4002, "misc.other").await;
    world.seal();
    let report = expire(&world);
    let newest: Vec<u64> = (1401..=2000).collect();
    assert_eq!(there(&world, "misc.limited").await, newest);
    let small = there(&world, "misc.small").await;
    let sizes: u64 = report.rules[1].octets / report.rules[1].articles;
    assert_eq!(small.len() as u64, 2000 / sizes, "the newest that fit");
    assert_eq!(small.last(), Some(&20));
    assert_eq!(there(&world, "misc.test").await, [1, 2, 3, 4, 5]);
    // Number 1 asks for nothing, the others for 0, 2, 6 and 15 days.
    let mut now = 0;
    for (day, left) in [
        (1, &[1, 3, 4, 5][..]),
        (2, &[1, 4, 5]),
        (4, &[4, 5]),
        (6, &[5]),
        (7, &[5]),
        (8, &[]),
    ] {
        world.wait_s(DAY * (day - now));
        now = day;
        expire(&world);
        assert_eq!(there(&world, "misc.test").await, left, "day {day}");
        let other = there(&world, "misc.other").await;
        assert_eq!(other, [2], "of class short, and not: day {day}");
    }
    assert_eq!(world.problems(), [""; 0]);
}

/// A pass counted once what a group had beyond its limits: what another pass let go meanwhile, or somebody cancelled, was let go once
/// more, down to nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_went_otherwise_meanwhile_is_no_longer_beyond_a_limit() {
    let articles = rule("misc.limited", |it| it.articles_max = Some(600));
    let octets = rule("misc.limited", |it| it.octets_max = Some(60_000));
    for (limit, name) in [(articles, "articles"), (octets, "octets")] {
        let mut alone = None;
        for (others, at) in [
            ("nobody", 1),
            ("pass", 1),
            ("pass", 4),
            ("pass", 7),
            ("cancels", 1),
            ("cancels", 6),
        ] {
            let what = format!("{name}, {others} at {at}");
            let world = World::new(with(vec![limit.clone()]));
            let group = vec![GroupSpec::new("misc.limited")];
            world.engine.add_groups(group).unwrap();
            feed(&world, 1..=4000, "misc.limited").await;
            let (mut times, mut done) = (0, false);
            let mut meanwhile = |_, _| {
                times += 1;
                if times == at && !done {
                    done = true;
                    if others == "pass" {
                        expire(&world);
                    } else if others == "cancels" {
                        let ids = (3801..=3900).map(|n| ArticleRef::Id(format!("<{n}@t.example>")));
                        let ids: Vec<_> = ids.collect();
                        world.engine.withdraw(&ids, Reason::Cancelled).unwrap();
                    }
                }
                true
            };
            world.engine.expire(false, &mut meanwhile).unwrap();
            assert!(done, "{what}");
            expire(&world);
            let left = there(&world, "misc.limited").await;
            let alone = *alone.get_or_insert(left.len());
            assert!(alone > 200, "{what}: {alone}");
            assert_eq!(left.len(), alone, "{what}");
            assert_eq!(left.last(), Some(&4000), "{what}");
            assert_eq!(world.problems(), [""; 0]);
        }
    }
}

/// A group with a limit for each of two classes: what went otherwise was noted once, and only those rules let fewer go whose articles were in
/// the commit under way; the other let go too many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rule_of_a_group_heeds_what_went_otherwise() {
    for at in [9, 10, 12] {
        let limit = |class: &str| {
            rule("misc.limited", |it| {
                class.clone_into(&mut it.class);
                it.articles_max = Some(600);
            })
        };
        let world = World::new(of_two_classes(vec![limit("short"), limit("")]));
        let group = vec![GroupSpec::new("misc.limited")];
        world.engine.add_groups(group).unwrap();
        for first in (1..=2000).step_by(200) {
            let some = (first..first + 200).map(|n| expiring(n, "misc.limited", 9));
            let outcomes = world.send(&some.collect::<Vec<_>>()).await;
            assert!(outcomes.iter().all(|it| *it == Outcome::Accepted));
        }
        feed(&world, 2001..=4000, "misc.limited").await;
        let (mut times, mut gone) = (0, 0);
        // Counted by eight pieces; then those of the first class go, and the newest of the other are cancelled meanwhile.
        let mut meanwhile = |_, _| {
            times += 1;
            if times == at {
                let ids = (3801..=3900).map(|n| ArticleRef::Id(format!("<{n}@t.example>")));
                let ids: Vec<_> = ids.collect();
                let outcomes = world.engine.withdraw(&ids, Reason::Cancelled).unwrap();
                gone = outcomes.len();
            }
            true
        };
        world.engine.expire(false, &mut meanwhile).unwrap();
        assert_eq!(gone, 100, "{at}");
        let of_both = |left: &[u64]| {
            let of_first = left.iter().filter(|number| **number <= 2000).count();
            (of_first, left.len() - of_first)
        };
        let (of_first, of_second) = of_both(&there(&world, "misc.limited").await);
        assert!(of_first >= 600, "{at}: {of_first}");
        assert_eq!(of_second, 600, "{at}");
        expire(&world);
        assert_eq!(of_both(&there(&world, "misc.limited").await), (600, 600));
    }
}

/// It comes by itself, at its rate, and not while nobody knows the time or too much lies behind what stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_the_background_it_comes_by_itself_unless_it_is_held() {
    let mut config = with(vec![days("misc.*", 1)]);
    config.expiry.rows_per_s = 1_000_000;
    config.expiry.every_s = 1;
    config.expiry.withdrawn_max = 20;
    let world = World::new(config);
    feed(&world, 1..=30, "misc.test").await;
    let expired = |world: &World| world.engine.status().counters.expired;
    let goes_on = |world: &World, count: u64| {
        world.wait_s(1);
        expired(world) == count
    };
    world.wait_until("a pass", |world| {
        world.wait_s(1);
        world.engine.status().expiry.last_ended.is_some()
    });
    assert_eq!(expired(&world), 0);
    world.wait_s(DAY);
    world.wait_until("the first", |world| goes_on(world, 30));
    assert_eq!(there(&world, "misc.test").await, [0; 0]);
    feed(&world, 31..=40, "misc.test").await;
    world.wait_s(DAY);
    world.wait_until("it to be held", |world| {
        world.wait_s(1);
        let held = world.engine.status().expiry.held;
        held.is_some_and(|why| why.contains("expiry.withdrawn_max = 20"))
    });
    let error = world.engine.expire(false, &mut |_, _| true).unwrap_err();
    assert!(error.to_string().contains("withdrawn_max"), "{error}");
    assert_eq!(there(&world, "misc.test").await.len(), 10);
}

/// A thousand go at once, and then it rests as long as its rate says they take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_the_background_it_keeps_to_its_rate() {
    let mut config = with(vec![days("misc.*", 1)]);
    // Nothing but articles is waited for.
    config.expiry.rows_per_s = 1 << 50;
    config.expiry.articles_per_s = 10;
    config.expiry.every_s = DAY;
    let world = World::new(config);
    feed(&world, 1..=2500, "misc.test").await;
    // The first pass found nothing, and the next is due.
    world.wait_until("a pass", |world| {
        world.wait_s(1);
        world.engine.status().expiry.last_ended.is_some()
    });
    world.wait_s(DAY + 60);
    let expired = || world.engine.status().counters.expired;
    world.wait_until("the first thousand", |_| expired() > 0);
    let mut before = 0;
    for (s, then) in [(0, 1000), (98, 1000), (4, 2000), (94, 2000), (10, 2500)] {
        world.wait_s(s);
        if then == before {
            // It looks at the clock once a second.
            tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
        } else {
            world.wait_until("what is due then", |_| expired() >= then);
        }
        assert_eq!(expired(), then, "{s} s later");
        before = then;
    }
    assert_eq!(there(&world, "misc.test").await, [0; 0]);
}

/// Rules are taken over while it runs, and the clock has to be right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_may_change_and_the_clock_must_be_right() {
    let world = World::new(with(Vec::new()));
    feed(&world, 1..=10, "misc.test").await;
    let error = world.engine.expire(false, &mut |_, _| true).unwrap_err();
    assert!(error.to_string().contains("no [[expire]]"), "{error}");
    let mut config = world.config.clone();
    config.expire = vec![days("*", 1)];
    world.engine.reload(&config).unwrap();
    assert_eq!(expire(&world).articles, 0);
    let secs = NOW + 5 * DAY;
    world.clock.set(WallTime { secs, nanos: 0 });
    let error = world.engine.expire(false, &mut |_, _| true).unwrap_err();
    assert!(error.to_string().contains("the clock jumped"), "{error}");
    assert_eq!(there(&world, "misc.test").await.len(), 10);
    world.engine.confirm_clock().unwrap();
    let mut told = 0;
    let cut = world.engine.expire(false, &mut |_, _| {
        told += 1;
        false
    });
    assert!(cut.unwrap().is_cut && told > 0);
    expire(&world);
    assert_eq!(there(&world, "misc.test").await, [0; 0]);
}

/// In transit mode, and where a group was removed, no rule was for an article, and its file stayed for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn articles_in_no_group_go_where_they_are_files() {
    for (method, mode) in [
        ("timehash", Mode::Transit),
        ("md5spool", Mode::Transit),
        ("tradspool", Mode::Reader),
    ] {
        let rules = vec![days("misc.*", 30), days("*", 3)];
        let memory = MemoryDisk::new();
        let world = World::on(Arc::new(memory.clone()), in_files(method, mode, rules));
        world
            .engine
            .add_groups(vec![GroupSpec::new("alt.test")])
            .unwrap();
        feed(&world, 1..=700, "alt.test").await;
        world.wait_s(2 * DAY);
        feed(&world, 701..=720, "alt.test").await;
        if mode == Mode::Reader {
            feed(&world, 721..=740, "alt.test,misc.other").await;
            world.engine.remove_group("alt.test").unwrap();
        }
        world.seal();
        world.wait_s(DAY - 1);
        assert_eq!(dry(&world).articles, 0, "{method}: a second too early");
        world.wait_s(1);
        let told = dry(&world);
        let ids: Vec<String> = told.going.iter().map(|it| it.message_id.clone()).collect();
        let expected: Vec<String> = (1..=700).map(|n| format!("<{n}@t.example>")).collect();
        assert!(
            ids == expected,
            "{method}: {} of {:?}",
            ids.len(),
            ids.first()
        );
        assert!(told.going.iter().all(|it| (it.rule, it.why) == (2, "age")));
        assert!(is_there(&world, 1).await, "{method}");
        let done = expire(&world);
        assert_eq!((done.articles, &done.rules), (700, &told.rules), "{method}");
        assert!(!is_there(&world, 1).await && !is_there(&world, 700).await);
        assert!(is_there(&world, 701).await, "{method}");
        let again = world.send(&[article(1, "misc.test")]).await;
        assert_eq!(again, [Outcome::Duplicate], "{method}");
        assert_eq!(world.problems(), [""; 0], "{method}");
        assert_eq!(dry(&world).articles, 0, "{method}");
        // From the log alone, and sealed.
        let crashed = Arc::new(memory.crash_losing_all());
        let after = open_on(crashed, &world.config, &world.clock);
        assert!(!is_there(&after, 700).await && is_there(&after, 720).await);
        drop(after);
        world.seal();
        let world = world.restart();
        assert_eq!(dry(&world).articles, 0, "{method}");
        // Those that have a group yet are that one's.
        world.wait_s(2 * DAY);
        let told = dry(&world);
        assert!(told.going.iter().all(|it| it.group.is_empty()), "{method}");
        assert_eq!(told.articles, 20, "{method}");
    }
}

/// Only a rule for all groups is for what is in none, and only where it says an age.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn articles_in_no_group_stay_where_no_rule_is_for_them() {
    let most = rule("*", |it| it.articles_max = Some(1));
    let short = rule("*", |it| {
        (it.class, it.keep_s) = ("short".to_owned(), Some(DAY));
    });
    for rules in [
        vec![days("misc.*,alt.*", 1)],
        vec![most, days("*", 1)],
        vec![short],
    ] {
        let world = World::new(in_files("timehash", Mode::Transit, rules));
        feed(&world, 1..=20, "alt.test").await;
        world.wait_s(2 * DAY);
        assert_eq!(expire(&world).articles, 0);
        assert!(is_there(&world, 1).await);
    }
    let buffers = World::new(EngineConfig {
        store: config(8 << 20).store,
        ..in_files("timehash", Mode::Transit, vec![days("*", 1)])
    });
    let refused = buffers.engine.expire(false, &mut |_, _| true);
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("its buffers and segments drop them"),
        "{refused}"
    );
}

fn in_files(method: &str, mode: Mode, rules: Vec<ExpireRule>) -> EngineConfig {
    let mut config = with(rules);
    config.sequencer.mode = mode;
    config.store.buffers.clear();
    let set = &mut config.store.sets[0];
    set.buffers.clear();
    method.clone_into(&mut set.method);
    config
}

fn dry(world: &World) -> ExpireReport {
    world.engine.expire(true, &mut |_, _| true).unwrap()
}

/// Attached articles lie behind what came later here, and were reached by no pass while that stayed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_old_goes_behind_what_is_young() {
    let old = World::new(config(8 << 20));
    feed(&old, 5000..5010, "misc.test").await;
    old.seal();
    for is_asked in [true, false] {
        let disk = MemoryDisk::new();
        let paths = copy(&old, "/spool/buffers", &disk);
        let mut config = with(vec![days("misc.*", 5)]);
        config.expiry.every_s = 60;
        if !is_asked {
            config.expiry.rows_per_s = 1 << 50;
        }
        let world = World::on(Arc::new(disk), config);
        world.wait_s(4 * DAY);
        feed(&world, 1..=1100, "misc.test").await;
        let attached = world.engine.attach(&copies(&paths), &mut |_, _| true);
        assert_eq!(attached.unwrap().taken, 10);
        if is_asked {
            world.wait_s(DAY);
            assert_eq!((dry(&world).articles, expire(&world).articles), (10, 10));
        } else {
            world.wait_until("a pass", |world| {
                world.wait_s(1);
                world.engine.status().expiry.last_ended.is_some()
            });
            assert_eq!(world.engine.status().counters.expired, 0);
            world.wait_s(DAY);
            world.wait_until("those of the other spool", |world| {
                world.wait_s(1);
                world.engine.status().counters.expired == 10
            });
        }
        assert_eq!(there(&world, "misc.test").await.len(), 1100);
    }
}

/// A server that does not run over midnight never had a pass that looks at all rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_pass_of_a_run_looks_at_all_rows() {
    let old = World::new(config(8 << 20));
    feed(&old, 5000..5010, "misc.test").await;
    old.seal();
    let disk = MemoryDisk::new();
    let paths = copy(&old, "/spool/buffers", &disk);
    let world = World::on(Arc::new(disk), with(vec![days("misc.*", 5)]));
    world.wait_s(4 * DAY);
    feed(&world, 1..=1100, "misc.test").await;
    let attached = world.engine.attach(&copies(&paths), &mut |_, _| true);
    assert_eq!(attached.unwrap().taken, 10);
    world.wait_s(DAY);
    let mut config = world.config.clone();
    config.expiry.rows_per_s = 1 << 50;
    let (disk, clock) = (Arc::clone(&world.disk), Arc::clone(&world.clock));
    world.engine.shutdown().unwrap();
    drop(world);
    let world = open_on(disk, &config, &clock);
    world.wait_until("a pass", |world| {
        // Less than a day in all: no other day begins.
        world.wait_s(1);
        world.engine.status().expiry.last_ended.is_some()
    });
    assert_eq!(world.engine.status().counters.expired, 10);
}

/// A pass that began before midnight ended on the new day, which had none then that looks at all rows: where passes follow each other,
/// no day had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pass_over_midnight_is_not_the_one_of_the_new_day() {
    let old = World::new(config(8 << 20));
    feed(&old, 5000..5010, "misc.test").await;
    old.seal();
    let disk = MemoryDisk::new();
    let paths = copy(&old, "/spool/buffers", &disk);
    let midnight = (NOW / DAY + 5) * DAY;
    // The old ones are due some hours before.
    let keep_s = midnight - 41_000 - NOW;
    let mut config = with(vec![rule("misc.*", |it| it.keep_s = Some(keep_s))]);
    // A piece of a group takes some nine minutes.
    config.expiry.rows_per_s = 1;
    config.expiry.every_s = 60;
    let world = World::on(Arc::new(disk), config);
    let now = |world: &World| world.clock.now().secs;
    let ended = |world: &World| world.engine.status().expiry.last_ended;
    world.wait_until("a pass", |world| {
        world.wait_s(1);
        ended(world).is_some()
    });
    world.wait_s(midnight - 80_000 - now(&world));
    feed(&world, 1..=1100, "misc.test").await;
    let attached = world.engine.attach(&copies(&paths), &mut |_, _| true);
    assert_eq!(attached.unwrap().taken, 10);
    let since = now(&world);
    world.wait_until("the pass of the day", |world| {
        world.wait_s(10);
        ended(world) > Some(since)
    });
    assert!(now(&world) < midnight - 41_000);
    world.wait_s(midnight - 40_000 - now(&world));
    // It has just begun, and is not over soon.
    world.wait_until("another pass", |world| {
        let began = world.engine.status().expiry.began;
        let has_begun = began.is_some_and(|began| now(world) - began < 300);
        if !has_begun {
            world.wait_s(10);
        }
        has_begun
    });
    assert!(now(&world) < midnight - 300);
    world.wait_s(midnight + 60 - now(&world));
    world.wait_until("the pass of the new day", |world| {
        world.wait_s(10);
        world.engine.status().counters.expired == 10
    });
    assert_eq!(there(&world, "misc.test").await.len(), 1100);
}

/// The same of files in no group: the catalogue has them where they were attached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_old_in_no_group_goes_behind_what_is_young() {
    let old = World::new(config(8 << 20));
    feed(&old, 5000..5010, "misc.test").await;
    old.seal();
    let disk = MemoryDisk::new();
    let paths = copy(&old, "/spool/buffers", &disk);
    let config = in_files("timehash", Mode::Transit, vec![days("*", 5)]);
    let world = World::on(Arc::new(disk), config);
    world.wait_s(4 * DAY);
    feed(&world, 1..=1100, "misc.test").await;
    let attached = world.engine.attach(&copies(&paths), &mut |_, _| true);
    assert_eq!(attached.unwrap().taken, 10);
    world.wait_s(DAY);
    assert_eq!((dry(&world).articles, expire(&world).articles), (10, 10));
}
