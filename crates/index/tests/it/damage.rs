//! Rot in sealed files: it is noticed, never answered from, and what was lost can be rebuilt from the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, FaultyDisk, MemoryDisk, Op};
use newsreel_index::{DamagedRun, Error, RunKind, Wait};
use newsreel_wire::{ArticleNumber, GroupId};
use proptest::prelude::*;

use crate::crash::rebuild;
use crate::world::{DIR, Record, World, hash, small, split_lines};

fn sealed_world() -> (Arc<MemoryDisk>, World) {
    let memory = Arc::new(MemoryDisk::new());
    let disk: Arc<dyn Disk> = Arc::clone(&memory) as _;
    let mut world = World::with_groups(&disk, small(), 4);
    for round in 0..7 {
        world.articles(60, 4);
        if round == 3 {
            let article = world.article(&[1, 2], 2);
            world.record(Record::Withdraw(article));
        }
        world.checkpoint();
        if round == 5 {
            // Merged packs have compressed blocks, unmerged ones do not: both are wanted.
            world.compact();
        }
    }
    (memory, world)
}

fn files(memory: &MemoryDisk, stem: &str) -> Vec<(PathBuf, u64)> {
    let files = memory.list(Path::new(DIR)).unwrap().into_iter();
    files
        .filter(|file| file.name.starts_with(stem) && file.name.contains('-'))
        .map(|file| (Path::new(DIR).join(&file.name), file.len))
        .collect()
}

/// One when an answer is refused because of damage; a given one must be right.
fn failed<T>(answer: Result<T, Error>, check: impl FnOnce()) -> usize {
    match answer {
        Ok(_) => {
            check();
            0
        }
        Err(Error::Damaged { .. } | Error::Incomplete { .. }) => 1,
        Err(other) => panic!("{other}"),
    }
}

/// Asks everything; every answer must be right and whole or refused, and none may be refused unless damage was noted.
fn no_wrong_answers(world: &World) {
    let overview = world.views.overview();
    let (mut missing, mut id) = (0, Vec::new());
    for (group, model) in &world.model.groups {
        let (group, live) = (GroupId(*group), world.live(model));
        let mut lines = Vec::new();
        let all = (ArticleNumber(0), ArticleNumber(u64::MAX));
        let done = overview.lines(group, all, usize::MAX, Wait::Yes, &mut lines);
        let lines = split_lines(&lines);
        for (number, text) in &lines {
            let expect = live.get(number).map(|article| article.text());
            assert_eq!(expect.as_ref(), Some(text));
        }
        missing += failed(done, || assert_eq!(lines.len(), live.len()));
        let mut numbers = Vec::new();
        let done = overview.numbers(group, all, usize::MAX, Wait::Yes, &mut numbers);
        missing += failed(done, || assert_eq!(numbers.len(), live.len()));
        assert!(numbers.iter().all(|number| live.contains_key(&number.0)));
        for (number, article) in &live {
            match overview.column(group, ArticleNumber(*number), Wait::Yes, &mut id) {
                Ok(Some(column)) => {
                    assert_eq!(
                        (column.token, &id[..]),
                        (article.token, article.id().as_bytes())
                    );
                }
                Err(Error::Damaged { .. } | Error::Incomplete { .. }) => missing += 1,
                other => panic!("{other:?}"),
            }
        }
        let facts = world.views.group_facts(group, Wait::Yes);
        let count = facts.as_ref().map(|facts| facts.count).ok();
        missing += failed(facts, || assert_eq!(count, Some(live.len() as u64)));
        assert_eq!(world.views.groups().high(group).0, model.high);
    }
    for (key, (token, _)) in &world.model.history {
        match world.views.history().lookup(&hash(*key)) {
            Ok(Some(entry)) => assert!(entry.token.is_none() || entry.token == *token),
            Ok(None) => panic!("key {key} is taken for unknown"),
            Err(Error::Damaged { .. } | Error::Incomplete { .. }) => missing += 1,
            Err(other) => panic!("{other}"),
        }
    }
    let damaged = world.views.damaged();
    assert!(missing == 0 || !damaged.is_empty(), "{missing} missing");
}

