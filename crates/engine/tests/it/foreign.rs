//! Attached files whose articles say what is wrong or what somebody wants believed: neither readers nor groups of this server pay for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_engine::{ArticleRef, Attached, Attaching, Reason};
use newsreel_host::{Disk, Effect, Fault, FaultyDisk, MemoryDisk, Op, OpenMode};
use newsreel_service::Outcome;
use newsreel_wire::TokenText;

use crate::attaching::{ARTICLES, ROOM, attach, copies, copy, filled, source};
use crate::world::{NOW, World, article, config};

const ELSEWHERE: &str = "/elsewhere";

fn write(disk: &dyn Disk, name: &str, octets: &[u8]) {
    let path = Path::new(ELSEWHERE).join(name);
    disk.create_dir_all(path.parent().unwrap()).unwrap();
    let file = disk.open(&path, OpenMode::CreateNew).unwrap();
    file.write_at(octets, 0).unwrap();
}

/// A new spool beside the files that `make` makes.
fn beside(make: impl FnOnce(&dyn Disk)) -> World {
    let disk = MemoryDisk::new();
    make(&disk);
    World::on(Arc::new(disk), config(ROOM))
}

fn attach_elsewhere(world: &World, dry_run: bool) -> Attached {
    attach(world, &[PathBuf::from(ELSEWHERE)], false, dry_run)
}

/// The article with these lines in front of its end.
fn with_lines(n: usize, lines: &str) -> (String, Vec<u8>) {
    let (id, mut text) = article(n, "misc.test");
    text.truncate(text.len() - 3);
    text.extend_from_slice(lines.as_bytes());
    text.extend_from_slice(b".\r\n");
    (id, text)
}

/// The article with this Xref.
fn with_xref(n: usize, xref: &str) -> Vec<u8> {
    let (_, text) = article(n, "misc.test");
    let text = String::from_utf8(text).unwrap();
    let field = format!("Xref: them {xref}\r\nSubject: ");
    text.replacen("Subject: ", &field, 1).into_bytes()
}

/// What stood behind a block's end in the midst of an article was sent to readers as if it were the server's answer to what they asked next.
#[tokio::test]
async fn an_article_that_ends_in_its_midst_is_not_taken() {
    const ANSWER: &str = "hi\r\n.\r\n430 No such article\r\n";
    let old = World::new(config(ROOM));
    let sent = [with_lines(1, ANSWER), filled(2)];
    assert_eq!(old.send(&sent).await, [Outcome::Accepted; 2]);
    old.seal();
    let disk = MemoryDisk::new();
    let paths = copy(&old, "/spool/buffers", &disk);
    let world = World::on(Arc::new(disk), config(ROOM));
    for dry_run in [true, false] {
        let report = attach(&world, &paths, false, dry_run);
        assert_eq!(report.taken, 1, "{report:?}");
        assert_eq!(report.refused.values().sum::<u64>(), 1, "{report:?}");
    }
    assert_eq!(world.by_id("<1@t.example>").await, None);
    assert!(world.by_id("<2@t.example>").await.is_some());
}

/// A file with CRLF lines was taken for one in wire form whatever else was in it.
#[tokio::test]
async fn a_file_of_crlf_lines_that_is_no_block_is_text() {
    let world = beside(|disk| {
        // No lines of it are stuffed, and it has no end.
        let (_, text) = with_lines(1, "hi\r\n.\r\n430 x\r\n.b\r\n");
        write(disk, "misc/test/1", text.strip_suffix(b".\r\n").unwrap());
        // Two ends.
        write(
            disk,
            "misc/test/2",
            &with_lines(2, "hi\r\n.\r\n430 x\r\n").1,
        );
        // One.
        write(disk, "misc/test/3", &with_lines(3, "..b\r\n").1);
    });
    assert_eq!(attach_elsewhere(&world, false).taken, 3);
    for (n, ends) in [
        (1, "hi\r\n..\r\n430 x\r\n..b\r\n.\r\n"),
        (2, "hi\r\n..\r\n430 x\r\n..\r\n.\r\n"),
        (3, "\r\n..b\r\n.\r\n"),
    ] {
        let text = world.by_id(&format!("<{n}@t.example>")).await.unwrap();
        assert!(text.ends_with(ends), "{text}");
    }
}

