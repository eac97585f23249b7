//! A catalogue does not grow for ever: files of which nothing is left go, and nothing else does.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, FaultyDisk, MemoryDisk, Op, OpenMode};
use newsreel_store::conformance::{Log, Logged, Rig, config_of};
use newsreel_store::{Access, Result, Written};
use newsreel_wire::Token;

use crate::common::walked;

/// A card is so long that a file has some dozen.
const XREF_OCTETS: usize = 60_000;
const ARTICLES: u64 = 60;

/// The files of the catalogue.
fn files(disk: &dyn Disk) -> Vec<String> {
    let dir = Path::new("/spool/articles/main/.catalogue");
    let entries = disk.list(dir).unwrap_or_default().into_iter();
    let names = entries.map(|entry| entry.name);
    names.filter(|name| name.ends_with(".seg")).collect()
}

fn filled(disk: Arc<dyn Disk>) -> Rig {
    filled_with(disk, XREF_OCTETS, ARTICLES)
}

fn filled_with(disk: Arc<dyn Disk>, xref_octets: usize, articles: u64) -> Rig {
    let mut rig = Rig::new(disk, &config_of("md5spool", 1 << 20)).unwrap();
    rig.xref_octets = xref_octets;
    for number in 0..articles {
        rig.place(number, 500).unwrap();
        if number % 10 == 9 {
            rig.commit().unwrap();
        }
    }
    rig
}

/// Takes articles out that the log has withdrawn; with the next commit their files and cards go.
fn withdraw(rig: &mut Rig, articles: &[Logged]) -> Result<()> {
    let tokens: Vec<_> = articles.iter().map(|logged| logged.token).collect();
    let mut writes = Vec::new();
    rig.store.withdrawn(&tokens, &mut writes);
    for write in &mut writes {
        write.write()?;
        write.sync()?;
    }
    Ok(())
}

/// A checkpoint, and the commits by which what it found goes.
fn reclaim(rig: &mut Rig) -> Result<()> {
    rig.checkpoint()?;
    rig.commit()?;
    rig.commit()
}

fn all_there(rig: &Rig, articles: &[Logged], what: &str) {
    for logged in articles {
        rig.read(logged)
            .unwrap_or_else(|error| panic!("{what}: {logged:?}: {error}"));
    }
}

#[test]
fn files_of_which_no_card_is_left_go() {
    let memory = MemoryDisk::new();
    let mut rig = filled(Arc::new(memory.clone()));
    let all: Vec<Logged> = rig.log.articles().copied().collect();
    let before = files(&memory);
    assert!(before.len() >= 4, "{before:?}");
    reclaim(&mut rig).unwrap();
    assert_eq!(files(&memory), before, "nothing is withdrawn");
    // The first of all stays: all others of its file may go, and the whole next file.
    let (kept, rest) = all.split_at(1);
    let in_front = |logged: &&Logged| logged.token.position().cycle() <= 2;
    let gone: Vec<Logged> = rest.iter().take_while(in_front).copied().collect();
    let behind = &rest[gone.len()..];
    withdraw(&mut rig, &gone).unwrap();
    reclaim(&mut rig).unwrap();
    assert_eq!(files(&memory), before, "one card is left in front");
    withdraw(&mut rig, kept).unwrap();
    // Only a checkpoint looks.
    rig.commit().unwrap();
    assert_eq!(files(&memory), before);
    reclaim(&mut rig).unwrap();
    assert_eq!(files(&memory), before[2..]);
    all_there(&rig, behind, "reclaimed");
    // And it goes on, behind a restart too; then all but what is written on may go.
    let log = rig.log.clone();
    drop(rig);
    let config = config_of("md5spool", 1 << 20);
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let mut rig = Rig::recover(disk, &config, log, Access::Write).unwrap();
    all_there(&rig, behind, "after a restart");
    assert_eq!(files(&memory), before[2..]);
    withdraw(&mut rig, behind).unwrap();
    reclaim(&mut rig).unwrap();
    assert_eq!(files(&memory), before[before.len() - 1..]);
    rig.place(1000, 500).unwrap();
    rig.commit().unwrap();
    all_there(&rig, &[*rig.log.articles().last().unwrap()], "later");
}