/// Makes everything good again, as the engine does.
pub(crate) fn rebuild_all(world: &mut World) {
    let mut damaged = world.views.damaged();
    damaged.retain(|damaged| !damaged.is_readable);
    for damaged in &damaged {
        if damaged.kind != RunKind::Groups {
            rebuild(world, damaged.run).unwrap();
        }
    }
    if damaged
        .iter()
        .any(|damaged| damaged.kind == RunKind::Groups)
    {
        world.checkpoint();
        world.views.forget_lost_groups().unwrap();
    }
    world.compact();
}

#[test]
fn every_flipped_bit_is_noticed_and_mended() {
    for stem in ["history", "overview", "groups"] {
        let (memory, mut world) = sealed_world();
        let mut noticed = 0;
        for (path, len) in files(&memory, stem) {
            let tries = 24;
            for nth in 0..tries {
                let offset = if nth < 10 { nth * 7 } else { len * nth / tries };
                let copy = Arc::new(memory.crash_losing_all());
                copy.flip_bit(&path, offset, (nth % 8) as u8).unwrap();
                let disk: Arc<dyn Disk> = copy;
                world.reopen(&disk);
                no_wrong_answers(&world);
                world.views.check_files().unwrap();
                let damaged = world.views.damaged();
                let is_half = |run: &DamagedRun| run.is_readable == (stem != "overview");
                assert!(damaged.iter().all(is_half), "{damaged:?}");
                noticed += damaged.len();
                assert!(damaged.iter().all(|run| run.path == path), "{damaged:?}");
                rebuild_all(&mut world);
                world.check();
                world.compact();
                world.check();
            }
        }
        assert!(noticed > 10, "{stem}: {noticed}");
    }
}

/// Whatever happens to one of the two files of a run: everything is known at once, also what is in no store any more, and
/// soon there are two good files again.
#[test]
fn what_is_lost_of_one_file_is_read_from_the_other() {
    let (memory, mut world) = sealed_world();
    // Ids whose articles are gone are only remembered.
    (0..3).for_each(|buffer| world.marks.raise(buffer, u64::MAX));
    let twice = [files(&memory, "history"), files(&memory, "groups")].concat();
    for (path, len) in twice {
        for (at, octets) in [
            (4096 + 20, 1),
            (4096, 8192),
            (len - 300, len),
            (0, len),
            (len - 200, 1),
        ] {
            let copy = Arc::new(memory.crash_losing_all());
            let octets = octets.min(len - at) as usize;
            copy.corrupt(&path, at, &vec![0xa5; octets]).unwrap();
            let disk: Arc<dyn Disk> = Arc::clone(&copy) as _;
            world.reopen(&disk);
            for key in world.model.history.keys() {
                let known = world.views.history().lookup(&hash(*key)).unwrap();
                assert!(known.is_some(), "{octets} octets at {at}");
            }
            world.views.check_files().unwrap();
            let [damaged] = &world.views.damaged()[..] else {
                panic!("{octets} octets at {at}: {:?}", world.views.damaged());
            };
            assert!(damaged.path == path && damaged.is_readable, "{damaged:?}");
            world.compact();
            world.check();
            world.reopen(&disk);
            world.views.check_files().unwrap();
            world.check();
            let by_stem = |stem| files(&copy, stem).len();
            let facts = world.views.facts();
            assert_eq!(by_stem("history"), 2 * facts.history.buckets);
            assert_eq!(by_stem("groups"), 2 * facts.group_runs);
        }
    }
}

/// Rot in both files, but not in the same pages.
#[test]
fn two_rotten_files_of_a_bucket_make_a_whole_one() {
    let (memory, mut world) = sealed_world();
    (0..3).for_each(|buffer| world.marks.raise(buffer, u64::MAX));
    let all = files(&memory, "history");
    for pair in all.chunks(2) {
        let ([first, second], copy) = (pair, Arc::new(memory.crash_losing_all())) else {
            panic!("{all:?}");
        };
        copy.corrupt(&first.0, 4096, &[1; 1024]).unwrap();
        copy.corrupt(&second.0, 5120, &vec![2; (second.1 - 5120) as usize])
            .unwrap();
        let disk: Arc<dyn Disk> = copy;
        world.reopen(&disk);
        no_wrong_answers(&world);
        world.views.check_files().unwrap();
        // The second one's end is gone, so nothing is read from it but for the rebuild.
        let damaged = world.views.damaged();
        assert!(damaged.len() == 1 && !damaged[0].is_readable, "{damaged:?}");
        rebuild_all(&mut world);
        world.check();
    }
}

