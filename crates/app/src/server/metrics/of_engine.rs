//! The figures of a server with a spool of its own.

use newsreel_engine::BufferStatus;
use newsreel_feed::{Backlog, FeedReport};
use newsreel_store::BufferFacts;

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
        let buffers: Vec<_> = self.engine.buffers().collect();
        of_buffers(page, &buffers);
        if let Some(caching) = &self.caching {
            caching.measure_cache(page);
        }
        let feeds = self.beside.peers.with_backlogs(|_| true, LOOKS_MAX);
        of_feeds(page, &feeds);
    }
}

/// How full each buffer is, and whether all is well with it.
fn of_buffers(page: &mut Page, buffers: &[(BufferStatus, BufferFacts)]) {
    page.gauge(
        "newsreel_buffer_bytes",
        "Octets of a buffer: room for articles, what of it is alive, or what is free where that is the file system's.",
    );
    for (status, facts) in buffers {
        let [buffer, set] = labels(status);
        let is_room = facts.capacity_octets.is_some();
        for (what, octets) in [
            ("room", facts.capacity_octets),
            ("live", is_room.then_some(facts.live_octets)),
            ("free", facts.free_octets),
        ] {
            if let Some(octets) = octets {
                page.value(&[buffer, set, ("what", what)], octets);
            }
        }
    }
    page.gauge(
        "newsreel_buffer_newest_timestamp_seconds",
        "When the newest article in a buffer came.",
    );
    for (status, facts) in buffers {
        if facts.newest_arrival > 0 {
            page.value(&labels(status), facts.newest_arrival);
        }
    }
    page.gauge(
        "newsreel_buffer_is_suspended",
        "1: a buffer takes nothing, since its disk failed or is away.",
    );
    for (status, facts) in buffers {
        page.value(&labels(status), facts.suspended.is_some().into());
    }
    page.gauge(
        "newsreel_buffer_is_ok",
        "1: nothing is the matter with a buffer, 0: `newsreel store list` says what.",
    );
    for (status, _) in buffers {
        let is_ok = newsreel_engine::is_well(&status.state);
        page.value(&labels(status), is_ok.into());
    }
}

fn labels(status: &BufferStatus) -> [(&str, &str); 2] {
    [("buffer", &status.name), ("set", &status.set)]
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
