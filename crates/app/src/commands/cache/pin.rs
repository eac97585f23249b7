//! `newsreel cache pin`: groups whose articles stay in a caching server, whatever its policy says.

use anyhow::Result;
use newsreel_wire::Wildmat;
use serde_json::Value;

use super::Which;
use crate::control::cache_request::CacheRequest;
use crate::output::{self, cell, octets};

#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "An article is pinned with any of its groups. What the upstream server cancelled or let expire goes all the \
                  same. No more than `cache.pinned_octets` stay so, and what there is more goes as the policy says. Pins are \
                  there after a restart, and nothing is fetched for them: see `newsreel cache prefetch`.\n\n\
                  Examples:\n  newsreel cache pin 'comp.lang.rust'\n  newsreel cache pin --remove 'comp.lang.rust'\n  newsreel cache pin"
)]
pub(super) struct Args {
    /// The groups; none: only tell which are pinned
    #[arg(value_name = "WILDMAT")]
    groups: Vec<String>,
    /// Pin these no more
    #[arg(long, requires = "groups")]
    remove: bool,
    #[command(flatten)]
    which: Which,
}

pub(super) fn run(args: &Args) -> Result<()> {
    for wildmat in &args.groups {
        Wildmat::parse(wildmat)?;
    }
    let (add, remove) = match args.remove {
        true => (Vec::new(), args.groups.clone()),
        false => (args.groups.clone(), Vec::new()),
    };
    let pinned = args.which.ask(CacheRequest::Pin { add, remove })?;
    match args.which.json {
        true => output::json(&pinned),
        false => output::said(&said(&pinned)),
    }
}

fn said(pinned: &Value) -> String {
    let pins = pinned["pins"].as_array().map_or(&[][..], Vec::as_slice);
    if pins.is_empty() {
        return "nothing is pinned\n".to_owned();
    }
    let mut text: String = pins
        .iter()
        .map(|pin| format!("{}\n", output::foreign(&cell(pin))))
        .collect();
    let (now, most) = (octets(&pinned["octets"]), octets(&pinned["octets_max"]));
    text += &format!(
        "{now} of {most} are used: so much of what is pinned would have gone by now, and is kept\n"
    );
    text
}
