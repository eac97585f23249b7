//! Batches that come in: each article is handed to the server and answered for, or waits in a file; what is damaged is kept.
//!
//! An input may be let go when [`hand_over`] returned well: then everything that was taken is with the server, or on disk.

pub(crate) mod damages;
pub(crate) mod kept;
mod lzw;
mod members;
pub(crate) mod outgoing;
mod sender;
pub(crate) mod settled;
pub(crate) mod unpack;

use std::io::{self, Read};
use std::net::SocketAddr;

use anyhow::{Context as _, Result, anyhow};
use newsreel_wire::MessageId;
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::batch::{BatchReader, Step};
use newsreel_wire::nntp::framing::lf_to_wire;

use self::damages::Damages;
use self::members::{HINT_OCTETS_MAX, is_hint};
use self::sender::{Line, Sender, Window};
use self::settled::{Settled, Tally};
use self::unpack::{Kind, Next, Parts};
use crate::input::Unread;
use crate::posting;

/// So much is read at once.
const READ_OCTETS: usize = 256 << 10;

/// Has `work` hand over articles, each answered for when this returns; `server`: where to, or why nowhere.
pub(crate) fn hand_over<R>(
    server: &Result<SocketAddr, String>,
    tally: &mut Tally,
    damages: &mut Damages,
    work: impl FnOnce(&mut Taker<'_, '_>) -> Result<R>,
) -> Result<R> {
    let line = match (tally.is_away(), server) {
        (true, _) => None,
        (false, Ok(server)) => Line::open(*server)
            .map_err(|why| tally.is_away_because(why))
            .ok(),
        (false, Err(why)) => {
            tally.is_away_because(why.clone());
            None
        }
    };
    let worked = match line {
        None => work(&mut Taker::new(Way::Waits(tally), damages)),
        Some(line) => {
            let window = Window::default();
            std::thread::scope(|scope| {
                let mut taker = Taker::new(
                    Way::Goes(Sender::start(scope, &window, line, tally)?),
                    damages,
                );
                let ran = work(&mut taker);
                // Why articles can be noted no more is what its thread says.
                if let Way::Goes(sender) = taker.way {
                    sender.finish()?;
                }
                ran
            })
        }
    };
    tally.finish()?;
    damages.finish()?;
    worked
}

/// Whether a server is there and lets us send articles.
pub(crate) fn is_ready(server: SocketAddr) -> Result<(), String> {
    Line::open(server).map(|_| ())
}

