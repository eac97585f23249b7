//! A buffer through many rounds: liveness is exactly what a model of the paper's buffer says.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, Effect, Fault, FaultyDisk, MemoryDisk, Op, OpenMode, read_whole};
use newsreel_store::conformance::{Log, Logged, Rig, config_of};
use newsreel_store::{Access, BufferFacts, Marks, Reservation, ScanRange, Scanned, StoreConfig};
use newsreel_wire::{BufferId, Position, Sequence, Token};
use proptest::prelude::*;

fn rig(config: &StoreConfig) -> (Arc<dyn Disk>, Rig) {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let rig = Rig::new(Arc::clone(&disk), config).unwrap();
    (disk, rig)
}

/// Which articles each stretch of the file holds, as the reservations of the log let it be overwritten.
#[derive(Default)]
struct Model {
    live: BTreeMap<(BufferId, u64), Token>,
    reserved: BTreeMap<BufferId, (u32, u64)>,
}

impl Model {
    /// What lies below the new mark and was written in an earlier cycle is dead.
    fn reserve(&mut self, buffer: BufferId, cycle: u32, offset: u64) {
        self.reserved.insert(buffer, (cycle, offset));
        self.live.retain(|(of, at), token| {
            let written = token.position().cycle();
            *of != buffer || written + 1 > cycle || (written + 1 == cycle && *at >= offset)
        });
    }

