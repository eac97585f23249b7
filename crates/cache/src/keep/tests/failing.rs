//! A disk that fails or is full, at the start and later: nothing is lost by it.

use newsreel_host::{Effect, Fault, FaultyDisk, Op};

use super::*;

/// Nothing was cached any more until a restart, and that threw away all that was.
#[test]
fn a_disk_that_was_full_for_a_moment_is_gone_on_with() {
    let memory = MemoryDisk::new();
    let faulty = Arc::new(FaultyDisk::new(Arc::new(memory.clone())));
    let disk: Arc<dyn Disk> = faulty.clone();
    for (round, path) in ["table.redb", ".seg", ""].into_iter().enumerate() {
        let keep = Keep::open(&disk, &settings()).unwrap();
        let name: Arc<str> = "misc.test".into();
        let first = round as u64 * 1000;
        let numbers = |from: u64| (first + from)..=(first + from + 40);
        let come = |from: u64, after: u64| {
            let all: Vec<Fetched> = numbers(from).map(|n| article(&keep, n, 20_000)).collect();
            keep.keep(&all, UnixTime(NOW.0 + after));
        };
        let there = |from: u64| {
            keep.in_memory.clear();
            numbers(from)
                .filter(|n| is_there(&keep, *n, 20_000))
                .count()
        };
        keep.put_group(&name, group(1, 500, 5));
        tell(&keep, &name, 1, 100, 100);
        come(1, 0);
        keep.checkpoint();
        faulty.add(Fault::new(Op::Write, path, Effect::Full).forever());
        faulty.add(Fault::new(Op::SetLen, path, Effect::Full).forever());
        come(101, 0);
        tell(&keep, &name, 200, 300, 300);
        keep.put_group(&name, group(1, 600, 65));
        for _ in 0..3 * CHECKPOINTS_IN_VAIN {
            keep.checkpoint();
        }
        assert_eq!(keep.figures().is_broken, path != ".seg", "{path}");
        faulty.clear();
        for _ in 0..CHECKPOINTS_IN_VAIN {
            keep.checkpoint();
        }
        assert!(!keep.figures().is_broken, "{path}");
        assert_eq!(keep.group(&name).unwrap().high.0, 600, "{path}");
        assert_eq!(there(1), 41, "{path}");
        assert_eq!(known(&keep, &name)[..100], (1..=100).collect::<Vec<_>>());
        // What failed of the articles' files is tried again after a while.
        come(151, 0);
        come(201, 3600);
        tell(&keep, &name, 400, 500, 100);
        keep.checkpoint();
        assert_eq!(there(201), 41, "{path}");
        drop(keep);
        let keep = Keep::open(&disk, &settings()).unwrap();
        assert!(numbers(1).all(|n| is_there(&keep, n, 20_000)), "{path}");
        assert!(known(&keep, &name).contains(&500));
    }
}

