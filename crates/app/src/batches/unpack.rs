//! What an input is, by its first octets, and the batch in it: plain, or packed with gzip, bzip2, zstd or compress(1).
//!
//! A line such as `#! cunbatch` in front is a hint that nobody needs: what follows says itself what it is.  Everything is unpacked as
//! it is read, so a bomb costs time and no memory; layers are bounded.  Where several packed batches are in an input, one that is damaged
//! costs none behind it that has such a line in front.

use std::io::{self, BufRead as _, Read};

use super::lzw;
use super::members::{Ahead as _, Members, Raw, skip_padding};

/// A batch in a compressed file in a compressed file is enough.
const LAYERS_MAX: usize = 2;
/// How far a decoder may go beyond the end of what is damaged, and what follows is still found; and more than is read at once of what is not
/// packed, so that it can be unread.
const KEPT_OCTETS: usize = 320 << 10;
/// What is looked at to say what an input is.
const HEAD_OCTETS: usize = 512;

/// What lies in an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing.
    Empty,
    /// A batch, or what is left of one.
    Batch,
    /// One article without a batch's header.
    Article,
    /// Something to unpack.
    Packed(Packing),
    /// A line that says that something to unpack follows; its length.
    Hint(usize),
}

/// How something is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Bzip2,
    Zstd,
    Compress,
}

impl Kind {
    /// Tells it by the first octets.
    pub(crate) fn of(head: &[u8]) -> Self {
        let packings = [
            (&b"\x1f\x8b"[..], Packing::Gzip),
            (b"BZh", Packing::Bzip2),
            (b"\x28\xb5\x2f\xfd", Packing::Zstd),
            (lzw::MAGIC, Packing::Compress),
        ];
        if let Some((_, packing)) = packings.iter().find(|(magic, _)| head.starts_with(magic)) {
            return Self::Packed(*packing);
        }
        let line_end = head.iter().position(|octet| *octet == b'\n');
        let line = head
            .get(..line_end.unwrap_or(head.len()))
            .unwrap_or_default();
        match line.strip_prefix(b"#! ") {
            Some(word) if line_end.is_some() && word.trim_ascii().ends_with(b"unbatch") => {
                Self::Hint(line.len() + 1)
            }
            _ if head.is_empty() => Self::Empty,
            _ if is_field(line) => Self::Article,
            _ => Self::Batch,
        }
    }
}

/// Whether a line begins as a header field does.
fn is_field(line: &[u8]) -> bool {
    let name = line
        .split(|octet| *octet == b':')
        .next()
        .unwrap_or_default();
    !name.is_empty() && name.len() < line.len() && name.iter().all(u8::is_ascii_graphic)
}

/// An input without its packings.
pub(crate) struct Unpacked<'r> {
    /// What is inside.
    pub(crate) kind: Kind,
    pub(crate) reader: Box<dyn Read + 'r>,
    /// Whether there was anything to unpack: then an error of the reader may be damage of the packing.
    pub(crate) was_packed: bool,
}

/// Takes the packings off; nothing else may follow.
pub(crate) fn unpack<'r>(input: impl Read + 'r) -> io::Result<Unpacked<'r>> {
    unpacked(Box::new(input), 0)
}

/// Takes off what is left of packings, so many being off.
fn unpacked<'r>(mut reader: Box<dyn Read + 'r>, mut layers: usize) -> io::Result<Unpacked<'r>> {
    loop {
        let mut raw = Raw::new(reader);
        let head = raw.head(HEAD_OCTETS);
        let (kind, is_empty) = (Kind::of(head), head.is_empty());
        // What came before damage, or before what cannot be read, is worth looking at, and then that is met again.
        if layers == 0
            && is_empty
            && let Some(error) = raw.take_failure()
        {
            return Err(error);
        }
        reader = match kind {
            Kind::Hint(len) => {
                raw.consume(len);
                Box::new(raw)
            }
            Kind::Packed(packing) if layers < LAYERS_MAX => {
                layers += 1;
                Box::new(Members::new(packing, raw, true))
            }
            kind => {
                return Ok(Unpacked {
                    kind,
                    reader: Box::new(raw),
                    was_packed: layers > 0,
                });
            }
        };
    }
}

/// An input that may be several: packed batches one behind the other, each behind a line that says so.
pub(crate) struct Parts<'r> {
    raw: Raw<'r>,
    is_first: bool,
    /// Where the next one begins is to be looked for.
    is_lost: bool,
}

