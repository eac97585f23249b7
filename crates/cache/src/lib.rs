//! News from servers elsewhere, as a [`NewsService`](newsreel_service::NewsService) like any other, after *NewsCache*
//! (Gschwind and Hauswirth 1999).
//!
//! [`RServer`] is the paper's: it asks one server for everything and keeps no article.  Numbers are the server's, so what a
//! reader has seen under one stays what it was.  [`CServer`] is the cache in front of it, and [`keep`] what that keeps.  This
//! crate speaks as a client only; whoever serves readers puts the rules of access in front.
#![deny(missing_docs)]

mod access_log;
mod cached;
mod censor;
mod config;
pub mod fuzz;
pub mod keep;
pub mod policies;
mod policy;
pub mod queue;
mod remote;
pub mod simulate;
mod upstream;

pub use access_log::{
    ACCESS_LINE_OCTETS_MAX, ACCESS_LOG, ACCESS_LOG_BEFORE, ACCESS_OCTETS_MIN,
    ACCESS_WAITING_OCTETS_MAX, AccessLine, AccessLog,
};
pub use cached::{
    ANSWER_US, CServer, CacheSettings, Counted, CountedGroup, CountedPart, GROUPS_COUNTED_MAX,
    LINES_AT_ONCE_MAX, PrefetchLimits, Prefetched, RUNS_MAX, THREADS_MAX,
};
pub use censor::{Censor, CensorConfig, CensorRule, censor_problems};
pub use config::{CacheConfig, UpstreamConfig, UpstreamTls, UpstreamsConfig, problems};
pub use remote::{
    FORWARDED_OCTETS_MAX, Forwarded, MISSING_GROUPS_MAX, MISSING_IDS_MAX, PASSED_ON_OCTETS_MAX,
    RServer, RemoteNewnews, RemoteSettings, Route, Routes, SAMPLED_GROUPS_MAX, SAMPLED_NUMBERS_MAX,
    Sameness,
};
pub use upstream::{AFTER_A_KILL, SECRET_OCTETS_MAX, Upstream};
