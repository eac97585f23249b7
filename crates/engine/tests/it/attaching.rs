//! Buffers and segments from elsewhere: taken in by another spool, with their numbers, also where nothing else is left.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_engine::{
    ArticleRef, Attached, Attaching, GroupChange, GroupSpec, Mode, Reason, Withdrawal,
};
use newsreel_host::{Disk, FaultyDisk, MemoryDisk, Op, OpenMode};
use newsreel_service::Outcome;
use newsreel_store::open_alone;
use newsreel_wire::{ArticleNumber, MessageId, TokenText};

use crate::segments::segments;
use crate::world::{NOW, World, article, config, open_on};

/// More than is handed on at once, twice.
pub(crate) const ARTICLES: usize = 1000;
pub(crate) const GROUPS: [&str; 2] = ["misc.test", "misc.other"];
pub(crate) const ROOM: u64 = 8 << 20;

fn groups_of(n: usize) -> &'static str {
    match n % 3 {
        0 => "misc.test,misc.other",
        1 => "misc.other",
        _ => "misc.test",
    }
}

pub(crate) fn filled(n: usize) -> (String, Vec<u8>) {
    let (id, mut text) = article(n, groups_of(n));
    text.truncate(text.len() - 3);
    text.extend_from_slice(
        "some words of a body that goes on\r\n"
            .repeat(70)
            .as_bytes(),
    );
    text.extend_from_slice(b".\r\n");
    (id, text)
}

/// A spool with articles, and what its groups show.
pub(crate) async fn source(segments: bool) -> (World, Vec<Vec<String>>) {
    let mut config = config(ROOM);
    if segments {
        let set = &mut config.store.sets[0];
        set.buffers.clear();
        (set.method, set.segment_octets) = ("segment".to_owned(), 1 << 20);
        config.store.buffers.clear();
    }
    let world = World::new(config);
    if segments {
        // What came first may be gone: numbers begin anywhere.
        let high = Some(ArticleNumber(7000));
        for group in GROUPS {
            let change = GroupChange {
                high,
                ..GroupChange::default()
            };
            world.engine.set_group(group, change).unwrap();
        }
    }
    for some in (0..ARTICLES).collect::<Vec<_>>().chunks(100) {
        let some: Vec<_> = some.iter().map(|n| filled(*n)).collect();
        let outcomes = world.send(&some).await;
        assert!(outcomes.iter().all(|it| *it == Outcome::Accepted));
    }
    let mut lines = Vec::new();
    for group in GROUPS {
        lines.push(world.lines(group).await);
    }
    (world, lines)
}

/// Copies what is in a directory to another disk.
pub(crate) fn copy(from: &World, dir: &str, to: &dyn Disk) -> Vec<PathBuf> {
    let elsewhere = Path::new("/elsewhere");
    to.create_dir_all(elsewhere).unwrap();
    let names = from.disk.list(Path::new(dir)).unwrap().into_iter();
    let names = names.map(|entry| entry.name);
    let copied = names
        .filter(|name| !name.starts_with("register") && name != ".newsreel-set")
        .map(|name| {
            let file = from
                .disk
                .open(&Path::new(dir).join(&name), OpenMode::Read)
                .unwrap();
            let mut octets = vec![0; file.len().unwrap() as usize];
            file.read_exact_at(&mut octets, 0).unwrap();
            let path = elsewhere.join(name);
            let copy = to.open(&path, OpenMode::CreateNew).unwrap();
            copy.write_at(&octets, 0).unwrap();
            copy.sync_all().unwrap();
            path
        });
    let copied = copied.collect();
    to.sync_dir(elsewhere).unwrap();
    copied
}

/// These files, copied into groups that are there.
pub(crate) fn copies(paths: &[PathBuf]) -> Attaching {
    Attaching {
        paths: paths.to_vec(),
        make_groups: false,
        withdrawn: false,
        in_place: false,
        oldest_may_go: false,
        dry_run: false,
    }
}

pub(crate) fn attach(
    world: &World,
    paths: &[PathBuf],
    make_groups: bool,
    dry_run: bool,
) -> Attached {
    let what = Attaching {
        make_groups,
        dry_run,
        ..copies(paths)
    };
    world.engine.attach(&what, &mut |_, _| true).unwrap()
}

fn count(taken: usize, known: usize) -> (u64, u64, u64) {
    (taken as u64, known as u64, 0)
}

fn counts(report: &Attached) -> (u64, u64, u64) {
    assert_eq!(report.refused.len(), 0, "{report:?}");
    assert_eq!(report.unreadable.len(), 0, "{report:?}");
    (report.taken, report.known, report.renumbered)
}

