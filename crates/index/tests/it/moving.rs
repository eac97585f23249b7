//! Articles that move: packs written anew, told by the log, named by the next checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk};
use newsreel_index::{Moves, RunKind};
use newsreel_wire::{ArticleNumber, BufferId, GroupId, Position, Token};

use crate::world::{Article, DIR, Moved, Record, World, small};

/// To where all move.
const TO: u16 = 3;

fn disk() -> Arc<dyn Disk> {
    Arc::new(MemoryDisk::new())
}

/// Several packs, and rows in memory.
fn world(disk: &Arc<dyn Disk>) -> World {
    let mut world = World::with_groups(disk, small(), 4);
    for _ in 0..3 {
        world.articles(120, 4);
        world.checkpoint();
        world.compact();
    }
    world.articles(30, 4);
    world
}

impl World {
    /// The next place in the buffer to which articles move.
    fn copy_of(&mut self, old: &Token) -> Token {
        let position = &mut self.positions[usize::from(TO)];
        *position += 10;
        let mut parts = old.parts();
        parts.buffer = BufferId(TO);
        parts.position = Position(*position);
        Token::new(parts)
    }

    /// Every article that the maps know, by its token.
    fn by_token(&self) -> BTreeMap<Token, Article> {
        let rows = self.model.groups.values().flat_map(|it| it.rows.values());
        rows.map(|article| (article.token, article.clone()))
            .collect()
    }

    /// Moves all of a pack that lies in this buffer; what happens `meanwhile` comes between writing the new pack and the log.
    fn move_out(&mut self, pack: u64, from: u16, meanwhile: impl FnOnce(&mut Self)) -> usize {
        let rest = self.views.rest();
        assert!(rest.has_begun());
        let mut tokens = BTreeSet::new();
        let mut block = Some(0);
        while let Some(at) = block {
            let overview = self.views.overview();
            let is_in = |buffer| buffer == BufferId(from);
            let visited = overview.pack_rows((pack, at), &is_in, &|_| true, |column| {
                tokens.insert(column.token);
                ControlFlow::Break(())
            });
            block = visited.unwrap();
        }
        let mut moves = Moves::default();
        let copies: BTreeMap<Token, Token> =
            tokens.iter().map(|old| (*old, self.copy_of(old))).collect();
        for (old, new) in &copies {
            moves.insert(*old, *new);
        }
        let mut repack = rest.repack(pack, &Arc::new(moves)).unwrap().unwrap();
        while !repack.step().unwrap() {}
        let mut repacked = repack.finish().unwrap();
        meanwhile(self);
        assert!(repacked.is_current());
        let (old, new) = repacked.tell();
        let moved = self.moved(&copies, (old, new));
        self.record(Record::Move(moved));
        copies.len()
    }

    /// What the log says of these.
    fn moved(
        &self,
        copies: &BTreeMap<Token, Token>,
        (old, new): (u64, Option<newsreel_index::PackFacts>),
    ) -> Moved {
        let articles = self.by_token();
        let mut moved = Moved {
            articles: Vec::new(),
            left: Vec::new(),
            old,
            new,
        };
        for (from, to) in copies {
            let article = &articles[from];
            let is_overtaken = !self.is_live(from);
            let known = self.model.history[&article.key].0;
            for (group, number) in &article.places {
                let is_gone = self.model.groups[&group.0].withdrawn.contains(&number.0);
                if is_gone || is_overtaken {
                    moved.left.push((*to, *group, *number));
                }
            }
            let there = Article {
                token: *to,
                ..article.clone()
            };
            moved
                .articles
                .push((there, is_overtaken || known.is_none()));
        }
        moved
    }

    fn packs(&self) -> Vec<u64> {
        let packs = self.views.overview().packs();
        packs.iter().map(|pack| pack.id).collect()
    }
}

#[test]
fn what_moved_is_there_whatever_becomes_of_its_old_place() {
    let disk = disk();
    let mut world = world(&disk);
    let packs = world.packs();
    assert!(packs.len() > 1, "{packs:?}");
    for pack in packs {
        assert!(world.move_out(pack, 0, |_| {}) > 10);
        world.check();
        // The manifest names the old pack still.
        world.reopen(&disk);
        world.check();
    }
    world.marks.raise(0, u64::MAX >> 1);
    world.check();
    world.reopen(&disk);
    world.check();
    world.checkpoint();
    world.check();
    world.reopen(&disk);
    world.check();
    world.compact();
    world.check();
    world.marks.raise(TO, 100);
    world.check();
}

