//! Real articles from rnews batches (plain or packed with zstd) and from directories of articles.
//!
//! Invariant: articles are kept in wire form, one after the other in one piece of memory, and every
//! one has a message-id that no earlier one has; others are counted and left out.
//! Must not mend articles: what a server is to refuse reaches it as it is.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, File, OpenMode};
use newsreel_wire::batch::{BatchReader, Step};
use newsreel_wire::nntp::framing;

use super::clones::{field_len, first_line};
use crate::error::Error;

/// Packers use windows up to this for archives of news (`zstd --long=27`).
const ZSTD_WINDOW_LOG: u32 = 27;

#[derive(Debug, Clone, Copy)]
struct Place {
    start: usize,
    /// Where the body begins, after the empty line.
    body: usize,
    /// Where the terminating line begins.
    end: usize,
    id_start: usize,
    id_end: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Loaded {
    wire: Vec<u8>,
    places: Vec<Place>,
    by_id: HashMap<Box<[u8]>, u32>,
    groups: Vec<String>,
    /// Articles without a message-id, and second ones with the same.
    pub(crate) left_out: u64,
}

impl Loaded {
    pub(crate) fn load(disk: &dyn Disk, from: &[PathBuf]) -> Result<Self, Error> {
        let mut loaded = Self::default();
        let mut groups = BTreeSet::new();
        for path in from {
            loaded.add_path(disk, path, &mut groups)?;
        }
        loaded.groups = groups.into_iter().collect();
        Ok(loaded)
    }

    pub(crate) fn len(&self) -> u64 {
        self.places.len() as u64
    }

    pub(crate) fn groups(&self) -> &[String] {
        &self.groups
    }

    pub(crate) fn message_id(&self, n: u64) -> &[u8] {
        self.span(n, |place| place.id_start..place.id_end)
    }

    /// The article without its terminating line.
    pub(crate) fn article(&self, n: u64) -> &[u8] {
        self.span(n, |place| place.start..place.end)
    }

    /// The header block with its empty line, and the body.
    pub(crate) fn parts(&self, n: u64) -> (&[u8], &[u8]) {
        let head = self.span(n, |place| place.start..place.body);
        (head, self.span(n, |place| place.body..place.end))
    }

    pub(crate) fn find(&self, message_id: &[u8]) -> Option<u64> {
        self.by_id.get(message_id).map(|&n| u64::from(n))
    }

    fn span(&self, n: u64, of: impl Fn(&Place) -> std::ops::Range<usize>) -> &[u8] {
        let place = usize::try_from(n).ok().and_then(|n| self.places.get(n));
        place
            .and_then(|place| self.wire.get(of(place)))
            .unwrap_or_default()
    }

    fn add_path(
        &mut self,
        disk: &dyn Disk,
        path: &Path,
        groups: &mut BTreeSet<String>,
    ) -> Result<(), Error> {
        if let Ok(entries) = disk.list(path) {
            for entry in entries {
                self.add_path(disk, &path.join(&entry.name), groups)?;
            }
            return Ok(());
        }
        let octets = read_all(disk, path)?;
        if !octets.starts_with(b"#! rnews ") {
            self.add_article(&octets, groups);
            return Ok(());
        }
        let mut reader = BatchReader::new(usize::MAX / 2);
        let mut rest = &octets[..];
        loop {
            let used = match reader.next(rest, true) {
                Step::End { .. } | Step::Incomplete { used: 0 } => return Ok(()),
                Step::Incomplete { used } | Step::Padding { used } => used,
                Step::Article { body, used } => {
                    self.add_article(rest.get(body).unwrap_or_default(), groups);
                    used
                }
                Step::Damaged { at, why, .. } => {
                    let path = path.to_path_buf();
                    return Err(Error::Batch { path, at, why });
                }
            };
            rest = rest.get(used..).unwrap_or_default();
        }
    }

    /// Adds one article with LF (or CRLF) line ends.
    fn add_article(&mut self, text: &[u8], groups: &mut BTreeSet<String>) {
        let start = self.wire.len();
        if is_crlf(text) {
            framing::dot_stuff(text, &mut self.wire);
        } else {
            framing::lf_to_wire(text, &mut self.wire);
        }
        let end = self.wire.len() - b".\r\n".len();
        let article = self.wire.get(start..end).unwrap_or_default();
        let head_len =
            memchr::memmem::find(article, b"\r\n\r\n").map_or(article.len(), |at| at + 4);
        let (mut id, mut newsgroups) = (None, None);
        let mut rest = article.get(..head_len).unwrap_or_default();
        while !rest.is_empty() {
            let (field, behind) = rest.split_at(field_len(rest));
            rest = behind;
            id = id.or_else(|| content(field, b"message-id:").map(first_line));
            newsgroups = newsgroups.or_else(|| content(field, b"newsgroups:"));
        }
        let known = id.is_none_or(|id| id.is_empty() || self.by_id.contains_key(id));
        let (Some(id), false) = (id, known) else {
            self.left_out += 1;
            self.wire.truncate(start);
            return;
        };
        for name in newsgroups.unwrap_or_default().split(|&octet| octet == b',') {
            if let Ok(name) = newsreel_wire::GroupName::parse(name.trim_ascii())
                && !groups.contains(name.as_str())
            {
                groups.insert(name.as_str().to_owned());
            }
        }
        let id_start = start + memchr::memmem::find(article, id).unwrap_or_default();
        let id_end = id_start + id.len();
        self.by_id.insert(id.into(), self.places.len() as u32);
        self.places.push(Place {
            start,
            body: start + head_len,
            end,
            id_start,
            id_end,
        });
    }
}

/// The trimmed content of a header field of this name (lower case, with the colon), with the lines that go on with it.
fn content<'a>(field: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = field.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| rest.trim_ascii())
}

