//! What a server answers that is no word about what it was asked for, or that cannot be read: nothing is taken to be missing by it.

use newsreel_service::{ArticleBuf, ArticleQuery, Direction, NewsService as _, Part, ServiceError};
use newsreel_wire::{ArticleNumber, MessageId};

use crate::cached::{REFRESH_S, Rig, rig};

const FIRST: &str = "<1@t.example>";

fn leaked(text: String) -> &'static str {
    Box::leak(text.into())
}

async fn whole(rig: &Rig, id: &str) -> Result<bool, ServiceError> {
    let mut out = ArticleBuf::new();
    let query = ArticleQuery::ById(MessageId::parse(id.as_bytes()).unwrap());
    let found = rig.here.article(query, Part::Whole, &mut out).await?;
    Ok(found.is_some())
}

/// That was taken for "no such article", and remembered.
#[tokio::test]
async fn that_no_group_is_selected_is_no_word_about_an_article() {
    for answer in ["411 what?\r\n", "412 no group\r\n", "420 no article\r\n"] {
        let rig = rig(3, REFRESH_S);
        rig.to.0.lock().says = Some(("ARTICLE <1@t.example>", answer));
        assert_eq!(whole(&rig, FIRST).await, Err(ServiceError::Away));
        rig.to.0.lock().says = None;
        assert_eq!(whole(&rig, FIRST).await, Ok(true));
        assert_eq!(rig.overview().await, [1, 2, 3]);
        rig.to.0.lock().says = Some(("ARTICLE 2", answer));
        assert_eq!(rig.read(2).await, Err(ServiceError::Away));
        rig.to.0.lock().says = None;
        assert_eq!(rig.overview().await, [1, 2, 3]);
        assert_eq!(rig.read(2).await, Ok(true));
    }
}

/// Some servers tell of no message-id before a group is selected: any.
#[tokio::test]
async fn who_wants_a_group_selected_is_asked_with_one() {
    let rig = rig(3, REFRESH_S);
    rig.to.0.lock().has_selected = Some(false);
    assert_eq!(whole(&rig, FIRST).await, Err(ServiceError::Away));
    assert!(rig.group().await.is_some());
    rig.to.asked();
    for (id, part, verb) in [
        (FIRST, Part::Whole, "ARTICLE"),
        ("<2@t.example>", Part::Whole, "ARTICLE"),
        ("<3@t.example>", Part::Stat, "STAT"),
    ] {
        rig.to.0.lock().has_selected = Some(false);
        assert!(rig.read_by_id(id, part).await.is_some(), "{id}");
        let asked = rig.to.asked();
        let with_group = ["GROUP misc.test".to_owned(), format!("{verb} {id}")];
        assert!(asked.ends_with(&with_group), "{asked:?}");
        // The first time it says so, and is left.
        assert_eq!(asked.len(), if id == FIRST { 4 } else { 2 }, "{asked:?}");
    }
}

/// Behind a restart it was asked without one until a reader had selected a group.
#[tokio::test]
async fn who_wants_a_group_selected_is_asked_with_one_that_is_kept() {
    let mut rig = rig(3, REFRESH_S);
    assert!(rig.group().await.is_some());
    rig.here.stop().await;
    rig.restart();
    rig.to.0.lock().has_selected = Some(false);
    rig.to.asked();
    assert_eq!(whole(&rig, FIRST).await, Ok(true));
    let with_group = ["GROUP misc.test".to_owned(), format!("ARTICLE {FIRST}")];
    let asked = rig.to.asked();
    assert!(asked.ends_with(&with_group), "{asked:?}");
}

/// Overview of numbers 1 to 5, with another line in the place of that of 3.
fn over(third: &str) -> &'static str {
    let line = |number| format!("{number}\ts\tf\td\t<{number}@t.example>\t\t9\t1\r\n");
    let (front, behind) = (line(1) + &line(2), line(4) + &line(5));
    leaked(format!("224 lines\r\n{front}{third}{behind}.\r\n"))
}

