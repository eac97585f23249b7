//! The two copies of a buffer's header, each damaged in one way or another, of all buffers at once.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{
    Disk, Effect, Fault, FaultyDisk, File, MemoryDisk, Op, OpenMode, replace_file,
};
use newsreel_store::conformance::{Rig, config_of};
use newsreel_store::{Access, Comparison, ScanRange, Scanned, open_alone};
use newsreel_wire::{POSITION_UNIT, Position, Token};

use crate::common::{ARTICLE, FILE, erase, feed, sized};

const ROOM: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// What became of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copy {
    Sound,
    /// A bit of it is another.
    Flipped,
    /// A power cut came while it was written: only its first sector is there.
    Torn,
    Blank,
    /// The medium fails there.
    Unreadable,
}

const COPIES: [Copy; 5] = [
    Copy::Sound,
    Copy::Flipped,
    Copy::Torn,
    Copy::Blank,
    Copy::Unreadable,
];

fn spoil(faulty: &FaultyDisk, path: &str, at: u64, copy: Copy) {
    let file = faulty.open(Path::new(path), OpenMode::ReadWrite).unwrap();
    let mut page = vec![0; PAGE as usize];
    file.read_exact_at(&mut page, at).unwrap();
    match copy {
        Copy::Sound => return,
        Copy::Flipped => page[100] ^= 4,
        Copy::Torn => page[512..].fill(0x55),
        Copy::Blank => page.fill(0),
        Copy::Unreadable => {
            let fault = Fault::new(Op::Read, path, Effect::Medium);
            return faulty.add(fault.covering(at + 17).forever());
        }
    }
    let file: Arc<dyn File> = file;
    file.write_at(&page, at).unwrap();
}

/// Articles of which the bitmaps say that they were withdrawn.
fn without_bits(rig: &Rig) -> usize {
    let mut missing = 0;
    for buffer in rig.reader.buffers() {
        let mut scan = Arc::clone(buffer).scan(ScanRange::Live);
        while let Some(scanned) = scan.step().unwrap() {
            if let Scanned::Record { token, .. } = scanned {
                let start = token.position();
                let end = Position::new(start.cycle(), start.offset() + POSITION_UNIT);
                let wrong = buffer.wrong_bits(start..end, &[start]).unwrap();
                missing += wrong.missing.len();
            }
        }
    }
    missing
}

/// Of blocks larger than the unit of positions every article seemed withdrawn; and of a bitmap that was lost nothing was written again
/// where the end of a cycle lay in the stretch that was looked at.
#[test]
fn what_a_bitmap_says_holds_for_blocks_of_any_size_and_over_the_end_of_a_cycle() {
    let mut spans = 0;
    for block in [64, 128, 512, 4096] {
        let mut config = config_of("cnfs", ROOM);
        for buffer in &mut config.buffers {
            buffer.block_octets = Some(block);
        }
        let disk = Arc::new(MemoryDisk::new());
        let mut rig = Rig::new(Arc::clone(&disk) as Arc<dyn Disk>, &config).unwrap();
        feed(&mut rig, 3 * ROOM);
        rig.checkpoint().unwrap();
        assert_eq!(without_bits(&rig), 0, "{block}");
        let octets = usize::try_from(ROOM.div_ceil(block * 8)).unwrap();
        for buffer in rig.reader.buffers() {
            let path = format!("/spool/buffers/{}", buffer.name());
            let file = disk.open(Path::new(&path), OpenMode::ReadWrite).unwrap();
            file.write_at(&vec![0; octets], 2 * PAGE).unwrap();
            let (mut starts, mut scan) = (Vec::new(), Arc::clone(buffer).scan(ScanRange::Live));
            while let Some(scanned) = scan.step().unwrap() {
                if let Scanned::Record { token, .. } = scanned {
                    starts.push(token.position());
                }
            }
            let (first, last) = (starts[0], starts[starts.len() - 1]);
            spans += last.cycle() - first.cycle();
            let end = Position::new(last.cycle(), last.offset() + block);
            let wrong = buffer.wrong_bits(first..end, &starts).unwrap();
            assert!(wrong.missing == starts && wrong.extra.is_empty(), "{block}");
            buffer.mend_bits(&wrong).unwrap();
            let wrong = buffer.wrong_bits(first..end, &starts[1..]).unwrap();
            assert_eq!(
                (wrong.missing, wrong.extra),
                (vec![], vec![first]),
                "{block}"
            );
        }
        assert_eq!(without_bits(&rig), 0, "{block}");
    }
    assert!(spans > 4, "the end of a cycle lies in {spans} of them");
}

