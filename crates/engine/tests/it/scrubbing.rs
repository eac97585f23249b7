//! The scrub: what it finds and tells, at which rate, and what is no damage.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::{Engine, EngineConfig, Relocation, ScrubReport};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Clock, Disk, MemoryDisk, Op, OpenMode};
use newsreel_service::{ArticleQuery, Outcome, Part};
use newsreel_store::{ScanRange, Scanned, SetConfig, open_alone};
use newsreel_wire::{MessageId, Position};

use crate::world::{NOW, World, article, between_runs, config, open_on};

const DAY_S: u64 = 86_400;

/// An article of about so many octets.
fn large(n: usize, octets: usize) -> (String, Vec<u8>) {
    let (id, mut wire) = article(n, "misc.test");
    wire.truncate(wire.len() - 3);
    while wire.len() < octets {
        wire.extend_from_slice(b"a line that fills the article up, again and again\r\n");
    }
    wire.extend_from_slice(b".\r\n");
    (id, wire)
}

async fn feed(world: &World, range: std::ops::Range<usize>, octets: usize) {
    for n in range {
        let outcomes = world.send(&[large(n, octets)]).await;
        assert_eq!(outcomes, [Outcome::Accepted], "{n}");
    }
}

fn scrub(world: &World) -> ScrubReport {
    world.engine.scrub(&[], 0, &mut |_, _| true).unwrap()
}

/// Where article `n` lies: file, offset, octets, token.
fn place(world: &World, n: usize) -> (PathBuf, u64, u64, String) {
    let which = format!("<{n}@t.example>").parse().unwrap();
    let report = world.engine.article(&which).unwrap().unwrap();
    let mut token = report.token.split(':');
    let name = token.next().unwrap();
    let buffers = world.engine.status().buffers;
    let buffer = buffers.iter().find(|buffer| buffer.name == name).unwrap();
    let offset = u64::from_str_radix(token.next().unwrap(), 16).unwrap();
    let mut path = PathBuf::from(&buffer.path);
    if path.starts_with("/spool/segments") {
        let cycle = u32::from_str_radix(token.next().unwrap(), 16).unwrap();
        path.push(format!("{cycle:08}.seg"));
    }
    (path, offset, report.octets, report.token)
}

/// With the scrub in the background.
fn in_background(octets_per_s: u64) -> EngineConfig {
    let mut config = config(2 << 20);
    config.scrub.octets_per_s = octets_per_s;
    config
}

/// Lets time go by until something is so.
fn go_on_until(world: &World, what: &str, is_so: impl Fn(&World) -> bool) {
    world.wait_until(what, |world| {
        world.wait_s(1);
        is_so(world)
    });
}

fn counted(world: &World) -> (u64, u64) {
    let status = world.engine.status();
    (status.counters.damaged_articles, status.scrub.damaged)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_is_told_with_everything_that_is_known_of_it() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(2 << 20));
    feed(&world, 0..40, 3000).await;
    let report = scrub(&world);
    assert_eq!((report.articles, report.damaged.len()), (40, 0));
    assert!(report.octets >= 40 * 3000 && !report.is_cut, "{report:?}");
    // The body of one, the head of the next but one; sequence and checksum in the record's header of a third, which nothing proves.
    let (body, head, header) = (place(&world, 5), place(&world, 9), place(&world, 20));
    memory.flip_bit(&body.0, body.1 + 2500, 3).unwrap();
    memory.flip_bit(&head.0, head.1 + 64 + 10, 3).unwrap();
    memory.flip_bit(&header.0, header.1 + 30, 3).unwrap();
    memory.flip_bit(&header.0, header.1 + 61, 3).unwrap();
    let report = scrub(&world);
    assert_eq!(report.articles, 37);
    let mut found: Vec<_> = report.damaged.iter().collect();
    found.sort_by_key(|damage| damage.message_id.clone());
    let ids: Vec<_> = found
        .iter()
        .map(|it| it.message_id.as_deref().unwrap())
        .collect();
    assert_eq!(ids, ["<20@t.example>", "<5@t.example>", "<9@t.example>"]);
    for (damage, (number, place)) in found.iter().zip([(21, &header), (6, &body), (10, &head)]) {
        assert_eq!(damage.token.as_ref(), Some(&place.3));
        assert_eq!(damage.from, place.1);
        assert_eq!(damage.groups, [("misc.test".to_owned(), number)]);
        let line = damage.to_string();
        assert!(line.ends_with(&format!(", misc.test:{number}")), "{line}");
    }
    assert_eq!(counted(&world), (3, 3));
    assert_eq!(scrub(&world).damaged.len(), 3);
    assert_eq!(counted(&world), (3, 3), "once");
    // A check says the same.
    let problems = world.problems();
    let lines = found.iter().map(|damage| damage.to_string());
    for line in lines {
        assert!(problems.contains(&line), "{line} in {problems:?}");
    }
    // What is withdrawn is no loss any more.
    let which = ["<5@t.example>", "<9@t.example>"].map(|id| id.parse().unwrap());
    world
        .engine
        .withdraw(&which[..1], newsreel_engine::Reason::Cancelled)
        .unwrap();
    assert_eq!(scrub(&world).damaged.len(), 2);
    assert_eq!(
        counted(&world),
        (3, 2),
        "what is not met again is forgotten"
    );
    memory.flip_bit(&head.0, head.1 + 64 + 10, 3).unwrap();
    assert_eq!(scrub(&world).damaged.len(), 1);
    assert_eq!(counted(&world), (3, 1));
}

