//! What an input is, by its first octets, and the batch in it: plain, or packed with gzip, bzip2, zstd or compress(1).
//!
//! A line such as `#! cunbatch` in front is a hint that nobody needs: what follows says itself what it is.  Everything is unpacked as
//! it is read, so a bomb costs time and no memory; layers are bounded.

use std::io::{self, BufReader, Cursor, Read};

use super::lzw::{self, Lzw};

/// A batch in a compressed file in a compressed file is enough.
const LAYERS_MAX: usize = 2;
/// What is looked at to say what an input is.
const HEAD_OCTETS: usize = 512;
/// zstd: the largest window that is unpacked, its own default; as much memory may be needed.
const WINDOW_LOG_MAX: u32 = 27;

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

/// What an input is, and the input with its first octets again.
pub(crate) fn look<'r>(mut input: impl Read + 'r) -> io::Result<(Kind, impl Read + 'r)> {
    let mut head = Vec::new();
    (&mut input)
        .take(HEAD_OCTETS as u64)
        .read_to_end(&mut head)?;
    Ok((Kind::of(&head), Cursor::new(head).chain(input)))
}

/// An input without its packings.
pub(crate) struct Unpacked<'r> {
    /// What is inside.
    pub(crate) kind: Kind,
    pub(crate) reader: Box<dyn Read + 'r>,
    /// Whether there was anything to unpack: then an error of the reader may be damage of the packing.
    pub(crate) was_packed: bool,
}

/// Takes the packings off.
pub(crate) fn unpack<'r>(input: impl Read + 'r) -> io::Result<Unpacked<'r>> {
    let mut reader: Box<dyn Read + 'r> = Box::new(input);
    let mut layers = 0;
    loop {
        let (mut head, mut rest) = (Vec::new(), reader);
        let peeked = (&mut rest).take(HEAD_OCTETS as u64).read_to_end(&mut head);
        match peeked {
            Err(error) if layers == 0 => return Err(error),
            // What came before damage is worth looking at, and then the damage is met again.
            Err(error) => rest = Box::new(Failed(Some(error))),
            Ok(_) => {}
        }
        let kind = Kind::of(&head);
        let skipped = if let Kind::Hint(len) = kind { len } else { 0 };
        let head = head.split_off(skipped);
        let whole = Cursor::new(head).chain(rest);
        reader = match kind {
            Kind::Hint(_) => Box::new(whole),
            Kind::Packed(packing) if layers < LAYERS_MAX => {
                layers += 1;
                unpacking(packing, whole)?
            }
            kind => {
                return Ok(Unpacked {
                    kind,
                    reader: Box::new(whole),
                    was_packed: layers > 0,
                });
            }
        };
    }
}

/// Ends with an error.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

fn unpacking<'r>(packing: Packing, packed: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let packed = BufReader::with_capacity(64 << 10, packed);
    Ok(match packing {
        Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
        Packing::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(packed)),
        Packing::Compress => Box::new(BufReader::new(Lzw::new(packed)?)),
        Packing::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            Box::new(decoder)
        }
    })
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