/// Nothing is left but the buffers, of a spool of another key: its readers find everything where it was.
#[tokio::test]
async fn a_spool_of_which_only_articles_are_left_is_made_again() {
    for segments in [false, true] {
        let (world, lines) = source(segments).await;
        let disk = MemoryDisk::new();
        let dir = if segments {
            "/spool/segments/main"
        } else {
            "/spool/buffers"
        };
        let mut paths = copy(&world, dir, &disk);
        paths.reverse();
        if segments {
            paths = vec![PathBuf::from("/elsewhere")];
        }
        let texts = texts(&world).await;
        let mut world = World::on(Arc::new(disk), config(ROOM));
        for group in GROUPS {
            world.engine.remove_group(group).unwrap();
        }
        let refused = attach(&world, &paths, false, false);
        assert_eq!(refused.refused.values().sum::<u64>(), ARTICLES as u64);
        assert_eq!(refused.taken, 0, "no group is here");

        world.wait_s(3600);
        for dry_run in [true, false] {
            let what = attach(&world, &paths, true, dry_run);
            assert_eq!(counts(&what), count(ARTICLES, 0), "{dry_run}");
            assert_eq!(what.groups_made.len(), 2);
        }
        for _ in 0..2 {
            for (group, lines) in GROUPS.iter().zip(&lines) {
                assert_eq!(&world.lines(group).await, lines, "{group}");
            }
            assert_eq!(self::texts(&world).await, texts);
            assert_eq!(world.problems(), Vec::<String>::new());
            // The same again does no harm.
            assert_eq!(
                counts(&attach(&world, &paths, true, false)),
                count(0, ARTICLES)
            );
            world = world.restart();
        }
        // When they came is kept, too.
        let id = MessageId::parse(b"<7@t.example>").unwrap();
        let found = world
            .engine
            .article(&id.to_string().parse().unwrap())
            .unwrap();
        assert_eq!(found.unwrap().arrival, NOW);
    }
}

async fn texts(world: &World) -> Vec<Option<String>> {
    let mut texts = Vec::new();
    for n in (0..ARTICLES).step_by(37) {
        texts.push(world.by_id(&format!("<{n}@t.example>")).await);
    }
    assert!(texts.iter().all(Option::is_some));
    texts
}

