//! The table of tidy's rules, one file each.
//!
//! To add a rule: a file here with `check` and a unit test that sees it fail, and a row below; the rule `registries`
//! looks after this folder too.

mod ascii;
mod documents;
mod edges;
mod generated;
mod headers;
mod links;
mod manifests;
mod proofs;
mod registries;
mod sections;
mod sizes;
mod test_binaries;
mod unsafe_list;
mod words;

use super::Findings;
use crate::tree::Tree;

/// One rule of the house.
pub(crate) struct Rule {
    /// Its name, as printed behind a finding.
    pub(crate) name: &'static str,
    /// What it demands, in a sentence.
    pub(crate) demand: &'static str,
    /// Looks at the tree.
    pub(crate) check: fn(&Tree, &mut Findings),
}

/// Every rule, in the order they run.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "edges",
        demand: "a crate depends only on what the drawing in ARCHITECTURE.md lets it",
        check: edges::check,
    },
    Rule {
        name: "manifests",
        demand: "every crate takes lints, version, edition and licence from the workspace",
        check: manifests::check,
    },
    Rule {
        name: "registries",
        demand: "each file of a plural folder is in its table, with its transcript or format page",
        check: registries::check,
    },
    Rule {
        name: "sizes",
        demand: "a file has at most 800 production lines, a function at most 70",
        check: sizes::check,
    },
    Rule {
        name: "headers",
        demand: "every Rust file opens with //! and a sentence",
        check: headers::check,
    },
    Rule {
        name: "words",
        demand: "no leftover markers, debug output, ignored tests or silenced lints",
        check: words::check,
    },
    Rule {
        name: "ascii",
        demand: "sources are ASCII, without tabs",
        check: ascii::check,
    },
    Rule {
        name: "links",
        demand: "every link and every path named in a document exists",
        check: links::check,
    },
    Rule {
        name: "proofs",
        demand: "every transcript and test that the map of RFCs and the page on security name is there",
        check: proofs::check,
    },
    Rule {
        name: "sections",
        demand: "every section of the RFCs that asks something of a server has a row in the map of RFCs",
        check: sections::check,
    },
    Rule {
        name: "documents",
        demand: "the documents that must be there are there, and short",
        check: documents::check,
    },
    Rule {
        name: "unsafe-list",
        demand: "unsafe code only in the files that ARCHITECTURE.md lists",
        check: unsafe_list::check,
    },
    Rule {
        name: "test-binaries",
        demand: "at most one integration test binary a crate: tests/it/main.rs",
        check: test_binaries::check,
    },
    Rule {
        name: "generated",
        demand: "what is generated from the sources is up to date",
        check: generated::check,
    },
];

/// Runs one rule on a made-up tree and gives its findings as text.
#[cfg(test)]
fn findings_of(check: fn(&Tree, &mut Findings), files: &[(&str, &str)]) -> Vec<String> {
    let mut findings = Findings::default();
    check(&Tree::of(files), &mut findings);
    findings.found.iter().map(ToString::to_string).collect()
}
