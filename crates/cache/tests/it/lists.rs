//! The list of groups, brought up to date by what a server tells has changed of it.

use std::sync::Arc;
use std::time::Duration;

use newsreel_cache::CServer;
use newsreel_cache::keep::Keep;
use newsreel_host::{Disk, Effect, FakeClock, Fault, FaultyDisk, MemoryDisk, Op};
use newsreel_service::{
    Arriving, GroupCursor, GroupSelect, GroupStatus, NewsService as _, ServiceError,
};
use newsreel_wire::{ArticleNumber, GroupName, UnixTime};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::cached::{REFRESH_S, Rig, in_front, keep_settings, rig, whole_list};
use crate::toy::To;

/// The lines of a listing that begins now.
async fn listed(rig: &Rig, changed_since: Option<u64>) -> Vec<String> {
    let select = GroupSelect {
        changed_since: changed_since.map(UnixTime),
        ..GroupSelect::default()
    };
    let (mut cursor, mut rows) = (GroupCursor::default(), Vec::new());
    while !cursor.is_done() {
        let mut visit = |row: newsreel_service::GroupRow<'_>| {
            let (name, info) = (row.name.as_str(), row.info);
            let (high, low, created) = (info.high, info.low, row.created.0);
            rows.push(format!("{name} {high} {low} {} {created}", row.status));
        };
        let asking = rig.here.groups(select, &mut cursor, 1, &mut visit);
        asking.await.unwrap();
    }
    rows
}

const WHOLE: [&str; 4] = [
    "DATE",
    "LIST ACTIVE",
    "LIST NEWSGROUPS",
    "LIST ACTIVE.TIMES",
];

/// The list of fifty thousand groups is two megabytes; what has changed of it in ten minutes is a few lines.
#[tokio::test(start_paused = true)]
async fn only_what_has_changed_is_asked_for_where_the_server_tells_it() {
    let rig = rig(5, REFRESH_S);
    let later = async || tokio::time::advance(Duration::from_secs(61)).await;
    {
        let mut toy = rig.to.0.lock();
        toy.listed = "alt.one 7 1 y\r\nalt.two 9 1 y\r\n";
        toy.changed = Some("alt.two 11 2 m\r\nalt.three 1 1 y\r\nmisc.test 5 1 y\r\n");
    }
    let first = ["alt.one 7 1 y 0", "alt.two 9 1 y 0", "misc.test 5 1 y 0"];
    assert_eq!(listed(&rig, None).await, first);
    assert_eq!(rig.to.asked(), WHOLE);
    assert_eq!(listed(&rig, None).await, first);
    assert_eq!(rig.to.asked(), [""; 0]);
    later().await;
    let second = [
        "alt.one 7 1 y 0",
        "alt.three 1 1 y 1767225600",
        "alt.two 11 2 m 0",
        "misc.test 5 1 y 0",
    ];
    assert_eq!(listed(&rig, None).await, second);
    let asked = [
        "DATE",
        "LIST ACTIVE.MODTIME 20260101000001",
        "LIST NEWSGROUPS alt.three",
        "LIST ACTIVE.TIMES alt.three",
    ];
    assert_eq!(rig.to.asked(), asked);
    // Nothing new: it goes on from where the last one ended.
    later().await;
    assert_eq!(listed(&rig, None).await, second);
    let asked = ["DATE", "LIST ACTIVE.MODTIME 20260101000002"];
    assert_eq!(rig.to.asked(), asked);
    // What the server cannot tell is asked for whole, and groups that are gone are gone then.
    rig.to.0.lock().changed = Some("503");
    later().await;
    assert_eq!(listed(&rig, None).await, first);
    let asked = [&asked[..1], &["LIST ACTIVE.MODTIME 20260101000003"], &WHOLE].concat();
    assert_eq!(rig.to.asked(), asked);
}

