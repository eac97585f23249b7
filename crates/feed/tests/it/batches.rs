//! Feeds of batches: every article is in one batch and in no other, whatever ends whoever writes them.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_feed::{Batched, Batching, Fate, Packing, Peers};
use newsreel_host::sealed::seal;
use newsreel_host::{
    Clock, Disk, Effect, Fault, FaultyDisk, MemoryDisk, Op, read_whole, replace_file,
};
use newsreel_wire::MessageId;
use newsreel_wire::batch::{BatchReader, Step};

use crate::site::{Site, id, peers};

const FOLDER: &str = "/spool/batches/out/leaf.example";

fn leaf(more: &str) -> String {
    format!("[[peer]]\nname = 'leaf.example'\n[[peer.feed]]\nkind = 'batch'\n{more}")
}

fn open(site: &Site, disk: &Arc<dyn Disk>, text: &str) -> Peers {
    Peers::open(
        Arc::clone(&site.engine),
        Arc::clone(disk),
        Path::new("/spool"),
        Arc::clone(&site.clock) as Arc<dyn Clock>,
        Arc::clone(&site.world) as Arc<dyn newsreel_feed::Dial>,
        &peers(text),
    )
    .unwrap()
}

fn wanted() -> Batching {
    Batching {
        name: "leaf.example".to_owned(),
        ..Batching::default()
    }
}

async fn write(peers: &Peers, wanted: &Batching) -> Result<Batched, String> {
    let done = peers.batch(wanted, &mut |_, _| true).await;
    done.map(|mut all| all.remove(0))
        .map_err(|why| why.to_string())
}

/// The texts of a batch, in order.
fn articles(batch: &[u8]) -> Vec<String> {
    let (mut reader, mut rest, mut found) = (BatchReader::new(1 << 20), batch, Vec::new());
    loop {
        let used = match reader.next(rest, true) {
            Step::Article { body, used } => {
                found.push(String::from_utf8(rest[body].to_vec()).unwrap());
                used
            }
            Step::End { .. } => return found,
            other => panic!("{other:?}"),
        };
        rest = &rest[used..];
    }
}

fn id_of(text: &str) -> String {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Message-ID: "));
    line.unwrap().to_owned()
}

/// Takes the finished batches away, as UUCP does; the ids of their articles.
fn take_away(disk: &dyn Disk) -> Vec<String> {
    let folder = Path::new(FOLDER);
    let Ok(entries) = disk.list(folder) else {
        return Vec::new();
    };
    let mut ids = Vec::new();
    for entry in entries
        .iter()
        .filter(|entry| entry.name.ends_with(".batch"))
    {
        let path = folder.join(&entry.name);
        let octets = read_whole(disk, &path, 1 << 24).unwrap();
        ids.extend(articles(&octets).iter().map(|text| id_of(text)));
        disk.remove(&path).unwrap();
        disk.sync_dir(folder).unwrap();
    }
    ids
}

#[tokio::test]
async fn batches_have_what_the_filter_lets_through_by_size_and_packing() {
    let site = Site::new(&[]);
    let disk = Arc::clone(&site.disk);
    let leaf_peers = open(
        &site,
        &disk,
        &leaf("groups = 'misc.*'\nbatch_octets_max = 2000\n"),
    );
    site.receive(0..30, "misc.test").await;
    site.receive(30..40, "alt.test").await;
    let dry = Batching {
        dry_run: true,
        ..wanted()
    };
    let counted = write(&leaf_peers, &dry).await.unwrap();
    assert_eq!((counted.articles, counted.batches.len()), (30, 0));
    let mut all = Vec::new();
    for (packing, from) in [
        (Packing::None, 0),
        (Packing::Gzip, 100),
        (Packing::Bzip2, 200),
        (Packing::Zstd, 300),
    ] {
        if from > 0 {
            site.receive(from..from + 30, "misc.test").await;
        }
        let wanted = Batching {
            packing: Some(packing),
            ..wanted()
        };
        let done = write(&leaf_peers, &wanted).await.unwrap();
        assert_eq!((done.articles, done.gone, done.missed), (30, 0, 0));
        assert!(done.batches.len() > 3, "{done:?}");
        let mut found = Vec::new();
        for batch in &done.batches {
            assert!(batch.octets <= 2000, "{batch:?}");
            let octets = read_whole(&*disk, &batch.file, 1 << 20).unwrap();
            assert_eq!(octets.len() as u64, batch.packed_octets);
            let plain = unpacked(&octets, packing);
            assert_eq!(plain.len() as u64, batch.octets);
            found.extend(articles(&plain));
        }
        let ids: Vec<String> = found.iter().map(|text| id_of(text)).collect();
        assert_eq!(ids, (from..from + 30).map(id).collect::<Vec<_>>());
        let stored = String::from_utf8(site.stored(from).await).unwrap();
        let text = stored.strip_suffix(".\r\n").unwrap();
        assert_eq!(found[0], text.replace("\r\n..", "\r\n.").replace('\r', ""));
        all.extend(done.batches.into_iter().map(|batch| batch.file));
    }
    let none = write(&leaf_peers, &wanted()).await.unwrap();
    assert_eq!((none.articles, none.waiting), (0, all));
}

