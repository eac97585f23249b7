//! Overview lines on their way to a reader, ready for the wire.
//!
//! The text is what OVER sends: lines `number TAB subject TAB ... CRLF`, so a session swaps its output buffer in and
//! sends it as it is; HDR takes the lines apart.  A service appends whole lines only.

use newsreel_wire::ArticleNumber;

/// Overview lines, in number order.
#[derive(Debug, Default)]
pub struct OverviewRows {
    text: Vec<u8>,
    rows: usize,
}

impl OverviewRows {
    /// No rows yet, writing behind what `text` already holds (a reply's status line, say).
    #[must_use]
    pub const fn with_buffer(text: Vec<u8>) -> Self {
        Self { text, rows: 0 }
    }

    /// Gives the buffer back.
    #[must_use]
    pub fn into_buffer(self) -> Vec<u8> {
        self.text
    }

    /// Forgets rows and text, keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.rows = 0;
    }

    /// Appends one row.  `line` is the overview line after the number and its TAB, without CRLF.
    pub fn push(&mut self, number: ArticleNumber, line: &[u8]) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number.0).as_bytes();
        self.text.reserve(digits.len() + line.len() + 3);
        self.text.extend_from_slice(digits);
        self.text.push(b'\t');
        self.text.extend_from_slice(line);
        self.text.extend_from_slice(b"\r\n");
        self.rows += 1;
    }

    /// Appends the rows of another one that began empty.
    pub fn append(&mut self, other: &Self) {
        self.text.extend_from_slice(&other.text);
        self.rows += other.rows;
    }

    /// Rows appended since it was made or cleared.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Octets in the buffer, what it held at the start included: services stop at their limit by this.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether the buffer is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}
