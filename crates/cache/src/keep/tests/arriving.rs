//! Articles that come more than once, from several callers, or while it changes what they are kept under.

use std::sync::Barrier;

use newsreel_host::{Effect, Fault, FaultyDisk, Op};

use super::*;

/// The same message-id over another body.
fn other(keep: &Keep, number: u64, octets: usize) -> Fetched {
    let wire = article(keep, number, octets).kept.wire.to_vec();
    let wire = String::from_utf8(wire)
        .unwrap()
        .replace("xx", "yy")
        .into_bytes();
    Fetched {
        kept: Arc::new(Kept::new(wire.into()).unwrap()),
        ..article(keep, number, octets)
    }
}

/// An article that was there was written once more.
#[test]
fn what_is_kept_is_not_written_again() {
    let keep = open(&MemoryDisk::new());
    let mine = article(&keep, 1, 900);
    assert!(keep.keep(&[mine.clone(), mine.clone()], NOW).is_empty());
    let written = keep.figures().written;
    for _ in 0..2 {
        assert!(keep.keep(std::slice::from_ref(&mine), NOW).is_empty());
        keep.in_memory.clear();
    }
    let refused = keep.keep(&[other(&keep, 1, 900)], NOW);
    assert_eq!(refused, HashSet::from([mine.hash]));
    assert_eq!(keep.figures().written, written);
    assert!(is_there(&keep, 1, 900));
}

/// Both saw nothing, and both were placed: what was read first under a message-id was replaced.
#[test]
fn of_two_articles_with_one_message_id_that_come_at_once_one_stays() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    for memory_octets in [0, 1 << 20] {
        let settings = KeepSettings {
            memory_octets,
            ..settings()
        };
        let keep = Keep::open(&disk, &settings).unwrap();
        for number in memory_octets..memory_octets + 20 {
            let before = keep.figures().written.came;
            let both = [article(&keep, number, 900), other(&keep, number, 900)];
            let begin = Barrier::new(2);
            let keep_one = |came: &Fetched| {
                begin.wait();
                keep.keep(std::slice::from_ref(came), NOW)
            };
            let refused = std::thread::scope(|scope| {
                let running = both.each_ref().map(|came| scope.spawn(|| keep_one(came)));
                running.map(|one| one.join().unwrap().len())
            });
            assert_eq!(refused.iter().sum::<usize>(), 1, "{number}");
            let stays = &both[refused.iter().position(|refused| *refused == 0).unwrap()];
            for _ in 0..2 {
                let there = keep.article(&stays.hash, NOW).unwrap();
                assert!(there.wire == stays.kept.wire, "{number}");
                keep.in_memory.clear();
            }
            let came = keep.figures().written.came - before;
            assert!(came < 2 * 900, "{number}: {came} octets");
        }
        // ... or in one batch.
        let number = memory_octets + 20;
        let both = [article(&keep, number, 900), other(&keep, number, 900)];
        assert_eq!(keep.keep(&both, NOW).len(), 1);
        keep.in_memory.clear();
        assert!(is_there(&keep, number, 900));
    }
}

/// What had come before the disk could be used, and was kept behind that, was written under a hash that nobody asks for.
#[test]
fn what_came_before_the_key_was_known_is_not_kept_under_another_one() {
    let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
    let disk: Arc<dyn Disk> = faulty.clone();
    faulty.add(Fault::new(Op::Open, TABLE, Effect::Medium).forever());
    let keep = Keep::open(&disk, &settings()).unwrap();
    let came = article(&keep, 1, 900);
    faulty.clear();
    for _ in 0..CHECKPOINTS_IN_VAIN {
        keep.checkpoint();
    }
    keep.keep(&[came, article(&keep, 2, 900)], NOW);
    assert_eq!(keep.figures().articles, 1);
    keep.in_memory.clear();
    assert!(is_there(&keep, 2, 900));
}

/// Who read it from the disk just before took it into memory again, from where it was given to everybody.
#[test]
fn what_is_let_go_while_it_is_read_is_not_taken_into_memory() {
    let keep = open(&MemoryDisk::new());
    let name: Arc<str> = "misc.test".into();
    let both = [article(&keep, 1, 900), article(&keep, 2, 900)];
    keep.keep(&both, NOW);
    keep.put_group(&name, group(1, 9, 5));
    tell(&keep, &name, 1, 2, 10);
    keep.in_memory.clear();
    let read = both
        .each_ref()
        .map(|one| Arc::new(keep.read(&one.hash).unwrap()));
    let ids = id(1);
    let ids = [MessageId::parse(ids.as_bytes()).unwrap()];
    assert_eq!(keep.drop_kept(&|_| false, &ids, false).unwrap().articles, 1);
    keep.put_group(&name, group(3, 9, 6));
    for (one, read) in both.iter().zip(&read) {
        keep.take_into_memory(&one.hash, read);
        assert!(!keep.has_article(&one.hash));
        assert!(keep.article(&one.hash, NOW).is_none());
    }
    keep.keep(&both, NOW);
    keep.in_memory.clear();
    keep.take_into_memory(&both[0].hash, &read[0]);
    assert!(keep.article_at_hand(&both[0].hash).is_some());
}

/// Who let it go looked for it before it was there, and it was kept behind that.
#[test]
fn what_is_let_go_before_it_is_placed_is_not_kept() {
    let keep = open(&MemoryDisk::new());
    let (mine, other) = (article(&keep, 1, 900), article(&keep, 2, 900));
    let is_placing = || keep.articles.try_lock().is_none();
    // Nobody had let it go when it came.
    let is_let_go = |id: &IdHash| *id == mine.hash && is_placing();
    keep.keep_articles(&[mine.clone(), other.clone()], NOW, &is_let_go);
    assert!(!keep.has_article(&mine.hash) && keep.has_article(&other.hash));
    // Who lets go what is there sees what is being placed.
    keep.put_group(&"misc.test".into(), group(1, 9, 5));
    for dry_run in [false, true] {
        let matches = |_: &str| {
            assert_eq!(is_placing(), !dry_run);
            false
        };
        let _ = keep.drop_kept(&matches, &[], dry_run).unwrap();
    }
}