    fn place(&mut self, token: Token) {
        let (cycle, up_to) = self.reserved[&token.buffer()];
        let position = token.position();
        let inside = position.cycle() < cycle || position.offset() < up_to;
        assert!(
            inside,
            "{token:?} is placed beyond cycle {cycle} offset {up_to:#x}"
        );
        let from = position.offset();
        let until = from + 64 + u64::from(token.len());
        let overlap = self.live.iter().find(|((buffer, at), other)| {
            let end = at + 64 + u64::from(other.len());
            *buffer == token.buffer() && *at < until && end > from
        });
        assert!(
            overlap.is_none(),
            "{token:?} overwrites {overlap:?}, which is alive"
        );
        self.live.insert((token.buffer(), from), token);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn prop_what_is_live_is_what_the_model_says(
        sizes in proptest::collection::vec(0usize..60_000, 50..500),
        every in 1usize..30,
        octets in (1u64 << 20)..(3 << 20),
        block_bits in 6u32..=12,
        sequential: bool,
        restart_at in 0usize..500,
    ) {
        let mut config = config_of("cnfs", octets);
        for buffer in &mut config.buffers {
            buffer.block_octets = Some(1 << block_bits);
        }
        if sequential {
            config.sets[0].order = newsreel_store::SetOrder::Sequential;
        }
        let (disk, mut rig) = rig(&config);
        let mut model = Model::default();
        let mut marks = Vec::new();
        let mut tokens: Vec<Token> = Vec::new();
        for (at, len) in sizes.iter().enumerate() {
            if at == restart_at {
                rig.commit().unwrap();
                let log = rig.log.clone();
                rig = Rig::recover(Arc::clone(&disk), &config, log, Access::Write).unwrap();
            }
            let token = rig.place(at as u64, *len).unwrap();
            // Placing may have committed: the marks say what was reserved by then.
            marks.clear();
            rig.store.marks(&mut marks);
            for mark in &marks {
                model.reserve(mark.buffer, mark.reserved.cycle(), mark.reserved.offset());
            }
            model.place(token);
            tokens.push(token);
            if at % every == 0 {
                rig.commit().unwrap();
            }
        }
        rig.commit().unwrap();
        marks.clear();
        rig.store.marks(&mut marks);
        for mark in &marks {
            model.reserve(mark.buffer, mark.reserved.cycle(), mark.reserved.offset());
        }
        for token in &tokens {
            let expected = model.live.get(&(token.buffer(), token.position().offset())) == Some(token);
            prop_assert_eq!(rig.reader.is_live(token), expected, "{:?}", token);
        }
        let tally = rig.read_all();
        prop_assert_eq!((tally.read, tally.corrupt), (model.live.len(), 0));
        // The newest articles fit beside what is reserved ahead.
        let total: usize = sizes.iter().map(|len| len + 8192).sum();
        if total < octets as usize / 2 {
            prop_assert_eq!(tally.gone, 0);
        }
    }
}

#[test]
fn a_buffer_that_is_ahead_of_an_old_log_goes_on_behind_its_last_article() {
    let config = config_of("cnfs", 2 << 20);
    for (checkpoint, name) in [(true, "by time"), (false, "by octets")] {
        let (disk, mut rig) = rig(&config);
        rig.commit().unwrap();
        let mut old = 0;
        for number in 0..500 {
            rig.place(number, 3000).unwrap();
            if number % 5 == 0 {
                rig.commit().unwrap();
            }
            if number == 100 {
                old = rig.log.commits();
            }
        }
        if checkpoint {
            rig.checkpoint().unwrap();
        }
        rig.commit().unwrap();
        let log = rig.log.cut(old);
        let full = rig.log.clone();
        drop(rig);
        let mut rig = Rig::recover(disk, &config, log, Access::Write).unwrap();
        let complaints: Vec<String> = rig
            .reader
            .facts()
            .iter()
            .map(|facts| facts.state())
            .collect();
        assert!(
            complaints
                .iter()
                .all(|state| state.contains("an old log was put back")),
            "{name}: {complaints:?}"
        );
        let before = rig.read_all();
        assert_eq!((before.gone, before.corrupt), (0, 0), "{name}");
        // What the old log does not know is there, too: it could be taken in again.
        for logged in full.articles() {
            rig.read(logged).unwrap();
        }
        for number in 0..20 {
            let token = rig.place(1000 + number, 3000).unwrap();
            let last = lasts(&full)[&token.buffer()];
            assert!(token.position() > last, "{name}: {token:?}, {last}");
        }
        rig.commit().unwrap();
        assert_eq!(rig.read_all().corrupt, 0, "{name}");
        for logged in full.articles() {
            rig.read(logged).unwrap();
        }
        // The next restart has nothing to complain of.
        rig.checkpoint().unwrap();
        let (disk, log) = (Arc::clone(&rig.disk), rig.log.clone());
        drop(rig);
        let rig = Rig::recover(disk, &config, log, Access::Write).unwrap();
        let states: Vec<String> = rig.reader.facts().iter().map(BufferFacts::state).collect();
        assert!(
            states.iter().all(|state| state == "ok"),
            "{name}: {states:?}"
        );
    }
}

#[test]
fn a_reservation_that_only_the_header_knows_costs_no_article() {
    let config = config_of("cnfs", 2 << 20);
    let (disk, mut rig) = rig(&config);
    for number in 0..1500 {
        rig.place(number, 3000).unwrap();
        if number % 5 == 0 {
            rig.commit().unwrap();
        }
    }
    rig.commit().unwrap();
    rig.checkpoint().unwrap();
    rig.commit().unwrap();
    let (before, log) = (rig.read_all(), rig.log.clone());
    drop(rig);
    let hurt = log.without_last_reservation();
    assert_ne!(hurt.marks(), log.marks());
    let mut rig = Rig::recover(disk, &config, hurt, Access::Write).unwrap();
    let states: Vec<String> = rig.reader.facts().iter().map(BufferFacts::state).collect();
    assert!(states.iter().all(|state| state == "ok"), "{states:?}");
    assert_eq!(rig.read_all(), before);
    // What was reserved is known: the oldest that are overwritten are gone before.
    for number in 0..500 {
        rig.place(10_000 + number, 3000).unwrap();
        if number % 5 == 0 {
            rig.commit().unwrap();
            assert_eq!(rig.read_all().corrupt, 0);
        }
    }
}

/// The last of these articles in each buffer.
fn lasts(log: &Log) -> BTreeMap<BufferId, Position> {
    let tokens = log.articles().map(|logged| logged.token);
    let places = tokens.map(|token| (token.buffer(), token.position()));
    places.collect()
}

/// Without log and header a buffer has only its records to tell where it stands, also behind the end of a cycle and
/// behind damage; the articles it has keep their places until it is their turn.
#[test]
fn the_true_end_of_a_buffer_is_found_from_its_records() {
    let config = config_of("cnfs", 1 << 20);
    let paths = ["/spool/buffers/C0", "/spool/buffers/C1"].map(Path::new);
    for articles in [0, 1, 30, 500, 700, 950, 2000] {
        let (disk, mut rig) = rig(&config);
        let files = paths.map(|path| disk.open(path, OpenMode::ReadWrite).unwrap());
        let mut as_made = [[0; 8192]; 2];
        for (file, octets) in files.iter().zip(&mut as_made) {
            file.read_exact_at(octets, 0).unwrap();
        }
        for number in 0..articles {
            rig.place(number, 3000).unwrap();
        }
        rig.checkpoint().unwrap();
        let full = rig.log.clone();
        drop(rig);
        for (file, octets) in files.iter().zip(&as_made) {
            file.write_at(octets, 0).unwrap();
        }
        // A few articles before the last of each.
        for (buffer, at) in lasts(&full) {
            let before = at.offset().saturating_sub(20_000).max(16_384);
            files[usize::from(buffer.0) - 1]
                .write_at(&[0xff; 9000], before)
                .unwrap();
        }
        let mut rig = Rig::recover(disk, &config, Log::default(), Access::Write).unwrap();
        rig.store.distrust();
        rig.store.resume(&[], Sequence(0)).unwrap();
        for number in 0..100 {
            let token = rig.place(10_000 + number, 3000).unwrap();
            let last = lasts(&full).get(&token.buffer()).copied();
            let at = token.position();
            let is_behind = last.is_none_or(|last| at > last && at.cycle() - last.cycle() <= 1);
            assert!(is_behind, "{articles} articles: {at}, {last:?}");
        }
        rig.commit().unwrap();
        let newest: Vec<_> = full.articles().collect();
        let newest = &newest[newest.len() - newest.len().min(150)..];
        let is_there = |logged: &&&Logged| rig.reader.is_live(&logged.token);
        let left = newest.iter().filter(is_there).count();
        assert_eq!(left, newest.len(), "{articles} articles");
    }
}

#[test]
fn headers_are_kept_twice_and_repaired() {
    let config = config_of("cnfs", 1 << 20);
    let (disk, mut rig) = rig(&config);
    for number in 0..30 {
        rig.place(number, 3000).unwrap();
    }
    rig.checkpoint().unwrap();
    let path = Path::new("/spool/buffers/C0");
    let file = disk.open(path, OpenMode::ReadWrite).unwrap();
    let mut pages = vec![0; 8192];
    file.read_exact_at(&mut pages, 0).unwrap();
    let log = rig.log.clone();
    drop(rig);
    for damaged in [0, 4096] {
        file.write_at(&[0xff; 50], damaged + 100).unwrap();
        let mut rig = Rig::recover(Arc::clone(&disk), &config, log.clone(), Access::Write).unwrap();
        let state = rig.reader.facts()[0].state();
        assert!(
            state.contains("one copy of its header is damaged"),
            "{state}"
        );
        assert_eq!(rig.read_all().read, 30);
        rig.place(50 + damaged, 3000).unwrap();
        rig.place(51 + damaged, 3000).unwrap();
        rig.checkpoint().unwrap();
        drop(rig);
        let rig = Rig::recover(Arc::clone(&disk), &config, log.clone(), Access::ReadOnly).unwrap();
        assert!(!rig.reader.facts()[0].state().contains("damaged"));
        file.write_at(&pages, 0).unwrap();

        // Nothing need come for that.
        file.write_at(&[0xff; 50], damaged + 100).unwrap();
        let rig = Rig::recover(Arc::clone(&disk), &config, log.clone(), Access::Write).unwrap();
        let state = rig.reader.facts()[0].state();
        assert!(
            state.contains("one copy of its header is damaged"),
            "{state}"
        );
        drop(rig);
        let rig = Rig::recover(Arc::clone(&disk), &config, log.clone(), Access::ReadOnly).unwrap();
        assert_eq!(rig.reader.facts()[0].state(), "ok");
        file.write_at(&pages, 0).unwrap();
    }
}

/// An octet flips in either copy of a header, or in both, while the buffer is open; it is written again from memory, and with
/// one copy left there is one at any moment of that.
#[test]
fn a_header_that_rots_is_written_again() {
    let config = config_of("cnfs", 1 << 20);
    let path = Path::new("/spool/buffers/C0");
    for (at, what) in [
        (&[5][..], "one copy"),
        (&[4096 + 90], "one copy"),
        (&[4095], "one copy"),
        (&[100, 4096 + 100], "both copies"),
    ] {
        let mut step = 0;
        loop {
            step += 1;
            let memory = MemoryDisk::new();
            let faulty = FaultyDisk::new(Arc::new(memory.clone()));
            let mut rig = Rig::new(Arc::new(faulty.clone()), &config).unwrap();
            for number in 0..30 {
                rig.place(number, 3000).unwrap();
            }
            rig.checkpoint().unwrap();
            let buffer = Arc::clone(rig.reader.buffers()[0]);
            assert_eq!(buffer.mend_header().unwrap(), None);
            at.iter()
                .for_each(|at| memory.flip_bit(path, *at, 3).unwrap());
            faulty.stop_at_change(faulty.counts().changes() + step);
            let mended = buffer.mend_header();
            let disk = Arc::new(memory.crash(step));
            let log = rig.log.clone();
            drop(rig);
            let Ok(mended) = mended else {
                // Stopped on the way.
                let again = Rig::recover(disk, &config, log, Access::ReadOnly).unwrap();
                assert_eq!(again.read_all().read, 30);
                let state = again.reader.facts()[0].state();
                let is_lost = state.contains("neither copy");
                assert!(!is_lost || what == "both copies", "step {step}: {state}");
                continue;
            };
            assert_eq!(
                mended.unwrap(),
                format!(
                    "{what} of its header {} damaged; it was written again",
                    if at.len() == 1 { "is" } else { "are" }
                )
            );
            let again = Rig::recover(disk, &config, log, Access::Write).unwrap();
            assert_eq!(again.reader.facts()[0].state(), "ok");
            assert_eq!(again.reader.buffers()[0].mend_header().unwrap(), None);
            break;
        }
        assert!(step > 4, "{what}: {step}");
    }
}

/// Where looks meet the text of large articles only, or damage, the end is found all the same, whether the buffer has come around or not.
#[test]
fn the_true_end_is_found_behind_large_articles_and_damage() {
    let config = config_of("cnfs", 64 << 20);
    for (articles, octets) in [
        (600, 100_000),
        (60, 1_500_000),
        (12, 5 << 20),
        (40, 5 << 20),
    ] {
        let (disk, mut rig) = rig(&config);
        for number in 0..articles {
            rig.place(number, octets).unwrap();
            if number % 8 == 7 {
                rig.commit().unwrap();
            }
        }
        rig.commit().unwrap();
        let full = rig.log.clone();
        drop(rig);
        let ends = lasts(&full);
        for (buffer, at) in &ends {
            let path = format!("/spool/buffers/C{}", buffer.0 - 1);
            let file = disk.open(Path::new(&path), OpenMode::ReadWrite).unwrap();
            file.write_at(&[0; 8192], 0).unwrap();
            // More than a look reads.
            let before = at.offset().saturating_sub(9 << 20).max(1 << 20);
            file.write_at(&vec![0xff; 3 << 20], before).unwrap();
        }
        let mut rig = Rig::recover(disk, &config, Log::default(), Access::Write).unwrap();
        rig.store.distrust();
        rig.store.resume(&[], Sequence(0)).unwrap();
        for number in 0..4 {
            let token = rig.place(10_000 + number, 3000).unwrap();
            let last = ends[&token.buffer()];
            let is_behind = token.position() > last && token.position().cycle() - last.cycle() <= 1;
            assert!(is_behind, "{articles} of {octets}: {token:?}, {last}");
        }
    }
}

/// The newest part of the log is lost, and no header was written since: that there is more than the one batch which an
/// unfinished commit may leave tells that the log had more.
#[test]
fn batches_behind_the_end_of_the_log_are_not_overwritten() {
    let config = config_of("cnfs", 4 << 20);
    for (lost, is_told) in [(1, false), (2, true), (10, true)] {
        let (disk, mut rig) = rig(&config);
        for number in 0..200 {
            rig.place(number, 3000).unwrap();
            if number % 5 == 4 {
                rig.commit().unwrap();
            }
        }
        rig.checkpoint().unwrap();
        let mut old = 0;
        for number in 200..220 + 5 * lost {
            rig.place(number, 3000).unwrap();
            if number % 5 == 4 {
                rig.commit().unwrap();
            }
            if number == 219 {
                old = rig.log.commits();
            }
        }
        let full = rig.log.clone();
        drop(rig);
        let mut rig = Rig::recover(disk, &config, full.cut(old), Access::Write).unwrap();
        let states: Vec<String> = rig.reader.facts().iter().map(BufferFacts::state).collect();
        let was_told = states
            .iter()
            .any(|state| state.contains("an old log was put back"));
        assert_eq!(was_told, is_told, "{lost} lost: {states:?}");
        for number in 1000..1100 {
            let token = rig.place(number, 3000).unwrap();
            let last = lasts(&full).get(&token.buffer()).copied();
            let is_behind = last.is_none_or(|last| token.position() > last);
            assert!(is_behind || !is_told, "{lost} lost: {token:?}, {last:?}");
        }
        rig.commit().unwrap();
        let again = full
            .articles()
            .filter(|logged| rig.read(logged).is_err())
            .count();
        assert_eq!(again > 0, !is_told, "{lost} lost: {again} were overwritten");
    }
}

/// A header that was made again does not hide that the log is old, whatever lies at the log's end by now.
#[test]
fn a_header_made_again_does_not_hide_an_old_log() {
    for (octets, len, articles) in [(1 << 20, 3000, 900), (16 << 20, 3_500_000, 19)] {
        let config = config_of("cnfs", octets);
        let (disk, mut rig) = rig(&config);
        let mut old = 0;
        for number in 0..articles {
            rig.place(number, len).unwrap();
            rig.commit().unwrap();
            if number == 2 {
                old = rig.log.commits();
            }
        }
        let full = rig.log.clone();
        drop(rig);
        for path in ["/spool/buffers/C0", "/spool/buffers/C1"] {
            let file = disk.open(Path::new(path), OpenMode::ReadWrite).unwrap();
            file.write_at(&[0xff; 8192], 0).unwrap();
        }
        let mut rig = Rig::recover(disk, &config, full.cut(old), Access::Write).unwrap();
        for number in 2000..2003 {
            let token = rig.place(number, len.min(100_000)).unwrap();
            let last = lasts(&full)[&token.buffer()];
            assert!(token.position() > last, "{token:?}, {last}");
        }
    }
}

/// The server overwrites a record up to the middle while a scan is before it: what is left of it behind the new floor is
/// no damage; what rots behind the next record is.
#[test]
fn the_rest_of_a_record_that_was_overwritten_is_no_damage() {
    let config = config_of("cnfs", 4 << 20);
    let (disk, mut rig) = rig(&config);
    let tokens: Vec<Token> = (0..1000)
        .map(|number| rig.place(number, 3000).unwrap())
        .collect();
    rig.checkpoint().unwrap();
    let first = tokens[0];
    let mine: Vec<Position> = tokens
        .iter()
        .filter(|token| token.buffer() == first.buffer())
        .map(|token| token.position())
        .collect();
    let page = |at: &Position| at.offset().next_multiple_of(4096);
    // A record with the beginning of a page inside it, behind what the scan reads at once.
    let cut = mine
        .iter()
        .filter(|at| at.offset() > 1_500_000)
        .find(|at| page(at) > at.offset() && page(at) < at.offset() + 3000);
    let cut = *cut.unwrap();
    let file = disk
        .open(Path::new("/spool/buffers/C0"), OpenMode::ReadWrite)
        .unwrap();
    let mut scan = rig.reader.scan(first.buffer(), ScanRange::Live).unwrap();
    assert!(matches!(scan.step().unwrap(), Some(Scanned::Record { .. })));
    let zeros = vec![0; (page(&cut) - cut.offset()) as usize];
    file.write_at(&zeros, cut.offset()).unwrap();
    let rots = mine[mine.len() - 2].offset();
    file.write_at(&[0xff; 64], rots).unwrap();
    rig.store.reserved(Reservation {
        buffer: first.buffer(),
        up_to: Position::new(cut.cycle() + 1, page(&cut)),
    });
    let mut damaged = Vec::new();
    while let Some(scanned) = scan.step().unwrap() {
        if let Scanned::Damaged { from, .. } = scanned {
            damaged.push(from);
        }
    }
    assert_eq!(damaged, [rots]);
}

/// What the header said is known elsewhere, except the key of the records, and they tell it.
#[test]
fn a_header_that_is_lost_twice_is_made_again() {
    let config = config_of("cnfs", 1 << 20);
    let path = Path::new("/spool/buffers/C0");
    for articles in [1, 30, 1000] {
        let (disk, mut rig) = rig(&config);
        for number in 0..articles {
            rig.place(number, 3000).unwrap();
        }
        rig.checkpoint().unwrap();
        let before = rig.read_all();
        let log = rig.log.clone();
        drop(rig);
        let file = disk.open(path, OpenMode::ReadWrite).unwrap();
        file.write_at(&[0xff; 8192], 0).unwrap();
        // Who only looks leaves it as it is.
        for access in [Access::ReadOnly, Access::Write] {
            let rig = Rig::recover(Arc::clone(&disk), &config, log.clone(), access).unwrap();
            let state = rig.reader.facts()[0].state();
            assert!(state.contains("it was made again"), "{state}");
            assert_eq!(rig.read_all(), before);
        }
        let mut rig = Rig::recover(Arc::clone(&disk), &config, log, Access::Write).unwrap();
        rig.place(5000, 3000).unwrap();
        rig.place(5001, 3000).unwrap();
        rig.checkpoint().unwrap();
        let (after, log) = (rig.read_all(), rig.log.clone());
        assert_eq!(after.corrupt, 0);
        drop(rig);
        let rig = Rig::recover(disk, &config, log, Access::Write).unwrap();
        assert_eq!(rig.reader.facts()[0].state(), "ok");
        assert_eq!(rig.read_all(), after);
    }
}

/// That it was cut is said also where no header is left to say how long it was.
#[test]
fn a_file_that_was_cut_is_called_so_without_its_headers() {
    let config = config_of("cnfs", 4 << 20);
    let (disk, mut rig) = rig(&config);
    rig.place(1, 3000).unwrap();
    rig.checkpoint().unwrap();
    let log = rig.log.clone();
    drop(rig);
    let path = Path::new("/spool/buffers/C0");
    let file = disk.open(path, OpenMode::ReadWrite).unwrap();
    file.write_at(&[0xff; 8192], 0).unwrap();
    file.set_len(1 << 20).unwrap();
    for access in [Access::ReadOnly, Access::Write] {
        let error = Rig::recover(Arc::clone(&disk), &config, log.clone(), access).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("it has 1048576 octets"), "{error}");
        assert!(error.contains("it was cut"), "{error}");
    }
    assert_eq!(file.len().unwrap(), 1 << 20);
}

