//! What log, history and overview know of an article whose record is damaged, and whether the text that lies there agrees.
//!
//! The checksums of a text are in the header of its record alone.  Where nothing is left of that header all else that tells
//! something of the text must agree: its length and that of its header block, as its token has them, its message-id, and what
//! the overview shows of it, octets and lines among that.  What only a checksum can tell stays untold.

use newsreel_index::Wait;
use newsreel_journal::{Error as JournalError, Record};
use newsreel_store::Witness;
use newsreel_wire::article::{ArticleFacts, Headers, Known};
use newsreel_wire::{IdHash, MessageId, Position, Sequence, Token, overview};

use crate::places::write_line;
use crate::record::{ArticleRecord, kind, token_in};
use crate::shared::Shared;

/// Behind it an article in wire form ends.
const END: &[u8] = b"\r\n.\r\n";

/// An article whose record is damaged.
pub(crate) struct Vouching<'a> {
    pub(crate) shared: &'a Shared,
    /// Where it lies by the history, and the hash of its message-id.
    pub(crate) token: Token,
    pub(crate) id_hash: IdHash,
    /// Behind this sequence the log has it; `None`: it is not looked for.
    pub(crate) logged_behind: Option<Sequence>,
}

/// What is to be told of a record in the log, while that is kept.
pub(crate) fn record<T>(
    shared: &Shared,
    sequence: Sequence,
    told: impl FnOnce(&Record<'_>) -> Option<T>,
) -> Option<T> {
    let mut cursor = shared.journal.read_from(sequence);
    let frame = cursor.next_frame().ok().flatten()?;
    let mut records = frame.records();
    told(&records.find(|record| record.sequence == sequence)?)
}

impl Vouching<'_> {
    /// The overview line of a text, if it is as long as the article and has its message-id.
    fn line_of(&self, text: &[u8]) -> Option<Vec<u8>> {
        let headers = Headers::scan_stored(text).ok()?;
        let facts = ArticleFacts::of(&headers).ok()?;
        let id = MessageId::parse(headers.content(Known::MessageId)?).ok()?;
        let [h0, h1, h2, h3, ..] = self.token.tail();
        let is_it = self.shared.id_hash(id) == self.id_hash
            && headers.block().len() == u32::from_le_bytes([h0, h1, h2, h3]) as usize;
        let end = text.windows(END.len()).position(|octets| octets == END)?;
        let mut line = Vec::new();
        write_line(&headers, &facts, &mut line);
        (is_it && end + END.len() == text.len()).then_some(line)
    }

    /// The sequence under which the log has it, as far as it goes back, and the overview line with it.
    fn logged(&self) -> Option<(Sequence, Option<Vec<u8>>)> {
        let journal = &self.shared.journal;
        let mut cursor = journal.read_from(self.logged_behind?.max(journal.oldest()));
        loop {
            let frame = match cursor.next_frame() {
                Ok(frame) => frame?,
                Err(JournalError::Damaged(_)) => continue,
                Err(_) => return None,
            };
            for record in frame.records() {
                match token_in(&record) {
                    Some(token) if token.same_place(&self.token) => {
                        return Some((record.sequence, line_in(&record)));
                    }
                    // What comes behind it there the log has behind it, too.
                    Some(token) if self.is_in_front_of(&token) => return None,
                    _ => {}
                }
            }
        }
    }

    fn is_in_front_of(&self, token: &Token) -> bool {
        token.buffer() == self.token.buffer() && token.position() > self.token.position()
    }

    /// How many lines the overview has of it, if all are this one, but for their numbers.
    fn rows_of(&self, line: &[u8]) -> Option<usize> {
        let (at, views) = (self.token.position(), &self.shared.views);
        let stretch = at..Position(at.0.saturating_add(1));
        let mut rows = Vec::new();
        let found =
            views
                .overview()
                .rows_within(self.token.buffer(), &stretch, |group, column, _| {
                    rows.push((group, column.number));
                });
        let count = rows.len();
        let is_so = |(group, number)| {
            let (mut listed, mut wanted) = (Vec::new(), Vec::new());
            overview::write_numbered(number, line, &mut wanted);
            let range = (number, number);
            let read = views
                .overview()
                .lines(group, range, usize::MAX, Wait::Yes, &mut listed);
            read.is_ok() && listed == wanted
        };
        (found.is_ok() && rows.into_iter().all(is_so)).then_some(count)
    }
}

/// The overview line that a record has of its article.
fn line_in(record: &Record<'_>) -> Option<Vec<u8>> {
    if record.kind != kind::ARTICLE {
        return None;
    }
    let article = ArticleRecord::decode(record.sequence, record.payload).ok()?;
    (!article.line.is_empty()).then(|| article.line.to_vec())
}

impl Witness for Vouching<'_> {
    fn is_logged(&self, sequence: Sequence) -> bool {
        let logged = record(self.shared, sequence, token_in);
        logged.is_some_and(|logged| logged.same_place(&self.token))
    }

    fn vouches(&self, text: &[u8]) -> Option<Sequence> {
        let line = self.line_of(text)?;
        let (sequence, logged) = self.logged()?;
        // One of the two has a line of it, at least.
        let rows = self.rows_of(&line)?;
        let is_told = logged.is_some() || rows > 0;
        let agrees = is_told && logged.is_none_or(|logged| logged == line);
        agrees.then_some(sequence)
    }
}