fn unpacked(octets: &[u8], packing: Packing) -> Vec<u8> {
    let line = match packing {
        Packing::None => return octets.to_vec(),
        Packing::Gzip => "#! gunbatch\n",
        Packing::Bzip2 => "#! bunbatch\n",
        Packing::Zstd => "#! zunbatch\n",
    };
    let packed = octets.strip_prefix(line.as_bytes()).unwrap();
    let mut plain = Vec::new();
    match packing {
        Packing::Gzip => flate2::read::GzDecoder::new(packed).read_to_end(&mut plain),
        Packing::Bzip2 => bzip2::read::BzDecoder::new(packed).read_to_end(&mut plain),
        _ => zstd::stream::read::Decoder::new(packed)
            .unwrap()
            .read_to_end(&mut plain),
    }
    .unwrap();
    plain
}

/// Stopped at every moment at which something changes on disk, by a kill and by a power cut, with somebody who takes finished batches
/// away at once: the next run goes on where it was.
#[tokio::test]
async fn whoever_is_killed_loses_and_doubles_nothing() {
    let site = Site::new(&[]);
    let text = leaf("packing = 'none'\nbatch_octets_max = 1500\n");
    let memory = MemoryDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    disk.create_dir_all(Path::new("/spool")).unwrap();
    drop(open(&site, &disk, &text));
    site.receive(0..20, "misc.test").await;
    let expected: Vec<String> = (0..20).map(id).collect();
    let mut moments = 0;
    for nth in 1.. {
        // What a kill leaves, what a power cut leaves at least, and something between.
        let outcomes: [fn(&MemoryDisk) -> MemoryDisk; 3] =
            [MemoryDisk::clone, MemoryDisk::crash_losing_all, |disk| {
                disk.crash(7)
            }];
        let mut is_over = false;
        for outcome in outcomes {
            let begun = memory.crash_losing_all();
            let faulty = FaultyDisk::new(Arc::new(begun.clone()));
            faulty.stop_at_change(nth);
            let stopping: Arc<dyn Disk> = Arc::new(faulty.clone());
            let ended = write(&open(&site, &stopping, &text), &wanted()).await;
            is_over = ended.is_ok() && !faulty.stopped();
            let left = outcome(&begun);
            let mut ids = take_away(&left);
            let disk: Arc<dyn Disk> = Arc::new(left.clone());
            write(&open(&site, &disk, &text), &wanted()).await.unwrap();
            ids.extend(take_away(&left));
            ids.sort_by_key(|id| id[1..].split('@').next().unwrap().parse::<u32>().unwrap());
            assert_eq!(ids, expected, "stopped at change {nth}");
            let rest = disk.list(Path::new(FOLDER)).unwrap();
            assert_eq!(rest, [], "stopped at change {nth}");
        }
        if is_over {
            break;
        }
        moments = nth;
    }
    assert!(moments > 30, "{moments}");
}

