//! `unsafe` stands only in the files that ARCHITECTURE.md lists under "Unsafe code", and every file listed has some.

use std::collections::BTreeSet;

use super::super::Findings;
use crate::source::Source;
use crate::tree::Tree;

const DOCUMENT: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Unsafe code";

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let listed = listed(tree.text(DOCUMENT).unwrap_or_default());
    for (path, text) in tree.ending("rs") {
        let Ok(source) = Source::parse(text) else {
            continue;
        };
        if let (Some(&line), false) = (source.unsafe_lines.first(), listed.contains(path)) {
            findings.line(path, line, format!("unsafe, but not listed in {DOCUMENT}"));
        }
        if source.unsafe_lines.is_empty() && listed.contains(path) {
            findings.file(DOCUMENT, format!("lists {path}, which has no unsafe code"));
        }
    }
    for path in listed.iter().filter(|path| !tree.exists(path)) {
        findings.file(DOCUMENT, format!("lists {path}, which does not exist"));
    }
}

/// Paths of Rust files in code spans below the heading, up to the next one.
fn listed(document: &str) -> BTreeSet<&str> {
    let section = document
        .lines()
        .skip_while(|line| *line != HEADING)
        .skip(1)
        .take_while(|line| !line.starts_with("## "));
    section
        .flat_map(|line| line.split('`'))
        .filter(|span| span.ends_with(".rs"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn the_list_and_the_code_agree() {
        let files = [
            (
                "ARCHITECTURE.md",
                "`c.rs`\n## Unsafe code\n- `a.rs`: a reason\n- `gone.rs`, `d.rs`\n## Next\n",
            ),
            ("a.rs", "fn f() { unsafe { g() } }\n"),
            ("c.rs", "fn f() {\n    unsafe { g() }\n}\n"),
            ("d.rs", "// unsafe\n"),
        ];
        assert_eq!(
            findings_of(check, &files),
            [
                "c.rs:2: unsafe, but not listed in ARCHITECTURE.md",
                "ARCHITECTURE.md: lists d.rs, which has no unsafe code",
                "ARCHITECTURE.md: lists gone.rs, which does not exist",
            ]
        );
    }
}
