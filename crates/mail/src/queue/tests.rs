//! The queue over a disk that can fail or stop, and a clock that is set.

use std::sync::atomic::{AtomicUsize, Ordering};

use newsreel_host::{FakeClock, FaultyDisk, MemoryDisk};

use super::*;
use crate::deliver::Undelivered;
use crate::format::tests::mail;

const FOLDER: &str = "/spool/mail";

fn pace(mails_max: usize) -> Pace {
    Pace {
        mails_max,
        first: Duration::from_secs(30),
        longest: Duration::from_secs(100),
    }
}

fn open(disk: &Arc<dyn Disk>, clock: &Arc<FakeClock>, mails_max: usize) -> MailQueue {
    let (disk, clock) = (Arc::clone(disk), Arc::clone(clock));
    MailQueue::open(disk, clock, Path::new(FOLDER), pace(mails_max)).unwrap()
}

/// Refuses the first `refusals` mails and ends the queue's run when `ends_at` attempts were made.
#[derive(Debug)]
struct Script<'q> {
    queue: &'q MailQueue,
    refusals: usize,
    ends_at: usize,
    attempts: AtomicUsize,
    sent: Mutex<Vec<String>>,
}

impl Deliver for Script<'_> {
    fn deliver(&self, mail: &Mail) -> Result<(), Undelivered> {
        let nth = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        if nth >= self.ends_at {
            self.queue.stop();
        }
        if nth <= self.refusals {
            return Err(Undelivered::new("not now"));
        }
        self.sent.lock().push(mail.id.to_string());
        Ok(())
    }
}

/// Runs a queue for so many attempts; what was sent.
fn run(queue: &MailQueue, refusals: usize, attempts: usize) -> Vec<String> {
    queue.state.lock().stopping = false;
    let script = Script {
        queue,
        refusals,
        ends_at: attempts,
        attempts: AtomicUsize::new(0),
        sent: Mutex::default(),
    };
    queue.run(&script);
    script.sent.into_inner()
}

fn world() -> (Arc<MemoryDisk>, Arc<dyn Disk>, Arc<FakeClock>) {
    let memory = Arc::new(MemoryDisk::new());
    memory.create_dir_all(Path::new("/spool")).unwrap();
    memory.sync_dir(Path::new("/")).unwrap();
    (Arc::clone(&memory), memory, Arc::new(FakeClock::new(0)))
}

#[test]
fn what_was_taken_is_sent_once_and_the_same_again_is_one() {
    let (_, disk, clock) = world();
    let queue = open(&disk, &clock, 10);
    queue.submit(&mail("<1@a>"), None).unwrap();
    assert_eq!(queue.submit(&mail("<1@a>"), None), Err(MailRefused::Again));
    queue.submit(&mail("<2@a>"), None).unwrap();
    assert_eq!(queue.waiting(), 2);
    let sent = run(&queue, 0, 2);
    assert_eq!(sent, ["<1@a>", "<2@a>"]);
    assert_eq!(queue.waiting(), 0);
    let left = disk.list(Path::new(FOLDER)).unwrap();
    assert!(left.len() == 2 && left.iter().all(|it| it.name.ends_with(SENT_ENDING)));
}

/// A post that was sent to its moderator was sent once more for each time it was posted again.
#[test]
fn what_was_sent_is_not_taken_again_after_a_start_either() {
    let (memory, disk, clock) = world();
    let queue = open(&disk, &clock, 10);
    queue.submit(&mail("<1@a>"), None).unwrap();
    assert_eq!(run(&queue, 0, 1), ["<1@a>"]);
    assert_eq!(queue.submit(&mail("<1@a>"), None), Err(MailRefused::Again));
    let disk: Arc<dyn Disk> = Arc::new(memory.crash_losing_all());
    let queue = open(&disk, &clock, 10);
    assert_eq!(queue.waiting(), 0);
    assert_eq!(queue.submit(&mail("<1@a>"), None), Err(MailRefused::Again));
    queue.submit(&mail("<2@a>"), None).unwrap();
}

