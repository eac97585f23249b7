//! Packed files one behind the other: an input whose first octets can be looked at, and what is packed in it, member by member.
//!
//! A decoder takes no octet behind its own end, except compress(1)'s, whose form has none: that one ends where a line such as `#! cunbatch`
//! stands in front of something packed.

use std::io::{self, BufRead, Read};

use memchr::memmem;

use super::lzw::Lzw;
use super::unpack::{Kind, Packing};

/// So much is read at once.
const READ_OCTETS: usize = 64 << 10;
/// zstd: the largest window that is unpacked, its own default; as much memory may be needed.
const WINDOW_LOG_MAX: u32 = 27;
/// A line as `#! cunbatch` and the beginning of what is packed behind it.
pub(crate) const HINT_OCTETS_MAX: usize = 36;
/// So much is searched at once for such a line.
const SEARCHED_OCTETS: usize = 4096;

/// What can be looked at before it is read.
pub(crate) trait Ahead: BufRead {
    /// The next octets: so many, or all there are.
    fn head(&mut self, octets: usize) -> &[u8];
}

/// An input whose next octets can be looked at.
pub(crate) struct Raw<'r> {
    inner: Box<dyn Read + 'r>,
    buf: Vec<u8>,
    start: usize,
    /// How much of what was read stays, and from where on it is gone back to.
    kept: usize,
    mark: usize,
    /// What is told when all before it was given out.
    failed: Option<io::Error>,
    at_end: bool,
}

impl<'r> Raw<'r> {
    pub(crate) fn new(inner: Box<dyn Read + 'r>) -> Self {
        Self::that_keeps(inner, 0)
    }

    /// One that can be gone back in.
    pub(crate) fn that_keeps(inner: Box<dyn Read + 'r>, kept: usize) -> Self {
        Self {
            inner,
            buf: Vec::new(),
            start: 0,
            kept,
            mark: 0,
            failed: None,
            at_end: false,
        }
    }

    /// This place is gone back to.
    pub(crate) const fn mark(&mut self) {
        self.mark = self.start;
    }

    /// Goes back to the mark, or as far as can be: a decoder of something damaged reads beyond its end.
    pub(crate) const fn go_back(&mut self) {
        self.start = self.mark;
    }

    /// The last of what was read is read once more; no more than is kept.
    pub(crate) const fn unread(&mut self, octets: usize) {
        self.start = self.start.saturating_sub(octets);
    }

    /// What kept more from being looked at.
    pub(crate) const fn take_failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }

    fn rest(&self) -> &[u8] {
        self.buf.get(self.start..).unwrap_or_default()
    }

    /// Goes to the next line that says that something packed follows; `false`: there is none.
    pub(crate) fn skip_to_hint(&mut self) -> io::Result<bool> {
        loop {
            let head = self.head(SEARCHED_OCTETS);
            let (len, found) = (head.len(), find_hint(head));
            let is_all = len < SEARCHED_OCTETS;
            match found {
                Some(at) => {
                    self.consume(at);
                    return Ok(true);
                }
                None if is_all => self.consume(len),
                None => self.consume(len - HINT_OCTETS_MAX),
            }
            if is_all && self.fill_buf()?.is_empty() {
                return Ok(false);
            }
        }
    }
}

impl Ahead for Raw<'_> {
    fn head(&mut self, octets: usize) -> &[u8] {
        while self.rest().len() < octets && self.failed.is_none() && !self.at_end {
            let old = self.start.saturating_sub(self.kept);
            if old >= self.kept {
                self.buf.drain(..old);
                (self.start, self.mark) = (self.start - old, self.mark.saturating_sub(old));
            }
            let missing = octets.max(READ_OCTETS) - self.rest().len();
            let read = (&mut self.inner)
                .take(missing as u64)
                .read_to_end(&mut self.buf);
            match read {
                Ok(0) => self.at_end = true,
                Ok(_) => {}
                Err(error) => self.failed = Some(error),
            }
        }
        let rest = self.rest();
        rest.get(..octets).unwrap_or(rest)
    }
}

impl Ahead for &mut Raw<'_> {
    fn head(&mut self, octets: usize) -> &[u8] {
        (**self).head(octets)
    }
}

impl BufRead for Raw<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.head(1);
        if self.rest().is_empty()
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        Ok(self.rest())
    }

    fn consume(&mut self, octets: usize) {
        self.start = self.buf.len().min(self.start + octets);
    }
}

impl Read for Raw<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.fill_buf()?;
        let read = rest.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

/// Where a line stands that says that something packed follows, and something packed follows.
fn find_hint(octets: &[u8]) -> Option<usize> {
    let is_at = |at: &usize| is_hint(octets.get(*at..).unwrap_or_default());
    memmem::find_iter(octets, b"#! ").find(is_at)
}

