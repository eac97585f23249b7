//! Every section of the RFCs that asks something of a server has a row in the map of RFCs, and every row is of a section there is.
//!
//! The sections are a list in `tests/fixtures/rfc-sections.txt`: number of the RFC, of the section, and its title.  A row names code, or
//! gives a reason behind a colon why there is none.

use std::collections::BTreeMap;

use super::super::Findings;
use crate::tree::Tree;

const MAP: &str = "docs/rfc-map.md";
const SECTIONS: &str = "tests/fixtures/rfc-sections.txt";

/// An RFC and a section of it.
type Section<'a> = (&'a str, &'a str);

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let (Some(map), Some(list)) = (tree.text(MAP), tree.text(SECTIONS)) else {
        findings.file(SECTIONS, "this list, or the map of RFCs, is not there");
        return;
    };
    let mut wanted = BTreeMap::new();
    for (at, line) in list.lines().enumerate() {
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some(first), ..) if first.is_empty() || first == "#" => {}
            (Some(rfc), Some(section), Some(_)) => {
                wanted.insert((rfc, section), at + 1);
            }
            _ => findings.line(SECTIONS, at + 1, "no RFC, section and title"),
        }
    }
    let mut rfc = "";
    let mut named: Vec<Section<'_>> = Vec::new();
    for (at, line) in map.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("## ") {
            rfc = rfc_of(heading);
        }
        let Some((sections, what, code)) = row(line).filter(|_| is_listed(rfc, &wanted)) else {
            continue;
        };
        for section in sections.split(", ") {
            if !wanted.contains_key(&(rfc, section)) {
                let message = format!("RFC {rfc} has no section {section} in {SECTIONS}");
                findings.line(MAP, at + 1, message);
            }
            named.push((rfc, section));
        }
        if code.is_empty() && !what.contains(": ") {
            findings.line(MAP, at + 1, "neither code nor a reason why there is none");
        }
    }
    for (section, line) in wanted {
        if !named.contains(&section) {
            let message = format!(
                "RFC {} section {} has no row in {MAP}",
                section.0, section.1
            );
            findings.line(SECTIONS, line, message);
        }
    }
}

/// The number of the RFC that a heading is about, or nothing.
fn rfc_of(heading: &str) -> &str {
    let number = heading
        .strip_prefix("RFC ")
        .and_then(|it| it.split(',').next());
    number.unwrap_or_default()
}

/// Whether the list has sections of this RFC; of others the map may say what it likes.
fn is_listed(rfc: &str, wanted: &BTreeMap<Section<'_>, usize>) -> bool {
    wanted
        .range((rfc, "")..)
        .next()
        .is_some_and(|((first, _), _)| *first == rfc)
}

/// The first three columns of a row that is no head of a table.
fn row(line: &str) -> Option<(&str, &str, &str)> {
    let mut cells = line.strip_prefix("| ")?.split('|').map(str::trim);
    let row = (cells.next()?, cells.next()?, cells.next()?);
    row.0
        .starts_with(|first: char| first.is_ascii_digit())
        .then_some(row)
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn what_has_no_row_and_rows_of_nothing_are_named() {
        let list = "# What servers must do.\n\n1 2.1 Lines\n1 2.2 Ends\n1 3 Rest\n1 4 Registers\n2 1 More\n2 2\n";
        let map = "## RFC 1, lines\n\n| section | what | code |\n|---|---|---|\n| 2.1, 2.3 | lines | `a` | x |\n| 2.2 | ends | | |\n\
                   | 4 | registers: nothing for a server | | |\n\n## RFC 9, not listed\n\n| 7 | b | | |\n";
        let files = [(SECTIONS, list), (MAP, map)];
        assert_eq!(
            findings_of(check, &files),
            [
                "tests/fixtures/rfc-sections.txt:8: no RFC, section and title",
                "docs/rfc-map.md:5: RFC 1 has no section 2.3 in tests/fixtures/rfc-sections.txt",
                "docs/rfc-map.md:6: neither code nor a reason why there is none",
                "tests/fixtures/rfc-sections.txt:5: RFC 1 section 3 has no row in docs/rfc-map.md",
                "tests/fixtures/rfc-sections.txt:7: RFC 2 section 1 has no row in docs/rfc-map.md",
            ]
        );
        assert_eq!(
            findings_of(check, &files[1..]),
            ["tests/fixtures/rfc-sections.txt: this list, or the map of RFCs, is not there"]
        );
    }
}