#[test]
fn what_went_while_a_pack_was_written_anew_stays_gone() {
    for is_sealed in [false, true] {
        let disk = disk();
        let mut world = world(&disk);
        for pack in world.packs() {
            let copied = world.move_out(pack, 1, |world| {
                let there = world.by_token();
                let of_pack = there.values().filter(|it| it.token.buffer() == BufferId(1));
                let some: Vec<Article> = of_pack.step_by(7).cloned().collect();
                for article in some {
                    world.record(Record::Withdraw(article));
                }
                // In the pack some were overwritten, too.
                let floor = world.marks_of(1) + 60;
                world.marks.raise(1, floor);
                if is_sealed {
                    world.checkpoint();
                }
                world.articles(5, 4);
            });
            assert!(copied > 10);
            world.check();
            world.reopen(&disk);
            world.check();
            world.checkpoint();
            world.check();
        }
        // All that is left of buffer 1 is dead now, and what went from it is not back.
        world.marks.raise(1, u64::MAX >> 1);
        world.check();
        world.reopen(&disk);
        world.check();
        world.compact();
        world.check();
        world.reopen(&disk);
        world.check();
    }
}

#[test]
fn compaction_rests_until_the_manifest_names_the_new_pack() {
    let disk = disk();
    let mut world = world(&disk);
    let pack = world.packs()[0];
    world.move_out(pack, 0, |world| {
        // There is something to do.
        world.marks.raise(0, 100);
        for _ in 0..6 {
            world.articles(40, 4);
            world.checkpoint();
            assert!(!world.views.compact_step().unwrap());
        }
    });
    let named = |disk: &Arc<dyn Disk>, pack: u64| {
        let name = format!("overview-{pack:016x}.run");
        disk.open(&Path::new(DIR).join(name), newsreel_host::OpenMode::Read)
            .is_ok()
    };
    assert!(!world.views.compact_step().unwrap());
    assert!(named(&disk, pack), "the manifest has it still");
    world.reopen(&disk);
    assert!(!world.views.compact_step().unwrap());
    world.check();
    world.checkpoint();
    assert!(!named(&disk, pack));
    assert!(world.views.compact_step().unwrap());
    world.compact();
    world.check();
}

#[test]
fn a_new_pack_that_the_log_does_not_tell_of_goes() {
    let disk = disk();
    let world = world(&disk);
    let files = || {
        let files = disk.list(Path::new(DIR)).unwrap();
        files
            .iter()
            .filter(|it| it.name.contains("overview"))
            .count()
    };
    let before = files();
    let rest = world.views.rest();
    let pack = world.packs()[0];
    let mut repack = rest.repack(pack, &Arc::default()).unwrap().unwrap();
    while !repack.step().unwrap() {}
    let repacked = repack.finish().unwrap();
    assert_eq!(files(), before + 1);
    drop(repacked);
    assert_eq!(files(), before);
    assert!(rest.repack(u64::MAX, &Arc::default()).unwrap().is_none());
}

/// A restart between the log and the checkpoint finds the file gone: it is known to be damaged, and not passed over.
#[test]
fn a_new_pack_that_is_lost_before_it_is_named_is_told_of() {
    let disk = disk();
    let mut world = world(&disk);
    let pack = world.packs()[0];
    world.move_out(pack, 0, |_| {});
    let Some(Record::Move(moved)) = world.log.last() else {
        panic!("it is the last that happened");
    };
    let new = moved.new.unwrap();
    let name = format!("overview-{:016x}.run", new.id);
    disk.remove(&Path::new(DIR).join(name)).unwrap();
    world.reopen(&disk);
    let damaged = world.views.damaged();
    let ids: Vec<(RunKind, u64)> = damaged.iter().map(|it| (it.kind, it.run)).collect();
    assert_eq!(ids, [(RunKind::Overview, new.id)]);
    let first = world.views.overview().column(
        GroupId(0),
        ArticleNumber(1),
        newsreel_index::Wait::Yes,
        &mut Vec::new(),
    );
    assert!(first.is_err(), "{first:?}");
}
