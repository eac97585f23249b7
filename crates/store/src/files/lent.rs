//! Articles that lie in a buffer or segment of another spool, and stay there: `attached` in the configuration.
//!
//! The catalogue, which is ours, has a card for each: its Xref is ours, its checksums are those of the article with that, and its name
//! says where the article lies, as the key of the file and the token there.  The file is only read, and opened when somebody wants an article.  One that was overwritten there is gone as
//! one whose file somebody removed; while the file is away, or another lies in its place, nothing is taken for gone.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_host::{Disk, Error as HostError, FileFacts, Op};
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::nntp::framing::is_whole_block;
use newsreel_wire::{Position, SetId, TOKEN_OCTETS, Token, TokenParts};
use parking_lot::RwLock;

use super::card::Card;
use super::folder::{TextError, check};
use super::set;
use crate::config::SetConfig;
use crate::error::{Error, ReadError, Result};
use crate::method::{Blocking, BufferReader, Want};
use crate::methods::cnfs;
use crate::methods::{OpenedSet, Opening};
use crate::records::buffer::Buffer;
use crate::records::home::Kind;

/// The first octet of its tokens.
pub(crate) const METHOD: u8 = 6;
/// Its name in the configuration.
pub(crate) const NAME: &str = "attached";

/// Opens a set; nobody looks at the other file yet.
pub(crate) fn open(opening: &mut Opening<'_>, set: SetId, config: &SetConfig) -> Result<OpenedSet> {
    let Some(path) = config.file.clone() else {
        return Err(Error::Config(format!(
            "set {:?} has no `file`: name the buffer whose articles it has",
            config.name
        )));
    };
    let kind = Kind {
        number: METHOD,
        name: NAME,
        is_of_articles: false,
    };
    let lender = Lender {
        disk: Arc::clone(opening.disk),
        path,
        file: RwLock::default(),
    };
    set::open_of(
        (kind, set::Texts::Lent(Arc::new(lender))),
        opening,
        set,
        config,
    )
}

/// The file of another spool in which the articles of a set lie, as it was opened last.
#[derive(Debug, Clone)]
pub struct Lent {
    buffer: Arc<Buffer>,
}

impl Lent {
    /// What reads it.
    #[must_use]
    pub fn reader(&self) -> Arc<dyn BufferReader> {
        Arc::clone(&self.buffer) as Arc<dyn BufferReader>
    }
}

/// The key of a file and the token in it, as the name in a card says them.
fn place_of(name: &str) -> Option<(&str, Token)> {
    let (key, digits) = name.split_once('/')?;
    let mut octets = [0; TOKEN_OCTETS];
    let is_right = digits.len() == 2 * TOKEN_OCTETS && digits.is_ascii();
    for (octet, at) in octets.iter_mut().zip((0..).step_by(2)) {
        let two = digits.get(at..at + 2).filter(|_| is_right)?;
        *octet = u8::from_str_radix(two, 16).ok()?;
    }
    Some((key, Token::from_bytes(octets)))
}

/// The file, as far as it was looked at.
#[derive(Debug, Default)]
enum Looked {
    /// It was not, or could not be read.
    #[default]
    Not,
    /// It is what it should be.
    Open(Arc<Buffer>, As),
    /// It is none that can be read, which takes long to find out: it is not looked at again before it has changed.
    Refused(String, As),
}

/// How the file was when it was looked at, where the file system tells: another one may have its name by now.
type As = Option<FileFacts>;

/// Who lends a set its articles.
#[derive(Debug)]
pub(crate) struct Lender {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: RwLock<Looked>,
}

impl Lender {
    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file as it is now: it may have been put back anew since.
    pub(super) fn look(&self) -> Result<Lent> {
        let facts = self.facts();
        let buffer = cnfs::open_file(self.disk.as_ref(), &self.path)?;
        *self.file.write() = Looked::Open(Arc::clone(&buffer), facts);
        Ok(Lent { buffer })
    }

    fn facts(&self) -> As {
        self.disk.facts(&self.path).ok().flatten()
    }

