//! Writing what was really answered into a transcript, keeping the holes that still fit.

use crate::transcript::{Bindings, Template};

/// Lines of a file to replace: `first..first + len`, from 1, by others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) first: usize,
    pub(crate) len: usize,
    pub(crate) lines: Vec<String>,
}

/// The new text of an `S:` line whose old text (after the mark) does not fit `actual`.
///
/// When only the reply code differs, what follows it keeps its holes.
pub(crate) fn merged(old: &str, actual: &[u8]) -> String {
    if let (Some((_, old_rest)), Some(space)) = (
        old.split_once(' '),
        actual.iter().position(|&octet| octet == b' '),
    ) && old_rest.contains('{')
        && let Ok(template) = Template::parse(old_rest)
        && template.fits(&actual[space + 1..], &mut Bindings::new())
    {
        return format!("{} {old_rest}", Template::quote(&actual[..space]));
    }
    Template::quote(actual)
}

/// The file with its edits, which must not overlap.
pub(crate) fn apply(source: &[String], edits: &[Edit]) -> String {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by_key(|edit| edit.first);
    let mut out = Vec::new();
    let mut next = 1;
    for edit in edits {
        out.extend_from_slice(source.get(next - 1..edit.first - 1).unwrap_or_default());
        out.extend(edit.lines.iter().cloned());
        next = edit.first + edit.len;
    }
    out.extend_from_slice(source.get(next - 1..).unwrap_or_default());
    out.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_kept_where_they_fit() {
        assert_eq!(merged("200 {*}", b"201 no posting"), "201 {*}");
        assert_eq!(
            merged("211 3 1 3 {group}", b"211 2 1 3 misc.test"),
            "211 2 1 3 misc.test"
        );
        assert_eq!(
            merged("205 bye", b"205 good {bye} "),
            "205 good \\x7bbye}\\x20"
        );
    }

    #[test]
    fn edits_replace_runs_of_lines() {
        let source: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let edit = |first, len, lines: &[&str]| Edit {
            first,
            len,
            lines: lines.iter().map(|&line| line.to_owned()).collect(),
        };
        assert_eq!(
            apply(&source, &[edit(4, 1, &["D"]), edit(1, 2, &["x", "y", "z"])]),
            "x\ny\nz\nc\nD\n"
        );
        assert_eq!(apply(&source, &[]), "a\nb\nc\nd\n");
    }
}
