//! Feeding a server: the arguments, and what the feed passes share.
//!
//! Invariant: each article is offered once (or once by every connection, when they overlap), in the
//! order of the corpus, whichever connection comes next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memmem;

use crate::client::outgoing::Outgoing;
use crate::client::script::word;
use crate::client::tally::Tally;
use crate::corpus::Corpus;
use crate::error::Error;
use crate::load::{self, LoadArgs, Machine, Plan};
use crate::passes;
use crate::report::Report;

/// Indices from here on belong to no article: their message-ids are unknown to every server.
pub(crate) const UNKNOWN: u64 = 1 << 44;

/// How to feed.
#[derive(Debug, Clone)]
pub struct FeedArgs {
    /// What the connections say, by the name of a row of [`passes::FEED`].
    pub mode: String,
    /// Articles or offers under way on a connection; 0 for no limit.
    pub window: usize,
    /// Every connection offers every article, as several peers do, instead of sharing them out.
    pub overlap: bool,
    /// Begin again at the first article after the last, until the time is up.
    pub repeat: bool,
    /// How hard, how long and at whom.
    pub load: LoadArgs,
}

impl FeedArgs {
    /// One connection that sends TAKETHIS with a window of 100.
    pub fn new(load: LoadArgs) -> Self {
        Self {
            mode: "takethis".to_owned(),
            window: 100,
            overlap: false,
            repeat: false,
            load,
        }
    }
}

/// Feeds the articles of `corpus` to a server.
pub fn run(args: &FeedArgs, corpus: &Corpus, machine: Machine<'_>) -> Result<Report, Error> {
    let pass = passes::feed(&args.mode).ok_or_else(|| Error::Argument {
        name: "mode",
        value: args.mode.clone(),
        why: format!(
            "it must be one of {}",
            names(passes::FEED.iter().map(|pass| pass.name))
        ),
    })?;
    if args.repeat && args.load.duration_secs.is_none() {
        return Err(Error::Argument {
            name: "repeat",
            value: "true".to_owned(),
            why: "without a duration it would never end".to_owned(),
        });
    }
    if corpus.is_empty() {
        let left_out = corpus.left_out();
        return Err(Error::NothingToFeed { left_out });
    }
    let times = if args.overlap {
        args.load.connections as u64
    } else {
        1
    };
    let plan = Plan {
        name: args.mode.clone(),
        kinds: pass.kinds,
        hello: pass.hello,
        depth: match args.window {
            _ if !pass.streams => 1,
            0 => usize::MAX,
            window => window,
        },
        total: (!args.repeat).then(|| corpus.len() * times),
    };
    let supply = || {
        Arc::new(Supply {
            next: AtomicU64::new(corpus.first()),
            repeat: args.repeat,
        })
    };
    let shared = supply();
    load::run(&args.load, machine, &plan, &mut |_| {
        let supply = if args.overlap {
            supply()
        } else {
            Arc::clone(&shared)
        };
        (pass.make)(FeedContext {
            corpus,
            supply,
            id: Vec::with_capacity(128),
            head: Vec::new(),
        })
    })
}

/// A list of names for a message.
pub(crate) fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The articles that are still to be offered.
#[derive(Debug)]
struct Supply {
    next: AtomicU64,
    repeat: bool,
}

/// What a feeding connection works with.
#[derive(Debug)]
pub(crate) struct FeedContext<'c> {
    corpus: &'c Corpus,
    supply: Arc<Supply>,
    /// Room for the message-id that a reply must name.
    id: Vec<u8>,
    /// Room for a header block.
    head: Vec<u8>,
}

impl<'c> FeedContext<'c> {
    /// The next article to offer.
    pub(crate) fn take(&self) -> Option<u64> {
        let n = self.supply.next.fetch_add(1, Ordering::Relaxed);
        if self.supply.repeat && !self.corpus.is_empty() {
            return Some(self.corpus.first() + (n - self.corpus.first()) % self.corpus.len());
        }
        (n < self.corpus.end()).then_some(n)
    }

    /// Puts a command that names article `n`.
    pub(crate) fn write_command(&self, verb: &[u8], n: u64, out: &mut Outgoing<'c>) {
        let text = out.text();
        text.extend_from_slice(verb);
        text.push(b' ');
        self.corpus.write_message_id(n, text);
        text.extend_from_slice(b"\r\n");
    }

    /// Puts article `n` with its terminating line.
    pub(crate) fn write_article(&self, n: u64, out: &mut Outgoing<'c>) {
        let body = self.corpus.write_article(n, out.text());
        out.lend(body);
        out.text().extend_from_slice(b".\r\n");
    }

