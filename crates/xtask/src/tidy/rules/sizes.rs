//! Files and functions stay small enough to be read in one go.

use super::super::Findings;
use crate::source::Source;
use crate::tree::Tree;

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
/// Of all functions, at most one in this many may be on the list below.
const EXCEPTIONS_ONE_IN: usize = 100;

/// Functions that may be longer, each with a reason.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    check_with(tree, LONG_FUNCTIONS, findings);
}

fn check_with(tree: &Tree, exceptions: &[(&str, &str, &str)], findings: &mut Findings) {
    let mut functions = 0;
    let mut used = Vec::new();
    for (path, text) in tree.ending("rs").filter(|(path, _)| is_production(path)) {
        let source = match Source::parse(text) {
            Ok(source) => source,
            Err(error) => {
                findings.file(path, format!("is not Rust: {error}"));
                continue;
            }
        };
        if source.production_lines > FILE_LINES_MAX {
            let lines = source.production_lines;
            findings.file(
                path,
                format!("{lines} production lines, at most {FILE_LINES_MAX}"),
            );
        }
        functions += source.functions.len();
        for function in source
            .functions
            .iter()
            .filter(|f| f.lines > FUNCTION_LINES_MAX)
        {
            let excepted = exceptions
                .iter()
                .find(|(file, name, _)| *file == path && *name == function.name);
            if let Some(exception) = excepted {
                used.push(exception);
            } else {
                let (name, lines) = (&function.name, function.lines);
                findings.line(
                    path,
                    function.line,
                    format!("{name} has {lines} lines, at most {FUNCTION_LINES_MAX}"),
                );
            }
        }
    }
    for exception in exceptions
        .iter()
        .filter(|exception| !used.contains(exception))
    {
        findings.file(
            exception.0,
            format!("{} needs no exception any more", exception.1),
        );
    }
    if exceptions.len() * EXCEPTIONS_ONE_IN > functions {
        let message = format!("{} exceptions for {functions} functions", exceptions.len());
        findings.file(
            "crates",
            format!("{message}: at most one in {EXCEPTIONS_ONE_IN}"),
        );
    }
}

/// Tests may be as long as they need.
fn is_production(path: &str) -> bool {
    let tests = ["/tests/", "/benches/", "/examples/", "fuzz/"];
    !path.ends_with("/tests.rs")
        && !path.ends_with("_tests.rs")
        && !tests.iter().any(|part| path.contains(part))
}

#[cfg(test)]
mod tests {
    use super::super::findings_of;
    use super::*;

    fn long_function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    f();\n".repeat(lines - 2))
    }

    #[test]
    fn long_files_and_functions_are_named() {
        let function = long_function(71);
        let fits = long_function(70);
        let file = "const A: u8 = 1;\n".repeat(801);
        let files = [
            ("crates/a/src/f.rs", function.as_str()),
            ("crates/a/src/fits.rs", fits.as_str()),
            ("crates/a/src/g.rs", file.as_str()),
            ("crates/a/src/tests.rs", file.as_str()),
            ("crates/a/src/broken.rs", "fn {\n"),
        ];
        let found = findings_of(check, &files);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].starts_with("crates/a/src/broken.rs: is not Rust: line 1"),
            "{found:?}"
        );
        assert_eq!(
            found[1],
            "crates/a/src/f.rs:1: long has 71 lines, at most 70"
        );
        assert_eq!(
            found[2],
            "crates/a/src/g.rs: 801 production lines, at most 800"
        );
    }

    #[test]
    fn exceptions_are_few_and_needed() {
        fn with_exceptions(tree: &Tree, findings: &mut Findings) {
            let exceptions = [("a.rs", "long", "a table"), ("b.rs", "gone", "was a table")];
            check_with(tree, &exceptions, findings);
        }
        let function = long_function(71);
        assert_eq!(
            findings_of(with_exceptions, &[("a.rs", function.as_str())]),
            [
                "b.rs: gone needs no exception any more",
                "crates: 2 exceptions for 1 functions: at most one in 100",
            ]
        );
    }
}