    /// Whether another file has its name, or, where it `is_behind` what was to be read, something was written to it.
    fn is_another(&self, is_behind: bool) -> bool {
        let Looked::Open(_, as_it_was) = &*self.file.read() else {
            return true;
        };
        let shape = |facts: &FileFacts| (facts.inode, facts.len);
        match self.facts() {
            Some(facts) if is_behind => as_it_was.as_ref() != Some(&facts),
            facts => as_it_was.as_ref().map(shape) != facts.as_ref().map(shape),
        }
    }

    /// Whether the file ends before the end of this article, as a copy does that is not whole; a device does not tell its length.
    fn is_cut_before(&self, token: Token) -> bool {
        let end = token.position().offset() + u64::from(token.len());
        let len = self.facts().map_or(0, |facts| facts.len);
        len > 0 && len < end
    }

    /// Whether the file is the one in which an article lies.
    pub(super) fn has(&self, lies_at: &str) -> bool {
        let file = self.opened(Blocking::Yes);
        let key = file.map(|buffer| buffer.key.to_string());
        place_of(lies_at).is_some_and(|(of, _)| key.is_ok_and(|key| key == of))
    }

    /// What is wrong with it, as far as it was looked at.
    pub(super) fn complaint(&self) -> Option<String> {
        match &*self.file.read() {
            Looked::Not => None,
            Looked::Open(buffer, _) => buffer.complaint(),
            Looked::Refused(why, _) => Some(why.clone()),
        }
    }

    /// Whether it can be believed what it has no more.
    pub(super) fn is_sound(&self) -> bool {
        matches!(&*self.file.read(), Looked::Open(buffer, _) if buffer.complaint().is_none())
    }

    fn failed(&self, why: String) -> TextError {
        let error = io::Error::other(why);
        TextError::Host(HostError::from_io(Op::Read, &self.path, error))
    }

    fn opened(&self, blocking: Blocking) -> std::result::Result<Arc<Buffer>, TextError> {
        let looked = match blocking {
            Blocking::Yes => Some(self.file.read()),
            Blocking::No => self.file.try_read(),
        };
        match looked.as_deref() {
            Some(Looked::Open(buffer, _)) => return Ok(Arc::clone(buffer)),
            _ if blocking == Blocking::No => return Err(TextError::WouldBlock),
            Some(Looked::Refused(why, as_it_was)) if *as_it_was == self.facts() => {
                return Err(self.failed(why.clone()));
            }
            _ => drop(looked),
        }
        let mut file = self.file.write();
        if let Looked::Open(buffer, _) = &*file {
            return Ok(Arc::clone(buffer));
        }
        let facts = self.facts();
        let (looked, answer) = match cnfs::open_file(self.disk.as_ref(), &self.path) {
            Ok(buffer) => (Looked::Open(Arc::clone(&buffer), facts), Ok(buffer)),
            // That it is not there says nothing of its articles.
            Err(Error::Host(error)) => (Looked::Not, Err(TextError::Host(error))),
            Err(why) => (
                Looked::Refused(why.to_string(), facts),
                Err(self.failed(why.to_string())),
            ),
        };
        *file = looked;
        answer
    }

    /// Reads what a card tells of; it passed its checksums.  What is not there as it should be is looked for once more where another file
    /// has the name by now.
    pub(super) fn read(
        &self,
        card: &Card,
        (want, blocking): (Want, Blocking),
        text: &mut Vec<u8>,
    ) -> std::result::Result<(), TextError> {
        let Some((key, token)) = place_of(&card.name) else {
            return Err(TextError::Damaged("where the card says that it lies"));
        };
        let mut is_again = false;
        loop {
            let buffer = self.opened(blocking)?;
            let read = self.read_in(&buffer, (key, token), (card, want, blocking), text);
            let Err(TextError::Missing | TextError::Damaged(_)) = read else {
                return read;
            };
            if blocking == Blocking::No {
                return Err(TextError::WouldBlock);
            }
            let end = Position(buffer.written.load(Ordering::Acquire));
            let is_behind = token.position() >= end || self.is_cut_before(token);
            if !is_again && self.is_another(is_behind) {
                *self.file.write() = Looked::Not;
                is_again = true;
                continue;
            }
            if is_behind {
                let why = "it is an older one than the file that was attached, or a part of it; put that one back";
                return Err(self.failed(why.to_owned()));
            }
            return read;
        }
    }

