//! Who may not read all groups: what an upstream server says of an article that another one has opens nothing, and what may be read is
//! read whatever the servers can do.

use std::sync::Arc;
use std::time::Duration;

use newsreel_cache::keep::{Keep, KeepSettings};
use newsreel_host::{Disk, MemoryDisk};
use newsreel_service::{
    ArticleBuf, ArticleQuery, NewsService as _, OverviewRows, Part, ServiceError,
};
use newsreel_wire::{ArticleNumber, MessageId};

use crate::cached::{REFRESH_S, Rig, keep_settings, rig, routed};
use crate::several::{read_by_ten, with_equal};
use crate::toy::{To, article};

const FIRST: &str = "<1@t.example>";

/// An article of the private group.
fn private(number: u64) -> String {
    let wire = article(number, 20).replace("misc.test", "priv.ada");
    wire.replace(&format!("Subject: {number}"), "Subject: secret")
}

/// A server with a private group, and one with another group that says of all of its articles that they are in its own.
fn with_private(makes_lines: bool) -> (Rig, To) {
    let mut rig = rig(5, REFRESH_S);
    let ada = To::default();
    ada.0.lock().articles = (1..=5).map(|number| (number, private(number))).collect();
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let settings = KeepSettings {
        makes_lines,
        ..keep_settings()
    };
    let keep = Keep::open(&disk, &settings).unwrap();
    let servers = [(&ada, "ada", "priv.*"), (&rig.to, "other", "misc.*")];
    rig.here = routed(&servers, &rig.clock, keep, REFRESH_S, None);
    (rig, ada)
}

const LINE: &str = "224 line\r\n0\ts\tf\td\t<1@t.example>\t\t1\t1\tXref: t misc.test:1\r\n.\r\n";

fn by_id(id: &str) -> ArticleQuery<'_> {
    ArticleQuery::ById(MessageId::parse(id.as_bytes()).unwrap())
}

/// What somebody is given who may read `misc.*` alone.
async fn read(
    rig: &Rig,
    query: ArticleQuery<'_>,
    part: Part,
) -> Result<Option<Vec<u8>>, ServiceError> {
    let mut out = ArticleBuf::new();
    let reads = |group: &str| group.starts_with("misc.");
    let found = rig.here.article_for(&reads, query, part, &mut out).await?;
    Ok(found.map(|_| out.content().to_vec()))
}

/// The overview line that he is given.
async fn line(rig: &Rig, id: &str) -> Result<Option<String>, ServiceError> {
    let mut rows = OverviewRows::default();
    let reads = |group: &str| group.starts_with("misc.");
    let id = MessageId::parse(id.as_bytes()).unwrap();
    let told = rig.here.overview_for(&reads, id, &mut rows).await?;
    assert_eq!(told, !rows.is_empty());
    Ok(told.then(|| String::from_utf8(rows.text().to_vec()).unwrap()))
}

/// The overview of a server named a group that may be read, and opened the article of another server's private group.
#[tokio::test]
async fn a_servers_overview_does_not_open_anothers_private_article() {
    for is_kept in [false, true] {
        let (rig, _ada) = with_private(false);
        rig.to.0.lock().says = Some(("OVER <1@t.example>", LINE));
        if is_kept {
            let whole = rig.read_by_id(FIRST, Part::Whole).await.unwrap();
            assert_eq!(whole, private(1).as_bytes());
        }
        for part in [Part::Stat, Part::Head, Part::Body, Part::Whole] {
            assert_eq!(read(&rig, by_id(FIRST), part).await, Ok(None), "{part:?}");
        }
        assert_eq!(line(&rig, FIRST).await, Ok(None));
    }
}

/// Two ask at once: what comes for one of them is not shown to the other.
#[tokio::test(start_paused = true)]
async fn what_comes_for_another_reader_is_judged() {
    let (rig, ada) = with_private(false);
    ada.0.lock().round_trip = Duration::from_millis(100);
    let (whole, shown) = tokio::join!(
        rig.read_by_id(FIRST, Part::Whole),
        read(&rig, by_id(FIRST), Part::Whole)
    );
    assert_eq!(whole.unwrap(), private(1).as_bytes());
    assert_eq!(shown, Ok(None));
}