/// The log is gone from the front, so what is left of the text must tell whose it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_log_forgot_the_text_and_the_views_tell() {
    let memory = MemoryDisk::new();
    let mut config = config(2 << 20);
    config.journal.segment_octets = 64 << 10;
    config.sequencer.log_keep_octets = 0;
    let world = World::on(Arc::new(memory.clone()), config);
    for round in 0..4 {
        feed(&world, round * 100..round * 100 + 100, 300).await;
        world.seal();
    }
    assert!(world.engine.status().log.oldest > 50);
    let (body, id) = (place(&world, 3), place(&world, 4));
    memory.flip_bit(&body.0, body.1 + body.2, 3).unwrap();
    let text = large(4, 300).1;
    let at = text
        .windows(10)
        .position(|it| it.starts_with(b"Message-ID"))
        .unwrap();
    // Our name in Path came in front.
    let added = (id.2 - text.len() as u64) / 2;
    for octet in 0..added + 40 {
        memory
            .flip_bit(&id.0, id.1 + 64 + at as u64 + octet, 0)
            .unwrap();
    }
    let report = scrub(&world);
    let ids: Vec<_> = report
        .damaged
        .iter()
        .map(|it| it.message_id.as_deref())
        .collect();
    assert_eq!(ids.len(), 2, "{report:?}");
    assert!(
        ids.contains(&Some("<3@t.example>")) && ids.contains(&None),
        "{ids:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_than_the_rate_is_read() {
    let world = World::new(config(8 << 20));
    feed(&world, 0..200, 40_000).await;
    let rate = 2 << 20;
    let (clock, mut told) = (Arc::clone(&world.clock), Vec::new());
    let report = world.engine.scrub(&[], rate, &mut |done, total| {
        told.push((done, total));
        clock.advance(Duration::from_millis(200));
        true
    });
    let report = report.unwrap();
    assert_eq!(report.articles, 200);
    let least_s = report.octets / rate;
    assert!(
        report.octets > 7 << 20 && report.seconds >= least_s,
        "{report:?}"
    );
    assert!(report.seconds <= 2 * least_s, "{report:?}");
    assert!(
        told.is_sorted() && told.last().unwrap().0 == told[0].1,
        "{told:?}"
    );
    // Who listens no more ends it.
    let report = world.engine.scrub(&[], rate, &mut |_, _| false).unwrap();
    assert!(report.is_cut && report.octets <= 2 << 20, "{report:?}");
    // One buffer of the two, and one that is not there.
    let one = world.engine.scrub(&["C1".to_owned()], 0, &mut |_, _| true);
    let one = one.unwrap();
    assert_eq!(one.buffers.len(), 1);
    assert!((50..150).contains(&one.articles), "{one:?}");
    let none = world.engine.scrub(&["C7".to_owned()], 0, &mut |_, _| true);
    assert!(none.unwrap_err().to_string().contains("there are C0, C1"));
}

/// The free pointer goes around the whole buffer while the scrub rests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_be_overtaken_is_no_damage() {
    let world = World::new(config(4 << 20));
    feed(&world, 0..240, 40_000).await;
    let runtime = tokio::runtime::Handle::current();
    // At first more than half of both buffers, later less than is read meanwhile.
    let (mut from, mut more) = (1000, 130);
    let report = tokio::task::block_in_place(|| {
        world.engine.scrub(&[], 0, &mut |_, _| {
            runtime.block_on(feed(&world, from..from + more, 40_000));
            (from, more) = (from + more, 20);
            true
        })
    });
    let report = report.unwrap();
    assert_eq!(report.damaged, [], "{report:?}");
    assert_eq!(report.unreadable, Vec::<String>::new());
    // It went on with what was the oldest by then.
    assert!(report.buffers[0].articles > 0, "{report:?}");
    assert!(from >= 1170 && report.articles > 50, "{report:?}");
    assert_eq!(world.problems(), Vec::<String>::new());
    assert_eq!(counted(&world), (0, 0));
}

