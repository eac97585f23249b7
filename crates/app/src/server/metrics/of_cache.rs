//! A caching server's figures.

use newsreel_cache::{ANSWER_US, Counted, CountedPart};

use super::{Measured, Page, common};
use crate::server::caching::{Caching, GROUPS_SHOWN_MAX};
use crate::server::waiting_posts;

fn parts(counted: &Counted) -> [(&'static str, &CountedPart); 2] {
    [("hit", &counted.kept), ("miss", &counted.fetched)]
}

impl Measured for Caching {
    fn measure(&self, page: &mut Page) {
        let sessions = self.metrics.snapshot();
        common(
            page,
            &self.limits,
            &sessions,
            self.started.elapsed().as_secs(),
        );
        self.measure_cache(page);
    }
}

impl Caching {
    /// Writes what is the cache's alone: also where it is part of a server with groups of its own.
    pub(super) fn measure_cache(&self, page: &mut Page) {
        self.answers(page);
        self.policies(page);
        self.groups(page);
        self.kept(page);
        self.others(page);
    }

    /// The paper's table 3, and how long readers waited.
    fn answers(&self, page: &mut Page) {
        let counts = self.service.counts();
        let all = || {
            counts.iter().flat_map(|(database, counted)| {
                let each = parts(counted).into_iter();
                each.map(|(result, part)| ([("database", *database), ("result", result)], part))
            })
        };
        page.counter(
            "newsreel_cache_answers_total",
            "Answers to readers, by database.",
        );
        for (labels, part) in all() {
            page.value(&labels, part.answers);
        }
        page.counter(
            "newsreel_cache_answer_bytes_total",
            "Octets of them; those of hits are saved.",
        );
        for (labels, part) in all() {
            page.value(&labels, part.octets);
        }
        page.histogram(
            "newsreel_cache_answer_seconds",
            "How long readers waited for them.",
        );
        for (labels, part) in all() {
            page.distribution(&labels, &ANSWER_US, &part.by_us, part.us);
        }
    }

    fn policies(&self, page: &mut Page) {
        let counts = self.service.counts_by_policy();
        page.counter(
            "newsreel_cache_policy_answers_total",
            "Articles answered, by the policy in force.",
        );
        for (kind, counted) in &counts {
            for (result, part) in parts(counted) {
                page.value(&[("policy", kind.name()), ("result", result)], part.answers);
            }
        }
        page.counter(
            "newsreel_cache_policy_bytes_total",
            "Octets of them; those of hits are saved.",
        );
        for (kind, counted) in &counts {
            for (result, part) in parts(counted) {
                page.value(&[("policy", kind.name()), ("result", result)], part.octets);
            }
        }
    }

    /// The groups asked for most; all others have no name.
    fn groups(&self, page: &mut Page) {
        let counts = self.service.counts_by_group(GROUPS_SHOWN_MAX);
        page.counter(
            "newsreel_cache_group_answers_total",
            "Articles answered, by the first group that they name.",
        );
        for (group, counted) in &counts {
            page.value(&[("group", &**group), ("result", "hit")], counted.hits);
            page.value(&[("group", &**group), ("result", "miss")], counted.misses);
        }
        page.counter(
            "newsreel_cache_group_bytes_total",
            "Octets of them; those of hits are saved.",
        );
        for (group, counted) in &counts {
            page.value(
                &[("group", &**group), ("result", "hit")],
                counted.saved_octets,
            );
            page.value(
                &[("group", &**group), ("result", "miss")],
                counted.fetched_octets,
            );
        }
    }

    fn kept(&self, page: &mut Page) {
        let (kept, config) = (self.service.kept_figures(), &self.config.cache);
        page.gauge("newsreel_cache_articles", "Articles that are kept.");
        page.value(&[], kept.articles);
        page.gauge(
            "newsreel_cache_groups",
            "Groups of which something is known.",
        );
        page.value(&[], kept.groups as u64);
        page.gauge("newsreel_cache_bytes", "Octets that are kept.");
        for (what, octets) in [
            ("articles", kept.octets),
            ("overview", kept.overview_octets),
            ("articles in memory", kept.memory_octets),
            ("overview in memory", kept.overview_memory_octets),
            ("wanted by the policy", kept.wanted_octets),
            ("pinned", kept.pinned_octets),
        ] {
            page.value(&[("what", what)], octets);
        }
        page.gauge("newsreel_cache_bytes_max", "Octets that may be kept.");
        page.value(&[("what", "articles")], config.octets);
        page.value(&[("what", "overview")], config.overview_octets);
        page.counter(
            "newsreel_cache_written_bytes_total",
            "Octets of articles that were written, as they came or again.",
        );
        page.value(&[("why", "came")], kept.written.came);
        page.value(&[("why", "again")], kept.written.again);
        page.gauge(
            "newsreel_cache_is_broken",
            "1: the table failed, and nothing is kept until its disk can be used, or the next start.",
        );
        page.value(&[], kept.is_broken.into());
    }

    fn others(&self, page: &mut Page) {
        page.gauge(
            "newsreel_cache_is_offline",
            "1: no upstream server is asked.",
        );
        page.value(&[], self.service.is_offline().into());
        let posts = self
            .service
            .queue()
            .map(|queue| waiting_posts::figures(queue));
        page.gauge(
            "newsreel_cache_posts",
            "Posts in the queue, and those that a server refused.",
        );
        for (standing, key) in [("all", "waiting"), ("refused", "refused")] {
            // Of a queue that cannot be read nothing is known; where none may wait, none do.
            let count = match &posts {
                Some(posts) => posts[key].as_u64(),
                None => Some(0),
            };
            if let Some(count) = count {
                page.value(&[("standing", standing)], count);
            }
        }
        page.gauge(
            "newsreel_cache_upstream_connections",
            "Connections to upstream servers.",
        );
        for (server, pool) in self.config.upstream.iter().zip(&self.pools) {
            let (lent, idle) = pool.counts();
            let address = server.address.as_str();
            page.value(&[("upstream", address), ("state", "lent")], lent as u64);
            page.value(&[("upstream", address), ("state", "idle")], idle as u64);
        }
    }
}