/// A stretch at whose end the bitmap was out of date was not compared at all; and who compared wrote bits over those of what overwrote
/// it meanwhile.
#[test]
fn a_bitmap_is_compared_as_far_as_it_goes_and_what_was_overwritten_meanwhile_keeps_its_bits() {
    let disk = Arc::new(MemoryDisk::new());
    let mut rig = Rig::new(Arc::clone(&disk) as Arc<dyn Disk>, &sized(ROOM)).unwrap();
    feed(&mut rig, ROOM / 2);
    rig.checkpoint().unwrap();
    let file = disk.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
    let octets = usize::try_from(ROOM / 64 / 8).unwrap();
    file.write_at(&vec![0xff; octets], 2 * PAGE).unwrap();
    let up_to_date = rig.log.articles().count();
    feed(&mut rig, ROOM / 8);
    let places = |rig: &Rig| -> Vec<Position> {
        let tokens = rig.log.articles().map(|logged| logged.token);
        tokens.map(|token| token.position()).collect()
    };
    let (starts, buffer) = (places(&rig), Arc::clone(rig.reader.buffers()[0]));
    let stretch = starts[0]..starts[starts.len() - 1];
    let wrong = buffer.wrong_bits(stretch.clone(), &starts).unwrap();
    assert!(wrong.missing.is_empty());
    assert!(wrong.extra.len() > 1000, "{}", wrong.extra.len());
    let last = wrong.extra.iter().max().unwrap();
    assert!(*last < starts[up_to_date]);
    // As if none of them were an article: all of it is overwritten before that is written.
    let wrong = buffer.wrong_bits(stretch, &[]).unwrap();
    feed(&mut rig, 2 * ROOM);
    rig.checkpoint().unwrap();
    assert_eq!(without_bits(&rig), 0);
    buffer.mend_bits(&wrong).unwrap();
    assert_eq!(without_bits(&rig), 0);
}

/// Where the medium of one copy could not be read the other was not tried, and a buffer both of whose copies were blank was called
/// blank whatever lay behind them.
#[test]
fn whatever_became_of_both_copies_the_articles_are_there_or_it_is_said_why_not() {
    let config = config_of("cnfs", ROOM);
    let paths = ["/spool/buffers/C0", "/spool/buffers/C1"];
    for (first, second) in COPIES
        .iter()
        .flat_map(|first| COPIES.map(|second| (*first, second)))
    {
        let what = format!("{first:?} and {second:?}");
        let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let mut rig = Rig::new(Arc::clone(&disk), &config).unwrap();
        feed(&mut rig, 3 * ROOM);
        rig.checkpoint().unwrap();
        // Behind the last headers.
        feed(&mut rig, ROOM / 4);
        let (before, log) = (rig.read_all(), rig.log.clone());
        drop(rig);
        for path in paths {
            spoil(&faulty, path, 0, first);
            spoil(&faulty, path, PAGE, second);
        }
        let open = |access| Rig::recover(Arc::clone(&disk), &config, log.clone(), access);
        if (first, second) == (Copy::Unreadable, Copy::Unreadable) {
            let error = open(Access::Write).unwrap_err().to_string();
            assert!(error.contains("/spool/buffers/C0"), "{error}");
            // It may have been a cable.
            faulty.clear();
            assert_eq!(open(Access::Write).unwrap().read_all(), before);
            continue;
        }
        let said = match (first, second) {
            (Copy::Sound, Copy::Sound) => "ok",
            (Copy::Sound, _) | (_, Copy::Sound) => "one copy of its header is damaged",
            _ => "it was made again, and",
        };
        for access in [Access::ReadOnly, Access::Write] {
            let rig = open(access).unwrap();
            for facts in rig.reader.facts() {
                let state = facts.state();
                assert!(state.contains(said), "{what}: {state}");
            }
            assert_eq!(rig.read_all(), before, "{what}");
        }
        // What is written there again can be read.
        let mut rig = open(Access::Write).unwrap();
        faulty.clear();
        feed(&mut rig, ROOM / 4);
        rig.checkpoint().unwrap();
        let (after, log) = (rig.read_all(), rig.log.clone());
        drop(rig);
        let rig = Rig::recover(disk, &config, log, Access::Write).unwrap();
        for facts in rig.reader.facts() {
            assert_eq!(facts.state(), "ok", "{what}");
        }
        assert_eq!((rig.read_all(), after.corrupt), (after, 0), "{what}");
        assert_eq!(without_bits(&rig), 0, "{what}");
    }
}

