//! Segments that go, and what stays of them: also where the disk is full or fails, or the power does.

use newsreel_host::{Effect, Fault, FaultyDisk, Op};

use super::*;

/// Articles of a group that is pinned.
fn pinned(keep: &Keep, numbers: std::ops::RangeInclusive<u64>, octets: usize) -> Vec<Fetched> {
    let pins = [Wildmat::parse("my.*").unwrap()];
    keep.pin(&pins, &[]).unwrap();
    let in_group = |n| {
        let mut fetched = article(keep, n, octets);
        let wire = [b"Newsgroups: my.group\r\n", &*fetched.kept.wire].concat();
        fetched.kept = Arc::new(Kept::new(wire.into()).unwrap());
        fetched
    };
    let pinned: Vec<Fetched> = numbers.map(in_group).collect();
    keep.keep(&pinned, NOW);
    pinned
}

/// How many of these can be read.
fn readable(keep: &Keep, articles: &[Fetched]) -> usize {
    let read = articles.iter().filter(|it| keep.read(&it.hash).is_some());
    read.count()
}

fn some(keep: &Keep, numbers: std::ops::Range<u64>) -> Vec<Fetched> {
    numbers.map(|n| article(keep, n, 60_000)).collect()
}

fn come(keep: &Keep, numbers: std::ops::Range<u64>) {
    for one in some(keep, numbers) {
        keep.keep(&[one], NOW);
    }
}

fn open_on(disk: &Arc<dyn Disk>, octets: u64) -> Keep {
    let settings = KeepSettings {
        octets,
        memory_octets: 0,
        ..settings()
    };
    Keep::open(disk, &settings).unwrap()
}

fn segments(disk: &dyn Disk) -> usize {
    let entries = disk.list(Path::new("/cache/articles")).unwrap();
    let named = entries.iter().filter(|it| it.name.ends_with(".seg"));
    named.count()
}

/// One after the other went, with all that was wanted and pinned: what could not be placed again went with its segment.
#[test]
fn nothing_goes_for_a_segment_that_cannot_be_made() {
    for effect in [Effect::Medium, Effect::Denied] {
        let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
        let disk: Arc<dyn Disk> = faulty.clone();
        let keep = open_on(&disk, KeepSettings::OCTETS_MIN);
        let mine = pinned(&keep, 1..=20, 20_000);
        come(&keep, 100..400);
        let others = some(&keep, 100..400);
        let before = readable(&keep, &others);
        // What is there can be written, but none can be made.
        faulty.add(Fault::new(Op::Reserve, "/articles/", effect).forever());
        come(&keep, 400..500);
        keep.checkpoint();
        assert_eq!(readable(&keep, &mine), 20);
        let there = readable(&keep, &others);
        // As one was made last, the room may have been less than there is now.
        assert!(there + 20 >= before, "{there} of {before}");
        faulty.clear();
        come(&keep, 500..800);
        assert_eq!(readable(&keep, &mine), 20);
        assert_eq!(readable(&keep, &some(&keep, 780..800)), 20);
    }
}

