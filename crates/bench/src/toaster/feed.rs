//! The captured feed with its clones, cut into batches and passes.
//!
//! Invariant: which octets are in a batch depends on nothing but the originals and their number; a digest of all says so.

use std::path::{Path, PathBuf};

use newsreel_host::OpenMode;

use super::args::ToasterArgs;
use crate::corpus::{Corpus, CorpusArgs, batch};
use crate::error::Error;
use crate::load::Machine;

/// What all contenders are fed.
#[derive(Debug)]
pub(super) struct Feed {
    corpus: Corpus,
    batch_articles: u64,
    /// All of them; the first passes have one more where they do not come out even.
    batches: u64,
    passes: u32,
}

impl Feed {
    pub(super) fn new(args: &ToasterArgs, machine: Machine<'_>) -> Result<Self, Error> {
        let is_generated = args.corpus.from.is_empty();
        let originals = CorpusArgs {
            articles: match is_generated {
                true => Some(args.articles.div_ceil(args.clones + 1)),
                false => args.corpus.articles,
            },
            base_time_secs: Some(args.base_time_secs()),
            clones: 0,
            ..args.corpus.clone()
        };
        let originals = Corpus::new(&originals, machine.disk, machine.clock)?;
        if originals.is_empty() {
            return Err(Error::NothingToFeed {
                left_out: originals.left_out(),
            });
        }
        let clones = args.articles.div_ceil(originals.len()) - 1;
        let all = originals.with_clones(clones);
        let corpus = all.part(all.first(), all.first() + args.articles);
        let batches = corpus.len().div_ceil(args.batch_articles);
        if batches < u64::from(args.passes) {
            return Err(Error::Argument {
                name: "passes",
                value: args.passes.to_string(),
                why: format!("there are {batches} batches, and each pass needs one"),
            });
        }
        Ok(Self {
            corpus,
            batch_articles: args.batch_articles,
            batches,
            passes: args.passes,
        })
    }

    /// The groups of all articles.
    pub(super) fn groups(&self) -> &[String] {
        self.corpus.groups()
    }

    /// Articles of all passes.
    pub(super) const fn articles(&self) -> u64 {
        self.corpus.len()
    }

    /// Articles of the largest pass.
    pub(super) fn pass_articles(&self) -> u64 {
        self.batches.div_ceil(self.passes.into()) * self.batch_articles
    }

    /// Octets of the largest run of so many passes.
    pub(super) fn octets_of(&self, passes: u32) -> u64 {
        let octets: Vec<u64> = (1..=self.passes)
            .map(|pass| {
                let articles = self.pass(pass);
                let mut scratch = Vec::new();
                (articles.first()..articles.end())
                    .map(|n| {
                        let (head, body) = articles.parts(n, &mut scratch);
                        (head.len() + body.len()) as u64
                    })
                    .sum()
            })
            .collect();
        let runs = octets.windows(passes.min(self.passes) as usize);
        runs.map(|run| run.iter().sum()).max().unwrap_or(0)
    }

    /// The articles of a pass, counted from 1.
    fn pass(&self, pass: u32) -> Corpus {
        let passes = u64::from(self.passes);
        // The index of the first article behind so many passes.
        let behind = |passed: u64| {
            let batches = passed * (self.batches / passes) + passed.min(self.batches % passes);
            self.corpus.first() + batches * self.batch_articles
        };
        self.corpus
            .part(behind(u64::from(pass) - 1), behind(pass.into()))
    }

    /// Writes the batches of a pass into a directory; their files, the octets in them and the articles.
    pub(super) fn write(
        &self,
        pass: u32,
        into: &Path,
        machine: Machine<'_>,
        digest: &mut blake3::Hasher,
    ) -> Result<Batches, Error> {
        let articles = self.pass(pass);
        let mut batches = Batches {
            articles: articles.len(),
            ..Batches::default()
        };
        let (mut from, mut octets) = (articles.first(), Vec::new());
        while from < articles.end() {
            let to = from + self.batch_articles;
            octets.clear();
            batch::write_batch(&articles.part(from, to), &mut octets)?;
            digest.update(&octets);
            let path = into.join(format!("{pass:02}-{:06}", batches.files.len()));
            let file = machine.disk.open(&path, OpenMode::CreateNew)?;
            file.write_at(&octets, 0)?;
            batches.octets += octets.len() as u64;
            batches.files.push(path);
            from = to;
        }
        Ok(batches)
    }
}

/// The batches of a pass.
#[derive(Debug, Default)]
pub(super) struct Batches {
    pub(super) files: Vec<PathBuf>,
    pub(super) octets: u64,
    pub(super) articles: u64,
}

#[cfg(test)]
mod tests {
    use newsreel_host::{Disk as _, FakeClock, MemoryDisk};

    use super::*;

    fn digest(seed: u64, batch_articles: u64) -> (Vec<u64>, u64, String) {
        let (disk, clock) = (MemoryDisk::new(), FakeClock::new(7));
        let machine = Machine {
            disk: &disk,
            clock: &clock,
        };
        let mut args = ToasterArgs::new("/d".into(), "/p".into());
        args.corpus.seed = seed;
        (args.articles, args.batch_articles, args.passes) = (100, batch_articles, 4);
        let feed = Feed::new(&args, machine).unwrap();
        disk.create_dir_all(Path::new("/in")).unwrap();
        let mut hasher = blake3::Hasher::new();
        let (mut articles, mut files) = (Vec::new(), 0);
        for pass in 1..=4 {
            let batches = feed
                .write(pass, Path::new("/in"), machine, &mut hasher)
                .unwrap();
            articles.push(batches.articles);
            files += batches.files.len() as u64;
        }
        (articles, files, hasher.finalize().to_hex().to_string())
    }

    /// Some have one batch more than others, as in the paper, and the last batch has what is left.
    #[test]
    fn passes_have_whole_batches() {
        let (articles, files, _) = digest(1, 9);
        assert_eq!((articles, files), (vec![27, 27, 27, 19], 12));
        let (articles, files, _) = digest(1, 8);
        assert_eq!((articles, files), (vec![32, 24, 24, 20], 13));
        let (articles, files, _) = digest(1, 25);
        assert_eq!((articles, files), (vec![25, 25, 25, 25], 4));
    }

    #[test]
    fn a_seed_decides_every_octet() {
        let of = |seed, batch| digest(seed, batch).2;
        assert_eq!(of(1, 9), of(1, 9));
        // A batch's articles are the same however many are in one.
        assert_eq!(of(1, 9), of(1, 25));
        assert_ne!(of(1, 9), of(2, 9));
    }
}