/// The article of such a line was not there, for who asked by number or listed the group.
#[tokio::test]
async fn a_line_that_cannot_be_read_hides_no_article() {
    let long = "x".repeat(40 << 10);
    for third in [
        "3\ta\rb\tf\td\t<3@t.example>\t\t9\t1\r\n",
        "3\ta\nb\tf\td\t<3@t.example>\t\t9\t1\r\n",
        "3\ta\0b\tf\td\t<3@t.example>\t\t9\t1\r\n",
        "3\ts\tf\td\t<3@t.example>\t\t9\r\n",
        "3\ts\tf\td\t<3@t.example>\t\tmany\t1\r\n",
        &format!("3\ts\tf\td\t<3@t.example>\t{long}\t9\t1\r\n"),
    ] {
        let rig = rig(5, REFRESH_S);
        rig.to.0.lock().says = Some(("OVER 1-5", over(third)));
        for _ in 0..2 {
            assert_eq!(rig.overview().await, [1, 2, 4, 5], "{third}");
            assert_eq!(rig.numbers().await, [1, 2, 3, 4, 5], "{third}");
        }
        let id = rig.group().await.unwrap().id;
        let (mut out, next) = (ArticleBuf::new(), Direction::Next);
        let found = rig.here.neighbour(id, ArticleNumber(2), next, &mut out);
        assert_eq!(found.await, Ok(Some(ArticleNumber(3))));
        assert_eq!(out.id(), b"<3@t.example>");
        rig.here.set_offline(true).unwrap();
        assert_eq!(rig.read(3).await, Err(ServiceError::Offline));
        rig.here.set_offline(false).unwrap();
        assert_eq!(rig.read(3).await, Ok(true));
        rig.here.stop().await;
        assert_eq!(rig.overview().await, [1, 2, 3, 4, 5], "as the article says");
    }
}

/// It is asked for again once the group is compared.
#[tokio::test]
async fn a_line_that_can_be_read_by_now_is_told() {
    let rig = rig(5, REFRESH_S);
    rig.to.0.lock().says = Some(("OVER 1-5", over("3\ta\rb\r\n")));
    assert_eq!(rig.overview().await, [1, 2, 4, 5]);
    rig.to.0.lock().says = None;
    assert_eq!(rig.overview().await, [1, 2, 4, 5]);
    rig.later(REFRESH_S);
    assert_eq!(rig.overview().await, [1, 2, 3, 4, 5]);
}

/// A number without a line is not there, until the server lists it.
#[tokio::test]
async fn a_number_that_is_listed_is_there_without_a_line() {
    let rig = rig(5, REFRESH_S);
    rig.to.0.lock().says = Some(("OVER 1-5", over("")));
    assert_eq!(rig.overview().await, [1, 2, 4, 5]);
    assert_eq!(rig.numbers().await, [1, 2, 4, 5]);
    rig.to.0.lock().says = Some(("OVER 3-3", "224 lines\r\n.\r\n"));
    rig.later(REFRESH_S);
    for _ in 0..2 {
        assert_eq!(rig.numbers().await, [1, 2, 3, 4, 5]);
        assert_eq!(rig.overview().await, [1, 2, 4, 5]);
    }
    assert_eq!(rig.read(3).await, Ok(true));
}

/// Each time somebody read such a number all of the group was thrown away.
#[tokio::test]
async fn a_line_without_a_message_id_is_none() {
    for id in ["", "none", "3@t.example", "<3 @t.example>"] {
        let rig = rig(5, REFRESH_S);
        let third = format!("3\ts\tf\td\t{id}\t\t9\t1\r\n");
        rig.to.0.lock().says = Some(("OVER 1-5", over(&third)));
        assert_eq!(rig.overview().await, [1, 2, 4, 5], "{id}");
        assert_eq!(rig.numbers().await, [1, 2, 3, 4, 5], "{id}");
        rig.to.asked();
        assert_eq!(rig.read(3).await, Ok(true), "{id}");
        assert_eq!(rig.to.asked(), ["GROUP misc.test", "ARTICLE 3"]);
        rig.here.stop().await;
        assert_eq!(rig.overview().await, [1, 2, 3, 4, 5], "as the article says");
        assert_eq!(rig.read(3).await, Ok(true), "{id}");
        assert_eq!(rig.to.asked(), [""; 0]);
    }
}