/// It was told as a buffer that is lost.
#[test]
fn a_file_system_in_the_place_of_a_buffer_is_called_so_and_left_alone() {
    let config = config_of("cnfs", 1 << 20);
    let path = Path::new("/spool/buffers/C0");
    let marks: [(u64, &[u8], &str); 3] = [
        (0, b"XFSB", "xfs"),
        (1080, &[0x53, 0xef], "ext2, ext3 or ext4"),
        (65_600, b"_BHRfS_M", "btrfs"),
    ];
    for (at, mark, name) in marks {
        for had_buffer in [false, true] {
            let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
            let mut log = Log::default();
            let mode = match had_buffer {
                true => {
                    let mut rig = Rig::new(Arc::clone(&disk), &config).unwrap();
                    rig.place(1, 3000).unwrap();
                    rig.checkpoint().unwrap();
                    log = rig.log.clone();
                    OpenMode::ReadWrite
                }
                false => {
                    disk.create_dir_all(path.parent().unwrap()).unwrap();
                    OpenMode::CreateNew
                }
            };
            let file = disk.open(path, mode).unwrap();
            file.set_len(1 << 20).unwrap();
            file.write_at(&[0; 8192], 0).unwrap();
            file.write_at(mark, at).unwrap();
            let before = read_whole(disk.as_ref(), path, 1 << 20).unwrap();
            let opened = Rig::recover(Arc::clone(&disk), &config, log, Access::Write);
            let error = opened.unwrap_err().to_string();
            let told = format!("a file system ({name}) seems to be there: nothing was written");
            assert!(error.contains(&told), "{error}");
            assert!(read_whole(disk.as_ref(), path, 1 << 20).unwrap() == before);
        }
    }
}