/// Changes do not tell of a group that is gone: the list is fetched whole from time to time, and when one is missed.
#[tokio::test(start_paused = true)]
async fn a_group_that_is_gone_leaves_the_list_that_is_brought_up_to_date() {
    let rig = rig(5, REFRESH_S);
    let after = async |seconds| {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        listed(&rig, None).await.len()
    };
    {
        let mut toy = rig.to.0.lock();
        (toy.listed, toy.changed) = ("alt.one 7 1 y\r\n", Some(""));
    }
    assert_eq!(after(0).await, 2);
    rig.to.0.lock().listed = "";
    assert_eq!((after(61).await, after(61).await), (2, 2));
    assert_eq!(after(600).await, 1, "ten minutes after the first one");
    // One that is asked for and is not there is missed at once.
    rig.to.0.lock().listed = "alt.one 7 1 y\r\n";
    assert_eq!(after(600).await, 2);
    {
        let mut toy = rig.to.0.lock();
        (toy.listed, toy.is_without_group) = ("", true);
    }
    let name = GroupName::parse(b"alt.one").unwrap();
    assert!(rig.here.group(name).await.unwrap().is_none());
    rig.to.asked();
    assert_eq!(after(61).await, 1);
    assert_eq!(rig.to.asked(), WHOLE);
}

/// What was kept of it stayed until somebody asked for it, which nobody does who does not see it.
#[tokio::test(start_paused = true)]
async fn a_group_that_has_left_the_list_leaves_what_is_kept() {
    const NO_LIST: &str = "215 list\r\nother.group 1 1 y\r\n.\r\n";
    for is_gone in [true, false] {
        let rig = rig(5, REFRESH_S);
        let mut tasks = JoinSet::new();
        let tended = Arc::clone(&rig.here);
        tasks.spawn(async move { tended.tend().await });
        assert!(rig.read(2).await.unwrap());
        whole_list(&rig.here).await.unwrap();
        tokio::time::sleep(Duration::from_secs(61)).await;
        rig.to.0.lock().says = Some(("LIST ACTIVE", NO_LIST));
        // A list may lack more than is gone: only what the group's server says counts.
        rig.to.0.lock().is_without_group = is_gone;
        whole_list(&rig.here).await.unwrap();
        rig.to.asked();
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert_eq!(rig.here.keep().group("misc.test").is_none(), is_gone);
        // Once for each list.
        let asked = rig.to.asked();
        let groups = asked.iter().filter(|it| *it == "GROUP misc.test");
        assert_eq!(groups.count(), 1);
        tasks.shutdown().await;
    }
}

/// Newsreaders ask again and again for groups that are gone: each time it was two commands.
#[tokio::test(start_paused = true)]
async fn a_group_that_is_not_there_is_asked_for_once_in_a_time() {
    const ASKED: [&str; 2] = ["GROUP misc.test", "LIST ACTIVE misc.test"];
    for refresh_s in [0, REFRESH_S] {
        let rig = rig(5, refresh_s);
        rig.to.0.lock().is_without_group = true;
        for turn in 0..3 {
            assert_eq!(rig.group().await, None);
            let is_asked = turn == 0 || refresh_s == 0;
            let asked: &[&str] = if is_asked { &ASKED } else { &[] };
            assert_eq!(rig.to.asked(), asked, "{turn} {refresh_s}");
        }
        rig.later(refresh_s);
        assert_eq!(rig.group().await, None);
        assert_eq!(rig.to.asked(), ASKED);
        // A list that shows it is newer than that.
        rig.to.0.lock().is_without_group = false;
        tokio::time::advance(Duration::from_secs(1)).await;
        whole_list(&rig.here).await.unwrap();
        assert_eq!(rig.group().await.map(|group| group.high.0), Some(5));
        // One that could not be asked said nothing.
        let other = GroupName::parse(b"misc.other").unwrap();
        rig.to.0.lock().is_down = true;
        assert!(rig.here.group(other).await.is_err());
        rig.to.0.lock().is_down = false;
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(rig.here.group(other).await.unwrap().is_some());
    }
}

