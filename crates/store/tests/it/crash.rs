//! Power cuts: the store is stopped at every sync of a run, and at every change, and opened again with the log that
//! would be there.  What is committed and computes as alive is there, octet for octet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, FaultyDisk, MemoryDisk, OpenMode};
use newsreel_store::conformance::{Log, Logged, Rig, article, config_of};
use newsreel_store::methods::{METHODS, Method, find};
use newsreel_store::{Access, CheckpointWrite, Marks, Missing, Result, StoreConfig};
use newsreel_wire::{Position, Sequence, Token};

/// Large enough for the register and some rounds, small enough to wrap quickly.
fn config(method: &str) -> StoreConfig {
    let mut config = config_of(method, 1 << 20);
    if method == "segment" {
        config.sets[0].keep_octets = Some(3 << 20);
    }
    config
}

/// A run on a disk that may stop: two buffers wrap several times, with checkpoints in between.  Gives the log of what
/// was committed, and the log as it would be had the last commit's frame reached the disk as well.
fn run(disk: Arc<dyn Disk>, method: &str, commits: u64) -> (Log, Log) {
    let Ok(mut rig) = Rig::new(disk, &config(method)) else {
        return (Log::default(), Log::default());
    };
    for commit in 0..commits {
        if let Err(log) = step(&mut rig, commit) {
            return (rig.log.clone(), log);
        }
    }
    (rig.log.clone(), rig.log.clone())
}

/// One commit, sometimes with a checkpoint.
fn step(rig: &mut Rig, commit: u64) -> std::result::Result<(), Log> {
    for n in 0..5 {
        // `place` would panic when its own commit is stopped.
        let len = 2000 + (commit as usize * 5 + n) * 7919 % 30_000;
        let number = commit * 10 + n as u64;
        if rig.try_place(number, len).is_err() {
            finish(rig)?;
            let _ = rig.try_place(number, len);
        }
    }
    if commit % 9 != 4 {
        return finish(rig);
    }
    let mut hints: Vec<Box<dyn CheckpointWrite>> = Vec::new();
    rig.store.checkpoint(&mut hints);
    finish(rig)?;
    let written: Result<()> = hints.iter_mut().try_for_each(|hint| hint.write());
    written.map_err(|_| rig.log.clone())
}

/// A commit; when it is stopped, what the log would be with it.
fn finish(rig: &mut Rig) -> std::result::Result<(), Log> {
    let mut batches = rig.seal();
    let written: Result<()> = batches
        .iter_mut()
        .try_for_each(|batch| batch.write().and_then(|()| batch.sync()));
    if written.is_err() {
        return Err(rig.log_with_open());
    }
    rig.log_commit();
    Ok(())
}

/// How many articles of a log are alive and how many are not, by its reservations alone: dead is what lies below the
/// last one and was written in an earlier round.
fn expected(log: &Log) -> (usize, usize) {
    let marks: BTreeMap<_, _> = log
        .marks()
        .into_iter()
        .map(|marks| (marks.buffer, marks.reserved))
        .collect();
    let is_live = |logged: &&Logged| {
        let (at, mark) = (logged.token.position(), marks[&logged.token.buffer()]);
        let overwrites_from = at.cycle() + 1;
        overwrites_from > mark.cycle()
            || overwrites_from == mark.cycle() && at.offset() >= mark.offset()
    };
    let live = log.articles().filter(is_live).count();
    (live, log.articles().count() - live)
}

/// What must hold on a disk that a power cut left, with the log that is there.
fn check(left: &MemoryDisk, method: &str, log: &Log, what: &str) {
    let disk: Arc<dyn Disk> = Arc::new(left.clone());
    let rig = Rig::recover(
        Arc::clone(&disk),
        &config(method),
        log.clone(),
        Access::Write,
    );
    let mut rig = rig.unwrap_or_else(|error| panic!("{what}: {error}"));
    let tally = rig.read_all();
    // Exactly what the log's reservations leave alive is there: nothing more is given up.
    let (live, gone) = expected(log);
    assert_eq!(
        (tally.read, tally.gone, tally.corrupt),
        (live, gone, 0),
        "{what}"
    );
    // And it goes on: around once more, without harm.
    for number in 5000..5050 {
        rig.place(number, 30_000).unwrap();
    }
    rig.commit().unwrap();
    let tally = rig.read_all();
    assert_eq!(tally.corrupt, 0, "{what}, later: {tally:?}");
    assert!(tally.read > 20, "{what}, later: {tally:?}");
}