/// In the place of a buffer lies something without a record of one: nothing of it is touched.
#[test]
fn what_does_not_hold_records_is_not_given_a_header() {
    let config = config_of("cnfs", 1 << 20);
    let (disk, mut rig) = rig(&config);
    rig.place(1, 3000).unwrap();
    rig.checkpoint().unwrap();
    let log = rig.log.clone();
    drop(rig);
    let file = disk
        .open(Path::new("/spool/buffers/C0"), OpenMode::ReadWrite)
        .unwrap();
    for octet in [0xff, b'N'] {
        file.write_at(&vec![octet; 1 << 20], 0).unwrap();
        let error =
            Rig::recover(Arc::clone(&disk), &config, log.clone(), Access::Write).unwrap_err();
        assert!(error.to_string().contains("neither copy"), "{error}");
        let mut now = vec![0; 1 << 20];
        file.read_exact_at(&mut now, 0).unwrap();
        assert!(
            now.iter().all(|now| *now == octet),
            "something unknown was touched"
        );
    }
}

#[test]
fn a_buffer_that_is_not_there_is_missed_not_made_again() {
    let config = config_of("cnfs", 1 << 20);
    let (disk, rig) = rig(&config);
    let log = rig.log.clone();
    drop(rig);
    let path = Path::new("/spool/buffers/C1");
    disk.rename(path, Path::new("/spool/C1.away")).unwrap();
    let error = Rig::recover(Arc::clone(&disk), &config, log.clone(), Access::Write).unwrap_err();
    assert!(error.to_string().contains("mount its disk"), "{error}");
    assert!(!disk.exists(path).unwrap());
    // One of another name is made and gets an id of its own.
    let mut other = config.clone();
    other.buffers[1].name = "C2".to_owned();
    other.sets[0].buffers[1] = "C2".to_owned();
    let error = Rig::recover(Arc::clone(&disk), &other, log.clone(), Access::Write).unwrap_err();
    assert!(error.to_string().contains("--drop-buffer C1"), "{error}");
    assert!(!disk.exists(Path::new("/spool/buffers/C2")).unwrap());
    other.dropped = vec!["C1".to_owned()];
    let rig = Rig::recover(Arc::clone(&disk), &other, log.clone(), Access::Write).unwrap();
    let ids: Vec<u16> = rig.reader.facts().iter().map(|facts| facts.id).collect();
    assert_eq!(ids, [1, 3]);
    drop(rig);
    // The register may be lost: what is there keeps its id, also when something new comes before it.
    for name in ["register", "register.copy"] {
        disk.remove(&Path::new("/spool/buffers").join(name))
            .unwrap();
    }
    other.dropped.clear();
    other.buffers[0].name = "C3".to_owned();
    other.sets[0].buffers[0] = "C3".to_owned();
    let rig = Rig::recover(Arc::clone(&disk), &other, log.clone(), Access::Write).unwrap();
    let ids: Vec<u16> = rig.reader.facts().iter().map(|facts| facts.id).collect();
    assert_eq!(ids, [4, 3]);
    drop(rig);
    disk.rename(Path::new("/spool/C1.away"), path).unwrap();
    let mut former = config.clone();
    former.dropped = ["C2", "C3"].map(str::to_owned).to_vec();
    let rig = Rig::recover(disk, &former, log, Access::Write).unwrap();
    let ids: Vec<u16> = rig.reader.facts().iter().map(|facts| facts.id).collect();
    assert_eq!(ids, [1, 2]);
}