/// Where articles go.
enum Way<'scope> {
    /// To the server.
    Goes(Sender<'scope>),
    /// To the file of those that wait.
    Waits(&'scope mut Tally),
}

/// Takes an input apart.
pub(crate) struct Taker<'scope, 'd> {
    way: Way<'scope>,
    pub(crate) damages: &'d mut Damages,
    /// What was read and not looked at.
    buf: Vec<u8>,
    start: usize,
    wire: Vec<u8>,
}

impl<'scope, 'd> Taker<'scope, 'd> {
    const fn new(way: Way<'scope>, damages: &'d mut Damages) -> Self {
        Self {
            way,
            damages,
            buf: Vec::new(),
            start: 0,
            wire: Vec::new(),
        }
    }

    /// Takes a batch, or an article; `false`: it is packed and damaged, and what could be unpacked was taken.
    pub(crate) fn take(&mut self, input: &mut dyn Read) -> Result<bool> {
        let (mut parts, mut is_all) = (Parts::new(input), true);
        while let Some(is_whole) = self.part(&mut parts)? {
            is_all &= is_whole;
        }
        Ok(is_all)
    }

    /// Takes the next part of an input; `false` as [`Taker::take`] says it, none: nothing is left.
    pub(crate) fn part(&mut self, parts: &mut Parts<'_>) -> Result<Option<bool>> {
        self.buf.clear();
        self.start = 0;
        let mut part = match parts.next().context("cannot read it")? {
            Next::Part(part) => part,
            Next::Junk => {
                let why = "something else follows what is packed";
                self.damages.add(None, why);
                return Ok(Some(false));
            }
            Next::End => return Ok(None),
        };
        let was_packed = part.was_packed;
        let (ended, unread) = match part.kind {
            Kind::Article => (self.one_article(&mut *part.reader)?, 0),
            _ => self.batch(&mut *part.reader, !was_packed)?,
        };
        drop(part);
        parts.unread(unread);
        match ended {
            None => Ok(Some(true)),
            Some(error) if was_packed && !Unread::is(&error) => {
                let why = format!("it cannot be unpacked: {error}");
                self.damages.add(None, &why);
                parts.lose_way();
                Ok(Some(false))
            }
            Some(error) => Err(error).context("cannot read it"),
        }
    }

    /// Takes a batch; with what error its reader ended, if with one, and how many of the octets that were read are none of it.  Where
    /// it `may_end_packed` something packed, with a line in front that says so, ends it, between articles: in one it is text as any other.
    fn batch(
        &mut self,
        reader: &mut dyn Read,
        may_end_packed: bool,
    ) -> Result<(Option<io::Error>, usize)> {
        let mut batch = BatchReader::new(posting::ARTICLE_OCTETS_MAX);
        let (mut at_end, mut error, mut is_between) = (false, None, false);
        loop {
            let rest = self.buf.get(self.start..).unwrap_or_default();
            if may_end_packed && is_between {
                if is_hint(rest) {
                    let unread = rest.len();
                    self.buf.clear();
                    self.start = 0;
                    return Ok((error, unread));
                }
                if rest.len() < HINT_OCTETS_MAX && !at_end && error.is_none() {
                    self.flush();
                    match self.refill(reader) {
                        Ok(more) => at_end = !more,
                        Err(why) => (at_end, error) = (!Unread::is(&why), Some(why)),
                    }
                    continue;
                }
            }
            is_between = false;
            let step = batch.next(rest, at_end);
            match step {
                Step::Incomplete { used } => {
                    self.keep(used)?;
                    if error.as_ref().is_some_and(Unread::is) {
                        // What is begun may be whole where it lies.
                        return Ok((error, 0));
                    }
                    self.flush();
                    match self.refill(reader) {
                        Ok(more) => at_end = !more,
                        Err(why) => (at_end, error) = (!Unread::is(&why), Some(why)),
                    }
                }
                Step::End { used } => {
                    self.keep(used)?;
                    return Ok((error, 0));
                }
                Step::Padding { used } => (self.start, is_between) = (self.start + used, true),
                Step::Damaged { at, why, used } => {
                    self.damages.add(Some(at), &why.to_string());
                    self.keep(used)?;
                }
                Step::Article { body, used } => {
                    let octets = std::mem::take(&mut self.buf);
                    let rest = octets.get(self.start..).unwrap_or_default();
                    let header = header_of(rest, body.start);
                    self.damages.keep(rest.get(..header).unwrap_or_default())?;
                    let taken = self.article(rest.get(body).unwrap_or_default());
                    (self.buf, self.start) = (octets, self.start + used);
                    is_between = true;
                    taken?;
                }
            }
        }
    }

    /// Keeps the next octets, because they are no article.
    fn keep(&mut self, octets: usize) -> Result<()> {
        let damaged = self.buf.get(self.start..self.start + octets);
        self.damages.keep(damaged.unwrap_or_default())?;
        self.start += octets;
        Ok(())
    }

    /// Reads some more; `false`: there is no more.
    fn refill(&mut self, reader: &mut dyn Read) -> io::Result<bool> {
        self.buf.drain(..self.start);
        self.start = 0;
        let read = reader.take(READ_OCTETS as u64).read_to_end(&mut self.buf)?;
        Ok(read > 0)
    }

    /// Takes an input that is an article.
    fn one_article(&mut self, reader: &mut dyn Read) -> Result<Option<io::Error>> {
        let mut article = Vec::new();
        let limit = posting::ARTICLE_OCTETS_MAX as u64 + 1;
        let mut error = (&mut *reader).take(limit).read_to_end(&mut article).err();
        if error.as_ref().is_some_and(Unread::is) {
            return Ok(error);
        }
        let is_whole = error.is_none() && (article.len() as u64) < limit;
        if is_whole {
            self.article(&article)?;
            return Ok(None);
        }
        if error.is_none() {
            self.damages
                .add(Some(0), "article is larger than the limit");
        }
        loop {
            self.damages.keep(&article)?;
            article.clear();
            if error.is_some() {
                return Ok(error);
            }
            let read = reader.take(READ_OCTETS as u64).read_to_end(&mut article);
            error = read.err();
            if error.is_none() && article.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Nothing waits here for more to come.
    pub(crate) fn flush(&mut self) {
        if let Way::Goes(sender) = &mut self.way {
            sender.flush();
        }
    }

    /// Hands over an article, with LF or CRLF line ends.
    pub(crate) fn article(&mut self, article: &[u8]) -> Result<()> {
        self.wire.clear();
        match memchr::memchr(b'\r', article) {
            None => lf_to_wire(article, &mut self.wire),
            Some(_) => self.wire = posting::wire_of(article),
        }
        let id = match id_of(&self.wire) {
            Ok(id) => id,
            Err(why) => {
                self.damages.add(None, &why);
                return self.damages.keep_article(article);
            }
        };
        match &mut self.way {
            Way::Waits(tally) => tally.settle(id, article, Settled::Deferred),
            Way::Goes(sender) => match sender.send(id, article, &self.wire) {
                true => Ok(()),
                false => Err(anyhow!("what becomes of articles cannot be noted")),
            },
        }
    }
}

/// Where the header line is that ends at `end`.
fn header_of(octets: &[u8], end: usize) -> usize {
    let before = octets.get(..end.saturating_sub(1)).unwrap_or_default();
    memchr::memrchr(b'\n', before).map_or(0, |lf| lf + 1)
}

/// The message-id of an article in wire form, by which it is offered.
pub(crate) fn id_of(wire: &[u8]) -> Result<&str, String> {
    let headers = Headers::scan_stored(wire);
    let headers = headers.map_err(|fault| format!("an article without a header block: {fault}"))?;
    let Some(field) = headers.get(Known::MessageId) else {
        return Err("an article without a Message-ID field".to_owned());
    };
    let id = MessageId::parse(field.trimmed());
    let id = id.map_err(|error| format!("an article with a malformed Message-ID: {error}"))?;
    std::str::from_utf8(id.as_bytes()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;
    use std::sync::Arc;

    use newsreel_host::{RealClock, RealDisk};
    use serde_json::json;

    use super::kept::Folder;
    use super::*;
    use crate::input::tests::ends_unread;

    /// The article that a bad sector cut was said to be damaged, and kept as if nothing else were left of it.
    #[test]
    fn what_cannot_be_read_is_not_damaged() {
        let article = "Path: a!b\nMessage-ID: <1@x.example>\n\n".to_owned() + &"text\n".repeat(99);
        let batch = format!("#! rnews {}\n{article}", article.len()).repeat(3);
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        packed.write_all(batch.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        let cut = batch.len() - 9;
        let between = batch.len() / 3 * 2;
        for (input, taken) in [
            (&batch.as_bytes()[..cut], 2),
            // Whether an article has the length that it says is seen by what stands behind it.
            (&batch.as_bytes()[..between], 1),
            (&packed[..cut], 2),
            (&article.as_bytes()[..99], 0),
            (b"", 0),
        ] {
            let place = tempfile::tempdir().unwrap();
            let (disk, clock) = (Arc::new(RealDisk), Arc::new(RealClock::new()));
            let folder = Folder::new(disk, clock, place.path().to_owned());
            let mut tally = Tally::new(folder.clone(), false, true);
            let mut damages = Damages::new(folder);
            let away = Err("it is away".to_owned());
            hand_over(&away, &mut tally, &mut damages, |taker| {
                let done = taker.take(&mut ends_unread(Path::new("bad"), input));
                taker.damages.or_unread(done.map(|_| ()))
            })
            .unwrap();
            let mut report = tally.json();
            damages.json(&mut report);
            assert_eq!(
                report["deferred"],
                taken,
                "of {} octets: {report}",
                input.len()
            );
            assert_eq!(
                (&report["damaged"], &report["kept_in"]),
                (&json!(0), &json!([]))
            );
            let named = report["unread"][0].as_str().unwrap();
            assert!(named.starts_with("cannot read bad: "), "{named}");
        }
    }
}
