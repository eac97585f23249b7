//! The house rules as an ordinary test: one table of rules, each looks at the whole tree and names what it finds.
//!
//! A rule never changes a file and never needs a build.  To add one: a file in `rules/`, a line in its table, and a
//! test that sees it fail on a made-up tree.

#[cfg(test)]
mod licences;
mod rules;

use std::fmt;

use crate::tree::Tree;

/// One thing that is not as the house wants it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// What the rules found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: Vec<Finding>,
}

impl Findings {
    /// Something about a whole file or folder.
    pub(crate) fn file(&mut self, path: &str, message: impl Into<String>) {
        self.line(path, 0, message);
    }

    /// Something about one line.
    pub(crate) fn line(&mut self, path: &str, line: usize, message: impl Into<String>) {
        self.found.push(Finding {
            path: path.to_owned(),
            line,
            message: message.into(),
        });
    }
}

/// Runs every rule; the findings come sorted by rule, path and line.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut lines = Vec::new();
    for rule in rules::RULES {
        let mut findings = Findings::default();
        (rule.check)(tree, &mut findings);
        findings.found.sort();
        findings.found.dedup();
        lines.extend(
            findings
                .found
                .iter()
                .map(|finding| format!("{finding} [{}]", rule.name)),
        );
    }
    lines
}

/// The rules with what each demands, for `--list`.
pub(crate) fn rules() -> impl Iterator<Item = (&'static str, &'static str)> {
    rules::RULES.iter().map(|rule| (rule.name, rule.demand))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let tree = Tree::load(&crate::root()).unwrap();
        let findings = check(&tree);
        assert!(
            findings.is_empty(),
            "{} findings:\n{}",
            findings.len(),
            findings.join("\n")
        );
    }
}
