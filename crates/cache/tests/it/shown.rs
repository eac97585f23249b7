//! What readers are not shown of what there is.

use newsreel_cache::{Censor, CensorRule};
use newsreel_service::{ArticleBuf, ArticleQuery, NewsService as _, OverviewRows, Part};
use newsreel_wire::{ArticleNumber, MessageId};

use crate::cached::{REFRESH_S, rig};

fn rule(groups: &str, field: &str, matches: &str) -> CensorRule {
    CensorRule {
        groups: groups.to_owned(),
        field: field.to_owned(),
        matches: matches.to_owned(),
    }
}

/// What a rule hides is neither in overview nor there, whatever it is asked for by, the first time and when it is kept; what only its header
/// tells is not there when it is asked for.
#[tokio::test]
async fn what_a_rule_hides_is_neither_listed_nor_there() {
    let rig = rig(5, REFRESH_S);
    let rules = [
        rule("misc.*", "Message-ID", "<3@*"),
        rule("misc.*", "Subject", "4"),
        rule("alt.*", "Subject", "*"),
    ];
    rig.here.censor(Censor::new(&rules).unwrap());
    for turn in 0..2 {
        assert_eq!(rig.overview().await, [1, 2, 4, 5], "{turn}");
        for (number, is_shown) in [(2, true), (3, false), (4, false), (5, true)] {
            assert_eq!(rig.read(number).await, Ok(is_shown), "{number} {turn}");
            let id = format!("<{number}@t.example>");
            for part in [Part::Body, Part::Head, Part::Whole] {
                let read = rig.read_by_id(&id, part).await;
                assert_eq!(read.is_some(), is_shown, "{number} {part:?} {turn}");
            }
            // The server tells no such lines: it is made when the article is kept, which another thread does.
            rig.here.stop().await;
            let mut rows = OverviewRows::default();
            let parsed = MessageId::parse(id.as_bytes()).unwrap();
            let told = rig.here.overview_by_id(parsed, &mut rows).await.unwrap();
            assert_eq!((told, !rows.is_empty()), (is_shown, is_shown), "{number}");
        }
        rig.here.stop().await;
    }
    // Nothing of it was asked for, so nobody can have read it.
    let group = rig.group().await.unwrap().id;
    let query = ArticleQuery::ByNumber(group, ArticleNumber(3));
    let mut out = ArticleBuf::new();
    let found = rig.here.article(query, Part::Stat, &mut out).await.unwrap();
    assert!(found.is_some());
    // A portion of one that is coming is judged as the whole is.
    let (fresh, mut out) = (crate::cached::rig(5, REFRESH_S), ArticleBuf::new());
    fresh.here.censor(Censor::new(&rules).unwrap());
    out.take_portions(true);
    let group = fresh.group().await.unwrap().id;
    for number in [4, 5] {
        let query = ArticleQuery::ByNumber(group, ArticleNumber(number));
        let found = fresh
            .here
            .article(query, Part::Whole, &mut out)
            .await
            .unwrap();
        assert_eq!(
            (found.is_some(), out.content().is_empty()),
            (number == 5, number == 4)
        );
    }
}

/// What was looked at for a rule counted as another question of a reader.
#[tokio::test]
async fn what_rules_look_at_is_no_question_of_a_reader() {
    let rig = rig(3, REFRESH_S);
    rig.here
        .censor(Censor::new(&[rule("misc.*", "Subject", "4")]).unwrap());
    for part in [Part::Body, Part::Whole, Part::Head, Part::Body] {
        assert!(rig.read_by_id("<2@t.example>", part).await.is_some());
    }
    rig.here.stop().await;
    let id = MessageId::parse(b"<2@t.example>").unwrap();
    let mut rows = OverviewRows::default();
    assert!(rig.here.overview_by_id(id, &mut rows).await.unwrap());
    let [.., (_, articles)] = rig.here.counts();
    assert_eq!(articles.kept.answers + articles.fetched.answers, 4);
    let by_group = rig.here.counts_by_group(1);
    assert_eq!(by_group[0].1.hits + by_group[0].1.misses, 4);
}
