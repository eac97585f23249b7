//! Overview lines on their way to a reader, ready for the wire.
//!
//! The text is what OVER sends: lines `number TAB subject TAB ... CRLF`, so a session swaps its output buffer in and
//! sends it as it is; HDR takes the lines apart.  A service appends whole lines only.

use newsreel_wire::ArticleNumber;
use newsreel_wire::overview::write_numbered;

/// Overview lines, in number order.
#[derive(Debug, Default)]
pub struct OverviewRows {
    text: Vec<u8>,
    /// Where the rows begin in the text.
    begun: usize,
}

impl OverviewRows {
    /// No rows yet, writing behind what `text` already holds (a reply's status line, say).
    #[must_use]
    pub const fn with_buffer(text: Vec<u8>) -> Self {
        Self {
            begun: text.len(),
            text,
        }
    }

    /// Gives the buffer back.
    #[must_use]
    pub fn into_buffer(self) -> Vec<u8> {
        self.text
    }

    /// Forgets rows and text, keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.begun = 0;
    }

    /// Appends one row.  `line` is the overview line after the number and its TAB, without CRLF.
    pub fn push(&mut self, number: ArticleNumber, line: &[u8]) {
        write_numbered(number, line, &mut self.text);
    }

    /// The buffer, for a service that appends whole lines itself.
    pub const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Counts the rows appended since it was made or cleared.
    #[must_use]
    pub fn rows(&self) -> usize {
        let rows = &self.text[self.begun..];
        rows.iter().filter(|octet| **octet == b'\n').count()
    }

    /// Octets in the buffer, what it held at the start included: services stop at their limit by this.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether no row was appended since it was made or cleared.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.text.len() == self.begun
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}
