//! Readers beside the applier, a checkpoint thread and compaction: they see whole articles, in order, and never less than
//! what was there when they asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use newsreel_host::{Disk, MemoryDisk};
use newsreel_index::{Applier, ArticleRow, GroupRow, Liveness, Views, Wait};
use newsreel_wire::{
    ArticleNumber, BufferId, GroupId, Position, Sequence, Token, TokenParts, UnixTime,
};

use crate::world::{DIR, Marks, SPOOL, hash, small, split_lines};

const GROUPS: u64 = 5;

/// Article `key` goes to group `key % GROUPS` under the number `key / GROUPS + 1`.
fn publish(applier: &mut Applier, key: u64) {
    let (text, id) = (format!("text of {key}"), format!("<{key}@t.example>"));
    let parts = TokenParts {
        method: 1,
        buffer: BufferId(0),
        len: 9,
        position: Position(key),
        ..TokenParts::default()
    };
    let number = ArticleNumber(key / GROUPS + 1);
    let row = ArticleRow {
        hash: hash(key),
        token: Token::new(parts),
        arrival: UnixTime(key),
        flags: 0,
        places: &[(GroupId((key % GROUPS) as u32), number)],
        id: id.as_bytes(),
        text: text.as_bytes(),
    };
    applier.article(&row).unwrap();
}

/// Everything published before the look and still alive after it must be in the answer.
fn look(views: &Views, marks: &Marks, published: &AtomicU64, group: u64) {
    let before = published.load(Ordering::SeqCst);
    let all = (ArticleNumber(0), ArticleNumber(u64::MAX));
    let (mut numbers, mut lines) = (Vec::new(), Vec::new());
    let id = GroupId(group as u32);
    let overview = views.overview();
    let done = overview.lines(id, all, usize::MAX, Wait::Yes, &mut lines);
    assert_eq!(done.unwrap(), None);
    for (number, text) in split_lines(&lines) {
        let key = (number - 1) * GROUPS + group;
        assert_eq!(text, format!("text of {key}"));
        numbers.push(number);
    }
    assert!(numbers.is_sorted_by(|a, b| a < b));
    let floor = marks.floor(BufferId(0)).0;
    let alive = (group..before)
        .step_by(GROUPS as usize)
        .filter(|key| *key >= floor);
    for key in alive {
        let number = key / GROUPS + 1;
        assert!(
            numbers.binary_search(&number).is_ok(),
            "{number} of group {group}"
        );
    }
    let facts = views.group_facts(id, Wait::Yes).unwrap();
    assert!(facts.low <= facts.high.next(), "{facts:?}");
    assert!(
        facts.count <= facts.high.next().0 - facts.low.0,
        "{facts:?}"
    );
    let key = before.saturating_sub(1 + group * 7);
    let known = views.history().lookup(&hash(key)).unwrap();
    assert!(before == 0 || known.is_some(), "key {key}");
}

/// Ends the readers, also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn readers_see_all_that_was_published_and_is_alive() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let marks = Arc::new(Marks::default());
    let liveness: Arc<dyn Liveness> = Arc::clone(&marks) as _;
    let (views, _) =
        Views::open(disk, std::path::Path::new(DIR), small(), SPOOL, liveness).unwrap();
    views.sweep().unwrap();
    for id in 0..GROUPS as u32 {
        let name = format!("group.n{id}");
        let row = GroupRow {
            id: GroupId(id),
            name: &name,
            status: "y",
            created: UnixTime(1),
            creator: "",
            description: "",
            high: ArticleNumber(0),
        };
        views.groups().make(&row).unwrap();
    }
    let (published, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        for group in 0..3 {
            let (views, marks, published, stop) = (&views, &marks, &published, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    look(views, marks, published, group);
                }
            });
        }
        let mut applier = Applier::new(Arc::clone(&views));
        for round in 0..60 {
            for key in round * 50..round * 50 + 50 {
                publish(&mut applier, key);
                if key % 7 == 0 {
                    applier.publish().unwrap();
                    published.store(key + 1, Ordering::SeqCst);
                }
            }
            marks.raise(0, (round * 50).saturating_sub(700));
            let frozen = applier.freeze(Sequence(round * 50 + 50)).unwrap();
            published.store(round * 50 + 50, Ordering::SeqCst);
            let background = scope.spawn(|| {
                let mut frozen = frozen;
                frozen.write().unwrap();
                views.install(frozen).unwrap();
                while views.compact_step().unwrap() {}
            });
            background.join().unwrap();
        }
    });
    assert_eq!(views.damaged(), []);
}