/// What lies in a buffer by itself: articles, and damaged places.
fn alone(disk: &Arc<dyn Disk>, path: &str) -> (u64, u64) {
    let (starts, damaged, _) = found_alone(disk, path);
    (starts.len() as u64, damaged)
}

/// Where the articles of a file by itself begin, how many places are damaged, and how many empty between articles.
fn found_alone(disk: &Arc<dyn Disk>, path: &str) -> (Vec<u64>, u64, usize) {
    let (mut starts, mut damaged, mut gaps) = (Vec::new(), 0, Vec::new());
    for reader in open_alone(disk, Path::new(path)).unwrap() {
        let mut scan = reader.unwrap().scan(ScanRange::Live);
        while let Some(scanned) = scan.step().unwrap() {
            match scanned {
                Scanned::Record {
                    token, sound: true, ..
                } => starts.push(token.position().offset()),
                Scanned::Record { .. } | Scanned::Damaged { .. } => damaged += 1,
                Scanned::Passed => {}
            }
        }
        scan.take_gaps(&mut gaps);
    }
    (starts, damaged, gaps.len())
}

/// Of a buffer without headers, or whose header was made again, what was overwritten at its end in part was damage, to who looks at it by
/// itself; and to whom the header had been written again what is about to be overwritten was there.
#[test]
fn a_header_that_is_made_again_says_where_the_buffer_stands() {
    let config = config_of("cnfs", ROOM);
    for (octets, is_by_scrub) in [(2, true), (3, true), (4, true), (5, true), (4, false)] {
        let octets = octets * ROOM;
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut rig = Rig::new(Arc::clone(&disk), &config).unwrap();
        feed(&mut rig, octets);
        rig.checkpoint().unwrap();
        let paths = ["C0", "C1"].map(|name| format!("/spool/buffers/{name}"));
        let before: Vec<_> = paths.iter().map(|path| alone(&disk, path)).collect();
        let log = rig.log.clone();
        drop(rig);
        for path in &paths {
            let file = disk.open(Path::new(path), OpenMode::ReadWrite).unwrap();
            // Full of zeros it passed for an empty one.
            for octet in [0xff, 0] {
                file.write_at(&vec![octet; 2 * PAGE as usize], 0).unwrap();
                let (articles, damaged) = alone(&disk, path);
                assert!(articles > 100 && damaged == 0, "{octets} {path} {octet}");
                // Nobody knows how far its bitmap was written: it is not heeded.
                let mut files = open_alone(&disk, Path::new(path)).unwrap();
                let reader = files.next().unwrap().unwrap();
                let facts = reader.facts();
                let whole = Position::new(facts.cycle, 0)..Position::new(facts.cycle, ROOM);
                assert_eq!(reader.bits(whole).unwrap(), None);
                let told = facts.complaint.unwrap();
                assert!(told.contains("shown with the others"), "{told}");
            }
        }
        let mut rig = Rig::recover(Arc::clone(&disk), &config, log, Access::Write).unwrap();
        match is_by_scrub {
            true => {
                for buffer in rig.reader.buffers() {
                    assert!(buffer.mend_header().unwrap().is_some());
                }
            }
            // Though nothing is new.
            false => rig.checkpoint().unwrap(),
        }
        let after: Vec<_> = paths.iter().map(|path| alone(&disk, path)).collect();
        assert_eq!(after, before, "{octets}");
        assert!(after.iter().all(|(_, damaged)| *damaged == 0), "{after:?}");
    }
}