/// A segment that the server drops under the scrub is no damage, one that somebody removes is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_that_is_dropped_is_no_damage() {
    let memory = MemoryDisk::new();
    let mut config = config(4 << 20);
    config.store.buffers.clear();
    config.store.sets = vec![SetConfig {
        method: "segment".to_owned(),
        segment_octets: 1 << 20,
        keep_octets: Some(4 << 20),
        ..SetConfig::default()
    }];
    let world = World::on(Arc::new(memory.clone()), config);
    feed(&world, 0..100, 40_000).await;
    let runtime = tokio::runtime::Handle::current();
    let mut from = 1000;
    let report = tokio::task::block_in_place(|| {
        world.engine.scrub(&[], 0, &mut |_, _| {
            runtime.block_on(feed(&world, from..from + 30, 40_000));
            from += 30;
            true
        })
    });
    assert_eq!(report.unwrap().damaged, []);
    assert!(from >= 1060);
    let dir = Path::new("/spool/segments/main");
    let files = memory.list(dir).unwrap();
    memory.remove(&dir.join(&files[1].name)).unwrap();
    let world = world.restart();
    let report = scrub(&world);
    assert!((20..40).contains(&report.damaged.len()), "{report:?}");
    assert!(report.damaged[0].means.contains("its text is lost"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_sector_is_damage_and_a_dead_disk_is_told() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let world = World::on(Arc::new(faulty.clone()), config(2 << 20));
    feed(&world, 0..500, 3000).await;
    let (path, offset, ..) = place(&world, 7);
    let path = path.display().to_string();
    let bad = Fault::new(Op::Read, &path, Effect::Medium);
    faulty.add(bad.clone().covering(offset + 1000).forever());
    let report = scrub(&world);
    assert_eq!(
        (report.articles, report.damaged.len()),
        (499, 1),
        "{report:?}"
    );
    assert_eq!(report.damaged[0].from, offset);
    assert_eq!(report.unreadable, Vec::<String>::new());
    faulty.clear();
    faulty.add(bad.forever());
    let report = scrub(&world);
    // The other buffer is sound.
    let [why] = &report.unreadable[..] else {
        panic!("{report:?}");
    };
    assert!(
        why.contains(&path) && report.damaged.is_empty(),
        "{report:?}"
    );
    assert!((100..400).contains(&report.articles), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_background_begins_when_it_is_due_and_tells_damage_once() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), in_background(1 << 30));
    let passes = |world: &World| world.engine.status().scrub.last_began;
    go_on_until(&world, "the first pass", |world| passes(world).is_some());
    let first = passes(&world);
    feed(&world, 0..40, 3000).await;
    let (path, offset, ..) = place(&world, 5);
    memory.flip_bit(&path, offset + 2500, 3).unwrap();
    world.wait_s(29 * DAY_S);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!((passes(&world), counted(&world)), (first, (0, 0)));
    world.wait_s(DAY_S);
    go_on_until(&world, "the second pass", |world| passes(world) > first);
    let second = passes(&world);
    assert!(second >= Some(NOW + 30 * DAY_S), "{second:?}");
    assert_eq!(counted(&world), (1, 1));
    let scrubbed = world.engine.status().scrub;
    assert_eq!((scrubbed.last_articles, scrubbed.began), (Some(39), None));
    // Neither the next pass nor one behind a restart tells it again.
    let world = world.restart();
    assert_eq!(counted(&world), (0, 1));
    let id = MessageId::parse(b"<5@t.example>").unwrap();
    let stat = world.read(ArticleQuery::ById(id), Part::Stat).await;
    assert_eq!(stat, None, "it is known behind a restart, too");
    world.wait_s(30 * DAY_S);
    go_on_until(&world, "the third pass", |world| passes(world) > second);
    assert_eq!(counted(&world), (0, 1));
    // What is mended is forgotten.
    memory.flip_bit(&path, offset + 2500, 3).unwrap();
    world.wait_s(30 * DAY_S);
    go_on_until(&world, "the fourth pass", |world| counted(world) == (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_background_keeps_its_rate_and_goes_on_behind_a_restart() {
    let mut config = in_background(1 << 20);
    for buffer in &mut config.store.buffers {
        buffer.octets = 8 << 20;
    }
    let world = World::new(config);
    world.wait_until("the first pass", |world| {
        world.engine.status().scrub.last_began.is_some()
    });
    feed(&world, 0..200, 40_000).await;
    world.wait_s(30 * DAY_S);
    let octets = |world: &World| world.engine.status().scrub.octets;
    // It begins before it has read anything.
    world.wait_until("the second pass", |world| octets(world) > Some(0));
    let first = octets(&world);
    // No time goes by, so nothing more is read.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(octets(&world), first);
    assert!(first.unwrap() <= 2 << 20, "{first:?}");
    world.wait_s(2);
    world.wait_until("the next piece", |world| octets(world) > first);
    let status = world.engine.status().scrub;
    let world = world.restart();
    let kept = world.engine.status().scrub;
    assert_eq!((kept.began, &kept.buffer), (status.began, &status.buffer));
    assert!(kept.octets >= status.octets, "{kept:?}");
    let mut seconds = 0;
    while world.engine.status().scrub.began.is_some() {
        assert!(seconds < 60, "{:?}", world.engine.status().scrub);
        world.wait_s(1);
        seconds += 1;
        std::thread::sleep(Duration::from_millis(300));
    }
    let done = world.engine.status().scrub;
    assert_eq!(done.last_articles, Some(200), "each of them once: {done:?}");
}

/// A bitmap that was overwritten with the header stayed so when that was made again, up to the next pass, a month later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_header_that_is_made_again_the_background_compares_the_bitmap_at_once() {
    let octets = 2 << 20;
    let world = World::new(in_background(4 << 20));
    feed(&world, 0..40, 3000).await;
    let passes = |world: &World| world.engine.status().scrub.last_ended;
    go_on_until(&world, "the first pass", |world| passes(world).is_some());
    let first = passes(&world);
    let path = Path::new("/spool/buffers/C0");
    let world = between_runs(world, |disk| {
        let file = disk.open(path, OpenMode::ReadWrite).unwrap();
        file.write_at(&[0x55; 3 * 4096], 0).unwrap();
    });
    go_on_until(&world, "another pass", |world| passes(world) > first);
    let World { disk, engine, .. } = world;
    engine.shutdown().unwrap();
    let buffer = open_alone(&disk, path).unwrap().next().unwrap().unwrap();
    let bits = buffer.bits(Position::new(1, 0)..Position::new(1, octets));
    let (mut starts, mut scan) = (Vec::new(), buffer.scan(ScanRange::Live));
    while let Some(scanned) = scan.step().unwrap() {
        if let Scanned::Record { token, .. } = scanned {
            starts.push(token.position());
        }
    }
    assert_eq!(starts.len(), 40);
    assert_eq!(bits.unwrap(), Some(starts));
}

/// A stop does not wait for the pause of a slow scrub.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_ends_the_scrub_at_once() {
    let world = World::new(in_background(64 << 10));
    feed(&world, 0..40, 40_000).await;
    world.wait_s(30 * DAY_S);
    world.wait_until("the pass", |world| {
        world.engine.status().scrub.began.is_some()
    });
    let before = std::thread::spawn(move || world.engine.shutdown());
    for _ in 0..100 {
        if before.is_finished() {
            return before.join().unwrap().unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it does not stop");
}

/// Nobody reads headers while a server runs: the scrub does, and what rots is written again while it is known.
#[tokio::test]
async fn a_header_that_rots_is_written_again_by_the_scrub() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    world.send(&[article(1, "misc.test")]).await;
    world.seal();
    let path = Path::new("/spool/buffers/C1");
    let scrub = |engine: &Engine| {
        let names = ["C1".to_owned()];
        engine.scrub(&names, 0, &mut |_, _| true).unwrap().headers
    };
    assert_eq!(scrub(&world.engine), Vec::<String>::new());
    memory.flip_bit(path, 4096 + 96, 0).unwrap();
    let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
    let looking = Engine::open_read_only(world.config.clone(), Arc::clone(&world.disk), clock);
    let said = scrub(&looking.unwrap());
    assert!(
        said[0].ends_with("header is damaged; nothing was written"),
        "{said:?}"
    );
    let said = scrub(&world.engine);
    let expected = "buffer C1: one copy of its header is damaged; it was written again";
    assert_eq!(said, [expected]);
    assert_eq!(scrub(&world.engine), Vec::<String>::new());
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// From history and log, wherever what is left proves that the article is what it was.
async fn records_whose_headers_rot_are_written_again(config: EngineConfig, moved_to: Option<&str>) {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config);
    feed(&world, 0..70, 1500).await;
    if let Some(to) = moved_to {
        let what = Relocation {
            from: "main".to_owned(),
            to: to.to_owned(),
            groups: None,
            dry_run: false,
        };
        let moved = world.engine.relocate(&what, &mut |_, _| true).unwrap();
        assert_eq!(moved.articles, 70);
    }
    for octet in 0..64 {
        let n = octet as usize + 3;
        let (path, offset, _, token) = place(&world, n);
        let (buffer, _) = token.split_once(':').unwrap();
        memory.flip_bit(&path, offset + octet, 5).unwrap();
        let report = scrub(&world);
        let expected = format!(
            "buffer {buffer}, <{n}@t.example>: the header of its record was damaged; it was written again"
        );
        assert_eq!(report.headers, [expected], "octet {octet}");
        assert_eq!(report.damaged.len(), 0, "octet {octet}");
    }
    // All eight octets of a sequence, all four of a checksum.
    for (n, octets) in [(1, 28..36), (10, 60..64)] {
        let (path, offset, ..) = place(&world, n);
        octets.for_each(|octet| memory.flip_bit(&path, offset + octet, 5).unwrap());
    }
    let report = scrub(&world);
    // A checksum of four octets tells four, not eight.
    assert_eq!((report.headers.len(), report.damaged.len()), (1, 1));
    // With another octet of its text nothing is proven.
    for (n, octet) in [(20, 3), (30, 30), (40, 61)] {
        let (path, offset, ..) = place(&world, n);
        memory.flip_bit(&path, offset + octet, 1).unwrap();
        memory.flip_bit(&path, offset + 1000, 1).unwrap();
    }
    let report = scrub(&world);
    assert_eq!((report.headers.len(), report.damaged.len()), (0, 4));
    // What lies where articles moved from is sound, and nobody is led there any more.
    let moved = if moved_to.is_some() { 70 } else { 0 };
    assert_eq!((report.articles, report.withdrawn), (66, moved));
    // Those that lie there are told by a check, and nothing else is.
    let last = world.engine.status().buffers.pop().unwrap();
    let named = format!("buffer {}", &last.name[..1]);
    assert!(world.problems().iter().all(|it| it.contains(&named)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_whose_header_rots_is_written_again() {
    records_whose_headers_rot_are_written_again(config(2 << 20), None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_is_one_in_a_segment() {
    let mut config = config(2 << 20);
    config.store.buffers.clear();
    config.store.sets[0].buffers.clear();
    config.store.sets[0].method = "segment".to_owned();
    records_whose_headers_rot_are_written_again(config, None).await;
}

/// The log has it under the sequence of its copy, which was not looked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_is_one_that_moved() {
    let mut config = config(2 << 20);
    config.store.sets.push(SetConfig {
        name: "kept".to_owned(),
        method: "segment".to_owned(),
        ..SetConfig::default()
    });
    records_whose_headers_rot_are_written_again(config, Some("kept")).await;
}

/// The pace counts what is read: around each damaged record that is little.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_damaged_headers_cost_little_more_than_a_pass() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(2 << 20));
    feed(&world, 0..80, 6000).await;
    let whole = scrub(&world).octets;
    for n in 0..40 {
        let (path, offset, ..) = place(&world, 2 * n);
        memory.flip_bit(&path, offset + 5, 1).unwrap();
        // Half of them cannot be written again.
        if n % 2 == 0 {
            memory.flip_bit(&path, offset + 5000, 1).unwrap();
        }
    }
    let report = scrub(&world);
    assert_eq!((report.headers.len(), report.damaged.len()), (20, 20));
    let most = whole + 40 * 3 * 4096;
    assert!(report.octets <= most, "{} of {whole}", report.octets);
}

/// By what begins where; a withdrawn article has no bit, and none is missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bitmap_that_rots_is_written_again() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(2 << 20));
    feed(&world, 0..60, 3000).await;
    let gone = ["<7@t.example>", "<8@t.example>"].map(|id| id.parse().unwrap());
    world
        .engine
        .withdraw(&gone[..1], newsreel_engine::Reason::Cancelled)
        .unwrap();
    world.seal();
    // Its bit is still to go.
    world
        .engine
        .withdraw(&gone[1..], newsreel_engine::Reason::Cancelled)
        .unwrap();
    assert_eq!(scrub(&world).headers, Vec::<String>::new());
    let (path, offset, _, token) = place(&world, 20);
    let buffer = token.split_once(':').unwrap().0.to_owned();
    let (octet, bit) = (8192 + offset / 64 / 8, (offset / 64 % 8) as u8);
    // One that should be, and one that should not.
    memory.flip_bit(&path, octet, bit).unwrap();
    memory.flip_bit(&path, octet + 2, bit).unwrap();
    let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
    let looking = Engine::open_read_only(world.config.clone(), Arc::clone(&world.disk), clock);
    let looking = looking.unwrap().scrub(&[], 0, &mut |_, _| true).unwrap();
    let said =
        |done: &str| format!("buffer {buffer}: its bitmap was wrong at 2 of its bits; {done}");
    assert_eq!(looking.headers, [said("nothing was written")]);
    assert_eq!(scrub(&world).headers, [said("it was written again")]);
    assert_eq!(scrub(&world).headers, Vec::<String>::new());
    assert_eq!(world.problems(), Vec::<String>::new());
    // Beside damage it was left as it was: what is sound there says as much as elsewhere.
    memory.flip_bit(&path, octet, bit).unwrap();
    memory.flip_bit(&path, octet + 2, bit).unwrap();
    let (_, damaged, octets, _) = place(&world, 25);
    write_pages(&*world.disk, &path, damaged, &vec![0xa5; octets as usize]);
    let report = scrub(&world);
    assert_eq!(report.headers, [said("it was written again")]);
    assert!(!report.damaged.is_empty());
    assert_eq!(scrub(&world).headers, Vec::<String>::new());
    // In the midst of damage one stayed where nothing begins and to which the history leads nobody, untold.
    let within = damaged + 640;
    let (octet, bit) = (8192 + within / 64 / 8, (within / 64 % 8) as u8);
    memory.flip_bit(&path, octet, bit).unwrap();
    let report = scrub(&world);
    let said =
        format!("buffer {buffer}: its bitmap was wrong at 1 of its bits; it was written again");
    assert_eq!(report.headers, [said]);
    let damage = report.damaged.len();
    let report = scrub(&world);
    assert_eq!((report.headers, report.damaged.len()), (vec![], damage));
}

/// A buffer whose header was made again lost the bits of all its articles with the next checkpoint: to who reads the file by itself they
/// were withdrawn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_is_made_again_leaves_the_bitmap_as_it_is() {
    for is_stopped in [true, false] {
        let world = World::new(config(2 << 20));
        feed(&world, 0..60, 3000).await;
        world.seal();
        feed(&world, 60..80, 3000).await;
        let World {
            disk,
            clock,
            config,
            engine,
            ..
        } = world;
        if is_stopped {
            engine.shutdown().unwrap();
        }
        drop(engine);
        // All of them lie in the first.
        let file = disk.open(Path::new("/spool/buffers/C0"), OpenMode::ReadWrite);
        file.unwrap().write_at(&[0xff; 8192], 0).unwrap();
        let world = open_on(disk, &config, &clock);
        feed(&world, 80..100, 3000).await;
        world.seal();
        assert_eq!(scrub(&world).headers, Vec::<String>::new());
        assert_eq!(scrub(&world).articles, 100);
        assert_eq!(world.problems(), Vec::<String>::new());
    }
}

/// Each of them was told by itself, a segment of articles one by one.
#[tokio::test]
async fn articles_without_their_dictionary_are_told_once() {
    let mut config = config(2 << 20);
    config.store.buffers.clear();
    let set = &mut config.store.sets[0];
    set.buffers.clear();
    "segment".clone_into(&mut set.method);
    (set.segment_octets, set.compression_level) = (8 << 20, Some(3));
    let world = World::new(config);
    let of_words = |n: usize| {
        let (id, mut wire) = article(n, "misc.test");
        wire.truncate(wire.len() - 3);
        let mut fill = n as u64 + 1;
        while wire.len() < 2500 {
            fill = fill.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(7);
            let word = (fill >> 33) % 300;
            wire.extend_from_slice(format!("word-number-{word} ").as_bytes());
            if fill >> 60 == 0 {
                wire.extend_from_slice(b"\r\n");
            }
        }
        wire.extend_from_slice(b"\r\n.\r\n");
        (id, wire)
    };
    for n in 0..400 {
        assert_eq!(world.send(&[of_words(n)]).await, [Outcome::Accepted]);
    }
    world.seal();
    for n in 400..430 {
        assert_eq!(world.send(&[of_words(n)]).await, [Outcome::Accepted]);
    }
    let path = Path::new("/spool/segments/main/00000001.seg");
    let file = world.disk.open(path, OpenMode::ReadWrite).unwrap();
    for copy in [8192, 16_384] {
        file.write_at(b"damage", copy + 1000).unwrap();
    }
    // Memory has it no more.
    let world = world.restart();
    let report = scrub(&world);
    assert_eq!(report.damaged.len(), 1, "{report:?}");
    assert_eq!(
        report.damaged[0].message_id.as_deref(),
        Some("<400@t.example>")
    );
    let told = report.headers.concat();
    assert!(
        told.contains("of segment 1 are damaged: articles that cannot be unpacked without it: 30, first <400@t.example>"),
        "{told}"
    );
    assert_eq!(report.articles, 400);
}

fn read_pages(disk: &dyn Disk, path: &Path, from: u64, to: u64) -> Vec<u8> {
    let mut octets = vec![0; (to - from) as usize];
    let file = disk.open(path, OpenMode::Read).unwrap();
    file.read_exact_at(&mut octets, from).unwrap();
    octets
}

fn write_pages(disk: &dyn Disk, path: &Path, from: u64, octets: &[u8]) {
    let file = disk.open(path, OpenMode::ReadWrite).unwrap();
    file.write_at(octets, from).unwrap();
}

/// Which of the articles are not served.
async fn not_served(world: &World, of: impl Iterator<Item = usize>) -> Vec<String> {
    let mut lost = Vec::new();
    for n in of {
        let id = format!("<{n}@t.example>");
        if world.by_id(&id).await.is_none() {
            lost.push(id);
        }
    }
    lost.sort();
    lost
}

/// A scrub names exactly these as damaged, with their numbers, each time; a check does, too, and nobody is led to them.
async fn are_told(world: &World, lost: &[String], sound: usize) {
    for _ in 0..2 {
        let report = scrub(world);
        let mut ids: Vec<_> = report
            .damaged
            .iter()
            .map(|damage| damage.message_id.clone().unwrap())
            .collect();
        ids.sort();
        assert_eq!(ids, lost);
        assert_eq!(report.articles, sound as u64, "{report:?}");
        assert_eq!(report.headers, Vec::<String>::new());
        let problems = world.problems();
        for damage in &report.damaged {
            assert_eq!(damage.groups.len(), 1, "{damage:?}");
            let line = damage.to_string();
            assert!(problems.contains(&line), "{line} in {problems:?}");
        }
        assert_eq!(counted(world).1, lost.len() as u64);
    }
    for id in lost {
        let id = MessageId::parse(id.as_bytes()).unwrap();
        let stat = world.read(ArticleQuery::ById(id), Part::Stat).await;
        assert_eq!(stat, None);
    }
}

/// A scrub passed zeros as room in which nothing was ever written, said that nothing was damaged, and cleared the bits that would have
/// proved it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zeros_in_a_buffer_are_the_damage_that_they_are() {
    let world = World::new(config(2 << 20));
    feed(&world, 0..100, 3000).await;
    let gone = "<3@t.example>".parse().unwrap();
    let cancelled = newsreel_engine::Reason::Cancelled;
    world.engine.withdraw(&[gone], cancelled).unwrap();
    world.seal();
    // A page, and a longer stretch.
    let (page, first, last) = (place(&world, 8), place(&world, 30), place(&world, 60));
    let page_at = page.1 - page.1 % 4096;
    let (from, to) = (first.1 - first.1 % 4096, last.1 - last.1 % 4096);
    assert!(
        first.0 == last.0 && to > from + 40_000,
        "{first:?} {last:?}"
    );
    let world = between_runs(world, |disk| {
        write_pages(disk, &page.0, page_at, &[0; 4096]);
        write_pages(disk, &first.0, from, &vec![0; (to - from) as usize]);
    });
    let mut lost = not_served(&world, 0..100).await;
    lost.retain(|id| id != "<3@t.example>");
    assert!(lost.len() > 10, "{lost:?}");
    are_told(&world, &lost, 99 - lost.len()).await;
    assert_eq!(scrub(&world).withdrawn, 1);
    // With views that are read from disk, and a log that begins behind them.
    let world = world.restart();
    are_told(&world, &lost, 99 - lost.len()).await;
}

/// So it did with pages of an earlier cycle that came back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_an_earlier_cycle_are_damage_where_newer_ones_should_be() {
    let world = World::new(config(2 << 20));
    feed(&world, 0..100, 20_000).await;
    let old = place(&world, 60);
    let (from, to) = (old.1 - old.1 % 4096, old.1 - old.1 % 4096 + 65_536);
    let pages = read_pages(world.disk.as_ref(), &old.0, from, to);
    let mut last = 100;
    // Until both buffers have come around.
    while world.engine.status().buffers.iter().any(|it| it.cycle < 2)
        || world
            .engine
            .status()
            .buffers
            .iter()
            .any(|it| it.free_offset < to + 300_000)
    {
        feed(&world, last..last + 10, 20_000).await;
        last += 10;
    }
    world.seal();
    let there = not_served(&world, 0..last).await;
    let world = between_runs(world, |disk| write_pages(disk, &old.0, from, &pages));
    let mut lost = not_served(&world, 0..last).await;
    lost.retain(|id| !there.contains(id));
    assert!((2..8).contains(&lost.len()), "{lost:?}");
    let sound = last - there.len() - lost.len();
    are_told(&world, &lost, sound).await;
}

/// The same of segments: zeros, another file's pages, and a file that is not there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_in_segments_is_told_article_by_article() {
    let mut config = config(4 << 20);
    config.store.buffers.clear();
    config.store.sets = vec![SetConfig {
        method: "segment".to_owned(),
        segment_octets: 1 << 20,
        ..SetConfig::default()
    }];
    let world = World::new(config);
    feed(&world, 0..150, 30_000).await;
    world.seal();
    let file = |cycle: u32| PathBuf::from(format!("/spool/segments/main/{cycle:08}.seg"));
    let world = between_runs(world, |disk| {
        let (from, to) = (12_288, 300_288);
        write_pages(disk, &file(2), from, &vec![0; (to - from) as usize]);
        let other = read_pages(disk, &file(1), from, to);
        write_pages(disk, &file(3), from, &other);
        disk.remove(&file(4)).unwrap();
    });
    let lost = not_served(&world, 0..150).await;
    assert!((40..70).contains(&lost.len()), "{lost:?}");
    are_told(&world, &lost, 150 - lost.len()).await;
}

