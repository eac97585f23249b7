//! A group that the server refuses though it was there just now: the answers behind that are of the group that somebody else has selected on the
//! connection (RFC 3977 section 6.1.1), and say nothing of this one.

use newsreel_service::{
    ArticleBuf, ArticleQuery, Direction, NewsService, OverviewRows, Part, ServiceError,
};
use newsreel_wire::{ArticleNumber, GroupId, GroupName};

use crate::cached::{REFRESH_S, Rig, remote, rig};

const FIRST: ArticleNumber = ArticleNumber(1);
const LAST: ArticleNumber = ArticleNumber(3);

/// Whether a question about a group was answered, for each of them.
async fn answered(
    here: &impl NewsService,
    id: GroupId,
    question: usize,
) -> Result<bool, ServiceError> {
    let (mut out, mut rows) = (ArticleBuf::new(), OverviewRows::default());
    let by_number = ArticleQuery::ByNumber(id, ArticleNumber(2));
    let parts = [Part::Whole, Part::Head, Part::Stat];
    if let Some(part) = parts.get(question) {
        let found = here.article(by_number, *part, &mut out).await?;
        return Ok(found.is_some());
    }
    match question {
        3 => {
            here.overview(id, FIRST, LAST, 1 << 20, &mut rows).await?;
            Ok(!rows.is_empty())
        }
        4 => {
            let mut numbers = Vec::new();
            here.numbers(id, FIRST, LAST, 10, &mut numbers).await?;
            Ok(!numbers.is_empty())
        }
        _ => {
            let found = here.neighbour(id, FIRST, Direction::Next, &mut out).await?;
            Ok(found.is_some())
        }
    }
}

const QUESTIONS: usize = 6;

/// Who may read one group was shown an article of another one, and it was kept as this one's.
#[tokio::test]
async fn what_is_answered_behind_a_refused_group_is_neither_told_nor_kept() {
    for question in 0..QUESTIONS {
        let rig = rig(3, REFRESH_S);
        let id = rig.group().await.unwrap().id;
        rig.to.0.lock().is_without_group = true;
        let told = answered(&*rig.here, id, question).await;
        assert_eq!(told, Err(ServiceError::Away), "{question}");
        rig.here.stop().await;
        let kept = rig.here.kept_figures();
        assert_eq!((kept.articles, kept.overview_octets), (0, 0), "{question}");
        // It is asked whether it is there.
        rig.to.asked();
        assert_eq!(rig.group().await, None);
        assert_eq!(rig.to.asked().len(), 2);
        let there = remote(&rig.to, &rig.clock);
        rig.to.0.lock().is_without_group = false;
        let name = GroupName::parse(b"misc.test").unwrap();
        let id = there.group(name).await.unwrap().unwrap().id;
        assert_eq!(answered(&there, id, question).await, Ok(true), "{question}");
        rig.to.0.lock().is_without_group = true;
        let told = answered(&there, id, question).await;
        assert_eq!(told, Err(ServiceError::Away), "{question}");
    }
}

/// Facts that were told just now, of numbers that were told long ago.
async fn to_be_compared() -> Rig {
    let rig = rig(9, REFRESH_S);
    assert_eq!(rig.overview().await.len(), 9);
    rig.later(REFRESH_S);
    rig.group().await.unwrap();
    rig
}

/// All that was kept of a group was taken for cancelled, and its articles were "no such article" for as long as that is told again.
#[tokio::test]
async fn a_group_that_is_refused_for_a_moment_has_lost_nothing() {
    for says in [None, Some(("LISTGROUP misc.test 1-9", "411 none\r\n"))] {
        let rig = to_be_compared().await;
        {
            let mut toy = rig.to.0.lock();
            (toy.is_without_group, toy.says) = (says.is_none(), says);
        }
        let id = rig.here.keep().clone();
        assert!(id.group("misc.test").is_some());
        let name = GroupName::parse(b"misc.test").unwrap();
        let id = rig.here.group(name).await.unwrap().unwrap().id;
        let mut rows = OverviewRows::default();
        let told = rig
            .here
            .overview(id, FIRST, ArticleNumber(9), 1 << 20, &mut rows);
        assert_eq!(told.await, Ok(None));
        let lines = String::from_utf8(rows.text().to_vec()).unwrap();
        assert_eq!(
            lines.lines().count(),
            9,
            "what is kept is better than nothing"
        );
        {
            let mut toy = rig.to.0.lock();
            (toy.is_without_group, toy.says) = (false, None);
        }
        for number in 1..=9 {
            assert_eq!(rig.read(number).await, Ok(true), "{number}");
        }
        assert_eq!(rig.overview().await.len(), 9);
        assert_eq!(rig.numbers().await.len(), 9);
    }
}

/// Who had it selected was told of an empty group for ever: it is known to have gone as soon as its server has said so to who selects it.
#[tokio::test]
async fn a_group_that_has_gone_is_known_to_have() {
    let name = GroupName::parse(b"misc.test").unwrap();
    for refresh_s in [REFRESH_S, 0] {
        for question in 0..QUESTIONS {
            let rig = rig(3, refresh_s);
            let id = rig.group().await.unwrap().id;
            // Nothing is there, but the group is.
            let nowhere = ArticleQuery::ByNumber(id, ArticleNumber(7));
            let mut out = ArticleBuf::new();
            let found = rig.here.article(nowhere, Part::Stat, &mut out).await;
            assert_eq!(found, Ok(None));
            assert!(!rig.here.has_gone(id, name).await);
            rig.to.0.lock().is_without_group = true;
            if refresh_s > 0 {
                let told = answered(&*rig.here, id, question).await;
                assert_eq!(told, Err(ServiceError::Away), "{question}");
            }
            let told = answered(&*rig.here, id, question).await;
            assert_eq!(told, Ok(false), "{question}");
            assert!(rig.here.has_gone(id, name).await, "{question}");
            rig.to.0.lock().is_without_group = false;
            rig.later(REFRESH_S);
            assert!(rig.group().await.is_some());
            assert!(!rig.here.has_gone(id, name).await, "{question}");
        }
    }
}