/// One message-id was mailed once to every moderator there is, and what counts articles counted it once.
#[test]
fn an_article_is_one_mail_whoever_it_goes_to() {
    let (memory, disk, clock) = world();
    let queue = open(&disk, &clock, 10);
    let to_another = |id: &str| Mail {
        to: "other@m.example".to_owned(),
        ..mail(id)
    };
    queue.submit(&mail("<1@a>"), None).unwrap();
    let again = Err(MailRefused::Again);
    assert_eq!(queue.submit(&to_another("<1@a>"), None), again, "it waits");
    assert_eq!(run(&queue, 0, 1), ["<1@a>"]);
    assert_eq!(
        queue.submit(&to_another("<1@a>"), None),
        again,
        "it was sent"
    );
    let disk: Arc<dyn Disk> = Arc::new(memory.crash_losing_all());
    let queue = open(&disk, &clock, 10);
    assert_eq!(queue.submit(&to_another("<1@a>"), None), again, "a start");
    // One that is just being handed over may fail yet.
    let (digits, _) = names_of(&mail("<2@a>"), None);
    queue.state.lock().coming.insert(digits.clone());
    let submitted = queue.submit(&to_another("<2@a>"), None);
    assert_eq!(submitted, Err(MailRefused::Full));
    queue.state.lock().coming.remove(&digits);
    queue.submit(&to_another("<2@a>"), None).unwrap();
}

/// Makes one attempt at what is due, which is refused.
fn refuse_one(queue: &MailQueue, is_for_good: bool) {
    #[derive(Debug)]
    struct Refusal<'q>(&'q MailQueue, bool);
    impl Deliver for Refusal<'_> {
        fn deliver(&self, _: &Mail) -> Result<(), Undelivered> {
            self.0.stop();
            Err(match self.1 {
                true => Undelivered::for_good("nobody here"),
                false => Undelivered::new("not now"),
            })
        }
    }
    queue.state.lock().stopping = false;
    queue.run(&Refusal(queue, is_for_good));
}

/// Until the pauses are the longest: 30, 60 and 100 s.
fn refuse_long(queue: &MailQueue, clock: &FakeClock, is_for_good: bool) {
    for _ in 0..3 {
        refuse_one(queue, is_for_good);
        clock.advance(Duration::from_secs(100));
    }
}

/// A mail that its server refused for good was tried for ever, and held its place of its poster's share.
#[test]
fn what_is_refused_for_good_is_put_aside() {
    let (memory, disk, clock) = world();
    let queue = open(&disk, &clock, 4);
    let ada = Some([1; 12]);
    queue.submit(&mail("<1@a>"), ada).unwrap();
    for _ in 0..4 {
        refuse_long(&queue, &clock, false);
    }
    assert_eq!(queue.waiting(), 1, "what may be taken another time waits");
    let queue = open(&disk, &clock, 4);
    refuse_long(&queue, &clock, true);
    let submit = |queue: &MailQueue, id: &str| queue.submit(&mail(id), ada);
    assert_eq!(queue.waiting(), 1);
    assert_eq!(submit(&queue, "<2@a>"), Err(MailRefused::Share));
    let found = |queue: &MailQueue| queue.find(&mail("<1@a>").id);
    assert_eq!(found(&queue), Some(Mailed::Kept));
    assert_eq!(queue.has_room(ada), Err(MailRefused::Share));
    assert_eq!(queue.has_room(Some([2; 12])), Ok(()));
    refuse_one(&queue, true);
    assert_eq!(queue.waiting(), 0);
    // It was said to have been sent.
    assert_eq!(found(&queue), Some(Mailed::Refused));
    assert_eq!(submit(&queue, "<1@a>"), Err(MailRefused::Again));
    assert_eq!(queue.has_room(ada), Ok(()));
    assert_eq!(submit(&queue, "<2@a>"), Ok(()));
    // It is on disk, and is sent when it is moved back.
    let disk: Arc<dyn Disk> = Arc::new(memory.crash_losing_all());
    let (folder, (_, file)) = (
        Path::new(FOLDER),
        names_of(&mail("<1@a>"), ada.map(name_of).as_deref()),
    );
    let refused = folder.join(REFUSED_FOLDER);
    assert_eq!(waiting_in(disk.as_ref(), &refused).unwrap(), 1);
    assert_eq!(waiting_in(disk.as_ref(), folder).unwrap(), 1);
    assert_eq!(found(&open(&disk, &clock, 4)), Some(Mailed::Refused));
    disk.rename(&refused.join(&file), &folder.join(&file))
        .unwrap();
    let queue = open(&disk, &clock, 4);
    assert_eq!(found(&queue), Some(Mailed::Kept));
    let mut sent = run(&queue, 0, 2);
    sent.sort();
    assert_eq!(sent, ["<1@a>", "<2@a>"]);
    assert_eq!(found(&queue), Some(Mailed::Kept));
}

