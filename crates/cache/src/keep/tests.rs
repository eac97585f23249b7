//! What is kept, over disks in memory: read back, let go, cancelled, lost with the power, rotten.

use std::path::Path;

use newsreel_host::MemoryDisk;
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{ArticleNumber, UnixTime};

use super::*;

mod arriving;
mod failing;
mod going;

const NOW: UnixTime = UnixTime(1_767_225_600);

fn settings() -> KeepSettings {
    KeepSettings {
        directory: "/cache".into(),
        octets: KeepSettings::OCTETS_MIN,
        // All lie together, where a test does not say otherwise.
        large_octets: 0,
        overview_octets: 100_000,
        makes_lines: false,
        memory_octets: 1 << 20,
        overview_memory_octets: 1 << 20,
        table_memory_octets: 1 << 20,
        policy: PolicyKind::Lrua,
        policy_articles_max: 100_000,
        pinned_octets: 1 << 20,
    }
}

impl Keep {
    /// Keeps articles none of which is let go.
    fn keep(&self, articles: &[Fetched], now: UnixTime) -> HashSet<IdHash> {
        self.keep_articles(articles, now, &|_| false)
    }
}

fn open(disk: &MemoryDisk) -> Keep {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Keep::open(&disk, &settings()).unwrap()
}

fn id(number: u64) -> String {
    format!("<{number}@t.example>")
}

fn article(keep: &Keep, number: u64, octets: usize) -> Fetched {
    let id = id(number);
    let head = format!("Subject: {number}\r\nMessage-ID: {id}\r\n\r\n");
    let body = "x".repeat(octets);
    let wire = format!("{head}{body}\r\n.\r\n").into_bytes();
    Fetched {
        hash: keep.id_hash(MessageId::parse(id.as_bytes()).unwrap()),
        id: id.into_bytes().into(),
        kept: Arc::new(Kept::new(wire.into()).unwrap()),
    }
}

/// Whether an article is there, and as it came.
fn is_there(keep: &Keep, number: u64, octets: usize) -> bool {
    let expected = article(keep, number, octets);
    let found = keep.article(&expected.hash, NOW);
    if let Some(found) = &found {
        assert_eq!(*found, expected.kept, "article {number}");
    }
    found.is_some()
}

fn line(number: u64, octets: usize) -> Vec<u8> {
    let subject = "s".repeat(octets);
    let id = id(number);
    format!("{subject}\tme@t.example\tThu, 01 Jan 2026 00:00:00 +0000\t{id}\t\t9\t1").into_bytes()
}

fn group(low: u64, high: u64, told: u64) -> KeptGroup {
    KeptGroup {
        low: ArticleNumber(low),
        high: ArticleNumber(high),
        count: 1 + high - low,
        told: UnixTime(NOW.0 + told),
        asked: 0,
        posted: 0,
        generation: 0,
        overview_octets: 0,
        status: "y".into(),
    }
}

/// Which one of its name a group is now.
fn generation(keep: &Keep, name: &str) -> u64 {
    keep.group(name).map_or(0, |group| group.generation)
}

/// Tells a group's overview of a range, of which all are there.
fn tell(keep: &Keep, name: &Arc<str>, low: u64, high: u64, octets: usize) {
    let lines: Vec<_> = (low..=high)
        .map(|n| (ArticleNumber(n), line(n, octets)))
        .collect();
    let lines = lines.iter().map(|(number, line)| (*number, &**line));
    keep.tell(
        (name, generation(keep, name)),
        &[(ArticleNumber(low), ArticleNumber(high))],
        lines,
        NOW,
    );
}

/// The numbers below 600 whose lines are known.
fn known(keep: &Keep, name: &Arc<str>) -> Vec<u64> {
    let blocks = (0..5).map(|number| (number, keep.block(name, number)));
    let lines = blocks.flat_map(|(number, block)| {
        let places: Vec<u64> = block.lines().map(|(place, _)| place.into()).collect();
        places
            .into_iter()
            .map(move |place| number * BLOCK_NUMBERS + place)
    });
    lines.collect()
}

fn octets_in(disk: &MemoryDisk, dir: &str) -> u64 {
    let mut entries = disk.list(Path::new(dir)).unwrap();
    entries.retain(|entry| entry.name != ".newsreel-set");
    entries.iter().map(|entry| entry.len).sum()
}