/// The first page of the oldest bucket rots in both files; that run's id.
fn both_rotten(memory: &MemoryDisk) -> PathBuf {
    let all = files(memory, "history");
    for (path, _) in &all[..2] {
        memory.corrupt(path, 4096 + 20, &[0xa5; 64]).unwrap();
    }
    let [first, second] = &all[..2] else {
        panic!("{all:?}");
    };
    assert_eq!(first.0.file_stem(), second.0.file_stem());
    match first.0.extension().is_some_and(|suffix| suffix == "run") {
        true => first.0.clone(),
        false => second.0.clone(),
    }
}

/// A run that is lost in both files was said to be answered for by the second one.
#[test]
fn what_is_bad_in_both_files_is_lost_whoever_notices() {
    for is_asked in [true, false] {
        let (memory, mut world) = sealed_world();
        let path = both_rotten(&memory);
        let disk: Arc<dyn Disk> = memory;
        world.reopen(&disk);
        match is_asked {
            true => no_wrong_answers(&world),
            false => drop(world.views.check_files().unwrap()),
        }
        let [damaged] = &world.views.damaged()[..] else {
            panic!("asked {is_asked}: {:?}", world.views.damaged());
        };
        assert!(damaged.path == path && !damaged.is_readable, "{damaged:?}");
        rebuild_all(&mut world);
        world.check();
    }
}

/// Nobody reads the second file while the first one is good: it is looked at when there is nothing else to do.
#[test]
fn what_rots_in_the_second_file_is_found_in_time() {
    let (memory, mut world) = sealed_world();
    let disk: Arc<dyn Disk> = Arc::clone(&memory) as _;
    world.compact();
    world.reopen(&disk);
    let mut copies = [files(&memory, "history"), files(&memory, "groups")].concat();
    copies.retain(|(path, _)| path.extension().is_some_and(|suffix| suffix == "copy"));
    assert!(copies.len() > 4, "{copies:?}");
    for (path, len) in &copies {
        // Of groups a section, of history a page; the ends are looked at when a file is opened.
        let at = 4096 + (len - 4096 - 256) / 4;
        memory.corrupt(path, at, &[0xa5; 8]).unwrap();
    }
    assert_eq!(world.views.damaged(), []);
    (0..40 * copies.len()).for_each(|_| world.compact());
    assert_eq!(world.views.damaged(), []);
    for (path, _) in &copies {
        assert!(!memory.exists(path).unwrap(), "{}", path.display());
    }
    world.views.check_files().unwrap();
    world.check();
}

/// Names, marks and what was withdrawn are in memory when both files of them rot: they are told again.
#[test]
fn group_rows_that_rot_under_running_views_are_not_lost() {
    let (memory, mut world) = sealed_world();
    for (path, _) in files(&memory, "groups") {
        memory.corrupt(&path, 4096 + 20, &[0xa5; 64]).unwrap();
    }
    world.views.check_files().unwrap();
    assert!(!world.views.damaged().is_empty());
    rebuild_all(&mut world);
    world.check();
    world.articles(20, 4);
    world.checkpoint();
    let disk: Arc<dyn Disk> = memory;
    world.reopen(&disk);
    world.check();
}

#[test]
fn no_file_is_read_twice_for_one_answer() {
    let (memory, mut world) = sealed_world();
    both_rotten(&memory);
    let faulty = Arc::new(FaultyDisk::new(memory));
    let disk: Arc<dyn Disk> = Arc::clone(&faulty) as _;
    world.reopen(&disk);
    let reads = || faulty.counts().of(Op::Read);
    let asked = world.model.history.keys().find_map(|key| {
        let before = reads();
        let answer = world.views.history().lookup(&hash(*key));
        answer.is_err().then(|| reads() - before)
    });
    assert_eq!(asked, Some(2));
}

#[test]
fn both_files_of_a_bucket_have_the_same_octets() {
    let (memory, world) = sealed_world();
    let read = |path: &Path| newsreel_host::read_whole(memory.as_ref(), path, 1 << 30).unwrap();
    let all = files(&memory, "history");
    let mut octets = 0;
    for pair in all.chunks(2) {
        assert_eq!(read(&pair[0].0), read(&pair[1].0));
        octets += pair[0].1 + pair[1].1;
    }
    assert!(all.len() >= 4);
    assert_eq!(world.views.facts().history.file_bytes, octets);
}

