//! The figures of a server with a spool of its own.

use newsreel_feed::{Backlog, FeedReport};

use super::{Measured, Page, common};
use crate::server::running::Server;

/// Articles of the log that are looked at for a page.
pub(crate) const LOOKS_MAX: u64 = 20_000;

impl Measured for Server {
    fn measure(&self, page: &mut Page) {
        let status = self.engine.status();
        common(
            page,
            &self.limits,
            &self.metrics.snapshot(),
            status.uptime_s,
        );
        page.counter("newsreel_events_total", "What the news database counted.");
        let counters = serde_json::to_value(status.counters).unwrap_or_default();
        for (what, count) in counters.as_object().into_iter().flatten() {
            if let Some(count) = count.as_u64() {
                page.value(&[("event", what.as_str())], count);
            }
        }
        page.gauge("newsreel_groups", "Groups.");
        page.value(&[], status.groups);
        page.gauge("newsreel_history_ids", "Message-ids that are known.");
        page.value(&[("where", "memory")], status.history.recent);
        page.value(&[("where", "disk")], status.history.sealed);
        page.gauge("newsreel_disk_bytes", "Octets of log and index on disk.");
        page.value(&[("what", "log")], status.log.octets);
        page.value(&[("what", "history")], status.history.disk_octets);
        page.value(&[("what", "overview")], status.overview.disk_octets);
        page.gauge(
            "newsreel_waiting",
            "What is under way: ids that peers offered, batches for the sequencer.",
        );
        page.value(&[("what", "offers")], status.offers);
        page.value(&[("what", "batches")], status.queue);
        page.gauge("newsreel_is_paused", "1: no articles are taken at present.");
        page.value(&[], status.paused.is_some().into());
        page.gauge(
            "newsreel_damaged_files",
            "Files of the index that are damaged and being made again.",
        );
        page.value(&[], status.damaged.len() as u64);
        if let Some(caching) = &self.caching {
            caching.measure_cache(page);
        }
        let feeds = self.beside.peers.with_backlogs(|_| true, LOOKS_MAX);
        of_feeds(page, &feeds);
    }
}

/// What went out, and since when something waits.
fn of_feeds(page: &mut Page, feeds: &[(FeedReport, Backlog)]) {
    page.counter(
        "newsreel_feed_articles_total",
        "Articles that went out, by feed and by what became of them.",
    );
    for (feed, _) in feeds {
        let tally = feed.tally;
        for (outcome, count) in [
            ("accepted", tally.accepted),
            ("refused", tally.refused),
            ("rejected", tally.rejected),
            ("deferred", tally.deferred),
            ("gone", tally.gone),
            ("missed", tally.missed),
        ] {
            let [peer, feed] = names(feed);
            page.value(&[peer, feed, ("outcome", outcome)], count);
        }
    }
    page.counter(
        "newsreel_feed_bytes_total",
        "Octets of articles that were sent.",
    );
    for (feed, _) in feeds {
        page.value(&names(feed), feed.tally.octets);
    }
    page.gauge(
        "newsreel_feed_waiting",
        "Articles in memory that are not settled.",
    );
    for (feed, _) in feeds {
        page.value(&names(feed), feed.open as u64);
    }
    page.gauge(
        "newsreel_feed_oldest_timestamp_seconds",
        "When the oldest article came that is not settled.",
    );
    for (feed, waits) in feeds {
        if let Some(oldest) = waits.oldest {
            page.value(&names(feed), oldest.0);
        }
    }
}

fn names(feed: &FeedReport) -> [(&str, &str); 2] {
    [("peer", &feed.peer), ("feed", &feed.feed)]
}