/// Octets of small articles' files and of large ones'.
fn octets_apart(disk: &MemoryDisk) -> [u64; 2] {
    let has = |dir: &str| disk.exists(Path::new(dir)).unwrap();
    ["/cache/articles", "/cache/large"].map(|dir| if has(dir) { octets_in(disk, dir) } else { 0 })
}

#[test]
fn what_was_made_durable_survives_and_nothing_is_ever_wrong() {
    let disk = MemoryDisk::new();
    let name: Arc<str> = "misc.test".into();
    let keep = open(&disk);
    let mine: Vec<Fetched> = (1..=20).map(|n| article(&keep, n, 900)).collect();
    keep.keep(&mine, NOW);
    keep.put_group(&name, group(1, 20, 0));
    tell(&keep, &name, 1, 20, 10);
    keep.checkpoint();
    let later: Vec<Fetched> = (21..=40).map(|n| article(&keep, n, 900)).collect();
    keep.keep(&later, NOW);
    assert!((1..=40).all(|n| is_there(&keep, n, 900)));
    for seed in 0..4 {
        let again = open(&disk.crash(seed));
        assert!((1..=20).all(|n| is_there(&again, n, 900)), "durable");
        assert_eq!(again.group("misc.test").unwrap().count, 20);
        assert_eq!(known(&again, &name), (1..=20).collect::<Vec<_>>());
        // What was not durable may be there or not; what comes next lies where it was.
        let _ = (21..=40).filter(|n| is_there(&again, *n, 900)).count();
        let more: Vec<Fetched> = (41..=80).map(|n| article(&again, n, 700)).collect();
        again.keep(&more, NOW);
        again.checkpoint();
        again.in_memory.clear();
        assert!((41..=80).all(|n| is_there(&again, n, 700)));
        assert!((1..=20).all(|n| is_there(&again, n, 900)));
        let _ = (21..=40).filter(|n| is_there(&again, *n, 900)).count();
    }
}

#[test]
fn there_is_never_more_than_the_settings_say() {
    let disk = MemoryDisk::new();
    let keep = open(&disk);
    for n in 1..=300 {
        keep.keep(&[article(&keep, n, 60_000)], NOW);
        assert!(
            octets_in(&disk, "/cache/articles") <= settings().octets,
            "{n}"
        );
    }
    keep.checkpoint();
    assert!(octets_in(&disk, "/cache") < 8 << 20, "the table");
    drop(keep);
    let keep = open(&disk);
    let there: Vec<u64> = (1..=300).filter(|n| is_there(&keep, *n, 60_000)).collect();
    assert!(there.len() > 90, "{there:?}");
    assert!(
        there.iter().copied().eq(301 - there.len() as u64..=300),
        "{there:?}"
    );
    // Too large for any segment: it is passed on, and not kept.
    let large = article(&keep, 301, 2 << 20);
    keep.keep(std::slice::from_ref(&large), NOW);
    assert!(!keep.has_article(&large.hash));
    assert!(keep.has_article(&article(&keep, 300, 60_000).hash));
}

fn open_with(disk: &MemoryDisk, policy: PolicyKind) -> Keep {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let settings = KeepSettings {
        policy,
        memory_octets: 0,
        ..settings()
    };
    Keep::open(&disk, &settings).unwrap()
}

/// So many articles come that all segments go several times over; these were asked for between.  There is never too much.
fn flood(disk: &MemoryDisk, keep: &Keep, numbers: std::ops::Range<u64>, asked: &[u64]) {
    for n in numbers {
        keep.keep(&[article(keep, n, 60_000)], NOW);
        for n in asked {
            assert!(is_there(keep, *n, 3000), "{n}");
        }
        let octets = octets_in(disk, "/cache/articles");
        assert!(octets <= settings().octets, "{octets} octets");
    }
}

/// What is read outlives the segment that it lies in, and what nobody reads goes with its own.
#[test]
fn what_the_policy_wants_outlives_its_segment() {
    let disk = MemoryDisk::new();
    let keep = open_with(&disk, PolicyKind::Lrua);
    let some: Vec<Fetched> = (1..=20).map(|n| article(&keep, n, 3000)).collect();
    keep.keep(&some, NOW);
    let asked: Vec<u64> = (1..=10).collect();
    flood(&disk, &keep, 100..500, &asked);
    assert!((11..=20).all(|n| !is_there(&keep, n, 3000)));
    let Written { came, again } = keep.figures().written;
    assert!(again > 30_000 && again < came / 10, "{again} of {came}");
}

