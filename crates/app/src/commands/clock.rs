//! `newsreel clock confirm`: the calendar jumped and is right.

use anyhow::Result;

use crate::access::{self, SpoolArgs};
use crate::control::request::Request;
use crate::output;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Say that the clock is right although it jumped by more than a day
    #[command(
        after_help = "Until then no article is refused for its age and no message-id is forgotten; `newsreel status` \
                      tells of the jump. A clock that is wrong is set right instead, and needs no confirmation.\n\nExample:\n  newsreel clock confirm"
    )]
    Confirm {
        #[command(flatten)]
        spool: SpoolArgs,
    },
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    let Verb::Confirm { spool } = verb;
    let confirmed = access::change(spool, Request::ClockConfirm)?;
    if spool.json {
        return output::json(&confirmed);
    }
    let was = &confirmed["was"];
    output::text(&if was.is_null() {
        "the clock had not jumped; nothing was to be confirmed\n".to_owned()
    } else {
        "confirmed: articles are judged by this clock again\n".to_owned()
    })
}