/// A number that its group has given is not given again; later ones are kept.
#[tokio::test]
async fn numbers_that_were_given_here_are_not_given_again() {
    let (old, lines) = source(false).await;
    let disk = MemoryDisk::new();
    let paths = copy(&old, "/spool/buffers", &disk);
    let world = World::on(Arc::new(disk), config(ROOM));
    let own: Vec<_> = (5000..5003).map(|n| article(n, "misc.test")).collect();
    world.send(&own).await;
    let before = world.lines("misc.test").await;
    // One of those that come is here already.
    world.send(&[filled(1)]).await;
    let report = attach(&world, &paths, false, false);
    let filed = |group: &str| {
        (0..ARTICLES)
            .filter(|n| groups_of(*n).contains(group))
            .count()
    };
    assert_eq!((report.taken, report.known), (ARTICLES as u64 - 1, 1));
    assert_eq!(report.renumbered, filed("misc.test") as u64, "{report:?}");
    let after = world.lines("misc.test").await;
    assert_eq!(after[..3], before);
    assert_eq!(after.len(), 3 + filed("misc.test"));
    assert_eq!(world.high("misc.test"), 3 + filed("misc.test") as u64);
    // In the other group all keep theirs but for the one that had come here as the first.
    let other = world.lines("misc.other").await;
    let number = |line: &String| line.split('\t').next().unwrap().to_owned();
    let numbers = |lines: &[String]| lines.iter().map(number).collect::<Vec<_>>();
    assert_eq!(other.len(), lines[1].len());
    assert_eq!(numbers(&other)[2..], numbers(&lines[1])[2..]);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// What comes twice was counted as taken twice by who only asked.
#[tokio::test]
async fn copies_among_what_is_attached_are_known_to_a_dry_run() {
    let (old, _) = source(true).await;
    let disk = MemoryDisk::new();
    copy(&old, "/spool/segments/main", &disk);
    let world = World::on(Arc::new(disk), config(ROOM));
    let paths = [PathBuf::from("/elsewhere"), PathBuf::from("/elsewhere")];
    let would = attach(&world, &paths, false, true);
    assert_eq!(counts(&would), count(ARTICLES, ARTICLES));
    assert_eq!(attach(&world, &paths, false, false), would);
}

/// What was cancelled where the files come from came back, and longest from segments, which had nothing that tells it.
#[tokio::test]
async fn what_a_buffer_says_was_withdrawn_stays_withdrawn() {
    for (segments, is_headless) in [(false, false), (true, false), (true, true)] {
        let (old, _) = source(segments).await;
        let gone = [3, 400, 401, 999];
        let ids = gone.map(|n| ArticleRef::Id(format!("<{n}@t.example>")));
        let outcomes = old.engine.withdraw(&ids, Reason::Cancelled).unwrap();
        assert_eq!(outcomes, [const { Withdrawal::Done }; 4]);
        // With the next checkpoint, as at a stop.
        old.seal();
        let disk = MemoryDisk::new();
        let paths = match segments {
            false => copy(&old, "/spool/buffers", &disk),
            true => {
                copy(&old, "/spool/segments/main", &disk);
                vec![PathBuf::from("/elsewhere")]
            }
        };
        // Then nothing says where a segment ends and what was withdrawn of it begins.
        for entry in disk.list(Path::new("/elsewhere")).unwrap_or_default() {
            let path = Path::new("/elsewhere").join(entry.name);
            let file = disk.open(&path, OpenMode::ReadWrite);
            if is_headless {
                file.unwrap().write_at(&[0x55; 8192], 0).unwrap();
            }
        }
        let world = World::on(Arc::new(disk), config(ROOM));
        let is_here = async |n: usize| world.by_id(&format!("<{n}@t.example>")).await.is_some();
        let kept = ARTICLES - 4;
        for dry_run in [true, false] {
            let report = attach(&world, &paths, false, dry_run);
            assert_eq!(report.taken, kept as u64, "{report:?}");
            assert_eq!(report.withdrawn, (ARTICLES - kept) as u64, "{report:?}");
        }
        for n in gone {
            assert!(!is_here(n).await, "{n}");
        }
        assert!(is_here(4).await && is_here(998).await);
        let all = Attaching {
            paths,
            make_groups: false,
            withdrawn: true,
            in_place: false,
            oldest_may_go: false,
            dry_run: false,
        };
        let report = world.engine.attach(&all, &mut |_, _| true).unwrap();
        assert_eq!(
            (report.taken, report.withdrawn),
            ((ARTICLES - kept) as u64, 0)
        );
        assert!(is_here(400).await);
        assert_eq!(world.problems(), Vec::<String>::new());
    }
}

/// What a damaged bitmap seemed to say was withdrawn was left out, and nothing was told of that, nor of headers that were lost.
#[tokio::test]
async fn what_is_damaged_of_a_buffer_is_told_and_no_article_is_left_out_for_it() {
    const BITMAP: usize = ROOM as usize / 64 / 8;
    let (old, _) = source(false).await;
    old.seal();
    let spoiled = |at: u64, octets: &[u8]| {
        let disk = MemoryDisk::new();
        let paths = copy(&old, "/spool/buffers", &disk);
        for path in &paths {
            let file = disk.open(path, OpenMode::ReadWrite).unwrap();
            file.write_at(octets, at).unwrap();
        }
        (World::on(Arc::new(disk), config(ROOM)), paths)
    };
    let all = ARTICLES as u64;
    let (world, paths) = spoiled(8192, &[0x55; BITMAP]);
    let report = attach(&world, &paths, false, true);
    assert!(report.damaged > 0 && report.withdrawn > 0, "{report:?}");
    assert_eq!(report.doubtful.len(), 2, "{report:?}");
    let refused = world.engine.attach(&copies(&paths), &mut |_, _| true);
    let refused = refused.unwrap_err().to_string();
    for said in [
        "its bitmap is damaged",
        "--withdrawn",
        "nothing was taken in",
    ] {
        assert!(refused.contains(said), "{refused}");
    }
    let everything = Attaching {
        withdrawn: true,
        ..copies(&paths)
    };
    let report = world.engine.attach(&everything, &mut |_, _| true).unwrap();
    assert_eq!((report.taken, report.doubtful.len()), (all, 0));
    assert!(report.damaged > 0);

    let (world, paths) = spoiled(8192, &[0; BITMAP]);
    let report = attach(&world, &paths, false, false);
    assert_eq!((report.withdrawn, report.damaged), (all, 0), "{report:?}");
    assert_eq!(warned(&report, "nothing in it is alive"), 2, "{report:?}");

    let (world, paths) = spoiled(0, &[0x55; 8192]);
    for dry_run in [true, false] {
        let report = attach(&world, &paths, false, dry_run);
        assert_eq!(report.taken, all, "{report:?}");
        assert_eq!(
            warned(&report, "which of them were withdrawn is not known"),
            2,
            "{report:?}"
        );
    }
}

/// A spool whose buffers were made larger when nothing was in them, and of some articles where they lie: in front of the end of the
/// bitmaps, and behind it.
async fn enlarged(disk: &MemoryDisk) -> (World, [Vec<(usize, TokenOf)>; 2]) {
    let mut world = World::on(Arc::new(disk.clone()), config(ROOM / 8));
    let larger = config(ROOM);
    for name in ["C0", "C1"] {
        let resized = world.engine.resize_buffer(&larger, name, &mut |_, _, _| {});
        resized.unwrap();
    }
    world.config = larger;
    for some in (0..3 * ARTICLES).collect::<Vec<_>>().chunks(100) {
        let some: Vec<_> = some.iter().map(|n| filled(*n)).collect();
        let outcomes = world.send(&some).await;
        assert!(outcomes.iter().all(|it| *it == Outcome::Accepted));
    }
    // One page of bits.
    let end = 4096 * 8 * 64;
    let mut sides = [const { Vec::new() }; 2];
    for n in (7..3 * ARTICLES).step_by(40) {
        let found = world.engine.article(&id(n)).unwrap().unwrap();
        let token = TokenText::parse(&found.token).unwrap();
        let path = Path::new("/spool/buffers").join(token.name);
        let offset = token.position.offset();
        sides[usize::from(offset >= end)].push((n, (path, offset)));
    }
    assert!(sides.iter().all(|side| side.len() > 10));
    (world, sides)
}

/// The file of an article, and its offset in it.
type TokenOf = (PathBuf, u64);

fn id(n: usize) -> ArticleRef {
    ArticleRef::Id(format!("<{n}@t.example>"))
}

/// Whoever attaches the bare buffers finds none of these, and all others.
async fn assert_stay_withdrawn(old: &World, gone: &[usize], has_bit: usize, what: &str) {
    let disk = MemoryDisk::new();
    let paths = copy(old, "/spool/buffers", &disk);
    let world = World::on(Arc::new(disk), config(2 * ROOM));
    let report = attach(&world, &paths, false, false);
    let found = (report.taken, report.withdrawn, report.damaged);
    let kept = 3 * ARTICLES - gone.len();
    assert_eq!(found, (kept as u64, has_bit as u64, 0), "{what}");
    for n in gone {
        assert_eq!(world.engine.article(&id(*n)).unwrap(), None, "{what}: {n}");
    }
    assert_eq!(world.problems(), [""; 0], "{what}");
}

/// What is added to a buffer that is made larger has no bits: an article that was cancelled there came back where the bare file was
/// attached.
#[tokio::test]
async fn what_was_withdrawn_behind_the_end_of_the_bitmap_stays_withdrawn() {
    let memory = MemoryDisk::new();
    let (world, [front, behind]) = enlarged(&memory).await;
    let gone: Vec<usize> = front.iter().chain(&behind).map(|(n, _)| *n).collect();
    let header = |path: &Path, offset: u64| {
        let mut octets = [0; 64];
        let file = memory.open(path, OpenMode::Read).unwrap();
        file.read_exact_at(&mut octets, offset).unwrap();
        octets
    };
    let unmarked: Vec<_> = behind
        .iter()
        .map(|(_, (path, at))| header(path, *at))
        .collect();
    let ids: Vec<ArticleRef> = gone.iter().map(|n| id(*n)).collect();
    world.engine.withdraw(&ids, Reason::Cancelled).unwrap();
    // The power is cut as soon as the log has it.
    let crashed = Arc::new(memory.crash_losing_all());
    world.seal();
    assert_stay_withdrawn(&world, &gone, front.len(), "cancelled").await;
    let after = open_on(crashed, &world.config, &world.clock);
    after.seal();
    assert_stay_withdrawn(&after, &gone, front.len(), "after a power cut").await;
    // Versions before did not mark them.
    for ((_, (path, at)), octets) in behind.iter().zip(&unmarked) {
        memory.corrupt(path, *at, octets).unwrap();
    }
    let scrub = || world.engine.scrub(&[], 0, &mut |_, _| true).unwrap();
    let report = scrub();
    assert_eq!(report.headers.len(), 2, "{:?}", report.headers);
    assert!(
        report
            .headers
            .iter()
            .all(|told| told.contains("they were marked"))
    );
    assert_eq!(scrub().headers, [""; 0]);
    assert_stay_withdrawn(&world, &gone, front.len(), "scrubbed").await;
}

/// One flipped bit in the first of the lists behind a segment brought all back that had been cancelled, and nobody was told.
#[tokio::test]
async fn a_damaged_list_behind_a_segment_is_told_of_and_costs_no_other() {
    let (old, _) = source(true).await;
    for gone in [&[3, 5][..], &[7]] {
        let gone: Vec<ArticleRef> = gone.iter().map(|n| id(*n)).collect();
        old.engine.withdraw(&gone, Reason::Cancelled).unwrap();
        old.seal();
    }
    let first = Path::new("/elsewhere/00000001.seg");
    // In its magic, its count, its checksum; then in what it says, and so that it leads nowhere.
    for (at, cost) in [(1, 0), (8, 0), (11, 0), (12, 0), (16, 1), (19, 1)] {
        for is_headless in [false, true] {
            let what = format!("octet {at}, headless: {is_headless}");
            let disk = MemoryDisk::new();
            copy(&old, "/spool/segments/main", &disk);
            let file = disk.open(first, OpenMode::ReadWrite).unwrap();
            let (mut octet, at) = ([0], (1 << 20) + at);
            file.read_exact_at(&mut octet, at).unwrap();
            file.write_at(&[octet[0] ^ 0x20], at).unwrap();
            if is_headless {
                file.write_at(&[0x55; 8192], 0).unwrap();
            }
            let world = World::on(Arc::new(disk), config(ROOM));
            let report = attach(&world, &[PathBuf::from("/elsewhere")], false, false);
            assert_eq!(report.damaged, 1, "{what}: {:?}", report.places);
            let place = "/elsewhere/00000001.seg: what is noted behind it";
            assert!(
                report.places[0].starts_with(place),
                "{what}: {:?}",
                report.places
            );
            assert_eq!(report.withdrawn, 3 - cost, "{what}");
            assert_eq!(report.taken, ARTICLES as u64 - 3 + cost, "{what}");
            for n in [5, 7] {
                assert_eq!(world.engine.article(&id(n)).unwrap(), None, "{what}: {n}");
            }
        }
    }
}

/// A server in transit mode files nothing, and needs no groups.
#[tokio::test]
async fn a_server_in_transit_takes_all() {
    let (old, _) = source(true).await;
    let disk = MemoryDisk::new();
    copy(&old, "/spool/segments/main", &disk);
    let mut config = config(ROOM);
    config.sequencer.mode = Mode::Transit;
    let world = World::on(Arc::new(disk), config);
    let paths = [PathBuf::from("/elsewhere")];
    assert_eq!(
        counts(&attach(&world, &paths, false, false)),
        count(ARTICLES, 0)
    );
    assert!(world.by_id("<7@t.example>").await.is_some());
    assert_eq!(
        counts(&attach(&world, &paths, false, false)),
        count(0, ARTICLES)
    );
}

/// Ended in the middle it goes on where it was; what is damaged is left out, and told.
#[tokio::test]
async fn it_is_resumed_and_damage_costs_what_is_damaged() {
    let (old, lines) = source(false).await;
    let disk = MemoryDisk::new();
    let paths = copy(&old, "/spool/buffers", &disk);
    assert_eq!(paths.len(), 2);
    let token = old
        .engine
        .article(&"misc.test:400".parse().unwrap())
        .unwrap()
        .unwrap()
        .token;
    let mut parts = token.split(':');
    let path = Path::new("/elsewhere").join(parts.next().unwrap());
    let at = u64::from_str_radix(parts.next().unwrap(), 16).unwrap();
    disk.corrupt(&path, at + 1000, b"rot").unwrap();

    let world = World::on(Arc::new(disk), config(ROOM));
    let what = copies(&paths);
    // First all is counted, which can be ended as well, and so can a dry run.
    for dry_run in [true, false] {
        let what = Attaching {
            dry_run,
            ..what.clone()
        };
        let none = world.engine.attach(&what, &mut |_, _| false).unwrap();
        assert!(none.is_cut, "{none:?}");
        assert_eq!(world.lines("misc.test").await.len(), 0);
    }
    let mut half = |read, total| 2 * read <= total;
    let first = world.engine.attach(&what, &mut half).unwrap();
    assert!(
        first.is_cut && (100..900).contains(&first.taken),
        "{first:?}"
    );
    let world = world.restart();
    let rest = attach(&world, &paths, false, false);
    assert_eq!(rest.known, first.taken);
    assert_eq!(first.taken + rest.taken, ARTICLES as u64 - 1);
    assert_eq!(rest.damaged, 1);
    let place = &rest.places[0];
    assert!(
        place.starts_with(&format!("{}: the article {token}: ", path.display()))
            && place.contains("checksum"),
        "{place}"
    );
    assert_eq!((first.renumbered, rest.renumbered), (0, 0));
    let after = world.lines("misc.test").await;
    let without = lines[0].iter().filter(|line| !line.starts_with("400\t"));
    assert_eq!(after, without.cloned().collect::<Vec<_>>());
    world
        .engine
        .add_groups(vec![GroupSpec::new("misc.late")])
        .unwrap();
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// A set may have more files than a program may open, and all were held open until the last was read; one that cannot be
/// opened kept all others out.
#[tokio::test]
async fn the_files_of_a_set_are_opened_one_at_a_time() {
    let (world, _) = source(true).await;
    let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let mut paths = copy(&world, "/spool/segments/main", &disk);
    paths.sort();
    let opened = || disk.counts().of(Op::Open);
    let whole = Path::new("/elsewhere");
    let there: Arc<dyn Disk> = Arc::new(disk.clone());
    let before = opened();
    let files = open_alone(&there, whole).unwrap();
    // Each to see how large it is, the first to be read.
    let (count, first) = (paths.len() as u64, opened() - before);
    assert!(count >= 3 && first < 3 * count, "{first} of {count}");
    let sound = files.filter(Result::is_ok);
    assert_eq!(sound.count() as u64, count);
    assert_eq!(opened() - before - count, count * (first - count));

    let to = World::on(there, config(ROOM));
    let taken = |path: &Path| attach(&to, &[path.to_path_buf()], true, true);
    let (all, second) = (taken(whole), paths[1].as_path());
    let lost = taken(second).taken;
    assert!(lost > 0, "{all:?}");
    let file = disk.open(second, OpenMode::ReadWrite).unwrap();
    file.write_at(&vec![b'x'; 1 << 16], 0).unwrap();
    file.set_len(1 << 16).unwrap();
    let rest = taken(whole);
    assert_eq!(rest.unreadable.len(), 1, "{rest:?}");
    assert_eq!(rest.taken, all.taken - lost);
}

/// Copies all files below a directory to another disk, but for catalogues.
fn copy_files(from: &dyn Disk, dir: &Path, to: &dyn Disk, target: &Path) {
    to.create_dir_all(target).unwrap();
    for entry in from.list(dir).unwrap() {
        let (path, copy) = (dir.join(&entry.name), target.join(&entry.name));
        match entry.is_dir {
            true if entry.name == ".catalogue" => {}
            true => copy_files(from, &path, to, &copy),
            false => {
                let octets = newsreel_host::read_whole(from, &path, 1 << 20).unwrap();
                let file = to.open(&copy, OpenMode::CreateNew).unwrap();
                file.write_at(&octets, 0).unwrap();
            }
        }
    }
}

/// A directory of articles without its catalogue could not be taken in, though each file says all that is needed.
#[tokio::test]
async fn files_to_which_no_cards_lead_are_taken_in() {
    for (method, format) in [
        ("tradspool", "native"),
        ("tradspool", "wire"),
        ("md5spool", "native"),
    ] {
        let mut there = config(ROOM);
        let set = &mut there.store.sets[0];
        set.buffers.clear();
        method.clone_into(&mut set.method);
        set.format = Some(match format {
            "wire" => newsreel_store::FileFormat::Wire,
            _ => newsreel_store::FileFormat::Native,
        });
        there.store.buffers.clear();
        let old = World::new(there);
        let articles: Vec<_> = (0..300).map(filled).collect();
        let outcomes = old.send(&articles).await;
        assert!(outcomes.iter().all(|it| *it == Outcome::Accepted));
        let gone = [ArticleRef::Id("<7@t.example>".to_owned())];
        old.engine.withdraw(&gone, Reason::Cancelled).unwrap();
        old.send(&[filled(300)]).await;
        let mut lines = Vec::new();
        for group in GROUPS {
            lines.push(old.lines(group).await);
        }
        let disk = MemoryDisk::new();
        let dir = Path::new("/spool/articles/main");
        copy_files(old.disk.as_ref(), dir, &disk, Path::new("/elsewhere"));
        let world = World::on(Arc::new(disk), config(ROOM));
        let paths = [PathBuf::from("/elsewhere")];
        for dry_run in [true, false] {
            let report = attach(&world, &paths, false, dry_run);
            let told = (report.taken, report.renumbered, report.damaged);
            assert_eq!(told, (300, 0, 0), "{method} {format}: {report:?}");
            assert_eq!(report.refused.len(), 0, "{report:?}");
        }
        for (group, lines) in GROUPS.iter().zip(&lines) {
            assert_eq!(
                &world.lines(group).await,
                lines,
                "{method} {format}, {group}"
            );
        }
        for n in [0, 8, 299, 300] {
            let id = format!("<{n}@t.example>");
            assert_eq!(
                world.by_id(&id).await,
                old.by_id(&id).await,
                "{method} {format}"
            );
        }
        assert!(world.by_id("<7@t.example>").await.is_none());
        assert_eq!(world.problems(), Vec::<String>::new());
        assert_eq!(attach(&world, &paths, false, false).taken, 0);
    }
}

/// As another server keeps them: some in wire form, some with no Xref, some that are no articles.
#[tokio::test]
async fn a_file_without_xref_has_the_number_that_is_its_name() {
    let disk = MemoryDisk::new();
    let write = |name: &str, octets: &[u8]| {
        let path = Path::new("/elsewhere").join(name);
        disk.create_dir_all(path.parent().unwrap()).unwrap();
        let file = disk.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(octets, 0).unwrap();
    };
    let text = |n: usize, xref: &str| {
        let (_, text) = article(n, "misc.test");
        let text = String::from_utf8(text).unwrap();
        text.replacen("Subject: ", &format!("{xref}Subject: "), 1)
    };
    let native = |text: String| {
        let text = text.strip_suffix(".\r\n").unwrap();
        text.replace("\r\n..", "\r\n.").replace("\r\n", "\n")
    };
    write("misc/test/12", native(text(12, "")).as_bytes());
    let xref = "Xref: inn.example misc.test:11 misc.other:900\r\n";
    write("misc/test/11", text(11, xref).as_bytes());
    write("misc/other/900", text(11, xref).as_bytes());
    write(
        "misc/other/899",
        native(text(10, "Xref: inn.example misc.other:899\r\n")).as_bytes(),
    );
    write("misc/other/7", b"no article\n");
    write("misc/other/.overview", b"12\tnothing\n");
    let world = World::on(Arc::new(disk), config(ROOM));
    let report = attach(&world, &[PathBuf::from("/elsewhere")], false, false);
    let told = (
        report.taken,
        report.known,
        report.renumbered,
        report.damaged,
    );
    assert_eq!(told, (3, 1, 0, 1), "{report:?}");
    assert_eq!(
        report.places,
        ["/elsewhere: /elsewhere/misc/other/7: it has no header block of an article"]
    );
    let numbers = async |group: &str| {
        let lines = world.lines(group).await;
        let number = |line: &String| line.split('\t').next().unwrap().to_owned();
        lines.iter().map(number).collect::<Vec<_>>()
    };
    assert_eq!(numbers("misc.test").await, ["11", "12"]);
    assert_eq!(numbers("misc.other").await, ["899", "900"]);
    for n in [10, 11, 12] {
        let text = world.by_id(&format!("<{n}@t.example>")).await.unwrap();
        assert!(
            text.ends_with(&format!("Body of {n}\r\n..dots\r\n.\r\n")),
            "{text}"
        );
    }
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// "1200 articles taken in", and half of them had been overwritten by the other half.
#[tokio::test]
async fn what_has_no_room_is_told() {
    let (world, _) = source(false).await;
    let disk = MemoryDisk::new();
    let paths = copy(&world, "/spool/buffers", &disk);
    drop(disk);
    let (mut refused, mut taken) = (0, 0);
    for octets in [1 << 20, 3 << 19, 2 << 20, 3 << 20, 4 << 20, 6 << 20] {
        let disk = MemoryDisk::new();
        assert_eq!(copy(&world, "/spool/buffers", &disk), paths);
        let small = World::on(Arc::new(disk), config(octets));
        let own: Vec<_> = (5000..5003).map(|n| article(n, "misc.other")).collect();
        assert_eq!(small.send(&own).await, [Outcome::Accepted; 3]);
        let would = attach(&small, &paths, false, true);
        let what = copies(&paths);
        let done = small.engine.attach(&what, &mut |_, _| true);
        let mut there = 0;
        for n in 0..ARTICLES {
            there += usize::from(small.by_id(&format!("<{n}@t.example>")).await.is_some());
        }
        match done {
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("give it more room"), "{error}");
                assert!(error.ends_with("; nothing was taken in"), "{error}");
                assert_eq!((there, would.shortages.len()), (0, 1), "{would:?}");
                assert!(error.starts_with(&would.shortages[0]), "{error}");
                refused += 1;
            }
            Ok(report) => {
                let (all, known, _) = counts(&report);
                assert_eq!((all, known), (ARTICLES as u64, 0), "{octets}");
                assert_eq!((there, would.shortages), (ARTICLES, vec![]), "{octets}");
                taken += 1;
            }
        }
        // Nothing of it was overwritten, and nothing that was there.
        for (id, _) in &own {
            assert!(small.by_id(id).await.is_some(), "{octets}: {id}");
        }
        assert_eq!(small.problems(), [""; 0], "{octets}");
    }
    assert!(refused > 1 && taken > 1, "{refused} refused, {taken} taken");
    assert_own_make_room(&world).await;
    // Segments drop by arrival: what would go at once does not come.
    let disk = MemoryDisk::new();
    let paths = copy(&world, "/spool/buffers", &disk);
    let aged = World::on(Arc::new(disk), segments(|set| set.keep_s = Some(60)));
    aged.wait_s(3600);
    for dry_run in [true, false] {
        let report = attach(&aged, &paths, false, dry_run);
        let refused: Vec<_> = report.refused.into_iter().collect();
        let why = "older than its set keeps, `set.keep_s`";
        assert_eq!(refused, [(why, ARTICLES as u64)], "{dry_run}");
        assert_eq!((report.taken, report.shortages), (0, vec![]));
    }
}

/// A full set gives up its own oldest ones for what comes, and how much is said.
async fn assert_own_make_room(old: &World) {
    for (own, is_told) in [(1, false), (2000, true)] {
        let disk = MemoryDisk::new();
        let paths = copy(old, "/spool/buffers", &disk);
        let small = World::on(Arc::new(disk), config(4 << 20));
        let own: Vec<_> = (5000..5000 + own).map(filled).collect();
        for some in own.chunks(100) {
            small.send(some).await;
        }
        for dry_run in [true, false] {
            let report = attach(&small, &paths, false, dry_run);
            assert_eq!((report.taken, &report.shortages[..]), (1000, &[][..]));
            let told = report.makes_room.join(";");
            let is_so = told.contains("of what set main has now, the oldest, goes to make room");
            assert_eq!(
                (is_so, report.makes_room.len()),
                (is_told, usize::from(is_told)),
                "{told}"
            );
        }
        let is_gone = small.by_id(&own[0].0).await.is_none();
        assert_eq!(is_gone, is_told);
        assert!(small.by_id("<0@t.example>").await.is_some());
    }
}

/// 351 KiB did not fit into an empty set of two buffers of 2 MiB: "it keeps 0 B".
#[tokio::test]
async fn what_small_and_uneven_buffers_keep_is_told_and_never_too_much() {
    // Sizes of two buffers in parts of a megabyte's quarter, articles, and whether they must be taken in.
    for (sizes, articles, is_sure) in [
        ([8, 8], 130, true),
        ([8, 8], 900, false),
        ([4, 32], 250, true),
        ([4, 32], 700, false),
        ([32, 4], 500, false),
        ([6, 10], 500, false),
    ] {
        let world = World::new(config(ROOM));
        for some in (0..articles).collect::<Vec<_>>().chunks(50) {
            let some: Vec<_> = some.iter().map(|n| filled(*n)).collect();
            world.send(&some).await;
        }
        let disk = MemoryDisk::new();
        let paths = copy(&world, "/spool/buffers", &disk);
        let mut config = config(ROOM);
        for (buffer, size) in config.store.buffers.iter_mut().zip(sizes) {
            buffer.octets = size << 18;
        }
        let small = World::on(Arc::new(disk), config);
        let done = small.engine.attach(&copies(&paths), &mut |_, _| true);
        let there = there(&small, articles).await;
        match done {
            Ok(report) => assert_eq!(
                (report.taken, there.len()),
                (articles as u64, articles),
                "{sizes:?}"
            ),
            Err(why) => {
                assert!(!is_sure, "{sizes:?}, {articles} articles: {why}");
                assert!(why.to_string().contains("--oldest-may-go"), "{why}");
                assert_eq!(there, [0; 0]);
            }
        }
    }
}

/// Which of the first so many are here.
async fn there(world: &World, articles: usize) -> Vec<usize> {
    let mut there = Vec::new();
    for n in 0..articles {
        if world.by_id(&format!("<{n}@t.example>")).await.is_some() {
            there.push(n);
        }
    }
    there
}

/// A full spool was refused by a new one of the same size, and nothing let one say that the oldest may go, as they do in a feed.
#[tokio::test]
async fn the_oldest_of_what_comes_go_where_they_may() {
    let (world, _) = source(false).await;
    let disk = MemoryDisk::new();
    let paths = copy(&world, "/spool/buffers", &disk);
    let small = World::on(Arc::new(disk), config(1 << 20));
    let refused = small.engine.attach(&copies(&paths), &mut |_, _| true);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("--oldest-may-go"), "{refused}");
    let mut what = Attaching {
        oldest_may_go: true,
        dry_run: true,
        ..copies(&paths)
    };
    let would = small.engine.attach(&what, &mut |_, _| true).unwrap();
    assert_eq!((would.taken, &would.shortages[..]), (1000, &[][..]));
    let told = would.makes_room.join(";");
    assert!(told.contains("come into set main, and up to"), "{told}");
    assert_eq!(there(&small, ARTICLES).await, [0; 0]);
    what.dry_run = false;
    let report = small.engine.attach(&what, &mut |_, _| true).unwrap();
    assert_eq!((report.taken, report.renumbered), (1000, 0));
    assert_eq!(report.makes_room, would.makes_room);
    let there = there(&small, ARTICLES).await;
    assert!((200..800).contains(&there.len()), "{}", there.len());
    assert!(there.contains(&(ARTICLES - 1)) && !there.contains(&0));
    // The same again: what has gone is known.
    let again = small.engine.attach(&what, &mut |_, _| true).unwrap();
    assert_eq!((again.taken, again.known), (0, 1000), "{again:?}");
    assert_eq!(small.problems(), [""; 0]);
}

/// How many warnings say this.
fn warned(report: &Attached, what: &str) -> usize {
    let warnings = report.warnings.iter();
    warnings.filter(|it| it.contains(what)).count()
}