#[test]
fn no_more_are_put_aside_than_may_wait_and_none_takes_the_place_of_another() {
    let (_, disk, clock) = world();
    let (folder, refused) = (Path::new(FOLDER), Path::new(FOLDER).join(REFUSED_FOLDER));
    let queue = open(&disk, &clock, 2);
    let give_up = |queue: &MailQueue, id: &str| {
        queue.submit(&mail(id), None).unwrap();
        refuse_long(queue, &clock, true);
        refuse_one(queue, true);
        queue.waiting()
    };
    assert_eq!(give_up(&queue, "<1@a>"), 0);
    // That it was taken is forgotten long behind it.
    for sent in disk.list(folder).unwrap() {
        if sent.name.ends_with(SENT_ENDING) {
            disk.remove(&folder.join(sent.name)).unwrap();
        }
    }
    let queue = open(&disk, &clock, 2);
    assert_eq!(give_up(&queue, "<1@a>"), 0);
    assert_eq!(disk.list(&refused).unwrap().len(), 2);
    assert_eq!(give_up(&queue, "<2@a>"), 1, "it stays in the queue");
    assert_eq!(disk.list(&refused).unwrap().len(), 2);
    for file in disk.list(&refused).unwrap() {
        disk.remove(&refused.join(file.name)).unwrap();
    }
    clock.advance(Duration::from_secs(100));
    refuse_one(&queue, true);
    assert_eq!(queue.waiting(), 0);
}

/// The plug is pulled at every change while a mail is put aside: it is in the queue, or among those, and whole.
#[test]
fn a_power_cut_loses_none_that_is_put_aside() {
    let mut cuts = 0;
    for (nth, seed) in (1..30).flat_map(|nth| (0..4).map(move |seed| (nth, seed))) {
        let (memory, disk, clock) = world();
        let faulty = FaultyDisk::new(disk);
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let queue = open(&disk, &clock, 4);
        queue.submit(&mail("<1@a>"), None).unwrap();
        refuse_long(&queue, &clock, true);
        faulty.stop_at_change(faulty.counts().changes() + nth);
        refuse_one(&queue, true);
        cuts += usize::from(faulty.stopped());
        let disk: Arc<dyn Disk> = Arc::new(memory.crash(seed));
        let refused = Path::new(FOLDER).join(REFUSED_FOLDER);
        let kept = match disk.exists(&refused).unwrap() {
            true => disk.list(&refused).unwrap(),
            false => Vec::new(),
        };
        let mut is_whole = kept
            .iter()
            .filter(|it| it.name.ends_with(ENDING))
            .map(|it| {
                let octets = read_whole(disk.as_ref(), &refused.join(&it.name), FILE_OCTETS_MAX);
                format::decode(&octets.unwrap()) == Ok(mail("<1@a>"))
            });
        let is_kept = is_whole.any(|it| it);
        let queue = open(&disk, &clock, 4);
        let waits = queue.waiting() == 1 && run(&queue, 0, 1) == ["<1@a>"];
        assert!(is_kept || waits, "cut {nth} {seed}: {kept:?}");
    }
    assert!(cuts > 12, "{cuts}");
}

/// What is known of mails that were sent is bounded, in memory and on disk.
#[test]
fn the_oldest_of_what_was_sent_is_forgotten() {
    let (_, disk, clock) = world();
    let queue = open(&disk, &clock, 10);
    let folder = Path::new(FOLDER);
    for n in 0..SENT_KEPT_MAX {
        let name = format!("{n:032x}{SENT_ENDING}");
        replace_file(disk.as_ref(), &folder.join(name), b"").unwrap();
    }
    drop(queue);
    let queue = open(&disk, &clock, 10);
    for id in ["<1@a>", "<2@a>"] {
        queue.submit(&mail(id), None).unwrap();
        assert_eq!(run(&queue, 0, 1), [id]);
        assert_eq!(disk.list(folder).unwrap().len(), SENT_KEPT_MAX);
        assert_eq!(queue.submit(&mail(id), None), Err(MailRefused::Again));
    }
    let mut state = queue.state.lock();
    let newest = state.sent_order.back().unwrap().clone();
    let again = state.sent(newest, Mailed::Kept);
    assert!(again.is_empty(), "it has its place already");
    assert_eq!(state.sent.len(), SENT_KEPT_MAX);
}