/// A buffer of this size and blocks, with the articles that `fill` makes, without headers from then on; and what was in it.
fn headless(
    (octets, block): (u64, u64),
    fill: impl FnOnce(&mut Rig),
) -> (Arc<dyn Disk>, (u64, u64)) {
    let mut config = sized(octets);
    config.buffers[0].block_octets = Some(block);
    config.sets[0].erase_withdrawn = true;
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut rig = Rig::new(Arc::clone(&disk), &config).unwrap();
    fill(&mut rig);
    rig.checkpoint().unwrap();
    drop(rig);
    let before = alone(&disk, FILE);
    let file = disk.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
    file.write_at(&vec![0; 2 * PAGE as usize], 0).unwrap();
    (disk, before)
}

/// The size of its blocks and where its articles begin stand in the header alone: what fills the blocks was damage, and where they are large
/// and little was written nothing was found.
#[test]
fn of_a_buffer_without_headers_all_articles_are_found_whatever_the_size_of_its_blocks() {
    for (block, octets) in [64, 128, 512, 2048, 4096]
        .into_iter()
        .flat_map(|block| [48 << 10, 80 << 20].map(|octets| (block, octets)))
    {
        let what = format!("blocks of {block}, {octets} octets");
        let (disk, before) = headless((32 * ROOM, block), |rig| feed(rig, octets));
        let (articles, damaged) = alone(&disk, FILE);
        // Nobody knows what was about to be overwritten: it is there.
        assert!(
            before.0 > 5 && articles >= before.0 && damaged == 0,
            "{what}: {articles} articles of {before:?}, {damaged} damaged places"
        );
        // A few articles of one size, a batch each, where every other was erased.
        let (disk, before) = headless((32 * ROOM, block), |rig| {
            for number in 0..20 {
                let token = rig.place(number, 700).unwrap();
                rig.commit().unwrap();
                if number % 4 < 2 {
                    erase(rig, token);
                }
            }
        });
        assert!(before.0 > 3 && before.1 == 0, "{what}: {before:?}");
        assert_eq!(alone(&disk, FILE), before, "{what}");
        // Articles of all sizes, of which every other one of a buffer was erased.
        let (disk, before) = headless((32 * ROOM, block), |rig| {
            let mut tokens = Vec::new();
            for number in 0..2000 {
                let len = 300 + usize::try_from(number * 7919 % 5000).unwrap();
                let token = rig.place(number, len).unwrap();
                if number % 4 < 2 {
                    tokens.push(token);
                }
                if number % 50 == 49 {
                    rig.commit().unwrap();
                    tokens.drain(..).for_each(|token| erase(rig, token));
                }
            }
        });
        assert!(before.0 > 300 && before.1 == 0, "{what}: {before:?}");
        assert_eq!(alone(&disk, FILE), before, "{what}");
    }
}

/// Articles in a part of a page at the end were lost, and of one that the cut went through nothing was said.
#[test]
fn a_buffer_without_headers_that_was_cut_has_all_that_lies_in_front_of_the_cut() {
    for block in [64, 512] {
        let (disk, _) = headless((4 * ROOM, block), |rig| feed(rig, ROOM));
        let file = disk.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
        let (starts, ..) = found_alone(&disk, FILE);
        for octets in (100_000..400_000).rev().step_by(30_011) {
            file.set_len(octets).unwrap();
            let (articles, damaged) = alone(&disk, FILE);
            let in_front = starts.iter().filter(|start| **start <= octets).count() as u64;
            assert!(
                articles + 1 >= in_front,
                "{octets}: {articles} of {in_front}"
            );
            assert!(damaged <= 1, "{octets}: {damaged}");
            let reader = open_alone(&disk, Path::new(FILE)).unwrap().next();
            let told = reader.unwrap().unwrap().facts().complaint.unwrap();
            let is_told = told.contains(&format!("it was cut: {octets} are there"));
            assert!(is_told || octets % PAGE == 0, "{octets}: {told}");
        }
    }
}

