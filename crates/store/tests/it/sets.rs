//! Which buffer of a set takes an article.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, Effect, Fault, FaultyDisk, MemoryDisk, Op, OpenMode};
use newsreel_store::conformance::{Rig, article, config_of};
use newsreel_store::{Access, Blocking, PlaceError, SetOrder, Want};

#[test]
fn interleaving_turns_by_batch_or_megabyte_not_by_article() {
    let config = config_of("cnfs", 32 << 20);
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
    rig.commit().unwrap();
    let mut buffers = Vec::new();
    for commit in 0..12u64 {
        let tokens: Vec<_> = (0..20)
            .map(|n| rig.place(commit * 20 + n, 20_000).unwrap())
            .collect();
        let first = tokens[0].buffer();
        assert!(
            tokens.iter().all(|token| token.buffer() == first),
            "one commit, two buffers to sync"
        );
        buffers.push(first.0);
        rig.commit().unwrap();
    }
    // Three commits of 400 KB are more than a megabyte.
    assert_eq!(buffers, [1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2]);
}

#[test]
fn a_commit_is_one_write_and_one_sync_a_buffer() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let config = config_of("cnfs", 32 << 20);
    let mut rig = Rig::new(Arc::new(faulty.clone()), &config).unwrap();
    rig.commit().unwrap();
    // The first batch behind a reservation brings the header up to date.
    rig.place(0, 100).unwrap();
    rig.commit().unwrap();
    let before = faulty.counts();
    for number in 0..400 {
        rig.place(number, 2650).unwrap();
    }
    rig.commit().unwrap();
    let after = faulty.counts();
    let done = |op| after.of(op) - before.of(op);
    assert_eq!((done(Op::Write), done(Op::Sync), done(Op::Read)), (1, 1, 0));
}

#[test]
fn a_read_is_one_read_whatever_the_size() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let config = config_of("cnfs", 32 << 20);
    let mut rig = Rig::new(Arc::new(faulty.clone()), &config).unwrap();
    for (number, len) in [100, 2650, 16_000, 60_000, 700_000, 5_000_000]
        .into_iter()
        .enumerate()
    {
        rig.place(number as u64, len).unwrap();
    }
    rig.commit().unwrap();
    let mut memory = Vec::new();
    for logged in rig.log.articles() {
        for want in [Want::Whole, Want::Head] {
            for blocking in [Blocking::No, Blocking::Yes] {
                let before = faulty.counts().of(Op::Read);
                rig.reader
                    .read(&logged.token, want, blocking, &mut memory)
                    .unwrap();
                assert_eq!(
                    faulty.counts().of(Op::Read) - before,
                    1,
                    "{logged:?} {want:?}"
                );
            }
        }
    }
}

#[test]
fn a_neighbour_that_cannot_be_read_costs_only_itself() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let config = config_of("cnfs", 32 << 20);
    let mut rig = Rig::new(Arc::new(faulty.clone()), &config).unwrap();
    for number in 0..10 {
        rig.place(number, 2650).unwrap();
    }
    rig.commit().unwrap();
    for logged in rig.log.articles() {
        faulty.add(Fault::new(Op::Read, "", Effect::Medium));
        // The first read, of everything around, fails.
        let mut memory = Vec::new();
        let stored = rig
            .reader
            .read(&logged.token, Want::Whole, Blocking::Yes, &mut memory)
            .unwrap();
        assert_eq!(memory[stored.octets], article(logged.number, logged.len).0);
    }
}

#[test]
fn a_sequence_fills_one_buffer_to_its_end_then_the_next() {
    let mut config = config_of("cnfs", 1 << 20);
    config.sets[0].order = SetOrder::Sequential;
    let disk = Arc::new(MemoryDisk::new());
    let mut rig = Rig::new(disk, &config).unwrap();
    let mut turns: Vec<(u16, u32)> = Vec::new();
    for number in 0..900 {
        let len = if number % 9 == 0 { 40_000 } else { 4000 };
        let token = rig.place(number, len).unwrap();
        let turn = (token.buffer().0, token.position().cycle());
        if turns.last() != Some(&turn) {
            turns.push(turn);
        }
        if number % 10 == 0 {
            rig.commit().unwrap();
        }
    }
    rig.commit().unwrap();
    assert_eq!(turns[..6], [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)]);
    let tally = rig.read_all();
    assert_eq!(tally.corrupt, 0);
    // After a restart it goes on with the buffer it was at.
    let last = rig.log.articles().last().unwrap().token;
    rig.checkpoint().unwrap();
    let (disk, log) = (Arc::clone(&rig.disk), rig.log.clone());
    drop(rig);
    let mut rig = Rig::recover(disk, &config, log, Access::Write).unwrap();
    assert_eq!(rig.place(2000, 300).unwrap().buffer(), last.buffer());
}

