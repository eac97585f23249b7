//! `newsreel cache offline`: whether a caching server asks the servers elsewhere.

use anyhow::Result;

use super::Which;
use crate::control::cache_request::CacheRequest;
use crate::output;

#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Offline no upstream server is asked: what is kept is served, an article that is not is answered with \
                  400, and the connection ends, so that no newsreader takes it for gone; and posts wait. With \"off\" posts that wait are sent at once. It holds \
                  until it is switched again, after a restart, too; `cache.offline` says how it is where nobody has switched it, and `cache.offline_kept_only` whether no more is shown of groups than can be read.\n\n\
                  Examples:\n  newsreel cache offline on\n  newsreel cache offline"
)]
pub(super) struct Args {
    /// What shall be [default: only tell]
    state: Option<State>,
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum State {
    /// Ask nobody
    On,
    /// Ask again
    Off,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let offline = args.state.map(|state| state == State::On);
    let told = args.which.ask(CacheRequest::Offline { offline })?;
    if args.which.json {
        return output::json(&told);
    }
    let is = match told["is_offline"].as_bool() {
        Some(true) => "offline: no upstream server is asked",
        _ => "online",
    };
    output::text(&format!("{is}\n"))
}