#[test]
fn pauses_grow_and_a_start_tries_at_once() {
    let (_, disk, clock) = world();
    let queue = open(&disk, &clock, 10);
    queue.submit(&mail("<1@a>"), None).unwrap();
    for pause_s in [30, 60, 100, 100] {
        assert!(run(&queue, 1, 1).is_empty());
        let next = queue.state.lock().waiting.values().next().unwrap().next;
        assert_eq!(next - clock.monotonic(), Duration::from_secs(pause_s));
        clock.advance(Duration::from_secs(pause_s));
    }
    assert!(run(&queue, 1, 1).is_empty());
    let queue = open(&disk, &clock, 10);
    assert_eq!(run(&queue, 0, 1), ["<1@a>"]);
}

/// They went in the order of their hashes, after a start too.
#[test]
fn they_go_in_the_order_they_came_in() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(newsreel_host::RealDisk);
    let clock = Arc::new(FakeClock::new(0));
    let open = || {
        let (disk, clock) = (Arc::clone(&disk), Arc::clone(&clock));
        MailQueue::open(disk, clock, &folder.path().join("mail"), pace(100)).unwrap()
    };
    let ids: Vec<String> = (0..20).map(|n| format!("<{n}@a>")).collect();
    let queue = open();
    for id in &ids {
        queue.submit(&mail(id), None).unwrap();
        // A file's time is no finer than the kernel's clock.
        std::thread::sleep(Duration::from_millis(12));
    }
    assert_eq!(run(&queue, 0, 5), ids[..5]);
    let queue = open();
    assert_eq!(run(&queue, 0, 5), ids[5..10]);
    // Those that fail hold up none of the others, and go before them when their time has come.
    assert_eq!(run(&queue, 2, 4), ids[12..14]);
    clock.advance(Duration::from_secs(30));
    assert_eq!(run(&queue, 0, 8), [&ids[10..12], &ids[14..]].concat());
}

/// A power cut between sending a mail and taking it out sends it again, never not, and it is the same mail to the octet.
#[test]
fn a_power_cut_behind_sending_sends_the_same_again() {
    #[derive(Debug)]
    struct Cut<'q> {
        queue: &'q MailQueue,
        memory: &'q MemoryDisk,
        sent: Mutex<Option<(Mail, MemoryDisk)>>,
    }
    impl Deliver for Cut<'_> {
        fn deliver(&self, mail: &Mail) -> Result<(), Undelivered> {
            self.queue.stop();
            *self.sent.lock() = Some((mail.clone(), self.memory.crash(7)));
            Ok(())
        }
    }
    let (memory, disk, clock) = world();
    let queue = open(&disk, &clock, 10);
    queue.submit(&mail("<1@a>"), None).unwrap();
    let cut = Cut {
        queue: &queue,
        memory: &memory,
        sent: Mutex::default(),
    };
    queue.run(&cut);
    assert_eq!(queue.waiting(), 0, "without a cut it is sent once");
    let (first, crashed) = cut.sent.into_inner().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(crashed.clone());
    let queue = open(&disk, &clock, 10);
    assert_eq!(queue.waiting(), 1);
    let cut = Cut {
        queue: &queue,
        memory: &crashed,
        sent: Mutex::default(),
    };
    queue.run(&cut);
    let (again, _) = cut.sent.into_inner().unwrap();
    assert_eq!(again, first);
}

#[test]
fn the_queue_is_bounded() {
    let (_, disk, clock) = world();
    let queue = open(&disk, &clock, 1);
    queue.submit(&mail("<1@a>"), None).unwrap();
    assert_eq!(queue.submit(&mail("<2@a>"), None), Err(MailRefused::Full));
    assert_eq!(run(&queue, 0, 1), ["<1@a>"]);
    queue.submit(&mail("<2@a>"), None).unwrap();
}

