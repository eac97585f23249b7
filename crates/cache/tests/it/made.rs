//! Overview that is made from articles (R22): told as before, and no less known when an article has gone.

use std::sync::Arc;

use newsreel_cache::CServer;
use newsreel_cache::keep::{Keep, KeepSettings};
use newsreel_host::{Disk, MemoryDisk};
use newsreel_service::{ArticleBuf, ArticleQuery, NewsService as _, OverviewRows, Part};
use newsreel_wire::{ArticleNumber, MessageId};

use crate::cached::{REFRESH_S, Rig, in_front, keep_settings, rig};
use crate::toy::{To, article};

/// The cache of a rig with overview made from articles.
fn makes_lines(rig: &mut Rig, settings: &KeepSettings) {
    let disk: Arc<dyn Disk> = Arc::new(rig.disk.clone());
    let settings = KeepSettings {
        makes_lines: true,
        ..settings.clone()
    };
    // One uses the directory at a time.
    rig.here = in_front(&[&rig.to], &rig.clock, nowhere(), REFRESH_S);
    let keep = Keep::open(&disk, &settings).unwrap();
    rig.here = in_front(&[&rig.to], &rig.clock, keep, REFRESH_S);
}

fn nowhere() -> Keep {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    Keep::open(&disk, &keep_settings()).unwrap()
}

async fn lines(here: &CServer<To>, rig: &Rig, range: (u64, u64)) -> Vec<String> {
    let id = rig.group().await.unwrap().id;
    let (mut rows, mut from) = (OverviewRows::default(), Some(ArticleNumber(range.0)));
    while let Some(low) = from {
        let high = ArticleNumber(range.1);
        let telling = here.overview(id, low, high, 200, &mut rows);
        from = telling.await.unwrap();
    }
    let text = String::from_utf8(rows.text().to_vec()).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn made(number: u64, octets: usize) -> String {
    let wire = article(number, octets);
    format!(
        "{number}\t{number}\tme@t.example\tThu, 01 Jan 2026 00:00:00 +0000\t<{number}@t.example>\t\t{}\t1\tXref: t misc.test:{number}",
        wire.len() - 3
    )
}

/// What the server told is there until the article is; from then on its line is made, after a restart, too, and takes less room.
#[tokio::test]
async fn a_line_is_made_from_its_article_as_soon_as_that_is_kept() {
    let mut rig = rig(3, REFRESH_S);
    rig.to.0.lock().articles.insert(4, article(4, 20_000));
    makes_lines(&mut rig, &keep_settings());
    let of_server = lines(&rig.here, &rig, (1, 4)).await;
    assert!(of_server[1].starts_with("2\ts\t"), "{of_server:?}");
    let octets_before = rig.here.keep().figures().overview_octets;
    for number in [2, 3] {
        assert!(rig.read(number).await.unwrap());
    }
    let by_number = async |rig: &Rig, number| {
        let id = rig.group().await.unwrap().id;
        let query = ArticleQuery::ByNumber(id, ArticleNumber(number));
        let mut out = ArticleBuf::new();
        let found = rig.here.article(query, Part::Whole, &mut out).await;
        assert!(found.unwrap().is_some());
    };
    // Large: its line is the server's.
    by_number(&rig, 4).await;
    rig.here.stop().await;
    let expected = [
        of_server[0].clone(),
        made(2, 500),
        made(3, 500),
        of_server[3].clone(),
    ];
    rig.to.asked();
    for restart in [false, true] {
        if restart {
            makes_lines(&mut rig, &keep_settings());
        }
        assert_eq!(lines(&rig.here, &rig, (1, 4)).await, expected);
        assert_eq!(lines(&rig.here, &rig, (3, 3)).await, expected[2..3]);
        assert_eq!(rig.to.asked(), [""; 0], "after a restart: {restart}");
    }
    let octets = rig.here.keep().figures().overview_octets;
    assert!(octets < octets_before, "{octets} of {octets_before}");
    // Who does not make lines any more still has all of them.
    let disk: Arc<dyn Disk> = Arc::new(rig.disk.clone());
    rig.here = in_front(&[&rig.to], &rig.clock, nowhere(), REFRESH_S);
    let keep = Keep::open(&disk, &keep_settings()).unwrap();
    rig.here = in_front(&[&rig.to], &rig.clock, keep, REFRESH_S);
    assert_eq!(lines(&rig.here, &rig, (1, 4)).await, expected);
    assert_eq!(rig.to.asked(), [""; 0]);
}

/// The articles went, by the policy or with a damaged file: the server is asked for their lines again, once.
#[tokio::test]
async fn a_line_of_which_the_article_went_is_asked_for() {
    let mut rig = rig(9, REFRESH_S);
    let settings = KeepSettings {
        // Nothing stays in memory.
        memory_octets: 0,
        ..keep_settings()
    };
    makes_lines(&mut rig, &settings);
    for number in 1..=9 {
        assert!(rig.read(number).await.unwrap());
    }
    rig.here.stop().await;
    let all = lines(&rig.here, &rig, (1, 9)).await;
    assert_eq!(all[4], made(5, 500));
    let fifth = MessageId::parse(b"<5@t.example>").unwrap();
    let dropped = rig
        .here
        .keep()
        .drop_kept(&|_| false, &[fifth], false)
        .unwrap();
    assert_eq!(dropped.articles, 1);
    rig.to.asked();
    let again = lines(&rig.here, &rig, (1, 9)).await;
    assert!(again[4].starts_with("5\ts\t"), "{again:?}");
    assert_eq!(rig.to.asked(), ["GROUP misc.test", "OVER 5-5"]);
    assert_eq!(lines(&rig.here, &rig, (1, 9)).await, again);
    assert_eq!(rig.to.asked(), [""; 0]);
    // Its article comes back.
    assert!(rig.read(5).await.unwrap());
    rig.here.stop().await;
    assert_eq!(lines(&rig.here, &rig, (1, 9)).await, all);
}