/// What was taken out meanwhile is in no batch, and is named.
#[tokio::test]
async fn what_is_gone_is_named() {
    let site = Site::new(&[]);
    let disk = Arc::clone(&site.disk);
    let leaf_peers = open(&site, &disk, &leaf(""));
    site.receive(0..3, "misc.test").await;
    site.withdraw(1);
    let done = write(&leaf_peers, &wanted()).await.unwrap();
    assert_eq!((done.articles, done.gone), (2, 1));
    assert_eq!(done.gone_ids, [id(1)]);
    let report = leaf_peers.reports().remove(0);
    assert_eq!((report.tally.gone, report.gone), (1, vec![id(1)]));
}

/// What a connection had not settled is in the batches that follow it, once, whatever the log still has of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_open_goes_by_batch() {
    let site = Site::new(&["leaf.example"]);
    site.world.0["leaf.example"].habits.lock().is_mute = true;
    let sending = site.send_to(&peers(
        "[[peer]]\nname = 'leaf.example'\naddress = 'h:1'\n[[peer.feed]]\narticles_max = 5",
    ));
    site.receive(0..9, "misc.test").await;
    let open = || sending.peers.reports().remove(0).open;
    site.until(&sending, "leaf.example", |_| open() == 5).await;
    sending.peers.reload(&peers(&leaf("packing = 'none'\n")));
    site.until(&sending, "leaf.example", |_| !sending.peers.is_changing())
        .await;
    site.receive(9..12, "misc.test").await;
    let done = write(&sending.peers, &wanted()).await.unwrap();
    assert_eq!((done.articles, done.missed, done.gone), (12, 0, 0));
    assert_eq!(take_away(&*site.disk), (0..12).map(id).collect::<Vec<_>>());
    assert_eq!(
        (
            open(),
            write(&sending.peers, &wanted()).await.unwrap().articles
        ),
        (0, 0)
    );
    sending.stop().await;
}

/// What went from the log while a batch was written was missed, and only the words of the command said so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_log_loses_meanwhile_goes_or_is_counted() {
    const ALL: usize = 6000;
    for at_once in [false, true] {
        let site = Site::keeping_log(&[], 4 << 20);
        let leaf_peers = open(
            &site,
            &site.disk,
            &leaf("groups = 'misc.*'\npacking = 'none'\n"),
        );
        for from in (0..ALL).step_by(200) {
            site.receive(from..from + 200, "misc.test").await;
        }
        let end = site.engine.watch_commits().borrow().next();
        let begin = leaf_peers.reports().remove(0).next;
        let (here, mut others) = (tokio::runtime::Handle::current(), ALL);
        let dry_run = Batching {
            dry_run: true,
            ..wanted()
        };
        let mut meanwhile = |_, _| {
            let is_gone = || site.engine.status().log.oldest >= end.0;
            let mut is_first = true;
            while !is_gone() && (at_once || is_first) {
                let more = site.receive(others..others + 2000, "alt.test");
                tokio::task::block_in_place(|| here.block_on(more));
                (others, is_first) = (others + 2000, false);
            }
            true
        };
        if at_once {
            let would = leaf_peers.batch(&dry_run, &mut meanwhile).await;
            let would = would.unwrap().remove(0);
            assert!(would.missed > 0, "{would:?}");
            assert_eq!(leaf_peers.reports().remove(0).tally.missed, 0);
        }
        let done = leaf_peers.batch(&wanted(), &mut meanwhile).await;
        let done = done.unwrap().remove(0);
        let report = leaf_peers.reports().remove(0);
        assert_eq!(report.tally.missed, done.missed);
        assert!(site.engine.status().log.oldest > begin, "nothing went");
        assert_eq!(take_away(&*site.disk).len() as u64, done.articles);
        match at_once {
            false => assert_eq!((done.articles, done.missed), (ALL as u64, 0)),
            true => assert!(
                done.articles + done.missed >= ALL as u64 && done.missed > 0,
                "{done:?}"
            ),
        }
        // Nothing of it is missed again.
        assert_eq!(write(&leaf_peers, &wanted()).await.unwrap().missed, 0);
    }
}