/// Of a buffer that was cut in its bitmap only the read that failed was told.
#[test]
fn of_a_buffer_that_was_cut_in_front_of_its_articles_that_is_told() {
    for octets in [2 * PAGE, 20_001, 5 * PAGE] {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut rig = Rig::new(Arc::clone(&disk), &sized(ROOM * 8)).unwrap();
        feed(&mut rig, 10 * ROOM);
        rig.checkpoint().unwrap();
        drop(rig);
        let file = disk.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
        file.set_len(octets).unwrap();
        let reader = open_alone(&disk, Path::new(FILE)).unwrap().next();
        let reader = reader.unwrap().unwrap();
        let facts = reader.facts();
        let told = facts.complaint.unwrap();
        assert!(told.contains("so none is left"), "{octets}: {told}");
        let all = Position::new(facts.cycle, 0)..Position::new(facts.cycle, 8 * ROOM);
        assert_eq!(reader.bits(all).unwrap(), None);
        let (articles, damaged) = alone(&disk, FILE);
        assert!(articles == 0 && damaged > 0, "{octets}");
    }
}

/// Zeros over the front of a buffer whose headers are lost moved where its articles begin for good, and behind more than three quarters of
/// damage nothing was found alone.
#[test]
fn what_overwrites_the_front_of_a_buffer_costs_what_lay_there() {
    let room = 8 * ROOM;
    for block in [64, 512] {
        let mut config = sized(room);
        config.buffers[0].block_octets = Some(block);
        for (octet, eighths) in [(0, 1), (0, 4), (0xa5, 4), (0xa5, 7)] {
            let what = format!("blocks of {block}, {eighths} eighths of {octet}");
            let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
            let mut rig = Rig::new(Arc::clone(&disk), &config).unwrap();
            feed(&mut rig, room * 9 / 10);
            rig.checkpoint().unwrap();
            let capacity = |rig: &Rig| rig.reader.facts()[0].capacity_octets;
            let (before, log) = (capacity(&rig), rig.log.clone());
            drop(rig);
            let file = disk.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
            let front = usize::try_from(room / 8 * eighths).unwrap();
            file.write_at(&vec![octet; front], 0).unwrap();
            let all = log.articles().count() as u64;
            let (articles, _) = alone(&disk, FILE);
            let behind = all * (8 - eighths) / 8;
            assert!(articles * 10 > behind * 7, "{what}: {articles} of {all}");
            let rig = Rig::recover(Arc::clone(&disk), &config, log, Access::Write).unwrap();
            assert_eq!(capacity(&rig), before, "{what}");
        }
    }
}

/// Where another buffer's records lie over a part of a file without headers, the file was taken for that buffer's, and its own were not shown.
#[test]
fn another_buffers_records_over_a_part_hide_no_others() {
    let room = 8 * ROOM;
    let mut config = sized(room);
    config.buffers[0].block_octets = Some(512);
    let [(own, _), (other, _)] = [9, 7].map(|tenths| {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut rig = Rig::new(Arc::clone(&disk), &config).unwrap();
        feed(&mut rig, room * tenths / 10);
        rig.checkpoint().unwrap();
        (disk, rig.log.clone())
    });
    let (all, _) = alone(&own, FILE);
    let file = own.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
    file.write_at(&vec![0; 2 * PAGE as usize], 0).unwrap();
    let mut octets = vec![0; usize::try_from(2 * ROOM).unwrap()];
    let from = other.open(Path::new(FILE), OpenMode::Read).unwrap();
    from.read_exact_at(&mut octets, ROOM / 4).unwrap();
    file.write_at(&octets, ROOM / 4).unwrap();
    let (left, _) = alone(&own, FILE);
    assert!(left * 3 > all * 2 && left < all, "{left} of {all}");
}