    /// Puts article `n` as somebody would post it, without what servers add, with its terminating line.
    pub(crate) fn write_proto_article(&mut self, n: u64, out: &mut Outgoing<'c>) {
        self.head.clear();
        let rest = self.corpus.write_article(n, &mut self.head);
        // A real article lies whole in memory.
        let cut = match self.head.is_empty() {
            true => memmem::find(rest, b"\r\n\r\n").map_or(rest.len(), |at| at + 4),
            false => 0,
        };
        let (head, body) = rest.split_at(cut);
        self.head.extend_from_slice(head);
        write_without_servers_fields(&self.head, out.text());
        out.lend(body);
        out.text().extend_from_slice(b".\r\n");
    }

    /// Puts TAKETHIS with a control message that cancels article `n` (RFC 5537 section 5.3), in the groups that `n` is in.
    pub(crate) fn write_cancel(&mut self, n: u64, out: &mut Outgoing<'c>) {
        let (head, _) = self.corpus.parts(n, &mut self.head);
        let text = out.text();
        text.extend_from_slice(b"TAKETHIS ");
        self.corpus.write_cancel_id(n, text);
        text.extend_from_slice(b"\r\nPath: cancel.example!not-for-mail\r\n");
        let lines = head.split_inclusive(|octet| *octet == b'\n');
        let same = |line: &&[u8]| SAME_IN_CANCELS.iter().any(|name| line.starts_with(name));
        for line in lines.filter(same) {
            text.extend_from_slice(line);
        }
        text.extend_from_slice(b"Message-ID: ");
        self.corpus.write_cancel_id(n, text);
        for name in [
            b"\r\nSubject: cmsg cancel ".as_slice(),
            b"\r\nControl: cancel ",
        ] {
            text.extend_from_slice(name);
            self.corpus.write_message_id(n, text);
        }
        text.extend_from_slice(b"\r\n\r\nCancelled.\r\n.\r\n");
    }

    /// Complains unless the reply names article `n` (RFC 4644 wants it in every reply).
    pub(crate) fn verify_id(&mut self, n: u64, line: &[u8], tally: &mut Tally) {
        self.id.clear();
        self.corpus.write_message_id(n, &mut self.id);
        self.verify(line, tally);
    }

    /// The same of the message that cancels article `n`.
    pub(crate) fn verify_cancel_id(&mut self, n: u64, line: &[u8], tally: &mut Tally) {
        self.id.clear();
        self.corpus.write_cancel_id(n, &mut self.id);
        self.verify(line, tally);
    }

    fn verify(&self, line: &[u8], tally: &mut Tally) {
        if word(line, 1) != self.id {
            tally.complain(|| {
                let (line, id) = (
                    String::from_utf8_lossy(line),
                    String::from_utf8_lossy(&self.id),
                );
                format!("the reply to {id} was \"{line}\"")
            });
        }
    }
}

/// Header fields that the message which cancels an article has from it, each on one line where articles are generated.
const SAME_IN_CANCELS: [&[u8]; 3] = [b"From: ", b"Newsgroups: ", b"Date: "];

/// Header fields that servers add, or that only they may.
const SERVERS_FIELDS: &[&str] = &[
    "Path",
    "Xref",
    "Injection-Date",
    "Injection-Info",
    "NNTP-Posting-Host",
    "NNTP-Posting-Date",
    "X-Trace",
    "X-Complaints-To",
];

/// Appends a header block (wire form) without them.
fn write_without_servers_fields(head: &[u8], out: &mut Vec<u8>) {
    let mut is_left_out = false;
    for line in head.split_inclusive(|octet| *octet == b'\n') {
        if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            let name = line
                .split(|octet| *octet == b':')
                .next()
                .unwrap_or_default();
            let mut names = SERVERS_FIELDS.iter();
            is_left_out = names.any(|one| name.eq_ignore_ascii_case(one.as_bytes()));
        }
        if !is_left_out {
            out.extend_from_slice(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_add_is_left_out() {
        let head = b"path: a!b\r\nFrom: a@b.example\r\nXref: x a:1\r\n\tb:2\r\nSubject: a\r\n folded\r\nPaths: stay\r\n\r\n";
        let mut out = Vec::new();
        write_without_servers_fields(head, &mut out);
        let left = "From: a@b.example\r\nSubject: a\r\n folded\r\nPaths: stay\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), left);
    }
}