/// They stayed until then, whatever the rules say.
#[tokio::test]
async fn what_came_later_than_now_comes_now() {
    let old = World::new(config(ROOM));
    old.wait_s(3 * 86_400);
    old.send(&[filled(0), filled(1)]).await;
    old.seal();
    // The same two are there once more, and known by then.
    let again = World::new(config(ROOM));
    again.wait_s(3 * 86_400);
    again.send(&[filled(0), filled(1)]).await;
    again.seal();
    let disk = MemoryDisk::new();
    disk.create_dir_all(Path::new("/again")).unwrap();
    let moved = |path: PathBuf| {
        let to = Path::new("/again").join(path.file_name().unwrap());
        disk.rename(&path, &to).unwrap();
        to
    };
    let again = copy(&again, "/spool/buffers", &disk).into_iter().map(moved);
    let again: Vec<_> = again.collect();
    let paths = [copy(&old, "/spool/buffers", &disk), again].concat();
    let world = World::on(Arc::new(disk), config(ROOM));
    for dry_run in [true, false] {
        let report = attach(&world, &paths, false, dry_run);
        let counted = (report.taken, report.known, report.later);
        assert_eq!(counted, (2, 2, 2), "{report:?}");
    }
    for n in 0..2 {
        let id = ArticleRef::Id(format!("<{n}@t.example>"));
        let found = world.engine.article(&id).unwrap().unwrap();
        assert_eq!(found.arrival, NOW);
    }
}

/// An Xref with the last number there is closed a group for good, and nothing told of it.
#[tokio::test]
async fn a_foreign_number_closes_no_group_and_a_jump_is_told() {
    let world = beside(|disk| {
        for (n, number) in [(1, 7), (2, 8), (3, 2_147_483_647), (4, 2_000_000_000)] {
            let xref = format!("misc.test:{number}");
            write(disk, &format!("{n}"), &with_xref(n, &xref));
        }
    });
    for dry_run in [true, false] {
        let report = attach_elsewhere(&world, dry_run);
        assert_eq!((report.taken, report.renumbered), (4, 1), "{report:?}");
        assert_eq!(report.jumps.len(), 1, "{report:?}");
        assert!(report.jumps[0].contains("misc.test"), "{report:?}");
        assert!(report.jumps[0].contains("2000000000"), "{report:?}");
    }
    assert_eq!(
        world.send(&[article(5, "misc.test")]).await,
        [Outcome::Accepted]
    );
}

/// What had been withdrawn came back where the bitmap that tells it could not be read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_of_a_bitmap_brings_nothing_back() {
    /// Where the bitmap begins, and the octets for which one of its own stands.
    const BITMAP: (u64, u64) = (8192, 8 * 64);
    let (old, _) = source(false).await;
    let gone = ArticleRef::Id("<300@t.example>".to_owned());
    let token = old.engine.article(&gone).unwrap().unwrap().token;
    let token = TokenText::parse(&token).unwrap();
    let bit = BITMAP.0 + token.position.offset() / BITMAP.1;
    old.engine.withdraw(&[gone], Reason::Cancelled).unwrap();
    old.seal();
    for oldest_may_go in [false, true] {
        let disk = MemoryDisk::new();
        let paths = copy(&old, "/spool/buffers", &disk);
        let faulty = FaultyDisk::new(Arc::new(disk));
        let world = World::on(Arc::new(faulty.clone()), config(ROOM));
        let path = format!("{ELSEWHERE}/{}", token.name);
        faulty.add(
            Fault::new(Op::Read, &path, Effect::Medium)
                .covering(bit)
                .forever(),
        );
        let what = Attaching {
            oldest_may_go,
            ..copies(&paths)
        };
        match world.engine.attach(&what, &mut |_, _| true) {
            Ok(report) => {
                assert_eq!(report.doubtful.len(), 1, "{report:?}");
                assert_eq!(report.unreadable.len(), 1, "{report:?}");
                assert!(oldest_may_go && report.taken > 0 && report.withdrawn > 1);
            }
            Err(error) => assert!(!oldest_may_go, "{error}"),
        }
        assert_eq!(world.by_id("<300@t.example>").await, None);
        let everything = Attaching {
            withdrawn: true,
            ..what
        };
        let report = world.engine.attach(&everything, &mut |_, _| true).unwrap();
        assert_eq!(report.taken + report.known, ARTICLES as u64);
    }
}

/// While it passed over what was withdrawn there it told nothing of how far it was, and could not be ended.
#[tokio::test]
async fn it_can_be_ended_where_nothing_is_wanted() {
    let (old, _) = source(false).await;
    let all = (0..ARTICLES).map(|n| ArticleRef::Id(format!("<{n}@t.example>")));
    let all: Vec<_> = all.collect();
    old.engine.withdraw(&all, Reason::Cancelled).unwrap();
    old.seal();
    let disk = MemoryDisk::new();
    let paths = copy(&old, "/spool/buffers", &disk);
    let world = World::on(Arc::new(disk), config(ROOM));
    let (mut told, what) = (0, copies(&paths));
    let report = world.engine.attach(&what, &mut |read, total| {
        told = read;
        assert!(0 < read && read < total);
        false
    });
    let report = report.unwrap();
    assert!(report.is_cut && told > 0, "{told}: {report:?}");
}