/// A server took the key of what lay in front for its own: all that it had was unreadable, and more was written under that key.
#[test]
fn a_buffer_that_lost_its_headers_keeps_its_key_whatever_lies_in_front() {
    let (room, path) = (8 * ROOM, Path::new(FILE));
    let mut config = sized(room);
    config.buffers[0].block_octets = Some(512);
    let mut other = Rig::new(Arc::new(MemoryDisk::new()), &config).unwrap();
    feed(&mut other, room * 9 / 10);
    other.checkpoint().unwrap();
    let from = other.disk.open(path, OpenMode::Read).unwrap();
    let mut foreign = vec![0; usize::try_from(room).unwrap()];
    from.read_exact_at(&mut foreign, 0).unwrap();
    // So many eighths of it are the other's; whether the register was there before it knew keys.
    for (eighths, is_old) in [(1, false), (1, true), (6, false), (8, false)] {
        let what = format!("{eighths} eighths, {is_old}");
        let memory = MemoryDisk::new();
        let mut rig = Rig::new(Arc::new(memory.clone()), &config).unwrap();
        feed(&mut rig, room * 9 / 10);
        rig.checkpoint().unwrap();
        let (all, log) = (rig.read_all().read, rig.log.clone());
        drop(rig);
        let disk: Arc<dyn Disk> = Arc::new(memory.clone());
        if is_old {
            for file in ["register", "register.copy"] {
                let text = "newsreel buffers 1\n1 cnfs C0\n";
                replace_file(
                    &*disk,
                    &Path::new("/spool/buffers").join(file),
                    text.as_bytes(),
                )
                .unwrap();
            }
        }
        let file = disk.open(path, OpenMode::ReadWrite).unwrap();
        let part = foreign.len() / 8 * eighths;
        file.write_at(&foreign[..part], 0).unwrap();
        file.write_at(&[0xa5; 2 * PAGE as usize], 0).unwrap();
        let rig = Rig::recover(Arc::clone(&disk), &config, log, Access::Write);
        if eighths == 8 {
            let why = rig.unwrap_err().to_string();
            assert!(why.contains("one of this buffer"), "{why}");
            continue;
        }
        let mut rig = rig.unwrap();
        let left = rig.read_all().read;
        assert!(left * 8 > all * (7 - eighths), "{what}: {left} of {all}");
        for number in 0..20 {
            rig.place(1_000_000 + number, 3000).unwrap();
        }
        rig.checkpoint().unwrap();
        let log = rig.log.clone();
        drop(rig);
        let rig = Rig::recover(disk, &config, log, Access::Write).unwrap();
        assert!(rig.read_all().read > left, "{what}");
    }
}

/// A segment of which the front was overwritten was empty to who looked at it alone, and nothing was damaged.
#[test]
fn what_overwrites_the_front_of_a_segment_is_told_and_hides_nothing() {
    let (room, path) = (8 * ROOM, "/spool/segments/main/00000001.seg");
    // So much was written; of that this stretch is overwritten, with this.
    for (octets, from, to, octet) in [
        (room, 3 * PAGE, room * 7 / 8, 0xa5),
        (room, 3 * PAGE, room * 7 / 8, 0),
        (room, ROOM, room * 7 / 8, 0xa5),
        (room, ROOM, room * 7 / 8, 0),
        (room, 3 * PAGE, room, 0xa5),
        (ROOM, 3 * PAGE, ROOM * 7 / 8, 0xa5),
        (ROOM, 3 * PAGE, ROOM * 7 / 8, 0),
    ] {
        let what = format!("{octets} octets, {octet} from {from} to {to}");
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut rig = Rig::new(Arc::clone(&disk), &config_of("segment", room)).unwrap();
        // Where that is all of the file others lie in the next one.
        feed(&mut rig, octets * 11 / 10);
        drop(rig);
        let (all, damaged, gaps) = found_alone(&disk, path);
        assert!(all.len() > 300 && damaged == 0 && gaps == 0, "{what}");
        let file = disk.open(Path::new(path), OpenMode::ReadWrite).unwrap();
        let front = usize::try_from(to - from).unwrap();
        file.write_at(&vec![octet; front], from).unwrap();
        let (left, damaged, gaps) = found_alone(&disk, path);
        let is_sound = |at: &&u64| **at >= to || **at + 2 * ARTICLE as u64 <= from;
        let mut wanted = all.iter().filter(is_sound);
        let is_left = |at: &u64| left.contains(at);
        assert!(
            wanted.all(is_left),
            "{what}: {} of {}",
            left.len(),
            all.len()
        );
        assert!(damaged > 0 || gaps > 0, "{what}");
    }
}

