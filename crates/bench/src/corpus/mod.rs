//! The articles a benchmark works with: generated ones or real ones, behind one face.
//!
//! Invariant: articles have fixed indices, and from an index everything about the article follows:
//! its message-id, its octets, and whether a server gave it back unharmed.
//! Must not change articles, and must not read a clock except for the base time's default.

pub mod batch;
mod clones;
mod generated;
mod groups;
mod loaded;
mod prepared;
mod words;

use std::path::PathBuf;
use std::sync::Arc;

use newsreel_host::{Clock, Disk};
use serde::{Deserialize, Serialize};

use self::clones::Clones;
pub use self::generated::Size;
use self::generated::{Generated, Model};
pub use self::groups::{ListForm, list};
use self::loaded::Loaded;
use self::prepared::Prepared;
use crate::error::Error;

/// Where articles come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CorpusArgs {
    /// Real articles: rnews batches (packed ones are named `.zst`), articles, directories of either.
    /// Without any, articles are generated.
    pub from: Vec<PathBuf>,
    /// Decides everything about generated articles but their dates; another seed, other articles.
    pub seed: u64,
    /// Number of groups that generated articles are posted to, the busiest first by Zipf's law.
    pub groups: usize,
    /// The groups are as busy as each other instead.
    pub is_even: bool,
    /// How large generated articles are: `text` (mean 2.65 KB, below 32 KB) or a number of octets.
    pub size: Size,
    /// How many of a hundred generated articles go to more than one group.
    pub crossposted_percent: u32,
    /// How many of a hundred generated articles reply to an earlier one, and go to its groups.
    pub replies_percent: u32,
    /// Generated articles are dated within the three hours before this time, in seconds since 1970;
    /// without it, before now.
    pub base_time_secs: Option<u64>,
    /// Index of the first article to use.
    pub first: u64,
    /// Number of articles to use; without it all real ones, or 50,000 generated ones.
    pub articles: Option<u64>,
    /// How often they come again behind the last of them, each time under message-ids of their own.
    pub clones: u64,
}

impl Default for CorpusArgs {
    fn default() -> Self {
        Self {
            from: Vec::new(),
            seed: 1,
            groups: 3000,
            is_even: false,
            size: Size::Text,
            crossposted_percent: 12,
            replies_percent: 62,
            base_time_secs: None,
            first: 0,
            articles: None,
            clones: 0,
        }
    }
}

/// Generated articles when no number is asked for.
const ARTICLES_DEFAULT: u64 = 50_000;

/// The articles of one benchmark.
#[derive(Debug)]
pub struct Corpus {
    source: Arc<Source>,
    clones: Clones,
    first: u64,
    end: u64,
    /// Whether the dates of generated articles are those that were asked for, not those of this moment.
    knows_dates: bool,
}

#[derive(Debug)]
enum Source {
    Generated(Box<Generated>, Prepared),
    Loaded(Loaded),
}

impl Corpus {
    /// Makes or reads the articles that `args` asks for.
    pub fn new(args: &CorpusArgs, disk: &dyn Disk, clock: &dyn Clock) -> Result<Self, Error> {
        let refuse = |name, value: u64, why: &str| {
            Err(Error::Argument {
                name,
                value: value.to_string(),
                why: why.to_owned(),
            })
        };
        if !(1..=1_000_000).contains(&args.groups) {
            return refuse(
                "groups",
                args.groups as u64,
                "it must be from 1 to 1,000,000",
            );
        }
        for (name, percent) in [
            ("crossposted", args.crossposted_percent),
            ("replies", args.replies_percent),
        ] {
            if percent > 100 {
                return refuse(name, percent.into(), "it is a percentage");
            }
        }
        if let Size::Fixed(octets) = args.size
            && !(600..=1 << 28).contains(&octets)
        {
            return refuse(
                "size",
                octets.into(),
                "it must be from 600 octets to 256 MiB",
            );
        }
        let (mut source, all) = if args.from.is_empty() {
            let model = Model {
                seed: args.seed,
                groups: args.groups,
                is_even: args.is_even,
                size: args.size,
                crossposted_percent: args.crossposted_percent,
                replies_percent: args.replies_percent,
                base_time_secs: args.base_time_secs.unwrap_or_else(|| clock.now().secs),
            };
            let generated = Box::new(Generated::new(model));
            (Source::Generated(generated, Prepared::default()), None)
        } else {
            let loaded = Loaded::load(disk, &args.from)?;
            let all = loaded.len();
            (Source::Loaded(loaded), Some(all))
        };
        let wanted = args.articles.or(all).unwrap_or(ARTICLES_DEFAULT);
        let end = args
            .first
            .saturating_add(wanted)
            .min(all.unwrap_or(u64::MAX));
        let first = args.first.min(end);
        if let Source::Generated(generated, prepared) = &mut source {
            *prepared = Prepared::new(generated, first, end);
        }
        let clones = Clones {
            first,
            end,
            clones: args.clones,
        };
        Ok(Self {
            source: Arc::new(source),
            clones,
            first,
            end: clones.all_end(),
            knows_dates: args.base_time_secs.is_some() || all.is_some(),
        })
    }