/// Readers, and caches in front of this one, are told what has changed as well: every line that they were not shown, perhaps
/// one twice.
#[tokio::test(start_paused = true)]
async fn what_has_changed_is_told_on() {
    let rig = rig(5, REFRESH_S);
    rig.to.0.lock().listed = "alt.one 7 1 y\r\n";
    let now = || rig.here.now().0;
    let begun = now();
    assert_eq!(listed(&rig, Some(begun)).await.len(), 2);
    rig.clock.advance(Duration::from_secs(10));
    assert_eq!(listed(&rig, Some(begun + 1)).await, [""; 0]);
    rig.to.0.lock().listed = "alt.one 8 1 y\r\n";
    let shown = now();
    assert_eq!(
        listed(&rig, None).await[0],
        "alt.one 7 1 y 0",
        "shown to somebody"
    );
    rig.clock.advance(Duration::from_secs(60));
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(listed(&rig, Some(shown)).await, ["alt.one 8 1 y 0"]);
    assert_eq!(
        listed(&rig, Some(now() + 1)).await.len(),
        2,
        "from a time to come"
    );
}

/// A list of many groups, which stops behind its first lines until that is told: its lines as they are told.
fn with_many(rig: &Rig) -> (String, Arc<Notify>) {
    let lines: String = (0..800)
        .map(|group| format!("alt.group.number.{group} 7 1 y\r\n"))
        .collect();
    let told = format!("misc.test 5 1 y\r\n{lines}");
    let goes_on = Arc::new(Notify::new());
    let mut toy = rig.to.0.lock();
    toy.listed = lines.leak();
    toy.holds = Some(("LIST ACTIVE", 12_000, Arc::clone(&goes_on)));
    (told, goes_on)
}

async fn text_of(rest: &Arriving) -> String {
    rest.whole().await.unwrap();
    rest.seen(|octets| String::from_utf8(octets.to_vec()).unwrap())
}

/// The list of fifty thousand groups was fetched whole, with what they are about, and kept on disk, before its first line went out.
#[tokio::test(start_paused = true)]
async fn a_list_is_told_as_it_comes_and_is_one_question_for_all() {
    let rig = rig(5, REFRESH_S);
    let (told, goes_on) = with_many(&rig);
    let mut out = Vec::new();
    let (one, two) = (
        rig.here.active_list(&mut out).await.unwrap().unwrap(),
        rig.here.active_list(&mut out).await.unwrap().unwrap(),
    );
    let came = one.seen(|octets| String::from_utf8(octets.to_vec()).unwrap());
    assert!(
        came.len() >= 8192 && told.starts_with(&came),
        "{}",
        came.len()
    );
    assert!(out.is_empty() && Arc::ptr_eq(&one, &two));
    goes_on.notify_one();
    assert_eq!(text_of(&one).await, told);
    assert_eq!(rig.to.asked(), ["LIST ACTIVE"]);
    // From then on it is there, also for others than asked first.
    rig.here.stop().await;
    assert!(rig.here.active_list(&mut out).await.unwrap().is_none());
    let mut lines: Vec<&str> = told.lines().collect();
    lines.sort_unstable();
    let kept = String::from_utf8(out.concat()).unwrap();
    assert_eq!(kept.lines().collect::<Vec<_>>(), lines);
    let counted = rig.here.counts()[0].1;
    assert_eq!((counted.kept.answers, counted.fetched.answers), (2, 1));
    let octets = told.len() as u64;
    assert_eq!(counted.fetched.octets, octets);
    assert_eq!(counted.kept.octets, 2 * octets);
    // What groups are about is asked for when somebody wants to know it.
    assert_eq!(listed(&rig, None).await.len(), 801);
    assert_eq!(rig.to.asked(), ["LIST NEWSGROUPS", "LIST ACTIVE.TIMES"]);
    assert_eq!(described(&rig).await, Ok(vec!["What it is".to_owned()]));
    assert_eq!(rig.to.asked(), [""; 0]);
}