/// The log of a stopped run, and the one with the commit that was under way, if that is whole in the store.  `left` is
/// durable and stays as it is.
fn check_both(left: &MemoryDisk, method: &str, (committed, open): (&Log, &Log), what: &str) {
    check(&left.crash_losing_all(), method, committed, what);
    if open.commits() == committed.commits() {
        return;
    }
    let disk: Arc<dyn Disk> = Arc::new(left.crash_losing_all());
    let rig = Rig::recover(disk, &config(method), open.clone(), Access::ReadOnly);
    // Not whole: recovery cuts it, and what is left is the case above.
    if rig.is_ok_and(|rig| rig.has_last_commit()) {
        let what = format!("{what}, with the open commit");
        check(&left.crash_losing_all(), method, open, &what);
    }
}

/// What is there when the process alone is killed: everything written.
fn killed(disk: &MemoryDisk) -> MemoryDisk {
    let copy = MemoryDisk::new();
    copy_all(disk, &copy, Path::new("/spool"));
    copy
}

fn copy_all(disk: &MemoryDisk, copy: &MemoryDisk, dir: &Path) {
    copy.create_dir_all(dir).unwrap();
    for entry in disk.list(dir).unwrap_or_default() {
        let path = dir.join(entry.name);
        if entry.is_dir {
            copy_all(disk, copy, &path);
            continue;
        }
        let mut octets = vec![0; entry.len as usize];
        let from = disk.open(&path, OpenMode::Read).unwrap();
        from.read_exact_at(&mut octets, 0).unwrap();
        let to = copy.open(&path, OpenMode::CreateNew).unwrap();
        to.write_at(&octets, 0).unwrap();
        to.sync_all().unwrap();
    }
    copy.sync_dir(dir).unwrap();
}

fn stop_everywhere(
    commits: u64,
    stride: usize,
    count: fn(&FaultyDisk) -> u64,
    stop_at: fn(&FaultyDisk, u64),
) {
    let in_files = METHODS.iter().filter(|method| method.in_files);
    let (shares, mut share) = (in_files.count(), 0);
    for Method {
        name: method,
        in_files,
        ..
    } in METHODS
    {
        // Files do not wrap, and each article is several changes: a third of the commits has everything that can be stopped,
        // and where not every place is stopped at, a fifth of the places.  Only names differ among these methods: they share
        // the places.
        let (commits, stride, first) = match (*in_files, stride) {
            (false, _) => (commits, stride, 1),
            (true, 1) => (commits / 3, shares, 1 + share),
            (true, _) => (commits / 3, 5 * stride * shares, 1 + 5 * stride * share),
        };
        share += usize::from(*in_files);
        let whole = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        run(Arc::new(whole.clone()), method, commits);
        let total = count(&whole);
        assert!(total > commits, "{method}: {total} places to stop at");
        for nth in (first as u64..=total).step_by(stride) {
            let memory = MemoryDisk::new();
            let faulty = FaultyDisk::new(Arc::new(memory.clone()));
            stop_at(&faulty, nth);
            let (committed, open) = run(Arc::new(faulty), method, commits);
            let lefts = [
                ("some lost", memory.crash(nth)),
                ("all lost", memory.crash_losing_all()),
                ("killed", killed(&memory)),
            ];
            for (what, left) in lefts {
                let what = format!("{method}, stop {nth}, {what}");
                check_both(&left, method, (&committed, &open), &what);
            }
        }
    }
}