/// So much that a segment of each kind is no large part of it.
const APART_OCTETS: u64 = 4 * KeepSettings::OCTETS_MIN;

fn open_apart(disk: &MemoryDisk, large_octets: u64, pinned_octets: u64) -> Keep {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let settings = KeepSettings {
        octets: APART_OCTETS,
        large_octets,
        memory_octets: 0,
        pinned_octets,
        ..settings()
    };
    Keep::open(&disk, &settings).unwrap()
}

/// So many articles of this size come, one by one, and there is never too much.
fn come(disk: &MemoryDisk, keep: &Keep, numbers: std::ops::Range<u64>, octets: usize) {
    for n in numbers {
        keep.keep(&[article(keep, n, octets)], NOW);
        let [small, large] = octets_apart(disk);
        assert!(small + large <= APART_OCTETS, "{small} and {large}");
    }
}

fn count(keep: &Keep, numbers: std::ops::Range<u64>, octets: usize) -> usize {
    numbers.filter(|n| is_there(keep, *n, octets)).count()
}

/// Large articles lie apart (R17): however many of them come, small ones that are read need not be written again.
#[test]
fn for_large_articles_no_small_one_is_written_again() {
    let again = |large_octets| {
        let disk = MemoryDisk::new();
        let keep = open_apart(&disk, large_octets, 0);
        let some: Vec<Fetched> = (1..=20).map(|n| article(&keep, n, 3000)).collect();
        keep.keep(&some, NOW);
        for first in (1000..2400).step_by(20) {
            come(&disk, &keep, first..first + 20, 60_000);
            assert_eq!(count(&keep, 1..21, 3000), 20);
        }
        keep.figures().written.again
    };
    assert_eq!(again(16 << 10), 0);
    assert!(again(0) > 60_000);
}

/// Small and large ones have all the room between them: who comes gets that of who was read longer ago.  A restart with another
/// threshold finds all of them.
#[test]
fn small_and_large_articles_share_the_room() {
    const MIB: u64 = 1 << 20;
    let disk = MemoryDisk::new();
    let keep = open_apart(&disk, 16 << 10, 0);
    come(&disk, &keep, 1..4000, 9000);
    let alone = count(&keep, 1..4000, 9000);
    let [small, large] = octets_apart(&disk);
    let told = format!("{alone} there, {small} and {large}");
    assert!(alone > 2000 && small >= 26 * MIB && large == 0, "{told}");
    come(&disk, &keep, 5000..6000, 60_000);
    let [small, large] = octets_apart(&disk);
    let told = format!("{small} and {large}");
    assert!(small <= 4 * MIB && large >= 24 * MIB, "{told}");
    let there = |keep: &Keep| {
        let small = count(keep, 1..4000, 9000);
        (small, count(keep, 5000..6000, 60_000))
    };
    let before = there(&keep);
    assert!(before.1 > 350, "{before:?}");
    keep.checkpoint();
    drop(keep);
    let keep = open_apart(&disk, 100_000, 0);
    assert_eq!(there(&keep), before);
    come(&disk, &keep, 7000..8000, 60_000);
    let [small, large] = octets_apart(&disk);
    let told = format!("{small} and {large}");
    assert!(small >= 24 * MIB && large <= 4 * MIB, "{told}");
    assert!(count(&keep, 7000..8000, 60_000) > 350);
}

/// Where both sets begin with what is pinned, and would write it again for ever, room is found behind it.
#[test]
fn what_is_pinned_in_both_sets_leaves_room_for_others() {
    let disk = MemoryDisk::new();
    let keep = open_apart(&disk, 16 << 10, APART_OCTETS / 2);
    let mine = |n: u64, octets: usize| {
        let mut fetched = article(&keep, n, octets);
        let wire = [b"Newsgroups: my.group\r\n", &*fetched.kept.wire].concat();
        fetched.kept = Arc::new(Kept::new(wire.into()).unwrap());
        fetched
    };
    keep.pin(&[Wildmat::parse("my.*").unwrap()], &[]).unwrap();
    let small = (1..=700).map(|n| mine(n, 9000));
    let pinned: Vec<Fetched> = small
        .chain((1001..=1100).map(|n| mine(n, 60_000)))
        .collect();
    for one in &pinned {
        keep.keep(std::slice::from_ref(one), NOW);
    }
    come(&disk, &keep, 2000..5000, 9000);
    come(&disk, &keep, 6000..7000, 60_000);
    assert!(pinned.iter().all(|it| keep.has_article(&it.hash)));
    let figures = keep.figures();
    assert!(figures.pinned_octets <= figures.pinned_octets_max);
    // What shares its segment with what is pinned may go earlier.
    assert!(count(&keep, 6900..7000, 60_000) >= 95);
}