#[test]
fn files_of_others_are_refused_and_left_alone() {
    let config = config_of("cnfs", 1 << 20);
    type Change = fn(&mut StoreConfig);
    let changes: [(Change, &str); 3] = [
        (
            |config| config.buffers[0].octets = 2 << 20,
            "it has 1048576 octets, the configuration says 2097152; set `octets` to 1048576",
        ),
        (
            |config| config.buffers[0].block_octets = Some(512),
            "it has 64 octets in a block, the configuration says 512; set `block_octets` to 64",
        ),
        (
            |config| {
                let path = |name: &str| Some(Path::new("/spool/buffers").join(name));
                config.buffers[0].path = path("C1");
                config.buffers[1].path = path("C0");
            },
            "mend the paths",
        ),
    ];
    let (disk, rig) = rig(&config);
    drop(rig);
    for (change, expected) in changes {
        let mut changed = config.clone();
        change(&mut changed);
        let error =
            Rig::recover(Arc::clone(&disk), &changed, Log::default(), Access::Write).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let strange = disk
        .open(Path::new("/thesis"), OpenMode::CreateNew)
        .unwrap();
    strange.write_at(&vec![b'x'; 3 << 20], 0).unwrap();
    let mut changed = config_of("cnfs", 1 << 20);
    changed.buffers[0].path = Some("/thesis".into());
    changed.buffers[0].name = "C9".to_owned();
    changed.sets[0].buffers[0] = "C9".to_owned();
    changed.dropped = vec!["C0".to_owned()];
    let error =
        Rig::recover(Arc::clone(&disk), &changed, Log::default(), Access::Write).unwrap_err();
    assert!(error.to_string().contains("left as it is"), "{error}");
    // A blank file or device of enough room is taken in place.
    let blank = disk.open(Path::new("/blank"), OpenMode::CreateNew).unwrap();
    blank.set_len(1 << 20).unwrap();
    changed.buffers[0].path = Some("/blank".into());
    let mut rig = Rig::recover(disk, &changed, Log::default(), Access::Write).unwrap();
    rig.place(1, 500).unwrap();
    rig.commit().unwrap();
    assert_eq!(rig.read_all().read, 1);
}

#[test]
fn buffers_are_written_out_and_progress_is_told() {
    let mut config = StoreConfig::two_buffers(40 << 20);
    config.buffers[1].sparse = true;
    let disk = MemoryDisk::new();
    let mut told = Vec::new();
    newsreel_store::Store::open(
        &(Arc::new(disk) as Arc<dyn Disk>),
        Path::new("/spool"),
        [1; 16],
        &config,
        &[],
        Access::Write,
        &mut |name, done, of| told.push((name.to_owned(), done >> 20, of >> 20)),
    )
    .unwrap();
    let told: Vec<_> = told
        .iter()
        .map(|(name, done, of)| format!("{name} {done}/{of}"))
        .collect();
    assert_eq!(told, ["C0 16/40", "C0 32/40", "C0 40/40"]);
    let full = MemoryDisk::with_capacity(10 << 20);
    let mut rig = newsreel_store::Store::open(
        &(Arc::new(full.clone()) as Arc<dyn Disk>),
        Path::new("/spool"),
        [1; 16],
        &config,
        &[],
        Access::Write,
        &mut |_, _, _| {},
    );
    let error = rig.as_mut().unwrap_err();
    assert!(
        error.to_string().contains("make `octets` smaller"),
        "{error}"
    );
    assert!(full.list(Path::new("/spool/buffers")).unwrap().is_empty());
}

#[test]
fn a_cycle_that_was_reserved_but_not_written_is_begun_again() {
    let config = config_of("cnfs", 1 << 20);
    let memory = MemoryDisk::new();
    let mut rig = Rig::new(Arc::new(memory.clone()), &config).unwrap();
    for number in 0..600 {
        rig.place(number, 3000).unwrap();
        if number % 5 == 0 {
            rig.commit().unwrap();
        }
    }
    rig.commit().unwrap();
    let marks = rig.log.marks();
    let tally = rig.read_all();
    drop(rig);
    let with = |odd: Marks| {
        let others = marks.iter().filter(|mark| mark.buffer != odd.buffer);
        others.copied().chain([odd]).collect::<Vec<_>>()
    };
    for mark in marks.clone() {
        // What the log says when the reservations of a new cycle are all it has of it.
        let disk: Arc<dyn Disk> = Arc::new(memory.crash_losing_all());
        let mut rig = Rig::recover(disk, &config, Log::default(), Access::Write).unwrap();
        let mut odd = mark;
        odd.reserved = Position::new(mark.end.cycle() + 3, mark.reserved.offset());
        let end = Sequence(u64::MAX);
        rig.store.resume(&with(odd), end).unwrap();
        let facts = rig.reader.buffer(mark.buffer).unwrap().facts();
        assert_eq!(
            (facts.cycle, facts.free_offset),
            (mark.end.cycle() + 3, facts.data_offset)
        );
        // Marks of another file are not believed.
        odd.end = Position::new(odd.reserved.cycle(), 64);
        let error = rig.store.resume(&with(odd), end).unwrap_err();
        assert!(
            error.to_string().contains("put the right file there"),
            "{error}"
        );
    }
    assert!(tally.read > 100);
}

#[test]
fn the_newest_are_served_from_memory_and_all_others_from_the_disk() {
    let mut config = config_of("cnfs", 8 << 20);
    config.sets[0].recent_octets = Some(2 << 20);
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let mut rig = Rig::new(Arc::new(faulty.clone()), &config).unwrap();
    for number in 0..1500 {
        rig.place(number, 3000).unwrap();
        if number % 40 == 0 {
            rig.commit().unwrap();
        }
    }
    rig.commit().unwrap();
    assert_eq!(rig.read_all().corrupt, 0);
    faulty.add(Fault::new(Op::Read, "buffers", Effect::Medium).forever());
    let read = |logged| rig.read(logged).is_ok();
    let from_memory = rig.log.articles().filter(|logged| read(logged)).count();
    assert!((200..1000).contains(&from_memory), "{from_memory}");
    let newest: Vec<_> = rig.log.articles().skip(1400).collect();
    assert!(newest.into_iter().all(read));
    // Recovery looks at the disk whatever is in memory.
    let last = rig.log.articles().last().unwrap();
    let hash = newsreel_store::conformance::id_hash(last.number);
    rig.reader
        .verify(&last.token, last.sequence, &hash, &mut Vec::new())
        .unwrap_err();
}

/// The offsets at which the bitmap of a buffer says that a record begins.
fn bitmap(disk: &dyn Disk, name: &str, octets: u64) -> Vec<u64> {
    let path = Path::new("/spool/buffers").join(name);
    let file = disk.open(&path, OpenMode::Read).unwrap();
    let mut bits = vec![0; (octets / 64 / 8) as usize];
    file.read_exact_at(&mut bits, 8192).unwrap();
    let blocks = 0..octets / 64;
    let is_set = |block: &u64| bits[(block / 8) as usize] & (1 << (block % 8)) != 0;
    blocks.filter(is_set).map(|block| block * 64).collect()
}

#[test]
fn the_bitmap_catches_up_after_failures_and_restarts() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let config = config_of("cnfs", 1 << 20);
    let mut rig = Rig::new(Arc::new(faulty.clone()), &config).unwrap();
    let (mut number, mut withdrawn) = (0, Vec::new());
    let mut fill = |rig: &mut Rig| {
        for _ in 0..300 {
            let token = rig.place(number, 2000).unwrap();
            number += 1;
            if number % 7 == 0 {
                withdrawn.push(token);
            }
        }
        rig.commit().unwrap();
        // Also those of earlier rounds, which may be overwritten by now.
        rig.store.withdrawn(&withdrawn, &mut Vec::new());
    };
    for round in 0..12 {
        fill(&mut rig);
        match round % 4 {
            0 => rig.checkpoint().unwrap(),
            1 => {
                faulty.add(Fault::new(Op::Write, "buffers/C", Effect::Medium).nth(2));
                let _ = rig.checkpoint();
                faulty.clear();
            }
            2 => {
                let log = rig.log.clone();
                rig = Rig::recover(Arc::new(faulty.clone()), &config, log, Access::Write).unwrap();
            }
            _ => {}
        }
    }
    // Nothing is open: the checkpoint is of everything.
    rig.commit().unwrap();
    rig.checkpoint().unwrap();
    for buffer in rig.reader.buffers() {
        let floor = buffer.floor();
        let bits = bitmap(&faulty, buffer.name(), 1 << 20);
        let facts = buffer.facts();
        let dead = facts.free_offset..facts.reserved_offset;
        let mut live: Vec<u64> = rig
            .log
            .articles()
            .map(|logged| logged.token)
            .filter(|token| token.buffer() == buffer.id() && token.position() >= floor)
            .filter(|token| !withdrawn.contains(token))
            .map(|token| token.position().offset())
            .collect();
        live.sort_unstable();
        assert!(live.len() > 100, "{} live in {}", live.len(), facts.name);
        let shown: Vec<u64> = bits
            .into_iter()
            .filter(|offset| !dead.contains(offset))
            .collect();
        let missing: Vec<_> = live
            .iter()
            .filter(|offset| !shown.contains(offset))
            .collect();
        assert!(
            missing.is_empty(),
            "{}: {missing:x?} of {}",
            facts.name,
            live.len()
        );
        let stale: Vec<_> = shown
            .iter()
            .filter(|offset| !live.contains(offset))
            .collect();
        assert!(stale.is_empty(), "{}: {stale:x?}", facts.name);
    }
}

