//! Articles are read of which a server has nothing in memory, and its calls for that are counted.

use newsreel_host::mounts::canonical;

use super::preads::Preads;
use super::{IN_FILES, Stand, method};
use crate::corpus::{Corpus, Size};
use crate::error::Error;
use crate::read::{self, Order, ReadArgs};
use crate::removal::feed_each;
use crate::rivals::Rival as _;

/// Articles of each size; the second is the largest that is to be had with one call.
const SIZES: [(&str, Size, u64); 4] = [
    ("up to 4 KB", Size::Small, 1000),
    ("of 16,000 octets", Size::Fixed(16_000), 1000),
    ("of 40,000 octets", Size::Fixed(40_000), 100),
    ("of 700,000 octets", Size::Fixed(700_000), 100),
];
/// From here on two calls are allowed.
const LARGE: usize = 2;
/// The scrub reads articles, too.
const CONFIG: &str = "[scrub]\noctets_per_s = 0\n";

/// Articles of one size, of one method.
#[derive(Debug, Clone, PartialEq)]
pub struct Reads {
    /// The storage method.
    pub method: &'static str,
    /// How large they are, in words.
    pub size: &'static str,
    /// Articles that were read.
    pub articles: u64,
    /// Calls for one that are allowed.
    pub asked: f64,
    /// Calls that read files of articles; or why they were not counted.
    pub calls: Result<u64, String>,
}

impl Stand<'_> {
    pub(super) fn reads(&self, on_line: &mut dyn FnMut(&str)) -> Result<Vec<Reads>, Error> {
        let mut corpora = Vec::new();
        for (seed, (_, size, articles)) in (0..).zip(SIZES) {
            corpora.push(self.corpus(seed, size, articles)?);
        }
        let mut all = Vec::new();
        for name in IN_FILES {
            let octets = self.args.storage.buffers_octets.max(256 << 20);
            let volume = self.volume(2 * octets)?;
            let at = canonical(volume.at()).join("articles");
            self.machine.disk.create_dir_all(&at)?;
            let words = method(name)?.config(octets, Some(&at)) + CONFIG;
            let mut server = self.server(volume.at(), &words)?;
            let first = corpora.first().ok_or(Error::WorkerLost)?;
            self.start(&mut server, first, volume.at())?;
            for corpus in &corpora {
                feed_each(&self.feeding(), corpus, self.machine)?;
            }
            server.stop()?;
            let mut server = self.server(volume.at(), &words)?.unprepared();
            let pid = self.start(&mut server, first, volume.at())?;
            for (place, (corpus, (size, ..))) in corpora.iter().zip(SIZES).enumerate() {
                let preads = Preads::start(pid, &volume.at().join("calls"));
                self.read_each(corpus)?;
                let row = Reads {
                    method: name,
                    size,
                    articles: corpus.len(),
                    asked: if place < LARGE { 1.0 } else { 2.0 },
                    calls: preads.and_then(|preads| preads.stop(&at)),
                };
                on_line(&row.human());
                all.push(row);
            }
            server.stop()?;
        }
        Ok(all)
    }

    /// Each once, compared with what was fed.
    fn read_each(&self, corpus: &Corpus) -> Result<(), Error> {
        let mut args = ReadArgs {
            order: Order::Sequential,
            verify: read::Verify::Contents,
            ..ReadArgs::new(self.load())
        };
        // Until all were read, however long that takes.
        args.load.duration_secs = None;
        let report = read::run(&args, corpus, self.machine)?;
        if report.compared == corpus.len() {
            return Ok(());
        }
        let why = report.complaints.first().cloned();
        let all = corpus.len();
        Err(Error::Program {
            program: "the server".to_owned(),
            why: why.unwrap_or_else(|| format!("{} of {all} articles came", report.compared)),
        })
    }
}

impl Reads {
    fn human(&self) -> String {
        let calls = match &self.calls {
            Ok(calls) => calls.to_string(),
            Err(why) => why.clone(),
        };
        format!(
            "{:8} {} articles {} read, calls: {calls}",
            self.method, self.articles, self.size
        )
    }
}
