//! What a new configuration changes while the spool is open.

use std::path::Path;

use newsreel_engine::{EngineConfig, ExpireRule};
use newsreel_service::Outcome;
use newsreel_store::{RuleConfig, SetConfig};

use crate::world::{World, article, config};

/// New articles go where the new rules say, though the file has the sets in another order now, or a set that waits for a start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storage_rules_are_taken_over() {
    let mut config = config(4 << 20);
    config.store.sets.push(SetConfig {
        name: "files".to_owned(),
        method: "md5spool".to_owned(),
        ..SetConfig::default()
    });
    let world = World::new(config.clone());
    let to = |set: &str| {
        vec![RuleConfig {
            set: set.to_owned(),
            ..RuleConfig::default()
        }]
    };
    let place = async |number: usize| {
        let sent = [article(number, "misc.test")];
        assert_eq!(world.send(&sent).await, [Outcome::Accepted]);
        let which = format!("<{number}@t.example>").parse().unwrap();
        world.engine.article(&which).unwrap().unwrap().set
    };
    assert_eq!(place(0).await, "main");
    let mut other = EngineConfig {
        store: config.store.clone(),
        ..config.clone()
    };
    other.store.sets.reverse();
    other.store.rules = to("files");
    // By class: of the sets that there are, whatever their order in the file.
    other.expire = vec![ExpireRule {
        class: "main".to_owned(),
        articles_max: Some(0),
        ..ExpireRule::default()
    }];
    world.engine.reload(&other).unwrap();
    assert_eq!(place(1).await, "files");
    let going = world.engine.expire(true, &mut |_, _| true).unwrap();
    let going = going.going.iter().map(|it| it.message_id.as_str());
    assert_eq!(going.collect::<Vec<_>>(), ["<0@t.example>"]);
    other.store.sets.push(SetConfig {
        name: "new".to_owned(),
        ..SetConfig::default()
    });
    other.store.rules = to("new");
    assert!(!world.engine.has_sets_of(&other));
    world.engine.reload(&other).unwrap();
    assert_eq!(place(2).await, "files", "a new set waits for a start");
    assert!(
        world
            .disk
            .exists(Path::new("/spool/articles/files"))
            .unwrap()
    );
}