#[test]
fn a_lone_buffer_follows_itself() {
    for order in [SetOrder::Interleave, SetOrder::Sequential] {
        let mut config = config_of("cnfs", 1 << 20);
        config.buffers.truncate(1);
        config.sets[0].buffers.truncate(1);
        config.sets[0].order = order;
        let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
        for number in 0..600 {
            rig.place(number, 9000).unwrap();
        }
        rig.commit().unwrap();
        let last = rig.log.articles().last().unwrap().token;
        assert!(last.position().cycle() > 4, "{order:?} {last:?}");
    }
}

#[test]
fn a_large_article_goes_to_the_larger_buffer() {
    let mut config = config_of("cnfs", 1 << 20);
    config.buffers[1].octets = 64 << 20;
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
    rig.place(1, 100).unwrap();
    let large = rig.place(2, 10 << 20).unwrap();
    assert_eq!(large.buffer().0, 2);
    let limit = 16 << 20;
    let Err(PlaceError::TooLarge { limit: told }) = rig.place(3, limit) else {
        panic!("too large for every buffer");
    };
    assert!(told < limit as u64 && told > 15 << 20);
    rig.commit().unwrap();
    // The larger one has failed: the article is put off, not refused for good.
    rig.store.suspend(large.buffer());
    let put_off = rig.place(4, 10 << 20);
    assert!(matches!(put_off, Err(PlaceError::Suspended)), "{put_off:?}");
    let refused = rig.place(4, limit);
    assert!(
        matches!(refused, Err(PlaceError::TooLarge { .. })),
        "{refused:?}"
    );
    rig.place(5, 100).unwrap();
    rig.commit().unwrap();
    assert_eq!(rig.read_all().read, 3);
}

#[test]
fn the_largest_articles_of_all() {
    let config = config_of("cnfs", 1 << 30);
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
    for number in 0..4 {
        rig.place(number, 64 << 20).unwrap();
    }
    rig.commit().unwrap();
    assert_eq!(rig.read_all().read, 4);
}

#[test]
fn many_terabytes_open_at_once() {
    let mut config = config_of("cnfs", 1 << 40);
    let first = config.buffers[0].clone();
    config.buffers = (0..20)
        .map(|n| newsreel_store::BufferConfig {
            name: format!("T{n}"),
            ..first.clone()
        })
        .collect();
    config.sets[0].buffers = config
        .buffers
        .iter()
        .map(|buffer| buffer.name.clone())
        .collect();
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
    rig.place(1, 3000).unwrap();
    rig.checkpoint().unwrap();
    let (disk, log) = (Arc::clone(&rig.disk), rig.log.clone());
    drop(rig);
    let rig = Rig::recover(disk, &config, log, Access::Write).unwrap();
    assert_eq!(rig.read_all().read, 1);
}