/// A damaged header was written again only by the next scrub, a month later perhaps: a read that meets it has that done, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_whose_header_a_read_finds_damaged_is_written_again() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), in_background(1 << 30));
    go_on_until(&world, "the first pass", |world| {
        world.engine.status().scrub.last_began.is_some()
    });
    feed(&world, 0..40, 3000).await;
    let world = world.restart();
    let before = world.by_id("<7@t.example>").await.unwrap();
    let world = world.restart();
    for n in [7, 9] {
        let (path, offset, ..) = place(&world, n);
        memory.flip_bit(&path, offset + 13, 3).unwrap();
        if n == 9 {
            // Nothing proves what this one was.
            memory.flip_bit(&path, offset + 2000, 3).unwrap();
        }
        assert_eq!(world.by_id(&format!("<{n}@t.example>")).await, None);
    }
    for _ in 0..100 {
        world.wait_s(1);
        std::thread::sleep(Duration::from_millis(50));
        if world.by_id("<7@t.example>").await.is_some() {
            break;
        }
    }
    assert_eq!(world.by_id("<7@t.example>").await.as_ref(), Some(&before));
    assert_eq!(world.by_id("<9@t.example>").await, None);
}

/// What is told of a record whose header was lost whole.
const MADE_AGAIN: &str =
    "the header of its record was lost; it was made again from log and history";

