//! Lines with holes: `{*}` any text, `{name}` the same word everywhere, `{a|b}` one of these, `{x*600}` a repetition,
//! `\xHH` an octet, `{scram PASSWORD FIRST name}` what a client of SCRAM says last: FIRST is what it said first, name what it was asked.
//!
//! A name is bound at first sight, to a run of octets without blanks, and compared later.  Matching backtracks over
//! holes only, so its cost is bounded by the square of a line's length per hole; lines in tests are short.

use std::collections::BTreeMap;

use crate::article::show;
use crate::scram;

/// What `{name}` stands for, in one run.
pub type Bindings = BTreeMap<String, Vec<u8>>;

/// A line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(Vec<u8>),
    Any,
    Name(String),
    /// One of these texts.
    Either(Vec<Vec<u8>>),
    /// A proof: the password, what was said first, and the name of what was asked.
    Scram(String, String, String),
}

impl Template {
    /// Reads a line.
    ///
    /// # Errors
    /// When a brace is not closed or holds something unknown, or an escape is not `\xHH`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '\\']) {
            literal.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("\\x") {
                let hex = after
                    .get(..2)
                    .and_then(|hex| u8::from_str_radix(hex, 16).ok());
                literal.push(hex.ok_or("\\x must be followed by two hexadecimal digits")?);
                rest = &after[2..];
            } else if let Some(after) = rest.strip_prefix('{') {
                let end = after
                    .find('}')
                    .ok_or("{ without }; write \\x7b for the octet itself")?;
                let hole = &after[..end];
                rest = &after[end + 1..];
                if let Some((what, times)) = repetition(hole) {
                    let what = Self::parse(what)?.say(&Bindings::new())?;
                    literal.extend(what.repeat(times));
                    continue;
                }
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                pieces.push(hole_piece(hole)?);
            } else {
                literal.push(b'\\');
                rest = &rest[1..];
            }
        }
        literal.extend_from_slice(rest.as_bytes());
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self { pieces })
    }

    /// The octets to send: every name must be bound and nothing may be open.
    ///
    /// # Errors
    /// When there is a hole.
    pub fn say(&self, bindings: &Bindings) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(octets) => out.extend_from_slice(octets),
                Piece::Any => return Err("{*} in a line that is sent".into()),
                Piece::Either(_) => return Err("{a|b} in a line that is sent".into()),
                Piece::Name(name) => out.extend_from_slice(seen(name, bindings)?),
                Piece::Scram(password, first, challenge) => {
                    let asked = seen(challenge, bindings)?;
                    let proof = scram::proof(password.as_bytes(), first.as_bytes(), asked);
                    out.extend_from_slice(proof.ok_or("that is no challenge of SCRAM")?.as_bytes());
                }
            }
        }
        Ok(out)
    }

    /// Whether `line` fits; names seen for the first time are bound.
    pub fn fits(&self, line: &[u8], bindings: &mut Bindings) -> bool {
        let mut trial = bindings.clone();
        let fits = fits(&self.pieces, line, &mut trial);
        if fits {
            *bindings = trial;
        }
        fits
    }

    /// Whether it is exactly this text, without holes.
    #[must_use]
    pub fn is(&self, text: &[u8]) -> bool {
        matches!(self.pieces.as_slice(), [Piece::Literal(octets)] if octets == text)
    }

    /// Whether it has a hole.
    #[must_use]
    pub fn has_holes(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| !matches!(piece, Piece::Literal(_)))
    }

    /// How a transcript says exactly these octets.
    #[must_use]
    pub fn quote(octets: &[u8]) -> String {
        let quoted = show(octets).replace('{', "\\x7b");
        match quoted.strip_suffix(' ') {
            Some(front) => format!("{front}\\x20"),
            None => quoted,
        }
    }
}

fn seen<'b>(name: &str, bindings: &'b Bindings) -> Result<&'b [u8], String> {
    let octets = bindings.get(name).map(Vec::as_slice);
    octets.ok_or_else(|| format!("{{{name}}} has not been seen yet"))
}

/// `x*600`, but not `*`.
fn repetition(hole: &str) -> Option<(&str, usize)> {
    let (what, times) = hole.rsplit_once('*')?;
    if what.is_empty() {
        return None;
    }
    Some((what, times.parse().ok()?))
}

