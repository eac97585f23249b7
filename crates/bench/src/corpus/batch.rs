//! Writing a corpus out, as an rnews batch or as a list of its groups, and what it looks like.
//!
//! Invariant: a batch written here and read back is the same corpus. The octets go to whatever
//! writer is given; files and the terminal are the caller's affair.

use std::io::Write;

use newsreel_wire::batch as wire_batch;
use newsreel_wire::nntp::framing;
use serde::Serialize;

use super::Corpus;
use crate::error::Error;

/// What a corpus looks like.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CorpusFacts {
    /// Number of articles.
    pub articles: u64,
    /// Real articles left out: without a message-id, or with one seen before.
    pub left_out: u64,
    /// Groups that they may be posted to.
    pub groups: u64,
    /// All octets in wire form.
    pub octets: u64,
    /// Octets of header blocks among them.
    pub head_octets: u64,
    /// The smallest article.
    pub octets_min: u64,
    /// The largest article.
    pub octets_max: u64,
    /// Articles posted to more than one group.
    pub crossposted: u64,
    /// Articles with References.
    pub replies: u64,
    /// BLAKE3 of all articles as one batch: two runs with the same digest feed the same octets.
    pub digest: String,
}

impl CorpusFacts {
    /// For a terminal.
    pub fn human(&self) -> String {
        let articles = self.articles.max(1) as f64;
        let mean = |sum: u64| sum as f64 / articles;
        format!(
            "{} articles for {} groups, {:.1} MB on the wire\n\
             octets: mean {:.0} ({:.0} of them header), least {}, most {}\n\
             {:.1} % crossposted, {:.1} % with References, {} left out\n\
             digest of the batch: {}\n",
            self.articles,
            self.groups,
            self.octets as f64 / 1e6,
            mean(self.octets),
            mean(self.head_octets),
            self.octets_min,
            self.octets_max,
            mean(self.crossposted) * 100.0,
            mean(self.replies) * 100.0,
            self.left_out,
            self.digest,
        )
    }
}

/// Looks at every article of a corpus.
pub fn facts(corpus: &Corpus) -> CorpusFacts {
    let mut facts = CorpusFacts {
        groups: corpus.groups().len() as u64,
        left_out: corpus.left_out(),
        octets_min: u64::MAX,
        ..CorpusFacts::default()
    };
    let mut article = Vec::new();
    for n in corpus.first()..corpus.end() {
        whole(corpus, n, &mut article);
        let octets = article.len() as u64;
        let head_len =
            memchr::memmem::find(&article, b"\r\n\r\n").map_or(article.len(), |at| at + 4);
        let head = article.get(..head_len).unwrap_or_default();
        facts.articles += 1;
        facts.octets += octets;
        facts.head_octets += head_len as u64;
        facts.octets_min = facts.octets_min.min(octets);
        facts.octets_max = facts.octets_max.max(octets);
        facts.crossposted += u64::from(content(head, b"newsgroups:").contains(&b','));
        facts.replies += u64::from(!content(head, b"references:").is_empty());
    }
    facts.octets_min = facts.octets_min.min(facts.octets_max);
    facts.digest = digest(corpus);
    facts
}

/// BLAKE3 of all articles as one batch, in hexadecimal digits.
pub fn digest(corpus: &Corpus) -> String {
    let mut hasher = blake3::Hasher::new();
    // A hasher takes everything.
    let _ = write_batch(corpus, &mut hasher);
    hasher.finalize().to_hex().to_string()
}

/// Writes all articles as one rnews batch with LF line ends.
pub fn write_batch(corpus: &Corpus, to: &mut dyn Write) -> Result<(), Error> {
    let (mut article, mut text, mut framed) = (Vec::new(), Vec::new(), Vec::new());
    for n in corpus.first()..corpus.end() {
        whole(corpus, n, &mut article);
        text.clear();
        framing::wire_to_lf(&article, &mut text);
        framed.clear();
        wire_batch::write_article(&text, &mut framed);
        to.write_all(&framed).map_err(|source| Error::Stream {
            what: "writing the batch".to_owned(),
            source,
        })?;
    }
    Ok(())
}

/// As [`write_batch`], packed with zstd.
pub fn write_packed_batch(corpus: &Corpus, to: &mut dyn Write) -> Result<(), Error> {
    let stream = |source| Error::Stream {
        what: "packing the batch".to_owned(),
        source,
    };
    let mut encoder = zstd::stream::write::Encoder::new(to, 3).map_err(stream)?;
    write_batch(corpus, &mut encoder)?;
    encoder.finish().map_err(stream)?;
    Ok(())
}

/// Article `n` in wire form with its terminating line.
fn whole(corpus: &Corpus, n: u64, out: &mut Vec<u8>) {
    out.clear();
    let body = corpus.write_article(n, out);
    out.extend_from_slice(body);
    out.extend_from_slice(b".\r\n");
}

/// The first line of a header field, without its name (given in lower case with the colon).
fn content<'a>(head: &'a [u8], name: &[u8]) -> &'a [u8] {
    let lines = head.split(|&octet| octet == b'\n');
    let mut found = lines.filter_map(|line| {
        let (start, rest) = line.split_at_checked(name.len())?;
        start.eq_ignore_ascii_case(name).then(|| rest.trim_ascii())
    });
    found.next().unwrap_or_default()
}
