//! Words that say something is unfinished or silenced.
//!
//! They are put together here from halves, so that this file does not find itself.

use super::super::Findings;
use crate::tree::Tree;

/// Leftover markers, in every text of ours.
const MARKERS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Code that must not stay, in Rust files, with what to do instead.
const CODE: [(&str, &str); 7] = [
    (concat!("to", "do!"), "write it"),
    (concat!("unimpl", "emented!"), "write it"),
    (concat!("db", "g!"), "take it out"),
    (concat!("#[ig", "nore"), "a test runs or goes"),
    (concat!("#[al", "low("), "use #[expect(lint, reason)]"),
    (concat!("#![al", "low("), "use #![expect(lint, reason)]"),
    (concat!("dead_", "code"), "take the code out"),
];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (path, text) in tree.under("") {
        let ending = path.rsplit('.').next().unwrap_or_default();
        if !["rs", "md", "toml", "nntp"].contains(&ending) && !path.starts_with("script/") {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            for marker in MARKERS.iter().filter(|marker| has_word(line, marker)) {
                findings.line(path, at + 1, format!("leftover marker {marker}"));
            }
            if ending != "rs" {
                continue;
            }
            for (word, instead) in CODE.iter().filter(|(word, _)| line.contains(word)) {
                findings.line(path, at + 1, format!("`{word}`: {instead}"));
            }
        }
    }
}

/// Whether a word stands in a line, not as a part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        !is_part(line[..at].chars().next_back()) && !is_part(line[at + word.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn leftovers_are_named() {
        let code = [
            "// ",
            MARKERS[0],
            ": later\nfn f() { ",
            CODE[1].0,
            "() }\n",
            CODE[3].0,
            "]\n",
        ]
        .concat();
        let prose = ["a ", MARKERS[1], " here, but ", MARKERS[0], "S is a word\n"].concat();
        let files = [
            ("a.rs", code.as_str()),
            ("b.md", prose.as_str()),
            ("c.txt", code.as_str()),
        ];
        assert_eq!(
            findings_of(check, &files),
            [
                format!("a.rs:1: leftover marker {}", MARKERS[0]),
                format!("a.rs:2: `{}`: write it", CODE[1].0),
                format!("a.rs:3: `{}`: a test runs or goes", CODE[3].0),
                format!("b.md:1: leftover marker {}", MARKERS[1]),
            ]
        );
    }
}
