//! A plural folder is a registry: what lies in it is in its table, and has what goes with it.
//!
//! A command brings a transcript, a storage method a page about its format, so neither can be forgotten.

use super::super::Findings;
use crate::tree::Tree;

/// What a row of a registry must bring.
enum Companion {
    /// Nothing beside the row.
    None,
    /// `tests/transcripts/**/<name>.nntp`, or `<name>_<case>.nntp`.
    Transcript,
    /// A page of `docs/formats/` that one of its files names.
    FormatPage,
}

/// The plural folders of the workspace.
const REGISTRIES: [(&str, Companion); 7] = [
    ("crates/session/src/commands/", Companion::Transcript),
    ("crates/store/src/methods/", Companion::FormatPage),
    ("crates/layout/src/mappings/", Companion::None),
    ("crates/app/src/commands/", Companion::None),
    ("crates/bench/src/passes/", Companion::None),
    ("crates/cache/src/policies/", Companion::None),
    ("crates/xtask/src/tidy/rules/", Companion::None),
];

/// Files of a registry that are no row.
const NO_ROWS: [&str; 3] = ["mod.rs", "tests.rs", "conformance.rs"];

/// The table of contents stays one.
const TABLE_LINES_MAX: usize = 150;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (folder, companion) in &REGISTRIES {
        let children = tree.children(folder);
        if children.is_empty() {
            continue;
        }
        let table_path = format!("{folder}mod.rs");
        let Some(table) = tree.text(&table_path) else {
            findings.file(folder, "has no mod.rs with its table");
            continue;
        };
        let lines = table
            .lines()
            .take_while(|line| !line.starts_with("#[cfg(test)]"))
            .count();
        if lines > TABLE_LINES_MAX {
            findings.file(
                &table_path,
                format!("{lines} lines: a table of contents has 150"),
            );
        }
        for child in children
            .iter()
            .filter(|child| !NO_ROWS.contains(&child.as_str()))
        {
            let name = child.strip_suffix(".rs").unwrap_or(child);
            row(&table_path, table, name, findings);
            bring(tree, folder, child, companion, findings);
        }
    }
}

fn row(table_path: &str, table: &str, name: &str, findings: &mut Findings) {
    let code = || {
        table
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
    };
    if !code().any(|line| line.contains(&format!("{name}::"))) {
        findings.file(table_path, format!("`{name}` is not in the table"));
    }
}

fn bring(tree: &Tree, folder: &str, child: &str, companion: &Companion, findings: &mut Findings) {
    let path = format!("{folder}{child}");
    let name = child.strip_suffix(".rs").unwrap_or(child);
    match companion {
        Companion::None => {}
        Companion::Transcript => {
            let found = tree.under("tests/transcripts/").any(|(transcript, _)| {
                let stem = transcript
                    .rsplit('/')
                    .next()
                    .and_then(|file| file.strip_suffix(".nntp"));
                stem.is_some_and(|stem| {
                    stem == name
                        || stem
                            .strip_prefix(name)
                            .is_some_and(|rest| rest.starts_with('_'))
                })
            });
            if !found {
                findings.file(
                    &path,
                    format!("has no transcript tests/transcripts/**/{name}.nntp"),
                );
            }
        }
        Companion::FormatPage => {
            let named = tree
                .under(path.strip_suffix(".rs").unwrap_or(&path))
                .flat_map(|(_, text)| super::links::paths_in_comments(text))
                .any(|(_, page)| page.starts_with("docs/formats/") && tree.exists(&page));
            if !named {
                findings.file(&path, "names no page of docs/formats/ that exists");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    #[test]
    fn what_is_missing_beside_a_command_is_named() {
        let files = [
            (
                "crates/session/src/commands/mod.rs",
                "mod date;\nmod help;\nconst T: X = date::ROW;\n",
            ),
            ("crates/session/src/commands/date.rs", ""),
            ("crates/session/src/commands/help.rs", ""),
            ("tests/transcripts/reader/help_long.nntp", ""),
        ];
        assert_eq!(
            findings_of(check, &files),
            [
                "crates/session/src/commands/date.rs: has no transcript tests/transcripts/**/date.nntp",
                "crates/session/src/commands/mod.rs: `help` is not in the table",
            ]
        );
    }

    #[test]
    fn a_method_names_its_format_page() {
        let files = [
            (
                "crates/store/src/methods/mod.rs",
                "const T: X = [cnfs::OPEN, segment::OPEN];\n",
            ),
            (
                "crates/store/src/methods/cnfs/format.rs",
                "//! See `docs/formats/cyclic.md`.\n",
            ),
            (
                "crates/store/src/methods/segment/mod.rs",
                "//! See `docs/formats/segment.md`.\n",
            ),
            ("docs/formats/cyclic.md", ""),
        ];
        assert_eq!(
            findings_of(check, &files),
            ["crates/store/src/methods/segment: names no page of docs/formats/ that exists"]
        );
    }

    #[test]
    fn a_registry_has_a_short_table() {
        let long = "//! x\n".repeat(151);
        let files = [
            ("crates/app/src/commands/serve.rs", ""),
            ("crates/bench/src/passes/mod.rs", long.as_str()),
        ];
        assert_eq!(
            findings_of(check, &files),
            [
                "crates/app/src/commands/: has no mod.rs with its table",
                "crates/bench/src/passes/mod.rs: 151 lines: a table of contents has 150",
            ]
        );
    }
}