    /// Articles `first..end` of it, as far as it has them.
    #[must_use]
    pub fn part(&self, first: u64, end: u64) -> Self {
        let first = first.clamp(self.first, self.end);
        let source = Arc::clone(&self.source);
        Self {
            source,
            clones: self.clones,
            first,
            end: end.clamp(first, self.end),
            knows_dates: self.knows_dates,
        }
    }

    /// The same originals, with so many clones of each behind them.
    #[must_use]
    pub fn with_clones(&self, clones: u64) -> Self {
        let clones = Clones {
            clones,
            ..self.clones
        };
        Self {
            source: Arc::clone(&self.source),
            clones,
            first: clones.first,
            end: clones.all_end(),
            knows_dates: self.knows_dates,
        }
    }

    /// Index of the first article.
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// Index after the last article.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Number of articles.
    pub const fn len(&self) -> u64 {
        self.end - self.first
    }

    /// Whether there is no article.
    pub const fn is_empty(&self) -> bool {
        self.end == self.first
    }

    /// Real articles that were left out: without a message-id, or with one seen before.
    pub fn left_out(&self) -> u64 {
        match &*self.source {
            Source::Generated(..) => 0,
            Source::Loaded(loaded) => loaded.left_out,
        }
    }

    /// Header fields (in lower case, with their colons) that a server's article may have otherwise: who reads without
    /// a base time has other dates than who fed.
    pub(crate) const fn unknown_fields(&self) -> &'static [&'static [u8]] {
        if self.knows_dates { &[] } else { &[b"date:"] }
    }

    /// The groups that articles may be posted to.
    pub fn groups(&self) -> &[String] {
        match &*self.source {
            Source::Generated(generated, _) => generated.groups(),
            Source::Loaded(loaded) => loaded.groups(),
        }
    }

    /// Appends the message-id of article `n`.
    pub fn write_message_id(&self, n: u64, out: &mut Vec<u8>) {
        let (n, clone) = self.clones.origin(n);
        if clone == 0 {
            return self.source.write_message_id(n, out);
        }
        let mut id = Vec::with_capacity(64);
        self.source.write_message_id(n, &mut id);
        clones::write_id(&id, clone, out);
    }

    /// Appends the message-id of what cancels article `n`: no article of a corpus has it.
    pub(crate) fn write_cancel_id(&self, n: u64, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_message_id(n, out);
        out.splice(start..=start, *b"<cancel.");
    }

    /// The index of the article with this message-id.
    pub fn find(&self, message_id: &[u8]) -> Option<u64> {
        let original = self.source.find(message_id);
        let n = original.and_then(|n| self.clones.index(n, 0)).or_else(|| {
            let (id, clone) = clones::original_of(message_id)?;
            self.clones.index(self.source.find(&id)?, clone)
        })?;
        (self.first..self.end).contains(&n).then_some(n)
    }

    /// Article `n` in wire form: what is appended to `out`, then what is returned, then the
    /// terminating line `.` CRLF, which is left to the caller.
    pub fn write_article(&self, n: u64, out: &mut Vec<u8>) -> &[u8] {
        let (n, clone) = self.clones.origin(n);
        if clone == 0 {
            return self.source.write_article(n, out);
        }
        let mut original = Vec::new();
        let (head, body) = match &*self.source {
            Source::Generated(..) => {
                let body = self.source.write_article(n, &mut original);
                (&original[..], body)
            }
            Source::Loaded(loaded) => loaded.parts(n),
        };
        clones::write_head(head, clone, out);
        body
    }

    /// The header block of article `n` with its empty line, and its body without the terminating
    /// line, both in wire form. `scratch` is overwritten.
    pub fn parts<'a>(&'a self, n: u64, scratch: &'a mut Vec<u8>) -> (&'a [u8], &'a [u8]) {
        match &*self.source {
            Source::Loaded(loaded) if self.clones.origin(n).1 == 0 => loaded.parts(n),
            Source::Loaded(_) | Source::Generated(..) => {
                scratch.clear();
                let body = self.write_article(n, scratch);
                (scratch, body)
            }
        }
    }
}

/// By the indices of originals.
impl Source {
    fn write_message_id(&self, n: u64, out: &mut Vec<u8>) {
        match self {
            Self::Generated(generated, _) => generated.write_message_id(n, out),
            Self::Loaded(loaded) if n < loaded.len() => {
                out.extend_from_slice(loaded.message_id(n));
            }
            Self::Loaded(_) => out.extend_from_slice(format!("<{n}@unknown.example>").as_bytes()),
        }
    }

    fn find(&self, message_id: &[u8]) -> Option<u64> {
        match self {
            Self::Generated(generated, _) => generated.find(message_id),
            Self::Loaded(loaded) => loaded.find(message_id),
        }
    }

    fn write_article(&self, n: u64, out: &mut Vec<u8>) -> &[u8] {
        match self {
            Self::Generated(generated, prepared) => {
                let cut = if let Some((head, cut)) = prepared.get(n) {
                    out.extend_from_slice(head);
                    cut
                } else {
                    generated.write_head(n, out)
                };
                generated.body(cut)
            }
            Self::Loaded(loaded) => loaded.article(n),
        }
    }
}

#[cfg(test)]
mod tests;