/// What groups are about.
async fn described(rig: &Rig) -> Result<Vec<String>, ServiceError> {
    let select = GroupSelect {
        described: true,
        ..GroupSelect::default()
    };
    let (mut cursor, mut all) = (GroupCursor::default(), Vec::new());
    while !cursor.is_done() {
        let mut visit = |row: newsreel_service::GroupRow<'_>| all.push(row.description.to_owned());
        let asking = rig.here.groups(select, &mut cursor, 100, &mut visit);
        asking.await?;
    }
    Ok(all)
}

/// One that breaks off is told to nobody as whole, and is not kept; who asks then begins another.
#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_is_neither_whole_nor_kept() {
    let rig = rig(5, REFRESH_S);
    let (told, goes_on) = with_many(&rig);
    let mut out = Vec::new();
    let cut = rig.here.active_list(&mut out).await.unwrap().unwrap();
    rig.to.0.lock().is_down = true;
    goes_on.notify_one();
    assert!(cut.whole().await.is_err());
    assert!(rig.here.active_list(&mut out).await.is_err());
    assert!(out.is_empty());
    rig.to.0.lock().is_down = false;
    tokio::time::advance(Duration::from_secs(200)).await;
    let whole = rig.here.active_list(&mut out).await.unwrap().unwrap();
    assert_eq!(text_of(&whole).await, told);
    // A connection that ends in it is replaced once: who was told its beginning is not told the other, which is kept.
    let rig = crate::cached::rig(5, REFRESH_S);
    let (told, goes_on) = with_many(&rig);
    rig.to.0.lock().cuts = Some(("LIST ACTIVE", 100));
    let cut = rig.here.active_list(&mut out).await.unwrap().unwrap();
    goes_on.notify_one();
    assert!(cut.whole().await.is_err());
    assert!(cut.seen(|octets| told.as_bytes().starts_with(octets)));
    rig.here.stop().await;
    assert_eq!(rig.to.asked(), ["LIST ACTIVE", "LIST ACTIVE"]);
    assert!(rig.here.active_list(&mut out).await.unwrap().is_none());
    assert_eq!(out.concat().len(), told.len());
}

/// What groups are about is known while their server is away, as it was told last, whatever was listed since.
#[tokio::test(start_paused = true)]
async fn what_groups_are_about_is_known_without_their_server() {
    let rig = rig(5, REFRESH_S);
    let about = Ok(vec!["What it is".to_owned()]);
    assert_eq!(described(&rig).await, about);
    tokio::time::advance(Duration::from_secs(61)).await;
    whole_list(&rig.here).await.unwrap();
    rig.here.stop().await;
    rig.to.0.lock().is_down = true;
    assert_eq!(described(&rig).await, about);
    // Where nobody ever asked for it that is no list without any.
    let other = crate::cached::rig(5, REFRESH_S);
    whole_list(&other.here).await.unwrap();
    other.here.stop().await;
    other.to.0.lock().is_down = true;
    assert!(described(&other).await.is_err());
}