/// Batches that nobody takes away do not fill the disk: articles wait in the log instead.
#[tokio::test]
async fn what_nobody_takes_away_waits_in_the_log() {
    let site = Site::new(&[]);
    let text = leaf("packing = 'none'\nbatch_octets_max = 1024\nwaiting_octets_max = 3000\n");
    let disk = Arc::clone(&site.disk);
    let leaf_peers = open(&site, &disk, &text);
    site.receive(0..30, "misc.test").await;
    let done = write(&leaf_peers, &wanted()).await.unwrap();
    let why = done.stopped.unwrap();
    assert!(
        why.contains("have `waiting_octets_max`, 3000 octets"),
        "{why}"
    );
    let mut ids = take_away(&*disk);
    assert!(ids.len() > 5 && ids.len() < 20, "{}", ids.len());
    let full: Vec<PathBuf> = write(&leaf_peers, &wanted()).await.unwrap().waiting;
    assert_eq!(full, [] as [PathBuf; 0]);
    while ids.len() < 30 {
        ids.extend(take_away(&*disk));
        write(&leaf_peers, &wanted()).await.unwrap();
    }
    assert_eq!(ids, (0..30).map(id).collect::<Vec<_>>());
    // A feed that is paused writes nothing; one that sends over the network has no batches.
    site.receive(30..31, "misc.test").await;
    leaf_peers.pause("leaf.example", true);
    let paused = write(&leaf_peers, &wanted()).await.unwrap();
    assert_eq!(
        (paused.articles, paused.stopped.as_deref()),
        (0, Some("the feed is paused"))
    );
    let other = "[[peer]]\nname = 'leaf.example'\naddress = 'h:1'\n";
    let why = write(&open(&site, &disk, other), &wanted())
        .await
        .unwrap_err();
    assert!(
        why.contains("no feed of \"leaf.example\" has `kind"),
        "{why}"
    );
}

/// The next sequence of the log.
fn end(site: &Site) -> u64 {
    site.engine.watch_commits().borrow().next().0
}

/// Has the file of the places say this, as a server left it.
fn put_place(site: &Site, words: &str) {
    let line = format!("leaf.example/all {words}\n");
    let text = seal("newsreel feeds 2 ", line.as_bytes());
    replace_file(&*site.disk, Path::new("/spool/feeds"), &text).unwrap();
}

/// A feed that had passed something over and writes batches now: that was passed over for good, and nothing said so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_passed_over_goes_by_batch() {
    let site = Site::new(&["leaf.example"]);
    site.world.0["leaf.example"].habits.lock().closed = true;
    let more = "fresh_first = true\narticles_max = 5\n";
    let sending = site.send_to(&peers(&format!(
        "[[peer]]\nname = 'leaf.example'\naddress = 'h:1'\n[[peer.feed]]\n{more}"
    )));
    let passed_over = || sending.peers.reports().remove(0).passed_over;
    for n in 0..20 {
        site.receive(n..n + 1, "misc.test").await;
    }
    site.until(&sending, "leaf.example", |_| passed_over() == 30)
        .await;
    let batches = leaf(&format!("packing = 'none'\n{more}"));
    sending.peers.reload(&peers(&batches));
    site.until(&sending, "leaf.example", |_| !sending.peers.is_changing())
        .await;
    // Of what comes last no more has room than this once.
    let done = write(&sending.peers, &wanted()).await.unwrap();
    assert_eq!((done.articles, done.missed), (20, 0));
    assert_eq!(take_away(&*site.disk), (0..20).map(id).collect::<Vec<_>>());
    sending.stop().await;
}

/// What a run had read because the log was about to lose it was missed where the run ended before it was written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_run_has_read_ahead_outlives_the_log() {
    const ALL: usize = 6000;
    for fails in [false, true] {
        let site = Site::keeping_log(&[], 4 << 20);
        let text = leaf("groups = 'misc.*'\npacking = 'none'\nbatch_octets_max = 50_000\n");
        let leaf_peers = open(&site, &site.disk, &text);
        for from in (0..ALL).step_by(200) {
            site.receive(from..from + 200, "misc.test").await;
        }
        let (here, mut others, mut asked) = (tokio::runtime::Handle::current(), ALL, 0);
        let mut receive = |until: &dyn Fn() -> bool| {
            while !until() {
                let more = site.receive(others..others + 200, "alt.test");
                tokio::task::block_in_place(|| here.block_on(more));
                others += 200;
            }
        };
        let goes_before = || site.engine.feeds_lose_before().0;
        let mut meanwhile = |_, _| {
            asked += 1;
            match asked {
                1 => receive(&|| goes_before() > 0),
                20 if fails => {
                    let fault = Fault::new(Op::Rename, "leaf.example", Effect::Full);
                    site.faults.add(fault);
                }
                20 => return false,
                _ => {}
            }
            true
        };
        let done = leaf_peers.batch(&wanted(), &mut meanwhile).await;
        assert_eq!(done.is_err(), fails);
        let lost = goes_before();
        receive(&|| site.engine.status().log.oldest >= lost);
        // The next one may be killed, as any.
        drop(leaf_peers);
        let leaf_peers = open(&site, &site.disk, &text);
        let done = write(&leaf_peers, &wanted()).await.unwrap();
        assert_eq!((done.missed, done.gone), (0, 0));
        assert_eq!(take_away(&*site.disk), (0..ALL).map(id).collect::<Vec<_>>());
    }
}