/// A cache of a version that kept all articles together goes on, and what it had stays.
#[test]
fn a_cache_without_large_articles_apart_goes_on() {
    let disk = MemoryDisk::new();
    let keep = open_apart(&disk, 0, 0);
    come(&disk, &keep, 1..50, 60_000);
    keep.checkpoint();
    // It knew of one buffer.
    let marks = keep.table.fact("marks").unwrap().unwrap();
    let only = &marks[..32];
    let noted = keep.table.change(true, |it| it.put_fact("marks", only));
    noted.unwrap();
    drop(keep);
    let keep = open_apart(&disk, 16 << 10, 0);
    assert_eq!(count(&keep, 1..50, 60_000), 49);
    come(&disk, &keep, 100..120, 60_000);
    for seed in 0..3 {
        let again = open_apart(&disk.crash(seed), 16 << 10, 0);
        assert_eq!(count(&again, 1..50, 60_000), 49);
        again.keep(&[article(&again, 200, 60_000)], NOW);
        assert!(is_there(&again, 200, 60_000));
    }
    assert_eq!(count(&keep, 100..120, 60_000), 20);
    assert!(octets_apart(&disk)[1] > 1 << 20);
}

/// How often something was read is known behind a restart: with LFUA it stays though nobody reads it any more.  Another policy
/// knows the same articles.
#[test]
fn what_policies_know_outlives_a_restart_and_an_exchange() {
    let disk = MemoryDisk::new();
    let keep = open_with(&disk, PolicyKind::Lrua);
    let some: Vec<Fetched> = (1..=20).map(|n| article(&keep, n, 3000)).collect();
    keep.keep(&some, NOW);
    for _ in 0..3 {
        assert!((1..=5).all(|n| is_there(&keep, n, 3000)));
    }
    keep.checkpoint();
    drop(keep);
    let keep = open_with(&disk, PolicyKind::Lfua);
    flood(&disk, &keep, 100..500, &[]);
    let there: Vec<u64> = (1..=20).filter(|n| is_there(&keep, *n, 3000)).collect();
    assert_eq!(there, [1, 2, 3, 4, 5]);
    keep.set_policy(PolicyKind::Lrua);
    assert_eq!(keep.figures().policy, PolicyKind::Lrua);
    flood(&disk, &keep, 500..900, &[2]);
    let there: Vec<u64> = (1..=20).filter(|n| is_there(&keep, *n, 3000)).collect();
    assert_eq!(there, [2]);
}

/// A policy that wants everything has no more than half of a segment written again.
#[test]
fn no_more_is_written_again_than_comes() {
    let disk = MemoryDisk::new();
    let keep = open_with(&disk, PolicyKind::Lfua);
    for n in 1..=1500 {
        let some = article(&keep, n, 20_000);
        keep.keep(std::slice::from_ref(&some), NOW);
        // All of them are wanted alike, and the first ones most.
        let _ = keep.article(&some.hash, NOW);
        let octets = octets_in(&disk, "/cache/articles");
        assert!(octets <= settings().octets, "{octets} octets");
    }
    let Written { came, again } = keep.figures().written;
    assert!(again <= came, "{again} of {came}");
    assert!(again > came / 4, "{again} of {came}");
    assert!(keep.figures().wanted_octets <= settings().octets / 2);
}