/// What was withdrawn when nothing else came kept its bits for good: whoever had nothing but the buffer had it again.
#[test]
fn a_checkpoint_behind_which_nothing_came_but_a_cancel_takes_its_bit() {
    let memory = MemoryDisk::new();
    let mut rig = Rig::new(Arc::new(memory.clone()), &config_of("cnfs", 1 << 20)).unwrap();
    let tokens: Vec<Token> = (0..3)
        .map(|number| rig.place(number, 2000).unwrap())
        .collect();
    rig.commit().unwrap();
    rig.checkpoint().unwrap();
    let name = rig
        .reader
        .buffer(tokens[1].buffer())
        .unwrap()
        .name()
        .to_owned();
    let bits = || bitmap(&memory, &name, 1 << 20);
    let at = tokens[1].position().offset();
    assert!(bits().contains(&at));
    rig.store.withdrawn(&tokens[1..2], &mut Vec::new());
    rig.checkpoint().unwrap();
    assert!(!bits().contains(&at), "{:x?}", bits());
    assert!(!bits().is_empty());
}

/// A commit begins on a page, so many small ones fill a buffer faster than their octets say: what they take counts.
#[test]
fn small_commits_turn_to_the_next_buffer_too() {
    let (_disk, mut rig) = rig(&config_of("cnfs", 4 << 20));
    for number in 0..700 {
        rig.place(number, 300).unwrap();
        rig.commit().unwrap();
    }
    let used: Vec<u64> = rig
        .reader
        .facts()
        .iter()
        .map(|facts| facts.free_offset - facts.data_offset)
        .collect();
    assert!(used.iter().all(|octets| *octets > 1_000_000), "{used:?}");
}

