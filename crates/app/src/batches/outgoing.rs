//! Batches that go out, as the running server and the command that has the spool for itself say it.
//!
//! What is written and when it counts is the matter of `newsreel_feed`.

use newsreel_feed::{Batching, Peers};
use serde_json::{Value, json};

use crate::control::Progress;

/// Writes batches; what was written, in JSON.
pub(crate) async fn write(
    peers: &Peers,
    wanted: &Batching,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let mut told = |done, total| progress(Progress { done, total });
    let feeds = peers.batch(wanted, &mut told).await;
    let feeds = feeds.map_err(|error| error.to_string())?;
    Ok(json!({"feeds": feeds, "dry_run": wanted.dry_run}))
}