    fn read_in(
        &self,
        buffer: &Buffer,
        (key, token): (&str, Token),
        (card, want, blocking): (&Card, Want, Blocking),
        text: &mut Vec<u8>,
    ) -> std::result::Result<(), TextError> {
        if key != buffer.key.to_string() {
            let why = "it is another file than the one that was attached; put that one back";
            *self.file.write() = Looked::Refused(why.to_owned(), self.facts());
            return Err(self.failed(why.to_owned()));
        }
        // Which id it says it has does not matter here: that of a header that was made again is none.
        let token = Token::new(TokenParts {
            method: buffer.home.kind().number,
            buffer: buffer.id,
            ..token.parts()
        });
        let mut memory = Vec::new();
        let stored = match buffer.read(&token, want, blocking, &mut memory) {
            Ok(stored) => stored,
            Err(ReadError::Gone | ReadError::Removed) => return Err(TextError::Missing),
            Err(ReadError::WouldBlock) => return Err(TextError::WouldBlock),
            Err(ReadError::Corrupt { what, .. }) => return Err(TextError::Damaged(what)),
            Err(ReadError::Host(error)) => {
                // On a file system over the network another file may have its name by now.
                *self.file.write() = Looked::Not;
                return Err(TextError::Host(error));
            }
        };
        let wire = memory.get(stored.octets).unwrap_or_default();
        file_here(wire, stored.head_len, &card.xref, text);
        check(card, want, text)?;
        // Somebody else writes the file, and checksums can be made to fit.
        match want == Want::Head || is_whole_block(text) {
            true => Ok(()),
            false => Err(TextError::Damaged("it ends in its midst")),
        }
    }
}

/// An article, or its header block, with this Xref instead of its own: as the sequencer renders it.
pub(super) fn file_here(wire: &[u8], head_len: usize, xref: &[u8], text: &mut Vec<u8>) {
    let (head, body) = wire.split_at_checked(head_len).unwrap_or((wire, &[]));
    let block = [head, b"\r\n"].concat();
    let headers = Headers::scan_stored(&block).ok();
    let field = headers.and_then(|headers| headers.get(Known::Xref));
    let field = field.map_or(head.len()..head.len(), |field| field.start..field.end);
    text.clear();
    text.extend_from_slice(head.get(..field.start).unwrap_or_default());
    text.extend_from_slice(head.get(field.end..).unwrap_or_default());
    if !xref.is_empty() {
        text.extend_from_slice(b"Xref: ");
        text.extend_from_slice(xref);
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::reading::place_name;

    #[test]
    fn the_name_of_a_card_says_where_its_article_lies() {
        let token = Token::from_bytes(std::array::from_fn(|at| at as u8 * 10));
        let name = place_name(&"0badcafe", &token);
        let digits = &name["0badcafe/".len()..];
        assert_eq!(place_of(&name), Some(("0badcafe", token)));
        for bad in [
            digits,
            "0badcafe/",
            &name[..name.len() - 1],
            &format!("{name}0"),
        ] {
            assert_eq!(place_of(bad), None, "{bad}");
        }
        assert_eq!(place_of(&name.replace("0a", "+a")), None);
        assert_eq!(place_of(&format!("0/{}", "\u{e9}".repeat(24))), None);
    }

    #[test]
    fn our_xref_stands_instead_of_the_other_at_the_end_of_the_header_block() {
        let ours = b"us a:7";
        for (wire, head_len, expected) in [
            (
                "Xref: x a:1\r\n b:2\r\nSubject: s\r\n\r\nt\r\n.\r\n",
                31,
                "Subject: s\r\nXref: us a:7\r\n\r\nt\r\n.\r\n",
            ),
            (
                "Subject: s\r\nXref: x a:1\r\n",
                25,
                "Subject: s\r\nXref: us a:7\r\n",
            ),
            (
                "Subject: s\r\n\r\n.\r\n",
                12,
                "Subject: s\r\nXref: us a:7\r\n\r\n.\r\n",
            ),
        ] {
            let mut text = vec![1];
            file_here(wire.as_bytes(), head_len, ours, &mut text);
            assert_eq!(String::from_utf8_lossy(&text), expected);
        }
        let mut text = Vec::new();
        file_here(b"Xref: x a:1\r\nA: b\r\n\r\n.\r\n", 19, b"", &mut text);
        assert_eq!(text, b"A: b\r\n\r\n.\r\n", "where nothing is filed");
    }
}
