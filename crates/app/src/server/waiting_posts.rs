//! The posts of a caching server that wait, as an administrator asks for them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use newsreel_cache::CServer;
use newsreel_cache::queue::{PostQueue, PostTarget, QueuedPost, Standing};
use newsreel_net::client::Connect;
use newsreel_service::NewsService as _;
use serde_json::{Value, json};

use crate::control::cache_request::QueueAction;

/// Where times are said: seconds since 1970.
fn target(target: &PostTarget) -> Value {
    let when = match target.standing {
        Standing::Waits => "next_try",
        Standing::Sent => "sent",
        Standing::Refused => "refused",
    };
    json!({
        "server": target.server,
        "standing": target.standing.label(),
        "tries": target.tries,
        when: target.at.0,
        "said": target.said,
    })
}

fn post((number, post): &(u64, QueuedPost)) -> Value {
    json!({
        "number": number,
        "id": post.id,
        "groups": post.groups,
        "taken": post.taken.0,
        "octets": post.octets,
        "servers": post.targets.iter().map(target).collect::<Vec<_>>(),
    })
}

/// All posts that wait, for those who ask how the server is: how many, and how many of them somebody must look at.
pub(super) fn figures(queue: &PostQueue) -> Value {
    match queue.list() {
        Ok(all) => {
            let is_refused = |post: &QueuedPost| {
                let mut targets = post.targets.iter();
                targets.any(|target| target.standing == Standing::Refused)
            };
            let refused = all.iter().filter(|(_, post)| is_refused(post)).count();
            json!({"waiting": all.len(), "refused": refused})
        }
        Err(error) => json!({"error": error.to_string()}),
    }
}

/// Does what is asked of them.
pub(super) fn answer<C: Connect>(
    service: &CServer<C>,
    action: QueueAction,
) -> Result<Value, String> {
    let queue = service.queue().ok_or(
        "no posts wait here: `cache.posts_octets` is 0, so a post is sent at once or not taken",
    )?;
    let said = |error: newsreel_cache::queue::QueueError| error.to_string();
    match action {
        QueueAction::List => {
            let all = queue.list().map_err(said)?;
            Ok(json!({"posts": all.iter().map(post).collect::<Vec<_>>()}))
        }
        QueueAction::Show { number } => {
            let (found, text) = queue.get(number).map_err(said)?;
            let mut shown = post(&(number, found));
            shown["article"] = STANDARD.encode(text).into();
            Ok(shown)
        }
        QueueAction::Edit { number, article } => {
            let text = STANDARD
                .decode(article)
                .map_err(|error| error.to_string())?;
            let waits = service.edit_post(number, &text)?;
            Ok(json!({"edited": number, "waits": waits}))
        }
        QueueAction::Retry { numbers } => {
            let numbers = match numbers.as_slice() {
                [] => queue
                    .list()
                    .map_err(said)?
                    .iter()
                    .map(|(number, _)| *number)
                    .collect(),
                some => some.to_vec(),
            };
            for number in &numbers {
                queue.retry(*number, service.now()).map_err(said)?;
            }
            service.look_at_posts();
            Ok(json!({"retried": numbers}))
        }
        QueueAction::Drop { numbers, dry_run } => {
            let mut dropped = Vec::new();
            for number in numbers {
                let (found, _) = queue.get(number).map_err(said)?;
                if !dry_run {
                    queue.drop_one(number).map_err(said)?;
                    tracing::info!(target: "newsreel::cache", number, id = %found.id, "a post is dropped as asked");
                }
                dropped.push(post(&(number, found)));
            }
            Ok(json!({"dry_run": dry_run, "dropped": dropped}))
        }
    }
}
