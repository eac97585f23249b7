//! Fetching before anybody asks: as the configuration says, again and again, and as somebody who looks after the server asks.
//!
//! What fails is told, and ends nothing else.

use std::time::Duration;

use newsreel_cache::{CServer, CacheConfig, PrefetchLimits, Prefetched, Upstream};
use newsreel_wire::Wildmat;
use serde_json::{Value, json};

use crate::control::Progress;
use crate::server::kept;

/// Fetches articles before anybody asks; on a thread that may wait.
pub(super) fn prefetch(
    service: &CServer<Upstream>,
    wildmat: &str,
    limits: PrefetchLimits,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let wildmat = Wildmat::parse(wildmat).map_err(|error| error.to_string())?;
    let mut goes_on = |done: &Prefetched| {
        let (done, total) = (done.groups, done.matching);
        progress(Progress { done, total })
    };
    let fetching = service.prefetch(&wildmat, limits, &mut goes_on);
    let done = tokio::runtime::Handle::current().block_on(fetching);
    Ok(fetched(&done.map_err(|error| error.to_string())?))
}

/// Fetches groups and articles by their names; on a thread that may wait.
pub(super) fn warm(
    service: &CServer<Upstream>,
    (what, threads): (&[String], bool),
    limits: PrefetchLimits,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Value, String> {
    let (ids, wildmats) = kept::named(what)?;
    let mut all = Prefetched::default();
    let runtime = tokio::runtime::Handle::current();
    let left = |all: &Prefetched| PrefetchLimits {
        octets: limits.octets.saturating_sub(all.octets),
        // Who names something wants it there, not only listed.
        reads_kept: true,
        ..limits
    };
    for wildmat in &wildmats {
        let mut goes_on = |done: &Prefetched| {
            let (done, total) = (done.groups, done.matching);
            progress(Progress { done, total })
        };
        let fetching = service.prefetch(wildmat, left(&all), &mut goes_on);
        let done = runtime.block_on(fetching);
        all = all.with(&done.map_err(|error| error.to_string())?);
    }
    let total = ids.len() as u64;
    let mut goes_on = |done: &Prefetched| {
        let done = done.articles.min(total);
        progress(Progress { done, total })
    };
    let fetching = service.warm(&ids, threads, left(&all), &mut goes_on);
    Ok(fetched(&all.with(&runtime.block_on(fetching))))
}

/// What was fetched.
fn fetched(done: &Prefetched) -> Value {
    json!({
        "groups": done.groups,
        "matching": done.matching,
        "failed": done.failed,
        "asked": done.asked,
        "articles": done.articles,
        "octets": done.octets,
        "is_cut": done.is_cut,
    })
}

/// How long after a prefetch that failed another is tried, at most.
const PREFETCH_AGAIN: Duration = Duration::from_secs(60);

/// Fetches what the configuration says, again and again.
pub(super) async fn prefetch_often(service: &CServer<Upstream>, config: &CacheConfig) {
    let Some((groups, limits)) = config.prefetched() else {
        return;
    };
    loop {
        let mut pause = Duration::from_secs(config.prefetch_every_s);
        match service.prefetch(&groups, limits, &mut |_| true).await {
            Ok(done) => {
                let Prefetched {
                    groups,
                    failed,
                    articles,
                    octets,
                    is_cut,
                    ..
                } = done;
                tracing::info!(target: "newsreel::cache", groups, failed, articles, octets, is_cut, "prefetched");
            }
            // Why was told by who asked.
            Err(error) => {
                tracing::warn!(target: "newsreel::cache", %error, "nothing prefetched");
                pause = pause.min(PREFETCH_AGAIN);
            }
        }
        tokio::time::sleep(pause).await;
    }
}
