//! What was cancelled or overwritten is gone for everybody at once, and nothing is read from the disk to find that out.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::{ArticleRef, Reason, Withdrawal};
use newsreel_host::{Disk, FaultyDisk, MemoryDisk, OpenMode};
use newsreel_service::{ArticleQuery, NewsService as _, Outcome, OverviewRows, Part};
use newsreel_store::methods::cnfs::{FileHeader, PAGE};
use newsreel_wire::{ArticleNumber, GroupName, MessageId};

use crate::damage::newnews;
use crate::segments::large;
use crate::world::{World, article, config};

const GROUP: &str = "misc.test";

/// One article, asked for in every way: nothing is there.
async fn is_gone(world: &World, n: usize) {
    let id = format!("<{n}@t.example>");
    let id = MessageId::parse(id.as_bytes()).unwrap();
    let number = n as u64 + 1;
    for part in [Part::Stat, Part::Head, Part::Body, Part::Whole] {
        let by_number = world.numbered(GROUP, number).await;
        assert_eq!(world.read(by_number, part).await, None, "{n}: {part:?}");
        let by_id = world.read(ArticleQuery::ById(id), part).await;
        assert_eq!(by_id, None, "{n}: {part:?}");
    }
    let mut rows = OverviewRows::default();
    assert!(!world.service.overview_by_id(id, &mut rows).await.unwrap());
}

/// What lists show: OVER and HDR, LISTGROUP, GROUP, NEWNEWS.
async fn listed(world: &World) -> [usize; 4] {
    let name = GroupName::parse(GROUP.as_bytes()).unwrap();
    let group = world.service.group(name).await.unwrap().unwrap();
    let (first, last) = (ArticleNumber(1), ArticleNumber(u64::MAX));
    let mut numbers = Vec::new();
    let more = world
        .service
        .numbers(group.id, first, last, 10_000, &mut numbers);
    assert_eq!(more.await.unwrap(), None);
    [
        world.lines(GROUP).await.len(),
        numbers.len(),
        usize::try_from(group.count).unwrap(),
        newnews(world, GROUP).await.unwrap(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_read_to_find_out_what_is_gone() {
    const FED: usize = 400;
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let world = World::on(Arc::new(faulty.clone()), config(4 << 20));
    for n in (0..FED).step_by(10) {
        let some: Vec<_> = (n..n + 10).map(|n| large(n, 30_000)).collect();
        assert_eq!(world.send(&some).await, [Outcome::Accepted; 10]);
    }
    for is_sealed in [false, true] {
        if is_sealed {
            world.seal();
        }
        let (low, count) = {
            let group = world.engine.group(GROUP).unwrap();
            (
                usize::try_from(group.low).unwrap(),
                usize::try_from(group.count).unwrap(),
            )
        };
        assert!(
            (100..300).contains(&low),
            "{low}: the first are overwritten"
        );
        // Pages that tell what is there are in memory then, and what a checkpoint has done behind itself is done.
        let (mut rests, mut before) = (0, u64::MAX);
        while rests < 5 {
            assert_eq!(listed(&world).await, [count; 4]);
            is_gone(&world, 3).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = faulty.octets_read("");
            rests = if now == before { rests + 1 } else { 0 };
            before = now;
        }
        let cancelled = [FED - 20, FED - 30].map(|n| n - usize::from(is_sealed));
        let which = cancelled.map(|n| ArticleRef::Id(format!("<{n}@t.example>")));
        let done = world.engine.withdraw(&which, Reason::Cancelled).unwrap();
        assert_eq!(done, [Withdrawal::Done, Withdrawal::Done]);

        let read = || ["/buffers/", "/overview", "/history"].map(|part| faulty.octets_read(part));
        let before = read();
        let overwritten = [0, 3, low - 2];
        for n in overwritten.into_iter().chain(cancelled) {
            is_gone(&world, n).await;
        }
        assert_eq!(listed(&world).await, [count - 2; 4]);
        let [buffers, overview, all] = read();
        assert_eq!([buffers, overview], before[..2], "sealed: {is_sealed}");
        // A message-id that was sealed leads to its place by one page of the history; that this was overwritten is computed.
        let pages = if is_sealed {
            overwritten.len() as u64
        } else {
            0
        };
        let more = all - before[2];
        assert!(more <= pages * 4096, "sealed: {is_sealed}: {more} octets");
    }
    // It does read what is there, where it is not in memory.
    let before = faulty.octets_read("");
    for n in 100..FED {
        world.by_id(&format!("<{n}@t.example>")).await;
    }
    assert!(faulty.octets_read("") > before);
}

/// What the newer of the two copies of a buffer's header says of the last article.
fn told_by_header(disk: &dyn Disk, name: &str) -> u64 {
    let path = Path::new("/spool/buffers").join(name);
    let file = disk.open(&path, OpenMode::Read).unwrap();
    let mut pages = vec![0; 2 * PAGE as usize];
    file.read_exact_at(&mut pages, 0).unwrap();
    let copies = pages.chunks(PAGE as usize).map(|page| {
        let header = FileHeader::decode(page).unwrap();
        header.hints.sequence.0
    });
    copies.max().unwrap()
}

/// One article comes, and then nothing for long: its buffer's header tells of it all the same, by the clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_are_written_by_time_where_nothing_comes() {
    let mut config = config(4 << 20);
    config.sequencer.checkpoint_s_max = 600;
    let world = World::new(config);
    world.send(&[article(1, GROUP)]).await;
    world.seal();
    assert_eq!(world.send(&[article(2, GROUP)]).await, [Outcome::Accepted]);
    let last = world.engine.status().sequence;
    let told = || {
        let names = world.config.store.buffers.iter();
        let told = names.map(|it| told_by_header(world.disk.as_ref(), &it.name));
        told.max().unwrap()
    };
    let before = told();
    assert!(before < last, "{before} and {last}");
    world.wait_s(590);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(told(), before, "not earlier");
    world.wait_s(20);
    world.wait_until("the header", |_| told() >= last);
}