/// Where not one octet was left in front of an article its text was lost, though history and log knew all of it and it was whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_without_a_header_are_made_again_where_their_texts_agree() {
    let piled = || {
        let mut config = config(2 << 20);
        config.store.buffers.clear();
        config.store.sets[0].buffers.clear();
        "segment".clone_into(&mut config.store.sets[0].method);
        config
    };
    let to_kept = || {
        let mut config = config(32 << 20);
        config.store.sets.push(SetConfig {
            name: "kept".to_owned(),
            method: "segment".to_owned(),
            ..SetConfig::default()
        });
        config
    };
    let worlds = [
        ("buffers", config(32 << 20), false),
        ("segments", piled(), false),
        ("moved", to_kept(), true),
    ];
    for (what, config, is_moved) in worlds {
        let memory = MemoryDisk::new();
        let world = World::on(Arc::new(memory.clone()), config);
        feed(&world, 0..12, 1500).await;
        // Some of these lie around the end of what is read at once.
        feed(&world, 12..16, 900_000).await;
        if is_moved {
            let to_kept = Relocation {
                from: "main".to_owned(),
                to: "kept".to_owned(),
                groups: None,
                dry_run: false,
            };
            let moved = world.engine.relocate(&to_kept, &mut |_, _| true).unwrap();
            assert_eq!(moved.articles, 16);
        }
        let mut texts = Vec::new();
        for n in 0..16 {
            texts.push(world.by_id(&format!("<{n}@t.example>")).await.unwrap());
        }
        let octets_at = |world: &World, n: usize| {
            let (path, offset, ..) = place(world, n);
            let file = memory.open(&path, OpenMode::Read).unwrap();
            let mut octets = [0; 64];
            file.read_exact_at(&mut octets, offset).unwrap();
            (path, offset, octets)
        };
        let lost = [0, 3, 4, 8, 12, 13, 14, 15].map(|n| (n, octets_at(&world, n)));
        for (n, (path, offset, _)) in &lost {
            let left = [0, 0xff, 0x5a][n % 3];
            memory.corrupt(path, *offset, &[left; 64]).unwrap();
        }
        let world = world.restart();
        let report = scrub(&world);
        assert_eq!(report.damaged.len(), 0, "{what}: {report:?}");
        let told = |n: usize| {
            let whose = format!("<{n}@t.example>: {MADE_AGAIN}");
            report.headers.iter().any(|told| told.contains(&whose))
        };
        assert!(lost.iter().all(|(n, _)| told(*n)), "{what}: {report:?}");
        assert_eq!(report.headers.len(), lost.len(), "{what}: {report:?}");
        // They are what they were.
        for (n, (path, offset, before)) in &lost {
            let file = memory.open(path, OpenMode::Read).unwrap();
            let mut octets = [0; 64];
            file.read_exact_at(&mut octets, *offset).unwrap();
            assert_eq!(&octets, before, "{what}: {n}");
        }
        assert_eq!(scrub(&world).headers, [""; 0], "{what}");
        // With other lengths, another message-id, or another line in the overview nobody vouches for it.
        let spoilt: [(usize, &[u8], &[u8]); 4] = [
            (5, b"Message-ID: <5@", b"Message-ID: <6@"),
            (6, b"Subject: number", b"Subject: numbeR"),
            (7, b"a line that fills", b"a line\r\nhat fills"),
            (9, b"\r\n.\r\n", b"\r\n..\n"),
        ];
        for (n, is, becomes) in spoilt {
            let (path, offset, _) = octets_at(&world, n);
            memory.corrupt(&path, offset, &[0; 64]).unwrap();
            let text = texts[n].as_bytes();
            // As it lies there: behind each dot another.
            let mut octets = vec![0; text.len() + 200];
            let file = memory.open(&path, OpenMode::Read).unwrap();
            file.read_exact_at(&mut octets, offset).unwrap();
            let at = octets.windows(is.len()).position(|it| it == is).unwrap();
            memory.corrupt(&path, offset + at as u64, becomes).unwrap();
        }
        let report = scrub(&world);
        assert_eq!(report.headers, [""; 0], "{what}");
        assert_eq!(report.damaged.len(), spoilt.len(), "{what}: {report:?}");
    }
}