/// What was dropped while it was put into batches went out all the same.
#[tokio::test]
async fn what_is_dropped_meanwhile_is_in_no_batch() {
    let site = Site::new(&[]);
    let leaf_peers = open(&site, &site.disk, &leaf("packing = 'none'\n"));
    site.receive(0..250, "misc.test").await;
    let mut drops = |_, _| {
        leaf_peers.drop_backlog("leaf.example", false);
        true
    };
    let done = leaf_peers.batch(&wanted(), &mut drops).await.unwrap();
    let why = done[0].stopped.as_deref().unwrap();
    assert!(why.contains("dropped"), "{why}");
    assert_eq!((done[0].articles, take_away(&*site.disk).len()), (0, 0));
    assert_eq!(site.disk.list(Path::new(FOLDER)).unwrap(), []);
    site.receive(250..252, "misc.test").await;
    assert_eq!(write(&leaf_peers, &wanted()).await.unwrap().articles, 2);
}

/// A batch that a killed run had not counted got its name when what was in it had been dropped.
#[tokio::test]
async fn what_a_killed_run_left_goes_when_all_is_dropped() {
    let site = Site::new(&[]);
    let text = leaf("packing = 'none'\n");
    let begin = end(&site);
    drop(open(&site, &site.disk, &text));
    site.receive(0..3, "misc.test").await;
    let name = format!("all-{begin:015}-{:015}.batch.whole", end(&site));
    site.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    replace_file(&*site.disk, &Path::new(FOLDER).join(name), b"").unwrap();
    let leaf_peers = open(&site, &site.disk, &text);
    leaf_peers.drop_backlog("leaf.example", false);
    let done = write(&leaf_peers, &wanted()).await.unwrap();
    assert_eq!((done.articles, done.waiting), (0, Vec::new()));
    assert_eq!(site.disk.list(Path::new(FOLDER)).unwrap(), []);
}

/// With the log around it, what had been sent counted as missed, for ever.
#[tokio::test]
async fn what_was_settled_is_not_missed_with_the_log() {
    let site = Site::keeping_log(&[], 1 << 20);
    let text = leaf("packing = 'none'\n");
    drop(open(&site, &site.disk, &text));
    let first = end(&site);
    let mut many = 0;
    while site.engine.status().log.oldest <= first {
        site.receive(many..many + 500, "misc.test").await;
        many += 500;
    }
    put_place(&site, &format!("{} {first}", end(&site)));
    let leaf_peers = open(&site, &site.disk, &text);
    let done = write(&leaf_peers, &wanted()).await.unwrap();
    assert_eq!((done.missed, done.articles), (1, 0));
    assert_eq!(leaf_peers.reports().remove(0).tally.missed, 1);
}

/// Where a reload raised the delay, too, what was open by its message-id was in two batches.
#[tokio::test]
async fn what_is_open_waits_for_no_delay() {
    let site = Site::new(&[]);
    let text = leaf("packing = 'none'\ndelay_s = 3600\n");
    drop(open(&site, &site.disk, &text));
    let first = end(&site);
    site.receive(0..1, "misc.test").await;
    let second = end(&site);
    site.receive(1..2, "misc.test").await;
    put_place(&site, &format!("{} {first} {second}{}", end(&site), id(1)));
    let leaf_peers = open(&site, &site.disk, &text);
    site.receive(2..3, "misc.test").await;
    for expected in [2, 0] {
        let done = write(&leaf_peers, &wanted()).await.unwrap();
        assert_eq!((done.articles, done.missed), (expected, 0));
    }
    assert_eq!(take_away(&*site.disk), [id(0), id(1)]);
}