/// A file of the catalogue that was lost looked like one in which nothing is left: it was dropped with the next checkpoint, and all
/// behind it up to the first card that could be read.
#[test]
fn a_file_of_which_nothing_can_be_read_is_not_dropped() {
    let config = config_of("md5spool", 1 << 20);
    let first = Path::new("/spool/articles/main/.catalogue/00000001.seg");
    for how in ["removed", "zeros", "cut"] {
        let memory = MemoryDisk::new();
        let rig = filled(Arc::new(memory.clone()));
        let all: Vec<Logged> = rig.log.articles().copied().collect();
        let log = rig.log.clone();
        drop(rig);
        let file = memory.open(first, OpenMode::ReadWrite).unwrap();
        let mut whole = vec![0; 1 << 20];
        file.read_exact_at(&mut whole, 0).unwrap();
        match how {
            "removed" => memory.remove(first).unwrap(),
            "zeros" => file.write_at(&vec![0; (1 << 20) - 8192], 8192).unwrap(),
            _ => file.set_len(8192).unwrap(),
        }
        let mut rig = Rig::recover(Arc::new(memory.clone()), &config, log, Access::Write).unwrap();
        let is_behind = |logged: &&Logged| logged.token.position().cycle() > 1;
        let behind: Vec<Logged> = all.iter().filter(is_behind).copied().collect();
        assert!(behind.len() < all.len());
        withdraw(&mut rig, &behind[..1]).unwrap();
        reclaim(&mut rig).unwrap();
        all_there(&rig, &behind[1..], how);
        // Somebody brings it back.
        let file = memory.open(first, OpenMode::CreateOrOpen);
        file.unwrap().write_at(&whole, 0).unwrap();
        let log = rig.log.clone();
        drop(rig);
        let rig = Rig::recover(Arc::new(memory), &config, log, Access::Write).unwrap();
        let in_front = all.len() - behind.len();
        all_there(&rig, &all[..in_front], how);
        all_there(&rig, &behind[1..], how);
    }
}

/// Has what is lost of the catalogue closed, but for these articles; how many places.
fn close(rig: &Rig, wanted: &[Token]) -> u64 {
    let buffer = Arc::clone(rig.reader.buffers()[0]);
    let holes = buffer.holes().unwrap();
    let records = buffer.closed(&holes, wanted);
    let written = Arc::<Written>::default();
    if let Some(mut write) = buffer.restoring(records, Arc::clone(&written)) {
        write.write().unwrap();
        write.sync().unwrap();
    }
    written.count()
}

/// Zeros stayed where the cards of withdrawn articles had lain, and looked like cards that were lost: the catalogue was called damaged
/// for ever, and neither that file nor any behind it went.
#[test]
fn what_is_lost_and_nobodys_is_closed_and_goes() {
    let config = config_of("md5spool", 1 << 20);
    let first = Path::new("/spool/articles/main/.catalogue/00000001.seg");
    for how in ["removed", "zeros", "rot", "cut", "middle"] {
        let memory = MemoryDisk::new();
        let rig = filled(Arc::new(memory.clone()));
        let all: Vec<Logged> = rig.log.articles().copied().collect();
        let (log, before) = (rig.log.clone(), files(&memory));
        drop(rig);
        let file = memory.open(first, OpenMode::ReadWrite).unwrap();
        match how {
            "removed" => memory.remove(first).unwrap(),
            "zeros" => file.write_at(&vec![0; (1 << 20) - 8192], 8192).unwrap(),
            "middle" => file.write_at(&vec![0; 300_000], 200_000).unwrap(),
            "rot" => file.write_at(&vec![b'x'; 600_000], 200_000).unwrap(),
            _ => file.set_len(200_000).unwrap(),
        }
        let mut rig = Rig::recover(Arc::new(memory.clone()), &config, log, Access::Write).unwrap();
        let in_front = |logged: &&Logged| logged.token.position().cycle() <= 2;
        let gone: Vec<Logged> = all.iter().take_while(in_front).copied().collect();
        // One that cannot be read is wanted still.
        let wanted = gone.iter().filter(|it| it.token.position().cycle() == 1);
        let wanted = *wanted.filter(|it| rig.read(it).is_err()).nth(1).unwrap();
        let rest: Vec<Logged> = gone
            .iter()
            .filter(|it| it.number != wanted.number)
            .copied()
            .collect();
        withdraw(&mut rig, &rest).unwrap();
        reclaim(&mut rig).unwrap();
        assert_eq!(files(&memory).last(), before.last());
        assert!(close(&rig, &[wanted.token]) > 0, "{how}");
        reclaim(&mut rig).unwrap();
        assert_eq!(files(&memory), before, "{how}: one is wanted");
        let holes = rig.reader.buffers()[0].holes().unwrap();
        assert_eq!(holes.len(), 1, "{how}: {holes:?}");
        assert_eq!(holes[0].stretch.start, wanted.token.position(), "{how}");
        assert_eq!(close(&rig, &[]), 1, "{how}");
        assert_eq!(rig.reader.buffers()[0].facts().state(), "ok", "{how}");
        reclaim(&mut rig).unwrap();
        assert_eq!(files(&memory), before[2..], "{how}");
        let behind = &all[gone.len()..];
        all_there(&rig, behind, how);
        let log = rig.log.clone();
        drop(rig);
        let rig = Rig::recover(Arc::new(memory), &config, log, Access::Write).unwrap();
        all_there(&rig, behind, how);
        assert_eq!(rig.reader.buffers()[0].facts().state(), "ok", "{how}");
    }
}

