//! What a caching server answers whoever looks after it: its figures, and what it is asked to do.
//!
//! Of what only a server with a spool can do it says so.  A configuration that cannot be used changes nothing.

use std::sync::Arc;

use newsreel_cache::{Counted, CountedGroup, CountedPart};
use newsreel_host::RealDisk;
use serde_json::{Value, json};

use super::fetching::{prefetch, warm};
use super::{Caching, GROUPS_SHOWN_MAX};
use crate::config;
use crate::control::Progress;
use crate::control::cache_request::CacheRequest;
use crate::control::request::Request;
use crate::control::server::Answers;
use crate::server::front::Front as _;
use crate::server::running::{bans, connections, differences, sessions};
use crate::server::{kept, offline, waiting_posts};

impl Caching {
    fn facts(&self) -> Value {
        let kept = self.service.kept_figures();
        let config = &self.config.cache;
        let servers = self.config.upstream.iter().zip(&self.pools);
        let upstreams: Vec<Value> = servers
            .map(|(server, pool)| {
                let (lent, idle) = pool.counts();
                json!({"address": server.address, "lent": lent, "idle": idle})
            })
            .collect();
        let by_policy = self.service.counts_by_policy().into_iter();
        let by_policy: Vec<Value> = by_policy
            .map(|(kind, counted)| asked((kind.name(), counted)))
            .collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": self.started.elapsed().as_secs(),
            "server": {
                "pid": newsreel_host::process::own_pid(),
                "config": self.config.file,
                "listening": self.addresses,
                "connections": connections(&self.limits),
                "sessions": sessions(&self.metrics.snapshot()),
                "log_lines_lost": self.log.lost(),
            },
            "cache": {
                "directory": config.directory,
                "articles": kept.articles,
                "octets": kept.octets,
                "octets_max": config.octets,
                "memory_octets": kept.memory_octets,
                "groups": kept.groups,
                "overview_octets": kept.overview_octets,
                "overview_octets_max": config.overview_octets,
                "overview_memory_octets": kept.overview_memory_octets,
                "is_broken": kept.is_broken,
                "policy": kept.policy.name(),
                "wanted_octets": kept.wanted_octets,
                "written_octets": kept.written.came,
                "written_again_octets": kept.written.again,
                "pins": kept.pins,
                "pinned_octets": kept.pinned_octets,
                "pinned_octets_max": kept.pinned_octets_max,
            },
            "is_offline": self.service.is_offline(),
            "posts": self.service.queue().map(|queue| waiting_posts::figures(queue)),
            "upstreams": upstreams,
            "asked": self.service.counts().map(asked),
            "by_policy": by_policy,
            "by_group": self.service.counts_by_group(GROUPS_SHOWN_MAX).iter().map(of_group).collect::<Vec<_>>(),
        })
    }

    /// Reads the configuration again, of which the policy is taken over.  What else the file says otherwise than at the start needs a
    /// restart.
    pub(super) fn reload(&self) -> Result<Value, String> {
        let Some(file) = &self.config.file else {
            return Err("there is no configuration file to read again".to_owned());
        };
        let config = config::load_again(file).map_err(|error| {
            let error = crate::output::chain(&error);
            tracing::error!(target: "newsreel::server", error = %error.replace('\n', "; "),
                "the configuration cannot be used; the server goes on with the old one");
            error
        })?;
        let policy = config.cache.policy;
        let changed = if self.service.set_policy(policy) {
            vec!["cache.policy"]
        } else {
            Vec::new()
        };
        let needs_restart = differences(&self.written, &config);
        let mut needs_restart = needs_restart.map_err(|error| crate::output::chain(&error))?;
        needs_restart.retain(|key| key != "cache.policy");
        tracing::info!(target: "newsreel::server", policy = policy.name(), ?changed, ?needs_restart,
            "configuration read again; of other keys what has changed is in force after a restart only");
        Ok(json!({"changed": changed, "needs_restart": needs_restart, "file": file}))
    }

    /// Answers what is asked of caching servers alone.
    fn answer_of_cache(
        &self,
        asked: CacheRequest,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Value, String> {
        let (service, keep) = (&self.service, self.service.keep());
        match asked {
            CacheRequest::Prefetch { wildmat, limits } => {
                prefetch(service, &wildmat, limits.into(), progress)
            }
            CacheRequest::Warm {
                named,
                threads,
                limits,
            } => warm(service, (&named, threads), limits.into(), progress),
            CacheRequest::Offline { offline } => {
                if let Some(offline) = offline {
                    let held = offline::hold(&RealDisk, &self.config.cache, offline);
                    held.map_err(|error| crate::output::chain(&error))?;
                    let set = service.set_offline(offline);
                    set.map_err(|error| error.to_string())?;
                    tracing::info!(target: "newsreel::cache", offline, "as asked");
                }
                Ok(json!({"is_offline": service.is_offline()}))
            }
            CacheRequest::List { wildmat, articles } => kept::list(keep, &wildmat, articles),
            CacheRequest::Drop { named, dry_run } => kept::drop(service, &named, dry_run),
            CacheRequest::Pin { add, remove } => kept::pin(keep, &add, &remove),
            CacheRequest::Queue { action } => waiting_posts::answer(&**service, action),
        }
    }
}

/// A database's questions.
fn asked((what, counted): (&str, Counted)) -> Value {
    let part = |part: CountedPart| {
        json!({
            "answers": part.answers,
            "octets": part.octets,
            "us": part.us,
            "us_95_percent": part.within_us(95),
        })
    };
    json!({"what": what, "kept": part(counted.kept), "fetched": part(counted.fetched)})
}

/// A group's articles; those of all others have no name.
fn of_group((name, counted): &(Box<str>, CountedGroup)) -> Value {
    json!({
        "group": name,
        "hits": counted.hits,
        "saved_octets": counted.saved_octets,
        "misses": counted.misses,
        "fetched_octets": counted.fetched_octets,
    })
}

impl Answers for Arc<Caching> {
    fn answer(
        &self,
        request: Request,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Value, String> {
        match request {
            Request::Status => Ok(self.facts()),
            Request::Cache { asked } => self.answer_of_cache(asked, progress),
            Request::AccessBans { lift } => bans(&self.settings().gate(), lift.as_deref()),
            Request::Reload => self.reload(),
            Request::Stop => {
                self.drain.start();
                Ok(json!({"stopping": true}))
            }
            _ => Err("a caching server runs here: it has no spool".to_owned()),
        }
    }
}