/// What went or began anew meanwhile came back as it had been, with its old marks and lines.
#[test]
fn what_was_told_of_groups_meanwhile_stays_told() {
    let memory = MemoryDisk::new();
    let faulty = Arc::new(FaultyDisk::new(Arc::new(memory.clone())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let names = ["same", "gone", "again", "other", "grown"];
    let [same, gone, again, other, grown] = names.map(Arc::<str>::from);
    // What happens is told before the failure, and not durable, or after it.
    for is_before in [true, false] {
        let keep = Keep::open(&disk, &settings()).unwrap();
        for name in [&same, &gone, &again, &other, &grown] {
            keep.put_group(name, group(1, 500, 5));
            tell(&keep, name, 1, 100, 10);
        }
        keep.checkpoint();
        let fail = || {
            for op in [Op::Write, Op::SetLen] {
                faulty.add(Fault::new(op, "table.redb", Effect::Full).forever());
            }
            keep.checkpoint();
            tell(&keep, &same, 201, 300, 300);
            keep.checkpoint();
            assert!(keep.figures().is_broken);
        };
        if !is_before {
            fail();
        }
        keep.remove_group(&gone);
        keep.remove_group(&again);
        keep.put_group(&again, group(1, 700, 10));
        keep.put_group(&other, group(1, 20, 10));
        keep.put_group(&other, group(1, 600, 15));
        keep.put_group(&grown, group(40, 900, 10));
        if is_before {
            fail();
        }
        assert!(!minute(&keep));
        faulty.clear();
        assert!(minute(&keep));
        keep.checkpoint();
        for keep in [keep, open(&memory.crash(1))] {
            let facts = |name: &Arc<str>| {
                let group = keep.group(name)?;
                Some((group.low.0, group.high.0, group.told.0 - NOW.0))
            };
            assert_eq!(facts(&same), Some((1, 500, 5)));
            assert_eq!(known(&keep, &same)[..100], (1..=100).collect::<Vec<_>>());
            assert_eq!(facts(&gone), None);
            assert_eq!(facts(&again), Some((1, 700, 10)));
            assert_eq!(facts(&other), Some((1, 600, 15)));
            assert_eq!(facts(&grown), Some((40, 900, 10)));
            for name in [&gone, &again, &other] {
                assert_eq!(known(&keep, name), [], "{name}");
            }
            assert_eq!(known(&keep, &grown), (40..=100).collect::<Vec<_>>());
            let octets = [&same, &again, &other, &grown].map(|name| keep.group(name));
            let octets = octets.iter().flatten().map(|group| group.overview_octets);
            assert_eq!(keep.figures().overview_octets, octets.sum::<u64>());
        }
    }
}

/// Checkpoints until it was tried once more to use the disk.
fn minute(keep: &Keep) -> bool {
    for _ in 0..CHECKPOINTS_IN_VAIN {
        keep.checkpoint();
    }
    !keep.figures().is_broken
}

fn routes(name: &str) -> Routes {
    Routes::decode(format!("0 {name} *\n").as_bytes()).unwrap()
}

/// What was kept was thrown away, or the process ended.
#[test]
fn a_start_on_a_disk_that_fails_removes_nothing_and_goes_on_later() {
    let memory = MemoryDisk::new();
    let faulty = Arc::new(FaultyDisk::new(Arc::new(memory.clone())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let name: Arc<str> = "misc.test".into();
    let keep = Keep::open(&disk, &settings()).unwrap();
    keep.take_routes(&routes("one"), &[]).unwrap();
    keep.pin(&[Wildmat::parse("my.*").unwrap()], &[]).unwrap();
    keep.put_group(&name, group(1, 500, 5));
    tell(&keep, &name, 1, 100, 100);
    let all: Vec<Fetched> = (1..=40).map(|n| article(&keep, n, 20_000)).collect();
    keep.keep(&all, NOW);
    keep.checkpoint();
    drop(keep);
    for (op, path, effect) in [
        (Op::Open, "table.redb", Effect::Medium),
        (Op::Read, "table.redb", Effect::Medium),
        (Op::Write, "table.redb", Effect::Full),
        (Op::Sync, "table.redb", Effect::Medium),
        (Op::Open, "register", Effect::Medium),
        (Op::Write, "", Effect::Full),
    ] {
        let told = format!("{op} {path}");
        faulty.add(Fault::new(op, path, effect).forever());
        faulty.add(Fault::new(Op::SetLen, path, effect).forever());
        let keep = Keep::open(&disk, &settings()).unwrap();
        assert_eq!(keep.renumbered(&routes("one")).unwrap(), [], "{told}");
        keep.take_routes(&routes("one"), &[]).unwrap();
        assert!(!minute(&keep) && !minute(&keep), "{told}");
        keep.keep(&[article(&keep, 50, 900)], NOW);
        assert!(is_there(&keep, 50, 900), "{told}");
        faulty.clear();
        assert!(minute(&keep), "{told}");
        for keep in [keep, open(&memory.crash(1))] {
            assert!((1..=40).all(|n| is_there(&keep, n, 20_000)), "{told}");
            assert_eq!(known(&keep, &name), (1..=100).collect::<Vec<_>>());
            assert_eq!(keep.figures().pins, ["my.*"], "{told}");
            keep.keep(&[article(&keep, 60, 900)], NOW);
            keep.in_memory.clear();
            assert!(is_there(&keep, 60, 900), "{told}");
        }
    }
}

/// Numbers of another server are looked at when the disk can be used, too.
#[test]
fn what_has_other_numbers_now_waits_for_the_next_start() {
    let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let name: Arc<str> = "misc.test".into();
    let keep = Keep::open(&disk, &settings()).unwrap();
    keep.take_routes(&routes("one"), &[]).unwrap();
    keep.put_group(&name, group(1, 500, 5));
    tell(&keep, &name, 1, 100, 100);
    keep.checkpoint();
    drop(keep);
    faulty.add(Fault::new(Op::Write, "", Effect::Full).forever());
    let keep = Keep::open(&disk, &settings()).unwrap();
    keep.take_routes(&routes("other"), &[]).unwrap();
    faulty.clear();
    assert!(!minute(&keep) && !minute(&keep));
    assert_eq!(known(&keep, &name), []);
    drop(keep);
    let keep = Keep::open(&disk, &settings()).unwrap();
    assert_eq!(known(&keep, &name).len(), 100);
    assert_eq!(keep.renumbered(&routes("other")).unwrap().len(), 1);
}

/// What is damaged is begun anew also where that is found after the start.
#[test]
fn damage_behind_a_disk_that_came_back_begins_anew() {
    let memory = MemoryDisk::new();
    let faulty = Arc::new(FaultyDisk::new(Arc::new(memory.clone())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let keep = Keep::open(&disk, &settings()).unwrap();
    keep.keep(&[article(&keep, 1, 900)], NOW);
    keep.checkpoint();
    drop(keep);
    faulty.add(Fault::new(Op::Open, "table.redb", Effect::Medium).forever());
    let keep = Keep::open(&disk, &settings()).unwrap();
    memory
        .corrupt(Path::new("/cache/table.redb"), 0, &[7; 4096])
        .unwrap();
    faulty.clear();
    assert!(minute(&keep));
    assert!(!is_there(&keep, 1, 900));
    keep.keep(&[article(&keep, 2, 900)], NOW);
    keep.in_memory.clear();
    assert!(is_there(&keep, 2, 900));
}

/// It was tried again each minute, with nothing cached and nothing said, until a restart.
#[test]
fn damage_behind_a_disk_that_failed_meanwhile_begins_anew() {
    let memory = MemoryDisk::new();
    let faulty = Arc::new(FaultyDisk::new(Arc::new(memory.clone())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let name: Arc<str> = "misc.test".into();
    for is_removed in [false, true] {
        let keep = Keep::open(&disk, &settings()).unwrap();
        keep.pin(&[Wildmat::parse("my.*").unwrap()], &[]).unwrap();
        keep.put_group(&name, group(1, 500, 5));
        keep.keep(&[article(&keep, 1, 900)], NOW);
        keep.checkpoint();
        for op in [Op::Write, Op::SetLen] {
            faulty.add(Fault::new(op, TABLE, Effect::Full).forever());
        }
        keep.put_group(&name, group(1, 600, 6));
        keep.checkpoint();
        assert!(keep.figures().is_broken);
        let table = Path::new("/cache/table.redb");
        match is_removed {
            true => memory.remove(table).unwrap(),
            false => memory.corrupt(table, 0, &[7; 4096]).unwrap(),
        }
        faulty.clear();
        assert!(minute(&keep));
        keep.in_memory.clear();
        assert!(!is_there(&keep, 1, 900));
        keep.keep(&[article(&keep, 2, 900)], NOW);
        keep.checkpoint();
        for keep in [keep, open(&memory.crash(1))] {
            keep.in_memory.clear();
            assert!(is_there(&keep, 2, 900));
            assert_eq!(keep.group(&name).unwrap().high.0, 600);
            assert_eq!(keep.figures().pins, ["my.*"]);
        }
    }
}

/// It was said that nothing had gone, and what was in memory of it had.
#[test]
fn of_what_cannot_be_let_go_nothing_goes() {
    let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
    let disk: Arc<dyn Disk> = faulty.clone();
    // Nothing of a change is in memory only.
    let settings = KeepSettings {
        table_memory_octets: 0,
        ..settings()
    };
    let keep = Keep::open(&disk, &settings).unwrap();
    let name: Arc<str> = "misc.test".into();
    keep.put_group(&name, group(1, 9, 5));
    tell(&keep, &name, 1, 9, 10);
    let mine = article(&keep, 1, 900);
    keep.keep(std::slice::from_ref(&mine), NOW);
    keep.checkpoint();
    for op in [Op::Write, Op::SetLen] {
        faulty.add(Fault::new(op, TABLE, Effect::Full).forever());
    }
    assert!(keep.drop_kept(&|_| true, &[], false).is_err());
    assert!(keep.figures().is_broken);
    assert!(keep.has_article(&mine.hash));
    faulty.clear();
    assert!(minute(&keep));
    assert_eq!(known(&keep, &name), (1..=9).collect::<Vec<_>>());
    assert!(keep.group(&name).is_some() && keep.has_article(&mine.hash));
    let dropped = keep.drop_kept(&|_| true, &[], false).unwrap();
    assert_eq!((dropped.groups, dropped.articles), (1, 1));
    assert!(keep.group(&name).is_none() && known(&keep, &name).is_empty());
    assert!(!keep.has_article(&mine.hash));
}

/// What was told of groups before the disk could be used was not held against what lies there: a group that had gone, or was another
/// one meanwhile, had its old lines again, and articles were looked for under hashes that no row has.
#[test]
fn what_was_told_of_groups_before_the_disk_could_be_used_holds() {
    let memory = MemoryDisk::new();
    let faulty = Arc::new(FaultyDisk::new(Arc::new(memory.clone())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let names = ["gone", "fell", "cut", "same", "again"];
    let [gone, fell, cut, same, again] = names.map(Arc::<str>::from);
    let all = [&gone, &fell, &cut, &same, &again];
    let firsts = [1, 101, 201, 301, 401];
    let keep = Keep::open(&disk, &settings()).unwrap();
    for (name, first) in all.iter().zip(firsts) {
        keep.put_group(name, group(first, 500, 5));
        tell(&keep, name, first, first + 49, 10);
        let articles: Vec<_> = (first..first + 50)
            .map(|n| article(&keep, n, 100))
            .collect();
        keep.keep(&articles, NOW);
    }
    keep.checkpoint();
    drop(keep);
    faulty.add(Fault::new(Op::Open, TABLE, Effect::Medium).forever());
    let keep = Keep::open(&disk, &settings()).unwrap();
    keep.remove_group(&gone);
    keep.put_group(&fell, group(101, 120, 9));
    keep.put_group(&fell, group(101, 700, 10));
    keep.put_group(&cut, group(231, 700, 10));
    keep.put_group(&same, group(301, 700, 10));
    keep.put_group(&again, group(401, 700, 9));
    keep.remove_group(&again);
    keep.put_group(&again, group(401, 700, 10));
    faulty.clear();
    assert!(minute(&keep));
    keep.checkpoint();
    for keep in [keep, open(&memory.crash(1))] {
        assert_eq!(keep.group(&gone), None);
        for (name, first) in [(&gone, 1), (&fell, 101), (&again, 401)] {
            assert_eq!(known(&keep, name), [], "{name}");
            assert!(
                (first..first + 50).all(|n| !is_there(&keep, n, 100)),
                "{name}"
            );
        }
        for name in [&fell, &cut, &same, &again] {
            assert_eq!(keep.group(name).unwrap().high.0, 700, "{name}");
        }
        assert_eq!(known(&keep, &cut), (231..=250).collect::<Vec<_>>());
        let there = (201..=250).filter(|n| is_there(&keep, *n, 100));
        assert_eq!(there.collect::<Vec<_>>(), (231..=250).collect::<Vec<_>>());
        assert_eq!(known(&keep, &same), (301..=350).collect::<Vec<_>>());
        assert!((301..=350).all(|n| is_there(&keep, n, 100)));
        let octets = [&cut, &same].map(|name| keep.group(name).unwrap().overview_octets);
        assert_eq!(keep.figures().overview_octets, octets.iter().sum::<u64>());
    }
}

/// Names of groups that are nowhere come from readers.
#[test]
fn no_more_groups_are_noted_before_the_disk_can_be_used_than_are_bounded() {
    let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
    let disk: Arc<dyn Disk> = faulty.clone();
    faulty.add(Fault::new(Op::Open, TABLE, Effect::Medium).forever());
    let keep = Keep::open(&disk, &settings()).unwrap();
    for n in 0..UNREAD_GONE_MAX + 10 {
        keep.remove_group(&format!("no.{n}"));
    }
    assert_eq!(keep.renewed.lock().len(), UNREAD_GONE_MAX);
    faulty.clear();
    assert!(minute(&keep));
    keep.checkpoint();
    keep.remove_group("no.more");
    assert!(keep.renewed.lock().is_empty());
}

/// A change that was under way when others were made durable was never made so itself.
#[test]
fn what_is_not_durable_is_known_as_such_until_it_is() {
    let keep = open(&MemoryDisk::new());
    keep.checkpoint();
    let table = &keep.table;
    let is_changed = |is_durable| {
        let during = table.change(is_durable, |_| Ok(table.is_changed()));
        (during.unwrap(), table.is_changed())
    };
    assert!(!table.is_changed());
    assert_eq!(is_changed(false), (false, true));
    // Another change may wait for this one to end.
    assert_eq!(is_changed(true), (true, false));
}

/// Of what could not be looked at it was said that nothing was there, and that nothing had gone.
#[test]
fn what_cannot_be_listed_or_let_go_is_no_success() {
    let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let keep = Keep::open(&disk, &settings()).unwrap();
    keep.put_group(&"misc.test".into(), group(1, 9, 5));
    keep.keep(&[article(&keep, 1, 900)], NOW);
    for op in [Op::Write, Op::SetLen] {
        faulty.add(Fault::new(op, TABLE, Effect::Full).forever());
    }
    keep.checkpoint();
    assert!(keep.figures().is_broken);
    let ids = id(1);
    let ids = [MessageId::parse(ids.as_bytes()).unwrap()];
    let all = |_: &str| true;
    assert!(keep.listed_groups(&all, true).is_err());
    assert!(keep.listed_articles(&all, 9).is_err());
    for dry_run in [true, false] {
        let by_name = keep.drop_kept(&all, &[], dry_run);
        let by_id = keep.drop_kept(&|_| false, &ids, dry_run);
        for told in [by_name, by_id] {
            let told = told.unwrap_err().to_string();
            assert!(told.contains("nothing of it was removed"), "{told}");
        }
    }
    assert!(keep.group("misc.test").is_some());
    faulty.clear();
    assert!(minute(&keep));
    assert!(keep.listed_groups(&all, true).is_ok());
}

/// It was known of what was in memory before, and went with that.
#[test]
fn what_is_posted_while_a_table_is_opened_again_is_known_behind_that() {
    let keep = open(&MemoryDisk::new());
    let name: Arc<str> = "misc.test".into();
    keep.put_group(&name, group(1, 9, 5));
    let reopened = Groups::read(&keep.table, 100_000).unwrap();
    keep.outdate_group(&name);
    keep.groups.lock().become_those(reopened);
    assert!(keep.group(&name).unwrap().is_outdated());
    let asked = keep.posts();
    keep.put_group(
        &name,
        KeptGroup {
            asked,
            ..group(1, 10, 6)
        },
    );
    assert!(!keep.group(&name).unwrap().is_outdated());
}

/// Each was written and synced, and nothing knew where it lay.
#[test]
fn what_comes_while_the_table_cannot_be_used_is_not_written() {
    let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let keep = Keep::open(&disk, &settings()).unwrap();
    keep.keep(&[article(&keep, 1, 900)], NOW);
    for op in [Op::Write, Op::SetLen] {
        faulty.add(Fault::new(op, TABLE, Effect::Full).forever());
    }
    keep.checkpoint();
    assert!(keep.figures().is_broken);
    let written = faulty.octets_written(".seg");
    keep.keep(&[article(&keep, 2, 900)], NOW);
    assert_eq!(faulty.octets_written(".seg"), written);
    assert!(is_there(&keep, 2, 900), "in memory");
    faulty.clear();
    assert!(minute(&keep));
    keep.keep(&[article(&keep, 3, 900)], NOW);
    assert!(faulty.octets_written(".seg") > written);
}

/// How often something was asked for was forgotten where that could not be noted.
#[test]
fn what_was_asked_for_is_noted_when_the_table_can_be_used() {
    let keep = open(&MemoryDisk::new());
    let mine = article(&keep, 1, 900);
    keep.keep(std::slice::from_ref(&mine), NOW);
    let uses = || keep.table.article(&mine.hash).unwrap().unwrap().uses;
    assert_eq!(uses(), 1);
    let later = |seconds: u64| UnixTime(NOW.0 + seconds);
    assert!(keep.article(&mine.hash, later(1)).is_some());
    keep.table.close();
    assert!(keep.wanted.learn(&keep.table).is_err());
    assert!(keep.article(&mine.hash, later(2)).is_some());
    assert!(keep.wanted.learn(&keep.table).is_err());
    keep.table.open(OpenMode::ReadWrite).unwrap();
    keep.wanted.learn(&keep.table).unwrap();
    let row = keep.table.article(&mine.hash).unwrap().unwrap();
    assert_eq!((row.uses, row.used_at), (3, later(2).0));
}

/// Who pins was told that it failed, and the next start went by it all the same.
#[test]
fn pins_that_could_not_be_made_durable_are_not_there_later() {
    let memory = MemoryDisk::new();
    let faulty = Arc::new(FaultyDisk::new(Arc::new(memory.clone())));
    let disk: Arc<dyn Disk> = faulty.clone();
    let keep = Keep::open(&disk, &settings()).unwrap();
    let of = |text: &str| [Wildmat::parse(text).unwrap()];
    keep.pin(&of("my.*"), &[]).unwrap();
    faulty.add(Fault::new(Op::Sync, TABLE, Effect::Medium));
    assert!(keep.pin(&of("other.*"), &of("my.*")).is_err());
    assert!(minute(&keep));
    for keep in [keep, open(&memory.crash(1))] {
        assert_eq!(keep.figures().pins, ["my.*"]);
        let noted = keep.table.fact("pins").unwrap();
        assert_eq!(noted.as_deref(), Some(&b"my.*\n"[..]));
    }
}

/// Nothing was cached until the next start, and that knew of no pins.
#[test]
fn a_table_that_is_damaged_meanwhile_begins_anew_and_pins_stay() {
    let table = Path::new("/cache/table.redb");
    for how in ["zeros", "others", "cut"] {
        let memory = MemoryDisk::new();
        let disk: Arc<dyn Disk> = Arc::new(memory.clone());
        // All of it is read from its file.
        let settings = KeepSettings {
            table_memory_octets: 0,
            ..settings()
        };
        let keep = Keep::open(&disk, &settings).unwrap();
        let name: Arc<str> = "my.group".into();
        keep.pin(&[Wildmat::parse("my.*").unwrap()], &[]).unwrap();
        keep.put_group(&name, group(1, 500, 5));
        tell(&keep, &name, 1, 500, 100);
        let all: Vec<Fetched> = (1..=400).map(|n| article(&keep, n, 900)).collect();
        keep.keep(&all, NOW);
        keep.checkpoint();
        let file = disk.open(table, OpenMode::ReadWrite).unwrap();
        let len = file.len().unwrap();
        match how {
            "zeros" => memory.corrupt(table, 4096, &vec![0; len as usize - 4096]),
            "others" => {
                let octets = (4096..len).map(|at| ((at * at) >> 7) as u8 ^ 0x5a);
                memory.corrupt(table, 4096, &octets.collect::<Vec<_>>())
            }
            _ => file.set_len(len / 4),
        }
        .unwrap();
        keep.in_memory.clear();
        keep.blocks_in_memory.clear();
        for n in 1..=400 {
            let _ = is_there(&keep, n, 900);
        }
        assert_eq!(known(&keep, &name), [], "{how}");
        assert!(keep.figures().is_broken, "{how}");
        keep.keep(&[article(&keep, 900, 900)], NOW);
        assert!(is_there(&keep, 900, 900), "in memory, {how}");
        keep.checkpoint();
        assert!(!keep.figures().is_broken, "{how}");
        keep.keep(&[article(&keep, 901, 900)], NOW);
        tell(&keep, &name, 1, 100, 10);
        keep.checkpoint();
        for keep in [keep, open(&memory.crash(1))] {
            keep.in_memory.clear();
            assert!(is_there(&keep, 901, 900), "{how}");
            assert_eq!(known(&keep, &name).len(), 100, "{how}");
            assert_eq!(keep.group(&name).unwrap().high.0, 500, "{how}");
            assert_eq!(keep.figures().pins, ["my.*"], "{how}");
        }
    }
}
