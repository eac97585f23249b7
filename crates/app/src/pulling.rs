//! Fetching articles, as the running server and the command that has the spool for itself do it when somebody asks.
//!
//! What is fetched, and how far it is, is the matter of `newsreel_feed`.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_engine::Engine;
use newsreel_feed::{PullConfig, Pulled, Pulling, Pulls};
use newsreel_host::{Clock, Disk};
use serde_json::Value;

use crate::control::Progress;

/// The servers of a configuration that articles are fetched from.
pub(crate) fn open(
    engine: &Arc<Engine>,
    disk: &Arc<dyn Disk>,
    clock: &Arc<dyn Clock>,
    spool: &Path,
    pulls: &[PullConfig],
) -> io::Result<Arc<Pulls>> {
    let (engine, disk, clock) = (Arc::clone(engine), Arc::clone(disk), Arc::clone(clock));
    Pulls::open(engine, disk, spool, clock, pulls).map(Arc::new)
}

/// Fetches now; what came of it, in JSON.
pub(crate) async fn pull(
    pulls: &Pulls,
    wanted: &Pulling,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let (tell, mut heard) = tokio::sync::watch::channel(Progress { done: 0, total: 0 });
    let goes_on = AtomicBool::new(true);
    let mut told = |_: &Pulled, done, total| {
        tell.send_replace(Progress { done, total });
        goes_on.load(Ordering::Relaxed)
    };
    let pulling = pulls.pull(wanted, &mut told);
    tokio::pin!(pulling);
    let report = loop {
        tokio::select! {
            done = &mut pulling => break done?,
            Ok(()) = heard.changed() => {
                let at = *heard.borrow_and_update();
                if !progress(at) {
                    goes_on.store(false, Ordering::Relaxed);
                }
            }
        }
    };
    let mut report = serde_json::to_value(&report).map_err(|error| error.to_string())?;
    if wanted.dry_run {
        report["dry_run"] = true.into();
    }
    Ok(report)
}