/// What another buffer left in a file that is not overwritten was taken for a buffer's own where its header was lost.
#[test]
fn what_another_buffer_left_is_no_room_for_a_sparse_one() {
    let mut config = sized(8 * ROOM);
    let old = MemoryDisk::new();
    let mut rig = Rig::new(Arc::new(old.clone()), &config).unwrap();
    feed(&mut rig, 6 * ROOM);
    let file = old.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
    let mut octets = vec![0; usize::try_from(8 * ROOM).unwrap()];
    file.read_exact_at(&mut octets, 0).unwrap();
    let mib = usize::try_from(ROOM).unwrap();
    octets[..mib].fill(0);
    octets[7 * mib..].fill(0);
    for (is_sparse, refusal) in [(true, Some("take `sparse` out")), (false, None)] {
        config.buffers[0].sparse = is_sparse;
        let disk = MemoryDisk::new();
        disk.create_dir_all(Path::new("/spool/buffers")).unwrap();
        let file = disk.open(Path::new(FILE), OpenMode::CreateNew).unwrap();
        file.write_at(&octets, 0).unwrap();
        let made = Rig::new(Arc::new(disk), &config);
        let error = made.err().map(|error| error.to_string());
        assert_eq!(error.is_some(), refusal.is_some(), "{error:?}");
        assert!(
            error
                .unwrap_or_default()
                .contains(refusal.unwrap_or_default())
        );
    }
}

/// What a walk is told of a buffer by its bitmap.
fn compared(rig: &Rig) -> Vec<String> {
    let reader = Arc::clone(rig.reader.buffers()[0]);
    let mut scan = Arc::clone(&reader).scan(ScanRange::Live);
    let (mut comparison, mut told) = (Comparison::new(&reader, scan.at()), Vec::new());
    loop {
        let scanned = scan.step().unwrap();
        let mut tell = |what| told.push(what);
        comparison
            .look(scan.as_mut(), scanned.as_ref(), &mut tell)
            .unwrap();
        if scanned.is_none() {
            return told;
        }
    }
}

/// Articles were left out for bits that nobody called damaged.
#[test]
fn bits_in_front_of_all_articles_are_told_of_a_bitmap_that_ends_a_cycle_before() {
    let disk = Arc::new(MemoryDisk::new());
    let mut rig = Rig::new(Arc::clone(&disk) as Arc<dyn Disk>, &sized(ROOM)).unwrap();
    feed(&mut rig, ROOM / 2);
    rig.checkpoint().unwrap();
    assert_eq!(compared(&rig), [""; 0]);
    let file = disk.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
    file.write_at(&[0xff], 2 * PAGE).unwrap();
    for _ in 0..2 {
        let told = compared(&rig);
        let is_told = |what: &String| what.contains("in front of 0x") && what.ends_with(": 8");
        assert!(told.iter().any(is_told), "{told:?}");
        feed(&mut rig, ROOM * 5 / 8);
    }
    assert_eq!(rig.reader.facts()[0].cycle, 2);
}

/// Where nothing was met of the cycle that had begun, the end of the one before was not compared.
#[test]
fn the_end_of_a_cycle_is_compared_where_nothing_of_the_next_is_met() {
    let disk = Arc::new(MemoryDisk::new());
    let mut config = sized(ROOM);
    config.sets[0].erase_withdrawn = true;
    let mut rig = Rig::new(Arc::clone(&disk) as Arc<dyn Disk>, &config).unwrap();
    let mut tokens: Vec<Token> = Vec::new();
    while tokens.last().is_none_or(|it| it.position().cycle() < 2) {
        let number = tokens.len() as u64;
        tokens.push(rig.place(number, 3 * PAGE as usize).unwrap());
        rig.commit().unwrap();
    }
    rig.checkpoint().unwrap();
    erase(&mut rig, tokens[tokens.len() - 1]);
    assert_eq!(compared(&rig), [""; 0]);
    let [from, to] = [10, 11].map(|back| tokens[tokens.len() - back].position().offset());
    let (from, to) = (to, from);
    let file = disk.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
    let octets = usize::try_from(to - from).unwrap();
    file.write_at(&vec![0; octets], from).unwrap();
    let told = compared(&rig);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("by the bitmap it should be"), "{told:?}");
}