/// What is pinned outlives its segment though nobody reads it, after a restart too, and never more than may stay so.
#[test]
fn what_is_pinned_stays_whatever_the_policy_wants() {
    let disk = MemoryDisk::new();
    let keep = open_with(&disk, PolicyKind::Lrua);
    let in_group = |keep: &Keep, n: u64, octets: usize| {
        let mut fetched = article(keep, n, octets);
        let wire = [b"Newsgroups: other.group,my.group\r\n", &*fetched.kept.wire].concat();
        fetched.kept = Arc::new(Kept::new(wire.into()).unwrap());
        fetched
    };
    let pinned: Vec<Fetched> = (1..=20).map(|n| in_group(&keep, n, 20_000)).collect();
    keep.keep(&pinned, NOW);
    keep.keep(&[article(&keep, 50, 3000)], NOW);
    let of = |text: &str| [Wildmat::parse(text).unwrap()];
    assert_eq!(keep.pin(&of("my.*"), &of("none.*")).unwrap(), 1);
    assert_eq!(keep.pin(&of("my.*"), &[]).unwrap(), 0);
    let is_there = |keep: &Keep, fetched: &Fetched| keep.has_article(&fetched.hash);
    flood(&disk, &keep, 100..400, &[]);
    drop(keep);
    let keep = open_with(&disk, PolicyKind::Lrua);
    flood(&disk, &keep, 400..700, &[]);
    assert!(pinned.iter().all(|it| is_there(&keep, it)));
    assert!(!is_there(&keep, &article(&keep, 50, 3000)));
    let figures = keep.figures();
    let all: u64 = pinned.iter().map(|it| it.kept.wire.len() as u64).sum();
    assert_eq!(
        (figures.pins, figures.pinned_octets),
        (vec!["my.*".to_owned()], all)
    );
    // Of more than may stay the rest goes as the policy says.
    let more: Vec<Fetched> = (1000..1100).map(|n| in_group(&keep, n, 20_000)).collect();
    for one in &more {
        keep.keep(std::slice::from_ref(one), NOW);
    }
    flood(&disk, &keep, 2000..2600, &[]);
    let there = more.iter().filter(|it| is_there(&keep, it)).count();
    let figures = keep.figures();
    assert!(figures.pinned_octets <= figures.pinned_octets_max);
    assert!((25..=52).contains(&there), "{there}");
    assert_eq!(keep.pin(&[], &of("my.*")).unwrap(), 1);
    flood(&disk, &keep, 3000..3300, &[]);
    assert!(!more.iter().any(|it| is_there(&keep, it)));
    assert_eq!(keep.figures().pinned_octets, 0);
    let many: Vec<Wildmat> = (0..=PINS_MAX).flat_map(|n| of(&format!("a.{n}"))).collect();
    assert!(
        keep.pin(&many, &[])
            .unwrap_err()
            .to_string()
            .contains("take one out")
    );
    assert_eq!(keep.figures().pins, [""; 0]);
}

#[test]
fn cancelled_expired_and_renumbered_articles_go() {
    let disk = MemoryDisk::new();
    let mut keep = open(&disk);
    let name: Arc<str> = "misc.test".into();
    let all: Vec<Fetched> = (1..=300).map(|n| article(&keep, n, 100)).collect();
    keep.keep(&all, NOW);
    tell(&keep, &name, 1, 300, 10);
    assert_eq!(known(&keep, &name), [], "nobody told of the group");
    keep.put_group(&name, group(1, 300, 0));
    tell(&keep, &name, 1, 300, 10);
    // 5 is cancelled, and 6 was never there for us.
    let listed: Vec<_> = (1..=300).filter(|n| *n != 5).map(ArticleNumber).collect();
    let all = (ArticleNumber(1), ArticleNumber(300));
    let of_old = (&name, generation(&keep, &name));
    keep.compare(of_old, all, &listed, NOW);
    assert!(!is_there(&keep, 5, 100) && is_there(&keep, 4, 100));
    assert_eq!(known(&keep, &name).len(), 299);
    // The low mark moves: what is below it goes, the articles, too.
    keep.put_group(&name, group(200, 300, 1));
    let octets = keep.figures().overview_octets;
    for reopened in [false, true] {
        assert_eq!(
            known(&keep, &name),
            (200..=300).collect::<Vec<_>>(),
            "{reopened}"
        );
        assert!(!is_there(&keep, 127, 100) && !is_there(&keep, 199, 100));
        assert!(is_there(&keep, 200, 100));
        keep.checkpoint();
        drop(std::mem::replace(&mut keep, open(&MemoryDisk::new())));
        keep = open(&disk);
        assert_eq!(keep.figures().overview_octets, octets);
    }
    // The high mark falls, or the group goes: it is another one, of which the server had not been asked, whatever it has then.
    let of_old = (&name, generation(&keep, &name));
    for goes in [false, true] {
        match goes {
            true => keep.remove_group(&name),
            false => drop(keep.put_group(&name, group(1, 290, 2))),
        }
        keep.put_group(&name, group(1, 320, 3));
        assert_eq!(known(&keep, &name), []);
        let old = (ArticleNumber(200), ArticleNumber(200));
        let lines = [(old.0, &*line(200, 10))];
        keep.tell(of_old, &[old], lines.into_iter(), NOW);
        keep.compare(of_old, old, &[], NOW);
        assert_eq!(known(&keep, &name), []);
        assert_eq!(keep.block(&name, 1).asked(), 0);
        assert!(!is_there(&keep, 299, 100));
        tell(&keep, &name, 1, 10, 10);
        assert_eq!(known(&keep, &name).len(), 10);
    }
    keep.remove_group(&name);
    assert_eq!((keep.group(&name), known(&keep, &name)), (None, vec![]));
    drop(keep);
    let keep = open(&disk);
    assert_eq!((keep.group(&name), known(&keep, &name)), (None, vec![]));
}