/// Whether such a line begins here, with something packed behind it.
pub(crate) fn is_hint(octets: &[u8]) -> bool {
    let line = octets.get(..HINT_OCTETS_MAX).unwrap_or(octets);
    let Kind::Hint(len) = Kind::of(line) else {
        return false;
    };
    matches!(
        Kind::of(line.get(len..).unwrap_or_default()),
        Kind::Packed(_)
    )
}

/// Passes over blank lines and zeros, with which files are filled up.
pub(crate) fn skip_padding(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let octets = input.fill_buf()?;
        let many = octets.iter().take_while(|octet| is_padding(**octet));
        let (many, all) = (many.count(), octets.len());
        input.consume(many);
        if many == 0 || many < all {
            return Ok(());
        }
    }
}

const fn is_padding(octet: u8) -> bool {
    matches!(octet, b'\n' | b'\r' | b' ' | b'\t' | 0)
}

/// An input up to the next line that says that something packed follows.
struct UntilHint<R> {
    input: R,
    /// So many octets have no such line.
    clear: usize,
}

impl<R: Ahead> Read for UntilHint<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.clear == 0 {
            let head = self.input.head(SEARCHED_OCTETS);
            self.clear = match find_hint(head) {
                Some(at) => at,
                None if head.len() < SEARCHED_OCTETS => head.len(),
                None => head.len() - HINT_OCTETS_MAX,
            };
            if self.clear == 0 {
                // The end, a line, or what keeps us from reading on.
                self.input.fill_buf()?;
                return Ok(0);
            }
        }
        let mut octets = self.input.fill_buf()?;
        octets = octets.get(..self.clear).unwrap_or(octets);
        let read = octets.read(out)?;
        self.input.consume(read);
        self.clear -= read;
        Ok(read)
    }
}

/// What takes one packing off.
enum Decoder<R: BufRead> {
    Gzip(Box<flate2::bufread::GzDecoder<R>>),
    Bzip2(bzip2::bufread::BzDecoder<R>),
    Zstd(zstd::stream::read::Decoder<'static, R>),
    Compress(Box<Lzw<UntilHint<R>>>),
}

impl<R: Ahead> Decoder<R> {
    fn new(packing: Packing, input: R) -> io::Result<Self> {
        Ok(match packing {
            Packing::Gzip => Self::Gzip(Box::new(flate2::bufread::GzDecoder::new(input))),
            Packing::Bzip2 => Self::Bzip2(bzip2::bufread::BzDecoder::new(input)),
            Packing::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(input)?;
                let mut decoder = decoder.single_frame();
                decoder.window_log_max(WINDOW_LOG_MAX)?;
                Self::Zstd(decoder)
            }
            Packing::Compress => {
                let input = UntilHint { input, clear: 0 };
                Self::Compress(Box::new(Lzw::new(input)?))
            }
        })
    }

    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(decoder) => decoder.read(out),
            Self::Bzip2(decoder) => decoder.read(out),
            Self::Zstd(decoder) => decoder.read(out),
            Self::Compress(decoder) => decoder.read(out),
        }
    }

    fn into_inner(self) -> R {
        match self {
            Self::Gzip(decoder) => decoder.into_inner(),
            Self::Bzip2(decoder) => decoder.into_inner(),
            Self::Zstd(decoder) => decoder.finish(),
            Self::Compress(decoder) => decoder.into_inner().input,
        }
    }
}

/// Packed files one behind the other, without their packing.
pub(crate) struct Members<R: Ahead> {
    decoder: Option<Decoder<R>>,
    /// What is told first.
    failed: Option<io::Error>,
    /// Whether nothing else may follow.
    is_all: bool,
}

impl<R: Ahead> Members<R> {
    pub(crate) fn new(packing: Packing, input: R, is_all: bool) -> Self {
        let (decoder, failed) = match Decoder::new(packing, input) {
            Ok(decoder) => (Some(decoder), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            decoder,
            failed,
            is_all,
        }
    }

    /// Goes to the next member; `false`: there is none.
    fn next(&mut self) -> io::Result<bool> {
        let Some(decoder) = self.decoder.take() else {
            return Ok(false);
        };
        let was_zstd = matches!(decoder, Decoder::Zstd(_));
        let mut input = decoder.into_inner();
        let head = input.head(HINT_OCTETS_MAX);
        // What a reader of zstd passes over, its tables for example.
        let is_skipped = was_zstd && matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
        match Kind::of(head) {
            Kind::Packed(packing) => self.decoder = Some(Decoder::new(packing, input)?),
            _ if is_skipped => self.decoder = Some(Decoder::new(Packing::Zstd, input)?),
            _ if self.is_all => {
                skip_padding(&mut input)?;
                if !input.fill_buf()?.is_empty() {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "something else follows what is packed",
                    ));
                }
            }
            _ => {}
        }
        Ok(self.decoder.is_some())
    }
}

impl<R: Ahead> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while let Some(decoder) = &mut self.decoder {
            let read = decoder.read(out)?;
            if read > 0 || out.is_empty() || !self.next()? {
                return Ok(read);
            }
        }
        Ok(0)
    }
}
