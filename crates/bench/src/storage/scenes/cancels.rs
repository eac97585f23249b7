//! Every article that a server has is cancelled by a message of its own.

use super::{CNFS, Stand, method};
use crate::corpus::Size;
use crate::error::Error;
use crate::feed::FeedArgs;
use crate::load::LoadArgs;
use crate::removal::feed_each;
use crate::rivals::Rival as _;

const ARTICLES: u64 = 100_000;
const CONNECTIONS: usize = 4;
/// Of articles, and of what cancels them.
const OCTETS_EACH: u64 = 6 << 10;
const CONFIG: &str = "[control]\ncancels = \"all\"\n";

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cancels {
    /// Articles that were cancelled.
    pub articles: u64,
    /// In a second.
    pub per_second: f64,
}

impl Stand<'_> {
    pub(super) fn cancels(&self, on_line: &mut dyn FnMut(&str)) -> Result<Cancels, Error> {
        let corpus = self.corpus(0, Size::Text, ARTICLES)?;
        let octets = self
            .args
            .storage
            .buffers_octets
            .max(corpus.len() * OCTETS_EACH);
        let volume = self.volume(octets)?;
        let words = method(CNFS)?.config(octets, None) + CONFIG;
        let mut server = self.server(volume.at(), &words)?;
        self.start(&mut server, &corpus, volume.at())?;
        feed_each(&self.feeding(), &corpus, self.machine)?;
        let args = FeedArgs {
            mode: "cancel".to_owned(),
            load: LoadArgs {
                connections: CONNECTIONS,
                ..self.load()
            },
            ..self.feeding()
        };
        let report = feed_each(&args, &corpus, self.machine)?;
        server.stop()?;
        let (articles, per_second) = (report.accepted, report.per_second);
        on_line(&format!("{articles} articles cancelled, {per_second:.0}/s"));
        Ok(Cancels {
            articles,
            per_second,
        })
    }
}
