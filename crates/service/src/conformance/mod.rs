//! What every news service must do, as checks that run on any implementation.
//!
//! [`run`] gives each check a fresh service from a [`Maker`] and returns what failed; it never panics itself and needs
//! no particular runtime.  A check that waits for an answer waits for ever if none comes: callers bound the whole.

mod posting;
mod reading;
mod sample;
mod taking;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::service::NewsService;

/// Makes services to check.
pub trait Maker: Sync {
    /// What is checked.
    type Service: NewsService;

    /// An empty service with these groups, open, in which articles dated 2026-01-01 (give or take a day) are
    /// neither too old nor in the future, and whose own path identity is not `peer.example`.
    fn make(&self, groups: &[&str]) -> impl Future<Output = Arc<Self::Service>> + Send;

    /// Our path identity, to check that a loop is refused.
    fn path_identity(&self) -> String;
}

type Checked<'c> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'c>>;
type Check<M> = for<'c> fn(&'c M) -> Checked<'c>;

macro_rules! suite {
    ($($module:ident :: $name:ident),* $(,)?) => {
        /// The names of all checks, to give each a test of its own.
        pub const NAMES: &[&str] = &[$(concat!(stringify!($module), "::", stringify!($name))),*];

        fn suite<M: Maker>() -> Vec<Check<M>> {
            vec![$(|maker| Box::pin($module::$name(maker))),*]
        }
    };
}

suite![
    taking::an_article_comes_back_as_it_was_sent,
    taking::only_path_and_xref_are_changed,
    taking::duplicates_are_refused,
    taking::two_copies_in_one_batch_are_one_article,
    taking::every_ticket_is_answered_once,
    taking::an_offer_is_held_until_its_connection_ends,
    taking::an_offer_that_is_declined_is_free,
    taking::an_offer_that_was_sent_is_known,
    taking::bad_octets_are_refused,
    taking::bad_articles_are_refused_with_their_reason,
    taking::a_refusal_does_not_block_a_good_copy,
    taking::large_articles_pass,
    taking::crossposts_are_in_every_group,
    posting::a_post_is_injected,
    posting::a_post_is_there_once,
    posting::posts_are_refused_with_their_reason,
    reading::an_empty_group,
    reading::numbers_in_chunks,
    reading::overview_in_chunks,
    reading::neighbours,
    reading::groups_in_chunks,
    reading::new_articles,
];

/// Runs the checks whose names contain `filter`; returns `name: what was wrong` for those that failed.
pub async fn run_some<M: Maker>(maker: &M, filter: &str) -> Vec<String> {
    let mut failures = Vec::new();
    for (name, check) in NAMES.iter().zip(suite::<M>()) {
        if name.contains(filter)
            && let Err(what) = check(maker).await
        {
            failures.push(format!("{name}: {what}"));
        }
    }
    failures
}

/// Runs every check; returns `name: what was wrong` for those that failed.
pub async fn run<M: Maker>(maker: &M) -> Vec<String> {
    run_some(maker, "").await
}

/// Fails a check with a message unless two values are the same.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected {
        Ok(())
    } else {
        Err(format!("{what}: got {got:?}, expected {expected:?}"))
    }
}