#[test]
fn stopped_at_every_sync() {
    let count = |disk: &FaultyDisk| disk.counts().syncs();
    stop_everywhere(40, 1, count, FaultyDisk::stop_at_sync);
}

#[test]
fn stopped_at_every_third_change() {
    let count = |disk: &FaultyDisk| disk.counts().changes();
    stop_everywhere(36, 3, count, FaultyDisk::stop_at_change);
}

/// DESIGN.md: the kill between buffer write and log sync, on a wrapped buffer, must not destroy anything that
/// computes as alive.
#[test]
fn killed_between_buffer_and_log_on_a_wrapped_buffer() {
    let memory = MemoryDisk::new();
    let mut rig = Rig::new(Arc::new(memory.clone()), &config("cnfs")).unwrap();
    let mut number = 0;
    for _ in 0..100 {
        for _ in 0..5 {
            rig.place(number, 6000).unwrap();
            number += 1;
        }
        rig.commit().unwrap();
        let log = rig.log.clone();
        // A commit that the log never hears of, written and synced.
        while rig.try_place(90_000 + number, 9000).is_ok() {
            number += 1;
        }
        for batch in &mut rig.seal() {
            batch.write().unwrap();
            batch.sync().unwrap();
        }
        drop(rig);
        rig = Rig::recover(
            Arc::new(memory.clone()),
            &config("cnfs"),
            log,
            Access::Write,
        )
        .unwrap();
        let tally = rig.read_all();
        let (live, gone) = expected(&rig.log);
        assert_eq!((tally.read, tally.gone, tally.corrupt), (live, gone, 0));
    }
    assert!(rig.reader.facts().iter().any(|facts| facts.cycle > 2));
}

/// A length with which a record fills whole pages, so that nothing shows where its batch ends.
fn page_exact(number: u64, pages: usize) -> usize {
    let mut len = pages * 4096 - 200;
    while !(article(number, len).0.len() + 64)
        .next_multiple_of(64)
        .is_multiple_of(4096)
    {
        len += 1;
        assert!(len < (pages + 1) * 4096, "no such length");
    }
    len
}

/// What an unfinished commit left is found behind the log's end, also over the end of a cycle and of several commits; what
/// an earlier one left behind that is no part of it.
#[test]
fn what_the_last_commits_left_is_told_from_what_earlier_ones_left() {
    for method in METHODS.iter().map(|method| method.name) {
        let memory = MemoryDisk::new();
        let open = |log: Log| {
            let disk: Arc<dyn Disk> = Arc::new(memory.clone());
            let mut rig = Rig::recover(disk, &config(method), log, Access::Write).unwrap();
            // Cards are small: longer ones fill a file as soon as articles do.
            rig.xref_octets = 1000;
            rig
        };
        let mut rig = open(Log::default());
        for round in 0..60 {
            let number = round * 100;
            for n in 0..3 {
                rig.place(number + n, 9000).unwrap();
            }
            rig.commit().unwrap();
            let log = rig.log.clone();
            // Unfinished: twenty articles, of which the first page is lost.
            let mut left: Vec<_> = (10..30)
                .map_while(|n| rig.try_place(number + n, page_exact(number + n, 1)).ok())
                .collect();
            write(&mut rig);
            let Some(first) = left.first() else {
                rig = open(log);
                continue;
            };
            spoil(&memory, &rig, first);
            rig = open(log.clone());
            let mut others = left_over(&mut rig, &log);
            others.sort_unstable();
            let mut left = left.split_off(1);
            left.sort_unstable();
            assert_eq!(others, left, "{method}, {round}");
            // Unfinished again, two commits, the first as long as the page that is gone.
            rig.pass_over(1000);
            let mut newer = Vec::new();
            for n in [40, 50] {
                for n in n..n + 1 + (n - 40) / 5 {
                    newer.extend(rig.try_place(number + n, page_exact(number + n, 1)));
                }
                write(&mut rig);
            }
            rig = open(log.clone());
            let mut found = left_over(&mut rig, &log);
            found.sort_unstable();
            newer.sort_unstable();
            assert_eq!(found, newer, "{method}, {round}");
            drop(rig);
            rig = open(log);
        }
        assert!(
            rig.reader.facts().iter().any(|facts| facts.cycle > 1),
            "{method} wraps"
        );
    }
}