fn is_crlf(text: &[u8]) -> bool {
    memchr::memchr(b'\n', text).is_some_and(|at| at > 0 && text.get(at - 1) == Some(&b'\r'))
}

/// Reads a file, unpacked when its name ends in `.zst`.
fn read_all(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, Error> {
    let file = disk.open(path, OpenMode::Read)?;
    let stream = |source| Error::Stream {
        what: path.display().to_string(),
        source,
    };
    let mut octets = Vec::with_capacity(usize::try_from(file.len()?).unwrap_or_default());
    let mut reader = Reader { file, at: 0 };
    if path.extension().is_some_and(|extension| extension == "zst") {
        let mut decoder = zstd::stream::read::Decoder::new(reader).map_err(stream)?;
        decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(stream)?;
        decoder.read_to_end(&mut octets).map_err(stream)?;
    } else {
        reader.read_to_end(&mut octets).map_err(stream)?;
    }
    Ok(octets)
}

struct Reader {
    file: Arc<dyn File>,
    at: u64,
}

impl Read for Reader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read_at(buf, self.at).map_err(io::Error::other)?;
        self.at += got as u64;
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use newsreel_host::MemoryDisk;

    use super::*;

    const FIRST: &str = "Path: a!b\nMessage-ID: <1@x.example>\nNewsgroups: a.b, c.d\n\n.dot\nend\n";
    const SECOND: &str = "message-id:  <2@x.example> \nNewsgroups: c.d\n\nbody without newline";

    fn disk(files: &[(&str, Vec<u8>)]) -> MemoryDisk {
        let disk = MemoryDisk::new();
        disk.create_dir_all(Path::new("/in")).unwrap();
        for (name, octets) in files {
            let path = Path::new("/in").join(name);
            disk.open(&path, OpenMode::CreateNew)
                .unwrap()
                .write_at(octets, 0)
                .unwrap();
        }
        disk
    }

    fn batch(articles: &[&str]) -> Vec<u8> {
        let framed = articles
            .iter()
            .map(|text| format!("#! rnews {}\n{text}", text.len()));
        framed.collect::<String>().into_bytes()
    }

    fn check(loaded: &Loaded) {
        assert_eq!((loaded.len(), loaded.left_out), (2, 1));
        assert_eq!(loaded.message_id(0), b"<1@x.example>");
        assert_eq!(loaded.parts(0).1, b"..dot\r\nend\r\n");
        assert!(loaded.article(0).starts_with(b"Path: a!b\r\n"));
        assert_eq!(loaded.message_id(1), b"<2@x.example>");
        assert_eq!(loaded.parts(1).1, b"body without newline\r\n");
        assert_eq!(loaded.find(b"<2@x.example>"), Some(1));
        assert_eq!(loaded.find(b"<3@x.example>"), None);
        assert_eq!(loaded.groups(), ["a.b", "c.d"]);
        assert_eq!(loaded.message_id(2), b"");
    }

    #[test]
    fn batches_packed_batches_and_directories_give_the_same() {
        let plain = batch(&[FIRST, SECOND, FIRST]);
        let packed = zstd::encode_all(&plain[..], 3).unwrap();
        for (name, octets) in [("a.rnews", plain), ("a.rnews.zst", packed)] {
            let disk = disk(&[(name, octets)]);
            check(&Loaded::load(&disk, &[Path::new("/in").join(name)]).unwrap());
        }
        let crlf = FIRST.replace('\n', "\r\n").into_bytes();
        let disk = disk(&[
            ("1", crlf),
            ("2", SECOND.into()),
            ("3", b"no header\n".to_vec()),
        ]);
        check(&Loaded::load(&disk, &[PathBuf::from("/in")]).unwrap());
    }

    /// Articles with the id on a line of its own were left out, as if they had none.
    #[test]
    fn what_goes_on_in_the_next_line_is_read() {
        let folded = "Path: a\nMessage-ID:\n <4@x.example>\nNewsgroups: a.b,\n\tc.d\n\nbody\n";
        for octets in [
            batch(&[folded, FIRST]),
            batch(&[&folded.replace('\n', "\r\n"), FIRST]),
        ] {
            let disk = disk(&[("b", octets)]);
            let loaded = Loaded::load(&disk, &[PathBuf::from("/in/b")]).unwrap();
            assert_eq!((loaded.len(), loaded.left_out), (2, 0));
            assert_eq!(loaded.message_id(0), b"<4@x.example>");
            assert_eq!(loaded.find(b"<4@x.example>"), Some(0));
            assert_eq!(loaded.groups(), ["a.b", "c.d"]);
        }
    }

    #[test]
    fn a_damaged_batch_is_an_error_that_says_where() {
        let mut octets = batch(&[FIRST]);
        let at = octets.len();
        octets.extend_from_slice(b"#! rnews 999\nshort");
        let disk = disk(&[("b", octets)]);
        let error = Loaded::load(&disk, &[PathBuf::from("/in/b")])
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            format!("/in/b at octet {at}: batch ends in the middle of an article")
        );
    }
}