/// While the mail server was away one poster filled the queue, and everybody else's posts to moderated groups were put off.
#[test]
fn one_poster_has_a_quarter_of_the_queue() {
    let (memory, disk, clock) = world();
    let queue = open(&disk, &clock, 8);
    let (ada, bob) = (Some([1; 12]), Some([2; 12]));
    let submit =
        |queue: &MailQueue, n: u32, poster| queue.submit(&mail(&format!("<{n}@a>")), poster);
    assert_eq!(submit(&queue, 1, ada), Ok(()));
    assert_eq!(submit(&queue, 2, ada), Ok(()));
    assert_eq!(submit(&queue, 3, ada), Err(MailRefused::Share));
    assert_eq!(submit(&queue, 3, bob), Ok(()));
    // It is known after a start, too.
    let disk: Arc<dyn Disk> = Arc::new(memory.crash_losing_all());
    let queue = open(&disk, &clock, 8);
    assert_eq!(submit(&queue, 4, ada), Err(MailRefused::Share));
    assert_eq!(submit(&queue, 1, bob), Err(MailRefused::Again));
    for n in 4..9 {
        assert_eq!(submit(&queue, n, None), Ok(()), "the server's own");
    }
    assert_eq!(submit(&queue, 9, bob), Err(MailRefused::Full));
    // What was sent, or could not be kept, gives its place back.
    assert_eq!(run(&queue, 0, 8).len(), 8);
    for _ in 0..2 {
        let submitted = queue.submit(&too_long(), ada);
        assert_eq!(submitted, Err(MailRefused::Failed));
    }
    assert_eq!(submit(&queue, 9, ada), Ok(()));
    assert_eq!(submit(&queue, 10, ada), Ok(()));
    assert_eq!(submit(&queue, 11, ada), Err(MailRefused::Share));
}

fn too_long() -> Mail {
    Mail {
        to: "x".repeat(70_000),
        ..mail("<long@a>")
    }
}

/// An article that was posted elsewhere took the message-id of one that waited for its moderator, whose approved copy was refused.
#[test]
fn the_message_ids_of_mails_are_known() {
    let (memory, disk, clock) = world();
    let queue = open(&disk, &clock, 8);
    let id = |text: &str| mail(text).id;
    let known = |queue: &MailQueue| ["<1@a>", "<2@a>", "<3@a>"].map(|it| queue.find(&id(it)));
    let (kept, coming) = (Some(Mailed::Kept), Some(Mailed::Coming));
    assert_eq!(known(&queue), [None; 3]);
    queue.submit(&mail("<1@a>"), Some([1; 12])).unwrap();
    queue.submit(&mail("<2@a>"), None).unwrap();
    assert_eq!(queue.submit(&too_long(), None), Err(MailRefused::Failed));
    assert_eq!(queue.find(&too_long().id), None);
    assert_eq!(known(&queue), [kept, kept, None]);
    assert_eq!(run(&queue, 0, 1), ["<1@a>"]);
    assert_eq!(known(&queue), [kept, kept, None]);
    let disk: Arc<dyn Disk> = Arc::new(memory.crash_losing_all());
    assert_eq!(known(&open(&disk, &clock, 8)), [kept, kept, None]);
    queue.state.lock().coming.insert(digits_of(&id("<3@a>")));
    assert_eq!(known(&queue), [kept, kept, coming]);
}

/// Names had digits of both in one, and no poster: what waits under one is sent, and what was sent is not taken again.
#[test]
fn old_names_are_read() {
    let (_, disk, clock) = world();
    drop(open(&disk, &clock, 8));
    let octets = format::encode(&mail("<1@a>")).unwrap();
    for (name, octets) in [
        ("ea93a30ce74b66a6a7987b24c9c3b58c.mail", &*octets),
        ("05d13fb7a879e4db0c12e7293b7367a3.sent", b""),
    ] {
        replace_file(disk.as_ref(), &Path::new(FOLDER).join(name), octets).unwrap();
    }
    let queue = open(&disk, &clock, 8);
    assert_eq!(queue.waiting(), 1);
    for id in ["<1@a>", "<2@a>"] {
        let submitted = queue.submit(&mail(id), Some([1; 12]));
        assert_eq!(submitted, Err(MailRefused::Again), "{id}");
    }
    assert_eq!(run(&queue, 0, 1), ["<1@a>"]);
    let left = disk.list(Path::new(FOLDER)).unwrap();
    let mut left: Vec<String> = left.into_iter().map(|it| it.name).collect();
    left.sort();
    assert_eq!(
        left,
        [
            "05d13fb7a879e4db0c12e7293b7367a3.sent",
            "ea93a30ce74b66a6a7987b24c9c3b58c.sent"
        ]
    );
}