/// Some newsreaders forget a group that the list shows and that cannot be selected.
#[tokio::test]
async fn a_group_that_the_kept_list_shows_can_be_selected_while_nobody_can_be_asked() {
    let two = GroupName::parse(b"alt.two").unwrap();
    for is_offline in [true, false] {
        let rig = rig(5, REFRESH_S);
        rig.to.0.lock().listed = "alt.two 9 2 m\r\n";
        listed(&rig, None).await;
        match is_offline {
            true => rig.here.set_offline(true).unwrap(),
            false => rig.to.0.lock().is_down = true,
        }
        let group = rig.here.group(two).await.unwrap().unwrap();
        assert_eq!((group.low.0, group.high.0), (2, 9));
        assert_eq!(group.status, GroupStatus::Moderated);
        // `cache.offline_kept_only`
        assert_eq!(group.count, if is_offline { 0 } else { 8 });
        // What is in it nobody knows, and that is not said to be nothing.
        let mut out = Vec::new();
        let (low, high) = (ArticleNumber(1), ArticleNumber(9));
        let asked = rig.here.numbers(group.id, low, high, 10, &mut out).await;
        assert!(asked.is_err());
        let other = GroupName::parse(b"alt.three").unwrap();
        assert!(rig.here.group(other).await.is_err());
    }
    // Where nothing may be old, no old list says it.
    let rig = rig(5, 0);
    rig.to.0.lock().listed = "alt.two 9 2 m\r\n";
    listed(&rig, None).await;
    rig.to.0.lock().is_down = true;
    assert!(rig.here.group(two).await.is_err());
}

/// The list does not take back what the server said after it.
#[tokio::test]
async fn a_group_that_was_said_not_to_be_there_is_not_told_from_an_older_list() {
    let rig = rig(5, REFRESH_S);
    listed(&rig, None).await;
    rig.to.0.lock().is_without_group = true;
    assert_eq!(rig.group().await, None);
    rig.later(REFRESH_S);
    rig.here.set_offline(true).unwrap();
    let name = GroupName::parse(b"misc.test").unwrap();
    assert_eq!(rig.here.group(name).await, Err(ServiceError::Offline));
}

/// A list that came while the cache's disk failed was not put by any more: behind a restart the one before was shown.
#[tokio::test]
async fn a_list_that_could_not_be_put_by_is_put_by_later() {
    // It fails as the list is put by, or as that is made durable.
    for op in [Op::Write, Op::Sync] {
        let faulty = Arc::new(FaultyDisk::new(Arc::new(MemoryDisk::new())));
        let disk: Arc<dyn Disk> = faulty.clone();
        let (to, clock) = (To::default(), Arc::new(FakeClock::new(1_767_225_600)));
        let open = || {
            let keep = Keep::open(&disk, &keep_settings()).unwrap();
            in_front(&[&to], &clock, keep, 0)
        };
        let list = async |here: &CServer<To>| {
            let listed = whole_list(here).await.unwrap();
            String::from_utf8(listed).unwrap()
        };
        let here = open();
        assert!(!list(&here).await.contains("alt.two"));
        here.stop().await;
        drop(here);
        to.0.lock().listed = "alt.two 9 2 m\r\n";
        let here = open();
        assert!(list(&here).await.contains("alt.two"));
        faulty.add(Fault::new(op, "table.redb", Effect::Full).forever());
        here.stop().await;
        assert!(here.kept_figures().is_broken);
        faulty.clear();
        while here.kept_figures().is_broken {
            here.stop().await;
        }
        here.stop().await;
        drop(here);
        let here = open();
        here.set_offline(true).unwrap();
        assert!(list(&here).await.contains("alt.two"), "{op}");
    }
}

/// All descriptions and times were empty for as long as the list is told, and so they were kept over a restart.
#[tokio::test(start_paused = true)]
async fn what_a_server_does_not_tell_for_a_moment_stays_as_it_was() {
    for says in [
        ("LIST NEWSGROUPS", "400 busy\r\n"),
        ("LIST ACTIVE.TIMES", "403 busy\r\n"),
    ] {
        let later = async || tokio::time::advance(Duration::from_secs(61)).await;
        let rig = rig(5, REFRESH_S);
        let about = Ok(vec!["What it is".to_owned()]);
        // Nobody knows what is in it, and that is not said to be nothing; who does not say when groups were made hides nothing of that.
        rig.to.0.lock().says = Some(says);
        let known = match says.0 {
            "LIST NEWSGROUPS" => Err(ServiceError::Away),
            _ => about.clone(),
        };
        assert_eq!(described(&rig).await, known, "{says:?}");
        rig.to.0.lock().says = None;
        assert_eq!(described(&rig).await, about);
        later().await;
        rig.to.0.lock().says = Some(says);
        for _ in 0..2 {
            assert_eq!(described(&rig).await, about, "{says:?}");
        }
        rig.here.stop().await;
        let disk: Arc<dyn Disk> = Arc::new(rig.disk.clone());
        drop(rig.here);
        let keep = Keep::open(&disk, &keep_settings()).unwrap();
        let here = in_front(&[&rig.to], &rig.clock, keep, REFRESH_S);
        here.set_offline(true).unwrap();
        let rig = Rig { here, ..rig };
        assert_eq!(described(&rig).await, about, "{says:?}");
    }
}

