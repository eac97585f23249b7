//! What a caching server keeps, as an administrator asks for it.

use newsreel_cache::keep::{Keep, ListedArticle, ListedGroup};
use newsreel_cache::{CServer, Upstream};
use newsreel_wire::{MessageId, Wildmat};
use serde_json::{Value, json};
use tokio::runtime::Handle;

/// A time of which nothing is known is nothing.
fn time(seconds: u64) -> Value {
    match seconds {
        0 => Value::Null,
        seconds => seconds.into(),
    }
}

fn group(group: &ListedGroup) -> Value {
    json!({
        "name": group.name,
        "articles": group.articles,
        "octets": group.octets,
        "overview_octets": group.overview_octets,
        "last_read": time(group.used_at.0),
        "last_compared": time(group.told.0),
    })
}

fn article(article: &ListedArticle) -> Value {
    json!({
        "id": article.id,
        "group": article.group,
        "octets": article.octets,
        "read": article.uses,
        "last_read": time(article.used_at.0),
    })
}

/// The groups that match, or so many of their articles.
pub(super) fn list(keep: &Keep, wildmat: &str, articles: Option<usize>) -> Result<Value, String> {
    let wanted = Wildmat::parse(wildmat).map_err(|error| error.to_string())?;
    let matches = |name: &str| wanted.matches(name);
    match articles {
        None => {
            let listed = keep.listed_groups(&matches, wildmat == "*");
            let listed = listed.map_err(|error| error.to_string())?;
            Ok(json!({"groups": listed.iter().map(group).collect::<Vec<_>>()}))
        }
        Some(most) => {
            let listed = keep.listed_articles(&matches, most);
            let (listed, count) = listed.map_err(|error| error.to_string())?;
            let listed: Vec<Value> = listed.iter().map(article).collect();
            Ok(json!({"articles": listed, "matching": count}))
        }
    }
}

/// Message-ids and wildmats; where one of the words is neither, it is told.
pub(super) fn named(what: &[String]) -> Result<(Vec<MessageId<'_>>, Vec<Wildmat>), String> {
    let (mut ids, mut wildmats) = (Vec::new(), Vec::new());
    for word in what {
        if word.starts_with('<') {
            let id = MessageId::parse(word.as_bytes());
            ids.push(id.map_err(|error| format!("{word}: {error}"))?);
        } else {
            let wildmat = Wildmat::parse(word);
            wildmats.push(wildmat.map_err(|error| format!("{word}: {error}"))?);
        }
    }
    Ok((ids, wildmats))
}

/// Lets groups and articles go, or says what would go; where one of the words is neither, nothing does.  On a thread that may wait.
pub(super) fn drop(
    service: &CServer<Upstream>,
    what: &[String],
    dry_run: bool,
) -> Result<Value, String> {
    let (ids, wildmats) = named(what)?;
    let matches = |name: &str| wildmats.iter().any(|wildmat| wildmat.matches(name));
    let dropped = Handle::current().block_on(service.let_go(&matches, &ids, dry_run));
    let dropped = dropped.map_err(|error| error.to_string())?;
    Ok(json!({
        "groups": dropped.groups,
        "articles": dropped.articles,
        "octets": dropped.octets,
        "overview_octets": dropped.overview_octets,
        "dry_run": dry_run,
    }))
}

/// Changes the pins, where anything is to be changed, and tells them.
pub(super) fn pin(keep: &Keep, add: &[String], remove: &[String]) -> Result<Value, String> {
    let parsed = |words: &[String]| {
        let words = words.iter();
        let parsed = words.map(|word| Wildmat::parse(word).map_err(|why| format!("{word}: {why}")));
        parsed.collect::<Result<Vec<_>, _>>()
    };
    let (add, remove) = (parsed(add)?, parsed(remove)?);
    let changed = match add.is_empty() && remove.is_empty() {
        true => 0,
        false => keep.pin(&add, &remove).map_err(|error| error.to_string())?,
    };
    let figures = keep.figures();
    Ok(json!({
        "changed": changed,
        "pins": figures.pins,
        "octets": figures.pinned_octets,
        "octets_max": figures.pinned_octets_max,
    }))
}