/// What is to stay needs room that is there only when the segment has gone.
#[test]
fn what_stays_is_placed_where_its_segment_was_on_a_full_disk() {
    let memory = MemoryDisk::new();
    let faulty = Arc::new(FaultyDisk::new(Arc::new(memory.clone())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let keep = open_on(&disk, KeepSettings::OCTETS_MIN);
    let mine = pinned(&keep, 1..=20, 20_000);
    come(&keep, 100..200);
    let had = segments(&*disk);
    for first in (200..1000).step_by(20) {
        // For what comes, and for what is to stay before anything has gone.
        faulty.clear();
        faulty.add(Fault::new(Op::Reserve, "/articles/", Effect::Full).times(2));
        come(&keep, first..first + 20);
        assert_eq!(readable(&keep, &mine), 20, "{first}");
        let crashed = open_on(
            &(Arc::new(memory.crash(first)) as _),
            KeepSettings::OCTETS_MIN,
        );
        assert_eq!(readable(&crashed, &mine), 20, "{first}");
        let there = segments(&*disk);
        assert!(there + 1 >= had, "{there} of {had}");
    }
    assert!(readable(&keep, &some(&keep, 960..1000)) >= 35);
}

/// The next one went, too, and so on, for a disk that is full whatever goes.
#[test]
fn for_a_full_disk_one_segment_goes_at_once() {
    let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let keep = open_on(&disk, 2 * KeepSettings::OCTETS_MIN);
    let mine = pinned(&keep, 1..=20, 20_000);
    come(&keep, 100..150);
    let had = segments(&*disk);
    faulty.add(Fault::new(Op::Reserve, "/articles/", Effect::Full).forever());
    let mut there = had;
    for one in some(&keep, 150..200) {
        keep.keep(&[one], NOW);
        let left = segments(&*disk);
        assert!(left + 1 >= there, "{left} of {there}");
        there = left;
    }
    assert!(readable(&keep, &mine) < 20 && there < had);
}

/// What lay in a segment that went was looked for there by the table as it was before, and what was pinned was lost.
#[test]
fn a_segment_goes_behind_the_change_that_tells_of_it() {
    let memory = MemoryDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let keep = open_on(&disk, KeepSettings::OCTETS_MIN);
    let mine = pinned(&keep, 1..=20, 20_000);
    come(&keep, 100..120);
    keep.checkpoint();
    let mut n = 120;
    while memory
        .exists(Path::new("/cache/articles/00000001.seg"))
        .unwrap()
    {
        come(&keep, n..n + 1);
        n += 1;
    }
    for seed in 0..8 {
        let disk: Arc<dyn Disk> = Arc::new(memory.crash(seed));
        let again = open_on(&disk, KeepSettings::OCTETS_MIN);
        assert_eq!(readable(&again, &mine), 20, "{seed}");
        let all = some(&again, 100..n);
        let kept = all.iter().filter(|it| again.has_article(&it.hash)).count();
        assert_eq!(readable(&again, &all), kept, "{seed}");
        assert!(kept > 50, "{kept}");
        come(&again, 1000..1300);
        assert_eq!(readable(&again, &mine), 20, "{seed}");
    }
}

/// What was lost counted as kept, so that it was never fetched ahead of who reads it, and shown by who shows what is kept.
#[test]
fn what_cannot_be_read_is_not_kept() {
    let memory = MemoryDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let keep = open_on(&disk, KeepSettings::OCTETS_MIN);
    let name: Arc<str> = "misc.test".into();
    keep.put_group(&name, group(1, 20, 5));
    tell(&keep, &name, 1, 20, 10);
    let mine: Vec<Fetched> = (1..=20).map(|n| article(&keep, n, 9000)).collect();
    keep.keep(&mine, NOW);
    keep.checkpoint();
    let segment = Path::new("/cache/articles/00000001.seg");
    memory.flip_bit(segment, 16 << 10, 3).unwrap();
    let all = (ArticleNumber(1), ArticleNumber(20));
    assert_eq!(readable(&keep, &mine), 19);
    assert_eq!(keep.numbers_kept(&name, all).len(), 19);
    keep.keep(&mine, NOW);
    assert_eq!(readable(&keep, &mine), 20);
    assert_eq!(keep.numbers_kept(&name, all).len(), 20);
    drop(keep);
    memory.remove(segment).unwrap();
    let keep = open_on(&disk, KeepSettings::OCTETS_MIN);
    assert_eq!(readable(&keep, &mine), 0);
    assert!(!mine.iter().any(|it| keep.has_article(&it.hash)));
}

/// Behind a restart the first uses passed for earlier than the coming of what nobody had asked for.
#[test]
fn what_is_asked_for_behind_a_restart_was_asked_for_last() {
    let memory = MemoryDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let keep = open_on(&disk, KeepSettings::OCTETS_MIN);
    let mine: Vec<Fetched> = (1..=50).map(|n| article(&keep, n, 900)).collect();
    keep.keep(&mine, NOW);
    keep.checkpoint();
    drop(keep);
    // At once, before anything is written down.
    let keep = open_on(&disk, KeepSettings::OCTETS_MIN);
    let used = |n: usize| keep.table.article(&mine[n].hash).unwrap().unwrap().used;
    let last = used(49);
    assert!(keep.article(&mine[0].hash, NOW).is_some());
    keep.checkpoint();
    assert!(used(0) > last, "{} and {last}", used(0));
}

/// The figures told of what never reached the disk, and the policy had room for it.
#[test]
fn what_could_not_be_written_has_not_come() {
    let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let keep = open_on(&disk, KeepSettings::OCTETS_MIN);
    keep.checkpoint();
    faulty.add(Fault::new(Op::Sync, ".seg", Effect::Medium));
    keep.keep(&[article(&keep, 1, 900)], NOW);
    assert!(!keep.has_article(&article(&keep, 1, 900).hash));
    let figures = keep.figures();
    assert_eq!((figures.written.came, figures.wanted_octets), (0, 0));
}

/// No more than half a segment of it was placed again, so the rest went, with room for ten times as much.
#[test]
fn what_is_pinned_stays_where_the_newest_segment_is_nearly_full() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let keep = open_on(&disk, KeepSettings::OCTETS_MIN);
    let mine = pinned(&keep, 1..=16, 62_000);
    for n in 100..130 {
        keep.keep(&[article(&keep, n, 900_000)], NOW);
        assert_eq!(readable(&keep, &mine), 16, "{n}");
        assert!(segments(&*disk) as u64 <= KeepSettings::OCTETS_MIN >> 20);
    }
    assert!(keep.has_article(&article(&keep, 129, 900_000).hash));
}

/// A cache that may keep more than its disk has room for.
const SMALL_DISK_OCTETS: u64 = 12 << 20;

/// Segments took the last of it, and the table could not be written any more: nothing was kept until somebody made room.
#[test]
fn on_a_small_disk_there_is_room_for_the_table() {
    let memory = MemoryDisk::with_capacity(SMALL_DISK_OCTETS);
    let disk: Arc<dyn Disk> = Arc::new(memory);
    let keep = open_on(&disk, 4 * KeepSettings::OCTETS_MIN);
    let mine = pinned(&keep, 1..=20, 20_000);
    let name: Arc<str> = "misc.test".into();
    for n in 0..600 {
        come(&keep, 100 + n..101 + n);
        let high = 10 + n * 10;
        keep.put_group(&name, group(1, high, n));
        tell(&keep, &name, high - 9, high, 100);
        keep.checkpoint();
        assert!(!keep.figures().is_broken, "{n}");
        assert_eq!(readable(&keep, &mine), 20, "{n}");
    }
    assert_eq!(readable(&keep, &some(&keep, 680..700)), 20);
}

/// It was in memory only between the going of its segment and its being placed again, and a kill then lost it.
#[test]
fn on_a_small_disk_what_is_pinned_outlives_a_crash_at_any_moment() {
    let octets = 2 * KeepSettings::OCTETS_MIN;
    let memory = MemoryDisk::with_capacity(SMALL_DISK_OCTETS);
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let keep = open_on(&disk, octets);
    let mine = pinned(&keep, 1..=20, 20_000);
    let (mut n, mut turns) = (100, 0);
    while turns < 3 {
        keep.checkpoint();
        let (before, again) = (memory.crash(0), keep.figures().written.again);
        come(&keep, n..n + 1);
        if keep.figures().written.again > again {
            turns += 1;
            crashed_at_each_change(&before, octets, n, &mine);
        }
        n += 1;
        assert!(n < 1000, "nothing that is pinned is placed again");
    }
}

/// Two articles come, and the power goes at each change of the disk that their coming makes: these are there all the same.
fn crashed_at_each_change(before: &MemoryDisk, octets: u64, n: u64, mine: &[Fetched]) {
    for change in 1.. {
        let memory = before.crash(0);
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let keep = open_on(&(Arc::new(faulty.clone()) as _), octets);
        faulty.stop_at_change(faulty.counts().changes() + change);
        come(&keep, n..n + 2);
        if !faulty.stopped() {
            assert!(change > 10, "{change}");
            return;
        }
        let again = open_on(&(Arc::new(memory.crash(change)) as _), octets);
        assert_eq!(readable(&again, mine), mine.len(), "{n}, {change}");
    }
}

/// What was said to have gone was there again.
#[test]
fn what_is_let_go_stays_away_behind_a_crash() {
    let memory = MemoryDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let keep = open_on(&disk, KeepSettings::OCTETS_MIN);
    let name: Arc<str> = "my.group".into();
    let mine = pinned(&keep, 1..=9, 900);
    keep.put_group(&name, group(1, 9, 5));
    tell(&keep, &name, 1, 9, 10);
    keep.checkpoint();
    let first = id(1);
    let first = [MessageId::parse(first.as_bytes()).unwrap()];
    let there_again = || {
        let again = open_on(&(Arc::new(memory.crash_losing_all()) as _), 8 << 20);
        let has_group = again.group(&name).is_some();
        (
            has_group,
            known(&again, &name).len(),
            readable(&again, &mine),
        )
    };
    assert_eq!(there_again(), (true, 9, 9));
    assert_eq!(
        keep.drop_kept(&|_| false, &first, false).unwrap().articles,
        1
    );
    assert_eq!(there_again(), (true, 9, 8));
    assert_eq!(keep.drop_kept(&|_| true, &[], false).unwrap().articles, 8);
    assert_eq!(there_again(), (false, 0, 0));
}

/// Its old lines were told under new numbers, once it had grown past them.
#[test]
fn that_a_group_is_another_one_is_known_behind_a_crash() {
    for is_gone in [false, true] {
        let memory = MemoryDisk::new();
        let disk: Arc<dyn Disk> = Arc::new(memory.clone());
        let keep = open_on(&disk, KeepSettings::OCTETS_MIN);
        let name: Arc<str> = "misc.test".into();
        keep.put_group(&name, group(1, 20, 5));
        tell(&keep, &name, 1, 20, 10);
        let old: Vec<Fetched> = (1..=20).map(|n| article(&keep, n, 900)).collect();
        keep.keep(&old, NOW);
        keep.checkpoint();
        match is_gone {
            true => keep.remove_group(&name),
            false => drop(keep.put_group(&name, group(1, 3, 6))),
        }
        let again = open_on(&(Arc::new(memory.crash_losing_all()) as _), 8 << 20);
        again.put_group(&name, group(1, 30, 7));
        assert_eq!(known(&again, &name), [], "{is_gone}");
        assert_eq!(readable(&again, &old), 0, "{is_gone}");
    }
}

/// Lists passed over what was read by its message-id alone, and nothing of it could be let go by its group, nor by `*`.
#[test]
fn what_was_read_by_its_message_id_belongs_to_the_group_that_it_names() {
    let keep = open(&MemoryDisk::new());
    let of = |number: u64, groups: &str| in_groups(&keep, number, groups);
    let mine = [
        of(1, "Newsgroups: alt.test\r\n"),
        of(2, "Newsgroups: alt.test,misc.test\r\n"),
        of(3, "Newsgroups: rec.test\r\n"),
        of(4, ""),
    ];
    keep.keep(&mine, NOW);
    let is_alt = |name: &str| name.starts_with("alt.");
    let names = |matches: &dyn Fn(&str) -> bool| {
        let (articles, count) = keep.listed_articles(matches, 9).unwrap();
        let groups = articles.into_iter().map(|it| it.group);
        let mut groups: Vec<_> = groups.map(Option::unwrap_or_default).collect();
        groups.sort_unstable();
        (groups.join(" "), count)
    };
    assert_eq!(names(&is_alt), ("alt.test alt.test".to_owned(), 2));
    let all = " alt.test alt.test rec.test".to_owned();
    assert_eq!(names(&|_| true), (all, 4));
    for dry_run in [true, false] {
        let dropped = keep.drop_kept(&is_alt, &[], dry_run).unwrap();
        assert_eq!((dropped.groups, dropped.articles), (1, 2));
    }
    assert_eq!(readable(&keep, &mine), 2);
    for dry_run in [true, false] {
        let dropped = keep.drop_kept(&|_| true, &[], dry_run).unwrap();
        assert_eq!((dropped.groups, dropped.articles), (1, 2));
    }
    assert_eq!(readable(&keep, &mine), 0);
}

/// They went, uncounted, with whatever group somebody let go in which they were shown, also those of a group that was pinned.
#[test]
fn articles_of_other_groups_stay_where_one_goes_that_shows_them() {
    let keep = open(&MemoryDisk::new());
    let of = |number: u64, groups: &str| in_groups(&keep, number, groups);
    let mine = [
        of(1, "Newsgroups: misc.test\r\n"),
        of(2, "Newsgroups: alt.test,misc.test\r\n"),
    ];
    keep.keep(&mine, NOW);
    let names: [Arc<str>; 2] = ["misc.test".into(), "alt.test".into()];
    for name in &names {
        keep.put_group(name, group(1, 9, 5));
        tell(&keep, name, 1, 2, 10);
    }
    for dry_run in [true, false] {
        let dropped = keep.drop_kept(&|name| name == "misc.test", &[], dry_run);
        assert_eq!(dropped.unwrap().articles, 1, "{dry_run}");
    }
    assert_eq!(known(&keep, &names[0]), []);
    assert_eq!(known(&keep, &names[1]).len(), 2);
    keep.in_memory.clear();
    assert!(!keep.has_article(&mine[0].hash));
    assert!(keep.article(&mine[1].hash, NOW).is_some());
}

/// An article with this in front of its header block.
fn in_groups(keep: &Keep, number: u64, groups: &str) -> Fetched {
    let mut fetched = article(keep, number, 100);
    let wire = [groups.as_bytes(), &fetched.kept.wire].concat();
    fetched.kept = Arc::new(Kept::new(wire.into()).unwrap());
    fetched
}