#[test]
fn overview_of_groups_told_of_long_ago_goes_first() {
    let disk = MemoryDisk::new();
    let keep = open(&disk);
    let names: Vec<Arc<str>> = ["a.one", "a.two", "a.three"].map(Arc::from).to_vec();
    for (name, told) in names.iter().zip([5, 1, 9]) {
        keep.put_group(name, group(1, 500, told));
        tell(&keep, name, 1, 100, 300);
        // That somebody posted there is no reason to let it go first.
        keep.outdate_group("a.one");
    }
    let left = |keep: &Keep| {
        names
            .iter()
            .map(|name| known(keep, name).len())
            .collect::<Vec<_>>()
    };
    assert_eq!(left(&keep), [100, 0, 100]);
    drop(keep);
    let keep = open(&disk);
    assert_eq!(left(&keep), [100, 0, 100]);
    // One that is too much alone keeps what was told last.
    tell(&keep, &names[0], 129, 400, 300);
    tell(&keep, &names[0], 401, 500, 300);
    assert!(keep.figures().overview_octets <= 100_000);
    assert_eq!(left(&keep)[1..], [0, 0]);
    assert!(known(&keep, &names[0]).contains(&500));
}

/// A group is listed with its articles, which are known again behind a restart, and what is let go is not there any more.
#[test]
fn what_is_listed_is_what_is_kept_and_what_is_dropped_is_not() {
    let disk = MemoryDisk::new();
    let keep = open(&disk);
    let name: Arc<str> = "misc.test".into();
    let of = |number: u64, groups: &str| {
        let mut fetched = article(&keep, number, 100);
        let head = format!("Newsgroups: {groups}\r\n").into_bytes();
        let wire = [head, fetched.kept.wire.to_vec()].concat();
        fetched.kept = Arc::new(Kept::new(wire.into()).unwrap());
        fetched
    };
    let crossposted = "misc.test,alt.test";
    let mine = [
        of(1, "misc.test"),
        of(2, crossposted),
        of(3, "alt.test"),
        of(4, "rec.test"),
    ];
    keep.keep(&mine, NOW);
    for name in ["misc.test", "alt.test"] {
        keep.put_group(&name.into(), group(1, 20, 5));
    }
    tell(&keep, &name, 1, 2, 10);
    let later = UnixTime(NOW.0 + 60);
    assert!(keep.article(&mine[0].hash, later).is_some());
    keep.checkpoint();
    drop(keep);
    let keep = open(&disk);
    let octets = |number: usize| mine[number - 1].kept.wire.len() as u64;
    let listed = |pattern: &str| {
        let matches = |name: &str| name.starts_with(pattern);
        let rows = keep.listed_groups(&matches, pattern.is_empty()).unwrap();
        let row = |row: &ListedGroup| {
            let name = row.name.as_deref().unwrap_or("-").to_owned();
            (
                name,
                row.articles,
                row.octets,
                row.used_at.0.saturating_sub(NOW.0),
            )
        };
        rows.iter().map(row).collect::<Vec<_>>()
    };
    let misc = ("misc.test".to_owned(), 2, octets(1) + octets(2), 60);
    let alt = ("alt.test".to_owned(), 1, octets(3), 0);
    // Nobody has asked for it.
    let rec = ("rec.test".to_owned(), 1, octets(4), 0);
    assert_eq!(listed(""), [alt.clone(), misc.clone(), rec.clone()]);
    assert_eq!(listed("rec"), std::slice::from_ref(&rec));
    assert_eq!(listed("misc"), std::slice::from_ref(&misc));
    let is_misc = |name: &str| name == "misc.test";
    let (articles, count) = keep.listed_articles(&is_misc, 1).unwrap();
    assert_eq!((articles.len(), count), (1, 2));
    let first = &articles[0];
    assert_eq!(
        (&*first.id, first.uses, first.used_at),
        ("<1@t.example>", 2, later)
    );
    // Of more than are there the order is the same; of none they are counted still.
    let (both, _) = keep.listed_articles(&is_misc, 9).unwrap();
    assert_eq!(both[..1], articles);
    assert_eq!(both[1].id, id(2));
    assert_eq!(keep.listed_articles(&is_misc, 0).unwrap(), (vec![], 2));
    // Only said, and then done; what is named twice goes once.
    let second = id(2);
    let both = [MessageId::parse(second.as_bytes()).unwrap()];
    for dry_run in [true, false] {
        let dropped = keep.drop_kept(&is_misc, &both, dry_run).unwrap();
        assert_eq!(
            (dropped.groups, dropped.articles, dropped.octets),
            (1, 2, misc.2)
        );
        assert!(dropped.overview_octets > 0);
        assert_eq!(listed("misc").is_empty(), !dry_run);
        assert_eq!(keep.has_article(&mine[1].hash), dry_run);
    }
    let ids = [3, 3, 9].map(id);
    let ids: Vec<_> = ids
        .iter()
        .map(|id| MessageId::parse(id.as_bytes()).unwrap())
        .collect();
    for dry_run in [true, false] {
        let dropped = keep.drop_kept(&|_| false, &ids, dry_run).unwrap();
        assert_eq!((dropped.articles, dropped.octets), (1, octets(3)));
        assert_eq!(keep.article(&mine[2].hash, NOW).is_some(), dry_run);
    }
    assert_eq!(listed(""), [("alt.test".to_owned(), 0, 0, 0), rec]);
}