/// A number of a group that may be read was said to have the message-id of a private article, and opened it where it was kept.
#[tokio::test]
async fn a_number_does_not_open_anothers_private_article() {
    let wire = article(1, 500);
    let (head, body) = wire.split_once("\r\n\r\n").unwrap();
    let head = [head, "\r\n"].concat();
    for (part, own) in [
        (Part::Whole, Some(&*wire)),
        (Part::Head, Some(&*head)),
        (Part::Body, Some(body)),
        // The server has it no more: that is no reason to show the other.
        (Part::Whole, None),
    ] {
        let (rig, ada) = with_private(false);
        assert_eq!(rig.overview().await, [1, 2, 3, 4, 5]);
        let whole = rig.read_by_id(FIRST, Part::Whole).await.unwrap();
        assert_eq!(whole, private(1).as_bytes());
        rig.here.stop().await;
        if own.is_none() {
            rig.to.0.lock().says = Some(("ARTICLE 1", "423 none\r\n"));
        }
        rig.to.asked();
        let id = rig.group().await.unwrap().id;
        let number = ArticleQuery::ByNumber(id, ArticleNumber(1));
        // Who may read all groups pays for none of this.
        let mut out = ArticleBuf::new();
        let found = rig.here.article(number, Part::Whole, &mut out).await;
        assert!(found.unwrap().is_some());
        assert_eq!(rig.to.asked(), [""; 0]);
        let shown = read(&rig, number, part).await.unwrap();
        assert_eq!(shown.as_deref(), own.map(str::as_bytes), "{part:?}");
        assert!(rig.to.asked().contains(&"ARTICLE 1".to_owned()));
        // What is kept of the private one stays: nobody replaces the article of another.
        rig.here.stop().await;
        ada.asked();
        let whole = rig.read_by_id(FIRST, Part::Whole).await.unwrap();
        assert_eq!(whole, private(1).as_bytes());
        assert_eq!(ada.asked(), [""; 0]);
    }
}

/// Articles of a server that names no groups in them, or others, were fetched anew for each such reader, and offline not shown.
#[tokio::test]
async fn a_number_of_the_only_server_is_its_word() {
    let rig = rig(5, REFRESH_S);
    for wire in rig.to.0.lock().articles.values_mut() {
        *wire = wire.replace("misc.test", "other.name");
    }
    let id = rig.group().await.unwrap().id;
    let number = ArticleQuery::ByNumber(id, ArticleNumber(1));
    let first = read(&rig, number, Part::Whole).await.unwrap();
    assert!(first.is_some());
    rig.here.stop().await;
    rig.to.asked();
    for is_offline in [false, true] {
        rig.here.set_offline(is_offline).unwrap();
        assert_eq!(read(&rig, number, Part::Whole).await, Ok(first.clone()));
    }
    assert_eq!(rig.to.asked(), [""; 0]);
}

/// Nor does it by the overview that is made from what is kept.
#[tokio::test]
async fn made_overview_does_not_tell_of_anothers_private_article() {
    let (rig, _ada) = with_private(true);
    assert_eq!(rig.read(1).await, Ok(true));
    rig.here.stop().await;
    let first = MessageId::parse(FIRST.as_bytes()).unwrap();
    let dropped = rig
        .here
        .keep()
        .drop_kept(&|_| false, &[first], false)
        .unwrap();
    assert_eq!(dropped.articles, 1);
    let whole = rig.read_by_id(FIRST, Part::Whole).await.unwrap();
    assert_eq!(whole, private(1).as_bytes());
    rig.here.stop().await;
    let id = rig.group().await.unwrap().id;
    let (mut rows, one) = (OverviewRows::default(), ArticleNumber(1));
    let telling = rig.here.overview(id, one, one, 1 << 10, &mut rows);
    telling.await.unwrap();
    let text = String::from_utf8_lossy(rows.text());
    assert!(text.starts_with("1\ts\t"), "{text}");
}

/// An equal that is asked for what a number is said to have gives no private article for it.
#[tokio::test(start_paused = true)]
async fn an_equal_gives_no_private_article_for_a_number() {
    let (rig, equal) = with_equal(100).await;
    let articles = (1..=100).map(|number| (number + 100, private(number)));
    equal.0.lock().articles = articles.collect();
    read_by_ten(&rig, 100).await;
    let by_id = |said: &String| said.starts_with("ARTICLE <");
    assert!(equal.asked().iter().any(by_id));
    rig.to.asked();
    read_by_ten(&rig, 100).await;
    assert_eq!(rig.to.asked(), [""; 0]);
}

