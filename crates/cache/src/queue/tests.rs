//! The queue, over disks in memory: what it took survives, in full or not at all, and nothing is removed that nobody dropped.

use std::sync::Arc;

use newsreel_host::{Effect, Fault as DiskFault, FaultyDisk, MemoryDisk, Op, replace_file};

use super::*;

const NOW: UnixTime = UnixTime(1_767_225_600);
const TEXT: &[u8] = b"Subject: a\r\n\r\ntext\r\n.\r\n";

fn post(number: u64, servers: &[&str]) -> QueuedPost {
    QueuedPost {
        taken: NOW,
        id: format!("<{number}@t.example>"),
        groups: "misc.test".to_owned(),
        octets: TEXT.len() as u64,
        targets: servers
            .iter()
            .map(|server| PostTarget::new(server, NOW))
            .collect(),
    }
}

fn open(disk: &(impl Disk + Clone + 'static)) -> Result<PostQueue> {
    disk.create_dir_all(Path::new("/cache")).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    PostQueue::open(&disk, Path::new("/cache"), 100)
}

#[test]
fn what_was_taken_is_there_after_the_power_went() {
    let disk = MemoryDisk::new();
    let queue = open(&disk).unwrap();
    assert_eq!(queue.put(&post(1, &["one", "two"]), TEXT), Ok(1));
    assert_eq!(queue.put(&post(2, &["one"]), TEXT), Ok(2));
    queue.became(1, "one", &Became::Sent, NOW).unwrap();
    let away = Became::Waits("it is away".to_owned());
    let after: Vec<u64> = (0..9)
        .map(|_| queue.became(1, "two", &away, NOW).unwrap())
        .map(|post| post.due().unwrap().0 - NOW.0)
        .collect();
    assert_eq!(after, [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]);
    let (known, text) = queue.get(1).unwrap();
    assert_eq!(text, TEXT);
    // Everything that was not synced is lost.
    let after = disk.crash_losing_all();
    let again = open(&after).unwrap();
    assert_eq!(again.list().unwrap(), [(1, known), (2, post(2, &["one"]))]);
    assert_eq!(again.get(2).unwrap().1, TEXT);
    // All of its servers have it.
    again.became(1, "two", &Became::Sent, NOW).unwrap();
    assert_eq!(again.get(1), Err(QueueError::Missing(1)));
    again.drop_one(2).unwrap();
    // No number is given twice.
    assert_eq!(again.put(&post(3, &["one"]), TEXT), Ok(3));
}

/// A post for 65 servers was taken, and no post could be read any more, nor the server be started.
#[test]
fn a_post_is_for_no_more_servers_than_can_be_read_again() {
    let queue = open(&MemoryDisk::new()).unwrap();
    let names: Vec<String> = (0..65).map(|n| format!("s{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(
        queue.put(&post(1, &names), TEXT),
        Err(QueueError::Targets(65))
    );
    assert_eq!(queue.put(&post(1, &names[..64]), TEXT), Ok(1));
    let in_hand = queue.take_in_hand(1).unwrap();
    let edited = queue.edit(&in_hand, &post(1, &names), TEXT);
    assert_eq!(edited, Err(QueueError::Targets(65)));
    assert_eq!(queue.list().unwrap(), [(1, post(1, &names[..64]))]);
}

/// Each was a change of its own that is synced.
#[test]
fn all_that_wait_are_woken_at_once() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let queue = open(&faulty).unwrap();
    let away = Became::Waits("it is away".to_owned());
    for number in 1..=3 {
        queue.put(&post(number, &["one"]), TEXT).unwrap();
        queue.became(number, "one", &away, NOW).unwrap();
    }
    let syncs = |work: &dyn Fn()| {
        let before = faulty.counts().of(Op::Sync);
        work();
        faulty.counts().of(Op::Sync) - before
    };
    let later = UnixTime(NOW.0 + 1);
    let of_one = syncs(&|| queue.retry(1, NOW).unwrap());
    assert_eq!(syncs(&|| queue.wake(later).unwrap()), of_one);
    let due: Vec<_> = queue
        .list()
        .unwrap()
        .iter()
        .map(|(_, it)| it.due())
        .collect();
    assert_eq!(due, [Some(NOW), Some(later), Some(later)]);
    assert_eq!(syncs(&|| queue.wake(later).unwrap()), 0);
}

#[test]
fn what_a_server_refused_stays_until_somebody_says_what_becomes_of_it() {
    let queue = open(&MemoryDisk::new()).unwrap();
    queue.put(&post(1, &["one", "two"]), TEXT).unwrap();
    queue.became(1, "one", &Became::Sent, NOW).unwrap();
    let refused = Became::Refused("441 no".to_owned());
    let stands = queue.became(1, "two", &refused, NOW).unwrap();
    assert_eq!((stands.due(), stands.is_sent()), (None, false));
    assert_eq!(stands.targets[1].said, "441 no");
    queue.retry(1, UnixTime(NOW.0 + 5)).unwrap();
    let (retried, _) = queue.get(1).unwrap();
    assert_eq!(retried.due(), Some(UnixTime(NOW.0 + 5)));
    assert_eq!(retried.targets[0].standing, Standing::Sent);
    let text = b"Subject: b\r\n\r\n.\r\n";
    let in_hand = queue.take_in_hand(1).unwrap();
    let taken = queue.take_in_hand(1).unwrap_err();
    assert_eq!(
        (&taken, queue.drop_one(1)),
        (&QueueError::InHand(1), Err(taken.clone()))
    );
    queue.edit(&in_hand, &post(7, &["two"]), text).unwrap();
    drop(in_hand);
    let (edited, found) = queue.get(1).unwrap();
    assert_eq!((&*edited.id, &*found), ("<7@t.example>", &text[..]));
    assert_eq!(edited.octets, text.len() as u64);
    assert_eq!(queue.retry(9, NOW), Err(QueueError::Missing(9)));
    assert_eq!(queue.drop_one(9), Err(QueueError::Missing(9)));
    queue.drop_one(1).unwrap();
}

#[test]
fn it_has_a_limit() {
    let queue = open(&MemoryDisk::new()).unwrap();
    let most = 100 / TEXT.len() as u64;
    for number in 1..=most {
        queue.put(&post(number, &["one"]), TEXT).unwrap();
    }
    let full = queue.put(&post(99, &["one"]), TEXT);
    assert!(matches!(full, Err(QueueError::Full(_))), "{full:?}");
    queue.drop_one(1).unwrap();
    queue.put(&post(99, &["one"]), TEXT).unwrap();
}

/// Nothing in it can be had again: it is not begun anew, as the cache's table is.
#[test]
fn a_file_that_is_damaged_is_told_of_and_stays() {
    let disk = MemoryDisk::new();
    drop(open(&disk).unwrap());
    let path = Path::new("/cache/posts.redb");
    replace_file(&disk, path, &[b'x'; 8192]).unwrap();
    let error = open(&disk).unwrap_err().to_string();
    assert!(error.contains("/cache/posts.redb"), "{error}");
    assert!(disk.exists(path).unwrap());
}

/// It was taken for that of a new cache, and the posts in it were gone without a word.
#[test]
fn a_file_that_is_empty_is_told_of_and_stays() {
    let disk = MemoryDisk::new();
    drop(open(&disk).unwrap());
    let path = Path::new("/cache/posts.redb");
    replace_file(&disk, path, b"").unwrap();
    let error = open(&disk).unwrap_err().to_string();
    assert!(
        error.contains("it is empty") && error.contains("move it away"),
        "{error}"
    );
    assert!(disk.exists(path).unwrap());
    disk.remove(path).unwrap();
    assert_eq!(open(&disk).unwrap().list().unwrap(), []);
}

/// So an empty file is always damage.
#[test]
fn a_start_that_breaks_off_leaves_a_whole_file_or_none() {
    for nth in 2.. {
        let memory = MemoryDisk::new();
        let faulty = Arc::new(FaultyDisk::new(Arc::new(memory.clone())));
        faulty.create_dir_all(Path::new("/cache")).unwrap();
        faulty.stop_at_change(nth);
        let disk: Arc<dyn Disk> = faulty.clone();
        let whole = PostQueue::open(&disk, Path::new("/cache"), 100).is_ok();
        for after in [memory.crash_losing_all(), memory.clone()] {
            assert_eq!(open(&after).unwrap().list().unwrap(), [], "{nth}");
        }
        if whole && !faulty.stopped() {
            break;
        }
    }
}

/// It answered every post with 441 until a restart, though there was room again.
#[test]
fn a_disk_that_was_full_for_a_moment_takes_posts_again() {
    for op in [Op::Write, Op::SetLen] {
        let memory = MemoryDisk::new();
        let faulty = Arc::new(FaultyDisk::new(Arc::new(memory.clone())));
        faulty.create_dir_all(Path::new("/cache")).unwrap();
        let disk: Arc<dyn Disk> = faulty.clone();
        let queue = PostQueue::open(&disk, Path::new("/cache"), 10 << 20).unwrap();
        let text = vec![b'x'; 3 << 20];
        assert_eq!(queue.put(&post(1, &["one"]), TEXT), Ok(1));
        faulty.add(DiskFault::new(op, "posts.redb", Effect::Full).forever());
        for _ in 0..3 {
            assert!(queue.put(&post(2, &["one"]), &text).is_err(), "{op:?}");
        }
        faulty.clear();
        assert_eq!(queue.put(&post(3, &["one"]), &text), Ok(2), "{op:?}");
        for queue in [queue, open(&memory.crash_losing_all()).unwrap()] {
            let ids = queue.list().unwrap().into_iter().map(|(_, post)| post.id);
            assert_eq!(ids.collect::<Vec<_>>(), ["<1@t.example>", "<3@t.example>"]);
            assert_eq!(queue.get(2).unwrap().1, text);
        }
    }
}

/// What the disk did not take is not said to be taken.
#[test]
fn a_disk_that_fails_takes_nothing() {
    for op in [Op::Write, Op::Sync] {
        let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
        faulty.create_dir_all(Path::new("/cache")).unwrap();
        let disk: Arc<dyn Disk> = faulty.clone();
        let queue = PostQueue::open(&disk, Path::new("/cache"), 100).unwrap();
        faulty.add(DiskFault::new(op, "posts.redb", Effect::Medium).forever());
        let put = queue.put(&post(1, &["one"]), TEXT);
        assert!(matches!(put, Err(QueueError::Disk { .. })), "{put:?}");
    }
}

/// It took no post any more until a restart, which built on what may not have been on disk.
#[test]
fn a_disk_that_failed_at_a_sync_takes_posts_again() {
    let text = vec![b'x'; 1 << 20];
    let ids = |queue: &PostQueue| -> Vec<String> {
        let all = queue.list().unwrap().into_iter();
        all.map(|(_, post)| post.id).collect()
    };
    let mut failed = 0;
    for (nth, times) in (1..=3).flat_map(|nth| [(nth, 1), (nth, u64::MAX)]) {
        let memory = MemoryDisk::new();
        let faulty = Arc::new(FaultyDisk::new(Arc::new(memory.clone())));
        faulty.create_dir_all(Path::new("/cache")).unwrap();
        let disk: Arc<dyn Disk> = faulty.clone();
        let queue = PostQueue::open(&disk, Path::new("/cache"), 10 << 20).unwrap();
        assert_eq!(queue.put(&post(1, &["one"]), TEXT), Ok(1));
        let fault = DiskFault::new(Op::Sync, "posts.", Effect::Medium);
        faulty.add(fault.nth(nth).times(times));
        let mut taken = vec!["<1@t.example>".to_owned()];
        for number in 10..13 {
            let post = post(number, &["one"]);
            match queue.put(&post, &text) {
                Ok(_) => taken.push(post.id),
                Err(error) => {
                    assert!(matches!(error, QueueError::Disk { .. }), "{error}");
                    failed += 1;
                }
            }
        }
        faulty.clear();
        // What its poster was told is not taken is not sent.
        assert_eq!(ids(&queue), taken, "{nth} {times}");
        let number = queue.put(&post(2, &["one"]), &text).unwrap();
        taken.push("<2@t.example>".to_owned());
        let after = open(&memory.crash_losing_all()).unwrap();
        for queue in [queue, after] {
            assert_eq!(ids(&queue), taken, "{nth} {times}");
            assert_eq!(queue.get(1).unwrap().1, TEXT);
            assert_eq!(queue.get(number).unwrap().1, text);
        }
    }
    assert!(failed > 6, "{failed}");
}

/// Nothing is built on what a sync that failed left in memory alone.
#[test]
fn what_a_failed_sync_left_behind_is_written_anew() {
    let text = |octet: u8| vec![octet; 100 << 10];
    let mut failed = 0;
    for nth in 1..=3 {
        let memory = MemoryDisk::new();
        let faulty = Arc::new(FaultyDisk::new(Arc::new(memory.clone())));
        faulty.create_dir_all(Path::new("/cache")).unwrap();
        let disk: Arc<dyn Disk> = faulty.clone();
        let queue = PostQueue::open(&disk, Path::new("/cache"), 10 << 20).unwrap();
        assert_eq!(queue.put(&post(1, &["one"]), &text(b'a')), Ok(1));
        faulty.add(DiskFault::new(Op::Sync, "posts.redb", Effect::Medium).nth(nth));
        let edited = {
            let in_hand = queue.take_in_hand(1).unwrap();
            queue.edit(&in_hand, &post(1, &["one"]), &text(b'b'))
        };
        failed += usize::from(edited.is_err());
        faulty.clear();
        assert_eq!(queue.put(&post(2, &["one"]), TEXT), Ok(2));
        let known = queue.get(1).unwrap();
        drop(queue);
        let after = open(&memory.crash_losing_all()).unwrap();
        assert_eq!(after.get(1).unwrap(), known, "{nth}");
        assert_eq!(after.get(2).unwrap().1, TEXT);
    }
    assert!(failed > 0);
}

/// It was sent again, as nothing said that it had been.
#[test]
fn what_became_of_a_post_is_known_where_the_disk_could_not_take_it() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let queue = open(&faulty).unwrap();
    let fails = |number, server| {
        faulty.add(DiskFault::new(Op::Write, "posts.redb", Effect::Full));
        let noted = queue.became(number, server, &Became::Sent, NOW);
        assert!(matches!(noted, Err(QueueError::Disk { .. })), "{noted:?}");
    };
    let standing = |queue: &PostQueue, number| {
        let (post, _) = queue.get(number).unwrap();
        let targets = post.targets.iter();
        targets.map(|it| it.standing).collect::<Vec<_>>()
    };
    assert_eq!(queue.put(&post(1, &["one", "two"]), TEXT), Ok(1));
    fails(1, "one");
    let half = [Standing::Sent, Standing::Waits];
    assert_eq!(standing(&queue, 1), half);
    // Whoever changes it writes all that is known.
    queue.retry(1, UnixTime(NOW.0 + 9)).unwrap();
    assert_eq!(standing(&open(&faulty).unwrap(), 1), half);
    fails(1, "two");
    assert_eq!(queue.list().unwrap()[0].1.due(), None);
    queue.note_unnoted().unwrap();
    assert_eq!(queue.list().unwrap(), []);
    assert_eq!(open(&faulty).unwrap().list().unwrap(), []);
}

