//! The vocabulary and the text that generated articles are cut from.
//!
//! Invariant: everything follows from the seed. The text is in wire form (lines end in CRLF, a
//! leading dot is doubled), so that an article's body is a run of whole lines and nothing is copied.
//! Must not contain real people's words: every word is made up of syllables.

use crate::random::Dice;

const VOCABULARY: u64 = 0x01;
const TEXT: u64 = 0x02;

const ONSETS: [&str; 20] = [
    "b", "br", "c", "d", "f", "g", "gl", "h", "k", "l", "m", "n", "p", "pr", "r", "s", "st", "t",
    "tr", "v",
];
const VOWELS: [&str; 8] = ["a", "e", "i", "o", "u", "ea", "io", "ou"];
const CODAS: [&str; 8] = ["", "", "", "n", "r", "s", "l", "nd"];

/// Made-up words, the frequent ones first.
#[derive(Debug)]
pub(crate) struct Words {
    words: Vec<String>,
}

impl Words {
    pub(crate) fn new(seed: u64, len: usize) -> Self {
        let mut dice = Dice::new(seed, VOCABULARY, 0);
        let words = (0..len)
            .map(|rank| {
                // Frequent words are short, as in any language.
                let syllables = 1 + dice.below(if rank < 100 { 2 } else { 3 });
                let mut word = String::new();
                for _ in 0..syllables {
                    for part in [&ONSETS[..], &VOWELS[..], &CODAS[..]] {
                        word.push_str(dice.pick(part).copied().unwrap_or_default());
                    }
                }
                word
            })
            .collect();
        Self { words }
    }

    /// A word as it turns up in text: the first ones far more often than the last.
    pub(crate) fn common(&self, dice: &mut Dice) -> &str {
        let widest = dice.below(self.words.len()) + 1;
        let narrower = dice.below(widest) + 1;
        self.words
            .get(dice.below(narrower))
            .map_or("", String::as_str)
    }

    /// A word drawn evenly, as in names.
    pub(crate) fn any(&self, dice: &mut Dice) -> &str {
        dice.pick(&self.words).map_or("", String::as_str)
    }
}

/// A long text in wire form that bodies are cut from.
#[derive(Debug)]
pub(crate) struct Text {
    octets: Vec<u8>,
    /// Where each line starts, and at the end where the text ends.
    starts: Vec<u32>,
}

/// A body: whole lines of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) lines: usize,
}

impl Text {
    /// A text of at least `len_min` octets.
    pub(crate) fn new(seed: u64, words: &Words, len_min: usize) -> Self {
        let mut dice = Dice::new(seed, TEXT, 0);
        let mut octets = Vec::with_capacity(len_min + 4096);
        while octets.len() < len_min {
            write_posting(&mut octets, words, &mut dice);
        }
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', &octets).map(|at| at as u32 + 1));
        Self { octets, starts }
    }

    /// The run of lines nearest to `len` octets, at least one line, at a place that `dice` decides.
    pub(crate) fn cut(&self, dice: &mut Dice, len: usize) -> Cut {
        // The text is even enough to know nearly how many lines that will be; a few steps mend it.
        let lines = self.starts.len() - 1;
        let about = |octets: usize| octets * lines / self.octets.len();
        let first = dice.below(lines.saturating_sub(about(len + 4096)).max(1));
        let start = self.starts[first] as usize;
        let wanted = (start + len) as u32;
        let mut last = (first + about(len)).clamp(first + 1, lines);
        while last < lines && self.starts[last] < wanted {
            last += 1;
        }
        while last > first + 1
            && wanted.abs_diff(self.starts[last - 1]) <= wanted.abs_diff(self.starts[last])
        {
            last -= 1;
        }
        Cut {
            start,
            end: self.starts[last] as usize,
            lines: last - first,
        }
    }

    pub(crate) fn get(&self, cut: Cut) -> &[u8] {
        self.octets.get(cut.start..cut.end).unwrap_or_default()
    }
}

/// One posting's worth of text: attribution, quotation, paragraphs, now and then a signature.
fn write_posting(out: &mut Vec<u8>, words: &Words, dice: &mut Dice) {
    if dice.chance(500) {
        out.extend_from_slice(b"In article <");
        out.extend_from_slice(words.any(dice).as_bytes());
        out.extend_from_slice(b"@news.example>, ");
        out.extend_from_slice(words.any(dice).as_bytes());
        out.extend_from_slice(b" wrote:\r\n");
        for _ in 0..1 + dice.below(8) {
            write_line(out, words, dice, b"> ");
        }
        out.extend_from_slice(b"\r\n");
    }
    for _ in 0..1 + dice.below(4) {
        for _ in 0..1 + dice.below(9) {
            write_line(out, words, dice, b"");
        }
        out.extend_from_slice(b"\r\n");
    }
    match dice.below(12) {
        0 => out.extend_from_slice(b"..\r\n"),
        1 => out.extend_from_slice(b"na\xc3\xafve \xc3\xa9lan, gr\xc3\xbc\xc3\x9fe\r\n"),
        2..=5 => {
            out.extend_from_slice(b"-- \r\n");
            write_line(out, words, dice, b"  ");
        }
        _ => {}
    }
}

fn write_line(out: &mut Vec<u8>, words: &Words, dice: &mut Dice, prefix: &[u8]) {
    let width = 40 + dice.below(35);
    let start = out.len();
    out.extend_from_slice(prefix);
    loop {
        out.extend_from_slice(words.common(dice).as_bytes());
        if out.len() - start >= width {
            break;
        }
        out.push(b' ');
    }
    out.extend_from_slice(if dice.chance(200) { b".\r\n" } else { b"\r\n" });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Text {
        Text::new(3, &Words::new(3, 500), 100_000)
    }

    #[test]
    fn every_line_is_in_wire_form() {
        let text = text();
        assert!(text.octets.ends_with(b"\r\n"));
        for line in text.octets.split_inclusive(|&octet| octet == b'\n') {
            assert!(line.ends_with(b"\r\n") && line.len() <= 120, "{line:?}");
            assert!(
                !line.starts_with(b".") || line.starts_with(b".."),
                "{line:?}"
            );
            assert!(
                !line[..line.len() - 2]
                    .iter()
                    .any(|octet| matches!(octet, 0 | b'\r' | b'\n'))
            );
        }
        assert!(memchr::memmem::find(&text.octets, b"\r\n..\r\n").is_some());
    }

    #[test]
    fn prop_a_cut_is_whole_lines_of_about_the_asked_length() {
        let text = text();
        for item in 0..2_000 {
            let mut dice = Dice::new(1, 1, item);
            let len = dice.below(40_000);
            let cut = text.cut(&mut dice, len);
            let octets = text.get(cut);
            assert!(octets.ends_with(b"\r\n"));
            assert!(cut.start == 0 || text.octets[cut.start - 1] == b'\n');
            assert_eq!(cut.lines, memchr::memchr_iter(b'\n', octets).count());
            assert!(
                octets.len().abs_diff(len) <= 90,
                "asked {len}, got {}",
                octets.len()
            );
        }
    }
}
