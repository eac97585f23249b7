//! A group that becomes another one while something of it is under way: nothing of the old one is kept as the new one's.

use std::sync::Arc;

use newsreel_service::{ArticleBuf, ArticleQuery, NewsService as _, OverviewRows, Part};
use newsreel_wire::ArticleNumber;
use tokio::sync::Notify;

use crate::cached::{REFRESH_S, Rig, rig};
use crate::toy::article;

/// How it becomes another one, which has more numbers in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Falls,
    Goes,
}

/// The group has these numbers, with other articles than before.
async fn is_another(rig: &Rig, last: u64) {
    rig.to.0.lock().articles = (1..=last)
        .map(|number| (number, article(number + 1000, 500)))
        .collect();
    rig.later(REFRESH_S);
    assert_eq!(rig.group().await.unwrap().high.0, last);
}

/// The message-ids of overview lines.
async fn ids(rig: &Rig) -> Vec<String> {
    let id = rig.group().await.unwrap().id;
    let (low, high) = (ArticleNumber(1), ArticleNumber(u64::MAX));
    let mut rows = OverviewRows::default();
    let telling = rig.here.overview(id, low, high, 1 << 20, &mut rows);
    assert_eq!(telling.await, Ok(None));
    let text = String::from_utf8(rows.text().to_vec()).unwrap();
    let id = |line: &str| line.split('\t').nth(4).unwrap().to_owned();
    text.lines().map(id).collect()
}

/// Its lines were the old one's from then on, as its high mark was not below what it had been.
#[tokio::test]
async fn what_was_asked_of_the_old_one_is_not_kept_as_the_new_ones() {
    for command in ["OVER 1-20", "ARTICLE 5"] {
        for how in [How::Falls, How::Goes] {
            let rig = rig(20, REFRESH_S);
            let id = rig.group().await.unwrap().id;
            let goes_on = Arc::new(Notify::new());
            rig.to.0.lock().holds = Some((command, 300, Arc::clone(&goes_on)));
            let query = ArticleQuery::ByNumber(id, ArticleNumber(5));
            let reading = async {
                let mut out = ArticleBuf::new();
                match command {
                    "ARTICLE 5" => {
                        let _ = rig.here.article(query, Part::Whole, &mut out).await;
                    }
                    _ => drop(ids(&rig).await),
                }
            };
            let becoming = async {
                while rig.to.0.lock().holds.is_some() {
                    tokio::task::yield_now().await;
                }
                match how {
                    How::Falls => is_another(&rig, 3).await,
                    How::Goes => {
                        rig.to.0.lock().is_without_group = true;
                        rig.later(REFRESH_S);
                        assert_eq!(rig.group().await, None);
                        rig.to.0.lock().is_without_group = false;
                    }
                }
                is_another(&rig, 30).await;
                let mut head = ArticleBuf::new();
                let found = rig.here.article(query, Part::Head, &mut head).await;
                assert!(found.unwrap().is_some());
                assert_eq!(head.id(), b"<1005@t.example>", "{command} {how:?}");
                goes_on.notify_one();
            };
            tokio::join!(reading, becoming);
            rig.here.stop().await;
            let expected = (1001..=1030).map(|number| format!("<{number}@t.example>"));
            assert_eq!(
                ids(&rig).await,
                expected.collect::<Vec<_>>(),
                "{command} {how:?}"
            );
        }
    }
}