/// A card that a later newsreel wrote was taken for a damaged one, and written over.
#[test]
fn what_a_later_version_wrote_is_not_written_over() {
    let memory = MemoryDisk::new();
    let rig = filled(Arc::new(memory.clone()));
    let all: Vec<Logged> = rig.log.articles().copied().collect();
    let first = Path::new("/spool/articles/main/.catalogue/00000001.seg");
    let file = memory.open(first, OpenMode::ReadWrite).unwrap();
    let (at, mut uuid, mut record) = (all[1].token.position(), [0; 16], [0; 64]);
    file.read_exact_at(&mut uuid, 32).unwrap();
    file.read_exact_at(&mut record, at.offset()).unwrap();
    let key = crc32c::crc32c(&uuid);
    assert_eq!(
        record[60..],
        crc32c::crc32c_append(key, &record[..60]).to_le_bytes()
    );
    record[2] = 9;
    let crc = crc32c::crc32c_append(key, &record[..60]);
    record[60..].copy_from_slice(&crc.to_le_bytes());
    file.write_at(&record, at.offset()).unwrap();
    let buffer = Arc::clone(rig.reader.buffers()[0]);
    assert_eq!(buffer.holes().unwrap(), []);
    let written = Arc::<Written>::default();
    let records = [(at, vec![1; 64])].into_iter().collect();
    let mut write = buffer.restoring(records, written).unwrap();
    write.write().unwrap();
    write.sync().unwrap();
    let mut there = [0; 64];
    file.read_exact_at(&mut there, at.offset()).unwrap();
    assert_eq!(there, record);
}

/// A power cut at any sync of it costs no article that is not withdrawn, and the rest of it is done later.
#[test]
fn a_power_cut_while_files_go_costs_nothing() {
    let config = config_of("md5spool", 1 << 20);
    let run = |faulty: &FaultyDisk| -> (Log, Vec<Logged>) {
        let mut rig = filled(Arc::new(faulty.clone()));
        let all: Vec<Logged> = rig.log.articles().copied().collect();
        let (gone, kept) = all.split_at(40);
        // Where it was stopped its log is as it was then.
        let _ = withdraw(&mut rig, gone).and_then(|()| reclaim(&mut rig));
        (rig.log.clone(), kept.to_vec())
    };
    let counting = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    drop(filled(Arc::new(counting.clone())));
    let filled_by = counting.counts().syncs();
    let whole = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    run(&whole);
    let total = whole.counts().syncs();
    assert!(total > filled_by + 3);
    for nth in filled_by + 1..=total {
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        faulty.stop_at_sync(nth);
        let (log, kept) = run(&faulty);
        for left in [memory.crash(nth), memory.crash_losing_all()] {
            let what = format!("stopped at {nth}");
            let disk: Arc<dyn Disk> = Arc::new(left.clone());
            let mut rig = Rig::recover(disk, &config, log.clone(), Access::Write).unwrap();
            all_there(&rig, &kept, &what);
            let gone: Vec<Logged> = rig.log.articles().take(40).copied().collect();
            withdraw(&mut rig, &gone).unwrap();
            reclaim(&mut rig).unwrap();
            all_there(&rig, &kept, &what);
            let first = kept[0].token.position().cycle();
            assert_eq!(files(&left)[0], format!("{first:08}.seg"), "{what}");
        }
    }
}

/// Pages of the catalogue in which there is something.
fn used_pages(disk: &dyn Disk) -> usize {
    let dir = Path::new("/spool/articles/main/.catalogue");
    let used = |name: &String| {
        let file = disk.open(&dir.join(name), OpenMode::Read).unwrap();
        let mut octets = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read_exact_at(&mut octets, 0).unwrap();
        let pages = octets.chunks(4096);
        pages
            .filter(|page| page.iter().any(|octet| *octet != 0))
            .count()
    };
    files(disk).iter().map(used).sum()
}

