//! Cancels of the articles, by TAKETHIS: the server must have the articles, and heed the cancels of anybody.
//!
//! Whether articles went is for a read pass to say.

use crate::client::script::Script;
use crate::feed::FeedContext;
use crate::passes::FeedPass;
use crate::passes::takethis::{KINDS, Takethis, What};

pub(super) const PASS: FeedPass = FeedPass {
    name: "cancel",
    help: "messages that cancel the articles, which the server has (its control.cancels must be all)",
    sends: true,
    streams: true,
    hello: Some(("MODE STREAM", &[203])),
    kinds: KINDS,
    make,
};

fn make(feed: FeedContext<'_>) -> Box<dyn Script<'_> + '_> {
    Box::new(Takethis::of(feed, What::Cancels))
}