#[test]
fn a_rotten_file_costs_what_was_in_it() {
    let disk = MemoryDisk::new();
    let keep = open(&disk);
    keep.keep(&[article(&keep, 1, 9000), article(&keep, 2, 900)], NOW);
    keep.checkpoint();
    let dyn_disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let told = Keep::open(&dyn_disk, &settings()).unwrap_err().to_string();
    assert!(told.contains("lock"), "{told}");
    drop(keep);
    // In the middle of the first article, behind the headers and the record's.
    let segment = Path::new("/cache/articles/00000001.seg");
    disk.flip_bit(segment, 16 << 10, 3).unwrap();
    let keep = open(&disk);
    assert!(!is_there(&keep, 1, 9000) && is_there(&keep, 2, 900));
    assert!(!keep.has_article(&article(&keep, 1, 9000).hash));
    keep.keep(&[article(&keep, 1, 9000)], NOW);
    keep.in_memory.clear();
    assert!(is_there(&keep, 1, 9000));
    drop(keep);
    disk.corrupt(Path::new("/cache/table.redb"), 0, &[7; 4096])
        .unwrap();
    let keep = open(&disk);
    assert!(!is_there(&keep, 1, 9000) && !is_there(&keep, 2, 900));
    keep.keep(&[article(&keep, 3, 900)], NOW);
    keep.in_memory.clear();
    assert!(is_there(&keep, 3, 900));
}

/// It begins anew, and the log had not said by which key, nor what would have kept it.
#[test]
fn a_cache_that_is_too_small_for_its_segments_says_so_by_the_key() {
    let memory = MemoryDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let large = KeepSettings {
        octets: 8 * KeepSettings::OCTETS_MIN,
        ..settings()
    };
    drop(Keep::open(&disk, &large).unwrap());
    let why = |settings: &KeepSettings| {
        let lock = disk.lock(Path::new("/cache/lock")).unwrap();
        let keep = Keep::closed(&disk, settings, lock).unwrap();
        keep.parts().err().map(|error| error.to_string())
    };
    let told = why(&settings()).unwrap();
    assert!(
        told.contains("cache.octets = 8388608") && told.contains("with 33554432 or more"),
        "{told}"
    );
    let enough = KeepSettings {
        octets: 33_554_432,
        ..settings()
    };
    assert_eq!(why(&enough), None);
}