#[test]
fn a_damaged_mail_is_set_aside_and_holds_up_no_other() {
    let (_, disk, clock) = world();
    let queue = open(&disk, &clock, 10);
    for id in ["<1@a>", "<2@a>"] {
        queue.submit(&mail(id), None).unwrap();
    }
    let bad = Path::new(FOLDER).join(names_of(&mail("<1@a>"), None).1);
    disk.open(&bad, newsreel_host::OpenMode::ReadWrite)
        .unwrap()
        .write_at(b"?", 40)
        .unwrap();
    assert_eq!(run(&queue, 0, 1), ["<2@a>"]);
    // Whichever came first, the damaged one is looked at before the queue is idle.
    if queue.waiting() > 0 {
        queue.attempt(
            &names_of(&mail("<1@a>"), None).1,
            &Script {
                queue: &queue,
                refusals: 0,
                ends_at: 9,
                attempts: AtomicUsize::new(0),
                sent: Mutex::default(),
            },
        );
    }
    assert_eq!(queue.waiting(), 0);
    let mut left = disk.list(Path::new(FOLDER)).unwrap();
    left.retain(|it| !it.name.ends_with(SENT_ENDING));
    assert_eq!(left.len(), 1);
    assert!(left[0].name.ends_with(".aside"));
    assert_eq!(open(&disk, &clock, 10).waiting(), 0);
}

/// The plug is pulled at every change the disk sees: what was taken is there afterwards and whole, what was sent and said
/// to be out of the queue does not come back.
#[test]
fn nothing_that_was_taken_is_lost_in_a_power_cut() {
    let mut cuts = 0;
    for (nth, seed) in (1..40).flat_map(|nth| (0..4).map(move |seed| (nth, seed))) {
        let (memory, disk, clock) = world();
        let faulty = FaultyDisk::new(disk);
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let queue = open(&disk, &clock, 10);
        faulty.stop_at_change(faulty.counts().changes() + nth);
        let mut taken: Vec<&str> = Vec::new();
        for id in ["<1@a>", "<2@a>"] {
            if queue.submit(&mail(id), None).is_ok() {
                taken.push(id);
            }
        }
        cuts += usize::from(faulty.stopped());
        let disk: Arc<dyn Disk> = Arc::new(memory.crash(seed));
        let queue = open(&disk, &clock, 10);
        let waiting = queue.waiting();
        assert!(
            waiting >= taken.len(),
            "cut {nth}: {taken:?} were taken, {waiting} are there"
        );
        let sent = if waiting > 0 {
            run(&queue, 0, waiting)
        } else {
            Vec::new()
        };
        assert_eq!(sent.len(), waiting, "cut {nth}: each is whole");
        assert!(
            taken.iter().all(|id| sent.iter().any(|sent| sent == id)),
            "cut {nth}"
        );
    }
    assert!(cuts > 20, "{cuts}");
}

#[test]
fn a_disk_that_fails_or_is_full_takes_nothing() {
    let (_, disk, clock) = world();
    let faulty = FaultyDisk::new(disk);
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let queue = open(&disk, &clock, 10);
    for (effect, refused) in [
        (newsreel_host::Effect::Full, MailRefused::Full),
        (newsreel_host::Effect::Medium, MailRefused::Failed),
    ] {
        faulty.add(newsreel_host::Fault::new(
            newsreel_host::Op::Write,
            "mail",
            effect,
        ));
        assert_eq!(queue.submit(&mail("<1@a>"), None), Err(refused));
        assert_eq!(queue.waiting(), 0);
        faulty.clear();
    }
    queue.submit(&mail("<1@a>"), None).unwrap();
}