fn hole_piece(hole: &str) -> Result<Piece, String> {
    if hole == "*" {
        return Ok(Piece::Any);
    }
    if hole.contains('|') {
        let texts = hole.split('|').map(|text| text.as_bytes().to_vec());
        return Ok(Piece::Either(texts.collect()));
    }
    if let Some(rest) = hole.strip_prefix("scram ") {
        let words: Vec<&str> = rest.split(' ').collect();
        let [password, first, challenge] = words.as_slice() else {
            return Err("{scram} wants a password, what was said first, and a name".to_owned());
        };
        let [password, first, challenge] = [password, first, challenge].map(|it| (*it).to_owned());
        return Ok(Piece::Scram(password, first, challenge));
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !hole.is_empty() && hole.chars().all(word) {
        return Ok(Piece::Name(hole.to_owned()));
    }
    Err(format!(
        "{{{hole}}} is neither {{*}}, a name, {{a|b}} nor a repetition"
    ))
}

fn fits(pieces: &[Piece], line: &[u8], bindings: &mut Bindings) -> bool {
    let Some((first, others)) = pieces.split_first() else {
        return line.is_empty();
    };
    match first {
        Piece::Literal(octets) => line
            .strip_prefix(octets.as_slice())
            .is_some_and(|rest| fits(others, rest, bindings)),
        Piece::Either(texts) => texts.iter().any(|text| {
            line.strip_prefix(text.as_slice())
                .is_some_and(|rest| fits(others, rest, bindings))
        }),
        // It is for lines that are sent.
        Piece::Scram(..) => false,
        Piece::Any => (0..=line.len()).any(|at| fits(others, &line[at..], bindings)),
        Piece::Name(name) => {
            if let Some(bound) = bindings.get(name).cloned() {
                return line
                    .strip_prefix(bound.as_slice())
                    .is_some_and(|rest| fits(others, rest, bindings));
            }
            let word = line.iter().position(|octet| matches!(octet, b' ' | b'\t'));
            for end in (1..=word.unwrap_or(line.len())).rev() {
                bindings.insert(name.clone(), line[..end].to_vec());
                if fits(others, &line[end..], bindings) {
                    return true;
                }
                bindings.remove(name);
            }
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(template: &str, line: &str, expected: bool) -> Bindings {
        let mut bindings = Bindings::new();
        let template = Template::parse(template).unwrap();
        assert_eq!(
            template.fits(line.as_bytes(), &mut bindings),
            expected,
            "{line}"
        );
        bindings
    }

    #[test]
    fn literal_any_and_names() {
        check("200 ready", "200 ready", true);
        check("200 ready", "200 ready ", false);
        check("200 {*}", "200 ", true);
        check("200 {*}", "200", false);
        check("{*}a{*}b", "xxaxxab", true);
        check("\\x41\\x7bz}", "A{z}", true);
        check("a\\*b", "a\\*b", true);
        check("{a*3}b", "aaab", true);
        let bound = check("{n} {m} {n}", "12 3 12", true);
        assert_eq!(bound["n"], b"12");
        assert!(check("{n} {m} {n}", "12 3 13", false).is_empty());
        check("<{id}@x>", "<a.b@x>", true);
    }

    #[test]
    fn what_is_sent_has_no_holes() {
        let mut bindings = Bindings::new();
        assert!(
            Template::parse("STAT {id}")
                .unwrap()
                .say(&bindings)
                .is_err()
        );
        bindings.insert("id".into(), b"<1@x>".to_vec());
        assert_eq!(
            Template::parse("STAT {id}")
                .unwrap()
                .say(&bindings)
                .unwrap(),
            b"STAT <1@x>"
        );
        assert!(Template::parse("STAT {*}").unwrap().say(&bindings).is_err());
        for bad in ["{", "{a b}", "\\x4", "{}"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn quote_round_trips() {
        let all: Vec<u8> = (0..=255).chain([b' ']).collect();
        let quoted = Template::quote(&all);
        assert!(quoted.is_ascii() && !quoted.ends_with(' '));
        assert!(Template::parse(&quoted).unwrap().is(&all));
    }
}