/// What is served and never written: not by articles, cancels that erase, or checkpoints, and nothing of it is made.
#[test]
fn a_read_only_buffer_is_served_and_never_written() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let mut config = config_of("cnfs", 4 << 20);
    config.sets[0].erase_withdrawn = true;
    let mut rig = Rig::new(Arc::clone(&disk), &config).unwrap();
    for number in 0..600 {
        rig.place(number, 20_000).unwrap();
    }
    rig.commit().unwrap();
    let log = rig.log.clone();
    drop(rig);

    config.buffers[0].read_only = true;
    let counted = faulty.octets_written("buffers/C0");
    let old: Vec<_> = log
        .articles()
        .filter(|it| it.token.buffer().0 == 1)
        .copied()
        .collect();
    let mut rig = Rig::recover(Arc::clone(&disk), &config, log, Access::Write).unwrap();
    let before: Vec<bool> = old.iter().map(|it| rig.read(it).is_ok()).collect();
    assert!(before.iter().filter(|is_there| **is_there).count() > 100);
    for number in 600..1500 {
        let token = rig.place(number, 20_000).unwrap();
        assert_eq!(token.buffer().0, 2);
    }
    let mut erasures = Vec::new();
    rig.store
        .withdrawn(&[old[old.len() - 1].token], &mut erasures);
    assert!(erasures.is_empty(), "nothing of it is overwritten");
    rig.checkpoint().unwrap();
    let after: Vec<bool> = old.iter().map(|it| rig.read(it).is_ok()).collect();
    assert_eq!(
        before, after,
        "others came around, and nothing of it is gone"
    );
    assert!(rig.reader.facts()[0].is_read_only);
    // It drains as others do: that is a matter of the log.
    rig.store.retirement().retire("C0", true).unwrap();
    for number in 1500..1800 {
        rig.place(number, 20_000).unwrap();
    }
    rig.checkpoint().unwrap();
    assert!(rig.reader.facts()[0].is_drained);
    assert_eq!(faulty.octets_written("buffers/C0"), counted);

    let log = rig.log.clone();
    drop(rig);
    let path = Path::new("/spool/buffers/C0");
    disk.remove(path).unwrap();
    let error = Rig::recover(Arc::clone(&disk), &config, log, Access::Write).unwrap_err();
    assert!(error.to_string().contains("C0"), "{error}");
    config.buffers[0].name = "NEW".to_owned();
    config.sets[0].buffers[0] = "NEW".to_owned();
    config.dropped = vec!["C0".to_owned()];
    let error = Rig::new(Arc::clone(&disk), &config)
        .unwrap_err()
        .to_string();
    assert!(error.contains("`read_only` forbids to make it"), "{error}");
    assert!(!disk.exists(Path::new("/spool/buffers/NEW")).unwrap());
}

/// As one of a cyclic buffer: the register has the set's id, the log where it stands, its records their key.
#[test]
fn segments_that_lost_all_their_headers_are_taken_up_again() {
    let config = config_of("segment", 1 << 20);
    for (articles, octet) in [(0, 0xff), (1, 0), (30, 0xff), (1000, 0xff), (1000, 0)] {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut rig = Rig::new(Arc::clone(&disk), &config).unwrap();
        for number in 0..articles {
            rig.place(number, 3000).unwrap();
        }
        rig.checkpoint().unwrap();
        let (before, log) = (rig.read_all(), rig.log.clone());
        drop(rig);
        let directory = Path::new("/spool/segments").join(&config.sets[0].name);
        let mut files = disk.list(&directory).unwrap_or_default();
        files.retain(|file| file.name.ends_with(".seg"));
        assert_eq!(files.len() > 1, articles > 300, "{articles} articles");
        for file in &files {
            let file = disk.open(&directory.join(&file.name), OpenMode::ReadWrite);
            file.unwrap().write_at(&[octet; 8192], 0).unwrap();
        }
        for access in [Access::ReadOnly, Access::Write] {
            let rig = Rig::recover(Arc::clone(&disk), &config, log.clone(), access).unwrap();
            assert_eq!(rig.read_all(), before, "{articles} articles, {access:?}");
        }
        let mut rig = Rig::recover(Arc::clone(&disk), &config, log, Access::Write).unwrap();
        for number in 5000..5800 {
            rig.place(number, 3000).unwrap();
        }
        rig.checkpoint().unwrap();
        let (after, log) = (rig.read_all(), rig.log.clone());
        assert_eq!(after.corrupt, 0);
        drop(rig);
        let rig = Rig::recover(disk, &config, log, Access::Write).unwrap();
        assert_eq!(rig.read_all(), after);
    }
}

/// Nobody knows what is in them: they are left as they are.
#[test]
fn segments_with_neither_headers_nor_records_are_refused() {
    let config = config_of("segment", 1 << 20);
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut rig = Rig::new(Arc::clone(&disk), &config).unwrap();
    rig.place(1, 3000).unwrap();
    rig.checkpoint().unwrap();
    let log = rig.log.clone();
    drop(rig);
    let directory = Path::new("/spool/segments").join(&config.sets[0].name);
    let files = disk.list(&directory).unwrap();
    let mut names = files.iter().map(|file| &file.name);
    let name = names.find(|name| name.ends_with(".seg")).unwrap();
    let file = disk
        .open(&directory.join(name), OpenMode::ReadWrite)
        .unwrap();
    file.write_at(&vec![b'N'; 1 << 20], 0).unwrap();
    let error = Rig::recover(disk, &config, log, Access::Write).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("no articles in them tell whose they are"),
        "{error}"
    );
    assert!(error.contains("--drop-buffer"), "{error}");
    let mut now = vec![0; 1 << 20];
    file.read_exact_at(&mut now, 0).unwrap();
    assert!(now.iter().all(|octet| *octet == b'N'), "it was touched");
}