/// A server that is away for days had each post written each minute.
#[test]
fn a_post_that_is_only_put_off_is_not_written() {
    let memory = MemoryDisk::new();
    memory.create_dir_all(Path::new("/cache")).unwrap();
    let faulty = Arc::new(FaultyDisk::new(Arc::new(memory)));
    let disk: Arc<dyn Disk> = faulty.clone();
    let queue = PostQueue::open(&disk, Path::new("/cache"), 100).unwrap();
    queue.put(&post(1, &["one", "two"]), TEXT).unwrap();
    let away = Became::PutOff("it is away".to_owned());
    let told = |at: u64| {
        let told = queue.became(1, "one", &away, UnixTime(NOW.0 + at))?;
        let one = &told.targets[0];
        Ok::<_, QueueError>((one.at.0 - NOW.0, one.tries, one.said.clone()))
    };
    let waits = |at| Ok((at, 0, "it is away".to_owned()));
    assert_eq!(told(0), waits(60));
    faulty.add(DiskFault::new(Op::Write, "posts.redb", Effect::Medium).forever());
    assert_eq!(told(60), waits(120));
    assert_eq!(told(120), waits(180));
    let (known, _) = queue.get(1).unwrap();
    assert!(!known.targets[0].is_due(UnixTime(NOW.0 + 179)));
    assert_eq!(queue.list().unwrap(), [(1, known.clone())]);
    // Other words are written, and with them all of it.
    let other = Became::PutOff("nobody is there".to_owned());
    assert!(queue.became(1, "one", &other, NOW).is_err());
    faulty.clear();
    let later = UnixTime(NOW.0 + 500);
    queue.became(1, "two", &Became::Sent, later).unwrap();
    drop(queue);
    let again = PostQueue::open(&disk, Path::new("/cache"), 100).unwrap();
    let (known, _) = again.get(1).unwrap();
    assert_eq!(known.targets[0].said, "nobody is there");
    assert_eq!(known.targets[1].standing, Standing::Sent);
}

/// What somebody wants tried counts as wanted until it is, and what he may not have is told.
#[test]
fn what_is_tried_by_hand_is_known_until_it_is() {
    let queue = open(&MemoryDisk::new()).unwrap();
    queue.put(&post(1, &["one"]), TEXT).unwrap();
    assert!(!queue.has_by_hand());
    let in_hand = queue.take_in_hand(1).unwrap();
    assert_eq!(queue.retry(1, NOW), Err(QueueError::InHand(1)));
    drop(in_hand);
    assert_eq!(queue.retry(2, NOW), Err(QueueError::Missing(2)));
    assert!(!queue.has_by_hand());
    queue.retry(1, NOW).unwrap();
    assert!(queue.is_by_hand(1) && queue.has_by_hand());
    assert!(queue.taken_by_hand(1).is_some() && queue.taken_by_hand(1).is_none());
    queue.wake(NOW).unwrap();
    assert!(queue.is_by_hand(1));
    queue.drop_one(1).unwrap();
    assert!(!queue.has_by_hand());
}