#[test]
fn a_missing_or_cut_file_is_named_and_the_rest_served() {
    for stem in ["history", "overview", "groups"] {
        for cut in [None, Some(0), Some(5000)] {
            let (memory, mut world) = sealed_world();
            let (path, _) = files(&memory, stem).pop().unwrap();
            match cut {
                None => memory.remove(&path).unwrap(),
                Some(len) => {
                    let file = memory
                        .open(&path, newsreel_host::OpenMode::ReadWrite)
                        .unwrap();
                    file.set_len(len).unwrap();
                }
            }
            let disk: Arc<dyn Disk> = memory;
            world.reopen(&disk);
            let damaged = world.views.damaged();
            assert_eq!(damaged.len(), 1, "{stem} {cut:?}");
            assert_eq!(damaged[0].path, path);
            assert!(
                damaged[0].why.contains(path.to_str().unwrap()),
                "{damaged:?}"
            );
            no_wrong_answers(&world);
            // New articles go on while it is missing.
            world.articles(20, 4);
            world.checkpoint();
            world.compact();
            no_wrong_answers(&world);
            rebuild_all(&mut world);
            world.check();
            world.reopen(&disk);
            world.check();
        }
    }
}

/// An id that is not found while a bucket is missing must not be taken for unknown: the article might be there.
#[test]
fn a_missing_bucket_makes_the_history_admit_that_it_cannot_tell() {
    let (memory, mut world) = sealed_world();
    for (path, _) in &files(&memory, "history")[..2] {
        memory.remove(path).unwrap();
    }
    let disk: Arc<dyn Disk> = memory;
    world.reopen(&disk);
    let unknown = world.views.history().lookup(&hash(77_000_000));
    assert!(
        matches!(unknown, Err(Error::Incomplete { .. })),
        "{unknown:?}"
    );
    assert!(
        world
            .views
            .rebuild(12_345)
            .is_err_and(|e| matches!(e, Error::NotDamaged { .. }))
    );
    rebuild_all(&mut world);
    assert_eq!(
        world.views.history().lookup(&hash(77_000_000)).unwrap(),
        None
    );
}

/// Ids whose articles are gone exist in no store: they come out of the pages that can still be read.
#[test]
fn remembered_ids_survive_the_rebuilding_of_their_bucket() {
    let (memory, mut world) = sealed_world();
    (0..3).for_each(|buffer| world.marks.raise(buffer, u64::MAX));
    for (path, len) in &files(&memory, "history")[..2] {
        memory.corrupt(path, len - 100, &[0; 100]).unwrap();
    }
    let disk: Arc<dyn Disk> = memory;
    world.reopen(&disk);
    assert_eq!(world.views.damaged()[0].kind, RunKind::History);
    rebuild_all(&mut world);
    world.check();
}

/// A withdrawn article is in the store, so a rebuild is offered it; it must not come back.
#[test]
fn a_rebuild_does_not_bring_back_what_was_withdrawn() {
    for octets in [100, 60_000] {
        let (memory, mut world) = sealed_world();
        for (path, len) in files(&memory, "history") {
            let at = len.saturating_sub(octets).max(64);
            memory
                .corrupt(&path, at, &vec![0; (len - at) as usize])
                .unwrap();
        }
        let disk: Arc<dyn Disk> = memory;
        world.reopen(&disk);
        assert!(!world.views.damaged().is_empty());
        rebuild_all(&mut world);
        world.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Any octets anywhere in any file: no panic, no wrong answer (files fail to open, or blocks to be read).
    #[test]
    fn prop_arbitrary_damage_is_never_answered_from(
        which: u8,
        at: u32,
        octets in prop::collection::vec(any::<u8>(), 1..64),
        cut in prop::option::of(any::<u32>()),
    ) {
        let (memory, mut world) = sealed_world();
        let all = files(&memory, "");
        let (path, len) = &all[usize::from(which) % all.len()];
        let at = u64::from(at) % len;
        let end = octets.len().min((len - at) as usize);
        memory.corrupt(path, at, &octets[..end]).unwrap();
        if let Some(cut) = cut {
            let file = memory.open(path, newsreel_host::OpenMode::ReadWrite).unwrap();
            file.set_len(u64::from(cut) % (len + 4096)).unwrap();
        }
        let disk: Arc<dyn Disk> = memory;
        world.reopen(&disk);
        no_wrong_answers(&world);
        rebuild_all(&mut world);
        world.check();
    }
}