/// What comes next.
pub(crate) enum Next<'p> {
    /// One of them, to be read to its end.
    Part(Unpacked<'p>),
    /// Something else.
    Junk,
    /// Nothing.
    End,
}

impl<'r> Parts<'r> {
    pub(crate) fn new(input: impl Read + 'r) -> Self {
        Self {
            raw: Raw::that_keeps(Box::new(input), KEPT_OCTETS),
            is_first: true,
            is_lost: false,
        }
    }

    /// Whether what comes next is packed.
    pub(crate) fn is_packed(&mut self) -> bool {
        let head = self.raw.head(HEAD_OCTETS);
        matches!(Kind::of(head), Kind::Packed(_) | Kind::Hint(_))
    }

    /// What was not taken yet.
    pub(crate) fn rest(self) -> impl Read + 'r {
        self.raw
    }

    /// The last one was damaged: it ends anywhere.
    pub(crate) const fn lose_way(&mut self) {
        self.is_lost = true;
    }

    /// The last octets of what was not packed are none of it: they are looked at again.
    pub(crate) const fn unread(&mut self, octets: usize) {
        self.raw.unread(octets);
    }

    pub(crate) fn next(&mut self) -> io::Result<Next<'_>> {
        if std::mem::take(&mut self.is_lost) {
            self.raw.go_back();
            if !self.raw.skip_to_hint()? {
                return Ok(Next::End);
            }
        }
        let is_first = std::mem::take(&mut self.is_first);
        if !is_first {
            skip_padding(&mut self.raw)?;
        }
        let (kind, is_batch) = loop {
            let head = self.raw.head(HEAD_OCTETS);
            let (kind, is_batch) = (Kind::of(head), head.starts_with(b"#! rnews "));
            let is_something = match kind {
                Kind::Hint(_) | Kind::Packed(_) => true,
                _ => is_batch || is_first && !head.is_empty(),
            };
            // What it is may stand in what cannot be read; what is known is taken as far as it goes.
            if !is_something && let Some(error) = self.raw.take_failure() {
                return Err(error);
            }
            match kind {
                Kind::Hint(len) => self.raw.consume(len),
                kind => break (kind, is_batch),
            }
        };
        self.raw.mark();
        match kind {
            Kind::Packed(packing) => {
                let members = Members::new(packing, &mut self.raw, false);
                unpacked(Box::new(members), 1).map(Next::Part)
            }
            kind if is_first || is_batch => Ok(Next::Part(Unpacked {
                kind,
                reader: Box::new(&mut self.raw),
                was_packed: false,
            })),
            Kind::Empty => Ok(Next::End),
            _ => {
                self.is_lost = true;
                Ok(Next::Junk)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const BATCH: &[u8] = b"#! rnews 2\na\n#! rnews 2\nb\n";

    fn gzip(octets: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(octets).unwrap();
        out.finish().unwrap()
    }

    fn bzip2(octets: &[u8]) -> Vec<u8> {
        let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        out.write_all(octets).unwrap();
        out.finish().unwrap()
    }

    fn zstd(octets: &[u8]) -> Vec<u8> {
        zstd::stream::encode_all(octets, 1).unwrap()
    }

    fn check(input: &[u8], kind: Kind, text: &[u8]) {
        let mut found = unpack(input).unwrap();
        let mut got = Vec::new();
        found.reader.read_to_end(&mut got).unwrap();
        assert_eq!((found.kind, &got[..]), (kind, text), "{input:?}");
    }

    #[test]
    fn batches_are_known_by_what_they_are() {
        check(b"", Kind::Empty, b"");
        check(BATCH, Kind::Batch, BATCH);
        check(b"Path: a\n\nb\n", Kind::Article, b"Path: a\n\nb\n");
        check(b"some text: it\n", Kind::Batch, b"some text: it\n");
        let lzw = lzw::tests::compress(BATCH, 16, 0);
        for packed in [gzip(BATCH), bzip2(BATCH), zstd(BATCH), lzw] {
            check(&packed, Kind::Batch, BATCH);
            for hint in ["#! cunbatch\n", "#! gunbatch\n", "#! zunbatch \n"] {
                check(&[hint.as_bytes(), &packed].concat(), Kind::Batch, BATCH);
            }
            // Files that were put behind each other, and one in another.
            check(&gzip(&packed), Kind::Batch, BATCH);
        }
        let both = BATCH.repeat(2);
        for packed in [gzip(BATCH), bzip2(BATCH), zstd(BATCH)] {
            check(&packed.repeat(2), Kind::Batch, &both);
        }
        let deep = gzip(&gzip(&gzip(BATCH)));
        check(&deep, Kind::Packed(Packing::Gzip), &gzip(BATCH));
    }

    /// All batches of an input one behind the other, and each damage.
    fn parts(input: &[u8]) -> Vec<String> {
        let (mut parts, mut found) = (Parts::new(input), Vec::new());
        loop {
            let mut part = match parts.next().unwrap() {
                Next::Part(part) => part,
                Next::Junk => {
                    found.push("junk".to_owned());
                    continue;
                }
                Next::End => return found,
            };
            let mut got = Vec::new();
            let read = part.reader.read_to_end(&mut got);
            drop(part);
            found.push(String::from_utf8_lossy(&got).into_owned());
            if read.is_err() {
                found.push("damaged".to_owned());
                parts.lose_way();
            }
        }
    }

    /// Of several packed batches in one file only the first was taken.
    #[test]
    fn packed_batches_one_behind_the_other_are_all_found() {
        let hinted = |packed: &[u8]| [b"#! cunbatch\n", packed].concat();
        let [first, second] = ["#! rnews 2\na\n", "#! rnews 2\nb\n"];
        type Packing = fn(&[u8]) -> Vec<u8>;
        let packings: [Packing; 4] = [gzip, bzip2, zstd, |text| lzw::tests::compress(text, 16, 0)];
        for (nth, one) in packings.into_iter().enumerate() {
            for other in packings {
                let both = [
                    hinted(&one(first.as_bytes())),
                    hinted(&other(second.as_bytes())),
                ];
                assert_eq!(parts(&both.concat()), [first, second]);
                // What compress(1) made has no end of its own.
                if nth < 3 {
                    assert_eq!(parts(&both.join(&b"\n\0\0"[..])), [first, second]);
                }
            }
            // The damage of one costs none of another.
            let mut cut = hinted(&one(&BATCH.repeat(2000)));
            cut.truncate(cut.len() - 9);
            cut.extend_from_slice(&hinted(&gzip(second.as_bytes())));
            let found = parts(&cut);
            assert!(found.last().is_some_and(|last| last == second));
        }
        let [one, other] = [first, second].map(|text| gzip(text.as_bytes()));
        let behind = |more: &[u8]| parts(&[&one[..], more].concat());
        assert_eq!(behind(second.as_bytes()), [first, second]);
        assert_eq!(behind(b"\0\0\0\n"), [first]);
        assert_eq!(behind(b"other"), [first, "junk"]);
        let more = [&b"other"[..], &hinted(&other)].concat();
        assert_eq!(behind(&more), [first, "junk", second]);
    }

    /// What an article says is no line of the file's.
    #[test]
    fn an_article_cannot_end_a_batch() {
        let line = [b"#! cunbatch\n", &gzip(BATCH)[..]].concat();
        let mut batch = Vec::new();
        newsreel_wire::batch::write_article(&line, &mut batch);
        // As it is in the packed file, too.
        let mut stored = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        stored.write_all(&batch).unwrap();
        for input in [batch.clone(), stored.finish().unwrap()] {
            let mut parts = Parts::new(&input[..]);
            let Next::Part(mut part) = parts.next().unwrap() else {
                panic!("nothing was found");
            };
            let mut got = Vec::new();
            part.reader.read_to_end(&mut got).unwrap();
            assert_eq!(got, batch);
            drop(part);
            assert!(matches!(parts.next().unwrap(), Next::End));
        }
    }

    #[test]
    fn what_is_damaged_from_the_beginning_is_told() {
        let packed = [gzip(BATCH), bzip2(BATCH), zstd(BATCH)];
        for cut in packed.iter().map(|packed| &packed[..packed.len() - 5]) {
            for cut in [cut, &cut[..12], &gzip(cut)] {
                let read = unpack(cut).and_then(|mut it| it.reader.read_to_end(&mut Vec::new()));
                assert!(read.is_err(), "{cut:?}");
            }
        }
    }

    #[test]
    fn what_comes_before_damage_is_given_out() {
        let many: Vec<u8> = (0..9000u32)
            .flat_map(|n| format!("#! rnews 5\n{n:04}\n").into_bytes())
            .collect();
        for packed in [gzip(&many), bzip2(&many), zstd(&many)] {
            let cut = &packed[..packed.len() - 9];
            let (mut got, mut reader) = (Vec::new(), unpack(cut).unwrap().reader);
            assert!(reader.read_to_end(&mut got).is_err());
            assert!(many.starts_with(&got));
        }
    }
}