/// R14: they were told to be as old as can be, so that NEWGROUPS never told of one.
#[tokio::test(start_paused = true)]
async fn a_group_of_which_nobody_says_when_it_was_made_was_made_when_it_was_first_seen() {
    let mut rig = rig(5, REFRESH_S);
    rig.to.0.lock().listed = "alt.one 7 1 y\r\n";
    let first = ["alt.one 7 1 y 0", "misc.test 5 1 y 0"];
    assert_eq!(listed(&rig, None).await, first, "nobody knows");
    rig.here.stop().await;
    let later = async |rig: &Rig| {
        rig.clock.advance(Duration::from_secs(61));
        tokio::time::advance(Duration::from_secs(61)).await;
    };
    later(&rig).await;
    // Whoever asks for the list alone sees it, too.
    rig.to.0.lock().listed = "alt.one 7 1 y\r\nalt.two 7 1 y\r\n";
    whole_list(&rig.here).await.unwrap();
    let seen = rig.here.now().0;
    later(&rig).await;
    let second = [first[0], &format!("alt.two 7 1 y {seen}"), first[1]];
    assert_eq!(listed(&rig, None).await, second);
    // Also behind a restart.
    rig.here.stop().await;
    let other = crate::cached::rig(5, REFRESH_S);
    let disk: Arc<dyn Disk> = Arc::new(rig.disk.clone());
    drop(std::mem::replace(&mut rig.here, other.here));
    let keep = Keep::open(&disk, &keep_settings()).unwrap();
    rig.here = in_front(&[&rig.to], &rig.clock, keep, REFRESH_S);
    rig.to.0.lock().listed = "alt.one 7 1 y\r\nalt.two 7 1 y\r\nalt.zero 1 1 y\r\n";
    let third = [
        &second[..2],
        &[&format!("alt.zero 1 1 y {}", rig.here.now().0), first[1]],
    ];
    assert_eq!(listed(&rig, None).await, third.concat());
}

/// That a group has gone was forgotten where the list was coming just then, so that it stayed in the list.
#[tokio::test(start_paused = true)]
async fn a_group_that_goes_while_the_list_is_coming_is_missed() {
    let rig = rig(5, REFRESH_S);
    {
        let mut toy = rig.to.0.lock();
        (toy.listed, toy.changed) = ("alt.one 7 1 y\r\n", Some(""));
    }
    assert_eq!(listed(&rig, None).await.len(), 2);
    tokio::time::advance(Duration::from_secs(61)).await;
    let goes_on = Arc::new(Notify::new());
    rig.to.0.lock().holds = Some((
        "LIST ACTIVE.MODTIME 20260101000001",
        0,
        Arc::clone(&goes_on),
    ));
    let asks = async {
        while rig.to.0.lock().holds.is_some() {
            tokio::task::yield_now().await;
        }
        {
            let mut toy = rig.to.0.lock();
            (toy.listed, toy.is_without_group) = ("", true);
        }
        let name = GroupName::parse(b"alt.one").unwrap();
        assert!(rig.here.group(name).await.unwrap().is_none());
        goes_on.notify_one();
    };
    assert_eq!(tokio::join!(listed(&rig, None), asks).0.len(), 2);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(listed(&rig, None).await.len(), 1);
}