/// Where no server tells overview by message-id, or names groups in Xref, such a reader was told that what he may read is not there; while
/// nobody could be asked everybody was.
#[tokio::test]
async fn what_may_be_read_is_read_whatever_servers_can_do() {
    let rig = rig(5, REFRESH_S);
    {
        let mut toy = rig.to.0.lock();
        toy.says = Some((
            "CAPABILITIES",
            "101 list\r\nVERSION 2\r\nREADER\r\nOVER\r\n.\r\n",
        ));
        for wire in toy.articles.values_mut() {
            *wire = wire.replace("Xref:", "X-Xref:");
        }
    }
    assert_eq!(
        read(&rig, by_id(FIRST), Part::Stat).await,
        Ok(Some(Vec::new()))
    );
    assert_eq!(rig.to.asked(), ["HEAD <1@t.example>"]);
    for part in [Part::Body, Part::Head, Part::Whole] {
        assert!(read(&rig, by_id(FIRST), part).await.unwrap().is_some());
    }
    let told = line(&rig, FIRST).await.unwrap().unwrap();
    assert!(told.starts_with("0\t1\tme@t.example\t"), "{told}");
    assert_eq!(
        read(&rig, by_id("<9@t.example>"), Part::Stat).await,
        Ok(None)
    );
    let second = MessageId::parse(b"<2@t.example>").unwrap();
    let mut rows = OverviewRows::default();
    assert_eq!(rig.here.overview_by_id(second, &mut rows).await, Ok(true));
    rig.here.stop().await;
    rig.here.set_offline(true).unwrap();
    rig.to.asked();
    for part in [Part::Stat, Part::Head, Part::Body, Part::Whole] {
        assert!(read(&rig, by_id(FIRST), part).await.unwrap().is_some());
        let missing = read(&rig, by_id("<3@t.example>"), part).await;
        assert_eq!(missing, Err(ServiceError::Offline));
    }
    assert!(line(&rig, FIRST).await.unwrap().is_some());
    assert_eq!(
        line(&rig, "<3@t.example>").await,
        Err(ServiceError::Offline)
    );
    let third = MessageId::parse(b"<3@t.example>").unwrap();
    let told = rig.here.overview_by_id(third, &mut rows).await;
    assert_eq!(told, Err(ServiceError::Offline));
    assert_eq!(rig.to.asked(), [""; 0]);
}

/// While nobody could be asked, "no such article" told such a reader that somebody had read a private article, of which he is told nothing
/// where it is not kept.
#[tokio::test]
async fn nobody_learns_what_others_have_read() {
    let (rig, ada) = with_private(false);
    assert!(rig.read_by_id(FIRST, Part::Whole).await.is_some());
    rig.here.stop().await;
    let second = "<2@t.example>";
    for is_offline in [true, false] {
        rig.here.set_offline(is_offline).unwrap();
        for to in [&ada, &rig.to] {
            to.0.lock().is_down = true;
        }
        let why = match is_offline {
            true => ServiceError::Offline,
            false => ServiceError::Away,
        };
        for id in [FIRST, second] {
            for part in [Part::Stat, Part::Head, Part::Body, Part::Whole] {
                let told = read(&rig, by_id(id), part).await;
                assert_eq!(told, Err(why.clone()), "{id} {part:?}");
            }
            assert_eq!(line(&rig, id).await, Err(why.clone()), "{id}");
        }
    }
}

/// What was said not to be there is said so again for as long as its server is not asked again, and then nobody can be asked: so it was of what
/// nobody has, and of a private article that somebody had read it was said that nobody can be asked.
#[tokio::test(start_paused = true)]
async fn nobody_learns_what_others_have_read_by_asking_twice() {
    const PARTS: [Part; 4] = [Part::Stat, Part::Head, Part::Body, Part::Whole];
    for (is_offline, part) in [true, false]
        .into_iter()
        .flat_map(|it| PARTS.map(|part| (it, part)))
    {
        let (rig, ada) = with_private(false);
        assert!(rig.read_by_id(FIRST, Part::Whole).await.is_some());
        rig.here.stop().await;
        // It was read, it is private and was not, and it is nowhere.
        let all = [FIRST, "<2@t.example>", "<9@t.example>"];
        for id in all {
            assert_eq!(read(&rig, by_id(id), part).await, Ok(None), "{id}");
        }
        rig.here.stop().await;
        // The second is kept only if somebody had it fetched.
        let all = match part {
            Part::Stat => [FIRST, "<9@t.example>", "<9@t.example>"],
            _ => all,
        };
        rig.here.set_offline(is_offline).unwrap();
        for to in [&ada, &rig.to] {
            to.0.lock().is_down = true;
            to.asked();
        }
        for again in PARTS {
            for id in all {
                assert_eq!(
                    read(&rig, by_id(id), again).await,
                    Ok(None),
                    "{id} {again:?}"
                );
                assert_eq!(line(&rig, id).await, Ok(None), "{id}");
            }
        }
        tokio::time::advance(Duration::from_secs(61)).await;
        let why = match is_offline {
            true => ServiceError::Offline,
            false => ServiceError::Away,
        };
        for id in all {
            assert_eq!(read(&rig, by_id(id), part).await, Err(why.clone()), "{id}");
            assert_eq!(line(&rig, id).await, Err(why.clone()), "{id}");
        }
    }
}

/// What is said to one is no word to who may read it.
#[tokio::test]
async fn what_is_not_shown_to_one_is_shown_to_another() {
    let (rig, _ada) = with_private(false);
    for _ in 0..2 {
        assert_eq!(read(&rig, by_id(FIRST), Part::Whole).await, Ok(None));
        assert!(rig.read_by_id(FIRST, Part::Whole).await.is_some());
    }
}