/// Of a bitmap that is all ones only the first thousand bits were cleared that stand for what lies between batches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_bits_where_no_article_begins_are_cleared_at_once() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(2 << 20));
    feed(&world, 0..1500, 2500).await;
    world.seal();
    assert_eq!(scrub(&world).headers, Vec::<String>::new());
    let alive = scrub(&world).articles;
    for name in ["C0", "C1"] {
        let path = Path::new("/spool/buffers").join(name);
        memory.corrupt(&path, 8192, &[0xff; 4096]).unwrap();
    }
    let report = scrub(&world);
    assert_eq!(report.damaged.len(), 0, "{report:?}");
    assert_eq!(report.headers.len(), 4, "{report:?}");
    let report = scrub(&world);
    assert_eq!((report.headers, report.damaged.len()), (vec![], 0));
    assert_eq!(report.articles, alive);
}

/// Bits of the padding between batches, and of headers and bitmap, were damage at each scrub until the buffer came around.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bits_where_no_article_begins_are_cleared() {
    for is_wrapped in [false, true] {
        let memory = MemoryDisk::new();
        let world = World::on(Arc::new(memory.clone()), config(2 << 20));
        let last = if is_wrapped { 1500 } else { 300 };
        feed(&world, 0..last, 2500).await;
        let gone = ["<280@t.example>", "<281@t.example>"].map(|id| id.parse().unwrap());
        world
            .engine
            .withdraw(&gone, newsreel_engine::Reason::Cancelled)
            .unwrap();
        world.seal();
        assert_eq!(scrub(&world).headers, Vec::<String>::new());
        let alive = scrub(&world).articles;
        let bitmap = |name: &str| {
            let file = memory.open(&Path::new("/spool/buffers").join(name), OpenMode::Read);
            let mut octets = vec![0; 4096];
            file.unwrap().read_exact_at(&mut octets, 8192).unwrap();
            octets
        };
        let before = ["C0", "C1"].map(bitmap);
        for (name, bits) in ["C0", "C1"].iter().zip(&before) {
            // Every eleventh octet has other bits, those of the first pages among them.
            let mut rotten = bits.clone();
            rotten
                .iter_mut()
                .step_by(11)
                .for_each(|octet| *octet ^= 0x92);
            let path = Path::new("/spool/buffers").join(name);
            memory.corrupt(&path, 8192, &rotten).unwrap();
        }
        let report = scrub(&world);
        assert_eq!(report.damaged.len(), 0, "{is_wrapped}: {report:?}");
        let told = |name: &str, what: &str| {
            let start = format!("buffer {name}: {what}");
            report.headers.iter().any(|told| told.starts_with(&start))
        };
        for name in ["C0", "C1"] {
            assert!(told(name, "its bitmap was wrong at "), "{report:?}");
            assert!(
                told(name, "its bitmap has bits where no article can begin: "),
                "{report:?}"
            );
        }
        let report = scrub(&world);
        assert_eq!((report.headers.len(), report.damaged.len()), (0, 0));
        assert_eq!(report.articles, alive);
        if !is_wrapped {
            // What comes behind the last article is written over as it comes.
            let buffers = world.engine.status().buffers;
            for (nth, name) in ["C0", "C1"].into_iter().enumerate() {
                let upto = buffers[nth].free_offset as usize / 64 / 8;
                assert_eq!(bitmap(name)[..upto], before[nth][..upto], "{name}");
            }
        }
    }
}