/// What is open by its message-id counted for nothing: all of it went into one batch.
#[tokio::test]
async fn what_is_open_by_its_name_has_its_size() {
    let site = Site::new(&[]);
    let text = leaf("packing = 'none'\nbatch_octets_max = 2000\nby_group = true\n");
    drop(open(&site, &site.disk, &text));
    let mut open_ones = String::new();
    for n in 0..30 {
        open_ones += &format!(" {}{}", end(&site), id(n));
        site.receive(n..n + 1, "misc.test").await;
    }
    put_place(&site, &format!("{}{open_ones}", end(&site)));
    let leaf_peers = open(&site, &site.disk, &text);
    let dry = Batching {
        dry_run: true,
        ..wanted()
    };
    let would = write(&leaf_peers, &dry).await.unwrap();
    assert!(would.articles == 30 && would.octets > 3000, "{would:?}");
    let done = write(&leaf_peers, &wanted()).await.unwrap();
    assert_eq!(done.articles, 30);
    assert!(
        done.batches.iter().all(|batch| batch.octets <= 2000),
        "{done:?}"
    );
}

/// Killed between a batch of such articles and the place, they were in it and in the next.
#[tokio::test]
async fn a_batch_of_what_is_open_by_its_name_counts_by_the_place() {
    let site = Site::new(&[]);
    let text = leaf("packing = 'none'\n");
    drop(open(&site, &site.disk, &text));
    let first = end(&site);
    site.receive(0..1, "misc.test").await;
    let place = format!("{} {first}{}", end(&site), id(0));
    put_place(&site, &place);
    let fault = Fault::new(Op::Rename, "/spool/feeds", Effect::Medium);
    let leaf_peers = open(&site, &site.disk, &text);
    site.faults.add(fault.forever());
    write(&leaf_peers, &wanted()).await.unwrap_err();
    drop(leaf_peers);
    site.faults.clear();
    site.receive(1..2, "misc.test").await;
    let leaf_peers = open(&site, &site.disk, &text);
    write(&leaf_peers, &wanted()).await.unwrap();
    assert_eq!(take_away(&*site.disk), [id(0), id(1)]);
}

/// What was gone counted again in each run that failed behind it.
#[tokio::test]
async fn what_is_gone_counts_once() {
    let site = Site::new(&[]);
    let leaf_peers = open(&site, &site.disk, &leaf("packing = 'none'\n"));
    site.receive(0..3, "misc.test").await;
    site.withdraw(1);
    site.faults
        .add(Fault::new(Op::Rename, "leaf.example", Effect::Full));
    write(&leaf_peers, &wanted()).await.unwrap_err();
    let done = write(&leaf_peers, &wanted()).await.unwrap();
    assert_eq!((done.articles, done.gone), (2, 1));
    let report = leaf_peers.reports().remove(0);
    assert_eq!((report.tally.gone, report.gone), (1, vec![id(1)]));
}

/// Of an article that had left by a batch nobody knew anything.
#[tokio::test]
async fn it_is_told_in_which_batch_an_article_is() {
    let site = Site::new(&[]);
    let leaf_peers = open(&site, &site.disk, &leaf(""));
    site.receive(0..3, "misc.test").await;
    let fate = async |n| {
        let id = id(n);
        let told = leaf_peers.explain(MessageId::parse(id.as_bytes()).unwrap());
        told.await.unwrap().unwrap()[0].fate.clone().unwrap()
    };
    assert_eq!(fate(1).await, Fate::InLog);
    let done = write(&leaf_peers, &wanted()).await.unwrap();
    let name = done.batches[0].file.file_name().unwrap();
    match fate(1).await {
        Fate::Written(_, Some(file)) => assert_eq!(file, name.to_str().unwrap()),
        other => panic!("{other:?}"),
    }
    // It is no word of a peer that rejects.
    assert_eq!(leaf_peers.reports()[0].rejection, None);
}