/// The log says that the file in front of the oldest was dropped, and has lost what it said of the oldest.
#[test]
fn what_was_dropped_hides_nothing_that_is_left() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut rig = Rig::new(disk, &config_of("segment", 1 << 20)).unwrap();
    for number in 0..100 {
        rig.place(number, 30_000).unwrap();
        rig.commit().unwrap();
    }
    let articles: Vec<_> = rig.log.articles().copied().collect();
    let of = |cycle| {
        let here = articles.iter();
        let mut here = here.filter(move |logged| logged.token.position().cycle() == cycle);
        (here.next().unwrap(), here.next_back().unwrap())
    };
    let [(first, last), (behind, _)] = [2, 3].map(of);
    let marks = Marks {
        buffer: first.token.buffer(),
        end: first.token.position(),
        reserved: Position::new(3, first.token.position().offset()),
        known: None,
    };
    let missing = Missing {
        last: Sequence(first.sequence.0 - 1),
        before: Some(behind.sequence),
        article_octets_max: 1 << 20,
        commit_octets_max: 1 << 20,
        is_hurt: true,
    };
    let left = rig.store.left_over(&[marks], missing).unwrap();
    let found: Vec<Sequence> = left[0].articles.iter().map(|found| found.0).collect();
    let wanted: Vec<Sequence> = (first.sequence.0..=last.sequence.0).map(Sequence).collect();
    assert_eq!(found, wanted);
}

/// The last article fills its file to the end, and no other was made: the next start passed over the one to come, which was then
/// taken for lost.
#[test]
fn a_file_that_is_full_to_the_end_is_followed_by_the_next() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let config = config_of("segment", 1 << 20);
    let mut rig = Rig::new(Arc::clone(&disk), &config).unwrap();
    let room = rig.reader.buffers()[0].cycle_octets();
    let mut len = room as usize - 200;
    while (article(1, len).0.len() as u64 + 64).next_multiple_of(64) != room {
        len += 1;
    }
    rig.place(1, len).unwrap();
    rig.commit().unwrap();
    let mut rig = Rig::recover(disk, &config, rig.log.clone(), Access::Write).unwrap();
    let token = rig.place(2, 500).unwrap();
    rig.commit().unwrap();
    assert_eq!(token.position().cycle(), 2);
    assert_eq!(rig.read_all().read, 2);
}

/// Writes the open batches; the log never hears of them.
fn write(rig: &mut Rig) {
    for batch in &mut rig.seal() {
        batch.write().unwrap();
        batch.sync().unwrap();
    }
}

fn left_over(rig: &mut Rig, log: &Log) -> Vec<Token> {
    let missing = Missing {
        last: log.end(),
        before: None,
        article_octets_max: 1 << 20,
        commit_octets_max: 1 << 20,
        is_hurt: false,
    };
    let left = rig.store.left_over(&log.marks(), missing).unwrap();
    left.into_iter()
        .flat_map(|left| left.articles)
        .map(|(_, token)| token)
        .collect()
}

/// Overwrites the page of an article; where articles are files that of its card, which others share: its record alone.
fn spoil(disk: &MemoryDisk, rig: &Rig, token: &Token) {
    let buffer = rig.reader.buffer(token.buffer()).unwrap();
    let mut path = PathBuf::from(buffer.facts().path);
    let (method, mut octets) = (buffer.facts().method, 4096);
    if find(method).unwrap().in_files {
        path.push(".catalogue");
        octets = 128;
    }
    if method != "cnfs" {
        path.push(format!("{:08}.seg", token.position().cycle()));
    }
    let file = disk.open(&path, OpenMode::ReadWrite).unwrap();
    file.write_at(&vec![b'?'; octets], token.position().offset())
        .unwrap();
}