/// A cycle that was left early, without a mark because its commit was never finished: what older cycles left behind it,
/// whole records and rests of them, is no damage.
#[test]
fn what_older_cycles_left_behind_a_cycle_that_was_left_early_is_no_damage() {
    let mut config = config_of("cnfs", 1 << 20);
    config.buffers.truncate(1);
    config.sets[0].buffers.truncate(1);
    let memory = MemoryDisk::new();
    let mut rig = Rig::new(Arc::new(memory.clone()), &config).unwrap();
    let mut number = 0;
    let mut place = |rig: &mut Rig, len: usize| {
        number += 1;
        rig.place(number, len).unwrap();
        rig.commit().unwrap();
        let facts = &rig.reader.facts()[0];
        (facts.cycle, facts.free_offset)
    };
    // Large articles to the end of the first cycle; the second ends early, inside the last of them, because a large one no
    // longer fits, and that is all that is in the third.
    while place(&mut rig, 200_000).0 < 2 {}
    while place(&mut rig, 3000).1 < 900_000 {}
    assert_eq!(place(&mut rig, 200_000).0, 3);
    let log = rig.log.clone();
    let mut marks = log.marks();
    drop(rig);
    for mark in &mut marks {
        mark.reserved = Position::new(
            mark.end.cycle() + 1,
            mark.end.offset().next_multiple_of(4096),
        );
    }
    let disk: Arc<dyn Disk> = Arc::new(memory);
    let mut rig = Rig::recover(disk, &config, Log::default(), Access::ReadOnly).unwrap();
    rig.store.resume(&marks, Sequence(u64::MAX)).unwrap();
    let buffer = Arc::clone(rig.reader.buffers()[0]);
    let mut scan = buffer.scan(ScanRange::Live);
    while let Some(scanned) = scan.step().unwrap() {
        assert!(
            matches!(scanned, Scanned::Record { .. } | Scanned::Passed),
            "{scanned:?}"
        );
    }
}
