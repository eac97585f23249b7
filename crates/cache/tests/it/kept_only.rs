//! What is shown offline where no more is to be shown than is kept.

use newsreel_service::{
    ArticleBuf, ArticleQuery, Direction, GroupCursor, GroupRow, GroupSelect, NewsService as _,
    Part, ServiceError,
};
use newsreel_wire::ArticleNumber;

use crate::cached::{REFRESH_S, rig};

/// R32: a reader that selects what it sees, and marks as read what it did not get, had nothing that kept it from that.
#[tokio::test]
async fn offline_lists_tell_of_what_is_kept_and_of_nothing_else() {
    let rig = rig(300, REFRESH_S);
    assert_eq!(rig.overview().await.len(), 300);
    let kept = [5, 130, 200];
    for number in kept {
        assert_eq!(rig.read(number).await, Ok(true));
    }
    // LIST COUNTS told of all that there were, beside a GROUP that told of those that are kept.
    let listed = async |counts| {
        let (mut cursor, mut rows) = (GroupCursor::default(), Vec::new());
        while !cursor.is_done() {
            let mut visit = |row: GroupRow<'_>| rows.push((row.info.count, row.info.high.0));
            let select = GroupSelect {
                counts,
                ..GroupSelect::default()
            };
            let asking = rig.here.groups(select, &mut cursor, 1, &mut visit);
            asking.await.unwrap();
        }
        rows
    };
    assert_eq!(listed(true).await, [(300, 300)]);
    rig.here.stop().await;
    rig.to.asked();
    let marks = async || {
        let group = rig.group().await.unwrap();
        (group.count, group.first.0, group.low.0, group.high.0)
    };
    rig.here.set_offline(true).unwrap();
    for age in [0, REFRESH_S] {
        rig.later(age);
        assert_eq!(marks().await, (3, 5, 1, 300));
        assert_eq!(listed(true).await, [(3, 300)]);
        // Nothing is counted that is not shown.
        assert_eq!(listed(false).await, [(300, 300)]);
        assert_eq!(rig.overview().await, kept);
        assert_eq!(rig.numbers().await, kept);
    }
    let id = rig.group().await.unwrap().id;
    for (from, direction, to) in [
        (5, Direction::Next, Some(130)),
        (199, Direction::Next, Some(200)),
        (200, Direction::Next, None),
        (200, Direction::Last, Some(130)),
        (5, Direction::Last, None),
    ] {
        let mut out = ArticleBuf::new();
        let from = ArticleNumber(from);
        let found = rig.here.neighbour(id, from, direction, &mut out).await;
        assert_eq!(found, Ok(to.map(ArticleNumber)), "{from:?} {direction:?}");
    }
    // What is asked for all the same is not said to be gone, nor to be there.
    assert!(rig.read(7).await.is_err());
    assert_eq!(rig.read(200).await, Ok(true));
    for (number, found) in [(7, Err(ServiceError::Offline)), (200, Ok(true))] {
        let query = ArticleQuery::ByNumber(id, ArticleNumber(number));
        let mut out = ArticleBuf::new();
        let asked = rig.here.article(query, Part::Stat, &mut out).await;
        assert_eq!(asked.map(|it| it.is_some()), found, "{number}");
    }
    assert_eq!(rig.to.asked(), [""; 0]);
    rig.here.set_offline(false).unwrap();
    assert_eq!(marks().await, (300, 1, 1, 300));
    assert_eq!(rig.overview().await.len(), 300);
    assert_eq!(rig.numbers().await.len(), 300);
}
