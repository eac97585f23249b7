//! The posts of a caching server that wait, as an administrator asks for them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use newsreel_cache::CServer;
use newsreel_cache::queue::{PostQueue, PostTarget, QueueError, QueuedPost, Standing};
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
    let said = |error: QueueError| error.to_string();
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
        QueueAction::Retry { numbers } => retried(service, queue, &numbers),
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

/// Has some tried now, or all: those that are being sent or edited are not, which is said.
fn retried<C: Connect>(
    service: &CServer<C>,
    queue: &PostQueue,
    numbers: &[u64],
) -> Result<Value, String> {
    if service.is_offline() {
        return Err(
            "this server is offline and asks no other, so nothing was tried: `newsreel cache offline off` has all that wait sent at once"
                .to_owned(),
        );
    }
    let all = match numbers {
        [] => queue.list().map_err(|error| error.to_string())?,
        _ => Vec::new(),
    };
    let all = all.iter().map(|(number, _)| number);
    let (mut retried, mut in_hand, mut failed) = (Vec::new(), Vec::new(), None);
    for number in numbers.iter().chain(all) {
        match queue.retry(*number, service.now()) {
            Ok(()) => retried.push(*number),
            Err(QueueError::InHand(number)) => in_hand.push(number),
            // One that has been sent meanwhile need not be tried.
            Err(QueueError::Missing(_)) if numbers.is_empty() => {}
            Err(error) => {
                failed = Some(error.to_string());
                break;
            }
        }
    }
    service.look_at_posts();
    match (failed, retried.as_slice()) {
        (None, _) => Ok(json!({"retried": retried, "in_hand": in_hand})),
        (Some(error), []) => Err(error),
        (Some(error), _) => {
            let tried: Vec<String> = retried.iter().map(u64::to_string).collect();
            Err(format!("{error}; tried now: {}", tried.join(", ")))
        }
    }
}