/// Cards that stay keep their files and their places, but not what lay between them.
#[test]
fn the_room_between_cards_that_stay_is_given_back() {
    for (xref_octets, articles, apart) in [(XREF_OCTETS, ARTICLES, 10), (3000, 1200, 150)] {
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let mut rig = filled_with(Arc::new(faulty.clone()), xref_octets, articles);
        let given_back = || faulty.counts().of(Op::GiveBack);
        let all = rig.log.articles().copied();
        let (kept, gone): (Vec<Logged>, Vec<Logged>) =
            all.partition(|logged| logged.number % apart == 0);
        let tokens: Vec<Token> = kept.iter().map(|logged| logged.token).collect();
        let (before, pages) = (files(&memory), used_pages(&memory));
        withdraw(&mut rig, &gone).unwrap();
        reclaim(&mut rig).unwrap();
        assert_eq!(given_back(), 0, "somebody may be on his way between them");
        assert_eq!(walked(&rig), tokens);
        // Nothing else was withdrawn, and it is done all the same, once.
        reclaim(&mut rig).unwrap();
        let times = given_back();
        assert!(times + 1 >= before.len() as u64, "{times} of {before:?}");
        reclaim(&mut rig).unwrap();
        assert_eq!(given_back(), times);
        let left = used_pages(&memory);
        // The file that is written on is left alone.
        assert!(left < pages * 6 / 10, "{left} of {pages} pages");
        assert_eq!(files(&memory), before);
        assert_eq!(walked(&rig), tokens);
        all_there(&rig, &kept, "given back");

        let log = rig.log.clone();
        drop(rig);
        let config = config_of("md5spool", 1 << 20);
        let mut rig = Rig::recover(Arc::new(memory.clone()), &config, log, Access::Write).unwrap();
        assert_eq!(walked(&rig), tokens);
        all_there(&rig, &kept, "after a restart");
        withdraw(&mut rig, &kept).unwrap();
        reclaim(&mut rig).unwrap();
        assert_eq!(files(&memory), before[before.len() - 1..]);
    }
}

/// Cards of which one in ten stays, and what was withdrawn of them.
fn sparse(disk: Arc<dyn Disk>) -> (Rig, Vec<Logged>, Vec<Logged>) {
    let mut rig = filled(disk);
    let all = rig.log.articles().copied();
    let (kept, gone): (Vec<Logged>, Vec<Logged>) = all.partition(|logged| logged.number % 10 == 0);
    withdraw(&mut rig, &gone).unwrap();
    (rig, kept, gone)
}

/// In whatever order they go.
#[test]
fn cards_next_to_each_other_are_overwritten_together() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let mut rig = filled_with(Arc::new(faulty.clone()), 50, 200);
    let stored = faulty.octets_written(".catalogue/");
    let all = rig.log.articles().copied();
    let (kept, mut gone): (Vec<Logged>, Vec<Logged>) =
        all.partition(|logged| logged.number % 10 == 3);
    gone.reverse();
    let reads = faulty.octets_read(".catalogue/");
    // So many at once wait for somebody else's sync: of one that goes alone.
    let (last, others) = gone.split_last().unwrap();
    withdraw(&mut rig, others).unwrap();
    withdraw(&mut rig, &[*last]).unwrap();
    let written = faulty.octets_written(".catalogue/") - stored;
    assert!(written <= stored, "{written} octets for {stored} of cards");
    let read = faulty.octets_read(".catalogue/") - reads;
    assert!(read <= 2 * stored, "{read} octets for {stored} of cards");
    all_there(&rig, &kept, "beside them");
    assert_eq!(walked(&rig).len(), kept.len());
    assert!(gone.iter().all(|logged| rig.read(logged).is_err()));
}

#[test]
fn a_power_cut_while_room_is_given_back_costs_nothing() {
    let config = config_of("md5spool", 1 << 20);
    let twice = |rig: &mut Rig| reclaim(rig).and_then(|()| reclaim(rig));
    let whole = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let (mut rig, ..) = sparse(Arc::new(whole.clone()));
    let before = whole.counts().changes();
    twice(&mut rig).unwrap();
    let steps = whole.counts().changes() - before;
    // Headers written and synced, room given back, of several files.
    assert!(steps >= 9, "{steps}");
    for nth in 1..=steps {
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let (mut rig, kept, gone) = sparse(Arc::new(faulty.clone()));
        faulty.stop_at_change(faulty.counts().changes() + nth);
        // Some of it is no reason to do without the rest of a checkpoint.
        let _ = twice(&mut rig);
        let log = rig.log.clone();
        for left in [memory.crash(nth), memory.crash_losing_all()] {
            let disk: Arc<dyn Disk> = Arc::new(left);
            let mut rig = Rig::recover(disk, &config, log.clone(), Access::Write).unwrap();
            let what = format!("stopped at {nth} of {steps}");
            all_there(&rig, &kept, &what);
            withdraw(&mut rig, &gone).unwrap();
            twice(&mut rig).unwrap();
            all_there(&rig, &kept, &what);
        }
    }
}
